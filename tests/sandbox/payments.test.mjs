// The payment sandbox as Stripe's official client sees it: intents, cards, actions, captures, refunds, lists, errors.
// backends: own

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import Stripe from 'stripe';
import { reap, until } from '../support/server.mjs';
import { startSandbox } from '../support/sandbox.mjs';

let sandbox;
let stripe;
before(async () => {
  sandbox = await startSandbox({ args: ['--faults', '{"later_ms":100}', '--log-level', 'debug'] });
  stripe = sandbox.client();
});
after(async () => {
  await sandbox.stop();
  await reap();
});

const create = (fields = {}, options) => stripe.paymentIntents.create(
  { amount: 6500, currency: 'usd', payment_method_types: ['card'], ...fields }, options);
const pay = async (card, fields = {}) => {
  const intent = await create(fields);
  return stripe.paymentIntents.confirm(intent.id, { payment_method: card });
};
const refusal = (promise, type, expected = {}) => assert.rejects(promise, (error) => {
  assert.ok(error instanceof type, `${error.constructor.name}: ${error.message}`);
  for (const [name, value] of Object.entries(expected)) assert.equal(error[name], value, `${name} of ${error.message}`);
  return true;
});
const { StripeCardError, StripeInvalidRequestError, StripeAuthenticationError } = Stripe.errors;

