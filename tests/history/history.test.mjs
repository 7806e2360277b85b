// backends: own
// time limit: 400 s
//
// Claims about histories.  Processes take and hold locks while they, their servers, the connections between them
// and the servers' clocks are treated badly at random; each holder writes down when it believed that it held what,
// and with which fence (worker.c).  A checker of our own looks at all of it (check.mjs): no two holders at a time,
// and fences that grow.  Faults that a driver declares as harmful (hf_driver_info.overlaps) come in a second part,
// whose overlaps are counted and shown; fences must grow there, too, unless a clock that they depend on was set back.  A short
// history has no time for it.
//
// HF_HISTORY_S is the length of one driver's history (8), HF_HISTORY_SEED repeats the order of faults.

import assert from 'node:assert/strict';
import { after, describe as group, test } from 'node:test';
import { reap } from '../support/server.mjs';
import { describe, fenceErrors, losses, overlaps, parseGrants } from './check.mjs';
import { coordinators } from './coordinators.mjs';
import { counted, part, SECONDS, SEED } from './run.mjs';

after(reap);

// Most of the time everybody waits: in a long run all drivers have their histories at once.
group('a history', { concurrency: SECONDS > 60 ? 7 : 3 }, () => {
  for (const [driver, settings] of Object.entries(coordinators)) {
    test(`${driver}: no two holders at a time, and fences that grow`, async (t) => {
      const made = await settings.start();
      t.after(made.close);
      const hasDeclared = Object.keys(made.declared).length > 0;
      const seconds = hasDeclared ? Math.ceil(SECONDS * 2 / 3) : SECONDS;
      t.diagnostic(`HF_HISTORY_SEED=${SEED}`);
      // Between faults, and on a busy machine, a short history may have few grants: then there is another, and a longer one,
      // since the start of a server that was killed may take all of a short one.
      for (let grants = 0, rounds = 1; grants <= 10; rounds++) {
        assert.ok(rounds <= 6, `${driver}: only ${grants} grants`);
        const kept = await part(settings, made.url, made.survives, seconds * rounds);
        t.diagnostic(counted(kept));
        assert.deepEqual(kept.overlaps.map(describe), [], `${driver}: two holders at once; ${counted(kept)}`);
        assert.deepEqual(kept.fenceErrors.map(describe), [], `${driver}: fences; ${counted(kept)}`);
        grants += kept.grants.length;
      }
      if (hasDeclared && SECONDS - seconds > 5) {
        const declared = await part(settings, made.url, { ...made.survives, ...made.declared }, SECONDS - seconds);
        t.diagnostic(`with declared faults: ${counted(declared)}; ${declared.overlaps.length} overlaps, ${declared.fenceErrors.length} fences that fell`);
      }
    });
  }
});

test('a driver that releases without looking at the owner is caught', async (t) => {
  const made = await coordinators.redis.start();
  t.after(made.close);
  for (let i = 0; ; i++) {
    const found = await part({ ...coordinators.redis, threads: 1 }, made.url, null, 4, { extra: ['blind'] });
    t.diagnostic(`${counted(found)}; ${found.overlaps.length} overlaps`);
    if (found.overlaps.length > 0) break;
    assert.ok(i < 15, `nothing was found in ${found.grants.length} grants`);
  }
});

test('the checker finds overlaps and fences that fall, and nothing else', () => {
  const history = (...lines) => parseGrants(lines);
  const fine = history('G a n 5 100', 'B a 200', 'E a 300', 'G b n 6 301', 'E b 400', 'G c m 1 150', 'E c 350');
  assert.deepEqual(overlaps(fine), []);
  assert.deepEqual(fenceErrors(fine), []);
  const together = history('G a n 5 100', 'B a 300', 'G b n 6 299', 'E b 400');
  assert.equal(overlaps(together).length, 1);
  assert.equal(overlaps(together)[0].us, 1);
  assert.deepEqual(fenceErrors(together), [], 'fences of holders at the same time are not compared');
  const inside = history('G a n 5 100', 'E a 900', 'G b n 6 200', 'E b 300', 'G c n 7 400', 'E c 500');
  assert.equal(overlaps(inside).length, 2);
  const falls = history('G a n 9 100', 'E a 200', 'G b n 8 300', 'E b 400', 'G c n 9 500', 'E c 600');
  assert.equal(fenceErrors(falls).length, 2);
  assert.deepEqual(overlaps(falls), []);
  assert.deepEqual(losses(falls), []);
  assert.equal(losses(history('G a n 9 100', 'B a 200', 'L a 250')).length, 1);
});
