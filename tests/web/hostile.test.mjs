// Pages among enemies: names with markup in them, other sites that frame a page, and code that got in by mistake.
// backends: sqlite

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { openBrowser, urlOf } from '../support/browser.mjs';
import { BuyerPage } from '../support/buyer_page.mjs';
import { reap, start, until } from '../support/server.mjs';

// Markup that runs a script wherever it is taken for markup.  `hacked` says where it did.
const nasty = (where) => `"'><img src=x onerror="hacked='${where}'"><script>hacked='${where}'</script>\${hacked}{seat}`;

// A plan whose every text is hostile.
const PLAN = {
  name: nasty('plan'),
  size: { width: 600, height: 400 },
  categories: [{ name: nasty('category'), color: `red;}</style><script>hacked='color'</script>` }, { name: 'Plain', color: 'url(https://evil.example/x)' }],
  zones: [{
    name: nasty('zone'), position: { x: 0, y: 0 },
    rows: [{
      row_number: nasty('row'), row_label: nasty('rowlabel %s'), seat_label: nasty('seatlabel %s'), row_number_position: 'both', position: { x: 50, y: 50 },
      seats: [
        { seat_guid: nasty('guid'), seat_number: nasty('label'), position: { x: 0, y: 0 }, category: nasty('category') },
        { seat_guid: 'plain', seat_number: '2', position: { x: 40, y: 0 }, category: 'Plain' },
      ],
    }],
    areas: [{ shape: 'rectangle', position: { x: 100, y: 150 }, rectangle: { width: 200, height: 100 }, color: 'javascript:alert(1)', border_color: '<b>',
      text: { text: nasty('area'), color: 'expression(1)', position: { x: 10, y: 10 } }, uuid: nasty('uuid') }],
  }],
};

let server;
let browser;
let stranger; // a page of another site, with a frame
let shopUrl; // the same of a shop that may embed pages
before(async () => {
  stranger = http.createServer((request, response) => {
    const { searchParams } = new URL(request.url, 'http://stranger');
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(`<title>shop</title><iframe src="${searchParams.get('frame') ?? 'about:blank'}" width="800" height="600"></iframe>`);
  });
  await new Promise((resolve) => { stranger.listen(0, '127.0.0.1', resolve); });
  shopUrl = `http://localhost:${stranger.address().port}`;
  [server, browser] = await Promise.all([start({ args: ['--cors-origin', shopUrl] }), openBrowser()]);
});
after(async () => {
  stranger.closeAllConnections();
  stranger.close();
  await browser?.close();
  try { await server?.stop(); } finally { await reap(); }
});

describe('names with markup in them', () => {
  it('are shown as they are, from choosing to booked, and run nothing', async () => {
    const event = await server.createEvent({
      name: nasty('name'), venue: nasty('venue'), sections: undefined, plan: PLAN, prices: { [nasty('category')]: 100, Plain: 6500 },
      areas: [{ name: '<b>Floor</b>"\'`${1}', price: 100, capacity: 5, plan_area: nasty('uuid') }],
    });
    await server.take(event, { seats: ['plain'], owner: nasty('owner') });
    const page = await browser.page();
    const buyer = await BuyerPage.open(page, server, event);
    assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), nasty('name'));
    assert.equal(await page.title(), nasty('name'));
    await buyer.find.fill(nasty('guid'));
    await buyer.find.press('Enter');
    await buyer.seats.first().waitFor();
    assert.ok((await buyer.seats.first().innerText()).includes(nasty('label')));
    await page.getByRole('spinbutton', { name: '<b>Floor</b>' }).fill('1');
    await buyer.find.fill(nasty('no such seat'));
    await buyer.find.press('Enter');
    await buyer.says(`There is no seat “${nasty('no such seat')}”.`);
    const { x, y } = await page.evaluate((id) => document.querySelector('holdfast-seats').seatPosition(id), nasty('guid'));
    await page.mouse.move(x, y); // the map tells about the seat
    await buyer.hold.click();
    await buyer.giveBack.waitFor();
    await buyer.payWith();
    await buyer.booked.waitFor();
    assert.ok((await page.getByRole('list', { name: 'Booked' }).innerText()).includes(nasty('label')));
    await page.goto(urlOf(server, '/'));
    await page.getByText('onerror').first().waitFor();
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    assert.equal(await page.evaluate(() => document.querySelectorAll('main img, main script').length), 0);
    assert.deepEqual(page.complaints, [], 'not even the policy had to stop anything');
    await page.done();
  });
});

