// scripts/check-order finds expressions whose value depends on the order of evaluation, and nothing else.
// backends: own

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../support/process.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const CHECK = path.join(root, 'scripts/check-order');

// The declarations that the statements below refer to.
const DECLARATIONS = `
const char *text_of(const struct name *n, size_t *ret_len);
size_t size_of(const struct name *n);
unsigned take(struct cursor *c);
bool read_text(const struct name *n, const char **ret);
bool read_names(const struct name *n, const char *ret[]);
bool join(const char *const *names, const char *const more[]);
`;

// Returns the lines that the check prints about a function with these statements.
function check(...statements) {
  const file = path.join(tempDir(), 'case.c');
  fs.writeFileSync(file, `${DECLARATIONS}static int f(struct name *n)\n{\n${statements.join('\n')}\n}\n`);
  const { status, stdout, stderr } = spawnSync(CHECK, [file], { encoding: 'utf8' });
  assert.equal(stderr, '');
  const lines = stdout.split('\n').filter(Boolean).map((line) => line.replace(/^.*case\.c:\d+: /, ''));
  assert.equal(status, lines.length > 0 ? 1 : 0);
  return lines;
}

const finds = (name, ...statements) => assert.deepEqual(check(...statements), [`${name} may be written before or after it is read in the same expression`]);
const accepts = (...statements) => assert.deepEqual(check(...statements), []);

describe('scripts/check-order', () => {
  it('finds an argument that another argument of the same call writes', () => {
    finds('len', 'memcpy(to, text_of(n, &len), len);');
    finds('len', 'return put(len, text_of(n, &len));');
    finds('len', 'if (put((int)len * 2, wrap(text_of(n, &len))) == 0) return 1;');
  });

  it('finds a member that another argument writes', () => {
    finds('c->body.len', 'memcpy(to, text_of(n, &c->body.len), c->body.len);');
    finds('c.at', 'put(text_of(n, &c.at), c);');
    finds('c', 'put(take(&c), c.bad);');
  });

  it('finds an argument that a cast or parentheses stand around, and one of a function that a pointer leads to', () => {
    finds('len', 'memcpy(to, text_of(n, (size_t *)&len), len);');
    finds('len', 'memcpy(to, text_of(n, (&len)), len);');
    finds('c', 'put((*take)(&c), c);');
    finds('len', 'memcpy(to, n->texts[i].of(n, &len), len);');
  });

  it('finds a pointer that is written, though what it points to is const', () => {
    finds('text', 'put(read_text(n, &text), text);');
    finds('names', 'put(read_names(n, &names), names);');
    accepts('put(join(&names, &more), names, more);');
  });

  it('finds a pointer through which the left side of an assignment goes', () => {
    finds('n', 'n->len = find(&n);');
    finds('c.n', 'c.n->list[0].len = find(&c.n);');
    accepts('n.len = find(&n);', 'n = find(&n);');
  });

  it('finds operands, initializers and indexes', () => {
    finds('c', 'c.bad |= take(&c) != VERSION;');
    finds('len', 'size_t sum = size(text_of(n, &len)) + len;');
    finds('len', 'struct text t = {text_of(n, &len), len};');
    finds('len', 'put(&(struct text){.data = text_of(n, &len), .len = len});');
    finds('i', 'list[i] = take(&i);');
  });

  it('accepts what is in order', () => {
    accepts('const char *text = text_of(n, &len);', 'memcpy(to, text, len);');
    accepts('if (text_of(n, &len) && len > 2) return 0;', 'return text_of(n, &len) ? (int)len : 0;');
    accepts('len = strlen(text_of(n, &len));', 'for (take(&i); i < 3; i++) put(i);');
    accepts('put(&len, len);', 'put(text_of(n, &len), &len, sizeof len);');
  });

  it('accepts a pointer beside what it points to, another variable of a similar name, and a function that only reads', () => {
    accepts('put(c, text_of(n, &c->len));', 'put(text_of(n, &c->len), c->length, d->len);');
    accepts('put(size_of(&name), name.len);');
  });

  it('does not take comments, strings and other functions for code', () => {
    accepts('/* put(text_of(n, &len), len) */ put("text_of(n, &len), len", len); // text_of(n, &len), len');
    accepts('put(text_of(n, &len));\n}\nstatic int g(size_t len)\n{\n    return put(len);');
  });

  it('has nothing to say of this project', () => {
    const { status, stdout, stderr } = spawnSync(CHECK, [], { encoding: 'utf8' });
    assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: '', stderr: '' });
  });
});
