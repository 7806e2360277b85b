// How pages are served: types, caches, compression, what their headers allow, and that they can be turned off.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertProblem } from '../support/expect.mjs';
import { reap, runServer, start, tempDir } from '../support/server.mjs';

const WEB = fileURLToPath(new URL('../../web/', import.meta.url));
const TYPES = { '.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.svg': 'image/svg+xml' };
const DOCUMENTS = { 'index.html': '/', 'event.html': '/e/evt_any', 'ops.html': '/ops', 'holdfast.js': '/holdfast.js' };
const BROWSER = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }; // as browsers have it when they go to an address
const filesIn = (dir) => fs.readdirSync(dir, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? filesIn(path.join(dir, entry.name)) : [path.join(dir, entry.name)]));
const files = filesIn(WEB).map((file) => path.relative(WEB, file)).filter((name) => TYPES[path.extname(name)] && name !== 'missing.html');
const pathOf = (name) => DOCUMENTS[name] ?? `/web/${name}`;
const versionIn = (text) => /["'.]\/web\/([0-9a-f]{12})\//.exec(text)?.[1];
// A file as it is served: documents and holdfast.js name all others by the addresses of their version.
const servedAs = (name, text, version) => (name in DOCUMENTS || name === 'missing.html' ? text.replace(/(?<=["'.])\/web\//g, `/web/${version}/`) : text);

// The directives of a Content-Security-Policy as { name: [sources] }.
const policyOf = ({ headers }) => Object.fromEntries(headers['content-security-policy'].split('; ').map((text) => text.split(' ')).map(([name, ...sources]) => [name, sources]));
const sandboxOf = (server) => /^payments sandbox on (\S+)$/m.exec(server.run.stdout)[1];

describe('pages', () => {
  let server;
  before(async () => { server = await start({ args: ['--cors-origin', 'https://shop.example,http://localhost:3000'] }); });
  after(async () => { try { await server?.stop(); } finally { await reap(); } });

  it('every file of web/ is served, with its type, plain and compressed', async () => {
    assert.ok(files.length > 5);
    const version = versionIn((await server.get('/')).text);
    assert.ok(version);
    for (const name of files) {
      const bytes = servedAs(name, fs.readFileSync(path.join(WEB, name), 'utf8'), version);
      for (const headers of [{}, { 'Accept-Encoding': 'gzip, br' }]) {
        const answer = await server.get(pathOf(name), headers);
        assert.equal(answer.status, 200, name);
        assert.equal(answer.text, bytes, name);
        assert.equal(answer.headers['content-type'], TYPES[path.extname(name)], name);
        assert.equal(answer.headers['content-encoding'], headers['Accept-Encoding'] ? 'gzip' : undefined, name);
        assert.match(answer.headers.vary, /Accept-Encoding/);
        assert.equal(answer.headers['cache-control'], 'no-cache');
        assert.equal(answer.headers['x-content-type-options'], 'nosniff');
        assert.equal(answer.headers['referrer-policy'], 'no-referrer');
      }
    }
  });

  it('whatever a page loads is there', async () => {
    for (const target of ['/', '/e/evt_any', '/ops']) {
      const { text } = await server.get(target);
      const loaded = [...text.matchAll(/<(?:link|script)\b[^>]*?(?:href|src)="([^"]+)"/g)].map(([, url]) => url);
      assert.ok(loaded.length > 2, target);
      for (const url of loaded) {
        const { status, headers } = await server.request('HEAD', url);
        assert.deepEqual([status, headers['cache-control']], [200, 'public, max-age=31536000, immutable'], `${target} loads ${url}`);
      }
      assert.doesNotMatch(text, /<script(?![^>]*\bsrc=)|\bstyle="|\bon\w+="/, 'the policy forbids inline code and styles');
    }
  });

  it('a file may be kept for ever under the version of all files, and not under any other', async () => {
    const version = versionIn((await server.get('/holdfast.js')).text);
    const other = version.replace(/./g, (digit) => (digit === 'f' ? '0' : 'f'));
    for (const name of files.filter((each) => !(each in DOCUMENTS)).concat('chart.js')) {
      const kept = await server.get(`/web/${version}/${name}`), asked = await server.get(`/web/${name}`), strange = await server.get(`/web/${other}/${name}`);
      assert.deepEqual([kept, asked, strange].map(({ status }) => status), [200, 200, 200], name);
      assert.deepEqual([kept, asked, strange].map(({ headers }) => headers['cache-control']), ['public, max-age=31536000, immutable', 'no-cache', 'no-cache'], name);
      assert.deepEqual([asked.text, strange.text, asked.headers.etag, strange.headers.etag], [kept.text, kept.text, kept.headers.etag, kept.headers.etag], name);
    }
    for (const name of ['index.html', 'event.html', 'settings.json', 'none.js', '', 'lib', 'lib/', `lib/api.js/${'x'.repeat(200)}`, `${version}/page.css`]) {
      assertProblem(await server.get(`/web/${version}/${name}`), 404, 'not_found');
    }
    for (const wrong of [version.slice(1), `${version}0`, version.toUpperCase().replace(/^./, 'A')]) assertProblem(await server.get(`/web/${wrong}/page.css`), 404, 'not_found');
  });

  it('what may be kept for ever varies by Origin, since a page of another site may be allowed to read it later', async () => {
    const versioned = async (each) => `/web/${versionIn((await each.get('/holdfast.js')).text)}/seats/element.js`;
    const closed = await start();
    const { headers } = await closed.get(await versioned(closed));
    assert.deepEqual([headers.vary, headers['access-control-allow-origin']], ['Accept-Encoding, Origin', undefined]);
    assert.equal((await closed.get('/web/page.css')).headers.vary, 'Accept-Encoding');
    await closed.stop();
    const kept = await server.get(await versioned(server), { Origin: 'https://shop.example' });
    assert.deepEqual([kept.headers.vary, kept.headers['access-control-allow-origin']], ['Accept-Encoding, Origin', 'https://shop.example']);
  });

  it('Chart.js is served with its copyright notice', async () => {
    const answer = await server.get('/web/chart.js', { 'Accept-Encoding': 'gzip' });
    assert.equal(answer.headers['content-type'], TYPES['.js']);
    assert.match(answer.text, /Chart\.js v3/);
    assert.match(answer.text, /MIT/);
  });

  it('a browser that has a file is told so, and HEAD is GET without the file', async () => {
    for (const target of ['/', '/web/page.css']) {
      for (const encoding of ['identity', 'gzip']) {
        const first = await server.get(target, { 'Accept-Encoding': encoding });
        const again = await server.get(target, { 'Accept-Encoding': encoding, 'If-None-Match': first.headers.etag });
        assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', first.headers.etag]);
        assert.equal(again.headers['cache-control'], 'no-cache');
        const head = await server.request('HEAD', target, undefined, { 'Accept-Encoding': encoding });
        assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', first.headers['content-length']]);
      }
      const etags = await Promise.all(['identity', 'gzip'].map(async (encoding) => (await server.get(target, { 'Accept-Encoding': encoding })).headers.etag));
      assert.notEqual(etags[0], etags[1], 'other bytes have another ETag');
    }
  });

  it('an upgrade of the settings reaches a browser that has the page', async () => {
    const other = await start();
    const [here, there] = [await server.get('/'), await other.get('/')];
    assert.equal(here.text, there.text);
    assert.notEqual(here.headers['content-security-policy'], there.headers['content-security-policy'], 'another sandbox');
    assert.notEqual(here.headers.etag, there.headers.etag);
    await other.stop();
  });

  it('there is nothing else: no other path, no way out of the folder, no document under its file name', async () => {
    for (const target of ['/web', '/web/', '/web/none.js', '/web/index.html', '/web/event.html', '/web/../Makefile', '/web/%2e%2e/Makefile', '/web/..%2fMakefile',
      '/web/lib', '/web/lib/', '/web//page.css', '/web/page.css/', '/web/lib/../page.css', '/web/page.css%00', '/e', '/e/', '/e/a/b', '/ops/', '/index.html']) {
      assertProblem(await server.get(target), 404, 'not_found');
    }
    for (const [method, target] of [['POST', '/'], ['DELETE', '/web/page.css'], ['PATCH', '/e/evt_any']]) {
      assert.equal(assertProblem(await server.request(method, target, '{}'), 405, 'method_not_allowed').status, 405);
    }
  });

  it('a browser is shown a page of what does not exist, and the API answers everybody with a problem', async () => {
    const page = servedAs('missing.html', fs.readFileSync(path.join(WEB, 'missing.html'), 'utf8'), versionIn((await server.get('/')).text));
    for (const target of ['/hamlet', '/web/none.js', '/e/a/b', '/v2/events', '/v10']) {
      for (const method of ['GET', 'HEAD']) {
        const answer = await server.request(method, target, undefined, BROWSER);
        assert.deepEqual([answer.status, answer.headers['content-type'], answer.text], [404, TYPES['.html'], method === 'GET' ? page : ''], target);
        assert.equal(answer.headers['cache-control'], 'no-cache');
        assert.equal(answer.headers.etag, undefined, 'what is there later is asked for again');
        assert.deepEqual(policyOf(answer), policyOf(await server.get('/')));
      }
      assertProblem(await server.get(target, { Accept: '*/*' }), 404, 'not_found');
      assertProblem(await server.post(target, {}, BROWSER), target.startsWith('/web') ? 405 : 404, target.startsWith('/web') ? 'method_not_allowed' : 'not_found');
    }
    for (const target of ['/v1', '/v1/', '/v1/none']) assertProblem(await server.get(target, BROWSER), 404, 'not_found');
    assertProblem(await server.get('/v1/events/evt_AAAAAAAAAAAAAAAAAAAAAA', BROWSER), 404, 'no_such_event');
  });

  it('a page is the same whatever its address says', async () => {
    const plain = await server.get('/e/evt_any');
    for (const target of ['/e/evt_other?lang=de', '/e/%3Cscript%3E', '/e/x?payment_intent=pi_1&payment_intent_client_secret=s&redirect_status=succeeded']) {
      const answer = await server.get(target);
      assert.deepEqual([answer.status, answer.text, answer.headers.etag], [200, plain.text, plain.headers.etag]);
    }
  });

  it('a policy has no unsafe sources, and lets pages talk to this server and the sandbox alone', async () => {
    for (const target of ['/', '/e/evt_any']) {
      const policy = policyOf(await server.get(target));
      assert.deepEqual(policy, {
        'default-src': ["'none'"], 'style-src': ["'self'"], 'img-src': ["'self'", 'https:'], 'base-uri': ["'none'"], 'form-action': ["'none'"],
        'connect-src': ["'self'", sandboxOf(server)], 'script-src': ["'self'"],
        'frame-ancestors': ["'self'", 'https://shop.example', 'http://localhost:3000'],
      });
    }
  });

  it('a document keeps the windows of other sites away', async () => {
    const { headers } = await server.get('/');
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
    assert.match(headers['permissions-policy'], /camera=\(\)/);
  });

  it('pages of the listed origins may load the scripts, and no others', async () => {
    for (const [origin, allowed] of [['https://shop.example', 'https://shop.example'], ['https://evil.example', undefined]]) {
      assert.equal((await server.get('/web/texts.js', { Origin: origin })).headers['access-control-allow-origin'], allowed);
    }
  });

  it('the settings say how this server is paid, and nothing secret', async () => {
    const { json, headers } = await server.get('/web/settings.json');
    assert.deepEqual(Object.keys(json.payments), ['provider', 'publishable_key', 'api']);
    assert.equal(json.payments.provider, 'sandbox');
    assert.equal(json.payments.api, sandboxOf(server));
    assert.match(json.payments.publishable_key, /^pk_test_/);
    assert.equal(headers['cache-control'], 'no-cache');
  });
});

describe('pages of a server with other settings', () => {
  after(reap);

  it('name the stream port by the name that the page was asked for', async () => {
    const server = await start({ args: ['--stream-listen', '127.0.0.1:0'] });
    const { port } = await server.streams();
    const sourcesFor = async (host) => policyOf(await server.get('/e/evt_any', { Host: host }))['connect-src'];
    assert.deepEqual(await sourcesFor(`127.0.0.1:${server.port}`), ["'self'", `http://127.0.0.1:${port}`, sandboxOf(server)]);
    assert.deepEqual(await sourcesFor('localhost'), ["'self'", `http://localhost:${port}`, sandboxOf(server)]);
    await server.stop();
  });

  it('allow Stripe where cards go to Stripe, and only there', async () => {
    const keys = { STRIPE_SECRET_KEY: 'sk_test_of_pages', STRIPE_PUBLISHABLE_KEY: 'pk_test_of_pages' };
    const stripe = await start({ args: ['--payments', 'stripe'], env: keys });
    const policy = policyOf(await stripe.get('/e/evt_any'));
    assert.deepEqual(policy['script-src'], ["'self'", 'https://js.stripe.com', 'https://*.js.stripe.com']);
    assert.deepEqual(policy['frame-src'], ['https://js.stripe.com', 'https://*.js.stripe.com', 'https://hooks.stripe.com']);
    assert.deepEqual(policy['connect-src'], ["'self'", 'https://api.stripe.com']);
    assert.deepEqual((await stripe.get('/web/settings.json')).json.payments, { provider: 'stripe', publishable_key: 'pk_test_of_pages', api: null });
    await stripe.stop();
    const relayed = await start({ args: ['--payments', 'stripe', '--stripe-api', 'http://127.0.0.1:9', '--public-url', 'https://pay.example/x'], env: keys });
    assert.deepEqual(policyOf(await relayed.get('/e/evt_any'))['connect-src'], ["'self'", 'https://pay.example']);
    await relayed.stop();
    const off = await start({ args: ['--payments', 'off'] });
    assert.deepEqual(policyOf(await off.get('/e/evt_any'))['connect-src'], ["'self'"]);
    assert.deepEqual((await off.get('/web/settings.json')).json.payments, { provider: null, publishable_key: null, api: null });
    await off.stop();
  });

  it('are public where the server has keys, and may be framed by nobody else', async () => {
    const server = await start({ env: { HOLDFAST_ADMIN_KEY: 'admin-key-0123456789' } });
    for (const target of ['/', '/e/evt_any', '/web/page.css', '/web/settings.json']) assert.equal((await server.get(target)).status, 200, target);
    assert.deepEqual(policyOf(await server.get('/'))['frame-ancestors'], ["'self'"]);
    await server.stop();
  });

  it('are not there with --pages off', async () => {
    const server = await start({ args: ['--pages', 'off'] });
    for (const target of ['/', '/e/evt_any', '/ops', '/holdfast.js', '/web/page.css', '/web/settings.json']) {
      assertProblem(await server.get(target, BROWSER), 404, 'not_found');
      assertProblem(await server.post(target, {}), 404, 'not_found');
    }
    assert.equal((await server.get('/v1/events')).status, 200);
    await server.stop();
    const wrong = await runServer(['--data', tempDir(), '--pages', 'perhaps', '--listen', '127.0.0.1:0']);
    assert.equal(wrong.code, 64);
    assert.match(wrong.stderr, /--pages is on or off, not perhaps/);
  });
});

describe('a brand', () => {
  const dir = tempDir();
  const write = (name, bytes) => {
    fs.writeFileSync(path.join(dir, name), typeof bytes === 'string' ? bytes : JSON.stringify(bytes));
    return path.join(dir, name);
  };
  after(reap);

  const luminance = (color) => {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
  // The colours that a block of a style sheet sets.
  const colorsOf = (text) => Object.fromEntries([...text.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name, color]) => [name, color]));

  for (const color of ['#ffff00', '#7a1f2b', '#777']) {
    it(`in ${color} can be read on every surface of the pages, light and dark`, async () => {
      const server = await start({ args: ['--brand', write('brand.json', { name: 'Globe', color })] });
      const [pageLight, pageDark] = fs.readFileSync(path.join(WEB, 'page.css'), 'utf8').split('@media (prefers-color-scheme: dark)', 2).map(colorsOf);
      const [light, dark] = (await server.get('/web/brand.css')).text.split('@media (prefers-color-scheme: dark)').map(colorsOf);
      for (const [own, page] of [[light, pageLight], [dark, pageDark]]) {
        for (const surface of ['background', 'surface', 'note-surface']) assert.ok(contrast(own.accent, page[surface]) >= 4.5, `${own.accent} on ${page[surface]}`);
        assert.ok(contrast(own['accent-text'], own.accent) >= 4.5);
      }
      const kept = [light.accent, dark.accent].filter((accent) => accent === color.replace(/^#(.)(.)(.)$/, '#$1$1$2$2$3$3'));
      assert.equal(kept.length, color === '#777' ? 0 : 1, 'it is kept where it can be read');
      await server.stop();
    });
  }

  it('is in the pages for buyers, as text, with its logo, and nowhere else', async () => {
    const name = '<b>"Globe" & \'Sons\'</b>';
    write('logo.png', 'no picture, but bytes');
    const server = await start({ args: ['--brand', write('brand.json', { name, logo: 'logo.png', terms: 'https://globe.example/?a=1&b=2' })] });
    for (const target of ['/', '/e/evt_any', '/hamlet']) {
      const { text, headers } = await server.get(target, BROWSER);
      assert.ok(!text.includes('<b>') && text.includes('&#60;b&#62;&#34;Globe&#34; &#38; &#39;Sons&#39;&#60;/b&#62;'), target);
      assert.match(text, /<a href="https:\/\/globe\.example\/\?a=1&#38;b=2" data-text="terms">/);
      assert.doesNotMatch(text, /data-text="imprint"/);
      const zipped = await server.get(target, { ...BROWSER, 'Accept-Encoding': 'gzip' });
      assert.equal(zipped.text, text);
      if (target !== '/hamlet') assert.equal((await server.get(target, { 'If-None-Match': headers.etag })).status, 304);
      for (const [, url] of text.matchAll(/<(?:link|script|img)\b[^>]*?(?:href|src)="([^"]+)"/g)) assert.equal((await server.request('HEAD', url)).status, 200, url);
    }
    const logo = await server.get('/web/brand-logo.png');
    assert.deepEqual([logo.text, logo.headers['content-type'], logo.headers['x-content-type-options']], ['no picture, but bytes', 'image/png', 'nosniff']);
    assert.match(logo.headers['content-security-policy'], /default-src 'none'/, 'a logo runs nothing');
    assert.doesNotMatch((await server.get('/ops')).text, /Globe/);
    assert.equal(colorsOf((await server.get('/web/brand.css')).text).accent, undefined);
    await server.stop();
  });

  it('that has a mistake is refused at the start, with what is wrong', async () => {
    for (const [brand, why] of [
      [{}, /name is required/], [{ name: 'a\nb' }, /name must not contain control characters/], [{ name: 'Globe', colour: '#fff' }, /colour/],
      [{ name: 'Globe', color: 'red' }, /color must be a colour such as #7a1f2b/], [{ name: 'Globe', logo: 'logo.exe' }, /logo must be a file/],
      [{ name: 'Globe', logo: 'none.svg' }, /none\.svg: No such file/], [{ name: 'Globe', terms: 'javascript:alert(1)' }, /terms must be an https URL/], ['', /missing/],
    ]) {
      const { code, stderr } = await runServer(['--data', tempDir(), '--listen', '127.0.0.1:0', '--brand', write('bad.json', brand)]);
      assert.equal(code, 1, stderr);
      assert.match(stderr, /cannot use the brand .*bad\.json: /);
      assert.match(stderr, why);
    }
    write('large.svg', 'x'.repeat(512 * 1024 + 1));
    const { code, stderr } = await runServer(['--data', tempDir(), '--listen', '127.0.0.1:0', '--brand', write('bad.json', { name: 'Globe', logo: 'large.svg' })]);
    assert.deepEqual([code, /more than 512 KB/.test(stderr)], [1, true]);
  });
});
