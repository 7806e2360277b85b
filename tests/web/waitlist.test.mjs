// The waiting list on the pages: buyers who wait for what is sold out, what they are offered, and the box office.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { axe, openBrowser, urlOf } from '../support/browser.mjs';
import { BuyerPage } from '../support/buyer_page.mjs';
import { holdfast } from '../support/cli.mjs';
import { assertOk } from '../support/expect.mjs';
import { openOps } from '../support/ops_page.mjs';
import { freePort, reap, start, until } from '../support/server.mjs';

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

  static async open(page, event, { query, at = server } = {}) {
    await BuyerPage.open(page, at, event, { query, ready: null });
    return new Waiter(page, at);
  }

  async wait(n = 1) {
    await this.wanted.fill(String(n));
    await this.join.click();
    await this.leave.waitFor();
  }

  fact(name) { return this.page.locator('#wait-facts dt', { hasText: name }).locator('xpath=following-sibling::dd[1]').textContent(); }
}

// An event of which everything is held: { event, pair of S-A-1 and S-A-2, others }.
async function soldOut(fields = {}) {
  const event = await server.createEvent({ ...LAYOUT, ...fields });
  const [pair, others] = [await server.grant(event, ['S-A-1', 'S-A-2']), await server.grant(event, ['S-A-3', 'S-A-4'])];
  return { event, pair, others };
}
const release = async ({ id }) => assert.equal((await server.del(`/v1/holds/${id}`)).status, 204);
const join = async (event, wish) => assertOk(await server.post('/v1/waitlist', { event: event.id, ...wish }), 201);
const entryOf = async (event, number) => (await server.read(`/v1/waitlist?event=${event.id}`)).data.find((entry) => entry.number === number);
const becomes = (event, number, status) => until(`entry ${number} is ${status}`, async () => (await entryOf(event, number))?.status === status);
const askedFor = (page, part) => page.requests.filter((url) => url.includes('/v1/waitlist/') && url.includes(part)).length;

