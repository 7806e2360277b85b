// Seating plans: what becomes of a hall in pretix's format, every refusal, and GET /v1/events/{e}/plan of events with
// and without a plan.
// backends: sqlite cluster
// time limit: 300 s

import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { assertHold, assertInvalid, assertOk, assertProblem } from '../support/expect.mjs';
import { arena, expectedSections, gridPlan, planEvent, randomPlan, rounded, seatsOf, statesOf } from '../support/plans.mjs';
import { seed, seededRandom } from '../support/random.mjs';
import { itOnce, only, reap, start } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

// For claims about reading and drawing plans, which are the same on every ledger.
const WITHOUT_LEDGER = { skip: only('sqlite', 'the ledger has no part in it') };
const copy = (value) => structuredClone(value);
const MIB = 1 << 20;
const residentBytes = (pid) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;

// A plan that uses every feature of the format.
const hall = {
  name: 'Every feature',
  size: { width: 800, height: 600 },
  categories: [{ name: 'Stalls', color: '#7c3aed' }, { name: 'Side "view"' }, { name: 'constructor', color: 'rebeccapurple' }],
  zones: [
    {
      name: 'Main / floor', zone_id: 'main', uuid: 'zone-0001', position: { x: 100, y: 50.5 },
      rows: [
        { row_number: 'A', row_label: 'Row A', seat_label: 'Chair %s', uuid: 'row-0001', row_number_position: 'both', position: { x: 10, y: 20 },
          seats: [
            { seat_guid: 'Main-A-1', seat_number: '1', position: { x: 0.25, y: 1 }, category: 'Stalls', radius: 12.5, start_direction: '<', uuid: 'seat-0001' },
            { seat_guid: 'Main-A-3', seat_number: '3', position: { x: 30, y: -1 }, category: 'Side "view"', start_direction: '>' },
            { seat_guid: 'a "quoted" <id> & more', seat_number: '5a', position: { x: 60, y: 0 }, category: 'constructor', start_direction: '<>' },
          ] },
        { row_number: 'B', row_label: null, seat_label: null, row_number_position: null,
          seats: [
            { seat_guid: 'constructor', seat_number: '2', position: { x: 0, y: 60 }, category: 'Stalls', start_direction: null },
            { seat_guid: '座席/七 %2F?#', seat_number: 'ü', position: { x: 30, y: 60 }, category: 'Stalls' },
          ] },
        { row_number: 'C', row_number_position: 'start', seats: [{ seat_guid: '__proto__', seat_number: '1', position: { x: 0, y: 90 }, category: 'Stalls' }] },
        { row_number: 'D', row_number_position: 'end', seats: [{ seat_guid: '-dash-', seat_number: '1', position: { x: 0, y: 120 }, category: 'Stalls' }] },
      ],
      areas: [
        { shape: 'rectangle', position: { x: 5, y: 6 }, rectangle: { width: 40, height: 30.5 }, rotation: 45, color: '#eee', border_color: 'red', uuid: 'area-bar',
          text: { text: 'Bar </script>', color: '#333', size: 20, position: { x: 1, y: 2 } } },
        { shape: 'circle', position: { x: 7, y: 8 }, circle: { radius: 9 }, uuid: 'area-floor' },
        { shape: 'ellipse', position: { x: 1, y: 1 }, ellipse: { radius: { x: 3, y: 4 } } },
        { shape: 'polygon', position: { x: 0, y: 0 }, polygon: { points: [{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 0, y: 10 }] } },
        { shape: 'text', position: { x: 2, y: 3 }, text: { text: 'Ausgang', position: { x: 0, y: 0 } } },
      ],
    },
    { position: { x: -5, y: 300 }, rows: [{ row_number: '1', seats: [{ seat_guid: 'Side 1', seat_number: '1', position: { x: 50, y: 0 }, category: 'Side "view"' }] }] },
  ],
};
const beside = {
  prices: { Stalls: 6500, 'Side "view"': 4500, constructor: 100 }, accessible: ['constructor', 'Side 1'], focus: { x: 400, y: -20.5 },
  areas: [{ name: 'Floor', price: 3000, capacity: 200, plan_area: 'area-floor' }, { name: 'Lawn', price: 10, capacity: 5 }],
};
const allPrices = { ...beside.prices, Floor: 3000, Lawn: 10 };

