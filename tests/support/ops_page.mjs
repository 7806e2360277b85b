// The operator's page of a server without keys.  A test leaves it loaded for the next test, which opens another view of it.

import { urlOf } from './browser.mjs';

const EMPTY = '#/audit?event='; // a view that asks the server for nothing from time to time

// Opens a view of the page: '#/', '#/events/evt_...'.  Options are Playwright's, and `once` (browser.mjs).
export async function openOps(browser, server, view, options) {
  const page = await browser.page(options);
  await page.goto(urlOf(server, `/ops${view}`));
  page.empty = async () => page.url().startsWith(urlOf(server, '/ops#')) && page.evaluate((hash) => new Promise((resolve) => {
    window.addEventListener('hashchange', () => resolve(true), { once: true }); // after the page's own listener, which shows the view
    window.location.hash = hash;
  }), EMPTY);
  return page;
}
