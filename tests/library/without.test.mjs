// Claims about `make WITHOUT="..."`: a libholdfast that is built without some drivers needs none of
// their libraries, serves the other drivers, and says which ones it knows.
// backends: own
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import assert from 'node:assert/strict';
import { environment, installLibrary, PREFIX } from '../support/library.mjs';

const run = promisify(execFile);
const root = path.resolve(path.dirname(new URL(import.meta.url).pathname), '../..');

// Opens every URL it is given and prints what came of it; then the drivers, and a guard of SQLite's.
const PROGRAM = `#include <holdfast.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct hf_fault fault = {HF_DONE, ""};
    for (int i = 1; i < argc; i++) {
        struct hf_locks *locks = NULL;
        struct hf_lock *lock = NULL;
        enum hf_result result = hf_open(argv[i], NULL, &locks, &fault);
        if (result == HF_DONE)
            result = hf_lock(locks, "x", NULL, &lock, &fault);
        printf("%s\\n", result == HF_DONE ? "done" : fault.msg);
        hf_close(locks);
    }
    size_t n;
    const struct hf_driver_info *const *drivers = hf_drivers(&n);
    for (size_t i = 0; i < n; i++)
        printf("%s%c", drivers[i]->name, i + 1 < n ? ' ' : '\\n');
    if (n == 1)
        printf("%s\\n", hf_result_text(hf_fence_sqlite(NULL, "r", 1, &fault)));
    return 0;
}
`;

for (const { without, drivers, needs, known } of [
  {
    without: ['etcd', 'holdfast', 'postgres', 'redis', 'zookeeper'],
    drivers: ['memory', 'sqlite'],
    needs: ['libsqlite3'],
    known: 'memory:, sqlite:',
  },
  { without: ['etcd', 'holdfast', 'postgres', 'redis', 'sqlite', 'zookeeper'], drivers: ['memory'], needs: [], known: 'memory:' },
  {
    without: ['sqlite'],
    drivers: ['memory', 'postgres', 'redis', 'redlock', 'etcd', 'zookeeper', 'holdfast'],
    needs: ['libcrypto', 'libcurl', 'libhiredis', 'libjansson', 'libpq', 'libssl', 'libzookeeper_mt'],
  },
]) {
  describe(`the library without ${without.join(' and ')}`, () => {
    let dir;
    let lib;

    before(async () => {
      dir = await mkdtemp(path.join(tmpdir(), 'holdfast-without-'));
      lib = await installLibrary(dir, without);
    });
    after(() => rm(dir, { recursive: true, force: true }));

    it('needs only the libraries of the drivers it has', async () => {
      const { stdout } = await run('readelf', ['-d', path.join(lib, 'libholdfast.so.0')]);
      const needed = [...stdout.matchAll(/NEEDED.*\[(lib\w+)\./g)].map(([, name]) => name);
      assert.deepEqual(needed.filter((name) => !['libc', 'libpthread'].includes(name)).sort(), [...needs].sort());
    });

    it('has no name of the other libraries in its archive, and none in holdfast.pc', async () => {
      const { stdout } = await run('nm', ['-u', path.join(lib, 'libholdfast.a')]);
      const { stdout: pc } = await run('pkg-config', ['--libs', '--static', 'holdfast'], {
        env: { ...environment, PKG_CONFIG_PATH: path.join(lib, 'pkgconfig') },
      });
      for (const [driver, symbol, library] of [
        ['postgres', /\bPQ\w+/, '-lpq'],
        ['redis', /\bredis[A-Z]\w+|\bfreeReplyObject/, '-lhiredis'],
        ['sqlite', /\bsqlite3_\w+/, '-lsqlite3'],
        ['holdfast', /\bcurl_\w+/, '-lcurl'],
        ['zookeeper', /\bzoo\w+/, '-lzookeeper_mt'],
      ]) {
        assert.equal(symbol.test(stdout), !without.includes(driver), `${driver} in libholdfast.a`);
        assert.equal(pc.split(/\s+/).includes(library), !without.includes(driver), `${library} in holdfast.pc`);
      }
    });

    const canBeStatic = ['etcd', 'holdfast', 'postgres', 'zookeeper'].every((driver) => without.includes(driver));
    for (const linking of ['shared', 'static', ...(canBeStatic ? ['fully static'] : [])]) {
      it(`serves the drivers it has, ${linking}`, async () => {
        const source = path.join(dir, 'program.c');
        const program = path.join(dir, `program_${linking}`);
        const isStatic = linking !== 'shared';
        const env = { ...environment, PKG_CONFIG_PATH: path.join(lib, 'pkgconfig'), LD_LIBRARY_PATH: lib };
        await writeFile(source, PROGRAM);
        const prefix = `--define-variable=prefix=${path.join(dir, PREFIX)}`;
        const options = isStatic ? ['--static'] : [];
        const { stdout: words } = await run('pkg-config', [prefix, '--cflags', '--libs', ...options, 'holdfast'], { env });
        const flags = words.trim().split(/\s+/).map((flag) =>
          isStatic && flag === '-lholdfast' ? '-l:libholdfast.a' : flag);
        const whole = linking === 'fully static' ? ['-static'] : [];
        await run('gcc', ['-std=c17', '-Wall', '-Wextra', '-Werror', ...whole, source, '-o', program, ...flags], { env });
        const urls = ['memory:', `sqlite:${path.join(dir, `${linking}.db`)}`, 'redis://127.0.0.1:1', 'postgres://127.0.0.1:1/x'];
        const { stdout } = await run(program, urls, { env, timeout: 30000 });
        const [memory, sqlite, redis, postgres, names, guard] = stdout.split('\n');
        assert.equal(memory, 'done');
        assert.equal(names, drivers.join(' '));
        for (const [driver, answer] of Object.entries({ sqlite, redis, postgres })) {
          if (!without.includes(driver)) assert.doesNotMatch(answer, /no back end/);
          else if (known) assert.ok(answer.endsWith(`: ${known} are known`), answer);
          else assert.match(answer, /no back end/);
        }
        if (drivers.includes('sqlite')) assert.equal(sqlite, 'done');
        if (drivers.length === 1) assert.equal(guard, 'unsupported');
      });
    }
  });
}

it('a driver that does not exist cannot be left out', async () => {
  await assert.rejects(run('make', ['-n', 'library', 'WITHOUT=mysql'], { cwd: root }), /WITHOUT takes etcd holdfast postgres redis sqlite zookeeper, not mysql/);
});
