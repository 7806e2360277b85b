// The proxy configurations in the documents: HAProxy and nginx accept them, and they do what the documents
// say.  Only addresses, ports, certificates and log files are replaced.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { freePort, launch, reap, start, tempDir, until } from '../support/server.mjs';

const PATH = `${process.env.PATH}:/usr/sbin:/sbin`;
const docs = ['scaling', 'operations'];
const example = (doc, language) => {
  const text = fs.readFileSync(new URL(`../../docs/${doc}.md`, import.meta.url), 'utf8');
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(([, block]) => block);
  assert.equal(blocks.length, 1, `${doc}.md has one ${language} example`);
  return blocks[0];
};

const dir = tempDir();
fs.chmodSync(dir, 0o755);
const certificate = path.join(dir, 'both.pem');

before(() => {
  const [key, cert] = [path.join(dir, 'key.pem'), path.join(dir, 'cert.pem')];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=tickets.example', '-keyout', key, '-out', cert], { stdio: 'ignore' });
  fs.writeFileSync(certificate, fs.readFileSync(cert, 'utf8') + fs.readFileSync(key, 'utf8'));
});
after(reap);

// Returns the example with this machine's addresses, ports and files.
function fit(text, { server, port }) {
  return text
    .replaceAll(/(?:10\.0\.0\.1\d|127\.0\.0\.1):8080/g, `127.0.0.1:${server.port}`)
    .replaceAll(/\S*tickets\.example\.(pem|key)/g, certificate)
    .replace(/maxconn \d+/, 'maxconn 100') // within this machine's limit of open files
    .replace('bind :443', `bind 127.0.0.1:${port}`)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replaceAll('/var/log/nginx', dir);
}

const PROXIES = {
  haproxy: {
    write(text, name) {
      const file = path.join(dir, `${name}.cfg`);
      fs.writeFileSync(file, text);
      return file;
    },
    check: (file) => ['haproxy', '-c', '-q', '-f', file],
    run: (file) => ['haproxy', '-db', '-f', file],
    log: (proxy) => proxy.stdout,
  },
  nginx: {
    write(text, name) {
      const file = path.join(dir, `${name}.conf`);
      const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${dir}/${kind};`).join('\n');
      fs.writeFileSync(file, `daemon off;\nmaster_process off;\npid ${dir}/nginx.pid;\nerror_log ${dir}/nginx.err;\nevents {}\nhttp {\n${temp}\n${text}}\n`);
      return file;
    },
    check: (file) => ['nginx', '-t', '-q', '-c', file],
    run: (file) => ['nginx', '-c', file],
    log: () => fs.readFileSync(path.join(dir, 'holdfast.log'), 'utf8'),
  },
};

// Makes a request as a buyer from an address that no server trusts.
function request(port, method, target, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const req = https.request({ host: '127.0.0.1', port, method, path: target, rejectUnauthorized: false, agent: false, headers, localAddress: '127.0.0.2' }, (res) => {
      let text = '';
      const answer = () => resolve({ status: res.statusCode, headers: res.headers, get text() { return text; }, close: () => req.destroy() });
      res.on('data', (data) => { text += data; });
      res.on('error', () => {});
      if (/event-stream/.test(res.headers['content-type'])) answer();
      else res.on('end', answer);
    });
    req.on('error', reject);
    req.end(body && JSON.stringify(body));
  });
}

for (const doc of docs) {
  for (const [kind, proxy] of Object.entries(PROXIES)) {
    describe(`${kind} as docs/${doc}.md has it`, () => {
      let server, running, port;
      before(async () => {
        server = await start({ args: ['--trusted-proxy', '127.0.0.1', '--request-log'], env: { HOLDFAST_ADMIN_KEY: 'a'.repeat(20), HOLDFAST_PUBLIC_SEATS_MAX: '2' } });
        port = await freePort();
      });
      after(async () => {
        if (running && !running.ended) { running.child.kill('SIGTERM'); await running.done; }
        await server?.stop();
      });

      it('is accepted, routes requests and streams, tells addresses apart and logs no secret', async () => {
        const file = proxy.write(fit(example(doc, kind), { server, port }), `${kind}-${doc}`);
        const [command, ...args] = proxy.check(file);
        const said = execFileSync('sh', ['-c', '"$@" 2>&1', 'sh', command, ...args], { encoding: 'utf8', env: { ...process.env, PATH } });
        if (kind === 'haproxy') assert.equal(said, '', 'not even a warning'); // a newer nginx warns about renamed directives
        const [program, ...rest] = proxy.run(file);
        running = launch(program, rest, { env: { ...process.env, PATH } });
        await until('it serves', async () => (await request(port, 'GET', '/readyz').catch(() => null))?.status === 200 || running.ended, 10_000, 50);
        assert.equal(running.ended, null, running.stderr);

        const event = await server.createEvent({}, { Authorization: `Bearer ${'a'.repeat(20)}` });
        const stream = await request(port, 'GET', `/v1/events/${event.id}/stream`);
        assert.equal(stream.status, 200);
        const held = await request(port, 'POST', '/v1/holds', { event: event.id, seats: ['S-A-1', 'S-A-2'] }, { 'X-Forwarded-For': '203.0.113.1' });
        assert.equal(held.status, 201, held.text);
        await until('the stream says so', () => /S-A-1/.test(stream.text), 3000);
        stream.close();
        const hold = JSON.parse(held.text);
        // A client that forges an address still shares the limit of its own address.
        const more = await request(port, 'POST', '/v1/holds', { event: event.id, seats: ['S-A-3'] }, { 'X-Forwarded-For': '203.0.113.2' });
        assert.equal(more.status, 429, more.text);
        assert.equal((await request(port, 'GET', `/v1/holds/${hold.id}`)).status, 200);
        assert.equal((await request(port, 'DELETE', `/v1/holds/${hold.id}`)).status, 204);
        assert.equal((await request(port, 'GET', '/metrics')).status, 403);

        await until('it has logged the release', () => /DELETE \/v1\/holds\/\* 204/.test(proxy.log(running)), 3000);
        const secret = hold.id.slice('hold_'.length);
        assert.ok(!proxy.log(running).includes(secret), 'the proxy\'s log');
        for (const name of fs.readdirSync(dir).filter((each) => /\.(log|err)$/.test(each))) {
          assert.ok(!fs.readFileSync(path.join(dir, name), 'utf8').includes(secret), name);
        }
      });
    });
  }
}
