// Clients that half-close, reset, pipeline or send a byte at a time, while others keep the server busy; and a server
// that has no file descriptors left.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { seed, seededRandom } from '../support/random.mjs';
import { pool, reap, sleep, start, until } from '../support/server.mjs';
import { encode, Wire } from '../support/wire.mjs';

// The CPU time that a process has used, in ms.
function cpuMs(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const openFiles = (pid) => fs.readdirSync(`/proc/${pid}/fd`).length;

// Requests whose answers differ, so that their order shows.
const kinds = [
  { bytes: encode('GET', '/healthz'), status: 200 },
  { bytes: encode('GET', '/nowhere'), status: 404 },
  { bytes: encode('DELETE', '/healthz'), status: 405 },
  { bytes: encode('POST', '/v1/holds', 'not JSON'), status: 400 },
  { bytes: Buffer.from('POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"ev\r\n0\r\n\r\n'), status: 400 },
];

// Sends `count` requests on one connection, cut at random places, and asserts that the answers are in order.
async function pipeline(wire, random, count) {
  const asked = Array.from({ length: count }, () => random.oneOf(kinds));
  const bytes = Buffer.concat(asked.map((kind) => kind.bytes));
  const answers = asked.map(() => wire.next());
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + random.below(random.below(10) ? 3000 : 20);
    await wire.write(bytes.subarray(at, end));
    at = end;
    if (random.below(4) === 0) await new Promise(setImmediate);
  }
  const statuses = (await Promise.all(answers)).map((answer) => answer?.status);
  assert.deepEqual(statuses, asked.map((kind) => kind.status));
}

// Keeps the server busy with pipelined requests while `work` is done.
async function underLoad(server, random, work) {
  let over = false;
  let batches = 0;
  const lanes = (await Wire.connectMany(server, 4)).map(async (wire) => {
    for (; !over; batches++) {
      await pipeline(wire, random, 100);
      await sleep(20);
    }
    wire.close();
  });
  try {
    await work();
  } finally {
    over = true;
    await Promise.all(lanes);
  }
  assert.ok(batches > 0);
}

describe('connections', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { await server?.stop(); await reap(); });
  const random = seededRandom();
  const hall = { sections: [{ name: 'S', price: 1, rows: 20, seats_per_row: 50 }] };
  const rowOf = (index) => String.fromCharCode(65 + Math.floor(index / 50));
  const holdOf = (event, index) => encode('POST', '/v1/holds', { event: event.id, seats: [`S-${rowOf(index)}-${index % 50 + 1}`] });

  it('that pipeline get their answers in order', async (t) => {
    t.diagnostic(`HF_SEED=${seed}`);
    const wires = await Wire.connectMany(server, 20);
    await Promise.all(wires.map((wire) => pipeline(wire, random, 500)));
    for (const wire of wires) wire.close();
  });

  it('that half-close after a request are answered', async () => {
    const event = await server.createEvent(hall);
    await underLoad(server, random, () => pool(Array.from({ length: 300 }, (_, i) => i), 30, async (index) => {
      const wire = await Wire.connect(server);
      const answer = wire.next();
      wire.socket.end(holdOf(event, index));
      assert.equal((await answer)?.status, 201, `client ${index}`);
      assert.equal(await wire.closed, undefined, 'the server closes in its turn, without a reset');
    }));
    assert.equal((await server.counts(event)).held, 300);
  });

  it('that are reset at any moment leave nothing behind', async () => {
    const event = await server.createEvent(hall);
    const before = openFiles(server.pid);
    await underLoad(server, random, () => pool(Array.from({ length: 600 }, (_, i) => i), 40, async (index) => {
      const wire = await Wire.connect(server);
      const bytes = holdOf(event, index);
      await wire.write(random.below(3) ? bytes : bytes.subarray(0, random.below(bytes.length)));
      if (random.below(2)) await sleep(random.below(5));
      wire.reset();
    }));
    await until('the server has let go of them', async () => openFiles(server.pid) <= before + 5
      && await server.metric('holdfast_http_connections') <= 3, 20_000); // 30 s for connections that are only idle
    const { held, available } = await server.counts(event);
    assert.equal(held + available, 1000);
    assert.ok(held > 0, 'no request arrived whole before the reset');
  });

  it('whose bytes come one by one are served', async () => {
    const event = await server.createEvent(hall);
    const requests = [...kinds, { bytes: holdOf(event, 0), status: 201 }, { bytes: holdOf(event, 0), status: 409 }];
    await Promise.all((await Wire.connectMany(server, 5)).map(async (wire, index) => {
      for (const { bytes, status } of index === 0 ? requests : kinds) {
        const answer = wire.next();
        for (const byte of bytes) {
          await wire.write(Buffer.of(byte));
          await new Promise(setImmediate);
        }
        assert.equal((await answer)?.status, status);
      }
      wire.close();
    }));
  });

  it('are served on while there are no file descriptors for more', async (t) => {
    await server.restart();
    const event = await server.createEvent(hall);
    execFileSync('prlimit', ['--pid', `${server.pid}`, '--nofile=70']); // less than the server reckoned with when it started
    const first = await Wire.connectMany(server, 10);
    for (const wire of first) assert.equal((await wire.request('GET', '/healthz')).status, 200);

    // The kernel connects more clients than the server can accept.
    const more = await Wire.connectMany(server, 80);
    let answered = 0;
    for (const wire of more) wire.request('GET', '/healthz').then(({ status }) => { answered += status === 200; }, () => {});
    await until('the files have run out, and those that it accepted are answered', () => openFiles(server.pid) >= 69 && answered > 0);
    await sleep(200);
    assert.ok(answered < 80, `${answered}`);

    // Connections that stand are served, and the server does not spin.
    const [started, cpu] = [Date.now(), cpuMs(server.pid)];
    for (let index = 0; index < 100; index++) {
      const answer = await first[index % 10].send(holdOf(event, index));
      assert.equal(answer.status, 201, answer.text);
    }
    const busy = cpuMs(server.pid) - cpu;
    const quietFrom = cpuMs(server.pid);
    await sleep(2000);
    const spent = cpuMs(server.pid) - quietFrom;
    t.diagnostic(`${answered} of 80 accepted; 100 holds took ${busy} ms of CPU in ${Date.now() - started - 2000} ms; then ${spent} ms in 2 s`);
    assert.ok(spent < 200, `${spent} ms of CPU in 2 s without work`);

    // As clients leave, others get their places.
    for (const wire of first) wire.close();
    await until('ten more are answered', () => answered >= 20);
    for (let left = 80; left > 0; left--) {
      const wire = more.find((each) => !each.isClosed && each.waiting.length === 0);
      if (!wire) { await sleep(20); left++; continue; }
      wire.close();
      await wire.closed;
    }
    assert.equal(answered, 80);
    assert.equal((await server.get('/readyz')).status, 200);
  });
});
