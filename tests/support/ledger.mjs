// Audits a ledger: asserts what must be true of its rows after any history.  A ledger is named by a
// server's directory (SQLite: the audit works on a copy and changes nothing, and the server may have been
// killed) or by the URL of a PostgreSQL (the audit reads one snapshot, and servers may be running).

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { environment, HOLDFAST, removeTempDir, sleep, sqliteQuery, tempDir } from './server.mjs';

// Statuses are the integers of src/model/rows.h.  Each query lists violations; none are expected.
const HELD = 1, BOOKED = 2, BLOCKED = 3; // seats
const ACTIVE = 1, CONFIRMED = 4; // holds
const PENDING = 1, SOLD = 2, FAILED = 3, CANCELLED = 4; // bookings
const CAPTURING = 6, CANCELED = 8, REFUNDING = 9; // payments
const OWED = 1, UNDER_WAY = 2, DONE = 3; // refunds
const ARCHIVED = 3; // events
const WAITING = 1, OFFERED = 2; // entries of waiting lists
const EVENT = 1, SEAT = 2, AREA = 3, HOLD = 4, BOOKING = 5, WAIT = 7; // of the log

// The queries have one text for both databases, so comparisons with NULL are spelled out.
const differ = (a, b) => `coalesce(${a}, -1) <> coalesce(${b}, -1)`;
const is = (column, status) => `CASE ${column} WHEN ${status} THEN 1 ELSE 0 END`;

// The claims on each seat, the lists of numbers that rows have, and the last row of the log for each event, seat and hold.
// The second number of a pair may stand in a list, before a ticket type.
const places = {
  sqlite: {
    seats: 'SELECT h.hold, j.value AS seat FROM holds h, json_each(h.seats) j',
    pairs: (table, list, a, b) => `SELECT t.*, x.value AS ${a}, CASE y.type WHEN 'array' THEN json_extract(y.value, '$[0]') ELSE y.value END AS ${b} FROM ${table} t, json_each(t.${list}) x, json_each(t.${list}) y
      WHERE x.key % 2 = 0 AND y.key = x.key + 1`,
  },
  postgres: {
    seats: 'SELECT h.hold, j.value::bigint AS seat FROM holds h, jsonb_array_elements_text(h.seats::jsonb) j(value)',
    pairs: (table, list, a, b) => `SELECT t.*, (l.list ->> (n * 2))::bigint AS ${a}, coalesce(l.list -> (n * 2 + 1) ->> 0, l.list ->> (n * 2 + 1))::bigint AS ${b}
      FROM ${table} t, LATERAL (SELECT t.${list}::jsonb AS list) l, generate_series(0, jsonb_array_length(l.list) / 2 - 1) n`,
  },
};
// The log, a row for each change: an entry has those of a hold, its booking, its seats and its areas (src/ledger/log.h).
const lists = { // the n-th number of a list, how many numbers it has, and the places of a list, counted by i
  sqlite: {
    at: (list, n) => `json_extract(${list}, '$[' || (${n}) || ']')`,
    length: (list) => `json_array_length(${list})`,
    places: (list) => `(SELECT l.*, (j.key - 2) / 2 AS i FROM log l, json_each(l.${list}) j WHERE j.key >= 2 AND j.key % 2 = 0) places`,
  },
  postgres: {
    at: (list, n) => `(${list}::jsonb ->> (${n})::int)::bigint`,
    length: (list) => `jsonb_array_length(${list}::jsonb)`,
    places: (list) => `(SELECT l.*, i FROM log l, LATERAL generate_series(0, (jsonb_array_length(l.${list}::jsonb) - 2) / 2 - 1) i) places`,
  },
};
export const logRows = (database) => {
  const { at, length, places } = lists[database];
  const event = 'entry >> 40', seq = '(entry & 1099511627775)';
  const leading = `(CASE WHEN object = 0 THEN 0 WHEN object = ${HOLD} AND booking <> 0 THEN 2 ELSE 1 END)`;
  const each = (object, list, skipped) => `SELECT ${event}, ${seq} + ${leading} + ${skipped} + i, at, ${object}, ${at(list, '2 + 2 * i')},
    ${object === SEAT ? 1 : at(list, '3 + 2 * i')}, ${at(list, 0)}, ${at(list, 1)}, hold, fence, cause, channel FROM ${places(list)}`;
  return `SELECT ${event} AS event, ${seq} AS seq, at, object, CAST(NULL AS bigint) AS item, quantity, before, after, hold, fence, cause, channel
      FROM log WHERE object <> 0
    UNION ALL SELECT ${event}, ${seq} + 1, at, ${BOOKING}, NULL, quantity, 0, 2, hold, fence, cause, 0 FROM log WHERE object = ${HOLD} AND booking <> 0
    UNION ALL ${each(SEAT, 'seats', 0)}
    UNION ALL ${each(AREA, 'areas', `coalesce((${length('seats')} - 2) / 2, 0)`)}`;
};
const ends = (object, key) => `SELECT ${key} AS item, after, hold FROM (
    SELECT *, row_number() OVER (PARTITION BY ${key} ORDER BY seq DESC) AS newest FROM audit WHERE object = ${object}) x WHERE newest = 1`;
