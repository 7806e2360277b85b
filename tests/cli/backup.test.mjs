// `holdfast backup` and `holdfast restore`: backups of a ledger in use are complete and checked, a restored ledger
// contradicts nothing that was promised after its backup, and a kill at any moment leaves the old or the new.
// backends: sqlite postgres
// time limit: 240 s

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { placeOf } from '../support/backend.mjs';
import { assertFoldIsState } from '../support/audit.mjs';
import { begin, holdfast } from '../support/cli.mjs';
import { CARD, openShop } from '../support/checkout.mjs';
import { smallDisk } from '../support/disk.mjs';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { assertVerified } from '../support/ledger.mjs';
import { book, pay, reached, sell } from '../support/payments.mjs';
import { gridPlan, planEvent } from '../support/plans.mjs';
import { backend, itOnce, newKey, only, reap, removeTempDir, sleep, sqliteQuery, start, tempDir, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const BUYERS = 4;
const ROWS = 'ABCDEFGH';
const onSqlite = backend === 'sqlite';

let dir;
before(() => { dir = tempDir(); });
after(async () => {
  await (await source)?.server.stop();
  await reap();
  removeTempDir(dir);
});

let files = 0;
const newFile = () => path.join(dir, `backup-${++files}.db`);

// An empty place for a server: { dir, ledger (undefined: SQLite in `dir`), url }.
async function newPlace() {
  const where = tempDir();
  const { ledger } = await placeOf(where);
  return { dir: where, ledger, url: ledger ?? `sqlite:${path.join(where, 'holdfast.db')}` };
}
const open = (place) => start({ dir: place.dir, ledger: place.ledger });

async function run(code, ...args) {
  const answer = await holdfast(undefined, args);
  assert.equal(answer.code, code, `${args.join(' ')}: ${answer.stdout}${answer.stderr}`);
  return code === 0 ? answer.stdout : answer.stderr;
}
const backup = async (url, file, ...options) => JSON.parse(await run(0, 'backup', '--ledger', url, '--json', ...options, file));
// PostgreSQL needs a moment to end the sessions of a process that has ended.
const restore = (file, url, ...options) => until('the sessions of others have ended', async () => {
  const { code, stdout, stderr } = await holdfast(undefined, ['restore', '--ledger', url, '--json', ...options, file]);
  if (/connections of Holdfast use this database/.test(stderr)) return undefined;
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
});
const sound = (url) => run(0, 'verify', '--ledger', url);

// Changes rows behind the servers' backs.
function tamper(url, sql) {
  if (url.startsWith('sqlite:')) sqliteQuery(url.slice('sqlite:'.length), sql, { readOnly: false });
  else execFileSync('psql', [url, '-qAtX', '-v', 'ON_ERROR_STOP=1', '-c', sql], { stdio: 'pipe' });
}

// The number that a query gives.
const number = (url, sql) => Number(url.startsWith('sqlite:') ? Object.values(sqliteQuery(url.slice('sqlite:'.length), sql)[0])[0]
  : execFileSync('psql', [url, '-qAtX', '-c', sql], { encoding: 'utf8' }));

// Each buyer holds seats of its own, buys some, and releases or keeps the others, a change every few milliseconds.  `seen` gets every hold,
// and whether it was asked for after the backup.
async function buy(server, event, row, busy, seen) {
  for (let n = 0; busy.going && n < 2000; n++) {
    const isLater = busy.isBackedUp === true;
    const { status, json } = await server.hold(event, `S-${row}-${1 + (n % 40)}`);
    if (status !== 201) continue;
    seen.push({ ...json, isLater });
    if (n % 5 === 0) await server.post(`/v1/holds/${json.id}/confirm`, { fence: json.fence, reference: `order-${row}-${n}` });
    else if (n % 5 !== 1) await server.del(`/v1/holds/${json.id}`);
    busy.changes++;
    await sleep(10);
  }
}

async function openWithEvents(fields = {}) {
  const place = await newPlace();
  const server = await open(place);
  const event = await server.createEvent({
    sections: [{ name: 'S', price: 1000, rows: BUYERS + 1, seats_per_row: 40 }], areas: [{ name: 'Floor', price: 100, capacity: 90 }], ...fields,
  });
  return { place, server, event, row: ROWS[BUYERS] };
}

// A ledger that tests only read, with a server that uses it.
let source;
const anySource = () => (source ??= openWithEvents());

describe('a backup of a ledger in use', () => {
  // The sandbox keeps its own file, as the provider would, and knows what happened after the backup.
  it('is restored without losing or giving back money twice', async () => {
    const { place, server, event, row } = await openWithEvents();
    const seat = (n) => [`S-${row}-${n}`];
    const [kept, refunded, cancelled] = [await sell(server, event, seat(1)), await sell(server, event, seat(2)), await sell(server, event, seat(3))];
    const failing = await sell(server, event, seat(4), {}, CARD.refundFails);
    assertOk(await server.post(`/v1/bookings/${failing.id}/cancel`, {}));
    await reached(server, failing, 'its refund has failed', ({ payment }) => payment.status === 'refund_failed');
    const [late, unpaid] = [await book(server, await server.grant(event, seat(5))), await book(server, await server.grant(event, seat(6)))];
    const file = newFile();
    await backup(place.url, file);
    await sound(`sqlite:${file}`);

    await pay(late);
    await reached(server, late, 'it is paid', ({ status }) => status === 'confirmed');
    assertOk(await server.post(`/v1/bookings/${refunded.id}/refund`, { amount: 300 }));
    assertOk(await server.post(`/v1/bookings/${cancelled.id}/cancel`, {}));
    for (const each of [refunded, cancelled]) await reached(server, each, 'it is given back', ({ payment }) => payment.amount_refunded > 0);
    const lost = await sell(server, event, seat(7));
    await server.stop({ keep: true });

    const report = await restore(file, place.url, '--force');
    assert.deepEqual([report.holds_ended, report.jobs, report.payments], [2, 1, 6]);
    await sound(place.url);
    const next = await open(place);
    assertProblem(await next.get(`/v1/bookings/${lost.id}`), 404, 'no_such_booking');
    await reached(next, late, 'its money is found', ({ status, payment }) => status === 'confirmed' && payment.status === 'succeeded');
    await reached(next, unpaid, 'its intent is canceled', ({ status, payment }) => status === 'failed' && payment.status === 'canceled');
    await reached(next, refunded, 'its refund is found', ({ status, payment }) => status === 'confirmed' && payment.amount_refunded === 300);
    await reached(next, cancelled, 'its refund is found', ({ status, payment }) => status === 'confirmed' && payment.status === 'refunded');
    const { payment } = await next.read(`/v1/bookings/${kept.id}`);
    assert.deepEqual([payment.status, payment.amount_received, payment.amount_refunded], ['succeeded', kept.amount, 0]);
    assert.equal((await next.read(`/v1/bookings/${failing.id}`)).payment.status, 'refund_failed');
    await sound(place.url);
    await next.finish();
  });

  itOnce('is restored with every payment compared with the provider, whatever fails meanwhile', async () => {
    const shop = await openShop({ webhooks: false });
    const { server, sandbox } = shop;
    const event = await server.createEvent();
    const returned = await shop.sell(event, 'S-A-1');
    const [partly, came] = [(await shop.checkout(event, 'S-A-2')).booking, (await shop.checkout(event, 'S-A-3')).booking];
    await shop.breakProvider('create');
    const begun = assertOk(await shop.book(await server.grant(event, 'S-A-4')), 201);
    assert.equal(begun.payment.intent, null); // the backup does not know it
    const file = newFile();
    await backup(server.ledger, file);
    await shop.mendProvider();
    const made = await shop.shown(begun, 'to be paid', ({ payment }) => payment.client_secret);
    for (const booking of [partly, came, made]) {
      await shop.pay(booking);
      await shop.settled(booking, 'confirmed');
    }
    assertOk(await server.post(`/v1/bookings/${partly.id}/refund`, { amount: 300 }));
    for (const booking of [returned, came]) assertOk(await server.post(`/v1/bookings/${booking.id}/cancel`, {}));
    await shop.hasReceived(1700);
    await server.kill9();
    assert.equal((await restore(file, server.ledger, '--force')).payments, 4);

    const verified = () => run(0, 'verify', '--ledger', server.ledger);
    const failed = async () => await server.metric('holdfast_provider_calls_total', { call: 'retrieve', result: 'failed' }) ?? 0;
    const isOwed = async () => {
      assert.match(await verified(), /^I19 +owed +4 payments +not compared with the provider since/m);
      await until('the metrics say so', async () => await server.metric('holdfast_restore_unchecked') === 4);
      assert.equal(await server.metric('holdfast_jobs_pending', { kind: 'poll' }), 4);
      assert.equal((await shop.read(returned)).payment.amount_refunded, 0);
    };
    const { args } = server;
    server.args = args.map((arg) => (arg === sandbox.url ? 'http://127.0.0.1:9' : arg)); // nobody is there
    await server.launch();
    await until('the provider has been asked', async () => await failed() >= 3);
    await isOwed();
    await server.kill9();
    server.args = args;
    for (const [mode, times] of [['500', 2], ['429', 2], ['timeout_before', 100]]) {
      await sandbox.faults({ hold_ms: onSqlite ? 20_000 : 100, fail_next: { route: 'retrieve', mode, times } });
    }
    await server.launch();
    await until('the provider has failed', async () => await failed() >= 4);
    await isOwed();
    if (onSqlite) await server.kill9(); // while calls are under way; in PostgreSQL their leases would last for 25 s
    await sandbox.faults({ fail_next: null, delay_ms: [100, 300] });
    if (onSqlite) await server.launch();
    const found = await shop.settled(returned, 'confirmed', 'refunded');
    assert.equal(found.payment.amount_refunded, 1000);
    await shop.shown(partly, 'confirmed, with its refund', ({ status, payment }) => status === 'confirmed' && payment.amount_refunded === 300);
    assert.equal((await shop.settled(came, 'failed', 'refunded')).payment.amount_refunded, 1000); // nobody has money and seat
    assert.equal((await shop.settled(begun, 'confirmed', 'succeeded')).payment.intent, made.payment.intent);
    await until('nothing is left to compare', async () => await server.metric('holdfast_restore_unchecked') === 0);
    assert.doesNotMatch(await verified(), /I19/);
    await shop.close();
  });

  it('is restored without promising anything twice that was promised after it', async () => {
    const { place, server, event, row } = await openWithEvents();
    const second = await server.createEvent({ name: 'Second' });
    await server.grant(second, ['S-A-1', 'S-A-2']);
    const planned = await server.createEvent({ ...planEvent(gridPlan()), sections: undefined });
    await server.post(`/v1/events/${planned.id}/close`);
    const { text: plan } = await server.get(`/v1/events/${planned.id}/plan`);
    const key = { 'Idempotency-Key': newKey() };
    const held = await server.grant(event, [`S-${row}-1`, `S-${row}-2`], { areas: { Floor: 3 } }, key);
    const sold = await server.grant(event, `S-${row}-3`);
    const { json: booking } = await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence, reference: 'before' });
    const expired = await server.grant(event, `S-${row}-4`, { ttl_ms: 1000 });
    await until('it has expired', async () => (await server.read(`/v1/holds/${expired.id}`)).status === 'expired');

    const busy = { going: true, changes: 0 };
    const seen = [];
    const buying = Array.from({ length: BUYERS }, (_, n) => buy(server, event, ROWS[n], busy, seen));
    await until('they are busy', () => busy.changes > 20);
    const file = newFile();
    const made = await backup(place.url, file);
    busy.isBackedUp = true;
    const isLater = (hold) => hold.isLater;
    await until('they go on', () => seen.some(isLater));
    busy.going = false;
    await Promise.all(buying);
    assert.equal(made.events, 3);
    assert.equal(made.violations, 0);
    assert.equal(fs.statSync(file).mode & 0o777, 0o600);
    assert.deepEqual(fs.readdirSync(dir).filter((name) => name.startsWith(path.basename(file))), [path.basename(file)]);
    await sound(`sqlite:${file}`);

    // After the backup: what was held is given back and sold to somebody else, and so is what had expired.
    await server.del(`/v1/holds/${held.id}`);
    const late = await server.grant(event, [`S-${row}-1`, `S-${row}-4`]);
    await server.post(`/v1/holds/${late.id}/confirm`, { fence: late.fence, reference: 'after' });
    const lost = await server.createEvent({ name: 'Made after the backup' });
    const fences = [...seen, held, sold, late].map(({ fence }) => fence);
    await server.stop({ keep: true });

    const again = await newPlace();
    const restored = await restore(file, again.url);
    assert.deepEqual([restored.events, restored.events_closed, restored.replaced], [3, 2, null]);
    await sound(again.url);
    const next = await open(again);
    assertProblem(await next.get(`/v1/events/${lost.id}`), 404, 'no_such_event');
    assert.equal((await next.get(`/v1/events/${planned.id}/plan`)).text, plan);
    for (const { id } of [late, seen.find(isLater)]) assertProblem(await next.get(`/v1/holds/${id}`), 404, 'no_such_hold');
    assertProblem(await next.post(`/v1/holds/${late.id}/confirm`, { fence: late.fence }), 404, 'no_such_hold');
    for (const { id, fence } of [held, expired]) {
      assertProblem(await next.post(`/v1/holds/${id}/confirm`, { fence }), 410, 'hold_expired');
      assertProblem(await next.post(`/v1/holds/${id}/confirm`, { fence, rescue: true }), 409, 'stale_fence');
    }
    assert.deepEqual((await next.read(`/v1/bookings/${booking.id}`)).reference, 'before');
    assertProblem(await next.hold(event, `S-${row}-9`), 409, 'event_closed');
    const repeated = await next.hold(event, [`S-${row}-1`, `S-${row}-2`], { areas: { Floor: 3 } }, key);
    assert.deepEqual([repeated.headers['idempotency-replayed'], repeated.json.id], ['true', held.id]);
    assert.equal((await next.post(`/v1/events/${event.id}/open`)).json.status, 'open');
    const grant = await next.grant(event, `S-${row}-9`);
    assert.ok(grant.fence > Math.max(...fences), `${grant.fence} after ${Math.max(...fences)}`);
    assert.ok(grant.fence > restored.fence_margin);
    // An operator who has compared the orders can repeat a sale that was lost, if the places are free.
    const { fence } = await next.read(`/v1/holds/${held.id}`);
    assert.ok(fence > Math.max(...fences));
    assert.equal((await next.post(`/v1/holds/${held.id}/confirm`, { fence, rescue: true, reference: 'again' })).status, 201);
    await until('what was held in the other event has expired', async () => (await next.counts(second)).held === 0);
    const { rows } = await assertFoldIsState(next, second);
    assert.deepEqual(rows.filter(({ object }) => object === 'event' || object === 'hold').map(({ cause, actor }) => `${cause} ${actor}`),
      ['create open', 'hold open', 'restore server', 'restore server', 'expire timer']);
    assert.equal(await next.metric('holdfast_ledger_surprises_total'), 0);
    await next.stop({ keep: true });
    await assertVerified(again.ledger ?? again.dir);
  });

  it('is restored with its waiting lists: who was offered something since waits again, in the old turn', async () => {
    const { place, server, event } = await openWithEvents({ waitlist: {}, areas: [], sections: [{ name: 'S', price: 1000, rows: 1, seats_per_row: 2 }] });
    const join = async (at, owner) => assertOk(await at.post('/v1/waitlist', { event: event.id, best_available: { quantity: 1 }, owner, metadata: { owner } }), 201);
    const held = [await server.grant(event, 'S-A-1'), await server.grant(event, 'S-A-2')];
    const offered = await join(server, 'ann');
    await server.del(`/v1/holds/${held[0].id}`);
    assert.equal((await server.read(`/v1/waitlist/${offered.id}`)).status, 'offered');
    const [second, third, first] = [await join(server, 'bob'), await join(server, 'cho'), await join(server, 'dan')];
    assertOk(await server.post(`/v1/waitlist/${first.id}/first`));
    const file = newFile();
    await backup(place.url, file);
    await sound(`sqlite:${file}`);

    await server.del(`/v1/holds/${held[1].id}`);
    const { hold: forgotten } = await server.read(`/v1/waitlist/${first.id}`);
    assert.ok(forgotten);
    const follow = (at, options) => Stream.open(at, null, { ...options, path: `/v1/waitlist/${first.id}/stream` });
    const told = await (await follow(server)).find();
    assert.equal(told.event, 'offered');
    const lost = await join(server, 'eve');
    await server.stop({ keep: true });

    const again = await newPlace();
    const restored = await restore(file, again.url);
    assert.deepEqual([restored.entries_waiting, restored.holds_ended], [3, 2]);
    assert.equal(number(again.url, 'SELECT count(*) FROM waitlist WHERE status = 1 AND read_at > created_at'), 3);
    await sound(again.url);
    const next = await open(again);
    const look = (entry) => next.read(`/v1/waitlist/${entry.id}`);
    await until('what was held has expired', async () => (await next.counts(event)).held === 0);
    assert.equal((await look(offered)).status, 'lapsed');
    for (const [ahead, entry] of [first, second, third].entries()) {
      const is = await look(entry);
      assert.deepEqual([is.status, is.hold, is.number, is.ahead], ['waiting', null, entry.number, ahead]);
      assert.deepEqual(is.metadata, entry.metadata);
    }
    const stream = await follow(next, { lastEventId: told.id }); // as a browser comes back, which believes in the offer
    const news = await stream.find();
    assert.equal(news.event, 'reset');
    stream.close();
    const later = await follow(next, { lastEventId: news.id });
    assertProblem(await next.get(`/v1/waitlist/${lost.id}`), 404, 'no_such_entry');
    assertProblem(await next.get(`/v1/holds/${forgotten}`), 404, 'no_such_hold');
    assert.equal((await next.post(`/v1/events/${event.id}/open`)).json.status, 'open');
    const offers = await until('both seats are offered again', async () => {
      const found = [await look(first), await look(second)];
      return found.every(({ status }) => status === 'offered') && found;
    });
    assert.equal((await later.find()).event, 'offered');
    later.close();
    const holds = await Promise.all(offers.map(({ hold }) => next.read(`/v1/holds/${hold}`)));
    assert.deepEqual(holds.flatMap(({ seats }) => seats).sort(), ['S-A-1', 'S-A-2']);
    for (const { id, fence } of holds) assert.ok(id !== forgotten && fence > restored.fence_margin);
    assert.deepEqual([(await look(third)).status, (await look(third)).ahead], ['waiting', 0]);
    assert.notEqual((await join(next, 'fay')).id.slice(0, 16), lost.id.slice(0, 16), 'a key is given twice');
    assert.equal(await next.metric('holdfast_ledger_surprises_total'), 0);
    await next.stop({ keep: true });
    await sound(again.url);
  });

  it('of one database is restored into the other, row by row', { skip: only('postgres', 'it has both') }, async () => {
    const { place, server, event, row } = await openWithEvents();
    const hold = await server.grant(event, `S-${row}-1`, { owner: 'ann', metadata: { a: 'b' } });
    await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, reference: 'order \u20ac' });
    await server.post(`/v1/events/${event.id}/block`, { seats: [`S-${row}-2`] });
    const planned = await server.createEvent({ ...planEvent(gridPlan()), sections: undefined });
    const wanted = await server.createEvent({ waitlist: {}, sections: [{ name: 'S', price: 1000, rows: 1, seats_per_row: 1 }] });
    const taken = await server.grant(wanted, 'S-A-1');
    const waits = async () => assertOk(await server.post('/v1/waitlist', { event: wanted.id, best_available: { quantity: 1 }, metadata: { a: 'b' } }), 201);
    const [left, accepted] = [await waits(), await waits()];
    await server.del(`/v1/waitlist/${left.id}`);
    await server.del(`/v1/holds/${taken.id}`);
    const { id, fence } = await server.read(`/v1/holds/${(await server.read(`/v1/waitlist/${accepted.id}`)).hold}`);
    assertOk(await server.post(`/v1/holds/${id}/confirm`, { fence }), 201);
    for (const { id: closed } of [event, planned, wanted]) await server.post(`/v1/events/${closed}/close`);
    await server.stop({ keep: true });
    const first = newFile(), second = newFile();
    await backup(place.url, first);
    const inFile = `sqlite:${newFile()}`;
    await restore(first, inFile, '--fence-margin', '0');
    await backup(inFile, second);
    const again = await newPlace();
    await restore(second, again.url, '--fence-margin', '0');
    const tables = ['events', 'sections', 'areas', 'categories', 'venues', 'holds', 'bookings', 'sold_seats', 'seats', 'waitlist', 'log', 'idempotency'];
    const dump = (url) => tables.map((table) => execFileSync('psql', [url, '-qAtX', '-c', `SELECT * FROM ${table} ORDER BY 1, 2`], { encoding: 'utf8' }));
    assert.deepEqual(dump(again.url), dump(place.url));
    assert.ok(dump(again.url).join('').includes('order \u20ac'));
  });

  itOnce('is not called good if the ledger violates an invariant, and leaves no file', async () => {
    const { place, server, event, row } = await openWithEvents();
    const hold = await server.grant(event, `S-${row}-1`);
    await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence });
    await server.stop({ keep: true });
    tamper(place.url, 'DELETE FROM sold_seats');
    const file = newFile();
    assert.match(await run(1, 'backup', '--ledger', place.url, file), /I1 is violated 1 times.*not kept/s);
    assert.deepEqual(fs.readdirSync(dir).filter((name) => name.startsWith(path.basename(file))), []);
  });

  itOnce('says what stands in its way', async () => {
    const { place, server } = await anySource();
    const file = newFile();
    await backup(place.url, file);
    const before_ = fs.readFileSync(file);
    assert.match(await run(73, 'backup', '--ledger', place.url, file), /exists; --force/);
    assert.deepEqual(fs.readFileSync(file), before_);
    await backup(place.url, file, '--force');
    assert.match(await run(73, 'backup', '--ledger', place.url, '/no/such/folder/b.db'), /No such file/);
    await run(69, 'backup', '--ledger', `sqlite:${path.join(dir, 'none.db')}`, newFile());
    for (const args of [[], ['a', 'b'], ['--ledger', 'sqlite:x'], ['--frobnicate', 'x'], ['--ledger', 'gopher://x', newFile()]]) await run(64, 'backup', ...args);
    if (onSqlite) assert.match(await run(64, 'backup', '--ledger', place.url, '--force', server.database), /the ledger itself/);
  });

  itOnce('needs room on the disk before it begins', async (t) => {
    const { place } = await anySource();
    const disk = await smallDisk();
    if (disk.kind !== 'tmpfs') {
      disk.close();
      t.skip('needs root');
      return;
    }
    disk.fill();
    const file = path.join(disk.dir, 'b.db');
    assert.match(await run(73, 'backup', '--ledger', place.url, file), /MB free, and \d+ MB are needed|No space left/);
    assert.deepEqual(fs.readdirSync(disk.dir).filter((name) => name.startsWith('b.db')), []);
    disk.free();
    await disk.close();
  });
});

