// bench/run [--only ROW,...] [--rounds N] [--seconds S] [--json FILE]
//           [--build DIR] [--before DIR] [--http-threads N]
// Prints one table of ratios, ours beside the peers in the same run; see bench/README.md.

import { execFileSync } from 'node:child_process';
import {
  closeSync, existsSync, fsyncSync, mkdirSync, openSync, rmSync, statfsSync, writeFileSync,
  writeSync,
} from 'node:fs';
import { cpus, release } from 'node:os';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { stopLoads } from './load.mjs';
import { contended, distinct, expiry, growth } from './rows.mjs';
import { best, snapshot } from './rows_api.mjs';
import { cell } from './rows_cell.mjs';
import { checkout } from './rows_checkout.mjs';
import { clients } from './rows_clients.mjs';
import { idle, streams } from './rows_connections.mjs';
import { locks } from './rows_locks.mjs';
import { plans } from './rows_plans.mjs';
import { scale } from './rows_scale.mjs';
import { start } from './rows_start.mjs';
import { waits } from './rows_waits.mjs';
import { directories, spentUs, stopAll } from './servers.mjs';
import { judge, median, render } from './table.mjs';

const rows = {
  contended, distinct, growth, expiry, best, streams, idle, start, snapshot, locks, scale,
  checkout, plans, cell, clients, waits,
};

const TMPFS_MAGIC = 0x01021994;
const RUN_MAX_MS = 45 * 60_000; // per build
const OTHERS_MAX = 15; // percent; kernel threads take a few even on an idle machine

const here = fileURLToPath(new URL('../build', import.meta.url));

function usage(message) {
  console.error(`bench/run: ${message}`);
  process.exit(64);
}

function options() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        only: { type: 'string', default: Object.keys(rows).join(',') },
        rounds: { type: 'string', default: '3' },
        seconds: { type: 'string', default: '5' },
        json: { type: 'string' },
        build: { type: 'string', default: here },
        before: { type: 'string' },
        'http-threads': { type: 'string', default: String(cpus().length) },
      },
    }));
  } catch (error) {
    usage(error.message);
  }
  const whole = (name, max) => {
    const n = Number(values[name]);
    if (!Number.isInteger(n) || n < 1 || n > max) usage(`--${name} is a number from 1 to ${max}`);
    return n;
  };
  const only = values.only.split(',');
  for (const name of only) if (!(name in rows)) usage(`no row is called ${name}`);
  return {
    only,
    json: values.json && resolve(values.json),
    build: resolve(values.build),
    before: values.before && resolve(values.before),
    tools: join(here, 'bench'),
    rounds: whole('rounds', 99),
    seconds: whole('seconds', 30),
    httpThreads: whole('http-threads', 64),
  };
}

function need(bench) {
  const peers = ['python3', 'wrk', 'redis-server', 'redis-benchmark', 'psql', 'pgbench', 'etcd', 'java'];
  const missing = peers.filter((program) => {
    try {
      execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
      return false;
    } catch {
      return true;
    }
  });
  const tools = ['bare', 'buyers', 'calls', 'handover', 'idle', 'lock_pairs', 'loop', 'peer', 'provider', 'sessions',
    'streams']
    .map((file) => join(bench.tools, file));
  const built = [bench.build, ...(bench.before ? [bench.before] : [])].flatMap((directory) => (
    ['holdfast', 'holdfastd', 'bench/cached', 'bench/journal', 'bench/leases'].map((file) => join(directory, file)))).concat(tools);
  missing.push(...built.filter((file) => !existsSync(file)));
  if (missing.length) usage(`missing, and \`make bench\` would have it: ${missing.join(', ')}`);
}

// Measures a durable write to the disk, on which the distinct row depends.
function fsyncUs(directory) {
  const file = join(directory, 'fsync');
  const fd = openSync(file, 'w');
  const page = Buffer.alloc(4096, 1);
  const times = Array.from({ length: 200 }, () => {
    const start = performance.now();
    writeSync(fd, page);
    fsyncSync(fd);
    return (performance.now() - start) * 1000;
  });
  closeSync(fd);
  rmSync(file);
  return Math.round(median(times));
}

