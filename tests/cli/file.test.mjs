// The file with the locks is removed while commands use it.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, describe, it } from 'node:test';
import { begin, beginRun, PATIENCE, run, sqliteLocks, STEADY, until } from '../support/cli.mjs';
import { reap, standStill } from '../support/server.mjs';

after(reap);

const locks = sqliteLocks();
const { url } = locks;
// Those who use the file stand still meanwhile: nobody makes a new one before all of the old one is gone.
const removeLocks = async (...users) => {
  for (const { pid } of users) await standStill(pid);
  for (const ending of ['', '-wal', '-shm']) fs.rmSync(locks.file(`locks.db${ending}`));
  for (const { pid } of users) process.kill(pid, 'SIGCONT');
};

describe('a file of locks that is removed', { concurrency: false }, () => {
  it('ends the leadership, and a candidate leads with a larger fence', async () => {
    const file = locks.file('terms');
    const args = ['elect', ...PATIENCE, ...STEADY, '--pause', '100ms', 'leader', '--', 'sh', '-c',
      `echo $$ $HOLDFAST_FENCE >>${file}; exec sleep 60`];
    const terms = () => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n').map((line) => line.split(' ').map(Number)) : []);
    const candidates = [begin(url, args), begin(url, args), begin(url, args)];
    await until('one leads', () => terms().length === 1);
    const leader = candidates.map((c) => c.stderr);
    await removeLocks(...candidates);
    await until('another term begins', () => terms().length >= 2);
    await until('the first is told', () => candidates.some((c, i) => c.stderr !== leader[i] && /lost/.test(c.stderr)));
    const [[, first], [, second]] = terms();
    assert.ok(second > first, `${second} after ${first}`);
    await removeLocks(...candidates);
    await until('a third term begins', () => terms().length >= 3);
    assert.ok(terms()[2][1] > second);
    for (const { child } of candidates) child.kill('SIGTERM');
    await Promise.all(candidates.map(({ result }) => result));
  });

  it('ends the command of run with 76, and the next run begins a new one', async () => {
    const wrapper = await beginRun(url, [...STEADY, 'job'], 'exec sleep 60');
    await removeLocks(wrapper);
    const { code, stderr } = await wrapper.result;
    assert.equal(code, 76);
    assert.match(stderr, /the lock on job is lost/);
    assert.equal((await run(url, ['-n', 'job', '--', 'true'])).code, 0);
    assert.deepEqual(fs.readdirSync(locks.dir).filter((name) => name.startsWith('locks')).sort(),
      ['locks.db', 'locks.db-shm', 'locks.db-wal']);
  });
});
