// The row start: how long a server takes from its exec to its first answers, on a ledger with a million live
// holds.  See rows.mjs for the shape of a row.

import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { createEvent, metrics } from './load.mjs';
import { atMost, check, pick, scattered, withoutPeer } from './rows.mjs';
import { startHoldfast } from './servers.mjs';
import { median } from './table.mjs';

const HOLDS = 1_000_000;
const ARENA = { sections: 26, rows: 200, seats: 200 }; // 1,040,000: some to spare, see scattered.lua
const TTL_MS = 86_400_000;
const SLICE_S = 5;
const SKIP = 200; // requests of a slice that may have been under way when it ended
const MAKE_MAX_MS = 240_000;
const READY_MAX_MS = 120_000;
const STARTS = 3; // per round

// Makes the holds through the API; resolves to { data, event, small }, of a server that has stopped.
async function makeLedger(bench) {
  const server = await startHoldfast(bench, 'start');
  const event = await createEvent(server.url, ARENA, { hold_ttl_ms: TTL_MS, hold_max_ms: TTL_MS });
  const small = await createEvent(server.url, { sections: 1, rows: 10, seats: 10 });
  const until = Date.now() + MAKE_MAX_MS;
  for (let first = 0, active = 0; active < HOLDS;) {
    check(Date.now() < until, `only ${active} holds were made in ${MAKE_MAX_MS / 1000} s`);
    // One thread, so that the numbers of the requests have no gaps and the next slice knows where to go on.
    const slice = await scattered(server, [event], ARENA, { first, count: HOLDS - active },
      { threads: 1, seconds: SLICE_S });
    check(slice.refused === 0, `${slice.refused} of ${slice.requests} holds refused`);
    first += slice.requests + SKIP;
    active = (await metrics(server.url))('holdfast_holds_active');
  }
  await server.stop();
  return { data: server.data, event, small };
}

// Resolves when a GET answers 200.
async function answered(url) {
  const until = Date.now() + READY_MAX_MS;
  for (;;) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(READY_MAX_MS) });
    await answer.arrayBuffer();
    if (answer.status === 200) return;
    check(Date.now() < until, `${url} answers ${answer.status}`);
  }
}

async function startOnce(bench, { data, event, small }) {
  const begun = performance.now();
  const server = await startHoldfast(bench, 'start', '--data', data);
  await answered(`${server.url}/readyz`);
  const ready = performance.now() - begun;
  await answered(`${server.url}/v1/events/${event}/seats`);
  const map = performance.now() - begun;
  const cpu = server.cpuUs() / 1000;
  await answered(`${server.url}/v1/events/${small}/seats`);
  const other = performance.now() - begun - map;
  const active = (await metrics(server.url))('holdfast_holds_active');
  check(active >= HOLDS, `${active} holds are live`);
  const resident = server.residentBytes() / 1e6;
  await server.stop();
  return { ready_ms: ready, map_ms: map, cpu_ms: cpu, other_ms: other, resident_mb: resident };
}

// The ledger is made once per run.  Each build has a copy, and starts on it once before it is measured: another
// build's ledger may have to be migrated.
async function ownLedger(bench) {
  const { data, event, small } = await bench.once('start', () => makeLedger(bench));
  const mine = { data: join(bench.directory('start'), 'data'), event, small };
  cpSync(data, mine.data, { recursive: true });
  return { ...mine, first: await startOnce(bench, mine) };
}

async function startRound(bench, ledger) {
  const starts = [];
  while (starts.length < STARTS) starts.push(await startOnce(bench, ledger));
  const middle = (field) => median(pick(starts, field));
  return {
    ready_ms: middle('ready_ms'), map_ms: middle('map_ms'), cpu_ms: middle('cpu_ms'), other_ms: middle('other_ms'),
    resident_mb: middle('resident_mb'), first_ms: ledger.first.ready_ms,
  };
}

export async function start(bench) {
  const results = [];
  const ledger = await bench.once(`start ${bench.build}`, () => ownLedger(bench));
  for (let round = 1; round <= bench.rounds; round++) {
    results.push(await startRound(bench, ledger));
    bench.progress('start', round);
  }
  const name = 'start, 1,000,000 live holds';
  return [
    withoutPeer(name, 'ms to /readyz', 'ready_ms', results),
    withoutPeer(name, 'ms to the first map', 'map_ms', results, atMost(1200)),
    withoutPeer(name, 'CPU ms to the first map', 'cpu_ms', results),
    withoutPeer(name, 'ms, a small event\'s first map', 'other_ms', results, atMost(20)),
    withoutPeer(name, 'ms to /readyz, first time', 'first_ms', results),
    withoutPeer(name, 'resident MB', 'resident_mb', results),
  ];
}
