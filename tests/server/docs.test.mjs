// The documents are true: the commands of the tour print what the page shows, and the manual pages list the
// flags that the programs have.  Tables of what can go wrong name the tests that show it.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, describe, it } from 'node:test';
import { environment, HOLDFAST, HOLDFASTD, launch, reap, removeTempDir, start, tempDir } from '../support/server.mjs';

const docs = fileURLToPath(new URL('../../docs', import.meta.url));
const page = (name) => fs.readFileSync(path.join(docs, name), 'utf8');

// Returns [{ line, command, expected }] for each ```sh block; `expected` is the ```text block that follows it.
function blocks(text) {
  const found = [];
  const fence = /^```(sh|text)\n([\s\S]*?)^```\n/gm;
  for (let match; (match = fence.exec(text));) {
    const line = text.slice(0, match.index).split('\n').length;
    const follows = found.length > 0 && found.at(-1).end === match.index;
    if (match[1] === 'sh') found.push({ line, command: match[2], end: fence.lastIndex });
    else if (follows) found.at(-1).expected = match[2];
    else assert.fail(`line ${line}: a text block without a command`);
  }
  return found;
}

// `…` stands for any text.
const pattern = (expected) => new RegExp(`^${expected.trimEnd().split('…')
  .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^\\n]*?')}$`);

// The last cell of a row names tests that there are: `folder/suite: *test*, *test*; folder/suite: *test*`.
function assertNamesTests(row) {
  for (const part of row.slice(row.lastIndexOf(' | ') + 3, -2).split('; ')) {
    const [, suite, names] = /^([\w/]+): (\*.*\*)$/.exec(part) ?? assert.fail(row);
    const file = ['test.mjs', 'c'].map((end) => new URL(`../${suite}.${end}`, import.meta.url)).find((url) => fs.existsSync(url));
    assert.ok(file, part);
    const source = fs.readFileSync(file, 'utf8');
    for (const [, name] of names.matchAll(/\*([^*]+?)…?\*/g)) assert.ok(source.includes(name), `${suite}: ${name}`);
  }
}

describe('docs/api.md', () => {
  after(reap);

  it('prints what it shows, in one go from the top', async () => {
    const tour = blocks(page('api.md'));
    assert.ok(tour.length >= 20, `${tour.length} blocks`);
    assert.ok(tour.filter(({ expected }) => expected).length >= 18);
    const keys = { HOLDFAST_ADMIN_KEY: 'an-admin-key-of-the-tour', HOLDFAST_SELLER_KEY: 'a-seller-key-of-the-tour' };
    const server = await start();
    const keyed = await start({ env: { ...keys, HOLDFAST_PUBLIC_SEATS_MAX: '2' } });
    const url = ({ host, port }) => `http://${host}:${port}`;
    const mark = '@@@ block';
    const script = tour.map(({ command }, index) => `echo; echo "${mark} ${index}"\n${command}`).join('');
    const run = launch('dash', ['-u', '-c', script], { // sh, and no more than that
      env: { ...process.env, ...keys, API: url(server), KEYED: url(keyed), LC_ALL: 'C.UTF-8' },
    });
    const timer = setTimeout(() => run.child.kill('SIGKILL'), 60_000);
    await run.done;
    clearTimeout(timer);
    const outputs = run.stdout.split(`\n${mark} `).slice(1).map((text) => text.slice(text.indexOf('\n') + 1).trimEnd());
    const wrong = tour.filter(({ expected }, index) => expected !== undefined
      && !pattern(expected).test(outputs[index] ?? '(never run)'))
      .map((block) => `line ${block.line}:\n${outputs[tour.indexOf(block)]}\ninstead of\n${block.expected}`);
    assert.equal(wrong.join('\n'), '');
    assert.equal(run.stderr, '');
    await keyed.stop();
    await server.stop();
  });
});

