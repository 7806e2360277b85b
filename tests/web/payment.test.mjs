// What can happen to a buyer between holding and booked: declined cards, banks that ask, time, reloads, tabs and networks.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openBrowser, originsOf, urlOf } from '../support/browser.mjs';
import { BuyerPage } from '../support/buyer_page.mjs';
import { CARD } from '../support/checkout.mjs';
import { assertOk } from '../support/expect.mjs';
import { reap, start, until } from '../support/server.mjs';

const LAYOUT = { name: 'Hamlet', sections: [{ name: 'S', price: 6500, rows: 3, seats_per_row: 10 }] };

let server;
let browser;
before(async () => { [server, browser] = await Promise.all([start({ args: ['--stream-listen', '127.0.0.1:0'] }), openBrowser()]); });
after(async () => {
  await browser?.close();
  try { await server?.finish(); } finally { await reap(); }
});

const sandboxOf = ({ run }) => /^payments sandbox on (\S+)$/m.exec(run.stdout)[1];
const faults = async (faults_) => {
  const response = await fetch(`${sandboxOf(server)}/sandbox/faults`, { method: 'POST', body: JSON.stringify(faults_) });
  assert.equal(response.status, 200, await response.text());
};

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

describe('paying', () => {
  it('a declined card says why and keeps the seats, and a second card pays', async () => {
    const { event, person, buyer } = await holding();
    await buyer.payWith(CARD.declined);
    await buyer.says('The card was declined: Your card was declined. Your seats are still held.');
    assert.equal(await buyer.page.evaluate(() => document.activeElement.id), 'card-number');
    await buyer.assertGood();
    await buyer.payWith(CARD.poor);
    await buyer.says('insufficient funds');
    const map = await server.map(event);
    assert.deepEqual([map['S-A-1'], map['S-A-2']], ['h', 'h']);
    await buyer.payWith(CARD.good);
    const { id } = await buyer.booking();
    assert.equal((await server.read(`/v1/bookings/${id}`)).status, 'confirmed');
    assert.equal((await server.read(`/v1/bookings?event=${event.id}`)).data.length, 1, 'one booking for three cards');
    await person.close();
  });

  it('a card that is not filled in is told before anything is booked', async () => {
    const { event, person, page, buyer } = await holding();
    for (const [field, text, sentence] of [['number', '4242', 'The card number has 12 to 19 digits.'], ['expiry', '13/40', 'The expiry is a month and a year'], ['cvc', 'x', 'The CVC is']]) {
      await buyer.fillCard();
      await buyer[field].fill(text);
      await buyer.pay.click();
      await page.getByText(sentence).waitFor();
      assert.equal(await buyer[field].getAttribute('aria-invalid'), 'true');
    }
    await buyer.assertGood();
    assert.equal((await server.read(`/v1/bookings?event=${event.id}`)).data.length, 0);
    await person.close();
  });

  for (const [button, says] of [['Complete', null], ['Fail', 'The payment was not completed.']]) {
    it(`a bank that asks the buyer, who presses ${button}`, async () => {
      const { person, page, buyer } = await holding();
      await buyer.payWith(CARD.action);
      await page.getByRole('button', { name: button }).click();
      await page.waitForURL(urlOf(server, '/e/evt_*'));
      assert.equal(new URL(page.url()).search, '', 'the client secret is not in the address');
      assert.equal(await page.evaluate(() => document.referrer), '');
      if (says) {
        await buyer.says(says);
        await buyer.assertGood();
        await buyer.payWith();
      }
      await buyer.booking();
      assert.deepEqual(page.complaints, []);
      await person.close();
    });
  }

  it('a provider that is slow to answer is waited for', async () => {
    const { person, buyer } = await holding();
    await faults({ fail_next: { route: 'create', mode: '500', times: 1 } });
    await buyer.payWith();
    await buyer.booking();
    await person.close();
  });

  it('an answer that is lost is asked for again, and nothing is booked twice', async () => {
    const { event, person, page, buyer } = await holding();
    let lost = 0;
    await page.route('**/v1/bookings', async (route) => { // the server books, and the answer gets lost
      if (route.request().method() !== 'POST' || lost++ > 0) return route.continue();
      await route.fetch();
      return route.abort();
    });
    await buyer.payWith();
    await buyer.booking();
    assert.ok(lost > 1);
    assert.equal((await server.read(`/v1/bookings?event=${event.id}`)).data.length, 1);
    await person.close();
  });

  it('a network that is lost while the payment is under way is waited for', async () => {
    const { person, page, buyer } = await holding();
    await page.route('**/v1/payment_intents/*/confirm', async (route) => {
      const answer = await route.fetch();
      await person.context.setOffline(true);
      await route.fulfill({ response: answer });
    });
    await buyer.payWith();
    await buyer.says('The connection is lost. This page goes on asking');
    await person.context.setOffline(false);
    await buyer.booking();
    await person.close();
  });

  it('the page asks nobody but this server, its stream port and the sandbox', async () => {
    const { person, page, buyer } = await holding();
    await buyer.payWith();
    await buyer.booking();
    const streams = await server.streams();
    const allowed = [urlOf(server, ''), `http://${streams.host}:${streams.port}`, sandboxOf(server)];
    assert.deepEqual(originsOf(page).filter((origin) => !allowed.includes(origin)), []);
    assert.ok(originsOf(page).includes(sandboxOf(server)));
    for (const url of page.requests) {
      assert.ok(!url.includes('secret'), url);
      if (!url.startsWith(urlOf(server, ''))) assert.ok(!/hold_|bkg_/.test(url), `${url} tells a secret to somebody else`);
    }
    assert.deepEqual(page.complaints, []);
    await person.close();
  });
});