describe('seating plans', () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  const post = (body) => server.post('/v1/events', body);
  const create = async (plan, fields) => assertOk(await post(planEvent(plan, fields)), 201);
  const document = (event) => server.read(`/v1/events/${event.id}/plan`);
  const snapshot = (event) => server.read(`/v1/events/${event.id}/seats`);

  describe('a plan with every feature of the format', () => {
    let event;
    let plan;
    before(async () => {
      event = await create(hall, beside);
      plan = await document(event);
    });

    it('makes an event whose answer has its fields, but not the plan', async () => {
      assert.equal(event.capacity, 8 + 205);
      assert.equal(event.plan, undefined);
      assert.deepEqual(event.prices, beside.prices);
      const read = await server.read(`/v1/events/${event.id}`);
      assert.deepEqual([read.available, read.capacity, read.plan], [213, 213, undefined]);
      assert.deepEqual(read.prices, beside.prices);
    });

    it('comes back with every name, label, category, position and uuid, and says which seats are accessible', () => {
      assert.deepEqual(rounded(plan.sections), rounded(expectedSections(hall, beside)));
      assert.deepEqual([plan.event, plan.name, plan.size.width, plan.focus], [event.id, 'Every feature', 800, { x: 400, y: -20.5 }]);
      assert.deepEqual(plan.categories, [{ name: 'Stalls', color: '#7c3aed' }, { name: 'Side "view"', color: null }, { name: 'constructor', color: 'rebeccapurple' }]);
    });

    it('calls a zone without a name by its number', () => {
      assert.deepEqual(plan.sections.map(({ name }) => name), ['Main / floor', 'Zone 2']);
    });

    it('keeps the shapes of its areas: one is sold, the rest is decoration', () => {
      const area = (name) => plan.areas.filter((each) => each.name === name);
      assert.deepEqual(area('Floor').map(({ shape, x, y, circle, uuid }) => ({ shape, x, y, circle, uuid })),
        [{ shape: 'circle', x: 107, y: 58.5, circle: { radius: 9 }, uuid: 'area-floor' }]);
      const decoration = area(null);
      assert.deepEqual(decoration.map(({ shape }) => shape), ['rectangle', 'ellipse', 'polygon', 'text']);
      const [bar, ellipse, polygon, text] = decoration;
      assert.deepEqual([bar.x, bar.y, bar.rotation, bar.color, bar.border_color, bar.rectangle, bar.uuid], [105, 56.5, 45, '#eee', 'red', { width: 40, height: 30.5 }, 'area-bar']);
      assert.deepEqual(bar.text, { text: 'Bar </script>', color: '#333', size: 20, position: { x: 1, y: 2 } });
      assert.deepEqual([ellipse.x, ellipse.y, ellipse.ellipse], [101, 51.5, { radius: { x: 3, y: 4 } }]);
      assert.deepEqual(polygon.polygon, { points: [{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 0, y: 10 }] });
      assert.deepEqual([text.x, text.y, text.text.text], [102, 53.5, 'Ausgang']);
    });

    it('has a snapshot in its order, with the prices of the categories', async () => {
      const map = await snapshot(event);
      assert.deepEqual([...statesOf(plan, map).values()].join(''), '........');
      assert.deepEqual([map.status, map.currency], ['open', 'usd']);
      assert.deepEqual(map.prices, allPrices);
      assert.deepEqual(map.sections.map(({ price }) => price), [null, 4500]);
      assert.deepEqual(map.areas, [{ name: 'Floor', price: 3000, capacity: 200, available: 200 }, { name: 'Lawn', price: 10, capacity: 5, available: 5 }]);
    });
  });

  it('ids are opaque: such seats are held, sold, blocked, read by path, streamed and shown at their place', async () => {
    const event = await create(hall, beside);
    const plan = await document(event);
    const ids = seatsOf(plan).map(({ id }) => id);
    const stream = await Stream.open(server, event);
    const states = async () => statesOf(plan, await snapshot(event));
    const want = new Map(ids.map((id) => [id, '.']));
    for (const [index, id] of ids.entries()) {
      if (index % 3 === 2) {
        assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: [id] }));
        want.set(id, 'x');
      } else {
        const hold = assertHold(await server.grant(event, id), { event, seats: [id] });
        assert.equal(hold.amount, beside.prices[seatsOf(plan)[index].category], id);
        assert.deepEqual(assertProblem(await server.hold(event, id), 409, 'seat_taken').seats, [id]);
        if (index % 3 === 1) assertOk(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }), 201);
        want.set(id, index % 3 === 1 ? 'b' : 'h');
      }
      assert.deepEqual(await states(), want);
      const read = await server.read(`/v1/events/${event.id}/seats/${encodeURIComponent(id)}`);
      assert.deepEqual([read.id ?? read.seat, read.status], [id, { h: 'held', b: 'booked', x: 'blocked' }[want.get(id)]]);
      const rows = (await server.read(`/v1/audit?event=${event.id}&seat=${encodeURIComponent(id)}`)).data;
      assert.ok(rows.length > 0 && rows.every(({ seat }) => seat === id));
    }
    const streamed = new Map();
    const { seq } = await snapshot(event);
    await stream.find(({ event: kind, data }) => kind === 'seats' && data.seq >= seq);
    for (const { event: kind, data } of stream.messages) {
      if (kind === 'seats') for (const [id, state] of data.changes) streamed.set(id, state);
    }
    assert.deepEqual(streamed, want);
    stream.close();
    for (const id of ['Main-A-2', 'main-A-1', 'Main-A-1 ', '', 'toString', 'Zone 2-1-1', 'Main / floor-A-1']) {
      const answer = await server.hold(event, id);
      assert.ok([400, 404].includes(answer.status), `${id}: ${answer.text}`);
    }
    assertProblem(await server.get(`/v1/events/${event.id}/seats/Main-A-2`), 404, 'no_such_seat');
  });

  itOnce('prices are changed by category, for holds from then on, and streams tell it', async () => {
    const event = await create(hall, beside);
    const stream = await Stream.open(server, event);
    const amount = async (seats) => (await server.grant(event, seats)).amount;
    assert.equal(await amount(['Main-A-1', 'Main-A-3']), 11_000);
    assertOk(await server.patch(`/v1/events/${event.id}`, { prices: { 'Side "view"': 1, Floor: 5 } }));
    assert.equal(await amount(['constructor', 'Side 1']), 6501);
    const prices = { ...allPrices, 'Side "view"': 1, Floor: 5 };
    assert.deepEqual((await snapshot(event)).prices, prices);
    const told = await stream.find(({ event: kind }) => kind === 'event');
    assert.equal(told.data.status, 'open');
    assert.equal(told.data.prices['Side "view"'], 1);
    stream.close();
    assert.equal((await server.take(event, { areas: { Floor: 2 } })).amount, 10);
    for (const name of ['Main / floor', 'Zone 2', 'nothing', 'stalls']) {
      assertInvalid(await server.patch(`/v1/events/${event.id}`, { prices: { [name]: 5 } }), name);
    }
  });

  itOnce('closing and opening reach streams and snapshots', async () => {
    const event = await create(hall, beside);
    const stream = await Stream.open(server, event);
    for (const [verb, status] of [['close', 'closed'], ['open', 'open']]) {
      assertOk(await server.post(`/v1/events/${event.id}/${verb}`));
      assert.equal((await snapshot(event)).status, status);
      const told = await stream.find(({ event: kind, data }) => kind === 'event' && data.status === status);
      assert.deepEqual(told.data.prices, allPrices);
    }
    stream.close();
  });

  it('a check lists everything that is wrong, and creates nothing', WITHOUT_LEDGER, async () => {
    const before = (await server.read('/v1/events')).data.length;
    const check = (body) => server.post('/v1/plans/check', body);
    const plan = copy(hall);
    const [main, side] = plan.zones;
    main.rows[0].seats[1].category = 'Standing';
    delete main.rows[0].seats[2].position;
    main.rows[1].row_label = 7;
    main.areas[1].circle.radius = -1;
    side.rows[0].seats[0].seat_guid = 8;
    const { Stalls, ...prices } = beside.prices;
    const body = planEvent(plan, { ...beside, prices, name: '', hold_ttl_ms: 1, starts_at: 'soon' });
    const refused = assertProblem(await check(body), 400, 'invalid_request');
    assert.deepEqual(refused.complaints.map((text) => text.split(' ')[0]), [
      'name', 'starts_at', 'hold_ttl_ms', 'prices.Stalls',
      'plan.zones[0].rows[0].seats[1].category', 'plan.zones[0].rows[0].seats[2].position', 'plan.zones[0].rows[1].row_label',
      'plan.zones[0].areas[1].circle.radius', 'plan.zones[1].rows[0].seats[0].seat_guid',
    ]);
    assert.equal(refused.detail, refused.complaints[0]);
    const twice = copy(hall);
    twice.zones[0].rows[0].seats[0].seat_guid = 'Side 1';
    assert.deepEqual(assertProblem(await check(planEvent(twice, beside)), 400, 'invalid_request').complaints.map((text) => text.split(' ')[0]), ['plan.zones[1].rows[0].seats[0].seat_guid']);
    const layout = { name: 'Gala', currency: 'usd', sections: [{ name: 'A-B', price: 1, rows: 1, seats_per_row: 1 }, { name: 'C', price: 1, rows: 0, seats_per_row: 1 }], areas: [{ name: 'D', price: 1, capacity: 0 }] };
    assert.deepEqual(assertProblem(await check(layout), 400, 'invalid_request').complaints.map((text) => text.split(' ')[0]), ['sections[0].name', 'sections[1].rows', 'areas[0].capacity']);
    assert.equal(assertProblem(await check('{"name":'), 400, 'invalid_request').complaints.length, 1);
    const many = planEvent(gridPlan({ rows: 20, seats: 20 }));
    for (const row of many.plan.zones[0].rows) for (const seat of row.seats) seat.seat_number = 1;
    assert.equal(assertProblem(await check(many), 400, 'invalid_request').complaints.length, 100);
    assert.equal((await server.read('/v1/events')).data.length, before);
  });

  it('a check that finds nothing wrong has the plan as it will be drawn', WITHOUT_LEDGER, async () => {
    const checked = assertOk(await server.post('/v1/plans/check', planEvent(hall, beside)));
    assert.deepEqual([checked.capacity, checked.seats], [213, 8]);
    const event = await create(hall, beside);
    assert.deepEqual({ ...checked.plan, event: event.id }, await document(event));
    const large = { name: 'Field', currency: 'usd', sections: [{ name: 'S', price: 1, rows: 201, seats_per_row: 100 }] };
    assert.deepEqual(assertOk(await server.post('/v1/plans/check', large)), { object: 'plan_check', capacity: 20_100, seats: 20_100, plan: null });
  });

  it('a plan that makes no sense is refused, with the path of the field', WITHOUT_LEDGER, async () => {
    const changed = (change) => { const plan = copy(hall); change(plan); return { name: 'Gala', currency: 'usd', plan, ...beside }; };
    const z0 = (change) => changed((plan) => change(plan.zones[0]));
    const r0 = (change) => z0((zone) => change(zone.rows[0]));
    const s1 = (change) => r0((row) => change(row.seats[1]));
    const a = (index, change) => z0((zone) => change(zone.areas[index]));
    const fields = (more) => planEvent(hall, { ...beside, ...more });
    const seat = 'plan.zones[0].rows[0].seats[1]';
    const area = 'plan.zones[0].areas';
    const refused = [
      [fields({ plan: 7 }), 'plan'], [fields({ plan: [] }), 'plan'], [fields({ plan: null }), 'plan'],
      [fields({ sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 1 }] }), 'sections'],
      [changed((p) => { delete p.name; }), 'plan.name'], [changed((p) => { p.name = 7; }), 'plan.name'],
      [changed((p) => { delete p.size; }), 'plan.size'], [changed((p) => { p.size = 7; }), 'plan.size'],
      [changed((p) => { p.size.width = '800'; }), 'plan.size.width'], [changed((p) => { delete p.size.height; }), 'plan.size.height'],
      [changed((p) => { p.size.width = 0; }), 'plan.size.width'], [changed((p) => { p.size.width = -5; }), 'plan.size.width'],
      [changed((p) => { p.size.height = 1e15; }), 'plan.size.height'], [changed((p) => { p.size.depth = 1; }), 'plan.size.depth'],
      [changed((p) => { delete p.categories; }), 'plan.categories'], [changed((p) => { p.categories = {}; }), 'plan.categories'],
      [changed((p) => { p.categories[1] = 'B'; }), 'plan.categories[1]'], [changed((p) => { delete p.categories[1].name; }), 'plan.categories[1].name'],
      [changed((p) => { p.categories[1].name = ''; }), 'plan.categories[1].name'], [changed((p) => { p.categories[1].price = 5; }), 'plan.categories[1].price'],
      [changed((p) => { p.categories[1].color = 5; }), 'plan.categories[1].color'],
      [changed((p) => { p.categories.push({ name: 'Stalls' }); }), 'plan.categories[3].name'],
      [changed((p) => { delete p.zones; }), 'plan.zones'], [changed((p) => { p.zones = 5; }), 'plan.zones'],
      [changed((p) => { p.zones[1] = null; }), 'plan.zones[1]'], [changed((p) => { p.extra = 1; }), 'plan.extra'],
      [z0((z) => { delete z.position; }), 'plan.zones[0].position'], [z0((z) => { z.position = [1, 2]; }), 'plan.zones[0].position'],
      [z0((z) => { delete z.position.y; }), 'plan.zones[0].position.y'], [z0((z) => { z.position.x = '1'; }), 'plan.zones[0].position.x'],
      [z0((z) => { z.position.x = 1e300; }), 'plan.zones[0].position.x'], [z0((z) => { z.position.z = 1; }), 'plan.zones[0].position.z'],
      [z0((z) => { delete z.rows; }), 'plan.zones[0].rows'], [z0((z) => { z.rows = {}; }), 'plan.zones[0].rows'],
      [z0((z) => { z.name = 5; }), 'plan.zones[0].name'], [z0((z) => { z.extra = 5; }), 'plan.zones[0].extra'],
      [z0((z) => { z.uuid = 5; }), 'plan.zones[0].uuid'], [z0((z) => { z.zone_id = 5; }), 'plan.zones[0].zone_id'],
      [z0((z) => { z.rows[2] = 5; }), 'plan.zones[0].rows[2]'],
      [r0((r) => { delete r.row_number; }), 'plan.zones[0].rows[0].row_number'], [r0((r) => { r.row_number = 5; }), 'plan.zones[0].rows[0].row_number'],
      [r0((r) => { r.row_number_position = 'middle'; }), 'plan.zones[0].rows[0].row_number_position'],
      [r0((r) => { r.row_label = 5; }), 'plan.zones[0].rows[0].row_label'], [r0((r) => { r.seat_label = {}; }), 'plan.zones[0].rows[0].seat_label'],
      [r0((r) => { r.name = 'A'; }), 'plan.zones[0].rows[0].name'], [r0((r) => { r.position = 5; }), 'plan.zones[0].rows[0].position'],
      [r0((r) => { delete r.seats; }), 'plan.zones[0].rows[0].seats'], [r0((r) => { r.seats = 5; }), 'plan.zones[0].rows[0].seats'],
      [r0((r) => { r.seats[1] = 'A'; }), seat],
      [s1((s) => { delete s.seat_guid; }), `${seat}.seat_guid`], [s1((s) => { s.seat_guid = ''; }), `${seat}.seat_guid`],
      [s1((s) => { s.seat_guid = 5; }), `${seat}.seat_guid`], [s1((s) => { s.seat_guid = 'Main-A-1'; }), `${seat}.seat_guid`],
      [s1((s) => { s.seat_guid = 'x'.repeat(5000); }), `${seat}.seat_guid`], [s1((s) => { s.seat_guid = 'a\u0000b'; }), undefined],
      [s1((s) => { s.seat_guid = 'line\nbreak'; }), `${seat}.seat_guid`],
      [s1((s) => { delete s.seat_number; }), `${seat}.seat_number`], [s1((s) => { s.seat_number = 5; }), `${seat}.seat_number`],
      [s1((s) => { delete s.position; }), `${seat}.position`], [s1((s) => { s.position.x = null; }), `${seat}.position.x`],
      [s1((s) => { s.position.y = 1e12; }), `${seat}.position.y`], [s1((s) => { delete s.category; }), `${seat}.category`],
      [s1((s) => { s.category = 'nowhere'; }), `${seat}.category`], [s1((s) => { s.category = 7; }), `${seat}.category`],
      [s1((s) => { s.radius = '5'; }), `${seat}.radius`], [s1((s) => { s.radius = -1; }), `${seat}.radius`], [s1((s) => { s.radius = 1e9; }), `${seat}.radius`],
      [s1((s) => { s.start_direction = 5; }), `${seat}.start_direction`], [s1((s) => { s.accessible = true; }), `${seat}.accessible`],
      [a(0, (x) => { x.shape = 'star'; }), `${area}[0].shape`],
      [a(0, (x) => { delete x.rectangle.width; }), `${area}[0].rectangle.width`], [a(0, (x) => { x.rotation = '5'; }), `${area}[0].rotation`],
      [a(0, (x) => { x.text.position = 5; }), `${area}[0].text.position`], [a(0, (x) => { delete x.text.text; }), `${area}[0].text.text`],
      [a(0, (x) => { x.capacity = 5; }), `${area}[0].capacity`], [a(1, (x) => { x.circle.radius = 'wide'; }), `${area}[1].circle.radius`],
      [a(2, (x) => { x.ellipse.radius = 5; }), `${area}[2].ellipse.radius`], [a(3, (x) => { x.polygon.points = {}; }), `${area}[3].polygon.points`],
      [a(3, (x) => { delete x.polygon.points[1].y; }), `${area}[3].polygon.points[1].y`], [a(4, (x) => { x.color = 5; }), `${area}[4].color`],
      [a(0, (x) => { x.text.position.x = '1'; }), `${area}[0].text.position.x`], [a(2, (x) => { delete x.ellipse.radius.y; }), `${area}[2].ellipse.radius.y`],
      [a(0, (x) => { x.rectangle.width = 1e300; }), `${area}[0].rectangle.width`], [a(0, (x) => { x.text.size = 1e9; }), `${area}[0].text.size`],
      [a(0, (x) => { x.rotation = 1e308; }), `${area}[0].rotation`], [a(3, (x) => { x.polygon.points[2].x = -1e8; }), `${area}[3].polygon.points[2].x`],
      [fields({ prices: undefined }), 'prices'], [fields({ prices: [] }), 'prices'], [fields({ prices: { Stalls: 1, constructor: 1 } }), 'Side "view"'],
      [fields({ prices: { ...beside.prices, Loge: 1 } }), 'prices.Loge'], [fields({ prices: { ...beside.prices, Stalls: -1 } }), 'prices.Stalls'],
      [fields({ prices: { ...beside.prices, Stalls: 1.5 } }), 'prices.Stalls'], [fields({ prices: { ...beside.prices, Stalls: '65' } }), 'prices.Stalls'],
      [fields({ accessible: 'constructor' }), 'accessible'], [fields({ accessible: [5] }), 'accessible[0]'],
      [fields({ accessible: ['constructor', 'Main-A-2'] }), 'accessible[1]'],
      [fields({ focus: 5 }), 'focus'], [fields({ focus: { x: 1 } }), 'focus.y'], [fields({ focus: { x: 'a', y: 1 } }), 'focus.x'],
      [fields({ areas: [{ ...beside.areas[0], plan_area: 'area-none' }] }), 'areas[0].plan_area'],
      [fields({ areas: [beside.areas[0], { ...beside.areas[0], name: 'Again' }] }), 'areas[1].plan_area'],
      [fields({ areas: [{ ...beside.areas[0], plan_area: 5 }] }), 'areas[0].plan_area'],
      [fields({ areas: [{ ...beside.areas[0], capacity: undefined }] }), 'areas[0].capacity'],
      [fields({ areas: [beside.areas[0], { ...beside.areas[1], name: 'Floor' }] }), 'Floor'],
    ];
    const wrong = [];
    for (const [body, field] of refused) {
      try { assertInvalid(await post(body), field); } catch (error) { wrong.push(`${field}: ${error.message}`); }
    }
    assert.deepEqual(wrong, []);
    assert.equal((await server.read('/v1/events?limit=100')).data.some(({ name }) => name !== 'Gala'), false);
  });

  it('numbers that are none, or too large to be any, are refused', WITHOUT_LEDGER, async () => {
    const text = JSON.stringify(planEvent(gridPlan({ rows: 1, seats: 1 }))).replace('"seat_number"', '"radius":RADIUS,"seat_number"');
    assertOk(await post(text.replace('RADIUS', '12')), 201);
    for (const number of ['1e999', '-1e999', 'NaN', 'Infinity', '0x10', '1e', '.5', '+1', '012']) assertInvalid(await post(text.replace('RADIUS', number)));
  });

  it('a name that is written with an escape is the same name', WITHOUT_LEDGER, async () => {
    const [first, second] = [JSON.stringify(gridPlan().zones[0]), JSON.stringify(gridPlan({ id: (z, r, s) => `other ${r} ${s}` }).zones[0])];
    for (const name of ['rows', 'r\\u006fws']) {
      const body = JSON.stringify({ ...planEvent(gridPlan()), plan: { ...gridPlan(), zones: ['ZONES'] } })
        .replace('"ZONES"', `${first},${second.replace('"rows"', `"${name}"`)}`);
      const event = assertOk(await post(body), 201);
      assert.equal(event.capacity, 40, name);
      await server.grant(event, ['z1r1s1', 'other 2 10']);
    }
  });

  it('an error in a row is named by its path, and a list that is no list of rows is not read to its end', WITHOUT_LEDGER, async () => {
    const text = JSON.stringify(planEvent(gridPlan({ rows: 3 })));
    assertInvalid(await post(text.replace('"seat_guid":"z1r2s1"', '"seat_guid":"z1r2s1","seat_guid":"again"')), 'plan.zones[0].rows[1]');
    assertInvalid(await post(text.replace('"z1r2s1"', '"z1r2s1')));
    assertInvalid(await post(text.replace('"z1r2s1"', '"z1r2\\ud800s1"')));
    assertInvalid(await post(Buffer.from(text.replace('z1r2s1', 'z1r2\u00ff'), 'latin1')));
    assertInvalid(await post(text.replace('"rows":[', `"rows":[${'1,'.repeat(1_100_000)}`)), 'plan.zones');
  });

  it('a plan without a single seat or area to sell is refused', WITHOUT_LEDGER, async () => {
    const empty = { ...copy(hall), zones: [] };
    for (const zones of [[], [{ position: { x: 0, y: 0 }, rows: [] }]]) {
      assertInvalid(await post(planEvent({ ...empty, zones }, { prices: beside.prices })), 'plan');
    }
  });

  itOnce('a plan may have several rows of one name, as a block left and right of an aisle has', async () => {
    const plan = gridPlan({ rows: 2, seats: 3 });
    plan.zones[0].rows[1].row_number = plan.zones[0].rows[0].row_number;
    const event = await create(plan);
    assert.deepEqual((await document(event)).sections[0].rows.map(({ name }) => name), ['1', '1']);
    await server.grant(event, ['z1r1s1', 'z1r2s1']);
    assert.deepEqual((await snapshot(event)).sections[0].rows.map(({ seats }) => seats), ['h..', 'h..']);
  });

  itOnce('zones of one name are drawn apart, and meant together by whoever names them', async () => {
    const plan = gridPlan({ zones: 3, rows: 1, seats: 2 });
    plan.zones[2].name = plan.zones[0].name;
    const event = await create(plan);
    assert.deepEqual((await document(event)).sections.map(({ name }) => name), ['Zone 0', 'Zone 1', 'Zone 0']);
    assertOk(await server.post(`/v1/events/${event.id}/block`, { sections: ['Zone 0'] }));
    assert.deepEqual((await snapshot(event)).sections.map(({ rows }) => rows[0].seats), ['xx', '..', 'xx']);
    assertOk(await server.post(`/v1/events/${event.id}/unblock`, { seats: ['z3r1s1', 'z3r1s2'] }));
    assert.deepEqual((await server.take(event, { best_available: { quantity: 2, section: 'Zone 0' } })).seats, ['z3r1s1', 'z3r1s2']);
    assertProblem(await server.ask(event, { best_available: { quantity: 1, section: 'Zone 0' } }), 409, 'sold_out');
  });

  itOnce('a seat that is accessible costs what its category costs, and can be named in any hold', async () => {
    const event = await create(hall, beside);
    assert.deepEqual((await server.grant(event, ['constructor'])).amount, 6500);
  });

  itOnce('a random plan comes back with every seat, label, category and position', async (t) => {
    t.diagnostic(`seed ${seed}`);
    const random = seededRandom();
    for (let round = 0; round < 20; round++) {
      const plan = randomPlan(random);
      const ids = plan.zones.flatMap((zone) => zone.rows.flatMap((row) => row.seats.map(({ seat_guid: id }) => id)));
      const accessible = [...new Set(random.sample(ids, 3))];
      const event = await create(plan, { accessible });
      const shown = await document(event);
      assert.deepEqual(rounded(shown.sections), rounded(expectedSections(plan, { accessible })), `round ${round}`);
      assert.deepEqual(shown.categories, plan.categories.map(({ name, color = null }) => ({ name, color })));
      assert.equal(shown.name, plan.name);
      const some = [...new Set(random.sample(ids, 5))];
      await server.grant(event, some);
      const states = statesOf(shown, await snapshot(event));
      assert.deepEqual([...states].filter(([, state]) => state === 'h').map(([id]) => id).sort(), [...some].sort());
    }
  });

  it('the document is immutable: it has an ETag, may be kept for a year, and can be compressed', WITHOUT_LEDGER, async () => {
    const event = await create(hall, beside);
    const path = `/v1/events/${event.id}/plan`;
    const first = await server.get(path);
    assertOk(first);
    assert.match(first.headers.etag, /^"[^"]+"$/);
    assert.equal(first.headers['cache-control'], 'public, max-age=31536000, immutable');
    assert.match(first.headers.vary ?? '', /Accept-Encoding/i);
    await server.grant(event, 'Main-A-1');
    assertOk(await server.patch(`/v1/events/${event.id}`, { name: 'Other', prices: { Stalls: 1 } }));
    const again = await server.get(path);
    assert.equal(again.text, first.text);
    assert.equal(again.headers.etag, first.headers.etag);
    const zipped = await server.get(path, { 'Accept-Encoding': 'gzip' });
    assert.equal(zipped.headers['content-encoding'], 'gzip');
    assert.equal(zipped.text, first.text);
    const known = await server.get(path, { 'If-None-Match': first.headers.etag });
    assert.deepEqual([known.status, known.text], [304, '']);
    assert.equal((await server.get(path, { 'If-None-Match': '"other"' })).status, 200);
    const head = await server.request('HEAD', path);
    assert.deepEqual([head.status, head.text, head.headers.etag], [200, '', first.headers.etag]);
    assertProblem(await server.get(`/v1/events/evt_${'0'.repeat(28)}/plan`), 404, 'no_such_event');
    assertProblem(await server.post(path, {}), 405, 'method_not_allowed');
    assertInvalid(await server.get(`${path}?x=1`), 'x');
  });

  it('every server answers with the same plan, and the same tag', async () => {
    const event = await create(hall, beside);
    const answers = [];
    for (let i = 0; i < 3; i++) answers.push(await server.get(`/v1/events/${event.id}/plan`));
    assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200]);
    assert.equal(new Set(answers.map(({ text, headers }) => `${headers.etag} ${text}`)).size, 1);
  });

  it('an event with a plan, its document and its states are the same after a restart', async () => {
    const event = assertOk(await server.post('/v1/events', planEvent(hall, beside)), 201);
    await server.grant(event, ['Main-A-1', '座席/七 %2F?#']);
    assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: ['constructor'] }));
    assertOk(await server.patch(`/v1/events/${event.id}`, { prices: { Stalls: 7 } }));
    const listed = assertOk(await server.post('/v1/events', planEvent(gridPlan())), 201);
    const paths = [event, listed].flatMap(({ id }) => [`/v1/events/${id}`, `/v1/events/${id}/plan`, `/v1/events/${id}/seats`]);
    const all = async () => Promise.all(paths.map(async (path) => { const { text, headers: { etag } } = await server.get(path); return { path, text, etag }; }));
    const earlier = await all();
    await server.restart();
    assert.deepEqual(await all(), earlier);
    assert.equal((await server.grant(event, ['Main-A-3', '__proto__'])).amount, 4507);
    assertProblem(await server.hold(event, 'constructor'), 409, 'seat_taken');
    assertInvalid(await server.patch(`/v1/events/${event.id}`, { prices: { Zone: 1 } }), 'Zone');
  });
});

