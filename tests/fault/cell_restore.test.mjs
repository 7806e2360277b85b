// What docs/cell.md says of backups, restores and wrong clocks of a lock service: fences grow all the same, because the wall
// clock in microseconds is their floor, and nothing else depends on the wall clock.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { SteppedClock } from '../support/faketime.mjs';
import { reap, sanitizer, Server, SQLITE_WAITS, tempDir, until } from '../support/server.mjs';

const HOUR_S = 3600;
const options = { args: ['--pages', 'off', '--payments', 'off'] };

async function open(server, ttlMs = 20_000) {
  const answer = await server.post('/v1/sessions', { ttl_ms: ttlMs });
  assert.equal(answer.status, 201, answer.text);
  return answer.json.id;
}

// Takes a lock and gives it back; resolves to its fence.
async function fenceOf(server, name = 'nightly') {
  const session = await open(server);
  const lock = await server.post(`/v1/locks/${name}`, { session, owner: 'a' });
  assert.equal(lock.status, 200, lock.text);
  await server.del(`/v1/sessions/${session}`);
  return lock.json.fence;
}

// The thread sanitizer's library crashes if it does not come first.
const skip = /\/tsan\//.test(process.env.HOLDFASTD ?? '') && 'the thread sanitizer does not start under libfaketime';
// libfaketime comes before the sanitizer's library.
const clockEnv = (clock) => ({ ...clock.env, ...sanitizer('detect_leaks=0', 'verify_asan_link_order=0') });

async function launched(fields = {}) {
  const server = new Server({ ...options, ...fields });
  await server.launch();
  return server;
}

const journalFiles = (dir) => ['locks.db', 'locks.db-wal', 'locks.db-shm'].map((name) => path.join(dir, name));

describe('the fence floor', () => {
  after(reap);

  it('fences grow when the journal is lost, and when an older one is put back', async () => {
    const dir = tempDir(), copy = path.join(tempDir(), 'copy.db');
    const server = await launched({ dir });
    const fences = [await fenceOf(server)];
    execFileSync('sqlite3', [...SQLITE_WAITS, '-readonly', path.join(dir, 'locks.db'), `.backup ${copy}`]);
    fences.push(await fenceOf(server), await fenceOf(server));
    await server.stop({ keep: true });
    for (const file of journalFiles(dir)) fs.rmSync(file, { force: true });
    fs.copyFileSync(copy, path.join(dir, 'locks.db'));
    fs.chmodSync(path.join(dir, 'locks.db'), 0o600);
    await server.launch();
    fences.push(await fenceOf(server));
    await server.stop({ keep: true });
    for (const file of journalFiles(dir)) fs.rmSync(file, { force: true });
    await server.launch();
    fences.push(await fenceOf(server));
    await server.stop();
    assert.deepEqual(fences, [...new Set(fences)].sort((a, b) => a - b));
  });

  it('a counter that ran ahead with a wrong clock is reached by one start with a clock beyond it', { skip }, async () => {
    const dir = tempDir(), clock = new SteppedClock(tempDir());
    clock.step(24 * HOUR_S);
    const server = await launched({ dir, env: clockEnv(clock) });
    const ahead = await fenceOf(server);
    await server.stop({ keep: true });
    for (const file of journalFiles(dir)) fs.rmSync(file, { force: true }); // the journal is lost, and its counter with it

    const right = await launched({ dir });
    assert.ok(await fenceOf(right) < ahead, 'targets would refuse the new holders');
    await right.stop({ keep: true });
    clock.step(HOUR_S);
    const once = await launched({ dir, env: clockEnv(clock) });
    await until('it leads', async () => (await once.get('/v1/cell')).json.master);
    await once.stop({ keep: true });
    await right.launch();
    assert.ok(await fenceOf(right) > ahead);
    await right.stop();
  });

  it('a wall clock that is set ends no session early and makes no fence smaller', { skip }, async () => {
    const clock = new SteppedClock(tempDir());
    const server = await launched({ env: clockEnv(clock) });
    const session = await open(server, 60_000);
    const held = (await server.post('/v1/locks/held', { session, owner: 'a' })).json;
    let last = await fenceOf(server);
    for (const step of [2 * HOUR_S, -4 * HOUR_S, HOUR_S]) {
      clock.step(step);
      const next = await fenceOf(server);
      assert.ok(next > last, `${step}`);
      last = next;
      assert.equal((await server.post(`/v1/sessions/${session}/keepalive`, '')).status, 200, `${step}`);
    }
    assert.deepEqual((await server.get('/v1/locks/held')).json.holders.map(({ fence }) => fence), [held.fence]);
    await server.kill9();
    clock.step(-2 * HOUR_S);
    await server.launch();
    assert.ok(await fenceOf(server) > last, 'after a start in the past, too');
    await server.stop();
  });
});
