// A sell-out with a waiting list while servers are killed, on SQLite, and on two servers that share PostgreSQL and a
// Redis that is flushed.  Buyers never pay, give places back, cancel and are refunded; others try all the time to get
// what comes back before those who wait.  HF_SALE is the number of places (default 100), for which 2.5 times as many
// entries wait.
//
// Afterwards every place that came back has gone at once to the first entry that it fitted (I17), by `holdfast verify`
// and by the log as clients read it (wait_log.mjs).  The books agree to the cent, every accepted entry has a booking,
// and the shop was told of every offer, lapse and sale, once and in order.
//
// HF_SEED repeats what the buyers want, and how far the sale is when a server is killed.
// backends: own
// time limit: 240 s

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readAudit } from '../support/audit.mjs';
import { assertOk } from '../support/expect.mjs';
import { checkLedger } from '../support/ledger.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { seed, seededRandom } from '../support/random.mjs';
import { startRedis } from '../support/redis.mjs';
import { pool, reap, sleep, standStill, until } from '../support/server.mjs';
import { CARDS, openTill } from '../support/till.mjs';
import { judgeWaits, keyOf } from '../support/wait_log.mjs';

const places = Number(process.env.HF_SALE || 100);
const isLong = places >= 1000;
const kills = isLong ? 12 : 2;
const ENTRIES = Math.ceil(places * 2.5);
const ABANDONED = Math.ceil(places / 20); // offers that lapse before every buyer pays
const HOLD_MS = isLong ? 8000 : 3000;
const OFFER_MS = isLong ? 5000 : 2000;
const PER_ROW = 12;
const atATime = 24;
const rivals = 3;
const SNATCHERS = 4;
const PATIENCE_MS = 4000; // how long a buyer waits for the payment form, or for the outcome
const STILL_MS = 90_000; // a sale that stands still for so long does not go on

// What a race, or the end of a hold, makes of a request.
const refusals = new Set(['seat_taken', 'sold_out', 'available', 'hold_expired', 'hold_released', 'renewal_cap', 'booking_exists', 'hold_confirmed', 'stale_fence',
  'not_refundable', 'refund_pending', 'not_waiting']);

// Returns the JSON of a success, or null for one of the refusals.
function expected(answer) {
  if (answer.status >= 400) assert.ok(refusals.has(answer.json?.code), `${answer.status} ${answer.text}`);
  return answer.status < 300 ? answer.json ?? true : null;
}

class Sale {
  constructor(random) {
    this.random = random;
    this.entries = []; // the answers to those who joined
    this.wishes = new Map(); // number of an entry -> wish
    this.confirmed = new Map(); // id of a booking -> the booking as a buyer saw it confirmed
    this.cancelled = new Set(); // ids of bookings
    this.busy = 0; // buyers who answer an offer
    this.turns = {}; // how often something could have happened
    this.abandoned = 0; // offers that lapse
    this.isEnding = false; // from now on everybody pays
    this.failed = null; // what went wrong first
  }

