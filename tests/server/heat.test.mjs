// GET /v1/events/{e}/heat: how often seats were the reason of a refusal.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem, TIMESTAMP } from '../support/expect.mjs';
import { itOnce, newKey, reap, start } from '../support/server.mjs';

describe('heat', () => {
  let server, event;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  // Each server counts what it refused itself: resolves to the sum.
  const heat = async (query = '') => {
    const sum = { total: 0, seats: new Map() };
    for (const one of server.servers ?? [server]) {
      const { seats, total, ...rest } = assertOk(await one.get(`/v1/events/${event.id}/heat${query}`));
      Object.assign(sum, rest, { total: sum.total + total });
      for (const [seat, n] of seats) sum.seats.set(seat, (sum.seats.get(seat) ?? 0) + n);
    }
    return { ...sum, seats: [...sum.seats].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)) };
  };
  const refuse = async (seats, headers) => {
    const answer = await server.hold(event, seats, {}, headers);
    return assertProblem(answer, 409, 'seat_taken').seats;
  };

  it('an event that nobody was refused for is cold', async () => {
    event = await server.createEvent();
    await server.grant(event, ['S-A-1', 'S-A-2', 'S-B-1']);
    const { since, ...rest } = await heat();
    assert.match(since, TIMESTAMP);
    assert.ok(Date.parse(since) <= Date.now() + 1000);
    assert.deepEqual(rest, { object: 'heat', event: event.id, total: 0, seats: [] });
  });

  it('each refusal counts once for each seat that was its reason, whoever refused', async () => {
    for (let i = 0; i < 3; i++) assert.deepEqual(await refuse(['S-A-1']), ['S-A-1']); // the view
    assert.deepEqual(await refuse(['S-A-9', 'S-A-1', 'S-A-2']), ['S-A-1', 'S-A-2']);
    // A key that was used with another request is no refusal of a seat.
    const headers = { 'Idempotency-Key': newKey() };
    await server.grant(event, ['S-B-10'], {}, headers);
    assertProblem(await server.hold(event, ['S-B-1'], {}, headers), 422, 'idempotency_mismatch');
    const hold = await server.grant(event, ['S-B-9']); // the worker
    assertProblem(await server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, add: { seats: ['S-B-1'] } }), 409, 'seat_taken');
    const { total, seats } = await heat();
    assert.deepEqual(seats, [['S-A-1', 4], ['S-A-2', 1], ['S-B-1', 1]]);
    assert.equal(total, 6);
  });

  itOnce('limit shortens the list and not the total', async () => {
    const { total, seats } = await heat('?limit=1');
    assert.deepEqual(seats, [['S-A-1', 4]]);
    assert.equal(total, 6);
    for (const limit of ['0', '10001', '-1', 'x']) {
      assertInvalid(await server.get(`/v1/events/${event.id}/heat?limit=${limit}`), 'limit');
    }
  });

  itOnce('refusals of other kinds make no seat hot', async () => {
    const before = await heat();
    assertProblem(await server.post(`/v1/events/${event.id}/block`, { seats: ['S-A-1'] }), 409, 'seat_taken');
    assertProblem(await server.hold(event, ['S-Z-1']), 404, 'no_such_seat');
    assertProblem(await server.ask(event, { best_available: { quantity: 10, section: 'S', adjacent: true } }), 409, 'sold_out');
    assert.deepEqual(await heat(), before);
  });

  it('a race for one seat makes it as hot as there were losers', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => server.hold(event, ['S-A-5'])));
    const losers = answers.filter(({ status }) => status === 409).length;
    assert.equal(losers, 39);
    assert.deepEqual((await heat('?limit=1')).seats, [['S-A-5', 39]]);
  });

  itOnce('a restart forgets', async () => {
    const { since } = await heat();
    await server.restart();
    const after = await heat();
    assert.equal(after.total, 0);
    assert.ok(after.since > since);
  });
});
