// GET /v1/holds lists every hold of an event once, newest first.  Sellers get ids that cannot be used, admins whole ones.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem, HOLD_FIELDS, ms } from '../support/expect.mjs';
import { itOnce, newKey, start, until } from '../support/server.mjs';

const ADMIN = 'admin-key-0123456789';
const SELLER = 'seller-key-0123456789';
const bearer = (key) => ({ Authorization: `Bearer ${key}` });
const MASKED = /^hold_[0-9A-Za-z]{11}\*{17}$/;

describe('the list of holds', () => {
  let server;
  let event;
  let holds; // in the order of creation
  const wanted = {}; // status -> fences, newest first
  before(async () => {
    server = await start({ env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER } });
    const request = server.request.bind(server); // an admin unless a call says otherwise
    server.request = (method, target, body, headers = {}, ...rest) =>
      request(method, target, body, { ...bearer(ADMIN), ...headers }, ...rest);
    event = await server.createEvent({
      sections: [{ name: 'S', price: 10, rows: 1, seats_per_row: 60 }], areas: [{ name: 'Floor', price: 1, capacity: 50 }],
    });
    const other = await server.createEvent();
    holds = [];
    for (let i = 1; i <= 45; i++) {
      holds.push(await server.take(event, {
        seats: [`S-A-${i}`], ...(i % 5 === 0 ? { areas: { Floor: 1 } } : {}), owner: `buyer ${i}`,
        ...(i % 4 === 1 ? { ttl_ms: 1000 } : {}), ...(i % 9 === 0 ? { metadata: { i } } : {}),
      }));
      if (i % 10 === 0) await server.grant(other, `S-A-${i / 10}`);
    }
    const status = {};
    for (const [index, hold] of holds.entries()) {
      const path = `/v1/holds/${hold.id}`;
      status[hold.fence] = ['expired', 'released', 'confirmed', 'active'][index % 4];
      if (index % 4 === 1) assert.equal((await server.del(path)).status, 204);
      if (index % 4 === 2) assertOk(await server.post(`${path}/confirm`, { fence: hold.fence }), 201);
    }
    await until('short holds run out', () => Date.now() > Math.max(...holds.filter((_, i) => i % 4 === 0).map((hold) => ms(hold.expires_at))) + 50);
    for (const hold of [...holds].reverse()) (wanted[status[hold.fence]] ??= []).push(hold.fence);
    wanted.all = holds.map(({ fence }) => fence).reverse();
  });
  after(() => server?.finish());

  const list = (query = '', key = SELLER) => server.get(`/v1/holds?event=${event.id}${query}`, bearer(key));

  // Resolves to the holds of all pages; asserts that every page is as full as possible.
  async function pages(query, limit) {
    const found = [];
    let cursor = '';
    for (let n = 0; n < 100; n++) {
      const page = assertOk(await list(`${query}&limit=${limit}${cursor}`));
      assert.deepEqual(Object.keys(page).sort(), ['data', 'has_more', 'next_cursor']);
      found.push(...page.data);
      if (!page.has_more) {
        assert.equal(page.next_cursor, null);
        assert.ok(page.data.length > 0 || found.length === 0, 'no empty last page');
        return found;
      }
      assert.equal(page.data.length, limit);
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
    return assert.fail('the pages do not end');
  }

  it('pages of any size give every hold once, newest first', async () => {
    for (const limit of [1, 2, 7, 44, 45, 46, 100]) {
      assert.deepEqual((await pages('', limit)).map(({ fence }) => fence), wanted.all, `limit ${limit}`);
    }
    assert.equal(assertOk(await list()).data.length, 20);
  });

  it('a status narrows the list, page by page', async () => {
    for (const status of ['active', 'expired', 'released', 'confirmed']) {
      for (const limit of [1, 5, 100]) {
        const found = await pages(`&status=${status}`, limit);
        assert.deepEqual(found.map(({ fence }) => fence), wanted[status], `${status}, limit ${limit}`);
        for (const hold of found) assert.equal(hold.status, status);
      }
    }
  });

  it('an entry is the hold, but for its id', async () => {
    for (const entry of await pages('', 100)) {
      const hold = holds.find(({ fence }) => fence === entry.fence);
      assert.match(entry.id, MASKED);
      assert.equal(entry.id.slice(0, 16), hold.id.slice(0, 16));
      const read = await server.read(`/v1/holds/${hold.id}`);
      const shared = ({ id, booking, expires_in_ms, ...rest }) => rest;
      assert.deepEqual(shared(entry), shared(read));
      assert.equal(entry.booking, read.booking && `${read.booking.slice(0, 15)}${'*'.repeat(17)}`);
      assert.deepEqual(Object.keys(entry).sort(), [...HOLD_FIELDS, ...(hold.metadata ? ['metadata'] : [])].sort());
    }
  });

  itOnce('no answer has any part of a hold\'s secret', async () => {
    const { text } = await list('&limit=100');
    for (const hold of holds) assert.ok(!text.includes(hold.id.slice(16)) && !text.includes(hold.id.slice(-8)), hold.id);
  });

  itOnce('an admin sees whole ids, and can evict what the list shows', async () => {
    const [first] = assertOk(await list('&status=active&limit=1', ADMIN)).data;
    assert.equal(first.id, holds.find(({ fence }) => fence === first.fence).id);
    assert.deepEqual(await server.read(`/v1/holds/${first.id}`).then(({ id, status }) => [id, status]), [first.id, 'active']);
    const other = await server.createEvent();
    await server.grant(other, 'S-A-1');
    const { data: [{ id }] } = await server.read(`/v1/holds?event=${other.id}`);
    assert.equal(assertOk(await server.post(`/v1/holds/${id}/evict`)).status, 'released');
  });

  itOnce('a masked id opens nothing', async () => {
    const { id, fence } = assertOk(await list('&status=active&limit=1')).data[0];
    for (const name of [id, encodeURIComponent(id), id.replaceAll('*', '0'), id.slice(0, 16)]) {
      assertProblem(await server.get(`/v1/holds/${name}`), 404, 'no_such_hold');
      assertProblem(await server.del(`/v1/holds/${name}`), 404, 'no_such_hold');
      assertProblem(await server.post(`/v1/holds/${name}/renew`, {}), 404, 'no_such_hold');
      assertProblem(await server.post(`/v1/holds/${name}/evict`), 404, 'no_such_hold');
      assertProblem(await server.post(`/v1/holds/${name}/confirm`, { fence }), 404, 'no_such_hold');
      assertProblem(await server.get(`/v1/audit?hold=${name}`), 404, 'no_such_hold');
    }
    assert.equal(assertOk(await list('&status=active')).data[0].fence, fence);
  });

  it('new holds between two pages neither repeat nor hide any', async () => {
    const own = await server.createEvent();
    for (let i = 1; i <= 6; i++) await server.grant(own, `S-A-${i}`);
    const first = assertOk(await server.get(`/v1/holds?event=${own.id}&limit=3`));
    await server.grant(own, 'S-A-7');
    const second = assertOk(await server.get(`/v1/holds?event=${own.id}&limit=3&cursor=${first.next_cursor}`));
    assert.deepEqual([...first.data, ...second.data].map(({ seats }) => seats[0]), [6, 5, 4, 3, 2, 1].map((n) => `S-A-${n}`));
    assert.equal(second.has_more, false);
  });

  itOnce('an event without holds has an empty list', async () => {
    const own = await server.createEvent();
    assert.deepEqual(assertOk(await server.get(`/v1/holds?event=${own.id}`)), { data: [], has_more: false, next_cursor: null });
    assert.deepEqual(assertOk(await server.get(`/v1/holds?event=${own.id}&cursor=1`)), { data: [], has_more: false, next_cursor: null });
  });

  itOnce('reading and refusing leave nothing behind', async () => { // this server is searched for leaks
    const own = await server.createEvent({ sections: [{ name: 'q"', price: 1, rows: 1, seats_per_row: 40 }], areas: [{ name: 'F', price: 1, capacity: 3 }], max_per_hold: 50 });
    const seats = Array.from({ length: 40 }, (_, i) => `q"-A-${i + 1}`);
    const key = { 'Idempotency-Key': newKey() };
    for (let i = 0; i < 2; i++) assertOk(await server.ask(own, { best_available: { quantity: 20 }, areas: { F: 2 }, metadata: { a: 'b' } }, key), 201);
    assertProblem(await server.ask(own, { best_available: { quantity: 30 }, areas: { F: 1 } }), 409, 'sold_out');
    assertProblem(await server.ask(own, { seats, areas: { F: 1 } }), 409, 'seat_taken');
    assertProblem(await server.ask(own, { seats, areas: { G: 1 } }), 404, 'no_such_seat');
    assertInvalid(await server.ask(own, { seats, areas: { F: 1, G: 'x' } }), 'areas.G');
    for (const action of ['block', 'unblock']) {
      assertProblem(await server.post(`/v1/events/${own.id}/${action}`, { seats }), 409, 'seat_taken');
      assertProblem(await server.post(`/v1/events/${own.id}/${action}`, { seats: ['x', ...seats] }), 404, 'no_such_seat');
      assertProblem(await server.post(`/v1/events/${own.id}/${action}`, { seats: [...seats, seats[3]] }), 400, 'duplicate_seat');
    }
    for (const action of ['close', 'open']) assertOk(await server.post(`/v1/events/${own.id}/${action}`, {}, { 'Idempotency-Key': newKey() }));
    assertOk(await server.get(`/v1/audit?event=${own.id}&limit=3`));
    assertOk(await server.get(`/v1/events/${own.id}/seats/${encodeURIComponent(seats[19])}`));
    assertOk(await server.get(`/v1/events/${own.id}/seats`, { 'Accept-Encoding': 'gzip' }));
  });

  itOnce('what is wrong is named', async () => {
    assertInvalid(await server.get('/v1/holds'), 'event');
    assertInvalid(await server.get('/v1/holds?status=active'), 'event');
    for (const id of ['', 'x', `evt_${'0'.repeat(28)}`, `${event.id}0`]) {
      assertProblem(await server.get(`/v1/holds?event=${id}`), 404, 'no_such_event');
    }
    for (const limit of ['0', '101', '-1', 'x', '', '1.5', '99999999999999999999', '0x10', '%31%00']) {
      assertInvalid(await list(`&limit=${limit}`), 'limit');
    }
    for (const status of ['', 'x', 'ACTIVE', 'active,expired', 'pending']) assertInvalid(await list(`&status=${status}`), 'status');
    for (const cursor of ['', 'x', '-1', '1.5', '1e3', '99999999999999999999', '1099511627776', 'evt_1', '%']) {
      assertInvalid(await list(`&cursor=${cursor}`), 'cursor');
    }
    assertProblem(await server.request('PUT', '/v1/holds', {}), 405, 'method_not_allowed');
    assert.equal((await list()).headers['cache-control'], 'no-store');
  });
});
