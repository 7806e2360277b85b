// The hold of a buyer on the page: given back, expired, taken away, kept over reloads, in other tabs and without a network.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openBrowser } from '../support/browser.mjs';
import { BuyerPage } from '../support/buyer_page.mjs';
import { CARD } from '../support/checkout.mjs';
import { assertOk } from '../support/expect.mjs';
import { reap, start, until } from '../support/server.mjs';

const LAYOUT = { name: 'Hamlet', sections: [{ name: 'S', price: 6500, rows: 3, seats_per_row: 10 }] };

const TTL_MS = 8000; // of holds that are to expire, but not before the page has shown them, though it may stand still

let server;
let browser;
before(async () => { [server, browser] = await Promise.all([start(), openBrowser()]); });
after(async () => {
  await browser?.close();
  try { await server?.finish(); } finally { await reap(); }
});

// A buyer who holds S-A-1 and S-A-2 of an event.
async function holding(fields = {}, seats = ['S-A-1', 'S-A-2']) {
  const event = await server.createEvent({ ...LAYOUT, ...fields });
  const person = await browser.person();
  const page = await person.tab();
  const buyer = await BuyerPage.open(page, server, event);
  await buyer.take(...seats);
  return { event, person, page, buyer };
}
const holdOf = async (buyer) => Object.values(JSON.parse(await buyer.kept())).map((text) => JSON.parse(text))[0];