describe('a hold', () => {
  it('that is given back is free at once, and the buyer chooses again', async () => {
    const { event, person, buyer } = await holding();
    await buyer.giveBack.click();
    await buyer.says('You have given the seats back.');
    assert.equal((await server.map(event))['S-A-1'], '.');
    assert.equal(await buyer.kept(), '{}');
    await buyer.assertGood();
    await buyer.take('S-A-1');
    await person.close();
  });

  it('can be given back after a card was declined', async () => {
    const { event, person, buyer } = await holding();
    await buyer.payWith(CARD.declined);
    await buyer.says('declined');
    await buyer.giveBack.click();
    await buyer.says('You have given the seats back.');
    await until('the seat is free', async () => (await server.map(event))['S-A-1'] === '.');
    await person.close();
  });

  it('that expires says so, and offers to look again', async () => {
    const { event, person, page, buyer } = await holding({ hold_ttl_ms: 4000 });
    assert.match(await buyer.timer.innerText(), /^0:0[0-4]$/);
    await page.getByRole('heading', { name: 'Your time is up' }).waitFor();
    await buyer.says('Your hold has expired.');
    assert.equal(await buyer.kept(), '{}');
    await buyer.assertGood();
    await page.getByRole('button', { name: 'Look again' }).click();
    await until('the seat is free', async () => (await server.map(event))['S-A-1'] === '.');
    await buyer.shows('S-A-1', '.');
    await buyer.select('S-A-1');
    await person.close();
  });

  it('that expired while the page was closed is told at the next visit', async () => {
    const { event, person, page, buyer } = await holding({ hold_ttl_ms: 1500 });
    const { hold } = await holdOf(buyer);
    await page.goto('about:blank');
    await until('it has expired', async () => (await server.read(`/v1/holds/${hold}`)).status === 'expired');
    const again = await BuyerPage.open(page, server, event, { ready: null });
    await again.says('Your hold has expired.');
    await person.close();
  });

  it('that an operator takes away is told', async () => {
    const { person, buyer } = await holding();
    const { hold } = await holdOf(buyer);
    assertOk(await server.post(`/v1/holds/${hold}/evict`, {}));
    await buyer.says('Your hold has ended. Choose seats again.');
    await person.close();
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
    await person.close();
  });

  it('is in every tab of this browser, and in no other browser', async () => {
    const { event, person, page, buyer } = await holding();
    const second = await BuyerPage.open(await person.tab(), server, event, { ready: 'Card number' });
    assert.equal(await second.seats.count(), 2);
    const stranger = await browser.page();
    const other = await BuyerPage.open(stranger, server, event);
    assert.equal(await other.seats.count(), 0);
    await second.payWith();
    const { id } = await second.booking();
    assert.equal((await buyer.booking()).id, id, 'the first tab hears of it');
    assert.deepEqual(page.complaints, []);
    await stranger.context().close();
    await person.close();
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
    await person.close();
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
    await person.close();
  });
});

