// Access: keys and scopes, the addresses that the server may listen on, and limits for callers without a key.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { assertCleanStderr, newKey, reap, removeTempDir, runServer, start, tempDir } from '../support/server.mjs';
import { Wire } from '../support/wire.mjs';

const ADMIN = 'admin-key-0123456789';
const SELLER = 'seller-key-0123456789';
const KEYS = { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER };
const bearer = (key) => (key ? { Authorization: `Bearer ${key}` } : {});
const MISSING = 'Bearer realm="holdfast"';
const WRONG = 'Bearer realm="holdfast", error="invalid_token"';

// Every route and method, with the lowest scope that may use it.  {e}, {h} and {b} are ids that do not exist, {n} is no name,
// so a request that passes the check changes nothing.
const ROUTES = [
  ['POST', '/v1/holds', 'public'],
  ['GET', '/v1/holds', 'seller'],
  ['GET', '/v1/holds/{h}', 'public'],
  ['PATCH', '/v1/holds/{h}', 'public'],
  ['DELETE', '/v1/holds/{h}', 'public'],
  ['POST', '/v1/holds/{h}/renew', 'public'],
  ['POST', '/v1/holds/{h}/confirm', 'seller'],
  ['POST', '/v1/holds/{h}/evict', 'admin'],
  ['GET', '/v1/bookings', 'seller'],
  ['GET', '/v1/bookings/{b}', 'public'],
  ['POST', '/v1/bookings', 'public'],
  ['POST', '/v1/bookings/{b}/cancel', 'seller'],
  ['POST', '/v1/bookings/{b}/refund', 'seller'],
  ['POST', '/v1/webhooks/stripe', 'public'],
  ['POST', '/v1/events/{e}/cancel', 'admin'],
  ['GET', '/v1/refunds', 'seller'],
  ['GET', '/v1/notifications', 'seller'],
  ['GET', '/v1/idempotency/{k}', 'seller'],
  ['GET', '/v1/events', 'public'],
  ['POST', '/v1/events', 'admin'],
  ['GET', '/v1/events/{e}', 'public'],
  ['PATCH', '/v1/events/{e}', 'admin'],
  ['GET', '/v1/events/{e}/seats', 'public'],
  ['GET', '/v1/events/{e}/plan', 'public'],
  ['GET', '/v1/events/{e}/seats/{s}', 'seller'],
  ['GET', '/v1/events/{e}/heat', 'seller'],
  ['GET', '/v1/events/{e}/revenue', 'seller'],
  ['GET', '/v1/events/{e}/stream', 'public'],
  ['POST', '/v1/plans/check', 'seller'],
  ['POST', '/v1/events/{e}/block', 'seller'],
  ['POST', '/v1/events/{e}/unblock', 'seller'],
  ['POST', '/v1/events/{e}/waitlist/pause', 'seller'],
  ['POST', '/v1/events/{e}/waitlist/resume', 'seller'],
  ['GET', '/v1/waitlist', 'seller'],
  ['POST', '/v1/waitlist', 'public'],
  ['GET', '/v1/waitlist/{w}', 'public'],
  ['DELETE', '/v1/waitlist/{w}', 'public'],
  ['GET', '/v1/waitlist/{w}/stream', 'public'],
  ['POST', '/v1/waitlist/{w}/first', 'admin'],
  ['POST', '/v1/waitlist/{w}/evict', 'admin'],
  ['POST', '/v1/events/{e}/open', 'seller'],
  ['POST', '/v1/events/{e}/close', 'seller'],
  ['POST', '/v1/events/{e}/archive', 'admin'],
  ['POST', '/v1/owners/erase', 'admin'],
  ['GET', '/v1/audit', 'admin'],
  ['GET', '/v1/locks', 'seller'],
  ['GET', '/v1/locks/{n}', 'seller'],
  ['POST', '/v1/locks/{n}', 'seller'],
  ['POST', '/v1/locks/{n}/release', 'seller'],
  ['PUT', '/v1/locks/{n}/value', 'seller'],
  ['POST', '/v1/locks/{n}/break', 'admin'],
  ['GET', '/v1/locks/{n}/stream', 'seller'],
  ['POST', '/v1/sessions', 'seller'],
  ['DELETE', '/v1/sessions/{l}', 'seller'],
  ['POST', '/v1/sessions/{l}/keepalive', 'seller'],
  ['GET', '/v1/sessions/{l}/stream', 'seller'],
  ['GET', '/v1/cell', 'seller'],
  ['POST', '/v1/cell/transfer', 'admin'],
  ['GET', '/healthz', 'public'],
  ['GET', '/openapi.yaml', 'public'],
  ['GET', '/readyz', 'public'],
  ['GET', '/metrics', 'admin'],
  ['GET', '/v1/ops/samples', 'admin'],
];
const fill = (template) => template.replace('{e}', 'evt_none').replace('{h}', 'hold_none').replace('{b}', 'bkg_none')
  .replace('{w}', 'wait_none').replace('{s}', 'Stalls-A-1').replace('{l}', 'ses_none').replace('{n}', '%2F'); // no name begins with a slash

