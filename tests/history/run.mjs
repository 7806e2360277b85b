// Runs one part of a history: processes that take and hold locks (worker.c) while one fault after the other
// happens to them and to what they depend on, and then judges what they wrote down (check.mjs).
//
// HF_HISTORY_S is the length of one history (8), HF_HISTORY_SEED repeats the order of faults, HF_HISTORY_TRACE prints
// them as they happen.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { environment, HOLDFAST, launch, sleep, tempDir } from '../support/server.mjs';
import { fenceErrors, losses, overlaps, readGrants } from './check.mjs';

const WORKER = path.join(path.dirname(HOLDFAST), 'tests/history/worker');
export const SECONDS = Number(process.env.HF_HISTORY_S || 8);
export const SEED = Number(process.env.HF_HISTORY_SEED || Date.now() % 1_000_000);
const NAMES = 2;

// A small generator, so that a seed repeats the order of faults.  random(n) is from 0 to n - 1.
function generator(seed) {
  let state = seed >>> 0 || 1;
  return (n) => {
    state ^= state << 13; state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5; state >>>= 0;
    return state % n;
  };
}

// Microseconds of CLOCK_BOOTTIME, which the workers use.
const bootUs = () => Math.round(Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1e6);

class Workers {
  #runs = [];
  #started = 0;

  constructor(url, dir, seconds, { ttlMs, threads = 2 }, extra) {
    Object.assign(this, { url, dir, ttlMs, threads, extra });
    this.endMs = Date.now() + seconds * 1000;
  }

  add(n) { for (let i = 0; i < n; i++) this.#runs.push(this.#start()); }

  #start() {
    const id = this.#started++;
    const seconds = Math.max(1, Math.ceil((this.endMs - Date.now()) / 1000));
    return launch(WORKER, [this.url, path.join(this.dir, `${id}.log`), `${SEED + id}`, `${seconds}`, `${this.ttlMs}`,
      `${this.threads}`, `${NAMES}`, ...this.extra], { env: environment({}, false) });
  }

  async pause(random) {
    const run = this.#runs[random(this.#runs.length)];
    if (run.ended) return;
    run.child.kill('SIGSTOP');
    await sleep(random(2 * this.ttlMs));
    if (!run.ended) run.child.kill('SIGCONT');
  }

  // Stops a holder until somebody else has had time to get its lock.
  async pauseHolder() {
    for (const [i, run] of this.#runs.entries()) {
      if (run.ended) continue;
      run.child.kill('SIGSTOP');
      const [mine] = readGrants(this.dir, `${i}.log`).slice(-1);
      const isOurs = mine && bootUs() - mine.end < this.ttlMs * 1000;
      const isNext = ({ id, name, start }) => id !== mine.id && name === mine.name && start > mine.end;
      for (const endMs = Date.now() + 10 * this.ttlMs; isOurs && Date.now() < endMs && !readGrants(this.dir).some(isNext);) await sleep(50);
      run.child.kill('SIGCONT');
      if (isOurs) return;
    }
  }

  async kill(random) {
    const i = random(this.#runs.length);
    this.#runs[i].child.kill('SIGKILL');
    await this.#runs[i].done;
    if (Date.now() < this.endMs - 1000) this.#runs[i] = this.#start();
  }

  // Has them end before their time; one that has just been started ends at once.
  stop() { for (const { ended, child } of this.#runs) if (!ended) child.kill('SIGTERM'); }

  // Ends with the last of them.  A worker that fails says why.
  async end() {
    for (const run of this.#runs) {
      const { code, signal } = await run.done;
      assert.ok(code === 0 || signal === 'SIGKILL' || signal === 'SIGTERM', `a worker ended with ${code ?? signal}:\n${run.stderr.slice(-4000)}`);
    }
  }
}

// Whether each name was granted after this moment.
function areGranted(dir, afterUs) {
  const names = new Set(readGrants(dir).filter(({ start }) => start > afterUs).map(({ name }) => name));
  return names.size === NAMES;
}

// One part of a history: workers for `seconds`, and one fault after the other until `quietS` before their end.  With
// `settleS` they end earlier, as soon as each lock was granted again so long after the last fault.  Without
// `faults` there is one kind: a holder does not notice that it holds its lock no longer, until somebody else has it.
// `settings` has ttlMs, threads (2) and processes (3: one that holds a lock, one that waits for it, one that a fault has struck).
// lastFaultUs is when the last fault had passed, on the clock of the grants.
export async function part(settings, url, faults, seconds, { extra = [], quietS = 1.5, settleS } = {}) {
  const dir = tempDir(), random = generator(SEED);
  const workers = new Workers(url, dir, seconds, settings, extra);
  workers.add(settings.processes ?? 3);
  const kinds = faults ? { ...faults, 'pause a worker': () => workers.pause(random) } : { 'pause a holder': () => workers.pauseHolder() };
  if (faults && (settings.processes ?? 3) > 1) kinds['kill a worker'] = () => workers.kill(random);
  const counts = {}, begunMs = Date.now();
  const rest = () => sleep(random(2 * settings.ttlMs));
  await sleep(500);
  for (let names = []; Date.now() < workers.endMs - quietS * 1000; await sleep(200 + random(400))) {
    if (names.length === 0) names = Object.keys(kinds); // each kind once, then each again
    const [name] = names.splice(random(names.length), 1);
    counts[name] = (counts[name] ?? 0) + 1;
    if (process.env.HF_HISTORY_TRACE) console.error(`${((Date.now() - begunMs) / 1000).toFixed(1)} s: ${name}`);
    await kinds[name](rest, random);
  }
  const lastFaultUs = bootUs();
  if (settleS) {
    while (Date.now() < workers.endMs && !areGranted(dir, lastFaultUs + settleS * 1e6)) await sleep(250);
    workers.stop();
  }
  await workers.end();
  const grants = readGrants(dir);
  return { grants, counts, lastFaultUs, overlaps: overlaps(grants), fenceErrors: fenceErrors(grants), losses: losses(grants) };
}

export const counted = ({ grants, counts }) => `${grants.length} grants; ${Object.entries(counts).map(([name, n]) => `${n} x ${name}`).join(', ')}`;

