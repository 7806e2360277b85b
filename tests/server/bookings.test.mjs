// Bookings: found and listed by sellers, read by whoever has the id, cancelled once.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  assertBooking, assertIdempotent, assertInvalid, assertOk, assertProblem, BOOKING_ID, ms, TIMESTAMP,
} from '../support/expect.mjs';
import { assertVerifiedSoon } from '../support/ledger.mjs';
import { itOnce, newKey, reap, start } from '../support/server.mjs';

const ADMIN = { Authorization: 'Bearer an-admin-key-of-the-tests' };
const SELLER = { Authorization: 'Bearer a-seller-key-of-the-tests' };
const NOWHERE = `bkg_${'0'.repeat(28)}`;

describe('bookings', () => {
  let server;
  before(async () => {
    server = await start({ env: { HOLDFAST_ADMIN_KEY: ADMIN.Authorization.slice(7), HOLDFAST_SELLER_KEY: SELLER.Authorization.slice(7) } });
  });
  after(async () => {
    try {
      if (server) await assertVerifiedSoon(server.ledger, server.gate);
      await server?.stop();
    } finally { await reap(); }
  });

  const createEvent = (fields) => server.createEvent({ areas: [{ name: 'Floor', price: 300, capacity: 20 }], ...fields }, ADMIN);
  const take = (event, fields) => server.take(event, fields, SELLER);
  const confirm = (hold, fields) => server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, ...fields }, SELLER);
  const sell = async (event, fields, reference) => assertOk(await confirm(await take(event, fields), reference === undefined ? {} : { reference }), 201);
  const cancel = (booking, body, headers = SELLER) => server.post(`/v1/bookings/${booking.id ?? booking}/cancel`, body, headers);
  const list = (query = '', headers = SELLER) => server.get(`/v1/bookings${query ? `?${query}` : ''}`, headers);
  const ids = async (query) => assertOk(await list(query)).data.map(({ id }) => id);
  const letters = async (event, ...seats) => { const map = await server.map(event); return seats.map((seat) => map[seat]).join(''); };
  const counts = async (event) => Object.values(await server.counts(event)).join(' '); // available held booked blocked

  // Resolves to the bookings of all pages; asserts that every page but the last is full.
  async function pages(query, limit) {
    const found = [];
    let cursor = '';
    for (let n = 0; n < 50; n++) {
      const page = assertOk(await list(`${query}limit=${limit}${cursor}`));
      assert.deepEqual(Object.keys(page), ['data', 'has_more', 'next_cursor']);
      found.push(...page.data);
      if (!page.has_more) {
        assert.equal(page.next_cursor, null);
        return found;
      }
      assert.equal(page.data.length, limit);
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
    return assert.fail('the pages do not end');
  }

  it('a booking says what was sold, and its hold names it', async () => {
    const event = await createEvent();
    const hold = await take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 1 }, owner: 'Ann' });
    assert.equal(hold.booking, null);
    const answer = await confirm(hold, { reference: 'order 1' });
    const booking = assertBooking(assertOk(answer, 201), hold);
    assert.deepEqual([booking.reference, booking.owner, booking.fence, booking.payment, booking.expires_at, booking.cancelled_at, booking.reason],
      ['order 1', 'Ann', hold.fence, null, null, null, null]);
    for (const headers of [{}, SELLER, ADMIN]) assert.deepEqual(assertOk(await server.get(`/v1/bookings/${booking.id}`, headers)), booking);
    assert.deepEqual([(await server.read(`/v1/holds/${hold.id}`)).booking, (await server.read(`/v1/holds/${hold.id}`)).status], [booking.id, 'confirmed']);
    const [mine] = assertOk(await server.get(`/v1/holds?event=${event.id}`, SELLER)).data;
    assert.match(mine.booking, /^bkg_[0-9A-Za-z]{11}\*{17}$/);
    const [admins] = assertOk(await server.get(`/v1/holds?event=${event.id}`, ADMIN)).data;
    assert.deepEqual([admins.id, admins.booking], [hold.id, booking.id]);
    for (const id of [NOWHERE, 'bkg_x', 'x', hold.id, booking.id.slice(0, -1), `${booking.id.slice(0, -1)}${booking.id.endsWith('0') ? '1' : '0'}`]) {
      assertProblem(await server.get(`/v1/bookings/${id}`), 404, 'no_such_booking');
      assertProblem(await cancel(id), 404, 'no_such_booking');
    }
  });

  it('cancelling frees the places, once', async () => {
    const event = await createEvent();
    const hold = await take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 3 }, owner: 'Ann' });
    const booking = assertOk(await confirm(hold, { reference: 'order' }), 201);
    assert.equal(await counts(event), '35 0 5 0');
    const cancelled = assertOk(await cancel(booking, { reason: 'ill' }));
    assert.deepEqual({ ...cancelled, cancelled_at: null, reason: null, status: 'confirmed' }, booking);
    assert.deepEqual([cancelled.status, cancelled.reason], ['cancelled', 'ill']);
    assert.match(cancelled.cancelled_at, TIMESTAMP);
    assert.ok(ms(cancelled.cancelled_at) >= ms(booking.created_at));
    assert.equal(await counts(event), '40 0 0 0');
    assert.equal(await letters(event, 'S-A-1', 'S-A-2'), '..');
    for (const body of [{}, undefined, { reason: 'another' }, { reason: null }]) assert.deepEqual(assertOk(await cancel(booking, body)), cancelled);
    assert.deepEqual(assertOk(await server.get(`/v1/bookings/${booking.id}`)), cancelled);
    // The hold stays what it was: confirmed, of that booking.
    const read = await server.read(`/v1/holds/${hold.id}`);
    assert.deepEqual([read.status, read.booking], ['confirmed', booking.id]);
    assert.equal(assertOk(await confirm(hold, { reference: 'order' })).status, 'cancelled');
    assertProblem(await server.del(`/v1/holds/${hold.id}`), 409, 'hold_confirmed');
    assert.equal(await counts(event), '40 0 0 0');
  });

  itOnce('a seat is sold, cancelled and sold again', async () => {
    const event = await createEvent();
    const sold = [];
    for (let i = 0; i < 4; i++) {
      const booking = await sell(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 8 } }, `try ${i}`);
      sold.push(booking.id);
      assert.deepEqual(assertProblem(await server.hold(event, ['S-A-2', 'S-A-3']), 409, 'seat_taken').seats, ['S-A-2']);
      if (i < 3) assertOk(await cancel(booking));
    }
    assert.equal(await letters(event, 'S-A-1', 'S-A-2'), 'bb');
    assert.equal(new Set(sold).size, 4);
    for (const id of sold.slice(0, 3)) assert.equal(assertOk(await cancel(id)).status, 'cancelled'); // the old ones free nothing
    assert.equal(await letters(event, 'S-A-1', 'S-A-2'), 'bb');
    assert.deepEqual(await ids(`event=${event.id}&status=confirmed`), [sold[3]]);
    assert.deepEqual(await ids(`event=${event.id}&status=cancelled`), sold.slice(0, 3).reverse());
    const { history } = assertOk(await server.get(`/v1/events/${event.id}/seats/S-A-1`, SELLER));
    assert.deepEqual(history.slice(0, 4).map(({ cause, from, to }) => `${cause} ${from} ${to}`),
      ['confirm held booked', 'hold available held', 'cancel booked available', 'confirm held booked']);
    const { data } = assertOk(await server.get(`/v1/audit?event=${event.id}&limit=1000`, ADMIN));
    assert.deepEqual(data.filter(({ object }) => object === 'booking').map(({ from, to, cause, booking }) => [from, to, cause, booking]),
      sold.flatMap((id, i) => [[null, 'confirmed', 'confirm', id], ...(i < 3 ? [['confirmed', 'cancelled', 'cancel', id]] : [])]));
  });

  it('of many who cancel one booking all get the same answer', async () => {
    const event = await createEvent();
    const booking = await sell(event, { seats: ['S-A-1'], areas: { Floor: 2 } });
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => cancel(booking, { reason: `${i}` })));
    for (const answer of answers) assert.equal(assertOk(answer).cancelled_at, answers[0].json.cancelled_at);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    assert.equal(await counts(event), '40 0 0 0');
  });

  it('while one cancels, many buyers want the seat: one gets it', async () => {
    const event = await createEvent();
    const booking = await sell(event, { seats: ['S-A-1'] });
    const [cancelled, ...asked] = await Promise.all([cancel(booking), ...Array.from({ length: 20 }, () => server.hold(event, 'S-A-1', {}, SELLER))]);
    assertOk(cancelled);
    assert.ok(asked.filter(({ status }) => status === 201).length <= 1);
    for (const answer of asked.filter(({ status }) => status !== 201)) assertProblem(answer, 409, 'seat_taken');
    const last = await server.hold(event, 'S-A-1', {}, SELLER);
    assert.equal(last.status, asked.some(({ status }) => status === 201) ? 409 : 201);
    assert.equal(await letters(event, 'S-A-1'), 'h');
  });

  it('bookings are found by event, status, reference and owner', async () => {
    const [event, other] = [await createEvent(), await createEvent()];
    const mark = `o-${Date.now()}`; // the server has bookings of other tests
    const one = await sell(event, { seats: ['S-A-1'], owner: `${mark} Ann` }, `${mark}/1`);
    const two = await sell(event, { areas: { Floor: 2 }, owner: `${mark} Ben & Co` }, `${mark}/2 é`);
    const three = await sell(other, { seats: ['S-A-1'], owner: `${mark} Ann` }, `${mark}/1`);
    const four = await sell(other, { seats: ['S-A-2'] });
    assertOk(await cancel(two));
    const q = encodeURIComponent;
    for (const [query, wanted] of [
      [`event=${event.id}`, [two, one]], [`event=${other.id}`, [four, three]],
      [`reference=${q(`${mark}/1`)}`, [three, one]], [`reference=${q(`${mark}/2 é`)}`, [two]], [`reference=${q(`${mark}/`)}`, []], [`reference=${q(`${mark}/1`.toUpperCase())}`, []],
      [`event=${event.id}&reference=${q(`${mark}/1`)}`, [one]], [`event=${event.id}&status=confirmed`, [one]], [`event=${event.id}&status=cancelled`, [two]],
      [`event=${event.id}&status=pending`, []], [`event=${event.id}&status=failed`, []],
      [`owner=${q(`${mark} Ann`)}`, [three, one]], [`owner=${q(`${mark} Ben & Co`)}`, [two]], [`owner=${mark}`, []],
      [`event=${other.id}&owner=${q(`${mark} Ann`)}`, [three]], [`reference=${q(`${mark}/1`)}&owner=${q(`${mark} Ann`)}&status=confirmed&event=${event.id}`, [one]],
      [`reference=${q(`${mark}/2 é`)}&owner=${q(`${mark} Ann`)}`, []], [`reference=${q(`${mark}/2 é`)}&status=cancelled`, [two]],
    ]) assert.deepEqual(await ids(query), wanted.map(({ id }) => id), query);
    const [found] = assertOk(await list(`reference=${q(`${mark}/1`)}&event=${event.id}`)).data;
    assert.deepEqual(found, one, 'an entry of the list is the booking');
  });

  it('pages have every booking once, over all events and after a restart', async () => {
    const events = [];
    for (let i = 0; i < 3; i++) events.push(await createEvent());
    const owner = `pages ${Date.now()}`;
    const made = [];
    for (let i = 0; i < 11; i++) made.push(await sell(events[i % 3], { seats: [`S-A-${1 + Math.floor(i / 3)}`], owner }, `page ${i}`));
    for (const i of [0, 4, 8]) assertOk(await cancel(made[i]));
    await server.kill9();
    await server.launch(); // no event is loaded now
    const wanted = [...events].reverse().flatMap((event) => made.filter((booking) => booking.event === event.id).reverse()).map(({ id }) => id);
    for (const limit of [1, 3, 11, 100]) assert.deepEqual((await pages(`owner=${encodeURIComponent(owner)}&`, limit)).map(({ id }) => id), wanted, `limit ${limit}`);
    const everything = (await pages('', 7)).map(({ id }) => id);
    assert.equal(new Set(everything).size, everything.length);
    assert.deepEqual(everything.filter((id) => wanted.includes(id)), wanted);
    for (const id of everything) assert.match(id, BOOKING_ID);
    const cancelled = await pages(`owner=${encodeURIComponent(owner)}&status=cancelled&`, 2);
    assert.deepEqual(cancelled.map(({ id }) => id).sort(), [0, 4, 8].map((i) => made[i].id).sort());
    assert.deepEqual((await pages(`event=${events[1].id}&`, 2)).map(({ id }) => id), wanted.filter((id) => made.find((one) => one.id === id).event === events[1].id));
  });

  itOnce('what is wrong is named', async () => {
    const event = await createEvent();
    for (const [query, field] of [['status=active', 'status'], ['status=', 'status'], ['limit=0', 'limit'], ['limit=101', 'limit'], ['limit=x', 'limit'], ['cursor=x', 'cursor'],
      ['cursor=', 'cursor'], ['hold=x', 'hold'], ['owner=%ff', 'owner'], ['reference=a%c3', 'reference'], ['reference=a&reference=b', 'reference'], [`event=${event.id}&cursor=7`, 'cursor']]) assertInvalid(await list(query), field);
    assertProblem(await list(`event=evt_${'0'.repeat(28)}`), 404, 'no_such_event');
    assertProblem(await list('event='), 404, 'no_such_event');
    assert.deepEqual(assertOk(await list(`event=${event.id}`)), { data: [], has_more: false, next_cursor: null });
    assertProblem(await list('', {}), 401, 'unauthorized');
    assert.match((await list()).headers['cache-control'], /no-store/);
    const booking = await sell(event, { seats: ['S-A-1'] });
    assertProblem(await cancel(booking, {}, {}), 401, 'unauthorized');
    for (const [body, field] of [[{ reason: 7 }, 'reason'], [{ reason: 'x'.repeat(256) }, 'reason'], [{ amount: 1 }, 'amount'], [[]], ['{'], ['null']]) assertInvalid(await cancel(booking, body), field);
    assert.equal(assertOk(await server.get(`/v1/bookings/${booking.id}`)).status, 'confirmed');
    const wrong = await server.del(`/v1/bookings/${booking.id}`);
    assertProblem(wrong, 405, 'method_not_allowed');
    assertProblem(await server.get(`/v1/bookings/${booking.id}/cancel`, SELLER), 405, 'method_not_allowed');
  });

  it('repeats under one key are one cancellation', async () => {
    const event = await createEvent();
    const booking = await sell(event, { seats: ['S-A-1'] });
    const keyed = { request: (method, path, body, headers) => server.request(method, path, body, { ...SELLER, ...headers }) };
    await assertIdempotent(keyed, `/v1/bookings/${booking.id}/cancel`, { reason: 'x' }, {}, newKey());
    assert.equal(await counts(event), '40 0 0 0');
  });

  it('a cancellation outlives a kill, after which a booking can be cancelled whose event is not loaded', async () => {
    const [event, other] = [await createEvent(), await createEvent()];
    const unloaded = await sell(other, { seats: ['S-A-1'] });
    const booking = await sell(event, { seats: ['S-A-1'], areas: { Floor: 1 } }, 'kept');
    const cancelled = assertOk(await cancel(booking, { reason: 'rain' }));
    const again = await sell(event, { seats: ['S-A-1'] });
    await server.kill9();
    await server.launch();
    assertOk(await cancel(unloaded));
    assert.equal((await server.map(other))['S-A-1'], '.');
    await server.grant(other, 'S-A-1', {}, SELLER);
    assert.deepEqual(assertOk(await server.get(`/v1/bookings/${booking.id}`)), cancelled);
    assert.deepEqual(await ids(`event=${event.id}`), [again.id, booking.id]);
    assert.equal(await counts(event), '39 0 1 0');
    assertOk(await cancel(again));
    assert.equal(await counts(event), '40 0 0 0');
  });
});
