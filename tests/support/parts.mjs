// What the suites of scripts/cluster and scripts/cell share: both run parts of a deployment on fixed ports.

import fs from 'node:fs';
import { claimPort, freePort } from './process.mjs';

// Resolves to the first of `count` consecutive free ports.
export async function freePorts(count) {
  for (;;) {
    const first = await freePort();
    const rest = await Promise.all(Array.from({ length: count - 1 }, (_, i) => claimPort(first + 1 + i)));
    if (rest.every(Boolean)) return first;
  }
}

// Returns every descendant of the process.
export function descendants(pid) {
  const parents = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map((name) => {
    try {
      const stat = fs.readFileSync(`/proc/${name}/stat`, 'utf8');
      return [Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])];
    } catch { return [0, 0]; }
  });
  const below = (parent) => parents.filter(([, of]) => of === parent).flatMap(([child]) => [child, ...below(child)]);
  return below(pid);
}
