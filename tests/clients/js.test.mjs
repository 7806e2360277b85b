// The JavaScript client (clients/js) against a real server, also through a proxy that makes faults.
// backends: own
// time limit: 600 s

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import util from 'node:util';
import pg from 'pg';
import { Webhook } from 'standardwebhooks';
import {
  checkFence, Client, Conflict, Gone, HoldfastError, LockLost, NotFound, OPERATIONS, OutcomeUnknown, StaleFence, Unavailable, webhooks,
} from '../../clients/js/index.js';
import * as inBrowsers from '../../clients/js/browser.js';
import { look, waiting } from '../support/locks.mjs';
import { Document } from '../support/openapi.mjs';
import { startProxy } from '../support/proxy.mjs';
import { areasOf, freePort, launch, mapOf, reap, sleep, start, tempDir, until } from '../support/server.mjs';

const PACKAGE = fileURLToPath(new URL('../../clients/js/', import.meta.url));
const LONG_S = 120; // a TTL that outlasts a machine that stands still
const aborted = (signal) => signal.aborted || once(signal, 'abort');
const rejected = (promise) => promise.then((value) => assert.fail(`it was not refused: ${JSON.stringify(value)}`), (error) => error);

let server;
let url;
let client;
before(async () => {
  server = await start();
  url = `http://127.0.0.1:${server.port}`;
  client = new Client(url);
});
after(async () => {
  try { await client?.close(); await server?.stop(); } finally { await reap(); }
});

