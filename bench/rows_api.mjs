// Rows for the other requests of buyers and browsers: the best available seats, and the map.  See rows.mjs for
// the shape of a row.

import { createEvent, expectPost, fetchBytes, measured, wrk } from './load.mjs';
import { withoutPeer, atLeast, withPeer, check } from './rows.mjs';
import { sleep, startHoldfast } from './servers.mjs';

const HUGE = { sections: 25, rows: 200, seats: 200 }; // 1,000,000
const HALL = { sections: 10, rows: 50, seats: 100 }; // 50,000

// ---- best: the server chooses two seats, beside two that are named ----

const PAIRS = 8_000; // per run
const FROM = 14; // named seats are in the sections from here on; chosen seats come from the front
const FILLS = [['empty', 65536], ['half full', 32768], ['89 % full', 7209]]; // and 99 % at the end

const rowName = (i) => (i > 26 ? rowName(Math.floor((i - 1) / 26)) : '')
  + String.fromCharCode(65 + ((i - 1) % 26));

// Blocks every pair that pairs.lua does not regard as free.
async function fill(url, event, shape, free) {
  const names = [];
  const block = () => expectPost(200, url, `/v1/events/${event}/block`,
    { seats: names.splice(0, 3000) });
  let pair = 0;
  for (let section = 1; section <= shape.sections; section++) {
    for (let row = 1; row <= shape.rows; row++) {
      const prefix = `S${section}-${rowName(row)}-`;
      for (let seat = 1; seat < shape.seats; seat += 2, pair++) {
        if ((pair * 40503) % 65536 >= free) names.push(prefix + seat, prefix + (seat + 1));
        if (names.length >= 3000) await block();
      }
    }
  }
  if (names.length) await block();
}

async function pairs(server, event, options, count) {
  const named = Object.entries({ ...options, count }).map(([name, value]) => `${name}=${value}`);
  const load = () => wrk(server.url, 'pairs.lua',
    [event, HUGE.sections, HUGE.rows, HUGE.seats, ...named], { seconds: 3 });
  const result = await measured(server, load);
  check(result.refused === 0, `${result.refused} of ${result.requests} holds refused`);
  check(result.requests >= count - 200, `only ${result.requests} holds in 3 s`);
  result.per_second = result.requests / (result.counted_ms / 1000);
  return result;
}

export async function best(bench) {
  const server = await startHoldfast(bench, 'best');
  const events = [];
  for (const [, free] of FILLS) {
    const event = await createEvent(server.url, HUGE);
    await fill(server.url, event, HUGE, free);
    events.push(event);
  }
  await sleep(2000);
  const chosen = FILLS.map(() => []);
  const named = FILLS.map(() => []);
  for (let round = 1; round <= bench.rounds; round++) {
    for (const [i, [, free]] of FILLS.entries()) {
      const first = (round - 1) * (PAIRS + 200);
      named[i].push(await pairs(server, events[i], { free, from: FROM, first }, PAIRS));
      chosen[i].push(await pairs(server, events[i], { best: 1 }, PAIRS));
    }
    bench.progress('best', round);
  }
  await server.stop();
  return FILLS.flatMap(([state], i) => [
    withPeer(`best, ${state}`, 'holds of 2/s', 'per_second', chosen[i], 'named', named[i],
      atLeast(0.5)),
    withPeer(`best, ${state}`, 'CPU us/hold', 'cpu_us', chosen[i], 'named', named[i]),
  ]);
}

// ---- snapshot: the map of 50,000 seats ----

export async function snapshot(bench) {
  const server = await startHoldfast(bench, 'snapshot');
  const event = await createEvent(server.url, HALL);
  await fill(server.url, event, HALL, 32768); // half of it, in scattered places
  const path = `/v1/events/${event}/seats`;
  const sizes = {
    plain: await fetchBytes(server.url + path, { 'accept-encoding': 'identity' }),
    gzip: await fetchBytes(server.url + path, { 'accept-encoding': 'gzip' }),
  };
  const kinds = ['identity', 'gzip'];
  const results = kinds.map(() => []);
  for (let round = 1; round <= bench.rounds; round++) {
    for (const [i, kind] of kinds.entries()) {
      const result = await measured(server,
        () => wrk(server.url, 'get.lua', [path, kind], { seconds: bench.seconds }));
      check(result.refused === 0, `${result.refused} of ${result.requests} maps refused`);
      results[i].push({ ...result, bytes: i ? sizes.gzip : sizes.plain });
    }
    bench.progress('snapshot', round);
  }
  await server.stop();
  return kinds.flatMap((kind, i) => [
    withoutPeer(`map of 50,000, ${kind}`, 'requests/s', 'per_second', results[i]),
    withoutPeer(`map of 50,000, ${kind}`, 'CPU us/request', 'cpu_us', results[i]),
    withoutPeer(`map of 50,000, ${kind}`, 'bytes', 'bytes', results[i]),
  ]);
}
