// Money back: refunds by hand, of cancelled bookings and events, by the provider's dashboard, and those that fail.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CARD, openShop } from '../support/checkout.mjs';
import { assertIdempotent, assertInvalid, assertOk, assertProblem, TIMESTAMP } from '../support/expect.mjs';
import { itOnce, newKey, reap, until } from '../support/server.mjs';

const NOWHERE = `bkg_${'0'.repeat(10)}1${'0'.repeat(17)}`;

let shop;
let server;
before(async () => { shop = await openShop({ args: ['--payments-rate', '50'] }); ({ server } = shop); });
after(async () => { try { await shop?.close(); } finally { await reap(); } });

describe('money', () => {
  let event;
  before(async () => {
    event = await server.createEvent({ sections: [{ name: 'S', price: 1000, rows: 4, seats_per_row: 20 }] });
  });

  let seats = 0;
  const nextSeat = () => { seats += 1; return `S-${'ABCD'[Math.floor((seats - 1) / 20)]}-${((seats - 1) % 20) + 1}`; };
  const sell = (card) => shop.sell(event, nextSeat(), { card });
  const refund = (booking, body, headers) => server.post(`/v1/bookings/${booking.id ?? booking}/refund`, body, headers);
  const cancel = (booking, body) => server.post(`/v1/bookings/${booking.id}/cancel`, body);
  const refundsOf = async (booking) => (await shop.refunds('?limit=100')).filter((one) => one.booking === booking.id);
  const refunded = (booking, amount, status = 'confirmed') => shop.shown(booking, `refunded ${amount}`,
    (b) => b.status === status && b.payment.amount_refunded === amount);

  describe('that a seller gives back', () => {
    it('goes back in full, and the seats stay sold', async () => {
      const booking = await sell();
      const answer = assertOk(await refund(booking));
      assert.deepEqual([answer.id, answer.status, answer.payment.status], [booking.id, 'confirmed', 'refunding']);
      const back = await shop.settled(booking, 'confirmed', 'refunded');
      assert.deepEqual([back.payment.amount_received, back.payment.amount_refunded], [1000, 1000]);
      await shop.seats(event, 'b', ...booking.seats);
      const [one, ...others] = await refundsOf(booking);
      assert.deepEqual(others, []);
      assert.match(one.provider_refund, /^re_/);
      for (const at of ['created_at', 'updated_at']) assert.match(one[at], TIMESTAMP);
      assert.ok(one.age_ms >= 0);
      assert.deepEqual({ ...one, provider_refund: 0, created_at: 0, updated_at: 0, age_ms: 0, attempts: 0 }, {
        object: 'refund', booking: booking.id, number: booking.number, payment: booking.payment.id, status: 'succeeded', amount: 1000, currency: 'usd',
        provider_refund: 0, origin: 'holdfast', attempts: 0, last_error: null, next_attempt_at: null, created_at: 0, updated_at: 0, age_ms: 0,
      });
    });

    it('is not revenue of the event any more, as what was cancelled is not', async () => {
      const other = await server.createEvent();
      const revenue = async () => {
        const { object, event: of, ...rest } = assertOk(await server.get(`/v1/events/${other.id}/revenue`));
        assert.deepEqual([object, of], ['revenue', other.id]);
        return rest;
      };
      assert.deepEqual(await revenue(), { currency: 'usd', bookings: 0, amount: 0, refunded: 0 });
      const [paid, gone] = [await shop.sell(other, 'S-A-1'), await shop.sell(other, 'S-A-2')];
      const hold = await server.grant(other, ['S-B-1', 'S-B-2']);
      assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
      await server.grant(other, 'S-B-3');
      assert.deepEqual(await revenue(), { currency: 'usd', bookings: 3, amount: 4000, refunded: 0 });
      assertOk(await refund(paid, { amount: 300 }));
      assertOk(await cancel(gone));
      assert.deepEqual(await revenue(), { currency: 'usd', bookings: 2, amount: 3000, refunded: 300 });
      assertProblem(await server.get(`/v1/events/evt_${'0'.repeat(10)}1${'0'.repeat(17)}/revenue`), 404, 'no_such_event');
    });

    itOnce('goes back in parts, and never more than was paid', async () => {
      const booking = await sell();
      assertOk(await refund(booking, { amount: 300 }));
      const problem = assertProblem(await refund(booking, { amount: 701 }), 409, 'not_refundable');
      assert.equal(problem.available, 700);
      await refunded(booking, 300);
      await shop.settled(booking, 'confirmed', 'succeeded');
      assertOk(await refund(booking, { amount: 200 }));
      assertOk(await refund(booking));
      await shop.settled(booking, 'confirmed', 'refunded');
      assert.deepEqual((await refundsOf(booking)).map(({ amount }) => amount), [500, 200, 300]);
      assert.equal(assertProblem(await refund(booking), 409, 'not_refundable').available, 0);
    });

    it('goes back once however often the request is repeated', async () => {
      const booking = await sell();
      await assertIdempotent(server, `/v1/bookings/${booking.id}/refund`, { amount: 300 }, { amount: 400 }, newKey());
      await refunded(booking, 300);
      assert.equal((await refundsOf(booking)).length, 1);
    });

    itOnce('is not there before it was paid, or where nothing is', async () => {
      const { hold, booking } = await shop.checkout(event, nextSeat());
      assertProblem(await refund(booking), 409, 'not_refundable');
      const free = await server.grant(event, nextSeat());
      const sold = assertOk(await server.post(`/v1/holds/${free.id}/confirm`, { fence: free.fence }), 201);
      assertProblem(await refund(sold), 409, 'not_refundable');
      for (const id of [NOWHERE, 'bkg_x']) assertProblem(await refund(id), 404, 'no_such_booking');
      for (const amount of [0, -1, 1.5, '100', 1e16]) assertInvalid(await refund(booking, { amount }), 'amount');
      assertInvalid(await refund(booking, { amont: 1 }), 'amont');
      assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    });

    it('waits for a provider that is down, and is listed as owed until then', async () => {
      const booking = await sell();
      await shop.breakProvider('refund');
      try {
        assertOk(await refund(booking, { amount: 400 }));
        await until('it was tried', async () => (await refundsOf(booking))[0].attempts > 0);
        const [owed] = await shop.refunds('?status=owed');
        assert.deepEqual([owed.booking, owed.status, owed.amount, owed.provider_refund], [booking.id, 'owed', 400, null]);
        assert.match(owed.next_attempt_at, TIMESTAMP);
        assert.ok(owed.last_error.length > 0);
        assert.ok(await server.metric('holdfast_jobs_pending', { kind: 'refund' }) >= 0);
      } finally { await shop.mendProvider(); }
      await refunded(booking, 400);
      assert.deepEqual(await shop.refunds('?status=owed'), []);
    });

    it('is given back once although the answer was lost', async () => {
      const booking = await sell();
      await shop.sandbox.faults({ hold_ms: 300, fail_next: { route: 'refund', mode: 'timeout_after', times: 1 } });
      assertOk(await refund(booking, { amount: 400 }));
      await refunded(booking, 400);
      const { data } = await shop.stripe.refunds.list({ payment_intent: booking.payment.intent });
      assert.deepEqual(data.map(({ amount }) => amount), [400]);
    });
  });

  describe('of a cancelled booking', () => {
    it('goes back, and the seats are free', async () => {
      const booking = await sell();
      const answer = assertOk(await cancel(booking, { reason: 'rain' }));
      assert.deepEqual([answer.status, answer.reason, answer.payment.status], ['cancelled', 'rain', 'refunding']);
      const back = await shop.settled(booking, 'cancelled', 'refunded');
      assert.equal(back.payment.amount_refunded, 1000);
      await shop.seats(event, '.', ...booking.seats);
      const again = assertOk(await cancel(booking, { reason: 'snow' }));
      assert.deepEqual([again.reason, again.cancelled_at], ['rain', back.cancelled_at]);
      assert.equal((await refundsOf(booking)).length, 1);
    });

    itOnce('goes back as far as it has not yet', async () => {
      const booking = await sell();
      assertOk(await refund(booking, { amount: 300 }));
      assertOk(await cancel(booking));
      await shop.settled(booking, 'cancelled', 'refunded');
      assert.deepEqual((await refundsOf(booking)).map(({ amount }) => amount), [700, 300]);
    });
  });

  describe('that somebody gives back in the dashboard', () => {
    it('is recorded by its amount, and what is left is ours', async () => {
      const booking = await sell();
      await shop.stripe.refunds.create({ payment_intent: booking.payment.intent, amount: 250 });
      const partly = await refunded(booking, 250);
      assert.equal(partly.payment.status, 'succeeded');
      await shop.seats(event, 'b', ...booking.seats);
      const [one] = await refundsOf(booking);
      assert.deepEqual([one.origin, one.amount, one.status], ['provider', 250, 'succeeded']);
      assertProblem(await refund(booking, { amount: 751 }), 409, 'not_refundable');
      assertOk(await cancel(booking));
      await shop.settled(booking, 'cancelled', 'refunded');
      assert.deepEqual((await refundsOf(booking)).map(({ amount, origin }) => `${amount} ${origin}`), ['750 holdfast', '250 provider']);
    });

    it('before ours reaches the provider makes ours smaller', async () => {
      const booking = await sell();
      await shop.breakProvider('refund');
      assertOk(await cancel(booking));
      await until('it was tried', async () => (await refundsOf(booking))[0].attempts > 0);
      await shop.mendProvider();
      await shop.stripe.refunds.create({ payment_intent: booking.payment.intent, amount: 1000 }).catch(() => {}); // ours may be first
      await shop.settled(booking, 'cancelled', 'refunded');
      const { data } = await shop.stripe.refunds.list({ payment_intent: booking.payment.intent });
      assert.equal(data.reduce((sum, { amount }) => sum + amount, 0), 1000);
    });
  });

  describe('that the provider fails to give back', () => {
    it('is owed again after it seemed to have gone', async () => {
      const booking = await sell(CARD.refundFails);
      assertOk(await cancel(booking));
      const failed = await shop.settled(booking, 'cancelled', 'refund_failed');
      assert.equal(failed.payment.amount_refunded, 0);
      const [next, first] = await refundsOf(booking);
      assert.deepEqual([first.status, first.amount], ['failed', 1000]);
      assert.deepEqual([next.status, next.amount], ['owed', 1000]); // tried again in an hour
      assert.ok(Date.parse(next.next_attempt_at) > Date.now() + 3_000_000);
      assert.deepEqual((await shop.refunds('?status=failed')).map((one) => one.booking), [booking.id]);
    });

    itOnce('is shown, and not tried again by itself, where the seller keeps the seats sold', async () => {
      const booking = await sell(CARD.refundFails);
      assertOk(await refund(booking, { amount: 500 }));
      await shop.settled(booking, 'confirmed', 'refund_failed');
      assert.deepEqual((await refundsOf(booking)).map(({ status }) => status), ['failed']);
    });
  });

  it('that is disputed is marked, and the seats stay sold', async () => {
    const booking = await sell(CARD.disputed);
    const disputed = await shop.shown(booking, 'disputed', ({ payment }) => payment.disputed);
    assert.deepEqual([disputed.status, disputed.payment.status], ['confirmed', 'succeeded']);
    await shop.seats(event, 'b', ...booking.seats);
  });

  it('is listed in pages, newest first', async () => {
    const all = await shop.refunds('?limit=100');
    assert.ok(all.length > 5);
    const found = [];
    let cursor = '';
    for (let more = true; more;) {
      const page = assertOk(await server.get(`/v1/refunds?limit=3${cursor}`));
      found.push(...page.data);
      more = page.has_more;
      cursor = `&cursor=${page.next_cursor}`;
    }
    assert.deepEqual(found.map(({ provider_refund: id }) => id), all.map(({ provider_refund: id }) => id));
    assertInvalid(await server.get('/v1/refunds?status=lost'), 'status');
    assertInvalid(await server.get('/v1/refunds?cursor=x'), 'cursor');
    assertInvalid(await server.get('/v1/refunds?limit=0'), 'limit');
  });
});

