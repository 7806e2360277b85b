// The audit log: it has every transition in order, and folding it gives the present and every past state (I11).
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertFoldIsState, AUDIT_FIELDS, fold, readAudit } from '../support/audit.mjs';
import { assertInvalid, assertOk, assertProblem, ms } from '../support/expect.mjs';
import { assertVerified } from '../support/ledger.mjs';
import { seed, seededRandom } from '../support/random.mjs';
import { backend, inTime, itOnce, mapOf, pool, reap, sleep, start, until } from '../support/server.mjs';

const WORDS = { '.': 'available', h: 'held', b: 'booked', x: 'blocked' };
const brief = ({ object, seat, area, quantity, from, to, cause }) => [cause, object, seat ?? area ?? quantity, from, to].join(' ');

describe('the log', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const confirm = (hold, fields = {}) => server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, ...fields });
  const seller = (event, action, body) => server.post(`/v1/events/${event.id}/${action}`, body);
  const seatAt = (event, seat, at) => server.get(`/v1/events/${event.id}/seats/${encodeURIComponent(seat)}${at === undefined ? '' : `?at=${encodeURIComponent(at)}`}`);

  it('every transition is a row with before, after and cause', async () => {
    const event = await server.createEvent({ areas: [{ name: 'Floor', price: 5, capacity: 9 }] });
    const hold = await server.take(event, { seats: ['S-A-2', 'S-A-1'], areas: { Floor: 3 }, ttl_ms: 50_000 });
    const renewed = assertOk(await server.post(`/v1/holds/${hold.id}/renew`, { ttl_ms: 90_000 }));
    const booking = assertOk(await confirm(hold), 201);
    const second = await server.grant(event, 'S-A-3');
    await server.del(`/v1/holds/${second.id}`);
    const third = await server.take(event, { areas: { Floor: 1 } });
    assertOk(await server.post(`/v1/holds/${third.id}/evict`));
    assertOk(await seller(event, 'block', { seats: ['S-B-1', 'S-B-2'] }));
    assertOk(await seller(event, 'unblock', { seats: ['S-B-2'] }));
    assertOk(await seller(event, 'close'));
    assertOk(await seller(event, 'open'));
    const fourth = await server.take(event, { seats: ['S-A-4'], areas: { Floor: 2 }, ttl_ms: 1000 });
    await until('the fourth runs out', async () => (await server.counts(event)).held === 0);
    const rescued = assertOk(await confirm(fourth, { rescue: true }), 201);
    // A request that changes nothing leaves no row.
    assertOk(await confirm(hold));
    assertOk(await seller(event, 'open'));
    assertOk(await seller(event, 'block', { seats: ['S-B-1'] }));
    assertProblem(await server.hold(event, 'S-A-1'), 409, 'seat_taken');
    const rows = await readAudit(server, `event=${event.id}`);
    assert.deepEqual(rows.map(brief), [
      'create event   open',
      'hold hold 5  active', 'hold seat S-A-2 available held', 'hold seat S-A-1 available held', 'hold area Floor available held',
      'renew hold 5 active active',
      'confirm hold 5 active confirmed', 'confirm booking 5  confirmed',
      'confirm seat S-A-2 held booked', 'confirm seat S-A-1 held booked', 'confirm area Floor held booked',
      'hold hold 1  active', 'hold seat S-A-3 available held',
      'release hold 1 active released', 'release seat S-A-3 held available',
      'hold hold 1  active', 'hold area Floor available held',
      'evict hold 1 active released', 'evict area Floor held available',
      'block seat S-B-1 available blocked', 'block seat S-B-2 available blocked', 'unblock seat S-B-2 blocked available',
      'close event  open closed', 'open event  closed open',
      'hold hold 3  active', 'hold seat S-A-4 available held', 'hold area Floor available held',
      'expire hold 3 active expired', 'expire seat S-A-4 held available', 'expire area Floor held available',
      'rescue hold 3 expired confirmed', 'rescue booking 3  confirmed',
      'rescue seat S-A-4 available booked', 'rescue area Floor available booked',
    ]);
    const [created] = rows;
    assert.equal(created.at, event.created_at);
    const granted = rows.slice(1, 5);
    for (const row of granted) {
      assert.deepEqual([row.at, row.hold, row.booking, row.fence, row.until], [hold.created_at, hold.id, null, hold.fence, hold.expires_at]);
    }
    assert.equal(granted[3].quantity, 3);
    assert.equal(rows[5].until, renewed.expires_at);
    for (const row of rows.slice(7, 11)) assert.deepEqual([row.hold, row.booking, row.fence], [hold.id, booking.id, hold.fence]);
    assert.ok(ms(rows.find(({ cause }) => cause === 'expire').at) >= ms(fourth.expires_at));
    for (const row of rows.slice(-4)) assert.deepEqual([row.hold, row.fence], [fourth.id, rescued.fence]);
    assert.ok(rescued.fence > fourth.fence);
    await assertFoldIsState(server, event);
  });

  it('pages of any size, and after=, give every row once', async () => {
    const event = await server.createEvent();
    for (let i = 1; i <= 9; i++) await server.del(`/v1/holds/${(await server.grant(event, `S-A-${i}`)).id}`);
    const all = await readAudit(server, `event=${event.id}`);
    assert.deepEqual(all.map(({ seq }) => seq), Array.from({ length: 37 }, (_, i) => i + 1));
    for (const limit of [1, 5, 36, 37, 38]) assert.deepEqual(await readAudit(server, `event=${event.id}`, limit), all);
    assert.deepEqual(await readAudit(server, `event=${event.id}&after=30`), all.slice(30));
    assert.deepEqual(await readAudit(server, `event=${event.id}&after=30`, 3), all.slice(30));
    assert.deepEqual(await readAudit(server, `event=${event.id}&after=37`), []);
    assert.deepEqual(await readAudit(server, `event=${event.id}&after=1099511627775`), []);
    const many = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 120 }] });
    assertOk(await seller(many, 'block', { seats: Array.from({ length: 120 }, (_, i) => `S-A-${i + 1}`) }));
    const page = assertOk(await server.get(`/v1/audit?event=${many.id}`));
    assert.deepEqual([page.data.length, page.has_more], [100, true]);
  });

  it('of one seat, of one hold, of both', async () => {
    const event = await server.createEvent();
    const hold = await server.grant(event, ['S-A-1', 'S-A-2']);
    await server.del(`/v1/holds/${hold.id}`);
    const next = await server.grant(event, 'S-A-1');
    const all = await readAudit(server, `event=${event.id}`);
    const ofSeat = await readAudit(server, `event=${event.id}&seat=S-A-1`);
    assert.deepEqual(ofSeat, all.filter(({ seat }) => seat === 'S-A-1'));
    assert.equal(ofSeat.length, 3);
    const ofHold = await readAudit(server, `hold=${hold.id}`);
    assert.deepEqual(ofHold, all.filter((row) => row.hold === hold.id));
    assert.deepEqual(await readAudit(server, `hold=${hold.id}`, 1), ofHold);
    assert.deepEqual(await readAudit(server, `event=${event.id}&hold=${hold.id}`), ofHold);
    assert.deepEqual(await readAudit(server, `hold=${hold.id}&seat=S-A-1`), ofHold.filter(({ seat }) => seat === 'S-A-1'));
    assert.deepEqual((await readAudit(server, `hold=${next.id}&seat=S-A-2`)), []);
    assert.deepEqual(await readAudit(server, `event=${event.id}&seat=S-B-9`), []);
    // A renewal is a row of its hold; of a seat it is told as one of the seat, as in the seat's own history.
    for (let i = 0; i < 3; i++) {
      await sleep(2); // one within the same millisecond changes nothing, and is no row
      assertOk(await server.post(`/v1/holds/${next.id}/renew`, {}));
    }
    const renewed = await readAudit(server, `event=${event.id}&seat=S-A-1`);
    assert.deepEqual(renewed.slice(3).map(brief), Array(3).fill('renew seat S-A-1 held held'));
    assert.deepEqual(renewed.map(({ seq }) => seq), assertOk(await seatAt(event, 'S-A-1')).history.map(({ seq }) => seq).reverse());
    assert.deepEqual(await readAudit(server, `event=${event.id}&seat=S-A-1`, 1), renewed);
    assert.deepEqual(await readAudit(server, `event=${event.id}&seat=S-A-1&after=${renewed[3].seq}`), renewed.slice(4));
    assert.deepEqual(await readAudit(server, `hold=${next.id}&seat=S-A-1`), renewed.slice(2));
    assert.deepEqual(await readAudit(server, `event=${event.id}&seat=S-A-2`), all.filter(({ seat }) => seat === 'S-A-2'));
    // A hold of another event is not found.
    const other = await server.createEvent();
    const stranger = await server.grant(other, 'S-A-1');
    assertProblem(await server.get(`/v1/audit?event=${event.id}&hold=${stranger.id}`), 404, 'no_such_hold');
    assert.ok((await readAudit(server, `event=${other.id}`)).every((row) => row.event === other.id));
  });

  itOnce('what is wrong is named', async () => {
    const event = await server.createEvent();
    const hold = await server.grant(event, 'S-A-1');
    assertInvalid(await server.get('/v1/audit'), 'event');
    assertInvalid(await server.get('/v1/audit?seat=S-A-1'), 'event');
    for (const id of ['', 'x', `evt_${'0'.repeat(28)}`, `${event.id}x`]) assertProblem(await server.get(`/v1/audit?event=${id}`), 404, 'no_such_event');
    const off = hold.id.slice(0, -1) + (hold.id.endsWith('a') ? 'b' : 'a');
    for (const id of ['', 'x', `hold_${'0'.repeat(28)}`, off, `${hold.id.slice(0, 16)}${'*'.repeat(17)}`]) {
      assertProblem(await server.get(`/v1/audit?hold=${id}`), 404, 'no_such_hold');
      assertProblem(await server.get(`/v1/audit?event=${event.id}&hold=${id}`), 404, 'no_such_hold');
    }
    for (const seat of ['', 'S-A-11', 'S-A-0', 's-a-1', 'Floor']) assertProblem(await server.get(`/v1/audit?event=${event.id}&seat=${seat}`), 404, 'no_such_seat');
    for (const limit of ['0', '1001', '-1', '', 'x', '1.5']) assertInvalid(await server.get(`/v1/audit?event=${event.id}&limit=${limit}`), 'limit');
    for (const after of ['-1', '', 'x', '1.5', '1099511627776', '99999999999999999999']) {
      assertInvalid(await server.get(`/v1/audit?event=${event.id}&after=${after}`), 'after');
      assertInvalid(await server.get(`/v1/audit?event=${event.id}&cursor=${after}`), 'cursor');
    }
    assertProblem(await server.post('/v1/audit', {}), 405, 'method_not_allowed');
  });

  itOnce('seats of any name are found by path and by query', async () => {
    const names = ['a/b', '100%', '%2F', 'q"uote', 'back\\slash', '地板', 'sp ace', 'plus+', 'amp&eq=', 'question?', 'ha#sh', '%', '%%', '%25', 'semi;colon', '..', '.'];
    const event = await server.createEvent({ sections: names.map((name) => ({ name, price: 1, rows: [{ name: `r/${name}`.slice(0, 32), seats: 2 }] })), max_per_hold: 50 });
    const seats = names.map((name) => `${name}-${`r/${name}`.slice(0, 32)}-2`);
    const hold = await server.grant(event, seats);
    assert.deepEqual(hold.seats, seats);
    for (const [i, seat] of seats.entries()) {
      const read = assertOk(await seatAt(event, seat));
      assert.deepEqual([read.id, read.status, read.section, read.row, read.number], [seat, 'held', names[i], `r/${names[i]}`, 2]);
      const rows = await readAudit(server, `event=${event.id}&seat=${encodeURIComponent(seat)}`);
      assert.deepEqual(rows.map(brief), [`hold seat ${seat} available held`]);
    }
    // Lower-case escapes mean the same.
    assert.equal(assertOk(await server.get(`/v1/events/${event.id}/seats/a%2fb-r%2fa%2fb-2`)).id, 'a/b-r/a/b-2');
    // A slash that is not escaped makes another path.
    assertProblem(await server.get(`/v1/events/${event.id}/seats/a/b-r/a/b-2`), 404, 'not_found');
    for (const odd of ['%00', 'a%2Fb-r%2Fa%2Fb-2%00', '%', '%2', '%zz', '%C3', '%FF%FE', 'S-A-1%0A']) {
      assertProblem(await server.get(`/v1/events/${event.id}/seats/${odd}`), 404, 'no_such_seat');
      assertProblem(await server.get(`/v1/audit?event=${event.id}&seat=${odd}`), 404, 'no_such_seat');
    }
    await assertFoldIsState(server, event);
  });

  describe('one seat', () => {
    it('says what it is now and how it came to be so, newest first, without secrets', async () => {
      const event = await server.createEvent();
      const free = assertOk(await seatAt(event, 'S-B-7'));
      assert.deepEqual({ ...free, at: 0 }, { object: 'seat', event: event.id, id: 'S-B-7', section: 'S', row: 'B', number: 7, tier: 'A', price: 1000,
        at: 0, status: 'available', hold: null, fence: null, until: null, history: [], history_has_more: false, history_pruned: false });
      const first = await server.grant(event, ['S-B-7', 'S-B-8']);
      await server.del(`/v1/holds/${first.id}`);
      const hold = await server.grant(event, 'S-B-7', { ttl_ms: 50_000 });
      const renewed = assertOk(await server.post(`/v1/holds/${hold.id}/renew`, {}));
      const answer = await seatAt(event, 'S-B-7');
      const held = assertOk(answer);
      assert.deepEqual([held.status, held.fence, held.until], ['held', hold.fence, renewed.expires_at]);
      assert.deepEqual(held.history.map(brief), ['renew seat S-B-7 held held', 'hold seat S-B-7 available held', 'release seat S-B-7 held available', 'hold seat S-B-7 available held']);
      assert.deepEqual(held.history.map((row) => row.until), [renewed.expires_at, hold.expires_at, null, first.expires_at]);
      for (const row of held.history) assert.deepEqual(Object.keys(row).sort(), AUDIT_FIELDS);
      const mask = (id) => `${id.slice(0, 16)}${'*'.repeat(17)}`;
      assert.deepEqual([held.hold, ...held.history.map((row) => row.hold)], [hold, hold, hold, first, first].map(({ id }) => mask(id)));
      for (const { id } of [hold, first]) assert.ok(!answer.text.includes(id.slice(-8)));
      const { id: bookingId } = assertOk(await confirm(hold), 201);
      const booked = await seatAt(event, 'S-B-7');
      assert.deepEqual([booked.json.status, booked.json.until, booked.json.history.length], ['booked', null, 5]);
      assert.ok(!booked.text.includes(bookingId.slice(-8)));
      assert.equal(booked.headers['cache-control'], 'no-store');
      assertOk(await seller(event, 'block', { seats: ['S-B-9'] }));
      const blocked = assertOk(await seatAt(event, 'S-B-9'));
      assert.deepEqual([blocked.status, blocked.hold, blocked.until], ['blocked', null, null]);
    });

    it('shows what was just answered, every time', async () => {
      const event = await server.createEvent();
      const shows = async (i, status) => i % 3 > 0 || assert.equal(assertOk(await seatAt(event, 'S-A-1')).status, status, `round ${i}`);
      for (let i = 0; i < 60; i++) {
        const hold = await server.grant(event, 'S-A-1');
        await shows(i, 'held');
        await server.del(`/v1/holds/${hold.id}`);
        await shows(i, 'available');
      }
      const { history, history_has_more: more } = assertOk(await seatAt(event, 'S-A-1'));
      assert.deepEqual([history.length, more], [100, true]);
      assert.equal(history[0].cause, 'release');
    });

    it('tells of the renewals of the hold that had it, and of no other', async () => {
      const event = await server.createEvent();
      const renew = async (hold) => assertOk(await server.post(`/v1/holds/${hold.id}/renew`, { ttl_ms: 100_000 + 50_000 * renewals++ }));
      let renewals = 0;
      const first = await server.grant(event, ['S-A-1', 'S-A-2'], { ttl_ms: 50_000 });
      const other = await server.grant(event, 'S-A-3', { ttl_ms: 50_000 });
      const once = await renew(first);
      await renew(other);
      await renew(first);
      assert.equal((await server.del(`/v1/holds/${first.id}`)).status, 204);
      const second = await server.grant(event, 'S-A-1', { ttl_ms: 50_000 });
      const last = await renew(second);
      const { history } = assertOk(await seatAt(event, 'S-A-1'));
      assert.deepEqual(history.map(({ cause }) => cause), ['renew', 'hold', 'release', 'renew', 'renew', 'hold']);
      assert.deepEqual([history[0].until, history[4].until], [last.expires_at, once.expires_at]);
      const seqs = history.map(({ seq }) => seq);
      assert.deepEqual(seqs, [...seqs].sort((a, b) => b - a));
      const then = assertOk(await seatAt(event, 'S-A-1', history[4].at));
      assert.equal(then.status, 'held');
      assert.ok(then.history.every(({ at }) => at <= then.at) && then.history.some(({ cause }) => cause === 'renew'), JSON.stringify(then.history));
    });

    itOnce('of a time before the event, of the future and of no time is 400', async () => {
      const event = await server.createEvent();
      await server.grant(event, 'S-A-1');
      assertInvalid(await seatAt(event, 'S-A-1', new Date(ms(event.created_at) - 1).toISOString()), 'at');
      assertInvalid(await seatAt(event, 'S-A-1', '1970-01-01T00:00:00Z'), 'at');
      assert.equal(assertOk(await seatAt(event, 'S-A-2', event.created_at)).status, 'available');
      for (const at of ['2099-01-01T00:00:00.000Z', new Date(Date.now() + 60_000).toISOString()]) {
        assert.equal(assertInvalid(await seatAt(event, 'S-A-1', at)).detail, 'at is in the future');
      }
      assert.equal(assertOk(await seatAt(event, 'S-A-1', new Date().toISOString())).status, 'held', 'though clocks may differ a little');
      for (const at of ['', 'now', '0', '1700000000', '2024-13-01T00:00:00Z', '2024-02-30T00:00:00Z', '2024-01-01', '2024-01-01T00:00:00', '2024-01-01T25:00:00Z', `${event.created_at}x`]) {
        assertInvalid(await seatAt(event, 'S-A-1', at), 'at');
      }
      for (const seat of ['S-A-11', 'x', 'S-A-01']) assertProblem(await seatAt(event, seat), 404, 'no_such_seat');
      assertProblem(await server.get(`/v1/events/evt_${'0'.repeat(28)}/seats/S-A-1`), 404, 'no_such_event');
      assertProblem(await server.del(`/v1/events/${event.id}/seats/S-A-1`), 405, 'method_not_allowed');
      // The same moment in another time zone.
      const local = `${new Date(Date.now() + 2 * 3600_000).toISOString().slice(0, -1)}+02:00`;
      assert.equal(assertOk(await seatAt(event, 'S-A-1', local)).status, 'held');
    });

    itOnce('a hold ends at its expiry, to the millisecond, swept or not, renewed or not', async () => {
      const [event, hold, kept, renewed] = await inTime(async (ttl_ms) => {
        const made = await server.createEvent();
        await sleep(ms(made.created_at) - Date.now() + 2); // a hold of the same millisecond has no time before it
        const holds = [await server.grant(made, 'S-A-1', { ttl_ms }), await server.grant(made, 'S-A-2', { ttl_ms })];
        return [made, ...holds, assertOk(await server.post(`/v1/holds/${holds[1].id}/renew`, { ttl_ms: 120_000 }))];
      });
      await sleep(ms(kept.expires_at) - Date.now() + 20); // the later of the two: a time to come is refused
      const at = async (seat, time) => assertOk(await seatAt(event, seat, new Date(time).toISOString()));
      for (let round = 0; round < 2; round++) { // in the second round the hold has been swept
        assert.equal((await at('S-A-1', ms(hold.created_at) - 1)).status, 'available');
        assert.equal((await at('S-A-1', ms(hold.created_at))).status, 'held');
        assert.equal((await at('S-A-1', ms(hold.expires_at) - 1)).status, 'held');
        const end = await at('S-A-1', ms(hold.expires_at));
        assert.deepEqual([end.status, end.hold, end.until], ['available', null, null]);
        const still = await at('S-A-2', ms(kept.expires_at));
        assert.deepEqual([still.status, still.until], ['held', renewed.expires_at]);
        await until('it is swept', async () => (await server.counts(event)).held === 1);
      }
    });

    itOnce('a hold that expires while no server runs ends at its expiry all the same', async () => {
      const own = await start();
      let isStopped = false;
      const [event, hold] = await inTime(async (ttl_ms) => {
        if (isStopped) await own.launch();
        const made = await own.createEvent();
        const short = await own.grant(made, 'S-A-1', { ttl_ms });
        await own.stop({ keep: true });
        isStopped = true;
        return [made, short];
      }, 5000);
      await sleep(ms(hold.expires_at) - Date.now() + 300);
      await own.launch();
      await until('it is swept', async () => (await own.counts(event)).held === 0);
      const rows = await readAudit(own, `event=${event.id}&seat=S-A-1`);
      assert.ok(ms(rows.at(-1).at) >= ms(hold.expires_at) + 300, 'the row that says so came later');
      const at = async (time) => assertOk(await own.get(`/v1/events/${event.id}/seats/S-A-1?at=${new Date(time).toISOString()}`));
      assert.equal((await at(ms(hold.expires_at) - 1)).status, 'held');
      const between = await at(ms(hold.expires_at) + 100);
      assert.deepEqual([between.status, between.hold, between.until, between.history.length], ['available', null, null, 1]);
      await own.finish();
    });
  });

  it('after a random load the fold of the log is the map, the counts and the holds; and so is the past', async (t) => {
    t.diagnostic(`seed ${seed}`);
    const { below, oneOf, sample } = seededRandom();
    const event = await server.createEvent({
      sections: [{ name: 'S', price: 3, rows: 3, seats_per_row: 12 }, { name: 'T', tier: 'B', price: 2, rows: 1, seats_per_row: 9 }],
      areas: [{ name: 'Floor', price: 1, capacity: 30 }, { name: 'Box', price: 9, capacity: 4 }],
    });
    const seats = Object.keys(await server.map(event));
    const holds = [];
    const places = () => {
      const dice = below(10);
      return {
        ...(dice < 5 ? { seats: [...new Set([oneOf(seats), oneOf(seats)])] } : dice < 8 ? { best_available: { quantity: 1 + below(3), adjacent: below(2) === 0 } } : {}),
        ...(dice >= 7 || dice === 0 ? { areas: { Floor: 1 + below(3), ...(below(3) ? {} : { Box: 1 }) } } : {}),
        ...(below(4) === 0 ? { ttl_ms: 1000 + below(400) } : {}),
      };
    };
    const step = async () => {
      const dice = below(20);
      const hold = holds.length > 6 ? oneOf(holds) : null;
      if (dice === 0) return seller(event, oneOf(['block', 'unblock']), { seats: [...new Set([oneOf(seats), oneOf(seats)])] });
      if (dice < 3) return seller(event, dice === 1 && below(3) === 0 ? 'close' : 'open');
      if (hold && dice < 7) return server.del(`/v1/holds/${hold.id}`);
      if (hold && dice < 9) return server.post(`/v1/holds/${hold.id}/evict`);
      if (hold && dice < 11) return server.post(`/v1/holds/${hold.id}/renew`, { ttl_ms: 1000 + below(400_000) });
      if (hold && dice < 13) return confirm(hold, { rescue: below(2) === 0 });
      const answer = await server.ask(event, places());
      if (answer.status === 201) holds.push(answer.json);
      return answer;
    };
    // One of each kind, whatever the random choices are, and some holds that are left to expire.
    const left = [];
    for (let i = 0; i < 4; i++) left.push(await server.take(event, { areas: { Floor: 1 }, ttl_ms: 50_000 }));
    assertOk(await server.post(`/v1/holds/${left[0].id}/renew`, {}));
    assertOk(await server.post(`/v1/holds/${left[1].id}/evict`));
    assertOk(await confirm(left[2]), 201);
    assert.equal((await server.del(`/v1/holds/${left[3].id}`)).status, 204);
    for (let i = 0; i < 5; i++) left.push(await server.take(event, { best_available: { quantity: 2 }, areas: { Floor: 1 }, ttl_ms: 1000 + 200 * i }));
    const moments = []; // { at, map, end }: the map is that of a time between the two others
    const rounds = backend === 'cluster' ? 12 : 24; // a cluster waits for each change on every server
    for (let round = 0; round < rounds; round++) {
      await pool(Array.from({ length: 14 }), 4, async () => {
        const answer = await step();
        assert.ok(answer.status < 500, answer.text);
      });
      await sleep(5);
      const at = new Date().toISOString();
      const map = mapOf(await server.read(`/v1/events/${event.id}/seats`));
      moments.push({ at, map, end: Date.now() });
      await sleep(5 + below(60));
      if (round === rounds / 2) await sleep(700); // some holds expire undisturbed
    }
    assertOk(await seller(event, 'open'));
    holds.push(...left);

    const { state, rows } = await assertFoldIsState(server, event);
    const causes = new Set(rows.map(({ cause }) => cause));
    for (const cause of ['hold', 'release', 'evict', 'renew', 'confirm', 'expire']) assert.ok(causes.has(cause), `the load had no ${cause}`);
    t.diagnostic(`${rows.length} rows, ${holds.length} holds, causes ${[...causes].join(' ')}`);
    await pool(holds, 8, async ({ id, fence }) => {
      const read = await server.read(`/v1/holds/${id}`);
      const folded = state.holds[id];
      const now = folded.status === 'active' && read.status === 'expired' ? 'expired' : folded.status; // it has expired since
      assert.deepEqual([read.status, read.fence >= fence], [now, true], id);
    });
    assert.equal(Object.keys(state.holds).length, holds.length);

    // The past: what the map showed then is what the seat's history says now, except for holds that expired
    // about then, which the map shows a little later, or later still if the server stood still.
    const due = new Map(rows.filter(({ object, cause }) => object === 'hold' && cause === 'expire').map((row) => [row.hold, ms(row.until)]));
    const near = (row, { at, end }) => row.cause === 'expire' && ms(row.at) > ms(at) - 600 && (ms(row.at) < end + 600 || due.get(row.hold) < end + 600);
    // The seqs of the rows about a seat, and of the renewals of the hold that had it.
    const about = (seat, log) => {
      let holder = null;
      return log.filter((row) => {
        if (row.seat === seat) holder = row.to === 'held' ? row.hold : null;
        return row.seat === seat || (row.object === 'hold' && row.cause === 'renew' && row.hold === holder);
      }).map(({ seq }) => seq);
    };
    let compared = 0;
    await pool(sample(moments, 14), 4, async (moment) => {
      const { at, map } = moment;
      const upTo = rows.filter((row) => row.at <= at);
      const folded = fold(event, upTo);
      for (const seat of sample(seats, 12)) {
        const read = assertOk(await seatAt(event, seat, at));
        assert.equal(read.at, at);
        if (rows.some((row) => row.seat === seat && near(row, moment))) continue;
        assert.equal(read.status, WORDS[map[seat]], `${seat} at ${at}`);
        assert.equal(read.status, WORDS[folded.seats[seat] ?? '.'], `${seat} at ${at}`);
        assert.deepEqual(read.history.map(({ seq }) => seq), about(seat, upTo).reverse().slice(0, 100));
        compared++;
      }
    });
    t.diagnostic(`${compared} seats compared at ${moments.length} moments`);
    assert.ok(compared > 60);
    await until('the counts are the fold\'s, once nothing is due', async () => {
      const { state: last } = await assertFoldIsState(server, event);
      const counts = await server.counts(event);
      return JSON.stringify(counts) === JSON.stringify(last.counts);
    });
  });

  it('after restarts the history of a seat goes on where it was, however long the log is', async () => {
    const [rows, row] = [50, 100]; // more than one chunk of stored heads
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows, seats_per_row: row }], max_per_hold: 100 });
    const names = Object.keys(await server.map(event));
    const { sample } = seededRandom();
    const wants = (n) => [...new Set(sample(names, n))];
    const round = () => pool(Array.from({ length: 54 }), 4, async () => {
      const answer = await server.hold(event, wants(20));
      if (answer.status === 201) assert.equal((await server.del(`/v1/holds/${answer.json.id}`)).status, 204);
    });
    const check = async () => {
      const log = await readAudit(server, `event=${event.id}`);
      for (const seat of wants(12)) {
        const about = log.filter((one) => one.seat === seat);
        assert.deepEqual(await readAudit(server, `event=${event.id}&seat=${seat}`), about);
        assert.deepEqual(assertOk(await seatAt(event, seat)).history.map(({ seq }) => seq), about.map(({ seq }) => seq).reverse());
      }
      return log.length;
    };
    for (let i = 0; i < 2; i++) {
      await round();
      await check();
      if (i === 1) await server.kill9().then(() => server.launch());
      else await server.restart();
    }
    await round();
    assert.ok(await check() > 4000);
    const [{ n }] = server.sql('SELECT count(*) AS n FROM seat_heads');
    assert.equal(n, 2);
    assertVerified(server.place?.ledger ?? server.ledger.replace(/^sqlite:.*/, server.dir));
  });
});
