// The rows of the lock service (the cell): pairs of acquire and release beside what clients of an etcd do by
// themselves, latencies beside one append to the journal, sessions, cached locks, and changes of the master.  See
// rows.mjs for the shape of a row.

import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { measured, metrics, run } from './load.mjs';
import {
  atLeast, atMost, check, pick, under, withPeer, withoutPeer,
} from './rows.mjs';
import { openMany } from './rows_connections.mjs';
import { sleep, startEtcdCluster, startHoldfast } from './servers.mjs';
import { median } from './table.mjs';

const CLIENTS = 64;
const WAITERS = 100;
const ENTRY_BYTES = 160; // about as long as an entry with one command
const SERVERS = 3;
const BEGIN_MAX_MS = 30_000;
const LINKED = ['cached', 'journal']; // with the build's own code, which they measure

async function tool(bench, name, ...args) {
  const directory = LINKED.includes(name) ? join(bench.build, 'bench') : bench.tools;
  const out = await run(join(directory, name), args.map(String), bench.seconds * 5000 + 60_000);
  return JSON.parse(out);
}

const hostOf = (server) => new URL(server.url).host;
const holdfastd = (bench, ...more) => startHoldfast(bench, 'cell', '--payments', 'off', ...more);

// Several processes whose CPU is counted together; the first one's metrics count.
const together = (servers) => ({
  name: servers[0].name,
  url: servers[0].url,
  cpuUs: () => servers.reduce((sum, server) => sum + server.cpuUs(), 0),
});

async function until(what, ready) {
  for (const end = Date.now() + BEGIN_MAX_MS; ;) {
    const answer = await ready();
    if (answer) return answer;
    check(Date.now() < end, `${what} after ${BEGIN_MAX_MS} ms`);
    await sleep(5);
  }
}

// ---- pairs ----

const pairs = (bench, servers, protocol, hosts) => measured(together(servers),
  () => tool(bench, 'lock_pairs', protocol, hosts, CLIENTS, bench.seconds));

// The syncs of an etcd: those of its log on every member.
async function etcdSyncs(etcd) {
  const reads = await Promise.all(etcd.servers.map(({ port }) => metrics(`http://127.0.0.1:${port}`)));
  return reads.reduce((sum, read) => sum + read('etcd_disk_wal_fsync_duration_seconds_count'), 0);
}

async function etcdPairs(bench, etcd, protocol) {
  const before = await etcdSyncs(etcd);
  const result = await pairs(bench, etcd.servers, protocol, etcd.hosts);
  return { ...result, syncs: (await etcdSyncs(etcd) - before) / result.requests };
}

// Every grant and every release is a command in an entry, and every entry is on disk before it is answered.
async function cellPairs(bench, master, servers, syncsOf) {
  const before = await syncsOf();
  const result = await pairs(bench, [master, ...servers.filter((s) => s !== master)], 'cell', hostOf(master));
  const syncs = await syncsOf() - before;
  const entries = result.grew('holdfast_journal_entries_total');
  const commands = result.grew('holdfast_journal_commands_total');
  check(commands >= 2 * result.requests, `${commands} commands for ${result.requests} pairs`);
  return { ...result, per_entry: commands / entries, syncs: syncs / entries };
}

// One client alone, and a line of waiters, beside the journal by itself.
async function latencies(bench, master, servers, journalUrl) {
  const all = together([master, ...servers.filter((s) => s !== master)]);
  const alone = await measured(all, () => tool(bench, 'lock_pairs', 'cell', hostOf(master), 1, bench.seconds));
  const append = await tool(bench, 'journal', journalUrl, ENTRY_BYTES, Math.min(bench.seconds, 3));
  const handover = await measured(all, () => tool(bench, 'handover', hostOf(master), WAITERS, 100 * bench.seconds));
  return { alone, append, handover };
}

async function onSqlite(bench) {
  const server = await holdfastd(bench);
  const syncs = async () => (await metrics(server.url))('holdfast_journal_syncs_total');
  const result = await cellPairs(bench, server, [server], syncs);
  const journal = `sqlite:${join(bench.directory('journal'), 'locks.db')}`;
  Object.assign(result, await latencies(bench, server, [server], journal));
  await server.stop();
  return result;
}

async function onEtcd(bench, etcd) {
  const servers = await startCell(bench, etcd);
  const master = await masterOf(servers);
  const result = await cellPairs(bench, master, [...servers, ...etcd.servers], () => etcdSyncs(etcd));
  Object.assign(result, await latencies(bench, master, [...servers, ...etcd.servers], `etcd://${etcd.hosts}?prefix=bench-`));
  await Promise.all(servers.map((server) => server.stop()));
  return result;
}

