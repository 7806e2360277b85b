// The gate may be lost, empty or wrong at any moment: that can cost speed, but never a seat.
// backends: own
// time limit: 480 s

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { assertProblem, ms } from '../support/expect.mjs';
import { assertAllDraw, isDegraded, startBackends, readiness, RECONCILE, recovered, timed } from '../support/scale.mjs';
import { assertTook, patiently, sleep, until } from '../support/server.mjs';

const WITHIN_MS = 5000; // a gate is waited for 250 ms

let backends; // of all tests of this file
before(async () => { backends = await startBackends(); });
afterEach(() => backends?.sweep());
after(() => backends?.close());

describe('trouble with the gate', () => {
  // Asserts that both servers grant and refuse by the ledger while the gate is `broken`, and recover by themselves.
  async function goesOnWithout(site, breakIt, heal) {
    const { one, two, event } = site;
    const errors = await one.metric('holdfast_gate_errors_total') ?? 0;
    await recovered(one); // if it has just missed its gate, on a busy machine, it does not ask it again at once
    const early = await site.assertOneOwner('S-A-1');
    await breakIt();
    for (let i = 2; i <= 6; i++) {
      const { answer, ms } = await timed(patiently(() => one.hold(event, `S-A-${i}`)));
      assert.equal(answer.status, 201, answer.text);
      assertTook(ms, WITHIN_MS, 'a hold without the gate');
      assertProblem(await patiently(() => two.hold(event, `S-A-${i}`)), 409, 'seat_taken');
    }
    assertProblem(await patiently(() => one.hold(event, 'S-A-1')), 409, 'seat_taken');
    assert.equal((await patiently(() => one.del(`/v1/holds/${early.id}`))).status, 204);
    const next = await until('the seat can be had elsewhere', async () => {
      const answer = await two.hold(event, 'S-A-1');
      return answer.status === 201 && answer.json;
    });
    assert.ok(next.fence > early.fence);
    assert.equal((await patiently(() => two.post(`/v1/holds/${next.id}/confirm`, { fence: next.fence }))).status, 201);
    await until('it says what is missing', () => isDegraded(one));
    assert.equal((await readiness(one)).status, 200);
    await until('errors are counted', async () => await one.metric('holdfast_gate_errors_total') > errors);

    await heal();
    await Promise.all(site.servers.map((server) => recovered(server)));
    await site.assertOneOwner('S-B-1');
    assert.equal((await one.get('/readyz')).status, 200);
  }

  it('a Redis that refuses connections', async () => {
    const site = await backends.shared({ args: RECONCILE });
    await goesOnWithout(site, () => backends.redis.stop(), () => backends.redis.start());
    await site.done();
  });

  it('an idle server notices that Redis is gone, too', async () => {
    const site = await backends.shared();
    await backends.redis.stop();
    await Promise.all(site.servers.map((server) => until('it is degraded', () => isDegraded(server))));
    await backends.redis.start();
    await Promise.all(site.servers.map((server) => recovered(server)));
    await site.done();
  });

  it('a Redis that does not answer', async () => {
    const site = await backends.shared({ args: RECONCILE });
    await goesOnWithout(site, () => backends.redis.pause(), () => backends.redis.resume());
    await site.done();
  });

  it('a link that swallows everything, and one that is too slow', async () => {
    const site = await backends.shared({ args: RECONCILE });
    await goesOnWithout(site, () => site.gateLink.blackhole(), () => site.gateLink.restore());
    await site.done();
    const slow = await backends.shared({ args: RECONCILE });
    await goesOnWithout(slow, () => slow.gateLink.delay(2000), () => slow.gateLink.restore());
    await slow.done();
  });

  it('a gate that was flushed sells nothing twice, and is filled again', async () => {
    const site = await backends.shared({ args: RECONCILE });
    const { one, two, event } = site;
    const held = await one.grant(event, ['S-A-1', 'S-A-2']);
    await until('the gate has the seats', () => Object.keys(site.seatKeys()).length === 2);
    site.gateCli('FLUSHDB');
    for (const server of site.servers) assertProblem(await patiently(() => server.hold(event, 'S-A-1')), 409, 'seat_taken');
    assertProblem(await patiently(() => two.hold(event, ['S-A-2', 'S-A-3'])), 409, 'seat_taken');
    await two.grant(event, 'S-A-3');
    await until('the reconciler has filled it', () => Object.values(site.seatKeys()).filter((value) => /^\d+$/.test(value)).length === 3);
    assert.equal((await patiently(() => one.post(`/v1/holds/${held.id}/confirm`, { fence: held.fence }))).status, 201);
    await site.done();
  });

  it('a Redis that restarts empty, in the middle of a sale', async () => {
    const site = await backends.shared({ args: RECONCILE });
    const { one, two, event } = site;
    const owners = new Map();
    const buy = async (server, seat) => {
      const answer = await patiently(() => server.hold(event, seat));
      if (answer.status === 201) {
        assert.ok(!owners.has(seat), `${seat} has two owners`);
        owners.set(seat, answer.json);
      } else assertProblem(answer, 409, 'seat_taken');
    };
    const seats = Array.from({ length: 50 }, (_, i) => `S-A-${i + 1}`);
    const sale = Promise.all([one, two].map(async (server) => { for (const seat of seats) await buy(server, seat); }));
    await backends.redis.restart();
    await sale;
    assert.equal(owners.size, 50);
    await Promise.all(site.servers.map((server) => recovered(server)));
    await site.done();
  });

  it('a gate that says yes does not decide: the ledger says no', async () => {
    const site = await backends.shared();
    const { one, two, event } = site;
    await one.grant(event, 'S-A-1');
    await one.grant(event, 'S-A-2', { ttl_ms: 60_000 });
    site.gateCli('FLUSHDB');
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => patiently(() => site.servers[i % 2].hold(event, [`S-A-${1 + i % 2}`, `S-B-${i + 1}`]))));
    for (const answer of answers) assertProblem(answer, 409, 'seat_taken');
    await assertAllDraw([two], event, await one.map(event));
    assert.deepEqual(await one.counts(event), { available: 118, held: 2, booked: 0, blocked: 0 });
    await site.done();
  });

  it('is asked about an event that another server has written to, and about no other', async () => {
    const site = await backends.shared({ args: RECONCILE });
    const { one, two, event } = site;
    let seat = 0;
    const nextSeat = () => `S-A-${++seat}`;
    const metric = async (name) => await one.metric(name) ?? 0;
    // Exchanges for one hold; measured again if Redis stood still, since the gate was not asked then.
    const exchanges = async (happened) => {
      for (;;) {
        await recovered(one);
        const errors = await metric('holdfast_gate_errors_total');
        await happened?.();
        const before = await metric('holdfast_gate_exchanges_total');
        await one.grant(event, nextSeat());
        await until('the gate knows the hold', () => /^\d+$/.test(site.seatKeys()[site.seatKey(seat - 1)]));
        const after = await metric('holdfast_gate_exchanges_total');
        if (await metric('holdfast_gate_errors_total') === errors) return after - before;
      }
    };
    const anotherWrites = async () => {
      const { held } = await one.counts(event);
      await two.grant(event, nextSeat());
      await until('it has heard of it', async () => (await one.counts(event)).held === held + 1);
    };
    await one.grant(event, nextSeat());
    await sleep(1500); // the reconciler has looked at it meanwhile, which is no reason to ask
    assert.equal(await exchanges(), 1, 'a settlement');
    assert.equal(await exchanges(anotherWrites), 2, 'a claim and a settlement');
    assert.equal(await exchanges(), 1, 'a settlement');
    await site.done();
  });

  it('a claim that was lost between gate and ledger is given back', async () => {
    const site = await backends.shared();
    const { one, two, event } = site;
    site.ledgerLink.cut();
    assertProblem(await one.hold(event, 'S-A-1'), 503, 'ledger_unavailable');
    await until('another gets the seat', async () => (await two.hold(event, 'S-A-1')).status === 201, 120_000, 100);
    await site.done();
  });
});

