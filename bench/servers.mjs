// The servers under load: ours and the peers.  Each is a child process with a directory of its own in the
// bench's data directory.  It is stopped by its pid at the end of its row, or by stopAll if the bench ends
// in any other way.

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const SERVER = fileURLToPath(new URL('../scripts/server', import.meta.url));
const START_MAX_MS = 120_000; // a large ledger may have to be migrated
const LOOK_EVERY_MS = 2;
const STOP_MAX_MS = 15_000;
const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

const running = new Set();

export function sleep(ms) {
  return new Promise((done) => setTimeout(done, ms));
}

function readProc(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // it has ended
  }
}

// Returns the CPU time of a process, in microseconds; with `reaped`, includes the children it has waited for.
function processCpuUs(pid, reaped) {
  const stat = readProc(pid, 'stat');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ').map(Number);
  const [user, system, childUser, childSystem] = fields.slice(11, 15);
  const ticks = user + system + (reaped ? childUser + childSystem : 0);
  return (ticks / TICKS_PER_SECOND) * 1e6 || 0;
}

// Returns the CPU time of the whole machine and of this bench (itself and the children that have ended), in
// microseconds.  The difference went to other processes.
export function spentUs() {
  const [user, nice, system, , , irq, softirq, steal] = readFileSync('/proc/stat', 'utf8')
    .split('\n')[0].split(/\s+/).slice(1).map(Number);
  const all = ((user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND) * 1e6;
  return { all, bench: processCpuUs(process.pid, true) };
}

class Server {
  constructor(name, command, args, { directory, ids = {}, stopSignal = 'SIGTERM' }) {
    this.name = name;
    this.stopSignal = stopSignal;
    this.log = join(directory, `${name}.log`);
    const log = openSync(this.log, 'a');
    this.child = spawn(command, args, { cwd: directory, stdio: ['ignore', 'pipe', log], ...ids });
    closeSync(log);
    this.output = '';
    this.child.stdout.setEncoding('utf8').on('data', (text) => {
      this.output = (this.output + text).slice(0, 65536);
    });
    this.ended = new Promise((done) => {
      this.child.once('error', (error) => done(error.message));
      this.child.once('exit', (code, signal) => done(signal ?? `exit ${code}`));
    });
    this.ended.then((how) => {
      this.how = how;
      running.delete(this);
    });
    running.add(this);
  }

  get pid() {
    return this.child.pid;
  }

  failure(what) {
    const log = readFileSync(this.log, 'utf8').trim().split('\n').slice(-8);
    return new Error([`${this.name}: ${what}`, ...log].join('\n'));
  }

  // Calls `ready` until it returns a value.
  async until(ready) {
    const end = Date.now() + START_MAX_MS;
    for (;;) {
      if (this.how) throw this.failure(`ended at start (${this.how})`);
      const answer = await ready();
      if (answer) return answer;
      if (Date.now() > end) throw this.failure(`not ready after ${START_MAX_MS} ms`);
      await sleep(LOOK_EVERY_MS);
    }
  }

  async listening() {
    this.url = await this.until(() => this.output.match(/^\S+ listening on (http:\S+)$/m)?.[1]);
    return this;
  }

  cpuUs() {
    return processCpuUs(this.pid, false);
  }

  residentBytes() {
    return Number(readProc(this.pid, 'status').match(/^VmRSS:\s+(\d+) kB$/m)?.[1] ?? 0) * 1024;
  }

  openFiles() {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  async stop() {
    if (this.how) return;
    this.child.kill(this.stopSignal);
    const late = setTimeout(() => this.child.kill('SIGKILL'), STOP_MAX_MS);
    await this.ended;
    clearTimeout(late);
  }
}

export async function stopAll() {
  await Promise.all([...running].map((server) => server.stop()));
}

// ---- ours, and the bare handlers ----

function spawnHoldfast(bench, name, more, ids) {
  const directory = bench.directory(name);
  const data = join(directory, 'data');
  const server = new Server('holdfastd', join(bench.build, 'holdfastd'),
    ['--listen', '127.0.0.1:0', '--data', data, '--http-threads', String(bench.httpThreads), ...more],
    { directory, ids });
  server.data = data;
  return server.listening();
}

export const startHoldfast = (bench, name, ...more) => spawnHoldfast(bench, name, more);

export function startBare(bench, bodyLen) {
  const directory = bench.directory('bare');
  const args = [String(bench.httpThreads), String(bodyLen)];
  return new Server('bare', join(bench.tools, 'bare'), args, { directory }).listening();
}

// `answer` is what the loop sends, head and body.
export function startLoop(bench, answer) {
  const directory = bench.directory('loop');
  const file = join(directory, 'answer');
  writeFileSync(file, answer);
  const args = [String(bench.httpThreads), file];
  return new Server('loop', join(bench.tools, 'loop'), args, { directory }).listening();
}

// A server with one of the lab's strategies, on a database of its own.
export function startPeer(bench, strategy, ledger, gate) {
  const directory = bench.directory(strategy);
  const args = ['--strategy', strategy, '--postgres', ledger, '--redis', gate,
    '--http-threads', String(bench.httpThreads)];
  return new Server('peer', join(bench.tools, 'peer'), args, { directory }).listening();
}

// ---- checkout ----

// The keys of the provider in memory; buyers.c signs webhooks with this secret.
const env = {
  ...process.env,
  STRIPE_SECRET_KEY: 'sk_test_bench',
  STRIPE_PUBLISHABLE_KEY: 'pk_test_bench',
  STRIPE_WEBHOOK_SECRET: 'whsec_benchbenchbenchbench',
};

export function startProvider(bench) {
  const directory = bench.directory('provider');
  return new Server('provider', join(bench.tools, 'provider'), [], { directory }).listening();
}

// Ours, with that provider and no limit of calls per second.
export const startSeller = (bench, provider, ...more) => spawnHoldfast(bench, 'checkout',
  ['--payments', 'stripe', '--stripe-api', provider.url, '--payments-rate', '0', ...more], { env });

// The articles' flow; `database` is { postgres: URL } or { sqlite: FILE }.
export function startPeerSeller(bench, provider, database) {
  const directory = bench.directory('peer');
  const [[kind, where]] = Object.entries(database);
  const args = ['--provider', provider.url, `--${kind}`, where ?? join(directory, 'peer.db'),
    '--http-threads', String(bench.httpThreads)];
  return new Server('peer', join(bench.tools, 'peer'), args, { directory, ids: { env } }).listening();
}

// ---- Redis ----

async function freePort() {
  const probe = createServer();
  await new Promise((done) => probe.listen(0, '127.0.0.1', done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

export async function startRedis(bench) {
  const directory = bench.directory('redis');
  const port = await freePort();
  const server = new Server('redis-server', SERVER, ['redis', directory, String(port)], { directory });
  server.port = port;
  server.gate = `redis://127.0.0.1:${port}`;
  await server.until(() => /Ready to accept connections/.test(server.output));
  return server;
}

// ---- etcd and ZooKeeper, with the durability of their defaults ----

async function answers(port, text, expected) {
  return new Promise((done) => {
    let got = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.setTimeout(500, () => socket.destroy());
    socket.on('data', (bytes) => { got += bytes; });
    socket.on('error', () => {});
    socket.on('close', () => done(expected.test(got)));
  });
}

// Several members of one cluster, all on this machine; `stop` ends them all.
export async function startEtcdCluster(bench, n) {
  const members = [];
  for (let i = 0; i < n; i++) members.push({ name: `m${i}`, port: await freePort(), peer: await freePort() });
  const cluster = members.map(({ name, peer }) => `${name}=http://127.0.0.1:${peer}`).join(',');
  const servers = members.map(({ name, port, peer }) => {
    const directory = bench.directory(`etcd-${name}`);
    return new Server('etcd', SERVER, ['etcd', directory, String(port), String(peer), '--name', name, '--initial-cluster', cluster], { directory });
  });
  for (const [i, server] of servers.entries()) {
    server.port = members[i].port;
    await server.until(() => answers(server.port, 'GET /health HTTP/1.0\r\n\r\n', /"true"/));
  }
  return {
    servers,
    hosts: members.map(({ port }) => `127.0.0.1:${port}`).join(','),
    stop: () => Promise.all(servers.map((server) => server.stop())),
  };
}

export async function startEtcd(bench) {
  const { servers: [server] } = await startEtcdCluster(bench, 1);
  return server;
}

export async function startZookeeper(bench) {
  const directory = bench.directory('zookeeper');
  const port = await freePort();
  const server = new Server('zookeeper', SERVER, ['zookeeper', directory, String(port), 'tickTime=2000'], { directory });
  server.port = port;
  await server.until(() => answers(port, 'srvr', /Zookeeper version/));
  return server;
}

// ---- PostgreSQL ----

// A cluster with the defaults of initdb, on a Unix socket.
export async function startPostgres(bench) {
  const asPostgres = (...command) => execFileSync(SERVER, ['postgres-tool', ...command], { stdio: 'ignore' });
  let directory = bench.directory('postgres');
  try {
    asPostgres(directory, 'test', '-w', directory);
  } catch { // the checkout is in a private home directory
    directory = bench.directory('postgres', '/var/tmp');
  }
  // A socket's path has at most 107 bytes, and the path of the checkout may be long.
  const deep = join(directory, '.s.PGSQL.5432').length > 100;
  const sockets = deep ? bench.directory('sockets', '/tmp') : directory;
  if (deep) asPostgres(sockets, 'true'); // which gives it to PostgreSQL's user
  const server = new Server('postgres', SERVER, ['postgres', directory, '5432', '-k', sockets, '-c', 'listen_addresses='],
    { directory, stopSignal: 'SIGINT' });
  server.client = ['-h', sockets, '-U', 'holdfast'];
  // Backends come and go with the clients; the postmaster's count includes those that have ended.
  const children = () => readProc(server.pid, `task/${server.pid}/children`).match(/\d+/g) ?? [];
  server.cpuUs = () => children().reduce((sum, pid) => sum + processCpuUs(pid, false),
    processCpuUs(server.pid, true));
  server.backendsEnded = () => server.until(() => children().length <= server.idleChildren);
  server.sql = (...statements) => execFileSync('psql', [...server.client, '-d', 'postgres', '-qAtX',
    '-v', 'ON_ERROR_STOP=1', ...statements.flatMap((statement) => ['-c', statement])],
  { encoding: 'utf8', timeout: 60_000, stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  server.ledger = (database) => (
    `postgres://holdfast@/${database}?host=${encodeURIComponent(sockets)}`);
  await server.until(() => {
    try {
      return server.sql('SELECT 1') === '1';
    } catch {
      return false;
    }
  });
  await sleep(500);
  server.idleChildren = children().length;
  return server;
}

// ---- directories ----

// Creates directories root/NAME-1, root/NAME-2 ..., or the same elsewhere, and adds them to `made`, so that they
// can be removed.
export function directories(root, made) {
  let n = 0;
  return (name, base = root) => {
    n += 1;
    const mine = base === root ? '' : `holdfast-bench-${process.pid}-`;
    const path = resolve(base, `${mine}${name}-${n}`);
    mkdirSync(path, { recursive: true });
    made.push(path);
    return path;
  };
}
