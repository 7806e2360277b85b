// `holdfast elect --observe`: who leads, with its value, now and at every change; on a coordinator with values and on one
// without.
// backends: own

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { begin, holdfast, json, PATIENCE, sqliteLocks, until } from '../support/cli.mjs';
import { reap, Server } from '../support/server.mjs';

after(reap);

// Lines that an observer has printed so far, from JSON.
const seen = (observer) => observer.stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line));
const leads = (url, label, ...more) => begin(url, ['elect', ...PATIENCE, '--label', label, ...more, 'db', '--', 'sleep', '60']);

async function stop(run) {
  run.child.kill('SIGTERM');
  await run.result;
}

describe('on the lock service', () => {
  let server;
  let url;
  before(async () => {
    server = new Server({ args: ['--payments', 'off'] });
    await server.launch();
    url = `holdfast://127.0.0.1:${server.port}`;
  });
  after(() => server.stop());

  it('an observer sees each leader with its value, and that there is none', async () => {
    const observer = begin(url, ['elect', ...PATIENCE, '--observe', '--json', 'db']);
    await until('it has printed', () => seen(observer).length === 1);
    assert.deepEqual(seen(observer), [{ name: 'db', label: null, value: null, fence: null }]);
    const first = leads(url, 'ann', '--value', '10.0.0.1:5432');
    await until('ann is seen', () => seen(observer).length === 2);
    const [, ann] = seen(observer);
    assert.deepEqual({ ...ann, fence: 0 }, { name: 'db', label: 'ann', value: '10.0.0.1:5432', fence: 0 });
    const second = leads(url, 'bob', '--value', '10.0.0.2:5432');
    await until('bob waits', async () => (await json(url, ['lock', 'show', 'db'])).waiters.length === 1);
    await stop(first);
    await until('bob is seen', () => seen(observer).some(({ label }) => label === 'bob'));
    const bob = seen(observer).at(-1);
    assert.equal(bob.value, '10.0.0.2:5432');
    assert.ok(bob.fence > ann.fence);
    await stop(second);
    await until('nobody leads', () => seen(observer).at(-1).label === null);
    observer.child.kill('SIGTERM');
    assert.equal((await observer.result).signal, 'SIGTERM');
  });

  it('people read sentences', async () => {
    const leader = leads(url, 'eve', '--value', 'here');
    const observer = begin(url, ['elect', ...PATIENCE, '--observe', 'db']);
    await until('it has printed', () => /leader eve/.test(observer.stdout));
    assert.match(observer.stdout, /^(no leader\n)?leader eve, fence \d+, value here\n$/);
    await stop(leader);
    await stop(observer);
  });
});

describe('on a coordinator without values', () => {
  const { url } = sqliteLocks();

  it('an observer sees the leader', async () => {
    const leader = leads(url, 'ann');
    const observer = begin(url, ['elect', ...PATIENCE, '--observe', '--json', 'db']);
    await until('ann is seen', () => seen(observer).some(({ label }) => label === 'ann'));
    assert.equal(seen(observer).at(-1).value, null);
    await stop(leader);
    await stop(observer);
  });

  it('a value is refused: 64', async () => {
    const { code, stderr } = await holdfast(url, ['elect', '--value', 'x', 'db', '--', 'true']);
    assert.equal(code, 64);
    assert.match(stderr, /^holdfast elect: sqlite stores no values\n$/);
  });
});

it('--observe takes one name and no command: 64', async () => {
  for (const args of [['--observe'], ['--observe', 'a', 'b'], ['--observe', 'a', '--', 'true']]) {
    const { code, stderr } = await holdfast('memory:', ['elect', ...args]);
    assert.deepEqual([code, /^holdfast elect: expected one NAME after --observe/.test(stderr)], [64, true], stderr);
  }
});
