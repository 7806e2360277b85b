// A real PostgreSQL for one test file, on a free port and on a socket in its directory, with the user `holdfast` and no
// password.  Each server or test gets a fresh database.
//
// Commits do not wait for the disk unless `durable` is set: the kernel keeps what a killed process has
// written, and no test here cuts the power.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { freePort, launchServer, launchServerIn, SERVER, tempDir, until } from './process.mjs';

export const postgresBin = () => execFileSync(SERVER, ['postgres-bin'], { encoding: 'utf8' }).trim();

// Options: args (additional arguments of the server, such as `-c name=value`), durable, env.
export async function startPostgres({ args = [], durable = false, env = {} } = {}) {
  const postgres = new Postgres(await freePort(), args, durable);
  postgres.env = env;
  await postgres.start();
  return postgres;
}

// Returns the rows of a query on the database at that URL, as objects.
export function psqlQuery(url, text) {
  return JSON.parse(execFileSync('psql', [url, '-qAtX', '-v', 'ON_ERROR_STOP=1', '-c',
    `SELECT coalesce(json_agg(t), '[]') FROM (${text.trim().replace(/;$/, '')}) t`],
  { encoding: 'utf8', timeout: 60_000, maxBuffer: 256 << 20, stdio: ['ignore', 'pipe', 'pipe'] }));
}

// Starts a PgBouncer that pools sessions in front of the PostgreSQL at this port.
export async function startPgbouncer(port) {
  const dir = tempDir(), listen = await freePort(), ini = path.join(dir, 'pgbouncer.ini'), log = path.join(dir, 'log');
  fs.writeFileSync(ini, `[databases]\n* = host=127.0.0.1 port=${port} user=holdfast\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${listen}
unix_socket_dir =\nauth_type = any\npool_mode = session\ndefault_pool_size = 40\nserver_login_retry = 0\nlogfile = ${log}\n`);
  const run = launchServer('postgres-tool', dir, '/usr/sbin/pgbouncer', '-q', ini);
  await until('PgBouncer listens', () => {
    if (run.ended) throw new Error(`PgBouncer ended at start:\n${run.stderr}`);
    return fs.existsSync(log) && / listening on /.test(fs.readFileSync(log, 'utf8'));
  });
  return { port: listen, stop: async () => { run.child.kill('SIGKILL'); await run.done; } };
}

export class Postgres {
  #databases = 0;

  constructor(port, args, durable) {
    this.port = port;
    this.args = args;
    this.durable = durable;
    this.env = {};
    this.dir = tempDir();
    this.data = path.join(this.dir, 'data');
    this.client = ['psql', '-h', this.dir, '-p', `${port}`, '-U', 'holdfast', '-d', 'postgres', '-qAtX',
      '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose'];
  }

  get pid() { return this.run.pid; }
  url(database = 'postgres') { return `postgres://holdfast@127.0.0.1:${this.port}/${database}`; }

  async start() {
    this.run = launchServerIn(this.env, 'postgres', this.dir, this.port, ...(this.durable ? ['-c', 'fsync=on'] : []), ...this.args);
    await until('PostgreSQL answers', () => {
      if (this.run.ended) throw new Error(`PostgreSQL ended at start:\n${this.run.stderr}`);
      return this.#isReady();
    }, 120_000, 20);
  }

  // As the server itself notes: its pid, and in the eighth line whether it takes connections.
  #isReady() {
    try {
      const lines = fs.readFileSync(path.join(this.data, 'postmaster.pid'), 'utf8').split('\n');
      return Number(lines[0]) === this.pid && lines[7]?.trim() === 'ready';
    } catch { return false; }
  }

  // Stops it cleanly; SIGINT ends every session.
  async stop() { await this.#end('SIGINT'); }
  // Stops it as a crash does (SIGQUIT); the next start recovers.
  async crash() { await this.#end('SIGQUIT'); }
  async restart() { await this.stop(); await this.start(); }

  async #end(signal) {
    if (this.run.ended) return;
    this.run.child.kill(signal);
    await this.run.done;
  }

  // Runs psql with these arguments (-d names another database); returns what it prints.
  sql(...args) {
    return execFileSync(this.client[0], [...this.client.slice(1), ...args],
      { encoding: 'utf8', timeout: 60_000, maxBuffer: 256 << 20, stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  }

  // Returns the rows of a query as objects.
  query(database, text) { return psqlQuery(this.url(database), text); }

  // Creates an empty database; returns its name.
  createDatabase() {
    const name = `test_${++this.#databases}`;
    this.sql('-c', `CREATE DATABASE ${name}`);
    return name;
  }

  // Ends sessions on a database as an administrator does; `where` is a condition on pg_stat_activity.
  // Returns the number of sessions.
  terminateBackends(database, where = 'true') {
    return Number(this.sql('-c', `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      WHERE datname = '${database}' AND pid <> pg_backend_pid() AND ${where}`));
  }

  // Starts a streaming standby of this server.  With `synchronous`, commits wait for it from now on.
  async standby({ synchronous = true } = {}) {
    const standby = new Postgres(await freePort(), this.args, this.durable);
    execFileSync(SERVER, ['postgres-tool', standby.dir, 'pg_basebackup', '-h', this.dir, '-p', `${this.port}`, '-U', 'holdfast', '-D', standby.data,
      '-R', '-X', 'stream', '-c', 'fast', '--no-sync'], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 });
    await standby.start();
    await until('the standby streams', () => this.sql('-c', "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") === '1', 120_000);
    if (synchronous) {
      this.sql('-c', "ALTER SYSTEM SET synchronous_standby_names = '*'");
      this.sql('-c', 'SELECT pg_reload_conf()');
      await until('the standby is synchronous', () => this.sql('-c', "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") === '1', 120_000);
    }
    return standby;
  }

  // Promotes this standby to primary.
  promote() {
    this.sql('-c', "ALTER SYSTEM SET synchronous_standby_names = ''");
    this.sql('-c', 'SELECT pg_reload_conf()');
    this.sql('-c', 'SELECT pg_promote(true, 30)');
  }
}
