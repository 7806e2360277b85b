// The seats in view as a real grid, for screen readers and for everybody who would rather read than point.
//
// It holds CELLS_MAX cells at most.  Rows and cells that stay in view are kept as they are, so nothing that is being read moves;
// a change of a seat touches its cell alone.

import { make } from './shell.js';

const CELLS_MAX = 500;

export class SeatGrid {
  #rows = new Map(); // number of a row of the plan -> { element, seats: [seat numbers] }
  #cells = new Map(); // seat number -> element
  #current = -1; // the seat whose cell has tabindex 0

  // `seats`: name(i), label(i), rowName(row), state(i) ('.', 'h', 'b', 'x', 'mine' or 'selected').  `on`: toggle(i), focus(i),
  // beyond(i, dx, dy) when the arrow keys leave the grid.
  constructor(element, seats, on, signal) {
    this.element = element;
    this.seats = seats;
    this.on = on;
    element.addEventListener('keydown', (event) => this.#key(event), { signal });
    element.addEventListener('click', (event) => {
      const i = this.#seatOf(event.target);
      if (i < 0) return;
      this.#setCurrent(i);
      on.toggle(i);
    }, { signal });
    element.addEventListener('focusin', (event) => {
      const i = this.#seatOf(event.target);
      if (i < 0) return;
      this.#setCurrent(i);
      on.focus(i);
    }, { signal });
  }

  get hasFocus() { return this.element.getRootNode().activeElement?.getAttribute('role') === 'gridcell'; }

  #seatOf(target) { return Number(target.closest?.('[role="gridcell"]')?.dataset.seat ?? -1); }

  clear() {
    this.element.replaceChildren();
    this.element.hidden = true;
    this.#rows.clear();
    this.#cells.clear();
    this.#current = -1;
  }

  // Shows the seats of the plan that are in view; when they are too many, those around its centre.
  show(plan, view) {
    const shown = new Map(); // row -> seats
    const keep = this.hasFocus ? this.#current : -1;
    for (const i of seatsInView(plan, view, keep)) {
      if (!shown.has(plan.row[i])) shown.set(plan.row[i], []);
      shown.get(plan.row[i]).push(i);
    }
    for (const [row, { element, seats }] of this.#rows) {
      if (shown.has(row)) continue;
      element.remove();
      for (const i of seats) this.#cells.delete(i);
      this.#rows.delete(row);
    }
    let before = null;
    for (const row of [...shown.keys()].sort((a, b) => a - b)) {
      const element = this.#showRow(row, shown.get(row).sort((a, b) => a - b));
      const place = before ? before.nextSibling : this.element.firstChild;
      if (place !== element) this.element.insertBefore(element, place);
      before = element;
    }
    this.element.hidden = this.#cells.size === 0;
    if (!this.#cells.has(this.#current)) this.#setCurrent(this.#cells.keys().next().value ?? -1);
  }

  #showRow(row, seats) {
    let known = this.#rows.get(row);
    if (!known) {
      const head = make('div', '', { role: 'rowheader' }, this.seats.rowName(row));
      known = { element: make('div', '', { role: 'row' }, head), seats: [] };
      this.#rows.set(row, known);
    }
    const { element } = known;
    if (known.seats.length === seats.length && known.seats.every((i, at) => i === seats[at])) return element;
    const wanted = new Set(seats);
    for (const i of known.seats) if (!wanted.has(i)) { this.#cells.get(i)?.remove(); this.#cells.delete(i); }
    let before = element.firstChild; // the head of the row
    for (const i of seats) {
      let cell = this.#cells.get(i);
      if (!cell) {
        cell = make('div', '', { role: 'gridcell', tabindex: '-1', 'data-seat': String(i) }, this.seats.label(i));
        this.#cells.set(i, cell);
        this.#describe(i, cell);
      }
      if (before.nextSibling !== cell) element.insertBefore(cell, before.nextSibling);
      before = cell;
    }
    known.seats = seats;
    return element;
  }

  // Tells of seats that changed; null means all of them.
  update(seats) {
    for (const i of seats ?? this.#cells.keys()) {
      const cell = this.#cells.get(i);
      if (cell) this.#describe(i, cell);
    }
  }

  #describe(i, cell) {
    const state = this.seats.state(i), name = this.seats.name(i);
    if (cell.getAttribute('aria-label') === name && cell.dataset.state === state) return;
    cell.setAttribute('aria-label', name);
    cell.dataset.state = state;
    cell.setAttribute('aria-selected', String(state === 'selected' || state === 'mine'));
    cell.setAttribute('aria-disabled', String(!['.', 'selected'].includes(state)));
  }

  #setCurrent(i) {
    this.#cells.get(this.#current)?.setAttribute('tabindex', '-1');
    this.#current = i;
    this.#cells.get(i)?.setAttribute('tabindex', '0');
  }

  // Moves the focus to a seat that is shown.
  focus(i) {
    if (!this.#cells.has(i)) return;
    this.#setCurrent(i);
    this.#cells.get(i).focus();
  }

  #key(event) {
    const i = this.#seatOf(event.target);
    if (i < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = [...this.#rows.values()].find(({ seats }) => seats.includes(i));
    const at = row.seats.indexOf(i);
    const moves = {
      ArrowLeft: () => row.seats[at - 1] ?? this.on.beyond(i, -1, 0),
      ArrowRight: () => row.seats[at + 1] ?? this.on.beyond(i, 1, 0),
      ArrowUp: () => this.on.beyond(i, 0, -1),
      ArrowDown: () => this.on.beyond(i, 0, 1),
      Home: () => row.seats[0],
      End: () => row.seats.at(-1),
    };
    if (event.key === 'Enter' || event.key === ' ') this.on.toggle(i);
    else if (moves[event.key]) {
      const next = moves[event.key]();
      if (next >= 0) this.focus(next);
    } else return;
    event.preventDefault();
  }
}

function seatsInView(plan, view, keep) {
  let { left, right, top, bottom } = view;
  const { x, y } = view;
  for (let part = 1; plan.spatial.countIn(left, top, right, bottom) > CELLS_MAX && part > 0.01; part *= 0.8) {
    const half = [(view.right - view.left) / 2 * part, (view.bottom - view.top) / 2 * part];
    [left, right, top, bottom] = [x - half[0], x + half[0], y - half[1], y + half[1]];
  }
  const seats = [];
  plan.spatial.forEachIn(left, top, right, bottom, (i) => {
    const isIn = plan.x[i] >= left && plan.x[i] <= right && plan.y[i] >= top && plan.y[i] <= bottom;
    if (isIn && seats.length < CELLS_MAX && i !== keep) seats.push(i);
  });
  if (keep >= 0) seats.push(keep);
  return seats;
}
