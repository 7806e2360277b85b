// The harness of the black-box suites: real servers in temporary directories, real sockets.
//
//   const server = await start();
//   const answer = await server.post('/v1/holds', { event, seats: ['S-A-1'] });
//   await server.stop();            // SIGTERM; exit 0 and a quiet sanitizer, or it throws
//
// Binaries come from HOLDFASTD and HOLDFAST (default build/holdfastd, build/holdfast).  Every
// process started here is remembered by its pid and ended, at the latest, when the test ends.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import zlib from 'node:zlib';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const binary = (name, fallback) => path.resolve(root, process.env[name] || fallback);
export const HOLDFASTD = binary('HOLDFASTD', 'build/holdfastd');
export const HOLDFAST = binary('HOLDFAST', 'build/holdfast');

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 30_000;
const REQUEST_TIMEOUT_MS = 30_000;
const SANITIZER = /(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|runtime error:/;

// ---- what must be gone when the test process ends ----

const children = new Set();
const tempDirs = new Set();
const exitActions = new Set();

process.on('exit', () => {
  for (const child of children) {
    try { process.kill(child.pid, 'SIGKILL'); } catch { /* already gone */ }
  }
  for (const action of exitActions) {
    try { action(); } catch { /* nothing left to do about it */ }
  }
  for (const dir of tempDirs) fs.rmSync(dir, { recursive: true, force: true });
});
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => process.exit(1));

export const onExit = (action) => exitActions.add(action);
export const offExit = (action) => exitActions.delete(action);

export function tempDir() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-'));
  tempDirs.add(dir);
  return dir;
}

export function removeTempDir(dir) {
  fs.rmSync(dir, { recursive: true, force: true });
  tempDirs.delete(dir);
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Calls `probe` until it returns something truthy; throws after `timeoutMs`.
export async function until(what, probe, timeoutMs = 5000, stepMs = 20) {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const found = await probe();
    if (found) return found;
    assert.ok(Date.now() < deadline, `waited ${timeoutMs} ms in vain: ${what}`);
    await sleep(stepMs);
  }
}

