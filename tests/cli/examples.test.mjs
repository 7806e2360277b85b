// Every shell example of the manual pages and guides that takes a lock, run while another holds the lock, and again while the
// coordinator is out of reach: what the lock protects does not run.  With a free lock it does.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { begin, holdfast, json, PATIENCE, run, sqliteLocks, until } from '../support/cli.mjs';
import { HOLDFAST, reap, tempDir } from '../support/server.mjs';

const docs = new URL('../../docs/', import.meta.url);
const TAKES_LOCK = /holdfast (run|elect|lock get) /;

// The literal blocks and lines of a manual page, as a reader sees them.
function blocksOfManual(name) {
  const text = fs.readFileSync(new URL(`man/${name}`, docs), 'utf8');
  const literal = [...text.matchAll(/^\.Bd -literal[^\n]*\n([^]*?)^\.Ed$/gm)].map(([, block]) => block);
  const lines = [...text.matchAll(/^\.Dl (?:\$ )?(.*)$/gm)].map(([, line]) => `${line}\n`);
  return [...literal, ...lines].map((block) => block.replaceAll('\\(aq', "'").replaceAll('\\e', '\\').replaceAll('\\-', '-'));
}

function blocksOfGuide(name) {
  const text = fs.readFileSync(new URL(name, docs), 'utf8');
  return [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].filter(([, language]) => language === '' || language === 'sh').map(([, , block]) => block);
}

// A crontab becomes a script: each job is run once, and settings are exported.
const script = (block) => block
  .replace(/^(?:[\d*/,-]+ ){5}/gm, '')
  .replace(/^((?:export )?HOLDFAST_LOCK_URL=).*$/gm, '')
  .replaceAll('build/holdfast', 'holdfast');

const sources = {
  ...Object.fromEntries(['holdfast.1', 'holdfastd.8', 'libholdfast.3'].map((name) => [name, blocksOfManual(name)])),
  ...Object.fromEntries(['../README.md', 'cell.md', 'locks.md', 'fences.md', 'run.md', 'secure.md', 'backup.md', 'watch.md', 'reference.md', 'scaling.md'].map((name) => [name, blocksOfGuide(name)])),
};
// A script with `lock get` is one example; elsewhere each line is.
const pieces = (block) => (block.includes('lock get') ? [block] : block.match(/^(?:.*\\\n)*.*$/gm));
const examples = Object.entries(sources).flatMap(([source, blocks]) => blocks.flatMap(pieces).filter((piece) => TAKES_LOCK.test(piece))
  .map((block, i) => ({ title: `${source}, example ${i + 1}`, block, text: script(block) })));

// The locks that an example asks for, each with the options that decide who may hold it beside others.
function asks(text) {
  const found = [];
  for (const [, verb, rest] of text.matchAll(/holdfast (run|elect|lock get) (.*?)(?= -- |\)|$)/gm)) {
    const words = rest.split(/\s+/).filter(Boolean);
    const slots = words.includes('--slots') ? Number(words[words.indexOf('--slots') + 1]) : 1;
    const names = words.filter((word, i) => !word.startsWith('-') && !/^(--\S+|-E)$/.test(words[i - 1] ?? ''));
    if (verb !== 'lock get') assert.ok(names.length >= 1, text);
    found.push(...names.map((name) => ({ name, slots })));
  }
  return found;
}

describe('an example that takes a lock', { concurrency: 2 }, () => {
  const bin = tempDir(), ran = path.join(bin, 'ran');
  // What the examples call: each leaves a mark.  `protected` stands for the rest of a script.
  const stubs = ['report', 'report.sh', 'import.sh', 'transfer', 'protected', 'migrate', 'backup', 'scheduler'];
  const locks = sqliteLocks();
  before(() => {
    fs.symlinkSync(HOLDFAST, path.join(bin, 'holdfast'));
    for (const name of stubs) fs.writeFileSync(path.join(bin, name), `#!/bin/sh\necho ${name} "$MARK" >>${ran}\n`, { mode: 0o755 });
  });
  after(reap);

  const play = (url, { text }, mark, seconds) => holdfast(url, [], {
    env: { MARK: mark },
    wrap: () => ['timeout', '-k', '20', `${seconds}`, 'sh', '-c', `PATH=${bin}:$PATH\ncd ${bin}\n${text}\nprotected`],
  });
  const marks = (mark) => (fs.existsSync(ran) ? fs.readFileSync(ran, 'utf8').split('\n').filter((line) => line.endsWith(` ${mark}`)) : []);
  // A script that ends without its lock does not get to `protected`; one-line examples do, since that is not theirs.
  const isScript = ({ block }) => /lock get/.test(block);

  it('is among the documents, in the manual above all', () => {
    assert.ok(examples.filter(({ title }) => title.startsWith('holdfast.1')).length >= 3, examples.map(({ title }) => title).join('; '));
    assert.ok(examples.some(isScript));
  });

  it('would be found if it went on without the lock', async () => {
    const holder = begin(locks.url, ['run', ...PATIENCE, 'careless', '--', 'sleep', '60']);
    await until('it is held', async () => (await json(locks.url, ['lock', 'show', 'careless'])).holders.length === 1);
    await play(locks.url, { text: 'set -- $(holdfast lock get -n careless)' }, 'careless', 20);
    assert.deepEqual(marks('careless'), ['protected careless']);
    holder.child.kill('SIGTERM');
    await holder.result;
  });

  for (const [i, example] of examples.entries()) {
    it(`protects its command: ${example.title}`, async () => {
      const locks = sqliteLocks(); // of its own: the commands of others may stand still amid a change for longer than its commands wait
      const free = `free-${i}`, taken = `taken-${i}`, away = `away-${i}`;
      const done = await play(locks.url, { text: example.text.replaceAll(/--at-least \S+/g, '') }, free, 60);
      assert.notEqual(marks(free).length + Number(done.stdout !== ''), 0, `it runs with a free lock: ${done.stderr}`);

      const holders = [];
      const held = new Set();
      for (const { name, slots } of asks(example.text)) {
        if (held.has(name)) continue;
        held.add(name);
        for (let k = 0; k < slots; k++) holders.push(begin(locks.url, ['run', ...PATIENCE, '--slots', `${slots}`, name, '--', 'sleep', '60']));
        await until(`${name} is held`, async () => (await json(locks.url, ['lock', 'show', name])).holders.length === slots);
      }
      assert.ok(holders.length > 0);
      const refused = await play(locks.url, example, taken, 2);
      const unreachable = await play('redis://127.0.0.1:1', example, away, 60);
      for (const [mark, result] of [[taken, refused], [away, unreachable]]) {
        const called = marks(mark).filter((line) => isScript(example) || !line.startsWith('protected'));
        assert.deepEqual(called, [], `${example.block}\n${result.stderr}`);
        assert.doesNotMatch(result.stdout, /I have the lock/);
      }
      for (const { child } of holders) child.kill('SIGTERM');
      await Promise.all(holders.map(({ result }) => result));
      for (const name of held) await until(`${name} is free`, async () => (await run(locks.url, ['-n', name, '--', 'true'])).code === 0);
    });
  }
});
