// Restarts, a second server on the same directory, directories that cannot be used, SIGTERM.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { assertHold, assertOk, assertProblem, ms } from '../support/expect.mjs';
import { checkLedger } from '../support/ledger.mjs';
import { assertCleanStderr, assertTook, HOLDFASTD, newKey, reap, removeTempDir, runServer, sanitizer, sleep, start, tempDir, until } from '../support/server.mjs';
import { encode, Wire } from '../support/wire.mjs';

const listen = ['--listen', '127.0.0.1:0'];
const refusal = (run, message) => {
  assert.notEqual(run.code, 0, run.stdout + run.stderr);
  assert.equal(run.signal, null, `it should refuse, not crash: ${run.stderr}`);
  assertCleanStderr(run.stderr);
  assert.match(run.stderr, message);
  assert.doesNotMatch(run.stdout, /listening/);
};

describe('restarts', { concurrency: 3 }, () => {
  after(reap);

  it('holds, sales and the fence survive a clean restart; what ran out meanwhile is free', async () => {
    const server = await start();
    const event = await server.createEvent();
    const kept = await server.grant(event, ['S-A-1', 'S-A-2'], { owner: 'Ann', metadata: { cart: '7' } });
    const brief = await server.grant(event, ['S-A-3', 'S-A-4'], { ttl_ms: 1000 });
    const rescued = await server.grant(event, 'S-A-5', { ttl_ms: 1000 });
    const released = await server.grant(event, 'S-A-6');
    await server.del(`/v1/holds/${released.id}`);
    const sold = await server.grant(event, 'S-B-1');
    const booking = assertOk(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence, reference: 'r1' }), 201);

    await server.stop({ keep: true });
    await sleep(ms(brief.expires_at) - Date.now() + 150);
    checkLedger(server.dir);
    await server.launch();

    // before any other request uses the event
    const next = await server.grant(event, 'S-A-3');
    assert.ok(next.fence > sold.fence);
    assertHold(assertOk(await server.get(`/v1/holds/${brief.id}`)), { status: 'expired', seats: brief.seats });
    assertProblem(await server.post(`/v1/holds/${brief.id}/confirm`, { fence: brief.fence }), 410, 'hold_expired');
    const read = assertOk(await server.get(`/v1/holds/${kept.id}`));
    assert.deepEqual({ ...read, expires_in_ms: 0 }, { ...kept, expires_in_ms: 0 });
    assertHold(assertOk(await server.get(`/v1/holds/${released.id}`)), { status: 'released' });
    assert.deepEqual(assertOk(await server.get(`/v1/bookings/${booking.id}`)), booking);
    assert.deepEqual(assertOk(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence })), booking);
    assertOk(await server.post(`/v1/holds/${rescued.id}/confirm`, { fence: rescued.fence, rescue: true }), 201);
    await until('the map is right', async () => Object.values(await server.map(event)).join('') === 'hhh.b.....b.........');
    assertOk(await server.post(`/v1/holds/${kept.id}/renew`, {}));
    assertOk(await server.post(`/v1/holds/${kept.id}/confirm`, { fence: kept.fence }), 201);
    await server.stop({ keep: true });
    checkLedger(server.dir);
    await server.launch();
    await server.stop();
  });

  it('a hold that runs out after a restart is given back though nobody asks for it', async () => {
    const server = await start();
    const event = await server.createEvent();
    let isEarly = false;
    for (let ttl_ms = 2500; !isEarly; ttl_ms *= 3) { // until the restart takes less
      assert.ok(ttl_ms < 60_000, 'a restart takes a minute');
      const hold = await server.grant(event, 'S-A-1', { ttl_ms });
      await server.restart();
      const shown = (await server.map(event))['S-A-1'];
      isEarly = Date.now() < ms(hold.expires_at);
      if (isEarly) assert.equal(shown, 'h');
      await sleep(ms(hold.expires_at) - Date.now());
      await until('the seat is free', async () => (await server.map(event))['S-A-1'] === '.');
    }
    await server.stop();
  });

  it('a second server on the same directory refuses, the first goes on, and a dead one leaves no lock', async () => {
    const first = await start();
    const event = await first.createEvent();
    const hold = await first.grant(event, 'S-A-1');
    for (let i = 0; i < 2; i++) {
      refusal(await runServer([...listen, '--data', first.dir]), /in use|already|another|locked/i);
    }
    await first.grant(event, 'S-A-2');
    assertOk(await first.get(`/v1/holds/${hold.id}`));
    await first.kill9();
    await first.launch();
    assert.equal(Object.values(await first.map(event)).join(''), `hh${'.'.repeat(18)}`);
    await first.grant(event, 'S-A-3');
    await first.stop();
  });

  it('a server started at the very moment another starts on the directory: one of them serves', async () => {
    const dir = tempDir();
    const env = sanitizer('detect_leaks=0'); // a server that refuses to start ends with what it has allocated
    const results = await Promise.allSettled(Array.from({ length: 3 }, () => start({ dir, env })));
    const serving = results.filter(({ status }) => status === 'fulfilled').map(({ value }) => value);
    assert.equal(serving.length, 1, results.map(({ reason }) => reason?.message).join('\n'));
    await serving[0].createEvent();
    await serving[0].stop();
    removeTempDir(dir);
  });

  it('the data directory is created, parents too', async () => {
    const dir = tempDir();
    const server = await start({ dir: path.join(dir, 'a/b') });
    await server.createEvent();
    assert.ok(fs.existsSync(path.join(dir, 'a/b/holdfast.db')));
    await server.stop();
    removeTempDir(dir);
  });

  it('a directory that cannot be made or written is refused with its name', async (t) => {
    const dir = tempDir();
    const file = path.join(dir, 'file');
    fs.writeFileSync(file, 'not a directory');
    for (const data of [path.join(file, 'sub'), file, '/proc/holdfast-data', '/dev/null/x']) {
      const run = await runServer([...listen, '--data', data]);
      refusal(run, /\S/);
      assert.ok(run.stderr.includes(data), run.stderr);
    }

    // A directory of another user; a root process must drop its privileges first.
    const readOnly = path.join(dir, 'read-only');
    fs.mkdirSync(readOnly);
    fs.chmodSync(dir, 0o755);
    fs.chmodSync(readOnly, 0o555);
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    let wrap = (argv) => argv;
    if (process.getuid() === 0) {
      wrap = (argv) => [...nobody, ...argv];
      try { execFileSync('setpriv', [...nobody.slice(1), 'test', '-x', HOLDFASTD]); } catch {
        wrap = null;
        t.diagnostic('the binary cannot be run without privileges: a read-only directory was not tried');
      }
    }
    if (wrap) {
      const run = await runServer([...listen, '--data', readOnly], { wrap });
      refusal(run, /permission|denied|read-?only|unable|cannot/i);
      assert.ok(run.stderr.includes(readOnly), run.stderr);
    }
    removeTempDir(dir);
  });

  it('a file that is not a ledger is refused and left as it was', async () => {
    const dir = tempDir();
    const file = path.join(dir, 'holdfast.db');
    const text = 'these are somebody\'s notes, not a database. '.repeat(200);
    fs.writeFileSync(file, text);
    refusal(await runServer([...listen, '--data', dir]), /\S/);
    assert.equal(fs.readFileSync(file, 'utf8'), text);
    removeTempDir(dir);
  });

  it('an address in use or not an address is refused', async () => {
    const server = await start();
    const dir = tempDir();
    const taken = `${server.host}:${server.port}`;
    const run = await runServer(['--listen', taken, '--data', dir]);
    refusal(run, /\S/);
    assert.ok(run.stderr.includes(`${server.port}`), run.stderr);
    for (const address of ['nonsense', '127.0.0.1', '127.0.0.1:99999', ':', '127.0.0.1:-1']) {
      refusal(await runServer(['--listen', address, '--data', dir]), /\S/);
    }
    refusal(await runServer(['--listen', '127.0.0.1:0', '--data', dir, '--nonsense']), /nonsense/);
    refusal(await runServer(['--listen', '0.0.0.0:0', '--data', dir]), /loopback|key/i);
    await server.stop();
    removeTempDir(dir);
  });
});

