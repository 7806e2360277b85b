// `holdfast event`, `hold`, `booking` and `audit`: a shop's day by hand, over HTTP.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { once } from 'node:events';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { begin, freePort, holdfast } from '../support/cli.mjs';
import { HOLDFAST, reap, removeTempDir, start, tempDir, until } from '../support/server.mjs';

const ADMIN = 'an-admin-key-for-the-commands';
const SELLER = 'a-seller-key-for-the-commands';
const admin = { Authorization: `Bearer ${ADMIN}` };

let server;
let dir;
before(async () => {
  server = await start({ env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER } });
  dir = tempDir();
});
after(async () => {
  await server.stop();
  await reap();
  removeTempDir(dir);
});

const url = () => `http://${server.host}:${server.port}`;
const env = (fields = {}) => ({ HOLDFAST_SERVER: url(), HOLDFAST_KEY: ADMIN, ...fields });
const command = (args, options = {}) => holdfast(undefined, args, { ...options, env: env(options.env) });

async function ok(...args) {
  const { code, stdout, stderr } = await command(args);
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
  assert.equal(stderr, '');
  return stdout;
}
// A list without rows: standard output stays empty, for scripts, and people are told.
async function empty(...args) {
  const { code, stdout, stderr } = await command(args);
  assert.deepEqual([code, stdout, stderr], [0, '', `holdfast ${args[0]} ${args[1]}: nothing found\n`]);
}
const okJson = async (...args) => JSON.parse(await ok(...args, '--json'));
async function refused(code, pattern, args, options) {
  const answer = await command(args, options);
  assert.equal(answer.code, code, `${args.join(' ')}: ${answer.stderr}`);
  assert.match(answer.stderr, pattern);
  assert.equal(answer.stdout, '');
}

const createEvent = () => okJson('event', 'create', '--name', 'Gala', '--currency', 'usd',
  '--section', 'S:2x10:1000:A', '--area', 'Floor:50:300', '--hold-ttl', '5m', '--max-per-hold', '4');

