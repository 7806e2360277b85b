// The calls of calls.c in JavaScript, through the client, or by hand with fetch:
//
//   node bench/calls.mjs URL client|hand read|refused EVENT SECONDS AT_ONCE

import { Client, Conflict } from '../clients/js/index.js';

const [url, by, kind, event, seconds, atOnce] = process.argv.slice(2);
const WARM_CALLS = 2000; // until it is compiled, which takes as long as a thousand calls
const client = new Client(url);
const wanted = { event, seats: ['S1-A-1'] };

async function fetched(status, path, options) {
  const response = await fetch(url + path, options);
  if (response.status !== status) throw new Error(`not the answer that was to be measured: ${response.status}`);
  return response.json();
}

const calls = {
  client: {
    read: () => client.events.get(event),
    refused: () => client.holds.create(wanted).then(() => { throw new Error('it was granted'); }, (error) => {
      if (!(error instanceof Conflict)) throw error;
    }),
  },
  hand: {
    read: () => fetched(200, `/v1/events/${event}`),
    refused: () => fetched(409, '/v1/holds', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(wanted) }),
  },
};

// Makes calls until it is enough; resolves to their number.
async function load(isEnough) {
  const call = calls[by][kind];
  let n = 0;
  const caller = async () => { for (; !isEnough(n); n++) await call(); };
  await Promise.all(Array.from({ length: Number(atOnce) }, caller));
  return n;
}

await load((n) => n >= WARM_CALLS);
const begun = performance.now();
const cpu = process.cpuUsage();
const requests = await load(() => performance.now() >= begun + seconds * 1000);
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ requests, per_second: requests / ((performance.now() - begun) / 1000), cpu_us: (user + system) / requests }));
await client.close();
