// What docs/cell.md promises of a lock service whose servers, clients or journal fail, one fault at a time, on three
// servers over PostgreSQL.  tests/history has the same faults at random.
// backends: own
// time limit: 300 s

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startCell } from '../support/cell.mjs';
import { begin, beginRun, run as runLocked } from '../support/cli.mjs';
import { assertOk } from '../support/expect.mjs';
import { labels, look, Party, pathOf, waiting } from '../support/locks.mjs';
import { assertTook, environment, HOLDFAST, launch, reap, sleep, standStill, until } from '../support/server.mjs';

const READER = path.join(path.dirname(HOLDFAST), 'tests/history/reader');
const TIMEOUT_MS = 5000; // --cell-timeout: on a busy machine a master may stand still for a second or two, and must not be replaced for that
const TAKEOVER_MS = 3 * (TIMEOUT_MS + 1000); // what is promised, three times, for a busy machine
const LONG_MS = 600_000; // of a session that nobody keeps alive
const WAIT_MS = 60_000; // the server's maximum
const PATIENCE = ['--timeout', '5s']; // for one exchange of a command, which may stand still, too

let cell;
const postgres = () => cell.journal.nodes[0];
const others = (server) => cell.servers.filter((other) => other !== server);
const about = async (server) => assertOk(await server.get('/v1/cell'));
const stale = async (server, name) => assertOk(await server.get(`${pathOf(name)}?stale=true`));
const fences = ({ holders }) => holders.map(({ fence }) => fence);
// `holdfast run` says that it waits for a server, which is no error.
const complaints = (stderr) => stderr.split('\n').filter((line) => line && !/^holdfast run: the coordinator (is out of reach, waiting for it: |answers again$)/.test(line));
const nowUs = () => Number(process.hrtime.bigint() / 1000n);

// The server of these that leads and says so itself.
const leaderOf = (servers) => until('one of them leads', async () => {
  for (const server of servers) if ((await about(server)).role === 'master') return server;
  return undefined;
});
// Every server runs, and follows one master.
const settled = () => until('all servers follow one master', async () => {
  const seen = await Promise.all(cell.servers.map(about));
  return seen.filter(({ role }) => role === 'master').length === 1 && new Set(seen.map(({ epoch, master }) => `${epoch} ${master?.url}`)).size === 1;
});
// The same session, asked for at another server.
const at = (party, server) => new Party(server, party.session);

before(async () => { cell = await startCell('postgres', { timeout: `${TIMEOUT_MS}ms` }); });
after(async () => { try { await cell?.close(); } finally { await reap(); } });

describe('a process that caches a shared lock', () => {
  const TTL_MS = 2000;
  const faults = {
    'is cut off': {
      begin: () => { for (const { proxy } of cell.servers) proxy.cut(); },
      end: () => { for (const { proxy } of cell.servers) proxy.restore(); },
    },
    'is behind a network that swallows everything': {
      begin: () => { for (const { proxy } of cell.servers) proxy.blackhole(); },
      end: () => { for (const { proxy } of cell.servers) proxy.restore(); },
    },
    'stands still': { begin: (reader) => reader.child.kill('SIGSTOP'), end: (reader) => reader.child.kill('SIGCONT') },
    'stands still and wakes up cut off': { // so only its clock can tell it
      begin: (reader) => { for (const { proxy } of cell.servers) proxy.blackhole(); reader.child.kill('SIGSTOP'); },
      wake: (reader) => reader.child.kill('SIGCONT'),
      end: () => { for (const { proxy } of cell.servers) proxy.restore(); },
    },
    'loses its master': { begin: (reader, master) => master.kill9(), end: (reader, master) => master.launch(), extraMs: TAKEOVER_MS, isHeard: true },
  };
  for (const [what, fault] of Object.entries(faults)) {
    it(`${what}: the writer has the lock within the TTL, and the reader does not believe that it has it`, async () => {
      await settled();
      const master = await cell.master(), name = `cached/${what}`;
      const reader = launch(READER, [`${cell.url}?cache=shared`, name, `${TTL_MS}`], { env: environment({}, false), stdio: ['pipe', 'pipe', 'pipe'] });
      const believed = () => reader.stdout.split('\n').slice(0, -1).filter((line) => /^\d+$/.test(line)).map(Number);
      await until('the reader reads', () => believed().length > 50);

      const from = nowUs();
      await fault.begin(reader, master);
      const server = fault.isHeard ? await leaderOf(others(master)) : master;
      const writer = await Party.open(server, { ttl_ms: LONG_MS });
      const lock = await writer.take(name, { owner: 'b', wait_ms: WAIT_MS });
      const granted = nowUs();
      assertTook((granted - from) / 1000, TTL_MS + 1000 + (fault.extraMs ?? 0), 'the way of the lock to the writer');
      await fault.wake?.(reader);
      if (fault.wake) await sleep(300);
      await fault.end(reader, master);
      await sleep(500);
      assert.deepEqual(believed().filter((moment) => moment > granted), [], 'while the writer had it');
      assertOk(await writer.release(name, lock.owner));
      const released = nowUs();
      await until('the reader reads again', () => believed().some((moment) => moment > released));
      reader.child.stdin.end();
      assert.deepEqual(await reader.done, { code: 0, signal: null }, reader.stderr);
      assert.ok(Number(/^cached (\d+)$/m.exec(reader.stdout)[1]) > 10, 'it has read from its cache');
      await writer.close();
    });
  }
});

