// Fingers, mouse and wheel on the map, as calls of a few functions.
//
// One finger or the mouse drags, two fingers zoom, a tap chooses, two taps in one place zoom in.  The wheel zooms as on other maps in pages: together with Ctrl
// (which is also what a trackpad's pinch sends) always, alone only while the map has the focus, so that a page scrolls past a
// map that the reader did not touch.  While everything is in view there is nothing to drag, and one finger scrolls the page.

const DRAG_PX = { mouse: 4, touch: 10 };
const TAP_MS = 700;
const DOUBLE_TAP_MS = 300;
const DOUBLE_TAP_PX = 30;
const WHEEL_STEP = 0.0022;

export class Gestures {
  #pointers = new Map(); // id -> { x, y, startX, startY, since, type, isDrag }
  #lastTap = null;

  // `on`: pan(dx, dy), zoom(x, y, factor), tap(x, y, type) -> true if it hit something, doubleTap(x, y), hover(x, y) or
  // hover(null), wheelIgnored(), dragging(bool); all coordinates in CSS pixels of the element.
  constructor(element, on, isFocused, signal) {
    this.element = element;
    this.on = on;
    const listen = (name, handler, options = {}) => element.addEventListener(name, handler, { signal, ...options });
    listen('pointerdown', (event) => this.#down(event));
    listen('pointermove', (event) => this.#move(event));
    listen('pointerup', (event) => this.#up(event, true));
    listen('pointercancel', (event) => this.#up(event, false));
    listen('pointerleave', () => this.#pointers.size === 0 && on.hover(null));
    listen('wheel', (event) => this.#wheel(event, isFocused()), { passive: false });
  }

  #place(event) {
    const box = this.element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #down(event) {
    if (event.button !== 0) return;
    const { x, y } = this.#place(event);
    const type = event.pointerType === 'mouse' ? 'mouse' : 'touch';
    this.#pointers.set(event.pointerId, { x, y, startX: x, startY: y, since: event.timeStamp, type, isDrag: this.#pointers.size > 0 });
    if (this.#pointers.size > 1) for (const pointer of this.#pointers.values()) pointer.isDrag = true;
    try { this.element.setPointerCapture(event.pointerId); } catch { /* the pointer is gone already */ }
    this.on.hover(null);
  }

  #move(event) {
    const { x, y } = this.#place(event);
    const pointer = this.#pointers.get(event.pointerId);
    if (!pointer) {
      if (event.pointerType === 'mouse') this.on.hover(x, y);
      return;
    }
    if (!pointer.isDrag && Math.hypot(x - pointer.startX, y - pointer.startY) < DRAG_PX[pointer.type]) return;
    pointer.isDrag = true;
    if (this.#pointers.size === 1) {
      this.on.dragging(true);
      this.on.pan(x - pointer.x, y - pointer.y);
    } else {
      this.#pinch(pointer, x, y);
    }
    pointer.x = x;
    pointer.y = y;
  }

  // The other finger stays where it is: the middle moves by half, and the distance changes.
  #pinch(pointer, x, y) {
    const other = [...this.#pointers.values()].find((each) => each !== pointer);
    const before = Math.hypot(pointer.x - other.x, pointer.y - other.y), after = Math.hypot(x - other.x, y - other.y);
    this.on.pan((x - pointer.x) / 2, (y - pointer.y) / 2);
    if (before > 8) this.on.zoom((x + other.x) / 2, (y + other.y) / 2, after / before);
  }

  #up(event, isTap) {
    const pointer = this.#pointers.get(event.pointerId);
    if (!pointer) return;
    this.#pointers.delete(event.pointerId);
    this.on.dragging(false);
    if (!isTap || pointer.isDrag || event.timeStamp - pointer.since > TAP_MS) return;
    const { startX: x, startY: y, type } = pointer;
    const last = this.#lastTap;
    this.#lastTap = null;
    if (last && event.timeStamp - last.at < DOUBLE_TAP_MS && Math.hypot(x - last.x, y - last.y) < DOUBLE_TAP_PX) {
      this.on.doubleTap(x, y);
      return;
    }
    const isHit = this.on.tap(x, y, type);
    if (!isHit || type === 'touch') this.#lastTap = { at: event.timeStamp, x, y }; // a mouse clicks one seat twice to take it back
  }

  #wheel(event, isFocused) {
    if (!event.ctrlKey && !event.metaKey && !isFocused) {
      this.on.wheelIgnored();
      return;
    }
    event.preventDefault();
    const { x, y } = this.#place(event);
    const pixels = event.deltaY * (event.deltaMode === 1 ? 32 : event.deltaMode === 2 ? 400 : 1);
    const step = event.ctrlKey && Math.abs(pixels) < 50 ? WHEEL_STEP * 4 : WHEEL_STEP; // a pinch comes in small steps
    this.on.zoom(x, y, Math.exp(-Math.max(-300, Math.min(300, pixels)) * step));
  }
}
