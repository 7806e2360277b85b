// `holdfast lab anomalies`: each race condition, played step by step on real servers, ends as it should on both sides.
// backends: own

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { holdfast } from '../support/cli.mjs';
import { postgresBin } from '../support/postgres.mjs';
import { HOLDFAST } from '../support/server.mjs';

const NAMES = ['naive-double-sale', 'blind-delete', 'paused-holder', 'deadlock', 'gate-flushed', 'lost-commit'];
const ON_SQLITE = ['naive-double-sale', 'blind-delete', 'paused-holder', 'lost-commit'];
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
    for (const { sides: both, title, moral } of told.anomalies) {
      assert.ok(title && moral);
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
    const [piped, coloured, narrow] = await Promise.all([holdfast(undefined, only),
      holdfast(undefined, only, { wrap: onTerminal(200, 'naive-double-sale'), env: { NO_COLOR: '' } }),
      holdfast(undefined, only, { wrap: onTerminal(80, 'blind-delete'), env: { NO_COLOR: '1' } })]);
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
    assert.deepEqual(narrow.stdout.split(/\r?\n/).filter((line) => [...line].length > 80), []);
  });

  it('refuses the name of an unknown anomaly', async () => {
    const wrong = await holdfast(undefined, ['lab', 'anomalies', '--only', 'nonsense']);
    assert.equal(wrong.code, 64);
    assert.match(wrong.stderr, /there is no anomaly nonsense/);
  });
});

describe('anomalies where a server is missing', () => {
  const play = async (PATH, args = []) => {
    const { code, stdout, stderr } = await holdfast(undefined, ['lab', 'anomalies', '--json', ...args], { env: { PATH } });
    return { code, stderr, told: stdout && JSON.parse(stdout) };
  };

  it('are played on SQLite, end the same way, and name what was left out', async () => {
    const { code, told } = await play('/nonexistent');
    assert.equal(code, 0);
    assert.equal(told.ok, true);
    assert.match(told.note, /^PostgreSQL is not installed/);
    assert.deepEqual(told.left_out.map(({ name }) => name), ['deadlock', 'gate-flushed']);
    assert.ok(told.left_out.every(({ why }) => why));
    assert.deepEqual(told.anomalies.map(({ name }) => name), ON_SQLITE);
    const [sale, blind, paused, lost] = told.anomalies.map(({ sides }) => sides);
    for (const sides of [sale, blind, paused, lost]) {
      assert.deepEqual(sides.map(({ verdict }) => verdict), ['violated', 'protected']);
      assert.ok(sides.every(({ actors }) => actors.at(-1) === 'SQLite' && !actors.includes('Redis')));
    }
    assert.deepEqual(sale.map(({ evidence }) => evidence), ['A-1 has 2 tickets: Ann and Bob', 'A-1 has 1 ticket: Ann']);
    assert.deepEqual(blind.map(({ evidence }) => evidence), ['A-1 has 2 tickets: Bob and Carl', 'A-1 has 1 ticket: Bob']);
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
