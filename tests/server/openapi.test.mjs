// docs/openapi.yaml and the server agree: the suite drives every operation to every status that the document
// names (except those that need a broken server) and compares every answer with it.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import Stripe from 'stripe';
import { Document } from '../support/openapi.mjs';
import { Stream } from '../support/stream.mjs';
import { newKey, reap, sleep, start, until } from '../support/server.mjs';

const source = (name) => fs.readFileSync(new URL(`../../src/${name}`, import.meta.url), 'utf8');

const ADMIN = 'an-admin-key-of-the-tests';
const SELLER = 'a-seller-key-of-the-tests';
const KEYS = { admin: ADMIN, seller: SELLER };
const PUBLIC_PLACES = 4;
const SESSIONS = 6;
const STREAMS = 3;
// What takes a second server of the cell, 20,000 waiters, or a stranger in a hurry (tests/attack/strangers.test.mjs).
const ELSEWHERE = [/ 307$/, /^transferMastership 200$/, /^acquireLock 429$/, /^renewHold 429$/, /^streamWaitlistEntry (429|reset)$/];

// Well-formed ids that do not exist.
const UNKNOWN = {
  event: `evt_${'0'.repeat(10)}1${'0'.repeat(17)}`,
  hold: `hold_${'0'.repeat(10)}1${'0'.repeat(17)}`,
  booking: `bkg_${'0'.repeat(10)}1${'0'.repeat(17)}`,
  entry: `wait_${'0'.repeat(10)}1${'0'.repeat(17)}`,
  seat: 'S-A-1',
  key: 'a-key-that-nobody-has-used',
  session: 'ses_none', // a well-formed one that does not exist is 410, since it may have been
  name: 'a-lock-that-nobody-uses',
};

const document = await Document.load();
const operations = [...document.operations.keys()];
const ofLocks = operations.filter((id) => document.operation(id).tags.includes('locks'));
const withBody = operations.filter((id) => document.operation(id).requestBody && id !== 'receiveWebhook'); // that body is Stripe's

