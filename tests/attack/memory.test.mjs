// Clients that take memory: slow readers of lists, maps and streams, bodies and heads that never end.  The server neither
// dies nor takes more than docs/secure.md says ("The ceiling of memory"), it serves honest clients meanwhile, and it gives
// the memory back.  HF_SOAK=1 has the full numbers.
//
// The address sanitizer is told to keep nothing of what was freed (RETURNS_MEMORY), and then takes no more than the claims allow.
// backends: own
// time limit: 300 s

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, describe, it } from 'node:test';
import { pool, reap, RETURNS_MEMORY, runServer, start, tempDir, until } from '../support/server.mjs';
import { closeAll, get, memory, slowClients } from '../support/slow.mjs';

const soak = process.env.HF_SOAK === '1';
const skip = /\/tsan\//.test(process.env.HOLDFASTD ?? '') && 'the thread sanitizer takes memory of its own';
const MIB = 1024 * 1024;
const BUDGET = 16 * MIB;
const LIST = '/v1/events?limit=100';

after(reap);

const startServer = (budget = BUDGET) =>
  start({ args: ['--answer-memory-max', `${budget / MIB}MB`], env: RETURNS_MEMORY });

const unsent = (server) => server.metric('holdfast_http_answer_bytes');
const cut = (server, reason) => server.metric('holdfast_http_answers_cut_total', { reason });
const mib = (bytes) => `${(bytes / MIB).toFixed(1)} MiB`;

// A page of the list has about 25 KB for each event.
async function createLongEvents(server, count) {
  const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`key${i}`, 'x'.repeat(500)]));
  await pool(Array.from({ length: count }), 20, () => server.createEvent({ metadata }));
}

// What a buyer and an operator do: all of it has to succeed.
async function useHonestly(server, event) {
  const hold = await server.grant(event, 'S-A-1');
  assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
  const page = await server.get(LIST, { 'Accept-Encoding': 'gzip' });
  assert.equal(page.status, 200);
  assert.ok(page.json.data.length > 0);
  assert.equal((await server.get('/healthz')).status, 200);
}

describe('--answer-memory-max', () => {
  it('is a size of at least 1 MB', async () => {
    for (const value of ['1023KB', '12', '-1MB', '1.5GB', 'much', '']) {
      const { code, stderr } = await runServer(['--data', tempDir(), '--listen', '127.0.0.1:0', '--answer-memory-max', value]);
      assert.equal(code, 64, value);
      assert.match(stderr, /--answer-memory-max is a size such as 64MB or 1GB/);
    }
  });
});

describe('slow readers of one list', () => {
  it('cost one copy of it, and nobody is cut off for it', { skip }, async (t) => {
    const server = await startServer();
    await createLongEvents(server, 60);
    const event = await server.createEvent({ sections: [{ name: 'S', tier: 'A', price: 1, rows: 1, seats_per_row: 2 }] });
    const { length } = (await server.get(LIST)).bytes;
    const before = memory(server.pid, 'VmRSS');
    const readers = await slowClients(server, soak ? 1500 : 250, get(LIST));
    await until('all of them wait', async () => await server.metric('holdfast_http_request_seconds_count', { route: '/v1/events', method: 'GET' }) > readers.length);
    const counted = await unsent(server);
    const grown = memory(server.pid, 'VmHWM') - before;
    t.diagnostic(`${readers.length} readers of ${mib(length)}: ${mib(counted)} counted, at most ${mib(grown)} more resident`);
    assert.ok(counted >= length && counted < 2 * length + readers.length * 2048, `${counted}`);
    assert.ok(grown < 40 * length, mib(grown)); // what is being rendered, and what waits to be
    assert.equal(await cut(server, 'memory'), 0);
    await useHonestly(server, event);
    closeAll(readers);
    await until('their memory is back', async () => await unsent(server) === 0);
    await server.finish();
  });

  it('are cut off from the oldest on if each of them reads another version', { skip }, async (t) => {
    const server = await startServer();
    await createLongEvents(server, 90);
    const event = await server.createEvent({ sections: [{ name: 'S', tier: 'A', price: 1, rows: 1, seats_per_row: 200 }] });
    const { length } = (await server.get(LIST)).bytes;
    const readers = [];
    const before = memory(server.pid, 'VmRSS');
    let most = 0;
    for (let i = 1; i <= 2 * BUDGET / length; i++) {
      await server.grant(event, `S-A-${i + 1}`); // changes a number in the list
      const waiting = await unsent(server) + await cut(server, 'memory');
      readers.push(...await slowClients(server, 1, get(LIST)));
      await until('it waits', async () => await unsent(server) + await cut(server, 'memory') !== waiting);
      most = Math.max(most, await unsent(server));
    }
    t.diagnostic(`${readers.length} readers of ${mib(length)} each: at most ${mib(most)} counted, ${await cut(server, 'memory')} cut off`);
    assert.ok(most > BUDGET / 2 && most <= BUDGET * 9 / 8, mib(most));
    assert.ok(await cut(server, 'memory') + await cut(server, 'slow') >= readers.length / 3);
    await useHonestly(server, event);
    assert.ok(memory(server.pid, 'VmHWM') - before > BUDGET / 2);
    closeAll(readers);
    await until('their memory is back', async () => await unsent(server) === 0);
    await until('the system has it back', () => memory(server.pid, 'VmRSS') - before < BUDGET / 3);
    await server.finish();
  });
});