describe('the waiting list of the buyer’s page', { concurrency: 2 }, () => {
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
    await waiter.wait(2);
    await waiter.says('You are on the waiting list, with the number 1.');
    assert.equal(await waiter.fact('Your wish'), '2 places, next to each other');
    await until('the page has read how many are ahead', async () => await waiter.fact('Ahead of you') === 'nobody');
    assert.equal(await other.title(), 'Hamlet');
    await buyer.giveBack.click();
    await waiter.says('2 places came back and are held for you for 10 minutes.');
    assert.equal(await other.title(), 'Places came back for you · Hamlet');
    assert.deepEqual(await waiter.seats.allTextContents(), ['S, row A, seat 1$65.00✕', 'S, row A, seat 2$65.00✕']);
    assert.match(await waiter.timer.textContent(), /^(10:00|9:\d\d)$/);
    await other.getByRole('button', { name: 'Pay $130.00' }).waitFor();
    await waiter.payWith();
    await waiter.booking();
    assert.equal(await other.title(), 'Hamlet');
    await becomes(event, 1, 'accepted');
    assert.equal(await waiter.kept(), '{}');
    assert.equal(askedFor(other, '/stream'), 1, 'one stream, which nobody opens again after the end');
    await one.done();
    await other.done();
  });

  it('tells of an offer that lapses, and waits again', async () => {
    const { event, pair } = await soldOut({ waitlist: { offer_ttl_ms: TTL_MS } });
    const page = await browser.page();
    const waiter = await Waiter.open(page, event);
    await waiter.wait(2);
    const next = await join(event, { best_available: { quantity: 2 } });
    await release(pair);
    await waiter.giveBack.waitFor();
    assertOk(await server.patch(`/v1/events/${event.id}`, { waitlist: { offer_ttl_ms: 600_000 } })); // the offers of the others
    await page.getByRole('heading', { name: 'Your time is up' }).waitFor();
    await page.getByText('You are no longer on the waiting list.').waitFor();
    await page.getByText('S, row A, seat 1 and S, row A, seat 2 are no longer free.').waitFor();
    await waiter.assertGood();
    assert.equal((await entryOf(event, next.number)).status, 'offered', 'the next has its turn');
    await page.reload();
    await page.getByRole('heading', { name: 'Your time is up' }).waitFor();
    await waiter.again.click();
    await waiter.says('You are on the waiting list, with the number 3.');
    assert.deepEqual((await entryOf(event, 3)).best_available, { quantity: 2, accessible: false, adjacent: true });
    await page.done();
  });

  it('keeps an entry over a reload and in every tab, and takes up what was offered while the page was closed', async () => {
    const { event, pair, others } = await soldOut();
    const person = await browser.person();
    const page = await person.tab();
    const waiter = await Waiter.open(page, event);
    await waiter.wait(1);
    await page.reload();
    await waiter.leave.waitFor();
    assert.equal(await waiter.fact('Your number'), '1');
    const second = await Waiter.open(await person.tab(), event);
    await second.leave.click();
    await second.says('You have left the waiting list.');
    await second.join.waitFor();
    await waiter.join.waitFor(); // the other tab hears of it
    assert.equal((await entryOf(event, 1)).status, 'left');
    await waiter.wait(2);
    await second.leave.waitFor();
    await page.goto('about:blank');
    await second.page.goto('about:blank');
    await release(pair);
    const again = await Waiter.open(page, event);
    await again.says('2 places came back and are held for you');
    await release(others);
    await page.reload();
    await again.says('Your seats are still held for you.');
    await page.getByText('From the waiting list.').waitFor();
    const { x, y } = await page.evaluate(() => document.querySelector('holdfast-seats').seatPosition('S-A-3'));
    await page.mouse.click(x, y);
    assert.equal(await again.hold.isVisible(), false, 'an offer gets no other places');
    await again.giveBack.click();
    await again.says('You have given the seats back.');
    await becomes(event, 2, 'left');
    await again.find.waitFor();
    assert.equal(await again.kept(), '{}');
    await person.done();
  });

  it('can be joined where nothing fits what is asked for, with ticket types and in areas', async () => {
    const event = await server.createEvent({
      ...LAYOUT, areas: [{ name: 'Floor', price: 3000, capacity: 2 }], types: [{ id: 'full', name: 'Full price' }, { id: 'reduced', name: 'Reduced', prices: { S: 4000, Floor: 1000 } }],
    });
    await server.take(event, { seats: ['S-A-2', 'S-A-4'], areas: { Floor: 1 } });
    const page = await browser.page();
    const waiter = await Waiter.open(page, event);
    await waiter.howMany.fill('2');
    await waiter.best.click();
    await waiter.says('There are no 2 places together that fit. Try fewer, or another category. Or wait for what you want.');
    assert.deepEqual(await waiter.wanted.evaluateAll((boxes) => boxes.map(({ value }) => value)), []);
    assert.equal(await page.getByRole('spinbutton', { name: 'Full price', exact: true }).inputValue(), '2');
    await page.getByRole('spinbutton', { name: 'Reduced', exact: true }).fill('9');
    await waiter.join.click();
    await waiter.says('Places wanted must be a number from 1 to 10, in all.');
    await page.getByRole('spinbutton', { name: 'Reduced', exact: true }).fill('4');
    await waiter.join.click();
    await waiter.says('There never are so many places together.');
    await page.getByRole('spinbutton', { name: 'Reduced', exact: true }).fill('1');
    await page.getByLabel('Wait until (optional)').fill('2020-01-01T12:00');
    await waiter.join.click();
    await waiter.says('Wait until a moment that is still to come');
    await page.getByLabel('Wait until (optional)').fill('2040-01-01T12:00');
    await waiter.join.click();
    await waiter.leave.waitFor();
    assert.equal(await waiter.fact('Your wish'), '3 places, next to each other, 2 × Full price, 1 × Reduced');
    assert.equal((await entryOf(event, 1)).until, '2040-01-01T12:00:00.000Z');
    await waiter.assertGood();
    await waiter.leave.click();
    await page.getByRole('spinbutton', { name: 'Floor: Reduced' }).fill('3');
    await waiter.says('Only one place in Floor is possible.');
    await page.getByRole('spinbutton', { name: 'Floor: Reduced' }).fill('2');
    await waiter.says('Only one place in Floor is possible. Or wait for what you want.');
    assert.equal(await waiter.where.inputValue(), '["area","Floor"]');
    await page.getByLabel('Wait until (optional)').fill('');
    await waiter.join.click();
    await waiter.leave.waitFor();
    assert.deepEqual((await entryOf(event, 2)).areas, { Floor: { reduced: 2 } });
    await page.done();
  });

  it('leaves a buyer who is busy with other seats alone, until these are paid', async () => {
    const { event, pair, others } = await soldOut();
    const page = await browser.page();
    const waiter = await Waiter.open(page, event);
    await waiter.wait(2);
    assertOk(await server.post(`/v1/events/${event.id}/waitlist/pause`, {}));
    await release(others);
    await waiter.take('S-A-3');
    await server.grant(event, 'S-A-4');
    assertOk(await server.post(`/v1/events/${event.id}/waitlist/resume`, {}));
    await release(pair);
    await waiter.says('What you wait for came back and is held for you. Pay for what you hold now, or give it back');
    await page.getByRole('heading', { name: 'Places came back for you' }).waitFor();
    assert.equal(await waiter.seats.count(), 1);
    await waiter.payWith();
    await waiter.booking();
    await waiter.assertGood();
    await page.getByRole('button', { name: 'Show the places' }).click();
    await waiter.says('2 places came back');
    assert.equal(await waiter.seats.count(), 2);
    await page.done();
  });

  it('says why an entry has ended, and follows it no longer', async () => {
    const { event, pair } = await soldOut();
    const page = await browser.page({ once: true });
    await page.clock.install();
    const waiter = await Waiter.open(page, event);
    await waiter.wait(1);
    const { id } = await entryOf(event, 1);
    assertOk(await server.post(`/v1/waitlist/${id}/evict`, {}));
    await page.getByText('The shop has ended your waiting.').waitFor();
    await waiter.assertGood();
    const asked = askedFor(page, id);
    await page.clock.runFor(30_000); // whatever waits would ask again
    await release(pair);
    await waiter.shows('S-A-1', '.');
    assert.equal(askedFor(page, id), asked);
    await page.getByRole('button', { name: 'Understood' }).click();
    await waiter.find.waitFor();
    await page.done();
  });

  it('waits on in the open page after a restore took the offer back', async () => {
    const own = await start({ args: ['--listen', `127.0.0.1:${await freePort()}`] });
    const run = async (...args) => assert.equal((await holdfast(undefined, args)).code, 0);
    const ledger = `sqlite:${own.database}`, backup = `${own.database}.backup`;
    const event = await own.createEvent(LAYOUT);
    const pair = await own.grant(event, ['S-A-1', 'S-A-2']);
    const others = await own.grant(event, ['S-A-3', 'S-A-4']);
    assertOk(await own.post(`/v1/holds/${others.id}/confirm`, { fence: others.fence }), 201);
    const page = await browser.page({ once: true });
    const waiter = await Waiter.open(page, event, { at: own });
    await waiter.wait(2);
    await run('backup', '--ledger', ledger, backup);
    assert.equal((await own.del(`/v1/holds/${pair.id}`)).status, 204);
    await waiter.giveBack.waitFor();
    await own.stop({ keep: true });
    await run('restore', '--ledger', ledger, '--force', backup);
    await own.launch();
    await waiter.leave.waitFor();
    assert.equal(await waiter.fact('Your number'), '1');
    const streams = () => askedFor(page, '/stream');
    const asked = streams();
    assertOk(await own.post(`/v1/events/${event.id}/open`, {}));
    await waiter.says('2 places came back and are held for you');
    assert.ok(streams() <= asked + 1, 'the stream that said reset goes on');
    await page.done();
    await own.stop();
  });

  it('reads the entry now and then while the stream is open, and asks again after the stream has ended', async () => {
    const { event } = await soldOut({ waitlist: { alive_ms: 60_000 } });
    const page = await browser.page({ once: true });
    await page.clock.install();
    const waiter = await Waiter.open(page, event);
    await waiter.wait(1);
    const { id } = await entryOf(event, 1);
    const reads = () => page.requests.filter((url) => url.endsWith(id)).length;
    const before = reads();
    await page.clock.runFor(16_000);
    await until('the entry is read', () => reads() > before);
    await page.context().setOffline(true);
    await page.clock.runFor(45_000); // the stream is silent for too long
    const streams = askedFor(page, '/stream');
    await page.context().setOffline(false);
    await until('the stream is open again', async () => {
      await page.clock.runFor(1000);
      return askedFor(page, '/stream') > streams;
    });
    await page.done();
  });

  for (const viewport of SIZES) {
    it(`is as it should be in a window of ${viewport.width} x ${viewport.height}, in the dark and in German`, async () => {
      const { event, pair } = await soldOut({ sections: [...LAYOUT.sections, { name: 'T', price: 100, rows: 1, seats_per_row: 1 }] });
      await server.grant(event, 'T-A-1');
      const page = await browser.page({ viewport, colorScheme: 'dark' });
      const waiter = await Waiter.open(page, event, { query: '?lang=de' });
      const button = page.getByRole('button', { name: 'Auf die Warteliste' });
      await button.waitFor();
      if (viewport.width < 900) await page.getByRole('button', { name: 'Warteliste', exact: true }).click();
      await waiter.assertGood();
      await waiter.assertInWindow(button);
      await button.click();
      const leave = page.getByRole('button', { name: 'Liste verlassen' });
      await leave.waitFor();
      await waiter.assertGood();
      await waiter.assertInWindow(leave);
      await release(pair);
      await page.getByText('2 Plätze sind frei geworden').waitFor();
      await waiter.assertGood();
      await waiter.assertInWindow(page.getByRole('button', { name: 'bezahlen' }));
      await page.done();
    });
  }
});