describe('the buyer\'s page of a server that is paid otherwise', () => {
  // Plays js.stripe.com: cards that end in 2 are declined.
  const STRIPE_JS = `window.Stripe = (key, options) => ({
    elements: () => ({ create: (kind, { style }) => {
      const input = document.createElement('input');
      input.setAttribute('aria-label', 'Stripe ' + kind);
      let changed;
      input.addEventListener('input', () => changed({ complete: input.value.length > 3 }));
      return { mount: (where) => document.querySelector(where).append(input), on: (name, then) => { changed = then; },
        update: ({ disabled }) => { input.disabled = disabled; }, clear: () => { input.value = ''; }, focus: () => input.focus(), input };
    } }),
    confirmCardPayment: async (secret, { payment_method: { card } }) => {
      window.paid = { key, locale: options.locale, secret, number: card.input.value };
      if (card.input.value.endsWith('2')) return { error: { type: 'card_error', code: 'card_declined', message: 'Your card was declined.' } };
      return { paymentIntent: { status: 'succeeded' } };
    },
  });`;

  it('by Stripe shows the element of Stripe, and no card field of ours', async () => {
    const shop = await start({ args: ['--payments', 'stripe'], env: { STRIPE_SECRET_KEY: 'sk_test_of_pages', STRIPE_PUBLISHABLE_KEY: 'pk_test_of_pages' } });
    const event = await shop.createEvent(LAYOUT);
    const person = await browser.person();
    await person.context.route('https://js.stripe.com/**', (route) => route.fulfill({ contentType: 'text/javascript', body: STRIPE_JS }));
    // The server of this test cannot reach Stripe: the booking's answers are played, too.
    let status = 'pending';
    const booking = (hold) => ({
      object: 'booking', id: 'bkg_played', status, hold, event: event.id, seats: ['S-A-1'], areas: {}, amount: 6500, currency: 'usd', number: 'AAAA-BBBB-CCCC',
      payment: { provider: 'stripe', status: status === 'pending' ? 'requires_payment' : 'succeeded', intent: 'pi_1', client_secret: 'pi_1_secret_2', publishable_key: 'pk_test_of_pages', api: null, last_error: null, amount_received: 0 },
    });
    let hold;
    await person.context.route('**/v1/bookings**', (route) => {
      hold ??= route.request().postDataJSON()?.hold;
      return route.fulfill({ status: route.request().method() === 'POST' ? 201 : 200, json: booking(hold) });
    });
    const page = await person.tab();
    const buyer = await BuyerPage.open(page, shop, event);
    await buyer.take('S-A-1');
    const field = page.getByRole('textbox', { name: 'Stripe card' });
    await field.waitFor();
    assert.equal(await buyer.number.count(), 0);
    await buyer.pay.click();
    await page.getByText('Fill in the card first.').waitFor();
    await field.fill('4002');
    await buyer.pay.click();
    await buyer.says('The card was declined: Your card was declined. Your seats are still held.');
    await field.fill('4242 4');
    status = 'confirmed';
    await buyer.pay.click();
    await buyer.booked.waitFor();
    assert.deepEqual(await page.evaluate(() => window.paid), { key: 'pk_test_of_pages', locale: 'en', secret: 'pi_1_secret_2', number: '4242 4' });
    assert.deepEqual(originsOf(page), [urlOf(shop, ''), 'https://js.stripe.com'].sort());
    await buyer.assertGood();
    await person.close();
    await shop.stop();
  });

  it('by Stripe, which cannot be reached, says so and keeps the hold', async () => {
    const shop = await start({ args: ['--payments', 'stripe'], env: { STRIPE_SECRET_KEY: 'sk_test_of_pages', STRIPE_PUBLISHABLE_KEY: 'pk_test_of_pages' } });
    const event = await shop.createEvent(LAYOUT);
    const page = await browser.page();
    await page.route('https://js.stripe.com/**', (route) => route.abort());
    const buyer = await BuyerPage.open(page, shop, event);
    await buyer.take('S-A-1');
    await page.getByText('The card form of Stripe cannot be loaded.').waitFor();
    assert.equal((await shop.map(event))['S-A-1'], 'h');
    await page.context().close();
    await shop.stop();
  });

  it('elsewhere says so', async () => {
    const shop = await start({ args: ['--payments', 'off'] });
    const page = await browser.page();
    const buyer = await BuyerPage.open(page, shop, await shop.createEvent(LAYOUT));
    await buyer.take('S-A-1');
    await page.getByText('Nothing can be paid on this page').waitFor();
    assert.equal(await buyer.pay.count(), 0);
    await buyer.assertGood();
    await page.context().close();
    await shop.stop();
  });
});
