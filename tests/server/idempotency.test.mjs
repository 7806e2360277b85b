// I8: the same key and body have one effect, and every repeat of a success gets the same answer.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem, assertReplay } from '../support/expect.mjs';
import { backend, itOnce, newKey, start } from '../support/server.mjs';

const keyed = (key) => ({ 'Idempotency-Key': key });

describe('idempotency keys', () => {
  let server;
  let event;
  let seatNumber = 0;
  before(async () => {
    server = await start();
    event = await server.createEvent({ sections: [{ name: 'S', price: 1000, rows: 1, seats_per_row: 300 }] });
  });
  after(() => server?.stop());
  const freeSeat = () => `S-A-${++seatNumber}`;

  it('a repeat gets the same bytes and says that it is one', async () => {
    const key = newKey();
    const seat = freeSeat();
    const first = await server.hold(event, seat, { owner: 'Ann' }, keyed(key));
    assertOk(first, 201);
    assert.equal(first.headers['idempotency-replayed'], undefined);
    for (let i = 0; i < 3; i++) assertReplay(await server.hold(event, seat, { owner: 'Ann' }, keyed(key)), first);
    const counts = assertOk(await server.get(`/v1/events/${event.id}`));
    assert.equal(counts.held, 1);
  });

  it('without a key nothing is a repeat', async () => {
    const seat = freeSeat();
    assertOk(await server.hold(event, seat), 201);
    assertProblem(await server.hold(event, seat), 409, 'seat_taken');
  });

  it('another key is another request', async () => {
    const seat = freeSeat();
    assertOk(await server.hold(event, seat, {}, keyed(newKey())), 201);
    assertProblem(await server.hold(event, seat, {}, keyed(newKey())), 409, 'seat_taken');
  });

  it('a quoted key is the bare key', async () => {
    const key = newKey();
    const seat = freeSeat();
    const first = await server.hold(event, seat, {}, keyed(`"${key}"`));
    assertOk(first, 201);
    assertReplay(await server.hold(event, seat, {}, keyed(key)), first);
    assertReplay(await server.hold(event, seat, {}, keyed(`"${key}"`)), first);
  });

  it('the same key with another body is 422 idempotency_mismatch', async () => {
    const key = newKey();
    const [seat, other] = [freeSeat(), freeSeat()];
    const first = await server.hold(event, seat, {}, keyed(key));
    assertProblem(await server.hold(event, other, {}, keyed(key)), 422, 'idempotency_mismatch');
    assertProblem(await server.hold(event, seat, { owner: 'Bob' }, keyed(key)), 422, 'idempotency_mismatch');
    assert.equal((await server.map(event))[other], '.');
    assertReplay(await server.hold(event, seat, {}, keyed(key)), first);
  });

  itOnce('the same key on another path is 422 idempotency_mismatch', async () => {
    const key = newKey();
    const hold = assertOk(await server.hold(event, freeSeat(), {}, keyed(key)), 201);
    const other = await server.grant(event, freeSeat());
    assertProblem(await server.post(`/v1/holds/${hold.id}/renew`, {}, keyed(key)), 422, 'idempotency_mismatch');
    const second = newKey();
    assertOk(await server.post(`/v1/holds/${hold.id}/renew`, {}, keyed(second)));
    assertProblem(await server.post(`/v1/holds/${other.id}/renew`, {}, keyed(second)), 422, 'idempotency_mismatch');
  });

  it('a refusal is not stored: the repeat is judged anew', async () => {
    const key = newKey();
    const seat = freeSeat();
    const holder = await server.grant(event, seat);
    assertProblem(await server.hold(event, seat, {}, keyed(key)), 409, 'seat_taken');
    assertProblem(await server.hold(event, seat, {}, keyed(key)), 409, 'seat_taken');
    await server.del(`/v1/holds/${holder.id}`);
    const granted = await server.hold(event, seat, {}, keyed(key));
    assertOk(granted, 201);
    assert.equal(granted.headers['idempotency-replayed'], undefined);
    assertReplay(await server.hold(event, seat, {}, keyed(key)), granted);
  });

  itOnce('a refused body does not spend the key', async () => {
    const key = newKey();
    const seat = freeSeat();
    assertInvalid(await server.hold(event, seat, { nonsense: 1 }, keyed(key)), 'nonsense');
    assertProblem(await server.hold(event, 'nope', {}, keyed(key)), 404, 'no_such_seat');
    assertOk(await server.hold(event, seat, {}, keyed(key)), 201);
  });

  it('a hold made with a key is replayed though another holds the seat by now', async () => {
    const key = newKey();
    const seat = freeSeat();
    const first = await server.hold(event, seat, {}, keyed(key));
    const hold = assertOk(first, 201);
    assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    assertReplay(await server.hold(event, seat, {}, keyed(key)), first);
    assert.equal((await server.map(event))[seat], '.', 'a replay has no effect');
    const next = await server.grant(event, seat);
    assertReplay(await server.hold(event, seat, {}, keyed(key)), first);
    assert.equal(assertOk(await server.get(`/v1/holds/${next.id}`)).status, 'active');
    assertOk(await server.post(`/v1/holds/${next.id}/confirm`, { fence: next.fence }), 201);
    assertReplay(await server.hold(event, seat, {}, keyed(key)), first);
  });

  it('a renewal is repeated, not renewed again', async () => {
    const hold = await server.grant(event, freeSeat(), { ttl_ms: 30_000 });
    const key = newKey();
    const path = `/v1/holds/${hold.id}/renew`;
    const first = await server.post(path, { ttl_ms: 50_000 }, keyed(key));
    const renewed = assertOk(first);
    assertReplay(await server.post(path, { ttl_ms: 50_000 }, keyed(key)), first);
    assert.equal(assertOk(await server.get(`/v1/holds/${hold.id}`)).expires_at, renewed.expires_at);
    assertProblem(await server.post(path, { ttl_ms: 60_000 }, keyed(key)), 422, 'idempotency_mismatch');
  });

  it('a confirmation is repeated as the 201 it was', async () => {
    const hold = await server.grant(event, freeSeat());
    const key = newKey();
    const path = `/v1/holds/${hold.id}/confirm`;
    const first = await server.post(path, { fence: hold.fence }, keyed(key));
    assertOk(first, 201);
    assertReplay(await server.post(path, { fence: hold.fence }, keyed(key)), first);
    assert.equal((await server.post(path, { fence: hold.fence })).status, 200);
    const second = await server.post(path, { fence: hold.fence }, keyed(newKey()));
    assert.deepEqual(assertOk(second), first.json);
  });

  it('an event is created once', async () => {
    const key = newKey();
    const body = { name: 'Once only', currency: 'usd', sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 2 }] };
    const first = await server.post('/v1/events', body, keyed(key));
    assertOk(first, 201);
    assertReplay(await server.post('/v1/events', body, keyed(key)), first);
    assertProblem(await server.post('/v1/events', { ...body, name: 'Twice' }, keyed(key)), 422, 'idempotency_mismatch');
    const { data } = assertOk(await server.get('/v1/events?limit=100'));
    assert.equal(data.filter(({ name }) => name === 'Once only').length, 1);
    assert.equal(data.filter(({ name }) => name === 'Twice').length, 0);
  });

  itOnce('a key has 16 to 255 characters', async () => {
    const seat = freeSeat();
    for (const key of ['', 'x', 'x'.repeat(15), `"${'x'.repeat(15)}"`, '""', 'x'.repeat(256), 'x'.repeat(2000)]) {
      const answer = await server.hold(event, seat, {}, keyed(key));
      assertProblem(answer, 400, 'invalid_request');
      assert.match(answer.json.detail, /Idempotency-Key/i);
    }
    assert.equal((await server.map(event))[seat], '.');
    assertOk(await server.hold(event, seat, {}, keyed('y'.repeat(16))), 201);
    const longest = await server.hold(event, freeSeat(), {}, keyed('z'.repeat(255)));
    assertOk(longest, 201);
    assertReplay(await server.hold(event, longest.json.seats, {}, keyed('z'.repeat(255))), longest);
    assertOk(await server.hold(event, freeSeat(), {}, keyed(`"${'q'.repeat(255)}"`)), 201);
  });

  itOnce('every POST checks its key', async () => {
    const hold = await server.grant(event, freeSeat());
    for (const [path, body] of [['/v1/events', { name: 'x', currency: 'usd', sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 1 }] }],
      [`/v1/holds/${hold.id}/renew`, {}], [`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }]]) {
      assertProblem(await server.post(path, body, keyed('short')), 400, 'invalid_request');
    }
    assert.equal(assertOk(await server.get(`/v1/holds/${hold.id}`)).status, 'active');
  });

  it('keys outlive a restart, with their bytes', async () => {
    const seats = Array.from({ length: 5 }, freeSeat);
    const requests = [];
    for (const seat of seats) {
      const key = newKey();
      requests.push([key, seat, await server.hold(event, seat, {}, keyed(key))]);
    }
    const confirmKey = newKey();
    const sold = requests[0][2].json;
    const confirmed = await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }, keyed(confirmKey));
    assertOk(confirmed, 201);
    await server.del(`/v1/holds/${requests[1][2].json.id}`);
    await server.restart();
    for (const [key, seat, first] of requests) assertReplay(await server.hold(event, seat, {}, keyed(key)), first);
    assertReplay(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }, keyed(confirmKey)), confirmed);
    assertProblem(await server.hold(event, freeSeat(), {}, keyed(confirmKey)), 422, 'idempotency_mismatch');
  });

  it('the ledger keeps hashes, never the keys themselves', async () => {
    const key = newKey();
    assertOk(await server.hold(event, freeSeat(), {}, keyed(key)), 201);
    if (backend === 'sqlite') await server.restart(); // its log is in the file then
    for (const file of fs.readdirSync(server.dir)) {
      assert.ok(!fs.readFileSync(`${server.dir}/${file}`).includes(key), file);
    }
    if (backend !== 'sqlite') {
      const dump = execFileSync('pg_dump', [server.ledger], { encoding: 'utf8', maxBuffer: 256 << 20 });
      assert.match(dump, /COPY public.idempotency/);
      assert.ok(!dump.includes(key), 'the database');
    }
  });
});
