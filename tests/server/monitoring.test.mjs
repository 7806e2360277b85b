// What operators watch: the metrics, share/holdfast/prometheus-rules.yml and share/holdfast/grafana-dashboard.json.
// A real Prometheus scrapes two loaded servers, one on SQLite, one on PostgreSQL with a gate, and programs that take locks of
// the first, and every query of rules and dashboard returns numbers.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { after, before, describe, it } from 'node:test';
import { begin, PATIENCE } from '../support/cli.mjs';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { Party, waiting } from '../support/locks.mjs';
import { startPrometheus } from '../support/prometheus.mjs';
import { startBackends } from '../support/scale.mjs';
import { freePort, newKey, parseMetrics, Server, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const file = (name) => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const RULES = file('share/holdfast/prometheus-rules.yml');
const CASES = ['prometheus-rules', 'prometheus-rules-hours'].map((name) => file(`tests/fixtures/${name}.test.yml`));
const rules = readFileSync(RULES, 'utf8');
const dashboard = JSON.parse(readFileSync(file('share/holdfast/grafana-dashboard.json'), 'utf8'));
const promtool = (args, input) => execFileSync('promtool', args, { input, encoding: 'utf8', timeout: 60_000, stdio: ['pipe', 'pipe', 'pipe'] });

const METRIC = /\b(?:holdfast|process)_[a-z_]*[a-z]\b/g;
const family = (name) => name.replace(/_(bucket|sum|count)$/, '');

// Expressions of the rules, with the name of what they are for; those of alerts without the comparison at their end.
function ruleExpressions() {
  const found = [];
  for (const [, kind, name, block, line] of rules.matchAll(/- (record|alert): (\S+)\n\s+expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/g)) {
    const expression = (block ?? line).trim();
    const signal = expression.replace(/ (==|>|<) [-\de.]+$/, '');
    assert.equal(signal !== expression, kind === 'alert', `${name}: an alert compares one signal with one number`);
    found.push([name, signal]);
  }
  return found;
}

const page = async (port) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

const panelExpressions = () => dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title,
  expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.+').replaceAll('$instance', '.+')]));

describe('the rules of Prometheus', () => {
  it('are valid', () => promtool(['check', 'rules', RULES]));

  it('fire when they should and only then', () => promtool(['test', 'rules', ...CASES]));

  it('have a case for every alert', () => {
    const alerts = [...rules.matchAll(/- alert: (\S+)/g)].map(([, name]) => name);
    const tested = [...CASES.map((name) => readFileSync(name, 'utf8')).join('').matchAll(/alertname: (\w+)\n\s+exp_alerts:\n/g)].map(([, name]) => name);
    assert.ok(alerts.length >= 8, `${alerts}`);
    assert.deepEqual([...new Set(tested)].sort(), alerts.sort());
  });

  it('say what happened and what to do', () => {
    const n = (text) => rules.split(text).length - 1;
    for (const text of ['severity:', 'summary:', 'description:']) assert.equal(n(text), n('- alert:'), text);
  });
});

describe('the dashboard', () => {
  it('has panels that do not overlap, each with a title and an expression', () => {
    const taken = new Set();
    for (const { type, title, targets, gridPos: { x, y, w, h } } of dashboard.panels) {
      assert.ok(title, type);
      assert.ok(type === 'row' || targets.every(({ expr }) => expr), title);
      assert.ok(x + w <= 24, title);
      for (let i = x; i < x + w; i++) {
        for (let j = y; j < y + h; j++) {
          assert.ok(!taken.has(`${i},${j}`), `${title} overlaps another panel`);
          taken.add(`${i},${j}`);
        }
      }
    }
    const ids = dashboard.panels.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
  });
});

describe('metrics', () => {
  let backends;
  let site;
  let servers;
  let prometheus;
  let launchedAt; // in seconds
  let ports; // of --metrics-listen: two candidates of an election, and a reader
  const streams = [];
  const programs = [];
  before(async () => {
    backends = await startBackends();
    site = await backends.pair({ n: 1, through: 0 });
    const alone = new Server({});
    launchedAt = Date.now() / 1000;
    await alone.launch();
    servers = [alone, site.servers[0]];
    ports = [await freePort(), await freePort(), await freePort()];
    prometheus = await startPrometheus(servers.map(({ host, port }) => `${host}:${port}`), ports.map((port) => `127.0.0.1:${port}`), RULES);
  });
  after(async () => {
    for (const stream of streams) stream.close();
    for (const { child } of programs) child.kill('SIGTERM');
    for (const { result } of programs) await result;
    await prometheus?.stop();
    await servers?.[0].stop();
    await backends?.close();
  });

  // What a sale is made of: holds, refusals, renewals that work and one that does not, a sale, an expiry, a stream.
  async function sell(server, event, turn) {
    const seat = (n) => `S-A-${1 + turn * 4 + n}`;
    const key = { 'Idempotency-Key': newKey() };
    const hold = await server.grant(event, seat(0), {}, key);
    await Promise.all(Array.from({ length: 60 }, () => server.hold(event, seat(0))));
    assertOk(await server.post(`/v1/holds/${hold.id}/renew`, {}));
    assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
    assertProblem(await server.post(`/v1/holds/${hold.id}/renew`, {}), 409, 'hold_confirmed');
    await server.grant(event, seat(1), { ttl_ms: 1000 });
    await server.get(`/v1/events/${event.id}/seats`);
    await server.get('/nowhere');
  }

  // A waiting list whose offers are given back.
  async function wait(server) {
    const event = await server.createEvent({ waitlist: {}, max_per_hold: 20, areas: [{ name: 'Floor', price: 1, capacity: 20 }] });
    const hold = await server.take(event, { areas: { Floor: 20 } });
    const entries = await Promise.all(Array.from({ length: 20 }, () => server.post('/v1/waitlist', { event: event.id, areas: { Floor: 1 } })));
    await server.del(`/v1/holds/${hold.id}`);
    for (const entry of entries) assert.equal((await server.del(`/v1/waitlist/${assertOk(entry, 201).id}`)).status, 204);
  }

  // Locks that are granted, refused, waited for in vain, and lost with a session that nobody keeps alive.
  async function lock(server, turn) {
    const [holder, other, silent] = [await Party.open(server), await Party.open(server), await Party.open(server, { ttl_ms: 1000 })];
    const name = `turn-${turn}`;
    await holder.take(name);
    await silent.ask(`silent-${turn}`);
    assertProblem(await other.ask(name, { owner: 'a' }), 409, 'lock_taken');
    await other.ask(name, { owner: 'b', wait_ms: 1 });
    await other.release(name, 'b');
    await Promise.all(Array.from({ length: 60 }, (_, i) => other.take(`${name}-${i}`)));
    await Promise.all([holder.close(), other.close()]);
  }

  // Two candidates whose terms end at once, a few of them between two scrapes, and a reader that needs one more lock after
  // it has been scraped.
  async function startPrograms(server) {
    const url = `holdfast://${server.host}:${server.port}`;
    const start = ([command, ...args], i, more = '') => programs.push(begin(`${url}${more}`, [command, ...PATIENCE, '--metrics-listen', `${ports[i]}`, ...args]));
    const writer = await Party.open(server, { ttl_ms: 600_000 });
    const { owner } = await writer.take('read-2');
    for (const i of [0, 1]) start(['elect', '--pause', '100ms', 'terms', '--', 'true'], i);
    start(['run', '--shared', '--label', 'reader', 'read-1', 'read-2', 'read-3', '--', 'sleep', '1000'], 2, '?cache=shared');
    await waiting(server, 'read-2', ['reader']);
    await until('Prometheus has scraped the reader', async () => (await prometheus.query(`holdfast_lock_waiting{instance="127.0.0.1:${ports[2]}"} == 1`)).length === 3);
    assertOk(await writer.release('read-2', owner));
  }

  it('every expression of rules and dashboard returns numbers from a Prometheus that scraped two loaded servers', async (t) => {
    const sections = [{ name: 'S', price: 100, rows: 1, seats_per_row: 1000 }];
    const events = await Promise.all(servers.map((server) => server.createEvent({ sections })));
    for (const [i, server] of servers.entries()) streams.push(await Stream.open(server, events[i]));
    await until('Prometheus has scraped both', async () => (await prometheus.query('holdfast_ready')).length === 2);
    await startPrograms(servers[0]);
    const open = new Map([...ruleExpressions(), ...panelExpressions()].map(([name, expression]) => [expression, name]));
    t.diagnostic(`${open.size} expressions`);
    assert.ok(open.size > 90);
    for (let turn = 0; open.size > 0 && turn < 100; turn++) {
      await Promise.all([...servers.flatMap((server, i) => [sell(server, events[i], turn), wait(server)]), lock(servers[0], turn)]);
      for (const expression of open.keys()) {
        const values = await prometheus.query(expression);
        if (values.some(Number.isFinite)) open.delete(expression);
      }
    }
    assert.deepEqual([...open], [], 'these returned no number');
    const [server] = servers;
    await until('sessions that nobody keeps alive lose their locks', async () => (await server.metric('holdfast_locks_lost_total')) > 0);
    for (const result of ['granted', 'taken', 'timed_out']) assert.ok(await server.metric('holdfast_lock_requests_total', { result }) > 0, result);
    // A signal is absent while its servers did not answer a scrape.
    const signals = rules.split('- record:').length - 1;
    await until('Prometheus has recorded every signal', async () => (
      await prometheus.query('count by (__name__) ({__name__=~"holdfast:.+"})')).length === signals);
  });

  it('are well formed, by the judgement of promtool', async () => {
    for (const server of servers) promtool(['check', 'metrics'], (await server.get('/metrics')).text);
    for (const port of ports) promtool(['check', 'metrics'], await page(port));
  });

  it('docs/watch.md has every metric of the servers and the programs and no other; rules and dashboard use no other', async () => {
    const served = new Set();
    const secure = new Server({ tls: true });
    await secure.launch();
    const pages = await Promise.all([...[...servers, secure].map(async (server) => (await server.get('/metrics')).text), page(ports[0])]);
    for (const [, name] of pages.join('\n').matchAll(/^# TYPE (\S+)/gm)) served.add(name);
    await secure.stop();
    const table = readFileSync(file('docs/watch.md'), 'utf8').split('\n')
      .filter((line) => /^\| `(holdfast|process)_/.test(line)).map((line) => line.split('|')[1]).join(' ');
    assert.deepEqual([...new Set(table.match(METRIC))].sort(), [...served].sort());
    const used = `${rules} ${panelExpressions().join(' ')}`.match(METRIC).map(family)
      .filter((name) => !['holdfast_signals', 'holdfast_alerts'].includes(name));
    for (const name of used) assert.ok(served.has(name), name);
  });

  it('the process is measured as Prometheus expects it', async () => {
    const [server] = servers;
    const value = (name) => server.metric(name);
    const now = Date.now() / 1000;
    const start = await value('process_start_time_seconds');
    assert.ok(start > launchedAt - 1 && start <= now, `${start}, not since ${launchedAt}`);
    const cpu = await value('process_cpu_seconds_total');
    assert.ok(cpu > 0.01 && cpu < 300, `${cpu}`);
    const status = readFileSync(`/proc/${server.run.pid}/status`, 'utf8');
    assert.equal(await value('process_threads'), Number(status.match(/^Threads:\s+(\d+)/m)[1]));
    const resident = await value('process_resident_memory_bytes');
    const expected = Number(status.match(/^VmRSS:\s+(\d+)/m)[1]) * 1024;
    assert.ok(Math.abs(resident - expected) < expected / 2, `${resident} and ${expected}`);
    assert.ok(await value('process_virtual_memory_bytes') > resident);
    const files = await value('process_open_fds');
    assert.ok(files > 5 && files < await value('process_max_fds'), `${files}`);
    const [, version] = readFileSync(file('include/holdfast.h'), 'utf8').match(/HF_VERSION_TEXT "(.*)"/);
    assert.equal(await server.metric('holdfast_build_info', { version }), 1);
  });

  it('requests are timed by route and method, and clients cannot make new series', async () => {
    const [server] = servers;
    const count = (route, method) => server.metric('holdfast_http_request_seconds_count', { route, method });
    const earlier = { get: await count('/v1/holds/*', 'GET'), other: await count('other', 'other') };
    const series = async () => parseMetrics((await server.get('/metrics')).text).length;
    const n = await series();
    for (let i = 0; i < 5; i++) await server.get(`/v1/holds/hold_${i}`);
    await server.request('HEAD', '/v1/holds/hold_x');
    await server.get('/no/such/path');
    await server.request('PROPFIND', '/v1/holds/hold_x');
    assert.equal(await count('/v1/holds/*', 'GET') - earlier.get, 6);
    assert.equal(await count('other', 'other') - earlier.other, 2);
    assert.equal(await series(), n);
    assert.ok(await count('/v1/holds', 'POST') > 100);
    const sum = () => server.metric('holdfast_http_request_seconds_sum', { route: '/v1/holds', method: 'POST' });
    const from = performance.now(), before_ = await sum();
    for (let i = 0; i < 10; i++) await server.hold('evt_x', 'S-A-1');
    const took = await sum() - before_, most = (performance.now() - from) / 1000;
    assert.ok(took > 0 && took < most, `${took} s of ${most} s`);
  });

  it('the sizes are those of the files, and keys are counted', async () => {
    const [server] = servers;
    await until('the keys have been counted', async () => (await server.metric('holdfast_idempotency_keys')) >= 1, 120_000, 250);
    assert.ok(await server.metric('holdfast_idempotency_key_bytes') >= 400);
    assert.ok(await server.metric('holdfast_ledger_bytes') > 0);
    assert.ok(await server.metric('holdfast_ledger_log_bytes') > 0);
    const [free, all] = [await server.metric('holdfast_disk_free_bytes'), await server.metric('holdfast_disk_bytes')];
    assert.ok(free > 0 && free < all, `${free} of ${all}`);
    assert.equal(await server.metric('holdfast_queue_capacity'), 16384);
    assert.equal(await server.metric('holdfast_gate_up'), undefined);
  });

  it('a server that is about to stop is not ready', async () => {
    const server = new Server({ args: ['--drain-delay', '5m'] });
    await server.launch();
    assert.equal(await server.metric('holdfast_ready'), 1);
    process.kill(server.pid, 'SIGTERM');
    await until('it says so', async () => (await server.metric('holdfast_ready')) === 0);
    await server.stop(); // a second signal ends the wait
  });

  it('a gate and a ledger that do not answer show at once', async () => {
    const [, server] = servers;
    const values = async () => [await server.metric('holdfast_gate_up'), await server.metric('holdfast_ledger_up'), await server.metric('holdfast_ready')];
    const shows = (what, wanted) => until(what, async () => (await values()).join() === wanted);
    await shows('all is well', '1,1,1');
    await backends.redis.stop();
    await shows('the gate is down', '0,1,1');
    await backends.postgres.stop();
    await shows('the ledger is down', '0,0,0');
  });
});