describe('an intent', () => {
  it('is created with what was asked for, and found again', async () => {
    const intent = await create({ description: 'Two seats', receipt_email: 'a@example.test', metadata: { holdfast_payment: 'pay_1', note: 'ä & =' } });
    assert.equal(intent.status, 'requires_payment_method');
    assert.equal(intent.amount, 6500);
    assert.equal(intent.client_secret.startsWith(`${intent.id}_secret_`), true);
    assert.deepEqual(intent.metadata, { holdfast_payment: 'pay_1', note: 'ä & =' });
    const found = await stripe.paymentIntents.retrieve(intent.id);
    assert.deepEqual({ ...found }, { ...intent });
    assert.match(intent.lastResponse.requestId, /^req_/);
  });

  it('is paid by a good card', async () => {
    const paid = await pay('pm_card_visa');
    assert.equal(paid.status, 'succeeded');
    assert.equal(paid.amount_received, 6500);
    const charge = await stripe.charges.retrieve(paid.latest_charge);
    assert.equal(charge.payment_intent, paid.id);
    assert.equal(charge.captured, true);
    assert.equal(charge.payment_method_details.card.last4, '4242');
  });

  it('can be created and confirmed in one call', async () => {
    const paid = await create({ confirm: true, payment_method: 'pm_card_visa' });
    assert.equal(paid.status, 'succeeded');
  });

  it('waits for its confirmation when it has a method', async () => {
    const intent = await create({ payment_method: 'pm_card_visa' });
    assert.equal(intent.status, 'requires_confirmation');
    assert.equal((await stripe.paymentIntents.confirm(intent.id)).status, 'succeeded');
  });

  it('can be changed until it is paid', async () => {
    const intent = await create({ metadata: { a: '1', b: '2' } });
    const changed = await stripe.paymentIntents.update(intent.id, { amount: 7000, metadata: { a: '', c: '3' } });
    assert.equal(changed.amount, 7000);
    assert.deepEqual(changed.metadata, { b: '2', c: '3' });
    const paid = await stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_visa' });
    assert.equal(paid.amount_received, 7000);
    await refusal(stripe.paymentIntents.update(intent.id, { amount: 8000 }), StripeInvalidRequestError, { code: 'payment_intent_unexpected_state' });
  });

  it('can be cancelled until it is paid', async () => {
    const intent = await create();
    const canceled = await stripe.paymentIntents.cancel(intent.id, { cancellation_reason: 'abandoned' });
    assert.equal(canceled.status, 'canceled');
    assert.equal(canceled.cancellation_reason, 'abandoned');
    assert.ok(canceled.canceled_at >= intent.created);
    const paid = await pay('pm_card_visa');
    await assert.rejects(stripe.paymentIntents.cancel(paid.id), (error) => {
      assert.equal(error.code, 'payment_intent_unexpected_state');
      assert.equal(error.payment_intent.id, paid.id);
      return true;
    });
    await refusal(stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_visa' }), StripeInvalidRequestError, { code: 'payment_intent_unexpected_state' });
  });

  it('is captured later if that was asked for, also in part', async () => {
    const held = await pay('pm_card_visa', { capture_method: 'manual' });
    assert.equal(held.status, 'requires_capture');
    assert.equal(held.amount_capturable, 6500);
    await refusal(stripe.paymentIntents.capture(held.id, { amount_to_capture: 6501 }), StripeInvalidRequestError, { code: 'amount_too_large' });
    const captured = await stripe.paymentIntents.capture(held.id, { amount_to_capture: 6000 });
    assert.equal(captured.status, 'succeeded');
    assert.equal(captured.amount_received, 6000);
    assert.equal(captured.amount_capturable, 0);
    await refusal(stripe.paymentIntents.capture(held.id), StripeInvalidRequestError, { code: 'payment_intent_unexpected_state' });
  });

  it('releases an authorization when it is cancelled', async () => {
    const held = await pay('pm_card_visa', { capture_method: 'manual' });
    const canceled = await stripe.paymentIntents.cancel(held.id, { expand: ['latest_charge'] });
    assert.equal(canceled.status, 'canceled');
    assert.equal(canceled.amount_received, 0);
    assert.equal(canceled.latest_charge.captured, false);
    assert.equal(canceled.latest_charge.refunded, true);
  });
});

describe('a declined card', () => {
  const declines = [
    ['pm_card_visa_chargeDeclined', 'card_declined', 'generic_decline'],
    ['pm_card_visa_chargeDeclinedInsufficientFunds', 'card_declined', 'insufficient_funds'],
    ['pm_card_chargeDeclinedProcessingError', 'processing_error', undefined],
    ['pm_card_chargeDeclinedExpiredCard', 'expired_card', undefined],
    ['pm_card_chargeDeclinedIncorrectCvc', 'incorrect_cvc', undefined],
    ['pm_card_chargeCustomerFail', 'card_declined', 'generic_decline'],
  ];
  for (const [card, code, declineCode] of declines) {
    it(`${card} says ${declineCode ?? code} and leaves the intent to be paid`, async () => {
      const intent = await create();
      await assert.rejects(stripe.paymentIntents.confirm(intent.id, { payment_method: card }), (error) => {
        assert.ok(error instanceof StripeCardError);
        assert.equal(error.statusCode, 402);
        assert.equal(error.code, code);
        assert.equal(error.decline_code || undefined, declineCode);
        assert.equal(error.payment_intent.id, intent.id);
        assert.equal(error.payment_intent.status, 'requires_payment_method');
        assert.equal(error.payment_method.type, 'card');
        return true;
      });
      const after = await stripe.paymentIntents.retrieve(intent.id, { expand: ['latest_charge'] });
      assert.equal(after.last_payment_error.code, code);
      assert.equal(after.payment_method, null);
      assert.equal(after.latest_charge.status, 'failed');
      const paid = await stripe.paymentIntents.confirm(intent.id, { payment_method: 'pm_card_visa' });
      assert.equal(paid.status, 'succeeded');
      assert.equal(paid.last_payment_error, null);
    });
  }
});

describe('a card form', () => {
  it('pays with the publishable key and the client secret', async () => {
    const intent = await create();
    const answer = await sandbox.confirm(stripe, intent, '4242 4242 4242 4242', {});
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.status, 'succeeded');
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    const found = await sandbox.request(`/v1/payment_intents/${intent.id}?key=pk_test_${stripe.account}&client_secret=${intent.client_secret}`);
    assert.equal(found.json.status, 'succeeded');
  });

  const wrong = [
    ['a number with a wrong digit', '4242424242424241', {}, 'incorrect_number'],
    ['no number', 'seat', {}, 'incorrect_number'],
    ['a card of last year', '4242424242424242', { 'payment_method_data[card][exp_year]': String(new Date().getFullYear() - 1) }, 'expired_card'],
    ['a month that is none', '4242424242424242', { 'payment_method_data[card][exp_month]': '13' }, 'invalid_expiry_month'],
    ['a year that is none', '4242424242424242', { 'payment_method_data[card][exp_year]': 'x' }, 'invalid_expiry_year'],
    ['a security code that is none', '4242424242424242', { 'payment_method_data[card][cvc]': '12' }, 'invalid_cvc'],
    ['a card that is no test card', '4111111111111111', {}, 'card_declined'],
  ];
  for (const [what, number, fields, code] of wrong) {
    it(`refuses ${what}, and the intent stays as it was`, async () => {
      const intent = await create();
      const answer = await sandbox.confirm(stripe, intent, number, fields);
      assert.equal(answer.status, 402, answer.text);
      assert.equal(answer.json.error.type, 'card_error');
      assert.equal(answer.json.error.code, code);
      assert.deepEqual({ ...await stripe.paymentIntents.retrieve(intent.id) }, { ...intent });
    });
  }

  it('needs the client secret, and may do nothing else', async () => {
    const intent = await create();
    const guess = await sandbox.confirm(stripe, { id: intent.id, client_secret: `${intent.id}_secret_0` }, '4242424242424242');
    assert.equal(guess.status, 400);
    assert.equal(guess.json.error.param, 'client_secret');
    const without = await sandbox.post(`/v1/payment_intents/${intent.id}/confirm`, { key: `pk_test_${stripe.account}`, payment_method: 'pm_card_visa' });
    assert.equal(without.status, 401);
    assert.equal(without.json.error.code, 'secret_key_required');
    const list = await sandbox.request('/v1/payment_intents', { headers: { Authorization: `Bearer pk_test_${stripe.account}` } });
    assert.equal(list.status, 401);
    assert.equal((await stripe.paymentIntents.retrieve(intent.id)).status, 'requires_payment_method');
  });

  it('may be on any page: a preflight is answered', async () => {
    const answer = await sandbox.request('/v1/payment_intents/pi_x/confirm', {
      method: 'OPTIONS', headers: { Origin: 'https://shop.example', 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type' },
    });
    assert.equal(answer.status, 204);
    assert.equal(answer.headers.get('access-control-allow-origin'), '*');
    assert.match(answer.headers.get('access-control-allow-methods'), /POST/);
  });
});

describe('a card that requires an action', () => {
  const begin = async (number, fields = {}) => {
    const intent = await create(fields);
    const answer = await sandbox.confirm(stripe, intent, number, { return_url: 'https://shop.example/back?order=7#done' });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.json.status, 'requires_action');
    assert.equal(answer.json.next_action.type, 'redirect_to_url');
    return { intent, url: answer.json.next_action.redirect_to_url.url };
  };
  const press = (url, result) => sandbox.post(new URL(url).pathname, { result });

  for (const number of ['4000002500003155', '4000002760003184']) {
    it(`${number} pays when the buyer completes it`, async () => {
      const { intent, url } = await begin(number, { description: '<script>' });
      const page = await sandbox.request(url);
      assert.equal(page.status, 200);
      assert.match(page.headers.get('content-type'), /^text\/html/);
      assert.match(page.headers.get('content-security-policy'), /default-src 'none'.*form-action 'self' https:\/\/shop\.example$/);
      assert.match(page.text, />Complete<.*>Fail</);
      assert.ok(!page.text.includes('<script>') && page.text.includes('&lt;script&gt;'));
      const back = await press(url, 'complete');
      assert.equal(back.status, 303);
      const to = new URL(back.headers.get('location'));
      assert.equal(`${to.origin}${to.pathname}${to.hash}`, 'https://shop.example/back#done');
      assert.deepEqual(Object.fromEntries(to.searchParams), {
        order: '7', payment_intent: intent.id, payment_intent_client_secret: intent.client_secret, redirect_status: 'succeeded',
      });
      assert.equal((await stripe.paymentIntents.retrieve(intent.id)).status, 'succeeded');
    });
  }

  it('is not paid when the buyer fails it, and can be tried again', async () => {
    const { intent, url } = await begin('4000002760003184');
    const back = await press(url, 'fail');
    assert.equal(new URL(back.headers.get('location')).searchParams.get('redirect_status'), 'failed');
    const failed = await stripe.paymentIntents.retrieve(intent.id);
    assert.equal(failed.status, 'requires_payment_method');
    assert.equal(failed.last_payment_error.code, 'payment_intent_authentication_failure');
    assert.equal((await sandbox.confirm(stripe, intent, '4242424242424242')).json.status, 'succeeded');
    assert.equal((await press(url, 'complete')).status, 303, 'the page of a payment that is over');
    assert.equal((await stripe.paymentIntents.retrieve(intent.id)).amount_received, 6500);
  });

  it('can be declined after the action', async () => {
    const { intent, url } = await begin('4000008400001629');
    await press(url, 'complete');
    const declined = await stripe.paymentIntents.retrieve(intent.id);
    assert.equal(declined.status, 'requires_payment_method');
    assert.equal(declined.last_payment_error.code, 'card_declined');
  });

  it('has a page whose address cannot be guessed, and only its newest', async () => {
    const { intent, url } = await begin('4000002760003184');
    assert.equal((await press(url.replace(/.$/, (last) => (last === '0' ? '1' : '0')), 'complete')).status, 404);
    await sandbox.confirm(stripe, intent, '4000002760003184');
    assert.equal((await press(url, 'complete')).status, 404);
    assert.equal((await stripe.paymentIntents.retrieve(intent.id)).status, 'requires_action');
  });
});

