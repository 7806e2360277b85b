// scripts/check-rooms finds what it is there to find: planted violations, each in a small project of its own.
// backends: own

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../support/process.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const CHECK = path.join(root, 'scripts/check-rooms');

const WELL = {
  'scripts/rooms.txt': fs.readFileSync(path.join(root, 'scripts/rooms.txt'), 'utf8').replace(/^order .*\n/gm, ''),
  'ARCHITECTURE.md': '| room | what |\n|---|---|\n| `src/base`, `src/rules` | both |\n',
  'include/holdfast.h': '#include <stddef.h>\n',
  'src/base/wait.c': '#include "base/wait.h"\nvoid wait_sleep_us(void) { nanosleep(0, 0); poll(0, 0, 0); clock_gettime(0, 0); }\n',
  'src/base/clock.h': '#include "holdfast.h"\n#include <pthread.h>\nextern int clock_system;\n',
  'src/base/lock.h': 'static inline void lock_take(atomic_int *lock) { (void)lock; }\n',
  'src/rules/decide.h': '#include "base/wait.h"\n#include "model/rows.h"\n#include "view/view.h"\n',
  'src/rules/decide.c': '#include "base/wait.h"\n#include "model/rows.h"\n#include <string.h>\nint decide(void) { return 1; }\n',
};

// What the check says of the well-kept project with these files changed (null: removed).
function check(changes = {}) {
  const dir = tempDir();
  for (const [name, text] of Object.entries({ ...WELL, ...changes })) {
    if (text === null) continue;
    fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    fs.writeFileSync(path.join(dir, name), text);
  }
  const { status, stdout, stderr } = spawnSync(CHECK, [dir], { encoding: 'utf8' });
  return { status, text: stdout + stderr };
}

function assertFound(changes, ...patterns) {
  const { status, text } = check(changes);
  for (const pattern of patterns) assert.match(text, pattern);
  assert.equal(text.trim().split('\n').length, patterns.length, text);
  assert.equal(status, 1);
}

const rules = (text) => ({ 'src/rules/decide.c': text });

