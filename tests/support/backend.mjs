// The back end of the servers of a suite, chosen by HOLDFAST_TEST_BACKEND:
//
//   sqlite     one server on a SQLite file (the default)
//   postgres   one server on PostgreSQL
//   cluster    two servers on one PostgreSQL and one Redis, asked in turn
//
// A test process has one PostgreSQL and one Redis, started when first needed.  Each server directory has a
// database (and a database number in Redis) of its own, so that a second server on the same directory
// finds what the first one left.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { keepToTheEnd } from './process.mjs';
import { startPostgres } from './postgres.mjs';
import { startRedis } from './redis.mjs';

export const backend = process.env.HOLDFAST_TEST_BACKEND || 'sqlite';
assert.ok(['sqlite', 'postgres', 'cluster'].includes(backend), `HOLDFAST_TEST_BACKEND=${backend}?`);

// `it('...', { skip: only('sqlite', 'reason') }, ...)` skips the test on every other back end.
export const only = (which, reason) => (backend === which ? false : `${which} only: ${reason}`);
// `itOnce('...', ...)` is a claim that is the same on every back end, such as the form of an answer, or a rule that is judged
// in memory: a suite that runs on several back ends shows it on SQLite.  With HF_BACKENDS=all (`make soak`) every back end shows it.
export const itOnce = backend === 'sqlite' || process.env.HF_BACKENDS === 'all' ? it : () => {};
// `skip: not('cluster', 'reason')` skips the test on that back end.
export const not = (which, reason) => (backend === which ? `not with ${which}: ${reason}` : false);

const GATES = 1024;
let postgres; // promises
let redis;
let gates = 0;
const places = new Map(); // directory -> { ledger, gate, database }

const untilTheEnd = async (starting) => {
  const server = await starting;
  keepToTheEnd(server.run);
  return server;
};

export async function placeOf(dir) {
  if (backend === 'sqlite') return {};
  postgres ??= untilTheEnd(startPostgres());
  if (backend === 'cluster') redis ??= untilTheEnd(startRedis('--databases', `${GATES}`));
  const server = await postgres;
  if (!places.has(dir)) {
    const database = server.createDatabase();
    const gate = redis && `${(await redis).url}/${gates++ % GATES}`;
    places.set(dir, { database, ledger: server.url(database), gate });
  }
  const { database, ...place } = places.get(dir);
  return place;
}

// Drops the database of a directory that was removed.
export function forget(dir) {
  const place = places.get(dir);
  if (!place) return;
  places.delete(dir);
  postgres.then((server) => server.sql('-c', `DROP DATABASE ${place.database} WITH (FORCE)`)).catch(() => {});
}
