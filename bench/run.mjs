// bench/run [--only ROW,...] [--rounds N] [--seconds S] [--json FILE]
//           [--build DIR] [--http-threads N]
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
import { best, snapshot, streams } from './rows_api.mjs';
import { locks } from './rows_locks.mjs';
import { scale } from './rows_scale.mjs';
import { directories, spentUs, stopAll } from './servers.mjs';
import { judge, median, render } from './table.mjs';

const rows = { contended, distinct, growth, expiry, best, streams, snapshot, locks, scale };

const TMPFS_MAGIC = 0x01021994;
const RUN_MAX_MS = 30 * 60_000;
const OTHERS_MAX = 15; // percent; kernel threads take a few even on an idle machine

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
        build: { type: 'string', default: fileURLToPath(new URL('../build', import.meta.url)) },
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
    rounds: whole('rounds', 99),
    seconds: whole('seconds', 30),
    httpThreads: whole('http-threads', 64),
  };
}

function need(bench) {
  const peers = ['wrk', 'redis-server', 'redis-benchmark', 'psql', 'pgbench'];
  const missing = peers.filter((program) => {
    try {
      execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
      return false;
    } catch {
      return true;
    }
  });
  const built = ['holdfastd', 'bench/bare', 'bench/leases', 'bench/peer', 'bench/streams']
    .map((file) => join(bench.build, file));
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

async function main() {
  const bench = options();
  need(bench);
  const root = join(bench.build, 'bench-data');
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  const made = [root];
  bench.directory = directories(root, made);
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
  setTimeout(() => {
    console.error(`bench/run: not finished after ${RUN_MAX_MS / 60_000} minutes`);
    end(1);
  }, RUN_MAX_MS).unref();

  try {
    const where = machine(root);
    const lines = [];
    for (const name of bench.only) lines.push(...(await rows[name](bench)).map(judge));
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
