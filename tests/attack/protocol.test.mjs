// Attacks on the framing and the grammar of HTTP.  Each connection carries one attack, and behind it a hold that
// nobody asked for if the attack is read as the protocol says.  Every refusal is a problem document with the id of its
// request; where the end of the request is in doubt, the connection is closed and nothing behind it is believed.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertRefusal, conversation } from '../support/attack.mjs';
import { start } from '../support/server.mjs';

const AT_A_TIME = 16;
const HOST = 'Host: localhost\r\n';
const KIB = 1024;

let server, event, smuggled;
before(async () => {
  server = await start();
  event = await server.createEvent();
  const hold = JSON.stringify({ event: event.id, seats: ['S-A-1'] });
  smuggled = `POST /v1/holds HTTP/1.1\r\n${HOST}Content-Length: ${hold.length}\r\n\r\n${hold}`;
});
after(() => server?.finish());

const get = (target, fields = '') => `GET ${target} HTTP/1.1\r\n${HOST}${fields}\r\n`;
const post = (fields, body = '') => `POST /v1/holds HTTP/1.1\r\n${HOST}${fields}\r\n${body}`;
const chunked = (body, fields = '') => post(`Transfer-Encoding: chunked\r\n${fields}`, body);
const withHeader = (line) => `GET /healthz HTTP/1.1\r\n${HOST}${line}\r\n\r\n`;
const show = (text) => JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}...` : text);

const mapNow = async () => Object.values(await server.map(event)).join('');

// Makes all attacks, several at a time, and sees that none of them changed anything.
async function each(attacks, check) {
  const before = await mapNow();
  for (let at = 0; at < attacks.length; at += AT_A_TIME) {
    await Promise.all(attacks.slice(at, at + AT_A_TIME).map(check));
  }
  assert.equal(await mapNow(), before, 'a request inside another was carried out');
}

// The attacks get this status and a closed connection.  `code` is that of their problem document.
const refused = (status, code, attacks) => each(attacks, async (attack) => {
  const { answers } = await conversation(server, attack + smuggled);
  assert.equal(answers.length, 1, `${show(attack)}: ${answers.map((answer) => answer.status)}`);
  assertRefusal(answers[0], status, code, show(attack));
  assert.equal(answers[0].headers.connection, 'close', show(attack));
});

// The attacks get this status, and the next request on the connection is understood.
const survived = (status, attacks) => each(attacks, async (attack) => {
  const { answers } = await conversation(server, attack + get('/healthz', 'Connection: close\r\n'));
  assert.deepEqual(answers.map((answer) => answer.status), [status, 200], show(attack));
  if (status >= 400) assertRefusal(answers[0], status, undefined, show(attack));
  assert.ok(answers[0].headers['x-request-id'], show(attack));
});

describe('where a body ends', () => {
  const both = ['Content-Length: 5', 'Transfer-Encoding: chunked'];

  it('is said once: a length and chunks, two lengths or two encodings are refused', () => refused(400, 'invalid_request', [
    post(`${both[0]}\r\n${both[1]}\r\n`, '0\r\n\r\n'),
    post(`${both[1]}\r\n${both[0]}\r\n`, '0\r\n\r\n'),
    post(`CONTENT-LENGTH: 5\r\ntRANSFER-eNCODING: cHUNKED\r\n`, '0\r\n\r\n'),
    post('Content-Length: 0\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
    post('Content-Length: 0\r\nContent-Length: 0\r\n'),
    post('Content-Length: 0\r\nContent-Length: 4\r\n'),
    post('Content-Length: 4\r\nAccept: a\r\ncontent-length: 0\r\n'),
    post('Content-Length: 0, 0\r\n'),
    post('Content-Length: 0\r\nContent-Length:\r\n'),
    post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
    post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', '0\r\n\r\n'),
    post('Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
  ]));

  it('is a decimal number without a sign, a space or a fraction', () => refused(400, 'invalid_request',
    ['+0', '-0', '-1', '0x0', '0 0', '0.0', '0e0', '1_0', '', '0;', '"0"', '\x0b0', '\xa00', '\u0660', '18446744073709551616',
      '184467440737095516160', '9'.repeat(1000), '0\r\n 0', '0\t1', 'zero'].map((length) => post(`Content-Length: ${length}\r\n`))));

  it('is said by "chunked" alone, not by something like it', () => refused(400, 'invalid_request',
    ['chunked, identity', 'chunked,', 'xchunked', 'chunkedx', 'chunke d', 'chunked;q=1', '"chunked"', "'chunked'", '\x0bchunked', 'chunked\x0c', 'chunked\0',
      '[chunked]', 'chunked chunked', 'identity', 'gzip', '', ',', 'chunked\r\n\t, identity'].map((coding) => post(`Transfer-Encoding: ${coding}\r\n`, '0\r\n\r\n'))));

  it('is not known where chunks are compressed', () => refused(501, 'not_implemented',
    ['gzip, chunked', 'identity, chunked', 'chunked, chunked', 'gzip,\tchunked', ', chunked'].map((coding) => post(`Transfer-Encoding: ${coding}\r\n`, '0\r\n\r\n'))));

  it('is not said by chunks in HTTP/1.0', () => refused(400, 'invalid_request', [
    `POST /v1/holds HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `POST /v1/holds HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ]));

  it('is said by a field whose name is whole', () => refused(400, 'invalid_request', [
    post('Transfer-Encoding : chunked\r\n', '0\r\n\r\n'), post('Transfer-Encoding\t: chunked\r\n', '0\r\n\r\n'), post(' Transfer-Encoding: chunked\r\n', '0\r\n\r\n'),
    post('Content-Length : 0\r\n'), post('Content-Length\0: 0\r\n'), post('Content Length: 0\r\n'), post('Content-Length\x0b: 0\r\n'),
    post('Accept: a\rContent-Length: 0\r\n'), post('Accept: a\nContent-Length: 0\r\n'), post('\rContent-Length: 0\r\n'),
    post('Accept: a\r\n Content-Length: 4\r\n'), post('Content-Length:\r\n 0\r\n'), post('Transfer-Encoding:\r\n\tchunked\r\n', '0\r\n\r\n'),
  ]));

  it('may be said with white space around it, in any case', () => survived(400, [
    post('Content-Length:0\r\n'), post('Content-Length: \t 0 \t\r\n'), post('cONTENT-lENGTH: 000\r\n'), post('Content_Length: 5\r\nContent-Length: 0\r\n'),
    post('Transfer-Encoding:\tCHUNKED \r\n', '0\r\n\r\n'), chunked('0;a=b\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\nHost: x\r\n\r\n'),
    post('Content-Length: 1\r\n', '\0'), chunked('1\r\n\0\r\n0\r\n\r\n'),
  ]));
});

describe('chunks', () => {
  it('have a length of 1 to 16 hexadecimal digits and a CRLF', () => refused(400, 'invalid_request',
    ['10000000000000000\r\n', 'ffffffffffffffff0\r\n', '00000000000000000\r\n', '0x0\r\n', '-1\r\n', '+0\r\n', ' 0\r\n', '0 \r\n', '0\t;a\r\n', '\r\n', ';a\r\n', '0\n', '0\r\r\n', '0\0\r\n', 'g\r\n',
      '0;a\n', '0;a=\0\r\n', '0;a=\x0b\r\n', '1\r\nab\r\n', '1\r\na\n', '1\r\na0\r\n', '2\r\na\r\n0\r\n\r\n', '0\r\nA : b\r\n\r\n', '0\r\n A: b\r\n\r\n', '0\r\nA\r\n\r\n', '0\r\nA\0: b\r\n\r\n',
      '0\r\nA: b\0\r\n\r\n', '0\r\nA: b\n\r\n', '0\r\nA: b\rC: d\r\n\r\n', '0\r\n\n', '0\r\n\r\r'].map((body) => chunked(body))));

  it('that announce almost 2^64 bytes are not over before those have come', async () => {
    await each(['ffffffffffffffff', '7fffffffffffffff', 'FFFFFFFF'], async (size) => {
      const { answers } = await conversation(server, chunked(`${size}\r\n{}`) + smuggled, { finish: true });
      assert.deepEqual(answers, [], size);
    });
  });

  it('have at most 16 KiB of extensions and trailers, and 100 trailers', () => refused(431, 'headers_too_large', [
    chunked(`0;${'a'.repeat(20 * KIB)}\r\n\r\n`), chunked(`1;${'a=b;'.repeat(5 * KIB)}\r\n{`), chunked('1;aaaaaaaa\r\n \r\n'.repeat(4 * KIB)),
    chunked(`0\r\nA: ${'b'.repeat(20 * KIB)}\r\n\r\n`), chunked(`0\r\n${'A: b\r\n'.repeat(101)}\r\n`), chunked(`0\r\n${'a'.repeat(20 * KIB)}`),
  ]));
});

describe('lines', () => {
  it('have no NUL anywhere', () => refused(400, 'invalid_request', [
    `G\0ET /healthz HTTP/1.1\r\n${HOST}\r\n`, `\0GET /healthz HTTP/1.1\r\n${HOST}\r\n`, get('/health\0z'), get('\0'), `GET /healthz HTTP/1.1\0\r\n${HOST}\r\n`,
    `GET /healthz\0HTTP/1.1\r\n${HOST}\r\n`, `GET /healthz HTTP/\x001.1\r\n${HOST}\r\n`, withHeader('\0'), withHeader('A\0: b'), withHeader('A: \0'), withHeader('A: b\0'), withHeader('\0A: b'),
    'GET /healthz HTTP/1.1\r\nHost: local\0host\r\n\r\n', `GET /healthz HTTP/1.1\r\n${HOST}\0\r\n`,
  ]));

  it('end in CR and LF, and have neither within', () => refused(400, 'invalid_request', [
    get('/healthz').replaceAll('\r\n', '\n'), get('/healthz').replaceAll('\r\n', '\r') + '\r\n', `GET /healthz HTTP/1.1\n${HOST}\r\n`, `GET /healthz HTTP/1.1\r\nHost: localhost\n\r\n`,
    `GET /healthz HTTP/1.1\r\n${HOST}\n`, `GET /healthz HTTP/1.1\r\r\n${HOST}\r\n`, `GET\r/healthz HTTP/1.1\r\n${HOST}\r\n`, `GET /healthz\rHTTP/1.1\r\n${HOST}\r\n`, get('/health\rz'), get('/health\nz'),
    withHeader('A: b\rc'), withHeader('A\r: b'), withHeader('A:\rb'), withHeader('A: b\nC: d'), withHeader('\rA: b'), withHeader('A: b\r'), '\n' + get('/healthz'), '\r' + get('/healthz'), '\r\n\n' + get('/healthz'),
  ]));

  it('are not folded, and a name has its colon at once', () => refused(400, 'invalid_request', [
    withHeader('A: b\r\n c'), withHeader('A: b\r\n\tc'), withHeader('A: b\r\n \r\n c'), `GET /healthz HTTP/1.1\r\n ${HOST}\r\n`, `GET /healthz HTTP/1.1\r\n\t${HOST}\r\n`,
    withHeader('A : b'), withHeader('A\t: b'), withHeader(': b'), withHeader('A'), withHeader('A b: c'), withHeader('(A): b'), withHeader('"A": b'), withHeader('A\xe9: b'),
    'GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n', 'GET /healthz HTTP/1.1\r\nHost:\r\n localhost\r\n\r\n',
  ]));

  it('name one host', () => refused(400, 'invalid_request', [
    'GET /healthz HTTP/1.1\r\n\r\n', `GET /healthz HTTP/1.1\r\n${HOST}${HOST}\r\n`, `GET /healthz HTTP/1.1\r\n${HOST}host: other\r\n\r\n`, 'GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: a/b\r\n\r\n', 'GET /healthz HTTP/1.1\r\nHost: u@localhost\r\n\r\n', 'GET /healthz HTTP/1.1\r\nHost: localhost:x\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: localhost:123456\r\n\r\n', 'GET /healthz HTTP/1.1\r\nHost: [::1\r\n\r\n', 'GET /healthz HTTP/1.1\r\nHost: "localhost"\r\n\r\n', 'GET /healthz HTTP/1.1\r\nHost: localhost#\r\n\r\n',
  ]));

  it('of a head are at most 100, and 16 KiB', () => refused(431, 'headers_too_large', [
    get('/healthz', 'Cookie: a=b\r\n'.repeat(1000)), get('/healthz', `Cookie: ${'a=b; '.repeat(4 * KIB)}\r\n`), get('/healthz', `${'A'.repeat(17 * KIB)}: b\r\n`),
    get(`/${'a'.repeat(17 * KIB)}`), `${'A'.repeat(17 * KIB)} /healthz HTTP/1.1\r\n${HOST}\r\n`, '\r\n'.repeat(9 * KIB), get('/healthz', 'A:\r\n'.repeat(101)),
  ]));

  it('may hold a thousand cookies, an upgrade and an empty line before them', () => survived(200, [
    get('/healthz', `Cookie: ${'a=b; '.repeat(1000)}\r\n`), get('/healthz', 'Cookie: a=b\r\n'.repeat(98)), get('/healthz', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'),
    get('/healthz', 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'), `\r\n\r\n${get('/healthz')}`,
    get('/healthz', 'Connection: close-not, x-close\r\nTE: trailers, chunked\r\nProxy-Connection: close\r\n'), get('/healthz', 'A: \x80\xff\t b\r\n'),
  ]));
});

describe('targets and methods', () => {
  it('of other forms are refused', () => refused(400, 'invalid_request', [
    get('localhost:80'), get('localhost'), get('healthz'), get('*'), get('?a'), get('/a b'), get('/a#b'), get('\\healthz'), get('/\x7f'), get('/\xc3\xa9'), get('/\x01'), get(''), get(' /healthz'),
    get('http://'), get('http:///healthz'), get('http://u:p@localhost/healthz'), get('http://local host/'), get('http://localhost:99999999/'), get('ftp://localhost/healthz'), get('file:///etc/passwd'), get('javascript:alert(1)'),
    `CONNECT localhost:443 HTTP/1.1\r\n${HOST}\r\n`, `CONNECT / HTTP/1.1\r\n${HOST}\r\n`, `CONNECT http://localhost/healthz HTTP/1.1\r\n${HOST}\r\n`, `OPTIONS ** HTTP/1.1\r\n${HOST}\r\n`,
    `TRACE * HTTP/1.1\r\n${HOST}\r\n`, `G(ET /healthz HTTP/1.1\r\n${HOST}\r\n`, `GET\t/healthz HTTP/1.1\r\n${HOST}\r\n`, `GET  /healthz HTTP/1.1\r\n${HOST}\r\n`, ` GET /healthz HTTP/1.1\r\n${HOST}\r\n`,
  ]));

  it('of the forms that a server must take are answered', async () => {
    await survived(200, [get('http://localhost/healthz'), get('HTTP://LOCALHOST:8080/healthz'), get('/%68ealthz'), get('/healthz', 'X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /metrics\r\n')]);
    await survived(204, [`OPTIONS * HTTP/1.1\r\n${HOST}\r\n`, `OPTIONS * HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\n{}`]);
  });

  it('that no route takes are 404 or 405, and TRACE repeats nothing', async () => {
    await survived(405, ['TRACE', 'get', 'PROPFIND', 'A'.repeat(5000)].map((method) => `${method} /healthz HTTP/1.1\r\n${HOST}Cookie: secret\r\n\r\n`));
    await survived(404, ['/%00', '/healthz%00', '/healthz%2f', '/healthz/', '//healthz', '/./healthz', '/v1/../healthz', '/v1/%2e%2e/healthz', '/v1%2Fevents',
      '/v1/events/%c0%ae%c0%ae', '/v1/events/%e0%80%af', '/v1/events/%f0%80%80%af', '/v1/events/%ff', '/v1/events/%', '/v1/events/%zz', '/v1/events/%u002e', '/healthz%20', '/healthz%0d%0aA:%20b', '/healthz;a=b'].map((target) => get(target)));
    const { answers: [traced] } = await conversation(server, `TRACE /healthz HTTP/1.1\r\n${HOST}Cookie: secret\r\nConnection: close\r\n\r\n`);
    assert.ok(!traced.text.includes('secret'));
  });

  it('have at most 16 parameters', () => survived(400, [
    get(`/v1/events?${Array.from({ length: 500 }, (_, i) => `a${i}=b`).join('&')}`), get(`/v1/events?${'limit=1&'.repeat(17)}`), get(`/healthz?${'a&'.repeat(2000)}`),
    get('/v1/events?limit=1&limit=2'), get('/v1/events?%6cimit=1&limit=2'), get('/v1/events?a=%0d%0aSet-Cookie:%20b'), get('/v1/events?%00'), get('/v1/events?limit=1%00'), get('/v1/events?%c0%af=1'),
  ]));
});

