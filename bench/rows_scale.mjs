// The rows of the deployment with PostgreSQL and Redis: one holdfastd, and three, beside the lab's strategies
// behind HTTP (bench/peer.c), with the same settings of PostgreSQL and Redis.  See rows.mjs for the shape of
// a row.

import { createEvent, createEvents, expectPost, measured, metrics, seatsOf, wrk } from './load.mjs';
import {
  LARGE, SMALL, withoutPeer, atLeast, withPeer, check, pick, scattered, combined,
} from './rows.mjs';
import { sleep, startHoldfast, startPeer, startPostgres, startRedis } from './servers.mjs';

const sum = (values) => values.reduce((total, value) => total + value, 0);

// Starts a fresh PostgreSQL and Redis; resolves to them and to functions that start servers on them.
async function startBelow(bench) {
  const [postgres, redis] = [await startPostgres(bench), await startRedis(bench)];
  return {
    postgres,
    ours: (name, database = 'postgres') => startHoldfast(bench, name,
      '--ledger', postgres.ledger(database), '--gate', redis.gate),
    peer: (strategy, database = 'postgres') => startPeer(bench, strategy,
      postgres.ledger(database), redis.gate),
    number: (sql) => Number(postgres.sql(sql)),
    cpuUs: () => postgres.cpuUs() + redis.cpuUs(),
    stop: () => Promise.all([postgres.stop(), redis.stop()]),
  };
}

// Vacuums only the servers' own tables: each catalog table would add a commit to the count.
const TABLES = `SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables
  WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`;

export function vacuum({ postgres }) {
  postgres.sql(`VACUUM ANALYZE ${postgres.sql(TABLES)}`, 'CHECKPOINT');
  return sleep(1000);
}

function allGranted(result) {
  check(result.refused === 0, `${result.refused} of ${result.requests} holds refused`);
  return result;
}

// ---- distinct: every client gets a seat of its own, from one server ----

const COMMITS = 'SELECT sum(xact_commit) FROM pg_stat_database';
const WAL_BYTES = "SELECT pg_current_wal_lsn() - '0/0'";

async function distinctOnce(bench, kind) {
  const below = await startBelow(bench);
  const server = await (kind === 'ours' ? below.ours('scale') : below.peer(kind));
  const { seconds } = bench;
  const commits = below.number(COMMITS);
  const warm = allGranted(await scattered(server, await createEvents(server.url, LARGE, 1), LARGE,
    {}, { seconds: 1 }));
  // One event after the other, with some to spare, so that no seat is asked for twice.
  const seats = warm.per_second * seconds * 1.5 + seatsOf(LARGE);
  const events = await createEvents(server.url, LARGE, Math.ceil(seats / seatsOf(LARGE)));
  await vacuum(below);

  const [wal, cpu] = [below.number(WAL_BYTES), below.cpuUs()];
  const result = allGranted(await measured(server,
    () => scattered(server, events, LARGE, {}, { seconds })));
  result.wal = (below.number(WAL_BYTES) - wal) / result.requests;
  result.all_cpu_us = result.cpu_us + (below.cpuUs() - cpu) / result.requests;
  if (kind === 'ours') {
    const granted = result.grew('holdfast_hold_requests_total', { result: 'granted' });
    check(granted >= result.requests, `${result.requests} answers for ${granted} holds`);
    result.per_batch = result.grew('holdfast_batch_commands_sum')
      / result.grew('holdfast_batch_commands_count');
  } else {
    const held = below.number("SELECT count(*) FROM seats WHERE status = 'HELD'");
    check(held >= warm.requests + result.requests, `only ${held} seats are held`);
  }
  // A backend reports its commits late, at the latest when it ends, so the count covers warm-up and run.
  await server.stop();
  await below.postgres.backendsEnded();
  result.commits = (below.number(COMMITS) - commits) / (warm.requests + result.requests);
  result.per_commit = 1 / result.commits;
  await below.stop();
  return result;
}

async function distinct(bench) {
  const ours = [];
  const peer = [];
  for (let round = 1; round <= bench.rounds; round++) {
    ours.push(await distinctOnce(bench, 'ours'));
    peer.push(await distinctOnce(bench, 'two-layer'));
    bench.progress('scale, distinct', round);
  }
  const both = (unit, field, target) => (
    withPeer('scale, distinct', unit, field, ours, 'two-layer', peer, target));
  return [
    both('holds/s', 'per_second', atLeast(4.5)),
    withoutPeer('scale, distinct', 'holds/commit', 'per_commit', ours, atLeast(20)),
    withoutPeer('scale, distinct', 'holds/batch', 'per_batch', ours),
    both('commits/hold', 'commits'),
    both('WAL bytes/hold', 'wal'),
    both('server\'s CPU us/hold', 'cpu_us'),
    both('all CPU us/hold', 'all_cpu_us'),
    both('p50 us', 'p50_us'),
    both('p99 us', 'p99_us'),
  ];
}

// ---- losers: every client wants one seat that is held ----

const PEERS = [['pessimistic', 15], ['two-layer', 2]];

