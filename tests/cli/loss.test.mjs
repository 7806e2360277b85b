// Signals, the death of the wrapper, and the loss of a lock: the command ends before another holder can have the lock.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import {
  begin, beginRun, gone, heartbeat, holdfast, isGone, json, lastHeartbeatMs, lock, PATIENCE, run, sleep, sqliteLocks,
  STEADY, STEADY_MS, until, uptimeMs,
} from '../support/cli.mjs';
import { startProxy } from '../support/proxy.mjs';
import { startRedis } from '../support/redis.mjs';
import { assertTook, launch, environment, reap, HOLDFAST } from '../support/server.mjs';

const locks = sqliteLocks();
const { url } = locks;

after(reap);

// Waits for the lock and records when it gets it, which is not before the lease of the other holder has ended.
const heir = (where, name, file) => begin(where, ['run', '--timeout', '60s', '--wait', '60s', name, '--', 'sh', '-c', `cut -d' ' -f1 /proc/uptime >${file}`]);

describe('a signal', { concurrency: 3 }, () => {
  for (const [signal, number] of [['SIGTERM', 15], ['SIGINT', 2], ['SIGHUP', 1], ['SIGQUIT', 3], ['SIGUSR1', 10], ['SIGUSR2', 12]]) {
    it(`${signal} is passed on to the command's group`, async () => {
      const wrapper = await beginRun(url, [`pass-${signal}`], `trap 'echo heard; exit 9' ${number}; while :; do sleep 0.1; done`);
      wrapper.child.kill(signal);
      const { code, stdout } = await wrapper.result;
      assert.match(stdout, /heard/);
      assert.equal(code, 9);
    });
  }

  it('that kills the command leads to 128+n, and the lock is free', async () => {
    const wrapper = await beginRun(url, ['died'], 'exec sleep 20');
    wrapper.child.kill('SIGTERM');
    assert.equal((await wrapper.result).code, 143);
    assert.equal((await run(url, ['-n', 'died', '--', 'true'])).code, 0);
  });

  it('that stops the command leaves the lock held until SIGCONT continues it', async () => {
    const wrapper = await beginRun(url, [...STEADY, 'stopped'], 'exec sleep 60');
    wrapper.child.kill('SIGTSTP');
    const status = () => fs.readFileSync(`/proc/${wrapper.commandPid}/status`, 'utf8');
    await until('the command is stopped', () => /^State:\s+T/m.test(status()));
    await sleep(STEADY_MS + 500);
    assert.equal((await run(url, ['-n', 'stopped', '--', 'true'])).code, 75);
    wrapper.child.kill('SIGCONT');
    await until('it goes on', () => !/^State:\s+T/m.test(status()));
    wrapper.child.kill('SIGTERM');
    assert.equal((await wrapper.result).code, 143);
  });
});

