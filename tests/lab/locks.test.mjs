// `holdfast lab locks`: the quick form over a file, a real Redis and a real holdfastd, its JSON, its table, and its part of the report.
// backends: own
// time limit: 480 s

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { before, describe, it } from 'node:test';
import { begin, holdfast } from '../support/cli.mjs';
import { assertTook, tempDir, until } from '../support/server.mjs';

const FAULTS = ['client_paused', 'client_killed', 'server_killed', 'server_empty', 'minority_lost', 'clock_forward', 'clock_back',
  'cut_short', 'cut_long'];
const CROWDS = [2, 3, 4], LOCKS = 2;
const hasFaketime = fs.readdirSync('/usr/lib').some((dir) => fs.existsSync(`/usr/lib/${dir}/faketime/libfaketime.so.1`));

describe('holdfast lab locks', () => {
  let told; // by sqlite, by redis and by holdfast, each measured by a process of its own
  const of = (name) => drivers().find(({ driver }) => driver === name);
  const drivers = () => told.flatMap(({ drivers: measured }) => measured);

  // Each client is a process, and starting it costs more than all that it does, so crowds are small and a fault strikes few locks.
  // On a busy machine a server may not answer within its two seconds, or a third of a second is too short for three
  // hand-overs, and whether the holder or another client is first to
  // see that a server forgot its lock is a race anyway.  What was not seen is measured again, for longer.
  const isSeen = ({ why, n = 3 }) => !/^failed: .*( no answer within | timeout | timed out )|^no hand-over in /.test(why) && (why !== null || n >= 3);
  const merge = (old, now) => ({
    ...now,
    speed: isSeen(old.speed) ? old.speed : now.speed,
    traffic: isSeen(old.traffic) ? old.traffic : now.traffic,
    hand_over: now.hand_over.map((crowd, i) => (isSeen(old.hand_over[i]) ? old.hand_over[i] : crowd)),
    faults: Object.fromEntries(FAULTS.map((name) => [name, isSeen(old.faults[name]) && (old.driver === 'holdfast' || old.faults[name].overlapped !== 0) ? old.faults[name] : now.faults[name]])),
  });
  const measure = async (name) => {
    let all, seconds = 0.3;
    await until(`all is seen on ${name}`, async () => {
      const { code, stdout, stderr } = await holdfast(undefined, ['lab', 'locks', '--quick', '--seconds', `${seconds}`, '--waiters', CROWDS.join(), '--locks', `${LOCKS}`,
        '--servers', name, '--json']);
      seconds *= 2;
      assert.ok([0, 1].includes(code), stderr);
      const one = JSON.parse(stdout);
      assert.equal(one.ok, code === 0);
      all = { ...one, drivers: [all ? merge(all.drivers[0], one.drivers[0]) : one.drivers[0]] };
      const [{ speed, hand_over: crowds, traffic, faults }] = all.drivers;
      return [speed, traffic, ...crowds, ...Object.values(faults)].every(isSeen) && (name === 'holdfast' || (faults.server_empty.overlapped ?? 0) + (faults.clock_forward.overlapped ?? 0) > 0);
    }, 300_000);
    return all;
  };

  before(async () => { told = await Promise.all(['sqlite', 'redis', 'holdfast'].map(measure)); });

  it('measures the drivers that it was asked for', () => {
    assert.deepEqual(told.map(({ object }) => object), ['lab.locks', 'lab.locks', 'lab.locks']);
    assert.deepEqual(drivers().map(({ driver }) => driver), ['sqlite', 'redis', 'holdfast']);
    assert.deepEqual(Object.keys(told[0].faults), FAULTS);
    for (const name of ['redis', 'holdfast']) assert.match(of(name).version, /^\d+\.\d+/);
  });

  it('has plausible speeds', () => {
    for (const { driver, speed, hand_over: crowds } of drivers()) {
      assert.equal(speed.why, null, driver);
      assert.ok(speed.n >= 3 && speed.p50_us > 0 && speed.p50_us <= speed.p99_us, JSON.stringify(speed));
      assertTook(speed.n / speed.per_second, 2 * told[0].seconds, `${driver}: what was to take ${told[0].seconds} s`);
      assert.deepEqual(crowds.map(({ waiters }) => waiters), CROWDS);
      for (const crowd of crowds) {
        assert.ok(crowd.n >= 3 && crowd.p50_us > 0 && crowd.p50_us <= crowd.p99_us, JSON.stringify(crowd));
        assert.deepEqual([crowd.overlaps, crowd.fences_fell], [0, 0], driver);
        // A client that stands still loses its turn; tests/conformance claims the order without a clock.
        if (process.env.HF_SOAK === '1') assert.deepEqual([crowd.pairs, crowd.in_order], [crowd.waiters - 1, crowd.waiters - 1], `${driver} serves waiters in their order`);
      }
    }
  });

  it('counts the messages of a hand-over where there are any', () => {
    for (const name of ['redis', 'holdfast']) {
      const { why, n, messages, bytes } = of(name).traffic;
      assert.equal(why, null);
      assert.ok(n >= 3 && messages >= 4 && messages < 200 && bytes > 100, `${name}: ${messages} messages, ${bytes} bytes`);
    }
    assert.match(of('sqlite').traffic.why, /^not applicable: there is no server/);
  });

  it('frees the lock of a killed holder within its TTL', () => {
    for (const { driver, faults: { client_killed: killed } } of drivers()) {
      assert.deepEqual([killed.why, killed.locks, killed.kept, killed.stuck, killed.overlaps], [null, LOCKS, 0, 0, 0], driver);
      assertTook(killed.gap_p50_ms, killed.ttl_ms + 500, `${driver}: the end of a lease`);
      assertTook(0.4 * killed.ttl_ms - killed.gap_p50_ms, 0, `${driver}: the rest of a lease, of which a third may be over, ended too soon and`);
    }
  });

  it('finds two holders after a file was removed, or Redis lost its data or its time, and growing fences', () => {
    const { server_empty: removed } = of('sqlite').faults;
    const { server_empty: empty, clock_forward: jumped } = of('redis').faults;
    assert.ok(removed.overlapped > 0 && removed.overlaps >= removed.overlapped, JSON.stringify(removed));
    assert.ok(empty.overlapped + (jumped.overlapped ?? 0) > 0, JSON.stringify([empty, jumped]));
    assert.deepEqual([removed.fences_fell, empty.fences_fell, jumped.fences_fell ?? 0], [0, 0, 0]);
  });

  it('finds no two holders where a file survives', () => {
    for (const name of FAULTS.filter((fault) => fault !== 'server_empty')) {
      const fault = of('sqlite').faults[name];
      if (fault.why) assert.match(fault.why, /^not (applicable|measurable here): \w/, name);
      else assert.deepEqual([fault.overlaps, fault.fences_fell, fault.stuck], [0, 0, 0], `${name}: ${JSON.stringify(fault)}`);
    }
    assert.equal(of('sqlite').faults.client_paused.overlapped, 0);
  });

  it('passes locks of a server on after a long cut, and finds no two holders after any', () => {
    for (const name of ['redis', 'holdfast']) {
      const { cut_short: short, cut_long: long, minority_lost: minority } = of(name).faults;
      assert.deepEqual([short.overlaps, short.stuck], [0, 0], `${name}: ${JSON.stringify(short)}`);
      assert.deepEqual([long.kept, long.overlaps, long.stuck], [0, 0, 0], `${name}: ${JSON.stringify(long)}`);
      assert.equal(minority.why, 'not applicable: one server');
    }
  });

  it('breaks the lock service, whose journal survives a kill', () => {
    const { client_paused: paused, server_killed: killed, server_empty: empty } = of('holdfast').faults;
    assert.deepEqual([paused.overlaps, paused.fences_fell, paused.stuck], [0, 0, 0], JSON.stringify(paused));
    assert.deepEqual([killed.why, killed.overlaps, killed.fences_fell, killed.stuck], [null, 0, 0, 0], JSON.stringify(killed));
    assert.ok(killed.outage_ms > 0);
    assert.deepEqual([empty.why, empty.fences_fell, empty.stuck], [null, 0, 0], JSON.stringify(empty));
  });

  it('steps the clock where faketime is installed, and otherwise says that it is not', () => {
    for (const name of ['clock_forward', 'clock_back']) {
      const fault = of('redis').faults[name];
      if (hasFaketime) assert.equal(fault.why, null);
      else assert.equal(fault.why, 'not measurable here: faketime is not installed');
      for (const driver of ['sqlite', 'holdfast']) assert.match(of(driver).faults[name].why, /boot-time clock/);
    }
  });

  it('prints a table, and names what is not installed', async () => {
    const { code, stdout } = await holdfast(undefined, ['lab', 'locks', '--quick', '--servers', 'memory,etcd'], { env: { PATH: '/nonexistent' } });
    assert.equal(code, 0);
    assert.match(stdout, /^ +memory +etcd$/m);
    for (const waiters of [2, 4, 8]) assert.match(stdout, new RegExp(`^hand-over, ${waiters} clients, ms `, 'm'));
    assert.match(stdout, /^acquire\+release a second +\d{4,} +\([a-z]\)$/m);
    assert.match(stdout, /^order of arrival, 4 clients +(not )?kept \d\/3 +\([a-z]\)$/m);
    assert.match(stdout, /^\([a-z]\) not measurable here: (etcd is not installed|the library was built without this driver)$/m);
    assert.match(stdout, /^ok: /m);
  });

  it('stops at a signal and leaves nothing behind', async () => {
    const dir = tempDir();
    fs.chmodSync(dir, 0o777);
    const one = begin(undefined, ['lab', 'locks', '--servers', 'redis', '--json'], { env: { TMPDIR: dir } });
    await until('its directory', () => fs.readdirSync(dir).length > 0);
    one.child.kill('SIGTERM');
    const { code, stdout } = await one.result;
    assert.equal(code, 128 + 15);
    assert.equal(stdout, '');
    assert.deepEqual(fs.readdirSync(dir), []);
  });

  it('refuses what it does not know', async () => {
    for (const [args, why] of [[['--servers', 'redis,chubby'], /no server chubby/], [['--waiters', '2,3'], /three numbers/],
      [['--ttl', '1h'], /at most 5s/], [['--seconds', '0'], /--seconds/], [['more'], /unexpected argument more/]]) {
      const { code, stderr } = await holdfast(undefined, ['lab', 'locks', ...args]);
      assert.equal(code, 64, stderr);
      assert.match(stderr, why);
    }
    assert.equal((await holdfast(undefined, ['lab', 'lock-client'])).code, 64);
  });
});
