// The buyer's page as a test drives it: by the roles and names that it promises.

import assert from 'node:assert/strict';
import { axe, urlOf } from './browser.mjs';
import { CARD } from './checkout.mjs';

export class BuyerPage {
  constructor(page, server) {
    this.page = page;
    this.server = server;
    this.map = page.getByRole('application', { name: 'Seat map' });
    this.find = page.getByRole('textbox', { name: 'Find a seat' });
    this.howMany = page.getByRole('spinbutton', { name: 'How many' });
    this.best = page.getByRole('button', { name: 'Find best seats' });
    this.seats = page.getByRole('list', { name: 'Your seats' }).getByRole('listitem');
    this.hold = page.getByRole('button', { name: 'Continue' });
    this.timer = page.getByRole('timer');
    this.giveBack = page.getByRole('button', { name: 'Give back' });
    this.number = page.getByRole('textbox', { name: 'Card number' });
    this.expiry = page.getByRole('textbox', { name: 'Expiry' });
    this.cvc = page.getByRole('textbox', { name: 'CVC' });
    this.pay = page.getByRole('button', { name: /^Pay/ });
    this.booked = page.getByRole('heading', { name: 'Booked' });
  }

  // Opens the page of an event and waits until seats can be chosen, or until what was begun earlier is shown.
  static async open(page, server, event, { query = '', ready = 'Find a seat' } = {}) {
    const made = new BuyerPage(page, server);
    await page.goto(urlOf(server, `/e/${event.id ?? event}${query}`));
    if (ready) await page.getByRole('textbox', { name: ready }).waitFor();
    return made;
  }

  // Waits until the page says this: a part of the sentence, or a pattern.
  says(text) { return this.page.locator('main').getByRole('status').getByText(text).waitFor(); }

  async select(...ids) {
    for (const id of ids) {
      await this.find.fill(id);
      await this.find.press('Enter');
      await this.page.waitForFunction((seat) => document.querySelector('holdfast-seats').selection.includes(seat), id);
      await this.says(`${await this.nameOf(id)} is selected`);
    }
  }

  // What the page calls a seat.
  nameOf(id) { return this.page.evaluate((seat) => document.querySelector('holdfast-seats').seat(seat).name, id); }

  // Selects seats and holds them.
  async take(...ids) {
    await this.select(...ids);
    await this.hold.click();
    await this.giveBack.waitFor();
  }

  // Waits until a seat has this state on the map.
  async shows(id, state) {
    await this.page.waitForFunction(([seat, wanted]) => document.querySelector('holdfast-seats').status(seat) === wanted, [id, state]);
  }

  async fillCard(number = CARD.good) {
    await this.number.fill(number);
    await this.expiry.fill('12/40');
    await this.cvc.fill('123');
  }

  async payWith(number) {
    await this.fillCard(number);
    await this.pay.click();
  }

  // Waits for the end; resolves to { id, number } of the booking, as the page shows them.
  async booking() {
    await this.booked.waitFor();
    const text = await this.page.getByRole('region', { name: 'Booked' }).innerText();
    assert.doesNotMatch(text, /(bkg|hold|evt|pay)_/, 'nobody reads a secret over the shoulder');
    const link = await this.page.getByRole('link', { name: 'Link to this booking' }).getAttribute('href');
    return { link, id: /#booking=(bkg_\w+)$/.exec(link)?.[1], number: /\b\w{4}-\w{4}-\w{4}\b/.exec(text)?.[0] };
  }

  // Asserts that this is in the window, without anything that covers it and without scrolling.
  async assertInWindow(locator) {
    const { x, y, width, height } = await locator.boundingBox();
    const { innerWidth, innerHeight } = await this.page.evaluate(() => ({ innerWidth, innerHeight }));
    assert.ok(x >= 0 && y >= 0 && x + width <= innerWidth && y + height <= innerHeight, `${locator} is at ${[x, y, width, height]} of ${innerWidth} x ${innerHeight}`);
    assert.ok(await locator.evaluate((element) => {
      const box = element.getBoundingClientRect();
      return element.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2));
    }), `${locator} is covered`);
  }

  // What this browser keeps.
  kept() { return this.page.evaluate(() => JSON.stringify(localStorage)); }

  // Asserts that the page is as it should be in any state: axe-core finds nothing, the console is quiet, nothing is cut off.
  async assertGood() {
    assert.deepEqual(await axe(this.page), []);
    assert.deepEqual(this.page.complaints, []);
    assert.ok(await this.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is wider than the page');
  }
}

// Presses Tab until an element of this id, or with this text, has the focus, also inside shadow trees.
export async function tabTo(page, wanted, most = 60) {
  const seen = [];
  for (let i = 0; i < most; i++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      let active = document.activeElement;
      while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
      return active && { id: active.id, role: active.getAttribute('role'), name: active.getAttribute('aria-label') ?? active.textContent.trim() };
    });
    if (at && (at.id === wanted || at.role === wanted || at.name === wanted)) return;
    seen.push(at?.id || at?.name || at?.role);
  }
  assert.fail(`Tab never reached ${wanted}, but ${seen.join(', ')}`);
}
