// Assertions about answers: what the contract promises of every answer of a kind.

import assert from 'node:assert/strict';

export const EVENT_ID = /^evt_[0-9A-Za-z]{22,32}$/;
export const HOLD_ID = /^hold_[0-9A-Za-z]{22,32}$/;
export const BOOKING_ID = /^bkg_[0-9A-Za-z]{22,32}$/;
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

export const HOLD_FIELDS = ['amount', 'areas', 'booking', 'created_at', 'currency', 'event', 'expires_at',
  'expires_in_ms', 'fence', 'id', 'max_expires_at', 'object', 'owner', 'seats', 'status'];

// Asserts that the answer is an RFC 9457 problem with our additional fields.
export function assertProblem(answer, status, code) {
  assert.equal(answer.status, status, `expected ${status} ${code}, got ${answer.status}: ${answer.text}`);
  assert.match(answer.headers['content-type'] ?? '', /^application\/problem\+json(;|$)/);
  const problem = answer.json;
  assert.equal(problem.code, code, answer.text);
  assert.equal(problem.type, `/problems/${code}`);
  assert.equal(problem.status, status);
  assert.equal(typeof problem.title, 'string');
  assert.ok(problem.title.length > 0);
  assert.equal(typeof problem.detail, 'string');
  assert.ok(problem.detail.length > 0);
  assert.equal(problem.request_id, answer.headers['x-request-id']);
  return problem;
}

// Asserts that the answer is 400 invalid_request, with a detail that names the field.
export function assertInvalid(answer, field) {
  const problem = assertProblem(answer, 400, 'invalid_request');
  if (field !== undefined) {
    assert.ok(problem.detail.includes(field), `detail does not name ${field}: ${problem.detail}`);
  }
  return problem;
}

export function assertOk(answer, status = 200) {
  assert.equal(answer.status, status, `expected ${status}, got ${answer.status}: ${answer.text}`);
  assert.match(answer.headers['content-type'] ?? '', /^application\/json(;|$)/);
  return answer.json;
}

export const ms = (timestamp) => {
  assert.match(timestamp, TIMESTAMP);
  return Date.parse(timestamp);
};

// Asserts the shape of a hold in any state.
export function assertHold(hold, { event, seats, areas = {}, status = 'active' } = {}) {
  assert.equal(hold.object, 'hold');
  assert.match(hold.id, HOLD_ID);
  assert.match(hold.event, EVENT_ID);
  assert.equal(hold.status, status, JSON.stringify(hold));
  assert.ok(Number.isSafeInteger(hold.fence) && hold.fence > 0, `fence ${hold.fence}`);
  assert.ok(Number.isSafeInteger(hold.amount));
  assert.ok(Number.isSafeInteger(hold.expires_in_ms));
  assert.deepEqual(hold.areas, areas);
  for (const field of ['created_at', 'expires_at', 'max_expires_at']) assert.match(hold[field], TIMESTAMP);
  if (event) assert.equal(hold.event, event.id ?? event);
  if (seats) assert.deepEqual(hold.seats, seats);
  return hold;
}

export function assertBooking(booking, hold) {
  assert.equal(booking.object, 'booking');
  assert.match(booking.id, BOOKING_ID);
  assert.equal(booking.status, 'confirmed');
  assert.equal(booking.hold, hold.id);
  assert.equal(booking.event, hold.event);
  assert.deepEqual(booking.seats, hold.seats);
  assert.deepEqual(booking.areas, hold.areas);
  assert.equal(booking.amount, hold.amount);
  assert.equal(booking.currency, hold.currency);
  return booking;
}

// Asserts that the answer repeats another: the same status and bytes, and the header that says so.
export function assertReplay(answer, original) {
  assert.equal(answer.status, original.status, answer.text);
  assert.equal(answer.text, original.text);
  assert.equal(answer.headers['content-type'], original.headers['content-type']);
  assert.equal(answer.headers['idempotency-replayed'], 'true');
  assert.notEqual(answer.headers['x-request-id'], original.headers['x-request-id']);
}

// Sends one request three times with the same key: it takes effect, is repeated with the same bytes, and is
// refused with another body.
export async function assertIdempotent(server, path, body, otherBody, key, status = 200, method = 'POST') {
  const send = (content) => server.request(method, path, content, { 'Idempotency-Key': key });
  const first = await send(body);
  assertOk(first, status);
  assert.equal(first.headers['idempotency-replayed'], undefined);
  assertReplay(await send(body), first);
  assertProblem(await send(otherBody), 422, 'idempotency_mismatch');
  assertReplay(await send(body), first);
  return first.json;
}

// Asserts that the answer is 409 sold_out.  Without `area`, too few seats were left.
export function assertSoldOut(answer, available, area) {
  const problem = assertProblem(answer, 409, 'sold_out');
  assert.equal(problem.available, available, answer.text);
  assert.equal(problem.area, area, answer.text);
  return problem;
}
