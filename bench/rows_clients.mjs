// The rows of the clients (clients/js, clients/python): what a call costs the process that makes it, beside the same call by
// hand, in the same language and in C.  See rows.mjs for the shape of a row.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createEvent, expectPost, run } from './load.mjs';
import { atMost, SMALL, withPeer } from './rows.mjs';
import { startHoldfast } from './servers.mjs';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const TURNS = [['read', 1], ['read', 8], ['refused', 1]];
const RUN_S = 2; // of one program
const LIMIT_MS = 120_000;

// Runs each program in turn; resolves to { program: [a result for each of TURNS] }.
async function once(bench, event, programs) {
  const results = Object.fromEntries(Object.keys(programs).map((name) => [name, []]));
  for (const [kind, atOnce] of TURNS) {
    for (const [name, [command, args]] of Object.entries(programs)) {
      const words = [...args, kind, event, Math.min(bench.seconds, RUN_S), atOnce];
      results[name].push(JSON.parse(await run(command, words.map(String), LIMIT_MS)));
    }
  }
  return results;
}

// `of(program, i)` are the results of a program in the ith turn, one for each round.
function lines(client, peer, of) {
  return TURNS.flatMap(([kind, atOnce], i) => {
    const name = `clients, ${client}, ${kind}, ${atOnce} at once`;
    return [
      withPeer(name, 'calls/s', 'per_second', of(client, i), 'libcurl', of('libcurl', i)),
      withPeer(name, 'CPU us/call', 'cpu_us', of(client, i), 'libcurl', of('libcurl', i)),
      withPeer(name, 'CPU us/call', 'cpu_us', of(client, i), peer, of(peer, i), atMost(2)),
    ];
  });
}

export async function clients(bench) {
  const server = await startHoldfast(bench, 'clients', '--payments', 'off');
  const event = await createEvent(server.url, SMALL, { hold_ttl_ms: 1_200_000, hold_max_ms: 1_200_000 });
  await expectPost(201, server.url, '/v1/holds', { event, seats: ['S1-A-1'] });
  const programs = {
    libcurl: [join(bench.tools, 'calls'), [server.url]],
    js: [process.execPath, [here('calls.mjs'), server.url, 'client']],
    fetch: [process.execPath, [here('calls.mjs'), server.url, 'hand']],
    python: ['python3', [here('calls.py'), server.url, 'client']],
    'http.client': ['python3', [here('calls.py'), server.url, 'hand']],
  };
  const rounds = [];
  for (let round = 1; round <= bench.rounds; round++) {
    rounds.push(await once(bench, event, programs));
    bench.progress('clients', round);
  }
  await server.stop();
  const of = (program, i) => rounds.map((results) => results[program][i]);
  return [...lines('js', 'fetch', of), ...lines('python', 'http.client', of)];
}
