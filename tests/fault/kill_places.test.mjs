// kill -9 under a load of everything that is not a plain hold of seats: areas, best available, block,
// unblock, evict, close, open.  As in kill.test.mjs, writers record every answer, and after each of HF_KILLS
// (default 3) restarts all of them must still be true (I1, I2, I5, I7, I8, I11).
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertFoldIsState } from '../support/audit.mjs';
import { assertOk, assertProblem, ms } from '../support/expect.mjs';
import { assertVerified, checkLedger } from '../support/ledger.mjs';
import { seed, seededRandom } from '../support/random.mjs';
import { areasOf, mapOf, newKey, pool, reap, sleep, start, until } from '../support/server.mjs';
import { encode, Wire } from '../support/wire.mjs';

const kills = Number(process.env.HF_KILLS || 3);
const writers = 8; // and one more that opens and closes the sale
const slackMs = 50; // the difference between our clock and the ledger's
const ROWS = 'ABCDEF';
const PER_ROW = 40;

const { below, oneOf, sample } = seededRandom();
const someSeat = () => `S-${oneOf(ROWS)}-${1 + below(PER_ROW)}`;

describe('kill -9 under a load of places and sellers', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { await server?.stop(); await reap(); });

  const holds = []; // every hold that was acknowledged
  const stored = []; // every 2xx answer with a key

  const mayHaveExpired = (hold, margin = slackMs) => Date.now() >= hold.expires - margin;
  const bytesOf = ({ method, path, body, key }) => encode(method, path, body, key ? { 'Idempotency-Key': key } : {});

  function newHold(event, mine) {
    const dice = below(10);
    const body = { event: event.id };
    if (dice < 4) body.seats = [...new Set([someSeat(), someSeat()])];
    else if (dice < 7) body.best_available = { quantity: 1 + below(3), adjacent: below(3) > 0 };
    if (dice >= 6 || dice === 0) body.areas = below(4) ? { Floor: 1 + below(3) } : { Box: 1, Floor: 1 };
    if (below(10) === 0) body.ttl_ms = 1000 + below(1500);
    return { method: 'POST', path: '/v1/holds', body, key: newKey(), refusals: ['seat_taken', 'sold_out', 'event_closed'], onOk(json) {
      const hold = { id: json.id, event, seats: json.seats, areas: json.areas, amount: json.amount, fence: json.fence, expires: ms(json.expires_at), status: 'active' };
      if (body.areas) assert.deepEqual(json.areas, body.areas);
      if (body.best_available) assert.equal(json.seats.length, body.best_available.quantity);
      mine.push(hold);
      holds.push(hold);
      event.fence = Math.max(event.fence, json.fence);
    } };
  }

  // The seats that only this writer blocks and unblocks.
  function changeBlocks(event, number) {
    const own = [...event.blocked].filter((seat) => Number(seat.split('-')[2]) % writers === number);
    const unblock = own.length > 5 || (own.length > 0 && below(2) === 0);
    const seats = unblock ? [...new Set([oneOf(own), oneOf(own)])]
      : [...new Set([0, 1].map(() => `S-${oneOf(ROWS)}-${number + (number === 0 ? writers : 0) + writers * below(PER_ROW / writers)}`))];
    return { method: 'POST', path: `/v1/events/${event.id}/${unblock ? 'unblock' : 'block'}`, body: { seats }, key: newKey(), refusals: unblock ? [] : ['seat_taken'], onOk(json) {
      assert.deepEqual(json.seats, seats);
      for (const seat of seats) event.blocked[unblock ? 'delete' : 'add'](seat);
    } };
  }

  // Chooses a writer's next step.  Returns the request and a function that applies its answer to the record.
  function choose(event, mine, number) {
    const live = mine.filter((hold) => hold.status === 'active');
    const dice = below(100);
    if (dice < 15) return changeBlocks(event, number);
    if (live.length === 0 || dice < 55) return newHold(event, mine);
    const hold = oneOf(live);
    const path = `/v1/holds/${hold.id}`;
    if (dice < 65) {
      return { hold, wants: 'active', method: 'POST', path: `${path}/renew`, body: { ttl_ms: 60_000 + below(400_000) }, key: newKey(), refusals: ['renewal_cap'], onOk(json) {
        hold.expires = ms(json.expires_at);
      } };
    }
    if (dice < 75) return { hold, wants: 'released', method: 'DELETE', path, refusals: [], onOk() { hold.status = 'released'; } };
    if (dice < 88) {
      return { hold, wants: 'released', method: 'POST', path: `${path}/evict`, key: newKey(), refusals: [], onOk(json) {
        assert.equal(json.status, 'released');
        hold.status = 'released';
      } };
    }
    return { hold, wants: 'confirmed', method: 'POST', path: `${path}/confirm`, body: { fence: hold.fence }, key: newKey(), refusals: [], onOk(json) {
      assert.deepEqual(json.areas, hold.areas);
      hold.status = 'confirmed';
      hold.booking = json;
    } };
  }

  const openOrClose = (event, action) => ({ method: 'POST', path: `/v1/events/${event.id}/${action}`, key: newKey(), refusals: [], onOk(json) {
    event.sale = json.status;
    assert.equal(json.status, action === 'open' ? 'open' : 'closed');
  } });

  function record(request, answer) {
    if (answer.status >= 300) {
      const { code } = answer.json;
      if (code === 'hold_expired') {
        assert.ok(mayHaveExpired(request.hold), `${answer.text} of ${JSON.stringify(request.hold)}`);
        request.hold.status = 'expired';
      } else assert.ok(request.refusals.includes(code), `${request.method} ${request.path} ${JSON.stringify(request.body)}: ${answer.status} ${answer.text}`);
      if (code === 'sold_out') assert.ok(answer.json.available >= 0, answer.text);
      return;
    }
    request.onOk(answer.status === 204 ? undefined : answer.json);
    if (request.key) stored.push({ ...request, status: answer.status, text: answer.text });
  }

  // Writes until the connection breaks; returns the request that was not answered.
  async function write(wire, event, number) {
    const mine = [];
    for (let i = 0; ; i++) {
      const request = number === writers ? openOrClose(event, i % 2 ? 'open' : 'close') : choose(event, mine, number);
      let answer;
      try { answer = await wire.send(bytesOf(request)); } catch { return request; }
      record(request, answer);
      if (number === writers) await sleep(i % 2 ? 60 : 5); // the sale is open most of the time
    }
  }

  async function assertStillTrue(hold, lost) {
    const read = assertOk(await server.get(`/v1/holds/${hold.id}`));
    const what = `${JSON.stringify({ ...hold, event: hold.event.id })} reads as ${JSON.stringify(read)}`;
    assert.deepEqual([read.seats, read.areas, read.amount, read.fence], [hold.seats, hold.areas, hold.amount, hold.fence], what);
    const pending = lost.find((request) => request.hold === hold);
    const allowed = [hold.status, ...(pending ? [pending.wants] : []), ...(hold.status === 'active' && mayHaveExpired(hold) ? ['expired'] : [])];
    assert.ok(allowed.includes(read.status), `allowed ${allowed}: ${what}`);
    if (pending?.path.endsWith('/renew')) assert.ok(ms(read.expires_at) >= hold.expires, what);
    else assert.equal(ms(read.expires_at), hold.expires, what);
    if (hold.status === 'confirmed') assert.deepEqual(assertOk(await server.get(`/v1/bookings/${hold.booking.id}`)), hold.booking, what);
    if (hold.status === 'active' && read.status === 'expired') hold.status = 'expired';
  }

  // Asserts that the map equals the record, seat by seat and area by area.
  async function assertMap(event) {
    const snapshot = await server.read(`/v1/events/${event.id}/seats`);
    const read = Date.now();
    const expected = Object.fromEntries([...event.blocked].map((seat) => [seat, 'x']));
    const either = new Set(); // places of holds that may be expiring at this moment: held or free
    const left = Object.fromEntries(event.areas.map(({ name, capacity }) => [name, { least: capacity, most: capacity }]));
    for (const hold of holds) {
      if (hold.event !== event || !['active', 'confirmed'].includes(hold.status)) continue;
      const sure = hold.status === 'confirmed' || hold.expires >= read + 2000;
      for (const [area, quantity] of Object.entries(hold.areas)) {
        left[area].least -= quantity;
        if (sure) left[area].most -= quantity;
      }
      for (const seat of hold.seats) {
        if (!sure) { either.add(seat); continue; }
        assert.equal(expected[seat], undefined, `${seat} of ${event.id} has two owners`);
        expected[seat] = hold.status === 'active' ? 'h' : 'b';
      }
    }
    for (const [seat, shown] of Object.entries(mapOf(snapshot))) {
      if (either.has(seat) && !expected[seat]) assert.match(shown, /[.h]/);
      else assert.equal(shown, expected[seat] ?? '.', `${seat} of ${event.id}`);
    }
    for (const [area, available] of Object.entries(areasOf(snapshot))) {
      assert.ok(available >= left[area].least && available <= left[area].most, `${available} left of ${area}, not ${JSON.stringify(left[area])}`);
    }
  }

  it(`every acknowledged answer is true after each of ${kills} kills`, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const events = [];
    for (let round = 1; round <= kills; round++) {
      const event = await server.createEvent({
        sections: [{ name: 'S', price: 100, rows: ROWS.length, seats_per_row: PER_ROW }],
        areas: [{ name: 'Floor', price: 30, capacity: 300 }, { name: 'Box', price: 7, capacity: 25 }],
      });
      Object.assign(event, { fence: 0, blocked: new Set(), sale: 'open' });
      events.push(event);
      const acknowledged = holds.length;
      const wires = await Wire.connectMany(server, writers + 1);
      const running = Promise.all(wires.map((wire, number) => write(wire, event, number)));
      await Promise.race([running, sleep(100 + below(400))]);
      await until('something is acknowledged', () => holds.length > acknowledged, undefined, 1);
      await server.kill9();
      const lost = await running;
      checkLedger(server.dir);
      assertVerified(server.dir);
      await server.launch();

      // 1. Everything acknowledged is true.
      const fresh = holds.slice(acknowledged);
      assert.ok(fresh.length > 0, 'nothing was acknowledged before the kill');
      await pool(fresh, 16, (hold) => assertStillTrue(hold, lost));
      await pool(sample(holds.slice(0, acknowledged), 100), 16, (hold) => assertStillTrue(hold, []));
      const { status } = await server.read(`/v1/events/${event.id}`);
      const closing = lost.find(({ path }) => /\/(open|close)$/.test(path));
      assert.ok(closing || status === event.sale, `${status}, not ${event.sale}`);
      if (status === 'closed') assertProblem(await server.ask(event, { areas: { Floor: 1 } }), 409, 'event_closed');

      // 2. An unanswered request is repeated with its key and takes effect once.
      for (const request of lost) record(request, await server.request(request.method, request.path, request.body, request.key ? { 'Idempotency-Key': request.key } : {}));
      assert.equal((await server.read(`/v1/events/${event.id}`)).status, event.sale);
      await assertMap(event);
      if (round > 1) await assertMap(oneOf(events));
      await assertFoldIsState(server, event);

      // 3. A stored key gives the same bytes and has no further effect.
      await pool(sample(stored, 150), 16, async ({ method, path, body, key, status: was, text }) => {
        const answer = await server.request(method, path, body, { 'Idempotency-Key': key });
        assert.deepEqual([answer.status, answer.text, answer.headers['idempotency-replayed']], [was, text, 'true']);
      });
      await assertMap(event);

      // 4. The fence continues from where it was.
      assertOk(await server.post(`/v1/events/${event.id}/open`));
      event.sale = 'open';
      const granted = await server.ask(event, { best_available: { quantity: 1 } });
      if (granted.status === 201) {
        assert.ok(granted.json.fence > event.fence, `fence ${granted.json.fence} after ${event.fence}`);
        assertOk(await server.post(`/v1/holds/${granted.json.id}/evict`));
      } else assertProblem(granted, 409, 'sold_out');
      t.diagnostic(`kill ${round}: ${fresh.length} holds acknowledged, ${event.blocked.size} seats blocked, ${lost.length} requests unanswered`);
    }
    assert.equal(await server.metric('holdfast_ledger_surprises_total'), 0);
    assertVerified(server.dir); // while the server runs
    await server.stop({ keep: true });
    t.diagnostic(`ledger: ${JSON.stringify(checkLedger(server.dir))}`);
    const { checks } = assertVerified(server.dir);
    for (const invariant of ['I2', 'I11']) assert.ok(checks.some((check) => check.invariant === invariant && check.rows > 0), `${invariant} was not looked at`);
    await server.launch();
    await pool(sample(holds, 300), 16, (hold) => assertStillTrue(hold, []));
  });
});
