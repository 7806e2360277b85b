// The rows of waiting lists: what a place that goes to the next entry costs beside a hold that is released and made
// again.  waits.c measures both in one process, with the build's own engine.  See rows.mjs for the shape of a row.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './load.mjs';
import { atMost, pick, withoutPeer } from './rows.mjs';
import { startPostgres } from './servers.mjs';

const RUN_MAX_MS = 300_000;

async function once(bench, url) {
  return JSON.parse(await run(join(bench.build, 'bench', 'waits'), [url], RUN_MAX_MS));
}

async function onPostgres(bench) {
  const postgres = await startPostgres(bench);
  const result = await once(bench, postgres.ledger('postgres'));
  await postgres.stop();
  return result;
}

export async function waits(bench) {
  const results = { SQLite: [], PostgreSQL: [] };
  for (let round = 1; round <= bench.rounds && existsSync(join(bench.build, 'bench', 'waits')); round++) {
    results.SQLite.push(await once(bench, `sqlite:${join(bench.directory('waits'), 'holdfast.db')}`));
    results.PostgreSQL.push(await onPostgres(bench));
    bench.progress('waits', round);
  }
  return [
    ...Object.entries(results).flatMap(([ledger, rounds]) => [
      {
        ...withoutPeer(`waits, ${ledger}`, 'CPU us/place', 'free_us', rounds, atMost(2)),
        peerName: 'released and held',
        peer: pick(rounds, 'pair_us'),
      },
      {
        ...withoutPeer(`waits, ${ledger}, 5,000 at once`, 'CPU us/place', 'burst_us', rounds, atMost(2)),
        peerName: 'released and held',
        peer: pick(rounds, 'pair_us'),
      },
      withoutPeer(`waits, ${ledger}, nobody waits`, 'CPU us/release and hold', 'pair_us', rounds),
      withoutPeer(`waits, ${ledger}`, 'CPU us/join', 'join_us', rounds),
    ]),
    withoutPeer('waits, memory', 'bytes/entry', 'bytes', results.SQLite, atMost(200)),
  ];
}