describe('standbys that are cut off the journal', () => {
  it('serve stale reads, do not claim when they come back, and catch up', async () => {
    await settled();
    const master = await cell.master(), standbys = others(master);
    const { epoch } = await about(master);
    const ann = await Party.open(master, { ttl_ms: LONG_MS });
    const first = await ann.take('standby/first');
    for (const standby of standbys) await until('it has read the grant', async () => (await stale(standby, 'standby/first')).holders.length === 1);
    standbys[0].links[0].cut();
    standbys[1].links[0].blackhole();
    await sleep(200); // what was under way has arrived
    const second = await ann.take('standby/second');
    for (const end = Date.now() + 1.5 * TIMEOUT_MS; Date.now() < end; await sleep(250)) {
      for (const standby of standbys) {
        assert.deepEqual(fences(await stale(standby, 'standby/first')), [first.fence]);
        assert.deepEqual(fences(await stale(standby, 'standby/second')), []);
      }
    }
    for (const { links: [link] } of standbys) link.restore();
    for (const standby of standbys) await until('it has caught up', async () => fences(await stale(standby, 'standby/second'))[0] === second.fence);
    for (const server of cell.servers) assert.equal((await about(server)).epoch, epoch);
    assert.equal((await about(master)).role, 'master');
    await ann.close();
  });

  it('do not count silence that they could not have heard', async () => {
    await settled();
    const master = await cell.master(), standbys = others(master);
    const { epoch } = await about(master);
    const stopped = performance.now();
    master.pause();
    await sleep(TIMEOUT_MS / 5); // they read the last of it
    for (const { links: [link] } of standbys) link.cut();
    const heardMs = performance.now() - stopped;
    for (const standby of standbys) await until('it is cut off', async () => !(await about(standby)).journal_answers);
    await sleep(1.5 * TIMEOUT_MS);
    const restored = performance.now();
    standbys[0].links[0].restore();
    await until('it reads the journal, where nothing is new', async () => (await about(standbys[0])).journal_answers, undefined, 5);
    await sleep(TIMEOUT_MS / 10);
    master.resume(); // before it was silent for as long as the standby could hear
    standbys[1].links[0].restore();
    const isKept = async () => (await about(master)).epoch === epoch && (await about(master)).role === 'master';
    await until('the master is heard, or replaced', async () => !await isKept() || (await Promise.all(standbys.map(about))).every((seen) => seen.journal_answers));
    await settled();
    const silentMs = Math.max(heardMs, performance.now() - restored);
    // A standby that heard nothing for as long as the timeout claims rightly, as it may on a busy machine.
    if (silentMs < 0.8 * TIMEOUT_MS) assert.ok(await isKept(), `the master was silent for ${silentMs} ms, and was replaced`);
  });
});

