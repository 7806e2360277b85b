// The rows of the lock library: each driver beside the same calls written by hand.  leases.c measures both in
// turns within one run.  See rows.mjs for the shape of a row.

import { join } from 'node:path';
import { run } from './load.mjs';
import { withoutPeer, atLeast, atMost, withPeer, pick } from './rows.mjs';
import { startEtcd, startHoldfast, startPostgres, startRedis, startZookeeper } from './servers.mjs';

const DRIVERS = [['memory', 'table'], ['sqlite', 'sqlite3'], ['postgres', 'libpq'], ['redis', 'hiredis'],
  ['redlock', 'hiredis x 3'], ['holdfast', 'libcurl'], ['etcd', 'libcurl'], ['zookeeper', 'create/delete']];
const GOALS = { memory: 0.9, sqlite: 0.9, postgres: 0.8, redlock: 0.9, holdfast: 0.75 };
const MANY = 'handover100'; // Redis only: does a longer queue cost the server more?

// Resolves to undefined if it is the program of an older build, which does not know this back end.
async function leases(bench, url) {
  try {
    return JSON.parse(await run(join(bench.build, 'bench', 'leases'), [url, String(bench.seconds)],
      bench.seconds * 5000 + 60_000));
  } catch (error) {
    if (bench.isOlder && /usage: leases/.test(error.message)) return undefined;
    throw error;
  }
}

async function measure(bench, driver) {
  if (driver === 'memory') return leases(bench, 'memory:');
  if (driver === 'sqlite') {
    return leases(bench, `sqlite:${join(bench.directory('locks'), 'leases.db')}`);
  }
  if (driver === 'postgres') {
    const postgres = await startPostgres(bench);
    const result = await leases(bench,
      `postgres://holdfast@/postgres?host=${encodeURIComponent(postgres.client[1])}`);
    await postgres.stop();
    return result;
  }
  if (driver === 'holdfast') {
    const server = await startHoldfast(bench, 'locks', '--payments', 'off');
    const result = await leases(bench, `holdfast://${new URL(server.url).host}`);
    await server.stop();
    return result;
  }
  const starters = { redis: [startRedis], redlock: [startRedis, startRedis, startRedis], etcd: [startEtcd], zookeeper: [startZookeeper] };
  const servers = [];
  for (const start of starters[driver]) servers.push(await start(bench));
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const result = await leases(bench, `${driver}://${hosts}${driver === 'redlock' ? '?max_ttl=2s' : ''}`);
  for (const server of servers) await server.stop();
  return result;
}

function lines(driver, peer, results) {
  const name = `locks, ${driver}`;
  const side = (kind, which) => pick(pick(results, kind), which);
  const both = (kind, unit, field, target) => (
    withPeer(name, unit, field, side(kind, 'ours'), peer, side(kind, 'hand'), target));
  const goal = atLeast(GOALS[driver] ?? 0.85);
  const handoverGoal = driver === 'holdfast' ? undefined : goal; // by hand, nothing is claimed
  const table = [
    both('uncontended', 'acquire+release/s', 'per_second', goal),
    both('uncontended', 'p50 us', 'p50_us'),
    both('uncontended', 'p99 us', 'p99_us'),
    both('uncontended', 'client\'s CPU us/pair', 'cpu_us'),
  ];
  if (!results[0].handover32) return table; // its primitive has no queue
  table.push(
    both('handover32', 'hand-overs/s, 32 wait', 'per_second', handoverGoal),
    both('handover32', 'hand-over p50 us', 'p50_us'),
    both('handover32', 'hand-over p99 us', 'p99_us'),
    both('handover32', 'waiters\' CPU us/hand-over', 'cpu_us'),
  );
  if (results[0].uncontended_bare) { // the least possible; no target
    table.push(withPeer(name, 'acquire+release/s', 'per_second', side('uncontended_bare', 'ours'), 'mutex', side('uncontended_bare', 'hand')),
      withPeer(name, 'hand-overs/s, 32 wait', 'per_second', side('handover32_bare', 'ours'), 'mutex', side('handover32_bare', 'hand')));
  }
  if (!results[0][MANY]) return table;
  return [
    ...table,
    both(MANY, 'hand-overs/s, 100 wait', 'per_second'),
    withoutPeer(name, 'commands/hand-over, 32 wait', 'commands', side('handover32', 'ours')),
    withPeer(name, 'commands/hand-over, 100 wait', 'commands', side(MANY, 'ours'), '32 wait',
      side('handover32', 'ours'), atMost(1.1)),
  ];
}

export async function locks(bench) {
  const results = DRIVERS.map(() => []);
  for (let round = 1; round <= bench.rounds; round++) {
    for (const [i, [driver]] of DRIVERS.entries()) results[i].push(await measure(bench, driver));
    bench.progress('locks', round);
  }
  return DRIVERS.flatMap(([driver, peer], i) => (results[i][0] ? lines(driver, peer, results[i]) : []));
}
