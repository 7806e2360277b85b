// What the map knows about places, in words and money.

import { list, money } from '../lib/format.js';

export class Places {
  #map;
  #lang;

  constructor(map, lang) {
    this.#map = map;
    this.#lang = lang;
  }

  money(amount) { return money(amount, this.#map.currency, this.#lang); }

  // "Stalls, row A, seat 12", as printed on a ticket, and as a buyer may type it.
  name(id) { return this.#map.seat(id)?.name ?? id; }

  names(ids) { return this.list(ids.map((id) => this.name(id))); }

  list(names) { return list(names, this.#lang); }

  // The price of a seat now, for a ticket type if the event has some; null if it is not known.
  price(id, type) { return this.#map.priceOf(this.#map.seat(id)?.category, type); }

  areaPrice(name, type) { return this.#map.priceOf(name, type); }

  typeName(type) { return this.#map.types.find(({ id }) => id === type)?.name ?? type; }

  // What is held or booked, in lines: { seat, type, amount } for a seat, { area, n, type, amount } for places of an area of one ticket
  // type.  `type` and `amount` are null where the event has no types.
  linesOf({ seats, areas, places }) {
    if (!places) return [...seats.map((seat) => ({ seat, type: null, amount: null })), ...Object.entries(areas ?? {}).map(([area, n]) => ({ area, n, type: null, amount: null }))];
    const lines = places.filter(({ seat }) => seat).map(({ seat, type, amount }) => ({ seat, type, amount }));
    const byType = new Map();
    for (const { area, type, amount } of places.filter((place) => place.area)) {
      const key = JSON.stringify([area, type]);
      const line = byType.get(key) ?? { area, n: 0, type, amount: 0 };
      byType.set(key, { ...line, n: line.n + 1, amount: amount === null || line.amount === null ? null : line.amount + amount });
    }
    return [...lines, ...byType.values()];
  }

  // The same of what is chosen.
  get chosenLines() {
    const types = this.#map.types.length > 0;
    return [
      ...this.#map.selection.map((seat) => ({ seat, type: types ? this.#map.typeOf(seat) : null, amount: this.price(seat, types ? this.#map.typeOf(seat) : undefined) })),
      ...Object.entries(this.#map.areaTypes).flatMap(([area, counts]) => Object.entries(counts).map(([type, n]) => {
        const price = this.areaPrice(area, type || undefined);
        return { area, n, type: type || null, amount: price === null ? null : n * price };
      })),
    ];
  }

  // The categories of seats, with their prices: [{ name, price }].
  get categories() { return (this.#map.plan?.categories ?? []).map(({ name }) => ({ name, price: this.#map.priceOf(name) })); }
}
