// `holdfast lab anomalies`: each race condition, played step by step on real servers, ends as it should on both sides.
// backends: own
// time limit: 480 s

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { before, describe, it } from 'node:test';
import { begin, holdfast } from '../support/cli.mjs';
import { postgresBin } from '../support/postgres.mjs';
import { HOLDFAST, isGone, tempDir, until } from '../support/server.mjs';

const NAMES = ['naive-double-sale', 'deadlock', 'open-transaction', 'lost-commit', 'gate-flushed', 'ledger-fails', 'counter-crash',
  'counter-async', 'blind-delete', 'get-then-delete', 'blind-renewal', 'clock-skew', 'paused-holder', 'redis-failover', 'redlock-pause',
  'redlock-clock', 'redlock-restart', 'etcd-pause', 'zookeeper-pause'];
const ON_SQLITE = ['naive-double-sale', 'lost-commit', 'blind-delete', 'get-then-delete', 'blind-renewal', 'paused-holder'];
// "docs/locks.md (Renewal)" names a page and one of its headings.
function missingPages(more) {
  return [...more.matchAll(/docs\/\S+?\.md(?: \(([^)]+)\))?/g)].filter(([page, heading]) => {
    const file = new URL(`../../${page.split(' ')[0]}`, import.meta.url);
    return !fs.existsSync(file) || (heading && !fs.readFileSync(file, 'utf8').split('\n').some((line) => /^#+ /.test(line) && line.replace(/^#+ /, '') === heading));
  });
}
// Runs it on the terminal that `script` provides.
const onTerminal = (columns, name) => () => ['script', '-qec', `stty cols ${columns}; exec ${HOLDFAST} lab anomalies --only ${name}`, '/dev/null'];

describe('holdfast lab anomalies', () => {
  let run, told;
  const sides = (name) => told.anomalies.find((anomaly) => anomaly.name === name).sides;
  const answers = ({ steps }) => steps.flatMap(({ text, answer }) => [text, answer]).filter(Boolean).join('\n');
  const asked = ({ steps }, pattern) => steps.filter(({ text }) => pattern.test(text)).length;

  before(async () => {
    run = await holdfast(undefined, ['lab', 'anomalies', '--json']);
    told = JSON.parse(run.stdout);
  });

  it('exits with 0 when every side ends as it should', () => {
    assert.equal(run.code, 0, run.stderr);
    assert.equal(told.object, 'lab.anomalies');
    assert.equal(told.ok, true);
    assert.deepEqual(told.left_out, []);
    assert.deepEqual(told.anomalies.map(({ name }) => name), NAMES);
  });

  for (const name of NAMES) {
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
    for (const { sides: both, title, moral, more } of told.anomalies) {
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

  it('prints a timeline that fits its terminal, with colours there unless NO_COLOR is set', async () => {
    const only = ['lab', 'anomalies', '--only', 'naive-double-sale'];
    const [piped, coloured, narrow, six] = await Promise.all([holdfast(undefined, only),
      holdfast(undefined, only, { wrap: onTerminal(200, 'naive-double-sale'), env: { NO_COLOR: '' } }),
      holdfast(undefined, only, { wrap: onTerminal(80, 'blind-delete'), env: { NO_COLOR: '1' } }),
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
    assert.match(narrow.stdout, /Ann +Bob +Carl +Redis +PostgreSQL/);
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
    await until('the processes are gone', () => ours().length === 0, 20_000);
    await until('the directory is gone', () => fs.readdirSync(dir).length === 0, 20_000);
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
    assert.deepEqual(told.left_out.map(({ name }) => name), NAMES.filter((name) => !ON_SQLITE.includes(name)));
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
