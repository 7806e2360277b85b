// Waiting for locks: the order of the line, places and unreceived grants, deadlocks, cached locks, and the end of a server.
// backends: sqlite

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { labels, look, Party, waiting, waitThenCut } from '../support/locks.mjs';
import { assertTook, IDLE_MS, inTime, reap, sleep, start, until } from '../support/server.mjs';

const LONG_MS = 60_000;
const SILENT_MS = 5000; // WAITER_SILENT_MS in src/lease/lease.h

let server;
let agent;
before(async () => {
  server = await start();
  agent = new http.Agent({ keepAlive: true, timeout: IDLE_MS, maxSockets: 4096 });
});
after(async () => { agent?.destroy(); await server?.stop(); await reap(); });

const party = async (label, on = server) => {
  const one = await Party.open(on, { label });
  one.agent = agent;
  return one;
};
let names = 0;
const unused = (name) => `${name}-${++names}`; // for what is tried again
const parties = (...names) => Promise.all(names.map((name) => party(name)));

describe('the line', () => {
  it('is served in the order of arrival', async () => {
    const [ann, ...others] = await parties('ann', 'b', 'c', 'd', 'e');
    const lock = await ann.take('fifo');
    const asked = [];
    for (const [i, other] of others.entries()) {
      asked.push(other.ask('fifo', { owner: 'f', wait_ms: LONG_MS }));
      await waiting(server, 'fifo', ['b', 'c', 'd', 'e'].slice(0, i + 1));
    }
    assertOk(await ann.release('fifo', lock.owner));
    let last = lock.fence;
    for (const [i, other] of others.entries()) {
      const { fence } = assertOk(await asked[i]);
      assert.ok(fence > last);
      last = fence;
      assert.deepEqual(labels((await look(server, 'fifo')).waiters), ['b', 'c', 'd', 'e'].slice(i + 1));
      assertOk(await other.release('fifo', 'f'));
    }
  });

  it('lets a higher priority go first', async () => {
    const [ann, low, high] = await parties('ann', 'low', 'high');
    const lock = await ann.take('ranked');
    const slow = low.ask('ranked', { wait_ms: LONG_MS, owner: '1' });
    await waiting(server, 'ranked', ['low']);
    const quick = high.ask('ranked', { wait_ms: LONG_MS, owner: '2', priority: 5 });
    await waiting(server, 'ranked', ['high', 'low']);
    assertOk(await ann.release('ranked', lock.owner));
    assertOk(await quick);
    assertOk(await high.release('ranked', '2'));
    assertOk(await slow);
  });

  it('does not let a reader pass a writer that waits', async () => {
    const [ann, ben, cat] = await parties('ann', 'ben', 'cat');
    const read = await ann.take('starved', { mode: 'shared' });
    const write = ben.ask('starved', { wait_ms: LONG_MS, owner: 'b' });
    await waiting(server, 'starved', ['ben']);
    assertProblem(await cat.ask('starved', { mode: 'shared' }), 409, 'lock_taken');
    assertOk(await ann.release('starved', read.owner));
    assertOk(await write);
  });

  it('keeps a place between two requests, and tells which it is', async () => {
    await inTime(async () => { // a waiter that does not ask for five seconds loses its place
      const name = unused('places');
      const [ann, ben, cat] = await parties('ann', 'ben', 'cat');
      const lock = await ann.take(name);
      for (let i = 0; i < 3; i += 1) {
        const first = assertProblem(await ben.ask(name, { owner: 'b', wait_ms: 5 }), 409, 'lock_taken');
        assert.deepEqual([first.owner, first.position, first.holders], ['b', 1, ['ann']]);
        assert.equal(assertProblem(await cat.ask(name, { owner: 'c', wait_ms: 5 }), 409, 'lock_taken').position, 2);
      }
      assert.equal((await look(server, name)).n_waiters, 2);
      assertOk(await ben.release(name, 'b')); // gives up the place
      assert.equal(assertProblem(await cat.ask(name, { owner: 'c', wait_ms: 5 }), 409, 'lock_taken').position, 1);
      assertOk(await ann.release(name, lock.owner));
      assert.equal((await cat.take(name, { owner: 'c' })).mode, 'exclusive');
    }, SILENT_MS, 1);
  });

  it('drops a waiter that does not ask for five seconds', async () => {
    const [ann, ben] = await parties('ann', 'ben');
    await ann.take('dropped');
    const from = Date.now();
    assertProblem(await ben.ask('dropped', { owner: 'b', wait_ms: 1 }), 409, 'lock_taken');
    await until('the place is gone', async () => (await look(server, 'dropped')).n_waiters === 0);
    assert.ok(Date.now() - from > 4000, 'too early');
    assertTook(Date.now() - from, 20_000, 'the end of the place');
    assertProblem(await ben.ask('dropped', { owner: 'b', wait_ms: 1 }), 410, 'lock_lost');
  });

  it('passes on a grant that nobody is there to receive, and its waiter is back in the line when it asks', async () => {
    await inTime(async () => { // a waiter that does not ask for five seconds loses its place
      const name = unused('passed');
      const [ann, ben, cat] = await parties('ann', 'ben', 'cat');
      const lock = await ann.take(name);
      assertProblem(await ben.ask(name, { owner: 'b', wait_ms: 1, claim_ms: 50 }), 409, 'lock_taken');
      const next = cat.ask(name, { owner: 'c', wait_ms: LONG_MS });
      await waiting(server, name, ['ben', 'cat']);
      assertOk(await ann.release(name, lock.owner));
      assertOk(await next);
      assert.equal(assertProblem(await ben.ask(name, { owner: 'b', wait_ms: 1 }), 409, 'lock_taken').position, 1);
    }, SILENT_MS, 1);
  });

  it('passes on a grant that its waiter received and did not claim, as one that stands still', async () => {
    await inTime(async () => { // a waiter that does not ask for five seconds loses its place
      const name = unused('hung');
      const [ann, ben, cat] = await parties('ann', 'ben', 'cat');
      const lock = await ann.take(name, { claim: true });
      assert.equal(lock.claimed, true, 'granted at once');
      const hung = ben.ask(name, { owner: 'b', wait_ms: LONG_MS, claim_ms: 50, claim: true });
      await waiting(server, name, ['ben']);
      const next = cat.ask(name, { owner: 'c', wait_ms: LONG_MS, claim: true });
      await waiting(server, name, ['ben', 'cat']);
      assertOk(await ann.release(name, lock.owner));
      assert.equal(assertOk(await hung).claimed, false);
      const turn = assertOk(await next);
      assert.equal(turn.claimed, false);
      // What is not claimed within a second, on a busy machine, is passed on, and granted again.
      await until('it is claimed', async () => (await cat.take(name, { owner: 'c', wait_ms: LONG_MS, claim: true })).claimed);
      assert.equal(assertProblem(await ben.ask(name, { owner: 'b', wait_ms: 1, claim: true }), 409, 'lock_taken').position, 1);
    }, SILENT_MS, 1);
  });

  it('keeps a grant that its waiter claimed, and one that it did not have to claim', async () => {
    const held = [];
    for (const claim of [true, false]) {
      const [ann, ben] = await parties('ann', 'ben');
      const name = `claimed-${claim}`;
      const lock = await ann.take(name);
      const fields = { owner: 'b', wait_ms: LONG_MS, claim_ms: 50, claim };
      const waits = ben.ask(name, fields);
      await waiting(server, name, ['ben']);
      assertOk(await ann.release(name, lock.owner));
      let last = assertOk(await waits);
      assert.equal(last.claimed, claim ? false : undefined);
      await until('it is claimed', async () => last.claimed !== false || (last = await ben.take(name, fields)).claimed);
      held.push([name, last.fence]);
    }
    await sleep(200); // longer than an unclaimed grant is kept
    for (const [name, fence] of held) assert.deepEqual((await look(server, name)).holders.map((one) => one.fence), [fence]);
  });

  it('does not wait for a client whose connection is gone', async () => {
    const own = await start(); // where nobody else opens or closes connections
    const [ann, ben, cat] = await Promise.all(['ann', 'ben', 'cat'].map((label) => party(label, own)));
    const lock = await ann.take('cut');
    const { cut } = await waitThenCut(ben, 'cut', { owner: 'b', wait_ms: LONG_MS, claim_ms: 50 });
    const next = cat.ask('cut', { owner: 'c', wait_ms: LONG_MS });
    await waiting(own, 'cut', ['ben', 'cat']);
    const before_ = await own.metric('holdfast_http_connections');
    cut();
    await until('the server has noticed', async () => await own.metric('holdfast_http_connections') < before_);
    assertOk(await ann.release('cut', lock.owner));
    assertOk(await next);
    await own.stop();
  });

  it('of a thousand waiters hands the lock from one to the next, once to each', async () => {
    const N = 1000;
    const ann = await party('ann');
    const lock = await ann.take('crowd');
    const fences = [];
    const crowd = await Promise.all(Array.from({ length: 20 }, (_, i) => party(`crowd-${i}`)));
    const all = Array.from({ length: N }, (_, i) => (async () => {
      const one = crowd[i % crowd.length];
      const fields = { owner: i.toString(16), agent: `thread-${i}`, wait_ms: LONG_MS };
      let answer;
      do answer = await one.ask('crowd', fields); while (answer.json.code === 'lock_taken'); // a server waits for a minute at most
      fences.push(assertOk(answer).fence);
      assertOk(await one.release('crowd', fields.owner));
    })());
    await until('all wait', async () => (await look(server, 'crowd')).n_waiters === N);
    assert.equal((await look(server, 'crowd')).waiters.length, N);
    assertOk(await ann.release('crowd', lock.owner));
    await Promise.all(all);
    assert.equal(fences.length, N);
    assert.deepEqual(fences, [...fences].sort((a, b) => a - b), 'in the order of their fences');
    assert.equal((await look(server, 'crowd')).n_waiters, 0);
  });
});

