// Files that another user could have put in the server's way: links, foreign owners, open modes.  The server refuses
// them with a sentence that says what to do, and writes to none of them.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertCleanStderr, environment, HOLDFAST, launch, reap, removeTempDir, runServer, Server, tempDir } from '../support/server.mjs';

const VICTIM = 'precious, and longer than any process id is\n';
const NOBODY = 65534;
const isRoot = process.getuid() === 0;
const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const listen = ['--listen', '127.0.0.1:0'];

// Makes a directory with a file that must stay as it is, and a place for the server's files.
function scene() {
  const dir = tempDir();
  const [data, victim] = [path.join(dir, 'data'), path.join(dir, 'victim')];
  fs.mkdirSync(data, { mode: 0o700 });
  fs.writeFileSync(victim, VICTIM, { mode: 0o600 });
  return { dir, data, victim, at: (name) => path.join(data, name) };
}

async function refused({ dir, data, victim }, why, args = []) {
  const run = await runServer([...listen, '--data', data, ...args]);
  assertCleanStderr(run.stderr);
  assert.equal(run.code, 1, `${run.code ?? run.signal}: ${run.stderr}`);
  assert.match(run.stderr, why);
  assert.ok(run.stderr.includes(dir), run.stderr);
  assert.equal(fs.readFileSync(victim, 'utf8'), VICTIM);
}

async function accepted({ data }) {
  const server = new Server({ dir: data, ownsDir: false });
  await server.launch();
  await server.stop();
}

describe('the data directory', () => {
  after(reap);

  it('is refused if others may use it', async () => {
    const s = scene();
    for (const mode of [0o755, 0o770, 0o701, 0o1777]) {
      fs.chmodSync(s.data, mode);
      await refused(s, /others than its owner may use it; chmod 700/);
    }
    fs.chmodSync(s.data, 0o750);
    await accepted(s);
    removeTempDir(s.dir);
  });

  it('is refused if others may replace it', async () => {
    const s = scene();
    fs.chmodSync(s.dir, 0o777);
    await refused(s, /others may replace it, since they may write to .*; chmod o-w/);
    removeTempDir(s.dir);
  });

  it('is refused if it belongs to another user, also by root', async (t) => {
    if (!isRoot) return t.diagnostic('only root can make a directory of another user: not tried');
    const s = scene();
    fs.chownSync(s.data, NOBODY, NOBODY);
    await refused(s, /it belongs to another user/);
    fs.chownSync(s.data, 0, 0);
    fs.renameSync(s.data, path.join(s.dir, 'elsewhere'));
    fs.symlinkSync('elsewhere', s.data);
    await accepted(s); // a link of our own
    fs.lchownSync(s.data, NOBODY, NOBODY);
    await refused(s, /it is a symbolic link of another user/);
    return removeTempDir(s.dir);
  });
});

describe('a lock file', () => {
  after(reap);

  it('that is a link, or no lock file, is refused and left as it was', async () => {
    const ways = [
      [(s, file) => fs.symlinkSync(s.victim, file), /symbolic link/],
      [(s, file) => fs.symlinkSync(path.join(s.dir, 'missing'), file), /symbolic link/],
      [(s, file) => fs.linkSync(s.victim, file), /hard link/],
      [(s, file) => fs.copyFileSync(s.victim, file), /is not a lock file; move it away/],
      [(s, file) => execFileSync('mkfifo', ['-m', '600', file]), /it is not a file/],
      [(s, file) => fs.mkdirSync(file), /directory/i],
    ];
    for (const [plant, why] of ways) {
      const s = scene();
      plant(s, s.at('holdfast.db.lock'));
      await refused(s, why);
      assert.deepEqual(fs.readdirSync(s.dir).sort(), ['data', 'victim']);
      assert.ok(!fs.existsSync(s.at('holdfast.db')));
      removeTempDir(s.dir);
    }
  });

  it('is checked for the journal of the locks and for the sandbox, too', async () => {
    for (const name of ['locks.db.lock', 'sandbox.db.lock']) {
      const s = scene();
      fs.symlinkSync(s.victim, s.at(name));
      await refused(s, /symbolic link/);
      removeTempDir(s.dir);
    }
  });
});

describe('a database', () => {
  after(reap);

  it('is refused if others may use it, until that is repaired', async () => {
    const s = scene();
    await accepted(s);
    for (const mode of [0o644, 0o660, 0o602]) {
      fs.chmodSync(s.at('holdfast.db'), mode);
      await refused(s, /others than its owner may use it; chmod 600/);
    }
    fs.chmodSync(s.at('holdfast.db'), 0o640);
    fs.linkSync(s.at('holdfast.db'), s.at('copy.db'));
    await refused(s, /it has another name as well/);
    fs.rmSync(s.at('copy.db'));
    if (isRoot) {
      fs.chownSync(s.at('holdfast.db'), NOBODY, NOBODY);
      await refused(s, /it belongs to another user; run as that user, or chown it/);
      fs.chownSync(s.at('holdfast.db'), 0, 0);
    }
    await accepted(s);
    removeTempDir(s.dir);
  });

  it('that is a link, or has a linked log, is refused', async () => {
    for (const name of ['holdfast.db', 'holdfast.db-wal', 'holdfast.db-shm', 'holdfast.db-journal', 'locks.db', 'sandbox.db-wal']) {
      const s = scene();
      fs.symlinkSync(s.victim, s.at(name));
      await refused(s, /it is a symbolic link/);
      removeTempDir(s.dir);
    }
  });

  it('is readable by its owner alone from the first moment, whatever the umask', async () => {
    const s = scene();
    const server = new Server({ dir: s.data, ownsDir: false, wrap: (argv) => ['sh', '-c', 'umask 0; exec "$@"', 'sh', ...argv] });
    await server.launch();
    await server.createEvent();
    for (const name of fs.readdirSync(s.data)) assert.equal(fs.statSync(s.at(name)).mode & 0o777, 0o600, name);
    await server.stop();
    removeTempDir(s.dir);
  });

  it('in a directory that everybody may write to is refused', async () => {
    const s = scene();
    const open = path.join(s.dir, 'open');
    fs.mkdirSync(open);
    fs.chmodSync(open, 0o777);
    await refused(s, /everybody may write to the directory/, ['--ledger', `sqlite:${open}/x.db`]);
    removeTempDir(s.dir);
  });
});

