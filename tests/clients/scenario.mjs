// Runs one scenario of clients/conformance with one client.  README.md there explains the steps; `verbs` below has one
// function for each.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import path from 'node:path';
import { newKey, Server, sleep, standStill, tempDir, until } from '../support/server.mjs';
import { startDriver } from './driver.mjs';
import { startFaultProxy } from './fault_proxy.mjs';
import { differences, fill, member } from './matching.mjs';

const TIMEOUT_S = 120; // of what has no other: longer than a busy machine needs
const UNTIL_MS = 90_000;
const ATTEMPTS = 4; // of a scenario with a TTL, which has begun anew if the machine stood still for that long
const TTL_FACTOR = 2.5;
const UNTIL_TTLS = 10; // and no longer, unless it is the last attempt: what waits for a lock that was lost waits in vain
const EVENT = {
  name: 'Gala', currency: 'usd',
  sections: [{ name: 'S', tier: 'A', price: 1000, rows: 2, seats_per_row: 10 }],
  areas: [{ name: 'Floor', price: 500, capacity: 100 }],
};
const MODIFIERS = ['as', 'args', 'options', 'expect', 'error', 'save', 'begin', 'until', 'note'];
let n_scenarios = 0;

// Throws if a scenario has a step that nobody can run.
export function check({ name, steps, ...fields }) {
  assert.ok(typeof name === 'string' && Array.isArray(steps) && steps.length > 0, `no name or no steps: ${name}`);
  for (const field of Object.keys(fields)) assert.ok(['server', 'event', 'client', 'ttl', 'process'].includes(field), `${name}: what is "${field}"?`);
  for (const step of steps) {
    const [verb] = Object.keys(step);
    assert.ok(verb in verbs, `${name}: what is "${verb}"?`);
    const unknown = Object.keys(step).slice(1).filter((field) => ![...MODIFIERS, ...verbs[verb].fields ?? []].includes(field));
    assert.deepEqual(unknown, [], `${name}: a step "${verb}" has no such fields`);
  }
}

const DATABASES = ['postgres', 'sqlite'];

// What a scenario needs of a driver, by names that a driver may lack: its own name, verbs, calls and their fields...
export function needsOf({ name, server, client, steps }, subject) {
  const needs = new Set([`${subject}: ${name}`]);
  const manyUrls = [client, ...steps].some((each) => each?.urls?.length > 1);
  if (manyUrls && server !== 'cell') needs.add('several servers');
  for (const step of steps) {
    const [verb] = Object.keys(step);
    const what = verb === 'call' ? step.call : verb;
    if (verb in ofClient) needs.add(verb);
    if (verb === 'call') needs.add(what);
    if (verb === 'check_fence' && step.database) needs.add(`check_fence ${step.database}`);
    for (const field of Object.keys(verb === 'lock' ? step.options ?? {} : step.args ?? {})) needs.add(`${what} ${field}`);
    for (const member of Object.keys(step.error ?? {})) needs.add(`${verb} error.${member}`);
  }
  return needs;
}

// `servers` has those that scenarios share, by name, and the cell; `language` has the command of the driver, a driver
// that runs, and what it lacks.  A scenario with a TTL begins anew, with a longer one, if it failed: a machine that stands still for longer
// than a TTL ends locks that the scenario expects to be held.
export async function runScenario(scenario, language, servers) {
  for (let attempt = 1, ttl = scenario.ttl; ; attempt++, ttl *= TTL_FACTOR) {
    const run = new Run(scenario, language, servers, ttl);
    if (attempt < ATTEMPTS) run.untilMs = Math.min(UNTIL_MS, UNTIL_TTLS * run.saved.ttl_ms || UNTIL_MS);
    try {
      await run.begin();
      for (const [i, step] of scenario.steps.entries()) await run.step(step, i + 1);
      return;
    } catch (error) {
      if (!scenario.ttl || attempt === ATTEMPTS) throw error;
    } finally {
      await run.end();
    }
  }
}

class Run {
  constructor(scenario, language, servers, ttl) {
    Object.assign(this, { scenario, language, servers, prefix: `${++n_scenarios}.`, untilMs: UNTIL_MS });
    this.proxies = {};
    this.clients = new Set();
    this.opened = new Set(); // streams, watches and maps
    this.begun = new Map(); // name -> promise of an answer
    this.databases = { postgres: servers.postgres?.url(), sqlite: `sqlite:${path.join(tempDir(), 'guarded.db')}` };
    this.saved = { key: newKey(), lock: `lock-${newKey()}`, ttl, ttl_ms: ttl * 1000 };
  }

