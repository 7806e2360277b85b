// Every row of the audit log says who made the change: an access key by its name, the address of a caller without one, the payment
// provider, the clock, or the server itself.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ACTOR, assertFoldIsState, readAudit } from '../support/audit.mjs';
import { assertOk } from '../support/expect.mjs';
import { assertVerifiedSoon } from '../support/ledger.mjs';
import { book, pay, reached } from '../support/payments.mjs';
import { itOnce, not, reap, start, tempDir, until } from '../support/server.mjs';

const bearer = (key) => ({ Authorization: `Bearer ${key}` });
const ADMIN = bearer('an-admin-key-of-the-environment');
const OFFICE = bearer('a-key-of-the-box-office-in-a-file');
const OFFICE_NEXT = bearer('the-next-key-of-the-box-office');
const NAMELESS = bearer('a-key-without-a-name-in-a-file');
const from = (address) => ({ 'X-Forwarded-For': address });

// A file of keys that only its owner may read.
function keyFile(lines) {
  const file = path.join(tempDir(), 'keys');
  fs.writeFileSync(file, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
  return file;
}
const keyOf = ({ Authorization }) => Authorization.slice('Bearer '.length);

// "cause object actor" of each row, and of rows that follow each other and say the same, once.
const told = (rows) => rows.map(({ cause, object, actor }) => `${cause} ${object} ${actor}`).filter((text, i, all) => text !== all[i - 1]);

describe('where there are keys', () => {
  let server;
  let asAdmin; // reads the log
  before(async () => {
    const sellers = keyFile(['# box office', `box-office_1.a ${keyOf(OFFICE)}`, `box-office_1.a ${keyOf(OFFICE_NEXT)}`, keyOf(NAMELESS)]);
    server = await start({ args: ['--trusted-proxy', '127.0.0.1', '--seller-key-file', sellers], env: { HOLDFAST_ADMIN_KEY: keyOf(ADMIN) } });
    asAdmin = { get: (target) => server.get(target, ADMIN), read: async (target) => assertOk(await server.get(target, ADMIN)) };
  });
  after(async () => {
    try {
      if (server) await assertVerifiedSoon(server.ledger, server.gate);
      await server?.stop();
    } finally { await reap(); }
  });

  const createEvent = (fields) => server.createEvent({ areas: [{ name: 'Floor', price: 5, capacity: 50 }], ...fields }, ADMIN);
  const post = async (target, body, headers, status) => assertOk(await server.post(target, body, headers), status);
  const release = async (hold, headers) => assert.equal((await server.del(`/v1/holds/${hold.id}`, headers)).status, 204);
  const rowsOf = (hold) => readAudit(asAdmin, `hold=${hold.id}`);

  it('a key is named as its file names it, or after its scope', async () => {
    const event = await createEvent();
    const hold = await server.take(event, { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 2 }, ttl_ms: 100_000 }, OFFICE);
    await post(`/v1/holds/${hold.id}/renew`, { ttl_ms: 400_000 }, OFFICE_NEXT);
    await post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }, NAMELESS, 201);
    await post(`/v1/events/${event.id}/block`, { seats: ['S-B-1', 'S-B-2'] }, OFFICE);
    await post(`/v1/events/${event.id}/unblock`, { seats: ['S-B-1'] }, NAMELESS);
    await post(`/v1/events/${event.id}/close`, {}, OFFICE);
    assertOk(await server.patch(`/v1/events/${event.id}`, { name: 'Gala again' }, ADMIN));
    assert.deepEqual(told(await readAudit(asAdmin, `event=${event.id}`)), [
      'create event key:admin',
      'hold hold key:box-office_1.a', 'hold seat key:box-office_1.a', 'hold area key:box-office_1.a',
      'renew hold key:box-office_1.a',
      'confirm hold key:seller', 'confirm booking key:seller', 'confirm seat key:seller', 'confirm area key:seller',
      'block seat key:box-office_1.a', 'unblock seat key:seller', 'close event key:box-office_1.a', 'change event key:admin',
    ]);
    await assertFoldIsState(asAdmin, event);
  });

  it('a caller without a key is its address, also behind a proxy', async () => {
    const event = await createEvent();
    const plain = await server.grant(event, 'S-A-1');
    const hold = await server.take(event, { seats: ['S-A-2', 'S-A-3'], ttl_ms: 100_000 }, from('192.0.2.7'));
    await post(`/v1/holds/${hold.id}/renew`, { ttl_ms: 400_000 }, from('10.1.2.3, 2001:DB8:0:1:2:3:4:5'));
    const { fence } = assertOk(await server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, add: { seats: ['S-A-4'], areas: { Floor: 1 } }, remove: { seats: ['S-A-2'] } },
      from('::ffff:198.51.100.9')));
    await post(`/v1/holds/${hold.id}/confirm`, { fence }, OFFICE, 201);
    await release(plain, from('not an address'));
    assert.deepEqual(told(await rowsOf(hold)), [
      'hold hold address:192.0.2.7', 'hold seat address:192.0.2.7', 'renew hold address:2001:db8:0:1:2:3:4:5',
      'change hold address:198.51.100.9', 'change seat address:198.51.100.9', 'change area address:198.51.100.9',
      'confirm hold key:box-office_1.a', 'confirm booking key:box-office_1.a', 'confirm seat key:box-office_1.a', 'confirm area key:box-office_1.a',
    ]);
    assert.deepEqual(new Set((await rowsOf(plain)).map(({ actor }) => actor)), new Set(['address:127.0.0.1']));
  });

  it('a hold that runs out is ended by the timer, whoever comes next', async () => {
    const event = await createEvent();
    const swept = await server.take(event, { seats: ['S-A-1'], ttl_ms: 1000 }, from('192.0.2.7'));
    await until('it has run out', async () => (await server.counts(event)).held === 0);
    // The one who takes the seat in the moment in which it is due ends the hold before, but did not cause that.
    const due = await server.take(event, { seats: ['S-A-2'], ttl_ms: 1000 }, from('192.0.2.7'));
    const taker = await until('it is taken', async () => {
      const answer = await server.hold(event, 'S-A-2', {}, OFFICE);
      return answer.status === 201 ? answer.json : null;
    });
    await post(`/v1/holds/${swept.id}/confirm`, { fence: swept.fence, rescue: true }, OFFICE, 201);
    assert.deepEqual(told(await rowsOf(swept)), ['hold hold address:192.0.2.7', 'hold seat address:192.0.2.7', 'expire hold timer', 'expire seat timer',
      'rescue hold key:box-office_1.a', 'rescue booking key:box-office_1.a', 'rescue seat key:box-office_1.a']);
    assert.deepEqual(told(await rowsOf(due)).slice(-2), ['expire hold timer', 'expire seat timer']);
    assert.deepEqual(told(await rowsOf(taker)), ['hold hold key:box-office_1.a', 'hold seat key:box-office_1.a']);
  });

  it('callers who act in the same moment are told apart', async () => {
    const event = await createEvent({ sections: [{ name: 'S', price: 1, rows: 4, seats_per_row: 10 }] });
    const seats = Array.from({ length: 40 }, (_, i) => `S-${'ABCD'[Math.floor(i / 10)]}-${(i % 10) + 1}`);
    const holds = await Promise.all(seats.map((seat, i) => server.grant(event, seat, {}, i % 2 ? OFFICE : from(`192.0.2.${i}`))));
    await Promise.all(holds.map((hold, i) => release(hold, i % 2 ? from(`198.51.100.${i}`) : NAMELESS)));
    const rows = await readAudit(asAdmin, `event=${event.id}`);
    for (const [i, { id }] of holds.entries()) {
      const [made, ended] = i % 2 ? ['key:box-office_1.a', `address:198.51.100.${i}`] : [`address:192.0.2.${i}`, 'key:seller'];
      assert.deepEqual(told(rows.filter(({ hold }) => hold === id)), [`hold hold ${made}`, `hold seat ${made}`, `release hold ${ended}`, `release seat ${ended}`]);
    }
    await assertFoldIsState(asAdmin, event);
  });

  itOnce('sellers, who may read the history of a seat, see no addresses', async () => {
    const event = await createEvent();
    await release(await server.grant(event, 'S-A-1', {}, from('192.0.2.7')), OFFICE);
    const answer = await server.get(`/v1/events/${event.id}/seats/S-A-1`, OFFICE);
    assert.deepEqual(told(assertOk(answer).history), ['release seat key:box-office_1.a', 'hold seat address:*']);
    assert.ok(!answer.text.includes('192.0.2.7'));
  });

  it('an owner who is erased has no address left in the log; others keep theirs', async () => {
    const event = await createEvent({ sections: [{ name: 'S', price: 1, rows: 2, seats_per_row: 10 }] });
    const own = (seats, fields) => server.take(event, { seats, owner: 'forget me', ttl_ms: 100_000, ...fields }, from('203.0.113.77'));
    const changed = await own(['S-A-1', 'S-A-2'], { areas: { Floor: 2 } });
    const other = await server.take(event, { seats: ['S-B-1'], owner: 'somebody else', ttl_ms: 100_000 }, from('203.0.113.77'));
    await post(`/v1/holds/${changed.id}/renew`, { ttl_ms: 400_000 }, from('203.0.113.78'));
    await post(`/v1/holds/${other.id}/renew`, { ttl_ms: 400_000 }, from('203.0.113.78'));
    // Other places, given back and taken, of seats and of an area: several entries of one transition.
    const { fence } = assertOk(await server.patch(`/v1/holds/${changed.id}`, { fence: changed.fence, add: { seats: ['S-A-3', 'S-A-4'] }, remove: { seats: ['S-A-1'], areas: { Floor: 1 } } },
      from('203.0.113.79')));
    const released = await own(['S-A-5']);
    await release(released, from('203.0.113.77'));
    const expired = await own(['S-A-6'], { ttl_ms: 1000 });
    await until('it has run out', async () => (await server.read(`/v1/holds/${expired.id}`)).status === 'expired');
    await post(`/v1/holds/${changed.id}/confirm`, { fence }, OFFICE, 201);
    const before = await readAudit(asAdmin, `event=${event.id}`);
    assert.equal(assertOk(await server.post('/v1/owners/erase', { owner: 'forget me' }, ADMIN)).holds, 3);
    const rows = await readAudit(asAdmin, `event=${event.id}`);
    const mine = new Set([changed, released, expired].map(({ id }) => id));
    assert.deepEqual(rows, before.map((row) => (mine.has(row.hold) && row.actor.startsWith('address:') ? { ...row, actor: 'address:erased' } : row)));
    assert.ok(rows.some(({ actor }) => actor === 'address:203.0.113.78'));
    const stored = server.sql(`SELECT count(*) AS n FROM log WHERE actor = 'address:203.0.113.79'`);
    assert.equal(Number(stored[0].n), 0);
    assert.deepEqual(told(assertOk(await server.get(`/v1/events/${event.id}/seats/S-A-5`, OFFICE)).history), ['release seat address:erased', 'hold seat address:erased']);
    await assertFoldIsState(asAdmin, event);
  });

  itOnce('a renewal in the history of a seat has its own actor', async () => {
    const event = await createEvent();
    const hold = await server.grant(event, 'S-A-1', { ttl_ms: 100_000 }, OFFICE);
    await post(`/v1/holds/${hold.id}/renew`, { ttl_ms: 400_000 }, NAMELESS);
    const { history } = assertOk(await server.get(`/v1/events/${event.id}/seats/S-A-1`, OFFICE));
    assert.deepEqual(told(history), ['renew seat key:seller', 'hold seat key:box-office_1.a']);
  });
});

