// A real ZooKeeper of one server for one test, on a free port of 127.0.0.1.

import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { freePort, launchServer, tempDir, until } from './process.mjs';

export async function startZookeeper() {
  const zookeeper = new Zookeeper(await freePort());
  await zookeeper.start();
  return zookeeper;
}

class Zookeeper {
  constructor(port) {
    this.port = port;
    this.dir = tempDir();
  }

  get pid() { return this.run.pid; }
  get url() { return `zookeeper://127.0.0.1:${this.port}`; }

  async start() {
    this.run = launchServer('zookeeper', this.dir, this.port);
    await until('ZooKeeper answers', async () => {
      if (this.run.ended) throw new Error(`ZooKeeper ended at start:\n${this.run.stdout}${this.run.stderr}`);
      return /^Mode: /m.test(await this.word('srvr')); // `ruok` is answered before it serves
    }, 120_000, 100);
  }

  // The answer to one of ZooKeeper's four-letter words; '' if there is none.
  word(text) {
    return new Promise((resolve) => {
      let answer = '';
      const socket = net.connect(this.port, '127.0.0.1', () => socket.write(text));
      socket.setTimeout(2000, () => socket.destroy());
      socket.on('data', (data) => { answer += data; });
      socket.on('error', () => {});
      socket.on('close', () => resolve(answer));
    });
  }

  // Kills it with SIGKILL, as a crash does.
  async stop() {
    if (this.run.ended) return;
    this.run.child.kill('SIGKILL');
    await this.run.done;
  }

  async restart() { await this.stop(); await this.start(); }
  async restartEmpty() {
    await this.stop();
    fs.rmSync(path.join(this.dir, 'data'), { recursive: true });
    await this.start();
  }

  pause() { process.kill(this.pid, 'SIGSTOP'); }
  resume() { process.kill(this.pid, 'SIGCONT'); }
}
