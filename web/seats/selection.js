// What the buyer has chosen and not yet held: seats, and numbers of places in areas, with their ticket types where the event has some.

import { AVAILABLE } from './board.js';
import { Refusal } from './hold.js';

const MAX_PER_HOLD = 10; // until the event is known

const sum = (places) => Object.values(places ?? {}).reduce((total, n) => total + n, 0);

// Numbers of places by the name of their area.  Without a prototype: an area may be called "constructor".
export const noPlaces = () => Object.create(null);

export class Selection {
  // `own`: isMine(seat) and heldCount(), what the buyer holds already.  `changed(seats, detail)` is called after each change.
  constructor({ plan, board, names }, own, changed) {
    this.plan = plan;
    this.board = board;
    this.t = names.t;
    this.names = names;
    this.own = own;
    this.changed = changed;
    this.maxPerHold = MAX_PER_HOLD;
    this.seats = new Set(); // seat numbers, in the order of choice
    this.types = new Map(); // seat number -> ticket type, where it is not the usual one
    this.counts = noPlaces(); // area -> { ticket type, or '' where there are none: number of places }
  }

  get ids() { return [...this.seats].map((i) => this.plan.ids[i]); }
  get isEmpty() { return this.seats.size === 0 && sum(this.areas) === 0; }
  get #count() { return this.seats.size + sum(this.areas); }

  known(id) {
    const i = this.plan.indexOf(id);
    if (i < 0) throw new Refusal(this.t('noSuchSeat', { seat: id }), { code: 'no_such_seat' });
    return i;
  }

  select(id) {
    const i = this.known(id);
    if (this.seats.has(i)) return true;
    const refuse = (key, values, code) => { throw new Refusal(this.t(key, values), { code, seats: [id] }); };
    if (this.own.isMine(i)) refuse('alreadyYours', { seat: this.names.place(i) }, 'already_yours');
    if (this.board.sale !== 'open') refuse('closed', {}, 'event_closed');
    if (this.board.states[i] !== AVAILABLE) refuse('notAvailable', { seat: this.names.place(i) }, 'seat_taken');
    if (this.#count + this.own.heldCount() >= this.maxPerHold) refuse('tooMany', { n: this.maxPerHold }, 'too_many_seats');
    this.seats.add(i);
    this.changed([i], { added: [id] });
    return true;
  }

  deselect(id) {
    const i = this.known(id);
    if (!this.seats.delete(i)) return false;
    this.types.delete(i);
    this.changed([i], { removed: [id] });
    return true;
  }

  clear() {
    if (this.isEmpty) return;
    const seats = [...this.seats], removed = this.ids;
    this.seats.clear();
    this.types.clear();
    this.counts = noPlaces();
    this.changed(seats, { removed });
  }

  // Chooses `n` places of an area, of a ticket type if the event has some, at most those that are left and that a hold may have;
  // returns how many it became.
  setArea(name, n, type = this.board.types[0]?.id ?? '') {
    const area = this.board.areas.get(name);
    if (!area) throw new Refusal(this.t('noSuchArea', { area: name }), { code: 'no_such_seat' });
    const counts = this.counts[name] ?? noPlaces();
    const before = counts[type] ?? 0;
    const room = this.maxPerHold - this.own.heldCount() - (this.#count - before);
    const granted = Math.max(0, Math.min(Math.floor(Number(n)) || 0, area.available - (sum(counts) - before), room));
    if (granted === before) return granted;
    if (granted > 0) counts[type] = granted;
    else delete counts[type];
    if (sum(counts) > 0) this.counts[name] = counts;
    else delete this.counts[name];
    this.changed([], {});
    return granted;
  }

  // The numbers of places of areas: { area: n }.
  get areas() {
    const areas = noPlaces();
    for (const [name, counts] of Object.entries(this.counts)) areas[name] = sum(counts);
    return areas;
  }

  // ---- ticket types ----

  typeOf(id) { return this.types.get(this.known(id)) ?? this.board.types[0]?.id ?? null; }

  setType(id, type) {
    const i = this.known(id);
    if (!this.seats.has(i) || !this.board.types.some((each) => each.id === type)) return;
    this.types.set(i, type);
    this.changed([i], {});
  }

  // What is chosen, as a request for a hold names it.
  get wish() {
    const [usual] = this.board.types;
    const types = Object.fromEntries([...this.seats].map((i) => [this.plan.ids[i], this.types.get(i)]).filter(([, type]) => type && type !== usual?.id));
    return {
      places: {
        ...(this.seats.size > 0 ? { seats: this.ids } : {}),
        ...(sum(this.areas) > 0 ? { areas: usual ? this.#countsByType(usual.id) : { ...this.areas } } : {}),
      },
      types,
    };
  }

  #countsByType(usual) {
    const byType = (counts) => Object.fromEntries(Object.entries(counts).map(([type, n]) => [type || usual, n]));
    return Object.fromEntries(Object.entries(this.counts).map(([name, counts]) => [name, byType(counts)]));
  }

  // Drops what is no longer available, and seats that the server has named as taken.  Returns the ids of these seats.
  dropTaken(named) {
    const lost = [...this.seats].filter((i) => this.board.states[i] !== AVAILABLE || named.includes(this.plan.ids[i]));
    for (const i of lost) {
      this.seats.delete(i);
      this.types.delete(i);
    }
    const ids = lost.map((i) => this.plan.ids[i]);
    if (lost.length > 0) this.changed(lost, { lost: ids });
    for (const [name, counts] of Object.entries(this.counts)) {
      const left = this.board.areas.get(name)?.available ?? 0;
      for (const [type, n] of Object.entries(counts).reverse()) if (sum(counts) > left) this.setArea(name, Math.max(0, n - (sum(counts) - left)), type);
    }
    return ids;
  }

  // What was chosen is held now, but for what somebody chose before having the best seats found.
  dropHeld(hold) {
    const held = new Set(hold.seats);
    const seats = [...this.seats].filter((i) => held.has(this.plan.ids[i]));
    for (const i of seats) {
      this.seats.delete(i);
      this.types.delete(i);
    }
    for (const name of Object.keys(hold.areas ?? {})) delete this.counts[name];
    this.changed(seats, {});
  }
}

// How many places a hold has.
export const placesOf = (hold) => (hold ? hold.seats.length + sum(hold.areas) : 0);