describe('the wrapper', { concurrency: 3 }, () => {
  it('killed with SIGKILL: its command and the command\'s children end, too', async () => {
    const file = locks.file('grandchild');
    const wrapper = await beginRun(url, [...STEADY, 'killed'], `(trap '' TERM; ${heartbeat(file)}) & echo grandchild $!; wait`);
    const grandchild = Number((await until('a grandchild', () => wrapper.stdout.match(/grandchild (\d+)/)))[1]);
    const family = fs.readFileSync(`/proc/${wrapper.pid}/task/${wrapper.pid}/children`, 'utf8').trim().split(' ').map(Number);
    wrapper.child.kill('SIGKILL');
    await gone(wrapper.commandPid);
    await gone(grandchild); // it ignores SIGTERM: after the grace, a sixth of the TTL
    for (const pid of family) await gone(pid);
  });

  const monitorOf = (wrapper) => Number(fs.readFileSync(`/proc/${wrapper.pid}/task/${wrapper.pid}/children`, 'utf8')
    .trim().split(' ').find((pid) => Number(pid) !== wrapper.commandPid));

  it('killed after its monitor: the parent-death signal ends the command', async () => {
    const wrapper = await beginRun(url, ['orphan'], "trap 'echo heard; exit 0' TERM; trap '' HUP; while :; do sleep 0.1; done");
    process.kill(monitorOf(wrapper), 'SIGKILL');
    await until('the wrapper knows', () => wrapper.stderr.includes('the monitor has died'));
    wrapper.child.kill('SIGKILL');
    await gone(wrapper.commandPid);
    await until('it heard SIGTERM', () => wrapper.stdout.includes('heard'));
  });

  it('goes on when its monitor dies', async () => {
    const wrapper = await beginRun(url, [...STEADY, 'widow'], 'read line; exit 6', { input: null });
    process.kill(monitorOf(wrapper), 'SIGKILL');
    await sleep(STEADY_MS + 500);
    assert.equal((await run(url, ['-n', 'widow', '--', 'true'])).code, 75);
    wrapper.child.stdin.end('\n');
    assert.equal((await wrapper.result).code, 6);
  });

  // The monitor has a tenth of a second between its deadline and the end of the lease, and a busy machine may stop it for
  // longer: `make soak` claims that the command ends before another has the lock.
  it('stopped for longer than the TTL: the command ends before the lease does, then 76', async () => {
    const name = 'frozen', file = locks.file(name);
    const wrapper = await beginRun(url, [...STEADY, name], `trap '' TERM; ${heartbeat(file)}`);
    const next = heir(url, name, `${file}.next`);
    await until('another waits', async () => (await json(url, ['lock', 'show', name])).waiters.length === 1);
    const stopped = uptimeMs();
    process.kill(wrapper.pid, 'SIGSTOP');
    assert.equal((await next.result).code, 0);
    await gone(wrapper.commandPid);
    const last = lastHeartbeatMs(file), taken = lastHeartbeatMs(`${file}.next`);
    process.kill(wrapper.pid, 'SIGCONT');
    assert.equal((await wrapper.result).code, 76);
    assertTook(last - taken, 0, 'the command, with the lock of another,');
    assertTook(stopped + 300 - last, 0, 'the end of the command, which comes by the clock and not with the stop of the wrapper,');
  });

  it('stopped for a moment: nothing happens', async () => {
    const wrapper = await beginRun(url, ['--ttl', '20s', 'moment'], 'read line; exit 6', { input: null });
    process.kill(wrapper.pid, 'SIGSTOP');
    await sleep(500);
    process.kill(wrapper.pid, 'SIGCONT');
    await sleep(50);
    wrapper.child.stdin.end('\n');
    assert.equal((await wrapper.result).code, 6);
  });
});

describe('a lock that is broken', { concurrency: 3 }, () => {
  // `ms` is the time from the break to the end of the wrapper.  With `meanwhile` the command has an input.
  const broken = async (name, args, script, meanwhile) => {
    const wrapper = await beginRun(url, ['--ttl', '18s', ...args, name], script, meanwhile ? { input: null } : {});
    assert.equal((await lock(url, ['break', name])).code, 0);
    const began = performance.now();
    await meanwhile?.(wrapper);
    return { wrapper, ...await wrapper.result, ms: performance.now() - began };
  };

  it('ends the command with SIGTERM: 76', async () => {
    const { code, stdout, stderr } = await broken('broken-1', ['--grace', '6s'], "trap 'echo heard; exit 0' TERM; while :; do sleep 0.1; done");
    assert.equal(code, 76);
    assert.match(stdout, /heard/);
    assert.match(stderr, /the lock on broken-1 is lost; ending the command/);
  });

  it('kills a command that ignores SIGTERM, within the grace', async () => {
    const { code, ms, wrapper } = await broken('broken-2', ['--grace', '100ms'], "trap '' TERM; while :; do sleep 0.1; done");
    assert.equal(code, 76);
    assertTook(ms, 15_000, 'the end of the command, which comes before the deadline,');
    assert.ok(isGone(wrapper.commandPid));
  });

  it('ends the whole group: a child of the command that ignores SIGTERM is gone before the wrapper', async () => {
    const { code, stdout } = await broken('broken-6', ['--grace', '200ms'], "(trap '' TERM; while :; do sleep 0.1; done) & echo grandchild $!; exec sleep 20");
    assert.equal(code, 76);
    assert.ok(isGone(Number(stdout.match(/grandchild (\d+)/)[1])));
  });

  it('kills at once with --on-loss kill', async () => {
    const { code, stdout } = await broken('broken-3', ['--on-loss', 'kill'], "trap 'echo heard' TERM; while :; do sleep 0.1; done");
    assert.equal(code, 76);
    assert.doesNotMatch(stdout, /heard/);
  });

  it('only warns with --on-loss warn: the command ends by itself, then 76', async () => {
    const { code, stdout, stderr } = await broken('broken-4', ['--on-loss', 'warn'], 'read line; echo finished', async (wrapper) => {
      await until('the wrapper knows', () => wrapper.stderr.includes('goes on without it'));
      wrapper.child.stdin.end('\n');
    });
    assert.equal(code, 76);
    assert.match(stdout, /finished/);
    assert.match(stderr, /goes on without it/);
  });

  it('is noticed at the release at the latest', async () => {
    const wrapper = await beginRun(url, ['--ttl', '10m', 'broken-5'], 'read line', { input: null });
    await lock(url, ['break', 'broken-5']);
    wrapper.child.stdin.end('\n');
    const { code, stderr } = await wrapper.result;
    assert.equal(code, 76);
    assert.match(stderr, /lost while the command ran/);
  });
});

