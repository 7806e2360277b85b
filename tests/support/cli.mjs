// The harness of the command's suites: `holdfast` on locks in a temporary SQLite file, or on a real
// Redis or PostgreSQL of the test's own.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import {
  assertCleanStderr, environment, HOLDFAST, launch, sleep, tempDir, until,
} from './server.mjs';

export const COMMAND_TIMEOUT_MS = 30_000;

// A coordinator in a file of its own.
export function sqliteLocks() {
  const dir = tempDir();
  return { dir, url: `sqlite:${path.join(dir, 'locks.db')}`, file: (name) => path.join(dir, name) };
}

// Starts `holdfast ARGS`; `url` is handed over in the environment.
export function begin(url, args, { env = {}, leaks = false, input, wrap = (argv) => argv } = {}) {
  const where = url === undefined ? {} : { HOLDFAST_LOCK_URL: url };
  const full = environment({ ...where, ...env }, leaks);
  if (url === undefined) delete full.HOLDFAST_LOCK_URL;
  const [command, ...rest] = wrap([HOLDFAST, ...args]);
  const run = launch(command, rest, { env: full, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
  run.began = performance.now();
  if (input !== undefined && input !== null) run.child.stdin.end(input);
  const timer = setTimeout(() => run.child.kill('SIGKILL'), COMMAND_TIMEOUT_MS);
  run.result = run.done.then(({ code, signal }) => {
    clearTimeout(timer);
    assertCleanStderr(run.stderr);
    return { code, signal, stdout: run.stdout, stderr: run.stderr, ms: performance.now() - run.began };
  });
  run.result.catch(() => {});
  return run;
}

// Runs it to its end.
export const holdfast = (url, args, options) => begin(url, args, options).result;
export const run = (url, args, options) => holdfast(url, ['run', ...args], options);
export async function json(url, args) {
  const { code, stdout, stderr } = await holdfast(url, [...args, '--json']);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

// A run whose command has begun: resolves when it has printed "begun", which it does after a trap at
// the start of `script`.
export async function beginRun(url, args, script, options) {
  const [, trap, rest] = script.match(/^(trap (?:'[^']*'|"[^"]*") \w+; )?(.*)$/s);
  const wrapper = begin(url, ['run', ...args, '--', 'sh', '-c', `${trap ?? ''}echo begun $$; ${rest}`], options);
  await until('the command begins', () => /^begun \d+\n/.test(wrapper.stdout) || wrapper.ended, 10_000);
  assert.equal(wrapper.ended, null, wrapper.stderr);
  wrapper.commandPid = Number(wrapper.stdout.match(/^begun (\d+)/)[1]);
  return wrapper;
}

// Seconds since boot, the clock of deadlines, to 10 ms.
export const uptimeMs = () => Number(fs.readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000;
// Shell that writes such a time into a file again and again, for as long as it lives.
export const heartbeat = (file) => `while :; do cut -d' ' -f1 /proc/uptime >>${file}; sleep 0.02; done`;
export const lastHeartbeatMs = (file) => Number(fs.readFileSync(file, 'utf8').trim().split('\n').at(-1)) * 1000;

// Not there, or dead and not yet waited for by whoever inherited it.
export function isGone(pid) {
  try {
    return /^State:\s+[ZX]/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return true;
  }
}
export const gone = (pid, timeoutMs) => until(`process ${pid} is gone`, () => isGone(pid), timeoutMs);

// ---- servers of others ----

export async function freePort() {
  const probe = net.createServer();
  await new Promise((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

export async function startRedis(...args) {
  const dir = tempDir();
  const port = await freePort();
  const socket = path.join(dir, 'socket');
  let server;
  const start = async () => {
    server = launch('redis-server', ['--bind', '127.0.0.1', '--port', `${port}`, '--unixsocket', socket, '--save', '',
      '--appendonly', 'no', '--dir', dir, ...args]);
    await until('Redis answers', () => /Ready to accept connections/.test(server.stdout), 10_000);
  };
  await start();
  return {
    port, socket, url: `redis://127.0.0.1:${port}`,
    cli: (...words) => execFileSync('redis-cli', ['-p', `${port}`, ...words], { encoding: 'utf8' }).trim(),
    stop: async () => { server.child.kill('SIGKILL'); await server.done; },
    again: start, // on the same port, with what is on disk
  };
}

function postgresBin() {
  const home = '/usr/lib/postgresql';
  const versions = fs.existsSync(home) ? fs.readdirSync(home).sort((a, b) => Number(b) - Number(a)) : [];
  const version = versions.find((v) => fs.existsSync(`${home}/${v}/bin/postgres`));
  return version ? `${home}/${version}/bin` : execFileSync('pg_config', ['--bindir'], { encoding: 'utf8' }).trim();
}

// PostgreSQL refuses to run as root, so root becomes its packaged user for it.
export async function startPostgres() {
  const bin = postgresBin();
  const root = process.getuid() === 0;
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  const ids = root ? { uid: id('-u'), gid: id('-g') } : {};
  const dir = tempDir();
  if (root) fs.chownSync(dir, ids.uid, ids.gid);
  const data = path.join(dir, 'data');
  execFileSync(path.join(bin, 'initdb'), ['-D', data, '-U', 'test', '-A', 'trust', '--no-sync'],
    { cwd: dir, stdio: 'ignore', ...ids });
  const server = launch(path.join(bin, 'postgres'), ['-D', data, '-k', dir, '-c', 'listen_addresses=',
    '-c', 'fsync=off', '-c', 'shared_buffers=16MB'], { cwd: dir, ...ids });
  const client = ['psql', '-h', dir, '-U', 'test', '-d', 'postgres', '-qAtX', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose'];
  const sql = (...args) => execFileSync(client[0], [...client.slice(1), ...args],
    { encoding: 'utf8', timeout: 20_000, stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  await until('PostgreSQL answers', () => {
    try { return sql('-c', 'SELECT 1') === '1'; } catch { return false; }
  }, 20_000, 50);
  return {
    pid: server.pid, client, sql,
    stop: async () => { server.child.kill('SIGINT'); await server.done; },
  };
}

export { sleep, until };
