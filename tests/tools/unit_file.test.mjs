// The unit file: systemd understands it, thinks well of it, and holdfastd knows every flag in it and every setting of the
// file beside it.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { environment, HOLDFASTD, removeTempDir, tempDir } from '../support/server.mjs';

const share = fileURLToPath(new URL('../../share/holdfast', import.meta.url));
const unit = path.join(share, 'holdfastd.service');
const text = fs.readFileSync(unit, 'utf8');
const EXPOSURE_MAX = 2.5;

describe('share/holdfast/holdfastd.service', () => {
  it('is hardened', () => {
    const run = spawnSync('systemd-analyze', ['security', '--offline=true', '--no-pager', `--threshold=${EXPOSURE_MAX * 10}`, unit],
      { encoding: 'utf8', env: { ...process.env, SYSTEMD_COLORS: '0' } });
    const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(run.stdout) ?? assert.fail(run.stdout + run.stderr);
    assert.ok(Number(exposure) <= EXPOSURE_MAX, `exposure ${exposure}`);
    assert.equal(run.status, 0);
  });

  it('has nothing that systemd does not understand', () => {
    const dir = tempDir();
    const copy = path.join(dir, 'holdfastd.service'); // with programs and pages that exist here
    fs.writeFileSync(copy, text.replace('/usr/bin/holdfastd', HOLDFASTD).replace(/^Documentation=.*\n/m, ''));
    const run = spawnSync('systemd-analyze', ['verify', '--man=no', copy], { encoding: 'utf8' });
    assert.equal(run.stderr.split('\n').filter((line) => line.includes(dir)).join('\n'), '');
    removeTempDir(dir);
  });

  it('starts holdfastd with flags that it has', () => {
    const [, command] = /^ExecStart=(.*)$/m.exec(text);
    const help = execFileSync(HOLDFASTD, ['--help'], { encoding: 'utf8', env: environment({}, false) });
    for (const flag of command.match(/--[a-z-]+/g)) assert.match(help, new RegExp(`^ +${flag} `, 'm'));
  });

  it('names settings that holdfastd knows, commented out or not', () => {
    const settings = fs.readFileSync(path.join(share, 'holdfastd.env'), 'utf8').match(/^#?HOLDFAST_[A-Z_]+=.*$/gm);
    assert.ok(settings.length >= 5);
    const dir = tempDir();
    const file = path.join(dir, 'env');
    fs.writeFileSync(file, settings.map((line) => line.replace(/^#/, '')).concat('nonsense').join('\n'), { mode: 0o600 });
    const run = spawnSync(HOLDFASTD, ['--env-file', file], { encoding: 'utf8', env: environment({}, false) });
    assert.match(run.stderr, new RegExp(`line ${settings.length + 1}: it is not NAME=VALUE`));
    removeTempDir(dir);
  });
});
