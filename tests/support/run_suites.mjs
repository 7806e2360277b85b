// Runs black-box suites, each file in a Node process of its own, four files at a time: most of them wait for
// something most of the time.
//
//   node tests/support/run_suites.mjs              every tests/*/*.test.mjs, on each back end that it declares
//   node tests/support/run_suites.mjs FILE...      these files, on HOLDFAST_TEST_BACKEND, or else on the first
//                                                  back end that each declares
//
// A suite declares in the comment at its top where it runs, and how long it may take if the default is
// too short:
//
//   // backends: sqlite postgres cluster      (backend.mjs explains these three)
//   // backends: own                          (the suite starts every server it needs by itself)
//   // time limit: 600 s
//
// A file without a declaration is a failure, so a new suite cannot be skipped by mistake.  A file that
// exceeds its limit is stopped together with the servers it started, named, and counted as one failure;
// the run goes on.  Tests that are skipped are listed with their reasons.  What failed is said again at
// the end, so that nobody has to search a long output for it; the last line of the output is
// `suites: N passed, N failed, N skipped`.
//
// TEST_CONCURRENCY (4) is the number of files at a time; TEST_TIME_FACTOR (1) multiplies every limit.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';

const BACKENDS = ['sqlite', 'own', 'postgres', 'cluster']; // in this order
const LIMIT_S = 240;
const STOP_GRACE_MS = 10_000; // from SIGTERM to SIGKILL
const LEAVE_GRACE_MS = 15_000; // from the end of a suite to the end of the servers it started, which were told to end with it
const OUTPUT_GRACE_MS = 10_000; // from there to the end of its output
const HEADER_LINES = 20;
const AGAIN_LINES = 40; // of a failing suite, said again at the end

const concurrency = Number(process.env.TEST_CONCURRENCY || 4);
const timeFactor = Number(process.env.TEST_TIME_FACTOR || 1);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// ---- which files, where, for how long ----

// Returns { backends, limitS }, or { problem } if the file does not say where it runs.
function declaration(file) {
  const header = fs.readFileSync(file, 'utf8').split('\n', HEADER_LINES).filter((line) => line.startsWith('//'));
  const find = (pattern) => header.map((line) => pattern.exec(line)?.[1]).find(Boolean);
  const backends = find(/^\/\/ backends: (.+)$/)?.trim().split(/\s+/);
  if (!backends) return { problem: `has no line "// backends: ..." (${BACKENDS.join(', ')}) at its top` };
  const unknown = backends.find((backend) => !BACKENDS.includes(backend));
  if (unknown) return { problem: `declares the unknown back end "${unknown}"` };
  return { backends, limitS: Number(find(/^\/\/ time limit: (\d+) s$/) ?? LIMIT_S) * timeFactor };
}

function allSuites() {
  return fs.readdirSync('tests', { withFileTypes: true }).filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
    .flatMap(({ name }) => fs.readdirSync(`tests/${name}`).filter((file) => file.endsWith('.test.mjs')).map((file) => `tests/${name}/${file}`))
    .sort();
}

// ---- one file ----

const running = new Set(); // process groups of the suites under way

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

// Stops the suite and all the servers it started.
async function stopGroup(group) {
  signalGroup(group, 'SIGTERM');
  if (!await groupIsGone(group, STOP_GRACE_MS)) signalGroup(group, 'SIGKILL');
}

// Resolves to { file, backend, passed, failed, skipped: [text], output, seconds, problem: text or undefined }.
async function runFile({ file, backend, limitS }) {
  const began = performance.now();
  const child = spawn(process.execPath, ['--test-reporter=spec', file], {
    detached: true, // a process group of its own, so that all of it can be stopped
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOLDFAST_TEST_BACKEND: backend === 'own' ? 'sqlite' : backend },
  });
  running.add(child.pid);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (data) => { output += data; });
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
  await Promise.race([outputIsComplete, sleep(OUTPUT_GRACE_MS)]);
  return { file, backend, output, seconds: (performance.now() - began) / 1000, ...judge(output, code ?? signal, problem) };
}

function judge(output, ended, problem) {
  const count = (what) => Number(output.match(new RegExp(`^ℹ ${what} (\\d+)$`, 'm'))?.[1] ?? 0);
  const skipped = [...output.matchAll(/^\s*﹣ (.*?) \([\d.]+ms\) # (.*)$/gm)].map(([, name, reason]) => `${name} (${reason})`);
  const passed = count('pass');
  let failed = count('fail') + count('cancelled');
  if (!problem && ended !== 0 && failed === 0) problem = `ended with ${ended}, though no test failed`;
  if (!problem && passed + failed + skipped.length === 0) problem = 'has no tests';
  if (problem) failed++;
  return { passed, failed, skipped, problem };
}

// ---- all of them ----

const total = { passed: 0, failed: 0, skipped: 0 };
const failures = []; // what is said again at the end

// What Node's reporter says of the tests that failed; or else the end of the output.
function failing(output) {
  const lines = output.trimEnd().split('\n');
  const at = lines.lastIndexOf('✖ failing tests:');
  return (at < 0 ? lines.slice(-AGAIN_LINES) : lines.slice(at + 1, at + 1 + AGAIN_LINES)).join('\n');
}

function report({ file, backend, passed, failed, skipped, output, seconds, problem }, inFull) {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped.length;
  const counts = [`${passed} passed`, failed && `${failed} failed`, skipped.length && `${skipped.length} skipped`].filter(Boolean).join(', ');
  const where = `${file}${backend === 'own' ? '' : ` on ${backend}`}`;
  if (failed > 0) {
    const head = `--- ${where}: FAILED${problem ? `: ${problem}` : ''}`;
    console.log(`${head}\n${output}---`);
    failures.push(`${head}\n${failing(output)}\n---`);
  } else if (inFull) console.log(output);
  console.log(`${where}: ${counts}, ${seconds.toFixed(1)} s`);
  for (const text of skipped) console.log(`    skipped: ${text}`);
}

function refuse(file, problem) {
  total.failed++;
  failures.push(`--- ${file}: FAILED: ${problem}`);
}

async function runAll(jobs, inFull) {
  const queue = [...jobs];
  const lane = async () => { for (let job = queue.shift(); job; job = queue.shift()) report(await runFile(job), inFull); };
  await Promise.all(Array.from({ length: Math.min(concurrency, jobs.length) }, lane));
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, async () => {
    console.log(`stopped by ${signal}`);
    await Promise.all([...running].map(stopGroup));
    process.exit(1);
  });
}

const named = process.argv.slice(2).map((file) => path.relative('.', file));
const only = process.env.HOLDFAST_TEST_BACKEND;
const jobs = [];
for (const file of named.length > 0 ? named : allSuites()) {
  const { problem, backends, limitS } = fs.existsSync(file) ? declaration(file) : { problem: 'does not exist' };
  if (problem) refuse(file, problem);
  else for (const backend of only ? backends.filter((each) => each === only) : named.length > 0 ? backends.slice(0, 1) : backends) jobs.push({ file, backend, limitS });
}
await runAll(jobs.sort((a, b) => BACKENDS.indexOf(a.backend) - BACKENDS.indexOf(b.backend)), named.length === 1);
for (const failure of failures) console.log(failure);
console.log(`suites: ${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;
