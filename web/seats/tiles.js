// Pictures of parts of a large plan.  A plan of 100,000 seats cannot be drawn anew in every frame; square tiles can, by copying
// them.  A layer holds the tiles of one scale.  A seat that changes is drawn again in its tiles alone.
//
// Memory: a tile is 256 KiB; those in view and TILES_SPARE others are kept.  Time: a frame draws new tiles for TILE_BUDGET_MS at most
// and leaves the others to the next frames.

import { Sprites, tinyLook } from './sprites.js';
import { ACCESSIBLE } from './plan.js';

export const TILE_PX = 256;
const TILES_SPARE = 96;
const TINY_PX = 6; // seats below this diameter are dots without a shape
const REPAINT_MAX = 1500; // beyond this many changes in a frame, tiles are drawn anew

// What the tiles of a map have in common: the plan, the looks of the seats (one byte each) and the theme.
export class Layer {
  #pixels = null;
  #palette = new Map();

  constructor({ plan, looks, theme }, scale, pixelRatio) {
    this.plan = plan;
    this.looks = looks;
    this.theme = theme;
    this.scale = scale;
    this.sprites = new Sprites(theme, scale, pixelRatio);
    this.isTiny = 2 * plan.radiusTypical * scale < TINY_PX;
    this.tiles = new Map(); // "column,line" -> { column, line, canvas, context, isDirty, usedIn }
  }

  // Calls visit(column, line) for each tile that the box of the plan touches.
  forEachTile(left, top, right, bottom, visit) {
    const step = TILE_PX / this.scale;
    for (let line = Math.floor(top / step); line * step <= bottom; line++) {
      for (let column = Math.floor(left / step); column * step <= right; column++) visit(column, line);
    }
  }

  get(column, line) { return this.tiles.get(`${column},${line}`); }

  // Draws a tile, new or dirty.  O(seats in it).
  draw(column, line) {
    const key = `${column},${line}`;
    let tile = this.tiles.get(key);
    if (!tile) {
      const canvas = document.createElement('canvas');
      canvas.width = canvas.height = TILE_PX;
      tile = { column, line, canvas, context: canvas.getContext('2d'), isDirty: false, usedIn: 0 };
      this.tiles.set(key, tile);
    }
    tile.isDirty = false;
    if (this.isTiny) this.#drawDots(tile);
    else this.#drawSprites(tile);
    return tile;
  }