const prepare = (database) => [
  `CREATE TEMP TABLE audit AS ${logRows(database)}`,
  `CREATE TEMP TABLE live AS SELECT h.* FROM holds h LEFT JOIN bookings b ON b.booking = h.hold
    LEFT JOIN payments p ON p.booking = b.booking AND p.payment = b.payment
    WHERE h.status = ${ACTIVE} OR (h.status = ${CONFIRMED} AND coalesce(b.status, 0) NOT IN (${FAILED}, ${CANCELLED})
      AND (coalesce(b.status, 0) <> ${PENDING} OR p.status = ${CAPTURING}))`,
  `CREATE TEMP TABLE money AS SELECT p.booking, p.payment, p.status, p.amount, p.received, coalesce(c.status, x.status) AS outcome,
      coalesce(sum(f.amount) FILTER (WHERE f.status IN (${OWED}, ${UNDER_WAY}, ${DONE})), 0) AS back,
      coalesce(sum(f.amount) FILTER (WHERE f.status = ${OWED}), 0) AS owed, count(f.refund) FILTER (WHERE f.status > ${DONE}) AS failures
    FROM payments p LEFT JOIN bookings c ON c.booking = p.booking AND c.payment = p.payment
    LEFT JOIN bookings_past x ON x.booking = p.booking AND x.payment = p.payment
    LEFT JOIN refunds f ON f.booking = p.booking AND f.payment = p.payment
    GROUP BY p.booking, p.payment, p.status, p.amount, p.received, c.status, x.status`,
  `CREATE TEMP TABLE claims AS SELECT h.event << 32 | p.seat AS seat, h.hold, h.fence, h.status, h.channel
    FROM live h JOIN (${places[database].seats}) p ON p.hold = h.hold`,
  'CREATE INDEX claims_seat ON claims (seat)',
  `CREATE TEMP TABLE area_claims AS ${places[database].pairs('live', 'areas', 'area', 'quantity')}`,
  `CREATE TEMP TABLE blocks AS ${places[database].pairs('areas', 'blocks', 'channel', 'places')}`,
  `CREATE TEMP TABLE prices AS ${places[database].pairs('holds', 'prices', 'one', 'n')}`,
  'CREATE TEMP TABLE pruned AS SELECT event, pruned_seq AS seq FROM events WHERE pruned_seq > 0',
  `CREATE TEMP TABLE gaps AS SELECT event, CASE WHEN pruned_seq > holds_pruned_seq THEN pruned_seq ELSE holds_pruned_seq END AS seq FROM events
    WHERE pruned_seq > 0 OR holds_pruned_seq > 0`,
  `CREATE TEMP TABLE event_ends AS ${ends(EVENT, 'event')}`,
  `CREATE TEMP TABLE seat_ends AS ${ends(SEAT, '(event << 32 | item)')}`,
  'CREATE INDEX seat_ends_item ON seat_ends (item)',
  `CREATE TEMP TABLE hold_ends AS ${ends(HOLD, 'hold')}`,
  'CREATE INDEX hold_ends_item ON hold_ends (item)',
  `CREATE TEMP TABLE wait_ends AS ${ends(WAIT, '(event << 40 | fence)')}`,
];

