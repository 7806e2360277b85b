// Whether callers without an access key get at each other's holds by their Idempotency-Keys.
// backends: own

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem, assertReplay } from '../support/expect.mjs';
import { Server } from '../support/server.mjs';

const KEYS = { HOLDFAST_ADMIN_KEY: 'admin-key-0123456789', HOLDFAST_SELLER_KEY: 'seller-key-0123456789' };
const ADMIN = { Authorization: `Bearer ${KEYS.HOLDFAST_ADMIN_KEY}` };
const SELLER = { Authorization: `Bearer ${KEYS.HOLDFAST_SELLER_KEY}` };
const keyed = (key) => ({ 'Idempotency-Key': key });

describe('the Idempotency-Key of a caller without an access key', () => {
  let server;
  let event;
  before(async () => {
    server = new Server({ env: KEYS, args: ['--trusted-proxy', '127.0.0.0/8'] });
    await server.launch();
    event = await server.createEvent({ sections: [{ name: 'S', price: 100, rows: 10, seats_per_row: 10 }] }, ADMIN);
  });
  after(() => server?.stop());
  const at = (address) => ({ 'X-Forwarded-For': address });

  it('gives nobody else the hold: the same key and body from another address are another request', async () => {
    const key = keyed('checkout-0000000042'); // looks random, and is one to guess
    const first = await server.hold(event, 'S-A-1', {}, { ...key, ...at('198.51.100.7') });
    const hold = assertOk(first, 201);
    for (const thief of ['198.51.100.8', '198.51.101.7', '203.0.113.1', '2001:db8::1', '::198.51.100.7']) {
      const answer = await server.hold(event, 'S-A-1', {}, { ...key, ...at(thief) });
      assertProblem(answer, 409, 'seat_taken');
      assert.ok(!answer.text.includes(hold.id));
    }
    assertReplay(await server.hold(event, 'S-A-1', {}, { ...key, ...at('198.51.100.7') }), first);
    assertOk(await server.get(`/v1/holds/${hold.id}`)); // it is still there
  });

  it('counts by the /64 of an IPv6 address', async () => {
    const key = keyed(randomUUID());
    const first = await server.hold(event, 'S-A-2', {}, { ...key, ...at('2001:db8:1:2::3') });
    assertReplay(await server.hold(event, 'S-A-2', {}, { ...key, ...at('2001:db8:1:2:ffff::9') }), first);
    assertProblem(await server.hold(event, 'S-A-2', {}, { ...key, ...at('2001:db8:1:3::3') }), 409, 'seat_taken');
  });

  it('belongs to the hold where a request names one, also on another network', async () => {
    const hold = assertOk(await server.hold(event, 'S-B-1', {}, at('198.51.100.7')), 201);
    const other = assertOk(await server.hold(event, 'S-B-2', {}, at('203.0.113.1')), 201);
    const key = keyed(randomUUID());
    const renew = (id, address) => server.post(`/v1/holds/${id}/renew`, {}, { ...key, ...at(address) });
    const first = await renew(hold.id, '198.51.100.7');
    assertOk(first);
    assertReplay(await renew(hold.id, '203.0.113.9'), first);
    const second = await renew(other.id, '198.51.100.7');
    assertOk(second);
    assert.equal(second.json.id, other.id);
    const forged = `${hold.id.slice(0, -1)}${hold.id.endsWith('0') ? '1' : '0'}`; // its number, without its secret
    assertProblem(await renew(forged, '198.51.100.7'), 404, 'no_such_hold');
    const change = (address) => server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, add: { seats: ['S-B-3'] } }, { ...key, ...at(address) });
    assertProblem(await change('203.0.113.9'), 422, 'idempotency_mismatch');
  });

  it('of a booking belongs to the hold in its body', async () => {
    const hold = assertOk(await server.hold(event, 'S-C-1', {}, at('198.51.100.7')), 201);
    const other = assertOk(await server.hold(event, 'S-C-2', {}, at('198.51.100.7')), 201);
    const key = keyed(randomUUID());
    const book = (id, address) => server.post('/v1/bookings', { hold: id }, { ...key, ...at(address) });
    const first = assertOk(await book(hold.id, '198.51.100.7'), 201);
    const again = await book(hold.id, '203.0.113.9');
    assert.equal(again.headers['idempotency-replayed'], 'true');
    assert.equal(assertOk(again, 201).id, first.id);
    assert.notEqual(assertOk(await book(other.id, '198.51.100.7'), 201).id, first.id);
  });

  it('must look random', async () => {
    const digits = (n) => Array.from({ length: n }, (_, i) => (i * 7 + 3) % 10).join('');
    for (const key of ['0123456789abcde', 'a'.repeat(16), 'abcabcabcabcabcabcabc', 'order-00000000000', digits(38), `"${digits(20)}"`]) {
      assertInvalid(await server.hold(event, 'S-D-1', {}, keyed(key)), 'Idempotency-Key');
    }
    assert.match((await server.hold(event, 'S-D-1', {}, keyed('order-00000000000'))).json.detail, /UUID/);
    let seat = 0;
    for (const key of [randomUUID(), randomUUID().replaceAll('-', ''), digits(39), 'tr0ub4dor&3-horse', `"${randomUUID()}"`]) {
      assertOk(await server.hold(event, `S-E-${++seat}`, {}, keyed(key)), 201);
    }
    assertOk(await server.hold(event, 'S-D-1', {}, { ...keyed('1'), ...SELLER }), 201);
  });

  it('is not looked up among those of sellers, whose own are found as before', async () => {
    const key = randomUUID();
    assertOk(await server.hold(event, 'S-F-1', {}, keyed(key)), 201);
    assertProblem(await server.get(`/v1/idempotency/${key}`, SELLER), 404, 'not_found');
    const own = await server.hold(event, 'S-F-2', {}, { ...keyed(key), ...SELLER });
    assert.equal((await server.get(`/v1/idempotency/${key}`, SELLER)).json.id, assertOk(own, 201).id);
  });
});
