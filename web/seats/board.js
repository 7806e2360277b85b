// What is sold: the status of every seat and area, as the snapshot and the stream tell it.

export const AVAILABLE = 0;
export const HELD = 1;
export const BOOKED = 2;
export const BLOCKED = 3;
const LETTERS = '.hbx';
const statusOfCode = new Uint8Array(128).fill(BLOCKED);
for (let s = 0; s < LETTERS.length; s++) statusOfCode[LETTERS.charCodeAt(s)] = s;

export class Board {
  constructor(plan) {
    this.plan = plan;
    this.states = new Uint8Array(plan.n).fill(BLOCKED);
    this.seq = 0;
    this.sale = 'open';
    this.currency = null;
    this.prices = {};
    this.types = []; // ticket types, where the event has some: [{ id, name, prices }], the usual one first
    this.areas = new Map(); // name -> { price, capacity, available }
    this.seatsAvailable = 0;
  }

  // How many seats and places of areas are left.
  get available() { return [...this.areas.values()].reduce((sum, { available }) => sum + available, this.seatsAvailable); }

  // Notes the state of a seat; returns false if it is known.
  #set(i, state) {
    if (this.states[i] === state) return false;
    this.seatsAvailable += (state === AVAILABLE) - (this.states[i] === AVAILABLE);
    this.states[i] = state;
    return true;
  }

  letter(i) { return LETTERS[this.states[i]]; }

  // What a category, a section or an area costs for a ticket type, or for the usual one; null if that is not known.
  price(name, type = this.types[0]?.id) {
    return this.types.find(({ id }) => id === type)?.prices[name] ?? this.prices[name] ?? this.areas.get(name)?.price ?? null;
  }

  priceOf(i, type) { return this.price(this.plan.categoryOf(i), type); }

  // Takes over a snapshot, which lists the seats in the plan's order.  Returns the seats that differ from before.
  load(snapshot) {
    const { plan } = this;
    const changed = [];
    let r = 0;
    for (const section of snapshot.sections) {
      for (const { seats } of section.rows) {
        const row = plan.rows[r++];
        if (!row || row.end - row.first !== seats.length) throw new Error('the plan and the snapshot are of different events');
        for (let i = row.first, at = 0; i < row.end; i++, at++) {
          if (this.#set(i, statusOfCode[seats.charCodeAt(at) & 127])) changed.push(i);
        }
      }
    }
    this.areas = new Map(snapshot.areas.map(({ name, price, capacity, available }) => [name, { price, capacity, available }]));
    this.seq = snapshot.seq;
    this.sale = snapshot.status ?? this.sale;
    this.currency = snapshot.currency ?? this.currency;
    this.prices = snapshot.prices ?? this.prices;
    this.types = snapshot.types ?? this.types;
    return changed;
  }

  // Takes over a message of the stream.  Returns the seats that changed; a message may repeat what is known.
  apply({ changes, areas }) {
    const changed = [];
    for (const [id, letter] of changes) {
      const i = this.plan.indexOf(id);
      if (i >= 0 && this.#set(i, statusOfCode[letter.charCodeAt(0) & 127])) changed.push(i);
    }
    for (const [name, available] of Object.entries(areas ?? {})) {
      const area = this.areas.get(name);
      if (area) area.available = available;
    }
    return changed;
  }
}
