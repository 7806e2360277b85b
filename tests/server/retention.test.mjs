// Retention: archived events are pruned after --keep and finished holds after --keep-holds, and owners can be erased; sales stay.
// backends: sqlite postgres

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertFoldIsState } from '../support/audit.mjs';
import { CARD } from '../support/checkout.mjs';
import { assertInvalid, assertOk, assertProblem } from '../support/expect.mjs';
import { assertVerified, checkLedger } from '../support/ledger.mjs';
import { book, reached, sell } from '../support/payments.mjs';
import { itOnce, mapOf, newKey, only, reap, sleep, sqliteQuery, start, until } from '../support/server.mjs';
import { apply, Stream } from '../support/stream.mjs';

describe('erasing an owner', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const erase = (owner, headers) => server.post('/v1/owners/erase', { owner }, headers);
  const confirm = (hold, fields = {}) => server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, ...fields });

  it('takes the label, the metadata and the reference away, in every event, and keeps the sale', async () => {
    const events = [await server.createEvent(), await server.createEvent()];
    const booked = [];
    for (const event of events) {
      const held = await server.grant(event, 'S-A-1', { owner: 'Ada Lovelace', metadata: { phone: '123' } });
      booked.push(assertOk(await confirm(held, { reference: 'order of Ada' }), 201));
      await server.grant(event, 'S-A-2', { owner: 'Ada Lovelace' });
      await server.grant(event, 'S-A-3', { owner: 'Bob' });
    }
    assert.deepEqual(assertOk(await erase('Ada Lovelace')), { object: 'erasure', holds: 4, bookings: 2, answers: 0 });
    for (const [i, event] of events.entries()) {
      const { data } = await server.read(`/v1/holds?event=${event.id}`);
      assert.deepEqual(data.map((hold) => hold.owner), ['Bob', null, null]);
      assert.ok(data.every((hold) => !hold.metadata));
      const booking = await server.read(`/v1/bookings/${booked[i].id}`);
      assert.deepEqual([booking.status, booking.reference, booking.owner, booking.seats], ['confirmed', null, null, ['S-A-1']]);
    }
    assert.deepEqual(assertOk(await erase('Ada Lovelace')), { object: 'erasure', holds: 0, bookings: 0, answers: 0 });
    assert.equal((await server.read('/v1/bookings?reference=order%20of%20Ada')).data.length, 0);
  });

  it('rewrites stored answers, which are replayed without the label', async () => {
    const event = await server.createEvent();
    const headers = { 'Idempotency-Key': newKey() };
    const body = { event: event.id, seats: ['S-A-1'], owner: 'Grace', metadata: { phone: '456' } };
    const first = await server.post('/v1/holds', body, headers);
    assert.equal(first.json.owner, 'Grace');
    assert.equal(assertOk(await erase('Grace')).answers, 1);
    const again = await server.post('/v1/holds', body, headers);
    assert.equal(again.status, 201);
    assert.equal(again.headers['idempotency-replayed'], 'true');
    assert.deepEqual([again.json.id, again.json.owner, again.json.metadata], [first.json.id, null, undefined]);
  });

  it('takes what a buyer told for the payment, also from its stored answer, and keeps payment and sale', async () => {
    const event = await server.createEvent();
    const held = await server.grant(event, 'S-A-1', { owner: 'Mary' });
    const headers = { 'Idempotency-Key': newKey() };
    const other = await server.grant(event, 'S-A-3', { owner: 'Mary' });
    const asked = { holds: [held.id, other.id], email: 'mary@shop.example', reference: 'order of Mary' };
    assertOk(await server.post('/v1/bookings', asked, headers), 201);
    const paid = await sell(server, event, ['S-A-2'], { owner: 'Mary', email: 'mary@shop.example' });
    const { holds, bookings } = assertOk(await erase('Mary'));
    assert.deepEqual([holds, bookings], [3, 2]);
    for (const { id } of [held, other]) assert.equal((await server.read(`/v1/holds/${id}`)).owner, null);
    const again = await server.post('/v1/bookings', asked, headers);
    assert.equal(again.headers['idempotency-replayed'], 'true');
    assert.deepEqual([again.json.reference, again.json.owner, /mary/i.test(again.text)], [null, null, false]);
    const now = await server.read(`/v1/bookings/${paid.id}`);
    assert.deepEqual([now.status, now.owner, now.payment.status, now.payment.amount_received], ['confirmed', null, 'succeeded', paid.amount]);
  });

  it('finds stored answers again if it was interrupted before them', { skip: only('sqlite') }, async () => {
    const event = await server.createEvent();
    const headers = { 'Idempotency-Key': newKey() };
    const body = { event: event.id, seats: ['S-A-1'], owner: 'Joan' };
    assertOk(await server.post('/v1/holds', body, headers), 201);
    sqliteQuery(server.database, "UPDATE holds SET owner = NULL WHERE owner = 'Joan'", { readOnly: false });
    assert.deepEqual(assertOk(await erase('Joan')), { object: 'erasure', holds: 0, bookings: 0, answers: 1 });
    assert.equal((await server.post('/v1/holds', body, headers)).json.owner, null);
  });

  itOnce('leaves holds that nobody can resume, and asking for them ends', async () => {
    const event = await server.createEvent({ areas: [{ name: 'Floor', price: 1, capacity: 10 }] });
    const body = { areas: { Floor: 2 }, owner: 'Twin' };
    for (let n = 0; n < 3; n++) await server.take(event, body);
    assert.equal(assertOk(await erase('Twin')).holds, 3);
    const fresh = await server.take(event, { ...body, resume: true });
    assert.equal(assertOk(await server.ask(event, { ...body, resume: true })).id, fresh.id);
  });

  it('goes through more holds than one slice has', async () => {
    const event = await server.createEvent({
      sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 1 }],
      areas: [{ name: 'Floor', price: 1, capacity: 10_000 }],
    });
    const holds = Array.from({ length: 2300 }, (_, n) => ({ event: event.id, areas: { Floor: 1 }, owner: n % 100 ? 'many' : 'few' }));
    for (let at = 0; at < holds.length; at += 100) {
      const answers = await Promise.all(holds.slice(at, at + 100).map((body) => server.post('/v1/holds', body)));
      assert.ok(answers.every(({ status }) => status === 201));
    }
    assert.equal(assertOk(await erase('few')).holds, 23);
    assert.equal(assertOk(await erase('many')).holds, 2277);
  });

  itOnce('refuses a body without an owner', async () => {
    assertInvalid(await server.post('/v1/owners/erase', {}), 'owner');
    assertInvalid(await server.post('/v1/owners/erase', { owner: '' }), 'owner');
    assertInvalid(await server.post('/v1/owners/erase', { owner: 'x', all: true }), 'all');
  });

  itOnce('is repeated by its key with the same answer', async () => {
    const event = await server.createEvent();
    await server.grant(event, 'S-A-1', { owner: 'Key' });
    const headers = { 'Idempotency-Key': newKey() };
    const first = await erase('Key', headers);
    assert.equal(assertOk(first).holds, 1);
    const again = await erase('Key', headers);
    assert.equal(again.text, first.text);
    assert.equal(again.headers['idempotency-replayed'], 'true');
    assertProblem(await erase('Lock', headers), 422, 'idempotency_mismatch');
  });
});