describe('scopes', () => {
  let server;
  before(async () => { server = await start({ env: KEYS }); });
  after(() => server?.stop());

  // An invalid body: a request that passes the check is refused for it and creates nothing.
  const call = (method, template, key) => server.request(method, fill(template),
    ['POST', 'PUT', 'PATCH'].includes(method) ? '{"nonsense":1}' : undefined, bearer(key));

  const rank = { public: 0, seller: 1, admin: 2 };
  for (const [method, template, scope] of ROUTES) {
    it(`${method} ${template} is for ${scope}`, async () => {
      const wrong = await call(method, template, 'wrong-key-0123456789');
      assert.equal(assertProblem(wrong, 401, 'unauthorized').title, 'The access key is not valid');
      assert.equal(wrong.headers['www-authenticate'], WRONG);
      for (const [name, key] of [['public', undefined], ['seller', SELLER], ['admin', ADMIN]]) {
        const answer = await call(method, template, key);
        if (rank[name] >= rank[scope]) {
          assert.ok(![401, 403].includes(answer.status), `${name}: ${answer.status} ${answer.text}`);
          assert.equal(answer.headers['www-authenticate'], undefined);
        } else if (key) {
          assertProblem(answer, 403, 'forbidden');
        } else {
          assert.equal(assertProblem(answer, 401, 'unauthorized').title, 'An access key is required');
          assert.equal(answer.headers['www-authenticate'], MISSING);
        }
      }
    });
  }

  it('adding places to a hold needs what making one needs', async () => {
    const closed = await start({ env: { ...KEYS, HOLDFAST_PUBLIC_HOLDS: 'off' } });
    const event = await closed.createEvent({}, bearer(ADMIN));
    const hold = await closed.grant(event, ['S-A-1', 'S-A-2'], {}, bearer(SELLER));
    const target = `/v1/holds/${hold.id}`;
    assertProblem(await closed.patch(target, { fence: hold.fence, add: { seats: ['S-A-3'] } }), 401, 'unauthorized');
    const less = assertOk(await closed.patch(target, { fence: hold.fence, remove: { seats: ['S-A-2'] } }));
    assertOk(await closed.patch(target, { fence: less.fence, add: { seats: ['S-A-3'] } }, bearer(SELLER)));
    await closed.stop();
  });

  it('an address without a key cannot take more than its share by a change', async () => {
    const event = await server.createEvent({ max_per_hold: 100, areas: [{ name: 'Floor', price: 1, capacity: 100 }] }, bearer(ADMIN));
    const hold = await server.grant(event, 'S-A-1', {}, bearer(SELLER));
    assertProblem(await server.patch(`/v1/holds/${hold.id}`, { fence: hold.fence, add: { areas: { Floor: 45 } } }), 429, 'too_many_holds');
  });

  it('HEAD needs what GET needs', async () => {
    assert.equal((await server.request('HEAD', '/metrics')).status, 401);
    assert.equal((await server.request('HEAD', '/metrics', undefined, bearer(SELLER))).status, 403);
    assert.equal((await server.request('HEAD', '/metrics', undefined, bearer(ADMIN))).status, 200);
  });

  it('every path and method of the server is in the table above', async () => {
    const source = fs.readFileSync(new URL('../../src/api/routes.c', import.meta.url), 'utf8');
    const served = [...source.matchAll(/^ +\{"(\/[^"]+)"/gm)].map(([, template]) => template);
    const masked = ROUTES.map(([, template]) => template.replace(/\{.\}/g, '*'));
    assert.deepEqual([...new Set(masked)].sort(), served.sort());
    for (const template of new Set(ROUTES.map(([, name]) => name))) {
      const answer = await call('REPORT', template, ADMIN);
      assertProblem(answer, 405, 'method_not_allowed');
      const allowed = answer.headers.allow.split(', ').filter((method) => method !== 'HEAD').sort();
      const tested = ROUTES.filter(([, name]) => name === template).map(([method]) => method).sort();
      assert.deepEqual(tested, allowed, template);
    }
  });

  it('an unknown path is 404 and a wrong method 405 for everybody', async () => {
    for (const key of [undefined, 'wrong-key-0123456789', SELLER, ADMIN]) {
      assertProblem(await server.get('/v1/nothing', bearer(key)), 404, 'not_found');
      assertProblem(await server.del('/metrics', bearer(key)), 405, 'method_not_allowed');
      assertProblem(await server.request('OPTIONS', '/v1/holds', undefined, bearer(key)), 405, 'method_not_allowed');
    }
  });

  it('the scheme is Bearer in any case, and there is one Authorization', async () => {
    for (const value of [`bearer ${ADMIN}`, `BEARER ${ADMIN}`, `Bearer  ${ADMIN}`]) {
      assert.equal((await server.get('/metrics', { Authorization: value })).status, 200, value);
    }
    for (const value of [ADMIN, `Basic ${ADMIN}`, 'Bearer', `Bearer ${ADMIN} ${ADMIN}`, `Bearer ${ADMIN.slice(0, -1)}`,
      `Bearer ${ADMIN.toUpperCase()}`, `Bearer ${'x'.repeat(5000)}`]) {
      assertProblem(await server.get('/healthz', { Authorization: value }), 401, 'unauthorized');
    }
    const wire = await Wire.connect(server);
    const line = `Authorization: Bearer ${ADMIN}\r\n`;
    assert.equal((await wire.send(`GET /metrics HTTP/1.1\r\nHost: localhost\r\n${line}\r\n`)).status, 200);
    assert.equal((await wire.send(`GET /metrics HTTP/1.1\r\nHost: localhost\r\n${line}${line}\r\n`)).status, 401);
    wire.close();
  });

  it('is judged before the body, and without it', async () => {
    assertProblem(await server.post('/v1/events', '{'), 401, 'unauthorized');
    assertProblem(await server.post('/v1/events', '{', bearer(SELLER)), 403, 'forbidden');
    assertProblem(await server.post('/v1/events', 'x'.repeat(100_000)), 401, 'unauthorized');
    const wire = await Wire.connect(server);
    const waiting = await wire.send('POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\nExpect: 100-continue\r\n\r\n');
    assert.equal(waiting.status, 401);
    wire.close();
  });

  it('a body that will not end is answered in its middle, with every header', async () => {
    const wire = await Wire.connect(server);
    const answer = await wire.send(Buffer.concat([
      Buffer.from('POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n'),
      Buffer.alloc(1_200_000, 0x20)]));
    assert.equal(answer.status, 401);
    assert.equal(answer.headers['www-authenticate'], MISSING);
    assert.equal(answer.headers['x-content-type-options'], 'nosniff');
    wire.close();
  });

  it('keys do a sale between them', async () => {
    const event = await server.createEvent({}, bearer(ADMIN));
    const hold = await server.grant(event, 'S-A-1');
    assertOk(await server.get(`/v1/holds/${hold.id}`));
    const confirm = (headers) => server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }, headers);
    assertProblem(await confirm({}), 401, 'unauthorized');
    const booking = assertOk(await confirm(bearer(SELLER)), 201);
    assertOk(await server.get(`/v1/bookings/${booking.id}`));
  });

  it('an Idempotency-Key belongs to the key it came with', async () => {
    const event = await server.createEvent({}, bearer(ADMIN));
    const key = newKey();
    const holds = [];
    for (const access of [undefined, SELLER, ADMIN]) {
      const headers = { ...bearer(access), 'Idempotency-Key': key };
      const seat = `S-A-${holds.length + 1}`;
      const first = await server.hold(event, seat, {}, headers);
      assert.equal(first.status, 201, first.text);
      const again = await server.hold(event, seat, {}, headers);
      assert.equal(again.headers['idempotency-replayed'], 'true');
      assert.equal(again.text, first.text);
      assertProblem(await server.hold(event, 'S-B-9', {}, headers), 422, 'idempotency_mismatch');
      holds.push(first.json.id);
    }
    assert.equal(new Set(holds).size, 3);
  });

  it('a short Idempotency-Key needs an access key', async () => {
    const event = await server.createEvent({}, bearer(ADMIN));
    const short = (seat, key) => server.hold(event, seat, {}, { ...bearer(key), 'Idempotency-Key': 'k1' });
    assertProblem(await short('S-A-1', undefined), 400, 'invalid_request');
    assert.equal((await short('S-A-1', SELLER)).status, 201);
    assert.equal((await short('S-A-2', ADMIN)).status, 201);
    const long = await server.hold(event, 'S-A-3', {}, { ...bearer(SELLER), 'Idempotency-Key': 'k'.repeat(256) });
    assertProblem(long, 400, 'invalid_request');
  });

  it('a key keeps its Idempotency-Keys over a restart', async () => {
    const event = await server.createEvent({}, bearer(ADMIN));
    const headers = { ...bearer(SELLER), 'Idempotency-Key': 'before-restart' };
    const first = await server.hold(event, 'S-A-1', {}, headers);
    await server.restart();
    assert.equal((await server.hold(event, 'S-A-1', {}, headers)).text, first.text);
  });
});

