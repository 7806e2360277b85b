// What the suites of `holdfast lab` share.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { isGone, tempDir, until } from './process.mjs';

// The anomalies, in their order.
export const ANOMALIES = ['naive-double-sale', 'deadlock', 'open-transaction', 'lost-commit', 'gate-flushed', 'ledger-fails', 'counter-crash',
  'counter-async', 'blind-delete', 'get-then-delete', 'blind-renewal', 'clock-skew', 'paused-holder', 'redis-failover', 'redlock-pause',
  'redlock-clock', 'redlock-restart', 'etcd-pause', 'zookeeper-pause'];

// Every file of the lab is in a directory of the test, which is also in the command line of each of its servers.
export function playground() {
  const dir = tempDir();
  fs.chmodSync(dir, 0o755); // the servers run as another user when the test runs as root
  const mentions = (pid) => {
    try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dir); } catch { return false; }
  };
  return {
    dir,
    env: { TMPDIR: dir },
    file: (name) => path.join(dir, name),
    processes: () => fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && mentions(name) && !isGone(name)),
    left: () => fs.readdirSync(dir),
  };
}

export async function nothingIsLeft(place) {
  await until('the processes are gone', () => place.processes().length === 0);
  await until('the directory is gone', () => place.left().length === 0);
}

export const soldOnce = ({ strategy, users, winners, double_sold: doubleSold, errors, verdict, why }) => assert.deepEqual(
  { strategy, users, winners, doubleSold, errors, verdict, why },
  { strategy, users, winners: 1, doubleSold: 0, errors: 0, verdict: 'correct', why: null });

function assertLatency(latency, n) {
  if (n === 0) return assert.equal(latency, null);
  const { quantiles } = latency;
  assert.equal(quantiles.length, 101);
  assert.ok(quantiles.every((ms, i) => ms >= 0 && (i === 0 || ms >= quantiles[i - 1])));
  assert.equal(latency.p50, quantiles[50]);
  assert.equal(latency.p99, quantiles[99]);
  return assert.ok(latency.avg >= quantiles[0] && latency.avg <= quantiles[100] + 0.001);
}

export function assertRun(run) {
  assert.ok(run.summary.endsWith('.'));
  assert.equal(run.promises_correct, run.strategy !== 'naive');
  assertLatency(run.winners_ms, run.winners);
  assertLatency(run.losers_ms, run.users - run.winners - run.errors);
  assert.ok(run.seconds > 0);
  assert.ok(Math.abs(run.throughput - (run.users - run.errors) / run.seconds) <= run.throughput * 0.01 + 0.1);
  // What counter-async writes, it writes after the answer.
  const least = run.strategy === 'counter-async' ? -1 : 0;
  assert.ok(run.commits_per_request > least && run.commits_per_request <= 3);
  assert.ok(run.round_trips_per_request > least && run.round_trips_per_request <= 20);
}
