// Sends many requests at the same moment and counts their outcomes.

import { patiently } from './server.mjs';
import { Wire } from './wire.mjs';

// Counts the answers by outcome: { '201': 1, '409 seat_taken': 9999 }.
export function tally(answers) {
  const counts = {};
  for (const { status, json } of answers) {
    const name = status < 300 ? `${status}` : `${status} ${json.code}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

// Opens the connections first, then starts `each` requests on every one of them at once.
export async function stampede(address, connections, each, bytesOf) {
  const wires = [];
  for (let i = 0; i < connections; i += 250) wires.push(...await Wire.connectMany(address, Math.min(250, connections - i)));
  const answers = [];
  await Promise.all(wires.map(async (wire, index) => {
    for (let i = 0; i < each; i++) answers.push(await patiently(() => wire.send(bytesOf(index, i))));
  }));
  for (const wire of wires) wire.close();
  await address.waitUntilEqual?.();
  return answers;
}
