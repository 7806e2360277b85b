// The examples that are shell scripts (docs/examples/*.sh) do what they say.  Those in C are in library.test.mjs.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { begin, holdfast, PATIENCE, sqliteLocks, until } from '../support/cli.mjs';
import { HOLDFAST, reap, tempDir } from '../support/server.mjs';

const examples = fileURLToPath(new URL('../../docs/examples/', import.meta.url));
const bin = tempDir();
const locks = sqliteLocks();
const wrap = (script, args) => ({ wrap: () => ['sh', '-c', `PATH=${bin}:$PATH; exec ${examples}${script} "$@"`, 'sh', ...args] });
const play = (script, args, env = {}) => holdfast(locks.url, [], { ...wrap(script, args), env });
const lines = (file) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n').filter(Boolean) : []);

// The `holdfast` of the scripts has a minute for the file with the locks, which another process may change while it stands still.
before(() => fs.writeFileSync(path.join(bin, 'holdfast'), `#!/bin/sh
case $1 in run | elect) verb=$1; shift; set -- "$verb" ${PATIENCE.join(' ')} "$@" ;; esac
exec ${HOLDFAST} "$@"\n`, { mode: 0o755 }));
after(reap);

describe('the scripts among the examples', { concurrency: 2 }, () => {
  it('are all tried here, and can be executed', () => {
    const all = fs.readdirSync(examples).filter((name) => name.endsWith('.sh')).sort();
    assert.deepEqual(all, ['cron.sh', 'leader.sh', 'migrate.sh']);
    for (const name of all) fs.accessSync(path.join(examples, name), fs.constants.X_OK);
  });

  it('cron.sh: of three machines one does the work, and the others are fine', async () => {
    const file = locks.file('cron');
    const machines = [0, 1, 2].map(() => begin(locks.url, [], { ...wrap('cron.sh', ['sh', '-c', `echo ran >>${file}`]), env: { AT_LEAST: '60s' } }));
    const others = () => machines.filter(({ ended }) => ended);
    await until('two are done, and the work is', () => others().length === 2 && lines(file).length === 1);
    machines.find(({ ended }) => !ended).child.kill('SIGTERM'); // the end of --at-least
    const results = await Promise.all(machines.map(({ result }) => result));
    assert.deepEqual(results.map(({ code, stderr }) => [code, stderr]), Array(3).fill([0, '']));
    assert.deepEqual(lines(file), ['ran']);
  });

  it('leader.sh: one leads, and when it goes the next one does, with a larger fence', async () => {
    const file = locks.file('leader');
    const stand = () => begin(locks.url, [], { ...wrap('leader.sh', ['sh', '-c', `echo "$PPID $HOLDFAST_FENCE" >>${file}; exec sleep 60`]), env: { TTL: '5m' } }); // longer than anybody waits
    const candidates = [stand(), stand()];
    const leaders = (n) => until(`${n} terms`, () => lines(file).length === n && lines(file));
    const [first] = await leaders(1);
    const leader = candidates.find(({ pid }) => pid === Number(first.split(' ')[0]));
    leader.child.kill('SIGTERM');
    await leader.result;
    const [, second] = await leaders(2);
    assert.ok(Number(second.split(' ')[1]) > Number(first.split(' ')[1]));
    const other = candidates.find((candidate) => candidate !== leader);
    assert.equal(Number(second.split(' ')[0]), other.pid);
    other.child.kill('SIGTERM');
    await other.result;
  });

  it('migrate.sh: of three instances that start at once, each migration is applied by one', async () => {
    const database = locks.file('app.db');
    const files = { '1-create.sql': 'CREATE TABLE customer (name TEXT);', '2-fill.sql': "INSERT INTO customer VALUES ('Ada');" };
    for (const [name, sql] of Object.entries(files)) fs.writeFileSync(locks.file(name), sql);
    const args = [database, ...Object.keys(files).map((name) => locks.file(name))];
    const instances = await Promise.all([0, 1, 2].map(() => play('migrate.sh', args)));
    assert.deepEqual(instances.map(({ code }) => code), [0, 0, 0], instances.map(({ stderr }) => stderr).join());
    const applied = instances.map(({ stdout }) => stdout).join('').trim().split('\n');
    assert.deepEqual(applied, ['applied 1-create.sql', 'applied 2-fill.sql']);
    fs.writeFileSync(locks.file('3-wrong.sql'), 'INSERT INTO nowhere VALUES (1);');
    assert.notEqual((await play('migrate.sh', [...args, locks.file('3-wrong.sql')])).code, 0);
    assert.equal((await play('migrate.sh', args)).stdout, '');
  });
});
