// Limits on headers, and on what one client can make the server store.
// backends: sqlite

import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { newKey, sleep, start, until } from '../support/server.mjs';

const MIB = 1024 * 1024;

describe('headers and limits', () => {
  let server;
  let event;
  before(async () => {
    server = await start();
    event = await server.createEvent();
  });
  after(() => server?.stop());

  const connect = () => net.connect(server.port, '127.0.0.1');

  // Sends raw bytes; resolves to everything received until the server closes the connection, or is silent after an answer.
  const raw = (text) => new Promise((resolve) => {
    const socket = connect();
    let got = '';
    socket.setTimeout(20_000, () => socket.destroy());
    socket.on('data', (data) => { got += data; socket.setTimeout(500); });
    socket.on('error', () => {});
    socket.on('close', () => resolve(got));
    socket.write(text);
  });
  const post = (headers, body) => raw(`POST /v1/holds HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n${body}`);
  const answers = (text) => text.match(/HTTP\/1\.1 \d+/g) ?? [];

  it('a header name with white space is refused, and no second request is found in the body', async () => {
    for (const headers of ['Content-Length : 2', 'Transfer-Encoding : chunked\r\nContent-Length: 5', 'Content-Length\t: 2']) {
      const got = await post(headers, '{}GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
      assert.deepEqual(answers(got), ['HTTP/1.1 400'], `${headers}: ${got}`);
      assert.match(got, /invalid_request/);
    }
  });

  it('white space behind an Idempotency-Key is not part of it', async () => {
    const key = newKey();
    const body = JSON.stringify({ event: event.id, seats: ['S-A-1'] });
    const ids = [];
    for (const tail of ['', ' ', ' \t']) {
      const got = await post(`Idempotency-Key: ${key}${tail}\r\nContent-Length: ${body.length}`, body);
      ids.push(got.match(/hold_[0-9A-Za-z]+/)?.[0]);
    }
    assert.ok(ids[0]);
    assert.deepEqual(ids, [ids[0], ids[0], ids[0]]);
  });

  it('two Idempotency-Keys are 400', async () => {
    const got = await post(`Idempotency-Key: ${newKey()}\r\nIdempotency-Key: ${newKey()}\r\nContent-Length: 2`, '{}');
    assert.match(got, /^HTTP\/1\.1 400/);
    assert.match(got, /must be given once/);
  });

  it('an event has at most 100,000 rows, however few bytes ask for more', async () => {
    const section = (i, rows) => ({ name: `S${i}`, price: 1, rows, seats_per_row: 1 });
    const event = (rows) => ({ name: 'Rows', currency: 'usd', sections: [section(1, rows), section(2, 50_000)] });
    assertProblem(await server.post('/v1/events', event(50_001)), 400, 'invalid_request');
    assert.equal(assertOk(await server.post('/v1/events', event(50_000)), 201).capacity, 100_000);
  });

  it('large bodies have few places: the ninth is 503 and may come again', async () => {
    // A client that sends part of a large body and then waits.
    const occupy = () => {
      const socket = connect().on('error', () => {});
      socket.write(`POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${2 * MIB}\r\n\r\n${' '.repeat(MIB / 4)}`);
      return socket;
    };
    const sockets = Array.from({ length: 8 }, occupy);
    const body = { name: 'x'.repeat(100), currency: 'usd', sections: [{ name: 'S', price: 1, rows: [] }] };
    for (let i = 0; i < 3000; i++) body.sections[0].rows.push({ name: `row ${i}`, seats: 1 });
    const text = JSON.stringify(body);
    let answer;
    for (let tries = 0; tries < 400; tries++) { // until eight have arrived
      await sleep(50);
      answer = await server.post('/v1/events', body);
      if (answer.status === 503) break;
      sockets.push(occupy()); // one of the eight may have come while this request had its place, and was refused
    }
    assert.ok(text.length > 65536);
    assertProblem(answer, 503, 'overloaded');
    assert.equal(answer.headers['retry-after'], '1');
    sockets.forEach((socket) => socket.destroy());
    await until('there is a place', async () => (answer = await server.post('/v1/events', body)).status !== 503);
    assertOk(answer, 201);
  });
});
