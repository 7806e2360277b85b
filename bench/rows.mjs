// The rows of the bench.  Each row runs its rounds, ours and the peers in turn, and returns lines of the
// table: { name, unit, ours: [one number per round], peer: [...], peerName, target }.  A line without a target
// informs only.  Each row checks that the answers were those it means to measure.

import {
  WRK_THREADS, createEvent, createEvents, expectPost, measured, metrics, pgbench, rawPost,
  redisBenchmark, seatsOf, wrk,
} from './load.mjs';
import {
  sleep, startBare, startHoldfast, startLoop, startPostgres, startRedis,
} from './servers.mjs';
import { median } from './table.mjs';

export const SMALL = { sections: 1, rows: 20, seats: 50 }; // 1,000
export const LARGE = { sections: 10, rows: 100, seats: 100 }; // 100,000
const HUGE = { sections: 25, rows: 200, seats: 200 }; // 1,000,000

const WARM_HOLDS = 5_000;
const WARM_END = 6_000; // a script that stops by count may send a few more requests

export function check(good, what) {
  if (!good) throw new Error(`not what was to be measured: ${what}`);
}

export const atLeast = (value) => ({ good: (n) => n >= value, text: `>= ${value}` });
export const atMost = (value) => ({ good: (n) => n <= value, text: `<= ${value}` });
export const under = (value) => ({ good: (n) => n < value, text: `< ${value}` });

// Make lines of the table from the results of the rounds: one field of ours, without a peer or with one.
export const pick = (results, field) => results.map((result) => result[field]);
export const withoutPeer = (name, unit, field, ours, target) => (
  { name, unit, ours: pick(ours, field), target });
export const withPeer = (name, unit, field, ours, peerName, peer, target) => (
  { ...withoutPeer(name, unit, field, ours, target), peerName, peer: pick(peer, field) });

// ---- contended: every client wants one seat that is held ----

function refusals(result) {
  const { requests, refused } = result;
  const byView = result.grew('holdfast_hold_requests_total', { result: 'taken', by: 'view' });
  check(refused === requests, `only ${refused} of ${requests} refused`);
  check(byView >= requests, `only ${byView} of ${requests} refused by the view`);
  return result;
}

// Combines several short runs into one.
export function combined(results) {
  const sum = (of) => results.reduce((total, result) => total + of(result), 0);
  const requests = sum((r) => r.requests);
  return {
    per_second: requests / sum((r) => r.requests / r.per_second),
    cpu_us: sum((r) => r.cpu_us * r.requests) / requests,
    p99_us: median(pick(results, 'p99_us')),
  };
}

export async function contended(bench) {
  const ours = await startHoldfast(bench, 'contended');
  const times = { hold_ttl_ms: 1_200_000, hold_max_ms: 1_200_000 };
  const hold = { event: await createEvent(ours.url, SMALL, times), seats: ['S1-J-25'] };
  const key = { 'idempotency-key': 'bench-contended-first' };
  await expectPost(201, ours.url, '/v1/holds', hold);
  const refusal = await expectPost(409, ours.url, '/v1/holds', hold);
  await expectPost(409, ours.url, '/v1/holds', hold, key);
  check(JSON.parse(refusal.text).code === 'seat_taken', refusal.text);

  const bare = await startBare(bench, Buffer.byteLength(refusal.text));
  const loop = await startLoop(bench, await rawPost(ours.url, '/v1/holds', hold));
  const redis = await startRedis(bench);
  const load = (server, seconds, ...more) => measured(server,
    () => wrk(server.url, 'contended.lua', [JSON.stringify(hold), ...more], { seconds }));
  const redisLoad = (requests) => measured(redis, () => redisBenchmark(redis.port, requests));

  for (const server of [ours, loop, bare]) await load(server, 1);
  const redisRequests = Math.round((await redisLoad(50_000)).per_second);
  // What takes turns: each runs for a second.
  const turns = {
    plain: async () => refusals(await load(ours, 1)),
    loopPlain: () => load(loop, 1),
    barePlain: () => load(bare, 1),
    keyed: async () => refusals(await load(ours, 1, 'keyed')),
    loopKeyed: () => load(loop, 1, 'keyed'),
    bareKeyed: () => load(bare, 1, 'keyed'),
    set: () => redisLoad(redisRequests),
  };
  const results = Object.fromEntries(Object.keys(turns).map((name) => [name, []]));
  // A round consists of slices of one second in turn.  The distribution of connections over the threads of a
  // pool is random and lasts as long as the connections; disturbances by other processes last seconds.
  for (let round = 1; round <= bench.rounds; round++) {
    const slices = Object.fromEntries(Object.keys(turns).map((name) => [name, []]));
    for (let second = 0; second < bench.seconds; second++) {
      for (const [name, turn] of Object.entries(turns)) slices[name].push(await turn());
    }
    for (const name of Object.keys(turns)) results[name].push(combined(slices[name]));
    bench.progress('contended', round);
  }
  await Promise.all([ours.stop(), loop.stop(), bare.stop(), redis.stop()]);

  const { plain, loopPlain, barePlain, keyed, loopKeyed, bareKeyed, set } = results;
  const lines = (name, mine, itsLoop, itsBare, targets) => [
    withPeer(name, 'CPU us/request', 'cpu_us', mine, 'Redis', set, targets.redisCpu),
    withPeer(name, 'CPU us/request', 'cpu_us', mine, 'bare epoll loop', itsLoop, targets.loopCpu),
    withPeer(name, 'CPU us/request', 'cpu_us', mine, 'libmicrohttpd', itsBare),
    withPeer(name, 'requests/s', 'per_second', mine, 'Redis', set, targets.redisRate),
    withPeer(name, 'requests/s', 'per_second', mine, 'bare epoll loop', itsLoop),
    withPeer(name, 'requests/s', 'per_second', mine, 'libmicrohttpd', itsBare),
    withPeer(name, 'p99 us', 'p99_us', mine, 'bare epoll loop', itsLoop),
  ];
  return [
    ...lines('contended', plain, loopPlain, barePlain,
      { redisCpu: atMost(0.95), loopCpu: atMost(1.4), redisRate: atLeast(1.25) }),
    ...lines('contended, keyed', keyed, loopKeyed, bareKeyed,
      { redisCpu: atMost(1.05), redisRate: atLeast(1) }),
  ];
}