// A proxy of HTTP in front of the server.  `fault(request, n)` says what becomes of the nth request: undefined (it passes),
// 'lose' (it is not forwarded, and the connection is reset), 'cut' (it is carried out, and the answer is lost), 'swallow'
// (nothing ever comes), or an answer { status, headers, body }.  `requests` has all of them.
async function startFaults(fault, to = () => server.port) {
  const requests = [];
  const listener = http.createServer(async (request, response) => {
    const chunks = [];
    request.on('error', () => {});
    for await (const chunk of request) chunks.push(chunk);
    const { method, url: target, headers } = request;
    const seen = { method, target, headers, body: Buffer.concat(chunks).toString() };
    requests.push(seen);
    const what = fault(seen, requests.length);
    if (what === 'swallow') return;
    if (what === 'lose') return void request.socket.resetAndDestroy();
    if (typeof what === 'object') return void response.writeHead(what.status, { 'Content-Type': 'application/problem+json', ...what.headers }).end(JSON.stringify(what.body ?? {}));
    const onward = http.request({ host: '127.0.0.1', port: to(), method, path: target, headers, agent: false }, (answer) => {
      answer.on('error', () => response.destroy());
      if (what === 'cut') return void answer.resume().on('end', () => request.socket.resetAndDestroy());
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    onward.end(seen.body);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  listener.unref();
  const close = () => { listener.closeAllConnections(); listener.close(); };
  return { url: `http://127.0.0.1:${listener.address().port}`, requests, close };
}

const problem = (status, code, headers = {}, more = {}) => ({ status, headers, body: { type: `/problems/${code}`, title: code, status, code, detail: code, ...more } });

describe('the package', () => {
  it('has one call for every operation of the document, with its method, path and manners', async () => {
    const document = await Document.load();
    assert.deepEqual(Object.keys(OPERATIONS).sort(), [...document.operations.keys()].sort());
    for (const [id, [call, method, target, flags = '']] of Object.entries(OPERATIONS)) {
      const { path: documented, method: verb, parameters } = document.operation(id);
      assert.deepEqual([method, target], [verb, documented], id);
      const names = parameters.map(({ name }) => name);
      assert.equal(flags.includes('key'), names.includes('Idempotency-Key'), id);
      assert.equal(flags.includes('page'), names.includes('cursor'), id);
      assert.equal(flags.includes('stream'), document.messages(id).size > 0, id);
      const [group, name] = call.split('.');
      assert.equal(typeof client[group][name], 'function', id);
    }
    assert.equal(new Set(Object.values(OPERATIONS).map(([call]) => call)).size, document.operations.size);
  });

  it('has types for all calls, by which its examples are correct', () => {
    const dir = tempDir();
    fs.mkdirSync(path.join(dir, 'node_modules'));
    fs.symlinkSync(PACKAGE, path.join(dir, 'node_modules/holdfast'));
    const calls = Object.values(OPERATIONS).map(([call]) => `void client.${call};`);
    fs.writeFileSync(path.join(dir, 'calls.mts'), `import { Client, LockLost, webhooks, checkFence } from 'holdfast';
const client = new Client(['http://localhost'], { key: 'k', timeout: 5 });
${calls.join('\n')}
for await (const { fence } of client.holds.list({ status: 'active' })) fence.toFixed();
for await (const change of client.events.stream('e', { after: 1 })) if (change.type === 'reset') change.map.seq.toFixed();
const length: number = await client.lock('a', { ttl: 5, wait: null }, async ({ fence, signal }) => signal.aborted ? 0 : fence);
const set = await client.lock(['a', 'b']);
// @ts-expect-error a set has no fence
set.fence.toFixed();
// @ts-expect-error a hold is of an event
await client.holds.create({ seats: ['S-A-1'] });
`);
    const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
    const options = ['--strict', '--noEmit', '--skipDefaultLibCheck', '--target', 'es2022', '--module', 'nodenext', '--lib', 'es2022,dom,dom.iterable,esnext.disposable'];
    execFileSync(process.execPath, [tsc, ...options, 'calls.mts'], { cwd: dir, encoding: 'utf8' });
  });

  // The page of docs/examples/live-map.html runs it in one, from another site (examples.test.mjs).
  it('has an entry for browsers that needs nothing of Node', () => {
    assert.deepEqual(Object.keys(inBrowsers).sort(),
      ['Client', 'Conflict', 'Gone', 'HoldfastError', 'LockLost', 'NotFound', 'OPERATIONS', 'OutcomeUnknown', 'SeatMap', 'StaleFence', 'Unavailable']);
    const seen = new Set();
    const visit = (file) => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const [, from] of fs.readFileSync(path.join(PACKAGE, file), 'utf8').matchAll(/ from '(.*)';$/gm)) {
        assert.ok(from.startsWith('./'), `${file} imports ${from}`);
        visit(from.slice(2));
      }
    };
    visit('browser.js');
    assert.ok(!seen.has('lock.js'));
  });
});

describe('an error', () => {
  let event;
  before(async () => { event = await client.events.create({ name: 'Gala', currency: 'usd', sections: [{ name: 'S', price: 1000, rows: 2, seats_per_row: 10 }] }); });

  const check = (error, Class, status, code) => {
    assert.equal(error.constructor, Class, error.stack);
    assert.ok(error instanceof HoldfastError && error instanceof Error);
    assert.deepEqual([error.name, error.status, error.code], [Class.name, status, code]);
    assert.equal(typeof error.detail, 'string');
    return error;
  };

  it('has the class of its family of codes, and what the problem says', async () => {
    const hold = await client.holds.create({ event: event.id, seats: ['S-A-1'] });
    const taken = check(await rejected(client.holds.create({ event: event.id, seats: ['S-A-1', 'S-A-2'] })), Conflict, 409, 'seat_taken');
    assert.deepEqual(taken.extra.seats, ['S-A-1']);
    assert.equal(taken.retry_after, null);
    check(await rejected(client.holds.create({ event: event.id.replace(/.{3}$/, '000') , seats: ['S-A-3'] })), NotFound, 404, 'no_such_event');
    check(await rejected(client.holds.create({ event: event.id, seats: [] })), HoldfastError, 400, 'invalid_request');
    assert.equal(await client.holds.release(hold.id), null);
    check(await rejected(client.holds.confirm(hold.id, { fence: hold.fence })), Gone, 410, 'hold_released');
    const idempotencyKey = 'the same key for two bodies';
    await client.holds.create({ event: event.id, seats: ['S-A-4'] }, { idempotencyKey });
    check(await rejected(client.holds.create({ event: event.id, seats: ['S-A-5'] }, { idempotencyKey })), Conflict, 422, 'idempotency_mismatch');
  });

  it('shows no id and no key', async () => {
    const key = 'seller-key-that-nobody-sees';
    const hold = await client.holds.create({ event: event.id, seats: ['S-B-1'] });
    const faults = await startFaults(() => problem(409, 'booking_exists', {}, { detail: `The hold ${hold.id} is booked.`, hold: hold.id }));
    const other = new Client(faults.url, { key });
    const error = await rejected(other.holds.release(hold.id));
    assert.equal(faults.requests[0].headers.authorization, `Bearer ${key}`);
    assert.equal(error.extra.hold, hold.id);
    for (const text of [util.inspect(error), `${error}`, util.inspect(other, { depth: 9, showHidden: true })]) {
      assert.ok(!text.includes(hold.id) && !text.includes(key), text);
    }
    faults.close();
  });

  it('is thrown for what cannot be sent, at once and without what it was', async () => {
    for (const id of [undefined, '', '..', null, 7]) assert.throws(() => client.holds.get(id), TypeError);
    assert.throws(() => client.events.close(event.id, {}, { idempotencyKey: 'ключ' }), TypeError);
    assert.ok(await rejected(client.holds.create({ event: event.id, seats: [1n] })) instanceof TypeError);
    for (const name of [undefined, '', '..', ['a', ''], []]) assert.ok(await rejected(client.lock(name, { wait: 0 })) instanceof TypeError);
    assert.match((await rejected(client.lock('a', { wait: 0, ttl_ms: 5000 }))).message, /no option ttl_ms/);
    for (const [urls, key] of [[url, 'secret\n'], ['http://me:secret@localhost'], ['ftp://secret'], ['http://localhost/secret'], ['localhost:8080'], [undefined], [[]]]) {
      assert.throws(() => new Client(urls, { key }), (error) => error instanceof TypeError && !error.message.includes('secret'));
    }
  });
});

describe('a call', () => {
  let event;
  before(async () => { event = await client.events.create({ name: 'Gala', currency: 'usd', sections: [{ name: 'S', price: 1000, rows: 2, seats_per_row: 20 }] }); });
  let n = 0;
  const seat = () => { n += 1; return `S-A-${n}`; };
  const hold = (of, options) => of.holds.create({ event: event.id, seats: [seat()] }, options);

  it('that lost its answer is repeated with the same key, and done once', async () => {
    const faults = await startFaults((_, i) => (i === 1 ? 'lose' : i <= 3 ? 'cut' : undefined));
    const made = await hold(new Client(faults.url));
    assert.equal(made.status, 'active');
    const keys = faults.requests.map(({ headers }) => headers['idempotency-key']);
    assert.equal(keys.length, 4);
    assert.equal(new Set(keys).size, 1);
    assert.match(keys[0], /^[0-9a-f]{32}$/);
    assert.equal(new Set(faults.requests.map(({ body }) => body)).size, 1);
    assert.equal((await client.holds.get(made.id)).status, 'active');
    await hold(new Client(faults.url), { idempotencyKey: 'a key of the caller' });
    assert.equal(faults.requests.at(-1).headers['idempotency-key'], 'a key of the caller');
    faults.close();
  });

  it('that is refused for now is repeated, after Retry-After where there is one', async () => {
    const passing = [
      problem(503, 'overloaded', { 'Retry-After': '1' }, { retry_after_ms: 30 }), problem(429, 'too_many_requests', { 'Retry-After': '0' }),
      problem(503, 'outcome_unknown'), problem(409, 'idempotency_in_flight', { 'Retry-After': '1' }), { status: 502 }, { status: 504, headers: { 'Content-Type': 'text/html' } },
    ];
    const times = [];
    const faults = await startFaults((_, i) => { times.push(performance.now()); return passing[i - 1]; });
    assert.equal((await hold(new Client(faults.url))).status, 'active');
    assert.equal(faults.requests.length, passing.length + 1);
    assert.ok(times[4] - times[3] >= 990, 'it waited for Retry-After');
    assert.equal(new Set(faults.requests.map(({ headers }) => headers['idempotency-key'])).size, 1);
    faults.close();
  });

  it('that got a verdict is not repeated', async () => {
    for (const [status, code] of [[400, 'invalid_request'], [401, 'unauthorized'], [404, 'no_such_event'], [409, 'sold_out'], [410, 'hold_expired'], [500, 'internal']]) {
      const faults = await startFaults(() => problem(status, code));
      assert.equal((await rejected(hold(new Client(faults.url)))).code, code);
      assert.equal(faults.requests.length, 1, code);
      faults.close();
    }
  });

  it('ends with its deadline: nothing was done, or nobody knows', async () => {
    const silent = await startFaults(() => 'swallow');
    const busy = await startFaults(() => problem(503, 'overloaded', { 'Retry-After': '600' }));
    const read = await rejected(new Client(silent.url, { timeout: 0.2 }).events.get(event.id));
    assert.deepEqual([read.constructor, read.code, read.status], [Unavailable, 'timeout', null]);
    const written = await rejected(hold(new Client(silent.url), { timeout: 0.2 }));
    assert.deepEqual([written.constructor, written.code], [OutcomeUnknown, 'outcome_unknown']);
    const refused = await rejected(hold(new Client(busy.url))); // not after ten minutes: the deadline is before that
    assert.deepEqual([refused.constructor, refused.code, refused.status, refused.retry_after], [Unavailable, 'overloaded', 503, 600]);
    const port = await freePort();
    await until('nobody is there, and it is told so', async () => {
      const { code } = await rejected(hold(new Client(`http://127.0.0.1:${port}`), { timeout: 0.2 }));
      return code === 'unreachable'; // not where the attempt stood still
    });
    const cut = await startFaults((_, i) => (i === 1 ? 'cut' : problem(503, 'overloaded', { 'Retry-After': '600' })));
    const unknown = await rejected(hold(new Client(cut.url)));
    assert.deepEqual([unknown.constructor, unknown.cause.code], [OutcomeUnknown, 'overloaded']);
    for (const each of [silent, busy, cut]) each.close();
  });

  it('is given up with the signal\'s reason', async () => {
    const silent = await startFaults(() => 'swallow');
    const giveUp = new AbortController();
    const call = rejected(hold(new Client(silent.url), { signal: giveUp.signal }));
    await until('it was sent', () => silent.requests.length === 1);
    const reason = new Error('enough');
    giveUp.abort(reason);
    assert.equal(await call, reason);
    assert.equal(await rejected(hold(client, { signal: giveUp.signal })), reason);
    silent.close();
  });

  it('goes to the next server at once if one is away or cannot, and stays there', async () => {
    const busy = await startFaults(() => problem(503, 'draining', { 'Retry-After': '600' }));
    const good = await startFaults(() => undefined);
    const both = new Client([`http://127.0.0.1:${await freePort()}`, busy.url, good.url]);
    await hold(both);
    await hold(both);
    assert.deepEqual([busy.requests.length, good.requests.length], [1, 2]);
    for (const each of [busy, good]) each.close();
  });

  it('of a list is a page, and all entries of all pages', async () => {
    const many = await client.events.create({ name: 'Many', currency: 'usd', sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 5 }] });
    for (let i = 1; i <= 5; i++) await client.holds.create({ event: many.id, seats: [`S-A-${i}`] });
    const page = await client.holds.list({ event: many.id, limit: 2 });
    assert.deepEqual([page.data.length, page.has_more], [2, true]);
    const seats = [];
    for await (const each of client.holds.list({ event: many.id, limit: 2 })) seats.push(...each.seats);
    assert.deepEqual(seats.sort(), ['S-A-1', 'S-A-2', 'S-A-3', 'S-A-4', 'S-A-5']);
  });
});