describe('starting with keys', () => {
  after(reap);
  const refused = async (args, env, pattern) => {
    const dir = tempDir();
    const run = await runServer(['--data', path.join(dir, 'data'), ...args], { env });
    assert.ok(run.code > 0, `it started: ${run.stdout}${run.signal}`);
    assert.match(run.stderr, pattern);
    assertCleanStderr(run.stderr);
    assert.ok(!fs.existsSync(path.join(dir, 'data')), 'nothing was made');
    removeTempDir(dir);
    return run.stderr;
  };
  const keyFile = (dir, content, mode = 0o600) => {
    const file = path.join(dir, `keys-${Math.random()}`);
    fs.writeFileSync(file, content);
    fs.chmodSync(file, mode);
    return file;
  };

  it('off loopback it does not start without an admin key, and says what to set', async () => {
    for (const address of ['0.0.0.0:0', '[::]:0']) {
      await refused(['--listen', address], {}, /HOLDFAST_ADMIN_KEY or --admin-key-file/);
      await refused(['--listen', address], { HOLDFAST_SELLER_KEY: SELLER }, /HOLDFAST_ADMIN_KEY/);
    }
  });

  it('with an admin key it starts anywhere', async () => {
    for (const address of ['0.0.0.0:0', '127.0.0.2:0']) {
      const server = await start({ args: ['--listen', address], env: { HOLDFAST_ADMIN_KEY: ADMIN } });
      if (server.host === '0.0.0.0') server.host = '127.0.0.1';
      assert.equal((await server.get('/metrics')).status, 401);
      assert.equal((await server.get('/metrics', bearer(ADMIN))).status, 200);
      await server.stop();
    }
  });

  it('poor keys are refused and not printed', async () => {
    for (const key of ['secret with spaces in it', 'secret-with-tab\tin-it', 's'.repeat(256)]) {
      for (const name of Object.keys(KEYS)) {
        const stderr = await refused(['--listen', '127.0.0.1:0'], { [name]: key }, new RegExp(name));
        assert.ok(!stderr.includes(key), stderr);
      }
    }
    await refused(['--listen', '0.0.0.0:0'], { HOLDFAST_ADMIN_KEY: '' }, /HOLDFAST_ADMIN_KEY/); // an empty key is no key
    await refused(['--listen', '127.0.0.1:0'], { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: ADMIN }, /two scopes/);
  });

  it('a short key works, with a warning that does not show it', async () => {
    const server = await start({ env: { HOLDFAST_ADMIN_KEY: 'tiny-key' } });
    assert.equal((await server.get('/metrics', bearer('tiny-key'))).status, 200);
    assert.match(server.stderr, /short enough to be guessed/);
    assert.ok(!server.stderr.includes('tiny-key'));
    await server.stop();
  });

  it('a key is no flag', async () => {
    await refused(['--admin-key', ADMIN], {}, /unknown option/);
  });

  it('key files: missing, empty, readable by others or with a poor key in them are refused', async () => {
    const dir = tempDir();
    const listen = ['--listen', '127.0.0.1:0'];
    await refused([...listen, '--admin-key-file', path.join(dir, 'none')], {}, /none: No such file/);
    await refused([...listen, '--admin-key-file', dir], {}, /not a file/);
    await refused([...listen, '--admin-key-file', keyFile(dir, '')], {}, /no key/);
    await refused([...listen, '--seller-key-file', keyFile(dir, '# later\n\n')], {}, /no key/);
    for (const mode of [0o644, 0o640, 0o604]) {
      await refused([...listen, '--admin-key-file', keyFile(dir, `${ADMIN}\n`, mode)], {}, /chmod 600/);
    }
    const stderr = await refused([...listen, '--admin-key-file', keyFile(dir, `${ADMIN}\nbad secret\n`)], {}, /line 2/);
    assert.ok(!stderr.includes('bad secret') && !stderr.includes(ADMIN), stderr);
    removeTempDir(dir);
  });

  it('several keys of a scope work side by side, so that one can replace the other', async () => {
    const dir = tempDir();
    const next = 'admin-key-of-next-month';
    const admins = keyFile(dir, `# until the end of the month\n${ADMIN}\r\n\n# from then on\n${next}\n`);
    const sellers = keyFile(dir, SELLER, 0o400);
    const server = await start({ args: ['--admin-key-file', admins, '--seller-key-file', sellers],
      env: { HOLDFAST_SELLER_KEY: 'seller-key-from-environment' } });
    for (const key of [ADMIN, next]) assert.equal((await server.get('/metrics', bearer(key))).status, 200);
    for (const key of [SELLER, 'seller-key-from-environment']) {
      assertProblem(await server.get('/metrics', bearer(key)), 403, 'forbidden');
    }
    for (const key of ['# from then on', '']) {
      assert.equal((await server.get('/metrics', { Authorization: `Bearer ${key}` })).status, 401);
    }
    await server.stop();
    removeTempDir(dir);
  });

  it('flags that cannot be understood are refused', async () => {
    for (const args of [['--trusted-proxy', '10.0.0.0/99'], ['--trusted-proxy', 'localhost'],
      ['--public-seats-max', '0'], ['--public-seats-max', 'many'], ['--public-holds', 'maybe'],
      ['--cors-origin', 'https://shop.example/'], ['--cors-origin', 'shop.example']]) {
      await refused(['--listen', '127.0.0.1:0', ...args], {}, new RegExp(args[0]));
    }
  });

  it('without keys nobody is asked for one, and a key does no harm', async () => {
    const server = await start();
    for (const key of [undefined, 'anything']) {
      assert.equal((await server.get('/metrics', bearer(key))).status, 200);
      await server.createEvent({}, bearer(key));
    }
    await server.stop();
  });
});

