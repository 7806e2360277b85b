// The harness of the black-box suites: real servers in temporary directories, real sockets.
//
//   const server = await start();
//   const answer = await server.post('/v1/holds', { event, seats: ['S-A-1'] });
//   await server.stop();            // SIGTERM; exit 0 and a quiet sanitizer, or it throws
//
// Binaries come from HOLDFASTD and HOLDFAST (default build/holdfastd, build/holdfast).
// HOLDFAST_TEST_BACKEND (see backend.mjs) decides what `start` starts: one server on SQLite, one on PostgreSQL,
// or two that share PostgreSQL and Redis and are asked in turn.  With HOLDFAST_TEST_TLS=1 every server serves HTTPS.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import zlib from 'node:zlib';
import { backend, forget, itOnce, not, only, placeOf } from './backend.mjs';
import { Authority } from './certificates.mjs';
import { psqlQuery } from './postgres.mjs';
import { assertCleanStderr, environment, launch, removeTempDir, sleep, SQLITE_WAITS, tempDir, until } from './process.mjs';

export * from './process.mjs';
export { backend, itOnce, not, only };

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const binary = (name, fallback) => path.resolve(root, process.env[name] || fallback);
export const HOLDFASTD = binary('HOLDFASTD', 'build/holdfastd');
export const HOLDFAST = binary('HOLDFAST', 'build/holdfast');
// Whether this build has the crash points of src/base/crash.h.  The product has none.
export const HAS_CRASH_POINTS = /\/build\/(?:asan|tsan|coverage)\//.test(HOLDFASTD);

// Waits that claim nothing about time outlast a busy machine and a sanitizer.
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 120_000;
const REQUEST_TIMEOUT_MS = 120_000;
const PATIENCE_MS = 10_000;
export const IDLE_MS = 10_000; // how long a connection is kept for the next request
const CATCH_UP_MS = 1000; // by then a server shows what was done through another, but for a machine that stands still
const CATCH_UP_MAX_MS = 20_000;
const REPEATED_MAX = 20; // requests that a patient client repeats, of one server: there is a reason for few of them
const STALE_MAX = 2; // free seats that the gate refuses, of one group of servers

// ---- TLS ----

let identity; // the certificate of every server of this process, and whom clients trust

// Returns the arguments of a server with TLS, and what clients connect with.
export function tlsIdentity() {
  if (!identity) {
    const authority = new Authority(tempDir());
    const { cert, key } = authority.issue('server');
    identity = { args: ['--tls-cert', cert, '--tls-key', key], tls: { ca: authority.pem, servername: 'localhost' }, authority };
  }
  return identity;
}

// ---- processes ----

// Runs a server that is expected to refuse to start: resolves to { code, signal, stdout, stderr }.
export async function runServer(args, { timeoutMs = START_TIMEOUT_MS, wrap = (argv) => argv, env } = {}) {
  const [command, ...rest] = wrap([HOLDFASTD, ...args]);
  const run = launch(command, rest, { env: environment(env, false) });
  const timer = setTimeout(() => process.kill(run.pid, 'SIGKILL'), timeoutMs);
  const ended = await run.done;
  clearTimeout(timer);
  return { ...ended, stdout: run.stdout, stderr: run.stderr };
}

// Options: dir (default: a temporary one), args, env, wrap(argv) -> argv to run it under another program,
// ledger and gate (URLs; default: the back end under test), tls (serve HTTPS).  On a back end that others write to,
// requests are repeated if nothing was done (`patiently`).
export async function start(options = {}) {
  const dir = options.dir ?? tempDir();
  const place = options.ledger ? {} : await placeOf(dir);
  const made = { ...options, ...place, dir, ownsDir: options.dir === undefined };
  return startServers({ ...made, isPatient: place.ledger !== undefined, n: backend === 'cluster' && !options.ledger ? 2 : 1 });
}

