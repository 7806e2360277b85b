// Claims about libholdfast as it is installed: what it exports, that C and C++ programs build
// against it with what pkg-config says, and that the examples of the manual do what they say.
// backends: own
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import assert from 'node:assert/strict';
import { environment as withoutMake, installLibrary, PREFIX } from '../support/library.mjs';

const run = promisify(execFile);
const root = path.resolve(path.dirname(new URL(import.meta.url).pathname), '../..');
let dir;
let lib;
let environment;

before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'holdfast-library-'));
  lib = await installLibrary(dir);
  environment = {
    ...withoutMake,
    PKG_CONFIG_PATH: path.join(lib, 'pkgconfig'),
    LD_LIBRARY_PATH: lib,
  };
});
after(() => rm(dir, { recursive: true, force: true }));

async function flags(...options) {
  const prefix = `--define-variable=prefix=${path.join(dir, PREFIX)}`;
  const { stdout } = await run('pkg-config', [prefix, ...options, 'holdfast'], { env: environment });
  return stdout.trim().split(/\s+/).filter(Boolean);
}

async function declared() {
  const header = await readFile(path.join(root, 'include/holdfast.h'), 'utf8');
  const code = header.replace(/\/\*[\s\S]*?\*\//g, '');
  const names = new Set([...code.matchAll(/\b(hf_\w+)\s*\(/g)].map((match) => match[1]));
  names.delete('hf_sized'); // the template behind the initialisers of C++
  return names;
}

async function symbols(...options) {
  const { stdout } = await run('nm', options);
  return stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((words) => words.length === 3)
    .map(([, kind, name]) => ({ kind, name }));
}

for (const [what, file, options] of [
  ['shared', 'libholdfast.so.0', ['-D', '--defined-only']],
  ['static', 'libholdfast.a', ['-g', '--defined-only']],
]) {
  test(`the ${what} library exports the calls of the header and nothing else, no data`, async () => {
    const all = await symbols(...options, path.join(lib, file));
    const names = await declared();
    assert.ok(all.length >= 20);
    for (const { kind, name } of all) {
      assert.equal(kind, 'T', `${name} is data`);
      assert.ok(names.has(name), `${name} is not in holdfast.h`);
    }
    const exported = new Set(all.map(({ name }) => name));
    assert.deepEqual([...names].filter((name) => !exported.has(name)), []);
  });
}

// What SQLite itself keeps for the whole process, its list of file systems, needs to be entered once, and libcurl has to be
// started once (`once`, in src/net/http_pool.c).  Tables hash with a key that is drawn before main (`key`, in src/base/hash.c).
// `n_threads` and `own`, in src/base/thread_number.c, tell threads apart, also from those that have ended.  `taken`, in
// src/base/settings.c, is what a server has taken out of its environment; nothing in the library does that.
const REGISTRATION = new Set(['configured', 'registered', 'registering', 'once', 'key', 'n_threads', 'own', 'taken']);

test('the library has no variables but what has to be once in a process', async () => {
  const kept = (await symbols('--defined-only', path.join(lib, 'libholdfast.a'))).filter(
    ({ kind, name }) => 'bBDCgGsS'.includes(kind) && !REGISTRATION.has(name.replace(/\.\d+$/, '')),
  );
  assert.deepEqual(kept, []);
});

test('the shared library has a soname and needs no more than its back ends', async () => {
  const { stdout } = await run('readelf', ['-d', path.join(lib, 'libholdfast.so.0')]);
  assert.match(stdout, /soname: \[libholdfast\.so\.0\]/);
  for (const [, name] of stdout.matchAll(/NEEDED.*\[(.*)\]/g)) {
    assert.match(name, /^(libc\.|ld-linux|libsqlite3\.|libhiredis\.|libpq\.|libcrypto\.|libssl\.|libcurl\.|libjansson\.|libzookeeper_mt\.|libpthread\.)/);
  }
});

const PROGRAM = `#include <holdfast.h>
#include <stdio.h>
int main(void)
{
    struct hf_locks *locks = 0;
    struct hf_lock *lock = 0;
    struct hf_options how = HF_OPTIONS_INIT;
#if !defined __cplusplus || __cplusplus >= 202002L
    struct hf_lock_options want = HF_LOCK_OPTIONS(.ttl_ms = 1000, .label = "a program");
#else
    struct hf_lock_options want = HF_LOCK_OPTIONS_INIT;
    want.ttl_ms = 1000;
#endif
    if (hf_open("memory:", &how, &locks, 0) != HF_DONE || hf_lock(locks, "x", &want, &lock, 0) != HF_DONE)
        return 1;
    printf("%s %lld %d %s\\n", hf_lock_name(lock), (long long)hf_lock_fence(lock),
           hf_version() == HF_VERSION, hf_version_text());
    hf_close(locks);
    return 0;
}
`;

for (const [language, compiler, standard, suffix] of [
  ['C', 'gcc', 'c99', 'c'],
  ['C++', 'g++', 'c++11', 'cc'],
  ['C++20', 'g++', 'c++20', 'cc'],
]) {
  for (const linking of ['shared', 'static']) {
    test(`a ${language} program builds without warnings and runs, ${linking}`, async () => {
      const source = path.join(dir, `program_${standard}_${linking}.${suffix}`);
      const program = path.join(dir, `program_${standard}_${linking}`);
      await writeFile(source, PROGRAM);
      const strict = [`-std=${standard}`, '-Wall', '-Wextra', '-pedantic', '-Werror'];
      if (language === 'C') strict.push('-Wstrict-prototypes');
      const libs =
        linking === 'shared'
          ? await flags('--cflags', '--libs')
          : (await flags('--cflags', '--libs', '--static')).map((flag) =>
              flag === '-lholdfast' ? '-l:libholdfast.a' : flag,
            );
      await run(compiler, [...strict, source, '-o', program, ...libs], { env: environment });
      const { stdout } = await run(program, [], { env: environment });
      assert.equal(stdout, `x 1 1 ${await version()}\n`);
      const { stdout: needed } = await run('readelf', ['-d', program]);
      assert.equal(needed.includes('libholdfast.so.0'), linking === 'shared');
    });
  }
}

const RESULT_DROPPED = `#include <holdfast.h>
void drop(struct hf_lock *lock);
void drop(struct hf_lock *lock) { hf_unlock(lock, 0); }
`;

test('pkg-config names the folder of the header alone, and each library once', async () => {
  assert.deepEqual((await flags('--cflags')).filter((flag) => flag.startsWith('-I')), [`-I${path.join(dir, PREFIX, 'include')}`]);
  const libs = (await flags('--libs', '--static')).filter((flag) => flag.startsWith('-l'));
  assert.deepEqual(libs, [...new Set(libs)]);
  assert.ok(libs.includes('-lhiredis') && libs.includes('-lcurl'), libs.join(' '));
});

test('a program that drops a result is warned', async () => {
  const source = path.join(dir, 'dropped.c');
  await writeFile(source, RESULT_DROPPED);
  const compile = run('gcc', ['-Wall', '-Werror', '-c', source, '-o', '/dev/null', ...(await flags('--cflags'))]);
  await assert.rejects(compile, /ignoring return value of .hf_unlock./);
});

async function version() {
  const header = await readFile(path.join(root, 'include/holdfast.h'), 'utf8');
  return header.match(/#define HF_VERSION_TEXT "(.*)"/)[1];
}

test('header, pkg-config, both programs and the API have one version', async () => {
  const text = await version();
  assert.match(text, /^\d+\.\d+\.\d+$/);
  assert.deepEqual(await flags('--modversion'), [text]);
  const api = await readFile(path.join(root, 'docs/openapi.yaml'), 'utf8');
  assert.equal(api.match(/^info:\n(?: +.*\n)*? +version: (.*)$/m)[1], text);
  for (const program of ['holdfast', 'holdfastd']) {
    const file = process.env[program.toUpperCase()] ?? path.join(root, 'build', program);
    const env = { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' }; // the search for leaks takes seconds
    assert.equal((await run(file, ['--version'], { env })).stdout, `${program} ${text}\n`);
  }
});

const SAYS = {
  lock: /^working, fence \d+\n$/,
  poll: /^lost after \d+ steps, held: no\n$/, // none, if it stood still meanwhile
  semaphore: /^6 were served, at most 3 at once\n$/,
  leader: /^((Ada|Grace) leads, term \d+\n){3,}$/,
  coupon: /^3 redeemed, 5 too late, 0 left\n$/,
  appointment: /^6 of 6 patients have an appointment, 0 times are booked twice\n$/,
  pool: /^18 pages, 0 refused, 0 collisions\n$/,
  set: /^account\/1, fence \d+\naccount\/2, fence \d+\naccount\/1, fence \d+\naccount\/2, fence \d+\n$/,
};

const ALSO_NEEDS = { coupon: ['-lsqlite3'] };

test('every example builds without warnings and does what it says on every back end at hand, also when it is run again', async (t) => {
  const sources = (await readdir(path.join(root, 'docs/examples'))).filter((name) => name.endsWith('.c'));
  assert.deepEqual(sources.sort(), Object.keys(SAYS).map((name) => `${name}.c`).sort());
  const link = await flags('--cflags', '--libs');
  const urls = ['memory:'];
  const drivers = await readFile(path.join(root, 'src/lease/drivers.c'), 'utf8');
  if (/&lease_sql/.test(drivers)) urls.push('sqlite:');
  for (const name of Object.keys(SAYS)) {
    const program = path.join(dir, `example_${name}`);
    await run(
      'gcc',
      ['-std=c17', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-pedantic', '-Werror', '-pthread',
        path.join(root, `docs/examples/${name}.c`), '-o', program, ...link, ...(ALSO_NEEDS[name] ?? [])],
      { env: environment },
    );
    for (const scheme of urls) {
      const url = scheme === 'sqlite:' ? `sqlite:${path.join(dir, `${name}.db`)}` : scheme;
      await t.test(`${name} on ${scheme}`, async () => {
        const cwd = await mkdtemp(path.join(dir, 'cwd-')); // where an example leaves its files
        for (const time of ['first', 'second']) {
          const { stdout } = await run(program, [url], { cwd, env: environment, timeout: 60000 });
          assert.match(stdout, SAYS[name], `the ${time} time`);
        }
      });
    }
  }
});
