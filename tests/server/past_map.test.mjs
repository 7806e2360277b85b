// GET /v1/events/{e}/seats?at=: the map as it was at a past moment.  The suite records the map at many moments of a
// random history, and asks for all of them afterwards.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readAudit } from '../support/audit.mjs';
import { assertInvalid, assertOk, assertProblem } from '../support/expect.mjs';
import { seed, seededRandom } from '../support/random.mjs';
import { areasOf, itOnce, mapOf, reap, sleep, start, until } from '../support/server.mjs';

const LETTERS = { available: '.', held: 'h', booked: 'b', blocked: 'x' };

describe('the map at a past moment', () => {
  let server, event, moments;
  before(async () => { server = await start({ args: ['--keep', '1s'] }); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const url = (at, each = event) => `/v1/events/${each.id}/seats?at=${encodeURIComponent(at)}`;
  const past = async (at, each) => assertOk(await server.get(url(at, each)));

  // The ledger's time.
  const now = async (each = event) => (await server.read(`/v1/events/${each.id}/seats/S-A-1`)).at;

  // Resolves to a moment and the map of it: nothing changed within some milliseconds on either side.
  async function record() {
    for (;;) {
      const map = await server.read(`/v1/events/${event.id}/seats`);
      await sleep(3);
      const at = await now();
      await sleep(3);
      const again = await server.read(`/v1/events/${event.id}/seats`);
      if (again.seq === map.seq) return { at, map };
    }
  }

  const actions = (random, live, sold) => {
    const seat = () => `S-${random.oneOf(['A', 'B', 'C'])}-${1 + random.below(12)}`;
    const seats = () => [...new Set([seat(), seat(), seat()])];
    const take = (list) => list.splice(random.below(list.length), 1)[0];
    const hold = async (fields) => {
      const answer = await server.ask(event, fields);
      if (answer.status === 201) live.push(answer.json);
    };
    const post = (path, body = {}) => server.post(`/v1/events/${event.id}/${path}`, body);
    return [
      () => hold({ seats: seats() }),
      () => hold({ seats: seats(), areas: { Floor: 1 + random.below(3) }, ttl_ms: 1000 }),
      () => hold({ areas: { Floor: 2 } }),
      () => hold({ best_available: { quantity: 2 } }),
      () => hold({ seats: seats().slice(0, 1), channel: 'house' }),
      async () => { if (live.length) await server.del(`/v1/holds/${take(live).id}`); },
      async () => { if (live.length) await server.post(`/v1/holds/${random.oneOf(live).id}/renew`, { ttl_ms: 1500 }); },
      async () => {
        if (!live.length) return;
        const { id, fence } = random.oneOf(live);
        const answer = await server.patch(`/v1/holds/${id}`, { fence, add: { seats: [seat()], areas: { Floor: 1 } } });
        if (answer.status === 200) live.splice(live.findIndex((one) => one.id === id), 1, answer.json);
      },
      async () => {
        if (!live.length) return;
        const { id, fence } = take(live);
        const answer = await server.post(`/v1/holds/${id}/confirm`, { fence, rescue: true });
        if (answer.status === 201) sold.push(answer.json);
      },
      async () => { if (sold.length) await server.post(`/v1/bookings/${take(sold).id}/cancel`, {}); },
      () => post('block', { seats: seats(), areas: { Floor: 1 } }),
      () => post('block', { seats: seats().slice(0, 1), channel: 'house' }),
      () => post('unblock', { seats: seats().slice(0, 1) }),
      async () => {
        await post('close');
        moments.push(await record());
        await post('open');
      },
    ];
  };

  it('is the map that was answered then', async (t) => {
    t.diagnostic(`HF_SEED=${seed}`);
    event = await server.createEvent({
      sections: [{ name: 'S', price: 1000, rows: 3, seats_per_row: 12 }], areas: [{ name: 'Floor', price: 300, capacity: 40 }],
    });
    const random = seededRandom();
    const [live, sold] = [[], []];
    const can = actions(random, live, sold);
    moments = [await record()];
    await server.take(event, { best_available: { quantity: 2 }, areas: { Floor: 2 }, ttl_ms: 1000 });
    for (let i = 0; i < 25; i++) {
      for (let n = random.below(6); n >= 0; n--) await random.oneOf(can)();
      moments.push(await record());
    }
    await sleep(1600); // everything that was held for a second or so has expired
    moments.push(await record());
    // A hold that is due is free in the past, but shown as held until the row that ends it.
    const ends = (await readAudit(server, `event=${event.id}`)).filter(({ object, cause }) => object === 'hold' && cause === 'expire');
    assert.ok(ends.length > 0);
    moments = moments.filter(({ at, map }) => !ends.some((row) => row.until <= at && row.seq > map.seq));
    assert.ok(new Set(moments.map(({ map }) => map.seq)).size > 10);
    for (const { at, map } of moments) assert.deepEqual(await past(at), { ...map, at });
  });

  it('is what each seat was then', async () => {
    for (const { at } of moments.filter((_, i) => i % 8 === 3)) {
      const map = mapOf(await past(at));
      for (const seat of ['S-A-1', 'S-A-7', 'S-B-3', 'S-B-12', 'S-C-5']) {
        const { status } = await server.read(`/v1/events/${event.id}/seats/${seat}?at=${at}`);
        assert.equal(map[seat], LETTERS[status], `${seat} at ${at}`);
      }
    }
  });

  it('is the same after a restart, and in gzip', async () => {
    await server.restart();
    for (const { at, map } of moments.filter((_, i) => i % 5 === 2)) {
      const answer = await server.get(url(at), { 'Accept-Encoding': 'gzip' });
      assert.equal(answer.headers['content-encoding'], 'gzip');
      assert.deepEqual(assertOk(answer), { ...map, at });
    }
  });

  it('of a hold that was due shows free seats, though the server was down when it ran out', async () => {
    const other = await server.createEvent({ areas: [{ name: 'Floor', price: 300, capacity: 40 }] });
    const hold = await server.take(other, { seats: ['S-A-1'], areas: { Floor: 3 }, ttl_ms: 1000 });
    await server.stop({ keep: true });
    await sleep(1200);
    await server.launch();
    await until('the hold has ended', async () => (await server.map(other))['S-A-1'] === '.');
    const then = async (at) => {
      const map = await past(at, other);
      return [mapOf(map)['S-A-1'], areasOf(map).Floor];
    };
    assert.deepEqual(await then(new Date(Date.parse(hold.expires_at) - 1).toISOString()), ['h', 37]);
    assert.deepEqual(await then(hold.expires_at), ['.', 40]);
  });

  itOnce('is not cached and has no ETag', async () => {
    const { headers } = await server.get(url(moments[0].at));
    assert.equal(headers.etag, undefined);
    assert.equal(headers['cache-control'], 'no-store');
  });

  itOnce('of now is the map of now', async () => {
    const { map } = await record();
    const { at, ...rest } = await past(await now());
    assert.ok(at);
    assert.deepEqual(rest, map);
  });

  itOnce('is refused for a time in the future, before the event, or that is none', async () => {
    assertInvalid(await server.get(url('2999-01-01T00:00:00.000Z')), 'future');
    assertInvalid(await server.get(url('1970-01-01T00:00:00.000Z')), 'created');
    for (const at of ['', 'yesterday', '12', '2026-02-30T00:00:00.000Z']) assertInvalid(await server.get(url(at)), 'at must be a time');
    assertProblem(await server.get(url(moments[0].at, { id: 'evt_none' })), 404, 'no_such_event');
  });

  itOnce('waits its turn, and many at once are all answered', async () => {
    const all = Array.from({ length: 4 }, () => moments).flat();
    const answers = await Promise.all(all.map(async ({ at, map }) => [await past(at), { ...map, at }]));
    for (const [answer, expected] of answers) assert.deepEqual(answer, expected);
  });

  it('is refused when the log has been pruned, but for now', async () => {
    const old = await server.createEvent();
    const hold = await server.grant(old, ['S-A-1']);
    assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
    await sleep(3);
    const at = await now(old);
    assert.equal(mapOf(await past(at, old))['S-A-1'], 'b');
    assertOk(await server.post(`/v1/events/${old.id}/archive`));
    await until('it is pruned', async () => (await server.read(`/v1/audit?event=${old.id}`)).data.length === 0);
    assertInvalid(await server.get(url(at, old)), 'pruned');
    assert.equal(mapOf(await past(new Date(Date.now() + 500).toISOString(), old))['S-A-1'], 'b');
  });
});

describe('the map at a past moment, with access keys', () => {
  itOnce('is for sellers, and the map of now for everybody', async () => {
    const server = await start({ env: { HOLDFAST_ADMIN_KEY: 'an-admin-key-of-the-tests', HOLDFAST_SELLER_KEY: 'a-seller-key-of-the-tests' } });
    try {
      const bearer = (key) => ({ Authorization: `Bearer ${key}` });
      const { id, created_at } = await server.createEvent({}, bearer('an-admin-key-of-the-tests'));
      const target = `/v1/events/${id}/seats?at=${created_at}`;
      assertProblem(await server.get(target), 401, 'unauthorized');
      for (const key of ['a-seller-key-of-the-tests', 'an-admin-key-of-the-tests']) assertOk(await server.get(target, bearer(key)));
      assertOk(await server.get(`/v1/events/${id}/seats`));
    } finally { await server.stop(); await reap(); }
  });
});
