// A malformed URL leads to one line that says what is wrong and how a URL looks, to exit code 64, and to no part of a
// password.
// backends: own

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { holdfast } from '../support/cli.mjs';
import { assertCleanStderr, reap, runServer, tempDir } from '../support/server.mjs';

const FORM = 'postgres://USER:PASSWORD@HOST:PORT/DATABASE';
const ledgers = {
  'postgres:/x': /begin.* (with|nor) postgres:\/\//,
  'postgres://[': /\[ without \]/,
  'postgres://me:secret@[::1/x': /\[ without \]/,
  'postgres://me:secr@secret@host/x': /two @ \(one of a password is written %40\)/,
  'postgres://me:secret%@host/x': /two hex digits/,
  'postgres://me@host:secret/x': /the port is not a number/,
  'postgresql://me:secret@host,other:99999/x': /the port is not a number/,
  'postgres://me:secret@host/x?secret=1': /parameter after the \?/,
};
const noLedgers = { '': /empty/, 'gopher://me:secret@host/x': /neither sqlite: nor postgres:\/\// };
const gates = {
  'redis://host:notaport': /the port is not a number from 1 to 65535/,
  'redis://:secr@secret@host:1x': /the port is not a number/,
  'redis://secret@host': /before @ comes user:password or :password/,
  '': /none of redis:\/\/, rediss:\/\/, redis\+unix:, unix:/,
  'gopher://:secret@host': /none of redis:\/\/, rediss:\/\/, redis\+unix:, unix:/,
};
// Those of locks alone, a group for each driver.
const locks = {
  'redlock://': /a host is missing/,
  'redlock://h1,h2': /at least three servers/,
  'redlock://:secret@h1,,h3': /a host is missing/,
  'redlock://:secret@h1,h1,h2': /a server is named twice/,
  'redlock://:secret@h1:x,h2,h3': /the port is not a number/,
  'redlock://:secret%zz@h1,h2,h3': /two hex digits/,
  'redlock://secret@h1,h2,h3': /before @ comes user:password or :password/,
  'redlock://:secret@h1,h2,h3?max_ttl=secret': /max_ttl is a time/,
  'redlock://:secret@h1,h2,h3?secret=1': /max_ttl=TIME and db=N/,
  'redlock://:secret@h1,h2,h3?cacert=/x': /are for redlocks:/,
  'redlocks://:secret@h1,h2,h3?cert=/x': /cert/,
  'redlocks://:secret@h1,h2': /at least three servers/,

  'etcd:/x': /are known/,
  'etcd://': /a host is missing/,
  'etcd://me:secret@h1,,h2': /a host is missing/,
  'etcd://me:secret@[::1': /a host is missing or malformed/,
  'etcd://me:secr@secret@h/x': /a host is missing or malformed/,
  'etcd://h:secret': /the port is not a number/,
  'etcd://me:secret%@h': /two hex digits/,
  'etcd://secret@h': /before @ comes user:password/,
  'etcd://me:secret@h?secret=1': /the parameters are/,
  'etcd://me:secret@h?cacert=/x': /are for etcds:/,
  'etcds://me:secret@h?cert=/x': /cert and key go together/,

  'zookeeper://': /a host is missing/,
  'zookeeper://me:secret@h1,,h2': /a host is missing/,
  'zookeeper://h:secret': /the port is not a number/,
  'zookeeper://secret@h': /user:password/,
  'zookeeper://me:secret%@h': /two hex digits/,
  'zookeeper://me:secret@h/a//b': /a part that is empty/,

  'holdfast://': /a host is missing/,
  'holdfast://secret@h1,,h2': /a host is missing/,
  'holdfast://secret@h/x': /no path after the hosts/,
  'holdfast://h:secret': /the port is not a number/,
  'holdfast://secret%@h': /%XX stands for a byte/,
  'holdfast://secret@h?secret=1': /the parameters are/,
  'holdfast://secret@h?ttl=secret': /ttl is a duration/,
  'holdfast://secret@h?cache=secret': /cache is shared or off/,
  'holdfast://h?key=secret': /HOLDFAST_KEY/,

  'rediss://secret@h': /before @ comes user:password or :password/,
  'rediss://me:secret@h:1x': /the port is not a number/,
  'rediss://me:secret@h?cert=/x': /cert and key go together/,
  'redis://me:secret@h?secret=1': /the parameters after \?/,
  'redis://h?min_replicas=secret': /are numbers/,
  'redis+sentinel://me:secret@h': /the name of the primary/,
  'redis+sentinel://me:secret@h:x/m': /the port is not a number/,
};

const dir = tempDir();
const server = (flag) => (url) => runServer(['--listen', '127.0.0.1:0', '--data', dir, flag, url]);
const command = (...args) => (url) => holdfast(undefined, [...args.map((arg) => arg ?? url)]);
const programs = {
  'holdfastd --ledger': [server('--ledger'), { ...ledgers, ...noLedgers }],
  'holdfastd --gate': [server('--gate'), gates],
  'holdfast verify': [command('verify', '--ledger', null), { ...ledgers, ...noLedgers }],
  'holdfast lab race': [command('lab', 'race', '--users', '1', '--ledger', null), { ...ledgers, ...noLedgers }],
  'holdfast run': [command('run', '--lock', null, 'name', '--', 'true'), { ...ledgers, ...gates, ...locks, '': /--lock URL/, 'gopher://:secret@host': /are known/ }],
  'holdfast lock': [command('lock', 'ls', '--lock', null), { 'postgres://[': ledgers['postgres://['], 'redis://host:notaport': gates['redis://host:notaport'] }],
};

describe('a malformed URL is refused with one helpful line', { concurrency: 4 }, () => {
  after(reap);
  for (const [program, [run, urls]] of Object.entries(programs)) {
    it(program, async () => {
      for (const [url, pattern] of Object.entries(urls)) {
        const { code, stdout, stderr } = await run(url);
        assert.equal(code, 64, `${url}: ${code} ${stderr}`);
        assertCleanStderr(stderr);
        assert.match(stderr, pattern, url);
        assert.equal(stdout, '', url);
        assert.match(stderr, /^[^\n]+\n$/, 'one line');
        assert.doesNotMatch(stderr, /secr/, 'a part of the password');
        if (url in ledgers) assert.ok(stderr.includes(FORM), stderr);
      }
    });
  }
});
