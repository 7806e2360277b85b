// `holdfast lab anomalies`: what it prints, what it plays where servers are missing, and that it leaves nothing behind.
// report.test.mjs has how each anomaly ends.
// backends: own
// time limit: 480 s

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, it } from 'node:test';
import { begin, holdfast } from '../support/cli.mjs';
import { ANOMALIES } from '../support/lab.mjs';
import { postgresBin } from '../support/postgres.mjs';
import { HOLDFAST, isGone, tempDir, until } from '../support/server.mjs';

const ON_SQLITE = ['naive-double-sale', 'lost-commit', 'blind-delete', 'get-then-delete', 'blind-renewal', 'paused-holder'];

// Runs it on the terminal that `script` provides, with `path` as its PATH.
const onTerminal = (columns, name, path = process.env.PATH) => () => ['script', '-qec',
  `stty cols ${columns}; PATH='${path}'; exec ${HOLDFAST} lab anomalies --only ${name}`, '/dev/null'];

describe('holdfast lab anomalies', () => {
  // The picture of an anomaly does not depend on its servers, so all but the widest are drawn of SQLite, which needs no server.
  it('prints a timeline that fits its terminal, with colours there unless NO_COLOR is set', async () => {
    const only = ['lab', 'anomalies', '--only', 'naive-double-sale'];
    const [piped, coloured, narrow, six] = await Promise.all([holdfast(undefined, only, { env: { PATH: '/nonexistent' } }),
      holdfast(undefined, only, { wrap: onTerminal(200, 'naive-double-sale', '/nonexistent'), env: { NO_COLOR: '' } }),
      holdfast(undefined, only, { wrap: onTerminal(80, 'blind-delete', '/nonexistent'), env: { NO_COLOR: '1' } }),
      holdfast(undefined, only, { wrap: onTerminal(80, 'counter-crash'), env: { NO_COLOR: '1' } })]);
    for (const { code, stdout } of [piped, coloured]) {
      assert.equal(code, 0, stdout);
      assert.match(stdout, /VIOLATED.*: A-1 has 2 tickets: Ann and Bob[^]*PROTECTED.*: A-1 has 1 ticket: Ann/);
      assert.match(stdout, /Bob thinks: "It is free, I take it\."/);
      assert.doesNotMatch(stdout, /deadlock/);
    }
    assert.match(piped.stdout, /●─+┼─+▶ +SELECT status FROM seats/);
    assert.match(coloured.stdout, /\x1b\[1;31mVIOLATED/);
    for (const { stdout } of [piped, narrow]) assert.doesNotMatch(stdout, /\x1b/);
    assert.match(narrow.stdout, /Ann +Bob +Carl +SQLite/);
    assert.match(six.stdout, /Ann +Bob +Carl +Job +Redis +PostgreSQL/);
    for (const { stdout } of [narrow, six]) assert.deepEqual(stdout.split(/\r?\n/).filter((line) => [...line].length > 80), []);
  });

  it('refuses the name of an unknown anomaly', async () => {
    const wrong = await holdfast(undefined, ['lab', 'anomalies', '--only', 'nonsense']);
    assert.equal(wrong.code, 64);
    assert.match(wrong.stderr, /there is no anomaly nonsense/);
  });
});

describe('anomalies that are killed', () => {
  it('leave no process behind, not even a client that is stopped, and no file', async () => {
    const dir = tempDir();
    fs.chmodSync(dir, 0o755); // the servers run as another user when the test runs as root
    const read = (pid, what) => { try { return what(`/proc/${pid}`); } catch { return ''; } };
    // Servers and clients work in the directory of the lab, which is below this one.
    const ours = () => fs.readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && !isGone(pid)
      && read(pid, (proc) => fs.readlinkSync(`${proc}/cwd`)).startsWith(dir));
    const isStopped = (pid) => /^State:\s+T/m.test(read(pid, (proc) => fs.readFileSync(`${proc}/status`, 'utf8')));
    // A client is stopped for a second; on a very busy machine this process may not run in that second.
    for (let tries = 0, seen = false; !seen; tries += 1) {
      assert.ok(tries < 5, 'no client is ever seen stopped');
      let hasEnded = false;
      const run = begin(undefined, ['lab', 'anomalies', '--only', 'redlock-pause'], { env: { TMPDIR: dir } });
      run.result.then(() => { hasEnded = true; });
      await until('a client is stopped', () => { seen = ours().some(isStopped); return seen || hasEnded; }, 60_000);
      run.child.kill('SIGKILL');
      await run.result;
    }
    await until('the processes are gone', () => ours().length === 0);
    await until('the directory is gone', () => fs.readdirSync(dir).length === 0);
  });
});

