// `holdfast lab race` on SQLite where no servers are installed, and on servers that the user named.  report.test.mjs has the race
// of all strategies on throwaway servers.
// tests/integration/test_lab.c shows that naive sells a seat twice, without relying on luck.
// backends: own
// time limit: 480 s

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { begin, holdfast } from '../support/cli.mjs';
import { assertRun, nothingIsLeft, playground, soldOnce } from '../support/lab.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { startRedis } from '../support/redis.mjs';
import { environment, HOLDFAST, launch, reap, start, until } from '../support/server.mjs';

after(reap);

// How many users race: `make soak` (HF_SOAK=1) has the crowds.
const SQLITE_CROWDS = process.env.HF_SOAK === '1' ? [20, 50, 500] : [50];
const ON_SQLITE = ['naive', 'optimistic', 'unique', 'inventory', 'queue', 'holdfast'];

const race = (place, args, options = {}) => holdfast(undefined, ['lab', 'race', ...args],
  { ...options, env: { ...place.env, ...options.env } });

async function raceJson(place, args, options) {
  const { code, stdout, stderr } = await race(place, [...args, '--json'], options);
  assert.ok(code === 0 || code === 1, `${code} ${stderr}`);
  assert.equal(stderr, '');
  const result = JSON.parse(stdout);
  assert.equal(result.ok, code === 0);
  return result;
}

describe('a race that is ended', { concurrency: false }, () => {
  const place = playground();

  for (const signal of ['SIGINT', 'SIGKILL']) {
    it(`leaves nothing behind after ${signal}`, async () => {
      const run = begin(undefined, ['lab', 'race', '--users', '10000', '--strategy', 'holdfast'], { env: place.env });
      await until('PostgreSQL, Redis and holdfastd run', () => place.processes().length >= 3, 60_000);
      assert.ok(place.left().length > 0);
      run.child.kill(signal);
      const ended = await run.result;
      if (signal === 'SIGINT') assert.equal(ended.code, 130, ended.stderr);
      await nothingIsLeft(place);
    });
  }
});

describe('a race where PostgreSQL is missing', { concurrency: false }, () => {
  const place = playground();

  it('runs on SQLite, says so, and names what cannot run there', async () => {
    const result = await raceJson(place, ['--users', '5,20'], { env: { PATH: '/nonexistent' } });
    assert.deepEqual(result.back_end, { ledger: 'sqlite', gate: null });
    assert.match(result.note, /PostgreSQL is not installed: the race is on SQLite/);
    assert.match(result.versions.sqlite, /^3\./);
    assert.equal(result.versions.postgresql, null);
    assert.deepEqual([...new Set(result.runs.map((run) => run.strategy))], ON_SQLITE);
    result.runs.forEach(assertRun);
    result.runs.filter((run) => run.promises_correct).forEach(soldOnce);
    assert.ok(result.runs.some((run) => run.verdict === 'caught'));
    assert.equal(result.ok, true);
    assert.deepEqual(result.skipped.map(({ strategy }) => strategy), ['pessimistic', 'redis-lease', 'two-layer', 'skip-locked', 'counter', 'counter-async']);
    assert.ok(result.runs.every((run) => !run.several_servers)); // they would have to share a file
    assert.ok(result.skipped.every(({ why }) => why));
    await nothingIsLeft(place);
  });

  const args = ['--ledger', `sqlite:${place.file('seats.db')}`, '--strategy', 'optimistic,unique,inventory,queue,holdfast'];

  it(`sells one seat exactly once to ${SQLITE_CROWDS.join(' and ')} users`, async () => {
    const { runs } = await raceJson(place, [...args, '--users', SQLITE_CROWDS.join()]);
    assert.equal(runs.length, 5 * SQLITE_CROWDS.length);
    runs.forEach(soldOnce);
  });

  it('creates the file that was named, and removes it', async () => {
    for (const run of (await raceJson(place, [...args, '--users', '20', '--seats', '4'])).runs) {
      assert.deepEqual([run.winners, run.verdict], [4, 'correct']);
    }
    await nothingIsLeft(place);
    fs.writeFileSync(place.file('seats.db'), 'precious');
    const { code, stderr } = await race(place, args);
    assert.equal(code, 64);
    assert.match(stderr, /seats\.db exists/);
    assert.equal(fs.readFileSync(place.file('seats.db'), 'utf8'), 'precious');
  });
});

