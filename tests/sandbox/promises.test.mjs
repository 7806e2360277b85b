// What the payment sandbox promises beside the objects: idempotency keys, webhooks, faults on purpose, books, and that
// a restart forgets nothing.
// backends: own

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import Stripe from 'stripe';
import { assertTook, pool, reap, removeTempDir, tempDir, until } from '../support/server.mjs';
import { startReceiver, startSandbox } from '../support/sandbox.mjs';

after(reap);

const { StripeAPIError, StripeConnectionError, StripeIdempotencyError, StripeRateLimitError } = Stripe.errors;
const terms = { amount: 2500, currency: 'usd', payment_method_types: ['card'] };
const paying = { ...terms, confirm: true, payment_method: 'pm_card_visa' };
const SECRET = 'whsec_of_the_suite';

// Runs a test with a sandbox of its own.
async function withSandbox(args, test) {
  const sandbox = await startSandbox({ args });
  await test(sandbox, sandbox.client());
  await sandbox.stop();
}

// Runs a test with a sandbox that sends its events to a receiver.
async function withWebhook(args, answer, test) {
  const receiver = await startReceiver(answer);
  const sandbox = await startSandbox({ args: ['--webhook', receiver.url, '--webhook-secret', SECRET, ...args] });
  await test(sandbox, receiver, sandbox.client());
  await sandbox.stop();
  await receiver.stop();
}

const plain = { amount: '2500', currency: 'usd', 'payment_method_types[0]': 'card' };
const raw = (sandbox, stripe, form, headers = {}) => sandbox.post('/v1/payment_intents', form, { Authorization: `Bearer sk_test_${stripe.account}`, ...headers });

describe('an idempotency key', () => {
  it('repeats the first answer, and nothing else happens', () => withSandbox([], async (sandbox, stripe) => {
    const first = await stripe.paymentIntents.create(paying, { idempotencyKey: 'k' });
    const again = await stripe.paymentIntents.create(paying, { idempotencyKey: 'k' });
    assert.deepEqual({ ...again }, { ...first });
    assert.equal(first.lastResponse.headers['idempotent-replayed'], undefined);
    assert.equal(again.lastResponse.headers['idempotent-replayed'], 'true');
    assert.equal(again.lastResponse.headers['original-request'], first.lastResponse.requestId);
    assert.equal(again.lastResponse.headers['idempotency-key'], 'k');
    const { currencies } = await sandbox.books();
    assert.equal(currencies.usd.captured, 2500);
    assert.equal((await stripe.paymentIntents.list()).data.length, 1);
  }));

  it('belongs to its parameters, its path and its account', () => withSandbox([], async (sandbox, stripe) => {
    const intent = await stripe.paymentIntents.create(terms, { idempotencyKey: 'k' });
    await assert.rejects(stripe.paymentIntents.create({ ...terms, amount: 2501 }, { idempotencyKey: 'k' }), (error) => {
      assert.ok(error instanceof StripeIdempotencyError);
      assert.equal(error.statusCode, 400);
      return true;
    });
    await assert.rejects(stripe.paymentIntents.cancel(intent.id, {}, { idempotencyKey: 'k' }), StripeIdempotencyError);
    const other = await sandbox.client().paymentIntents.create({ ...terms, amount: 2501 }, { idempotencyKey: 'k' });
    assert.equal(other.amount, 2501);
    const reordered = await raw(sandbox, stripe, Object.fromEntries(Object.entries(plain).reverse()), { 'Idempotency-Key': 'k' });
    assert.equal(reordered.json.id, intent.id);
  }));

  it('keeps declines and failures, but no refusals of parameters', () => withSandbox([], async (sandbox, stripe) => {
    const declined = { ...paying, payment_method: 'pm_card_visa_chargeDeclined' };
    for (let n = 0; n < 2; n++) await assert.rejects(stripe.paymentIntents.create(declined, { idempotencyKey: 'declined' }), { type: 'StripeCardError' });
    assert.equal((await stripe.paymentIntents.list()).data.length, 1);
    await assert.rejects(stripe.paymentIntents.create({ ...terms, amount: 1 }, { idempotencyKey: 'later' }), { code: 'amount_too_small' });
    assert.equal((await stripe.paymentIntents.create(terms, { idempotencyKey: 'later' })).amount, 2500);
    await sandbox.faults({ fail_next: { route: 'create', mode: '500' } });
    for (let n = 0; n < 2; n++) {
      await assert.rejects(stripe.paymentIntents.create(terms, { idempotencyKey: 'failed' }), (error) => {
        assert.ok(error instanceof StripeAPIError, error.message);
        assert.equal(error.statusCode, 500);
        assert.equal(error.headers['idempotent-replayed'], n ? 'true' : undefined);
        assert.equal(error.headers['stripe-should-retry'], n ? 'false' : undefined);
        return true;
      });
    }
    assert.equal((await stripe.paymentIntents.create(terms, { idempotencyKey: 'another' })).status, 'requires_payment_method');
    assert.equal((await stripe.paymentIntents.list()).data.length, 3);
  }));

  it('is refused while its first request is being worked on', () => withSandbox(['--faults', '{"delay_ms":[300,300]}'], async (sandbox, stripe) => {
    let n = 0;
    await until('two requests overlap', async () => {
      const key = { 'Idempotency-Key': `k${++n}` };
      const both = await Promise.all([raw(sandbox, stripe, plain, key), raw(sandbox, stripe, plain, key)]);
      const [done, refused] = both.sort((a, b) => a.status - b.status);
      assert.equal(done.status, 200, done.text);
      if (refused.status === 200) return false;
      assert.equal(refused.status, 409);
      assert.equal(refused.json.error.code, 'idempotency_key_in_use');
      assert.equal(refused.headers.get('stripe-should-retry'), 'true');
      assert.equal((await raw(sandbox, stripe, plain, key)).json.id, done.json.id);
      return true;
    });
  }));
});

