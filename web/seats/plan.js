// The plan of an event, as arrays with one entry per seat.
//
// The server's document (GET /v1/events/{e}/plan) has an object for each seat.  The map reads it once and keeps numbers in
// typed arrays, so that drawing and searching 100,000 seats touches no objects.  A seat's number is its place in the
// document, which is also its place in the snapshot.

import { SeatIndex } from './spatial.js';

export const ACCESSIBLE = 1;
export const COMPANION = 2;
export const RESTRICTED_VIEW = 4;

const RADIUS = 10; // of a seat that states none
const RADIUS_PART_MAX = 8; // how many times the typical radius a seat may have
const MARGIN = 24; // around everything, in the plan's own units
const MARGIN_PART = 0.02; // or this part of the plan, if that is more
const TEXT_COUNTED = 40; // characters of an area's text that count for its box: a novel does not shrink the hall
const TEXT_SIZE = 16; // of an area's text that states none
const CHAR_WIDTH = 0.6; // of a character, in the size of the text: about
const FILL_PART = 0.9; // of an area's width, for a name that is made to fit
const NAME_SIZE = 1.1; // of a row's name, in radiuses of its seats
const NAME_GAP = 1.7; // from the middle of the seat beside it, in radiuses
const NEAR_MAX = 2000; // seats around a name: among more there is no room for it
const TABLE_REACH = 6; // radiuses from the middle of a row, at most, in which its name may stand, to its first seat
const NAME_NEAR = 0.8; // a name at the end of a row may come so near to the middle of a seat, in radiuses; others one radius
const ROUND_GAP = 1.7; // of the first gap of a row: the least gap between its ends, or else it has none

const number = (value, fallback = 0) => (Number.isFinite(value) ? value : fallback);

export class Plan {
  #indexById = null;

  constructor(document) {
    this.name = document.name ?? null;
    this.focus = document.focus ?? null;
    this.categories = document.categories ?? [];
    this.areas = document.areas ?? [];
    this.sections = []; // { name, firstRow, endRow, box }
    this.rows = []; // { section: number, name, label, seatLabel, labelPosition, first, end, names: where its name stands }
    this.n = 0;
    for (const section of document.sections ?? []) for (const row of section.rows) this.n += row.seats.length;
    this.x = new Float32Array(this.n);
    this.y = new Float32Array(this.n);
    this.radius = new Float32Array(this.n);
    this.category = new Uint16Array(this.n);
    this.flags = new Uint8Array(this.n);
    this.row = new Uint32Array(this.n);
    this.ids = new Array(this.n);
    this.labels = new Array(this.n);
    this.#read(document.sections ?? []);
    this.radiusTypical = typical(this.radius);
    // A plan with one gigantic seat must not make a gigantic picture of it.
    this.radiusMax = 1;
    for (let i = 0; i < this.n; i++) {
      this.radius[i] = Math.min(this.radius[i], RADIUS_PART_MAX * this.radiusTypical);
      this.radiusMax = Math.max(this.radiusMax, this.radius[i]);
    }
    for (const section of this.sections) section.box = this.#boxOf(section);
    this.box = this.#bounds(document.size);
    this.spatial = new SeatIndex(this.x, this.y, this.box);
    const labels = this.areas.map(placedLabel).filter(Boolean);
    for (const row of this.rows) row.names = this.#namesOf(row, labels);
  }

