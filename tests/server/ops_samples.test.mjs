// GET /v1/ops/samples: the last hour of the server's own metrics.  tests/unit/test_samples.c has the ring and its arithmetic.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk } from '../support/expect.mjs';
import { reap, start, until } from '../support/server.mjs';

const flat = (series) => Object.entries(series).flatMap(([name, values]) => (Array.isArray(values) ? [[name, values]]
  : Object.entries(values).map(([kind, of]) => [`${name}.${kind}`, of])));

describe('samples', () => {
  let server, event;
  before(async () => {
    server = await start();
    event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 4 }] });
  });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const read = async (query = '') => assertOk(await server.get(`/v1/ops/samples${query}`));
  // Waits for a sample of this moment or later, and resolves to those since.
  const next = async () => {
    const { now_ms } = await read();
    return until('there is another sample', async () => {
      const samples = await read(`?after=${now_ms}`);
      return samples.at.length > 0 && samples;
    }, undefined, 100);
  };

  it('samples tell what happened since the ones before', async () => {
    await next(); // how much time the first one covers is not said
    const hold = await server.grant(event, ['S-A-1', 'S-A-2']);
    for (let i = 0; i < 3; i++) assert.equal((await server.hold(event, ['S-A-1'])).status, 409);
    assertOk(await server.post(`/v1/holds/${hold.id}/renew`, {}));
    await next();
    const { at, series } = await read();
    // The requests may be divided between two samples.
    const sum = (name) => Math.round(series[name].reduce((all, rate, i) => all + rate * (i ? at[i] - at[i - 1] : 0) / 1000, 0));
    assert.equal(sum('holds_granted_per_s'), 1);
    assert.equal(sum('holds_taken_per_s'), 3);
    assert.equal(sum('refused_by_view_per_s'), 3);
    assert.equal(sum('refused_by_ledger_per_s'), 0);
    assert.equal(sum('renewals_per_s'), 1);
    assert.ok(sum('requests_per_s') >= 6);
    assert.equal(series.holds_active.at(-1), 1);
    const i = series.holds_granted_per_s.findIndex((rate) => rate > 0);
    assert.ok(series.hold_p50_ms[i] > 0 && series.hold_p50_ms[i] <= series.hold_p99_ms[i], `${series.hold_p50_ms[i]} ms`);
    assert.ok(series.commit_p99_ms[i] > 0);
    assert.ok(series.batch_commands_mean[i] >= 1);
    assert.equal(series.jobs_pending.refund.at(-1), 0);
  });

  it('every series has one number or null per sample, and none of holds that nobody asked for', async () => {
    const quiet = await next();
    const from = Date.now();
    const { every_ms, now_ms, at, series } = await read();
    assert.equal(every_ms, 5000);
    assert.ok(now_ms > from - 1000 && now_ms < Date.now() + 1000, `${now_ms}`);
    for (const [name, values] of flat(series)) {
      assert.equal(values.length, at.length, name);
      for (const value of values) assert.ok(value === null || (Number.isFinite(value) && value >= 0), `${name} ${value}`);
    }
    for (let i = 1; i < at.length; i++) assert.ok(at[i] > at[i - 1], `${at}`);
    assert.equal(quiet.series.hold_p99_ms.at(-1), null);
    assert.equal(quiet.series.holds_granted_per_s.at(-1), 0);
  });

  it('after leaves out what the caller has, and must be a number', async () => {
    const { at } = await read();
    assert.deepEqual((await read(`?after=${at[0]}`)).at.slice(0, at.length - 1), at.slice(1));
    assert.deepEqual((await read(`?after=${Number.MAX_SAFE_INTEGER}`)).at, []);
    for (const after of ['-1', 'x', '', '1.5', '2026-11-15T00:00:00Z']) {
      assertInvalid(await server.get(`/v1/ops/samples?after=${after}`), 'after');
    }
  });
});
