// `holdfast lock`, `drivers` and `fence`: locks for scripts and for operators.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { begin, holdfast, json, lock as lockOn, PATIENCE, run, sqliteLocks, until } from '../support/cli.mjs';
import { startRedis } from '../support/redis.mjs';
import { HOLDFAST, reap, sqliteQuery } from '../support/server.mjs';

const locks = sqliteLocks();
let redis;
before(async () => { redis = await startRedis(); });
after(async () => { await redis.stop(); });
after(reap);

for (const kind of ['sqlite', 'redis']) {
  describe(`a lease of a script, on ${kind}`, () => {
    const url = () => (kind === 'sqlite' ? locks.url : redis.url);
    const lock = (...args) => lockOn(url(), args);

    it('is got, renewed and released by three processes that share a token', async () => {
      const got = await lock('get', 'script', '--ttl', '60s');
      assert.equal(got.code, 0, got.stderr);
      const [, owner, fence] = got.stdout.match(/^([0-9a-f]{32}) (\d+)\n$/);
      assert.equal((await lock('get', '-n', 'script')).code, 75);
      assert.equal((await lock('get', '-n', '-E', '3', 'script')).code, 3);
      assert.equal((await run(url(), ['-n', 'script', '--', 'true'])).code, 75);
      const renewed = await json(url(), ['lock', 'renew', 'script', '--owner', owner, '--ttl', '120s']);
      assert.equal(renewed.fence, Number(fence));
      assert.ok(renewed.expires_in_ms > 60_000 && renewed.expires_in_ms <= 120_000);
      assert.equal((await lock('release', 'script', '--owner', owner)).code, 0);
      assert.equal((await lock('release', 'script', '--owner', owner)).code, 76);
      assert.equal((await lock('renew', 'script', '--owner', owner)).code, 76);
    });

    it('ends the script of the manual page if it cannot be got', async () => {
      const manual = fs.readFileSync(new URL('../../docs/man/holdfast.1', import.meta.url), 'utf8');
      const [, example] = manual.match(/^A lock around several commands[^]*?\.Bd[^\n]*\n([^]*?)\.Ed$/m);
      const patient = example.replaceAll(/holdfast lock \w+/g, `$& ${PATIENCE.join(' ')}`);
      const wrap = () => ['sh', '-c', `PATH=${path.dirname(HOLDFAST)}:$PATH\n${patient}echo "deploys as $owner with $fence"`];
      const free = await holdfast(url(), [], { wrap });
      assert.match(free.stdout, /^deploys as [0-9a-f]{32} with \d+\n$/, free.stderr);
      assert.equal((await run(url(), ['-n', 'deploy', '--', 'true'])).code, 0); // it was released
      const unreachable = await holdfast('redis://127.0.0.1:1', [], { wrap });
      assert.deepEqual([unreachable.code, unreachable.stdout], [69, '']);
    });

    it('cannot be renewed or released by another owner', async () => {
      const { owner } = await json(url(), ['lock', 'get', 'mine', '--ttl', '5m']);
      const other = owner.replace(/^./, (c) => (c === '0' ? '1' : '0'));
      assert.equal((await lock('release', 'mine', '--owner', other)).code, 76);
      assert.equal((await lock('renew', 'mine', '--owner', other)).code, 76);
      assert.equal((await lock('get', '-n', 'mine')).code, 75);
      assert.equal((await lock('release', 'mine', '--owner', owner)).code, 0);
    });

    it('expires by itself, and the next fence is larger', async () => {
      const first = await json(url(), ['lock', 'get', 'short', '--ttl', '300ms']);
      assert.ok(first.expires_in_ms <= 300);
      const second = await json(url(), ['lock', 'get', 'short', '--wait', '60s']);
      assert.ok(second.fence > first.fence);
      assert.equal((await lock('renew', 'short', '--owner', first.owner)).code, 76);
      assert.equal((await lock('release', 'short', '--owner', second.owner)).code, 0);
    });

    it('leaves no place in the queue if the wait is interrupted', async () => {
      const { owner } = await json(url(), ['lock', 'get', 'patience', '--ttl', '5m']);
      const waiter = begin(url(), ['lock', 'get', 'patience', '--timeout', '60s']);
      const waiting = async () => (await json(url(), ['lock', 'show', 'patience'])).waiters.length;
      await until('it waits', async () => await waiting() === 1);
      waiter.child.kill('SIGINT');
      const { code, stdout } = await waiter.result;
      assert.deepEqual([code, stdout], [130, '']);
      assert.equal(await waiting(), 0);
      assert.equal((await lock('release', 'patience', '--owner', owner)).code, 0);
    });

    it('is released, with a message, if its token cannot be written', async () => {
      const { code, stderr } = await lockOn(url(), ['get', 'unread'],
        { wrap: (argv) => ['sh', '-c', 'exec "$@" >/dev/full', 'sh', ...argv] });
      assert.equal(code, 69);
      assert.match(stderr, /^holdfast lock: cannot write to standard output: No space left on device\n$/);
      assert.deepEqual((await json(url(), ['lock', 'show', 'unread'])).holders, []);
    });

    it('shows the last fence of a lock that is free', async () => {
      const { owner, fence } = await json(url(), ['lock', 'get', 'was/held']);
      assert.equal((await lock('release', 'was/held', '--owner', owner)).code, 0);
      const later = await json(url(), ['lock', 'get', 'later']);
      assert.ok(later.fence > 0);
      assert.equal((await lock('show', 'was/held')).stdout, `was/held: free, 0 waiting, last fence ${fence}\n`);
      assert.equal((await json(url(), ['lock', 'show', 'was/held'])).last_fence, fence);
      assert.equal((await lock('release', 'later', '--owner', later.owner)).code, 0);
      assert.equal((await lock('show', 'never/held')).stdout, 'never/held: free, 0 waiting, last fence 0\n');
    });

    it('is listed and shown, with its waiters', async () => {
      const held = await json(url(), ['lock', 'get', 'show/one', '--label', 'me']);
      const waiter = begin(url(), ['lock', 'get', 'show/one', '--json', '--timeout', '60s']);
      const shown = await until('it waits', async () => {
        const state = await json(url(), ['lock', 'show', 'show/one']);
        return state.waiters.length === 1 && state;
      });
      assert.equal(shown.name, 'show/one');
      assert.equal(shown.last_fence, held.fence);
      const [holder] = shown.holders;
      assert.deepEqual([holder.owner, holder.label, holder.mode, holder.fence], [held.owner, 'me', 'exclusive', held.fence]);
      assert.ok(holder.expires_in_ms > 0 && holder.expires_in_ms <= 30_000);
      await json(url(), ['lock', 'get', 'show/two', '--shared', '--ttl', '5m']);
      assert.equal((await lock('ls', 'show/')).stdout, 'show/one\nshow/two\n');
      assert.deepEqual((await json(url(), ['lock', 'ls', 'show/'])).map(({ name }) => name), ['show/one', 'show/two']);
      assert.match((await lock('show', 'show/two')).stdout, /^show\/two: held, 0 waiting.*\n {2}holder [0-9a-f]{32} shared fence \d+/);
      assert.equal((await lock('break', 'show/one')).code, 0);
      const next = await waiter.result;
      assert.equal(next.code, 0);
      assert.ok(JSON.parse(next.stdout).fence > held.fence);
      assert.equal((await lock('release', 'show/one', '--owner', held.owner)).code, 76);
      for (const name of ['show/one', 'show/two']) await lock('break', name);
      assert.equal((await lock('ls', 'show/')).stdout, '');
      assert.match((await lock('show', 'never/held')).stdout, /^never\/held: free, 0 waiting/);
    });
  });
}

