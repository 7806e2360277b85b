// A real PostgreSQL for one test file, on a free port and on a socket in its directory, with the user `test`
// and no password.  Each server or test gets a fresh database.  Its data directory is a copy of one that initdb makes once
// per build, in build/.
//
// Commits do not wait for the disk unless `durable` is set: the kernel keeps what a killed process has
// written, and no test here cuts the power.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, launch, tempDir, until } from './process.mjs';

const BUILD = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../build');

export function postgresBin() {
  const home = '/usr/lib/postgresql';
  const versions = fs.existsSync(home) ? fs.readdirSync(home).sort((a, b) => Number(b) - Number(a)) : [];
  const version = versions.find((v) => fs.existsSync(`${home}/${v}/bin/postgres`));
  return version ? `${home}/${version}/bin` : execFileSync('pg_config', ['--bindir'], { encoding: 'utf8' }).trim();
}

// PostgreSQL refuses to run as root, so root starts it as the user of the package.
function postgresIds() {
  if (process.getuid() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

// Options: args (additional arguments of the server, such as `-c name=value`), durable, env.
export async function startPostgres({ args = [], durable = false, env = process.env } = {}) {
  const postgres = new Postgres(await freePort(), args, durable);
  postgres.env = env;
  postgres.initialise();
  await postgres.start();
  return postgres;
}

// Returns the rows of a query on the database at that URL, as objects.
export function psqlQuery(url, text) {
  return JSON.parse(execFileSync('psql', [url, '-qAtX', '-v', 'ON_ERROR_STOP=1', '-c',
    `SELECT coalesce(json_agg(t), '[]') FROM (${text.trim().replace(/;$/, '')}) t`],
  { encoding: 'utf8', timeout: 60_000, maxBuffer: 256 << 20, stdio: ['ignore', 'pipe', 'pipe'] }));
}

export class Postgres {
  #databases = 0;

  constructor(port, args, durable) {
    this.port = port;
    this.args = args;
    this.durable = durable;
    this.bin = postgresBin();
    this.ids = postgresIds();
    this.dir = tempDir();
    if (this.ids.uid !== undefined) fs.chownSync(this.dir, this.ids.uid, this.ids.gid);
    this.data = path.join(this.dir, 'data');
    this.client = ['psql', '-h', this.dir, '-p', `${port}`, '-U', 'test', '-d', 'postgres', '-qAtX',
      '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose'];
  }

  get pid() { return this.run.pid; }
  url(database = 'postgres') { return `postgres://test@127.0.0.1:${this.port}/${database}`; }

  #tool(name, ...args) {
    return execFileSync(path.join(this.bin, name), args,
      { cwd: this.dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000, ...this.ids });
  }

  initialise() {
    const version = this.#tool('postgres', '--version').trim().replace(/[^\w.]+/g, '-');
    const template = path.join(BUILD, `${version}-${this.ids.uid ?? process.getuid()}`);
    const copy = (from, to) => execFileSync('cp', ['-a', from, to], { timeout: 60_000 });
    if (fs.existsSync(template)) return copy(template, this.data);
    this.#tool('initdb', '-D', this.data, '-U', 'test', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync');
    const draft = `${template}-${process.pid}`;
    fs.rmSync(draft, { recursive: true, force: true }); // of a process of the same id that was stopped here
    copy(this.data, draft);
    try { fs.renameSync(draft, template); } catch { fs.rmSync(draft, { recursive: true }); } // another process was first
  }

  async start() {
    const settings = ['listen_addresses=127.0.0.1', `port=${this.port}`, `unix_socket_directories=${this.dir}`,
      'shared_buffers=32MB', 'max_connections=300', 'dynamic_shared_memory_type=mmap', ...(this.durable ? [] : ['fsync=off'])];
    // SIGQUIT ends it at once, and unlike SIGKILL also its children and its shared memory.
    this.run = launch(path.join(this.bin, 'postgres'), ['-D', this.data, ...settings.flatMap((s) => ['-c', s]), ...this.args],
      { cwd: this.dir, env: this.env, endSignal: 'SIGQUIT', ...this.ids });
    await until('PostgreSQL answers', () => {
      if (this.run.ended) throw new Error(`PostgreSQL ended at start:\n${this.run.stderr}`);
      try { return this.sql('-c', 'SELECT 1') === '1'; } catch { return false; }
    }, 120_000, 50);
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
    this.#tool('pg_basebackup', '-h', this.dir, '-p', `${this.port}`, '-U', 'test', '-D', standby.data,
      '-R', '-X', 'stream', '-c', 'fast', '--no-sync');
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
