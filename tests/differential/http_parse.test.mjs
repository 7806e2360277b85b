// Our request parser beside that of Node (llhttp), which is strict, widely used and none of our work: 20,000 random
// connections (requests.mjs).  Where both accept a request, they agree on every part of it, on where it ends and on whether
// another may follow.  Where they do not agree, one of the rules below must say why.  Repeat a run with HF_SEED.
// backends: own

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { METHODS } from 'node:http';
import path from 'node:path';
import { before, describe, it } from 'node:test';
import { nodeReads } from './node_parser.mjs';
import { requestMaker } from './requests.mjs';

const COUNT = 20_000;
const seed = Number(process.env.HF_SEED || 1);
const reader = path.join(path.dirname(process.env.HOLDFASTD ?? 'build/holdfastd'), 'tests/differential/read_requests');
// 6.01 in Node 18, 9.03 in Node 20.
const llhttp = process.versions.llhttp.split('.').map(Number).reduce((version, part, i) => (i < 2 ? version + part / 100 ** i : version), 0);
const LLHTTP_TRIED = 9.04; // the latest that the rules were tried with

// ---- the rules ----
// A rule is for differences where the more careful parser gave a reason that matches `refused` ("waiting" if it only waits for
// more), and `input` matches the text: for STRICTER that of the request in question and what follows it, for the others that of
// the whole connection.  Every rule must be needed: the test fails if one never applies.  Those with `until` or `since` are
// for versions of llhttp before that one or from that one on; versions that nobody tried yet need not show every rule.

const HOST = String.raw`(\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(:\d{0,5})?`;

