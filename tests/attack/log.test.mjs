// A reader of stderr or stdout that stands still: the log never blocks the server, and says what it lost.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { environment, freePort, HOLDFASTD, launch, reap, Remote, removeTempDir, runServer, start, tempDir, until } from '../support/server.mjs';

const GAP = 'lines of the log are missing here';
const REQUESTS = 16_000; // their lines are more than the pipe and the server's buffer of 1 MiB can take

// A pipe with a name, and a reader that reads when it is told to.
class StalledPipe {
  constructor() {
    this.dir = tempDir();
    this.name = path.join(this.dir, 'pipe');
    execFileSync('mkfifo', [this.name]);
    this.reader = fs.openSync(this.name, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    this.text = '';
  }

  // Has a command write to it: `file` is 1 or 2.
  wrap(file) { return (argv) => ['sh', '-c', `exec "$@" ${file}>'${this.name}'`, 'sh', ...argv]; }

  // Fills it with blanks, so that the next write waits.
  fill() {
    const fd = fs.openSync(this.name, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
    const blanks = Buffer.alloc(4096, ' ');
    assert.throws(() => { for (;;) fs.writeSync(fd, blanks); }, { code: 'EAGAIN' });
    this.keep = fd; // with no writer left a reader would see the end
  }

  read() {
    const buffer = Buffer.alloc(65536);
    try {
      for (let n; (n = fs.readSync(this.reader, buffer)) > 0;) this.text += buffer.toString('utf8', 0, n);
    } catch (error) { assert.equal(error.code, 'EAGAIN'); }
    return this.text;
  }

  close() {
    fs.closeSync(this.reader);
    if (this.keep) fs.closeSync(this.keep);
    removeTempDir(this.dir);
  }
}

// Sends `n` requests on one connection; resolves when all of them are answered.
function pipeline(server, n) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(server.port, server.host);
    let answers = 0;
    let tail = '';
    socket.setTimeout(60_000, () => reject(new Error(`${answers} of ${n} answers, then none for a minute`)));
    socket.on('error', reject);
    socket.on('data', (data) => {
      const text = tail + data.toString('latin1');
      answers += text.split('HTTP/1.1 200').length - 1;
      tail = text.slice(-11);
      if (answers < n) return;
      socket.destroy();
      resolve();
    });
    for (let sent = 0; sent < n; sent += 1000) socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(Math.min(1000, n - sent)));
  });
}

async function stops(server) {
  process.kill(server.pid, 'SIGTERM');
  const ended = await Promise.race([server.run.done, until('it ends', () => server.run.ended)]);
  assert.deepEqual(ended, { code: 0, signal: null });
}

describe('a reader that stands still', () => {
  after(reap);

  it('hangs no request, and learns later how many lines it missed', async () => {
    const pipe = new StalledPipe();
    const server = await start({ args: ['--request-log'], wrap: pipe.wrap(2) });
    await pipeline(server, REQUESTS);
    const dropped = await server.metric('holdfast_log_lines_dropped_total');
    assert.ok(dropped > 0 && dropped < REQUESTS, `${dropped} lines dropped`);
    await until('the line about the gap', () => pipe.read().includes(GAP));
    const [, missing] = new RegExp(`level=warn msg="${GAP}[^"]*" lines=(\\d+)\n`).exec(pipe.text);
    const before = pipe.text.slice(0, pipe.text.indexOf(GAP)).split('\n');
    assert.ok(before.slice(0, -1).every((line) => line.startsWith('ts=')), 'every line is whole');
    const written = before.filter((line) => line.includes(' route=/healthz ')).length;
    // The line of the request for metrics may be among the missing ones, and one or another of the server's own.
    assert.ok(written + Number(missing) >= REQUESTS && written + Number(missing) <= REQUESTS + 10,
      `${written} written, ${missing} missing`);
    await server.get('/healthz');
    await until('the log goes on', () => pipe.read().split(GAP).at(-1).includes(' route=/healthz '));
    await stops(server);
    await server.stop();
    assert.match(pipe.read(), /msg="stopped"\n$/);
    pipe.close();
  });

  it('does not keep the server from draining and ending', async () => {
    const pipe = new StalledPipe();
    const server = await start({ args: ['--request-log'], wrap: pipe.wrap(2) });
    const event = await server.createEvent();
    await pipeline(server, REQUESTS);
    await server.grant(event, 'S-A-1');
    await stops(server);
    await server.stop({ keep: true });
    pipe.close();
    server.args = [];
    server.wrap = (argv) => argv;
    await server.launch();
    assert.equal((await server.map(event))['S-A-1'], 'h');
    await server.stop();
  });

  it('does not keep a server that cannot start from ending', async () => {
    const [pipe, dir] = [new StalledPipe(), tempDir()];
    pipe.fill();
    fs.chmodSync(dir, 0o755);
    const run = await runServer(['--listen', '127.0.0.1:0', '--data', dir], { wrap: pipe.wrap(2) });
    assert.equal(run.code, 1, run.signal);
    assert.match(pipe.read(), /^ +$/); // what was there before is all that there was room for
    pipe.close();
    removeTempDir(dir);
  });

  it('that is not there at all gets nothing: no other file takes the number of stderr', async () => {
    const server = await start({ args: ['--request-log'], wrap: (argv) => ['sh', '-c', 'exec "$@" <&- 2>&-', 'sh', ...argv] });
    await server.createEvent();
    for (const fd of [0, 2]) assert.equal(fs.readlinkSync(`/proc/${server.pid}/fd/${fd}`), '/dev/null');
    await server.stop();
  });

  it('of stdout does not keep it from starting', async () => {
    const [pipe, port, dir] = [new StalledPipe(), await freePort(), tempDir()];
    pipe.fill();
    const [command, ...rest] = pipe.wrap(1)([HOLDFASTD, '--listen', `127.0.0.1:${port}`, '--data', dir, '--demo']);
    const run = launch(command, rest, { env: environment({}, false) });
    const remote = new Remote({ host: '127.0.0.1', port });
    await until('it answers', () => remote.get('/readyz').then(({ status }) => status === 200, () => false));
    remote.agent.destroy();
    await stops({ pid: run.pid, run });
    pipe.close();
    removeTempDir(dir);
  });
});
