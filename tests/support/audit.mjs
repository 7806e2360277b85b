// Reads the audit log as clients do, page by page from /v1/audit, and folds it into a state (I11).

import assert from 'node:assert/strict';
import { assertOk, TIMESTAMP } from './expect.mjs';

const LETTERS = { available: '.', held: 'h', booked: 'b', blocked: 'x' };
export const AUDIT_FIELDS = ['actor', 'area', 'at', 'booking', 'cause', 'event', 'fence', 'from', 'hold', 'object',
  'quantity', 'seat', 'seq', 'to', 'until'];

export const ACTOR = /^(open|timer|server|(key|provider):[A-Za-z0-9._-]{1,32}|address:([0-9a-f.:]+|erased))$/;

// Returns every row that a query finds, reading page by page.
export async function readAudit(server, query, limit = 1000) {
  const rows = [];
  for (let cursor = ''; ;) {
    const page = assertOk(await server.get(`/v1/audit?${query}&limit=${limit}${cursor}`));
    rows.push(...page.data);
    if (!page.has_more) {
      assert.equal(page.next_cursor, null);
      return rows;
    }
    assert.equal(page.data.length, limit);
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

// The transitions that each cause may make, per kind of object.  Places that were blocked for a channel return to it.
const FREED = ['held>available', 'held>blocked'], HELD = ['available>held', 'blocked>held'];
const PLACES = {
  hold: HELD, release: FREED, evict: FREED, expire: FREED, book: FREED, change: [...HELD, ...FREED], confirm: ['held>booked'],
  rescue: ['available>booked', 'blocked>booked'], cancel: ['booked>available', 'booked>blocked', ...FREED],
  payment: ['held>booked', 'booked>available', 'booked>blocked'], // it frees places when the provider refuses to capture
  block: ['available>blocked'], unblock: ['blocked>available'],
};
const TRANSITIONS = {
  event: {
    create: ['null>open'], open: ['closed>open'], close: ['open>closed'], restore: ['open>closed'],
    change: ['open>open', 'closed>closed', 'archived>archived'], archive: ['open>archived', 'closed>archived'],
    cancel: ['open>cancelled', 'closed>cancelled'],
  },
  seat: { ...PLACES, block: ['available>blocked', 'blocked>blocked'] }, // a seat may pass to another channel
  area: PLACES,
  hold: {
    hold: ['null>active'], renew: ['active>active'], change: ['active>active'], release: ['active>released'], evict: ['active>released'],
    book: ['active>released'], // together with another, which gets its places
    expire: ['active>expired'], confirm: ['active>confirmed'], rescue: ['expired>confirmed'], payment: ['active>confirmed'], cancel: ['active>released'],
    restore: ['active>active', 'expired>expired'],
  },
  booking: {
    confirm: ['null>confirmed'], rescue: ['null>confirmed'], book: ['null>pending'], payment: ['pending>confirmed', 'pending>failed'],
    cancel: ['pending>cancelled', 'confirmed>cancelled'],
  },
};
const PAYMENT_CAUSES = ['payment', 'refund', 'cancel'];
const isTransition = (row) => (row.object === 'payment' ? PAYMENT_CAUSES.includes(row.cause) && row.from !== null && row.to !== null
  : TRANSITIONS[row.object]?.[row.cause]?.includes(`${row.from}>${row.to}`));


// Folds the rows of an event from the first one on, and asserts that every step is legal.  `event` is the
// answer to the POST that created it.  Rows up to `prunedSeq` may be missing, with all others of their holds.  Returns { seq, status, seats: { name: letter }, areas: { name: {
// available, held, booked, blocked } }, holds: { id: { status, fence, until, places } }, bookings: [ids], counts }.
export function fold(event, rows, prunedSeq = 0) {
  const state = { seq: 0, status: null, seats: {}, areas: {}, holds: {}, bookings: [], counts: { available: event.capacity, held: 0, booked: 0, blocked: 0 } };
  const capacity = {};
  const owner = {}; // seat -> hold
  const bookings = {}; // hold -> the status of its booking
  const payments = {}; // number, which stands in place of a fence -> status
  for (const area of event.areas) {
    capacity[area.name] = area.capacity;
    state.areas[area.name] = { available: area.capacity, held: 0, booked: 0, blocked: 0 };
  }
  const open = new Map(); // hold -> the places whose rows must still follow the row of the hold
  let at = '';
  let fence = 0;
  let hasActors = false; // rows of a ledger that was taken over from an older version have none
  for (const row of rows) {
    const what = JSON.stringify(row);
    assert.deepEqual(Object.keys(row).sort(), AUDIT_FIELDS, what);
    assert.ok(row.seq === state.seq + 1 || (row.seq > state.seq && row.seq <= prunedSeq + 1), `a gap before ${what}`);
    state.seq = row.seq;
    assert.match(row.at, TIMESTAMP);
    assert.ok(row.at >= at, `time runs back at ${what}`);
    at = row.at;
    assert.equal(row.event, event.id);
    hasActors ||= row.actor !== null;
    if (hasActors) {
      assert.match(row.actor ?? 'none', ACTOR, what);
      assert.equal(row.cause === 'expire', row.actor === 'timer', what);
    }
    assert.ok(isTransition(row), `not a transition: ${what}`);
    assert.equal(row.seat !== null, row.object === 'seat', what);
    assert.equal(row.area !== null, row.object === 'area', what);
    if (row.object === 'hold') {
      const hold = state.holds[row.hold];
      assert.equal(hold?.status ?? null, row.from, what);
      if (['hold', 'rescue', 'restore', 'change'].includes(row.cause)) {
        assert.ok(row.fence > fence, `the fence does not grow: ${what}`);
        fence = row.fence;
      } else assert.equal(row.fence, hold.fence, what);
      assert.equal(open.get(row.hold) ?? 0, 0, `the change before is not whole: ${what}`);
      if (!['hold', 'change'].includes(row.cause)) assert.equal(row.quantity, hold.places, what);
      if (row.cause === 'change') open.set(row.hold, row.quantity - hold.places);
      else if (row.cause !== 'renew' && row.cause !== 'restore') open.set(row.hold, row.quantity);
      state.holds[row.hold] = { status: row.to, fence: row.fence, until: row.until, places: row.quantity };
    } else if (row.object === 'booking') {
      const isSold = state.holds[row.hold].status === 'confirmed';
      assert.ok(isSold || (row.from !== 'confirmed' && row.to !== 'confirmed'), what);
      assert.equal(bookings[row.hold] ?? null, row.from, what);
      bookings[row.hold] = row.to === 'failed' ? null : row.to; // another one may follow
      if (row.to === 'pending') payments[row.fence] = 'creating';
      if (isSold && ['cancelled', 'failed'].includes(row.to)) open.set(row.hold, row.quantity);
      if (row.from === null) state.bookings.push(row.booking);
    } else if (row.object === 'payment') {
      assert.equal(payments[row.fence], row.from, what);
      payments[row.fence] = row.to;
    } else if (row.object === 'event') {
      assert.equal(state.status, row.from, what);
      state.status = row.to;
    } else {
      assert.ok(row.quantity >= 1, what);
      if (row.hold) {
        assert.equal(row.fence, state.holds[row.hold].fence, what);
        const more = row.cause === 'change' && row.to !== 'held' ? -row.quantity : row.quantity;
        open.set(row.hold, open.get(row.hold) - more);
      }
      state.counts[row.from] -= row.quantity;
      state.counts[row.to] += row.quantity;
    }
    if (row.object === 'seat') {
      assert.equal(row.quantity, 1, what);
      assert.equal(state.seats[row.seat] ?? '.', LETTERS[row.from], what);
      if (row.from === 'held') assert.equal(row.hold, owner[row.seat], `another's seat: ${what}`);
      state.seats[row.seat] = LETTERS[row.to];
      owner[row.seat] = row.hold;
    } else if (row.object === 'area') {
      const area = state.areas[row.area];
      area[row.from] -= row.quantity;
      area[row.to] += row.quantity;
      for (const count of Object.values(area)) assert.ok(count >= 0 && count <= capacity[row.area], `${JSON.stringify(area)} after ${what}`);
    }
  }
  for (const [hold, places] of open) assert.equal(places, 0, `the places of ${hold} do not add up`);
  return state;
}

// Asserts that the fold equals the map and the counts that the server shows at the same seq.  Returns the
// fold and the rows.
export async function assertFoldIsState(server, event) {
  const map = await server.read(`/v1/events/${event.id}/seats`);
  const rows = (await readAudit(server, `event=${event.id}`)).filter(({ seq }) => seq <= map.seq);
  const { pruned_seq: prunedSeq } = await server.read(`/v1/audit?event=${event.id}&limit=1`);
  const state = fold(event, rows, prunedSeq);
  assert.equal(state.seq, map.seq);
  for (const section of map.sections) {
    for (const row of section.rows) {
      const folded = [...row.seats].map((_, i) => state.seats[`${section.name}-${row.name}-${i + 1}`] ?? '.').join('');
      assert.equal(folded, row.seats, `${section.name}-${row.name}`);
    }
  }
  for (const { name, available } of map.areas) assert.equal(state.areas[name].available, available, name);
  return { state, rows, map };
}
