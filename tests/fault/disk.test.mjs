// The disk fills up, or writes fail: every answer is true, nothing is half done, and when there is room again
// the server continues by itself.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { assertFoldIsState } from '../support/audit.mjs';
import { assertHold, assertOk, assertProblem, HOLD_ID } from '../support/expect.mjs';
import { smallDisk, sizeLimit } from '../support/disk.mjs';
import { assertVerified, checkLedger } from '../support/ledger.mjs';
import { newKey, reap, sleep, start, until } from '../support/server.mjs';

async function story(t, disk) {
  t.diagnostic(`the disk is ${disk.kind}`);
  const server = await start({ dir: disk.dir, wrap: disk.wrap });
  const event = await server.createEvent({ sections: [{ name: 'S', price: 100, rows: 10, seats_per_row: 400 }] });
  let seat = 0;
  const freeSeat = () => `S-${String.fromCharCode(65 + Math.floor(seat / 400))}-${1 + seat++ % 400}`;

  const acknowledged = [];
  for (let i = 0; i < 20; i++) acknowledged.push(await server.grant(event, [freeSeat(), freeSeat()]));
  const sold = acknowledged.shift();
  const booking = assertOk(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }), 201);
  const released = acknowledged.shift();
  assert.equal((await server.del(`/v1/holds/${released.id}`)).status, 204);

  // The ledger may have free pages for a while; after that, every write is refused.
  disk.fill(server);
  const refused = [];
  let refusals = 0;
  const isGranted = async (fields = {}) => {
    const name = freeSeat();
    const key = newKey();
    const answer = await server.hold(event, name, fields, { 'Idempotency-Key': key });
    if (answer.status === 201) { acknowledged.push(answer.json); return true; }
    assert.equal(answer.status, 503, answer.text);
    assert.ok(['ledger_unavailable', 'outcome_unknown'].includes(answer.json.code), answer.text);
    assertProblem(answer, 503, answer.json.code);
    if (answer.json.code === 'outcome_unknown') assert.match(answer.json.hold, HOLD_ID);
    refused.push({ name, key, ...answer.json });
    return false;
  };
  for (let i = 0; i < 1500 && refusals < 5; i++) refusals = await isGranted() ? 0 : refusals + 1;
  assert.equal(refusals, 5, 'the disk never seemed full');
  t.diagnostic(`${acknowledged.length} holds granted; refused with ${[...new Set(refused.map(({ code }) => code))]}`);

  // Full: the server is alive but not ready, and earlier answers are still true.
  const unready = await until('readyz turns 503', async () => {
    const answer = await server.get('/readyz');
    return answer.status === 503 && answer;
  });
  assert.ok(unready.text.length > 0, 'and says why');
  assert.equal((await server.get('/healthz')).status, 200);
  for (const hold of acknowledged.slice(-10)) assertHold(assertOk(await server.get(`/v1/holds/${hold.id}`)), { seats: hold.seats });
  assert.deepEqual(assertOk(await server.get(`/v1/bookings/${booking.id}`)), booking);
  assertProblem(await server.hold(event, acknowledged[0].seats), 409, 'seat_taken');
  for (const [method, target, body] of [['POST', `/v1/holds/${acknowledged[0].id}/renew`, {}], ['DELETE', `/v1/holds/${acknowledged[0].id}`],
    ['POST', `/v1/holds/${acknowledged[0].id}/confirm`, { fence: acknowledged[0].fence }],
    ['POST', '/v1/events', { name: 'x', currency: 'usd', sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 1 }] }]]) {
    assert.equal((await server.request(method, target, body)).status, 503, `${method} ${target}`);
  }

  // A little room is not enough for a hold, and the server does not call itself ready between two refusals.
  disk.leave(server, 16_384);
  const metadata = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`note ${i}`, 'x'.repeat(490)]));
  let unreadies = 0;
  for (let i = 0; i < 30 && unreadies < 12; i++) {
    if (await isGranted({ metadata })) continue;
    await sleep(130); // a failed ledger is probed twice a second
    assert.equal((await server.get('/readyz')).status, 503);
    assert.equal(await server.metric('holdfast_ledger_up'), 0);
    unreadies++;
  }
  assert.equal(unreadies, 12, 'the room never ran out');

  // There is room again: the server recovers by itself.
  disk.free(server);
  const started = Date.now();
  await until('readyz turns 200', async () => (await server.get('/readyz')).status === 200, 120_000, 50);
  const late = await server.grant(event, freeSeat());
  t.diagnostic(`serving again after ${Date.now() - started} ms`);
  acknowledged.push(late);

  // Nothing is half done: a refused hold does not exist; for an unknown outcome, the hold's id tells.
  const check = async () => {
    for (const hold of acknowledged) assertHold(assertOk(await server.get(`/v1/holds/${hold.id}`)), { event, seats: hold.seats });
    assert.equal(assertOk(await server.get(`/v1/holds/${released.id}`)).status, 'released');
    assert.deepEqual(assertOk(await server.get(`/v1/bookings/${booking.id}`)), booking);
    const map = await server.map(event);
    const held = new Set(acknowledged.flatMap(({ seats }) => seats));
    for (const { name, code, hold } of refused) {
      if (code !== 'outcome_unknown') continue;
      const answer = await server.get(`/v1/holds/${hold}`);
      if (answer.status === 200 && answer.json.status === 'active') held.add(name);
      else if (answer.status !== 200) assertProblem(answer, 404, 'no_such_hold');
    }
    for (const [name, shown] of Object.entries(map)) {
      const expected = sold.seats.includes(name) ? 'b' : held.has(name) ? 'h' : '.';
      assert.equal(shown, expected, name);
    }
  };
  await check();
  await server.stop({ keep: true });
  checkLedger(disk.dir);
  await server.launch();
  await check();

  // A refused request can be repeated with the same key.
  for (const { name, key, code } of refused.filter((one) => one.code === 'ledger_unavailable').slice(0, 3)) {
    const answer = await server.hold(event, name, {}, { 'Idempotency-Key': key });
    assert.equal(answer.status, 201, `${code}: ${answer.text}`);
    assert.equal(answer.headers['idempotency-replayed'], undefined);
  }
  await server.stop();
  await disk.close();
}