describe('the document', () => {
  it('is valid OpenAPI 3.1', async () => {
    assert.match(document.api.openapi, /^3\.1\./);
    assert.deepEqual(await document.faults(), []);
  });

  it('has only schemas that compile, and examples that fit them', () => {
    for (const name of Object.keys(document.api.components.schemas)) document.schema(name);
    let n = 0;
    for (const { id, where, value, fault } of document.examples()) {
      assert.equal(fault, null, where);
      if (where.includes('event-stream')) for (const { data, ...rest } of value) document.checkMessage(id, { ...rest, data: JSON.parse(data) });
      n += 1;
    }
    document.seen.clear();
    assert.ok(n >= 8, `${n} examples`);
  });

  it('refers to everything that it defines', () => {
    assert.deepEqual(document.unused(), []);
  });

  it('has every route of the server, and no other', () => {
    const routes = [...source('api/routes.c').matchAll(/^ +\{"(\/[^"]+)", (GETS|"[^"]+")/gm)]
      .flatMap(([, path, allow]) => allow.replace('GETS', 'GET, HEAD').replaceAll('"', '').split(', ').filter((method) => method !== 'HEAD')
        .map((method) => `${method} ${path}`));
    assert.ok(routes.length >= 12, `only ${routes.length} routes found in routes.c`);
    const documented = operations.map((id) => document.operation(id))
      .map(({ method, path }) => `${method} ${path.replaceAll(/\{[a-z]+\}/g, '*')}`);
    assert.deepEqual(documented.sort(), routes.sort());
  });

  it('has every query parameter of the server, and no other', () => {
    const rows = [...source('api/routes.c').matchAll(/^ +\{"(\/[^"]+)",(?:[^{}]|\{[^{}]*\})*?\}/gm)];
    assert.ok(rows.length >= 12, `only ${rows.length} routes found in routes.c`);
    const known = Object.fromEntries(rows.map(([row, path]) => [path, [...(row.match(/QUERY\(([^)]*)\)/)?.[1] ?? '').matchAll(/\w+/g)].join(' ')]));
    for (const id of operations) {
      const { method, path, parameters } = document.operation(id);
      const documented = parameters.filter((p) => p.in === 'query').map((p) => p.name).join(' ');
      assert.equal(documented, method === 'GET' ? known[path.replaceAll(/\{[a-z]+\}/g, '*')] : '', id);
    }
  });

  it('has every code the server can say', () => {
    const codes = ['http/problem.c', 'api/problems.c']
      .flatMap((file) => [...source(file).matchAll(/PROBLEM\w*\(\s*\d+,\s*"(\w+)"/g)].map(([, code]) => code));
    assert.ok(codes.length >= 20, `only ${codes.length} codes found in problem.c and problems.c`);
    const known = document.api.components.schemas.Code.enum;
    assert.deepEqual([...new Set(codes)].sort(), [...known].sort());
  });

  it('says in its table of scopes, as api.md in its list, what admins alone may do', () => {
    const words = {
      createEvent: 'create, change, archive and cancel events', changeEvent: 'create, change, archive and cancel events', archiveEvent: 'create, change, archive and cancel events',
      cancelEvent: 'create, change, archive and cancel events', evictHold: 'evict', evictWaitlistEntry: 'evict', moveWaitlistEntryFirst: 'move entries of waiting lists to the front', eraseOwner: 'erase owners', breakLock: 'break locks', transferMastership: 'hand over the lock service',
      readAudit: 'the audit log', getMetrics: 'metrics', getSamples: 'samples',
    };
    assert.deepEqual(Object.keys(words).sort(), operations.filter((id) => document.scope(id) === 'admin').sort());
    for (const text of [document.text, fs.readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')]) {
      const row = /^(?: *\| admin \| .*$|- \*\*Admin\*\*: [^]*?\n(?=\n|-))/m.exec(text)[0].replace(/\s+/g, ' ');
      for (const word of new Set(Object.values(words))) assert.ok(row.includes(word), `${word}: ${row}`);
    }
  });

  it('says of every operation what it does, who may, and what may go wrong', () => {
    for (const id of operations) {
      const { summary, responses, path, requestBody } = document.operation(id);
      assert.ok(summary, id);
      assert.ok(['public', 'seller', 'admin'].includes(document.scope(id)), id);
      assert.ok(responses['400'], `${id}: 400`);
      assert.ok(responses['401'], `${id}: 401`);
      assert.equal(Boolean(responses['403']), document.scope(id) === 'admin', `${id}: 403`);
      if (path.includes('{')) assert.ok(responses['404'], `${id}: 404`);
      if (requestBody) assert.ok(responses['413'], `${id}: 413`);
      const { parameters } = document.operation(id);
      assert.equal(Boolean(responses['422']), parameters.some(({ name }) => name === 'Idempotency-Key'), `${id}: 422`);
    }
  });
});

const LIMITS = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'];
const partsOf = (schema) => [...(schema.allOf ?? []), ...(schema.oneOf ?? []), ...(schema.anyOf ?? [])];
const below = (path, name) => (path ? `${path}.${name}` : name);

// The limits of a request schema: `sections[].name maxLength`.
function* limitsIn(schema, path = '') {
  const known = document.resolveSchema(schema);
  for (const limit of LIMITS.filter((name) => known[name] !== undefined)) yield `${path} ${limit}`;
  for (const part of partsOf(known)) yield* limitsIn(part, path);
  for (const [name, one] of Object.entries(known.properties ?? {})) yield* limitsIn(one, below(path, name));
  if (known.additionalProperties) yield* limitsIn(known.additionalProperties, below(path, '*'));
  if (known.items) yield* limitsIn(known.items, `${path}[]`);
}

// Values beyond each limit of a schema, and what the server says about them.  `value` fits; `put(other)` returns the body with another
// in its place, and `where` is the server's name for it.
function* beyond(schema, value, put, where = '', path = '') {
  const known = document.resolveSchema(schema);
  const of = (limit, other, ...says) => ({ limit: `${path} ${limit}`, body: put(other), says: says.length && says.map((one) => `${where} ${one}`) });
  const { minimum: min, maximum: max } = known;
  if (typeof value === 'number') {
    const says = max === undefined ? `must be at least ${min}` : `must be from ${min} to ${max}`;
    if (min !== undefined) yield of('minimum', min - 1, says);
    if (max !== undefined) yield of('maximum', max + 1, says);
  } else if (typeof value === 'string') {
    const { minLength, maxLength } = known;
    const both = `must have ${minLength} to ${maxLength} characters`;
    if (minLength) yield of('minLength', 'x'.repeat(minLength - 1), minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters`, both);
    if (maxLength) yield of('maxLength', 'x'.repeat(maxLength + 1), `must have at most ${maxLength} characters`, both);
  } else if (Array.isArray(value)) {
    if (known.minItems) yield of('minItems', value.slice(0, known.minItems - 1));
    if (known.maxItems) yield of('maxItems', Array.from({ length: known.maxItems + 1 }, (_, i) => (typeof value[0] === 'string' ? `${value[0]}${i}` : { ...value[0], name: `${i}` })));
    if (known.items) yield* beyond(known.items, value[0], (other) => put([other, ...value.slice(1)]), `${where}[0]`, `${path}[]`);
  } else if (value !== null && typeof value === 'object') {
    if (known.minProperties) yield of('minProperties', {});
    if (known.maxProperties) yield of('maxProperties', Object.fromEntries(Array.from({ length: known.maxProperties + 1 }, (_, i) => [`k${i}`, 1])), `must have at most ${known.maxProperties} keys`);
    for (const [name, one] of Object.entries(value)) {
      const [next, key] = known.properties?.[name] ? [known.properties[name], name] : [known.additionalProperties, '*'];
      if (next) yield* beyond(next, one, (other) => put({ ...value, [name]: other }), below(where, name), below(path, key));
    }
  }
  for (const part of partsOf(known)) yield* beyond(part, value, put, where, path);
}

describe('the server does what the document says', () => {
  let server;
  let event; // sections S (20 seats) and T (4, tier B), area Floor (5)
  let expired; // a hold that has expired by the time it is needed

  // Makes one documented request; its answer must have this status and be as documented.
  async function drive(id, status, { parameters, body, headers = {}, as = 'admin', raw } = {}) {
    const { method } = document.operation(id);
    const target = document.target(id, parameters);
    const key = KEYS[as] === undefined ? {} : { Authorization: `Bearer ${KEYS[as]}` };
    const answer = await server.request(method, target, raw ?? body, { ...key, ...headers });
    assert.equal(answer.status, status, `${method} ${target}: ${answer.status} ${answer.text.slice(0, 500)}`);
    document.check(id, answer);
    if (status < 300 && raw === undefined) document.checkRequest(id, body);
    return answer;
  }

  // With an Idempotency-Key: asserts the answer, the same answer again, and 422 for another body.
  async function driveKeyed(id, status, { body, ...rest } = {}) {
    const headers = { 'Idempotency-Key': newKey() };
    const first = await drive(id, status, { body, headers, ...rest });
    const again = await drive(id, status, { body, headers, ...rest });
    assert.equal(again.headers['idempotency-replayed'], 'true', id);
    assert.equal(again.text, first.text, id);
    await drive(id, 422, { raw: body ? `${JSON.stringify(body)} ` : '{ }', headers, ...rest });
    return first;
  }

  const hold = async (body, as) => (await drive('createHold', 201, { body: { event: event.id, ...body }, as })).json;
  const idsOf = (id) => Object.fromEntries(document.operation(id).parameters
    .filter((p) => p.in === 'path' || p.required).map((p) => [p.name, UNKNOWN[p.name]]).filter(([, value]) => value));

  before(async () => {
    server = await start({
      env: {
        HOLDFAST_ADMIN_KEY: ADMIN,
        HOLDFAST_SELLER_KEY: SELLER,
        HOLDFAST_PUBLIC_SEATS_MAX: String(PUBLIC_PLACES),
        HOLDFAST_SESSIONS_MAX: String(SESSIONS),
        HOLDFAST_ADDRESS_STREAMS_MAX: String(STREAMS),
      },
    });
    const body = {
      name: 'Gala', currency: 'usd', hold_ttl_ms: 60_000, hold_max_ms: 60_000,
      sections: [
        { name: 'S', tier: 'A', price: 1000, rows: 2, seats_per_row: 10 },
        { name: 'T', tier: 'B', price: 500, rows: [{ name: 'I', seats: 4 }] },
      ],
      areas: [{ name: 'Floor', price: 300, capacity: 5 }],
    };
    event = (await driveKeyed('createEvent', 201, { body })).json;
    expired = await hold({ seats: ['S-B-10'], ttl_ms: 1000 });
  });
  after(async () => { await server?.stop(); await reap(); });

  it('serves the document itself', async () => {
    const answer = await drive('getDocument', 200, { as: 'nobody' });
    assert.ok(answer.text === document.text, 'it is another document than docs/openapi.yaml');
    await drive('getDocument', 304, { headers: { 'If-None-Match': answer.headers.etag } });
  });

  it('asks for keys as documented', async () => {
    for (const id of operations) {
      const given = { parameters: idsOf(id), headers: { Authorization: 'Bearer not-a-key-of-this-server' }, as: 'nobody' };
      const wrong = await drive(id, 401, given);
      assert.match(wrong.headers['www-authenticate'], /invalid_token/, id);
      if (document.scope(id) === 'public') continue;
      await drive(id, 401, { parameters: idsOf(id), as: 'nobody' });
      if (document.scope(id) === 'admin') await drive(id, 403, { parameters: idsOf(id), as: 'seller' });
    }
  });

  it('takes no query parameter that is not documented', async () => {
    for (const id of operations) {
      const target = document.target(id, idsOf(id));
      const { method } = document.operation(id);
      const ask = (query, headers) => server.request(method, `${target}${target.includes('?') ? '&' : '?'}${query}`, undefined, headers);
      const answer = await ask('nope=1', { Authorization: `Bearer ${ADMIN}` });
      assert.equal(answer.status, 400, id);
      document.check(id, answer);
      assert.match(answer.json.detail, /: nope$/, id);
      if (document.scope(id) !== 'public') assert.equal((await ask('nope=1')).status, 401, id);
    }
  });

  // Bodies that fit, which have every field that has a limit.
  const samplesOf = (of) => {
    const base = { name: 'Gala', currency: 'usd' };
    const lock = { session: UNKNOWN.session, owner: 'a' };
    const terms = { name: 'Gala', hold_ttl_ms: 5000, hold_max_ms: 5000, max_per_hold: 2, max_per_owner: 2, lone_seats: 'hint', waitlist: { offer_ttl_ms: 1000, alive_ms: 60_000, per_owner: 1 }, venue: 'Hall', venue_address: 'Street', timezone: 'UTC', image: '/a', description: 'Fun', metadata: { a: 1 } };
    const places = { seats: ['S-A-1'], areas: { Floor: 1 } }, types = [{ id: 'full', name: 'Full', prices: { S: 1 } }];
    const seat = { seat_guid: 'H-1', seat_number: '1', position: { x: 0, y: 0 }, category: 'A' };
    const plan = { name: 'Hall', size: { width: 9, height: 9 }, categories: [{ name: 'A', color: 'red' }],
      zones: [{ name: 'Z', position: { x: 0, y: 0 }, rows: [{ row_number: '1', position: { x: 0, y: 0 }, seats: [seat] }],
        areas: [{ shape: 'circle', circle: { radius: 1 }, position: { x: 0, y: 0 }, uuid: 'u' }] }] };
    const events = [
      { ...base, ...terms, sections: [{ name: 'S', tier: 'A', price: 1, rows: 1, seats_per_row: 1 }], areas: [{ name: 'Floor', price: 1, capacity: 1 }], types },
      { ...base, sections: [{ name: 'S', tier: 'A', price: 1, rows: [{ name: 'A', seats: 1 }] }] },
      { ...base, categories: [{ name: 'A', price: 1, color: 'red' }], sections: [{ name: 'S', category: 'A', rows: 1, seats_per_row: 1 }] },
      { ...base, categories: [{ name: 'A', price: 1 }], sections: [{ name: 'S', category: 'A', rows: [{ name: 'A', seats: ['1'] }] }] },
      { ...base, categories: [{ name: 'A', price: 1 }], sections: [{ name: 'S', rows: [{ name: 'A', seats: [{ label: '1', category: 'A', x: 0, y: 0 }] }] }] },
      { ...base, plan, prices: { A: 1 }, focus: { x: 0, y: 0 }, areas: [{ name: 'Floor', price: 1, capacity: 1, plan_area: 'u' }] },
    ];
    return {
      createEvent: events,
      checkPlan: events,
      changeEvent: [{ ...terms, prices: { S: 1 }, types }],
      createHold: [
        { event: of, ...places, owner: 'me', ttl_ms: 1000, metadata: { a: 1 } },
        { event: of, best_available: { quantity: 1, section: 'S', tier: 'A', category: 'A', types: { full: 1 } } },
        { event: of, seats: ['S-A-1'], types: { 'S-A-1': 'full' }, areas: { Floor: { full: 1 } } },
        { event: of, seats: ['S-A-1'], owner: 'me', channel: 'house' },
      ],
      joinWaitlist: [
        { event: of, best_available: { quantity: 1, section: 'S', tier: 'A', category: 'A', types: { full: 1 } }, owner: 'me', metadata: { a: 1 } },
        { event: of, areas: { Floor: 1 } },
        { event: of, areas: { Floor: { full: 1 } } },
      ],
      changeHold: [{ fence: 1, add: places, remove: places }, { fence: 1, types: { 'S-A-1': 'full' }, add: { areas: { Floor: { full: 1 } } }, remove: { areas: { Floor: { full: 1 } } } }],
      renewHold: [{ ttl_ms: 1000 }],
      confirmHold: [{ fence: 1, reference: 'order-1' }],
      createBooking: [{ hold: UNKNOWN.hold, email: 'a@b', reference: 'order-1' }, { holds: [UNKNOWN.hold, 'hold_2'] }],
      cancelBooking: [{ reason: 'rain' }],
      refundBooking: [{ amount: 1 }],
      eraseOwner: [{ owner: 'nobody' }],
      blockSeats: [{ ...places, sections: ['S'], channel: 'house' }],
      unblockSeats: [{ ...places, sections: ['S'], channel: 'house' }],
      openSession: [{ ttl_ms: 1000, label: 'me' }],
      acquireLock: [{ ...lock, agent: 'a', label: 'me', slots: 1, wait_ms: 1, claim_ms: 50, claim: true, priority: 1, delay_ms: 1, value: 'v' }],
      releaseLock: [{ ...lock, fence: 1 }],
      setLockValue: [{ ...lock, fence: 1, value: 'v' }],
    };
  };

  it('states the limits of the document when a value is beyond one', async () => {
    const samples = samplesOf(event.id);
    for (const id of withBody) {
      const { method, requestBody } = document.operation(id);
      const { schema } = document.resolve(requestBody).content['application/json'];
      const parameters = { ...idsOf(id), ...(document.target(id, idsOf(id)).includes('/events/') ? { event: event.id } : {}) };
      const driven = new Set();
      for (const sample of samples[id] ?? []) {
        for (const { limit, body, says } of beyond(schema, sample, (other) => other)) {
          if (driven.has(limit)) continue;
          driven.add(limit);
          const answer = await server.request(method, document.target(id, parameters), body, { Authorization: `Bearer ${ADMIN}`, 'Idempotency-Key': newKey() });
          const where = `${id}: ${limit}: ${answer.text}`;
          if (answer.json.code === 'no_such_seat') assert.match(limit, /^(seats|sections)\[\] /, where); // nothing has such a name
          else assert.equal(answer.status, 400, where);
          if (answer.json.code === 'invalid_request' && says) assert.ok(says.includes(answer.json.detail), where);
        }
      }
      assert.deepEqual([...new Set(limitsIn(schema))].filter((limit) => !driven.has(limit)), [], id);
    }
    for (const id of operations) {
      const limit = document.operation(id).parameters.find((p) => p.name === 'limit');
      if (!limit) continue;
      const { minimum, maximum } = limit.schema;
      for (const value of [minimum - 1, maximum + 1]) {
        const { json } = await drive(id, 400, { parameters: { ...idsOf(id), limit: value } });
        assert.equal(json.detail, `limit must be from ${minimum} to ${maximum}`, id);
      }
    }
  });

  it('refuses bodies that are too large or not as documented', async () => {
    for (const id of withBody) {
      const parameters = { ...idsOf(id), ...(document.target(id, idsOf(id)).includes('/events/') ? { event: event.id } : {}) };
      const limit = ['createEvent', 'checkPlan'].includes(id) ? 8 * 1024 * 1024 : 64 * 1024;
      await drive(id, 413, { parameters, raw: Buffer.alloc(limit + 1, ' ') });
      const invalid = await drive(id, 400, { parameters, body: { nonsense: 1 }, headers: { 'Idempotency-Key': newKey() } });
      assert.match(invalid.json.detail, /nonsense/, id);
    }
  });

  it('knows nothing of ids that nobody was given', async () => {
    for (const id of operations.filter((one) => document.operation(one).path.includes('{') && !ofLocks.includes(one))) {
      const body = { blockSeats: { seats: ['S-A-1'] }, unblockSeats: { seats: ['S-A-1'] }, confirmHold: { fence: 1 },
        changeEvent: { name: 'Other' }, changeHold: { fence: 1, add: { seats: ['S-A-1'] } } }[id];
      await drive(id, 404, { parameters: idsOf(id), body });
    }
    await drive('createHold', 404, { body: { event: UNKNOWN.event, seats: ['S-A-1'] } });
    const seat = await drive('createHold', 404, { body: { event: event.id, seats: ['S-A-99'] } });
    assert.deepEqual(seat.json.seats, ['S-A-99']);
    await drive('createHold', 404, { body: { event: event.id, areas: { Roof: 1 } } });
    await drive('getSeat', 404, { parameters: { event: event.id, seat: 'S-Z-1' } });
    await drive('blockSeats', 404, { parameters: { event: event.id }, body: { seats: ['S-Z-1'] } });
    await drive('listHolds', 404, { parameters: { event: UNKNOWN.event } });
    await drive('listBookings', 404, { parameters: { event: UNKNOWN.event } });
    await drive('readAudit', 404, { parameters: { event: UNKNOWN.event } });
    await drive('readAudit', 404, { parameters: { hold: UNKNOWN.hold } });
    await drive('listWaitlist', 404, { parameters: { event: UNKNOWN.event } });
    await drive('joinWaitlist', 404, { body: { event: UNKNOWN.event, areas: { Floor: 1 } } });
  });

  it('lists and shows events', async () => {
    await driveKeyed('createEvent', 201, { body: { name: 'Other', currency: 'eur', areas: [{ name: 'A', price: 1, capacity: 1 }] } });
    const page = await drive('listEvents', 200, { parameters: { limit: 1 }, as: 'nobody' });
    assert.equal(page.json.has_more, true);
    const next = await drive('listEvents', 200, { parameters: { limit: 1, cursor: page.json.next_cursor } });
    assert.equal(next.json.data[0].id, event.id);
    await drive('listEvents', 400, { parameters: { limit: 0 } });
    await drive('listEvents', 400, { parameters: { upcoming: 'soon' } });
    const soon = await drive('listEvents', 200, { parameters: { upcoming: true, limit: 1 }, as: 'nobody' });
    await drive('listEvents', 200, { parameters: { upcoming: true, cursor: soon.json.next_cursor } });
    const one = await drive('getEvent', 200, { parameters: { event: event.id }, as: 'nobody' });
    assert.equal(one.json.capacity, 29);
    assert.equal(one.json.available + one.json.held + one.json.booked + one.json.blocked, 29);
  });

  it('shows the map', async () => {
    const parameters = { event: event.id };
    const map = await drive('getSeatMap', 200, { parameters, as: 'nobody' });
    assert.equal(map.headers.etag, `"${map.json.seq}"`);
    await drive('getSeatMap', 304, { parameters, headers: { 'If-None-Match': map.headers.etag } });
    await drive('getSeatMap', 200, { parameters, headers: { 'Accept-Encoding': 'gzip' } });
    const past = await drive('getSeatMap', 200, { parameters: { ...parameters, at: event.created_at }, as: 'seller' });
    assert.equal(past.json.at, event.created_at);
    await drive('getSeatMap', 401, { parameters: { ...parameters, at: event.created_at }, as: 'nobody' });
    await drive('getSeatMap', 400, { parameters: { ...parameters, at: '2000-01-01T00:00:00.000Z' }, as: 'seller' });
  });

  it('shows the plan', async () => {
    const parameters = { event: event.id };
    const plan = await drive('getPlan', 200, { parameters, as: 'nobody' });
    await drive('getPlan', 304, { parameters, headers: { 'If-None-Match': plan.headers.etag } });
    await drive('getPlan', 200, { parameters, headers: { 'Accept-Encoding': 'gzip' } });
  });

  it('holds seats, places and the best there are', async () => {
    const one = (await driveKeyed('createHold', 201, {
      body: { event: event.id, seats: ['S-A-1'], areas: { Floor: 1 }, owner: 'me', ttl_ms: 30_000, metadata: { a: 'b', n: 1.5, t: true } },
    })).json;
    assert.deepEqual(one.areas, { Floor: 1 });
    assert.equal(one.amount, 1300);
    const best = await hold({ best_available: { quantity: 2, tier: 'B' }, owner: null });
    assert.equal(best.seats.length, 2);
    const taken = await drive('createHold', 409, { body: { event: event.id, seats: ['S-A-1', 'S-A-2'] } });
    assert.deepEqual(taken.json.seats, ['S-A-1']);
    await drive('checkPlan', 200, { body: { name: 'Next', currency: 'eur', sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 2 }] }, as: 'seller' });
    await drive('getRevenue', 200, { parameters: { event: event.id }, as: 'seller' });
    const heat = await drive('getHeat', 200, { parameters: { event: event.id }, as: 'seller' });
    assert.deepEqual(heat.json.seats, [['S-A-1', 1]]);
    const apart = await drive('createHold', 409, { body: { event: event.id, best_available: { quantity: 5, section: 'T', adjacent: false } } });
    assert.equal(apart.json.code, 'sold_out');
    assert.equal(apart.json.available, 2);
    const full = await drive('createHold', 409, { body: { event: event.id, areas: { Floor: 5 } } });
    assert.deepEqual([full.json.code, full.json.available, full.json.area], ['sold_out', 4, 'Floor']);
    const twice = await drive('createHold', 400, { body: { event: event.id, seats: ['S-A-3', 'S-A-3'] } });
    assert.equal(twice.json.code, 'duplicate_seat');
    const many = await drive('createHold', 400, { body: { event: event.id, areas: { Floor: 11 } } });
    assert.equal(many.json.code, 'too_many_seats');
    await drive('createHold', 400, { body: { event: event.id, seats: ['S-A-3'], best_available: { quantity: 1 } } });
    await drive('createHold', 400, { body: { event: event.id } });
    await drive('getHold', 200, { parameters: { hold: one.id }, as: 'nobody' });
    await drive('releaseHold', 204, { parameters: { hold: one.id }, as: 'nobody' });
    await drive('releaseHold', 204, { parameters: { hold: best.id } });
  });

  it('limits what an address without a key may hold', async () => {
    const public_ = (seats) => ({ body: { event: event.id, seats }, as: 'nobody', headers: { 'Idempotency-Key': newKey() } });
    const all = Array.from({ length: PUBLIC_PLACES }, (_, i) => `S-A-${i + 1}`);
    const { json } = await drive('createHold', 201, public_(all));
    await drive('createHold', 429, public_(['S-A-9']));
    await drive('releaseHold', 204, { parameters: { hold: json.id }, as: 'nobody' });
  });

  it('renews, confirms and releases', async () => {
    const { id, fence } = await hold({ seats: ['S-A-5'], ttl_ms: 10_000 });
    const parameters = { hold: id };
    await driveKeyed('renewHold', 200, { parameters, body: { ttl_ms: 20_000 }, as: 'nobody' });
    await drive('renewHold', 200, { parameters });
    const cap = await drive('renewHold', 409, { parameters, body: { ttl_ms: 1000 } });
    assert.equal(cap.json.code, 'renewal_cap');
    const stale = await drive('confirmHold', 409, { parameters, body: { fence: fence + 1 } });
    assert.equal(stale.json.code, 'stale_fence');
    const sold = await driveKeyed('confirmHold', 201, { parameters, body: { fence, reference: 'order-1' }, as: 'seller' });
    const other = await drive('confirmHold', 409, { parameters, body: { fence, reference: 'order-2' } });
    assert.equal(other.json.code, 'reference_mismatch');
    const same = await drive('confirmHold', 200, { parameters, body: { fence } });
    assert.equal(same.json.id, sold.json.id);
    await drive('getBooking', 200, { parameters: { booking: sold.json.id }, as: 'nobody' });
    await drive('getHold', 200, { parameters });
    await drive('renewHold', 409, { parameters });
    await drive('releaseHold', 409, { parameters });
    await drive('evictHold', 409, { parameters });
  });

  it('says that a hold has expired', async () => {
    await sleep(Math.max(0, Date.parse(expired.expires_at) - Date.now() + 50));
    const parameters = { hold: expired.id };
    for (const [id, body] of [['renewHold'], ['confirmHold', { fence: expired.fence }], ['releaseHold'], ['evictHold']]) {
      const { json } = await drive(id, 410, { parameters, body });
      assert.equal(json.code, 'hold_expired', id);
    }
    assert.equal((await drive('getHold', 200, { parameters })).json.status, 'expired');
    const { id, fence } = await hold({ seats: ['S-A-6'] });
    await drive('releaseHold', 204, { parameters: { hold: id } });
    const { json } = await drive('confirmHold', 410, { parameters: { hold: id }, body: { fence } });
    assert.equal(json.code, 'hold_released');
    await drive('confirmHold', 201, { parameters, body: { fence: expired.fence, rescue: true } });
  });

  it('evicts', async () => {
    const { id } = await hold({ seats: ['S-A-7'] });
    const parameters = { hold: id };
    const { json } = await driveKeyed('evictHold', 200, { parameters });
    assert.equal(json.status, 'released');
    assert.equal((await drive('evictHold', 200, { parameters })).json.status, 'released');
  });

  it('blocks and unblocks', async () => {
    const parameters = { event: event.id };
    const held = await hold({ seats: ['S-B-1'] });
    const body = { seats: ['S-B-2', 'S-B-3'] };
    const { json } = await driveKeyed('blockSeats', 200, { parameters, body, as: 'seller' });
    assert.deepEqual([json.status, json.seats], ['blocked', body.seats]);
    const taken = await drive('blockSeats', 409, { parameters, body: { seats: ['S-B-1', 'S-B-4'] } });
    assert.deepEqual(taken.json.seats, ['S-B-1']);
    await drive('unblockSeats', 409, { parameters, body: { seats: ['S-B-1', 'S-B-2'] } });
    await drive('blockSeats', 400, { parameters, body: { seats: ['S-B-5', 'S-B-5'] } });
    assert.equal((await driveKeyed('unblockSeats', 200, { parameters, body, as: 'seller' })).json.status, 'available');
    await drive('releaseHold', 204, { parameters: { hold: held.id } });
  });

  it('closes and opens', async () => {
    const parameters = { event: event.id };
    assert.equal((await driveKeyed('closeEvent', 200, { parameters, as: 'seller' })).json.status, 'closed');
    const refused = await drive('createHold', 409, { body: { event: event.id, seats: ['S-B-9'] } });
    assert.equal(refused.json.code, 'event_closed');
    assert.equal((await driveKeyed('openEvent', 200, { parameters, as: 'seller' })).json.status, 'open');
  });

  it('refuses single seats', async () => {
    const parameters = { event: event.id };
    assert.equal((await drive('changeEvent', 200, { parameters, body: { lone_seats: 'refuse' } })).json.lone_seats, 'refuse');
    const refused = await drive('createHold', 409, { body: { event: event.id, seats: ['S-B-2'] }, as: 'nobody' });
    assert.deepEqual([refused.json.code, refused.json.seats], ['lone_seat', ['S-B-1']]);
    const held = (await drive('createHold', 201, { body: { event: event.id, seats: ['S-B-1'] }, as: 'nobody' })).json;
    const change = { fence: held.fence, add: { seats: ['S-B-3'] } };
    assert.equal((await drive('changeHold', 409, { parameters: { hold: held.id }, body: change, as: 'nobody' })).json.code, 'lone_seat');
    await drive('releaseHold', 204, { parameters: { hold: held.id } });
    await drive('changeEvent', 200, { parameters, body: { lone_seats: 'allow' } });
  });

  it('changes events', async () => {
    const body = {
      name: 'Matinee', currency: 'usd', venue: 'Hall', venue_address: 'Main Street 1', timezone: 'America/New_York', starts_at: '2030-01-31T20:00:00.000-05:00',
      doors_at: '2030-01-31T19:00:00.000-05:00', image: '/matinee.jpg', description: 'For children', max_per_owner: 2, metadata: { a: 1 },
      areas: [{ name: 'Floor', price: 300, capacity: 5 }],
    };
    const other = (await drive('createEvent', 201, { body })).json;
    const parameters = { event: other.id };
    const { json } = await driveKeyed('changeEvent', 200, { parameters, body: { prices: { Floor: 400 }, venue: null } });
    assert.deepEqual([json.areas[0].price, json.venue, json.name], [400, null, 'Matinee']);
    await drive('changeEvent', 400, { parameters, body: {} });
    await drive('changeEvent', 400, { parameters, body: { prices: { Roof: 1 } } });
    const mine = { event: other.id, areas: { Floor: 2 }, owner: 'me' };
    await drive('createHold', 201, { body: mine });
    assert.equal((await drive('createHold', 409, { body: { ...mine, areas: { Floor: 1 } } })).json.code, 'owner_limit');
    await driveKeyed('createHold', 200, { body: { ...mine, resume: true }, as: 'seller' });
    await drive('changeEvent', 200, { parameters, body: { sales_open_at: '2030-01-31T20:00:00.000Z' } });
    assert.equal((await drive('createHold', 409, { body: mine })).json.sales_open_at, '2030-01-31T20:00:00.000Z');
    assert.equal((await driveKeyed('archiveEvent', 200, { parameters })).json.status, 'archived');
    await drive('openEvent', 409, { parameters });
    await drive('closeEvent', 409, { parameters });
  });

  it('changes holds', async () => {
    const { id, fence } = await hold({ seats: ['S-B-5'], areas: { Floor: 1 } });
    const parameters = { hold: id };
    const { json } = await driveKeyed('changeHold', 200, { parameters, body: { fence, add: { seats: ['S-B-6'] }, remove: { areas: { Floor: 1 } } } });
    assert.deepEqual([json.seats, json.areas, json.id], [['S-B-5', 'S-B-6'], {}, id]);
    await drive('changeHold', 409, { parameters, body: { fence, add: { seats: ['S-B-7'] } } });
    await drive('changeHold', 400, { parameters, body: { fence: json.fence, remove: { seats: ['S-B-5', 'S-B-6'] } } });
    await drive('changeHold', 404, { parameters, body: { fence: json.fence, remove: { seats: ['S-B-7'] } } });
    await drive('releaseHold', 204, { parameters });
    await drive('changeHold', 410, { parameters, body: { fence: json.fence, remove: { seats: ['S-B-5'] } } });
    const few = await drive('createHold', 201, { body: { event: event.id, seats: ['S-B-5'] }, as: 'nobody' });
    const most = { areas: { Floor: PUBLIC_PLACES } };
    await drive('changeHold', 429, { parameters: { hold: few.json.id }, body: { fence: few.json.fence, add: most }, as: 'nobody' });
    await drive('releaseHold', 204, { parameters: { hold: few.json.id } });
  });

  it('sells ticket types', async () => {
    const types = [{ id: 'full', name: 'Full price' }, { id: 'reduced', prices: { S: 600, Floor: 100 } }];
    const body = {
      name: 'Fair', currency: 'usd', sections: [{ name: 'S', price: 1000, rows: 1, seats_per_row: 9 }], areas: [{ name: 'Floor', price: 300, capacity: 9 }], types,
    };
    const fair = (await drive('createEvent', 201, { body })).json;
    const parameters = { event: fair.id };
    await driveKeyed('changeEvent', 200, { parameters, body: { types: [{ id: 'reduced', name: 'Reduced', prices: { S: null } }, { id: 'child', prices: { Floor: 0 } }] } });
    await drive('changeEvent', 400, { parameters, body: { types: [{ id: 'a b' }] } });
    const stream = await Stream.open(server, fair, { headers: { Authorization: `Bearer ${ADMIN}` } });
    await drive('getSeatMap', 200, { parameters });
    await drive('getEvent', 200, { parameters });
    const made = (await driveKeyed('createHold', 201, {
      body: { event: fair.id, seats: ['S-A-1', 'S-A-2'], types: { 'S-A-2': 'reduced' }, areas: { Floor: { child: 1, full: 1 } } },
    })).json;
    assert.equal(made.places.length, 4);
    await drive('createHold', 404, { body: { event: fair.id, seats: ['S-A-3'], types: { 'S-A-3': 'senior' } } });
    await drive('createHold', 201, { body: { event: fair.id, best_available: { quantity: 2, types: { child: 1 } } } });
    const changed = (await driveKeyed('changeHold', 200, {
      parameters: { hold: made.id }, body: { fence: made.fence, types: { 'S-A-1': 'child' }, remove: { areas: { Floor: { full: 1 } } }, add: { areas: { Floor: { reduced: 1 } } } },
    })).json;
    assert.equal((await drive('changeHold', 404, { parameters: { hold: made.id }, body: { fence: changed.fence, types: { 'S-A-1': 'senior' } } })).json.code, 'no_such_type');
    const sold = (await drive('confirmHold', 201, { parameters: { hold: made.id }, body: { fence: changed.fence } })).json;
    assert.deepEqual(sold.places, changed.places);
    await drive('getBooking', 200, { parameters: { booking: sold.id } });
    await drive('listBookings', 200, { parameters: { event: fair.id } });
    await drive('readAudit', 200, { parameters: { event: fair.id } });
    await drive('listHolds', 200, { parameters: { event: fair.id } });
    await drive('changeEvent', 200, { parameters, body: { prices: { S: 900 } } });
    await stream.find(({ event: kind }) => kind === 'event');
    stream.close();
  });

  it('lists and cancels bookings', async () => {
    const { id, fence } = await hold({ seats: ['S-B-7'], owner: 'booker' });
    const sold = (await drive('confirmHold', 201, { parameters: { hold: id }, body: { fence, reference: 'order-7' } })).json;
    const { json } = await drive('listBookings', 200, { parameters: { event: event.id, reference: 'order-7', owner: 'booker', status: 'confirmed' }, as: 'seller' });
    assert.deepEqual(json.data.map((booking) => booking.id), [sold.id]);
    assert.equal((await drive('getHold', 200, { parameters: { hold: id } })).json.booking, sold.id);
    await drive('listBookings', 400, { parameters: { status: 'odd' } });
    const cancelled = await driveKeyed('cancelBooking', 200, { parameters: { booking: sold.id }, body: { reason: 'rain' }, as: 'seller' });
    assert.deepEqual([cancelled.json.status, cancelled.json.reason], ['cancelled', 'rain']);
    const erased = await driveKeyed('eraseOwner', 200, { body: { owner: 'booker' } });
    assert.deepEqual([erased.json.holds, erased.json.bookings], [1, 1]);
  });

  // ---- payments: with the sandbox of the server itself, which is the default on loopback ----

  const pay = async ({ payment }) => {
    const card = { number: '4242424242424242', exp_month: '12', exp_year: '2040', cvc: '123' };
    const body = new URLSearchParams({ key: payment.publishable_key, client_secret: payment.client_secret, 'payment_method_data[type]': 'card',
      ...Object.fromEntries(Object.entries(card).map(([name, value]) => [`payment_method_data[card][${name}]`, value])) });
    const answer = await fetch(`${payment.api}/v1/payment_intents/${payment.intent}/confirm`, { method: 'POST', body });
    assert.equal(answer.status, 200, await answer.text());
  };
  const shows = (booking, test) => until('the booking is as expected', async () => {
    const { json } = await drive('getBooking', 200, { parameters: { booking }, as: 'nobody' });
    return test(json) && json;
  });
  const book = (hold_, status = 201) => drive('createBooking', status, { body: { hold: hold_.id ?? hold_ }, headers: { 'Idempotency-Key': newKey() }, as: 'seller' });

  it('books, is paid and pays back', async () => {
    const held = await hold({ seats: ['S-B-4'], owner: 'payer' });
    const headers = { 'Idempotency-Key': newKey() };
    const body = { hold: held.id, email: 'ann@shop.example', reference: 'order-8' };
    const made = await drive('createBooking', 201, { body, headers, as: 'seller' });
    const booking = await shows(made.json.id, ({ payment }) => payment.status !== 'creating'); // the answer may come before the intent
    assert.deepEqual([booking.status, booking.payment.provider, booking.payment.status], ['pending', 'sandbox', 'requires_payment']);
    const again = await drive('createBooking', 201, { body, headers, as: 'seller' });
    assert.equal(again.json.payment.client_secret, null);
    await drive('createBooking', 422, { body: { hold: held.id }, headers, as: 'seller' });
    const stored = await drive('getStoredAnswer', 200, { parameters: { key: headers['Idempotency-Key'] }, as: 'seller' });
    assert.equal(stored.text, again.text);
    assert.equal((await book(held, 409)).json.code, 'booking_exists');
    const changed = await drive('changeHold', 409, { parameters: { hold: held.id }, body: { fence: held.fence, add: { areas: { Floor: 1 } } } });
    assert.equal(changed.json.code, 'booking_exists');
    const confirmed = await drive('confirmHold', 409, { parameters: { hold: held.id }, body: { fence: held.fence } });
    assert.equal(confirmed.json.code, 'booking_exists');
    await drive('refundBooking', 409, { parameters: { booking: booking.id }, as: 'seller' });
    await pay(booking);
    await shows(booking.id, ({ status }) => status === 'confirmed');
    await driveKeyed('refundBooking', 200, { parameters: { booking: booking.id }, body: { amount: 100 }, as: 'seller' });
    await shows(booking.id, ({ payment }) => payment.amount_refunded === 100);
    const refunds = await drive('listRefunds', 200, { parameters: { status: 'succeeded' }, as: 'seller' });
    assert.deepEqual(refunds.json.data.map(({ amount }) => amount), [100]);
    await drive('listRefunds', 400, { parameters: { status: 'odd' } });
    await drive('listNotifications', 200, { as: 'seller' });
    await drive('listNotifications', 400, { parameters: { status: 'odd' } });
  });

  it('books several holds as one', async () => {
    const [one, two] = [await hold({ seats: ['S-B-5'], owner: 'payer' }), await hold({ areas: { Floor: 1 }, owner: 'payer' })];
    const bookAll = (holds, status) => drive('createBooking', status, { body: { holds: holds.map(({ id }) => id) }, headers: { 'Idempotency-Key': newKey() }, as: 'nobody' });
    const released = await hold({ seats: ['S-B-6'], owner: 'payer' });
    await drive('releaseHold', 204, { parameters: { hold: released.id } });
    const gone = await bookAll([one, released], 410);
    assert.deepEqual([gone.json.code, gone.json.hold], ['hold_released', released.id]);
    assert.equal((await bookAll([one, { id: UNKNOWN.hold }], 404)).json.hold, UNKNOWN.hold);
    const { json: booking } = await bookAll([two, one], 201);
    assert.deepEqual([booking.hold, booking.holds], [one.id, [one.id, two.id]]);
    for (const as of ['seller', 'admin']) {
      const { json } = await drive('listHolds', 200, { parameters: { event: event.id, owner: 'payer', status: 'active' }, as });
      assert.equal(json.data.filter(({ booked_with: carrier }) => carrier).length, 1);
    }
    const merged = { parameters: { hold: two.id } };
    assert.equal((await drive('getHold', 200, { ...merged, as: 'nobody' })).json.booked_with, one.id);
    for (const [id, body] of [['renewHold'], ['evictHold'], ['releaseHold'], ['confirmHold', { fence: 1 }], ['changeHold', { fence: 1, remove: { areas: { Floor: 1 } } }]]) {
      assert.equal((await drive(id, 409, { ...merged, body })).json.code, 'booking_exists', id);
    }
    assert.equal((await bookAll([two, one], 409)).json.code, 'booking_exists');
    await drive('releaseHold', 204, { parameters: { hold: one.id } });
  });

  it('says why a hold cannot be booked', async () => {
    const cheap = await hold({ seats: ['T-I-4'] });
    const required = await drive('createBooking', 400, { body: { hold: cheap.id } });
    assert.equal(required.json.code, 'idempotency_key_required');
    await drive('releaseHold', 204, { parameters: { hold: cheap.id } });
    assert.equal((await book(cheap, 410)).json.code, 'hold_released');
    await book(UNKNOWN.hold, 404);
    const other = (await drive('createEvent', 201, { body: { name: 'Pennies', currency: 'usd', areas: [{ name: 'Floor', price: 7, capacity: 9 }] } })).json;
    const poor = (await drive('createHold', 201, { body: { event: other.id, areas: { Floor: 1 } } })).json;
    assert.equal((await book(poor, 400)).json.code, 'amount_too_small');
  });

  it('takes names and keys as long as the document says, and no longer', async () => {
    const key = (length) => ({ 'Idempotency-Key': newKey().padEnd(length, 'x') });
    const { maxLength } = document.api.components.schemas.IdempotencyKey;
    const other = { name: 'Other', currency: 'usd', areas: [{ name: 'Floor', price: 1, capacity: 1 }] };
    const { json } = await drive('createEvent', 201, { body: other, headers: key(maxLength - 2) });
    for (const [name, schema] of Object.entries(document.api.components.schemas.EventCreate.properties)) if (schema.default !== undefined) assert.equal(json[name], schema.default, name);
    const longer = await drive('createEvent', 201, { body: { ...other, hold_ttl_ms: 3_600_000 } });
    assert.equal(longer.json.hold_max_ms, 3_600_000);
    await drive('createEvent', 201, { body: other, headers: { 'Idempotency-Key': `"${key(maxLength - 2)['Idempotency-Key']}"` } });
    await drive('createEvent', 400, { body: other, headers: key(maxLength - 1) });
    for (const [id, status] of [['getStoredAnswer', 404], ['getLock', 200]]) {
      const { name, schema } = document.operation(id).parameters.find((p) => p.in === 'path');
      const longest = 'x'.repeat(document.resolveSchema(schema).maxLength);
      await drive(id, status, { parameters: { [name]: longest } });
      await drive(id, 400, { parameters: { [name]: `${longest}x` } });
    }
  });

  it('shows names of a plan that are as long as they may be', async () => {
    const long = (text) => `${text}-`.padEnd(255, text);
    const at = { x: 0, y: 0 };
    const plan = { name: long('p'), size: { width: 9, height: 9 }, categories: [{ name: long('c'), color: 'red' }],
      zones: [{ name: long('z'), position: at, rows: [{ row_number: long('r'), position: at,
        seats: [{ seat_guid: long('g'), seat_number: long('n'), position: at, category: long('c') }] }] }] };
    const { json } = await drive('createEvent', 201, { body: { name: long('e'), currency: 'usd', plan, prices: { [long('c')]: 100 } } });
    const parameters = { event: json.id };
    for (const id of ['getEvent', 'getSeatMap', 'getPlan']) await drive(id, 200, { parameters });
    for (const id of ['blockSeats', 'unblockSeats']) await drive(id, 200, { parameters, body: { sections: [long('z')] } });
    await drive('createHold', 201, { body: { event: json.id, best_available: { quantity: 1, section: long('z'), category: long('c') } } });
    await drive('getSeat', 200, { parameters: { ...parameters, seat: long('g') } });
    await drive('readAudit', 200, { parameters });
    await drive('archiveEvent', 200, { parameters });
  });

  it('asks for an Idempotency-Key where the document says so', async () => {
    const samples = samplesOf(UNKNOWN.event);
    for (const id of operations) {
      const { method, responses, parameters } = document.operation(id);
      const key = parameters.find(({ name }) => name === 'Idempotency-Key');
      const says = JSON.stringify(document.resolve(responses['400'])).includes('idempotency_key_required');
      assert.equal(says, Boolean(key?.required), id);
      if (!key) continue;
      const answer = await server.request(method, document.target(id, idsOf(id)), samples[id]?.[0], { Authorization: `Bearer ${ADMIN}` });
      assert.equal(answer.json.code === 'idempotency_key_required', Boolean(key.required), `${id}: ${answer.text}`);
    }
  });

  it('cancels events', async () => {
    const body = { name: 'Rain', currency: 'usd', areas: [{ name: 'Floor', price: 300, capacity: 5 }] };
    const other = (await drive('createEvent', 201, { body })).json;
    const parameters = { event: other.id };
    const held = (await drive('createHold', 201, { body: { event: other.id, areas: { Floor: 2 } } })).json;
    const left = (await drive('createHold', 201, { body: { event: other.id, areas: { Floor: 1 } } })).json;
    const { json: booking } = await book(held);
    await pay(booking);
    await shows(booking.id, ({ status }) => status === 'confirmed');
    assert.equal((await driveKeyed('cancelEvent', 200, { parameters })).json.status, 'cancelled');
    await drive('archiveEvent', 409, { parameters });
    await shows(booking.id, ({ status, payment }) => status === 'cancelled' && payment.status === 'refunded');
    const { cancellation } = (await drive('getEvent', 200, { parameters, as: 'nobody' })).json;
    assert.deepEqual(cancellation, { bookings_left: 0, bookings_cancelled: 1, refunds_owed: 0, refunds_done: 1, refunds_failed: 0 });
    assert.equal((await book(left, 409)).json.code, 'event_cancelled');
    const sale = await drive('confirmHold', 409, { parameters: { hold: left.id }, body: { fence: left.fence } });
    assert.equal(sale.json.code, 'event_cancelled');
    assert.equal((await drive('openEvent', 409, { parameters })).json.code, 'event_cancelled');
    await drive('releaseHold', 204, { parameters: { hold: left.id } });
    await drive('archiveEvent', 200, { parameters });
    await drive('cancelEvent', 409, { parameters });
  });

  it('takes webhooks that are signed', async () => {
    const [, , secret] = fs.readFileSync(path.join(server.dir, 'sandbox.keys'), 'utf8').trim().split(' ');
    const send = (status, raw, signature) => drive('receiveWebhook', status, { raw, headers: { 'Stripe-Signature': signature }, as: 'nobody' });
    const sign = (payload) => Stripe.webhooks.generateTestHeaderString({ payload, secret });
    const unused = JSON.stringify({ id: 'evt_1', object: 'event', type: 'customer.created', created: 1, livemode: false, data: { object: { object: 'customer' } } });
    await send(200, unused, sign(unused));
    assert.equal((await send(400, unused, 't=1,v1=00')).json.code, 'bad_signature');
    assert.equal((await send(400, '{}', sign('{}'))).json.code, 'invalid_request');
    await send(413, Buffer.alloc(256 * 1024 + 1, ' '), 't=1,v1=00');
  });

  it('blocks for channels', async () => {
    const parameters = { event: event.id };
    const body = { sections: ['T'], areas: { Floor: 1 }, channel: 'house' };
    const blocked = await drive('blockSeats', 200, { parameters, body, as: 'seller' });
    assert.equal(blocked.json.channel, 'house');
    await drive('blockSeats', 409, { parameters, body: { areas: { Floor: 99 } } });
    await drive('releaseHold', 204, { parameters: { hold: (await hold({ seats: ['T-I-1'], channel: 'house' })).id } });
    await drive('unblockSeats', 200, { parameters, body });
  });

  it('lists holds with masked ids', async () => {
    const parameters = { event: event.id };
    const page = await drive('listHolds', 200, { parameters: { ...parameters, limit: 2 }, as: 'seller' });
    assert.equal(page.json.data.length, 2);
    await drive('listHolds', 200, { parameters: { ...parameters, cursor: page.json.next_cursor } });
    const { json } = await drive('listHolds', 200, { parameters: { ...parameters, status: 'confirmed' } });
    assert.deepEqual([...new Set(json.data.map(({ status }) => status))], ['confirmed']);
    await drive('listHolds', 400, { parameters: { ...parameters, limit: 101 } });
    await drive('listHolds', 400, { parameters: { ...parameters, status: 'odd' } });
  });

  it('shows a seat now and then', async () => {
    const parameters = { event: event.id, seat: 'S-A-5' };
    const { json } = await drive('getSeat', 200, { parameters, as: 'seller' });
    assert.equal(json.status, 'booked');
    assert.ok(json.history.length >= 2, JSON.stringify(json.history));
    const past = await drive('getSeat', 200, { parameters: { ...parameters, at: event.created_at } });
    assert.equal(past.json.status, 'available');
    await drive('getSeat', 400, { parameters: { ...parameters, at: 'yesterday' } });
  });

  it('shows the log', async () => {
    const parameters = { event: event.id };
    const { json } = await drive('readAudit', 200, { parameters: { ...parameters, limit: 1000 } });
    assert.deepEqual(json.data.map(({ seq }) => seq), json.data.map((_, i) => i + 1));
    const bookings = new Map(); // by their holds; all rows of a sale name the same
    for (const { hold, booking } of json.data.filter((row) => row.booking !== null)) assert.equal(booking, (bookings.has(hold) ? bookings : bookings.set(hold, booking)).get(hold));
    assert.ok(bookings.size > 1);
    const page = await drive('readAudit', 200, { parameters: { ...parameters, limit: 2 } });
    await drive('readAudit', 200, { parameters: { ...parameters, limit: 2, cursor: page.json.next_cursor } });
    await drive('readAudit', 200, { parameters: { ...parameters, after: 5 } });
    await drive('readAudit', 200, { parameters: { hold: expired.id } });
    const seat = await drive('readAudit', 200, { parameters: { ...parameters, seat: 'S-A-5' } });
    assert.ok(seat.json.data.every((row) => row.seat === 'S-A-5'), seat.text);
    await drive('readAudit', 400);
    await drive('readAudit', 400, { parameters: { ...parameters, limit: 1001 } });
  });

  // Opens a documented stream.  `next` resolves to its next message of a kind; each of its messages must be as documented.
  async function listen(id, parameters) {
    const stream = await Stream.open(server, null, { path: document.target(id, parameters), headers: { Authorization: `Bearer ${SELLER}` } });
    document.check(id, { status: stream.status, headers: stream.headers, text: '' });
    let n = 0;
    const next = (event) => stream.find((message) => {
      const at = stream.messages.indexOf(message);
      if (at < n) return false;
      document.checkMessage(id, message);
      n = at + 1;
      return message.event === event;
    });
    return { next, close: () => stream.close() };
  }

  it('streams changes', async () => {
    const { json: { seq: after_ } } = await drive('getSeatMap', 200, { parameters: { event: event.id } });
    await drive('streamChanges', 400, { parameters: { event: event.id, after: 'x' }, as: 'nobody' });
    const stream = await listen('streamChanges', { event: event.id, after: after_ });
    await hold({ seats: ['S-B-8'], areas: { Floor: 1 } });
    const { id, data } = await stream.next('seats');
    assert.equal(String(data.seq), id);
    assert.deepEqual(data.changes, [['S-B-8', 'h']]);
    await drive('changeEvent', 200, { parameters: { event: event.id }, body: { prices: { S: 1100 } } });
    const changed = await stream.next('event');
    assert.equal(changed.data.prices.S, 1100);
    assert.equal(String(changed.data.seq), changed.id);
    stream.close();
    const lost = await listen('streamChanges', { event: event.id, after: 1_000_000 });
    assert.equal((await lost.next('reset')).data.seq, changed.data.seq);
    lost.close();
  });

  it('keeps a waiting list', async () => {
    const sections = [{ name: 'S', tier: 'A', price: 1000, rows: 1, seats_per_row: 2 }];
    const areas = [{ name: 'Floor', price: 300, capacity: 2 }];
    const types = [{ id: 'full' }, { id: 'reduced', prices: { S: 500 } }];
    const { json: wanted } = await drive('createEvent', 201, { body: { name: 'Wanted', currency: 'usd', waitlist: { per_owner: 1 }, sections, areas, types } });
    const places = { event: wanted.id, best_available: { quantity: 1, section: 'S', tier: 'A', types: { reduced: 1 } } };
    const join = (status, body, as) => drive('joinWaitlist', status, { body: { ...places, ...body }, as });
    assert.equal((await join(409)).json.code, 'available');
    const taken = await hold({ event: wanted.id, seats: ['S-A-1', 'S-A-2'] });
    const ann = { ...places, owner: 'ann', until: '2040-01-01T00:00:00Z', metadata: { a: 1 } };
    const first = (await driveKeyed('joinWaitlist', 201, { body: ann })).json;
    assert.equal((await drive('joinWaitlist', 409, { body: ann })).json.code, 'already_waiting');
    for (let i = 0; i < PUBLIC_PLACES; i++) await join(201, {}, 'nobody');
    await join(429, {}, 'nobody');
    const last = (await join(201)).json;
    assert.equal((await drive('getWaitlistEntry', 200, { parameters: { entry: last.id }, as: 'nobody' })).json.ahead, PUBLIC_PLACES + 1);
    await driveKeyed('moveWaitlistEntryFirst', 200, { parameters: { entry: last.id } });
    await driveKeyed('pauseWaitlist', 200, { parameters: { event: wanted.id }, as: 'seller' });
    await driveKeyed('resumeWaitlist', 200, { parameters: { event: wanted.id }, as: 'seller' });
    for (const id of ['pauseWaitlist', 'resumeWaitlist']) await drive(id, 409, { parameters: { event: event.id } });

    const parameters = { entry: last.id };
    await drive('streamWaitlistEntry', 400, { parameters: { ...parameters, after: 'x' }, as: 'nobody' });
    const stream = await listen('streamWaitlistEntry', parameters);
    await drive('changeHold', 200, { parameters: { hold: taken.id }, body: { fence: taken.fence, remove: { seats: ['S-A-1'] } } });
    await stream.next('offered');
    assert.equal((await drive('getWaitlistEntry', 200, { parameters, as: 'nobody' })).json.status, 'offered');
    await drive('moveWaitlistEntryFirst', 409, { parameters });
    for (const as of ['seller', 'admin']) await drive('listWaitlist', 200, { parameters: { event: wanted.id, limit: 9 }, as });
    assert.equal((await driveKeyed('evictWaitlistEntry', 200, { parameters })).json.status, 'lapsed');
    const { data } = await stream.next('lapsed');
    await drive('streamWaitlistEntry', 204, { parameters: { ...parameters, after: data.seq } });
    await drive('evictWaitlistEntry', 409, { parameters });
    await drive('leaveWaitlist', 409, { parameters });
    await drive('leaveWaitlist', 204, { parameters: { entry: first.id }, as: 'nobody' });
    const left = await listen('streamWaitlistEntry', { entry: first.id });
    assert.equal((await left.next('ended')).data.status, 'left');
    const { json: page } = await drive('listWaitlist', 200, { parameters: { event: wanted.id, status: 'left', owner: 'ann' } });
    assert.deepEqual(page.data.map(({ id }) => id), [first.id]);
    await drive('listWaitlist', 400, { parameters: { status: 'odd' } });
    await drive('readAudit', 200, { parameters: { event: wanted.id } });
    assert.equal((await drive('joinWaitlist', 409, { body: { event: event.id, areas: { Floor: 5 } } })).json.code, 'waitlist_off');
    await drive('closeEvent', 200, { parameters: { event: wanted.id } });
    assert.equal((await join(409)).json.code, 'event_closed');
    await drive('changeEvent', 200, { parameters: { event: wanted.id }, body: { waitlist: null } });
  });

  it('limits the streams of an address without a key', async () => {
    const open = await Promise.all(Array.from({ length: STREAMS }, () => Stream.open(server, event)));
    for (const { status } of open) assert.equal(status, 200);
    await drive('streamChanges', 429, { parameters: { event: event.id }, as: 'nobody' });
    for (const stream of open) stream.close();
  });

  it('opens sessions, keeps them alive and ends them', async () => {
    const session = (await drive('openSession', 201, { body: { ttl_ms: 60_000, label: 'ann' }, as: 'seller' })).json.id;
    await drive('keepSessionAlive', 200, { parameters: { session } });
    await drive('keepSessionAlive', 404, { parameters: { session: UNKNOWN.session } });
    await drive('closeSession', 204, { parameters: { session } });
    await drive('closeSession', 204, { parameters: { session } });
    await drive('closeSession', 404, { parameters: { session: UNKNOWN.session } });
    await drive('keepSessionAlive', 410, { parameters: { session } });
    await drive('streamSession', 410, { parameters: { session } });
    await drive('streamSession', 404, { parameters: { session: UNKNOWN.session } });
  });

  it('limits the sessions of a key', async () => {
    const open = [];
    for (let i = 0; i < SESSIONS; i += 1) open.push((await drive('openSession', 201, { body: { ttl_ms: 60_000 } })).json.id);
    assert.equal((await drive('openSession', 429, { body: { ttl_ms: 60_000 } })).json.code, 'too_many_sessions');
    for (const session of open) await drive('closeSession', 204, { parameters: { session } });
  });

  it('grants, refuses, shows and releases locks', async () => {
    const [session, other] = await Promise.all(['ann', 'ben'].map(async (label) => (await drive('openSession', 201, { body: { ttl_ms: 60_000, label } })).json.id));
    const parameters = { name: 'payments/eu' };
    const lock = (await drive('acquireLock', 200, { parameters, body: { session, owner: 'a1', value: 'here' }, as: 'seller' })).json;
    await drive('acquireLock', 409, { parameters, body: { session: other } });
    await drive('acquireLock', 409, { parameters, body: { session: other, owner: 'b1', wait_ms: 1 } });
    await drive('acquireLock', 409, { parameters, body: { session, owner: 'a1', mode: 'shared' } });
    await drive('acquireLock', 409, { parameters, body: { session: other, owner: 'b2', slots: 2 } });
    const mine = (await drive('acquireLock', 409, { parameters, body: { session, owner: 'a2', wait_ms: 1 } })).json;
    assert.equal(mine.code, 'deadlock');
    await drive('acquireLock', 404, { parameters, body: { session: UNKNOWN.session } });
    const { json } = await drive('getLock', 200, { parameters, as: 'seller' });
    assert.equal(json.holders[0].fence, lock.fence);
    await drive('getLock', 200, { parameters: { ...parameters, stale: true } });
    await drive('getLock', 400, { parameters: { ...parameters, stale: 'maybe' } });
    await drive('listLocks', 200, { parameters: { prefix: 'pay', waiting: true, limit: 1 } });
    await drive('listLocks', 400, { parameters: { waiting: 'maybe' } });
    const held = { session, owner: 'a1', fence: lock.fence };
    await drive('setLockValue', 200, { parameters, body: { ...held, value: 'there' } });
    await drive('setLockValue', 409, { parameters, body: { ...held, fence: 1, value: 'there' } });
    await drive('setLockValue', 404, { parameters, body: { ...held, session: UNKNOWN.session, value: 'there' } });
    await drive('releaseLock', 409, { parameters, body: { ...held, fence: 1 } });
    await drive('releaseLock', 404, { parameters, body: { ...held, session: UNKNOWN.session } });
    await drive('releaseLock', 200, { parameters, body: held });
    await drive('releaseLock', 410, { parameters, body: held });
    await drive('setLockValue', 410, { parameters, body: { ...held, value: 'there' } });
    await drive('acquireLock', 410, { parameters, body: { session, owner: 'a1' } });
    const another = { name: 'payments/us' };
    await drive('acquireLock', 200, { parameters: another, body: { session } });
    await drive('breakLock', 200, { parameters: another });
    for (const one of [session, other]) await drive('closeSession', 204, { parameters: { session: one } });
  });

  it('streams what happens to locks', async () => {
    const [session, other] = await Promise.all(['ann', 'ben'].map(async (label) => (await drive('openSession', 201, { body: { ttl_ms: 60_000, label } })).json.id));
    const parameters = { name: 'watched' };
    for (const [id, of] of [['streamLock', parameters], ['streamSession', { session }]]) {
      await drive(id, 400, { parameters: { ...of, after: 'x' } });
      const stream = await listen(id, of);
      const take = async (more) => (await drive('acquireLock', 200, { parameters, body: { session, ...more } })).json;
      const { owner, fence } = await take();
      assert.equal((await stream.next('granted')).data.fence, fence);
      await drive('setLockValue', 200, { parameters, body: { session, owner, fence, value: 'here' } });
      if (id === 'streamLock') assert.equal((await stream.next('value')).data.value, 'here');
      await drive('releaseLock', 200, { parameters, body: { session, owner } });
      assert.equal((await stream.next('released')).data.owner, owner);
      await take();
      await drive('breakLock', 200, { parameters });
      const last = await stream.next('lost');
      assert.equal(last.data.label, 'ann');
      stream.close();
      const late = await listen(id, { ...of, after: Number(last.id) + 1_000_000 });
      await late.next('reset');
      late.close();
    }
    const stream = await listen('streamSession', { session });
    await drive('acquireLock', 200, { parameters, body: { session, mode: 'shared', cache: true } });
    await drive('acquireLock', 409, { parameters, body: { session: other, wait_ms: 1 } });
    assert.equal((await stream.next('wanted')).data.name, 'watched');
    stream.close();
    for (const one of [session, other]) await drive('closeSession', 204, { parameters: { session: one } });
  });

  it('shows the cell, and says that there is nobody to hand over to', async () => {
    const { json } = await drive('getCell', 200, { as: 'seller' });
    assert.equal(json.master.url, `http://${server.host}:${server.port}`);
    assert.equal((await drive('transferMastership', 409)).json.code, 'no_standby');
  });

  it('has no locks with --journal off', async () => {
    const main = server;
    server = await start({ env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_JOURNAL: 'off' } });
    for (const id of ofLocks) await drive(id, 404, { parameters: idsOf(id) });
    await server.stop();
    server = main;
  });

  it('answers its operators', async () => {
    await drive('getHealth', 200, { as: 'nobody' });
    await drive('getReadiness', 200, { as: 'nobody' });
    await drive('getReadiness', 200, { parameters: { for: 'reads' }, as: 'nobody' });
    await drive('getReadiness', 400, { parameters: { for: 'fun' }, as: 'nobody' });
    await drive('getMetrics', 200);
    await drive('getSamples', 200);
    await drive('getSamples', 400, { parameters: { after: 'yesterday' } });
  });

  // Must run last: it checks what the other tests have seen.
  it('has been driven to everything the document promises', () => {
    const missing = operations.flatMap((id) => [...Object.keys(document.operation(id).responses).filter((status) => Number(status) < 500), ...document.messages(id).keys()]
      .map((what) => `${id} ${what}`))
      .filter((what) => !document.seen.has(what))
      .filter((what) => !ELSEWHERE.some((pattern) => pattern.test(what)));
    assert.deepEqual(missing, []);
  });
});