describe('an archived event', () => {
  let server;
  before(async () => { server = await start({ args: ['--keep', '1s'] }); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const ledger = () => server.place?.ledger ?? server.ledger.replace(/^sqlite:.*/, server.dir);
  const rows = async (each) => (await server.read(`/v1/audit?event=${each.id}`)).data.length;

  it('keeps its log while money is owed, and keeps bookings, payments and refunds for ever', async () => {
    const [owing, settled] = [await server.createEvent(), await server.createEvent()];
    const lost = await sell(server, owing, ['S-A-1'], {}, CARD.refundFails);
    const [kept, returned] = [await sell(server, settled, ['S-A-1']), await sell(server, settled, ['S-A-2'])];
    const unpaid = await book(server, await server.grant(settled, 'S-A-3'));
    for (const { id } of [lost, returned, unpaid]) assertOk(await server.post(`/v1/bookings/${id}/cancel`, {}));
    await reached(server, lost, 'its refund has failed', ({ payment }) => payment.status === 'refund_failed');
    await reached(server, returned, 'it is given back', ({ payment }) => payment.status === 'refunded');
    await reached(server, unpaid, 'its intent is canceled', ({ payment }) => payment.status === 'canceled');
    for (const each of [owing, settled]) assertOk(await server.post(`/v1/events/${each.id}/archive`));
    await until('the settled one is pruned', async () => await rows(settled) === 0);
    assert.ok(await rows(owing) > 0, 'another refund is owed in an hour');
    for (const [each, status, money] of [[kept, 'confirmed', 'succeeded'], [returned, 'cancelled', 'refunded'], [unpaid, 'cancelled', 'canceled']]) {
      const now = await server.read(`/v1/bookings/${each.id}`);
      assert.deepEqual([now.status, now.payment.status], [status, money]);
    }
    assert.equal((await server.read(`/v1/refunds?status=succeeded`)).data.length, 1);
    await until('its holds are pruned', async () => { assertVerified(ledger()); return (await server.read(`/v1/holds?event=${settled.id}`)).data.length === 3; });
  });

  it('loses its log and its finished holds after --keep, and keeps its sales', async () => {
    const open = await server.createEvent();
    const event = await server.createEvent();
    for (const each of [open, event]) {
      for (let n = 1; n <= 5; n++) {
        const hold = await server.grant(each, `S-A-${n}`);
        if (n > 2) await server.del(`/v1/holds/${hold.id}`);
        else assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, reference: `${each.id} ${n}` }), 201);
      }
    }
    assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: ['S-B-1'] }));
    const released = (await server.read(`/v1/holds?event=${event.id}&status=released`)).data[0];
    assertOk(await server.post(`/v1/events/${event.id}/archive`));
    const before = await rows(open);
    await until('the log is gone', async () => await rows(event) === 0);
    await until('released holds are gone', async () => (await server.read(`/v1/holds?event=${event.id}`)).data.length === 2);
    assertProblem(await server.get(`/v1/holds/${released.id}`), 404, 'no_such_hold');
    assert.equal(await rows(open), before, 'an event that is not archived keeps its log');
    assert.equal((await server.read(`/v1/holds?event=${open.id}`)).data.length, 5);

    const { data: [booking] } = await server.read(`/v1/bookings?reference=${event.id}%201`);
    assert.equal(booking.status, 'confirmed');
    const path = `/v1/events/${event.id}/seats`;
    const seat = await server.read(`${path}/S-A-1`);
    assert.deepEqual([seat.status, seat.history, seat.history_has_more], ['booked', [], false]);
    assert.deepEqual([(await server.read(`${path}/S-A-3`)).status, (await server.read(`${path}/S-B-1`)).status], ['available', 'blocked']);
    assertInvalid(await server.get(`${path}/S-A-1?at=${booking.created_at}`), 'at');
    assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`));
    assert.deepEqual((await server.read(`/v1/audit?event=${event.id}`)).data.map(({ object, cause }) => `${object} ${cause}`),
      ['booking cancel', 'seat cancel']);
  });
});

describe('an event on sale', () => {
  let server, event, path, early, released;
  before(async () => { server = await start({ args: ['--keep-holds', '1s'] }); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const ledger = () => server.place?.ledger ?? server.ledger.replace(/^sqlite:.*/, server.dir);
  const seat = (name, at) => server.get(`${path}/${name}${at ? `?at=${at}` : ''}`);
  const causes = async (name) => assertOk(await seat(name)).history.map(({ cause, to }) => `${cause} ${to}`);
  const sell = async (hold) => assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
  const release = async (hold) => { assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204); return hold; };
  const letGo = async (fields) => release(await server.take(event, fields));

  it('loses holds that ended and sold nothing after --keep-holds, with their rows, and nothing else', async () => {
    event = await server.createEvent({ areas: [{ name: 'Floor', price: 5, capacity: 9 }] });
    path = `/v1/events/${event.id}/seats`;
    assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: ['S-A-3'], areas: { Floor: 2 }, channel: 'house' }));
    released = await letGo({ seats: ['S-A-1', 'S-A-2'], areas: { Floor: 1 } });
    const house = await letGo({ seats: ['S-A-3'], channel: 'house' });
    await letGo({ areas: { Floor: 1 }, channel: 'house' });
    const changed = await server.grant(event, 'S-A-4');
    assertOk(await server.patch(`/v1/holds/${changed.id}`, { fence: changed.fence, add: { seats: ['S-A-5'] }, remove: { seats: ['S-A-4'] } }));
    const kept = [house, await server.grant(event, 'S-A-4'), await server.grant(event, 'S-A-2'), await server.grant(event, 'S-A-6', { ttl_ms: 480_000 })];
    await sell(kept[1]);
    const cancelled = await sell(kept[2]);
    assertOk(await server.post(`/v1/bookings/${cancelled.id}/cancel`));
    const pair = [await server.grant(event, 'S-B-1'), await server.grant(event, 'S-B-2')]; // booked together, and never paid
    assertOk(await server.post('/v1/bookings', { holds: pair.map(({ id }) => id) }, { 'Idempotency-Key': newKey() }), 201);
    await release(pair[0]);
    kept.push(...pair);
    early = assertOk(await seat('S-A-1')).at;
    assertOk(await server.post(`/v1/holds/${changed.id}/renew`, {}));
    await release(changed);
    const expired = await server.grant(event, 'S-A-7', { ttl_ms: 1000 });
    await until('it expires', async () => (await server.counts(event)).held === 1);
    assertOk(await server.post(`/v1/holds/${kept[3].id}/renew`, { ttl_ms: 480_000 })); // the newest row stays
    await until('they are gone', async () => {
      assertVerified(ledger());
      return (await server.read(`/v1/holds?event=${event.id}`)).data.length === kept.length;
    });
    for (const { id } of [released, changed, expired]) assertProblem(await server.get(`/v1/holds/${id}`), 404, 'no_such_hold');
    for (const { id } of kept) assertOk(await server.get(`/v1/holds/${id}`));
    const { rows } = await assertFoldIsState(server, event);
    const ids = new Set(kept.map(({ id }) => id));
    assert.deepEqual(rows.filter(({ hold }) => hold && !ids.has(hold)), []);
    checkLedger(ledger());
  });

  itOnce('tells the whole history of what a place is now, and that older rows were pruned', async () => {
    assert.deepEqual(await causes('S-A-3'), ['release blocked', 'hold held', 'block blocked']);
    assert.deepEqual(await causes('S-A-4'), ['confirm booked', 'hold held']);
    assert.deepEqual(await causes('S-A-6'), ['renew held', 'hold held']);
    assert.deepEqual(await causes('S-A-2'), ['cancel available', 'confirm booked', 'hold held']);
    for (const name of ['S-A-1', 'S-A-5', 'S-A-7']) assert.deepEqual([await causes(name), assertOk(await seat(name)).status], [[], 'available']);
    for (const name of ['S-A-1', 'S-A-3', 'S-A-4']) {
      const { history_pruned, history_has_more } = assertOk(await seat(name));
      assert.deepEqual([history_pruned, history_has_more], [true, false]);
    }
    const { pruned_seq: prunedSeq, data } = await server.read(`/v1/audit?event=${event.id}`);
    assert.ok(prunedSeq > 0);
    assert.deepEqual(data.filter(({ seq }) => seq > prunedSeq).map(({ seq }) => seq - prunedSeq), data.filter(({ seq }) => seq > prunedSeq).map((_, i) => i + 1));
    const fresh = await server.createEvent();
    assert.equal((await server.read(`/v1/audit?event=${fresh.id}`)).pruned_seq, 0);
    assert.equal((await server.read(`/v1/events/${fresh.id}/seats/S-A-1`)).history_pruned, false);
  });

  itOnce('refuses to tell what it no longer knows of a past moment, and tells what it knows', async () => {
    assertInvalid(await seat('S-A-1', early), 'pruned');
    assertInvalid(await seat('S-A-4', early), 'pruned');
    assertInvalid(await server.get(`${path}?at=${early}`), 'pruned');
    const names = ['S-A-1', 'S-A-3', 'S-A-4', 'S-A-5', 'S-A-6'];
    await until('a moment is asked for before it is pruned', async () => {
      const hold = await server.grant(event, 'S-A-1', { ttl_ms: 480_000 });
      await sleep(3);
      const { at } = assertOk(await seat('S-A-1'));
      await sleep(3);
      await release(hold);
      const [map, ...each] = await Promise.all([server.get(`${path}?at=${at}`), ...names.map((name) => seat(name, at))]);
      if ([map, ...each].some(({ status }) => status === 400)) return false;
      const then = mapOf(assertOk(map));
      assert.deepEqual(names.map((name) => then[name]), ['h', 'x', 'b', '.', 'h']);
      assert.deepEqual(each.map((answer) => assertOk(answer).status), ['held', 'blocked', 'booked', 'available', 'held']);
      return true;
    });
  });

  itOnce('resumes a stream from a seq whose row is gone', async () => {
    const stream = await Stream.open(server, event, { after: 1 }); // a stream is resumed from what the server remembers, not from the log
    const now = await server.read(path);
    const blank = mapOf(await server.read(`/v1/events/${(await server.createEvent()).id}/seats`));
    await stream.find(({ id }) => Number(id) >= now.seq);
    assert.deepEqual(apply(blank, stream.messages.filter(({ event: kind }) => kind === 'seats')), mapOf(now));
    stream.close();
  });

  it('sells what pruned holds had, after a restart, too', async () => {
    await sell(await server.grant(event, 'S-A-5'));
    assert.match((await server.get('/metrics')).text, /^holdfast_holds_pruned_total [1-9]/m);
    await server.stop({ keep: true });
    await server.launch();
    await sell(await server.grant(event, 'S-A-7'));
    checkLedger(ledger());
    assertVerified(ledger());
  });
});
