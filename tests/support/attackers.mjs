// Attackers of a server: each kind comes from loopback addresses of its own and is bounded in connections and in
// requests per second.  They run on a thread of their own, so that they do not slow down the client that the test measures.
//
//   const attackers = startAttackers({ host, port, event, kinds: ATTACKS });
//   ...
//   const made = await attackers.made();    // so far: { kind: { connections, answers: { status: count } } }
//   const all = await attackers.stop();

import crypto from 'node:crypto';
import net from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { reset } from './wire.mjs';

const TICK_MS = 100;
const TICKS_A_SECOND = 1000 / TICK_MS;
const ANSWER_MS = 20_000;
const UNREAD_MS = 15_000; // a client that does not read does not notice that it was cut off: after this time it comes again

export const ATTACKS = ['slowHeads', 'slowBodies', 'slowLists', 'slowMaps', 'slowStreams', 'replays', 'metadata', 'keys', 'idempotency', 'malformed', 'floods'];

export function startAttackers(target) {
  const worker = new Worker(new URL(import.meta.url), { workerData: target });
  const failed = new Promise((resolve, reject) => worker.once('error', reject));
  failed.catch(() => {}); // `stop` reports it
  const ask = (what) => {
    const told = new Promise((resolve) => worker.once('message', resolve));
    worker.postMessage(what);
    const late = new Promise((resolve, reject) => setTimeout(() => reject(new Error('the attackers do not answer')), ANSWER_MS).unref());
    return Promise.race([told, failed, late]);
  };
  return {
    made: () => ask('made'),
    stop: async () => {
      const made = await ask('stop');
      await worker.terminate();
      return made;
    },
  };
}

// ---- on the thread ----

