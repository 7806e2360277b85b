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

describe('holdfast plan check --fix', () => {
  // A plan of two rows of three seats, as `change` leaves it.
  const made = (change) => { const it = gridPlan({ rows: 2, seats: 3 }); change(it, it.zones[0].rows[0].seats); return it; };
  // Repairs the value, and asserts that a server takes the result; resolves to it and the lines.
  async function repaired(value) {
    const { code, stdout, stderr } = await plan(['check', '--fix', '-'], { input: JSON.stringify(value) });
    assert.equal(code, 0, stderr);
    const fixed = JSON.parse(stdout);
    await ok(['check', '-'], { input: stdout });
    return { fixed, lines: stderr.split('\n').slice(0, -1) };
  }

  it('gives seats without a category the only one that there is, or one of their own', async () => {
    const one = await repaired(made((_, seats) => { seats[0].category = ''; seats[1].category = ''; delete seats[2].category; }));
    assert.deepEqual(one.lines, ['fixed: plan.zones[0].rows[0].seats[0..2].category: was empty and is now Stalls']);
    assert.deepEqual(one.fixed, gridPlan({ rows: 2, seats: 3 }));
    const several = await repaired(made((it, seats) => { it.categories.push({ name: 'Box' }); it.zones[0].rows[1].seats[2].category = 'Box'; seats[1].category = '  '; }));
    assert.deepEqual(several.fixed.categories.map(({ name }) => name), ['Stalls', 'Box', 'Other']);
    assert.equal(several.fixed.zones[0].rows[0].seats[1].category, 'Other');
    assert.deepEqual(several.lines, ['fixed: plan.categories: Other was added, for seats that name no category; give it a price',
      'fixed: plan.zones[0].rows[0].seats[1].category: was empty and is now Other']);
  });

  it('has wheelchair places stand where a server looks for them', async () => {
    const odd = made((_, seats) => { seats[0].wheelchair = true; seats[1].wheelchair = false; seats[2].accessible = true; });
    const alone = await repaired(odd);
    assert.deepEqual(alone.fixed, gridPlan({ rows: 2, seats: 3 }));
    assert.deepEqual(alone.lines, [
      'fixed: plan.zones[0].rows[0].seats[0].wheelchair: was removed; say --accessible z1r1s1 when you create the event',
      'fixed: plan.zones[0].rows[0].seats[1].wheelchair: was removed: the seat is an ordinary one',
      'fixed: plan.zones[0].rows[0].seats[2].accessible: was removed; say --accessible z1r1s3 when you create the event']);
    const whole = await repaired(planEvent(odd, { accessible: ['z1r1s1'] }));
    assert.deepEqual(whole.fixed, planEvent(gridPlan({ rows: 2, seats: 3 }), { accessible: ['z1r1s1', 'z1r1s3'] }));
  });

  it('repairs what is of the wrong kind, null, missing or no part of the format', async () => {
    const { fixed, lines } = await repaired({ id: 7, layout: made((it, seats) => {
      delete it.size;
      it.$schema = 'x';
      it.version = '0.0.1';
      const [zone] = it.zones;
      Object.assign(zone, { displayed: true, uuid: null, zone_id: 5, position: null, areas: null });
      Object.assign(zone.rows[0], { row_number: 1, row_number_position: 'left', number_of_seats: 3, uuid: null, position: { x: '24', y: 24, z: 0 } });
      Object.assign(zone.rows[1], { row_number_position: 'none', row_label: 'Reihe %s' });
      for (const [i, seat] of seats.entries()) Object.assign(seat, { seat_number: i + 1, radius: '12.5', uuid: null, notes: 'x' });
    }) });
    const [first, second] = fixed.zones[0].rows;
    assert.deepEqual(fixed.size, { width: 96, height: 48 });
    assert.deepEqual(fixed.zones[0].position, { x: 0, y: 0 });
    assert.deepEqual([first.row_number, first.row_number_position, first.position, second.row_number_position, second.row_label], ['1', 'start', { x: 24, y: 24 }, undefined, 'Reihe %s']);
    assert.deepEqual(first.seats.map(({ seat_number: number, radius }) => [number, radius]), [['1', 12.5], ['2', 12.5], ['3', 12.5]]);
    for (const line of ['fixed: layout: the plan was in it, and stands alone now', 'fixed: plan.$schema: was removed, since the format does not have it',
      'fixed: plan.zones[0].displayed: was removed, since the format does not have it', 'fixed: plan.zones[0].position: was missing and is now 0, 0',
      'fixed: plan.zones[0].rows[0].row_number_position: "left" is now start', 'fixed: plan.zones[0].rows[0].position.x: a text is now a number',
      'fixed: plan.zones[0].rows[0].seats[0..2].notes: was removed, since the format does not have it', 'fixed: plan.zones[0].rows[0].seats[0..2].radius: a text is now a number',
      'fixed: plan.size: was missing and is now 96 x 48, which shows every seat']) assert.ok(lines.includes(line), `${line}\n${lines.join('\n')}`);
  });

  it('leaves what may be meant in several ways, says so with exit status 65, and writes what it could repair', async () => {
    for (const [change, what] of [
      [(_, seats) => { seats[1].category = 'Loge'; }, /seats\[1\]\.category/], [(_, seats) => { seats[1].seat_guid = seats[0].seat_guid; }, /seat_guid/],
      [(_, seats) => { seats[1].catgory = seats[1].category; delete seats[1].category; }, /catgory/], [(_, seats) => { delete seats[1].position; }, /position/],
    ]) {
      const { code, stdout, stderr } = await plan(['check', '--fix', '-'], { input: JSON.stringify(made((it, seats) => { change(it, seats); it.version = 1; })) });
      assert.equal(code, 65, stderr);
      assert.match(stderr, what);
      assert.match(stderr, /^fixed: plan\.version: was removed/m);
      assert.equal(JSON.parse(stdout).version, undefined);
    }
  });

  it('finds nothing to repair in a plan that a server takes', async () => {
    const { fixed, lines } = await repaired(event);
    assert.deepEqual(lines, ['nothing to repair']);
    assert.deepEqual(fixed, event);
  });

  it('writes to a new file, or over the file itself if told, and to no file that is there already', async () => {
    const odd = write('odd.json', made((_, seats) => { seats[0].category = ''; }));
    const text = fs.readFileSync(odd, 'utf8');
    const to = path.join(dir, 'fixed.json');
    const said = await ok(['check', '--fix', '--output', to, odd]);
    assert.match(said, /^fixed: .*category: was empty and is now Stalls\nGrid: 6 seats/);
    assert.deepEqual(JSON.parse(fs.readFileSync(to, 'utf8')), gridPlan({ rows: 2, seats: 3 }));
    assert.equal(fs.readFileSync(odd, 'utf8'), text);
    for (const args of [['--fix', '--output', to, odd], ['--fix', '--output', odd, odd], ['--fix', '--in-place', '--output', to, odd], ['--output', to, odd], ['--in-place', odd],
      ['--fix', '--in-place', '-'], ['--fix', '--json', odd]]) {
      const { code, stdout, stderr } = await plan(['check', ...args]);
      assert.deepEqual([code, stdout], [64, ''], stderr);
      assert.notEqual(stderr, '');
    }
    assert.equal(fs.readFileSync(odd, 'utf8'), text);
    const { fixed, seats } = JSON.parse(await ok(['check', '--fix', '--in-place', '--json', odd]));
    assert.deepEqual([fixed.length, seats], [1, 6]);
    assert.deepEqual(JSON.parse(fs.readFileSync(odd, 'utf8')), gridPlan({ rows: 2, seats: 3 }));
    assert.deepEqual(fs.readdirSync(dir).filter((name) => name.endsWith('.partial')), []);
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
