// Sessions of the lock service: kept alive, ended, expired, counted.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { look, Party } from '../support/locks.mjs';
import { inTime, reap, sleep, start, until } from '../support/server.mjs';

const KEYS = { HOLDFAST_ADMIN_KEY: 'admin-key-0123456789', HOLDFAST_SELLER_KEY: 'seller-key-0123456789' };
const bearer = (key) => ({ Authorization: `Bearer ${key}` });

let server;
before(async () => { server = await start({ env: { HOLDFAST_LOG_LEVEL: 'debug' }, args: ['--request-log'] }); });
after(async () => { await server?.stop(); await reap(); });

describe('a session', () => {
  it('has an id, its TTL and its label', async () => {
    const { json } = await server.post('/v1/sessions', { ttl_ms: 1000, label: 'ann' });
    assert.deepEqual({ ...json, id: '' }, { object: 'session', id: '', ttl_ms: 1000, label: 'ann' });
    const nameless = assertOk(await server.post('/v1/sessions', { ttl_ms: 86_400_000 }), 201);
    assert.equal(nameless.label, null);
    assert.notEqual(nameless.id, json.id);
  });

  it('releases everything it holds when it is ended, once and again', async () => {
    const ann = await Party.open(server, { label: 'ann' });
    const ben = await Party.open(server, { label: 'ben' });
    for (const name of ['x', 'y', 'z/1']) await ann.take(name, { delay_ms: 60_000 });
    assert.equal((await ann.close()).status, 204);
    for (const name of ['x', 'y', 'z/1']) await ben.take(name); // a release has no lock delay
    assert.equal((await ann.close()).status, 204);
    assertProblem(await ann.keepAlive(), 410, 'session_expired');
    assertProblem(await ann.ask('w'), 410, 'session_expired');
    assertProblem(await ann.release('x', 'a'), 410, 'session_expired');
    assert.equal((await ben.close()).status, 204);
  });

  it('that is not kept alive expires, and its locks with it', async () => {
    const ben = await Party.open(server);
    const [ann, from] = await inTime(async (ttl_ms) => {
      const asked = Date.now();
      const short = await Party.open(server, { ttl_ms });
      await short.take('expiring', { wait_ms: 30_000 });
      return [short, asked];
    });
    const lock = await ben.take('expiring', { wait_ms: 60_000 });
    assert.ok(Date.now() - from >= ann.session.ttl_ms - 10, 'too early');
    assert.equal((await look(server, 'expiring')).holders[0].fence, lock.fence);
    assertProblem(await ann.keepAlive(), 410, 'session_expired');
  });

  it('that is kept alive keeps all of its locks for longer than its TTL', async () => {
    // Each keep-alive follows the one before in less than the TTL, which is longer if the machine stood still.
    const lives = async (ttl_ms) => {
      const ann = await Party.open(server, { ttl_ms });
      let sent = Date.now();
      const isLate = () => Date.now() - sent >= ttl_ms;
      try {
        const locks = await Promise.all(Array.from({ length: 10 }, (_, i) => ann.take(`kept-${ttl_ms}-${i}`)));
        for (const end = Date.now() + 2.2 * ttl_ms; Date.now() < end && !isLate(); await sleep(300)) {
          const before = Date.now();
          assert.deepEqual(assertOk(await ann.keepAlive()), { object: 'session', ttl_ms, wanted: [] });
          if (!isLate()) sent = before;
        }
        for (const [i, { fence }] of locks.entries()) assert.equal((await look(server, `kept-${ttl_ms}-${i}`)).holders[0].fence, fence);
      } catch (error) {
        if (!isLate()) throw error;
      }
      return [(await ann.close()).status, isLate()];
    };
    for (let ttl_ms = 3000, isLate = true; isLate; ttl_ms *= 3) {
      const [closed, late] = await lives(ttl_ms);
      assert.equal(closed, 204);
      assert.ok(!late || ttl_ms < 27_000, 'the machine stands still for a long time');
      isLate = late;
    }
  });

  it('that is lost leaves a lock delay behind, if the lock asked for one', async () => {
    const ben = await Party.open(server);
    let from = await inTime(async (ttl_ms) => { // when it was not lost yet
      const ann = await Party.open(server, { ttl_ms, label: 'ann' });
      await ann.take('delayed', { delay_ms: 8000, wait_ms: 30_000 }); // another one may have been lost too soon
      return Date.now();
    });
    await until('the session is lost', async () => {
      const asked = Date.now();
      const lost = (await look(server, 'delayed')).holders[0]?.delayed;
      if (!lost) from = asked;
      return lost;
    });
    const [holder] = (await look(server, 'delayed')).holders;
    assert.equal(holder.remaining_ms, null);
    assertProblem(await ben.ask('delayed'), 409, 'lock_taken');
    await ben.take('delayed', { wait_ms: 30_000 });
    assert.ok(Date.now() - from >= 7990, 'the delay was too short');
  });

  it('is known by the whole of its id', async () => {
    const ann = await Party.open(server);
    const other = ann.id.slice(0, -1) + (ann.id.endsWith('0') ? '1' : '0');
    const path = `/v1/sessions/${other}`;
    assertProblem(await server.post(`${path}/keepalive`), 410, 'session_expired');
    assertProblem(await server.post('/v1/locks/whole', { session: other }), 410, 'session_expired');
    assertProblem(await server.get(`${path}/stream`), 410, 'session_expired');
    assert.equal((await server.del(path)).status, 204);
    assertOk(await ann.keepAlive());
  });

  it('with a malformed id is an unknown one', async () => {
    for (const id of ['ses_', 'ses_none', 'evt_0000000000100P9MVMcaXWHEX8yi', 'x', `ses_${'0'.repeat(28)}`, `ses_${'z'.repeat(200)}`]) {
      assertProblem(await server.post(`/v1/sessions/${id}/keepalive`), 404, 'no_such_session');
      assertProblem(await server.del(`/v1/sessions/${id}`), 404, 'no_such_session');
      assertProblem(await server.get(`/v1/sessions/${id}/stream`), 404, 'no_such_session');
      assertProblem(await server.post('/v1/locks/x', { session: id }), 404, 'no_such_session');
    }
  });

  it('has an id that no log line shows', async () => {
    const ann = await inTime(async (ttl_ms) => {
      const short = await Party.open(server, { ttl_ms });
      await short.take('logged', { wait_ms: 30_000 });
      assertOk(await short.keepAlive());
      return short;
    });
    await until('it has expired', async () => (await look(server, 'logged')).n_holders === 0);
    assert.ok(server.stderr.includes('/v1/sessions/*/keepalive'), 'requests are logged');
    assert.ok(!server.stderr.includes(ann.id.slice(15)), 'the secret half of the id is in the log');
  });
});

