// What the shop is told: signed by the Standard Webhooks specification, at least once, in order for each booking.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { CARD, openShop } from '../support/checkout.mjs';
import { assertInvalid, assertOk, assertProblem, TIMESTAMP } from '../support/expect.mjs';
import { book } from '../support/payments.mjs';
import { inTime, itOnce, newKey, only, reap, runServer, start, tempDir, until } from '../support/server.mjs';

const secret = (text) => `whsec_${Buffer.from(text.padEnd(32, '.')).toString('base64')}`;
const SECRET = secret('this month');
const OLD_SECRET = secret('last month');

// A shop's endpoint.  `answer(message)` returns the status of an answer: 200, unless it is set.
async function startEndpoint() {
  const endpoint = { received: [], answer: () => 200 };
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const message = { body, headers: request.headers, method: request.method, path: request.url, json: JSON.parse(body), at: Date.now() };
      endpoint.received.push(message);
      response.writeHead(endpoint.answer(message)).end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  endpoint.url = `http://127.0.0.1:${server.address().port}/hooks?shop=1`;
  endpoint.about = (booking) => endpoint.received.filter(({ json }) => json.data?.id === (booking.id ?? booking));
  endpoint.stop = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
  return endpoint;
}

describe('the shop', () => {
  let endpoint;
  let shop;
  let server;
  let event;
  before(async () => {
    endpoint = await startEndpoint();
    shop = await openShop({ args: ['--notify', endpoint.url], env: { HOLDFAST_NOTIFY_SECRET: `${SECRET},${OLD_SECRET}` } });
    ({ server } = shop);
    event = await server.createEvent({ sections: [{ name: 'S', price: 1000, rows: 2, seats_per_row: 20 }] });
  });
  after(async () => {
    try { await shop?.close(); } finally { await endpoint?.stop(); await reap(); }
  });

  let seats = 0;
  const nextSeat = () => { seats += 1; return `S-${seats > 20 ? 'B' : 'A'}-${((seats - 1) % 20) + 1}`; };
  const told = (booking, ...types) => until(`the shop is told ${types}`, () => {
    const list = endpoint.about(booking).map(({ json }) => json.type);
    return types.every((type) => list.includes(type)) && endpoint.about(booking);
  }, 60_000);
  // The types of messages in the order in which they first came: a message may come more than once.
  const order = (messages) => messages.filter((one, i) => messages.findIndex(({ headers }) => headers['webhook-id'] === one.headers['webhook-id']) === i)
    .map(({ json }) => json.type);
  const listed = async (booking) => (await shop.notifications('?limit=100')).filter((one) => one.booking === booking.id);

  it('is told of a sale by a message that the official package verifies', async () => {
    const booking = await shop.sell(event, nextSeat(), { reference: 'order 1' });
    const [message] = await told(booking, 'booking.confirmed');
    assert.deepEqual([message.method, message.path, message.headers['content-type']], ['POST', '/hooks?shop=1', 'application/json']);
    for (const one of [SECRET, OLD_SECRET]) assert.deepEqual(new Webhook(one).verify(message.body, message.headers), message.json);
    assert.throws(() => new Webhook(secret('somebody else')).verify(message.body, message.headers));
    assert.throws(() => new Webhook(SECRET).verify(`${message.body} `, message.headers));
    assert.deepEqual(Object.keys(message.json), ['type', 'timestamp', 'data']);
    assert.match(message.json.timestamp, TIMESTAMP);
    assert.deepEqual(message.json.data, await shop.read(booking));
    const [row] = await until('the delivery is stored', async () => {
      const rows = await listed(booking);
      return rows[0].status === 'delivered' && rows;
    });
    assert.equal(row.id, message.headers['webhook-id']);
    assert.deepEqual([row.object, row.type, row.status, row.attempts, row.last_error, row.next_attempt_at], ['notification', 'booking.confirmed', 'delivered', 1, null, null]);
    assert.match(row.ended_at, TIMESTAMP);
  });

  itOnce('is told of the end of a booking without money, and of nothing before', async () => {
    const { hold, booking } = await shop.checkout(event, nextSeat());
    assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    const [message] = await told(booking, 'booking.failed');
    assert.deepEqual([message.json.data.status, message.json.data.payment.status], ['failed', 'canceled']);
    assert.equal(endpoint.about(booking).length, 1);
  });

  it('is told of cancelling and of money that went back, in this order', async () => {
    const booking = await shop.sell(event, nextSeat());
    assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`, { reason: 'rain' }));
    const messages = await told(booking, 'refund.succeeded');
    assert.deepEqual(order(messages), ['booking.confirmed', 'booking.cancelled', 'refund.succeeded']);
    assert.equal(messages.find(({ json }) => json.type === 'booking.cancelled').json.data.reason, 'rain');
    assert.equal(messages.at(-1).json.data.payment.amount_refunded, 1000);
  });

  itOnce('is told of disputes and of refunds that fail', async () => {
    const disputed = await shop.sell(event, nextSeat(), { card: CARD.disputed });
    const failing = await shop.sell(event, nextSeat(), { card: CARD.refundFails });
    assertOk(await server.post(`/v1/bookings/${failing.id}/refund`, { amount: 500 }));
    const disputes = await told(disputed, 'payment.disputed');
    assert.equal(disputes.at(-1).json.data.payment.disputed, true);
    const messages = await told(failing, 'refund.failed');
    assert.deepEqual(order(messages), ['booking.confirmed', 'refund.succeeded', 'refund.failed']);
  });

  itOnce('is told of a dashboard\'s refund', async () => {
    const booking = await shop.sell(event, nextSeat());
    await shop.stripe.refunds.create({ payment_intent: booking.payment.intent, amount: 300 });
    const messages = await told(booking, 'refund.succeeded');
    assert.equal(messages.at(-1).json.data.payment.amount_refunded, 300);
  });

  it('is told again, and nothing else about the booking before, until it answers with success', async () => {
    const refusedFor = async () => {
      const { booking } = await shop.checkout(event, nextSeat());
      endpoint.answer = ({ json }) => (json.data?.id === booking.id ? 503 : 200);
      await shop.pay(booking);
      await shop.settled(booking, 'confirmed');
      assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`));
      const waiting = await until('the refusal is stored', async () => (await listed(booking)).find(({ last_error: error }) => error));
      assert.deepEqual([waiting.type, waiting.status], ['booking.confirmed', 'pending']);
      assert.match(waiting.last_error, /503/);
      assert.match(waiting.next_attempt_at, TIMESTAMP);
      assert.ok((await shop.notifications('?status=pending')).filter((one) => one.booking === booking.id).length >= 2);
      endpoint.answer = () => 200;
      return { booking, n_refused: endpoint.about(booking).length };
    };
    // The second attempt comes after five seconds, the third one after five minutes, for which nobody waits: if the
    // machine stood still until the second one, the story is repeated with another booking.
    let refused = await refusedFor();
    for (let tries = 4; refused.n_refused > 1; tries--) {
      assert.ok(tries > 0, 'the second attempt was always refused, too');
      refused = await refusedFor();
    }
    const { booking } = refused;
    const messages = await told(booking, 'refund.succeeded');
    assert.deepEqual(order(messages), ['booking.confirmed', 'booking.cancelled', 'refund.succeeded']);
    assert.equal(messages[0].headers['webhook-id'], messages[1].headers['webhook-id']);
  });

  itOnce('that answers 410 is not told this again', async () => {
    const { booking } = await shop.checkout(event, nextSeat());
    endpoint.answer = ({ json }) => (json.data?.id === booking.id ? 410 : 200);
    await shop.pay(booking);
    const row = await until('it is given up', async () => (await listed(booking)).find(({ status }) => status === 'failed'));
    assert.deepEqual([row.attempts, row.type], [1, 'booking.confirmed']);
    assert.match(row.last_error, /410/);
    assert.ok((await shop.notifications('?status=failed')).some(({ id }) => id === row.id));
    endpoint.answer = () => 200;
  });

  itOnce('is not told of holds that expire, unless it asked for it', async () => {
    assert.ok(endpoint.received.every(({ json }) => json.type !== 'hold.expired'));
    assert.ok((await shop.notifications('?limit=100')).every(({ type }) => type !== 'hold.expired'));
  });

  it('finds what it was told in pages', async () => {
    const all = await shop.notifications('?limit=100');
    const found = [];
    let cursor = '';
    for (let more = true; more;) {
      const page = assertOk(await server.get(`/v1/notifications?limit=4${cursor}`));
      found.push(...page.data);
      more = page.has_more;
      cursor = `&cursor=${page.next_cursor}`;
    }
    assert.deepEqual(found.map(({ id }) => id), all.map(({ id }) => id));
    assertInvalid(await server.get('/v1/notifications?status=lost'), 'status');
  });
});