describe('other files', () => {
  after(reap);

  it('of the sandbox: a link in the place of its keys is replaced, not followed', async () => {
    const s = scene();
    fs.chmodSync(s.victim, 0o644); // so it holds no keys
    fs.symlinkSync(s.victim, s.at('sandbox.keys'));
    await accepted(s);
    assert.equal(fs.readFileSync(s.victim, 'utf8'), VICTIM);
    assert.ok(fs.lstatSync(s.at('sandbox.keys')).isFile());
    removeTempDir(s.dir);
  });

  it('of keys and settings are refused if they belong to another user', async (t) => {
    if (!isRoot) return t.diagnostic('only root can make a file of another user: not tried');
    const s = scene();
    const file = s.at('file');
    fs.writeFileSync(file, '', { mode: 0o600 });
    fs.chownSync(file, NOBODY, NOBODY);
    await refused(s, /it belongs to another user/, ['--admin-key-file', file]);
    await refused(s, /it belongs to another user/, ['--env-file', file]);
    return removeTempDir(s.dir);
  });

  it('of locks are refused where another user may have put them first', async (t) => {
    if (!isRoot) return t.diagnostic('only root can make a file of another user: not tried');
    const s = scene();
    const file = path.join(s.dir, 'locks.db');
    const lock = async () => {
      const run = launch(HOLDFAST, ['run', '--lock', `sqlite:${file}`, 'x', '--', 'true'], { env: environment({}, false) });
      return { code: (await run.done).code, stderr: run.stderr };
    };
    fs.chmodSync(s.dir, 0o1777);
    assert.deepEqual(await lock(), { code: 0, stderr: '' });
    fs.chownSync(file, NOBODY, NOBODY);
    const { code, stderr } = await lock();
    assert.notEqual(code, 0);
    assert.match(stderr, /belongs to another user, and everybody may put files into its directory/);
    fs.chmodSync(s.dir, 0o755);
    assert.deepEqual(await lock(), { code: 0, stderr: '' }); // shared as its modes allow
    return removeTempDir(s.dir);
  });

  it('that root restores for another user belong to that user', async (t) => {
    if (!isRoot) return t.diagnostic('only root can make a file of another user: not tried');
    const s = scene();
    const [url, copy] = [`sqlite:${s.at('holdfast.db')}`, path.join(s.dir, 'copy')];
    const holdfast = async (...args) => {
      const run = launch(HOLDFAST, args, { env: environment({}, false) });
      assert.equal((await run.done).code, 0, run.stderr);
    };
    await accepted(s);
    await holdfast('backup', '--ledger', url, copy);
    fs.rmSync(s.at('holdfast.db.lock'));
    fs.chownSync(s.data, NOBODY, NOBODY);
    for (const name of fs.readdirSync(s.data)) fs.chownSync(s.at(name), NOBODY, NOBODY);
    for (let i = 0; i < 2; i++) await holdfast('restore', '--ledger', url, '--force', copy); // the lock file is missing, then theirs
    for (const name of fs.readdirSync(s.data)) assert.equal(fs.statSync(s.at(name)).uid, NOBODY, name);
    return removeTempDir(s.dir);
  });

  it('are nowhere suggested in a directory that everybody may write to', () => {
    const below = (folder) => fs.readdirSync(path.join(ROOT, folder), { recursive: true }).map((name) => path.join(folder, name));
    const documents = [...below('docs'), ...below('share'), 'README.md'].filter((name) => /\.(md|[1-8]|service|yaml|env)$/.test(name));
    assert.ok(documents.length > 10, `${documents.length} documents`);
    for (const name of documents) {
      const text = fs.readFileSync(path.join(ROOT, name), 'utf8');
      assert.doesNotMatch(text, /(--data|sqlite:|HOLDFAST_DATA=)\s*\/(var\/)?tmp\b/, name);
    }
  });

  it('of a backup do not go through links', async () => {
    const s = scene();
    await accepted(s);
    const copy = path.join(s.dir, 'copy');
    fs.symlinkSync(s.victim, `${copy}.partial`);
    const run = launch(HOLDFAST, ['backup', '--ledger', `sqlite:${s.at('holdfast.db')}`, copy], { env: environment({}, false) });
    assert.notEqual((await run.done).code, 0);
    assert.match(run.stderr, /it is a symbolic link/);
    assert.equal(fs.readFileSync(s.victim, 'utf8'), VICTIM);
    removeTempDir(s.dir);
  });
});