const rules = {
  'I1: no seat has two live owners': `
    SELECT seat, count(*) AS owners FROM claims GROUP BY seat HAVING count(*) > 1`,
  'I2: an area holds and has sold what its holds say, and no more than there is': `
    SELECT * FROM (SELECT a.event, a.area, a.held, a.booked, a.capacity,
        coalesce(sum(c.quantity) FILTER (WHERE c.status = ${ACTIVE}), 0) AS claimed, coalesce(sum(c.quantity) FILTER (WHERE c.status = ${CONFIRMED}), 0) AS sold
      FROM areas a LEFT JOIN area_claims c ON c.event = a.event AND c.area = a.area GROUP BY a.event, a.area, a.held, a.booked, a.capacity) x
    WHERE held <> claimed OR booked <> sold OR held < 0 OR booked < 0 OR held + booked
      + (SELECT coalesce(sum(b.places), 0) FROM blocks b WHERE b.event = x.event AND b.area = x.area) > capacity`,
  'I2, I11: folding the log gives every area': `
    SELECT a.event, a.area, a.held, a.booked, f.held AS folded, f.booked AS sold FROM areas a LEFT JOIN (
      SELECT event, item, sum(quantity * (${is('after', HELD)} - ${is('before', HELD)})) AS held, sum(quantity * (${is('after', BOOKED)} - ${is('before', BOOKED)})) AS booked
      FROM audit WHERE object = ${AREA} GROUP BY event, item) f ON f.event = a.event AND f.item = a.area
    WHERE (a.held <> coalesce(f.held, 0) OR a.booked <> coalesce(f.booked, 0)) AND a.event NOT IN (SELECT event FROM pruned)`,
  'I2, I11: folding the log gives the blocked places of every area and channel': `
    SELECT event, area, channel, sum(places) AS difference FROM (
      SELECT event, area, channel, places FROM blocks UNION ALL
      SELECT event, item, channel, -quantity * (${is('after', BLOCKED)} - ${is('before', BLOCKED)}) FROM audit WHERE object = ${AREA}) x
    WHERE event NOT IN (SELECT event FROM pruned) GROUP BY event, area, channel HAVING sum(places) <> 0`,
  'I6: the amount of a hold is the sum of its prices, and that of its booking': `
    SELECT h.hold, h.amount, p.amount AS priced, b.amount AS booked FROM holds h LEFT JOIN bookings b ON b.booking = h.hold
    LEFT JOIN (SELECT hold, sum(one * n) AS amount FROM prices GROUP BY hold) p ON p.hold = h.hold
    WHERE h.amount <> coalesce(p.amount, h.amount) OR h.amount <> coalesce(b.amount, h.amount)`,
  'I11: folding the log gives every event\'s status': `
    SELECT e.event, e.status, a.after FROM events e LEFT JOIN event_ends a ON a.item = e.event WHERE ${differ(`coalesce(a.after, CASE WHEN e.pruned_seq > 0 THEN ${ARCHIVED} END)`, 'e.status')}`,
  'I3, I6: every seat of an active hold is held by it, and has no row but that of its channel': `
    SELECT c.hold, c.seat, s.status, a.after, a.hold AS holder FROM claims c LEFT JOIN seats s ON s.seat = c.seat LEFT JOIN seat_ends a ON a.item = c.seat
    WHERE c.status = ${ACTIVE} AND (s.status <> ${BLOCKED} OR s.channel = 0 OR s.channel <> c.channel OR ${differ('a.after', HELD)} OR ${differ('a.hold', 'c.hold')})`,
  'I3: every seat that is held has an active hold': `
    SELECT a.item, a.hold FROM seat_ends a LEFT JOIN claims c ON c.seat = a.item AND c.hold = a.hold AND c.status = ${ACTIVE}
    WHERE a.after = ${HELD} AND c.hold IS NULL`,
  'I1: every seat of a confirmed hold is booked and sold once': `
    SELECT c.hold, c.seat, s.status, x.booking FROM claims c LEFT JOIN seats s ON s.seat = c.seat
    LEFT JOIN sold_seats x ON x.seat = c.seat
    WHERE c.status = ${CONFIRMED} AND (${differ('s.status', BOOKED)} OR ${differ('x.booking', 'c.hold')})`,
  'I1: every sale and every booked seat belong to a confirmed hold': `
    SELECT s.seat FROM seats s LEFT JOIN claims c ON c.seat = s.seat AND c.status = ${CONFIRMED}
    WHERE s.status = ${BOOKED} AND c.hold IS NULL
    UNION SELECT x.seat FROM sold_seats x LEFT JOIN claims c ON c.seat = x.seat AND c.status = ${CONFIRMED}
    WHERE c.hold IS NULL`,
  'every confirmed hold has a booking and every sale a confirmed hold': `
    SELECT hold FROM holds WHERE status = ${CONFIRMED} AND hold NOT IN (SELECT booking FROM bookings)
    UNION SELECT booking FROM bookings WHERE (status = ${SOLD} OR (status = ${CANCELLED} AND payment = 0))
      AND booking NOT IN (SELECT hold FROM holds WHERE status = ${CONFIRMED})
    UNION SELECT booking FROM bookings WHERE booking NOT IN (SELECT hold FROM holds)`,
  'every booking that is to be paid has its payment, and every payment its booking': `
    SELECT b.booking FROM bookings b LEFT JOIN payments p ON p.booking = b.booking AND p.payment = b.payment
    WHERE CASE WHEN p.payment IS NULL THEN b.payment <> 0 OR b.status IN (${PENDING}, ${FAILED}) ELSE p.amount <> b.amount END
    UNION SELECT booking FROM money WHERE outcome IS NULL`,
  'I9: captured money has a confirmed booking, or goes back': `
    SELECT * FROM money WHERE (outcome = ${SOLD} AND received <> amount) OR back > received AND received > 0
      OR (outcome <> ${SOLD} AND back < received AND failures < 3)`,
  'I9: money that was not received is not given back, and open payments have none': `
    SELECT * FROM money WHERE (received = 0 AND owed > 0) OR (received = 0) <> (status <= ${CAPTURING} OR status = ${CANCELED})
      OR (status < ${REFUNDING} AND owed > 0)`,
  'I9: each refund that is owed has its job, and each job something that is owed': `
    SELECT f.refund FROM refunds f LEFT JOIN jobs j ON j.booking = f.booking AND j.job = f.refund AND j.kind = 1 AND j.amount = f.amount
    WHERE f.status = ${OWED} AND j.job IS NULL
    UNION SELECT j.job FROM jobs j LEFT JOIN refunds f ON f.booking = j.booking AND f.refund = j.job AND f.status = ${OWED} WHERE j.kind = 1 AND f.refund IS NULL
    UNION SELECT j.job FROM jobs j LEFT JOIN payments p ON p.booking = j.booking AND p.payment = j.job AND p.status <= ${CAPTURING}
      WHERE j.kind BETWEEN 2 AND 5 AND p.payment IS NULL`,
  'I5: no fence is above its event\'s clock': `
    SELECT h.hold, h.fence, c.fence AS clock FROM holds h LEFT JOIN event_clock c ON c.event = h.event
    WHERE c.fence IS NULL OR h.fence > c.fence`,
  'I5: no two holds share a fence': `
    SELECT event, fence, count(*) AS n FROM holds GROUP BY event, fence HAVING count(*) > 1`,
  'I5: each seat\'s grants have growing fences': `
    SELECT * FROM (SELECT event, item, seq, fence, lag(fence) OVER (PARTITION BY event, item ORDER BY seq) AS previous
      FROM audit WHERE object = ${SEAT} AND after = ${HELD} AND before <> ${HELD}) x WHERE previous >= fence`,
  'I11: the log of each event has no gaps and ends at its clock': `
    SELECT a.event, count(*) AS n, min(a.seq) AS first, max(a.seq) AS last, c.seq FROM audit a JOIN event_clock c ON c.event = a.event
    LEFT JOIN gaps p ON p.event = a.event WHERE a.seq > coalesce(p.seq, 0) GROUP BY a.event, c.seq, p.seq
    HAVING count(*) <> max(a.seq) - min(a.seq) + 1 OR min(a.seq) <> coalesce(p.seq, 0) + 1 OR max(a.seq) <> c.seq`,
  // An entry of a waiting list may stay when the hold that it was offered has gone.
  'I11: the log says nothing of holds that are gone': `
    SELECT entry, hold FROM log WHERE hold <> 0 AND object <> ${WAIT} AND hold NOT IN (SELECT hold FROM holds)`,
  'I11: folding the log gives every entry of the waiting lists, and no others': `
    SELECT w.entry, w.status, a.after FROM waitlist w LEFT JOIN wait_ends a ON a.item = w.entry LEFT JOIN pruned p ON p.event = w.event
    WHERE ${differ('a.after', 'w.status')} AND (p.seq IS NULL OR w.last_seq > p.seq)
    UNION SELECT a.item, NULL, a.after FROM wait_ends a WHERE a.item NOT IN (SELECT entry FROM waitlist)`,
  'I17: entries are live or ended, have numbers of their own, and each that is offered one has its own active hold': `
    SELECT w.entry, w.status, w.ended_at, h.status FROM waitlist w LEFT JOIN holds h ON h.hold = w.hold
    WHERE (w.ended_at = 0) <> (w.status IN (${WAITING}, ${OFFERED})) OR (w.status = ${WAITING} AND w.hold <> 0) OR (w.status = ${OFFERED} AND coalesce(h.status, 0) <> ${ACTIVE})
    UNION SELECT max(entry), NULL, count(*), NULL FROM waitlist GROUP BY event, number HAVING count(*) > 1
    UNION SELECT max(entry), NULL, count(*), NULL FROM waitlist WHERE status = ${OFFERED} GROUP BY hold HAVING count(*) > 1`,
  'I11: each change begins where the one before ended': `
    SELECT * FROM (SELECT event, object, item, hold, seq, before, after, lag(after) OVER (
        PARTITION BY event, object, CASE object WHEN ${SEAT} THEN item ELSE hold END ORDER BY seq) AS previous
      FROM audit WHERE object IN (${SEAT}, ${HOLD})) x WHERE previous IS NOT NULL AND previous <> before`,
  'I11: folding the log gives every seat': `
    SELECT s.seat, s.status, a.after FROM seats s LEFT JOIN seat_ends a ON a.item = s.seat
    WHERE s.status <> coalesce(a.after, 0) AND (a.item IS NOT NULL OR s.seat >> 32 NOT IN (SELECT event FROM pruned))
      AND NOT (s.status = ${BLOCKED} AND s.channel > 0 AND a.after = ${HELD})
    UNION SELECT a.item, NULL, a.after FROM seat_ends a LEFT JOIN seats s ON s.seat = a.item WHERE a.after IN (${BOOKED}, ${BLOCKED}) AND s.seat IS NULL`,
  'I11: folding the log gives every hold': `
    SELECT h.hold, h.status, a.after FROM holds h LEFT JOIN hold_ends a ON a.item = h.hold LEFT JOIN pruned p ON p.event = h.event
    WHERE ${differ('a.after', 'h.status')} AND (p.seq IS NULL OR h.last_seq > p.seq)`,
};

