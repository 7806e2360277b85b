// docs/strategies.md: every number in its sentences is a link to a row of its tables, and is in that row.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { describe, it } from 'node:test';

const text = fs.readFileSync(new URL('../../docs/strategies.md', import.meta.url), 'utf8');
const rows = new Map([...text.matchAll(/^\| <a id="([^"]+)"><\/a>(.*)$/gm)].map(([, id, rest]) => [id, rest.split(/[|/]/)
  .map((cell) => cell.replaceAll('*', '').trim())]));
const links = [...text.matchAll(/\[([^\]]+)\]\(#([^)]+)\)/g)].map(([, label, id]) => ({ label, id }));

describe('docs/strategies.md', () => {
  it('has a row for every strategy, on every database that it runs on', () => {
    for (const [name, suffixes] of Object.entries({ naive: ['', '-w', '-s'], pessimistic: ['', '-w'], optimistic: ['', '-w', '-s'],
      unique: ['', '-w', '-s'], 'redis-lease': ['', '-w'], 'two-layer': ['', '-w'], 'skip-locked': ['', '-w'], counter: ['', '-w'],
      queue: ['', '-w', '-s'], holdfast: ['', '-w', '-s'] })) {
      for (const suffix of suffixes) assert.ok(rows.has(`${name}-500${suffix}`), `${name}-500${suffix}`);
    }
  });

  it('links every claim to a row that has its number', () => {
    assert.ok(links.length > 40);
    for (const { label, id } of links) {
      const row = rows.get(id);
      assert.ok(row, `${label}: there is no row ${id}`);
      const number = label.match(/\d[\d,]*(\.\d+)?/)?.[0];
      if (number) assert.ok(row.includes(number), `${label}: not in row ${id}: ${row.join(' ')}`);
      else assert.equal(label.replaceAll('*', ''), row[0]);
    }
  });
});
