// Records a ledger for tests/server/migrate.test.mjs: drives a server through every kind of change, asks it
// everything that it can tell, and writes both down.
//
//   HOLDFASTD=<older build>/holdfastd HOLDFAST_TEST_BACKEND=postgres node tests/support/record_ledger.mjs 3
//
// makes tests/fixtures/ledger_3_postgres.sql and .json; 3 is the schema version of the server that is recorded.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { assertOk } from './expect.mjs';
import { backend, reap, start, until } from './server.mjs';

const fixtures = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../fixtures');

const version = Number(process.argv[2]);

const SECTIONS = [
  { name: 'Stalls', tier: 'A', price: 4500, rows: 3, seats_per_row: 8 },
  { name: 'Box', price: 9000, rows: [{ name: 'L', seats: 4 }, { name: 'R', seats: 4 }] },
];

// What sellers do since schema version 5, in an event of its own: channels, other places and terms, cancelled sales.
async function driveShop(server, post) {
  const event = await server.createEvent({ name: 'Ballet', sections: SECTIONS, hold_ttl_ms: 700_000, hold_max_ms: 3_600_000, areas: [{ name: 'Floor', price: 1500, capacity: 40 }] });
  await post(`/v1/events/${event.id}/block`, { seats: ['Stalls-A-1', 'Stalls-A-2'], areas: { Floor: 4 }, channel: 'house' });
  const house = await server.take(event, { seats: ['Stalls-A-1'], areas: { Floor: 2 }, channel: 'house', ttl_ms: 600_000 });
  const changed = await server.take(event, { seats: ['Stalls-B-1', 'Stalls-B-2'], ttl_ms: 600_000, owner: 'eve' });
  assertOk(await server.patch(`/v1/events/${event.id}`, { name: 'Swan Lake', venue: 'Hall', prices: { Stalls: 5000 }, max_per_owner: 9 }));
  // It has begun, and is on sale: before schema version 11 the start ended nothing.
  if (version >= 10) {
    assertOk(await server.patch(`/v1/events/${event.id}`, {
      starts_at: new Date(Date.now() - 3_600_000).toISOString(), ...(version < 11 ? {} : { sales_close_at: new Date(Date.now() + 86_400_000).toISOString() }) }));
  }
  assertOk(await server.patch(`/v1/holds/${changed.id}`, { fence: changed.fence, add: { seats: ['Stalls-B-3'], areas: { Floor: 1 } }, remove: { seats: ['Stalls-B-1'] } }));
  const bookings = [];
  for (const seats of [['Stalls-C-1', 'Box-L-1'], ['Stalls-C-2']]) {
    const hold = await server.take(event, { seats });
    bookings.push(await post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, reference: 'order 9' }, 201));
  }
  bookings[0] = await post(`/v1/bookings/${bookings[0].id}/cancel`, { reason: 'ill' });
  return { event, holds: [house, changed], bookings };
}

// Ticket types, which there are since schema version 12: of a live hold, and of one that is sold.
async function driveTypes(server, post) {
  const types = [{ id: 'full', name: 'Full price' }, { id: 'child', name: 'Child', prices: { Stalls: 100, Floor: 50 } }];
  const event = await server.createEvent({ name: 'Musical', sections: SECTIONS, types, hold_ttl_ms: 700_000, hold_max_ms: 3_600_000, areas: [{ name: 'Floor', price: 1500, capacity: 40 }] });
  const wish = { seats: ['Stalls-A-1', 'Stalls-A-2'], areas: { Floor: { full: 1, child: 2 } } };
  const held = await server.take(event, { ...wish, types: { 'Stalls-A-2': 'child' }, ttl_ms: 600_000 });
  const sold = await server.take(event, { seats: ['Stalls-B-1', 'Stalls-B-2'], types: { 'Stalls-B-1': 'child' } });
  return { event, holds: [held, sold], bookings: [await post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }, 201)] };
}