describe('faults', () => {
  it('can be read and changed, and nonsense changes nothing', () => withSandbox(['--faults', '{"fail":0.5}'], async (sandbox) => {
    assert.equal((await sandbox.request('/sandbox/faults')).json.fail, 0.5);
    await sandbox.faults({ rate_limit: 0.25, delay_ms: [1, 2] });
    for (const body of ['{"fail":2}', '{"fial":0}', '{"fail":0,"delay_ms":[2,1]}', '[]', 'x', '{"fail_next":{"route":"moon","mode":"500"}}', '{"fail_next":{"route":"create","mode":"x"}}']) {
      const answer = await sandbox.request('/sandbox/faults', { method: 'POST', body });
      assert.equal(answer.status, 400, body);
    }
    const { json } = await sandbox.request('/sandbox/faults');
    assert.equal(json.fail, 0.5);
    assert.equal(json.rate_limit, 0.25);
    assert.deepEqual(json.delay_ms, [1, 2]);
  }));

  it('fail before the work, in the ways that are asked for, so often', () => withSandbox(['--faults', '{"hold_ms":50}'], async (sandbox, stripe) => {
    await sandbox.faults({ fail_next: { route: 'create', mode: '429', times: 2 } });
    for (let n = 0; n < 2; n++) {
      await assert.rejects(stripe.paymentIntents.create(terms, { idempotencyKey: 'limited' }), (error) => {
        assert.ok(error instanceof StripeRateLimitError);
        assert.equal(error.headers['stripe-should-retry'], 'true');
        return true;
      });
    }
    const intent = await stripe.paymentIntents.create(paying, { idempotencyKey: 'limited' });
    for (const mode of ['reset', 'timeout_before']) {
      await sandbox.faults({ fail_next: { route: 'refund', mode, times: 2 } }); // the client tries a reset connection once more
      await assert.rejects(stripe.refunds.create({ payment_intent: intent.id }), StripeConnectionError);
      assert.equal((await stripe.refunds.list({ payment_intent: intent.id })).data.length, 0);
    }
    await sandbox.faults({ fail_next: { route: 'retrieve', mode: '500' } });
    await assert.rejects(stripe.paymentIntents.retrieve(intent.id), StripeAPIError);
    assert.equal((await stripe.paymentIntents.retrieve(intent.id)).status, 'succeeded');
  }));

  it('can lose the answer after the work; the key finds it', () => withSandbox(['--faults', '{"hold_ms":50}'], async (sandbox, stripe) => {
    await sandbox.faults({ fail_next: { route: 'create', mode: 'timeout_after', times: 2 } }); // the client tries once more
    await assert.rejects(stripe.paymentIntents.create(paying, { idempotencyKey: 'k' }), StripeConnectionError);
    const again = await stripe.paymentIntents.create(paying, { idempotencyKey: 'k' });
    assert.equal(again.lastResponse.headers['idempotent-replayed'], 'true');
    assert.equal((await sandbox.books()).currencies.usd.captured, 2500);
  }));

  it('come by chance, repeatably, and the official client gets through them', () => withSandbox(['--faults', '{"seed":7,"hold_ms":20}'], async (sandbox, stripe) => {
    const patient = sandbox.client({ account: stripe.account, maxNetworkRetries: 40 });
    await sandbox.faults({ rate_limit: 0.2, timeout_before: 0.1, timeout_after: 0.1, delay_ms: [0, 3] });
    const intents = [];
    await pool(Array.from({ length: 20 }, (_, n) => n), 8, async (n) => {
      intents.push(await patient.paymentIntents.create({ ...paying, amount: 1000 + n }));
    });
    await sandbox.faults({ rate_limit: 0, timeout_before: 0, timeout_after: 0, delay_ms: [0, 0] });
    const { currencies, payments } = await sandbox.books();
    assert.equal(payments.length, 20);
    assert.equal(currencies.usd.captured, intents.reduce((sum, { amount_received: received }) => sum + received, 0));
  }));

  it('can have cards charged a while later, well or not', () => withSandbox(['--faults', '{"processing":1,"later_ms":100}'], async (sandbox, stripe) => {
    const good = await stripe.paymentIntents.create(paying);
    const bad = await stripe.paymentIntents.create({ ...paying, payment_method: 'pm_card_chargeDeclined' });
    assert.deepEqual([good.status, bad.status], ['processing', 'processing']);
    await assert.rejects(stripe.paymentIntents.cancel(good.id), { code: 'payment_intent_unexpected_state' });
    await until('both are decided', async () => (await stripe.events.list({ types: ['payment_intent.succeeded', 'payment_intent.payment_failed'] })).data.length === 2);
    assert.equal((await stripe.paymentIntents.retrieve(good.id)).status, 'succeeded');
    assert.equal((await stripe.paymentIntents.retrieve(bad.id)).status, 'requires_payment_method');
    assert.equal((await stripe.events.list({ type: 'payment_intent.processing' })).data.length, 2);
  }));

  it('are out of reach for web pages, as the books are', () => withSandbox([], async (sandbox) => {
    const headers = { Origin: 'https://shop.example' };
    assert.equal((await sandbox.request('/sandbox/faults', { method: 'POST', body: '{"fail":1}', headers })).status, 403);
    assert.equal((await sandbox.request('/sandbox/books', { headers })).status, 403);
    assert.equal((await sandbox.request('/sandbox/faults')).json.fail, 0);
  }));

  it('end at once when the sandbox stops', async () => {
    const sandbox = await startSandbox();
    const stripe = sandbox.client();
    await sandbox.faults({ fail_next: { route: 'create', mode: 'timeout_before' } });
    const held = assert.rejects(raw(sandbox, stripe, plain));
    await until('the request is held', async () => (await sandbox.request('/sandbox/faults')).json.fail_next.length === 0);
    const began = Date.now();
    await sandbox.stop();
    await held;
    assertTook(Date.now() - began, 15_000, 'the end of the sandbox');
  });
});

