// The buyer's page, from choosing to booked: by mouse, by keyboard alone and by touch, on screens of several sizes, light and dark.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { openBrowser, PHONE, urlOf } from '../support/browser.mjs';
import { BuyerPage, tabTo } from '../support/buyer_page.mjs';
import { assertTook } from '../support/process.mjs';
import { reap, start } from '../support/server.mjs';

const LAYOUT = {
  name: 'Hamlet', venue: 'Globe', starts_at: '2040-05-06T19:30:00.000Z',
  sections: [{ name: 'Stalls', price: 6500, rows: 3, seats_per_row: 10 }, { name: 'Balcony', price: 4500, rows: 2, seats_per_row: 8 }],
};

// A telephone a quarter as fast as this machine, on 3G: 1.6 Mbit/s down, 768 kbit/s up, 300 ms for a round trip.  Chromium
// slows a page down by keeping the processor busy, so the telephone is as fast as the machine where no time is claimed.
const SLOW = {
  cpu: process.env.HF_SOAK === '1' ? 4 : 1, network: { offline: false, latency: 300, downloadThroughput: 1_600_000 / 8, uploadThroughput: 768_000 / 8 }, firstMapMs: 3000, boughtMs: 20_000,
};

describe('a purchase', () => {
  let server;
  let browser;
  before(async () => { [server, browser] = await Promise.all([start(), openBrowser()]); });
  after(async () => {
    await browser?.close();
    try { await server?.finish(); } finally { await reap(); }
  });

  const open = async (fields = LAYOUT, options = {}) => {
    const event = await server.createEvent(fields);
    const page = await browser.page(options);
    return { event, page, buyer: await BuyerPage.open(page, server, event) };
  };
  const positionOf = (page, id) => page.evaluate((seat) => document.querySelector('holdfast-seats').seatPosition(seat), id);
  const assertBooked = async (buyer, event, ...seats) => {
    const { id, number } = await buyer.booking();
    const booking = await server.read(`/v1/bookings/${id}`);
    assert.deepEqual([booking.status, booking.number, booking.seats], ['confirmed', number, seats]);
    const map = await server.map(event);
    for (const seat of seats) assert.equal(map[seat], 'b');
    assert.equal(await buyer.kept(), '{}', 'nothing is kept once it is over');
    assert.deepEqual(buyer.page.complaints, []);
    await buyer.page.done();
  };

  it('by mouse: seats on the map, held, paid, booked; the button that goes on is always in view', async () => {
    const { event, page, buyer } = await open(LAYOUT, { viewport: { width: 1280, height: 800 } });
    assert.equal(await page.title(), 'Hamlet');
    await page.getByText('Globe · Sunday, May 6, 2040').waitFor();
    await buyer.assertGood();
    for (const id of ['Stalls-B-5', 'Stalls-B-6']) {
      const { x, y } = await positionOf(page, id);
      await page.mouse.click(x, y);
    }
    await page.getByText('$130.00').waitFor();
    assert.deepEqual(await buyer.seats.allInnerTexts().then((texts) => texts.map((text) => text.split('\n')[0])), ['Stalls, row B, seat 5', 'Stalls, row B, seat 6']);
    await buyer.assertInWindow(buyer.hold);
    await buyer.assertGood();
    await buyer.hold.click();
    await buyer.says('2 places are held for you.');
    assert.match(await buyer.timer.innerText(), /^(8:00|7:[0-5]\d)$/);
    assert.equal((await server.map(event))['Stalls-B-5'], 'h');
    assert.equal(await buyer.hold.count(), 0, 'one button goes on');
    await buyer.assertInWindow(buyer.pay);
    await buyer.assertGood();
    await buyer.fillCard();
    assert.equal(await buyer.pay.innerText(), 'Pay $130.00');
    await buyer.pay.click();
    const { number, link } = await buyer.booking();
    await buyer.assertGood();
    const facts = await page.getByRole('region', { name: 'Booked' }).innerText();
    for (const fact of ['Hamlet', 'Globe', /Sunday, May 6, 2040 at 7:30\sPM UTC/, '$130.00', 'Stalls, row B, seat 5', number]) assert.match(facts, new RegExp(fact.source ?? fact.replace('$', '\\$')));
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Add to calendar' }).click()]);
    assert.match(fs.readFileSync(await file.path(), 'utf8'), /^BEGIN:VCALENDAR\r\n[^]*DTSTART:20400506T193000Z\r\nSUMMARY:Hamlet\r\nLOCATION:Globe\r\n[^]*seat 5\\nStalls[^]*END:VCALENDAR\r\n$/);
    const other = await browser.page();
    await other.goto(link); // on another device
    assert.equal((await new BuyerPage(other, server).booking()).number, number);
    await other.getByRole('button', { name: 'Book more seats' }).click();
    await new BuyerPage(other, server).hold.waitFor();
    assert.equal(new URL(other.url()).hash, '');
    await other.done();
    await assertBooked(buyer, event, 'Stalls-B-5', 'Stalls-B-6');
  });

  it('of an evening in Berlin, seen from New York and from Berlin, until it begins', async () => {
    const fields = {
      ...LAYOUT, venue: 'Philharmonie', venue_address: 'Herbert-von-Karajan-Str. 1', timezone: 'Europe/Berlin', starts_at: '2040-05-06T01:00:00+02:00',
      doors_at: '2040-05-06T00:15:00+02:00', description: 'Two parts.\n<b>One</b> interval.', sales_open_at: '2039-12-01T10:00:00Z',
    };
    const event = await server.createEvent(fields);
    const page = await browser.page({ timezoneId: 'America/New_York' });
    const buyer = await BuyerPage.open(page, server, event, { ready: null });
    await page.getByText(/^Philharmonie · Herbert-von-Karajan-Str\. 1 · Sunday, May 6, 2040 at 1:00\sAM GMT\+2 \(Saturday, May 5, 2040 at 7:00\sPM EDT your time\)$/).waitFor();
    await page.getByText(/^Doors open on Sunday, May 6, 2040 at 12:15\sAM GMT\+2/).waitFor();
    await page.getByText(/Sales open on Thursday, December 1, 2039 at 11:00\sAM GMT\+1 \(5:00\sAM EST your time\)\./).waitFor();
    assert.equal(await page.getByText('Two parts.').innerText(), 'Two parts.\n<b>One</b> interval.');
    await buyer.assertGood();
    await page.done();
    const there = await browser.page({ locale: 'de-DE', timezoneId: 'Europe/Berlin' });
    await there.goto(urlOf(server, `/e/${event.id}`));
    await there.getByText('Sonntag, 6. Mai 2040 um 01:00 MESZ', { exact: false }).waitFor();
    await there.getByText('Einlass ist am Sonntag, 6. Mai 2040 um 00:15 MESZ.').waitFor();
    assert.equal(await there.getByText('bei Ihnen').count(), 0);
    assert.equal((await server.patch(`/v1/events/${event.id}`, { sales_open_at: null, starts_at: '2020-05-06T01:00:00+02:00' })).status, 200);
    await there.reload();
    await there.getByText('Der Verkauf ist beendet.').waitFor();
    await there.done();
  });

  it('by keyboard alone', async () => {
    const { event, page, buyer } = await open(LAYOUT, { viewport: { width: 768, height: 1024 }, colorScheme: 'dark' });
    await buyer.assertInWindow(buyer.hold);
    await buyer.assertGood();
    await page.evaluate(() => document.activeElement.blur());
    await tabTo(page, 'application');
    for (const key of ['ArrowRight', 'ArrowRight', 'Enter']) await page.keyboard.press(key);
    await buyer.seats.first().waitFor();
    const [chosen] = await page.evaluate(() => document.querySelector('holdfast-seats').selection);
    await tabTo(page, 'hold');
    await page.keyboard.press('Enter');
    await buyer.says('One place is held for you.');
    await buyer.assertInWindow(buyer.pay);
    await buyer.assertGood();
    await tabTo(page, 'card-number');
    await page.keyboard.type('4242424242424242');
    await page.keyboard.press('Tab');
    await page.keyboard.type('1240');
    await page.keyboard.press('Tab');
    await page.keyboard.type('123');
    await page.keyboard.press('Enter');
    await assertBooked(buyer, event, chosen);
  });

  it('on a telephone of 360 px, by touch, in the dark', async () => {
    const { event, page, buyer } = await open(LAYOUT, { ...PHONE, colorScheme: 'dark', reducedMotion: 'reduce' });
    await buyer.assertGood();
    const targets = await page.evaluate(() => [...document.querySelectorAll('button, input, select, .back')].filter((each) => each.checkVisibility() && each.type !== 'checkbox')
      .map((each) => [each.id || each.textContent, each.getBoundingClientRect().height]).filter(([, height]) => height < 44));
    assert.deepEqual(targets, [], 'everything is large enough for a finger');
    // The first tap comes closer, if seats are too small for a finger; the next one selects.
    for (let taps = 0; taps < 2 && await buyer.seats.count() === 0; taps++) {
      const before = await positionOf(page, 'Stalls-A-4');
      await page.touchscreen.tap(before.x, before.y);
      await page.waitForFunction((size) => {
        const map = document.querySelector('holdfast-seats');
        return map.selection.length > 0 || map.seatPosition('Stalls-A-4').size !== size;
      }, before.size);
    }
    await buyer.hold.tap();
    await buyer.giveBack.waitFor();
    await buyer.assertGood();
    await buyer.fillCard();
    await buyer.pay.tap();
    await buyer.booking();
    await buyer.assertGood();
    await assertBooked(buyer, event, 'Stalls-A-4');
  });

  it('of the best seats of a category on a telephone, one of which is given back before paying', async () => {
    const { event, page, buyer } = await open(LAYOUT, { ...PHONE, viewport: { width: 390, height: 844 } });
    await buyer.assertInWindow(buyer.hold);
    const map = await buyer.map.boundingBox();
    assert.ok(map.width >= 388 && map.height > 844 / 2, `the map fills the screen: ${map.width} x ${map.height}`);
    await page.getByRole('button', { name: 'Best seats', exact: true }).tap();
    await buyer.howMany.fill('3');
    await page.getByRole('combobox', { name: 'Category' }).selectOption({ label: 'Balcony · $45.00' });
    await buyer.best.click();
    await buyer.says('3 places are held for you.');
    assert.equal(await buyer.seats.count(), 3);
    const [first, ...rest] = await page.evaluate(() => document.querySelector('holdfast-seats').currentHold.seats);
    assert.equal(await buyer.map.count(), 0, 'the map has made way for the payment');
    for (const shown of [buyer.pay, buyer.timer]) await buyer.assertInWindow(shown);
    await buyer.assertGood();
    const name = await buyer.nameOf(first);
    await page.getByRole('button', { name: `Remove ${name}` }).click();
    await buyer.says(`${name} is removed.`);
    assert.equal(await buyer.pay.innerText(), 'Pay $90.00');
    await page.getByRole('button', { name: 'Show the map' }).tap();
    await buyer.map.waitFor();
    await buyer.assertInWindow(buyer.timer);
    await page.getByRole('button', { name: 'Continue to the payment' }).tap();
    await buyer.payWith();
    await assertBooked(buyer, event, ...rest);
    assert.equal((await server.map(event))[first], '.');
  });

  it('for which two minutes and half a minute are told, and more time is given while it may be', async () => {
    const { event, page, buyer } = await open({ ...LAYOUT, hold_ttl_ms: 480_000, hold_max_ms: 600_000 });
    const pass = (ms) => page.evaluate((ahead) => { // for this page
      for (const clock of [Date, performance]) {
        const now = clock.now.bind(clock);
        clock.now = () => now() + ahead;
      }
    }, ms);
    await buyer.take('Stalls-A-1');
    const more = page.getByRole('button', { name: 'More time' });
    assert.equal(await more.count(), 0);
    const { id, expires_at: before, max_expires_at: most } = await page.evaluate(() => document.querySelector('holdfast-seats').currentHold);
    await pass(370_000);
    await buyer.says('You have 2 minutes left to pay, and can have more time.');
    await buyer.assertGood();
    const color = () => buyer.timer.evaluate((timer) => getComputedStyle(timer).color);
    const soon = await color();
    await page.setViewportSize({ width: 320, height: 640 });
    for (const shown of [buyer.timer, more, buyer.pay]) await buyer.assertInWindow(shown);
    assert.ok((await buyer.timer.boundingBox()).height < 48, 'the time is on one line');
    await page.getByRole('button', { name: 'Show the map' }).click();
    await page.waitForFunction(() => document.getElementById('total').clientHeight > 0);
    assert.ok((await page.getByText('One seat $65.00').boundingBox()).height < 48, 'words are not broken');
    await buyer.assertInWindow(page.getByRole('button', { name: 'Continue to the payment' }));
    await page.getByRole('button', { name: 'Continue to the payment' }).click();
    await page.setViewportSize({ width: 1280, height: 900 });
    await more.click();
    await buyer.says(/You have more time: \d+:\d\d from now\./);
    const { expires_at: now } = await server.read(`/v1/holds/${id}`);
    assert.ok(now > before && now <= most, `${now} is later than ${before}`);
    await pass(455_000);
    await buyer.says('You have 30 seconds left to pay');
    assert.notEqual(await color(), soon);
    await buyer.assertGood();
    await buyer.payWith();
    await assertBooked(buyer, event, 'Stalls-A-1');
  });

  it('of seats that are added to a hold', async () => {
    const { event, buyer } = await open();
    await buyer.take('Stalls-A-1');
    const { x, y } = await positionOf(buyer.page, 'Stalls-A-2');
    await buyer.page.mouse.click(x, y);
    assert.equal(await buyer.pay.count(), 0, 'what is chosen is held before anything is paid');
    await buyer.hold.click();
    await buyer.says('2 places are held for you.');
    await buyer.payWith();
    await assertBooked(buyer, event, 'Stalls-A-1', 'Stalls-A-2');
  });

  it('of places without a number', async () => {
    const { event, page, buyer } = await open({ ...LAYOUT, max_per_hold: 4, areas: [{ name: 'Floor', price: 3000, capacity: 50 }] });
    const floor = page.getByRole('spinbutton', { name: 'Floor' });
    await page.getByText('$30.00 each, 50 left').waitFor();
    await floor.fill('9');
    await floor.press('Tab');
    await buyer.says('Only 4 places in Floor are possible.');
    await floor.fill('2');
    await floor.press('Tab');
    await page.getByText('$60.00').first().waitFor();
    await buyer.assertGood();
    await buyer.hold.click();
    await buyer.payWith();
    const { id } = await buyer.booking();
    assert.deepEqual((await server.read(`/v1/bookings/${id}`)).areas, { Floor: 2 });
    assert.deepEqual(await server.areas(event), { Floor: 48 });
    await page.done();
  });

  it('of tickets of several types, of seats and of an area', async () => {
    const { event, page, buyer } = await open({
      ...LAYOUT, areas: [{ name: 'Floor', price: 3000, capacity: 50 }],
      types: [{ id: 'full', name: 'Full price' }, { id: 'reduced', name: 'Reduced', prices: { Stalls: 4000, Floor: 1000 } }],
    });
    await buyer.select('Stalls-A-1', 'Stalls-A-2');
    const typeOf = (name) => page.getByRole('combobox', { name: `Ticket type of ${name}` });
    await typeOf('Stalls, row A, seat 2').focus();
    await page.keyboard.press('ArrowDown');
    await page.getByText('$105.00').waitFor();
    assert.ok(await typeOf('Stalls, row A, seat 2').evaluate((field) => field === document.activeElement && field.selectedOptions[0].text === 'Reduced · $40.00'),
      'the keyboard stays where it is');
    await page.getByRole('spinbutton', { name: 'Floor: Full price' }).fill('1');
    await page.getByRole('spinbutton', { name: 'Floor: Reduced' }).fill('2');
    await page.getByText('$155.00').waitFor();
    await buyer.assertGood();
    await buyer.hold.click();
    await buyer.says('5 places are held for you.');
    const places = async () => (await server.read(`/v1/holds/${await page.evaluate(() => document.querySelector('holdfast-seats').currentHold.id)}`)).places
      .map(({ seat, area, type, amount }) => [seat ?? area, type, amount].join(' ')).sort();
    assert.deepEqual(await places(), ['Floor full 3000', 'Floor reduced 1000', 'Floor reduced 1000', 'Stalls-A-1 full 6500', 'Stalls-A-2 reduced 4000']);
    await typeOf('Stalls, row A, seat 1').selectOption('reduced');
    await page.getByRole('button', { name: 'Pay $130.00' }).waitFor();
    await page.getByRole('listitem').filter({ hasText: 'Floor, 2 places' }).getByRole('button', { name: 'Remove Floor: Reduced', exact: true }).click();
    await page.getByRole('button', { name: 'Pay $110.00' }).waitFor();
    assert.deepEqual(await places(), ['Floor full 3000', 'Stalls-A-1 reduced 4000', 'Stalls-A-2 reduced 4000']);
    await buyer.assertGood();
    await buyer.payWith();
    const { id } = await buyer.booking();
    await page.getByRole('list', { name: 'Booked' }).getByText('Reduced').first().waitFor();
    assert.equal((await server.read(`/v1/bookings/${id}`)).amount, 11_000);
    await page.done();
  });

  it(`on a slow telephone shows the first map in ${SLOW.firstMapMs / 1000} s and takes ${SLOW.boughtMs / 1000} s in all, for somebody who is quick`, async (t) => {
    const event = await server.createEvent(LAYOUT);
    const page = await browser.page({ ...PHONE, viewport: { width: 390, height: 844 }, once: true });
    const session = await page.context().newCDPSession(page);
    await session.send('Network.enable');
    await session.send('Network.emulateNetworkConditions', SLOW.network);
    await session.send('Emulation.setCPUThrottlingRate', { rate: SLOW.cpu });
    const buyer = await BuyerPage.open(page, server, event, { ready: null });
    await page.waitForFunction(() => performance.getEntriesByName('holdfast-first-draw').length > 0);
    const firstMapMs = await page.evaluate(() => performance.getEntriesByName('holdfast-first-draw')[0].startTime);
    await page.getByRole('button', { name: 'Best seats', exact: true }).tap();
    await buyer.best.tap();
    await buyer.giveBack.waitFor();
    await buyer.fillCard();
    await buyer.pay.tap();
    await buyer.booked.waitFor();
    const boughtMs = await page.evaluate(() => performance.now());
    t.diagnostic(`first map after ${Math.round(firstMapMs)} ms, booked after ${Math.round(boughtMs)} ms`);
    assertTook(firstMapMs, SLOW.firstMapMs, 'the first map');
    assertTook(boughtMs, SLOW.boughtMs, 'two seats');
    await page.done();
  });

  it('of something free needs no card', async () => {
    const { event, page, buyer } = await open({ name: 'Talk', sections: [{ name: 'S', price: 0, rows: 1, seats_per_row: 5 }] });
    await buyer.take('S-A-3');
    assert.equal(await buyer.number.count(), 0);
    await buyer.assertGood();
    await page.getByRole('button', { name: 'Book free of charge' }).click();
    await assertBooked(buyer, event, 'S-A-3');
  });

  it('in German', async () => {
    const event = await server.createEvent({ ...LAYOUT, currency: 'eur' });
    const page = await browser.page({ locale: 'de-DE' });
    await BuyerPage.open(page, server, event, { ready: 'Platz suchen' });
    await page.getByRole('spinbutton', { name: 'Wie viele' }).fill('1');
    await page.getByRole('button', { name: 'Beste Plätze finden' }).click();
    await page.getByRole('status').getByText('Ein Platz ist für Sie reserviert.').waitFor();
    assert.match(await page.getByRole('button', { name: /bezahlen$/ }).innerText(), /^65,00\s€ bezahlen$/);
    await page.getByRole('textbox', { name: 'Kartennummer' }).fill('4242 4242 4242 4242');
    await page.getByRole('textbox', { name: 'Gültig bis' }).fill('12/2040');
    await page.getByRole('textbox', { name: 'Prüfziffer' }).fill('123');
    await page.getByRole('button', { name: /bezahlen$/ }).click();
    await page.getByRole('heading', { name: 'Gebucht' }).waitFor();
    await page.done();
  });
});
