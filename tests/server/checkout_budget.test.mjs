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
  let event;
  before(async () => {
    shop = await openShop({ args: ['--payments-rate', `${RATE}`] });
    event = await shop.server.createEvent({ sections: [{ name: 'S', price: 1000, rows: 2, seats_per_row: 20 }] });
  });
  after(async () => { try { await shop?.close(); } finally { await reap(); } });

  it('bounds the calls of all servers together, and refunds go before new intents', async () => {
    const sold = await shop.sell(event, 'S-B-1');
    const holds = [];
    for (let i = 1; i <= 4 * RATE; i++) holds.push(await shop.server.grant(event, `S-A-${i}`));
    const answers = holds.map((hold) => shop.book(hold));
    assertOk(await shop.server.post(`/v1/bookings/${sold.id}/refund`)); // most of the intents are not made yet
    const bookings = (await Promise.all(answers)).map((answer) => assertOk(answer, 201));
    await shop.settled(sold, 'confirmed', 'refunded');
    for (const booking of bookings) await shop.shown(booking, 'an intent', ({ payment }) => payment.status === 'requires_payment');

    // A second of the budget may begin at any moment of a second of the provider's clock, so each of those sees at most two.
    const intents = (await shop.stripe.paymentIntents.list({ limit: 100 })).data.slice(0, 4 * RATE);
    const perSecond = new Map();
    for (const { created } of intents) perSecond.set(created, (perSecond.get(created) ?? 0) + 1);
    assert.ok(Math.max(...perSecond.values()) <= 2 * RATE, `intents per second: ${[...perSecond.values()]}`);
    const times = intents.map(({ created }) => created).sort((a, b) => a - b);
    assert.ok(times.at(-1) - times[0] >= 2, `${times.length} intents within ${times.at(-1) - times[0]} s`);
    const [refund] = (await shop.stripe.refunds.list({ limit: 1 })).data;
    assert.ok(refund.created <= times.at(-1), 'the refund came after every intent');
    for (const hold of holds) assert.equal((await shop.server.del(`/v1/holds/${hold.id}`)).status, 204);
  });
});
