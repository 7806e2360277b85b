// A coordinator that goes away and comes back: waiters keep waiting, holders keep a lock that it stored and lose one that it
// forgot.
// backends: own
// time limit: 360 s

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  begin, beginRun, json, lock, renewed, run, sleep, until,
} from '../support/cli.mjs';
import { startEtcd } from '../support/etcd.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { startRedis } from '../support/redis.mjs';
import { assertTook, reap } from '../support/server.mjs';
import { startZookeeper } from '../support/zookeeper.mjs';

after(reap);

const TIMEOUT = '10s'; // a coordinator that answers later is out of reach, and a busy machine must not look like that
const count = (text, pattern) => [...text.matchAll(pattern)].length;
const back = /the coordinator answers again\n/g;
const RUN = ['run', ['run', 'ride', '--', 'echo', 'ran']];
const ALL = [RUN, ['lock get', ['lock', 'get', 'ride']], ['elect', ['elect', 'ride', '--', 'sh', '-c', 'echo ran; sleep 20']]];

// Coordinators that store their leases: how to start one, what a waiter says of it while it is away, and what is tried on it.
const kinds = {
  redis: {
    start: () => startRedis('--appendonly', 'yes', '--appendfsync', 'always'),
    url: ({ url }) => url,
    out: /the coordinator is out of reach, waiting for it: Redis at 127\.0\.0\.1 port \d+: Connection refused\n/g,
    commands: ALL,
  },
  postgres: {
    start: () => startPostgres(),
    url: (postgres) => postgres.url(),
    out: /the coordinator is out of reach, waiting for it: [^\n]+\n/g,
    commands: [RUN],
  },
  etcd: {
    start: () => startEtcd(),
    url: ({ url }) => url,
    out: /the coordinator is out of reach, waiting for it: etcd[^\n]+\n/g,
    commands: [RUN],
  },
  zookeeper: {
    start: () => startZookeeper(),
    url: ({ url }) => url,
    out: /the coordinator is out of reach, waiting for it: ZooKeeper[^\n]+\n/g,
    commands: [RUN],
  },
};

for (const [kind, row] of Object.entries(kinds)) {
  describe(`a waiter, on ${kind}`, () => {
    let server, url;
    before(async () => { server = await row.start(); url = row.url(server); });
    after(() => server.stop());
    const waits = () => until('it waits', async () => (await json(url, ['lock', 'show', 'ride'])).waiters.length === 1);

    for (const [what, args] of row.commands) {
      it(`rides out an outage, and says so once: ${what}`, async () => {
        // A ZooKeeper that is starting may drop what its client asks, which then waits for two thirds of the TTL.
        const holder = await beginRun(url, ['--ttl', '3m', 'ride'], 'read line', { input: null });
        const [command, ...rest] = args;
        const waiter = begin(url, [command, '--timeout', TIMEOUT, ...rest]);
        await waits();
        await server.stop();
        await until('it notices', () => waiter.stderr.includes('out of reach'));
        await sleep(700); // it asks again, several times
        await server.start();
        await until('it says that the outage is over', () => waiter.stderr.includes('answers again'));
        await waits();
        assert.equal(waiter.ended, null, waiter.stderr);
        holder.child.stdin.end('\n');
        assert.equal((await holder.result).code, 0);
        await until('it has the lock', () => waiter.stdout !== '');
        if (what === 'elect') waiter.child.kill('SIGTERM');
        const { code, stderr, stdout } = await waiter.result;
        assert.equal(code, what === 'elect' ? 143 : 0, stderr);
        assert.equal(count(stderr, row.out), 1, stderr);
        assert.equal(count(stderr, back), 1, stderr);
        if (what === 'lock get') await lock(url, ['release', 'ride', '--owner', stdout.split(' ')[0]]);
      });
    }
  });
}

