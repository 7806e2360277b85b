// A TCP proxy that misbehaves when told to: between a server and its database or gate.
//
//   const proxy = await startProxy(postgres.port);
//   proxy.cut();        // every connection reset, new ones refused
//   proxy.blackhole();  // connections stay, bytes vanish both ways; new ones are accepted and ignored
//   proxy.delay(50);    // each chunk so many ms late, each way
//   proxy.onRequest(/COMMIT/, 'before' | 'after');  // once: reset instead of, or right after, passing on
//   proxy.restore();    // well again; what was black-holed is reset, as a healed network would find it

import net from 'node:net';
import { once } from 'node:events';

export async function startProxy(port, host = '127.0.0.1') {
  const proxy = new Proxy(port, host);
  await proxy.listen();
  return proxy;
}

class Proxy {
  #links = new Set(); // { client, upstream, seen: bytes from the client }
  #mode = 'open';
  #delayMs = 0;
  #trap = null;

  constructor(port, host) { this.target = { port, host }; }

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
    if (this.#mode === 'cut') return client.resetAndDestroy();
    const link = { client, upstream: null, seen: 0, tail: '', dead: this.#mode === 'blackhole' };
    this.#links.add(link);
    client.setNoDelay(true);
    client.unref();
    const over = () => { this.#links.delete(link); client.destroy(); link.upstream?.destroy(); };
    client.on('close', over);
    if (link.dead) return client.resume();
    const upstream = net.connect(this.target);
    link.upstream = upstream;
    upstream.setNoDelay(true);
    upstream.unref();
    upstream.on('error', () => client.resetAndDestroy());
    upstream.on('close', over);
    client.on('data', (data) => this.#fromClient(link, data));
    upstream.on('data', (data) => this.#pass(link, client, data));
    // A half-closed connection to a dead peer is a black hole too.
    client.on('end', () => { if (!link.dead) upstream.end(); });
    upstream.on('end', () => { if (!link.dead) client.end(); });
  }

  #fromClient(link, data) {
    if (link.dead) return;
    const trap = this.#trap;
    if (trap) {
      link.tail = (link.tail + data.toString('latin1')).slice(-65536);
      if (trap.pattern ? trap.pattern.test(link.tail) : link.seen + data.length > trap.bytes) {
        this.#trap = null;
        return this.#spring(trap, link, data);
      }
    }
    link.seen += data.length;
    this.#pass(link, link.upstream, data);
  }

  // Once it is certain that upstream has the bytes, its answer is thrown away; or upstream never has them.
  #spring(trap, link, data) {
    link.dead = true;
    const cut = () => {
      if (trap.how !== 'blackhole') { link.client.resetAndDestroy(); link.upstream.destroy(); }
      trap.resolve(link);
    };
    if (trap.when === 'before') {
      const passed = trap.pattern ? 0 : Math.max(0, trap.bytes - link.seen);
      if (passed > 0) link.upstream.write(data.subarray(0, passed), cut);
      else cut();
    } else {
      link.upstream.removeAllListeners('data');
      link.upstream.once('data', cut); // its answer: it has done what it was asked
      link.upstream.write(data);
    }
  }

  #pass(link, to, data) {
    if (link.dead) return;
    if (this.#delayMs === 0 && !link.late) return void to.write(data);
    link.late = true; // in order, also when the delay becomes shorter
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

  // Every connection there is, reset; new ones are welcome unless it is cut.
  reset() {
    for (const link of this.#links) { link.client.resetAndDestroy(); link.upstream?.destroy(); }
  }

  blackhole() {
    this.#mode = 'blackhole';
    for (const link of this.#links) link.dead = true;
  }

  // The connections that are there now become black holes, new ones are well.
  blackholeOld(which = () => true) {
    for (const link of this.#links) if (which(link)) link.dead = true;
  }

  // Once, when what a client sends matches: reset that connection `before` upstream has it, or `after`
  // it has answered.  Resolves when it has happened.
  onRequest(pattern, when, how = 'reset') {
    return new Promise((resolve) => { this.#trap = { pattern, when, how, resolve }; });
  }

  // Once, when a client has sent more than so many bytes: exactly those reach upstream, then a reset.
  cutAfter(bytes) {
    return new Promise((resolve) => { this.#trap = { bytes, when: 'before', how: 'reset', resolve }; });
  }

  restore() {
    this.#mode = 'open';
    this.#delayMs = 0;
    this.#trap = null;
    for (const link of this.#links) if (link.dead) { link.client.resetAndDestroy(); link.upstream?.destroy(); }
  }

  async close() {
    this.reset();
    this.server.close();
  }
}