describe('events without a plan', WITHOUT_LEDGER, () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });
  const document = (event) => server.read(`/v1/events/${event.id}/plan`);

  // Seats stand apart, inside the plan, and rows as long as theatres have none without an aisle have one.
  function assertDrawable(plan, aisleFrom = 0) {
    const cells = new Map(); // seats by their place in a grid as wide as a seat
    const cellAt = (x, y) => Math.floor(x / 20) * 100_000 + Math.floor(y / 20);
    for (const seat of plan.sections.flatMap(({ rows }) => rows.flatMap(({ seats }) => seats))) {
      const { id, x, y, radius = 10 } = seat;
      assert.ok(x >= radius && x <= plan.size.width - radius && y >= radius && y <= plan.size.height - radius, `${id} at ${x}, ${y} is outside`);
      for (let i = -20; i <= 20; i += 20) {
        for (let j = -20; j <= 20; j += 20) {
          const near = cells.get(cellAt(x + i, y + j));
          if (near) assert.ok(Math.hypot(near.x - x, near.y - y) >= 19.9, `${id} and ${near.id} overlap`);
        }
      }
      cells.set(cellAt(x, y), seat);
    }
    assert.ok(Number.isFinite(plan.focus.x) && Number.isFinite(plan.focus.y));
    if (!aisleFrom) return;
    for (const row of plan.sections.flatMap(({ rows }) => rows)) {
      const gaps = row.seats.slice(1).map((seat, i) => Math.hypot(seat.x - row.seats[i].x, seat.y - row.seats[i].y)).sort((a, b) => a - b);
      if (row.seats.length >= aisleFrom) assert.ok(gaps.at(-1) > 1.5 * gaps[gaps.length >> 1], `row ${row.name} of ${row.seats.length} has no aisle`);
    }
  }

  it('get a drawn one: their sections and rows, the section as category, every seat apart from the others', async () => {
    const event = await server.createEvent({
      sections: [
        { name: 'Stalls', tier: 'A', price: 6500, rows: 12, seats_per_row: 30 }, { name: 'Balcony', price: 4500, rows: 3, seats_per_row: 7 },
        { name: 'Box', price: 9900, rows: [{ name: 'Left', seats: 2 }, { name: '7', seats: 1 }] }],
      areas: [{ name: 'Floor', price: 3000, capacity: 500 }],
    });
    const plan = await document(event);
    assertDrawable(plan, 30);
    assert.deepEqual(plan.sections.map(({ name, rows }) => [name, rows.length, rows[0].seats.length]), [['Stalls', 12, 30], ['Balcony', 3, 7], ['Box', 2, 2]]);
    assert.deepEqual(plan.categories.map(({ name }) => name), ['Stalls', 'Balcony', 'Box']);
    for (const { id, label, section, row, category } of seatsOf(plan)) assert.deepEqual([id, category], [`${section}-${row}-${label}`, section]);
    assert.deepEqual([...statesOf(plan, await server.read(`/v1/events/${event.id}/seats`)).keys()], Object.keys(await server.map(event)));
    assert.deepEqual(plan.areas.filter(({ name }) => name !== null).map(({ name }) => name), ['Floor']);
    assert.deepEqual((await server.read(`/v1/events/${event.id}/seats`)).prices, { Stalls: 6500, Balcony: 4500, Box: 9900, Floor: 3000 });
  });

  for (const [what, sections] of [
    ['one seat', [{ name: 'S', price: 1, rows: 1, seats_per_row: 1 }]],
    ['one row of 5,000 seats', [{ name: 'S', price: 1, rows: 1, seats_per_row: 5000 }]],
    ['5,000 rows of one seat', [{ name: 'S', price: 1, rows: 5000, seats_per_row: 1 }]],
    ['60 sections', Array.from({ length: 60 }, (_, i) => ({ name: `S${i}`, price: 1, rows: 1 + i % 7, seats_per_row: 1 + i % 40 }))],
    ['rows of very different lengths', [{ name: 'S', price: 1, rows: Array.from({ length: 40 }, (_, i) => ({ name: `${i}`, seats: 1 + (i * 37) % 90 })) }]],
    ['100,000 seats', [{ name: 'S', price: 1, rows: 250, seats_per_row: 200 }, { name: 'T', price: 1, rows: 250, seats_per_row: 200 }]],
  ]) {
    it(`of ${what} get a plan that can be drawn`, WITHOUT_LEDGER, async () => {
      assertDrawable(await document(await server.createEvent({ sections })));
    });
  }

  it('of areas only get one as well', async () => {
    const answer = await server.post('/v1/events', { name: 'Gig', currency: 'usd', areas: [{ name: 'Floor', price: 1, capacity: 5 }, { name: 'Lawn', price: 1, capacity: 5 }] });
    const plan = await document(assertOk(answer, 201));
    assert.deepEqual(plan.sections, []);
    assert.deepEqual(plan.areas.filter(({ name }) => name !== null).map(({ name }) => name), ['Floor', 'Lawn']);
    assert.ok(plan.size.width > 0 && plan.size.height > 0);
  });
});

