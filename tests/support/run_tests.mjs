// Runs tests, each in a process group of its own, and judges them: the C tests (tests/*/test_*.c and tests/fuzz/fuzz_*.c,
// whose executables are in DIR) and the black-box suites (tests/*/*.test.mjs).  All of them come out of one queue, the longest first.
//
//   node tests/support/run_tests.mjs [--dir DIR]             every C test, and every suite on each back end that it
//                                                            declares
//   node tests/support/run_tests.mjs [--dir DIR] FILE...     these; a suite on HOLDFAST_TEST_BACKEND, or else on the
//                                                            first back end that it declares
//   --stops N                                                each of them N times, a round after the other, while its
//                                                            processes are stopped at random (stop_at_random)
//
// tests/run calls this with the environment that the tests need; --programs is explained there.
//
// A suite declares in the comment at its top where it runs, and how long it may take if the default is
// too short:
//
//   // backends: sqlite postgres cluster      (backend.mjs explains these three)
//   // backends: own                          (the suite starts every server it needs by itself)
//   // time limit: 600 s
//
// A file without a declaration is a failure, so a new suite cannot be skipped by mistake.  A test that exceeds its
// limit is stopped together with the servers it started, named, and counted as one failure; the run goes on.  A
// crash, a sanitizer's report, a server left running and a file without tests are failures, and so is a run of no
// tests at all.  Tests that are skipped are listed, those of suites with their reasons.
//
// The output of a failing test is printed in full.  What failed is said again at the end, with the command that runs
// it alone, so that nobody has to search a long output for it; the last line is `N passed, N failed`.
//
// DIR/test-times.json remembers how long each test took.  TEST_CONCURRENCY is the number of tests at a time;
// without it, that number follows the processors.  TEST_TIME_FACTOR (1) multiplies every limit.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const timeFactor = Number(process.env.TEST_TIME_FACTOR || 1);
const BACKENDS = ['sqlite', 'own', 'postgres', 'cluster'];
const LIMIT_S = { suite: 240, executable: 600 }; // longer than the waits in them
// How long a test is expected to take of which no time is remembered: as long as others of its folder, unless it is named.
const EXPECTED_S = { history: 100, lab: 45, web: 35, library: 30, conformance: 25, fault: 25, integration: 15, cli: 15, journal: 15, unit: 2, fuzz: 1, 'unit/test_cell_sim': 30 };
const EXPECTED_ELSEWHERE_S = 10;
const STOP_GRACE_MS = 10_000 * timeFactor; // from SIGTERM to SIGKILL
const LEAVE_GRACE_MS = 15_000 * timeFactor; // from the end of a test to the end of the servers it started, which were told to end with it
const OUTPUT_GRACE_MS = 10_000; // from there to the end of its output
const HEADER_LINES = 20;
const AGAIN_LINES = 40; // of a failing test, said again at the end
const SLOWEST = 10;
const PROGRESS_MS = 5000; // between progress lines in a file; a terminal has one that is overwritten each second

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// ---- which tests, where, for how long ----

const named = [];
const options = { '--dir': 'build', '--programs': '', '--stops': '0' };
for (const words = process.argv.slice(2); words.length > 0;) {
  const word = words.shift();
  if (word in options) options[word] = words.shift();
  else named.push(path.relative('.', word));
}
const dir = options['--dir'];
const nStops = Number(options['--stops']);
const only = process.env.HOLDFAST_TEST_BACKEND;

// Returns { backends, limitS }, or { problem } if the file does not say where it runs.
function declaration(file) {
  const header = fs.readFileSync(file, 'utf8').split('\n', HEADER_LINES).filter((line) => line.startsWith('//'));
  const find = (pattern) => header.map((line) => pattern.exec(line)?.[1]).find(Boolean);
  const backends = find(/^\/\/ backends: (.+)$/)?.trim().split(/\s+/);
  if (!backends) return { problem: `has no line "// backends: ..." (${BACKENDS.join(', ')}) at its top` };
  const unknown = backends.find((backend) => !BACKENDS.includes(backend));
  if (unknown) return { problem: `declares the unknown back end "${unknown}"` };
  return { backends, limitS: Number(find(/^\/\/ time limit: (\d+) s$/) ?? LIMIT_S.suite) };
}

// Coordinators of three servers (test_*_ensemble.c) take minutes: `make soak` runs them.
function allFiles() {
  const isTest = (file) => /^(?:test_.*(?<!_ensemble)\.c|fuzz_.*\.c|.*\.test\.mjs)$/.test(file);
  return fs.readdirSync('tests', { withFileTypes: true }).filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
    .flatMap(({ name }) => fs.readdirSync(`tests/${name}`).filter(isTest).map((file) => `tests/${name}/${file}`)).sort();
}

