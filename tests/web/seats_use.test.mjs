// What people do with the seat map: by mouse, touch, keyboard and screen reader; one buyer, two who want the same seat, and an
// operator.
// backends: sqlite
// time limit: 480 s

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { axe, openBrowser, PHONE, urlOf } from '../support/browser.mjs';
import { disturb, openMap, seatAt, showsSnapshot, startShop } from '../support/seat_map.mjs';
import { reap, start, until } from '../support/server.mjs';

describe('the seat map', { concurrency: 1 }, () => {
  let browser, server, shop;
  before(async () => {
    browser = await openBrowser();
    server = await start({ args: ['--cors-origin', '*'] });
    shop = await startShop();
  });
  after(async () => {
    await browser?.close();
    shop?.stop();
    await server?.stop();
    await reap();
  });

  const open = (event, options) => openMap(browser, shop, { server, event, ...options });
  const said = (page) => page.evaluate(() => globalThis.map.shadowRoot.querySelector('[aria-live]').textContent);
  const cells = (page) => page.getByRole('grid', { name: 'Seats in view' });
  const clickSeat = async (page, id) => {
    const { x, y } = await seatAt(page, id);
    await page.mouse.click(x, y);
  };
  // The colour of a seat beside its middle, where its number may stand.
  const colorAt = (page, id) => page.evaluate((seat) => {
    const canvas = globalThis.map.shadowRoot.querySelector('.map canvas'), box = canvas.getBoundingClientRect();
    const { x, y, size } = globalThis.map.seatPosition(seat);
    const at = [(x - box.left - 0.3 * size) * (canvas.width / box.width), (y - box.top) * (canvas.height / box.height)];
    return canvas.getContext('2d').getImageData(Math.round(at[0]), Math.round(at[1]), 1, 1).data.join();
  }, id);
  // A theatre with counted and sold places, several categories and an area.
  const theatre = (fields) => server.createEvent({
    sections: [{ name: 'Stalls', tier: 'A', price: 6500, rows: 8, seats_per_row: 20 }, { name: 'Balcony', tier: 'B', price: 3000, rows: 3, seats_per_row: 12 }],
    areas: [{ name: 'Floor', price: 1500, capacity: 40 }],
    ...fields,
  });

  describe('by mouse', () => {
    it('selects the seat that is clicked, and takes it back', async () => {
      const event = await theatre();
      const page = await open(event);
      await clickSeat(page, 'Stalls-C-7');
      assert.deepEqual(await page.map('selection'), ['Stalls-C-7']);
      assert.match(await said(page), /^Stalls, row C, seat 7, \$65\.00, selected$/);
      await clickSeat(page, 'Balcony-B-2');
      await clickSeat(page, 'Stalls-C-7');
      assert.deepEqual(await page.map('selection'), ['Balcony-B-2']);
      assert.deepEqual((await page.heard('select')).map(({ added, removed }) => [added ?? [], removed ?? []]),
        [[['Stalls-C-7'], []], [['Balcony-B-2'], []], [[], ['Stalls-C-7']]]);
      assert.deepEqual(page.complaints, []);
      await page.done();
    });

    it('tells about the seat under the pointer', async () => {
      const page = await open(await theatre());
      const { x, y } = await seatAt(page, 'Balcony-A-3');
      await page.mouse.move(x, y);
      const tip = page.locator('holdfast-seats .tip');
      await tip.waitFor();
      assert.equal(await tip.textContent(), 'Balcony, row A, seat 3, $30.00, available');
      await page.mouse.move(5, 5);
      await tip.waitFor({ state: 'hidden' });
      await page.done();
    });

    it('lets a category of the legend stand out, and all of them again', async () => {
      const page = await open(await theatre());
      await seatAt(page, 'Stalls-B-3');
      const colors = async () => [await colorAt(page, 'Stalls-B-3'), await colorAt(page, 'Balcony-A-3')];
      const before = await until('seats are drawn', async () => { const found = await colors(); return found.every((color) => color !== '0,0,0,0') && found; });
      const balcony = page.getByRole('button', { name: 'Balcony: $30.00' });
      await balcony.click();
      assert.equal(await balcony.getAttribute('aria-pressed'), 'true');
      await until('the other category has stepped back', async () => {
        const [stalls, other] = await colors();
        return stalls !== before[0] && other === before[1];
      });
      await page.map('select', 'Stalls-B-3'); // it is for sale all the same
      await page.map('deselect', 'Stalls-B-3');
      await balcony.click();
      await until('all are as before', async () => (await colors()).join() === before.join());
      await page.done();
    });

    it('zooms at the pointer with Ctrl and the wheel, and leaves the bare wheel to the page', async () => {
      const page = await open(await theatre(), { viewport: { width: 1000, height: 500 }, reducedMotion: 'reduce' });
      const zoomIn = page.getByRole('button', { name: 'Zoom in' });
      for (let n = 0; n < 2; n++) await zoomIn.click(); // now there is room to move in all directions
      await page.evaluate(() => globalThis.map.shadowRoot.activeElement.blur());
      const before = await seatAt(page, 'Stalls-D-18');
      await page.mouse.move(before.x, before.y);
      await page.mouse.wheel(0, -200);
      await page.locator('holdfast-seats .note').filter({ hasText: 'Ctrl' }).waitFor();
      assert.equal((await seatAt(page, 'Stalls-D-18')).size, before.size);
      await page.keyboard.down('Control');
      await page.mouse.wheel(0, -200);
      await page.keyboard.up('Control');
      const now = await until('it has zoomed', async () => {
        const place = await page.map('seatPosition', 'Stalls-D-18');
        return place.size > before.size * 1.3 && place;
      });
      assert.ok(Math.hypot(now.x - before.x, now.y - before.y) < 3, 'the seat under the pointer stays there');
      await page.done();
    });

    it('is dragged, and what was dragged is not clicked', async () => {
      const page = await open(await theatre(), { reducedMotion: 'reduce' });
      for (let n = 0; n < 2; n++) await page.getByRole('button', { name: 'Zoom in' }).click();
      const before = await seatAt(page, 'Stalls-D-10');
      await page.mouse.move(before.x, before.y);
      await page.mouse.down();
      await page.mouse.move(before.x - 40, before.y - 10, { steps: 4 });
      await page.mouse.up();
      const now = await seatAt(page, 'Stalls-D-10');
      assert.ok(Math.abs(now.x - before.x + 40) < 2 && Math.abs(now.y - before.y + 10) < 2, JSON.stringify([before, now]));
      assert.deepEqual(await page.map('selection'), []);
      const overview = page.locator('holdfast-seats .overview');
      await overview.click({ position: { x: 8, y: 8 } });
      const corner = await seatAt(page, 'Stalls-D-10');
      assert.ok(corner.x > now.x || corner.y > now.y, 'a click in the overview goes there');
      await page.getByRole('button', { name: 'Show the whole map' }).click();
      await overview.waitFor({ state: 'hidden' });
      assert.ok((await page.map('seatPosition', 'Stalls-D-10')).size < before.size);
      await page.done();
    });

    it('says why a seat cannot be selected', async () => {
      const event = await theatre({ max_per_hold: 2 });
      await server.grant(event, 'Stalls-B-4');
      const page = await open(event);
      await until('it knows how many', async () => await page.map('maxPerHold') === 2);
      await clickSeat(page, 'Stalls-B-4');
      assert.equal(await said(page), 'Stalls, row B, seat 4 is not available.');
      for (const id of ['Stalls-A-1', 'Stalls-A-2', 'Stalls-A-3']) await clickSeat(page, id);
      assert.equal(await said(page), 'You can take at most 2 places at a time.');
      assert.deepEqual(await page.map('selection'), ['Stalls-A-1', 'Stalls-A-2']);
      assert.deepEqual((await page.heard('refuse')).map(({ code }) => code), ['seat_taken', 'too_many_seats']);
      await page.done();
    });
  });

  describe('by touch on a screen of 360 px', () => {
    it('zooms in where seats are too small for a finger, then selects', async () => {
      const page = await open(await theatre(), PHONE);
      const far = await seatAt(page, 'Stalls-E-9');
      assert.ok(far.size < 22, `seats are ${far.size} px wide`);
      await page.touchscreen.tap(far.x, far.y);
      const near = await seatAt(page, 'Stalls-E-9');
      assert.ok(near.size >= 30, `seats are ${near.size} px wide after the tap`);
      assert.deepEqual(await page.map('selection'), []);
      await page.touchscreen.tap(near.x + 8, near.y - 6); // fingers are not exact
      assert.deepEqual(await page.map('selection'), ['Stalls-E-9']);
      await page.done();
    });

    it('zooms with two fingers', async () => {
      const page = await open(await theatre(), PHONE);
      const before = await seatAt(page, 'Stalls-A-1');
      const touch = await page.context().newCDPSession(page);
      const fingers = (type, gap) => touch.send('Input.dispatchTouchEvent', {
        type, touchPoints: type === 'touchEnd' ? [] : [{ x: 180 - gap, y: 300, id: 1 }, { x: 180 + gap, y: 300, id: 2 }],
      });
      await fingers('touchStart', 30);
      for (const gap of [40, 55, 70, 90]) await fingers('touchMove', gap);
      await fingers('touchEnd');
      const now = await seatAt(page, 'Stalls-A-1');
      assert.ok(now.size > before.size * 2 && now.size < before.size * 4, `${before.size} px became ${now.size} px`);
      assert.deepEqual(await page.map('selection'), []);
      // Two taps, which are one gesture if nothing came between them; if something did, the seat was chosen and taken back.
      const tapTwice = (id) => page.evaluate((seat) => {
        const { x, y } = globalThis.map.seatPosition(seat);
        const target = globalThis.map.shadowRoot.querySelector('.map');
        for (const type of ['pointerdown', 'pointerup', 'pointerdown', 'pointerup']) {
          target.dispatchEvent(new PointerEvent(type, { pointerId: 7, pointerType: 'touch', isPrimary: true, button: 0, clientX: x, clientY: y, bubbles: true }));
        }
        return globalThis.map.selection;
      }, id);
      assert.deepEqual(await tapTwice('Stalls-B-9'), []);
      await until('two taps have zoomed in', async () => (await page.map('seatPosition', 'Stalls-A-1')).size > now.size * 1.3 || !await tapTwice('Stalls-B-9'));
      await page.done();
    });
  });

  describe('by keyboard', () => {
    it('goes from seat to seat, which it names, selects, zooms and shows everything', async () => {
      const page = await open(await theatre());
      const whole = (await page.map('seatPosition', 'Stalls-A-1')).size;
      await page.getByRole('application', { name: 'Seat map' }).focus();
      await page.map('focusSeat', 'Stalls-C-10');
      await page.keyboard.press('ArrowLeft');
      assert.match(await said(page), /^Stalls, row C, seat 9,/);
      await page.locator('holdfast-seats .tip').getByText('Stalls, row C, seat 9, $65.00').waitFor();
      await page.keyboard.press('ArrowDown');
      assert.match(await said(page), /^Stalls, row D, seat 9,/);
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('Enter');
      assert.deepEqual(await page.map('selection'), ['Stalls-C-10']);
      await page.keyboard.press('+');
      await until('it has zoomed in', async () => (await page.map('seatPosition', 'Stalls-A-1')).size > whole * 1.3);
      await page.keyboard.press('Home');
      await until('it shows everything', async () => Math.abs((await page.map('seatPosition', 'Stalls-A-1')).size - whole) < 0.01);
      await page.done();
    });

    it('reaches every seat of a row with the arrow keys, across its aisle', async () => {
      const page = await open(await theatre());
      await page.getByRole('application', { name: 'Seat map' }).focus();
      await page.map('focusSeat', 'Stalls-B-1');
      const heard = [];
      for (let n = 2; n <= 20; n++) {
        await page.keyboard.press('ArrowRight');
        heard.push(Number(/seat (\d+)/.exec(await said(page))[1]));
      }
      assert.deepEqual(heard, Array.from({ length: 19 }, (_, i) => i + 2));
      await page.done();
    });
  });

  describe('for screen readers', () => {
    it('has the seats in view as a grid of named cells', async () => {
      const event = await theatre();
      await server.grant(event, 'Stalls-A-2');
      const page = await open(event);
      await page.getByRole('button', { name: 'Seats in view as a list' }).click();
      const cell = (name) => cells(page).getByRole('gridcell', { name, exact: true });
      await cell('Stalls, row A, seat 1, $65.00, available').click();
      await cell('Stalls, row A, seat 1, $65.00, selected').waitFor();
      assert.equal(await cell('Stalls, row A, seat 1, $65.00, selected').getAttribute('aria-selected'), 'true');
      assert.equal(await cell('Stalls, row A, seat 2, $65.00, on hold for somebody else').getAttribute('aria-disabled'), 'true');
      assert.equal(await cells(page).getByRole('rowheader', { name: 'Stalls, row A', exact: true }).count(), 1);
      await server.grant(event, 'Stalls-A-3');
      await cell('Stalls, row A, seat 3, $65.00, on hold for somebody else').waitFor();
      await page.done();
    });

    it('is one stop of the Tab key, is seen when it has the focus, and follows the arrow keys', async () => {
      const page = await open(await theatre());
      await cells(page).waitFor({ state: 'attached' });
      const list = page.locator('holdfast-seats .list');
      assert.ok((await list.boundingBox()).height <= 1);
      await page.getByRole('button', { name: 'Show the whole map' }).focus();
      await page.keyboard.press('Tab');
      const focused = () => page.evaluate(() => globalThis.map.shadowRoot.activeElement.getAttribute('aria-label'));
      assert.match(await focused(), /^Stalls, row A, seat 1,/);
      assert.ok((await list.boundingBox()).height > 60);
      await page.keyboard.press('ArrowRight');
      await page.keyboard.press('ArrowDown');
      assert.match(await focused(), /^Stalls, row B, seat 2,/);
      await page.keyboard.press('End');
      assert.match(await focused(), /^Stalls, row B, seat 20,/);
      await page.keyboard.press(' ');
      assert.deepEqual(await page.map('selection'), ['Stalls-B-20']);
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate(() => globalThis.map.shadowRoot.activeElement), null);
      await page.done();
    });

    it('keeps the grid small, and walks on where it ends', async () => {
      const page = await open(await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 40, seats_per_row: 50 }] }));
      const count = () => page.evaluate(() => globalThis.map.shadowRoot.querySelectorAll('[role=gridcell]').length);
      await until('the grid is there', count);
      assert.ok(await count() <= 500);
      const first = await page.evaluate(() => {
        const cell = globalThis.map.shadowRoot.querySelector('[role=gridcell]');
        cell.focus();
        return cell.getAttribute('aria-label');
      });
      const [, row] = /row (\w+),/.exec(first);
      await page.keyboard.press('ArrowUp');
      const next = await page.evaluate(() => globalThis.map.shadowRoot.activeElement.getAttribute('aria-label'));
      assert.match(next, /^S, row /);
      assert.notEqual(/row (\w+),/.exec(next)[1], row, 'the row above was not in the grid before');
      assert.ok(await count() <= 500);
      await page.done();
    });

    for (const [look, options] of [['light and wide', {}], ['dark and narrow', { ...PHONE, colorScheme: 'dark' }]]) {
      it(`axe finds nothing, ${look}`, async () => {
        const event = await theatre({ sections: [{ name: 'Stalls', tier: 'A', price: 6500, rows: 2, seats_per_row: 8 }, { name: 'Balcony', tier: 'B', price: 3000, rows: 1, seats_per_row: 6 }] });
        await server.grant(event, 'Stalls-A-2');
        const page = await open(event, options);
        await page.map('select', 'Stalls-A-4');
        await page.getByRole('button', { name: 'Seats in view as a list' }).click();
        await page.map('focusSeat', 'Stalls-A-4');
        assert.deepEqual(await axe(page), []);
        await server.post(`/v1/events/${event.id}/close`, {});
        await page.locator('holdfast-seats .note').filter({ hasText: 'not on sale' }).waitFor();
        assert.deepEqual(await axe(page), []);
        await page.done();
      });
    }

    it('speaks German to those who read German', async () => {
      const page = await open(await theatre());
      await page.evaluate(() => globalThis.map.setAttribute('lang', 'de'));
      await page.waitForFunction(() => globalThis.map.maxPerHold);
      await page.getByRole('application', { name: 'Saalplan' }).waitFor();
      await page.map('select', 'Stalls-A-1');
      await page.getByRole('gridcell', { name: 'Stalls, Reihe A, Platz 1, 65,00 $, ausgewählt' }).waitFor({ state: 'attached' });
      await page.done();
    });
  });

  describe('for two who want the same seat', () => {
    it('takes it from the selection of the one who was slower, with a sentence that names it', async () => {
      const event = await theatre();
      const [fast, slow] = await Promise.all([open(event), open(event)]);
      for (const page of [fast, slow]) await page.map('select', 'Stalls-A-5');
      await slow.map('select', 'Stalls-A-6');
      assert.equal((await fast.map('hold')).status, 'active');
      await until('the other knows', async () => (await slow.map('selection')).length === 1);
      assert.deepEqual(await slow.map('selection'), ['Stalls-A-6']);
      assert.equal(await said(slow), 'Somebody else was faster: Stalls, row A, seat 5 is gone.');
      assert.deepEqual((await slow.heard('select')).at(-1).lost, ['Stalls-A-5']);
      assert.deepEqual((await fast.heard('select')).filter(({ lost }) => lost), [], 'nobody loses a seat to himself');
      for (const page of [fast, slow]) await page.done();
    });

    it('gives it to one of them when both ask at once, and tells the other', async () => {
      const event = await theatre();
      const pages = await Promise.all([open(event), open(event)]);
      let n = 0, bothAsk;
      const both = new Promise((resolve) => { bothAsk = resolve; });
      for (const page of pages) {
        await page.map('select', 'Stalls-A-5');
        await page.route('**/v1/holds', async (route) => {
          if (++n === pages.length) bothAsk();
          await both; // or the slower one hears that it is gone before it asks
          await route.continue();
        });
      }
      const answers = await Promise.allSettled(pages.map((page) => page.map('hold')));
      assert.deepEqual(answers.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
      const loser = answers.findIndex(({ status }) => status === 'rejected');
      assert.match(answers[loser].reason.message, /Somebody else was faster: Stalls, row A, seat 5 is gone\./);
      assert.deepEqual(await pages[loser].map('selection'), []);
      await Promise.all(pages.map((page) => showsSnapshot(page, server, event)));
      for (const page of pages) await page.done();
    });
  });

  describe('and the hold', () => {
    it('is made, survives a reload, and is given back', async () => {
      const event = await theatre();
      const page = await open(event);
      await page.map('select', 'Stalls-A-5');
      await page.map('setArea', 'Floor', 2);
      const hold = await page.map('hold', { owner: 'ann' });
      assert.deepEqual([hold.seats, hold.areas, hold.amount], [['Stalls-A-5'], { Floor: 2 }, 9500]);
      assert.deepEqual([await page.map('selection'), await page.map('areaSelection')], [[], {}]);
      const left = await page.map('timeLeftMs');
      assert.ok(left > 420_000 && left <= 480_000, `${left} ms left`);
      const again = await open(event);
      assert.equal((await again.map('resume', hold.id)).id, hold.id);
      assert.equal((await again.map('currentHold')).amount, 9500);
      await assert.rejects(again.map('select', 'Stalls-A-5'), /is yours already/);
      await again.map('release');
      assert.equal(await again.map('currentHold'), null);
      assert.equal((await again.heard('release')).length, 1);
      await until('the first page knows, too', async () => await page.map('currentHold') === null);
      assert.equal((await page.heard('release')).length, 1);
      assert.equal(await page.map('resume', hold.id), null, 'what has ended is not resumed');
      for (const each of [page, again]) await each.done();
    });

    it('has ended for a map, too, that hears of its beginning and its end at once', async () => {
      const event = await theatre();
      const page = await browser.page();
      let connect;
      const isOver = new Promise((resolve) => { connect = resolve; });
      await page.route('**/stream?*', async (route) => {
        await isOver;
        await route.continue();
      });
      await open(event, { page });
      await page.map('select', 'Stalls-A-5');
      const { id } = await page.map('hold');
      assert.equal((await server.del(`/v1/holds/${id}`)).status, 204);
      connect();
      await until('it knows', async () => await page.map('currentHold') === null);
      await page.done();
    });

    it('grows when more is held, with one time for all', async () => {
      const page = await open(await theatre());
      await page.map('select', 'Stalls-A-5');
      const first = await page.map('hold');
      await page.map('select', 'Stalls-A-6');
      const second = await page.map('hold');
      assert.equal(second.id, first.id);
      assert.deepEqual(second.seats.sort(), ['Stalls-A-5', 'Stalls-A-6']);
      await page.done();
    });

    it('has the best seats when asked for them', async () => {
      const page = await open(await theatre());
      const hold = await page.map('best', { quantity: 3, section: 'Balcony' });
      assert.equal(hold.seats.length, 3);
      assert.ok(hold.seats.every((id) => id.startsWith('Balcony-')));
      assert.equal((await page.heard('hold')).length, 1);
      await page.done();
    });

    it('expires by the time of the server, though the clock of the page is an hour wrong', async () => {
      const event = await theatre({ hold_ttl_ms: 1500 });
      const page = await open(event, { aheadMs: 3_600_000 });
      await page.map('select', 'Stalls-A-5');
      const hold = await page.map('hold');
      const offset = await page.map('timeOffset');
      assert.ok(Math.abs(offset + 3_600_000) < 60_000, `the server is ${offset} ms ahead`);
      await until('it expires', async () => (await page.heard('expire')).length === 1);
      assert.equal((await page.heard('expire'))[0].hold.id, hold.id);
      assert.equal(await page.map('currentHold'), null);
      assert.equal(await said(page), 'The time is over: the seats were given back.');
      await until('the seat is free again', async () => await page.map('status', 'Stalls-A-5') === '.');
      await page.done();
    });

    it('keeps the seats whose hold was made while every answer was lost, and finds the hold when the server is back', async () => {
      const event = await theatre();
      const page = await open(event);
      await page.map('select', 'Stalls-D-4');
      let made = 0;
      await page.route('**/v1/holds', async (route) => {
        await route.fetch();
        made += 1;
        await page.evaluate(() => { globalThis.aheadMs = 60_000; }); // the component insists for some seconds, which pass here
        return route.abort('connectionreset').catch(() => {});
      });
      const refusal = await page.evaluate(() => globalThis.map.hold().then(() => 'held', ({ code }) => code));
      assert.equal(refusal, 'unreachable');
      assert.equal(made, 1);
      await until('the stream shows the seat as held', async () => (await page.map('status', 'Stalls-D-4')) === 'h');
      assert.deepEqual(await page.map('selection'), ['Stalls-D-4'], 'nobody else has it');
      await page.unroute('**/v1/holds');
      const hold = await until('the hold is found', () => page.map('currentHold'));
      assert.deepEqual(hold.seats, ['Stalls-D-4']);
      assert.equal((await server.counts(event)).held, 1);
      await page.done();
    });

    it('is made once though the answer was lost', async () => {
      const event = await theatre();
      const page = await open(event);
      const keys = [];
      await page.route('**/v1/holds', async (route) => {
        keys.push(route.request().headers()['idempotency-key']);
        if (keys.length > 1) return route.continue();
        await route.fetch(); // the server has done it
        return route.abort('connectionreset');
      }, { times: 2 });
      await page.map('select', 'Stalls-A-5');
      const hold = await page.map('hold');
      assert.deepEqual(hold.seats, ['Stalls-A-5']);
      assert.equal(keys.length, 2);
      assert.equal(keys[0], keys[1]);
      assert.equal((await server.counts(event)).held, 1);
      await page.done();
    });

    for (const [title, answer, sentence] of [
      ['too many holds', { status: 429, json: { code: 'too_many_holds', detail: 'x' } }, /Too many places are on hold from your connection/],
      ['a server that refuses', { status: 403, json: { code: 'forbidden', detail: 'Not you.' } }, /That is not possible: Not you\./],
      ['nothing that fits', { status: 409, json: { code: 'sold_out', available: 1 } }, /no places left that fit/],
    ]) {
      it(`is refused with a sentence: ${title}`, async () => {
        const page = await open(await theatre());
        await page.route('**/v1/holds', (route) => route.fulfill({
          status: answer.status, contentType: 'application/problem+json', body: JSON.stringify(answer.json), headers: { 'Access-Control-Allow-Origin': '*' },
        }));
        await page.map('select', 'Stalls-A-5');
        await assert.rejects(page.map('hold'), sentence);
        assert.deepEqual(await page.map('selection'), ['Stalls-A-5'], 'the selection stays');
        await page.done();
      });
    }

    it('cannot have more places of an area than are left', async () => {
      const event = await theatre({ areas: [{ name: 'Floor', price: 1500, capacity: 5 }] });
      const page = await open(event);
      assert.equal(await page.map('setArea', 'Floor', 9), 5);
      await server.take(event, { areas: { Floor: 3 } });
      await until('the choice shrinks', async () => (await page.map('areaSelection')).Floor === 2);
      await page.done();
    });
  });

  describe('for an operator', () => {
    it('tells which seat was clicked, and changes nothing', async () => {
      const page = await open(await theatre());
      await page.evaluate(() => { globalThis.map.interactive = false; });
      await clickSeat(page, 'Stalls-B-3');
      assert.deepEqual(await page.heard('pick'), [{ name: 'pick', seat: 'Stalls-B-3' }]);
      assert.deepEqual(await page.map('selection'), []);
      await page.done();
    });

    it('shows a map of the past, and comes back to the present', async () => {
      const event = await server.createEvent();
      const past = await server.read(`/v1/events/${event.id}/seats`);
      await disturb(server, event);
      const page = await open(event);
      await showsSnapshot(page, server, event);
      await page.map('showMap', past);
      assert.equal(await page.map('status', 'S-A-2'), '.');
      await server.grant(event, 'S-A-8');
      assert.equal(await page.map('status', 'S-A-8'), '.', 'the past does not follow');
      await page.map('showMap', null);
      await showsSnapshot(page, server, event);
      assert.equal(await page.map('status', 'S-A-8'), 'h');
      await page.done();
    });

    it('colours seats by how often they were refused', async () => {
      const page = await open(await theatre());
      await seatAt(page, 'Stalls-B-3');
      const color = () => colorAt(page, 'Stalls-B-3');
      const before = await until('the seat is drawn', async () => { const now = await color(); return now !== '0,0,0,0' && now; });
      await page.evaluate(() => {
        globalThis.map.setHeat(new Map([['Stalls-B-3', 400], ['Stalls-B-4', 1]]));
        globalThis.map.paint = 'heat';
      });
      await until('it is as hot as it gets', async () => await color() === '255,234,70,255');
      await page.evaluate(() => { globalThis.map.paint = 'status'; });
      await until('it is as before', async () => await color() === before);
      await page.done();
    });
  });

  it('shows hostile names as the text that they are', async () => {
    const hostile = '<img src=x onerror=boom()>';
    const event = await server.createEvent({
      name: hostile, sections: [{ name: '<b onclick=boom()>', tier: '"><i>', price: 1, rows: [{ name: '<u>', seats: 4 }] }],
      areas: [{ name: '</ul><script>', price: 1, capacity: 4 }],
    });
    const page = await open(event);
    await page.getByRole('button', { name: 'Seats in view as a list' }).click();
    const found = await page.evaluate(() => globalThis.map.shadowRoot.querySelectorAll('img, b, i, u, script').length);
    assert.equal(found, 0);
    await page.getByRole('gridcell', { name: '<b onclick=boom()>, row <u>, seat 1' }).waitFor();
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('draws a plan that means no good', async () => {
    const seat = (id, x, more) => ({ seat_guid: id, seat_number: id, category: 'A', position: { x, y: 0 }, ...more });
    const answer = await server.post('/v1/events', {
      name: 'Trap', currency: 'usd', prices: { A: 100 },
      plan: {
        name: 'Trap', size: { width: 500, height: 200 }, categories: [{ name: 'A', color: 'url(https://elsewhere.example/x)' }],
        zones: [{
          name: 'Z', position: { x: 0, y: 0 },
          rows: [{ row_number: '1', seats: [seat('a', 0), seat('b', 30), seat('c', 60), seat('vast', 400, { radius: 9000 })] }],
          areas: [{ shape: 'text', position: { x: 0, y: 100 }, color: 'expression(boom())', text: { text: 'no '.repeat(150), size: 20, position: { x: 0, y: 0 } } }],
        }],
      },
    });
    assert.equal(answer.status, 201, answer.text);
    const page = await open(answer.json, { reducedMotion: 'reduce' });
    for (let n = 0; n < 8; n++) await page.getByRole('button', { name: 'Zoom in' }).click(); // the largest pictures
    await page.map('focusSeat', 'b');
    const { size } = await seatAt(page, 'b');
    assert.ok(size >= 20 && size <= 80, `a seat is ${size} px wide`);
    await clickSeat(page, 'b');
    assert.deepEqual(await page.map('selection'), ['b']);
    assert.deepEqual(page.complaints, []);
    assert.ok(page.requests.every((url) => !url.includes('elsewhere')));
    await page.done();
  });

  // ---- in other pages, after which that of the shop has to be loaded again ----

  it('shows the small picture of the whole, on a telephone, where no seat is behind it', async () => {
    const { json: event } = await server.post('/v1/events', JSON.parse(fs.readFileSync('share/holdfast/theatre.json', 'utf8')));
    const ids = (await server.read(`/v1/events/${event.id}/plan`)).sections.flatMap(({ rows }) => rows.flatMap(({ seats }) => seats.map(({ id }) => id)));
    const page = await browser.page({ ...PHONE, viewport: { width: 390, height: 844 } });
    await page.goto(urlOf(server, `/e/${event.id}`));
    const picture = page.locator('holdfast-seats .overview');
    await picture.waitFor();
    const { x, y, width, height } = await picture.boundingBox();
    const behind = await page.evaluate(([seats, box]) => seats.filter((id) => {
      const at = document.querySelector('holdfast-seats').seatPosition(id);
      return at.x > box.x && at.x < box.x + box.width && at.y > box.y && at.y < box.y + box.height;
    }), [ids, { x, y, width, height }]);
    assert.deepEqual(behind, []);
    await page.done();
  });

  it('works in the page of docs/seat-map.md', async () => {
    const [, html] = /```html\n([\s\S]*?)```/.exec(fs.readFileSync(new URL('../../docs/seat-map.md', import.meta.url), 'utf8'));
    const event = await theatre();
    const page = await browser.page();
    const example = await startShop({ html: html.replaceAll('https://tickets.example', urlOf(server, '')).replace(/evt_\w+/, event.id) });
    await page.goto(urlOf(example, '/'));
    await page.waitForFunction(() => document.querySelector('holdfast-seats').plan);
    await clickSeat(Object.assign(page, { map: (name, id) => page.evaluate(([key, seat]) => document.querySelector('holdfast-seats')[key](seat), [name, id]) }), 'Stalls-D-8');
    await page.getByRole('button', { name: 'Hold 1 seat' }).click();
    await page.getByText('Stalls-D-8 is yours for 8 minutes.').waitFor();
    assert.equal((await server.counts(event)).held, 1);
    assert.deepEqual(page.complaints, []);
    await page.done();
    example.stop();
  });
});