// A failed commit undoes everything: counters of areas, blocks, the sale's status, the choice of seats.
async function undone(disk) {
  const server = await start({ dir: disk.dir, wrap: disk.wrap });
  const event = await server.createEvent({
    sections: [{ name: 'S', price: 100, rows: 2, seats_per_row: 20 }], areas: [{ name: 'Floor', price: 5, capacity: 50 }, { name: 'Box', price: 9, capacity: 2 }],
  });
  const best = { best_available: { quantity: 3 }, areas: { Floor: 2, Box: 1 } };
  const hold = await server.take(event, best);
  const chosen = (await server.take(event, { best_available: { quantity: 3 } }));
  assert.equal((await server.del(`/v1/holds/${chosen.id}`)).status, 204); // the next request would get this seat
  assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: ['S-B-1'] }));
  const whole = async () => {
    const { status } = await server.read(`/v1/events/${event.id}`);
    const { sections, areas, seq } = await server.read(`/v1/events/${event.id}/seats`);
    return { status, counts: await server.counts(event), sections, areas, seq };
  };
  disk.fill(server);
  const before = await whole();
  const writes = [
    ['POST', '/v1/holds', { event: event.id, ...best }], ['POST', '/v1/holds', { event: event.id, areas: { Box: 1, Floor: 9 } }],
    ['POST', '/v1/holds', { event: event.id, seats: ['S-A-1'], areas: { Floor: 1 } }], ['POST', `/v1/holds/${hold.id}/evict`], ['DELETE', `/v1/holds/${hold.id}`],
    ['POST', `/v1/holds/${hold.id}/confirm`, { fence: hold.fence }], ['POST', `/v1/events/${event.id}/block`, { seats: ['S-B-2', 'S-B-3'] }],
    ['POST', `/v1/events/${event.id}/unblock`, { seats: ['S-B-1'] }], ['POST', `/v1/events/${event.id}/close`]];
  for (let round = 0; round < 2; round++) {
    for (const [method, target, body] of writes) {
      const answer = await server.request(method, target, body, method === 'POST' ? { 'Idempotency-Key': newKey() } : {});
      assertProblem(answer, 503, 'ledger_unavailable');
      assert.deepEqual(await whole(), before, `after ${method} ${target}`);
    }
    // all of them in one batch, too
    const answers = await Promise.all(writes.map(([method, target, body]) => server.request(method, target, body)));
    for (const answer of answers) assertProblem(answer, 503, 'ledger_unavailable');
    assert.deepEqual(await whole(), before);
  }
  disk.free(server);
  await until('readyz turns 200', async () => (await server.get('/readyz')).status === 200, 120_000, 50);
  assert.deepEqual(await whole(), before);
  await assertFoldIsState(server, event);
  const next = await server.take(event, best);
  assert.deepEqual(next.seats, chosen.seats, 'the same seats are best as before');
  assert.equal((await server.areas(event)).Box, 0);
  assertProblem(await server.ask(event, { areas: { Box: 1 } }), 409, 'sold_out');
  for (const [method, target, body] of writes.slice(3).filter(([method, target]) => method === 'POST' && !target.endsWith('confirm'))) {
    assertOk(await server.request(method, target, body));
  }
  await assertFoldIsState(server, event);
  assert.equal((await server.read(`/v1/events/${event.id}`)).status, 'closed');
  await server.stop({ keep: true });
  checkLedger(disk.dir);
  assertVerified(disk.dir);
  await disk.close();
}

describe('the disk', () => {
  after(reap);

  it('full: 503, the truth kept, and on again when there is room', async (t) => story(t, await smallDisk()));
  it('failing every write: 503, the truth kept, and on again when it works', async (t) => story(t, sizeLimit()));

  it('failing every write: places and what sellers do are undone, all of it', () => undone(sizeLimit()));

  it('full at the start: a clear refusal, and no crash', async () => {
    const disk = await smallDisk();
    if (disk.kind === 'a limit on file sizes') return disk.close(); // the limit needs a running process
    disk.fill();
    await assert.rejects(start({ dir: disk.dir, wrap: disk.wrap }), (error) => {
      assert.match(error.message, /ended at start \((?!SIG)[1-9]/);
      assert.match(error.message, /full|space/i);
      return true;
    });
    disk.free();
    const server = await start({ dir: disk.dir, wrap: disk.wrap });
    await server.createEvent();
    await server.stop();
    await disk.close();
  });
});
