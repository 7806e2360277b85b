// Rows for servers with many connections: 10,000 streams of changes, and 10,000 idle connections.  See rows.mjs
// for the shape of a row.

import { join } from 'node:path';
import { createEvent, createEvents, expectPost, measured, start } from './load.mjs';
import {
  SMALL, atLeast, atMost, check, scattered, withPeer, withoutPeer,
} from './rows.mjs';
import { sleep, startHoldfast } from './servers.mjs';

const MANY = 10_000;
const OPEN_MAX_MS = 30_000;
const CLIENT_MAX_MS = 60_000;
const CLIENT_MAX_S = String(CLIENT_MAX_MS / 1000);

// Runs a client that opens MANY connections; resolves when all are open.  `stop` ends it and resolves to the
// numbers of its line `total open N cut N ...`.  The client stands for 10,000 other machines, so it runs at
// the lowest priority, to take no CPU from the server.
export async function openMany(bench, tool, args) {
  const child = start('nice', ['-n', '19', join(bench.tools, tool), ...args],
    { stdio: ['ignore', 'pipe', 'inherit'], timeout: CLIENT_MAX_MS });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text) => { out += text; });
  const ended = new Promise((done) => { child.once('close', done); });
  const until = Date.now() + OPEN_MAX_MS;
  while (!/^open /m.test(out)) {
    if (Date.now() >= until) child.kill('SIGTERM');
    check(Date.now() < until && child.exitCode === null, `${tool}: not all are open\n${out}`);
    await sleep(50);
  }
  return {
    async stop() {
      child.kill('SIGTERM');
      await ended;
      const line = out.match(/^total (.*)$/m)?.[1];
      check(line, `${tool} ended without totals\n${out.slice(-500)}`);
      const totals = Object.fromEntries([...line.matchAll(/(\w+) (\d+)/g)]
        .map(([, name, value]) => [name, Number(value)]));
      check(totals.open === MANY && totals.cut === 0, `${tool}: ${line}`);
      return totals;
    },
  };
}

// ---- streams: 10,000 readers of an event while it is sold ----

// Resolves to the port of an event's streams: that of the server, or the one that it redirects to.
async function streamPort(server, event) {
  const answer = await fetch(`${server.url}/v1/events/${event}/stream`,
    { redirect: 'manual', signal: AbortSignal.timeout(10_000) });
  await answer.body?.cancel();
  return new URL(answer.headers.get('location') ?? server.url).port;
}

async function watch(bench, server, event) {
  const port = await streamPort(server, event);
  return openMany(bench, 'streams', ['127.0.0.1', port, event, String(MANY), CLIENT_MAX_S]);
}

const HALL = { sections: 25, rows: 100, seats: 100 }; // 250,000: enough for a run on one event

async function sell(server, event, seconds) {
  const result = await measured(server, () => scattered(server, [event], HALL, {}, { seconds }));
  check(result.refused === 0, `${result.refused} of ${result.requests} holds refused`);
  return result;
}

export async function streams(bench) {
  const seconds = Math.min(bench.seconds, 3); // each seat can be sold only once
  const watched = [];
  const unwatched = [];
  for (let round = 1; round <= bench.rounds; round++) {
    const server = await startHoldfast(bench, 'streams');
    const [warm, plain, event] = await createEvents(server.url, HALL, 3);
    await sell(server, warm, 1);
    await sleep(1000);
    unwatched.push(await sell(server, plain, seconds));
    await sleep(1000);
    const watchers = await watch(bench, server, event);
    const result = await sell(server, event, seconds);
    await sleep(5000); // slow readers may catch up
    const { messages, bytes, changes } = await watchers.stop();
    result.bytes_a_change = bytes / (changes * MANY);
    result.messages_each = messages;
    result.seen = (changes / result.requests) * 100;
    watched.push(result);
    await server.stop();
    bench.progress('streams', round);
  }
  const name = '10,000 streams';
  return [
    withPeer(name, 'holds/s', 'per_second', watched, 'none', unwatched, atLeast(0.85)),
    withPeer(name, 'p99 us', 'p99_us', watched, 'none', unwatched, atMost(1.5)),
    withPeer(name, 'CPU us/hold', 'cpu_us', watched, 'none', unwatched),
    withoutPeer(name, 'bytes/change/stream', 'bytes_a_change', watched),
    withoutPeer(name, 'messages/stream', 'messages_each', watched),
    withoutPeer(name, '% of changes seen', 'seen', watched),
  ];
}

// ---- idle: 10,000 connections on which nothing happens ----

// Half of the connections were refused a hold before.
async function idleOnce(bench) {
  const server = await startHoldfast(bench, 'idle');
  const hold = { event: await createEvent(server.url, SMALL), seats: ['S1-A-1'] };
  await expectPost(201, server.url, '/v1/holds', hold);
  await expectPost(409, server.url, '/v1/holds', hold);
  const [before, cpu] = [server.residentBytes(), server.cpuUs()];
  const { port } = new URL(server.url);
  const clients = await openMany(bench, 'idle',
    ['127.0.0.1', port, String(MANY), JSON.stringify(hold), CLIENT_MAX_S]);
  await sleep(1000);
  const [resident, cpuUs] = [server.residentBytes(), server.cpuUs() - cpu];
  check(server.openFiles() >= MANY, `the server has only ${server.openFiles()} files open`);
  await clients.stop();
  await server.stop();
  const added = resident - before;
  return { resident_mb: resident / 1e6, added_mb: added / 1e6, each: added / MANY, cpu_us: cpuUs / MANY };
}

export async function idle(bench) {
  const results = [];
  for (let round = 1; round <= bench.rounds; round++) {
    results.push(await idleOnce(bench));
    bench.progress('idle', round);
  }
  const name = '10,000 idle connections';
  return [
    withoutPeer(name, 'resident MB', 'resident_mb', results, atMost(16)),
    withoutPeer(name, 'MB added', 'added_mb', results),
    withoutPeer(name, 'bytes added/connection', 'each', results, atMost(1024)),
    withoutPeer(name, 'CPU us/connection', 'cpu_us', results),
  ];
}
