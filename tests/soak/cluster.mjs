// Many buyers use three servers while servers, the gate and sessions of the ledger are killed at random.  In
// the end every acknowledged answer must be true (I1-I8, I11, I12, I14).
//
//   node tests/soak/cluster.mjs [--seconds 300] [--seed N] [--clients 12] [--quiet]
//
// tests/fault/scale_soak.test.mjs runs it for 7 s, `make soak` for 300.  Runs of more than a minute
// also restart the ledger, and break it and the gate in less common ways.  The seed repeats the random
// choices, but not their timing.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ms } from '../support/expect.mjs';
import { assertVerified, checkLedger } from '../support/ledger.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { seededRandom } from '../support/random.mjs';
import { startRedis } from '../support/redis.mjs';
import { newKey, pool, reap, Server, sleep, until } from '../support/server.mjs';

const SERVERS = 3;
const ROWS = 'ABCDEF', WIDTH = 40, FLOOR = 60;
const GIVE_UP_MS = 30_000; // a request is repeated, with its key, until an answer is certain
const READY_MS = 15_000;
const AGREE_MS = 15_000; // enough for some rounds of the reconciler on a busy machine
const FRESH_MS = 5000; // opens a new event before the old ones are sold out

// ---- faults ----

// A server ends if the ledger is away, or ends its session, while the server starts.  A supervisor starts it
// again.
async function launchAgain(server) {
  for (let tries = 1; ; tries++) {
    try { return await server.launch(); } catch (error) {
      if (tries === 40 || !/cannot open the ledger/.test(error.message)) throw error;
      await sleep(300);
    }
  }
}

class Chaos {
  #stopped = false;
  counts = {};

  constructor(random, servers, postgres, redis, database, wild) {
    Object.assign(this, { random, servers, postgres, redis, database });
    if (wild) Object.assign(this.faults, this.#wild);
  }

  // Each breaks something, waits, and repairs it.
  faults = {
    'server killed': async () => {
      const server = this.random.oneOf(this.servers);
      if (server.broken) return;
      server.broken = true;
      await server.kill9();
      await sleep(this.random.below(1000));
      await launchAgain(server);
      server.broken = false;
    },
    'server stopped': async () => {
      const server = this.random.oneOf(this.servers);
      if (server.broken) return;
      server.broken = true;
      server.pause();
      await sleep(100 + this.random.below(3000));
      server.resume();
      server.broken = false;
    },
    'gate killed': async () => {
      await this.redis.stop();
      await sleep(this.random.below(2000));
      await this.redis.start();
    },
    'gate flushed': async () => { this.redis.cli('FLUSHALL'); },
    'gate stopped': async () => {
      this.redis.pause();
      await sleep(100 + this.random.below(1500));
      this.redis.resume();
    },
    'sessions ended': async () => { this.postgres.terminateBackends(this.database, `random() < ${(1 + this.random.below(9)) / 10}`); },
  };

  #wild = {
    'ledger restarted': async () => { await this.postgres.restart(); },
    'ledger crashed': async () => { await this.postgres.crash(); await this.postgres.start(); },
    'ledger locked': async () => {
      await promisify(execFile)('psql', [this.postgres.url(this.database), '-Xqc',
        `BEGIN; SELECT * FROM event_clock FOR UPDATE; SELECT pg_sleep(${1 + this.random.below(5)}); COMMIT`]);
    },
    'ledger read only': async () => {
      this.postgres.sql('-c', `ALTER DATABASE ${this.database} SET default_transaction_read_only = on`);
      this.postgres.terminateBackends(this.database);
      await sleep(2000);
      this.postgres.sql('-c', `ALTER DATABASE ${this.database} RESET default_transaction_read_only`);
    },
    'ledger altered': async () => {
      for (const sql of ['SET lock_timeout = 500; VACUUM FULL event_clock', // and a change that no server that starts meanwhile gets to see
        'ALTER TABLE holds ADD COLUMN extra int, ALTER COLUMN owner SET STATISTICS 50; ALTER TABLE holds DROP COLUMN extra']) {
        try { this.postgres.sql('-d', this.database, ...(sql.startsWith('SET') ? [] : ['-1']), ...sql.split('; ').flatMap((one) => ['-c', one])); } catch { /* others have it locked */ }
      }
    },
    'gate full': async () => {
      this.redis.cli('CONFIG', 'SET', 'maxmemory-policy', this.random.oneOf(['noeviction', 'allkeys-random', 'volatile-ttl']));
      this.redis.cli('CONFIG', 'SET', 'maxmemory', '1');
      await sleep(1500);
      this.redis.cli('CONFIG', 'SET', 'maxmemory', '0');
    },
    'gate read only': async () => {
      this.redis.cli('REPLICAOF', '127.0.0.1', '1');
      await sleep(1500);
      this.redis.cli('REPLICAOF', 'NO', 'ONE');
    },
    'gate scribbled on': async () => {
      for (let i = 0; i < 40; i++) {
        const key = `seat:{${1 + this.random.below(6)}}:${this.random.below(ROWS.length * WIDTH)}`;
        this.redis.cli('DEL', key);
        this.redis.cli(...this.random.oneOf([['RPUSH', key, 'a'], ['SET', key, 'zz'], ['SET', key, '9'.repeat(23)], ['HSET', key, 'a', 'b']]));
      }
    },
  };

