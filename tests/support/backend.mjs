// What is behind the servers of a suite, by HOLDFAST_TEST_BACKEND:
//
//   sqlite     one server on a SQLite file (the default)
//   postgres   one server on PostgreSQL
//   cluster    two servers on one PostgreSQL and one Redis, asked in turn
//
// One PostgreSQL and one Redis a test process, started when first needed; a directory of a server
// has a database (and a number in Redis) of its own, so that a second server on that directory
// finds what the first left.

import assert from 'node:assert/strict';
import { keepToTheEnd } from './process.mjs';
import { startPostgres } from './postgres.mjs';
import { startRedis } from './redis.mjs';

export const backend = process.env.HOLDFAST_TEST_BACKEND || 'sqlite';
assert.ok(['sqlite', 'postgres', 'cluster'].includes(backend), `HOLDFAST_TEST_BACKEND=${backend}?`);

// `it('...', { skip: only('sqlite', 'reason') }, ...)`: a claim about one back end, said why.
export const only = (which, reason) => (backend === which ? false : `${which} only: ${reason}`);
// A claim that has no meaning there, said why.
export const not = (which, reason) => (backend === which ? `not with ${which}: ${reason}` : false);

const GATES = 1024;
let postgres; // promises
let redis;
let gates = 0;
const places = new Map(); // directory -> { ledger, gate, database }

const lasting = async (starting) => {
  const server = await starting;
  keepToTheEnd(server.run);
  return server;
};

export async function placeOf(dir) {
  if (backend === 'sqlite') return {};
  postgres ??= lasting(startPostgres());
  if (backend === 'cluster') redis ??= lasting(startRedis('--databases', `${GATES}`));
  const server = await postgres;
  if (!places.has(dir)) {
    const database = server.createDatabase();
    const gate = redis && `${(await redis).url}/${gates++ % GATES}`;
    places.set(dir, { database, ledger: server.url(database), gate });
  }
  const { database, ...place } = places.get(dir);
  return place;
}

// The directory is gone, and so is its database.
export function forget(dir) {
  const place = places.get(dir);
  if (!place) return;
  places.delete(dir);
  postgres.then((server) => server.sql('-c', `DROP DATABASE ${place.database} WITH (FORCE)`)).catch(() => {});
}