const HOST = 'Host: localhost\r\n';
const get = (target, fields = '') => `GET ${target} HTTP/1.1\r\n${HOST}${fields}\r\n`;
const post = (target, body, fields = '') => `POST ${target} HTTP/1.1\r\n${HOST}${fields}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const MALFORMED = ['\0', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'GET\r\n', 'GET / HTTP/9.9\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n', 'GET / HTTP/1.1\n\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  get('/healthz', 'A : b\r\n'), get('/healthz', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'), get('/healthz', 'A: b\r\n'.repeat(200)), get(`/${'a'.repeat(20_000)}`), get('/healthz', `A: ${'b'.repeat(20_000)}\r\n`),
  `POST /v1/holds HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n`, `POST /v1/holds HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n5;${'a'.repeat(20_000)}\r\n`,
  post('/v1/holds', '['.repeat(20_000)), post('/v1/holds', '{"event":'), `POST /v1/holds HTTP/1.1\r\n${HOST}Content-Length: 99999999999999999999\r\n\r\n`];

class Attackers {
  made = {};
  sockets = new Set();
  constructor({ host, port, event, kinds }) {
    this.address = { host, port };
    this.event = event;
    for (const kind of kinds) {
      this.made[kind] = { connections: 0, answers: {} };
      this[kind]((...args) => this.open(kind, ...args));
    }
    this.timer = setInterval(() => { for (const act of this.acts) act(); }, TICK_MS);
  }
  acts = []; // what happens ten times a second

  // Opens a connection.  `onAnswer(socket)` is called for each answer that begins.
  open(kind, localAddress, { send = '', reads = true, onAnswer = () => {} } = {}) {
    const socket = net.connect({ ...this.address, localAddress });
    const made = this.made[kind];
    made.connections++;
    this.sockets.add(socket);
    socket.setNoDelay(true).on('error', () => {}).on('close', () => this.sockets.delete(socket));
    socket.on('end', () => socket.destroy());
    if (send) socket.write(Buffer.from(send, 'latin1'));
    if (reads) {
      socket.on('data', (data) => {
        for (const [, status] of data.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
          made.answers[status] = (made.answers[status] ?? 0) + 1;
          onAnswer(socket, data);
        }
      });
    } else {
      socket.pause();
      setTimeout(() => reset(socket), UNREAD_MS).unref();
    }
    return socket;
  }

  // Keeps `count` connections open, and calls `trickle` for each of them once a second.
  keep(count, connect, trickle = () => {}) {
    const kept = new Set();
    let tick = 0;
    this.acts.push(() => {
      let n = tick++;
      for (const socket of kept) {
        if (socket.destroyed) kept.delete(socket);
        else if (n++ % TICKS_A_SECOND === 0 && !socket.connecting) trickle(socket);
      }
      for (let added = 0; kept.size < count && added < 10; added++) kept.add(connect());
    });
  }

  // Asks again and again on `count` connections, at most `rate` times a second in all.
  ask(count, rate, connect, request) {
    let due = 0;
    const idle = new Set();
    this.keep(count, () => connect((socket) => idle.add(socket)));
    this.acts.push(() => {
      due = Math.min(due + rate * TICK_MS / 1000, rate);
      for (const socket of idle) {
        if (due < 1) return;
        idle.delete(socket);
        if (socket.destroyed) continue;
        due--;
        socket.write(request());
      }
    });
  }

  slowHeads(open) { this.keep(300, () => open('127.0.0.11', { send: 'GET /healthz HTTP/1.1\r\nX: ' }), (socket) => socket.write('x')); }
  slowBodies(open) { this.keep(150, () => open('127.0.0.12', { send: `POST /v1/holds HTTP/1.1\r\n${HOST}Content-Length: 60000\r\n\r\n{` }), (socket) => socket.write(' '.repeat(5))); }
  slowLists(open) { this.keep(40, () => open('127.0.0.13', { send: get('/v1/events?limit=100').repeat(100), reads: false })); }
  slowMaps(open) { this.keep(20, () => open('127.0.0.13', { send: get(`/v1/events/${this.event}/seats`).repeat(100), reads: false })); }
  slowStreams(open) { this.keep(150, () => open('127.0.0.14', { send: get(`/v1/events/${this.event}/stream`), reads: false })); }

  replays(open) {
    this.acts.push(() => {
      for (let n = 0; n < 2; n++) open('127.0.0.14', { send: get(`/v1/events/${this.event}/stream?after=1`), onAnswer: (socket) => setTimeout(() => socket.destroy(), TICK_MS) });
    });
  }

  // Holds with as much metadata as there may be, each released at once.
  metadata(open) {
    const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, 'v'.repeat(500)]));
    let seat = 0;
    const first = (socket) => socket.write(post('/v1/holds', JSON.stringify({ event: this.event, seats: [`A-A-${++seat % 100 + 1}`], ...(seat % 2 ? { metadata } : {}) })));
    this.keep(4, () => {
      const socket = open('127.0.0.15', {
        onAnswer: (one, data) => {
          const [, id] = /"id":"(hold_\w+)"/.exec(data.toString('latin1')) ?? [];
          if (id) one.write(`DELETE /v1/holds/${id} HTTP/1.1\r\n${HOST}\r\n`);
          else setTimeout(() => first(one), TICK_MS);
        },
      });
      first(socket);
      return socket;
    });
  }

  keys(open) {
    const guess = () => get('/v1/audit', `Authorization: Bearer ${crypto.randomBytes(16).toString('hex')}\r\n`);
    this.ask(4, 100, (idle) => open('127.0.0.16', { send: guess(), onAnswer: idle }), guess);
  }

  idempotency(open) {
    let n = 0;
    const guess = () => post('/v1/holds', JSON.stringify({ event: this.event, seats: ['A-A-1'] }), `Idempotency-Key: ${[`order-${String(n++).padStart(12, '0')}`, 'a'.repeat(16), crypto.randomUUID()][n % 3]}\r\n`);
    this.ask(4, 40, (idle) => open('127.0.0.17', { send: guess(), onAnswer: idle }), guess);
  }

  malformed(open) {
    let n = 0;
    this.acts.push(() => { for (let i = 0; i < 4; i++) open('127.0.0.18', { send: MALFORMED[n++ % MALFORMED.length] }); });
  }

  // Connections that say nothing, or go away in the middle, from several addresses.
  floods(open) {
    let n = 0;
    this.acts.push(() => {
      for (let i = 0; i < 6; i++) {
        const socket = open(`127.0.0.${20 + n++ % 4}`, { send: n % 3 ? '' : get('/v1/events').slice(0, n % 40) });
        setTimeout(() => (n % 2 ? reset(socket) : socket.end()), 1000);
      }
    });
  }

  stop() {
    clearInterval(this.timer);
    for (const socket of this.sockets) reset(socket);
    return this.made;
  }
}

if (!isMainThread && workerData?.kinds) {
  const attackers = new Attackers(workerData);
  parentPort.on('message', (what) => parentPort.postMessage(what === 'stop' ? attackers.stop() : attackers.made));
}