// Resolves to the server and a function that makes it refuse for a second.
async function hotSeat(server, times) {
  const hold = { event: await createEvent(server.url, SMALL, times), seats: ['S1-J-25'] };
  await expectPost(201, server.url, '/v1/holds', hold);
  await expectPost(409, server.url, '/v1/holds', hold);
  const refuse = async () => {
    const result = await measured(server,
      () => wrk(server.url, 'contended.lua', [JSON.stringify(hold)], { seconds: 1 }));
    check(result.refused === result.requests,
      `${server.name} refused ${result.refused} of ${result.requests}`);
    return result;
  };
  await refuse();
  return refuse;
}

async function losers(bench) {
  const below = await startBelow(bench);
  const databases = ['ours', ...PEERS.map((_, i) => `peer${i}`)];
  below.postgres.sql(...databases.map((name) => `CREATE DATABASE ${name}`));
  const servers = [await below.ours('scale', 'ours')];
  for (const [i, [strategy]] of PEERS.entries()) {
    servers.push(await below.peer(strategy, `peer${i}`));
  }
  const times = { hold_ttl_ms: 1_200_000, hold_max_ms: 1_200_000 };
  const refuse = [];
  for (const server of servers) refuse.push(await hotSeat(server, times));
  const results = servers.map(() => []);
  for (let round = 1; round <= bench.rounds; round++) {
    const slices = servers.map(() => []);
    for (let second = 0; second < bench.seconds; second++) {
      for (const [i, one] of refuse.entries()) slices[i].push(await one());
    }
    slices.forEach((of, i) => results[i].push(combined(of)));
    bench.progress('scale, losers', round);
  }
  await Promise.all(servers.map((server) => server.stop()));
  await below.stop();
  const [ours, ...peers] = results;
  return PEERS.flatMap(([strategy, target], i) => [
    withPeer('scale, losers', 'refusals/s', 'per_second', ours, strategy, peers[i], atLeast(target)),
    withPeer('scale, losers', 'server\'s CPU us/refusal', 'cpu_us', ours, strategy, peers[i]),
  ]);
}

// ---- several servers ----

const N_SERVERS = 3;
const CONNECTIONS = 64; // of each of the three load generators, whatever the number of servers
const HALL = { sections: 25, rows: 100, seats: 100 }; // 250,000: enough for a run on one event
const SHARE = Math.floor(seatsOf(HALL) / N_SERVERS);

// Runs three generators, each with its server and its share of the seats of its event.
async function generators(servers, events, from, seconds) {
  const each = await Promise.all(Array.from({ length: N_SERVERS }, (_, i) => (
    scattered(servers[i % servers.length], [events[i % events.length]], HALL,
      { first: (events.length > 1 ? 0 : i * SHARE) + from },
      { connections: CONNECTIONS, threads: 1, seconds }))));
  each.forEach(allGranted);
  return { per_second: sum(pick(each, 'per_second')), p99_us: Math.max(...pick(each, 'p99_us')),
    requests: sum(pick(each, 'requests')), most: Math.max(...pick(each, 'requests')) };
}

async function serversOnce(bench, nServers, nEvents) {
  const below = await startBelow(bench);
  const servers = [];
  while (servers.length < nServers) servers.push(await below.ours('scale'));
  const events = await createEvents(servers[0].url, HALL, nEvents);
  await vacuum(below);
  const warm = await generators(servers, events, 0, 1);
  const from = warm.most + CONNECTIONS;
  const seconds = Math.min(bench.seconds, Math.floor((SHARE - from) / (warm.most * 1.5)));
  check(seconds >= 1, `${SHARE} seats do not last a second`);
  const cpuUs = () => below.cpuUs() + sum(servers.map((server) => server.cpuUs()));
  const batches = async () => Promise.all(servers.map((server) => metrics(server.url)));
  const grown = (before, after, name) => sum(after.map((read, i) => read(name) - before[i](name)));
  const [before, cpu] = [await batches(), cpuUs()];
  const result = await generators(servers, events, from, seconds);
  result.all_cpu_us = (cpuUs() - cpu) / result.requests;
  const after = await batches();
  result.per_batch = grown(before, after, 'holdfast_batch_commands_sum')
    / grown(before, after, 'holdfast_batch_commands_count');
  await Promise.all(servers.map((server) => server.stop()));
  await below.stop();
  return result;
}

async function several(bench) {
  const [one, hot, spread] = [[], [], []];
  for (let round = 1; round <= bench.rounds; round++) {
    one.push(await serversOnce(bench, 1, 1));
    hot.push(await serversOnce(bench, N_SERVERS, 1));
    spread.push(await serversOnce(bench, N_SERVERS, N_SERVERS));
    bench.progress('scale, servers', round);
  }
  const line = (name, unit, field, results, target) => (
    withPeer(`scale, three on ${name}`, unit, field, results, 'one server', one, target));
  return [
    line('one event', 'holds/s', 'per_second', hot, atLeast(0.8)),
    line('one event', 'p99 us', 'p99_us', hot),
    line('one event', 'all CPU us/hold', 'all_cpu_us', hot),
    line('one event', 'holds/batch', 'per_batch', hot),
    line('three events', 'holds/s', 'per_second', spread, atLeast(1)),
    line('three events', 'p99 us', 'p99_us', spread),
    line('three events', 'all CPU us/hold', 'all_cpu_us', spread),
    line('three events', 'holds/batch', 'per_batch', spread),
  ];
}

export async function scale(bench) {
  return [...await distinct(bench), ...await losers(bench), ...await several(bench)];
}
