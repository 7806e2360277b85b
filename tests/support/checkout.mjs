// The harness of the suites about checkouts: servers that sell, a payment sandbox that plays Stripe, and a relay
// between them that passes webhooks on, or loses them.
//
//   const shop = await openShop();
//   const { booking } = await shop.checkout(event, 'S-A-1');
//   await shop.pay(booking);                       // with the card that succeeds
//   await shop.settled(booking, 'confirmed');
//   await shop.close();                            // nothing is owed, the ledger is verified, everything ends cleanly
//
// The servers follow HOLDFAST_TEST_BACKEND, as those of server.mjs do.

import assert from 'node:assert/strict';
import http from 'node:http';
import Stripe from 'stripe';
import { assertOk } from './expect.mjs';
import { assertVerified } from './ledger.mjs';
import { startSandbox } from './sandbox.mjs';
import { newKey, start, until } from './server.mjs';

export const WEBHOOK_SECRET = 'whsec_of_the_checkout_suites';
export const CARD = {
  good: '4242424242424242',
  declined: '4000000000000002',
  poor: '4000000000009995',
  action: '4000002760003184',
  actionThenDeclined: '4000008400001629',
  processingError: '4000000000000119',
  failsOnCharge: '4000000000000341',
  refundFails: '4000000000005126',
  disputed: '4000000000000259',
};
const SETTLE_MS = 120_000; // a job is tried again after at most 12 s, and its lease, which may be lost more than once, lasts for 25 s
let shops = 0;

// Options: args and env of the servers; webhooks (false: the sandbox's events reach nobody).
export async function openShop({ args = [], env = {}, webhooks = true, headers = {} } = {}) {
  const relay = await startRelay();
  const sandbox = await startSandbox({ args: ['--webhook', relay.url, '--webhook-secret', WEBHOOK_SECRET] });
  const account = `shop${++shops}`;
  const server = await start({
    args: ['--payments', 'stripe', '--stripe-api', sandbox.url, '--payments-rate', '0', ...args],
    env: {
      STRIPE_SECRET_KEY: `sk_test_${account}`, STRIPE_PUBLISHABLE_KEY: `pk_test_${account}`,
      ...(webhooks ? { STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET } : {}), ...env,
    },
  });
  const shop = new Shop(server, sandbox, relay, account, headers);
  relay.forward = webhooks ? (body, signature) => shop.webhook(body, signature) : null;
  return shop;
}

class Shop {
  constructor(server, sandbox, relay, account, headers) {
    Object.assign(this, { server, sandbox, relay, account, headers });
    this.stripe = sandbox.client({ account });
  }

  // ---- what buyers do ----

  book(hold, fields = {}, headers = {}) {
    return this.server.post('/v1/bookings', { hold: hold.id ?? hold, ...fields }, { 'Idempotency-Key': newKey(), ...headers });
  }

  // Holds seats and books the hold; resolves to { hold, booking }.
  async checkout(event, seats, fields = {}, holdFields = {}) {
    const hold = await this.server.grant(event, seats, holdFields);
    return { hold, booking: await this.payable(assertOk(await this.book(hold, fields), 201)) };
  }

  // Resolves to a booking that was just made as it is once it has its intent: the answer waits for that, but not for ever.
  payable(booking) {
    if (booking.payment?.status !== 'creating') return booking;
    return this.shown(booking, 'to be paid', ({ payment }) => payment.status !== 'creating');
  }

  // Pays as a card form in a browser does; resolves to the sandbox's answer.
  async pay(booking, number = CARD.good, fields = {}) {
    const { payment } = await this.payable(booking);
    assert.ok(payment.client_secret, 'the booking has no client_secret');
    return this.sandbox.post(`/v1/payment_intents/${payment.intent}/confirm`, {
      key: payment.publishable_key, client_secret: payment.client_secret,
      'payment_method_data[type]': 'card', 'payment_method_data[card][number]': number,
      'payment_method_data[card][exp_month]': '12', 'payment_method_data[card][exp_year]': '2040',
      'payment_method_data[card][cvc]': '123', ...fields,
    });
  }

  // Holds, books and pays; resolves to the confirmed booking.
  async sell(event, seats, { card, ...fields } = {}, holdFields = {}) {
    const { booking } = await this.checkout(event, seats, fields, holdFields);
    const paid = await this.pay(booking, card);
    assert.equal(paid.status, 200, paid.text);
    return this.settled(booking, 'confirmed');
  }

  // Presses a button on the sandbox's page of an answer that requires an action.
  async act(answer, result) {
    const { url } = answer.json.next_action.redirect_to_url;
    const page = await this.sandbox.request(url);
    assert.equal(page.status, 200, page.text);
    return this.sandbox.post(url, { result });
  }

