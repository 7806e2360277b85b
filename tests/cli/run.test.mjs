// `holdfast run`: exit codes, options, and the environment of the command.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, describe, it } from 'node:test';
import {
  begin, beginRun, holdfast, isGone, json, PATIENCE, renewed, run, sleep, sqliteLocks, STEADY, STEADY_MS, until, uptimeMs,
} from '../support/cli.mjs';
import { assertTook, parseMetrics, reap } from '../support/server.mjs';

const locks = sqliteLocks();
const { url } = locks;
const sh = (script) => ['--', 'sh', '-c', script];

after(reap);

describe('the exit status', { concurrency: 2 }, () => {
  it('is that of the command', async () => {
    assert.equal((await run(url, ['own-0', '--', 'true'])).code, 0);
    assert.equal((await run(url, ['own-3', ...sh('exit 3')])).code, 3);
    assert.equal((await run(url, ['own-255', ...sh('exit 255')])).code, 255);
  });

  it('is 128+n when signal n killed the command', async () => {
    assert.equal((await run(url, ['died-9', ...sh('kill -9 $$')])).code, 137);
    assert.equal((await run(url, ['died-15', ...sh('kill -15 $$')])).code, 143);
  });

  it('is 127 for a command that is not there and 126 for one that cannot be run', async () => {
    const missing = await run(url, ['no-command', '--', 'no-such-command-anywhere']);
    assert.equal(missing.code, 127);
    assert.match(missing.stderr, /no-such-command-anywhere: No such file/);
    assert.equal((await run(url, ['no-command', '--', '/no/such/path'])).code, 127);
    fs.writeFileSync(locks.file('plain'), 'not a program');
    const plain = await run(url, ['no-command', '--', locks.file('plain')]);
    assert.equal(plain.code, 126);
    assert.match(plain.stderr, /Permission denied/);
    assert.equal((await run(url, ['no-command', '--', '/'])).code, 126);
    assert.deepEqual(await json(url, ['lock', 'ls', 'no-command']), []);
  });

  it('is 75 when another holds the lock, or what -E says', async () => {
    const holder = await beginRun(url, ['--label', 'ann@web1 4711', 'taken'], 'read line', { input: null });
    const began = performance.now();
    const refused = await run(url, ['-n', 'taken', ...sh('echo ran')]);
    assert.equal(refused.code, 75);
    assert.equal(refused.stdout, '');
    const { last_fence: fence } = await json(url, ['lock', 'show', 'taken']);
    assert.match(refused.stderr, new RegExp(`^holdfast run: taken is held by "ann@web1 4711"( for \\d+ (ms|s))? \\(fence ${fence}\\)\n$`));
    assertTook(performance.now() - began, 5000, 'the refusal');
    const fine = await run(url, ['-n', '-E', '0', 'taken', '--', 'true']);
    assert.deepEqual([fine.code, fine.stderr], [0, '']);
    assert.equal((await run(url, ['-n', '-E', '42', 'taken', '--', 'true'])).code, 42);
    const waited = await run(url, ['--wait', '300ms', 'taken', '--', 'true']);
    assert.equal(waited.code, 75);
    assert.ok(waited.ms >= 300, `${waited.ms}`);
    const retried = await run(url, ['--retry', '3', '--retry-delay', '100ms', 'taken', '--', 'true']);
    assert.equal(retried.code, 75);
    assert.ok(retried.ms >= 300, `${retried.ms}`);
    const once = await run(url, ['--retry', '0', 'taken', '--', 'true']);
    assert.equal(once.code, 75);
    assertTook(once.ms, 5000, 'one try');
    const patient = await run(url, ['--retry', '0', '--wait', '700ms', 'taken', '--', 'true']);
    assert.equal(patient.code, 75);
    assert.ok(patient.ms >= 700, `${patient.ms}`);
    holder.child.stdin.end('done\n');
    assert.equal((await holder.result).code, 0);
  });
});

