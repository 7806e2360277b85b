// The proxy configurations in share/holdfast: HAProxy and nginx accept them, and they do what the documents say.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startFront } from '../support/front.mjs';
import { reap, start, tempDir, until } from '../support/server.mjs';

const dir = tempDir();
const certificate = path.join(dir, 'both.pem');

before(() => {
  const [key, cert] = [path.join(dir, 'key.pem'), path.join(dir, 'cert.pem')];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=tickets.example', '-keyout', key, '-out', cert], { stdio: 'ignore' });
  fs.writeFileSync(certificate, fs.readFileSync(cert, 'utf8') + fs.readFileSync(key, 'utf8'));
});
after(reap);

// Makes a request as a buyer from an address that no server trusts.
function request(port, method, target, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const req = https.request({ host: '127.0.0.1', port, method, path: target, rejectUnauthorized: false, agent: false, headers, localAddress: '127.0.0.2' }, (res) => {
      let text = '';
      const answer = () => resolve({ status: res.statusCode, headers: res.headers, get text() { return text; }, close: () => req.destroy() });
      res.setEncoding('utf8').on('data', (data) => { text += data; });
      res.on('error', () => {});
      if (/event-stream/.test(res.headers['content-type'])) answer();
      else res.on('end', answer);
    });
    req.on('error', reject);
    req.end(body && JSON.stringify(body));
  });
}

for (const kind of ['haproxy', 'nginx']) {
  describe(`${kind} as it is shipped, with TLS`, () => {
    let server, front;
    before(async () => {
      server = await start({ args: ['--trusted-proxy', '127.0.0.1', '--request-log'], env: { HOLDFAST_ADMIN_KEY: 'a'.repeat(20), HOLDFAST_PUBLIC_SEATS_MAX: '2' } });
    });
    after(async () => {
      await front?.stop();
      await server?.stop();
    });

    it('is accepted, routes requests and streams, tells addresses apart and logs no secret', async () => {
      front = await startFront(kind, [server], { certificate });
      const { port, run } = front;
      if (kind === 'haproxy') assert.equal(front.said, '', 'not even a warning'); // a newer nginx warns about renamed directives
      await until('it serves', async () => (await request(port, 'GET', '/readyz').catch(() => null))?.status === 200 || run.ended, undefined, 50);
      assert.equal(run.ended, null, run.stderr);

      const event = await server.createEvent({}, { Authorization: `Bearer ${'a'.repeat(20)}` });
      const stream = await request(port, 'GET', `/v1/events/${event.id}/stream`);
      assert.equal(stream.status, 200);
      const held = await request(port, 'POST', '/v1/holds', { event: event.id, seats: ['S-A-1', 'S-A-2'] }, { 'X-Forwarded-For': '203.0.113.1' });
      assert.equal(held.status, 201, held.text);
      await until('the stream says so', () => /S-A-1/.test(stream.text));
      stream.close();
      const hold = JSON.parse(held.text);
      // A client that forges an address still shares the limit of its own address.
      const more = await request(port, 'POST', '/v1/holds', { event: event.id, seats: ['S-A-3'] }, { 'X-Forwarded-For': '203.0.113.2' });
      assert.equal(more.status, 429, more.text);
      assert.equal((await request(port, 'GET', `/v1/holds/${hold.id}`)).status, 200);
      assert.equal((await request(port, 'DELETE', `/v1/holds/${hold.id}`)).status, 204);
      assert.equal((await request(port, 'GET', '/metrics')).status, 403);

      await until('it has logged the release', () => /DELETE \/v1\/holds\/\* 204/.test(front.log));
      const secret = hold.id.slice('hold_'.length);
      assert.ok(!front.log.includes(secret), 'the proxy\'s log');
      for (const name of fs.readdirSync(front.dir).filter((each) => /\.(log|err)$/.test(each))) {
        assert.ok(!fs.readFileSync(path.join(front.dir, name), 'utf8').includes(secret), name);
      }
    });
  });
}