// Run `limit` copies of an async worker over the items.
export async function pool(items, limit, work) {
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const index = next++;
      await work(items[index], index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
}

// ---- processes ----

// The leak sanitizer may take seconds at the end of each process: it is asked where `leaks` says so.
export const environment = (env, leaks) => ({
  ...process.env,
  ...(leaks ? {} : { ASAN_OPTIONS: [process.env.ASAN_OPTIONS, 'detect_leaks=0'].filter(Boolean).join(':') }),
  ...env,
});

// Starts any program and remembers it.  `done` resolves to { code, signal }.
export function launch(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const run = { child, pid: child.pid, stdout: '', stderr: '', ended: null };
  children.add(child);
  child.stdout?.on('data', (data) => { run.stdout += data; });
  child.stderr?.on('data', (data) => { run.stderr += data; });
  run.done = new Promise((resolve, reject) => {
    child.once('error', (error) => { children.delete(child); reject(error); });
    child.once('close', (code, signal) => {
      children.delete(child);
      run.ended = { code, signal };
      resolve(run.ended);
    });
  });
  run.done.catch(() => {});
  return run;
}

// Ends what tests that failed left running.  For the `after` of a suite whose tests start servers of
// their own: an open connection to one of them would keep the test process alive.
export async function reap() {
  for (const child of children) child.kill('SIGKILL');
  await until('the processes are gone', () => children.size === 0);
}

// Runs a server that is expected to refuse: resolves to { code, signal, stdout, stderr }.
export async function runServer(args, { timeoutMs = 20_000, wrap = (argv) => argv, env } = {}) {
  const [command, ...rest] = wrap([HOLDFASTD, ...args]);
  const run = launch(command, rest, { env: environment(env, false) });
  const timer = setTimeout(() => process.kill(run.pid, 'SIGKILL'), timeoutMs);
  const ended = await run.done;
  clearTimeout(timer);
  return { ...ended, stdout: run.stdout, stderr: run.stderr };
}

export function assertCleanStderr(stderr) {
  assert.ok(!SANITIZER.test(stderr), `the sanitizer speaks:\n${stderr.slice(-8000)}`);
}

// Options: dir (default: a temporary one), args, env, wrap(argv) -> argv for a shell around it,
// leaks (look for them at the end).
export async function start(options = {}) {
  const server = new Server(options);
  await server.launch();
  return server;
}

export class Server {
  constructor({ dir, args = [], env = {}, wrap = (argv) => argv, leaks = false } = {}) {
    this.ownsDir = dir === undefined;
    this.dir = dir ?? tempDir();
    this.args = args;
    this.env = environment(env, leaks);
    this.wrap = wrap;
    this.logs = ''; // stderr of every life of this server
  }

  get database() { return path.join(this.dir, 'holdfast.db'); }
  get stderr() { return this.run.stderr; }
  get pid() { return this.run.pid; }

  async launch() {
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
    const match = /^holdfastd listening on http:\/\/\[?([0-9a-f.:]+?)\]?:(\d+)$/.exec(line);
    assert.ok(match, `first line on stdout: ${JSON.stringify(line)}`);
    this.host = match[1];
    this.port = Number(match[2]);
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  }

  // SIGTERM; resolves when the process is gone, having checked its exit and its stderr.
  async stop({ keep = false } = {}) {
    if (!this.run) return;
    const { run } = this;
    if (!run.ended) process.kill(run.pid, 'SIGTERM');
    const timer = setTimeout(() => process.kill(run.pid, 'SIGKILL'), STOP_TIMEOUT_MS);
    const ended = await run.done;
    clearTimeout(timer);
    this.#over(keep);
    assertCleanStderr(run.stderr);
    assert.deepEqual(ended, { code: 0, signal: null }, `after SIGTERM:\n${run.stderr.slice(-8000)}`);
  }

  // The end of a suite: no surprises on the way, and stop.
  async finish() {
    const surprises = await this.metric('holdfast_ledger_surprises_total').catch(() => 0);
    await this.stop();
    assert.equal(surprises, 0);
  }

  async kill9() {
    const { run } = this;
    process.kill(run.pid, 'SIGKILL');
    const ended = await run.done;
    this.#over(true);
    assertCleanStderr(run.stderr);
    assert.equal(ended.signal, 'SIGKILL', `it ended by itself: ${JSON.stringify(ended)}`);
  }

  // Stop cleanly and start again on the same directory (and another port).
  async restart() {
    await this.stop({ keep: true });
    await this.launch();
  }

  #over(keep) {
    this.agent.destroy();
    this.logs += this.run.stderr;
    if (!keep && this.ownsDir) removeTempDir(this.dir);
    if (!keep) this.run = null;
  }

  // Resolves to { status, headers, text, bytes, json }.  A body that is neither a string nor a
  // Buffer is sent as JSON.  Holds every answer to what every answer promises.
  request(method, target, body, headers = {}, { agent = this.agent } = {}) {
    const raw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body);
    const payload = raw ? body : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const req = http.request({
        host: this.host, port: this.port, method, path: target, agent,
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
      req.setTimeout(REQUEST_TIMEOUT_MS, () => req.destroy(new Error(
        `${method} ${target}: no answer in ${REQUEST_TIMEOUT_MS} ms`)));
      req.on('error', reject);
      req.end(payload);
    });
  }

  get(target, headers) { return this.request('GET', target, undefined, headers); }
  post(target, body, headers) { return this.request('POST', target, body, headers); }
  del(target, headers) { return this.request('DELETE', target, undefined, headers); }

  // The whole of a new event; 2 rows of 10 seats S-A-1 .. S-B-10 unless told otherwise.
  async createEvent(fields = {}, headers = {}) {
    const answer = await this.post('/v1/events', {
      name: 'Gala', currency: 'usd',
      sections: [{ name: 'S', tier: 'A', price: 1000, rows: 2, seats_per_row: 10 }],
      ...fields,
    }, headers);
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  }

  // An answer to a hold request; `seats` may be one name.
  hold(event, seats, fields = {}, headers = {}) {
    return this.post('/v1/holds',
      { event: event.id ?? event, seats: [].concat(seats), ...fields }, headers);
  }

  // A hold that must be granted; resolves to its JSON.
  async grant(event, seats, fields = {}, headers = {}) {
    const answer = await this.hold(event, seats, fields, headers);
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  }

  // An answer to a request for any places: { seats } or { best_available }, and/or { areas }.
  ask(event, fields, headers = {}) {
    return this.post('/v1/holds', { event: event.id ?? event, ...fields }, headers);
  }

  // Places that must be granted; resolves to the hold's JSON.
  async take(event, fields, headers = {}) {
    const answer = await this.ask(event, fields, headers);
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  }

  // A GET that must succeed; resolves to its JSON.
  async read(target) {
    const answer = await this.get(target);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  // The map of an event as { seat name: character }.
  async map(event) { return mapOf(await this.read(`/v1/events/${event.id ?? event}/seats`)); }

  // Places left in each area, as the map has them: { area name: places }.
  async areas(event) { return areasOf(await this.read(`/v1/events/${event.id ?? event}/seats`)); }

  // { available, held, booked, blocked } of an event.
  async counts(event) {
    const { available, held, booked, blocked } = await this.read(`/v1/events/${event.id ?? event}`);
    return { available, held, booked, blocked };
  }

  // The value of a metric whose labels include `labels`; undefined if it is not there.
  async metric(name, labels = {}) {
    const answer = await this.get('/metrics');
    assert.equal(answer.status, 200, answer.text);
    const found = parseMetrics(answer.text).filter((sample) => sample.name === name
      && Object.entries(labels).every(([key, value]) => sample.labels[key] === value));
    return found.length === 0 ? undefined : found.reduce((sum, sample) => sum + sample.value, 0);
  }

  // Rows of a query on the ledger's file, as objects.  Reads only.
  sql(query) { return sqliteQuery(this.database, query); }
}

function finish(what, res, bytes) {
  const { headers, statusCode: status } = res;
  const plain = headers['content-encoding'] === 'gzip' ? zlib.gunzipSync(bytes) : bytes;
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

// Prometheus text as [{ name, labels, value }]; throws on a line that is not of the format.
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
  const out = execFileSync('sqlite3', [...(readOnly ? ['-readonly'] : []), '-json', database, query],
    { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 });
  return out.trim() === '' ? [] : JSON.parse(out);
}

let lastKey = 0;
// An Idempotency-Key nobody used before.
export const newKey = () => `test-key-${process.pid}-${Date.now()}-${++lastKey}`;
