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

const number = (value, fallback = 0) => (Number.isFinite(value) ? value : fallback);

export class Plan {
  #indexById = null;

  constructor(document) {
    this.name = document.name ?? null;
    this.focus = document.focus ?? null;
    this.categories = document.categories ?? [];
    this.areas = document.areas ?? [];
    this.sections = []; // { name, firstRow, endRow, box }
    this.rows = []; // { section: number, name, label, seatLabel, labelPosition, first, end }
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
          labelPosition: row.row_number_position === undefined ? 'both' : row.row_number_position, first, end: i,
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

  // Returns the numbers of seats that a person may mean by `text`, best first: the id, then the same without regard to case,
  // spaces and hyphens, then "section row label".
  find(text, max = 50) {
    const exact = this.indexOf(text.trim());
    if (exact >= 0) return [exact];
    const plain = (value) => String(value).toLowerCase().replace(/[\s,;-]+/g, ' ').trim();
    const wanted = plain(text);
    if (wanted === '') return [];
    const found = [];
    for (let i = 0; i < this.n && found.length < max; i++) if (plain(this.ids[i]) === wanted) found.push(i);
    for (let r = 0; r < this.rows.length && found.length < max; r++) {
      const row = this.rows[r];
      const place = plain(`${this.sections[row.section].name} ${row.name}`);
      for (const start of [place, plain(row.name)]) {
        if (start !== '' && !wanted.startsWith(`${start} `)) continue;
        const label = start === '' ? wanted : wanted.slice(start.length + 1);
        for (let i = row.first; i < row.end && found.length < max; i++) {
          if (plain(this.labels[i]) === label && !found.includes(i)) found.push(i);
        }
      }
    }
    return found;
  }
}

// The value in the middle of a sample, which is what most seats have.
function typical(values) {
  if (values.length === 0) return RADIUS;
  const step = Math.max(1, Math.floor(values.length / 1000));
  const sample = [];
  for (let i = 0; i < values.length; i += step) sample.push(values[i]);
  return sample.sort((a, b) => a - b)[sample.length >> 1];
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
    const half = Math.min(TEXT_COUNTED, String(area.text.text ?? '').length) * number(area.text.size, 16) * 0.3;
    add(number(area.text.position?.x) - half, number(area.text.position?.y) - number(area.text.size, 16));
    add(number(area.text.position?.x) + half, number(area.text.position?.y) + number(area.text.size, 16));
  }
  if (area.rotation) {
    const reach = Math.hypot(Math.max(-left, right), Math.max(-top, bottom));
    left = top = -reach;
    right = bottom = reach;
  }
  return { left: x + left, top: y + top, right: x + right, bottom: y + bottom };
}
