// A server without protection against races: it reads, lets other requests run, then writes.  The race
// tests run the same assertions on it, to show that they detect the race that they rule out.

import http from 'node:http';

// Takes as long as a query to a database on another machine.
const turn = () => new Promise((resolve) => setTimeout(resolve, 50));

// `capacity` is the number of places of each area; `free` lists the seats for requests of best_available.
export async function startUnprotected({ capacity = {}, free = [] } = {}) {
  const owner = new Map(); // seat -> number of the last hold that was written there
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
