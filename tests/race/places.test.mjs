// Many buyers at the same moment ask for the best available seats, or for places of general admission (I2).
// Each claim has a twin: the same assertions on a server without protection, where they must detect the
// race.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertFoldIsState } from '../support/audit.mjs';
import { assertOk, ms } from '../support/expect.mjs';
import { stampede, tally } from '../support/race.mjs';
import { areasOf, backend, itOnce, mapOf, newKey, sleep, start } from '../support/server.mjs';
import { startUnprotected } from '../support/unprotected.mjs';
import { encode } from '../support/wire.mjs';

// As in seats.test.mjs: one server on SQLite is tried the longest, a cluster as long in `make soak`.
const rounds = (n) => (backend === 'sqlite' || process.env.HF_SOAK ? n : Math.ceil(n / 3));

const ask = (event, places, headers) => encode('POST', '/v1/holds', { event, ...places }, headers);
const won = (answers) => answers.filter(({ status }) => status === 201).map(({ json }) => json);
const placesOf = (holds, area) => holds.reduce((sum, { areas }) => sum + (areas[area] ?? 0), 0);

// Whether two seats are adjacent in one row.
function assertPair(seats) {
  assert.equal(seats.length, 2);
  const [a, b] = seats.map((seat) => /^(.*)-(\d+)$/.exec(seat));
  assert.equal(a[1], b[1], `${seats}`);
  assert.equal(Math.abs(a[2] - b[2]), 1, `${seats}`);
}