  // ---- what is to be seen ----

  async read(booking, headers = this.headers) {
    return assertOk(await this.server.get(`/v1/bookings/${booking.id ?? booking}`, headers));
  }

  // Waits until `test` accepts the booking; resolves to it.
  async shown(booking, what, test, timeoutMs = SETTLE_MS) {
    let last;
    const look = async () => { last = await this.read(booking); return test(last); };
    await until(`the booking is ${what}`, look, timeoutMs)
      .catch((error) => { throw new Error(`${error.message}; it is ${JSON.stringify(last)}`); });
    return last;
  }

  // Waits until booking and payment have these statuses.
  settled(booking, status, payment) {
    return this.shown(booking, [status, payment].join(' '), (b) => b.status === status && (!payment || b.payment.status === payment));
  }

  // Waits until the map shows the seats as `letters` has them, in the order of their names.
  async seats(event, letters, ...names) {
    let last;
    await until(`the seats are ${letters}`, async () => {
      const map = await this.server.map(event);
      last = names.map((name) => map[name]).join('');
      return last === letters;
    }).catch((error) => { throw new Error(`${error.message}; they are ${last}`); });
  }

  async refunds(query = '') { return assertOk(await this.server.get(`/v1/refunds${query}`, this.headers)).data; }
  async notifications(query = '') { return assertOk(await this.server.get(`/v1/notifications${query}`, this.headers)).data; }

  // ---- what the provider does ----

  // Delivers a webhook to one of the servers, as it is.
  webhook(body, signature) {
    return this.server.post('/v1/webhooks/stripe', body, signature === undefined ? {} : { 'Stripe-Signature': signature });
  }

  // Signs an event with the official package and delivers it.
  deliver(event, { secret = WEBHOOK_SECRET, timestamp } = {}) {
    const payload = JSON.stringify(event);
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret, ...(timestamp ? { timestamp } : {}) });
    return this.webhook(payload, signature);
  }

  // Makes each of these operations of the sandbox fail from now on.
  async breakProvider(...routes) {
    for (const route of routes) await this.sandbox.faults({ fail_next: { route, mode: 'reset', times: 1_000_000 } });
  }

  mendProvider() { return this.sandbox.faults({ fail_next: null }); }

  // Waits until the sandbox's books show this much money left: captured, and not refunded.
  async hasReceived(amount, currency = 'usd') {
    let books;
    await until(`the provider has ${amount} ${currency}`, async () => {
      books = (await this.sandbox.books()).currencies[currency] ?? { captured: 0, refunded: 0 };
      return books.captured - books.refunded === amount;
    }, SETTLE_MS).catch((error) => { throw new Error(`${error.message}; it has ${JSON.stringify(books)}`); });
  }

  // ---- the end ----

  // Asserts that the provider's books and ours agree, to the cent: money is kept for confirmed bookings only, or
  // where the provider could not give it back.
  async balance() {
    const kept = {};
    let cursor = '';
    do {
      const page = assertOk(await this.server.get(`/v1/bookings?limit=100${cursor}`, this.headers));
      for (const { status, currency, payment } of page.data.filter((booking) => booking.payment)) {
        const left = payment.amount_received - payment.amount_refunded;
        if (status !== 'confirmed' && payment.status !== 'refund_failed') assert.equal(left, 0, JSON.stringify(payment));
        kept[currency] = (kept[currency] ?? 0) + left;
      }
      cursor = page.has_more ? `&cursor=${page.next_cursor}` : '';
    } while (cursor);
    const { currencies } = await this.sandbox.books();
    for (const [currency, { captured, refunded }] of Object.entries(currencies)) {
      assert.equal(captured - refunded, kept[currency] ?? 0, `${currency} of the provider and of the bookings`);
    }
  }

  async close({ verify = true } = {}) {
    const { server, sandbox, relay } = this;
    await this.balance();
    if (verify) assertVerified(server.ledger, server.gate);
    await server.stop();
    await sandbox.stop();
    await relay.stop();
  }
}

// Passes webhooks of the sandbox on by `forward(body, signature)`.  `received` has all of them, those that were lost, too.
async function startRelay() {
  const relay = { received: [], forward: null };
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      const body = Buffer.concat(chunks);
      const signature = request.headers['stripe-signature'];
      relay.received.push({ body, signature, json: JSON.parse(body) });
      const passed = relay.forward ? await relay.forward(body, signature).catch(() => null) : { status: 200 };
      response.writeHead(passed?.status ?? 502).end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref(); // a suite that failed does not wait for it
  relay.url = `http://127.0.0.1:${server.address().port}/webhooks`;
  relay.stop = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  return relay;
}
