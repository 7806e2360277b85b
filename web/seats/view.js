// Which part of the plan is seen: a centre in the plan's units and a scale in CSS pixels per unit.

const SEAT_WIDEST_PX = 56; // the diameter of a seat at the closest zoom
const MOVE_MS = 220;
const COVER_MAX = 1.6; // how many times larger than the whole a map begins that is to fill its frame
const NARROW_PX = 560; // a wider frame has room for everything; as in shell.js
const BEYOND_PX = 72; // how far a map that is zoomed moves beyond its edge, so that nothing stays below buttons

export class View {
  constructor(box, radius) {
    this.box = box;
    this.radius = radius;
    this.width = 0; // CSS pixels
    this.height = 0;
    this.x = (box.left + box.right) / 2;
    this.y = (box.top + box.bottom) / 2;
    this.scale = 1;
    this.goal = null;
    this.isFitted = true; // shows everything, and goes on doing so when the element's size changes
    this.isFresh = true; // nobody has moved it yet
    this.isToCover = false; // it begins by filling a narrow frame, though some of it is outside then
  }

  get fitScale() {
    return Math.min(this.width / (this.box.right - this.box.left), this.height / (this.box.bottom - this.box.top)) || 1;
  }
  get isNarrow() { return this.width <= NARROW_PX; }
  get scaleMax() { return Math.max(SEAT_WIDEST_PX / (2 * this.radius), this.fitScale * 2); }
  get seatPx() { return 2 * this.radius * this.scale; }

  // The part of the plan that is seen.
  get left() { return this.x - this.width / 2 / this.scale; }
  get right() { return this.x + this.width / 2 / this.scale; }
  get top() { return this.y - this.height / 2 / this.scale; }
  get bottom() { return this.y + this.height / 2 / this.scale; }

  toScreenX(x) { return (x - this.x) * this.scale + this.width / 2; }
  toScreenY(y) { return (y - this.y) * this.scale + this.height / 2; }
  toPlanX(px) { return (px - this.width / 2) / this.scale + this.x; }
  toPlanY(py) { return (py - this.height / 2) / this.scale + this.y; }

  resize(width, height) {
    this.width = width;
    this.height = height;
    if (this.isFresh && this.isToCover) this.#cover();
    else if (this.isFitted) this.fit();
    else this.#set(this.x, this.y, this.scale);
  }

  #cover() {
    const { left, right, top, bottom } = this.box;
    const whole = Math.max(this.width / (right - left), this.height / (bottom - top));
    const scale = this.isNarrow ? Math.min(whole, COVER_MAX * this.fitScale) : this.fitScale;
    this.#set((left + right) / 2, (top + bottom) / 2, scale);
    this.isFresh = true;
  }

  fit() {
    this.goal = null;
    this.#set((this.box.left + this.box.right) / 2, (this.box.top + this.box.bottom) / 2, this.fitScale);
  }

  panBy(dx, dy) {
    this.goal = null;
    this.#set(this.x - dx / this.scale, this.y - dy / this.scale, this.scale);
  }

  // Zooms by a factor; the point of the plan at (px, py) stays there.
  zoomAt(px, py, factor) {
    this.goal = null;
    const { x, y, scale } = this.#around(px, py, this.scale * factor);
    this.#set(x, y, scale);
  }

  #around(px, py, wanted) {
    const scale = this.#clampScale(wanted);
    return {
      x: this.toPlanX(px) - (px - this.width / 2) / scale,
      y: this.toPlanY(py) - (py - this.height / 2) / scale,
      scale,
    };
  }

  // Moves there in several frames: call `step` in each.
  moveTo({ x = this.x, y = this.y, scale = this.scale }, now, animated = true) {
    if (!animated) {
      this.goal = null;
      this.#set(x, y, scale);
      return;
    }
    this.goal = { from: { x: this.x, y: this.y, scale: this.scale }, to: this.#clamp(x, y, scale), since: now };
  }

  // Like zoomAt, in several frames.
  moveToZoom(px, py, factor, now, animated = true) {
    this.moveTo(this.#around(px, py, (this.goal?.to.scale ?? this.scale) * factor), now, animated);
  }

  moveToFit(now, animated = true) {
    this.moveTo({ x: (this.box.left + this.box.right) / 2, y: (this.box.top + this.box.bottom) / 2, scale: this.fitScale }, now, animated);
  }

  // Returns true if the view has moved.
  step(now) {
    if (!this.goal) return false;
    const { from, to, since } = this.goal;
    const t = Math.min(1, Math.max(0, (now - since) / MOVE_MS));
    const eased = 1 - (1 - t) ** 3;
    const scale = from.scale * (to.scale / from.scale) ** eased;
    // The centre goes with the scale, so that a zoom around a point keeps the point in its place.
    const part = Math.abs(to.scale - from.scale) < 1e-9 ? eased : (1 / from.scale - 1 / scale) / (1 / from.scale - 1 / to.scale);
    this.#set(from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part, scale);
    if (t >= 1) this.goal = null;
    return true;
  }

  #clampScale(scale) { return Math.min(this.scaleMax, Math.max(this.fitScale, scale)); }

  #clamp(x, y, wanted) {
    const scale = this.#clampScale(wanted);
    const beyond = scale > this.fitScale * 1.0001 ? BEYOND_PX / scale : 0;
    const axis = (at, low, high, seen) => (high - low + 2 * beyond <= seen ? (low + high) / 2
      : Math.min(high + beyond - seen / 2, Math.max(low - beyond + seen / 2, at)));
    return {
      x: axis(x, this.box.left, this.box.right, this.width / scale),
      y: axis(y, this.box.top, this.box.bottom, this.height / scale),
      scale,
    };
  }

  #set(x, y, scale) {
    this.isFresh = false;
    Object.assign(this, this.#clamp(x, y, scale));
    this.isFitted = this.scale <= this.fitScale * 1.0001;
  }
}