describe('docs/plans.md', () => {
  after(reap);

  it('leads from a file to a held seat, with the output it shows', async () => {
    const tour = blocks(page('plans.md'));
    assert.ok(tour.length >= 4 && tour.every(({ expected }) => expected), `${tour.length} blocks`);
    const server = await start();
    const dir = tempDir();
    const mark = '@@@ block';
    const script = tour.map(({ command }, index) => `echo; echo "${mark} ${index}"\n${command}`).join('');
    const run = launch('dash', ['-u', '-c', `cd "$DIR"; holdfast() { "$PROGRAM" "$@"; }\n${script}`], {
      env: { ...environment({}, false), HOLDFAST_SERVER: `http://${server.host}:${server.port}`, PROGRAM: HOLDFAST, DIR: dir, LC_ALL: 'C.UTF-8' },
    });
    const timer = setTimeout(() => run.child.kill('SIGKILL'), 60_000);
    await run.done;
    clearTimeout(timer);
    const outputs = run.stdout.split(`\n${mark} `).slice(1).map((text) => text.slice(text.indexOf('\n') + 1).trimEnd());
    for (const [index, { line, expected }] of tour.entries()) assert.match(outputs[index] ?? '(never run)', pattern(expected), `line ${line}`);
    assert.equal(run.stderr, '');
    await server.stop();
    removeTempDir(dir);
  });
});

describe('docs/payments.md', () => {
  after(reap);
  const text = page('payments.md');

  it('leads to a paid seat with the commands it shows', async () => {
    const tour = blocks(text);
    assert.equal(tour.length, 1);
    const server = await start();
    const run = launch('dash', ['-eu', '-c', tour[0].command], { env: { ...process.env, API: `http://${server.host}:${server.port}`, LC_ALL: 'C.UTF-8' } });
    const timer = setTimeout(() => run.child.kill('SIGKILL'), 30_000);
    const { code } = await run.done;
    clearTimeout(timer);
    assert.equal(code, 0, run.stderr);
    assert.match(run.stdout.trimEnd(), pattern(tour[0].expected));
    assert.equal(run.stderr, '');
    await server.stop();
  });

  it('names tests that there are', () => {
    const rows = text.slice(text.indexOf('## When something fails')).split('\n').filter((line) => /^\| [^w|-]/.test(line) || line.startsWith('| webhooks'));
    assert.ok(rows.length >= 15, `${rows.length} rows`);
    for (const row of rows) {
      const [, suite, names] = /(\w+): (\*.*\*) \|$/.exec(row) ?? assert.fail(row);
      const file = ['server', 'fault', 'cli'].map((folder) => new URL(`../${folder}/${suite}.test.mjs`, import.meta.url)).find((url) => fs.existsSync(url));
      assert.ok(file, row);
      const source = fs.readFileSync(file, 'utf8');
      for (const [, name] of names.matchAll(/\*([^*]+?)…?\*/g)) assert.ok(source.includes(name), `${suite}: ${name}`);
    }
  });

  it('names every event that the server uses', () => {
    const source = fs.readFileSync(new URL('../../src/checkout/webhook.c', import.meta.url), 'utf8');
    const used = [...source.matchAll(/\{"([a-z_.]+)", read_\w+\}/g)].map(([, type]) => type);
    assert.ok(used.length >= 10);
    const list = text.slice(text.indexOf('with these events'), text.indexOf('2. Put the settings')).match(/\b(?:payment_intent|charge|refund)\.[a-z_.]+/g);
    assert.deepEqual([...list].sort(), used.sort());
  });
});

