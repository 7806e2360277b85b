// Parts of the seat map, each beside another way to do the same.  They run in the browser, on random data from HF_SEED, and on halls
// of all shapes (tests/fixtures/plans), which `holdfast plan draw` draws, too.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openBrowser, urlOf } from '../support/browser.mjs';
import { holdfast } from '../support/cli.mjs';
import { seed } from '../support/random.mjs';
import { reap, start, tempDir } from '../support/server.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PLANS = path.join(ROOT, 'tests/fixtures/plans');

describe(`parts of the seat map, HF_SEED=${seed}`, () => {
  let browser, server, page;
  before(async () => {
    browser = await openBrowser();
    server = await start();
    page = await browser.page();
    await page.goto(urlOf(server, '/'));
    await page.evaluate(async (first) => {
      let state = first;
      globalThis.random = () => { // mulberry32
        state = (state + 0x6d2b79f5) | 0;
        let t = Math.imul(state ^ (state >>> 15), 1 | state);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
      };
      globalThis.below = (n) => Math.floor(globalThis.random() * n);
      const { Plan } = await import('/web/seats/plan.js');
      // A plan of `n` seats at random places; `gap` keeps them apart.
      globalThis.randomPlan = (n, gap) => new Plan({
        categories: [{ name: 'A' }, { name: 'B' }],
        sections: [{
          name: 'S',
          rows: [{
            name: 'A',
            seats: Array.from({ length: n }, (_, i) => ({
              id: `s${i}`, label: `${i}`, category: 'AB'[globalThis.below(2)], accessible: globalThis.below(10) === 0, radius: 6 + globalThis.below(3) * 2,
              x: gap ? (i % 40) * gap : globalThis.random() * 900, y: gap ? Math.floor(i / 40) * gap : globalThis.random() * 600,
            })),
          }],
        }],
      });
    }, seed);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    await reap();
  });

  it('messages of a stream are found however its bytes are cut', async () => {
    const wrong = await page.evaluate(async () => {
      const { Messages } = await import('/web/seats/stream.js');
      const text = 'retry: 1500\nid: 4\n\n: a comment\n\nid: 5\nevent: seats\ndata: {"seq":5,\ndata: "changes":[]}\n\r\nevent: event\r\ndata: {"seq":6}\r\n\r\n'
        + 'event: reset\ndata:\n\nevent: seats\ndata: lost, since no empty line follows';
      const wanted = JSON.stringify([
        { event: 'seats', id: '5', data: '{"seq":5,\n"changes":[]}' }, { event: 'event', id: null, data: '{"seq":6}' }, { event: 'reset', id: null, data: '' }]);
      for (let round = 0; round < 300; round++) {
        const messages = new Messages(), found = [];
        for (let at = 0; at < text.length;) {
          const next = at + 1 + globalThis.below(20);
          found.push(...messages.push(text.slice(at, next)));
          at = next;
        }
        if (JSON.stringify(found) !== wanted || messages.retryMs !== 1500) return JSON.stringify(found);
      }
      return null;
    });
    assert.equal(wrong, null);
  });

  it('the nearest seat and the seats in a box are those that a look at every seat finds', async () => {
    const wrong = await page.evaluate(() => {
      for (let round = 0; round < 40; round++) {
        const plan = globalThis.randomPlan(1 + globalThis.below(400));
        const { spatial, x, y, n } = plan;
        const px = globalThis.random() * 1000 - 50, py = globalThis.random() * 700 - 50, reach = globalThis.random() * 200;
        const all = Array.from({ length: n }, (_, i) => i);
        const distance = (i) => Math.hypot(x[i] - px, y[i] - py);
        const near = all.filter((i) => distance(i) <= reach).sort((a, b) => distance(a) - distance(b));
        const found = spatial.nearest(px, py, reach);
        if (found !== -1 ? distance(found) !== distance(near[0]) : near.length > 0) return `nearest: ${found}, not ${near[0]}`;
        const seen = new Set();
        spatial.forEachIn(px - reach, py - reach, px + reach, py + reach, (i) => seen.add(i));
        if (near.some((i) => !seen.has(i))) return 'a seat of the box is missing';
        if (spatial.countIn(px - reach, py - reach, px + reach, py + reach) !== seen.size) return 'countIn';
      }
      return null;
    });
    assert.equal(wrong, null);
  });

  it('what is held looks unlike what is sold, at every size', async () => {
    const alike = await page.evaluate(async () => {
      const { Layer } = await import('/web/seats/tiles.js');
      const { readTheme } = await import('/web/seats/theme.js');
      await import('/web/seats/element.js');
      const map = document.createElement('holdfast-seats');
      document.body.append(map);
      const found = [];
      for (const scheme of ['light', 'dark']) {
        map.style.colorScheme = scheme;
        const theme = readTheme(map.shadowRoot.querySelector('.probe'), [{ name: 'A' }, { name: 'B' }]);
        const plan = globalThis.randomPlan(400, 30);
        for (const scale of [0.03, 0.06, 0.1, 0.15, 0.25, 0.4, 0.7, 1.5]) {
          // How dark the same seats are when all are held, and when all are sold.
          const [held, sold] = [1, 2].map((look) => {
            const layer = new Layer({ plan, looks: new Uint8Array(plan.n).fill(look), theme }, scale, 1);
            const { data } = layer.draw(0, 0).context.getImageData(0, 0, 256, 256);
            return data.reduce((sum, value, i) => sum + (i % 4 === 3 ? value : 0), 0);
          });
          if (!(held > 1.5 * sold)) found.push([scheme, scale, held, sold]);
        }
      }
      map.remove();
      return found;
    });
    assert.deepEqual(alike, []);
  });

  it('rows that run out of the picture keep their names at its edge, and only those', async () => {
    const found = await page.evaluate(async () => {
      const { drawEdgeNames } = await import('/web/seats/edge_names.js');
      const { Plan } = await import('/web/seats/plan.js');
      const { View } = await import('/web/seats/view.js');
      const row = (name, y, n) => ({ name, seats: Array.from({ length: n }, (_, i) => ({ id: `${name}${i}`, label: `${i}`, x: 25 * i, y })) });
      const plan = new Plan({ sections: [{ name: 'S', rows: [row('A', 0, 40), row('B', 30, 40), row('C', 60, 8)] }] });
      const view = new View(plan.box, plan.radiusTypical);
      view.resize(1200, 300);
      const names = () => {
        const drawn = [];
        const context = { measureText: () => ({ width: 10 }), fillRect() {}, fillText: (text, x) => drawn.push(text + (x < 40 ? ' left' : x > 1160 ? ' right' : ' amid')) };
        drawEdgeNames(context, view, 1, plan, { font: 'serif' }, Array.from({ length: plan.n }, (_, i) => i));
        return drawn.join(', ');
      };
      const whole = names();
      view.moveTo({ x: 500, y: 30, scale: 3 }, 0, false);
      const amid = names();
      view.moveTo({ x: 120, y: 30, scale: 3 }, 0, false);
      return { whole, amid, left: names() };
    });
    assert.deepEqual(found, { whole: '', amid: 'A left, B left, A right, B right', left: 'A right, B right' });
  });

  it('a map that is to fill a narrow frame begins larger than the whole, and begins again until somebody moves it', async () => {
    const scales = await page.evaluate(async () => {
      const { View } = await import('/web/seats/view.js');
      const view = new View({ left: 0, top: 0, right: 600, bottom: 400 }, 10);
      view.isToCover = true;
      const scaleAt = (width, height) => { view.resize(width, height); return Math.round(100 * view.scale / view.fitScale); };
      const found = [scaleAt(300, 280), scaleAt(300, 800), scaleAt(900, 900), scaleAt(300, 280)];
      view.fit();
      found.push(scaleAt(300, 290));
      view.zoomAt(150, 140, 2);
      found.push(scaleAt(300, 280) > 150);
      return found;
    });
    assert.deepEqual(scales, [140, 160, 100, 140, 100, true]);
  });

  it('a seat is found by what the map calls it, in any language, with and without the words around', async () => {
    const wrong = await page.evaluate(async () => {
      const { Plan } = await import('/web/seats/plan.js');
      const { Names } = await import('/web/seats/words.js');
      const seats = (row, n) => Array.from({ length: n }, (_, i) => ({ id: `${row}#${i}`, label: `${i + 1}`, x: 20 * i, y: 0 }));
      const plan = new Plan({
        sections: [
          { name: 'Stalls', rows: ['G', 'AA'].map((name) => ({ name, row_label: name === 'AA' ? 'Row AA' : undefined, seats: seats(`s${name}`, 12) })) },
          { name: 'Row boats', rows: [{ name: 'G', row_label: 'Boat %s', seat_label: 'Bench %s', seats: seats('b', 3) }] },
          { name: 'Table 4', rows: [{ name: '', seats: seats('t', 2) }] },
        ],
      });
      const failed = [];
      const board = { currency: null };
      for (const lang of ['en', 'de']) {
        const names = new Names(plan, board, lang);
        for (let i = 0; i < plan.n; i++) if (names.find(names.place(i)).join() !== `${i}`) failed.push(names.place(i));
        for (const [text, ids] of [['row g seat 7', 'sG#6'], ['reihe g platz 7', 'sG#6'], ['stalls, row G, seat 7', 'sG#6'], ['g 7', 'sG#6'], ['G7', 'sG#6'], ['AA-12', 'sAA#11'],
          ['g 2', 'sG#1,b#1'], ['boat g bench 2', 'sG#1,b#1'], ['Row boats, boat G, bench 2', 'b#1'], ['table 4 1', 't#0'], ['g 13', ''], ['row seat', ''], ['', '']]) {
          const found = names.find(text).map((i) => plan.ids[i]).join();
          if (found !== ids) failed.push([text, found]);
        }
      }
      return failed;
    });
    assert.deepEqual(wrong, []);
  });

  it('a seat is left single where a choice leaves one of several free ones side by side that it could have left otherwise', async () => {
    const wrong = await page.evaluate(async () => {
      const { loneSeats } = await import('/web/seats/lone.js');
      const { Plan } = await import('/web/seats/plan.js');
      // '.' free, 'x' taken, 'w' a free place for a wheelchair, 'C' chosen, 'm' the buyer's already, '|' an aisle; and which seats of the
      // row are left single.
      const rows = [['....CC', ''], ['C.CC..|', '1'], ['.CC.|..', '0,3'], ['x.CC', ''], ['x.CCx', ''], ['.CC..', '0'], ['CC.|..', ''], ['x.xCC', ''],
        ['CxC.|.C..', '4'], ['C.C.C', '1,3'], ['wC..', ''], ['.Cw.', ''], ['m.C..', '1'], ['x.mC..', ''], ['.Cm.', '0']];
      const failed = [];
      for (const [text, wanted] of rows) {
        let x = 0;
        const seats = [], states = [], chosen = new Set(), mine = new Set();
        for (const letter of text) {
          if (letter === '|') { x += 40; continue; }
          x += 20;
          if (letter === 'C') chosen.add(seats.length);
          if (letter === 'm') mine.add(seats.length);
          states.push({ x: 2, m: 1 }[letter] ?? 0);
          seats.push({ id: `${seats.length}`, label: '', x, y: 0, accessible: letter === 'w' });
        }
        const plan = new Plan({ sections: [{ name: 'S', rows: [{ name: 'A', seats }] }] });
        const found = loneSeats(plan, { states }, chosen, mine).join();
        if (found !== wanted) failed.push([text, found]);
      }
      return failed;
    });
    assert.deepEqual(wrong, []);
  });

  it('what is chosen stays chosen, with its ticket types, when other places are held', async () => {
    const left = await page.evaluate(async () => {
      const { Selection } = await import('/web/seats/selection.js');
      const ids = ['a', 'b', 'c', 'd'];
      const board = { sale: 'open', states: [0, 0, 0, 0], types: [{ id: 'full' }, { id: 'child' }], areas: new Map([['Floor', { available: 9 }]]) };
      const selection = new Selection({ plan: { ids, indexOf: (id) => ids.indexOf(id) }, board, names: { t: (key) => key } }, { isMine: () => false, heldCount: () => 0 }, () => {});
      const choose = () => {
        for (const id of ['a', 'b']) {
          selection.select(id);
          selection.setType(id, 'child');
        }
        selection.setArea('Floor', 2, 'child');
      };
      const wish = () => JSON.stringify(selection.wish);
      choose();
      selection.dropHeld({ seats: ['c', 'd'], areas: {} }); // the best there are
      const besides = wish();
      selection.dropHeld({ seats: ['a', 'b', 'c', 'd'], areas: { Floor: 2 } });
      return [besides, wish(), selection.isEmpty];
    });
    assert.deepEqual(left, ['{"places":{"seats":["a","b"],"areas":{"Floor":{"child":2}}},"types":{"a":"child","b":"child"}}', '{"places":{},"types":{}}', true]);
  });

  for (const [what, scale, gap] of [['dots', 0.2, 30], ['pictures', 0.8, 30], ['pictures that overlap', 0.9, 0]]) {
    it(`tiles of ${what} look after changes as if they were drawn anew`, async () => {
      const wrong = await page.evaluate(async ([at, apart]) => {
        const { Layer } = await import('/web/seats/tiles.js');
        const paint = (r, g, b) => ({ css: `rgb(${r}, ${g}, ${b})`, rgba: [r, g, b, 255], ink: '#fff', edge: null });
        const theme = { categories: [paint(0, 0, 200), paint(200, 0, 0)], taken: paint(90, 90, 90), faint: paint(150, 150, 150), accent: paint(0, 0, 0), onAccent: '#fff', heat: [] };
        const plan = globalThis.randomPlan(1200, apart), looks = new Uint8Array(plan.n).map(() => globalThis.below(5));
        const layer = new Layer({ plan, looks, theme }, at, 1), { left, top, right, bottom } = plan.box;
        layer.forEachTile(left, top, right, bottom, (column, line) => layer.draw(column, line));
        for (let round = 0; round < 5; round++) {
          const changed = Array.from({ length: 80 }, () => globalThis.below(plan.n));
          for (const i of changed) looks[i] = globalThis.below(5);
          layer.repaint(changed);
        }
        const fresh = new Layer({ plan, looks, theme }, at, 1);
        let pixels = 0, different = 0;
        layer.forEachTile(left, top, right, bottom, (column, line) => {
          const [one, other] = [layer.get(column, line), fresh.draw(column, line)].map(({ context }) => context.getImageData(0, 0, 256, 256).data);
          for (let i = 0; i < one.length; i++) {
            if (other[i] !== 0) pixels++;
            if (Math.abs(one[i] - other[i]) > 2) different++;
          }
        });
        return { pixels, different };
      }, [scale, gap]);
      assert.ok(wrong.pixels > 5000, `only ${wrong.pixels} values are not empty`);
      assert.equal(wrong.different, 0);
    });
  }

  // ---- halls of all shapes ----

  // What the browser draws of a plan at a scale of one: { areas, labels, seats, names }, in the order in which it does.
  // Plans and drawings pass as text: Playwright's own form of so many objects takes longer than all that is drawn.
  const drawnByMap = async (document) => JSON.parse(await page.evaluate(async (text) => {
    const plan = JSON.parse(text);
    const [{ Plan, ACCESSIBLE }, { View }, decor, { readTheme, rgbaOf }] = await Promise.all(
      ['plan', 'view', 'decor', 'theme'].map((name) => import(`/web/seats/${name}.js`)));
    await import('/holdfast.js');
    const component = globalThis.document.body.appendChild(globalThis.document.createElement('holdfast-seats'));
    const read = new Plan(plan), theme = readTheme(component.shadowRoot.querySelector('.probe'), read.categories);
    component.remove();
    const { width, height } = plan.size;
    const view = new View({ left: 0, top: 0, right: width, bottom: height }, read.radiusTypical);
    view.resize(width, height);
    // A context that notes what is drawn on it, and draws it.
    const real = new OffscreenCanvas(width, height).getContext('2d'), areas = [], texts = [];
    let points = [], shape = null;
    const round = (n) => Math.round(n * 100) / 100;
    const note = (...more) => { for (const [x, y] of more) points.push(new DOMPoint(x, y).matrixTransform(real.getTransform())); };
    const around = (x, y, rx, ry) => note(...Array.from({ length: 360 }, (_, i) => [x + rx * Math.cos(i * Math.PI / 180), y + ry * Math.sin(i * Math.PI / 180)]));
    const noted = {
      beginPath() { points = []; shape = null; },
      rect(x, y, w, h) { note([x, y], [x + w, y], [x + w, y + h], [x, y + h]); },
      arc(x, y, r) { around(x, y, r, r); },
      ellipse(x, y, rx, ry) { around(x, y, rx, ry); },
      lineTo(x, y) { note([x, y]); },
      fill() {
        const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
        shape = { box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)].map(round), fill: rgbaOf(real.fillStyle), stroke: null };
        areas.push(shape);
      },
      stroke() { shape.stroke = rgbaOf(real.strokeStyle); },
      fillText(text, x, y) {
        const at = new DOMPoint(x, y).matrixTransform(real.getTransform());
        texts.push({ text, x: round(at.x), y: round(at.y), size: parseFloat(/([\d.]+)px/.exec(real.font)[1]), color: rgbaOf(real.fillStyle), align: real.textAlign });
      },
    };
    const context = new Proxy(real, {
      get: (_, key) => (typeof real[key] === 'function' ? (...args) => { noted[key]?.(...args); return real[key](...args); } : real[key]),
      set: (_, key, value) => { real[key] = value; return true; },
    });
    const prepared = decor.prepareAreas(read, theme);
    decor.drawAreas(context, view, 1, prepared, theme, () => '');
    const labels = texts.splice(0);
    decor.drawAreas(context, view, 1, prepared, theme, (name, isNamed) => (isNamed ? '7 left' : `${name}: 7 left`));
    const captions = texts.splice(0).map(({ text }) => text);
    decor.drawRowNames(context, view, 1, read, theme);
    const seats = Array.from({ length: read.n }, (_, i) => ({
      x: round(read.x[i]), y: round(read.y[i]), r: read.radius[i], isSquare: (read.flags[i] & ACCESSIBLE) !== 0,
      color: rgbaOf(theme.categories[read.category[i]].css), label: read.labels[i],
    }));
    return JSON.stringify({ areas: areas.slice(0, areas.length / 2), labels, captions, seats, names: texts });
  }, JSON.stringify(document)));

  // The same of the picture of `holdfast plan draw`, in a page of its own, which lays it out and need not show it.
  const drawnBySvg = async (paper, svg) => JSON.parse(await paper.evaluate((text) => {
    document.body.style.visibility = 'hidden';
    document.body.innerHTML = text;
    const picture = document.querySelector('svg'), { width, height } = picture.viewBox.baseVal;
    picture.setAttribute('width', width);
    picture.setAttribute('height', height);
    const round = (n) => Math.round(n * 100) / 100;
    const numbers = (element, ...names) => names.map((name) => Number(element.getAttribute(name)));
    const toPlan = picture.getScreenCTM().inverse();
    const place = (element, ...points) => { // in the units of the plan
      const matrix = toPlan.multiply(element.getScreenCTM());
      return points.map(([x, y]) => new DOMPoint(x, y).matrixTransform(matrix)).map(({ x, y }) => [round(x), round(y)]);
    };
    const rgba = (css) => {
      const [r, g, b, a = 1] = (/^rgba?\((.*)\)$/.exec(css)?.[1].split(/,\s*/) ?? []).map(Number);
      return css === 'none' ? null : [r, g, b, Math.round(a * 255)];
    };
    const colorOf = (element, property) => rgba(getComputedStyle(element)[property]);
    const cornersOf = (element) => {
      const around = (rx, ry) => Array.from({ length: 360 }, (_, i) => [rx * Math.cos(i * Math.PI / 180), ry * Math.sin(i * Math.PI / 180)]);
      if (element.localName === 'rect') { const [w, h] = numbers(element, 'width', 'height'); return [[0, 0], [w, 0], [w, h], [0, h]]; }
      if (element.localName === 'circle') { const [r] = numbers(element, 'r'); return around(r, r); }
      if (element.localName === 'ellipse') return around(...numbers(element, 'rx', 'ry'));
      return element.getAttribute('points').split(' ').map((point) => point.split(',').map(Number));
    };
    const areas = [...picture.querySelectorAll('g[transform]:not(.focus) > :is(rect, circle, ellipse, polygon)')].map((element) => {
      const corners = place(element, ...cornersOf(element)), [xs, ys] = [corners.map(([x]) => x), corners.map(([, y]) => y)];
      return { box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)], fill: colorOf(element, 'fill'), stroke: colorOf(element, 'stroke') };
    });
    const textOf = (element) => {
      const [[x, y]] = place(element, numbers(element, 'x', 'y'));
      return { text: element.textContent, x, y, size: Number(element.getAttribute('font-size')), color: colorOf(element, 'fill'), align: { start: 'left', middle: 'center', end: 'right' }[getComputedStyle(element).textAnchor] };
    };
    const seats = [...picture.querySelectorAll('svg > :is(circle, rect)')].filter((element) => element.querySelector('title')).map((element) => {
      const isSquare = element.localName === 'rect';
      const [a, b, c] = isSquare ? numbers(element, 'x', 'y', 'width') : numbers(element, 'cx', 'cy', 'r');
      const r = isSquare ? c / 2 : c;
      return { x: round(isSquare ? a + r : a), y: round(isSquare ? b + r : b), r, isSquare, color: colorOf(element, 'fill'), label: element.nextElementSibling.textContent };
    });
    return JSON.stringify({ areas, labels: [...picture.querySelectorAll('g > text')].map(textOf), seats, names: [...picture.querySelectorAll('text.row')].map(textOf) });
  }, svg));

  const isNear = (one, other, slack) => Math.abs(one - other) <= slack;
  const isColor = (one, other) => (one && other ? one.every((part, i) => isNear(part, other[i], 1)) : one === other);
  function assertAlike(found, wanted, slack, what) {
    assert.deepEqual(found.map(({ text, label }) => text ?? label), wanted.map(({ text, label }) => text ?? label), what);
    for (const [i, one] of found.entries()) {
      const other = wanted[i];
      const alike = ['x', 'y', 'r'].every((key) => one[key] === undefined || isNear(one[key], other[key], slack))
        && ['color', 'fill', 'stroke'].every((key) => one[key] === undefined || isColor(one[key], other[key]))
        && ['align', 'isSquare'].every((key) => one[key] === other[key])
        && (one.box ?? []).every((side, k) => isNear(side, other.box[k], 0.5));
      if (!alike) assert.fail(`${what} ${i}: ${JSON.stringify(one)}, not ${JSON.stringify(other)}`);
    }
  }

  const luminance = (color) => {
    const [r, g, b] = color.map((part) => (part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (...colors) => {
    const [dark, light] = colors.map(luminance).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };

  it('halls of all shapes look in the browser as `holdfast plan draw` draws them, light and dark', async () => {
    const paper = await browser.page();
    const files = fs.readdirSync(PLANS).filter((name) => name.endsWith('.json'));
    assert.ok(files.length >= 12);
    const halls = [];
    for (const file of files) {
      const body = JSON.parse(fs.readFileSync(path.join(PLANS, file), 'utf8'));
      const { json: event } = await server.post('/v1/events', body);
      const [document, { stdout: svg }] = await Promise.all([server.read(`/v1/events/${event.id}/plan`), holdfast(undefined, ['plan', 'draw', path.join(PLANS, file)])]);
      halls.push({ file, body, document, svg });
    }
    for (const colorScheme of ['light', 'dark']) {
      await Promise.all([page, paper].map((each) => each.emulateMedia({ colorScheme })));
      for (const { file, body, document, svg } of halls) {
        const [map, drawn] = [await drawnByMap(document), await drawnBySvg(paper, svg)], of = `${file}, ${colorScheme}:`;
        assertAlike(map.areas, drawn.areas, 0.1, `${of} areas`);
        assertAlike(map.seats, drawn.seats, 0.1, `${of} seats`);
        assertAlike(map.labels, drawn.labels, 0.1, `${of} labels`);
        assertAlike(map.names, drawn.names, 0.1, `${of} names of rows`);
        // No name covers a seat, and what stands in an area can be read.
        for (const { text, x, y, align } of map.names) {
          const half = 0.3 * 11 * text.length, middle = x + { left: half, center: 0, right: -half }[align];
          const covered = map.seats.find((seat) => Math.hypot(Math.max(0, Math.abs(seat.x - middle) - half), Math.max(0, Math.abs(seat.y - y) - 5)) < 0.75 * seat.r);
          assert.equal(covered, undefined, `${of} the name ${text} at ${x}, ${y}`);
        }
        for (const { text, x, y, color } of map.labels) {
          const below = map.areas.findLast(({ box: [left, top, right, bottom], fill }) => fill[3] === 255 && x >= left && x <= right && y >= top && y <= bottom);
          if (below) assert.ok(contrast(color, below.fill) >= 3, `${of} ${text} in ${color} on ${below.fill}`);
        }
        // What is sold is named once.
        for (const { name } of body.areas ?? []) {
          assert.equal(map.captions.filter((text) => text.toLowerCase().includes(name.toLowerCase())).length, 1, `${of} ${name} in ${map.captions}`);
        }
        assert.equal(map.captions.filter((text) => text.includes('7 left')).length, (body.areas ?? []).length);
      }
    }
    await Promise.all([page, paper].map((each) => each.emulateMedia({ colorScheme: null })));
    assert.deepEqual([...page.complaints, ...paper.complaints], []);
    await paper.done();
  });

  it('the halls are what their script writes', () => {
    const dir = tempDir();
    execFileSync(process.execPath, [path.join(ROOT, 'scripts/make-plans.mjs'), dir]);
    for (const file of fs.readdirSync(dir)) assert.equal(fs.readFileSync(path.join(dir, file), 'utf8'), fs.readFileSync(path.join(PLANS, file), 'utf8'), file);
    assert.equal(fs.readdirSync(dir).length, fs.readdirSync(PLANS).length);
  });
});