describe('what is not HTTP/1.1', () => {
  it('is told so', async () => {
    await refused(400, 'invalid_request', ['GET /healthz\r\n', 'GET /healthz\r\n\r\n', 'GET /healthz http/1.1\r\n', 'GET /healthz HTTP/1\r\n', 'GET /healthz HTTP/1.10\r\n', 'GET /healthz HTTP/1.1 \r\n', 'GET /healthz HTTP/-1.1\r\n',
      'GET /healthz HTCPCP/1.0\r\n', 'HELO mail\r\n', '*3\r\n$3\r\nSET\r\n', 'SSH-2.0-OpenSSH_9\r\n', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', '\x80\x2e\x01\x03\x01', '\0\0\0\x08\x04\xd2\x16\x2f', '{}\r\n', 'PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n']);
    await refused(505, 'version_not_supported', ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'GET /healthz HTTP/2\r\n', 'GET /healthz HTTP/3.0\r\n', 'GET /healthz HTTP/0.9\r\n']);
    await refused(417, 'expectation_failed', [get('/healthz', 'Expect: 200-ok\r\n'), post('Expect: 100-continue, x\r\nContent-Length: 2\r\n', '{}')]);
  });

  it('is served as far as an older or a later minor version goes', async () => {
    await survived(200, [`GET /healthz HTTP/1.2\r\n${HOST}\r\n`, `GET /healthz HTTP/1.9\r\n${HOST}\r\n`, 'GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n']);
    await each(['GET /healthz HTTP/1.0\r\n\r\n'], async (attack) => {
      const { answers } = await conversation(server, attack + smuggled);
      assert.deepEqual(answers.map(({ status, headers }) => [status, headers.connection]), [[200, 'close']]);
    });
  });
});

describe('half requests', () => {
  it('do nothing, wherever they end', async () => {
    const cuts = [1, 4, 5, 20, 35, smuggled.indexOf('\r\n\r\n') + 2, smuggled.indexOf('{'), smuggled.indexOf('{') + 1, smuggled.length - 1];
    await each(cuts, async (cut) => {
      const { answers } = await conversation(server, smuggled.slice(0, cut), { finish: true });
      assert.deepEqual(answers, [], `cut at ${cut}`);
    });
    await each(['5\r\n{', '1\r\n{\r\n0\r\n', '1\r\n{\r\n0\r\nA: b\r\n'], async (part) => {
      const { answers } = await conversation(server, chunked(part), { finish: true });
      assert.deepEqual(answers, [], show(part));
    });
  });

  it('that follow whole ones do not undo the answers of those', async () => {
    await each([get('/healthz') + get('/nowhere')], async (whole) => {
      const { answers } = await conversation(server, whole + smuggled.slice(0, -1), { finish: true });
      assert.deepEqual(answers.map(({ status }) => status), [200, 404]);
    });
  });
});
