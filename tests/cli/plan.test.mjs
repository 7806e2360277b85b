// `holdfast plan` and `holdfast event create --plan`: a hall is checked, drawn and put on sale by hand.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { holdfast } from '../support/cli.mjs';
import { gridPlan, planEvent } from '../support/plans.mjs';
import { reap, removeTempDir, start, tempDir } from '../support/server.mjs';

const theatre = new URL('../../share/holdfast/theatre.json', import.meta.url).pathname;
const event = JSON.parse(fs.readFileSync(theatre, 'utf8'));

let dir;
before(() => { dir = tempDir(); });
after(async () => { await reap(); removeTempDir(dir); });

function write(name, value) {
  const file = path.join(dir, name);
  fs.writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  return file;
}
const plan = (args, options) => holdfast(undefined, ['plan', ...args], options);
async function ok(args, options) {
  const { code, stdout, stderr } = await plan(args, options);
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
  assert.equal(stderr, '');
  return stdout;
}

describe('holdfast plan check', () => {
  it('says what a plan has: zones, categories with their seats and prices, areas', async () => {
    const said = JSON.parse(await ok(['check', '--json', theatre]));
    const seats = event.plan.zones.flatMap(({ rows }) => rows.flatMap((row) => row.seats));
    assert.equal(said.seats, seats.length);
    assert.deepEqual(said.zones.map(({ name }) => name), event.plan.zones.map(({ name }) => name));
    assert.equal(said.zones.reduce((sum, zone) => sum + zone.seats, 0), seats.length);
    assert.deepEqual(said.categories, event.plan.categories.map(({ name }) => (
      { name, seats: seats.filter(({ category }) => category === name).length, price: event.prices[name] })));
    assert.equal(said.areas.length, event.plan.zones.reduce((sum, { areas }) => sum + areas.length, 0));
    assert.deepEqual(said.warnings, []);
    const text = await ok(['check', theatre]);
    assert.match(text, /^Small theatre: 604 seats, 1200 x 1110$/m);
    assert.match(text, /^Premium +\d+ +9500$/m);
  });

  it('takes a plan alone, and standard input', async () => {
    const alone = await ok(['check', write('alone.json', event.plan)]);
    assert.match(alone, /^Premium +\d+$/m);
    assert.equal(await ok(['check', '-'], { input: JSON.stringify(event.plan) }), alone);
  });

  it('takes a plan that has areas and no seats', async () => {
    const area = { shape: 'circle', circle: { radius: 50 }, uuid: 'lawn' };
    const lawn = { name: 'Lawn', size: { width: 100, height: 100 }, categories: [], zones: [{ position: { x: 50, y: 50 }, rows: [], areas: [area] }] };
    const file = write('lawn.json', planEvent(lawn, { areas: [{ name: 'Lawn', price: 1, capacity: 500, plan_area: 'lawn' }] }));
    assert.match(await ok(['check', file]), /^Lawn: 0 seats, 100 x 100$/m);
    assert.match(await ok(['draw', file]), /<title>Lawn: 500 places<\/title><circle r="50"\/>/);
  });

  it('warns of what a server accepts and nobody means', async () => {
    const odd = gridPlan({ rows: 2, seats: 3 });
    odd.categories.push({ name: 'Nobody' });
    odd.zones[0].rows[0].seats[1].position.x = 0;
    odd.zones[0].rows[1].seats[2].position.x = 5000;
    const { warnings } = JSON.parse(await ok(['check', '--json', write('odd.json', odd)]));
    assert.equal(warnings.length, 3, `${warnings}`);
    assert.match(warnings[0], /^1 .*outside.* z1r2s3$/);
    assert.match(warnings[1], /^1 .*place of another seat.* z1r1s[12]$/);
    assert.match(warnings[2], /Nobody/);
    assert.match(await ok(['check', write('odd.json', odd)]), /^warning: no seat has the category Nobody$/m);
  });

  it('refuses what a server refuses, in the same words, with exit status 65', async () => {
    const server = await start();
    const changed = (change) => { const body = structuredClone(event); change(body); return body; };
    for (const body of [
      changed((b) => { b.plan.zones[1].rows[2].seats[3].category = 'Loge'; }), changed((b) => { b.plan.zones[0].rows[0].seats[1].seat_guid = 'Stalls-A-1'; }),
      changed((b) => { delete b.prices.Box; }), changed((b) => { b.prices.Loge = 5; }), changed((b) => { b.accessible.push('nowhere'); }),
      changed((b) => { b.areas[0].plan_area = 'nothing'; }), changed((b) => { b.plan.extra = 1; }), changed((b) => { b.plan.size.width = -1; }),
    ]) {
      const answer = await server.post('/v1/events', body);
      assert.equal(answer.status, 400, answer.text);
      const { code, stdout, stderr } = await plan(['check', '-'], { input: JSON.stringify(body) });
      assert.deepEqual([code, stdout], [65, '']);
      assert.equal(stderr, `holdfast plan check: -: ${answer.json.detail}\n`);
    }
    await server.stop();
  });

  it('says what is wrong with a file that has no plan at all', async () => {
    for (const [text, what] of [['', 'JSON'], ['[]', 'not a JSON object'], ['{"a":1,"a":2}', 'duplicate'], ['{"name":', 'line 1'], ['{}', 'plan'], ['{"plan":7}', 'plan'], [planEvent({ categories: [] }), 'plan']]) {
      const { code, stdout, stderr } = await plan(['check', write('bad.json', text)]);
      assert.deepEqual([code, stdout], [65, ''], stderr);
      assert.ok(stderr.includes(what), stderr);
    }
    const { code, stderr } = await plan(['check', path.join(dir, 'none.json')]);
    assert.equal(code, 65);
    assert.match(stderr, /none\.json: No such file/);
  });

  it('explains its usage', async () => {
    for (const args of [[], ['paint'], ['check'], ['check', 'a', 'b'], ['draw', '--json', theatre], ['check', '--color', theatre]]) {
      const { code, stdout, stderr } = await plan(args);
      assert.deepEqual([code, stdout], [64, '']);
      assert.notEqual(stderr, '');
    }
    assert.match(await ok(['check', '--help']), /plan draw FILE/);
  });
});