describe('docs/cell.md', () => {
  after(reap);
  const text = page('cell.md');

  it('prints what it shows, and its locks are taken, in one go from the top', async () => {
    const tour = blocks(text);
    assert.ok(tour.filter(({ expected }) => expected).length >= 7, `${tour.length} blocks`);
    const server = await start();
    const dir = tempDir();
    fs.symlinkSync(HOLDFAST, path.join(dir, 'holdfast'));
    for (const name of ['report', 'import.sh', 'transfer']) fs.writeFileSync(path.join(dir, name), `#!/bin/sh\necho ${name} "$HOLDFAST_LOCK_NAME"\n`, { mode: 0o755 });
    const mark = '@@@ block';
    const script = tour.map(({ command }, index) => `echo; echo "${mark} ${index}"\n${command.replaceAll('127.0.0.1:8080', `${server.host}:${server.port}`)}`).join('');
    const run = launch('dash', ['-u', '-c', script], { env: { ...environment({}, false), PATH: `${dir}:${process.env.PATH}`, LC_ALL: 'C.UTF-8' } });
    const timer = setTimeout(() => run.child.kill('SIGKILL'), 90_000);
    await run.done;
    clearTimeout(timer);
    const outputs = run.stdout.split(`\n${mark} `).slice(1).map((output) => output.slice(output.indexOf('\n') + 1).trimEnd());
    for (const [index, { line, expected }] of tour.entries()) if (expected) assert.match(outputs[index] ?? '(never run)', pattern(expected), `line ${line}`);
    assert.equal(outputs[0], 'report nightly\nreport hourly\nreport prices\nimport.sh api-quota\ntransfer payments/eu');
    assert.equal(run.stderr, '');
    await server.stop();
    removeTempDir(dir);
  });

  it('names tests that there are', () => {
    const rows = text.slice(text.indexOf('## When something fails'), text.indexOf('## Limits')).split('\n').filter((line) => /^\| [^w-]|^\| two/.test(line));
    assert.ok(rows.length >= 20, `${rows.length} rows`);
    for (const row of rows) assertNamesTests(row);
  });

  it('has the limits of the source', () => {
    const header = (name) => fs.readFileSync(new URL(`../../src/cell/${name}.h`, import.meta.url), 'utf8');
    const value = (name, limit) => Number(new RegExp(`#define ${limit} (\\d+)`).exec(header(name))[1]).toLocaleString('en-US');
    const limits = text.slice(text.indexOf('## Limits'));
    for (const limit of ['NAME_MAX', 'LEVELS_MAX', 'LABEL_MAX', 'AGENT_MAX', 'SLOTS_MAX', 'SESSIONS_MAX', 'ACQUISITIONS_MAX', 'WAITERS_MAX', 'ENDED_MAX', 'FREE_NAMES_MAX']) {
      assert.ok(limits.includes(value('command', `CELL_${limit}`)), limit);
    }
    for (const [limit, shown] of [['NODE_PLACE_MS', '5 s'], ['NODE_CLAIM_MS', '1 s'], ['NODE_WAIT_MAX_MS', '60 s']]) {
      assert.equal(value('node', limit).replace(',000', ' s'), shown);
      assert.ok(limits.includes(shown), limit);
    }
  });
});

describe('docs/security.md', () => {
  const text = page('security.md');

  it('names tests that there are', () => {
    const rows = text.slice(text.indexOf('## Threats'), text.indexOf('## What is not protected')).split('\n').filter((line) => /^\| (?!threat )/.test(line));
    assert.ok(rows.length >= 20, `${rows.length} rows`);
    for (const row of rows) assertNamesTests(row);
  });

  it('has a row for every suite of tests/attack', () => {
    for (const file of fs.readdirSync(new URL('../attack', import.meta.url))) {
      const suite = `attack/${file.replace('.test.mjs', '')}: `;
      assert.ok(text.includes(suite), `no row names a test of ${file}`);
    }
  });

  it('is where SECURITY.md and the guides say', () => {
    for (const file of ['../SECURITY.md', '../README.md', 'operations.md']) assert.match(page(file), /\]\((docs\/)?security\.md/);
  });
});

// Returns the long flags in a text, without those of other programs that it mentions.
const flags = (text) => [...new Set(text.match(/--[a-z][a-z-]+/g))].sort();
// mdoc writes --listen as `Fl -listen`.
const pageFlags = (text) => [...new Set([...text.matchAll(/Fl -([a-z][a-z-]+)/g)].map(([, name]) => `--${name}`))].sort();
const help = (program, ...args) => execFileSync(program, args, {
  encoding: 'utf8', env: { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' },
});

describe('the manual pages', () => {
  it('have every flag of holdfastd and no other', () => {
    assert.deepEqual(pageFlags(page('man/holdfastd.8')), flags(help(HOLDFASTD, '--help')));
  });

  it('have every command and flag of holdfast and no other', () => {
    const overview = help(HOLDFAST, '--help');
    const commands = [...overview.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name);
    assert.ok(commands.length > 0, overview);
    const text = page('man/holdfast.1');
    const known = commands.flatMap((name) => flags(help(HOLDFAST, name, '--help')));
    assert.deepEqual(pageFlags(text), [...new Set([...known, ...flags(overview)])].sort());
    for (const name of commands) assert.match(text, new RegExp(`^\\.(Ic|Nm|Ss|It Ic).*\\b${name}\\b`, 'm'));
  });

  it('are clean mdoc', () => {
    for (const name of fs.readdirSync(path.join(docs, 'man'))) {
      const out = execFileSync('mandoc', ['-Tlint', '-Wwarning', path.join(docs, 'man', name)], { encoding: 'utf8' });
      assert.equal(out, '');
    }
  });

  it('name every flag in docs/operations.md too', () => {
    const operations = page('operations.md');
    for (const flag of flags(help(HOLDFASTD, '--help'))) {
      if (!['--help', '--version'].includes(flag)) assert.ok(operations.includes(flag), flag);
    }
  });
});
