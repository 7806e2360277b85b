// What the suites of tests/attack share: connections that send any bytes from any loopback address, and what every
// refusal must have.

import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { Wire } from './wire.mjs';

// Keys of a server, as { env, admin, seller }: the environment it is started with and the headers of requests.
export function attackKeys() {
  const [admin, seller] = [crypto.randomBytes(24).toString('hex'), crypto.randomBytes(24).toString('hex')];
  const bearer = (key) => ({ Authorization: `Bearer ${key}` });
  return { env: { HOLDFAST_ADMIN_KEY: admin, HOLDFAST_SELLER_KEY: seller }, admin: bearer(admin), seller: bearer(seller) };
}

const CONVERSATION_MS = 20_000; // far beyond what a busy machine needs, and within the server's own deadlines

const PROXY_MS = 3000;

// Sends bytes (text is latin1) and receives until the server closes.  With `finish` the client says that it sends no more.
// A server must close; a proxy need not (`toProxy`), and is left after a while: HAProxy waits for its own deadline if a
// line does not fit its buffer, which depends on how the bytes arrive.  Resolves to { answers }.
export async function conversation(address, bytes, { finish = false, toProxy = false } = {}) {
  const wire = await Wire.connect(address);
  await wire.write(Buffer.from(bytes, 'latin1'));
  if (finish) wire.socket.end();
  let late = false;
  const timer = setTimeout(() => { late = !toProxy; wire.close(); }, toProxy ? PROXY_MS : CONVERSATION_MS);
  await wire.closed;
  clearTimeout(timer);
  assert.ok(!late, `the connection stays open after ${JSON.stringify(String(bytes).slice(0, 200))}`);
  return { answers: wire.answers };
}

// A refusal of the transport or of a handler: a problem document that has the id of its request.
export function assertRefusal(answer, status, code, message) {
  const text = `${message}: ${answer.status} ${answer.text}`;
  assert.equal(answer.status, status, text);
  assert.match(answer.headers['content-type'] ?? '', /^application\/problem\+json/, text);
  assert.equal(answer.json.status, status, text);
  assert.ok(answer.json.title && answer.json.detail, text);
  assert.match(answer.json.request_id, /^req_\w{18}$/, text);
  assert.equal(answer.json.request_id, answer.headers['x-request-id'], text);
  if (code) assert.equal(answer.json.code, code, text);
}
