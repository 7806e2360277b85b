// What the lock service says to bad input, and how much it lets anybody use.
// backends: sqlite
// time limit: 600 s

import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem } from '../support/expect.mjs';
import { Party, pathOf } from '../support/locks.mjs';
import { IDLE_MS, pool, reap, removeTempDir, RETURNS_MEMORY, runServer, start, tempDir, until } from '../support/server.mjs';

let server;
let ann;
before(async () => {
  server = await start();
  ann = await Party.open(server, { label: 'ann' });
});
after(async () => { await server?.stop(); await reap(); });

describe('names', () => {
  const bad = {
    '%2F': 'an empty level', 'a%2F': 'an empty last level', '%2Fa': 'an empty first level', 'a%2F%2Fb': 'an empty level between',
    [`${'x%2F'.repeat(16)}x`]: '17 levels', ['x'.repeat(256)]: '256 bytes', ['%C3%A9'.repeat(128)]: '256 bytes of 128 characters',
    'a%0Ab': 'a line feed', '%00': 'a NUL', 'a%00b': 'a NUL within', 'a%7Fb': 'DEL', '%1B': 'an escape', '%FF': 'no UTF-8', 'a%C3': 'half a character', '%ED%A0%80': 'a surrogate',
  };
  for (const [segment, what] of Object.entries(bad)) {
    it(`must not have ${what}`, async () => {
      for (const answer of [
        await server.post(`/v1/locks/${segment}`, { session: ann.id }),
        await server.post(`/v1/locks/${segment}/release`, { session: ann.id, owner: 'a' }),
        await server.put(`/v1/locks/${segment}/value`, { session: ann.id, owner: 'a', fence: 1, value: 'v' }),
        await server.post(`/v1/locks/${segment}/break`),
        await server.get(`/v1/locks/${segment}`),
        await server.get(`/v1/locks/${segment}/stream`),
      ]) assertInvalid(answer);
    });
  }

  it('may have 255 bytes and 16 levels', async () => {
    for (const name of ['x'.repeat(255), Array(16).fill('x').join('/'), 'é'.repeat(127), '%00', '%2500']) {
      const { owner } = await ann.take(name);
      assertOk(await ann.release(name, owner));
    }
  });
});