describe('a hold', () => {
  it('that is given back is free at once, and the buyer chooses again', async () => {
    const { event, person, buyer } = await holding();
    await buyer.giveBack.click();
    await buyer.says('You have given the seats back.');
    assert.equal((await server.map(event))['S-A-1'], '.');
    assert.equal(await buyer.kept(), '{}');
    await buyer.assertGood();
    await buyer.best.click(); // seats that were found are given back in the same way
    await buyer.giveBack.click();
    await buyer.says('You have given the seats back.');
    assert.ok(await buyer.hold.isDisabled());
    await buyer.take('S-A-1');
    await person.done();
  });

  it('can be given back after a card was declined', async () => {
    const { event, person, buyer } = await holding();
    await buyer.payWith(CARD.declined);
    await buyer.says('declined');
    await buyer.giveBack.click();
    await buyer.says('You have given the seats back.');
    await until('the seat is free', async () => (await server.map(event))['S-A-1'] === '.');
    await person.done();
  });

  it('that expires says so, offers the same seats until somebody else has one, and to look again', async () => {
    const event = await server.createEvent({ ...LAYOUT, hold_ttl_ms: TTL_MS });
    const page = await browser.page();
    const buyer = await BuyerPage.open(page, server, event);
    await buyer.select('S-A-1');
    await page.evaluate(() => { // the page itself notes what it showed: the hold may be over before the test looks
      const timer = document.querySelector('[role=timer]');
      globalThis.times = [];
      new MutationObserver(() => globalThis.times.push(timer.textContent)).observe(timer, { childList: true, characterData: true, subtree: true });
    });
    await buyer.hold.click();
    await page.getByRole('heading', { name: 'Your time is up' }).waitFor();
    await buyer.says('Your hold has expired.');
    const times = await page.evaluate(() => globalThis.times);
    assert.ok(times.length > 0 && times.every((text) => /^0:0\d$/.test(text)), JSON.stringify(times));
    assert.equal(await buyer.kept(), '{}');
    await page.getByText('It is still free: you can have it again.').waitFor();
    await page.getByRole('button', { name: 'Take the same seats again' }).waitFor();
    await buyer.assertGood();
    assertOk(await server.patch(`/v1/events/${event.id}`, { hold_ttl_ms: 480_000 }));
    await server.grant(event, 'S-A-1');
    await page.getByText('S, row A, seat 1 is no longer free.').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Take the same seats again' }).count(), 0);
    await page.getByRole('button', { name: 'Look again' }).click();
    await buyer.select('S-A-2');
    await page.done();
  });

  it('that expired while the page was closed is told at the next visit, and its seats can be had again', async () => {
    const event = await server.createEvent({
      ...LAYOUT, hold_ttl_ms: TTL_MS, areas: [{ name: 'Floor', price: 3000, capacity: 50 }],
      types: [{ id: 'full', name: 'Full price' }, { id: 'reduced', name: 'Reduced', prices: { S: 4000, Floor: 1000 } }],
    });
    const page = await browser.page();
    const buyer = await BuyerPage.open(page, server, event);
    await buyer.select('S-A-1');
    await page.getByRole('combobox', { name: 'Ticket type of S, row A, seat 1' }).selectOption('reduced');
    await page.getByRole('spinbutton', { name: 'Floor: Reduced' }).fill('2');
    await page.getByText('$60.00').waitFor();
    let hold;
    await page.route('**/v1/holds', async (route) => { // the page hears of its hold, and of nothing after that
      const answer = await route.fetch();
      hold = await answer.json();
      await page.context().setOffline(true);
      await route.fulfill({ response: answer });
    });
    await buyer.hold.click();
    await until('the page keeps the hold', async () => hold && (await holdOf(buyer))?.hold === hold.id);
    await page.unroute('**/v1/holds');
    await page.goto('about:blank');
    await page.context().setOffline(false);
    await until('it has expired', async () => (await server.read(`/v1/holds/${hold.id}`)).status === 'expired');
    const again = await BuyerPage.open(page, server, event, { ready: null });
    await again.says('Your hold has expired.');
    assertOk(await server.patch(`/v1/events/${event.id}`, { hold_ttl_ms: 480_000 }));
    await page.getByRole('button', { name: 'Take the same seats again' }).click();
    await again.says('3 places are held for you.');
    const { hold: next } = await holdOf(again);
    assert.deepEqual((await server.read(`/v1/holds/${next}`)).places, hold.places, 'of the same ticket types');
    await page.done();
  });

  it('that an operator takes away is told', async () => {
    const { person, buyer } = await holding();
    const { hold } = await holdOf(buyer);
    assertOk(await server.post(`/v1/holds/${hold}/evict`, {}));
    await buyer.says('Your hold has ended. Choose seats again.');
    await person.done();
  });

  it('survives a reload, and so does a booking that is not paid yet', async () => {
    const { event, person, page, buyer } = await holding();
    await page.reload();
    await buyer.says('Your seats are still held for you.');
    assert.equal(await buyer.seats.count(), 2);
    await buyer.shows('S-A-1', 'h');
    await buyer.payWith(CARD.declined);
    await buyer.says('declined');
    await page.reload();
    await buyer.says('Your seats are still held for you.');
    await buyer.payWith();
    const { id } = await buyer.booking();
    await page.reload();
    assert.equal((await buyer.booking()).id, id, 'the tab shows what was booked in it');
    assert.equal((await server.read(`/v1/bookings?event=${event.id}`)).data.length, 1);
    await page.getByRole('button', { name: 'Book more seats' }).click();
    await buyer.take('S-B-1');
    await person.done();
  });

  it('is in every tab of this browser, and in no other browser', async () => {
    const { event, person, page, buyer } = await holding();
    const second = await BuyerPage.open(await person.tab(), server, event, { ready: 'Card number' });
    assert.equal(await second.seats.count(), 2);
    const stranger = await browser.page();
    const other = await BuyerPage.open(stranger, server, event);
    assert.equal(await other.seats.count(), 0);
    const { x, y } = await second.page.evaluate(() => document.querySelector('holdfast-seats').seatPosition('S-B-1'));
    await second.page.mouse.click(x, y);
    await second.hold.click();
    await buyer.page.getByRole('button', { name: 'Pay $195.00' }).waitFor(); // what one tab adds is in the other
    assert.equal(await buyer.seats.count(), 3);
    const { hold } = await holdOf(buyer);
    await second.page.getByRole('button', { name: 'Pay $195.00' }).waitFor();
    await second.fillCard();
    const { fence } = await server.read(`/v1/holds/${hold}`);
    assertOk(await server.patch(`/v1/holds/${hold}`, { fence, add: { seats: ['S-B-2'] } })); // somewhere else
    await second.page.getByRole('button', { name: 'Pay $195.00' }).click();
    await second.says('Your seats have changed meanwhile, and cost $260.00 now. Look at them, then pay.');
    assert.equal(await second.seats.count(), 4);
    await second.page.getByRole('button', { name: 'Pay $260.00' }).click();
    const { id } = await second.booking();
    assert.equal((await buyer.booking()).id, id, 'the first tab hears of it');
    assert.deepEqual(page.complaints, []);
    await stranger.done();
    await person.done();
  });

  it('that is made or given back in one tab shows in the other', async () => {
    const event = await server.createEvent(LAYOUT);
    const person = await browser.person();
    const [first, second] = [await BuyerPage.open(await person.tab(), server, event), await BuyerPage.open(await person.tab(), server, event)];
    await first.take('S-A-1');
    await second.says('Your seats are still held for you.');
    await second.giveBack.click();
    await first.says('Your hold has ended.');
    await first.hold.waitFor();
    await person.done();
  });

  it('survives a lost network', async () => {
    const { person, buyer } = await holding();
    await person.context.setOffline(true);
    await buyer.fillCard();
    await buyer.pay.click();
    await buyer.says('The server cannot be reached.');
    await person.context.setOffline(false);
    await buyer.pay.click();
    await buyer.booking();
    await person.done();
  });
});
