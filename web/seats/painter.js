// Draws the map on its canvas, once per animation frame at most, and only what is in view.
//
// Few seats in view (DIRECT_MAX) are drawn one by one in every frame, sharp at any moment of a zoom.  More seats are copied from
// tiles (tiles.js).  During a zoom the tiles of the old scale are stretched; sharp ones follow when the zoom rests.

import { AVAILABLE } from './board.js';
import { drawAreas, drawRowNames, drawSectionNames, prepareAreas } from './decor.js';
import { drawEdgeNames } from './edge_names.js';
import { Overview } from './overview.js';
import { ACCESSIBLE, RESTRICTED_VIEW } from './plan.js';
import { checkMark, DIMMED, HEAT, MINE, NUMBERED, Sprites, SYMBOL_ABOVE_PX } from './sprites.js';
import { HEAT_STEPS } from './theme.js';
import { Layer, TILE_PX } from './tiles.js';

const DIRECT_MAX = 2500;
const TILE_BUDGET_MS = 8;
const ZOOM_RESTS_MS = 140;
const LABEL_PX = 18; // seats at least this wide show their labels
const ROW_NAME_PX = 9;
const MARKER_PX = 9; // chosen seats are never drawn smaller than this
const LABELS_MAX = 4000;

export class Painter {
  #labels = new Map(); // "ink size label" -> ImageBitmap: text is costly to draw and the same text comes often
  #base = null; // the layer that shows everything; what the other one lacks is stretched from it
  #top = null; // the layer of the present scale
  #sprites = null;
  #frame = 0;
  #zoomedAt = 0;
  #lastScale = 0;

  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.ratio = 1;
    this.plan = null;
    this.heat = null;
    this.spotlight = -1; // the category that stands out
  }

  // `overview` is the canvas of the small picture of everything; `go(x, y)` moves the map.
  setPlan(plan, board, theme, overview, go, signal) {
    this.plan = plan;
    this.board = board;
    this.spotlight = -1;
    this.overview = new Overview(overview, this, go, signal);
    this.looks = new Uint8Array(plan.n);
    this.mine = new Set();
    this.setTheme(theme);
  }

  setTheme(theme) {
    this.theme = theme;
    this.areas = prepareAreas(this.plan, theme);
    this.#labels.clear();
    this.#sprites = null;
    this.#dropLayers();
    this.refresh(null);
  }

  #dropLayers() {
    this.#base?.close();
    this.#top?.close();
    this.#base = this.#top = null;
    this.overview.reset();
  }

  // Sets the size of the canvas, in CSS pixels.
  resize(width, height, ratio) {
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    if (ratio !== this.ratio) {
      this.#labels.clear();
      this.#sprites = null;
    }
    this.ratio = ratio;
    this.#base?.close();
    this.#base = null;
    this.overview.reset();
  }

  // Lets the free seats of one category stand out, or of none (-1).
  setSpotlight(category) {
    this.spotlight = category;
    this.refresh(null);
  }

  // Colours seats by how often they were refused, a Map of seat number to count, or by status again (null).
  setHeat(counts) {
    this.heat = null;
    if (counts) {
      this.heat = new Uint8Array(this.plan.n);
      let most = 1;
      for (const n of counts.values()) most = Math.max(most, n);
      for (const [i, n] of counts) if (n > 0) this.heat[i] = 1 + Math.min(HEAT_STEPS - 1, Math.floor(HEAT_STEPS * Math.log1p(n) / Math.log1p(most)));
    }
    this.refresh(null);
  }

  setMine(seats) {
    const touched = [...this.mine, ...seats];
    this.mine = new Set(seats);
    this.refresh(touched);
  }

  // Takes over the states of seats that changed; null means all of them.
  refresh(seats) {
    const { looks, board, heat, mine, plan, spotlight } = this;
    const isDimmed = (i) => spotlight >= 0 && board.states[i] === AVAILABLE && plan.category[i] !== spotlight;
    const look = (i) => { looks[i] = heat ? HEAT + heat[i] : mine.has(i) ? MINE : isDimmed(i) ? DIMMED : board.states[i]; };
    if (seats) seats.forEach(look);
    else for (let i = 0; i < looks.length; i++) look(i);
    this.#base?.repaint(seats);
    if (this.#top !== this.#base) this.#top?.repaint(seats);
    this.overview.repaint(seats);
  }

  // Draws a frame.  `marks`: selected (a Set), hover and active (seat numbers or -1), isFocused.  Returns true if another
  // frame has to follow.
  draw(view, now, marks, caption) {
    const { context, canvas, plan, theme, ratio } = this;
    const scale = view.scale * ratio;
    if (scale !== this.#lastScale) this.#zoomedAt = this.#lastScale === 0 ? -Infinity : now;
    this.#lastScale = scale;
    this.#frame++;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    drawAreas(context, view, ratio, this.areas, theme, caption);
    const margin = plan.radiusMax;
    const box = [view.left - margin, view.top - margin, view.right + margin, view.bottom + margin];
    const isDirect = plan.spatial.countIn(...box) <= DIRECT_MAX;
    let hasMore = false;
    if (isDirect) this.#drawDirect(view, box);
    else hasMore = this.#drawTiles(view, now, box);
    if (view.seatPx >= ROW_NAME_PX) drawRowNames(context, view, ratio, plan, theme);
    else drawSectionNames(context, view, ratio, plan, theme);
    this.#drawMarks(view, marks);
    if (isDirect && view.seatPx >= ROW_NAME_PX) {
      const seen = [];
      plan.spatial.forEachIn(...box, (i) => seen.push(i));
      drawEdgeNames(context, view, ratio, plan, theme, seen);
    }
    this.overview.draw(view);
    return hasMore;
  }

  #drawDirect(view, box) {
    const { context, plan, ratio, looks, theme } = this;
    const scale = view.scale * ratio;
    if (this.#sprites?.scale !== scale) this.#sprites = new Sprites(this.theme, scale, ratio);
    const left = view.width / 2 * ratio - view.x * scale, top = view.height / 2 * ratio - view.y * scale;
    const hasLabels = view.seatPx >= LABEL_PX && !this.heat;
    plan.spatial.forEachIn(...box, (i) => {
      const isMine = looks[i] === MINE;
      const { picture, half } = this.#sprites.get(isMine && hasLabels ? NUMBERED : looks[i], plan.category[i], (plan.flags[i] & ACCESSIBLE) !== 0, plan.radius[i]);
      const x = Math.round(plan.x[i] * scale + left), y = Math.round(plan.y[i] * scale + top);
      context.drawImage(picture, x - half, y - half);
      if (!hasLabels || !(isMine || looks[i] === AVAILABLE)) return;
      const r = plan.radius[i] * scale;
      if (isMine) this.#drawLabel(i, x, y, r, theme.onAccent);
      else this.#drawFreeLabel(i, x, y, r);
    });
  }

  // The number of a seat that is free: below the symbol of a wheelchair, if it has one and room for both.
  #drawFreeLabel(i, x, y, r) {
    const { context, plan, theme, ratio } = this;
    const { ink } = theme.categories[plan.category[i]] ?? theme.categories[0];
    if (!(plan.flags[i] & ACCESSIBLE)) this.#drawLabel(i, x, y, r, ink);
    else if (r - 0.5 >= SYMBOL_ABOVE_PX * ratio) this.#drawLabel(i, x, Math.round(y + 0.52 * r), 0.7 * r, ink);
    if (plan.flags[i] & RESTRICTED_VIEW) { // a dot at the upper right
      context.beginPath();
      context.arc(x + 0.75 * r, y - 0.75 * r, 0.22 * r, 0, 2 * Math.PI);
      context.fillStyle = theme.soft;
      context.fill();
    }
  }

  #drawLabel(i, x, y, r, ink) {
    const { context, plan, theme } = this;
    const size = Math.round(r * 0.95);
    const key = `${ink} ${size} ${plan.labels[i]}`;
    let label = this.#labels.get(key);
    if (!label) {
      if (this.#labels.size >= LABELS_MAX) this.#labels.clear();
      label = makeLabel(String(plan.labels[i]).slice(0, 8), ink, size, 1.8 * r, theme.font);
      this.#labels.set(key, label);
    }
    context.drawImage(label, x - (label.width >> 1), y - (label.height >> 1));
  }

  // ---- many seats: tiles ----

  #drawTiles(view, now, box) {
    const { ratio } = this;
    const scale = view.scale * ratio, base = view.fitScale * ratio;
    this.#base ??= new Layer(this, base, ratio);
    const isResting = now - this.#zoomedAt >= ZOOM_RESTS_MS;
    if (!this.#top || (isResting && this.#top.scale !== scale)) {
      if (this.#top && this.#top !== this.#base) this.#top.close();
      this.#top = scale === this.#base.scale ? this.#base : new Layer(this, scale, ratio);
    }
    const missing = [];
    const top = this.#top;
    const began = performance.now();
    let hasMore = !isResting || this.#drawBase(view, began);
    top.forEachTile(...box, (column, line) => {
      const tile = top.get(column, line);
      if (!tile || tile.isDirty) missing.push([column, line]);
      if (tile) this.#copy(top, tile, view);
    });
    this.#sortFromCentre(missing, top, view);
    const holes = [];
    for (const [column, line] of missing) {
      const isOver = performance.now() - began >= TILE_BUDGET_MS;
      if (isOver || (top.scale !== scale && top.get(column, line) === undefined && top !== this.#base)) {
        hasMore = true;
        if (!top.get(column, line)) holes.push([column, line]);
        continue;
      }
      const isNew = !top.get(column, line);
      const tile = top.draw(column, line);
      if (isNew) this.#copy(top, tile, view);
      else hasMore = true; // its old picture was copied already in this frame
    }
    if (holes.length > 0) this.#fill(holes, view);
    top.trim(this.#frame);
    return hasMore;
  }

  // Keeps the layer of everything complete: it is what is seen first, and what fills holes.
  #drawBase(view, began) {
    const base = this.#base;
    let hasMore = false;
    base.forEachTile(view.box.left, view.box.top, view.box.right, view.box.bottom, (column, line) => {
      const tile = base.get(column, line);
      if (tile) tile.usedIn = this.#frame;
      if (tile && !tile.isDirty) return;
      if (tile && performance.now() - began >= TILE_BUDGET_MS / 2) { hasMore = true; return; }
      base.draw(column, line).usedIn = this.#frame;
    });
    return hasMore;
  }

  #place(layer, column, line, view) {
    const { ratio } = this;
    const scale = view.scale * ratio, zoom = scale / layer.scale;
    const left = Math.round(view.width / 2 * ratio - view.x * scale), top = Math.round(view.height / 2 * ratio - view.y * scale);
    const x0 = Math.round(column * TILE_PX * zoom), y0 = Math.round(line * TILE_PX * zoom);
    const x1 = Math.round((column + 1) * TILE_PX * zoom), y1 = Math.round((line + 1) * TILE_PX * zoom);
    return [left + x0, top + y0, x1 - x0, y1 - y0];
  }

  #copy(layer, tile, view) {
    tile.usedIn = this.#frame;
    this.context.drawImage(tile.canvas, ...this.#place(layer, tile.column, tile.line, view));
  }

  // Stretches the picture of everything into the places of tiles that are not there yet.
  #fill(holes, view) {
    const { context } = this;
    context.save();
    context.beginPath();
    for (const [column, line] of holes) context.rect(...this.#place(this.#top, column, line, view));
    context.clip();
    for (const tile of this.#base.tiles.values()) this.#copy(this.#base, tile, view);
    context.restore();
  }

  #sortFromCentre(places, layer, view) {
    const step = TILE_PX / layer.scale;
    const distance = ([column, line]) => Math.hypot((column + 0.5) * step - view.x, (line + 0.5) * step - view.y);
    places.sort((a, b) => distance(a) - distance(b));
  }

  // ---- what the buyer did ----

  #drawMarks(view, { selected, hover, active, isFocused }) {
    for (const i of this.mine) if (view.seatPx < MARKER_PX) this.#ring(view, i, true);
    for (const i of selected) this.#ring(view, i, view.seatPx < MARKER_PX);
    if (hover >= 0) this.#circle(view, hover, 1.25, this.theme.ink, 1.5);
    if (active >= 0 && isFocused) {
      this.#circle(view, active, 1.5, this.theme.surface, 6);
      this.#circle(view, active, 1.5, this.theme.focus, 3);
    }
  }

  #circle(view, i, factor, color, width) {
    const { context, plan, ratio } = this;
    const r = Math.max(plan.radius[i] * view.scale * factor, MARKER_PX * 0.8) * ratio;
    context.beginPath();
    context.arc(view.toScreenX(plan.x[i]) * ratio, view.toScreenY(plan.y[i]) * ratio, r, 0, 2 * Math.PI);
    context.strokeStyle = color;
    context.lineWidth = width * ratio;
    context.stroke();
  }

  // A chosen seat: a thick ring around it, and its number or, where there is no room for one, a check mark in it, so that it also
  // differs in shape.
  #ring(view, i, isMarker) {
    const { context, plan, ratio, theme } = this;
    const r = Math.max(plan.radius[i] * view.scale, MARKER_PX / 2 + 1) * ratio;
    const x = Math.round(view.toScreenX(plan.x[i]) * ratio), y = Math.round(view.toScreenY(plan.y[i]) * ratio);
    context.save();
    context.translate(x, y);
    context.beginPath();
    context.arc(0, 0, r + 2.5 * ratio, 0, 2 * Math.PI);
    context.fillStyle = theme.accent.css;
    context.fill();
    context.beginPath();
    context.arc(0, 0, r - (isMarker ? 1 : 0.5) * ratio, 0, 2 * Math.PI);
    context.fillStyle = theme.onAccent;
    context.fill();
    const hasNumber = view.seatPx >= LABEL_PX && !this.mine.has(i);
    if (!hasNumber) checkMark(context, theme.accent.css, r);
    context.restore();
    if (hasNumber) this.#drawLabel(i, x, y, 0.92 * r, theme.accent.css);
  }
}

function makeLabel(text, ink, size, widest, font) {
  const canvas = new OffscreenCanvas(1, 1);
  const context = canvas.getContext('2d');
  const style = `${size}px ${font}`;
  context.font = style;
  const width = Math.min(widest, context.measureText(text).width);
  canvas.width = Math.max(2, Math.ceil(width) + 2);
  canvas.height = Math.ceil(size * 1.4);
  context.font = style;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillStyle = ink;
  context.fillText(text, canvas.width / 2, canvas.height / 2 + size * 0.06, widest);
  return canvas.transferToImageBitmap();
}
