// kill -9 under load, HF_KILLS times (default 3).  Writers record every answer; after each
// restart all of them must still be true (I1, I5, I7, I8).
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertOk, ms } from '../support/expect.mjs';
import { checkLedger } from '../support/ledger.mjs';
import { newKey, pool, reap, sleep, start, until } from '../support/server.mjs';
import { encode, Wire } from '../support/wire.mjs';

const kills = Number(process.env.HF_KILLS || 3);
const writers = 8;
const sampleOfOld = 150;
const slackMs = 50; // the difference between our clock and the ledger's

// Prints its seed, so that a failure can be repeated.
const seed = Number(process.env.HF_SEED || Date.now() % 1_000_000);
let random = seed;
function below(limit) {
  random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
  return Math.floor(random / 4294967296 * limit);
}
const oneOf = (list) => list[below(list.length)];
const sample = (list, count) => (list.length <= count ? list : Array.from({ length: count }, () => oneOf(list)));

describe('kill -9 under load', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { await server?.stop(); await reap(); });

  const holds = []; // every hold that was acknowledged
  const stored = []; // { path, body, key, status, text } of every 2xx with a key

  // Chooses a writer's next step.  Returns the request and a function that applies its answer to the record.
  function choose(event, mine) {
    const live = mine.filter((hold) => hold.status === 'active');
    const dice = below(100);
    if (live.length === 0 || dice < 50) {
      const seats = new Set();
      for (let n = 1 + below(3); seats.size < n;) seats.add(`S-${oneOf('ABCDEFGHIJ')}-${1 + below(100)}`);
      const body = { event: event.id, seats: [...seats] };
      if (below(10) === 0) body.ttl_ms = 1000 + below(1500);
      return { method: 'POST', path: '/v1/holds', body, key: newKey(), onOk(json) {
        const hold = { id: json.id, event, seats: json.seats, fence: json.fence, expires: ms(json.expires_at), status: 'active' };
        mine.push(hold);
        holds.push(hold);
        event.fence = Math.max(event.fence, json.fence);
      } };
    }
    const hold = oneOf(live);
    if (dice < 65) {
      return { hold, wants: 'active', method: 'POST', path: `/v1/holds/${hold.id}/renew`, body: { ttl_ms: 60_000 + below(400_000) }, key: newKey(), onOk(json) {
        assert.equal(json.fence, hold.fence);
        assert.ok(ms(json.expires_at) >= hold.expires);
        hold.expires = ms(json.expires_at);
      } };
    }
    if (dice < 85) {
      return { hold, wants: 'released', method: 'DELETE', path: `/v1/holds/${hold.id}`, onOk() { hold.status = 'released'; } };
    }
    return { hold, wants: 'confirmed', method: 'POST', path: `/v1/holds/${hold.id}/confirm`, body: { fence: hold.fence }, key: newKey(), onOk(json) {
      hold.status = 'confirmed';
      hold.booking = json;
    } };
  }

  const bytesOf = ({ method, path, body, key }) => encode(method, path, body, key ? { 'Idempotency-Key': key } : {});

  const mayHaveExpired = (hold) => Date.now() >= hold.expires - slackMs;

  // Applies an answer to the record.  409 (a lost race, nothing to renew) and 410 (an expired hold) change nothing.
  function record(request, answer) {
    if (answer.status >= 300) {
      assert.ok([409, 410].includes(answer.status), `${request.method} ${request.path}: ${answer.status} ${answer.text}`);
      if (answer.status === 410) {
        assert.equal(answer.json.code, 'hold_expired');
        assert.ok(mayHaveExpired(request.hold), `${answer.text} of ${JSON.stringify(request.hold)}`);
        request.hold.status = 'expired';
      }
      if (answer.status === 409) assert.equal(answer.json.code, request.path.endsWith('/renew') ? 'renewal_cap' : 'seat_taken');
      return;
    }
    request.onOk(answer.status === 204 ? undefined : answer.json);
    if (request.key) stored.push({ ...request, status: answer.status, text: answer.text });
  }

  // Writes until the connection breaks; returns the request that was not answered.
  async function write(wire, event) {
    const mine = [];
    for (;;) {
      const request = choose(event, mine);
      let answer;
      try { answer = await wire.send(bytesOf(request)); } catch { return request; }
      record(request, answer);
    }
  }

  // Asserts that earlier answers are still true.  `lost` are requests that may or may not have taken effect.
  async function assertStillTrue(hold, lost) {
    const read = assertOk(await server.get(`/v1/holds/${hold.id}`));
    const what = `${JSON.stringify({ ...hold, event: hold.event.id })} reads as ${JSON.stringify(read)}`;
    assert.deepEqual(read.seats, hold.seats, what);
    assert.equal(read.fence, hold.fence, what);
    const pending = lost.find((request) => request.hold === hold);
    const allowed = [hold.status];
    if (pending) allowed.push(pending.wants);
    if (hold.status === 'active' && mayHaveExpired(hold)) allowed.push('expired');
    assert.ok(allowed.includes(read.status), `allowed ${allowed}: ${what}`);
    if (pending?.path.endsWith('/renew')) assert.ok(ms(read.expires_at) >= hold.expires, what);
    else assert.equal(ms(read.expires_at), hold.expires, what);
    if (hold.status === 'confirmed') {
      assert.deepEqual(assertOk(await server.get(`/v1/bookings/${hold.booking.id}`)), hold.booking, what);
    }
    if (hold.status === 'active' && read.status === 'expired') hold.status = 'expired';
  }

  // Asserts that the map of an event equals the record, seat by seat.
  async function assertMap(event) {
    const map = await server.map(event);
    const read = Date.now();
    const expected = Object.fromEntries(Object.keys(map).map((seat) => [seat, '.']));
    const either = new Set();
    for (const hold of holds) {
      if (hold.event !== event || !['active', 'confirmed'].includes(hold.status)) continue;
      for (const seat of hold.seats) {
        // the hold may be expiring at this moment: its seats are held or free
        if (hold.status === 'active' && hold.expires < read + 2000) either.add(seat);
        else {
          assert.equal(expected[seat], '.', `${seat} of ${event.id} has two owners`);
          expected[seat] = hold.status === 'active' ? 'h' : 'b';
        }
      }
    }
    for (const [seat, shown] of Object.entries(map)) {
      if (either.has(seat) && expected[seat] === '.') assert.match(shown, /[.h]/);
      else assert.equal(shown, expected[seat], `${seat} of ${event.id}`);
    }
  }

  it(`every acknowledged answer is true after each of ${kills} kills`, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const events = [];
    for (let round = 1; round <= kills; round++) {
      const event = await server.createEvent({ sections: [{ name: 'S', price: 100, rows: 10, seats_per_row: 100 }] });
      event.fence = 0;
      events.push(event);
      const acknowledged = holds.length;
      const wires = await Wire.connectMany(server, writers);
      const running = Promise.all(wires.map((wire) => write(wire, event)));
      await Promise.race([running, sleep(100 + below(400))]);
      await until('something is acknowledged', () => holds.length > acknowledged, undefined, 1);
      await server.kill9();
      const lost = await running;
      if (round <= 5 || round % 10 === 0) checkLedger(server.dir);
      await server.launch();

      // 1. Everything acknowledged is true.
      const fresh = holds.slice(acknowledged);
      assert.ok(fresh.length > 0, 'nothing was acknowledged before the kill');
      await pool(fresh, 16, (hold) => assertStillTrue(hold, lost));
      await pool(sample(holds.slice(0, acknowledged), sampleOfOld), 16, (hold) => assertStillTrue(hold, []));

      // 2. The fence continues from where it was.
      for (const old of new Set([event, oneOf(events), oneOf(events)])) {
        let granted;
        for (let n = 100; n > 0 && granted?.status !== 201; n--) granted = await server.hold(old, `S-J-${n}`);
        if (granted.status !== 201) continue; // that row is sold out
        assert.ok(granted.json.fence > old.fence, `fence ${granted.json.fence} after ${old.fence}`);
        old.fence = granted.json.fence;
        assert.equal((await server.del(`/v1/holds/${granted.json.id}`)).status, 204);
      }

      // 3. An unanswered request is repeated with its key and takes effect once.
      for (const request of lost) {
        const answer = await server.request(request.method, request.path, request.body, request.key ? { 'Idempotency-Key': request.key } : {});
        record(request, answer);
      }
      await assertMap(event);
      if (round > 1) await assertMap(oneOf(events));

      // 4. A stored key gives the same bytes.
      await pool(sample(stored, 200), 16, async ({ method, path, body, key, status, text }) => {
        const answer = await server.request(method, path, body, { 'Idempotency-Key': key });
        assert.equal(answer.status, status, answer.text);
        assert.equal(answer.text, text);
        assert.equal(answer.headers['idempotency-replayed'], 'true');
      });
      await assertMap(event);
      t.diagnostic(`kill ${round}: ${fresh.length} holds acknowledged, ${lost.length} requests unanswered`);
    }
    assert.equal(await server.metric('holdfast_ledger_surprises_total'), 0);
    await server.stop({ keep: true });
    t.diagnostic(`ledger: ${JSON.stringify(checkLedger(server.dir))}`);
    await server.launch();
    await pool(sample(holds, 500), 16, (hold) => assertStillTrue(hold, []));
  });
});