describe('a restore', () => {
  it('refuses a ledger that has events, a server that runs, and a file that is no backup', async () => {
    const { place } = await anySource();
    const file = newFile();
    await backup(place.url, file);
    const other = await openWithEvents();
    assert.match(await run(1, 'restore', '--ledger', other.place.url, file), /has 1 events; --force/);
    assert.match(await run(69, 'restore', '--ledger', other.place.url, '--force', file), onSqlite ? /already running/ : /stop its servers/);
    assert.equal((await other.server.counts(other.event)).held, 0);
    await other.server.stop({ keep: true });
    const replaced = await restore(file, other.place.url, '--force');
    if (onSqlite) await sound(`sqlite:${replaced.replaced}`);
    else assert.equal(replaced.replaced, null);
    const again = await open(other.place);
    assert.equal((await again.read('/v1/events')).data.length, 1);
    assertProblem(await again.get(`/v1/events/${other.event.id}`), 404, 'no_such_event');
    await again.stop();

    const empty = await newPlace();
    fs.writeFileSync(path.join(dir, 'text'), 'not a database');
    assert.match(await run(66, 'restore', '--ledger', empty.url, path.join(dir, 'text')), /not a backup/);
    assert.match(await run(66, 'restore', '--ledger', empty.url, path.join(dir, 'absent')), /No such file/);
    tamper(`sqlite:${file}`, 'UPDATE event_clock SET seq = seq + 1 WHERE event = 1');
    assert.match(await run(1, 'restore', '--ledger', empty.url, file), /I11 is violated/);
    if (onSqlite) assert.deepEqual(fs.readdirSync(empty.dir).filter((name) => name !== 'holdfast.db.lock'), []);
    const fresh = await open(empty); // it made nothing of it
    assert.deepEqual((await fresh.read('/v1/events')).data, []);
    await fresh.stop();
  });

  itOnce('takes over rows, and nothing else that somebody has put into the backup', async () => {
    const { place, server, event, row } = await openWithEvents();
    const hold = await server.grant(event, `S-${row}-1`);
    const booking = assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
    await server.stop({ keep: true });
    const file = newFile();
    await backup(place.url, file);
    const good = fs.readFileSync(file);
    for (const sql of ['CREATE TRIGGER evil AFTER INSERT ON holds BEGIN DELETE FROM bookings; END', 'CREATE VIEW seen AS SELECT * FROM holds',
      'CREATE TABLE "events; DELETE FROM bookings; --" (a bigint)', 'DROP INDEX holds_due', 'CREATE UNIQUE INDEX once ON holds (event)']) tamper(`sqlite:${file}`, sql);
    await run(1, 'verify', '--ledger', `sqlite:${file}`);
    const again = await newPlace();
    const { code, stdout, stderr } = await holdfast(undefined, ['restore', '--ledger', again.url, file]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /no violation/);
    for (const what of ['trigger evil on holds', 'view seen', 'table events; DELETE FROM bookings; --', 'index once on holds']) {
      assert.ok(stderr.includes(`not Holdfast's, and that stays behind: ${what}\n`), stderr);
    }
    await sound(again.url);
    const next = await open(again);
    await next.post(`/v1/events/${event.id}/open`);
    await next.grant(event, [`S-${row}-2`]);
    assert.equal((await next.read(`/v1/bookings/${booking.id}`)).status, 'confirmed');
    await next.stop();

    const empty = await newPlace();
    for (const [sql, why] of [['ALTER TABLE holds ADD COLUMN extra', /its table holds is not as Holdfast made it/],
      ['DROP TABLE sold_seats; CREATE VIEW sold_seats AS SELECT seat, hold AS booking FROM seats', /its table sold_seats is missing/],
      ['UPDATE schema_version SET version = 1000', /newer than this program's/]]) {
      fs.writeFileSync(file, good);
      tamper(`sqlite:${file}`, sql);
      assert.match(await run(66, 'restore', '--ledger', empty.url, file), why);
    }
    fs.writeFileSync(file, good);
    const [{ rootpage }] = sqliteQuery(file, 'SELECT rootpage FROM sqlite_master WHERE name = \'log\'');
    fs.writeFileSync(file, Buffer.from(good).fill(0x5a, (rootpage - 1) * 2048, rootpage * 2048));
    assert.match(await run(66, 'restore', '--ledger', empty.url, file), /it is damaged: /);
  });

  it('raises fences by the time since the backup, or as it is told', { skip: only('sqlite', 'the file says it, wherever it comes from') }, async () => {
    const began = Date.now();
    const { place, server, event, row } = await openWithEvents();
    await server.grant(event, `S-${row}-1`);
    await server.stop({ keep: true });
    const file = newFile();
    await backup(place.url, file);
    const margin = async (...options) => (await restore(file, `sqlite:${newFile()}`, ...options)).fence_margin;
    const least = await margin(); // of ten seconds, unless the backup is older than that
    assert.ok(least >= 1_000_000 && least <= Math.max(1_000_000, 100 * (Date.now() - began)), `${least}`);
    assert.equal(await margin('--fence-margin', '7'), 7);
    const tenHours = 36_000_000;
    tamper(`sqlite:${file}`, `UPDATE log SET at = at - ${tenHours}, until = CASE WHEN until = 0 THEN 0 ELSE until - ${tenHours} END;
      UPDATE event_clock SET now = CASE WHEN now = 0 THEN 0 ELSE now - ${tenHours} END; UPDATE holds SET expires_at = expires_at - ${tenHours}`);
    const raised = await margin();
    assert.ok(raised >= tenHours * 100 && raised < (tenHours + 600_000) * 100, `${raised}`);
    tamper(`sqlite:${file}`, `UPDATE event_clock SET fence = (1 << 39) + (1 << 38) + (1 << 37) + (1 << 36) - 5`);
    assert.match(await run(64, 'restore', '--ledger', `sqlite:${newFile()}`, file), /smaller --fence-margin/);
  });

  it('replaces a file too damaged to be opened, and keeps it', { skip: only('sqlite', 'a file') }, async () => {
    const { place, server } = await openWithEvents();
    const file = newFile();
    await backup(place.url, file);
    await server.kill9(); // its log stays
    for (const name of [server.database, `${server.database}-wal`]) {
      const damaged = fs.openSync(name, 'r+');
      fs.writeSync(damaged, Buffer.alloc(4096, 0x5a), 0, 4096, 0);
      fs.closeSync(damaged);
    }
    assert.match(await run(1, 'restore', '--ledger', place.url, file), /--force/);
    const { replaced } = await restore(file, place.url, '--force');
    assert.equal(fs.readFileSync(replaced)[0], 0x5a);
    const names = [replaced];
    for (let n = 0; n < 3; n++) names.push((await restore(file, place.url, '--force')).replaced); // within a second
    assert.equal(new Set(names).size, 4);
    await sound(place.url);
    const again = await open(place);
    assert.equal((await again.read('/v1/events')).data.length, 1);
    await again.stop();
  });

  it('takes over a backup that an earlier version made', { skip: only('sqlite', 'a file') }, async () => {
    const sql = fileURLToPath(new URL('../fixtures/ledger_3_sqlite.sql', import.meta.url));
    const file = newFile();
    execFileSync('sqlite3', [file], { input: fs.readFileSync(sql, 'utf8') });
    const place = await newPlace();
    const { events } = await restore(file, place.url);
    assert.ok(events > 0);
    const server = await open(place);
    for (const { status } of (await server.read('/v1/events')).data) assert.equal(status, 'closed');
    await server.stop();
  });
});

describe('kill -9', () => {
  const ROUNDS = Number(process.env.HF_KILLS ?? 4);
  const isDue = (round, kills) => round < ROUNDS || (kills === 0 && round < 10 * ROUNDS); // a busy machine may be late each time

  // Kills the command at a moment of its work that differs from round to round.
  async function killed(args, begun, round) {
    const command = begin(undefined, args);
    while (!command.ended && !begun()) await sleep(1);
    const until_ = performance.now() + round * 18;
    while (!command.ended && performance.now() < until_) await sleep(1);
    command.child.kill('SIGKILL');
    return (await command.result).signal === 'SIGKILL';
  }

  itOnce('in the middle of a backup leaves no file of that name, and the next backup succeeds', async () => {
    const { place } = await anySource();
    let kills = 0;
    for (let round = 0; isDue(round, kills); round++) {
      const file = newFile();
      const partial = `${file}.partial`;
      kills += await killed(['backup', '--ledger', place.url, file], () => fs.existsSync(partial), round % ROUNDS);
      assert.ok(!(fs.existsSync(file) && fs.existsSync(partial)));
      if (fs.existsSync(file)) await sound(`sqlite:${file}`);
      await backup(place.url, file, '--force');
      assert.ok(!fs.existsSync(partial));
    }
    assert.ok(kills > 0, 'no command was killed');
  });

  it('in the middle of a restore leaves the ledger that was there, or the new one', async () => {
    const { place } = await anySource();
    const file = newFile();
    await backup(place.url, file);
    let kills = 0;
    for (let round = 0; isDue(round, kills); round++) {
      const target = await openWithEvents({ name: 'Old' });
      await target.server.grant(target.event, 'S-A-1');
      await target.server.kill9();
      const partial = `${target.server.database}.partial`;
      const begun = () => !onSqlite || fs.existsSync(partial);
      kills += await killed(['restore', '--ledger', target.place.url, '--force', file], begun, (round % ROUNDS) * (onSqlite ? 1 : 3));
      await sound(target.place.url);
      const server = await open(target.place);
      const [{ name, status, held }] = (await server.read('/v1/events')).data;
      assert.deepEqual([status, held], name === 'Old' ? ['open', 1] : ['closed', 0]);
      await server.stop({ keep: true });
      await restore(file, target.place.url, '--force');
      assert.ok(!fs.existsSync(partial));
      await sound(target.place.url);
    }
    assert.ok(kills > 0, 'no command was killed');
  });
});
