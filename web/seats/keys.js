// The keyboard on the map: arrows go to the neighbouring seat by position, Enter or Space chooses it, + and - zoom, Home shows
// everything.

const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class MapKeys {
  // `on`: zoom(factor), fit(), toggle(seat), move(seat), redraw().
  constructor(element, plan, view, on, signal) {
    this.plan = plan;
    this.view = view;
    this.on = on;
    this.active = -1; // the seat that keys act on
    this.isShown = false; // whether it is marked
    element.addEventListener('keydown', (event) => this.#key(event), { signal });
    element.addEventListener('blur', () => { this.isShown = false; on.redraw(); }, { signal });
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = DIRECTIONS[event.key];
    if (direction) this.#move(...direction);
    else if (event.key === 'Enter' || event.key === ' ') this.#choose();
    else if (event.key === '+' || event.key === '=') this.on.zoom(1.6);
    else if (event.key === '-') this.on.zoom(1 / 1.6);
    else if (event.key === 'Home') this.on.fit();
    else return;
    event.preventDefault();
  }

  // The first key goes to the seat in the middle.
  #move(dx, dy) {
    const { plan, view } = this;
    const isStarting = this.active < 0;
    const next = isStarting ? plan.spatial.nearest(view.x, view.y, Infinity) : this.#next(dx, dy);
    this.isShown = true;
    if (next < 0) return this.on.redraw();
    this.active = next;
    this.on.move(next);
  }

  // Left and right stay in the row as long as it goes on.
  #next(dx, dy) {
    const { plan, active } = this;
    const inRow = dx !== 0 ? plan.spatial.neighbour(active, dx, dy, (i) => plan.row[i] === plan.row[active]) : -1;
    return inRow >= 0 ? inRow : plan.spatial.neighbour(active, dx, dy);
  }

  #choose() {
    if (this.active < 0) return this.#move(0, 0);
    this.isShown = true;
    this.on.toggle(this.active);
  }
}