describe('bodies', () => {
  const acquire = (body) => server.post('/v1/locks/body', body);
  const wrong = [
    [{}, 'session'], [{ session: 7 }, 'session'], [{ session: null }, 'session'],
    [{ owner: 'xyz' }, 'owner'], [{ owner: '' }, 'owner'], [{ owner: 'a'.repeat(33) }, 'owner'], [{ owner: 5 }, 'owner'],
    [{ mode: 'write' }, 'mode'], [{ mode: null }, 'mode'], [{ mode: 'EXCLUSIVE' }, 'mode'],
    [{ slots: 0 }, 'slots'], [{ slots: 1_000_001 }, 'slots'], [{ slots: 2, mode: 'shared' }, 'slots'], [{ slots: '2' }, 'slots'],
    [{ wait_ms: -1 }, 'wait_ms'], [{ wait_ms: 60_001 }, 'wait_ms'], [{ wait_ms: 1e300 }, 'wait_ms'], [{ wait_ms: 1.5 }, 'wait_ms'],
    [{ claim_ms: 49 }, 'claim_ms'], [{ claim_ms: 1001 }, 'claim_ms'], [{ claim: 1 }, 'claim'],
    [{ priority: 1_000_001 }, 'priority'], [{ priority: -1_000_001 }, 'priority'],
    [{ delay_ms: 600_001 }, 'delay_ms'], [{ delay_ms: -1 }, 'delay_ms'],
    [{ agent: 'x'.repeat(65) }, 'agent'], [{ label: 'x'.repeat(129) }, 'label'], [{ label: 'é'.repeat(65) }, 'label'],
    [{ value: '' }, 'value'], [{ value: 'x'.repeat(4097) }, 'value'], [{ value: { a: 1 } }, 'value'],
    [{ cache: 1 }, 'cache'], [{ cache: true }, 'cache'], [{ nonsense: 1 }, 'nonsense'], [{ fence: 1 }, 'fence'],
  ];
  for (const [fields, name] of wrong) {
    it(`are refused, and ${name} is named: ${JSON.stringify(fields).slice(0, 60)}`, async () => {
      assertInvalid(await acquire(Object.keys(fields).length && !('session' in fields) ? { session: ann.id, ...fields } : fields), name);
    });
  }

  it('must be JSON objects in UTF-8', async () => {
    for (const body of ['', '[]', '7', '{"session":', `{"session":"${ann.id}"}x`, `{"session":"${ann.id}","session":"${ann.id}"}`,
      Buffer.from([...Buffer.from(`{"session":"${ann.id}","label":"`), 0xff, ...Buffer.from('"}')])]) assertInvalid(await acquire(body));
    assertProblem(await acquire(`{"session":"${ann.id}"${' '.repeat(65_536)}}`), 413, 'body_too_large');
  });

  it('are read the same whether they are plain or not', async () => {
    const plain = JSON.stringify({ session: ann.id, owner: 'abc', mode: 'shared', slots: 1, wait_ms: 0, priority: -3, delay_ms: 7, cache: true, value: 'v', label: 'l', agent: 'g' });
    const spaced = plain.replaceAll(',"', ' ,\n\t"').replaceAll('":', '" : ');
    const escaped = plain.replace('"abc"', '"\\u0061bc"').replace('shared', '\\u0073hared');
    const first = assertOk(await acquire(plain));
    for (const body of [spaced, escaped]) assert.deepEqual(assertOk(await acquire(body)), first);
  });

  it('of sessions say how long, and for whom', async () => {
    for (const [body, name] of [[{}, 'ttl_ms'], [{ ttl_ms: 999 }, 'ttl_ms'], [{ ttl_ms: 86_400_001 }, 'ttl_ms'], [{ ttl_ms: '1000' }, 'ttl_ms'],
      [{ ttl_ms: 1000, label: 7 }, 'label'], [{ ttl_ms: 1000, label: 'x'.repeat(129) }, 'label'], [{ ttl_ms: 1000, nonsense: 1 }, 'nonsense']]) {
      assertInvalid(await server.post('/v1/sessions', body), name);
    }
    assertInvalid(await server.post(`/v1/sessions/${ann.id}/keepalive`, { ttl_ms: 1000 }), 'ttl_ms');
    assertInvalid(await server.post('/v1/cell/transfer', { to: 'me' }), 'to');
  });

  it('of a release and of a value name the owner, the fence and the value', async () => {
    const { owner, fence } = await ann.take('named');
    assertInvalid(await server.post(`${pathOf('named')}/release`, { session: ann.id }), 'owner');
    assertInvalid(await server.post(`${pathOf('named')}/release`, { session: ann.id, owner, fence: 0 }), 'fence');
    const set = (body) => server.put(`${pathOf('named')}/value`, { session: ann.id, ...body });
    assertInvalid(await set({ fence, value: 'v' }), 'owner');
    assertInvalid(await set({ owner, value: 'v' }), 'fence');
    assertInvalid(await set({ owner, fence }), 'value');
    assertInvalid(await set({ owner, fence, value: 7 }), 'value');
  });

  it('may name fences that no lock can have', async () => {
    const { owner } = await ann.take('huge');
    for (const fence of ['2305843009213693951', '2305843009213693952', '9223372036854775807']) {
      const body = (session) => `{"session":"${session}","owner":"${owner}","fence":${fence},"value":"v"}`;
      const release = (session) => server.post(`${pathOf('huge')}/release`, body(session).replace(',"value":"v"', ''));
      assertProblem(await release(ann.id), 409, 'stale_fence');
      assertProblem(await release(`ses_${'0'.repeat(10)}1${'0'.repeat(17)}`), 410, 'session_expired');
      assertProblem(await server.put(`${pathOf('huge')}/value`, body(ann.id)), 409, 'stale_fence');
    }
    assertInvalid(await server.post(`${pathOf('huge')}/release`, `{"session":"${ann.id}","owner":"${owner}","fence":9223372036854775808}`));
    assertOk(await ann.release('huge', owner));
  });

  it('have no Idempotency-Key: repeats are judged from the state', async () => {
    const headers = { 'Idempotency-Key': 'one-key-for-everything' };
    const first = assertOk(await server.post('/v1/locks/keyed', { session: ann.id, owner: 'a' }, headers));
    assertProblem(await server.post('/v1/locks/keyed', { session: ann.id, owner: 'b' }, headers), 409, 'lock_taken');
    const again = await server.post('/v1/locks/keyed', { session: ann.id, owner: 'a' }, headers);
    assert.equal(again.headers['idempotency-replayed'], undefined);
    assert.deepEqual(assertOk(again), first);
  });
});

