// What fences are for.  Holder A is stopped past the end of its lease, B takes the lock and writes, then A wakes and
// writes.  A write target that checks fences refuses A; in the twin without the guard, A overwrites B.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, it } from 'node:test';
import { beginRun, holdfast, run, sqliteLocks, STEADY, until } from '../support/cli.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { startRedis } from '../support/redis.mjs';
import { HOLDFAST, launch, reap, sqliteQuery } from '../support/server.mjs';

const share = fileURLToPath(new URL('../../share/holdfast', import.meta.url));
const locks = sqliteLocks();
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

after(reap);

const state = (pid) => fs.readFileSync(`/proc/${pid}/status`, 'utf8').match(/^State:\s+(\S)/m)?.[1];

// Stops a wrapper and its command, but not amid a change of the locks, where it would keep everybody out.
let probes = 0;
async function stop(wrapper) {
  const pids = [wrapper.commandPid, wrapper.pid];
  await until('it is stopped between two changes', async () => {
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    await until('it is stopped', () => pids.every((pid) => state(pid) === 'T'));
    const { code } = await holdfast(locks.url, ['lock', 'get', `probe-${++probes}`, '--ttl', '1s', '--timeout', '5s']);
    if (code !== 0) for (const pid of pids) process.kill(pid, 'SIGCONT');
    return code === 0;
  });
}

// `write` is a shell command that writes $WHO, and may use $HOLDFAST_FENCE.  Resolves to the output of A's write.
async function story(name, write) {
  const env = (who) => ({ WHO: who, HF: HOLDFAST });
  const a = await beginRun(locks.url, ['--ttl', '500ms', '--on-loss', 'warn', name],
    `read go; ${write}; echo "A: $?"`, { input: null, env: env('A') });
  await stop(a);
  const b = await run(locks.url, ['--wait', '60s', name, '--', 'sh', '-c', write], { env: env('B') });
  assert.equal(b.code, 0, b.stderr + b.stdout);
  for (const pid of [a.pid, a.commandPid]) process.kill(pid, 'SIGCONT');
  a.child.stdin.end('go\n');
  const { code, stdout, stderr } = await a.result;
  assert.equal(code, 76, 'A learns that it lost the lock');
  return stdout + stderr;
}

describe('SQLite', () => {
  const database = locks.file('target.db');
  before(() => sqliteQuery(database, 'CREATE TABLE report (text)', { readOnly: false }));
  const text = () => sqliteQuery(database, 'SELECT text FROM report')[0].text;
  const write = `sqlite3 ${database} "DELETE FROM report; INSERT INTO report VALUES ('$WHO')"`;

  it('refuses the holder that slept', async () => {
    const said = await story('sqlite-1', `$HF fence check --sqlite ${database} report && ${write}`);
    assert.match(said, /A: 76/);
    assert.match(said, /stale/);
    assert.equal(text(), 'B');
  });

  it('lets its write land without the guard', async () => {
    assert.match(await story('sqlite-2', write), /A: 0/);
    assert.equal(text(), 'A');
  });
});

