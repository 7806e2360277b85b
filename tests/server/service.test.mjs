// holdfastd as a service: what it says at start, the file of its settings, reload at SIGHUP, and what it tells the
// service manager.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { notifySocket } from '../support/notify_socket.mjs';
import { environment, gone, HOLDFASTD, launch, patiently, pool, reap, removeTempDir, runServer, start, tempDir, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const [OLD, NEW, SELLER] = ['old-admin-key-0123456789', 'new-admin-key-0123456789', 'seller-key-0123456789'];
const bearer = (key) => ({ Authorization: `Bearer ${key}` });
const write = (file, text, mode = 0o600) => { fs.writeFileSync(file, text); fs.chmodSync(file, mode); };
const linesOf = (server, msg) => server.stderr.split('\n').filter((line) => line.includes(`msg="${msg}`));
// Resolves to the lines of a message, of which there is one at least: the log is another pipe than the line that `start` waits for.
const logged = (server, msg) => until(`it logs "${msg}"`, () => { const lines = linesOf(server, msg); return lines.length > 0 && lines; });
const hangUp = (server) => process.kill(server.pid, 'SIGHUP');

// Has the server reload; resolves to the line of its log that says how it went.
async function reload(server) {
  const find = () => [...linesOf(server, 'reloaded'), ...linesOf(server, 'reload failed')];
  const before = find().length;
  hangUp(server);
  await until('it has reloaded', () => find().length > before);
  return linesOf(server, 'reload').at(-1);
}

describe('the start', () => {
  after(reap);

  it('is one line of the log, without passwords', async () => {
    const server = await start({ args: ['--stream-listen', '127.0.0.1:0', '--http-threads', '3'], env: { HOLDFAST_SELLER_KEY: SELLER } });
    const { port } = await server.streams();
    const [line, ...more] = await logged(server, 'started');
    assert.deepEqual(more, []);
    assert.match(line, new RegExp('^ts=\\S+ level=info msg="started" version=\\d+\\.\\d+\\.\\d+ '
      + `listen=127\\.0\\.0\\.1:${server.port} streams=127\\.0\\.0\\.1:${port} ledger=sqlite:${server.dir}/holdfast\\.db gate=none payments=sandbox `
      + `journal=sqlite:${server.dir}/locks\\.db data=${server.dir} keys=admin:0,seller:1 threads=3$`));
    await server.stop();
    assert.ok(!server.logs.includes(SELLER));
  });

  it('shows the gate without its password', async () => {
    const shown = {};
    for (const url of ['redis://:geheim@127.0.0.1:1/3', 'redis://127.0.0.1:1']) {
      const server = await start({ env: { HOLDFAST_GATE: url } });
      [, shown[url]] = / gate=(\S+) payments=sandbox journal=\S+ data=\S+ keys=none /.exec((await logged(server, 'started'))[0]);
      await server.stop();
      assert.ok(!server.logs.includes('geheim'));
    }
    assert.deepEqual(shown, { 'redis://:geheim@127.0.0.1:1/3': 'redis://...@127.0.0.1:1/3', 'redis://127.0.0.1:1': 'redis://127.0.0.1:1' });
  });

  it('repeats no part of a password when the ledger cannot be opened', async () => {
    for (const url of ['postgres://me:geheim@127.0.0.1:1/x', 'postgres://127.0.0.1:1/x?password=geh@eim', 'postgres://me:geh/eim@127.0.0.1:1/x']) {
      const run = await runServer(['--listen', '127.0.0.1:0', '--data', tempDir()], { env: { HOLDFAST_LEDGER: url } });
      assert.notEqual(run.code, 0);
      assert.doesNotMatch(run.stderr, /geh|eim/);
    }
  });

  it('warns of HOLDFAST_ variables that nobody reads, and names the one that may have been meant', async () => {
    const env = { HOLDFAST_LISTN: '0.0.0.0:1', HOLDFAST_ADMIN_KEYFILE: '/secret', HOLDFAST_SHOP_COLOUR: 'blue', HOLDFAST_FENCE: '7', HOLDFAST_LOCK_URL: 'x:' };
    const server = await start({ env });
    await server.stop();
    const warned = linesOf({ stderr: server.logs }, 'an environment variable is not known').map((line) => / level=warn .* variable=(\S+) nearest=(\S+)$/.exec(line).slice(1));
    assert.deepEqual(Object.fromEntries(warned), {
      HOLDFAST_LISTN: 'HOLDFAST_LISTEN', HOLDFAST_ADMIN_KEYFILE: 'HOLDFAST_ADMIN_KEY_FILE', HOLDFAST_SHOP_COLOUR: '-',
    });
    assert.ok(!server.logs.includes('/secret'));
  });
});

describe('the file of settings', () => {
  after(reap);

  it('wins over the environment, and a flag over both', async () => {
    const dir = tempDir();
    const file = path.join(dir, 'env');
    write(file, '# settings\n\nHOLDFAST_REQUEST_LOG=1\nHOLDFAST_LOG_LEVEL = "warn"\nHOLDFAST_HTTP_THREADS=\'2\'\r\nHOLDFAST_QUEUE_MAX=');
    const server = await start({ args: ['--env-file', file, '--log-level', 'info'], env: { HOLDFAST_HTTP_THREADS: '1' } });
    await server.get('/healthz');
    await server.stop();
    assert.match(server.logs, / msg="started" .* threads=2\n/);
    assert.match(server.logs, / msg="request" /);
    removeTempDir(dir);
  });

  it('is refused with a reason if it is wrong, and never quoted', async () => {
    const dir = tempDir();
    const file = path.join(dir, 'env');
    const cases = [
      ['HOLDFAST_LISTN=geheim\n', 0o600, /line 1: there is no such variable; did you mean HOLDFAST_LISTEN/],
      ['\nPATH=geheim\n', 0o600, /line 2: there is no such variable/],
      ['HOLDFAST_ADMIN_KEY geheim\n', 0o600, /line 1: it is not NAME=VALUE/],
      [`HOLDFAST_ADMIN_KEY=${OLD}\nHOLDFAST_ADMIN_KEY=geheim\n`, 0o600, /line 2: this variable is set twice/],
      ['HOLDFAST_ADMIN_KEY=geheim geheim\n', 0o600, /HOLDFAST_ADMIN_KEY: an access key must be printable/],
      ['HOLDFAST_DEMO=geheim\n', 0o600, /HOLDFAST_DEMO must be 0 or 1/],
      ['HOLDFAST_DEMO=0\0geheim\n', 0o600, /it is not text/],
      ['HOLDFAST_DEMO=0\n', 0o644, /others than its owner may use it/],
    ];
    for (const [text, mode, expected] of cases) {
      write(file, text, mode);
      const run = await runServer(['--listen', '127.0.0.1:0', '--data', dir, '--env-file', file]);
      assert.ok(run.code > 0, text);
      assert.match(run.stderr, expected);
      assert.doesNotMatch(run.stderr, /geheim/);
    }
    const run = await runServer(['--env-file', path.join(dir, 'missing')]);
    assert.equal(run.code, 1);
    assert.match(run.stderr, /missing: No such file/);
    removeTempDir(dir);
  });
});

describe('SIGHUP', () => {
  after(reap);

  it('replaces the keys of the files, and drops no connection', async () => {
    const dir = tempDir();
    const file = path.join(dir, 'admin.keys');
    write(file, `${OLD}\n`);
    const server = await start({ args: ['--admin-key-file', file], env: { HOLDFAST_SELLER_KEY: SELLER } });
    const event = await server.createEvent({}, bearer(OLD));
    const stream = await Stream.open(server, event);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const ask = async (key) => (await server.request('GET', '/metrics', undefined, bearer(key), { agent })).status;
    assert.equal(await ask(OLD), 200);
    const [socket] = Object.values(agent.freeSockets).flat();

    write(file, `${OLD}\n# from next week on\n${NEW}\n`);
    assert.match(await reload(server), / level=info msg="reloaded" keys=admin:2,seller:1 log_level=info$/);
    for (const key of [OLD, NEW]) assert.equal(await ask(key), 200);

    write(file, `${NEW}\n`);
    assert.match(await reload(server), / keys=admin:1,seller:1 /);
    assert.equal(await ask(OLD), 401);
    assert.equal(await ask(NEW), 200);
    assert.equal(await ask(SELLER), 403);

    assert.deepEqual(Object.values(agent.freeSockets).flat(), [socket]);
    await server.grant(event, 'S-A-1');
    assert.ok(await stream.find(), 'the stream goes on');
    stream.close();
    agent.destroy();
    await server.stop();
    for (const key of [OLD, NEW, SELLER]) assert.ok(!server.logs.includes(key));
    removeTempDir(dir);
  });

  it('keeps the old keys and level if anything is wrong with the new, and says why', async () => {
    const dir = tempDir();
    const [file, env] = ['admin.keys', 'env'].map((name) => path.join(dir, name));
    const good = 'HOLDFAST_LOG_LEVEL=info\n';
    write(file, `${OLD}\n`);
    write(env, good);
    const server = await start({ args: ['--admin-key-file', file, '--env-file', env] });
    const cases = [
      [`${NEW}\nnot a key\n`, 0o600, good, /admin\.keys, line 2: an access key after a name must have 16 characters/],
      ['# none\n', 0o600, good, /admin\.keys: there is no key in it/],
      [`${NEW}\n`, 0o644, good, /admin\.keys: others than its owner may use it/],
      [null, 0o600, good, /admin\.keys: No such file/],
      [`${NEW}\n`, 0o600, `HOLDFAST_SELLER_KEY=${NEW}\n`, /the same access key is given for two scopes/],
      [`${NEW}\n`, 0o600, 'HOLDFAST_LOG_LEVEL=loud\n', /--log-level is debug/],
      [`${NEW}\n`, 0o600, 'HOLDFAST_LOG_LEVL=debug\n', /env, line 1: there is no such variable; did you mean HOLDFAST_LOG_LEVEL/],
      [`${NEW}\n`, 0o600, 'HOLDFAST_DEMO=2\n', /HOLDFAST_DEMO must be 0 or 1/],
    ];
    for (const [keys, mode, settings, why] of cases) {
      if (keys === null) fs.rmSync(file);
      else write(file, keys, mode);
      write(env, settings);
      const line = await reload(server);
      assert.match(line, / level=error msg="reload failed, keys and log level stay as they are" why=/);
      assert.match(line, why);
      assert.equal((await server.get('/metrics', bearer(OLD))).status, 200, line);
      assert.equal((await server.get('/metrics', bearer(NEW))).status, 401, line);
    }
    await server.stop();
    for (const secret of [OLD, NEW, 'not a key']) assert.ok(!server.logs.includes(secret));
    removeTempDir(dir);
  });

  it('takes the log level and keys of the file of settings, but a flag still wins', async () => {
    const dir = tempDir();
    const env = path.join(dir, 'env');
    write(env, `HOLDFAST_LOG_LEVEL=info\nHOLDFAST_ADMIN_KEY=${OLD}\n`);
    const server = await start({ args: ['--env-file', env, '--request-log'] });
    const flagged = await start({ args: ['--env-file', env, '--log-level', 'info'] });
    const requests = () => linesOf(server, 'request"').length;
    await server.get('/healthz');
    await until('the request is logged', () => requests() === 1);
    write(env, `HOLDFAST_LOG_LEVEL=error\nHOLDFAST_ADMIN_KEY=${NEW}\nHOLDFAST_LISTEN=127.0.0.1:1\n`);
    hangUp(server);
    await until('the new key counts', async () => (await server.get('/metrics', bearer(NEW))).status === 200);
    assert.equal((await server.get('/openapi.yaml')).status, 200); // a request as there was none before
    assert.match(await reload(flagged), /log_level=info$/);
    write(env, `HOLDFAST_LOG_LEVEL=debug\nHOLDFAST_ADMIN_KEY=${OLD}\n`);
    assert.match(await reload(server), /log_level=debug$/);
    assert.ok(!linesOf(server, 'request"').some((line) => line.includes(' route=/openapi.yaml ')), 'at level error no request is logged');
    await flagged.stop();
    await server.stop();
    removeTempDir(dir);
  });

  it('neither opens nor closes a server to callers without a key', async () => {
    const dir = tempDir();
    const env = path.join(dir, 'env');
    write(env, `HOLDFAST_ADMIN_KEY=${OLD}\n`);
    const keyed = await start({ args: ['--env-file', env] });
    write(env, '');
    assert.match(await reload(keyed), /cannot give up all of them/);
    assert.equal((await keyed.get('/metrics')).status, 401);
    const open = await start({ args: ['--env-file', env] });
    assert.match(await reload(open), / keys=none /);
    write(env, `HOLDFAST_ADMIN_KEY=${OLD}\n`);
    assert.match(await reload(open), /gets its first at a restart/);
    assert.equal((await open.get('/metrics')).status, 200);
    await keyed.stop();
    await open.stop();
    removeTempDir(dir);
  });

  it('under load fails no request, whichever key it has', async () => {
    const dir = tempDir();
    const file = path.join(dir, 'admin.keys');
    write(file, `${OLD}\n`);
    const server = await start({ args: ['--admin-key-file', file], env: { HOLDFAST_SELLER_KEY: SELLER } });
    const event = await server.createEvent({}, bearer(OLD));
    let done = false;
    const asking = pool(Array(600), 8, async () => assert.equal((await server.get(`/v1/events/${event.id}`, bearer(SELLER))).status, 200))
      .finally(() => { done = true; });
    for (let i = 0; !done; i++) {
      write(file, `${i % 2 ? OLD : NEW}\n`);
      assert.match(await reload(server), /msg="reloaded"/);
    }
    await asking;
    await server.stop();
    removeTempDir(dir);
  });

  it('stops a server whose terminal hung up', async () => {
    const dir = tempDir();
    const log = path.join(dir, 'log');
    const command = `echo $$ > ${dir}/pid; exec ${HOLDFASTD} --listen 127.0.0.1:0 --data ${dir} 2>${log}`;
    const terminal = launch('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'pipe'], env: environment({}, false) });
    await until('the server serves', () => terminal.stdout.includes('listening on'));
    const pid = Number(fs.readFileSync(path.join(dir, 'pid'), 'utf8'));
    terminal.child.kill('SIGKILL');
    await gone(pid);
    assert.match(fs.readFileSync(log, 'utf8'), /msg="draining" signal=HUP\n[^]*msg="stopped"/);
    removeTempDir(dir);
  });
});

describe('the service manager', () => {
  after(reap);

  it('hears when the server is ready, reloads and stops, at a path and at an abstract address', async () => {
    const dir = tempDir();
    for (const address of [path.join(dir, 'notify'), `@holdfast-test-${process.pid}`]) {
      const socket = await notifySocket(address);
      const server = await start({ env: { NOTIFY_SOCKET: address } });
      assert.equal(await socket.heard(/^READY=1$/), 0);
      assert.deepEqual(socket.messages[0], ['READY=1', `STATUS=Serving on http://127.0.0.1:${server.port}`]);
      hangUp(server);
      const reloading = await socket.heard(/^RELOADING=1$/);
      const [, usec] = /^MONOTONIC_USEC=(\d+)$/.exec(socket.messages[reloading][1]);
      const uptimeUs = Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1e6;
      assert.ok(Math.abs(Number(usec) - uptimeUs) < 60e6 || Number(usec) < uptimeUs, `${usec}, ${uptimeUs}`);
      assert.equal(await socket.heard(/^READY=1$/, reloading), reloading + 1);
      await server.stop();
      assert.deepEqual(socket.messages.at(-1), ['STOPPING=1', 'STATUS=Draining']);
      assert.equal(socket.count('WATCHDOG=1'), 0, 'nobody asked for it');
      await socket.close();
    }
    removeTempDir(dir);
  });

  it('does not hear that it is ready if it cannot start, and an address that is none is only a warning', async () => {
    const dir = tempDir();
    const socket = await notifySocket(path.join(dir, 'notify'));
    const run = await runServer(['--listen', '127.0.0.1:0', '--data', dir], { env: { NOTIFY_SOCKET: socket.address, HOLDFAST_LEDGER: 'postgres://127.0.0.1:1/x' } });
    assert.equal(run.code, 1);
    assert.deepEqual(socket.messages, []);
    await socket.close();
    for (const address of ['relative', `/${'x'.repeat(200)}`, path.join(dir, 'nobody-listens')]) {
      const server = await start({ env: { NOTIFY_SOCKET: address, WATCHDOG_USEC: '200000' } });
      await server.stop();
      assert.equal(linesOf({ stderr: server.logs }, 'the service manager cannot be told').length, address.startsWith(dir) ? 0 : 1);
    }
    removeTempDir(dir);
  });

  it('hears the watchdog also while proxies are given time to notice that the server leaves', async () => {
    const dir = tempDir();
    const socket = await notifySocket(path.join(dir, 'notify'));
    const server = await start({ args: ['--drain-delay', '5m'], env: { NOTIFY_SOCKET: socket.address, WATCHDOG_USEC: '400000' } });
    process.kill(server.pid, 'SIGTERM');
    const stopping = await socket.heard(/^STOPPING=1$/);
    await socket.heard(/^WATCHDOG=1$/, stopping);
    await server.stop(); // a second signal ends the wait
    await socket.close();
    removeTempDir(dir);
  });

  it('hears a watchdog only while the worker takes turns, and of nobody else\'s watchdog', async () => {
    const dir = tempDir();
    const socket = await notifySocket(path.join(dir, 'notify'));
    const env = { NOTIFY_SOCKET: socket.address, WATCHDOG_USEC: '400000' };
    const other = await start({ env: { ...env, WATCHDOG_PID: '1' } });
    await socket.heard(/^READY=1$/);
    const server = await start({ env });
    const event = await server.createEvent();
    await until('it has given several signs', () => socket.count('WATCHDOG=1') > 5);

    // Another process keeps the ledger locked: the worker cannot end its turn until its patience with that ends.
    const { child: locker } = launch('sqlite3', [server.database], { stdio: ['pipe', 'pipe', 'inherit'] });
    locker.stdin.write('BEGIN IMMEDIATE;\n.print locked\n');
    await new Promise((resolve) => { locker.stdout.once('data', resolve); });
    const answer = patiently(() => server.hold(event, 'S-A-1')); // the lock may be kept for too long if a machine stands still
    let [count, since] = [0, 0];
    await until('no sign has come for a second', () => {
      const now = socket.count('WATCHDOG=1');
      if (now !== count) [count, since] = [now, Date.now()];
      return Date.now() - since >= 1000;
    }, 4500);
    locker.stdin.end('ROLLBACK;\n');
    assert.equal((await answer).status, 201);
    await until('signs come again', () => socket.count('WATCHDOG=1') > count);
    await server.stop();
    const before = socket.count('WATCHDOG=1');
    hangUp(other);
    await socket.heard(/^RELOADING=1$/);
    await other.stop();
    assert.equal(socket.count('WATCHDOG=1'), before, 'the watchdog of process 1 is not ours');
    await socket.close();
    removeTempDir(dir);
  });
});
