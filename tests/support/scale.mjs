// Several servers on one ledger and gate whose connections can be broken, for the suites
// tests/fault/scale_*.test.mjs.
//
//   const backends = await startBackends();                 // one PostgreSQL and one Redis per file
//   const { one, two, ledgerLink } = await backends.pair();   // fresh database, empty gate
//   const { one, event } = await backends.shared();           // the servers of an earlier test, and a fresh event
//
// Server `one` reaches ledger and gate through proxies (ledgerLink, gateLink); the others connect directly
// unless the options say otherwise.

import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { assertProblem } from './expect.mjs';
import { assertVerifiedSoon, checkLedger } from './ledger.mjs';
import { startPostgres } from './postgres.mjs';
import { startProxy } from './proxy.mjs';
import { startRedis } from './redis.mjs';
import { freePort, patiently, reap, Server, until } from './server.mjs';

export const RECONCILE = ['--reconcile-every', '1s'];
const SECTIONS = [{ name: 'S', tier: 'A', price: 1000, rows: 2, seats_per_row: 50 }];

export async function startBackends({ postgres: settings } = {}) {
  const [postgres, redis] = await Promise.all([startPostgres(settings), startRedis('--databases', '64')]);
  return new Backends(postgres, redis);
}

class Backends {
  #gates = 0;
  #open = [];
  #shared = new Map(); // options -> site

  constructor(postgres, redis) { this.postgres = postgres; this.redis = redis; }

