// The examples for programs with a client (docs/examples) do what they say.
// backends: own
// time limit: 300 s

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Client, NotFound } from '../../clients/js/index.js';
import { axe, openBrowser } from '../support/browser.mjs';
import { reap, Server, sqliteQuery, tempDir, until } from '../support/server.mjs';
import { begin, fromRoot, projectOf } from './pages.mjs';

const example = (name) => fromRoot(`docs/examples/${name}`);
const CARD = {
  'payment_method_data[type]': 'card', 'payment_method_data[card][number]': '4242424242424242', 'payment_method_data[card][exp_month]': '12',
  'payment_method_data[card][exp_year]': '2040', 'payment_method_data[card][cvc]': '123',
};

const server = new Server({ tls: false, args: ['--cors-origin', '*'] });
let url, client;
before(async () => {
  await server.launch();
  url = `http://127.0.0.1:${server.port}`;
  client = new Client(url);
});
after(async () => {
  try { await client?.close(); await server.stop(); } finally { await reap(); }
});

describe('the examples', { concurrency: true }, () => {
  it('are all tried here', () => {
    const mine = fs.readdirSync(fromRoot('docs/examples')).filter((name) => /\.(py|mjs|html)$/.test(name)).sort();
    assert.deepEqual(mine, ['cron.py', 'live-map.html', 'shop.mjs', 'shop.py']);
  });

  for (const [name, language] of [['shop.mjs', 'js'], ['shop.py', 'python']]) {
    it(`${name}: an order is held, booked and paid, and a repeat of it is the same order`, async () => {
      const shop = begin(projectOf(language), example(name), ['0'], { HOLDFAST_URL: url });
      const [, address] = await until('the shop listens', () => {
        assert.equal(shop.ended, null, shop.stderr);
        return /^shop on (http:\S+)\n/.exec(shop.stdout);
      });
      const ask = async (target, body) => {
        const response = await fetch(address + target, body && { method: 'POST', body: JSON.stringify(body) });
        return { status: response.status, json: await response.json() };
      };
      const event = (await server.createEvent()).id;
      const order = { order: randomUUID(), event, seats: ['S-A-1', 'S-A-2'] };
      assert.equal((await ask(`/orders/${order.order}`)).status, 404);
      const payment = await until('the buyer can pay', async () => {
        const { status, json } = await ask('/orders', order);
        assert.equal(status, 201, JSON.stringify(json));
        return json.payment.client_secret && json.payment;
      });
      assert.deepEqual((await ask(`/orders/${order.order}`)).json, { status: 'pending' });
      assert.equal((await client.bookings.list({ event })).data.length, 1);

      const refused = await ask('/orders', { ...order, order: randomUUID(), seats: ['S-A-2', 'S-A-3'] });
      assert.deepEqual([refused.status, refused.json], [409, { code: 'seat_taken', seats: ['S-A-2'] }]);
      assert.equal((await ask('/orders', { order: 'short' })).status, 400);

      const body = new URLSearchParams({ ...CARD, key: payment.publishable_key, client_secret: payment.client_secret });
      await fetch(`${payment.api}/v1/payment_intents/${payment.intent}/confirm`, { method: 'POST', body });
      await until('it is paid', async () => (await ask(`/orders/${order.order}`)).json.status === 'confirmed');
      shop.child.kill('SIGTERM');
      await shop.done;
    });
  }

  // Resolves to the report in the database after two machines: the first one has its lock broken while it works.
  async function lateWrite(file) {
    const project = projectOf('python');
    const database = path.join(project.dir, 'reports.db');
    const goOn = path.join(project.dir, 'go-on');
    const job = (...command) => begin(project, file, [url, database, 'sh', '-c', ...command]);
    const late = job(`echo late; until [ -e ${goOn} ]; do sleep 0.05; done`);
    await until('it has the lock', () => client.locks.get('nightly-report').then(({ n_holders: n }) => n === 1, (error) => {
      assert.ok(error instanceof NotFound, error);
    }));
    const other = await job('echo other').done;
    assert.equal(fs.existsSync(database), false);
    await client.locks.breakLock('nightly-report');
    const second = job('echo second');
    assert.deepEqual(await second.done, { code: 0, signal: null }, second.stderr);
    fs.writeFileSync(goOn, '');
    const first = await late.done;
    const [{ text }] = sqliteQuery(database, 'SELECT text FROM report');
    return { other, first, stderr: late.stderr, text };
  }

  it('cron.py: one machine writes, the others are fine, and a late one is refused; without the fence it is not', async () => {
    const { other, first, stderr, text } = await lateWrite(example('cron.py'));
    assert.deepEqual([other.code, first.code, text], [0, 1, 'second\n'], stderr);
    assert.match(stderr, /holdfast\.errors\.StaleFence: stale_fence/);
    const unguarded = path.join(tempDir(), 'cron.py');
    fs.writeFileSync(unguarded, fs.readFileSync(example('cron.py'), 'utf8').replace(/^ +holdfast\.check_fence.*\n/m, ''));
    assert.equal((await lateWrite(unguarded)).text, 'late\n');
  });

  it('live-map.html: shows what others hold, and holds a seat', async () => {
    const site = http.createServer((request, response) => {
      const { pathname } = new URL(request.url, 'http://any');
      const file = pathname === '/' ? example('live-map.html') : fromRoot(`clients/js/${path.basename(pathname)}`);
      response.writeHead(200, { 'Content-Type': pathname === '/' ? 'text/html' : 'text/javascript' }).end(fs.readFileSync(file));
    }).listen(0, '127.0.0.1');
    await once(site, 'listening');
    const browser = await openBrowser();
    try {
      const event = await server.createEvent();
      const page = await browser.page();
      await page.goto(`http://127.0.0.1:${site.address().port}/?${new URLSearchParams({ server: url, event: event.id })}`);
      const seat = (name, state) => page.getByRole('button', { name: `${name}, ${state}`, exact: true }).waitFor();
      await seat('S-A-1', 'available');
      assert.deepEqual(await axe(page), []);
      await server.grant(event, 'S-A-1');
      await seat('S-A-1', 'held');
      await page.evaluate(() => { // a click that came before the news
        const button = document.querySelector('[aria-label="S-A-1, held"]');
        button.disabled = false;
        button.click();
      });
      await page.getByText('Somebody was faster: S-A-1 is taken.').waitFor();
      await page.getByRole('button', { name: 'S-A-2, available', exact: true }).click();
      await page.getByText('S-A-2 is yours for 8 minutes.').waitFor();
      await seat('S-A-2', 'yours');
      assert.equal((await server.counts(event)).held, 2);
      assert.deepEqual(page.complaints, []);
      await page.done();
    } finally {
      await browser.close();
      site.closeAllConnections();
      site.close();
    }
  });
});