// A job is { test, name, command, limitS, env, judge, alone }: one run, called `name`, of a test; `judge` maps (output, exit
// status) to { passed, failed, skipped, problem }, and `alone` is the command that runs this test alone.

function executableJob(source) {
  const name = source.replace(/\.c$/, '');
  return {
    test: name,
    name,
    command: [path.resolve(dir, name)],
    limitS: LIMIT_S.executable,
    judge: judgeExecutable,
    alone: `tests/run --c ${source} ${dir}`, // with the sanitizers' settings; `make check` does not search for leaks
  };
}

function suiteJob(file, backend, limitS) {
  const own = backend === 'own';
  const where = own ? '' : `HOLDFAST_TEST_BACKEND=${backend} `;
  const programs = options['--programs'] && ` --programs ${options['--programs']}`;
  const name = `${file}${own ? '' : ` on ${backend}`}`;
  return {
    test: name,
    name,
    command: [process.execPath, '--test-reporter=spec', file],
    limitS,
    env: { HOLDFAST_TEST_BACKEND: own ? 'sqlite' : backend },
    judge: judgeSuite,
    alone: `${where}tests/run --node ${file}${programs} ${dir}`,
  };
}

// Returns the jobs of a file, or a problem.
function jobsOf(file) {
  if (!fs.existsSync(file)) return { problem: 'does not exist' };
  if (file.endsWith('.c')) return { jobs: [executableJob(file)] };
  const { problem, backends, limitS } = declaration(file);
  if (problem) return { problem };
  const chosen = only ? backends.filter((each) => each === only) : named.length > 0 ? backends.slice(0, 1) : backends;
  return { jobs: chosen.map((backend) => suiteJob(file, backend, limitS)) };
}

const STOP_AT_RANDOM = fileURLToPath(new URL('stop_at_random', import.meta.url));
const STOPPED_FACTOR = 3; // its processes stand still for half of the time or so

const stopped = (job, round) => ({
  ...job,
  name: `${job.name}, stopped (${round} of ${nStops})`,
  command: [STOP_AT_RANDOM, ...job.command],
  limitS: STOPPED_FACTOR * job.limitS,
  alone: `${job.alone} --stops 1`,
});

// ---- judging ----

const count = (output, pattern) => output.match(pattern)?.length ?? 0;

function judgeExecutable(output, status) {
  const passed = count(output, /^\[ {7}OK \]/gm);
  const skipped = [...new Set([...output.matchAll(/^\[ {2}SKIPPED \] (\w+)$/gm)].map(([, name]) => name))]; // cmocka names each again at its end
  const failed = count(output, /^\[ RUN {6}\]/gm) - passed - skipped.length;
  if (status !== 0) return { passed, failed: Math.max(failed, 1), skipped, problem: `exit status ${status}` };
  if (passed + failed + skipped.length <= 0) return { passed, failed: 1, skipped, problem: 'has no tests' };
  return { passed, failed: Math.max(failed, 0), skipped };
}

function judgeSuite(output, status) {
  const counter = (what) => Number(output.match(new RegExp(`^ℹ ${what} (\\d+)$`, 'm'))?.[1] ?? 0);
  const skipped = [...output.matchAll(/^\s*﹣ (.*?) \([\d.]+ms\) # (.*)$/gm)].map(([, name, reason]) => `${name} (${reason})`);
  const passed = counter('pass');
  const failed = counter('fail') + counter('cancelled');
  if (status !== 0 && failed === 0) return { passed, failed: 1, skipped, problem: `exit status ${status}, though no test failed` };
  if (passed + failed + skipped.length === 0) return { passed, failed: 1, skipped, problem: 'has no tests' };
  return { passed, failed, skipped };
}

// ---- one test ----

const running = new Map(); // process group -> { job, began } of the tests under way
let isStopped = false; // by a signal: no other test begins

// The living members of a process group, as { pid, name }.
function membersOf(group) {
  const members = [];
  for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const [, name, state, pgrp] = /^\d+ \((.*)\) (\S) \d+ (\d+)/s.exec(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'));
      if (Number(pgrp) === group && !'ZX'.includes(state)) members.push({ pid: Number(pid), name });
    } catch { /* it has just ended */ }
  }
  return members;
}

function signalGroup(group, signal) {
  try { process.kill(-group, signal); } catch { /* it is gone */ }
}

async function groupIsGone(group, timeoutMs) {
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await sleep(50)) {
    if (membersOf(group).length === 0) return true;
  }
  return false;
}