// Starts `n` servers on one ledger and gate that act as one to the client.  They start one after the other,
// so options like --demo take effect on the first.
export async function startServers({ n, ...options }) {
  const first = new Server(options);
  const rest = Array.from({ length: n - 1 }, () => new Server({ ...options, dir: undefined, ownsDir: true }));
  const servers = n === 1 ? first : new Servers([first, ...rest]);
  await servers.launch();
  return servers;
}

// Repeats a request of which nothing was done, since the ledger did not answer in time, as a client should: a server that
// stands still for two seconds amid a batch keeps the others from writing to the same event.
export async function patiently(ask) {
  for (const end = Date.now() + PATIENCE_MS; ;) {
    const answer = await ask();
    if (answer.status !== 503 || answer.json?.code !== 'ledger_unavailable' || Date.now() > end) return answer;
    await sleep(answer.json.retry_after_ms ?? 100);
  }
}

function granted(answer) {
  assert.equal(answer.status, 201, answer.text);
  return answer.json;
}

// The requests that tests make of one server, or of several that act as one.
class Client {
  get(target, headers) { return this.request('GET', target, undefined, headers); }
  post(target, body, headers) { return this.request('POST', target, body, headers); }
  put(target, body, headers) { return this.request('PUT', target, body, headers); }
  patch(target, body, headers) { return this.request('PATCH', target, body, headers); }
  del(target, headers) { return this.request('DELETE', target, undefined, headers); }

  // Creates an event; it has 2 rows of 10 seats, S-A-1 to S-B-10, unless `fields` say otherwise.
  async createEvent(fields = {}, headers = {}) {
    const answer = await patiently(() => this.post('/v1/events', {
      name: 'Gala', currency: 'usd',
      sections: [{ name: 'S', tier: 'A', price: 1000, rows: 2, seats_per_row: 10 }],
      ...fields,
    }, headers));
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  }

  // Asks for a hold; `seats` may be one name.
  hold(event, seats, fields = {}, headers = {}) {
    return this.post('/v1/holds',
      { event: event.id ?? event, seats: [].concat(seats), ...fields }, headers);
  }

  // Asks for a hold that must be granted; resolves to its JSON.
  async grant(event, seats, fields = {}, headers = {}) {
    return granted(await patiently(() => this.hold(event, seats, fields, headers)));
  }

  // Asks for a hold of any places: { seats } or { best_available }, and/or { areas }.
  ask(event, fields, headers = {}) {
    return this.post('/v1/holds', { event: event.id ?? event, ...fields }, headers);
  }

  // Asks for places that must be granted; resolves to the hold's JSON.
  async take(event, fields, headers = {}) {
    const answer = await patiently(() => this.ask(event, fields, headers));
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  }

  // Makes a GET that must succeed; resolves to its JSON.
  async read(target) {
    const answer = await this.get(target);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  // Resolves to the map of an event as { seat name: character }.
  async map(event) { return mapOf(await this.read(`/v1/events/${event.id ?? event}/seats`)); }

  // Resolves to the places left in each area, according to the map: { area name: places }.
  async areas(event) { return areasOf(await this.read(`/v1/events/${event.id ?? event}/seats`)); }

  // Resolves to { available, held, booked, blocked } of an event.
  async counts(event) {
    const { available, held, booked, blocked } = await this.read(`/v1/events/${event.id ?? event}`);
    return { available, held, booked, blocked };
  }

  // Resolves to the sum of a metric over the samples whose labels include `labels`; undefined if there are none.
  async metric(name, labels = {}) {
    const answer = await this.get('/metrics');
    assert.equal(answer.status, 200, answer.text);
    const lines = answer.text.split('\n').filter((line) => line.startsWith(name)); // of hundreds, all of which one test parses
    const found = parseMetrics(lines.join('\n')).filter((sample) => sample.name === name
      && Object.entries(labels).every(([key, value]) => sample.labels[key] === value));
    return found.length === 0 ? undefined : found.reduce((sum, sample) => sum + sample.value, 0);
  }

  // For the end of a suite: stops the server and asserts that it met no surprises.
  async finish() {
    const surprises = await this.metric('holdfast_ledger_surprises_total').catch(() => 0);
    await this.stop();
    assert.equal(surprises, 0);
  }

  // Stops the server cleanly and starts it again on the same directory, on another port.
  async restart() {
    await this.stop({ keep: true });
    await this.launch();
  }
}

// A server at an address, started by anyone.
export class Remote extends Client {
  // `tls`: options of node:tls, for a server with HTTPS.
  constructor({ host, port, tls } = {}) {
    super();
    this.host = host;
    this.port = port;
    this.tls = tls;
    this.agent = this.newAgent();
    this.isPatient = false;
    this.n_repeated = 0;
  }