describe('usage of `holdfast lock`', () => {
  for (const [what, args] of Object.entries({
    'no verb': [], 'an unknown verb': ['steal', 'x'], 'no name': ['get'], 'two names': ['get', 'x', 'y'],
    'no owner': ['release', 'x'], 'an owner too much': ['show', 'x', '--owner', 'a'],
    'an owner that is none': ['renew', 'x', '--owner', 'nonsense'],
    'an owner in capitals': ['renew', 'x', '--owner', 'A'.repeat(32)],
    'an unknown option': ['get', 'x', '--frobnicate'],
  })) {
    it(`${what}: 64`, async () => {
      const { code, stderr, stdout } = await holdfast(locks.url, ['lock', ...args]);
      assert.equal(code, 64, stderr);
      assert.notEqual(stderr, '');
      assert.equal(stdout, '');
    });
  }
});

describe('holdfast drivers', () => {
  it('prints what each can do, as text and as JSON', async () => {
    const drivers = await json(undefined, ['drivers']);
    const names = drivers.map(({ name }) => name);
    for (const name of ['memory', 'sqlite', 'redis']) assert.ok(names.includes(name), name);
    const byName = Object.fromEntries(drivers.map((driver) => [driver.name, driver]));
    assert.deepEqual([byName.memory.fence, byName.sqlite.fence, byName.redis.fence], ['counter', 'durable', 'server-clock']);
    assert.deepEqual([byName.memory.processes, byName.sqlite.processes], [false, true]);
    assert.deepEqual([byName.memory.outlives, byName.redis.outlives], [false, true]);
    for (const { ttl_min_ms: least, ttl_max_ms: most, survives, ttl } of drivers) {
      assert.ok(least > 0 && most > least && survives && ttl);
    }
    const { stdout } = await holdfast(undefined, ['drivers']);
    for (const name of names) assert.match(stdout, new RegExp(`^${name}$`, 'm'));
    assert.equal((await holdfast(undefined, ['drivers', 'redis'])).code, 64);
  });
});

