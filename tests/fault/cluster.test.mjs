// `make cluster` as a user sees it: one address in front of three servers on one ledger, which keeps working
// without any one of them and leaves nothing behind.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertOk } from '../support/expect.mjs';
import { descendants, freePorts } from '../support/parts.mjs';
import { book, pay, reached } from '../support/payments.mjs';
import { assertTook, environment, HOLDFAST, HOLDFASTD, isGone, launch, reap, Remote, tempDir, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const script = fileURLToPath(new URL('../../scripts/cluster', import.meta.url));

async function begin(env = {}) {
  const ports = await freePorts(6);
  const cluster = launch(script, [], {
    env: environment({ CLUSTER_DIR: tempDir(), CLUSTER_PORT: `${ports}`, CLUSTER_REDIS_PORT: `${ports + 1}`,
      CLUSTER_SERVER_PORT: `${ports + 2}`, CLUSTER_SANDBOX_PORT: `${ports + 5}`, CLUSTER_RESTART_S: '1', HOLDFASTD, HOLDFAST, ...env }, false),
    endSignal: 'SIGTERM',
  });
  // They share a ledger: a server that stands still amid a batch keeps the others from writing.
  const at = (port) => Object.assign(new Remote({ host: '127.0.0.1', port }), { isPatient: true });
  cluster.front = at(ports);
  cluster.servers = [2, 3, 4].map((offset) => at(ports + offset));
  return cluster;
}

async function up(env) {
  const cluster = await begin(env);
  await until('the banner', () => /Ctrl-C/.test(cluster.stdout) || cluster.ended);
  assert.equal(cluster.ended, null, cluster.stderr);
  return cluster;
}

const pidOf = (cluster, n) => Number(new RegExp(`server ${n} .* pid (\\d+)`).exec(cluster.stdout)[1]);

describe('a cluster on one machine', () => {
  let cluster;
  let event;
  before(async () => {
    cluster = await up();
    [event] = (await cluster.front.read('/v1/events')).data;
  });
  after(async () => { cluster?.child.kill('SIGTERM'); await cluster?.done; await reap(); });

  it('has exactly one demo event, the same on every server', async () => {
    for (const server of [cluster.front, ...cluster.servers]) {
      const { data } = await server.read('/v1/events');
      assert.deepEqual(data.map(({ id }) => id), [event.id]);
    }
  });

  it('a hold made through the front is on every server\'s map and stream within a second', async () => {
    const streams = await Promise.all([cluster.front, ...cluster.servers]
      .map((at) => Stream.open(at, event)));
    for (const stream of streams) assert.equal(stream.status, 200, stream.text);
    const [first, second] = ['Stalls-A-1', 'Stalls-A-2'];
    const before = await cluster.front.counts(event);
    const hold = await cluster.front.grant(event, [first, second]);
    const began = performance.now();
    for (const server of cluster.servers) await until('its map has the hold', async () => (await server.map(event))[first] === 'h');
    for (const stream of streams) assert.ok(await stream.find(({ data }) => data.changes.some(([seat, to]) => seat === second && to === 'h')));
    assertTook(performance.now() - began, 1000, 'the way to every map and stream');
    await until('they are counted', async () => (await cluster.front.counts(event)).held === before.held + 2);
    for (const server of cluster.servers) assert.equal((await server.hold(event, first)).status, 409);
    assert.equal((await cluster.front.del(`/v1/holds/${hold.id}`)).status, 204);
    await until('they are not counted any more', async () => (await cluster.front.counts(event)).held === before.held);
    for (const stream of streams) stream.close();
  });

  it('a booking is paid whichever server made it, and by a page of any of them', async () => {
    const apis = new Set();
    for (const [i, at] of cluster.servers.entries()) {
      const other = cluster.servers[(i + 1) % 3];
      const booking = await book(at, await other.grant(event, `Stalls-C-${i + 1}`));
      apis.add(booking.payment.api);
      const page = await other.get(`/e/${event.id}`);
      assert.match(page.headers['content-security-policy'], new RegExp(`connect-src [^;]*${booking.payment.api.replaceAll('.', '\\.')}[ ;]`));
      await pay(booking);
      await reached(cluster.front, booking, 'it is paid', ({ status }) => status === 'confirmed');
    }
    assert.equal(apis.size, 1);
    assert.doesNotMatch(fs.readFileSync(path.join(/data and logs in (.*)\)/.exec(cluster.stdout)[1], 'server1.log'), 'utf8'), /sandbox/);
  });

  it('goes on when a server is killed, and has it back', async () => {
    const victim = pidOf(cluster, 2);
    const kept = await cluster.servers[1].grant(event, 'Stalls-B-1');
    process.kill(victim, 'SIGKILL');
    await until('it is gone', () => isGone(victim));
    // The front may still have a kept connection to the dead server.  A request that meets it is not answered: the
    // front closes the client's connection, and the client asks again, once.
    let unanswered = 0;
    const ask = (request) => request().catch((error) => {
      if (error.code !== 'ECONNRESET' || ++unanswered > 1) throw error;
      return request();
    });
    for (let i = 1; i <= 30; i++) {
      const hold = await ask(() => cluster.front.grant(event, `Stalls-P-${i}`));
      assert.equal((await ask(() => cluster.front.del(`/v1/holds/${hold.id}`))).status, 204);
    }
    assert.equal((await cluster.front.read(`/v1/holds/${kept.id}`)).status, 'active');
    await until('it serves again', async () => (await cluster.servers[1].get('/readyz').catch(() => null))?.status === 200);
    assert.equal((await cluster.servers[1].read(`/v1/holds/${kept.id}`)).status, 'active');
  });

  it('no id of a hold is in any log', async () => {
    const hold = await cluster.front.grant(event, 'Stalls-D-1');
    assertOk(await cluster.front.get(`/v1/holds/${hold.id}`));
    const dir = /data and logs in (.*)\)/.exec(cluster.stdout)[1];
    for (const file of fs.readdirSync(dir).filter((name) => name.endsWith('.log'))) {
      assert.ok(!fs.readFileSync(path.join(dir, file), 'utf8').includes(hold.id.slice(5)), file);
    }
  });

  it('says in words which port is taken, and that another is running in the directory', async () => {
    const taken = await begin({ CLUSTER_PORT: `${cluster.front.port}` });
    assert.equal((await taken.done).code, 1);
    assert.match(taken.stderr, new RegExp(`port ${cluster.front.port} is taken`));
    const dir = /data and logs in (.*)\)/.exec(cluster.stdout)[1];
    const second = await begin({ CLUSTER_DIR: dir });
    assert.equal((await second.done).code, 1);
    assert.match(second.stderr, /another cluster is running/);
  });

  it('says in words what is missing', async () => {
    const missing = await begin({ HOLDFASTD: '/nowhere/holdfastd' });
    assert.equal((await missing.done).code, 1);
    assert.match(missing.stderr, /\/nowhere\/holdfastd is missing/);
    const bare = tempDir();
    for (const tool of ['bash', 'dirname', 'mkdir', 'id', 'sort', 'cat', 'env']) {
      fs.symlinkSync(execFileSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).trim(), path.join(bare, tool));
    }
    fs.mkdirSync(path.join(bare, 'scripts'));
    fs.copyFileSync(path.join(path.dirname(script), 'parts.sh'), path.join(bare, 'scripts/parts.sh'));
    const poor = launch('bash', ['-c', `sed 's|^PATH=.*|PATH=${bare}|' ${script} >${bare}/scripts/cluster; exec bash ${bare}/scripts/cluster`]);
    assert.equal((await poor.done).code, 1);
    assert.match(poor.stderr, /redis-server is missing; scripts\/install-packages/);
  });

  it('a signal stops all of it, in order, and the data are there the next time', async () => {
    const kept = await cluster.front.grant(event, 'Stalls-E-1');
    const dir = /data and logs in (.*)\)/.exec(cluster.stdout)[1];
    const processes = descendants(cluster.pid);
    assert.ok(processes.length >= 6, `${processes}`);
    cluster.child.kill('SIGINT');
    assert.deepEqual(await cluster.done, { code: 0, signal: null }, cluster.stderr);
    assert.deepEqual(processes.filter((pid) => !isGone(pid)), []);
    assert.doesNotMatch(cluster.stdout, /had to be killed/);
    assert.match(fs.readFileSync(path.join(dir, 'server1.log'), 'utf8'), /stopped/);
    assert.match(fs.readFileSync(path.join(dir, 'postgres.log'), 'utf8'), /database system is shut down\n$/);

    cluster = await up({ CLUSTER_DIR: dir });
    assert.deepEqual((await cluster.front.read('/v1/events')).data.map(({ id }) => id), [event.id]);
    assert.equal((await cluster.front.read(`/v1/holds/${kept.id}`)).status, 'active');
  });

  it('nothing is left even when the script itself is killed', async () => {
    const processes = descendants(cluster.pid);
    assert.ok(processes.length >= 6, `${processes}`);
    cluster.child.kill('SIGKILL');
    await cluster.done;
    await until('all are gone', () => processes.every(isGone));
  });
});
