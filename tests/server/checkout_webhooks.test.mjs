// Webhooks of the payment provider: which are believed, what repeated, late and foreign ones do, and that every
// checkout ends without any.
// backends: sqlite

import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import Stripe from 'stripe';
import { CARD, openShop, WEBHOOK_SECRET } from '../support/checkout.mjs';
import { assertInvalid, assertOk, assertProblem } from '../support/expect.mjs';
import { inTime, reap, until } from '../support/server.mjs';

const OTHER_SECRET = 'whsec_of_the_next_month';

describe('a webhook', () => {
  let shop;
  let server;
  let event;
  before(async () => {
    shop = await openShop({ env: { STRIPE_WEBHOOK_SECRET: `${WEBHOOK_SECRET},${OTHER_SECRET}` } });
    ({ server } = shop);
    shop.relay.forward = null; // the tests deliver what they want
    event = await server.createEvent({ sections: [{ name: 'S', price: 1000, rows: 3, seats_per_row: 20 }] });
  });
  after(async () => { try { await shop?.close(); } finally { await reap(); } });

  let seats = 0;
  const nextSeat = () => { seats += 1; return `S-${'ABC'[Math.floor((seats - 1) / 20)]}-${((seats - 1) % 20) + 1}`; };
  const now = () => Math.floor(Date.now() / 1000);
  const sign = (payload, options = {}) => Stripe.webhooks.generateTestHeaderString({ payload, secret: WEBHOOK_SECRET, ...options });
  const count = (result) => server.metric('holdfast_webhooks_total', { result });
  const counted = async (result, work) => {
    const before_ = await count(result);
    await work();
    assert.equal(await count(result), before_ + 1, result);
  };
  let events = 0;
  const envelope = (type, object, fields = {}) => ({
    id: `evt_suite${++events}`, object: 'event', type, created: now(), livemode: false, api_version: '2020-08-27', pending_webhooks: 1,
    request: { id: null, idempotency_key: null }, data: { object }, ...fields,
  });
  const intentOf = async (booking) => JSON.parse(JSON.stringify(await shop.stripe.paymentIntents.retrieve(booking.payment.intent)));
  // A booking that was paid, and the event that tells of it, which nobody has delivered.
  const paid = async () => {
    const { booking } = await shop.checkout(event, nextSeat());
    const answer = await shop.pay(booking);
    assert.equal(answer.json.status, 'succeeded', answer.text);
    const mine = ({ json }) => json.type === 'payment_intent.succeeded' && json.data.object.id === booking.payment.intent;
    const sent = await until('the sandbox has sent it', () => shop.relay.received.find(mine));
    return { booking, sent };
  };

  it('that the provider has signed is believed', async () => {
    const { booking, sent } = await paid();
    await counted('stored', async () => assert.deepEqual(assertOk(await shop.webhook(sent.body, sent.signature)), { received: true }));
    const { status, payment } = await shop.read(booking);
    assert.deepEqual([status, payment.status, payment.amount_received], ['confirmed', 'succeeded', 1000]);
    const rows = (await server.read(`/v1/audit?event=${event.id}&limit=1000`)).data.filter((row) => row.booking === booking.id);
    assert.ok(rows.some(({ object, to }) => object === 'booking' && to === 'confirmed'));
    for (const { cause, actor } of rows) assert.equal(actor, cause === 'payment' ? 'provider:stripe' : 'open');
  });

  it('that comes again is acknowledged and changes nothing', async () => {
    const { booking, sent } = await paid();
    const answers = await Promise.all(Array.from({ length: 6 }, () => shop.webhook(sent.body, sent.signature)));
    for (const answer of answers) assertOk(answer);
    const audit = async () => (await server.read(`/v1/audit?event=${event.id}&limit=1000`)).data.filter((row) => row.booking === booking.id).length;
    const rows = await audit();
    await counted('repeated', async () => assertOk(await shop.webhook(sent.body, sent.signature)));
    assertOk(await shop.deliver({ ...sent.json, created: now() })); // by its id, whatever else it says
    assert.equal(await audit(), rows);
  });

  it('that is forged is refused', async () => {
    const { booking, sent } = await paid();
    const body = sent.body.toString();
    const hex = (secret, text) => crypto.createHmac('sha256', secret).update(text).digest('hex');
    const t = now();
    const good = hex(WEBHOOK_SECRET, `${t}.${body}`);
    const forged = {
      'no header': undefined, empty: '', nonsense: 'nonsense', 'no time': `v1=${good}`, 'no signature': `t=${t}`,
      'another secret': sign(body, { secret: 'whsec_of_somebody_else' }), 'another time': `t=${t + 1},v1=${good}`,
      'another scheme': `t=${t},v0=${good}`, short: `t=${t},v1=${good.slice(0, -2)}`, long: `t=${t},v1=${good}00`,
      'not hex': `t=${t},v1=${'z'.repeat(64)}`, 'the body alone': `t=${t},v1=${hex(WEBHOOK_SECRET, body)}`,
      'a time that is no number': `t=${t}x,v1=${hex(WEBHOOK_SECRET, `${t}x.${body}`)}`,
    };
    for (const [how, signature] of Object.entries(forged)) {
      await counted('forged', async () => assertProblem(await shop.webhook(body, signature), 400, 'bad_signature').code ?? assert.fail(how));
    }
    for (const changed of [body.replace('1000', '1001'), `${body} `, body.slice(0, -1), '', ` ${body}`]) {
      assertProblem(await shop.webhook(changed, `t=${t},v1=${good}`), 400, 'bad_signature');
    }
    assert.equal((await shop.read(booking)).status, 'pending');
    assertOk(await shop.webhook(body, `t=${t},v1=${good}`));
    assert.equal((await shop.read(booking)).status, 'confirmed');
  });

  it('that is older or newer than five minutes is refused', async () => {
    const { booking, sent } = await paid();
    for (const timestamp of [now() - 330, now() + 330, 1]) {
      assertProblem(await shop.webhook(sent.body, sign(sent.body.toString(), { timestamp })), 400, 'bad_signature');
    }
    assert.equal((await shop.read(booking)).status, 'pending');
    assertOk(await shop.webhook(sent.body, sign(sent.body.toString(), { timestamp: now() - 240 })));
    assert.equal((await shop.read(booking)).status, 'confirmed');
  });

  it('may be signed by any of the secrets, and have several signatures', async () => {
    const one = await paid();
    assertOk(await shop.webhook(one.sent.body, sign(one.sent.body.toString(), { secret: OTHER_SECRET })));
    assert.equal((await shop.read(one.booking)).status, 'confirmed');
    const two = await paid();
    const [t, v1] = sign(two.sent.body.toString()).split(',');
    assertOk(await shop.webhook(two.sent.body, `${t},v1=${'0'.repeat(64)},v0=x,${v1}`));
    assert.equal((await shop.read(two.booking)).status, 'confirmed');
  });

  it('that is signed, but no event, is refused', async () => {
    for (const body of ['', 'x', '[]', '{}', '{"id":"evt_1"', '{"object":"event"}', JSON.stringify(envelope('payment_intent.succeeded', {})),
      JSON.stringify({ ...envelope('payment_intent.succeeded', { object: 'payment_intent' }), created: 'now' })]) {
      await counted('malformed', async () => assertInvalid(await shop.webhook(body, sign(body)), 'event'));
    }
  });

  it('of a type that is not used is acknowledged', async () => {
    await counted('unused', async () => assertOk(await shop.deliver(envelope('customer.created', { id: 'cus_1', object: 'customer' }))));
    await counted('unused', async () => assertOk(await shop.deliver(envelope('charge.dispute.created',
      { id: 'du_1', object: 'dispute', amount: 5, payment_intent: null }))));
  });

  it('of the other mode or of another account changes nothing', async () => {
    const { booking, sent } = await paid();
    await counted('foreign', async () => assertOk(await shop.deliver({ ...sent.json, id: 'evt_live', livemode: true })));
    await counted('foreign', async () => assertOk(await shop.deliver({ ...sent.json, id: 'evt_connected', account: 'acct_other' })));
    assert.equal((await shop.read(booking)).status, 'pending');
    assertOk(await shop.webhook(sent.body, sent.signature));
    assert.equal((await shop.read(booking)).status, 'confirmed');
  });

  it('about an intent of somebody else changes nothing', async () => {
    const intent = JSON.parse(JSON.stringify(await shop.sandbox.client().paymentIntents.create({ amount: 700, currency: 'usd', payment_method_types: ['card'] })));
    await counted('unused', async () => assertOk(await shop.deliver(envelope('payment_intent.succeeded', { ...intent, status: 'succeeded', amount_received: 700 }))));
    await counted('foreign', async () => assertOk(await shop.deliver(envelope('refund.created',
      { id: 're_other', object: 'refund', amount: 5, currency: 'usd', status: 'succeeded', payment_intent: intent.id, metadata: {} }))));
  });

  it('about a payment of ours that is not known yet is parked', async () => {
    const { booking, sent } = await paid();
    const id = booking.payment.id.slice(0, -1) + (booking.payment.id.endsWith('0') ? '1' : '0');
    const object = { ...sent.json.data.object, metadata: { holdfast_payment: id } };
    await counted('parked', async () => assertOk(await shop.deliver(envelope('payment_intent.succeeded', object))));
    assert.equal((await shop.read(booking)).status, 'pending');
    assertOk(await shop.webhook(sent.body, sent.signature));
    assert.equal((await shop.read(booking)).status, 'confirmed');
  });

  it('that says less than is known takes nothing back', async () => {
    const { booking, sent } = await paid();
    const before_ = { ...sent.json.data.object, status: 'requires_payment_method', amount_received: 0 };
    assertOk(await shop.webhook(sent.body, sent.signature));
    assertOk(await shop.deliver(envelope('payment_intent.payment_failed', before_)));
    assertOk(await shop.deliver(envelope('payment_intent.created', before_)));
    const { status, payment } = await shop.read(booking);
    assert.deepEqual([status, payment.status], ['confirmed', 'succeeded']);
  });

  it('about a refund or a dispute finds its payment by the intent', async () => {
    const { booking, sent } = await paid();
    assertOk(await shop.webhook(sent.body, sent.signature));
    await shop.stripe.refunds.create({ payment_intent: booking.payment.intent, amount: 100 });
    const mine = ({ json }) => /refund/.test(json.type) && json.data.object.payment_intent === booking.payment.intent;
    const told = await until('the sandbox has sent it', () => shop.relay.received.find(mine));
    assertOk(await shop.webhook(told.body, told.signature));
    await shop.shown(booking, 'partly refunded', ({ payment }) => payment.amount_refunded === 100);
    assertOk(await shop.deliver(envelope('charge.dispute.created', { id: 'du_2', object: 'dispute', amount: 900, payment_intent: booking.payment.intent })));
    assert.equal((await shop.read(booking)).payment.disputed, true);
  });

  it('with a wrong amount or currency is not what we asked for', async () => {
    const { booking } = await shop.checkout(event, nextSeat());
    const intent = await intentOf(booking);
    const answer = await shop.pay(booking);
    assert.equal(answer.json.status, 'succeeded');
    const alarms = await server.metric('holdfast_payment_alarms_total');
    assertOk(await shop.deliver(envelope('payment_intent.succeeded', { ...intent, status: 'succeeded', amount_received: 1000, currency: 'eur' })));
    assert.ok(await server.metric('holdfast_payment_alarms_total') > alarms);
    const failed = await shop.settled(booking, 'failed', 'refunded');
    assert.equal(failed.payment.amount_refunded, 1000);
  });

  it('as large as they come is read, and a larger one is not', async () => {
    const event_ = envelope('customer.created', { id: 'cus_2', object: 'customer', description: 'x'.repeat(100_000) });
    assertOk(await shop.deliver(event_));
    assert.equal((await shop.webhook('x'.repeat(4 << 20), 't=1,v1=x')).status, 413);
  });
});

