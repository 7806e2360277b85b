// Web pages against a server on their reader's machine: a page of another site that sends it orders, and a page whose own
// name is made to resolve to that machine (DNS rebinding).  A server without keys must take neither.
// backends: own

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { openBrowser } from '../support/browser.mjs';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { Document } from '../support/openapi.mjs';
import { Remote, reap, Server, until } from '../support/server.mjs';
import { startSandbox } from '../support/sandbox.mjs';

const EVENT = { name: 'Planted', currency: 'usd', sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 2 }] };
const KEYS = { HOLDFAST_ADMIN_KEY: 'admin-key-0123456789' };
const ADMIN = { Authorization: `Bearer ${KEYS.HOLDFAST_ADMIN_KEY}` };
const FOREIGN = ['evil.example', 'evil.example:8080', 'localhost.evil.example', '127.0.0.1.nip.io', '0.0.0.0', '192.168.1.1', '[::]', 'evil.localhost'];

const launch = async (options) => {
  const server = new Server(options);
  await server.launch();
  return server;
};
const logs = (server, pattern) => until(`it logs ${pattern}`, () => pattern.test(server.stderr));
const names = async (server, headers) => assertOk(await server.get('/v1/events', headers)).data.map(({ name }) => name);

describe('a server without keys', () => {
  let server;
  let event;
  before(async () => {
    server = await launch({ args: ['--stream-listen', '127.0.0.1:0', '--cors-origin', 'https://shop.example'] });
    event = await server.createEvent();
  });
  after(() => server?.stop());
  const own = () => `http://127.0.0.1:${server.port}`;

  it('says at its start that everything is open', () => logs(server, /every program and every user of this machine may do everything/));

  it('answers to the names of loopback, with any port', async () => {
    for (const Host of ['localhost', 'localhost:1', 'LOCALHOST.', '127.0.0.1', '127.8.9.10:80', '[::1]', `[::1]:${server.port}`]) {
      assertOk(await server.get('/v1/events', { Host }));
    }
  });

  it('answers to no other name: not to readers, writers, probes, preflights or readers of streams', async () => {
    const streams = new Remote(await server.streams());
    const stream = `/v1/events/${event.id}/stream`;
    for (const Host of FOREIGN) {
      const origin = { Host, Origin: `http://${Host}` };
      assertProblem(await server.get('/v1/events', { Host }), 421, 'misdirected_request');
      assertProblem(await server.get('/metrics', { Host }), 421, 'misdirected_request');
      assertProblem(await server.get('/healthz', { Host }), 421, 'misdirected_request');
      assertProblem(await server.get('/', { Host }), 421, 'misdirected_request');
      assertProblem(await server.post('/v1/events', EVENT, origin), 421, 'misdirected_request');
      assertProblem(await server.get(stream, { Host }), 421, 'misdirected_request');
      assertProblem(await streams.get(stream, origin), 421, 'misdirected_request');
      assert.equal((await server.request('OPTIONS', '/v1/events', undefined, { ...origin, 'Access-Control-Request-Method': 'POST' })).status, 421);
    }
    assert.deepEqual(await names(server), ['Gala']);
  });

  it('takes no orders from pages of other sites, whatever they call their body', async () => {
    const text = { 'Content-Type': 'text/plain' };
    for (const headers of [{ Origin: 'https://evil.example' }, { Origin: 'null' }, { Origin: `http://localhost:${server.port + 1}` },
      { Origin: `http://localhost:${server.port}` }, { 'Sec-Fetch-Site': 'cross-site' }, { Origin: own(), 'Sec-Fetch-Site': 'cross-site' },
      { Origin: 'https://shop.example.evil.example' }, { Origin: 'http://shop.example' }]) {
      assertProblem(await server.post('/v1/events', EVENT, { ...text, ...headers }), 403, 'cross_site');
      assertProblem(await server.request('PUT', '/v1/locks/x/value', '{}', headers), 403, 'cross_site');
      assertProblem(await server.patch(`/v1/events/${event.id}`, { name: 'Theirs' }, headers), 403, 'cross_site');
      assertProblem(await server.del('/v1/holds/hold_x', headers), 403, 'cross_site');
      assertProblem(await server.post('/v1/webhooks/stripe', '{}', headers), 403, 'cross_site');
    }
    assert.deepEqual(await names(server), ['Gala']);
  });

  it('takes them from programs, its own pages and the listed sites', async () => {
    const hold = await server.grant(event, 'S-A-1');
    for (const headers of [{}, { Origin: own() }, { Origin: own(), 'Sec-Fetch-Site': 'same-origin' }, { 'Sec-Fetch-Site': 'none' },
      { Host: `localhost:${server.port}`, Origin: `http://localhost:${server.port}` },
      { Origin: 'https://shop.example', 'Sec-Fetch-Site': 'cross-site' }]) {
      assertOk(await server.post(`/v1/holds/${hold.id}/renew`, {}, headers));
    }
  });
});

