// lone_seats: what becomes of a choice of seats that leaves a single one.  tests/unit/test_lone.c compares the rule with
// its definition; this suite tests it through the API.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { planEvent } from '../support/plans.mjs';
import { newKey, reap, start } from '../support/server.mjs';

const [ADMIN, SELLER] = ['an-admin-key-of-the-tests', 'a-seller-key-of-the-tests'];
const as = (key) => ({ Authorization: `Bearer ${key}` });

describe('single seats', () => {
  let server;
  before(async () => {
    server = await start({ env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER }, args: ['--hold-rate', 'off', '--public-seats-max', '1000'] });
  });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const create = (fields) => server.createEvent({ lone_seats: 'refuse', ...fields }, as(ADMIN));
  const hall = (rows, fields = {}) => create({ sections: [{ name: 'S', price: 100, rows: rows.map((seats, i) => ({ name: 'ABC'[i], seats })) }], ...fields });
  const seats = (...numbers) => numbers.map((n) => `S-A-${n}`);
  const refused = (answer, lone) => {
    const problem = assertProblem(answer, 409, 'lone_seat');
    assert.deepEqual(problem.seats, lone);
  };

  it('are refused to buyers, and the answer lists them', async () => {
    const event = await hall([8]);
    refused(await server.hold(event, seats(2)), seats(1));
    refused(await server.hold(event, seats(3, 7)), seats(8));
    refused(await server.hold(event, seats(3, 5)), seats(4));
    refused(await server.hold(event, seats(2, 3, 4, 5, 6, 7)), seats(1, 8));
    assert.deepEqual(await server.counts(event), { available: 8, held: 0, booked: 0, blocked: 0 });
    await server.grant(event, seats(1, 2, 3));
    refused(await server.hold(event, seats(5)), seats(4));
    await server.grant(event, seats(7, 8));
    await server.grant(event, seats(4, 5)); // of three any two leave one
    await server.grant(event, seats(6));
  });

  it('are what a choice may leave if nothing else is left beside it', async () => {
    const event = await hall([2, 3]);
    await server.grant(event, seats(2));
    await server.grant(event, ['S-B-1', 'S-B-3']);
    const split = await hall([7]);
    assertOk(await server.post(`/v1/events/${split.id}/block`, { seats: seats(4) }, as(SELLER)));
    refused(await server.hold(split, seats(2)), seats(1, 3));
    await server.grant(split, seats(1, 2));
    refused(await server.hold(split, seats(6)), seats(5, 7));
  });

  it('are no concern of a box office, or of an event that does not refuse them', async () => {
    const event = await hall([8]);
    assertOk(await server.hold(event, seats(2), {}, as(SELLER)), 201);
    for (const rule of ['allow', 'hint']) {
      const other = await hall([8], { lone_seats: rule });
      assert.equal(other.lone_seats, rule);
      await server.grant(other, seats(2));
    }
    assert.equal((await server.createEvent({}, as(ADMIN))).lone_seats, 'allow');
    assertOk(await server.patch(`/v1/events/${event.id}`, { lone_seats: 'allow' }, as(ADMIN)));
    await server.grant(event, seats(7));
  });

  it('are refused in a change of a hold, too, but not when it is released', async () => {
    const event = await hall([8]);
    const made = await server.grant(event, seats(1, 2, 3));
    const change = (fence, fields, headers) => server.patch(`/v1/holds/${made.id}`, { fence, ...fields }, headers);
    refused(await change(made.fence, { remove: { seats: seats(2) } }), seats(2));
    refused(await change(made.fence, { remove: { seats: seats(1) } }), seats(1));
    refused(await change(made.fence, { add: { seats: seats(7) } }), seats(8));
    const more = assertOk(await change(made.fence, { add: { seats: seats(8) }, remove: { seats: seats(3) } }));
    assert.deepEqual([...more.seats].sort(), seats(1, 2, 8));
    const left = assertOk(await change(more.fence, { remove: { seats: seats(1) } }, as(SELLER)));
    assert.equal((await server.del(`/v1/holds/${left.id}`)).status, 204);
    assert.deepEqual((await server.counts(event)).available, 8);
  });

  it('are left by best available only where it finds no other way', async () => {
    const event = await hall([4, 6]);
    const best = async (quantity, fields) => assertOk(await server.ask(event, { best_available: { quantity, ...fields } }), 201).seats;
    assert.deepEqual(await best(3), ['S-B-1', 'S-B-2', 'S-B-3']);
    assert.deepEqual(await best(3), ['S-B-4', 'S-B-5', 'S-B-6']);
    assert.equal((await best(3)).length, 3);
  });

  it('stand beside an aisle as beside a taken seat, and beside seats of any category', async () => {
    const x = [0, 24, 48, 120, 144, 168];
    const event = await create({
      sections: undefined, ...planEvent({
        name: 'Hall', size: { width: 400, height: 100 }, categories: [{ name: 'A' }, { name: 'B' }],
        zones: [{ name: 'S', position: { x: 9, y: 9 }, rows: [{ row_number: '1', seats: x.map((each, i) => ({ seat_guid: `S-A-${i + 1}`, seat_number: `${i + 1}`, category: i < 2 ? 'A' : 'B', position: { x: each, y: 0 } })) }] }],
      }),
    });
    refused(await server.hold(event, seats(2)), seats(1, 3));
    refused(await server.hold(event, seats(5)), seats(4, 6));
    await server.grant(event, seats(3, 4));
  });

  it('do not make a refusal that is kept under a key', async () => {
    const event = await hall([8]);
    const body = { event: event.id, seats: seats(2) };
    const key = { 'Idempotency-Key': newKey() };
    refused(await server.post('/v1/holds', body, key), seats(1));
    assertOk(await server.patch(`/v1/events/${event.id}`, { lone_seats: 'allow' }, as(ADMIN)));
    assertOk(await server.post('/v1/holds', body, key), 201);
  });

  it('are refused on a server without keys, to everybody', async () => {
    const open = await start();
    try {
      const event = await open.createEvent({ lone_seats: 'refuse' });
      refused(await open.hold(event, 'S-A-2'), ['S-A-1']);
      await open.restart();
      refused(await open.hold(event, 'S-A-2'), ['S-A-1']);
    } finally { await open.finish(); }
  });
});