describe('listed seats', WITHOUT_LEDGER, () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });
  const categories = [{ name: 'A', price: 6500, color: '#0a7' }, { name: 'B', price: 4500 }];
  const create = (sections, fields = {}) => server.post('/v1/events', { name: 'Gala', currency: 'usd', categories, sections, ...fields });

  it('have labels, categories and flags of their own, and ids made of section, row and label', async () => {
    const rows = [
      { name: 'A', seats: ['1', '3', { label: '5', category: 'B' }, { label: '7', accessible: true }, { label: '9a', companion: true, restricted_view: true }] },
      { name: 'B', seats: 2 }];
    const event = assertOk(await create([{ name: 'Stalls', category: 'A', rows }]), 201);
    const plan = await server.read(`/v1/events/${event.id}/plan`);
    const flat = seatsOf(plan).map(({ id, label, category, accessible, companion, restricted_view: view }) => [id, label, category, accessible, companion, view]);
    const no = undefined;
    assert.deepEqual(flat, [
      ['Stalls-A-1', '1', 'A', no, no, no], ['Stalls-A-3', '3', 'A', no, no, no], ['Stalls-A-5', '5', 'B', no, no, no],
      ['Stalls-A-7', '7', 'A', true, no, no], ['Stalls-A-9a', '9a', 'A', no, true, true],
      ['Stalls-B-1', '1', 'A', no, no, no], ['Stalls-B-2', '2', 'A', no, no, no]]);
    assert.deepEqual(plan.categories, [{ name: 'A', color: '#0a7' }, { name: 'B', color: null }]);
    assert.equal((await server.grant(event, ['Stalls-A-3', 'Stalls-A-5', 'Stalls-A-9a'])).amount, 17_500);
    assertProblem(await server.hold(event, 'Stalls-A-2'), 404, 'no_such_seat');
    assert.deepEqual([...statesOf(plan, await server.read(`/v1/events/${event.id}/seats`)).values()].join(''), '.hh.h..');
  });

  it('keep the positions that are given', async () => {
    const seats = [{ label: '1', x: 10, y: 20.5 }, { label: '2', x: 40, y: 21 }];
    const event = assertOk(await create([{ name: 'S', category: 'A', rows: [{ name: 'A', seats }] }]), 201);
    const plan = await server.read(`/v1/events/${event.id}/plan`);
    assert.deepEqual(seatsOf(plan).map(({ x, y }) => [x, y]), [[10, 20.5], [40, 21]]);
  });

  it('a body of very many empty values is refused before it becomes a tree', WITHOUT_LEDGER, async () => {
    for (const zones of [`[${'{},'.repeat(1_000_001)}{}]`, `[${'1,'.repeat(4_000_010)}1]`]) {
      assertInvalid(await server.post('/v1/events', `{"name":"X","currency":"usd","plan":{"zones":${zones}}}`), 'body');
    }
  });

  // The reader of JSON makes four copies of a text, so that 63 MB of it would take 250.
  it('a text or a number of more than a megabyte is refused before it is read', WITHOUT_LEDGER, async () => {
    const long = JSON.stringify('x'.repeat((1 << 20) + 1)), most = JSON.stringify('x'.repeat((1 << 20) - 2));
    const text = JSON.stringify(planEvent(gridPlan()));
    for (const value of [long, `{"a":[${long}]}`, long.replaceAll('x', '1').slice(1, -1)]) {
      assertInvalid(await server.post('/v1/events', text.replace('{', `{"metadata":${value},`)), 'a text of more than a megabyte');
    }
    assertInvalid(await server.post('/v1/events', text.replace('"seats":[', `"uuid":${long},"seats":[`)), 'plan.zones[0].rows[0] has');
    assertInvalid(await server.post('/v1/events', text.replace('{', `{"metadata":${most},`)), 'metadata');
  });

  it('in a hall that lies left of and above the origin the focus is above the middle', async () => {
    const seats = [-150, -120, -90, -60, -30].map((x, i) => ({ label: `${i}`, x, y: -40 }));
    const event = assertOk(await create([{ name: 'S', category: 'A', rows: [{ name: 'A', seats }] }]), 201);
    const plan = await server.read(`/v1/events/${event.id}/plan`);
    assert.deepEqual(plan.focus, { x: -90, y: -60 });
    assert.deepEqual((await server.take(event, { best_available: { quantity: 1 } })).seats, ['S-A-2']);
  });

  it('may have a category that is named like an area: a price by that name is for both', async () => {
    const event = assertOk(await create([{ name: 'S', category: 'A', rows: 1, seats_per_row: 2 }], { areas: [{ name: 'A', price: 5, capacity: 9 }] }), 201);
    assertOk(await server.patch(`/v1/events/${event.id}`, { prices: { A: 700 } }));
    const map = assertOk(await server.get(`/v1/events/${event.id}/seats`));
    assert.equal(map.prices.A, 700);
    assert.equal(map.areas[0].price, 700);
    assert.equal((await server.grant(event, ['S-A-1'], { areas: { A: 1 } })).amount, 1400);
  });

  it('keep price and tier of their section, which is then their category', async () => {
    const section = { name: 'S', tier: 'T', price: 10, rows: [{ name: 'A', seats: ['1', '3', '5'] }] };
    const answer = await server.post('/v1/events', { name: 'Gala', currency: 'usd', sections: [section] });
    const event = assertOk(answer, 201);
    assert.equal((await server.grant(event, ['S-A-3', 'S-A-5'])).amount, 20);
    assert.deepEqual(seatsOf(await server.read(`/v1/events/${event.id}/plan`)).map(({ id, category }) => [id, category]), [['S-A-1', 'S'], ['S-A-3', 'S'], ['S-A-5', 'S']]);
  });

  it('come back at once as they were listed, also where only the last of a long row is none that counting makes', async () => {
    const seats = [...Array.from({ length: 20_000 }, (_, i) => String(i + 1)), 'last'];
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: [{ name: 'A', seats }, { name: 'B', seats: ['1', '2'] }] }] });
    const { sections: [{ rows }] } = await server.read(`/v1/events/${event.id}`);
    assert.deepEqual(rows.map(({ name, seats: n }) => [name, n.length ?? n, n.at?.(-1)]), [['A', 20_001, 'last'], ['B', 2, undefined]]);
  });

  it('that make no sense are refused, with the path of the field', WITHOUT_LEDGER, async () => {
    const one = (seat) => [{ name: 'S', category: 'A', rows: [{ name: 'A', seats: ['1', seat] }] }];
    const at = 'sections[0].rows[0].seats[1]';
    const refused = [
      [one(5), at], [one(''), at], [one(null), at], [one('1'), at], [one({}), `${at}.label`], [one({ label: 5 }), `${at}.label`],
      [one({ label: '2', category: 'C' }), `${at}.category`], [one({ label: '2', price: 5 }), `${at}.price`], [one({ label: '2', accessible: 'yes' }), `${at}.accessible`],
      [one({ label: '2', x: '5', y: 1 }), `${at}.x`], [one({ label: '2', x: 5 }), `${at}`], [one({ label: 'x'.repeat(300) }), `${at}.label`],
      [[{ name: 'S', category: 'C', rows: 1, seats_per_row: 1 }], 'sections[0].category'],
      [[{ name: 'S', category: 'A', price: 5, rows: 1, seats_per_row: 1 }], 'sections[0].price'],
      [[{ name: 'S', category: 'A', rows: [{ name: 'A', seats: [] }] }], 'sections[0].rows[0].seats'],
    ];
    for (const [sections, field] of refused) {
      try { assertInvalid(await create(sections), field); } catch (error) {
        error.message = `${JSON.stringify(sections).slice(0, 200)}: ${error.message}`;
        throw error;
      }
    }
    const good = [{ name: 'S', category: 'A', rows: 1, seats_per_row: 1 }];
    for (const [list, field] of [
      [5, 'categories'], [[5], 'categories[0]'], [[{ name: 'A' }], 'categories[0].price'], [[{ price: 1 }], 'categories[0].name'],
      [[...categories, { name: 'A', price: 1 }], 'categories[2].name'], [[...categories, { name: 'C', price: -1 }], 'categories[2].price'], [[{ ...categories[0], x: 1 }], 'categories[0].x'],
    ]) assertInvalid(await create(good, { categories: list }), field);
  });
});

