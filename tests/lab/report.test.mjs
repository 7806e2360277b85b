// `holdfast lab report`: the page in a real browser, compared with the JSON that it was made from.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openBrowser } from '../support/browser.mjs';
import { begin, holdfast } from '../support/cli.mjs';
import { postgresBin } from '../support/postgres.mjs';
import { tempDir } from '../support/server.mjs';

const json = (dir, name) => JSON.parse(fs.readFileSync(path.join(dir, name), 'utf8'));

// A cell shows the number: all digits of a whole number, three digits of any other.
function assertShows(text, value, what) {
  if (value === null || value === undefined) return assert.equal(text, '–', what);
  const shown = Number(text.replaceAll(',', ''));
  const off = Number.isInteger(value) ? 0 : Math.max(Math.abs(value) * 0.0051, Math.abs(value) >= 100 ? 0.5 : 0);
  assert.ok(Math.abs(shown - value) <= off, `${what}: ${text} for ${value}`);
}

// A PATH with PostgreSQL and Redis only: the anomalies of slower servers have a suite of their own.
function fewServers() {
  const dir = tempDir();
  fs.chmodSync(dir, 0o755); // the servers run as another user when the test runs as root
  fs.symlinkSync(execFileSync('sh', ['-c', 'command -v redis-server'], { encoding: 'utf8' }).trim(), path.join(dir, 'redis-server'));
  return `${dir}:${postgresBin()}`;
}