describe('a shop that asked for it', () => {
  let endpoint;
  let shop;
  before(async () => {
    endpoint = await startEndpoint();
    shop = await openShop({ args: ['--notify', endpoint.url, '--notify-events', 'hold.expired,booking.failed'], env: { HOLDFAST_NOTIFY_SECRET: SECRET } });
  });
  after(async () => { try { await shop?.close(); } finally { await endpoint?.stop(); await reap(); } });

  it('is told of holds that expire, and of nothing that it did not ask for', async () => {
    await shop.sell(await shop.server.createEvent(), 'S-A-1');
    const { hold, booked, booking } = await inTime(async (ttlMs) => {
      const event = await shop.server.createEvent({ hold_ttl_ms: ttlMs });
      const short = await shop.server.grant(event, 'S-A-2', { ttl_ms: 1000, owner: 'Ann' });
      const made = await shop.checkout(event, 'S-A-3');
      return { hold: short, booked: made.hold, booking: made.booking };
    }, 5000);
    const told = () => [hold, booked, booking].flatMap((one) => endpoint.about(one)).map(({ json }) => json.type).join();
    await until('it is told', () => told() === 'hold.expired,hold.expired,booking.failed', 60_000);
    assert.deepEqual([...new Set(endpoint.received.map(({ json }) => json.type))].sort(), ['booking.failed', 'hold.expired']);
    const [expired] = endpoint.about(hold.id);
    assert.deepEqual([expired.json.data.object, expired.json.data.status, expired.json.data.owner], ['hold', 'expired', 'Ann']);
    assert.equal(endpoint.about(booking).length, 1);
    new Webhook(SECRET).verify(expired.body, expired.headers);
  });

  it('is told after a restart what it could not be told before', async () => {
    const event = await shop.server.createEvent();
    const { hold, booking } = await shop.checkout(event, 'S-A-1');
    endpoint.answer = () => 500;
    assert.equal((await shop.server.del(`/v1/holds/${hold.id}`)).status, 204);
    await until('it was tried', () => endpoint.about(booking).length > 0);
    await shop.server.kill9();
    endpoint.answer = () => 200;
    await shop.server.launch();
    await until('it is told', async () => (await shop.notifications()).some((one) => one.booking === booking.id && one.status === 'delivered'), undefined, 100);
  });
});

