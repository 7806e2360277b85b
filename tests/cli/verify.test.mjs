// `holdfast verify` says what is wrong in the words of the API: events and seats by their ids, statuses by their
// names, and no secret of a hold or booking.
// backends: sqlite

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { holdfast } from '../support/cli.mjs';
import { reap, sqliteQuery, start, tempDir } from '../support/server.mjs';

describe('holdfast verify on a damaged ledger', () => {
  let event;
  let held;
  let sold;
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
    await server.stop();
    const change = (sql) => sqliteQuery(path.join(dir, 'holdfast.db'), sql, { readOnly: false });
    change('UPDATE seats SET status = 3 WHERE seat = (2 << 32) + 13');
    change('UPDATE areas SET held = 3 WHERE event = 2 AND area = 1');
    change('UPDATE holds SET status = 3 WHERE seats = \'[5]\'');
    change('UPDATE events SET status = 2 WHERE event = 2');
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
  });

  it('has no number of a row and no secret in it', () => {
    assert.doesNotMatch(report.stdout, /\b(event|seat|hold|booking|area|status|channel) \d/);
    for (const { id } of [held, sold]) assert.ok(!report.stdout.includes(id.slice(16)), 'a secret');
  });
});