describe('names that are listed', () => {
  after(reap);

  it('are the only ones of a server with keys, but for the probes of load balancers', async () => {
    const server = await launch({ env: KEYS, args: ['--host', 'tickets.example, 192.0.2.7', '--advertise', 'http://one.internal:8080'] });
    for (const Host of ['tickets.example', 'TICKETS.example.:443', '192.0.2.7:8080', 'one.internal']) assertOk(await server.get('/v1/events', { Host }));
    for (const Host of [...FOREIGN, `127.0.0.1:${server.port}`, 'localhost', 'a.tickets.example', '']) {
      assertProblem(await server.get('/v1/events', { Host }), 421, 'misdirected_request');
      assertProblem(await server.get('/metrics', { Host, ...ADMIN }), 421, 'misdirected_request');
      for (const probe of ['/healthz', '/readyz']) assert.equal((await server.get(probe, { Host })).status, 200);
    }
    await server.stop();
  });

  it('are added to those of loopback where there are no keys', async () => {
    const server = await launch({ args: ['--host', 'tickets.test'] });
    for (const Host of ['tickets.test', 'localhost']) await server.createEvent({}, { Host, Origin: `http://${Host}` });
    assertProblem(await server.post('/v1/events', EVENT, { Host: 'tickets.test', Origin: 'http://evil.example' }), 403, 'cross_site');
    assertProblem(await server.get('/v1/events', { Host: 'evil.example' }), 421, 'misdirected_request');
    await server.stop();
  });

  it('do not help where every page of the web is let in, and the server says so', async () => {
    const server = await launch({ args: ['--cors-origin', '*'] });
    await logs(server, /lets every page of the web do everything/);
    assert.equal((await server.post('/v1/events', EVENT, { Origin: 'https://any.example', 'Sec-Fetch-Site': 'cross-site' })).status, 201);
    assertProblem(await server.get('/v1/events', { Host: 'evil.example' }), 421, 'misdirected_request');
    await server.stop();
  });

  it('are not needed with keys: pages of any site may do what anybody may, and no more', async () => {
    const server = await launch({ env: KEYS });
    const page = { Host: 'evil.example', Origin: 'http://evil.example', 'Sec-Fetch-Site': 'cross-site' };
    assertProblem(await server.post('/v1/events', EVENT, page), 401, 'unauthorized');
    const event = await server.createEvent({}, ADMIN);
    await server.grant(event, 'S-A-1', {}, page);
    await server.stop();
  });
});

