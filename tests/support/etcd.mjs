// A real etcd for one test, on free ports of 127.0.0.1: of one node, or of several.

import fs from 'node:fs';
import path from 'node:path';
import { freePort, launchServer, tempDir, until } from './process.mjs';

export async function startEtcd(...args) {
  const etcd = new Etcd(await freePort(), await freePort(), args);
  await etcd.start();
  return etcd;
}

// One that speaks TLS to its clients.
export async function startEtcdTls({ cert, key }) {
  const peerPort = await freePort();
  const etcd = new Etcd(await freePort(), peerPort, [], 'default', `default=http://127.0.0.1:${peerPort}`, { cert, key, port: await freePort() });
  await etcd.start();
  return etcd;
}

// Several nodes that form a cluster.
export async function startEtcdCluster(n, ...args) {
  const ports = [];
  for (let i = 0; i < 2 * n; i++) ports.push(await freePort());
  const peers = ports.slice(n).map((port, i) => `n${i}=http://127.0.0.1:${port}`).join(',');
  const nodes = ports.slice(0, n).map((port, i) => new Etcd(port, ports[n + i], args, `n${i}`, peers));
  await Promise.all(nodes.map((node) => node.start()));
  return nodes;
}

class Etcd {
  // `tls`: { cert, key, port }, files that it reads again for each client, and a plain port for its health.
  constructor(port, peerPort, args, name = 'default', peers = `default=http://127.0.0.1:${peerPort}`, tls = null) {
    this.port = port;
    this.peerPort = peerPort;
    this.name = name;
    this.peers = peers;
    this.tls = tls;
    this.args = tls ? [...args, '--cert-file', tls.cert, '--key-file', tls.key, '--listen-metrics-urls', `http://127.0.0.1:${tls.port}`] : args;
    this.dir = tempDir();
  }

  get pid() { return this.run.pid; }
  get url() { return `etcd://127.0.0.1:${this.port}`; }

  async start() {
    this.run = launchServer('etcd', this.dir, this.port, this.peerPort, '--name', this.name, '--initial-cluster', this.peers, ...this.args);
    const plain = this.tls ? this.tls.port : this.port;
    await until('etcd answers', async () => {
      if (this.run.ended) throw new Error(`etcd ended at start:\n${this.run.stderr}`);
      try {
        return (await (await fetch(`http://127.0.0.1:${plain}/health`)).json()).health === 'true';
      } catch {
        return false;
      }
    }, 120_000, 50);
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
