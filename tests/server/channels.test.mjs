// Channels: sellers block seats, sections and places of areas for a channel, and sell them from there.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  assertHold, assertIdempotent, assertInvalid, assertOk, assertProblem, assertSoldOut, ms,
} from '../support/expect.mjs';
import { assertVerifiedSoon } from '../support/ledger.mjs';
import { inTime, itOnce, newKey, not, reap, sleep, start, until } from '../support/server.mjs';

const ADMIN = { Authorization: 'Bearer an-admin-key-of-the-tests' };
const SELLER = { Authorization: 'Bearer a-seller-key-of-the-tests' };

describe('channels', () => {
  let server;
  before(async () => {
    server = await start({ env: { HOLDFAST_ADMIN_KEY: ADMIN.Authorization.slice(7), HOLDFAST_SELLER_KEY: SELLER.Authorization.slice(7) } });
  });
  after(async () => {
    try {
      if (server) await assertVerifiedSoon(server.ledger, server.gate);
      await server?.stop();
    } finally { await reap(); }
  });

  // Sections S (2 rows of 10) and T (1 row of 5), areas Floor (20) and Roof (2): 47 places.
  const createEvent = (fields) => server.createEvent({
    sections: [{ name: 'S', price: 1000, rows: 2, seats_per_row: 10 }, { name: 'T', price: 700, rows: 1, seats_per_row: 5 }],
    areas: [{ name: 'Floor', price: 300, capacity: 20 }, { name: 'Roof', price: 50, capacity: 2 }], ...fields,
  }, ADMIN);
  const block = (event, body, headers = SELLER) => server.post(`/v1/events/${event.id}/block`, body, headers);
  const unblock = (event, body, headers = SELLER) => server.post(`/v1/events/${event.id}/unblock`, body, headers);
  const ask = (event, fields, headers = SELLER) => server.ask(event, fields, headers);
  const take = async (event, fields) => assertOk(await ask(event, fields), 201);
  const release = async (hold) => assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
  const confirm = async (hold) => assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }, SELLER), 201);
  const cancel = async (booking) => assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`, {}, SELLER));
  const letters = async (event, ...seats) => { const map = await server.map(event); return seats.map((seat) => map[seat]).join(''); };
  const seq = async (event) => (await server.read(`/v1/events/${event.id}/seats`)).seq;
  const counts = async (event) => Object.values(await server.counts(event)).join(' '); // available held booked blocked

  it('seats of a channel are sold by its sellers and to nobody else', async () => {
    const event = await createEvent();
    assert.deepEqual(assertOk(await block(event, { seats: ['S-A-2', 'S-A-1'], channel: 'house' })), {
      object: 'event_seats', event: event.id, status: 'blocked', seats: ['S-A-2', 'S-A-1'], channel: 'house',
    });
    assert.equal(await letters(event, 'S-A-1', 'S-A-2', 'S-A-3'), 'xx.');
    assert.equal(await counts(event), '45 0 0 2');
    const seats = ['S-A-1', 'S-A-3'];
    for (const [fields, headers] of [[{}, {}], [{}, SELLER], [{ channel: null }, SELLER], [{ channel: 'press' }, SELLER], [{ channel: 'House' }, SELLER], [{}, ADMIN]]) {
      assert.deepEqual(assertProblem(await ask(event, { seats, ...fields }, headers), 409, 'seat_taken').seats, ['S-A-1'], JSON.stringify(fields));
    }
    const refusal = await ask(event, { seats, channel: 'house' }, {});
    assertProblem(refusal, 401, 'unauthorized');
    assert.match(refusal.headers['www-authenticate'], /^Bearer/);
    assertProblem(await ask(event, { seats: ['S-A-9'], channel: 'house' }, {}), 401, 'unauthorized');
    const hold = assertHold(await take(event, { seats, channel: 'house' }), { event, seats });
    assert.equal(hold.amount, 2000);
    assert.equal(await letters(event, 'S-A-1', 'S-A-2', 'S-A-3'), 'hxh');
    assert.equal(await counts(event), '44 2 0 1');
    assert.deepEqual(assertProblem(await ask(event, { seats: ['S-A-1', 'S-A-2'], channel: 'house' }), 409, 'seat_taken').seats, ['S-A-1']);
    const booking = await confirm(hold);
    assert.equal(await letters(event, 'S-A-1', 'S-A-3'), 'bb');
    assert.equal(await counts(event), '44 0 2 1');
    await cancel(booking);
    assert.equal(await letters(event, 'S-A-1', 'S-A-2', 'S-A-3'), 'xx.', 'back to where each came from');
    assert.equal(await counts(event), '45 0 0 2');
    await take(event, { seats: ['S-A-1'], channel: 'house' });
  });

  it('released, expired, evicted or taken out, seats go back to their channel', async () => {
    const event = await createEvent();
    assertOk(await block(event, { seats: ['S-A-1', 'S-A-2', 'S-A-3', 'S-A-4'], channel: 'house' }));
    await release(await take(event, { seats: ['S-A-1', 'S-B-1'], channel: 'house' }));
    assert.equal(await letters(event, 'S-A-1', 'S-B-1'), 'x.');
    const evicted = await take(event, { seats: ['S-A-2'], channel: 'house' });
    assertOk(await server.post(`/v1/holds/${evicted.id}/evict`, undefined, ADMIN));
    assert.equal(await letters(event, 'S-A-2'), 'x');
    const hold = await take(event, { seats: ['S-A-1', 'S-A-2'], channel: 'house' });
    const change = (fields, headers) => server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, ...fields }, headers);
    const refusal = await change({ add: { seats: ['S-A-4'] } }); // whoever has the id is no seller for that
    assertProblem(refusal, 401, 'unauthorized');
    assert.match(refusal.headers['www-authenticate'], /^Bearer/);
    const changed = assertOk(await change({ add: { seats: ['S-A-4'] }, remove: { seats: ['S-A-1'] } }, SELLER));
    assertHold(changed, { event, seats: ['S-A-2', 'S-A-4'] });
    const short = await inTime(async (ttl_ms) => {
      await until('it is there', async () => await letters(event, 'S-A-3') === 'x');
      const brief = await take(event, { seats: ['S-A-3'], channel: 'house', ttl_ms });
      assert.equal(await letters(event, 'S-A-1', 'S-A-2', 'S-A-3', 'S-A-4'), 'xhhh');
      return brief;
    });
    hold.fence = changed.fence;
    assertOk(await change({ remove: { seats: ['S-A-4'] } })); // giving back is for everybody
    assert.equal(await letters(event, 'S-A-4'), 'x');
    await until('it expires', async () => Date.now() > ms(short.expires_at) && await letters(event, 'S-A-3') === 'x');
    assertProblem(await ask(event, { seats: ['S-A-3'] }, {}), 409, 'seat_taken');
    await take(event, { seats: ['S-A-3'], channel: 'house' });
    assert.equal(await counts(event), '43 2 0 2');
  });

  it('a hold of a channel that ran out is no hindrance to the channel, and none to rescue', async () => {
    const event = await createEvent();
    assertOk(await block(event, { seats: ['S-A-1'], areas: { Roof: 2 }, channel: 'house' }));
    const short = await take(event, { seats: ['S-A-1'], areas: { Roof: 2 }, channel: 'house', ttl_ms: 1000 });
    await sleep(ms(short.expires_at) - Date.now() + 5);
    const hold = await take(event, { seats: ['S-A-1'], areas: { Roof: 1 }, channel: 'house' });
    await release(hold);
    assertOk(await server.post(`/v1/holds/${short.id}/confirm`, { fence: short.fence, rescue: true }, SELLER), 201);
    assert.equal(await letters(event, 'S-A-1'), 'b');
    assert.equal(await counts(event), '44 0 3 0');
  });

  itOnce('a request blocks at most 200,000 seats', async () => {
    const big = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 2001, seats_per_row: 100 }] }, ADMIN);
    assertProblem(await block(big, { sections: ['S'] }), 400, 'too_many_seats');
  });

  itOnce('whole sections can be blocked and put back', async () => {
    const event = await createEvent();
    assert.deepEqual(assertOk(await block(event, { sections: ['T'], seats: ['S-A-1', 'T-A-2'], channel: 'club' })), {
      object: 'event_seats', event: event.id, status: 'blocked', seats: ['S-A-1', 'T-A-2'], sections: ['T'], channel: 'club',
    });
    assert.equal(await counts(event), '41 0 0 6');
    assertSoldOut(await ask(event, { best_available: { quantity: 1, section: 'T' } }, {}), 0);
    const hold = await take(event, { seats: ['T-A-1'], channel: 'club' });
    for (const act of [block, unblock]) {
      assert.deepEqual(assertProblem(await act(event, { sections: ['S', 'T'] }), 409, 'seat_taken').seats, ['T-A-1']);
    }
    await release(hold);
    const before = await seq(event);
    assertOk(await block(event, { sections: ['T'], channel: 'club' })); // as it is
    assert.equal(await seq(event), before);
    assert.equal(assertOk(await unblock(event, { sections: ['T', 'S'] })).status, 'available');
    assert.equal(await counts(event), '47 0 0 0');
    assertProblem(await block(event, { sections: ['Floor'] }), 404, 'no_such_seat');
    assertProblem(await block(event, { sections: ['T', 'x'] }), 404, 'no_such_seat');
    assert.equal(await counts(event), '47 0 0 0');
  });

  itOnce('a section that is named twice is refused, before memory is taken for its seats', async () => {
    const event = await createEvent({ sections: [{ name: 'S', price: 1, rows: 20, seats_per_row: 100000 }] });
    for (const act of [block, unblock]) assertInvalid(await act(event, { sections: Array(12000).fill('S') }), 'sections');
    assert.equal(await seq(event), 1); // its creation
  });

  it('numbers of area places can be blocked, with and without a channel', async () => {
    const event = await createEvent();
    assert.deepEqual(assertOk(await block(event, { areas: { Floor: 5, Roof: 1 }, channel: 'house' })).areas, { Floor: 5, Roof: 1 });
    assertOk(await block(event, { areas: { Floor: 10 } }));
    assert.deepEqual(await server.areas(event), { Floor: 5, Roof: 1 });
    assert.equal(await counts(event), '31 0 0 16');
    assertSoldOut(await ask(event, { areas: { Floor: 6 } }, {}), 5, 'Floor');
    assertSoldOut(await ask(event, { areas: { Floor: 6 }, channel: 'house' }), 5, 'Floor');
    assertSoldOut(await ask(event, { areas: { Floor: 1 }, channel: 'press' }), 0, 'Floor');
    const hold = assertHold(await take(event, { areas: { Floor: 4 }, channel: 'house' }), { event, seats: [], areas: { Floor: 4 } });
    assert.equal(await counts(event), '31 4 0 12');
    assert.deepEqual(await server.areas(event), { Floor: 5, Roof: 1 });
    assertSoldOut(await ask(event, { areas: { Floor: 2 }, channel: 'house' }), 1, 'Floor');
    const booking = await confirm(hold);
    assert.equal(await counts(event), '31 0 4 12');
    await cancel(booking);
    assert.equal(await counts(event), '31 0 0 16');
    await release(await take(event, { areas: { Floor: 5 }, channel: 'house' }));
    // No more can be blocked than is free, none put back that is not blocked so.
    assertSoldOut(await block(event, { areas: { Floor: 6 } }), 5, 'Floor');
    assertSoldOut(await unblock(event, { areas: { Floor: 6 }, channel: 'house' }), 5, 'Floor');
    assertSoldOut(await unblock(event, { areas: { Floor: 11 } }), 10, 'Floor');
    assertSoldOut(await unblock(event, { areas: { Floor: 1 }, channel: 'press' }), 0, 'Floor');
    assert.deepEqual(assertOk(await unblock(event, { areas: { Floor: 2 }, channel: 'house' })).areas, { Floor: 2 });
    assertOk(await unblock(event, { areas: { Floor: 10 } }));
    assert.deepEqual(await server.areas(event), { Floor: 17, Roof: 1 });
    assert.equal(await counts(event), '43 0 0 4');
  });

  itOnce('unblocking with a channel touches only its own; without one, every seat named', async () => {
    const event = await createEvent();
    assertOk(await block(event, { seats: ['S-A-1'], channel: 'house' }));
    assertOk(await block(event, { seats: ['S-A-2'], channel: 'press' }));
    assertOk(await block(event, { seats: ['S-A-3'] }));
    assert.deepEqual(assertProblem(await unblock(event, { seats: ['S-A-1', 'S-A-2', 'S-A-3', 'S-A-4'], channel: 'house' }), 409, 'seat_taken').seats, ['S-A-2', 'S-A-3']);
    assert.equal(await letters(event, 'S-A-1', 'S-A-2', 'S-A-3'), 'xxx');
    assertOk(await unblock(event, { seats: ['S-A-1', 'S-A-4'], channel: 'house' }));
    assert.equal(await letters(event, 'S-A-1', 'S-A-2', 'S-A-3'), '.xx');
    await server.take(event, { seats: ['S-A-1'] });
    assertOk(await unblock(event, { seats: ['S-A-2', 'S-A-3', 'S-A-4'] }));
    assert.equal(await letters(event, 'S-A-2', 'S-A-3', 'S-A-4'), '...');
  });

  itOnce('blocked seats move from channel to channel', async () => {
    const event = await createEvent();
    const seats = ['S-A-1', 'S-A-2'];
    assertOk(await block(event, { seats }));
    assertProblem(await ask(event, { seats, channel: 'house' }), 409, 'seat_taken');
    assertOk(await block(event, { seats, channel: 'house' }));
    assert.equal(await counts(event), '45 0 0 2');
    await release(await take(event, { seats, channel: 'house' }));
    assertOk(await block(event, { seats: ['S-A-2'], channel: 'press' }));
    assert.deepEqual(assertProblem(await ask(event, { seats, channel: 'house' }), 409, 'seat_taken').seats, ['S-A-2']);
    await release(await take(event, { seats: ['S-A-2'], channel: 'press' }));
    assertOk(await block(event, { seats })); // for nobody
    for (const channel of ['house', 'press']) assert.deepEqual(assertProblem(await ask(event, { seats, channel }), 409, 'seat_taken').seats, seats);
    assert.equal(await counts(event), '45 0 0 2');
  });

  itOnce('what is wrong is named', async () => {
    const event = await createEvent();
    for (const act of [block, unblock]) {
      for (const [body, field] of [
        [{ seats: ['S-A-1'], channel: '' }, 'channel'], [{ seats: ['S-A-1'], channel: 7 }, 'channel'], [{ seats: ['S-A-1'], channel: 'x'.repeat(33) }, 'channel'],
        [{ seats: ['S-A-1'], channel: 'a\nb' }, 'channel'], [{ sections: 'T' }, 'sections'], [{ sections: [7] }, 'sections'], [{ sections: [] }, 'seats'],
        [{ areas: { Floor: 0 } }, 'areas.Floor'], [{ areas: ['Floor'] }, 'areas'], [{ areas: {} }, 'seats'], [{ channel: 'house' }, 'seats'],
        [{ seats: ['S-A-1'], rows: [] }, 'rows'],
      ]) assertInvalid(await act(event, body), field);
      assertProblem(await act(event, { areas: { Cellar: 1 } }), 404, 'no_such_seat');
      assertProblem(await act(event, { seats: ['S-A-1'], channel: 'house' }, {}), 401, 'unauthorized');
    }
    for (const [fields, field] of [[{ channel: 7 }, 'channel'], [{ channel: '' }, 'channel'], [{ channel: 'x'.repeat(33) }, 'channel'], [{ channel: ['house'] }, 'channel']]) {
      assertInvalid(await ask(event, { seats: ['S-A-1'], ...fields }), field);
    }
    assert.equal(await counts(event), '47 0 0 0');
    assertOk(await block(event, { seats: ['S-A-1'], channel: 'x'.repeat(32) }));
  });

  it('repeats under one key are one change', async () => {
    const event = await createEvent();
    const keyed = { post: (path, body, headers) => server.post(path, body, { ...SELLER, ...headers }), request: (method, path, body, headers) => server.request(method, path, body, { ...SELLER, ...headers }) };
    await assertIdempotent(keyed, `/v1/events/${event.id}/block`, { areas: { Floor: 3 }, channel: 'house' }, { areas: { Floor: 3 } }, newKey());
    assert.equal(await counts(event), '44 0 0 3');
    await assertIdempotent(keyed, `/v1/events/${event.id}/unblock`, { areas: { Floor: 1 }, channel: 'house' }, { areas: { Floor: 1 } }, newKey());
    assert.equal(await counts(event), '45 0 0 2');
  });

  it('an event has at most 100 channels', { skip: not('cluster', 'slow, and the same') }, async () => {
    const event = await createEvent({ sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 110 }] });
    for (let i = 1; i <= 100; i++) assertOk(await block(event, { seats: [`S-A-${i}`], channel: `channel ${i}` }));
    assertProblem(await block(event, { seats: ['S-A-101'], channel: 'channel 101' }), 409, 'too_many_channels');
    assertOk(await block(event, { seats: ['S-A-101'], channel: 'channel 100' }));
    await take(event, { seats: ['S-A-100', 'S-A-101'], channel: 'channel 100' });
  });

  it('buyers and sellers of a channel cannot race', async () => {
    const event = await createEvent();
    const seats = ['S-A-1', 'S-A-2', 'S-A-3'];
    assertOk(await block(event, { seats, channel: 'house' }));
    const cycle = async () => {
      for (let i = 0; i < 10; i++) {
        const answer = await ask(event, { seats, channel: 'house' });
        if (answer.status === 201) await release(answer.json);
        else assertProblem(answer, 409, 'seat_taken');
      }
    };
    const buy = async (n) => {
      for (let i = 0; i < 10; i++) assertProblem(await ask(event, { seats: [seats[(n + i) % 3]] }, {}), 409, 'seat_taken');
    };
    await Promise.all([cycle(), cycle(), buy(0), buy(1), buy(2)]);
    assert.equal(await letters(event, ...seats), 'xxx');
  });

  it('outlive a kill', async () => {
    const event = await createEvent();
    assertOk(await block(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 3 }, channel: 'house' }));
    const hold = await take(event, { seats: ['S-A-1'], areas: { Floor: 1 }, channel: 'house' });
    const sold = await confirm(await take(event, { seats: ['S-A-2'], areas: { Floor: 1 }, channel: 'house' }));
    await server.kill9();
    await server.launch();
    assert.equal(await letters(event, 'S-A-1', 'S-A-2'), 'hb');
    assert.equal(await counts(event), '42 2 2 1');
    await release(hold);
    await cancel(sold);
    assert.equal(await letters(event, 'S-A-1', 'S-A-2'), 'xx');
    assert.equal(await counts(event), '42 0 0 5');
    assertProblem(await ask(event, { seats: ['S-A-1'] }), 409, 'seat_taken');
    await take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 3 }, channel: 'house' });
  });
});
