// Compares what the ledger says about money with what the payment provider says, to the cent.
//
// Both sides are read as plain objects, so that a test can change a copy and see that the difference is found.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { SQLITE_WAITS } from './process.mjs';

// Numbers of src/model: booking_status, payment_status, refund_status, job_kind, job_status, hold_status.
const BOOKING = { pending: 1, confirmed: 2, failed: 3, cancelled: 4 };
const PAYMENT = { succeeded: 7, canceled: 8, refunding: 9, refunded: 10, refundFailed: 11 };
const REFUND = { owed: 1, pending: 2, succeeded: 3, failed: 4 };
const JOB = { refund: 1, notify: 6 };
const OWED = 1;
const EXPIRED = 2;
const RETRY_MS = 1_800_000; // a refund that failed is tried again after an hour; half of that is no backoff of a call
// A call that begins before the end of a hold may reach the provider later if a process stands still meanwhile; only `make
// soak` claims that none does.
const BUSY_MS = process.env.HF_SOAK === '1' ? 0 : 5000;

const tables = {
  bookings: { columns: ['booking', 'payment', 'status', 'amount', 'hold', 'expires_at'],
    text: 'SELECT b.booking, b.payment, b.status, b.amount, h.status AS hold, h.expires_at FROM bookings b JOIN holds h ON h.hold = b.booking' },
  payments: { columns: ['booking', 'payment', 'status', 'amount', 'received', 'intent', 'currency'],
    text: 'SELECT booking, payment, status, amount, received, intent, currency FROM payments' },
  refunds: { columns: ['payment', 'amount', 'status', 'is_ours'], text: 'SELECT payment, amount, status, is_ours FROM refunds' },
  jobs: { columns: ['payment', 'kind', 'attempts', 'due_at', 'leased_until', 'error'],
    text: `SELECT payment, kind, attempts, due_at, leased_until, error FROM jobs WHERE status = ${OWED}` },
};
const asJson = {
  sqlite: ({ columns, text }) => `SELECT json_group_array(json_object(${columns.map((name) => `'${name}', ${name}`)})) FROM (${text})`,
  postgres: ({ text }) => `SELECT coalesce(json_agg(t), '[]')::jsonb FROM (${text}) t`,
};
const run = promisify(execFile);

// Resolves to { bookings, payments, refunds, jobs }: the rows of a server's ledger, in one snapshot.
export async function readLedger({ ledger, database }) {
  const kind = ledger.startsWith('sqlite:') ? 'sqlite' : 'postgres';
  const statements = ['BEGIN', ...Object.values(tables).map(asJson[kind]), 'COMMIT'];
  if (kind === 'postgres') statements[0] = 'BEGIN ISOLATION LEVEL REPEATABLE READ';
  const { stdout } = await (kind === 'sqlite' ? run('sqlite3', [...SQLITE_WAITS, '-readonly', database, statements.join(';')], { maxBuffer: 256 << 20 })
    : run('psql', [ledger, '-qAtX', '-v', 'ON_ERROR_STOP=1', ...statements.flatMap((text) => ['-c', text])], { maxBuffer: 256 << 20 }));
  const rows = stdout.trim().split('\n').map((line) => JSON.parse(line));
  return Object.fromEntries(Object.keys(tables).map((name, i) => [name, rows[i]]));
}

// Whether a refund of ours has failed: what it should have returned is owed, and not due for an hour.  The payment is then
// refund_failed, or still refunding if a later refund of ours succeeded.
const hasFailed = (refunds) => refunds.some(({ status, is_ours: isOurs }) => status === REFUND.failed && isOurs);

const sum = (list, amount) => list.reduce((total, item) => total + amount(item), 0);