  // The server closes a connection that rests for 30 s, and a request that is sent at that moment is lost: none is kept
  // for so long.
  newAgent() {
    const options = { keepAlive: true, maxSockets: 64, timeout: IDLE_MS };
    return this.tls ? new https.Agent({ ...options, ...this.tls }) : new http.Agent(options);
  }

  // Resolves to { status, headers, text, bytes, json }.  A body that is neither a string nor a
  // Buffer is sent as JSON.  Asserts what every answer must have.
  request(...request) {
    if (!this.isPatient || this.n_repeated >= REPEATED_MAX) return this.#send(...request);
    let tries = 0;
    return patiently(() => {
      if (tries++ === 1) this.n_repeated++;
      return this.#send(...request);
    });
  }

  #send(method, target, body, headers = {}, { agent = this.agent } = {}) {
    const raw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
    const payload = raw ? body : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const req = (this.tls ? https : http).request({
        ...this.tls, host: this.host, port: this.port, method, path: target, agent, timeout: REQUEST_TIMEOUT_MS,
        headers: {
          ...(payload === undefined ? {} : {
            'Content-Type': 'application/json',
            'Content-Length': Buffer.byteLength(payload),
          }),
          ...headers,
        },
      }, (res) => {
        const chunks = [];
        res.on('data', (chunk) => chunks.push(chunk));
        res.on('error', reject);
        res.on('end', () => {
          try {
            resolve(finish(`${method} ${target}`, res, Buffer.concat(chunks)));
          } catch (error) { reject(error); }
        });
      });
      req.on('timeout', () => req.destroy(new Error(
        `${method} ${target}: no answer in ${REQUEST_TIMEOUT_MS} ms`)));
      req.on('error', reject);
      req.end(payload);
    });
  }
}

export class Server extends Remote {
  constructor({ dir, ownsDir = dir === undefined, args = [], env = {}, wrap, ledger, gate, isPatient = false, tls = process.env.HOLDFAST_TEST_TLS === '1' } = {}) {
    super(tls ? { tls: tlsIdentity().tls } : {});
    this.isPatient = isPatient;
    this.ownsDir = ownsDir;
    this.dir = dir ?? tempDir();
    this.args = tls ? [...tlsIdentity().args, ...args] : args;
    this.place = { ledger, gate };
    this.env = environment({
      ...(ledger ? { HOLDFAST_LEDGER: ledger } : {}), ...(gate ? { HOLDFAST_GATE: gate } : {}), ...env,
    }, !wrap); // what is traced cannot be searched for leaks
    this.wrap = wrap ?? ((argv) => argv);
    this.logs = ''; // stderr of this server, over all its restarts
  }

  get database() { return path.join(this.dir, 'holdfast.db'); }
  get ledger() { return this.place.ledger ?? `sqlite:${this.database}`; }
  get gate() { return this.place.gate; }
  get stderr() { return this.run.stderr; }
  get pid() { return this.run.pid; }

