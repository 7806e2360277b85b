// A TCP proxy between a server and its database or gate that misbehaves on request.
//
//   const proxy = await startProxy(postgres.port);
//   proxy.cut();        // every connection reset, new ones refused
//   proxy.blackhole();  // connections stay, bytes vanish both ways; new ones are accepted and ignored
//   proxy.delay(50);    // each chunk is delayed by 50 ms in each direction
//   proxy.cutAfter(n);  // once: the first n bytes of a connection's requests pass, then it is reset
//   proxy.cutAt(match, 'before' | 'after' | 'late');  // once, PostgreSQL only: resets the connection instead of
//                       // forwarding a statement, or instead of forwarding its answer; or the statement is late:
//   await proxy.arrive();  // and forwarded now, with what was sent together with it
//   proxy.restore();    // forwards again; black-holed connections are reset, as after a network partition

import net from 'node:net';
import { once } from 'node:events';
import { reset } from './wire.mjs';

const SSL_REQUEST = 80877103, GSS_REQUEST = 80877104;

// Extracts the statements that a client of PostgreSQL runs from the bytes that it sends.
class Statements {
  #rest = Buffer.alloc(0);
  #started = false;
  #prepared = new Map();
  #all = new Set();
  recent = []; // statements since the last COMMIT or ROLLBACK