  async pair(options = {}) {
    const site = new Site(this, this.#gates++, options);
    this.#open.push(site);
    await site.start();
    return site;
  }

  // Tests that ask with the same options share a site, since two servers take longer to start than most tests take.  Each
  // test finds a fresh event, and all servers running and well.  The ledger is checked by `close`.  A site whose test failed
  // is not used again.
  async shared(options = {}) {
    const key = JSON.stringify(options);
    const known = this.#shared.get(key);
    const site = known ?? new Site(this, this.#gates++, { ...options, isShared: true });
    this.#open.push(site);
    this.#shared.set(key, site);
    await (known ? site.renew() : site.start());
    return site;
  }

  // For `afterEach`: whatever the test did, the next one finds PostgreSQL and Redis running and unused.
  async sweep() {
    for (const site of this.#open.splice(0)) {
      if (site.isShared && site.isDone) continue;
      for (const [key, other] of this.#shared) if (other === site) this.#shared.delete(key);
      await site.kill();
    }
    if (this.redis.run.ended) await this.redis.start();
    this.redis.resume();
    if (this.postgres.run.ended) await this.postgres.start();
  }

  // For `after`: checks the shared sites, and ends everything.
  async close() {
    await this.sweep();
    const sites = [...this.#shared.values()];
    this.#shared.clear();
    try {
      for (const site of sites) await site.end();
    } finally {
      for (const site of sites) await site.kill();
      await reap();
    }
  }
}

class Site {
  #eventNumber;

  // Options: n servers (2), of which the first `through` (1) use the proxies; args for all servers; envs, the variables of
  // the first server, of the second and so on; fixedPorts, which servers keep when they are restarted.
  constructor(backends, gateNumber, { n = 2, through = 1, args = [], envs = [], fixedPorts = false, isShared = false }) {
    Object.assign(this, { n, through, args, envs, fixedPorts, isShared, gateNumber });
    this.postgres = backends.postgres;
    this.redis = backends.redis;
  }

  async start() {
    const { postgres, redis } = this;
    this.database = postgres.createDatabase();
    this.ledger = postgres.url(this.database);
    this.gate = `${redis.url}/${this.gateNumber}`;
    this.ledgerLink = await startProxy(postgres.port, { postgres: true });
    this.gateLink = await startProxy(redis.port);
    const links = {
      ledger: this.ledger.replace(`:${postgres.port}/`, `:${this.ledgerLink.port}/`),
      gate: this.gate.replace(`:${redis.port}/`, `:${this.gateLink.port}/`),
    };
    const listens = [];
    for (let i = 0; i < this.n; i++) listens.push(this.fixedPorts ? ['--listen', `127.0.0.1:${await freePort()}`] : []);
    this.servers = listens.map((listen, i) => new Server({ ...(i < this.through ? links : { ledger: this.ledger, gate: this.gate }),
      args: [...listen, ...this.args], env: this.envs[i] }));
    for (const server of this.servers) await server.launch();
    [this.one, this.two] = this.servers;
    await this.#createEvent();
  }

  // For the next test: starts the servers that the last one ended, waits until all are well, and makes another event.
  async renew() {
    this.isDone = false;
    this.servers.splice(this.n); // servers that the last test added
    for (const server of this.servers) if (!server.run || server.run.ended) await server.launch();
    await Promise.all(this.servers.map((server) => recovered(server)));
    await this.#createEvent();
  }

  async #createEvent() {
    this.#eventNumber = undefined;
    this.event = await this.servers.at(-1).createEvent({ sections: SECTIONS, areas: [{ name: 'Floor', price: 500, capacity: 20 }] });
    for (const server of this.servers) await server.map(this.event); // every server loads the event
  }

  // Returns the keys of this site in the gate: { key: value }.
  gateKeys(pattern = '*') {
    const cli = (...words) => this.redis.cli('-n', `${this.gateNumber}`, ...words);
    const keys = cli('--scan', '--pattern', pattern).split('\n').filter(Boolean).sort();
    return Object.fromEntries(keys.map((key) => [key, cli('GET', key)]));
  }
  gateCli(...words) { return this.redis.cli('-n', `${this.gateNumber}`, ...words); }

  sql(query) { return this.postgres.query(this.database, query); }

  // Returns the number of the event in the ledger and the gate.
  get eventNumber() { return this.#eventNumber ??= this.sql('SELECT max(event) AS event FROM events')[0].event; }

  // Returns how many holds of the event were ever made.
  countHolds() { return this.sql(`SELECT count(*) AS n FROM holds WHERE event = ${this.eventNumber}`)[0].n; }

  // Returns the key of a seat in the gate; the index counts seats through all sections and rows.
  seatKey(index) { return `seat:{${this.eventNumber}}:${index}`; }

  // Returns the keys of the event's seats in the gate: { key: value }.
  seatKeys() { return this.gateKeys(this.seatKey('*')); }

  // Asserts that the seat is granted once and then refused by every server.  Returns the hold.
  async assertOneOwner(seat) {
    const hold = await this.one.grant(this.event, seat);
    for (const server of this.servers) assertProblem(await patiently(() => server.hold(this.event, seat)), 409, 'seat_taken');
    return hold;
  }

  // For the end of a test: asserts that no server met a surprise.  Also asserts that the ledger is in order and stops every
  // server, unless the site is shared.  After a test that ended sessions of PostgreSQL a site is `spent`: one of
  // them may go on for a moment and fail a request, so no other test gets it.
  async done({ spent = false } = {}) {
    if (spent) this.isShared = false;
    this.ledgerLink.restore();
    this.gateLink.restore();
    const counted = await Promise.all(this.#running().map((server) => server.metric('holdfast_ledger_surprises_total')));
    assert.ok(counted.every((n) => n === 0), `surprises: ${counted}`);
    this.isDone = true;
    if (!this.isShared) await this.end();
  }

  // Asserts that the ledger is in order, and stops every server.
  async end() {
    await assertVerifiedSoon(this.ledger, this.gate);
    await Promise.all(this.#running().map((server) => server.stop()));
    checkLedger(this.ledger);
  }

  // Ends what is left of it.
  async kill() {
    for (const { run } of this.servers ?? []) {
      if (run && !run.ended) run.child.kill('SIGKILL');
      await run?.done;
    }
    this.ledgerLink?.close();
    this.gateLink?.close();
  }

  #running() { return this.servers.filter(({ run }) => run && !run.ended); }
}

// Resolves to { status, degraded: a text that names what is degraded, or '' }.
export async function readiness(server) {
  const { status, text, json } = await server.get('/readyz');
  return { status, degraded: JSON.stringify(json?.degraded ?? ''), text };
}

// Waits until /readyz of every server has this status.
export const becomes = (servers, status) => Promise.all(servers.map((server) => until(`/readyz is ${status}`,
  async () => (await readiness(server)).status === status)));

export const isDegraded = async (server) => /gate/.test((await readiness(server)).degraded);

// Asserts that every server draws this map before long.
export async function assertAllDraw(servers, event, map) {
  for (const server of servers) {
    let drawn;
    await until('it draws the same map', async () => isDeepStrictEqual(drawn = await server.map(event), map))
      .catch(() => assert.deepEqual(drawn, map));
  }
}

// Waits until the server is ready and no longer misses its gate.
export const recovered = (server) => until('it is well again', async () => {
  const { status, degraded } = await readiness(server);
  return status === 200 && !/gate/.test(degraded);
});

// Resolves to the answer and the time it took.
export async function timed(promise) {
  const began = performance.now();
  const answer = await promise;
  return { answer, ms: performance.now() - began };
}