describe('waiting', () => {
  it('lasts until the lock is acquired', async () => {
    const holder = await beginRun(url, ['wait'], 'read line; echo first ended', { input: null });
    const waiter = begin(url, ['run', ...PATIENCE, 'wait', ...sh('echo second')]);
    await until('it waits', async () => (await json(url, ['lock', 'show', 'wait'])).waiters.length === 1);
    assert.equal(waiter.stdout, '');
    holder.child.stdin.end('done\n');
    await holder.result;
    const { code, stdout } = await waiter.result;
    assert.equal(code, 0);
    assert.equal(stdout, 'second\n');
  });

  it('ended by a signal leaves no place in the queue: 128+n, and does not delay the next waiter', async () => {
    const holder = await beginRun(url, ['queue'], 'read line', { input: null });
    const waiter = begin(url, ['run', ...PATIENCE, 'queue', ...sh('echo never')]);
    const waiting = async () => (await json(url, ['lock', 'show', 'queue'])).waiters.length;
    await until('it waits', async () => await waiting() === 1);
    waiter.child.kill('SIGTERM');
    const { code, stdout } = await waiter.result;
    assert.equal(code, 143);
    assert.equal(stdout, '');
    assert.equal(await waiting(), 0);
    holder.child.stdin.end('done\n');
    await holder.result;
  });

  it('serves the larger --priority first', async () => {
    const serve = async (name) => { // resolves to the order
      const holder = await beginRun(url, [name], 'read line', { input: null });
      const order = locks.file(name);
      const waiting = async (n) => until(`${n} wait`,
        async () => (await json(url, ['lock', 'show', name])).waiters.length === n);
      const low = begin(url, ['run', ...PATIENCE, name, ...sh(`echo low >>${order}`)]);
      await waiting(1);
      const high = begin(url, ['run', ...PATIENCE, '--priority', '5', name, ...sh(`echo high >>${order}`)]);
      await waiting(2);
      holder.child.stdin.end('done\n');
      await Promise.all([holder.result, low.result, high.result]);
      return fs.readFileSync(order, 'utf8');
    };
    // A waiter that stands still when its turn comes is passed over.
    let order;
    for (let tries = 0; tries < 3 && order !== 'high\nlow\n'; tries++) order = await serve(`priority-${tries}`);
    assert.equal(order, 'high\nlow\n');
  });
});

describe('two runs at once', { concurrency: 3 }, () => {
  it('of a cron job on two machines run the job once', async () => {
    const file = locks.file('cron');
    const job = () => run(url, ['-n', '--at-least', '10s', '-E', '0', 'cron', ...sh(`echo ran >>${file}`)]);
    const first = job();
    await sleep(300); // clocks differ
    const [one, two] = await Promise.all([first, job()]);
    assert.deepEqual([one.code, two.code], [0, 0]);
    assert.equal(fs.readFileSync(file, 'utf8'), 'ran\n');
    assert.ok(Math.max(one.ms, two.ms) >= 10_000);
    // The next time the lock is free.
    assert.equal((await run(url, ['-n', 'cron', '--', 'true'])).code, 0);
  });

  it('can be --shared, but not beside an exclusive one', async () => {
    const reader = await beginRun(url, ['--shared', 'book'], 'read line', { input: null });
    assert.equal((await run(url, ['-n', '--shared', 'book', '--', 'true'])).code, 0);
    assert.equal((await run(url, ['-n', 'book', '--', 'true'])).code, 75);
    reader.child.stdin.end('done\n');
    await reader.result;
    assert.equal((await run(url, ['-n', 'book', '--', 'true'])).code, 0);
  });

  it('can share --slots 2, but three cannot', async () => {
    const holders = [];
    for (let i = 0; i < 2; i++) holders.push(await beginRun(url, ['--slots', '2', 'slots'], 'read line', { input: null }));
    assert.equal((await run(url, ['-n', '--slots', '2', 'slots', '--', 'true'])).code, 75);
    holders[0].child.stdin.end('done\n');
    await holders[0].result;
    assert.equal((await run(url, ['-n', '--slots', '2', 'slots', '--', 'true'])).code, 0);
    holders[1].child.stdin.end('done\n');
    await holders[1].result;
  });
});

