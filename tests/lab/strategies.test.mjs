// docs/strategies.md: every number in its sentences is a link to a row of its tables, and equals the cell of that row in the
// column that the sentence speaks of.  The unit of the number names the column; where it does not, the link's title does:
// [62.9 ms](#pessimistic-500 "losers p50").
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, it } from 'node:test';

const document = fs.readFileSync(new URL('../../docs/strategies.md', import.meta.url), 'utf8');

const cellsOf = (line) => line.split('|').slice(1, -1).map((cell) => cell.replace(/<a id="[^"]*"><\/a>/, '').replaceAll('*', '').trim());

// "winners, ms: avg / p50 / p99" is three columns: "winners avg", "winners p50", "winners p99".
function columnsOf(header, cell) {
  const [, who, parts] = header.match(/^(\w+), ms: (.*)$/) ?? [];
  if (!who) return [[header, cell]];
  const values = cell.split(' / ');
  return parts.split(' / ').map((part, i) => [`${who} ${part}`, values[i]]);
}

// By the id of the row: a Map from column to cell.
function readRows(text) {
  const rows = new Map();
  let headers = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('| strategy |')) headers = cellsOf(line);
    const id = line.match(/^\| <a id="([^"]+)">/)?.[1];
    if (id) rows.set(id, new Map(cellsOf(line).flatMap((cell, i) => columnsOf(headers[i], cell))));
  }
  return rows;
}

const UNITS = [[/ winners$/, ['winners']], [/ of them too many$/, ['double-sold']], [/ users a second$/, ['users a second']],
  [/ round trips$/, ['trips', 'statements']], [/ commands$/, ['Redis']]];

// The errors of a document's claims; none for a good one.
function errorsOf(text) {
  const rows = readRows(text);
  const errors = [];
  for (const [, label, id, title, after] of text.matchAll(/\[([^\]]+)\]\(#([^) ]+)(?: "([^"]+)")?\)(\s*\([^)]*\))?/g)) {
    const row = rows.get(id);
    const number = label.match(/\d[\d,]*(\.\d+)?/)?.[0];
    const claim = `[${label}](#${id}${title ? ` "${title}"` : ''})${after ?? ''}`.replaceAll('\n', ' ');
    if (!row) {
      errors.push(`${claim}: there is no such row`);
    } else if (!number) {
      if (label.replaceAll('*', '') !== row.get('strategy')) errors.push(`${claim}: the row is one of ${row.get('strategy')}`);
    } else {
      const columns = title ? [title] : UNITS.find(([unit]) => unit.test(label))?.[1] ?? [];
      const column = columns.find((name) => row.has(name));
      const percentile = after?.match(/^\s*\((p\d+|avg)\b/)?.[1];
      if (!column) errors.push(`${claim}: which column is it?`);
      else if (row.get(column) !== number) errors.push(`${claim}: ${column} is ${row.get(column)}`);
      if (percentile && !title?.endsWith(` ${percentile}`)) errors.push(`${claim}: the sentence says ${percentile}, the link does not`);
      if (label.endsWith(' ms') !== /^(winners|losers) (avg|p\d+)$/.test(column)) errors.push(`${claim}: milliseconds are in other columns`);
    }
  }
  return errors;
}

describe('docs/strategies.md', () => {
  it('has a row for every strategy, on every database that it runs on', () => {
    const rows = readRows(document);
    for (const [name, suffixes] of Object.entries({ naive: ['', '-w', '-s'], pessimistic: ['', '-w'], optimistic: ['', '-w', '-s'],
      unique: ['', '-w', '-s'], 'redis-lease': ['', '-w'], 'two-layer': ['', '-w'], 'skip-locked': ['', '-w'], counter: ['', '-w'],
      queue: ['', '-w', '-s'], holdfast: ['', '-w', '-s'], 'counter-async': ['-g'], inventory: ['-g'] })) {
      for (const suffix of suffixes) assert.equal(rows.get(`${name}-500${suffix}`)?.get('strategy'), name, `${name}-500${suffix}`);
    }
  });

  it('links every claim to a row that has its number, in the column of the claim', () => {
    assert.ok([...document.matchAll(/\]\(#/g)].length > 40);
    assert.deepEqual(errorsOf(document), []);
  });

  // Errors that the document once had, and their like: each number is in the row, in another column.
  for (const [what, good, bad] of [
    ['the number of users for the number of winners', '[32 winners](#naive-50-s)', '[50 winners](#naive-50-s)'],
    ['an average for a median', '[93.0 ms](#two-layer-10000 "losers p50") (p50)', '[88.9 ms](#two-layer-10000 "losers p50") (p50)'],
    ['an average, linked as such, for a median', '[93.0 ms](#two-layer-10000 "losers p50") (p50)', '[88.9 ms](#two-layer-10000 "losers avg") (p50)'],
    ['an unnamed column', '[93.0 ms](#two-layer-10000 "losers p50") (p50)', '[88.9 ms](#two-layer-10000) (p50)'],
    ['another strategy', '[**unique**](#unique-500)', '[**unique**](#queue-500)'],
  ]) {
    it(`would notice ${what}`, () => {
      assert.ok(document.includes(good), good);
      assert.ok(errorsOf(document.replace(good, bad)).length > 0, bad);
    });
  }
});
