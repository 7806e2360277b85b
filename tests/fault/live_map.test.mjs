// A live map in a real browser, behind nginx as it is shipped: it survives restarts and losses of the server, and the
// client of docs/api.md survives a proxy that refuses streams.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { openBrowser } from '../support/browser.mjs';
import { startFront } from '../support/front.mjs';
import { freePort, reap, start, until } from '../support/server.mjs';

const [, EXAMPLE] = /^```js\n(\/\/ Keeps `draw[\s\S]*?)^```/m.exec(fs.readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8'));

// The shop: a page of another origin, and a proxy that answers everything below /v1 with 502 while it is `broken`.
function startShop(front) {
  const shop = http.createServer((req, res) => {
    if (!req.url.startsWith('/v1/')) return res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>shop</title>');
    if (shop.broken) return res.writeHead(502).end();
    const { port } = front;
    req.pipe(http.request({ host: '127.0.0.1', port, method: req.method, path: req.url, headers: req.headers, agent: false }, (from) => {
      res.writeHead(from.statusCode, from.headers);
      from.on('error', () => {}).pipe(res);
    }).on('error', () => res.destroy()));
  });
  return new Promise((resolve) => { shop.listen(0, '127.0.0.1', () => resolve(shop)); });
}

describe('a live map in a browser', { concurrency: 2 }, () => {
  let browser;
  const shops = [];
  before(async () => {
    ({ browser } = await openBrowser());
  });
  after(async () => {
    await browser?.close();
    for (const shop of shops) { shop.closeAllConnections(); shop.close(); }
    await reap();
  });

  // A server, nginx in front of it, and a shop.
  async function site() {
    const server = await start({ args: ['--listen', `127.0.0.1:${await freePort()}`, '--cors-origin', '*', '--drain-delay', '200ms'] });
    const front = await startFront('nginx', [server]);
    const shop = await startShop(front);
    shops.push(shop);
    return { server, front, shop, event: await server.createEvent() };
  }

  // Opens the shop's page, in which `follow` has the seats that changed in `seen`.
  async function open({ shop, event }, follow, { port }) {
    const page = await browser.newPage();
    page.setDefaultTimeout(120_000); // as long as `until` waits; it claims nothing
    await page.goto(`http://127.0.0.1:${shop.address().port}/`);
    await page.addScriptTag({ content: `${EXAMPLE}\nvar seen = {}, states = [];\n(${follow})('http://127.0.0.1:${port}/v1/events/${event.id}')` });
    return page;
  }
  const seat = (page, name) => page.evaluate((each) => seen[each], name);
  const shows = (page, name) => until(`the page shows ${name}`, () => seat(page, name), 120_000, 50);

  // Follows with EventSource alone, as the simplest page does.
  const simple = (url) => {
    const source = new EventSource(`${url}/stream`);
    source.onerror = () => states.push(source.readyState);
    source.onopen = () => states.push('open');
    source.addEventListener('seats', ({ data }) => Object.assign(seen, Object.fromEntries(JSON.parse(data).changes)));
    source.addEventListener('reset', () => states.push('reset'));
  };
  const careful = (url) => followSeats(url, {
    draw: (map) => {
      states.push('drawn');
      map.sections.forEach((section) => section.rows.forEach((row) => [...row.seats].forEach((letter, i) => {
        if (letter !== '.') seen[`${section.name}-${row.name}-${i + 1}`] = letter;
      })));
    },
    change: (changes) => Object.assign(seen, Object.fromEntries(changes)),
  });

  it('lives on when the server behind nginx is restarted, though the browser comes back too early', async () => {
    const { server, front, ...rest } = await site();
    const { event } = rest;
    const page = await open(rest, simple, front);
    await until('the stream is open', () => page.evaluate(() => states.includes('open')));
    await server.grant(event, 'S-A-1');
    await shows(page, 'S-A-1');
    await server.stop({ keep: true });
    await until('the browser has been sent away', () => /GET \S+\/stream (200 13|5\d\d) /.test(front.log), 120_000, 50);
    await server.launch();
    await until('the stream is open again', async () => (await server.metric('holdfast_streams_open')) === 1, 120_000, 50);
    await server.grant(event, 'S-A-2');
    await shows(page, 'S-A-2');
    const states_ = await page.evaluate(() => states);
    assert.ok(!states_.includes(2), `the browser has never given up: ${states_}`);
    await page.close();
    await front.stop();
    await server.stop();
  });

  it('with the client of docs/api.md lives on though a proxy refuses the stream', async () => {
    const { server, front, ...rest } = await site();
    const { event, shop } = rest;
    const page = await open(rest, careful, shop.address());
    await until('the map is drawn', () => page.evaluate(() => states.includes('drawn')));
    await until('the stream is open', () => server.metric('holdfast_streams_open'));
    await server.grant(event, 'S-B-1');
    await shows(page, 'S-B-1');
    const refused = page.waitForResponse((answer) => /stream/.test(answer.url()) && answer.status() === 502);
    shop.broken = true;
    shop.closeAllConnections(); // the browser reconnects
    await server.grant(event, 'S-B-2');
    await refused;
    shop.broken = false;
    await shows(page, 'S-B-2');
    await page.close();
    await front.stop();
    await server.stop();
  });
});
