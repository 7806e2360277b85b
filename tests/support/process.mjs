// Processes, temporary directories and waiting: the basis of every suite's harness.  Every process that is
// started here is remembered by its pid and ended, at the latest, when the test process ends.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import dgram from 'node:dgram';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const SERVER = fileURLToPath(new URL('../../scripts/server', import.meta.url));
const SANITIZER = /(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|runtime error:/;

// ---- cleaning up when the test process ends ----

const children = new Set();
const tempDirs = new Set();
const exitActions = new Set();

// Runs in the background, since a database is a thousand files, and removing them takes seconds on a busy
// disk.  Tries again while a process that was just killed still writes.
const REMOVE = 'for i in 1 2 3 4 5; do rm -rf -- "$@" 2>/dev/null && break; sleep 1; done';

process.on('exit', () => {
  for (const child of children) {
    try { process.kill(child.pid, child.endSignal); } catch { /* already gone */ }
  }
  for (const action of exitActions) {
    try { action(); } catch { /* the process is ending */ }
  }
  if (tempDirs.size > 0) spawn('sh', ['-c', REMOVE, 'sh', ...tempDirs], { detached: true, stdio: 'ignore' }).unref();
});
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => process.exit(1));

export const onExit = (action) => exitActions.add(action);
export const offExit = (action) => exitActions.delete(action);

export function tempDir() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-'));
  tempDirs.add(dir);
  return dir;
}

