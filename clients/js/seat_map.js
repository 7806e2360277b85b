// The map of an event, kept up to date by its stream.

const STATUS = { '.': 'available', h: 'held', b: 'booked', x: 'blocked' };

export class SeatMap extends EventTarget {
  #stream;
  #ids = []; // of all seats, in the order of the map

  seq = 0;
  status = null; // of the event
  currency = null;
  prices = {};
  types = [];
  seats = new Map(); // id -> 'available', 'held', 'booked' or 'blocked'
  areas = {}; // name -> places available
  closed = null; // resolves when the map is closed; rejects if it cannot be kept up to date any longer

  // Resolves to a map once it has been read.
  static async open(events, id, options = {}) {
    const map = new SeatMap();
    const [plan, state] = await Promise.all([events.plan(id, {}, options), events.seats(id, {}, options)]);
    for (const { rows } of plan.sections) for (const { seats } of rows) for (const seat of seats) map.#ids.push(seat.id);
    map.#replace(state);
    map.#stream = events.stream(id, { after: state.seq }, options);
    map.closed = map.#follow();
    map.closed.catch(() => {}); // whoever wants to know awaits it
    return map;
  }

  close() { this.#stream.close(); }
  async [Symbol.asyncDispose ?? Symbol.for('asyncDispose')]() { this.close(); }

  async #follow() {
    for await (const change of this.#stream) {
      if (change.type === 'reset') this.#replace(change.map);
      else this.#apply(change);
      this.dispatchEvent(Object.assign(new Event('change'), { change }));
    }
  }

  #replace({ seq, status, currency, prices, types = [], sections, areas }) {
    Object.assign(this, { seq, status, currency, prices, types });
    const letters = sections.flatMap(({ rows }) => rows.map(({ seats }) => seats)).join('');
    this.#ids.forEach((id, i) => this.seats.set(id, STATUS[letters[i]]));
    this.areas = Object.fromEntries(areas.map(({ name, available }) => [name, available]));
  }

  #apply({ type, seq, changes, areas, status, prices, types = [] }) {
    this.seq = seq;
    if (type === 'event') return void Object.assign(this, { status, prices, types });
    for (const [id, letter] of changes) this.seats.set(id, STATUS[letter]);
    Object.assign(this.areas, areas);
  }
}