// Stops the test and all the servers it started.
async function stopGroup(group) {
  signalGroup(group, 'SIGTERM');
  if (!await groupIsGone(group, STOP_GRACE_MS)) signalGroup(group, 'SIGKILL');
}

// Resolves to { passed, failed, skipped: [text], problem: text or undefined, output, seconds }.
async function runJob(job) {
  const began = performance.now();
  const child = spawn(job.command[0], job.command.slice(1), {
    detached: true, // a process group of its own, so that all of it can be stopped
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...job.env },
  });
  const cannotStart = await once(child, 'spawn').then(() => '', (error) => error.message);
  if (cannotStart) return { passed: 0, failed: 1, skipped: [], problem: cannotStart, output: '', seconds: 0 };
  running.set(child.pid, { job, began });
  let output = '';
  const texts = { stdout: '', stderr: '' }; // for the judge, since a line of one may be in the middle of a line of the other
  for (const name of Object.keys(texts)) {
    child[name].setEncoding('utf8').on('data', (data) => {
      output += data;
      texts[name] += data;
    });
  }
  const limitS = job.limitS * timeFactor;
  let problem;
  const timer = setTimeout(() => {
    problem = `exceeded its limit of ${limitS} s and was stopped`;
    stopGroup(child.pid);
  }, limitS * 1000);
  const outputIsComplete = once(child, 'close');
  const [code, signal] = await once(child, 'exit');
  clearTimeout(timer);
  if (!await groupIsGone(child.pid, problem ? STOP_GRACE_MS + 1000 : LEAVE_GRACE_MS)) {
    const left = membersOf(child.pid).map(({ pid, name }) => `${name} (${pid})`).join(', ');
    signalGroup(child.pid, 'SIGKILL');
    problem ??= `left processes behind: ${left}`;
  }
  running.delete(child.pid);
  const grace = setTimeout(() => child.emit('close'), OUTPUT_GRACE_MS); // a process outside the group may keep the pipes open
  await outputIsComplete;
  clearTimeout(grace);
  const verdict = { skipped: [], ...job.judge(`${texts.stdout}\n${texts.stderr}`, code ?? 128 + os.constants.signals[signal]) };
  if (problem) Object.assign(verdict, { problem, failed: Math.max(verdict.failed, 1) });
  return { ...verdict, output, seconds: (performance.now() - began) / 1000 };
}

// ---- reports ----

const total = { passed: 0, failed: 0, skipped: 0 };
const failures = []; // what is said again at the end
const done = []; // { name, seconds, failed }
const began = performance.now();

