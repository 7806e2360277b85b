// Secrets of a checkout: card numbers, client secrets, keys, signatures, e-mail addresses and ids are in no log,
// metric or row of the audit log, and in nobody else's answer.
// backends: sqlite

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { CARD, openShop, WEBHOOK_SECRET } from '../support/checkout.mjs';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { newKey, reap, until } from '../support/server.mjs';

const ADMIN = { Authorization: 'Bearer an-admin-key-of-the-tests' };
const SELLER = { Authorization: 'Bearer a-seller-key-of-the-tests' };
const NOTIFY_SECRET = `whsec_${Buffer.from('a secret of thirty-two bytes....').toString('base64')}`;
const EMAIL = 'ann.buyer@shop.example';

describe('the secrets of a checkout', () => {
  let shop;
  let server;
  let endpoint;
  const secrets = new Map(); // what it is -> text
  const signatures = [];
  let event;
  let booking;
  let other;

  before(async () => {
    endpoint = http.createServer((request, response) => {
      signatures.push(request.headers['webhook-signature']);
      request.resume();
      response.writeHead(signatures.length === 1 ? 500 : 200).end();
    });
    await new Promise((resolve) => endpoint.listen(0, '127.0.0.1', resolve));
    shop = await openShop({
      args: ['--log-level', 'debug', '--request-log', '--notify', `http://127.0.0.1:${endpoint.address().port}/`],
      env: { HOLDFAST_ADMIN_KEY: ADMIN.Authorization.slice(7), HOLDFAST_SELLER_KEY: SELLER.Authorization.slice(7), HOLDFAST_NOTIFY_SECRET: NOTIFY_SECRET },
      headers: SELLER,
    });
    ({ server } = shop);
    event = await server.createEvent({}, ADMIN);
    const key = newKey();
    const hold = await server.grant(event, 'S-A-1', { owner: 'Ann' }, SELLER);
    booking = await shop.payable(assertOk(await shop.book(hold, { email: EMAIL }, { 'Idempotency-Key': key, ...SELLER }), 201));
    await shop.pay(booking, CARD.declined);
    await shop.shown(booking, 'refused', ({ payment }) => payment.last_error);
    await shop.pay(booking);
    await shop.settled(booking, 'confirmed');
    await shop.breakProvider('refund'); // so that errors are logged
    assertOk(await server.post(`/v1/bookings/${booking.id}/refund`, { amount: 100 }, SELLER));
    await until('it was tried', async () => (await shop.refunds())[0].attempts > 0);
    await shop.mendProvider();
    assertProblem(await shop.webhook('{}', 't=1,v1=00ff'), 400, 'bad_signature');
    const second = await server.grant(event, 'S-A-2', {}, SELLER);
    other = assertOk(await shop.book(second, {}, SELLER), 201);
    for (const [what, text] of Object.entries({
      'a card number': CARD.good, 'a declined card number': CARD.declined, 'the client secret': booking.payment.client_secret.split('_secret_')[1],
      'the secret key': `sk_test_${shop.account}`, 'the webhook secret': WEBHOOK_SECRET, 'the secret of notifications': NOTIFY_SECRET,
      'the address': EMAIL, 'the hold': hold.id.slice(-17), 'the booking': booking.id.slice(-17), 'the payment': booking.payment.id.slice(-17),
      'the Idempotency-Key': key, 'a seller\'s key': SELLER.Authorization.slice(7),
      'a signature': shop.relay.received[0].signature.split('v1=')[1],
    })) secrets.set(what, text);
    await until('the shop was told twice', () => signatures.length >= 2);
    signatures.forEach((text, i) => secrets.set(`signature ${i}`, text.split(',')[1]));
  });
  after(async () => {
    try {
      await shop?.close();
      // What was written while the server ended, too.
      const leaks = [...secrets].filter(([, text]) => server.logs.includes(text)).map(([what]) => what);
      assert.deepEqual(leaks, []);
    } finally { endpoint?.close(); await reap(); }
  });

  const assertNone = (text, where, except = []) => {
    const leaks = [...secrets].filter(([what, value]) => !except.includes(what) && text.includes(value)).map(([what]) => what);
    assert.deepEqual(leaks, [], where);
  };

  it('are in no log, at any level', () => {
    assert.match(server.stderr, /route=\/v1\/bookings /);
    assert.match(server.stderr, /route=\/v1\/webhooks\/stripe/);
    assertNone(server.stderr, 'the log of the server');
    assertNone(shop.sandbox.stderr(), 'the log of the sandbox');
  });

  it('are in no metric', async () => assertNone((await server.get('/metrics', ADMIN)).text, '/metrics'));

  it('are in no row of the audit log, but for the ids that admins see there', async () => {
    const { text } = await server.get(`/v1/audit?event=${event.id}&limit=1000`, ADMIN);
    assertNone(text, '/v1/audit', ['the hold', 'the booking']);
  });

  it('are in nobody else\'s answer', async () => {
    for (const target of [`/v1/events/${event.id}`, `/v1/events/${event.id}/seats`, '/v1/events', `/v1/bookings/${other.id}`, `/v1/holds/${other.hold}`, '/openapi.yaml']) {
      const answer = await server.get(target);
      assert.equal(answer.status, 200);
      assertNone(answer.text, target);
    }
    for (const target of [`/v1/holds?event=${event.id}`, `/v1/events/${event.id}/seats/S-A-1`]) {
      assertNone((await server.get(target, SELLER)).text, target);
    }
    const lists = ['the booking', 'the hold', 'the payment']; // sellers find bookings by them
    for (const target of ['/v1/bookings', '/v1/refunds', '/v1/notifications']) {
      assertProblem(await server.get(target), 401, 'unauthorized');
      assertNone((await server.get(target, SELLER)).text, target, lists);
    }
    const pending = assertOk(await server.get(`/v1/bookings?status=pending`, SELLER)).data;
    assert.deepEqual(pending.map(({ id, payment }) => [id, payment.client_secret]), [[other.id, null]]); // only a GET of the booking has it
  });

  it('are not stored where they are not needed', () => {
    const rows = JSON.stringify(server.sql('SELECT * FROM payment_events')) + JSON.stringify(server.sql('SELECT * FROM payments'))
      + JSON.stringify(server.sql('SELECT hash, body FROM idempotency')) + JSON.stringify(server.sql('SELECT * FROM jobs'));
    assertNone(rows, 'the ledger', ['the hold', 'the booking', 'the payment']); // stored answers have them
    const [{ n }] = server.sql(`SELECT COUNT(*) AS n FROM bookings WHERE email = '${EMAIL}'`);
    assert.equal(n, 1);
  });

  it('of a stored answer are told to the caller whose key it was, without the client secret', async () => {
    const target = `/v1/idempotency/${encodeURIComponent(secrets.get('the Idempotency-Key'))}`;
    const mine = assertOk(await server.get(target, SELLER));
    assert.deepEqual([mine.id, mine.payment.client_secret], [booking.id, null]);
    assertProblem(await server.get(target, ADMIN), 404, 'not_found');
    assertProblem(await server.get(target), 401, 'unauthorized');
    assertProblem(await server.get('/v1/idempotency/never-used', SELLER), 404, 'not_found');
  });
});
