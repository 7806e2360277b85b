// Streams of the lock service: what happens to a name, and to the locks of a session.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { look, Party, pathOf, waiting } from '../support/locks.mjs';
import { inTime, reap, start } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

let server;
let ann;
let ben;
before(async () => {
  server = await start();
  ann = await Party.open(server, { label: 'ann' });
  ben = await Party.open(server, { label: 'ben' });
});
after(async () => { await server?.stop(); await reap(); });

const watch = async (name, options) => {
  const stream = await Stream.open(server, null, { ...options, path: `${pathOf(name)}/stream` });
  assert.equal(stream.status, 200);
  return stream;
};
const follow = (party, options) => Stream.open(server, null, { ...options, path: `/v1/sessions/${party.id}/stream` });
const kinds = (stream) => stream.messages.map(({ event }) => event);
const heard = (stream, event, fits = () => true) => stream.find((message) => message.event === event && fits(message.data), 20_000);

describe('the stream of a name', () => {
  it('tells of grants, values, releases and losses', async () => {
    const stream = await watch('s/1');
    assert.match(stream.headers['content-type'], /^text\/event-stream/);
    const lock = await ann.take('s/1', { owner: 'a' });
    const { id, data } = await heard(stream, 'granted');
    assert.deepEqual(data, { index: data.index, name: 's/1', label: 'ann', owner: 'a', mode: 'exclusive', fence: lock.fence });
    assert.equal(id, String(data.index));
    assertOk(await ann.set('s/1', lock, 'here'));
    const value = await heard(stream, 'value', (one) => one.value === 'here');
    assert.deepEqual(value.data, { index: value.data.index, name: 's/1', value: 'here', fence: lock.fence });
    assertOk(await ann.release('s/1', 'a'));
    await heard(stream, 'released');
    await heard(stream, 'value', (one) => one.value === null);
    await ben.take('s/1', { owner: 'b' });
    assertOk(await server.post(`${pathOf('s/1')}/break`));
    assert.equal((await heard(stream, 'lost')).data.label, 'ben');
    const indexes = stream.messages.map((message) => message.data.index);
    assert.deepEqual(indexes, [...indexes].sort((a, b) => a - b));
    stream.close();
  });

  it('names the acquisition by its own label, if it has one', async () => {
    const stream = await watch('s/5');
    await ann.take('s/5', { owner: 'a', label: 'thread 3' });
    assertOk(await ann.release('s/5', 'a'));
    await heard(stream, 'released');
    assert.deepEqual(stream.messages.map(({ data }) => data.label), ['thread 3', 'thread 3']);
    stream.close();
  });

  it('tells nothing of other names', async () => {
    const stream = await watch('s/2');
    await ann.take('s/2x', { owner: 'a' });
    await ann.take('s/3', { owner: 'a' });
    await ben.take('s/2', { owner: 'b' });
    await heard(stream, 'granted');
    assert.deepEqual(stream.messages.map(({ data }) => data.name), ['s/2']);
    stream.close();
  });

  it('goes on where a reader has left, or says that it does not know', async () => {
    const stream = await watch('s/4');
    const keeper = await watch('s/4'); // keeps the topic
    const lock = await ann.take('s/4', { owner: 'a' });
    await heard(stream, 'granted');
    stream.close();
    assertOk(await ann.release('s/4', 'a'));
    await heard(keeper, 'released');
    const resumed = await watch('s/4', { lastEventId: stream.lastEventId });
    await heard(resumed, 'released');
    assert.deepEqual(kinds(resumed).filter((kind) => kind !== 'value'), ['released']);
    resumed.close();
    keeper.close();
    const lost = await watch('s/unknown', { lastEventId: 1 });
    await heard(lost, 'reset');
    assert.ok((await look(server, 's/4')).last_fence >= lock.fence);
    lost.close();
  });

  it('ends when the server stops', async () => {
    const own = await start();
    const stream = await Stream.open(own, null, { path: '/v1/locks/x/stream' });
    await own.stop();
    assert.equal(await stream.closed, true);
  });
});

describe('the stream of a session', () => {
  it('tells what its locks become, and that they are wanted', async () => {
    const cat = await Party.open(server, { label: 'cat' });
    const stream = await follow(cat);
    await cat.take('t/1', { owner: 'c', mode: 'shared', cache: true });
    assert.equal((await heard(stream, 'granted')).data.owner, 'c');
    const write = ben.ask('t/1', { owner: 'b', wait_ms: 60_000 });
    assert.equal((await heard(stream, 'wanted')).data.name, 't/1');
    assertOk(await cat.release('t/1', 'c'));
    assertOk(await write);
    await heard(stream, 'released');
    assert.ok(!kinds(stream).includes('lost'));
    assert.ok(stream.messages.every(({ data }) => data.label === 'cat'), 'only its own');
    assert.equal((await cat.close()).status, 204);
    assert.equal(await stream.closed, true);
  });

  it('tells of a grant after waiting, and of a lock that was broken', async () => {
    const cat = await Party.open(server, { label: 'cat' });
    const stream = await follow(cat);
    await ann.take('t/2', { owner: 'a' });
    const asked = cat.ask('t/2', { owner: 'c', wait_ms: 60_000 });
    await waiting(server, 't/2', ['cat']);
    assertOk(await ann.release('t/2', 'a'));
    assertOk(await asked);
    await heard(stream, 'granted');
    assertOk(await server.post(`${pathOf('t/2')}/break`));
    await heard(stream, 'lost');
    assert.deepEqual(kinds(stream), ['granted', 'lost']);
    await cat.close();
  });

  it('ends when the session expires', async () => {
    const [cat, stream] = await inTime(async (ttl_ms) => {
      const short = await Party.open(server, { ttl_ms });
      const followed = await follow(short);
      await short.take('t/3', { owner: 'c', wait_ms: 30_000 });
      return [short, followed];
    });
    assert.equal(await stream.closed, true);
    assert.deepEqual(kinds(stream), ['granted', 'lost']);
    assertProblem(await cat.keepAlive(), 410, 'session_expired');
    assert.equal((await follow(cat)).status, 410);
  });
});