describe('without webhooks', () => {
  let shop;
  let server;
  let event;
  before(async () => {
    shop = await openShop({ webhooks: false });
    ({ server } = shop);
    event = await server.createEvent();
  });
  after(async () => { try { await shop?.close(); } finally { await reap(); } });

  it('every checkout ends, however the buyer pays', async () => {
    const made = {};
    for (const [i, how] of ['paid', 'declined', 'acted', 'released', 'disputed', 'refunded'].entries()) made[how] = (await shop.checkout(event, `S-A-${i + 1}`)).booking;
    const { booking: abandoned } = await inTime(async (ttlMs) => shop.checkout(await server.createEvent({ hold_ttl_ms: ttlMs }), 'S-A-1'), 5000);
    await shop.pay(made.paid);
    await shop.pay(made.declined, CARD.declined);
    const action = await shop.pay(made.acted, CARD.action, { return_url: 'https://shop.example/' });
    await shop.pay(made.disputed, CARD.disputed);
    await shop.pay(made.refunded);
    assert.equal((await server.del(`/v1/holds/${made.released.hold}`)).status, 204);
    await shop.settled(made.released, 'failed', 'canceled');
    await shop.settled(made.acted, 'pending', 'requires_action');
    await shop.act(action, 'complete');
    await shop.settled(made.paid, 'confirmed', 'succeeded');
    const declined = await shop.shown(made.declined, 'declined', ({ payment }) => payment.last_error);
    await shop.pay(declined);
    await shop.settled(made.refunded, 'confirmed', 'succeeded');
    assertOk(await server.post(`/v1/bookings/${made.refunded.id}/refund`, { amount: 400 }));
    await shop.shown(made.refunded, 'partly refunded', ({ payment }) => payment.amount_refunded === 400);
    await shop.settled(made.declined, 'confirmed', 'succeeded');
    await shop.settled(made.acted, 'confirmed', 'succeeded');
    await shop.settled(abandoned, 'failed', 'canceled');
  });

  it('no webhook is believed', async () => {
    assertProblem(await shop.deliver({ id: 'evt_1', object: 'event' }), 400, 'bad_signature');
    assertProblem(await shop.deliver({ id: 'evt_1', object: 'event' }, { secret: '' }), 400, 'bad_signature');
  });
});
