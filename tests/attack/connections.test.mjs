// One address that takes every connection it can get, with requests that never end, and clients that leave without a word:
// others are served all the while, the server says how it is, and no socket stays behind.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { after, describe, it } from 'node:test';
import { assertProblem } from '../support/expect.mjs';
import { newKey, parseMetrics, reap, runServer, Server, sleep, tempDir, until } from '../support/server.mjs';
import { encode, Wire } from '../support/wire.mjs';

const FILES = 424; // that may be open: 196 connections with two threads
const CONNECTIONS = FILES - 224 - 2 * 2;
const limited = (files) => (argv) => ['sh', '-c', `ulimit -n ${files}; exec "$@"`, 'sh', ...argv];
const TRIES = 3;
const HALL = { sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 50 }] };

async function launch(options) {
  const server = new Server({ ...options, args: ['--http-threads', '2', ...options.args ?? []] });
  await server.launch();
  return server;
}
const from = (server, localAddress) => ({ host: server.host, port: server.port, localAddress });

const PAUSE_MS = 1000; // until a connection of the crowd that was closed comes again, give or take a half

// A crowd of connections that each begin a request and go on with a byte at a time; those that are closed come again,
// one by one: if all of them came at once, each would take the place of the one before it.
class Crowd {
  constructor(server, addresses, count, { begin, more }) {
    this.sockets = new Set();
    this.opened = 0;
    this.again = (index) => {
      const socket = net.connect(from(server, addresses[index % addresses.length]), () => socket.write(begin));
      this.sockets.add(socket);
      this.opened++;
      socket.on('error', () => {});
      socket.on('data', () => {});
      socket.on('close', () => {
        this.sockets.delete(socket);
        if (!this.over) setTimeout(() => this.over || this.again(index), PAUSE_MS * (0.5 + Math.random()));
      });
    };
    for (let i = 0; i < count; i++) this.again(i);
    this.timer = setInterval(() => { for (const socket of this.sockets) if (socket.writable) socket.write(more); }, 500);
  }

  async during(work) {
    try {
      await work();
    } finally {
      this.stop();
    }
  }

  stop() {
    this.over = true;
    clearInterval(this.timer);
    for (const socket of this.sockets) socket.destroy();
  }
}

async function once(server, address, bytes) {
  const wire = await Wire.connect(from(server, address));
  try {
    return await wire.send(bytes);
  } finally {
    wire.close();
  }
}