describe('a master that is cut off the journal', () => {
  it('may say that it leads beside the next one, and says for which epoch and since when it could not append', async () => {
    await settled();
    const old = await cell.master(), { epoch } = await about(old);
    assert.ok((await about(old)).appended_ms < 60_000);
    old.links[0].blackhole();
    await until('another leads', async () => (await Promise.all(others(old).map(about))).some((seen) => seen.role === 'master' && seen.epoch > epoch));
    const seen = await about(old);
    if (seen.role === 'master') { // unless it has heard of it
      assert.equal(seen.epoch, epoch);
      assert.ok(seen.appended_ms >= TIMEOUT_MS / 2, `${seen.appended_ms}`);
    }
    const next = (await Promise.all(others(old).map(about))).find(({ role }) => role === 'master');
    assert.ok(!next || next.appended_ms >= 0);
    for (const standby of others(old)) if ((await about(standby)).role === 'standby') assert.equal((await about(standby)).appended_ms, null);
    old.links[0].restore();
    await settled();
    await until('it follows', async () => (await about(old)).role === 'standby' || (await about(old)).epoch > epoch);
  });
});

describe('a master that stands still under load', () => {
  it('is replaced, waiters are granted, and it answers nothing as master when it wakes up', async () => {
    await settled();
    const old = await cell.master(), { epoch } = await about(old);
    const ann = await Party.open(old, { ttl_ms: LONG_MS, label: 'ann' });
    const kept = await ann.take('still/kept', { owner: 'a' });
    const ben = await Party.open(old, { ttl_ms: 6000, label: 'ben' }); // not kept alive once somebody waits for its lock
    await ben.take('still/next', { owner: 'b' });
    const waiter = begin(cell.url, ['run', ...PATIENCE, 'still/next', '--', 'echo', 'granted']);
    await until('it waits', async () => {
      assertOk(await ben.keepAlive());
      return (await look(old, 'still/next')).n_waiters === 1;
    });
    let loads = true;
    const load = [0, 1, 2, 3].map(async (i) => {
      while (loads) await ann.ask(`still/load${i}`, { owner: 'c', agent: `${i}` }).then(() => ann.release(`still/load${i}`, 'c')).catch(() => {});
    });
    await sleep(300);
    await standStill(old.pid); // nothing that is sent from now on is received before it wakes up
    loads = false;
    const unheard = [ann.keepAlive(), ann.ask('still/fresh', { owner: 'd' }), ann.ask('still/fresh', { owner: 'e', wait_ms: 5000, agent: 'e' }),
      old.get(pathOf('still/kept')), old.post('/v1/sessions', { ttl_ms: 10_000 })];
    const master = await leaderOf(others(old));
    assert.equal((await waiter.result).stdout, 'granted\n');
    assert.ok((await about(master)).epoch > epoch);
    assert.deepEqual(fences(await look(master, 'still/kept')), [kept.fence]);
    assertOk(await at(ann, master).keepAlive());
    assert.deepEqual(fences(await look(master, 'still/fresh')), []);

    old.resume();
    for (const result of await Promise.allSettled(unheard)) {
      if (result.status === 'fulfilled') assert.ok([307, 503].includes(result.value.status), result.value.text);
    }
    await Promise.all(load);
    for (const answer of [await ann.keepAlive(), await ann.ask('still/fresh', { owner: 'f' }), await old.get(pathOf('still/kept'))]) assert.ok([307, 503].includes(answer.status), answer.text);
    await until('it is a standby', async () => (await about(old)).role === 'standby');
    const sent = await until('it knows the master', async () => { // a standby answers 503 until then
      const answer = await ann.keepAlive();
      assert.ok([307, 503].includes(answer.status), answer.text);
      return answer.status === 307 && answer;
    });
    assert.ok(sent.headers.location.startsWith(`http://127.0.0.1:${master.proxy.port}/`), sent.headers.location);
    assert.deepEqual(fences(await look(master, 'still/fresh')), []);
    assert.deepEqual(fences(await look(master, 'still/kept')), [kept.fence]);
    await at(ann, master).close();
  });
});

