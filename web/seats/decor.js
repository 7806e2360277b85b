// What surrounds the seats: areas with their shapes and texts, names of sections and rows.  Names and colours are a seller's
// text: they only ever become text and colours of a canvas.

import { areaBox, areaLabel, areaMiddle } from './plan.js';
import { contrast, inkOn, rgbaOf } from './theme.js';

const TEXT_LEN_MAX = 200;
const SECTIONS_NAMED_MAX = 200;
const READABLE_PX = 7; // texts smaller than this are left out
const SEAM = 0.25; // around the name of a row, in its size
const LEGIBLE = 3; // the contrast that the text of an area needs
const SOLD_PX = 13; // the name of an area that is sold is not smaller, if there is room, and so is what is said below it
const DOT_PX = 4; // seats smaller than this cannot be told apart

const short = (text) => {
  const whole = String(text ?? '');
  return whole.length > TEXT_LEN_MAX ? `${whole.slice(0, TEXT_LEN_MAX - 1)}…` : whole;
};

// A colour that one can see through, on another.
const over = ([r, g, b, a], below) => [r, g, b].map((part, i) => Math.round((part * a + below[i] * (255 - a)) / 255)).concat(255);

// The areas of a plan with their colours as the theme has them, and their words.
export function prepareAreas(plan, theme) {
  return plan.areas.map((area) => {
    const isText = area.shape === 'text', isSold = area.name !== null && area.name !== undefined;
    const fill = isText ? null : rgbaOf(area.color);
    const backdrop = fill ? over(fill, theme.surfaceRgba) : isText ? theme.surfaceRgba : theme.areaRgba;
    const wanted = rgbaOf(area.text?.color);
    const isLegible = wanted && contrast(wanted, backdrop) >= LEGIBLE;
    const border = rgbaOf(area.border_color) ? area.border_color : fill && !isSold ? null : theme.areaLine;
    return {
      area,
      isSold,
      box: areaBox(area),
      label: areaLabel(area),
      fill: isText ? null : fill ? area.color : theme.area,
      line: isText ? null : border,
      ink: isLegible ? area.text.color : fill ? inkOn(backdrop) : theme.ink,
    };
  });
}

function trace(context, { shape, rectangle, circle, ellipse, polygon }) {
  context.beginPath();
  if (shape === 'rectangle' && rectangle) context.rect(0, 0, rectangle.width, rectangle.height);
  else if (shape === 'circle' && circle) context.arc(0, 0, Math.max(0, circle.radius), 0, 2 * Math.PI);
  else if (shape === 'ellipse' && ellipse) context.ellipse(0, 0, Math.max(0, ellipse.radius.x), Math.max(0, ellipse.radius.y), 0, 0, 2 * Math.PI);
  else if (shape === 'polygon' && polygon) {
    for (const { x, y } of polygon.points) context.lineTo(x, y);
    context.closePath();
  }
}

// True if the point of the plan lies in the area.
export function areaContains(context, area, x, y) {
  const angle = -((area.rotation ?? 0) * Math.PI) / 180;
  const dx = x - area.x, dy = y - area.y;
  trace(context, area);
  context.save();
  context.setTransform(1, 0, 0, 1, 0, 0);
  const isInside = context.isPointInPath(dx * Math.cos(angle) - dy * Math.sin(angle), dx * Math.sin(angle) + dy * Math.cos(angle));
  context.restore();
  return isInside;
}

