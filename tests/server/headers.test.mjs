// Headers for browsers (CORS, security headers), and the log lines of requests.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { newKey, reap, start } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const SHOP = 'https://shop.example';
const OTHER = 'http://localhost:3000';
const ADMIN = 'admin-key-0123456789';
const SELLER = 'seller-key-0123456789';
const bearer = (key) => ({ Authorization: `Bearer ${key}` });

const allowed = (answer) => answer.headers['access-control-allow-origin'];

// Makes one request for each kind of answer, with these headers; resolves to the answers by status.
async function kinds(server, event, headers) {
  const seat = `S-A-${1 + Math.floor(Math.random() * 10)}`;
  const ask = (method, target, body) => server.request(method, target, body, headers);
  const hold = await ask('POST', '/v1/holds', { event: event.id, seats: [seat] });
  const answers = [
    [201, hold],
    [409, await ask('POST', '/v1/holds', { event: event.id, seats: [seat] })],
    [409, await ask('POST', '/v1/holds', { event: event.id, seats: [seat] })],
    [200, await ask('GET', `/v1/holds/${hold.json.id}`)],
    [200, await ask('GET', `/v1/events/${event.id}/seats`)],
    [404, await ask('GET', '/nowhere')],
    [404, await ask('GET', '/v1/holds/hold_none')],
    [400, await ask('POST', '/v1/holds', '{')],
    [405, await ask('PUT', '/v1/holds', '{}')],
    [204, await ask('DELETE', `/v1/holds/${hold.json.id}`)],
    [200, await ask('GET', '/metrics')],
  ];
  const { etag } = (await ask('GET', `/v1/events/${event.id}/seats`)).headers;
  answers.push([304, await server.get(`/v1/events/${event.id}/seats`, { ...headers, 'If-None-Match': etag })]);
  for (const [status, answer] of answers) assert.equal(answer.status, status, answer.text);
  return answers.map(([, answer]) => answer);
}

