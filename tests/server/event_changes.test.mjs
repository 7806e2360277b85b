// Events change: PATCH of their terms, the times between which they sell, archiving, and what maps and streams
// tell of it.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  assertIdempotent, assertInvalid, assertOk, assertProblem, ms, TIMESTAMP,
} from '../support/expect.mjs';
import { assertVerifiedSoon } from '../support/ledger.mjs';
import { inTime, itOnce, newKey, reap, sleep, start } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const in_ = (milliseconds) => new Date(Date.now() + milliseconds).toISOString();

describe('events change', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => {
    try {
      if (server) await assertVerifiedSoon(server.ledger, server.gate);
      await server?.finish();
    } finally { await reap(); }
  });

  const createEvent = (fields) => server.createEvent({
    sections: [{ name: 'S', tier: 'A', price: 1000, rows: 2, seats_per_row: 10 }, { name: 'T', price: 700, rows: [{ name: 'I', seats: 5 }] }],
    areas: [{ name: 'Floor', price: 300, capacity: 20 }], ...fields,
  });
  const change = (event, body, headers) => server.patch(`/v1/events/${event.id ?? event}`, body, headers);
  const changed = async (event, body) => assertOk(await change(event, body));
  const act = (event, action) => server.post(`/v1/events/${event.id}/${action}`);
  const get = (event) => server.read(`/v1/events/${event.id}`);
  const map = (event) => server.read(`/v1/events/${event.id}/seats`);
  const release = async (hold) => assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);

  // Resolves to the events of all pages.
  async function all(query) {
    const found = [];
    for (let cursor = ''; ;) {
      const page = await server.read(`/v1/events?${query}${cursor}`);
      found.push(...page.data);
      if (!page.has_more) return found;
      cursor = `&cursor=${page.next_cursor}`;
    }
  }

  const TERMS = {
    name: 'Gala', venue: 'Town Hall', venue_address: 'Marktplatz 1, Celle', timezone: 'Europe/Berlin', starts_at: '2030-01-31T21:00:00.000+01:00',
    doors_at: '2030-01-31T20:00:00.000+01:00', image: 'https://example.org/gala.jpg?w=9', description: 'Two parts.\nOne interval.', sales_open_at: '2020-01-01T00:00:00.000Z',
    sales_close_at: '2030-01-31T19:00:00.000Z', hold_ttl_ms: 60_000, hold_max_ms: 90_000, max_per_hold: 7, max_per_owner: 9, lone_seats: 'refuse',
    metadata: { season: 'winter', doors: 19.5, accessible: true, note: null },
  };
  const termsOf = (event) => Object.fromEntries(Object.keys(TERMS).map((name) => [name, event[name]]));

  it('an event is created with all its terms, and has them wherever it is shown', async () => {
    const event = await createEvent(TERMS);
    assert.deepEqual(termsOf(event), TERMS);
    assert.deepEqual(termsOf(await get(event)), TERMS);
    const { data } = await server.read('/v1/events?limit=100');
    assert.deepEqual(termsOf(data.find(({ id }) => id === event.id)), TERMS);
    const plain = await createEvent();
    assert.deepEqual(termsOf(plain), {
      name: 'Gala', venue: null, venue_address: null, timezone: null, starts_at: null, doors_at: null, image: null, description: null, sales_open_at: null, sales_close_at: null, hold_ttl_ms: 480_000, hold_max_ms: 1_200_000,
      max_per_hold: 10, max_per_owner: null, lone_seats: 'allow', metadata: null,
    });
  });

  itOnce('a start keeps the offset that it came with, and times of sales are in UTC', async () => {
    for (const [given, answered] of [
      ['2030-01-31T21:00:00+01:00', '2030-01-31T21:00:00.000+01:00'], ['2030-06-30t20:30:00.5-09:30', '2030-06-30T20:30:00.500-09:30'],
      ['2030-01-01T00:15:00+05:45', '2030-01-01T00:15:00.000+05:45'], ['2030-01-31T20:00:00+00:00', '2030-01-31T20:00:00.000Z'], ['2030-01-31 20:00:00z', '2030-01-31T20:00:00.000Z'],
    ]) {
      const event = await createEvent({ starts_at: given, doors_at: given, sales_close_at: given });
      const read = await get(event);
      for (const { starts_at: starts, doors_at: doors, sales_close_at: closes } of [event, read]) {
        assert.deepEqual([starts, doors], [answered, answered]);
        assert.equal(closes, new Date(answered).toISOString());
      }
    }
    const moved = await changed(await createEvent({ starts_at: '2030-01-31T21:00:00+01:00' }), { starts_at: '2030-01-31T20:00:00Z' });
    assert.equal(moved.starts_at, '2030-01-31T20:00:00.000Z', 'the same moment with another offset');
  });

  itOnce('a time zone is one that there is, and an image has an address that a page may use', async () => {
    for (const timezone of ['Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5', 'UTC']) assert.equal((await createEvent({ timezone })).timezone, timezone);
    for (const image of ['/pictures/a.jpg', 'https://example.org', 'https://example.org:8443/a?b=c#d', 'https://example.org/%C3%A4.png']) {
      assert.equal((await createEvent({ image })).image, image);
    }
    const event = await createEvent(TERMS);
    const wrong = {
      timezone: ['', 'Berlin', 'Europe', 'europe/berlin', 'Europe/Berlin ', '+01:00', 'CET-1CEST', '../../etc/passwd', 'Europe/../Europe/Berlin', '/Europe/Berlin', 'posix/UTC', 'localtime', 'tzdata.zi', 'A'.repeat(65), 7],
      image: ['', 'http://example.org/a.jpg', '//example.org/a.jpg', 'javascript:alert(1)', 'a.jpg', 'https://', 'https:///a', 'https://me@example.org/a', 'https://example.org/a b', 'https://example.org/"', '/\\example.org', `/${'a'.repeat(2000)}`, 7],
      description: ['', 'x'.repeat(2001), 7], venue_address: ['', 'x'.repeat(256), 7], doors_at: ['', 'soon', '2030-01-31T20:00:00', 7],
    };
    for (const [field, values] of Object.entries(wrong)) for (const value of values) assertInvalid(await change(event, { [field]: value }), field);
    assert.deepEqual(termsOf(await get(event)), TERMS);
  });

  itOnce('sales close at the start, unless they are to close at another time', async () => {
    const begins = await inTime(async (ttlMs) => {
      const made = await createEvent({ starts_at: in_(ttlMs), sales_open_at: '2020-01-01T00:00:00Z' });
      await server.grant(made, 'S-A-1');
      return made;
    });
    assert.equal(begins.sales_close_at, null);
    const held = await server.grant(await createEvent({ starts_at: '2020-01-01T00:00:00Z', sales_close_at: in_(3_600_000) }), 'S-A-1');
    assert.equal(held.status, 'active', 'sold on after the start');
    await sleep(ms(begins.starts_at) - Date.now() + 10);
    const late = assertProblem(await server.hold(begins, 'S-A-2'), 409, 'event_closed');
    assert.equal(late.sales_close_at, begins.starts_at);
    assertProblem(await server.ask(begins, { best_available: { quantity: 1 } }), 409, 'event_closed');
    assertProblem(await server.hold(begins, 'S-A-1'), 409, 'event_closed');
    assert.equal((await get(begins)).status, 'open');
    await changed(begins, { starts_at: in_(3_600_000) }); // it is put off
    await server.grant(begins, 'S-A-2');
    await changed(begins, { starts_at: '2020-01-01T00:00:00Z' });
    assertProblem(await server.hold(begins, 'S-A-3'), 409, 'event_closed');
    await changed(begins, { starts_at: null });
    await server.grant(begins, 'S-A-3');
  });

  it('each of its terms can be changed alone, and null removes what may be absent', async () => {
    const event = await createEvent();
    let now = termsOf(event);
    for (const [name, value] of Object.entries({ ...TERMS, name: 'Recital' })) {
      const answer = await changed(event, { [name]: value });
      now = { ...now, [name]: value };
      assert.deepEqual(termsOf(answer), now, name);
      assert.equal(answer.available, 45);
    }
    const read = await get(event);
    assert.deepEqual(termsOf(read), now);
    assert.deepEqual([read.id, read.created_at, read.currency, read.sections, read.areas], [event.id, event.created_at, event.currency, event.sections, event.areas]);
    for (const name of ['venue', 'venue_address', 'timezone', 'image', 'description', 'starts_at', 'doors_at', 'sales_open_at', 'sales_close_at', 'max_per_owner', 'metadata']) {
      now[name] = null;
      assert.deepEqual(termsOf(await changed(event, { [name]: null })), now, name);
    }
    assert.deepEqual(termsOf(await get(event)), now);
    assert.deepEqual(termsOf(await changed(event, { ...TERMS })), TERMS, 'all at once');
    assert.deepEqual((await changed(event, { metadata: { other: 1 } })).metadata, { other: 1 }, 'metadata is replaced, not merged');
  });

  it('prices change for holds that are made from then on', async () => {
    const event = await createEvent();
    const hold = await server.take(event, { seats: ['S-A-1', 'T-I-1'], areas: { Floor: 1 } });
    assert.equal(hold.amount, 2000);
    const answer = await changed(event, { prices: { S: 1200, Floor: 0 } });
    assert.deepEqual([answer.sections.map(({ price }) => price), answer.areas.map(({ price }) => price)], [[1200, 700], [0]]);
    const shown = await map(event);
    assert.deepEqual(shown.prices, { S: 1200, T: 700, Floor: 0 });
    assert.deepEqual([shown.sections[0].price, shown.areas[0].price, shown.currency, shown.status], [1200, 0, 'usd', 'open']);
    assert.equal((await server.read(`/v1/events/${event.id}/seats/S-A-5`)).price, 1200);
    assert.equal((await server.take(event, { seats: ['S-A-2', 'T-I-2'], areas: { Floor: 1 } })).amount, 1900);
    assert.equal((await server.read(`/v1/holds/${hold.id}`)).amount, 2000);
    assert.equal(assertOk(await server.post(`/v1/holds/${hold.id}/renew`)).amount, 2000);
    assert.equal(assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201).amount, 2000);
    assertInvalid(await change(event, { prices: { Nowhere: 1 } }), 'prices.Nowhere');
    assert.deepEqual((await map(event)).prices, { S: 1200, T: 700, Floor: 0 });
  });

  itOnce('limits change for what is asked from then on', async () => {
    const event = await createEvent({ hold_ttl_ms: 600_000, hold_max_ms: 600_000 });
    const hold = await server.grant(event, ['S-A-1', 'S-A-2', 'S-A-3'], { ttl_ms: 300_000 });
    await changed(event, { max_per_hold: 2, hold_ttl_ms: 5000, hold_max_ms: 8000 });
    assertProblem(await server.hold(event, ['S-B-1', 'S-B-2', 'S-B-3']), 400, 'too_many_seats');
    assertInvalid(await server.hold(event, 'S-B-1', { ttl_ms: 5001 }), 'ttl_ms');
    const short = await server.grant(event, ['S-B-1', 'S-B-2']);
    assert.equal(ms(short.expires_at) - ms(short.created_at), 5000);
    assert.equal(ms(short.max_expires_at) - ms(short.created_at), 8000);
    const read = await server.read(`/v1/holds/${hold.id}`);
    assert.deepEqual([read.expires_at, read.max_expires_at], [hold.expires_at, hold.max_expires_at]);
    // The hold of three may get another seat for one of its own, but no fourth.
    const swap = await server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, add: { seats: ['S-A-4'] }, remove: { seats: ['S-A-1'] } });
    assertOk(swap);
    assertProblem(await server.patch(`/v1/holds/${hold.id}`, { fence: swap.json.fence, add: { seats: ['S-A-1'] } }), 400, 'too_many_seats');
  });

  itOnce('what is wrong is named, and nothing changes', async () => {
    const event = await createEvent(TERMS);
    const before = (await map(event)).seq;
    for (const [body, field] of [
      [{ name: null }, 'name'], [{ name: '' }, 'name'], [{ name: 7 }, 'name'], [{ name: 'x'.repeat(256) }, 'name'], [{ venue: '' }, 'venue'], [{ venue: 7 }, 'venue'],
      [{ venue: 'x'.repeat(256) }, 'venue'], [{ metadata: [] }, 'metadata'], [{ metadata: { a: {} } }, 'metadata'], [{ metadata: 'x' }, 'metadata'],
      [{ starts_at: 'tomorrow' }, 'starts_at'], [{ starts_at: 1700000000 }, 'starts_at'], [{ sales_open_at: '2030-13-01T00:00:00Z' }, 'sales_open_at'],
      [{ sales_close_at: '' }, 'sales_close_at'], [{ max_per_hold: 0 }, 'max_per_hold'], [{ max_per_hold: 501 }, 'max_per_hold'], [{ max_per_hold: null }, 'max_per_hold'],
      [{ max_per_owner: 0 }, 'max_per_owner'], [{ max_per_owner: -1 }, 'max_per_owner'], [{ max_per_owner: '5' }, 'max_per_owner'], [{ max_per_owner: 1_000_001 }, 'max_per_owner'],
      [{ lone_seats: null }, 'lone_seats'], [{ lone_seats: 'never' }, 'lone_seats'], [{ lone_seats: 'Refuse' }, 'lone_seats'], [{ lone_seats: true }, 'lone_seats'], [{ lone_seats: '' }, 'lone_seats'],
      [{ hold_ttl_ms: 999 }, 'hold_ttl_ms'], [{ hold_ttl_ms: null }, 'hold_ttl_ms'], [{ hold_max_ms: null }, 'hold_max_ms'], [{ prices: null }, 'prices'], [{ prices: [] }, 'prices'],
      [{ prices: { S: -1 } }, 'prices.S'], [{ prices: { S: 1.5 } }, 'prices.S'], [{ prices: { S: null } }, 'prices.S'], [{ prices: { S: 1_000_000_000_001 } }, 'prices.S'],
      [{ currency: 'eur' }, 'currency'], [{ sections: [] }, 'sections'], [{ status: 'closed' }, 'status'], [{ id: 'x' }, 'id'],
      // Fields that are right alone and not together, or not with what is there.
      [{ hold_ttl_ms: 90_001 }, 'hold_max_ms'], [{ hold_max_ms: 59_999 }, 'hold_max_ms'], [{ hold_ttl_ms: 5000, hold_max_ms: 4000 }, 'hold_max_ms'],
      [{ sales_open_at: TERMS.sales_close_at }, 'sales_close_at'], [{ sales_close_at: '2019-01-01T00:00:00Z' }, 'sales_close_at'],
      [{ name: 'Other', max_per_hold: 0 }, 'max_per_hold'],
    ]) assertInvalid(await change(event, body), field);
    for (const body of ['', '[]', 'null', '{', '"x"', '{}', { prices: {} }, '{"name":"a","name":"b"}']) assertInvalid(await change(event, body));
    for (const id of [`evt_${'0'.repeat(28)}`, 'evt_x', 'x']) assertProblem(await change(id, { name: 'Other' }), 404, 'no_such_event');
    assert.deepEqual(termsOf(await get(event)), TERMS);
    assert.equal((await map(event)).seq, before);
    for (const [body, field] of [[{ sales_open_at: in_(9000), sales_close_at: in_(8000) }, 'sales_close_at'], [{ starts_at: 7 }, 'starts_at'], [{ venue: 7 }, 'venue'],
      [{ max_per_owner: 0 }, 'max_per_owner'], [{ metadata: 7 }, 'metadata'], [{ prices: { S: 1 } }, 'prices']]) {
      assertInvalid(await server.post('/v1/events', { name: 'x', currency: 'usd', areas: [{ name: 'F', price: 1, capacity: 1 }], ...body }), field);
    }
    const put = await server.request('PUT', `/v1/events/${event.id}`, {});
    assertProblem(put, 405, 'method_not_allowed');
    assert.match(put.headers.allow, /PATCH/);
  });

  it('repeats under one key are one change', async () => {
    const event = await createEvent();
    const path = `/v1/events/${event.id}`;
    const key = newKey();
    const first = await assertIdempotent(server, path, { prices: { S: 5 } }, { prices: { S: 6 } }, key, 200, 'PATCH');
    await changed(event, { prices: { S: 7 } });
    const again = await change(event, { prices: { S: 5 } }, { 'Idempotency-Key': key });
    assert.deepEqual(again.json, first);
    assert.equal((await map(event)).prices.S, 7, 'a replay has no effect');
  });

  itOnce('hundreds of changes cost no more than one', async () => { // 28 of them used to end the server
    const event = await createEvent();
    for (let i = 0; i < 60; i++) assert.equal((await changed(event, { prices: { S: i } })).sections[0].price, i);
    assert.equal((await map(event)).prices.S, 59);
  });

  it('sales open and close by the clock of the ledger', async () => {
    const event = await inTime(async (ttlMs) => {
      const made = await createEvent({ sales_open_at: in_(ttlMs) });
      const early = assertProblem(await server.hold(made, 'S-A-1'), 409, 'event_closed');
      assert.equal(early.sales_open_at, made.sales_open_at);
      assert.match(early.sales_open_at, TIMESTAMP);
      assertProblem(await server.ask(made, { best_available: { quantity: 1 } }), 409, 'event_closed');
      assertProblem(await server.ask(made, { areas: { Floor: 1 } }), 409, 'event_closed');
      assert.equal((await get(made)).status, 'open');
      return made;
    });
    await sleep(ms(event.sales_open_at) - Date.now() + 10);
    const hold = await server.grant(event, 'S-A-1');

    let seat = 0;
    const close = await inTime(async (ttlMs) => {
      const end = in_(ttlMs);
      await changed(event, { sales_close_at: end });
      await server.grant(event, `S-B-${++seat}`);
      return end;
    });
    await sleep(ms(close) - Date.now() + 10);
    const late = assertProblem(await server.hold(event, 'S-A-3'), 409, 'event_closed');
    assert.equal(late.sales_close_at, close);
    assert.equal(late.sales_open_at, event.sales_open_at, 'both, where both are set');
    const path = `/v1/holds/${hold.id}`;
    assertProblem(await server.patch(path, { fence: hold.fence, add: { seats: ['S-A-3'] } }), 409, 'event_closed');
    assertOk(await server.post(`${path}/renew`));
    assertOk(await server.post(`${path}/confirm`, { fence: hold.fence }), 201); // what is held may be sold

    await changed(event, { sales_close_at: null });
    await server.grant(event, 'S-A-3');
    await changed(event, { sales_open_at: in_(3_600_000) });
    assert.ok(assertProblem(await server.hold(event, 'S-A-4'), 409, 'event_closed').sales_open_at > in_(0));
    assertOk(await act(event, 'close'));
    assert.equal(assertProblem(await server.hold(event, 'S-A-4'), 409, 'event_closed').code, 'event_closed');
  });

  it('what is to come is listed in the order of dates, page by page', async () => {
    const day = (n) => in_(n * 86_400_000);
    const before = new Set((await all('upcoming=true')).map(({ id }) => id));
    const make = async (name, fields, then) => { const event = await createEvent({ name, ...fields }); if (then) assertOk(await act(event, then)); return event; };
    await make('later', { starts_at: day(20) });
    await make('undated, older', {});
    await make('soon', { starts_at: day(2) });
    await make('over', { starts_at: day(-2) });
    await make('begun, still sold', { starts_at: day(-1), sales_close_at: day(3) });
    await make('closed', { starts_at: day(3) }, 'close');
    await make('sold no more, and to come', { starts_at: day(6), sales_close_at: day(-3) });
    await make('cancelled', { starts_at: day(4) }, 'cancel');
    await make('archived', { starts_at: day(5) }, 'archive');
    await make('a voucher', { sales_close_at: day(9) });
    await make('a voucher that ran out', { sales_close_at: day(-9) });
    await make('undated, newer', {});
    const moved = await make('moved', { starts_at: day(1) });
    await changed(moved, { starts_at: day(30) });
    const wanted = ['begun, still sold', 'soon', 'sold no more, and to come', 'later', 'moved', 'a voucher', 'undated, newer', 'undated, older'];
    for (const limit of [1, 3, 100]) {
      const found = await all(`upcoming=true&limit=${limit}`);
      assert.deepEqual(found.filter(({ id }) => !before.has(id)).map(({ name }) => name), wanted, `${limit}`);
      assert.equal(new Set(found.map(({ id }) => id)).size, found.length);
    }
    const newest = (await server.read('/v1/events?upcoming=false&limit=3')).data.map(({ name }) => name);
    assert.deepEqual(newest, ['moved', 'undated, newer', 'a voucher that ran out']);
    for (const query of ['upcoming=1', 'upcoming=', 'upcoming=TRUE']) assertInvalid(await server.get(`/v1/events?${query}`), 'upcoming');
    assertInvalid(await server.get('/v1/events?upcoming=true&cursor=x'), 'cursor');
  });

  it('an archived event leaves the list and sells no more, and is still there', async () => {
    const event = await createEvent();
    const [hold, short] = [await server.grant(event, 'S-A-1'), await server.grant(event, 'S-A-3')];
    const listed = async () => (await server.read('/v1/events?limit=100')).data.some(({ id }) => id === event.id);
    assert.equal(await listed(), true);
    const answer = assertOk(await act(event, 'archive'));
    assert.deepEqual([answer.object, answer.id, answer.status, answer.held], ['event', event.id, 'archived', 2]);
    assert.equal(await listed(), false);
    assert.equal((await get(event)).status, 'archived');
    assert.equal((await map(event)).status, 'archived');
    for (const places of [{ seats: ['S-A-2'] }, { areas: { Floor: 1 } }, { best_available: { quantity: 1 } }]) assertProblem(await server.ask(event, places), 409, 'event_closed');
    assertProblem(await server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, add: { seats: ['S-A-2'] } }), 409, 'event_closed');
    for (const action of ['open', 'close']) assertProblem(await act(event, action), 409, 'event_archived');
    const before = (await map(event)).seq;
    assert.equal(assertOk(await act(event, 'archive')).status, 'archived'); // again: the same
    assert.equal((await map(event)).seq, before);
    // What was held before goes on.
    const booking = assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
    await release(short);
    assert.equal((await server.read(`/v1/bookings?event=${event.id}`)).data[0].id, booking.id);
    assert.equal(assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`)).status, 'cancelled');
    assert.equal((await server.read(`/v1/holds?event=${event.id}`)).data.length, 2);
    assertProblem(await server.post('/v1/events/evt_x/archive'), 404, 'no_such_event');
    assertInvalid(await server.post(`/v1/events/${event.id}/archive`, { why: 1 }), 'why');
  });

  it('every server sells by the latest terms', async () => {
    const event = await createEvent();
    for (const [i, price] of [900, 800, 750].entries()) {
      await changed(event, { prices: { S: price }, max_per_hold: 3 - i });
      for (let n = 0; n < 2; n++) { // on each server, whichever made the change
        const hold = await server.grant(event, `S-B-${1 + i * 2 + n}`);
        assert.equal(hold.amount, price);
        assertProblem(await server.hold(event, Array.from({ length: 4 - i }, (_, k) => `S-A-${k + 1}`)), 400, 'too_many_seats');
      }
    }
  });

  it('terms outlive a kill', async () => {
    const event = await createEvent(TERMS);
    await changed(event, { venue: null, prices: { T: 1 }, max_per_hold: 2 });
    const gone = await createEvent();
    assertOk(await act(gone, 'archive'));
    await server.kill9();
    await server.launch();
    assert.deepEqual(termsOf(await get(event)), { ...TERMS, venue: null, max_per_hold: 2 });
    assert.deepEqual((await map(event)).prices, { S: 1000, T: 1, Floor: 300 });
    assert.equal((await server.grant(event, 'T-I-1')).amount, 1);
    assert.equal((await get(gone)).status, 'archived');
    assertProblem(await server.hold(gone, 'S-A-1'), 409, 'event_closed');
    assert.equal((await server.read('/v1/events?limit=100')).data.some(({ id }) => id === gone.id), false);
  });

  describe('and the stream tells', () => {
    const news = ({ messages }) => messages.filter(({ event }) => event === 'event');

    it('of status and prices, with ids that lose nothing', async () => {
      const event = await createEvent();
      const stream = await Stream.open(server, event, { after: (await map(event)).seq });
      const steps = [['close', 'closed'], ['open', 'open'], ['price', 'open'], ['archive', 'archived']];
      const ids = [];
      for (const [action, status] of steps) {
        if (action === 'price') await changed(event, { prices: { S: 1, Floor: 2 } });
        else assertOk(await act(event, action));
        const { seq, prices, status: shown } = await map(event);
        assert.equal(shown, status);
        const message = await stream.find(({ event: kind, data }) => kind === 'event' && data.seq >= seq);
        assert.deepEqual(message.data, { seq, status, prices });
        assert.equal(message.id, `${seq}`);
        ids.push(seq);
      }
      stream.close();
      assert.deepEqual(news(stream).map(({ data }) => data.status), ['closed', 'open', 'open', 'archived']);
      // A reader that comes back after each of them gets the later ones.
      for (const [i, id] of ids.slice(0, -1).entries()) {
        const again = await Stream.open(server, event, { lastEventId: id });
        const { data } = await again.find(({ event: kind }) => kind === 'event');
        assert.equal(data.status, 'archived', `after ${steps[i][0]}`);
        again.close();
      }
    });

    itOnce('of seats and the event together: only the last message of a seq has the id', async () => {
      const event = await createEvent();
      const { seq: start_ } = await map(event);
      await server.grant(event, 'S-A-1');
      await changed(event, { prices: { S: 5 } });
      await server.take(event, { areas: { Floor: 3 } });
      assertOk(await act(event, 'close'));
      const { seq } = await map(event);
      const stream = await Stream.open(server, event, { after: start_ });
      await stream.find(({ id }) => id === `${seq}`);
      stream.close();
      assert.deepEqual(stream.messages.map(({ event: kind, id, data }) => [kind, id, data.seq]), [['event', undefined, seq], ['seats', `${seq}`, seq]]);
      const [first, second] = stream.messages;
      assert.deepEqual(first.data, { seq, status: 'closed', prices: { S: 5, T: 700, Floor: 300 } });
      assert.deepEqual([second.data.changes, second.data.areas], [[['S-A-1', 'h']], { Floor: 17 }]);
    });

    itOnce('nothing of changes that a map does not show', async () => {
      const event = await createEvent();
      const { seq } = await map(event);
      assertOk(await act(event, 'open')); // as it is
      assert.equal((await map(event)).seq, seq);
      const stream = await Stream.open(server, event, { after: seq });
      await server.grant(event, 'S-A-9');
      await stream.find(({ event: kind }) => kind === 'seats');
      stream.close();
      assert.equal(news(stream).length, 0);
    });
  });
});