const RECONCILED_MS = 60_000; // the reconciler looks every 30 s, or more often
const isUrl = (where) => /^(postgres(ql)?|sqlite):/.test(where);

// Asserts that `holdfast verify` finds no violated invariant.  The server may be running, or have been killed.
export function assertVerified(where, gate) {
  const url = isUrl(where) ? where : `sqlite:${path.join(where, 'holdfast.db')}`;
  let text;
  try {
    text = execFileSync(HOLDFAST, ['verify', '--ledger', url, ...(gate ? ['--gate', gate] : []), '--json'],
      { encoding: 'utf8', stdio: 'pipe', env: environment({}, false) });
  } catch (error) {
    let wrong = error.stdout;
    try { wrong = JSON.stringify(JSON.parse(wrong).checks.filter(({ ok }) => !ok)); } catch { /* not a report */ }
    assert.fail(`holdfast verify: ${error.status ?? error.signal} ${wrong} ${error.stderr}`);
  }
  const report = JSON.parse(text);
  assert.deepEqual([report.ok, report.violations], [true, 0], text);
  return report;
}

// The same while servers run.  What their gate misses, since it was too slow to answer, their reconciler repairs.
export async function assertVerifiedSoon(where, gate) {
  for (const deadline = Date.now() + RECONCILED_MS; ; await sleep(1000)) {
    try {
      return assertVerified(where, gate);
    } catch (error) {
      if (!gate || Date.now() > deadline) throw error;
      assertVerified(where); // what the ledger alone has wrong, nobody repairs
    }
  }
}