export function removeTempDir(dir) {
  fs.rmSync(dir, { recursive: true, force: true });
  tempDirs.delete(dir);
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Calls `probe` until it returns a truthy value; throws after `timeoutMs`.  The default claims nothing about time: it is far
// beyond what a busy machine needs.  A test passes a shorter one only where what it waits for would come later by itself;
// assertTook makes claims about time.  Without `stepMs`, pauses between two calls grow from 20 to 200 ms, a tenth of the
// time so far, since a probe may be a request or a process, and others need the processor.
export async function until(what, probe, timeoutMs = 120_000, stepMs = undefined) {
  const began = Date.now();
  for (;;) {
    const found = await probe();
    if (found) return found;
    const elapsedMs = Date.now() - began;
    assert.ok(elapsedMs < timeoutMs, `waited ${timeoutMs} ms in vain until ${what}`);
    await sleep(stepMs ?? Math.min(200, Math.max(20, elapsedMs / 10)));
  }
}

// A claim about the time that something took.  A busy machine may stop any process for seconds, so only `make soak`
// (HF_SOAK=1), which has the machine to itself, makes such claims.  Everywhere else the claim is that the awaited event came.
export function assertTook(ms, limitMs, what) {
  if (process.env.HF_SOAK === '1') assert.ok(ms < limitMs, `${what} took ${Math.round(ms)} ms, not less than ${limitMs} ms`);
}

// Calls `work(ttlMs)`, which makes something that lasts for so long and is done with it before its end.  A machine that stood
// still for longer is no reason to fail: then it is called again, with a longer TTL, or with the same one if `factor` is 1.
// Resolves to what `work` does.
export async function inTime(work, ttlMs = 2500, factor = 3) {
  for (let tries = 4, lastMs = ttlMs; ; tries--, lastMs *= factor) {
    const began = performance.now();
    const [{ status, value, reason }] = await Promise.allSettled([work(lastMs)]);
    const tookMs = performance.now() - began;
    if (tookMs < lastMs && status === 'fulfilled') return value;
    if (tookMs < lastMs) throw reason;
    assert.ok(tries > 1, `it took ${Math.round(tookMs)} ms, not less than ${lastMs} ms: ${reason ?? ''}`);
  }
}

// Calls an async worker for every item, with at most `limit` calls at a time.
export async function pool(items, limit, work) {
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const index = next++;
      await work(items[index], index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
}

// ---- processes ----

// Options of the sqlite3 program: it waits for whoever has the file locked.
export const SQLITE_WAITS = ['-cmd', '.timeout 20000'];

// The variable that adds options of the address sanitizer.
export const sanitizer = (...options) => ({ ASAN_OPTIONS: [process.env.ASAN_OPTIONS, ...options].filter(Boolean).join(':') });
// For servers whose memory is measured: the sanitizer keeps 256 MB of what they have freed, and some of each thread's, unless it is told otherwise.
export const RETURNS_MEMORY = sanitizer('quarantine_size_mb=0', 'thread_local_quarantine_size_kb=0');

// `leaks`: a search for leaks at the end, which takes seconds unless the program leaves nothing (leaks.c).
// Settings of the tests themselves are not passed on: the programs would warn of variables that they do not know.
export function environment(env, leaks) {
  const full = { ...process.env, HOLDFAST_TEST_BACKEND: undefined, HOLDFAST_TEST_TLS: undefined, ...env };
  return leaks ? full : { ...full, ASAN_OPTIONS: [full.ASAN_OPTIONS, 'detect_leaks=0'].filter(Boolean).join(':') };
}

// Starts a program and remembers it.  `done` resolves to { code, signal }.  `endSignal` ends the program if it
// is still running after the tests.
export function launch(command, args, { endSignal = 'SIGKILL', ...options } = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  child.endSignal = endSignal;
  const run = { child, pid: child.pid, stdout: '', stderr: '', ended: null };
  children.add(child);
  child.stdout?.setEncoding('utf8').on('data', (data) => { run.stdout += data; }); // a character may come in two pieces
  child.stderr?.setEncoding('utf8').on('data', (data) => { run.stderr += data; });
  run.done = new Promise((resolve, reject) => {
    child.once('error', (error) => { children.delete(child); reject(error); });
    child.once('close', (code, signal) => {
      children.delete(child);
      run.ended = { code, signal };
      resolve(run.ended);
    });
  });
  run.done.catch(() => {});
  return run;
}

// Starts scripts/server, which knows how each kind of server is started: launchServer('redis', dir, port, '--databases', '64').
export const launchServer = (kind, dir, ...words) => launchServerIn({}, kind, dir, ...words);
// The same with variables for its environment.
export function launchServerIn({ LD_PRELOAD, ...env }, kind, dir, ...words) {
  return launch(SERVER, [kind, dir, ...words.map(String)],
    { endSignal: kind === 'postgres' ? 'SIGQUIT' : 'SIGKILL', env: { ...process.env, ...env, SERVER_FOR_TESTS: '1', SERVER_PRELOAD: LD_PRELOAD } });
}

// Ends the processes that failed tests left running, except those passed to `keepToTheEnd`.  For the `after`
// of a suite whose tests start servers: an open connection to one of them would keep the test process alive.
export async function reap() {
  const mine = [...children].filter((child) => !child.lasting);
  for (const child of mine) child.kill(child.endSignal);
  await until('the processes are gone', () => mine.every((child) => !children.has(child)));
}

// Keeps a process until the test process ends, without keeping the test process alive.
export function keepToTheEnd(run) {
  run.child.lasting = true;
  run.child.unref();
  run.child.stdout?.unref?.();
  run.child.stderr?.unref?.();
}

export function assertCleanStderr(stderr) {
  assert.ok(!SANITIZER.test(stderr), `a sanitizer reports:\n${stderr.slice(-8000)}`);
}

// Whether the process does not exist, or is a zombie that its parent has not waited for.
export function isGone(pid) {
  try {
    return /^State:\s+[ZX]/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}
export const gone = (pid, timeoutMs) => until(`process ${pid} is gone`, () => isGone(pid), timeoutMs);

function standsStill(pid, thread) {
  try {
    return /\) T /.test(fs.readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'));
  } catch {
    return true; // it has just ended
  }
}

// Stops a process where it is, and waits until each of its threads stands still: until one of them has taken the signal, on a busy
// machine after many milliseconds, the others go on.
export const standStill = (pid) => until(`process ${pid} stands still`, () => {
  process.kill(pid, 'SIGSTOP');
  return fs.readdirSync(`/proc/${pid}/task`).every((thread) => standsStill(pid, thread));
});

// Whether the TCP port is free; then it belongs to this test process until that ends, and no other test gets
// it, though nothing may listen on it for a while.  What claims it is a UDP socket with the same number, as in
// tests/support/port.c.
export async function claimPort(port) {
  const bound = (socket, begin) => new Promise((resolve) => {
    socket.once('error', () => resolve(false));
    begin(() => resolve(true));
  });
  const claim = dgram.createSocket('udp4');
  if (!await bound(claim, (done) => claim.bind({ port, address: '127.0.0.1', exclusive: true }, done))) return false;
  const probe = net.createServer();
  const free = await bound(probe, (done) => probe.listen(port, '127.0.0.1', done));
  if (!free) {
    claim.close();
    return false;
  }
  claim.unref();
  await new Promise((resolve) => probe.close(resolve));
  return true;
}

// Returns a free port below the ephemeral range: the tests make thousands of outgoing connections, and the
// kernel could assign the port to one of them before the server listens.
export async function freePort() {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 20_000);
    if (await claimPort(port)) return port;
  }
}