describe('a server', () => {
  after(reap);
  const refused = async (args, env, says) => {
    const { code, stderr } = await runServer(['--listen', '127.0.0.1:0', '--data', tempDir(), ...args], { env });
    assert.notEqual(code, 0);
    assert.match(stderr, says);
    for (const value of Object.values(env)) assert.ok(!stderr.includes(value), stderr);
  };

  itOnce('that takes no payments says so, and sells what costs nothing', async () => {
    const server = await start({ args: ['--payments', 'off'] });
    const event = await server.createEvent({ areas: [{ name: 'Free', price: 0, capacity: 5 }] });
    const book = (hold) => server.post('/v1/bookings', { hold: hold.id }, { 'Idempotency-Key': newKey() });
    const hold = await server.grant(event, 'S-A-1');
    assertProblem(await book(hold), 409, 'payments_off');
    assert.equal((await server.read(`/v1/holds/${hold.id}`)).status, 'active');
    assert.equal(assertOk(await book(await server.take(event, { areas: { Free: 1 } })), 201).status, 'confirmed');
    assertProblem(await server.post('/v1/webhooks/stripe', '{}', { 'Stripe-Signature': 't=1,v1=00' }), 400, 'bad_signature');
    assert.doesNotMatch(server.run?.stdout ?? '', /sandbox/);
    await server.stop();
  });

  it('on loopback has a sandbox of its own, and says where', { skip: only('sqlite', 'one process') }, async () => {
    const server = await start();
    const [, url] = await until('it says where', () => /^payments sandbox on (http:\/\/127\.0\.0\.1:\d+)$/m.exec(server.run.stdout));
    const hold = await server.grant(await server.createEvent(), 'S-A-1');
    const { payment } = await book(server, hold);
    assert.deepEqual([payment.provider, payment.api, payment.status], ['sandbox', url, 'requires_payment']);
    await server.restart(); // on other ports, with the same payments
    assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    const { booking } = await server.read(`/v1/holds/${hold.id}`);
    await until('the payment is canceled', async () => (await server.read(`/v1/bookings/${booking}`)).payment.status === 'canceled');
    await server.stop();
  });

  itOnce('does not start with settings of payments that cannot be meant', async () => {
    const keys = { STRIPE_SECRET_KEY: 'sk_test_aaaaaaaaaa', STRIPE_PUBLISHABLE_KEY: 'pk_test_aaaaaaaaaa' };
    await refused(['--payments', 'cash'], {}, /sandbox, stripe or off/);
    await refused(['--payments', 'stripe'], {}, /STRIPE_SECRET_KEY/);
    await refused(['--payments', 'stripe'], { ...keys, STRIPE_PUBLISHABLE_KEY: 'pk_live_aaaaaaaaaa' }, /mode/);
    await refused(['--payments', 'stripe', '--stripe-api', 'http://127.0.0.1:1'],
      { STRIPE_SECRET_KEY: 'sk_live_aaaaaaaaaa', STRIPE_PUBLISHABLE_KEY: 'pk_live_aaaaaaaaaa' }, /live keys/);
    await refused(['--payments', 'stripe', '--stripe-api', 'http://shop.example'], keys, /TLS/);
    await refused(['--payments', 'stripe'], { ...keys, STRIPE_WEBHOOK_SECRET: 'secret-of-mine' }, /STRIPE_WEBHOOK_SECRET/);
    await refused(['--capture', 'later'], {}, /automatic or manual/);
    await refused(['--payments-rate', 'fast'], {}, /payments-rate/);
    await refused(['--notify', 'http://127.0.0.1:1/'], {}, /HOLDFAST_NOTIFY_SECRET/);
    await refused(['--notify', 'http://shop.example/'], { HOLDFAST_NOTIFY_SECRET: SECRET }, /TLS/);
    await refused(['--notify', 'http://127.0.0.1:1/'], { HOLDFAST_NOTIFY_SECRET: 'whsec_c2hvcnQ=' }, /HOLDFAST_NOTIFY_SECRET/);
    await refused(['--notify', 'http://127.0.0.1:1/', '--notify-events', 'booking.lost'], { HOLDFAST_NOTIFY_SECRET: SECRET }, /booking\.lost/);
  });
});