  // Does about one deed per second; a server, the gate and the ledger each suffer at most one at a time.
  async run() {
    const active = { server: null, gate: null, ledger: null };
    while (!this.#stopped) {
      await sleep(300 + this.random.below(1000));
      const name = this.random.oneOf(Object.keys(this.faults));
      const victim = name.split(' ')[0].replace('sessions', 'ledger');
      if (active[victim] || this.#stopped) continue;
      this.counts[name] = (this.counts[name] ?? 0) + 1;
      active[victim] = this.faults[name]().finally(() => { active[victim] = null; });
      active[victim].catch((error) => { this.failure ??= error; });
    }
    await Promise.all(Object.values(active).filter(Boolean));
    if (this.failure) throw this.failure;
  }

  end() { this.#stopped = true; }
}

// ---- buyers ----

class Record {
  holds = new Map(); // id -> { id, event, seats, areas, fence, expires, status, pending, booking }
  stored = []; // { method, path, body, key, status, text } of 2xx answers
  counts = { granted: 0, refused: 0, renewed: 0, released: 0, confirmed: 0, expired: 0, repeated: 0, unknown: 0 };
  #owner = new Map(); // event and seat -> the last hold that was granted the seat

  // A grant is correct only if the previous hold of the seat has ended, by the ledger's own times.
  granted(json) {
    const hold = { id: json.id, event: json.event, seats: json.seats, areas: json.areas, fence: json.fence,
      expires: ms(json.expires_at), status: 'active', pending: null };
    for (const seat of json.seats) {
      const place = `${json.event} ${seat}`;
      const old = this.#owner.get(place);
      if (old && old.fence < hold.fence) {
        const ended = old.status === 'released' || old.pending === 'released' || old.expires <= ms(json.created_at);
        assert.ok(ended, `${seat} was granted to ${JSON.stringify(json)} while ${JSON.stringify(old)} had it`);
      }
      if (!old || old.fence < hold.fence) this.#owner.set(place, hold);
    }
    this.holds.set(hold.id, hold);
    this.counts.granted++;
    return hold;
  }
}

class Buyer {
  mine = [];
  forgotten = []; // holds that are left to expire; the buyer returns to some of them too late

  constructor(random, servers, events, record) { Object.assign(this, { random, servers, events, record }); }

  async run(isFinished) {
    while (!isFinished()) {
      const request = this.#choose();
      if (request.hold) request.hold.pending = request.wants;
      const answer = await this.#ask(request);
      if (answer) this.#note(request, answer);
      else this.record.counts.unknown++;
      this.mine = this.mine.filter(({ status, pending }) => status === 'active' && !pending);
      await sleep(this.random.below(8));
    }
  }

  #choose() {
    const dice = this.random.below(100);
    const key = newKey();
    if (this.mine.length > 0 && this.random.below(8) === 0) this.forgotten.push(...this.mine.splice(this.random.below(this.mine.length), 1));
    if (this.forgotten.length > 5 && this.random.below(10) === 0) {
      const hold = this.forgotten.shift();
      return { method: 'POST', path: `/v1/holds/${hold.id}/confirm`, body: { fence: hold.fence }, key, hold, wants: 'confirmed' };
    }
    if (this.mine.length === 0 || dice < 45) {
      const body = { event: this.random.oneOf(this.events.slice(-2)).id };
      const kind = this.random.below(10);
      if (kind < 6) {
        const seats = new Set();
        for (let n = 1 + this.random.below(3); seats.size < n;) seats.add(`S-${this.random.oneOf(ROWS)}-${1 + this.random.below(WIDTH)}`);
        body.seats = [...seats];
      } else if (kind < 8) body.best_available = { quantity: 1 + this.random.below(3), adjacent: this.random.below(2) === 0 };
      else body.areas = { Floor: 1 + this.random.below(3) };
      body.ttl_ms = this.random.below(3) === 0 ? 1000 + this.random.below(2000) : 5000 + this.random.below(20_000);
      return { method: 'POST', path: '/v1/holds', body, key };
    }
    const hold = this.random.oneOf(this.mine);
    if (dice < 60) return { method: 'POST', path: `/v1/holds/${hold.id}/renew`, body: { ttl_ms: 5000 + this.random.below(30_000) }, key, hold, wants: 'renewed' };
    if (dice < 93) return { method: 'DELETE', path: `/v1/holds/${hold.id}`, hold, wants: 'released' };
    return { method: 'POST', path: `/v1/holds/${hold.id}/confirm`, body: { fence: hold.fence }, key, hold, wants: 'confirmed' };
  }

  // Asks one server after another until an answer is certain.
  async #ask({ method, path, body, key }) {
    const deadline = Date.now() + GIVE_UP_MS;
    for (let tries = 0; Date.now() < deadline; tries++) {
      if (tries > 0) { this.record.counts.repeated++; await sleep(20 + this.random.below(100)); }
      const server = this.random.oneOf(this.servers);
      let answer;
      try { answer = await server.request(method, path, body, key ? { 'Idempotency-Key': key } : {}); } catch { continue; }
      if (answer.status >= 500) {
        assert.ok(answer.status === 503 && ['ledger_unavailable', 'outcome_unknown', 'overloaded', 'draining'].includes(answer.json?.code),
          `${method} ${path}: ${answer.status} ${answer.text}`);
        continue;
      }
      return answer;
    }
    return null;
  }

