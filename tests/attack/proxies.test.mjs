// Requests that are smuggled through the documented proxies.  What HAProxy and nginx make of an attack is recorded on its
// way to the server, and read a second time by Node's parser: the server sees the same requests as Node, and no request
// that the proxy has not seen.  Both proxies deny /metrics, so a request for it in the server's log was smuggled.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import http2 from 'node:http2';
import net from 'node:net';
import { once } from 'node:events';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { nodeReads } from '../differential/node_parser.mjs';
import { attackKeys, conversation } from '../support/attack.mjs';
import { Authority } from '../support/certificates.mjs';
import { startFront } from '../support/front.mjs';
import { reap, start, tempDir, until } from '../support/server.mjs';

const VICTIMS = 3; // requests of somebody else after each attack, on connections that the proxy keeps
const certificate = path.join(tempDir(), 'both.pem');

before(() => {
  const { cert, key } = new Authority(path.dirname(certificate)).issue('front');
  fs.writeFileSync(certificate, fs.readFileSync(cert, 'utf8') + fs.readFileSync(key, 'utf8'));
});
after(reap);

// A relay between a proxy and a server that keeps what either sends, connection by connection.
async function startRecorder(port) {
  const recorder = { connections: [] };
  const listener = net.createServer((client) => {
    const upstream = net.connect({ port, host: '127.0.0.1' });
    const connection = { asked: [], answered: [] };
    recorder.connections.push(connection);
    client.on('data', (data) => connection.asked.push(data)).pipe(upstream);
    upstream.on('data', (data) => connection.answered.push(data)).pipe(client);
    for (const [one, other] of [[client, upstream], [upstream, client]]) one.on('error', () => other.destroy()).on('close', () => other.destroy());
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  recorder.port = listener.address().port;
  recorder.close = () => listener.close();
  return recorder;
}

const inner = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
const hex = (n) => n.toString(16);
const post = (fields, body, version = '1.1') => `POST /v1/holds HTTP/${version}\r\nHost: localhost\r\n${fields}\r\n${body}`;
const whole = 5 + inner.length; // the last chunk and the request behind it
const lastChunk = `0\r\n\r\n${inner}`;

// Two readings of where a body ends: after the last chunk, or after the announced length.
const CODINGS = ['chunked', 'Chunked', 'chunked ', '\tchunked', ' chunked', 'xchunked', 'chunked, identity', 'identity, chunked', 'identity', 'gzip, chunked', 'chunked;a=b', '"chunked"',
  '\x0bchunked', 'chunked\x0b', 'chunked\0', 'chunked,', ',chunked', 'chunked, chunked', 'chunked\r\n\tx', '\r\n chunked'];
const framings = [
  ...CODINGS.map((coding) => post(`Content-Length: ${whole}\r\nTransfer-Encoding:${/^\s/.test(coding) ? '' : ' '}${coding}\r\n`, lastChunk)),
  ...CODINGS.map((coding) => post(`Transfer-Encoding: ${coding}\r\n`, lastChunk)),
  ...['Transfer-Encoding : chunked', 'Transfer-Encoding\t: chunked', ' Transfer-Encoding: chunked', 'Transfer_Encoding: chunked', 'Transfer-Encoding\0: chunked', 'transfer-encoding: chunked\r\nTransfer-Encoding: x',
    'X: y\rTransfer-Encoding: chunked', 'X: y\nTransfer-Encoding: chunked', 'X: y\r\n\tTransfer-Encoding: chunked', 'Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked', 'Connection: Content-Length',
    'TE: chunked', 'Trailer: Content-Length', 'Expect: 100-continue', 'Expect: x', 'Upgrade: h2c\r\nConnection: Upgrade'].map((field) => post(`Content-Length: ${whole}\r\n${field}\r\n`, lastChunk)),
  ...['0\r\nContent-Length: W', 'W\r\nContent-Length: 0', '0, W', 'W, 0', '+W', '-W', '0xW', 'W W', ' W', '00W', 'W.0', 'W\0', 'W\t', '0\r\n W', '1844674407370955161600000', '18446744073709551616', '']
    .map((length) => post(`Content-Length: ${length.replaceAll('W', whole)}\r\n`, lastChunk)),
  post('Content-Length : 5\r\n', lastChunk), post('Content_Length: 5\r\n', lastChunk), post('', lastChunk), post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', lastChunk, '1.0'),
  post(`Connection: keep-alive\r\nContent-Length: ${whole}\r\n`, lastChunk, '1.0'),
];

// Two readings of where a chunk ends.
const sizes = ['5', '5;a', '5 ;a', '5;a="\r\n"', '5;\n', '5\n', '5\r', '+5', '0x5', '-5', '05', '00000000000000005', '10000000000000005', 'fffffffffffffffffb', '5\0', '5\t', '5_', ';', ''];
const chunkings = [
  ...sizes.map((size) => post('Transfer-Encoding: chunked\r\n', `${size}\r\n{   }\r\n${lastChunk}`)),
  ...['\n', '\r', 'xx', '', '\r\r\n', '\n\r'].map((end) => post('Transfer-Encoding: chunked\r\n', `5\r\n{   }${end}${lastChunk}`)),
  ...['\n', '\r', '\n\n', '\r\n\n', '\r\n \r\n', '\r\nA : b\r\n\r\n', '\r\nContent-Length: 50\r\n\r\n', '\r\nTransfer-Encoding: x\r\n\r\n', '\r\nA: b\n\n', `\r\n${'A: b\r\n'.repeat(200)}\r\n`]
    .map((end) => post('Transfer-Encoding: chunked\r\n', `0${end}${inner}`)),
  post('Transfer-Encoding: chunked\r\n', `${hex(inner.length)};${'a'.repeat(20_000)}\r\n${inner}\r\n0\r\n\r\n`),
];

// A head that another reader takes for two, or for another one.
const heads = ['X: y\nGET /metrics HTTP/1.1', 'X: y\r\rGET /metrics HTTP/1.1', 'X: y\n\nGET /metrics HTTP/1.1\nHost: localhost', 'X: \0\r\n', ': y', 'X', 'X y: z', 'X: y\r\n GET /metrics HTTP/1.1', 'Host: other', 'X-Original-URL: /metrics',
  'X-Rewrite-URL: /metrics', 'Connection: close, Host', 'Connection: X-Forwarded-For, Connection'].map((field) => `GET /healthz HTTP/1.1\r\nHost: localhost\r\n${field}\r\n\r\n`);
const lines = ['GET /healthz HTTP/1.1\r\n\r\n', 'GET /healthz HTTP/1.0\r\n\r\n', 'GET /healthz\r\n\r\n', 'GET /healthz HTTP/2.0\r\n\r\n', 'GET /healthz HTTP/1.9\r\nHost: localhost\r\n\r\n', 'GET  /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'GET /healthz\tHTTP/1.1\r\nHost: localhost\r\n\r\n', '\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', '\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: x\r\n\r\n',
  'CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n', 'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n', 'TRACE /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'];
// Ways to write a path that must stay denied, or not be found.
const paths = ['/metrics', '/%6detrics', '/%6D%65trics', '/metric%73', '//metrics', '/./metrics', '/v1/../metrics', '/v1/%2e%2e/metrics', '/metrics/', '/metrics?', '/metrics?a', '/metrics%3f', '/metrics%00', '/metrics;a', '/metrics#a', '/METRICS', '/metrics%20',
  '/metrics%2f', '\\metrics', '/%2fmetrics', 'http://localhost/metrics', 'http://localhost/%6detrics', 'http://localhost//metrics', 'http://other/metrics', 'HTTP://localhost/metrics'].map((target) => `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);

const ATTACKS = [...framings, ...chunkings, ...heads, ...lines, ...paths];

const keys = attackKeys();

// Makes one request on a connection of its own.  Resolves to its status; to undefined if it was reset.
function overHttp2(port, head, body) {
  return new Promise((resolve) => {
    const session = http2.connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    let status;
    const over = () => { session.destroy(); resolve(status); };
    const stream = session.on('error', over).on('close', over).request(head);
    stream.on('response', (answer) => { status = answer[':status']; }).on('error', over).on('close', over).resume().end(body);
  });
}

for (const kind of ['haproxy', 'nginx']) {
  describe(`through ${kind}`, () => {
    let server, recorder, front, secure;
    before(async () => {
      server = await start({ args: ['--trusted-proxy', '127.0.0.1', '--request-log'], env: keys.env });
      recorder = await startRecorder(server.port);
      front = await startFront(kind, [recorder]);
      secure = await startFront(kind, [recorder], { certificate });
    });
    after(async () => {
      await secure?.stop();
      await front?.stop();
      recorder?.close();
      await server?.finish();
    });

    const logged = () => [...server.stderr.matchAll(/msg="request" request_id=(\S+) method=(\S+) route=(\S+) status=(\d+)/g)]
      .map(([, id, method, route, status]) => ({ id, method, route, status: Number(status) }));
    let judged = 0; // characters of the log
    const nothingWasSmuggled = (attack) => {
      const end = server.stderr.lastIndexOf('\n') + 1;
      const fresh = server.stderr.slice(judged, end);
      judged = end;
      assert.doesNotMatch(fresh, / route=\/metrics /, JSON.stringify(attack));
    };

    // Somebody else's requests get their own answers: an attack that leaves a request behind on a connection between the
    // proxy and the server would shift the answers by one.
    async function victimsAreWell(n) {
      for (let i = 0; i < VICTIMS; i++) {
        const name = `victim_${n}_${i}`;
        const answer = await front.get(`/v1/events?${name}=1`);
        assert.equal(answer.status, 400, answer.text);
        assert.match(answer.json.detail, new RegExp(`${name}$`));
      }
    }

    it('no request is smuggled, and nobody gets the answer of another', async () => {
      for (const [n, attack] of ATTACKS.entries()) {
        await conversation(front, attack, { finish: true, toProxy: true });
        await victimsAreWell(n);
        nothingWasSmuggled(attack);
      }
    });

    // `$` is the secret part of an id.
    it('no spelling of a path puts a secret into the log of the proxy', async () => {
      const targets = ['/v1/holds/hold_$', '/v1/hold%73/hold_$', '/%76%31/bookings/bkg_$', '/v1/booking%73/bkg_$', '/v1//holds/hold_$', '//v1/holds/hold_$', '/v1/holds//hold_$', '/v1/./holds/hold_$',
        '/x/../v1/holds/hold_$', '/v1/holds/hold_$/', '/V1/holds/hold_$', '/v1/Holds/hold_$', '/v1/holds;a/hold_$', '/v1/holds/hold_$;a', '/v1/hold/hold_$', '/v1/holds/x/hold_$', '/v1/holds/HOLD_$',
        '/v1/holds/hold_$/renew', '/v1/holds/hold_$/hold_$', '/v1/bookings/bkg_$.json', '/v1/events/hold_$', '/hold_$', '/v1/sessions/ses_$', '/v1/holds/%68old_$', '/v1/holds/hold_$%7f'];
      for (const [n, target] of targets.entries()) {
        const secret = `SECRET${String(n).padStart(2, '0')}${'x'.repeat(20)}`;
        const answer = await front.get(target.replaceAll('$', secret));
        const id = answer.headers['x-request-id'];
        if (id) await until('it is logged', () => front.log.includes(id));
        assert.ok(!front.log.includes(secret), target);
      }
      for (const shown of ['/v1/events/evt_0123456789012345678901234567/seats', '/readyz', '/v1/events', '/holdfast.js']) {
        await front.get(shown);
        await until('it is logged', () => front.log.includes(` ${shown} `));
      }
      assert.ok(front.log.includes(' /v1/holds/*/renew ') && front.log.includes(' /v1/holds/* '));
    });

    it('a body of HTTP/2 is as long as it is, whatever its head says', async () => {
      await until('the proxy serves', async () => await overHttp2(secure.port, { ':path': '/healthz' }) === 200, 120_000, 50);
      for (const [n, length] of ['0', '1', String(inner.length - 1), String(inner.length + 1), '-1', '5, 5'].entries()) {
        const status = await overHttp2(secure.port, { ':method': 'POST', ':path': '/v1/holds', 'content-length': length }, inner);
        assert.ok(status === undefined || status === 400, `${length}: ${status}`);
        await victimsAreWell(`h2_${n}`);
        nothingWasSmuggled(length);
      }
    });

    it('the server reads what the proxy sends as another parser does', async () => {
      await until('the log is complete', () => logged().length >= (ATTACKS.length + 6) * VICTIMS);
      const log = new Map(logged().map((line) => [line.id, line]));
      const connections = [...recorder.connections]; // health checks go on
      const streams = connections.map(({ asked }) => Buffer.concat(asked));
      const readings = await nodeReads(streams);
      let compared = 0;
      connections.forEach(({ answered }, i) => {
        const { requests } = readings[i];
        const text = `${Buffer.concat(answered)}`;
        const served = [...text.matchAll(/^X-Request-Id: (req_\w+)\r$/gm)].map(([, id]) => log.get(id)).filter(Boolean);
        served.forEach(({ method, status }, nth) => {
          const show = `${streams[i].toString('latin1').slice(-2000)}\n${JSON.stringify({ method, status, nth })}`;
          const isRefusal = status >= 400 && nth === served.length - 1 && /^Connection: close\r$/m.test(text);
          assert.ok(requests[nth] || isRefusal, `the server answers a request that Node does not see:\n${show}`);
          if (requests[nth] && method !== 'other') assert.equal(requests[nth].method, method, show);
          compared++;
        });
      });
      assert.ok(compared > ATTACKS.length * VICTIMS + 20, `attacks reach the server: ${compared}`);
    });
  });
}
