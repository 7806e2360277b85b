// Checkouts: a buyer books a hold, pays, and ends with a confirmed booking, or with the money back and nothing else.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CARD, openShop } from '../support/checkout.mjs';
import {
  assertInvalid, assertOk, assertProblem, BOOKING_ID, ms, TIMESTAMP,
} from '../support/expect.mjs';
import { assertTook, inTime, itOnce, newKey, only, reap, until } from '../support/server.mjs';

const NOWHERE = `hold_${'0'.repeat(10)}1${'0'.repeat(17)}`;
const SHORT_MS = 5000; // for holds that are to expire

describe('a checkout', () => {
  let shop;
  let server;
  before(async () => { shop = await openShop(); ({ server } = shop); });
  after(async () => { try { await shop?.close(); } finally { await reap(); } });

  const createEvent = (fields) => server.createEvent({ areas: [{ name: 'Floor', price: 300, capacity: 20 }], ...fields });
  // Three holds of one owner, for 4800 together.
  const holdAll = async (event) => [
    await server.take(event, { seats: ['S-A-1'], areas: { Floor: 1 }, owner: 'Ann' }),
    await server.take(event, { seats: ['S-B-1'], areas: { Floor: 2 }, owner: 'Ann' }),
    await server.take(event, { seats: ['S-B-2'], areas: { Floor: 3 }, owner: 'Ann' }),
  ];
  const expired = (hold) => until('the hold has expired', async () => (await server.read(`/v1/holds/${hold.id}`)).status === 'expired', 60_000);
  // Begins a checkout of an event whose holds expire soon, but not before; resolves to { event, hold, booking }.
  const briefly = (checkout) => inTime(async (ttlMs) => {
    const event = await createEvent({ hold_ttl_ms: ttlMs, hold_max_ms: 600_000 });
    return { event, ...await checkout(event) };
  }, SHORT_MS);

  describe('begins', () => {
    it('with a pending booking that has everything the buyer needs to pay', async () => {
      let event, hold, booking;
      for (let tries = 5; booking?.payment.status !== 'requires_payment'; tries--) { // a provider that stands still is waited for for 3 s
        assert.ok(tries > 0, 'no answer has the intent');
        event = await createEvent();
        hold = await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 1 }, owner: 'Ann' });
        booking = assertOk(await shop.book(hold, { email: 'ann@shop.example', reference: 'order 1' }), 201);
      }
      assert.deepEqual(Object.keys(booking), ['object', 'id', 'status', 'hold', 'event', 'seats', 'areas', 'amount', 'currency', 'number',
        'payment', 'fence', 'reference', 'owner', 'created_at', 'expires_at', 'cancelled_at', 'reason']);
      assert.match(booking.id, BOOKING_ID);
      assert.match(booking.number, /^[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}$/);
      assert.match(booking.created_at, TIMESTAMP);
      const { id, number, payment, created_at: createdAt, expires_at: expiresAt, fence, ...rest } = booking;
      assert.deepEqual(rest, {
        object: 'booking', status: 'pending', hold: hold.id, event: event.id, seats: ['S-A-1', 'S-A-2'], areas: { Floor: 1 },
        amount: 2300, currency: 'usd', reference: 'order 1', owner: 'Ann', cancelled_at: null, reason: null,
      });
      assert.match(payment.id, /^pay_[0-9A-Za-z]{22,32}$/);
      assert.match(payment.intent, /^pi_/);
      assert.match(payment.client_secret, new RegExp(`^${payment.intent}_secret_`));
      assert.deepEqual({ ...payment, id: 0, intent: 0, client_secret: 0 }, {
        object: 'payment', id: 0, provider: 'stripe', status: 'requires_payment', intent: 0, client_secret: 0,
        publishable_key: `pk_test_${shop.account}`, api: shop.sandbox.url, amount: 2300, amount_received: 0, amount_refunded: 0,
        disputed: false, last_error: null,
      });
      assert.deepEqual(await shop.read(booking), booking);
      const held = await server.read(`/v1/holds/${hold.id}`);
      assert.deepEqual([held.booking, held.status, held.expires_at], [booking.id, 'active', expiresAt]);
      assert.ok(ms(expiresAt) > ms(hold.expires_at) || held.expires_at === held.max_expires_at);
    });

    itOnce('with an intent that names the payment, and neither hold nor booking', async () => {
      const { hold, booking } = await shop.checkout(await createEvent(), 'S-A-1', { email: 'ann@shop.example' });
      const intent = await shop.stripe.paymentIntents.retrieve(booking.payment.intent);
      assert.deepEqual([intent.amount, intent.currency, intent.payment_method_types, intent.receipt_email, intent.capture_method],
        [1000, 'usd', ['card'], 'ann@shop.example', 'automatic']);
      assert.deepEqual(intent.metadata, { holdfast_payment: booking.payment.id });
      const text = JSON.stringify(intent);
      for (const secret of [hold.id, booking.id]) assert.ok(!text.includes(secret.slice(-17)), text);
    });

    itOnce('only with an Idempotency-Key', async () => {
      const hold = await server.grant(await createEvent(), 'S-A-1');
      assertProblem(await server.post('/v1/bookings', { hold: hold.id }), 400, 'idempotency_key_required');
      assert.equal((await server.read(`/v1/holds/${hold.id}`)).booking, null);
    });

    itOnce('only with fields that are known and fit', async () => {
      const hold = await server.grant(await createEvent(), 'S-A-1');
      assertInvalid(await shop.book(hold, { card: CARD.good }), 'card');
      for (const email of ['ann', '@shop.example', 'ann@', 'a b@shop.example', 'a@b@c.example', 'ann@shop.example,bob@shop.example', `${'a'.repeat(250)}@b.example`]) {
        assertInvalid(await shop.book(hold, { email }), 'email');
      }
      assertInvalid(await shop.book(hold, { reference: 'x'.repeat(256) }), 'reference');
      assertInvalid(await server.post('/v1/bookings', {}, { 'Idempotency-Key': newKey() }), 'hold');
      for (const id of [NOWHERE, 'hold_x', 'x', `${hold.id.slice(0, -1)}${hold.id.endsWith('0') ? '1' : '0'}`]) assertProblem(await shop.book(id), 404, 'no_such_hold');
    });

    itOnce('once for each hold', async () => {
      const { hold } = await shop.checkout(await createEvent(), 'S-A-1');
      assertProblem(await shop.book(hold), 409, 'booking_exists');
      const answers = await Promise.all(Array.from({ length: 8 }, () => shop.book(hold)));
      for (const answer of answers) assertProblem(answer, 409, 'booking_exists');
    });

    it('at most twenty times, if each attempt fails before money moves', { skip: only('sqlite', 'it takes a while') }, async () => {
      const hold = await server.grant(await createEvent(), 'S-A-1');
      for (let i = 0; i < 20; i++) {
        const booking = await shop.payable(assertOk(await shop.book(hold), 201));
        await shop.stripe.paymentIntents.cancel(booking.payment.intent);
        await shop.settled(booking, 'failed', 'canceled');
      }
      assertProblem(await shop.book(hold), 409, 'too_many_bookings');
    });

    it('for one of many who try at once', async () => {
      const hold = await server.grant(await createEvent(), 'S-A-1');
      const answers = await Promise.all(Array.from({ length: 8 }, () => shop.book(hold)));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, ...Array(7).fill(409)]);
      const [made] = answers.filter(({ status }) => status === 201);
      await shop.payable(made.json);
      const { data } = await shop.stripe.paymentIntents.list({ limit: 100 });
      assert.equal(data.filter(({ metadata }) => metadata.holdfast_payment === made.json.payment.id).length, 1);
    });

    itOnce('for a live hold only', async () => {
      const event = await createEvent();
      const lapsed = await server.grant(event, 'S-A-1', { ttl_ms: 1000 });
      const released = await server.grant(event, 'S-A-2');
      assert.equal((await server.del(`/v1/holds/${released.id}`)).status, 204);
      assertProblem(await shop.book(released), 410, 'hold_released');
      const sold = await server.grant(event, 'S-A-3');
      assertOk(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }), 201);
      assertProblem(await shop.book(sold), 409, 'booking_exists');
      await expired(lapsed);
      assertProblem(await shop.book(lapsed), 410, 'hold_expired');
    });

    itOnce('not if too little time is left to pay', async () => {
      const event = await createEvent({ hold_ttl_ms: 50_000, hold_max_ms: 50_000 });
      const [hold, other] = [await server.grant(event, 'S-A-1'), await server.grant(event, 'S-A-2')];
      assertOk(await shop.book(other), 201); // a quarter of the event's TTL is enough
      assertOk(await server.patch(`/v1/events/${event.id}`, { hold_ttl_ms: 300_000, hold_max_ms: 300_000 }));
      assertProblem(await shop.book(hold), 409, 'renewal_cap'); // the hold ends in less than a minute, for good
      const kept = await server.read(`/v1/holds/${hold.id}`);
      assert.deepEqual([kept.status, kept.booking, kept.expires_at], ['active', null, hold.expires_at]);
    });

    it('with a sale where nothing is to be paid', async () => {
      const event = await createEvent({ areas: [{ name: 'Floor', price: 0, capacity: 5 }] });
      const hold = await server.take(event, { areas: { Floor: 2 } });
      const booking = assertOk(await shop.book(hold, { reference: 'free' }), 201);
      assert.deepEqual([booking.status, booking.payment, booking.amount, booking.expires_at, booking.reference], ['confirmed', null, 0, null, 'free']);
      assert.equal((await server.read(`/v1/holds/${hold.id}`)).status, 'confirmed');
      assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`));
    });

    itOnce('not with less than the provider charges, and the hold is kept', async () => {
      const event = await createEvent({ areas: [{ name: 'Floor', price: 49, capacity: 5 }] });
      const hold = await server.take(event, { areas: { Floor: 1 } });
      assertProblem(await shop.book(hold), 400, 'amount_too_small');
      const kept = await server.read(`/v1/holds/${hold.id}`);
      assert.deepEqual([kept.status, kept.booking, kept.expires_at], ['active', null, hold.expires_at]);
      const more = assertOk(await server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, add: { areas: { Floor: 1 } } }));
      assert.equal(assertOk(await shop.book(more), 201).amount, 98);
    });
  });

  describe('repeated by its key', () => {
    it('answers the same without the client_secret', async () => {
      const hold = await server.grant(await createEvent(), 'S-A-1');
      const key = { 'Idempotency-Key': newKey() };
      const first = await shop.book(hold, {}, key);
      const again = await shop.book(hold, {}, key);
      assert.equal(again.status, 201);
      assert.equal(again.headers['idempotency-replayed'], 'true');
      assert.equal(again.json.payment.client_secret, null);
      assert.deepEqual([again.json.id, again.json.payment.id], [first.json.id, first.json.payment.id]);
      assert.ok(!again.text.includes('_secret_'));
      await shop.payable(first.json);
      assert.ok((await shop.read(first.json)).payment.client_secret);
      assertProblem(await shop.book(hold, { reference: 'other' }, key), 422, 'idempotency_mismatch');
      const stored = await server.get(`/v1/idempotency/${key['Idempotency-Key']}`);
      assert.equal(stored.text, again.text);
    });

    it('says so while the first waits for the provider', { skip: only('sqlite', 'another server does not know of the wait') }, async () => {
      await shop.sandbox.faults({ delay_ms: [1500, 1500] });
      try {
        const isSaid = async () => {
          const hold = await server.grant(await createEvent(), 'S-A-1');
          const key = { 'Idempotency-Key': newKey() };
          const sent = Date.now();
          let answered = 0;
          const first = shop.book(hold, {}, key).finally(() => { answered = Date.now(); });
          // From the commit of the booking on, a repeat is either too early for the wait, or meets it.
          await until('the booking is made', async () => (await server.get(`/v1/holds/${hold.id}`)).json.booking);
          const busy = await until('the first is waiting, or was answered', async () => {
            const again = await shop.book(hold, {}, key);
            return (again.status === 409 || answered) && again;
          });
          const made = assertOk(await first, 201);
          assertProblem(await shop.book(hold), 409, 'booking_exists');
          if (busy.status !== 409) return false; // the machine stood still meanwhile
          assertProblem(busy, 409, 'idempotency_in_flight');
          assert.ok(Number(busy.headers['retry-after']) >= 1);
          if (answered - sent < 2500) assert.equal(made.payment.status, 'requires_payment'); // or the provider was too late
          return true;
        };
        await until('a repeat is made while the first waits', isSaid, 120_000);
      } finally { await shop.sandbox.faults({ delay_ms: [0, 0] }); }
    });
  });

  describe('with a provider that is', () => {
    it('down is answered within the wait, and shows its intent later', async () => {
      const hold = await server.grant(await createEvent(), 'S-A-1');
      await shop.breakProvider('create');
      const began = Date.now();
      const booking = assertOk(await shop.book(hold), 201);
      const tookMs = Date.now() - began;
      await shop.mendProvider();
      assertTook(tookMs, 15_000, 'the wait of 3 s for the provider');
      assert.deepEqual([booking.status, booking.payment.status, booking.payment.intent, booking.payment.client_secret], ['pending', 'creating', null, null]);
      const ready = await shop.settled(booking, 'pending', 'requires_payment');
      await shop.pay(ready);
      await shop.settled(booking, 'confirmed', 'succeeded');
    });

    it('slow to answer makes one intent', async () => {
      const hold = await server.grant(await createEvent(), 'S-A-1');
      await shop.sandbox.faults({ hold_ms: 500, fail_next: { route: 'create', mode: 'timeout_after', times: 1 } });
      const booking = assertOk(await shop.book(hold), 201);
      const ready = await shop.settled(booking, 'pending', 'requires_payment');
      const { data } = await shop.stripe.paymentIntents.list({ limit: 100 });
      assert.equal(data.filter(({ metadata }) => metadata.holdfast_payment === booking.payment.id).length, 1);
      await shop.pay(ready);
      await shop.settled(booking, 'confirmed', 'succeeded');
    });
  });

  describe('is paid', () => {
    it('and the seats are sold', async () => {
      const event = await createEvent();
      const { hold, booking } = await shop.checkout(event, ['S-A-1', 'S-A-2']);
      await shop.seats(event, 'hh', 'S-A-1', 'S-A-2');
      const paid = await shop.pay(booking);
      assert.equal(paid.json.status, 'succeeded', paid.text);
      const sold = await shop.settled(booking, 'confirmed', 'succeeded');
      await shop.seats(event, 'bb', 'S-A-1', 'S-A-2');
      assert.deepEqual([sold.payment.amount_received, sold.payment.client_secret, sold.expires_at, sold.number], [2000, null, null, booking.number]);
      const held = await server.read(`/v1/holds/${hold.id}`);
      assert.deepEqual([held.status, held.booking], ['confirmed', booking.id]);
      assertProblem(await server.del(`/v1/holds/${hold.id}`), 409, 'hold_confirmed');
      assertProblem(await shop.book(hold), 409, 'booking_exists');
    });

    itOnce('in a currency without decimals', async () => {
      const event = await createEvent({ currency: 'jpy', areas: [{ name: 'Floor', price: 49, capacity: 5 }] });
      assertProblem(await shop.book(await server.take(event, { areas: { Floor: 1 } })), 400, 'amount_too_small');
      const booking = await shop.sell(event, 'S-A-1');
      assert.deepEqual([booking.amount, booking.currency, booking.payment.amount_received], [1000, 'jpy', 1000]);
      const intent = await shop.stripe.paymentIntents.retrieve(booking.payment.intent);
      assert.deepEqual([intent.amount_received, intent.currency], [1000, 'jpy']);
    });

    for (const [card, code, decline] of [['declined', 'card_declined', 'generic_decline'], ['poor', 'card_declined', 'insufficient_funds'],
      ['processingError', 'processing_error', null], ['failsOnCharge', 'card_declined', 'generic_decline']]) {
      (card === 'declined' ? it : itOnce)(`by another card after one was refused (${card}), with the hold and booking it had`, async () => {
        const event = await createEvent();
        const { hold, booking } = await shop.checkout(event, 'S-A-1');
        const refused = await shop.pay(booking, CARD[card]);
        assert.equal(refused.status, 402, refused.text);
        const kept = await shop.shown(booking, 'refused', ({ payment }) => payment.last_error);
        assert.deepEqual([kept.status, kept.payment.status, kept.payment.last_error.code, kept.payment.last_error.decline_code],
          ['pending', 'requires_payment', code, decline]);
        assert.ok(kept.payment.last_error.message.length > 0);
        assert.equal((await server.read(`/v1/holds/${hold.id}`)).status, 'active');
        await shop.pay(kept);
        const sold = await shop.settled(booking, 'confirmed', 'succeeded');
        assert.equal(sold.payment.last_error, null);
      });
    }

    it('after an action that the buyer completes', async () => {
      const { booking } = await shop.checkout(await createEvent(), 'S-A-1');
      const answer = await shop.pay(booking, CARD.action, { return_url: 'https://shop.example/thanks' });
      assert.equal(answer.json.status, 'requires_action', answer.text);
      await shop.settled(booking, 'pending', 'requires_action');
      const back = await shop.act(answer, 'complete');
      assert.equal(back.status, 303, back.text);
      assert.ok(back.headers.get('location').startsWith('https://shop.example/thanks?'));
      await shop.settled(booking, 'confirmed', 'succeeded');
    });

    for (const [card, result] of [['action', 'fail'], ['actionThenDeclined', 'complete']]) {
      itOnce(`not by an action that ends in a refusal (${card}), and then by another card`, async () => {
        const { booking } = await shop.checkout(await createEvent(), 'S-A-1');
        const answer = await shop.pay(booking, CARD[card], { return_url: 'https://shop.example/thanks' });
        await shop.settled(booking, 'pending', 'requires_action');
        await shop.act(answer, result);
        const again = await shop.shown(booking, 'refused', ({ payment }) => payment.status === 'requires_payment' && payment.last_error);
        await shop.pay(again);
        await shop.settled(booking, 'confirmed', 'succeeded');
      });
    }
  });

  describe('that is pending', () => {
    itOnce('keeps its places from being changed or confirmed without payment', async () => {
      const event = await createEvent();
      const { hold, booking } = await shop.checkout(event, 'S-A-1');
      assertProblem(await server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, add: { seats: ['S-A-2'] } }), 409, 'booking_exists');
      assertProblem(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 409, 'booking_exists');
      await shop.pay(booking);
      await shop.settled(booking, 'confirmed');
    });

    itOnce('moves its expiry with its hold', async () => {
      const { hold, booking } = await shop.checkout(await createEvent({ hold_ttl_ms: 40_000 }), 'S-A-1');
      const before_ = await shop.read(booking);
      const renewed = await until('the expiry moves', async () => {
        const answer = assertOk(await server.post(`/v1/holds/${hold.id}/renew`));
        return answer.expires_at > before_.expires_at && answer;
      });
      assert.equal((await shop.read(booking)).expires_at, renewed.expires_at);
      assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    });

    it('fails when its hold is released, and its intent is canceled', async () => {
      const event = await createEvent();
      const { hold, booking } = await shop.checkout(event, 'S-A-1');
      assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
      const failed = await shop.settled(booking, 'failed', 'canceled');
      assert.deepEqual([failed.payment.client_secret, failed.expires_at], [null, null]);
      assert.equal((await shop.stripe.paymentIntents.retrieve(booking.payment.intent)).status, 'canceled');
      await shop.seats(event, '.', 'S-A-1');
      const late = await shop.pay(booking);
      assert.equal(late.status, 400, late.text);
    });

    it('fails when its hold expires, and its intent is canceled', async () => {
      const { event, hold, booking } = await briefly((short) => shop.checkout(short, 'S-A-1'));
      await expired(hold);
      await shop.settled(booking, 'failed', 'canceled');
      await shop.seats(event, '.', 'S-A-1');
      assert.equal((await shop.stripe.paymentIntents.retrieve(booking.payment.intent)).status, 'canceled');
    });

    it('fails when its hold is evicted, and when a seller cancels it', async () => {
      const event = await createEvent();
      const one = await shop.checkout(event, 'S-A-1');
      const two = await shop.checkout(event, 'S-A-2');
      assertOk(await server.post(`/v1/holds/${one.hold.id}/evict`));
      const cancelled = assertOk(await server.post(`/v1/bookings/${two.booking.id}/cancel`, { reason: 'asked' }));
      assert.deepEqual([cancelled.status, cancelled.reason], ['cancelled', 'asked']);
      await shop.settled(one.booking, 'failed', 'canceled');
      await shop.settled(two.booking, 'cancelled', 'canceled');
      await shop.seats(event, '..', 'S-A-1', 'S-A-2');
      assert.equal((await server.read(`/v1/holds/${two.hold.id}`)).status, 'released');
    });

    it('fails when its intent is canceled in the dashboard, and can be followed by another of the same hold', async () => {
      const event = await createEvent();
      const { hold, booking } = await shop.checkout(event, 'S-A-1');
      await shop.stripe.paymentIntents.cancel(booking.payment.intent);
      await shop.settled(booking, 'failed', 'canceled');
      const held = await server.read(`/v1/holds/${hold.id}`);
      assert.deepEqual([held.status, held.booking], ['active', null]);
      const next = await shop.payable(assertOk(await shop.book(hold, { reference: 'again' }), 201));
      assert.notEqual(next.id, booking.id);
      assert.notEqual(next.payment.intent, booking.payment.intent);
      await shop.pay(next);
      await shop.settled(next, 'confirmed', 'succeeded');
      const old = await shop.read(booking);
      assert.deepEqual([old.id, old.status, old.payment.status, old.payment.intent], [booking.id, 'failed', 'canceled', booking.payment.intent]);
    });

    itOnce('is sold although its event is closed meanwhile', async () => {
      const event = await createEvent();
      const { booking } = await shop.checkout(event, 'S-A-1');
      const hold = await server.grant(event, 'S-A-2');
      assertOk(await server.post(`/v1/events/${event.id}/close`));
      assertProblem(await server.hold(event, 'S-A-3'), 409, 'event_closed');
      await shop.pay(booking);
      await shop.settled(booking, 'confirmed');
      await shop.pay(assertOk(await shop.book(hold), 201));
      await shop.seats(event, 'bb', 'S-A-1', 'S-A-2');
    });
  });

  describe('of several holds', () => {
    const SEATS = ['S-A-1', 'S-B-1', 'S-B-2'];
    const bookAll = (holds, fields = {}, headers = {}) =>
      server.post('/v1/bookings', { holds: holds.map((hold) => hold.id ?? hold), ...fields }, { 'Idempotency-Key': newKey(), ...headers });
    const assertRepeated = ({ status, headers, json: { id, holds } }, first) =>
      assert.deepEqual([status, headers['idempotency-replayed'], id, holds], [201, 'true', first.id, first.holds]);
    const statuses = async (...holds) => (await Promise.all(holds.map(({ id }) => server.read(`/v1/holds/${id}`)))).map(({ status }) => status);

    it('has one payment, and the holds are one from then on, as is its repeat after a restart', async () => {
      const event = await createEvent();
      const [a, b, c] = await holdAll(event);
      const key = { 'Idempotency-Key': newKey() };
      const book = () => bookAll([b, c, a], { reference: 'basket', email: 'ann@shop.example' }, key);
      const booking = await shop.payable(assertOk(await book(), 201));
      assert.deepEqual(Object.keys(booking).slice(0, 6), ['object', 'id', 'status', 'hold', 'holds', 'event']);
      assert.deepEqual([booking.hold, booking.holds], [a.id, [a.id, b.id, c.id]]);
      assert.deepEqual([booking.seats, booking.areas, booking.amount, booking.owner], [['S-A-1', 'S-B-1', 'S-B-2'], { Floor: 6 }, 4800, 'Ann']);
      assert.deepEqual([booking.payment.amount, booking.reference], [4800, 'basket']);
      assert.deepEqual(await shop.read(booking), booking);
      assert.deepEqual(assertOk(await server.get(`/v1/bookings?event=${event.id}`)).data.map(({ holds }) => holds), [booking.holds]);
      const carrier = await server.read(`/v1/holds/${a.id}`);
      assert.deepEqual([carrier.seats, carrier.areas, carrier.amount, carrier.booking, carrier.status, 'booked_with' in carrier],
        [booking.seats, booking.areas, 4800, booking.id, 'active', false]);
      assert.ok(carrier.fence > c.fence);
      for (const hold of [b, c]) { // they go on showing what they had, and what became of it
        const { expires_in_ms: left, ...read } = await server.read(`/v1/holds/${hold.id}`);
        const { expires_in_ms: was, ...had } = hold;
        assert.deepEqual(read, { ...had, booking: booking.id, booked_with: a.id, expires_at: carrier.expires_at });
        assert.ok(left > 0 && was > 0);
        assertProblem(await server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, add: { seats: ['S-A-5'] } }), 409, 'booking_exists');
        assertProblem(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, rescue: true }), 409, 'booking_exists');
        assertProblem(await server.post(`/v1/holds/${hold.id}/renew`), 409, 'booking_exists');
        assertProblem(await server.del(`/v1/holds/${hold.id}`), 409, 'booking_exists');
        assertProblem(await shop.book(hold), 409, 'booking_exists');
      }
      await shop.seats(event, 'hhh', ...SEATS);
      await server.restart();
      assert.deepEqual(await shop.read(booking), booking);
      assertRepeated(await book(), booking);
      await shop.pay(booking);
      const sold = await shop.settled(booking, 'confirmed', 'succeeded');
      assert.deepEqual([sold.holds, sold.payment.amount_received], [booking.holds, 4800]);
      await shop.seats(event, 'bbb', ...SEATS);
      assert.deepEqual(await statuses(a, b, c), ['confirmed', 'confirmed', 'confirmed']);
      for (const [query, n] of [['confirmed', 3], ['released', 0], ['active', 0]]) {
        assert.equal(assertOk(await server.get(`/v1/holds?event=${event.id}&status=${query}`)).data.length, n, query);
      }
      const { history } = await server.read(`/v1/events/${event.id}/seats/S-B-1`);
      assert.deepEqual(history.filter(({ cause }) => cause !== 'renew').map(({ cause, hold }) => [cause, hold.slice(0, 16)]),
        [['payment', a], ['change', a], ['book', b], ['hold', b]].map(([cause, { id }]) => [cause, id.slice(0, 16)]));
      assert.deepEqual((await server.read(`/v1/audit?hold=${b.id}`)).data.map(({ object, from, to, cause }) => [object, from, to, cause]), [
        ['hold', null, 'active', 'hold'], ['seat', 'available', 'held', 'hold'], ['area', 'available', 'held', 'hold'],
        ['hold', 'active', 'released', 'book'], ['seat', 'held', 'available', 'book'], ['area', 'held', 'available', 'book']]);
    });

    itOnce('keeps the ticket types of all places, from the payment to the log', async () => {
      const event = await createEvent({ types: [{ id: 'full' }, { id: 'reduced', prices: { S: 600, Floor: 200 } }] });
      const a = await server.take(event, { seats: ['S-A-1', 'S-A-2'], types: { 'S-A-2': 'reduced' }, areas: { Floor: { reduced: 1 } }, owner: 'Ann' });
      const b = await server.take(event, { seats: ['S-B-1'], types: { 'S-B-1': 'reduced' }, areas: { Floor: { full: 1, reduced: 1 } }, owner: 'Ann' });
      const booking = assertOk(await bookAll([a, b]), 201);
      const wanted = [...a.places.slice(0, 2), b.places[0], a.places[2], ...b.places.slice(1)];
      assert.deepEqual(booking.places, wanted);
      assert.deepEqual([booking.amount, booking.payment.amount], [a.amount + b.amount, a.amount + b.amount]);
      await shop.pay(booking);
      const sold = await shop.settled(booking, 'confirmed', 'succeeded');
      assert.deepEqual(sold.places, wanted);
      const { data } = await server.read(`/v1/audit?hold=${sold.hold}`);
      assert.deepEqual(data.filter(({ to, object }) => to === 'booked' && object !== 'booking').map(({ seat, quantity, type }) => `${seat ?? quantity} ${type}`),
        ['S-A-1 full', 'S-A-2 reduced', 'S-B-1 reduced', '1 full', '2 reduced']);
    });

    itOnce('costs what each place was held at, and nothing twice', async () => {
      const event = await createEvent({ max_per_owner: 7, max_per_hold: 4 });
      const first = await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 1 }, owner: 'Ann' });
      assertOk(await server.patch(`/v1/events/${event.id}`, { prices: { S: 3000, Floor: 500 } }));
      const second = await server.take(event, { seats: ['S-A-3', 'S-A-4'], areas: { Floor: 2 }, owner: 'Ann' });
      assertOk(await server.patch(`/v1/events/${event.id}`, { prices: { S: 9000, Floor: 9000 } }));
      const booking = assertOk(await bookAll([first, second]), 201); // seven places, of which a hold may have four
      assert.equal(booking.amount, 2 * 1000 + 300 + 2 * 3000 + 2 * 500);
      assertProblem(await server.hold(event, 'S-B-1', { owner: 'Ann' }), 409, 'owner_limit');
      await shop.pay(booking);
      await shop.settled(booking, 'confirmed');
    });

    itOnce('is sold at once where nothing is to be paid', async () => {
      const event = await createEvent({ areas: [{ name: 'Floor', price: 0, capacity: 5 }] });
      const [a, b] = [await server.take(event, { areas: { Floor: 2 } }), await server.take(event, { areas: { Floor: 1 } })];
      const booking = assertOk(await bookAll([a, b]), 201);
      assert.deepEqual([booking.status, booking.payment, booking.holds, booking.areas], ['confirmed', null, [a.id, b.id], { Floor: 3 }]);
      assert.deepEqual(await statuses(a, b), ['confirmed', 'confirmed']);
      assert.deepEqual(await shop.read(booking), booking);
    });

    itOnce('is made of all of them or of none', async () => {
      const [event, other] = [await createEvent(), await createEvent()];
      const hold = (seats, fields = {}) => server.grant(event, seats, fields);
      const a = await hold('S-A-1');
      const released = await hold('S-A-2');
      assert.equal((await server.del(`/v1/holds/${released.id}`)).status, 204);
      const sold = await hold('S-A-3');
      assertOk(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }), 201);
      const pending = await hold('S-A-4');
      assertOk(await shop.book(pending), 201);
      const lapsed = await hold('S-A-5', { ttl_ms: 1000 });
      const unknown = `${a.id.slice(0, -1)}${a.id.endsWith('0') ? '1' : '0'}`;
      await expired(lapsed);
      for (const [one, status, code] of [[released, 410, 'hold_released'], [sold, 409, 'booking_exists'], [pending, 409, 'booking_exists'],
        [lapsed, 410, 'hold_expired'], [{ id: unknown }, 404, 'no_such_hold'], [{ id: NOWHERE }, 404, 'no_such_hold']]) {
        const problem = assertProblem(await bookAll([a, one]), status, code);
        assert.equal(problem.hold, one.id, code);
        assert.ok(problem.detail.startsWith(`${one.id}: `), problem.detail);
      }
      assertProblem(await bookAll([a, 'hold_x']), 404, 'no_such_hold');
      assertInvalid(await bookAll([a, await server.grant(other, 'S-A-1')]), 'holds must be of one event');
      assertInvalid(await bookAll([a, await hold('S-B-1', { owner: 'Ann' })]), 'holds must be of one owner');
      assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: ['S-B-2'], channel: 'house' }));
      assertInvalid(await bookAll([a, await hold('S-B-2', { channel: 'house' })]), 'holds must be of one channel');
      const b = await hold('S-B-3');
      for (const body of [{ holds: [a.id] }, { holds: [] }, { holds: Array(11).fill(a.id) }, { holds: a.id }, { holds: [a.id, 7] }, { holds: [a.id, ''] },
        { holds: null }, { holds: [a.id, a.id] }, { holds: [a.id, b.id], hold: a.id }]) {
        assertInvalid(await server.post('/v1/bookings', body, { 'Idempotency-Key': newKey() }), 'holds');
      }
      for (const one of [a, b]) {
        const kept = await server.read(`/v1/holds/${one.id}`);
        assert.deepEqual([kept.status, kept.booking, kept.fence, kept.expires_at], ['active', null, one.fence, one.expires_at]);
      }
      assert.deepEqual(assertOk(await bookAll([b, a]), 201).holds, [a.id, b.id]);
    });

    it('is made once, by whoever is first', async () => {
      const event = await createEvent();
      const holds = await Promise.all(SEATS.map((seat) => server.grant(event, seat)));
      const [a, b, c] = holds;
      const answers = await Promise.all([[a, b], [b, c], [c, a], [a, b, c], [b, a], [c, b, a]].map((one) => bookAll(one)));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409]);
      for (const answer of answers.filter(({ status }) => status !== 201)) assertProblem(answer, 409, 'booking_exists');
      const { json: made } = answers.find(({ status }) => status === 201);
      const shown = await Promise.all(holds.map(({ id }) => server.read(`/v1/holds/${id}`)));
      assert.deepEqual(shown.filter(({ booking }) => booking).map(({ id }) => id).sort(), [...made.holds].sort());
      await shop.seats(event, 'hhh', ...SEATS);
    });

    it('is repeated by its key, also elsewhere', async () => {
      const [a, b] = await holdAll(await createEvent());
      const key = { 'Idempotency-Key': newKey() };
      const first = assertOk(await bookAll([a, b], {}, key), 201);
      for (let i = 0; i < 3; i++) assertRepeated(await bookAll([a, b], {}, key), first);
      assertProblem(await bookAll([b, a], {}, key), 422, 'idempotency_mismatch');
    });

    it('is tried again after a card was declined, or the payment failed', async () => {
      const event = await createEvent();
      const [a, b, c] = await holdAll(event);
      const booking = await shop.payable(assertOk(await bookAll([a, b]), 201));
      assert.equal((await shop.pay(booking, CARD.declined)).status, 402);
      await shop.shown(booking, 'refused', ({ payment }) => payment.last_error);
      await shop.stripe.paymentIntents.cancel(booking.payment.intent);
      const failed = await shop.settled(booking, 'failed', 'canceled');
      assert.deepEqual(failed.holds, [a.id, b.id]);
      assert.deepEqual(await statuses(a, b), ['active', 'active']);
      assert.equal((await server.read(`/v1/holds/${b.id}`)).booking, null);
      const again = await shop.payable(assertOk(await bookAll([b, a]), 201));
      assert.deepEqual([again.hold, again.holds, again.amount], [a.id, [a.id, b.id], booking.amount]);
      await shop.stripe.paymentIntents.cancel(again.payment.intent);
      await shop.settled(again, 'failed', 'canceled');
      assert.deepEqual(assertProblem(await shop.book(b), 409, 'booking_exists').code, 'booking_exists');
      const last = assertOk(await bookAll([a, c]), 201); // with one more
      assert.deepEqual(last.holds, [a.id, b.id, c.id]);
      await shop.pay(last);
      await shop.settled(last, 'confirmed', 'succeeded');
      await shop.seats(event, 'bbb', ...SEATS);
    });

    it('gives everything back when it is cancelled, and money in part before', async () => {
      const event = await createEvent();
      const [a, b, c] = await holdAll(event);
      const booking = assertOk(await bookAll([a, b, c]), 201);
      await shop.pay(booking);
      await shop.settled(booking, 'confirmed', 'succeeded');
      assertOk(await server.post(`/v1/bookings/${booking.id}/refund`, { amount: 1000 }));
      await shop.shown(booking, 'refunded in part', ({ payment }) => payment.amount_refunded === 1000);
      const cancelled = assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`, { reason: 'ill' }));
      assert.deepEqual([cancelled.status, cancelled.holds], ['cancelled', booking.holds]);
      const back = await shop.settled(booking, 'cancelled', 'refunded');
      assert.equal(back.payment.amount_refunded, 4800);
      await shop.seats(event, '...', ...SEATS);
      assert.equal((await server.counts(event)).available, 40);
      assert.deepEqual(await statuses(a, b, c), ['confirmed', 'confirmed', 'confirmed']); // as of one hold
    });

    it('ends for all of them when its hold is released', async () => {
      const event = await createEvent();
      const [a, b, c] = await holdAll(event);
      const booking = assertOk(await bookAll([a, b, c]), 201);
      assert.equal((await server.del(`/v1/holds/${a.id}`)).status, 204);
      await shop.settled(booking, 'failed', 'canceled');
      await shop.seats(event, '...', ...SEATS);
      assert.deepEqual(await statuses(a, b, c), ['released', 'released', 'released']);
      assert.equal((await server.del(`/v1/holds/${b.id}`)).status, 204);
      assertProblem(await shop.book(b), 410, 'hold_released');
      await Promise.all(SEATS.map((seat) => server.grant(event, seat)));
    });
  });

  // The webhooks are lost and the provider cannot be asked, so that the money is heard of only when it is mended.
  describe('whose money comes late', () => {
    const end = {
      expired: ({ hold }) => expired(hold),
      dearer: async ({ hold, event }) => { await expired(hold); assertOk(await server.patch(`/v1/events/${event.id}`, { prices: { S: 5000 } })); },
      taken: async (made) => {
        await expired(made.hold);
        assertOk(await server.patch(`/v1/events/${made.event.id}`, { hold_ttl_ms: 60_000 })); // of the other's hold
        made.other = await until('the seat is free', async () => {
          const answer = await server.hold(made.event, 'S-A-1');
          return answer.status === 201 && answer.json;
        });
      },
      archived: async ({ hold, event }) => { await expired(hold); assertOk(await server.post(`/v1/events/${event.id}/archive`)); },
      several: async (late) => { for (const hold of late.holds) await expired(hold); },
      released: async ({ hold }) => assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204),
      evicted: async ({ hold }) => assertOk(await server.post(`/v1/holds/${hold.id}/evict`)),
      cancelled: async ({ booking }) => assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`)),
    };
    const isShort = (how) => ['expired', 'dearer', 'taken', 'archived', 'several'].includes(how);
    const made = {};

    async function checkoutSeveral(event) {
      const holds = await holdAll(event);
      const answer = await server.post('/v1/bookings', { holds: holds.map(({ id }) => id) }, { 'Idempotency-Key': newKey() });
      return { holds, booking: assertOk(answer, 201) };
    }

    before(async () => {
      const { forward } = shop.relay;
      shop.relay.forward = null;
      await shop.breakProvider('retrieve', 'cancel');
      try {
        for (const how of Object.keys(end)) {
          const checkout = how === 'several' ? checkoutSeveral : (event) => shop.checkout(event, 'S-A-1');
          if (isShort(how)) made[how] = await briefly(checkout);
          else {
            const event = await createEvent();
            made[how] = { event, ...await checkout(event) };
          }
        }
        for (const [how, work] of Object.entries(end)) await work(made[how]);
        for (const { booking } of Object.values(made)) {
          const paid = await shop.pay(booking);
          assert.equal(paid.json.status, 'succeeded', paid.text);
          assert.equal((await shop.read(booking)).payment.amount_received, 0);
        }
      } finally {
        await shop.mendProvider();
        shop.relay.forward = forward;
      }
    });

    it('is sold if its seats are still free when the hold has expired', async () => {
      const { event, hold, booking } = made.expired;
      const sold = await shop.settled(booking, 'confirmed', 'succeeded');
      await shop.seats(event, 'b', 'S-A-1');
      const rescued = await server.read(`/v1/holds/${hold.id}`);
      assert.equal(rescued.status, 'confirmed');
      assert.ok(sold.fence > hold.fence);
      assert.equal(sold.fence, rescued.fence);
    });

    it('is sold with all places of several holds', async () => {
      const { event, holds, booking } = made.several;
      await shop.settled(booking, 'confirmed', 'succeeded');
      await shop.seats(event, 'bbb', 'S-A-1', 'S-B-1', 'S-B-2');
      for (const { id } of holds) assert.equal((await server.read(`/v1/holds/${id}`)).status, 'confirmed');
    });

    it('is sold at the price of its intent, although the price has risen', async () => {
      assert.equal((await shop.settled(made.dearer.booking, 'confirmed', 'succeeded')).amount, 1000);
    });

    it('gets the money back if a seat was taken meanwhile', async () => {
      const { booking, other } = made.taken;
      const failed = await shop.settled(booking, 'failed', 'refunded');
      assert.equal(failed.payment.amount_refunded, 1000);
      assert.equal((await server.read(`/v1/holds/${other.id}`)).fence, other.fence);
      const [refund] = (await shop.refunds('?limit=100')).filter((one) => one.booking === booking.id);
      assert.deepEqual([refund.status, refund.amount, refund.origin], ['succeeded', 1000, 'holdfast']);
    });

    for (const [how, status] of [['released', 'failed'], ['evicted', 'failed'], ['cancelled', 'cancelled'], ['archived', 'failed']]) {
      it(`gets the money back if it was ${how}, although its seats are free`, async () => {
        const { event, booking } = made[how];
        await shop.settled(booking, status, 'refunded');
        await shop.seats(event, '.', 'S-A-1');
      });
    }
  });

  describe('whose intent was changed by somebody else', () => {
    for (const [what, change, captured] of [['amount', { amount: 900 }, 900], ['currency', { currency: 'eur' }, 1000]]) {
      (what === 'amount' ? it : itOnce)(`gets all of the money back (${what})`, async () => {
        const event = await createEvent();
        const { booking } = await shop.checkout(event, 'S-A-1');
        const alarms = await server.metric('holdfast_payment_alarms_total');
        await shop.stripe.paymentIntents.update(booking.payment.intent, change);
        await shop.pay(booking);
        const failed = await shop.settled(booking, 'failed', 'refunded');
        assert.deepEqual([failed.payment.amount_received, failed.payment.amount_refunded], [captured, captured]);
        assert.ok(await server.metric('holdfast_payment_alarms_total') > alarms);
        const charges = await shop.stripe.charges.list({ payment_intent: booking.payment.intent });
        assert.deepEqual(charges.data.map(({ refunded }) => refunded), [true]);
      });
    }
  });
});