function machine(data) {
  const memory = statfsSync(data).type === TMPFS_MAGIC ? ' (in memory: no real fsync)' : '';
  const processors = `${cpus().length} x ${cpus()[0].model.trim()}`;
  return `${processors}, Linux ${release()}, 4 KiB write + fsync ${fsyncUs(data)} us${memory}`;
}

// The percentage of all cores that went to other processes.  Its servers must have stopped.
function othersShare(before, elapsedMs) {
  const after = spentUs();
  const others = after.all - before.all - (after.bench - before.bench);
  return Math.max(0, Math.round(others / (elapsedMs * 10 * cpus().length)));
}

// Adds the rounds of the same lines to those that were measured before.
function addRounds(lines, more) {
  if (!lines.length) return more;
  return lines.map((line, i) => ({
    ...line,
    ours: line.ours.concat(more[i].ours),
    peer: line.peer?.concat(more[i].peer),
  }));
}

// Measures a row.  With --before, both builds take turns, a round each, and a line has the rounds of the
// other build as `before`, if that build measures it.
async function measure(bench, row) {
  if (!bench.before) return row(bench);
  let [before, now] = [[], []];
  for (let round = 1; round <= bench.rounds; round++) {
    const one = (build, name) => row({
      ...bench, rounds: 1, build, isOlder: build === bench.before, progress: (what) => bench.progress(`${what}, ${name}`, round),
    });
    before = addRounds(before, await one(bench.before, 'before'));
    now = addRounds(now, await one(bench.build, 'now'));
  }
  const which = ({ name, unit, peerName }) => [name, unit, peerName].join();
  return now.map((line) => ({ ...line, before: before.find((other) => which(other) === which(line))?.ours }));
}

async function main() {
  const bench = options();
  need(bench);
  const root = join(bench.build, 'bench-data');
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  const made = [root];
  bench.directory = directories(root, made);
  const kept = new Map();
  bench.once = (name, make) => { // rows that are run several times keep what is expensive to make
    if (!kept.has(name)) kept.set(name, make());
    return kept.get(name);
  };
  const started = performance.now();
  const spent = spentUs();
  const elapsed = () => `${Math.round((performance.now() - started) / 1000)} s`;
  bench.progress = (name, round) => (
    process.stderr.write(`${elapsed().padStart(6)}  ${name}, round ${round} of ${bench.rounds}\n`));

  const end = async (code) => {
    stopLoads();
    await stopAll();
    for (const directory of made) rmSync(directory, { recursive: true, force: true });
    process.exit(code);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => end(1));
  const runMaxMs = RUN_MAX_MS * (bench.before ? 2 : 1);
  setTimeout(() => {
    console.error(`bench/run: not finished after ${runMaxMs / 60_000} minutes`);
    end(1);
  }, runMaxMs).unref();

  try {
    const where = machine(root);
    const lines = [];
    for (const name of bench.only) lines.push(...(await measure(bench, rows[name])).map(judge));
    const others = othersShare(spent, performance.now() - started);
    const how = `medians of ${bench.rounds} rounds, ${bench.seconds} s each; ${elapsed()} in all`;
    const doubt = others > OTHERS_MAX ? ': DO NOT TRUST THIS RUN' : '';
    console.log(`${where}\n${how}; others took ${others} % of the machine${doubt}\n`);
    console.log(render(lines));
    if (bench.json) {
      const facts = { machine: where, others, rounds: bench.rounds, seconds: bench.seconds, lines };
      writeFileSync(bench.json, `${JSON.stringify(facts, null, 1)}\n`);
    }
    await end(0);
  } catch (error) {
    console.error(`bench/run: ${error.message}`);
    await end(1);
  }
}

await main();
