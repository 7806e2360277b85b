// Many streams of one event on one server, while its seats are held: all streams stay open, and every one of them
// has seen every change in the end.
//
//   node tests/soak/streams.mjs [--streams 50000]
//
// tests/fault/stream_soak.test.mjs runs it with 2,000 streams, `make soak` also with 50,000.  The readers are
// bench/streams.c, since a Node process has no room for so many.  They come from several addresses of
// 127.0.0.0/8, each of which has 28,000 ports.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { HOLDFASTD, launch, reap, Server, sleep } from '../support/server.mjs';

const ROWS = 10, SEATS = 100, CHANGES = ROWS * SEATS;
const BURST = 50, BURST_EVERY_MS = 400;
const PER_SOURCE = 10_000;
const STREAMS_SHARE = 2 / 3; // of the connections that a server allows itself, at most these may be streams
const FILES_RESERVED = 1024; // what the server opens besides its connections
const OPEN_MS = 120_000, SEEN_MS = 60_000, CLIENT_S = 600;

const client = path.join(path.dirname(HOLDFASTD), 'bench', 'streams');

// Returns why this machine cannot have `n` streams on one server, or undefined if it can.
export function obstacle(n) {
  const limit = /^Max open files\s+\S+\s+(\S+)/m.exec(fs.readFileSync('/proc/self/limits', 'utf8'))[1];
  const need = Math.ceil(n / STREAMS_SHARE) + FILES_RESERVED;
  if (limit === 'unlimited' || Number(limit) >= need) return undefined;
  return `${n} streams need a limit of ${need} open files per process, and here it is ${limit} (ulimit -Hn)`;
}

// The sum of the FNV-1a hashes of the texts, as bench/streams.c computes it.
function digestOf(texts) {
  const bits = (1n << 64n) - 1n;
  const hash = (text) => [...Buffer.from(text)]
    .reduce((h, byte) => ((h ^ BigInt(byte)) * 0x100000001b3n) & bits, 0xcbf29ce484222325n);
  return texts.reduce((sum, text) => (sum + hash(text)) & bits, 0n);
}

const residentMb = (pid) => Math.round(Number(
  /^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1000);

// Resolves to the port of the event's streams: the server's own, or the one that it redirects to.
async function portOf(server, event) {
  const answer = await fetch(`http://${server.host}:${server.port}/v1/events/${event.id}/stream`, { redirect: 'manual' });
  await answer.body?.cancel();
  const { location } = Object.fromEntries(answer.headers);
  return location ? new URL(location).port : server.port;
}

async function openStreams(server, event, n) {
  const readers = launch(client, ['--sources', `${Math.ceil(n / PER_SOURCE) + 1}`, '--changes', `${CHANGES}`,
    server.host, `${await portOf(server, event)}`, event.id, `${n}`, `${CLIENT_S}`]);
  readers.line = async (pattern, ms) => {
    const deadline = Date.now() + ms;
    for (;;) {
      const found = pattern.exec(readers.stdout);
      if (found) return found;
      assert.equal(readers.ended, null, `the readers ended: ${readers.stderr}`);
      assert.ok(Date.now() < deadline, `no line ${pattern} within ${ms} ms; the last is: ${readers.stdout.trim().split('\n').pop()}`);
      await sleep(20);
    }
  };
  return readers;
}

// Holds every seat once, in bursts; resolves to the time of the last answer.
async function holdAll(server, event, seats) {
  for (let i = 0; i < seats.length; i += BURST) {
    await Promise.all(seats.slice(i, i + BURST).map((seat) => server.grant(event, seat)));
    await sleep(BURST_EVERY_MS);
  }
  return Date.now() - BURST_EVERY_MS;
}

export async function soak({ streams, say }) {
  const server = new Server();
  await server.launch();
  const event = await server.createEvent(
    { sections: [{ name: 'S', price: 1000, rows: ROWS, seats_per_row: SEATS }], hold_ttl_ms: 3_600_000 });
  const before = residentMb(server.pid);
  const readers = await openStreams(server, event, streams);
  const [, , openedMs] = await readers.line(/^open (\d+) in (\d+) ms$/m, OPEN_MS);
  const opened = residentMb(server.pid);
  say(`${streams} streams opened in ${openedMs} ms; resident ${before} MB before, ${opened} MB with them`);

  const seats = Object.keys(await server.map(event));
  const last = await holdAll(server, event, seats);
  const [, seen] = await readers.line(/^complete (\d+)$/m, SEEN_MS);
  const resident = residentMb(server.pid);
  say(`all saw the last of ${CHANGES} changes ${Number(seen) - last} ms after it was answered; resident ${resident} MB`);

  const { seq } = await server.read(`/v1/events/${event.id}/seats`);
  assert.equal(await server.metric('holdfast_streams_open'), streams);
  process.kill(readers.pid, 'SIGTERM');
  const ended = await readers.done;
  assert.match(readers.stdout, new RegExp(`^total open ${streams} cut 0 `, 'm'), 'all stay open');
  const [, ...each] = /^each seq (\d+) (\d+) changes (\d+) (\d+) digest (\d+) (\d+)$/m.exec(readers.stdout);
  const digest = digestOf(seats.map((seat) => `"${seat}","h"`));
  assert.deepEqual(each, [seq, seq, CHANGES, CHANGES, digest, digest].map(String),
    'seq, changes and digest of every stream, smallest and largest');
  assert.equal(ended.code, 0, readers.stderr);
  await server.finish();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const at = process.argv.indexOf('--streams');
  const streams = at < 0 ? 50_000 : Number(process.argv[at + 1]);
  const why = obstacle(streams);
  if (why) {
    console.log(`skipped: ${why}`);
  } else {
    try { await soak({ streams, say: console.log }); } finally { await reap(); }
  }
}
