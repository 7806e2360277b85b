// Paying on the buyer's page: declined cards, banks that ask, answers that get lost, Stripe.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openBrowser, originsOf, urlOf } from '../support/browser.mjs';
import { BuyerPage } from '../support/buyer_page.mjs';
import { CARD } from '../support/checkout.mjs';
import { reap, start } from '../support/server.mjs';

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
    await person.done();
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
    await person.done();
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
      await person.done();
    });
  }

  it('a provider that is slow to answer is waited for', async () => {
    const { person, buyer } = await holding();
    await faults({ fail_next: { route: 'create', mode: '500', times: 1 } });
    await buyer.payWith();
    await buyer.booking();
    await person.done();
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
    await person.done();
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
    await buyer.assertGood();
    assert.equal(await buyer.pay.getAttribute('aria-busy'), 'true');
    await person.context.setOffline(false);
    await buyer.booking();
    await person.done();
  });

  it('an answer of the bank that never comes is found out', async () => {
    const { person, page, buyer } = await holding();
    await page.route('**/v1/payment_intents/*/confirm', async (route) => {
      await route.fetch(); // the card is charged
      await route.abort();
    });
    await buyer.payWith();
    await buyer.booking();
    await person.done();
  });

  it('a reload while the card is being charged loses nothing', async () => {
    const { person, page, buyer } = await holding();
    await faults({ webhook_delay_ms: [1500, 1500] });
    const charged = new Promise((resolve) => {
      page.route('**/v1/payment_intents/*/confirm', async (route) => {
        await route.fetch();
        resolve();
        await route.abort().catch(() => {}); // the page is gone
      });
    });
    await buyer.payWith();
    await charged;
    await page.reload();
    await buyer.booking(); // without another word of the buyer
    await faults({ webhook_delay_ms: [0, 0] });
    await person.done();
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
    await person.done();
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

  let shop; // is paid by Stripe
  before(async () => { shop = await start({ args: ['--payments', 'stripe'], env: { STRIPE_SECRET_KEY: 'sk_test_of_pages', STRIPE_PUBLISHABLE_KEY: 'pk_test_of_pages' } }); });
  after(() => shop?.stop());

  it('by Stripe shows the element of Stripe, and no card field of ours', async () => {
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
    await person.done();
  });

  it('by Stripe, which cannot be reached, says so and keeps the hold', async () => {
    const event = await shop.createEvent(LAYOUT);
    const page = await browser.page();
    await page.route('https://js.stripe.com/**', (route) => route.abort());
    const buyer = await BuyerPage.open(page, shop, event);
    await buyer.take('S-A-1');
    await page.getByText('The card form of Stripe cannot be loaded.').waitFor();
    assert.equal((await shop.map(event))['S-A-1'], 'h');
    await page.done();
  });

  it('elsewhere says so', async () => {
    const unpaid = await start({ args: ['--payments', 'off'] });
    const page = await browser.page();
    const buyer = await BuyerPage.open(page, unpaid, await unpaid.createEvent(LAYOUT));
    await buyer.take('S-A-1');
    await page.getByText('Nothing can be paid on this page').waitFor();
    assert.equal(await buyer.pay.count(), 0);
    await buyer.assertGood();
    await page.done();
    await unpaid.stop();
  });
});
