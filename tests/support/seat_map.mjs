// The web component <holdfast-seats> in a page of a shop: an origin of its own, which loads the component from the server and
// knows nothing else of it.
//
//   const shop = await startShop();
//   const page = await openMap(browser, shop, { server, event });   // server: anything with host and port
//   await page.map('select', 'S-A-1');                               // calls a method of the component, or reads a property
//   await showsSnapshot(page, server, event);

import assert from 'node:assert/strict';
import http from 'node:http';
import { until } from './server.mjs';
import { urlOf } from './browser.mjs';

// Listens to the component from the start, since some things happen at once.  `aheadMs` is how far the page's clock is ahead.
const PAGE = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>A shop</title><link rel="icon" href="data:,">
<style>body { background: Canvas; color: CanvasText; }</style></head>
<body><main><h1>A shop</h1></main><script type="module">
const asked = new URLSearchParams(location.search);
const now = Date.now.bind(Date);
Date.now = () => now() + globalThis.aheadMs;
globalThis.show = async (server, event, aheadMs) => {
  globalThis.isEmpty = false;
  globalThis.aheadMs = Number(aheadMs);
  const map = document.createElement('holdfast-seats');
  map.setAttribute('server', server);
  map.setAttribute('event', event);
  globalThis.map = map;
  globalThis.heard = [];
  document.querySelector('main').append(map);
  await customElements.whenDefined('holdfast-seats');
  await map.ready;
  globalThis.isReady = true;
};
globalThis.empty = () => {
  globalThis.map.remove();
  globalThis.isReady = false;
  return globalThis.isEmpty = true;
};
for (const name of ['select', 'hold', 'release', 'expire', 'status', 'event', 'pick', 'area', 'refuse']) {
  document.addEventListener(name, ({ detail }) => { if (detail && typeof detail === 'object') heard.push({ name, ...detail }); });
}
const shown = globalThis.show(asked.get('server'), asked.get('event'), asked.get('aheadMs'));
await import(asked.get('module') + '/holdfast.js');
await shown;
</script></body></html>`;

// `html` is the shop's page.  `through`, if given, is a server that the shop forwards /v1 to; while `shop.broken` is set it
// answers 502 instead, and it sends streams on to `streams`, an address of its own.
export async function startShop({ through, streams, html = PAGE } = {}) {
  const shop = http.createServer((req, res) => {
    if (!req.url.startsWith('/v1/')) return res.setHeader('Content-Type', 'text/html').end(html);
    if (shop.broken) return res.writeHead(502).end('<h1>Bad Gateway</h1>');
    if (streams && /\/stream\b/.test(req.url)) return res.writeHead(307, { Location: urlOf(streams, req.url) }).end();
    const { host, port } = through;
    const onward = http.request({ host, port, method: req.method, path: req.url, headers: req.headers, agent: false }, (from) => {
      res.writeHead(from.statusCode, from.headers);
      from.on('error', () => {}).pipe(res);
    }).on('error', () => res.destroy());
    res.on('close', () => onward.destroy());
    return req.pipe(onward);
  });
  await new Promise((resolve) => { shop.listen(0, '127.0.0.1', resolve); });
  shop.host = '127.0.0.1';
  shop.port = shop.address().port;
  shop.stop = () => { shop.closeAllConnections(); shop.close(); };
  return shop;
}

// Opens the shop's page with a map of the event, or makes a new map in a page of the shop that another test has emptied.
// `module` is the server that the component's files come from, if the one that it talks to may fail.  The clock of the page is
// `aheadMs` ahead, and a test may change `globalThis.aheadMs`.  Options are Playwright's, or `page`, a page to use.  A test that
// changes other globals of the page wants it `once` (browser.mjs).
export async function openMap(browser, shop, { server, event, module = server, aheadMs = 0, isWaiting = true, page, ...options }) {
  const opened = page ?? await browser.page(options);
  const asked = { server: urlOf(server, ''), event: event.id ?? event, aheadMs };
  const address = `${urlOf(shop, '/')}?${new URLSearchParams({ module: urlOf(module, '') })}`;
  if (opened.url().startsWith(`${address}&`) && await opened.evaluate(() => globalThis.isEmpty)) {
    await opened.evaluate(({ server: from, event: of, aheadMs: ms }) => { globalThis.show(from, of, ms); }, asked);
  } else await opened.goto(`${address}&${new URLSearchParams(asked)}`);
  opened.empty = async () => opened.url().startsWith(`${address}&`) && opened.evaluate(() => globalThis.isReady && globalThis.empty());
  opened.map = (name, ...args) => opened.evaluate(([key, values]) => {
    const member = globalThis.map[key];
    return typeof member === 'function' ? globalThis.map[key](...values) : member;
  }, [name, args]);
  opened.heard = (name) => opened.evaluate((wanted) => globalThis.heard.filter((each) => each.name === wanted), name);
  if (isWaiting) {
    await opened.waitForFunction(() => globalThis.isReady); // which, unlike a promise, has a time limit
  }
  return opened;
}

// Waits until the map shows, seat by seat, what the snapshot shows.  Seats are those of counted rows.
export async function showsSnapshot(page, server, event, timeoutMs = 25_000) {
  let wrong;
  await until('the map shows the snapshot', async () => {
    const snapshot = await server.read(`/v1/events/${event.id ?? event}/seats`);
    wrong = await page.evaluate((sections) => sections
      .flatMap(({ name, rows }) => rows.flatMap((row) => [...row.seats].map((letter, i) => [`${name}-${row.name}-${i + 1}`, letter])))
      .filter(([id, letter]) => globalThis.map.status(id) !== letter).slice(0, 5), snapshot.sections);
    return wrong.length === 0;
  }, timeoutMs).catch((error) => { throw new Error(`${error.message}; it differs in ${JSON.stringify(wrong)}`); });
}

// Where a seat is in the window, once the map has come to rest: a map that moves does so in every frame, however rare frames
// are on a busy machine.
export async function seatAt(page, id) {
  return until('the map rests', async () => {
    const place = await page.map('seatPosition', id);
    await page.evaluate(async () => { for (let n = 0; n < 5; n++) await new Promise((resolve) => { requestAnimationFrame(resolve); }); });
    return JSON.stringify(await page.map('seatPosition', id)) === JSON.stringify(place) && place;
  });
}

// Makes a run of a list of seats that are not all alike, so that a map which shows the wrong seat is noticed.
export async function disturb(server, event) {
  const held = await server.grant(event, ['S-A-2', 'S-B-9']);
  const sold = await server.grant(event, ['S-A-5']);
  assert.equal((await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence })).status, 201);
  assert.equal((await server.post(`/v1/events/${event.id}/block`, { seats: ['S-B-1', 'S-B-2'] })).status, 200);
  return held;
}