describe('a master that ends', () => {
  it('by kill -9: waiters are granted within the promised time, and sessions and locks survive', async () => {
    await settled();
    const old = await cell.master();
    const ann = await Party.open(old, { ttl_ms: LONG_MS, label: 'ann' });
    const kept = await ann.take('killed/kept', { owner: 'a' });
    await ann.take('killed/turn', { owner: 'b' });
    const holder = await beginRun(cell.url, [...PATIENCE, 'killed/held'], 'read line; echo $line', { input: null });
    const { fence } = (await look(old, 'killed/held')).holders[0];
    const waiter = begin(cell.url, ['run', ...PATIENCE, 'killed/turn', '--', 'echo', 'granted']);
    await until('it waits', async () => (await look(old, 'killed/turn')).n_waiters === 1);
    const from = performance.now();
    await old.kill9();
    const master = await leaderOf(others(old));
    assertOk(await at(ann, master).release('killed/turn', 'b'));
    await until('the waiter is granted', () => waiter.stdout === 'granted\n');
    const ms = performance.now() - from;
    assertTook(ms, TAKEOVER_MS, 'the takeover');
    assert.equal((await waiter.result).code, 0);
    assertOk(await at(ann, master).keepAlive());
    assert.deepEqual(fences(await look(master, 'killed/kept')), [kept.fence]);
    assert.deepEqual(fences(await look(master, 'killed/held')), [fence]);
    holder.child.stdin.end('goes on\n');
    const { code, stdout, stderr } = await holder.result;
    assert.deepEqual([code, complaints(stderr)], [0, []]);
    assert.match(stdout, /\ngoes on\n$/);
    await at(ann, master).close();
    await old.launch();
  });

  it('cleanly: a place in the line and every lock are there at the next master', async () => {
    await settled();
    const old = await cell.master();
    const ann = await Party.open(old, { ttl_ms: LONG_MS, label: 'ann' });
    const kept = await ann.take('stopped/kept', { owner: 'a' });
    const waiter = begin(cell.url, ['run', ...PATIENCE, 'stopped/kept', '--', 'echo', 'granted']);
    await until('it waits', async () => (await look(old, 'stopped/kept')).n_waiters === 1);
    await old.stop({ keep: true });
    const master = await leaderOf(others(old));
    assertOk(await at(ann, master).keepAlive());
    assert.deepEqual(fences(await look(master, 'stopped/kept')), [kept.fence]);
    assertOk(await at(ann, master).release('stopped/kept', 'a'));
    const { code, stdout, stderr } = await waiter.result;
    assert.deepEqual([code, stdout, complaints(stderr)], [0, 'granted\n', []]);
    await at(ann, master).close();
    await old.launch();
  });

  it('and all servers restarted one after the other under load: no lock is lost, and no client sees an error', async () => {
    await settled();
    const holder = await beginRun(cell.url, [...PATIENCE, 'rolling/held'], 'read line; echo $line', { input: null });
    const { fence } = (await look(await cell.master(), 'rolling/held')).holders[0];
    let loads = true, n = 0;
    const load = [0, 1, 2].map(async () => {
      for (; loads; n++) {
        const { code, stderr } = await runLocked(cell.url, [...PATIENCE, 'rolling/load', '--', 'true']);
        assert.deepEqual([code, complaints(stderr)], [0, []]);
      }
    });
    for (const server of cell.servers) { await server.stop({ keep: true }); await server.launch(); await settled(); }
    loads = false;
    await Promise.all(load);
    assert.ok(n > 3, `${n} locks`);
    assert.deepEqual(fences(await look(await cell.master(), 'rolling/held')), [fence]);
    holder.child.stdin.end('goes on\n');
    const { code, stderr } = await holder.result;
    assert.deepEqual([code, complaints(stderr)], [0, []]);
  });
});

