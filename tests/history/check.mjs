// Judges what the holders of locks wrote down (tests/history/worker.c).  Claims:
//
//   exclusion  No two holders of a name believed at the same moment that they held it.
//   fences     If one holder's time ended before another's began, the later one has the larger fence.
//   losses     No holder was told before its deadline that it does not hold the lock.
//
// Times are microseconds of CLOCK_BOOTTIME, which all processes of a machine share.

import fs from 'node:fs';
import path from 'node:path';

// Reads the logs of a directory, or one of them: one { id, name, fence, start, end } per grant.  The last line of a process
// that was killed may be cut off.
export function readGrants(dir, only) {
  const grants = [];
  for (const file of fs.readdirSync(dir).filter((name) => (only ? name === only : name.endsWith('.log'))).sort()) {
    const lines = fs.readFileSync(path.join(dir, file), 'utf8').split('\n').slice(0, -1);
    grants.push(...parseGrants(lines));
  }
  return grants;
}

export function parseGrants(lines) {
  const grants = new Map();
  for (const line of lines) {
    const [kind, id, ...rest] = line.split(' ');
    if (kind === 'G') grants.set(id, { id, name: rest[0], fence: BigInt(rest[1]), start: Number(rest[2]), end: Number(rest[2]) });
    else if (kind === 'L') grants.get(id).lost = true;
    else grants.get(id).end = Number(rest[0]);
  }
  return [...grants.values()];
}

const byName = (grants) => Map.groupBy ? Map.groupBy(grants, ({ name }) => name)
  : grants.reduce((map, grant) => map.set(grant.name, [...(map.get(grant.name) ?? []), grant]), new Map());

// The pairs of grants whose times overlap, each with its length in microseconds.
export function overlaps(grants) {
  const found = [];
  for (const [, all] of byName(grants)) {
    let last = null; // of those that began before, the one that ended last
    for (const grant of all.sort((a, b) => a.start - b.start)) {
      if (last && grant.start <= last.end) found.push({ first: last, second: grant, us: Math.min(last.end, grant.end) - grant.start });
      if (!last || grant.end > last.end) last = grant;
    }
  }
  return found;
}

// The grants that were lost before their deadlines.
export const losses = (grants) => grants.filter(({ lost }) => lost);

// The pairs of grants one after the other whose fences do not grow.
export function fenceErrors(grants) {
  const found = [];
  for (const [, all] of byName(grants)) {
    const ended = [...all].sort((a, b) => a.end - b.end);
    let largest = null, next = 0; // of those that ended before the grant began
    for (const grant of all.sort((a, b) => a.start - b.start)) {
      for (; next < ended.length && ended[next].end < grant.start; next++) {
        if (!largest || ended[next].fence > largest.fence) largest = ended[next];
      }
      if (largest && grant.fence <= largest.fence) found.push({ first: largest, second: grant });
    }
  }
  return found;
}

export const describe = ({ first, second, us }) => `${first.name}: fence ${first.fence} from ${first.start} to ${first.end}, `
  + `fence ${second.fence} from ${second.start} to ${second.end}${us === undefined ? '' : ` (${us} us together)`}`;
