// Common properties of the calls of sellers and readers: each works as the first request for an event after a
// restart, HEAD is GET without a body, and none logs a secret.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { newKey, reap, sleep, start } from '../support/server.mjs';
import { encode, Wire } from '../support/wire.mjs';

describe('calls of sellers and readers', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const layout = {
    sections: [{ name: 'S', tier: 'A', price: 10, rows: 1, seats_per_row: 30 }], areas: [{ name: 'Floor', price: 5, capacity: 9 }], max_per_hold: 40,
  };
  const seats = Array.from({ length: 20 }, (_, i) => `S-A-${i + 10}`); // more than are stored inside the request itself

  // Each call gets an event of its own with a hold of S-A-1 and two places.
  const calls = {
    'best available': (e) => ({ method: 'POST', path: '/v1/holds', body: { event: e.id, best_available: { quantity: 20, section: 'S', tier: 'A' }, areas: { Floor: 1 } }, status: 201 }),
    areas: (e) => ({ method: 'POST', path: '/v1/holds', body: { event: e.id, areas: { Floor: 7 } }, status: 201 }),
    'areas, too many': (e) => ({ method: 'POST', path: '/v1/holds', body: { event: e.id, areas: { Floor: 8 } }, status: 409, code: 'sold_out' }),
    'areas, unknown': (e) => ({ method: 'POST', path: '/v1/holds', body: { event: e.id, areas: { Flo: 8 } }, status: 404, code: 'no_such_seat' }),
    block: (e) => ({ method: 'POST', path: `/v1/events/${e.id}/block`, body: { seats }, status: 200 }),
    'block, taken': (e) => ({ method: 'POST', path: `/v1/events/${e.id}/block`, body: { seats: ['S-A-1', ...seats] }, status: 409, code: 'seat_taken' }),
    'block, unknown': (e) => ({ method: 'POST', path: `/v1/events/${e.id}/block`, body: { seats: ['x', ...seats] }, status: 404, code: 'no_such_seat' }),
    unblock: (e) => ({ method: 'POST', path: `/v1/events/${e.id}/unblock`, body: { seats }, status: 200 }),
    close: (e) => ({ method: 'POST', path: `/v1/events/${e.id}/close`, status: 200 }),
    'close, with a body': (e) => ({ method: 'POST', path: `/v1/events/${e.id}/close`, body: {}, status: 200 }),
    open: (e) => ({ method: 'POST', path: `/v1/events/${e.id}/open`, status: 200 }),
    evict: (e, h) => ({ method: 'POST', path: `/v1/holds/${h.id}/evict`, status: 200 }),
    'holds of an event': (e) => ({ method: 'GET', path: `/v1/holds?event=${e.id}&status=active&limit=1`, status: 200 }),
    'log of an event': (e) => ({ method: 'GET', path: `/v1/audit?event=${e.id}&seat=S-A-1`, status: 200 }),
    'log of a hold': (e, h) => ({ method: 'GET', path: `/v1/audit?hold=${h.id}`, status: 200 }),
    seat: (e) => ({ method: 'GET', path: `/v1/events/${e.id}/seats/S-A-1`, status: 200 }),
    'seat, then': (e) => ({ method: 'GET', path: `/v1/events/${e.id}/seats/S-A-1?at=${e.created_at}`, status: 200 }),
    'seat, unknown': (e) => ({ method: 'GET', path: `/v1/events/${e.id}/seats/x`, status: 404, code: 'no_such_seat' }),
    map: (e) => ({ method: 'GET', path: `/v1/events/${e.id}/seats`, status: 200 }),
  };
  const made = async () => {
    const event = await server.createEvent(layout);
    return [event, await server.take(event, { seats: ['S-A-1'], areas: { Floor: 2 } })];
  };
  const check = (answer, { status, code }) => (code ? assertProblem(answer, status, code) : assertOk(answer, status));

  it('any call may be the first to meet an event after a restart, with a key or without', async () => {
    const cases = [];
    for (const call of Object.values(calls)) {
      for (const keyed of [false, true]) cases.push([call(...await made()), keyed ? { 'Idempotency-Key': newKey() } : {}]);
    }
    await server.restart();
    await Promise.all(cases.map(async ([call, headers]) => {
      const first = await server.request(call.method, call.path, call.body, headers);
      check(first, call);
      if (call.method !== 'POST' || call.code || !headers['Idempotency-Key']) return;
      const again = await server.request(call.method, call.path, call.body, headers);
      assert.deepEqual([again.status, again.text, again.headers['idempotency-replayed']], [first.status, first.text, 'true']);
    }));
  });

  it('many at once may be the first to meet one event', async () => {
    const [event, hold] = await made();
    await server.restart();
    const wires = await Wire.connectMany(server, 40);
    const all = Object.values(calls).map((call) => call(event, hold)).filter(({ method }) => method === 'GET');
    await Promise.all(wires.map(async (wire, index) => {
      const call = all[index % all.length];
      const answer = await wire.request(call.method, call.path);
      assert.equal(answer.status, call.status, answer.text);
    }));
    for (const wire of wires) wire.close();
  });

  it('HEAD is GET without the body', async () => {
    const [event, hold] = await made();
    for (const call of Object.values(calls).map((make) => make(event, hold)).filter(({ method }) => method === 'GET')) {
      const [get, head] = [await server.get(call.path), await server.request('HEAD', call.path)];
      assert.equal(head.status, get.status, call.path);
      assert.equal(head.bytes.length, 0);
      assert.equal(head.headers['content-type'], get.headers['content-type']);
      assert.equal(head.headers['content-length'], get.headers['content-length'], call.path);
    }
  });

  it('each refusal and each grant is counted once', async () => {
    const [event] = await made();
    const count = async () => Object.fromEntries(await Promise.all(['granted', 'taken', 'sold_out'].map(async (result) => [result, await server.metric('holdfast_hold_requests_total', { result }) ?? 0])));
    const earlier = await count();
    assertProblem(await server.ask(event, { areas: { Floor: 8 } }), 409, 'sold_out');
    assertProblem(await server.ask(event, { best_available: { quantity: 30 } }), 409, 'sold_out');
    assertProblem(await server.ask(event, { best_available: { quantity: 30, section: 'S' } }), 409, 'sold_out');
    assertProblem(await server.ask(event, { seats: ['S-A-1'], areas: { Floor: 1 } }), 409, 'seat_taken');
    await server.take(event, { areas: { Floor: 1 } });
    await server.take(event, { best_available: { quantity: 1 } });
    const now = await count();
    assert.deepEqual([now.granted - earlier.granted, now.taken - earlier.taken, now.sold_out - earlier.sold_out], [2, 1, 3]);
  });

  it('a client that leaves while it waits for a map, a page or an answer disturbs no other', async () => {
    const event = await server.createEvent(layout);
    for (let i = 0; i < 6; i++) { // use up the allowance of maps
      await server.grant(event, `S-A-${i + 1}`);
      if (i < 5) await server.map(event);
    }
    const wires = await Wire.connectMany(server, 60);
    const paths = [`/v1/events/${event.id}/seats`, `/v1/audit?event=${event.id}`, `/v1/holds?event=${event.id}`, `/v1/events/${event.id}/seats/S-A-1`];
    await Promise.all(wires.map((wire, i) => wire.write(i % 5 === 4
      ? encode('POST', '/v1/holds', { event: event.id, best_available: { quantity: 1 }, areas: { Floor: 1 } }) : encode('GET', paths[i % 5]))));
    await sleep(20);
    for (const wire of wires) wire.reset();
    assert.equal(Object.values(await server.map(event)).slice(0, 6).join(''), 'hhhhhh');
    const { held, available } = await server.counts(event);
    assert.equal(held + available, 39);
    assert.equal((await server.get('/healthz')).status, 200);
  });

  it('no secret is in the log, however much is logged', async () => {
    const talkative = await start({ args: ['--log-level', 'debug'] });
    const event = await talkative.createEvent(layout);
    const hold = await talkative.take(event, { seats: ['S-A-1'], areas: { Floor: 2 } });
    const key = newKey();
    for (const call of Object.values(calls)) {
      const { method, path, body } = call(event, hold);
      await talkative.request(method, path, body, { 'Idempotency-Key': `${key}-${path.length}-${body ? 1 : 0}` });
    }
    const sold = await talkative.take(event, { seats: ['S-A-2'] });
    const booking = assertOk(await talkative.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }), 201);
    await talkative.get(`/v1/audit?event=${event.id}`);
    await talkative.finish();
    assert.match(talkative.logs, /\/v1\/holds\/\*\/evict/, 'it did log routes');
    for (const secret of [hold.id, sold.id, booking.id]) assert.ok(!talkative.logs.includes(secret.slice(-12)), 'a secret is in the log');
    assert.ok(!talkative.logs.includes(key));
  });
});
