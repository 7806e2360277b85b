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

  // The price of a seat now; null if it is not known.
  price(id) { return this.#map.seat(id)?.price ?? null; }

  areaPrice(name) { return this.#map.areas.find((area) => area.name === name)?.price ?? null; }

  // The categories of seats, with their prices: [{ name, price }].
  get categories() { return (this.#map.plan?.categories ?? []).map(({ name }) => ({ name, price: this.#map.prices[name] ?? null })); }

  // The price of places that are not held yet; null if one of them has no known price.
  total(ids, areas) {
    const prices = [...ids.map((id) => this.price(id)), ...Object.entries(areas).map(([name, n]) => (this.areaPrice(name) === null ? null : n * this.areaPrice(name)))];
    return prices.includes(null) ? null : prices.reduce((sum, price) => sum + price, 0);
  }
}
