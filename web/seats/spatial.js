// Where seats are: a uniform grid over the plan, in three typed arrays.  Building it is O(seats); a search looks only at the
// cells that it needs.

const SEATS_PER_CELL = 4;
const CELLS_MAX = 1 << 18;

export class SeatIndex {
  constructor(x, y, box) {
    this.x = x;
    this.y = y;
    this.left = box.left;
    this.top = box.top;
    const width = Math.max(1, box.right - box.left), height = Math.max(1, box.bottom - box.top);
    const cells = Math.min(CELLS_MAX, Math.max(1, x.length / SEATS_PER_CELL));
    this.size = Math.max(Math.sqrt((width * height) / cells), width / 4096, height / 4096);
    this.columns = Math.ceil(width / this.size);
    this.lines = Math.ceil(height / this.size);
    // A counting sort: start[c] to start[c + 1] are the places in `items` of the seats in cell c.
    this.start = new Uint32Array(this.columns * this.lines + 1);
    this.items = new Uint32Array(x.length);
    const cell = new Uint32Array(x.length);
    for (let i = 0; i < x.length; i++) {
      cell[i] = this.#line(y[i]) * this.columns + this.#column(x[i]);
      this.start[cell[i] + 1]++;
    }
    for (let c = 0; c < this.columns * this.lines; c++) this.start[c + 1] += this.start[c];
    const next = this.start.slice();
    for (let i = 0; i < x.length; i++) this.items[next[cell[i]]++] = i;
  }

  #column(x) { return Math.min(this.columns - 1, Math.max(0, Math.floor((x - this.left) / this.size))); }
  #line(y) { return Math.min(this.lines - 1, Math.max(0, Math.floor((y - this.top) / this.size))); }

  // Calls visit(seat) for every seat in the cells that the box touches: all seats of the box and a few around it.
  forEachIn(left, top, right, bottom, visit) {
    const { start, items, columns } = this;
    const c0 = this.#column(left), c1 = this.#column(right), l1 = this.#line(bottom);
    for (let line = this.#line(top); line <= l1; line++) {
      const end = start[line * columns + c1 + 1];
      for (let at = start[line * columns + c0]; at < end; at++) visit(items[at]);
    }
  }

  // How many seats forEachIn would visit; O(lines of the grid).
  countIn(left, top, right, bottom) {
    const { start, columns } = this;
    const c0 = this.#column(left), c1 = this.#column(right), l1 = this.#line(bottom);
    let n = 0;
    for (let line = this.#line(top); line <= l1; line++) n += start[line * columns + c1 + 1] - start[line * columns + c0];
    return n;
  }

  // Returns the seat nearest to a point, at most `reach` away, or -1.
  nearest(px, py, reach) {
    let best = -1, least = reach * reach;
    this.forEachIn(px - reach, py - reach, px + reach, py + reach, (i) => {
      const d = (this.x[i] - px) ** 2 + (this.y[i] - py) ** 2;
      if (d <= least) { least = d; best = i; }
    });
    return best;
  }

  // Returns the seat that lies next to seat `from` in the direction (dx, dy), or -1.  A seat is in that direction if it lies
  // within about 60 degrees of it; deviation counts double.  `fits(seat)` narrows the choice.
  neighbour(from, dx, dy, fits = () => true) {
    const x = this.x[from], y = this.y[from];
    const widest = Math.max(this.columns, this.lines) * this.size;
    for (let reach = this.size * 2; ; reach *= 4) {
      let best = -1, least = Infinity;
      this.forEachIn(x - reach, y - reach, x + reach, y + reach, (i) => {
        const vx = this.x[i] - x, vy = this.y[i] - y;
        const ahead = vx * dx + vy * dy, aside = Math.abs(vx * dy - vy * dx);
        if (ahead <= 0 || aside > ahead * 1.8 || ahead + 2 * aside >= least || !fits(i)) return;
        least = ahead + 2 * aside;
        best = i;
      });
      if (best >= 0 && least <= reach) return best; // nothing outside the box can be better
      if (reach > widest) return best;
    }
  }
}
