// A real Chromium for the suites about pages, launched once per file: the shell without windows and without a GPU, which needs
// half of the processor time.  A page that a test is done with goes to a later test, cleared of all that the test left in it:
// it opens what it has opened before in a third of the time that a new page takes.  No two tests, and no two pages at a time,
// share storage, unless a test wants them to.  A page that can show something else without being loaded again has a function
// `empty`, which removes all that the page shows and resolves to whether it could; then the page stays loaded.
//
//   const browser = await openBrowser();
//   const page = await browser.page({ ...PHONE, colorScheme: 'dark' });
//   await page.goto(urlOf(server, '/'));
//   ...
//   assert.deepEqual(page.complaints, []);       // what the console and the scripts complained of
//   assert.deepEqual(await axe(page), []);       // what axe-core finds
//   await page.done();
//   await browser.close();

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

// Not imported, since Node would read its six megabytes twice to find the names that they export.
const { chromium } = createRequire(import.meta.url)('playwright-core');
const CHROMIUM = (process.env.PATH ?? '').split(':').map((dir) => path.join(dir, 'chromium-headless-shell')).find((file) => fs.existsSync(file));
const AXE = new URL('../node_modules/axe-core/axe.min.js', import.meta.url);
const WAIT_MS = 60_000; // far beyond what a busy machine needs
const DESK = { width: 1280, height: 900 };

// A small telephone, as wide as pages have to support.
export const PHONE = { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

// The address of a page of a server of server.mjs.
export const urlOf = (server, target) => `http://${server.host}:${server.port}${target}`;

// `args`: further flags of Chromium.
export async function openBrowser({ args = [] } = {}) {
  assert.ok(CHROMIUM, 'no chromium-headless-shell in PATH');
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...root, '--disable-gpu', ...args] });
  const idle = new Map(); // persons whom no test uses, by their options
  return {
    browser,
    // A person, whose tabs share storage.  Options are Playwright's, and `once`, for a test that changes what cannot be changed
    // back: the clock of a page, or the scripts that run before its own.
    async person({ once = false, viewport = DESK, colorScheme = 'light', reducedMotion = 'no-preference', ...options } = {}) {
      const key = JSON.stringify(options), look = { viewport, colorScheme, reducedMotion };
      if (!once && idle.get(key)?.length > 0) return Object.assign(idle.get(key).pop(), { look });
      const context = await browser.newContext({ locale: 'en-US', timezoneId: 'UTC', ...look, ...options });
      const person = new Person(context, look, async () => {
        if (once || !await person.clear().then(() => true, () => false)) return context.close();
        return idle.set(key, [...idle.get(key) ?? [], person]);
      });
      return person;
    },
    // A tab of a person of its own, who is done when the page is.
    async page(options) {
      const person = await this.person(options);
      return Object.assign(await person.tab(), { done: () => person.done() });
    },
    close: () => browser.close(),
  };
}

class Person {
  #tabs = [];
  #isFirstTaken = false;

  constructor(context, look, done) {
    this.context = context;
    this.look = look; // what the windows of a person who is used again change to
    this.done = done;
    context.setDefaultTimeout(WAIT_MS);
  }

  async tab() {
    if (this.#tabs.length === 0 || this.#isFirstTaken) this.#tabs.push(watch(await this.context.newPage()));
    this.#isFirstTaken = true;
    const tab = this.#tabs.at(-1), { viewport, ...media } = this.look;
    await tab.setViewportSize(viewport);
    await tab.emulateMedia(media);
    return tab;
  }

  // Leaves one tab, with an empty page in it, and nothing stored by any site that was visited.
  async clear() {
    const [first, ...rest] = this.#tabs;
    const origins = new Set(this.#tabs.flatMap(({ visited }) => [...visited]));
    await Promise.all(rest.map((tab) => tab.close()));
    await first.unrouteAll({ behavior: 'ignoreErrors' });
    await this.context.unrouteAll({ behavior: 'ignoreErrors' });
    await this.context.setOffline(false);
    await first.mouse.move(0, 0);
    if (origins.size === 1 && await first.empty?.()) {
      await first.evaluate(() => { localStorage.clear(); sessionStorage.clear(); scrollTo(0, 0); });
    } else if (!await this.#blank(first, origins)) await this.#leave(first, origins);
    forget(first);
    this.#tabs = [first];
    this.#isFirstTaken = false;
  }

  // Shows an empty document of the only origin that was visited, which makes the document that was shown end and asks nobody
  // for anything; resolves to whether it could.
  async #blank(first, [origin, ...others]) {
    if (others.length > 0 || new URL(first.url()).origin !== origin) return false;
    await Promise.all([first.waitForURL('about:blank'), first.evaluate(() => { window.location.replace('about:blank'); })]);
    await first.evaluate(() => { localStorage.clear(); sessionStorage.clear(); });
    return true;
  }

  async #leave(first, origins) {
    await first.route('**', (route) => route.fulfill({ contentType: 'text/html', body: '<link rel="icon" href="data:,">' }));
    for (const origin of origins) {
      await first.goto(origin);
      await first.evaluate(() => { localStorage.clear(); sessionStorage.clear(); });
    }
    await first.unrouteAll({ behavior: 'ignoreErrors' });
  }
}

function forget(page) {
  page.complaints = [];
  page.requests = [];
  page.visited = new Set([page.url()].filter((url) => /^https?:/.test(url)).map((url) => new URL(url).origin));
  page.empty = undefined;
}

// Records what a page complains of (`complaints`), every address that it asks for (`requests`), and the origins whose pages
// it shows (`visited`).
function watch(page) {
  forget(page);
  page.on('console', (message) => {
    // A refused request is not a mistake of the page; the page has to say it in its own words.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) page.complaints.push(message.text());
  });
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('request', (request) => page.requests.push(request.url()));
  page.on('framenavigated', (frame) => { if (/^https?:/.test(frame.url())) page.visited.add(new URL(frame.url()).origin); });
  return page;
}

// The origins that a page has asked for something.
export const originsOf = (page) => [...new Set(page.requests.map((url) => new URL(url).origin))].filter((origin) => origin !== 'null').sort();

// What axe-core finds wrong with the page as it is now, one line for each element.
export async function axe(page) {
  if (!await page.evaluate(() => 'axe' in globalThis)) await page.evaluate(fs.readFileSync(AXE, 'utf8'));
  // Only violations leave the page: to serialise all that axe-core tells takes longer than its rules do.
  const violations = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ['violations'] })).violations);
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ target, failureSummary }) => `${id} (${help}) at ${target.join(' ')}: ${failureSummary}`));
}