describe('a stream', () => {
  const create = (fields = {}) => client.events.create({
    name: 'Gala', currency: 'usd', sections: [{ name: 'S', price: 1000, rows: 2, seats_per_row: 20 }], areas: [{ name: 'Floor', price: 500, capacity: 50 }], ...fields,
  });
  const take = (event, ...seats) => client.holds.create({ event: event.id, seats });

  // Reads a stream in the background; `seats` are the changes of seats so far.
  function follow(stream) {
    const read = { changes: [], get seats() { return this.changes.flatMap(({ changes = [] }) => changes.map(([id, state]) => `${id}=${state}`)); } };
    read.done = (async () => { for await (const change of stream) read.changes.push(change); })();
    read.done.catch(() => {});
    return read;
  }

  it('delivers each change once and in order, however often its connection is lost', async () => {
    const event = await create();
    const proxy = await startProxy(server.port);
    const stream = new Client(`http://127.0.0.1:${proxy.port}`).events.stream(event.id);
    await stream.open(); // what happens from now on is delivered
    const read = follow(stream);
    const expected = [];
    for (let i = 1; i <= 12; i++) {
      await take(event, `S-A-${i}`);
      expected.push(`S-A-${i}=h`);
      if (i === 8) { proxy.cut(); await take(event, 'S-B-1'); expected.push('S-B-1=h'); proxy.restore(); }
      if (i % 4 === 2) await until('it was delivered', () => read.seats.includes(expected.at(-1)));
      if (i % 4 === 3) proxy.reset();
    }
    await client.events.close(event.id);
    await until('the end was delivered', () => read.changes.some(({ type, status }) => type === 'event' && status === 'closed'));
    assert.deepEqual([...read.seats].sort(), [...expected].sort()); // one message may have several, in the order of the map
    const seqs = read.changes.map(({ seq }) => seq);
    assert.deepEqual(seqs, [...seqs].sort((a, b) => a - b));
    assert.ok(read.changes.every(({ type }) => type !== 'reset'));
    stream.close();
    await read.done;
    await proxy.close();
  });

  it('begins where it is told to', async () => {
    const event = await create();
    const { seq } = await client.events.seats(event.id);
    await take(event, 'S-A-1');
    await take(event, 'S-A-2');
    for await (const change of client.events.stream(event.id, { after: seq })) {
      assert.deepEqual([change.type, change.changes], ['seats', [['S-A-1', 'h'], ['S-A-2', 'h']]]);
      break;
    }
  });

  it('that no longer knows what came between says so with the map, and goes on from there', async () => {
    const event = await create();
    await take(event, 'S-A-1');
    const stream = client.events.stream(event.id, { after: 1e9 }); // never was
    const read = follow(stream);
    await until('it is reset', () => read.changes.length > 0);
    const [{ type, seq, map }] = read.changes;
    assert.deepEqual([type, seq, mapOf(map)['S-A-1']], ['reset', map.seq, 'h']);
    await take(event, 'S-A-2');
    await until('it goes on', () => read.seats.length > 0);
    assert.deepEqual(read.seats, ['S-A-2=h']);
    stream.close();
    await read.done;
  });

  it('delivers no half of what belongs together, and nothing twice', async () => {
    const message = (id, event, data) => `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
    const seats = (id, seq, seat) => message(id, 'seats', { seq, changes: [[seat, 'h']], areas: {} });
    const parts = [
      seats(5, 5, 'S-A-1') + seats(undefined, 7, 'S-A-2'), // the connection is lost before the other half
      `retry: 1\n\n:\n\n${seats(5, 5, 'S-A-1')}${seats(undefined, 7, 'S-A-2')}${message(7, 'event', { seq: 7, status: 'closed', prices: {} })}${seats(undefined, 8, 'S-A-3')}id: 8\n\n`, // an id by itself ends a group, too
    ];
    const asked = [];
    const listener = http.createServer((request, response) => {
      asked.push(request.headers['last-event-id']);
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      const part = parts.shift() ?? '';
      for (let i = 0; i < part.length; i += 7) response.write(part.slice(i, i + 7));
      if (parts.length > 0) setTimeout(() => request.socket.destroy(), 50);
    });
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    const read = [];
    for await (const { type, seq } of new Client(`http://127.0.0.1:${listener.address().port}`).events.stream('evt_1', { after: 4 })) {
      read.push([type, seq]);
      if (seq === 8) break;
    }
    assert.deepEqual(read, [['seats', 5], ['seats', 7], ['event', 7], ['seats', 8]]);
    assert.equal(asked[0], '4');
    assert.ok(['4', '5'].includes(asked[1]), asked[1]);
    listener.closeAllConnections();
    listener.close();
  });

  it('ends with the signal\'s reason, or quietly when it is closed, and refuses what is not there', async () => {
    const event = await create();
    const giveUp = new AbortController();
    const given = follow(client.events.stream(event.id, {}, { signal: giveUp.signal }));
    giveUp.abort(new Error('enough'));
    await assert.rejects(given.done, /enough/);
    const stream = client.events.stream(event.id);
    const closed = follow(stream);
    await take(event, 'S-A-1');
    stream.close();
    await closed.done;
    const own = new Client(url);
    const map = await own.events.seatMap(event.id);
    const ended = follow(own.events.stream(event.id));
    await own.close();
    await Promise.all([ended.done, map.closed]);
    await assert.rejects(follow(client.events.stream(event.id.replace(/.{3}$/, '000'))).done, NotFound);
  });

  it('keeps a SeatMap equal to the map, also over lost connections and a restart of the server', async () => {
    const own = await start(); // restarted on the way
    const direct = () => new Client(`http://127.0.0.1:${own.port}`);
    try {
      const proxy = await startProxy(own.port);
      const rows = [{ name: 'A', seats: 5 }, { name: 'B', seats: ['left', 'right', '7'] }];
      const event = await direct().events.create({
        name: 'Gala', currency: 'usd', sections: [{ name: 'S', price: 1000, rows }, { name: 'T', price: 900, rows: 2, seats_per_row: 4 }], areas: [{ name: 'Floor', price: 500, capacity: 50 }],
      });
      const map = await new Client(`http://127.0.0.1:${proxy.port}`).events.seatMap(event.id);
      const kinds = new Set();
      map.addEventListener('change', ({ change }) => kinds.add(change.type));
      const words = { '.': 'available', h: 'held', b: 'booked', x: 'blocked' };
      const equal = async (what) => {
        const state = await direct().events.seats(event.id);
        await until(`${what}: it has caught up`, () => map.seq >= state.seq);
        const letters = state.sections.flatMap((section) => section.rows.flatMap((row) => [...row.seats]));
        assert.deepEqual([...map.seats.values()], letters.map((letter) => words[letter]), what);
        assert.deepEqual([map.areas, map.prices, map.status], [areasOf(state), state.prices, state.status], what);
      };
      assert.equal(map.seats.get('S-B-right'), 'available');
      const hold = await direct().holds.create({ event: event.id, seats: ['S-B-right', 'T-B-4'], areas: { Floor: 3 } });
      await direct().events.block(event.id, { sections: ['T'].slice(1), seats: ['S-A-1'] });
      await equal('held and blocked');
      assert.deepEqual([map.seats.get('S-B-right'), map.seats.get('S-A-1'), map.areas.Floor], ['held', 'blocked', 47]);
      proxy.reset();
      await direct().holds.confirm(hold.id, { fence: hold.fence });
      await direct().events.change(event.id, { prices: { S: 1100, T: 900, Floor: 400 } });
      await equal('booked, at other prices');
      proxy.cut();
      await own.restart(); // it forgets the past
      await direct().holds.create({ event: event.id, seats: ['T-A-1'] });
      await direct().events.close(event.id);
      proxy.target.port = own.port;
      proxy.restore();
      await equal('after the restart');
      assert.ok(kinds.has('seats') && kinds.has('event'));
      map.close();
      await map.closed;
      await proxy.close();
    } finally {
      await own.stop();
    }
  });
});