// ---- scattered.lua ----

export function scattered(server, events, shape, options, load) {
  const { threads = WRK_THREADS } = load;
  const named = Object.entries({ threads, ...options }).map(([name, value]) => `${name}=${value}`);
  const args = [events.join(','), shape.sections, shape.rows, shape.seats, ...named];
  return wrk(server.url, 'scattered.lua', args, load);
}

// Makes some holds; resolves to the number of seconds that `count` more would take at that pace.
async function paced(server, events, shape, options, count) {
  const warm = await scattered(server, events, shape, { ...options, count: WARM_HOLDS },
    { seconds: 2 });
  return (count / warm.requests) * (warm.counted_ms / 1000);
}

// ---- distinct: every client gets a seat of its own, durably ----

async function distinctOurs(bench) {
  const server = await startHoldfast(bench, 'distinct');
  const { seconds } = bench;
  const warm = await scattered(server, await createEvents(server.url, LARGE, 1), LARGE, {},
    { seconds: 1 });
  // One event after the other, with some to spare, so that no seat is asked for twice.
  const seats = warm.per_second * seconds * 1.25 + seatsOf(LARGE);
  const events = await createEvents(server.url, LARGE, Math.ceil(seats / seatsOf(LARGE)));
  await sleep(1000);
  const result = await measured(server, () => scattered(server, events, LARGE, {}, { seconds }));
  await server.stop();
  const granted = result.grew('holdfast_hold_requests_total', { result: 'granted' });
  check(result.refused === 0, `${result.refused} of ${result.requests} holds refused`);
  check(granted >= result.requests, `${result.requests} answers for ${granted} holds`);
  const batches = result.grew('holdfast_batch_commands_count');
  result.per_commit = result.grew('holdfast_batch_commands_sum') / batches;
  return result;
}

const SEATS_SQL = [
  `CREATE TABLE seats (id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'available',
                       hold bigint, expires_at timestamptz)`,
  'INSERT INTO seats (id) SELECT generate_series(0, 999999)',
  'VACUUM ANALYZE seats',
  'CHECKPOINT',
];

async function distinctPostgres(bench) {
  const server = await startPostgres(bench);
  server.sql(...SEATS_SQL);
  await pgbench(server, 1, 0);
  const first = 200_000; // after the seats of the warm-up
  const result = await measured(server, () => pgbench(server, bench.seconds, first));
  const held = Number(server.sql(
    `SELECT count(*) FROM seats WHERE status = 'held' AND hold >= ${first}`));
  await server.stop();
  check(held === result.requests, `${result.requests} transactions held ${held} seats`);
  return result;
}

export async function distinct(bench) {
  const ours = [];
  const peer = [];
  for (let round = 1; round <= bench.rounds; round++) {
    ours.push(await distinctOurs(bench));
    peer.push(await distinctPostgres(bench));
    bench.progress('distinct', round);
  }
  const name = 'distinct';
  return [
    withPeer(name, 'holds/s', 'per_second', ours, 'PostgreSQL', peer, atLeast(3)),
    withPeer(name, 'CPU us/hold', 'cpu_us', ours, 'PostgreSQL', peer),
    withoutPeer(name, 'holds/commit', 'per_commit', ours),
    withoutPeer(name, 'p50 us', 'p50_us', ours),
    withoutPeer(name, 'p99 us', 'p99_us', ours),
  ];
}

// ---- growth: does a hold cost more where there are more seats? ----

const SIZES = [['100 x 1,000', 100, SMALL], ['1 x 100,000', 1, LARGE], ['1 x 1,000,000', 1, HUGE]];
const GROWTH_HOLDS = 90_000; // of the 100,000 seats of the small ones

