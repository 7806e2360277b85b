// The coordinators that locks can be on, as a table: one row per kind of server behind a network.  A suite that goes
// through the table covers a new driver as soon as it has a row.
//
//   const server = await coordinators.redis.start();      // real servers on free ports, with the password PASSWORD
//   coordinators.redis.url(server.ports)                  // a URL without user and password
//   coordinators.redis.url(server.ports, `${user}:pw`)    // with them
//   coordinators.redis.endsWithProcess                    // leases end with the process that took them
//   coordinators.redis.options                            // what its locks need on the command line; undefined: nothing
//   await server.stop();

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { startEtcd } from './etcd.mjs';
import { Postgres } from './postgres.mjs';
import { freePort } from './process.mjs';
import { startRedis } from './redis.mjs';
import { Server } from './server.mjs';
import { startZookeeper } from './zookeeper.mjs';

export const PASSWORD = 'right-secret';
const hosts = (ports) => ports.map((port) => `127.0.0.1:${port}`).join(',');
const login = (who) => (who ? `${who}@` : '');

async function startPostgresWithPassword() {
  const postgres = new Postgres(await freePort(), [], false);
  await postgres.start();
  postgres.sql('-c', `ALTER ROLE holdfast PASSWORD '${PASSWORD}'`);
  // TCP asks for the password; the socket of the test does not.
  fs.writeFileSync(path.join(postgres.data, 'pg_hba.conf'), 'local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n');
  postgres.sql('-c', 'SELECT pg_reload_conf()');
  return { ports: [postgres.port], stop: () => postgres.stop() };
}

async function startRedises(n) {
  const servers = await Promise.all(Array.from({ length: n }, () => startRedis('--requirepass', PASSWORD)));
  return { ports: servers.map(({ port }) => port), servers, stop: () => Promise.all(servers.map((server) => server.stop())) };
}

async function startEtcdWithPassword() {
  const etcd = await startEtcd();
  const ctl = (...args) => execFileSync('etcdctl', ['--endpoints', `http://127.0.0.1:${etcd.port}`, ...args],
    { encoding: 'utf8', timeout: 20_000, env: { ...process.env, ETCDCTL_API: '3', ETCD_UNSUPPORTED_ARCH: process.arch }, stdio: ['ignore', 'pipe', 'pipe'] });
  ctl('user', 'add', `root:${PASSWORD}`);
  ctl('user', 'grant-role', 'root', 'root');
  ctl('auth', 'enable');
  return { ports: [etcd.port], stop: () => etcd.stop() };
}

// The first client creates the nodes, and only those who know its password may use them.
async function startZookeeperWithPassword() {
  const zookeeper = await startZookeeper();
  return { ports: [zookeeper.port], stop: () => zookeeper.stop() };
}

// The whole of user and password is the access key.
async function startHoldfastd() {
  const server = new Server({ args: ['--payments', 'off'], env: { HOLDFAST_SELLER_KEY: `key:${PASSWORD}`, HOLDFAST_ADMIN_KEY: 'of-nobody' } });
  await server.launch();
  return { ports: [server.port], stop: () => server.stop() };
}

export const coordinators = {
  postgres: {
    user: 'holdfast',
    n: 1,
    start: startPostgresWithPassword,
    url: (ports, who) => `postgres://${login(who)}${hosts(ports)}/postgres`,
    refusal: /password authentication failed/,
  },
  redis: {
    user: '',
    n: 1,
    start: () => startRedises(1),
    url: (ports, who) => `redis://${login(who)}${hosts(ports)}`,
    refusal: /WRONGPASS|password/,
  },
  redlock: {
    user: '',
    n: 3,
    start: () => startRedises(3),
    // Servers that have just started are of no use for max_ttl.
    url: (ports, who) => `redlock://${login(who)}${hosts(ports)}?max_ttl=12s`,
    options: ['--ttl', '12s'],
    refusal: /0 of 3 servers can be used, a majority is 2: .*(WRONGPASS|password)/,
  },
  etcd: {
    user: 'root',
    n: 1,
    start: startEtcdWithPassword,
    url: (ports, who) => `etcd://${login(who)}${hosts(ports)}`,
    refusal: /authentication failed|password/,
  },
  zookeeper: {
    user: 'ann',
    n: 1,
    start: startZookeeperWithPassword,
    url: (ports, who) => `zookeeper://${login(who)}${hosts(ports)}/locks`,
    refusal: /wrong user or password|refuses the user or the password/,
    endsWithProcess: true,
  },
  holdfast: {
    user: 'key',
    n: 1,
    start: startHoldfastd,
    url: (ports, who) => `holdfast://${login(who)}${hosts(ports)}`,
    refusal: /refuses this access key/,
    endsWithProcess: true,
  },
};
