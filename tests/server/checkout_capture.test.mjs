// --capture manual: the card is authorized, the seats are booked, and only then is the money taken.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openShop } from '../support/checkout.mjs';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { inTime, itOnce, reap, until } from '../support/server.mjs';

describe('with --capture manual', () => {
  let shop;
  let server;
  before(async () => { shop = await openShop({ args: ['--capture', 'manual'] }); ({ server } = shop); });
  after(async () => { try { await shop?.close(); } finally { await reap(); } });

  const intentOf = (booking) => shop.stripe.paymentIntents.retrieve(booking.payment.intent);

  it('a checkout ends with the money taken and the seats sold', async () => {
    const event = await server.createEvent();
    const { booking } = await shop.checkout(event, 'S-A-1');
    assert.equal((await intentOf(booking)).capture_method, 'manual');
    const answer = await shop.pay(booking);
    assert.equal(answer.json.status, 'requires_capture', answer.text);
    const sold = await shop.settled(booking, 'confirmed', 'succeeded');
    assert.equal(sold.payment.amount_received, 1000);
    assert.equal((await intentOf(booking)).status, 'succeeded');
    await shop.seats(event, 'b', 'S-A-1');
  });

  it('the seats are booked before the money is taken, and stay so while it is not known whether it was', async () => {
    const { event, hold, booking, capturing } = await inTime(async (ttlMs) => {
      const short = await server.createEvent({ hold_ttl_ms: ttlMs });
      const made = await shop.checkout(short, 'S-A-1');
      await shop.breakProvider('capture');
      await shop.pay(made.booking);
      return { event: short, ...made, capturing: await shop.settled(made.booking, 'pending', 'capturing') };
    }, 6000);
    assert.deepEqual([capturing.payment.client_secret, capturing.payment.amount_received], [null, 0]);
    await shop.seats(event, 'b', 'S-A-1');
    assertProblem(await server.del(`/v1/holds/${hold.id}`), 409, 'hold_confirmed');
    await until('the time of the hold is over', () => Date.now() > Date.parse(booking.expires_at) + 200, 120_000);
    await shop.seats(event, 'b', 'S-A-1');
    assert.equal((await shop.read(booking)).status, 'pending');
    await shop.mendProvider();
    await shop.settled(booking, 'confirmed', 'succeeded');
  });

  it('money that was taken although the answer was lost is taken once', async () => {
    const event = await server.createEvent();
    const { booking } = await shop.checkout(event, 'S-A-1');
    await shop.sandbox.faults({ hold_ms: 300, fail_next: { route: 'capture', mode: 'timeout_after', times: 1 } });
    await shop.pay(booking);
    const sold = await shop.settled(booking, 'confirmed', 'succeeded');
    assert.equal(sold.payment.amount_received, 1000);
  });

  it('a capture that is refused for good frees the seats', async () => {
    const event = await server.createEvent();
    const { booking } = await shop.checkout(event, 'S-A-1');
    const { forward } = shop.relay;
    shop.relay.forward = null;
    await shop.breakProvider('capture', 'retrieve');
    const paid = await shop.pay(booking);
    assert.equal(paid.json.status, 'requires_capture');
    const told = await until('the sandbox has told of it', () => shop.relay.received.find(({ json }) => json.type === 'payment_intent.amount_capturable_updated'
      && json.data.object.id === booking.payment.intent));
    assertOk(await shop.webhook(told.body, told.signature));
    await shop.settled(booking, 'pending', 'capturing');
    await shop.stripe.paymentIntents.cancel(booking.payment.intent); // in the dashboard
    await shop.mendProvider();
    shop.relay.forward = forward;
    await shop.settled(booking, 'failed', 'canceled');
    await shop.seats(event, '.', 'S-A-1');
  });

  itOnce('a late authorization is canceled, and no money moves', async () => {
    const event = await server.createEvent();
    const { hold, booking } = await shop.checkout(event, 'S-A-1');
    const { forward } = shop.relay;
    shop.relay.forward = null;
    await shop.breakProvider('cancel', 'retrieve');
    assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    await shop.pay(booking);
    await shop.mendProvider();
    shop.relay.forward = forward;
    const failed = await shop.settled(booking, 'failed', 'canceled');
    assert.equal(failed.payment.amount_received, 0);
    assert.equal((await intentOf(booking)).status, 'canceled');
    await shop.seats(event, '.', 'S-A-1');
  });

  it('a sale can be cancelled while its money is being taken', async () => {
    const event = await server.createEvent();
    const { booking } = await shop.checkout(event, 'S-A-1');
    await shop.breakProvider('capture');
    await shop.pay(booking);
    await shop.settled(booking, 'pending', 'capturing');
    assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`));
    await shop.mendProvider();
    // A capture that was under way meanwhile may have succeeded, and is given back.
    const { payment } = await shop.shown(booking, 'cancelled, without money', ({ status, payment: { status: money } }) =>
      status === 'cancelled' && ['canceled', 'refunded'].includes(money));
    assert.equal(payment.amount_refunded, payment.amount_received);
    await shop.seats(event, '.', 'S-A-1');
  });
});
