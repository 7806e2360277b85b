// `holdfast run` with several names: all or none, the environment of the command, the loss of one of them; and locks inside
// locks, where a wait for oneself is refused.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import {
  begin, beginRun, holdfast, isGone, json, lock, PATIENCE, run, sqliteLocks, STEADY, STEADY_MS,
  until,
} from '../support/cli.mjs';
import { assertTook, HOLDFAST, parseMetrics, reap, Server } from '../support/server.mjs';

const locks = sqliteLocks();
const { url } = locks;
const sh = (script) => ['--', 'sh', '-c', script];
const HF = { HF: HOLDFAST };
// A script whose commands wait for a coordinator that stands still.
const patient = (script) => script.replaceAll(/\$HF (run|elect|lock \w+)/g, `$& ${PATIENCE.join(' ')}`);
const free = async (name) => (await json(url, ['lock', 'show', name])).holders.length === 0;

after(reap);

describe('a set of locks', { concurrency: 2 }, () => {
  it('is taken whole, whatever the order of its names, and given back', async () => {
    const holder = await beginRun(url, ['set/b', 'set/a', 'set/c'], 'read line', { input: null });
    for (const name of ['set/a', 'set/b', 'set/c']) assert.equal((await run(url, ['-n', name, '--', 'true'])).code, 75);
    holder.child.stdin.end('\n');
    assert.equal((await holder.result).code, 0);
    assert.equal((await run(url, ['-n', 'set/c', 'set/a', '--', 'true'])).code, 0);
  });

  it('is not taken at all if one of them is held', async () => {
    const holder = await beginRun(url, ['--label', 'ann', 'none/b'], 'read line', { input: null });
    const refused = await run(url, ['-n', 'none/c', 'none/b', 'none/a', ...sh('echo ran')]);
    assert.deepEqual([refused.code, refused.stdout], [75, '']);
    assert.match(refused.stderr, /^holdfast run: none\/b is held by "ann"/);
    const waited = await run(url, ['--wait', '300ms', '-E', '9', 'none/a', 'none/b', '--', 'true']);
    assert.equal(waited.code, 9);
    assert.ok(waited.ms >= 300);
    assert.ok(await free('none/a') && await free('none/c'));
    holder.child.stdin.end('\n');
    await holder.result;
  });

  it('does not deadlock with the same set in another order', async () => {
    const both = await Promise.all([0, 1, 2, 3].map((i) => run(url, [...(i % 2 ? ['dead/x', 'dead/y'] : ['dead/y', 'dead/x']), '--', 'true'])));
    assert.deepEqual(both.map(({ code }) => code), [0, 0, 0, 0]);
  });

  it('passes names and fences to the command, one line for each, and no single fence', async () => {
    const script = 'echo "$HOLDFAST_LOCK_NAME"; echo "$HOLDFAST_FENCES"; echo "$HOLDFAST_FENCE_RESOURCE"; echo "${HOLDFAST_FENCE-none}"; echo "$HOLDFAST_DEADLINE_MS"';
    const { stdout } = await run(url, ['env/b', 'env a', ...sh(script)], { env: { HOLDFAST_FENCE: '4' } });
    const [first, second, one, two, resource, other, fence, deadline] = stdout.trim().split('\n');
    assert.deepEqual([first, second, resource, other, fence], ['env a', 'env/b', 'env a', 'env/b', 'none']);
    for (const [name, token] of [['env a', one], ['env/b', two]]) {
      assert.equal((await json(url, ['lock', 'show', name])).last_fence, Number(token));
    }
    assert.ok(Number(deadline) > 0);
  });

  it('ends the command before the deadline if one of them is lost: 76', async () => {
    const holder = await beginRun(url, ['--ttl', '18s', 'lost/a', 'lost/b'], 'exec sleep 60');
    assert.equal((await lock(url, ['break', 'lost/b'])).code, 0);
    const { code, stderr, ms } = await holder.result;
    assert.equal(code, 76);
    assert.match(stderr, /^holdfast run: the lock on lost\/b is lost; ending the command\n$/);
    assertTook(ms, 30_000, 'the loss');
    assert.ok(await free('lost/a'));
  });

  it('is ended by the monitor if the wrapper is killed, and is free after the TTL', async () => {
    const holder = await beginRun(url, [...STEADY, 'kill/a', 'kill/b'], 'exec sleep 30');
    process.kill(holder.pid, 'SIGKILL');
    await until('the command is gone', () => !fs.existsSync(`/proc/${holder.commandPid}`));
    assert.equal((await run(url, ['--wait', '60s', 'kill/b', 'kill/a', '--', 'true'])).code, 0);
  });

  it('is held for --max-hold from the last grant on, and --at-least with all of its locks', async () => {
    const other = await beginRun(url, ['hold/b'], 'read line', { input: null });
    const both = begin(url, ['run', ...PATIENCE, ...STEADY, '--max-hold', '5s', 'hold/a', 'hold/b', ...sh('echo begun; exec sleep 60')]);
    await until('it waits', async () => (await json(url, ['lock', 'show', 'hold/b'])).waiters.length === 1);
    await new Promise((resolve) => { setTimeout(resolve, STEADY_MS + 500); }); // the first lock is held for longer than --max-hold and a TTL
    other.child.stdin.end('\n');
    await until('it runs', () => both.stdout === 'begun\n');
    const began = performance.now();
    const { code, stderr } = await both.result;
    assert.equal(code, 76);
    assert.match(stderr, /has been held for --max-hold/);
    assertTook(performance.now() - began, 20_000, '--max-hold');
    const kept = await beginRun(url, ['--at-least', '1m', 'least/a', 'least/b'], 'exit 0');
    await until('the command has ended', () => isGone(kept.commandPid));
    for (const name of ['least/a', 'least/b']) assert.ok(!await free(name), name);
    kept.child.kill('SIGTERM');
    assert.equal((await kept.result).code, 0);
  });

  it('has a sample for each lock in --metrics-file', async () => {
    const file = locks.file('set.prom');
    await run(url, ['--metrics-file', file, 'prom/b', 'prom/a', '--', 'true']);
    const samples = parseMetrics(fs.readFileSync(file, 'utf8'));
    const of = (metric) => samples.filter(({ name }) => name === `holdfast_run_${metric}`);
    assert.deepEqual(of('acquired').map(({ labels, value }) => [labels.name, value]), [['prom/b', 1], ['prom/a', 1]]);
    for (const { labels, value } of of('fence')) assert.equal((await json(url, ['lock', 'show', labels.name])).last_fence, value);
  });

  it('has 1 to 64 different names', async () => {
    for (const names of [[], ['twice', 'twice'], Array.from({ length: 65 }, (_, i) => `n${i}`)]) {
      assert.equal((await run(url, [...names, '--', 'true'])).code, 64, `${names.length}`);
    }
    assert.equal((await run(url, [...Array.from({ length: 64 }, (_, i) => `n${i}`), '--', 'true'])).code, 0);
    assert.equal((await holdfast(url, ['elect', 'a', 'b', '--', 'true'])).code, 64);
  });
});