describe('webhooks', () => {
  it('tell every event, signed as the official client expects it', () => withWebhook(['--faults', '{"later_ms":50}'], undefined, async (sandbox, receiver, stripe) => {
    const paid = await stripe.paymentIntents.create({ ...paying, payment_method: 'pm_card_refundFail' });
    await stripe.refunds.create({ payment_intent: paid.id });
    const held = await stripe.paymentIntents.create({ ...paying, capture_method: 'manual' });
    await stripe.paymentIntents.capture(held.id);
    const left = await stripe.paymentIntents.create(terms);
    await stripe.paymentIntents.cancel(left.id);
    const acting = await stripe.paymentIntents.create({ ...paying, payment_method: 'pm_card_authenticationRequired' });
    const { url } = acting.next_action.redirect_to_url;
    await sandbox.post(new URL(url).pathname, { result: 'fail' });
    await assert.rejects(stripe.paymentIntents.create({ ...paying, payment_method: 'pm_card_chargeDeclined' }));
    await stripe.paymentIntents.create({ ...paying, payment_method: 'pm_card_createDispute' });
    const expected = {
      'payment_intent.created': 6, 'payment_intent.succeeded': 3, 'charge.succeeded': 3, 'refund.created': 1, 'charge.refunded': 1,
      'refund.failed': 1, 'refund.updated': 1, 'charge.refund.updated': 1, 'payment_intent.amount_capturable_updated': 1,
      'charge.captured': 1, 'payment_intent.canceled': 1, 'payment_intent.requires_action': 1, 'payment_intent.payment_failed': 2,
      'charge.failed': 1, 'charge.dispute.created': 1,
    };
    const total = Object.values(expected).reduce((sum, n) => sum + n);
    await until('all events have arrived', () => receiver.received.length >= total);
    const counts = {};
    for (const type of receiver.types()) counts[type] = (counts[type] ?? 0) + 1;
    assert.deepEqual(counts, expected);
    for (const { body, signature } of receiver.received) {
      const event = stripe.webhooks.constructEvent(body, signature, SECRET);
      assert.equal(event.object, 'event');
      assert.equal(event.livemode, false);
      assert.throws(() => stripe.webhooks.constructEvent(`${body} `, signature, SECRET), Stripe.errors.StripeSignatureVerificationError);
    }
    const refund = receiver.received.find(({ json }) => json.type === 'refund.failed').json.data.object;
    assert.equal(refund.status, 'failed');
  }));

  it('come again until they are accepted', async () => {
    let refused = 0;
    await withWebhook([], () => (refused++ < 2 ? 500 : 200), async (sandbox, receiver, stripe) => {
      await stripe.paymentIntents.create(terms);
      await until('it has been accepted', () => receiver.received.length === 3);
      assert.equal(new Set(receiver.received.map(({ json }) => json.id)).size, 1);
    });
  });

  it('may be dropped, duplicated, late or switched off', () => withWebhook([], undefined, async (sandbox, receiver, stripe) => {
    await sandbox.faults({ webhook_drop: 1 });
    await stripe.paymentIntents.create(terms);
    await sandbox.faults({ webhook_drop: 0, webhooks: false });
    await stripe.paymentIntents.create(terms);
    await sandbox.faults({ webhooks: true, webhook_duplicate: 1, webhook_delay_ms: [20, 20] });
    const told = await stripe.paymentIntents.create(terms);
    await until('both have arrived', () => receiver.received.length === 2);
    assert.deepEqual(receiver.received.map(({ json }) => json.data.object.id), [told.id, told.id]);
    assert.equal(receiver.received[0].body, receiver.received[1].body);
    assert.equal((await stripe.events.list()).data.length, 3, 'all are recorded');
  }));

  it('may overtake each other', () => withWebhook(['--faults', '{"webhook_reorder":0.5}'], undefined, async (sandbox, receiver, stripe) => {
    const made = [];
    await until('one overtakes another', async () => {
      for (let n = 0; n < 8; n++) made.push((await stripe.paymentIntents.create(terms)).id);
      await until('all have arrived', () => receiver.received.length === made.length);
      const arrived = receiver.received.map(({ json }) => json.data.object.id);
      assert.deepEqual([...arrived].sort(), [...made].sort());
      return arrived.some((id, n) => id !== made[n]);
    });
  }));
});

