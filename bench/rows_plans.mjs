// The row of seating plans: what an event with a plan costs beside one of counted rows with the same seats.  See rows.mjs for
// the shape of a row.

import { performance } from 'node:perf_hooks';
import { createEvent, expectPost, measured, seatsOf } from './load.mjs';
import { atMost, check, scattered, withoutPeer, withPeer } from './rows.mjs';
import { sleep, startHoldfast } from './servers.mjs';

const HOLDS = 60_000; // of each turn
const TURNS = 3; // of each event in a round, the first of which warms up

// A, B ... Z, AA, AB ...: the names that rows have where they are counted.
const rowName = (index) => (index < 26 ? '' : rowName(Math.floor(index / 26) - 1)) + String.fromCharCode(65 + index % 26);

const list = (n, of) => Array.from({ length: n }, (_, i) => of(i)).join(',');

// The body of an event with a seating plan, whose seats have the ids that createEvent's have.
function planned(shape) {
  const seat = (section, row, number) => `{"seat_guid":"S${section}-${row}-${number}","seat_number":"${number}",`
    + `"position":{"x":${number * 24},"y":0},"category":"A"}`;
  const row = (section, index) => `{"row_number":"${rowName(index)}","position":{"x":0,"y":${index * 30}},"seats":[`
    + `${list(shape.seats, (i) => seat(section, rowName(index), i + 1))}]}`;
  const zone = (section) => `{"name":"S${section}","position":{"x":0,"y":${section * shape.rows * 30}},"rows":[`
    + `${list(shape.rows, (i) => row(section, i))}]}`;
  return `{"name":"Bench","currency":"usd","prices":{"A":5000},"plan":{"name":"Hall",`
    + `"size":{"width":${shape.seats * 24},"height":${shape.sections * shape.rows * 30}},"categories":[{"name":"A"}],`
    + `"zones":[${list(shape.sections, (i) => zone(i + 1))}]}}`;
}

// The same with rows that list the labels of their seats.
function listed(shape) {
  const row = (index) => `{"name":"${rowName(index)}","seats":[${list(shape.seats, (i) => `"${i + 1}"`)}]}`;
  const rows = list(shape.rows, row);
  return `{"name":"Bench","currency":"usd","sections":[${list(shape.sections, (i) => `{"name":"S${i + 1}","price":5000,"rows":[${rows}]}`)}]}`;
}

// A plan of a million seats does not fit in the 64 MiB that a body may have.
const KINDS = [
  { name: 'plans, 640,000 seats', shape: { sections: 8, rows: 80, seats: 1000 }, body: planned },
  { name: 'listed, 1,000,000 seats', shape: { sections: 25, rows: 40, seats: 1000 }, body: listed },
];

async function create(url, body) {
  const answer = await fetch(`${url}/v1/events`, { method: 'POST', body, signal: AbortSignal.timeout(120_000) });
  const text = await answer.text();
  check(answer.status === 201, text.slice(0, 300));
  return JSON.parse(text).id;
}

// Holds seats of each of the two servers in turn, so that a slow second of the machine affects both.
async function turns(sides, shape) {
  const results = sides.map(() => []);
  let resident;
  for (let turn = 0; turn < TURNS; turn++) {
    if (turn === 1) resident = sides.map(({ server }) => server.residentBytes() / seatsOf(shape));
    for (const [i, { server, event }] of sides.entries()) {
      const options = { first: turn * (HOLDS + 1000), count: HOLDS };
      const result = await measured(server, () => scattered(server, [event], shape, options, { seconds: 4 }));
      check(result.refused === 0, `${result.refused} of ${result.requests} holds refused`);
      if (turn > 0) results[i].push(result);
    }
  }
  const mean = (of, field) => of.reduce((sum, result) => sum + field(result), 0) / of.length;
  return results.map((of, i) => ({
    resident: resident[i],
    cpu_us: mean(of, (result) => result.cpu_us),
    per_second: mean(of, (result) => result.requests / (result.counted_ms / 1000)),
  }));
}

async function plansOnce(bench, { shape, text }) {
  const servers = [await startHoldfast(bench, 'plans'), await startHoldfast(bench, 'plans-counted')];
  const [planServer, countServer] = servers;
  const from = performance.now();
  const plan = await create(planServer.url, text);
  const createMs = performance.now() - from;
  const counted = await createEvent(countServer.url, shape);
  await sleep(1000);
  const read = performance.now();
  const answer = await fetch(`${planServer.url}/v1/events/${plan}/plan`, { signal: AbortSignal.timeout(60_000) });
  check(answer.status === 200 && (await answer.arrayBuffer()).byteLength > 0, 'the plan cannot be read');
  const readMs = performance.now() - read;
  for (const [server, event] of [[planServer, plan], [countServer, counted]]) {
    const hold = await expectPost(201, server.url, '/v1/holds', { event, best_available: { quantity: 2 } });
    const released = await fetch(`${server.url}/v1/holds/${JSON.parse(hold.text).id}`, { method: 'DELETE' });
    check(released.status === 204, `${released.status}`);
  }
  const [ours, peer] = await turns([{ server: planServer, event: plan }, { server: countServer, event: counted }], shape);
  Object.assign(ours, { create_ms: createMs, read_ms: readMs });
  await Promise.all(servers.map((server) => server.stop()));
  return [ours, peer];
}

export async function plans(bench) {
  const kinds = KINDS.map((kind) => ({ ...kind, text: kind.body(kind.shape), ours: [], peer: [] }));
  for (let round = 1; round <= bench.rounds; round++) {
    for (const kind of kinds) {
      const [ours, peer] = await plansOnce(bench, kind);
      kind.ours.push(ours);
      kind.peer.push(peer);
    }
    bench.progress('plans', round);
  }
  return kinds.flatMap(({ name, ours, peer }) => [
    withPeer(name, 'CPU us/hold', 'cpu_us', ours, 'counted', peer, atMost(1.3)),
    withPeer(name, 'holds/s', 'per_second', ours, 'counted', peer),
    withoutPeer(name, 'resident B/seat', 'resident', ours, atMost(200)),
    withoutPeer(`${name}: counted`, 'resident B/seat', 'resident', peer),
    withoutPeer(name, 'ms to create', 'create_ms', ours),
    withoutPeer(name, 'ms to read the plan', 'read_ms', ours),
  ]);
}
