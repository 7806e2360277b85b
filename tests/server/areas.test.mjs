// General admission: places are counted, not numbered (I2).
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  assertBooking, assertHold, assertIdempotent, assertInvalid, assertOk, assertProblem, assertSoldOut, ms,
} from '../support/expect.mjs';
import { inTime, itOnce, newKey, reap, sleep, start, until } from '../support/server.mjs';

describe('areas', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  // 4 seats at 1000, 20 places at 300, 5 at 50.
  const fresh = (fields = {}) => server.createEvent({
    sections: [{ name: 'S', tier: 'A', price: 1000, rows: 1, seats_per_row: 4 }],
    areas: [{ name: 'Floor', price: 300, capacity: 20 }, { name: 'Terrace', price: 50, capacity: 5 }],
    ...fields,
  });
  const url = (hold, action = '') => `/v1/holds/${hold.id}${action}`;
  const confirm = (hold, fields = {}) => server.post(url(hold, '/confirm'), { fence: hold.fence, ...fields });
  const afterExpiry = async (hold) => { await sleep(ms(hold.expires_at) - Date.now() + 60); };

  itOnce('an event may have areas and no seats at all', async () => {
    const event = await server.createEvent({ sections: undefined, areas: [{ name: 'Floor', price: 300, capacity: 7 }] });
    assert.equal(event.capacity, 7);
    assert.deepEqual(await server.counts(event), { available: 7, held: 0, booked: 0, blocked: 0 });
    const hold = await server.take(event, { areas: { Floor: 7 } });
    assertHold(hold, { event, seats: [], areas: { Floor: 7 } });
    assert.deepEqual(await server.counts(event), { available: 0, held: 7, booked: 0, blocked: 0 });
    assertSoldOut(await server.ask(event, { areas: { Floor: 1 } }), 0, 'Floor');
    assertProblem(await server.hold(event, 'S-A-1'), 404, 'no_such_seat');
    assertSoldOut(await server.ask(event, { best_available: { quantity: 1 } }), 0);
  });

  it('a hold of places says which, what they cost, and the map and the counts follow', async () => {
    const event = await fresh();
    const { seq } = await server.read(`/v1/events/${event.id}/seats`);
    const hold = await server.take(event, { areas: { Floor: 2, Terrace: 3 }, owner: 'Ann' });
    assertHold(hold, { event, seats: [], areas: { Floor: 2, Terrace: 3 } });
    assert.equal(hold.amount, 2 * 300 + 3 * 50);
    assert.equal(hold.owner, 'Ann');
    const map = await server.read(`/v1/events/${event.id}/seats`);
    assert.deepEqual(map.areas, [
      { name: 'Floor', price: 300, capacity: 20, available: 18 },
      { name: 'Terrace', price: 50, capacity: 5, available: 2 },
    ]);
    assert.ok(map.seq > seq);
    assert.deepEqual(await server.counts(event), { available: 24, held: 5, booked: 0, blocked: 0 });
    assert.deepEqual((await server.read(url(hold))).areas, { Floor: 2, Terrace: 3 });
  });

  it('seats and places go into one hold, all or nothing', async () => {
    const event = await fresh();
    const hold = await server.take(event, { seats: ['S-A-2', 'S-A-1'], areas: { Terrace: 4 } });
    assertHold(hold, { event, seats: ['S-A-2', 'S-A-1'], areas: { Terrace: 4 } });
    assert.equal(hold.amount, 2 * 1000 + 4 * 50);
    // The seat is free; the area has too few places.
    assertSoldOut(await server.ask(event, { seats: ['S-A-3'], areas: { Terrace: 2 } }), 1, 'Terrace');
    // The first area has enough places; the second does not.
    assertSoldOut(await server.ask(event, { areas: { Floor: 1, Terrace: 2 } }), 1, 'Terrace');
    // The area has enough places; the seat is taken.
    const taken = assertProblem(await server.ask(event, { seats: ['S-A-3', 'S-A-1'], areas: { Floor: 1 } }), 409, 'seat_taken');
    assert.deepEqual(taken.seats, ['S-A-1']);
    assert.deepEqual(await server.areas(event), { Floor: 20, Terrace: 1 });
    assert.equal((await server.map(event))['S-A-3'], '.');
    assert.deepEqual(await server.counts(event), { available: 23, held: 6, booked: 0, blocked: 0 });
  });

  itOnce('an empty list of areas beside seats is as none', async () => {
    const event = await fresh();
    assertHold(await server.take(event, { seats: ['S-A-1'], areas: {} }), { event, seats: ['S-A-1'] });
    assertInvalid(await server.ask(event, { areas: {} }), 'seats');
    assertInvalid(await server.ask(event, { seats: [], areas: {} }), 'seats');
    assertHold(await server.take(event, { seats: [], areas: { Floor: 1 } }), { event, seats: [], areas: { Floor: 1 } });
  });

  itOnce('the last place is sold, one more is 409 sold_out with what is left', async () => {
    const event = await fresh();
    await server.take(event, { areas: { Terrace: 3 } });
    assertSoldOut(await server.ask(event, { areas: { Terrace: 3 } }), 2, 'Terrace');
    await server.take(event, { areas: { Terrace: 2 } });
    assertSoldOut(await server.ask(event, { areas: { Terrace: 1 } }), 0, 'Terrace');
    await server.take(event, { areas: { Floor: 1 } });
  });

  it('released places are there for the next', async () => {
    const event = await fresh();
    const hold = await server.take(event, { seats: ['S-A-1'], areas: { Terrace: 5 } });
    assert.equal((await server.del(url(hold))).status, 204);
    assert.equal((await server.del(url(hold))).status, 204, 'giving back twice gives back once');
    assert.deepEqual(await server.areas(event), { Floor: 20, Terrace: 5 });
    assert.equal((await server.read(url(hold))).status, 'released');
    const next = await server.take(event, { areas: { Terrace: 5 } });
    assert.ok(next.fence > hold.fence);
  });

  it('confirmed places are booked and stay so', async () => {
    const event = await fresh();
    const hold = await server.take(event, { seats: ['S-A-4'], areas: { Floor: 6, Terrace: 1 } });
    const booking = assertBooking(assertOk(await confirm(hold, { reference: 'r-1' }), 201), hold);
    assert.deepEqual(booking.areas, { Floor: 6, Terrace: 1 });
    assert.equal(booking.amount, 1000 + 6 * 300 + 50);
    assert.deepEqual(await server.read(`/v1/bookings/${booking.id}`), booking);
    assert.deepEqual(assertOk(await confirm(hold)), booking);
    assert.deepEqual(await server.areas(event), { Floor: 14, Terrace: 4 });
    assert.deepEqual(await server.counts(event), { available: 21, held: 0, booked: 8, blocked: 0 });
    assertProblem(await server.del(url(hold)), 409, 'hold_confirmed');
    assertProblem(await confirm(hold, { fence: hold.fence + 1 }), 409, 'stale_fence');
    assertSoldOut(await server.ask(event, { areas: { Terrace: 5 } }), 4, 'Terrace');
  });

  it('a renewal keeps the places', async () => {
    const [event, hold, renewed] = await inTime(async (ttl_ms) => {
      const made = await fresh();
      const short = await server.take(made, { areas: { Terrace: 5 }, ttl_ms });
      return [made, short, assertOk(await server.post(url(short, '/renew'), {}))];
    });
    assertHold(renewed, { event, seats: [], areas: { Terrace: 5 } });
    assert.equal(renewed.amount, hold.amount);
    await afterExpiry(hold);
    assertSoldOut(await server.ask(event, { areas: { Terrace: 1 } }), 0, 'Terrace');
    assert.deepEqual(await server.areas(event), { Floor: 20, Terrace: 0 });
  });

  it('expired places are given to the next buyer, and return to the map by themselves', async () => {
    const left = await fresh();
    const forgotten = await server.take(left, { seats: ['S-A-1'], areas: { Terrace: 5, Floor: 1 }, ttl_ms: 1000 });
    const [asked, hold] = await inTime(async (ttl_ms) => {
      const event = await fresh();
      const short = await server.take(event, { areas: { Terrace: 5 }, ttl_ms });
      assertSoldOut(await server.ask(event, { areas: { Terrace: 1 } }), 0, 'Terrace');
      return [event, short];
    });
    await sleep(ms(hold.expires_at) - Date.now() + 5);
    const next = await server.take(asked, { areas: { Terrace: 5 } });
    assert.ok(next.fence > hold.fence);
    assert.equal((await server.read(url(hold))).status, 'expired');
    assertProblem(await confirm(hold), 410, 'hold_expired');
    assertProblem(await server.del(url(hold)), 410, 'hold_expired');
    await until('expired places come back', async () => (await server.areas(left)).Terrace === 5);
    assert.deepEqual(await server.counts(left), { available: 29, held: 0, booked: 0, blocked: 0 });
    assert.equal((await server.read(url(forgotten))).status, 'expired');
    assertOk(await confirm(next), 201);
    assert.deepEqual(await server.areas(asked), { Floor: 20, Terrace: 0 });
  });

  it('an expired hold is rescued if its places are still there, and not if they are not', async () => {
    const [free, gone, seatGone] = await Promise.all([fresh(), fresh(), fresh()]);
    const holds = await Promise.all([free, gone, seatGone].map((event) => server.take(event, { seats: ['S-A-1'], areas: { Terrace: 3 }, ttl_ms: 1000 })));
    for (const hold of holds) await afterExpiry(hold); // they were made at the same time, in any order
    await server.take(gone, { areas: { Terrace: 3 } });
    await server.take(seatGone, { seats: ['S-A-1'] });
    const booking = assertOk(await confirm(holds[0], { rescue: true }), 201);
    assert.deepEqual([booking.seats, booking.areas, booking.amount], [['S-A-1'], { Terrace: 3 }, 1150]);
    assert.deepEqual(await server.areas(free), { Floor: 20, Terrace: 2 });
    assert.deepEqual(await server.counts(free), { available: 25, held: 0, booked: 4, blocked: 0 });
    assertProblem(await confirm(holds[1], { rescue: true }), 410, 'hold_expired');
    assert.deepEqual(await server.areas(gone), { Floor: 20, Terrace: 2 });
    assert.equal((await server.map(gone))['S-A-1'], '.');
    assertProblem(await confirm(holds[2], { rescue: true }), 410, 'hold_expired');
    assert.deepEqual(await server.areas(seatGone), { Floor: 20, Terrace: 5 });
    assert.deepEqual(assertOk(await confirm(holds[0], { rescue: true })), booking);
  });

  itOnce('max_per_hold counts seats and places together', async () => {
    const event = await fresh({ max_per_hold: 5 });
    for (const areas of [{ Floor: 6 }, { Floor: 3, Terrace: 3 }, { Floor: 501 }, { Floor: 2147483647 }]) {
      assertProblem(await server.ask(event, { areas }), 400, 'too_many_seats');
    }
    assertProblem(await server.ask(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 4 } }), 400, 'too_many_seats');
    assertProblem(await server.ask(event, { best_available: { quantity: 2 }, areas: { Floor: 4 } }), 400, 'too_many_seats');
    assert.deepEqual(await server.areas(event), { Floor: 20, Terrace: 5 });
    await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 3 } });
    // Too many places are refused before unknown areas and before sold-out ones.
    assertProblem(await server.ask(event, { areas: { Nowhere: 6 } }), 400, 'too_many_seats');
    assertProblem(await server.ask(event, { areas: { Nowhere: 1, Terrace: 5 } }), 400, 'too_many_seats');
  });

  itOnce('an unknown area is 404 no_such_seat, before any area is short', async () => {
    const event = await fresh();
    await server.take(event, { areas: { Terrace: 5 } });
    for (const name of ['Nowhere', 'floor', 'Floor ', ' Floor', '', 'S', 'S-A-1', 'Flo\u00f6r', 'x'.repeat(300), `a${'😀'.repeat(80)}`, '"', '\\']) {
      assertProblem(await server.ask(event, { areas: { [name]: 1 } }), 404, 'no_such_seat');
      assertProblem(await server.ask(event, { areas: { Terrace: 1, [name]: 1 } }), 404, 'no_such_seat');
    }
    assertProblem(await server.ask(event, { seats: ['S-A-9'], areas: { Floor: 1 } }), 404, 'no_such_seat');
    assert.deepEqual(await server.areas(event), { Floor: 20, Terrace: 0 });
  });

  itOnce('quantities are whole numbers from one; what is wrong is named', async () => {
    const event = await fresh();
    for (const quantity of [0, -1, -(2 ** 31), 2 ** 31, 2 ** 53, 1.5, 1e300, '1', true, null, [], [1], {}]) {
      assertInvalid(await server.ask(event, { areas: { Floor: quantity } }), 'areas.Floor');
      assertInvalid(await server.ask(event, { seats: ['S-A-1'], areas: { Terrace: 1, Floor: quantity } }), 'areas.Floor');
    }
    for (const areas of [[], ['Floor'], 'Floor', 7, null, true, [['Floor', 1]]]) {
      assertInvalid(await server.ask(event, { seats: ['S-A-1'], areas }), 'areas');
    }
    // A number outside the range of integers.
    const body = (areas) => `{"event":"${event.id}","areas":${areas}}`;
    assertInvalid(await server.post('/v1/holds', body('{"Floor":99999999999999999999999}')));
    assertInvalid(await server.post('/v1/holds', body('{"Floor":1,"Floor":1}')));
    assertInvalid(await server.post('/v1/holds', body('{"Floor":01}')));
    assertInvalid(await server.ask(event, { area: { Floor: 1 } }), 'area');
    const many = Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`a${i}`, 1]));
    const answer = await server.ask(event, { areas: many });
    assert.equal(answer.status, 400, answer.text);
    assert.deepEqual(await server.counts(event), { available: 29, held: 0, booked: 0, blocked: 0 });
  });

  itOnce('a long or odd name in a refusal leaves the answer whole', async () => {
    const event = await fresh();
    for (const name of ['x'.repeat(5000), '😀'.repeat(300), `ab${'é'.repeat(400)}`, 'q"\\\n\t\u0001', '%s%n%d']) {
      const wrong = assertInvalid(await server.ask(event, { areas: { [name]: 0 } }), 'areas');
      assert.ok(!wrong.detail.includes('\ufffd'), wrong.detail);
      const unknown = assertProblem(await server.ask(event, { areas: { [name]: 1 } }), 404, 'no_such_seat');
      assert.ok(!unknown.detail.includes('\ufffd'), unknown.detail);
    }
  });

  let named; // what was shown of it
  it('names are any text: quotes, slashes, other alphabets', async () => {
    const names = ['Floor "A"', 'back\\slash', 'a/b', '100%', '%2F', '地板', '😀', 'ä'.repeat(32), "'; DROP TABLE areas; --".replaceAll('-', '_'), 'null', '__proto__'];
    const event = await server.createEvent({ areas: names.map((name, i) => ({ name, price: i + 1, capacity: 3 })), max_per_hold: 50 });
    for (const [i, name] of names.entries()) {
      const body = `{"event":"${event.id}","areas":{${JSON.stringify(name)}:2}}`;
      const answer = await server.post('/v1/holds', body);
      assert.equal(answer.status, 201, answer.text);
      assert.ok(answer.text.includes(`"areas":{${JSON.stringify(name)}:2}`), answer.text);
      assert.equal(answer.json.amount, 2 * (i + 1));
      assertSoldOut(await server.post('/v1/holds', body), 1, name);
    }
    const { areas } = await server.read(`/v1/events/${event.id}/seats`);
    assert.deepEqual(areas.map(({ name, available }) => [name, available]), names.map((name) => [name, 1]));
    named = { event, areas };
  });

  itOnce('a capacity of a million is counted to the end, and no amount overflows', async () => {
    const event = await server.createEvent({ areas: [{ name: 'Field', price: 1_000_000, capacity: 1_000_000 }], max_per_hold: 500 });
    const hold = await server.take(event, { areas: { Field: 500 } });
    assert.equal(hold.amount, 500_000_000);
    assert.equal((await server.areas(event)).Field, 999_500);
    assert.deepEqual(await server.counts(event), { available: 999_520, held: 500, booked: 0, blocked: 0 });
  });

  it('a repeat under the same key takes no more places', async () => {
    const event = await fresh();
    const body = { event: event.id, areas: { Terrace: 2 } };
    await assertIdempotent(server, '/v1/holds', body, { ...body, areas: { Terrace: 1 } }, newKey(), 201);
    assert.deepEqual(await server.areas(event), { Floor: 20, Terrace: 3 });
    // A replay is answered although no places are left by now.
    const key = { 'Idempotency-Key': newKey() };
    const last = await server.ask(event, { areas: { Terrace: 3 } }, key);
    assertOk(last, 201);
    assert.equal((await server.ask(event, { areas: { Terrace: 3 } }, key)).text, last.text);
    // A refusal does not use up the key.
    const other = { 'Idempotency-Key': newKey() };
    assertSoldOut(await server.ask(event, { areas: { Terrace: 3 } }, other), 0, 'Terrace');
    assert.equal((await server.del(url(last.json))).status, 204);
    assertOk(await server.ask(event, { areas: { Terrace: 3 } }, other), 201);
  });

  it('places outlive a restart: held, booked, and the rest, and so do all names', async () => {
    const event = await fresh();
    const held = await server.take(event, { seats: ['S-A-1'], areas: { Floor: 4, Terrace: 1 } });
    const sold = await server.take(event, { areas: { Floor: 3 } });
    const booking = assertOk(await confirm(sold), 201);
    await server.restart();
    assert.deepEqual((await server.read(`/v1/events/${named.event.id}/seats`)).areas, named.areas);
    assert.deepEqual(await server.areas(event), { Floor: 13, Terrace: 4 });
    assert.deepEqual(await server.counts(event), { available: 20, held: 6, booked: 3, blocked: 0 });
    const read = await server.read(url(held));
    assert.deepEqual([read.status, read.areas, read.amount], ['active', { Floor: 4, Terrace: 1 }, held.amount]);
    assert.deepEqual(await server.read(`/v1/bookings/${booking.id}`), booking);
    assert.equal((await server.del(url(held))).status, 204);
    assert.deepEqual(await server.areas(event), { Floor: 17, Terrace: 5 });
    assertSoldOut(await server.ask(event, { areas: { Terrace: 6 } }), 5, 'Terrace');
  });
});
