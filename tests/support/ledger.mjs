// Reads the ledger's file as an auditor would: what must be true of the rows whatever happened.
// Works on a copy, so that looking changes nothing; the server may have been killed.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { environment, HOLDFAST, removeTempDir, sqliteQuery, tempDir } from './server.mjs';

// Statuses are the integers of src/ledger/rows.h.  Each query lists violations: none are expected.
const HELD = 1, BOOKED = 2;         // seats
const ACTIVE = 1, CONFIRMED = 4;    // holds
const EVENT = 1, SEAT = 2, AREA = 3, HOLD = 4; // audit objects

// Who claims which seat, and how the log ends for each seat and hold.
const prepare = `
  CREATE TABLE claims AS SELECT h.event << 32 | j.value AS seat, h.hold, h.fence, h.status
    FROM holds h, json_each(h.seats) j WHERE h.status IN (${ACTIVE}, ${CONFIRMED});
  CREATE INDEX claims_seat ON claims (seat);
  CREATE TABLE area_claims AS SELECT h.event, a.value AS area, q.value AS quantity, h.hold, h.status
    FROM holds h, json_each(h.areas) a, json_each(h.areas) q
    WHERE a.key % 2 = 0 AND q.key = a.key + 1 AND h.status IN (${ACTIVE}, ${CONFIRMED});
  CREATE TABLE seat_ends (seat INTEGER PRIMARY KEY, after, seq);
  INSERT INTO seat_ends SELECT event << 32 | item, after, max(seq) FROM audit WHERE object = ${SEAT} GROUP BY event, item;
  CREATE TABLE hold_ends (hold INTEGER PRIMARY KEY, after, seq);
  INSERT INTO hold_ends SELECT hold, after, max(seq) FROM audit WHERE object = ${HOLD} GROUP BY hold;`;