  // Returns the statements that these bytes complete, each with those before it in its transaction.
  read(data) {
    const found = [];
    this.#rest = Buffer.concat([this.#rest, data]);
    for (;;) {
      const from = this.#started ? 1 : 0; // the first message of a connection has no type byte
      if (this.#rest.length < from + 4) return found;
      const len = from + this.#rest.readInt32BE(from);
      if (this.#rest.length < len) return found;
      const message = this.#rest.subarray(0, len);
      this.#rest = this.#rest.subarray(len);
      if (!this.#started) this.#started = ![SSL_REQUEST, GSS_REQUEST].includes(message.readInt32BE(4));
      else this.#message(String.fromCharCode(message[0]), message.toString('latin1', 5).split('\0'), found);
    }
  }

  ran(pattern) { return [...this.#all].some((text) => pattern.test(text)); }

  #message(type, [first, second], found) {
    if (type === 'P') this.#prepared.set(first, second);
    const text = type === 'Q' ? first : type === 'B' ? this.#prepared.get(second) : undefined;
    if (text === undefined) return;
    this.#all.add(text);
    found.push({ text, recent: [...this.recent] });
    if (/^\s*(COMMIT|ROLLBACK|END)/i.test(text)) this.recent = [];
    else this.recent.push(text);
  }
}

// With `postgres`, the server behind it is PostgreSQL, and the proxy tells statements apart.
export async function startProxy(port, { postgres = false } = {}) {
  const proxy = new Proxy(port, postgres);
  await proxy.listen();
  return proxy;
}

class Proxy {
  #links = new Set(); // { client, upstream, seen: bytes from the client, statements, dead }
  #mode = 'open';
  #delayMs = 0;
  #trap = null;
  #late = null; // { upstream, data }

  constructor(port, postgres) {
    this.target = { port, host: '127.0.0.1' };
    this.postgres = postgres;
  }

  async listen() {
    this.server = net.createServer((client) => this.#accept(client));
    this.server.listen(this.port ?? 0, '127.0.0.1');
    await once(this.server, 'listening');
    this.server.unref();
    this.port = this.server.address().port;
  }

  get connections() { return this.#links.size; }

  #accept(client) {
    client.on('error', () => {});
    if (this.#mode === 'cut') return reset(client);
    const link = { client, upstream: null, seen: 0, statements: new Statements(), dead: this.#mode === 'blackhole' };
    this.#links.add(link);
    client.setNoDelay(true);
    client.unref();
    const close = () => { this.#links.delete(link); client.destroy(); link.upstream?.destroy(); };
    client.on('close', close);
    if (link.dead) return client.resume();
    const upstream = net.connect(this.target);
    link.upstream = upstream;
    upstream.setNoDelay(true);
    upstream.unref();
    upstream.on('error', () => reset(client));
    upstream.on('close', close);
    client.on('data', (data) => this.#fromClient(link, data));
    upstream.on('data', (data) => this.#pass(link, client, data));
    // A black hole does not forward a FIN either.
    client.on('end', () => { if (!link.dead) upstream.end(); });
    upstream.on('end', () => { if (!link.dead) client.end(); });
  }

  #fromClient(link, data) {
    if (link.dead) return;
    const asked = this.postgres ? link.statements.read(data) : [];
    const trap = this.#trap;
    if (trap && (trap.match ? asked.some(trap.match) : link.seen + data.length > trap.bytes)) {
      this.#trap = null;
      return this.#spring(trap, link, data);
    }
    link.seen += data.length;
    this.#pass(link, link.upstream, data);
  }

  #spring(trap, link, data) {
    link.dead = true;
    const cut = () => {
      reset(link.client);
      if (trap.when !== 'late') link.upstream.destroy();
      trap.resolve();
    };
    if (trap.when === 'late') {
      link.client.removeAllListeners('close'); // the way to the server stays
      this.#links.delete(link);
      this.#late = { upstream: link.upstream, data };
      return cut();
    }
    if (trap.bytes > link.seen) return void link.upstream.write(data.subarray(0, trap.bytes - link.seen), cut);
    if (trap.when !== 'after') return cut();
    let answer = '';
    link.upstream.on('data', (more) => {
      answer += more.toString('latin1');
      if (/C\0\0\0.COMMIT\0/s.test(answer)) cut();
    });
    link.upstream.write(data);
  }

  #pass(link, to, data) {
    if (link.dead) return;
    if (this.#delayMs === 0 && !link.late) return void to.write(data);
    link.late = true; // from now on through the queue, which keeps the order when the delay changes
    const at = Date.now() + this.#delayMs;
    link.queue = (link.queue ?? Promise.resolve()).then(async () => {
      const rest = at - Date.now();
      if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
      if (!link.dead && !to.destroyed) to.write(data);
    });
  }

  delay(ms) { this.#delayMs = ms; }

  cut() {
    this.#mode = 'cut';
    this.reset();
  }

  // Refuses new connections, and resets the connections that have run a statement that matches.  Returns
  // how many.  The other connections stay.
  cutThose(pattern) {
    this.#mode = 'cut';
    const those = [...this.#links].filter(({ statements }) => statements.ran(pattern));
    for (const link of those) { reset(link.client); link.upstream?.destroy(); }
    return those.length;
  }

  // Resets every connection; new ones are accepted unless the proxy is cut.
  reset() {
    for (const link of this.#links) { reset(link.client); link.upstream?.destroy(); }
  }

  blackhole() {
    this.#mode = 'blackhole';
    for (const link of this.#links) link.dead = true;
  }

  // Once, when a client runs a statement for which `match({ text, recent })` is true: resets the connection
  // before the statement is forwarded (or, if it is late, forwarded by `arrive`), or after PostgreSQL has committed.
  // Resolves when that happens.
  cutAt(match, when) {
    return new Promise((resolve) => { this.#trap = { match, when, resolve }; });
  }

  // Forwards what is late, as if it had been in a socket or a pooler until now.  Returns PostgreSQL's answer.
  async arrive() {
    const { upstream, data } = this.#late;
    let answer = '';
    upstream.on('data', (more) => { answer += more.toString('latin1'); });
    upstream.ref();
    upstream.end(data);
    await once(upstream, 'close');
    return answer;
  }

  // Once, when a client has sent more than `bytes` bytes: exactly that many are forwarded, then the
  // connection is reset.
  cutAfter(bytes) {
    return new Promise((resolve) => { this.#trap = { bytes, resolve }; });
  }

  // Makes black holes of the connections that have run a statement that matches.  Returns how many.  New
  // connections work.
  blackholeThose(pattern) {
    const those = [...this.#links].filter(({ statements }) => statements.ran(pattern));
    for (const link of those) link.dead = true;
    return those.length;
  }

  restore() {
    this.#mode = 'open';
    this.#delayMs = 0;
    this.#trap = null;
    for (const link of this.#links) if (link.dead) { reset(link.client); link.upstream?.destroy(); }
  }

  async close() {
    this.reset();
    this.server.close();
  }
}
