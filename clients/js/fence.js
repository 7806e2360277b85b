// The guard of a write that a lock protects (docs/fences.md).

import { StaleFence } from './errors.js';

const stale = (resource, fence, cause) => new StaleFence(`Fence ${fence} is stale: a larger one has written to ${resource}.`, { code: 'stale_fence', cause });

function checkSqlite(db, resource, fence) {
  if ((db.inTransaction ?? db.isTransaction) === false) throw new TypeError('A fence is checked inside the transaction that it guards.');
  db.exec('CREATE TABLE IF NOT EXISTS holdfast_fences (resource TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID');
  // One statement compares and stores.  It changes no row if a larger fence is stored.
  const { changes } = db.prepare('INSERT INTO holdfast_fences VALUES (?, ?) ON CONFLICT (resource) '
    + 'DO UPDATE SET fence = excluded.fence WHERE excluded.fence >= fence').run(resource, BigInt(fence));
  if (Number(changes) === 0) throw stale(resource, fence);
}

async function checkPostgres(connection, resource, fence) {
  try {
    await connection.query('SELECT holdfast_fence($1, $2)', [resource, `${fence}`]);
  } catch (error) {
    throw error.code === 'SF001' ? stale(resource, fence, error) : error;
  }
}

// Call it inside the transaction that writes: it throws a StaleFence if a later holder of the lock
// has written to `resource`.  With better-sqlite3 and node:sqlite it is done when it returns; with pg it returns a promise,
// and the database needs share/holdfast/fence.sql.
export function checkFence(connection, resource, fence) {
  const length = typeof resource === 'string' ? Buffer.byteLength(resource) : 0;
  if (length === 0 || length > 255) throw new TypeError('A resource has 1 to 255 bytes.');
  if (!Number.isSafeInteger(fence) || fence <= 0) throw new TypeError(`${fence} is no fence.`);
  if (typeof connection?.prepare === 'function') return checkSqlite(connection, resource, fence);
  if (typeof connection?.query !== 'function') throw new TypeError('The connection has neither prepare nor query.');
  if (typeof connection.totalCount === 'number') throw new TypeError('A pool has no transaction: pass one of its clients.');
  return checkPostgres(connection, resource, fence);
}