  #forEachSeat({ column, line }, visit) {
    const step = TILE_PX / this.scale, margin = this.plan.radiusMax + 2 / this.scale;
    this.plan.spatial.forEachIn(column * step - margin, line * step - margin, (column + 1) * step + margin, (line + 1) * step + margin, visit);
  }

  #drawSprites(tile) {
    tile.context.clearRect(0, 0, TILE_PX, TILE_PX);
    this.#forEachSeat(tile, (i) => this.#stamp(tile, i));
  }

  #stamp({ context, column, line }, i) {
    const { plan, scale } = this;
    const { picture, half } = this.sprites.get(this.looks[i], plan.category[i], (plan.flags[i] & ACCESSIBLE) !== 0, plan.radius[i]);
    const x = Math.round(plan.x[i] * scale) - column * TILE_PX - half, y = Math.round(plan.y[i] * scale) - line * TILE_PX - half;
    if (x < TILE_PX && y < TILE_PX && x + 2 * half > 0 && y + 2 * half > 0) context.drawImage(picture, x, y);
  }

  // The colour of a dot as one number in memory order, and its width.
  #dot(i) {
    const look = this.looks[i], key = look * 65536 + this.plan.category[i];
    let dot = this.#palette.get(key);
    if (!dot) {
      const [color, narrower] = tinyLook(this.theme, look, this.plan.category[i]);
      dot = { color, word: new Uint32Array(new Uint8ClampedArray(color.rgba).buffer)[0], narrower };
      this.#palette.set(key, dot);
    }
    return dot;
  }

  #dotBox(i, { column, line }, narrower) {
    const { plan, scale } = this;
    const full = Math.max(1, Math.round(2 * plan.radius[i] * scale));
    const width = Math.max(1, full - narrower);
    return [
      Math.floor(plan.x[i] * scale - width / 2) - column * TILE_PX,
      Math.floor(plan.y[i] * scale - width / 2) - line * TILE_PX,
      width, full,
    ];
  }

  // Writes pixels into memory, which takes a fraction of the time of as many calls of the canvas.
  #drawDots(tile) {
    this.#pixels ??= tile.context.createImageData(TILE_PX, TILE_PX);
    const words = new Uint32Array(this.#pixels.data.buffer);
    words.fill(0);
    this.#forEachSeat(tile, (i) => {
      const { word, narrower } = this.#dot(i);
      const [x, y, width] = this.#dotBox(i, tile, narrower);
      const right = Math.min(TILE_PX, x + width), bottom = Math.min(TILE_PX, y + width);
      for (let py = Math.max(0, y); py < bottom; py++) words.fill(word, py * TILE_PX + Math.max(0, x), py * TILE_PX + Math.max(0, right));
    });
    tile.context.putImageData(this.#pixels, 0, 0);
  }

  // Draws seats again that changed; `seats` null means all of them.
  repaint(seats) {
    if (!seats || seats.length > REPAINT_MAX) {
      for (const tile of this.tiles.values()) tile.isDirty = true;
      return;
    }
    for (const i of seats) {
      const { plan } = this;
      const reach = plan.radius[i] + 2 / this.scale;
      this.forEachTile(plan.x[i] - reach, plan.y[i] - reach, plan.x[i] + reach, plan.y[i] + reach, (column, line) => {
        const tile = this.get(column, line);
        if (!tile || tile.isDirty) return;
        if (this.isTiny) this.#repaintDot(tile, i);
        else this.#repaintSprite(tile, i);
      });
    }
  }

  #repaintDot(tile, i) {
    const [x, y, , full] = this.#dotBox(i, tile, 0);
    tile.context.clearRect(x, y, full, full);
    const { color, narrower } = this.#dot(i);
    const [dx, dy, width] = this.#dotBox(i, tile, narrower);
    tile.context.fillStyle = color.css;
    tile.context.fillRect(dx, dy, width, width);
  }

  // Seats may touch or overlap: whatever reaches into the box of the seat is drawn again, inside the box only.
  #repaintSprite(tile, i) {
    const { plan, scale } = this;
    const { half } = this.sprites.get(this.looks[i], plan.category[i], (plan.flags[i] & ACCESSIBLE) !== 0, plan.radius[i]);
    const x = Math.round(plan.x[i] * scale) - tile.column * TILE_PX - half, y = Math.round(plan.y[i] * scale) - tile.line * TILE_PX - half;
    const { context } = tile;
    context.save();
    context.beginPath();
    context.rect(x, y, 2 * half, 2 * half);
    context.clip();
    context.clearRect(x, y, 2 * half, 2 * half);
    const reach = plan.radius[i] + plan.radiusMax + 4 / scale;
    plan.spatial.forEachIn(plan.x[i] - reach, plan.y[i] - reach, plan.x[i] + reach, plan.y[i] + reach, (other) => {
      if (Math.abs(plan.x[other] - plan.x[i]) <= reach && Math.abs(plan.y[other] - plan.y[i]) <= reach) this.#stamp(tile, other);
    });
    context.restore();
  }

  // Forgets tiles that were not used for longest.
  trim(frame) {
    const unused = [...this.tiles.entries()].filter(([, tile]) => tile.usedIn !== frame);
    if (unused.length <= TILES_SPARE) return;
    unused.sort(([, a], [, b]) => a.usedIn - b.usedIn);
    for (const [key, tile] of unused.slice(0, unused.length - TILES_SPARE)) {
      tile.canvas.width = tile.canvas.height = 0; // gives the memory back at once
      this.tiles.delete(key);
    }
  }

  close() {
    for (const { canvas } of this.tiles.values()) canvas.width = canvas.height = 0;
    this.tiles.clear();
  }
}
