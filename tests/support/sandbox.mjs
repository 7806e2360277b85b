// The harness of the suites about the payment sandbox: starts `holdfast sandbox`, and a web server that receives its
// webhooks.
//
//   const sandbox = await startSandbox();
//   const stripe = sandbox.client();        // the official package, with an account of its own
//   await sandbox.stop();                   // SIGTERM; exit 0 and a quiet sanitizer, or it throws

import assert from 'node:assert/strict';
import http from 'node:http';
import Stripe from 'stripe';
import { assertCleanStderr, environment, HOLDFAST, launch, until } from './server.mjs';

const STOP_TIMEOUT_MS = 120_000; // with a search for leaks on a busy machine

let accounts = 0;

export async function startSandbox({ args = [] } = {}) {
  const sandbox = new Sandbox(args);
  await sandbox.launch();
  return sandbox;
}

class Sandbox {
  constructor(args) {
    this.args = args;
  }

  async launch() {
    this.run = launch(HOLDFAST, ['sandbox', '--listen', '127.0.0.1:0', ...this.args], { env: environment({}, true) });
    const line = await until('the sandbox listens', () => {
      assert.equal(this.run.ended, null, this.run.stderr);
      return /^sandbox listening on (http:\S+)\n/.exec(this.run.stdout);
    });
    this.url = line[1];
    this.stderr = () => this.run.stderr;
  }

  // A client of the official package.  Each has an account of its own unless it is given one.
  client({ account = `suite${++accounts}`, ...options } = {}) {
    const { hostname, port } = new URL(this.url);
    const stripe = new Stripe(`sk_test_${account}`, {
      host: hostname, port, protocol: 'http', maxNetworkRetries: 0, telemetry: false, timeout: 20_000, ...options,
    });
    stripe.account = account;
    return stripe;
  }

  // Sends a form as curl or a browser would; resolves to { status, headers, json, text }.
  async post(target, form, headers = {}) {
    return this.request(target, { method: 'POST', body: new URLSearchParams(form).toString(), headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers } });
  }

  async request(target, options = {}) {
    const response = await fetch(new URL(target, this.url), { redirect: 'manual', ...options });
    const text = await response.text();
    let json = null;
    try { json = JSON.parse(text); } catch { /* a page */ }
    return { status: response.status, headers: response.headers, text, json };
  }

  // Pays as a card form in a browser does, with the publishable key.
  confirm(stripe, intent, number, fields = {}) {
    return this.post(`/v1/payment_intents/${intent.id}/confirm`, {
      key: `pk_test_${stripe.account}`, client_secret: intent.client_secret,
      'payment_method_data[type]': 'card', 'payment_method_data[card][number]': number,
      'payment_method_data[card][exp_month]': '12', 'payment_method_data[card][exp_year]': String(new Date().getFullYear() + 1),
      'payment_method_data[card][cvc]': '123', ...fields,
    });
  }

  async faults(faults) {
    const answer = await this.request('/sandbox/faults', { method: 'POST', body: JSON.stringify(faults) });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  async books() {
    const answer = await this.request('/sandbox/books');
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  async stop(signal = 'SIGTERM') {
    process.kill(this.run.pid, signal);
    const timer = setTimeout(() => this.run.child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    const { code, signal: by } = await this.run.done;
    clearTimeout(timer);
    if (signal === 'SIGTERM') assert.equal(code, 0, `ended by ${by}: ${this.run.stderr}`);
    assertCleanStderr(this.run.stderr);
  }

  // Ends it, by a kill if that is the signal, and starts it again with the same arguments on another port.
  async restart(signal) {
    await this.stop(signal);
    await this.launch();
  }
}

// A web server that keeps what is posted to it.  `answer(event)` may return a status other than 200.
export async function startReceiver(answer = () => 200) {
  const received = [];
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const event = { body, signature: request.headers['stripe-signature'], json: JSON.parse(body) };
      received.push(event);
      response.writeHead(answer(event)).end();
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    received,
    url: `http://127.0.0.1:${server.address().port}/hook`,
    types: () => received.map(({ json }) => json.type),
    stop: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }),
  };
}
