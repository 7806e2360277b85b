// A real Redis of the test's own, without persistence: what it forgets when it ends is forgotten.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { freePort, launch, tempDir, until } from './process.mjs';

export async function startRedis(...args) {
  const redis = new Redis(await freePort(), args);
  await redis.start();
  return redis;
}

class Redis {
  constructor(port, args) {
    this.port = port;
    this.args = args;
    this.dir = tempDir();
    this.socket = path.join(this.dir, 'socket');
  }

  get pid() { return this.run.pid; }
  get url() { return `redis://127.0.0.1:${this.port}`; }

  // Again on the same port, with what is on disk: nothing, unless `args` say otherwise.
  async start() {
    this.run = launch('redis-server', ['--bind', '127.0.0.1', '--port', `${this.port}`, '--unixsocket', this.socket,
      '--save', '', '--appendonly', 'no', '--dir', this.dir, ...this.args]);
    await until('Redis answers', () => /Ready to accept connections/.test(this.run.stdout), 10_000);
  }

  // SIGKILL: what a lost Redis is.
  async stop() {
    if (this.run.ended) return;
    this.run.child.kill('SIGKILL');
    await this.run.done;
  }

  async restart() { await this.stop(); await this.start(); }

  // Neither refuses nor answers, until `resume`.
  pause() { process.kill(this.pid, 'SIGSTOP'); }
  resume() { process.kill(this.pid, 'SIGCONT'); }

  cli(...words) {
    return execFileSync('redis-cli', ['-p', `${this.port}`, ...words], { encoding: 'utf8', timeout: 20_000 }).trim();
  }

  keys(pattern = '*') { return this.cli('--scan', '--pattern', pattern).split('\n').filter(Boolean).sort(); }
}
