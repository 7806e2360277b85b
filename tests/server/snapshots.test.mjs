// The map: however many clients ask, the server draws it at most ten times per second (five at once, then one
// every 200 ms), exactly as of its seq, and never older than the client's previous answer.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import zlib from 'node:zlib';
import { after, before, describe, it } from 'node:test';
import { fold, readAudit } from '../support/audit.mjs';
import { assertOk } from '../support/expect.mjs';
import { areasOf, assertTook, itOnce, mapOf, not, reap, sleep, start, until } from '../support/server.mjs';
import { Wire } from '../support/wire.mjs';

const AT_ONCE = 5;
const EVERY_MS = 200;

describe('maps', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const large = () => server.createEvent({
    sections: [{ name: 'S', price: 1, rows: 20, seats_per_row: 100 }], areas: [{ name: 'Floor', price: 1, capacity: 5000 }],
  });
  const url = (event) => `/v1/events/${event.id}/seats`;
  const gzip = { 'Accept-Encoding': 'gzip' };

  it('under changes and polling an event is drawn at most ten times a second, each map exactly of its seq', { skip: not('cluster', 'each server draws maps of its own, and one may be a moment behind another') }, async (t) => {
    const event = await large();
    const texts = new Map(); // seq -> { plain, packed }
    const firstSeen = new Map(); // seq -> ms since the start
    let [requests, unmodified, slowest, running] = [0, 0, 0, true];
    const started = Date.now();

    const poll = async (_, index) => {
      let last = 0;
      let etag;
      while (running) {
        const asked = Date.now();
        const answer = await server.get(url(event), { ...(index % 2 ? gzip : {}), ...(index % 4 > 1 && etag ? { 'If-None-Match': etag } : {}) });
        slowest = Math.max(slowest, Date.now() - asked);
        requests++;
        if (answer.status === 304) {
          unmodified++;
          assert.equal(answer.headers.etag, etag);
          assert.equal(answer.bytes.length, 0);
          await sleep(5);
          continue;
        }
        const { seq } = assertOk(answer);
        assert.equal(answer.headers.etag, index % 2 ? `"${seq}-gzip"` : `"${seq}"`);
        assert.equal(answer.headers['content-encoding'], index % 2 ? 'gzip' : undefined);
        assert.match(answer.headers.vary ?? '', /Accept-Encoding/i);
        assert.ok(seq >= last, `seq ${seq} after ${last}`);
        last = seq;
        etag = answer.headers.etag;
        if (!firstSeen.has(seq)) firstSeen.set(seq, Date.now() - started);
        const text = texts.get(seq) ?? texts.set(seq, {}).get(seq);
        const kind = index % 2 ? 'packed' : 'plain';
        text[kind] ??= answer.text;
        assert.equal(answer.text, text[kind], `two different maps of seq ${seq}`);
      }
    };
    let changes = 0;
    const write = async (_, index) => {
      for (let i = 0; running; i++) {
        const hold = await server.take(event, { best_available: { quantity: 1 }, areas: { Floor: 1 } });
        changes += 3;
        if (i % 2) assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
        await sleep(5 + index);
      }
    };
    const all = Promise.all([...Array.from({ length: 20 }, poll), ...Array.from({ length: 3 }, write)]);
    await Promise.race([all, sleep(2000)]);
    await Promise.race([all, until('there are enough changes', () => changes > 100, 20_000).catch(() => {})]); // on a busy machine
    running = false;
    await all;
    const elapsed = Date.now() - started;

    t.diagnostic(`${requests} requests (${unmodified} unmodified) on ${changes}+ changes saw ${texts.size} maps in ${elapsed} ms, slowest ${slowest} ms`);
    assert.ok(changes > 100, 'there was something to draw');
    assert.ok(texts.size >= 5, 'the maps moved on');
    assert.ok(texts.size <= AT_ONCE + Math.floor(elapsed / EVERY_MS) + 1, `${texts.size} maps in ${elapsed} ms`);
    const inFirst = [...firstSeen.values()].filter((when) => when < 1000).length;
    assert.ok(inFirst <= 10, `${inFirst} maps in the first second`);
    assertTook(slowest, 10_000, 'the slowest map');

    const both = [...texts.values()].filter(({ plain, packed }) => plain && packed);
    assert.ok(both.length > 0);
    for (const { plain, packed } of both) assert.equal(packed, plain);
    const rows = await readAudit(server, `event=${event.id}`);
    for (const [seq, { plain, packed }] of texts) {
      const map = JSON.parse(plain ?? packed);
      const state = fold(event, rows.slice(0, seq));
      const held = Object.entries(mapOf(map)).filter(([, letter]) => letter !== '.');
      assert.deepEqual(Object.fromEntries(held), Object.fromEntries(Object.entries(state.seats).filter(([, letter]) => letter !== '.')), `seq ${seq}`);
      assert.deepEqual(areasOf(map), { Floor: state.areas.Floor.available }, `seq ${seq}`);
    }
  });

  it('after each of thirty holds an immediate look shows it', async () => {
    const events = await Promise.all([large(), large(), server.createEvent()]);
    await Promise.all(events.map(async (event, e) => {
      for (let i = 1; i <= 10; i++) {
        const seat = `S-A-${i}`;
        const hold = await server.grant(event, seat);
        const map = assertOk(await server.get(url(event), i % 2 ? gzip : {}));
        assert.equal(mapOf(map)[seat], 'h', `hold ${i} of event ${e}`);
        assert.ok(map.seq >= i * 2);
        if (i % 5 === 0) {
          assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
          assert.equal((await server.map(event))[seat], '.');
        }
      }
    }));
  });

  it('a look after any change shows it: confirmed, blocked, counted', async () => {
    const event = await large();
    const hold = await server.take(event, { seats: ['S-A-1'], areas: { Floor: 2 } });
    assert.equal((await server.areas(event)).Floor, 4998);
    assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
    assert.equal((await server.map(event))['S-A-1'], 'b');
    assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: ['S-A-2'] }));
    assert.equal((await server.map(event))['S-A-2'], 'x');
    assertOk(await server.post(`/v1/events/${event.id}/unblock`, { seats: ['S-A-2'] }));
    assert.equal((await server.map(event))['S-A-2'], '.');
    assertOk(await server.post(`/v1/holds/${(await server.take(event, { areas: { Floor: 7 } })).id}/evict`));
    assert.equal((await server.areas(event)).Floor, 4998);
  });

  it('the ETag is the seq: a known map is 304, whatever changed makes it 200', async () => {
    const event = await large();
    const first = await server.get(url(event));
    const { etag } = first.headers;
    assert.equal(etag, `"${first.json.seq}"`);
    for (const match of [etag, `W/${etag}`, `"x", ${etag}`, `"0",W/${etag} , "y"`, '*']) {
      for (const more of [{}, gzip]) {
        const answer = await server.get(url(event), { 'If-None-Match': match, ...more });
        assert.equal(answer.status, 304, match);
        if (match !== '*') assert.equal(answer.headers.etag, etag);
        assert.equal(answer.bytes.length, 0);
      }
    }
    for (const match of ['"0"', '""', 'x', etag.slice(1, -1), `${etag.slice(0, -1)}0"`]) assert.equal((await server.get(url(event), { 'If-None-Match': match })).status, 200, match);
    await server.take(event, { areas: { Floor: 1 } });
    const next = await server.get(url(event), { 'If-None-Match': etag });
    assert.ok(assertOk(next).seq > first.json.seq);
    const head = await server.request('HEAD', url(event));
    assert.equal(head.status, 200);
    assert.equal(head.headers.etag, next.headers.etag);
    assert.equal(Number(head.headers['content-length']), next.bytes.length);
  });

  itOnce('packed or not is the asker\'s choice, and it is the same map', async () => {
    const event = await large();
    await server.grant(event, ['S-A-1', 'S-T-100']);
    const plain = await server.get(url(event));
    assert.equal(plain.headers['content-encoding'], undefined);
    for (const accept of ['gzip', 'deflate, gzip', 'gzip;q=0.5', '*', 'GZIP']) {
      const packed = await server.get(url(event), { 'Accept-Encoding': accept });
      if (packed.headers['content-encoding'] === 'gzip') {
        assert.ok(packed.bytes.length < plain.bytes.length / 2);
        assert.equal(zlib.gunzipSync(packed.bytes).toString(), plain.text);
      } else assert.equal(accept === 'gzip', false, 'gzip was asked for');
      assert.equal(packed.text, plain.text);
      assert.equal(packed.headers.etag, packed.headers['content-encoding'] ? `"${plain.json.seq}-gzip"` : plain.headers.etag);
    }
    for (const accept of ['identity', 'gzip;q=0', 'deflate', 'br', '']) {
      assert.equal((await server.get(url(event), { 'Accept-Encoding': accept })).headers['content-encoding'], undefined, accept);
    }
  });

  itOnce('the compressed map has an ETag of its own, and a map known in either encoding is 304', async () => {
    const event = await large();
    const ask = (accept, known) => server.get(url(event), { 'Accept-Encoding': accept, ...(known ? { 'If-None-Match': known } : {}) });
    const [plain, packed] = [(await ask('identity')).headers.etag, (await ask('gzip')).headers.etag];
    assert.notEqual(plain, packed);
    for (const accept of ['identity', 'gzip']) {
      const own = accept === 'gzip' ? packed : plain;
      for (const [known, etag] of [[plain, plain], [packed, packed], [`W/${packed}`, packed], [`${plain}, ${packed}`, own], ['*', own]]) {
        const answer = await ask(accept, known);
        assert.deepEqual([answer.status, answer.headers.etag, answer.bytes.length], [304, etag, 0], `${accept} ${known}`);
        assert.match(answer.headers.vary, /Accept-Encoding/);
      }
      for (const known of ['"0-gzip"', packed.replace('gzip', 'gz'), packed.slice(0, -1), '"-gzip"']) assert.equal((await ask(accept, known)).status, 200, known);
    }
    await server.grant(event, 'S-A-1');
    for (const accept of ['identity', 'gzip']) assert.equal((await ask(accept, `${plain}, ${packed}`)).status, 200, accept);
  });

  itOnce('one busy event does not keep others waiting', async () => {
    const busy = await large();
    const others = await Promise.all(Array.from({ length: 20 }, () => server.createEvent()));
    let running = true;
    const polling = Promise.all(Array.from({ length: 4 }, async () => {
      while (running) { await server.take(busy, { areas: { Floor: 1 } }); await server.get(url(busy)); }
    }));
    const started = Date.now();
    for (const other of others) {
      await server.grant(other, 'S-A-1');
      assert.equal((await server.map(other))['S-A-1'], 'h');
    }
    const took = Date.now() - started;
    running = false;
    await polling;
    assertTook(took, 20 * EVERY_MS / 2, 'a change and a map of 20 events');
  });

  it('a client that waits for a map when the server is told to stop still gets it', { skip: not('cluster', 'about the end of one process') }, async () => {
    const own = await start();
    const event = await own.createEvent();
    const wires = await Wire.connectMany(own, 8);
    for (let i = 1; i <= 7; i++) { // use up the allowance
      await own.grant(event, `S-A-${i}`);
      if (i < 7) await own.map(event);
    }
    const asked = Promise.all(wires.map((wire) => wire.request('GET', url(event))));
    await sleep(40);
    const started = Date.now();
    const stopping = own.stop();
    for (const answer of await asked) {
      assert.equal(answer.status, 200, answer.text);
      assert.equal(mapOf(answer.json)['S-A-7'], 'h');
    }
    await stopping;
    assertTook(Date.now() - started, 8000, 'the end of the server'); // it drains for 8.5 s at most
    for (const wire of wires) wire.close();
  });
});