describe('a lock', () => {
  const other = () => new Client(url, { label: 'other' });
  const LONG = { ttl: LONG_S };
  const on = (name) => look(server, name);
  let n = 0;
  const next = () => { n += 1; return `js/${`${n}`.padStart(3, '0')}`; };

  it('is held while the work is done, with a fence that grows, and is free afterwards', async () => {
    const name = next();
    const fences = [];
    for (let i = 0; i < 2; i++) {
      assert.equal(await client.lock(name, LONG, async (lock) => {
        lock.check();
        assert.deepEqual([lock.name, lock.names, lock.held, lock.lost, lock.signal.aborted, lock.slot], [name, [name], true, false, false, 0]);
        const { holders } = await on(name);
        assert.deepEqual(holders.map(({ fence }) => fence), [lock.fence]);
        assert.match(holders[0].label, new RegExp(` ${process.pid}$`));
        fences.push(lock.fence);
        return 'done';
      }), 'done');
      assert.equal((await on(name)).n_holders, 0);
    }
    assert.ok(fences[1] > fences[0]);
    await assert.rejects(client.lock(name, LONG, () => { throw new Error('the work failed'); }), /the work failed/);
    assert.equal((await on(name)).n_holders, 0);
    const lock = await client.lock(name, LONG);
    await Promise.all([lock.release(), lock.release()]);
    assert.equal(lock.held, false);
    assert.throws(() => lock.check(), LockLost);
    assert.equal(lock.signal.aborted, false); // given back, not lost
  });

  it('is waited for, or not, and a place that is given up is gone', async () => {
    const name = next();
    const ann = await client.lock(name, LONG);
    const ben = other();
    const refused = await rejected(ben.lock(name, { ...LONG, wait: 0 }));
    assert.deepEqual([refused.constructor, refused.code, refused.extra.holders.length], [Conflict, 'lock_taken', 1]);
    assert.equal((await rejected(ben.lock(name, { ...LONG, wait: 0.2 }))).code, 'lock_taken');
    assert.equal((await on(name)).n_waiters, 0);
    const giveUp = new AbortController();
    const waits = rejected(ben.lock(name, { ...LONG, signal: giveUp.signal }));
    await waiting(server, name, ['other']);
    giveUp.abort(new Error('enough'));
    assert.equal((await waits).message, 'enough');
    await until('the place is given up', async () => (await on(name)).n_waiters === 0);
    const later = ben.lock(name, LONG); // for as long as it takes
    await waiting(server, name, ['other']);
    await ann.release();
    const lock = await later;
    assert.ok(lock.held && lock.fence > ann.fence);
    await ben.close();
    assert.deepEqual([lock.held, lock.lost, (await on(name)).n_holders], [false, true, 0]);
    await assert.rejects(lock.release(), LockLost);
  });

  it('is not waited for any longer by a client that is closed', async () => {
    const name = next();
    const ben = other();
    await client.lock(name, LONG, async () => {
      const waits = rejected(ben.lock(name, LONG));
      await waiting(server, name, ['other']);
      await ben.close();
      assert.equal((await waits).code, 'client_closed');
      assert.equal((await on(name)).n_waiters, 0);
    });
    assert.equal((await rejected(ben.lock(name))).code, 'client_closed');
  });

  it('is shared, has slots, a line by priority, and a value that others watch', async () => {
    const [shared, slots, line, led] = [next(), next(), next(), next()];
    const ben = other();
    const readers = await Promise.all([client, ben].map((each) => each.lock(shared, { ...LONG, shared: true, wait: 0 })));
    assert.equal((await rejected(ben.lock(shared, { ...LONG, wait: 0 }))).code, 'lock_taken');
    const two = await Promise.all([client, ben].map((each) => each.lock(slots, { ...LONG, slots: 2 })));
    assert.deepEqual(two.map(({ slot }) => slot).sort(), [0, 1]);
    assert.deepEqual(two.map(({ resource }) => resource).sort(), [`${slots}#0`, `${slots}#1`]);
    assert.equal(readers[0].resource, shared);
    assert.equal((await rejected(ben.lock(slots, { ...LONG, slots: 2, wait: 0 }))).code, 'lock_taken');
    assert.equal((await rejected(ben.lock(slots, { ...LONG, slots: 3, wait: 0 }))).code, 'slots_conflict');
    const first = await client.lock(line, LONG);
    const order = [];
    const join = (label, priority) => ben.lock(line, { ...LONG, label, priority }, () => { order.push(label); });
    const late = [join('low', 0)];
    await waiting(server, line, ['low']);
    late.push(join('high', 5));
    await waiting(server, line, ['high', 'low']);
    await first.release();
    await Promise.all(late);
    assert.deepEqual(order, ['high', 'low']);
    const watch = client.watch(led);
    await watch.open();
    const leader = await ben.lock(led, { ...LONG, value: '10.0.0.7:9000' });
    assert.equal((await client.locks.get(led)).value, '10.0.0.7:9000');
    await leader.setValue('10.0.0.8:9000');
    await leader.release();
    const told = [];
    for await (const { type, value } of watch) {
      told.push(value === undefined ? type : `${type} ${value}`);
      if (type === 'released') break;
    }
    assert.deepEqual(told.filter((each) => each !== 'value null'), ['granted', 'value 10.0.0.7:9000', 'value 10.0.0.8:9000', 'released']);
    await Promise.all([...readers, ...two].map((lock) => lock.release()));
    await ben.close();
  });

  it('of several names is all of them, in one order, or none', async () => {
    const [a, b, c] = [next(), next(), next()];
    const set = await client.lock([c, a, a], LONG);
    assert.deepEqual([set.names, Object.keys(set.fences), set.fence, set.name, set.resource], [[a, c], [a, c], null, null, null]);
    const ben = other();
    assert.equal((await rejected(ben.lock([c, b], { ...LONG, wait: 0 }))).code, 'lock_taken');
    assert.equal((await on(b)).n_holders, 0);
    const both = ben.lock([c, b], LONG);
    await waiting(server, c, ['other']);
    assert.equal((await on(b)).n_holders, 1);
    await set.release();
    assert.ok((await both).held);
    await ben.close();
    // Two who take the same locks in opposite order do not wait for each other.
    await Promise.all(Array.from({ length: 6 }, (_, i) => client.lock(i % 2 ? [a, b] : [b, a], LONG, () => sleep(1))));
  });

  it('survives lost answers: the request and its release are repeated with the same owner', async () => {
    const name = next();
    let cuts = 0;
    const faults = await startFaults(({ method, target }) => (method === 'POST' && !target.endsWith('keepalive') && cuts++ % 2 === 0 ? 'cut' : undefined));
    const ben = new Client(faults.url);
    const lock = await ben.lock(name, LONG);
    await lock.release(); // its answer was lost, too, and the repeat is told that nothing is there
    assert.equal((await on(name)).n_holders, 0);
    const asked = faults.requests.filter(({ target }) => target.includes('/locks/'));
    assert.ok(asked.length >= 4); // more where so much time passed that the session is followed
    assert.equal(new Set(asked.map(({ body }) => JSON.parse(body).owner)).size, 1);
    await ben.close();
    faults.close();
  });

  it('is kept past its TTL though servers ask keep-alives for long pauses, as long as one of them gets through', async () => {
    let n = 0;
    const faults = await startFaults(({ target }) => (target.endsWith('keepalive') && n++ % 3 !== 2 ? problem(503, 'no_master', { 'Retry-After': '600' }) : undefined));
    const ben = new Client(faults.url);
    const isKept = (ttl) => ben.lock(next(), { ttl }, async (lock) => {
      n = 0;
      await until('two keep-alives got through', () => n >= 6 || lock.lost, 4 * ttl * 1000 + 30_000);
      return lock.held;
    }).catch((error) => { assert.ok(error instanceof LockLost, error.stack); });
    assert.ok(await isKept(1.5) || await isKept(10) || await isKept(60)); // a machine that stands still for long loses short ones
    await ben.close();
    faults.close();
  });

  it('is taken at the master, to which a standby redirects, on a server of the same scheme', async () => {
    const name = next();
    const cellOf = (...urls) => ({ status: 200, headers: { 'Content-Type': 'application/json' }, body: { master: null, servers: urls.map((each) => ({ url: each })) } });
    const standby = await startFaults(({ target }) => (target === '/v1/cell' ? cellOf(url) : { status: 307, headers: { Location: url + target } }));
    const ben = new Client(standby.url);
    assert.equal(await ben.lock(name, LONG, ({ held }) => held), true);
    assert.deepEqual(standby.requests.map(({ target }) => target), ['/v1/sessions', '/v1/cell']); // the master is remembered
    assert.equal((await rejected(ben.holds.get('hold_1'))).status, 307); // only the lock service has one
    await ben.close();
    const plain = await startFaults(({ target }) => ({ status: 307, headers: { Location: `${url.replace('http', 'https')}${target}` } }));
    assert.ok((await rejected(new Client(plain.url, { timeout: 0.5 }).locks.get(name))) instanceof HoldfastError);
    // The access key goes to no server that the cell does not know.
    const stranger = await startFaults(() => ({ status: 200 }));
    const liar = await startFaults(({ target }) => (target === '/v1/cell' ? cellOf() : { status: 307, headers: { Location: stranger.url + target } }));
    assert.ok((await rejected(new Client(liar.url, { key: 'secret', timeout: 0.5 }).locks.get(name))) instanceof HoldfastError);
    assert.equal(stranger.requests.length, 0);
    for (const each of [standby, plain, stranger, liar]) each.close();
  });

  it('that an operator breaks is lost, and said to be', async () => {
    const name = next();
    const lock = await client.lock(name, LONG);
    await client.locks.breakLock(name);
    await aborted(lock.signal); // at once, or as soon as the session is followed
    assert.ok(lock.lost && !lock.held && lock.signal.reason instanceof LockLost);
    await assert.rejects(lock.release(), LockLost);
  });

  it('is lost before anybody else can hold it when the server does not answer', async () => {
    const own = await start();
    try {
      const [ann, ben] = [0, 1].map(() => new Client(`http://127.0.0.1:${own.port}`));
      const lock = await ann.lock('a', { ttl: 10 });
      const { signal } = lock;
      own.pause();
      await aborted(signal); // nothing else could tell it
      assert.ok(lock.signal.reason instanceof LockLost);
      own.resume();
      await ben.lock('a', LONG, (next) => {
        assert.ok(!lock.held && lock.lost);
        assert.ok(next.fence > lock.fence);
      });
      await assert.rejects(lock.release(), LockLost);
      await ann.lock('a', LONG, ({ held }) => assert.ok(held)); // with a session of its own
      await Promise.all([ann.close(), ben.close()]);
    } finally {
      await own.stop();
    }
  });

  it('is lost on a machine that slept past the TTL, as soon as it wakes', async () => {
    const program = `
      import fs from 'node:fs';
      import os from 'node:os';
      import { Client } from ${JSON.stringify(path.join(PACKAGE, 'index.js'))};
      const client = new Client(${JSON.stringify(url)});
      const lock = await client.lock(${JSON.stringify(next())}, { ttl: ${LONG_S} });
      const { signal } = lock;
      const before = lock.held, { uptime } = os, { readFileSync } = fs;
      // What only a sleep does: the monotonic clock of Node stood still.
      os.uptime = () => uptime() + ${2 * LONG_S};
      fs.readFileSync = (file, ...as) => (file === '/proc/uptime' ? String(parseFloat(readFileSync(file, ...as)) + ${2 * LONG_S}) : readFileSync(file, ...as));
      console.log(JSON.stringify([before, lock.held, signal.aborted, signal.reason.name]));
      await client.close();`;
    const run = launch(process.execPath, ['--input-type=module', '-e', program]);
    assert.deepEqual(await run.done, { code: 0, signal: null }, run.stderr);
    assert.deepEqual(JSON.parse(run.stdout), [true, false, true, 'LockLost']);
  });

  it('fails the work that it did not outlast', async () => {
    const name = next();
    const work = client.lock(name, LONG, async (lock) => {
      await client.locks.breakLock(name);
      return lock.fence;
    });
    await assert.rejects(work, LockLost);
  });

  it('does not keep a process from ending once it is released', async () => {
    const program = `
      import { Client } from ${JSON.stringify(path.join(PACKAGE, 'index.js'))};
      await new Client(${JSON.stringify(url)}).lock(${JSON.stringify(next())}, { ttl: 3600 }, () => {});`;
    const run = launch(process.execPath, ['--input-type=module', '-e', program]);
    assert.deepEqual(await run.done, { code: 0, signal: null }, run.stderr);
  });
});

