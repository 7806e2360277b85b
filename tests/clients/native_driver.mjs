// The driver of what is written in C, for the scenarios of clients/conformance: locks are libholdfast's (lock_driver.c, to
// which requests are passed on as they are), and the calls of the API are commands of `holdfast`.

import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';

const HOLDFAST = path.resolve(fileURLToPath(new URL('../..', import.meta.url)), process.env.HOLDFAST ?? 'build/holdfast');
const ENVIRONMENT = { ...process.env, ASAN_OPTIONS: [process.env.ASAN_OPTIONS, 'detect_leaks=0'].filter(Boolean).join(':') };

// What scenarios may need and is not there, with the reason; `needsOf` in scenario.mjs has the names.
const NO_COMMAND = 'no command of holdfast asks for it';
const LACKS = {
  stream: 'holdfast event watch does not tell when it has begun',
  'several servers': 'the commands on a server are given one URL', map: 'a command keeps no map', watch: 'holdfast elect --observe looks at a lock and does not follow it',
  follow: 'a command follows no entry',
  'waitlist.create': 'buyers wait for places, and operators of the command do not', 'waitlist.leave': 'the same',
  webhook: 'libholdfast reads no notifications', block: 'no event loop: a thread that is blocked blocks no other',
  'check_fence postgres': 'share/holdfast/fence.sql is the guard, without a helper',
  'lock error.status': 'libholdfast has results and no HTTP statuses', 'lock error.extra': 'a fault of libholdfast is a sentence',
  'events.plan': NO_COMMAND, 'events.seat': NO_COMMAND, 'events.heat': NO_COMMAND, 'events.check': NO_COMMAND, 'events.revenue': NO_COMMAND, 'idempotency.get': NO_COMMAND, 'owners.erase': NO_COMMAND,
  'server.health': NO_COMMAND, 'sessions.open': NO_COMMAND, 'holds.list cursor': 'lists are read page by page to their end', 'bookings.create holds': 'a booking takes one hold',
  'holds.create colour': 'no option makes a field that the API does not have',
  'errors: say that a page or a redirection is no answer of Holdfast': 'the command says so in words alone',
  'cells: keep locks when the master is killed': 'a call of libholdfast that does not wait asks once, and there is no master yet',
};

// ---- commands ----

const option = (name) => (value) => [`--${name}`, `${value}`];
const flag = (name) => (value) => (value ? [`--${name}`] : []);
const repeated = (name) => (values) => values.flatMap((value) => [`--${name}`, value]);
const counted = (name) => (values) => Object.entries(values).flatMap(([place, n]) => [`--${name}`, `${place}=${n}`]);
const places = (name) => ({ seats = [], areas = {} }) => [...repeated(name)(seats), ...counted(`${name}-area`)(areas)];
const OPTIONS = {
  ...Object.fromEntries(['status', 'owner', 'limit', 'fence', 'reference', 'email', 'amount', 'reason', 'channel', 'seat', 'hold', 'after'].map((name) => [name, option(name)])),
  seats: (seats) => seats, sections: repeated('section'), areas: counted('area'), add: places('add'), remove: places('remove'),
  resume: flag('resume'), rescue: flag('rescue'), upcoming: flag('upcoming'),
  types: (types) => Object.entries(types).flatMap(([seat, type]) => ['--type', `${seat}=${type}`]),
  ttl_ms: (ms) => ['--ttl', `${ms}ms`], metadata: (value) => ['--metadata', JSON.stringify(value)],
  best_available: ({ quantity, section, tier, category, accessible, adjacent }) => [
    '--best', `${quantity}`, ...Object.entries({ section, tier, category }).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value])),
    ...flag('accessible')(accessible), ...flag('scattered')(adjacent === false)],
};
const COMMANDS = {
  'events.list': 'event list', 'events.get': 'event show', 'events.seats': 'event map', 'events.close': 'event close', 'events.open': 'event open',
  'events.archive': 'event archive', 'events.cancel': 'event cancel', 'events.block': 'event block', 'events.unblock': 'event unblock',
  'events.create': 'event create', 'events.change': 'event set',
  'holds.list': 'hold list', 'holds.create': 'hold create', 'holds.get': 'hold show', 'holds.change': 'hold change', 'holds.release': 'hold release',
  'holds.renew': 'hold renew', 'holds.confirm': 'hold confirm', 'holds.evict': 'hold evict',
  'waitlist.list': 'waitlist list', 'waitlist.get': 'waitlist show', 'waitlist.first': 'waitlist first', 'waitlist.evict': 'waitlist remove',
  'waitlist.pause': 'waitlist pause', 'waitlist.resume': 'waitlist resume',
  'bookings.list': 'booking list', 'bookings.create': 'booking create', 'bookings.get': 'booking show', 'bookings.cancel': 'booking cancel',
  'bookings.refund': 'booking refund', 'refunds.list': 'refund list', 'notifications.list': 'notification list', 'audit.list': 'audit',
};
const OPERANDS = { 'holds.list': 'event', 'holds.create': 'event', 'audit.list': 'event', 'bookings.create': 'hold' };
const AS_FILE = ['events.create', 'events.change'];