// Where Node accepts more.
const STRICTER = [
  { name: 'single spaces separate the parts of a request line', rfc: 'RFC 9112, 3',
    why: 'lenient splitting makes two readers see different targets', refused: /printable ASCII|must end in HTTP/, input: /^\s*\S+ ( |\S+  )/ },
  { name: 'a target has no fragment', rfc: 'RFC 9112, 3.2',
    why: 'one reader might cut the path at the #', refused: /printable ASCII/, input: /^\s*\S+ [^\s#]+#/ },
  { name: 'a target is printable ASCII', rfc: 'RFC 3986, 2', until: 9,
    why: 'readers differ in what they make of other bytes', refused: /printable ASCII/, input: /^\s*\S+ [^ \r\n]*[\t\f\x80-\xff]/ },
  { name: 'a target is a path, a URL of HTTP, or * for OPTIONS', rfc: 'RFC 9112, 3.2',
    why: 'other forms are for proxies', refused: /must be a path or a URL/, input: /^\s*\S+ (?!\/|https?:\/\/)/i },
  { name: 'a URL has a host and no user', rfc: 'RFC 9110, 4.2.1 and 4.2.4',
    why: 'the host replaces that of Host', refused: /has no valid host/, input: new RegExp(`^\\s*\\S+ https?://(?!${HOST}[/? ])`, 'i') },
  { name: 'the version is one of HTTP/1', rfc: 'RFC 9110, 2.5',
    why: 'Node reads HTTP/0.9, ICE and the name of HTTP/2 as if they were HTTP/1', refused: /^refused 505|must end in HTTP/, input: /^\s*\S+ \S+( HTTP\/[02]\.\d| ICE\/1\.\d)?\r?\n/ },
  { name: 'every line ends in CRLF', rfc: 'RFC 9112, 2.2',
    why: 'a CR or LF by itself ends no line, not even an empty one before a request', refused: /end in CR and LF|begin with a method|a name|name of a trailer|^waiting/, input: /(^|[^\r])\n|\r(?!\n)/ },
  { name: 'the data of a chunk ends in CRLF', rfc: 'RFC 9112, 7.1', until: 9,
    why: 'Node skips two bytes, whatever they are', refused: /line of a chunked body/, input: /^transfer-encoding:/im },
  { name: 'Host is there', rfc: 'RFC 9112, 3.2', why: 'the server must answer 400', refused: /Host is missing/, input: /^\s*\S.* HTTP\/1\.[1-9]\r\n((?!host:).+\r\n)*\r\n/i },
  { name: 'Host is there once', rfc: 'RFC 9112, 3.2', why: 'the server must answer 400', refused: /only one Host/, input: /^host:.*\r\n(.+\r\n)*host:/im },
  { name: 'Host is a host', rfc: 'RFC 9112, 3.2', why: 'the server must answer 400', refused: /Host must be a host/, input: new RegExp(`^host:(?![ \t]*(${HOST})?[ \t]*\r\n)`, 'im') },
  { name: 'the only encoding is chunked', rfc: 'RFC 9112, 6.1 and 6.3',
    why: 'a body in an unknown encoding would be taken for the content', refused: /^refused 501|last Transfer-Encoding/, input: /^transfer-encoding:(?!\s*chunked\s*\r\n)/im },
  { name: 'HTTP/1.0 has no encodings', rfc: 'RFC 9112, 6.1',
    why: 'a proxy of that version would not know where the body ends', refused: /HTTP\/1\.0 has no/, input: /^.* HTTP\/1\.0\r\n(.+\r\n)*transfer-encoding:/im },
  { name: 'an expectation beside 100-continue is not met', rfc: 'RFC 9110, 10.1.1',
    why: 'Node looks for 100-continue anywhere in the values', refused: /^refused 417/, input: /^expect:[^]*100-continue/im },
  { name: 'the length of a chunk has at most 16 digits', rfc: 'RFC 9112, 7.1',
    why: 'it cannot overflow then; nobody sends more', refused: /length of a chunk/, input: /^0[0-9a-f]{16,}/im },
  { name: 'a head has at most 100 fields', rfc: 'RFC 9110, 5.4', why: 'everything has a limit; Node has 2,000', refused: /^refused 431/, input: /^(\r\n)*(.+\r\n){102}/ },
  { name: 'a head has at most 16,384 bytes with its line ends', rfc: 'RFC 9110, 5.4', why: 'Node counts names and values alone', refused: /^refused 431/, input: /^[^]{16384}/ },
  { name: 'a name is a token and the colon follows', rfc: 'RFC 9112, 5.1', until: 9,
    why: 'the white space was used to smuggle requests', refused: /header must be a name|name of a trailer/, input: /^([^\n:]* [^\n:]*)?:/m },
  { name: 'no line begins with white space', rfc: 'RFC 9112, 2.2', until: 9,
    why: 'readers differ in what they make of it', refused: /must not be folded/, input: /^[ \t]/m },
];

// Where we accept more.
const LENIENT = [
  { name: 'any token is a method', rfc: 'RFC 9110, 9.1', why: 'the application answers 405; Node has a list', refused: /HPE_INVALID_METHOD/, input: /^/, request: ({ method }) => /^[\w!#$%&'*+.^`|~-]+$/.test(method) && !METHODS.includes(method) },
  { name: 'a later HTTP/1.x is read as HTTP/1.1', rfc: 'RFC 9110, 2.5', why: 'minor versions are compatible', refused: /HPE_INVALID_VERSION/, input: /^.* HTTP\/1\.[2-9]\r/m, request: ({ version }) => version === '1.1' },
  { name: 'a tab may follow a length', rfc: 'RFC 9110, 5.5', until: 9.04, why: 'it is no part of the value', refused: /HPE_INVALID_CONTENT_LENGTH/, input: /^content-length:\s*\d+ *\t\s*\r\n/im },
  { name: 'chunk extensions are ignored', rfc: 'RFC 9112, 7.1.1', since: 9,
    why: 'whatever they are, the line ends at its CRLF', refused: /HPE_STRICT/, input: /^[0-9a-f]+;/im },
  { name: 'trailers are ignored', rfc: 'RFC 9110, 6.5.1',
    why: 'framing that comes after the body frames nothing', refused: /_CONTENT_LENGTH|_TRANSFER_ENCODING|CLOSED_CONNECTION|^waiting/, input: /^0+(;.*)?\r\n(.+\r\n)*(content-length|transfer-encoding|connection):/im },
  { name: 'Upgrade is ignored', rfc: 'RFC 9110, 7.8', why: 'Node reads nothing more after it, though nobody upgrades', refused: /^waiting/, input: /^(proxy-)?connection:.*upgrade/im },
];

// Where both accept, and do not agree on the body.
const BODY = [
  { name: 'a length among the trailers counts for nothing', rfc: 'RFC 9110, 6.5.1', until: 9, why: 'Node puts it before the digits of the next length',
    input: /^0+(;.*)?\r\n(.+\r\n)*content-length:[^]*content-length:/im },
];

// Where both accept, and do not agree on whether another request may follow.
const PERSISTENCE = [
  { name: 'close wins over keep-alive in HTTP/1.0 too', rfc: 'RFC 9112, 9.3', why: 'Node asks for close in HTTP/1.1 only', input: /^.* HTTP\/1\.0\r\n(.+\r\n)*connection:.*close/im },
  { name: 'Proxy-Connection means nothing', rfc: 'RFC 9112, C.2.2', why: 'Node reads it as Connection', input: /^proxy-connection:.*(close|keep-alive)/im },
];

// ---- reading ----

const unescaped = (text) => text.replace(/\\x(..)/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));

// A transcript (tests/support/transcript.h) as what nodeReads returns.
function parseTranscript(text) {
  const result = { requests: [], refused: undefined };
  for (const line of text.split('\n').slice(0, -1)) {
    const request = result.requests.at(-1);
    const [word, ...rest] = line.split(' ');
    if (word === 'refused') result.refused = line;
    else if (word === '.') result.begun = Number(rest[0]);
    else if (word === 'incomplete' || word === 'path' || word === 'host') continue;
    else if (word === 'body') request.body = unescaped(line.slice(5));
    else if (word === 'end') request.ended = true;
    else if (request && !request.ended) request.fields.push(/^(.*?): (.*)$/s.exec(line).slice(1));
    else {
      const [target, version, persists, expects] = rest;
      result.requests.push({ method: word, target, version, fields: [], body: '', persists: persists === 'persists', expects: expects === 'expects', ended: false });
    }
  }
  return result;
}

function weRead(inputs) {
  const sizes = inputs.map((input) => new Uint8Array(new Uint32Array([input.length]).buffer));
  const { status, stdout, stderr, error } = spawnSync(reader, { input: Buffer.concat(inputs.flatMap((input, i) => [sizes[i], input])), maxBuffer: 2 ** 30 });
  assert.equal(status, 0, `${reader}: ${error ?? stderr}`);
  const transcripts = stdout.toString('latin1').split(/(?<=^\. \d+\n)/m);
  assert.equal(transcripts.length, inputs.length);
  return transcripts.map(parseTranscript);
}

// ---- comparing ----

const trimmed = ([name, value]) => [name, value.replace(/^[ \t]+|[ \t]+$/g, '')];
const headOf = ({ method, target, version, fields, expects }) => ({ method, target, version, expects, fields: fields.map(trimmed) });
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// How far request `i` has come: 2 if it is complete, 1 if its head is, or else 0.
const levelOf = ({ requests }, i) => (requests[i] ? 1 : 0) + (requests[i]?.ended ? 1 : 0);

// Returns { verdict: 'accepted' | 'refused' | 'waiting' } if the two agree, or else { verdict: 'differs', kind, ... }.
function compare(ours, theirs) {
  for (let i = 0; ; i++) {
    const [our, their] = [ours.requests[i], theirs.requests[i]];
    const [ourLevel, theirLevel] = [levelOf(ours, i), levelOf(theirs, i)];
    const differs = (kind, refused) => ({ verdict: 'differs', kind, refused, request: our });
    if (our && their && !same(headOf(our), headOf(their))) return differs('head');
    if (our && their && our.persists !== their.persists) return differs('persistence');
    if (ourLevel < 2 && theirLevel < 2 && ours.refused && theirs.refused) return { verdict: 'refused' };
    if (ourLevel < theirLevel) return differs('stricter', ours.refused ?? 'waiting');
    if (ourLevel > theirLevel) return differs('lenient', theirs.refused ?? 'waiting');
    if (ourLevel < 2) return { verdict: i > 0 && !our && !ours.refused && !theirs.refused ? 'accepted' : 'waiting' };
    if (our.body !== their.body) return differs('body');
    if (!our.persists) return { verdict: 'accepted' };
  }
}

const RULES = { stricter: STRICTER, lenient: LENIENT, body: BODY, persistence: PERSISTENCE };

function ruleFor(text, { kind, refused, request }) {
  return RULES[kind]?.find((rule) => rule.input.test(text) && (rule.refused?.test(refused) ?? true) && (rule.request?.(request) ?? true));
}

describe(`the request parser and Node's, seed ${seed}`, () => {
  const counts = { accepted: 0, refused: 0, waiting: 0, differs: 0 };
  const hits = new Map();
  const unexplained = [];

  before(async () => {
    const connection = requestMaker(seed);
    const texts = Array.from({ length: COUNT }, connection);
    const inputs = texts.map((text) => Buffer.from(text, 'latin1'));
    const [ours, theirs] = [weRead(inputs), await nodeReads(inputs)];
    texts.forEach((text, i) => {
      const result = compare(ours[i], theirs[i]);
      counts[result.verdict]++;
      if (result.verdict !== 'differs') return;
      const rule = ruleFor(result.kind === 'stricter' ? text.slice(ours[i].begun) : text, result);
      if (rule) hits.set(rule, (hits.get(rule) ?? 0) + 1);
      else unexplained.push({ kind: result.kind, text, ours: ours[i], theirs: theirs[i] });
    });
  });

  it('agree on every request, or a rule says why not', () => {
    const show = ({ kind, text, ours, theirs }) => `${kind}: ${JSON.stringify(text.slice(0, 2000))}\nours ${JSON.stringify(ours)}\nNode's ${JSON.stringify(theirs)}`;
    assert.ok(unexplained.length === 0, `${unexplained.length} differences, the first of them:\n${unexplained.slice(0, 3).map(show).join('\n')}`);
  });

  it('are asked to accept and to refuse thousands', () => {
    assert.ok(counts.accepted >= 5000 && counts.refused >= 3000, JSON.stringify(counts));
  });

  for (const [kind, rules] of Object.entries(RULES)) {
    it(`differ by every rule of the list "${kind}"`, () => {
      for (const rule of rules) console.log(`${String(hits.get(rule) ?? 0).padStart(5)}  ${rule.name} (${rule.rfc}: ${rule.why})`);
      const idle = rules.filter((rule) => !hits.has(rule) && llhttp <= LLHTTP_TRIED && !(llhttp >= rule.until) && !(llhttp < rule.since));
      assert.deepEqual(idle.map(({ name }) => name), []);
    });
  }
});