describe('a cancelled event', () => {
  it('cancels and refunds every booking, and shows how far it has come', async () => {
    const event = await server.createEvent({ areas: [{ name: 'Floor', price: 300, capacity: 20 }] });
    const paid = [];
    for (const seat of ['S-A-1', 'S-A-2', 'S-A-3']) paid.push(await shop.sell(event, seat));
    const { hold, booking: pending } = await shop.checkout(event, 'S-A-4');
    const held = await server.grant(event, 'S-A-5');
    const given = await server.take(event, { areas: { Floor: 2 } });
    const sold = assertOk(await server.post(`/v1/holds/${given.id}/confirm`, { fence: given.fence }), 201);
    const answer = assertOk(await server.post(`/v1/events/${event.id}/cancel`));
    assert.equal(answer.status, 'cancelled');
    for (const booking of paid) await shop.settled(booking, 'cancelled', 'refunded');
    await shop.settled(pending, 'cancelled', 'canceled');
    assert.equal((await shop.settled(sold, 'cancelled')).reason, 'the event was cancelled');
    const { status, cancellation } = await server.read(`/v1/events/${event.id}`);
    assert.equal(status, 'cancelled');
    assert.deepEqual(cancellation, { bookings_left: 0, bookings_cancelled: 5, refunds_owed: 0, refunds_done: 3, refunds_failed: 0 });
    assertProblem(await server.hold(event, 'S-B-1'), 409, 'event_closed');
    assertProblem(await shop.book(held), 409, 'event_cancelled');
    assert.notEqual((await server.read(`/v1/holds/${hold.id}`)).status, 'active');
    for (const path of ['open', 'close']) assertProblem(await server.post(`/v1/events/${event.id}/${path}`), 409, 'event_cancelled');
    assertOk(await server.post(`/v1/events/${event.id}/cancel`)); // again: the same
  });

  it('is not archived before that is done', async () => {
    const event = await server.createEvent();
    const booking = await shop.sell(event, 'S-A-1');
    const [cancelled, archived] = await Promise.all(['cancel', 'archive'].map((what) => server.post(`/v1/events/${event.id}/${what}`)));
    // Whichever of the two comes first, the event is either cancelled for good or archived with its sale.
    if (assertOk(await server.get(`/v1/events/${event.id}`)).status === 'cancelled') {
      assertOk(cancelled);
      assertProblem(archived, 409, 'event_cancelled');
      await shop.settled(booking, 'cancelled', 'refunded');
      await shop.seats(event, '.', 'S-A-1');
      assertOk(await server.post(`/v1/events/${event.id}/archive`));
    } else {
      assertOk(archived);
      assertProblem(cancelled, 409, 'event_archived');
      await shop.settled(booking, 'confirmed', 'succeeded');
    }
  });

  it('goes on after a restart', async () => {
    const event = await server.createEvent();
    const paid = [];
    for (const seat of ['S-A-1', 'S-A-2', 'S-A-3', 'S-A-4']) paid.push(await shop.sell(event, seat));
    await shop.breakProvider('refund');
    assertOk(await server.post(`/v1/events/${event.id}/cancel`));
    await server.kill9();
    await server.launch();
    await shop.mendProvider();
    // Where servers share the ledger, a refund that was under way stays leased to a server that is gone, for 25 s.
    const isBack = ({ status, payment }) => status === 'cancelled' && payment.status === 'refunded';
    for (const booking of paid) await shop.shown(booking, 'cancelled and refunded', isBack);
    const { cancellation } = await server.read(`/v1/events/${event.id}`);
    assert.deepEqual([cancellation.bookings_left, cancellation.refunds_done], [0, 4]);
  });

  itOnce('gives late money back', async () => {
    const event = await server.createEvent();
    const { booking } = await shop.checkout(event, 'S-A-1');
    await shop.breakProvider('cancel', 'retrieve');
    const { forward } = shop.relay;
    shop.relay.forward = null;
    assertOk(await server.post(`/v1/events/${event.id}/cancel`));
    await shop.settled(booking, 'cancelled');
    await shop.pay(booking);
    await shop.mendProvider();
    shop.relay.forward = forward;
    await shop.settled(booking, 'cancelled', 'refunded');
  });
});