function pairLines(name, ours, [grpc, json], targets, syncsUnit) {
  const latency = (field) => pick(ours, field);
  return [
    withPeer(name, 'pairs/s', 'per_second', ours, grpc.name, grpc.results, atLeast(targets.pairs)),
    withPeer(name, 'pairs/s', 'per_second', ours, json.name, json.results),
    withPeer(name, 'p50 us', 'p50_us', ours, grpc.name, grpc.results),
    withPeer(name, 'p99 us', 'p99_us', ours, grpc.name, grpc.results, atMost(1)),
    withPeer(name, 'all CPU us/pair', 'cpu_us', ours, grpc.name, grpc.results),
    withoutPeer(name, 'commands/entry', 'per_entry', ours),
    withoutPeer(name, syncsUnit, 'syncs', ours, atLeast(1)),
    withPeer(`${name}, 1 client`, 'acquire p50 us', 'p50_us', latency('alone').map(
      (alone) => ({ p50_us: alone.grant_p50_us })), 'append', latency('append'), atMost(1.5)),
    withPeer(`${name}, ${WAITERS} wait`, 'hand-over p50 us', 'p50_us', latency('handover'), 'append',
      latency('append'), atMost(2)),
    withPeer(`${name}, ${WAITERS} wait`, 'hand-over p99 us', 'p99_us', latency('handover'), 'append',
      latency('append')),
    withoutPeer(`${name}, 1 client`, 'all CPU us/pair', 'cpu_us', latency('alone')),
    withoutPeer(`${name}, ${WAITERS} wait`, 'all CPU us/hand-over', 'cpu_us', latency('handover')),
  ];
}

// ---- sessions ----

const SESSIONS = 10_000;
const TTL_MS = 30_000;
const KEEPALIVE_MS = 10_000;
const IDLE_S = 20;

async function idleSessions(bench) {
  const server = await holdfastd(bench);
  const { hostname, port } = new URL(server.url);
  const clients = await openMany(bench, 'sessions',
    [hostname, port, SESSIONS, TTL_MS, KEEPALIVE_MS, IDLE_S + 15].map(String));
  await sleep(1000);
  const begun = performance.now();
  const cpu = server.cpuUs();
  await sleep(IDLE_S * 1000);
  const percent = ((server.cpuUs() - cpu) / (performance.now() - begun)) / 10;
  const read = await metrics(server.url);
  const resident = server.residentBytes() / 1e6;
  const totals = await clients.stop();
  await server.stop();
  check(read('holdfast_sessions') === SESSIONS, `${read('holdfast_sessions')} sessions are left`);
  check(totals.answered === totals.of, `${totals.answered} of ${totals.of} keep-alives answered`);
  const least = (0.9 * IDLE_S * SESSIONS * 1000) / KEEPALIVE_MS;
  check(totals.answered >= least, `only ${totals.answered} keep-alives`);
  return { percent, resident };
}

// ---- cached shared locks ----

async function cached(bench) {
  const server = await holdfastd(bench);
  const url = `holdfast://${hostOf(server)}?cache=shared`;
  const result = await measured(server, () => tool(bench, 'cached', url, Math.min(bench.seconds, 3)));
  await server.stop();
  const asked = result.grew('holdfast_lock_requests_total');
  check(asked <= 2, `the server was asked for ${asked} locks`);
  return result;
}

// ---- a change of the master ----

const TRIES = 20;
const AGAIN_MS = 5; // before a client asks the next server

async function startCell(bench, etcd) {
  const servers = [];
  while (servers.length < SERVERS) servers.push(await startMember(bench, etcd));
  return servers;
}

// A server of the cell that follows the journal.
async function startMember(bench, etcd) {
  const server = await holdfastd(bench, '--journal', `etcd://${etcd.hosts}`);
  await until('a server knows no master', async () => (await cellOf(server)).master?.url);
  return server;
}

async function cellOf(server) {
  const answer = await fetch(`${server.url}/v1/cell`, { signal: AbortSignal.timeout(10_000) });
  return answer.json();
}

async function masterOf(servers) {
  return until('no server leads', async () => {
    const { master } = await cellOf(servers[0]);
    return servers.find(({ url }) => url === master?.url);
  });
}

// A client that knows all servers.  It asks one of them until that one does not serve it, then the one that it is
// sent to, or the next.
class Client {
  constructor(servers, first) {
    this.urls = servers.map(({ url }) => url);
    this.url = first.url;
  }

