// `--metrics-listen` of `holdfast run` and `holdfast elect`: metrics over HTTP while the process runs.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import { after, describe, it } from 'node:test';
import { begin, beginRun, freePort, json, PATIENCE, run, sqliteLocks, until } from '../support/cli.mjs';
import { parseMetrics, reap } from '../support/server.mjs';

const locks = sqliteLocks();
const { url } = locks;

after(reap);

async function scrape(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
  const text = await answer.text();
  const samples = parseMetrics(text);
  for (const { name } of samples) assert.match(text, new RegExp(`^# TYPE (${name} (gauge|counter)|${name.replace(/_(bucket|sum|count)$/, '')} histogram)$`, 'm'));
  return (metric, lock) => samples.find(({ name, labels }) => name === `holdfast_lock_${metric}` && (!lock || labels.name === lock))?.value;
}

describe('--metrics-listen', { concurrency: 2 }, () => {
  it('shows the wait, then the grant, its fence and its deadline', async () => {
    const port = await freePort();
    const holder = await beginRun(url, ['live/b'], 'read line', { input: null });
    const before = Date.now() / 1000;
    const waiter = begin(url, ['run', ...PATIENCE, '--metrics-listen', `127.0.0.1:${port}`, '--ttl', '20s', 'live/b', 'live/a', '--', 'sh', '-c', 'echo begun; read line'], { input: null });
    await until('it waits', async () => (await json(url, ['lock', 'show', 'live/b'])).waiters.length === 1);
    let of = await scrape(port);
    assert.deepEqual([of('held', 'live/b'), of('waiting', 'live/b'), of('fence', 'live/b')], [0, 1, 0]);
    assert.ok(of('since_timestamp_seconds', 'live/b') >= before - 1);
    holder.child.stdin.end('\n');
    await until('it runs', () => waiter.stdout === 'begun\n');
    of = await scrape(port);
    for (const name of ['live/a', 'live/b']) {
      assert.deepEqual([of('held', name), of('waiting', name)], [1, 0]);
      assert.equal(of('fence', name), (await json(url, ['lock', 'show', name])).last_fence);
      assert.ok(of('remaining_seconds', name) > 1 && of('remaining_seconds', name) <= 20);
    }
    assert.deepEqual([of('granted_total'), of('waits_total'), of('lost_total')], [2, 1, 0]);
    assert.ok(of('wait_seconds_total') > 0);
    assert.equal(of('acquire_seconds_count'), 2);
    assert.ok(of('acquire_seconds_sum') >= of('wait_seconds_total'));
    waiter.child.stdin.end('\n');
    assert.equal((await waiter.result).code, 0);
    await assert.rejects(fetch(`http://127.0.0.1:${port}/metrics`), 'it ends with the process');
  });

  it('shows the terms of elect', async () => {
    const port = await freePort();
    const candidate = begin(url, ['elect', ...PATIENCE, '--metrics-listen', `${port}`, '--pause', '50ms', 'terms', '--', 'true']);
    await until('three terms', async () => {
      try { return (await scrape(port))('granted_total') >= 3; } catch { return false; }
    });
    candidate.child.kill('SIGTERM');
    await candidate.result;
  });

  it('listens on loopback unless it is told otherwise, and the command does not inherit the socket', async () => {
    const port = await freePort();
    const listen = ['--metrics-listen', `:${port}`];
    const { stdout } = await run(url, [...listen, 'where', '--', 'grep', '-h', ' 0A ', '/proc/net/tcp', '/proc/net/tcp6']);
    const listening = [...stdout.matchAll(/^ *\d+: ([0-9A-F]+):([0-9A-F]{4}) /gm)];
    const addresses = listening.filter(([, , hex]) => parseInt(hex, 16) === port).map(([, address]) => address);
    assert.ok(['0100007F', '7F000001'].includes(addresses.join()), `${addresses}`);
    const files = async (options) => (await run(url, [...options, 'where', '--', 'ls', '/proc/self/fd'])).stdout;
    assert.equal(await files(listen), await files([]));
  });

  it('serves a socket in the file system, replaces a stale one and removes its own', async () => {
    const socket = locks.file('metrics.sock');
    const stale = net.createServer().listen(socket);
    await until('it listens', () => stale.listening);
    const occupied = await run(url, ['--metrics-listen', socket, 'socket', '--', 'sh', '-c', 'exit 3']);
    assert.equal(occupied.code, 3, 'the command runs all the same');
    assert.match(occupied.stderr, /cannot listen on .*metrics\.sock: Address already in use/);
    const child = `require('net').createServer().listen(${JSON.stringify(`${socket}2`)}, () => process.kill(process.pid, 'SIGKILL'))`;
    assert.throws(() => execFileSync(process.execPath, ['-e', child], { stdio: 'ignore' }));
    assert.ok(fs.existsSync(`${socket}2`), 'a socket that its process has left behind');
    const { stdout, stderr } = await run(url, ['--metrics-listen', `${socket}2`, 'socket', '--', 'curl', '-s', '--unix-socket', `${socket}2`, 'http://x/metrics']);
    assert.match(stdout, /^holdfast_lock_held\{name="socket"\} 1$/m, stderr);
    assert.ok(!fs.existsSync(`${socket}2`));
    stale.close();
  });

  it('answers other paths with 404, other methods with 405, and lets no client hold it up', async () => {
    const port = await freePort();
    const holder = await beginRun(url, ['--metrics-listen', `127.0.0.1:${port}`, 'odd'], 'read line', { input: null });
    const status = async (path, method = 'GET') => (await fetch(`http://127.0.0.1:${port}${path}`, { method })).status;
    assert.deepEqual([await status('/'), await status('/metricsx'), await status('/metrics?x=1'), await status('/metrics', 'POST'),
      await status('/metrics', 'HEAD')], [404, 404, 200, 405, 200]);
    const silent = net.connect(port, '127.0.0.1');
    silent.on('error', () => {});
    const long = net.connect(port, '127.0.0.1');
    long.on('error', () => {});
    long.write('x'.repeat(20_000));
    await until('both are connected', () => !silent.connecting && !long.connecting);
    const of = await scrape(port);
    assert.equal(of('held', 'odd'), 1);
    silent.destroy();
    long.destroy();
    holder.child.stdin.end('\n');
    assert.equal((await holder.result).code, 0);
  });

  it('refuses an address that is none with 64, and runs without one that is in use', async () => {
    for (const address of ['nowhere', '127.0.0.1:99999', `/${'x'.repeat(200)}`, '']) {
      assert.equal((await run(url, ['--metrics-listen', address, 'bad', '--', 'true'])).code, 64, address);
    }
    const server = net.createServer().listen(0, '127.0.0.1');
    await until('it listens', () => server.listening);
    const { code, stderr } = await run(url, ['--metrics-listen', `127.0.0.1:${server.address().port}`, 'busy', '--', 'sh', '-c', 'exit 4']);
    assert.equal(code, 4);
    assert.match(stderr, /--metrics-listen: cannot listen on 127\.0\.0\.1:\d+: Address already in use/);
    server.close();
  });
});
