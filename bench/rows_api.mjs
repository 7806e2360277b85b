// Rows for the other requests of buyers and browsers: the best available seats, the map, and streams of
// changes.  See rows.mjs for the shape of a row.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createEvent, createEvents, expectPost, fetchBytes, measured, wrk } from './load.mjs';
import { withoutPeer, atLeast, atMost, withPeer, check, pick, scattered } from './rows.mjs';
import { sleep, startHoldfast } from './servers.mjs';

const HUGE = { sections: 25, rows: 200, seats: 200 }; // 1,000,000
const LARGE = { sections: 10, rows: 100, seats: 100 }; // 100,000
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

// ---- streams: 10,000 readers of an event while it is sold ----

const STREAMS = 10_000;
const WATCH_MAX_MS = 60_000;

// Resolves to the port of an event's streams: that of the server, or the one that it redirects to.
async function streamPort(server, event) {
  const answer = await fetch(`${server.url}/v1/events/${event}/stream`,
    { redirect: 'manual', signal: AbortSignal.timeout(10_000) });
  await answer.body?.cancel();
  return new URL(answer.headers.get('location') ?? server.url).port;
}

// Runs build/bench/streams until it is stopped, when `totals` resolves.  It stands for 10,000 other machines, so
// it runs at the lowest priority, to take no CPU from the server.
async function watch(bench, server, event) {
  const port = await streamPort(server, event);
  const child = spawn('nice', ['-n', '19', join(bench.tools, 'streams'), '127.0.0.1', port,
    event, String(STREAMS), '3600'], { stdio: ['ignore', 'pipe', 'inherit'], timeout: WATCH_MAX_MS });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text) => { out += text; });
  const ended = new Promise((done) => { child.once('close', done); });
  const until = Date.now() + 30_000;
  while (!/^open /m.test(out)) {
    check(Date.now() < until && child.exitCode === null, `${STREAMS} streams did not open\n${out}`);
    await sleep(50);
  }
  return {
    async stop() {
      child.kill('SIGTERM');
      await ended;
      const totals = out.match(/^total open (\d+) cut (\d+) messages (\d+) bytes (\d+) changes (\d+)/m);
      check(totals, `the watchers ended without totals\n${out.slice(-500)}`);
      const [open, cut, messages, bytes, changes] = totals.slice(1).map(Number);
      check(open === STREAMS && cut === 0, `${open} streams open, ${cut} cut`);
      return { messages, bytes, changes };
    },
  };
}

async function sell(server, event, seconds) {
  const result = await measured(server, () => scattered(server, [event], LARGE, {}, { seconds }));
  check(result.refused === 0, `${result.refused} of ${result.requests} holds refused`);
  return result;
}

export async function streams(bench) {
  const seconds = Math.min(bench.seconds, 3); // each seat can be sold only once
  const watched = [];
  const unwatched = [];
  for (let round = 1; round <= bench.rounds; round++) {
    const server = await startHoldfast(bench, 'streams');
    const [warm, plain, event] = await createEvents(server.url, LARGE, 3);
    await sell(server, warm, 1);
    await sleep(1000);
    unwatched.push(await sell(server, plain, seconds));
    await sleep(1000);
    const watchers = await watch(bench, server, event);
    const before = server.residentBytes();
    const result = await sell(server, event, seconds);
    result.resident_kib = (server.residentBytes() - before) / 1024 / 1024;
    await sleep(5000); // slow readers may catch up
    Object.assign(result, await watchers.stop());
    result.bytes_a_change = result.bytes / (result.changes * STREAMS);
    result.messages_each = result.messages;
    result.seen = (result.changes / result.requests) * 100;
    watched.push(result);
    await server.stop();
    bench.progress('streams', round);
  }
  const name = '10,000 streams';
  return [
    withPeer(name, 'holds/s', 'per_second', watched, 'none', unwatched, atLeast(0.85)),
    withPeer(name, 'p99 us', 'p99_us', watched, 'none', unwatched, atMost(1.5)),
    withoutPeer(name, 'bytes/change/stream', 'bytes_a_change', watched),
    withoutPeer(name, 'messages/stream', 'messages_each', watched),
    withoutPeer(name, '% of changes seen', 'seen', watched),
  ];
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