async function growthOnce(bench, n, shape) {
  const server = await startHoldfast(bench, 'growth');
  const events = await createEvents(server.url, shape, n);
  await sleep(1000);
  const pace = await paced(server, events, shape, { group: n }, GROWTH_HOLDS);
  // wrk runs for its full time even if the scripts have finished.
  const seconds = Math.min(Math.ceil(pace) + 1, 15);
  const options = { group: n, first: WARM_END, count: GROWTH_HOLDS };
  const result = await measured(server,
    () => scattered(server, events, shape, options, { seconds }));
  check(result.refused === 0, `${result.refused} of ${result.requests} holds refused`);
  result.per_second = result.requests / (result.counted_ms / 1000);
  result.resident = server.residentBytes() / (n * seatsOf(shape));
  await server.stop();
  return result;
}

export async function growth(bench) {
  const results = SIZES.map(() => []);
  for (let round = 1; round <= bench.rounds; round++) {
    for (const [i, [, n, shape]] of SIZES.entries()) {
      results[i].push(await growthOnce(bench, n, shape));
    }
    bench.progress('growth', round);
  }
  const each = SIZES.flatMap(([size], i) => [
    withoutPeer(`growth ${size}`, 'CPU us/hold', 'cpu_us', results[i]),
    withoutPeer(`growth ${size}`, 'holds/s', 'per_second', results[i]),
  ]);
  // The cheapest and the most expensive result of each round.
  const extreme = (choose) => results[0].map((_, round) => {
    const of = (field) => choose(...results.map((rounds) => rounds[round][field]));
    return { cpu_us: of('cpu_us'), per_second: of('per_second') };
  });
  const [most, least] = [extreme(Math.max), extreme(Math.min)];
  return [
    ...each,
    withPeer('growth, dearest', 'CPU us/hold', 'cpu_us', most, 'cheapest', least, atMost(1.15)),
    withPeer('growth, fastest', 'holds/s', 'per_second', most, 'slowest', least, atMost(2)),
    withoutPeer('growth 1 x 1,000,000', 'resident B/seat', 'resident', results.at(-1), atMost(64)),
  ];
}

// ---- expiry: 100,000 holds expire at one instant ----

const DUE_HOLDS = 100_000;
const DUE_SHAPE = { sections: 10, rows: 100, seats: 104 };
const IN_FLIGHT = 64; // wrk leaves this many requests unanswered when it stops by count
const WINDOW_S = 4; // length of the measurement, from one second before the holds expire
const REST_MS = 1000 + WINDOW_S * 1000 + 2500; // from the last hold until they expire

async function allExpired(url, due) {
  for (;;) {
    const read = await metrics(url);
    if (read('holdfast_holds_expired_total') >= DUE_HOLDS) return Date.now() - due;
    check(Date.now() < due + 60_000, `${read('holdfast_holds_active')} holds live on after 60 s`);
    await sleep(50);
  }
}

async function expiryOnce(bench) {
  const server = await startHoldfast(bench, 'expiry');
  const abandoned = await createEvent(server.url, DUE_SHAPE, { hold_ttl_ms: 60_000 });
  const wanted = await createEvent(server.url, LARGE);
  const seconds = Math.ceil(await paced(server, [wanted], LARGE, {}, DUE_HOLDS)) + 2;
  check(seconds <= 45, `${DUE_HOLDS} holds would take ${seconds} s`);
  const due = Date.now() + seconds * 1000 + REST_MS;
  const fill = { count: DUE_HOLDS + IN_FLIGHT, due };
  await scattered(server, [abandoned], DUE_SHAPE, fill, { seconds });
  const active = (await metrics(server.url))('holdfast_holds_active');
  check(active >= DUE_HOLDS + WARM_HOLDS - IN_FLIGHT, `only ${active} holds in ${seconds} s`);
  await sleep(1000);

  const steady = (first) => measured(server, () => scattered(server, [wanted], LARGE, { first, pause_ms: 2 },
    { connections: 8, threads: 1, seconds: WINDOW_S }));
  const idle = await steady(20_000);
  const early = (await metrics(server.url))('holdfast_holds_expired_total');
  check(early === 0 && Date.now() < due - 1000, 'holds fell due while the idle load ran');
  await sleep(due - 1000 - Date.now());
  const [busy, allMs] = await Promise.all([steady(60_000), allExpired(server.url, due)]);
  await server.stop();
  check(idle.refused + busy.refused === 0, `${idle.refused + busy.refused} new holds refused`);
  return { idle, busy, all_ms: allMs };
}

export async function expiry(bench) {
  const results = [];
  for (let round = 1; round <= bench.rounds; round++) {
    results.push(await expiryOnce(bench));
    bench.progress('expiry', round);
  }
  const [busy, idle] = [pick(results, 'busy'), pick(results, 'idle')];
  return [
    withPeer('expiry', 'p99 us', 'p99_us', busy, 'idle', idle, under(10)),
    withPeer('expiry', 'max us', 'max_us', busy, 'idle', idle),
    withPeer('expiry', 'new holds/s', 'per_second', busy, 'idle', idle),
    withPeer('expiry', 'CPU us/new hold, with all that expires', 'cpu_us', busy, 'idle', idle),
    withoutPeer('expiry', 'ms until all expired', 'all_ms', results),
  ];
}
