// `holdfast verify` says what is wrong in the words of the API: events and seats by their ids, statuses by their
// names, and no secret of a hold or booking.
// backends: sqlite

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CARD } from '../support/checkout.mjs';
import { holdfast } from '../support/cli.mjs';
import { assertOk } from '../support/expect.mjs';
import { reached, sell } from '../support/payments.mjs';
import { reap, sqliteQuery, start, tempDir } from '../support/server.mjs';

describe('holdfast verify on a damaged ledger', () => {
  let event;
  let held;
  let sold;
  let waiting, offered; // entries of a waiting list
  let report; // what verify printed
  before(async () => {
    const dir = tempDir();
    const server = await start({ dir });
    await server.createEvent();
    event = await server.createEvent({
      sections: [{ name: 'Balcony', price: 1, rows: 2, seats_per_row: 4 }, { name: 'Ränge', price: 1, rows: [{ name: 'I', seats: 3 }, { name: 'II', seats: 3 }] }],
      areas: [{ name: 'Floor', price: 1, capacity: 9 }, { name: 'Roof', price: 1, capacity: 9 }],
    });
    held = await server.take(event, { seats: ['Balcony-B-2'], areas: { Roof: 2 } });
    sold = await server.take(event, { seats: ['Ränge-II-3', 'Balcony-A-1'] });
    assert.equal((await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence })).status, 201);
    const wanted = await server.createEvent({ waitlist: {}, sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 2 }] });
    const [taken] = [await server.grant(wanted, 'S-A-1'), await server.grant(wanted, 'S-A-2')];
    const join = async () => assertOk(await server.post('/v1/waitlist', { event: wanted.id, best_available: { quantity: 1 } }), 201);
    [offered, waiting] = [await join(), await join()];
    await server.del(`/v1/holds/${taken.id}`);
    offered = await server.read(`/v1/waitlist/${offered.id}`);
    await server.stop();
    const change = (sql) => sqliteQuery(path.join(dir, 'holdfast.db'), sql, { readOnly: false });
    change('UPDATE seats SET status = 3 WHERE seat = (2 << 32) + 13');
    change('UPDATE areas SET held = 3 WHERE event = 2 AND area = 1');
    change('UPDATE holds SET status = 3 WHERE seats = \'[5]\'');
    change('UPDATE events SET status = 2 WHERE event = 2');
    change('UPDATE waitlist SET status = 5 WHERE number = 2');
    change('UPDATE waitlist SET hold = hold - 1 WHERE number = 1');
    report = await holdfast(undefined, ['verify', '--ledger', `sqlite:${path.join(dir, 'holdfast.db')}`]);
  });
  after(reap);

  const masked = (id, prefix = 'hold') => `${prefix}_${id.slice(5, 16)}${'*'.repeat(17)}`;

  it('names the event, the seat and its statuses', () => {
    assert.equal(report.code, 1, report.stderr);
    const lines = report.stdout.split('\n');
    const line = (text) => lines.find((one) => one.includes(text)) ?? assert.fail(`nothing says "${text}": ${report.stdout}`);
    const seat = `${event.id}, seat Ränge-II-3: its row says blocked by ${masked(sold.id)}, fence ${sold.fence}, no channel; the log says booked by ${masked(sold.id)}`;
    assert.ok(line('the log, folded, gives every seat').includes(seat), report.stdout);
    assert.ok(line('are the seats booked').includes(`seat Ränge-II-3: blocked by ${masked(sold.id)}, sold by ${masked(sold.id, 'bkg')}`), report.stdout);
    assert.ok(line('sums of its live holds').includes(`${event.id}, area Roof: 3 held and 0 booked`), report.stdout);
    assert.ok(line('gives every hold').includes(`${masked(held.id)}: it is released, fence ${held.fence}`), report.stdout);
    assert.ok(line('gives every event\'s status').includes(`${event.id}: it is closed, by the log open`), report.stdout);
    assert.ok(line('a held or booked seat').includes(`seat Balcony-B-2: held by ${masked(held.id)}, which is released`), report.stdout);
    assert.ok(line('gives every entry').includes(`${masked(waiting.id, 'wait')}: it is left, with no hold`), report.stdout);
    assert.ok(line('each offered one').includes(`${masked(offered.hold)}: it was made for the waiting list, and its entry is offered`), report.stdout);
  });

  it('has no number of a row and no secret in it', () => {
    assert.doesNotMatch(report.stdout, /\b(event|seat|hold|booking|area|status|channel|entry) \d/);
    for (const { id } of [held, sold, waiting, offered]) assert.ok(!report.stdout.includes(id.slice(16)), 'a secret');
  });
});

describe('holdfast verify of payments', () => {
  let url;
  let lost;
  let kept;
  const change = (sql) => sqliteQuery(url.slice('sqlite:'.length), sql, { readOnly: false });
  const masked = (id) => `${id.slice(0, 15)}${'*'.repeat(17)}`;
  before(async () => {
    const dir = tempDir();
    url = `sqlite:${path.join(dir, 'holdfast.db')}`;
    const server = await start({ dir });
    const event = await server.createEvent();
    [lost, kept] = [await sell(server, event, ['S-A-1'], { email: 'ann@shop.example' }, CARD.refundFails), await sell(server, event, ['S-A-2'])];
    assertOk(await server.post(`/v1/bookings/${lost.id}/cancel`, {}));
    await reached(server, lost, 'its refund has failed', ({ payment }) => payment.status === 'refund_failed');
    await server.stop();
  });
  after(reap);

  it('says what is still owed when no refund is tried again, and that this is no violation', async () => {
    // The two other tries are a day away: they fail here.
    change(`INSERT INTO refunds SELECT booking, refund + 900, payment, amount, 4, 1, 're_2', error, created_at, updated_at FROM refunds WHERE status = 4;
      UPDATE refunds SET status = 4 WHERE status = 1; DELETE FROM jobs`);
    const text = await holdfast(undefined, ['verify', '--ledger', url]);
    assert.equal(text.code, 0, text.stdout);
    const line = text.stdout.split('\n').find((one) => /^I9 +owed +1 payments /.test(one)) ?? assert.fail(text.stdout);
    assert.ok(line.includes(`${masked(lost.id)}: of ${lost.amount} received ${lost.amount} must still go back, 3 refunds have failed`), line);
    const { ok, owed, owed_examples: examples } = JSON.parse((await holdfast(undefined, ['verify', '--json', '--ledger', url])).stdout);
    assert.deepEqual([ok, owed, examples.length], [true, 1, 1]);
  });

  it('names bookings, and no secret of them, of their payments or of their buyers', async () => {
    change(`UPDATE payments SET received = 1 WHERE status = 7; INSERT INTO jobs SELECT booking, payment, 2, 1, payment, 0, 0, 0, x'00', 0, 0, 0, 1, 1, 0, 0, NULL FROM payments`);
    const { code, stdout } = await holdfast(undefined, ['verify', '--ledger', url]);
    assert.equal(code, 1);
    assert.ok(stdout.includes(`${masked(kept.id)}: it is confirmed, and 1 of ${kept.amount} was received`), stdout);
    assert.ok(stdout.includes('its payment succeeded and its hold confirmed; its job is cancel instead of none'), stdout);
    assert.doesNotMatch(stdout, /\b(event|seat|hold|booking|area|status|channel|payment|refund) \d|pi_|re_|@/);
    for (const { id, payment } of [lost, kept]) for (const secret of [id.slice(15), payment.id.slice(15)]) assert.ok(!stdout.includes(secret), 'a secret');
  });
});