describe('a name that a request made up', () => {
  after(reap);

  it('is in no redirect and in no other answer', async () => {
    const server = await launch({ env: KEYS });
    const { paths } = (await Document.load()).api;
    const targets = [...Object.keys(paths).map((path) => path.replaceAll(/\{\w+\}/g, 'x')), '/', '/e/x', '/ops', '/ops/', '//evil.example/', '/v1/events/'];
    for (const target of targets) {
      if (target.endsWith('/stream')) continue; // its answer does not end
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const answer = await server.request(method, target, undefined, { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', ...ADMIN });
        assert.ok(answer.status < 300 || answer.status >= 400, `${method} ${target}: ${answer.status}`);
        assert.equal(answer.headers.location, undefined);
        assert.ok(!JSON.stringify(answer.rawHeaders).includes('evil.example') && !answer.text.includes('evil.example'), `${method} ${target}: ${answer.text}`);
      }
    }
    await server.stop();
  });
});

describe('the sandbox', () => {
  after(reap);

  it('takes cards from any page, but its faults and books are not for pages', async () => {
    const sandbox = await startSandbox();
    const { hostname: host, port } = new URL(sandbox.url);
    const remote = new Remote({ host, port });
    const rebound = { Host: `evil.example:${port}` };
    assert.equal((await remote.get('/sandbox/books')).status, 200);
    assert.equal((await remote.get('/sandbox/books', rebound)).status, 403);
    assert.equal((await remote.get('/sandbox/faults', rebound)).status, 403);
    assert.equal((await remote.post('/sandbox/faults', '{"fail":1}', { ...rebound, Origin: `http://evil.example:${port}` })).status, 403);
    assert.equal((await remote.get('/sandbox/faults')).json.fail, 0);
    const preflight = await remote.request('OPTIONS', '/v1/payment_intents/pi_x/confirm', undefined, { Origin: 'https://shop.example', 'Access-Control-Request-Method': 'POST' });
    assert.equal(preflight.headers['access-control-allow-origin'], '*');
    await sandbox.stop();
  });
});

// The same in a real browser.  The attacker's page is served from another port, by the name evil.example.
describe('a browser that shows an attacker\'s page', () => {
  let server;
  let browser;
  let site;
  const HOSTS = 'MAP evil.example 127.0.0.1';
  const page = (target) => `<!doctype html><form method="post" enctype="text/plain" action="${target}">
    <input name='${JSON.stringify(EVENT).slice(0, -1)},"metadata":{"x":"' value='"}}'></form>`;
  before(async () => {
    server = await launch();
    site = http.createServer((req, res) => res.setHeader('Content-Type', 'text/html').end(page(`http://127.0.0.1:${server.port}/v1/events`)));
    await new Promise((resolve) => { site.listen(0, '127.0.0.1', resolve); });
    browser = await openBrowser({ args: [`--host-resolver-rules=${HOSTS}`] });
  });
  after(async () => {
    await browser?.close();
    site?.close();
    await server?.stop();
  });

  it('sends its form in vain', async () => {
    const tab = await browser.page();
    await tab.goto(`http://evil.example:${site.address().port}/`);
    const answered = tab.waitForResponse((response) => response.request().method() === 'POST');
    await tab.evaluate(() => document.forms[0].submit()); // eslint-disable-line no-undef
    const answer = await answered;
    assert.equal(answer.status(), 403);
    assert.deepEqual(await names(server), []);
    // The body would have made an event: the form of the server's own page does.
    const request = answer.request();
    assert.equal((await server.post('/v1/events', request.postData(), { 'Content-Type': 'text/plain' })).status, 201);
  });

  it('reads nothing by a name of its own that leads here', async () => {
    // The attacker's page comes from elsewhere, before its name is made to lead here, and has no policy that stops it.
    const tab = await browser.page({ bypassCSP: true });
    await tab.goto(`http://evil.example:${server.port}/`);
    const read = await tab.evaluate(async () => (await fetch('/metrics')).status);
    const wrote = await tab.evaluate(async () => (await fetch('/v1/events', { method: 'POST', body: '{}' })).status);
    assert.deepEqual([read, wrote], [421, 421]);
  });

  it('shows the server\'s own pages, which do their work', async () => {
    const tab = await browser.page();
    await tab.goto(`http://localhost:${server.port}/`);
    const status = await tab.evaluate(async (body) => (await fetch('/v1/events', { method: 'POST', body })).status, JSON.stringify(EVENT));
    assert.equal(status, 201);
    await until('the event is there', async () => (await names(server)).length === 2);
  });
});