  // A server that did not reach its ledger in time, or fell silent amid a transaction, on a machine that stood still, is started again, as a supervisor does.
  async launch() {
    for (let tries = 3; ; tries--) {
      try {
        return await this.#launch();
      } catch (error) {
        if (tries === 1 || !/no answer in time while connecting|idle-in-transaction timeout/.test(error.message)) throw error;
      }
    }
  }

  async #launch() {
    const argv = [HOLDFASTD, '--listen', '127.0.0.1:0', '--data', this.dir, ...this.args];
    const [command, ...rest] = this.wrap(argv);
    this.run = launch(command, rest, { env: this.env });
    const { run } = this;
    const line = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        process.kill(run.pid, 'SIGKILL');
        reject(new Error(`no first line within ${START_TIMEOUT_MS} ms:\n${run.stderr}`));
      }, START_TIMEOUT_MS);
      const look = () => {
        const end = run.stdout.indexOf('\n');
        if (end < 0) return;
        clearTimeout(timer);
        run.child.stdout.off('data', look);
        resolve(run.stdout.slice(0, end));
      };
      run.child.stdout.on('data', look);
      run.done.then(({ code, signal }) => {
        clearTimeout(timer);
        reject(new Error(`server ended at start (${code ?? signal}):\n${run.stderr}`));
      }, (error) => { clearTimeout(timer); reject(error); });
    });
    const match = /^holdfastd listening on https?:\/\/\[?([0-9a-f.:]+?)\]?:(\d+)$/.exec(line);
    assert.ok(match, `first line on stdout: ${JSON.stringify(line)}`);
    this.host = match[1];
    this.port = Number(match[2]);
    this.agent = this.newAgent();
  }

  // Sends SIGTERM; resolves when the process has ended, after asserting its exit status and a clean stderr.
  async stop({ keep = false } = {}) {
    if (!this.run) return;
    const { run } = this;
    if (!run.ended) process.kill(run.pid, 'SIGTERM');
    const timer = setTimeout(() => process.kill(run.pid, 'SIGKILL'), STOP_TIMEOUT_MS);
    const ended = await run.done;
    clearTimeout(timer);
    this.#ended(keep);
    assertCleanStderr(run.stderr);
    assert.deepEqual(ended, { code: 0, signal: null }, `after SIGTERM, ${JSON.stringify(ended)}:\n${run.stderr.slice(-8000)}`);
  }

  async kill9() {
    const { run } = this;
    process.kill(run.pid, 'SIGKILL');
    const ended = await run.done;
    this.#ended(true);
    assertCleanStderr(run.stderr);
    assert.equal(ended.signal, 'SIGKILL', `it ended by itself: ${JSON.stringify(ended)}`);
  }

  #ended(keep) {
    this.agent.destroy();
    this.logs += this.run.stderr;
    if (!keep && this.ownsDir) {
      removeTempDir(this.dir);
      forget(this.dir);
    }
    if (!keep) this.run = null;
  }

  // Resolves to the address that it has for streams alone (--stream-listen).
  async streams() {
    const [, host, port] = await until('it says where streams are',
      () => /^streams on https?:\/\/\[?([0-9a-f.:]+?)\]?:(\d+)$/m.exec(this.run.stdout));
    return { host, port: Number(port), tls: this.tls };
  }

  // Stops the process wherever it is, until `resume`.
  pause() { process.kill(this.pid, 'SIGSTOP'); }
  // A server that stood still for longer than connections may be idle closes them when it goes on, so requests from
  // now on are sent on others.
  resume() {
    this.agent = this.newAgent();
    process.kill(this.pid, 'SIGCONT');
  }

  // Returns the rows of a read-only query on the ledger, as objects.
  sql(query) { return this.place.ledger ? psqlQuery(this.place.ledger, query) : sqliteQuery(this.database, query); }
}

