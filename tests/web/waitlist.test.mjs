// The waiting list on the pages: buyers who wait for what is sold out, what they are offered, and the box office.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openBrowser } from '../support/browser.mjs';
import { BuyerPage } from '../support/buyer_page.mjs';
import { assertOk } from '../support/expect.mjs';
import { reap, start, until } from '../support/server.mjs';

const LAYOUT = { name: 'Hamlet', waitlist: {}, sections: [{ name: 'S', price: 6500, rows: 1, seats_per_row: 4 }] };
const SIZES = [{ width: 390, height: 844 }, { width: 768, height: 1024 }, { width: 1280, height: 800 }];
const TTL_MS = 8000; // of offers that are to lapse, but not before the page has shown them, though it may stand still

let server;
let browser;
before(async () => { [server, browser] = await Promise.all([start(), openBrowser()]); });
after(async () => {
  await browser?.close();
  try { await server?.finish(); } finally { await reap(); }
});

class Waiter extends BuyerPage {
  constructor(page, ...rest) {
    super(page, ...rest);
    this.panel = page.locator('#wait');
    this.wanted = page.getByRole('spinbutton', { name: 'Places wanted' });
    this.where = page.getByRole('combobox', { name: 'Where' });
    this.join = page.getByRole('button', { name: 'Join the waiting list' });
    this.leave = page.getByRole('button', { name: 'Leave the list' });
    this.again = page.getByRole('button', { name: 'Wait again' });
  }

  static async open(page, event, { query } = {}) {
    await BuyerPage.open(page, server, event, { query, ready: null });
    return new Waiter(page, server);
  }

  async wait(n = 1) {
    await this.wanted.fill(String(n));
    await this.join.click();
    await this.leave.waitFor();
  }

  fact(name) { return this.page.locator('#wait-facts dt', { hasText: name }).locator('xpath=following-sibling::dd[1]').textContent(); }
}

// An event that is sold out by a buyer's booking of two seats and a seller's hold of the others.
async function soldOut(fields = {}) {
  const event = await server.createEvent({ ...LAYOUT, ...fields });
  return { event, others: await server.grant(event, ['S-A-3', 'S-A-4']), pair: await server.grant(event, ['S-A-1', 'S-A-2']) };
}
const entryOf = async (event, number) => (await server.read(`/v1/waitlist?event=${event.id}`)).data.find((entry) => entry.number === number);
const becomes = (event, number, status) => until(`entry ${number} is ${status}`, async () => (await entryOf(event, number))?.status === status);

describe('the waiting list of the buyer’s page', () => {
  it('offers in the open page what another buyer gives back, and it is paid as any other hold', async () => {
    const event = await server.createEvent(LAYOUT);
    const [one, other] = [await browser.page(), await browser.page()];
    const buyer = await BuyerPage.open(one, server, event);
    const waiter = await Waiter.open(other, event);
    await waiter.find.waitFor();
    assert.equal(await waiter.panel.isVisible(), false, 'there is something to buy');
    await buyer.take('S-A-1', 'S-A-2');
    await server.grant(event, ['S-A-3', 'S-A-4']);
    await other.getByRole('heading', { name: 'Sold out: join the waiting list' }).waitFor();
    assert.equal(await waiter.find.isVisible(), false);
    await waiter.assertGood();
    await waiter.wait(2);
    await waiter.says('You are on the waiting list, with the number 1.');
    assert.equal(await waiter.fact('Your wish'), '2 places, next to each other');
    await until('who is ahead is read', async () => await waiter.fact('Ahead of you') === 'nobody');
    await waiter.assertGood();
    assert.equal(await other.title(), 'Hamlet');
    await buyer.giveBack.click();
    await waiter.says('2 places came back and are held for you for 10 minutes.');
    assert.match(await other.title(), /^Places came back for you · Hamlet$/);
    assert.deepEqual(await waiter.seats.allTextContents(), ['S, row A, seat 1$65.00✕', 'S, row A, seat 2$65.00✕']);
    assert.match(await waiter.timer.textContent(), /^(10:00|9:\d\d)$/);
    await other.getByRole('button', { name: 'Pay $130.00' }).waitFor();
    await waiter.assertGood();
    await waiter.payWith();
    await waiter.booking();
    assert.equal(await other.title(), 'Hamlet');
    await becomes(event, 1, 'accepted');
    assert.match(await waiter.kept(), /^\{\}$/);
    await one.done();
    await other.done();
  });
});
