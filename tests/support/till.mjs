// A shop that takes payments while everything around it fails: servers, the payment sandbox as a process of its own,
// the shop's endpoint for notifications, and buyers who try again until somebody answers.
//
//   const till = await openTill({ crashAt: ['create_answered'] });
//   const booking = await till.book(await till.hold(event, 'S-A-1'));
//   await till.pay(booking, CARDS.good);
//   await till.settled();                   // the books of the ledger and of the provider agree
//   await till.close();
//
// books.mjs has the comparison.

import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import http from 'node:http';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { differences, readLedger, summary } from './books.mjs';
import { startEndpoint } from './endpoint.mjs';
import { assertVerifiedSoon } from './ledger.mjs';
import { startSandbox } from './sandbox.mjs';
import { freePort, newKey, patiently, Server, sleep, tempDir, until } from './server.mjs';

export const CARDS = {
  good: '4242424242424242', declined: '4000000000000002', poor: '4000000000009995', action: '4000002500003155', actionAlways: '4000002760003184',
  declinedAfterAction: '4000008400001629', broken: '4000000000000119', failsOnCharge: '4000000000000341', refundFails: '4000000000005126',
  disputed: '4000000000000259',
};
export const CRASH_EXIT = 86;

const ACCOUNT = 'shop';
const ANSWER_MS = 120_000; // how long a buyer tries, who may have to wait for two leases, one after the other
const SETTLE_MS = 30_000; // after the last hold's end, or after the end of the faults, or since something was settled
const SETTLE_MAX_MS = 120_000; // of all
const LEASE_MS = 25_000; // JOB_LEASE_MS in src/model/payment.h
const seen = (status) => status !== 503 && status !== 429;

// ---- the shop ----

// Options: n servers that share `ledger` and `gate` (default: one on a SQLite file), crashAt (points of base/crash.h), program
// (default: HOLDFASTD), capture, faults (of the sandbox), durable (the sandbox keeps a file), staysDown (a server that
// crashes is not restarted), alone (only the first server is started at first), onNotice (called with each notification
// when it comes for the first time).
//
// Each server crashes at one point of `crashAt`, and `reached` has the points at which one did.  The first server has the
// first point, the second one the next, or the same if there is no other.  A server that has crashed is started again, with
// the next point that no server had.  One that stays down is replaced by a new server at its address, for as long as
// there are such points, or a server beside it is still to crash.
export async function openTill(options = {}) {
  const till = new Till(options);
  try {
    await till.open();
  } catch (error) {
    await till.close().catch(() => {});
    throw error;
  }
  return till;
}

class Till {
  #turn = 0;
  #closing = false;

  constructor({ n = 1, ledger, gate, crashAt = [], program, capture = 'automatic', faults = {}, durable = false, staysDown = false, alone = false, onNotice = () => {} }) {
    Object.assign(this, { n, ledger, gate, program, capture, faults, durable, staysDown, alone, onNotice });
    this.points = [...crashAt]; // that no server has had yet
    this.reached = new Set();
    this.lastEnd = 0; // of the holds that are left to expire
    this.down = null; // a server that is not restarted
  }

  async open() {
    const ports = await Promise.all(Array.from({ length: this.n }, freePort));
    const secret = randomBytes(32);
    this.webhookSecret = `whsec_${randomBytes(16).toString('hex')}`;
    this.endpoint = await startEndpoint(secret, this.onNotice);
    this.sandboxDir = this.durable ? tempDir() : null;
    this.sandbox = await startSandbox({ args: [
      '--listen', `127.0.0.1:${await freePort()}`, '--webhook', `http://127.0.0.1:${ports[0]}/v1/webhooks/stripe`,
      '--webhook-secret', this.webhookSecret, '--faults', JSON.stringify(this.faults),
      ...(this.durable ? ['--data', path.join(this.sandboxDir, 'sandbox.db')] : []),
    ] });
    this.notifySecret = `whsec_${secret.toString('base64')}`;
    const [first] = this.points;
    this.servers = ports.map((port) => this.#newServer(port, this.points.shift() ?? first));
    for (const server of this.alone ? this.servers.slice(0, 1) : this.servers) await this.#launch(server);
  }

  // Returns a server at this port that is not running yet.
  #newServer(port, point) {
    const server = new Server({
      ledger: this.ledger, gate: this.gate,
      wrap: this.program ? ([, ...argv]) => [this.program, ...argv] : undefined,
      args: ['--listen', `127.0.0.1:${port}`, '--payments', 'stripe', '--stripe-api', this.sandbox.url, '--payments-rate', '0',
        '--capture', this.capture, '--notify', this.endpoint.url, '--notify-events', 'all', ...(this.gate ? ['--reconcile-every', '1s'] : [])],
      env: {
        STRIPE_SECRET_KEY: `sk_test_${ACCOUNT}`, STRIPE_PUBLISHABLE_KEY: `pk_test_${ACCOUNT}`, STRIPE_WEBHOOK_SECRET: this.webhookSecret,
        HOLDFAST_NOTIFY_SECRET: this.notifySecret,
      },
    });
    return Object.assign(server, { point });
  }

