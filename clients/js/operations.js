// Every operation of docs/openapi.yaml by its operationId: the call, the request, and what is special about it.
//   key      takes an Idempotency-Key
//   page     its answer is a page of a list: the call can be iterated over
//   lock     belongs to the lock service
//   stream   server-sent events
//   text     its answer is a text, and not JSON
// A test compares this list with the document.

import { newKey } from './random.js';

export const OPERATIONS = {
  listEvents: ['events.list', 'GET', '/v1/events', 'page'],
  createEvent: ['events.create', 'POST', '/v1/events', 'key'],
  getEvent: ['events.get', 'GET', '/v1/events/{event}'],
  changeEvent: ['events.change', 'PATCH', '/v1/events/{event}', 'key'],
  getPlan: ['events.plan', 'GET', '/v1/events/{event}/plan'],
  getSeatMap: ['events.seats', 'GET', '/v1/events/{event}/seats'],
  getSeat: ['events.seat', 'GET', '/v1/events/{event}/seats/{seat}'],
  getHeat: ['events.heat', 'GET', '/v1/events/{event}/heat'],
  getRevenue: ['events.revenue', 'GET', '/v1/events/{event}/revenue'],
  streamChanges: ['events.stream', 'GET', '/v1/events/{event}/stream', 'stream'],
  blockSeats: ['events.block', 'POST', '/v1/events/{event}/block', 'key'],
  unblockSeats: ['events.unblock', 'POST', '/v1/events/{event}/unblock', 'key'],
  closeEvent: ['events.close', 'POST', '/v1/events/{event}/close', 'key'],
  openEvent: ['events.open', 'POST', '/v1/events/{event}/open', 'key'],
  archiveEvent: ['events.archive', 'POST', '/v1/events/{event}/archive', 'key'],
  cancelEvent: ['events.cancel', 'POST', '/v1/events/{event}/cancel', 'key'],
  listHolds: ['holds.list', 'GET', '/v1/holds', 'page'],
  createHold: ['holds.create', 'POST', '/v1/holds', 'key'],
  getHold: ['holds.get', 'GET', '/v1/holds/{hold}'],
  changeHold: ['holds.change', 'PATCH', '/v1/holds/{hold}', 'key'],
  releaseHold: ['holds.release', 'DELETE', '/v1/holds/{hold}'],
  renewHold: ['holds.renew', 'POST', '/v1/holds/{hold}/renew', 'key'],
  confirmHold: ['holds.confirm', 'POST', '/v1/holds/{hold}/confirm', 'key'],
  evictHold: ['holds.evict', 'POST', '/v1/holds/{hold}/evict', 'key'],
  pauseWaitlist: ['waitlist.pause', 'POST', '/v1/events/{event}/waitlist/pause', 'key'],
  resumeWaitlist: ['waitlist.resume', 'POST', '/v1/events/{event}/waitlist/resume', 'key'],
  listWaitlist: ['waitlist.list', 'GET', '/v1/waitlist', 'page'],
  joinWaitlist: ['waitlist.create', 'POST', '/v1/waitlist', 'key'],
  getWaitlistEntry: ['waitlist.get', 'GET', '/v1/waitlist/{entry}'],
  leaveWaitlist: ['waitlist.leave', 'DELETE', '/v1/waitlist/{entry}'],
  streamWaitlistEntry: ['waitlist.stream', 'GET', '/v1/waitlist/{entry}/stream', 'stream'],
  moveWaitlistEntryFirst: ['waitlist.first', 'POST', '/v1/waitlist/{entry}/first', 'key'],
  evictWaitlistEntry: ['waitlist.evict', 'POST', '/v1/waitlist/{entry}/evict', 'key'],
  listBookings: ['bookings.list', 'GET', '/v1/bookings', 'page'],
  createBooking: ['bookings.create', 'POST', '/v1/bookings', 'key'],
  getBooking: ['bookings.get', 'GET', '/v1/bookings/{booking}'],
  cancelBooking: ['bookings.cancel', 'POST', '/v1/bookings/{booking}/cancel', 'key'],
  refundBooking: ['bookings.refund', 'POST', '/v1/bookings/{booking}/refund', 'key'],
  checkPlan: ['events.check', 'POST', '/v1/plans/check'],
  listRefunds: ['refunds.list', 'GET', '/v1/refunds', 'page'],
  listNotifications: ['notifications.list', 'GET', '/v1/notifications', 'page'],
  readAudit: ['audit.list', 'GET', '/v1/audit', 'page'],
  getStoredAnswer: ['idempotency.get', 'GET', '/v1/idempotency/{key}'],
  eraseOwner: ['owners.erase', 'POST', '/v1/owners/erase', 'key'],
  openSession: ['sessions.open', 'POST', '/v1/sessions', 'lock'],
  closeSession: ['sessions.close', 'DELETE', '/v1/sessions/{session}', 'lock'],
  keepSessionAlive: ['sessions.keepAlive', 'POST', '/v1/sessions/{session}/keepalive', 'lock'],
  streamSession: ['sessions.stream', 'GET', '/v1/sessions/{session}/stream', 'lock stream'],
  listLocks: ['locks.list', 'GET', '/v1/locks', 'lock page'],
  getLock: ['locks.get', 'GET', '/v1/locks/{name}', 'lock'],
  acquireLock: ['locks.acquire', 'POST', '/v1/locks/{name}', 'lock'],
  releaseLock: ['locks.release', 'POST', '/v1/locks/{name}/release', 'lock'],
  setLockValue: ['locks.setValue', 'PUT', '/v1/locks/{name}/value', 'lock'],
  breakLock: ['locks.breakLock', 'POST', '/v1/locks/{name}/break', 'lock'],
  streamLock: ['locks.stream', 'GET', '/v1/locks/{name}/stream', 'lock stream'],
  getCell: ['cell.get', 'GET', '/v1/cell'],
  transferMastership: ['cell.transfer', 'POST', '/v1/cell/transfer', 'lock'],
  getHealth: ['server.health', 'GET', '/healthz'],
  getReadiness: ['server.readiness', 'GET', '/readyz'],
  getMetrics: ['server.metrics', 'GET', '/metrics', 'text'],
  getSamples: ['server.samples', 'GET', '/v1/ops/samples'],
  getDocument: ['server.document', 'GET', '/openapi.yaml', 'text'],
  receiveWebhook: ['server.receiveWebhook', 'POST', '/v1/webhooks/stripe'],
};