// Every kind of transition, some of them several times on one seat.  Resolves to the ids to ask for.
async function drive(server) {
  const event = await server.createEvent({ name: 'Opera', sections: SECTIONS, hold_ttl_ms: 700_000, hold_max_ms: 3_600_000, areas: [{ name: 'Floor', price: 1500, capacity: 40 }] });
  const quiet = await server.createEvent({ name: 'Quiet' });
  const post = async (target, body, status, headers) => assertOk(await server.post(target, body, headers), status);
  const confirm = (hold, fields) => post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, ...fields }, 201);
  const bookings = [];

  const first = await server.take(event, { seats: ['Stalls-A-1', 'Stalls-A-2'], areas: { Floor: 3 }, owner: 'ann', metadata: { basket: 7 }, ttl_ms: 500_000 });
  await post(`/v1/holds/${first.id}/renew`, { ttl_ms: 600_000 });
  bookings.push(await confirm(first, { reference: 'order 1' }));
  const released = await server.grant(event, ['Stalls-A-3', 'Stalls-A-4']);
  await server.del(`/v1/holds/${released.id}`);
  const evicted = await server.take(event, { seats: ['Stalls-A-3'], areas: { Floor: 2 } });
  await post(`/v1/holds/${evicted.id}/evict`);
  const expired = await server.take(event, { seats: ['Stalls-A-3', 'Box-L-1'], areas: { Floor: 1 }, ttl_ms: 1000 });
  const rescued = await server.grant(event, ['Box-R-1', 'Box-R-2'], { ttl_ms: 1000 });
  await until('both have expired', async () => (await server.counts(event)).held === 0);
  bookings.push(await confirm(rescued, { rescue: true }));
  await post(`/v1/events/${event.id}/block`, { seats: ['Stalls-B-1', 'Stalls-B-2', 'Stalls-B-3'] });
  await post(`/v1/events/${event.id}/unblock`, { seats: ['Stalls-B-2'] });
  await post(`/v1/events/${event.id}/block`, { seats: ['Stalls-B-2', 'Stalls-C-8'] });
  await post(`/v1/events/${event.id}/unblock`, { seats: ['Stalls-C-8', 'Stalls-B-2'] });
  await post(`/v1/events/${event.id}/close`);
  await post(`/v1/events/${event.id}/open`);
  const shop = version >= 5 ? await driveShop(server, post) : { holds: [], bookings: [] };
  const typed = version >= 12 ? await driveTypes(server, post) : { holds: [], bookings: [] };
  const keyed = { event: event.id, seats: ['Stalls-B-2'], ttl_ms: 600_000 };
  const key = { 'Idempotency-Key': 'a-hold-that-was-recorded' };
  const granted = await post('/v1/holds', keyed, 201, key);
  const live = await server.take(event, { best_available: { quantity: 3 }, areas: { Floor: 5 }, ttl_ms: 600_000, owner: 'bob' });
  await post(`/v1/holds/${live.id}/renew`, { ttl_ms: 700_000 });
  const reused = await server.grant(event, ['Box-L-1', 'Box-L-2'], { ttl_ms: 600_000 });
  await post(`/v1/events/${quiet.id}/block`, { seats: ['S-A-1'] });
  await post(`/v1/events/${quiet.id}/close`);
  return { events: [event, quiet, ...[shop.event, typed.event].filter(Boolean)].map(({ id }) => id),
    holds: [first, released, evicted, expired, rescued, ...shop.holds, ...typed.holds, granted, live, reused].map(({ id }) => id),
    bookings: [...bookings, ...shop.bookings, ...typed.bookings].map(({ id }) => id), keyed: { body: keyed, key: 'a-hold-that-was-recorded', answer: granted } };
}

// Everything that can be asked about these events, holds and bookings: the targets of GET requests.
async function questions(server, { events, holds, bookings }) {
  const targets = ['/v1/events?limit=100', ...holds.map((id) => `/v1/holds/${id}`), ...bookings.map((id) => `/v1/bookings/${id}`),
    ...holds.map((id) => `/v1/audit?hold=${id}`)];
  for (const event of events) {
    targets.push(`/v1/events/${event}`, `/v1/events/${event}/seats`, `/v1/events/${event}/holds?limit=100`, `/v1/audit?event=${event}&limit=1000`);
    for (const status of ['active', 'expired', 'released', 'confirmed']) targets.push(`/v1/events/${event}/holds?status=${status}`);
    const { data } = await server.read(`/v1/audit?event=${event}&limit=1000`);
    for (const { seq } of data.filter((_, i) => i % 7 === 3)) targets.push(`/v1/audit?event=${event}&after=${seq}&limit=3`);
    const seats = [...new Set(data.map(({ seat }) => seat).filter(Boolean)), ...Object.keys(await server.map(event)).slice(-1)];
    const times = [...new Set(data.map(({ at }) => at))].filter((_, i) => i % 4 === 1);
    for (const seat of seats) {
      targets.push(`/v1/audit?event=${event}&seat=${seat}`, `/v1/audit?event=${event}&seat=${seat}&after=20&limit=2`, `/v1/events/${event}/seats/${seat}`);
      for (const at of times) targets.push(`/v1/events/${event}/seats/${seat}?at=${at}`);
    }
    targets.push(`/v1/audit?hold=${holds[3]}&seat=${seats[2]}`);
  }
  return [...new Set(targets)];
}

const server = await start();
try {
  const made = await drive(server);
  const answers = {};
  for (const target of await questions(server, made)) answers[target] = (await server.get(target)).json;
  const recorded_at = new Date().toISOString();
  const name = path.join(fixtures, `ledger_${version}_${backend}`);
  await server.stop({ keep: true });
  const dump = backend === 'sqlite'
    ? execFileSync('sqlite3', [server.database, '.dump'], { encoding: 'utf8' })
    : execFileSync('pg_dump', ['--inserts', '--no-owner', '--no-privileges', server.ledger], { encoding: 'utf8' })
      .split('\n').filter((line) => line && !/^(--|SET |SELECT pg_catalog|\\)/.test(line)).join('\n');
  fs.writeFileSync(`${name}.sql`, `${dump.trim()}\n`);
  const lines = Object.entries(answers).map(([target, answer]) => `${JSON.stringify(target)}: ${JSON.stringify(answer)}`);
  fs.writeFileSync(`${name}.json`, `${JSON.stringify({ recorded_at, ...made }, null, 1).slice(0, -2)},
 "answers": {\n${lines.join(',\n')}\n}}\n`);
} finally { await reap(); }
