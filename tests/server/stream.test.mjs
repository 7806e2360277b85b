// Streams: the format, where they begin, completeness (I13), many readers at once, readers that are slow or
// disappear, and the end.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertProblem } from '../support/expect.mjs';
import { logRows } from '../support/ledger.mjs';
import { assertTook, backend, itOnce, launch, mapOf, only, pool, reap, RETURNS_MEMORY, runServer, sleep, start, until } from '../support/server.mjs';
import { apply, Stream } from '../support/stream.mjs';

const hall = (rows, seats) => ({ sections: [{ name: 'S', tier: 'A', price: 100, rows, seats_per_row: seats }] });
const rowName = (i) => (i < 26 ? '' : String.fromCharCode(64 + Math.floor(i / 26))) + String.fromCharCode(65 + i % 26);
const seatNames = (rows, seats) => Array.from({ length: rows * seats },
  (_, i) => `S-${rowName(Math.floor(i / seats))}-${i % seats + 1}`);
// Returns the ports on which a process listens, in order.
function listeningPorts(pid) {
  const inodes = new Set(fs.readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try { return /^socket:\[(\d+)\]$/.exec(fs.readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]; } catch { return undefined; }
  }));
  return ['tcp', 'tcp6'].flatMap((kind) => fs.readFileSync(`/proc/${pid}/net/${kind}`, 'utf8').trim().split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === '0A' && inodes.has(inode))
    .map(([, local]) => parseInt(local.split(':')[1], 16)).sort((x, y) => x - y);
}
const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;

