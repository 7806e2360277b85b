// The waiting list over HTTP: what a place that comes back does for those who wait.  The order of turns and the ends of
// entries are the rules' (tests/unit/test_waitlist.c); this suite tests what clients see of them.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem, TIMESTAMP } from '../support/expect.mjs';
import { assertVerifiedSoon } from '../support/ledger.mjs';
import { inTime, itOnce, newKey, patiently, reap, start, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const [ADMIN, SELLER] = ['an-admin-key-of-the-tests', 'a-seller-key-of-the-tests'].map((key) => ({ Authorization: `Bearer ${key}` }));
const PLACES_MAX = 12;
const UNKNOWN = `wait_${'0'.repeat(10)}1${'0'.repeat(17)}`;
const keyed = () => ({ 'Idempotency-Key': newKey() });
const one = { best_available: { quantity: 1 } };
const pair = { best_available: { quantity: 2 } };

describe('the waiting list', () => {
  let server;
  before(async () => {
    server = await start({
      env: { HOLDFAST_ADMIN_KEY: ADMIN.Authorization.slice(7), HOLDFAST_SELLER_KEY: SELLER.Authorization.slice(7) },
      args: ['--hold-rate', 'off', '--public-seats-max', String(PLACES_MAX)],
    });
  });
  after(async () => {
    try {
      if (server) await assertVerifiedSoon(server.ledger, server.gate);
      await server?.finish();
    } finally { await reap(); }
  });

  const createEvent = (fields) => server.createEvent({
    waitlist: { per_owner: 3 },
    sections: [{ name: 'S', tier: 'A', price: 1000, rows: 1, seats_per_row: 4 }],
    areas: [{ name: 'Floor', price: 300, capacity: 3 }],
    ...fields,
  }, ADMIN);
  const seats = (...numbers) => numbers.map((n) => `S-A-${n}`);
  const all = seats(1, 2, 3, 4);
  // An event of which everything is held by sellers: { event, hold of the seats, floor }.
  const soldOut = async (fields) => {
    const event = await createEvent(fields);
    const hold = await server.grant(event, all, {}, SELLER);
    const floor = await server.take(event, { areas: { Floor: 3 } }, SELLER);
    return { event, hold, floor };
  };
  const join = (event, wish, fields = {}, headers = {}) => patiently(() => server.post('/v1/waitlist', { event: event.id, ...wish, ...fields }, headers));
  const wait = async (event, wish, fields, headers) => assertOk(await join(event, wish, fields, headers), 201);
  const look = ({ id }) => server.read(`/v1/waitlist/${id}`);
  const becomes = (entry, status) => until(`the entry is ${status}`, async () => {
    const now = await look(entry);
    return now.status === status && now;
  }, 60_000);
  const give = async (hold, ...names) => assertOk(await server.patch(`/v1/holds/${hold.id}`, { fence: (await server.read(`/v1/holds/${hold.id}`)).fence, remove: { seats: names } }, SELLER));
  const release = async (hold) => assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
  const held = (entry) => server.read(`/v1/holds/${entry.hold}`);
  const list = async (query, headers = ADMIN) => assertOk(await server.get(`/v1/waitlist${query}`, headers)).data;

  describe('of an event', () => {
    it('has terms, which a change replaces as a whole', async () => {
      const usual = { offer_ttl_ms: 600_000, alive_ms: 259_200_000, per_owner: 1, paused: false };
      const plain = await createEvent({ waitlist: undefined });
      assert.equal(plain.waitlist, null);
      const event = await createEvent({ waitlist: {} });
      assert.deepEqual(event.waitlist, usual);
      const change = async (waitlist) => assertOk(await server.patch(`/v1/events/${event.id}`, { waitlist }, ADMIN)).waitlist;
      assert.deepEqual(await change({ offer_ttl_ms: 5000, per_owner: 2 }), { ...usual, offer_ttl_ms: 5000, per_owner: 2 });
      assert.deepEqual(await change({ alive_ms: 60_000 }), { ...usual, alive_ms: 60_000 });
      assert.equal(await change(null), null);
      assert.equal((await server.read(`/v1/events/${event.id}`)).waitlist, null);
      assert.deepEqual(await change({}), usual);
      assertOk(await server.patch(`/v1/events/${event.id}`, { name: 'Other' }, ADMIN));
      assert.deepEqual((await server.read(`/v1/events/${event.id}`)).waitlist, usual);
    });

    itOnce('refuses terms that make no sense', async () => {
      const event = await createEvent();
      for (const waitlist of [true, [], { offer_ttl_ms: 999 }, { offer_ttl_ms: 86_400_001 }, { alive_ms: 59_999 }, { alive_ms: 0 }, { per_owner: 0 }, { per_owner: 101 }, { paused: true }])
        assertInvalid(await server.patch(`/v1/events/${event.id}`, { waitlist }, ADMIN), 'waitlist');
      assertInvalid(await server.patch(`/v1/events/${event.id}`, { offer_ttl_ms: 5000 }, ADMIN), 'offer_ttl_ms');
    });

    it('is needed to wait, and is switched off with those who wait', async () => {
      const { event } = await soldOut();
      const entry = await wait(event, one);
      assertOk(await server.patch(`/v1/events/${event.id}`, { waitlist: null }, ADMIN));
      assert.equal((await becomes(entry, 'ended')).reason, 'off');
      assertProblem(await join(event, one), 409, 'waitlist_off');
      assertProblem(await server.post(`/v1/events/${event.id}/waitlist/pause`, undefined, SELLER), 409, 'waitlist_off');
    });

    it('can be paused: nothing is offered, what comes back is on sale to all, and entries stay', async () => {
      const { event, hold } = await soldOut();
      const entry = await wait(event, one);
      const paused = assertOk(await server.post(`/v1/events/${event.id}/waitlist/pause`, undefined, { ...SELLER, ...keyed() }));
      assert.equal(paused.waitlist.paused, true);
      await give(hold, 'S-A-1', 'S-A-2');
      await server.grant(event, seats(1));
      assert.equal((await look(entry)).status, 'waiting');
      assert.equal(assertOk(await server.post(`/v1/events/${event.id}/waitlist/resume`, undefined, SELLER)).waitlist.paused, false);
      assert.deepEqual((await held(await becomes(entry, 'offered'))).seats, seats(2));
    });
  });

  describe('an entry', () => {
    it('waits with a number, and says how many are ahead', async () => {
      const { event } = await soldOut();
      const first = await wait(event, pair, { owner: 'Ann', metadata: { seat: 'aisle' }, until: '2040-01-01T00:00:00Z' });
      assert.match(first.id, /^wait_[0-9A-Za-z]{28}$/);
      assert.match(first.created_at, TIMESTAMP);
      assert.deepEqual({ ...first, id: 0, created_at: 0 }, {
        object: 'waitlist_entry', id: 0, event: event.id, status: 'waiting', number: 1, hold: null,
        best_available: { quantity: 2, accessible: false, adjacent: true }, owner: 'Ann', until: '2040-01-01T00:00:00.000Z',
        created_at: 0, ended_at: null, metadata: { seat: 'aisle' },
      });
      const second = await wait(event, { best_available: { quantity: 1, section: 'S', tier: 'A', adjacent: false } });
      assert.deepEqual(second.best_available, { quantity: 1, section: 'S', tier: 'A', accessible: false, adjacent: false });
      const third = await wait(event, { areas: { Floor: 2 } });
      assert.deepEqual(third.areas, { Floor: 2 });
      assert.deepEqual([second.number, third.number], [2, 3]);
      assert.deepEqual(await Promise.all([first, second, third].map(async (entry) => (await look(entry)).ahead)), [0, 1, 2]);
      assert.deepEqual(await look(first), { ...first, ahead: 0 });
    });

    it('is offered a hold in the commit of a release, which is paid as any other', async () => {
      const { event, hold } = await soldOut();
      const entry = await wait(event, pair, { owner: 'Ann', metadata: { a: 1 } });
      await give(hold, 'S-A-2', 'S-A-3');
      assertProblem(await server.hold(event, seats(2)), 409, 'seat_taken');
      const offered = await look(entry);
      assert.equal(offered.status, 'offered');
      assert.ok(offered.expires_in_ms > 500_000 && offered.expires_in_ms <= 600_000);
      assert.equal(offered.ahead, undefined);
      const mine = await held(offered);
      assert.deepEqual([mine.seats, mine.owner, mine.metadata, mine.expires_at, mine.max_expires_at], [seats(2, 3), 'Ann', { a: 1 }, offered.expires_at, offered.expires_at]);
      assertProblem(await server.post(`/v1/holds/${mine.id}/renew`, {}), 409, 'renewal_cap');
      assertInvalid(await server.patch(`/v1/holds/${mine.id}`, { fence: mine.fence, add: { areas: { Floor: 1 } } }), 'waiting list');
      const booking = assertOk(await server.post(`/v1/holds/${mine.id}/confirm`, { fence: mine.fence }, SELLER), 201);
      assert.deepEqual(booking.seats, seats(2, 3));
      const accepted = await look(entry);
      assert.deepEqual([accepted.status, accepted.hold], ['accepted', mine.id]);
      assert.match(accepted.ended_at, TIMESTAMP);
      assertProblem(await server.del(`/v1/waitlist/${entry.id}`), 409, 'not_waiting');
    });

    itOnce('that does not fit is passed over by those that do', async () => {
      const { event, hold } = await soldOut();
      const group = await wait(event, pair);
      const single = await wait(event, one);
      await give(hold, 'S-A-1');
      assert.equal((await becomes(single, 'offered')).status, 'offered');
      await give(hold, 'S-A-3');
      assert.equal((await look(group)).status, 'waiting');
      await give(hold, 'S-A-4');
      assert.deepEqual((await held(await becomes(group, 'offered'))).seats, seats(3, 4));
    });

    it('names places of an area, and ticket types', async () => {
      const { event, hold, floor } = await soldOut({ types: [{ id: 'full' }, { id: 'reduced', prices: { Floor: 100, S: 500 } }] });
      const mixed = await wait(event, { areas: { Floor: { full: 1, reduced: 2 } } });
      assert.deepEqual(mixed.areas, { Floor: { full: 1, reduced: 2 } });
      const typed = await wait(event, { best_available: { quantity: 2, types: { reduced: 1 } } });
      assert.deepEqual(typed.best_available.types, { full: 1, reduced: 1 });
      await release(floor);
      await release(hold);
      assert.equal((await held(await becomes(mixed, 'offered'))).amount, 500);
      assert.equal((await held(await becomes(typed, 'offered'))).amount, 1500);
      assertProblem(await join(event, { areas: { Floor: { senior: 1 } } }), 404, 'no_such_type');
    });

    it('leaves the list, and gives back what it was offered to the next', async () => {
      const { event, hold } = await soldOut();
      const [gone, first, next] = [await wait(event, one), await wait(event, one), await wait(event, one)];
      for (let i = 0; i < 2; i++) assert.equal((await server.del(`/v1/waitlist/${gone.id}`)).status, 204);
      assert.equal((await look(gone)).status, 'left');
      await give(hold, 'S-A-1');
      await becomes(first, 'offered');
      assert.equal((await server.del(`/v1/waitlist/${first.id}`)).status, 204);
      assert.equal((await look(first)).status, 'left');
      const offered = await becomes(next, 'offered');
      await release({ id: offered.hold });
      assert.equal((await look(next)).status, 'left');
      assert.equal((await server.map(event))['S-A-1'], '.');
    });

    it('lapses with its hold, and the next has its turn', async () => {
      const { event, hold } = await soldOut({ waitlist: { offer_ttl_ms: 1000, per_owner: 9 } });
      const [first, next] = [await wait(event, one), await wait(event, one)];
      await give(hold, 'S-A-1');
      await becomes(first, 'lapsed');
      assert.match((await look(next)).status, /offered|lapsed/);
    });

    it('is answered again under its key, and to its caller only by its whole id', async () => {
      const { event } = await soldOut();
      const key = keyed();
      const first = await join(event, one, {}, key);
      const again = await join(event, one, {}, key);
      assert.deepEqual([again.status, again.json], [201, first.json]);
      assert.equal(again.headers['idempotency-replayed'], 'true');
      assertProblem(await join(event, pair, {}, key), 422, 'idempotency_mismatch');
      const other = `${first.json.id.slice(0, -1)}${first.json.id.endsWith('a') ? 'b' : 'a'}`;
      for (const id of [UNKNOWN, other, 'wait_x', first.json.id.replace('wait_', 'hold_')]) {
        assertProblem(await server.get(`/v1/waitlist/${id}`), 404, 'no_such_entry');
        assertProblem(await server.del(`/v1/waitlist/${id}`), 404, 'no_such_entry');
        assertProblem(await server.get(`/v1/waitlist/${id}/stream`), 404, 'no_such_entry');
      }
    });

    it('ends by its time, by its owner\'s limit, and with the event', async () => {
      const { event, hold } = await soldOut({ max_per_owner: 1 });
      const brief = await inTime((ms) => wait(event, one, { until: new Date(Date.now() + ms).toISOString() }), 1500);
      const full = await wait(event, one, { owner: 'Ann' });
      const last = await wait(event, one, { owner: 'Ben' });
      assert.equal((await becomes(brief, 'ended')).reason, 'until');
      await give(hold, 'S-A-1');
      await becomes(full, 'offered');
      assertProblem(await join(event, one, { owner: 'Ben', until: '2020-01-01T00:00:00Z' }), 400, 'invalid_request');
      const again = await wait(event, one, { owner: 'Ann' });
      await give(hold, 'S-A-2', 'S-A-3');
      assert.equal((await becomes(again, 'ended')).reason, 'owner_limit');
      await becomes(last, 'offered');
      const stays = await wait(event, pair);
      assertOk(await server.post(`/v1/events/${event.id}/cancel`, undefined, ADMIN));
      assert.equal((await becomes(stays, 'ended')).reason, 'cancelled');
    });
  });

  describe('refuses', () => {
    itOnce('what could be had at once', async () => {
      const event = await createEvent();
      assertProblem(await join(event, one), 409, 'available');
      assertProblem(await join(event, { areas: { Floor: 3 } }), 409, 'available');
      await server.grant(event, seats(2, 4), {}, SELLER);
      await wait(event, pair);
    });

    itOnce('more entries than the owner may have, and than the address may have', async () => {
      const { event } = await soldOut({ waitlist: { per_owner: 2 } });
      await wait(event, one, { owner: 'Ann' });
      await wait(event, one, { owner: 'Ann' });
      assert.equal(assertProblem(await join(event, one, { owner: 'Ann' }), 409, 'already_waiting').limit, 2);
      for (let i = 2; i < PLACES_MAX; i++) await wait(event, one);
      const refused = await join(event, one);
      assert.equal(assertProblem(refused, 429, 'too_many_waits').limit, PLACES_MAX);
      assert.ok(Number(refused.headers['retry-after']) >= 1);
      await wait(event, one, {}, SELLER);
    });

    itOnce('events that are closed', async () => {
      const { event, hold } = await soldOut();
      const entry = await wait(event, one);
      assertOk(await server.post(`/v1/events/${event.id}/close`, undefined, SELLER));
      assertProblem(await join(event, one), 409, 'event_closed');
      await give(hold, 'S-A-1');
      assert.equal((await look(entry)).status, 'waiting');
      assertOk(await server.post(`/v1/events/${event.id}/open`, undefined, SELLER));
      await becomes(entry, 'offered');
    });

    itOnce('bodies that are wrong', async () => {
      const { event } = await soldOut();
      for (const [wish, what] of [
        [{}, 'best_available'], [{ ...one, areas: { Floor: 1 } }, 'best_available'], [{ areas: {} }, 'best_available'], [{ seats: all }, 'seats'],
        [{ ...one, ttl_ms: 5000 }, 'ttl_ms'], [{ ...one, channel: 'house' }, 'channel'], [{ ...one, until: 'soon' }, 'until'],
        [{ ...one, owner: 7 }, 'owner'], [{ ...one, metadata: { a: 'x'.repeat(500), b: 'x'.repeat(500), c: 'x'.repeat(100) } }, 'metadata'],
        [{ areas: { Floor: 1, S: 1 } }, 'areas'], [{ best_available: { quantity: 1, types: { full: 2 } } }, 'types'],
      ]) assertInvalid(await join(event, wish), what);
      assertProblem(await join(event, { best_available: { quantity: 501 } }), 400, 'too_many_seats');
      assertProblem(await join(event, { best_available: { quantity: 5 } }), 400, 'invalid_request');
      assertProblem(await join(event, { best_available: { quantity: 1, section: 'X' } }), 404, 'no_such_seat');
      assertProblem(await join(event, { best_available: { quantity: 1, tier: 'X' } }), 404, 'no_such_seat');
      assertProblem(await join(event, { areas: { X: 1 } }), 404, 'no_such_seat');
      assertProblem(await join({ id: 'evt_x' }, one), 404, 'no_such_event');
      assertOk(await server.patch(`/v1/events/${event.id}`, { max_per_hold: 1 }, ADMIN));
      assert.equal(assertProblem(await join(event, pair), 400, 'too_many_seats').limit, 1);
    });
  });

  describe('a stream of an entry', () => {
    const follow = async ({ id }, options) => Stream.open(server, null, { ...options, path: `/v1/waitlist/${id}/stream` });
    const heard = (stream, event) => stream.find((message) => message.event === event, 60_000);

    it('tells of an offer and of the end, and ends then', async () => {
      const { event, hold } = await soldOut();
      const entry = await wait(event, one);
      const stream = await follow(entry);
      assert.equal(stream.status, 200);
      assert.match(stream.headers['content-type'], /^text\/event-stream/);
      await give(hold, 'S-A-1');
      const { id, data } = await heard(stream, 'offered');
      assert.deepEqual(data, { seq: Number(id), status: 'offered' });
      assert.equal((await server.del(`/v1/waitlist/${entry.id}`)).status, 204);
      assert.equal((await heard(stream, 'ended')).data.status, 'left');
      assert.equal(await stream.closed, true);
      assert.deepEqual(stream.messages.map((one) => one.event), ['offered', 'ended']);
    });

    it('begins with what the entry is, and 204 says that there is nothing left to say', async () => {
      const { event, hold } = await soldOut();
      const entry = await wait(event, one);
      await give(hold, 'S-A-1');
      await becomes(entry, 'offered');
      const stream = await follow(entry);
      const { id } = await heard(stream, 'offered');
      stream.close();
      assertOk(await server.post(`/v1/holds/${(await look(entry)).hold}/evict`, undefined, ADMIN));
      const late = await follow(entry, { lastEventId: id });
      const lapsed = await heard(late, 'lapsed');
      assert.equal(await late.closed, true);
      assert.equal((await server.get(`/v1/waitlist/${entry.id}/stream?after=${lapsed.id}`)).status, 204);
      assertInvalid(await server.get(`/v1/waitlist/${entry.id}/stream?after=x`), 'after');
    });

    itOnce('goes on with an offer that outlives the list', async () => {
      const { event, hold } = await soldOut();
      const entry = await wait(event, one);
      await give(hold, 'S-A-1');
      await becomes(entry, 'offered');
      assertOk(await server.patch(`/v1/events/${event.id}`, { waitlist: null }, ADMIN));
      const stream = await follow(entry);
      await heard(stream, 'offered');
      await release({ id: (await look(entry)).hold });
      assert.equal((await heard(stream, 'ended'))?.data.status, 'left');
    });

    // Whoever followed the entry before a restore knows a later place in the log than there is.
    itOnce('begins with what the entry is, too, for those who know more than the log has', async () => {
      const { event, hold } = await soldOut();
      const entry = await wait(event, one);
      await give(hold, 'S-A-1');
      await becomes(entry, 'offered');
      const stream = await follow(entry, { lastEventId: '1000000' });
      assert.equal((await heard(stream, 'offered')).data.status, 'offered');
      assert.equal((await server.del(`/v1/waitlist/${entry.id}`)).status, 204);
      assert.equal((await heard(stream, 'ended')).data.status, 'left');
      assert.equal(await stream.closed, true);
      const late = await follow(entry, { lastEventId: '1000000' });
      assert.equal((await heard(late, 'ended')).data.status, 'left');
      assert.equal(await late.closed, true);
    });
  });

  describe('sellers and admins', () => {
    it('list entries, sellers without their secrets', async () => {
      const { event, hold } = await soldOut();
      const entries = [await wait(event, one, { owner: 'Ann' }), await wait(event, pair, { owner: 'Ben' }), await wait(event, one, { owner: 'Ann' })];
      await give(hold, 'S-A-1');
      await becomes(entries[0], 'offered');
      const whole = await list(`?event=${event.id}`);
      assert.deepEqual(whole.map(({ id }) => id), entries.map(({ id }) => id).reverse());
      assert.deepEqual(whole[1], entries[1]);
      assert.match(whole[2].hold, /^hold_[0-9A-Za-z]{28}$/);
      const masked = await list(`?event=${event.id}`, SELLER);
      for (const { id } of masked) assert.match(id, /^wait_[0-9A-Za-z]{11}\*{17}$/);
      assert.match(masked[2].hold, /\*{17}$/);
      assert.deepEqual((await list(`?event=${event.id}&owner=Ann&status=waiting`)).map(({ id }) => id), [entries[2].id]);
      assert.deepEqual((await list(`?owner=Ben&event=${event.id}`)).map(({ number }) => number), [2]);
      const page = assertOk(await server.get(`/v1/waitlist?event=${event.id}&limit=2`, SELLER));
      assert.deepEqual([page.data.length, page.has_more], [2, true]);
      const rest = assertOk(await server.get(`/v1/waitlist?event=${event.id}&limit=2&cursor=${page.next_cursor}`, SELLER));
      assert.deepEqual([rest.data.map(({ number }) => number), rest.has_more, rest.next_cursor], [[1], false, null]);
      assert.ok((await list('?limit=100')).length > 3);
      assertProblem(await server.get('/v1/waitlist'), 401, 'unauthorized');
      assertInvalid(await server.get('/v1/waitlist?status=gone', SELLER), 'status');
      assertInvalid(await server.get('/v1/waitlist?cursor=x', SELLER), 'cursor');
      const other = await createEvent();
      assertInvalid(await server.get(`/v1/waitlist?event=${other.id}&cursor=${page.next_cursor}`, SELLER), 'cursor');
    });

    it('move an entry to the front, and evict entries', async () => {
      const { event, hold } = await soldOut();
      const [first, second, third] = [await wait(event, one), await wait(event, one), await wait(event, one)];
      const key = keyed();
      const moved = assertOk(await server.post(`/v1/waitlist/${third.id}/first`, undefined, { ...ADMIN, ...key }));
      assert.deepEqual([moved.status, moved.number, moved.id], ['waiting', 3, third.id]);
      assert.deepEqual(assertOk(await server.post(`/v1/waitlist/${third.id}/first`, undefined, { ...ADMIN, ...key })), moved);
      assert.deepEqual([(await look(third)).ahead, (await look(first)).ahead], [0, 1]);
      await give(hold, 'S-A-1');
      await becomes(third, 'offered');
      assertProblem(await server.post(`/v1/waitlist/${third.id}/first`, undefined, ADMIN), 409, 'not_waiting');
      const ended = assertOk(await server.post(`/v1/waitlist/${first.id}/evict`, undefined, ADMIN));
      assert.deepEqual([ended.status, ended.reason], ['ended', 'evicted']);
      assert.match(ended.ended_at, TIMESTAMP);
      const lapsed = assertOk(await server.post(`/v1/waitlist/${third.id}/evict`, undefined, ADMIN));
      assert.equal(lapsed.status, 'lapsed');
      await becomes(second, 'offered');
      assertProblem(await server.post(`/v1/waitlist/${third.id}/evict`, undefined, ADMIN), 409, 'not_waiting');
      for (const verb of ['first', 'evict']) {
        assertProblem(await server.post(`/v1/waitlist/${UNKNOWN}/${verb}`, undefined, ADMIN), 404, 'no_such_entry');
        assertProblem(await server.post(`/v1/waitlist/${second.id}/${verb}`, undefined, SELLER), 403, 'forbidden');
      }
    });

    it('read what happened in the log', async () => {
      const { event, hold } = await soldOut();
      const entry = await wait(event, one);
      await give(hold, 'S-A-1');
      const { hold: id } = await becomes(entry, 'offered');
      await release({ id });
      const rows = assertOk(await server.get(`/v1/audit?event=${event.id}&limit=1000`, ADMIN)).data.filter(({ object }) => object === 'waitlist_entry');
      assert.deepEqual(rows.map(({ cause, from, to }) => [cause, from, to]), [['create', null, 'waiting'], ['waitlist', 'waiting', 'offered'], ['release', 'offered', 'left']]);
      for (const row of rows) assert.equal(row.waitlist_entry, entry.id.replace(/.{17}$/, '*'.repeat(17)));
      assert.deepEqual([rows[0].number, rows[0].until, rows[1].hold, rows[1].number], [1, null, id, undefined]);
      const [offer] = assertOk(await server.get(`/v1/audit?hold=${id}`, ADMIN)).data;
      assert.deepEqual([offer.cause, offer.actor], ['waitlist', 'server']);
      assertOk(await server.post(`/v1/events/${event.id}/waitlist/pause`, undefined, SELLER));
      assertOk(await server.post(`/v1/events/${event.id}/waitlist/resume`, undefined, SELLER));
      const last = assertOk(await server.get(`/v1/audit?event=${event.id}&limit=1000`, ADMIN)).data.slice(-2);
      assert.deepEqual(last.map(({ cause }) => cause), ['pause', 'resume']);
    });

    it('erase an owner, whose entries end', async () => {
      const { event } = await soldOut();
      const key = keyed();
      const answer = await join(event, one, { owner: 'Zoe', metadata: { phone: '1' } }, key);
      const entry = assertOk(answer, 201);
      const erasure = { ...ADMIN, ...keyed() };
      const erased = assertOk(await server.post('/v1/owners/erase', { owner: 'Zoe' }, erasure));
      assert.equal(erased.object, 'erasure');
      assert.deepEqual(assertOk(await server.post('/v1/owners/erase', { owner: 'Zoe' }, erasure)), erased);
      const ended = await look(entry);
      assert.deepEqual([ended.status, ended.reason, ended.owner, ended.metadata], ['ended', 'erased', null, undefined]);
      assert.equal((await list('?owner=Zoe')).length, 0);
      const repeat = await join(event, one, { owner: 'Zoe', metadata: { phone: '1' } }, key);
      assert.deepEqual([repeat.status, repeat.json.id, repeat.json.owner], [201, entry.id, null]);
    });

    it('erase an owner in entries that ended long ago, too, and the addresses in their rows', async () => {
      const { event, hold } = await soldOut();
      const left = await wait(event, one, { owner: 'Yan', metadata: { phone: '1' } });
      assert.equal((await server.del(`/v1/waitlist/${left.id}`)).status, 204);
      const offered = await wait(event, one, { owner: 'Yan', metadata: { phone: '2' } });
      await give(hold, 'S-A-1');
      await becomes(offered, 'offered');
      assert.equal((await server.del(`/v1/waitlist/${offered.id}`)).status, 204);
      const rows = async () => assertOk(await server.get(`/v1/audit?event=${event.id}&limit=1000`, ADMIN)).data
        .filter(({ object }) => object === 'waitlist_entry').map(({ cause, actor }) => `${cause} ${actor.replace(/:[0-9].*/, '')}`);
      const buyer = ['create address', 'release address'];
      assert.deepEqual(await rows(), [...buyer, buyer[0], 'waitlist server', buyer[1]]);
      assertOk(await server.post('/v1/owners/erase', { owner: 'Yan' }, { ...ADMIN, ...keyed() }));
      for (const entry of [left, offered]) {
        const is = await look(entry);
        assert.deepEqual([is.status, is.owner, is.metadata], ['left', null, undefined]);
      }
      assert.deepEqual(await rows(), [...buyer, buyer[0], 'waitlist server', buyer[1]].map((text) => text.replace('address', 'address:erased')));
    });

    it('count entries and offers', async () => {
      const metric = async (name, label) => {
        const texts = await Promise.all((server.servers ?? [server]).map(async (each) => (await each.get('/metrics', ADMIN)).text));
        return texts.reduce((sum, text) => sum + Number(text.match(new RegExp(`^${name}\\{${label}\\} (\\d+)$`, 'm'))[1]), 0);
      };
      const offers = (result) => metric('holdfast_waitlist_offers_total', `result="${result}"`);
      const entries = (status) => metric('holdfast_waitlist_entries', `status="${status}"`);
      const { event, hold } = await soldOut();
      const [made, lapsed] = [await offers('made'), await offers('lapsed')];
      const entry = await wait(event, one);
      await until('it is counted', async () => await entries('waiting') >= 1);
      await give(hold, 'S-A-1');
      await becomes(entry, 'offered');
      await until('the offer is counted', async () => await offers('made') === made + 1 && await entries('offered') >= 1);
      assertOk(await server.post(`/v1/waitlist/${entry.id}/evict`, undefined, ADMIN));
      await until('its lapse is counted', async () => await offers('lapsed') === lapsed + 1);
    });
  });
});