describe('limits', () => {
  it('an access key may have --sessions-max sessions, and others are not affected', async () => {
    const own = await start({ env: KEYS, args: ['--sessions-max', '3'] });
    const seller = { headers: bearer(KEYS.HOLDFAST_SELLER_KEY) };
    const admin = { headers: bearer(KEYS.HOLDFAST_ADMIN_KEY) };
    const parties = [];
    for (let i = 0; i < 3; i += 1) parties.push(await Party.open(own, seller));
    for (let i = 0; i < 3; i += 1) {
      const refusal = await own.post('/v1/sessions', { ttl_ms: 60_000 }, seller.headers);
      assertProblem(refusal, 429, 'too_many_sessions');
      assert.ok(refusal.headers['retry-after']);
    }
    await Party.open(own, admin);
    assert.equal((await parties[0].close()).status, 204);
    await Party.open(own, seller);
    await own.restart(); // the count is part of the journal
    assertProblem(await own.post('/v1/sessions', { ttl_ms: 60_000 }, seller.headers), 429, 'too_many_sessions');
    await own.stop();
  });

  it('a client that never ends its sessions is refused, and again served when they have expired', async () => {
    const own = await inTime(async (ttl_ms) => {
      const limited = await start({ args: ['--sessions-max', '20'] });
      const answers = await Promise.all(Array.from({ length: 60 }, () => limited.post('/v1/sessions', { ttl_ms })));
      assert.equal(answers.filter(({ status }) => status === 201).length, 20);
      assert.equal(answers.filter(({ status }) => status === 429).length, 40);
      return limited;
    }, 6000);
    await until('the sessions have expired', async () => (await own.post('/v1/sessions', { ttl_ms: 60_000 })).status === 201);
    await own.stop();
  });
});
