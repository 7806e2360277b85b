// The server ends without cleanup at every point that src/base/crash.h lists, in the middle of a busy evening at the
// shop, and is started again: every booking is decided within 30 s of its hold's end, and the books of the ledger and
// of the payment provider agree to the cent (I9, I10).  On SQLite, and on two servers that share PostgreSQL and Redis,
// where the dead one stays down and the other takes its jobs over.
//
// An evening leads through several points, one after the other: a server that is started again ends at the next.  Where the dead
// ones stay down these are two, since each leaves leases behind, for which buyers wait.
//
// HF_ONLY takes the points whose names contain it.  HF_CRASH_ALL=1 stops at each point also the second, third and
// fifth time that it is reached, and takes every point on both databases, each in an evening of its own.
// backends: own
// time limit: 300 s

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { differences } from '../support/books.mjs';
import { assertOk } from '../support/expect.mjs';
import { assertVerified } from '../support/ledger.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { startRedis } from '../support/redis.mjs';
import { HAS_CRASH_POINTS, HOLDFASTD, newKey, pool, reap, Server, until } from '../support/server.mjs';
import { CARDS, CRASH_EXIT, openTill } from '../support/till.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const program = HAS_CRASH_POINTS ? HOLDFASTD : path.join(root, 'build/asan/holdfastd');
const all = process.env.HF_CRASH_ALL === '1';
const atATime = 6;

