// The ledger is away, slow, or lost during a COMMIT: no answer is invented, acknowledged holds stay, and the
// servers recover by themselves (I7, I14).
// backends: own
// time limit: 480 s

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, afterEach, before, describe, it } from 'node:test';
import { isDeepStrictEqual, promisify } from 'node:util';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { startPgbouncer } from '../support/postgres.mjs';
import { startProxy } from '../support/proxy.mjs';
import { assertAllDraw, startBackends, readiness, timed } from '../support/scale.mjs';
import { assertTook, newKey, patiently, Server, sleep, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const UNKNOWN_AFTER_MS = 5000;
const STOP_MS = 10_000; // docs/run.md
const WORKERS = 4;
const STILL_MS = 1500; // while the ledger is there no request takes as long, unless something stands still
const ENDED_SESSIONS = process.env.HF_SOAK === '1' ? 50 : 8; // which were at something when they were ended
const isHoldCommit = ({ text, recent }) => /^\s*COMMIT/i.test(text) && recent.some((statement) => /INSERT INTO holds\b/i.test(statement));
const recover = (server) => until('it is ready again', async () => (await readiness(server)).status === 200);

let backends; // of all tests of this file
before(async () => { backends = await startBackends(); });
afterEach(() => backends?.sweep());
after(() => backends?.close());

// First, since a server of another test would not get on with PostgreSQL's settings here.
describe('standbys', () => {
  it('failover to a synchronous standby loses nothing that was acknowledged', async () => {
    const site = await backends.pair({ n: 1 });
    const { one, event } = site;
    const standby = await backends.postgres.standby();
    const granted = [];
    let finished = false;
    const sale = (async () => {
      for (let i = 1; i <= 50 && !finished; i++) {
        const answer = await one.hold(event, `S-A-${i}`);
        if (answer.status === 201) granted.push(answer.json);
        await sleep(10);
      }
    })();
    await sleep(250);
    await until('something is granted', () => granted.length > 0, undefined, 1);
    await backends.postgres.crash();
    finished = true;
    standby.promote();
    site.ledgerLink.target.port = standby.port; // as a virtual address or DNS does
    site.ledgerLink.reset();
    await sale;
    await recover(one);
    for (const hold of granted) assert.equal(assertOk(await one.get(`/v1/holds/${hold.id}`)).status, 'active');
    const next = await until('it sells again', async () => {
      const answer = await one.hold(event, 'S-B-1');
      return answer.status === 201 && answer.json;
    }, 120_000, 100);
    assert.ok(granted.every(({ fence }) => fence < next.fence), 'fences grow over a failover');
    await one.stop();
    await standby.stop();
    await backends.postgres.start();
  });

  it('a commit that no standby has yet is not acknowledged, though the session that waited was ended', async () => {
    const commitsWaitFor = (names) => {
      backends.postgres.sql('-c', `ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
      backends.postgres.sql('-c', 'SELECT pg_reload_conf()');
    };
    commitsWaitFor('');
    const site = await backends.pair({ n: 1 });
    // Returns false if the server gave up first: after five seconds it says that the outcome is unknown.
    const isKeptBack = async (seat) => {
      commitsWaitFor('nobody');
      let answered = false;
      const asked = timed(site.one.hold(site.event, seat)).finally(() => { answered = true; });
      await until('a session that waited is ended', () => answered || backends.postgres.terminateBackends(site.database, "wait_event = 'SyncRep'") > 0);
      await until('the server asks what became of it, and waits', () => answered || backends.postgres.query('postgres', `SELECT 1 FROM pg_stat_activity
        WHERE datname = '${site.database}' AND wait_event = 'SyncRep'`).length > 0);
      await sleep(300);
      const wasAnswered = answered;
      commitsWaitFor('');
      const { answer, ms } = await asked;
      if (ms >= UNKNOWN_AFTER_MS - 200 && answer.json.code === 'outcome_unknown') return false;
      assert.equal(wasAnswered, false);
      assert.equal(answer.status, 201, answer.text);
      assert.equal(assertOk(await site.one.get(`/v1/holds/${answer.json.id}`)).status, 'active');
      return true;
    };
    for (let n = 1; !await isKeptBack(`S-A-${n}`); n++) assert.ok(n < 4, 'the machine always stood still');
    await site.done();
  });

  it('a server says when a commit may be lost: asynchronous standby, or commits that do not wait', async () => {
    backends.postgres.sql('-c', "ALTER SYSTEM SET synchronous_standby_names = ''");
    backends.postgres.sql('-c', 'ALTER SYSTEM SET synchronous_commit = off');
    backends.postgres.sql('-c', 'SELECT pg_reload_conf()');
    const site = await backends.pair({ n: 1 });
    await until('it says so', () => /level=warn.*synchronous_commit/i.test(site.one.stderr));
    backends.postgres.sql('-c', 'ALTER SYSTEM RESET synchronous_commit');
    backends.postgres.sql('-c', 'SELECT pg_reload_conf()');
    const standby = await backends.postgres.standby({ synchronous: false });
    await site.one.restart();
    await until('it says so', () => /level=warn.*(asynchronous|standby)/i.test(site.one.stderr));
    await site.done();
    await standby.stop();
  });
});

describe('a ledger that is not there', () => {
  // It comes first: each session of the ledger that has written holds is one that this test wrote with.
  it('lost to one worker: not ready, however well the others do, until that one is back', async () => {
    const site = await backends.shared();
    const { one, event, ledgerLink } = site;
    const lost = await one.createEvent(); // has the next number, so it belongs to another worker
    await one.grant(lost, 'S-A-1');
    const before = one.stderr.length;
    assert.equal(ledgerLink.cutThose(/INSERT INTO holds\b/i), 1);
    assertProblem(await one.hold(lost, 'S-A-2'), 503, 'ledger_unavailable');
    for (let i = 1; i <= 10; i++) {
      await one.grant(event, `S-A-${i}`);
      assert.equal((await readiness(one)).status, 503);
      if (i % 3 === 0) assertProblem(await one.hold(lost, 'S-A-2'), 503, 'ledger_unavailable');
    }
    ledgerLink.restore();
    await recover(one);
    await one.grant(lost, 'S-A-2');
    await until('it says so', () => one.stderr.includes('the ledger answers again', before));
    assert.equal(one.stderr.slice(before).match(/the ledger answers again/g).length, 1, one.stderr);
    await site.done();
  });

  it('PostgreSQL down: writes are refused in seconds, nothing is invented, all is well after', async () => {
    const site = await backends.shared();
    const { one, two, event } = site;
    const kept = await one.grant(event, 'S-A-1');
    const map = await one.map(event);
    await backends.postgres.stop();
    for (const server of site.servers) {
      const { answer, ms } = await timed(server.hold(event, 'S-A-2'));
      assertProblem(answer, 503, 'ledger_unavailable');
      assert.ok(answer.headers['retry-after'], 'it says when to try again');
      assertTook(ms, 5000, 'a refusal');
      for (const refused of [await server.post(`/v1/holds/${kept.id}/confirm`, { fence: kept.fence }),
        await server.del(`/v1/holds/${kept.id}`), await server.post(`/v1/holds/${kept.id}/renew`, {})]) {
        assertProblem(refused, 503, 'ledger_unavailable');
      }
      await until('it is not ready', async () => (await readiness(server)).status === 503);
      assert.equal((await server.get('/healthz')).status, 200);
    }
    await backends.postgres.start();
    await Promise.all(site.servers.map((server) => recover(server)));
    for (const server of site.servers) assert.equal(assertOk(await server.get(`/v1/holds/${kept.id}`)).status, 'active');
    await assertAllDraw(site.servers, event, map);
    await two.grant(event, 'S-A-2');
    assert.equal((await patiently(() => one.post(`/v1/holds/${kept.id}/confirm`, { fence: kept.fence }))).status, 201);
    await site.done();
  });

  it('PostgreSQL down: events and maps are served from memory and marked as stale, streams stay open and go on after', async () => {
    const site = await backends.shared();
    const { one, event } = site;
    const idle = new Server({ ledger: site.ledger, gate: site.gate }); // has never been asked for an event
    site.servers.push(idle);
    await idle.launch();
    const reads = async (server) => server.get('/readyz?for=reads');
    const ready = () => until('it is ready', async () => (await reads(idle)).text === '{"status":"ready"}');
    await ready();
    await one.grant(event, 'S-A-1');
    const map = await one.map(event);
    const [early, ...targets] = [`/v1/events/${event.id}/stream`, `/v1/events/${event.id}/seats`, `/v1/events/${event.id}`];
    const current = (asked) => until('nothing is stale', async () => { // as it is if PostgreSQL stood still
      const answers = await Promise.all(asked.map((target) => one.get(target)));
      return answers.every(({ headers }) => headers['holdfast-stale'] === undefined) && answers;
    });
    const before = await current(targets);
    const stream = await Stream.open(one, event, { path: early });

    await backends.postgres.stop();
    await Promise.all([one, idle].map((server) => until('it is not ready', async () => (await readiness(server)).status === 503)));
    // A gate that stood still is missing for a moment, too.
    await until('nothing but the ledger is missing', async () => isDeepStrictEqual(assertOk(await reads(one)), { status: 'degraded', degraded: ['ledger'] }));
    assertProblem(await reads(idle), 503, 'ledger_unavailable');
    for (const [i, target] of targets.entries()) {
      const answer = await one.get(target);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.text, before[i].text);
      assert.equal(answer.headers['holdfast-stale'], 'true', target);
    }
    const same = await one.get(targets[0], { 'If-None-Match': before[0].headers.etag });
    assert.deepEqual([same.status, same.headers['holdfast-stale']], [304, 'true']);
    const late = await Stream.open(one, event);
    assert.deepEqual([late.status, late.headers['holdfast-stale']], [200, 'true']);
    assertProblem(await idle.get(targets[0]), 503, 'ledger_unavailable');

    await backends.postgres.start();
    await Promise.all(site.servers.map((server) => recover(server)));
    await current(targets.slice(0, 1));
    await ready();
    await assertAllDraw([one, idle], event, map);
    await one.grant(event, 'S-A-2');
    for (const each of [stream, late]) {
      assert.ok(await each.find(({ data }) => data.changes?.some(([seat]) => seat === 'S-A-2')), 'the stream goes on');
      each.close();
    }
    await idle.stop();
    await site.done();
  });

  it('PostgreSQL crashes under load: every acknowledged hold is there after', async () => {
    const site = await backends.shared();
    const { event } = site;
    const seats = Array.from({ length: 100 }, (_, i) => `S-${'AB'[Math.floor(i / 50)]}-${1 + i % 50}`);
    const granted = [];
    const sale = Promise.all(site.servers.map(async (server) => {
      for (const seat of seats) {
        const answer = await server.hold(event, seat);
        if (answer.status === 201) granted.push(answer.json);
        else assert.ok(['seat_taken', 'ledger_unavailable', 'outcome_unknown'].includes(answer.json.code), answer.text);
      }
    }));
    await sleep(100);
    await until('something is granted', () => granted.length > 0, undefined, 1);
    await backends.postgres.crash();
    await sleep(300);
    await backends.postgres.start();
    await sale;
    await Promise.all(site.servers.map((server) => recover(server)));
    assert.ok(granted.length > 0);
    for (const hold of granted) assert.deepEqual(assertOk(await site.two.get(`/v1/holds/${hold.id}`)).seats, hold.seats);
    assert.equal(new Set(granted.flatMap((hold) => hold.seats)).size, granted.length, 'a seat has two owners');
    await site.done();
  });

  it('PostgreSQL away under load: the log stays short, and from the first "ready" on no request is refused', async (t) => {
    // A machine that stood still shows nothing: PostgreSQL was away once more, or there was no load.
    for (let tries = 1; !await isAwayUnderLoad(t); tries++) assert.ok(tries < 4, 'the machine always stood still');
  });

  async function isAwayUnderLoad(t) {
    const site = await backends.shared();
    const { one } = site;
    const events = [];
    for (let i = 0; i < 2 * WORKERS; i++) {
      events.push(await one.createEvent({ sections: [{ name: 'S', price: 1, rows: 5, seats_per_row: 100 }] }));
    }
    const kept = await one.grant(events[0], 'S-E-100');
    const asked = []; // { what, at: when it was sent, until: when it was answered, status }
    let finished = false;
    const keepAsking = async (what, ask) => {
      while (!finished) {
        const at = performance.now();
        const { status } = await ask();
        asked.push({ what, at, until: performance.now(), status });
        await sleep(status !== 503 ? 5 : what === 'ready' ? 20 : 50); // refusals are quick, and others need the processor
      }
    };
    let seat = 0;
    const nextSeat = () => `S-${'ABCD'[Math.floor(seat / 100) % 4]}-${1 + seat++ % 100}`;
    const load = [
      ...events.map((event) => keepAsking('hold', () => one.hold(event, nextSeat(), { ttl_ms: 1000 }))),
      keepAsking('look up', () => one.get(`/v1/holds/${kept.id}`)),
      keepAsking('list', () => one.get(`/v1/holds?event=${events[1].id}`)),
      keepAsking('ready', () => one.get('/readyz')),
    ];
    await sleep(300);
    const before = one.stderr.length;
    const began = performance.now();
    await backends.postgres.stop();
    await sleep(3000);
    const refusals = () => asked.filter(({ status, at }) => status === 503 && at > began).length;
    await until('the load is refused', () => refusals() > 100);
    const away = performance.now() - began;
    const said = one.stderr.slice(before).split('\n').length - 1;
    await backends.postgres.start();
    await recover(one);
    await sleep(1000);
    finished = true;
    await Promise.all(load);
    const ready = asked.filter(({ what, at }) => what === 'ready' && at > began).sort((a, b) => a.at - b.at);
    const down = ready.findIndex(({ status }) => status === 503);
    const again = ready.slice(down).find(({ status }) => status === 200);
    const refused = asked.filter(({ status, at }) => status === 503 && at > again.until);
    t.diagnostic(`${asked.length} requests, ${refusals()} refused, ${said} lines in ${Math.round(away)} ms`);
    await site.done();
    const stoodStill = asked.some(({ at, until: answered }) => at > again.until && answered - at > STILL_MS)
      || ready.some(({ at }, i) => i > 0 && at - ready[i - 1].until > STILL_MS);
    if (stoodStill) return false;
    assert.deepEqual(refused, []);
    assert.ok(said <= 5 + WORKERS * (1 + Math.ceil(away / 1000)), `${said} lines in ${away} ms:\n${one.stderr.slice(before, before + 4000)}`);
    assert.equal(one.stderr.slice(before).match(/the ledger answers again/g).length, 1, one.stderr.slice(before));
    return true;
  }

  it('an idle server notices, too', async () => {
    const site = await backends.shared();
    await backends.postgres.stop();
    await Promise.all(site.servers.map((server) => until('it is not ready', async () => (await readiness(server)).status === 503)));
    await backends.postgres.start();
    await Promise.all(site.servers.map((server) => recover(server)));
    await site.done();
  });

  it('sessions ended by an administrator are made anew', async () => {
    const site = await backends.shared();
    const { event } = site;
    for (let round = 0; round < 3; round++) {
      assert.ok(backends.postgres.terminateBackends(site.database) >= 2);
      for (const [i, server] of site.servers.entries()) {
        const hold = await until('a hold is granted', async () => {
          const answer = await server.hold(event, `S-A-${1 + round * 2 + i}`);
          return answer.status === 201 && answer.json;
        });
        assert.equal(assertOk(await server.get(`/v1/holds/${hold.id}`)).status, 'active');
      }
    }
    await site.done({ spent: true });
  });

  it('sessions ended while they commit: "nothing was done" is true whenever it is said', async (t) => {
    const site = await backends.pair();
    const event = await site.one.createEvent({ sections: [{ name: 'S', price: 1, rows: 20, seats_per_row: 200 }] });
    const seats = Array.from({ length: 4000 }, (_, i) => `S-${String.fromCharCode(65 + Math.floor(i / 200))}-${1 + i % 200}`);
    const tally = new Map();
    const denied = []; // owners of holds that were refused as not done
    let isOver = false;
    const buyers = Array.from({ length: 8 }, async (_, b) => {
      for (let n = 0; !isOver && seats.length; n++) {
        const owner = `buyer-${b}-${n}`;
        const { status, json } = await site.servers[(b + n) % 2].hold(event, seats.pop(), { owner });
        tally.set(json.code ?? status, (tally.get(json.code ?? status) ?? 0) + 1);
        if (json.code === 'ledger_unavailable') denied.push(owner);
      }
    });
    // The loop runs inside PostgreSQL, since a client would be too late.
    const ending = promisify(execFile)('psql', ['-XqtA', backends.postgres.url('postgres'), '-c', `DO $$ DECLARE n int := 0; BEGIN
      FOR i IN 1..80 LOOP
        EXIT WHEN n >= ${ENDED_SESSIONS};
        PERFORM pg_stat_clear_snapshot();
        n := n + (SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '${site.database}' AND state = 'active');
        PERFORM pg_sleep(0.04);
      END LOOP;
      RAISE WARNING 'ended %', n; END $$`]).finally(() => { isOver = true; });
    await Promise.all(buyers);
    const ended = Number(/ended (\d+)/.exec((await ending).stderr)[1]);
    await Promise.all(site.servers.map((server) => recover(server)));
    t.diagnostic(`${JSON.stringify(Object.fromEntries(tally))}, ${ended} sessions ended`);
    assert.ok(ended > 0, 'no session was ended while it was at something');
    const held = new Set(site.sql(`SELECT owner FROM holds`).map(({ owner }) => owner));
    assert.deepEqual(denied.filter((owner) => held.has(owner)), []);
    await site.done();
  });

  // Stops a server while all of its threads wait for the ledger: each worker with one batch under way and one
  // queued, the readers, the loader.  Resolves to the owners of holds that were refused as not done.
  async function assertStopsInTime(t, server, events, hold) {
    const denied = [];
    const asked = [...events, ...events].map(async (event, i) => {
      const { status, json } = await server.hold(event, `S-A-${1 + i}`, { owner: `leaving-${i}` });
      if (json.code === 'ledger_unavailable') denied.push(`leaving-${i}`);
      return [status, json.code];
    });
    for (const target of [`holds/${hold.id}`, `holds/${hold.id}`, `audit?event=${events[0].id}`, `events/${events[0].id.slice(0, 14)}z${events[0].id.slice(15)}`]) {
      asked.push(server.get(`/v1/${target}`).then(({ status, json }) => [status, json.code]));
    }
    await sleep(300);
    const { ms } = await timed(server.stop());
    t.diagnostic(`stopped after ${Math.round(ms)} ms`);
    assertTook(ms, STOP_MS, 'the end of the server');
    for (const [status, code] of await Promise.all(asked)) {
      assert.ok(status === 503 && ['ledger_unavailable', 'outcome_unknown', 'draining'].includes(code), `${status} ${code}`);
    }
    return denied;
  }

  it('a link that swallows everything: refused in bounded time, the others go on, and a server that is told to stop does', async (t) => {
    const site = await backends.pair({ n: 3, through: 2, args: ['--reconcile-every', '100ms'] });
    const { event, servers: [one, leaving, two] } = site;
    await one.grant(event, 'S-A-1');
    const events = [];
    for (let i = 0; i < WORKERS; i++) events.push(await leaving.createEvent());
    const kept = await leaving.grant(events[0], 'S-B-1');
    site.ledgerLink.blackhole();
    site.gateLink.blackhole();
    const stopped = assertStopsInTime(t, leaving, events, kept);
    stopped.catch(() => {});
    const { answer, ms } = await timed(one.hold(event, 'S-A-2'));
    assert.ok([503].includes(answer.status) && ['ledger_unavailable', 'outcome_unknown'].includes(answer.json.code), answer.text);
    assertTook(ms, 20_000, 'a refusal');
    await until('it is not ready', async () => (await readiness(one)).status === 503);
    await until('the other sells the seat', async () => (await two.hold(event, 'S-A-3')).status === 201, 120_000, 100);
    const denied = await stopped;
    site.ledgerLink.restore();
    site.gateLink.restore();
    await recover(one);
    await until('it sells again', async () => (await one.hold(event, 'S-A-4')).status === 201, 120_000, 100);
    assert.equal(assertOk(await two.get(`/v1/holds/${kept.id}`)).status, 'active');
    const held = new Set(site.sql('SELECT owner FROM holds').map(({ owner }) => owner));
    assert.deepEqual(denied.filter((owner) => held.has(owner)), []);
    await site.done();
  });
});

describe('a connection lost during COMMIT', () => {
  // Asserts that the answer agrees with the ledger.
  async function assertTruth(site, answer, seat) {
    const map = await site.two.map(site.event);
    if (answer.status === 201) {
      assert.equal(assertOk(await site.two.get(`/v1/holds/${answer.json.id}`)).status, 'active');
      await until('the seat is held', async () => (await site.two.map(site.event))[seat] === 'h');
    } else {
      assertProblem(answer, 503, 'ledger_unavailable');
      assert.equal(map[seat], '.', 'refused, and the seat is free');
    }
  }

  it('before it arrived: the answer is the truth', async () => {
    const site = await backends.shared();
    const cut = site.ledgerLink.cutAt(isHoldCommit, 'before');
    const answer = await site.one.hold(site.event, 'S-A-1');
    await cut;
    await assertTruth(site, answer, 'S-A-1');
    await site.one.grant(site.event, 'S-A-2');
    await site.done();
  });

  it('after it was done: the server finds out that it was, and says so', async () => {
    const site = await backends.shared();
    const { one, two, event } = site;
    const headers = { 'Idempotency-Key': newKey() };
    const cut = site.ledgerLink.cutAt(isHoldCommit, 'after');
    const { answer, ms } = await timed(one.hold(event, 'S-A-1', {}, headers));
    await cut;
    assert.equal(answer.status, 201, answer.text);
    assertTook(ms, UNKNOWN_AFTER_MS, 'finding out');
    await assertTruth(site, answer, 'S-A-1');
    const again = await two.hold(event, 'S-A-1', {}, headers);
    assert.equal(again.text, answer.text, 'and a repeat gets the same bytes');
    assert.equal(site.countHolds(), 1);
    await site.done();
  });

  it('and late: what was refused is never done, however late it arrives', async () => {
    const site = await backends.shared();
    const { one, two, event } = site;
    const isAlone = ({ text, recent }) => isHoldCommit({ text, recent }) && recent.some((statement) => /SKIP LOCKED/.test(statement));
    // A server that writes to an event alone sends each batch whole, and asks for nothing first.
    const late = site.ledgerLink.cutAt(isAlone, 'late');
    let answer;
    for (let seat = 1, first = null; !first; seat++) {
      answer = await one.hold(event, `S-A-${seat}`);
      first = await Promise.race([late.then(() => `S-A-${seat}`), sleep(0)]);
      if (first) await assertTruth(site, answer, first);
      assert.ok(seat < 45, 'no batch was sent whole');
    }
    assert.equal(answer.status, 503, answer.text);
    const held = site.countHolds();
    const [{ fence }] = site.sql(`SELECT fence FROM event_clock WHERE event = ${site.eventNumber}`);
    assert.equal(fence, held + 1, 'its fence is nobody\'s');
    assert.match(await site.ledgerLink.arrive(), /division by zero/);
    assert.equal(site.countHolds(), held, 'it was not done when it arrived');
    await one.grant(event, 'S-B-30');
    await two.grant(event, 'S-B-31');
    await site.done(); // verify accepts the fence that was left out
  });

  // A pooler says in PostgreSQL's own words that it has lost the session, but not for PostgreSQL.
  for (const [name, before] of [['that asked first', 0], ['that was sent whole', 10]]) {
    it(`of a pooler, by a batch ${name}: "nothing was done" is said only if it is true`, async () => {
      const site = await backends.shared();
      const link = await startProxy(backends.postgres.port, { postgres: true });
      const pooler = await startPgbouncer(link.port);
      const server = new Server({ ledger: site.ledger.replace(`:${backends.postgres.port}/`, `:${pooler.port}/`), gate: site.gate });
      site.servers.push(server);
      await server.launch();
      for (let i = 1; i <= before; i++) await server.grant(site.event, `S-B-${i}`);
      const cut = link.cutAt(isHoldCommit, 'after');
      const answer = await server.hold(site.event, 'S-A-1');
      await cut;
      await until('it is stored', () => site.countHolds() === before + 1);
      assert.notEqual(answer.json.code, 'ledger_unavailable');
      await site.done();
      await server.stop();
      await pooler.stop();
      await link.close();
    });
  }

  it('or refused for what it assumed: it is decided again, and nothing of the first decision is answered', async () => {
    const site = await backends.shared();
    const { one, two, event } = site;
    for (let round = 1; round <= 5; round++) {
      for (let i = 0; i < 6; i++) await one.grant(event, `S-B-${round * 6 + i}`); // it has the event to itself
      await two.grant(event, `S-A-${round}`);
      const loser = await patiently(() => one.hold(event, `S-A-${round}`, {}, { 'Idempotency-Key': newKey() })); // before it hears of the other's
      assertProblem(loser, 409, 'seat_taken');
    }
    await site.done();
  });

  it('and the ledger stays away: unknown is said after five seconds, with what to look up', async () => {
    const site = await backends.shared();
    const { one, event } = site;
    site.ledgerLink.cutAt(isHoldCommit, 'after').then(() => site.ledgerLink.cut());
    const { answer, ms } = await timed(one.hold(event, 'S-A-1'));
    assertProblem(answer, 503, 'outcome_unknown');
    assert.ok(ms >= UNKNOWN_AFTER_MS - 200, `${ms} ms`);
    assertTook(ms, UNKNOWN_AFTER_MS + 4000, 'giving up');
    assert.match(answer.json.hold, /^hold_/);
    site.ledgerLink.restore();
    await recover(one);
    const hold = assertOk(await one.get(`/v1/holds/${answer.json.hold}`));
    assert.deepEqual([hold.status, hold.seats], ['active', ['S-A-1']]);
    await site.done();
  });

  it('and it was never done: the hold that the answer names does not exist', async () => {
    const site = await backends.shared();
    const { one, two, event } = site;
    site.ledgerLink.cutAt(isHoldCommit, 'before').then(() => site.ledgerLink.cut());
    const answer = await one.hold(event, 'S-A-1');
    assert.equal(answer.status, 503, answer.text);
    site.ledgerLink.restore();
    await recover(one);
    if (answer.json.code === 'outcome_unknown') assertProblem(await one.get(`/v1/holds/${answer.json.hold}`), 404, 'no_such_hold');
    else assertProblem(answer, 503, 'ledger_unavailable');
    await until('the seat can be held', async () => (await two.hold(event, 'S-A-1')).status === 201, 120_000, 100);
    await site.done();
  });

  it('of a confirmation: sold once, whatever was answered', async () => {
    for (const when of ['before', 'after']) {
      const site = await backends.shared();
      const { one, two, event } = site;
      const hold = await one.grant(event, 'S-A-1');
      const cut = site.ledgerLink.cutAt(({ text, recent }) => /^\s*COMMIT/i.test(text) && recent.some((s) => /INSERT INTO bookings\b/i.test(s)), when);
      const answer = await one.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence });
      await cut;
      const read = assertOk(await two.get(`/v1/holds/${hold.id}`));
      assert.equal(read.status, answer.status === 201 ? 'confirmed' : 'active', `${when}: ${answer.text}`);
      if (when === 'after') assert.equal(answer.status, 201, answer.text);
      const again = await patiently(() => two.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }));
      assert.equal(again.status, answer.status === 201 ? 200 : 201, again.text);
      assert.equal(site.sql(`SELECT count(*) AS n FROM sold_seats WHERE seat >> 32 = ${site.eventNumber}`)[0].n, 1);
      await site.done();
    }
  });
});
