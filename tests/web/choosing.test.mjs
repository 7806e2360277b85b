// Choosing seats on the buyer's page: what is refused, who was faster, and sales that open and close meanwhile.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openBrowser } from '../support/browser.mjs';
import { BuyerPage } from '../support/buyer_page.mjs';
import { reap, start } from '../support/server.mjs';

const LAYOUT = {
  name: 'Hamlet', sections: [{ name: 'Stalls', price: 6500, rows: 3, seats_per_row: 10 }, { name: 'Balcony', price: 4500, rows: 2, seats_per_row: 8 }],
};

describe('choosing', () => {
  let server;
  let browser;
  before(async () => { [server, browser] = await Promise.all([start(), openBrowser()]); });
  after(async () => {
    await browser?.close();
    try { await server?.finish(); } finally { await reap(); }
  });

  it('a seat that somebody else takes while it is selected is removed, and named', async () => {
    const event = await server.createEvent(LAYOUT);
    const buyer = await BuyerPage.open(await browser.page(), server, event);
    await buyer.select('Stalls-A-1', 'Stalls-A-2');
    await server.grant(event, 'Stalls-A-1');
    await buyer.says('Stalls, row A, seat 1 was taken by somebody else');
    assert.equal(await buyer.seats.count(), 1);
    assert.equal((await server.patch(`/v1/events/${event.id}`, { prices: { Stalls: 7000 } })).status, 200);
    await buyer.seats.getByText('$70.00').waitFor(); // a new price is told at once, too
    await buyer.page.getByText('One seat $70.00').waitFor();
    await buyer.page.done();
  });

  it('two people who want one seat: one gets it, and the other is told which seat is gone', async () => {
    const event = await server.createEvent(LAYOUT);
    const people = await Promise.all([1, 2].map(async () => BuyerPage.open(await browser.page(), server, event)));
    for (const buyer of people) await buyer.select('Stalls-A-1', 'Stalls-B-1');
    await Promise.all(people.map((buyer) => buyer.hold.click()));
    const results = await Promise.all(people.map((buyer) => Promise.race([
      buyer.says('2 places are held for you.').then(() => 'held'),
      buyer.says('Stalls, row B, seat 1 were taken by somebody else and are removed from your seats.').then(() => 'lost'),
    ])));
    assert.deepEqual([...results].sort(), ['held', 'lost']);
    assert.equal(await people[results.indexOf('lost')].seats.count(), 0);
    for (const buyer of people) await buyer.page.done();
  });

  it('a seat that cannot be had says why, and so does a wish that cannot be met', async () => {
    const event = await server.createEvent(LAYOUT);
    await server.grant(event, 'Stalls-A-1');
    const buyer = await BuyerPage.open(await browser.page(), server, event);
    for (const [text, sentence] of [['Stalls-A-1', 'Stalls, row A, seat 1 is not available.'], ['Stalls-Z-1', 'There is no seat “Stalls-Z-1”.'], ['', 'There is no seat']]) {
      await buyer.find.fill(text);
      await buyer.find.press('Enter');
      await buyer.says(sentence);
    }
    for (const [text, sentence] of [ // as the page writes it, as far as that is one seat
      ['row b seat 7', '“row b seat 7” fits 2 seats. Type more of it, such as “Stalls, row B, seat 7”.'],
      ['Balcony, row B, seat 7', 'Balcony, row B, seat 7 is selected.'], ['balcony b7', 'Balcony, row B, seat 7 is among your seats already.']]) {
      await buyer.find.fill(text);
      await buyer.find.press('Enter');
      await buyer.says(sentence);
    }
    await buyer.page.getByRole('button', { name: 'Remove Balcony, row B, seat 7' }).click();
    for (const [text, sentence] of [['0', 'How many must be a number from 1 to 10.'], ['1.5', 'How many must be'], ['', 'How many must be']]) {
      await buyer.howMany.fill(text);
      await buyer.best.click();
      await buyer.says(sentence);
    }
    await buyer.howMany.fill('10');
    await buyer.page.getByRole('combobox', { name: 'Category' }).selectOption('Balcony');
    await buyer.best.click();
    await buyer.says('There are no 10 places together that fit.');
    await buyer.assertGood();
    await buyer.page.done();
  });

  it('a choice that leaves a single seat is pointed out as long as it does, if the event wants that, and refused if it wants that', async () => {
    for (const lone_seats of ['hint', 'refuse']) {
      const event = await server.createEvent({ ...LAYOUT, lone_seats });
      const page = await browser.page();
      const buyer = await BuyerPage.open(page, server, event);
      if (lone_seats === 'hint') {
        await buyer.find.fill('Stalls-A-2');
        await buyer.find.press('Enter');
        await buyer.says('Stalls, row A, seat 2 is selected. Stalls, row A, seat 1 would be left single, and hardly anybody');
      } else {
        const { x, y } = await page.evaluate(() => document.querySelector('holdfast-seats').seatPosition('Stalls-A-2'));
        await page.mouse.click(x, y);
        await buyer.says('Stalls, row A, seat 1 would be left single, and hardly anybody');
      }
      const note = page.getByRole('region', { name: 'Your seats' }).getByText('would be left single');
      await note.waitFor();
      await buyer.assertGood();
      if (lone_seats === 'refuse') {
        await buyer.hold.click();
        await buyer.says('Stalls, row A, seat 1 would be left single, which is not possible here.');
      }
      await buyer.select('Stalls-A-1');
      await note.waitFor({ state: 'hidden' });
      await buyer.hold.click();
      await buyer.says('2 places are held for you.');
      await page.done();
    }
  });

  it('a sale that closes and opens again says so without a reload', async () => {
    const event = await server.createEvent(LAYOUT);
    const buyer = await BuyerPage.open(await browser.page(), server, event);
    await server.post(`/v1/events/${event.id}/close`);
    await buyer.says('Tickets are not on sale at the moment.');
    await buyer.find.waitFor({ state: 'hidden' });
    await buyer.assertGood();
    await server.post(`/v1/events/${event.id}/open`);
    await buyer.says('Tickets are on sale again.');
    await buyer.take('Stalls-C-1');
    await buyer.page.done();
  });

  it('an event whose sale has not begun says when it does, and begins by itself', async () => {
    const event = await server.createEvent({ ...LAYOUT, sales_open_at: '2040-01-02T10:00:00.000Z' });
    const page = await browser.page();
    const buyer = await BuyerPage.open(page, server, event, { ready: null });
    await buyer.says('Sales open on Monday, January 2, 2040');
    await buyer.assertGood();
    await page.evaluate((ms) => { // it is the day after, for this page
      const now = Date.now.bind(Date);
      Date.now = () => now() + ms;
    }, Date.parse('2040-01-03T10:00:00.000Z') - Date.now());
    await buyer.find.waitFor();
    await page.done();
  });

  it('an event without seats has no forms for seats', async () => {
    const event = await server.createEvent({ sections: undefined, areas: [{ name: 'Lawn', price: 500, capacity: 9 }] });
    const buyer = await BuyerPage.open(await browser.page(), server, event, { ready: null });
    const lawn = buyer.page.getByRole('spinbutton', { name: 'Lawn' });
    await lawn.fill('2');
    await buyer.hold.click(); // the field still has the focus
    await buyer.says('2 places are held for you.');
    assert.equal(await buyer.find.count(), 0);
    assert.equal(await buyer.best.count(), 0);
    await buyer.page.getByRole('button', { name: 'Remove Lawn' }).click();
    await buyer.says('You have given the seats back.');
    await buyer.assertGood();
    await buyer.page.done();
  });

  it('an event that does not exist says so', async () => {
    for (const id of ['evt_none', 'nonsense', '%E0%A4%A', encodeURIComponent('"><script>alert(1)</script>')]) {
      const buyer = await BuyerPage.open(await browser.page(), server, id, { ready: null });
      await buyer.says('There is no such event.');
      assert.deepEqual(buyer.page.complaints, []);
      if (id === 'evt_none') await buyer.assertGood();
      await buyer.page.done();
    }
  });
});
