// scripts/check-comments finds tables and lists in comments that a formatter has torn, and nothing else.
// backends: own

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../support/process.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const CHECK = path.join(root, 'scripts/check-comments');

// Returns the numbers of the lines that the check reports of a comment with these lines.
function check(...lines) {
  const file = path.join(tempDir(), 'case.c');
  fs.writeFileSync(file, `/* The comment.\n${lines.map((line) => ` *${line}\n`).join('')} */\nint x;\n`);
  const { status, stdout, stderr } = spawnSync(CHECK, [file], { encoding: 'utf8' });
  assert.equal(stderr, '');
  const found = stdout.split('\n').filter(Boolean).map((line) => Number(/case\.c:(\d+): /.exec(line)[1]));
  assert.equal(status, found.length > 0 ? 1 : 0);
  return found;
}

const full = (words) => words.padEnd(97, ' and so on'); // a line that has room for no further word

describe('scripts/check-comments', () => {
  it('finds the end of an indented line at the margin', () => {
    assert.deepEqual(check(full('   N2 A keep-alive is answered'), ' were received. N3 An append'), [3]);
    assert.deepEqual(check(full('   - an item'), ' of a list'), [3]);
  });

  it('finds a row of a table that was glued to a paragraph', () => {
    assert.deepEqual(check('   trim   deletes entries', '', ' that are superfluous report    every server stores its URL'), [4]);
  });

  it('accepts lists, tables, and text behind them', () => {
    assert.deepEqual(check(full('   one   does this'), '         and that', '   two   rests', ' Text goes on.'), []);
    assert.deepEqual(check(full('   one   does this'), '', ' Text goes on.  It has two blanks.', ' - an item', ' - another'), []);
    assert.deepEqual(check(full(' A paragraph'), ' goes on', '       and ends in a drawing   | of two columns |'), []);
  });

  it('has nothing to say of this project', () => {
    const { status, stdout, stderr } = spawnSync(CHECK, [], { encoding: 'utf8' });
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' });
  });
});