// A server in front of `server`.  `on(req, res)` may answer in its place, or return 'lose', and then the
// client never gets the answer that the server gave.
async function startFront(on) {
  const seen = [];
  const front = http.createServer(async (req, res) => {
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    seen.push({ method: req.method, url: req.url, key: req.headers['idempotency-key'], last: req.headers['last-event-id'] });
    const what = on(req, res, seen.length);
    if (what === 'answered') return;
    const upstream = http.request({ host: server.host, port: server.port, method: req.method, path: req.url, headers: req.headers }, (answer) => {
      if (what === 'lose') {
        answer.resume();
        answer.on('end', () => req.socket.destroy());
        return;
      }
      res.writeHead(answer.statusCode, answer.headers);
      res.flushHeaders();
      answer.pipe(res);
      res.on('close', () => upstream.destroy());
    });
    upstream.on('error', () => {});
    upstream.end(Buffer.concat(chunks));
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  return {
    seen, url: `http://127.0.0.1:${front.address().port}`,
    close() { front.close(); front.closeAllConnections(); },
  };
}

describe('a shop\'s day', () => {
  it('is done by commands, from the event to the audit', async () => {
    const event = await createEvent();
    assert.deepEqual([event.name, event.capacity, event.hold_ttl_ms, event.max_per_hold], ['Gala', 70, 300_000, 4]);
    assert.deepEqual(event.sections, [{ name: 'S', tier: 'A', price: 1000, rows: 2, seats_per_row: 10 }]);
    const hold = await okJson('hold', 'create', event.id, 'S-A-1', 'S-A-2', '--area', 'Floor=1', '--owner', 'ann', '--ttl', '90s',
      '--metadata', '{"shop":"web"}');
    assert.deepEqual([hold.seats, hold.areas, hold.owner, hold.expires_in_ms], [['S-A-1', 'S-A-2'], { Floor: 1 }, 'ann', 90_000]);
    const best = await okJson('hold', 'create', event.id, '--best', '2', '--tier', 'A');
    assert.equal(best.seats.length, 2);
    const renewed = await okJson('hold', 'renew', hold.id, '--ttl', '2m');
    assert.ok(renewed.expires_at > hold.expires_at);
    const booking = await okJson('hold', 'confirm', hold.id, '--fence', `${hold.fence}`, '--reference', 'order-42');
    assert.equal(booking.reference, 'order-42');
    assert.equal((await okJson('booking', 'show', booking.id)).status, 'confirmed');
    assert.equal(await ok('hold', 'release', best.id), '');
    assert.match(await ok('hold', 'show', best.id), /^status +released$/m);
    const other = await okJson('hold', 'create', event.id, '--best', '1');
    assert.equal((await okJson('hold', 'evict', other.id)).status, 'released');
    assert.deepEqual((await okJson('event', 'block', event.id, 'S-B-9', 'S-B-10')).seats, ['S-B-9', 'S-B-10']);
    assert.deepEqual((await okJson('event', 'unblock', event.id, 'S-B-9')).status, 'available');
    assert.equal((await okJson('event', 'close', event.id)).status, 'closed');
    await refused(1, /^holdfast hold create: .*\(409 event_closed\)/, ['hold', 'create', event.id, 'S-B-1']);
    assert.equal((await okJson('event', 'open', event.id)).status, 'open');
    const map = await ok('event', 'map', event.id);
    assert.match(map, /^S {2}price 1000\n {2}A {2}bb\.+\n {2}B {2}\.{9}x\nname +price +capacity +available\nFloor +300 +50 +49$/m);
    const audit = await ok('audit', event.id);
    assert.deepEqual(audit.trim().split('\n').slice(1).map((line) => Number(line.split(' ')[0])),
      Array.from({ length: audit.trim().split('\n').length - 1 }, (_, n) => n + 1));
    assert.match(audit, /^\d+ +\S+ +block +seat +S-B-10 /m);
    assert.match(audit, /^\d+ +\S+ +block +seat .* key:admin /m);
  });

  it('tells the ticket types of places in the audit', async () => {
    const event = await okJson('event', 'create', '--name', 'Gala', '--currency', 'usd', '--section', 'S:1x5:1000', '--area', 'Floor:50:300',
      '--type', 'full', '--type-price', 'child:S=100');
    await okJson('hold', 'create', event.id, 'S-A-1', 'S-A-2', '--type', 'S-A-2=child', '--area', 'Floor=2:child');
    const rows = (await ok('audit', event.id)).trimEnd().split('\n').map((line) => line.split(/ +/));
    const type = rows[0].indexOf('type');
    assert.deepEqual(rows.slice(1).map((row) => [...row.slice(3, 7), row[type]].join(' ')),
      ['event - - - -', 'hold - - 4 -', 'seat S-A-1 - 1 full', 'seat S-A-2 - 1 child', 'area - Floor 2 child']);
  });

  it('has changes of mind: other terms, other seats, house seats, and sales that are undone', async () => {
    const event = await createEvent();
    const set = await okJson('event', 'set', event.id, '--name', 'Gala II', '--venue', 'Hall', '--price', 'S=1500', '--starts-at', '2030-01-01T19:00:00Z',
      '--max-per-owner', '5', '--metadata', '{"a":"b"}', '--timezone', 'Europe/Berlin', '--doors-at', '2030-01-01T19:30:00+01:00', '--image', '/a.jpg');
    assert.deepEqual([set.timezone, set.doors_at, set.image], ['Europe/Berlin', '2030-01-01T19:30:00.000+01:00', '/a.jpg']);
    assert.ok((await ok('event', 'list', '--upcoming')).includes(event.id));
    assert.deepEqual([set.name, set.venue, set.max_per_owner, set.starts_at, set.metadata], ['Gala II', 'Hall', 5, '2030-01-01T19:00:00.000Z', { a: 'b' }]);
    const unset = await okJson('event', 'set', event.id, '--venue', 'none', '--max-per-owner', 'none', '--metadata', 'none');
    assert.deepEqual([unset.venue, unset.max_per_owner, unset.metadata], [null, null, null]);
    const hold = await okJson('hold', 'create', event.id, 'S-A-1', 'S-A-2', '--owner', 'ann');
    assert.equal(hold.amount, 3000);
    const changed = await okJson('hold', 'change', hold.id, '--fence', `${hold.fence}`, '--add', 'S-A-3', '--remove', 'S-A-1', '--add-area', 'Floor=1');
    assert.deepEqual([changed.id, changed.seats, changed.areas], [hold.id, ['S-A-2', 'S-A-3'], { Floor: 1 }]);
    assert.ok(changed.fence > hold.fence);
    await refused(1, /409 stale_fence/, ['hold', 'change', hold.id, '--fence', `${hold.fence}`, '--add', 'S-A-4']);
    const resumed = await okJson('hold', 'create', event.id, 'S-A-2', 'S-A-3', '--area', 'Floor=1', '--owner', 'ann', '--resume');
    assert.equal(resumed.id, hold.id);
    assert.match(await ok('hold', 'list', event.id, '--owner', 'ann'), new RegExp(`^${hold.id} +active`, 'm'));

    await ok('event', 'block', event.id, 'S-B-1', 'S-B-2', '--area', 'Floor=10', '--channel', 'house');
    await refused(1, /409 seat_taken/, ['hold', 'create', event.id, 'S-B-1']);
    const house = await okJson('hold', 'create', event.id, 'S-B-1', '--channel', 'house');
    const booking = await okJson('hold', 'confirm', house.id, '--fence', `${house.fence}`, '--reference', 'house 1');
    const found = (await ok('booking', 'list', '--event', event.id, '--reference', 'house 1')).trim().split('\n');
    assert.equal(found.length, 2);
    assert.match(found[1], / confirmed .* S-B-1 .* house 1 /);
    assert.equal((await okJson('booking', 'cancel', booking.id, '--reason', 'rain')).status, 'cancelled');
    await empty('booking', 'list', '--event', event.id, '--status', 'confirmed');
    assert.equal((await okJson('event', 'archive', event.id)).status, 'archived');
    assert.ok(!(await ok('event', 'list')).includes(event.id));
  });

  it('has payments: bookings, refunds, and events that are cancelled', async () => {
    const event = await createEvent();
    const hold = await okJson('hold', 'create', event.id, 'S-A-1', '--owner', 'ann');
    const key = 'the-key-of-this-booking';
    const booking = await okJson('booking', 'create', hold.id, '--email', 'ann@shop.example', '--reference', 'order-7', '--idempotency-key', key);
    assert.deepEqual([booking.status, booking.reference, booking.payment.provider], ['pending', 'order-7', 'sandbox']);
    const again = await okJson('booking', 'create', hold.id, '--email', 'ann@shop.example', '--reference', 'order-7', '--idempotency-key', key);
    assert.equal(again.id, booking.id);
    await refused(1, /409 booking_exists/, ['booking', 'create', hold.id]);
    const { payment } = await until('it can be paid', async () => {
      const now = await okJson('booking', 'show', booking.id);
      return now.payment.client_secret && now;
    });
    const paid = await fetch(`${payment.api}/v1/payment_intents/${payment.intent}/confirm`, {
      method: 'POST',
      body: new URLSearchParams({ key: payment.publishable_key, client_secret: payment.client_secret, payment_method: 'pm_card_visa' }),
    });
    assert.equal(paid.status, 200, await paid.text());
    const shows = (pattern) => until(`it shows ${pattern}`, async () => pattern.test(await ok('booking', 'show', booking.id)));
    await shows(/^status +confirmed$/m);
    assert.equal((await okJson('booking', 'refund', booking.id, '--amount', '250')).payment.status, 'refunding');
    await refused(1, /409 not_refundable/, ['booking', 'refund', booking.id, '--amount', '751']);
    await shows(/amount=10\.00 .*amount_refunded=2\.50/);
    const list = await ok('refund', 'list', '--status', 'succeeded');
    assert.match(list, new RegExp(`^number +status +amount +currency .*\n${booking.number} +succeeded +2\\.50 +usd `));
    await empty('refund', 'list', '--status', 'owed');
    await empty('notification', 'list', '--limit', '5');
    assert.equal((await okJson('event', 'cancel', event.id)).status, 'cancelled');
    await until('it is refunded', async () => /bookings_cancelled=1 .*refunds_done=2 /.test(await ok('event', 'show', event.id)));
    await shows(/^status +cancelled$/m);
  });

  it('has waiting lists: who waits, and the next turn', async () => {
    const event = await okJson('event', 'create', '--name', 'Gala', '--currency', 'usd', '--area', 'Floor:1:300', '--waitlist', '{"per_owner":2}');
    assert.deepEqual([event.waitlist.per_owner, event.waitlist.paused], [2, false]);
    await empty('waitlist', 'list', '--event', event.id);
    const hold = await okJson('hold', 'create', event.id, '--area', 'Floor=1');
    const join = async (owner) => (await server.post('/v1/waitlist', { event: event.id, areas: { Floor: 1 }, owner })).json.id;
    const [ann, ben] = [await join('ann'), await join('ben')];
    assert.match(await ok('waitlist', 'list', '--event', event.id), new RegExp(`^id +number +status .*\n${ben} +2 +waiting .*Floor=1 +ben .*\n${ann} +1 +waiting`));
    assert.equal((await okJson('waitlist', 'first', ben)).status, 'waiting');
    assert.equal((await okJson('waitlist', 'pause', event.id)).waitlist.paused, true);
    assert.equal((await okJson('waitlist', 'resume', event.id)).waitlist.paused, false);
    await ok('hold', 'release', hold.id);
    await until('it is offered', async () => (await okJson('waitlist', 'show', ben)).status === 'offered');
    assert.equal((await okJson('waitlist', 'remove', ben)).status, 'lapsed');
    await refused(1, /409 not_waiting/, ['waitlist', 'first', ben]);
    await until('the next is offered', async () => (await ok('waitlist', 'list', '--owner', 'ann', '--status', 'offered')).includes(ann));
    assert.equal((await okJson('event', 'set', event.id, '--waitlist', 'none')).waitlist, null);
  });

  it('is shown as aligned text, without what a terminal would obey', async () => {
    const event = await okJson('event', 'create', '--name', 'A\u001b[2Jrtä\u009b', '--currency', 'eur', '--area', 'Floor:5:1');
    const list = (await ok('event', 'list')).split('\n');
    const line = list.find((text) => text.startsWith(event.id));
    assert.ok(line.endsWith('A?[2Jrtä?'), line);
    assert.equal(line.indexOf('A?'), list[0].indexOf('name'));
    const shown = await ok('event', 'show', event.id);
    const at = (name) => new RegExp(`^${name} +`, 'm').exec(shown)[0].length;
    for (const name of ['id', 'status', 'currency']) assert.equal(at(name), at('hold_max_ms'), name);
    assert.ok(!shown.includes('\u001b'));
  });

  it('prints the server\'s JSON byte by byte', async () => {
    const event = await createEvent();
    const target = `/v1/events/${event.id}`;
    for (const [args, path_] of [[['event', 'show', event.id], target], [['event', 'map', event.id], `${target}/seats`],
      [['audit', event.id], `/v1/audit?event=${event.id}&limit=1000`]]) {
      assert.equal(await ok(...args, '--json'), `${(await server.get(path_, admin)).text}\n`);
    }
    const { code, stdout, stderr } = await command(['hold', 'create', event.id, 'S-Z-1', '--json']);
    assert.equal(code, 2);
    assert.equal(JSON.parse(stdout).code, 'no_such_seat');
    assert.notEqual(stderr, '');
  });

  it('takes the whole request from a file, and a secret id from standard input', async () => {
    const file = path.join(dir, 'event.json');
    fs.writeFileSync(file, JSON.stringify({ name: 'From a file', currency: 'usd', sections: [{ name: 'Hall', price: 1, rows: [{ name: 'Q', seats: 2 }] }] }));
    const event = await okJson('event', 'create', '--file', file, '--name', 'Overridden');
    assert.equal(event.name, 'Overridden');
    const hold = await okJson('hold', 'create', event.id, 'Hall-Q-1');
    const shown = await command(['hold', 'show', '-'], { input: `${hold.id}\n` });
    assert.match(shown.stdout, new RegExp(`^id +${hold.id}$`, 'm'));
    const piped = await command(['event', 'create', '--file', '-', '--json'], { input: fs.readFileSync(file, 'utf8') });
    assert.equal(JSON.parse(piped.stdout).name, 'From a file');
  });
});

describe('lists', () => {
  it('are read page by page to the end, or up to --limit', async () => {
    const event = await okJson('event', 'create', '--name', 'Large', '--currency', 'usd', '--section', 'L:6x100:1');
    const seats = 'ABCDEF'.split('').flatMap((row) => Array.from({ length: 100 }, (_, n) => `L-${row}-${n + 1}`));
    for (const from of [0, 300]) {
      for (const verb of ['block', 'unblock']) await ok('event', verb, event.id, ...seats.slice(from, from + 300));
    }
    const rows = (await ok('audit', event.id)).trim().split('\n').slice(1);
    assert.deepEqual(rows.map((row) => Number(row.split(' ')[0])), Array.from({ length: 1201 }, (_, n) => n + 1));
    const pages = (await ok('audit', event.id, '--json')).trim().split('\n').map((page) => JSON.parse(page));
    assert.deepEqual(pages.map(({ data }) => data.length), [1000, 201]);
    assert.equal((await ok('audit', event.id, '--limit', '3')).trim().split('\n').length, 4);
    const ofSeat = await ok('audit', event.id, '--seat', 'L-C-7', '--after', '1');
    assert.equal(ofSeat.trim().split('\n').length, 3);
    await empty('hold', 'list', event.id);
  });

  it('of the audit go on with --follow', async () => {
    const event = await createEvent();
    const following = begin(undefined, ['audit', event.id, '--follow'], { env: env() });
    await until('the first row', () => following.stdout.includes('create'));
    await ok('event', 'close', event.id);
    await until('the next row', () => /^2 .*close/m.test(following.stdout));
    await ok('event', 'open', event.id);
    await until('the row after it', () => /^3 .*open/m.test(following.stdout));
    following.child.kill('SIGINT');
    assert.equal((await following.result).signal, 'SIGINT');
  });
});

describe('exit codes and messages', () => {
  it('tell a refusal from an unknown id, a malformed request, a wrong key and an absent server', async () => {
    const event = await createEvent();
    const hold = await okJson('hold', 'create', event.id, 'S-A-1');
    await refused(1, /^holdfast hold create: A seat is already taken \(409 seat_taken\)\. .* seats: S-A-1\.\n$/, ['hold', 'create', event.id, 'S-A-1']);
    await refused(1, /409 stale_fence/, ['hold', 'confirm', hold.id, '--fence', '999']);
    await refused(2, /404 no_such_hold/, ['hold', 'show', 'hold_x']);
    await refused(2, /404 no_such_event/, ['event', 'show', 'evt_../../metrics']);
    await refused(65, /400 invalid_request.*ttl_ms/, ['hold', 'create', event.id, 'S-A-2', '--ttl', '1ms']);
    await refused(77, /401/, ['audit', event.id], { env: { HOLDFAST_KEY: '' } });
    await refused(77, /401/, ['audit', event.id], { env: { HOLDFAST_KEY: 'not-a-key-of-this-server' } });
    await refused(77, /401 .*--key-file FILE or in HOLDFAST_KEY/, ['audit', event.id], { env: { HOLDFAST_KEY: '' } });
    await refused(77, /403/, ['audit', event.id], { env: { HOLDFAST_KEY: SELLER } });
    await refused(69, /Connection refused|connect/, ['event', 'list', '--server', `http://127.0.0.1:${await freePort()}`]);
  });

  it('a word that is none is said in one line, with what may have been meant', async () => {
    const said = {
      'event lst': 'holdfast event: unknown verb lst (did you mean list?); see holdfast event --help',
      'cell show': 'holdfast cell: unknown verb show: expected status or transfer; see holdfast cell --help',
      'lock gte': 'holdfast lock: unknown verb gte (did you mean get?); see holdfast lock --help',
      'lock get': 'holdfast lock: get takes one NAME; see holdfast lock --help',
      plan: 'holdfast plan: expected a verb: check or draw; see holdfast plan --help',
      'lab rce': 'holdfast lab: unknown command rce (did you mean race?); see holdfast lab --help',
      evnt: 'holdfast: unknown command evnt (did you mean event?); see holdfast help',
      'backup copy.db': 'holdfast backup: no ledger: give --ledger sqlite:PATH or --ledger postgres://..., or set HOLDFAST_LEDGER; see holdfast backup --help',
      'restore --ledger sqlite:x': 'holdfast restore: expected one FILE; see holdfast restore --help',
      'verify': 'holdfast verify: no ledger: give --ledger sqlite:PATH or --ledger postgres://..., or set HOLDFAST_LEDGER; see holdfast verify --help',
      'fence check': 'holdfast fence: --sqlite is required; see holdfast fence --help',
      'run --lock memory: --ttl 90d x -- true': 'holdfast run: a TTL of 90 days; memory takes 100 ms to 7 days',
    };
    for (const [words, text] of Object.entries(said)) {
      const { code, stdout, stderr } = await command(words.split(' '));
      assert.deepEqual([code, stdout, stderr.trimEnd().split('\n').at(-1)], [64, '', text]);
    }
  });

  it('options may stand before the command, or before its verb', async () => {
    for (const [before, between] of [[['--server', url()], []], [[], ['--server', url()]], [['--json', '--server', url()], ['--timeout', '20s']]]) {
      const { code, stdout, stderr } = await command([...before, 'event', ...between, 'list', '--limit', '1'], { env: { HOLDFAST_SERVER: 'http://127.0.0.1:1' } });
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, before.includes('--json') ? /^\{"data":/ : /^id +status/);
    }
    await refused(64, /unknown command --bogus/, ['--bogus', 'event', 'list']);
  });

  it('bash completes commands, verbs and options as the help has them', () => {
    const script = fileURLToPath(new URL('../../share/holdfast/holdfast.bash', import.meta.url));
    const complete = (...words) => execFileSync('bash', ['-c', `holdfast() { ASAN_OPTIONS=detect_leaks=0 ${HOLDFAST} "$@"; }; source ${script}
      COMP_WORDS=(holdfast "$@") COMP_CWORD=$# COMPREPLY=(); _holdfast; echo "\${COMPREPLY[*]}"`, 'bash', ...words], { encoding: 'utf8' }).trim();
    assert.equal(complete('ev'), 'event');
    assert.equal(complete('event', ''), 'archive block cancel close create list ls map open set show unblock watch');
    assert.equal(complete('lock', 're'), 'release renew');
    assert.equal(complete('event', 'list', '--se'), '--section --server');
    assert.equal(complete('booking', 'list', '--key-f'), '--key-file');
    assert.equal(complete('lab', ''), 'anomalies locks race report');
  });

  const mistakes = {
    'no verb': ['event'], 'an unknown verb': ['event', 'frobnicate'], 'no id': ['event', 'show'], 'two ids': ['event', 'show', 'a', 'b'],
    'an empty id': ['event', 'show', ''], 'no fence': ['hold', 'confirm', 'hold_x'], 'an unknown option': ['event', 'list', '--owner', 'x'],
    'a number that is none': ['hold', 'create', 'e', '--best', 'two'], 'a duration that is none': ['hold', 'renew', 'h', '--ttl', 'soon'],
    'places without a number': ['hold', 'create', 'e', '--area', 'Floor'], 'a section that is none': ['event', 'create', '--section', 'S:2:5'],
    'metadata that are none': ['hold', 'create', 'e', 'S-A-1', '--metadata', '{'], 'a file that is not there': ['event', 'create', '--file', '/no/such/file'],
    'an address that is none': ['event', 'list', '--server', 'gopher://x'], 'a key file that is not there': ['event', 'list', '--key-file', '/no/such/file'],
    'an area twice': ['hold', 'create', 'e', '--area', 'F=1', '--area', 'F=2'], 'an area with and without a type': ['hold', 'create', 'e', '--area', 'F=1', '--area', 'F=2:a'],
    'a type of an area twice': ['hold', 'create', 'e', '--area', 'F=1:a', '--area', 'F=2:a'], 'a type that is none': ['hold', 'create', 'e', '--area', 'F=1:'],
    'a seat without its type': ['hold', 'create', 'e', 'S-A-1', '--type', 'S-A-1'], 'a price of no type': ['event', 'set', 'e', '--type-price', 'Floor=2'], 'bytes that are no text': null,
  };
  for (const [what, args] of Object.entries(mistakes)) {
    it(`${what}: 64`, async () => {
      const script = '"$HF" hold create e "$(printf "S-A-\\377")"';
      const options = args ? {} : { wrap: ([hf]) => ['env', `HF=${hf}`, 'sh', '-c', script] };
      const { code, stdout, stderr } = await command(args ?? [], options);
      assert.equal(code, 64, stderr);
      assert.equal(stdout, '');
      assert.notEqual(stderr, '');
    });
  }
});

describe('the requests', () => {
  // What a server sees of a command: the method, the path and the body.
  async function sent(...args) {
    const requests = [];
    const stub = http.createServer(async (req, res) => {
      let body = '';
      for await (const chunk of req) body += chunk;
      requests.push([req.method, req.url, body && JSON.parse(body)]);
      res.end(req.url.includes('/bookings?') ? '{"data":[],"has_more":false,"next_cursor":null}' : '{}');
    });
    stub.listen(0, '127.0.0.1');
    await once(stub, 'listening');
    const { code, stderr } = await command(args, { env: { HOLDFAST_SERVER: `http://127.0.0.1:${stub.address().port}/base/` } });
    stub.close();
    assert.equal(code, 0, stderr);
    assert.equal(requests.length, 1);
    return requests[0];
  }

  const expected = [
    [['event', 'set', 'evt_1', '--name', 'New', '--venue', 'none', '--starts-at', '2027-01-01T19:00:00Z', '--price', 'Stalls=700', '--price', 'B=1',
      '--max-per-owner', '6', '--max-per-hold', '3', '--hold-ttl', '2m', '--hold-max', '10m', '--sales-open-at', 'none', '--sales-close-at', '2027-01-01T18:00:00Z',
      '--metadata', '{"a":"b"}', '--venue-address', 'Street 1', '--description', 'Fun', '--timezone', 'none', '--doors-at', 'none', '--image', 'https://a/b', '--lone-seats', 'hint'],
    ['PATCH', '/base/v1/events/evt_1', { name: 'New', venue: null, starts_at: '2027-01-01T19:00:00Z', prices: { Stalls: 700, B: 1 }, max_per_owner: 6,
      max_per_hold: 3, hold_ttl_ms: 120_000, hold_max_ms: 600_000, sales_open_at: null, sales_close_at: '2027-01-01T18:00:00Z', metadata: { a: 'b' },
      venue_address: 'Street 1', description: 'Fun', timezone: null, doors_at: null, image: 'https://a/b', lone_seats: 'hint' }]],
    [['event', 'archive', 'evt_1'], ['POST', '/base/v1/events/evt_1/archive', {}]],
    [['event', 'block', 'evt_1', 'S-A-1', '--section', 'Balcony', '--section', 'Box', '--area', 'Floor=20', '--channel', 'house'],
      ['POST', '/base/v1/events/evt_1/block', { seats: ['S-A-1'], sections: ['Balcony', 'Box'], areas: { Floor: 20 }, channel: 'house' }]],
    [['hold', 'create', 'evt_1', '--best', '2', '--category', 'B', '--accessible', '--scattered', '--channel', 'house', '--resume', '--owner', 'ann'],
      ['POST', '/base/v1/holds', { event: 'evt_1', best_available: { quantity: 2, category: 'B', accessible: true, adjacent: false }, channel: 'house', resume: true, owner: 'ann' }]],
    [['event', 'create', '--name', 'x', '--currency', 'eur', '--type', 'full:Full: price', '--type-price', 'child:S=100', '--type-price', 'child:F=1=2', '--type', 'full-2', '--type', 'child:Child'],
      ['POST', '/base/v1/events', { name: 'x', currency: 'eur', types: [{ id: 'full', name: 'Full: price' }, { id: 'child', prices: { S: 100, 'F=1': 2 }, name: 'Child' }, { id: 'full-2' }] }]],
    [['event', 'set', 'evt_1', '--type', 'group', '--type-price', 'group:Floor=5'],
      ['PATCH', '/base/v1/events/evt_1', { types: [{ id: 'group', prices: { Floor: 5 } }] }]],
    [['hold', 'create', 'evt_1', 'S-A-1', '--type', 'S-A-1=child', '--area', 'Floor=2:reduced', '--area', 'Floor=1:full', '--area', 'Pit=3'],
      ['POST', '/base/v1/holds', { event: 'evt_1', seats: ['S-A-1'], types: { 'S-A-1': 'child' }, areas: { Floor: { reduced: 2, full: 1 }, Pit: 3 } }]],
    [['hold', 'create', 'evt_1', '--best', '3', '--best-type', 'child=2', '--best-type', 'full=1'],
      ['POST', '/base/v1/holds', { event: 'evt_1', best_available: { quantity: 3, types: { child: 2, full: 1 } } }]],
    [['hold', 'change', 'hold_1', '--fence', '7', '--type', 'S-A-1=child', '--add-area', 'Floor=2:full', '--remove-area', 'Floor=2:child'],
      ['PATCH', '/base/v1/holds/hold_1', { fence: 7, types: { 'S-A-1': 'child' }, add: { areas: { Floor: { full: 2 } } }, remove: { areas: { Floor: { child: 2 } } } }]],
    [['hold', 'change', 'hold_1', '--fence', '7', '--add', 'S-A-1', '--add', 'S-A-2', '--remove', 'S-B-1', '--add-area', 'Floor=2', '--remove-area', 'Pit=1'],
      ['PATCH', '/base/v1/holds/hold_1', { fence: 7, add: { seats: ['S-A-1', 'S-A-2'], areas: { Floor: 2 } }, remove: { seats: ['S-B-1'], areas: { Pit: 1 } } }]],
    [['booking', 'list', '--event', 'evt_1', '--status', 'confirmed', '--reference', 'order 42/\u00e4', '--owner', 'ann&b', '--limit', '5'],
      ['GET', '/base/v1/bookings?event=evt_1&status=confirmed&reference=order%2042%2F%C3%A4&owner=ann%26b&limit=5', '']],
    [['booking', 'cancel', 'bkg_1', '--reason', 'rain'], ['POST', '/base/v1/bookings/bkg_1/cancel', { reason: 'rain' }]],
  ];
  for (const [args, request] of expected) {
    it(`of ${args.slice(0, 2).join(' ')} are those of the contract`, async () => assert.deepEqual(await sent(...args), request));
  }
});

describe('the access key', () => {
  it('comes from a file, so that ps does not show it', async () => {
    const file = path.join(dir, 'key');
    fs.writeFileSync(file, `# for the box office\n\n${SELLER}\nanother-key\n`, { mode: 0o600 });
    const event = await createEvent();
    const { code, stderr } = await command(['hold', 'list', event.id, '--key-file', file], { env: { HOLDFAST_KEY: 'wrong' } });
    assert.deepEqual([code, stderr], [0, 'holdfast hold list: nothing found\n']);
    fs.writeFileSync(file, `office ${ADMIN}\n`);
    assert.equal((await command(['hold', 'list', event.id, '--key-file', file], { env: { HOLDFAST_KEY: 'wrong' } })).code, 0);
    fs.chmodSync(file, 0o644);
    const warned = await command(['hold', 'list', event.id, '--key-file', file]);
    assert.equal(warned.code, 0);
    assert.match(warned.stderr, /chmod 600/);
    fs.writeFileSync(file, '# nothing\n');
    await refused(64, /there is no key/, ['hold', 'list', event.id, '--key-file', file]);
  });
});

describe('an answer that is lost', () => {
  it('is asked for again with the same key, and nothing is done twice', async () => {
    const event = await createEvent();
    const front = await startFront((req, res, n) => (n <= 2 ? 'lose' : 'pass'));
    const { code, stdout, stderr } = await command(['hold', 'create', event.id, '--best', '2', '--json'], { env: { HOLDFAST_SERVER: front.url } });
    front.close();
    assert.equal(code, 0, stderr);
    assert.equal(front.seen.length, 3);
    assert.equal(new Set(front.seen.map(({ key }) => key)).size, 1);
    assert.match(front.seen[0].key, /^[0-9a-f]{32}$/);
    const { data } = await server.get(`/v1/holds?event=${event.id}`, admin).then(({ json }) => json);
    assert.equal(data.length, 1);
    assert.deepEqual(data[0].seats, JSON.parse(stdout).seats);
  });

  it('for good is exit code 75, and repeating the command with the key it prints finds out', async () => {
    const event = await createEvent();
    const front = await startFront(() => 'lose');
    const args = ['hold', 'create', event.id, 'S-B-3'];
    const lost = await command([...args, '--timeout', '4s'], { env: { HOLDFAST_SERVER: front.url } });
    front.close();
    assert.equal(lost.code, 75, lost.stderr);
    const [, key] = lost.stderr.match(/--idempotency-key ([0-9a-f]{32})\n$/);
    const hold = await okJson(...args, '--idempotency-key', key);
    assert.deepEqual([hold.seats, (await server.counts(event)).held], [['S-B-3'], 1]);
    await refused(1, /409 seat_taken/, args);
  });

  it('and then a page of somebody else is not taken for the answer to what was lost', async () => {
    const event = await createEvent();
    const page = (res) => { res.writeHead(200, { 'Content-Type': 'text/html' }).end('<h1>Welcome</h1>'); return 'answered'; };
    for (const [n_lost, exit] of [[0, 69], [1, 75]]) {
      const front = await startFront((req, res, n) => (n <= n_lost ? 'lose' : page(res)));
      const { code, stderr } = await command(['hold', 'create', event.id, '--best', '1', '--json'], { env: { HOLDFAST_SERVER: front.url } });
      front.close();
      assert.equal(code, exit, stderr);
      assert.match(stderr, /is not JSON; is it Holdfast\?/);
    }
    assert.equal((await server.counts(event)).held, 1);
  });

  it('is also that of a proxy, or of a server that is busy: it is tried again, as it asks', async () => {
    const event = await createEvent();
    const front = await startFront((req, res, n) => {
      if (n > 2) return 'pass';
      res.writeHead(n === 1 ? 502 : 503, n === 1 ? {} : { 'Retry-After': '1', 'Content-Type': 'application/problem+json' });
      res.end(n === 1 ? '<h1>Bad Gateway</h1>' : '{"code":"overloaded","title":"busy"}');
      return 'answered';
    });
    const began = performance.now();
    const { code, stderr } = await command(['event', 'close', event.id], { env: { HOLDFAST_SERVER: front.url } });
    front.close();
    assert.equal(code, 0, stderr);
    assert.ok(performance.now() - began >= 1000);
  });
});

// A server that is not Holdfast, or that means harm: the command ends, and says why.
describe('a server that does not answer as it should', () => {
  const answered = (res, body) => { res.writeHead(200, { 'Content-Type': 'application/json' }); res.end(JSON.stringify(body)); return 'answered'; };
  const ask = async (on, ...args) => {
    const front = await startFront(on);
    const answer = await command(args, { env: { HOLDFAST_SERVER: front.url } });
    front.close();
    return { ...answer, n: front.seen.length };
  };

  it('sends what a terminal would obey: nothing of that is printed, by lock commands neither', async () => {
    const problem = (req, res) => {
      res.writeHead(403, { 'Content-Type': 'application/problem+json' });
      res.end(JSON.stringify({ title: 'No\u001b]0;title\u0007', detail: 'not \u001b[2Jyou\u009b', status: 403, code: 'forbidden' }));
      return 'answered';
    };
    const front = await startFront(problem);
    const lock = front.url.replace('http:', 'holdfast:');
    for (const args of [['event', 'list'], ['run', '--lock', lock, 'x', '--', 'true'], ['lock', 'show', '--lock', lock, 'x'], ['doctor', lock]]) {
      const { code, stdout, stderr } = await command(args, { env: { HOLDFAST_SERVER: front.url } });
      assert.notEqual(code, 0);
      assert.doesNotMatch(stdout + stderr, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/, args.join(' '));
      assert.match(stdout + stderr, /No\?\]0;title\?/, args.join(' '));
    }
    front.close();
  });

  it('lists a page that leads to itself once', async () => {
    for (const data of [[{ id: 'evt_1' }], []]) {
      const { code, stderr, n } = await ask((req, res) => answered(res, { data, has_more: true, next_cursor: 'same' }), 'event', 'list');
      assert.deepEqual([code, n <= 2], [69, true], stderr);
      assert.match(stderr, /the server's list does not go on/);
    }
  });

  it('closes every connection: a question is asked a few times, and not for half a minute', async () => {
    const { code, stderr, n } = await ask((req, res) => { res.socket.destroy(); return 'answered'; }, 'event', 'list');
    assert.equal(code, 69);
    assert.ok(n >= 2 && n <= 12, `${n} tries`); // libcurl may send one again on a new connection
    assert.match(stderr, /closed|empty reply|reset/i);
  });

  it('never ends its answer: the command takes no more than it can use', async () => {
    const chunk = Buffer.alloc(4 << 20, ' ');
    const { code, stderr, n } = await ask((req, res) => {
      const more = () => { while (!res.destroyed && res.write(chunk)); };
      res.writeHead(200);
      res.on('drain', more).on('error', () => {});
      more();
      return 'answered';
    }, 'event', 'list', '--timeout', '2m');
    assert.equal(code, 69, stderr);
    assert.match(stderr, /the response is too large/);
    assert.ok(n <= 6, `${n} tries`); // one, unless the machine is so busy that ten seconds are not enough for it
  });
});

describe('event watch', () => {
  const lines = (watch) => watch.stdout.trim().split('\n').filter(Boolean);

  it('prints every change, and after a lost connection goes on where it was', async () => {
    const event = await createEvent();
    const responses = [];
    const front = await startFront((req, res) => { responses.push(res); return 'pass'; });
    const watch = begin(undefined, ['event', 'watch', event.id], { env: env({ HOLDFAST_SERVER: front.url }) });
    await until('it is connected', () => responses.length === 1 && responses[0].headersSent);
    const first = await server.grant(event, 'S-A-1', {}, admin);
    await until('the first change', () => /^\d+ {2}S-A-1 {2}held$/m.test(watch.stdout));
    responses[0].destroy();
    await server.grant(event, 'S-A-2', { areas: { Floor: 3 } }, admin);
    await server.del(`/v1/holds/${first.id}`, admin);
    await until('what happened meanwhile', () => /S-A-1 {2}available/.test(watch.stdout));
    assert.ok(front.seen[1].last, 'it says where it was');
    assert.deepEqual(lines(watch).map((line) => line.replace(/^\d+ +/, '')).sort(),
      ['Floor  47 available', 'S-A-1  available', 'S-A-1  held', 'S-A-2  held']);
    await ok('event', 'close', event.id);
    await until('the end of the sale', () => /^event .*status=closed/m.test(watch.stdout));
    watch.child.kill('SIGINT');
    assert.equal((await watch.result).signal, 'SIGINT');
    front.close();
  });

  it('prints messages as JSON, begins after a seq, and ends with a refusal', async () => {
    const event = await createEvent();
    await server.grant(event, ['S-A-1', 'S-A-2'], {}, admin);
    const watch = begin(undefined, ['event', 'watch', event.id, '--after', '1', '--json'], { env: env() });
    await until('a message', () => lines(watch).length === 1);
    assert.deepEqual(JSON.parse(lines(watch)[0]).changes, [['S-A-1', 'h'], ['S-A-2', 'h']]);
    watch.child.kill('SIGINT');
    await watch.result;
    await refused(2, /404 no_such_event/, ['event', 'watch', 'evt_x']);
    await refused(69, /connect/i, ['event', 'watch', event.id, '--server', `http://127.0.0.1:${await freePort()}`]);
  });

  it('gives up when the server stays away for longer than --timeout', async () => {
    const event = await createEvent();
    const responses = [];
    const front = await startFront((req, res) => { responses.push(res); return 'pass'; });
    const watch = begin(undefined, ['event', 'watch', event.id, '--timeout', '10s'], { env: env({ HOLDFAST_SERVER: front.url }) });
    await until('it is connected', () => responses.length === 1 && responses[0].headersSent);
    await server.grant(event, 'S-A-1', {}, admin);
    await until('a change', () => lines(watch).length === 1);
    front.close();
    const { code } = await watch.result;
    assert.equal(code, 69);
  });
});
