// A reader of server-sent events that parses them as the standard prescribes, over one plain HTTP request:
// it does not reconnect.  For streams of seats it can also maintain the map.

import assert from 'node:assert/strict';
import http from 'node:http';
import https from 'node:https';
import zlib from 'node:zlib';

export class Stream {
  // Resolves when the answer begins, whatever its status.  `address` is a server, or { host, port, tls }.  If it is
  // several servers (server.mjs), the first of them shows by then what was done to the event through the others.
  static async open(address, event, { after, lastEventId, headers = {}, method = 'GET', path } = {}) {
    await address.waitUntilEqual?.(event?.id ? [event.id] : undefined);
    const { host, port, tls } = address;
    const target = path ?? `/v1/events/${event.id}/stream${after === undefined ? '' : `?after=${after}`}`;
    return new Promise((resolve, reject) => {
      const req = (tls ? https : http).request({
        ...tls, host, port, method, path: target, agent: false,
        headers: { ...(lastEventId === undefined ? {} : { 'Last-Event-ID': `${lastEventId}` }), ...headers },
      }, (res) => resolve(new Stream(req, res)));
      req.on('error', reject);
      req.end();
    });
  }

  constructor(req, res) {
    this.req = req;
    this.status = res.statusCode;
    this.headers = res.headers;
    this.messages = []; // { id, event, data, at }, data parsed
    this.comments = 0;
    this.bytes = 0;
    this.text = ''; // everything received, up to 1 MiB
    this.rest = '';
    this.lastEventId = undefined;
    this.waiting = new Set();
    this.res = res;
    req.removeAllListeners('error');
    req.on('error', () => {});
    let text = res;
    if (res.headers['content-encoding'] === 'gzip') { // the server never ends the gzip stream
      text = res.pipe(zlib.createGunzip({ finishFlush: zlib.constants.Z_SYNC_FLUSH }));
      text.on('error', (error) => { this.fault = error; });
    }
    text.setEncoding('utf8');
    text.on('data', (data) => this.#read(data));
    res.on('error', () => {}); // 'close' follows
    // Resolves to true if the server ended the stream, false if the connection broke.
    this.closed = new Promise((resolve) => {
      res.once('close', () => { this.isClosed = true; this.#tell(); resolve(res.complete); });
    });
  }

  get json() { return JSON.parse(this.text); }

  // Resolves to the first message that `fits`, received already or later; to null if the stream ends first.
  async find(fits = () => true, timeoutMs = 120_000) {
    const deadline = Date.now() + timeoutMs;
    for (let i = 0; ; i++) {
      while (i >= this.messages.length) {
        if (this.isClosed) return null;
        assert.ok(Date.now() < deadline, `no such message within ${timeoutMs} ms of ${this.messages.length}`);
        await this.#news(deadline - Date.now());
      }
      if (fits(this.messages[i])) return this.messages[i];
    }
  }

  // Waits until everything up to `seq` was received.
  reach(seq, timeoutMs) { return this.find(({ data }) => data.seq >= seq, timeoutMs); }

  async commented(count, timeoutMs) {
    const deadline = Date.now() + timeoutMs;
    while (this.comments < count && !this.isClosed && Date.now() < deadline) await this.#news(deadline - Date.now());
    return this.comments >= count;
  }

  close() { this.req.destroy(); }

  #news(timeoutMs) {
    return new Promise((resolve) => {
      const tell = () => { clearTimeout(timer); this.waiting.delete(tell); resolve(); };
      const timer = setTimeout(tell, timeoutMs);
      this.waiting.add(tell);
    });
  }

  #tell() { for (const tell of this.waiting) tell(); }

  #read(data) {
    this.bytes += Buffer.byteLength(data);
    if (this.text.length < 1 << 20) this.text += data;
    const blocks = (this.rest + data).split('\n\n');
    this.rest = blocks.pop();
    for (const block of blocks) this.#block(block);
    this.#tell();
  }

  #block(block) {
    const message = { event: 'message', at: Date.now() };
    let payload;
    for (const line of block.split('\n')) {
      const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
      if (field === '') this.comments++;
      else if (field === 'id') { message.id = value; this.lastEventId = value; }
      else if (field === 'event') message.event = value;
      else if (field === 'data') payload = payload === undefined ? value : `${payload}\n${value}`;
    }
    if (payload === undefined) return;
    message.data = JSON.parse(payload);
    this.messages.push(message);
  }
}

// Applies messages of seats to a map { name: letter }.
export function apply(map, messages) {
  for (const { event, data } of messages) {
    assert.equal(event, 'seats');
    for (const [seat, letter] of data.changes) {
      assert.ok(seat in map, seat);
      assert.match(letter, /^[.hbx]$/);
      map[seat] = letter;
    }
  }
  return map;
}