describe('streams', () => {
  let server, event, idle, idleSince;
  before(async () => {
    server = await start({ env: RETURNS_MEMORY });
    event = await server.createEvent({ areas: [{ name: 'Floor', price: 1, capacity: 5 }] });
    idle = await Stream.open(server, await server.createEvent()); // for the test of comments at the end
    idleSince = Date.now();
  });
  after(async () => { await server?.finish(); await reap(); });

  const open = async (of, options) => {
    const stream = await Stream.open(server, of, options);
    assert.equal(stream.status, 200, stream.text);
    return stream;
  };
  const refused = async (options, of = event) => {
    const stream = await Stream.open(server, of, options);
    await stream.closed;
    const answer = { status: stream.status, headers: stream.headers, text: stream.text };
    if (options?.method !== 'HEAD') answer.json = stream.json;
    return answer;
  };
  const snapshot = async (of, from = server) => (await from.get(`/v1/events/${of.id}/seats`)).json;

  it('a change arrives as the contract has it, and a release after it', async () => {
    const stream = await open(event);
    assert.equal(stream.headers['content-type'], 'text/event-stream');
    assert.match(stream.headers['cache-control'], /no-cache/);
    assert.equal(stream.headers['x-accel-buffering'], 'no');
    assert.match(stream.headers['x-request-id'], /^req_/);
    const hold = await server.grant(event, ['S-A-3', 'S-B-10']);
    const held = await stream.find();
    const { seq } = await snapshot(event);
    assert.deepEqual(held.data, { seq, changes: [['S-A-3', 'h'], ['S-B-10', 'h']], areas: {} });
    assert.equal(held.event, 'seats');
    assert.equal(held.id, `${seq}`);
    assert.ok(stream.text.includes(`id: ${seq}\nevent: seats\ndata: {"seq":${seq},"changes":`
      + '[["S-A-3","h"],["S-B-10","h"]],"areas":{}}\n\n'), stream.text);
    assert.equal((await server.del(`/v1/holds/${hold.id}`)).status, 204);
    const freed = await stream.find(({ data }) => data.seq > seq);
    assert.deepEqual(freed.data.changes, [['S-A-3', '.'], ['S-B-10', '.']]);
    stream.close();
  });

  itOnce('places of an area that change are told as how many are left', async () => {
    const stream = await open(event);
    const made = await server.post('/v1/holds', { event: event.id, areas: { Floor: 2 }, seats: ['S-A-1'] });
    assert.equal(made.status, 201, made.text);
    assert.deepEqual((await stream.find()).data.areas, { Floor: 3 });
    assert.equal((await server.del(`/v1/holds/${made.json.id}`)).status, 204);
    const freed = await stream.find(({ data }) => data.areas.Floor === 5);
    assert.deepEqual(freed.data.changes, [['S-A-1', '.']]);
    stream.close();
  });

  itOnce('a reader that accepts gzip gets the same messages packed, as they happen, whenever it joined', async () => {
    // On one thread, since each thread of the server has rounds of its own.
    const own = await start({ args: ['--http-threads', '1'] });
    const fresh = await own.createEvent();
    const gzip = { headers: { 'Accept-Encoding': 'gzip, deflate, br' } };
    const plain = await Stream.open(own, fresh);
    const packed = await Stream.open(own, fresh, gzip);
    assert.equal(packed.headers['content-encoding'], 'gzip');
    assert.match(packed.headers.vary, /Accept-Encoding/);
    assert.equal(plain.headers['content-encoding'], undefined);
    const { seq: begin } = await snapshot(fresh, own);
    for (let i = 0; i < 3; i++) {
      const hold = await own.grant(fresh, ['S-A-5', 'S-A-6']);
      await packed.find(({ data }) => data.changes.some(([, letter]) => letter === 'h'));
      assert.equal((await own.del(`/v1/holds/${hold.id}`)).status, 204);
      await plain.reach((await snapshot(fresh, own)).seq);
    }
    const { seq } = await snapshot(fresh, own);
    await packed.reach(seq);
    assert.deepEqual(packed.messages.map(({ id, data }) => [id, data]), plain.messages.map(({ id, data }) => [id, data]));
    const late = await Stream.open(own, fresh, { ...gzip, after: begin }); // gets a first message of its own, then shared ones
    await late.reach(seq);
    const last = await own.grant(fresh, ['S-A-7']);
    await late.find(({ data }) => data.changes.some(([seat]) => seat === 'S-A-7'));
    assert.equal((await own.del(`/v1/holds/${last.id}`)).status, 204);
    for (const stream of [plain, packed, late]) { assert.equal(stream.fault, undefined); stream.close(); }
    await own.stop();
  });

  itOnce('the stream opens before anything happens, and says where it is', async () => {
    const stream = await open(event);
    const { seq } = await snapshot(event);
    await until('the first bytes', () => stream.lastEventId !== undefined);
    assert.equal(stream.lastEventId, `${seq}`);
    assert.match(stream.text, /^retry: \d+\n/);
    assert.equal(stream.messages.length, 0);
    stream.close();
  });

  itOnce('a renewal is no change', async () => {
    const fresh = await server.createEvent({ hold_ttl_ms: 60_000 });
    const hold = await server.grant(fresh, 'S-A-1', { ttl_ms: 50_000 });
    const stream = await open(fresh, { after: 0 });
    await stream.find();
    assert.equal((await server.post(`/v1/holds/${hold.id}/renew`, {})).status, 200);
    const other = await server.grant(fresh, 'S-A-2');
    const message = await stream.find(({ data }) => data.seq > stream.messages[0].data.seq);
    assert.deepEqual(message.data.changes, [['S-A-2', 'h']]);
    assert.ok(other.fence > hold.fence);
    stream.close();
  });

  itOnce('wrong paths, methods and ids are refused as elsewhere', async () => {
    assertProblem(await refused({ path: `/v1/events/${event.id}/stream/x` }), 404, 'not_found');
    assertProblem(await refused({ path: `/v1/events/${event.id}/stream%00` }), 404, 'not_found');
    const stranger = `${event.id.slice(0, -1)}${event.id.endsWith('0') ? '1' : '0'}`;
    for (const id of ['evt_x', 'x', stranger, `evt_${'0'.repeat(10)}9${'0'.repeat(17)}`]) {
      assertProblem(await refused({}, { id }), 404, 'no_such_event');
    }
    for (const method of ['POST', 'DELETE', 'PUT', 'OPTIONS']) {
      const answer = await refused({ method });
      assertProblem(answer, 405, 'method_not_allowed');
      assert.equal(answer.headers.allow, 'GET, HEAD');
    }
    const post = await server.post(`/v1/events/${event.id}/stream`, {});
    assertProblem(post, 405, 'method_not_allowed');
    assert.equal(post.headers.allow, 'GET, HEAD');
    for (const malformed of ['x', '', '-1', '1.5', '1e3', '9'.repeat(19), '1%20']) {
      assertInvalid(await refused({ after: malformed }), 'after');
    }
    const head = await refused({ method: 'HEAD' });
    assert.equal(head.status, 200);
    assert.equal(head.headers['content-type'], 'text/event-stream');
  });

  itOnce('fetch and curl read a stream like any other answer', { skip: process.env.HOLDFAST_TEST_TLS === '1' && 'they do not know the certificate' }, async () => {
    const path = `/v1/events/${event.id}/stream`;
    const { seq } = await snapshot(event);
    await server.grant(event, 'S-B-1');
    await server.waitUntilEqual?.();
    const answer = await fetch(`http://${server.host}:${server.port}${path}`,
      { headers: { 'Last-Event-ID': `${seq}` }, redirect: 'error' });
    assert.equal(answer.status, 200);
    const reader = answer.body.getReader();
    let text = '';
    while (!/"S-B-1","h"/.test(text)) {
      const { value, done } = await reader.read();
      assert.ok(!done, text);
      text += Buffer.from(value).toString();
    }
    await reader.cancel();
    const curl = launch('curl', ['-sN', `http://${server.host}:${server.port}${path}?after=${seq}`]);
    await until('curl has it', () => /^id: \d+\nevent: seats\ndata: .*"S-B-1","h"/m.test(curl.stdout));
    curl.child.kill();
    await curl.done;
  });

  itOnce('a burst becomes few messages, at most ten a second, and none is left out', async () => {
    const [rows, seats] = [10, 20];
    const fresh = await server.createEvent(hall(rows, seats));
    const began = performance.now();
    const stream = await open(fresh, { after: 0 });
    await Promise.all(seatNames(rows, seats).map((seat) => server.grant(fresh, seat)));
    const { seq, ...rest } = await snapshot(fresh);
    await stream.reach(seq);
    // On a busy machine messages may arrive together that were not sent so.
    const tenths = (performance.now() - began) / 100;
    assert.ok(stream.messages.length <= tenths + 1, `${stream.messages.length} messages in ${tenths} tenths of a second`);
    assert.deepEqual(apply(mapOf({ sections: [{ name: 'S', rows: rest.sections[0].rows.map((row) => ({ ...row, seats: '.'.repeat(seats) })) }] }),
      stream.messages), mapOf(rest));
    stream.close();
  });

  it('I13: replayed from any seq, a stream gives the snapshot, and carries no secrets', async () => {
    const names = seatNames(10, 30);
    const fresh = await server.createEvent(hall(10, 30));
    const whole = await open(fresh, { after: 0 });
    const secrets = new Set(['buyer-of-seats']);
    const snapshots = [];
    const steps = backend === 'cluster' ? 8 : 24; // a cluster waits for each change on every server
    const buyer = async (n) => {
      const mine = [];
      for (let i = 0; i < steps; i++) {
        if (mine.length > 0 && Math.random() < 0.5) {
          const [hold] = mine.splice(Math.floor(Math.random() * mine.length), 1);
          if (Math.random() < 0.7) await server.del(`/v1/holds/${hold.id}`);
          else secrets.add((await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence })).json.id);
        } else {
          const first = Math.floor(Math.random() * (names.length - 3));
          const answer = await server.hold(fresh, names.slice(first, first + 1 + n % 3), { owner: 'buyer-of-seats' });
          if (answer.status === 201) { mine.push(answer.json); secrets.add(answer.json.id); }
        }
        if (i % 10 === 5) snapshots.push(await snapshot(fresh));
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, n) => buyer(n)));
    const last = await snapshot(fresh);
    const final = mapOf(last);
    await whole.reach(last.seq);

    // The state at every seq, folded from the ledger's log.
    const log = server.sql(`SELECT a.seq, a.item, a.after FROM (${logRows(backend === 'sqlite' ? 'sqlite' : 'postgres')}) a
      WHERE a.object = 2 AND a.event = (SELECT max(entry) >> 40 FROM log) ORDER BY a.seq`);
    const states = [Object.fromEntries(names.map((name) => [name, '.']))];
    for (let seq = 1, row = 0; seq <= last.seq; seq++) {
      states.push(states[seq - 1]);
      if (log[row]?.seq !== seq) continue;
      states[seq] = { ...states[seq - 1], [names[log[row].item]]: '.hbx'[log[row].after] };
      row++;
    }
    assert.deepEqual(states[last.seq], final);
    for (const one of snapshots) assert.deepEqual(mapOf(one), states[one.seq], `snapshot at ${one.seq}`);

    const seqs = Array.from({ length: last.seq + 1 }, (_, seq) => seq);
    await pool(seqs, 24, async (seq) => {
      const stream = await open(fresh, { after: seq });
      if (seq < last.seq) await stream.find();
      assert.deepEqual(apply({ ...states[seq] }, stream.messages), final, `after=${seq}`);
      stream.close();
    });

    // A reader that stays connected: after each message its map equals the snapshot.
    const map = { ...states[0] };
    for (const message of whole.messages) {
      apply(map, [message]);
      assert.deepEqual(map, states[message.data.seq], `at ${message.data.seq}`);
      assert.equal(message.id, `${message.data.seq}`);
    }
    for (const secret of secrets) assert.ok(!whole.text.includes(secret), secret);
    assert.ok(secrets.size > 20);
    whole.close();
  });

  it('a reader that was cut off resumes with Last-Event-ID, whatever its URL says', async () => {
    const fresh = await server.createEvent(hall(5, 20));
    const names = seatNames(5, 20);
    const map = Object.fromEntries(names.map((name) => [name, '.']));
    let stream = await open(fresh, { after: 0 });
    for (let i = 0; i < 10; i++) {
      await server.grant(fresh, names[i * 2]);
      await stream.find(({ data }) => data.changes.some(([seat]) => seat === names[i * 2]));
      const { lastEventId, messages } = stream;
      apply(map, messages);
      stream.close();
      await server.grant(fresh, names[i * 2 + 1]);
      stream = await open(fresh, { lastEventId, after: i % 2 ? 0 : 'malformed' });
    }
    await stream.reach((await snapshot(fresh)).seq);
    assert.deepEqual(apply(map, stream.messages), await server.map(fresh));
    stream.close();
  });

  it('a seq of one server is no future to another', { skip: only('cluster', 'it needs two servers') }, async () => {
    const own = await server.createEvent();
    const [one, other] = server.servers;
    for (let round = 0; round < 12; round++) {
      await one.grant(own, 'S-A-1', { ttl_ms: 60_000 }).then(({ id }) => one.del(`/v1/holds/${id}`));
      const { seq } = await snapshot(own, one);
      const stream = await Stream.open(other, own, { after: seq });
      await one.grant(own, 'S-A-1', { ttl_ms: 60_000 }).then(({ id }) => one.del(`/v1/holds/${id}`));
      const last = await stream.reach((await snapshot(own, one)).seq);
      assert.deepEqual(stream.messages.filter(({ event: kind }) => kind === 'reset'), [], `round ${round}, after ${seq}: ${stream.text}`);
      assert.deepEqual(last.data.changes, [['S-A-1', '.']]);
      stream.close();
    }
  });

  it('sales that are cancelled through another server are told as changes, also where owners are limited', { skip: only('cluster', 'it needs two servers') }, async () => {
    const own = await server.createEvent({ max_per_owner: 3, areas: [{ name: 'Floor', price: 1, capacity: 5 }] });
    const [one, other] = server.servers;
    const stream = await Stream.open(other, own);
    const sell = async (places) => {
      const { id, fence } = await one.take(own, { owner: 'ann', ...places });
      const sold = await one.post(`/v1/holds/${id}/confirm`, { fence });
      assert.equal(sold.status, 201, sold.text);
      return sold.json.id;
    };
    for (let round = 0; round < 5; round++) {
      const sold = [await sell({ seats: ['S-A-1'] }), await sell({ areas: { Floor: 2 } })];
      await stream.reach((await snapshot(own, one)).seq);
      assertProblem(await other.ask(own, { owner: 'ann', seats: ['S-A-2'] }), 409, 'owner_limit');
      for (const id of sold) assert.equal((await one.post(`/v1/bookings/${id}/cancel`, {})).status, 200);
      await stream.reach((await snapshot(own, one)).seq);
      const { id } = await other.take(own, { owner: 'ann', seats: ['S-A-2'], areas: { Floor: 2 } });
      assert.equal((await other.del(`/v1/holds/${id}`)).status, 204);
    }
    await stream.reach((await snapshot(own, other)).seq);
    assert.deepEqual(stream.messages.filter(({ event: kind }) => kind !== 'seats'), []);
    stream.close();
  });

  it('a seq from the future, or one that is none, is answered with a reset, and nothing is missed after it', async () => {
    const fresh = await server.createEvent();
    await server.grant(fresh, 'S-A-1');
    const { seq } = await snapshot(fresh);
    for (const options of [{ after: seq + 1 }, { lastEventId: '99999999999' }, { lastEventId: 'nonsense' },
      { lastEventId: '' }, { lastEventId: '-1', after: 0 }]) {
      const stream = await open(fresh, options);
      const reset = await stream.find();
      assert.equal(reset.event, 'reset', JSON.stringify(options));
      assert.equal(reset.id, `${(await snapshot(fresh)).seq}`);
      assert.deepEqual(reset.data, { seq: Number(reset.id) });
      const hold = await server.grant(fresh, 'S-B-5');
      const next = await stream.find(({ event: kind }) => kind === 'seats');
      assert.deepEqual(next.data.changes, [['S-B-5', 'h']]);
      await server.del(`/v1/holds/${hold.id}`);
      stream.close();
    }
  });

  const crowd = backend === 'cluster' ? 100 : 500; // how many a server bears does not depend on its ledger
  itOnce(`${crowd} clients that connect, break off and resume all end with the map`, async () => {
    const fresh = await server.createEvent(hall(10, 20));
    await server.waitUntilEqual?.([fresh.id]); // a server that loads it after the first change takes seq 0 for too old
    const names = seatNames(10, 20);
    const free = Object.fromEntries(names.map((name) => [name, '.']));
    let selling = true;
    const sale = (async () => {
      const mine = [];
      for (let i = 0; selling; i++) {
        const answer = await server.hold(fresh, names[(i * 37) % names.length]);
        if (answer.status === 201) mine.push(answer.json.id);
        if (mine.length > 30) await server.del(`/v1/holds/${mine.shift()}`);
        await sleep(2);
      }
    })();
    const clients = Array.from({ length: crowd }, () => ({ map: { ...free }, lastEventId: 0 }));
    const visit = async (client, done) => {
      const stream = await open(fresh, { lastEventId: client.lastEventId });
      await done(stream);
      const messages = [...stream.messages];
      stream.close();
      apply(client.map, messages);
      client.lastEventId = messages.at(-1)?.id ?? client.lastEventId;
    };
    for (let round = 0; round < 2; round++) {
      await pool(clients, 100, (client) => visit(client, () => sleep(Math.random() * 40)));
    }
    selling = false;
    await sale;
    const last = await snapshot(fresh);
    await pool(clients, 100, (client) => visit(client, async (stream) => {
      if (Number(client.lastEventId) < last.seq) await stream.reach(last.seq);
    }));
    for (const { map } of clients) assert.deepEqual(map, mapOf(last));
    await until('those who left are noticed', async () => await server.metric('holdfast_streams_open') <= 1);
  });

  itOnce('a reader that falls behind is cut off, the others and the memory are not touched', async () => {
    const long = '\u{1F3AD}'.repeat(31); // 124 bytes, so that few seats make much text
    const [rows, per] = [10, 200];
    const big = await server.createEvent({ max_per_hold: 200, sections: [{ name: `${long}S`, price: 1,
      rows: Array.from({ length: rows }, (_, row) => ({ name: `${long}${rowName(row)}`, seats: per })) }] });
    const seats = (row) => Array.from({ length: per }, (_, i) => `${long}S-${long}${rowName(row)}-${i + 1}`);
    const [quick, ...slow] = await Promise.all(Array.from({ length: 41 }, () => open(big)));
    for (const stream of slow) stream.res.pause();
    const before = rss(server.pid);
    const dropped = await server.metric('holdfast_stream_dropped_total');
    // A gate that was too slow for a release has the seats until the reconciler looks, after 30 s.
    const grant = (row) => until('the row can be had', async () => {
      const { status, json } = await server.hold(big, seats(row));
      return status === 201 && json;
    }, 60_000);
    while (quick.bytes < 7 << 20) {
      const holds = await Promise.all(Array.from({ length: rows }, (_, row) => grant(row)));
      await quick.reach((await snapshot(big)).seq);
      for (const { id } of holds) await server.del(`/v1/holds/${id}`);
    }
    assert.ok(rss(server.pid) - before < 96 << 20, `${rss(server.pid) - before} bytes more`);
    for (const stream of slow) stream.res.resume();
    for (const stream of slow) assert.equal(await stream.closed, false);
    assert.equal(await server.metric('holdfast_stream_dropped_total') - dropped, slow.length);
    assert.ok(!quick.isClosed);
    // When it returns, it learns that it missed more than the server keeps.
    const resumed = await open(big, { lastEventId: slow[0].lastEventId });
    assert.equal((await resumed.find()).event, 'reset');
    quick.close();
    resumed.close();
  });

  itOnce('after a restart the past is too old: reset, and the event is found without anybody asking for it', async () => {
    const own = await start();
    const fresh = await own.createEvent();
    await own.grant(fresh, 'S-A-1');
    const { seq } = (await own.get(`/v1/events/${fresh.id}/seats`)).json;
    const ended = await Stream.open(own, fresh);
    await own.restart();
    assert.equal(await ended.closed, true, 'a stream ends cleanly at SIGTERM');
    const stream = await Stream.open(own, fresh, { after: seq - 1 });
    const reset = await stream.find();
    assert.equal(reset.event, 'reset');
    assert.equal(reset.data.seq, seq);
    await own.grant(fresh, 'S-A-2');
    assert.deepEqual((await stream.find(({ event: kind }) => kind === 'seats')).data.changes, [['S-A-2', 'h']]);
    const current = await Stream.open(own, fresh, { after: seq });
    assert.deepEqual((await current.find()).data.changes, [['S-A-2', 'h']]);

    const many = [];
    for (let i = 0; i < 5; i++) {
      many.push(...await Promise.all(Array.from({ length: 200 }, () => Stream.open(own, fresh))));
    }
    assert.equal(await own.metric('holdfast_streams_open'), 1002);
    const begun = Date.now();
    await own.stop();
    assertTook(Date.now() - begun, 8000, 'the end'); // readers that stay would keep it for 8.5 s
    for (const one of many) assert.equal(await one.closed, true);
  });

  itOnce('there is one port, and a second one, for streams alone, if --stream-listen says so', async () => {
    const [one] = server.servers ?? [server];
    const sandboxPort = (of) => Number(/^payments sandbox on http:.*:(\d+)$/m.exec((of.servers ?? [of])[0].run.stdout)[1]);
    const ascending = (...ports) => ports.sort((x, y) => x - y);
    assert.deepEqual(listeningPorts(one.pid), ascending(one.port, sandboxPort(one)));
    assert.doesNotMatch(one.run.stdout, /^streams on/m);
    for (const options of [{ args: ['--stream-listen', '127.0.0.1:0'] }, { env: { HOLDFAST_STREAM_LISTEN: '127.0.0.1:0' } }]) {
      const own = await start(options);
      const fresh = await own.createEvent();
      const apart = await own.streams();
      assert.deepEqual(listeningPorts(own.pid), ascending(own.port, apart.port, sandboxPort(own)));
      const streams = await Promise.all([own, apart].map((address) => Stream.open(address, fresh)));
      await own.grant(fresh, 'S-A-1');
      for (const stream of streams) {
        assert.equal(stream.status, 200);
        assert.deepEqual((await stream.find()).data.changes, [['S-A-1', 'h']]);
      }
      for (const path of ['/', '/v1/events', `/v1/events/${fresh.id}`, `/v1/events/${fresh.id}/seats`, '/v1/holds', '/metrics', '/readyz', '/openapi.yaml']) {
        for (const method of ['GET', 'POST', 'HEAD']) {
          const answer = await Stream.open(apart, fresh, { path, method });
          await answer.closed;
          assert.equal(answer.status, 404, `${method} ${path}`);
          if (method !== 'HEAD') assertProblem({ status: answer.status, headers: answer.headers, text: answer.text, json: answer.json }, 404, 'not_found');
        }
      }
      const taken = await runServer(['--listen', '127.0.0.1:0', '--stream-listen', `127.0.0.1:${apart.port}`, '--data', own.dir]);
      assert.equal(taken.code, 1);
      assert.equal(taken.stdout, '');
      assert.match(taken.stderr, new RegExp(`cannot listen on 127\\.0\\.0\\.1:${apart.port}: .*in use`));
      await own.stop();
      for (const stream of streams) assert.equal(await stream.closed, true);
      assert.equal((await runServer(['--stream-listen', 'nonsense', '--data', own.dir])).code, 64);
    }
  });

  itOnce('pages of the main port may read the streams of the second, others may not', async () => {
    const own = await start({ args: ['--stream-listen', '127.0.0.1:0'] });
    const fresh = await own.createEvent();
    const apart = await own.streams();
    const [scheme, other] = own.tls ? ['https', 'http'] : ['http', 'https'];
    const origin = `${scheme}://127.0.0.1:${own.port}`;
    const read = async (Origin) => {
      const stream = await Stream.open(apart, fresh, { headers: { Origin } });
      assert.equal(stream.status, 200);
      stream.close();
      return stream.headers;
    };
    const headers = await read(origin);
    assert.equal(headers['access-control-allow-origin'], origin);
    assert.match(headers.vary, /Origin/);
    for (const foreign of ['http://evil.example', 'null', `${scheme}://127.0.0.1:${apart.port}`, `${other}://127.0.0.1:${own.port}`]) {
      assert.equal((await read(foreign))['access-control-allow-origin'], undefined, foreign);
    }
    const preflight = await Stream.open(apart, fresh, { method: 'OPTIONS',
      headers: { Origin: origin, 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'last-event-id' } });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers['access-control-allow-origin'], origin);
    assert.match(preflight.headers['access-control-allow-headers'], /Last-Event-ID/i);
    await own.stop();
  });

  itOnce('a shop\'s pages may read them; beyond the limit of open streams the answer is 503, until one is closed', async () => {
    const own = await start({ args: ['--cors-origin', 'https://shop.example', '--http-threads', '2'],
      wrap: (argv) => ['sh', '-c', 'ulimit -n 428; exec "$@"', 'sh', ...argv] });
    const fresh = await own.createEvent();
    for (const [Origin, allowed] of [['https://shop.example', 'https://shop.example'], ['https://shop.example.evil', undefined]]) {
      const stream = await Stream.open(own, fresh, { method: 'HEAD', headers: { Origin } });
      assert.equal(stream.headers['access-control-allow-origin'], allowed);
      assert.match(stream.headers.vary, /Origin/);
    }
    const most = Math.floor((428 - 224 - 2 * 2) / 3) * 2;
    const streams = []; // one after the other: a connection that has not asked for anything yet may have to make room for the next
    while (streams.length < most) streams.push(await Stream.open(own, fresh));
    for (const { status } of streams) assert.equal(status, 200);
    const refusal = await Stream.open(own, fresh);
    await refusal.closed;
    assertProblem({ status: refusal.status, headers: refusal.headers, text: refusal.text, json: refusal.json }, 503, 'overloaded');
    assert.ok(Number(refusal.headers['retry-after']) > 0);
    assert.equal((await own.get(`/v1/events/${fresh.id}`)).status, 200, 'there are connections left for requests');
    streams.pop().close();
    const again = await until('a place is free', async () => {
      const stream = await Stream.open(own, fresh);
      return stream.status === 200 ? stream : null;
    });
    streams.push(again);
    await own.stop();
  });

  itOnce('silence is broken by a comment every 15 s', async () => {
    assert.ok(await idle.commented(1, 45_000 - (Date.now() - idleSince)), 'no comment');
    assert.ok(Date.now() - idleSince >= 14_000);
    assert.ok(!idle.isClosed);
    idle.close();
  });
});
