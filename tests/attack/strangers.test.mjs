// What callers without a key can make a server with keys store.
// backends: own

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem, assertReplay } from '../support/expect.mjs';
import { Document } from '../support/openapi.mjs';
import { IDLE_MS, reap, Server } from '../support/server.mjs';

const KEYS = { HOLDFAST_ADMIN_KEY: 'admin-key-0123456789', HOLDFAST_SELLER_KEY: 'seller-key-0123456789' };
const ADMIN = { Authorization: `Bearer ${KEYS.HOLDFAST_ADMIN_KEY}` };
const SELLER = { Authorization: `Bearer ${KEYS.HOLDFAST_SELLER_KEY}` };
const PER_MINUTE = 20;
const BURST = 2 * PER_MINUTE;
const CHANGES_BURST = 6 * BURST;
const keyed = (key) => ({ 'Idempotency-Key': key });

const document = await Document.load();
const launch = async (options) => {
  const server = new Server(options);
  await server.launch();
  return server;
};
const manySeats = (server, fields) => server.createEvent(
  { sections: [{ name: 'S', price: 100, rows: 10, seats_per_row: 100 }], hold_max_ms: 3_600_000, ...fields }, ADMIN);

// Requests from another address of this machine.
function from(server, localAddress) {
  const agent = new http.Agent({ keepAlive: true, timeout: IDLE_MS, localAddress });
  const ask = (method, target, body, headers) => server.request(method, target, body, headers, { agent });
  return {
    post: (target, body, headers) => ask('POST', target, body, headers),
    patch: (target, body, headers) => ask('PATCH', target, body, headers),
    del: (target, headers) => ask('DELETE', target, undefined, headers),
    hold: (event, seat, fields = {}, headers = {}) => ask('POST', '/v1/holds', { event: event.id, seats: [seat], ...fields }, headers),
  };
}

// How many holds an address may have made that had made none at that time.
const shareSince = (began) => BURST + Math.ceil((Date.now() - began) * PER_MINUTE / 60_000);

// Metadata that is stored as this many bytes; a value may have 500 characters.
function metadata(length) {
  const made = {};
  for (let n = 0; JSON.stringify(made).length < length; n++) {
    const left = length - JSON.stringify({ ...made, [`k${n}`]: '' }).length;
    made[`k${n}`] = 'x'.repeat(left > 500 ? 400 : left);
  }
  assert.equal(JSON.stringify(made).length, length);
  return { metadata: made };
}

// Asserts a 429 that says when to come back, in both of its places.
function assertTooSoon(answer, mostMs) {
  const problem = assertProblem(answer, 429, 'too_many_requests');
  assert.ok(problem.retry_after_ms > 0 && problem.retry_after_ms <= mostMs, answer.text);
  assert.equal(answer.headers['retry-after'], String(Math.ceil(problem.retry_after_ms / 1000)));
  return problem;
}

