// Calls of sellers: block and unblock seats, close and reopen the sale, evict a hold.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  assertHold, assertIdempotent, assertInvalid, assertOk, assertProblem, assertSoldOut, ms,
} from '../support/expect.mjs';
import { itOnce, newKey, reap, sleep, start, until } from '../support/server.mjs';

const NOWHERE = `evt_${'0'.repeat(28)}`;
const NO_HOLD = `hold_${'0'.repeat(28)}`;

describe('sellers', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const change = (action, event, body, headers) => server.post(`/v1/events/${event.id ?? event}/${action}`, body, headers);
  const block = (event, seats, headers) => change('block', event, { seats: [].concat(seats) }, headers);
  const unblock = (event, seats, headers) => change('unblock', event, { seats: [].concat(seats) }, headers);
  const confirm = (hold, fields = {}) => server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, ...fields });
  const evict = (hold, body, headers) => server.post(`/v1/holds/${hold.id ?? hold}/evict`, body, headers);
  const afterExpiry = async (hold) => { await sleep(ms(hold.expires_at) - Date.now() + 60); };
  const seq = async (event) => (await server.read(`/v1/events/${event.id}/seats`)).seq;

  describe('block and unblock', () => {
    it('blocked seats are off sale, unblocked ones are on it again', async () => {
      const event = await server.createEvent();
      assert.deepEqual(assertOk(await block(event, ['S-B-2', 'S-A-1'])),
        { object: 'event_seats', event: event.id, status: 'blocked', seats: ['S-B-2', 'S-A-1'] });
      const map = await server.map(event);
      assert.deepEqual([map['S-A-1'], map['S-B-2'], map['S-A-2']], ['x', 'x', '.']);
      assert.deepEqual(await server.counts(event), { available: 18, held: 0, booked: 0, blocked: 2 });
      const taken = assertProblem(await server.hold(event, ['S-A-2', 'S-A-1']), 409, 'seat_taken');
      assert.deepEqual(taken.seats, ['S-A-1']);
      assert.deepEqual(assertOk(await unblock(event, ['S-A-1'])),
        { object: 'event_seats', event: event.id, status: 'available', seats: ['S-A-1'] });
      assert.deepEqual(await server.counts(event), { available: 19, held: 0, booked: 0, blocked: 1 });
      await server.grant(event, ['S-A-1', 'S-A-2']);
    });

    itOnce('held or booked seats are listed in 409 seat_taken, and none is changed', async () => {
      const event = await server.createEvent();
      await server.grant(event, 'S-A-1');
      const sold = await server.grant(event, 'S-A-2');
      assertOk(await confirm(sold), 201);
      for (const act of [block, unblock]) {
        const before = await seq(event);
        const problem = assertProblem(await act(event, ['S-A-3', 'S-A-2', 'S-A-1', 'S-A-4']), 409, 'seat_taken');
        assert.deepEqual(problem.seats, ['S-A-2', 'S-A-1']);
        assert.equal(await seq(event), before);
      }
      assert.deepEqual(await server.counts(event), { available: 18, held: 1, booked: 1, blocked: 0 });
    });

    itOnce('a seat that already has the wanted status stays unchanged', async () => {
      const event = await server.createEvent();
      assertOk(await block(event, ['S-A-1', 'S-A-2']));
      const before = await seq(event);
      assertOk(await block(event, ['S-A-2', 'S-A-1']));
      assertOk(await unblock(event, 'S-A-3'));
      assert.equal(await seq(event), before, 'nothing changed, nothing is logged');
      assertOk(await block(event, ['S-A-2', 'S-A-3']));
      assert.equal(await seq(event), before + 1);
    });

    it('a hold that ran out is no hindrance', async () => {
      const event = await server.createEvent();
      const hold = await server.grant(event, ['S-A-1', 'S-A-2'], { ttl_ms: 1000 });
      await sleep(ms(hold.expires_at) - Date.now() + 5);
      assertOk(await block(event, 'S-A-1'));
      assert.equal((await server.map(event))['S-A-1'], 'x');
      assert.equal((await server.map(event))['S-A-2'], '.');
      assertProblem(await confirm(hold, { rescue: true }), 410, 'hold_expired');
      assertProblem(await confirm(hold), 410, 'hold_expired');
      assertOk(await unblock(event, 'S-A-1'));
      assertOk(await confirm(hold, { rescue: true }), 201);
      assert.deepEqual(await server.counts(event), { available: 18, held: 0, booked: 2, blocked: 0 });
    });

    itOnce('what is wrong is named', async () => {
      const event = await server.createEvent();
      for (const action of ['block', 'unblock']) {
        const bad = [[{}, 'seats'], [{ seats: [] }, 'seats'], [{ seats: 'S-A-1' }, 'seats'], [{ seats: null }, 'seats'],
          [{ seats: [1] }, 'seats'], [{ seats: [null] }, 'seats'], [{ seats: [['S-A-1']] }, 'seats'], [{ seats: { 0: 'S-A-1' } }, 'seats'],
          [{ seats: ['S-A-1'], reason: 'x' }, 'reason'], [{ seats: ['S-A-1'], areas: [] }, 'areas'],
          [[]], ['null'], ['"x"'], [''], ['{'], ['{"seats":["S-A-1"]}x']];
        for (const [body, field] of bad) assertInvalid(await change(action, event, body), field);
        assertInvalid(await server.post(`/v1/events/${event.id}/${action}`));
        const twice = assertProblem(await change(action, event, { seats: ['S-A-1', 'S-A-2', 'S-A-1'] }), 400, 'duplicate_seat');
        assert.deepEqual(twice.seats, ['S-A-1']);
        const unknown = assertProblem(await change(action, event, { seats: ['S-A-1', 'S-A-11', 'x', 'S-C-1'] }), 404, 'no_such_seat');
        assert.deepEqual(unknown.seats, ['S-A-11', 'x', 'S-C-1']);
        for (const id of [NOWHERE, 'evt_x', 'x', event.id.slice(0, -1), `${event.id.slice(0, -1)}${event.id.endsWith('0') ? '1' : '0'}`]) {
          assertProblem(await change(action, id, { seats: ['S-A-1'] }), 404, 'no_such_event');
        }
        assertInvalid(await change(action, NOWHERE, { seats: [] }), 'seats'); // types are checked before existence
        const wrong = await server.get(`/v1/events/${event.id}/${action}`);
        assertProblem(wrong, 405, 'method_not_allowed');
        assert.equal(wrong.headers.allow, 'POST');
      }
      assert.deepEqual(await server.counts(event), { available: 20, held: 0, booked: 0, blocked: 0 });
    });

    it('thousands of seats in one request, more than a hold may have', async () => {
      const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 10, seats_per_row: 400 }] });
      const seats = Array.from({ length: 4000 }, (_, i) => `S-${'ABCDEFGHIJ'[Math.floor(i / 400)]}-${i % 400 + 1}`);
      assert.deepEqual(assertOk(await block(event, seats)).seats, seats);
      assert.deepEqual(await server.counts(event), { available: 0, held: 0, booked: 0, blocked: 4000 });
      assertSoldOut(await server.ask(event, { best_available: { quantity: 1 } }), 0);
      assertOk(await unblock(event, seats.slice(1)));
      await server.grant(event, 'S-J-400');
      const problem = assertProblem(await block(event, seats), 409, 'seat_taken');
      assert.deepEqual(problem.seats, ['S-J-400']);
      assertProblem(await block(event, [...seats, 'S-A-1']), 400, 'duplicate_seat');
    });

    it('repeats under one key are one change', async () => {
      const event = await server.createEvent();
      const path = `/v1/events/${event.id}/`;
      await assertIdempotent(server, `${path}block`, { seats: ['S-A-1', 'S-A-2'] }, { seats: ['S-A-1'] }, newKey());
      const key = newKey();
      const first = await unblock(event, 'S-A-1', { 'Idempotency-Key': key });
      assertOk(first);
      assertOk(await block(event, 'S-A-1'));
      const again = await unblock(event, 'S-A-1', { 'Idempotency-Key': key });
      assert.equal(again.text, first.text);
      assert.equal(again.headers['idempotency-replayed'], 'true');
      assert.equal((await server.map(event))['S-A-1'], 'x', 'a replay has no effect');
      assertProblem(await block(event, 'S-A-1', { 'Idempotency-Key': key }), 422, 'idempotency_mismatch');
      assertInvalid(await block(event, 'S-A-1', { 'Idempotency-Key': 'short' }), 'Idempotency-Key');
    });
  });

  describe('open and close', () => {
    it('while an event is closed no buyer gets a new hold; existing holds live on', async () => {
      const event = await server.createEvent({ areas: [{ name: 'Floor', price: 1, capacity: 5 }] });
      assert.equal(event.status, 'open');
      const [kept, sold, gone, dropped] = [await server.grant(event, 'S-A-1', { ttl_ms: 60_000 }), await server.grant(event, 'S-A-2'),
        await server.grant(event, 'S-A-3'), await server.take(event, { areas: { Floor: 1 } })];
      const closed = assertOk(await change('close', event, {}));
      assert.equal(closed.object, 'event');
      assert.equal(closed.id, event.id);
      assert.equal(closed.status, 'closed');
      assert.deepEqual([closed.available, closed.held], [21, 4]);
      assert.equal((await server.read(`/v1/events/${event.id}`)).status, 'closed');
      for (const places of [{ seats: ['S-A-9'] }, { seats: ['S-A-1'] }, { areas: { Floor: 1 } }, { areas: { Floor: 5 } },
        { best_available: { quantity: 1 } }, { seats: ['S-A-9'], areas: { Floor: 1 } }]) {
        assertProblem(await server.ask(event, places), 409, 'event_closed');
      }
      // Malformed and unknown fields are refused first.
      assertInvalid(await server.ask(event, { seats: [7] }), 'seats');
      assertProblem(await server.hold(event, ['S-A-9', 'S-A-9']), 400, 'duplicate_seat');
      assertProblem(await server.hold(event, 'S-A-11'), 404, 'no_such_seat');
      assertProblem(await server.ask(event, { areas: { Nowhere: 1 } }), 404, 'no_such_seat');

      assertOk(await server.post(`/v1/holds/${kept.id}/renew`, {}));
      assertOk(await confirm(sold), 201);
      assert.equal((await server.del(`/v1/holds/${dropped.id}`)).status, 204);
      assertOk(await evict(gone));
      assertOk(await block(event, 'S-A-5'));
      assert.deepEqual(await server.counts(event), { available: 22, held: 1, booked: 1, blocked: 1 });

      assert.equal(assertOk(await change('open', event, {})).status, 'open');
      await server.take(event, { seats: ['S-A-9'], areas: { Floor: 1 } });
      const { data } = await server.read('/v1/events?limit=100');
      assert.equal(data.find(({ id }) => id === event.id).status, 'open');
    });

    itOnce('closing twice is closing once, and so is opening', async () => {
      const event = await server.createEvent();
      const before = await seq(event);
      assert.equal(assertOk(await change('open', event)).status, 'open');
      assert.equal(await seq(event), before);
      assert.equal(assertOk(await change('close', event)).status, 'closed');
      assert.equal(assertOk(await change('close', event, {})).status, 'closed');
      assert.equal(await seq(event), before + 1);
      assert.equal(assertOk(await change('open', event)).status, 'open');
      assert.equal(await seq(event), before + 2);
    });

    itOnce('an expired hold may be rescued while closed', async () => {
      const event = await server.createEvent();
      const hold = await server.grant(event, 'S-A-1', { ttl_ms: 1000 });
      assertOk(await change('close', event));
      await afterExpiry(hold);
      assertOk(await confirm(hold, { rescue: true }), 201);
    });

    itOnce('what is wrong is named', async () => {
      const event = await server.createEvent();
      for (const action of ['open', 'close']) {
        assertInvalid(await change(action, event, { reason: 'x' }), 'reason');
        for (const body of ['[]', 'null', '{', '"x"', '7']) assertInvalid(await change(action, event, body));
        for (const id of [NOWHERE, 'evt_', 'x']) assertProblem(await change(action, id, {}), 404, 'no_such_event');
        assertProblem(await server.get(`/v1/events/${event.id}/${action}`), 405, 'method_not_allowed');
        assertProblem(await server.del(`/v1/events/${event.id}/${action}`), 405, 'method_not_allowed');
      }
      assert.equal((await server.read(`/v1/events/${event.id}`)).status, 'open');
    });

    itOnce('repeats under one key are one change', async () => {
      const event = await server.createEvent();
      const key = { 'Idempotency-Key': newKey() };
      const first = await change('close', event, {}, key);
      assertOk(first);
      assertOk(await change('open', event));
      const again = await change('close', event, {}, key);
      assert.equal(again.text, first.text);
      assert.equal(again.headers['idempotency-replayed'], 'true');
      assert.equal((await server.read(`/v1/events/${event.id}`)).status, 'open', 'a replay has no effect');
      assertProblem(await change('open', event, {}, key), 422, 'idempotency_mismatch');
      const opened = await change('open', event, {}, { 'Idempotency-Key': newKey() });
      assert.equal(assertOk(opened).status, 'open');
    });

    itOnce('an event being closed refuses a hold asked for under a fresh key, and replays an old one', async () => {
      const event = await server.createEvent();
      const key = { 'Idempotency-Key': newKey() };
      const first = await server.hold(event, 'S-A-1', {}, key);
      assertOk(first, 201);
      assertOk(await change('close', event));
      assertProblem(await server.hold(event, 'S-A-2', {}, { 'Idempotency-Key': newKey() }), 409, 'event_closed');
      assert.equal((await server.hold(event, 'S-A-1', {}, key)).text, first.text);
    });
  });

  describe('evict', () => {
    it('ends another\'s hold: its seats and places are free at once', async () => {
      const event = await server.createEvent({ areas: [{ name: 'Floor', price: 1, capacity: 5 }] });
      const hold = await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 5 }, owner: 'Ann' });
      const evicted = assertOk(await evict(hold, {}));
      assertHold(evicted, { event, seats: hold.seats, areas: { Floor: 5 }, status: 'released' });
      assert.deepEqual([evicted.id, evicted.fence, evicted.amount, evicted.owner, evicted.expires_in_ms],
        [hold.id, hold.fence, hold.amount, 'Ann', 0]);
      assert.deepEqual(await server.counts(event), { available: 25, held: 0, booked: 0, blocked: 0 });
      const repeated = assertOk(await evict(hold));
      assert.equal(repeated.status, 'released');
      assertProblem(await confirm(hold), 410, 'hold_released');
      assertProblem(await server.post(`/v1/holds/${hold.id}/renew`, {}), 410, 'hold_released');
      assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
      const next = await server.take(event, { seats: hold.seats, areas: { Floor: 5 } });
      assertOk(await evict(hold));
      assert.equal((await server.read(`/v1/holds/${next.id}`)).status, 'active', 'the old hold\'s eviction is not the new one\'s');
      assert.deepEqual(await server.counts(event), { available: 18, held: 7, booked: 0, blocked: 0 });
    });

    itOnce('released 200, expired 410, confirmed 409, unknown 404', async () => {
      const event = await server.createEvent();
      const expired = await server.grant(event, 'S-A-1', { ttl_ms: 1000 });
      const released = await server.grant(event, 'S-A-2');
      await server.del(`/v1/holds/${released.id}`);
      assert.equal(assertOk(await evict(released)).status, 'released');
      const sold = await server.grant(event, 'S-A-3');
      assertOk(await confirm(sold), 201);
      assertProblem(await evict(sold), 409, 'hold_confirmed');
      await afterExpiry(expired);
      assertProblem(await evict(expired), 410, 'hold_expired');
      await until('swept', async () => (await server.counts(event)).held === 0);
      assertProblem(await evict(expired), 410, 'hold_expired');
      for (const id of [NO_HOLD, 'hold_', 'x', `${sold.id}0`, sold.id.replace('hold_', 'bkg_')]) assertProblem(await evict(id), 404, 'no_such_hold');
      assert.deepEqual(await server.counts(event), { available: 19, held: 0, booked: 1, blocked: 0 });
    });

    itOnce('needs the whole id: one character off is nobody\'s hold', async () => {
      const event = await server.createEvent();
      const hold = await server.grant(event, 'S-A-1');
      const last = hold.id.at(-1);
      const other = last === 'a' ? 'b' : 'a';
      assertProblem(await evict(hold.id.slice(0, -1) + other), 404, 'no_such_hold');
      assertProblem(await evict(`${hold.id.slice(0, 16)}${'*'.repeat(17)}`), 404, 'no_such_hold');
      assert.equal((await server.read(`/v1/holds/${hold.id}`)).status, 'active');
    });

    itOnce('takes no fields, and repeats under one key are one eviction', async () => {
      const event = await server.createEvent();
      const hold = await server.grant(event, 'S-A-1');
      assertInvalid(await evict(hold, { fence: hold.fence }), 'fence');
      for (const body of ['[]', 'null', '{', '7']) assertInvalid(await evict(hold, body));
      assertInvalid(await evict(hold, {}, { 'Idempotency-Key': 'short' }), 'Idempotency-Key');
      assert.equal((await server.read(`/v1/holds/${hold.id}`)).status, 'active');
      const key = { 'Idempotency-Key': newKey() };
      const first = await evict(hold, {}, key);
      assertOk(first);
      const again = await evict(hold, {}, key);
      assert.deepEqual([again.status, again.text, again.headers['idempotency-replayed']], [200, first.text, 'true']);
      const other = await server.grant(event, 'S-A-1');
      assertProblem(await evict(other, {}, key), 422, 'idempotency_mismatch');
      assert.equal((await server.read(`/v1/holds/${other.id}`)).status, 'active');
      assertProblem(await server.get(`/v1/holds/${hold.id}/evict`), 405, 'method_not_allowed');
    });
  });

  it('what sellers did outlives a restart', async () => {
    const event = await server.createEvent();
    assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: ['S-A-1', 'S-A-2'] }));
    assertOk(await server.post(`/v1/events/${event.id}/unblock`, { seats: ['S-A-2'] }));
    const hold = await server.grant(event, 'S-A-3');
    assertOk(await server.post(`/v1/holds/${hold.id}/evict`));
    assertOk(await server.post(`/v1/events/${event.id}/close`));
    await server.restart();
    const map = await server.map(event);
    assert.deepEqual([map['S-A-1'], map['S-A-2'], map['S-A-3']], ['x', '.', '.']);
    assert.equal((await server.read(`/v1/holds/${hold.id}`)).status, 'released');
    assertProblem(await server.hold(event, 'S-A-4'), 409, 'event_closed');
    assertOk(await server.post(`/v1/events/${event.id}/open`));
    const next = await server.grant(event, ['S-A-2', 'S-A-3']);
    assert.ok(next.fence > hold.fence);
  });
});