describe('Redis', () => {
  let redis;
  before(async () => { redis = await startRedis(); });
  after(async () => { await redis.stop(); });
  const guard = path.join(share, 'fence.lua');
  const fenced = (...args) => redis.cli('--eval', guard, ...args);

  it('refuses the holder that slept', async () => {
    const said = await story('redis-1',
      `redis-cli -e -p ${redis.port} --eval ${guard} report report:fence , $HOLDFAST_FENCE $WHO`);
    assert.match(said, /STALEFENCE/);
    assert.match(said, /A: 1/);
    assert.equal(redis.cli('GET', 'report'), 'B');
  });

  it('lets its write land without the guard', async () => {
    await story('redis-2', `redis-cli -e -p ${redis.port} SET report $WHO`);
    assert.equal(redis.cli('GET', 'report'), 'A');
  });

  it('accepts an equal fence, compares large ones exactly, and keeps a TTL', () => {
    assert.equal(fenced('k', 'k:fence', ',', '9007199254740993', 'one'), 'OK');
    assert.equal(fenced('k', 'k:fence', ',', '9007199254740993', 'two'), 'OK');
    assert.match(fenced('k', 'k:fence', ',', '9007199254740992', 'late'), /STALEFENCE/);
    assert.match(fenced('k', 'k:fence', ',', '999', 'late'), /STALEFENCE/);
    assert.equal(redis.cli('GET', 'k'), 'two');
    assert.equal(fenced('k', 'k:fence', ',', '10000000000000000', 'three', '60000'), 'OK');
    assert.ok(Number(redis.cli('PTTL', 'k')) > 50_000);
    assert.equal(redis.cli('PTTL', 'k:fence'), '-1');
  });

  it('refuses an invalid fence, and records nothing with an invalid TTL', () => {
    for (const fence of ['0', '-1', '1x', '']) assert.match(fenced('n', 'n:fence', ',', fence, 'v'), /ERR usage/, fence);
    assert.match(fenced('n', 'n:fence', ',', '5', 'v', 'soon'), /ERR/);
    assert.equal(redis.cli('EXISTS', 'n', 'n:fence'), '0');
  });
});

describe('PostgreSQL', () => {
  let postgres;
  before(async () => {
    postgres = await startPostgres();
    for (let i = 0; i < 2; i++) postgres.sql('-f', path.join(share, 'fence.sql')); // it can be installed twice
    postgres.sql('-c', 'CREATE TABLE report (text text)');
  });
  after(async () => { await postgres.stop(); });
  const text = () => postgres.sql('-c', 'SELECT text FROM report');
  const shell = (sql) => `${postgres.client.map(quote).join(' ')} -1 ${sql.map((s) => `-c "${s}"`).join(' ')}`;
  const write = ['DELETE FROM report', "INSERT INTO report VALUES ('$WHO')"];
  const check = (resource, token) => `SELECT holdfast_fence('${resource}', ${token})`;
  const fails = (pattern, ...statements) => assert.throws(
    () => postgres.sql(...statements.flatMap((s) => ['-c', s])), ({ stderr }) => pattern.test(stderr));

  it('refuses the holder that slept', async () => {
    const said = await story('postgres-1', shell([...write, check('report', '$HOLDFAST_FENCE')]));
    assert.match(said, /SF001/);
    assert.match(said, /stale/);
    assert.equal(text(), 'B');
  });

  it('lets its write land without the guard', async () => {
    await story('postgres-2', shell(write));
    assert.equal(text(), 'A');
  });

  it('accepts an equal token, and a rollback takes the record back', () => {
    postgres.sql('-c', check('equal', 7), '-c', check('equal', 7));
    postgres.sql('-c', `BEGIN; ${check('equal', 9)}; ROLLBACK`);
    postgres.sql('-c', check('equal', 8));
    fails(/SF001/, check('equal', 7));
    postgres.sql('-c', check('equal', '9223372036854775807'));
    fails(/SF001/, check('equal', '9223372036854775806'));
  });

  it('refuses an invalid token or resource', () => {
    for (const bad of [check('r', 0), check('r', -1), check('', 1), check('r'.repeat(256), 1), check('r', 'NULL')]) fails(/ERROR:\s+23/, bad);
  });

  it('finds its table whatever the caller\'s search path is', () => {
    postgres.sql('-c', "SET search_path = pg_catalog; SELECT public.holdfast_fence('path', 1)");
  });

  it('lets the writers of one resource take turns', async () => {
    const { client } = postgres;
    const session = launch(client[0], [...client.slice(1)], { stdio: ['pipe', 'pipe', 'pipe'] });
    session.child.stdin.write(`BEGIN; ${check('row', 2)};\nSELECT 'noted';\n`);
    await until('the first has noted', () => session.stdout.includes('noted'));
    const second = launch(client[0], [...client.slice(1), '-c', check('row', 1)]);
    await until('the second waits', () => postgres.sql('-c',
      "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") === '1');
    session.child.stdin.end('COMMIT;\n');
    await session.done;
    assert.notEqual((await second.done).code, 0);
    assert.match(second.stderr, /SF001/);
  });
});