describe('slow readers of maps', () => {
  it('keep at most four of a large event alive', { skip }, async (t) => {
    const server = await startServer(4 * BUDGET);
    const event = await server.createEvent({ sections: [{ name: 'S', tier: 'A', price: 1, rows: 100_000, seats_per_row: 20 }] });
    const map = `/v1/events/${event.id}/seats`;
    const { length } = (await server.get(map)).bytes;
    const before = memory(server.pid, 'VmRSS');
    const readers = [];
    for (let i = 1; i <= 6; i++) {
      await server.grant(event, `S-A-${i + 1}`);
      readers.push(...await slowClients(server, 3, get(map)));
      const fresh = await server.get(map, { 'Accept-Encoding': 'gzip' }); // an honest reader gets the newest one
      assert.equal(fresh.status, 200);
      assert.match(fresh.json.sections[0].rows[0].seats, new RegExp(`^\\.h{${i}}\\.`));
    }
    const grown = memory(server.pid, 'VmHWM') - before;
    t.diagnostic(`maps of ${mib(length)}: ${mib(await unsent(server))} counted, at most ${mib(grown)} more resident, ${await cut(server, 'outdated')} cut off`);
    // The readers of two maps have been cut off; on a slow machine some of them for being slow.
    assert.ok(await cut(server, 'outdated') + await cut(server, 'slow') >= 6);
    assert.ok(await unsent(server) <= 5 * length);
    assert.ok(grown < 14 * length, mib(grown)); // four, one that is being drawn, what is compressed
    closeAll(readers);
    await until('their memory is back', async () => await unsent(server) === 0);
    await server.finish();
  });
});

describe('all that takes memory at once', () => {
  it('stays below the ceiling, also where the system gives no more', { skip }, async (t) => {
    const server = await startServer();
    await createLongEvents(server, 40);
    const event = await server.createEvent({ sections: [{ name: 'S', tier: 'A', price: 1, rows: 1000, seats_per_row: 20 }] });
    await useHonestly(server, event);
    const heads = soak ? 5000 : 1200;
    const bodies = soak ? 300 : 60;
    const idle = { resident: memory(server.pid, 'VmRSS'), size: memory(server.pid, 'VmSize') };
    // docs/secure.md, "The ceiling of memory": answers; heads with their requests; 8 large bodies and the others up to
    // 64 KiB, in buffers that double; streams; what threads have under way.
    const ceiling = BUDGET * 9 / 8 + heads * 32 * 1024 + 8 * 16 * MIB + bodies * 128 * 1024 + 64 * MIB + 64 * MIB;
    execFileSync('prlimit', ['--pid', `${server.pid}`, `--as=${idle.size + ceiling}`]);

    const attackers = [];
    const attack = async (...args) => attackers.push(await slowClients(server, ...args));
    await attack(soak ? 1500 : 200, get(LIST));
    await attack(heads, `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ${'x'.repeat(15_000)}`, { from: '127.0.0.2' });
    await attack(8, `POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${8 * MIB}\r\n\r\n{"name":"${'x'.repeat((soak ? 8 : 3) * MIB - 100)}`, { from: '127.0.0.3' });
    await attack(bodies, `POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${8 * MIB}\r\n\r\n{"name":"${'x'.repeat(100_000)}`, { from: '127.0.0.3' });
    await attack(100, get(`/v1/events/${event.id}/stream`), { from: '127.0.0.4' });
    for (let i = 0; i < 5; i++) {
      await useHonestly(server, event);
      await attack(10, get(`/v1/events/${event.id}/seats`), { from: '127.0.0.5' });
      await attack(10, get(`/v1/events/${event.id}`), { from: '127.0.0.5' });
    }
    const grown = memory(server.pid, 'VmHWM') - idle.resident;
    t.diagnostic(`at most ${mib(grown)} more resident, ceiling ${mib(ceiling)}; ${mib(await unsent(server))} of answers counted`);
    assert.ok(grown < ceiling, mib(grown));
    assert.ok(await unsent(server) <= BUDGET * 9 / 8);
    closeAll(...attackers);
    await useHonestly(server, event);
    await until('nothing waits any more', async () => await unsent(server) === 0);
    await server.finish();
  });
});