describe('races for places', () => {
  let server;
  before(async () => {
    server = await start({ wrap: (argv) => ['sh', '-c', 'ulimit -n 4096 2>/dev/null; exec "$@"', 'sh', ...argv] });
  });
  after(() => server?.finish());

  // Asserts that the winners share no seat, and that map, counts and log show exactly the winners.
  async function assertWinners(event, holds, { held } = {}) {
    const seats = holds.flatMap((hold) => hold.seats);
    assert.equal(new Set(seats).size, seats.length, 'a seat twice');
    const { map, state } = await assertFoldIsState(server, event);
    const shown = mapOf(map);
    assert.deepEqual(Object.keys(shown).filter((seat) => shown[seat] === 'h').sort(), [...seats].sort());
    for (const area of event.areas) assert.equal(areasOf(map)[area.name], area.capacity - placesOf(holds, area.name), area.name);
    assert.deepEqual(await server.counts(event), state.counts);
    if (held !== undefined) assert.equal(state.counts.held, held);
    const fences = holds.map(({ fence }) => fence);
    assert.equal(new Set(fences).size, fences.length, 'a fence of its own for every hold');
  }

  const twoOfTheBest = { best_available: { quantity: 2 } };

  it('300 pairs at one moment in a large hall: 300 different pairs', async (t) => {
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 30, seats_per_row: 40 }] });
    const bytes = ask(event.id, twoOfTheBest);
    const started = Date.now();
    const answers = await stampede(server, 300, 1, () => bytes);
    t.diagnostic(`300 requests in ${Date.now() - started} ms`);
    assert.deepEqual(tally(answers), { 201: 300 });
    for (const { seats } of won(answers)) assertPair(seats);
    await assertWinners(event, won(answers), { held: 600 });
  });

  it('300 buyers, room for 260 pairs: 260 win, and the hall is full', async () => {
    // around the middle pair of 26 seats there is room for six pairs on each side: no single seat is left
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 20, seats_per_row: 26 }] });
    const bytes = ask(event.id, twoOfTheBest);
    const answers = await stampede(server, 300, 1, () => bytes);
    assert.deepEqual(tally(answers), { 201: 260, '409 sold_out': 40 });
    for (const { status, json } of answers) if (status === 409) assert.equal(json.available, 0);
    for (const { seats } of won(answers)) assertPair(seats);
    await assertWinners(event, won(answers), { held: 520 });
    assert.equal((await server.counts(event)).available, 0);
  });

  itOnce('twin: without protection the best seats go to many', async () => {
    const twin = await startUnprotected({ free: Array.from({ length: 600 }, (_, i) => `S-A-${i + 1}`) });
    const bytes = ask('evt', twoOfTheBest);
    const seats = won(await stampede(twin, 100, 1, () => bytes)).flatMap((hold) => hold.seats);
    await twin.stop();
    assert.ok(new Set(seats).size < seats.length);
  });

  it('500 buyers of one place, room for 100: exactly 100 get one', async () => {
    const event = await server.createEvent({ areas: [{ name: 'Floor', price: 1, capacity: 100 }] });
    const bytes = ask(event.id, { areas: { Floor: 1 } });
    const answers = await stampede(server, 500, 1, () => bytes);
    assert.deepEqual(tally(answers), { 201: 100, '409 sold_out': 400 });
    for (const { status, json } of answers) if (status === 409) assert.deepEqual([json.available, json.area], [0, 'Floor']);
    await assertWinners(event, won(answers), { held: 100 });
  });

  it('buyers of several places: what is left is never negative, and no more than was asked for is left over', async () => {
    for (let round = 0; round < rounds(5); round++) {
      const event = await server.createEvent({ areas: [{ name: 'Floor', price: 1, capacity: 97 }] });
      const answers = await stampede(server, 100, 1, (index) => ask(event.id, { areas: { Floor: 1 + (index + round) % 4 } }));
      for (const outcome of Object.keys(tally(answers))) assert.match(outcome, /^(201|409 sold_out)$/);
      const left = 97 - placesOf(won(answers), 'Floor');
      assert.ok(left >= 0, `${-left} too many`);
      for (const { status, json } of answers) {
        if (status === 409) assert.ok(json.available >= 0 && json.available < 4 && json.available >= left, JSON.stringify(json));
      }
      await assertWinners(event, won(answers), { held: 97 - left });
    }
  });

  itOnce('twin: without protection more places are sold than there are', async () => {
    const twin = await startUnprotected({ capacity: { Floor: 20 } });
    const bytes = ask('evt', { areas: { Floor: 1 } });
    const sold = placesOf(won(await stampede(twin, 100, 1, () => bytes)), 'Floor');
    await twin.stop();
    assert.ok(sold > 20, `${sold}`);
  });

  // Each buyer wants seats that others want, too, and places that are too few for all.
  const mixed = [
    { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 2 } }, { seats: ['S-A-2', 'S-A-3'], areas: { Box: 1 } },
    { best_available: { quantity: 2 }, areas: { Floor: 1, Box: 1 } }, { seats: ['S-A-3'], areas: { Floor: 3, Box: 1 } },
    { areas: { Box: 1, Floor: 1 } }, { seats: ['S-A-4', 'S-A-1'] }, { best_available: { quantity: 1, adjacent: false } },
  ];

  it('seats and places in one hold are had together or not at all', async () => {
    for (let round = 0; round < rounds(10); round++) {
      const event = await server.createEvent({
        sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 8 }],
        areas: [{ name: 'Floor', price: 1, capacity: 9 }, { name: 'Box', price: 1, capacity: 4 }],
      });
      const answers = await stampede(server, 49, 2, (index, i) => ask(event.id, mixed[(index * 3 + i + round) % mixed.length]));
      for (const outcome of Object.keys(tally(answers))) assert.match(outcome, /^(201|409 (seat_taken|sold_out))$/);
      const holds = won(answers);
      assert.ok(holds.length >= 4, `${holds.length} winners`);
      for (const { seats, areas } of holds) {
        const whole = mixed.some((wish) => JSON.stringify(wish.areas ?? {}) === JSON.stringify(areas)
          && (wish.seats ? wish.seats.join() === seats.join() : seats.length === (wish.best_available?.quantity ?? 0)));
        assert.ok(whole, `a part of a wish: ${seats} ${JSON.stringify(areas)}`);
      }
      await assertWinners(event, holds);
    }
  });

  itOnce('twin: without protection seats and places are sold beyond what there is', async () => {
    const twin = await startUnprotected({ capacity: { Floor: 9, Box: 4 }, free: Array.from({ length: 8 }, (_, i) => `S-A-${i + 1}`) });
    const holds = won(await stampede(twin, 49, 1, (index) => ask('evt', mixed[index % mixed.length])));
    await twin.stop();
    const seats = holds.flatMap((hold) => hold.seats);
    assert.ok(new Set(seats).size < seats.length);
    assert.ok(placesOf(holds, 'Floor') > 9 || placesOf(holds, 'Box') > 4);
  });

  it('places go back and forth between many hands and none is lost', async () => {
    const event = await server.createEvent({
      sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 6 }], areas: [{ name: 'Floor', price: 1, capacity: 5 }],
    });
    const wishes = [{ areas: { Floor: 2 } }, { best_available: { quantity: 2 } }, { areas: { Floor: 5 } }, { seats: ['S-A-3'], areas: { Floor: 1 } }];
    let given = 0;
    await Promise.all(Array.from({ length: 24 }, async (_, index) => {
      for (let i = 0; i < 12; i++) {
        const answer = await server.ask(event, wishes[(index + i) % wishes.length]);
        if (answer.status !== 201) { assert.match(answer.json.code, /^(sold_out|seat_taken)$/); continue; }
        given++;
        const gone = index % 2 ? await server.del(`/v1/holds/${answer.json.id}`) : await server.post(`/v1/holds/${answer.json.id}/evict`);
        assert.ok([200, 204].includes(gone.status), gone.text);
      }
    }));
    assert.ok(given > 10);
    await assertWinners(event, [], { held: 0 });
    assert.deepEqual(await server.counts(event), { available: 11, held: 0, booked: 0, blocked: 0 });
  });

  it('expiry against confirmation and against buyers of places: each place has one fate', async (t) => {
    const count = 60;
    const event = await server.createEvent({ areas: [{ name: 'Floor', price: 1, capacity: count }] });
    const holds = await Promise.all(Array.from({ length: count }, () => server.take(event, { areas: { Floor: 1 }, ttl_ms: 1000 })));
    const results = await Promise.all(holds.map(async (hold, index) => {
      await sleep(ms(hold.expires_at) - 100 + (index * 37) % 200 - Date.now());
      const [confirm, grab] = await Promise.all([
        server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), server.ask(event, { areas: { Floor: 1 } })]);
      return { confirm, grab };
    }));
    const [confirms, grabs] = [tally(results.map(({ confirm }) => confirm)), tally(results.map(({ grab }) => grab))];
    t.diagnostic(`confirmations ${JSON.stringify(confirms)}, grabs ${JSON.stringify(grabs)}`);
    for (const outcome of Object.keys(confirms)) assert.match(outcome, /^(201|410 hold_expired)$/);
    for (const outcome of Object.keys(grabs)) assert.match(outcome, /^(201|409 sold_out)$/);
    const sold = confirms['201'] ?? 0;
    const grabbed = grabs['201'] ?? 0;
    assert.ok(sold + grabbed <= count, `${sold} sold and ${grabbed} given to others`);
    const { state } = await assertFoldIsState(server, event);
    assert.equal(state.areas.Floor.booked, sold);
    assert.equal(state.areas.Floor.held, grabbed + Object.values(state.holds).filter(({ status, until }) => status === 'active' && ms(until) <= Date.now()).length);
  });

  it('parallel closing and buying: after the close nobody wins', async () => {
    for (let round = 0; round < rounds(5); round++) {
      const event = await server.createEvent({ areas: [{ name: 'Floor', price: 1, capacity: 400 }] });
      const close = encode('POST', `/v1/events/${event.id}/close`);
      const answers = await stampede(server, 60, 2, (index, i) => (index === 30 && i === 0 ? close : ask(event.id, { areas: { Floor: 1 } })));
      for (const outcome of Object.keys(tally(answers))) assert.match(outcome, /^(20[01]|409 event_closed)$/);
      const { rows } = await assertFoldIsState(server, event);
      const closed = rows.find(({ cause }) => cause === 'close').seq;
      assert.ok(rows.every(({ cause, seq }) => cause !== 'hold' || seq < closed));
      assert.equal(won(answers).length, rows.filter(({ object, cause }) => object === 'hold' && cause === 'hold').length);
    }
  });

  it('blocking against buying: a seat is blocked or held, never both', async () => {
    for (let round = 0; round < rounds(10); round++) {
      const event = await server.createEvent();
      const seats = ['S-A-1', 'S-A-2', 'S-A-3'];
      const block = encode('POST', `/v1/events/${event.id}/block`, { seats });
      const answers = await stampede(server, 12, 1, (index) => (index % 4 === 3 ? block : ask(event.id, { seats: [seats[index % 3]] })));
      for (const outcome of Object.keys(tally(answers))) assert.match(outcome, /^(20[01]|409 seat_taken)$/);
      const blocked = answers.some(({ status }) => status === 200);
      assert.equal(blocked, won(answers).length === 0, JSON.stringify(tally(answers)));
      const map = await server.map(event);
      for (const seat of seats) assert.equal(map[seat], blocked ? 'x' : won(answers).some((hold) => hold.seats.includes(seat)) ? 'h' : '.');
    }
  });

  it('forty repeats of one key for the last places: one hold, the same bytes', async () => {
    const event = await server.createEvent({ areas: [{ name: 'Floor', price: 1, capacity: 3 }] });
    const bytes = ask(event.id, { best_available: { quantity: 2 }, areas: { Floor: 3 } }, { 'Idempotency-Key': newKey() });
    const answers = await stampede(server, 40, 1, () => bytes);
    assert.deepEqual(tally(answers), { 201: 40 });
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    assertOk(await server.get(`/v1/holds/${answers[0].json.id}`));
    assert.equal((await server.counts(event)).held, 5);
  });
});