// Several servers on one ledger that act as one to the client: each request goes to the next server.  A server
// may show a moment later what was done through another (that is documented), so before a request
// goes to a server, the server gets the time to show what was done through the others.
export class Servers extends Client {
  #next = 0;
  #stale = 0; // entries of the gate about free seats
  #unnoted = false;
  #news = new Map(); // event -> the servers that may not show its changes yet
  #changed = new Set(); // events changed since all servers showed the same map
  #eventOf = new Map(); // hold -> event
  #events = new Set();

  constructor(servers) { super(); this.servers = servers; }

  // The first server's properties, for tests about one connection or one process.
  get host() { return this.servers[0].host; }
  get port() { return this.servers[0].port; }
  get agent() { return this.servers[0].agent; }
  get tls() { return this.servers[0].tls; }
  get pid() { return this.servers[0].pid; }
  get dir() { return this.servers[0].dir; }
  get ledger() { return this.servers[0].ledger; }
  get gate() { return this.servers[0].gate; }
  get stderr() { return this.servers.map(({ stderr }) => stderr).join(''); }
  get logs() { return this.servers.map(({ logs }) => logs).join(''); }
  streams() { return this.servers[0].streams(); }
  sql(query) { return this.servers[0].sql(query); }

  async launch() { for (const server of this.servers) await server.launch(); }
  async stop(options) { await all(this.servers, (server) => server.stop(options)); }
  async kill9() { await all(this.servers, (server) => server.kill9()); }

  // Returns the next server, for a connection that is not made by `request`: its changes are not recorded.
  turn() {
    this.#unnoted = true;
    return this.#turn();
  }

  #turn() { return this.servers[this.#next++ % this.servers.length]; }

