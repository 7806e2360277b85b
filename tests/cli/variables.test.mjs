// The environment of `holdfast`: misspelt variables are noticed, those of holdfastd and of scripts are not.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { environment, HOLDFAST, HOLDFASTD } from '../support/server.mjs';

const src = fileURLToPath(new URL('../../src', import.meta.url));
const drivers = (env) => spawnSync(HOLDFAST, ['drivers'], { encoding: 'utf8', env: environment(env, false) });

describe('variables of the environment', () => {
  it('are noticed if they are misspelt, and the command is carried out', () => {
    const run = drivers({ HOLDFAST_LOCK_ULR: 'memory:geheim' });
    assert.equal(run.status, 0);
    assert.equal(run.stderr, 'holdfast: HOLDFAST_LOCK_ULR has no effect; did you mean HOLDFAST_LOCK_URL?\n');
    assert.equal(run.stdout, drivers({}).stdout);
  });

  it('are all known that either program reads', () => {
    const source = execFileSync('grep', ['-rhoE', 'getenv\\("HOLDFAST_[A-Z_]+|"HOLDFAST_[A-Z_]+_KEY"', src], { encoding: 'utf8' });
    const names = source.match(/HOLDFAST_[A-Z_]+/g);
    assert.ok(names.length >= 5, source);
    const env = Object.fromEntries([...names, 'HOLDFAST_NOBODY_READS_THIS'].map((name) => [name, '1']));
    const run = spawnSync(HOLDFASTD, ['--listen', 'nowhere'], { encoding: 'utf8', env: environment(env, false) });
    assert.deepEqual(run.stderr.match(/(?<= variable=)\S+/g), ['HOLDFAST_NOBODY_READS_THIS'], run.stderr);
  });

  it('are not noticed if they belong to holdfastd, to a command that `holdfast run` has started, or to a script', () => {
    const help = execFileSync(HOLDFASTD, ['--help'], { encoding: 'utf8', env: environment({}, false) });
    const options = [...help.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, name]) => name).filter((name) => !['help', 'version'].includes(name));
    assert.ok(options.length > 10);
    const names = [...options.map((name) => name.toUpperCase().replaceAll('-', '_')),
      'ADMIN_KEY', 'SELLER_KEY', 'FENCE', 'FENCES', 'FENCE_RESOURCE', 'LOCK_NAME', 'LOCKS_HELD', 'SLOT', 'DEADLINE_MS', 'SHOP_COLOUR', 'SERVICE_HOST'];
    assert.equal(drivers(Object.fromEntries(names.map((name) => [`HOLDFAST_${name}`, '1']))).stderr, '');
  });
});
