// Ledgers that an earlier version made (tests/fixtures, see tests/support/record_ledger.mjs) are taken over: this
// version answers everything about them as the earlier one did, goes on with them, and finds them sound.  Times of the
// fixture are moved to the present before it is opened, so that holds that were live are live.
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
import { assertOk, assertProblem } from '../support/expect.mjs';
import { assertVerified, checkLedger } from '../support/ledger.mjs';
import { backend, HAS_CRASH_POINTS, reap, runServer, start, tempDir, until } from '../support/server.mjs';
import { CRASH_EXIT } from '../support/till.mjs';

const fixtures = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../fixtures');
const ALL = [3, 4, 5, 6, 7, 8, 10, 11, 12];
// Version 3 takes every step to the present.  What each version stored is alike on both databases, so on PostgreSQL only
// `make soak` takes those in between.
const FEW = [3, 8, 12];
const VERSIONS = backend === 'sqlite' || process.env.HF_SOAK === '1' ? ALL : FEW;
// What becomes of a ledger once it is of the present version is alike, whatever it was, so those in between are restarted,
// and audited, once instead of twice.
const inFull = (version) => process.env.HF_SOAK === '1' || FEW.includes(version);
const NEVER = '9999-12-31T23:59:59.999Z';

const recording = (version) => JSON.parse(fs.readFileSync(path.join(fixtures, `ledger_${version}_${backend}.json`), 'utf8'));
const moved = (iso, by) => new Date(Date.parse(iso) + by).toISOString();
const ISO = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

// The same JSON with every time moved, and without what changes by itself.
const move = (json, by) => JSON.parse(JSON.stringify(json), (key, value) => {
  if (key === 'expires_in_ms' || key === 'request_id') return undefined;
  return typeof value === 'string' && ISO.test(value) ? moved(value, by) : value;
});

// The answer without fields that there were not yet.
const fieldsOf = (is, was) => {
  if (Array.isArray(is) && Array.isArray(was)) return is.map((one, i) => fieldsOf(one, was[i]));
  if (is === null || was === null || typeof is !== 'object' || typeof was !== 'object') return is;
  return Object.fromEntries(Object.entries(is).filter(([key]) => key in was).map(([key, value]) => [key, fieldsOf(value, was[key])]));
};

function script(place, text) {
  if (backend === 'sqlite') execFileSync('sh', ['-c', 'umask 077; exec sqlite3 "$0"', place.file], { input: text, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });
  else execFileSync('psql', [place.ledger, '-qAtX', '-v', 'ON_ERROR_STOP=1', '-f', '-'], { input: text, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });
}

const COLUMNS = (version) => ({ events: ['created_at', ...(version < 10 ? [] : ['starts_at']), ...(version < 11 ? [] : ['sales_close_at'])], event_clock: ['now'], holds: ['created_at', 'expires_at', 'max_expires_at'],
  bookings: ['created_at', ...(version < 5 ? [] : ['cancelled_at'])], idempotency: ['created_at'],
  ...(version < 4 ? { seats: ['expires_at'], audit: ['at', 'until'] } : { log: ['at', 'until'] }) });

// Resolves to { dir, ledger, by }: the fixture in a fresh directory or database, its times moved by `by` ms.
async function restore(version) {
  const dir = tempDir();
  const place = { dir, file: path.join(dir, 'holdfast.db'), ...await placeOf(dir) };
  const by = Date.now() - Date.parse(recording(version).recorded_at);
  script(place, fs.readFileSync(path.join(fixtures, `ledger_${version}_${backend}.sql`), 'utf8'));
  const tables = backend === 'sqlite' ? (table) => table : (table) => `public.${table}`;
  script(place, Object.entries(COLUMNS(version)).map(([table, columns]) => `UPDATE ${tables(table)} SET ${columns.map((column) =>
    `${column} = CASE WHEN ${column} = 0 THEN 0 ELSE ${column} + ${by} END`).join(', ')};`).join('\n'));
  return { ...place, by };
}

const ledgerOf = (place) => place.ledger ?? place.dir;