describe('SIGTERM', () => {
  after(reap);

  it('is obeyed at once when nothing is going on, though connections are open', async () => {
    const server = await start();
    const wires = await Wire.connectMany(server, 20);
    for (const wire of wires.slice(10)) await wire.request('GET', '/healthz');
    const started = Date.now();
    await server.stop();
    assertTook(Date.now() - started, 5000, 'the end');
    await Promise.all(wires.map((wire) => wire.closed));
  });

  it('under load: what took effect was answered, what was answered took effect', async (t) => {
    const server = await start();
    for (let round = 0; round < 3; round++) {
      const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 20, seats_per_row: 1000 }] });
      const wires = await Wire.connectMany(server, 32);
      const granted = [];
      const unanswered = [];
      const refused = {};
      let seat = 0;
      let stopping = false;
      const running = Promise.all(wires.map(async (wire) => {
        for (;;) {
          const name = `S-${String.fromCharCode(65 + Math.floor(seat / 1000))}-${1 + seat++ % 1000}`;
          let answer;
          try {
            answer = await wire.send(encode('POST', '/v1/holds', { event: event.id, seats: [name] }, { 'Idempotency-Key': newKey() }));
          } catch { return void unanswered.push(name); }
          if (answer.status === 201) { granted.push({ name, id: answer.json.id }); continue; }
          assert.ok(stopping, `refused before SIGTERM: ${answer.status} ${answer.text}`);
          assert.equal(answer.status, 503, answer.text);
          refused[answer.json.code] = (refused[answer.json.code] ?? 0) + 1;
          unanswered.push(name);
        }
      }));
      await Promise.race([running, sleep(200 + round * 150)]);
      await until('something is granted', () => granted.length > 0, undefined, 1);
      stopping = true;
      await Promise.all([server.stop({ keep: true }), running]);

      checkLedger(server.dir);
      await server.launch();
      const map = await server.map(event);
      const held = Object.keys(map).filter((name) => map[name] === 'h').sort();
      assert.ok(granted.length > 0);
      assert.deepEqual(held, granted.map(({ name }) => name).sort());
      const some = granted.filter((_, index) => index % 20 === 0).concat(granted.slice(-32));
      for (const { id } of some) assert.equal(assertOk(await server.get(`/v1/holds/${id}`)).status, 'active');
      t.diagnostic(`${granted.length} granted, refused ${JSON.stringify(refused)}, ${unanswered.length} not served`);
    }
    await server.stop();
  });

  it('a request already sent when the signal comes is answered', async () => {
    const server = await start();
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 200 }] });
    const wires = await Wire.connectMany(server, 100);
    for (const wire of wires) await wire.request('GET', '/healthz');
    const answers = wires.map((wire, index) => wire.request('POST', '/v1/holds', { event: event.id, seats: [`S-A-${index + 1}`] }));
    await answers[0];
    await sleep(20);
    const [settled] = await Promise.all([Promise.allSettled(answers), server.stop()]);
    for (const { status, value, reason } of settled) {
      assert.equal(status, 'fulfilled', reason?.message);
      assert.ok([201, 503].includes(value.status), value.text);
    }
  });
});