const counts = `SELECT (SELECT count(*) FROM seat_ends) AS seats, (SELECT count(*) FROM holds) AS holds,
  (SELECT count(*) FROM bookings) AS bookings, (SELECT count(*) FROM idempotency) AS keys`;
const questions = [...Object.entries(rules).map(([rule, text]) => [rule, `SELECT * FROM (${text}) violations LIMIT 5`]), ['counts', counts]];

// Returns the rows of each query, in order, from a copy of the file.
function askSqlite(dir) {
  const copy = tempDir();
  for (const file of fs.readdirSync(dir)) {
    if (/^holdfast\.db(-wal)?$/.test(file)) fs.copyFileSync(path.join(dir, file), path.join(copy, file));
  }
  const database = path.join(copy, 'holdfast.db');
  assert.deepEqual(sqliteQuery(database, 'PRAGMA integrity_check', { readOnly: false }), [{ integrity_check: 'ok' }]);
  const asked = questions.map(([, text]) => `SELECT json_array(NULL) AS next; ${text};`).join('');
  const out = execFileSync('sqlite3', ['-json', database, `${prepare('sqlite').join(';')};${asked}`], { encoding: 'utf8', maxBuffer: 256 << 20 });
  removeTempDir(copy);
  return out.split('[{"next":"[null]"}]\n').slice(1).map((rows) => JSON.parse(rows.trim() || '[]'));
}

// Returns the rows of each query, in order, from one snapshot of the database.
function askPostgres(url) {
  const statements = ['BEGIN ISOLATION LEVEL REPEATABLE READ', ...prepare('postgres'), 'ANALYZE claims', 'ANALYZE seat_ends', 'ANALYZE hold_ends',
    ...questions.map(([, text]) => `SELECT coalesce(json_agg(t), '[]')::jsonb FROM (${text}) t`), 'ROLLBACK'];
  const out = execFileSync('psql', [url, '-qAtX', '-v', 'ON_ERROR_STOP=1', ...statements.flatMap((text) => ['-c', text])],
    { encoding: 'utf8', maxBuffer: 256 << 20 });
  return out.trim().split('\n').map((line) => JSON.parse(line));
}

// Returns { seats, holds, bookings, keys }: the number of rows that were audited.
export function checkLedger(where) {
  const answers = isUrl(where) ? askPostgres(where) : askSqlite(where);
  assert.equal(answers.length, questions.length);
  questions.slice(0, -1).forEach(([rule], i) => assert.deepEqual(answers[i], [], rule));
  return answers.at(-1)[0];
}
