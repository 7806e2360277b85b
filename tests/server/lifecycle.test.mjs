// The life of a hold: every call in every state, legal or not.  Tests that wait for an expiry run
// concurrently, since the shortest hold lasts a second.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertBooking, assertHold, assertInvalid, assertOk, assertProblem, ms } from '../support/expect.mjs';
import { inTime, itOnce, sleep, start, until } from '../support/server.mjs';

describe('the life of a hold', () => {
  let server;
  let event;
  let seatNumber = 0;
  before(async () => {
    server = await start();
    event = await server.createEvent({
      sections: [{ name: 'S', tier: 'A', price: 1000, rows: 1, seats_per_row: 1000 }],
    });
  });
  after(() => server?.finish());

  const freeSeat = () => `S-A-${++seatNumber}`;
  const url = (hold, action = '') => `/v1/holds/${hold.id}${action}`;
  const renew = (hold, body = {}) => server.post(url(hold, '/renew'), body);
  const release = (hold) => server.del(url(hold));
  const confirm = (hold, fields = {}) => server.post(url(hold, '/confirm'), { fence: hold.fence, ...fields });
  const read = async (hold) => assertOk(await server.get(url(hold)));
  const seat = async (hold) => (await server.map(hold.event))[hold.seats[0]];

  const active = (fields) => server.grant(event, [freeSeat(), freeSeat()], fields);
  const released = async () => {
    const hold = await active();
    assert.equal((await release(hold)).status, 204);
    return hold;
  };
  const confirmed = async (fields) => {
    const hold = await active();
    const booking = assertBooking(assertOk(await confirm(hold, fields), 201), hold);
    return { ...hold, booking };
  };
  const expired = async () => {
    const hold = await active({ ttl_ms: 1000 });
    await sleep(ms(hold.expires_at) - Date.now() + 60);
    return hold;
  };

  describe('active', () => {
    it('is renewed with 200, a later expiry and the same fence', async () => {
      const hold = await active({ ttl_ms: 9000 });
      const answer = await renew(hold);
      const renewed = assertHold(assertOk(answer), { event, seats: hold.seats });
      assert.equal(renewed.id, hold.id);
      assert.equal(renewed.fence, hold.fence);
      assert.ok(ms(renewed.expires_at) > ms(hold.expires_at) + 470_000);
      assert.ok(ms(renewed.expires_at) <= Date.now() + 480_000 + 1000);
      assert.equal(renewed.max_expires_at, hold.max_expires_at);
      assert.equal(renewed.created_at, hold.created_at);
      assert.equal((await read(hold)).expires_at, renewed.expires_at);
    });

    itOnce('is renewed by the ttl that was asked for', async () => {
      const hold = await active({ ttl_ms: 20_000 });
      const from = Date.now();
      const renewed = assertOk(await renew(hold, { ttl_ms: 60_000 }));
      const until_ = ms(renewed.expires_at) - 60_000; // when the server renewed it
      assert.ok(until_ > from - 1000 && until_ < Date.now() + 1000, `${until_} is not between ${from} and ${Date.now()}`);
      assert.ok(renewed.expires_in_ms > 40_000 && renewed.expires_in_ms <= 60_000, `${renewed.expires_in_ms}`);
    });

    itOnce('is renewed without a body at all', async () => {
      const hold = await active({ ttl_ms: 20_000 });
      assertOk(await server.post(url(hold, '/renew')));
    });

    itOnce('is never shortened by a renewal', async () => {
      const hold = await active({ ttl_ms: 100_000 });
      const renewed = assertHold(assertOk(await renew(hold, { ttl_ms: 1000 })), { event, seats: hold.seats });
      assert.equal(renewed.expires_at, hold.expires_at);
      assert.equal((await read(hold)).expires_at, hold.expires_at);
    });

    it('is renewed by everybody who asks at once, and the log has only renewals that moved the expiry', async () => {
      const hold = await active({ ttl_ms: 20_000 });
      const answers = await Promise.all(Array.from({ length: 20 }, () => renew(hold, { ttl_ms: 60_000 })));
      const expiries = answers.map((answer) => ms(assertOk(answer).expires_at)).sort((a, b) => a - b);
      assert.equal(ms((await read(hold)).expires_at), expiries.at(-1));
      const { data } = assertOk(await server.get(`/v1/audit?event=${event.id}&hold=${hold.id}`));
      const logged = data.filter((row) => row.object === 'hold' && row.cause === 'renew').map((row) => ms(row.until));
      assert.deepEqual(logged, [...new Set(expiries)]);
    });

    itOnce('is not renewed twice by a repeat of a key whose renewal changed nothing', async () => {
      const hold = await active({ ttl_ms: 20_000 });
      const headers = { 'Idempotency-Key': `nothing-to-renew-${hold.fence}` };
      const first = await server.post(url(hold, '/renew'), { ttl_ms: 1000 }, headers);
      assert.equal(assertOk(first).expires_at, hold.expires_at);
      const longer = assertOk(await renew(hold, { ttl_ms: 60_000 }));
      const again = await server.post(url(hold, '/renew'), { ttl_ms: 1000 }, headers);
      assert.equal(again.headers['idempotency-replayed'], 'true');
      assert.equal(again.text, first.text);
      assert.equal((await read(hold)).expires_at, longer.expires_at);
    });

    itOnce('is renewed up to hold_max_ms from its creation, and then no more', async () => {
      const capped = await server.createEvent({ hold_ttl_ms: 110_000, hold_max_ms: 110_001 });
      const hold = await server.grant(capped, 'S-A-1', { ttl_ms: 30_000 });
      assert.equal(ms(hold.max_expires_at) - ms(hold.created_at), 110_001);
      const once = assertOk(await renew(hold, { ttl_ms: 50_000 }));
      assert.ok(ms(once.expires_at) > ms(hold.expires_at));
      assert.ok(ms(once.expires_at) < ms(hold.max_expires_at));
      await sleep(5);
      const twice = assertOk(await renew(hold));
      assert.equal(twice.expires_at, hold.max_expires_at);
      assertProblem(await renew(hold), 409, 'renewal_cap');
      assert.equal((await read(hold)).expires_at, hold.max_expires_at);
      assert.equal(await seat(hold), 'h');
    });

    itOnce('already at its cap is 409 renewal_cap', async () => {
      const capped = await server.createEvent({ hold_ttl_ms: 50_000, hold_max_ms: 50_000 });
      const hold = await server.grant(capped, 'S-A-1');
      assert.equal(hold.expires_at, hold.max_expires_at);
      assertProblem(await renew(hold), 409, 'renewal_cap');
    });

    itOnce('is not renewed by nonsense', async () => {
      const hold = await active();
      for (const ttl of [999, 0, -1, 480_001, '1000', 1000.5, true]) {
        assertInvalid(await renew(hold, { ttl_ms: ttl }), 'ttl_ms');
      }
      assertInvalid(await renew(hold, { fence: 1 }), 'fence');
      assertInvalid(await renew(hold, '{'));
      assertInvalid(await renew(hold, '[]'));
      assert.equal((await read(hold)).expires_at, hold.expires_at);
    });

    it('is released with 204 and its seats are free at once', async () => {
      const hold = await active();
      const answer = await release(hold);
      assert.equal(answer.status, 204);
      assert.equal(answer.text, '');
      assert.equal(await seat(hold), '.');
      const next = await server.grant(event, hold.seats);
      assert.ok(next.fence > hold.fence);
    });

    it('is confirmed with 201 and a booking', async () => {
      const hold = await active();
      const booking = assertOk(await confirm(hold, { reference: 'order-77' }), 201);
      assertBooking(booking, hold);
      assert.equal(booking.reference, 'order-77');
      assert.equal(await seat(hold), 'b');
      assertHold(await read(hold), { event, seats: hold.seats, status: 'confirmed' });
      const again = assertOk(await server.get(`/v1/bookings/${booking.id}`));
      assert.deepEqual(again, booking);
    });

    itOnce('is confirmed with rescue as without', async () => {
      const hold = await active();
      assertBooking(assertOk(await confirm(hold, { rescue: true }), 201), hold);
      const plain = await active();
      assertBooking(assertOk(await confirm(plain, { rescue: false }), 201), plain);
    });

    itOnce('is not confirmed by another fence', async () => {
      const hold = await active();
      for (const fence of [hold.fence - 1, hold.fence + 1, 0, -5, 2 ** 52]) {
        const answer = await confirm(hold, { fence });
        if (answer.status === 400) assertInvalid(answer, 'fence'); // fences start at 1
        else assertProblem(answer, 409, 'stale_fence');
        if (fence > 0) assert.equal(answer.status, 409);
      }
      assertProblem(await confirm(hold, { fence: hold.fence + 1, rescue: true }), 409, 'stale_fence');
      assert.equal((await read(hold)).status, 'active');
      assertOk(await confirm(hold), 201);
    });

    itOnce('is not confirmed by nonsense', async () => {
      const hold = await active();
      const bad = [[{ fence: undefined }, 'fence'], [{ fence: `${hold.fence}` }, 'fence'], [{ fence: 1.5 }, 'fence'],
        [{ fence: true }, 'fence'], [{ reference: 7 }, 'reference'], [{ rescue: 'yes' }, 'rescue'],
        [{ rescue: 1 }, 'rescue'], [{ extra: 1 }, 'extra']];
      for (const [fields, field] of bad) assertInvalid(await confirm(hold, fields), field);
      assertInvalid(await server.post(url(hold, '/confirm')));
      assertInvalid(await server.post(url(hold, '/confirm'), `{"fence":${hold.fence}`));
      assert.equal((await read(hold)).status, 'active');
    });
  });

  describe('released', () => {
    itOnce('reads as released', async () => assertHold(await read(await released()), { status: 'released' }));
    itOnce('cannot be renewed: 410 hold_released', async () => {
      assertProblem(await renew(await released()), 410, 'hold_released');
    });
    itOnce('is released again with 204', async () => {
      const hold = await released();
      assert.equal((await release(hold)).status, 204);
      assert.equal((await release(hold)).status, 204);
    });
    it('does not take the seat from its next holder when released again', async () => {
      const hold = await released();
      const next = await server.grant(event, hold.seats);
      assert.equal((await release(hold)).status, 204);
      assert.equal(await seat(hold), 'h');
      assertHold(await read(next));
    });
    itOnce('cannot be confirmed: 410 hold_released, whatever the fence, rescue or not', async () => {
      const hold = await released();
      assertProblem(await confirm(hold), 410, 'hold_released');
      assertProblem(await confirm(hold, { rescue: true }), 410, 'hold_released');
      assertProblem(await confirm(hold, { fence: hold.fence + 1 }), 410, 'hold_released');
      assert.equal(await seat(hold), '.');
    });
    itOnce('answers 400 to nonsense before it answers 410', async () => {
      const hold = await released();
      assertInvalid(await confirm(hold, { fence: 'x' }), 'fence');
      assertInvalid(await renew(hold, { ttl_ms: -1 }), 'ttl_ms');
    });
  });

  describe('confirmed', () => {
    itOnce('reads as confirmed', async () => assertHold(await read(await confirmed()), { status: 'confirmed' }));
    itOnce('cannot be renewed: 409 hold_confirmed', async () => {
      assertProblem(await renew(await confirmed()), 409, 'hold_confirmed');
    });
    itOnce('cannot be released: 409 hold_confirmed', async () => {
      const hold = await confirmed();
      assertProblem(await release(hold), 409, 'hold_confirmed');
      assert.equal(await seat(hold), 'b');
    });
    it('is confirmed again with 200 and the same booking', async () => {
      const hold = await confirmed({ reference: 'first' });
      assert.deepEqual(assertOk(await confirm(hold)), hold.booking);
      assert.deepEqual(assertOk(await confirm(hold, { reference: null })), hold.booking);
      assert.deepEqual(assertOk(await confirm(hold, { reference: 'first' })), hold.booking);
      assert.deepEqual(assertOk(await confirm(hold, { rescue: true })), hold.booking);
    });
    itOnce('is 409 reference_mismatch to another reference, and keeps its own', async () => {
      const hold = await confirmed({ reference: 'first' });
      for (const reference of ['second', 'First', 'firs', 'first ', '']) {
        assertProblem(await confirm(hold, { reference }), 409, 'reference_mismatch');
      }
      assertProblem(await confirm(hold, { reference: 'second', fence: hold.fence + 1 }), 409, 'stale_fence');
      assert.deepEqual(assertOk(await server.get(`/v1/bookings/${hold.booking.id}`)), hold.booking);
      const bare = await confirmed();
      assertProblem(await confirm(bare, { reference: 'first' }), 409, 'reference_mismatch');
      assert.equal(assertOk(await confirm(bare)).reference, null);
      const empty = await confirmed({ reference: '' });
      assert.equal(assertOk(await confirm(empty, { reference: '' })).reference, '');
    });
    it('under two references at once is sold under one of them', async () => {
      const hold = await active();
      const references = ['one', 'two', 'one', 'two'];
      const answers = await Promise.all(references.map((reference) => confirm(hold, { reference })));
      const booking = assertOk(answers.find((answer) => answer.status === 201), 201);
      answers.forEach((answer, i) => {
        if (references[i] === booking.reference) assert.equal(answer.json.id, booking.id);
        else assertProblem(answer, 409, 'reference_mismatch');
      });
    });
    itOnce('is still 409 stale_fence to another fence', async () => {
      const hold = await confirmed();
      assertProblem(await confirm(hold, { fence: hold.fence + 1 }), 409, 'stale_fence');
    });
  });

  describe('expired', { concurrency: 32 }, () => {
    itOnce('reads as expired, with no time left', async () => {
      const hold = await expired();
      const later = assertHold(await read(hold), { event, seats: hold.seats, status: 'expired' });
      assert.ok(later.expires_in_ms <= 0, `${later.expires_in_ms}`);
      assert.equal(later.expires_at, hold.expires_at);
      assert.equal(later.fence, hold.fence);
    });
    itOnce('cannot be renewed: 410 hold_expired', async () => {
      assertProblem(await renew(await expired()), 410, 'hold_expired');
    });
    itOnce('cannot be released: 410 hold_expired', async () => {
      assertProblem(await release(await expired()), 410, 'hold_expired');
    });
    itOnce('cannot be confirmed: 410 hold_expired', async () => {
      const hold = await expired();
      assertProblem(await confirm(hold), 410, 'hold_expired');
      assertProblem(await confirm(hold, { rescue: false }), 410, 'hold_expired');
    });
    itOnce('is 410 before it is stale_fence', async () => {
      assertProblem(await confirm(await expired(), { fence: 1 }), 410, 'hold_expired');
    });
    itOnce('answers 400 to nonsense before it answers 410', async () => {
      const hold = await expired();
      assertInvalid(await confirm(hold, { fence: 'x' }), 'fence');
      assertInvalid(await renew(hold, { ttl_ms: 'x' }), 'ttl_ms');
    });
    it('gives its seats back to the next buyer at once, with a larger fence', async () => {
      const hold = await expired();
      const next = await server.grant(event, hold.seats);
      assert.ok(next.fence > hold.fence);
    });
    itOnce('shows its seats as free', async () => {
      const hold = await expired();
      await until('the seat is free on the map', async () => (await seat(hold)) === '.');
    });
    it('is confirmed with rescue when every seat is still free', async () => {
      const hold = await expired();
      const booking = assertBooking(assertOk(await confirm(hold, { rescue: true }), 201), hold);
      assert.equal(await seat(hold), 'b');
      const later = assertHold(await read(hold), { status: 'confirmed' });
      assert.ok(later.fence >= hold.fence);
      assert.deepEqual(assertOk(await server.get(`/v1/bookings/${booking.id}`)), booking);
      assert.deepEqual(assertOk(await confirm(hold, { rescue: true })), booking, 'a repeat of the same request');
    });
    itOnce('is not rescued by another fence', async () => {
      const hold = await expired();
      const answer = await confirm(hold, { rescue: true, fence: hold.fence + 1 });
      assert.ok([409, 410].includes(answer.status), answer.text);
      assert.notEqual(await seat(hold), 'b');
    });
    it('is not rescued when one of its seats is held by another', async () => {
      const hold = await expired();
      const next = await server.grant(event, hold.seats[1]);
      assertProblem(await confirm(hold, { rescue: true }), 410, 'hold_expired');
      assert.equal(await seat(hold), '.', 'the other seat stays free (I6)');
      assertHold(await read(next));
    });
    itOnce('is not rescued when one of its seats is sold to another', async () => {
      const hold = await expired();
      const next = await server.grant(event, hold.seats[1]);
      assertOk(await confirm(next), 201);
      assertProblem(await confirm(hold, { rescue: true }), 410, 'hold_expired');
      assert.equal((await server.map(event))[hold.seats[1]], 'b');
    });
    it('lives on when renewed in time', async () => {
      const hold = await inTime(async (ttl_ms) => {
        const short = await active({ ttl_ms });
        await sleep(500);
        assertOk(await renew(short, { ttl_ms: 100_000 }));
        return short;
      });
      await sleep(ms(hold.expires_at) - Date.now() + 100);
      assertHold(await read(hold), { status: 'active' });
      assertOk(await confirm(hold), 201);
    });
    it('releases nothing that was released before it was due', async () => {
      const [hold, next] = await inTime(async (ttl_ms) => {
        const short = await active({ ttl_ms });
        assert.equal((await release(short)).status, 204);
        return [short, await server.grant(event, short.seats)];
      });
      await sleep(ms(hold.expires_at) - Date.now() + 200);
      assertHold(await read(hold), { status: 'released' });
      assertHold(await read(next), { status: 'active' });
      assert.equal(await seat(next), 'h');
    });
    it('never undoes a sale', async () => {
      const hold = await inTime(async (ttl_ms) => {
        const short = await active({ ttl_ms });
        assertOk(await confirm(short), 201);
        return short;
      });
      await sleep(ms(hold.expires_at) - Date.now() + 200);
      assertHold(await read(hold), { status: 'confirmed' });
      assert.equal(await seat(hold), 'b');
    });
  });

  describe('unknown', () => {
    const unknown = { id: `hold_${'0'.repeat(28)}`, fence: 1 };
    itOnce('is 404 no_such_hold to every call', async () => {
      assertProblem(await server.get(url(unknown)), 404, 'no_such_hold');
      assertProblem(await renew(unknown), 404, 'no_such_hold');
      assertProblem(await release(unknown), 404, 'no_such_hold');
      assertProblem(await confirm(unknown), 404, 'no_such_hold');
    });
    itOnce('answers 400 to nonsense before it answers 404', async () => {
      assertInvalid(await confirm(unknown, { fence: 'x' }), 'fence');
      assertInvalid(await renew(unknown, { ttl_ms: 'x' }), 'ttl_ms');
      assertInvalid(await server.post(url(unknown, '/confirm'), '{'));
    });
    itOnce('is what a guess at a neighbour\'s id comes to', async () => {
      const hold = await active();
      for (let i = 5; i < hold.id.length; i += 3) {
        const guess = `${hold.id.slice(0, i)}${hold.id[i] === 'a' ? 'b' : 'a'}${hold.id.slice(i + 1)}`;
        assertProblem(await server.get(`/v1/holds/${guess}`), 404, 'no_such_hold');
        assertProblem(await server.del(`/v1/holds/${guess}`), 404, 'no_such_hold');
      }
      assert.equal((await read(hold)).status, 'active');
    });
    itOnce('booking is 404 no_such_booking', async () => {
      assertProblem(await server.get(`/v1/bookings/bkg_${'0'.repeat(28)}`), 404, 'no_such_booking');
      const { booking } = await confirmed();
      assertProblem(await server.get(`/v1/bookings/${booking.id.slice(0, -1)}`), 404, 'no_such_booking');
      assertProblem(await server.get(`/v1/bookings/${booking.hold.replace('hold_', 'bkg_')}`), 404, 'no_such_booking');
    });
  });
});
