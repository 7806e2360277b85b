// The list of events on sale, the page of what does not exist, and the brand of both, in a real browser.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { axe, openBrowser, originsOf, PHONE, urlOf } from '../support/browser.mjs';
import { reap, start, tempDir } from '../support/server.mjs';

const SIZES = [{ width: 390, height: 844 }, { width: 768, height: 1024 }, { width: 1280, height: 800 }];

describe('the list of events', () => {
  let server;
  let browser;
  before(async () => { [server, browser] = await Promise.all([start(), openBrowser()]); });
  after(async () => {
    await browser?.close();
    try { await server?.stop(); } finally { await reap(); }
  });

  const open = async (options, target = '/') => {
    const page = await browser.page(options);
    await page.goto(urlOf(server, target));
    return page;
  };
  const card = (page, name) => page.getByRole('listitem').filter({ has: page.getByRole('link', { name, exact: true }) });
  const settled = (page, text) => page.getByRole('status').getByText(text).waitFor();
  const assertGood = async (page) => {
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(page.complaints, []);
    assert.deepEqual(originsOf(page), [urlOf(server, '')], 'no request leaves this server');
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the page');
    await page.done();
  };

  it('says when nothing is on sale', async () => {
    const page = await open();
    await settled(page, 'Nothing is on sale at the moment.');
    await assertGood(page);
  });

  it('is one file for a browser that comes again: all the others are kept', async () => {
    const page = await open();
    await settled(page, 'Nothing is on sale at the moment.');
    for (const target of ['/', '/?again']) {
      await page.goto(urlOf(server, target));
      await settled(page, 'Nothing is on sale at the moment.');
      const files = await page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => name.includes('/web/')).map(({ name, transferSize }) => [name, transferSize]));
      assert.ok(files.length > 5);
      assert.deepEqual(files.filter(([, bytes]) => bytes > 0), []);
    }
    await page.done();
  });

  it('shows events that are open, with place, time, lowest price and places left, and leads to them', async () => {
    const event = await server.createEvent({
      name: 'Hamlet', currency: 'eur', venue: 'Globe', starts_at: '2040-05-06T19:30:00.000Z',
      sections: [{ name: 'S', price: 6500, rows: 2, seats_per_row: 600 }, { name: 'T', price: 2950, rows: 1, seats_per_row: 4 }],
      types: [{ id: 'full', name: 'Full price' }, { id: 'child', name: 'Child', prices: { T: 2550 } }],
    });
    const closed = await server.createEvent({ name: 'Closed' });
    await server.post(`/v1/events/${closed.id}/close`);
    const page = await open();
    await settled(page, 'One event is on sale.');
    const link = page.getByRole('link', { name: 'Hamlet', exact: true });
    const shown = card(page, 'Hamlet');
    await shown.getByText('from €25.50').waitFor();
    assert.match(await shown.innerText(), /^Hamlet\s+Sunday, May 6, 2040 at 7:30\sPM UTC\s+Globe\s+1,204 places left\s+from €25\.50$/);
    assert.equal(await link.getAttribute('href'), `/e/${event.id}`);
    assert.equal(await shown.getByRole('link').count(), 1);
    await assertGood(page);
  });

  it('speaks German, on a telephone in the dark', async () => {
    const page = await open({ ...PHONE, locale: 'de-DE', colorScheme: 'dark' });
    await settled(page, 'Eine Veranstaltung ist im Verkauf.');
    await page.getByText(/ab 25,50\s€/).waitFor();
    assert.equal(await page.title(), 'Veranstaltungen im Verkauf');
    const asked = await open({}, '/?lang=de');
    await settled(asked, 'Eine Veranstaltung ist im Verkauf.');
    assert.match(await asked.getByRole('link', { name: 'Hamlet' }).getAttribute('href'), /\?lang=de$/);
    await asked.done();
    await assertGood(page);
  });

  it('is in the order of dates, without what is over, with the time of the venue and the reader\'s own', async () => {
    const [evening, plain, over, sold, zone] = await Promise.all([
      server.createEvent({ name: 'Evening', venue: 'Philharmonie', timezone: 'Europe/Berlin', starts_at: '2040-05-06T20:00:00+02:00' }),
      server.createEvent({ name: 'Plain', starts_at: '2039-01-06T09:00:00Z' }),
      server.createEvent({ name: 'Over', starts_at: '2020-01-01T20:00:00Z' }),
      server.createEvent({ name: 'Sold on', timezone: 'Europe/Berlin', starts_at: '2020-01-01T20:00:00Z', sales_close_at: '2039-01-01T20:00:00Z' }),
      server.createEvent({ name: 'Offset alone', starts_at: '2041-12-31T23:30:00+05:45' }),
    ]);
    const page = await open({ timezoneId: 'America/New_York' });
    await settled(page, '5 events are on sale.');
    const cards = await page.getByRole('listitem').allInnerTexts();
    assert.deepEqual(cards.map((text) => text.trim().split('\n')[0]), ['Sold on', 'Plain', 'Evening', 'Hamlet', 'Offset alone']);
    assert.match(cards[2], /Sunday, May 6, 2040 at 8:00\sPM GMT\+2 \(2:00\sPM EDT your time\)\s+Philharmonie/);
    assert.match(cards[1], /Thursday, January 6, 2039 at 4:00\sAM EST\n/, 'nothing says where it is');
    assert.match(cards[4], /Tuesday, December 31, 2041 at 11:30\sPM GMT\+5:45 \(12:45\sPM EST your time\)/);
    const there = await open({ locale: 'de-DE', timezoneId: 'Europe/Vienna' });
    await there.getByText(/^Sonntag, 6\. Mai 2040 um 20:00 MESZ$/).waitFor();
    await there.getByText('(bei Ihnen 18:45 MEZ)').waitFor();
    await there.done();
    for (const { id } of [evening, plain, over, sold, zone]) await server.post(`/v1/events/${id}/close`);
    await assertGood(page);
  });

  it('shows names as they are, whatever is in them', async () => {
    const nasty = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
    const event = await server.createEvent({ name: nasty, venue: `${nasty}"'&` });
    const page = await open();
    await settled(page, '2 events are on sale.');
    assert.ok((await page.getByRole('link', { name: 'onerror' }).innerText()).includes(nasty));
    assert.equal(await page.title(), 'Events on sale');
    await server.post(`/v1/events/${event.id}/close`);
    await assertGood(page);
  });

  it('says of events that are sold out, and of those that are not on sale yet', async () => {
    const small = { sections: [{ name: 'S', price: 100, rows: 1, seats_per_row: 1 }] };
    const gone = await server.createEvent({ name: 'Gone', ...small });
    await server.grant(gone, 'S-A-1');
    const later = await server.createEvent({ name: 'Later', ...small, sales_open_at: '2040-01-02T10:00:00.000Z' });
    const scarce = await server.createEvent({ name: 'Scarce' });
    for (const row of ['A', 'B']) await server.grant(scarce, [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `S-${row}-${n}`));
    const page = await open();
    await card(page, 'Gone').getByText('Sold out').waitFor();
    await card(page, 'Later').getByText('Sales open on Monday, January 2, 2040').waitFor();
    await card(page, 'Scarce').getByText('Only 4 places left').waitFor();
    await card(page, 'Later').getByText('from $1.00').waitFor();
    assert.doesNotMatch(await card(page, 'Gone').innerText(), /from/, 'nothing is to be had at a price');
    for (const { id } of [gone, later, scarce]) await server.post(`/v1/events/${id}/close`);
    await assertGood(page);
  });

  it('has a picture of each event, or a drawing of its hall, and nothing moves when they come', async () => {
    const made = [];
    for (const fields of [{ name: 'Photo', image: '/web/icon.svg' }, { name: 'Broken', image: '/none.jpg' }, { name: 'Drawn' }]) made.push(await server.createEvent(fields));
    const page = await open({ viewport: SIZES[0] });
    await settled(page, '4 events are on sale.');
    await page.evaluate(() => {
      globalThis.shifts = 0;
      new PerformanceObserver((list) => { for (const { value } of list.getEntries()) globalThis.shifts += value; }).observe({ type: 'layout-shift', buffered: true });
    });
    const picture = (name) => card(page, name).locator('.event-picture');
    await card(page, 'Photo').scrollIntoViewIfNeeded();
    await picture('Photo').locator('img').waitFor();
    await page.waitForFunction((image) => image.complete && image.naturalWidth > 0, await picture('Photo').locator('img').elementHandle());
    for (const name of ['Drawn', 'Broken']) {
      await card(page, name).scrollIntoViewIfNeeded();
      const canvas = picture(name).locator('canvas');
      await canvas.waitFor();
      assert.ok(await canvas.evaluate((each) => new Set(new Uint32Array(each.getContext('2d').getImageData(0, 0, each.width, each.height).data.buffer)).size) > 10, 'there are colours in it');
    }
    for (const shown of await page.locator('.event-picture').all()) {
      const { width, height } = await shown.boundingBox();
      assert.ok(Math.abs(height - width * 9 / 16) < 2, `${width} x ${height}`);
    }
    assert.ok(await page.evaluate(() => globalThis.shifts) < 0.01, 'nothing has moved');
    await card(page, 'Drawn').click({ position: { x: 8, y: 8 } });
    await page.waitForURL(`**/e/${made[2].id}`);
    for (const { id } of made) await server.post(`/v1/events/${id}/close`);
    await page.done();
  });

  it('is good to use at every size, light and dark', async () => {
    const page = await open();
    await card(page, 'Hamlet').getByText('from €25.50').waitFor();
    for (const size of SIZES) {
      await page.setViewportSize(size);
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        assert.deepEqual(await axe(page), [], `${size.width} ${colorScheme}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the page');
      }
    }
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Hamlet');
    await page.setViewportSize(SIZES[2]);
    await page.emulateMedia({ colorScheme: null });
    await page.done();
  });

  it('says when the server cannot be reached, and tries again when asked to', async () => {
    const page = await browser.page();
    let isDown = true;
    await page.route('**/v1/events?*', (route) => (isDown ? route.abort() : route.continue()));
    await page.goto(urlOf(server, '/'));
    await settled(page, /The server cannot be reached/);
    assert.deepEqual(await axe(page), []);
    isDown = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await settled(page, 'One event is on sale.');
    await assertGood(page);
  });

  it('has a button for more than fit on a page', async () => {
    for (let i = 0; i < 30; i++) await server.createEvent({ name: `Evening ${i}` });
    const page = await open();
    await settled(page, 'These are 24 of the events on sale.');
    await page.getByRole('button', { name: 'Show more events' }).click();
    await settled(page, '31 events are on sale.');
    assert.equal(await page.getByRole('listitem').count(), 31);
    assert.equal(await page.getByRole('button', { name: 'Show more events' }).count(), 0);
    await assertGood(page);
  });
});

describe('a server with a brand', () => {
  let server;
  let browser;
  before(async () => {
    const dir = tempDir();
    fs.writeFileSync(path.join(dir, 'logo.svg'), '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="36"><rect width="120" height="36" fill="#a00"/></svg>');
    fs.writeFileSync(path.join(dir, 'brand.json'), JSON.stringify({ name: 'Globe & Sons', color: '#ffd54a', logo: 'logo.svg', imprint: 'https://globe.example/imprint', terms: '/terms?a=1&b=2' }));
    [server, browser] = await Promise.all([start({ args: ['--brand', path.join(dir, 'brand.json')] }), openBrowser()]);
    await server.createEvent({ name: 'Hamlet' });
  });
  after(async () => {
    await browser?.close();
    try { await server?.stop(); } finally { await reap(); }
  });

  for (const [what, target, ready] of [['the list', '/', 'One event is on sale.'], ['a page that does not exist', '/hamlet', 'There is no such page']]) {
    it(`shows it on ${what}, at every size, light and dark, and can be read`, async () => {
      const page = await browser.page();
      await page.goto(urlOf(server, target));
      await page.getByText(ready).waitFor();
      assert.match(await page.title(), / · Globe & Sons$/);
      const home = page.getByRole('link', { name: 'Globe & Sons' });
      assert.equal(await home.getAttribute('href'), '/');
      await page.waitForFunction((image) => image.complete && image.naturalWidth === 120, await home.getByRole('img').elementHandle());
      const foot = page.getByRole('contentinfo');
      assert.equal(await foot.getByRole('link', { name: 'Imprint' }).getAttribute('href'), 'https://globe.example/imprint');
      assert.equal(await foot.getByRole('link', { name: 'Terms' }).getAttribute('href'), '/terms?a=1&b=2');
      for (const size of SIZES) {
        await page.setViewportSize(size);
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          assert.deepEqual(await axe(page), [], `${size.width} ${colorScheme}`);
          assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the page');
        }
      }
      await page.setViewportSize(SIZES[2]);
      await page.emulateMedia({ colorScheme: null });
      assert.deepEqual(page.complaints, []);
      await page.done();
    });
  }

  it('shows it on the page of an event, in German, too', async () => {
    const page = await browser.page({ locale: 'de-DE' });
    await page.goto(urlOf(server, '/'));
    await page.getByRole('link', { name: 'Hamlet' }).click();
    await page.getByRole('application').waitFor();
    await page.getByRole('link', { name: 'Globe & Sons' }).waitFor();
    assert.equal(await page.title(), 'Hamlet · Globe & Sons');
    await page.getByRole('contentinfo').getByRole('link', { name: 'Impressum' }).waitFor();
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });
});