describe('queries', () => {
  it('are checked', async () => {
    assertInvalid(await server.get('/v1/locks?limit=0'), 'limit');
    assertInvalid(await server.get('/v1/locks?limit=101'), 'limit');
    assertInvalid(await server.get('/v1/locks?waiting=1'), 'waiting');
    assertInvalid(await server.get('/v1/locks?stale='), 'stale');
    assertInvalid(await server.get('/v1/locks?prefix=%FF'), 'prefix');
    assertInvalid(await server.get('/v1/locks?cursor=a%2F%2Fb'), 'cursor');
    assertInvalid(await server.get('/v1/locks/x?stale=perhaps'), 'stale');
    assertInvalid(await server.get('/v1/locks/x?what=1'), 'what');
    assert.deepEqual(assertOk(await server.get(`/v1/locks?prefix=${'z'.repeat(2000)}`)).data, []);
  });

  it('a path has as many segments as the route', async () => {
    assertProblem(await server.get('/v1/locks/a/b'), 404, 'not_found');
    assertProblem(await server.get('/v1/locks/'), 404, 'not_found');
    assertProblem(await server.del(pathOf('x')), 405, 'method_not_allowed');
    assertProblem(await server.get('/v1/sessions'), 405, 'method_not_allowed');
  });
});

describe('options', () => {
  const refused = [
    [['--journal', 'mysql://x'], '--journal'], [['--journal', ''], '--journal'],
    [['--cell-timeout', '499ms'], '--cell-timeout'], [['--cell-timeout', '61s'], '--cell-timeout'], [['--cell-timeout', 'soon'], '--cell-timeout'],
    [['--sessions-max', '0'], '--sessions-max'], [['--sessions-max', '250001'], '--sessions-max'],
    [['--advertise', 'here'], '--advertise'], [['--advertise', 'http://host/path'], '--advertise'], [['--advertise', `http://${'h'.repeat(300)}`], '--advertise'],
    [['--advertise', 'http://user@host'], '--advertise'],
  ];
  for (const [args, name] of refused) {
    it(`${args.join(' ').slice(0, 40)} is refused`, async () => {
      const dir = tempDir();
      const { code, stderr } = await runServer(['--listen', '127.0.0.1:0', '--data', dir, ...args]);
      assert.equal(code, 64, stderr);
      assert.ok(stderr.includes(name), stderr);
      removeTempDir(dir);
    });
  }

  it('--advertise is how the server calls itself', async () => {
    const own = await start({ args: ['--advertise', 'https://locks.example.com:8443/', '--cell-timeout', '500ms'] });
    assert.deepEqual(assertOk(await own.get('/v1/cell')).master, { url: 'https://locks.example.com:8443' });
    await own.stop();
  });

  it('--journal names another file, which one server uses', async () => {
    const own = await start();
    const { code, stderr } = await runServer(['--listen', '127.0.0.1:0', '--data', tempDir(), '--journal', `sqlite:${own.dir}/locks.db`]);
    assert.notEqual(code, 0);
    assert.match(stderr, /journal|lock service/);
    await own.stop();
  });

  it('--journal may name a server that does not answer: everything but locks works, and no log line has the password', async () => {
    const own = await start({ env: { HOLDFAST_JOURNAL: 'postgres://me:geheim@127.0.0.1:1/x', HOLDFAST_LOG_LEVEL: 'debug' } });
    const event = await own.createEvent();
    await own.grant(event, 'S-A-1');
    const refusal = await own.post('/v1/sessions', { ttl_ms: 1000 });
    assertProblem(refusal, 503, 'no_master');
    assert.ok(refusal.headers['retry-after']);
    assertProblem(await own.get('/v1/locks/x/stream'), 503, 'no_master');
    const cell = assertOk(await own.get('/v1/cell'));
    assert.deepEqual([cell.master, cell.epoch, cell.journal, cell.journal_answers], [null, 0, 'postgres', false]);
    await until('it is said', async () => assertOk(await own.get('/readyz')).degraded?.includes('journal'));
    assertOk(await own.get('/v1/locks/x?stale=true'));
    await own.stop();
    assert.match(own.logs, /journal=postgres:\/\/\.\.\.@127\.0\.0\.1:1\/x /);
    assert.doesNotMatch(own.logs, /geheim/);
  });

  it('a shared journal on a wildcard address needs --advertise', async () => {
    const args = ['--listen', '0.0.0.0:0', '--journal', 'etcd://127.0.0.1:1', '--data', tempDir()];
    const { code, stderr } = await runServer(args, { env: { HOLDFAST_ADMIN_KEY: 'admin-key-0123456789' } });
    assert.equal(code, 64, stderr);
    assert.match(stderr, /--advertise/);
  });

  it('--journal off leaves no locks and no file', async () => {
    const own = await start({ args: ['--journal', 'off'] });
    assertProblem(await own.get('/v1/cell'), 404, 'not_found');
    assertProblem(await own.post('/v1/sessions', { ttl_ms: 1000 }), 404, 'not_found');
    assert.ok(!fs.existsSync(`${own.dir}/locks.db`));
    assert.deepEqual(assertOk(await own.get('/readyz')), { status: 'ready' });
    await own.stop();
  });
});

