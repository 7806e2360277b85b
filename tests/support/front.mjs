// HAProxy or nginx in front of servers, with the configuration that is shipped in share/holdfast.  Only addresses,
// ports, certificates, log files and the pace of health checks are replaced.
//
//   const front = await startFront('haproxy', [one, two]);
//   await front.hold(event, 'S-A-1');
//   await front.stop();

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { freePort, launch, tempDir, until } from './process.mjs';
import { Remote } from './server.mjs';

const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;
const CHECK_EVERY_MS = 200;
const CHECK_TIMEOUT_S = 5;
const shipped = (name) => fs.readFileSync(new URL(`../../share/holdfast/${name}`, import.meta.url), 'utf8');

const KINDS = {
  haproxy: {
    file: 'haproxy.cfg',
    fit: (text, { port, certificate }) => text
      .replace(/^ {4}bind .*$/m, certificate ? `    bind 127.0.0.1:${port} ssl crt ${certificate} alpn h2,http/1.1` : `    bind 127.0.0.1:${port}`)
      .replace('inter 1s', `inter ${CHECK_EVERY_MS}ms`)
      // Without this a check fails that is not answered before the next one is due, as on a busy machine.
      .replace(/^ {4}timeout connect .*$/m, `$&\n    timeout check ${CHECK_TIMEOUT_S}s`),
    check: (file) => ['haproxy', '-c', '-q', '-f', file],
    run: (file) => ['sh', '-c', 'ulimit -n 4096 && exec haproxy -db -f "$1"', 'sh', file], // it starts whatever the limit of open files is
    log: (front) => front.run.stdout,
  },
  nginx: {
    file: 'nginx.conf',
    fit(text, { port, certificate, dir }) {
      const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${dir}/${kind};`).join('\n');
      const listens = certificate ? text.replace('listen 443', `listen 127.0.0.1:${port}`).replaceAll(/\S*tickets\.example\.(pem|key)/g, certificate)
        : text.replace('listen 443 ssl http2', `listen 127.0.0.1:${port}`).replaceAll(/^.*ssl_certificate.*\n/gm, '');
      return `daemon off;\nmaster_process off;\npid ${dir}/nginx.pid;\nerror_log ${dir}/nginx.err;\nevents {}\nhttp {\n${temp}\n`
        + `${listens.replaceAll('/var/log/nginx', dir)}}\n`;
    },
    check: (file) => ['nginx', '-t', '-q', '-c', file],
    run: (file) => ['nginx', '-c', file],
    log: (front) => fs.readFileSync(path.join(front.dir, 'holdfast.log'), 'utf8'),
  },
};

// Puts the addresses of the servers in the place of the three of the example; lines of others are left out.
function withServers(text, servers) {
  return text.replaceAll(/^ *server .*10\.0\.0\.1(\d):8080.*\n/gm, (line, n) => {
    const server = servers[n - 1];
    return server ? line.replace(/10\.0\.0\.1\d:8080/, `127.0.0.1:${server.port}`) : '';
  });
}

// Options: certificate (a PEM file with a key, for TLS), edit(text) -> text, a change to the configuration.
export async function startFront(kind, servers, { certificate, edit = (text) => text } = {}) {
  const front = new Front(kind, await freePort(), certificate);
  front.write(edit(withServers(shipped(KINDS[kind].file), servers)));
  await front.launch();
  return front;
}

class Front extends Remote {
  constructor(kind, port, certificate) {
    super({ host: '127.0.0.1', port });
    this.kind = KINDS[kind];
    this.certificate = certificate;
    this.dir = tempDir();
    fs.chmodSync(this.dir, 0o755);
    this.file = path.join(this.dir, this.kind.file);
  }

  get log() { return this.kind.log(this); }

  write(text) { fs.writeFileSync(this.file, this.kind.fit(text, this)); }

  async launch() {
    const [check, ...words] = this.kind.check(this.file);
    this.said = execFileSync('sh', ['-c', '"$@" 2>&1', 'sh', check, ...words], { encoding: 'utf8', env: { ...process.env, PATH } });
    const [program, ...args] = this.kind.run(this.file);
    this.run = launch(program, args, { env: { ...process.env, PATH } });
    if (this.certificate) return; // the caller has the means to ask it
    await until('the proxy serves', async () => this.run.ended || (await this.get('/healthz').catch(() => null))?.status === 200, 120_000, 50);
    assert.equal(this.run.ended, null, this.run.stderr);
  }

  async stop() {
    this.agent.destroy();
    if (this.run.ended) return;
    this.run.child.kill('SIGTERM');
    await this.run.done;
  }
}
