// The driver of the conformance runner: requests as lines of JSON on stdin, answers on stdout with the same `id`, in any order.
// Every request is carried out at once, so that a call that waits holds up no other.  The runner's page has the protocol.

import { createRequire } from 'node:module';
import readline from 'node:readline';
import { checkFence, Client, webhooks } from './index.js';

const clients = new Map();
const streams = new Map(); // by name: changes that were not asked for yet, and who waits for one
const maps = new Map();
const locks = new Map();

const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const camelKeys = (fields = {}) => Object.fromEntries(Object.entries(fields).map(([name, value]) => [camel(name), value]));

class Usage extends Error {
  name = 'Usage';
  code = 'usage';
}

const find = (all, name) => all.get(name) ?? (() => { throw new Usage(`There is no ${name}.`); })();

// A stream that is read ahead, so that `next` can give up without losing anything.
class Reader {
  #ready = [];
  #waiting = [];
  #end = null;

  constructor(stream) {
    this.stream = stream;
    this.#read().catch((error) => { this.#end = error; for (const { reject } of this.#waiting.splice(0)) reject(error); });
  }

  async #read() {
    for await (const change of this.stream) {
      if (this.#waiting.length > 0) this.#waiting.shift().resolve(change);
      else this.#ready.push(change);
    }
  }

  next(timeout = 10) {
    if (this.#ready.length > 0) return this.#ready.shift();
    if (this.#end) throw this.#end;
    return new Promise((resolve, reject) => {
      const waiter = { resolve: (value) => { clearTimeout(timer); resolve(value); }, reject: (error) => { clearTimeout(timer); reject(error); } };
      const timer = setTimeout(() => { this.#waiting.splice(this.#waiting.indexOf(waiter), 1); resolve(null); }, timeout * 1000);
      this.#waiting.push(waiter);
    });
  }
}

async function read(name, stream, isOpenedFirst) {
  if (isOpenedFirst) await stream.open();
  streams.set(name, new Reader(stream));
  return null;
}

// ---- guarded databases ----

// The packages of the tests are not beside the client, which needs none.
const { Client: Postgres } = await Promise.resolve().then(() => createRequire(new URL('../../tests/', import.meta.url))('pg')).catch(() => ({}));
const { DatabaseSync: Sqlite } = await import('node:sqlite').catch(() => ({}));

const LACKS = {
  fork: 'JavaScript does not fork',
  ...(Postgres ? {} : { 'check_fence postgres': 'pg is not installed' }),
  ...(Sqlite ? {} : { 'check_fence sqlite': 'this Node has no SQLite' }),
  ...(Postgres || Sqlite ? {} : { check_fence: 'there is no database' }),
};

function connect(database) {
  if (!database.startsWith('sqlite:')) return new Postgres(database);
  const db = new Sqlite(database.replace('sqlite:', ''), { timeout: 60_000 });
  return Object.assign(db, { connect() {}, end: () => db.close(), query: undefined });
}

const operations = {
  lacks: () => LACKS,
  pid: () => process.pid,
  // The event loop stands still, and with it everything that this process does.
  block({ seconds }) { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seconds * 1000); },
  // Writes to what a lock protects: nothing but its fence.
  async check_fence({ database, resource, fence }) {
    const connection = connect(database);
    const run = (sql) => (connection.query ?? connection.exec).call(connection, sql);
    await connection.connect();
    try {
      await run('BEGIN');
      await checkFence(connection, resource, fence);
      await run('COMMIT');
    } finally {
      await connection.end();
    }
  },
  client({ name, urls, options }) {
    clients.set(name, new Client(urls, camelKeys(options)));
    return null;
  },
  async close_client({ name }) {
    await find(clients, name).close();
    clients.delete(name);
    return null;
  },
  call({ client, call, args = {}, options }) {
    const [group, method] = call.split('.');
    const perform = find(clients, client)[group]?.[camel(method ?? '')];
    if (!perform) throw new Usage(`There is no call ${call}.`);
    const { id, ...params } = args;
    return perform(...(id === undefined ? [] : [id]), params, camelKeys(options));
  },
  stream: ({ client, name, event, after }) => read(name, find(clients, client).events.stream(event, after === undefined ? {} : { after }), after === undefined),
  follow: ({ client, name, entry }) => read(name, find(clients, client).waitlist.stream(entry), true),
  watch: ({ client, name, lock }) => read(name, find(clients, client).watch(lock), true),
  next: ({ name, timeout }) => find(streams, name).next(timeout),
  close({ name }) {
    if (!maps.has(name)) find(streams, name).stream.close();
    maps.get(name)?.close();
    streams.delete(name);
    maps.delete(name);
    return null;
  },
  async map({ client, name, event }) {
    maps.set(name, await find(clients, client).events.seatMap(event));
    return null;
  },
  map_state({ name }) {
    const { seq, seats, areas } = find(maps, name);
    return { seq, seats: Object.fromEntries(seats), areas };
  },
  async lock({ client, name, locks: names, options }) {
    const lock = await find(clients, client).lock(names.length === 1 ? names[0] : names, camelKeys(options));
    locks.set(name, lock);
    const { fence, fences, slot } = lock;
    return { fence, fences, slot };
  },
  lock_state({ name }) {
    const { held, lost } = find(locks, name);
    return { held, lost };
  },
  async lock_await_lost({ name, timeout = 10 }) {
    const { signal } = find(locks, name);
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, timeout * 1000);
      const end = () => { clearTimeout(timer); resolve(); };
      if (signal.aborted) end();
      else signal.addEventListener('abort', end, { once: true });
    });
    return { lost: signal.aborted };
  },
  async unlock({ name }) {
    const lock = find(locks, name);
    locks.delete(name);
    await lock.release();
    return null;
  },
  webhook: ({ body, headers, secret }) => webhooks.verify(body, headers, secret),
};

function shown({ name, stack, code = null, status = null, detail = stack, retry_after = null, extra = {} }) {
  return { class: name, code, status, detail, retry_after, extra };
}

async function carryOut({ id, op, ...request }) {
  let answer;
  try {
    if (!Object.hasOwn(operations, op)) throw new Usage(`There is no ${op}.`);
    answer = { id, value: (await operations[op](request)) ?? null };
  } catch (error) {
    answer = { id, error: shown(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}

const lines = readline.createInterface({ input: process.stdin });
lines.on('line', (line) => { if (line.trim()) carryOut(JSON.parse(line)); });
lines.on('close', () => process.exit(0));