// What is wrong about one payment; `entry` is the provider's side of it.
function paymentDifferences(p, { booking, refunds, jobs, entry, created }) {
  const wrong = [];
  const say = (text) => wrong.push(`${p.intent ?? 'a payment without an intent'}: ${text}`);
  const returned = sum(refunds.filter(({ status }) => status === REFUND.pending || status === REFUND.succeeded), ({ amount }) => amount);
  const isCurrent = booking.payment === p.payment;
  const isConfirmed = isCurrent && booking.status === BOOKING.confirmed;
  const mayOwe = hasFailed(refunds);
  const isLater = (job) => job.kind === JOB.refund && mayOwe && job.due_at > Date.now() + RETRY_MS;
  if (entry && entry.captured !== p.received) say(`captured ${entry.captured}, the ledger has received ${p.received}`);
  if (entry && entry.refunded !== returned) say(`refunded ${entry.refunded}, the ledger has returned ${returned}`);
  if (entry && !['succeeded', 'canceled'].includes(entry.status)) say(`the intent is still ${entry.status}`);
  if (!entry && p.intent) say('the provider does not know it');
  if (isConfirmed && p.received !== p.amount) say(`its booking is confirmed, but ${p.received} of ${p.amount} was received`);
  if (!isConfirmed && p.received !== returned && !mayOwe) say(`its booking is not confirmed, and ${p.received - returned} has not been returned`);
  if (refunds.some(({ status }) => status === REFUND.owed) && !mayOwe) say('a refund is owed');
  if (returned > p.received) say(`received ${p.received}, returned ${returned}`);
  for (const job of jobs) if (!isLater(job)) say(`a job of kind ${job.kind} is owed: ${JSON.stringify(job)}`);
  if (isCurrent && booking.hold === EXPIRED && created * 1000 > booking.expires_at + BUSY_MS) say('it was created after its hold\'s end');
  return wrong;
}

// Returns sentences about everything in which the two disagree, or which is not decided yet.
export function differences({ ledger, books, created }) {
  const wrong = [];
  const bookings = new Map(ledger.bookings.map((row) => [row.booking, row]));
  const entries = new Map(books.payments.map((entry) => [entry.intent, entry]));
  const group = (rows) => rows.reduce((map, row) => map.set(row.payment, [...map.get(row.payment) ?? [], row]), new Map());
  const refunds = group(ledger.refunds);
  const jobs = group(ledger.jobs.filter(({ kind }) => kind !== JOB.notify));
  for (const p of ledger.payments) {
    wrong.push(...paymentDifferences(p, { booking: bookings.get(p.booking), refunds: refunds.get(p.payment) ?? [], jobs: jobs.get(p.payment) ?? [],
      entry: entries.get(p.intent), created: created.get(p.intent) ?? 0 }));
  }
  const pending = ledger.bookings.filter(({ status }) => status === BOOKING.pending).length;
  if (pending > 0) wrong.push(`${pending} bookings are pending`);
  const notices = ledger.jobs.filter(({ kind }) => kind === JOB.notify);
  if (notices.length > 0) wrong.push(`${notices.length} notifications are owed; the first: ${JSON.stringify(notices[0])}`);
  const known = new Set(ledger.payments.map(({ intent }) => intent));
  for (const { intent } of books.payments) if (!known.has(intent)) wrong.push(`${intent}: the ledger does not know it`);
  const named = books.payments.map((entry) => entry.holdfast_payment);
  if (new Set(named).size !== named.length) wrong.push('a payment has two intents');
  return [...wrong, ...totalDifferences(ledger, books)];
}

// The sums, which the provider has added up by itself: captured - refunded is what the confirmed bookings cost, but
// for what sellers have given back, and for refunds that failed afterwards and are not due again yet.
function totalDifferences(ledger, books) {
  const wrong = [];
  const confirmed = new Map(ledger.bookings.filter(({ status }) => status === BOOKING.confirmed).map((row) => [row.payment, row.amount]));
  const isReturned = ({ status }) => status === REFUND.pending || status === REFUND.succeeded;
  for (const currency of new Set([...Object.keys(books.currencies), ...ledger.payments.map((p) => p.currency)])) {
    const { captured, refunded } = books.currencies[currency] ?? { captured: 0, refunded: 0 };
    const payments = new Map(ledger.payments.filter((p) => p.currency === currency).map((p) => [p.payment, p]));
    const kept = sum([...payments.keys()], (payment) => confirmed.get(payment) ?? 0);
    const stuck = [...payments.values()].filter((p) => !confirmed.has(p.payment) && hasFailed(ledger.refunds.filter((f) => f.payment === p.payment)));
    const counts = new Set([...confirmed.keys(), ...stuck.map((p) => p.payment)]);
    const given = sum(ledger.refunds.filter((f) => isReturned(f) && counts.has(f.payment) && payments.has(f.payment)), ({ amount }) => amount);
    const expected = kept + sum(stuck, ({ received }) => received) - given;
    if (captured - refunded !== expected) wrong.push(`${currency}: captured ${captured} - refunded ${refunded}, but the confirmed bookings cost ${expected}`);
  }
  return wrong;
}

// Returns how many bookings and payments are in which state.
export function summary({ ledger }) {
  const count = (rows, names) => Object.fromEntries(Object.entries(names).map(([name, number]) => [name, rows.filter(({ status }) => status === number).length]));
  return { ...count(ledger.bookings, BOOKING), ...count(ledger.payments, PAYMENT) };
}
