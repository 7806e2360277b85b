// What the buyer has chosen and not yet held: seats, and numbers of places in areas.

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
    this.areas = noPlaces();
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
    this.changed([i], { removed: [id] });
    return true;
  }

  clear() {
    if (this.isEmpty) return;
    const seats = [...this.seats], removed = this.ids;
    this.seats.clear();
    this.areas = noPlaces();
    this.changed(seats, { removed });
  }

  // Chooses `n` places of an area, at most those that are left and that a hold may have; returns how many it became.
  setArea(name, n) {
    const area = this.board.areas.get(name);
    if (!area) throw new Refusal(this.t('noSuchArea', { area: name }), { code: 'no_such_seat' });
    const before = this.areas[name] ?? 0;
    const room = this.maxPerHold - this.own.heldCount() - (this.#count - before);
    const granted = Math.max(0, Math.min(Math.floor(Number(n)) || 0, area.available, room));
    if (granted === before) return granted;
    if (granted > 0) this.areas[name] = granted;
    else delete this.areas[name];
    this.changed([], {});
    return granted;
  }

  // Drops what is no longer available, and seats that the server has named as taken.  Returns the ids of these seats.
  dropTaken(named) {
    const lost = [...this.seats].filter((i) => this.board.states[i] !== AVAILABLE || named.includes(this.plan.ids[i]));
    for (const i of lost) this.seats.delete(i);
    const ids = lost.map((i) => this.plan.ids[i]);
    if (lost.length > 0) this.changed(lost, { lost: ids });
    for (const [name, n] of Object.entries(this.areas)) {
      const left = this.board.areas.get(name)?.available ?? 0;
      if (n > left) this.setArea(name, left);
    }
    return ids;
  }

  // What was chosen is held now.
  dropHeld(hold) {
    const held = new Set(hold.seats);
    const seats = [...this.seats].filter((i) => held.has(this.plan.ids[i]));
    for (const i of seats) this.seats.delete(i);
    this.areas = noPlaces();
    this.changed(seats, {});
  }
}

// How many places a hold has.
export const placesOf = (hold) => (hold ? hold.seats.length + sum(hold.areas) : 0);
