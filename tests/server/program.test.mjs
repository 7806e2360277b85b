// holdfastd as a program: flags, their equivalents in the environment, the demo, signals.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { assertOk } from '../support/expect.mjs';
import { assertCleanStderr, reap, removeTempDir, runServer, start, tempDir } from '../support/server.mjs';

describe('the program', () => {
  after(reap);

  it('says where it listens first, and nothing else before it', async () => {
    const server = await start();
    assert.match(server.run.stdout, /^holdfastd listening on http:\/\/127\.0\.0\.1:\d+\n/);
    assert.ok(server.port > 0);
    await server.stop();
  });

  it('takes its flags from the environment too, and a flag wins', async () => {
    const [dir, other] = [tempDir(), tempDir()];
    const env = { HOLDFAST_LISTEN: '127.0.0.1:0', HOLDFAST_DATA: dir };
    const server = await start({ dir, env, wrap: ([program]) => [program] });
    await server.createEvent();
    assert.ok(fs.existsSync(path.join(dir, 'holdfast.db')));
    await server.stop();
    const flagged = await start({ dir: other, env });
    assert.deepEqual(assertOk(await flagged.get('/v1/events')).data, []);
    await flagged.stop();
    removeTempDir(dir);
    removeTempDir(other);
  });

  it('makes a demo event where there is none, and one only', async () => {
    const server = await start({ args: ['--demo'] });
    const first = assertOk(await server.get('/v1/events')).data;
    assert.equal(first.length, 1);
    assert.ok(first[0].capacity > 0);
    const [seat] = Object.keys(await server.map(first[0].id));
    await server.grant(first[0].id, seat);
    await server.restart();
    const second = assertOk(await server.get('/v1/events')).data;
    assert.deepEqual(second.map(({ id }) => id), [first[0].id]);
    await server.stop();

    const busy = await start();
    await busy.createEvent({ name: 'Mine' });
    busy.args.push('--demo');
    await busy.restart();
    assert.deepEqual(assertOk(await busy.get('/v1/events')).data.map(({ name }) => name), ['Mine']);
    await busy.stop();
  });

  it('explains itself', async () => {
    const help = await runServer(['--help']);
    assert.equal(help.code, 0);
    for (const flag of ['--listen', '--data', '--demo']) assert.ok(help.stdout.includes(flag), help.stdout);
    for (const bad of [['--nonsense'], ['--listen'], ['stray']]) {
      const run = await runServer(bad);
      assert.ok(run.code > 0, `${bad}: ${run.code ?? run.signal}`);
      assert.ok(run.stderr.length > 0);
      assertCleanStderr(run.stderr);
    }
  });

  it('ends on SIGINT as on SIGTERM', async () => {
    const server = await start();
    process.kill(server.pid, 'SIGINT');
    await server.run.done;
    await server.stop();
  });

  it('listens on IPv6 loopback', async (t) => {
    const addresses = Object.values(os.networkInterfaces()).flat().map(({ address }) => address);
    if (!addresses.includes('::1')) return t.diagnostic('this machine has no IPv6 loopback: not tried');
    const server = await start({ wrap: ([program, , , ...rest]) => [program, '--listen', '[::1]:0', ...rest] });
    assert.equal(server.host, '::1');
    await server.createEvent();
    await server.stop();
  });
});