describe('an address without a key', () => {
  let server;
  let event;
  before(async () => {
    server = await launch({ env: KEYS, args: ['--public-seats-max', '1000'] });
    event = await manySeats(server);
  });
  after(() => server?.stop());

  // Makes and gives back holds until it is slowed down; resolves to how many, and to that answer.
  const exhaust = async (stranger, fields) => {
    for (let n = 0; n < 3 * BURST; n++) {
      const answer = await stranger.hold(event, 'S-A-1', fields);
      if (answer.status !== 201) return { n, answer };
      assert.equal((await stranger.del(`/v1/holds/${answer.json.id}`)).status, 204);
    }
    throw new Error('it is not slowed down');
  };

  // Renews until that is refused: on a slow machine the pace may allow another one.
  const refusedRenewal = async (stranger, hold) => {
    for (let n = 0; n < CHANGES_BURST; n++) {
      const answer = await stranger.post(`/v1/holds/${hold.id}/renew`, {});
      if (answer.status !== 200) return answer;
    }
    throw new Error('it is not slowed down');
  };

  it('makes no more than its share of holds, though it gives them back', async () => {
    const stranger = from(server, '127.0.0.2');
    const began = Date.now();
    const { n, answer } = await exhaust(stranger);
    assert.ok(n >= BURST && n <= shareSince(began), `${n} holds`);
    assertTooSoon(answer, 60_000 / PER_MINUTE);
    document.check('createHold', answer);
    const { text } = await server.get('/metrics', ADMIN);
    assert.match(text, /^holdfast_too_many_requests_total\{what="holds"\} 1$/m);
    // Others, and programs with a key at the same address, are not disturbed.
    assertOk(await from(server, '127.0.0.3').hold(event, 'S-A-2'), 201);
    assertOk(await stranger.hold(event, 'S-A-3', {}, SELLER), 201);
  });

  it('does not spend its share by being refused, or by repeating itself', async () => {
    const stranger = from(server, '127.0.0.4');
    await server.grant(event, 'S-B-1', {}, ADMIN);
    const closed = await manySeats(server);
    assert.equal((await server.post(`/v1/events/${closed.id}/close`, {}, SELLER)).status, 200);
    const key = keyed(randomUUID());
    const first = await stranger.hold(event, 'S-B-2', {}, key);
    for (let i = 0; i < BURST; i++) {
      assertProblem(await stranger.hold(event, 'S-B-1'), 409, 'seat_taken');
      assertProblem(await stranger.hold(closed, 'S-A-1'), 409, 'event_closed');
      assertReplay(await stranger.hold(event, 'S-B-2', {}, key), first);
    }
    assertOk(await stranger.hold(event, 'S-B-3'), 201);
  });

  it('gets the answer to a repeat also when its share is spent', async () => {
    const stranger = from(server, '127.0.0.5');
    const key = keyed(randomUUID());
    const first = await stranger.hold(event, 'S-C-1', {}, key);
    assertOk(first, 201);
    await exhaust(stranger);
    assertReplay(await stranger.hold(event, 'S-C-1', {}, key), first);
    let refused;
    do { // on a slow machine the pace may allow another one
      refused = await stranger.hold(event, 'S-C-2', {}, keyed(randomUUID()));
      if (refused.status === 201) assert.equal((await stranger.del(`/v1/holds/${refused.json.id}`)).status, 204);
    } while (refused.status === 201);
    assertTooSoon(refused, 60_000 / PER_MINUTE);
  });

  it('cannot spend one share many times by asking at once', async () => {
    const stranger = from(server, '127.0.0.6');
    const began = Date.now();
    const seats = Array.from({ length: 100 }, (_, i) => `S-D-${i + 1}`);
    const answers = await Promise.all(seats.map(async (seat) => {
      const answer = await stranger.hold(event, seat);
      if (answer.status === 201) await stranger.del(`/v1/holds/${answer.json.id}`);
      return answer.status;
    }));
    const granted = answers.filter((status) => status === 201).length;
    assert.ok(granted >= BURST && granted <= shareSince(began), `${granted} holds`);
  });

  it('renews and changes holds at a pace, too', async () => {
    const stranger = from(server, '127.0.0.7');
    let hold = assertOk(await stranger.hold(event, 'S-E-1'), 201);
    let answer;
    let n = -1; // answers that were not refused
    do {
      n++;
      const places = { seats: ['S-E-2'] };
      const change = hold.seats.length === 2 ? { remove: places } : { add: places };
      answer = n % 3 ? await stranger.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, ...change }) : await stranger.post(`/v1/holds/${hold.id}/renew`, {});
      hold = answer.json.object === 'hold' ? answer.json : hold;
    } while (answer.status === 200 && n < 3 * CHANGES_BURST);
    assertTooSoon(answer, 1000);
    document.check('renewHold', await refusedRenewal(stranger, hold));
    assert.ok(n >= CHANGES_BURST && n < 2 * CHANGES_BURST, `${n} changes`);
    assert.equal((await stranger.del(`/v1/holds/${hold.id}`)).status, 204, 'giving back is always allowed');
  });

  it('stores at most 1 KB of metadata with a hold', async () => {
    const stranger = from(server, '127.0.0.8');
    assertOk(await stranger.hold(event, 'S-F-1', metadata(1024)), 201);
    assertInvalid(await stranger.hold(event, 'S-F-2', metadata(1025)), 'metadata');
    assertInvalid(await stranger.hold(event, 'S-F-2', { metadata: { a: 'ü'.repeat(300), b: 'ü'.repeat(300) } }), 'metadata');
    assertOk(await stranger.hold(event, 'S-F-3', metadata(4000), SELLER), 201);
  });
});

describe('the pace of holds', () => {
  after(reap);

  it('is that of --hold-rate, or off', async () => {
    const slow = await launch({ env: KEYS, args: ['--hold-rate', '1'] });
    const event = await manySeats(slow);
    const statuses = [];
    for (let i = 1; i <= 4; i++) statuses.push((await slow.hold(event, `S-A-${i}`)).status);
    assert.deepEqual(statuses, [201, 201, 429, 429]);
    await slow.stop();
    const any = await launch({ env: KEYS, args: ['--hold-rate', 'off', '--public-seats-max', '1000'] });
    const other = await manySeats(any);
    for (let i = 1; i <= 60; i++) assert.equal((await any.hold(other, `S-A-${i}`)).status, 201);
    await any.stop();
  });

  it('is nobody\'s where there are no keys', async () => {
    const server = await launch({ args: ['--hold-rate', '1'] });
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 60 }] });
    for (let i = 1; i <= 60; i++) await server.grant(event, `S-A-${i}`, metadata(2000));
    await server.stop();
  });
});
