// The clock of deadlines: milliseconds that go on while the machine sleeps, unlike those of Node's own monotonic clock.

import os from 'node:os';
import { now } from './waits.js';

// Linux tells since Node 20 to 10 ms for how long the machine has been up, sleep included; elsewhere it is whole seconds.
const RESOLUTION_MS = process.platform === 'linux' && !process.versions.node.startsWith('18.') ? 10 : 1000;
const gap = () => os.uptime() * 1000 - now();
const atStart = Math.max(gap(), gap(), gap()); // too small where the process stood still within one of them
let asleepMs = 0; // never too small once a sleep was noticed

export function clock() {
  const ms = gap() - atStart;
  if (ms > asleepMs + 3 * RESOLUTION_MS) asleepMs = ms + 2 * RESOLUTION_MS;
  return now() + asleepMs;
}
