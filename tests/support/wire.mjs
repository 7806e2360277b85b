// A plain HTTP/1.1 connection, with TLS if the server has it: it sends exactly the bytes that it is given and matches answers to requests
// in order.  For races, where requests must be cheap and pipelined, and for clients that misbehave.

import assert from 'node:assert/strict';
import net from 'node:net';
import nodeTls from 'node:tls';

// Ends a connection with a reset instead of a FIN.  If the socket is just sending its FIN, it is destroyed
// without a reset: Node would mark the handle as closing without closing it (TCPWrap::Reset ignores
// libuv's EINVAL) and, when the process ends, wait for that handle in a busy loop.
export function reset(socket) {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}

export function encode(method, target, body, headers = {}) {
  const payload = body === undefined ? Buffer.alloc(0)
    : Buffer.isBuffer(body) ? body
      : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  let head = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\n`;
  for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`;
  if (body !== undefined) head += `Content-Length: ${payload.length}\r\n`;
  return Buffer.concat([Buffer.from(`${head}\r\n`), payload]);
}

export class Wire {
  constructor(socket) {
    this.socket = socket;
    this.waiting = []; // { resolve, reject } of the requests that wait for an answer, oldest first
    this.buffer = Buffer.alloc(0);
    this.answers = [];
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.isClosed = true;
        const error = this.error ?? new Error('the connection was closed');
        for (const { reject } of this.waiting.splice(0)) reject(error);
        resolve(this.error);
      });
    });
    socket.setNoDelay(true);
    socket.on('error', (error) => { this.error = error; });
    socket.on('data', (data) => this.#read(data));
    socket.on('end', () => socket.end());
  }

  // `address` has a host and a port, and maybe the localAddress that the connection comes from; or it is several
  // servers (server.mjs), which take turns.
  static async connect(address) {
    await address.waitUntilEqual?.();
    return Wire.#open(address.turn?.() ?? address);
  }

  static async connectMany(address, count) {
    await address.waitUntilEqual?.();
    return Promise.all(Array.from({ length: count }, () => Wire.#open(address.turn?.() ?? address)));
  }

  static #open({ host = '127.0.0.1', port, localAddress, tls }) {
    return new Promise((resolve, reject) => {
      const options = { ...tls, host, port, localAddress, allowHalfOpen: true };
      const socket = tls ? nodeTls.connect(options) : net.connect(options);
      socket.once('error', reject);
      socket.once(tls ? 'secureConnect' : 'connect', () => {
        socket.off('error', reject);
        resolve(new Wire(socket));
      });
    });
  }

  // Sends one encoded request; resolves to its answer.
  send(bytes) {
    return new Promise((resolve, reject) => {
      if (this.isClosed) return reject(this.error ?? new Error('the connection was closed'));
      this.waiting.push({ resolve, reject });
      this.socket.write(bytes);
    });
  }

  request(method, target, body, headers) { return this.send(encode(method, target, body, headers)); }

  // Sends any bytes: part of a request, or no request at all.  Never rejects.
  write(bytes) {
    return new Promise((resolve) => {
      if (this.isClosed || this.socket.destroyed) return resolve();
      this.socket.write(bytes, () => resolve());
    });
  }

  // Resolves to the next answer that no request waits for; to null if the connection closes first.
  next() {
    return new Promise((resolve) => {
      if (this.answers.length > 0) return resolve(this.answers.shift());
      if (this.isClosed) return resolve(null);
      this.waiting.push({ resolve, reject: () => resolve(null) });
    });
  }

  close() { this.socket.destroy(); }
  reset() { reset(this.socket); }

  #read(data) {
    this.buffer = this.buffer.length === 0 ? data : Buffer.concat([this.buffer, data]);
    for (;;) {
      const answer = this.#parse();
      if (!answer) return;
      if (answer.status === 100) continue;
      const waiter = this.waiting.shift();
      if (waiter) waiter.resolve(answer);
      else this.answers.push(answer);
    }
  }

  #parse() {
    const headEnd = this.buffer.indexOf('\r\n\r\n');
    if (headEnd < 0) return null;
    const [statusLine, ...lines] = this.buffer.toString('latin1', 0, headEnd).split('\r\n');
    const match = /^HTTP\/1\.[01] (\d{3})/.exec(statusLine);
    assert.ok(match, `not a status line: ${statusLine}`);
    const status = Number(match[1]);
    const headers = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const from = headEnd + 4;
    const bodiless = status === 204 || status === 304 || status < 200;
    assert.ok(bodiless || headers['content-length'] !== undefined, `no Content-Length: ${statusLine}`);
    const length = bodiless ? 0 : Number(headers['content-length']);
    if (this.buffer.length < from + length) return null;
    const text = this.buffer.toString('utf8', from, from + length);
    this.buffer = this.buffer.subarray(from + length);
    return {
      status, headers, text,
      get json() { return text === '' ? undefined : JSON.parse(text); },
    };
  }
}
