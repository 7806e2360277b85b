// best_available: which seats the server chooses.  tests/unit/test_best*.c compare each choice with every
// possible one; this suite tests it through the API.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertHold, assertIdempotent, assertInvalid, assertOk, assertProblem, assertSoldOut, ms } from '../support/expect.mjs';
import { seed, seededRandom } from '../support/random.mjs';
import { backend, inTime, itOnce, mapOf, newKey, reap, sleep, start } from '../support/server.mjs';

const row = (name, from, to) => Array.from({ length: to - from + 1 }, (_, i) => `${name}-${from + i}`);

describe('best available', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  // `layout` is the list of the widths of the rows of section S.
  const hall = (layout, fields = {}) => server.createEvent({
    sections: [{ name: 'S', price: 100, rows: layout.map((seats, i) => ({ name: 'ABCDEFGH'[i], seats })) }], max_per_hold: 50, ...fields,
  });
  const best = (event, quantity, fields = {}, more = {}) => server.ask(event, { best_available: { quantity, ...fields }, ...more });
  const chosen = async (event, quantity, fields = {}, more = {}) => {
    const hold = assertHold(assertOk(await best(event, quantity, fields, more), 201), { event, areas: more.areas });
    assert.equal(hold.seats.length, quantity);
    return hold.seats;
  };

  itOnce('seats are together in the front row, around its middle', async () => {
    assert.deepEqual(await chosen(await hall([5, 5]), 1), ['S-A-3']);
    assert.deepEqual(await chosen(await hall([9, 9]), 3), row('S-A', 4, 6));
    assert.deepEqual(await chosen(await hall([10, 10]), 4), row('S-A', 4, 7));
    assert.deepEqual(await chosen(await hall([10, 10]), 10), row('S-A', 1, 10));
    const two = await chosen(await hall([9]), 2); // both halves are equally good, so the lower numbers win
    assert.deepEqual(two, ['S-A-4', 'S-A-5']);
  });

  it('the hold is like any other: amount, map, counts, confirmation', async () => {
    const event = await hall([9, 9]);
    const hold = assertOk(await best(event, 3, {}, { owner: 'Ann', ttl_ms: 50_000, metadata: { a: 1 } }), 201);
    assertHold(hold, { event, seats: row('S-A', 4, 6) });
    assert.deepEqual([hold.amount, hold.owner, hold.expires_in_ms, hold.metadata], [300, 'Ann', 50_000, { a: 1 }]);
    assert.equal(Object.values(await server.map(event)).join(''), '...hhh............');
    assert.deepEqual(await server.counts(event), { available: 15, held: 3, booked: 0, blocked: 0 });
    assert.deepEqual((await server.read(`/v1/holds/${hold.id}`)).seats, hold.seats);
    const booking = assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
    assert.deepEqual(booking.seats, hold.seats);
    assert.equal(Object.values(await server.map(event)).join(''), '...bbb............');
  });

  itOnce('the next buyer gets the next best, front rows first, until nothing is left', async () => {
    const event = await hall([6, 6]);
    const given = [];
    for (let i = 0; i < 6; i++) {
      const seats = await chosen(event, 2);
      assert.equal(seats[0].slice(0, 4), i < 3 ? 'S-A-' : 'S-B-');
      given.push(...seats);
    }
    assert.equal(new Set(given).size, 12);
    assertSoldOut(await best(event, 2), 0);
    assertSoldOut(await best(event, 1, { adjacent: false }), 0);
  });

  itOnce('sections are ranked as listed, whatever they cost', async () => {
    const event = await server.createEvent({ sections: [
      { name: 'Zulu', tier: 'B', price: 50, rows: 1, seats_per_row: 3 },
      { name: 'Alpha', tier: 'A', price: 90, rows: 1, seats_per_row: 3 },
      { name: 'Mike', tier: 'B', price: 10, rows: 1, seats_per_row: 3 }] });
    assert.deepEqual(await chosen(event, 3), row('Zulu-A', 1, 3));
    assert.deepEqual(await chosen(event, 3), row('Alpha-A', 1, 3));
    assert.deepEqual(await chosen(event, 3), row('Mike-A', 1, 3));
    assertSoldOut(await best(event, 3), 0);
  });

  it('the dearest category comes first, by the prices of the moment, and those of one price are ranked as listed', async () => {
    const names = ['Zulu', 'Alpha', 'Mike', 'Echo'];
    const hall = (prices, seats = 3) => server.createEvent({ categories: names.map((name, i) => ({ name: `c${name}`, price: prices[i] })),
      sections: names.map((name) => ({ name, category: `c${name}`, rows: 1, seats_per_row: seats })) });
    const event = await hall([50, 90, 10, 50]);
    for (const name of ['Alpha', 'Zulu', 'Echo', 'Mike']) assert.deepEqual(await chosen(event, 3), row(`${name}-A`, 1, 3));
    assertSoldOut(await best(event, 3), 0);
    const alike = await hall([70, 70, 70, 70]);
    for (const name of names) assert.deepEqual(await chosen(alike, 3), row(`${name}-A`, 1, 3));
    const changing = await hall([90, 50, 20, 10], 9);
    const next = async () => (await chosen(changing, 1))[0][0];
    assert.equal(await next(), 'Z');
    assertOk(await server.patch(`/v1/events/${changing.id}`, { prices: { cZulu: 40 } }));
    assert.equal(await next(), 'A');
    assertOk(await server.patch(`/v1/events/${changing.id}`, { prices: { cZulu: 60 } }));
    assert.equal(await next(), 'Z');
    await server.restart();
    assert.equal(await next(), 'Z');
  });

  itOnce('a section or a tier may be asked for, and `available` counts only those', async () => {
    const sections = [
      { name: 'S', tier: 'A', price: 90, rows: 1, seats_per_row: 4 },
      { name: 'T', tier: 'B', price: 50, rows: 1, seats_per_row: 4 },
      { name: 'U', tier: 'B', price: 10, rows: 1, seats_per_row: 4 },
      { name: 'V', price: 5, rows: 1, seats_per_row: 4 }];
    const event = await server.createEvent({ sections });
    assert.deepEqual(await chosen(event, 4, { section: 'U' }), row('U-A', 1, 4));
    assert.deepEqual(await chosen(event, 2, { tier: 'B' }), row('T-A', 1, 2)); // the middle would leave two single seats
    assert.deepEqual(await chosen(event, 4, { section: 'S', tier: 'A' }), row('S-A', 1, 4));
    assertSoldOut(await best(event, 1, { section: 'U' }), 0);
    assertSoldOut(await best(event, 1, { tier: 'A' }), 0);
    assertSoldOut(await best(event, 3, { tier: 'B' }), 2);
    assertSoldOut(await best(event, 3, { tier: 'B', adjacent: false }), 2);
    assertSoldOut(await best(event, 1, { section: 'T', tier: 'A' }), 0); // T has another tier
    assert.deepEqual(await chosen(event, 2, { section: null, tier: null }), row('T-A', 3, 4));
    assert.deepEqual(await chosen(event, 4, { section: 'V' }), row('V-A', 1, 4));
    for (const [field, name] of [['section', 'X'], ['section', 's'], ['tier', 'C'], ['tier', 'a'], ['section', 'S-A'], ['section', 'A']]) {
      assertProblem(await best(event, 1, { [field]: name }), 404, 'no_such_seat');
    }
  });

  itOnce('no single seat is left over if that can be avoided', async () => {
    // Of 5 free seats, the middle three would leave two single seats; the left three leave a pair.
    assert.deepEqual(await chosen(await hall([5]), 3), row('S-A', 1, 3));
    // Three of four would leave a single seat, so the row behind is chosen.
    const event = await hall([4, 7]);
    const seats = await chosen(event, 3);
    assert.equal(seats[0].slice(0, 4), 'S-B-', `${seats}`);
    assert.notDeepEqual(seats, row('S-B', 2, 4));
    assert.notDeepEqual(seats, row('S-B', 4, 6));
    // If there is no better choice, a single seat is left rather than the buyer refused.
    const narrow = await hall([4]);
    const three = await chosen(narrow, 3);
    assert.ok([row('S-A', 1, 3), row('S-A', 2, 4)].some((list) => list.join() === three.join()));
    assert.deepEqual(await server.counts(narrow), { available: 1, held: 3, booked: 0, blocked: 0 });
  });

  itOnce('adjacent means one row and no gap; adjacent:false may split', async () => {
    const event = await hall([5, 5]);
    await server.grant(event, ['S-A-2', 'S-A-4', 'S-B-3']); // A: 1 . 3 . 5, B: 1 2 . 4 5
    assertSoldOut(await best(event, 3), 7);
    assertSoldOut(await best(event, 3, { adjacent: true }), 7);
    assert.deepEqual(await chosen(event, 2), ['S-B-1', 'S-B-2']);
    assert.deepEqual(await chosen(event, 3, { adjacent: false }), ['S-A-1', 'S-A-3', 'S-A-5']);
    assert.deepEqual(await chosen(event, 2, { adjacent: false }), ['S-B-4', 'S-B-5']);
    const rows = await hall([3, 3, 3]);
    const split = await chosen(rows, 7, { adjacent: false });
    assert.equal(new Set(split).size, 7);
    assertSoldOut(await best(rows, 3, { adjacent: false }), 2);
  });

  itOnce('together is preferred though seats may be split', async () => {
    const event = await hall([5, 5]);
    await server.grant(event, ['S-A-3']);
    assert.deepEqual(await chosen(event, 4, { adjacent: false }), row('S-B', 1, 4));
  });

  it('held, booked and blocked seats are passed over, released ones are not', async () => {
    const event = await hall([7]);
    await server.grant(event, 'S-A-4');
    const sold = await server.grant(event, 'S-A-1');
    await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence });
    assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: ['S-A-7'] }));
    assertSoldOut(await best(event, 3), 4); // 2 3 and 5 6
    const pair = assertOk(await best(event, 2), 201);
    assertSoldOut(await best(event, 4, { adjacent: false }), 2);
    assert.equal((await server.del(`/v1/holds/${pair.id}`)).status, 204);
    assert.deepEqual(await chosen(event, 2), pair.seats);
    assertOk(await server.post(`/v1/events/${event.id}/unblock`, { seats: ['S-A-7'] }));
    const rest = pair.seats[0] === 'S-A-2' ? ['S-A-5', 'S-A-6', 'S-A-7'] : ['S-A-6', 'S-A-7'];
    assert.deepEqual(await chosen(event, rest.length), rest);
  });

  it('seats of a hold that ran out are given at once', async () => {
    const [event, hold] = await inTime(async (ttl_ms) => {
      const full = await hall([4]);
      const made = assertOk(await best(full, 4, {}, { ttl_ms }), 201);
      assertSoldOut(await best(full, 1), 0);
      return [full, made];
    });
    await sleep(ms(hold.expires_at) - Date.now() + 5);
    assert.deepEqual(await chosen(event, 4), hold.seats);
    assertProblem(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 410, 'hold_expired');
  });

  itOnce('with areas in one hold it is all or nothing', async () => {
    const event = await hall([4], { areas: [{ name: 'Floor', price: 7, capacity: 3 }] });
    const hold = assertOk(await best(event, 2, {}, { areas: { Floor: 2 } }), 201);
    assertHold(hold, { event, areas: { Floor: 2 } });
    assert.equal(hold.amount, 2 * 100 + 2 * 7);
    const before = await server.counts(event);
    assertSoldOut(await best(event, 1, {}, { areas: { Floor: 2 } }), 1, 'Floor');
    assertSoldOut(await best(event, 3, {}, { areas: { Floor: 1 } }), 2);
    assertProblem(await best(event, 1, {}, { areas: { Nowhere: 1 } }), 404, 'no_such_seat');
    assertProblem(await best(event, 1, { section: 'X' }, { areas: { Floor: 1 } }), 404, 'no_such_seat');
    assert.deepEqual(await server.counts(event), before);
    assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    assert.deepEqual(await server.counts(event), { available: 7, held: 0, booked: 0, blocked: 0 });
  });

  itOnce('what is wrong with the wish is named', async () => {
    const event = await hall([9]);
    for (const quantity of [0, -1, 1.5, '2', true, null, [2], {}, 2 ** 31, 2 ** 53, 1e300]) {
      assertInvalid(await best(event, quantity), 'best_available.quantity');
    }
    assertInvalid(await server.ask(event, { best_available: {} }), 'best_available.quantity');
    for (const wish of [null, 2, '2', true, [], [{ quantity: 2 }]]) {
      assertInvalid(await server.ask(event, { best_available: wish }), 'best_available');
    }
    for (const section of [7, true, [], {}, '', 'x'.repeat(256)]) assertInvalid(await best(event, 1, { section }), 'best_available.section');
    for (const tier of [7, true, [], {}, '', 'x'.repeat(33)]) assertInvalid(await best(event, 1, { tier }), 'best_available.tier');
    for (const adjacent of [0, 1, 'true', null, [], {}]) assertInvalid(await best(event, 1, { adjacent }), 'best_available.adjacent');
    for (const extra of [{ rows: 1 }, { Quantity: 1 }, { seats: [] }, { event: event.id }]) {
      assertInvalid(await best(event, 1, extra), `best_available.${Object.keys(extra)[0]}`);
    }
    assertInvalid(await best(event, 1, {}, { seats: ['S-A-1'] }), 'best_available');
    assertInvalid(await best(event, 1, {}, { seats: [] }), 'seats');
    assert.deepEqual(await server.counts(event), { available: 9, held: 0, booked: 0, blocked: 0 });
  });

  itOnce('max_per_hold bounds the quantity, before what is unknown or gone', async () => {
    const event = await hall([9], { max_per_hold: 3 });
    for (const quantity of [4, 500, 501, 2 ** 31 - 1]) assertProblem(await best(event, quantity), 400, 'too_many_seats');
    assertProblem(await best(event, 4, { section: 'X' }), 400, 'too_many_seats');
    assert.deepEqual(await chosen(event, 3), row('S-A', 4, 6));
    // More seats than are stored inside the request itself.
    const large = await hall([300], { max_per_hold: 200 });
    assert.deepEqual(await chosen(large, 200), row('S-A', 51, 250));
    assertSoldOut(await best(large, 101, { adjacent: false }), 100);
    assertSoldOut(await best(large, 51), 100);
  });

  it('a repeat under the same key gets the same seats, and takes no others', async () => {
    const event = await hall([9]);
    const body = { event: event.id, best_available: { quantity: 2 } };
    const hold = await assertIdempotent(server, '/v1/holds', body, { ...body, best_available: { quantity: 1 } }, newKey(), 201);
    assert.deepEqual((await server.counts(event)).held, 2);
    // The same for the last seats of the event.
    const last = { event: event.id, best_available: { quantity: 7, adjacent: false } };
    await assertIdempotent(server, '/v1/holds', last, body, newKey(), 201);
    const key = { 'Idempotency-Key': newKey() };
    assertSoldOut(await server.post('/v1/holds', body, key), 0);
    assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    assert.deepEqual(assertOk(await server.post('/v1/holds', body, key), 201).seats, hold.seats);
  });

  it('the same requests on another server, or after a restart, choose the same seats', async (t) => {
    t.diagnostic(`seed ${seed}`);
    const layout = { sections: [
      { name: 'S', tier: 'A', price: 3, rows: [{ name: 'A', seats: 11 }, { name: 'B', seats: 12 }, { name: 'C', seats: 5 }] },
      { name: 'T', tier: 'B', price: 2, rows: 3, seats_per_row: 13 }] };
    const servers = [server, await start()];
    const steps = backend === 'cluster' ? 40 : 90; // a cluster waits for each change on every server
    const stories = await Promise.all(servers.map(async (other, index) => {
      const { below, oneOf } = seededRandom();
      const event = await other.createEvent(layout);
      const story = [];
      const live = [];
      for (let i = 0; i < steps; i++) {
        if (index === 1 && i === steps / 2) await other.restart(); // afterwards its view comes from the ledger
        if (live.length > 4 && below(3) === 0) {
          const hold = live.splice(below(live.length), 1)[0];
          assert.equal((await other.del(`/v1/holds/${hold.id}`)).status, 204);
          continue;
        }
        const wish = { quantity: 1 + below(5), ...[{}, {}, { adjacent: false }, { section: oneOf('ST') }, { tier: oneOf('AB') }][below(5)] };
        const answer = await other.ask(event, { best_available: wish });
        story.push(answer.status === 201 ? answer.json.seats.join(' ') : `${answer.json.code} ${answer.json.available}`);
        if (answer.status === 201) live.push(answer.json);
      }
      const map = mapOf(await other.read(`/v1/events/${event.id}/seats`));
      story.push(Object.values(map).join(''));
      assert.equal(Object.values(map).filter((seat) => seat === 'h').length, live.flatMap(({ seats }) => seats).length);
      if (other !== server) await other.finish();
      return story;
    }));
    assert.deepEqual(stories[0], stories[1]);
  });
});
