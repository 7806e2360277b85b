// Notifications of the server, signed by the Standard Webhooks specification.

import { createHmac, timingSafeEqual } from 'node:crypto';
import { HoldfastError } from './errors.js';

const TOLERANCE_S = 300;

const refuse = (detail) => { throw new HoldfastError(detail, { code: 'invalid_signature' }); };

function headerOf(headers, name) {
  if (typeof headers?.get === 'function') return headers.get(name) ?? '';
  const found = Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
  return `${(Array.isArray(found) ? found.join(' ') : found) ?? ''}`;
}

function keyOf(secret) {
  const text = typeof secret === 'string' ? secret.replace(/^whsec_/, '') : '';
  const key = Buffer.from(text, 'base64');
  if (key.length === 0 || !/^[A-Za-z0-9+/]+=*$/.test(text)) throw new TypeError('A secret is whsec_ and base64.');
  return key;
}

// Returns the event of a message: `body` is what was received, as text or bytes, and not what a framework parsed.  Throws a
// HoldfastError with the code invalid_signature unless one of the signatures is by `secret` (or by one of several) and at
// most five minutes old.
export function verify(body, headers, secret) {
  if (typeof body !== 'string' && !ArrayBuffer.isView(body)) throw new TypeError('The body is what was received, as text or bytes, before anything parsed it.');
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature').split(' ');
  if (!id || !/^\d{1,12}$/.test(timestamp)) refuse('The message has no webhook-id, or no webhook-timestamp.');
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_S) refuse('The message is more than five minutes old, or from the future.');
  const expected = [].concat(secret).map((each) => createHmac('sha256', keyOf(each)).update(`${id}.${timestamp}.`).update(body).digest());
  const isSigned = signatures.filter((each) => each.startsWith('v1,')).some((each) => {
    const given = Buffer.from(each.slice(3), 'base64');
    return expected.some((digest) => given.length === digest.length && timingSafeEqual(given, digest));
  });
  if (!isSigned) refuse('No signature of the message is by this secret.');
  let event;
  try { event = JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString('utf8')); } catch { /* it is signed all the same */ }
  if (typeof event !== 'object' || event === null || Array.isArray(event)) {
    throw new HoldfastError('The body is signed, but it is no JSON object.', { code: 'invalid_request' });
  }
  return event;
}
