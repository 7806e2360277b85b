// The clock of deadlines: milliseconds that go on while the machine sleeps, unlike those of Node's own monotonic clock.

import fs from 'node:fs';
import os from 'node:os';
import { now } from './waits.js';

// For how long the machine has been up, sleep included: Linux tells it to 10 ms, of which Node 18 passes on whole seconds.
const isLinux = process.platform === 'linux';
const RESOLUTION_MS = isLinux ? 10 : 1000;
const uptime = isLinux ? () => Number.parseFloat(fs.readFileSync('/proc/uptime', 'latin1')) : os.uptime;
const gap = () => uptime() * 1000 - now();
const atStart = Math.max(gap(), gap(), gap()); // too small where the process stood still within one of them
let asleepMs = 0; // never too small once a sleep was noticed

export function clock() {
  const ms = gap() - atStart;
  if (ms > asleepMs + 3 * RESOLUTION_MS) asleepMs = ms + 2 * RESOLUTION_MS;
  return now() + asleepMs;
}