describe('a race on servers that were named', { concurrency: false }, () => {
  const place = playground();
  let postgres, redis, ledger;
  before(async () => {
    [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    ledger = postgres.url(postgres.createDatabase());
  });
  after(() => Promise.all([postgres?.stop(), redis?.stop()]));
  const named = () => ['--ledger', ledger, '--gate', redis.url];

  it('sells every seat exactly once, and prints a table', async () => {
    const { code, stdout, stderr } = await race(place, [...named(), '--users', '10', '--seats', '4', '--seed', '1',
      '--strategy', 'pessimistic,skip-locked,counter,counter-async,inventory,holdfast']);
    assert.deepEqual([code, stderr], [0, '']);
    for (const name of ['pessimistic', 'skip-locked', 'counter', 'counter-async', 'inventory', 'holdfast']) {
      assert.match(stdout, new RegExp(`^${name} +10 +4 +0 +\\d+ +yes .* correct$`, 'm'));
    }
    assert.ok(!stdout.includes('\x1b'), 'no colours where nobody sees them');
    assert.match(stdout, /^ok: every promise to sell a seat only once was kept$/m);
  });

  it('refuses every loser at once with --retries 0, and says so', async () => {
    const { stdout } = await race(place, [...named(), '--users', '8', '--strategy', 'optimistic,redis-lease', '--retries', '0']);
    for (const name of ['optimistic', 'redis-lease']) {
      const [, refused, losers] = stdout.match(new RegExp(`^${name} +8 users: (\\d+) of (\\d+) losers refused at once, half within [\\d.]+ ms$`, 'm'));
      assert.deepEqual([refused, losers], ['7', '7']);
    }
  });

  it('leaves them as they were', async () => {
    const database = ledger.split('/').pop();
    const tables = () => postgres.query(database, "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2");
    const server = await start({ ledger }); // another Holdfast uses the same servers
    const before = tables();
    assert.ok(before.length > 0);
    const args = ['--users', '8', ...named(), '--strategy', 'unique,two-layer,counter,holdfast'];
    (await raceJson(place, args)).runs.forEach(soldOnce);
    assert.deepEqual(tables(), before);
    assert.deepEqual(redis.keys(), []);
    await nothingIsLeft(place);

    redis.cli('SET', 'precious', '1');
    const { code, stderr } = await race(place, args);
    assert.equal(code, 64);
    assert.match(stderr, /--gate: it is not empty/);
    assert.equal(redis.cli('GET', 'precious'), '1');
    const without = await raceJson(place, [...args.slice(0, 4), '--strategy', 'unique,two-layer']);
    assert.deepEqual(without.skipped, [{ strategy: 'two-layer', why: 'needs Redis' }]);
    await server.stop();
  });

  it('exits with 69 if they are unreachable, and does not print the password', async () => {
    const { code, stdout, stderr } = await race(place, ['--users', '5', '--ledger', 'postgres://u:hunter2@127.0.0.1:1/x']);
    assert.deepEqual([code, stdout], [69, '']);
    assert.match(stderr, /^holdfast lab race: PostgreSQL: .*refused\n?$/);
    assert.ok(!stderr.includes('hunter2'));
    await nothingIsLeft(place);
  });
});

describe('the exit status', { concurrency: false }, () => {
  const place = playground();
  const sqlite = (name) => ['--ledger', `sqlite:${place.file(name)}`];

  it('is 1 when naive was not caught', async () => {
    const { code, stdout } = await race(place, [...sqlite('a.db'), '--strategy', 'naive', '--users', '1', '--tries', '3']);
    assert.equal(code, 1);
    assert.match(stdout, /lucky in 3 tries/);
    assert.match(stdout, /^not ok: /m);
  });

  it('is 64 for wrong usage', async () => {
    for (const args of [['--users', '0'], ['--users', '5,'], ['--users', ''], ['--seats', '0'], ['--tries', '0'], ['--retries', '-1'], ['--retries', '11'], ['--strategy', 'hope'],
      ['--strategy', ''], ['--ledger', 'mysql://x'], ['--ledger', 'sqlite:'], [...sqlite('b.db'), '--gate', 'redis://127.0.0.1:1'], ['--gate', 'redis://127.0.0.1'], ['--gate', 'redis://u:p@127.0.0.1:1'], ['--gate', '127.0.0.1:1'],
      [...sqlite('b.db'), '--strategy', 'pessimistic'], ['--frobnicate'], ['more']]) {
      const { code, stdout, stderr } = await race(place, args);
      assert.deepEqual([code, stdout], [64, ''], args.join(' '));
      assert.match(stderr, /^holdfast lab race: /, args.join(' '));
    }
    for (const args of [['lab'], ['lab', 'sleep']]) {
      assert.equal((await holdfast(undefined, args)).code, 64);
    }
    await nothingIsLeft(place);
  });

  it('comes with colours and a line of progress on a terminal, and without colours with NO_COLOR', async () => {
    for (const [NO_COLOR, columns] of [['', 200], ['1', 80]]) {
      const line = `stty cols ${columns}; exec '${HOLDFAST}' lab race ${sqlite('c.db').join(' ')} --strategy unique --users 5`;
      const run = launch('script', ['-qec', line, '/dev/null'], { env: environment({ ...place.env, NO_COLOR }, false) });
      assert.deepEqual((await run.done).code, 0);
      assert.match(run.stdout, /\[1\/1\] unique: \d of 5 users answered/);
      assert.equal(/\x1b\[32mcorrect/.test(run.stdout), NO_COLOR === '');
      const lines = run.stdout.split(/\r?\n/).filter((text) => !text.includes('\x1b[K'));
      assert.ok(lines.every((text) => [...text.replace(/\x1b\[[0-9;]*m/g, '')].length <= columns), run.stdout);
      assert.equal(lines.filter((text) => /^unique /.test(text)).length, columns === 80 ? 2 : 1); // one table, or two halves
    }
  });
});