describe('a fence', () => {
  // What better-sqlite3 and node:sqlite have in common, by the sqlite3 program: each call is a transaction.
  const sqlite = (file) => {
    const run = (sql) => execFileSync('sqlite3', ['-cmd', '.timeout 20000', file, sql], { encoding: 'utf8' }).trim();
    return {
      exec: run,
      prepare: (sql) => ({ run: (...values) => {
        const filled = values.reduce((text, value) => text.replace('?', typeof value === 'bigint' ? `${value}` : `'${value}'`), sql);
        return { changes: Number(run(`${filled}; SELECT changes()`)) };
      } }),
    };
  };
  const guards = async (connection) => {
    const check = async (resource, fence) => checkFence(connection, resource, fence);
    await check('report', 1763300000000017);
    await check('report', 1763300000000017); // a holder may write many times
    await check('report', 1763300000000018);
    await check('other', 1);
    const error = await rejected(check('report', 1763300000000017));
    assert.deepEqual([error.constructor, error instanceof Conflict, error.code], [StaleFence, true, 'stale_fence']);
    for (const [resource, fence] of [['', 1], ['x'.repeat(256), 1], ['report', 0], ['report', null], ['report', 1.5]]) await assert.rejects(check(resource, fence), TypeError);
  };

  it('that is stale is refused by SQLite', async () => {
    const db = sqlite(path.join(tempDir(), 'fence.db'));
    await guards(db);
    assert.equal(db.exec('SELECT fence, typeof(fence) FROM holdfast_fences WHERE resource = \'report\''), '1763300000000018|integer');
    assert.throws(() => checkFence({ ...db, inTransaction: false }, 'report', 1763300000000019), TypeError);
  });

  it('that is stale is refused by SQLite in Node', { skip: Number(process.versions.node.split('.')[0]) < 24 && 'node:sqlite is not in this Node' }, async () => {
    const { DatabaseSync } = await import('node:sqlite');
    const db = new DatabaseSync(':memory:');
    assert.throws(() => checkFence(db, 'report', 1), TypeError);
    db.exec('BEGIN IMMEDIATE');
    await guards(db);
  });

  it('is not checked by a pool, which has no transaction', () => {
    assert.throws(() => checkFence(new pg.Pool(), 'report', 1), { constructor: TypeError, message: /pool/ });
  });
});

