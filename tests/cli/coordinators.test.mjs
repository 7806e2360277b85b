// Coordinators that cannot be used: not there, silent, speaking another protocol, refusing the password, without a majority.
// Each leads to one clear line, to exit code 69, within the timeouts, and leaves nothing behind.  tests/support/coordinators.mjs
// has a row for each kind.
// backends: own

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { begin, freePort, holdfast, json, until } from '../support/cli.mjs';
import { coordinators, PASSWORD } from '../support/coordinators.mjs';
import { assertTook, reap, sanitizer } from '../support/server.mjs';

after(reap);

const SECRET = 'wrong-secret';
const ROUNDS = process.env.HF_SOAK === '1' ? 10 : 3;
const COMMANDS = {
  run: ['run', 'name', '--', 'echo', 'ran'],
  'run of a set': ['run', '--wait', '1h', 'name', 'other', '--', 'echo', 'ran'],
  'lock get': ['lock', 'get', 'name'],
  elect: ['elect', 'name', '--', 'echo', 'ran'],
  doctor: ['doctor'],
};

// Processes of this machine that have this text in their environment.
function processesWith(mark) {
  return fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).filter((pid) => {
    try { return fs.readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark); } catch { return false; }
  });
}

// A command with the options that the coordinator's locks need.
const asked = (row, [command, ...args], ...more) => [command, ...more, ...(command === 'doctor' ? [] : row.options ?? []), ...args];

// libzookeeper asks for as much memory as a stranger announces, and copes when it does not get it.
const ALLOCATOR = sanitizer('detect_leaks=0', 'allocator_may_return_null=1');

// Runs a command that must fail because of its coordinator.
async function fails(row, url, [command, ...args], timeout = '400ms') {
  const mark = randomUUID();
  const { code, stdout, stderr, ms } = await holdfast(url, asked(row, [command, ...args], '--timeout', timeout), { env: { MARK: mark, ...ALLOCATOR } });
  assert.equal(code, 69, `${url}: ${code} ${stderr}`);
  assert.equal(stdout, '', 'the command did not run');
  assert.match(stderr, new RegExp(`^holdfast ${command}: \\S[^\\n]+\\n$`), 'one line');
  assert.doesNotMatch(stderr, /secret/, 'a part of the password');
  assertTook(ms, 40_000, 'the failure');
  await until('no process is left', () => processesWith(mark).length === 0);
  return stderr;
}

// A server that accepts every connection and treats it as `behave` says.
async function serve(behave) {
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    behave(socket);
  }).listen(0, '127.0.0.1');
  await until('it listens', () => server.listening);
  server.unref();
  return { port: server.address().port, close: () => { for (const socket of sockets) socket.destroy(); server.close(); } };
}

const answers = (bytes) => (socket) => socket.on('data', () => { if (!socket.destroyed) socket.write(bytes); });
const STRANGERS = {
  'that never answers': (socket) => socket.resume(),
  'that hangs up': (socket) => socket.destroy(),
  'that hangs up after a request': (socket) => socket.on('data', () => socket.destroy()),
  'that answers with a web page': answers('HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<h1>Hello</h1>'),
  'that answers with an error of HTTP': answers('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n'),
  'that answers with zeros': answers(Buffer.alloc(4096)),
  'that answers with ones': answers(Buffer.alloc(4096, 0xff)),
  'that answers with all bytes in turn': answers(Buffer.from(Array.from({ length: 4096 }, (_, i) => (i + 1) % 256))),
  'that announces two gigabytes': answers('$2147483647\r\nx'),
  'that answers with an endless line': answers('+'.repeat(65536)),
  'that greets like a mail server': (socket) => { socket.write('220 mail.example.org ESMTP\r\n'); socket.resume(); },
};