describe('a lock inside the same lock', { concurrency: 2 }, () => {
  const inside = (outer, inner, options = {}) => run(url, [...outer, ...sh(`${patient(inner)}; echo "exit $?"`)], { ...options, env: { ...HF, ...options.env } });
  const refused = /is held by the holdfast command that this one runs under/;

  for (const [what, outer, inner] of [
    ['run', ['in/1'], '$HF run in/1 -- echo ran'],
    ['run with a limited wait', ['in/2'], '$HF run --wait 60s in/2 -- echo ran'],
    ['run of a set', ['in/4', 'in/3'], '$HF run in/5 in/4 -- echo ran'],
    ['run in a run of another lock', ['in/6'], '$HF run in/7 -- $HF run in/6 -- echo ran'],
    ['elect', ['in/8'], '$HF elect in/8 -- echo ran'],
    ['lock get', ['in/9'], '$HF lock get in/9'],
    ['run --shared in an exclusive one', ['in/10'], '$HF run --shared in/10 -- echo ran'],
    ['an exclusive run in a shared one', ['--shared', 'in/11'], '$HF run in/11 -- echo ran'],
    ['the third of two slots', ['--slots', '2', 'in/12'], '$HF run --slots 2 in/12 -- $HF run --slots 2 in/12 -- echo ran'],
  ]) {
    it(`is refused at once with 64: ${what}`, async () => {
      const { stdout, stderr, ms } = await inside(outer, inner);
      assert.equal(stdout, 'exit 64\n', stderr);
      assert.match(stderr, refused);
      assertTook(ms, 20_000, 'the refusal');
    });
  }

  it('is an ordinary refusal with -n, which does not wait: 75', async () => {
    const { stdout, stderr } = await inside(['--label', 'outer', 'n/1'], '$HF run -n n/1 -- echo ran');
    assert.equal(stdout, 'exit 75\n');
    assert.match(stderr, /n\/1 is held by "outer"/);
  });

  it('is no mistake if both are shared, if there are slots, or if the coordinator is another', async () => {
    assert.equal((await inside(['--shared', 'ok/1'], '$HF run --shared ok/1 -- echo ran')).stdout, 'ran\nexit 0\n');
    assert.equal((await inside(['--slots', '2', 'ok/2'], '$HF run --slots 2 ok/2 -- echo ran')).stdout, 'ran\nexit 0\n');
    assert.equal((await inside(['ok/3'], `$HF run --lock sqlite:${locks.file('other.db')} ok/3 -- echo ran`)).stdout, 'ran\nexit 0\n');
  });

  it('is no mistake once the outer one has lost it', async () => {
    const { stdout, stderr } = await inside(['--on-loss', 'warn', 'gone'], '$HF lock break gone; $HF run gone -- echo ran');
    assert.equal(stdout, 'ran\nexit 0\n', stderr);
  });

  it('is refused in a shared one if a writer waits between them', async () => {
    const reader = await beginRun(url, ['--shared', 'rw'], patient('read line; $HF run --shared rw -- echo ran; echo "exit $?"'), { input: null, env: HF });
    const writer = begin(url, ['run', ...PATIENCE, 'rw', '--', 'true']);
    await until('the writer waits', async () => (await json(url, ['lock', 'show', 'rw'])).waiters.length === 1);
    reader.child.stdin.end('\n');
    const { stdout, stderr } = await reader.result;
    assert.match(stdout, /\nexit 64\n$/);
    assert.match(stderr, refused);
    assert.equal((await writer.result).code, 0);
  });
});

