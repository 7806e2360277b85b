// What the seat under the pointer is, or the one that has the focus: a line beside it.

const GAP_PX = 8;
const MARGIN_PX = 4;

export class Tip {
  #text = '';

  constructor(element) { this.element = element; }

  // Shows a text at a seat, above it where there is room; a seat outside the picture has none.
  show(view, plan, i, text) {
    const { element } = this;
    const x = view.toScreenX(plan.x[i]), y = view.toScreenY(plan.y[i]);
    element.hidden = x < 0 || y < 0 || x > view.width || y > view.height;
    if (element.hidden) return;
    if (text !== this.#text) element.textContent = this.#text = text;
    const gap = view.seatPx / 2 + GAP_PX;
    const left = Math.max(MARGIN_PX, Math.min(view.width - element.offsetWidth - MARGIN_PX, x - element.offsetWidth / 2));
    const top = y - gap - element.offsetHeight >= MARGIN_PX ? y - gap - element.offsetHeight : y + gap;
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  hide() { this.element.hidden = true; }
}