for (const version of VERSIONS) describe(`a ledger of schema version ${version}`, () => {
  const recorded = recording(version);
  let place, server;
  before(async () => { place = await restore(version); });
  after(reap);

  // All claims are about one ledger, which the server that crashes in the first one has not changed.
  const running = async () => (server ??= await start({ dir: place.dir }));

  async function assertAnswers() {
    const { by } = place;
    for (const [asked, answer] of Object.entries(recorded.answers)) {
      const target = asked.replace(/(\?|&)at=([^&]+)/, (_, mark, at) => `${mark}at=${moved(at, by)}`);
      const is = move((await server.get(target)).json, 0), was = move(answer, by);
      if (target.startsWith('/v1/events?')) for (const event of was.data) { delete event.sections; delete event.areas; } // lists had layouts
      if (/\/seats\/[^?]+$/.test(target)) is.at = was.at; // the present moment
      if (is.history && version < 5) is.history = is.history.filter(({ cause }) => cause !== 'renew'); // it had no renewals
      if (is.data && version < 8 && /^\/v1\/audit\?.*&seat=/.test(target)) is.data = is.data.filter(({ cause }) => cause !== 'renew'); // nor had this
      // Sales closed at the start of none of these events, and still do not.
      for (const event of [is, ...(is.data ?? [])].filter((one) => version < 11 && one.object === 'event' && one.starts_at)) {
        assert.equal(event.sales_close_at, NEVER, target);
        event.sales_close_at = null;
      }
      assert.deepEqual(fieldsOf(is, was), was, target);
    }
  }

  it('is taken over whole or not at all', { skip: HAS_CRASH_POINTS ? false : 'the product has no crash points' }, async () => {
    const asked = () => (backend === 'sqlite' ? ['sqlite3', place.file] : ['psql', place.ledger, '-qAtX', '-c']);
    const number = (text) => Number(execFileSync(asked()[0], [...asked().slice(1), text], { encoding: 'utf8' }));
    // The server ends when the tables of the next version are made, and not yet committed: every version is one transaction.
    const env = { HOLDFAST_CRASH_AT: 'migration_before_commit', ...(place.ledger ? { HOLDFAST_LEDGER: place.ledger } : {}) };
    const ended = await runServer(['--listen', '127.0.0.1:0', '--data', place.dir, '--payments', 'off'], { env });
    assert.equal(ended.code, CRASH_EXIT, ended.stderr);
    assert.equal(number('SELECT max(version) FROM schema_version'), version);
    assert.ok(number(`SELECT count(*) FROM ${version < 4 ? 'audit' : 'log'}`) > 0);
    assert.equal(number('SELECT count(*) FROM seats WHERE status = 1') > 0, version < 4);
    await running(); // it takes over what is there, whole, as the next claim finds
  });

  it('answers as before, at once and after restarts', async () => {
    await running();
    await assertAnswers();
    assertVerified(ledgerOf(place));
    checkLedger(ledgerOf(place));
    if (inFull(version)) await server.restart();
    await server.kill9(); // what a clean end would have left undone shows, too
    await server.launch();
    await assertAnswers();
    const { key, body, answer } = recorded.keyed;
    const again = await server.post('/v1/holds', body, { 'Idempotency-Key': key });
    assert.deepEqual([again.status, again.json], [201, answer]);
  });

  if (version >= 11) it('gets ticket types, and what was held before is of the first', async () => {
    await running();
    const [, , event] = recorded.events;
    const types = [{ id: 'full', name: 'Full price', prices: {} }, { id: 'child', name: 'Child', prices: { Stalls: 100 } }];
    assert.deepEqual(assertOk(await server.patch(`/v1/events/${event}`, { types })).types, types);
    for (const [target, was] of Object.entries(recorded.answers).filter(([, { object, event: of }]) => ['hold', 'booking'].includes(object) && of === event)) {
      const { places, ...is } = await server.read(target);
      assert.equal(is.amount, was.amount, target);
      assert.equal(places.length, was.seats.length + Object.values(was.areas).reduce((sum, n) => sum + n, 0));
      assert.ok(places.every(({ type }) => type === 'full'), target);
      assert.equal(places.reduce((sum, { amount }) => sum + amount, 0), was.amount, target);
    }
    const hold = await server.take(event, { seats: ['Box-L-4', 'Stalls-A-8'], types: { 'Stalls-A-8': 'child' } });
    assert.equal(hold.amount, 9000 + 100);
    const { data } = await server.read(`/v1/audit?event=${event}&limit=1000`);
    assert.deepEqual(data.filter(({ type }) => type === 'child').map(({ seat }) => seat), ['Stalls-A-8']);
  });

  if (version >= 10) it('sells on an event that has begun, until it is to close at its start', async () => {
    await running();
    const { id } = (await server.read('/v1/events?limit=100')).data.find(({ starts_at: starts }) => starts);
    await server.grant({ id }, 'Box-R-4');
    assert.equal(assertOk(await server.patch(`/v1/events/${id}`, { sales_close_at: null })).sales_close_at, null);
    assertProblem(await server.hold({ id }, 'Box-R-3'), 409, 'event_closed');
  });

  it('has waiting lists where an event gets one', async () => {
    await running();
    const [event] = recorded.events;
    assert.equal((await server.read(`/v1/events/${event}`)).waitlist, null);
    const { id } = await server.createEvent({ sections: [{ name: 'S', price: 1000, rows: 1, seats_per_row: 1 }] });
    const wish = { event: id, best_available: { quantity: 1 } };
    const held = await server.grant({ id }, 'S-A-1');
    assertProblem(await server.post('/v1/waitlist', wish), 409, 'waitlist_off');
    assert.equal(assertOk(await server.patch(`/v1/events/${id}`, { waitlist: {} })).waitlist.per_owner, 1);
    const entry = assertOk(await server.post('/v1/waitlist', wish), 201);
    assert.equal((await server.del(`/v1/holds/${held.id}`)).status, 204);
    const { hold } = await server.read(`/v1/waitlist/${entry.id}`);
    assert.deepEqual((await server.read(`/v1/holds/${hold}`)).seats, ['S-A-1']);
    assert.equal((await server.del(`/v1/holds/${hold}`)).status, 204);
  });

  it('is gone on with', async () => {
    await running();
    const [event] = recorded.events;
    const live = recorded.holds.slice(-3);
    const [, freed, lasting] = live;
    const { fence } = await server.read(`/v1/holds/${lasting}`);
    // A hold that has no prices yet: its places cost what they cost when they are changed.
    const changed = assertOk(await server.request('PATCH', `/v1/holds/${freed}`, {
      fence: (await server.read(`/v1/holds/${freed}`)).fence, remove: { areas: { Floor: 1 } } }));
    assert.equal(changed.amount, 3 * 4500 + 4 * 1500);
    assert.equal((await server.del(`/v1/holds/${freed}`)).status, 204);
    assertOk(await server.post(`/v1/holds/${lasting}/renew`, { ttl_ms: 700_000 }));
    assertOk(await server.post(`/v1/holds/${lasting}/confirm`, { fence }), 201);
    assertProblem(await server.hold(event, 'Box-L-1'), 409, 'seat_taken');
    assertProblem(await server.hold(event, 'Stalls-B-1'), 409, 'seat_taken');
    assertProblem(await server.hold(event, 'Stalls-A-1'), 409, 'seat_taken');
    const hold = await server.grant(event, ['Stalls-A-3', 'Stalls-A-4', 'Stalls-C-8']);
    assertOk(await server.post(`/v1/events/${event}/unblock`, { seats: ['Stalls-B-1'] }));
    assert.equal(assertOk(await server.post(`/v1/bookings/${recorded.bookings[0]}/cancel`, {})).status, 'cancelled');
    await server.grant(event, ['Stalls-A-1']);
    assertOk(await server.post(`/v1/events/${event}/block`, { seats: ['Stalls-A-2'], areas: { Floor: 2 }, channel: 'house' }));
    await server.take({ id: event }, { seats: ['Stalls-A-2'], areas: { Floor: 1 }, channel: 'house' });
    const { history } = await server.read(`/v1/events/${event}/seats/Stalls-A-3`);
    assert.deepEqual(history.map(({ cause }) => cause), ['hold', 'release', 'renew', 'hold', 'expire', 'hold', 'evict', 'hold', 'release', 'hold']);
    const whole = (await server.read(`/v1/audit?event=${event}&limit=1000`)).data;
    const ofEvent = new Set(whole.map((row) => row.hold));
    const had = recorded.answers[`/v1/audit?event=${event}&limit=1000`].data.map(({ actor }) => actor ?? null); // null: from before actors
    assert.deepEqual(whole.map(({ actor }) => actor), whole.map((_, i) => (i < had.length ? had[i] : 'open')));
    const ofSeat = (await server.read(`/v1/audit?event=${event}&seat=Stalls-A-3`)).data;
    assert.deepEqual(ofSeat.map(({ cause }) => cause).reverse(), history.map(({ cause }) => cause));
    assert.deepEqual(ofSeat.filter(({ cause }) => cause !== 'renew').map(({ seq }) => seq), whole.filter(({ seat }) => seat === 'Stalls-A-3').map(({ seq }) => seq));
    for (const id of [...recorded.holds, hold.id].filter((one) => ofEvent.has(one))) {
      assert.deepEqual((await server.read(`/v1/audit?hold=${id}`)).data, whole.filter((row) => row.hold === id));
    }
    await assertFoldIsState(server, await server.read(`/v1/events/${event}`));
    if (inFull(version)) {
      await server.restart();
      await assertFoldIsState(server, await server.read(`/v1/events/${event}`));
      assertVerified(ledgerOf(place));
      checkLedger(ledgerOf(place));
    }
    // Finished holds leave with their rows, which are entries of one row each if schema version 3 wrote them.
    const listed = async (id) => (await server.read(`/v1/holds?event=${id}&limit=100`)).data;
    const isFinished = (one) => ['released', 'expired'].includes(one.status) && !one.booking;
    const finished = (await listed(event)).filter(isFinished).length;
    assert.ok(finished > 3, `${finished}`);
    await server.stop({ keep: true });
    server.args = [...server.args, '--keep-holds', '1ms'];
    await server.launch();
    await until('they are gone', async () => !(await listed(event)).some(isFinished));
    await assertFoldIsState(server, await server.read(`/v1/events/${event}`));
    assertVerified(ledgerOf(place));
    checkLedger(ledgerOf(place));
    await server.finish();
  });
});
