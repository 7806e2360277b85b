// docs/clients.md and the READMEs of the clients are true: their code runs, and prints what the pages show.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { blocks } from '../support/documents.mjs';
import { reap, Server } from '../support/server.mjs';
import { fromRoot, projectOf, runPage } from './pages.mjs';

const PAGES = [['docs/clients.md', 'js'], ['docs/clients.md', 'python'], ['clients/js/README.md', 'js'], ['clients/python/README.md', 'python']];

const server = new Server({ tls: false });
before(() => server.launch());
after(async () => {
  try { await server.stop(); } finally { await reap(); }
});

describe('the pages', { concurrency: true }, () => {
  for (const [page, language] of PAGES) {
    it(`${page}: its code for ${language} prints what it shows`, () => runPage(projectOf(language), page, `http://127.0.0.1:${server.port}`));
  }

  it('docs/clients.md shows the same in both languages, but for what only one of them needs', () => {
    const text = fs.readFileSync(fromRoot('docs/clients.md'), 'utf8');
    const shown = (language) => blocks(text, language).map(({ expected }) => expected);
    const onlyPython = shown('python').filter((expected) => !shown('js').includes(expected));
    assert.deepEqual(onlyPython, ['written\n']);
    assert.deepEqual(shown('js'), shown('python').filter((expected) => expected !== 'written\n'));
  });
});