describe('holdfast lab report', () => {
  const out = path.join(tempDir(), 'report');
  let browser, made, shown; // shown: the page, opened once for all tests that only read it

  before(async () => {
    [browser, made] = await Promise.all([
      openBrowser(),
      holdfast(undefined, ['lab', 'report', '--out', out, '--users', '5,20'], { env: { PATH: fewServers() } }),
    ]);
    shown = await open(out);
  });
  after(() => browser?.close());

  // Opens the page of a directory and collects its errors and its requests (browser.mjs).
  async function open(dir, options = {}) {
    const page = await browser.page({ viewport: { width: 1400, height: 900 }, ...options });
    await page.goto(pathToFileURL(path.join(dir, 'index.html')).href);
    await page.waitForSelector('html[data-ready=yes]');
    return page;
  }

  it('runs both and writes a page and its data', () => {
    const isOk = ['race', 'anomalies'].every((name) => JSON.parse(fs.readFileSync(path.join(out, `${name}.json`), 'utf8')).ok);
    assert.equal(made.code, isOk ? 0 : 1, made.stderr); // on a busy machine users may come one after the other, so that the naive way does not break
    assert.deepEqual(fs.readdirSync(out).sort(), ['anomalies.json', 'index.html', 'race.json']);
    assert.equal(json(out, 'race.json').object, 'lab.race');
    assert.equal(json(out, 'anomalies.json').object, 'lab.anomalies');
  });

  it('opens without an error and loads nothing', async () => {
    assert.deepEqual(shown.complaints, []);
    assert.deepEqual(shown.requests.filter((url) => !url.startsWith('data:')), [pathToFileURL(path.join(out, 'index.html')).href]);
    const text = fs.readFileSync(path.join(out, 'index.html'), 'utf8');
    assert.match(text, /Chart\.js v3[^]*Released under the MIT License/);
    assert.match(text, /Permission is hereby granted, free of charge/);
  });

  it('shows the numbers of the race', async () => {
    const page = shown;
    const race = json(out, 'race.json');
    const rows = await page.$$eval('tr[data-run]', (all) => all.map((row) => ({
      run: Number(row.dataset.run), strategy: row.querySelector('th').textContent,
      cells: [...row.querySelectorAll('td')].map(({ dataset, textContent }) => [dataset.field, dataset.verdict ?? textContent]),
    })));
    assert.deepEqual(rows.map(({ run }) => run).sort((a, b) => a - b), race.runs.map((_, index) => index));
    for (const { run, strategy, cells } of rows) {
      assert.equal(strategy, race.runs[run].strategy);
      assert.equal(cells.length, 15);
      for (const [field, text] of cells) {
        const value = field.split('.').reduce((at, key) => at?.[key], race.runs[run]);
        if (field === 'verdict') assert.equal(text, value);
        else if (field === 'several_servers') assert.equal(text, value ? 'yes' : 'no');
        else assertShows(text, value, `${strategy} ${field}`);
      }
    }
    const twice = race.runs.filter((run) => !run.promises_correct).reduce((sum, run) => sum + run.double_sold, 0);
    assert.ok(twice > 0);
    assertShows(await page.textContent('[data-tile=twice]'), twice, 'sold again');
    assert.equal(await page.locator('#charts canvas').count(), 3 + 2);
  });

  it('draws the numbers of the race in the plots', async () => {
    const page = shown;
    const race = json(out, 'race.json');
    const drawn = await page.$$eval('#charts canvas', (all) => all.map((canvas) => Chart.getChart(canvas).data.datasets
      .map(({ label, data }) => [label, data.map(({ x, y }) => [x, y])])));
    const [throughput, , , ...distributions] = drawn.map((datasets) => new Map(datasets));
    for (const { strategy, users, throughput: value, losers_ms: losers } of race.runs) {
      assert.deepEqual(throughput.get(strategy).find(([x]) => x === users), [users, value]);
      const points = distributions[users === 5 ? 0 : 1].get(strategy);
      assert.deepEqual(points.map(([x]) => x), (losers?.quantiles ?? []).map((ms) => Math.max(ms, 0.01)));
    }
  });

  it('draws every step of the anomalies, and how they end', async () => {
    const page = shown;
    const { anomalies } = json(out, 'anomalies.json');
    const drawn = await page.$$eval('article', (all) => all.map((article) => ({
      name: article.id,
      sides: [...article.querySelectorAll('.side')].map((side) => ({
        verdict: side.dataset.verdict, evidence: side.querySelector('.evidence').textContent,
        arrows: side.querySelectorAll('svg line.arrow').length, thoughts: side.querySelectorAll('svg rect.cloud').length,
        actors: [...side.querySelectorAll('svg text.name')].map(({ textContent }) => textContent),
        inside: [...side.querySelectorAll('svg text')].every((text) => {
          const { x, width } = text.getBBox();
          return x >= 0 && x + width <= text.ownerSVGElement.viewBox.baseVal.width;
        }),
      })),
    })));
    assert.deepEqual(drawn, anomalies.map(({ name, sides }) => ({
      name,
      sides: sides.map(({ verdict, evidence, steps, actors }) => ({
        verdict, evidence, actors, inside: true, thoughts: steps.filter(({ thinks }) => thinks).length,
        arrows: steps.filter(({ from, to }) => from !== to).length + steps.filter(({ answer }) => answer !== null).length,
      })),
    })));
  });

  it('can be read on a telephone', async () => {
    const page = await open(out, { viewport: { width: 390, height: 800 } });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
    const heights = await page.$$eval('svg text.said', (all) => all.map((text) => text.getBoundingClientRect().height));
    assert.ok(Math.min(...heights) >= 10, `${Math.min(...heights)} px`);
    await page.done();
  });

  it('prints on white paper, with nothing cut off', async () => {
    const page = await open(out, { once: true, colorScheme: 'dark' });
    assert.deepEqual(page.complaints, []);
    const pdf = await page.pdf({ preferCSSPageSize: true });
    assert.equal(pdf.subarray(0, 5).toString(), '%PDF-');
    assert.ok(pdf.toString('latin1').match(/\/Type \/Page\b/g).length >= 4);
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    await page.setViewportSize({ width: 1032, height: 700 }); // A4 landscape within its margins
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
    await page.done();
  });

  it('is written where no servers are installed, and names what is missing', async () => {
    const dir = path.join(tempDir(), 'report');
    const { code, stderr } = await holdfast(undefined, ['lab', 'report', '--out', dir, '--users', '5'], { env: { PATH: '/nonexistent' } });
    assert.ok([0, 1].includes(code), stderr); // as above
    const page = await open(dir);
    assert.deepEqual(page.complaints, []);
    assert.match(await page.textContent('#race-notes'), /PostgreSQL is not installed.*two-layer did not run: needs Redis/);
    assert.match(await page.textContent('#anomaly-notes'), /PostgreSQL is not installed.*Left out: deadlock: SQLite locks/);
    assert.equal(await page.textContent('#anomalies h2'), 'Six races, step by step');
    assert.equal(await page.locator('article').count(), 6);
    assert.match(await page.textContent('thead'), /SQL statements/);
    await page.done();
  });

  it('leaves the last report as it was when it is stopped', async () => {
    const before = fs.readFileSync(path.join(out, 'race.json'), 'utf8');
    const run = begin(undefined, ['lab', 'report', '--out', out, '--users', '10000']);
    await new Promise((resolve) => { setTimeout(resolve, 500); });
    run.child.kill('SIGTERM');
    await run.result;
    assert.equal(fs.readFileSync(path.join(out, 'race.json'), 'utf8'), before);
    assert.deepEqual(fs.readdirSync(out).sort(), ['anomalies.json', 'index.html', 'race.json']);
  });

  it('shows measured locks if it is given them', async () => {
    const dir = tempDir();
    const measured = await holdfast(undefined, ['lab', 'locks', '--quick', '--seconds', '0.1', '--servers', 'memory', '--json']);
    const told = JSON.parse(measured.stdout);
    // What this machine measures depends on what else it does, so the cells that are looked at are given.
    const [{ hand_over: crowds, faults }] = told.drivers;
    const order = (kept) => crowds.map((crowd) => ({ ...crowd, why: null, pairs: crowd.waiters - 1, in_order: kept ? crowd.waiters - 1 : 0 }));
    const fault = { why: null, ttl_ms: 500, locks: 3, overlapped: 0, kept: 0, stuck: 0, grants: 20, overlaps: 0, fences_fell: 0,
      gap_p50_ms: 343.2, gap_max_ms: 491.7, outage_ms: 0, declared: false };
    Object.assign(told.drivers[0], { speed: { why: null, n: 2075, per_second: 20744.4, p50_us: 39, p99_us: 197 }, hand_over: order(true) });
    told.drivers.push({ ...told.drivers[0], driver: 'sqlite', hand_over: order(false), faults: {
      ...faults, client_paused: { ...fault, overlapped: 1, overlaps: 1 }, client_killed: fault } });
    fs.writeFileSync(path.join(dir, 'locks'), JSON.stringify(told));
    const args = ['lab', 'report', '--out', path.join(dir, 'out'), '--race', path.join(out, 'race.json'), '--anomalies', path.join(out, 'anomalies.json')];
    assert.equal((await holdfast(undefined, [...args, '--locks', path.join(dir, 'locks')])).code, told.ok ? 0 : 1);
    assert.deepEqual(json(path.join(dir, 'out'), 'locks.json'), told);
    assert.equal(await shown.isVisible('#locks'), false);
    const page = await open(path.join(dir, 'out'));
    assert.deepEqual(page.complaints, []);
    assert.equal(await page.isVisible('#locks'), true);
    const cell = (row, driver, n = 0) => page.locator(`tr[data-lock-row="${row}"] td[data-driver=${driver}]`).nth(n).textContent();
    assertShows(await cell('speed', 'sqlite'), 20744, 'acquire and release');
    assert.equal(await cell('hand_over.1', 'memory', 1), 'kept, 3 of 3');
    assert.equal(await cell('hand_over.1', 'sqlite', 1), 'not kept, 0 of 3');
    assert.match(await cell('faults.client_paused', 'sqlite'), /two holders, 1 of 3/);
    assert.match(await cell('faults.client_killed', 'sqlite'), /passed on, 3 of 3, 0\.49\d* s/);
    assert.match(await cell('traffic', 'sqlite'), /^–\d$/);
    assert.match(await page.textContent('#lock-notes'), /1: not applicable: there is no server\./);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
    await page.done();
  });

  it('shows the files that it is given, broken promises included, and exits with 1', async () => {
    const dir = tempDir();
    const race = json(out, 'race.json');
    const anomalies = json(out, 'anomalies.json');
    Object.assign(race.runs.at(-1), { double_sold: 3, verdict: 'broken' });
    race.ok = false;
    anomalies.anomalies[0].sides[0].evidence = '</script><b>never markup</b>';
    for (const [name, value] of Object.entries({ race, anomalies })) fs.writeFileSync(path.join(dir, name), JSON.stringify(value));
    const args = ['lab', 'report', '--out', path.join(dir, 'out'), '--race', path.join(dir, 'race'), '--anomalies', path.join(dir, 'anomalies')];
    assert.equal((await holdfast(undefined, args)).code, 1);
    assert.deepEqual(json(path.join(dir, 'out'), 'race.json'), race);
    const page = await open(path.join(dir, 'out'));
    assert.deepEqual(page.complaints, []);
    assert.equal(await page.textContent('tr.broken td.double'), '3');
    assert.equal(await page.textContent('.evidence'), '</script><b>never markup</b>');
    await page.done();
    const swapped = await holdfast(undefined, ['lab', 'report', '--out', path.join(dir, 'out'), '--race', path.join(dir, 'anomalies')]);
    assert.equal(swapped.code, 65);
    assert.match(swapped.stderr, /is not a lab\.race/);
  });
});
