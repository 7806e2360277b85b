// Signals: those that stop the server let it drain, and no other one ends it.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { reap, start, until } from '../support/server.mjs';

const IGNORED = ['PIPE', 'USR1', 'USR2', 'ALRM', 'VTALRM', 'PROF', 'IO', 'PWR', 'XCPU', 'XFSZ', 'STKFLT', '34', '41', '64'];
const HARMLESS = ['CHLD', 'CONT', 'URG', 'WINCH'];

// Sends a signal, also one that Node has no name for.  A bare Debian has no program `kill`.
const send = (pid, name) => execFileSync('bash', ['-c', 'kill "-$0" "$1"', name, String(pid)]);

describe('signals', () => {
  let server;
  before(async () => { server = await start({ args: ['--drain-delay', '10m'] }); });
  after(reap);

  it('that mean nothing to the server do nothing', async () => {
    const event = await server.createEvent();
    for (const name of [...IGNORED, ...HARMLESS]) {
      send(server.pid, name);
      const answer = await server.get(`/v1/events/${event.id}`);
      assert.equal(answer.status, 200, name);
      assert.equal(server.run.ended, null, name);
    }
    assert.equal((await server.get('/readyz')).status, 200);
  });

  it('QUIT finishes what was accepted and ends without the delay', async () => {
    const event = await server.createEvent();
    await server.grant(event, 'S-A-1');
    process.kill(server.pid, 'SIGQUIT');
    await until('it has ended', () => server.run.ended);
    assert.deepEqual(server.run.ended, { code: 0, signal: null });
    assert.match(server.stderr, /msg="draining" signal=QUIT\n(.*\n)*.*msg="stopped"\n$/);
    await server.stop({ keep: true });
    await server.launch();
    assert.equal((await server.map(event))['S-A-1'], 'h');
  });

  it('QUIT ends the delay that TERM began', async () => {
    process.kill(server.pid, 'SIGTERM');
    await until('it is not ready', async () => (await server.get('/readyz')).status === 503);
    process.kill(server.pid, 'SIGQUIT');
    await until('it has ended', () => server.run.ended);
    assert.deepEqual(server.run.ended, { code: 0, signal: null });
    await server.stop();
  });
});
