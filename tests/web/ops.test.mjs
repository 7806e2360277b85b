// The operator's page: who may see what, the events with their counts, and the charts of the last hour.
// backends: own

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { axe, openBrowser, originsOf, PHONE, urlOf } from '../support/browser.mjs';
import { assertOk } from '../support/expect.mjs';
import { Party, waiting } from '../support/locks.mjs';
import { openOps } from '../support/ops_page.mjs';
import { book } from '../support/payments.mjs';
import { reap, Server, sqliteQuery, until } from '../support/server.mjs';

const ADMIN = 'admin-key-of-the-operators-page';
const SELLER = 'seller-key-of-the-operators-page';
const EVIL = '<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>';
const EVIL_SHORT = '<img src=x onerror=hacked=1>'; // fits into the name of a section

let browser;
before(async () => { browser = await openBrowser(); });
after(async () => { await browser?.close(); await reap(); });

const heading = (page, name) => page.getByRole('heading', { name, exact: true });

describe('on a server with keys', { concurrency: 1 }, () => {
  let server;
  before(async () => {
    server = new Server({ args: ['--journal', 'off'], env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER } });
    await server.launch();
    await server.createEvent({ name: 'Gala' }, { Authorization: `Bearer ${ADMIN}` });
  });
  after(() => server?.stop());

  const signIn = async (page, key) => {
    await page.getByLabel('Access key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };

  it('the page asks for a key, says that a wrong one is wrong, and keeps an admin’s in its tab, over reloads, until somebody signs out', async () => {
    const person = await browser.person();
    const page = await openOps(browser, server, '#/', { page: await person.tab() });
    await heading(page, 'Sign in').waitFor();
    assert.deepEqual(await axe(page), []);
    for (const wrong of ['a-key-that-is-not-one', 'no header takes ümlauts']) {
      await signIn(page, wrong);
      await page.getByRole('alert').filter({ hasText: 'This server does not know that key.' }).waitFor();
    }
    assert.equal(await page.evaluate(() => sessionStorage.length), 0, 'a wrong key is not kept');
    assert.equal(await page.getByRole('table').count(), 0);
    await signIn(page, ADMIN);
    await page.getByRole('link', { name: 'Gala' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'Gala' }).waitFor();
    assert.equal(await page.evaluate((key) => JSON.stringify(localStorage).includes(key) || document.cookie.includes(key) || location.href.includes(key), ADMIN), false);
    const other = await person.tab();
    await other.goto(urlOf(server, '/ops'));
    await heading(other, 'Sign in').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await heading(page, 'Sign in').waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    await signIn(page, ADMIN);
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    assert.deepEqual([...page.complaints, ...other.complaints], []);
    await person.done();
  });

  it('locks have a view only where the server has locks, and a line is drawn only of what was measured', async () => {
    const page = await openOps(browser, server, '#/');
    await signIn(page, ADMIN);
    await page.getByRole('link', { name: 'Payments' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'Locks' }).count(), 0);
    const figure = page.getByRole('figure').filter({ has: heading(page, 'Time to answer a hold') });
    await figure.scrollIntoViewIfNeeded();
    await figure.getByText('Too little was measured for a line.').waitFor(); // nobody has asked this server for a hold yet
    await page.done();
  });

  it('a seller is told what only admins may see and do', async () => {
    const page = await openOps(browser, server, '#/');
    await signIn(page, SELLER);
    await page.getByText('Signed in as seller').waitFor();
    await page.getByText('The charts are for admins').waitFor();
    await page.getByRole('link', { name: 'Audit log' }).click();
    await page.getByText('The audit log is for admins').waitFor();
    await page.getByRole('link', { name: 'Payments' }).click();
    await page.getByText('Jobs are for admins').waitFor();
    await page.getByText('Erasing an owner needs an admin’s key.').waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('link', { name: 'Gala' }).click();
    await page.getByText('Archiving and cancelling an event, ending other people’s holds, and moving or ending entries of its waiting list need an admin’s key.').waitFor();
    await page.getByRole('button', { name: 'Close sales …' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Cancel event …' }).count(), 0);
    await page.getByRole('link', { name: 'Sell at the counter' }).click();
    await page.getByText('The best seats there are').click();
    await page.getByRole('button', { name: 'Hold the best seats' }).click();
    await page.getByRole('button', { name: 'Confirm the sale' }).click();
    await heading(page, 'Sold').waitFor();
    await page.getByRole('button', { name: 'Next customer' }).click();
    await heading(page, 'Choose places').waitFor();
    await page.goto(urlOf(server, '/ops#/create'));
    await page.getByText('Creating an event needs an admin’s key.').waitFor();
    assert.equal(await page.getByRole('alert').filter({ hasText: /\S/ }).count(), 0, 'nothing of it is an error');
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('a key that is taken back leads to the question for a key', async () => {
    const page = await openOps(browser, server, '#/');
    await signIn(page, ADMIN);
    await page.getByRole('link', { name: 'Gala' }).waitFor();
    await page.evaluate(() => sessionStorage.setItem('holdfast-ops-key', 'a-key-of-yesterday'));
    await page.reload();
    await page.getByText('This server does not know that key.').waitFor();
    await page.done();
  });
});

describe('on a server without keys', { concurrency: 1 }, () => {
  let server;
  let event;
  before(async () => {
    server = new Server();
    await server.launch();
    event = await server.createEvent({ name: EVIL, venue: EVIL, sections: [{ name: 'S', tier: 'A', price: 1000, rows: 2, seats_per_row: 10 }, { name: EVIL_SHORT, price: 500, rows: 1, seats_per_row: 1 }], areas: [{ name: `${EVIL_SHORT}2`, price: 500, capacity: 9 }] });
    const hold = await server.grant(event, ['S-A-1', 'S-A-2'], { owner: EVIL });
    await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, reference: EVIL });
    await server.grant(event, 'S-A-3');
    for (let i = 0; i < 3; i++) await server.hold(event, 'S-A-3');
    await server.post(`/v1/events/${event.id}/block`, { seats: ['S-B-1', 'S-B-2', 'S-B-3'] });
  });
  after(() => server?.stop());

  it('the page is open, says so, and shows each event with its counts', async () => {
    // An event of its own: other tests of this server make events and holds at the same time.
    const counted = await server.createEvent({ name: 'Counted', sections: [{ name: 'S', price: 1000, rows: 3, seats_per_row: 10 }] });
    const sold = await server.grant(counted, ['S-A-1', 'S-A-2']);
    assert.equal((await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence })).status, 201);
    await server.grant(counted, 'S-A-3');
    assert.equal((await server.post(`/v1/events/${counted.id}/block`, { seats: ['S-B-1', 'S-B-2', 'S-B-3'] })).status, 200);
    const page = await openOps(browser, server, '#/');
    await page.getByText('This server has no keys: everyone who can reach it is an admin.').waitFor();
    const row = page.getByRole('table', { name: 'Events' }).getByRole('row').filter({ has: page.getByRole('link', { name: 'Counted', exact: true }) });
    await row.waitFor();
    const cells = await row.getByRole('cell').allTextContents();
    assert.deepEqual(cells.slice(2, 7), ['24', '1', '2', '3', '6.7%']);
    await until('the revenue stands in the row', async () => (await row.getByRole('cell').allTextContents()).at(-1) === '$20.00');
    await server.grant(counted, 'S-A-4');
    await until('the counts follow', async () => (await row.getByRole('cell').allTextContents())[3] === '2');
    await until('a rate is known', async () => (await row.getByRole('cell').allTextContents()).at(-2) !== '–');
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  for (const [what, options] of [['light and wide', { colorScheme: 'light' }], ['dark on a telephone, in German', { colorScheme: 'dark', locale: 'de-DE', ...PHONE }]]) {
    it(`on every view axe-core finds nothing, and names with markup in them stay text: ${what}`, async () => {
      const page = await openOps(browser, server, '#/', options);
      for (const view of ['#/', '#/payments', `#/audit?event=${event.id}`, `#/events/${event.id}`]) {
        await page.goto(urlOf(server, `/ops${view}`));
        await page.locator('main table:visible').first().waitFor();
        assert.deepEqual(await axe(page), [], view);
        assert.equal(await page.evaluate(() => globalThis.hacked ?? document.querySelectorAll('main img, main script').length), 0, view);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, `${view} is not wider than the screen`);
        await until('tables that have to be scrolled sideways say so, and no others do', () => page.evaluate(() => [...document.querySelectorAll('main .table')]
          .every((table) => (table.querySelector('.scroll').scrollWidth > table.querySelector('.scroll').clientWidth + 1) !== table.querySelector('.scrolls').hidden)));
      }
      assert.deepEqual(originsOf(page), [urlOf(server, '')]);
      assert.deepEqual(page.complaints, []);
      await page.done();
    });
  }

  it('names with markup in them stay text where something is done', async () => {
    const page = await openOps(browser, server, `#/events/${event.id}`);
    await heading(page, EVIL).waitFor();
    await page.getByLabel('Seat', { exact: true }).fill(`${EVIL_SHORT}-A-1`);
    await page.keyboard.press('Enter');
    await heading(page, `Seat ${EVIL_SHORT}-A-1`).waitFor();
    await page.getByRole('button', { name: 'Block places …', exact: true }).click();
    await page.getByRole('dialog').getByLabel(EVIL_SHORT, { exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Close sales …' }).click();
    await page.getByRole('dialog').getByText(EVIL).waitFor();
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    assert.deepEqual(originsOf(page), [urlOf(server, '')]);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('no other page can frame this one', async () => {
    const { headers } = await server.get('/ops');
    assert.match(headers['content-security-policy'], /frame-ancestors 'none'/);
    assert.doesNotMatch(headers['content-security-policy'], /unsafe-/);
  });

  it('the log is searched by event, seat and hold, page by page, a hold’s id stays out of the address, and no request leaves the server', async () => {
    const busy = await server.createEvent({ name: 'Busy', max_per_hold: 20 });
    const seats = Object.keys(await server.map(busy));
    for (let i = 0; i < 3; i++) {
      const all = await server.grant(busy, seats);
      assert.equal((await server.del(`/v1/holds/${all.id}`)).status, 204);
    }
    const one = await server.grant(busy, 'S-A-1');
    const { data } = await server.read(`/v1/audit?event=${busy.id}&limit=1000`);
    assert.ok(data.length > 100);
    const page = await openOps(browser, server, '#/audit');
    const choice = page.getByLabel('Event', { exact: true });
    const newest = (await server.read('/v1/events?limit=1')).data[0].id;
    await until('it opens with the newest event', async () => await choice.inputValue() === newest);
    await page.getByRole('status').filter({ hasText: /found\.$/ }).waitFor();
    await choice.selectOption('');
    await page.getByRole('alert').filter({ hasText: 'Choose an event, or name a hold.' }).waitFor();
    let go;
    const answer = new Promise((resolve) => { go = resolve; });
    await page.route('**/seats', async (route) => { await answer; await route.continue(); });
    await choice.selectOption('Busy');
    const more = page.getByRole('button', { name: 'Show more' });
    assert.equal(await more.isDisabled(), true, 'rows of the search before would come to those of this one');
    await more.evaluate((element) => element.click());
    go();
    await page.getByRole('status').filter({ hasText: '100 changes found.' }).waitFor();
    await more.click();
    await page.getByRole('status').filter({ hasText: `${data.length} changes found.` }).waitFor();
    const rows = page.getByRole('table', { name: 'Changes' }).getByRole('row');
    assert.deepEqual(await rows.evaluateAll((list) => list.slice(1).map((row) => Number(row.cells[0].textContent.replaceAll(',', '')))), data.map(({ seq }) => seq).reverse());
    const by = await page.getByRole('columnheader', { name: 'By', exact: true }).evaluate((cell) => cell.cellIndex);
    assert.deepEqual(await rows.evaluateAll((list, at) => list.slice(1).map((row) => row.cells[at].textContent), by), data.map(({ actor }) => actor).reverse());
    await page.getByLabel('Seat').fill('S-A-1');
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: `${data.filter(({ seat }) => seat === 'S-A-1').length} changes found.` }).waitFor();
    await rows.nth(1).getByRole('button').click();
    await until('only the hold is left', async () => await rows.count() === 2);
    assert.equal(await page.getByLabel('Hold').inputValue(), one.id);
    assert.equal(page.url().includes('hold'), false);
    assert.match(page.url(), new RegExp(`event=${busy.id}`));
    await page.reload();
    await page.getByRole('status').filter({ hasText: 'changes found.' }).waitFor();
    assert.equal(await page.getByLabel('Hold').inputValue(), '');
    await page.goto(urlOf(server, '/ops#/audit?event=evt_nothing'));
    await page.getByRole('alert').filter({ hasText: /event/i }).waitFor();
    assert.deepEqual(originsOf(page), [urlOf(server, '')]); // also of those that the page was loaded with
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('the jobs that are owed are listed by kind, and an owner can be erased', async () => {
    await until('there are samples', async () => (await server.read('/v1/ops/samples')).at.length > 0);
    const { series } = await server.read('/v1/ops/samples');
    await server.grant(event, 'S-B-10', { owner: 'Zoe' });
    await book(server, await server.grant(event, 'S-B-9'));
    // As a restore would leave it, but the provider is asked much later.
    sqliteQuery(server.database, `INSERT INTO jobs SELECT booking, payment + 1, 5, 1, payment, 0, 0, 0, x'00', 0, 0, 0, 1, ${Date.now() + 1e9}, 0, 0, NULL
      FROM payments LIMIT 1`, { readOnly: false });
    const page = await openOps(browser, server, '#/payments');
    const jobs = page.getByRole('table', { name: 'Jobs' }).getByRole('rowheader');
    await jobs.first().waitFor();
    assert.deepEqual((await jobs.allTextContents()).sort(), Object.keys(series.jobs_pending).sort());
    await page.getByRole('button', { name: 'Erase an owner …' }).click();
    await page.getByRole('dialog').getByLabel('Owner').fill('Zoe');
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'The owner is erased. Holds: 1. Bookings: 0.' }).waitFor();
    assert.deepEqual((await server.read(`/v1/holds?event=${event.id}&owner=Zoe`)).data, []);
    await page.getByRole('status').filter({ hasText: /^One payment has not been compared with the payment provider/ }).waitFor();
    assert.equal(await server.metric('holdfast_restore_unchecked'), 1);
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('locks show who holds and awaits them, and the servers of the cell', async () => {
    const ann = await Party.open(server, { label: EVIL });
    const ben = await Party.open(server, { label: 'cron-b' });
    const lock = await ann.take('nightly');
    const waits = ben.ask('nightly', { owner: 'b', wait_ms: 60_000 });
    await waiting(server, 'nightly', ['cron-b']);
    const page = await openOps(browser, server, '#/');
    await page.getByRole('link', { name: 'Locks' }).click();
    const row = page.getByRole('row', { name: /nightly.*cron-b/ });
    await row.waitFor();
    const [holder, waiter] = await row.getByRole('cell').allTextContents();
    assert.match(holder, /\(exclusive\), for \d+ seconds?$/);
    assert.ok(holder.startsWith(EVIL));
    assert.match(waiter, /^cron-b \(exclusive\), for \d+ seconds?$/);
    await page.getByText(`http://${server.host}:${server.port}`).first().waitFor();
    assert.deepEqual(await axe(page), []);
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    assertOk(await ann.release('nightly', lock.owner));
    assertOk(await waits);
    await until('the table follows', async () => (await row.getByRole('cell').first().textContent()).startsWith('cron-b (exclusive), for '));
    await page.getByLabel('Only locks that somebody waits for').check();
    await page.getByText('There are no locks.').waitFor();
    assert.deepEqual(page.complaints, []);
    await page.done();
  });

  it('an unknown view shows the overview, and an unknown event says so', async () => {
    const page = await openOps(browser, server, '#/nothing');
    await heading(page, 'Overview').waitFor();
    await page.goto(urlOf(server, `/ops#/events/evt_${'0'.repeat(28)}`));
    await heading(page, 'No such event').waitFor();
    await page.done();
  });

  it('while the server does not answer the page says so, and recovers by itself', async () => {
    const page = await openOps(browser, server, '#/');
    await page.getByRole('table', { name: 'Events' }).waitFor();
    await page.context().setOffline(true);
    await page.getByRole('alert').filter({ hasText: 'The server cannot be reached. What you see may be old' }).waitFor();
    await page.context().setOffline(false);
    await page.getByRole('alert').filter({ hasText: 'cannot be reached' }).waitFor({ state: 'hidden' });
    await page.done();
  });

  // The last, since the server takes a sample every five seconds.
  it('the charts show what the server measured, and tables say the same in numbers', async () => {
    const read = async () => (await server.read('/v1/ops/samples')).series;
    await until('there are samples', async () => (await read()).holds_taken_per_s.filter((n) => n !== null).length >= 2);
    const page = await openOps(browser, server, '#/', { viewport: { width: 1280, height: 3000 } }); // charts are drawn where they are seen
    const figure = page.getByRole('figure').filter({ has: heading(page, 'Requests for holds') });
    const short = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });
    for (const [line, name] of [[/Granted/, 'holds_granted_per_s'], [/Seat taken/, 'holds_taken_per_s']]) {
      await until(`the table has the highest of ${name}`, async () => {
        const most = Math.max(...(await read())[name].filter((n) => n !== null));
        return most > 0 && await figure.getByRole('row', { name: line }).getByRole('cell').nth(1).textContent() === `${short.format(most)}/s`;
      });
    }
    const charts = await page.getByRole('figure').count();
    assert.equal(charts, 14);
    assert.equal(await page.getByRole('img').count(), charts, 'every chart has a name');
    await until('every chart has points', () => page.evaluate(() => [...document.querySelectorAll('figure')].every((each) => Number(each.dataset.points) >= 2)));
    const drawn = await page.evaluate(() => [...document.querySelectorAll('canvas')].map((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value) => value !== 0);
    }));
    assert.ok(drawn.every(Boolean), 'every canvas is drawn on');
    await figure.getByText('Too little was measured for a line.').waitFor({ state: 'hidden' });
    // Samples that are still being read when somebody goes to another view are drawn nowhere.
    let isAsked = false, answer;
    const answered = new Promise((resolve) => { answer = resolve; });
    await page.route('**/v1/ops/samples*', async (route) => { isAsked = true; await answered; await route.continue(); });
    await until('the page asks for samples', () => isAsked);
    await page.getByRole('link', { name: 'Locks' }).click();
    await heading(page, 'Locks').waitFor();
    const late = page.waitForResponse(/samples/);
    answer();
    await (await late).finished();
    await page.evaluate(() => new Promise((resolve) => { setTimeout(resolve, 100); })); // the page has read it
    assert.deepEqual(page.complaints, []);
    await page.done();
  });
});
