// Clients of the lock service, for tests: a party is a session and what is done in its name.
//
//   const ann = await Party.open(server, { label: 'ann' });
//   const lock = await ann.take('payments/eu');
//   const answer = await ann.ask('nightly', { wait_ms: 1000 });

import assert from 'node:assert/strict';
import http from 'node:http';
import { assertOk } from './expect.mjs';
import { until } from './server.mjs';

export const pathOf = (name) => `/v1/locks/${encodeURIComponent(name)}`;

export class Party {
  // Unless the test is about that, the session outlives it though nobody keeps it alive, as slow as the machine may be.
  static async open(server, { ttl_ms = 600_000, label, headers } = {}) {
    const answer = await server.post('/v1/sessions', { ttl_ms, ...(label === undefined ? {} : { label }) }, headers);
    const session = assertOk(answer, 201);
    assert.match(session.id, /^ses_[0-9A-Za-z]{22,32}$/);
    return new Party(server, session, headers);
  }

  constructor(server, session, headers) {
    this.server = server;
    this.session = session;
    this.headers = headers;
    this.agent = undefined; // of the requests; a crowd of waiters needs one of its own
  }

  get id() { return this.session.id; }

  #send(method, target, body) {
    return this.server.request(method, target, body, this.headers, this.agent ? { agent: this.agent } : undefined);
  }

  ask(name, fields = {}) { return this.#send('POST', pathOf(name), { session: this.id, ...fields }); }

  // Asks for a lock that must be granted; resolves to its JSON.
  async take(name, fields = {}) { return assertOk(await this.ask(name, fields)); }

  release(name, owner, fields = {}) { return this.#send('POST', `${pathOf(name)}/release`, { session: this.id, owner, ...fields }); }
  set(name, { owner, fence }, value) { return this.#send('PUT', `${pathOf(name)}/value`, { session: this.id, owner, fence, value }); }
  keepAlive() { return this.#send('POST', `/v1/sessions/${this.id}/keepalive`); }
  close() { return this.#send('DELETE', `/v1/sessions/${this.id}`); }
}

// Sends a request for a lock on a connection of its own, and resolves once it waits in the line; `cut` ends the connection.
export async function waitThenCut(party, name, fields) {
  const { server } = party;
  const before = (await look(server, name)).n_waiters;
  const request = http.request({ host: server.host, port: server.port, method: 'POST', path: pathOf(name), agent: false });
  request.on('error', () => {});
  request.end(JSON.stringify({ session: party.id, ...fields }));
  await until('the request waits', async () => (await look(server, name)).n_waiters > before);
  return { cut: () => request.destroy() };
}

export const look = async (server, name) => assertOk(await server.get(pathOf(name)));
export const labels = (people) => people.map(({ label }) => label);
// Waits until these wait for the name, in this order.
export const waiting = (server, name, expected) => until(`${expected} wait for ${name}`,
  async () => JSON.stringify(labels((await look(server, name)).waiters)) === JSON.stringify(expected));