describe('large plans', WITHOUT_LEDGER, () => {
  let server;
  before(async () => { server = await start(); });
  after(async () => { try { await server?.finish(); } finally { await reap(); } });

  it('an arena of 80,000 seats in 30 zones is made, drawn and sold', async (t) => {
    const plan = arena();
    const body = JSON.stringify(planEvent(plan));
    const from = performance.now();
    const event = assertOk(await server.post('/v1/events', body), 201);
    const madeMs = performance.now() - from;
    assert.equal(event.capacity, 80_000);
    const read = performance.now();
    const zipped = await server.get(`/v1/events/${event.id}/plan`, { 'Accept-Encoding': 'gzip' });
    const readMs = performance.now() - read;
    const [shown, expected] = [seatsOf(zipped.json), seatsOf({ sections: expectedSections(plan) })];
    assert.equal(shown.length, expected.length);
    for (const [i, { id, label, category, section, row, x, y }] of expected.entries()) {
      const seat = shown[i];
      const same = seat.id === id && seat.label === label && seat.category === category && seat.section === section && seat.row === row;
      if (!same || Math.abs(seat.x - x) > 1e-6 || Math.abs(seat.y - y) > 1e-6) assert.deepEqual(seat, expected[i]);
    }
    t.diagnostic(`${(body.length / MIB).toFixed(1)} MiB made in ${madeMs.toFixed(0)} ms; the document of ${(zipped.text.length / MIB).toFixed(1)} MiB, `
      + `${(zipped.bytes.length / MIB).toFixed(2)} MiB compressed, read in ${readMs.toFixed(0)} ms`);
    assert.ok(zipped.bytes.length < 2 * MIB, `${zipped.bytes.length} bytes`);
    const best = await server.take(event, { best_available: { quantity: 4, category: 'Category 3' } });
    assert.equal(best.seats.length, 4);
    await server.grant(event, ['Block 1-1-1', 'Block 30-10-40']);
    await server.restart();
    assertProblem(await server.hold(event, 'Block 30-10-40'), 409, 'seat_taken');
    assert.equal((await server.get(`/v1/events/${event.id}/plan`)).text, zipped.text);
  });

  it('a body may have 64 MiB with a plan, and 8 MiB without', WITHOUT_LEDGER, async () => {
    const padded = (n, fields) => { const text = JSON.stringify(fields); return `${text.slice(0, -1)}${' '.repeat(n - text.length)}}`; };
    const plan = planEvent(gridPlan());
    assertOk(await server.post('/v1/events', padded(9 * MIB, plan)), 201);
    assertProblem(await server.post('/v1/events', padded(64 * MIB + 1, plan)), 413, 'body_too_large');
    const counted = { name: 'Gala', currency: 'usd', sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 1 }] };
    assertOk(await server.post('/v1/events', padded(8 * MIB, counted)), 201);
    assertProblem(await server.post('/v1/events', padded(8 * MIB + 1, counted)), 413, 'body_too_large');
    assertInvalid(await server.post('/v1/events', padded(9 * MIB, plan).slice(0, -1)), 'body ends too early');
  });

  it('seats whose ids would be too long all together are refused, since they could not be stored', WITHOUT_LEDGER, async () => {
    const long = (end) => '\u{1f3ad}'.repeat(31) + end;
    const rows = Array.from({ length: 20 }, (_, i) => ({ name: long(String.fromCharCode(65 + i)), seats: 100_000 }));
    assertInvalid(await server.post('/v1/events', {
      name: 'Gala', currency: 'usd', categories: [{ name: 'A', price: 1 }], sections: [{ name: long('S'), category: 'A', rows }],
    }), 'shorter names');
  });

  it('many areas beside a plan of many areas are matched without delay', WITHOUT_LEDGER, async () => {
    const many = (n, make) => Array.from({ length: n }, (_, i) => make(i));
    const plan = gridPlan();
    plan.zones[0].areas = many(10_000, (i) => ({ shape: 'circle', circle: { radius: 1 }, uuid: `uuid ${i}` }));
    const areas = many(40_000, (i) => ({ name: `Area ${i}`, price: 1, capacity: 1, ...(i < 10_000 ? { plan_area: `uuid ${9_999 - i}` } : {}) }));
    const event = assertOk(await server.post('/v1/events', planEvent(plan, { areas })), 201);
    const shown = (await server.get(`/v1/events/${event.id}/plan`)).json.areas;
    assert.equal(shown.length, 40_000);
    assert.ok(shown.slice(0, 10_000).every(({ name, uuid }, i) => uuid === `uuid ${i}` && name === `Area ${9_999 - i}`));
  });

  it('clients that take no gzip and read nothing share one document', WITHOUT_LEDGER, async () => {
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 100, seats_per_row: 500 }] });
    const path = `/v1/events/${event.id}/plan`;
    const { text } = await server.get(path);
    const before = residentBytes(server.pid);
    const clients = Array.from({ length: 20 }, () => net.connect(server.port, server.host));
    for (const client of clients) client.write(`GET ${path} HTTP/1.1\r\nHost: ${server.host}:${server.port}\r\n\r\n`);
    await Promise.all(clients.map((client) => once(client, 'readable')));
    const grown = residentBytes(server.pid) - before;
    for (const client of clients) client.destroy();
    assert.ok(grown < 10 * text.length, `${grown} bytes more for 20 clients of ${text.length} bytes`);
    assert.equal((await server.get(path)).text, text);
  });

  it('a plan of too many rows, areas, categories or points is refused by its path', WITHOUT_LEDGER, async () => {
    const many = (n, make) => Array.from({ length: n }, (_, i) => make(i));
    const grid = gridPlan({ rows: 1, seats: 1 });
    const [zone] = grid.zones;
    const [row] = zone.rows;
    const seat = (i) => ({ ...row.seats[0], seat_guid: `s${i}` });
    for (const [plan, field] of [
      [{ ...grid, zones: [{ ...zone, rows: many(100_001, (i) => ({ ...row, seats: [seat(i)] })) }] }, 'plan.zones[0].rows[100000]'],
      [{ ...grid, zones: [{ ...zone, areas: many(10_001, () => ({ shape: 'circle', circle: { radius: 1 } })) }] }, 'plan.zones[0].areas[10000]'],
      [{ ...grid, zones: [{ ...zone, areas: [{ shape: 'polygon', polygon: { points: many(10_001, (i) => ({ x: i, y: 0 })) } }] }] }, 'plan.zones[0].areas[0].polygon.points'],
      [{ ...grid, categories: [...grid.categories, ...many(250, (i) => ({ name: `c${i}` }))] }, 'plan.categories[250]'],
    ]) assertInvalid(await server.post('/v1/events', planEvent(plan)), field);
  });
});
