// Locks over HTTP: who gets which lock, with which fence and value, and what others are told.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { labels, look, Party, pathOf } from '../support/locks.mjs';
import { reap, start } from '../support/server.mjs';

let server;
let ann;
let ben;
before(async () => {
  server = await start();
  ann = await Party.open(server, { label: 'ann' });
  ben = await Party.open(server, { label: 'ben' });
});
after(async () => { await server?.stop(); await reap(); });

const FREE = { holders: [], waiters: [], n_holders: 0, n_waiters: 0, value: null };

describe('a lock', () => {
  it('that nobody has used is free', async () => {
    assert.deepEqual(await look(server, 'never/used'), { object: 'lock', name: 'never/used', ...FREE, last_fence: null });
  });

  it('is granted to one, and the other is told who has it', async () => {
    const lock = await ann.take('one');
    assert.deepEqual(Object.keys(lock).sort(), ['fence', 'mode', 'name', 'object', 'owner', 'slot', 'value']);
    assert.match(lock.owner, /^[0-9a-f]{32}$/);
    assert.deepEqual([lock.object, lock.name, lock.mode, lock.slot, lock.value], ['lock', 'one', 'exclusive', 0, null]);
    const refusal = assertProblem(await ben.ask('one', { owner: 'b1' }), 409, 'lock_taken');
    assert.deepEqual([refusal.owner, refusal.position, refusal.holders], ['b1', null, ['ann']]);
    assertOk(await ann.release('one', lock.owner));
    await ben.take('one', { owner: 'b2' });
  });

  it('has the name that its path encodes, whatever characters that has', async () => {
    for (const name of ['payments/eu/settle', 'a b', 'ünïcödé 座席', '100%', '%2F', 'a%2Fb', '?x=1&y', '..', '+', '"quoted"']) {
      const lock = await ann.take(name);
      assert.equal(lock.name, name);
      assert.equal((await look(server, name)).name, name);
      assertOk(await ann.release(name, lock.owner));
    }
  });

  it('is granted again to the owner that has it, with the same fence', async () => {
    const first = await ann.take('repeat', { owner: 'c0ffee' });
    for (let i = 0; i < 3; i += 1) assert.deepEqual(await ann.take('repeat', { owner: 'c0ffee' }), first);
    assert.equal((await look(server, 'repeat')).n_holders, 1);
    assertProblem(await ann.ask('repeat', { owner: '0c0ffee' }), 409, 'lock_taken'); // another owner
  });

  it('is not granted again to an owner that has given it up', async () => {
    const { owner } = await ann.take('ended');
    assertOk(await ann.release('ended', owner));
    assertProblem(await ann.ask('ended', { owner }), 410, 'lock_lost');
    assertProblem(await ann.release('ended', owner), 410, 'lock_lost');
    await ben.take('ended', { owner }); // owners belong to their session
  });

  it('that was released before its request arrived is not granted to nobody', async () => {
    assertProblem(await ann.release('overtaken', 'abc'), 410, 'lock_lost');
    assertProblem(await ann.ask('overtaken', { owner: 'abc' }), 410, 'lock_lost');
  });

  it('keeps its mode and its slots', async () => {
    await ann.take('mode', { owner: 'a', mode: 'shared' });
    assert.equal(assertProblem(await ann.ask('mode', { owner: 'a' }), 409, 'mode_conflict').mode, 'shared');
    await ann.take('slots', { owner: 'a', slots: 3 });
    assert.equal(assertProblem(await ben.ask('slots', { owner: 'b', slots: 2 }), 409, 'slots_conflict').slots, 3);
  });

  it('is released only with its own fence, if one is given', async () => {
    const { owner, fence } = await ann.take('fenced');
    assertProblem(await ann.release('fenced', owner, { fence: fence + 1 }), 409, 'stale_fence');
    assertProblem(await ben.release('fenced', owner), 410, 'lock_lost');
    assertOk(await ann.release('fenced', owner, { fence }));
  });

  it('has a larger fence at every grant, whatever the name', async () => {
    let last = 0;
    for (let i = 0; i < 20; i += 1) {
      const { owner, fence } = await (i % 2 ? ann : ben).take(`growing-${i % 3}`);
      assert.ok(fence > last, `${fence} after ${last}`);
      assert.ok(Number.isSafeInteger(fence));
      assert.equal((await look(server, `growing-${i % 3}`)).last_fence, fence);
      assertOk(await (i % 2 ? ann : ben).release(`growing-${i % 3}`, owner));
      last = fence;
    }
  });

  it('can be broken by an operator, and its holder loses it', async () => {
    const { owner } = await ann.take('broken');
    assert.deepEqual(assertOk(await server.post(`${pathOf('broken')}/break`)), { object: 'lock', name: 'broken' });
    assertProblem(await ann.release('broken', owner), 410, 'lock_lost');
    await ben.take('broken');
  });

  it('can be broken though nobody holds it', async () => {
    assert.deepEqual(assertOk(await server.post(`${pathOf('never held')}/break`)), { object: 'lock', name: 'never held' });
  });
});