// What says why in the output of a test that failed; or else the end of the output.
function reasons(output) {
  const lines = output.trimEnd().split('\n');
  const at = lines.lastIndexOf('✖ failing tests:'); // Node's reporter
  const cLines = lines.filter((line) => /^\[ {2}(ERROR|FAILED) |error: Failure|Sanitizer|this must hold/.test(line));
  return (at >= 0 ? lines.slice(at + 1) : cLines.length > 0 ? cLines : lines.slice(-AGAIN_LINES)).slice(0, AGAIN_LINES).join('\n');
}

function report(job, { passed, failed, skipped, output, seconds, problem }, inFull) {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped.length;
  done.push({ name: job.name, seconds, failed });
  const counts = [`${passed} passed`, failed && `${failed} failed`, skipped.length && `${skipped.length} skipped`].filter(Boolean).join(', ');
  if (failed > 0) {
    const head = `--- ${job.name}: FAILED${problem ? `: ${problem}` : ''}`;
    say(`${head}\n${output}---`);
    failures.push(`${head}\n${reasons(output)}\nalone: ${job.alone}\n---`);
  } else if (inFull) say(output);
  say(`${job.name}: ${counts}, ${seconds.toFixed(1)} s`);
  for (const text of skipped) say(`    skipped: ${text}`);
}

function refuse(file, problem) {
  total.failed++;
  failures.push(`--- ${file}: FAILED: ${problem}`);
}

const onTerminal = process.stdout.isTTY;
const say = (text) => console.log(onTerminal ? `\r\x1b[K${text}` : text);

const clock = (seconds) => `${Math.floor(Math.round(seconds) / 60)}:${String(Math.round(seconds) % 60).padStart(2, '0')}`;

// One line about the whole run.  The rest takes as long as the remaining tests are expected to take one after the other,
// divided by the number of tests that ran at a time so far.
function progress(queue) {
  const now = performance.now();
  const elapsed = (each) => (now - each.began) / 1000;
  const underWay = [...running.values()];
  const left = underWay.map((each) => Math.max(0, expectedS(each.job) - elapsed(each)));
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const atATime = (sum(done.map(({ seconds }) => seconds)) + sum(underWay.map(elapsed))) / ((now - began) / 1000);
  const restS = Math.max(0, ...left, (sum(left) + sum(queue.map(expectedS))) / Math.max(1, atATime));
  const end = new Date(Date.now() + restS * 1000).toTimeString().slice(0, 5);
  return `[${done.length} done, ${done.filter(({ failed }) => failed > 0).length} failed, ${underWay.length} running, ${queue.length} to go; `
    + `${clock((now - began) / 1000)} so far, about ${clock(restS)} to the end at ${end}]`;
}

// ---- the times of the last run ----

const timesFile = path.join(dir, 'test-times.json');
let times = {};
try { times = JSON.parse(fs.readFileSync(timesFile, 'utf8')); } catch { /* the first run */ }

const expectedS = ({ test: name }) => times[name] ?? EXPECTED_S[name.slice('tests/'.length)] ?? EXPECTED_S[name.split('/')[1]] ?? EXPECTED_ELSEWHERE_S;

function rememberTimes() {
  for (const { name, seconds } of done) times[name] = Number(seconds.toFixed(1));
  try { fs.writeFileSync(timesFile, `${JSON.stringify(times, null, 1)}\n`); } catch { /* there is no such directory */ }
}

// ---- all of them ----

// How many tests run at a time: most of them wait for something most of the time, so three on each processor, and more
// while processors are idle, which they are now and then.
class Width {
  #fixed = Number(process.env.TEST_CONCURRENCY || 0);
  #least = Math.min(16, 3 * os.cpus().length);
  #now = this.#fixed || this.#least;
  #before = os.cpus();
  #idle = 0; // the part of the last ten seconds or so in which processors had nothing to do

  get now() { return this.#now; }

  // Called once per second.
  adapt(isFull) {
    const cpus = os.cpus();
    const spent = (of) => cpus.reduce((sum, { times: t }, i) => sum + of(t) - of(this.#before[i]?.times ?? t), 0);
    const idle = spent((t) => t.idle) / Math.max(1, spent((t) => t.idle + t.user + t.nice + t.sys + t.irq));
    this.#before = cpus;
    this.#idle += (idle - this.#idle) / 10;
    if (this.#fixed) return;
    if (this.#idle > 0.04 && idle > 0.04 && isFull && this.#now < 3 * this.#least) this.#now++;
    else if (this.#idle < 0.01 && this.#now > this.#least) this.#now--;
  }
}

async function runAll(jobs, inFull) {
  const queue = [...jobs].sort((a, b) => expectedS(b) - expectedS(a));
  const width = new Width();
  let active = 0;
  let finish;
  const finished = new Promise((resolve) => { finish = resolve; });
  const startSome = () => {
    while (!isStopped && queue.length > 0 && active < width.now) {
      const job = queue.shift();
      active++;
      runJob(job).then((result) => {
        report(job, result, inFull);
        active--;
        startSome();
      });
    }
    if (active === 0) finish();
  };
  let shown = performance.now();
  const ticker = setInterval(() => {
    width.adapt(active === width.now);
    startSome();
    if (onTerminal) process.stdout.write(`\r\x1b[K${progress(queue)}`);
    else if (performance.now() - shown >= PROGRESS_MS) {
      shown = performance.now();
      say(progress(queue));
    }
  }, 1000);
  startSome();
  await finished;
  clearInterval(ticker);
}

// What tests leave behind, since they kill programs at any moment, goes with this directory.  Servers may run as another user.
const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'hf-')); // short: it is part of the paths of sockets
fs.chmodSync(temporary, 0o755);
process.env.TMPDIR = temporary;
process.on('exit', () => {
  try { fs.rmSync(temporary, { recursive: true, force: true, maxRetries: 5 }); } catch { /* a program that left its process group writes to it */ }
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, async () => {
    isStopped = true;
    say(`stopped by ${signal}`);
    await Promise.all([...running.keys()].map(stopGroup));
    process.exit(1);
  });
}

const jobs = [];
for (const file of named.length > 0 ? named : allFiles()) {
  const found = jobsOf(file);
  if (found.problem) refuse(file, found.problem);
  else jobs.push(...found.jobs);
}
if (nStops === 0) {
  await runAll(jobs, named.length === 1);
  rememberTimes();
}
for (let round = 1; round <= nStops && !isStopped; round++) await runAll(jobs.map((job) => stopped(job, round)), false);
if (done.length > 1) {
  console.log(`the slowest of ${done.length}:`);
  for (const { name, seconds } of [...done].sort((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)) console.log(`${seconds.toFixed(1).padStart(8)} s  ${name}`);
}
for (const failure of failures) console.log(failure);
if (total.skipped > 0) console.log(`${total.skipped} skipped`);
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;