describe('names that JavaScript has a meaning for', () => {
  it('are names like others: such areas are chosen, held and priced', async () => {
    const names = ['constructor', 'toString', '__proto__'];
    const event = await server.createEvent({ areas: names.map((name, i) => ({ name, price: 100 * (i + 1), capacity: 5 })) });
    const page = await browser.page();
    const buyer = await BuyerPage.open(page, server, event);
    for (const name of names) {
      const field = page.getByRole('spinbutton', { name });
      assert.equal(await field.inputValue(), '0');
      await field.fill('2');
      await field.press('Tab');
    }
    await buyer.hold.click();
    await buyer.giveBack.waitFor();
    const held = await page.evaluate(() => {
      const { areas, amount } = document.querySelector('holdfast-seats').currentHold;
      return [...Object.entries(areas).sort(), amount];
    });
    assert.deepEqual(held, [...names.map((name) => [name, 2]).sort(), 1200]);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });
});

describe('the policy of a page', () => {
  it('stops code, styles and calls that got into it by mistake', async () => {
    const event = await server.createEvent();
    const page = await browser.page();
    for (const target of ['/', `/e/${event.id}`, '/ops']) {
      await page.goto(urlOf(server, target));
      const reached = await page.evaluate(async (elsewhere) => {
        const script = document.createElement('script');
        script.textContent = 'globalThis.hacked = 1';
        document.body.append(script);
        const image = document.createElement('img');
        image.setAttribute('onerror', 'globalThis.hacked = 2');
        document.body.append(image);
        image.dispatchEvent(new Event('error'));
        const style = document.createElement('style');
        style.textContent = 'body { --hacked: 1 }';
        document.head.append(style);
        setTimeout('globalThis.hacked = 3');
        const called = await fetch(elsewhere, { mode: 'no-cors' }).then(() => true, () => false);
        return { hacked: globalThis.hacked, styled: getComputedStyle(document.body).getPropertyValue('--hacked'), called };
      }, `${shopUrl}/`);
      assert.deepEqual(reached, { hacked: undefined, styled: '', called: false }, target);
      assert.ok(page.complaints.splice(0).some((text) => text.includes('Content Security Policy')), 'the browser says what it stopped');
    }
    await page.done();
  });
});

describe('a page in a frame', () => {
  it('is shown in a shop that --cors-origin names, where it can be used to buy, and in no other site; that of operators nowhere', async () => {
    const event = await server.createEvent();
    const other = `http://127.0.0.1:${stranger.address().port}`;
    const page = await browser.page();
    const frame = page.frameLocator('iframe');
    // Resolves to whether the frame shows the page or the browser refuses to.
    const framed = async (outer, target) => {
      page.complaints = [];
      await page.goto(`${outer}/?frame=${encodeURIComponent(urlOf(server, target))}`);
      return until('the page is shown or refused', async () => (page.complaints.some((text) => /frame-ancestors/.test(text)) ? 'refused'
        : await frame.getByRole('heading', { level: 1 }).count() > 0 && 'shown'));
    };
    assert.equal(await framed(shopUrl, `/e/${event.id}`), 'shown');
    await frame.getByRole('spinbutton', { name: 'How many' }).fill('1');
    await frame.getByRole('button', { name: 'Find best seats' }).click();
    await frame.getByRole('textbox', { name: 'Card number' }).fill('4242424242424242');
    await frame.getByRole('textbox', { name: 'Expiry' }).fill('12/40');
    await frame.getByRole('textbox', { name: 'CVC' }).fill('123');
    await frame.getByRole('button', { name: /^Pay/ }).click();
    await frame.getByRole('heading', { name: 'Booked' }).waitFor();
    assert.deepEqual(page.complaints, []);
    for (const [outer, target] of [[other, `/e/${event.id}`], [shopUrl, '/ops'], [other, '/ops']]) {
      assert.equal(await framed(outer, target), 'refused', `${target} in ${outer}`);
      assert.equal(await frame.getByRole('heading', { level: 1 }).count(), 0);
    }
    // Nobody uses the page again, which has shown three sites.
  });
});
