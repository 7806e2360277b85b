// Two servers share PostgreSQL, Redis and the payment provider.  One of them is killed, or stopped for longer than its
// lease, in the middle of a call to the provider: the other takes the job over when the lease has run out, under the
// same idempotency key, and the provider acts once.
// backends: own

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startPostgres } from '../support/postgres.mjs';
import { startRedis } from '../support/redis.mjs';
import { assertTook, newKey, reap, sleep, until } from '../support/server.mjs';
import { CARDS, openTill } from '../support/till.mjs';

const TAKE_OVER_MS = 45_000; // a lease of 25 s, and the repetition of a call that is still being held
const HELD = 'timeout_after'; // the provider does what it is asked to, and does not answer

describe('a server that holds the lease of a job', () => {
  let postgres;
  let redis;
  const runs = {};

  before(async () => {
    [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    let gates = 0;
    const begin = async (scene) => {
      const till = await openTill({ n: 2, ledger: postgres.url(postgres.createDatabase()), gate: `${redis.url}/${gates++}`, alone: true });
      try { await scene(till); } finally { await till.close(); }
    };
    // They wait for their leases at the same time.
    for (const [name, scene] of Object.entries({ killedInCreate, stoppedInCreate, stoppedInRefund })) {
      runs[name] = begin(scene);
      runs[name].catch(() => {});
    }
  });
  after(async () => { await redis?.stop(); await postgres?.stop(); await reap(); });

  const owedJob = (till) => till.servers[1].sql('SELECT kind, leased_until FROM jobs WHERE status = 1 AND kind < 6')[0];
  const holdCall = (till, route) => till.sandbox.faults({ hold_ms: 25_000, fail_next: { route, mode: HELD, times: 1 } });

  // Books a hold through the first server, whose call to the provider is held once the intent has been made.
  async function bookAndHang(till) {
    const [first] = till.servers;
    const event = await till.event({ hold_ttl_ms: 600_000 });
    const hold = await till.hold(event, 'S-A-1');
    await holdCall(till, 'create');
    first.post('/v1/bookings', { hold: hold.id }, { 'Idempotency-Key': newKey() }).catch(() => {});
    await until('the provider has made the intent', async () => (await till.sandbox.books()).payments.length === 1);
    await till.launchOthers();
    return hold;
  }

  // Pays through the other server, which has taken the job over, not before the lease ended.
  async function payAtTheOther(till, hold, leasedUntil) {
    const other = till.servers[1];
    const { booking } = await other.read(`/v1/holds/${hold.id}`);
    const began = performance.now();
    const payable = await until('the other server has taken the job over', async () => {
      const now = await other.read(`/v1/bookings/${booking}`);
      return now.payment.client_secret && now;
    });
    assertTook(performance.now() - began, TAKE_OVER_MS, 'the take-over');
    assert.ok(Date.now() >= leasedUntil, 'it did not wait for the end of the lease');
    assert.equal((await till.pay(payable, CARDS.good)).status, 200);
    await until('it is confirmed', async () => (await other.read(`/v1/bookings/${booking}`)).status === 'confirmed', 120_000, 50);
    return payable;
  }

  async function assertPaidOnce(till) {
    await till.settled();
    const { payments, currencies } = await till.sandbox.books();
    assert.equal(payments.length, 1);
    assert.equal(currencies.usd.captured, 6500);
    await till.verify();
  }

  async function killedInCreate(till) {
    const hold = await bookAndHang(till);
    const { leased_until: leasedUntil } = owedJob(till);
    assert.ok(leasedUntil > Date.now());
    await till.servers[0].kill9();
    till.down = till.servers[0];
    await payAtTheOther(till, hold, leasedUntil);
    await assertPaidOnce(till);
  }

  async function stoppedInCreate(till) {
    const [first, other] = till.servers;
    const hold = await bookAndHang(till);
    const { leased_until: leasedUntil } = owedJob(till);
    first.pause();
    till.down = first;
    try {
      const booking = await payAtTheOther(till, hold, leasedUntil);
      first.resume();
      await until('it answers again', async () => (await first.get(`/v1/bookings/${booking.id}`)).json?.status === 'confirmed');
      assert.equal((await other.read(`/v1/bookings/${booking.id}`)).status, 'confirmed');
    } finally { first.resume(); }
    till.down = null;
    await assertPaidOnce(till);
  }

  async function stoppedInRefund(till) {
    const [first, other] = till.servers;
    const event = await till.event({ hold_ttl_ms: 600_000 });
    const booking = await till.book(await till.hold(event, 'S-A-1'));
    assert.equal((await till.pay(booking, CARDS.good)).status, 200);
    await till.decided(booking);
    await holdCall(till, 'refund');
    assert.equal((await first.post(`/v1/bookings/${booking.id}/refund`, { amount: 500 }, { 'Idempotency-Key': newKey() })).status, 200);
    await until('the provider has refunded', async () => (await till.sandbox.books()).currencies.usd.refunded === 500);
    await till.launchOthers();
    first.pause();
    try {
      await sleep((owedJob(till)?.leased_until ?? 0) - Date.now());
      const began = performance.now();
      await until('the other server has taken the refund over', () => !owedJob(till));
      assertTook(performance.now() - began, TAKE_OVER_MS, 'the take-over');
      first.resume();
      await until('it answers again', async () => (await first.get('/readyz')).status === 200);
    } finally { first.resume(); }
    await till.settled();
    assert.equal((await till.sandbox.books()).currencies.usd.refunded, 500);
    assert.equal(other.sql('SELECT count(*) AS n FROM refunds')[0].n, 1);
    await till.verify();
  }

  it('is killed while it creates an intent: the other one takes over after the lease, and there is one intent', () => runs.killedInCreate);
  it('is stopped while it creates an intent: the buyer pays at the other one, and it does no harm when it resumes', () => runs.stoppedInCreate);
  it('is stopped while it refunds: the other one takes over, and the money goes back once', () => runs.stoppedInRefund);
});