const rules = {
  'I1: no seat has two live owners': `
    SELECT seat, count(*) AS owners FROM claims GROUP BY seat HAVING count(*) > 1`,
  'I2: an area holds and has sold what its holds say, and no more than there is': `
    SELECT a.*, sum(c.quantity) FILTER (WHERE c.status = ${ACTIVE}) AS claimed, sum(c.quantity) FILTER (WHERE c.status = ${CONFIRMED}) AS sold
    FROM areas a LEFT JOIN area_claims c ON c.event = a.event AND c.area = a.area GROUP BY a.event, a.area
    HAVING a.held <> coalesce(claimed, 0) OR a.booked <> coalesce(sold, 0) OR a.held < 0 OR a.booked < 0 OR a.held + a.booked > a.capacity`,
  'I2, I11: folding the log gives every area': `
    SELECT a.event, a.area, a.held, a.booked, f.held AS folded, f.booked AS sold FROM areas a LEFT JOIN (
      SELECT event, item, sum(quantity * ((after = ${HELD}) - (before = ${HELD}))) AS held, sum(quantity * ((after = ${BOOKED}) - (before = ${BOOKED}))) AS booked
      FROM audit WHERE object = ${AREA} GROUP BY event, item) f ON f.event = a.event AND f.item = a.area
    WHERE a.held <> coalesce(f.held, 0) OR a.booked <> coalesce(f.booked, 0)`,
  'I11: folding the log gives every event\'s status': `
    SELECT e.event, e.status, a.after FROM events e LEFT JOIN (SELECT event, after, max(seq) FROM audit WHERE object = ${EVENT} GROUP BY event) a
    ON a.event = e.event WHERE a.after IS NOT e.status`,
  'I3, I6: every seat of an active hold is held by it': `
    SELECT c.hold, c.seat, s.status, s.hold AS holder FROM claims c LEFT JOIN seats s ON s.seat = c.seat
    WHERE c.status = ${ACTIVE} AND (s.status IS NOT ${HELD} OR s.hold IS NOT c.hold OR s.fence IS NOT c.fence)`,
  'I3: every seat that is held has an active hold': `
    SELECT s.seat, s.hold FROM seats s LEFT JOIN claims c ON c.seat = s.seat AND c.hold = s.hold AND c.status = ${ACTIVE}
    WHERE s.status = ${HELD} AND c.hold IS NULL`,
  'I1: every seat of a confirmed hold is booked and sold once': `
    SELECT c.hold, c.seat, s.status, x.booking FROM claims c LEFT JOIN seats s ON s.seat = c.seat
    LEFT JOIN sold_seats x ON x.seat = c.seat
    WHERE c.status = ${CONFIRMED} AND (s.status IS NOT ${BOOKED} OR x.booking IS NOT c.hold)`,
  'I1: every sale and every booked seat belong to a confirmed hold': `
    SELECT s.seat FROM seats s LEFT JOIN claims c ON c.seat = s.seat AND c.status = ${CONFIRMED}
    WHERE s.status = ${BOOKED} AND c.hold IS NULL
    UNION SELECT x.seat FROM sold_seats x LEFT JOIN claims c ON c.seat = x.seat AND c.status = ${CONFIRMED}
    WHERE c.hold IS NULL`,
  'every confirmed hold has a booking and every booking a confirmed hold': `
    SELECT hold FROM holds WHERE status = ${CONFIRMED} AND hold NOT IN (SELECT booking FROM bookings)
    UNION SELECT booking FROM bookings WHERE booking NOT IN (SELECT hold FROM holds WHERE status = ${CONFIRMED})`,
  'I5: no fence is above its event\'s clock': `
    SELECT h.hold, h.fence, c.fence AS clock FROM holds h LEFT JOIN event_clock c ON c.event = h.event
    WHERE c.fence IS NULL OR h.fence > c.fence`,
  'I5: no two holds share a fence': `
    SELECT event, fence, count(*) FROM holds GROUP BY event, fence HAVING count(*) > 1`,
  'I5: each seat\'s grants have growing fences': `
    SELECT * FROM (SELECT event, item, seq, fence, lag(fence) OVER (PARTITION BY event, item ORDER BY seq) AS previous
      FROM audit WHERE object = ${SEAT} AND after = ${HELD} AND before = 0) WHERE previous >= fence`,
  'I11: the log of each event has no gaps and ends at its clock': `
    SELECT a.event, count(*), min(a.seq), max(a.seq), c.seq FROM audit a JOIN event_clock c ON c.event = a.event
    GROUP BY a.event HAVING count(*) <> max(a.seq) - min(a.seq) + 1 OR min(a.seq) > 1 OR max(a.seq) <> c.seq`,
  'I11: each change begins where the one before ended': `
    SELECT * FROM (SELECT event, object, item, hold, seq, before, after, lag(after) OVER (
        PARTITION BY event, object, CASE object WHEN ${SEAT} THEN item ELSE hold END ORDER BY seq) AS previous
      FROM audit WHERE object IN (${SEAT}, ${HOLD})) WHERE previous IS NOT NULL AND previous <> before`,
  'I11: folding the log gives every seat': `
    SELECT s.seat, s.status, a.after FROM seats s LEFT JOIN seat_ends a ON a.seat = s.seat WHERE s.status <> coalesce(a.after, 0)`,
  'I11: folding the log gives every hold': `
    SELECT h.hold, h.status, a.after FROM holds h LEFT JOIN hold_ends a ON a.hold = h.hold WHERE a.after IS NOT h.status`,
};

// `holdfast verify` on the ledger itself, killed or running: no invariant is violated.
export function assertVerified(dir) {
  const url = `sqlite:${path.join(dir, 'holdfast.db')}`;
  let text;
  try {
    text = execFileSync(HOLDFAST, ['verify', '--ledger', url, '--json'],
      { encoding: 'utf8', stdio: 'pipe', env: environment({}, false) });
  } catch (error) {
    assert.fail(`holdfast verify: ${error.status ?? error.signal} ${error.stdout} ${error.stderr}`);
  }
  const report = JSON.parse(text);
  assert.deepEqual([report.ok, report.violations], [true, 0], text);
  return report;
}

// Returns { seats, holds, bookings, keys }: how much was looked at.
export function checkLedger(dir) {
  const copy = tempDir();
  for (const file of fs.readdirSync(dir)) {
    if (/^holdfast\.db(-wal)?$/.test(file)) fs.copyFileSync(path.join(dir, file), path.join(copy, file));
  }
  const database = path.join(copy, 'holdfast.db');
  const query = (text) => sqliteQuery(database, text, { readOnly: false });
  assert.deepEqual(query('PRAGMA integrity_check'), [{ integrity_check: 'ok' }]);
  query(prepare);
  for (const [rule, text] of Object.entries(rules)) {
    const found = query(`SELECT * FROM (${text}) LIMIT 5`);
    assert.deepEqual(found, [], rule);
  }
  const [counts] = query(`SELECT (SELECT count(*) FROM seats) AS seats, (SELECT count(*) FROM holds) AS holds,
    (SELECT count(*) FROM bookings) AS bookings, (SELECT count(*) FROM idempotency) AS keys`);
  removeTempDir(copy);
  return counts;
}
