// PostgreSQL and TLS: a cell of servers with TLS, and the ledger on a PostgreSQL with TLS.  On the way to another machine the server has to prove who it is, unless the
// URL says otherwise.  A name with an address of this machine (hostaddr) stands for another machine.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Authority } from '../support/certificates.mjs';
import { holdfast } from '../support/cli.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { freePort, reap, removeTempDir, runServer, Server, tempDir, tlsIdentity, until } from '../support/server.mjs';

const NAME = 'ledger.example';

let dir;
let authority;
let postgres;
before(async () => {
  dir = tempDir();
  authority = new Authority(dir);
  postgres = await startPostgres();
});
after(async () => {
  await postgres?.stop();
  await reap();
  removeTempDir(dir);
});

// From now on PostgreSQL shows this certificate; null: it has no TLS.
async function show(pair) {
  const set = (name, value) => postgres.sql('-c', `ALTER SYSTEM SET ${name} = '${value}'`);
  for (const [kind, mode] of pair ? [['cert', 0o644], ['key', 0o600]] : []) {
    const file = path.join(postgres.data, `shown.${kind}`);
    fs.rmSync(file, { force: true });
    fs.copyFileSync(pair[kind], file);
    fs.chmodSync(file, mode);
    const owner = fs.statSync(postgres.data);
    fs.chownSync(file, owner.uid, owner.gid);
    set(`ssl_${kind}_file`, file);
  }
  set('ssl', pair ? 'on' : 'off');
  const loaded = () => postgres.sql('-c', 'SELECT pg_conf_load_time()'); // of the server that starts sessions
  const before = loaded();
  postgres.sql('-c', 'SELECT pg_reload_conf()');
  await until('PostgreSQL has read its settings', () => loaded() !== before);
}

const url = (parameters = '', host = NAME) => `postgres://holdfast@${host}:${postgres.port}/postgres?hostaddr=127.0.0.1${parameters}`;
const trusts = () => `&sslrootcert=${authority.cert}`;

// What `holdfast` says about a lock in this database.
const ask = (where, env = {}) => holdfast(where, ['run', 'name', '--timeout', '10s', '--', 'echo', 'held'], { env });
async function held(where, env) {
  const { code, stdout, stderr } = await ask(where, env);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, 'held\n');
}
async function refused(where, pattern) {
  const { code, stdout, stderr } = await ask(where);
  assert.equal(code, 69, stdout);
  assert.match(stderr, pattern);
}
const ADVICE = /; set sslrootcert=FILE in the URL, or sslmode/;

describe('a cell of servers with TLS', () => {
  it('sends clients from its standby to its master by https, and gives them locks', async () => {
    await show(null);
    const journal = postgres.url(postgres.createDatabase());
    const servers = [];
    for (let i = 0; i < 2; i++) {
      const port = await freePort();
      servers.push(new Server({ tls: true, env: { HOLDFAST_GATE: '' }, args: ['--listen', `127.0.0.1:${port}`, '--advertise', `https://localhost:${port}`, '--pages', 'off',
        '--payments', 'off', '--journal', journal, '--journal-may-lose', '--cell-timeout', '10s'] }));
      await servers[i].launch();
    }
    const [first, standby] = servers;
    await until('the first is the master', async () => (await first.get('/v1/cell')).json.master?.url === `https://localhost:${first.port}`);
    const { cert } = tlsIdentity().authority;
    await until('the second knows it', async () => (await standby.post('/v1/sessions', {})).headers.location === `https://localhost:${first.port}/v1/sessions`);
    await held(`holdfasts://localhost:${standby.port}?cacert=${cert}`);
    const status = await holdfast(undefined, ['cell', 'status', '--server', `https://localhost:${standby.port}`, '--cacert', cert]);
    assert.equal(status.code, 0, status.stderr);
    assert.match(status.stdout, new RegExp(`https://localhost:${first.port}`));
    for (const server of servers) await server.stop();
  });
});

describe('PostgreSQL on another machine', () => {
  it('without TLS is refused, unless the URL allows it', async () => {
    await show(null);
    await refused(url(), /server does not support SSL, but SSL was required/);
    await refused(url(), ADVICE);
    await held(url('&sslmode=disable'));
    await held(url('&sslmode=prefer'));
    await held(url(), { PGSSLMODE: 'disable' });
    await held(url('', '127.0.0.1'));
    await held(url('', 'localhost'));
    await held(`postgres://holdfast@/postgres?host=${encodeURIComponent(postgres.dir)}&port=${postgres.port}`);
  });

  it('with the right certificate is used, over TLS', async () => {
    await show(authority.issue('right', { names: `DNS:${NAME}` }));
    await held(url(trusts()));
    const server = new Server({ ledger: url(trusts()), env: { HOLDFAST_GATE: '' }, tls: false });
    await server.launch();
    const event = await server.createEvent();
    await server.grant(event, 'S-A-1');
    const rows = postgres.sql('-c', "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'holdfast' AND NOT ssl");
    assert.equal(rows, '0');
    assert.notEqual(postgres.sql('-c', "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'holdfast' AND ssl"), '0');
    await server.stop();
  });

  it('of an authority that the machine does not trust is refused', async () => {
    await refused(url(), /certificate verify failed/);
    await refused(url(), ADVICE);
    await held(url('&sslmode=require')); // as it says itself
  });

  it('with a certificate that is for another name, or has expired, is refused', async () => {
    await show(authority.issue('other', { names: 'DNS:elsewhere.example' }));
    await refused(url(trusts()), /server certificate for "elsewhere\.example" .*does not match host name "ledger\.example"/);
    await show(authority.issue('old', { names: `DNS:${NAME}`, days: -1 }));
    await refused(url(trusts()), /certificate verify failed/);
  });

  it('is also refused at the start of a server, with a sentence', async () => {
    await show(null);
    const ended = await runServer(['--listen', '127.0.0.1:0', '--data', path.join(dir, 'data'), '--ledger', url()]);
    assert.equal(ended.code, 1, ended.stderr);
    assert.match(ended.stderr, /cannot open the ledger .*server does not support SSL, but SSL was required/);
    assert.match(ended.stderr, ADVICE);
  });
});
