// Several servers on one ledger and gate whose connections can be broken, for the suites
// tests/fault/scale_*.test.mjs.
//
//   const backends = await startBackends();                 // one PostgreSQL and one Redis per file
//   const { one, two, ledgerLink } = await backends.pair();   // fresh database, empty gate
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
import { freePort, reap, Server, until } from './server.mjs';

export const RECONCILE = ['--reconcile-every', '1s'];
const SECTIONS = [{ name: 'S', tier: 'A', price: 1000, rows: 2, seats_per_row: 50 }];

export async function startBackends({ postgres: settings } = {}) {
  const [postgres, redis] = await Promise.all([startPostgres(settings), startRedis('--databases', '64')]);
  return new Backends(postgres, redis);
}

class Backends {
  #gates = 0;
  #open = [];

  constructor(postgres, redis) { this.postgres = postgres; this.redis = redis; }

  async pair(options = {}) {
    const site = new Site(this, this.#gates++, options);
    this.#open.push(site);
    await site.start();
    return site;
  }

  // For `afterEach`: whatever the test did, the next one finds PostgreSQL and Redis running and unused.
  async sweep() {
    for (const { servers = [], ledgerLink, gateLink } of this.#open.splice(0)) {
      for (const { run } of servers) {
        if (run && !run.ended) run.child.kill('SIGKILL');
        await run?.done;
      }
      ledgerLink?.close();
      gateLink?.close();
    }
    if (this.redis.run.ended) await this.redis.start();
    this.redis.resume();
    if (this.postgres.run.ended) await this.postgres.start();
  }

  // For `after`: ends everything.
  async close() { await this.sweep(); await reap(); }
}

class Site {
  // Options: n servers (2), of which the first `through` (1) use the proxies; args for all servers; argsOne,
  // wrapOne and envOne for those that use the proxies; fixedPorts, which servers keep when they are restarted.
  constructor(backends, gateNumber, { n = 2, through = 1, args = [], argsOne = [], wrapOne, envOne = {}, fixedPorts = false }) {
    Object.assign(this, { n, through, args, argsOne, wrapOne, envOne, fixedPorts, gateNumber });
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
    this.servers = listens.map((listen, i) => new Server(i < this.through
      ? { ...links, args: [...listen, ...this.args, ...this.argsOne], wrap: this.wrapOne, env: this.envOne }
      : { ledger: this.ledger, gate: this.gate, args: [...listen, ...this.args] }));
    for (const server of this.servers) await server.launch();
    [this.one, this.two] = this.servers;
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

  // Returns the key of a seat in the gate; the index counts seats through all sections and rows.
  seatKey(index) {
    const [{ event }] = this.sql('SELECT max(event) AS event FROM events');
    return `seat:{${event}}:${index}`;
  }

  // Asserts that the seat is granted once and then refused by every server.  Returns the hold.
  async assertOneOwner(seat) {
    const hold = await this.one.grant(this.event, seat);
    for (const server of this.servers) assertProblem(await server.hold(this.event, seat), 409, 'seat_taken');
    return hold;
  }

  // Asserts that the ledger is in order and that no server met a surprise, and stops every server.
  async done({ surprises = 0 } = {}) {
    this.ledgerLink.restore();
    this.gateLink.restore();
    const counted = await Promise.all(this.servers.filter(({ run }) => run && !run.ended)
      .map((server) => server.metric('holdfast_ledger_surprises_total')));
    await assertVerifiedSoon(this.ledger, this.gate);
    for (const server of this.servers) if (server.run && !server.run.ended) await server.stop();
    checkLedger(this.ledger);
    assert.ok(counted.every((n) => n <= surprises), `surprises: ${counted}`);
  }
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