describe('--max-hold', () => {
  it('ends the command after this time: 76', async () => {
    const { code, ms, stderr } = await run(url, ['--max-hold', '700ms', 'cap', '--', 'sleep', '60']);
    assert.equal(code, 76);
    assert.ok(ms >= 700, `${ms}`);
    assertTook(ms, 20_000, '--max-hold');
    assert.match(stderr, /--max-hold/);
    assert.equal((await run(url, ['-n', 'cap', '--', 'true'])).code, 0);
    assert.equal((await run(url, ['--max-hold', '20s', 'cap', '--', 'true'])).code, 0);
  });
});

describe('--max-hold and --on-loss', { concurrency: 2 }, () => {
  it('kill: kills it at that time', async () => {
    const { code, ms } = await run(url, ['--max-hold', '1s', '--on-loss', 'kill', 'cap-kill', '--', 'sleep', '60']);
    assert.equal(code, 76);
    assert.ok(ms >= 900, `${ms}`);
    assertTook(ms, 20_000, '--max-hold');
  });

  it('warn: lets the command go on, and exits with 76', async () => {
    const wrapper = await beginRun(url, ['--max-hold', '1s', '--on-loss', 'warn', 'cap-warn'], 'read line; echo finished', { input: null });
    await until('the wrapper knows', () => /--max-hold/.test(wrapper.stderr) || wrapper.ended);
    assert.equal(wrapper.ended, null, wrapper.stderr);
    wrapper.child.stdin.end('\n');
    const { code, stdout } = await wrapper.result;
    assert.equal(code, 76);
    assert.match(stdout, /finished/);
  });
});

describe('a signal that was ignored at the start', { concurrency: 2 }, () => {
  const deaf = (argv) => ['sh', '-c', "trap '' HUP INT; exec \"$@\"", 'sh', ...argv];

  it('does not end a wait', async () => {
    const holder = await beginRun(url, ['deaf'], 'sleep 60');
    const waiter = begin(url, ['run', ...PATIENCE, '--wait', '5s', 'deaf', '--', 'true'], { wrap: deaf });
    await until('it waits', async () => (await json(url, ['lock', 'show', 'deaf'])).waiters.length === 1 || waiter.ended);
    waiter.child.kill('SIGHUP');
    waiter.child.kill('SIGINT');
    const { code, ms } = await waiter.result;
    assert.equal(code, 75);
    assert.ok(ms >= 4900, `${ms}`);
    holder.child.kill('SIGTERM');
    await holder.result;
  });

  it('does not cut --at-least short', async () => {
    const wrapper = await beginRun(url, ['--at-least', '4s', 'deaf-least'], 'exit 0', { wrap: deaf });
    await until('the command has ended', () => isGone(wrapper.commandPid));
    wrapper.child.kill('SIGHUP');
    const { code, ms } = await wrapper.result;
    assert.equal(code, 0);
    assert.ok(ms >= 4000, `${ms}`);
  });
});