describe('the waiting list of the operator’s page', () => {
  const open = async (event, options) => {
    const page = await openOps(browser, server, `#/events/${event.id}`, options);
    await page.getByRole('heading', { name: 'Waiting list', exact: true }).waitFor();
    return page;
  };
  const rows = (page) => page.getByRole('table', { name: 'Waiting list' }).getByRole('row');
  async function act(page, button, verb) {
    await page.getByRole('button', { name: button }).click();
    await page.getByRole('dialog').getByRole('button', { name: verb, exact: true }).click();
  }
  const told = (page, text) => page.getByRole('status').filter({ hasText: text }).waitFor();

  it('lists entries, moves one to the front, ends one, and pauses the list', async () => {
    const { event, pair, others } = await soldOut();
    for (const owner of ['Ann', 'Ben', 'Cid']) await join(event, { best_available: { quantity: owner === 'Ben' ? 2 : 1, section: 'S' }, owner });
    const page = await open(event);
    await rows(page).nth(3).waitFor();
    const texts = await rows(page).allTextContents();
    assert.match(texts[2], /^22 places, next to each other, SBenwaiting––/);
    await act(page, 'To the front …: entry 3', 'Move to the front');
    await told(page, 'Entry 3 has the next turn.');
    await act(page, 'End …: entry 1', 'End entry');
    await told(page, 'Entry 1 has ended.');
    await becomes(event, 1, 'ended');
    assert.deepEqual(await axe(page), []);
    await act(page, 'Pause the waiting list …', 'Pause');
    await page.getByText('Paused: nothing is offered').waitFor();
    await release(pair);
    assert.equal((await entryOf(event, 3)).status, 'waiting');
    await act(page, 'Resume the waiting list …', 'Resume');
    await becomes(event, 3, 'offered');
    assert.equal((await entryOf(event, 2)).status, 'waiting');
    await release(others);
    await becomes(event, 2, 'offered');
    await page.getByRole('combobox', { name: 'Entries with status' }).selectOption('ended');
    await page.getByText('ended: ended by the shop').waitFor();
    await page.goto(urlOf(server, `/ops#/audit?event=${event.id}`));
    await page.getByText('Entry of the waiting list').first().waitFor();
    await page.getByText('waiting list resumed').waitFor();
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('gives an event a waiting list, and takes it away', async () => {
    const event = await server.createEvent({ ...LAYOUT, waitlist: undefined });
    const page = await openOps(browser, server, `#/events/${event.id}`, { viewport: SIZES[0] });
    const change = async (fill) => {
      await page.getByRole('button', { name: 'Change terms …' }).click();
      const dialog = page.getByRole('dialog');
      await fill(dialog);
      assert.deepEqual(await axe(page), []);
      await dialog.getByRole('button', { name: 'Change terms' }).click();
      await told(page, 'The terms of Hamlet are changed.');
    };
    await change(async (dialog) => {
      await dialog.getByRole('checkbox', { name: 'Buyers may wait' }).check();
      await dialog.getByLabel('An offer lasts, in minutes').fill('5');
      await dialog.getByLabel('Most entries per owner').fill('2');
    });
    await page.getByRole('heading', { name: 'Waiting list', exact: true }).waitFor();
    assert.deepEqual((await server.read(`/v1/events/${event.id}`)).waitlist, { offer_ttl_ms: 300_000, alive_ms: 259_200_000, per_owner: 2, paused: false });
    await change((dialog) => dialog.getByRole('checkbox', { name: 'Buyers may wait' }).uncheck());
    await page.getByRole('heading', { name: 'Waiting list', exact: true }).waitFor({ state: 'hidden' });
    assert.equal((await server.read(`/v1/events/${event.id}`)).waitlist, null);
    await page.done();
  });
});