describe('a refund', () => {
  it('returns a part, then the rest, and then there is nothing left', async () => {
    const paid = await pay('pm_card_visa');
    const part = await stripe.refunds.create({ payment_intent: paid.id, amount: 1500, reason: 'requested_by_customer', metadata: { why: 'late' } });
    assert.equal(part.status, 'succeeded');
    assert.equal(part.amount, 1500);
    await refusal(stripe.refunds.create({ payment_intent: paid.id, amount: 5001 }), StripeInvalidRequestError, { param: 'amount' });
    const rest = await stripe.refunds.create({ charge: paid.latest_charge });
    assert.equal(rest.amount, 5000);
    await refusal(stripe.refunds.create({ payment_intent: paid.id }), StripeInvalidRequestError, { code: 'charge_already_refunded', statusCode: 400 });
    const intent = await stripe.paymentIntents.retrieve(paid.id, { expand: ['latest_charge.refunds'] });
    assert.equal(intent.latest_charge.amount_refunded, 6500);
    assert.equal(intent.latest_charge.refunded, true);
    assert.deepEqual(intent.latest_charge.refunds.data.map(({ id }) => id), [rest.id, part.id]);
    const listed = await stripe.refunds.list({ payment_intent: paid.id });
    assert.deepEqual(listed.data.map(({ id }) => id), [rest.id, part.id]);
    assert.deepEqual({ ...await stripe.refunds.retrieve(part.id) }, { ...part });
  });

  it('may fail after it succeeded', async () => {
    const paid = await pay('pm_card_refundFail');
    const refund = await stripe.refunds.create({ payment_intent: paid.id });
    assert.equal(refund.status, 'succeeded');
    const failed = await until('the refund fails', async () => {
      const now = await stripe.refunds.retrieve(refund.id);
      return now.status === 'failed' && now;
    });
    assert.equal(failed.failure_reason, 'expired_or_canceled_card');
    assert.equal((await stripe.charges.retrieve(paid.latest_charge)).amount_refunded, 0);
  });

  it('may be pending for a while', async () => {
    const paid = await pay('pm_card_pendingRefund');
    const refund = await stripe.refunds.create({ payment_intent: paid.id });
    assert.equal(refund.status, 'pending');
    await until('the refund succeeds', async () => (await stripe.refunds.retrieve(refund.id)).status === 'succeeded');
  });

  it('is refused for money that was never received', async () => {
    const intent = await create();
    await refusal(stripe.refunds.create({ payment_intent: intent.id }), StripeInvalidRequestError);
    const held = await pay('pm_card_visa', { capture_method: 'manual' });
    await refusal(stripe.refunds.create({ payment_intent: held.id }), StripeInvalidRequestError);
    await refusal(stripe.refunds.create({ payment_intent: 'pi_none' }), StripeInvalidRequestError, { code: 'resource_missing' });
    await refusal(stripe.refunds.create({}), StripeInvalidRequestError, { code: 'parameter_missing' });
  });
});