for (const [name, row] of Object.entries(coordinators)) {
  const who = (password) => `${row.user}:${password}`;
  const commands = Object.entries(COMMANDS).filter(([command]) => command !== 'lock get' || !row.endsWithProcess);

  describe(`${name}: a coordinator`, { concurrency: 2 }, () => {
    for (const [command, args] of commands) {
      it(`that is not there: ${command}`, async () => {
        const ports = await Promise.all(Array.from({ length: row.n }, () => freePort()));
        assert.match(await fails(row, row.url(ports, who(SECRET)), args), /refused|connect/i);
      });
    }

    for (const [what, behave] of Object.entries(STRANGERS)) {
      it(what, async () => {
        const servers = await Promise.all(Array.from({ length: row.n }, () => serve(behave)));
        try {
          await fails(row, row.url(servers.map(({ port }) => port), who(SECRET)), COMMANDS.run);
        } finally {
          for (const server of servers) server.close();
        }
      });
    }
  });

  describe(`${name}: a real server`, () => {
    let server;
    before(async () => { server = await row.start(); });
    after(() => server.stop());

    it('grants a lock to a client with the right password', async () => {
      const url = row.url(server.ports, who(PASSWORD));
      const patiently = (args) => asked(row, args, '--timeout', '60s');
      const { code, stdout, stderr } = await holdfast(url, patiently(COMMANDS.run));
      assert.deepEqual([code, stdout], [0, 'ran\n'], stderr);
      const holder = begin(url, patiently(['run', '--label', 'ann', 'held', '--', 'sleep', '60']));
      const { fence } = await until('it is held', async () => (await json(url, ['lock', 'show', 'held'])).holders[0]);
      const refused = await holdfast(url, patiently(['run', '-n', 'held', '--', 'true']));
      assert.equal(refused.code, 75);
      assert.match(refused.stderr, new RegExp(`^holdfast run: held is held by "ann"( for \\d+ (ms|s|min))? \\(fence ${fence}\\)\\n$`));
      holder.child.kill('SIGTERM');
      assert.equal((await holder.result).code, 143);
      assert.deepEqual(await json(url, ['lock', 'ls']), []);
    });

    for (const [command, args] of commands) {
      it(`refuses a wrong password: ${command}`, async () => {
        assert.match(await fails(row, row.url(server.ports, who(SECRET)), args, '15s'), row.refusal);
      });
    }

    if (name === 'redlock') {
      it('can be one that is missing of three, but not two', async () => {
        const [first, second] = server.servers;
        await first.stop();
        const url = row.url(server.ports, who(PASSWORD));
        assert.equal((await holdfast(url, asked(row, COMMANDS.run, '--timeout', '60s'))).stdout, 'ran\n');
        await second.stop();
        assert.match(await fails(row, url, COMMANDS.run, '8s'), /1 of 3 servers can be used, a majority is 2/);
      });
    }

    if (row.endsWithProcess) {
      it('has no leases for scripts, since they would end at once: 64', async () => {
        const { code, stdout, stderr } = await holdfast(row.url(server.ports, who(PASSWORD)), COMMANDS['lock get']);
        assert.deepEqual([code, stdout], [64, '']);
        assert.match(stderr, /ends with the process that took it, so a script cannot keep one; use holdfast run\n$/);
      });
    }

    if (['postgres', 'etcd', 'zookeeper', 'holdfast'].includes(name)) {
      it('is found among hosts that are not there', async () => {
        const dead = await Promise.all(Array.from({ length: 10 }, () => freePort()));
        const url = row.url([...dead, ...server.ports], who(PASSWORD));
        // Three at a time, again and again: a client library must not mind how long its caller takes between two calls.
        for (let n = 0; n < ROUNDS; n++)
          for (const { stdout, stderr } of await Promise.all([1, 2, 3].map((i) => holdfast(url, asked(row, ['run', `name-${i}`, '--', 'echo', 'ran'], '--timeout', '60s')))))
            assert.deepEqual([stdout, stderr], ['ran\n', '']);
      });
    }
  });
}