describe('deadlocks', () => {
  it('are refused, with the cycle', async () => {
    const [ann, ben] = await parties('ann', 'ben');
    await ann.take('left', { owner: 'a' });
    await ben.take('right', { owner: 'b' });
    const waits = ann.ask('right', { owner: 'a', wait_ms: LONG_MS });
    await waiting(server, 'right', ['ann']);
    const refusal = assertProblem(await ben.ask('left', { owner: 'b', wait_ms: LONG_MS }), 409, 'deadlock');
    assert.deepEqual(refusal.cycle, [{ name: 'left', label: 'ben' }, { name: 'right', label: 'ann' }]);
    assert.equal((await look(server, 'left')).n_waiters, 0);
    assertProblem(await ben.ask('left', { owner: 'c' }), 409, 'lock_taken'); // does not wait, so closes no cycle
    assertOk(await ben.release('right', 'b'));
    assertOk(await waits);
    assert.ok(await server.metric('holdfast_lock_deadlocks_total') >= 1);
  });

  it('with oneself are found at once, and two agents of one session are two', async () => {
    const [ann] = await parties('ann');
    await ann.take('self', { owner: '1', agent: 't1' });
    assertProblem(await ann.ask('self', { owner: '2', agent: 't1', wait_ms: LONG_MS }), 409, 'deadlock');
    const other = ann.ask('self', { owner: '3', agent: 't2', wait_ms: LONG_MS });
    await waiting(server, 'self', ['ann']);
    assertOk(await ann.release('self', '1'));
    assertOk(await other);
  });

  it('show as edges of the graph before they close', async () => {
    const [ann, ben, cat] = await parties('ann', 'ben', 'cat');
    await ann.take('graph/x', { owner: 'a' });
    await ben.take('graph/y', { owner: 'b' });
    const waits = [ben.ask('graph/x', { owner: 'b', wait_ms: LONG_MS }), cat.ask('graph/y', { owner: 'c', mode: 'shared', wait_ms: LONG_MS })];
    await waiting(server, 'graph/x', ['ben']);
    await waiting(server, 'graph/y', ['cat']);
    const { data } = assertOk(await server.get('/v1/locks?prefix=graph/&waiting=true'));
    assert.deepEqual(data.map(({ name, waiters }) => [name, waiters.map((one) => one.waits_for)]), [
      ['graph/x', [[{ name: 'graph/x', label: 'ann', mode: 'exclusive' }]]],
      ['graph/y', [[{ name: 'graph/y', label: 'ben', mode: 'exclusive' }]]],
    ]);
    assert.ok(data[0].waiters[0].waited_ms >= 0);
    assertOk(await ann.release('graph/x', 'a'));
    assertOk(await waits[0]);
    assertOk(await ben.release('graph/y', 'b'));
    assertOk(await waits[1]);
    assert.deepEqual(assertOk(await server.get('/v1/locks?prefix=graph/&waiting=true')).data, []);
  });
});