describe('a disputed card', () => {
  it('takes the money back a moment later', async () => {
    const paid = await pay('pm_card_createDispute');
    const [dispute] = await until('the dispute comes', async () => {
      const { data } = await stripe.disputes.list({ payment_intent: paid.id });
      return data.length > 0 && data;
    });
    assert.equal(dispute.amount, 6500);
    assert.equal(dispute.status, 'needs_response');
    assert.equal((await stripe.charges.retrieve(paid.latest_charge)).disputed, true);
    await refusal(stripe.refunds.create({ payment_intent: paid.id }), StripeInvalidRequestError, { code: 'charge_disputed' });
    assert.deepEqual({ ...await stripe.disputes.retrieve(dispute.id) }, { ...dispute });
  });
});

describe('lists', () => {
  it('are newest first, and the client pages through all of them', async () => {
    const mine = sandbox.client();
    const made = [];
    for (let n = 0; n < 25; n++) made.unshift((await mine.paymentIntents.create({ amount: 1000 + n, currency: 'eur' })).id);
    const seen = [];
    for await (const intent of mine.paymentIntents.list({ limit: 10 })) seen.push(intent.id);
    assert.deepEqual(seen, made);
    const page = await mine.paymentIntents.list({ limit: 3, starting_after: made[4] });
    assert.deepEqual(page.data.map(({ id }) => id), made.slice(5, 8));
    assert.equal(page.has_more, true);
    assert.equal(page.url, '/v1/payment_intents');
    const back = await mine.paymentIntents.list({ limit: 3, ending_before: made[4] });
    assert.deepEqual(back.data.map(({ id }) => id), made.slice(1, 4));
    assert.equal(back.has_more, true);
    const none = await mine.paymentIntents.list({ created: { lt: 1000 } });
    assert.deepEqual(none.data, []);
    assert.equal((await mine.paymentIntents.list({ created: { gte: 1000, lte: 4_000_000_000 }, limit: 100 })).data.length, 25);
    await refusal(mine.paymentIntents.list({ limit: 101 }), StripeInvalidRequestError, { param: 'limit' });
    await refusal(mine.paymentIntents.list({ starting_after: 'pi_none' }), StripeInvalidRequestError, { code: 'resource_missing' });
  });

  it('have the events of the account, by type', async () => {
    const mine = sandbox.client();
    const intent = await mine.paymentIntents.create({ amount: 1000, currency: 'usd', confirm: true, payment_method: 'pm_card_visa' }, { idempotencyKey: 'events-1' });
    const all = await mine.events.list();
    assert.deepEqual(all.data.map(({ type }) => type), ['payment_intent.succeeded', 'charge.succeeded', 'payment_intent.created']);
    const [succeeded] = (await mine.events.list({ types: ['payment_intent.succeeded', 'charge.refunded'] })).data;
    assert.equal(succeeded.data.object.id, intent.id);
    assert.equal(succeeded.request.idempotency_key, 'events-1');
    assert.equal(succeeded.request.id, intent.lastResponse.requestId);
    assert.deepEqual({ ...await mine.events.retrieve(succeeded.id) }, { ...succeeded });
    assert.equal((await mine.events.list({ type: 'charge.succeeded' })).data.length, 1);
    assert.equal((await mine.charges.list({ payment_intent: intent.id, expand: ['data.refunds'] })).data[0].refunds.data.length, 0);
  });
});

