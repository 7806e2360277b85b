// Creating holds: the 201, every refusal, and the order in which the server checks for reasons to refuse.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertHold, assertInvalid, assertOk, assertProblem, HOLD_FIELDS, ms } from '../support/expect.mjs';
import { start } from '../support/server.mjs';

const names = (row, from, to) => Array.from({ length: to - from + 1 }, (_, i) => `S-${row}-${from + i}`);

describe('making holds', () => {
  let server;
  let event;
  before(async () => {
    server = await start();
    event = await server.createEvent({
      sections: [{ name: 'S', tier: 'A', price: 1000, rows: 20, seats_per_row: 30 },
        { name: 'T', tier: 'B', price: 250, rows: 1, seats_per_row: 10 }],
    });
  });
  after(() => server?.stop());

  it('a hold answers 201 with exactly the promised fields', async () => {
    const from = Date.now();
    const answer = await server.hold(event, ['S-A-2', 'S-A-1', 'T-A-1'], { owner: 'user-123' });
    const hold = assertOk(answer, 201);
    assertHold(hold, { event, seats: ['S-A-2', 'S-A-1', 'T-A-1'] });
    assert.deepEqual(Object.keys(hold).sort(), HOLD_FIELDS);
    assert.equal(hold.owner, 'user-123');
    assert.equal(hold.amount, 2250);
    assert.equal(hold.currency, 'usd');
    assert.ok(hold.expires_in_ms > 460_000 && hold.expires_in_ms <= 480_000, `${hold.expires_in_ms}`);
    assert.equal(ms(hold.expires_at) - ms(hold.created_at), 480_000);
    assert.equal(ms(hold.max_expires_at) - ms(hold.created_at), 1_200_000);
    assert.ok(ms(hold.created_at) > from - 1000 && ms(hold.created_at) < Date.now() + 1000, `${hold.created_at}`);
    assert.equal(answer.headers['idempotency-replayed'], undefined);
  });

  it('GET tells the same, but for the time left', async () => {
    const hold = await server.grant(event, ['S-B-1', 'S-B-2'], { owner: 'Zoë' });
    const read = assertOk(await server.get(`/v1/holds/${hold.id}`));
    assert.ok(read.expires_in_ms <= hold.expires_in_ms);
    assert.deepEqual({ ...read, expires_in_ms: 0 }, { ...hold, expires_in_ms: 0 });
  });

  it('a hold without an owner has none', async () => {
    const hold = await server.grant(event, 'S-B-3');
    assert.equal(hold.owner ?? null, null);
    assert.equal(assertOk(await server.get(`/v1/holds/${hold.id}`)).owner ?? null, null);
  });

  it('ttl_ms sets the expiry', async () => {
    const hold = await server.grant(event, 'S-B-4', { ttl_ms: 30_000 });
    assert.equal(ms(hold.expires_at) - ms(hold.created_at), 30_000);
    assert.ok(hold.expires_in_ms <= 30_000 && hold.expires_in_ms > 10_000);
    assert.equal(ms(hold.max_expires_at) - ms(hold.created_at), 1_200_000);
    const most = await server.grant(event, 'S-B-5', { ttl_ms: 480_000 });
    assert.equal(ms(most.expires_at) - ms(most.created_at), 480_000);
  });

  it('metadata is taken when it is flat', async () => {
    await server.grant(event, 'S-B-6', { metadata: { cart: '77', campaign: 'spring' } });
    await server.grant(event, 'S-B-7', { metadata: {} });
    for (const metadata of [{ a: { b: 1 } }, { a: [1] }, [], 'text', 7]) {
      assertInvalid(await server.hold(event, 'S-B-8', { metadata }), 'metadata');
    }
  });

  it('an owner has at most 128 characters', async () => {
    await server.grant(event, 'S-B-9', { owner: 'x'.repeat(128) });
    const wide = await server.grant(event, 'S-B-10', { owner: '😀'.repeat(128) });
    assert.equal(wide.owner, '😀'.repeat(128));
    assertInvalid(await server.hold(event, 'S-B-11', { owner: 'x'.repeat(129) }), 'owner');
    for (const owner of [7, {}, [], true]) assertInvalid(await server.hold(event, 'S-B-11', { owner }), 'owner');
  });

  it('fences of an event only grow', async () => {
    let last = 0;
    for (let i = 1; i <= 10; i++) {
      const { fence } = await server.grant(event, `S-C-${i}`);
      assert.ok(fence > last, `${fence} after ${last}`);
      last = fence;
    }
  });

  it('a seat that is held is 409 seat_taken, and the refusal lists it', async () => {
    await server.grant(event, ['S-D-1', 'S-D-3']);
    assert.deepEqual(assertProblem(await server.hold(event, 'S-D-1'), 409, 'seat_taken').seats, ['S-D-1']);
    const many = assertProblem(await server.hold(event, names('D', 1, 4)), 409, 'seat_taken');
    assert.deepEqual([...many.seats].sort(), ['S-D-1', 'S-D-3']);
    const map = await server.map(event);
    assert.equal(map['S-D-2'] + map['S-D-4'], '..', 'all or nothing (I6)');
  });

  it('a seat that is booked is 409 seat_taken', async () => {
    const hold = await server.grant(event, 'S-D-5');
    assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
    assert.deepEqual(assertProblem(await server.hold(event, ['S-D-6', 'S-D-5']), 409, 'seat_taken').seats,
      ['S-D-5']);
  });

  it('even the owner cannot hold a seat twice', async () => {
    await server.grant(event, 'S-D-7', { owner: 'me' });
    assertProblem(await server.hold(event, 'S-D-7', { owner: 'me' }), 409, 'seat_taken');
  });

  it('an unknown event is 404 no_such_event', async () => {
    for (const id of [`evt_${'0'.repeat(28)}`, 'evt_', 'x', '', event.id.slice(0, -1), `${event.id}0`]) {
      assertProblem(await server.hold(id, 'S-A-1'), 404, 'no_such_event');
    }
  });

  it('an unknown seat is 404 no_such_seat', async () => {
    const odd = ['S-E-0', 'S-E-31', 'S-E-01', 'S-E-+1', 'S-E- 1', 'S-E-1 ', 's-E-1', 'S-e-1', 'U-E-1', 'S-ZZ-1',
      'S-E', 'S', '-', '--', 'S--1', '-E-1', 'S-E-', 'S-E-1-1', 'S-E-1x', 'S-E-0x1', 'S-E-1e0', 'S-E--1',
      'S-E-4294967297', 'S-E-18446744073709551617', 'S-E-99999999999999999999999', 'S_E_1', 'S-É-1', 'S-E-１', '😀'];
    for (const seat of odd) assertProblem(await server.hold(event, seat), 404, 'no_such_seat');
    assertProblem(await server.hold(event, ['S-E-1', 'S-E-31']), 404, 'no_such_seat');
    assert.equal((await server.map(event))['S-E-1'], '.');
  });

  it('an empty or very long seat name is a clear refusal', async () => {
    for (const seat of ['', 'S-E-1'.repeat(500)]) {
      const answer = await server.hold(event, seat);
      assert.ok([400, 404].includes(answer.status), answer.text);
      assertProblem(answer, answer.status, answer.status === 400 ? 'invalid_request' : 'no_such_seat');
    }
  });

  it('a seat named twice is 400 duplicate_seat', async () => {
    assertProblem(await server.hold(event, ['S-E-1', 'S-E-2', 'S-E-1']), 400, 'duplicate_seat');
    assert.equal((await server.map(event))['S-E-1'], '.');
  });

  it('ten seats are enough and eleven are 400 too_many_seats', async () => {
    assertProblem(await server.hold(event, names('F', 1, 11)), 400, 'too_many_seats');
    const hold = await server.grant(event, names('F', 1, 10));
    assert.equal(hold.seats.length, 10);
    assert.equal(hold.amount, 10_000);
  });

  it('max_per_hold is the event\'s', async () => {
    const strict = await server.createEvent({ max_per_hold: 1 });
    assertProblem(await server.hold(strict, ['S-A-1', 'S-A-2']), 400, 'too_many_seats');
    await server.grant(strict, 'S-A-1');
    const large = await server.createEvent({ max_per_hold: 20 });
    await server.grant(large, [...names('A', 1, 10), ...names('B', 1, 10)]);
  });

  it('ttl_ms lies between 1000 and the event\'s hold_ttl_ms', async () => {
    for (const ttl of [999, 0, -1, 480_001, 2 ** 53, '1000', 1000.5, true, [1000]]) {
      assertInvalid(await server.hold(event, 'S-G-1', { ttl_ms: ttl }), 'ttl_ms');
    }
    const brief = await server.createEvent({ hold_ttl_ms: 2000 });
    assertInvalid(await server.hold(brief, 'S-A-1', { ttl_ms: 2001 }), 'ttl_ms');
    await server.grant(brief, 'S-A-1', { ttl_ms: 2000 });
  });

  it('what is missing or of the wrong type is named', async () => {
    const bad = [
      [{ seats: ['S-G-1'] }, 'event'], [{ event: 7, seats: ['S-G-1'] }, 'event'],
      [{ event: null, seats: ['S-G-1'] }, 'event'], [{ event: event.id }, 'seats'],
      [{ event: event.id, seats: [] }, 'seats'], [{ event: event.id, seats: 'S-G-1' }, 'seats'],
      [{ event: event.id, seats: {} }, 'seats'], [{ event: event.id, seats: [1] }, 'seats'],
      [{ event: event.id, seats: [['S-G-1']] }, 'seats'], [{ event: event.id, seats: [null] }, 'seats'],
      [{ event: event.id, seats: ['S-G-1'], colour: 'red' }, 'colour'],
      [{ event: event.id, seats: ['S-G-1'], Seats: [] }, 'Seats'],
      [{}], [[]], ['"text"'], ['7'], ['null'], [''], [' '],
    ];
    for (const [body, field] of bad) assertInvalid(await server.post('/v1/holds', body), field);
    assertInvalid(await server.post('/v1/holds'));
    assert.equal((await server.map(event))['S-G-1'], '.');
  });

  it('types are checked before duplicates, duplicates before existence, existence before state', async () => {
    await server.grant(event, 'S-H-1');
    const nowhere = `evt_${'0'.repeat(28)}`;
    // 400 for a malformed request, although event and seats are unknown, too.
    assertInvalid(await server.hold(nowhere, ['x', 'x'], { owner: 7 }), 'owner');
    assertInvalid(await server.hold(event, ['nope', 'nope'], { nonsense: 1 }), 'nonsense');
    // 400 for duplicates, although the event or a seat is unknown or taken.
    assertProblem(await server.hold(nowhere, ['x', 'x']), 400, 'duplicate_seat');
    assertProblem(await server.hold(event, ['nope', 'nope']), 400, 'duplicate_seat');
    assertProblem(await server.hold(event, ['S-H-1', 'S-H-1']), 400, 'duplicate_seat');
    // 400 for too many seats, although one is unknown or taken.
    assertProblem(await server.hold(event, [...names('H', 2, 11), 'nope']), 400, 'too_many_seats');
    assertProblem(await server.hold(event, names('H', 1, 11)), 400, 'too_many_seats');
    // 404 for an unknown seat, although another is taken.
    assertProblem(await server.hold(event, ['S-H-1', 'nope']), 404, 'no_such_seat');
    assertProblem(await server.hold(event, ['nope', 'S-H-1']), 404, 'no_such_seat');
  });

  it('seats of one event are nothing to another', async () => {
    const other = await server.createEvent();
    await server.grant(other, 'S-A-10');
    await server.grant(event, 'S-A-10');
    assertProblem(await server.hold(other, 'T-A-9'), 404, 'no_such_seat');
  });
});
