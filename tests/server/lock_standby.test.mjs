// Two servers of one cell over PostgreSQL: what a standby answers, and how the mastership changes hands on purpose.
// backends: own

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Document } from '../support/openapi.mjs';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { labels, Party, pathOf, waiting } from '../support/locks.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { keepToTheEnd, reap, Server, until } from '../support/server.mjs';

const SLOW_MS = 60_000;
const document = await Document.load();
const urlOf = ({ host, port }) => `http://${host}:${port}`;

let url;
before(async () => {
  const postgres = await startPostgres();
  keepToTheEnd(postgres.run);
  url = postgres.url(postgres.createDatabase());
});
after(reap);

// A master that stands still on a busy machine is not replaced for that.
const launch = async (env = {}) => {
  const server = new Server({ ledger: url, args: ['--cell-timeout', '10s'], env: { HOLDFAST_JOURNAL: url, HOLDFAST_JOURNAL_MAY_LOSE: '1', ...env } });
  await server.launch();
  return server;
};
const cellOf = async (server) => assertOk(await server.get('/v1/cell'));
const leads = async (server) => (await cellOf(server)).master?.url === urlOf(server) && (await cellOf(server)).role === 'master';

describe('a ledger that servers share', () => {
  it('has no locks until a journal is named', async () => {
    const server = new Server({ ledger: url });
    await server.launch();
    assertProblem(await server.get('/v1/cell'), 404, 'not_found');
    await server.stop();
    assert.match(server.logs, /the lock service is off/);
  });

  it('has none either if the journal may lose what it acknowledged, unless that is allowed', async () => {
    const server = new Server({ ledger: url, env: { HOLDFAST_JOURNAL: url } });
    await assert.rejects(server.launch(), /journal-may-lose/);
  });
});

describe('a standby', () => {
  let master;
  let standby;
  let ann;
  before(async () => {
    master = await launch();
    await until('there is a master', () => leads(master), SLOW_MS);
    standby = await launch();
    ann = await Party.open(master, { label: 'ann' });
    await ann.take('held/a b', { owner: 'a' });
    await until('it follows', async () => (await cellOf(standby)).master?.url === urlOf(master), SLOW_MS);
  });
  after(async () => { await standby?.stop(); await master?.stop(); });

  it('sends every request to the same path of the master', async () => {
    const session = { session: ann.id };
    const requests = [
      ['openSession', 'POST', '/v1/sessions', { ttl_ms: 1000 }], ['openSession', 'POST', '/v1/sessions', 'nonsense'],
      ['keepSessionAlive', 'POST', `/v1/sessions/${ann.id}/keepalive`], ['closeSession', 'DELETE', `/v1/sessions/${ann.id}`],
      ['streamSession', 'GET', `/v1/sessions/${ann.id}/stream?after=7`],
      ['acquireLock', 'POST', pathOf('held/a b'), session], ['acquireLock', 'POST', pathOf('ü%2F+?'), { ...session, wait_ms: 60_000 }],
      ['releaseLock', 'POST', `${pathOf('held/a b')}/release`, session], ['setLockValue', 'PUT', `${pathOf('x')}/value`, session],
      ['breakLock', 'POST', `${pathOf('x')}/break`], ['getLock', 'GET', `${pathOf('held/a b')}?stale=false`], ['streamLock', 'GET', `${pathOf('x')}/stream`],
      ['listLocks', 'GET', '/v1/locks?prefix=held%2Fa%20b&limit=7'], ['transferMastership', 'POST', '/v1/cell/transfer'],
    ];
    for (const [id, method, target, body] of requests) {
      const answer = await standby.request(method, target, body);
      assert.equal(answer.status, 307, `${method} ${target}: ${answer.text}`);
      assert.equal(answer.headers.location, urlOf(master) + target);
      document.check(id, answer);
    }
    assert.equal(requests.length - 2, [...document.operations.values()].filter(({ responses }) => responses['307']).length, 'all of them');
  });

  it('sends nobody to the name that a request made up', async () => {
    const keys = { HOLDFAST_ADMIN_KEY: 'admin-key-0123456789' };
    const keyed = await launch(keys);
    const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', Authorization: `Bearer ${keys.HOLDFAST_ADMIN_KEY}` };
    await until('it follows', async () => (await keyed.get('/v1/cell', headers)).json.master?.url === urlOf(master), SLOW_MS);
    for (const target of ['/v1/locks/a', 'http://evil.example/v1/locks/a']) {
      const answer = await keyed.get(target, headers);
      assert.equal(answer.status, 307, answer.text);
      assert.equal(answer.headers.location, `${urlOf(master)}/v1/locks/a`);
    }
    await keyed.stop();
  });

  it('answers stale reads itself, and shows the cell', async () => {
    await until('it has read everything', async () => {
      const { holders } = assertOk(await standby.get(`${pathOf('held/a b')}?stale=true`));
      return labels(holders)[0] === 'ann' && holders[0].remaining_ms === null;
    }, SLOW_MS);
    assert.deepEqual(assertOk(await standby.get('/v1/locks?stale=true')).data.map(({ name }) => name), ['held/a b']);
    await until('each knows of the other', async () => {
      const seen = await Promise.all([master, standby].map(cellOf));
      return seen.every(({ servers }) => servers.length === 2 && servers.some((one) => one.url === urlOf(master) && one.role === 'master')
        && servers.some((one) => one.url === urlOf(standby) && one.role === 'standby'));
    }, SLOW_MS);
  });

  it('takes over when it is told to, and everybody keeps what they have', async () => {
    const ben = await Party.open(master, { label: 'ben' });
    const waits = ben.ask('held/a b', { owner: 'b', wait_ms: 60_000 });
    await waiting(master, 'held/a b', ['ben']);
    const before_ = (await cellOf(master)).epoch;
    const answer = await master.post('/v1/cell/transfer');
    document.check('transferMastership', answer);
    assertOk(answer);
    assert.ok([307, 503].includes((await waits).status), 'who waits is sent on');
    await until('the other leads', () => leads(standby), SLOW_MS);
    assert.ok((await cellOf(standby)).epoch > before_);
    ann.server = standby;
    ben.server = standby;
    assertOk(await ann.keepAlive());
    const again = ben.ask('held/a b', { owner: 'b', wait_ms: 60_000 });
    await waiting(standby, 'held/a b', ['ben']);
    assertOk(await ann.release('held/a b', 'a'));
    assertOk(await again);
    [master, standby] = [standby, master];
    await until('the old master follows', async () => (await standby.get('/v1/locks/x')).headers.location === `${urlOf(master)}/v1/locks/x`, SLOW_MS);
  });

  it('takes over at once from a master that is stopped', async () => {
    const cat = await Party.open(master, { label: 'cat' });
    const { fence } = await cat.take('kept', { owner: 'c' });
    await master.stop();
    master = null;
    await until('the standby leads', () => leads(standby), SLOW_MS);
    cat.server = standby;
    assert.equal((await cat.take('kept', { owner: 'c' })).fence, fence);
    assertOk(await cat.keepAlive());
    await until('the other is forgotten', async () => (await cellOf(standby)).servers.length === 1, SLOW_MS);
    assertProblem(await standby.post('/v1/cell/transfer'), 409, 'no_standby');
  });
});