describe('modes', () => {
  it('readers share a lock, and a writer excludes them', async () => {
    const reader = await ann.take('book', { mode: 'shared' });
    const other = await ben.take('book', { mode: 'shared' });
    assert.ok(other.fence > reader.fence);
    assert.deepEqual(labels((await look(server, 'book')).holders), ['ann', 'ben']);
    assertProblem(await ben.ask('book'), 409, 'lock_taken');
    assertOk(await ann.release('book', reader.owner));
    assertOk(await ben.release('book', other.owner));
    const writer = await ben.take('book');
    assertProblem(await ann.ask('book', { mode: 'shared' }), 409, 'lock_taken');
    assertOk(await ben.release('book', writer.owner));
  });

  it('a semaphore has as many holders as slots, each with a slot of its own', async () => {
    const held = await Promise.all([ann, ben, ann].map((party) => party.take('pool', { slots: 3 })));
    assert.deepEqual(held.map(({ slot }) => slot).sort(), [0, 1, 2]);
    assertProblem(await ben.ask('pool', { slots: 3 }), 409, 'lock_taken');
    assertOk(await ben.release('pool', held[1].owner));
    assert.equal((await ann.take('pool', { slots: 3 })).slot, held[1].slot);
  });

  it('a lock excludes those above and below it, not those beside it', async () => {
    const eu = await ann.take('bank/eu');
    assertProblem(await ben.ask('bank'), 409, 'lock_taken');
    assertProblem(await ben.ask('bank/eu/settle'), 409, 'lock_taken');
    await ben.take('bank/us');
    await ben.take('bank/eurozone');
    await ben.take('bankers');
    assertOk(await ann.release('bank/eu', eu.owner));
    await ben.take('bank/eu/settle');
  });

  it('an intention excludes whole locks, not other intentions', async () => {
    await ann.take('tree', { mode: 'intention_exclusive' });
    await ben.take('tree', { mode: 'intention_shared' });
    assertProblem(await ben.ask('tree', { mode: 'shared' }), 409, 'lock_taken');
    assertProblem(await ben.ask('tree'), 409, 'lock_taken');
    await ben.take('tree/leaf');
  });
});

describe('values', () => {
  it('come with the grant, can be changed, and end with it', async () => {
    const lock = await ann.take('leader', { value: 'http://10.0.0.7:9000' });
    assert.equal(lock.value, 'http://10.0.0.7:9000');
    assert.equal((await look(server, 'leader')).value, lock.value);
    const answer = assertOk(await ann.set('leader', lock, 'moved — "über"'));
    assert.deepEqual(answer, { object: 'lock', name: 'leader', owner: lock.owner, fence: lock.fence, value: 'moved — "über"' });
    assert.equal((await look(server, 'leader')).value, 'moved — "über"');
    assert.equal((await ann.take('leader', { owner: lock.owner })).value, 'moved — "über"');
    assert.equal(assertOk(await ann.set('leader', lock, null)).value, null);
    assert.equal((await look(server, 'leader')).value, null);
    assertOk(await ann.set('leader', lock, 'x'));
    assertOk(await ann.release('leader', lock.owner));
    assert.equal((await look(server, 'leader')).value, null);
  });

  it('belong to the holder with the right fence', async () => {
    const lock = await ann.take('owned', { value: 'mine' });
    assertProblem(await ann.set('owned', { ...lock, fence: lock.fence + 1 }, 'x'), 409, 'stale_fence');
    assertProblem(await ben.set('owned', lock, 'x'), 410, 'lock_lost');
    assert.equal((await look(server, 'owned')).value, 'mine');
  });

  it('have up to 4096 bytes', async () => {
    const lock = await ann.take('large', { value: 'x'.repeat(4096) });
    assert.equal(lock.value.length, 4096);
    assertProblem(await ann.set('large', lock, 'x'.repeat(4097)), 400, 'invalid_request');
    assertProblem(await ann.set('large', lock, 'é'.repeat(2049)), 400, 'invalid_request');
    assertOk(await ann.set('large', lock, 'é'.repeat(2048)));
  });
});