describe('a notification', () => {
  const secret = `whsec_${Buffer.from('a secret of the shop, 24 bytes+').toString('base64')}`;
  const body = JSON.stringify({ type: 'booking.confirmed', timestamp: '2026-11-15T19:33:00.000Z', data: { object: 'booking', name: 'Zoë' } });
  const signed = (at = new Date(), by = secret, text = body) => ({
    'webhook-id': 'msg_1', 'webhook-timestamp': `${Math.floor(at / 1000)}`, 'webhook-signature': new Webhook(by).sign('msg_1', at, text),
  });
  const refused = (...args) => assert.throws(() => webhooks.verify(...args), ({ constructor, code }) => constructor === HoldfastError && code === 'invalid_signature');
  const ago = (s) => new Date(Date.now() - s * 1000);

  it('that was signed by another library is read', () => {
    for (const given of [body, Buffer.from(body), new TextEncoder().encode(body)]) assert.deepEqual(webhooks.verify(given, signed(), secret), JSON.parse(body));
    assert.equal(webhooks.verify(body, new Headers(signed()), secret).type, 'booking.confirmed');
    const shouted = Object.fromEntries(Object.entries(signed()).map(([name, value]) => [name.toUpperCase(), [value]]));
    assert.equal(webhooks.verify(body, shouted, secret.replace('whsec_', '')).type, 'booking.confirmed');
  });

  it('is read with any of several signatures, by any of several secrets', () => {
    const old = `whsec_${Buffer.from('the secret of last month, yes').toString('base64')}`;
    const headers = signed();
    headers['webhook-signature'] = `v1a,abc ${signed(new Date(), old)['webhook-signature']} ${headers['webhook-signature']}`;
    assert.ok(webhooks.verify(body, headers, secret));
    assert.ok(webhooks.verify(body, signed(new Date(), old), [secret, old]));
    refused(body, signed(new Date(), old), secret);
  });

  it('that is forged, changed, stale or unsigned is refused', () => {
    refused(`${body} `, signed(), secret);
    refused(body, { ...signed(), 'webhook-id': 'msg_2' }, secret);
    refused(body, signed(ago(400)), secret);
    refused(body, signed(ago(-400)), secret);
    assert.ok(webhooks.verify(body, signed(ago(200)), secret));
    for (const name of Object.keys(signed())) refused(body, { ...signed(), [name]: undefined }, secret);
    for (const value of ['', 'v1', 'v1,', 'v1,AAAA', signed()['webhook-signature'].replace('v1,', 'v2,')]) refused(body, { ...signed(), 'webhook-signature': value }, secret);
    for (const value of ['', 'now', '1e9', 'NaN']) refused(body, { ...signed(), 'webhook-timestamp': value }, secret);
    refused(body, {}, secret);
    refused(body, undefined, secret);
    for (const none of ['', 'whsec_', undefined, 'not base64!', [secret, '']]) assert.throws(() => webhooks.verify(body, signed(), none), { name: 'TypeError', message: /^A secret is/ });
    assert.throws(() => webhooks.verify(JSON.parse(body), signed(), secret), { name: 'TypeError', message: /^The body is/ });
    for (const text of ['[1]', 'null', 'no JSON']) assert.throws(() => webhooks.verify(text, signed(new Date(), secret, text), secret), { code: 'invalid_request' });
  });
});