describe('holdfast fence check', () => {
  const path = locks.file('fences.db');
  const check = (args, env) => holdfast(undefined, ['fence', 'check', '--sqlite', path, ...args], { env });

  it('accepts the largest token and its equal, and refuses a smaller one with 76', async () => {
    assert.equal((await check(['report', '5'])).code, 0);
    assert.equal((await check(['report', '5'])).code, 0);
    assert.equal((await check(['report', '7'])).code, 0);
    const { code, stderr } = await check(['report', '6']);
    assert.equal(code, 76);
    assert.match(stderr, /stale/);
    assert.equal((await check(['other', '1'])).code, 0);
    assert.equal((await check(['report', '9223372036854775807'])).code, 0);
    assert.deepEqual(sqliteQuery(path, 'SELECT count(*) AS n FROM holdfast_fences'), [{ n: 2 }]);
  });

  it('takes the token from the environment, and prints JSON', async () => {
    const env = { HOLDFAST_FENCE: '12' };
    assert.deepEqual(JSON.parse((await check(['--json', 'nightly'], env)).stdout), { resource: 'nightly', token: 12, passed: true });
    const refused = await check(['--json', 'nightly', '11'], env);
    assert.equal(refused.code, 76);
    assert.equal(JSON.parse(refused.stdout).passed, false);
  });

  it('exits with 64 for wrong usage and with 69 for a database it cannot use', async () => {
    for (const args of [[], ['report'], ['report', ''], ['report', '0'], ['report', '-1'], ['report', '1x'], ['', '1'],
      ['report', '99999999999999999999'], ['r'.repeat(256), '1']]) {
      assert.equal((await check(args, { HOLDFAST_FENCE: '' })).code, 64, JSON.stringify(args));
    }
    assert.equal((await holdfast(undefined, ['fence', 'check', 'report', '1'])).code, 64);
    const { code, stderr } = await holdfast(undefined, ['fence', 'check', '--sqlite', '/no/such/dir/f.db', 'report', '1']);
    assert.equal(code, 69);
    assert.match(stderr, /unable to open/);
  });
});
