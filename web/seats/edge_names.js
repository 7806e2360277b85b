// Names of rows whose own names are outside the picture.  They stand in a margin at its edge, as on a ruler, so that a row has a name
// however close one looks, and no seat is half under a letter.

const PAD_PX = 5;
const APART = 1.15; // least distance of two names, in their heights
const NAME_GAP = 1.7;
const SEAT_EDGE = 1.15; // radiuses from the middle of a seat: nothing of it is drawn there
const TEXT_LEN_MAX = 8;

// `seen` has the numbers of the seats in view.
export function drawEdgeNames(context, view, ratio, plan, theme, seen) {
  const size = Math.min(15, Math.max(10, view.seatPx * 0.5)) * ratio;
  context.font = `600 ${size}px ${theme.font}`;
  context.textBaseline = 'middle';
  context.textAlign = 'center';
  const widthOf = (text) => context.measureText(text).width;
  const marginOf = (names) => Math.max(...names.map(({ text }) => widthOf(text))) + 2 * PAD_PX * ratio;
  for (const side of [-1, 1]) {
    const cut = namesAt(side, { view, ratio, plan, size, seen, widthOf, inset: 0 });
    if (cut.length === 0) continue;
    // A name that stands where the margin is moves into it, too.
    const names = namesAt(side, { view, ratio, plan, size, seen, widthOf, inset: marginOf(cut) / ratio / view.scale });
    const width = marginOf(names);
    const left = side < 0 ? 0 : view.width * ratio - width;
    context.fillStyle = theme.surface;
    context.fillRect(left, 0, width, view.height * ratio);
    for (const { i, y } of names) { // what the margin leaves of the name in the picture
      if (!isLast(side, plan, i)) continue;
      const from = side < 0 ? width : left, to = view.toScreenX(plan.x[i] + side * SEAT_EDGE * plan.radius[i]) * ratio;
      if ((to - from) * side < 0) context.fillRect(Math.min(from, to), y - size * 0.95, Math.abs(to - from), size * 1.9);
    }
    context.fillStyle = theme.areaLine;
    context.fillRect(side < 0 ? width - ratio : left, 0, ratio, view.height * ratio);
    context.fillStyle = theme.ink;
    for (const { text, y } of names) context.fillText(text, left + width / 2, y);
  }
}

// A name in the picture begins NAME_GAP radiuses from the middle of the last seat of its row.
function namesAt(side, { view, ratio, plan, size, seen, widthOf, inset }) {
  const names = [];
  const part = Math.min(18, Math.max(9, view.seatPx * 0.55)) * ratio / size; // how large it is there, as decor.js has it
  const reachOf = (text) => NAME_GAP * plan.radiusTypical + part * widthOf(text) / ratio / view.scale;
  for (const [row, i] of outermost(side, view, plan, seen)) {
    const text = String(plan.rows[row].name).slice(0, TEXT_LEN_MAX);
    if (!hasNameAt(plan.rows[row], side) || !isCutOff(side, view, plan, plan.rows[row], reachOf(text) + inset)) continue;
    const y = Math.round(view.toScreenY(plan.y[i]) * ratio);
    if (names.some((other) => Math.abs(other.y - y) < size * APART)) continue;
    names.push({ text, y, i });
  }
  return names;
}

// A name stands on a side of the seats if the plan has one there.
function hasNameAt({ labelPosition, name }, side) {
  return name !== '' && Boolean(labelPosition) && labelPosition !== (side < 0 ? 'end' : 'start');
}

// The outermost seat in view of each row on a side: [row, seat].
function outermost(side, view, plan, seen) {
  const rows = new Map();
  for (const i of seen) {
    if (plan.x[i] < view.left || plan.x[i] > view.right || plan.y[i] < view.top || plan.y[i] > view.bottom) continue;
    const known = rows.get(plan.row[i]);
    if (known === undefined || (plan.x[i] - plan.x[known]) * side > 0) rows.set(plan.row[i], i);
  }
  return rows;
}

// Is there no seat of the row beyond this one?
function isLast(side, plan, i) {
  const { first, end } = plan.rows[plan.row[i]];
  return [first, end - 1].includes(i) && (plan.x[i] - plan.x[i === first ? end - 1 : first]) * side >= 0;
}

// Does the row, with `reach` beyond its last seat, run out of the picture on this side?  A row that runs up and down does not.
function isCutOff(side, view, plan, { first, end }, reach) {
  const [a, b] = [first, end - 1];
  if (Math.abs(plan.x[b] - plan.x[a]) <= Math.abs(plan.y[b] - plan.y[a])) return false;
  return side < 0 ? Math.min(plan.x[a], plan.x[b]) - reach < view.left : Math.max(plan.x[a], plan.x[b]) + reach > view.right;
}
