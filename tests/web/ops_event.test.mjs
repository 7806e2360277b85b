// An event on the operator's page: how it is created and copied, its map through time, the heat of the fight, a seat's history, what
// can be done, and the counter.
// backends: own

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { axe, openBrowser } from '../support/browser.mjs';
import { BuyerPage } from '../support/buyer_page.mjs';
import { openOps } from '../support/ops_page.mjs';
import { sell } from '../support/payments.mjs';
import { gridPlan } from '../support/plans.mjs';
import { mapOf, reap, Server, sleep, until } from '../support/server.mjs';

// A moment as the value of a field of type datetime-local: browsers write it as short as possible.
const localTime = (ms) => new Date(ms).toISOString().slice(0, 23).replace(/(:00)?\.000$|0{1,2}$/, '');

describe('an event on the operator’s page', { concurrency: 1 }, () => {
  let browser;
  let server;
  before(async () => {
    server = new Server();
    [browser] = await Promise.all([openBrowser(), server.launch()]);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
    await reap();
  });

  // The page of an event; resolves when its map is drawn.
  async function open(event, options) {
    const page = await openOps(browser, server, `#/events/${event.id}`, options);
    const map = page.locator('holdfast-seats');
    await map.waitFor();
    await map.evaluate((element) => element.ready);
    return { page, map };
  }
  // What the map on the page shows, as { seat: character }.
  const shown = (map, seats) => map.evaluate((element, ids) => Object.fromEntries(ids.map((id) => [id, element.status(id)])), seats);
  const shows = (map, expected) => until('the map shows it', async () => {
    const now = await shown(map, Object.keys(expected));
    return Object.entries(expected).every(([seat, state]) => now[seat] === state);
  });
  const table = (page, name) => page.getByRole('table', { name });
  const told = (page, text) => page.getByRole('status').filter({ hasText: text }).waitFor();
  // Presses a button and then the one in the dialog that asks.
  async function act(page, button, verb, fill = async () => {}) {
    await button.click();
    const dialog = page.getByRole('dialog');
    await fill(dialog);
    await dialog.getByRole('button', { name: verb, exact: true }).click();
  }

  it('the map follows the sale, and a click on a seat shows its history', async () => {
    const event = await server.createEvent();
    const { page, map } = await open(event);
    const hold = await server.grant(event, 'S-A-2');
    await shows(map, { ...mapOf(await server.read(`/v1/events/${event.id}/seats`)), 'S-A-2': 'h' });
    await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence });
    await shows(map, { 'S-A-2': 'b' });
    await map.scrollIntoViewIfNeeded();
    const { x, y } = await map.evaluate((element) => element.seatPosition('S-A-2'));
    await page.mouse.click(x, y);
    await page.getByRole('heading', { name: 'Seat S-A-2' }).waitFor();
    const changes = table(page, 'What happened, newest first').getByRole('row');
    await changes.nth(2).waitFor();
    const rows = await changes.allTextContents();
    assert.match(rows[1], /confirmed.*held → booked/);
    assert.match(rows[2], /held.*available → held/);
    assert.equal(await page.evaluate((id) => document.body.innerText.includes(id), hold.id), false, 'a hold’s id is a secret');
    await page.getByLabel('Seat', { exact: true }).fill('S-B-7');
    await page.keyboard.press('Enter');
    await page.getByText('Now: available. Price: $10.00.').waitFor();
    await page.getByLabel('Seat', { exact: true }).fill('S-Z-1');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: /seat/ }).waitFor();
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('seats can be coloured by how often they were refused', async () => {
    const event = await server.createEvent();
    await server.grant(event, ['S-A-1', 'S-A-2']);
    for (const seat of ['S-A-1', 'S-A-1', 'S-A-1', 'S-A-2']) assert.equal((await server.hold(event, seat)).status, 409);
    const { page, map } = await open(event);
    await page.getByLabel('Refusals').check();
    const hottest = table(page, 'Seats that were refused most often');
    await hottest.getByRole('row').nth(2).waitFor();
    assert.deepEqual((await hottest.getByRole('row').allTextContents()).slice(1), ['S-A-13', 'S-A-21']); // a seat and its refusals
    await page.getByText(/^4 refusals since .*, on this server\.$/).waitFor();
    assert.equal(await map.evaluate((element) => element.paint), 'heat');
    assert.deepEqual(await axe(page), []);
    await page.getByLabel('Status', { exact: true }).check();
    assert.equal(await map.evaluate((element) => element.paint), 'status');
    await hottest.waitFor({ state: 'hidden' });
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('the slider shows the map as it was at any moment, and live again', async () => {
    const event = await server.createEvent();
    const moments = []; // what the map was, and when
    const note = async () => {
      await sleep(30); // between two changes, so that the clock moves on
      moments.push({ at: Date.now(), map: mapOf(await server.read(`/v1/events/${event.id}/seats`)) });
      await sleep(30);
    };
    await note();
    const hold = await server.grant(event, ['S-A-1', 'S-A-2']);
    await note();
    await server.del(`/v1/holds/${hold.id}`);
    await server.post(`/v1/events/${event.id}/block`, { seats: ['S-B-9'] });
    await note();
    const sold = await server.grant(event, ['S-A-2']);
    await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence });
    const now = mapOf(await server.read(`/v1/events/${event.id}/seats`));
    const { page, map } = await open(event);
    const slider = page.getByRole('slider', { name: 'Moment' });
    // The page knows the time of the server to the second, by each answer anew; what it takes for the future is live.
    await until('all moments are past', () => slider.evaluate((control, ms) => Number(control.max) > ms + 1000, moments.at(-1).at));
    for (const { at, map: then } of [...moments].reverse()) {
      await slider.evaluate((control, ms) => { control.value = String(ms); control.dispatchEvent(new Event('input')); }, at);
      await shows(map, then);
      await page.getByText(/^The map as it was at /).waitFor();
    }
    await page.getByLabel('Exact moment').fill(localTime(moments[1].at));
    await shows(map, moments[1].map);
    await page.getByLabel('Seat', { exact: true }).fill('S-A-1');
    await page.keyboard.press('Enter');
    await page.getByText(/^At .*: held\. Price: \$10\.00\.$/).waitFor();
    await page.getByText('The map shows the past. Return to live to act on this seat.').waitFor();
    assert.deepEqual(await axe(page), []);
    await page.getByRole('button', { name: 'Live' }).click();
    await shows(map, now);
    await page.getByText('Now: available. Price: $10.00.').waitFor();
    await slider.press('ArrowLeft');
    await page.getByText(/^The map as it was at /).waitFor();
    await page.getByRole('button', { name: '+1 min' }).click();
    await page.getByText('Live: the map as it is now.').waitFor();
    await server.grant(event, ['S-A-5']);
    await shows(map, { ...now, 'S-A-5': 'h' });
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('each button asks once, names what will happen, and says what happened', async () => {
    const event = await server.createEvent({ name: 'Gala' });
    const { page } = await open(event);
    await page.getByRole('button', { name: 'Close sales …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Close the sales of Gala?' });
    await dialog.getByText('Nobody can make new holds. Holds that exist can still be paid for.').waitFor();
    assert.deepEqual(await axe(page), []);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Close sales …', 'the focus returns');
    assert.equal((await server.read(`/v1/events/${event.id}`)).status, 'open');
    await act(page, page.getByRole('button', { name: 'Close sales …' }), 'Close sales');
    await told(page, 'The sales of Gala are closed.');
    assert.equal((await server.read(`/v1/events/${event.id}`)).status, 'closed');
    await act(page, page.getByRole('button', { name: 'Open sales …' }), 'Open sales');
    await told(page, 'The sales of Gala are open.');
    await act(page, page.getByRole('button', { name: 'Change terms …' }), 'Change terms');
    const terms = page.getByRole('dialog');
    await terms.getByRole('alert').filter({ hasText: 'Nothing was changed.' }).waitFor();
    await terms.getByLabel('Name').fill('Gala II');
    await terms.getByLabel('Price of S in USD').fill('12.50');
    await terms.getByLabel('Sales close').fill('2040-01-31T20:00');
    await terms.getByLabel('Time zone').fill('Europe/Berlin');
    await terms.getByLabel('Starts').fill('2040-07-31T20:00');
    await terms.getByLabel('Description').fill('Two parts.\nOne interval.');
    await terms.getByRole('button', { name: 'Change terms' }).click();
    await told(page, 'The terms of Gala are changed.');
    const { name, venue, timezone, starts_at: starts, description, sales_close_at: closes, max_per_hold: most, sections } = await server.read(`/v1/events/${event.id}`);
    assert.deepEqual([name, venue, closes, most, sections[0].price], ['Gala II', null, '2040-01-31T20:00:00.000Z', 10, 1250]);
    assert.deepEqual([timezone, starts, description], ['Europe/Berlin', '2040-07-31T20:00:00.000+02:00', 'Two parts.\nOne interval.']);
    await page.getByText(/Jul 31, 2040, 8:00\sPM GMT\+2 \(6:00\sPM UTC your time\)/).waitFor();
    await page.getByRole('heading', { name: 'Gala II' }).waitFor();
    // Another zone does not move what nobody has touched: the dialog shows the same moment by the other clock.
    await act(page, page.getByRole('button', { name: 'Change terms …' }), 'Change terms', async (dialog) => {
      await dialog.getByLabel('Time zone').fill('America/New_York');
      assert.equal(await dialog.getByLabel('Starts').inputValue(), '2040-07-31T14:00');
      await dialog.getByLabel('Doors open').fill('2040-07-31T13:30');
    });
    await told(page, 'The terms of Gala II are changed.');
    const moved = await server.read(`/v1/events/${event.id}`);
    assert.deepEqual([moved.timezone, Date.parse(moved.starts_at), moved.doors_at], ['America/New_York', Date.parse(starts), '2040-07-31T13:30:00.000-04:00']);
    await act(page, page.getByRole('button', { name: 'Archive …' }), 'Archive event');
    await told(page, 'Gala II is archived.');
    assert.equal((await server.read(`/v1/events/${event.id}`)).status, 'archived');
    await page.getByRole('button', { name: 'Archive …' }).waitFor({ state: 'hidden' });
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('places are blocked and put back on sale; a refusal names the seats and keeps the dialog', async () => {
    const event = await server.createEvent({ areas: [{ name: 'Floor', price: 500, capacity: 50 }] });
    await server.grant(event, 'S-A-3');
    const { page, map } = await open(event);
    await act(page, page.getByRole('button', { name: 'Block places …', exact: true }), 'Block', async (dialog) => {
      await dialog.getByLabel('Seats, one id per line').fill('S-A-3\nS-A-4');
      await dialog.getByLabel('Places in Floor').fill('20');
    });
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('alert').filter({ hasText: 'S-A-3' }).waitFor();
    await dialog.getByLabel('Seats, one id per line').fill('S-A-4');
    await dialog.getByRole('button', { name: 'Block', exact: true }).click();
    await told(page, 'Blocked: S-A-4 and 20 places in Floor.');
    await shows(map, { 'S-A-4': 'x', 'S-A-3': 'h' });
    assert.deepEqual(await server.areas(event), { Floor: 30 });
    await page.getByLabel('Seat', { exact: true }).fill('S-A-4');
    await page.keyboard.press('Enter');
    await act(page, page.getByRole('button', { name: 'Put this seat on sale …' }), 'Unblock');
    await told(page, 'Back on sale: S-A-4.');
    await shows(map, { 'S-A-4': '.' });
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('holds are ended and sold, and an answer that was lost is asked for again under the same key', async () => {
    const event = await server.createEvent();
    await server.grant(event, 'S-A-1', { owner: 'Ann' });
    await server.grant(event, 'S-A-2', { owner: 'Ben' });
    const { page, map } = await open(event);
    const holds = table(page, 'Holds');
    await act(page, holds.getByRole('button', { name: 'End …: S-A-1' }), 'End hold',
      (dialog) => dialog.getByText('The hold of Ann on S-A-1 ends now').waitFor());
    await told(page, 'The hold ended; free again: S-A-1.');
    await shows(map, { 'S-A-1': '.', 'S-A-2': 'h' });
    const keys = [];
    await page.route('**/confirm', async (route) => {
      keys.push(await route.request().headerValue('Idempotency-Key'));
      if (keys.length > 1) return route.continue();
      await route.fetch();
      return route.abort();
    });
    await act(page, holds.getByRole('button', { name: 'Sell …: S-A-2' }), 'Sell');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('alert').filter({ hasText: 'The server cannot be reached.' }).waitFor();
    await dialog.getByRole('button', { name: 'Sell', exact: true }).click();
    await told(page, /^Sold: S-A-2\. The order number is [0-9A-Z-]{14}\.$/);
    assert.equal(keys.length, 2);
    assert.equal(keys[0], keys[1]);
    assert.match(keys[0], /^\S{16,}$/);
    await shows(map, { 'S-A-2': 'b' });
    await page.getByLabel('Seat', { exact: true }).fill('S-A-2');
    await page.keyboard.press('Enter');
    await act(page, page.getByRole('button', { name: 'Cancel its booking …' }), 'Cancel booking', (asked) => asked.getByLabel('Reason').fill('rain'));
    await told(page, /is cancelled\.$/);
    await shows(map, { 'S-A-2': '.' });
    const renewed = await server.grant(event, 'S-B-1', { ttl_ms: 60_000 });
    assert.equal((await server.post(`/v1/holds/${renewed.id}/renew`, {})).status, 200);
    await page.getByLabel('Seat', { exact: true }).fill('S-B-1');
    await page.keyboard.press('Enter');
    await act(page, page.getByRole('button', { name: 'End this hold …' }), 'End hold');
    await shows(map, { 'S-B-1': '.' });
    await page.done();
  });

  it('a paid booking is refunded in part, cancelled with the rest, and its refunds are listed', async () => {
    const event = await server.createEvent();
    const booking = await sell(server, event, ['S-A-1']);
    const { page, map } = await open(event);
    const bookings = table(page, 'Bookings');
    await act(page, bookings.getByRole('button', { name: `Refund …: ${booking.number}` }), 'Refund', (dialog) => dialog.getByLabel('Amount in USD').fill('-3'));
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('alert').filter({ hasText: 'This is not an amount in that currency.' }).waitFor();
    await dialog.getByLabel('Amount in USD').fill('3.50');
    await dialog.getByRole('button', { name: 'Refund', exact: true }).click();
    await told(page, `$3.50 of booking ${booking.number} is on its way back.`);
    // The question names what is left when it is asked, and a refund counts when the provider has made it.
    await until('the first refund is done', async () => (await server.read(`/v1/bookings/${booking.id}`)).payment.amount_refunded === 350);
    await act(page, bookings.getByRole('button', { name: `Cancel …: ${booking.number}` }), 'Cancel and refund',
      (asked) => asked.getByText('$6.50 is paid back to the buyer').waitFor());
    await told(page, `Booking ${booking.number} is cancelled, and $6.50 is on its way back.`);
    await shows(map, { 'S-A-1': '.' });
    await page.getByRole('link', { name: 'Payments' }).click();
    const refunds = table(page, 'Refunds').getByRole('row').filter({ hasText: booking.number });
    await refunds.nth(1).waitFor();
    const rows = (await refunds.allTextContents()).map((text) => /\$\d+\.\d\d/.exec(text)[0]).sort();
    assert.deepEqual(rows, ['$3.50', '$6.50']);
    await until('the refunds are done', async () => (await refunds.allTextContents()).every((text) => text.includes('succeeded')));
    assert.deepEqual(await axe(page), []);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('a cancelled event shows how far its cancellation has come', async () => {
    const event = await server.createEvent({ name: 'Storm' });
    const hold = await server.grant(event, 'S-A-1');
    await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence });
    const { page } = await open(event);
    await act(page, page.getByRole('button', { name: 'Cancel event …' }), 'Cancel event and refund everyone',
      (dialog) => dialog.getByText('(1 place is booked now)').waitFor());
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('alert').filter({ hasText: 'This is not the name of the event.' }).waitFor();
    assert.equal((await server.read(`/v1/events/${event.id}`)).status, 'open');
    await dialog.getByLabel('Type the name of the event').fill('Storm');
    await dialog.getByRole('button', { name: 'Cancel event and refund everyone' }).click();
    await told(page, 'Storm is cancelled; its bookings are being cancelled and refunded.');
    await page.getByText(/^Bookings cancelled: 1, left: 0\./).waitFor();
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('a list whose status is changed while it grows shows that status alone', async () => {
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1000, rows: 1, seats_per_row: 25 }] });
    for (let seat = 1; seat <= 21; seat += 1) await server.grant(event, `S-A-${seat}`);
    const { page } = await open(event);
    let go;
    const gate = new Promise((resolve) => { go = resolve; });
    await page.route('**/v1/holds?*cursor=*', async (route) => { await gate; await route.continue(); });
    await page.getByRole('button', { name: 'Show more' }).click();
    await page.getByLabel('Holds with status').selectOption('expired');
    await page.getByText('There are no such holds.').waitFor();
    const answered = page.waitForResponse(/cursor=/);
    go();
    await (await answered).finished();
    await page.evaluate(() => new Promise((resolve) => { setTimeout(resolve, 100); })); // the page has read it
    assert.equal(await table(page, 'Holds').getByRole('row').count(), 0);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  // ---- a new event ----

  const group = (page, name) => page.getByRole('group', { name, exact: true });
  const create = (page) => page.getByRole('button', { name: 'Create an event' });
  const complaints = (page) => page.locator('.complaints li');
  const newest = async () => server.read(`/v1/events/${(await server.read('/v1/events?limit=1')).data[0].id}`);
  // Every view has to fit these screens, in light and in dark.  The test goes on with the last.
  async function fits(page) {
    for (const [width, height, colorScheme] of [[390, 844, 'dark'], [768, 1024, 'light'], [1280, 900, 'light']]) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      if (width !== 768) assert.deepEqual(await axe(page), [], `${width}, ${colorScheme}`);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${width}: it is not wider than the screen`);
    }
  }

  it('a new event is drawn and checked while its form is filled in, and created when all is right', async () => {
    const page = await openOps(browser, server, '#/');
    await page.getByRole('link', { name: 'Create an event' }).click();
    await create(page).click();
    await page.getByRole('heading', { name: /things are not right yet$/ }).waitFor();
    const texts = await complaints(page).allTextContents();
    for (const path of ['name', 'currency', 'sections[0].name']) assert.ok(texts.some((text) => text.startsWith(`${path} is required`)), `${path}: ${texts}`);
    assert.equal(await page.getByLabel('Name', { exact: true }).getAttribute('aria-invalid'), 'true');
    await fits(page);
    await complaints(page).getByRole('button', { name: /^currency / }).click();
    assert.equal(await page.evaluate(() => document.activeElement.name), 'currency');
    await page.keyboard.type('eur');
    await page.getByLabel('Name', { exact: true }).fill('Recital');
    await page.getByLabel('Time zone').fill('America/New_York');
    await page.getByLabel('Starts').fill('2040-07-31T20:00');
    await page.getByText('As clocks show it there (America/New_York).').first().waitFor();
    for (const [label, value] of [['Section', 'Stalls'], ['Price', '12,50'], ['Rows', '2'], ['Seats in each row', '4']]) await group(page, 'Section 1').getByLabel(label, { exact: true }).fill(value);
    await page.getByRole('button', { name: 'Add an area' }).click();
    for (const [label, value] of [['Area', 'Floor'], ['Price', 'ten'], ['Places', '50']]) await group(page, 'Area 1').getByLabel(label, { exact: true }).fill(value);
    await page.keyboard.press('Tab');
    await complaints(page).getByRole('button', { name: /^areas\[0\]\.price must be an integer/ }).waitFor();
    await group(page, 'Area 1').getByLabel('Price').fill('10');
    await page.keyboard.press('Tab');
    await page.getByText('58 places, of which 8 have a number.').waitFor();
    assert.equal(await page.locator('[aria-invalid]').count(), 0);
    const map = page.locator('holdfast-seats');
    assert.deepEqual(await map.evaluate((element) => [element.plan.sections, element.seat('Stalls-B-4').price, element.areas]),
      [[{ name: 'Stalls' }], 1250, [{ name: 'Floor', price: 1000, capacity: 50, available: 50 }]]);
    await create(page).click();
    await told(page, 'Recital is created and on sale.');
    await page.getByRole('heading', { name: 'Recital' }).waitFor();
    const { name, currency, timezone, starts_at: starts, sections, areas } = await newest();
    assert.deepEqual([name, currency, timezone, starts], ['Recital', 'eur', 'America/New_York', '2040-07-31T20:00:00.000-04:00']);
    assert.deepEqual([sections, areas], [[{ name: 'Stalls', price: 1250, rows: 2, seats_per_row: 4 }], [{ name: 'Floor', price: 1000, capacity: 50 }]]);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('a plan from a file is drawn with its mistakes marked, nothing is created until they are gone, and an event is copied whole', async () => {
    const plan = gridPlan({ rows: 2, seats: 4 });
    plan.zones.push({ position: { x: 0, y: 0 }, rows: [], areas: [{ shape: 'rectangle', position: { x: 24, y: 90 }, rectangle: { width: 80, height: 20 }, uuid: 'floor-1', text: { text: 'Floor', position: { x: 40, y: 10 } } }] });
    const broken = structuredClone(plan);
    broken.zones[0].rows[0].seats[1].category = 'Standing';
    delete broken.zones[0].rows[1].seats[2].seat_guid;
    const before = (await server.read('/v1/events?limit=100')).data.length;
    const page = await openOps(browser, server, '#/create');
    const upload = (json) => page.getByLabel('File with the plan').setInputFiles({ name: 'hall.json', mimeType: 'application/json', buffer: Buffer.from(json) });
    await page.getByLabel('A plan, from a file or another event').check();
    await upload('no JSON');
    await page.getByRole('alert').filter({ hasText: 'This file is no JSON.' }).waitFor();
    for (const [body, complaint] of [[{ sections: 'x', types: [null] }, 'sections must be a list'], [{ plan, starts_at: 'soon' }, 'starts_at must be a time']]) {
      await upload(JSON.stringify(body));
      await complaints(page).filter({ hasText: complaint }).waitFor();
    }
    assert.equal(await page.getByRole('alert').filter({ hasText: /./ }).count(), 0);
    await upload(JSON.stringify(broken));
    const map = page.locator('holdfast-seats');
    await page.getByText('Seats in a strong colour are those').waitFor();
    assert.deepEqual((await complaints(page).allTextContents()).filter((text) => text.startsWith('plan')).map((text) => text.split(' ')[0]),
      ['plan.zones[0].rows[0].seats[1].category', 'plan.zones[0].rows[1].seats[2].seat_guid']);
    assert.equal(await map.evaluate((element) => element.paint), 'heat');
    await complaints(page).getByRole('button', { name: /seats\[2\]/ }).click();
    await fits(page);
    const { x, y } = await map.evaluate((element) => { element.scrollIntoView(); return element.seatPosition('zones[0].rows[0].seats[1]'); });
    await page.mouse.click(x, y);
    await told(page, 'plan.zones[0].rows[0].seats[1].category is no category of the plan');
    await page.getByLabel('Name', { exact: true }).fill('Grid');
    await page.getByLabel('Currency').fill('eur');
    await upload(JSON.stringify(plan));
    await page.getByText('The plan is that of hall.json.').waitFor();
    await page.getByLabel('Price of Stalls').fill('20');
    await page.getByRole('button', { name: 'Add an area' }).click();
    for (const [label, value] of [['Area', 'Floor'], ['Price', '10'], ['Places', '5']]) await group(page, 'Area 1').getByLabel(label, { exact: true }).fill(value);
    await group(page, 'Area 1').getByLabel('Where it is on the plan').selectOption('floor-1');
    await page.getByLabel('Wheelchair places').fill('z1r1s1');
    await page.keyboard.press('Tab');
    await page.getByText('13 places, of which 8 have a number.').waitFor();
    assert.equal(await map.evaluate((element) => element.paint), 'status');
    assert.equal((await server.read('/v1/events?limit=100')).data.length, before);
    await create(page).click();
    await told(page, 'Grid is created and on sale.');
    const made = await newest();
    assert.deepEqual([made.prices, made.accessible, made.areas], [{ Stalls: 2000 }, ['z1r1s1'], [{ name: 'Floor', price: 1000, capacity: 5, plan_area: 'floor-1' }]]);
    await page.getByRole('link', { name: 'Copy …' }).click();
    await page.getByText('13 places, of which 8 have a number.').waitFor();
    assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'Copy of Grid');
    await create(page).click();
    await told(page, 'Copy of Grid is created and on sale.');
    const copy = await newest();
    const [one, other] = [await server.read(`/v1/events/${made.id}/plan`), await server.read(`/v1/events/${copy.id}/plan`)];
    assert.deepEqual({ ...other, event: made.id }, one);
    assert.deepEqual([copy.prices, copy.accessible, copy.focus, copy.areas], [made.prices, made.accessible, made.focus, made.areas]);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  // ---- the counter ----

  it('at the counter places are chosen, held, sold with a reference, printed, and given back by undoing the sale', async () => {
    const event = await server.createEvent({ name: 'Gala', starts_at: '2040-01-01T20:00:00Z', areas: [{ name: 'Floor', price: 500, capacity: 50 }] });
    const page = await openOps(browser, server, `#/events/${event.id}`);
    await page.getByRole('link', { name: 'Sell at the counter' }).click();
    await page.getByRole('heading', { name: 'Counter: Gala' }).waitFor();
    const map = page.locator('.counter holdfast-seats');
    await page.getByRole('heading', { name: 'Choose places' }).waitFor();
    await map.evaluate((element) => element.scrollIntoView());
    const { x, y } = await map.evaluate((element) => element.seatPosition('S-A-5'));
    await page.mouse.click(x, y);
    const chosen = page.getByRole('list', { name: 'Chosen places' }).getByRole('listitem');
    await chosen.first().waitFor();
    await map.evaluate((element) => { element.select('S-A-6'); element.select('S-A-7'); });
    await page.getByRole('button', { name: /^Remove .*seat 7$/ }).click();
    await page.getByLabel('Floor, $5.00 each').fill('2');
    await page.getByLabel('Customer').fill('Ann');
    await page.getByText('4 places: $30.00').waitFor();
    assert.deepEqual(await chosen.allTextContents(), ['S, row A, seat 5$10.00✕', 'S, row A, seat 6$10.00✕']);
    await fits(page);
    await page.getByRole('button', { name: 'Hold these places' }).click();
    await page.getByRole('heading', { name: 'Take $30.00' }).waitFor();
    await page.getByText(/^The places are kept for [78]:\d\d$/).waitFor();
    await shows(map, { 'S-A-5': 'h', 'S-A-6': 'h', 'S-A-7': '.' });
    await page.getByRole('link', { name: 'Back to the event' }).click();
    await page.getByRole('link', { name: 'Sell at the counter' }).click();
    await page.getByRole('heading', { name: 'Take $30.00' }).waitFor();
    await page.getByLabel('Received in USD').fill('50');
    await page.getByText('Change: $20.00').waitFor();
    await page.getByLabel('Reference').fill('till-1');
    await fits(page);
    await page.getByRole('button', { name: 'Confirm the sale' }).click();
    await page.getByRole('heading', { name: 'Sold' }).waitFor();
    const [booking] = (await server.read(`/v1/bookings?event=${event.id}&reference=till-1`)).data;
    assert.deepEqual([booking.status, booking.amount, booking.owner, booking.seats, booking.areas], ['confirmed', 3000, 'Ann', ['S-A-5', 'S-A-6'], { Floor: 2 }]);
    await page.getByText(booking.number).waitFor();
    await fits(page);
    await page.emulateMedia({ media: 'print' });
    for (const [what, isSeen] of [[page.getByText(booking.number), true], [page.getByText('S, row A, seat 5'), true], [page.getByRole('button', { name: 'Print' }), false], [page.getByRole('link', { name: 'Payments' }), false], [map, false]]) {
      assert.equal(await what.isVisible(), isSeen);
    }
    await page.emulateMedia({ media: null });
    assert.equal(await page.evaluate((ids) => ids.some((id) => document.body.innerText.includes(id)), [booking.id, booking.hold]), false, 'ids of holds and bookings are secrets');
    await act(page, page.getByRole('button', { name: 'Undo …' }), 'Cancel booking', (dialog) => dialog.getByLabel('Reason').fill('wrong evening'));
    await told(page, /is cancelled\.$/);
    await page.getByRole('heading', { name: 'Choose places' }).waitFor();
    await shows(map, { 'S-A-5': '.', 'S-A-6': '.' });
    await page.getByText('The best seats there are').click();
    await page.getByLabel('How many').fill('3');
    await page.getByRole('button', { name: 'Hold the best seats' }).click();
    await page.getByRole('heading', { name: 'Take $30.00' }).waitFor();
    await page.getByRole('button', { name: 'Give the places back' }).click();
    await told(page, 'The places are free again.');
    assert.deepEqual((await server.read(`/v1/holds?event=${event.id}&status=active`)).data, []);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('two browsers and a counter sell a hall out, and each sees what the others do', async () => {
    const event = await server.createEvent({ name: 'Small', sections: [{ name: 'S', price: 1000, rows: 1, seats_per_row: 6 }] });
    const counter = await openOps(browser, server, `#/events/${event.id}`);
    const [ann, bob] = await Promise.all([1, 2].map(async () => BuyerPage.open(await browser.page(), server, event)));
    await counter.getByRole('link', { name: 'Sell at the counter' }).click();
    await counter.getByRole('heading', { name: 'Choose places' }).waitFor();
    const map = counter.locator('.counter holdfast-seats');
    await map.evaluate((element) => element.ready);
    await ann.take('S-A-1', 'S-A-2');
    await bob.shows('S-A-1', 'h');
    await shows(map, { 'S-A-1': 'h', 'S-A-2': 'h', 'S-A-3': '.' });
    await map.evaluate((element) => { element.select('S-A-5'); element.select('S-A-6'); });
    await counter.getByRole('button', { name: 'Hold these places' }).click();
    await bob.shows('S-A-6', 'h');
    await bob.take('S-A-3', 'S-A-4');
    await counter.getByRole('button', { name: 'Confirm the sale' }).click();
    await counter.getByRole('heading', { name: 'Sold' }).waitFor();
    for (const buyer of [ann, bob]) {
      await buyer.payWith();
      await buyer.booking();
    }
    const { booked, available } = await server.read(`/v1/events/${event.id}`);
    assert.deepEqual({ booked, available }, { booked: 6, available: 0 });
    assert.equal((await server.read(`/v1/events/${event.id}/revenue`)).amount, 6000);
    await counter.getByRole('link', { name: 'Back to the event' }).click();
    await counter.getByText('$60.00').first().waitFor();
    for (const page of [ann.page, bob.page, counter]) {
      assert.deepEqual(page.complaints, []);
      await page.done();
    }
  });

  it('ticket types are created with an event, changed with its terms, and chosen at the counter', async () => {
    const page = await openOps(browser, server, '#/create');
    await page.getByLabel('Name', { exact: true }).fill('Typed');
    await page.getByLabel('Currency').fill('usd');
    for (const [label, value] of [['Section', 'S'], ['Price', '10'], ['Rows', '1'], ['Seats in each row', '4']]) await group(page, 'Section 1').getByLabel(label, { exact: true }).fill(value);
    await page.getByRole('button', { name: 'Add an area' }).click();
    for (const [label, value] of [['Area', 'Floor'], ['Price', '8'], ['Places', '50']]) await group(page, 'Area 1').getByLabel(label, { exact: true }).fill(value);
    for (const [n, id, name, prices] of [[1, 'full', 'Full', ''], [2, 'reduced', 'Reduced', 'S = 6.50; Nowhere = 1']]) {
      await page.getByRole('button', { name: 'Add a ticket type' }).click();
      for (const [label, value] of [['Short name', id], ['Name', name], ['Prices of its own', prices]]) await group(page, `Ticket type ${n}`).getByLabel(label, { exact: true }).fill(value);
    }
    await create(page).click();
    await complaints(page).getByRole('button', { name: /^types\[1\]\.prices\.Nowhere/ }).click();
    await page.keyboard.press('Control+A');
    await page.keyboard.type('S = 6.50');
    await create(page).click();
    await told(page, 'Typed is created and on sale.');
    const event = await newest();
    assert.deepEqual(event.types, [{ id: 'full', name: 'Full', prices: {} }, { id: 'reduced', name: 'Reduced', prices: { S: 650 } }]);
    await act(page, page.getByRole('button', { name: 'Change terms …' }), 'Change terms', async (dialog) => {
      assert.equal(await dialog.getByRole('button', { name: 'Remove' }).count(), 0, 'types are only added');
      await dialog.getByRole('group', { name: 'Ticket type 2', exact: true }).getByLabel('Prices of its own').fill('Floor = 4');
    });
    await told(page, 'The terms of Typed are changed.');
    assert.deepEqual((await server.read(`/v1/events/${event.id}`)).types[1], { id: 'reduced', name: 'Reduced', prices: { Floor: 400 } });
    await page.getByRole('link', { name: 'Sell at the counter' }).click();
    await page.getByRole('heading', { name: 'Choose places' }).waitFor();
    await page.locator('.counter holdfast-seats').evaluate((element) => { element.select('S-A-1'); element.select('S-A-2'); });
    await page.getByLabel('Ticket type of S, row A, seat 2').selectOption('Reduced');
    await page.getByLabel('Floor, Full, $8.00 each').fill('1');
    await page.getByLabel('Floor, Reduced, $4.00 each').fill('2');
    await page.getByText('5 places: $36.00').waitFor();
    const changed = [{ id: 'reduced', prices: { Floor: 300 } }, { id: 'child', name: 'Child', prices: { S: 100 } }];
    assert.equal((await server.patch(`/v1/events/${event.id}`, { types: changed })).status, 200); // while somebody is at the counter
    await page.getByText('5 places: $34.00').waitFor();
    await page.getByLabel('Ticket type of S, row A, seat 1').selectOption('Child');
    await page.getByText('5 places: $25.00').waitFor();
    await page.getByLabel('Ticket type of S, row A, seat 1').selectOption('Full');
    assert.deepEqual(await axe(page), []);
    await page.getByRole('button', { name: 'Hold these places' }).click();
    await page.getByRole('heading', { name: 'Take $34.00' }).waitFor();
    assert.deepEqual(await page.getByRole('list', { name: 'Places' }).getByRole('listitem').allTextContents(),
      ['S, row A, seat 1, Full$10.00', 'S, row A, seat 2, Reduced$10.00', '1 place in Floor, Full$8.00', '2 places in Floor, Reduced$6.00']);
    await page.getByRole('button', { name: 'Confirm the sale' }).click();
    await page.getByRole('heading', { name: 'Sold' }).waitFor();
    assert.equal((await server.read(`/v1/bookings?event=${event.id}`)).data[0].amount, 3400);
    await page.getByRole('link', { name: 'Back to the event' }).click();
    await page.getByRole('cell', { name: 'S-A-1 (full), S-A-2 (reduced), 1 place in Floor (full), and 2 places in Floor (reduced)' }).waitFor();
    const fact = (term) => page.locator('.facts > div').filter({ has: page.getByRole('term').filter({ hasText: new RegExp(`^${term}$`) }) }).getByRole('definition');
    await fact('Revenue, Reduced').waitFor();
    assert.deepEqual(await Promise.all(['Revenue', 'Revenue, Full', 'Revenue, Reduced'].map((term) => fact(term).textContent())), ['$34.00', '$18.00', '$16.00']);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('at the counter a seat that somebody else took meanwhile is named, and the others stay chosen', async () => {
    const event = await server.createEvent();
    const page = await openOps(browser, server, `#/events/${event.id}/sell`);
    const map = page.locator('.counter holdfast-seats');
    await page.getByRole('heading', { name: 'Choose places' }).waitFor();
    await page.route('**/v1/holds', async (route) => {
      if (route.request().method() === 'POST') await server.grant(event, 'S-A-1');
      await route.continue();
    });
    await map.evaluate((element) => { element.select('S-A-1'); element.select('S-A-2'); });
    await page.getByRole('button', { name: 'Hold these places' }).click();
    await page.getByRole('alert').filter({ hasText: 'S-A-1' }).waitFor();
    await until('the other is chosen', () => map.evaluate((element) => element.selection.join() === 'S-A-2'));
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('at the counter a sale whose answer was lost is found again, and a hold that is gone is told at once', async () => {
    const event = await server.createEvent();
    const page = await openOps(browser, server, `#/events/${event.id}/sell`);
    const map = page.locator('.counter holdfast-seats');
    const hold = async (seat) => {
      await page.getByRole('heading', { name: 'Choose places' }).waitFor();
      await map.evaluate((element, id) => element.select(id), seat);
      await page.getByRole('button', { name: 'Hold these places' }).click();
      await page.getByRole('heading', { name: 'Take $10.00' }).waitFor();
      return (await server.read(`/v1/holds?event=${event.id}&status=active`)).data[0];
    };
    const confirm = page.getByRole('button', { name: 'Confirm the sale' });
    const alert = (text) => page.getByRole('alert').filter({ hasText: text }).waitFor();
    const evicted = await hold('S-A-1');
    assert.equal((await server.post(`/v1/holds/${evicted.id}/evict`, {})).status, 200);
    await confirm.click();
    await page.getByRole('heading', { name: 'Choose places' }).waitFor();
    await alert('It was given back; hold the seats again.');
    const { id } = await hold('S-A-2');
    await page.route('**/confirm', async (route) => { await route.fetch(); await route.abort(); });
    await confirm.click();
    await alert('The server cannot be reached.');
    let asked = 0;
    await page.route(`**/v1/holds/${id}`, (route) => { asked += 1; return route.abort(); });
    await page.evaluate((ms) => { // the hold's time is over, for this page
      const { now } = Date;
      Date.now = () => now() + ms;
      globalThis.restoreClock = () => { Date.now = now; };
    }, 600_000);
    await until('the page asks what became of it', () => asked > 0);
    await sleep(1000);
    assert.ok(asked < 10, `the counter and its map do not ask again and again, but ${asked} times in a second`);
    await page.unroute(`**/v1/holds/${id}`);
    await page.getByRole('heading', { name: 'Sold' }).waitFor();
    await page.getByText((await server.read(`/v1/bookings?event=${event.id}`)).data[0].number).waitFor();
    assert.deepEqual(page.complaints, []);
    await page.evaluate(() => globalThis.restoreClock());
    await page.done();
  });
});