// Draws the areas in view.  `caption(name, isNamed)` is what is said of an area that is sold, below its words, which have its name
// already if `isNamed`; `ratio` is in device pixels per CSS pixel.
export function drawAreas(context, view, ratio, areas, theme, caption) {
  const scale = view.scale * ratio;
  for (const prepared of areas) {
    const { area, box, fill, line, isSold } = prepared;
    if (box.right < view.left || box.left > view.right || box.bottom < view.top || box.top > view.bottom) continue;
    context.setTransform(scale, 0, 0, scale, view.toScreenX(area.x) * ratio, view.toScreenY(area.y) * ratio);
    if (area.rotation) context.rotate((area.rotation * Math.PI) / 180);
    if (fill) {
      trace(context, area);
      context.fillStyle = fill;
      context.fill();
    }
    if (line) {
      context.strokeStyle = line;
      context.lineWidth = (isSold ? 2 : 1) / view.scale;
      context.stroke();
    }
    drawLabel(context, view, theme, prepared, caption);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
}

// How far an area reaches below a point of it: where there is no room for a second line, there is one.
function roomBelow({ shape, rectangle, circle, ellipse, polygon }, y) {
  if (shape === 'rectangle') return (rectangle?.height ?? 0) - y;
  if (shape === 'polygon') return Math.max(...(polygon?.points ?? []).map((point) => point.y), y) - y;
  return (shape === 'circle' ? circle?.radius ?? 0 : shape === 'ellipse' ? ellipse?.radius.y ?? 0 : 0) - y;
}

function drawLabel(context, view, theme, { area, label, ink, isSold }, caption) {
  if (!label) return;
  const { words, x, y } = label;
  if (!isSold) {
    drawText(context, view, theme, { text: words, x, y, size: label.size, ink });
    return;
  }
  const least = SOLD_PX / view.scale, width = Math.max(label.width, areaMiddle(area).width * 0.9);
  const size = Math.max(label.size, least);
  const said = caption(area.name, words.toLowerCase().includes(String(area.name).toLowerCase()));
  const hasRoom = roomBelow(area, y) > size / 2 + least * 1.3;
  drawText(context, view, theme, { text: said && !hasRoom ? `${words} · ${said}` : words, x, y, size, ink, weight: 600, width });
  const below = area.shape === 'circle' || area.shape === 'ellipse' ? areaMiddle(area).width * 0.8 : width;
  if (said && hasRoom) drawText(context, view, theme, { text: said, x, y: y + size / 2 + least * 0.75, size: least, ink, width: below });
}

// With `width` the text is made small enough for it, or left out.
function drawText(context, view, theme, { text, x, y, size, ink, weight = 400, width = Infinity }) {
  const style = (px) => `${weight} ${px}px ${theme.font}`;
  context.font = style(size);
  const wide = width < Infinity ? context.measureText(short(text)).width : 0;
  const fitting = wide > width ? size * width / wide : size;
  if (fitting * view.scale < READABLE_PX) return;
  if (fitting !== size) context.font = style(fitting);
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = ink;
  context.fillText(short(text), x, y);
}

// Draws the names of the rows, where the plan has places for them, with a seam that keeps them readable on areas of any colour.
export function drawRowNames(context, view, ratio, plan, theme) {
  const size = Math.min(18, Math.max(9, view.seatPx * 0.55));
  context.font = `600 ${size * ratio}px ${theme.font}`;
  context.textBaseline = 'middle';
  context.fillStyle = theme.soft;
  context.strokeStyle = theme.surface;
  context.lineWidth = SEAM * size * ratio;
  context.lineJoin = 'round';
  for (const row of plan.rows) {
    for (const { x, y, side, size: reach } of row.names) {
      if (x < view.left - reach || x > view.right + reach || y < view.top - reach || y > view.bottom + reach) continue;
      context.textAlign = side === 0 ? 'center' : side > 0 ? 'left' : 'right';
      const at = [view.toScreenX(x) * ratio, view.toScreenY(y) * ratio];
      context.strokeText(short(row.name), ...at);
      context.fillText(short(row.name), ...at);
    }
  }
}

// True if a box of the canvas, given by its middle and half its sides, covers a part of a seat.
function hasSeats(plan, view, ratio, x, y, halfWidth, halfHeight) {
  const [px, py] = [view.toPlanX(x / ratio), view.toPlanY(y / ratio)], unit = view.scale * ratio;
  const reach = [halfWidth / unit, halfHeight / unit];
  let isCovered = false;
  plan.spatial.forEachIn(px - reach[0] - plan.radiusMax, py - reach[1] - plan.radiusMax, px + reach[0] + plan.radiusMax, py + reach[1] + plan.radiusMax, (i) => {
    isCovered ||= Math.abs(plan.x[i] - px) < reach[0] + plan.radius[i] && Math.abs(plan.y[i] - py) < reach[1] + plan.radius[i];
  });
  return isCovered;
}

// Draws the names of the sections where seats are too small to see rows: above their seats or below, and in their midst where seats are
// but dots.  A name that would cover another, or seats that can be told apart, is left out.
export function drawSectionNames(context, view, ratio, plan, theme) {
  if (plan.sections.length < 2) return;
  const size = 13 * ratio, placed = [];
  const worded = plan.areas.filter(({ name, text }) => name || text?.text).map(areaBox);
  context.font = `600 ${size}px ${theme.font}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (const { name, box } of plan.sections.slice(0, SECTIONS_NAMED_MAX)) {
    if (!(box.left <= box.right)) continue;
    const text = short(name), x = view.toScreenX((box.left + box.right) / 2) * ratio;
    const half = context.measureText(text).width / 2 + 6 * ratio;
    if (half * 2 > (box.right - box.left) * view.scale * ratio * 1.3) continue;
    const [top, bottom] = [view.toScreenY(box.top) * ratio - size, view.toScreenY(box.bottom) * ratio + size];
    const isFree = (y) => !worded.some((area) => x + half > view.toScreenX(area.left) * ratio && x - half < view.toScreenX(area.right) * ratio
      && y + size > view.toScreenY(area.top) * ratio && y - size < view.toScreenY(area.bottom) * ratio) && !placed.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - y) < size * 1.7);
    const y = view.seatPx < DOT_PX ? [(top + bottom) / 2].find(isFree)
      : [top, bottom].find((at) => isFree(at) && !hasSeats(plan, view, ratio, x, at, half, size * 0.8));
    if (y === undefined) continue;
    placed.push({ x, y, half });
    context.fillStyle = theme.surface;
    context.globalAlpha = 0.88;
    context.beginPath();
    context.roundRect(x - half, y - size * 0.8, 2 * half, size * 1.6, size * 0.5);
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = theme.ink;
    context.fillText(text, x, y);
  }
}