describe('CORS', () => {
  let server;
  let event;
  before(async () => {
    server = await start({ args: ['--cors-origin', `${SHOP}, ${OTHER}`] });
    event = await server.createEvent();
  });
  after(() => server?.stop());
  after(reap);

  it('a listed page may read every answer, errors too', async () => {
    for (const origin of [SHOP, OTHER, SHOP]) {
      for (const answer of await kinds(server, event, { Origin: origin })) {
        assert.equal(allowed(answer), origin, `${answer.status}`);
        assert.match(answer.headers.vary, /\bOrigin\b/);
        const exposed = answer.headers['access-control-expose-headers'].split(', ');
        for (const name of ['X-Request-Id', 'ETag', 'Date', 'Idempotency-Replayed', 'Retry-After', 'Location', 'Holdfast-Stale']) {
          assert.ok(exposed.includes(name), name);
        }
        assert.equal(answer.headers['access-control-allow-credentials'], undefined);
      }
    }
  });

  it('another page, or none, may not; and caches hear that it matters', async () => {
    const keyed = await start({ args: ['--cors-origin', `${SHOP}, ${OTHER}`], env: { HOLDFAST_ADMIN_KEY: ADMIN } });
    const own = await keyed.createEvent({}, bearer(ADMIN));
    for (const headers of [{}, { Origin: 'https://evil.example' }, { Origin: 'null' }, { Origin: `${SHOP}.evil.example` },
      { Origin: SHOP.toUpperCase() }, { Origin: `${SHOP}:443` }, { Origin: 'http://shop.example' }]) {
      for (const answer of await kinds(keyed, own, { ...headers, ...bearer(ADMIN) })) {
        assert.equal(allowed(answer), undefined, JSON.stringify(headers));
        assert.equal(answer.headers['access-control-expose-headers'], undefined);
        assert.match(answer.headers.vary, /\bOrigin\b/);
      }
    }
    await keyed.stop();
  });

  it('refusals on one connection do not lend each other their origin', async () => {
    const hold = await server.grant(event, 'S-B-1');
    for (const origin of [SHOP, OTHER, undefined, SHOP, SHOP, undefined, undefined, OTHER]) {
      const answer = await server.hold(event, 'S-B-1', {}, origin ? { Origin: origin } : {});
      assertProblem(answer, 409, 'seat_taken');
      assert.equal(allowed(answer), origin);
    }
    await server.del(`/v1/holds/${hold.id}`);
  });

  const preflight = (target, headers, at = server) => at.request('OPTIONS', target, undefined,
    { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type', ...headers });

  it('a preflight is answered on every known path, with that path\'s methods', async () => {
    for (const [target, methods] of [['/v1/holds', ['POST']], ['/v1/holds/hold_none', ['DELETE', 'GET', 'HEAD']],
      ['/v1/events', ['GET', 'HEAD', 'POST']], ['/metrics', ['GET', 'HEAD']]]) {
      const answer = await preflight(target, { Origin: SHOP });
      assert.equal(answer.status, 204, answer.text);
      assert.equal(answer.text, '');
      assert.equal(allowed(answer), SHOP);
      const listed = answer.headers['access-control-allow-methods'].split(', ');
      for (const method of methods) assert.ok(listed.includes(method), `${target}: ${listed}`);
      assert.equal(answer.headers['access-control-allow-headers'],
        'Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID');
      assert.equal(answer.headers['access-control-max-age'], '600');
      assert.equal(answer.headers['access-control-allow-credentials'], undefined);
      assert.match(answer.headers.vary, /\bOrigin\b/);
    }
    assertProblem(await preflight('/nowhere', { Origin: SHOP }), 404, 'not_found');
  });

  it('a preflight of another page allows nothing', async () => {
    for (const headers of [{}, { Origin: 'https://evil.example' }]) {
      const answer = await preflight('/v1/holds', headers);
      assert.equal(answer.status, 204);
      assert.equal(Object.keys(answer.headers).filter((name) => name.startsWith('access-control')).length, 0);
    }
  });

  it('with * every page may, and nothing varies', async () => {
    const open = await start({ args: ['--cors-origin', '*'] });
    const own = await open.createEvent();
    for (const headers of [{ Origin: 'https://anything.example' }, {}]) {
      for (const answer of await kinds(open, own, headers)) {
        assert.equal(allowed(answer), '*');
        assert.doesNotMatch(answer.headers.vary ?? '', /Origin/);
      }
    }
    assert.equal(allowed(await preflight('/v1/holds', { Origin: SHOP }, open)), '*');
    await open.stop();
  });

  it('needs no key for a preflight, and refusals of keys can be read', async () => {
    const keyed = await start({ args: ['--cors-origin', SHOP], env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER } });
    assert.equal((await preflight('/v1/events', { Origin: SHOP }, keyed)).status, 204);
    const origin = { Origin: SHOP };
    const none = await keyed.get('/metrics', origin);
    assertProblem(none, 401, 'unauthorized');
    assert.equal(allowed(none), SHOP);
    const low = await keyed.get('/metrics', { ...origin, ...bearer(SELLER) });
    assertProblem(low, 403, 'forbidden');
    assert.equal(allowed(low), SHOP);
    await keyed.stop();
  });

  it('streams can be read', async () => {
    const stream = await Stream.open(server, event, { headers: { Origin: SHOP } });
    assert.equal(stream.status, 200);
    assert.equal(allowed(stream), SHOP);
    assert.match(stream.headers.vary, /Origin/);
    stream.close();
    const answer = await preflight(`/v1/events/${event.id}/stream`, { Origin: SHOP, 'Access-Control-Request-Headers': 'last-event-id' });
    assert.equal(answer.status, 204);
    assert.match(answer.headers['access-control-allow-headers'], /Last-Event-ID/i);
  });

  it('is off unless asked for', async () => {
    const plain = await start({ env: { HOLDFAST_ADMIN_KEY: ADMIN } });
    const own = await plain.createEvent({}, bearer(ADMIN));
    for (const answer of await kinds(plain, own, { Origin: SHOP, ...bearer(ADMIN) })) assert.equal(allowed(answer), undefined);
    const answer = await preflight('/v1/holds', { Origin: SHOP }, plain);
    assertProblem(answer, 405, 'method_not_allowed');
    assert.match(answer.headers.allow, /POST/);
    await plain.stop();
  });
});

describe('security headers', () => {
  let server;
  let event;
  before(async () => {
    server = await start({ env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER } });
    event = await server.createEvent({}, bearer(ADMIN));
  });
  after(() => server?.stop());

  it('are on every answer', async () => {
    const answers = await kinds(server, event, bearer(ADMIN));
    answers.push(await server.get('/metrics'), await server.get('/metrics', bearer(SELLER)));
    for (const answer of answers) {
      assert.equal(answer.headers['x-content-type-options'], 'nosniff', `${answer.status}`);
      if (answer.headers['content-type'] === undefined) continue;
      assert.equal(answer.headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'");
      assert.equal(answer.headers['referrer-policy'], 'no-referrer');
    }
  });

  it('each header comes once', async () => {
    for (const { rawHeaders } of await kinds(server, event, bearer(ADMIN))) {
      const names = rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
      assert.deepEqual(names, [...new Set(names)]);
    }
  });

  it('what is for one reader is not stored', async () => {
    const hold = await server.hold(event, 'S-B-1');
    const stored = [hold, await server.get(`/v1/holds/${hold.json.id}`), await server.get('/v1/holds/hold_none'),
      await server.del(`/v1/holds/${hold.json.id}`), await server.get('/metrics', bearer(ADMIN)), await server.get('/metrics')];
    for (const answer of stored) assert.equal(answer.headers['cache-control'], 'no-store', `${answer.status}`);
    assert.equal((await server.get(`/v1/events/${event.id}/seats`)).headers['cache-control'], undefined);
  });
});

describe('the request log', () => {
  after(reap);
  const lines = (server) => server.logs.split('\n').filter((line) => line.includes('msg="request"'));

  it('has one line for each answer: what, how long, how much, by whom', async () => {
    const server = await start({ args: ['--request-log'], env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER } });
    const event = await server.createEvent({}, bearer(ADMIN));
    const hold = await server.grant(event, 'S-A-1');
    const asked = [
      [await server.get(`/v1/holds/${hold.id}`, bearer(SELLER)), 'GET', '/v1/holds/*', 200, 'seller'],
      [await server.hold(event, 'S-A-1'), 'POST', '/v1/holds', 409, 'public'],
      [await server.get('/metrics', bearer('wrong-key-0123456789')), 'GET', '/metrics', 401, 'public'],
      [await server.get('/nowhere?secret=1'), 'GET', '-', 404, 'public'],
      [await server.request('HEAD', '/metrics', undefined, bearer(ADMIN)), 'HEAD', '/metrics', 200, 'admin'],
      [await server.request('PROPFIND', '/v1/holds'), 'other', '/v1/holds', 405, 'public'],
    ];
    await server.stop();
    const found = lines(server);
    assert.equal(found.length, asked.length + 2);
    for (const [answer, method, route, status, scope] of asked) {
      const id = answer.headers['x-request-id'];
      const [line, ...more] = found.filter((text) => text.includes(` request_id=${id} `));
      assert.ok(line && more.length === 0, `${method} ${route}`);
      const bytes = answer.bytes.length;
      assert.match(line, new RegExp('^ts=\\S+ level=info msg="request" request_id=\\S+ '
        + `method=${method} route=${route.replaceAll('*', '\\*')} status=${status} duration_us=\\d+ bytes=${bytes} scope=${scope} client=127\\.0\\.0\\.1$`));
      assert.ok(Number(/duration_us=(\d+)/.exec(line)[1]) < 30_000_000);
    }
  });

  it('is off unless asked for, and silent below its level', async () => {
    for (const args of [[], ['--request-log', '--log-level', 'warn']]) {
      const server = await start({ args });
      await server.get('/healthz');
      await server.stop();
      assert.deepEqual(lines(server), []);
    }
  });

  it('says open where there are no keys', async () => {
    const server = await start({ args: ['--request-log'] });
    await server.get('/healthz');
    await server.stop();
    assert.match(lines(server)[0], / scope=open client=127\.0\.0\.1$/);
  });

  it('names the client, and the one behind a proxy only if the proxy is trusted', async () => {
    const clients = {};
    for (const trusted of ['127.0.0.1', '203.0.113.0/24']) {
      const server = await start({ args: ['--request-log', '--trusted-proxy', trusted] });
      for (const from of ['198.51.100.77', '2001:db8::7', '198.51.100.1, 198.51.100.78', 'unknown']) {
        await server.get('/healthz', { 'X-Forwarded-For': from });
      }
      await server.stop();
      clients[trusted] = lines(server).map((line) => / client=(\S+)$/.exec(line)[1]);
    }
    assert.deepEqual(clients, {
      '127.0.0.1': ['198.51.100.77', '2001:db8::7', '198.51.100.78', '127.0.0.1'],
      '203.0.113.0/24': ['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.1'],
    });
  });

  it('has no secret in it, however much is logged', async () => {
    const secrets = new Set([ADMIN, SELLER, 'wrong-key-0123456789', 'somebody-private', 'order-4711-private']);
    const server = await start({
      args: ['--request-log', '--log-level', 'debug', '--trusted-proxy', '127.0.0.1'],
      env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER },
    });
    const key = () => { const fresh = newKey(); secrets.add(fresh); return { 'Idempotency-Key': fresh }; };
    const event = await server.createEvent({}, { ...bearer(ADMIN), ...key() });
    secrets.add(event.id.slice(4));
    const hold = await server.grant(event, ['S-A-1', 'S-A-2'], { owner: 'somebody-private', metadata: { note: 'note-private' } },
      { ...key(), 'X-Forwarded-For': '198.51.100.77' });
    const spare = await server.grant(event, 'S-B-1', { owner: 'somebody-private' }, key());
    for (const { id } of [hold, spare]) secrets.add(id.slice(5));
    secrets.add('note-private');
    assertProblem(await server.hold(event, 'S-A-1', { owner: 'somebody-private' }, key()), 409, 'seat_taken');
    assertOk(await server.post(`/v1/holds/${hold.id}/renew`, {}, key()));
    const booking = assertOk(await server.post(`/v1/holds/${hold.id}/confirm`,
      { fence: hold.fence, reference: 'order-4711-private' }, { ...bearer(SELLER), ...key() }), 201);
    secrets.add(booking.id.slice(4));
    await server.get(`/v1/bookings/${booking.id}?reference=order-4711-private`);
    await server.get(`/v1/holds/${spare.id}/oops`);
    await server.get(`/v1/holds/${spare.id}`, bearer('wrong-key-0123456789'));
    await server.request('PUT', `/v1/holds/${spare.id}`, '{}');
    await server.post(`/v1/holds/${spare.id}/confirm`, { fence: 1 });
    await server.post('/v1/holds', `{"event":"${event.id}","seats":["S-A-1"],"owner":"somebody-private"`);
    await server.get(`/v1/events/${event.id}/seats`);
    assert.equal((await server.del(`/v1/holds/${spare.id}`)).status, 204);
    await server.stop();
    assert.ok(lines(server).length >= 14, server.logs);
    for (const secret of secrets) assert.ok(!server.logs.includes(secret), `${secret} in the log`);
  });
});
