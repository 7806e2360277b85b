// Guessing access keys: it is counted, logged without a flood, and slowed down per address; programs that share the guesser's
// address go on working.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { IDLE_MS, reap, removeTempDir, runServer, Server, tempDir, until } from '../support/server.mjs';

const ADMIN = 'admin-key-0123456789';
const SELLER = 'seller-key-0123456789';
const UNUSED = Array.from({ length: 20 }, (_, i) => `admin-key-never-used-${i}`);
const KEYS = { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER };
const BURST = 200; // GUESSES_BURST
const LINES = 16; // GUESSES_LOGGED_MAX
const bearer = (key) => ({ Authorization: `Bearer ${key}` });

const launch = async (options) => {
  const server = new Server(options);
  await server.launch();
  return server;
};
const logged = (server) => server.stderr.split('\n').filter((line) => line.includes('wrong access keys'));

// Requests from another address of this machine.
class Elsewhere {
  constructor(server, address) {
    this.server = server;
    this.agent = new http.Agent({ keepAlive: true, timeout: IDLE_MS, maxSockets: 4, localAddress: address });
  }

  get(target, headers) { return this.server.request('GET', target, undefined, headers, { agent: this.agent }); }

  // Guesses until it is slowed down; resolves to that answer and to how many were answered before.
  async exhaust() {
    for (let n = 0; n < 2 * BURST; n++) {
      const answer = await this.get('/metrics', bearer(`guess-number-${n}-of-many`));
      if (answer.status !== 401) return { answer, n };
    }
    throw new Error('it is not slowed down');
  }
}

describe('an address that guesses keys', () => {
  let server;
  let guesser;
  let began;
  const minutes = () => 1 + Math.floor((Date.now() - began) / 60_000);
  before(async () => {
    const dir = tempDir();
    fs.writeFileSync(path.join(dir, 'keys'), UNUSED.join('\n'), { mode: 0o600 });
    server = await launch({ env: KEYS, args: ['--admin-key-file', path.join(dir, 'keys')] });
    removeTempDir(dir);
    began = Date.now();
    guesser = new Elsewhere(server, '127.0.0.2');
    assertProblem(await guesser.get('/v1/holds?event=evt_x', bearer(SELLER)), 404, 'no_such_event'); // the key is right
  });
  after(() => server?.stop());

  it('is slowed down, and told when to come back', async () => {
    const before_ = await server.get('/metrics', bearer(ADMIN));
    assert.match(before_.text, /^holdfast_wrong_keys_total 0$/m);
    const { answer, n } = await guesser.exhaust();
    assert.ok(n >= BURST && n < BURST * 1.5, `${n} guesses`);
    const problem = assertProblem(answer, 429, 'too_many_wrong_keys');
    assert.equal(answer.headers['retry-after'], String(Math.ceil(problem.retry_after_ms / 1000)));
    assert.ok(problem.retry_after_ms > 0 && problem.retry_after_ms <= 2000, answer.text);
    assert.equal(answer.headers.connection, 'close');
    assert.equal(answer.headers['www-authenticate'], undefined);
    const { text } = await server.get('/metrics', bearer(ADMIN));
    assert.match(text, new RegExp(`^holdfast_wrong_keys_total ${n + 1}$`, 'm'));
    assert.match(text, /^holdfast_too_many_requests_total\{what="wrong_keys"\} 1$/m);
  });

  it('learns nothing from a right key that was never used there', async () => {
    const shape = ({ status, headers, json }) => [status, json?.code, json?.title, json?.detail, Object.keys(headers).sort()];
    for (const key of UNUSED) {
      await guesser.exhaust();
      const right = await guesser.get('/metrics', bearer(key));
      const open = await guesser.get('/healthz', bearer(key));
      const wrong = await guesser.get('/metrics', bearer('guess-of-the-last-hour'));
      if (wrong.status !== 429) continue; // another guess was due meanwhile, so the right key may have been looked at
      assert.deepEqual(shape(right), shape(wrong));
      assert.equal(open.status, 429, 'on public routes, too');
      return;
    }
    assert.fail('this machine is too slow to guess quickly');
  });

  it('does not lock out a program that has used its key there, a caller without one, or other addresses', async () => {
    await guesser.exhaust();
    assertProblem(await guesser.get('/v1/holds?event=evt_x', bearer(SELLER)), 404, 'no_such_event');
    assertOk(await guesser.get('/v1/events'));
    assert.equal((await new Elsewhere(server, '127.0.0.3').get('/metrics', bearer(ADMIN))).status, 200);
    assertProblem(await new Elsewhere(server, '127.0.0.3').get('/metrics', bearer('typed-it-wrong-once')), 401, 'unauthorized');
  });

  it('has one line of the log in a minute, without its keys', async () => {
    const lines = () => logged(server).filter((line) => line.includes('client=127.0.0.2 ')).length;
    await until('it is logged', () => lines() > 0);
    assert.ok(lines() <= minutes(), `${lines()} lines`);
    assert.ok(!server.stderr.includes('guess-'), 'no key is logged');
    assert.ok(!server.stderr.includes(ADMIN));
  });

  it('is one of many, and the log does not grow with them', async () => {
    for (let i = 10; i < 60; i++) await new Elsewhere(server, `127.0.1.${i}`).get('/metrics', bearer('guess-from-everywhere'));
    await until('the last lines are written', () => logged(server).length >= LINES);
    assert.ok(logged(server).length <= LINES * minutes(), `${logged(server).length} lines`);
  });
});

describe('keys that can be guessed', () => {
  after(reap);
  const SHORT = 'tiny-key-15-chr';

  it('are refused where other machines reach the server, at its start and when it reloads', async () => {
    const dir = tempDir();
    const file = path.join(dir, 'keys');
    const write = (text) => fs.writeFileSync(file, text, { mode: 0o600 });
    for (const env of [{ HOLDFAST_ADMIN_KEY: SHORT }, { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SHORT }]) {
      const run = await runServer(['--listen', '0.0.0.0:0', '--data', path.join(dir, 'data')], { env });
      assert.equal(run.code, 1);
      assert.match(run.stderr, /at least 16 characters/);
      assert.ok(!run.stderr.includes(SHORT), run.stderr);
    }
    write(`${ADMIN}\n`);
    const server = await launch({ args: ['--listen', '0.0.0.0:0', '--admin-key-file', file] });
    server.host = '127.0.0.1';
    write(`${ADMIN}\n${SHORT}\n`);
    process.kill(server.pid, 'SIGHUP');
    await until('it refuses to reload', () => /reload failed.*line 2.*at least 16 characters/.test(server.stderr));
    assert.equal((await server.get('/metrics', bearer(SHORT))).status, 401);
    assert.equal((await server.get('/metrics', bearer(ADMIN))).status, 200);
    await server.stop();
    removeTempDir(dir);
  });
});
