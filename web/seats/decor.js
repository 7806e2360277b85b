// What surrounds the seats: areas with their shapes and texts, names of sections and rows.  Names and colours are a seller's
// text: they only ever become text and colours of a canvas.

import { areaBox } from './plan.js';
import { contrast, inkOn, rgbaOf } from './theme.js';

const TEXT_LEN_MAX = 200;
const SECTIONS_NAMED_MAX = 200;
const READABLE_PX = 7; // texts smaller than this are left out

const short = (text) => {
  const whole = String(text ?? '');
  return whole.length > TEXT_LEN_MAX ? `${whole.slice(0, TEXT_LEN_MAX - 1)}…` : whole;
};

// The areas of a plan with their colours as the theme has them.
export function prepareAreas(plan, theme) {
  return plan.areas.map((area) => {
    const isText = area.shape === 'text';
    const fill = rgbaOf(area.color);
    const backdrop = fill && fill[3] > 127 ? fill : isText ? theme.surfaceRgba : theme.areaRgba;
    const wanted = rgbaOf(area.text?.color);
    const isLegible = wanted && contrast(wanted, backdrop) >= 2.5;
    return {
      area,
      box: areaBox(area),
      fill: isText ? null : fill ? area.color : theme.area,
      line: isText ? null : rgbaOf(area.border_color) ? area.border_color : theme.areaLine,
      ink: isLegible ? area.text.color : inkOn(backdrop),
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

// The middle of an area, relative to its position, and how wide it is there: where its name stands.
function middle({ rectangle, circle, ellipse, polygon }) {
  if (rectangle) return { x: rectangle.width / 2, y: rectangle.height / 2, width: rectangle.width };
  const points = polygon?.points ?? [];
  if (points.length === 0) return { x: 0, y: 0, width: 2 * (circle?.radius ?? ellipse?.radius?.x ?? 0) };
  const xs = points.map(({ x }) => x), ys = points.map(({ y }) => y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  return { x: (left + right) / 2, y: (Math.min(...ys) + Math.max(...ys)) / 2, width: right - left };
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

// Draws the areas in view.  `caption(name)` is the text of an area that is sold; `ratio` is in device pixels per CSS pixel.
export function drawAreas(context, view, ratio, areas, theme, caption) {
  const scale = view.scale * ratio;
  for (const { area, box, fill, line, ink } of areas) {
    if (box.right < view.left || box.left > view.right || box.bottom < view.top || box.top > view.bottom) continue;
    context.setTransform(scale, 0, 0, scale, view.toScreenX(area.x) * ratio, view.toScreenY(area.y) * ratio);
    if (area.rotation) context.rotate((area.rotation * Math.PI) / 180);
    if (fill) {
      trace(context, area);
      context.fillStyle = fill;
      context.fill();
      context.strokeStyle = line;
      context.lineWidth = (area.name === null ? 1 : 2) / view.scale;
      context.stroke();
    }
    const isSold = area.name !== null && area.name !== undefined;
    const at = area.text?.position ?? { x: 0, y: 0 };
    // The caption of an area that is sold begins with its name, so the same name is not written twice.
    if (area.text?.text && area.text.text !== area.name) drawText(context, view, theme, { text: area.text.text, x: at.x, y: at.y, size: area.text.size ?? 16, ink });
    if (isSold) {
      const { x, y, width } = middle(area);
      drawText(context, view, theme, { text: caption(area.name), x, y, size: 13 / view.scale, ink, weight: 600, width: width * 0.9 });
    }
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
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

// Draws the names of the rows at their ends, as the plan wants them.
export function drawRowNames(context, view, ratio, plan, theme) {
  const size = Math.min(18, Math.max(9, view.seatPx * 0.55));
  context.font = `600 ${size * ratio}px ${theme.font}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = theme.soft;
  for (const row of plan.rows) {
    if (row.first === row.end || !row.labelPosition) continue;
    if (row.labelPosition !== 'end') drawRowName(context, view, ratio, plan, row, row.first, row.first + 1 < row.end ? row.first + 1 : -1, -1);
    if (row.labelPosition !== 'start') drawRowName(context, view, ratio, plan, row, row.end - 1, row.end - 2 >= row.first ? row.end - 2 : -1, 1);
  }
}

function drawRowName(context, view, ratio, plan, row, end, next, side) {
  const x = plan.x[end], y = plan.y[end], r = plan.radius[end];
  if (x < view.left - 3 * r || x > view.right + 3 * r || y < view.top - 3 * r || y > view.bottom + 3 * r) return;
  let dx = side, dy = 0;
  if (next >= 0) {
    const length = Math.hypot(x - plan.x[next], y - plan.y[next]) || 1;
    dx = (x - plan.x[next]) / length;
    dy = (y - plan.y[next]) / length;
  }
  // A long name grows away from the seats.
  context.textAlign = Math.abs(dx) < 0.5 ? 'center' : dx > 0 ? 'left' : 'right';
  context.fillText(short(row.name), view.toScreenX(x + dx * r * 1.7) * ratio, view.toScreenY(y + dy * r * 1.7) * ratio);
}

// Draws the names of the sections where seats are too small to see rows.  A name that would cover another is left out.
export function drawSectionNames(context, view, ratio, plan, theme) {
  if (plan.sections.length < 2) return;
  const size = 13 * ratio, placed = [];
  context.font = `600 ${size}px ${theme.font}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (const { name, box } of plan.sections.slice(0, SECTIONS_NAMED_MAX)) {
    if (!(box.left <= box.right)) continue;
    const text = short(name), x = view.toScreenX((box.left + box.right) / 2) * ratio, y = view.toScreenY((box.top + box.bottom) / 2) * ratio;
    const half = context.measureText(text).width / 2 + 6 * ratio;
    if (half * 2 > (box.right - box.left) * view.scale * ratio * 1.3) continue;
    if (placed.some((other) => Math.abs(other.x - x) < other.half + half && Math.abs(other.y - y) < size * 1.7)) continue;
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
