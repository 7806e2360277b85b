// Ticket types: full, reduced, child.  What a place costs by its type, how holds name types, and where they are told.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem, assertSoldOut } from '../support/expect.mjs';
import { assertVerifiedSoon } from '../support/ledger.mjs';
import { itOnce, newKey, reap, start } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const TYPES = [
  { id: 'full', name: 'Full price' },
  { id: 'reduced', name: 'Ermäßigt', prices: { S: 600, Floor: 200 } },
  { id: 'child', name: 'Child', prices: { Floor: 0 } },
];
const ANSWERED = TYPES.map((type) => ({ prices: {}, ...type }));

describe('ticket types', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => {
    try {
      if (server) await assertVerifiedSoon(server.ledger, server.gate);
      await server?.finish();
    } finally { await reap(); }
  });

  // 10 seats at 1000, 5 in a box at 3000, 20 places at 300, 3 at 50.
  const fresh = (fields) => server.createEvent({
    sections: [{ name: 'S', price: 1000, rows: 1, seats_per_row: 10 }, { name: 'Box', price: 3000, rows: 1, seats_per_row: 5 }],
    areas: [{ name: 'Floor', price: 300, capacity: 20 }, { name: 'Pit', price: 50, capacity: 3 }], types: TYPES, max_per_hold: 20, ...fields,
  });
  const url = (hold, action = '') => `/v1/holds/${hold.id}${action}`;
  const change = (hold, body) => server.patch(url(hold), { fence: hold.fence, ...body });
  const changed = async (hold, body) => assertOk(await change(hold, body));
  const setTypes = async (event, types) => assertOk(await server.patch(`/v1/events/${event.id}`, { types }));
  const audit = async (query) => (await server.read(`/v1/audit?${query}&limit=1000`)).data;
  const placesOf = ({ places }) => places.map(({ seat, area, type, amount }) => `${seat ?? area} ${type} ${amount}`);
  const assertSum = (hold) => assert.equal(hold.amount, hold.places.reduce((sum, { amount }) => sum + amount, 0));
  // A hold of every kind of place and type.
  const mixed = async (fields) => {
    const event = await fresh();
    const hold = await server.take(event, {
      seats: ['S-A-2', 'S-A-1', 'Box-A-1'], types: { 'S-A-1': 'reduced', 'Box-A-1': 'child' }, areas: { Floor: { child: 1, reduced: 2 }, Pit: 1 }, ...fields,
    });
    return [event, hold];
  };
  const MIXED = ['S-A-2 full 1000', 'S-A-1 reduced 600', 'Box-A-1 child 3000', 'Floor child 0', 'Floor reduced 200', 'Floor reduced 200', 'Pit full 50'];

  itOnce('an event tells its types wherever it tells its prices, and not in a list', async () => {
    const event = await fresh();
    assert.deepEqual(event.types, ANSWERED);
    assert.deepEqual((await server.read(`/v1/events/${event.id}`)).types, ANSWERED);
    assert.deepEqual((await server.read(`/v1/events/${event.id}/seats`)).types, ANSWERED);
    const { data } = await server.read('/v1/events?limit=100');
    assert.equal('types' in data.find(({ id }) => id === event.id), false);
  });

  itOnce('without types nothing is told of them', async () => {
    const event = await fresh({ types: [] });
    const hold = await server.take(event, { seats: ['S-A-1'], areas: { Floor: 1 } });
    const booking = assertOk(await server.post(url(hold, '/confirm'), { fence: hold.fence }), 201);
    for (const told of [event, await server.read(`/v1/events/${event.id}`), await server.read(`/v1/events/${event.id}/seats`)]) assert.equal('types' in told, false);
    for (const told of [hold, booking, await server.read(url(hold))]) assert.equal('places' in told, false);
    for (const row of await audit(`event=${event.id}`)) assert.equal('type' in row, false);
    assertProblem(await server.ask(event, { seats: ['S-A-2'], types: { 'S-A-2': 'full' } }), 404, 'no_such_type');
    assertProblem(await server.ask(event, { areas: { Floor: { full: 1 } } }), 404, 'no_such_type');
  });

  it('each place costs what its type costs, and what names none is of the first', async () => {
    const [event, hold] = await mixed({ owner: 'ann' });
    assert.deepEqual(placesOf(hold), MIXED);
    assertSum(hold);
    assert.deepEqual([hold.seats, hold.areas], [['S-A-2', 'S-A-1', 'Box-A-1'], { Floor: 3, Pit: 1 }]);
    assert.deepEqual(placesOf(await server.read(url(hold))), MIXED);
    const { data } = await server.read(`/v1/holds?event=${event.id}&owner=ann`);
    assert.deepEqual(placesOf(data[0]), MIXED);
    assert.deepEqual(await server.areas(event), { Floor: 17, Pit: 2 });
    const renewed = assertOk(await server.post(url(hold, '/renew'), {}));
    assert.deepEqual(placesOf(renewed), MIXED);
  });

  itOnce('the best seats get their types in the order in which they are answered', async () => {
    const event = await fresh();
    const hold = await server.take(event, { best_available: { quantity: 4, section: 'S', types: { reduced: 1, child: 2 } }, areas: { Pit: 1 } });
    assert.deepEqual(hold.places.map(({ type }) => type), ['reduced', 'child', 'child', 'full', 'full']);
    assert.equal(hold.amount, 600 + 3 * 1000 + 50);
  });

  itOnce('a type that the event does not have is 404, and nothing is held', async () => {
    const event = await fresh();
    for (const fields of [
      { seats: ['S-A-1'], types: { 'S-A-1': 'senior' } }, { areas: { Floor: { full: 1, senior: 1 } } }, { best_available: { quantity: 1, types: { senior: 1 } } },
    ]) {
      const problem = assertProblem(await server.ask(event, fields), 404, 'no_such_type');
      assert.deepEqual(problem.types, ['senior']);
    }
    assert.equal((await server.counts(event)).held, 0);
  });

  itOnce('types that make no sense are refused, and the field is named', async () => {
    const event = await fresh();
    const wrong = [
      [{ seats: ['S-A-1'], types: ['full'] }, 'types'], [{ seats: ['S-A-1'], types: { 'S-A-1': 1 } }, 'types'], [{ seats: ['S-A-1'], types: { 'S-A-1': '' } }, 'types'],
      [{ seats: ['S-A-1'], types: { 'S-A-2': 'full' } }, 'types'], [{ areas: { Floor: 1 }, types: { Floor: 'full' } }, 'types'],
      [{ best_available: { quantity: 1 }, types: { 'S-A-1': 'full' } }, 'types'], [{ best_available: { quantity: 1, types: { full: 2 } } }, 'best_available.types'],
      [{ best_available: { quantity: 1, types: {} } }, 'best_available.types'], [{ best_available: { quantity: 2, types: { full: 0 } } }, 'best_available.types.full'],
      [{ areas: { Floor: {} } }, 'areas.Floor'], [{ areas: { Floor: { full: 0 } } }, 'areas.Floor.full'], [{ areas: { Floor: { full: '1' } } }, 'areas.Floor.full'],
      [{ areas: { Floor: [1] } }, 'areas.Floor'], [{ areas: { Floor: { full: 2147483647, child: 1 } } }, 'areas.Floor'],
      [{ areas: { Floor: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`t${i}`, 1])) } }, 'areas.Floor'],
      [{ seats: ['S-A-1'], types: { 'S-A-1': 'x'.repeat(33) } }, 'types'],
    ];
    for (const [fields, named] of wrong) assertInvalid(await server.ask(event, fields), named);
    assertInvalid(await server.post(`/v1/events/${event.id}/block`, { areas: { Floor: { full: 1 } } }), 'areas.Floor');
    assert.equal((await server.counts(event)).held, 0);
  });

  itOnce('sixteen types of one area fit into one hold, up to its limit', async () => {
    const types = Array.from({ length: 16 }, (_, i) => ({ id: `t${i}`, prices: { Floor: i } }));
    const event = await fresh({ types, max_per_hold: 500, areas: [{ name: 'Floor', price: 300, capacity: 1000 }] });
    const counts = Object.fromEntries(types.map(({ id }, i) => [id, i === 0 ? 500 - 15 * 33 : 33]));
    const hold = await server.take(event, { areas: { Floor: counts } });
    assert.equal(hold.places.length, 500);
    assert.equal(hold.amount, 33 * (15 * 16) / 2);
    assertSum(await server.read(url(hold)));
    assertProblem(await change(hold, { add: { areas: { Floor: { t3: 1 } } } }), 400, 'too_many_seats');
    const other = await changed(hold, { remove: { areas: { Floor: { t15: 33, t1: 1 } } }, add: { areas: { Floor: { t2: 34 } } } });
    assert.equal(other.amount, hold.amount - 33 * 15 - 1 + 34 * 2);
    assertSum(other);
  });

  it('a keyed request gets its answer again, with types', async () => {
    const event = await fresh();
    const key = { 'Idempotency-Key': newKey() };
    const body = { seats: ['S-A-1'], types: { 'S-A-1': 'child' } };
    const first = assertOk(await server.ask(event, body, key), 201), again = assertOk(await server.ask(event, body, key), 201);
    assert.deepEqual(first.places, [{ seat: 'S-A-1', type: 'child', amount: 1000 }]);
    assert.deepEqual(again, first);
    assertProblem(await server.ask(event, { ...body, types: { 'S-A-1': 'full' } }, key), 422, 'idempotency_mismatch');
  });

  it('a type that comes in the same moment is known whole or not at all', async () => {
    const event = await fresh({ areas: [{ name: 'Floor', price: 300, capacity: 500 }], types: undefined });
    for (let i = 0; i < 16; i++) {
      const id = `t${i}`, asked = Array.from({ length: 8 }, () => server.ask(event, { areas: { Floor: { [id]: 1 } } }, { 'Idempotency-Key': newKey() }));
      const [patched, ...answers] = await Promise.all([server.patch(`/v1/events/${event.id}`, { types: [{ id, prices: { Floor: i } }] }), ...asked]);
      assertOk(patched);
      for (const answer of answers) {
        if (answer.status === 404) assertProblem(answer, 404, 'no_such_type');
        else assert.deepEqual(assertOk(answer, 201).places, [{ area: 'Floor', type: id, amount: i }]);
      }
    }
  });

  itOnce('a hold is resumed only with its types', async () => {
    const event = await fresh();
    const body = { seats: ['S-A-1', 'S-A-2'], types: { 'S-A-2': 'reduced' }, areas: { Floor: { child: 1, full: 1 } }, owner: 'ann' };
    const hold = await server.take(event, body);
    const resume = (fields) => server.ask(event, { ...body, resume: true, ...fields });
    assert.equal(assertOk(await resume({ areas: { Floor: { full: 1, child: 1 } } }), 200).id, hold.id);
    assert.equal(assertOk(await resume({ seats: ['S-A-2', 'S-A-1'], types: { 'S-A-2': 'reduced', 'S-A-1': 'full' } }), 200).id, hold.id);
    for (const fields of [{ types: {} }, { types: { 'S-A-1': 'reduced' } }, { areas: { Floor: 2 } }, { areas: { Floor: { child: 2 } } }]) {
      assertProblem(await resume(fields), 409, 'seat_taken');
    }
  });

  it('a seat changes its type at the price of today, with a new fence, and the others keep theirs', async () => {
    const [event, hold] = await mixed();
    assertOk(await server.patch(`/v1/events/${event.id}`, { prices: { S: 1100, Floor: 310 } }));
    const other = await changed(hold, { types: { 'S-A-1': 'full', 'Box-A-1': 'child' } });
    assert.deepEqual(placesOf(other), MIXED.map((place) => place.replace('S-A-1 reduced 600', 'S-A-1 full 1100')));
    assert.ok(other.fence > hold.fence);
    assert.equal(other.expires_at, hold.expires_at);
    assertSum(other);
    const same = await changed(other, { types: { 'S-A-2': 'full' } });
    assert.deepEqual([same.fence, same.amount], [other.fence, other.amount], 'it is of that type already');
    assertProblem(await change(hold, { types: { 'S-A-1': 'child' } }), 409, 'stale_fence');
    assertProblem(await change(same, { types: { 'S-A-1': 'senior' } }), 404, 'no_such_type');
    assert.match(assertProblem(await change(same, { types: { 'S-A-7': 'child' } }), 404, 'no_such_seat').detail, /another type/);
    assertProblem(await change(same, { types: { 'S-Z-7': 'child' } }), 404, 'no_such_seat');
    assertInvalid(await change(same, { types: {} }), 'add');
    assertInvalid(await change(same, { types: { 'S-A-1': 'child' }, remove: { seats: ['S-A-1'] } }), 'types');
  });

  it('places come and go by their types, and an area that is full swaps them', async () => {
    const event = await fresh();
    let hold = await server.take(event, { seats: ['S-A-1'], areas: { Pit: { full: 2, child: 1 } } });
    hold = await changed(hold, { add: { seats: ['S-A-3', 'S-A-2'] }, types: { 'S-A-2': 'reduced', 'S-A-1': 'child' }, remove: { areas: { Pit: 1 } } });
    assert.deepEqual(placesOf(hold), ['S-A-1 child 1000', 'S-A-3 full 1000', 'S-A-2 reduced 600', 'Pit full 50', 'Pit child 50']);
    await setTypes(event, [{ id: 'reduced', prices: { Pit: 20 } }]);
    await server.take(event, { areas: { Pit: 1 } });
    const swapped = await changed(hold, { remove: { areas: { Pit: { child: 1 } } }, add: { areas: { Pit: { reduced: 1 } } } });
    assert.deepEqual(placesOf(swapped).slice(3), ['Pit full 50', 'Pit reduced 20']);
    assertSoldOut(await change(swapped, { remove: { areas: { Pit: 1 } }, add: { areas: { Pit: { child: 2 } } } }), 0, 'Pit');
    const none = assertProblem(await change(swapped, { remove: { areas: { Pit: { child: 1 } } } }), 404, 'no_such_seat');
    assert.deepEqual([none.area, none.available], ['Pit', 0]);
    assertInvalid(await change(swapped, { remove: { areas: { Pit: { full: 1 } } }, add: { areas: { Pit: { full: 1 } } } }), 'add.areas');
    assertInvalid(await change(swapped, { remove: { areas: { Pit: 1 } }, add: { areas: { Pit: { full: 1 } } } }), 'add.areas');
    assertInvalid(await change(swapped, { remove: { areas: { Pit: 1 } }, add: { areas: { Pit: 1 } } }), 'add.areas');
    assert.deepEqual(await server.areas(event), { Floor: 20, Pit: 0 });
  });

  it('a booking has the types of its hold, and so has the log', async () => {
    const [event, hold] = await mixed();
    const retyped = await changed(hold, { types: { 'S-A-2': 'reduced' } });
    const booking = assertOk(await server.post(url(hold, '/confirm'), { fence: retyped.fence, reference: 'r-7' }), 201);
    const wanted = ['S-A-2 reduced 600', ...MIXED.slice(1)];
    assert.deepEqual(placesOf(booking), wanted);
    assert.deepEqual(placesOf(await server.read(`/v1/bookings/${booking.id}`)), wanted);
    const { data } = await server.read(`/v1/bookings?event=${event.id}`);
    assert.deepEqual(placesOf(data[0]), wanted);
    const rows = (await audit(`hold=${hold.id}`)).filter(({ object }) => object === 'seat' || object === 'area');
    assert.deepEqual(rows.map(({ seat, area, quantity, to, type }) => `${seat ?? `${quantity} ${area}`} ${to} ${type}`), [
      'S-A-2 held full', 'S-A-1 held reduced', 'Box-A-1 held child', '2 Floor held reduced', '1 Floor held child', '1 Pit held full',
      'S-A-2 available full', 'S-A-2 held reduced',
      'S-A-2 booked reduced', 'S-A-1 booked reduced', 'Box-A-1 booked child', '2 Floor booked reduced', '1 Floor booked child', '1 Pit booked full',
    ]);
    const { history } = await server.read(`/v1/events/${event.id}/seats/S-A-2`);
    assert.deepEqual(history.map(({ to, type }) => `${to} ${type}`), ['booked reduced', 'held reduced', 'available full', 'held full']);
    const cancelled = assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`, {}));
    assert.deepEqual(placesOf(cancelled), wanted);
    assert.equal((await server.counts(event)).available, 38);
  });

  it('the revenue of an event is told by type', async () => {
    const [event, hold] = await mixed();
    const revenue = async () => {
      const { bookings, amount, refunded, types } = await server.read(`/v1/events/${event.id}/revenue`);
      assert.equal(types.reduce((sum, type) => sum + type.amount, 0), amount);
      return [bookings, amount, refunded, ...types.map((type) => `${type.type} ${type.amount}`)];
    };
    assert.deepEqual(await revenue(), [0, 0, 0, 'full 0', 'reduced 0', 'child 0']);
    const sell = async (made) => assertOk(await server.post(url(made, '/confirm'), { fence: made.fence }), 201);
    await sell(hold);
    await sell(await server.take(event, { seats: ['S-A-3', 'S-A-4'] }));
    await sell(await server.take(event, { seats: ['S-A-5'], types: { 'S-A-5': 'reduced' } }));
    const gone = await sell(await server.take(event, { seats: ['S-A-6'], types: { 'S-A-6': 'reduced' } }));
    await server.take(event, { seats: ['S-A-7'] });
    assertOk(await server.post(`/v1/bookings/${gone.id}/cancel`, {}));
    assert.deepEqual(await revenue(), [3, 5050 + 2000 + 600, 0, 'full 3050', 'reduced 1600', 'child 3000']);
  });

  it('several holds that are booked together keep their types', async () => {
    const free = { S: 0, Floor: 0 };
    const event = await fresh({ types: [{ id: 'press', prices: free }, { id: 'staff', prices: free }] });
    const a = await server.take(event, { seats: ['S-A-1'], types: { 'S-A-1': 'staff' }, areas: { Floor: { staff: 1, press: 1 } } });
    const b = await server.take(event, { seats: ['S-A-3', 'S-A-2'], types: { 'S-A-3': 'staff' }, areas: { Floor: 2 } });
    const booking = assertOk(await server.post('/v1/bookings', { holds: [a.id, b.id] }, { 'Idempotency-Key': newKey() }), 201);
    assert.deepEqual(placesOf(booking), ['S-A-1 staff 0', 'S-A-3 staff 0', 'S-A-2 press 0', 'Floor staff 0', 'Floor press 0', 'Floor press 0', 'Floor press 0']);
    const rows = await audit(`event=${event.id}`);
    const booked = rows.filter(({ to, type }) => to === 'booked' && type);
    assert.deepEqual(booked.map(({ seat, area, quantity, type }) => `${seat ?? `${quantity} ${area}`} ${type}`),
      ['S-A-1 staff', 'S-A-3 staff', 'S-A-2 press', '3 Floor press', '1 Floor staff']);
  });

  it('an event gets types later: what was held before is of the first', async () => {
    const event = await fresh({ types: undefined });
    const before = await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 2 } });
    assert.equal('places' in before, false);
    const now = await setTypes(event, [{ id: 'adult', prices: { S: 9999 } }, { id: 'child', name: 'Kid', prices: { S: 100, Floor: 100 } }]);
    assert.deepEqual(now.types, [{ id: 'adult', name: 'adult', prices: { S: 9999 } }, { id: 'child', name: 'Kid', prices: { S: 100, Floor: 100 } }]);
    const after_ = await changed(before, { types: { 'S-A-2': 'child' }, remove: { areas: { Floor: { adult: 1 } } } });
    assert.deepEqual(placesOf(after_), ['S-A-1 adult 1000', 'S-A-2 child 100', 'Floor adult 300']);
    assert.equal((await server.take(event, { seats: ['S-A-3'] })).amount, 9999);
  });

  // Each server is asked directly, without the wait in which `server` lets its view catch up.
  it('a hold tells its types at once, also through a server whose view does not have them yet', async () => {
    const [one, other] = server.servers ?? [server, server];
    for (let i = 0; i < 5; i++) {
      const event = await fresh({ types: undefined });
      await other.read(`/v1/events/${event.id}`); // it is loaded there, without types
      assertOk(await one.patch(`/v1/events/${event.id}`, { types: [{ id: 'child', prices: { S: 100 } }] }));
      const hold = await one.take(event, { seats: ['S-A-1'], areas: { Floor: 1 }, owner: 'ann' });
      const wanted = ['S-A-1 child 100', 'Floor child 300'];
      assert.deepEqual(placesOf(hold), wanted);
      assert.deepEqual(placesOf(await other.read(url(hold))), wanted);
      const { id, seats } = await one.take(event, { seats: ['S-A-2'], owner: 'ann' });
      const { data } = await other.read(`/v1/holds?event=${event.id}&owner=ann`);
      assert.deepEqual([seats, placesOf(data.find((listed) => listed.id === id))], [['S-A-2'], ['S-A-2 child 100']]);
    }
  });

  itOnce('types are added, renamed and priced anew, and none is removed', async () => {
    const event = await fresh();
    const now = await setTypes(event, [{ id: 'reduced', name: 'Reduced', prices: { S: null, Pit: 10 } }, { id: 'group', prices: {} }]);
    assert.deepEqual(now.types, [ANSWERED[0], { id: 'reduced', name: 'Reduced', prices: { Floor: 200, Pit: 10 } }, ANSWERED[2], { id: 'group', name: 'group', prices: {} }]);
    assert.deepEqual((await setTypes(event, [{ id: 'group', name: 'Group' }])).types.length, 4);
    const patch = (types) => server.patch(`/v1/events/${event.id}`, { types });
    const wrong = [
      [{}, 'types'], ['full', 'types'], [[{}], 'types[0].id'], [[{ id: '' }], 'types[0].id'], [[{ id: 'a b' }], 'types[0].id'], [[{ id: 'x'.repeat(33) }], 'types[0].id'],
      [[{ id: 'a' }, { id: 'a' }], 'types[1].id'], [[{ id: 'a', name: '' }], 'types[0].name'], [[{ id: 'a', name: 'a\nb' }], 'types[0].name'],
      [[{ id: 'a', name: 'x'.repeat(101) }], 'types[0].name'], [[{ id: 'a', prices: { Balcony: 1 } }], 'types[0].prices.Balcony'],
      [[{ id: 'a', prices: { S: -1 } }], 'types[0].prices.S'], [[{ id: 'a', prices: [] }], 'types[0].prices'], [[{ id: 'a', rank: 1 }], 'types[0].rank'],
      [Array.from({ length: 17 }, (_, i) => ({ id: `t${i}` })), 'types'], [Array.from({ length: 13 }, (_, i) => ({ id: `t${i}` })), 'types'],
    ];
    for (const [types, named] of wrong) assertInvalid(await patch(types), named);
    assertInvalid(await server.post('/v1/events', { name: 'x', currency: 'usd', areas: [{ name: 'F', price: 1, capacity: 1 }], types: [{ id: 'a', prices: { G: 1 } }] }), 'types[0].prices.G');
    assert.equal((await server.read(`/v1/events/${event.id}`)).types.length, 4);
  });

  it('streams tell of new types beside the prices', async () => {
    const event = await fresh();
    const stream = await Stream.open(server, event);
    try {
      await setTypes(event, [{ id: 'child', prices: { S: 1 } }]);
      const { data } = await stream.find(({ event: kind }) => kind === 'event');
      assert.deepEqual(data.types, [ANSWERED[0], ANSWERED[1], { ...ANSWERED[2], prices: { S: 1, Floor: 0 } }]);
      assert.deepEqual(data.prices, { S: 1000, Box: 3000, Floor: 300, Pit: 50 });
    } finally { stream.close(); }
  });

  it('categories of listed seats and of plans have prices of types, too', async () => {
    const event = await server.createEvent({
      sections: [{ name: 'Room', rows: [{ name: '1', seats: [{ label: 'a', category: 'Gold' }, { label: 'b', category: 'Tin' }] }] }],
      categories: [{ name: 'Gold', price: 900 }, { name: 'Tin', price: 500 }], types: [{ id: 'full' }, { id: 'child', prices: { Gold: 90 } }],
    });
    const hold = await server.take(event, { seats: ['Room-1-a', 'Room-1-b'], types: { 'Room-1-a': 'child', 'Room-1-b': 'child' } });
    assert.deepEqual(placesOf(hold), ['Room-1-a child 90', 'Room-1-b child 500']);
  });

  itOnce('a client that knows no types gets on as before', async () => {
    const event = await fresh();
    const hold = await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 2 }, owner: 'old' });
    assert.equal(hold.amount, 2 * 1000 + 2 * 300);
    const other = await changed(hold, { add: { seats: ['S-A-3'] }, remove: { seats: ['S-A-1'], areas: { Floor: 1 } } });
    assert.deepEqual([other.seats, other.areas, other.amount], [['S-A-2', 'S-A-3'], { Floor: 1 }, 2300]);
    const booking = assertOk(await server.post(url(other, '/confirm'), { fence: other.fence }), 201);
    assert.equal(booking.amount, 2300);
    assert.equal(assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`)).status, 'cancelled');
  });
});
