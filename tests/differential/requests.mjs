// Random connections for the comparison of parsers: requests by the grammar, in which now and then a part is odd, a line end or a
// space is wrong, framing is given twice, bytes are changed or cut off, or a second request follows.
//
// All texts are latin1: one character is one byte.

import { seededRandom } from '../support/random.mjs';

const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS'];
const ODD_METHODS = ['HOLD', 'get', 'M-SEARCH', 'SOURCE', 'CONNECT', 'G(ET', '', 'GE\tT', 'QUERY'];
const TARGETS = ['/', '/v1/holds', '/v1/events/demo/seats?after=4&x', '/a//b/../%2f%00?c=%zz', '/a?b?c/d', '/|"<>\\^`{}[]', 'http://x/', 'HTTP://y:80/a?b',
  'https://[::1]/', 'http://x?a', '/;a=b,c:d@e!$&\'()*+~'];
const ODD_TARGETS = ['*', '**', 'a', '', '/a#b', '/\xe9', '/\t', '/\f', '/\0', '/\x7f', 'ftp://x/', 'http://', 'http:///a', 'http://u@x/', 'http://x:y/', 'http:/x', 'x:80',
  '//x', '?a', 'http://[x', '/a b'];
const ODD_VERSIONS = ['HTTP/1.0', 'HTTP/1.0', 'HTTP/1.0', 'HTTP/1.2', 'HTTP/1.9', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/3', 'HTTP/1.10', 'HTTP/1', 'http/1.1', 'ICE/1.0', 'HTTP/1.1 ', '', 'HTTPS/1.1'];
const HOSTS = ['x', 'localhost:8080', '', '[::1]:80', 'a-b.example.com', '10.0.0.1'];
const ODD_HOSTS = ['a b', 'a,b', 'a, b', 'a/b', 'u@a', ':80', 'a:b', '[x]', '\xe9', 'x:123456'];
const FIELDS = ['Accept: */*', 'User-Agent: wrk/4.1', 'Content-Type: application/json', 'Idempotency-Key: "abc"', 'X-Empty:', 'Authorization: Bearer 123=', 'Cookie: a=b; c="d"',
  'Accept-Encoding:gzip, deflate', 'x-tab:\t a\tb \t', 'X_1!#$%&\'*+.^`|~: \xe9\xff', 'Upgrade: h2c', 'TE: trailers', 'Trailer: A', 'Keep-Alive: timeout=5', 'Colon: a:b'];
const ODD_FIELDS = ['A : b', 'A\t: b', ': b', 'A', 'A b', '(A): b', 'A(: b', 'A@: b', '\xe9: b', 'A: b\r\n c', 'A: b\r\n\tc: d', 'A: b\0', 'A: \x01b', 'A: b\x7f', 'A: b\rC: d', 'A: b\nC: d', '', ' A: b'];
const CONNECTIONS = ['close', 'keep-alive', 'Close', 'Keep-Alive', 'x, close', 'close, x', 'keep-alive, close', 'close,Keep-Alive', 'keep-alive,CLOSE', 'closed', 'clos e', ',close ,', 'upgrade', 'x,\tkeep-alive', ''];
const EXPECTS = ['100-continue', '100-Continue', '100-continue', 'x', '', '100-continue, x', '100-continued'];
const LENGTHS = ['+2', '-2', '2 2', '2, 2', '0x2', '', '18446744073709551616', '99999999999999999999999', '2.', '\xb2', '1e1'];
const ENCODINGS = ['Chunked', 'gzip, chunked', 'chunked, gzip', 'gzip', 'identity', 'xchunked', 'chunked;q=1', '', 'chunked, chunked', ',chunked', '"chunked"', 'chunked,', 'chunke d'];
const ODD_SIZES = ['', '', 'g', '0x2', ' 2', '2 ', '2 ;a', '-2', '00000000000000002', '0000000000000002', '10000000000000000', 'ffffffffffffffff'];
const EXTENSIONS = [';a', ';a=b', ';a="b;c"', ';a=b;c'];
const ODD_EXTENSIONS = [';', ';;', '; a = b', ';\xe9', ';a=\x01', ';a="\r"', ';a=b c'];
const TRAILERS = ['A: b', 'X-Digest:\t\xe9 ', 'Host: y', 'Connection: close'];
const ODD_TRAILERS = ['A : b', ' A: b', 'A', ': b', 'Content-Length: 5', 'Transfer-Encoding: chunked', 'A: b\0', 'A: b\n'];
const BYTES = ['\r', '\n', '\r\n', '\0', ' ', '\t', ':', ';', ',', '0', '1', 'a', '\x7f', '\x80', '\xff', '/', '#', '%'];
const LENGTH_IN_TRAILERS = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 1\r\n\r\n'
  + 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx';

// Returns a function that makes the next connection.
export function requestMaker(seed) {
  const { below, oneOf } = seededRandom(seed);
  const often = () => below(10) < 9;
  const rarely = () => below(25) === 0;
  const mix = (usual, odd) => oneOf(rarely() ? odd : usual);

  const crlf = () => (below(150) > 0 ? '\r\n' : oneOf(['\n', '\r', '\r\r\n', '\n\r', '-\n', '\r-', ' \r\n', '']));
  const space = () => (below(100) > 0 ? ' ' : oneOf(['  ', '\t', '']));
  const letters = (name) => (often() ? name : oneOf([name.toLowerCase(), name.toUpperCase()]));

  function chunk(text) {
    const digits = text.length.toString(16);
    const size = rarely() ? oneOf(ODD_SIZES) : rarely() ? digits.padStart(oneOf([16, 17, 20]), '0') : often() ? digits : `0${digits}`;
    const extension = below(8) > 0 ? '' : below(4) > 0 ? oneOf(EXTENSIONS) : oneOf(ODD_EXTENSIONS);
    return (often() ? size : size.toUpperCase()) + extension + crlf();
  }

  function chunks(body) {
    let text = '';
    for (let at = 0, n; at < body.length; at += n) {
      n = 1 + below(body.length - at);
      text += chunk(body.slice(at, at + n)) + body.slice(at, at + n) + (below(200) > 0 ? crlf() : '--');
    }
    text += chunk('');
    while (below(5) === 0) text += oneOf(below(3) > 0 ? TRAILERS : ODD_TRAILERS) + crlf();
    return text + crlf();
  }

  // Returns { fields, content }: how the body is announced, and the body as sent.
  function framing(method) {
    const body = oneOf(['', '{}', 'a=b', '\r\n\0\xff', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', '0\r\n\r\n', '\\', 'x'.repeat(300)]);
    if (often() && ['GET', 'HEAD', 'DELETE', 'OPTIONS'].includes(method)) return { fields: [], content: '' };
    const length = `${letters('Content-Length')}: ${often() ? '' : '0'}${body.length}${often() ? '' : oneOf([' ', '\t'])}`;
    const encoding = `${letters('Transfer-Encoding')}: chunked`;
    const fields = oneOf([[length], [encoding]]);
    const content = fields[0] === length ? body : chunks(body);
    if (below(8) > 0) return { fields, content };
    const odd = oneOf([
      () => [`Content-Length: ${oneOf(LENGTHS)}`],
      () => [`Transfer-Encoding: ${oneOf(ENCODINGS)}`],
      () => [`Transfer-Encoding: ${oneOf(['', 'gzip, chunked'])}`],
      () => [length, length],
      () => [length, `Content-Length: ${body.length + 1}`],
      () => [length, encoding],
      () => [encoding, length],
      () => [encoding, encoding],
      () => [`${oneOf(fields).replace(':', ' :')}`],
    ]);
    return { fields: odd(), content: below(2) ? body : chunks(body) };
  }

  function fieldsOf(method) {
    const { fields: list, content } = framing(method);
    const add = (field) => list.splice(below(list.length + 1), 0, field);
    if (below(40) > 0) add(`${letters('Host')}: ${mix(HOSTS, ODD_HOSTS)}`);
    if (below(60) === 0) add(`Host: ${oneOf(HOSTS)}`);
    for (let n = below(6); n > 0; n--) add(mix(FIELDS, ODD_FIELDS));
    while (below(5) === 0) add(`${letters('Connection')}: ${oneOf(CONNECTIONS)}`);
    while (below(20) === 0) add(`${letters('Expect')}: ${oneOf(EXPECTS)}`);
    if (below(50) === 0) ['Connection: upgrade', 'Upgrade: h2c'].forEach(add);
    if (below(100) === 0) add(`Proxy-Connection: ${oneOf(CONNECTIONS)}`);
    if (below(100) === 0) for (let n = 90 + below(15); n > 0; n--) add(`N: ${n}`);
    if (below(200) === 0) for (let n = 80 + below(4); n > 0; n--) add(`Long: ${'x'.repeat(194)}`);
    return { list, content };
  }

  function request() {
    const method = mix(METHODS, ODD_METHODS);
    const { list, content } = fieldsOf(method);
    const version = below(10) > 0 ? 'HTTP/1.1' : oneOf(ODD_VERSIONS);
    const target = method === 'OPTIONS' && below(3) === 0 ? '*' : mix(TARGETS, ODD_TARGETS);
    const line = method + space() + target + (version === '' ? '' : space() + version);
    const before = below(20) > 0 ? '' : oneOf(['\r\n', '\r\n\r\n', '\n', '\r', ' ']);
    return `${before}${line}${crlf()}${list.map((field) => field + crlf()).join('')}${crlf()}${content}`;
  }

  function changeBytes(text) {
    const at = below(text.length + 1);
    return oneOf([
      () => text.slice(0, at) + oneOf(BYTES) + text.slice(at),
      () => text.slice(0, at) + oneOf(BYTES) + text.slice(at + 1),
      () => text.slice(0, at) + text.slice(at + 1 + below(3)),
      () => text.slice(0, at) + String.fromCharCode(below(256)) + text.slice(at + 1),
      () => text.slice(0, at),
      () => text.slice(0, at) + text.slice(below(at + 1)),
    ])();
  }

  return function connection() {
    let text = below(300) > 0 ? request() : LENGTH_IN_TRAILERS + request();
    while (below(4) === 0) text += request();
    if (below(3) === 0) do text = changeBytes(text); while (below(3) === 0);
    return text;
  };
}
