// Clients that are slow, silent or many do not disturb the others.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { after, describe, it } from 'node:test';
import { assertOk } from '../support/expect.mjs';
import { assertTook, launch, reap, sleep, start, until } from '../support/server.mjs';
import { Wire } from '../support/wire.mjs';

const idleClient = fileURLToPath(new URL('../support/idle.mjs', import.meta.url));
const unlimited = 'ulimit -n "$(ulimit -Hn)"; exec "$@"';

// Resolves to the longest duration of `count` holds and releases, in ms.
async function slowestHold(server, event, count = 30) {
  let slowest = 0;
  for (let i = 0; i < count; i++) {
    const started = performance.now();
    const answer = await server.request('POST', '/v1/holds', { event: event.id, seats: ['S-A-1'] }, {}, i % 3 ? {} : { agent: false });
    slowest = Math.max(slowest, performance.now() - started);
    assertOk(answer, 201);
    assert.equal((await server.del(`/v1/holds/${answer.json.id}`)).status, 204);
  }
  return slowest;
}

// Asserts that holds are granted, each in less than a second.
async function assertUndisturbed(server, event) {
  const slowest = await slowestHold(server, event);
  assertTook(slowest, 1000, 'the slowest hold');
  return slowest;
}

const rssMib = (pid) => Number(/VmRSS:\s+(\d+) kB/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

describe('clients', () => {
  after(reap);

  it('slow ones, that trickle headers or never finish a body, do not disturb others', async (t) => {
    const server = await start();
    const event = await server.createEvent();
    const quiet = await slowestHold(server, event);
    const wires = await Wire.connectMany(server, 200);
    const stillOpen = () => wires.filter((wire) => !wire.isClosed);
    let answered = 0;
    for (const [index, wire] of wires.entries()) {
      wire.next().then((answer) => { if (answer) { answered++; assert.ok(answer.status >= 400, `${answer.status}`); } });
      if (index % 4 === 0) await wire.write('POST /v1/ho');
      if (index % 4 === 1) await wire.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Sl');
      if (index % 4 === 2) await wire.write('POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{"event":');
      if (index % 4 === 3) await wire.write('POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"eve\r\n');
    }
    const trickle = setInterval(() => {
      for (const [index, wire] of stillOpen().entries()) if (index % 4 < 3) wire.write('o');
    }, 50);
    const busy = await assertUndisturbed(server, event).finally(() => clearInterval(trickle));
    t.diagnostic(`slowest hold ${quiet.toFixed(1)} ms alone, ${busy.toFixed(1)} ms beside 200 slow clients; ${answered} were answered`);
    assert.equal((await server.get('/readyz')).status, 200);

    // SIGTERM does not wait for them forever, either
    const started = Date.now();
    await server.stop();
    assertTook(Date.now() - started, 15_000, 'the end of the server');
  });

  it('ones that left in the middle of a request do not hold up SIGTERM', async () => {
    const server = await start();
    const whole = 'POST /v1/holds HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\n\r\n{"event":"evt_0000000000000000000000000000","seats":["S-A-1"]}';
    for (let round = 0; round < 10; round++) {
      for (let cut = 1; cut < whole.length; cut += 9) {
        const wire = await Wire.connect(server);
        await wire.write(whole.slice(0, cut));
        wire.close();
      }
    }
    await sleep(100);
    assert.equal((await server.get('/healthz')).status, 200);
    const started = Date.now();
    await server.stop();
    assertTook(Date.now() - started, 5000, 'the end of the server, with nobody there,');
  });

  it('ones that do not read their answers do not disturb others', async () => {
    const server = await start();
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 100, seats_per_row: 200 }] });
    const wires = await Wire.connectMany(server, 30);
    const get = `GET /v1/events/${event.id}/seats HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    for (const wire of wires) {
      wire.socket.pause();
      wire.socket.write(get.repeat(400));
    }
    await sleep(300);
    await assertUndisturbed(server, event);
    assert.ok(rssMib(server.pid) < 1536);
    for (const wire of wires) wire.close();
    await server.stop();
  });

  it('ten thousand idle connections cost little and leave the others alone', async (t) => {
    const hard = execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim();
    const allowed = hard === 'unlimited' ? Infinity : Number(hard);
    const wanted = Math.min(10_000, allowed - 500);
    if (wanted < 10_000) t.diagnostic(`only ${wanted} connections: the machine allows ${hard} files a process`);
    const server = await start({ wrap: (argv) => ['sh', '-c', unlimited, 'sh', ...argv] });
    const event = await server.createEvent();
    const [quiet, before] = [await slowestHold(server, event), rssMib(server.pid)];

    const clients = Array.from({ length: 2 }, () => launch('sh', ['-c', unlimited, 'sh', process.execPath, idleClient,
      server.host, `${server.port}`, `${wanted / 2}`], { stdio: ['pipe', 'pipe', 'pipe'] }));
    const started = Date.now();
    await until('the connections stand', () => clients.every(({ stdout, ended }) => {
      assert.equal(ended, null, 'a client died');
      return stdout.includes('\n');
    }), undefined, 50);
    t.diagnostic(`${clients.map(({ stdout }) => stdout.trim()).join(', ')} in ${Date.now() - started} ms`);

    const busy = await assertUndisturbed(server, event);
    const rss = rssMib(server.pid);
    const sockets = fs.readdirSync(`/proc/${server.pid}/fd`).length;
    t.diagnostic(`slowest hold ${quiet.toFixed(1)} ms alone, ${busy.toFixed(1)} ms beside them; ${before.toFixed(0)} -> ${rss.toFixed(0)} MiB`);
    for (const client of clients) {
      client.stdout = '';
      client.child.stdin.write('\n');
      await until('the count', () => client.stdout.includes('\n'));
      assert.equal(client.stdout.trim(), `open ${wanted / 2} failed 0`);
    }
    assert.ok(sockets >= wanted, `${sockets} descriptors`);
    assert.ok(rss - before < 20, `${before} -> ${rss} MiB`);

    for (const client of clients) client.child.stdin.end();
    await Promise.all(clients.map(({ done }) => done));
    const closedAt = Date.now();
    const open = () => fs.readdirSync(`/proc/${server.pid}/fd`).length;
    await until('the server has let go of them', () => open() < 200, 20_000, 20) // 30 s for connections that are only idle
      .catch((error) => { throw new Error(`${open()} descriptors are left`, { cause: error }); });
    t.diagnostic(`all closed after ${Date.now() - closedAt} ms`);
    await server.stop();
  });
});
