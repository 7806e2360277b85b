// Owners: what one owner may have of an event, and how sellers find and resume an owner's holds.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertHold, assertInvalid, assertOk, assertProblem, ms } from '../support/expect.mjs';
import { assertVerifiedSoon } from '../support/ledger.mjs';
import { inTime, itOnce, newKey, reap, sleep, start } from '../support/server.mjs';

const ADMIN = { Authorization: 'Bearer an-admin-key-of-the-tests' };
const SELLER = { Authorization: 'Bearer a-seller-key-of-the-tests' };

describe('owners', () => {
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

  const createEvent = (fields) => server.createEvent({ areas: [{ name: 'Floor', price: 300, capacity: 20 }], ...fields }, ADMIN);
  const ask = (event, fields, headers = SELLER) => server.ask(event, fields, headers);
  const take = (event, fields) => server.take(event, fields, SELLER);
  const confirm = async (hold) => assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }, SELLER), 201);
  const cancel = async (booking) => assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`, {}, SELLER));
  const change = (hold, fields, headers = SELLER) => server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, ...fields }, headers);
  const release = async (hold) => assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
  const limited = (answer, limit) => assert.equal(assertProblem(answer, 409, 'owner_limit').limit, limit);

  it('holds and bookings of one owner count, and what ends is given back', async () => {
    const event = await createEvent({ max_per_owner: 4 });
    assert.equal(event.max_per_owner, 4);
    const first = await take(event, { seats: ['S-A-1', 'S-A-2'], owner: 'Ann' });
    const second = await take(event, { areas: { Floor: 1 }, owner: 'Ann' });
    limited(await ask(event, { seats: ['S-A-3', 'S-A-4'], owner: 'Ann' }), 4);
    limited(await ask(event, { seats: ['S-A-3'], areas: { Floor: 1 }, owner: 'Ann' }, {}), 4);
    limited(await ask(event, { best_available: { quantity: 2 }, owner: 'Ann' }), 4);
    await take(event, { seats: ['S-A-5', 'S-A-6', 'S-A-7', 'S-A-8'], owner: 'ann' }); // another owner
    await take(event, { seats: ['S-B-1', 'S-B-2', 'S-B-3', 'S-B-4', 'S-B-5'] }); // nobody's
    const booking = await confirm(first); // what is sold still counts
    limited(await ask(event, { seats: ['S-A-3', 'S-A-4'], owner: 'Ann' }), 4);
    await release(second);
    const third = await take(event, { seats: ['S-A-3', 'S-A-4'], owner: 'Ann' });
    limited(await ask(event, { areas: { Floor: 1 }, owner: 'Ann' }), 4);
    await cancel(booking);
    await cancel(booking); // gives back once
    await take(event, { areas: { Floor: 2 }, owner: 'Ann' });
    limited(await ask(event, { areas: { Floor: 1 }, owner: 'Ann' }), 4);
    assertOk(await server.post(`/v1/holds/${third.id}/evict`, undefined, ADMIN));
    await take(event, { seats: ['S-A-1', 'S-A-2'], owner: 'Ann' });
    limited(await ask(event, { areas: { Floor: 1 }, owner: 'Ann' }), 4);
  });

  itOnce('a taken seat and a full owner: the limit is of the owner, not of the hold alone', async () => {
    const event = await createEvent({ max_per_owner: 2 });
    limited(await ask(event, { seats: ['S-A-1', 'S-A-2', 'S-A-3'], owner: 'Ann' }), 2);
    assertProblem(await ask(event, { seats: Array.from({ length: 10 }, (_, i) => `S-A-${i + 1}`), areas: { Floor: 1 }, owner: 'Ann' }), 400, 'too_many_seats');
  });

  it('what an owner was refused is free for others, at once and on every server', async () => {
    const event = await createEvent({ max_per_owner: 1 });
    for (let i = 1; i <= 10; i++) {
      const seats = [`S-A-${i}`, `S-B-${i}`];
      limited(await ask(event, { seats, owner: 'Ann' }), 1);
      await take(event, { seats });
    }
  });

  itOnce('a change of a hold is limited by what it adds', async () => {
    const event = await createEvent({ max_per_owner: 3 });
    let hold = await take(event, { seats: ['S-A-1', 'S-A-2'], owner: 'Ann' });
    limited(await change(hold, { add: { seats: ['S-A-3', 'S-A-4'] } }), 3);
    hold = assertOk(await change(hold, { add: { seats: ['S-A-3'] } }));
    limited(await change(hold, { add: { areas: { Floor: 1 } } }), 3);
    hold = assertOk(await change(hold, { add: { areas: { Floor: 2 } }, remove: { seats: ['S-A-1', 'S-A-2'] } })); // three again
    assert.equal((await server.map(event))['S-A-1'], '.'); // on every server
    limited(await ask(event, { seats: ['S-A-1'], owner: 'Ann' }), 3);
    hold = assertOk(await change(hold, { remove: { areas: { Floor: 2 } } }));
    await take(event, { seats: ['S-A-1', 'S-A-2'], owner: 'Ann' });
    limited(await change(hold, { add: { areas: { Floor: 1 } } }), 3);
  });

  it('a hold that ran out does not count', async () => {
    const [event, hold] = await inTime(async (ttl_ms) => {
      const made = await createEvent({ max_per_owner: 2 });
      const short = await take(made, { seats: ['S-A-1', 'S-A-2'], owner: 'Ann', ttl_ms });
      limited(await ask(made, { seats: ['S-A-3'], owner: 'Ann' }), 2);
      return [made, short];
    });
    await sleep(ms(hold.expires_at) - Date.now() + 5);
    const next = await take(event, { seats: ['S-A-3', 'S-A-4'], owner: 'Ann' });
    const rescue = () => server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, rescue: true }, SELLER);
    limited(await rescue(), 2); // though its seats are free
    await release(next);
    assertOk(await rescue(), 201);
  });

  itOnce('a limit that is set later counts what was there before', async () => {
    const event = await createEvent();
    assert.equal(event.max_per_owner, null);
    await confirm(await take(event, { seats: ['S-A-1', 'S-A-2'], owner: 'Ann' }));
    const gone = await confirm(await take(event, { seats: ['S-A-4'], owner: 'Ann' }));
    await take(event, { areas: { Floor: 1 }, owner: 'Ann' });
    await cancel(gone);
    const set = async (max) => assert.equal(assertOk(await server.patch(`/v1/events/${event.id}`, { max_per_owner: max }, ADMIN)).max_per_owner, max);
    await set(4);
    limited(await ask(event, { seats: ['S-A-3', 'S-A-4'], owner: 'Ann' }), 4);
    await take(event, { seats: ['S-A-3'], owner: 'Ann' });
    limited(await ask(event, { seats: ['S-A-4'], owner: 'Ann' }), 4);
    await set(null);
    await take(event, { seats: ['S-A-4'], owner: 'Ann' });
    await set(5);
    limited(await ask(event, { seats: ['S-A-5'], owner: 'Ann' }), 5);
    await set(6);
    await take(event, { seats: ['S-A-5'], owner: 'Ann' });
    await set(1); // what is there stays
    limited(await ask(event, { seats: ['S-A-6'], owner: 'Ann' }), 1);
    await take(event, { seats: ['S-A-6'], owner: 'Ben' });
  });

  it('many requests at once stay within the limit', async () => {
    const event = await createEvent({ max_per_owner: 5 });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(event, { seats: [`S-${i < 10 ? 'A' : 'B'}-${i % 10 + 1}`], owner: 'Ann' })));
    assert.equal(answers.filter(({ status }) => status === 201).length, 5);
    for (const answer of answers.filter(({ status }) => status !== 201)) limited(answer, 5);
    assert.equal((await server.counts(event)).held, 5);
  });

  it('sellers find the holds of an owner', async () => {
    const event = await createEvent();
    const holds = [];
    for (let i = 1; i <= 5; i++) holds.push(await take(event, { seats: [`S-A-${i}`], owner: i % 2 ? 'Ann & 100%' : 'Ben' }));
    await release(holds[0]);
    const list = async (query, headers = SELLER) => assertOk(await server.get(`/v1/holds?event=${event.id}&${query}`, headers)).data;
    const q = encodeURIComponent('Ann & 100%');
    assert.deepEqual((await list(`owner=${q}`)).map(({ fence }) => fence), [holds[4], holds[2], holds[0]].map(({ fence }) => fence));
    assert.deepEqual((await list(`owner=${q}&status=active`)).map(({ fence }) => fence), [holds[4], holds[2]].map(({ fence }) => fence));
    assert.deepEqual(await list('owner=ann'), []);
    assert.deepEqual(await list('owner='), []);
    const page = assertOk(await server.get(`/v1/holds?event=${event.id}&owner=${q}&limit=2`, SELLER));
    assert.deepEqual([page.data.length, page.has_more], [2, true]);
    assert.deepEqual((await list(`owner=${q}&limit=2&cursor=${page.next_cursor}`)).map(({ fence }) => fence), [holds[0].fence]);
    for (const { id } of await list(`owner=${q}`)) assert.match(id, /^hold_[0-9A-Za-z]{11}\*{17}$/);
    // An admin sees the ids, and evicts from the list.
    const [listed] = await list('owner=Ben&status=active', ADMIN);
    assert.equal(listed.id, holds[3].id);
    assert.equal(assertOk(await server.post(`/v1/holds/${listed.id}/evict`, undefined, ADMIN)).status, 'released');
    assertProblem(await server.get(`/v1/holds?event=${event.id}&owner=Ben`), 401, 'unauthorized');
    assertInvalid(await server.get('/v1/holds?owner=Ben', SELLER), 'event');
  });

  it('resuming gives the owner\'s own hold again', async () => {
    const event = await createEvent({ max_per_owner: 3 });
    const places = { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 1 }, owner: 'Ann' };
    const resume = (fields, headers) => ask(event, { ...places, ...fields, resume: true }, headers);
    const hold = assertHold(assertOk(await resume(), 201), { event, seats: places.seats, areas: { Floor: 1 } }); // there is none: a new one
    const again = assertOk(await resume());
    assert.deepEqual({ ...again, expires_in_ms: 0 }, { ...hold, expires_in_ms: 0 });
    assert.equal(assertOk(await resume({ seats: ['S-A-2', 'S-A-1'] })).id, hold.id, 'the order is no difference');
    // More, less, or another owner is another hold.
    for (const fields of [{ seats: ['S-A-1'] }, { areas: {} }, { areas: { Floor: 2 } }, { seats: ['S-A-1', 'S-A-2', 'S-A-3'] }]) {
      assert.equal((await resume(fields)).status, 409, JSON.stringify(fields));
    }
    assert.deepEqual(assertProblem(await resume({ owner: 'Ben' }), 409, 'seat_taken').seats, ['S-A-1', 'S-A-2']);
    assert.equal((await ask(event, places)).status, 409, 'only who says so resumes');
    assert.equal((await ask(event, { ...places, resume: false })).status, 409);
    const moved = assertOk(await change(hold, { add: { seats: ['S-A-3'] }, remove: { areas: { Floor: 1 } } }));
    assert.equal(assertOk(await ask(event, { seats: ['S-A-1', 'S-A-2', 'S-A-3'], owner: 'Ann', resume: true })).fence, moved.fence);
    await release(hold);
    assert.notEqual(assertOk(await resume(), 201).id, hold.id);
    const key = { ...SELLER, 'Idempotency-Key': newKey() };
    const first = await resume({}, key);
    assertOk(first);
    assert.equal((await resume({}, key)).text, first.text);
  });

  itOnce('only sellers resume, and only holds of an owner', async () => {
    const event = await createEvent();
    await take(event, { seats: ['S-A-1'], owner: 'Ann' });
    assertProblem(await ask(event, { seats: ['S-A-1'], owner: 'Ann', resume: true }, {}), 401, 'unauthorized');
    assertProblem(await ask(event, { seats: ['S-A-2'], owner: 'Ann', resume: true }, {}), 401, 'unauthorized');
    assertOk(await ask(event, { seats: ['S-A-2'], owner: 'Ann', resume: false }, {}), 201);
    assertInvalid(await ask(event, { seats: ['S-A-1'], resume: true }), 'resume');
    assertInvalid(await ask(event, { seats: ['S-A-1'], owner: 'Ann', resume: 1 }), 'resume');
    assertInvalid(await ask(event, { best_available: { quantity: 1 }, owner: 'Ann', resume: true }), 'resume');
  });

  itOnce('a confirmed or expired hold is not resumed, and a closed event resumes what is held', async () => {
    const event = await createEvent();
    const again = (seat) => ask(event, { seats: [seat], owner: 'Ann', resume: true });
    const short = await take(event, { seats: ['S-A-1'], owner: 'Ann', ttl_ms: 1000 });
    await confirm(await take(event, { seats: ['S-A-2'], owner: 'Ann' }));
    const live = await take(event, { seats: ['S-A-3'], owner: 'Ann' });
    assertProblem(await again('S-A-2'), 409, 'seat_taken');
    await sleep(ms(short.expires_at) - Date.now() + 5);
    assert.notEqual(assertOk(await again('S-A-1'), 201).id, short.id);
    assertOk(await server.post(`/v1/events/${event.id}/close`, undefined, SELLER));
    assert.equal(assertOk(await again('S-A-3')).id, live.id);
    assertProblem(await again('S-A-4'), 409, 'event_closed');
  });

  it('limits outlive a kill', async () => {
    const event = await createEvent({ max_per_owner: 3 });
    await confirm(await take(event, { seats: ['S-A-1'], owner: 'Ann' }));
    const hold = await take(event, { seats: ['S-A-2'], owner: 'Ann' });
    await server.kill9();
    await server.launch();
    limited(await ask(event, { seats: ['S-A-3', 'S-A-4'], owner: 'Ann' }), 3);
    assert.equal(assertOk(await ask(event, { seats: ['S-A-2'], owner: 'Ann', resume: true })).id, hold.id);
    await take(event, { seats: ['S-A-3'], owner: 'Ann' });
    limited(await ask(event, { seats: ['S-A-4'], owner: 'Ann' }), 3);
  });
});