  #read(sections) {
    const numberOfCategory = new Map(this.categories.map(({ name }, i) => [name, i]));
    let i = 0;
    for (const section of sections) {
      const firstRow = this.rows.length;
      for (const row of section.rows) {
        const first = i;
        for (const seat of row.seats) {
          this.x[i] = number(seat.x);
          this.y[i] = number(seat.y);
          this.radius[i] = Math.max(1, number(seat.radius, RADIUS));
          this.category[i] = numberOfCategory.get(seat.category) ?? 0;
          this.flags[i] = (seat.accessible ? ACCESSIBLE : 0) | (seat.companion ? COMPANION : 0)
            | (seat.restricted_view ? RESTRICTED_VIEW : 0);
          this.row[i] = this.rows.length;
          this.ids[i] = seat.id;
          this.labels[i] = seat.label;
          i++;
        }
        this.rows.push({
          section: this.sections.length, name: row.name, label: row.row_label ?? null, seatLabel: row.seat_label ?? null,
          labelPosition: row.row_number_position === undefined ? 'both' : row.row_number_position, first, end: i, names: [],
        });
      }
      this.sections.push({ name: section.name, firstRow, endRow: this.rows.length, box: null });
    }
  }

  #boxOf({ firstRow, endRow }) {
    const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    if (firstRow === endRow) return box;
    for (let i = this.rows[firstRow].first; i < this.rows[endRow - 1].end; i++) {
      const x = this.x[i], y = this.y[i], r = this.radius[i];
      if (x - r < box.left) box.left = x - r;
      if (x + r > box.right) box.right = x + r;
      if (y - r < box.top) box.top = y - r;
      if (y + r > box.bottom) box.bottom = y + r;
    }
    return box;
  }

  // ---- names of rows, at the places where src/cli/plan_names.c has them ----

  // Names stand at both ends, unless the plan says at which.  Each is { x, y, side, size, width }: its anchor, on which side of that
  // it stands (-1, 0, 1), and how large it is.
  #namesOf(row, labels) {
    const chars = [...String(row.name ?? '')].length;
    if (row.first === row.end || !row.labelPosition || chars === 0) return [];
    const last = row.end - 1, names = [];
    if (row.labelPosition !== 'end') names.push(this.#nameBeside(row.first, this.#wayOut(row.first, row.first < last ? row.first + 1 : -1, -1), chars));
    if (row.labelPosition !== 'start') names.push(this.#nameBeside(last, this.#wayOut(last, row.first < last ? last - 1 : -1, 1), chars));
    const free = this.#isRound(row) ? [] : names.filter((name) => !this.#coversSeat(name, NAME_NEAR));
    return free.length > 0 ? free : this.#nameElsewhere(row, chars, labels);
  }

  // A row that comes back to where it began, as around a table, has no ends.
  #isRound({ first, end }) {
    const distance = (i, k) => Math.hypot(this.x[i] - this.x[k], this.y[i] - this.y[k]);
    return end - first > 2 && distance(first, end - 1) <= ROUND_GAP * distance(first, first + 1);
  }

  // Where a row has no ends, or no room there for its name: in the middle of a small row, unless a text of the same words stands
  // there, or beside the first seat in another direction, or nowhere.  Adds it to the labels.
  #nameElsewhere(row, chars, labels) {
    const { first } = row, middle = this.#nameInMiddle(row, chars);
    const isNear = Math.hypot(middle.x - this.x[first], middle.y - this.y[first]) <= TABLE_REACH * this.radius[first];
    if (isNear && labels.some((label) => coversText(label, middle) && label.words === row.name)) return [];
    const places = [...(isNear ? [middle] : []), ...[[-1, 0], [1, 0], [0, -1], [0, 1]].map((way) => this.#nameBeside(first, way, chars))];
    const free = places.find((name) => !this.#coversSeat(name, 1) && !labels.some((label) => coversText(label, name)));
    if (free) labels.push(free);
    return free ? [free] : [];
  }

  // The direction of a row at a seat at its end, out of the row.
  #wayOut(end, next, side) {
    if (next < 0) return [side, 0];
    const length = Math.hypot(this.x[end] - this.x[next], this.y[end] - this.y[next]) || 1;
    return [(this.x[end] - this.x[next]) / length, (this.y[end] - this.y[next]) / length];
  }

  // A long name grows away from the seats.
  #nameBeside(i, [dx, dy], chars) {
    const r = this.radius[i], size = NAME_SIZE * r;
    const side = Math.abs(dx) < 0.5 ? 0 : Math.sign(dx);
    return { x: this.x[i] + dx * NAME_GAP * r, y: this.y[i] + dy * NAME_GAP * r, side, size, width: CHAR_WIDTH * size * chars };
  }

  #nameInMiddle({ first, end }, chars) {
    let x = 0, y = 0;
    for (let i = first; i < end; i++) { x += this.x[i]; y += this.y[i]; }
    const size = NAME_SIZE * this.radius[first];
    return { x: x / (end - first), y: y / (end - first), side: 0, size, width: CHAR_WIDTH * size * chars };
  }

  // True if a seat is nearer to the name than `near` of its radius.
  #coversSeat({ x, y, side, size, width }, near) {
    const middle = x + side * width / 2, across = width / 2 + this.radiusMax, along = size / 2 + this.radiusMax;
    const box = [middle - across, y - along, middle + across, y + along];
    let isCovered = this.spatial.countIn(...box) > NEAR_MAX;
    if (!isCovered) this.spatial.forEachIn(...box, (i) => {
      const dx = Math.max(0, Math.abs(this.x[i] - middle) - width / 2), dy = Math.max(0, Math.abs(this.y[i] - y) - size / 2);
      isCovered ||= Math.hypot(dx, dy) < near * this.radius[i];
    });
    return isCovered;
  }

  // The box of everything that is drawn.  The document's own size only adds to it, since a plan may lie about it.
  #bounds(size) {
    const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    const add = (left, top, right, bottom) => {
      box.left = Math.min(box.left, left);
      box.top = Math.min(box.top, top);
      box.right = Math.max(box.right, right);
      box.bottom = Math.max(box.bottom, bottom);
    };
    for (const { box: b } of this.sections) if (b.left <= b.right) add(b.left, b.top, b.right, b.bottom);
    for (const area of this.areas) {
      const b = areaBox(area);
      add(b.left, b.top, b.right, b.bottom);
    }
    if (box.left > box.right) add(0, 0, number(size?.width, 100), number(size?.height, 100));
    const margin = Math.max(MARGIN, MARGIN_PART * Math.max(box.right - box.left, box.bottom - box.top));
    return { left: box.left - margin, top: box.top - margin, right: box.right + margin, bottom: box.bottom + margin };
  }

  // Returns the number of a seat, or -1.
  indexOf(id) {
    this.#indexById ??= new Map(this.ids.map((each, i) => [each, i]));
    return this.#indexById.get(id) ?? -1;
  }

  // Returns the seat at a point, or the nearest whose edge is at most `slack` away, or -1.
  seatAt(x, y, slack) {
    const reach = this.radiusMax + Math.max(0, slack);
    let best = -1, least = slack;
    this.spatial.forEachIn(x - reach, y - reach, x + reach, y + reach, (i) => {
      const r = this.radius[i], d = Math.hypot(this.x[i] - x, this.y[i] - y);
      const score = d <= r ? d / r - 1 : d - r; // inside: the seat whose middle is nearest, by its own measure
      if (score <= least) { least = score; best = i; }
    });
    return best;
  }

  sectionOf(i) { return this.sections[this.rows[this.row[i]].section]; }
  rowOf(i) { return this.rows[this.row[i]]; }
  categoryOf(i) { return this.categories[this.category[i]]?.name ?? ''; }
}

