// `holdfast lab report`: all that the lab plays on servers of its own, made once: in the race every strategy keeps its promise,
// each anomaly ends as it should on both sides, and the page in a real browser shows the JSON that it was made from.
// backends: own
// time limit: 480 s

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { openBrowser } from '../support/browser.mjs';
import { begin, holdfast } from '../support/cli.mjs';
import { ANOMALIES, assertRun, nothingIsLeft, playground, soldOnce } from '../support/lab.mjs';
import { tempDir } from '../support/server.mjs';

const json = (dir, name) => JSON.parse(fs.readFileSync(path.join(dir, name), 'utf8'));

// A cell shows the number: all digits of a whole number, three digits of any other.
function assertShows(text, value, what) {
  if (value === null || value === undefined) return assert.equal(text, '–', what);
  const shown = Number(text.replaceAll(',', ''));
  const off = Number.isInteger(value) ? 0 : Math.max(Math.abs(value) * 0.0051, Math.abs(value) >= 100 ? 0.5 : 0);
  assert.ok(Math.abs(shown - value) <= off, `${what}: ${text} for ${value}`);
}

const PROMISES = ['pessimistic', 'optimistic', 'unique', 'redis-lease', 'two-layer', 'skip-locked', 'counter', 'counter-async', 'inventory', 'queue', 'holdfast'];
// How many users race: `make soak` (HF_SOAK=1) has the crowds.  On PostgreSQL each user has a connection, which is a process.
const CROWDS = process.env.HF_SOAK === '1' ? [5, 20, 50, 500] : [4, 10];

// "docs/locks.md (Renewal)" names a page and one of its headings.
function missingPages(more) {
  return [...more.matchAll(/docs\/\S+?\.md(?: \(([^)]+)\))?/g)].filter(([page, heading]) => {
    const file = new URL(`../../${page.split(' ')[0]}`, import.meta.url);
    return !fs.existsSync(file) || (heading && !fs.readFileSync(file, 'utf8').split('\n').some((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading));
  });
}