  async open(options) {
    this.till = await openTill({ ...options, onNotice: (notice) => this.#tell(notice) });
    const rows = Math.max(1, Math.round(places * 0.45 / PER_ROW));
    const sections = ['Stalls', 'Balcony'].map((name) => ({ name, price: 2000 + 500 * name.length, rows, seats_per_row: PER_ROW }));
    this.event = await this.till.event({ sections, areas: [{ name: 'Floor', price: 1500, capacity: Math.round(places * 0.1) }],
      hold_ttl_ms: HOLD_MS, waitlist: { offer_ttl_ms: OFFER_MS } });
  }

  // The shop passes an offer on to its buyer, who may not have read the answer to joining yet.
  async #tell({ type, booking: entry }) {
    if (type !== 'waitlist.offered') return;
    this.busy++;
    try {
      await this.answer(entry);
    } catch (error) {
      this.failed ??= error;
    }
    this.busy--;
  }

  // Returns whether it is time for something that happens once in `n` times.
  every(n, what) {
    this.turns[what] = (this.turns[what] ?? 0) + 1;
    return this.turns[what] % n === 0;
  }

  // ---- what a buyer does ----

  drawWish(n) {
    const { below, oneOf } = seededRandom(Math.imul(seed + 1, 2654435761) ^ Math.imul(n + 1, 40503));
    if (below(100) < 15) return { quantity: 1 + below(2), area: 'Floor' };
    return { quantity: oneOf([1, 1, 1, 2, 2, 3]), section: oneOf([undefined, undefined, 'Stalls', 'Balcony']) };
  }

  // A buyer gets what they want, or waits for it.
  async arrive(n) {
    const wish = this.drawWish(n);
    const { quantity, section, area } = wish;
    const asked = { event: this.event.id, owner: `buyer-${n}`, ...(area ? { areas: { [area]: quantity } } : { best_available: { quantity, section } }) };
    for (;;) {
      const hold = expected(await this.till.post('/v1/holds', asked));
      if (hold) return this.decide(hold, this.every(4, 'holds that nobody pays'));
      const entry = expected(await this.till.post('/v1/waitlist', asked));
      if (entry) return this.join(entry, wish);
    }
  }

  async join(entry, wish) {
    this.entries.push(entry);
    this.wishes.set(entry.number, wish);
    if (this.every(30, 'entries that leave')) assert.equal((await this.till.ask('DELETE', `/v1/waitlist/${entry.id}`)).status, 204);
  }

  // The buyer decides about an offer, unless the notification came too late.
  async answer(entry) {
    const { status, hold: id } = await until('the server that is asked shows the offer', async () => {
      const now = assertOk(await this.till.get(`/v1/waitlist/${entry}`));
      return now.status !== 'waiting' && now;
    });
    if (status === 'lapsed') this.abandoned++;
    if (status !== 'offered') return;
    const hold = assertOk(await this.till.get(`/v1/holds/${id}`));
    if (this.every(11, 'offers that are declined')) await this.snatch(hold, `/v1/waitlist/${entry}`);
    else await this.decide(hold, this.every(4, 'offers that nobody pays') && ++this.abandoned > 0);
  }

  async decide(hold, leaves) {
    this.till.noteEnd(hold);
    if (leaves && !this.isEnding) return;
    if (this.every(13, 'holds that are released')) await this.release(hold);
    else await this.checkout(hold.seats.length > 1 && this.every(5, 'seats that are given back') ? await this.giveBack(hold) : hold);
  }

  async release(hold) { await this.snatch(hold, `/v1/holds/${hold.id}`); }

  // Deletes the hold, or its entry, while others ask for its very places.  The first of them keep the server busy for a
  // moment, so that the rest of the requests are judged in one batch.
  async snatch({ seats, areas }, target) {
    const asked = { event: this.event.id, ...(seats.length ? { seats } : { areas }) };
    const ask = () => Array.from({ length: SNATCHERS }, () => this.till.post('/v1/holds', asked));
    const before = ask();
    const given = this.till.ask('DELETE', target);
    const snatched = await Promise.all([...before, ...ask()]);
    expected(await given);
    for (const hold of snatched.map(expected)) if (hold) expected(await this.till.ask('DELETE', `/v1/holds/${hold.id}`));
  }

  async giveBack(hold) {
    const answer = await this.till.ask('PATCH', `/v1/holds/${hold.id}`, { fence: hold.fence, remove: { seats: hold.seats.slice(-1) } });
    return expected(answer) ?? hold;
  }

  async checkout(hold) {
    const made = expected(await this.till.post('/v1/bookings', { hold: hold.id }));
    if (!made) return;
    this.till.noteEnd(made);
    const booking = await this.wait(made, ({ status, payment }) => status !== 'pending' || payment.status !== 'creating');
    if (!booking.payment.client_secret) return;
    if (this.every(6, 'cards that are declined')) await this.till.pay(booking, CARDS.declined);
    await this.till.pay(booking, CARDS.good);
    const paid = await this.wait(made, ({ status }) => status !== 'pending');
    if (paid.status !== 'confirmed') return;
    this.confirmed.set(paid.id, paid);
    if (this.every(9, 'refunds')) expected(await this.till.post(`/v1/bookings/${paid.id}/refund`, { amount: 700 }));
    if (this.every(6, 'cancels')) await this.cancel(paid.id);
  }

  async cancel(id) {
    this.cancelled.add(id);
    assertOk(await this.till.post(`/v1/bookings/${id}/cancel`));
  }

  // Resolves to the booking as it is when `is` holds, or when the buyer has lost patience.
  async wait(booking, is) {
    for (const end = Date.now() + PATIENCE_MS; ; await sleep(50)) {
      const now = await this.till.booking(booking);
      if (is(now) || Date.now() > end) return now;
    }
  }

  // A buyer who does not wait, and tries to be quicker than those who do.
  async rival() {
    const ways = [{ best_available: { quantity: 1 } }, { best_available: { quantity: 2, section: 'Stalls' } }, { areas: { Floor: 1 } }, { seats: ['Balcony-A-1', 'Balcony-A-2'] }];
    while (!this.isEnding && !this.failed) {
      const hold = expected(await this.till.post('/v1/holds', { event: this.event.id, ...this.random.oneOf(ways) }));
      if (hold) await this.release(hold);
      await sleep(20 + this.random.below(60));
    }
  }

  // Buyers who have paid give their places back, so that there are offers until enough of them have lapsed.
  async changeMinds() {
    while (!this.isEnding && !this.failed) {
      const paid = [...this.confirmed.keys()].find((id) => !this.cancelled.has(id));
      if (paid && this.entries.length >= ENTRIES) await this.cancel(paid);
      await sleep(50 + this.random.below(100));
    }
  }

  // ---- the course of it ----

  // How far the sale is, from 0 to 1: one half is entries, the other half is offers that lapse.
  get progress() { return Math.min(1, this.entries.length / ENTRIES) / 2 + Math.min(1, this.abandoned / ABANDONED) / 2; }

  // Stops the server where it is, unless jobs are leased; returns whether it did.  Where servers share a ledger, a job of
  // one that is killed is done after its lease of 25 s, for which only the long form has the time.
  async #stopsWithoutJobs(server) {
    await standStill(server.pid);
    const [{ n }] = server.sql(`SELECT count(*) AS n FROM jobs WHERE status = 1 AND leased_until > ${Date.now()}`);
    if (n > 0) server.resume();
    return n === 0;
  }