describe('a lock inside one above or below it, on the lock service', { concurrency: 2 }, () => {
  let server;
  let cell;
  before(async () => {
    server = new Server({ args: ['--payments', 'off'] });
    await server.launch();
    cell = `holdfast://127.0.0.1:${server.port}`;
  });
  after(() => server?.stop());
  const inside = (on, outer, inner) => run(on, [...outer, ...sh(`${patient(inner)}; echo "exit $?"`)], { env: HF });

  for (const [what, outer, inner, names] of [
    ['below', ['tree/1'], '$HF run tree/1/b -- echo ran', ['tree/1', 'tree/1/b']],
    ['far above', ['tree/2/b/c'], '$HF run --wait 60s tree/2 -- echo ran', ['tree/2/b/c', 'tree/2']],
    ['one of a set', ['tree/3/b', 'other'], '$HF run tree/4 tree/3 -- echo ran', ['tree/3/b', 'tree/3']],
    ['an elect in a shared one', ['--shared', 'tree/5'], '$HF elect tree/5/b -- echo ran', ['tree/5', 'tree/5/b']],
  ]) {
    it(`is refused at once with 64: ${what}`, async () => {
      const { stdout, stderr } = await inside(cell, outer, inner);
      assert.equal(stdout, 'exit 64\n', stderr);
      assert.ok(stderr.includes(`${names[0]}, which excludes ${names[1]}, is held by the holdfast command that this one runs under`), stderr);
    });
  }

  it('is no mistake if both are shared, if it is beside it, or where names are no hierarchy', async () => {
    assert.equal((await inside(cell, ['--shared', 'fine/1'], '$HF run --shared fine/1/b -- echo ran')).stdout, 'ran\nexit 0\n');
    assert.equal((await inside(cell, ['fine/2'], '$HF run fine/22 -- echo ran')).stdout, 'ran\nexit 0\n');
    assert.equal((await inside(url, ['fine/3'], '$HF run fine/3/b -- echo ran')).stdout, 'ran\nexit 0\n');
    assert.equal((await inside(cell, ['fine/4'], `$HF run --lock ${url} fine/4/b -- echo ran`)).stdout, 'ran\nexit 0\n');
  });

  it('is refused in a shared one if a writer waits above both', async () => {
    const reader = await beginRun(cell, ['--shared', 'rw/1'], patient('read line; $HF run --shared rw/1/b -- echo ran; echo "exit $?"'), { input: null, env: HF });
    const writer = begin(cell, ['run', ...PATIENCE, 'rw', '--', 'true']);
    await until('the writer waits', async () => (await json(cell, ['lock', 'show', 'rw'])).waiters.length === 1);
    reader.child.stdin.end('\n');
    const { stdout, stderr } = await reader.result;
    assert.match(stdout, /\nexit 64\n$/, stderr);
    assert.equal((await writer.result).code, 0);
  });
});