describe('anomalies where a server is missing', () => {
  it('are left out with the reason, and the rest is played', async () => {
    const dir = tempDir();
    fs.chmodSync(dir, 0o755);
    fs.symlinkSync(execFileSync('sh', ['-c', 'command -v redis-server'], { encoding: 'utf8' }).trim(), `${dir}/redis-server`);
    const PATH = `${dir}:${postgresBin()}`;
    const left = async (name) => (await play(PATH, ['--only', name])).stderr;
    assert.match(await left('etcd-pause'), /^holdfast lab anomalies: cannot be played here: etcd is not installed$/m);
    assert.match(await left('zookeeper-pause'), /cannot be played here: ZooKeeper is not installed/);
    assert.match(await left('redlock-clock'), /cannot be played here: faketime is not installed/);
    const { code, told } = await play(PATH, ['--only', 'redlock-restart']);
    assert.equal(code, 0);
    assert.deepEqual(told.anomalies.map(({ name }) => name), ['redlock-restart']);
  });

  const play = async (PATH, args = []) => {
    const { code, stdout, stderr } = await holdfast(undefined, ['lab', 'anomalies', '--json', ...args], { env: { PATH } });
    return { code, stderr, told: stdout && JSON.parse(stdout) };
  };

  it('are played on SQLite, end the same way, and name what was left out', async () => {
    const { code, told } = await play('/nonexistent');
    assert.equal(code, 0);
    assert.equal(told.ok, true);
    assert.match(told.note, /^PostgreSQL is not installed/);
    assert.deepEqual(told.left_out.map(({ name }) => name), ANOMALIES.filter((name) => !ON_SQLITE.includes(name)));
    assert.ok(told.left_out.every(({ why }) => why));
    assert.deepEqual(told.anomalies.map(({ name }) => name), ON_SQLITE);
    const [sale, lost, blind, looked, renewed, paused] = told.anomalies.map(({ sides }) => sides);
    for (const sides of [sale, lost, blind, looked, renewed, paused]) {
      assert.deepEqual(sides.map(({ verdict }) => verdict), ['violated', 'protected']);
      assert.ok(sides.every(({ actors }) => actors.at(-1) === 'SQLite' && !actors.includes('Redis')));
    }
    assert.deepEqual(sale.map(({ evidence }) => evidence), ['A-1 has 2 tickets: Ann and Bob', 'A-1 has 1 ticket: Ann']);
    assert.deepEqual(blind.map(({ evidence }) => evidence), ['A-1 has 2 tickets: Bob and Carl', 'A-1 has 1 ticket: Bob']);
    assert.deepEqual(looked.map(({ evidence }) => evidence), ['A-1 has 2 tickets: Bob and Carl', 'A-1 has 1 ticket: Bob']);
    assert.deepEqual(renewed.map(({ evidence }) => evidence), ['A-1 has 2 tickets: Ann and Bob', 'A-1 has 1 ticket: Bob']);
    assert.deepEqual(paused.map(({ evidence }) => evidence), ['A-1 has 2 tickets: Bob and Ann', 'A-1 has 1 ticket: Bob']);
    assert.match(lost[0].evidence, /order-7 was sold 2 times: A-1 and A-2, both charged to Ann/);
    assert.match(lost[1].evidence, /order-7 was sold once: A-1 to Ann/);
  });

  it('cannot all be played there', async () => {
    const { code, stderr } = await play('/nonexistent', ['--only', 'deadlock']);
    assert.equal(code, 69);
    assert.match(stderr, /PostgreSQL is not installed.*SQLite locks the whole file/);
  });

  it('need Redis only if it is one of the actors', async () => {
    const locks = await play(postgresBin(), ['--only', 'blind-delete']);
    assert.equal(locks.code, 0);
    assert.match(locks.told.note, /^Redis is not installed/);
    assert.deepEqual(locks.told.anomalies[0].sides[0].actors, ['Ann', 'Bob', 'Carl', 'SQLite']);
    const rows = await play(postgresBin(), ['--only', 'naive-double-sale']);
    assert.equal(rows.code, 0);
    assert.equal(rows.told.note, null);
    assert.deepEqual(rows.told.anomalies[0].sides[0].actors, ['Ann', 'Bob', 'PostgreSQL']);
  });
});