  async begin() {
    const { server = 'open', event = {}, client = {}, process: isOwn } = this.scenario;
    this.driver = isOwn ? startDriver(this.language.command) : this.language.driver;
    if (server === 'cell') {
      this.cell = this.servers.cell;
      this.server = await this.cell.master();
      this.saved.urls = this.cell.servers.map(({ proxy }) => `http://127.0.0.1:${proxy.port}`);
    } else {
      this.server = server === 'own' ? new Server({ args: ['--pages', 'off'] }) : this.servers[server];
      if (server === 'own') await this.server.launch();
      for (const name of ['url', 'other']) {
        this.proxies[name] = await startFaultProxy(this.server);
        this.saved[name] = this.proxies[name].url;
      }
      Object.assign(this.saved, this.server.keys, { nowhere: this.servers.nowhere });
      if (event !== null) await this.#createEvent(event);
    }
    await this.step({ client: 'a', urls: server === 'cell' ? '$urls' : ['$url'], ...client }, 0);
  }

  async #createEvent(fields) {
    const made = await this.server.request('POST', '/v1/events', { ...EVENT, ...fields }, this.server.admin);
    assert.equal(made.status, 201, made.text);
    this.saved.event = made.json.id;
  }

  async end() {
    try {
      if (this.pid) process.kill(this.pid, 'SIGCONT');
      if (this.killed?.run.ended) await this.killed.launch();
      for (const name of this.opened) await this.driver.ask({ op: 'close', name });
      for (const name of this.clients) await this.driver.ask({ op: 'close_client', name });
      if (this.scenario.process) await this.driver.stop();
      if (this.scenario.server === 'own' && !this.server.run.ended) {
        this.server.resume();
        await this.server.stop();
      }
    } finally {
      for (const proxy of Object.values(this.proxies)) proxy.close();
    }
  }

  // Asks the driver, by names that no other scenario has.
  ask(op, { name, as, ...fields }) {
    const answer = this.driver.ask({
      op, ...(name === undefined ? {} : { name: this.prefix + name }), ...(as === undefined ? {} : { client: this.prefix + as }), ...fields,
    });
    answer.catch(() => {}); // a scenario that fails before does not await it
    return answer;
  }

  open(op, fields) {
    this.opened.add(this.prefix + fields.name);
    return this.ask(op, fields);
  }

  async step(raw, number) {
    const { expect, error, save, ...rest } = raw;
    const [verb] = Object.keys(raw);
    const attempt = async () => {
      const step = fill(rest, this.saved);
      const ran = Promise.resolve(verbs[verb](this, step[verb], { as: 'a', ...step }));
      if (!raw.begin) return ran;
      ran.catch(() => {});
      this.begun.set(raw.begin, ran);
      return undefined;
    };
    const judge = (answer) => {
      if (error !== undefined) return differences(answer?.error ?? null, fill(error, this.saved), 'the error');
      if (answer?.error) return [`the answer is the error ${JSON.stringify(answer.error)}`];
      return expect === undefined ? [] : differences(answer?.value ?? null, fill(expect, this.saved));
    };
    try {
      let answer = await attempt();
      if (raw.begin) return;
      for (const began = Date.now(); raw.until && judge(answer).length > 0; answer = await attempt()) {
        const elapsedMs = Date.now() - began;
        assert.ok(elapsedMs < this.untilMs, `in vain until ${JSON.stringify(expect ?? error)}: ${judge(answer).join('; ')}`);
        await sleep(Math.min(200, Math.max(20, elapsedMs / 10)));
      }
      assert.deepEqual(judge(answer), []);
      for (const [name, path] of Object.entries(save ?? {})) this.saved[name] = member(answer.value ?? answer.error, path);
    } catch (fault) {
      fault.message = `step ${number}, ${JSON.stringify(raw)}: ${fault.message}`;
      throw fault;
    }
  }
}

const own = (fields, run) => Object.assign(run, { fields });
const value = (it) => ({ value: it });