describe('where there are no keys', () => {
  after(reap);

  itOnce('every caller is told as open', async () => {
    const server = await start();
    const event = await server.createEvent();
    const hold = await server.grant(event, ['S-A-1', 'S-A-2'], {}, from('192.0.2.7'));
    await server.del(`/v1/holds/${hold.id}`);
    assert.deepEqual(new Set((await readAudit(server, `event=${event.id}`)).map(({ actor }) => actor)), new Set(['open']));
    await server.finish();
  });

  itOnce('the event of the demo is made by the server', async () => {
    const server = await start({ args: ['--demo'] });
    const { data: [event] } = await server.read('/v1/events');
    assert.deepEqual(told(await readAudit(server, `event=${event.id}`)), ['create event server']);
    await server.finish();
  });

  it('money is told by the provider, and a cancelled event cancels its bookings by itself', { skip: not('cluster', 'each server has a sandbox of its own') }, async () => {
    const server = await start();
    const event = await server.createEvent();
    const hold = await server.grant(event, 'S-A-1');
    const booking = await book(server, hold);
    await pay(booking);
    await reached(server, booking, 'it is paid', ({ status }) => status === 'confirmed');
    assertOk(await server.post(`/v1/events/${event.id}/cancel`, {}));
    await reached(server, booking, 'its money is back', ({ payment }) => payment.status === 'refunded');
    const rows = await readAudit(server, `event=${event.id}`);
    assert.deepEqual(told(rows.filter((row) => row.object !== 'payment')), [
      'create event open', 'hold hold open', 'hold seat open', 'renew hold open', 'book booking open',
      'payment hold provider:sandbox', 'payment seat provider:sandbox', 'payment booking provider:sandbox',
      'cancel event open', 'cancel booking server', 'cancel seat server',
    ]);
    assert.deepEqual(new Set(rows.filter(({ object }) => object === 'payment').map(({ cause, actor }) => `${cause} ${actor}`)),
      new Set(['payment provider:sandbox', 'cancel server']));
    for (const { actor } of rows) assert.match(actor, ACTOR);
    await assertFoldIsState(server, event);
    await server.finish();
  });
});
