// Single seats: free ones that a choice would leave between what is taken, where hardly anybody buys them.  The rule is the server's
// (docs/api.md, "Single seats").
//
// A stretch is free seats that stand side by side in their row with no aisle between; those that the buyer has already count as free.
// Places for wheelchairs and the seats of companions end a stretch.  A choice must not leave a seat of a stretch without a free one
// beside it, unless that seat is all that is left of the stretch.

import { AVAILABLE } from './board.js';
import { ACCESSIBLE, COMPANION } from './plan.js';

const AISLE_FACTOR = 1.7; // times the usual distance of neighbours in the row

// The numbers of the seats that would be left single if those of the set `chosen` were taken; `mine` are those that the buyer has.
export function loneSeats(plan, board, chosen, mine = new Set()) {
  const lone = [];
  const isFree = (i) => board.states[i] === AVAILABLE;
  for (const row of new Set([...chosen].map((i) => plan.row[i]))) {
    for (const stretch of stretches(plan, plan.rows[row], (i) => isFree(i) || mine.has(i))) {
      const isLeft = stretch.map((i) => !chosen.has(i) && !mine.has(i));
      if (!stretch.some((i) => chosen.has(i)) || isLeft.filter(Boolean).length < 2) continue;
      stretch.forEach((i, at) => {
        const wasLone = ![at - 1, at + 1].some((beside) => beside in stretch && isFree(stretch[beside]));
        if (isLeft[at] && !isLeft[at - 1] && !isLeft[at + 1] && !wasLone) lone.push(i);
      });
    }
  }
  return lone;
}

function stretches(plan, row, isPart) {
  const seats = inOrder(plan, row);
  const gaps = seats.slice(1).map((i, at) => distance(plan, seats[at], i));
  const aisle = AISLE_FACTOR * ([...gaps].sort((a, b) => a - b)[(gaps.length - 1) >> 1] ?? 0);
  const found = [];
  let stretch = [];
  seats.forEach((i, at) => {
    if (at > 0 && gaps[at - 1] > aisle) stretch = [];
    if (!isPart(i) || plan.flags[i] & (ACCESSIBLE | COMPANION)) {
      stretch = [];
      return;
    }
    if (stretch.length === 0) found.push(stretch);
    stretch.push(i);
  });
  return found;
}

const distance = (plan, i, j) => Math.hypot(plan.x[i] - plan.x[j], plan.y[i] - plan.y[j]);
const lengthOf = (plan, seats) => seats.reduce((sum, i, at) => (at > 0 ? sum + distance(plan, seats[at - 1], i) : 0), 0);

// The seats of a row in the order in which they stand: as listed, unless sorting them along the row makes the way from the first to
// the last shorter.  So a row like a horseshoe stays as it was listed, and one that lists odd numbers before even ones does not.
function inOrder(plan, { first, end }) {
  const listed = Array.from({ length: end - first }, (_, at) => first + at);
  const mean = (values) => listed.reduce((sum, i) => sum + values[i], 0) / listed.length;
  const mx = mean(plan.x), my = mean(plan.y);
  let xx = 0, xy = 0, yy = 0;
  for (const i of listed) {
    const dx = plan.x[i] - mx, dy = plan.y[i] - my;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  const angle = Math.atan2(2 * xy, xx - yy) / 2;
  const along = (i) => plan.x[i] * Math.cos(angle) + plan.y[i] * Math.sin(angle);
  const sorted = [...listed].sort((i, j) => along(i) - along(j));
  return lengthOf(plan, sorted) < lengthOf(plan, listed) * 0.999 ? sorted : listed;
}
