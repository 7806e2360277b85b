// A real Redis for one test, without persistence: when it ends, its data are lost.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { freePort, launchServerIn, tempDir, until } from './process.mjs';

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

  // Starts it, or starts it again on the same port.  It is empty unless `args` turn persistence on.
  async start() {
    this.run = launchServerIn(this.env ?? {}, 'redis', this.dir, this.port, '--unixsocket', this.socket, ...this.args);
    await until('Redis answers', () => /Ready to accept connections/.test(this.run.stdout), 120_000);
  }

  // Kills it with SIGKILL, as a crash does.
  async stop() {
    if (this.run.ended) return;
    this.run.child.kill('SIGKILL');
    await this.run.done;
  }

  async restart() { await this.stop(); await this.start(); }

  // Stops the process, which then neither refuses nor answers, until `resume`.
  pause() { process.kill(this.pid, 'SIGSTOP'); }
  resume() { process.kill(this.pid, 'SIGCONT'); }

  cli(...words) {
    return execFileSync('redis-cli', ['-p', `${this.port}`, ...words], { encoding: 'utf8', timeout: 20_000 }).trim();
  }

  keys(pattern = '*') { return this.cli('--scan', '--pattern', pattern).split('\n').filter(Boolean).sort(); }
}
