// The twin of the server without its protection: it looks, lets others run, then writes.  The race
// tests run their judgement on it too, to show that they can see the race they rule out.

import http from 'node:http';

// As long as a query to a database elsewhere.
const turn = () => new Promise((resolve) => setTimeout(resolve, 50));

// `capacity`: places of each area; `free`: seats to choose from for who asks for the best ones.
export async function startUnprotected({ capacity = {}, free = [] } = {}) {
  const owner = new Map(); // seat -> number of the last hold that wrote itself there
  const left = { ...capacity };
  const keys = new Set();
  let fence = 0;
  let holds = 0;

  const hold = async (body, key) => {
    if (key && keys.has(key)) return [201, { replayed: true }];
    const areas = Object.entries(body.areas ?? {});
    const seen = {}; // read
    for (const [area, quantity] of areas) {
      await turn();
      seen[area] = left[area];
      if (left[area] < quantity) return [409, { code: 'sold_out', available: left[area] }];
    }
    const wanted = body.best_available?.quantity ?? 0;
    const seats = wanted ? free.filter((seat) => !owner.has(seat)).slice(0, wanted) : body.seats ?? [];
    if (seats.length < wanted) return [409, { code: 'sold_out', available: seats.length }];
    for (const seat of seats) {
      await turn();
      if (owner.has(seat)) return [409, { code: 'seat_taken' }];
    }
    const next = fence + 1; // read
    const number = ++holds;
    for (const seat of seats) {
      await turn();
      owner.set(seat, number);
    }
    for (const [area, quantity] of areas) {
      await turn();
      left[area] = seen[area] - quantity; // write
    }
    fence = next; // write
    if (key) keys.add(key);
    return [201, { id: `hold_${number}`, fence: next, seats, areas: body.areas ?? {} }];
  };

  const server = http.createServer((req, res) => {
    const chunks = [];
    req.on('data', (chunk) => chunks.push(chunk));
    req.on('end', async () => {
      const [status, json] = await hold(JSON.parse(Buffer.concat(chunks)), req.headers['idempotency-key']);
      const text = JSON.stringify(json);
      res.writeHead(status, { 'Content-Length': Buffer.byteLength(text), 'Content-Type': 'application/json' });
      res.end(text);
    });
  });
  await new Promise((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, resolve));
  return {
    host: '127.0.0.1', port: server.address().port,
    stop: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections?.(); }),
  };
}