describe('holdfast lab report', () => {
  const place = playground();
  const out = path.join(tempDir(), 'report');
  const small = path.join(tempDir(), 'report'); // made where no servers are installed
  let browser, made, madeSmall, shown; // shown: the page, opened once for all tests that only read it
  let race, anomalies;

  before(async () => {
    [browser, made, madeSmall] = await Promise.all([
      openBrowser(),
      holdfast(undefined, ['lab', 'report', '--out', out, '--users', CROWDS.join()], { env: place.env }),
      holdfast(undefined, ['lab', 'report', '--out', small, '--users', '5'], { env: { PATH: '/nonexistent' } }),
    ]);
    race = json(out, 'race.json');
    anomalies = json(out, 'anomalies.json');
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
    assert.equal(made.code, race.ok && anomalies.ok ? 0 : 1, made.stderr);
    assert.equal(made.stderr, '');
    assert.deepEqual(fs.readdirSync(out).sort(), ['anomalies.json', 'index.html', 'race.json']);
    assert.equal(race.object, 'lab.race');
    assert.equal(anomalies.object, 'lab.anomalies');
  });

  it('leaves no process and no file', () => nothingIsLeft(place));

  describe('its race on throwaway PostgreSQL and Redis', () => {
    it(`sells one seat exactly once to ${CROWDS.join(' and ')} users by every strategy that promises it`, () => {
      assert.deepEqual([...new Set(race.runs.map((run) => run.strategy))], ['naive', ...PROMISES]);
      for (const strategy of PROMISES) {
        const runs = race.runs.filter((run) => run.strategy === strategy);
        assert.deepEqual(runs.map((run) => run.users), CROWDS);
        runs.forEach(soldOnce);
      }
      assert.deepEqual(race.skipped, []);
    });

    it('catches naive selling it twice', () => {
      const caught = race.runs.filter((run) => run.verdict === 'caught');
      assert.ok(caught.length > 0);
      for (const run of caught) {
        assert.equal(run.strategy, 'naive');
        assert.ok(run.tries <= 20);
        assert.equal(run.double_sold, run.winners - 1);
      }
      assert.equal(race.ok, true);
    });

    it('says which strategies keep their promise with several servers', () => {
      const several = new Set(race.runs.filter((run) => run.several_servers).map(({ strategy }) => strategy));
      assert.deepEqual([...several], PROMISES.filter((name) => name !== 'queue'));
    });

    it('has in its JSON what was measured, and on which machine and versions', () => {
      race.runs.forEach(assertRun);
      assert.equal(race.object, 'lab.race');
      assert.ok(Math.abs(Date.now() - Date.parse(race.at)) < 600_000);
      assert.ok(race.machine.cpus >= 1 && race.machine.model && race.machine.memory_bytes > 1e8);
      assert.match(race.machine.kernel, /^Linux /);
      assert.match(race.versions.postgresql, /^\d+\.\d+/);
      assert.match(race.versions.redis, /^\d+\.\d+\.\d+$/);
      assert.match(race.versions.holdfast, /^\d+\.\d+\.\d+$/);
      assert.deepEqual(race.back_end, { ledger: 'postgresql', gate: 'redis' });
      assert.equal(race.retries, 3);
      assert.equal(race.note, null);
    });

    it('has what Holdfast asked of its ledger and its gate', () => {
      for (const run of race.runs.filter(({ strategy }) => strategy === 'holdfast')) {
        const total = (field) => Math.round(run[`${field}_per_request`] * run.users);
        assert.equal(total('commits'), 1); // one sale
        assert.ok(total('round_trips') >= 2, JSON.stringify(run)); // a batch: read, then write
        assert.ok(total('gate_trips') >= 2, JSON.stringify(run)); // claimed, then settled
      }
    });
  });

  describe('its anomalies on real servers', () => {
    const sides = (name) => anomalies.anomalies.find((anomaly) => anomaly.name === name).sides;
    const answers = ({ steps }) => steps.flatMap(({ text, answer }) => [text, answer]).filter(Boolean).join('\n');
    const asked = ({ steps }, pattern) => steps.filter(({ text }) => pattern.test(text)).length;

    it('end as they should on every side', () => {
      assert.equal(anomalies.object, 'lab.anomalies');
      assert.equal(anomalies.ok, true);
      assert.deepEqual(anomalies.left_out, []);
      assert.deepEqual(anomalies.anomalies.map(({ name }) => name), ANOMALIES);
    });

    for (const name of ANOMALIES) {
      it(`${name}: violated without protection, protected with it`, () => {
        assert.deepEqual(sides(name).map(({ verdict }) => verdict), ['violated', 'protected']);
      });
    }

    it('says who was sold what, as the rows have it', () => {
      const evidence = (name) => sides(name).map((side) => side.evidence);
      assert.deepEqual(evidence('naive-double-sale'), ['A-1 has 2 tickets: Ann and Bob', 'A-1 has 1 ticket: Ann']);
      assert.deepEqual(evidence('blind-delete'), ['A-1 has 2 tickets: Bob and Carl', 'A-1 has 1 ticket: Bob']);
      assert.deepEqual(evidence('paused-holder'), ['A-1 has 2 tickets: Bob and Ann', 'A-1 has 1 ticket: Bob']);
      assert.deepEqual(evidence('gate-flushed'), ['A-1 has 2 tickets: Ann and Bob', 'A-1 has 1 ticket: Ann']);
      assert.match(evidence('lost-commit')[0], /order-7 was sold 2 times: A-1 and A-2/);
      assert.match(evidence('lost-commit')[1], /order-7 was sold once: A-1 to Ann/);
      assert.match(evidence('deadlock')[0], /counted 1 deadlock.*A-1 (Ann|Bob), A-2 \1/);
      assert.match(evidence('deadlock')[1], /no deadlock; tickets: A-1 Ann, A-2 Ann/);
      assert.deepEqual(evidence('get-then-delete'), ['A-1 has 2 tickets: Bob and Carl', 'A-1 has 1 ticket: Bob']);
      assert.deepEqual(evidence('blind-renewal'), ['A-1 has 2 tickets: Ann and Bob', 'A-1 has 1 ticket: Bob']);
      assert.deepEqual(evidence('clock-skew'), ['A-1 has 2 tickets: Ann and Bob', 'A-1 has 1 ticket: Ann']);
    });

    it('says who lost a sale or a promise, where no seat is sold twice', () => {
      const evidence = (name) => sides(name).map((side) => side.evidence);
      const [blocked, taken] = evidence('ledger-fails');
      assert.match(blocked, /^A-1 is FREE and has no ticket, but the gate refuses it for 4[678]\d s more$/);
      assert.equal(taken, 'A-1 has 1 ticket: Bob');
      assert.deepEqual(evidence('counter-crash'), ['A-2 is free, but the counter has 0 left and refused a buyer; sold: A-1 to Bob',
        'every place is sold: A-1 to Bob, A-2 to Carl; the counter has 0 left']);
      assert.deepEqual(evidence('counter-async'), ['Ann was told yes and has no ticket; the counter has 1 left, the rows 2',
        'Ann has a ticket for A-1; the counter has 1 left, the rows 1']);
      const [open, held] = evidence('open-transaction');
      assert.match(open, /^A-1 is FREE and has no ticket: a transaction that has been idle for \d+ ms locks it$/);
      assert.equal(held, 'A-1 has 1 ticket: Bob');
    });

    it('has the answers of real servers', () => {
      const [crossed, sorted] = sides('deadlock').map(answers);
      assert.match(crossed, /ERROR 40P01: deadlock detected/);
      assert.doesNotMatch(sorted, /ERROR/);
      const [unfenced, fenced] = sides('paused-holder').map(answers);
      assert.doesNotMatch(unfenced, /ERROR/);
      assert.match(fenced, /ERROR SF001: fence 1 is stale/);
      const [blind, compared] = sides('blind-delete');
      assert.equal(blind.steps.find(({ text }) => text === 'DEL lock:A-1').answer, '1');
      assert.equal(compared.steps.find(({ text }) => text.startsWith('EVAL')).answer, '0');
      const [looked] = sides('get-then-delete');
      assert.deepEqual(looked.steps.filter(({ text }) => /^(GET|DEL) lock:A-1$/.test(text)).map(({ answer }) => answer), ['token-Ann', '1']);
      const [renewed, refused] = sides('blind-renewal');
      assert.equal(renewed.steps.find(({ text }) => text.startsWith('PEXPIRE')).answer, '1');
      assert.equal(refused.steps.find(({ text }) => text.startsWith('EVAL')).answer, '0');
      assert.match(answers(sides('open-transaction')[0]), /ERROR 55P03: canceling statement due to lock timeout/);
      for (const side of sides('ledger-fails')) assert.match(answers(side), /ERROR 25006: cannot execute UPDATE in a read-only transaction/);
    });

    it('has two holders at once where a lock server forgets, jumps or fails over, and a fence that refuses the first', () => {
      for (const name of ['redis-failover', 'redlock-pause', 'redlock-clock', 'etcd-pause', 'zookeeper-pause']) {
        const [harmed, fenced] = sides(name);
        assert.equal(harmed.evidence, 'A-1 has 2 tickets: Bob and Ann', name);
        assert.equal(fenced.evidence, 'A-1 has 1 ticket: Bob', name);
        const [ann, bob] = fenced.steps.filter(({ text }) => text.startsWith('holdfast run')).map(({ answer }) => {
          assert.match(answer, /^fence \d+$/, `${name}: ${answer}`);
          return BigInt(answer.slice('fence '.length));
        });
        assert.ok(bob > ann, `${name}: ${ann} ${bob}`);
        assert.match(answers(fenced), new RegExp(`ERROR SF001: fence ${ann} is stale`), name);
        assert.doesNotMatch(answers(harmed), /ERROR/, name);
      }
    });

    it('plays the Redlock of the article: a majority of three, twice', () => {
      for (const [name, firstVotes] of [['redlock-pause', 3], ['redlock-clock', 2], ['redlock-restart', 2]]) {
        const [article] = sides(name);
        const votes = (who) => article.steps.filter(({ from, text, answer }) => from === who && text.startsWith('SET lock:A-1') && answer === 'OK').length;
        assert.deepEqual([votes('Ann'), votes('Bob')], [firstVotes, firstVotes], name);
        const servers = article.steps.filter(({ text }) => text.startsWith('SET lock:A-1')).map(({ to }) => to);
        assert.deepEqual(servers, ['R1', 'R2', 'R3', 'R1', 'R2', 'R3'], name);
      }
    });

    it('lets a restarted Redlock server sit out: there is no second holder', () => {
      const [article, driver] = sides('redlock-restart');
      assert.equal(article.evidence, 'A-1 has 2 tickets: Bob and Ann');
      assert.equal(driver.evidence, 'A-1 has 1 ticket: Ann');
      const [ann, bob] = driver.steps.filter(({ text }) => text.startsWith('holdfast run'));
      assert.match(ann.answer, /^fence \d+$/);
      assert.match(bob.answer, /^exit (75|69): /);
    });

    it('loses the answer to a COMMIT that was carried out', () => {
      const [again, lookedUp] = sides('lost-commit');
      for (const side of [again, lookedUp]) {
        const commit = side.steps.find(({ text }) => text === 'COMMIT');
        assert.equal(commit.answer, null);
        assert.equal(asked(side, /^connection lost$/), 1);
        assert.equal(asked(side, /^COMMIT \(tickets of order-7 there are now: 1\)$/), 1);
      }
      assert.equal(asked(again, /^INSERT INTO tickets/), 2);
      assert.equal(asked(lookedUp, /^INSERT INTO tickets/), 1);
    });

    it('names its actors, the times of the steps in order, and what the actors think', () => {
      for (const { sides: both, title, moral, more } of anomalies.anomalies) {
        assert.ok(title && moral && more);
        assert.deepEqual(missingPages(more), [], more);
        for (const { actors, steps, strategy } of both) {
          assert.ok(strategy);
          assert.ok(steps.length >= 5 && steps.some(({ thinks }) => thinks));
          steps.forEach((step, index) => {
            assert.ok(actors.includes(step.from) && actors.includes(step.to), JSON.stringify(step));
            assert.ok(index === 0 || step.at_ms >= steps[index - 1].at_ms, JSON.stringify(step));
          });
        }
      }
    });
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
    assert.equal(await page.locator('#charts canvas').count(), 3 + CROWDS.length);
  });

  it('draws the numbers of the race in the plots', async () => {
    const page = shown;
    const drawn = await page.$$eval('#charts canvas', (all) => all.map((canvas) => Chart.getChart(canvas).data.datasets
      .map(({ label, data }) => [label, data.map(({ x, y }) => [x, y])])));
    const [throughput, , , ...distributions] = drawn.map((datasets) => new Map(datasets));
    for (const { strategy, users, throughput: value, losers_ms: losers } of race.runs) {
      assert.deepEqual(throughput.get(strategy).find(([x]) => x === users), [users, value]);
      const points = distributions[CROWDS.indexOf(users)].get(strategy);
      assert.deepEqual(points.map(([x]) => x), (losers?.quantiles ?? []).map((ms) => Math.max(ms, 0.01)));
    }
  });

  it('draws every step of the anomalies, and how they end', async () => {
    const page = shown;
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
    assert.deepEqual(drawn, anomalies.anomalies.map(({ name, sides }) => ({
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
    const page = await open(small, { once: true, colorScheme: 'dark' });
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
    assert.ok([0, 1].includes(madeSmall.code), madeSmall.stderr); // on a busy machine users may come one after the other, so that the naive way does not break
    const page = await open(small);
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
    const args = ['lab', 'report', '--out', path.join(dir, 'out'), '--race', path.join(small, 'race.json'), '--anomalies', path.join(small, 'anomalies.json')];
    assert.equal((await holdfast(undefined, [...args, '--locks', path.join(dir, 'locks')])).code, told.ok && madeSmall.code === 0 ? 0 : 1);
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
    const broken = { race: json(small, 'race.json'), anomalies: json(small, 'anomalies.json') };
    Object.assign(broken.race.runs.at(-1), { double_sold: 3, verdict: 'broken' });
    broken.race.ok = false;
    broken.anomalies.anomalies[0].sides[0].evidence = '</script><b>never markup</b>';
    for (const [name, value] of Object.entries(broken)) fs.writeFileSync(path.join(dir, name), JSON.stringify(value));
    const args = ['lab', 'report', '--out', path.join(dir, 'out'), '--race', path.join(dir, 'race'), '--anomalies', path.join(dir, 'anomalies')];
    assert.equal((await holdfast(undefined, args)).code, 1);
    assert.deepEqual(json(path.join(dir, 'out'), 'race.json'), broken.race);
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