describe('slots', () => {
  const database = locks.file('slots.db');
  const check = `$HF fence check --sqlite ${database}`;
  const says = (process, pattern) => until(`${pattern}`, () => process.stdout.match(pattern));

  it('are fenced each by itself: both live holders pass, and the one that was replaced is refused', async () => {
    const hold = (script, ...options) => beginRun(locks.url, [...options, '--slots', '2', 'pool'], script, { input: null, env: { HF: HOLDFAST } });
    const twice = (who) => `read go; ${check}; echo "${who}1: $?"; read go; ${check}; echo "${who}2: $?"`;
    const a = await hold(twice('A'), ...STEADY, '--on-loss', 'warn');
    const b = await hold(twice('B'));
    for (const [process, word] of [[b, /B1: 0/], [a, /A1: 0/]]) { // the older one after the newer one
      process.child.stdin.write('go\n');
      await says(process, word);
    }
    await stop(a);
    const c = await run(locks.url, ['--slots', '2', '--wait', '60s', 'pool', '--', 'sh', '-c', `echo "$HOLDFAST_SLOT $HOLDFAST_FENCE_RESOURCE"; ${check} --json`], { env: { HF: HOLDFAST } });
    assert.equal(c.code, 0, c.stderr);
    const [, slot, resource] = c.stdout.match(/^(\d) pool#\1\n.*"resource":"(.*?)","token":\d+,"passed":true/);
    assert.equal(resource, `pool#${slot}`);
    for (const pid of [a.pid, a.commandPid]) process.kill(pid, 'SIGCONT');
    a.child.stdin.end('go\n');
    b.child.stdin.end('go\n');
    assert.match((await a.result).stdout, /A2: 76/);
    assert.match((await b.result).stdout, /B2: 0/);
  });

  it('of a resource with another name than the lock belong to that name', async () => {
    const { stdout } = await run(locks.url, ['--slots', '2', 'pool2', '--', 'sh', '-c', `${check} --json printer; ${check} --json printer 5`], { env: { HF: HOLDFAST } });
    assert.match(stdout, /^\{"resource":"printer#\d".*\n\{"resource":"printer","token":5,/);
  });
});

describe('holdfast fence check, under locks', () => {
  const database = locks.file('sets.db');
  const check = `$HF fence check --sqlite ${database} --json`;

  it('knows resource and token of one lock, and of several the one that is named', async () => {
    const one = await run(locks.url, ['only', '--', 'sh', '-c', `${check}; ${check} report; echo $HOLDFAST_FENCE`], { env: { HF: HOLDFAST } });
    const fence = one.stdout.trim().split('\n').at(-1);
    assert.equal(one.stdout, `{"resource":"only","token":${fence},"passed":true}\n{"resource":"report","token":${fence},"passed":true}\n${fence}\n`);
    const two = await run(locks.url, ['b b', 'a', '--', 'sh', '-c', `${check} a; ${check} "b b"; echo "$HOLDFAST_FENCES"; ${check} || echo $?; ${check} c || echo $?; ${check} c 3`], { env: { HF: HOLDFAST } });
    const [first, second, fenceA, fenceB, none, other, given] = two.stdout.trim().split('\n');
    assert.deepEqual([JSON.parse(first), JSON.parse(second)], [{ resource: 'a', token: Number(fenceA), passed: true }, { resource: 'b b', token: Number(fenceB), passed: true }]);
    assert.deepEqual([none, other, JSON.parse(given).token], ['64', '64', 3]);
    assert.match(two.stderr, /of several locks; RESOURCE is the name of one of them/);
  });
});