describe('the command', { concurrency: 3 }, () => {
  it('sees the fence, the name and the deadline, and the rest of the environment', async () => {
    const uptime = uptimeMs();
    const script = 'echo "$HOLDFAST_FENCE $HOLDFAST_LOCK_NAME $HOLDFAST_DEADLINE_MS $OTHER"; env | grep -c "^HOLDFAST_FENCE="';
    const env = { OTHER: 'kept', HOLDFAST_FENCE: 'of an outer run' };
    const { stdout } = await run(url, ['--ttl', '10s', 'the name', ...sh(script)], { env });
    const [, fence, deadline] = stdout.match(/^(\d+) the name (\d+) kept\n1\n$/);
    assert.ok(Number(fence) > 0);
    assert.ok(Number(deadline) > uptime + 9000 && Number(deadline) < uptimeMs() + 10_000, `${deadline} ${uptime}`);
    const next = await run(url, ['the name', ...sh('echo $HOLDFAST_FENCE')]);
    assert.ok(Number(next.stdout) > Number(fence));
  });

  it('can compute the time until the deadline as the documents say', async () => {
    const page = (name) => fs.readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
    const manual = page('man/holdfast.1').replaceAll('\\(aq', "'").replaceAll('\\e', '\\');
    for (const text of [manual, page('locks.md')]) {
      const [line] = text.match(/^left_ms\(\) .*$/m);
      const { stdout } = await run(url, ['--ttl', '30s', 'left', ...sh(`${line}\nleft_ms; sleep 0.5; left_ms`)]);
      const [first, second] = stdout.trim().split('\n').map(Number);
      assert.ok(first > 5000 && first <= 29_910, stdout); // minus a margin of 100 ms; the clock is exact to 10 ms
      assert.ok(second <= first - 490, stdout);
    }
  });

  // For comparison: a program that the test starts without holdfast.
  const plainly = (script, options) => holdfast(undefined, [], { ...options, wrap: () => ['sh', '-c', script] });

  it('has the stdin, stdout and stderr of the wrapper, and no other file', async () => {
    const script = 'cat; echo error >&2; exec ls /proc/self/fd';
    const plain = await plainly(script, { input: 'through\n' });
    const { code, stdout, stderr } = await run(url, ['files', ...sh(script)], { input: 'through\n' });
    assert.equal(code, 0);
    assert.match(stdout, /^through\n0\n1\n2\n/);
    assert.equal(stdout, plain.stdout);
    assert.equal(stderr, 'error\n');
  });

  it('starts with the signal mask that the wrapper got, in a group of its own', async () => {
    const script = 'exec grep -E "^Sig(Blk|Ign)" /proc/self/status';
    assert.equal((await run(url, ['signals', ...sh(script)])).stdout, (await plainly(script)).stdout);
    const ignoring = `trap "" HUP; ${script}`;
    const nohup = await holdfast(url, ['run', ...PATIENCE, 'signals', ...sh(script)], { wrap: (argv) => ['sh', '-c', 'trap "" HUP; exec "$@"', 'sh', ...argv] });
    assert.equal(nohup.stdout, (await plainly(ignoring)).stdout);
    const own = await run(url, ['group', ...sh('echo "$$ $(cut -d" " -f5 /proc/$$/stat)"')]);
    const [pid, group] = own.stdout.trim().split(' ');
    assert.equal(group, pid);
  });

  it('is shown with its --label, or with user, host and pid', async () => {
    const labelled = await beginRun(url, ['--label', 'night shift', 'label-1'], 'read line', { input: null });
    assert.equal((await json(url, ['lock', 'show', 'label-1'])).holders[0].label, 'night shift');
    labelled.child.stdin.end('\n');
    const plain = await beginRun(url, ['label-2'], 'read line', { input: null });
    assert.match((await json(url, ['lock', 'show', 'label-2'])).holders[0].label, new RegExp(`^\\S+@\\S+ ${plain.pid}$`));
    plain.child.stdin.end('\n');
    await Promise.all([labelled.result, plain.result]);
  });

  it('keeps its lock while it runs longer than the TTL', async () => {
    const long = await beginRun(url, [...STEADY, 'renewed'], 'read line', { input: null });
    await sleep(STEADY_MS + 500);
    assert.equal((await run(url, ['-n', 'renewed', '--', 'true'])).code, 75);
    long.child.stdin.end('\n');
    assert.equal((await long.result).code, 0);
  });

  it('leaves no process behind', async () => {
    const busy = await beginRun(url, ['tidy'], 'read line', { input: null });
    const family = fs.readFileSync(`/proc/${busy.pid}/task/${busy.pid}/children`, 'utf8').trim().split(' ').map(Number);
    assert.equal(family.length, 2, 'the command and the monitor');
    busy.child.stdin.end('\n');
    await busy.result;
    for (const pid of family) assert.ok(isGone(pid), `${pid}`);
  });
});

