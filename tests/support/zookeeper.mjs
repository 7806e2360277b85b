// A real ZooKeeper of one server for one test, on a free port of 127.0.0.1.  Its tick is 100 ms, so that
// sessions can be as short as 200 ms; it writes without fsync, which a kill does not undo.

import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { freePort, launch, tempDir, until } from './process.mjs';

const JAVA = ['-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto', '-Dzookeeper.admin.enableServer=false', '-Dzookeeper.forceSync=no',
  '-Dzookeeper.4lw.commands.whitelist=*', '-Dzookeeper.jmx.log4j.disable=true'];

export async function startZookeeper() {
  const zookeeper = new Zookeeper(await freePort());
  await zookeeper.start();
  return zookeeper;
}

class Zookeeper {
  constructor(port) {
    this.port = port;
    this.dir = tempDir();
    this.data = 0;
  }

  get pid() { return this.run.pid; }
  get url() { return `zookeeper://127.0.0.1:${this.port}`; }

  async start() {
    const file = path.join(this.dir, 'zoo.cfg');
    fs.writeFileSync(file, ['tickTime=100', `dataDir=${path.join(this.dir, `data-${this.data}`)}`, `clientPort=${this.port}`,
      'clientPortAddress=127.0.0.1', 'maxClientCnxns=0', 'minSessionTimeout=200', 'maxSessionTimeout=120000', ''].join('\n'));
    this.run = launch('java', [...JAVA, '-cp', `${this.dir}:/usr/share/java/zookeeper.jar`, 'org.apache.zookeeper.server.quorum.QuorumPeerMain', file]);
    await until('ZooKeeper answers', async () => {
      if (this.run.ended) throw new Error(`ZooKeeper ended at start:\n${this.run.stdout}${this.run.stderr}`);
      return /^Mode: /m.test(await this.word('srvr')); // `ruok` is answered before it serves
    }, 30_000, 100);
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
  async restartEmpty() { this.data++; await this.restart(); }
  pause() { process.kill(this.pid, 'SIGSTOP'); }
  resume() { process.kill(this.pid, 'SIGCONT'); }
}