  #note({ method, path, body, key, hold, wants }, { status, text, json }) {
    const { counts } = this.record;
    const what = `${method} ${path} ${JSON.stringify(body)}: ${status} ${text}`;
    if (status < 300 && key) this.record.stored.push({ method, path, body, key, status, text });
    if (!hold) {
      if (status === 201) this.mine.push(this.record.granted(json));
      else { assert.ok(status === 409 && ['seat_taken', 'sold_out'].includes(json.code), what); counts.refused++; }
      return;
    }
    hold.pending = null;
    if (status === 410) {
      assert.equal(json.code, 'hold_expired', what);
      assert.notEqual(hold.status, 'confirmed', what);
      hold.status = 'expired';
      counts.expired++;
    } else if (wants === 'renewed' && status === 409) assert.equal(json.code, 'renewal_cap', what);
    else if (wants === 'renewed') {
      assert.equal(status, 200, what);
      assert.equal(json.fence, hold.fence, what);
      hold.expires = Math.max(hold.expires, ms(json.expires_at));
      counts.renewed++;
    } else if (wants === 'released') {
      assert.equal(status, 204, what);
      hold.status = 'released';
      counts.released++;
    } else {
      assert.ok(status === 201 || status === 200, what);
      hold.status = 'confirmed';
      hold.booking = json;
      counts.confirmed++;
    }
  }
}

// ---- the end: every acknowledged answer is true ----

async function assertAllTrue(record, servers, random) {
  const sold = new Map();
  await pool([...record.holds.values()], 24, async (hold) => {
    const answer = await random.oneOf(servers).get(`/v1/holds/${hold.id}`);
    assert.equal(answer.status, 200, answer.text);
    const read = answer.json;
    const what = `${JSON.stringify(hold)} reads as ${answer.text}`;
    assert.deepEqual([read.seats, read.areas, read.fence, read.event], [hold.seats, hold.areas, hold.fence, hold.event], what);
    const allowed = new Set([hold.status]);
    if (hold.pending && hold.pending !== 'renewed') allowed.add(hold.pending);
    if (hold.status === 'active') allowed.add('expired');
    assert.ok(allowed.has(read.status), what);
    if (hold.status === 'active' && read.status === 'expired') assert.ok(hold.expires <= Date.now() + 1000, what);
    if (read.status === 'confirmed') {
      for (const seat of hold.seats) {
        const place = `${hold.event} ${seat}`;
        assert.ok(!sold.has(place), `${place} is sold twice: ${sold.get(place)} and ${hold.id}`);
        sold.set(place, hold.id);
      }
    }
    if (hold.booking) {
      const booking = await random.oneOf(servers).get(`/v1/bookings/${hold.booking.id}`);
      assert.deepEqual([booking.status, booking.json], [200, hold.booking], what);
    }
  });
  await pool(random.sample(record.stored, 500), 24, async ({ method, path, body, key, status, text }) => {
    const answer = await random.oneOf(servers).request(method, path, body, { 'Idempotency-Key': key });
    assert.deepEqual([answer.status, answer.text, answer.headers['idempotency-replayed']], [status, text, 'true'], `${method} ${path}`);
  });
}