// The value in the middle of a sample, which is what most seats have.
function typical(values) {
  if (values.length === 0) return RADIUS;
  const step = Math.max(1, Math.floor(values.length / 1000));
  const sample = [];
  for (let i = 0; i < values.length; i += step) sample.push(values[i]);
  return sample.sort((a, b) => a - b)[sample.length >> 1];
}

// ---- areas ----

// The middle of an area, relative to its position, and how wide it is there.
export function areaMiddle({ shape, rectangle, circle, ellipse, polygon }) {
  const points = shape === 'polygon' ? polygon?.points ?? [] : [];
  if (points.length > 0) {
    const [xs, ys] = ['x', 'y'].map((axis) => points.map((point) => number(point[axis])));
    const [left, right] = [Math.min(...xs), Math.max(...xs)];
    return { x: (left + right) / 2, y: (Math.min(...ys) + Math.max(...ys)) / 2, width: right - left };
  }
  if (shape === 'rectangle') return { x: number(rectangle?.width) / 2, y: number(rectangle?.height) / 2, width: number(rectangle?.width) };
  return { x: 0, y: 0, width: 2 * number(shape === 'circle' ? circle?.radius : shape === 'ellipse' ? ellipse?.radius?.x : 0) };
}

// What stands in an area, relative to its position: its text or, if it has none and is sold, its name in the middle, as large as
// there is room for.  Null for an area without words.
export function areaLabel(area) {
  const text = String(area.text?.text ?? ''), words = text || String(area.name ?? '');
  if (words === '') return null;
  const { x, y, width } = text ? { x: number(area.text.position?.x), y: number(area.text.position?.y), width: 0 } : areaMiddle(area);
  const chars = [...words].length;
  const size = text ? number(area.text.size, TEXT_SIZE) : width > 0 ? Math.min(TEXT_SIZE, FILL_PART * width / (CHAR_WIDTH * (chars + 1))) : TEXT_SIZE;
  return { words, x, y, size, width: CHAR_WIDTH * size * chars };
}

// The same with the place that it has in the plan.
function placedLabel(area) {
  const label = areaLabel(area);
  if (!label) return null;
  const angle = (number(area.rotation) * Math.PI) / 180, cos = Math.cos(angle), sin = Math.sin(angle);
  return { ...label, x: number(area.x) + label.x * cos - label.y * sin, y: number(area.y) + label.x * sin + label.y * cos };
}

function coversText(label, { x, y, side, size, width }) {
  return Math.abs(label.x + (label.side ?? 0) * label.width / 2 - (x + side * width / 2)) < (label.width + width) / 2 && Math.abs(label.y - y) < (label.size + size) / 2;
}

// The box around an area; a rotated area gets that of the circle in which it turns.
export function areaBox(area) {
  const x = number(area.x), y = number(area.y);
  let left = 0, top = 0, right = 0, bottom = 0;
  const add = (dx, dy) => {
    left = Math.min(left, dx);
    top = Math.min(top, dy);
    right = Math.max(right, dx);
    bottom = Math.max(bottom, dy);
  };
  if (area.rectangle) add(number(area.rectangle.width), number(area.rectangle.height));
  if (area.circle) { const r = number(area.circle.radius); add(-r, -r); add(r, r); }
  if (area.ellipse) { const rx = number(area.ellipse.radius?.x), ry = number(area.ellipse.radius?.y); add(-rx, -ry); add(rx, ry); }
  for (const point of area.polygon?.points ?? []) add(number(point.x), number(point.y));
  if (area.text) {
    const half = Math.min(TEXT_COUNTED, String(area.text.text ?? '').length) * number(area.text.size, TEXT_SIZE) * CHAR_WIDTH / 2;
    add(number(area.text.position?.x) - half, number(area.text.position?.y) - number(area.text.size, TEXT_SIZE));
    add(number(area.text.position?.x) + half, number(area.text.position?.y) + number(area.text.size, TEXT_SIZE));
  }
  if (area.rotation) {
    const reach = Math.hypot(Math.max(-left, right), Math.max(-top, bottom));
    left = top = -reach;
    right = bottom = reach;
  }
  return { left: x + left, top: y + top, right: x + right, bottom: y + bottom };
}