// The words of a command, and what it reads.
function wordsOf(call, { id, ...fields }) {
  const words = COMMANDS[call].split(' ');
  if (AS_FILE.includes(call)) return { words: [...words, ...(id ? [id] : []), '--file', '-'], input: JSON.stringify(fields) };
  const { [OPERANDS[call]]: operand = id, ...rest } = fields;
  const unknown = Object.keys(rest).find((name) => name !== 'event' && !OPTIONS[name]);
  if (unknown) throw new Error(`the command has no option for ${unknown}`);
  const given = Object.entries(rest).flatMap(([name, value]) => (name === 'event' ? option('event')(value) : OPTIONS[name](value)));
  return { words: [...words, ...(operand ? [operand] : []), ...given] };
}

// Runs holdfast to its end; resolves to { code, stdout, stderr }.
function run(words, { env = {}, input = '' } = {}) {
  return new Promise((resolve) => {
    const child = execFile(HOLDFAST, words, { env: { ...ENVIRONMENT, ...env }, maxBuffer: 1 << 26 },
      (error, stdout, stderr) => resolve({ code: error ? error.code : 0, stdout, stderr }));
    child.stdin.on('error', () => {}); // it does not read
    child.stdin.end(input);
  });
}

// What exit statuses say by themselves, where the answer is no problem of the server's.
const EXITS = { 2: ['NotFound', 'not_found'], 69: ['Unavailable', 'unreachable'], 75: ['OutcomeUnknown', 'outcome_unknown'], 76: ['StaleFence', 'stale_fence'] };
const CLASSES = { 404: 'NotFound', 409: 'Conflict', 410: 'Gone', 422: 'Conflict', 429: 'Unavailable', 502: 'Unavailable', 503: 'Unavailable', 504: 'Unavailable' };

function errorOf({ code, stdout, stderr }) {
  const [exitClass, exitCode] = EXITS[code] ?? ['HoldfastError', `exit_${code}`];
  const said = { class: exitClass, code: /timed out/.test(stderr) ? 'timeout' : exitCode, status: Number(/ with status (\d+) /.exec(stderr)?.[1]) || null, detail: stderr.replace(/^holdfast [a-z]+: /, '').trim(), retry_after: null, extra: {} };
  const { type, title, request_id: _, status, code: problem, detail, ...extra } = parsed(stdout) ?? {};
  if (typeof problem !== 'string' || code === 75) return said;
  const retryAfter = extra.retry_after_ms === undefined ? null : extra.retry_after_ms / 1000;
  return { class: CLASSES[status] ?? 'HoldfastError', code: problem, status, detail, retry_after: retryAfter, extra };
}

function parsed(text) {
  try { return JSON.parse(text); } catch { return null; }
}

const judged = (result, value) => (result.code === 0 ? { value } : { error: errorOf(result) });

// ---- requests ----

const clients = new Map(); // name -> { env, timeout } of its commands

const operations = {
  lacks: async () => ({ value: LACKS }),
  async call({ client, call, args = {}, options = {} }) {
    const { words, input } = wordsOf(call, args);
    const { env, timeout: always } = clients.get(client);
    const { timeout = always, idempotency_key: key } = options;
    const more = [...(timeout ? ['--timeout', `${Math.round(timeout * 1000)}ms`] : []), ...(key ? ['--idempotency-key', key] : [])];
    const result = await run([...words, '--json', ...more], { input, env });
    return judged(result, result.stdout === '' ? null : parsed(result.stdout));
  },
  async check_fence({ database, resource, fence }) {
    return judged(await run(['fence', 'check', '--sqlite', database.replace('sqlite:', ''), resource, `${fence}`]), null);
  },
};

const locks = spawn(path.join(path.dirname(HOLDFAST), 'tests/clients/lock_driver'), { stdio: ['pipe', 'pipe', 'inherit'], env: ENVIRONMENT });
locks.on('close', (code) => process.exit(code ?? 1));
readline.createInterface({ input: locks.stdout }).on('line', (line) => process.stdout.write(`${line}\n`));

async function carryOut(line) {
  const { id, op, ...request } = JSON.parse(line);
  if (op === 'client') {
    const { urls: [url], options: { key = '', timeout } = {} } = request;
    clients.set(request.name, { env: { HOLDFAST_SERVER: url, HOLDFAST_KEY: key }, timeout });
  }
  const isOfLocks = op === 'call' && request.call.startsWith('locks.');
  if (!Object.hasOwn(operations, op) || isOfLocks) return void locks.stdin.write(`${line}\n`);
  const answer = await operations[op](request).catch((error) => ({ error: { class: 'Usage', code: 'usage', detail: error.stack } }));
  process.stdout.write(`${JSON.stringify({ id, ...answer })}\n`);
}

readline.createInterface({ input: process.stdin }).on('line', carryOut).on('close', () => locks.stdin.end());