describe('--at-least', { concurrency: 3 }, () => {
  it('keeps the lock when the command ends sooner, and not when it ends later', async () => {
    const kept = await beginRun(url, ['--at-least', '5s', 'least'], 'exit 7');
    const { code, ms } = await kept.result;
    assert.equal(code, 7);
    assert.ok(ms >= 5000, `${ms}`);
    assertTook(ms, 20_000, 'the rest of --at-least');
    const longer = await run(url, ['--at-least', '10ms', 'least-2', '--', 'sleep', '0.2']);
    assertTook(longer.ms, 20_000, 'a command that outlasts --at-least');
  });

  it('ends with SIGTERM, and not before', async () => {
    const kept = await beginRun(url, ['--at-least', '1m', 'least-3'], 'exit 0');
    await until('the command has ended', () => isGone(kept.commandPid));
    assert.equal((await run(url, ['-n', 'least-3', '--', 'true'])).code, 75);
    kept.child.kill('SIGTERM');
    const { code, ms } = await kept.result;
    assert.equal(code, 0);
    assertTook(ms, 30_000, 'the end after a signal');
    assert.equal((await run(url, ['-n', 'least-3', '--', 'true'])).code, 0);
  });
});

describe('--metrics-file', () => {
  const read = (file) => {
    const text = fs.readFileSync(file, 'utf8');
    for (const { name } of parseMetrics(text)) assert.match(text, new RegExp(`^# TYPE ${name} gauge$`, 'm'));
    return Object.fromEntries(parseMetrics(text).map(({ name, labels, value }) => [name.replace('holdfast_run_', ''), { labels, value }]));
  };

  it('has what happened, and is replaced in one step', async () => {
    const file = locks.file('run.prom');
    fs.writeFileSync(file, 'old');
    const name = 'a "quoted" \\ name';
    const before = Date.now() / 1000;
    const wrapper = await beginRun(url, ['--metrics-file', file, ...STEADY, name], 'read line; exit 4', { input: null, leaks: true });
    const begun = uptimeMs();
    await renewed(url, name);
    const heldS = (uptimeMs() - begun) / 1000 - 0.01; // the clock is exact to 10 ms
    wrapper.child.stdin.end('\n');
    await wrapper.result;
    const metrics = read(file);
    assert.equal(metrics.acquired.value, 1);
    assert.equal(metrics.lost.value, 0);
    assert.equal(metrics.exit_code.value, 4);
    assert.ok(metrics.fence.value > 0);
    assert.ok(metrics.held_seconds.value >= heldS && metrics.held_seconds.value < 60);
    assert.ok(metrics.renewals.value >= 1);
    assert.ok(metrics.start_timestamp_seconds.value >= before - 1);
    assert.ok(metrics.end_timestamp_seconds.value >= metrics.start_timestamp_seconds.value + heldS);
    assert.equal(metrics.acquired.labels.name, name.replaceAll('\\', '\\\\').replaceAll('"', '\\"'));
    assert.deepEqual(fs.readdirSync(locks.dir).filter((entry) => entry.startsWith('run.prom')), ['run.prom']);
  });

  it('is written also if the lock was not acquired, and never changes the exit status', async () => {
    const holder = await beginRun(url, ['metrics'], 'read line', { input: null });
    const file = locks.file('refused.prom');
    assert.equal((await run(url, ['-n', '--metrics-file', file, 'metrics', '--', 'true'])).code, 75);
    const metrics = read(file);
    assert.equal(metrics.acquired.value, 0);
    assert.equal(metrics.exit_code.value, 75);
    holder.child.stdin.end('\n');
    await holder.result;
    const { code, stderr } = await run(url, ['--metrics-file', '/no/such/dir/x.prom', 'metrics', ...sh('exit 5')]);
    assert.equal(code, 5);
    assert.match(stderr, /x\.prom: No such file/);
  });
});