  // Kills servers at random moments, and in the middle of it all flushes the gate.
  async #disturb(flush) {
    for (let n = 0; n < kills; n++) {
      const moment = (n + 0.1 + this.random.below(80) / 100) / kills;
      await this.#until('it is time for a kill', () => this.progress >= moment);
      if (n === Math.floor(kills / 2)) flush();
      const server = this.random.oneOf(this.till.servers);
      if (!isLong && this.till.n > 1) await this.#until('it has no job', () => this.#stopsWithoutJobs(server));
      await this.till.kill(server);
    }
  }

  // Waits for as long as the sale goes on.
  async #until(what, probe) {
    for (let isThere = false; !isThere;) {
      const { progress } = this;
      await until(`${what}, or the sale goes on`, async () => {
        if (this.failed) throw this.failed;
        isThere = await probe();
        return isThere || this.progress > progress;
      }, STILL_MS);
    }
  }

  async #arriveAll() {
    for (let n = 0; this.entries.length < ENTRIES && !this.failed; n += atATime) {
      await Promise.all(Array.from({ length: atATime }, (_, i) => this.arrive(n + i)));
    }
  }

  async #watch(work) {
    try { await work; } catch (error) { this.failed ??= error; }
  }

  // Returns whether nothing is held and no buyer is at work.
  async #isQuiet() { return this.busy === 0 && (await this.till.servers[0].counts(this.event)).held === 0; }

  async run(flush) {
    const others = [this.changeMinds(), ...Array.from({ length: rivals }, () => this.rival())].map((work) => this.#watch(work));
    await Promise.all([this.#watch(this.#arriveAll()), this.#watch(this.#disturb(flush))]);
    await this.#until('offers have lapsed', () => this.abandoned >= ABANDONED);
    this.isEnding = true;
    await Promise.all(others);
    await this.#until('nothing is held', () => this.#isQuiet());
    await this.till.settled(); // what is owed may free places once more
    await this.#until('nothing is held', () => this.#isQuiet());
    await this.till.settled();
  }

  // ---- what must be true at the end ----

  async assertFair() {
    const [server] = this.till.servers;
    const [rows, map] = [await readAudit(server, `event=${this.event.id}`), await server.read(`/v1/events/${this.event.id}/seats`)];
    const judged = judgeWaits(this.event, map, rows, this.wishes);
    assert.deepEqual(judged.wrong.slice(0, 5), [], `${judged.wrong.length} turns are wrong`);
    assert.equal(judged.entries.size, this.entries.length);
    const free = Object.fromEntries(map.areas.map(({ name, available }) => [name, available]));
    for (const { name, rows: drawn } of map.sections) free[name] = drawn.reduce((n, { seats }) => n + seats.split('.').length - 1, 0);
    assert.deepEqual(judged.free, free, 'the log gives the map');
    this.counts = judged.counts;
    for (const [what, n] of Object.entries({ offered: 1, accepted: 1, lapsed: ABANDONED, claims: 1 })) {
      assert.ok(judged.counts[what] >= n, `the run shows nothing: ${JSON.stringify(judged.counts)}`);
    }
    return { judged, rows };
  }

  // Every entry is as the log says, the shop was told of it once and in order, and it has a booking if it was accepted.
  async assertEntries(judged) {
    const told = new Map();
    for (const { type, booking: id } of this.till.endpoint.notices.values()) {
      if (type.startsWith('waitlist.')) told.set(id, [...told.get(id) ?? [], type]);
    }
    await pool(this.entries, 16, async ({ id, number }) => {
      const now = assertOk(await this.till.get(`/v1/waitlist/${id}`));
      const logged = judged.entries.get(keyOf(id));
      assert.deepEqual([now.number, now.status], [number, logged.status]);
      assert.deepEqual(told.get(id) ?? [], logged.told, `notifications of entry ${number}, which is ${now.status}`);
      told.delete(id);
      const hold = now.hold && assertOk(await this.till.get(`/v1/holds/${now.hold}`));
      if (now.status === 'waiting') assert.equal(hold, null);
      if (now.status !== 'accepted') return;
      assert.equal(hold.owner, now.owner);
      const booking = await this.till.booking({ id: hold.booking });
      assert.equal(booking.status, this.cancelled.has(booking.id) ? 'cancelled' : 'confirmed');
    });
    assert.deepEqual([...told.keys()], [], 'notifications of entries that nobody has');
  }

  // Whatever a buyer saw as confirmed is so, or was cancelled; and the shop was told once of each change of a booking that
  // the log has.
  async assertBookings(rows) {
    await pool([...this.confirmed.values()], 16, async (paid) => {
      const now = await this.till.booking(paid);
      assert.equal(now.status, this.cancelled.has(paid.id) ? 'cancelled' : 'confirmed');
    });
    const logged = rows.filter(({ object, from, to }) => object === 'booking' && to !== 'pending' && from !== null)
      .map(({ booking, to }) => `booking.${to} ${booking}`);
    const told = [...this.till.endpoint.notices.values()].filter(({ type }) => type.startsWith('booking.')).map(({ type, booking }) => `${type} ${booking}`);
    assert.deepEqual(told.sort(), logged.sort());
  }

  async assertRight() {
    const { judged, rows } = await this.assertFair();
    await this.assertEntries(judged);
    await this.assertBookings(rows);
    await this.till.verify();
    const { servers } = this.till;
    checkLedger(this.till.ledger ?? servers[0].dir);
    for (const server of servers) assert.equal(await server.metric('holdfast_ledger_surprises_total'), 0);
  }
}

// Resolves to what happened.
async function sell(options, flush) {
  const sale = new Sale(seededRandom());
  try {
    await sale.open(options);
    await sale.run(flush);
    await sale.assertRight();
    return `seed ${seed}: ${kills} kills, ${JSON.stringify({ ...sale.counts, ...sale.till.summary })}`;
  } finally {
    await sale.till?.close();
  }
}

describe('a sell-out with a waiting list, while servers are killed', () => {
  let postgres;
  let redis;
  let together;
  before(async () => { [postgres, redis] = await Promise.all([startPostgres(), startRedis()]); });
  after(async () => { await redis?.stop(); await postgres?.stop(); await reap(); });

  it('what comes back goes to the next at once, and the books agree, on SQLite', async (t) => {
    const shared = { n: 2, ledger: postgres.url(postgres.createDatabase()), gate: `${redis.url}/0` };
    together = sell(shared, () => redis.cli('FLUSHALL'));
    together.catch(() => {});
    t.diagnostic(await sell({}, () => {}));
  });

  it('on two servers that share PostgreSQL and a Redis that is flushed', async (t) => t.diagnostic(await together));
});
