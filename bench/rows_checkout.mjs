// The checkout row: complete checkouts per second, beside the articles' flow (bench/peer_checkout.h), on
// SQLite and on PostgreSQL; and what half of that rate does to other buyers.  See rows.mjs for the shape of a row.

import { join } from 'node:path';
import { buyers, createEvents, measured, run, seatsOf } from './load.mjs';
import { LARGE, atLeast, atMost, check, pick, under, withPeer, withoutPeer } from './rows.mjs';
import { vacuum } from './rows_scale.mjs';
import {
  startPeerSeller, startPostgres, startProvider, startSeller,
} from './servers.mjs';
import { median } from './table.mjs';

const CONNECTIONS = [16, 64, 192]; // a short run tries each; the best one is measured
const OPEN_CONNECTIONS = 512; // of an open loop, so that it never waits for a connection
const HOLDS_PER_SECOND = 200; // plain holds, of buyers who are not part of the load
const HOLDS_SECONDS = 5; // at least, so that a p99 stands on a thousand of them
const LEDGERS = { SQLite: 'sqlite', PostgreSQL: 'postgres' };

// Starts a provider, a fresh database, and ours or the peer on them.
async function startAll(bench, kind, ledger) {
  const provider = await startProvider(bench);
  const postgres = ledger === 'postgres' ? await startPostgres(bench) : undefined;
  const url = postgres?.ledger('postgres');
  const server = kind === 'ours'
    ? await startSeller(bench, provider, ...(postgres ? ['--ledger', url] : []))
    : await startPeerSeller(bench, provider, { [ledger]: url });
  const all = { server, provider, postgres, ledger: url ?? `sqlite:${join(server.data ?? '', 'holdfast.db')}` };
  all.stop = async () => {
    for (const one of [server, postgres, provider]) await one?.stop();
  };
  return all;
}

// Creates events for so many checkouts; resolves to a function that runs a load on the next of their seats.
async function seating(bench, all, count) {
  const events = await createEvents(all.server.url, LARGE, Math.ceil(count / seatsOf(LARGE)) + 1);
  if (all.postgres) await vacuum(all);
  let first = 0;
  return async (options) => {
    const result = await buyers(bench, all.server, events, LARGE, { first, ...options });
    first += result.requests;
    return result;
  };
}

// What the ledger says must be what the buyers were told.
async function checkBooks(bench, all, kind, confirmed) {
  if (kind === 'ours') {
    await all.server.stop();
    const out = await run(join(bench.build, 'holdfast'), ['verify', '--ledger', all.ledger], 120_000);
    const bookings = Number(out.match(/(\d+) bookings/)?.[1]);
    check(bookings === confirmed, `${confirmed} checkouts for ${bookings} bookings`);
  } else if (all.postgres) {
    const n = Number(all.postgres.sql("SELECT count(*) FROM bookings WHERE status = 'CONFIRMED'"));
    check(n === confirmed, `${confirmed} checkouts for ${n} bookings`);
  }
}

async function checkoutsOnce(bench, kind, ledger) {
  const all = await startAll(bench, kind, ledger);
  const tried = [];
  const trial = await seating(bench, all, 0);
  let confirmed = 0;
  for (const connections of CONNECTIONS) {
    const result = await trial({ connections, seconds: 1 });
    confirmed += result.requests;
    tried.push({ connections, perSecond: result.per_second });
  }
  const { connections, perSecond } = tried.reduce((a, b) => (b.perSecond > a.perSecond ? b : a));
  const load = await seating(bench, all, perSecond * bench.seconds * 1.5);
  const postgresCpu = all.postgres?.cpuUs() ?? 0;
  const result = await measured(all.server, () => load({ connections, seconds: bench.seconds }));
  result.all_cpu_us = result.cpu_us + ((all.postgres?.cpuUs() ?? 0) - postgresCpu) / result.requests;
  confirmed += result.requests;
  if (kind === 'ours') {
    const counted = result.grew('holdfast_bookings_total', { status: 'confirmed' });
    check(counted === result.requests, `${result.requests} checkouts for ${counted} confirmed`);
    result.per_commit = result.requests / result.grew('holdfast_batch_commands_count');
  }
  await checkBooks(bench, all, kind, confirmed);
  await all.stop();
  return result;
}

// ---- half of the maximum: other buyers, and the provider ----

// Plain holds on an otherwise idle server, and then beside `rate` checkouts per second.
async function halfOnce(bench, ledger, rate) {
  const all = await startAll(bench, 'ours', ledger);
  const seconds = Math.max(bench.seconds, HOLDS_SECONDS);
  const holds = await seating(bench, all, 4 * HOLDS_PER_SECOND * seconds);
  const checkouts = await seating(bench, all, rate * (seconds + 3) * 1.5);
  const plain = (of) => holds({ rate: HOLDS_PER_SECOND, holds: 1, connections: 64, seconds: of });
  const warm = await checkouts({ rate, connections: OPEN_CONNECTIONS, seconds: 1 });
  const idle = await plain(seconds);
  const [result, busy] = await Promise.all([
    checkouts({ rate, connections: OPEN_CONNECTIONS, seconds: seconds + 1 }), plain(seconds)]);
  await checkBooks(bench, all, 'ours', warm.requests + result.requests);
  await all.stop();
  return { idle, busy, webhook_p99_us: result.webhook_p99_us, per_second: result.per_second };
}

async function half(bench, name, ledger, rate) {
  const results = [];
  for (let round = 1; round <= bench.rounds; round++) {
    results.push(await halfOnce(bench, ledger, rate));
    bench.progress(`${name}, half`, round);
  }
  const row = `${name}, half of it`;
  return [
    withoutPeer(row, 'checkouts/s', 'per_second', results),
    withPeer(row, 'plain holds, p99 us', 'hold_p99_us', pick(results, 'busy'), 'idle',
      pick(results, 'idle'), atMost(2)),
    withoutPeer(row, 'webhooks, p99 us', 'webhook_p99_us', results, under(10_000)),
  ];
}

async function onLedger(bench, name, ledger) {
  const ours = [];
  const peer = [];
  for (let round = 1; round <= bench.rounds; round++) {
    ours.push(await checkoutsOnce(bench, 'ours', ledger));
    peer.push(await checkoutsOnce(bench, 'peer', ledger));
    bench.progress(name, round);
  }
  const both = (unit, field, target) => (
    withPeer(name, unit, field, ours, 'step by step', peer, target));
  return [
    both('checkouts/s', 'per_second', atLeast(3)),
    withoutPeer(name, 'checkouts/batch', 'per_commit', ours),
    both('server\'s CPU us/checkout', 'cpu_us'),
    ...(ledger === 'postgres' ? [both('all CPU us/checkout', 'all_cpu_us')] : []),
    both('p50 us', 'all_p50_us', ledger === 'postgres' ? under(1) : undefined),
    both('p99 us', 'all_p99_us'),
    ...await half(bench, name, ledger, Math.floor(median(pick(ours, 'per_second')) / 2)),
  ];
}

export async function checkout(bench) {
  const lines = [];
  for (const [name, ledger] of Object.entries(LEDGERS)) {
    lines.push(...await onLedger(bench, `checkout, ${name}`, ledger));
  }
  return lines;
}
