// The operator's page.  A test leaves it loaded for the next test, which opens another view of it; on a server with keys the page
// then asks for one.

import { urlOf } from './browser.mjs';

const EMPTY = '#/audit?event='; // a view that asks the server for nothing from time to time

// Opens a view of the page: '#/', '#/events/evt_...'.  Options are Playwright's, and `once` (browser.mjs), or `page`, a page to use.
export async function openOps(browser, server, view, { page: given, ...options } = {}) {
  const page = given ?? await browser.page(options);
  await page.goto(urlOf(server, `/ops${view}`));
  page.empty = async () => page.url().startsWith(urlOf(server, '/ops#')) && page.evaluate((hash) => {
    const signOut = document.querySelector('#who button');
    if (!signOut && document.querySelector('form.key')) return false; // with what the test has typed
    signOut?.click();
    return new Promise((resolve) => {
      window.addEventListener('hashchange', () => resolve(true), { once: true }); // after the page's own listener, which shows the view
      window.location.hash = hash;
    });
  }, EMPTY);
  return page;
}