// Asserts that the text is a well-formed document; returns its elements as [{ name, attributes }].
function elements(svg) {
  const open = [];
  const found = [];
  let rest = svg;
  while (rest !== '') {
    const [token, text, close, name, attributes, empty] = /^(?:([^<]+)|<(\/?)([a-z]+)((?: [a-zA-Z-]+="[^"<]*")*)(\/?)>)/.exec(rest) ?? assert.fail(rest.slice(0, 100));
    rest = rest.slice(token.length);
    if (text) assert.ok(!/&(?!#\d+;)/.test(text) && (open.length > 0 || text.trim() === ''), text);
    else if (close) assert.equal(open.pop(), name);
    else {
      assert.ok(!/&(?!#\d+;)/.test(attributes), attributes);
      found.push({ name, attributes });
      if (!empty) open.push(name);
    }
  }
  assert.deepEqual(open, []);
  return found;
}

describe('holdfast plan draw', () => {
  it('draws every seat, round or, if it is accessible, square', async () => {
    const svg = await ok(['draw', theatre]);
    const drawn = elements(svg);
    const titles = new Set([...svg.matchAll(/<title>([^<]*)<\/title>/g)].map(([, text]) => text));
    for (const { seat_guid: id, category } of event.plan.zones.flatMap(({ rows }) => rows.flatMap((row) => row.seats))) {
      assert.ok(titles.has(`${id}, ${category}${event.accessible.includes(id) ? ', accessible' : ''}`), id);
    }
    const count = (element, fill) => drawn.filter(({ name, attributes }) => name === element && attributes.includes(`fill="${fill}"`)).length;
    const { color } = event.plan.categories.find(({ name }) => name === 'Stalls');
    assert.equal(count('rect', color), event.accessible.length);
    const balcony = event.plan.categories.find(({ name }) => name === 'Balcony').color;
    assert.equal(count('circle', balcony), event.plan.zones.at(-1).rows.flatMap(({ seats }) => seats).length + 1); // and one in the legend
    assert.ok(titles.has('Floor: 120 places') && titles.has('focus'));
    assert.equal(drawn.filter(({ name }) => name === 'polygon').length, 2);
    assert.match(svg, /prefers-color-scheme: dark/);
  });

  it('draws hostile text as text, and no colour that is something else', async () => {
    const evil = '"><script>alert(1)</script>\'&';
    const bad = gridPlan({ rows: 1, seats: 2, category: evil, id: (z, r, s) => `${evil}${s}` });
    bad.name = evil;
    bad.categories[0].color = 'url(http://evil.example/x)';
    bad.zones[0].rows[0].row_number = evil;
    bad.zones[0].rows[0].row_number_position = 'both';
    bad.zones[0].rows[0].seats[0].seat_number = evil;
    bad.zones[0].areas = [
      { shape: 'rectangle', position: { x: 0, y: 0 }, rectangle: { width: 5, height: 5 }, color: 'red" onload="alert(1)', border_color: 'URL(#a)', uuid: evil,
        text: { text: `${evil}\u0001\uffff`, color: 'expression(alert(1));', position: { x: 0, y: 0 } } }];
    const svg = await ok(['draw', '-'], { input: JSON.stringify(planEvent(bad, { areas: [{ name: `${evil}2`, price: 1, capacity: 5, plan_area: evil }] })) });
    const drawn = elements(svg);
    assert.deepEqual([...new Set(drawn.map(({ name }) => name))].sort(), ['circle', 'g', 'rect', 'style', 'svg', 'text', 'title']);
    for (const { attributes } of drawn) assert.ok(!/url|script|onload|expression|http:\/\/evil/i.test(attributes), attributes);
    assert.ok(!/[\u0000-\u0008\uffff]/.test(svg));
  });

  it('refuses what check refuses, and writes nothing', async () => {
    const { code, stdout, stderr } = await plan(['draw', write('bad.json', { ...event.plan, zones: 5 })]);
    assert.deepEqual([code, stdout], [65, '']);
    assert.match(stderr, /plan\.zones/);
  });
});

describe('holdfast event create --plan', () => {
  let server;
  before(async () => { server = await start(); });
  after(() => server.stop());
  const run = (...args) => holdfast(undefined, args, { env: { HOLDFAST_SERVER: `http://${server.host}:${server.port}` } });
  async function fine(...args) {
    const { code, stdout, stderr } = await run(...args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  it('puts a hall on sale, with prices, wheelchair places, the focus and a standing area', async () => {
    const file = write('plan.json', event.plan);
    const prices = Object.entries(event.prices).flatMap(([name, price]) => ['--price', `${name}=${price}`]);
    const made = JSON.parse(await fine('event', 'create', '--name', 'Gala', '--currency', 'usd', '--plan', file, ...prices,
      ...event.accessible.flatMap((id) => ['--accessible', id]), '--focus', '600,140', '--area', `Floor:120:3000:${event.areas[0].plan_area}`, '--json'));
    const whole = JSON.parse(await fine('event', 'create', '--file', theatre, '--json'));
    assert.equal(made.capacity, 724);
    const [one, other] = await Promise.all([made, whole].map(({ id }) => server.read(`/v1/events/${id}/plan`)));
    assert.deepEqual({ ...one, event: undefined }, { ...other, event: undefined });
    assert.deepEqual(one.focus, { x: 600, y: 140 });
    const hold = JSON.parse(await fine('hold', 'create', made.id, '--best', '2', '--category', 'Premium', '--json'));
    assert.equal(hold.amount, 19_000);
    const wheelchair = JSON.parse(await fine('hold', 'create', made.id, '--best', '1', '--accessible', '--json'));
    assert.match(wheelchair.seats[0], /^Stalls-W-/);
  });

  it('lists, shows, closes and opens events, and changes the price of a category', async () => {
    const made = JSON.parse(await fine('event', 'create', '--file', theatre, '--json'));
    assert.ok((await fine('event', 'ls')).includes(made.id));
    assert.equal(await fine('event', 'ls'), await fine('event', 'list'));
    assert.match(await fine('event', 'show', made.id), /^capacity +724$/m);
    assert.match(await fine('event', 'map', made.id), /^Stalls {2}price -$/m);
    assert.match(await fine('event', 'close', made.id), /^status +closed$/m);
    assert.match(await fine('event', 'open', made.id), /^status +open$/m);
    await fine('event', 'set', made.id, '--price', 'Box=5');
    assert.equal(JSON.parse(await fine('hold', 'create', made.id, 'Box-1-1', '--json')).amount, 5);
  });

  it('refuses a wrong option before it asks the server', async () => {
    for (const args of [['--focus', '5'], ['--focus', '5,'], ['--focus', 'nan,1'], ['--focus', '1,2,3'], ['--price', 'Box'], ['--plan', path.join(dir, 'none.json')], ['--area', 'Floor:5']]) {
      const { code, stderr } = await run('event', 'create', '--name', 'Gala', '--currency', 'usd', ...args);
      assert.equal(code, 64, stderr);
      assert.ok(stderr.includes(args[0]), stderr);
    }
    const { code, stderr } = await run('event', 'create', '--name', 'Gala', '--currency', 'usd', '--plan', write('plan.json', event.plan));
    assert.equal(code, 65);
    assert.match(stderr, /prices\.Premium/);
  });
});