// Holds still expire, and each server and the gate learn of it in their own time.
async function eventually(check) {
  for (const deadline = Date.now() + AGREE_MS; ; await sleep(500)) {
    try { return await check(); } catch (error) { if (Date.now() > deadline) throw error; }
  }
}

export async function soak({ seconds = 300, seed, clients = 12, wild = seconds > 60, say = () => {} }) {
  say(`seed ${seed}`);
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const database = postgres.createDatabase();
  const [ledger, gate] = [postgres.url(database), redis.url];
  const servers = Array.from({ length: SERVERS }, () => new Server({ ledger, gate, args: ['--reconcile-every', '1s', '--log-level', 'warn'] }));
  for (const server of servers) await server.launch();
  const events = []; // the last two are on sale
  const openEvent = async (server) => events.push(await server.createEvent({ hold_max_ms: 600_000,
    sections: [{ name: 'S', price: 100, rows: ROWS.length, seats_per_row: WIDTH }], areas: [{ name: 'Floor', price: 50, capacity: FLOOR }] }));
  for (let i = 0; i < 2; i++) await openEvent(servers[0]);

  const record = new Record();
  const end = Date.now() + seconds * 1000;
  const chaos = new Chaos(seededRandom(seed), servers, postgres, redis, database, wild);
  let failed = false;
  const guard = (promise) => promise.catch((error) => { failed = true; throw error; });
  const isFinished = () => failed || Date.now() > end;
  const broken = guard(chaos.run());
  const buyers = Array.from({ length: clients }, (_, i) => new Buyer(seededRandom(seed * 31 + i + 1), servers, events, record));
  const bought = Promise.allSettled(buyers.map((buyer) => guard(buyer.run(isFinished))));
  for (let next = Date.now() + FRESH_MS; !isFinished(); await sleep(200)) {
    if (Date.now() < next) continue;
    await openEvent(servers[events.length % SERVERS]).then(() => { next += FRESH_MS; }, () => {}); // the server may be down at the moment
  }
  const outcomes = await bought;
  chaos.end();
  await broken;
  const failure = outcomes.find(({ status }) => status === 'rejected');
  if (failure) throw failure.reason;

  await Promise.all(servers.map((server) => until('it is ready', async () => (await server.get('/readyz')).status === 200, READY_MS, 100)));
  await assertAllTrue(record, servers, seededRandom(seed));
  await sleep(2500); // a round of the reconciler
  for (const event of events) {
    await eventually(async () => {
      const [first, ...others] = await Promise.all(servers.map((server) => server.counts(event)));
      for (const other of others) assert.deepEqual(other, first, 'every server shows the same');
    });
    await eventually(async () => {
      const [first, ...others] = await Promise.all(servers.map((server) => server.map(event)));
      for (const other of others) assert.deepEqual(other, first, 'every server draws the same map');
    });
  }
  // The reconciler has compared every server's view with the ledger every second.
  for (const server of servers) {
    assert.match((await server.get('/metrics')).text, /^holdfast_reconcile_repairs_total\{kind="view"\} 0$/m);
  }
  for (const server of servers) assert.equal(await server.metric('holdfast_ledger_surprises_total'), 0);
  for (const server of servers) assert.equal(await server.metric('holdfast_sale_conflicts_total'), 0);
  await eventually(() => assertVerified(ledger, gate));
  for (const server of servers) await server.stop();
  const looked = checkLedger(ledger);
  const confirmed = [...record.holds.values()].filter(({ status }) => status === 'confirmed').length;
  assert.ok(looked.bookings >= confirmed && looked.bookings <= confirmed + record.counts.unknown, `${looked.bookings} bookings, ${confirmed} were acknowledged`);
  assertVerified(ledger, gate);
  assert.ok(record.counts.granted > seconds && confirmed > 0, 'hardly anything was sold');
  say(`buyers: ${JSON.stringify(record.counts)}`);
  say(`broken: ${JSON.stringify(chaos.counts)}`);
  say(`ledger: ${JSON.stringify(looked)}`);
  await postgres.stop();
  await redis.stop();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name, otherwise) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? otherwise : Number(process.argv[at + 1]);
  };
  try {
    await soak({ seconds: option('seconds', 300), seed: option('seed', Date.now() % 1_000_000), clients: option('clients', 12),
      say: process.argv.includes('--quiet') ? undefined : console.log });
    console.log('every acknowledged answer is true');
  } finally { await reap(); }
}