describe('lists', () => {
  it('show what is held or awaited, by prefix and page by page', async () => {
    const names = Array.from({ length: 7 }, (_, i) => `list/${i}`);
    for (const name of [...names, 'lisp', 'lisu']) await ann.take(name, { owner: 'a' });
    const seen = [];
    for (let cursor, n = 0; n < 10; n += 1) {
      const page = assertOk(await server.get(`/v1/locks?prefix=list/&limit=3${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`));
      assert.ok(page.data.length <= 3);
      seen.push(...page.data.map(({ name }) => name));
      cursor = page.next_cursor;
      assert.equal(page.has_more, cursor !== null);
      if (!cursor) break;
    }
    assert.deepEqual(seen, names);
    assertOk(await ann.release(names[0], 'a'));
    assert.deepEqual(assertOk(await server.get('/v1/locks?prefix=list/0')).data, []);
    assert.deepEqual(assertOk(await server.get('/v1/locks?prefix=lis&stale=true&limit=100')).data.map(({ name }) => name),
      ['lisp', ...names.slice(1), 'lisu']);
  });

  it('show each holder', async () => {
    const lock = await ann.take('shown', { value: 'v' });
    const { holders: [holder], ...rest } = await look(server, 'shown');
    assert.deepEqual({ ...holder, held_ms: 0, remaining_ms: 0 }, {
      label: 'ann', mode: 'exclusive', owner: lock.owner, fence: lock.fence, slot: 0, cached: false, delayed: false, held_ms: 0, remaining_ms: 0 });
    assert.ok(holder.held_ms >= 0 && holder.held_ms < 60_000);
    assert.ok(holder.remaining_ms > 0 && holder.remaining_ms <= ann.session.ttl_ms);
    assert.deepEqual({ ...rest, holders: [] }, { object: 'lock', name: 'shown', ...FREE, n_holders: 1, last_fence: lock.fence, value: 'v' });
  });

  it('show the label of the acquisition, if it has one', async () => {
    await ann.take('labelled', { label: 'ann, thread 3' });
    assert.deepEqual(labels((await look(server, 'labelled')).holders), ['ann, thread 3']);
    assert.deepEqual(assertProblem(await ben.ask('labelled'), 409, 'lock_taken').holders, ['ann, thread 3']);
  });
});

describe('the cell', () => {
  it('of one server has itself as the master', async () => {
    const cell = assertOk(await server.get('/v1/cell'));
    const url = `${server.tls ? 'https' : 'http'}://${server.host}:${server.port}`;
    assert.deepEqual(cell.master, { url });
    assert.deepEqual(cell.servers, [{ url, index: cell.index, role: 'master', lag: 0 }]);
    assert.ok(cell.epoch >= 1 && cell.index >= 1 && cell.appended_ms >= 0);
    assert.deepEqual([cell.journal, cell.journal_answers], ['sqlite', true]);
    assert.ok(cell.sessions >= 2 && cell.held >= 1);
  });

  it('of one server has nobody to hand over to', async () => {
    assertProblem(await server.post('/v1/cell/transfer'), 409, 'no_standby');
    await ann.take('still-here');
  });

  it('keeps sessions, locks, fences and values through a stop and through a crash', async () => {
    const own = await start();
    const party = await Party.open(own, { label: 'cat' });
    const lock = await party.take('kept', { value: 'v', owner: 'ab' });
    for (const again of [() => own.restart(), async () => { await own.kill9(); await own.launch(); }]) {
      await again();
      assert.deepEqual(await party.take('kept', { owner: 'ab' }), lock);
      const other = await Party.open(own, { label: 'dan' });
      assertProblem(await other.ask('kept'), 409, 'lock_taken');
      assert.ok((await other.take('elsewhere')).fence > lock.fence);
      assertOk(await party.keepAlive());
      assert.equal((await other.close()).status, 204);
    }
    assert.equal(assertOk(await own.get('/v1/cell')).epoch, 3);
    await own.stop();
  });
});