describe('callers without a key', () => {
  after(reap);

  it('--public-holds off: they may look, and act on what they know, but not hold', async () => {
    const server = await start({ env: KEYS, args: ['--public-holds', 'off'] });
    const event = await server.createEvent({}, bearer(ADMIN));
    const refusal = await server.hold(event, 'S-A-1');
    assertProblem(refusal, 401, 'unauthorized');
    assert.equal(refusal.headers['www-authenticate'], MISSING);
    assert.equal((await server.map(event))['S-A-1'], '.');
    const hold = await server.grant(event, 'S-A-1', {}, bearer(SELLER));
    assertOk(await server.get(`/v1/holds/${hold.id}`));
    assertOk(await server.post(`/v1/holds/${hold.id}/renew`, {}));
    assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    await server.stop();
  });

  it('--public-holds off changes nothing where there are no keys', async () => {
    const server = await start({ args: ['--public-holds', 'off'] });
    await server.grant(await server.createEvent(), 'S-A-1');
    await server.stop();
  });

  const from = (address) => ({ 'X-Forwarded-For': address });
  const row = (name, n, first = 1) => Array.from({ length: n }, (_, i) => `S-${name}-${first + i}`);
  const limited = async (args = []) => {
    const server = await start({ env: KEYS, args });
    const event = await server.createEvent(
      { sections: [{ name: 'S', price: 1, rows: 6, seats_per_row: 10 }] }, bearer(ADMIN));
    return { server, event };
  };
  it('an address may hold twenty places at once, and no more', async () => {
    const { server, event } = await limited();
    const first = await server.grant(event, row('A', 10));
    await server.grant(event, row('B', 9));
    const refused = await server.hold(event, row('C', 2));
    assertProblem(refused, 429, 'too_many_holds');
    assert.equal(refused.json.limit, 20);
    assert.ok(refused.json.retry_after_ms >= 1000, refused.text);
    assert.equal(refused.headers['retry-after'], String(refused.json.retry_after_ms / 1000));
    await server.grant(event, row('C', 1));
    assertProblem(await server.hold(event, row('C', 1, 2)), 429, 'too_many_holds');
    await server.grant(event, row('D', 10), {}, bearer(SELLER));
    await server.grant(event, row('E', 10), {}, bearer(SELLER));
    await server.grant(event, row('F', 10), {}, bearer(SELLER));
    assert.equal((await server.del(`/v1/holds/${first.id}`)).status, 204);
    await server.grant(event, row('A', 10));
    assertProblem(await server.hold(event, row('C', 1, 2)), 429, 'too_many_holds');
    await server.stop();
  });

  it('--public-seats-max is that number', async () => {
    const { server, event } = await limited(['--public-seats-max', '3']);
    await server.grant(event, row('A', 3));
    assertProblem(await server.hold(event, row('B', 1)), 429, 'too_many_holds');
    await server.stop();
  });

  it('behind a trusted proxy each client has its own count', async () => {
    const { server, event } = await limited(['--public-seats-max', '2', '--trusted-proxy', '127.0.0.0/8']);
    await server.grant(event, row('A', 2), {}, from('198.51.100.1'));
    assertProblem(await server.hold(event, row('B', 1), {}, from('198.51.100.1')), 429, 'too_many_holds');
    assertProblem(await server.hold(event, row('B', 1), {}, from('9.9.9.9, 198.51.100.1, 127.0.0.9')), 429, 'too_many_holds');
    await server.grant(event, row('B', 2), {}, from('198.51.100.2'));
    await server.grant(event, row('C', 2), {}, from('2001:db8::1'));
    assertProblem(await server.hold(event, row('D', 1), {}, from('2001:db8::2')), 429, 'too_many_holds');
    await server.grant(event, row('D', 2));
    // A subscriber with a whole /48 has no more than eight times as much, also after a restart.
    const within = (n) => from(`2001:db8:7:${n}::1`);
    for (let n = 0; n < 8; n++) await server.grant(event, row('EF'[n >> 2], 2, 1 + 2 * (n & 3)), {}, within(n));
    await server.restart();
    const refused = await server.hold(event, row('D', 1, 4), {}, within('ffff'));
    assertProblem(refused, 429, 'too_many_holds');
    assert.match(refused.json.detail, /2 places, an IPv6 \/48 eight times as many/);
    await server.grant(event, row('D', 1, 4), {}, from('2001:db8:8::1'));
    await server.stop();
  });

  it('a stranger\'s X-Forwarded-For counts for nothing', async () => {
    const { server, event } = await limited(['--public-seats-max', '2', '--trusted-proxy', '10.0.0.0/8']);
    await server.grant(event, row('A', 2), {}, from('198.51.100.1'));
    assertProblem(await server.hold(event, row('B', 1), {}, from('198.51.100.2')), 429, 'too_many_holds');
    await server.stop();
  });

  it('X-Forwarded-For of any shape does no harm', async () => {
    const { server, event } = await limited(['--trusted-proxy', '127.0.0.1']);
    const shapes = ['', ',', 'unknown', '198.51.100.1, ,', '[::1', 'x'.repeat(4000), '127.0.0.1,'.repeat(500)];
    for (const [i, shape] of shapes.entries()) {
      const hold = await server.grant(event, `S-A-${i + 1}`, {}, from(shape));
      assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    }
    const wire = await Wire.connect(server);
    const body = JSON.stringify({ event: event.id, seats: ['S-B-1'] });
    const lines = Array.from({ length: 40 }, (_, i) => `X-Forwarded-For: 127.0.0.${i}\r\n`).join('');
    const answer = await wire.send(`POST /v1/holds HTTP/1.1\r\nHost: localhost\r\n${lines}Content-Length: ${body.length}\r\n\r\n${body}`);
    assert.equal(answer.status, 201);
    wire.close();
    await server.stop();
  });
});
