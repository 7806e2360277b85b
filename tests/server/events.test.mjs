// Events: creation with its defaults and refusals, lists, counts, the seat map.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertOk, assertProblem, EVENT_ID, ms } from '../support/expect.mjs';
import { itOnce, mapOf, start } from '../support/server.mjs';

const section = { name: 'Stalls', tier: 'A', price: 6500, rows: 2, seats_per_row: 3 };

describe('events', () => {
  let server;
  before(async () => { server = await start(); });
  after(() => server?.stop());

  const create = (fields) => server.post('/v1/events',
    { name: 'Gala', currency: 'usd', sections: [section], ...fields });

  itOnce('a new event answers with its fields, the defaults and what the server added', async () => {
    const before = Date.now();
    const event = assertOk(await create(), 201);
    assert.equal(event.object, 'event');
    assert.match(event.id, EVENT_ID);
    assert.ok(Math.abs(ms(event.created_at) - before) < 5000);
    assert.equal(event.name, 'Gala');
    assert.equal(event.currency, 'usd');
    assert.equal(event.hold_ttl_ms, 480_000);
    assert.equal(event.hold_max_ms, 1_200_000);
    assert.equal(event.max_per_hold, 10);
    assert.equal(event.capacity, 6);
    assert.deepEqual(event.sections, [section]);
  });

  it('what the creator chose is kept', async () => {
    const chosen = { name: 'Ünïcode ✓ 漢字 😀', currency: 'eur', hold_ttl_ms: 5000, hold_max_ms: 9000,
      max_per_hold: 3, sections: [section, { ...section, name: 'Balcony', tier: 'B', price: 0 }] };
    const event = assertOk(await create(chosen), 201);
    for (const [field, value] of Object.entries(chosen)) assert.deepEqual(event[field], value, field);
    const read = assertOk(await server.get(`/v1/events/${event.id}`));
    for (const [field, value] of Object.entries(event)) assert.deepEqual(read[field], value, field);
  });

  itOnce('rows may be listed by name', async () => {
    const listed = { name: 'Box', tier: 'V', price: 9900,
      rows: [{ name: 'Left', seats: 2 }, { name: '7', seats: 4 }] };
    const event = assertOk(await create({ sections: [listed] }), 201);
    assert.deepEqual(event.sections, [listed]);
    assert.equal(event.capacity, 6);
    const map = await server.map(event);
    assert.deepEqual(Object.keys(map),
      ['Box-Left-1', 'Box-Left-2', 'Box-7-1', 'Box-7-2', 'Box-7-3', 'Box-7-4']);
    await server.grant(event, ['Box-Left-2', 'Box-7-4']);
  });

  it('areas count towards the capacity and show in the map', async () => {
    const areas = [{ name: 'Floor', price: 3000, capacity: 500 }];
    const event = assertOk(await create({ areas }), 201);
    assert.deepEqual(event.areas, areas);
    assert.equal(event.capacity, 506);
    const snapshot = assertOk(await server.get(`/v1/events/${event.id}/seats`));
    assert.deepEqual(snapshot.areas, [{ name: 'Floor', price: 3000, capacity: 500, available: 500 }]);
  });

  itOnce('an event may have areas only', async () => {
    const answer = await server.post('/v1/events',
      { name: 'Gig', currency: 'usd', areas: [{ name: 'Floor', price: 3000, capacity: 5 }] });
    assert.equal(assertOk(answer, 201).capacity, 5);
  });

  itOnce('rows are named A to Z, then AA, and on to ZZ and AAA', async () => {
    const event = assertOk(await create({ sections: [{ ...section, rows: 704, seats_per_row: 1 }] }), 201);
    const { sections } = assertOk(await server.get(`/v1/events/${event.id}/seats`));
    const names = sections[0].rows.map(({ name }) => name);
    assert.equal(names.length, 704);
    assert.deepEqual([0, 1, 25, 26, 27, 51, 52, 701, 702, 703].map((index) => names[index]),
      ['A', 'B', 'Z', 'AA', 'AB', 'AZ', 'BA', 'ZZ', 'AAA', 'AAB']);
    await server.grant(event, ['Stalls-ZZ-1', 'Stalls-AAA-1']);
  });

  itOnce('names of 32 characters are taken, whatever their bytes', async () => {
    for (const name of ['x'.repeat(32), 'é'.repeat(32), '😀'.repeat(32), 'with space', 'a.b/c%d']) {
      const event = assertOk(await create({ sections: [{ ...section, name }] }), 201);
      assert.deepEqual((await server.grant(event, `${name}-A-1`)).seats, [`${name}-A-1`]);
    }
  });

  itOnce('an event that makes no sense is refused and the field named', async () => {
    const one = (change) => ({ sections: [{ ...section, ...change }] });
    const rows = (list) => ({ sections: [{ name: 'S', price: 1, rows: list }] });
    const area = (change) => ({ areas: [{ name: 'Floor', price: 1, capacity: 1, ...change }] });
    const refused = [
      [{ name: undefined }, 'name'], [{ name: 7 }, 'name'], [{ name: '' }, 'name'], [{ name: null }, 'name'],
      [{ currency: undefined }, 'currency'], [{ currency: 'us' }, 'currency'],
      [{ currency: 'dollars' }, 'currency'], [{ currency: 5 }, 'currency'], [{ currency: 'u$d' }, 'currency'],
      [{ sections: undefined }, 'sections'], [{ sections: [] }, 'sections'], [{ sections: {} }, 'sections'],
      [{ sections: 'Stalls' }, 'sections'], [{ sections: [7] }, 'sections'],
      [one({ name: undefined }), 'name'], [one({ name: '' }), 'name'], [one({ name: 'a-b' }), 'name'],
      [one({ name: 'x'.repeat(33) }), 'name'], [one({ name: 'a\u0000b' })], [one({ tier: 5 }), 'tier'],
      [one({ price: undefined }), 'price'], [one({ price: -1 }), 'price'], [one({ price: 1.5 }), 'price'],
      [one({ price: '1' }), 'price'], [one({ rows: 0 }), 'rows'], [one({ rows: -1 }), 'rows'],
      [one({ rows: undefined }), 'rows'], [one({ rows: 1.5 }), 'rows'], [one({ rows: [] }), 'rows'],
      [one({ seats_per_row: 0 }), 'seats_per_row'], [one({ seats_per_row: -4 }), 'seats_per_row'],
      [one({ seats_per_row: undefined }), 'seats_per_row'], [one({ extra: 1 }), 'extra'],
      [one({ rows: 2000, seats_per_row: 1001 })], [one({ rows: 2 ** 31, seats_per_row: 2 ** 31 })],
      [one({ rows: 65536, seats_per_row: 65536 })],
      [{ sections: [section, section] }, 'sections and areas have the name Stalls twice'], [area({ name: 'Stalls' }), 'sections and areas have the name Stalls twice'],
      [rows([{ name: 'A', seats: 1 }, { name: 'A', seats: 1 }])], [rows([{ name: 'A-B', seats: 1 }]), 'name'],
      [rows([{ name: 'A', seats: 0 }]), 'seats'], [rows([{ seats: 1 }]), 'name'], [rows([{ name: 'A' }]), 'seats'],
      [rows([5])], [area({ capacity: -1 }), 'capacity'], [area({ capacity: 1.5 }), 'capacity'],
      [area({ capacity: undefined }), 'capacity'], [area({ name: 'a-b' }), 'name'], [area({ price: -1 }), 'price'],
      [{ areas: {} }, 'areas'], [{ areas: [area({}).areas[0], area({}).areas[0]] }],
      [{ hold_ttl_ms: 999 }, 'hold_ttl_ms'], [{ hold_ttl_ms: 0 }, 'hold_ttl_ms'],
      [{ hold_ttl_ms: -1 }, 'hold_ttl_ms'], [{ hold_ttl_ms: '5000' }, 'hold_ttl_ms'],
      [{ hold_ttl_ms: 5000.5 }, 'hold_ttl_ms'], [{ hold_max_ms: -1 }, 'hold_max_ms'],
      [{ hold_max_ms: true }, 'hold_max_ms'], [{ max_per_hold: 0 }, 'max_per_hold'],
      [{ max_per_hold: -1 }, 'max_per_hold'], [{ max_per_hold: '3' }, 'max_per_hold'],
      [{ nonsense: 1 }, 'nonsense'], [{ id: 'evt_1' }, 'id'],
    ];
    for (const [fields, field] of refused) {
      try { assertInvalid(await create(fields), field); } catch (error) {
        error.message = `${JSON.stringify(fields).slice(0, 200)}: ${error.message}`;
        throw error;
      }
    }
  });

  itOnce('an event description may be larger than other bodies', async () => {
    const rows = Array.from({ length: 4000 }, (_, index) => ({ name: `R${index}`, seats: 2 }));
    const event = assertOk(await create({ sections: [{ name: 'S', tier: 'A', price: 1, rows }] }), 201);
    assert.equal(event.capacity, 8000);
    await server.grant(event, 'S-R3999-2');
  });

  itOnce('an unknown event is 404 no_such_event', async () => {
    const id = `evt_${'0'.repeat(28)}`;
    for (const path of [`/v1/events/${id}`, `/v1/events/${id}/seats`]) {
      assertProblem(await server.get(path), 404, 'no_such_event');
    }
  });

  it('counts follow the seats', async () => {
    const event = await server.createEvent();
    const counts = async () => {
      const { available, held, booked, blocked } = assertOk(await server.get(`/v1/events/${event.id}`));
      return [available, held, booked, blocked];
    };
    assert.deepEqual(await counts(), [20, 0, 0, 0]);
    const kept = await server.grant(event, ['S-A-1', 'S-A-2', 'S-B-7']);
    const dropped = await server.grant(event, 'S-B-1');
    assert.deepEqual(await counts(), [16, 4, 0, 0]);
    assert.equal((await server.del(`/v1/holds/${dropped.id}`)).status, 204);
    assert.deepEqual(await counts(), [17, 3, 0, 0]);
    await server.post(`/v1/holds/${kept.id}/confirm`, { fence: kept.fence });
    assert.deepEqual(await counts(), [17, 0, 3, 0]);
  });

  itOnce('the map is one character a seat', async () => {
    const event = await server.createEvent();
    const fresh = assertOk(await server.get(`/v1/events/${event.id}/seats`));
    assert.deepEqual(Object.keys(fresh).sort(), ['areas', 'currency', 'event', 'prices', 'sections', 'seq', 'status']);
    assert.equal(fresh.event, event.id);
    assert.deepEqual([fresh.status, fresh.currency, fresh.prices], ['open', 'usd', { S: 1000 }]);
    assert.ok(Number.isSafeInteger(fresh.seq));
    assert.deepEqual(fresh.areas, []);
    assert.deepEqual(fresh.sections, [{ name: 'S', tier: 'A', price: 1000,
      rows: [{ name: 'A', seats: '..........' }, { name: 'B', seats: '..........' }] }]);

    const hold = await server.grant(event, ['S-A-1', 'S-B-10']);
    await server.grant(event, 'S-A-5');
    await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence });
    const later = assertOk(await server.get(`/v1/events/${event.id}/seats`));
    assert.deepEqual(later.sections[0].rows,
      [{ name: 'A', seats: 'b...h.....' }, { name: 'B', seats: '.........b' }]);
    assert.ok(later.seq > fresh.seq);
  });

  itOnce('the ETag of the map is its seq, and a map already known is 304', async () => {
    const event = await server.createEvent();
    const path = `/v1/events/${event.id}/seats`;
    const first = await server.get(path);
    const tag = first.headers.etag;
    assert.equal(tag, `"${first.json.seq}"`);
    for (const known of [tag, `W/${tag}`, `"nothing", ${tag}`, '*']) {
      const answer = await server.get(path, { 'If-None-Match': known });
      assert.equal(answer.status, 304, known);
      assert.equal(answer.text, '');
      assert.equal(answer.headers.etag, tag);
    }
    assert.equal((await server.get(path, { 'If-None-Match': '"nothing"' })).status, 200);
    assert.equal((await server.get(path, { 'If-None-Match': `"${first.json.seq}1"` })).status, 200);

    const hold = await server.grant(event, 'S-A-1');
    const second = await server.get(path, { 'If-None-Match': tag });
    assert.equal(second.status, 200);
    assert.equal(second.headers.etag, `"${second.json.seq}"`);
    assert.ok(second.json.seq > first.json.seq);
    await server.del(`/v1/holds/${hold.id}`);
    const third = await server.get(path, { 'If-None-Match': second.headers.etag });
    assert.equal(third.status, 200, 'the seats look as at first, but the seq has moved on');
    assert.ok(third.json.seq > second.json.seq);
  });

  itOnce('a refusal does not move the seq', async () => {
    const event = await server.createEvent();
    await server.grant(event, 'S-A-1');
    const path = `/v1/events/${event.id}/seats`;
    const tag = (await server.get(path)).headers.etag;
    assertProblem(await server.hold(event, ['S-A-1', 'S-A-2']), 409, 'seat_taken');
    assert.equal((await server.get(path, { 'If-None-Match': tag })).status, 304);
  });

  itOnce('a large map is compressed for clients that ask for it', async () => {
    const event = await server.createEvent({ sections: [{ ...section, rows: 200, seats_per_row: 100 }] });
    const path = `/v1/events/${event.id}/seats`;
    const plain = await server.get(path);
    const packed = await server.get(path, { 'Accept-Encoding': 'gzip' });
    assert.equal(packed.headers['content-encoding'], 'gzip');
    assert.ok(packed.bytes.length < plain.bytes.length / 5);
    assert.deepEqual(packed.json, plain.json);
    assert.match(packed.headers.vary ?? '', /accept-encoding/i);
    assert.equal((await server.get(path, { 'Accept-Encoding': 'gzip;q=0' })).headers['content-encoding'], undefined);
    assert.equal(Object.keys(mapOf(plain.json)).length, 20_000);
  });

  it('events survive a restart with their seats', async () => {
    const event = await server.createEvent({ name: 'Kept' });
    const hold = await server.grant(event, ['S-A-3', 'S-A-4']);
    const sold = await server.grant(event, 'S-B-2');
    await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence });
    const earlier = await server.get(`/v1/events/${event.id}/seats`);
    const earlierEvent = assertOk(await server.get(`/v1/events/${event.id}`));
    await server.restart();
    const later = await server.get(`/v1/events/${event.id}/seats`);
    assert.equal(later.text, earlier.text);
    assert.equal(later.headers.etag, earlier.headers.etag);
    assert.deepEqual(assertOk(await server.get(`/v1/events/${event.id}`)), earlierEvent);
    assert.deepEqual(assertOk(await server.get(`/v1/holds/${hold.id}`)).seats, hold.seats);
  });
});