describe('cached shared locks', () => {
  it('are wanted as soon as a writer waits, and keep nobody out once they are given back', async () => {
    const [ann, ben] = await parties('ann', 'ben');
    await ann.take('cached', { owner: 'a', mode: 'shared', cache: true });
    assert.deepEqual(assertOk(await ann.keepAlive()).wanted, []);
    const write = ben.ask('cached', { owner: 'b', wait_ms: LONG_MS });
    await waiting(server, 'cached', ['ben']);
    assert.deepEqual(assertOk(await ann.keepAlive()).wanted, ['cached']);
    assertOk(await ann.release('cached', 'a'));
    assertOk(await write);
  });

  it('close a cycle only while they are in use', async () => {
    const [ann, ben] = await parties('ann', 'ben');
    await ann.take('use/read', { owner: 'a', mode: 'shared', cache: true });
    await ben.take('use/other', { owner: 'b' });
    const write = ben.ask('use/read', { owner: 'b', wait_ms: LONG_MS });
    await waiting(server, 'use/read', ['ben']);
    const unused = ann.ask('use/other', { owner: 'a', wait_ms: LONG_MS });
    await waiting(server, 'use/other', ['ann']);
    assertOk(await ann.release('use/read', 'a'));
    assertOk(await write);
    assertOk(await ben.release('use/other', 'b'));
    assertOk(await unused);
  });
});

describe('a server that stops', () => {
  it('ends those who wait at once, and keeps what was granted', async () => {
    const own = await start();
    const ann = await party('ann', own);
    const ben = await party('ben', own);
    const lock = await ann.take('stopping', { owner: 'a' });
    const waits = ben.ask('stopping', { owner: 'b', wait_ms: LONG_MS });
    await waiting(own, 'stopping', ['ben']);
    const from = Date.now();
    const [answer] = await Promise.all([waits, own.stop({ keep: true })]);
    assertTook(Date.now() - from, 25_000, 'the end of a server for which somebody waits');
    assert.equal(answer.status, 503, answer.text);
    assert.ok(answer.headers['retry-after']);
    assert.equal(answer.json.owner, 'b');
    await own.launch();
    assert.equal((await ann.take('stopping', { owner: 'a' })).fence, lock.fence);
    await own.stop();
  });
});