it('a pause between two tries can be interrupted', async () => {
  const holder = await beginRun(url, ['pause'], 'sleep 60');
  const other = begin(url, ['run', ...PATIENCE, '--retry', '5', '--retry-delay', '60s', 'pause', '--', 'true']);
  const mask = (kind) => BigInt(`0x${new RegExp(`^${kind}:\\s+(\\w+)`, 'm').exec(fs.readFileSync(`/proc/${other.pid}/status`, 'utf8'))[1]}`);
  await until('it is prepared for SIGTERM', () => (mask('SigCgt') | mask('SigBlk')) & 1n << 14n);
  await sleep(600); // until it has tried
  other.child.kill('SIGTERM');
  const { code, ms } = await other.result;
  assert.equal(code, 143);
  assertTook(ms, 20_000, 'the end after a signal');
  holder.child.kill('SIGTERM');
  await holder.result;
});

describe('a coordinator that stops answering', () => {
  let redis;
  before(async () => { redis = await startRedis(); });
  after(() => redis.stop());

  // The wrapper has a tenth of a second to spare, and a busy machine may stop it, or the command, for longer: only `make
  // soak` claims when the signals come.
  it('leads to TERM at the deadline minus the grace, and to KILL before the deadline', async () => {
    const name = 'silent', file = locks.file(name);
    const grace = 600;
    const script = `trap 'cut -d" " -f1 /proc/uptime >${file}.term' TERM; ${heartbeat(file)}`;
    const proxy = await startProxy(redis.port);
    const wrapper = await beginRun(`redis://127.0.0.1:${proxy.port}`, [...STEADY, '--grace', `${grace}ms`, '--timeout', '10s', name], script);
    const next = heir(redis.url, name, `${file}.next`);
    await until('another waits', async () => (await json(redis.url, ['lock', 'show', name])).waiters.length === 1);
    proxy.blackhole();
    const { code, stderr } = await wrapper.result;
    assert.equal(code, 76);
    assert.match(stderr, /(cannot be renewed|is lost); ending the command/); // lost: if it stood still for longer than the grace
    assert.equal((await next.result).code, 0);
    await proxy.close();
    const [last, term, taken] = [file, `${file}.term`, `${file}.next`].map((each) => (fs.existsSync(each) ? lastHeartbeatMs(each) : Infinity));
    // The command is gone when another has the lock; it was told a grace before, and had most of that.
    assertTook(Math.max(last - taken, term - (taken - grace + 100), grace / 3 - (last - term)), 0, 'the signals, beyond their time,');
  });
});

