// Where the machine shows what a process was given: its environment, its arguments, its core dumps.  None of them
// has a key or a password once the server runs.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { reap, removeTempDir, runServer, Server, tempDir, until } from '../support/server.mjs';

const secret = (name) => `${name}-of-this-test-${process.pid}-${'x'.repeat(8)}`;
const [ADMIN, SELLER, FILED, WORD] = ['admin-key', 'seller-key', 'filed-key', 'pass-word'].map(secret);
const SIGNING = Buffer.from(secret('signing-key').padEnd(40, '.'));
const RESERVED_BYTES = 2 ** 32; // a mapping beyond that is a sanitizer's, for its own use
const bearer = (key) => ({ Authorization: `Bearer ${key}` });
const proc = (pid, name) => fs.readFileSync(`/proc/${pid}/${name}`, 'latin1');

// Calls `look` with every piece of memory of the process that a core dump would have, and its address.
function dumpable(pid, look) {
  const memory = fs.openSync(`/proc/${pid}/mem`, 'r');
  const piece = Buffer.alloc(4 << 20);
  for (const text of proc(pid, 'smaps').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const [, from, to, readable] = /^([0-9a-f]+)-([0-9a-f]+) (r?)/.exec(text);
    if (!readable || / dd( |$)/m.test(/^VmFlags:.*$/m.exec(text)?.[0] ?? '')) continue;
    const [begin, end] = [Number(`0x${from}`), Number(`0x${to}`)];
    if (end - begin > RESERVED_BYTES) continue;
    for (let at = begin; at < end; at += piece.length - 256) {
      try {
        look(piece.subarray(0, fs.readSync(memory, piece, 0, Math.min(piece.length, end - at), at)), at);
      } catch (error) { if (error.code !== 'EIO') throw error; } // such as the kernel's own pages
    }
  }
  fs.closeSync(memory);
}

// Counts in how many places of that memory each of the texts is.
function timesIn(pid, texts) {
  const places = Object.fromEntries(Object.keys(texts).map((name) => [name, new Set()]));
  dumpable(pid, (piece, address) => {
    for (const [name, text] of Object.entries(texts)) {
      for (let at = -1; (at = piece.indexOf(text, at + 1)) >= 0;) places[name].add(address + at);
    }
  });
  return Object.fromEntries(Object.entries(places).map(([name, { size }]) => [name, size]));
}

describe('secrets', () => {
  after(reap);

  it('are not in the environment, the arguments or a core dump of the server that has them', async () => {
    const dir = tempDir();
    const [keys, settings] = [path.join(dir, 'keys'), path.join(dir, 'settings')];
    const data = path.join(dir, 'data');
    fs.writeFileSync(keys, `${FILED}\n`, { mode: 0o600 });
    fs.writeFileSync(settings, `HOLDFAST_NOTIFY_SECRET=whsec_${SIGNING.toString('base64')}\n`, { mode: 0o600 });
    const server = new Server({
      dir: data,
      ownsDir: false,
      args: ['--gate', `redis://:${WORD}@127.0.0.1:1/3?replicas_timeout=500`, '--seller-key-file', keys, '--env-file', settings],
      env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER, HOLDFAST_NOTIFY: `http://me:${WORD}@127.0.0.1:1/`, PGPASSWORD: WORD, HARMLESS: 'stays' },
    });
    await server.launch();

    const environment = proc(server.pid, 'environ');
    for (const word of [ADMIN, SELLER, WORD]) assert.ok(!environment.includes(word), environment);
    assert.match(environment, /(^|\0)HARMLESS=stays\0/);
    const line = proc(server.pid, 'cmdline');
    assert.ok(!line.includes(WORD), line);
    assert.match(line, /\0redis:\/\/x+@127\.0\.0\.1:1\/3\?x+\0/);

    // A sanitizer keeps a copy of the environment for itself.
    const copies = /\/lib[at]san\.so/.test(proc(server.pid, 'maps')) ? 1 : 0;
    const times = timesIn(server.pid, { ADMIN, SELLER, FILED, SIGNING, encoded: SIGNING.toString('base64'), data });
    assert.ok(times.data > 0, 'what is no secret is found');
    assert.ok(times.ADMIN <= copies && times.SELLER <= copies, JSON.stringify(times));
    assert.deepEqual([times.FILED, times.SIGNING, times.encoded], [0, 0, 0]);

    // The server has them nevertheless, also after a reload.
    process.kill(server.pid, 'SIGHUP');
    await until('it has reloaded', () => /msg="reloaded" keys=admin:1,seller:2 /.test(server.stderr));
    const { id } = await server.createEvent({}, bearer(ADMIN));
    for (const key of [SELLER, FILED]) assert.equal((await server.get(`/v1/holds?event=${id}`, bearer(key))).status, 200);
    assert.equal((await server.get('/metrics', bearer(ADMIN))).status, 200);
    assert.equal((await server.get('/metrics')).status, 401);
    await server.stop();
    removeTempDir(dir);
  });

  it('leave no core dump, unless the operator wants one', async () => {
    const limit = async (args) => {
      const wrap = (argv) => ['sh', '-c', 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"', 'sh', ...argv, ...args];
      const server = new Server({ wrap, env: { ASAN_OPTIONS: 'detect_leaks=0:disable_coredump=0', TSAN_OPTIONS: 'disable_coredump=0' } });
      await server.launch();
      const [, soft, hard] = /^Max core file size +(\S+) +(\S+)/m.exec(proc(server.pid, 'limits'));
      await server.stop();
      return { soft, hard };
    };
    const { soft, hard } = await limit([]);
    assert.equal(soft, hard === '0' ? '0' : '1');
    assert.deepEqual(await limit(['--core-dumps']), { soft: hard, hard });
  });

  it('of libpq reach PostgreSQL all the same', async () => {
    const told = [];
    const postgres = net.createServer((socket) => {
      let started = false;
      socket.on('error', () => {});
      socket.on('data', (data) => {
        const isRequest = data.length === 8 && data.readUInt32BE(4) !== 196608; // for TLS or GSS
        if (started) {
          told.push(data.subarray(5).toString().replace(/\0.*/s, ''));
          socket.destroy();
        } else if (isRequest) {
          socket.write('N');
        } else {
          started = true;
          socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])); // it wants the password in clear
        }
      });
    });
    await new Promise((resolve) => { postgres.listen(0, '127.0.0.1', resolve); });
    const { port } = postgres.address();
    for (const [login, word] of [['me', WORD], ['me:other', 'other']]) {
      const dir = tempDir();
      const run = await runServer(['--listen', '127.0.0.1:0', '--data', dir], {
        env: { PGPASSWORD: WORD, PGPASSFILE: '/dev/null', HOLDFAST_LEDGER: `postgres://${login}@127.0.0.1:${port}/x?sslmode=disable&connect_timeout=5` },
      });
      assert.equal(run.code, 1, run.stderr);
      assert.ok(!run.stderr.includes(WORD), run.stderr);
      assert.equal(told.at(-1), word);
      removeTempDir(dir);
    }
    postgres.close();
  });
});
