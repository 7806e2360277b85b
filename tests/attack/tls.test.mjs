// A server with TLS: which certificates it takes and shows, how they are renewed, what it answers clients that do
// not speak TLS or stop in the middle of it, and what clients of ours refuse.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { after, before, describe, it } from 'node:test';
import { Authority } from '../support/certificates.mjs';
import { holdfast } from '../support/cli.mjs';
import { freePort, runServer, Server, reap, removeTempDir, tempDir, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const ADMIN = 'an-admin-key-0123456789abcdef0123456789abcdef';
const KEY = { Authorization: `Bearer ${ADMIN}` };
const HANDSHAKES_MAX = 256; // of an HTTP thread: src/http/handshakes.h
const HALF_OPEN = process.env.HF_SOAK === '1' ? 5000 : 300;

let dir;
let authority;
before(() => {
  dir = tempDir();
  authority = new Authority(dir);
});
after(async () => {
  await reap();
  removeTempDir(dir);
});

const flags = ({ cert, key }) => ['--tls-cert', cert, '--tls-key', key];

// A server with this certificate.  Its own client trusts `authority`.
async function startWith(pair, options = {}) {
  const server = new Server({ args: flags(pair), env: { HOLDFAST_ADMIN_KEY: ADMIN }, tls: false, ...options });
  server.tls = { ca: authority.pem, servername: 'localhost' };
  await server.launch();
  return server;
}

// Resolves to what a plain socket receives for `bytes`, until the server closes it.
function exchange(server, bytes) {
  return new Promise((resolve) => {
    const socket = net.connect(server.port, server.host, () => socket.end(bytes));
    const chunks = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', () => {});
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

async function metric(server, name, pattern = '') {
  const { text } = await server.get('/metrics', KEY);
  return Number(new RegExp(`^${name}${pattern} (\\S+)$`, 'm').exec(text)?.[1]);
}

describe('TLS', { concurrency: 2 }, () => {
  describe('certificates at the start', { concurrency: 1 }, () => {
    it('are refused with a sentence if they are of no use', async () => {
      const good = authority.issue('start');
      const other = authority.issue('start-other');
      const file = (name, text) => {
        fs.writeFileSync(path.join(dir, name), text, { mode: 0o600 });
        return path.join(dir, name);
      };
      const open = file('open.key', fs.readFileSync(good.key));
      fs.chmodSync(open, 0o644);
      const turned = file('turned.crt', fs.readFileSync(authority.cert, 'utf8') + fs.readFileSync(good.cert, 'utf8'));
      const refusals = [
        [64, /--tls-cert and --tls-key belong together/, ['--tls-cert', good.cert]],
        [64, /--tls-cert and --tls-key belong together/, ['--tls-key', good.key]],
        [1, /cannot use the TLS certificate: .*missing\.crt: No such file/, flags({ ...good, cert: path.join(dir, 'missing.crt') })],
        [1, /start-other\.key: the key does not belong to the certificate/, flags({ ...good, key: other.key })],
        [1, /open\.key: others than its owner may use it; chmod 600 it/, flags({ ...good, key: open })],
        [1, /turned\.crt: the certificates are in the wrong order: the server's own comes first/, flags({ ...good, cert: turned })],
        [1, /start\.key: there is no certificate in it/, flags({ ...good, cert: good.key })],
        [1, /start\.crt: /, flags({ ...good, key: good.cert })],
      ];
      for (const [code, sentence, args] of refusals) {
        const ended = await runServer(['--listen', '127.0.0.1:0', '--data', path.join(dir, 'data'), ...args]);
        assert.match(ended.stderr, sentence);
        assert.equal(ended.code, code, ended.stderr);
        assert.equal(ended.stdout, '');
      }
    });

    it('that have expired, or will soon, are used with a warning', async () => {
      for (const [days, warning] of [[-1, /level=warn msg="the TLS certificate has expired/], [5, /level=warn msg="the TLS certificate expires soon" .*days_left=[45]\b/]]) {
        const server = await startWith(authority.issue(`days${days}`, { days }));
        server.tls.rejectUnauthorized = false;
        server.agent = server.newAgent();
        const at = await metric(server, 'holdfast_tls_certificate_expires_seconds');
        assert.ok(Math.abs(at - Date.now() / 1000 - days * 86400) < 600, `${at}`);
        await server.stop();
        assert.match(server.logs, warning);
      }
    });
  });

  describe('a server with TLS', { concurrency: 1 }, () => {
    let server;
    let event;
    before(async () => {
      server = await startWith(authority.issue('served'), { args: [...flags(authority.issue('served')), '--stream-listen', '127.0.0.1:0', '--http-threads', '1'] });
      event = await server.createEvent({}, KEY);
    });
    after(() => server?.stop());

    it('says https, and its pages find streams of the second port there', async () => {
      assert.match(server.run.stdout, /^holdfastd listening on https:\/\/127\.0\.0\.1:\d+\n/);
      const streams = await server.streams();
      assert.match(server.run.stdout, new RegExp(`^streams on https://127.0.0.1:${streams.port}$`, 'm'));
      const page = await server.get('/', { Host: `localhost:${server.port}`, Accept: 'text/html' });
      assert.match(page.headers['content-security-policy'], new RegExp(` https://localhost:${streams.port}[ ;]`));
      const read = async (Origin) => {
        const stream = await Stream.open(streams, event, { headers: { Origin, Host: `localhost:${streams.port}` } });
        stream.close();
        return stream.headers['access-control-allow-origin'];
      };
      assert.equal(await read(`https://localhost:${server.port}`), `https://localhost:${server.port}`);
      assert.equal(await read(`http://localhost:${server.port}`), undefined);
    });

    it('tells a plain request that the port speaks HTTPS, and closes whatever else is no handshake', async () => {
      for (const port of [server.port, (await server.streams()).port]) {
        const answer = await exchange({ host: server.host, port }, 'POST /v1/holds HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc');
        assert.match(answer, /^HTTP\/1\.1 400 .*\r\n/);
        assert.match(answer, /"code":"tls_required"/);
        assert.match(answer, /X-Request-Id: /i);
      }
      for (const bytes of ['\r\n\r\n', '\x80\x2e\x01\x00\x02', '\x16\x03\x01\xff\xff', 'get / HTTP/1.0\r\n\r\n']) {
        assert.doesNotMatch(await exchange(server, Buffer.from(bytes, 'latin1')), /HTTP/);
      }
    });

    it('outlives connections that break at every point of the handshake and of a record', async () => {
      const { servername, ca } = server.tls;
      const hello = await firstFlight();
      const cuts = Array.from({ length: 60 }, (_, i) => Math.floor(hello.length * i / 60));
      await Promise.all(cuts.map((cut) => exchange(server, hello.subarray(0, cut))));
      await Promise.all(Array.from({ length: 60 }, (_, i) => new Promise((resolve) => {
        const socket = net.connect(server.port, server.host);
        const secure = tls.connect({ socket, servername, ca });
        secure.on('error', () => {});
        socket.on('error', () => {});
        secure.once('secureConnect', () => {
          secure.write(`GET /v1/events/${event.id}/seats HTTP/1.1\r\nHost: localhost\r\n\r\n`);
          if (i % 3 === 0) socket.resetAndDestroy(); // without a goodbye
          else if (i % 3 === 1) socket.write('\x17\x03\x03\x40\x00 half a record', () => socket.destroy());
          else secure.end();
        });
        socket.once('close', resolve);
        secure.on('data', () => {});
      })));
      await until('all of them are gone', async () => await metric(server, 'holdfast_http_connections') <= 2);
      assert.ok(await metric(server, 'holdfast_tls_handshakes_total', '\\{result="failed"\\}') >= 50);
      assert.equal((await server.hold(event, 'S-A-1')).status, 201);
    });

    it(`serves buyers while ${HALF_OPEN} handshakes do not go on, and is rid of those after 10 s`, async () => {
      const hello = await firstFlight();
      const record = Buffer.alloc(5 + 16384);
      record.set([0x16, 3, 1, 0x40, 0, 1, 2, 1, 0x40]); // announces a hello of 131,392 bytes, and brings 64 KB of it
      const vast = Buffer.concat([record, ...Array.from({ length: 3 }, () => Buffer.concat([record.subarray(0, 5), Buffer.alloc(16384)]))]);
      const before = await metric(server, 'process_resident_memory_bytes');
      const sockets = await Promise.all(Array.from({ length: HALF_OPEN }, (_, i) => new Promise((resolve) => {
        const socket = net.connect({ port: server.port, host: server.host, localAddress: `127.0.0.${2 + i % 100}` }, () => {
          socket.write(i % 2 ? hello.subarray(0, hello.length - 1) : vast, () => resolve(socket));
        });
        socket.on('error', () => resolve(socket)); // closed to make room
        socket.resume();
      })));
      const open = () => metric(server, 'holdfast_http_connections');
      await until('no more of them than may be are open', async () => await open() <= HANDSHAKES_MAX + 5);
      assert.equal((await server.hold(event, 'S-A-2')).status, 201);
      const more = await metric(server, 'process_resident_memory_bytes') - before;
      assert.ok(more < HANDSHAKES_MAX * 200_000 * 4 + 50e6, `${more} bytes`); // with what sanitizers take for each byte
      await until('they are closed', async () => await open() < 5, 40_000, 250);
      for (const socket of sockets) socket.destroy();
    });

    // What a client sends first.
    function firstFlight() {
      return new Promise((resolve) => {
        const listener = net.createServer((socket) => {
          socket.on('error', () => {});
          socket.once('data', (data) => { socket.destroy(); listener.close(); resolve(data); });
        }).listen(0, '127.0.0.1', () => tls.connect({ port: listener.address().port, host: '127.0.0.1', servername: 'localhost' }).on('error', () => {}));
      });
    }
  });

  it('a password for a gate on another machine is not sent without TLS unless the log warns of it', async () => {
    const WARNING = /level=warn msg="the gate's password goes over the network as it is; use rediss:\/\/"/;
    const port = await freePort(); // where nothing listens; 0.0.0.0 is no address of this machine by its name
    for (const [gate, warns] of [[`redis://:secret@0.0.0.0:${port}`, true], [`redis://:secret@127.0.0.1:${port}`, false], [`rediss://:secret@0.0.0.0:${port}`, false]]) {
      const server = new Server({ env: { HOLDFAST_GATE: gate }, tls: false });
      await server.launch();
      await server.stop();
      assert.equal(WARNING.test(server.logs), warns, server.logs);
    }
  });

  describe('SIGHUP', { concurrency: 1 }, () => {
    it('takes over another certificate for new connections, and refuses one that is of no use', async () => {
      const pair = authority.issue('renewed');
      const server = await startWith(pair);
      const event = await server.createEvent({}, KEY);
      const stream = await Stream.open(server, event);
      const shown = () => new Promise((resolve, reject) => {
        const socket = tls.connect({ ...server.tls, port: server.port, host: server.host }, () => {
          resolve(socket.getPeerCertificate().serialNumber);
          socket.destroy();
        });
        socket.on('error', reject);
      });
      const first = await shown();
      const reload = async (line) => {
        const from = server.stderr.length;
        process.kill(server.pid, 'SIGHUP');
        await until('the log says so', () => line.test(server.stderr.slice(from)));
      };
      authority.issue('renewed');
      await reload(/msg="TLS certificate reloaded"/);
      const second = await shown();
      assert.notEqual(second, first);
      fs.copyFileSync(authority.issue('elsewhere').key, pair.key);
      // Keys are not held up by it.
      await reload(/level=error msg="the TLS certificate stays as it is" why=".*renewed\.key: the key does not belong to the certificate"\n.* msg="reloaded" keys=admin:1/);
      assert.equal(await shown(), second);
      await server.grant(event, 'S-A-1', {}, KEY);
      assert.ok(await stream.find(({ event: kind }) => kind === 'seats'), 'the stream of the first certificate goes on');
      stream.close();
      await server.stop();
    });
  });

  it('a stream is not followed from https to http', async () => {
    const { cert, key } = authority.issue('leads-away');
    let visits = 0;
    const plain = http.createServer((req, res) => { visits++; res.end(); });
    await new Promise((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const away = https.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) }, (req, res) => {
      if (/stream/.test(req.url)) res.writeHead(307, { Location: `http://127.0.0.1:${plain.address().port}${req.url}` });
      res.end('{}');
    });
    await new Promise((resolve) => away.listen(0, '127.0.0.1', resolve));
    const { code, stderr } = await holdfast(undefined, ['event', 'watch', 'evt_0000000000100P9MVMcaXWHEX8yi'],
      { env: { HOLDFAST_SERVER: `https://localhost:${away.address().port}`, HOLDFAST_CACERT: authority.cert } });
    assert.notEqual(code, 0, stderr);
    assert.match(stderr, /307/);
    assert.equal(visits, 0);
    plain.close();
    away.close();
    away.closeAllConnections();
  });

  describe('clients of ours', { concurrency: 1 }, () => {
    const identities = {
      right: () => authority.issue('right'),
      expired: () => authority.issue('expired', { days: -1 }),
      'for another name': () => authority.issue('other-name', { names: 'DNS:elsewhere.example' }),
      'of an unknown authority': () => new Authority(path.join(fs.mkdtempSync(path.join(dir, 'a-')))).issue('stranger'),
    };
    const refusal = {
      expired: /certificate has expired/i,
      'for another name': /subject name|subjectAltName|does not match/i,
      'of an unknown authority': /unable to get local issuer|self[- ]signed/i,
    };

    for (const [kind, make] of Object.entries(identities)) {
      it(`${kind === 'right' ? 'trust' : 'refuse'} a certificate that is ${kind}`, async () => {
        const server = await startWith(make());
        server.tls.rejectUnauthorized = false;
        server.agent = server.newAgent();
        const env = { HOLDFAST_SERVER: `https://localhost:${server.port}`, HOLDFAST_CACERT: authority.cert, HOLDFAST_KEY: ADMIN };
        const lock = `holdfasts://localhost:${server.port}?cacert=${authority.cert}`;
        const event = await server.createEvent({}, KEY);
        const listed = await holdfast(undefined, ['event', 'list'], { env });
        const locked = await holdfast(lock, ['run', 'name', '--timeout', '10s', '--', 'echo', 'held'], { env });
        const examined = await holdfast(lock, ['doctor', '--timeout', '30s'], { env });
        if (kind === 'right') {
          assert.equal(listed.code, 0, listed.stderr);
          assert.match(listed.stdout, new RegExp(event.id));
          assert.equal(locked.code, 0, locked.stderr);
          assert.equal(locked.stdout, 'held\n');
          const byFlag = await holdfast(undefined, ['event', 'list', '--cacert', authority.cert], { env: { ...env, HOLDFAST_CACERT: '/nowhere' } });
          assert.equal(byFlag.code, 0, byFlag.stderr);
          const bySystem = await holdfast(undefined, ['event', 'list'], { env: { ...env, HOLDFAST_CACERT: '' } });
          assert.equal(bySystem.code, 69, bySystem.stdout);
          assert.match(bySystem.stderr, refusal['of an unknown authority']);
        } else {
          for (const { code, stderr, stdout } of [listed, locked]) {
            assert.equal(code, 69, stdout);
            assert.match(stderr, refusal[kind]);
          }
          assert.notEqual(examined.code, 0);
          assert.match(examined.stdout + examined.stderr, refusal[kind]);
        }
        await server.stop();
      });
    }
  });
});
