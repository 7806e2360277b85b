// How one seat looks, drawn once per look and size; the map copies these pictures.  Each state has a shape of its own, so that
// nobody needs to tell colours apart:
//
//   available  a full disc in the colour of its category     mine     a disc with a check mark
//   held       a ring, half full                              booked   a small cross
//   blocked    a dash                                         dimmed   a thin ring: free, but not of the category that stands out
//
// Wheelchair places are squares with round corners and the symbol of a wheelchair.

import { AVAILABLE, BLOCKED, BOOKED, HELD } from './board.js';

export const MINE = 4;
export const NUMBERED = 5; // the buyer's own, where a number takes the place of the check mark
export const DIMMED = 6;
export const SYMBOL_ABOVE_PX = 17; // radius, in CSS pixels, from which a symbol leaves room for a number below it
export const HEAT = 8; // HEAT + step; the first step means never

export class Sprites {
  #made = new Map();

  // `scale` is in device pixels per unit of the plan.
  constructor(theme, scale, pixelRatio) {
    this.theme = theme;
    this.scale = scale;
    this.line = Math.max(1, pixelRatio);
  }

  // Returns { picture, half }: an ImageBitmap, which is the fastest to copy, and the distance from its corner to its centre.
  get(look, category, isSquare, radius) {
    const colored = look === AVAILABLE ? category : 0;
    const key = ((Math.round(radius * 4) * 2 + (isSquare ? 1 : 0)) * 64 + look) * 65536 + colored;
    let sprite = this.#made.get(key);
    if (!sprite) {
      sprite = this.#draw(look, colored, isSquare, radius * this.scale);
      this.#made.set(key, sprite);
    }
    return sprite;
  }

  #draw(look, category, isSquare, r) {
    const half = Math.ceil(r) + 1;
    const canvas = new OffscreenCanvas(2 * half, 2 * half);
    const context = canvas.getContext('2d');
    context.translate(half, half);
    drawSeat(context, this.theme, { look, category, isSquare, r: Math.max(1, r - 0.5), line: this.line });
    return { picture: canvas.transferToImageBitmap(), half };
  }
}

function outline(context, isSquare, r) {
  context.beginPath();
  if (isSquare) context.roundRect(-r, -r, 2 * r, 2 * r, r * 0.35);
  else context.arc(0, 0, r, 0, 2 * Math.PI);
}

function full(context, { css, edge }, isSquare, r, line) {
  outline(context, isSquare, r);
  context.fillStyle = css;
  context.fill();
  if (!edge) return;
  outline(context, isSquare, r - line / 2);
  context.strokeStyle = edge;
  context.lineWidth = line;
  context.stroke();
}

function lines(context, color, width, ...points) {
  context.beginPath();
  for (const [x0, y0, x1, y1] of points) { context.moveTo(x0, y0); context.lineTo(x1, y1); }
  context.strokeStyle = color;
  context.lineWidth = width;
  context.lineCap = 'round';
  context.stroke();
}

export function checkMark(context, color, r) {
  context.beginPath();
  context.moveTo(-0.45 * r, 0.05 * r);
  context.lineTo(-0.1 * r, 0.4 * r);
  context.lineTo(0.48 * r, -0.38 * r);
  context.strokeStyle = color;
  context.lineWidth = Math.max(1.25, r * 0.24);
  context.lineCap = context.lineJoin = 'round';
  context.stroke();
}

const SYMBOL_PX = 5; // a symbol in a seat of a smaller radius would be a smudge

// Somebody in a wheelchair, in a square of 2 r.
function wheelchair(context, color, r) {
  context.save();
  context.scale(r, r);
  context.beginPath();
  context.arc(-0.16, -0.7, 0.17, 0, 2 * Math.PI);
  context.fillStyle = color;
  context.fill();
  context.beginPath();
  for (const [i, [x, y]] of [[-0.16, -0.45], [-0.16, 0.02], [0.3, 0.02], [0.5, 0.5]].entries()) context[i === 0 ? 'moveTo' : 'lineTo'](x, y);
  context.moveTo(-0.16, -0.22);
  context.lineTo(0.24, -0.22);
  context.moveTo(0.3, 0.44);
  context.arc(-0.12, 0.26, 0.46, 0.4, 1.2 * Math.PI);
  context.strokeStyle = color;
  context.lineWidth = 0.17;
  context.lineCap = context.lineJoin = 'round';
  context.stroke();
  context.restore();
}

// Draws a seat around the origin.
export function drawSeat(context, theme, { look, category = 0, isSquare = false, r, line = 1 }) {
  if (look === AVAILABLE) {
    const paint = theme.categories[category] ?? theme.categories[0];
    full(context, paint, isSquare, r, line);
    if (!isSquare || r < SYMBOL_PX * line) return;
    const hasRoom = r >= SYMBOL_ABOVE_PX * line;
    context.translate(0, hasRoom ? -0.36 * r : 0);
    wheelchair(context, paint.ink, r * (hasRoom ? 0.52 : 0.78));
    context.translate(0, hasRoom ? 0.36 * r : 0);
  } else if (look === DIMMED) {
    outline(context, isSquare, r - line / 2);
    context.strokeStyle = faded(theme.faint).css;
    context.lineWidth = line;
    context.stroke();
  } else if (look === MINE || look === NUMBERED) {
    full(context, theme.accent, isSquare, r, line);
    if (look === MINE) checkMark(context, theme.onAccent, r);
  } else if (look === HELD) {
    const width = Math.max(line, r * 0.18);
    outline(context, isSquare, r - width / 2);
    context.strokeStyle = theme.taken.css;
    context.lineWidth = width;
    context.stroke();
    context.beginPath();
    context.arc(0, 0, r - width / 2, 0.75 * Math.PI, 1.75 * Math.PI);
    context.fillStyle = theme.taken.css;
    context.fill();
  } else if (look === BOOKED) {
    const reach = r * 0.45;
    lines(context, theme.faint.css, Math.max(line, r * 0.2), [-reach, -reach, reach, reach], [-reach, reach, reach, -reach]);
  } else if (look === BLOCKED) {
    lines(context, theme.faint.css, Math.max(line, r * 0.2), [-r * 0.5, 0, r * 0.5, 0]);
  } else if (look === HEAT) {
    full(context, theme.faint, isSquare, r * 0.35, line);
  } else if (look > HEAT) {
    full(context, theme.heat[look - HEAT - 1], isSquare, r * (0.55 + 0.45 * (look - HEAT) / theme.heat.length), line);
  }
}

function faded({ rgba: [r, g, b] }) { return { css: `rgba(${r}, ${g}, ${b}, 0.5)`, rgba: [r, g, b, 128] }; }

// The colour of a seat that is only a few pixels wide, and how much narrower than its seat the dot is (in pixels).  What is held is
// dark and wide, what is sold or not for sale pale and narrow.
export function tinyLook(theme, look, category) {
  if (look === AVAILABLE) return [theme.categories[category] ?? theme.categories[0], 0];
  if (look === MINE) return [theme.accent, 0];
  if (look === HELD) return [theme.taken, 0];
  if (look > HEAT) return [theme.heat[look - HEAT - 1], 0];
  if (look === HEAT) return [theme.faint, 2];
  return [faded(theme.faint), look === DIMMED ? 1 : 2];
}
