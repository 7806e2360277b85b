// Bad input: every kind gets a clear 4xx (or a closed connection if there is no request to answer), changes
// nothing, and the server keeps serving.
// backends: sqlite

import assert from 'node:assert/strict';
import net from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import { assertHold, assertInvalid, assertOk, assertProblem } from '../support/expect.mjs';
import { assertTook, sleep, start } from '../support/server.mjs';
import { Wire } from '../support/wire.mjs';

const KIB = 1024;
const MIB = 1024 * KIB;

describe('bad input', () => {
  let server;
  let event;
  let hold;
  before(async () => {
    server = await start();
    event = await server.createEvent();
    hold = await server.grant(event, 'S-B-10');
  });
  after(() => server?.stop());

  // Asserts that the server still holds, releases and remembers, whatever a test has sent.
  afterEach(async () => {
    const answer = await server.request('POST', '/v1/holds', { event: event.id, seats: ['S-A-1'] }, {}, { agent: false });
    assert.equal(answer.status, 201, answer.text);
    assert.equal((await server.del(`/v1/holds/${answer.json.id}`)).status, 204);
    assertHold(assertOk(await server.get(`/v1/holds/${hold.id}`)), { event, seats: ['S-B-10'] });
    const map = await server.map(event);
    assert.equal(Object.values(map).join(''), '...................h');
  });

  const body = (fields) => JSON.stringify({ event: event.id, seats: ['S-A-1'], ...fields });

  it('malformed JSON is 400', async () => {
    const good = body();
    const bad = ['{', '}', '{}{}', `${good}x`, `${good}${good}`, good.slice(0, -1), '{"event":}', "{'event':1}",
      '{"event":"x",}', '[', '"', 'tru', 'nul', '{"a":01}', '{"a":+1}', '{"a":.5}', '{"a":1.}', '{"a":NaN}',
      '{"a":Infinity}', '{"a":0x10}', '/* x */ {}', '{"a":"\u0001"}', '{"a":"\\x"}', '{"a":"\\u12"}', '{"a":"\\ud800"}',
      '\u{feff}{}', 'event=1&seats=2', '<xml/>', '\0', `${good}\0`];
    for (const text of bad) {
      for (const path of ['/v1/holds', '/v1/events', `/v1/holds/${hold.id}/renew`, `/v1/holds/${hold.id}/confirm`]) {
        assertInvalid(await server.post(path, text));
      }
    }
  });

  it('deep nesting is 400', async () => {
    const depth = 10_000;
    const deep = ['['.repeat(depth), '['.repeat(depth) + ']'.repeat(depth), '{"a":'.repeat(depth),
      `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`, `{"event":"x","seats":${'['.repeat(depth)}${']'.repeat(depth)}}`,
      `{"event":"x","metadata":${'['.repeat(depth)}${']'.repeat(depth)},"seats":["a"]}`];
    for (const text of deep) {
      assertInvalid(await server.post('/v1/holds', text));
      assertInvalid(await server.post('/v1/events', text));
    }
    assertInvalid(await server.post('/v1/events', '['.repeat(4 * MIB)));
  });

  it('bytes that are not UTF-8 are 400', async () => {
    const around = (bytes) => Buffer.concat([Buffer.from(`{"event":"${event.id}","seats":["S-A-1"],"owner":"`),
      Buffer.from(bytes), Buffer.from('"}')]);
    const bad = [[0xff], [0xfe, 0xff], [0xc3], [0xc3, 0x28], [0xc0, 0x80], [0xc0, 0xaf], [0xe2, 0x82], [0xe0, 0x80, 0xaf],
      [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80], [0x80], [0xf0, 0x9f, 0x98]];
    for (const bytes of bad) assertInvalid(await server.post('/v1/holds', around(bytes)));
    assertInvalid(await server.post('/v1/holds', Buffer.from([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00])));
    assertInvalid(await server.post('/v1/events', around([0xff])));
  });

  it('a key named twice is 400', async () => {
    const twice = [`{"event":"${event.id}","event":"${event.id}","seats":["S-A-1"]}`,
      `{"event":"${event.id}","seats":["S-A-1"],"seats":["S-A-2"]}`,
      `{"event":"${event.id}","seats":["S-A-1"],"ev\\u0065nt":"${event.id}"}`,
      `{"event":"${event.id}","seats":["S-A-1"],"metadata":{"a":"1","a":"2"}}`];
    for (const text of twice) assertInvalid(await server.post('/v1/holds', text));
    assertInvalid(await server.post(`/v1/holds/${hold.id}/confirm`, `{"fence":1,"fence":${hold.fence}}`));
    assertInvalid(await server.post('/v1/events', '{"name":"x","name":"y","currency":"usd","sections":[{"name":"S","price":1,"rows":1,"seats_per_row":1}]}'));
  });

  it('numbers that do not fit are 400', async () => {
    const numbers = ['1e400', '-1e400', '9223372036854775808', '-9223372036854775809', '18446744073709551616',
      '1e18', '1e3', '1000.5', '-1000', '-0', '0', `1${'0'.repeat(400)}`, '1e-400', '2147483648000'];
    for (const number of numbers) {
      assertInvalid(await server.post('/v1/holds', `{"event":"${event.id}","seats":["S-A-1"],"ttl_ms":${number}}`));
      assertInvalid(await server.post(`/v1/holds/${hold.id}/renew`, `{"ttl_ms":${number}}`));
    }
    for (const number of ['1e400', '9223372036854775808', '18446744073709551617', '1.5', `${hold.fence}.5`, `1${'0'.repeat(400)}`]) {
      assertInvalid(await server.post(`/v1/holds/${hold.id}/confirm`, `{"fence":${number}}`));
    }
    const section = (rows, seats, price = 1) => `{"name":"x","currency":"usd","sections":[{"name":"S","price":${price},"rows":${rows},"seats_per_row":${seats}}]}`;
    for (const [rows, seats, price] of [['1e400', 1], ['9223372036854775808', 1], ['9223372036854775807', '9223372036854775807'],
      ['4294967296', '4294967296'], ['4294967297', 1], [1, '4294967297'], ['2000001', 1], ['-1', '-1'], [1, 1, '9223372036854775808'],
      ['1.0e2', 1]]) {
      assertInvalid(await server.post('/v1/events', section(rows, seats, price)));
    }
  });

  it('amounts cannot overflow', async () => {
    const most = '9223372036854775807';
    const answer = await server.post('/v1/events', `{"name":"x","currency":"usd","sections":[{"name":"S","price":${most},"rows":1,"seats_per_row":3}]}`);
    if (answer.status === 400) return void assertInvalid(answer, 'price');
    assertOk(answer, 201);
    const held = await server.hold(answer.json, ['S-A-1', 'S-A-2', 'S-A-3']);
    assert.ok(held.status < 500);
    if (held.status === 201) assert.ok(held.json.amount > 0, `${held.text}`);
  });

  it('NUL inside a string is 400', async () => {
    for (const fields of [{ owner: 'a\u0000b' }, { seats: ['S-A-1\u0000'] }, { event: `${event.id}\u0000` }, { metadata: { 'a\u0000': '1' } },
      { metadata: { a: '\u0000' } }]) {
      const answer = await server.post('/v1/holds', body(fields));
      assert.ok([400, 404].includes(answer.status), answer.text);
      if (answer.status === 404) assert.ok(fields.seats || fields.event);
    }
    assertInvalid(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, reference: 'a\u0000b' }));
  });

  it('many unknown fields, long strings and long lists are 400 and quick', async () => {
    const started = Date.now();
    assertInvalid(await server.post('/v1/holds', body(Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`f${i}`, i])))));
    assertInvalid(await server.post('/v1/holds', body({ owner: 'x'.repeat(60_000) })), 'owner');
    assertInvalid(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, reference: 'x'.repeat(60_000) }), 'reference');
    const many = await server.post('/v1/holds', body({ seats: Array.from({ length: 5000 }, (_, i) => `S-A-${i}`) }));
    assertProblem(many, 400, 'too_many_seats');
    const same = await server.post('/v1/holds', body({ seats: Array(5000).fill('S-A-1') }));
    assert.equal(same.status, 400);
    assert.ok(['too_many_seats', 'duplicate_seat'].includes(same.json.code), same.text);
    assertTook(Date.now() - started, 20_000, 'six refusals');
  });

  it('a body of 64 KiB is read and a byte more is 413', async () => {
    const fill = (size) => { const text = body(); return text + ' '.repeat(size - text.length); };
    const fits = await server.post('/v1/holds', fill(64 * KIB));
    assert.equal(fits.status, 201, fits.text);
    await server.del(`/v1/holds/${fits.json.id}`);
    for (const size of [64 * KIB + 1, 65 * KIB, 200 * KIB, 1000 * KIB]) {
      for (const path of ['/v1/holds', `/v1/holds/${hold.id}/renew`, `/v1/holds/${hold.id}/confirm`]) {
        assertProblem(await server.post(path, fill(size)), 413, 'body_too_large');
      }
    }
  });

  // A client that reads between writes, as browsers and curl do.
  async function sendSlowly(head, total, chunk = (n) => Buffer.alloc(n, 0x20)) {
    const wire = await Wire.connect(server);
    const reply = wire.next();
    let answer;
    reply.then((value) => { answer = value; });
    await wire.write(head);
    for (let sent = 0; sent < total && answer === undefined; sent += 64 * KIB) {
      await wire.write(chunk(Math.min(64 * KIB, total - sent)));
      await sleep(2);
    }
    answer = await reply;
    wire.close();
    assert.ok(answer, 'the answer could not be read');
    return answer;
  }
  const assertTooLarge = (answer) => {
    assert.equal(answer.status, 413);
    assert.equal(answer.json.code, 'body_too_large');
    assert.match(answer.headers['content-type'], /^application\/problem\+json/);
    assert.ok(answer.headers['x-request-id']);
  };

  it('a body of more than 1 MiB is 413 and the answer can be read', async () => {
    for (const total of [MIB + 1, 3 * MIB]) {
      assertTooLarge(await sendSlowly(`POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${total}\r\n\r\n`, total));
    }
  });

  it('an event description of more than 8 MiB is 413 and the answer can be read', async () => {
    const total = 8 * MIB + 1;
    assertTooLarge(await sendSlowly(`POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${total}\r\n\r\n`, total));
  });

  it('an endless chunked body is 413 and the answer can be read', async () => {
    const chunk = (size) => Buffer.concat([Buffer.from(`${size.toString(16)}\r\n`), Buffer.alloc(size, 0x20), Buffer.from('\r\n')]);
    assertTooLarge(await sendSlowly('POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n', 3 * MIB, chunk));
  });

  it('a body promised to be absurdly long is refused', async () => {
    for (const length of ['99999999999', '18446744073709551615', '18446744073709551616', '-1', 'x', '1, 2', '0x10', '+5']) {
      const wire = await Wire.connect(server);
      await wire.write(`POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n{`);
      const answer = await Promise.race([wire.next(), sleep(200)]);
      if (answer) assert.ok(answer.status >= 400 && answer.status < 500, `${length}: ${answer.status}`);
      wire.close();
    }
  });

  it('odd paths are 4xx', async () => {
    const encoded = `/v1/events/${[...event.id].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')}`;
    assertOk(await server.get(encoded));
    for (const path of ['/v1/events/%00', '/v1/events/%', '/v1/events/%zz', '/v1/events/%ff%fe', '/v1/events/%2e%2e/x', '/v1/../v1/events/x',
      `/v1/events%2F${event.id}%2Fx`, '/v1/holds/%2e', '/v1/events/;x', `/v1/events/${'a/'.repeat(500)}`, '/%00', '/*', '/v1/events/"\'<>',
      `/v1/events/${event.id}/seats%00`, `/v1/holds/${hold.id}%00/renew`]) {
      const answer = await server.get(path);
      assert.ok(answer.status >= 400 && answer.status < 500, `${path}: ${answer.status}`);
      assert.equal(answer.json.status, answer.status);
    }
  });

  // Sends bytes and waits for the answer's first line or the end of the connection.
  const throwAt = (bytes, waitMs = 300) => new Promise((resolve) => {
    const socket = net.connect(server.port, server.host);
    let got = '';
    const done = () => { socket.destroy(); resolve(got.split('\r\n')[0]); };
    socket.on('connect', () => socket.write(bytes));
    socket.on('data', (data) => { got += data.toString('latin1'); if (got.includes('\r\n')) done(); });
    socket.on('error', done);
    socket.on('close', done);
    setTimeout(done, waitMs);
  });

  it('what is not HTTP gets a 4xx or a closed door', async () => {
    const noise = Buffer.alloc(4096);
    for (let i = 0; i < noise.length; i++) noise[i] = (i * 7919 + 13) & 0xff;
    const junk = ['\r\n\r\n\r\n', 'hello\r\n\r\n', 'GET\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n', 'GET / HTTP/1.1\r\nbroken\r\n\r\n',
      'GET / HTTP/1.1\r\nHost: localhost\r\nA : b\r\n\r\n', '\0\0\0\0\r\n\r\n', noise, '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      'GET http://elsewhere/nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n', 'POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      'POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n',
      'POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}',
      'GET /healthz HTTP/1.1\r\n\r\n', 'GET /healthz HTTP/1.1\nHost: localhost\n\n'];
    for (const bytes of junk) {
      const line = await throwAt(bytes);
      assert.ok(line === '' || /^HTTP\/1\.[01] ([24]\d\d|50[15]) ?/.test(line), `${JSON.stringify(String(bytes).slice(0, 60))}: ${line}`);
      if (/^HTTP\/1\.[01] 2/.test(line)) assert.match(String(bytes), /healthz/);
    }
  });

  it('two lengths for one body are refused, and nothing after them is believed', async () => {
    const smuggled = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
    for (const lengths of [`Content-Length: 2\r\nContent-Length: ${2 + smuggled.length}`,
      `Content-Length: ${2 + smuggled.length}\r\nContent-Length: 2`,
      `Transfer-Encoding: chunked\r\nContent-Length: ${2 + smuggled.length}`]) {
      const wire = await Wire.connect(server);
      await wire.write(`POST /v1/holds HTTP/1.1\r\nHost: localhost\r\n${lengths}\r\n\r\n{}${smuggled}`);
      const answer = await Promise.race([wire.next(), sleep(1000)]);
      if (answer) assert.equal(answer.status, 400, lengths);
      const second = await Promise.race([wire.next(), sleep(1000)]);
      wire.close();
      assert.notEqual(second?.status, 200, `${lengths}: the request inside the body was answered`);
    }
  });

  it('a very long URL or header is a 4xx or a closed door', async () => {
    const long = 'a'.repeat(100 * KIB);
    for (const bytes of [`GET /v1/events/${long} HTTP/1.1\r\nHost: localhost\r\n\r\n`, `GET /v1/events?limit=${long} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ${long}\r\n\r\n`, `GET /healthz HTTP/1.1\r\nHost: localhost\r\n${'X-Many: 1\r\n'.repeat(20_000)}\r\n`,
      `POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: ${long}\r\nContent-Length: 2\r\n\r\n{}`, long, `${long.repeat(10)}\r\n\r\n`]) {
      const line = await throwAt(bytes, 2000);
      assert.ok(line === '' || /^HTTP\/1\.[01] (4\d\d|501)/.test(line), line);
    }
  });

  it('a client that leaves in the middle is no trouble', async () => {
    const text = body({ seats: ['S-A-2'] });
    const whole = `POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
    for (let cut = 1; cut < whole.length; cut += 9) {
      const wire = await Wire.connect(server);
      await wire.write(whole.slice(0, cut));
      wire.close();
    }
    // These requests arrive complete, but the client does not wait for the answer: release the seat if it is held.
    const wires = await Wire.connectMany(server, 20);
    for (const wire of wires) { await wire.write(`GET /v1/events/${event.id}/seats HTTP/1.1\r\nHost: localhost\r\n\r\n`); wire.close(); }
  });
});
