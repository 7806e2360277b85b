// A real Chromium for the suites about pages.  Launched once per file; every page has a context of its own, so no two
// share storage unless a test wants them to.
//
//   const browser = await openBrowser();
//   const page = await browser.page({ ...PHONE, colorScheme: 'dark' });
//   await page.goto(urlOf(server, '/'));
//   ...
//   assert.deepEqual(page.complaints, []);       // what the console and the scripts complained of
//   assert.deepEqual(await axe(page), []);       // what axe-core finds
//   await browser.close();

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { chromium } from 'playwright-core';

const CHROMIUM = (process.env.PATH ?? '').split(':').map((dir) => path.join(dir, 'chromium')).find((file) => fs.existsSync(file));
const AXE = new URL('../node_modules/axe-core/axe.min.js', import.meta.url);
const WAIT_MS = 20_000;

// A small telephone, as wide as pages have to support.
export const PHONE = { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

// The address of a page of a server of server.mjs.
export const urlOf = (server, target) => `http://${server.host}:${server.port}${target}`;

// `args`: further flags of Chromium.
export async function openBrowser({ args = [] } = {}) {
  assert.ok(CHROMIUM, 'no chromium in PATH');
  const root = process.getuid() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...root, ...args] });
  return {
    browser,
    // A context whose pages share storage, as the tabs of one person do.  Options are Playwright's.
    async person(options = {}) {
      const context = await browser.newContext({ locale: 'en-US', timezoneId: 'UTC', viewport: { width: 1280, height: 900 }, ...options });
      context.setDefaultTimeout(WAIT_MS);
      return { context, tab: async () => watch(await context.newPage()), close: () => context.close() };
    },
    // A page of a person of its own.
    async page(options) { return (await this.person(options)).tab(); },
    close: () => browser.close(),
  };
}

// Records what a page complains of (`complaints`) and every address that it asks for (`requests`).
function watch(page) {
  page.complaints = [];
  page.requests = [];
  page.on('console', (message) => {
    // A refused request is not a mistake of the page; the page has to say it in its own words.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) page.complaints.push(message.text());
  });
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('request', (request) => page.requests.push(request.url()));
  return page;
}

// The origins that a page has asked for something.
export const originsOf = (page) => [...new Set(page.requests.map((url) => new URL(url).origin))].filter((origin) => origin !== 'null').sort();

// What axe-core finds wrong with the page as it is now, one line for each element.
export async function axe(page) {
  await page.evaluate(fs.readFileSync(AXE, 'utf8'));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ target, failureSummary }) => `${id} (${help}) at ${target.join(' ')}: ${failureSummary}`));
}
