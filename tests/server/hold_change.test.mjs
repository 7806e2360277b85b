// PATCH /v1/holds/{h}: a hold gets other places, all or nothing, and stays the same hold.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  assertHold, assertIdempotent, assertInvalid, assertOk, assertProblem, assertSoldOut, ms,
} from '../support/expect.mjs';
import { assertVerifiedSoon } from '../support/ledger.mjs';
import { inTime, itOnce, newKey, reap, sleep, start, until } from '../support/server.mjs';

const NO_HOLD = `hold_${'0'.repeat(28)}`;

describe('changing a hold', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => {
    try {
      if (server) await assertVerifiedSoon(server.ledger, server.gate);
      await server?.finish();
    } finally { await reap(); }
  });

  // Sections S (S-A-1 to S-B-10, 1000 each) and T (T-A-1 to T-A-5, 700 each), areas Floor (20 places of 300) and Roof (2 of 50).
  const createEvent = (fields) => server.createEvent({
    sections: [{ name: 'S', price: 1000, rows: 2, seats_per_row: 10 }, { name: 'T', price: 700, rows: 1, seats_per_row: 5 }],
    areas: [{ name: 'Floor', price: 300, capacity: 20 }, { name: 'Roof', price: 50, capacity: 2 }], ...fields,
  });
  const change = (hold, fields, headers) => server.patch(`/v1/holds/${hold.id ?? hold}`, { fence: hold.fence, ...fields }, headers);
  const changed = async (hold, fields) => assertOk(await change(hold, fields));
  const get = (hold) => server.read(`/v1/holds/${hold.id}`);
  const seq = async (event) => (await server.read(`/v1/events/${event.id}/seats`)).seq;
  const letters = async (event, seats) => { const map = await server.map(event); return seats.map((seat) => map[seat]).join(''); };

  // Asserts that the refusal left the hold, the map and the log as they were.
  async function refused(event, hold, fields, judge) {
    const before = [await get(hold), await seq(event)];
    judge(await change(hold, fields));
    const now = [await get(hold), await seq(event)];
    for (const one of [before, now]) one[0].expires_in_ms = 0;
    assert.deepEqual(now, before);
  }

  it('seats come and go: same id, same expiry, another fence and amount', async () => {
    const event = await createEvent();
    const hold = await server.take(event, { seats: ['S-A-1', 'S-A-2'], owner: 'Ann', metadata: { cart: 7 } });
    let now = await changed(hold, { add: { seats: ['S-A-3'] } });
    assertHold(now, { event, seats: ['S-A-1', 'S-A-2', 'S-A-3'] });
    assert.deepEqual([now.id, now.owner, now.created_at, now.expires_at, now.max_expires_at, now.amount, now.metadata, now.booking],
      [hold.id, 'Ann', hold.created_at, hold.expires_at, hold.max_expires_at, 3000, { cart: 7 }, null]);
    assert.ok(now.fence > hold.fence);
    assert.equal(await letters(event, ['S-A-1', 'S-A-2', 'S-A-3']), 'hhh');

    const before = now.fence;
    now = await changed(now, { remove: { seats: ['S-A-2', 'S-A-1'] } });
    assertHold(now, { event, seats: ['S-A-3'] });
    assert.ok(now.fence > before);
    assert.equal(now.amount, 1000);
    assert.equal(await letters(event, ['S-A-1', 'S-A-2', 'S-A-3']), '..h');

    now = await changed(now, { add: { seats: ['T-A-5', 'S-B-1'] }, remove: { seats: ['S-A-3'] } }); // every seat is another one
    assertHold(now, { event, seats: ['T-A-5', 'S-B-1'] });
    assert.equal(now.amount, 1700);
    assert.equal(await letters(event, ['S-A-3', 'T-A-5', 'S-B-1']), '.hh');
    const read = await get(now);
    assert.deepEqual({ ...read, expires_in_ms: 0 }, { ...now, expires_in_ms: 0 });
    assert.deepEqual(await server.counts(event), { available: 45, held: 2, booked: 0, blocked: 0 });

    const booking = assertOk(await server.post(`/v1/holds/${now.id}/confirm`, { fence: now.fence }), 201);
    assert.deepEqual([booking.seats, booking.amount, booking.fence], [['T-A-5', 'S-B-1'], 1700, now.fence]);
    assert.equal((await get(now)).booking, booking.id);
  });

  it('places of areas come and go', async () => {
    const event = await createEvent();
    const hold = await server.take(event, { areas: { Floor: 3 } });
    let now = await changed(hold, { add: { areas: { Floor: 2, Roof: 1 }, seats: ['S-A-1'] } });
    assertHold(now, { event, seats: ['S-A-1'], areas: { Floor: 5, Roof: 1 } });
    assert.equal(now.amount, 5 * 300 + 50 + 1000);
    assert.deepEqual(await server.areas(event), { Floor: 15, Roof: 1 });
    now = await changed(now, { add: { areas: { Roof: 1 } }, remove: { areas: { Floor: 4 }, seats: ['S-A-1'] } });
    assertHold(now, { event, seats: [], areas: { Floor: 1, Roof: 2 } });
    assert.equal(now.amount, 400);
    now = await changed(now, { remove: { areas: { Floor: 1 } } });
    assertHold(now, { event, seats: [], areas: { Roof: 2 } });
    assert.deepEqual(await server.areas(event), { Floor: 20, Roof: 0 });
    assert.equal((await server.del(`/v1/holds/${now.id}`)).status, 204);
    assert.deepEqual(await server.areas(event), { Floor: 20, Roof: 2 });
  });

  it('places that were added or taken out are everybody\'s again', async () => {
    const event = await createEvent();
    const hold = await server.take(event, { seats: ['S-A-1', 'S-A-2'] });
    const now = await changed(hold, { add: { seats: ['S-A-3'] }, remove: { seats: ['S-A-1'] } });
    assert.deepEqual(assertProblem(await server.hold(event, ['S-A-3', 'S-A-4']), 409, 'seat_taken').seats, ['S-A-3']);
    await server.grant(event, 'S-A-1');
    assert.equal((await server.del(`/v1/holds/${now.id}`)).status, 204);
    assert.equal(await letters(event, ['S-A-1', 'S-A-2', 'S-A-3']), 'h..');
    await server.grant(event, ['S-A-2', 'S-A-3']);
  });

  itOnce('added places cost what they cost at that moment, the others what they cost before', async () => {
    const event = await createEvent();
    const price = async (prices) => assertOk(await server.patch(`/v1/events/${event.id}`, { prices }));
    const hold = await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 2 } });
    assert.equal(hold.amount, 2600);
    await price({ S: 1500, Floor: 100 });
    assert.equal((await get(hold)).amount, 2600);
    let now = await changed(hold, { add: { seats: ['S-A-3', 'T-A-1'], areas: { Floor: 2 } } });
    assert.equal(now.amount, 2600 + 1500 + 700 + 200);
    await price({ S: 0, T: 1, Floor: 1 });
    now = await changed(now, { remove: { seats: ['S-A-1'] } });
    assert.equal(now.amount, 1000 + 1500 + 700 + 600 + 200);
    now = await changed(now, { add: { areas: { Floor: 1 } } });
    assert.equal(now.amount, 1000 + 1500 + 700 + 600 + 200 + 1);
    now = await changed(now, { remove: { areas: { Floor: 2 } } }); // those that came last go first
    assert.equal(now.amount, 1000 + 1500 + 700 + 600 + 100);
    now = await changed(now, { add: { seats: ['S-A-1'] } });
    assert.equal(now.amount, 1000 + 1500 + 700 + 0 + 600 + 100);
    assert.deepEqual(now.seats, ['S-A-2', 'S-A-3', 'T-A-1', 'S-A-1']);
    const booking = assertOk(await server.post(`/v1/holds/${now.id}/confirm`, { fence: now.fence }), 201);
    assert.equal(booking.amount, now.amount);
  });

  itOnce('taken, unknown, too few: refusals are those of a new hold, and nothing changes', async () => {
    const event = await createEvent({ max_per_hold: 6 });
    const hold = await server.take(event, { seats: ['S-A-1'], areas: { Floor: 1 } });
    await server.grant(event, 'S-A-5');
    const sold = await server.grant(event, 'S-A-6');
    assertOk(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }), 201);
    assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: ['S-A-7'] }));
    const is = (status, code, field, value) => (answer) => {
      const problem = assertProblem(answer, status, code);
      if (field) assert.deepEqual(problem[field], value);
    };
    const remove = { seats: ['S-A-1'] };
    await refused(event, hold, { add: { seats: ['S-A-7', 'S-A-4', 'S-A-6', 'S-A-5'] }, remove }, is(409, 'seat_taken', 'seats', ['S-A-7', 'S-A-6', 'S-A-5']));
    await refused(event, hold, { add: { seats: ['S-A-1'] } }, is(409, 'seat_taken', 'seats', ['S-A-1'])); // its own
    await refused(event, hold, { add: { areas: { Roof: 3 } }, remove }, (answer) => assertSoldOut(answer, 2, 'Roof'));
    await refused(event, hold, { add: { seats: ['S-C-1', 'S-A-2', 'x'] }, remove }, is(404, 'no_such_seat', 'seats', ['S-C-1', 'x']));
    await refused(event, hold, { add: { areas: { Cellar: 1 } } }, is(404, 'no_such_seat'));
    await refused(event, hold, { remove: { areas: { Cellar: 1 } } }, is(404, 'no_such_seat'));
    await refused(event, hold, { remove: { seats: ['S-A-2', 'S-A-1', 'S-A-5'] } }, is(404, 'no_such_seat', 'seats', ['S-A-2', 'S-A-5'])); // not its own
    await refused(event, hold, { remove: { areas: { Floor: 2 } } }, is(404, 'no_such_seat', 'available', 1));
    await refused(event, hold, { remove: { areas: { Roof: 1 } } }, is(404, 'no_such_seat', 'available', 0));
    for (const twice of [{ add: { seats: ['S-A-2', 'S-A-3', 'S-A-2'] } }, { remove: { seats: ['S-A-1', 'S-A-1'] } }]) {
      await refused(event, hold, twice, is(400, 'duplicate_seat', 'seats', [(twice.add ?? twice.remove).seats[0]]));
    }
    await refused(event, hold, { add: { seats: ['S-A-1'] }, remove }, is(400, 'duplicate_seat', 'seats', ['S-A-1']));
    const many = ['S-B-1', 'S-B-2', 'S-B-3', 'S-B-4', 'S-B-5'];
    await refused(event, hold, { add: { seats: many } }, is(400, 'too_many_seats'));
    await refused(event, hold, { add: { seats: ['S-B-1'], areas: { Floor: 4 } } }, is(400, 'too_many_seats'));
    await refused(event, hold, { add: { areas: { Floor: 2147483647 } } }, is(400, 'too_many_seats'));
    await refused(event, hold, { add: { seats: Array.from({ length: 600 }, (_, i) => `S-B-${i}`) } }, is(400, 'too_many_seats'));
    assertOk(await change(hold, { add: { seats: many }, remove })); // six again
  });

  itOnce('several areas together are no way around max_per_hold', async () => {
    const areas = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, name === 'e' ? 294967297 : 1_000_000_000])); // 2^32 + 1 places
    const event = await server.createEvent({ areas: Object.entries(areas).map(([name, capacity]) => ({ name, price: 1, capacity })) });
    const hold = await server.grant(event, 'S-A-1');
    await refused(event, hold, { add: { areas } }, (answer) => assertProblem(answer, 400, 'too_many_seats'));
  });

  itOnce('a hold with nothing left is no hold, a change of nothing no change', async () => {
    const event = await createEvent();
    const hold = await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 1 } });
    await refused(event, hold, { remove: { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 1 } } }, (answer) => assertInvalid(answer));
    for (const nothing of [{}, { add: {} }, { add: {}, remove: {} }, { add: { seats: [] } }, { remove: { areas: {}, seats: [] } }]) {
      await refused(event, hold, nothing, (answer) => assertInvalid(answer, 'add'));
    }
  });

  itOnce('what is wrong is named', async () => {
    const event = await createEvent();
    const hold = await server.take(event, { seats: ['S-A-1'], areas: { Floor: 2 } });
    const add = { seats: ['S-A-2'] };
    for (const [body, field] of [
      [{ add }, 'fence'], [{ fence: null, add }, 'fence'], [{ fence: `${hold.fence}`, add }, 'fence'], [{ fence: -1, add }, 'fence'],
      [{ fence: 1.5, add }, 'fence'], [{ add: 7 }, 'add'], [{ add: null }, 'add'], [{ add: ['S-A-2'] }, 'add'], [{ remove: 'S-A-1' }, 'remove'],
      [{ add: { seats: 'S-A-2' } }, 'add.seats'], [{ add: { seats: [7] } }, 'add.seats'], [{ add: { seats: null } }, 'add.seats'],
      [{ remove: { seats: {} } }, 'remove.seats'], [{ add: { areas: [] } }, 'add.areas'], [{ add: { areas: { Floor: 0 } } }, 'add.areas.Floor'],
      [{ remove: { areas: { Floor: -1 } } }, 'remove.areas.Floor'], [{ add: { areas: { Floor: '1' } } }, 'add.areas.Floor'],
      [{ add: { best_available: { quantity: 1 } } }, 'best_available'], [{ add, seats: ['S-A-3'] }, 'seats'], [{ add, ttl_ms: 5000 }, 'ttl_ms'],
      [{ add: { areas: { Floor: 1 } }, remove: { areas: { Floor: 2 } } }, 'areas'],
    ]) assertInvalid(await server.patch(`/v1/holds/${hold.id}`, 'fence' in body || field === 'fence' ? body : { fence: hold.fence, ...body }), field);
    for (const body of ['', '[]', 'null', '{', '"x"', `{"fence":${hold.fence},"add":{"seats":["S-A-2"]}}x`, '{"fence":1,"fence":2,"add":{"seats":["S-A-2"]}}']) {
      assertInvalid(await server.patch(`/v1/holds/${hold.id}`, body));
    }
    assertInvalid(await change(hold, { add }, { 'Idempotency-Key': '' }), 'Idempotency-Key');
    for (const id of [NO_HOLD, 'hold_x', 'x', `${hold.id.slice(0, -1)}${hold.id.endsWith('0') ? '1' : '0'}`]) {
      assertProblem(await server.patch(`/v1/holds/${id}`, { fence: hold.fence, add }), 404, 'no_such_hold');
    }
    assertInvalid(await server.patch(`/v1/holds/${NO_HOLD}`, { fence: 'x', add }), 'fence'); // types are checked before existence
    assert.deepEqual({ ...await get(hold), expires_in_ms: 0 }, { ...hold, expires_in_ms: 0 });
    const put = await server.request('PUT', `/v1/holds/${hold.id}`, {});
    assertProblem(put, 405, 'method_not_allowed');
    assert.match(put.headers.allow, /PATCH/);
  });

  it('needs the latest fence, and only the latest confirms', async () => {
    const event = await createEvent();
    const hold = await server.grant(event, 'S-A-1');
    const now = await changed(hold, { add: { seats: ['S-A-2'] } });
    await refused(event, hold, { add: { seats: ['S-A-3'] } }, (answer) => assertProblem(answer, 409, 'stale_fence'));
    await refused(event, hold, { fence: now.fence + 1, add: { seats: ['S-A-3'] } }, (answer) => assertProblem(answer, 409, 'stale_fence'));
    assertProblem(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 409, 'stale_fence');
    assertOk(await server.post(`/v1/holds/${hold.id}/renew`, { ttl_ms: 300_000 }));
    const booking = assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: now.fence }), 201);
    assertProblem(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 409, 'stale_fence');
    assert.equal(assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: now.fence })).id, booking.id);
  });

  it('only a live hold can be changed', async () => {
    const event = await createEvent();
    const add = { seats: ['S-B-1'] };
    const released = await server.grant(event, 'S-A-2');
    assert.equal((await server.del(`/v1/holds/${released.id}`)).status, 204);
    const sold = await server.grant(event, 'S-A-3');
    assertOk(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }), 201);
    for (const fence of [0, 1]) { // the state counts before the fence
      await refused(event, released, { add, fence: released.fence + fence }, (answer) => assertProblem(answer, 410, 'hold_released'));
      await refused(event, sold, { add, fence: sold.fence + fence }, (answer) => assertProblem(answer, 409, 'hold_confirmed'));
    }
    const [short, grown] = await inTime(async (ttl_ms) => {
      await until('the seats are free', async () => await letters(event, ['S-A-1', 'S-A-4']) === '..'); // of a hold that ran out too soon
      const brief = await server.grant(event, 'S-A-1', { ttl_ms });
      return [brief, await changed(brief, { add: { seats: ['S-A-4'] } })];
    });
    assert.equal(grown.expires_at, short.expires_at);
    await sleep(ms(short.expires_at) - Date.now() + 20);
    assertProblem(await change(grown, { add }), 410, 'hold_expired');
    assertProblem(await change(short, { add }), 410, 'hold_expired');
    assert.equal(await letters(event, ['S-A-1', 'S-A-4', 'S-B-1']), '...');
    const rescued = assertOk(await server.post(`/v1/holds/${grown.id}/confirm`, { fence: grown.fence, rescue: true }), 201);
    assert.deepEqual([rescued.seats, rescued.amount], [['S-A-1', 'S-A-4'], 2000]);
    // The repeat of the rescue, whose answer may have been lost, is answered.
    assert.equal(assertOk(await server.post(`/v1/holds/${grown.id}/confirm`, { fence: grown.fence, rescue: true })).id, rescued.id);
  });

  itOnce('of a closed event places can only be given back', async () => {
    const event = await createEvent();
    const hold = await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 1 } });
    assertOk(await server.post(`/v1/events/${event.id}/close`));
    await refused(event, hold, { add: { seats: ['S-A-3'] } }, (answer) => assertProblem(answer, 409, 'event_closed'));
    await refused(event, hold, { add: { areas: { Floor: 1 } }, remove: { seats: ['S-A-1'] } }, (answer) => assertProblem(answer, 409, 'event_closed'));
    const now = await changed(hold, { remove: { seats: ['S-A-1'], areas: { Floor: 1 } } });
    assertHold(now, { event, seats: ['S-A-2'] });
  });

  it('a hold that ran out is no hindrance', async () => {
    const event = await createEvent();
    const [hold, other] = [await server.grant(event, 'S-A-1'), await server.take(event, { seats: ['S-A-2'], areas: { Roof: 2 }, ttl_ms: 1000 })];
    await sleep(ms(other.expires_at) - Date.now() + 5);
    const now = await changed(hold, { add: { seats: ['S-A-2'], areas: { Roof: 2 } } });
    assertHold(now, { event, seats: ['S-A-1', 'S-A-2'], areas: { Roof: 2 } });
  });

  it('repeats under one key are one change', async () => {
    const event = await createEvent();
    const hold = await server.grant(event, 'S-A-1');
    const body = (seat) => ({ fence: hold.fence, add: { seats: [seat] } });
    const now = await assertIdempotent(server, `/v1/holds/${hold.id}`, body('S-A-2'), body('S-A-3'), newKey(), 200, 'PATCH');
    assert.deepEqual((await get(hold)).seats, ['S-A-1', 'S-A-2']);
    // A refusal is not stored.
    const key = { 'Idempotency-Key': newKey() };
    const other = await server.grant(event, 'S-A-4');
    assertProblem(await change(now, { add: { seats: ['S-A-4'] } }, key), 409, 'seat_taken');
    assert.equal((await server.del(`/v1/holds/${other.id}`)).status, 204);
    const first = await change(now, { add: { seats: ['S-A-4'] } }, key);
    assertOk(first);
    assert.equal((await change(now, { add: { seats: ['S-A-4'] } }, key)).text, first.text);
    assertProblem(await server.post(`/v1/holds/${hold.id}/renew`, { fence: now.fence, add: { seats: ['S-A-4'] } }, key), 400, 'invalid_request');
  });

  it('of many changes with one fence exactly one wins', async () => {
    const event = await createEvent();
    const hold = await server.grant(event, 'S-A-1');
    const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => change(hold, { add: { seats: [`S-B-${i + 1}`] } })));
    const won = answers.filter(({ status }) => status === 200);
    assert.equal(won.length, 1);
    for (const answer of answers) if (answer !== won[0]) assertProblem(answer, 409, 'stale_fence');
    assert.deepEqual((await get(hold)).seats, won[0].json.seats);
    assert.deepEqual(await server.counts(event), { available: 45, held: 2, booked: 0, blocked: 0 });
  });

  it('buyers who grow their holds and buyers who begin never share a seat', async () => {
    const event = await createEvent({ max_per_hold: 30 });
    const names = [...'AB'].flatMap((row) => Array.from({ length: 10 }, (_, i) => `S-${row}-${i + 1}`));
    const holds = [];
    for (const seat of ['T-A-1', 'T-A-2', 'T-A-3', 'T-A-4', 'T-A-5']) holds.push(await server.grant(event, seat));
    const pick = (i, n) => Array.from({ length: n }, (_, k) => names[(i * 7 + k * 3) % names.length]);
    const grow = async (hold, n) => {
      let now = hold;
      for (let i = 0; i < 8; i++) {
        const answer = await change(now, { add: { seats: pick(n + i, 1 + i % 2) }, ...(i % 3 === 2 && now.seats.length > 1 ? { remove: { seats: [now.seats[1]] } } : {}) });
        if (answer.status === 200) now = answer.json;
        else assert.match(answer.json.code, /^(seat_taken|duplicate_seat)$/, answer.text);
      }
      return now;
    };
    const begin = async (n) => {
      const answer = await server.hold(event, pick(n, 2));
      if (answer.status !== 201) assertProblem(answer, 409, 'seat_taken');
      return answer.status === 201 ? answer.json : undefined;
    };
    const ended = (await Promise.all([...holds.map(grow), ...Array.from({ length: 45 }, (_, n) => begin(n))])).filter(Boolean);
    const owned = ended.flatMap(({ seats }) => seats);
    assert.equal(new Set(owned).size, owned.length, 'a seat of two holds');
    const map = await server.map(event);
    assert.deepEqual(Object.keys(map).filter((seat) => map[seat] === 'h').sort(), owned.sort());
    for (const hold of ended) assert.deepEqual((await get(hold)).seats, hold.seats);
    for (const hold of ended) assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    assert.deepEqual(await server.counts(event), { available: 47, held: 0, booked: 0, blocked: 0 });
  });

  itOnce('the history tells of it', async () => {
    const event = await createEvent();
    const hold = await server.grant(event, 'S-A-1');
    const now = await changed(hold, { add: { seats: ['S-A-2'] }, remove: { seats: ['S-A-1'] } });
    const causes = async (seat) => (await server.read(`/v1/events/${event.id}/seats/${seat}`)).history.map(({ cause, from, to, fence }) => [cause, from, to, fence]);
    assert.deepEqual(await causes('S-A-1'), [['change', 'held', 'available', now.fence], ['hold', 'available', 'held', hold.fence]]);
    assert.deepEqual(await causes('S-A-2'), [['change', 'available', 'held', now.fence]]);
    const seat = await server.read(`/v1/events/${event.id}/seats/S-A-2`);
    assert.deepEqual([seat.status, seat.fence, seat.until], ['held', now.fence, hold.expires_at]);
  });

  it('outlives a kill', async () => { // the last test: it stops the server
    const event = await createEvent();
    const hold = await server.take(event, { seats: ['S-A-1'], areas: { Floor: 2 } });
    const key = { 'Idempotency-Key': newKey() };
    const body = { add: { seats: ['S-A-2'], areas: { Roof: 1 } }, remove: { seats: ['S-A-1'], areas: { Floor: 1 } } };
    const answer = await change(hold, body, key);
    const now = assertOk(answer);
    await server.kill9();
    await server.launch();
    assert.deepEqual({ ...await get(now), expires_in_ms: 0 }, { ...now, expires_in_ms: 0 });
    assert.equal((await change(hold, body, key)).text, answer.text);
    assert.equal(await letters(event, ['S-A-1', 'S-A-2']), '.h');
    assert.deepEqual(await server.areas(event), { Floor: 19, Roof: 1 });
    assertProblem(await change(hold, { add: { seats: ['S-A-3'] } }), 409, 'stale_fence');
    const grown = await changed(now, { add: { seats: ['S-A-1'] } });
    assert.deepEqual(assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: grown.fence }), 201).seats, ['S-A-2', 'S-A-1']);
  });
});