describe('elect', { concurrency: 3 }, () => {
  it('runs the command on one candidate at a time, again and again', async () => {
    const file = locks.file('terms');
    const args = ['elect', ...PATIENCE, '--pause', '50ms', 'leader', '--', 'sh', '-c',
      `echo in $HOLDFAST_FENCE >>${file}; sleep 0.1; echo out >>${file}`];
    const candidates = [begin(url, args), begin(url, args)];
    await until('six terms', () => fs.existsSync(file) && fs.readFileSync(file, 'utf8').split('in').length > 6);
    const lines = fs.readFileSync(file, 'utf8').trim().split('\n'); // before a term is cut short
    for (const { child } of candidates) child.kill('SIGTERM');
    await Promise.all(candidates.map(({ result }) => result));
    const terms = lines.filter((line) => line.startsWith('in')).map((line) => Number(line.slice(3)));
    assert.deepEqual(terms, [...terms].sort((a, b) => a - b));
    assert.equal(new Set(terms).size, terms.length);
    lines.forEach((line, i) => assert.match(line, i % 2 ? /^out/ : /^in/, lines.join('\n')));
    assert.deepEqual(await json(url, ['lock', 'ls', 'leader']), []);
  });

  for (const kind of ['sqlite', 'redis']) {
    it(`has another leader after the leader is killed, on ${kind}`, async () => {
      const redis = kind === 'redis' ? await startRedis() : null;
      const where = redis?.url ?? url;
      const args = ['elect', ...PATIENCE, ...STEADY, 'heir', '--', 'sh', '-c', 'echo leads $HOLDFAST_FENCE $$; exec sleep 60'];
      const term = (run) => run.stdout.match(/leads (\d+) (\d+)/);
      const first = begin(where, args);
      const [, fence, command] = await until('the first leads', () => term(first));
      const second = begin(where, args);
      await sleep(1000);
      assert.equal(second.stdout, '');
      first.child.kill('SIGKILL');
      const killed = performance.now();
      const [, newer] = await until('the second leads', () => term(second));
      assertTook(performance.now() - killed, STEADY_MS + 2000, 'the end of the lease, and the next term,');
      assert.ok(Number(newer) > Number(fence));
      await gone(Number(command));
      second.child.kill('SIGTERM');
      assert.equal((await second.result).code, 143);
      await redis?.stop();
    });
  }

  it('a candidate ends with 128+n, and a command that cannot be run ends it', async () => {
    const holder = await beginRun(url, ['seat'], 'read line', { input: null });
    const candidate = begin(url, ['elect', ...PATIENCE, 'seat', '--', 'true']);
    await until('it waits', async () => (await json(url, ['lock', 'show', 'seat'])).waiters.length === 1);
    candidate.child.kill('SIGINT');
    assert.equal((await candidate.result).code, 130);
    holder.child.stdin.end('\n');
    await holder.result;
    assert.equal((await holdfast(url, ['elect', ...PATIENCE, 'seat', '--', '/no/such/program'])).code, 127);
    assert.equal((await holdfast(undefined, ['elect', 'seat', '--', 'true'])).code, 64);
  });
});

describe('a terminal', { concurrency: 3 }, () => {
  // `script` runs a shell line on a terminal of its own, whose input comes from the test.
  const terminal = (line) => launch('script', ['-qec', line, '/dev/null'], {
    env: environment({ HOLDFAST_LOCK_URL: url, HF: HOLDFAST, PS1: '', TERM: 'dumb' }, false), stdio: ['pipe', 'pipe', 'pipe'],
  });
  const PATIENT = PATIENCE.join(' ');
  const shows = (run, text) => until(`the terminal shows ${text}`, () => run.stdout.includes(text));

  it('is given to the command, and taken back', async () => {
    const tty = terminal(`$HF run ${PATIENT} tty-1 -- sh -c 'echo ready; read line; echo "command: $line"'; read line; echo "shell: $line"`);
    await shows(tty, 'ready');
    tty.child.stdin.write('one\n');
    await shows(tty, 'command: one');
    tty.child.stdin.write('two\n');
    await shows(tty, 'shell: two');
    assert.equal((await tty.done).code, 0);
  });

  it('interrupts the command', async () => {
    const tty = terminal(`$HF run ${PATIENT} tty-2 -- sh -c 'echo ready; exec sleep 20'; echo "exit $?"`);
    await shows(tty, 'ready');
    tty.child.stdin.write('\x03');
    await shows(tty, 'exit 130');
    await tty.done;
  });

  it('stops the command and the wrapper, and the shell brings both back', async () => {
    const tty = terminal(`bash -mc '$HF run ${PATIENT} tty-3 -- sh -c "echo ready; read line; echo got \\$line"; echo "job $?"; fg >/dev/null; echo "end $?"'`);
    await shows(tty, 'ready');
    tty.child.stdin.write('\x1a');
    await shows(tty, 'job 147');
    tty.child.stdin.write('word\n');
    await shows(tty, 'got word');
    await shows(tty, 'end 0');
    await tty.done;
  });

  it('stops a reader in the background, and the shell brings it to the front', async () => {
    const tty = terminal(`bash -mc '$HF run ${PATIENT} tty-4 -- sh -c "echo ready; read line; echo got \\$line" & while ! jobs | grep -q Stopped; do sleep 0.05; done; echo stopped; fg >/dev/null; echo "end $?"'`);
    await shows(tty, 'stopped');
    tty.child.stdin.write('word\n');
    await shows(tty, 'got word');
    await shows(tty, 'end 0');
    await tty.done;
  });
});
