// The budget of calls to the payment provider: how many per second, of all servers together, and who goes first.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openShop } from '../support/checkout.mjs';
import { assertOk } from '../support/expect.mjs';
import { reap } from '../support/server.mjs';

const RATE = 4;

describe('--payments-rate', () => {
  let shop;
  before(async () => { shop = await openShop({ args: ['--payments-rate', `${RATE}`] }); });
  after(async () => { try { await shop?.close(); } finally { await reap(); } });

  it('bounds the calls of all servers together, and refunds go before new intents', async () => {
    // Of a machine that stands still the refund comes when all intents are made, which shows nothing.
    for (let tries = 1; !await refundsGoFirst(tries); tries++) assert.ok(tries < 5, 'the refund always came too late');
  });

  async function refundsGoFirst(round) {
    const event = await shop.server.createEvent({ sections: [{ name: 'S', price: 1000, rows: 2, seats_per_row: 20 }] });
    const sold = await shop.sell(event, 'S-B-1');
    const holds = [];
    for (let i = 1; i <= 4 * RATE; i++) holds.push(await shop.server.grant(event, `S-A-${i}`));
    const from = Date.now();
    const answers = holds.map((hold) => shop.book(hold));
    assertOk(await shop.server.post(`/v1/bookings/${sold.id}/refund`)); // most of the intents are not made yet
    const wasEarly = (await shop.stripe.paymentIntents.list({ limit: 100 })).data.length < round * (4 * RATE + 1) - 1;
    const bookings = (await Promise.all(answers)).map((answer) => assertOk(answer, 201));
    await shop.settled(sold, 'confirmed', 'refunded');
    for (const booking of bookings) await shop.shown(booking, 'an intent', ({ payment }) => payment.status === 'requires_payment');
    const tookMs = Date.now() - from;

    // Calls that were made in time may reach the provider late and together, so only the whole is measured.  Its
    // 4 * RATE + 1 calls need five seconds of the budget, of which the first may have been about to end.
    assert.ok(tookMs >= 3000, `${4 * RATE} intents and a refund within ${tookMs} ms`);
    const intents = (await shop.stripe.paymentIntents.list({ limit: 100 })).data.slice(0, 4 * RATE);
    const [refund] = (await shop.stripe.refunds.list({ limit: 1 })).data;
    for (const hold of holds) assert.equal((await shop.server.del(`/v1/holds/${hold.id}`)).status, 204);
    if (wasEarly) assert.ok(refund.created <= Math.max(...intents.map(({ created }) => created)), 'the refund came after every intent');
    return wasEarly;
  }
});