  // Starts the servers that `alone` left out.
  async launchOthers() { for (const server of this.servers.slice(1)) await this.#launch(server); }

  async #launch(server) {
    server.env.HOLDFAST_CRASH_AT = server.point;
    await server.launch().catch((error) => {
      if (server.run.ended?.code !== CRASH_EXIT) throw error; // a job that was left may take it to its point before it listens
    });
    server.run.done.then((ended) => this.#ended(server, ended));
  }

  // No server may end by itself but at its crash point.
  async #ended(server, { code, signal }) {
    if (this.#closing || code === 0 || signal === 'SIGKILL') return;
    if (code !== CRASH_EXIT) {
      this.lost = `a server ended by itself with ${code ?? signal}:\n${server.run.stderr}`;
      return;
    }
    this.reached.add(server.point);
    this.crashedAt = Date.now();
    const others = this.servers.filter((other) => other !== server && other !== this.down);
    const isLast = this.points.length === 0 && others.every(({ point }) => !point || this.reached.has(point));
    server.point = this.points.shift();
    if (this.staysDown && isLast && others.length > 0) {
      this.down = server;
      return;
    }
    let next = server;
    if (this.staysDown) {
      const { host, port } = server;
      next = Object.assign(this.#newServer(port, server.point), { host, port });
      this.servers[this.servers.indexOf(server)] = next;
    }
    await this.#launch(next);
  }

  // Kills a server and starts it again.
  async kill(server) {
    await server.kill9();
    await this.#launch(server);
  }

  // Kills the provider and starts it again at the same address.
  killSandbox() { return this.sandbox.restart('SIGKILL'); }

  // ---- requests ----

  // Asks one server after another until one answers.  A request that changes something has a key, so that it takes
  // effect once.
  async ask(method, target, body, headers = {}) {
    const deadline = Date.now() + ANSWER_MS;
    const keyed = method === 'POST' ? { 'Idempotency-Key': newKey(), ...headers } : headers;
    let said; // last, instead of an answer
    for (;;) {
      const up = this.servers.filter((server) => server !== this.down && server.port);
      const server = up[this.#turn++ % up.length];
      assert.ok(!this.lost, this.lost);
      try {
        const answer = await server.request(method, target, body, keyed);
        if (seen(answer.status) && answer.json?.code !== 'idempotency_in_flight') return answer;
        said = `${answer.status} ${answer.text}`;
      } catch (error) {
        if (error.code === 'ERR_ASSERTION') throw error;
        said = error.message;
      }
      assert.ok(Date.now() < deadline, `no server answered ${method} ${target} within ${ANSWER_MS} ms; the last said: ${said}`);
      await sleep(25);
    }
  }

  get(target) { return this.ask('GET', target); }
  post(target, body = {}, headers = {}) { return this.ask('POST', target, body, headers); }

  async event(fields = {}) {
    const answer = await this.post('/v1/events', {
      name: 'Gala', currency: 'usd', sections: [{ name: 'S', tier: 'A', price: 6500, rows: 4, seats_per_row: 10 }], ...fields,
    });
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  }

  async hold(event, ...seats) {
    const answer = await this.post('/v1/holds', { event: event.id, seats });
    assert.equal(answer.status, 201, answer.text);
    return answer.json;
  }

  // Books a hold and waits until the buyer can pay, or never will.
  async book(hold, fields = {}) {
    const answer = await this.post('/v1/bookings', { hold: hold.id, ...fields });
    assert.equal(answer.status, 201, answer.text);
    return this.when(answer.json, 'it can be paid', ({ status, payment }) => status !== 'pending' || payment.status !== 'creating');
  }

  // Remembers when the hold of a booking ends that may be left to expire.
  noteEnd({ expires_at: end }) { this.lastEnd = Math.max(this.lastEnd, end ? Date.parse(end) : 0); }

  async booking({ id }) {
    const answer = await this.get(`/v1/bookings/${id}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  // Resolves to the booking as soon as it is as `is` wants it.
  when(booking, what, is, timeoutMs = ANSWER_MS) {
    return until(what, async () => {
      const now = await this.booking(booking);
      return is(now) && now;
    }, timeoutMs);
  }

  decided(booking) { return this.when(booking, 'it is decided', ({ status }) => status !== 'pending'); }

  // ---- buyers ----

  // Asks the sandbox until it answers, on a connection of its own; resolves to { status, text, json }.
  async #sandboxRequest(method, target, form) {
    for (const deadline = Date.now() + ANSWER_MS; ;) {
      try {
        return await this.#sendToSandbox(method, target, form);
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await sleep(50);
      }
    }
  }

  #sendToSandbox(method, target, form) {
    const body = form && new URLSearchParams(form).toString();
    return new Promise((resolve, reject) => {
      const request = http.request(new URL(target, this.sandbox.url), { method, agent: false,
        headers: body ? { 'Content-Type': 'application/x-www-form-urlencoded' } : {} }, (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = response.headers['content-type']?.startsWith('application/json');
          resolve({ status: response.statusCode, text, json: isJson ? JSON.parse(text) : null });
        });
      });
      request.on('error', reject);
      request.end(body);
    });
  }

  // Pays as a card form in a browser does; resolves to the sandbox's answer.
  pay({ payment }, card) {
    return this.#sandboxRequest('POST', `/v1/payment_intents/${payment.intent}/confirm`, {
      key: `pk_test_${ACCOUNT}`, client_secret: payment.client_secret, 'payment_method_data[type]': 'card',
      'payment_method_data[card][number]': card, 'payment_method_data[card][exp_month]': '12',
      'payment_method_data[card][exp_year]': String(new Date().getFullYear() + 1), 'payment_method_data[card][cvc]': '123',
    });
  }

  // Presses a button of the page that an answer of `pay` leads to: 'complete' or 'fail'.
  press({ json }, result) {
    return this.#sandboxRequest('POST', new URL(json.next_action.redirect_to_url.url).pathname, { result });
  }

  // ---- the end ----

  // Everything that the ledger and the provider have in their books.
  async books() {
    const server = this.servers.find((each) => each !== this.down);
    const client = this.sandbox.client({ account: ACCOUNT });
    const ledger = await readLedger(server);
    const books = (await this.#sandboxRequest('GET', '/sandbox/books')).json;
    const intents = await client.paymentIntents.list({ limit: 100 }).autoPagingToArray({ limit: 10_000 });
    return { ledger, books, created: new Map(intents.map(({ id, created }) => [id, created])) };
  }

  // Waits until nothing is pending, which must be the case soon after the last hold's end, and the books agree.  A busy machine
  // settles one thing after the other; one that settles nothing for 30 s has stopped.
  // Where a server stays down, its leases have to run out first.
  async settled() {
    const began = Date.now();
    const ends = Math.max(began, this.lastEnd, this.down && this.crashedAt ? this.crashedAt + LEASE_MS : 0);
    let deadline = ends + SETTLE_MS;
    let left;
    do {
      await sleep(Math.min(4000, Math.max(250, (Date.now() - began) / 3))); // the comparison takes several processes
      const before = left;
      const read = await this.books();
      left = differences(read);
      if (!isDeepStrictEqual(left, before)) deadline = Math.min(ends + SETTLE_MAX_MS, Math.max(deadline, Date.now() + SETTLE_MS));
      this.summary = summary(read);
    } while (left.length > 0 && Date.now() < deadline);
    await this.endpoint.caughtUp();
    assert.deepEqual(left, [], `the books do not agree ${Date.now() - ends} ms after the end, at ${Date.now()}`);
    assert.deepEqual(this.endpoint.wrong, [], 'notifications with wrong signatures');
  }

  // Sends all events of a type to the first server again, as an operator can with Stripe's dashboard.
  async resend(type) {
    const events = await this.sandbox.client({ account: ACCOUNT }).events.list({ type, limit: 100 }).autoPagingToArray({ limit: 10_000 });
    for (const event of events) {
      const body = JSON.stringify(event);
      const at = Math.floor(Date.now() / 1000);
      const code = createHmac('sha256', this.webhookSecret).update(`${at}.${body}`).digest('hex');
      const answer = await patiently(() => this.servers[0].post('/v1/webhooks/stripe', body, { 'Stripe-Signature': `t=${at},v1=${code}` }));
      assert.equal(answer.status, 200, answer.text);
    }
  }

  verify() { return assertVerifiedSoon(this.servers[0].ledger, this.gate); }

  async close() {
    this.#closing = true;
    try {
      for (const server of this.servers ?? []) if (server.run && !server.run.ended) await server.stop();
      await this.sandbox?.stop();
    } finally {
      await this.endpoint?.stop(); // its thread would keep the process alive
    }
  }
}