const ofClient = {
  client: own(['urls'], async (run, name, { urls, options = {} }) => {
    run.clients.add(run.prefix + name);
    return run.ask('client', { name, urls, options: { timeout: TIMEOUT_S, ...options } });
  }),
  close_client: (run, name) => run.ask('close_client', { name }),
  call: (run, call, { as, args = {}, options = {} }) => run.ask('call', { as, call, args, options }),
  stream: own(['event', 'after'], (run, name, { as, event, after }) => run.open('stream', { name, as, event, after })),
  next: own(['timeout'], (run, name, { timeout = TIMEOUT_S }) => run.ask('next', { name, timeout })),
  close: (run, name) => {
    run.opened.delete(run.prefix + name);
    return run.ask('close', { name });
  },
  map: own(['event'], (run, name, { as, event }) => run.open('map', { name, as, event })),
  map_state: (run, name) => run.ask('map_state', { name }),
  lock: own(['locks'], (run, name, { as, locks, options = {} }) => run.ask('lock', { name, as, locks: [locks].flat(), options: { ttl: 60, ...options } })),
  lock_state: (run, name) => run.ask('lock_state', { name }),
  lock_await_lost: own(['timeout'], (run, name, { timeout = TIMEOUT_S }) => run.ask('lock_await_lost', { name, timeout })),
  unlock: (run, name) => run.ask('unlock', { name }),
  follow: own(['entry'], (run, name, { as, entry }) => run.open('follow', { name, as, entry })),
  watch: own(['lock'], (run, name, { as, lock }) => run.open('watch', { name, as, lock })),
  webhook: (run, message) => run.ask('webhook', message),
  check_fence: own(['fence', 'database'], (run, resource, { fence, database = DATABASES.find((each) => !(`check_fence ${each}` in run.language.lacks)) }) =>
    run.ask('check_fence', { resource, fence, database: run.databases[database] })),
  fork: (run, name) => run.ask('fork', { name }),
  block: (run, n_ttls) => run.ask('block', { seconds: run.saved.ttl * n_ttls }),
};

const ofRunner = {
  await: (run, name) => {
    const answer = run.begun.get(name);
    assert.ok(answer, `nothing was begun as ${name}`);
    return answer;
  },
  fault: own(['do', 'through', 'times', 'ms', 'status', 'headers', 'body', 'by'], (run, at, { through = 'url', as, ...fault }) => run.proxies[through].fault({ ...fault, at })),
  link: own(['through'], async (run, mode, { through = 'url' }) => run.proxies[through].link(mode)),
  // What the proxies have seen: how many requests, and how many different keys they had.
  requests: own(['through'], async (run, at, { through = 'url' }) => {
    const seen = run.proxies[through].requestsAt(at);
    const n_keys = new Set(seen.map(({ headers }) => headers['idempotency-key'])).size;
    return value({
      count: seen.length, keys: n_keys, paths: seen.map(({ path }) => path), headers: seen.map(({ headers }) => headers),
      pauses_ms: seen.slice(1).map(({ at }, i) => at - seen[i].at),
    });
  }),
  // A request of the runner itself, past the proxies.
  http: own(['body'], async (run, line, { body }) => {
    const [method, path] = line.split(' ');
    const server = run.cell ? await run.cell.master() : run.server;
    const { status, json } = await server.request(method, path, body, server.admin);
    return value({ status, json });
  }),
  // Signs a message of this id as Holdfast signs notifications, `age` seconds ago.
  sign: own(['secret', 'body', 'age'], async (run, id, { secret, body, age = 0 }) => {
    const at = Math.floor(Date.now() / 1000) - age;
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    const signature = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
    return value({ signature: `v1,${signature}`, at: `${at}` });
  }),
  server: async (run, what) => {
    const steps = {
      kill: () => run.server.kill9(),
      stop: () => run.server.stop({ keep: true }),
      start: () => run.server.launch(),
      pause: () => run.server.pause(),
      resume: () => run.server.resume(),
    };
    await steps[what]();
  },
  cell: async (run, what) => {
    const steps = {
      kill_master: async () => {
        run.killed = await run.cell.master();
        await run.killed.kill9();
      },
      start_killed: () => run.killed.launch(),
      // A standby that stood still has to report first.
      transfer: () => until('the mastership is handed over', async () => (await (await run.cell.master()).post('/v1/cell/transfer')).status === 200, UNTIL_MS),
    };
    await steps[what]();
  },
  // The process that has the client's locks stands still until it is continued.
  process: async (run, what) => {
    assert.ok(['stop', 'continue'].includes(what), what);
    run.pid ??= (await run.ask('pid', {})).value;
    if (what === 'stop') await standStill(run.pid);
    else process.kill(run.pid, 'SIGCONT');
  },
  sleep_ttls: (run, n) => sleep(run.saved.ttl_ms * n),
  // A buyer's browser: pays a booking at the server's sandbox.
  pay: async (run, booking) => {
    const { payment } = await until('the booking has a payment', async () => {
      const { json } = await run.server.get(`/v1/bookings/${booking}`);
      return json.payment?.client_secret && json;
    });
    const form = {
      key: payment.publishable_key, client_secret: payment.client_secret,
      'payment_method_data[type]': 'card', 'payment_method_data[card][number]': '4242424242424242',
      'payment_method_data[card][exp_month]': '12', 'payment_method_data[card][exp_year]': '2040', 'payment_method_data[card][cvc]': '123',
    };
    const answer = await fetch(`${payment.api}/v1/payment_intents/${payment.intent}/confirm`, { method: 'POST', body: new URLSearchParams(form) });
    assert.equal(answer.status, 200, await answer.text());
  },
};

const verbs = { ...ofClient, ...ofRunner };