describe('a sandbox with a file', () => {
  for (const signal of ['SIGTERM', 'SIGKILL']) {
    it(`has everything after ${signal}, answers and undelivered events too`, async () => {
      const dir = tempDir();
      let down = true;
      const receiver = await startReceiver(() => (down ? 500 : 200));
      const sandbox = await startSandbox({
        args: ['--data', path.join(dir, 'sandbox.db'), '--webhook', receiver.url, '--webhook-secret', SECRET, '--faults', '{"later_ms":300}'],
      });
      const { account } = sandbox.client();
      let stripe = sandbox.client({ account });
      const metadata = { holdfast_payment: 'pay_7', text: 'a=b&c[d] ü' };
      const paid = await stripe.paymentIntents.create({ ...paying, metadata, description: 'Seats', payment_method: 'pm_card_refundFail' }, { idempotencyKey: 'k' });
      const refund = await stripe.refunds.create({ payment_intent: paid.id, amount: 500, metadata: { n: '1' } });
      const declined = await stripe.paymentIntents.create(terms);
      await assert.rejects(stripe.paymentIntents.confirm(declined.id, { payment_method: 'pm_card_chargeDeclined' }));
      const acting = await stripe.paymentIntents.create({ ...paying, payment_method: 'pm_card_authenticationRequired', return_url: 'https://shop.example/' });
      const canceled = await stripe.paymentIntents.cancel((await stripe.paymentIntents.create(terms)).id, { cancellation_reason: 'duplicate' });
      const disputed = await stripe.paymentIntents.create({ ...paying, payment_method: 'pm_card_createDispute' });
      const ids = [paid, declined, acting, canceled, disputed].map(({ id }) => id);
      const read = () => Promise.all(ids.map(async (id) => ({ ...await stripe.paymentIntents.retrieve(id) })));
      const before = await read();
      const books = await sandbox.books();
      await sandbox.restart(signal);
      stripe = sandbox.client({ account });
      const now = await read();
      const url = now[2].next_action.redirect_to_url;
      assert.equal(new URL(url.url).pathname, new URL(before[2].next_action.redirect_to_url.url).pathname);
      before[2].next_action.redirect_to_url = url; // its port is another now
      assert.deepEqual(now, before);
      assert.deepEqual((await sandbox.books()).payments.map((row) => row.intent), books.payments.map((row) => row.intent));
      const again = await stripe.paymentIntents.create({ ...paying, metadata, description: 'Seats', payment_method: 'pm_card_refundFail' }, { idempotencyKey: 'k' });
      assert.deepEqual({ ...again }, { ...paid });
      assert.equal((await stripe.charges.list({ limit: 100 })).data.length, 3);
      await until('the refund has failed', async () => (await stripe.refunds.retrieve(refund.id)).status === 'failed');
      await until('the dispute has come', async () => (await stripe.disputes.list()).data.length === 1);
      down = false;
      const accepted = () => new Set(receiver.received.map(({ json }) => json.id));
      const { data } = await stripe.events.list({ limit: 100 });
      await until('every event has been sent', () => data.every(({ id }) => accepted().has(id)));
      await sandbox.stop();
      await receiver.stop();
      removeTempDir(dir);
    });
  }

  it('loses nothing that it acknowledged when it is killed amid many payments', async () => {
    const dir = tempDir();
    const sandbox = await startSandbox({ args: ['--data', path.join(dir, 'sandbox.db')] });
    const stripe = sandbox.client({ account: 'killed' });
    const acknowledged = new Map();
    let going = true;
    const buyers = Array.from({ length: 16 }, async (_, buyer) => {
      for (let n = 0; going; n++) {
        const metadata = { holdfast_payment: `${buyer}-${n}` };
        const paid = await stripe.paymentIntents.create({ ...paying, metadata }).catch(() => null);
        if (paid) acknowledged.set(paid.metadata.holdfast_payment, paid.id);
        else going = false;
      }
    });
    await until('many have paid', () => acknowledged.size >= 200);
    await sandbox.restart('SIGKILL');
    await Promise.all(buyers);
    const { payments, currencies } = await sandbox.books();
    const stored = new Map(payments.map((row) => [row.holdfast_payment, row]));
    for (const [payment, intent] of acknowledged) {
      assert.equal(stored.get(payment)?.intent, intent);
      assert.equal(stored.get(payment).captured, paying.amount);
    }
    assert.equal(currencies.usd.captured, payments.length * paying.amount, 'no payment is half stored');
    await sandbox.stop();
    removeTempDir(dir);
  });

  it('is refused to a second sandbox, and a file of another kind to all', async () => {
    const dir = tempDir();
    const file = path.join(dir, 'sandbox.db');
    const sandbox = await startSandbox({ args: ['--data', file] });
    await assert.rejects(startSandbox({ args: ['--data', file] }));
    await sandbox.stop();
    await assert.rejects(startSandbox({ args: ['--data', '/proc/version'] }));
    await assert.rejects(startSandbox({ args: ['--listen', '0.0.0.0:0'] }), /loopback/);
    await assert.rejects(startSandbox({ args: ['--webhook', 'http://127.0.0.1:1/'] }), /webhook-secret/);
    await assert.rejects(startSandbox({ args: ['--webhook', 'ftp://127.0.0.1/', '--webhook-secret', SECRET] }), /webhook/);
    await assert.rejects(startSandbox({ args: ['--faults', '{"fail":2}'] }), /fail/);
    removeTempDir(dir);
  });
});

describe('the books', () => {
  it('add up by currency and by payment', () => withSandbox([], async (sandbox, stripe) => {
    const euro = await stripe.paymentIntents.create({ ...paying, currency: 'eur', metadata: { holdfast_payment: 'pay_e' } });
    await stripe.refunds.create({ payment_intent: euro.id, amount: 400 });
    await stripe.paymentIntents.create({ ...paying, capture_method: 'manual' });
    await stripe.paymentIntents.cancel((await stripe.paymentIntents.create(terms)).id);
    const { currencies, payments } = await sandbox.books();
    assert.deepEqual(currencies, {
      eur: { captured: 2500, refunded: 400, disputed: 0, succeeded: 1, canceled: 0, requires_capture: 0, open: 0 },
      usd: { captured: 0, refunded: 0, disputed: 0, succeeded: 0, canceled: 1, requires_capture: 1, open: 1 },
    });
    assert.deepEqual(payments[0], {
      holdfast_payment: 'pay_e', intent: euro.id, status: 'succeeded', currency: 'eur', amount: 2500, captured: 2500, refunded: 400, disputed: 0,
    });
  }));
});
