// The seat map in a shop's page stays right whatever happens to the server, the network and the proxy between them: it shows
// what the snapshot shows, seat by seat.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openBrowser } from '../support/browser.mjs';
import { startFront } from '../support/front.mjs';
import { startProxy } from '../support/proxy.mjs';
import { disturb, openMap, showsSnapshot, startShop } from '../support/seat_map.mjs';
import { freePort, reap, start, until } from '../support/server.mjs';

const CUT_OFF_MS = 10_000;

describe('a live seat map', { concurrency: 1 }, () => {
  let browser, files, shop, broken;
  before(async () => {
    browser = await openBrowser();
    files = await start({ args: ['--cors-origin', '*'] }); // serves the component itself in every test
    [shop, broken] = await Promise.all([startShop(), startShop({ through: files })]); // with the same page
  });
  after(async () => {
    await browser?.close();
    shop?.stop();
    broken?.stop();
    await files?.stop();
    await reap();
  });

  const isLive = (page) => until('the map is live', () => page.evaluate(() => globalThis.map.dataset.live === 'live'));
  const notes = (page) => page.evaluate(() => globalThis.map.shadowRoot.querySelector('.note').textContent);
  const reads = (page) => page.requests.filter((url) => url.endsWith('/seats')).length;

  it('shows what others do, by the stream alone', async () => {
    const event = await files.createEvent();
    await disturb(files, event);
    const page = await openMap(browser, shop, { server: files, event });
    await showsSnapshot(page, files, event);
    await isLive(page);
    await files.grant(event, 'S-A-1');
    await until('the map shows the hold', async () => await page.map('status', 'S-A-1') === 'h');
    assert.equal(reads(page), 1);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('heals after its server was restarted, with changes that no stream told', async () => {
    const server = await start({ args: ['--listen', `127.0.0.1:${await freePort()}`, '--cors-origin', '*'] });
    const proxy = Object.assign(await startProxy(server.port), { host: '127.0.0.1' });
    const event = await server.createEvent();
    const page = await openMap(browser, shop, { server: proxy, event, module: files });
    await isLive(page);
    proxy.cut();
    await disturb(server, event);
    await server.restart(); // the new process does not know what the old one told whom
    proxy.restore();
    await showsSnapshot(page, server, event);
    assert.equal(reads(page), 2, 'the stream said reset, and the map read the snapshot again');
    await server.grant(event, 'S-A-10');
    await until('it is live again', async () => await page.map('status', 'S-A-10') === 'h');
    await page.done();
    await proxy.close();
    await server.stop();
  });

  it(`heals after it was cut off for ${CUT_OFF_MS / 1000} s, says so meanwhile, and notices a connection that has fallen silent`, async () => {
    const proxy = Object.assign(await startProxy(files.port), { host: '127.0.0.1' });
    const event = await files.createEvent();
    const page = await browser.page({ once: true });
    await page.clock.install();
    await openMap(browser, shop, { server: proxy, event, module: files, page });
    await isLive(page);
    proxy.cut();
    await until('it says so', async () => /^Reconnecting/.test(await notes(page)));
    await disturb(files, event);
    for (let ms = 0; ms < CUT_OFF_MS; ms += 1000) await page.clock.fastForward(1000);
    proxy.restore();
    await showsSnapshot(page, files, event);
    await isLive(page);
    assert.equal(await notes(page), '');
    assert.equal(reads(page), 1, 'the stream went on from its place');
    const kinds = (await page.heard('status')).map(({ kind }) => kind);
    assert.deepEqual(kinds, ['live', 'reconnecting', 'live']);
    proxy.blackhole();
    await files.grant(event, 'S-A-10');
    await page.clock.fastForward(41_000);
    await until('it has given the connection up', () => page.evaluate(() => globalThis.map.dataset.live !== 'live'));
    proxy.restore();
    await page.clock.fastForward(11_000);
    await showsSnapshot(page, files, event);
    await page.done();
    await proxy.close();
  });

  it('heals behind nginx after errors of the proxy', async () => {
    const server = await start({ args: ['--listen', `127.0.0.1:${await freePort()}`, '--cors-origin', '*', '--drain-delay', '100ms'] });
    const front = await startFront('nginx', [server]);
    const event = await server.createEvent();
    const page = await openMap(browser, shop, { server: front, event, module: files });
    await isLive(page);
    await disturb(server, event);
    await showsSnapshot(page, server, event);
    await server.stop({ keep: true });
    await until('nginx has refused the stream', () => /GET \S+\/stream\S* (200 13|5\d\d) /.test(front.log));
    await server.launch();
    await server.grant(event, 'S-A-9');
    await showsSnapshot(page, server, event);
    assert.equal(await page.map('status', 'S-A-9'), 'h');
    await page.done();
    await front.stop();
    await server.stop();
  });

  it('shows at once that sales were closed, and what seats cost from now on', async () => {
    const event = await files.createEvent();
    const page = await openMap(browser, shop, { server: files, event });
    await isLive(page);
    assert.equal((await files.post(`/v1/events/${event.id}/close`, {})).status, 200);
    await until('it says so', async () => await notes(page) === 'Tickets are not on sale at the moment.');
    await assert.rejects(page.map('select', 'S-A-1'), /not on sale/);
    assert.equal((await files.post(`/v1/events/${event.id}/open`, {})).status, 200);
    assert.equal((await files.patch(`/v1/events/${event.id}`, { prices: { S: 1250 } })).status, 200);
    const legend = () => page.evaluate(() => globalThis.map.shadowRoot.querySelector('.legend').textContent);
    await until('it shows the price', async () => /\$12\.50/.test(await legend()));
    assert.equal(await notes(page), '');
    // It is over, and the refusal tells when sales opened, too.
    assert.equal((await files.patch(`/v1/events/${event.id}`, { sales_open_at: '2020-01-01T20:00:00Z', starts_at: '2020-01-02T20:00:00Z' })).status, 200);
    await page.map('select', 'S-A-1');
    await assert.rejects(page.map('hold'), /Tickets are not on sale at the moment/);
    await page.done();
  });

  it('says when there is no such event, and asks no more', async () => {
    const page = await openMap(browser, shop, { server: files, event: 'evt_0000000000000000000000', isWaiting: false });
    await until('it says so', async () => await page.evaluate(() => globalThis.map.dataset.live) === 'gone');
    assert.equal(await notes(page), 'This event does not exist.');
    await assert.rejects(page.evaluate(() => globalThis.map.ready), /This event does not exist/);
    assert.ok(page.requests.filter((url) => url.includes('/v1/')).length <= 3);
    await page.done();
  });

  it('goes on after a proxy has answered 502 to everything', async () => {
    const event = await files.createEvent();
    const page = await openMap(browser, broken, { server: broken, event, module: files });
    await isLive(page);
    const refused = page.waitForResponse((answer) => /\/stream/.test(answer.url()) && answer.status() === 502);
    broken.broken = true;
    broken.closeAllConnections();
    await disturb(files, event);
    await refused;
    broken.broken = false;
    await showsSnapshot(page, files, event);
    await page.done();
  });

  it('comes up though the first answers are errors', async () => {
    const event = await files.createEvent();
    broken.broken = true;
    const page = await browser.page();
    const refused = page.waitForResponse((answer) => /\/plan/.test(answer.url()) && answer.status() === 502);
    await openMap(browser, broken, { server: broken, event, module: files, page, isWaiting: false });
    await refused;
    broken.broken = false;
    await page.waitForFunction(() => globalThis.map.seq !== undefined && globalThis.map.status('S-A-1') === '.');
    await page.done();
  });

  it('follows a stream that is sent to a port of its own', async () => {
    const server = await start({ args: ['--cors-origin', '*', '--stream-listen', '127.0.0.1:0'] });
    const event = await server.createEvent();
    const streams = await server.streams();
    const redirecting = await startShop({ through: server, streams });
    const page = await openMap(browser, redirecting, { server: redirecting, event, module: files });
    await isLive(page);
    await disturb(server, event);
    await showsSnapshot(page, server, event);
    assert.ok(page.requests.some((url) => url.startsWith(`http://${streams.host}:${streams.port}/`)));
    assert.equal(reads(page), 1);
    await page.done();
    redirecting.stop();
    await server.stop();
  });
});