// Asks as a client does whose connection may be closed before its request has arrived, by newcomers of its own address:
// again, with the same key.  Resolves to the answer and the number of tries.
async function persist(server, address, method, target, body) {
  const bytes = encode(method, target, body, { 'Idempotency-Key': newKey() });
  for (let tries = 1; ; tries++) {
    try {
      return { answer: await once(server, address, bytes), tries };
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
}

// Asked for on a connection of its own, since one that rests may be closed at any time.
async function metric(server, name) {
  const { text } = await once(server, '127.0.0.1', encode('GET', '/metrics'));
  return parseMetrics(text).find((sample) => sample.name === `holdfast_http_connections_${name}`).value;
}

// The server knows the crowd of an address by a slot of its table, one of 1,024 that a random key chooses, and in each of its
// loops by itself: by chance a quiet address is taken for one of the crowd.  Another server has another key.
async function again(attempt) {
  try {
    await attempt();
  } catch (error) {
    if (error.message !== 'the connection was closed') throw error;
    await attempt();
  }
}

const slow = {
  'heads that never end': { begin: 'GET /v1/events HTTP/1.1\r\nHost: localhost\r\nX: ', more: 'x' },
  'bodies that never end': { begin: 'POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{', more: ' ' },
  'connections that are idle': { begin: encode('GET', '/healthz'), more: '' },
};

describe('a crowd of connections', () => {
  after(reap);

  for (const [what, request] of Object.entries(slow)) {
    it(`with ${what} keeps nobody out, not even from its own addresses`, (t) => again(async () => {
      const server = await launch({ wrap: limited(FILES) });
      const event = await server.createEvent(HALL);
      // Two addresses: one alone has two thirds of all, and never fills the server.
      const quiet = await Wire.connect(from(server, '127.0.0.4')); // rests longer than most of them
      const askQuiet = async () => assert.equal((await quiet.request('GET', '/healthz')).status, 200);
      await askQuiet();
      const crowd = new Crowd(server, ['127.0.0.2', '127.0.0.3'], 2 * CONNECTIONS, request);
      await crowd.during(async () => {
        await until('the crowd is larger than the server', async () => await metric(server, 'evicted_total') > CONNECTIONS / 2);
        let asked = Date.now();
        await askQuiet();
        let seat = 0;
        let tries = 0;
        const hold = () => ({ event: event.id, seats: [`S-A-${++seat}`] });
        for (let i = 0; i < 20; i++) {
          const foreign = await once(server, '127.0.0.4', encode('POST', '/v1/holds', hold()));
          assert.equal(foreign.status, 201, foreign.text);
          for (const [method, target, body, status] of [['POST', '/v1/holds', hold(), 201], ['GET', '/healthz', undefined, 200]]) {
            const own = await persist(server, '127.0.0.2', method, target, body);
            assert.equal(own.answer.status, status, own.answer.text);
            tries += own.tries;
          }
          if (Date.now() - asked > 10_000) { // on a busy machine, before it has been idle for too long
            await askQuiet();
            asked = Date.now();
          }
        }
        await askQuiet();
        quiet.close();
        t.diagnostic(`${crowd.opened} connections came, ${await metric(server, 'evicted_total')} made room, 40 requests of the crowd's address took ${tries} tries`);
      });
      await server.stop();
    }));
  }

  it('of one address leaves a third of the places to others, and they are not disturbed', async () => {
    const server = await launch({ wrap: limited(FILES) });
    const quiet = await Wire.connectMany(from(server, '127.0.0.4'), 20); // idle from the beginning
    for (const wire of quiet) assert.equal((await wire.request('GET', '/healthz')).status, 200);
    const crowd = new Crowd(server, ['127.0.0.2'], 2 * CONNECTIONS, slow['heads that never end']);
    await crowd.during(async () => {
      await until('the crowd has its share', async () => await metric(server, 'evicted_total') > CONNECTIONS / 2);
      for (const wire of quiet) assert.equal((await wire.request('GET', '/healthz')).status, 200);
    });
    for (const wire of quiet) wire.close();
    await server.stop();
  });

  it('that is busy leaves room for probes and is refused anything else', async () => {
    const server = await launch({ args: ['--address-connections-max', '6'] });
    const event = await server.createEvent();
    const streams = await Promise.all(Array.from({ length: 6 }, async () => {
      const socket = net.connect(from(server, '127.0.0.2'));
      socket.write(encode('GET', `/v1/events/${event.id}/stream`));
      await new Promise((resolve) => { socket.once('data', resolve); });
      return socket;
    }));
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      const answer = await once(server, '127.0.0.2', encode('GET', path));
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.connection, 'close');
    }
    const refused = await once(server, '127.0.0.2', encode('GET', '/v1/events'));
    assertProblem(refused, 503, 'overloaded');
    assert.ok(Number(refused.headers['retry-after']) > 0);
    assert.equal((await once(server, '127.0.0.3', encode('GET', '/v1/events'))).status, 200);
    for (const socket of streams) socket.destroy();
    await until('its places are free', async () => (await once(server, '127.0.0.2', encode('GET', '/v1/events'))).status === 200);
    await server.stop();
  });

  it('fits the files that may be open, which the server looks at when it starts', async () => {
    const refused = await runServer(['--listen', '127.0.0.1:0', '--data', tempDir(), '--http-threads', '2'], { wrap: limited(291) });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /291 files may be open \(RLIMIT_NOFILE\), and at least 292 are needed; raise the limit/);
    const server = await launch({ wrap: limited(292) });
    // A thread of its own writes the log.
    await until('it says so', () => /"?places for clients"? .*connections=64 .*of_an_address=43 .*streams=42/.test(server.stderr));
    await server.stop();
  });
});

// ---- clients that leave ----

// The sockets of a server whose clients have ended their direction.
function closeWait(port) {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return fs.readFileSync('/proc/net/tcp', 'utf8').split('\n').map((line) => line.trim().split(/\s+/))
    .filter(([, at, , state]) => at === local && state === '08').length;
}

describe('clients that end their direction and read nothing', () => {
  after(reap);
  const MANY = 200;

  it('are gone within 5 s, in every state', async (t) => {
    const server = await launch({});
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 400, seats_per_row: 500 }] });
    const large = encode('GET', `/v1/events/${event.id}/seats`);
    const states = {
      idle: encode('GET', '/healthz'),
      'head not whole': 'GET /v1/ev',
      'body not whole': 'POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{',
      'answer not read': large,
      'answers not read': Buffer.concat(Array.from({ length: 40 }, () => large)),
      refused: 'GET / HTTP/9.9\r\n\r\n',
      stream: encode('GET', `/v1/events/${event.id}/stream`),
    };
    for (const [state, bytes] of Object.entries(states)) {
      const n = state.startsWith('answer') ? 20 : MANY;
      const wires = await Promise.all(Array.from({ length: n }, async () => {
        const socket = net.connect({ host: server.host, port: server.port, allowHalfOpen: true });
        socket.on('error', () => {});
        await new Promise((resolve) => { socket.once('connect', resolve); });
        socket.pause();
        return socket;
      }));
      await Promise.all(wires.map((socket) => new Promise((resolve) => { socket.write(bytes, resolve); })));
      await sleep(100);
      const began = Date.now();
      for (const socket of wires) socket.end();
      await until(`no socket is in CLOSE_WAIT: ${state}`, () => Date.now() - began > 100 && closeWait(server.port) === 0, 25_000);
      t.diagnostic(`${state}: ${Date.now() - began} ms`); // 5 s at most; a busy machine notices later, but before 30 s
      for (const socket of wires) socket.destroy();
    }
    await server.stop();
  });
});
