// What a browser does with the payment sandbox: a shop's page pays with the publishable key, and the page of an action
// leads back to the shop.
// backends: own

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { openBrowser } from '../support/browser.mjs';
import { reap } from '../support/server.mjs';
import { startSandbox } from '../support/sandbox.mjs';

describe('in a browser', () => {
  let sandbox;
  let stripe;
  let browser;
  let shop; // a web server of another origin
  let shopUrl;
  before(async () => {
    sandbox = await startSandbox();
    stripe = sandbox.client();
    shop = http.createServer((request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<title>shop</title>'));
    await new Promise((resolve) => shop.listen(0, '127.0.0.1', resolve));
    shopUrl = `http://127.0.0.1:${shop.address().port}`;
    browser = await openBrowser();
  });
  after(async () => {
    await browser?.close();
    shop.closeAllConnections();
    shop.close();
    await sandbox.stop();
    await reap();
  });

  async function open() {
    const page = await browser.page();
    await page.goto(shopUrl);
    return page;
  }

  // Pays from the page, as a card form of the shop does; resolves to the intent.
  const pay = (page, intent, fields) => page.evaluate(async ({ url, body }) => {
    const response = await fetch(url, { method: 'POST', body: new URLSearchParams(body) });
    return response.json();
  }, {
    url: `${sandbox.url}/v1/payment_intents/${intent.id}/confirm`,
    body: { key: `pk_test_${stripe.account}`, client_secret: intent.client_secret, return_url: `${shopUrl}/back`, ...fields },
  });
  const create = () => stripe.paymentIntents.create({ amount: 6500, currency: 'usd', description: 'Two <b>seats</b>' });

  it('a page of another origin pays with the publishable key', async () => {
    const page = await open();
    const paid = await pay(page, await create(), { payment_method: 'pm_card_visa' });
    assert.equal(paid.status, 'succeeded');
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  for (const [button, status, redirect] of [['Complete', 'succeeded', 'succeeded'], ['Fail', 'requires_payment_method', 'failed']]) {
    it(`the button ${button} leads back to the shop`, async () => {
      const page = await open();
      const intent = await create();
      const acting = await pay(page, intent, { payment_method: 'pm_card_authenticationRequired' });
      await page.goto(acting.next_action.redirect_to_url.url);
      assert.equal(await page.getByText('Two <b>seats</b>').count(), 1);
      assert.equal(await page.evaluate(() => getComputedStyle(document.body).maxWidth), '512px', 'the style is allowed');
      await page.getByRole('button', { name: button }).click();
      await page.waitForURL(`${shopUrl}/back?**`);
      const { searchParams } = new URL(page.url());
      assert.equal(searchParams.get('redirect_status'), redirect);
      assert.equal(searchParams.get('payment_intent'), intent.id);
      assert.equal((await stripe.paymentIntents.retrieve(intent.id)).status, status);
      assert.deepEqual(page.complaints, []);
      await page.done();
    });
  }
});