describe('refusals', () => {
  it('name the parameter', async () => {
    await refusal(create({ amount: 49 }), StripeInvalidRequestError, { code: 'amount_too_small', param: 'amount', statusCode: 400 });
    await refusal(create({ amount: 49, currency: 'jpy' }), StripeInvalidRequestError, { code: 'amount_too_small' });
    assert.equal((await create({ amount: 50, currency: 'JPY' })).currency, 'jpy');
    assert.equal((await create({ amount: 30, currency: 'gbp' })).amount, 30);
    await refusal(create({ amount: 100_000_000 }), StripeInvalidRequestError, { code: 'amount_too_large' });
    await refusal(create({ amount: 'many' }), StripeInvalidRequestError, { code: 'parameter_invalid_integer', param: 'amount' });
    await refusal(create({ amount: undefined }), StripeInvalidRequestError, { code: 'parameter_missing', param: 'amount' });
    await refusal(create({ currency: 'xyz' }), StripeInvalidRequestError, { param: 'currency' });
    await refusal(create({ colour: 'red' }), StripeInvalidRequestError, { code: 'parameter_unknown', param: 'colour' });
    await refusal(create({ payment_method_types: ['sofort'] }), StripeInvalidRequestError, { param: 'payment_method_types' });
    await refusal(create({ payment_method: 'pm_none' }), StripeInvalidRequestError, { code: 'resource_missing', param: 'payment_method' });
    await refusal(create({ return_url: 'https://shop.example/\r\nSet-Cookie: a=b' }), StripeInvalidRequestError, { code: 'url_invalid', param: 'return_url' });
    for (const url of ['shop', 'file:///etc/passwd', 'FILE://host/x', 'javascript://%0aalert(1)', 'data://x', 'https://', 'https:///x', '://x', '1://x', 'a b://x']) {
      await refusal(create({ return_url: url }), StripeInvalidRequestError, { code: 'url_invalid' });
    }
    for (const url of ['http://127.0.0.1:1/back', 'com.example.shop://paid']) assert.ok((await create({ return_url: url })).id); // an app's own scheme, as with Stripe
    await refusal(create({ expand: ['moon'] }), StripeInvalidRequestError, { param: 'expand' });
    await refusal(create({ metadata: { ['k'.repeat(41)]: 'v' } }), StripeInvalidRequestError, { param: 'metadata' });
    await refusal(create({ metadata: { k: 'v'.repeat(501) } }), StripeInvalidRequestError, { param: 'metadata' });
    await refusal(create({ metadata: Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`k${n}`, 'v'])) }), StripeInvalidRequestError, { param: 'metadata' });
    await refusal(stripe.paymentIntents.retrieve('pi_none'), StripeInvalidRequestError, { code: 'resource_missing', statusCode: 404 });
  });

  it('keep accounts apart', async () => {
    const intent = await create();
    const other = sandbox.client();
    await refusal(other.paymentIntents.retrieve(intent.id), StripeInvalidRequestError, { code: 'resource_missing' });
    await refusal(other.paymentIntents.cancel(intent.id), StripeInvalidRequestError, { code: 'resource_missing' });
    assert.deepEqual((await other.paymentIntents.list()).data, []);
    assert.deepEqual((await other.events.list()).data, []);
  });

  it('are authentication errors for keys that are none', async () => {
    const { hostname, port } = new URL(sandbox.url);
    const options = { host: hostname, port, protocol: 'http', maxNetworkRetries: 0, telemetry: false };
    await refusal(new Stripe('sk_nonsense', options).balance.retrieve(), StripeAuthenticationError);
    await refusal(new Stripe('sk_live_danger', options).balance.retrieve(), StripeAuthenticationError);
    const none = await sandbox.request('/v1/balance');
    assert.equal(none.status, 401);
    assert.match(none.json.error.message, /did not provide an API key/);
    const basic = await sandbox.request('/v1/balance', { headers: { Authorization: `Basic ${Buffer.from('sk_test_x:').toString('base64')}` } });
    assert.equal(basic.status, 200);
    assert.equal((await stripe.balance.retrieve()).livemode, false);
  });

  it('have the API\'s format also where the transport refuses', async () => {
    for (const [target, options, status] of [
      ['/v1/nothing', {}, 404],
      ['/v1/refunds', { method: 'DELETE' }, 405],
      ['/v1/payment_intents', { method: 'POST', body: 'x'.repeat(70_000), headers: { Authorization: 'Bearer sk_test_x' } }, 413],
      ['/v1/payment_intents', { method: 'POST', body: 'a=%zz', headers: { Authorization: 'Bearer sk_test_x' } }, 400],
      ['/v1/payment_intents', { method: 'POST', body: 'a[b=1', headers: { Authorization: 'Bearer sk_test_x' } }, 400],
    ]) {
      const answer = await sandbox.request(target, options);
      assert.equal(answer.status, status, answer.text);
      assert.equal(answer.json.error.type, 'invalid_request_error');
    }
  });
});

describe('the log', () => {
  it('has no secret', () => {
    assert.match(sandbox.stderr(), /route=\/v1\/payment_intents\/\*\/confirm/);
    for (const secret of ['4242', 'sk_test', 'pk_test', '_secret_', 'pi_']) assert.ok(!sandbox.stderr().includes(secret), secret);
  });
});
