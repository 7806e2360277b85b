// `make cell` as a user sees it: a lock service of three servers on etcd, or on PostgreSQL, which survives the loss of its
// master and leaves nothing behind.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { holdfast, run as runLocked } from '../support/cli.mjs';
import { descendants, freePorts } from '../support/parts.mjs';
import { environment, HOLDFAST, HOLDFASTD, isGone, launch, reap, Remote, tempDir, until } from '../support/server.mjs';

const script = fileURLToPath(new URL('../../scripts/cell', import.meta.url));

const CELL_TIMEOUT = '5s'; // a master that stands still on a busy machine is not replaced for that

async function begin(env = {}, ports = undefined) {
  ports ??= await freePorts(9);
  const cell = launch(script, [], {
    env: environment({ CELL_DIR: tempDir(), CELL_SERVER_PORT: `${ports}`, CELL_ETCD_PORT: `${ports + 3}`, CELL_RESTART_S: '1', HOLDFAST_CELL_TIMEOUT: CELL_TIMEOUT, HOLDFASTD, HOLDFAST, ...env }, false),
    endSignal: 'SIGTERM',
  });
  cell.ports = [0, 1, 2].map((n) => ports + n);
  cell.servers = cell.ports.map((port) => new Remote({ host: '127.0.0.1', port }));
  cell.dir = () => /data and logs in (.*)\)/.exec(cell.stdout)[1];
  return cell;
}

async function up(env, ports) {
  const cell = await begin(env, ports);
  await until('the banner', () => /Ctrl-C/.test(cell.stdout) || cell.ended);
  assert.equal(cell.ended, null, cell.stderr);
  return cell;
}

// The fences of those who hold the lock `kept`.
const masterOf = async (cell, n) => (await cell.servers[n].get('/v1/cell').catch(() => null))?.json?.master?.url;

// Asks the master, as server n knows it, until one answers: it may be replaced if the machine stands still.  Resolves to
// its URL and what `ask` resolves to.
const atMaster = (cell, n, ask) => until('a master answers', async () => {
  const url = await masterOf(cell, n);
  const answer = url && await ask(new Remote(hostOf(url))).catch(() => null);
  return answer?.status < 300 && { url, ...answer };
});
const holders = async (cell, n) => (await atMaster(cell, n, (master) => master.get('/v1/locks/kept'))).json.holders.map(({ fence }) => fence);

describe('a cell on one machine', () => {
  let cell;
  let fence;
  after(async () => { cell?.child.kill('SIGTERM'); await cell?.done; await reap(); });

  it('keeps its locks when the master is killed by the pid that the banner prints, and has the server back', async () => {
    cell = await up();
    const { json: session } = await atMaster(cell, 0, (master) => master.post('/v1/sessions', { ttl_ms: 600_000 }));
    const { url, json: lock } = await atMaster(cell, 0, (master) => master.post('/v1/locks/kept', { session: session.id, owner: 'a' }));
    fence = lock.fence;
    const pid = Number(new RegExp(`${url} +pid (\\d+)`).exec(cell.stdout)[1]);
    const n = cell.ports.findIndex((port) => url.endsWith(`:${port}`));
    const other = (n + 1) % 3;
    process.kill(pid, 'SIGKILL');
    await until('another leads', async () => {
      const now = await masterOf(cell, other);
      return now && now !== url;
    });
    assert.deepEqual(await holders(cell, other), [fence]);
    await until('the killed server is back', async () => await masterOf(cell, n) !== undefined);
  });

  it('says in words which port is taken, and which program is missing', async () => {
    const taken = await begin({ CELL_SERVER_PORT: `${cell.ports[0]}` });
    assert.equal((await taken.done).code, 1);
    assert.match(taken.stderr, new RegExp(`^cell: port ${cell.ports[0]} is taken; choose others with CELL_SERVER_PORT`));
    const missing = await begin({ HOLDFASTD: '/nowhere/holdfastd' });
    assert.equal((await missing.done).code, 1);
    assert.match(missing.stderr, /^cell: \/nowhere\/holdfastd is missing/);
  });

  it('prints commands that work', async () => {
    const env = Object.fromEntries(/export (.*)$/m.exec(cell.stdout)[1].split(' ').map((setting) => setting.split(/=(.*)/s)));
    const { code, stdout, stderr } = await holdfast(undefined, ['cell', 'status'], { env });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^The master is http:\/\/127\.0\.0\.1:\d+ \(epoch \d+\)\. The journal is in etcd\.$/m);
    const run = await runLocked(env.HOLDFAST_LOCK_URL, ['nightly', '--', 'echo', 'I have the lock'], { env });
    assert.deepEqual([run.code, run.stdout], [0, 'I have the lock\n'], run.stderr);
  });

  it('a signal stops all of it, and the data are there the next time', async () => {
    const processes = descendants(cell.pid);
    assert.ok(processes.length >= 6, `${processes}`);
    cell.child.kill('SIGINT');
    assert.deepEqual(await cell.done, { code: 0, signal: null }, cell.stderr);
    assert.deepEqual(processes.filter((pid) => !isGone(pid)), []);
    assert.doesNotMatch(cell.stdout, /had to be killed/);
    assert.match(fs.readFileSync(path.join(cell.dir(), 'server1.log'), 'utf8'), /stopped/);

    cell = await up({ CELL_DIR: cell.dir() }, cell.ports[0]);
    assert.deepEqual(await holders(cell, 0), [fence]);
    cell.child.kill('SIGTERM');
    assert.deepEqual(await cell.done, { code: 0, signal: null }, cell.stderr);
  });

  it('runs on PostgreSQL with JOURNAL=postgres', async () => {
    cell = await up({ JOURNAL: 'postgres' });
    const status = await holdfast(undefined, ['cell', 'status'], { env: { HOLDFAST_SERVER: `http://127.0.0.1:${cell.ports[2]}` } });
    assert.equal(status.code, 0, status.stderr);
    assert.match(status.stdout, /The journal is in postgres\./);
    cell.child.kill('SIGTERM');
    assert.deepEqual(await cell.done, { code: 0, signal: null }, cell.stderr);
  });
});

function hostOf(url) {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}
