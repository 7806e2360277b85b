// Parts of the seat map, each beside a simple way to do the same.  They run in the browser, on random data from HF_SEED.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openBrowser, urlOf } from '../support/browser.mjs';
import { seed } from '../support/random.mjs';
import { reap, start } from '../support/server.mjs';

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
});
