// Details that a review once found wrong.
// backends: sqlite

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { assertInvalid, assertProblem } from '../support/expect.mjs';
import { reap, start } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';
import { Wire } from '../support/wire.mjs';

describe('small print', () => {
  let server, event;
  before(async () => {
    server = await start();
    event = await server.createEvent({
      sections: [{ name: 'S', price: 1, rows: 2, seats_per_row: 5 }], areas: [{ name: 'Floor', price: 1, capacity: 5 }],
    });
  });
  after(async () => { await server?.finish(); await reap(); });

  it('a small map is packed too', async () => {
    const answer = await server.get(`/v1/events/${event.id}/seats`, { 'Accept-Encoding': 'gzip' });
    assert.equal(answer.headers['content-encoding'], 'gzip');
  });

  it('a seat named twice is reported before the event is looked up', async () => {
    for (const call of ['block', 'unblock']) {
      assertProblem(await server.post(`/v1/events/evt_none/${call}`, { seats: ['A', 'A'] }), 400, 'duplicate_seat');
    }
  });

  it('bytes that are no text are no seat, and the answer is text', async () => {
    // A byte alone, a character cut off, a surrogate, an overlong slash, a character beyond U+10FFFF.
    for (const bytes of ['%ff', 'S-A-%c3', '%ED%A0%80', '%c0%af', '%F4%90%80%80']) {
      for (const path of [`/v1/events/${event.id}/seats/${bytes}`, `/v1/audit?event=${event.id}&seat=${bytes}`]) {
        const answer = await server.get(path);
        assertProblem(answer, 404, 'no_such_seat');
        assert.doesNotThrow(() => new TextDecoder('utf-8', { fatal: true }).decode(answer.bytes), path);
      }
    }
  });

  it('a target with a scheme and a host is the same target', async () => {
    const wire = await Wire.connect(server);
    const answer = await wire.send('GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    assert.equal(answer.status, 200);
    const root = await wire.send('GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n');
    assert.equal(root.status, 200);
    assert.match(root.headers['content-type'], /^text\/html/);
    wire.close();
  });

  it('a key used with another request is reported before what that request lacks, but after its syntax errors', async () => {
    const key = { 'Idempotency-Key': 'details-of-a-used-key' };
    const body = { event: event.id, seats: ['S-B-5'] };
    const first = await server.post('/v1/holds', body, key);
    assert.equal(first.status, 201, first.text);
    for (const other of [{ ...body, seats: ['S-Z-1'] }, { ...body, event: 'evt_none' }, { ...body, areas: { Roof: 1 } },
      { ...body, seats: ['S-A-1', 'S-A-1'] }, { ...body, areas: { Floor: 400 } }]) {
      assertProblem(await server.post('/v1/holds', other, key), 422, 'idempotency_mismatch');
    }
    for (const path of [`/v1/events/${event.id}/block`, '/v1/events/evt_none/block']) {
      assertProblem(await server.post(path, { seats: ['S-Z-1'] }, key), 422, 'idempotency_mismatch');
    }
    assertProblem(await server.post('/v1/holds/hold_none/renew', {}, key), 422, 'idempotency_mismatch');
    assertInvalid(await server.post('/v1/holds', { ...body, seats: 'S-B-5' }, key), 'seats');
    const fresh = { 'Idempotency-Key': 'details-of-an-unused-key' };
    assertProblem(await server.post('/v1/holds', { ...body, seats: ['S-Z-1'] }, fresh), 404, 'no_such_seat');
    const again = await server.post('/v1/holds', body, key);
    assert.equal(again.text, first.text);
    assert.equal(again.headers['idempotency-replayed'], 'true');
  });

  it('an empty list of seats is none, if places are wanted', async () => {
    const made = await server.post('/v1/holds', { event: event.id, seats: [], areas: { Floor: 1 } });
    assert.equal(made.status, 201, made.text);
    assert.deepEqual([made.json.seats, made.json.areas], [[], { Floor: 1 }]);
    assertInvalid(await server.post('/v1/holds', { event: event.id, seats: [] }), 'seats');
    assertInvalid(await server.post('/v1/holds', { event: event.id, seats: [], areas: {} }), 'seats');
  });

  it('sold out says whether there are too few or only none together', async () => {
    const hall = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 2, seats_per_row: 3 }] });
    await server.grant(hall, ['S-A-2', 'S-B-2']);
    const apart = await server.post('/v1/holds', { event: hall.id, best_available: { quantity: 2 } });
    assertProblem(apart, 409, 'sold_out');
    assert.equal(apart.json.available, 4);
    assert.match(apart.json.detail, /side by side/);
    const few = await server.post('/v1/holds', { event: hall.id, best_available: { quantity: 5, adjacent: false } });
    assertProblem(few, 409, 'sold_out');
    assert.match(few.json.detail, /[Ff]ewer/);
  });

  it('a page without a name may read no stream, on either port', async () => {
    const shop = await start({ args: ['--cors-origin', 'https://shop.example', '--stream-listen', '127.0.0.1:0'] });
    const sold = await shop.createEvent();
    for (const at of [shop, await shop.streams()]) {
      for (const [Origin, allowed] of [['https://shop.example', 'https://shop.example'], ['null', undefined], ['https://evil.example', undefined]]) {
        const stream = await Stream.open(at, sold, { headers: { Origin } });
        assert.equal(stream.status, 200);
        assert.equal(stream.headers['access-control-allow-origin'], allowed, Origin);
        stream.close();
      }
    }
    await shop.finish();
  });
});
