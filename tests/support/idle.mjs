// A client process that opens connections and leaves them idle, so that one test can have more connections
// than one process may open:  node idle.mjs HOST PORT COUNT.  Half of the connections make a request first.
// Prints `open N` when all are established, and again for each line of input.

import net from 'node:net';
import { createInterface } from 'node:readline';

const [host, port, count] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
let open = 0;
let failed = 0;

const connect = (index) => new Promise((resolve) => {
  const socket = net.connect({ host, port });
  let counted = false;
  const up = () => { if (!counted) { counted = true; open++; resolve(); } };
  socket.on('connect', () => {
    if (index % 2) socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n');
    else up();
  });
  socket.on('data', up);
  socket.on('error', () => { failed++; resolve(); });
  socket.on('close', () => { if (counted) open--; resolve(); });
});

for (let i = 0; i < count; i += 200) {
  await Promise.all(Array.from({ length: Math.min(200, count - i) }, (_, k) => connect(i + k)));
}
console.log(`open ${open} failed ${failed}`);
createInterface({ input: process.stdin }).on('line', () => console.log(`open ${open} failed ${failed}`))
  .on('close', () => process.exit(0));