describe('many', () => {
  const N = Number(process.env.HF_LOCKS ?? 5000);
  const rssMb = (own) => Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${own.pid}/status`, 'utf8'))[1]) / 1024;

  it(`${N} sessions and ${N} names cost a bounded amount of memory, and are all found again`, async () => {
    const own = await start({ env: RETURNS_MEMORY });
    const agent = new http.Agent({ keepAlive: true, timeout: IDLE_MS, maxSockets: 64 });
    const before_ = rssMb(own);
    const fences = new Set();
    await pool(Array.from({ length: N }, (_, i) => i), 64, async (i) => {
      const party = await Party.open(own, { label: `client-${i}` });
      party.agent = agent;
      fences.add((await party.take(`many/${i % 100}/${i}`, { value: `at ${i}` })).fence);
    });
    assert.equal(fences.size, N);
    assert.ok(rssMb(own) - before_ < 100 + N * 0.02, `${rssMb(own) - before_} MB for ${N}`);
    const cell = assertOk(await own.get('/v1/cell'));
    assert.deepEqual([cell.sessions, cell.names, cell.held], [N, N, N]);
    let n = 0;
    for (let cursor = ''; cursor !== null;) {
      const page = assertOk(await own.get(`/v1/locks?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`));
      n += page.data.length;
      cursor = page.next_cursor;
    }
    assert.equal(n, N);
    agent.destroy();
    await own.stop();
  });
});