const header = fs.readFileSync(path.join(root, 'src/base/crash.h'), 'utf8');
const points = [...header.matchAll(/^ +X\((\w+), "/gm)].map(([, name]) => name).filter((name) => !name.startsWith('migration_'));
// Where another server has to take over what the dead one had leased, or had left without a lease.
const forTwo = ['booking_after_commit', 'fact_before_commit', 'expiry_after_commit', 'create_answered', 'refund_answered', 'jobs_taken'];

const needs = { // such points have evenings of their own
  capture_answered: { capture: 'manual' },
  poll_answered: { faults: { webhooks: false } },
};
const EVENINGS_MAX = 10; // until every point is reached

// ---- an evening at the shop ----

const lasting = { hold_ttl_ms: 600_000 }; // longer than the leases for which a buyer may have to wait, one after the other
const brief = { hold_ttl_ms: 2000 };

async function pays(till, event, seat, first) {
  const booking = await till.book(await till.hold(event, seat));
  if (first) assert.equal((await till.pay(booking, first)).status, 402);
  assert.equal((await till.pay(booking, CARDS.good)).status, 200);
  const decided = await till.decided(booking);
  assert.equal(decided.status, 'confirmed', JSON.stringify(decided));
  return booking;
}

async function givesUp(till, event, seat) {
  const hold = await till.hold(event, seat);
  const booking = await till.book(hold);
  assert.equal((await till.pay(booking, CARDS.declined)).status, 402);
  assert.equal((await till.ask('DELETE', `/v1/holds/${hold.id}`)).status, 204);
  assert.equal((await till.decided(booking)).status, 'failed');
  return booking;
}

async function isRefunded(till, event, seat) {
  const booking = await pays(till, event, seat);
  const answer = await till.post(`/v1/bookings/${booking.id}/refund`, { amount: 500 });
  assert.equal(answer.status, 200, answer.text);
  return booking;
}

async function isCancelled(till, event, seat) {
  const booking = await pays(till, event, seat);
  const answer = await till.post(`/v1/bookings/${booking.id}/cancel`, { reason: 'illness' });
  assert.equal(answer.status, 200, answer.text);
  return booking;
}

// Tries again if the hold ended while no server was there to book it.
async function booksBriefly(till, event, seat) {
  for (let tries = 10; ; tries--) {
    const hold = await till.hold(event, seat);
    const answer = await till.post('/v1/bookings', { hold: hold.id });
    if (answer.status === 201) {
      till.noteEnd(answer.json);
      return answer.json;
    }
    assert.ok(['hold_expired', 'renewal_cap'].includes(answer.json.code) && tries > 0, answer.text);
    await untilEnded(till, hold.id);
  }
}

const untilEnded = (till, hold) => until('the hold has ended', async () => (await till.get(`/v1/holds/${hold}`)).json.status !== 'active', 60_000);

async function forgets(till, event, seat) { return till.decided(await booksBriefly(till, event, seat)); }

// Pays once the hold has expired and another buyer has the seat; the provider fails to cancel in time.
async function paysLate(till, event, seat) {
  const booking = await booksBriefly(till, event, seat);
  const payable = await till.when(booking, 'it can be paid', ({ status, payment }) => status !== 'pending' || payment.status !== 'creating');
  await untilEnded(till, booking.hold);
  await till.post('/v1/holds', { event: event.id, seats: [seat] });
  if (payable.payment.client_secret) await till.pay(payable, CARDS.good); // 400 if it was cancelled first
  return till.decided(booking);
}

async function evening(till) {
  await till.sandbox.faults({ fail_next: { route: 'cancel', mode: '500', times: 3 } });
  const [house, club] = await Promise.all([till.event(lasting), till.event(brief)]);
  return Promise.all([
    pays(till, house, 'S-A-1'), pays(till, house, 'S-A-2', CARDS.declined), givesUp(till, house, 'S-A-3'), isRefunded(till, house, 'S-A-4'),
    isCancelled(till, house, 'S-A-5'), forgets(till, club, 'S-A-1'), paysLate(till, club, 'S-A-2'),
  ]);
}

// ---- after it ----

// The shop has heard of each end at least once.
async function assertNotices(till, bookings) {
  const told = [...till.endpoint.notices.values()];
  for (const booking of bookings) {
    const { status } = await till.booking(booking);
    const types = told.filter((notice) => notice.booking === booking.id).map(({ type }) => type);
    assert.ok(types.includes(`booking.${status}`), `${status}, but the shop was told ${types}`);
    assert.equal(types.filter((type) => type === `booking.${status}`).length, 1, `told under several ids: ${types}`);
  }
}

async function run(group, options) {
  const till = await openTill({ program, crashAt: group, ...needs[group[0].replace(/:.*/, '')], ...options });
  try {
    const isCounted = group[0].includes(':'); // not every place is reached a fifth time
    const bookings = [];
    for (let n = isCounted ? 1 : EVENINGS_MAX; n > 0 && till.reached.size < group.length; n--) bookings.push(...await evening(till));
    await till.settled();
    if (!isCounted) assert.deepEqual(group.filter((point) => !till.reached.has(point)), [], 'no scenario reaches it');
    await assertNotices(till, bookings);
    await till.verify();
  } finally {
    await till.close();
  }
}

// Divides points among runs, at most `size` to each.
function grouped(names, size) {
  const own = names.filter((name) => all || needs[name]), rest = names.filter((name) => !own.includes(name));
  const n = Math.ceil(rest.length / size);
  return [...own.map((name) => [name]), ...Array.from({ length: n }, (_, i) => rest.filter((__, k) => k % n === i))];
}

// Begins all runs at once, some at a time.  Returns the run of each point, for which its test waits.
function begin(groups, limit, work) {
  const runs = new Map();
  const started = groups.map((group) => {
    let go;
    const done = new Promise((resolve) => { go = () => resolve(work(group)); });
    done.catch(() => {});
    for (const point of group) runs.set(point, done);
    return { done, go };
  });
  pool(started, limit, async ({ done, go }) => { go(); await done.catch(() => {}); });
  return runs;
}

describe('the list of crash points', () => {
  it('is read from the header, and the build stops at them', () => {
    assert.ok(points.length >= 18, `${points}`);
    for (const name of [...forTwo, ...Object.keys(needs)]) assert.ok(points.includes(name), name);
    assert.ok(fs.existsSync(program), `${program} is missing: make FLAVOUR=asan programs`);
  });
});

const times = all ? ['', ':2', ':3', ':5'] : [''];
const wanted = (name) => name.includes(process.env.HF_ONLY ?? '');
const single = points.flatMap((point) => times.map((n) => point + n)).filter(wanted);
const shared = (all ? points : forTwo).filter(wanted);

describe('a server that ends without cleanup', () => {
  let postgres;
  let redis;
  let alone;
  let together;
  before(async () => {
    alone = begin(grouped(single, 6), atATime, (group) => run(group, {}));
    [postgres, redis] = await Promise.all([startPostgres(), startRedis('--databases', '64')]);
    let gates = 0;
    together = begin(grouped(shared, 2), 4, (group) => run(group,
      { n: 2, ledger: postgres.url(postgres.createDatabase()), gate: `${redis.url}/${gates++}`, staysDown: true }));
  });
  after(async () => { await redis?.stop(); await postgres?.stop(); await reap(); });

  for (const point of single) it(`at ${point}: the books agree once it is back`, () => alone.get(point));
  for (const point of shared) it(`at ${point}: the books agree though it stays down, beside another server`, () => together.get(point));
});

describe('a server whose sandbox ends with it', () => {
  let server;
  before(async () => {
    server = new Server({ wrap: ([, ...argv]) => [program, ...argv], env: { HOLDFAST_CRASH_AT: 'create_answered' } });
    await server.launch();
  });
  after(async () => { await server?.stop(); await reap(); });

  it('has the one intent that it made before the crash, and takes the money once', async () => {
    const event = await server.createEvent(lasting);
    const hold = await server.grant(event, 'S-A-1');
    const body = { hold: hold.id };
    const headers = { 'Idempotency-Key': newKey() };
    await server.post('/v1/bookings', body, headers).catch(() => {});
    assert.equal((await server.run.done).code, CRASH_EXIT);
    server.env.HOLDFAST_CRASH_AT = undefined;
    await server.launch();
    const { id } = assertOk(await server.post('/v1/bookings', body, headers), 201);
    const { payment } = await until('it can be paid', async () => {
      const booking = await server.read(`/v1/bookings/${id}`);
      return booking.payment.client_secret && booking;
    });
    const card = new URLSearchParams({ key: payment.publishable_key, client_secret: payment.client_secret, payment_method: 'pm_card_visa' });
    const confirm = await fetch(`${payment.api}/v1/payment_intents/${payment.intent}/confirm`, { method: 'POST', body: card });
    assert.equal(confirm.status, 200, await confirm.text());
    await until('it is confirmed', async () => (await server.read(`/v1/bookings/${id}`)).status === 'confirmed');
    const books = await (await fetch(`${payment.api}/sandbox/books`)).json();
    assert.deepEqual([books.payments.length, books.currencies.usd.captured], [1, hold.amount]);
    assertVerified(server.ledger);
  });
});

describe('the comparison of the books', () => {
  let till;
  before(async () => { till = await openTill(); });
  after(async () => { await till?.close(); });

  it('finds every kind of difference', async () => {
    const event = await till.event(lasting);
    await Promise.all([pays(till, event, 'S-A-1'), isRefunded(till, event, 'S-A-2'), isCancelled(till, event, 'S-A-3'), givesUp(till, event, 'S-A-4')]);
    await till.settled();
    const read = await till.books();
    const changes = {
      'received one cent more': ({ ledger }) => { ledger.payments.find(({ received }) => received > 0).received++; },
      'a confirmed booking that is lost': ({ ledger }) => { ledger.bookings.find(({ status }) => status === 2).status = 3; },
      'a confirmed booking of another amount': ({ ledger }) => { ledger.bookings.find(({ status }) => status === 2).amount--; },
      'a booking that is pending': ({ ledger }) => { ledger.bookings.find(({ status }) => status === 3).status = 1; },
      'a refund that is owed again': ({ ledger }) => { ledger.refunds[0].status = 1; },
      'a refund that nobody made': ({ ledger }) => { ledger.refunds.push({ ...ledger.refunds[0] }); },
      'a refund that the ledger has lost': ({ ledger }) => { ledger.refunds.pop(); },
      'a job that is owed': ({ ledger }) => { ledger.jobs.push({ payment: ledger.payments[0].payment, kind: 2 }); },
      'a notification that is owed': ({ ledger }) => { ledger.jobs.push({ payment: 0, kind: 6 }); },
      'an intent that the ledger does not know': ({ books }) => { books.payments.push({ ...books.payments[0], intent: 'pi_other', holdfast_payment: null }); },
      'an intent that the provider does not know': ({ books }) => { books.payments.pop(); },
      'a second intent of a payment': ({ books }) => { books.payments[1].holdfast_payment = books.payments[0].holdfast_payment; },
      'an intent that is open': ({ books }) => { books.payments[0].status = 'requires_payment_method'; },
      'money that was captured twice': ({ books }) => { books.payments.find(({ captured }) => captured > 0).captured *= 2; },
      'sums that differ by one cent': ({ books }) => { books.currencies.usd.refunded++; },
      'an intent that was created after its hold\'s end': ({ ledger, created }) => {
        const row = ledger.bookings[0];
        row.hold = 2;
        created.set(ledger.payments.find(({ payment }) => payment === row.payment).intent, Math.ceil(row.expires_at / 1000) + 10);
      },
    };
    assert.deepEqual(differences(read), []);
    for (const [what, change] of Object.entries(changes)) {
      const copy = structuredClone(read);
      change(copy);
      assert.notDeepEqual(differences(copy), [], what);
    }
  });

  it('does not mind a refund that failed after a later one and is due in an hour, but one that is due', async () => {
    const event = await till.event(lasting);
    const { sandbox } = till;
    await sandbox.faults({ later_ms: 15_000 }); // until the dispute, after which the provider refunds nothing
    const booking = await till.book(await till.hold(event, 'S-A-10'));
    assert.equal((await till.pay(booking, CARDS.disputed)).status, 200);
    assert.equal((await till.decided(booking)).status, 'confirmed');
    await sandbox.faults({ fail_next: { route: 'refund', mode: '500' } });
    assertOk(await till.post(`/v1/bookings/${booking.id}/refund`, { amount: 1000 }));
    await until('it was tried', async () => (await till.books()).ledger.jobs.some(({ kind, attempts }) => kind === 1 && attempts > 0));
    assertOk(await till.post(`/v1/bookings/${booking.id}/cancel`));
    await till.when(booking, 'the rest is back', ({ payment }) => payment.amount_refunded === 5500);
    await sandbox.faults({ fail_next: { route: 'refund', mode: 'reset', times: 1000 } });
    await till.when(booking, 'it is disputed', ({ payment }) => payment.disputed);
    await sandbox.faults({ fail_next: null, later_ms: 500 });
    await till.settled();
    const read = await till.books();
    const { payment } = read.ledger.payments.find(({ intent }) => intent === booking.payment.intent);
    const refunds = read.ledger.refunds.filter((row) => row.payment === payment).map(({ status, amount }) => `${status} ${amount}`);
    assert.deepEqual(refunds.sort(), ['1 1000', '3 5500', '4 1000']); // owed, succeeded, failed
    const job = read.ledger.jobs.find((row) => row.payment === payment);
    assert.ok(job.due_at > Date.now() + 3_000_000, JSON.stringify(job));
    job.due_at = Date.now();
    assert.match(differences(read).join('\n'), /a job of kind 1 is owed/);
  });

  it('finds a refund that somebody made at the provider while the server did not look', async () => {
    const event = await till.event(lasting);
    const booking = await pays(till, event, 'S-A-1');
    await till.settled();
    await till.sandbox.faults({ webhooks: false });
    await till.sandbox.client({ account: 'shop' }).refunds.create({ payment_intent: booking.payment.intent, amount: 100 });
    assert.match(differences(await till.books()).join('\n'), /refunded 100, the ledger has returned 0/);
  });
});
