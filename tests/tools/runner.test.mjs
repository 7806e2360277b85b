// The test runner itself: a test that hangs, crashes, skips, leaves servers behind or does not say where
// it runs is reported by name.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { claimPort, freePort, isGone, launch, tempDir, until } from '../support/process.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const RUNNER = path.join(root, 'tests/support/run_tests.mjs');

// A directory with a tests/ folder of its own; `suites` maps the names of suites to their texts, and `executables` the names
// of C tests to shell scripts that stand for them.
function project(suites, executables = {}) {
  const dir = tempDir();
  for (const folder of ['tests/some', 'build/asan/tests/some']) fs.mkdirSync(path.join(dir, folder), { recursive: true });
  for (const [name, text] of Object.entries(suites)) fs.writeFileSync(path.join(dir, `tests/some/${name}.test.mjs`), `${text}\n`);
  for (const [name, text] of Object.entries(executables)) {
    fs.writeFileSync(path.join(dir, `tests/some/${name}.c`), '');
    fs.writeFileSync(path.join(dir, `build/asan/tests/some/${name}`), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  }
  return dir;
}

const suite = (body, header = '// backends: own') => `${header}
import { it } from 'node:test';
import { spawn } from 'node:child_process';
${body}`;

function begin(dir, words = [], env = {}) {
  const clean = { ...process.env, ...env };
  for (const name of ['HOLDFAST_TEST_BACKEND', 'NODE_TEST_CONTEXT', 'TEST_TIME_FACTOR']) if (!(name in env)) delete clean[name];
  return launch(process.execPath, [RUNNER, ...words], { cwd: dir, env: clean });
}

async function run(dir, words, env) {
  const runner = begin(dir, words, env);
  const { code } = await runner.done;
  return { code, text: runner.stdout + runner.stderr };
}

// Waits until the process whose number is in the file has gone; a process that was killed goes when the kernel gets to it.
const goes = (dir, file) => until(`${file} is gone`, () => isGone(Number(fs.readFileSync(path.join(dir, file), 'utf8'))));

it('a port belongs to the test process that got it, while nothing listens there', async () => {
  const port = await freePort();
  assert.equal(await claimPort(port), false);
  const other = launch(process.execPath, ['--input-type=module', '-e',
    `import { claimPort } from ${JSON.stringify(path.join(root, 'tests/support/process.mjs'))}; process.exit(await claimPort(${port}) ? 1 : 0);`]);
  assert.equal((await other.done).code, 0, other.stderr);
});

describe('the runner', { concurrency: 4 }, () => {
  it('runs every file on every back end it declares, and adds up', async () => {
    const where = "it('one', () => { console.log('on', process.env.HOLDFAST_TEST_BACKEND); });";
    const { code, text } = await run(project({
      first: suite(where, '// backends: sqlite cluster'),
      second: suite("it('two', () => {});\nit('three', { skip: 'no reason' }, () => {});"),
    }));
    assert.equal(code, 0, text);
    for (const backend of ['sqlite', 'cluster']) assert.match(text, new RegExp(`^tests/some/first\\.test\\.mjs on ${backend}: 1 passed`, 'm'));
    assert.match(text, /^tests\/some\/second\.test\.mjs: 1 passed, 1 skipped/m);
    assert.match(text, /^ {4}skipped: three \(no reason\)$/m);
    assert.match(text, /^1 skipped\n3 passed, 0 failed$/m);
  });

  it('repeats every test while its processes are stopped at random', async () => {
    const note = "it('is noted', () => { fs.appendFileSync('notes', 'x'); if (fs.readFileSync('notes', 'utf8') === 'xx') throw new Error('no'); });";
    const dir = project({ noted: `${suite(note)}\nimport fs from 'node:fs';` });
    const { code, text } = await run(dir, ['--stops', '3']);
    assert.equal(code, 1, text);
    assert.equal(fs.readFileSync(path.join(dir, 'notes'), 'utf8'), 'xxx');
    assert.match(text, /^tests\/some\/noted\.test\.mjs, stopped \(1 of 3\): 1 passed/m);
    assert.match(text, /^--- tests\/some\/noted\.test\.mjs, stopped \(2 of 3\): FAILED\n(?:.*\n)*?stop_at_random: --seed \d+$/m);
    assert.match(text, /^alone: tests\/run --node tests\/some\/noted\.test\.mjs build --stops 1$/m);
    assert.match(text, /^2 passed, 1 failed$/m);
  });

  it('a file that hangs costs its own limit, is named, and the others run', async () => {
    const { code, text } = await run(project({
      hangs: suite("it('never ends', () => new Promise(() => setInterval(() => {}, 1000)));", '// backends: own\n// time limit: 2 s'),
      well: suite("it('is well', () => {});"),
    }));
    assert.equal(code, 1);
    assert.match(text, /^--- tests\/some\/hangs\.test\.mjs: FAILED: exceeded its limit of 2 s/m);
    assert.match(text, /^tests\/some\/well\.test\.mjs: 1 passed/m);
  });

  it('a file that stands still and ignores signals is killed with the processes it started', async () => {
    const dir = project({
      stuck: suite(`const child = spawn('sleep', ['600'], { stdio: 'ignore' });
        import fs from 'node:fs';
        fs.writeFileSync('pid', String(child.pid));
        it('is stuck', () => { process.on('SIGTERM', () => {}); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); });`,
      '// backends: own\n// time limit: 100 s'), // 10 s with the factor, in which Node has started
    });
    const { code, text } = await run(dir, [], { TEST_TIME_FACTOR: '0.1' });
    assert.equal(code, 1);
    assert.match(text, /stuck\.test\.mjs: FAILED: exceeded its limit/);
    await goes(dir, 'pid');
  });

  it('a server left running is a failure, and is ended', async () => {
    const dir = project({
      leaves: suite(`import fs from 'node:fs';
        it('starts a server', () => {
          const child = spawn('sleep', ['600'], { stdio: 'ignore' });
          child.unref();
          fs.writeFileSync('pid', String(child.pid));
        });`),
    });
    const { code, text } = await run(dir, [], { TEST_TIME_FACTOR: '0.1' });
    assert.equal(code, 1);
    assert.match(text, /leaves\.test\.mjs: FAILED: left processes behind: sleep \(\d+\)/);
    await goes(dir, 'pid');
  });

  it('files that a test leaves behind are gone with the run', async () => {
    const dir = project({ leaves: suite("import fs from 'node:fs'; import os from 'node:os';\nit('leaves', () => fs.writeFileSync(`${os.tmpdir()}/left`, ''));") });
    const TMPDIR = path.join(dir, 'tmp');
    fs.mkdirSync(TMPDIR);
    const { code, text } = await run(dir, [], { TMPDIR });
    assert.equal(code, 0, text);
    assert.deepEqual(fs.readdirSync(TMPDIR), []);
  });

  it('a file that does not say where it runs fails, and so does one that names no known back end', async () => {
    const { code, text } = await run(project({
      silent: suite("it('one', () => {});", '// A suite.'),
      odd: suite("it('one', () => {});", '// backends: oracle'),
    }));
    assert.equal(code, 1);
    assert.match(text, /silent\.test\.mjs: FAILED: has no line "\/\/ backends:/);
    assert.match(text, /odd\.test\.mjs: FAILED: declares the unknown back end "oracle"/);
    assert.match(text, /^0 passed, 2 failed$/m);
  });

  it('a crash, a failed test and a file without tests are failures, and what they printed is shown', async () => {
    const { code, text } = await run(project({
      crash: suite("it('one', () => {});\nsetTimeout(() => process.kill(process.pid, 'SIGSEGV'), 50);\nawait new Promise((r) => setTimeout(r, 1000));"),
      empty: suite(''),
      fails: suite("it('one', () => { throw new Error('the reason'); });"),
    }));
    assert.equal(code, 1);
    for (const name of ['crash', 'empty', 'fails']) assert.match(text, new RegExp(`^--- tests/some/${name}\\.test\\.mjs: FAILED`, 'm'));
    assert.match(text, /empty\.test\.mjs: FAILED: has no tests/);
    assert.match(text, /the reason/);
  });

  it('says at its end again what failed, before the last line', async () => {
    const { text } = await run(project({
      fails: suite("it('is well', () => {});\nit('one', () => { throw new Error('the reason'); });"),
      well: suite("it('two', () => {});"),
    }), [], { TEST_CONCURRENCY: '1' });
    const end = text.slice(text.lastIndexOf('tests/some/well.test.mjs: 1 passed'));
    assert.match(end, /\n--- tests\/some\/fails\.test\.mjs: FAILED\n[^]*✖ one [^]*the reason[^]*\n---\n2 passed, 1 failed\n$/);
    assert.doesNotMatch(end, /is well/);
  });

  it('says the last words of a C test that aborts, and which command runs it alone', async () => {
    const dir = project({}, { test_it: `echo '[ RUN      ] a claim'
      echo 'src/some.c:7: this must hold and does not: n > 0'
      kill -ABRT $$` });
    const { code, text } = await run(dir, ['--dir', 'build/asan']);
    assert.equal(code, 1);
    assert.match(text.slice(text.lastIndexOf('\n--- tests')),
      /--- tests\/some\/test_it: FAILED: exit status 134\n[^]*this must hold and does not: n > 0[^]*\nalone: tests\/run --c tests\/some\/test_it\.c build\/asan\n---\n0 passed, 1 failed\n$/);
  });

  it('counts the tests of a C executable and names those that are skipped; it fails if it has none, ends badly, is missing or leaves a process behind', async () => {
    const claim = "echo '[ RUN      ] a'; echo '[       OK ] a'";
    const skip = "echo '[  SKIPPED ] b'; echo '[  SKIPPED ] 1 test(s), listed below:'; echo '[  SKIPPED ] b'"; // at once, and at the end
    const dir = project({}, {
      test_well: `${claim}; echo '[ RUN      ] b'; ${skip}`,
      test_half: `${claim}; for each in b c; do echo "[ RUN      ] $each"; echo "[  FAILED  ] $each"; done; echo '[ RUN      ] d'; ${skip}; exit 1`,
      test_leaks: `${claim}; exit 99`,
      test_empty: '',
      test_leaves: `${claim}; sleep 600 >/dev/null 2>&1 &`,
      test_vast_ensemble: 'exit 1', // only make soak runs it
    });
    fs.writeFileSync(path.join(dir, 'tests/some/test_missing.c'), '');
    const { code, text } = await run(dir, ['--dir', 'build/asan'], { TEST_TIME_FACTOR: '0.1' });
    assert.equal(code, 1);
    assert.match(text, /^tests\/some\/test_well: 1 passed, 1 skipped, .*\n {4}skipped: b$/m);
    assert.match(text, /^tests\/some\/test_half: 1 passed, 2 failed, 1 skipped/m);
    assert.match(text, /^--- tests\/some\/test_leaks: FAILED: exit status 99$/m);
    assert.match(text, /^--- tests\/some\/test_empty: FAILED: has no tests$/m);
    assert.match(text, /^--- tests\/some\/test_missing: FAILED: .*ENOENT$/m);
    assert.match(text, /^--- tests\/some\/test_leaves: FAILED: left processes behind: sleep \(\d+\)$/m);
    assert.match(text, /\n2 skipped\n4 passed, 6 failed\n$/); // two of half, leaks, empty, leaves and missing
  });

  it('counts lines that come in the middle of a line of the other stream', async () => {
    const { code, text } = await run(project({
      suite: suite("it('one', () => {});\nprocess.stderr.write('a line without an end');"),
    }, { test_it: "echo '[ RUN      ] a'; printf 'a line ' >&2; sleep 0.2; echo '[       OK ] a'; echo 'of stderr' >&2" }), ['--dir', 'build/asan']);
    assert.equal(code, 0, text);
    assert.match(text, /\n2 passed, 0 failed\n$/);
  });

  it('starts what took longest in the last run first, C tests and suites alike, and ends with the slowest', async () => {
    const dir = project({ quick: suite("it('one', () => {});"), slow: suite("it('one', () => {});"), unknown: suite("it('one', () => {});") },
      { test_it: "echo '[ RUN      ] a'; echo '[       OK ] a'" });
    const times = path.join(dir, 'build/asan/test-times.json');
    fs.writeFileSync(times, JSON.stringify({ 'tests/some/quick.test.mjs': 1, 'tests/some/slow.test.mjs': 500, 'tests/some/test_it': 50 }));
    const { text } = await run(dir, ['--dir', 'build/asan'], { TEST_CONCURRENCY: '1' });
    const order = [...text.matchAll(/^tests\/some\/(\w+).*: 1 passed/gm)].map(([, name]) => name);
    assert.deepEqual(order, ['slow', 'test_it', 'unknown', 'quick']);
    assert.match(text, /^the slowest of 4:\n(?: +[\d.]+ s {2}tests\/some\/.*\n){4}4 passed, 0 failed\n$/m);
    assert.ok(JSON.parse(fs.readFileSync(times, 'utf8'))['tests/some/unknown.test.mjs'] < 500);
  });

  it('says how far it is while tests run', async () => {
    const dir = project({ long: suite("it('takes long', () => new Promise((resolve) => setTimeout(resolve, 7000)));"), next: suite("it('one', () => {});") });
    const { text } = await run(dir, [], { TEST_CONCURRENCY: '1' });
    assert.match(text, /^\[\d done, 0 failed, 1 running, \d to go; 0:\d\d so far, about \d+:\d\d to the end at \d\d:\d\d\]$/m);
  });

  it('names the back end in the command that runs a failing suite alone', async () => {
    const { text } = await run(project({ one: suite("it('one', () => { throw new Error('no'); });", '// backends: postgres') }), ['--dir', 'build/asan', '--programs', 'build']);
    assert.match(text, /^alone: HOLDFAST_TEST_BACKEND=postgres tests\/run --node tests\/some\/one\.test\.mjs --programs build build\/asan$/m);
  });

  it('one file alone runs on the first back end it declares, or on the one that is asked for', async () => {
    const dir = project({ one: suite("it('one', () => { console.log('on', process.env.HOLDFAST_TEST_BACKEND); });", '// backends: sqlite postgres') });
    assert.match((await run(dir, ['tests/some/one.test.mjs'])).text, /^on sqlite$/m);
    assert.match((await run(dir, ['tests/some/one.test.mjs'], { HOLDFAST_TEST_BACKEND: 'postgres' })).text, /^on postgres$/m);
    assert.equal((await run(dir, ['tests/some/one.test.mjs'], { HOLDFAST_TEST_BACKEND: 'cluster' })).code, 1, 'nothing was run');
  });

  it('interrupted, it stops what it started, and starts nothing else', async () => {
    const dir = project({
      long: suite(`import fs from 'node:fs';
        it('takes long', () => { fs.writeFileSync('long', String(process.pid)); return new Promise(() => setInterval(() => {}, 1000)); });`),
      lingers: suite(`import fs from 'node:fs';
        process.on('SIGTERM', () => setTimeout(() => process.exit(), 2000));
        it('ends late', () => { fs.writeFileSync('lingers', String(process.pid)); return new Promise(() => setInterval(() => {}, 1000)); });`),
      next: suite("import fs from 'node:fs';\nfs.writeFileSync('next', 'has begun');\nit('one', () => {});"),
    });
    fs.writeFileSync(path.join(dir, 'build/test-times.json'), JSON.stringify({ 'tests/some/next.test.mjs': 0 })); // begins last
    const runner = begin(dir, [], { TEST_CONCURRENCY: '2' });
    const wrote = (name) => (fs.existsSync(path.join(dir, name)) ? fs.readFileSync(path.join(dir, name), 'utf8') : '');
    await until('the suites run', () => wrote('long') && wrote('lingers'));
    runner.child.kill('SIGINT');
    assert.equal((await runner.done).code, 1);
    for (const name of ['long', 'lingers']) await goes(dir, name);
    assert.equal(wrote('next'), '');
  });
});

describe('the tools of the suites', () => {
  it('a connection that is reset while its FIN is on its way lets the process end', async () => {
    const script = `
      import net from 'node:net';
      import { once } from 'node:events';
      import { reset } from '${path.join(root, 'tests/support/wire.mjs')}';
      const server = net.createServer((peer) => peer.on('error', () => {}));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      server.unref();
      const socket = net.connect(server.address().port, '127.0.0.1');
      await once(socket, 'connect');
      socket.end();
      await new Promise((resolve) => process.nextTick(resolve));
      reset(socket);`;
    const run = launch(process.execPath, ['--input-type=module', '-e', script]);
    const timer = setTimeout(() => run.child.kill('SIGKILL'), 60_000);
    assert.deepEqual(await run.done, { code: 0, signal: null }, run.stderr);
    clearTimeout(timer);
  });
});