describe('a journal that is gone for longer than the timeout', () => {
  it('ends no session of ten seconds, refuses no keep-alive with a wrong code, and keeps places', async () => {
    await settled();
    const server = await cell.master();
    const ann = await Party.open(server, { ttl_ms: 10_000, label: 'ann' });
    const ben = await Party.open(server, { ttl_ms: 10_000, label: 'ben' });
    const answers = [];
    let isKept = true;
    const keeping = (async () => { // as clients do, which know every server
      for (; isKept; await sleep(200)) for (const each of cell.servers) answers.push(at(ann, each).keepAlive(), at(ben, each).keepAlive());
    })();
    const kept = await ann.take('gone/kept', { owner: 'a' });
    const holder = await beginRun(cell.url, [...PATIENCE, 'gone/held'], 'read line; echo $line', { input: null });
    const wait = ben.ask('gone/kept', { owner: 'b', wait_ms: WAIT_MS });
    await waiting(server, 'gone/kept', ['ben']);
    await postgres().crash();
    await sleep(1.5 * TIMEOUT_MS);
    await postgres().start();
    await settled();
    isKept = false;
    await keeping;
    for (const answer of await Promise.all(answers)) {
      assert.ok(answer.status === 200 || answer.status === 307 || (answer.status === 503 && ['journal_unavailable', 'no_master', 'outcome_unknown'].includes(answer.json.code)), answer.text);
    }
    const master = await cell.master();
    assertOk(await at(ann, master).keepAlive());
    assertOk(await at(ben, master).keepAlive());
    assert.deepEqual(fences(await look(master, 'gone/kept')), [kept.fence]);
    assertOk(await at(ann, master).release('gone/kept', 'a'));
    let answer = await wait;
    if (answer.status === 503 || answer.status === 307) answer = await at(ben, master).ask('gone/kept', { owner: 'b', wait_ms: WAIT_MS });
    assert.ok(assertOk(answer).fence > kept.fence);
    assert.deepEqual(labels((await look(master, 'gone/held')).holders).length, 1);
    holder.child.stdin.end('goes on\n');
    const { code, stderr } = await holder.result;
    assert.deepEqual([code, complaints(stderr)], [0, []]);
    await at(ann, master).close();
    await at(ben, master).close();
  });
});

describe('a server that has read another history than the journal has', () => {
  const last = () => Number(postgres().sql('-c', 'SELECT max(idx) FROM holdfast_cell.entries'));

  it('reads it anew, and serves what the journal says', async () => {
    await settled();
    const master = await cell.master(), [next, follower] = others(master);
    const common = last();
    const ann = await Party.open(master, { ttl_ms: LONG_MS, label: 'ann' });
    await ann.take('history/lost');
    await until('the follower has read the grant', async () => (await stale(follower, 'history/lost')).holders.length === 1);
    follower.pause();
    await next.kill9();
    await master.kill9();
    const read = last();
    postgres().sql('-c', `DELETE FROM holdfast_cell.entries WHERE idx > ${common}`); // as a restored backup has it
    await next.launch();
    await leaderOf([next]);
    const ben = await Party.open(next, { ttl_ms: LONG_MS, label: 'ben' });
    const lock = await ben.take('history/new', { owner: 'b' });
    await until('the new history is longer', () => last() > read, undefined, 200);

    follower.resume();
    await until('the follower has the new history', async () => {
      const { holders } = await stale(follower, 'history/new');
      assert.ok(holders.length === 0 || fences({ holders })[0] === lock.fence);
      return holders.length === 1 && (await stale(follower, 'history/lost')).holders.length === 0;
    });
    await until('it says so', () => /the journal of the locks is read anew/.test(follower.stderr));
    await next.kill9();
    await leaderOf([follower]);
    assert.deepEqual(fences(await look(follower, 'history/new')), [lock.fence]);
    assertOk(await at(ben, follower).keepAlive());
    assert.ok((await at(ben, follower).take('history/lost', { owner: 'c' })).fence > lock.fence);
    await at(ben, follower).close();
    await Promise.all([master.launch(), next.launch()]);
    await settled();
  });
});
