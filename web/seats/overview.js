// The whole plan as a small picture, with a frame around the part that is seen.  It is there while the map shows a part only, in
// the corner where it hid the fewest seats when it came.  A click or a drag in it goes there.
//
// The seats are those of a layer of its own (tiles.js): a frame copies a tile or two, and a seat that changes is drawn again alone.

import { drawAreas } from './decor.js';
import { Layer } from './tiles.js';
import { View } from './view.js';

const SIDE_PX = 132; // of its longer side, at most
const PART = 0.3; // of the map's width, at most
const ZOOMED = 1.15; // how many times larger than the whole the map has to be
const EDGE_PX = 8; // from the edges of the map
const CORNERS = ['left bottom', 'left top', 'right top', 'right bottom']; // the first of those that hide as few

export class Overview {
  #layer = null;
  #whole = null; // the view of everything
  #seen = ''; // what the picture shows

  // `go(x, y)` brings a point of the plan to the middle of the map.
  constructor(canvas, painter, go, signal) {
    this.canvas = canvas;
    this.painter = painter;
    const aim = (event) => {
      if (!this.#whole || (event.type === 'pointermove' && event.buttons === 0)) return;
      go(this.#whole.toPlanX(event.offsetX), this.#whole.toPlanY(event.offsetY));
    };
    for (const name of ['pointerdown', 'pointermove']) canvas.addEventListener(name, aim, { signal });
  }

  // Forgets its picture, after the theme, the looks of all seats or the sharpness of the screen have changed.
  reset() {
    this.#layer?.close();
    this.#layer = this.#whole = null;
    this.#seen = '';
  }

  // Takes over the looks of seats that changed; null means all of them.
  repaint(seats) {
    this.#layer?.repaint(seats);
    if (!seats || seats.length > 0) this.#seen = '';
  }

  #open(view) {
    const { plan, ratio } = this.painter;
    const width = view.box.right - view.box.left, height = view.box.bottom - view.box.top;
    const scale = Math.min(SIDE_PX / Math.max(width, height), PART * view.width / width, PART * view.height / height);
    const whole = new View(view.box, plan.radiusTypical);
    whole.resize(Math.ceil(width * scale), Math.ceil(height * scale));
    this.#layer = new Layer(this.painter, whole.scale * ratio, ratio);
    this.#whole = whole;
    this.canvas.width = whole.width * ratio;
    this.canvas.height = whole.height * ratio;
    this.canvas.style.width = `${whole.width}px`;
    this.canvas.style.height = `${whole.height}px`;
  }

  // Chooses the corner for a map that is where `view` is, or goes there.  The lower right corner of a wide map has the buttons.
  #settle(view) {
    const { width, height } = this.#whole;
    const { x, y, scale } = view.goal?.to ?? view;
    const { plan } = this.painter;
    const nBehind = (corner) => {
      const px = corner.startsWith('left') ? EDGE_PX : view.width - EDGE_PX - width;
      const py = corner.endsWith('top') ? EDGE_PX : view.height - EDGE_PX - height;
      const left = (px - view.width / 2) / scale + x, top = (py - view.height / 2) / scale + y;
      const right = left + width / scale, bottom = top + height / scale;
      let n = 0;
      plan.spatial.forEachIn(left, top, right, bottom, (i) => {
        if (plan.x[i] > left && plan.x[i] < right && plan.y[i] > top && plan.y[i] < bottom) n++;
      });
      return n;
    };
    const found = CORNERS.slice(0, view.isNarrow ? 4 : 3).map((corner) => ({ corner, n: nBehind(corner) }));
    this.canvas.dataset.corner = found.reduce((least, each) => (each.n < least.n ? each : least)).corner;
  }

  // Shows where `view` is; called in every frame.  A map that rests and does not change costs nothing.
  draw(view) {
    const isShown = view.scale > view.fitScale * ZOOMED && view.width > 0;
    const comes = isShown && this.canvas.hidden;
    this.canvas.hidden = !isShown;
    const key = [view.x, view.y, view.scale, view.width, view.height].join();
    if (!isShown || key === this.#seen) return;
    if (!this.#layer) this.#open(view);
    if (comes) this.#settle(view);
    this.#seen = key;
    const { theme, areas, ratio } = this.painter;
    const context = this.canvas.getContext('2d');
    const whole = this.#whole, layer = this.#layer;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    drawAreas(context, whole, ratio, areas, theme, () => '');
    layer.forEachTile(whole.left, whole.top, whole.right, whole.bottom, (column, line) => {
      const known = layer.get(column, line);
      const tile = known && !known.isDirty ? known : layer.draw(column, line);
      context.drawImage(tile.canvas, column * tile.canvas.width - Math.round(whole.left * layer.scale), line * tile.canvas.height - Math.round(whole.top * layer.scale));
    });
    const [left, top] = [whole.toScreenX(view.left), whole.toScreenY(view.top)].map((px) => Math.max(1, px) * ratio);
    const right = Math.min(whole.width - 1, whole.toScreenX(view.right)) * ratio, bottom = Math.min(whole.height - 1, whole.toScreenY(view.bottom)) * ratio;
    for (const [color, width] of [[theme.surface, 4], [theme.focus, 2]]) {
      context.strokeStyle = color;
      context.lineWidth = width * ratio;
      context.strokeRect(left, top, right - left, bottom - top);
    }
  }
}
