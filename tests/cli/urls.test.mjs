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
  '': /none of redis:\/\/, redis\+unix: and unix:/,
  'gopher://:secret@host': /none of redis:\/\/, redis\+unix: and unix:/,
};

const dir = tempDir();
const server = (flag) => (url) => runServer(['--listen', '127.0.0.1:0', '--data', dir, flag, url]);
const command = (...args) => (url) => holdfast(undefined, [...args.map((arg) => arg ?? url)]);
const programs = {
  'holdfastd --ledger': [server('--ledger'), { ...ledgers, ...noLedgers }],
  'holdfastd --gate': [server('--gate'), gates],
  'holdfast verify': [command('verify', '--ledger', null), { ...ledgers, ...noLedgers }],
  'holdfast lab race': [command('lab', 'race', '--users', '1', '--ledger', null), { ...ledgers, ...noLedgers }],
  'holdfast run': [command('run', '--lock', null, 'name', '--', 'true'), { ...ledgers, ...gates, '': /--lock URL/, 'gopher://:secret@host': /are known/ }],
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