describe('the reconciler', () => {
  it('repairs what the gate has wrong, counts it, and only one server at a time does', async () => {
    const site = await backends.shared({ args: RECONCILE });
    const { two, event } = site;
    const sold = await two.grant(event, 'S-A-1');
    const repairs = async () => (await Promise.all(site.servers.map((server) => server.metric('holdfast_reconcile_repairs_total')))).reduce((sum, n) => sum + (n ?? 0), 0);
    await until('the gate has the hold', () => Object.keys(site.seatKeys()).length === 1);
    await sleep(1000); // if the gate stood still, the reconciler wrote the hold there, and counts that
    const before = await repairs();
    await sleep(1500);
    assert.equal(await repairs(), before, 'nothing to repair in a gate that is right');

    const held = site.seatKeys();
    const [key] = Object.keys(held);
    site.gateCli('SET', site.seatKey(7), `${Number(held[key]) + 1000}`, 'PX', '600000'); // a hold that does not exist
    site.gateCli('DEL', key); // a hold that the gate has lost
    site.gateCli('SET', site.seatKey(9), 'what', 'PX', '600000'); // an unreadable entry
    await until('the gate is right again', () => {
      const now = site.seatKeys();
      return Object.keys(now).length === 1 && now[key] === held[key];
    });
    await until('the repairs are counted', async () => await repairs() >= before + 3);
    const kinds = (await Promise.all(site.servers.map((server) => server.get('/metrics')))).map(({ text }) => text).join('');
    assert.match(kinds, /holdfast_reconcile_repairs_total\{kind="[a-z_]+"\} [1-9]/);
    await two.grant(event, 'S-A-8'); // seat 7, which only the gate believed to be held
    assert.equal((await patiently(() => two.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }))).status, 201);
    await site.done();
  });

  it('a seat that only the gate holds is sold again once it was repaired', async () => {
    const site = await backends.shared({ args: RECONCILE });
    const { one, event } = site;
    site.gateCli('SET', site.seatKey(4), '999999999999999', 'PX', '600000');
    await until('the seat can be held', async () => (await one.hold(event, 'S-A-5')).status === 201, 120_000, 50);
    await site.done();
  });

  it('an entry that was put back ends before its hold does', async () => {
    const site = await backends.shared({ args: RECONCILE });
    const { one, event } = site;
    const hold = await one.grant(event, 'S-A-1');
    const isThere = () => /^\d+$/.test(site.seatKeys()[site.seatKey(0)]);
    await until('the gate has the hold', isThere);
    site.gateCli('FLUSHDB');
    await until('it has it again', isThere);
    const late = Number(site.gateCli('PEXPIRETIME', site.seatKey(0))) - ms(hold.expires_at);
    assert.ok(late < 0, `it ends ${late} ms after`);
    await site.done();
  });

  // Without index scans, PostgreSQL returns rows in the order in which they were written.
  it('finds nothing wrong with a view, whatever plans the ledger makes', async () => {
    const site = await backends.shared({ args: RECONCILE });
    backends.postgres.sql('-c', `ALTER DATABASE ${site.database} SET enable_indexscan = off`);
    backends.postgres.terminateBackends(site.database);
    // A session that has not ended yet may take the request and fail it with 503.
    await until('the ledger answers', async () => (await site.one.hold(site.event, 'S-A-20')).status === 201);
    for (let i = 17; i > 0; i -= 3) await site.one.grant(site.event, `S-A-${i}`);
    await sleep(2500);
    for (const server of site.servers) {
      assert.match((await server.get('/metrics')).text, /^holdfast_reconcile_repairs_total\{kind="view"\} 0$/m);
    }
    await site.done({ spent: true });
  });

  it('a server that lost the gate leaves the comparing to others, though it came first', async () => {
    const site = await backends.pair({ args: RECONCILE });
    const { one, two, event } = site;
    await sleep(1500); // the first server has compared once by then
    site.gateLink.blackhole();
    assert.equal((await patiently(() => one.hold(event, 'S-A-1'))).status, 201);
    await until('it knows', () => isDegraded(one));
    site.gateCli('SET', site.seatKey(4), '999999999999999', 'PX', '600000');
    await until('the seat can be held', async () => (await two.hold(event, 'S-A-5')).status === 201, 120_000, 50);
    await site.done();
  });
});
