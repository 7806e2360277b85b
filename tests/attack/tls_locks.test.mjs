// Locks over TLS: which certificates of an etcd and of Redis servers are trusted.  tests/attack/tls.test.mjs does the same
// for the lock service, tests/integration/test_lease_redis_tls.c for a single Redis.
// backends: own

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Authority } from '../support/certificates.mjs';
import { holdfast } from '../support/cli.mjs';
import { startEtcdTls } from '../support/etcd.mjs';
import { startRedis } from '../support/redis.mjs';
import { freePort, reap, removeTempDir, tempDir } from '../support/server.mjs';

let dir;
let authority;
let shown; // the files that every server shows
before(() => {
  dir = tempDir();
  authority = new Authority(dir);
  shown = authority.issue('shown');
});
after(async () => {
  await reap();
  removeTempDir(dir);
});

const SIGNS = {
  right: {},
  expired: { days: -1 },
  'for another name': { names: 'DNS:elsewhere.example' },
};
const REFUSAL = {
  expired: /certificate has expired/i,
  'for another name': /subject name|subjectAltName|hostname mismatch/i,
  'of an unknown authority': /unable to get local issuer|self[- ]signed|unable to get issuer/i,
};

// Asks for a lock at `url` while the servers show each kind of certificate; `show` has them read the files again.
async function tryAll(url, show) {
  const run = (where) => holdfast(where, ['run', 'name', '--timeout', '10s', '--', 'echo', 'held']);
  for (const [kind, options] of Object.entries(SIGNS)) {
    authority.issue('shown', options);
    await show();
    const { code, stdout, stderr } = await run(url);
    if (kind === 'right') {
      assert.equal(code, 0, stderr);
      assert.equal(stdout, 'held\n');
      const stranger = await run(url.replace(/[?&]cacert=[^&]*/, ''));
      assert.equal(stranger.code, 69, stranger.stdout);
      assert.match(stranger.stderr, REFUSAL['of an unknown authority']);
    } else {
      assert.equal(code, 69, stdout);
      assert.match(stderr, REFUSAL[kind]);
    }
  }
}

describe('locks', () => {
  it('etcds:// trusts a certificate of its authority, for its name, in its time, and no other', async () => {
    const etcd = await startEtcdTls(shown);
    await tryAll(`etcds://localhost:${etcd.port}?cacert=${authority.cert}`, () => {});
    await etcd.stop();
  });

  it('redlocks:// trusts a certificate of its authority, for its name, in its time, and no other', async () => {
    authority.issue('shown');
    const ports = [await freePort(), await freePort(), await freePort()];
    const servers = [];
    for (const port of ports) {
      servers.push(await startRedis('--tls-port', `${port}`, '--tls-cert-file', shown.cert, '--tls-key-file', shown.key,
        '--tls-ca-cert-file', authority.cert, '--tls-auth-clients', 'no'));
    }
    for (const server of servers) server.cli('SET', 'holdfast:redlock:vouched', '1', 'EX', '600');
    const hosts = ports.map((port) => `localhost:${port}`).join(',');
    await tryAll(`redlocks://${hosts}?max_ttl=60s&cacert=${authority.cert}`, () => {
      for (const server of servers) {
        assert.equal(server.cli('CONFIG', 'SET', 'tls-cert-file', shown.cert, 'tls-key-file', shown.key), 'OK');
      }
    });
    for (const server of servers) await server.stop();
  });
});
