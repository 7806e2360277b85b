// Conventions of every answer: problems, request ids, methods and paths, health and metrics.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem } from '../support/expect.mjs';
import { parseMetrics, start, until } from '../support/server.mjs';
import { encode, Wire } from '../support/wire.mjs';

describe('conventions', () => {
  let server;
  let event;
  before(async () => { server = await start(); event = await server.createEvent(); });
  after(() => server?.stop());

  it('every answer has a request id of its own', async () => {
    const ids = new Set();
    for (const path of ['/healthz', '/v1/events', '/nowhere', '/v1/holds/hold_x', '/metrics']) {
      ids.add((await server.get(path)).headers['x-request-id']);
    }
    assert.equal(ids.size, 5);
  });

  it('an unknown path is 404 not_found', async () => {
    for (const path of ['/v1', '/v1/', '/v1/nothing', '/v2/events', '/v1/eventss',
      '/v1/holds/a/b/c', `/v1/events/${event.id}/nothing`, '/healthz/x', '//v1/events']) {
      assertProblem(await server.get(path), 404, 'not_found');
    }
    assertProblem(await server.post('/v1/nothing', {}), 404, 'not_found');
  });

  it('a wrong method is 405 and Allow lists the right ones', async () => {
    const hold = await server.grant(event, 'S-B-10');
    const rows = [
      ['DELETE', '/v1/events', ['GET', 'POST']],
      ['PUT', '/v1/events', ['GET', 'POST']],
      ['POST', `/v1/events/${event.id}`, ['GET', 'PATCH']],
      ['DELETE', `/v1/events/${event.id}`, ['GET', 'PATCH']],
      ['POST', `/v1/events/${event.id}/seats`, ['GET']],
      ['PUT', '/v1/holds', ['POST']],
      ['POST', `/v1/holds/${hold.id}`, ['GET', 'PATCH', 'DELETE']],
      ['PUT', `/v1/holds/${hold.id}`, ['GET', 'PATCH', 'DELETE']],
      ['GET', `/v1/holds/${hold.id}/renew`, ['POST']],
      ['DELETE', `/v1/holds/${hold.id}/confirm`, ['POST']],
      ['DELETE', '/v1/bookings/bkg_0000000000000000000000000000', ['GET']],
      ['POST', '/healthz', ['GET']],
      ['POST', '/readyz', ['GET']],
      ['DELETE', '/metrics', ['GET']],
    ];
    for (const [method, path, allowed] of rows) {
      const body = method === 'DELETE' ? undefined : '{}';
      const answer = await server.request(method, path, body);
      assertProblem(answer, 405, 'method_not_allowed');
      const allow = (answer.headers.allow ?? '').split(',').map((word) => word.trim());
      for (const word of allowed) assert.ok(allow.includes(word), `${method} ${path}: Allow: ${allow}`);
      assert.ok(!allow.includes(method), `${method} ${path}: Allow: ${allow}`);
    }
  });

  it('a method nobody knows is refused and the connection survives it or ends cleanly', async () => {
    const wire = await Wire.connect(server);
    const answer = await wire.request('BREW', '/v1/holds', '{}');
    assert.equal(answer.status, 405);
    assert.match(answer.headers.allow, /POST/);
    wire.close();
    assertOk(await server.get(`/v1/events/${event.id}`));
  });

  it('a problem is the same document whatever was wrong', async () => {
    const refused = [
      [await server.get('/nowhere'), 404, 'not_found'],
      [await server.get('/v1/events/evt_nothing'), 404, 'no_such_event'],
      [await server.get('/v1/holds/hold_nothing'), 404, 'no_such_hold'],
      [await server.get('/v1/bookings/bkg_nothing'), 404, 'no_such_booking'],
      [await server.post('/v1/holds', '{'), 400, 'invalid_request'],
    ];
    for (const [answer, status, code] of refused) assertProblem(answer, status, code);
  });

  it('a malformed id is an unknown id', async () => {
    const good = (await server.grant(event, 'S-B-9')).id;
    const flipped = good.slice(0, -1) + (good.endsWith('0') ? '1' : '0');
    const firstFlipped = good.replace(/^hold_(.)/, (_, c) => `hold_${c === '0' ? '1' : '0'}`);
    const bad = ['hold_', 'hold', 'x', good.slice(0, -1), `${good}0`, flipped, firstFlipped,
      good.toUpperCase(), good.replace('hold_', 'bkg_'), good.replace('hold_', 'evt_'), `%20${good}`,
      `${good}%00`, `hold_${'z'.repeat(28)}`, `hold_${'0'.repeat(28)}`, `hold_${'9'.repeat(3000)}`];
    for (const id of bad) {
      assertProblem(await server.get(`/v1/holds/${id}`), 404, 'no_such_hold');
      assertProblem(await server.del(`/v1/holds/${id}`), 404, 'no_such_hold');
      assertProblem(await server.post(`/v1/holds/${id}/renew`, {}), 404, 'no_such_hold');
      assertProblem(await server.post(`/v1/holds/${id}/confirm`, { fence: 1 }), 404, 'no_such_hold');
      assertProblem(await server.get(`/v1/bookings/${id}`), 404, 'no_such_booking');
      assertProblem(await server.get(`/v1/events/${id}`), 404, 'no_such_event');
      assertProblem(await server.get(`/v1/events/${id}/seats`), 404, 'no_such_event');
    }
    assertOk(await server.get(`/v1/holds/${good}`));
  });

  it('an unknown query parameter is 400 and named, whatever it holds', async () => {
    const queries = [['x=1', 'x'], ['nothing', 'nothing'], ['=', ''], ['a+b=1', 'a b'], ['%6eope=%00', 'nope'], ['Limit=1', 'Limit'], ['limit=1&owner=me', 'owner']];
    for (const [query, name] of queries) {
      const { detail } = assertProblem(await server.get(`/v1/events?${query}`), 400, 'invalid_request');
      assert.equal(detail, `query must not have unknown parameters: ${name}`);
    }
    const bytes = assertProblem(await server.get('/v1/events?%ff%fe=1'), 400, 'invalid_request');
    assert.equal(bytes.detail, 'query must not have unknown parameters: ');
    const long = assertProblem(await server.get(`/v1/events?${'%C3%A9'.repeat(400)}=1`), 400, 'invalid_request');
    assert.ok(long.detail.length < 200 && /é$/.test(long.detail), long.detail);
  });

  it('a query parameter is there once', async () => {
    assertInvalid(await server.get('/v1/events?limit=1&limit=1'), 'limit');
    assertInvalid(await server.get(`/v1/audit?event=${event.id}&event=${event.id}`), 'event');
    assertOk(await server.get('/v1/events?&limit=1&'));
    assertOk(await server.get('/v1/events?'));
  });

  it('a path, a method and a key are judged before the query', async () => {
    assertProblem(await server.get('/nowhere?x=1'), 404, 'not_found');
    assertProblem(await server.del('/v1/events?x=1'), 405, 'method_not_allowed');
  });

  it('the body is JSON whatever Content-Type says', async () => {
    const types = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'x'];
    for (const [index, type] of types.entries()) {
      const answer = await server.hold(event, `S-A-${index + 1}`, {}, { 'Content-Type': type });
      assert.equal(answer.status, 201, `${type}: ${answer.text}`);
    }
  });

  it('requests sent back to back on one connection are answered in order', async () => {
    const wire = await Wire.connect(server);
    const batch = Buffer.concat([
      encode('GET', `/v1/events/${event.id}`), encode('POST', '/v1/holds', { event: event.id, seats: ['S-B-8'] }),
      encode('GET', '/nowhere'), encode('POST', '/v1/holds', { event: event.id, seats: ['S-B-8'] }),
      encode('GET', '/healthz'),
    ]);
    const answers = [wire.send(batch), wire.next(), wire.next(), wire.next(), wire.next()];
    const statuses = (await Promise.all(answers)).map((answer) => answer?.status);
    assert.deepEqual(statuses, [200, 201, 404, 409, 200]);
    wire.close();
  });

  it('a chunked body is a body', async () => {
    const wire = await Wire.connect(server);
    const body = JSON.stringify({ event: event.id, seats: ['S-B-7'] });
    const half = body.length >> 1;
    const chunk = (text) => `${text.length.toString(16)}\r\n${text}\r\n`;
    const answer = await wire.send('POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
      + `${chunk(body.slice(0, half))}${chunk(body.slice(half))}0\r\n\r\n`);
    assert.equal(answer.status, 201, answer.text);
    wire.close();
  });

  it('HTTP/1.0 is answered and the connection closed', async () => {
    const wire = await Wire.connect(server);
    const answer = await wire.send('GET /healthz HTTP/1.0\r\n\r\n');
    assert.equal(answer.status, 200);
    await wire.closed;
  });

  it('healthz and readyz are 200 on a healthy server', async () => {
    assert.equal((await server.get('/healthz')).status, 200);
    assert.equal((await server.get('/readyz')).status, 200);
  });

  it('metrics are Prometheus text with a type for every family', async () => {
    const answer = await server.get('/metrics');
    assert.equal(answer.status, 200);
    assert.match(answer.headers['content-type'], /^text\/plain/);
    const samples = parseMetrics(answer.text);
    const types = Object.fromEntries([...answer.text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
      .map(([, name, type]) => [name, type]));
    const expected = {
      holdfast_hold_requests_total: 'counter', holdfast_hold_seconds: 'histogram',
      holdfast_holds_active: 'gauge', holdfast_holds_expired_total: 'counter',
      holdfast_renewals_total: 'counter', holdfast_sale_conflicts_total: 'counter',
      holdfast_batch_commands: 'histogram', holdfast_commit_seconds: 'histogram',
      holdfast_queue_depth: 'gauge', holdfast_ledger_surprises_total: 'counter',
      holdfast_bookings_total: 'counter',
    };
    for (const [name, type] of Object.entries(expected)) assert.equal(types[name], type, name);
    for (const { name } of samples) {
      assert.ok(name in types || name.replace(/_(bucket|sum|count)$/, '') in types, `no TYPE for ${name}`);
    }
    const histogram = samples.filter(({ name }) => name === 'holdfast_commit_seconds_bucket');
    const values = histogram.map(({ value }) => value);
    assert.deepEqual(values, [...values].sort((a, b) => a - b), 'buckets are cumulative');
    assert.equal(histogram.at(-1).labels.le, '+Inf');
    const count = samples.find(({ name }) => name === 'holdfast_commit_seconds_count').value;
    assert.equal(histogram.at(-1).value, count);
    assert.ok(count > 0);
  });

  it('metrics count what happened', async () => {
    const read = async () => ({
      granted: await server.metric('holdfast_hold_requests_total', { result: 'granted' }) ?? 0,
      taken: await server.metric('holdfast_hold_requests_total', { result: 'taken' }) ?? 0,
      byView: await server.metric('holdfast_hold_requests_total', { result: 'taken', by: 'view' }) ?? 0,
      active: await server.metric('holdfast_holds_active'),
      renewals: await server.metric('holdfast_renewals_total') ?? 0,
      seconds: await server.metric('holdfast_hold_seconds_count'),
      bookings: await server.metric('holdfast_bookings_total', { status: 'confirmed' }) ?? 0,
    });
    const seat = 'S-B-1';
    const earlier = await read();
    const hold = await server.grant(event, seat, { ttl_ms: 60_000 });
    for (let i = 0; i < 3; i++) assertProblem(await server.hold(event, seat), 409, 'seat_taken');
    assertOk(await server.post(`/v1/holds/${hold.id}/renew`, {}));
    const held = await read();
    assert.equal(held.granted - earlier.granted, 1);
    assert.equal(held.taken - earlier.taken, 3);
    assert.equal(held.byView - earlier.byView, 3, 'losers are answered from the view');
    assert.equal(held.active - earlier.active, 1);
    assert.equal(held.renewals - earlier.renewals, 1);
    assert.ok(held.seconds > earlier.seconds);
    assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
    const sold = await read();
    assert.equal(sold.active, earlier.active);
    assert.equal(sold.bookings - earlier.bookings, 1);
    assert.equal(await server.metric('holdfast_ledger_surprises_total'), 0);
  });

  it('expiries are counted', async () => {
    const earlier = await server.metric('holdfast_holds_expired_total') ?? 0;
    await server.grant(event, 'S-B-2', { ttl_ms: 1000 });
    await until('the expiry shows in the metrics',
      async () => (await server.metric('holdfast_holds_expired_total')) === earlier + 1, undefined, 100);
  });

  it('the log has no secrets in it', async () => {
    const hold = await server.grant(event, 'S-B-3');
    const booking = assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
    await server.get(`/v1/holds/${hold.id}`);
    await server.get(`/v1/bookings/${booking.id}`);
    await server.get(`/v1/holds/${hold.id}/oops`);
    for (const id of [hold.id, booking.id]) assert.ok(!server.stderr.includes(id.slice(5)));
  });

  it('another buyer\'s refusal does not tell whose hold it is', async () => {
    const hold = await server.grant(event, 'S-B-4', { owner: 'somebody-private' });
    const refusal = await server.hold(event, 'S-B-4');
    assertProblem(refusal, 409, 'seat_taken');
    assert.ok(!refusal.text.includes(hold.id));
    assert.ok(!refusal.text.includes('somebody-private'));
    assert.ok(!(await server.get(`/v1/events/${event.id}/seats`)).text.includes(hold.id));
  });
});