  // Asks once; resolves to the body, or to undefined if another server has to be asked.
  async try(path, body) {
    try {
      const answer = await fetch(this.url + path, {
        method: 'POST', body: JSON.stringify(body), redirect: 'manual', signal: AbortSignal.timeout(30_000),
      });
      if (answer.status < 300) return await answer.json();
      const text = await answer.text();
      const elsewhere = answer.headers.get('location');
      check(elsewhere || answer.status === 503, `POST ${path}: ${answer.status} ${text}`);
      if (elsewhere) {
        this.url = new URL(elsewhere).origin;
        return undefined;
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // fetch: the server cannot be reached
    }
    this.url = this.urls[(this.urls.indexOf(this.url) + 1) % this.urls.length];
    await sleep(AGAIN_MS);
    return undefined;
  }

  async ask(path, body) {
    for (const end = Date.now() + BEGIN_MAX_MS; Date.now() < end;) {
      const answer = await this.try(path, body);
      if (answer) return answer;
    }
    throw new Error(`POST ${path}: not served in ${BEGIN_MAX_MS} ms`);
  }
}

// One client holds a lock, another waits for it when the master ends.  As soon as the waiter knows that, the
// holder releases; the waiter asks again.  Resolves to the time from the signal to its grant, which only the next
// master can give.
async function changeMaster(bench, servers, signal, name) {
  const master = await masterOf(servers);
  const [holder, waiter] = [new Client(servers, master), new Client(servers, master)];
  const open = async (client) => (await client.ask('/v1/sessions', { ttl_ms: TTL_MS })).id;
  const held = { session: await open(holder), owner: 'a' };
  const wanted = { session: await open(waiter), owner: 'b', wait_ms: 20_000 };
  await holder.ask(`/v1/locks/${name}`, held);
  const waits = waiter.try(`/v1/locks/${name}`, wanted);
  await until('nobody waits', async () => (
    (await (await fetch(`${master.url}/v1/locks/${name}`)).json()).n_waiters === 1));
  const begun = performance.now();
  master.child.kill(signal);
  check(!(await waits), 'the lock was granted before it was released');
  const released = holder.ask(`/v1/locks/${name}/release`, held);
  await waiter.ask(`/v1/locks/${name}`, wanted);
  const ms = performance.now() - begun;
  await released;
  await master.ended;
  return { ms, left: servers.filter((server) => server !== master) };
}

async function changes(bench, signal) {
  const etcd = await startEtcdCluster(bench, 3);
  let servers = await startCell(bench, etcd);
  const times = [];
  while (times.length < TRIES) {
    const { ms, left } = await changeMaster(bench, servers, signal, `change-${times.length}`);
    times.push(ms);
    servers = [...left, await startMember(bench, etcd)];
  }
  await Promise.all(servers.map((server) => server.stop()));
  await etcd.stop();
  return { median: median(times), worst: Math.max(...times) };
}

function changeLines(name, result, target) {
  return [
    withoutPeer(name, `ms to a grant, median of ${TRIES}`, 'median', [result]),
    withoutPeer(name, `ms to a grant, worst of ${TRIES}`, 'worst', [result], target),
  ];
}

// ---- the row ----

async function withCluster(bench, n, measure) {
  const etcd = await startEtcdCluster(bench, n);
  const result = await measure(etcd);
  await etcd.stop();
  return result;
}

// The peers go first, on a fresh etcd without servers of ours.
async function peersOf(bench, etcd, all) {
  for (const peer of all) peer.results.push(await etcdPairs(bench, etcd, peer.protocol));
}

const peersOn = (n) => [
  { protocol: 'grpc', name: `etcd x ${n}, gRPC`, results: [] },
  { protocol: 'json', name: `etcd x ${n}, JSON`, results: [] },
];

export async function cell(bench) {
  const [peers1, peers3] = [peersOn(1), peersOn(3)];
  const [sqlite, etcd3] = [[], []];
  for (let round = 1; round <= bench.rounds; round++) {
    await withCluster(bench, 1, (etcd) => peersOf(bench, etcd, peers1));
    sqlite.push(await onSqlite(bench));
    await withCluster(bench, 3, async (etcd) => {
      await peersOf(bench, etcd, peers3);
      etcd3.push(await onEtcd(bench, etcd));
    });
    bench.progress('cell', round);
  }
  const sessions = await idleSessions(bench);
  const cache = await cached(bench);
  const killed = await changes(bench, 'SIGKILL');
  const stopped = await changes(bench, 'SIGTERM');
  return [
    ...pairLines('cell, SQLite', sqlite, peers1, { pairs: 3 }, 'syncs/entry'),
    ...pairLines('cell, etcd x 3', etcd3, peers3, { pairs: 3.5 }, 'syncs/entry, all nodes'),
    withoutPeer('cell, 10,000 sessions', '% of a core', 'percent', [sessions], under(10)),
    withoutPeer('cell, 10,000 sessions', 'resident MB', 'resident', [sessions]),
    withoutPeer('cell, cached', 'shared lock+unlock/s', 'per_second', [cache], atLeast(1_500_000)),
    withoutPeer('cell, cached', 'CPU us/lock+unlock', 'process_cpu_us', [cache]),
    ...changeLines('cell, master killed', killed, atMost(3000)),
    ...changeLines('cell, master stopped', stopped, atMost(100)),
  ];
}