describe('scripts/check-rooms', () => {
  it('has nothing to say of a project in order', () => assert.deepEqual(check(), { status: 0, text: '' }));

  it('finds an include that points up, and says where', () => {
    assertFound(rules('\n#include "engine/command.h"\n'), /^src\/rules\/decide\.c:2: rules may not include "engine\/command\.h"$/m);
    assertFound({ 'src/base/buf.h': '  #  include "model/rows.h"\n' }, /^src\/base\/buf\.h:1: base may not include/m);
  });

  it('finds an include that points sideways, or past the public header', () => {
    assertFound(rules('#include "ledger/ledger.h"\n#include "holdfast.h"\n'), /"ledger\/ledger\.h"/, /"holdfast\.h"/);
  });

  it('finds an internal header that another folder includes', () => assertFound(rules('#include "model/rows_internal.h"\n#include "rules/decide_internal.h"\n'),
    /^src\/rules\/decide\.c:1: "model\/rows_internal\.h" is for its own folder$/m));

  it('finds an include that hides its room', () => assertFound(rules('#include "../engine/command.h"\n#include "view.h"\n'),
    /may not include "\.\.\/engine/, /"view\.h" is included without its room/));

  it('finds a system header that a room may not use', () => {
    assertFound(rules('#include <pthread.h>\n#include <jansson.h>\n'), /<pthread\.h>/, /<jansson\.h>/);
  });

  it('finds a tag that another file has, too', () => {
    assertFound({ 'src/rules/decide.c': 'static struct draft {\n    int x;\n} d;\n', 'src/rules/other.c': '\nenum draft { A };\n' },
      /^src\/rules\/other\.c:2: src\/rules\/decide\.c has the tag draft, too$/m);
  });

  it('finds a function and a variable of a module above', () => {
    const ordered = (files, order = 'decide change') => ({
      'scripts/rooms.txt': `${WELL['scripts/rooms.txt']}order rules: ${order}\n`,
      'src/rules/decide.c': '#include "rules/change.h"\nint decide_best;\nint decide(int a,\n           int b)\n{\n    return change(a, b);\n}\n',
      'src/rules/change.c': 'int change(int a, int b) { return a + b; }\n',
      ...files,
    });
    assert.deepEqual(check(ordered({ 'src/rules/decide_hold.c': 'int f(void) { return decide(1, 2); }\n' })), { status: 0, text: '' });
    assertFound(ordered({ 'src/rules/change.c': 'int change(int a, int b)\n{\n    return decide(a, b);\n}\n' }),
      /^src\/rules\/change\.c:3: decide is of decide, above change$/m);
    assertFound(ordered({ 'src/rules/change_log.c': 'int *change_log(void) { return &decide_best; }\n' }),
      /^src\/rules\/change_log\.c:1: decide_best is of decide, above change$/m);
    assert.deepEqual(check(ordered({ 'src/rules/change.c': 'int change(const struct decide *d, enum decide e);\n' })), { status: 0, text: '' });
    assertFound(ordered({ 'src/rules/keys.c': 'int keys;\n' }), /^src\/rules\/keys\.c: scripts\/rooms\.txt has no place for it/m);
    assertFound(ordered({}, 'decide change best'), /^scripts\/rooms\.txt: rules has no module best$/m);
  });

  it('finds a folder that the table does not have', () => {
    assertFound({ 'src/attic/old.c': 'int old;\n', 'src/attic/older.c': 'int older;\n' }, /no room attic/);
  });

  it('finds calls to the system for time, waiting and randomness', () => {
    for (const call of ['clock_gettime(CLOCK_REALTIME, &t)', 'time(NULL)', 'gettimeofday(&t, 0)', 'nanosleep(&t, 0)', 'usleep (5)',
      'poll(fds, 1, -1)', 'epoll_wait(fd, e, 1, 0)', 'pthread_cond_timedwait(c, m, &t)', 'pthread_condattr_setclock(&a, 1)',
      'timerfd_create(1, 0)', 'getrandom(p, 8, 0)', 'rand()', 'random()', 'RAND_bytes(p, 8)', 'syscall(SYS_futex, p, FUTEX_WAIT, 0)']) {
      assertFound(rules(`void f(void) { ${call}; }\n`), /^src\/rules\/decide\.c:1: \w+ is reserved to base/m);
    }
    assertFound(rules('int (*nap)(void) = nanosleep;\n'), /nanosleep is reserved/);
    assertFound({ 'src/base/hash.c': 'void f(void) { getrandom(p, 8, 0); }\n' }, /getrandom is reserved to base\/random\.c/);
  });

  it('finds what threads share where nothing is shared', () => {
    assertFound(rules('static atomic_int n;\n'), /^src\/rules\/decide\.c:1: atomic_int is reserved to/m);
    assertFound(rules('void f(void) { lock_take(&l); }\n'), /lock_take is reserved to/);
  });

  it('finds the system clock where a clock should be handed over', () => {
    assertFound(rules('long f(void) { return clock_wall_us(&clock_system); }\n'), /clock_system is reserved/);
  });

  it('does not mistake comments, strings, members and longer names for calls', () => {
    assert.deepEqual(check(rules(`/* time(NULL) and poll(x)
 clock_system */ // nanosleep(1)
const char *s = "time(NULL) \\" sleep(1)", c = '"';
int f(struct random *random) { return g->time(g) + g->ops.poll(1) + hf_sleep(2) + wait_time(3); }
struct ops o = {.sleep = mine, .select = other};\n`)), { status: 0, text: '' });
  });

  it('finds permissions that no file uses', () => {
    assertFound({ ...rules('int decide;\n'), 'src/rules/decide.h': '#include "base/wait.h"\n#include "view/view.h"\n' },
      /^scripts\/rooms\.txt: no file of rules includes a header of model$/m);
    assertFound({ 'src/base/clock.h': '#include "holdfast.h"\nextern int clock_system;\n' }, /no file of base includes <pthread\.h>$/m);
    assertFound({ 'src/base/clock.h': '#include "holdfast.h"\n#include <pthread.h>\n' }, /base uses no name of .*clock_system/);
    assertFound({ 'src/base/wait.c': 'void f(void) { nanosleep(0, 0); clock_gettime(0, 0); }\n' }, /base\/wait\.c uses no name of .*ppoll/);
    assertFound({ 'src/base/random.c': '/* getrandom */\n' }, /base\/random\.c uses no name of .*getrandom/);
  });

  it('finds a room without a row in ARCHITECTURE.md, and a row that permits something else', () => {
    assertFound({ 'ARCHITECTURE.md': '| `src/base` | it |\n' }, /ARCHITECTURE\.md: no table has a row of `src\/rules`/);
    const rows = (permitted) => ({ 'ARCHITECTURE.md': `| room | may include |\n|---|---|\n| \`src/rules\` | ${permitted} |\n| \`src/base\` | \`public\` |\n` });
    assert.deepEqual(check(rows('`view`, `model`, `base`')), { status: 0, text: '' });
    assertFound(rows('`view`, `db`'), /rules may include "model view", not "db view"/);
  });

  it('finds a public header that includes a private one', () => {
    assertFound({ 'include/holdfast.h': '#include "base/buf.h"\n' }, /public header may not include "base\/buf\.h"/);
  });
});
