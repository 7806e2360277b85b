// best_available where seats have positions, categories and flags: aisles separate, the focus attracts, and accessible
// seats are for those who ask.
// backends: sqlite

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { assertHold, assertInvalid, assertOk, assertProblem, assertSoldOut } from '../support/expect.mjs';
import { planEvent } from '../support/plans.mjs';
import { seed, seededRandom } from '../support/random.mjs';
import { reap, start } from '../support/server.mjs';

const PITCH = 24;

describe('best available in a plan', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  // A plan of rows, each { name, y, x: [positions of its seats], category }.  The id of a seat is its row's name and its
  // number in the list, A1, A2...
  const hall = (rows, fields = {}) => server.createEvent({
    sections: undefined, max_per_hold: 50, ...planEvent({
      name: 'Hall', size: { width: 2000, height: 2000 }, categories: [{ name: 'A' }, { name: 'B' }],
      zones: [{ name: 'S', position: { x: 0, y: 0 }, rows: rows.map(({ name, y, x, category = 'A' }) => ({
        row_number: name, position: { x: 0, y },
        seats: x.map((each, i) => ({ seat_guid: `${name}${i + 1}`, seat_number: `${i + 1}`, position: { x: each, y: 0 }, category: [].concat(category)[i % [].concat(category).length] })),
      })) }],
    }, { focus: { x: 1000, y: 0 }, ...fields }),
  });
  // The positions of n seats side by side, from x on.
  const line = (n, x) => Array.from({ length: n }, (_, i) => x + i * PITCH);
  const best = (event, quantity, fields = {}) => server.ask(event, { best_available: { quantity, ...fields } });
  const chosen = async (event, quantity, fields) => {
    const hold = assertHold(assertOk(await best(event, quantity, fields), 201), { event });
    assert.equal(hold.seats.length, quantity);
    return [...hold.seats].sort();
  };

  it('seats are those nearest to the focus, wherever their row is listed', async () => {
    const rows = [{ name: 'A', y: 900, x: line(9, 904) }, { name: 'B', y: 100, x: line(9, 904) }, { name: 'C', y: 500, x: line(9, 904) }];
    const event = await hall(rows);
    assert.deepEqual(await chosen(event, 3), ['B4', 'B5', 'B6']);
    const single = await hall([rows[0]]);
    await server.grant(single, ['A2', 'A4', 'A6', 'A8']);
    assert.deepEqual(await chosen(single, 3, { adjacent: false }), ['A3', 'A5', 'A7']);
    const aside = await hall(rows, { focus: { x: 904, y: 500 } });
    assert.deepEqual(await chosen(aside, 2), ['C1', 'C2']);
    const back = await hall(rows, { focus: { x: 1000, y: 2000 } });
    assert.deepEqual(await chosen(back, 9), line(9, 0).map((_, i) => `A${i + 1}`));
  });

  it('an aisle separates', async () => {
    const rows = [{ name: 'A', y: 100, x: [...line(3, 900), ...line(3, 1028)] }, { name: 'B', y: 1500, x: line(6, 940) }];
    const event = await hall(rows);
    assert.deepEqual(await chosen(event, 4), ['B1', 'B2', 'B3', 'B4'], 'no four seats of row A are side by side');
    assert.deepEqual(await chosen(event, 3), ['A4', 'A5', 'A6'], 'the block that is nearer to the focus');
    assert.deepEqual(await chosen(event, 3), ['A1', 'A2', 'A3']);
    const narrow = await hall([rows[0]]);
    await server.grant(narrow, ['A1', 'A2', 'A5', 'A6']); // one seat is left on each side of the aisle
    assertSoldOut(await best(narrow, 2), 2);
    assert.deepEqual(await chosen(narrow, 2, { adjacent: false }), ['A3', 'A4']);
  });

  it('neighbours are found by position, not by the order in which a row lists its seats', async () => {
    // Odd numbers go to the left of the middle and even numbers to the right: 5 3 1 2 4 6.
    const x = [0, 1, -1, 2, -2, 3].map((step) => 990 + step * PITCH); // of seats 1, 2, 3, 4, 5, 6
    const event = await hall([{ name: 'A', y: 100, x }]);
    const order = ['A5', 'A3', 'A1', 'A2', 'A4', 'A6'];
    for (let round = 0; round < 3; round++) {
      const [one, two] = await chosen(event, 2);
      assert.equal(Math.abs(order.indexOf(one) - order.indexOf(two)), 1, `${one} and ${two}`);
    }
    assertSoldOut(await best(event, 1), 0);
  });

  it('a category may be asked for, and `available` counts only its seats', async () => {
    const event = await hall([{ name: 'A', y: 100, x: line(6, 940), category: ['A', 'A', 'A', 'A', 'B', 'B'] }, { name: 'B', y: 500, x: line(2, 990), category: 'B' }]);
    assert.deepEqual(await chosen(event, 2, { category: 'B' }), ['A5', 'A6']);
    assertSoldOut(await best(event, 3, { category: 'B' }), 2);
    assert.deepEqual(await chosen(event, 2, { category: 'B', section: 'S' }), ['B1', 'B2']);
    assertSoldOut(await best(event, 1, { category: 'B' }), 0);
    assert.deepEqual(await chosen(event, 4, { category: 'A' }), ['A1', 'A2', 'A3', 'A4']);
    for (const category of ['C', 'a', 'S', 'constructor']) assertProblem(await best(event, 1, { category }), 404, 'no_such_seat');
    for (const category of [5, '', [], true]) assertInvalid(await best(event, 1, { category }), 'category');
  });

  it('the dearest category comes first, farther away or not, and then seats of several categories', async () => {
    const rows = [{ name: 'A', y: 100, x: line(6, 940) }, { name: 'B', y: 500, x: line(6, 940), category: ['A', 'A', 'B', 'B', 'B', 'A'] }];
    const prices = { A: 6500, B: 9500 };
    const event = await hall(rows, { prices });
    assert.deepEqual(await chosen(event, 2), ['B3', 'B4']);
    assert.deepEqual(await chosen(event, 1), ['A3'], 'B5 would leave B6 alone');
    assert.deepEqual(await chosen(event, 1, { category: 'B' }), ['B5'], 'but that is up to the buyer');
    const alike = await hall(rows, { prices: { A: 6500, B: 6500 } });
    assert.deepEqual(await chosen(alike, 2), ['A3', 'A4'], 'nearest to the focus');
    const mixed = await hall([rows[1]], { prices });
    assert.deepEqual(await chosen(mixed, 6), ['B1', 'B2', 'B3', 'B4', 'B5', 'B6']);
  });

  it('the best seats of the demo are its dearest', async () => {
    const theatre = JSON.parse(await readFile(new URL('../../share/holdfast/theatre.json', import.meta.url), 'utf8'));
    const event = await server.createEvent({ sections: undefined, ...theatre });
    const hold = assertOk(await best(event, 2), 201);
    assert.equal(hold.amount, 2 * 9500, `${hold.seats}`);
  });

  it('accessible seats are offered only to those who ask, who are offered no others', async () => {
    const event = await hall([{ name: 'A', y: 100, x: line(6, 940) }, { name: 'B', y: 500, x: line(4, 940) }], { accessible: ['A3', 'A4', 'B1'] });
    assert.deepEqual(await chosen(event, 2), ['A1', 'A2']);
    assert.deepEqual(await chosen(event, 2, { accessible: false }), ['A5', 'A6']);
    assert.deepEqual(await chosen(event, 2, { accessible: true }), ['A3', 'A4']);
    assert.deepEqual(await chosen(event, 3), ['B2', 'B3', 'B4']);
    assertSoldOut(await best(event, 1), 0);
    assertSoldOut(await best(event, 1, { adjacent: false }), 0);
    assert.deepEqual(await chosen(event, 1, { accessible: true }), ['B1']);
    assertSoldOut(await best(event, 1, { accessible: true }), 0);
    assertInvalid(await best(event, 1, { accessible: 'yes' }), 'accessible');
  });

  it('a companion sits beside a wheelchair, and that seat is kept for them', async () => {
    const seats = [{ label: '1' }, { label: '2', accessible: true }, { label: '3', companion: true }, { label: '4' }, { label: '5' }].map((seat, i) => ({ ...seat, x: 20 + i * PITCH, y: 10 }));
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: [{ name: 'A', seats }] }] });
    assert.deepEqual(await chosen(event, 2), ['S-A-4', 'S-A-5']);
    assertSoldOut(await best(event, 2, { adjacent: false }), 1);
    assert.deepEqual(await chosen(event, 2, { accessible: true }), ['S-A-2', 'S-A-3']);
    assert.deepEqual(await chosen(event, 1), ['S-A-1']);
  });

  it('an accessible seat between two others separates them for those who do not ask', async () => {
    const event = await hall([{ name: 'A', y: 100, x: line(3, 960) }], { accessible: ['A2'] });
    assertSoldOut(await best(event, 2), 2);
    assert.deepEqual(await chosen(event, 2, { adjacent: false }), ['A1', 'A3']);
  });

  it('a category is a section where an event has no others', async () => {
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 3 }, { name: 'T', price: 2, rows: 1, seats_per_row: 3 }] });
    assert.deepEqual(await chosen(event, 3, { category: 'T' }), ['T-A-1', 'T-A-2', 'T-A-3']);
    assertSoldOut(await best(event, 1, { category: 'T' }), 0);
    assertProblem(await best(event, 1, { category: 'U' }), 404, 'no_such_seat');
    assertSoldOut(await best(event, 1, { accessible: true }), 0);
  });

  it('rows of listed seats with positions have aisles, and flags are respected', async () => {
    const seat = (label, x, more) => ({ label, x, y: 10, ...more });
    const event = await server.createEvent({
      sections: [{ name: 'S', price: 1, rows: [{ name: 'A', seats: [seat('1', 20), seat('2', 44), seat('3', 140), seat('4', 164, { accessible: true })] }] }],
    });
    assert.deepEqual(await chosen(event, 2), ['S-A-1', 'S-A-2']);
    assertSoldOut(await best(event, 2), 1);
    assert.deepEqual(await chosen(event, 1, { accessible: true }), ['S-A-4']);
  });

  it('in random halls every choice is of free seats side by side, until none are left', async (t) => {
    t.diagnostic(`seed ${seed}`);
    const { below, oneOf } = seededRandom();
    for (let round = 0; round < 6; round++) {
      const blocks = {}; // seat -> its block of seats side by side
      const place = {};
      const rows = Array.from({ length: 2 + below(4) }, (_, r) => {
        const x = [];
        let at = 100 + below(300);
        for (let b = 1 + below(3); b > 0; b--) {
          for (let n = 2 + below(6); n > 0; n--, at += PITCH) { // of single seats nobody could tell an aisle from a wide row
            x.push(at);
            blocks[`${'ABCDEF'[r]}${x.length}`] = `${r} ${b}`;
            place[`${'ABCDEF'[r]}${x.length}`] = at;
          }
          at += 60;
        }
        return { name: 'ABCDEF'[r], y: 100 + below(1000), x };
      });
      const event = await hall(rows, { focus: { x: below(1000), y: below(1000) } });
      const free = new Set(Object.keys(blocks));
      while (free.size > 0) {
        const quantity = 1 + below(4);
        const answer = await best(event, quantity);
        if (answer.status === 201) {
          const seats = [...answer.json.seats].sort((a, b) => place[a] - place[b]);
          assert.ok(seats.every((seat) => free.delete(seat)), `${seats}`);
          seats.slice(1).forEach((seat, i) => assert.ok(blocks[seat] === blocks[seats[i]] && place[seat] - place[seats[i]] === PITCH, `${seats}`));
        } else {
          assertSoldOut(answer, free.size);
          const runs = [...free].some((seat) => Array.from({ length: quantity }, (_, i) => i).every((i) => (
            [...free].some((other) => blocks[other] === blocks[seat] && place[other] === place[seat] + i * PITCH))));
          assert.ok(!runs, `${quantity} seats are side by side among ${[...free]}`);
          const one = oneOf([...free]);
          await server.grant(event, one);
          free.delete(one);
        }
      }
    }
  });
});
