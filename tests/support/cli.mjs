// The harness of the command's suites: `holdfast` on locks in a temporary SQLite file, or on a real
// Redis or PostgreSQL of the test's own (redis.mjs, postgres.mjs).

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {
  assertCleanStderr, environment, freePort, gone, HOLDFAST, isGone, launch, sleep, tempDir, until,
} from './server.mjs';

export const COMMAND_TIMEOUT_MS = 90_000; // a race of hundreds with the thread sanitizer, on a busy machine

// A coordinator in a file of its own.
export function sqliteLocks() {
  const dir = tempDir();
  return { dir, url: `sqlite:${path.join(dir, 'locks.db')}`, file: (name) => path.join(dir, name) };
}

// Starts `holdfast ARGS`; `url` is handed over in the environment.
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

// Runs it to its end.
export const holdfast = (url, args, options) => begin(url, args, options).result;
export const run = (url, args, options) => holdfast(url, ['run', ...args], options);
export async function json(url, args) {
  const { code, stdout, stderr } = await holdfast(url, [...args, '--json']);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

// A run whose command has begun: resolves when it has printed "begun", which it does after a trap at
// the start of `script`.
export async function beginRun(url, args, script, options) {
  const [, trap, rest] = script.match(/^(trap (?:'[^']*'|"[^"]*") \w+; )?(.*)$/s);
  const wrapper = begin(url, ['run', ...args, '--', 'sh', '-c', `${trap ?? ''}echo begun $$; ${rest}`], options);
  await until('the command begins', () => /^begun \d+\n/.test(wrapper.stdout) || wrapper.ended, 10_000);
  assert.equal(wrapper.ended, null, wrapper.stderr);
  wrapper.commandPid = Number(wrapper.stdout.match(/^begun (\d+)/)[1]);
  return wrapper;
}

// Seconds since boot, the clock of deadlines, to 10 ms.
export const uptimeMs = () => Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000;
// Shell that writes such a time into a file again and again, for as long as it lives.
export const heartbeat = (file) => `while :; do cut -d' ' -f1 /proc/uptime >>${file}; sleep 0.02; done`;
export const lastHeartbeatMs = (file) => Number(fs.readFileSync(file, 'utf8').trim().split('\n').at(-1)) * 1000;

export { freePort, gone, isGone, sleep, until };
