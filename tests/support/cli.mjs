// The harness of the suites of the command: runs `holdfast` on locks in a temporary SQLite file, or on a real
// Redis or PostgreSQL that the test starts (redis.mjs, postgres.mjs).

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {
  assertCleanStderr, environment, freePort, gone, HOLDFAST, isGone, launch, sleep, tempDir, until,
} from './server.mjs';

export const COMMAND_TIMEOUT_MS = 200_000; // enough for hundreds of processes with the thread sanitizer on a busy machine

// Locks in a new SQLite file.
export function sqliteLocks() {
  const dir = tempDir();
  return { dir, url: `sqlite:${path.join(dir, 'locks.db')}`, file: (name) => path.join(dir, name) };
}

// Starts `holdfast ARGS`; `url` is passed in the environment.
export function begin(url, args, { env = {}, leaks = false, input, wrap = (argv) => argv } = {}) {
  const where = url === undefined ? {} : { HOLDFAST_LOCK_URL: url };
  const full = environment({ ...where, ...env }, leaks);
  if (url === undefined) delete full.HOLDFAST_LOCK_URL;
  const [command, ...rest] = wrap([HOLDFAST, ...args]);
  const run = launch(command, rest, { env: full, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
  run.began = performance.now();
  if (input !== undefined && input !== null) run.child.stdin.end(input);
  const timer = setTimeout(() => run.child.kill('SIGKILL'), COMMAND_TIMEOUT_MS);
  run.result = run.done.then(({ code, signal }) => {
    clearTimeout(timer);
    assertCleanStderr(run.stderr);
    return { code, signal, stdout: run.stdout, stderr: run.stderr, ms: performance.now() - run.began };
  });
  run.result.catch(() => {});
  return run;
}

// Runs `holdfast ARGS` to its end.
export const holdfast = (url, args, options) => begin(url, args, options).result;
// A coordinator on a busy machine has a minute to answer, unless a test is about that.
export const PATIENCE = ['--timeout', '60s'];
const patient = (args) => (args.includes('--timeout') ? args : [...PATIENCE, ...args]);
// Leases that have to outlive a machine that stands still for seconds: what renews them does so every third of the TTL, and
// ends the command a sixth of it before its end.
export const STEADY_MS = 15_000;
export const STEADY = ['--ttl', `${STEADY_MS}ms`];
export const run = (url, args, options) => holdfast(url, ['run', ...patient(args)], options);
export const lock = (url, args, options) => holdfast(url, ['lock', ...args, ...PATIENCE], options);
// What a command says as JSON.
export async function json(url, args) {
  const patience = args[0] === 'lock' ? PATIENCE : [];
  const { code, stdout, stderr } = await holdfast(url, [...args, '--json', ...patience]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

// Starts `holdfast run` with a shell script and resolves when the script has printed "begun", which it does
// after the trap at its start.
export async function beginRun(url, args, script, options) {
  const [, trap, rest] = script.match(/^(trap (?:'[^']*'|"[^"]*") \w+; )?(.*)$/s);
  const wrapper = begin(url, ['run', ...patient(args), '--', 'sh', '-c', `${trap ?? ''}echo begun $$; ${rest}`], options);
  await until('the command begins', () => /^begun \d+\n/.test(wrapper.stdout) || wrapper.ended);
  assert.equal(wrapper.ended, null, wrapper.stderr);
  wrapper.commandPid = Number(wrapper.stdout.match(/^begun (\d+)/)[1]);
  return wrapper;
}

// Waits until the lease on a name is renewed: only that makes what is left of it more.
export function renewed(url, name) {
  let leastMs = Infinity;
  return until(`the lease on ${name} is renewed`, async () => {
    const [{ expires_in_ms: leftMs }] = (await json(url, ['lock', 'show', name])).holders;
    leastMs = Math.min(leastMs, leftMs);
    return leftMs > leastMs;
  });
}

// Milliseconds since boot, on the clock of deadlines, with a resolution of 10 ms.
export const uptimeMs = () => Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000;
// A shell command that appends the seconds since boot to a file for as long as it lives.
export const heartbeat = (file) => `while :; do cut -d' ' -f1 /proc/uptime >>${file}; sleep 0.05; done`;
export const lastHeartbeatMs = (file) => Number(fs.readFileSync(file, 'utf8').trim().split('\n').at(-1)) * 1000;

export { freePort, gone, isGone, sleep, until };
