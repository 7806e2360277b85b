// What Node's HTTP server makes of the bytes of a connection, without a socket.  Its parser (llhttp) is as strict as it is
// by default; only the demand for a Host, which is not the parser's, is switched off.

import http from 'node:http';
import { Duplex } from 'node:stream';

const AT_A_TIME = 500;
const turn = () => new Promise((resolve) => setImmediate(resolve));

const server = http.createServer({ requireHostHeader: false });
server.on('clientError', (error, socket) => { socket.heard.refused ??= error.code; });

function hear(expects, request, response) {
  if (request.socket.heard.refused) return;
  const heard = {
    method: request.method,
    target: request.url,
    version: request.httpVersion,
    fields: [],
    body: '',
    persists: response.shouldKeepAlive,
    expects,
    ended: false,
  };
  for (let i = 0; i < request.rawHeaders.length; i += 2) heard.fields.push([request.rawHeaders[i], request.rawHeaders[i + 1]]);
  request.setEncoding('latin1').on('data', (data) => { heard.body += data; });
  request.on('end', () => { heard.ended = true; }).on('error', () => {});
  request.socket.heard.requests.push(heard);
}
server.on('request', (...args) => hear(false, ...args));
server.on('checkContinue', (...args) => hear(true, ...args));
server.on('checkExpectation', ({ socket }) => { socket.heard.refused ??= 'EXPECTATION'; }); // Node would answer 417

function connect(input) {
  const socket = new Duplex({ read() {}, write: (data, encoding, done) => done() });
  socket.heard = { requests: [], refused: undefined };
  // Node closes a CONNECT that nobody listens for.
  socket.on('error', () => {}).on('close', () => { socket.heard.refused ??= 'CLOSED'; });
  server.emit('connection', socket);
  socket.push(input);
  return socket;
}

// Resolves to one { requests, refused } per input.  `refused` is Node's reason, or undefined if it has none or waits for more.
// A request whose body is incomplete has not `ended`.
export async function nodeReads(inputs) {
  const results = [];
  for (let at = 0; at < inputs.length; at += AT_A_TIME) {
    const sockets = inputs.slice(at, at + AT_A_TIME).map(connect);
    for (let i = 0; i < 4; i++) await turn(); // for the data, the bodies and the ends to arrive
    for (const { heard } of sockets) results.push({ ...heard });
    for (const socket of sockets) socket.destroy();
    await turn();
  }
  return results;
}
