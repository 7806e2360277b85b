// Cells for tests: servers of the lock service on a real journal, with a proxy between the clients and each server,
// and a proxy between each server and each node of the journal.
//
//   const cell = await startCell('etcd');          // three servers on a three-node etcd
//   const cell = await startCell('postgres');      // three servers on PostgreSQL
//   const cell = await startCell('sqlite');        // one server on a file
//   cell.url                                       // holdfast://..., through the proxies
//   await cell.master()                            // the server that leads, as the servers themselves say
//   await cell.close();                            // stops everything; fails if a server did not end well

import { startEtcdCluster } from './etcd.mjs';
import { startPostgres } from './postgres.mjs';
import { freePort, Server, until } from './server.mjs';
import { startProxy } from './proxy.mjs';

const journals = {
  sqlite: async () => ({ nodes: [], url: () => null, close: async () => {} }),
  postgres: async () => {
    const postgres = await startPostgres({ durable: true });
    return {
      nodes: [postgres],
      url: ([port]) => `postgres://holdfast@127.0.0.1:${port}/postgres`,
      close: () => postgres.stop(),
    };
  },
  etcd: async ({ nodes: n }) => {
    const nodes = await startEtcdCluster(n);
    return {
      nodes,
      url: (ports) => `etcd://${ports.map((port) => `127.0.0.1:${port}`).join(',')}`,
      close: () => Promise.all(nodes.map((node) => node.stop())),
    };
  },
};

// Options: servers (3; of SQLite 1), nodes of etcd (3), args (of every server), env, timeout (--cell-timeout, 1s).
export async function startCell(kind, { servers = kind === 'sqlite' ? 1 : 3, nodes = 3, args = [], env = {}, timeout = '1s', ...options } = {}) {
  const cell = new Cell(kind, await journals[kind]({ nodes }));
  for (let i = 0; i < servers; i++) await cell.addServer({ args: ['--cell-timeout', timeout, ...args], env, ...options });
  return cell;
}

class Cell {
  constructor(kind, journal) { Object.assign(this, { kind, journal, servers: [] }); }

  // Starts one more server.
  async addServer({ args, env, ...options }) {
    const port = await freePort();
    const links = await Promise.all(this.journal.nodes.map((node) => startProxy(node.port)));
    const proxy = await startProxy(port);
    const journal = this.journal.url(links.map((link) => link.port));
    const server = new Server({
      env, ...options,
      args: ['--listen', `127.0.0.1:${port}`, '--advertise', `http://127.0.0.1:${proxy.port}`, '--pages', 'off', '--payments', 'off',
        ...(journal ? ['--journal', journal] : []), ...(this.kind === 'postgres' ? ['--journal-may-lose'] : []), ...args],
    });
    Object.assign(server, { proxy, links });
    this.servers.push(server);
    await server.launch();
    return server;
  }

  get url() { return `holdfast://${this.servers.map(({ proxy }) => `127.0.0.1:${proxy.port}`).join(',')}`; }

  // The server that leads, according to any server that can be asked; undefined if none does.
  async leader() {
    for (const server of this.servers) {
      if (!server.run || server.run.ended) continue;
      const answer = await server.get('/v1/cell').catch(() => null);
      const url = answer?.json?.master?.url;
      const found = this.servers.find(({ proxy, run }) => url === `http://127.0.0.1:${proxy.port}` && run && !run.ended);
      if (found) return found;
    }
    return undefined;
  }

  // Waits until a server leads.
  master() { return until('a server leads the cell', () => this.leader(), 120_000, 50); }

  // Kills a server as a crash does, and starts it again.
  async crash(server) {
    if (server.run.ended) return;
    await server.kill9();
    await server.launch();
  }

  async close() {
    for (const server of this.servers) {
      for (const link of [server.proxy, ...server.links]) link.restore();
    }
    await Promise.all(this.servers.map((server) => server.run && !server.run.ended && server.stop()));
    for (const server of this.servers) await Promise.all([server.proxy, ...server.links].map((link) => link.close()));
    await this.journal.close();
  }
}