describe('lists of events', () => {
  let server;
  const ids = [];
  before(async () => {
    server = await start();
    for (let i = 0; i < 12; i++) ids.push((await server.createEvent({ name: `Event ${i}` })).id);
  });
  after(() => server?.stop());

  itOnce('an empty server has an empty list', async () => {
    const empty = await start();
    const list = assertOk(await empty.get('/v1/events'));
    assert.deepEqual(list.data, []);
    assert.equal(list.has_more, false);
    await empty.stop();
  });

  itOnce('without a limit a short list is whole', async () => {
    const list = assertOk(await server.get('/v1/events?limit=100'));
    assert.equal(list.data.length, 12);
    assert.equal(list.has_more, false);
    assert.equal(list.next_cursor ?? null, null);
    assert.deepEqual(list.data.map(({ id }) => id), [...ids].reverse(), 'newest first');
    for (const event of list.data) {
      assert.equal(event.object, 'event');
      assert.equal(event.capacity, 20);
    }
  });

  it('cursors walk through every event once', async () => {
    for (const limit of [1, 5, 6, 12]) {
      const seen = [];
      let cursor = '';
      for (let page = 0; ; page++) {
        assert.ok(page < 20, 'the list does not end');
        const list = assertOk(await server.get(`/v1/events?limit=${limit}${cursor}`));
        assert.ok(list.data.length <= limit);
        seen.push(...list.data.map(({ id }) => id));
        if (!list.has_more) break;
        assert.equal(list.data.length, limit);
        assert.equal(typeof list.next_cursor, 'string');
        cursor = `&cursor=${encodeURIComponent(list.next_cursor)}`;
      }
      assert.deepEqual(seen, [...ids].reverse());
    }
  });

  itOnce('a page does not shift when events are added', async () => {
    const first = assertOk(await server.get('/v1/events?limit=5'));
    ids.push((await server.createEvent({ name: 'Late' })).id);
    const second = assertOk(await server.get(`/v1/events?limit=5&cursor=${encodeURIComponent(first.next_cursor)}`));
    assert.deepEqual([...first.data, ...second.data].map(({ id }) => id), ids.slice(2, 12).reverse());
  });

  itOnce('a limit or cursor that makes no sense is refused', async () => {
    for (const limit of ['0', '-1', '101', 'abc', '', '1.5', '99999999999999999999']) {
      assertInvalid(await server.get(`/v1/events?limit=${limit}`), 'limit');
    }
    for (const cursor of ['nonsense', '%00', 'x'.repeat(500)]) {
      assertInvalid(await server.get(`/v1/events?cursor=${cursor}`), 'cursor');
    }
  });

  // From here on there are more events.
  it('a list has the counts of every event and no layout, before and after events are loaded', async () => {
    const sections = [{ name: 'S', price: 1, rows: 3, seats_per_row: 10 }, { name: 'T', price: 1, rows: [{ name: 'I', seats: 4 }, { name: 'II', seats: 7 }] }];
    const fields = { max_per_hold: 20, sections, areas: [{ name: 'Floor', price: 1, capacity: 50 }, { name: 'Roof', price: 1, capacity: 9 }] };
    const busy = await server.createEvent(fields);
    const places = await server.createEvent({ sections: [], areas: fields.areas });
    const quiet = await server.createEvent({ ...fields, name: 'Quiet' });
    await server.take(busy, { seats: ['S-A-1', 'T-II-7'], areas: { Floor: 3 } });
    await server.take(places, { areas: { Roof: 2 } });
    const sold = await server.take(busy, { seats: ['S-B-1', 'S-B-2', 'S-B-3'], areas: { Roof: 4 } });
    assertOk(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }), 201);
    const given = await server.take(busy, { seats: ['S-C-1'], areas: { Floor: 1 } });
    assert.equal((await server.del(`/v1/holds/${given.id}`)).status, 204);
    assertOk(await server.post(`/v1/events/${busy.id}/block`, { seats: ['S-C-9', 'S-C-10', 'T-I-1', 'T-I-2', 'T-I-3'] }));
    assertOk(await server.post(`/v1/events/${quiet.id}/close`));
    const list = async () => {
      const { data } = assertOk(await server.get('/v1/events?limit=3'));
      assert.deepEqual(data.map(({ id }) => id), [quiet.id, places.id, busy.id]);
      return data;
    };
    const counts = ({ status, capacity, available, held, booked, blocked }) => [status, capacity, available, held, booked, blocked];
    const expected = [['closed', 100, 100, 0, 0, 0], ['open', 59, 57, 2, 0, 0], ['open', 100, 83, 5, 7, 5]];
    assert.deepEqual((await list()).map(counts), expected);
    await server.restart();
    const unloaded = await list();
    assert.deepEqual(unloaded.map(counts), expected);
    assert.deepEqual(await list(), unloaded);
    for (const summary of unloaded) {
      const { sections: _, areas: __, ...event } = assertOk(await server.get(`/v1/events/${summary.id}`));
      assert.deepEqual(summary, event);
    }
    assert.deepEqual(await list(), unloaded);
  });

  itOnce('a list of large events is small, and smaller in gzip', async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => ({ name: `r${i}`, seats: 90 + (i % 3) }));
    for (let i = 0; i < 5; i++) await server.createEvent({ sections: [{ name: 'S', price: 1, rows }] });
    const agent = (encoding) => server.get('/v1/events?limit=5', { 'Accept-Encoding': encoding });
    const [plain, packed] = [await agent('identity'), await agent('gzip')];
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.equal(packed.headers['content-encoding'], 'gzip');
    for (const { headers } of [plain, packed]) assert.match(headers.vary, /Accept-Encoding/);
    assert.equal(packed.text, plain.text);
    assert.equal(plain.json.data[0].capacity, rows.reduce((sum, { seats }) => sum + seats, 0));
    assert.ok(plain.bytes.length < 5 * 600, `${plain.bytes.length} bytes`);
    assert.ok(packed.bytes.length < plain.bytes.length / 2, `${packed.bytes.length} of ${plain.bytes.length} bytes`);
  });
});