describe('a waiter whose time or patience ends', () => {
  let redis;
  before(async () => { redis = await kinds.redis.start(); });
  after(() => redis.stop());

  it('exits with 69 if its wait ends in an outage, and with 128+n after a signal', async () => {
    const { owner } = await json(redis.url, ['lock', 'get', 'end', '--ttl', '10m']);
    const patient = begin(redis.url, ['run', '--timeout', TIMEOUT, 'end', '--', 'true']);
    await until('one waits', async () => (await json(redis.url, ['lock', 'show', 'end'])).waiters.length === 1);
    const waiter = begin(redis.url, ['run', '--timeout', TIMEOUT, '--wait', '15s', 'end', '--', 'true']);
    await until('both wait', async () => (await json(redis.url, ['lock', 'show', 'end'])).waiters.length === 2);
    await redis.stop();
    const { code, ms, stderr } = await waiter.result;
    assert.equal(code, 69, stderr);
    assert.ok(ms >= 15_000, `${ms}`);
    assertTook(ms, 35_000, 'the wait');
    assert.match(stderr, /Connection refused/);
    assert.equal(patient.ended, null);
    patient.child.kill('SIGTERM');
    const began = performance.now();
    assert.equal((await patient.result).code, 143);
    assertTook(performance.now() - began, 15_000, 'the end after a signal');
    await redis.start();
    assert.equal((await lock(redis.url, ['release', 'end', '--owner', owner])).code, 0);
  });

  it('with --retry counts a try that finds the coordinator out of reach', async () => {
    const { owner } = await json(redis.url, ['lock', 'get', 'retry', '--ttl', '10m']);
    const retry = (n) => begin(redis.url, ['run', '--timeout', TIMEOUT, '--retry', `${n}`, '--retry-delay', '200ms', 'retry', '--', 'true']);
    const clients = () => redis.cli('CLIENT', 'LIST').split('\n').length;
    const asked = () => [...redis.cli('INFO', 'commandstats').matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
    const before = asked();
    const many = retry(500);
    await until('the first has asked twice', () => asked() >= before + 2);
    const connected = clients();
    const few = retry(75);
    await until('the second has connected', () => clients() > connected);
    const then = asked();
    await until('both have asked', () => asked() >= then + 4);
    await redis.stop();
    const { code, ms } = await few.result;
    assert.equal(code, 69);
    assert.ok(ms >= 15_000, `${ms}`);
    assertTook(ms, 60_000, 'all tries');
    await redis.start();
    assert.equal((await lock(redis.url, ['release', 'retry', '--owner', owner])).code, 0);
    assert.equal((await many.result).code, 0);
  });

  it('fails at once on a wrong address, however long it would wait', async () => {
    await redis.stop();
    for (const args of [['x'], ['--wait', '1h', 'x'], ['--retry', '1000', 'x']]) {
      const { code, ms } = await run(redis.url, [...args, '--', 'true']);
      assert.equal(code, 69);
      assertTook(ms, 20_000, 'the failure');
    }
    await redis.start();
  });
});

describe('a holder', () => {
  const fenceOf = async (where, name) => {
    const { code, stdout, stderr } = await run(where, [name, '--', 'sh', '-c', 'echo $HOLDFAST_FENCE']);
    assert.equal(code, 0, stderr);
    return Number(stdout);
  };

  it('keeps its lock through a restart of a server that stores it', async () => {
    const redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
    const wrapper = await beginRun(redis.url, ['--timeout', '20s', 'kept'], 'read line; exit 6', { input: null });
    await redis.stop();
    await sleep(700);
    await redis.start();
    await renewed(redis.url, 'kept');
    assert.equal((await run(redis.url, ['-n', 'kept', '--', 'true'])).code, 75);
    wrapper.child.stdin.end('\n');
    assert.equal((await wrapper.result).code, 6);
    await redis.stop();
  });

  for (const [what, forget] of [['FLUSHALL', (redis) => redis.cli('FLUSHALL')],
    ['a restart without persistence', async (redis) => { await redis.stop(); await redis.start(); }]]) {
    it(`learns of ${what}: the command is ended, 76, and the next fence is larger`, async () => {
      const redis = await startRedis();
      const wrapper = await beginRun(redis.url, ['--ttl', '18s', '--timeout', '10s', 'lost'], 'echo $HOLDFAST_FENCE; exec sleep 60');
      const fence = Number((await until('its fence', () => wrapper.stdout.match(/\n(\d+)\n/)))[1]);
      await forget(redis);
      const forgotten = performance.now();
      const { code, stderr } = await wrapper.result;
      assert.equal(code, 76, stderr);
      assertTook(performance.now() - forgotten, 18_000, 'the loss, which is noticed before the lease would have ended,');
      assert.match(stderr, /the lock on lost is lost; ending the command/);
      assert.ok(await fenceOf(redis.url, 'lost') > fence);
      await redis.stop();
    });
  }
});
