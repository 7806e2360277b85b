#!/usr/bin/env node
// Takes the pictures of docs/images anew, with the programs of build/ and a real Chromium: `make images`.  With names of pictures
// it takes only those: scripts/take-images.mjs events-page buyer-phone.
//
// What is on sale, held and sold is the same each time; times of day and the numbers of the lab are not.

import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { openBrowser, urlOf } from '../tests/support/browser.mjs';
import { holdfast } from '../tests/support/cli.mjs';
import { reap, start, tempDir } from '../tests/support/server.mjs';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const IMAGES = path.join(ROOT, 'docs/images');
const read = (file) => JSON.parse(fs.readFileSync(path.join(ROOT, file), 'utf8'));
const wanted = process.argv.slice(2);

const ZONE = { timezoneId: 'Europe/Berlin' }; // that of the events
const DESK = { ...ZONE, viewport: { width: 1280, height: 860 } };
const PHONE = { ...ZONE, viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

const take = (page, name, options) => page.screenshot({ path: path.join(IMAGES, `${name}.png`), ...options });

// The halls of the list, in the order of their dates.  `part` of the places is sold.
const EVENTS = [
  { file: 'share/holdfast/theatre.json', name: 'Gala', venue: 'Small theatre', starts_at: '2040-03-12T19:30:00+01:00', part: 0 },
  { file: 'tests/fixtures/plans/cabaret-tables.json', name: 'Cabaret at Midnight', venue: 'Bar Blau', starts_at: '2040-03-14T23:00:00+01:00', part: 0.95 },
  { file: 'tests/fixtures/plans/arena-in-the-round.json', name: 'Boxing Night', venue: 'Arena', starts_at: '2040-03-20T20:00:00+01:00', part: 0.4 },
  { file: 'tests/fixtures/plans/circus-ring.json', name: 'Circus Medrano', venue: 'Big top, fairground', starts_at: '2040-03-21T15:00:00+01:00', part: 1 },
  { file: 'tests/fixtures/plans/festival-areas.json', name: 'Summer Open Air', venue: 'Meadow', starts_at: '2040-06-27T14:00:00+02:00', part: 0.1 },
  { file: 'tests/fixtures/plans/thrust-stage.json', name: 'As You Like It', venue: 'Playhouse', starts_at: '2040-07-02T19:30:00+02:00', part: 0.2 },
];

const must = (answer) => {
  if (answer.status >= 300) throw new Error(answer.text);
  return answer.json;
};

async function sell(server, event, seats) {
  for (let i = 0; i < seats.length; i += 10) {
    const hold = await server.grant(event, seats.slice(i, i + 10));
    must(await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence }));
  }
}

async function makeEvents(server) {
  const made = [];
  for (const { file, part, ...fields } of EVENTS) {
    const event = must(await server.post('/v1/events', { ...read(file), ...fields, timezone: 'Europe/Berlin' }));
    const { sections } = await server.read(`/v1/events/${event.id}/plan`);
    const seats = sections.flatMap(({ rows }) => rows.flatMap((row) => row.seats.map(({ id }) => id)));
    await sell(server, event, seats.slice(0, Math.round(part * seats.length)));
    for (const { name, capacity } of part === 1 ? event.areas : []) must(await server.post(`/v1/events/${event.id}/block`, { areas: { [name]: capacity } }));
    made.push({ ...event, ids: seats });
  }
  return made;
}

// Some seats of the theatre are sold, some held, and the first of the stalls are fought over.
async function fight(server, event) {
  const row = (name, from, to) => Array.from({ length: to - from + 1 }, (_, i) => `Stalls-${name}-${from + i}`);
  await sell(server, event, [...row('A', 5, 8), ...row('C', 3, 9), ...row('E', 6, 13), ...row('F', 10, 16), 'Box-1-1', 'Box-1-2', 'Box-6-1', 'Box-6-2', 'Box-6-3', 'Box-6-4']);
  for (const seats of [row('A', 9, 10), row('B', 8, 11), row('D', 5, 8), row('G', 14, 15), ['Box-7-1', 'Box-7-2']]) await server.grant(event, seats);
  for (let round = 0; round < 40; round++) {
    for (const [i, seat] of [...row('A', 5, 10), ...row('B', 8, 11), ...row('D', 5, 8)].entries()) if (round % (1 + (i % 7)) === 0) await server.hold(event, seat);
  }
}

async function takePages(browser) {
  const server = await start();
  const events = await makeEvents(server), [gala] = events;
  await fight(server, gala);
  const shown = async (page, target) => {
    await page.goto(urlOf(server, target));
    return page;
  };
  const onMap = (page) => page.evaluate(async () => {
    const map = document.querySelector('holdfast-seats');
    await map.ready;
    for (const id of ['Stalls-H-8', 'Stalls-H-9']) map.select(id);
  });
  const rest = (page) => page.evaluate(async () => { for (let n = 0; n < 60; n++) await new Promise((resolve) => { requestAnimationFrame(resolve); }); });
  const pictures = {
    'events-page': async (page) => {
      await shown(page, '/');
      await page.getByRole('listitem').nth(EVENTS.length - 1).waitFor();
      await page.locator('canvas').nth(EVENTS.length - 1).waitFor();
      await page.waitForFunction(() => [...document.querySelectorAll('.event-price')].every((price) => price.textContent !== ''));
    },
    'buyer-page': async (page) => { await onMap(await shown(page, `/e/${gala.id}`)); },
    'buyer-phone': async (page) => { await onMap(await shown(page, `/e/${gala.id}`)); },
    'operator-page': async (page) => {
      await shown(page, `/ops#/events/${gala.id}`);
      await page.getByRole('radio', { name: 'Refusals' }).check();
      await page.getByRole('textbox', { name: 'Seat', exact: true }).fill('Stalls-A-9');
      await page.getByRole('button', { name: 'Show history' }).click();
      await page.getByText('Seat Stalls-A-9').waitFor();
      await page.evaluate(() => scrollTo(0, 0));
    },
  };
  for (const [name, prepare] of Object.entries(pictures)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const page = await browser.page(name === 'buyer-phone' ? PHONE : DESK);
    await prepare(page);
    await rest(page);
    await take(page, name, { fullPage: name === 'events-page' });
    await page.done();
  }
  await server.stop();
}

// Parts of the report of the lab: the tiles, one race, and the first story.
async function takeReport(browser) {
  const out = path.join(tempDir(), 'report');
  const { code, stderr } = await holdfast(undefined, ['lab', 'report', '--out', out, '--users', '500']);
  if (code !== 0) throw new Error(stderr);
  const page = await browser.page({ viewport: { width: 1480, height: 900 } });
  await page.goto(`file://${path.join(out, 'index.html')}`);
  await page.locator('#stories > *').first().waitFor();
  await page.evaluate(() => {
    for (const each of document.querySelectorAll('header .lead, #facts, #race > :not(#tables), #plots, #anomalies > :not(#stories), #locks, footer')) each.remove();
    for (const list of ['#tables', '#stories']) for (const each of [...document.querySelector(list).children].slice(1)) each.remove();
  });
  await take(page, 'lab-report', { fullPage: true });
  await page.done();
}

const browser = await openBrowser();
try {
  if (wanted.length === 0 || wanted.some((name) => name !== 'lab-report')) await takePages(browser);
  if (wanted.length === 0 || wanted.includes('lab-report')) await takeReport(browser);
} finally {
  await browser.close();
  await reap();
}
