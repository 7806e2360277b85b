// The JavaScript client (clients/js) against a real server, also through a proxy that makes faults.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import util from 'node:util';
import { Webhook } from 'standardwebhooks';
import {
  checkFence, Client, Conflict, Gone, HoldfastError, LockLost, NotFound, OPERATIONS, OutcomeUnknown, Unavailable, webhooks,
} from '../../clients/js/index.js';
import * as inBrowsers from '../../clients/js/browser.js';
import { look, waiting } from '../support/locks.mjs';
import { Document } from '../support/openapi.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { startProxy } from '../support/proxy.mjs';
import { areasOf, freePort, launch, mapOf, reap, sleep, start, tempDir, until } from '../support/server.mjs';

const PACKAGE = fileURLToPath(new URL('../../clients/js/', import.meta.url));
const LONG_S = 120; // a TTL that outlasts a machine that stands still
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

  it('packs, installs into an empty project without a network, and holds a seat and a lock there', async () => {
    const dir = tempDir();
    const npm = (...args) => execFileSync('npm', [...args, '--cache', path.join(dir, 'cache'), '--offline', '--no-audit', '--no-fund', '--no-update-notifier'], { cwd: dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    const archive = npm('pack', PACKAGE, '--silent').trim();
    fs.writeFileSync(path.join(dir, 'package.json'), '{"type":"module"}');
    npm('install', `./${archive}`);
    assert.deepEqual(fs.readdirSync(path.join(dir, 'node_modules')).filter((name) => !name.startsWith('.')), ['holdfast']);
    // The examples of the README, as one program, with this server for theirs.
    const readme = fs.readFileSync(path.join(dir, 'node_modules/holdfast/README.md'), 'utf8');
    const blocks = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
    assert.equal(blocks.length, 4);
    fs.writeFileSync(path.join(dir, 'readme.js'), blocks.join('\n').replaceAll('http://127.0.0.1:8080', url));
    const run = launch(process.execPath, ['readme.js'], { cwd: dir });
    assert.deepEqual(await run.done, { code: 0, signal: null }, run.stderr); // it also ends by itself
    const [booked, taken, sold, state, change, fence, ...rest] = run.stdout.trim().split('\n');
    assert.deepEqual([booked, taken, sold, state, fence], ['confirmed', "seat_taken [ 'Stalls-A-7' ]", "[ 'Stalls-A-6', 'Stalls-A-7' ]", 'booked', 'true 200']);
    assert.match(change, /^(seats|event|reset) \d+$/);
    assert.deepEqual(rest, []);
  });

  it('has an entry for browsers that needs nothing of Node', () => {
    assert.deepEqual(Object.keys(inBrowsers).sort(),
      ['Client', 'Conflict', 'Gone', 'HoldfastError', 'LockLost', 'NotFound', 'OPERATIONS', 'OutcomeUnknown', 'SeatMap', 'Unavailable', 'errorOf']);
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

  it('is thrown for an id that is none, before anything is sent', async () => {
    for (const id of [undefined, '', '..', null, 7]) assert.throws(() => client.holds.get(id), TypeError);
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
