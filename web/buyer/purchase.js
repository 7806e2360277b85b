// A purchase, from the hold to the booking, as the API tells it: nothing here knows what the page looks like.
//
//   hold (GET /v1/holds) -> book (POST /v1/bookings) -> pay (card.js) -> settle (GET /v1/bookings, until it is decided)
//
// Only GET /v1/bookings decides whether the seats are sold.  What a card form says is never believed, and a lost answer is
// not a failure: the same call is made again under its key.

import { call, insist, newKey, Problem, sleep, Unreachable } from '../lib/api.js';

const POLL_FIRST_MS = 250;
const POLL_MOST_MS = 3000;
const DECLINE_LAG_MS = 10_000; // how long the server may take to hear that a card was charged

const pathOf = (kind, id) => `/v1/${kind}/${encodeURIComponent(id)}`;

// Stages of a booking, for the page.
export function stageOf(booking) {
  const { status, payment } = booking;
  if (status === 'confirmed') return 'booked';
  if (status !== 'pending') return 'over';
  if (!payment || payment.status === 'creating') return 'creating';
  if (['requires_payment', 'requires_action'].includes(payment.status)) return 'open';
  return 'processing'; // also while money that came too late is on its way back
}

export class Purchase {
  hold = null;
  booking = null;
  deadline = 0; // when the hold ends, by performance.now; advisory
  #keep;
  #server;

  constructor(server, keep) {
    this.#server = server;
    this.#keep = keep;
  }

  // ---- the hold ----

  // Reads the hold.  Resolves to it, or to null if there is none of this id.
  async readHold(id) {
    const found = await this.#find(id);
    if (found) this.#take(found.json, found.sentAt);
    return found?.json ?? null;
  }

  // Reads a hold without making it that of this browser.
  async findHold(id) { return (await this.#find(id))?.json ?? null; }

  async #find(id) {
    try {
      return await insist(this.#server, 'GET', pathOf('holds', id));
    } catch (error) {
      if (error instanceof Problem && error.status === 404) return null;
      throw error;
    }
  }

  #take(hold, at) {
    this.hold = hold;
    this.#keep.add(hold.id, { fence: hold.fence }); // by which other tabs hear of a change
    this.deadline = at + Math.max(0, hold.expires_in_ms ?? 0);
  }

  // The hold that was just granted becomes that of this browser.
  begin(hold) {
    this.booking = null;
    this.#take(hold, performance.now());
    this.#keep.set({ hold: hold.id, key: newKey() });
  }

  // Starts the time anew, as far as the event allows.
  async renew() {
    try {
      const { json, sentAt } = await insist(this.#server, 'POST', `${pathOf('holds', this.hold.id)}/renew`, { body: {}, key: newKey() });
      this.#take(json, sentAt);
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'renewal_cap')) throw error;
    }
  }

  get leftMs() { return this.deadline - performance.now(); }
  get isActive() { return this.hold?.status === 'active'; }

  // Gives some places back and keeps the rest.
  remove(places) { return this.#change({ remove: places }); }

  // Gives a seat another ticket type; it costs what it costs now.
  retype(seat, type) { return this.#change({ types: { [seat]: type } }); }

  async #change(what) {
    const { json, sentAt } = await insist(this.#server, 'PATCH', pathOf('holds', this.hold.id), { body: { fence: this.hold.fence, ...what }, key: newKey() });
    this.#take(json, sentAt);
  }

  // Gives everything back.  A hold that has ended by itself is given back, too.
  async release() {
    try {
      await insist(this.#server, 'DELETE', pathOf('holds', this.hold.id));
    } catch (error) {
      if (!(error instanceof Problem && [404, 410].includes(error.status))) throw error;
    }
    this.forget();
  }

  // The purchase is over, or begins anew.
  forget() {
    if (this.hold) this.#keep.clear(this.hold.id);
    this.hold = null;
    this.booking = null;
  }

  // ---- the booking ----

  async readBooking(id = this.booking.id) {
    const { json } = await call(this.#server, 'GET', pathOf('bookings', id));
    this.booking = json;
    this.#keep.add(json.hold, { booking: json.id, secret: json.payment?.client_secret ?? null });
    return json;
  }

  // Books the hold, unless that has happened already, and waits until it can be paid.  Resolves to the booking, which may
  // also be booked (where nothing is to be paid) or over.
  async book() {
    const kept = this.#keep.get();
    if (!this.booking && kept?.hold === this.hold.id && kept.booking) await this.readBooking(kept.booking);
    if (!this.booking || stageOf(this.booking) === 'over') await this.#create();
    return this.#poll((booking) => stageOf(booking) !== 'creating' && (stageOf(booking) !== 'open' || booking.payment.client_secret));
  }

  async #create() {
    const isAgain = this.booking !== null; // another booking of the same hold needs a key of its own
    const kept = this.#keep.get();
    const key = isAgain || kept?.hold !== this.hold.id || !kept.key ? newKey() : kept.key;
    this.#keep.add(this.hold.id, { key });
    try {
      const { json } = await insist(this.#server, 'POST', '/v1/bookings', { body: { hold: this.hold.id }, key });
      this.booking = json;
      this.#keep.add(this.hold.id, { booking: json.id, secret: json.payment?.client_secret ?? null });
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'booking_exists')) throw error;
      await this.readHold(this.hold.id); // another tab was faster
      if (!this.hold.booking) throw error;
      await this.readBooking(this.hold.booking);
    }
    if (stageOf(this.booking) === 'open') await this.readHold(this.hold.id); // a booking renews its hold
  }

  // Waits until the booking is decided, or is the buyer's turn again: after a decline, or if nothing is heard for `patienceMs`.
  // `trouble` is told when the server cannot be reached (true), and when it can be again (false).  Resolves to the booking.
  async settle(patienceMs, trouble) {
    const since = performance.now();
    let seenProcessing = false;
    return this.#poll((booking) => {
      const stage = stageOf(booking);
      const waitedMs = performance.now() - since;
      if (stage === 'processing') seenProcessing = true;
      // An error that is shown just after a payment may still be that of the card before.
      const isDeclined = booking.payment?.last_error && (seenProcessing || waitedMs > DECLINE_LAG_MS);
      return stage === 'booked' || stage === 'over' || (stage === 'open' && (isDeclined || waitedMs > patienceMs));
    }, trouble);
  }

  async #poll(test, trouble = () => {}) {
    for (let pauseMs = POLL_FIRST_MS; !test(this.booking); pauseMs = Math.min(POLL_MOST_MS, pauseMs * 1.5)) {
      await sleep(pauseMs * (0.75 + Math.random() / 2));
      try {
        await this.readBooking();
        trouble(false);
      } catch (error) {
        if (!(error instanceof Unreachable || (error instanceof Problem && error.isPassing))) throw error;
        trouble(true);
      }
    }
    return this.booking;
  }
}
