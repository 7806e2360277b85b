// A venue of 100,000 seats for the tests of the seat map, and the means to measure a page that shows it.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { openMap } from './seat_map.mjs';
import { sleep } from './server.mjs';

const SECTIONS = 20, ROWS = 50, SEATS = 100;

export const largeEvent = (server) => server.createEvent({
  sections: Array.from({ length: SECTIONS }, (_, i) => ({ name: `S${i + 1}`, tier: 'ABCD'[i % 4], price: 1000 * (i % 4 + 1), rows: ROWS, seats_per_row: SEATS })),
});

const rowName = (i) => (i < 26 ? '' : 'A') + String.fromCharCode(65 + i % 26);

// The ids of `n` seats from number `from` on, of an order that jumps about the venue.
export function someSeats(from, n) {
  return Array.from({ length: n }, (_, k) => {
    const i = ((from + k) * 7919) % (SECTIONS * ROWS * SEATS);
    return `S${i % SECTIONS + 1}-${rowName(Math.floor(i / SECTIONS) % ROWS)}-${Math.floor(i / (SECTIONS * ROWS)) + 1}`;
  });
}

// Blocks and unblocks seats, ten requests per second, at this rate.
export async function changeSeats(server, event, { perSecond, seconds }) {
  const n = perSecond / 10;
  const began = Date.now();
  for (let round = 0; round < seconds * 10; round++) {
    const act = round % 20 < 10 ? 'block' : 'unblock';
    const answer = await server.post(`/v1/events/${event.id}/${act}`, { seats: someSeats((round % 10) * n, n) });
    assert.equal(answer.status, 200, answer.text);
    await sleep(Math.max(0, began + (round + 1) * 100 - Date.now()));
  }
}

// Opens the map in a page that records how long the script of each frame took (`frames`) and every task of more than 50 ms
// (`longTasks`).
export async function openLargeMap(browser, shop, options) {
  const page = await browser.page({ once: true });
  await page.addInitScript(() => {
    globalThis.frames = [];
    globalThis.longTasks = [];
    const request = globalThis.requestAnimationFrame;
    globalThis.requestAnimationFrame = (work) => request((now) => {
      const began = performance.now();
      work(now);
      globalThis.frames.push(performance.now() - began);
    });
    new PerformanceObserver((list) => globalThis.longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ['longtask'] });
  });
  await openMap(browser, shop, { ...options, page });
  await page.waitForFunction(() => performance.getEntriesByName('holdfast-first-draw').length > 0);
  return page;
}

export async function zoomBy(page, steps) {
  const before = (await page.map('seatPosition', 'S1-A-1')).size;
  await page.keyboard.down('Control');
  for (let i = 0; i < steps; i++) await page.mouse.wheel(0, -120);
  await page.keyboard.up('Control');
  await page.waitForFunction((size) => globalThis.map.seatPosition('S1-A-1').size > size, before);
}

export const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

// What a page takes of memory after a collection of garbage, in MiB: { heap, resident }, where resident counts all renderers of
// the browser.
export async function memoryOf(browser, page) {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  await session.send('Performance.enable');
  const { metrics } = await session.send('Performance.getMetrics');
  const heap = metrics.find(({ name }) => name === 'JSHeapUsedSize').value / 2 ** 20;
  await session.detach();
  const whole = await browser.browser.newBrowserCDPSession();
  const { processInfo } = await whole.send('SystemInfo.getProcessInfo');
  await whole.detach();
  const residentKb = processInfo.filter(({ type }) => type === 'renderer')
    .map(({ id }) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0));
  return { heap, resident: residentKb.reduce((sum, kb) => sum + kb, 0) / 1024 };
}

const BUSYNESS_MAX = 4;

// How many times longer work takes now than it would if nothing else used the processor: 1 on an idle machine, BUSYNESS_MAX at
// most.
export function busyness() {
  const list = Array.from({ length: 30_000 }, (_, i) => ({ id: `S-A-${i}`, x: i, y: -i }));
  const began = performance.now(), before = process.cpuUsage();
  for (let i = 0; i < 6; i++) JSON.parse(JSON.stringify(list));
  const { user, system } = process.cpuUsage(before);
  return Math.min(BUSYNESS_MAX, Math.max(1, (performance.now() - began) / ((user + system) / 1000)));
}
