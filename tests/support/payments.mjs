// Buyers who pay at the sandbox inside a server (`--payments sandbox`, the default on loopback), or at the one of
// `make cluster`.  Suites whose servers share a ledger need a sandbox that they share, too: see checkout.mjs.

import assert from 'node:assert/strict';
import { CARD } from './checkout.mjs';
import { assertOk } from './expect.mjs';
import { newKey, until } from './server.mjs';

// Books a hold; resolves to the booking, whose intent there is by then.
export async function book(server, hold, fields = {}) {
  const booking = assertOk(await server.post('/v1/bookings', { hold: hold.id, ...fields }, { 'Idempotency-Key': newKey() }), 201);
  return until('there is an intent', async () => {
    const now = await server.read(`/v1/bookings/${booking.id}`);
    return now.payment.intent && now.payment.client_secret ? now : null;
  });
}

// Pays at the sandbox as a browser would, with the publishable key.
export async function pay({ payment }, card = CARD.good) {
  const form = new URLSearchParams({
    key: payment.publishable_key, client_secret: payment.client_secret, 'payment_method_data[type]': 'card', 'payment_method_data[card][number]': card,
    'payment_method_data[card][exp_month]': '12', 'payment_method_data[card][exp_year]': String(new Date().getFullYear() + 2), 'payment_method_data[card][cvc]': '123',
  });
  const response = await fetch(`${payment.api}/v1/payment_intents/${payment.intent}/confirm`, {
    method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: form.toString(),
  });
  assert.equal(response.status, 200, await response.text());
}

export const reached = (server, booking, what, test) => until(what, async () => {
  const now = await server.read(`/v1/bookings/${booking.id}`);
  return test(now) ? now : null;
});

// Holds seats, books and pays them; resolves to the confirmed booking.
export async function sell(server, event, seats, fields = {}, card = CARD.good) {
  const { owner, ...rest } = fields;
  const booking = await book(server, await server.take(event, { seats, ...(owner ? { owner } : {}) }), rest);
  await pay(booking, card);
  return reached(server, booking, 'it is paid', ({ status }) => status === 'confirmed');
}