  async request(method, target, body, headers, options) {
    const [, drawn] = /^\/v1\/events\/([^/?]+)\/seats/.exec(target) ?? [];
    if (this.#unnoted && method === 'GET' && target.startsWith('/v1/events/')) await this.waitUntilEqual();
    else if (method === 'GET' && this.#changed.has(drawn)) await this.waitUntilEqual([drawn]);
    const server = this.#turn();
    await this.#catchUp(server);
    const answer = await server.request(method, target, body, headers, options);
    this.#note(server, method, target, answer);
    return answer;
  }

  // A gate that was not reached in time when a seat became free, or that heard late of the hold before, refuses that seat until
  // the next round of the reconciler, though every map shows it free.  That is waited for, but it has to be rare.
  async grant(event, seats, fields = {}, headers = {}) {
    const answer = await this.hold(event, seats, fields, headers);
    const { code, seats: refused } = answer.json ?? {};
    if (code !== 'seat_taken' || !this.gate || this.#stale === STALE_MAX) return granted(answer);
    const map = await this.map(event);
    if (!refused.every((seat) => map[seat] === '.')) return granted(answer);
    this.#stale++;
    let again;
    await until('the gate has no entry of a free seat', async () => (again = await this.hold(event, seats, fields, headers)).status === 201, 60_000);
    return again.json;
  }

  // Resolves to the sum over all servers if the metric is a counter, otherwise to the largest value.
  async metric(name, labels) {
    const values = (await Promise.all(this.servers.map((server) => server.metric(name, labels)))).filter((v) => v !== undefined);
    if (values.length === 0) return undefined;
    return /_(total|count|sum|bucket)$/.test(name) ? values.reduce((sum, v) => sum + v, 0) : Math.max(...values);
  }

  // Waits until every server shows the same map of these events, whichever server and connection changed it.
  async waitUntilEqual(events = this.#events) {
    for (const event of events) {
      this.#changed.delete(event);
      await this.#agree(async (server) => (await server.request('HEAD', `/v1/events/${event}/seats`)).headers.etag);
      this.#news.delete(event);
    }
  }

  // Waits until all servers show the same.  Where requests that are under way change it all the time they may never do,
  // so once each of them has shown something else the wait ends after CATCH_UP_MS.
  async #agree(shows) {
    const from = Date.now();
    const look = () => Promise.all(this.servers.map(shows));
    const first = await look();
    const moved = new Set();
    for (let now = first; new Set(now).size > 1; now = await look()) {
      now.forEach((text, i) => { if (text !== first[i]) moved.add(i); });
      const elapsedMs = Date.now() - from;
      if (elapsedMs > (moved.size === this.servers.length ? CATCH_UP_MS : CATCH_UP_MAX_MS)) return;
      await sleep(elapsedMs < 3 ? 3 : 20); // a change comes at once, or some 40 ms later with others
    }
  }

  #note(server, method, target, { status, json }) {
    const [, kind, id] = /^\/v1\/(events|holds|bookings)(?:\/([^/?]+))?/.exec(target) ?? [];
    if (json?.object === 'hold') this.#eventOf.set(json.id, json.event);
    if (json?.object === 'event') this.#events.add(json.id);
    if (method === 'GET' || method === 'HEAD' || status >= 300) return;
    const event = json?.event ?? (kind === 'events' ? id : this.#eventOf.get(id));
    if (!event) return;
    this.#changed.add(event);
    // A new set for each change, so that a request that waits for an earlier one does not forget this one.
    this.#news.set(event, new Set([...this.#news.get(event) ?? [], ...this.servers.filter((other) => other !== server)]));
  }

  async #catchUp(server) {
    for (const [event, unseen] of this.#news) {
      if (!unseen.has(server)) continue;
      await this.#agree(async (each) => (await each.get(`/v1/events/${event}`)).text);
      unseen.delete(server); // not before: requests that are made meanwhile have to wait, too
    }
  }
}

// Does the work for every item, even if it fails for one; then throws the first failure.
async function all(list, work) {
  const failed = (await Promise.allSettled(list.map(work))).find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
}

function finish(what, res, bytes) {
  const { headers, statusCode: status } = res;
  const plain = headers['content-encoding'] === 'gzip' && bytes.length > 0 ? zlib.gunzipSync(bytes) : bytes;
  const text = plain.toString('utf8');
  const type = headers['content-type'] ?? '';
  assert.ok(headers['x-request-id'], `${what}: ${status} without X-Request-Id`);
  const answer = { status, headers, rawHeaders: res.rawHeaders, text, bytes };
  if (/^application\/(problem\+)?json(;|$)/.test(type)) answer.json = JSON.parse(text || 'null');
  return answer;
}

export function mapOf(snapshot) {
  const map = {};
  for (const section of snapshot.sections) {
    for (const row of section.rows) {
      [...row.seats].forEach((character, index) => {
        map[`${section.name}-${row.name}-${index + 1}`] = character;
      });
    }
  }
  return map;
}

export const areasOf = (snapshot) => Object.fromEntries(snapshot.areas.map(({ name, available }) => [name, available]));

// Parses Prometheus text to [{ name, labels, value }]; throws on a malformed line.
export function parseMetrics(text) {
  const samples = [];
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    assert.ok(match, `not a sample: ${JSON.stringify(line)}`);
    const labels = {};
    for (const [, key, value] of (match[2] ?? '').matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)) {
      labels[key] = value;
    }
    const value = match[3] === '+Inf' ? Infinity : Number(match[3]);
    assert.ok(!Number.isNaN(value), `not a number: ${JSON.stringify(line)}`);
    samples.push({ name: match[1], labels, value });
  }
  return samples;
}

export function sqliteQuery(database, query, { readOnly = true } = {}) {
  const out = execFileSync('sqlite3', [...SQLITE_WAITS, ...(readOnly ? ['-readonly'] : []), '-json', database, query],
    { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 });
  return out.trim() === '' ? [] : JSON.parse(out);
}

let lastKey = 0;
// Returns an Idempotency-Key that was not used before.
export const newKey = () => `test-key-${process.pid}-${Date.now()}-${++lastKey}`;
