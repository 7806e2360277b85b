// Several servers on one ledger: each shows what the others do, and the end of one does not affect the rest.
// backends: own
// time limit: 480 s

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { assertOk, assertProblem, assertReplay, ms } from '../support/expect.mjs';
import { assertAllDraw, startBackends, RECONCILE, timed } from '../support/scale.mjs';
import { assertTook, newKey, patiently, sanitizer, sleep, standStill, tempDir, until } from '../support/server.mjs';
import { apply, Stream } from '../support/stream.mjs';

describe('servers on one ledger', () => {
  let backends;
  before(async () => { backends = await startBackends(); });
  afterEach(() => backends?.sweep());
  after(() => backends?.close());

  it('a server killed between claim and commit: the seat is free through another in 5 s', async () => {
    const site = await backends.shared({ n: 3 });
    const { one, two, event } = site;
    site.ledgerLink.blackhole();
    let isAsked = false;
    await until('it has claimed the seat', () => {
      // Without a claim, if the gate was too slow, it is refused.
      if (!isAsked) one.hold(event, 'S-A-1').catch(() => {}).finally(() => { isAsked = false; });
      isAsked = true;
      return Object.values(site.seatKeys()).some((value) => value.startsWith('c:'));
    });
    const claimed = performance.now();
    await one.kill9();
    await until('the seat is free', async () => (await two.hold(event, 'S-A-1')).status === 201, 120_000, 50);
    assertTook(performance.now() - claimed, 5500, 'the end of the claim');
    await site.done();
  });

  it('a server killed at any moment under load: what it acknowledged is known to the others', async () => {
    const site = await backends.shared({ n: 3 });
    const { one, two, event } = site;
    const granted = [];
    const sale = (async () => {
      try {
        for (let i = 1; i <= 50; i++) {
          const answer = await one.hold(event, `S-A-${i}`);
          if (answer.status === 201) granted.push(answer.json);
        }
      } catch { /* killed */ }
    })();
    await sleep(60);
    await one.kill9();
    await sale;
    for (const hold of granted) {
      assert.equal(assertOk(await two.get(`/v1/holds/${hold.id}`)).status, 'active');
      assertProblem(await patiently(() => two.hold(event, hold.seats)), 409, 'seat_taken');
      assert.equal((await patiently(() => two.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }))).status, 201);
    }
    await one.launch();
    await assertAllDraw([one], event, await two.map(event));
    await site.done();
  });

  it('a server stopped past its hold\'s time confirms nothing that another has by now', async () => {
    const site = await backends.shared({ n: 3 });
    const { one, two, event } = site;
    const hold = await one.grant(event, 'S-A-1', { ttl_ms: 1500 });
    await standStill(one.pid); // a thread that goes on would confirm in time
    const late = one.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence });
    late.catch(() => {});
    await sleep(ms(hold.expires_at) - Date.now() + 100);
    const next = await until('another gets the seat', async () => {
      const answer = await two.hold(event, 'S-A-1');
      return answer.status === 201 && answer.json;
    }, 120_000, 50);
    one.resume();
    // The stop may come after the batch has its locks: PostgreSQL then ends the idle transaction, and the truthful
    // answer is that nothing was done.
    const answer = await late;
    if (answer.status === 503) assertProblem(answer, 503, 'ledger_unavailable');
    else assertProblem(answer, 410, 'hold_expired');
    const confirm = ({ id, fence }, fields = {}) => patiently(() => one.post(`/v1/holds/${id}/confirm`, { fence, ...fields }));
    assertProblem(await confirm(hold), 410, 'hold_expired');
    assertProblem(await confirm(hold, { rescue: true }), 410, 'hold_expired');
    assert.ok(next.fence > hold.fence);
    assert.equal((await confirm(next)).status, 201);
    await site.done();
  });

  // Changes are made through `from`; the map and the streams of `to` show them within a second.
  const follows = async (site, from, to, seat) => {
    const { event } = site;
    const stream = await Stream.open(to, event);
    const before = await to.map(event);
    // Resolves to how long the slower of the two took.
    const shows = async (letter) => {
      const { ms: took } = await timed(until(`the map shows ${letter}`, async () => (await to.map(event))[seat] === letter));
      const { answer: message, ms: more } = await timed(stream.find(({ data }) => data.changes.some(([name, to_]) => name === seat && to_ === letter)));
      assert.ok(message, 'the stream says it');
      return took + more;
    };
    const hold = await from.grant(event, seat);
    const held = await shows('h');
    assert.equal((await patiently(() => from.del(`/v1/holds/${hold.id}`))).status, 204);
    const freed = await shows('.');
    stream.close();
    assert.deepEqual(apply(before, stream.messages), await to.map(event), 'I13: stream and map agree');
    assertTook(Math.max(held, freed), 1000, 'the way to the other server');
    return Math.max(held, freed);
  };

  it('what one server does is on the other\'s map and stream within a second', async (t) => {
    const site = await backends.shared({ n: 3 });
    const { one, two } = site;
    const took = [];
    for (let i = 1; i <= 5; i++) took.push(await follows(site, ...(i % 2 ? [one, two] : [two, one]), `S-A-${i}`));
    t.diagnostic(`${took.map(Math.round).join(', ')} ms`);
    await site.done();
  });

  it('also when the connection that listens is a black hole', async () => {
    const site = await backends.shared({ n: 3 });
    assert.ok(site.ledgerLink.blackholeThose(/LISTEN/i) >= 1, 'a connection listens');
    for (let i = 1; i <= 3; i++) await follows(site, site.two, site.one, `S-A-${i}`);
    await site.done();
  });

  it('also when it was ended, and when every message to it is late', async () => {
    const site = await backends.shared({ n: 3 });
    backends.postgres.terminateBackends(site.database, "query ILIKE '%listen%'");
    for (let i = 1; i <= 3; i++) await follows(site, site.two, site.one, `S-A-${i}`);
    await site.done();
  });

  it('an idempotent repeat through another server has the same bytes and no second effect', async () => {
    const site = await backends.shared({ n: 3 });
    const { one, two, event } = site;
    const headers = { 'Idempotency-Key': newKey() };
    const ask = (server, seat, key) => patiently(() => server.hold(event, seat, {}, key));
    const first = await ask(one, 'S-A-1', headers);
    assertOk(first, 201);
    assertReplay(await ask(two, 'S-A-1', headers), first);
    assertProblem(await ask(two, 'S-A-2', headers), 422, 'idempotency_mismatch');
    const sale = { 'Idempotency-Key': newKey() };
    const confirm = (server) => patiently(() => server.post(`/v1/holds/${first.json.id}/confirm`, { fence: first.json.fence }, sale));
    const sold = await confirm(two);
    assertOk(sold, 201);
    assertReplay(await confirm(one), sold);
    // at the same moment, through both servers
    for (let i = 10; i < 30; i++) {
      const key = { 'Idempotency-Key': newKey() };
      const answers = await Promise.all([one, two, one, two].map((server) => ask(server, `S-A-${i}`, key)));
      assert.deepEqual([...new Set(answers.map(({ status, text }) => `${status} ${text}`))].length, 1, answers.map(({ text }) => text).join('\n'));
      assert.equal(answers[0].status, 201);
    }
    assert.equal(site.countHolds(), 21);
    await site.done();
  });

  it('one seat, asked of every server at the same moment, has one owner', async () => {
    const site = await backends.shared({ n: 3 });
    const { event } = site;
    for (let i = 1; i <= 15; i++) {
      const answers = await Promise.all(Array.from({ length: 12 }, (_, k) => patiently(() => site.servers[k % 3].hold(event, `S-A-${i}`))));
      assert.equal(answers.filter(({ status }) => status === 201).length, 1, `S-A-${i}`);
      for (const answer of answers) if (answer.status !== 201) assertProblem(answer, 409, 'seat_taken');
    }
    const floor = await Promise.all(Array.from({ length: 60 }, (_, k) => patiently(() => site.servers[k % 3].ask(event, { areas: { Floor: 1 } }))));
    assert.equal(floor.filter(({ status }) => status === 201).length, 20, 'I2');
    await site.done();
  });

  it('when several servers sweep, one of them ends each hold, whichever server made it', async () => {
    const site = await backends.shared({ n: 3 });
    const { event } = site;
    const sum = async () => (await Promise.all(site.servers.map((server) => server.metric('holdfast_holds_expired_total')))).reduce((a, b) => a + b, 0);
    const before = await sum();
    await Promise.all(Array.from({ length: 60 }, (_, i) => site.servers[i % 3].grant(event, `S-${'AB'[i % 2]}-${1 + (i >> 1)}`, { ttl_ms: 1000 })));
    const free = Object.fromEntries(Object.keys(await site.one.map(event)).map((seat) => [seat, '.']));
    await sleep(1000);
    await assertAllDraw(site.servers, event, free);
    await until('all of them are counted', async () => await sum() >= before + 60);
    assert.equal(await sum(), before + 60);
    await site.done();
  });

  // The times stored in the ledger are from before the clock was set back.
  it('a ledger whose clock was set back stands still until that has caught up', async () => {
    const site = await backends.shared({ n: 3 });
    const { one, two, event } = site;
    const before = await one.grant(event, 'S-A-1');
    backends.postgres.sql('-d', site.database, '-c', 'UPDATE event_clock SET now = now + 3000');
    const hold = await two.grant(event, 'S-A-2', { ttl_ms: 1000 });
    assert.ok(ms(hold.created_at) >= ms(before.created_at) + 3000, `${hold.created_at} after ${before.created_at}`);
    await sleep(1500);
    const { status } = assertOk(await one.get(`/v1/holds/${hold.id}`));
    if (Date.now() < ms(hold.expires_at)) assert.equal(status, 'active', 'it lives longer');
    await until('it ends', async () => (await two.hold(event, 'S-A-2')).status === 201, 120_000, 50);
    assert.ok(Date.now() >= ms(hold.expires_at), 'not before its time');
    await site.done();
  });

  it('a server whose clock is an hour off neither kills nor prolongs a hold', async () => {
    const dir = tempDir();
    const source = path.join(dir, 'step.c');
    fs.writeFileSync(source, `#define _GNU_SOURCE
      #include <dlfcn.h>
      #include <stdlib.h>
      #include <time.h>
      int clock_gettime(clockid_t id, struct timespec *ts) {
        static int (*real)(clockid_t, struct timespec *);
        if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
        int rc = real(id, ts);
        if (id == CLOCK_REALTIME) ts->tv_sec += atoi(getenv("STEP_S"));
        return rc;
      }`);
    const library = path.join(dir, 'step.so');
    execFileSync('gcc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl']);
    const site = await backends.pair({ n: 3, through: 0, args: RECONCILE, envs: ['3600', '-3600'].map((step) => (
      { LD_PRELOAD: library, STEP_S: step, ...sanitizer('detect_leaks=0', 'verify_asan_link_order=0') })) });
    const { event, servers } = site;
    const holds = [];
    for (const [i, server] of servers.entries()) {
      const asked = Date.now();
      const hold = await server.grant(event, `S-A-${1 + i}`, { ttl_ms: 5000 });
      const made = ms(hold.expires_at) - 5000;
      assert.ok(made > asked - 1000 && made < Date.now() + 1000, `${hold.expires_at} is not by the ledger's clock`);
      holds.push(hold);
    }
    for (const server of servers) {
      const answer = await patiently(() => server.hold(event, 'S-A-3', { ttl_ms: 5000 }));
      if (Date.now() < ms(holds[2].expires_at)) assertProblem(answer, 409, 'seat_taken');
    }
    await sleep(1000);
    for (const hold of holds) {
      for (const server of servers) {
        const { status } = assertOk(await server.get(`/v1/holds/${hold.id}`));
        if (Date.now() < ms(hold.expires_at)) assert.equal(status, 'active');
      }
    }
    await sleep(ms(holds[2].expires_at) - Date.now() + 300);
    for (const server of servers) {
      for (const hold of holds) assertProblem(await patiently(() => server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence })), 410, 'hold_expired');
    }
    for (const [i, server] of servers.entries()) {
      await until('the seat is free', async () => (await server.hold(event, `S-A-${1 + i}`)).status === 201);
    }
    await site.done();
  });
});
