// Many requests at one moment, and what became of them.

import { Wire } from './wire.mjs';

// How often each outcome was given: { '201': 1, '409 seat_taken': 9999 }.
export function tally(answers) {
  const counts = {};
  for (const { status, json } of answers) {
    const name = status < 300 ? `${status}` : `${status} ${json.code}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

// `connections` open first, then `each` requests on every one of them, all started at once.
export async function stampede(address, connections, each, bytesOf) {
  const wires = [];
  for (let i = 0; i < connections; i += 250) wires.push(...await Wire.connectMany(address, Math.min(250, connections - i)));
  const answers = [];
  await Promise.all(wires.map(async (wire, index) => {
    for (let i = 0; i < each; i++) answers.push(await wire.send(bytesOf(index, i)));
  }));
  for (const wire of wires) wire.close();
  await address.settle?.();
  return answers;
}