// Returns the request of an operation.  What the path does not take is the query of a GET, and otherwise the body.
export function requestOf(id, args, { idempotencyKey } = {}) {
  const [call, method, template, flags = ''] = OPERATIONS[id];
  const [first, params] = template.includes('{') ? args : [undefined, args[0]];
  const { ...fields } = params ?? {};
  let isFirst = true;
  const path = template.replace(/\{(\w+)\}/g, (_, name) => {
    const value = isFirst ? first : fields[name];
    if (!isFirst) delete fields[name];
    isFirst = false;
    // A URL cannot have a part that is `.` or `..`.
    if (typeof value !== 'string' || /^\.{0,2}$/.test(value)) throw new TypeError(`${call}: ${name} is a string that is not empty, "." or "..".`);
    return encodeURIComponent(value);
  });
  const request = { method, path, isLock: flags.includes('lock'), isText: flags.includes('text') };
  if (id === 'acquireLock') fields.owner ??= newKey(); // the same in every attempt: a lost answer is asked for again
  if (id === 'receiveWebhook') return { ...request, body: fields.body, headers: { 'Stripe-Signature': fields.signature } };
  if (flags.includes('key')) request.headers = { 'Idempotency-Key': idempotencyKey ?? newKey() };
  if (idempotencyKey !== undefined && !/^[\x20-\x7e]+$/.test(idempotencyKey)) throw new TypeError('An idempotency key is printable ASCII.');
  if (method === 'GET') request.query = fields;
  else if (Object.keys(fields).length > 0) request.body = fields;
  return request;
}

// Returns { events: { list, ... }, holds: ... }, whose calls are carried out by `perform(id, request, args, options)`.
export function groupsOf(perform) {
  const groups = {};
  for (const [id, [call, , template]] of Object.entries(OPERATIONS)) {
    const [group, name] = call.split('.');
    const n = template.includes('{') ? 2 : 1;
    (groups[group] ??= {})[name] = (...args) => perform(id, args.slice(0, n), args[n] ?? {});
  }
  return groups;
}
