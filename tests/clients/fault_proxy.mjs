// An HTTP proxy between a client and a server that remembers every request and makes faults.  proxy.mjs forwards bytes
// and breaks connections; this one knows where a request ends, so that it can break one before or after the server has it.
//
//   const proxy = await startFaultProxy(server);           // an object with a port, which may change
//   proxy.fault({ at: 'POST /v1/holds', do: 'cut_after' });  // the next request to there; README.md of the scenarios has the list
//   proxy.link('cut');                                       // all connections: cut, blackhole, reset, restore
//   proxy.requestsAt('POST /v1/holds')                       // [{ method, path, headers, body, at }], oldest first; `at` in ms

import http from 'node:http';
import { once } from 'node:events';
import { IDLE_MS } from '../support/server.mjs';
import { reset } from '../support/wire.mjs';

export async function startFaultProxy(target) {
  const proxy = new FaultProxy(target);
  await proxy.listen();
  return proxy;
}

// Whether a request is at a place like `POST /v1/holds/*/renew`.
export function isAt({ method, path }, place) {
  const [wanted, pattern] = place.split(' ');
  const expression = pattern.split('*').map((part) => part.replace(/[.\\+?^${}()|[\]]/g, '\\$&')).join('[^/]+');
  return method === wanted && new RegExp(`^${expression}$`).test(path.split('?')[0]);
}

class FaultProxy {
  #faults = []; // { at, do, times, ... }, oldest first
  #links = new Set(); // sockets of clients; `isDead` if nothing passes any more
  #mode = 'open';
  #agent = new http.Agent({ keepAlive: true, timeout: IDLE_MS });

  constructor(target) {
    this.target = target;
    this.requests = [];
  }

  async listen() {
    this.server = http.createServer((req, res) => this.#serve(req, res));
    this.server.on('connection', (socket) => this.#accept(socket));
    this.server.on('clientError', (error, socket) => socket.destroy());
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.server.unref();
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }

  fault({ times = 1, ...fault }) { this.#faults.push({ ...fault, left: times }); }

  link(mode) {
    if (mode === 'blackhole') for (const socket of this.#links) socket.isDead = true;
    else for (const socket of this.#links) if (mode !== 'restore' || socket.isDead) reset(socket);
    if (mode !== 'reset') this.#mode = mode === 'restore' ? 'open' : mode;
  }

  requestsAt(place) { return this.requests.filter((request) => isAt(request, place)); }

  close() {
    for (const socket of this.#links) socket.destroy();
    this.server.close();
    this.#agent.destroy();
  }

  #accept(socket) {
    socket.on('error', () => {});
    if (this.#mode === 'cut') return reset(socket);
    socket.isDead = this.#mode === 'blackhole';
    this.#links.add(socket);
    socket.unref();
    socket.on('close', () => this.#links.delete(socket));
  }

  #serve(req, res) {
    const chunks = [];
    res.on('error', () => {});
    req.on('error', () => {});
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', () => {
      if (req.socket.isDead) return;
      const body = Buffer.concat(chunks);
      const request = { method: req.method, path: req.url, headers: req.headers, body: body.toString(), at: performance.now() };
      this.requests.push(request);
      const fault = this.#faults.find(({ at, left }) => left > 0 && isAt(request, at));
      if (fault) fault.left--;
      this.#carryOut(fault ?? { do: 'pass' }, request, body, res);
    });
  }

  #carryOut(fault, request, body, res) {
    const { socket } = res;
    const pass = (headers = request.headers) => this.#forward({ ...request, headers }, body, res);
    const store = (then) => this.#store(request, body, socket, then);
    const answer = () => {
      const text = typeof fault.body === 'string' ? fault.body : JSON.stringify(fault.body ?? {});
      res.writeHead(fault.status, { 'Content-Type': 'application/problem+json', 'Content-Length': Buffer.byteLength(text), ...fault.headers });
      res.end(text);
    };
    const faults = {
      pass,
      delay: () => setTimeout(pass, fault.ms),
      stall: () => {},
      stall_after: () => store(() => {}),
      cut_before: () => reset(socket),
      cut_after: () => store(() => reset(socket)),
      answer,
      answer_after: () => store(answer),
      duplicate: () => store(pass),
      // A reader of a stream asks for what came after something earlier, and is sent again what it has.
      rewind: () => {
        const last = request.headers['last-event-id'] ?? new URL(request.path, this.url).searchParams.get('after');
        pass(last === null ? request.headers : { ...request.headers, 'last-event-id': `${Math.max(0, Number(last) - fault.by)}` });
      },
    };
    faults[fault.do]();
  }

  #ask({ method, path, headers }, body, onAnswer, onError) {
    const ask = http.request({ host: '127.0.0.1', port: this.target.port, method, path, headers, agent: this.#agent }, onAnswer);
    ask.on('error', onError);
    ask.end(body);
    return ask;
  }

  // Carries a request out, drops the answer, and then calls `then`.
  #store(request, body, socket, then) {
    this.#ask(request, body, (answer) => answer.on('error', () => reset(socket)).on('end', then).resume(), () => reset(socket));
  }

  #forward(request, body, res) {
    const { socket } = res;
    const fail = () => { if (!socket.isDead) reset(socket); };
    const ask = this.#ask(request, body, (answer) => {
      if (socket.isDead) return;
      res.writeHead(answer.statusCode, answer.headers);
      res.flushHeaders();
      answer.on('data', (data) => { if (!socket.isDead) res.write(data); });
      answer.on('end', () => { if (!socket.isDead) res.end(); });
      answer.on('error', fail);
    }, fail);
    res.once('close', () => { if (!res.writableFinished) ask.destroy(); }); // the client has gone away
  }
}
