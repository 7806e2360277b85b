// The buyer's hold: made, extended, given back, resumed and seen to expire.
//
// A request whose answer is lost is sent again under the same Idempotency-Key, so it takes effect once.  The time left is counted
// from what the server says is left (`expires_in_ms`), since the clock of the buyer's machine may be wrong; that count is advice,
// and at its end the server is asked what became of the hold.

import { call, newKey, Problem, sleep, Unreachable } from '../lib/api.js';

const AFTER_EXPIRY_MS = 250; // the server ends a hold a moment after its time
const ASK_AGAIN_MS = 2000;
const TIMER_MAX_MS = 2 ** 31 - 1;
const INSIST_MS = 15_000;
const PAUSE_FIRST_MS = 250;
const PAUSE_MAX_MS = 4000;

// True if the request may have taken effect, or may succeed in a moment: it is worth sending again under its key.
const isUnsettled = (error) => error instanceof Unreachable
  || (error instanceof Problem && ([502, 503, 504].includes(error.status) || error.code === 'idempotency_in_flight'));

// Makes a call until it is answered for good, for INSIST_MS at most.
async function insist(server, method, path, options) {
  const began = Date.now();
  for (let pause = PAUSE_FIRST_MS; ; pause = Math.min(PAUSE_MAX_MS, pause * 2)) {
    try {
      return await call(server, method, path, options);
    } catch (error) {
      const ms = Math.max(pause * (0.5 + Math.random() / 2), error.retryAfterMs ?? 0);
      if (!isUnsettled(error) || Date.now() + ms - began > INSIST_MS) throw error;
      await sleep(ms);
    }
  }
}

// Why a request was refused: `code` and `seats` as the server has them, and a sentence in the reader's language.
export class Refusal extends Error {
  constructor(message, { code, seats = [], available = null, status = 0, retryAfterMs = 0 } = {}) {
    super(message);
    this.name = 'Refusal';
    Object.assign(this, { code, seats, available, status, retryAfterMs });
  }
}

export class Holder {
  #timer = 0;
  #asking = false;
  #unsettled = null; // { method, path, key, body }: a request of which nobody knows whether it took effect

  // `on`: hold(hold), expire(hold), release(hold), changed(hold or null).
  constructor(server, event, on) {
    this.server = server;
    this.event = event;
    this.on = on;
    this.current = null;
    this.deadline = 0; // in Date.now()
    this.timeOffset = 0; // the server's clock less this machine's, in ms
  }

  get isUnsettled() { return this.#unsettled !== null; }
  get isActive() { return this.current?.status === 'active'; }
  get timeLeftMs() { return this.isActive ? Math.max(0, this.deadline - Date.now()) : 0; }

  close() { clearTimeout(this.#timer); }

  forget() { if (this.current) this.#drop(); }

  // Makes a hold of `places` ({ seats?, best_available?, areas? }), or adds them to the one there is; `types` has the ticket types of
  // seats.  A buyer who asks for the same again after a lost answer gets the hold that the first request made.
  async take(places, { owner, types = {} } = {}) {
    const typed = Object.keys(types).length > 0 ? { types } : {};
    const [method, path, body] = this.isActive
      ? ['PATCH', `/v1/holds/${this.current.id}`, { fence: this.current.fence, add: places, ...typed }]
      : ['POST', '/v1/holds', { event: this.event, ...places, ...typed, ...(owner ? { owner } : {}) }];
    const isRepeated = JSON.stringify(this.#unsettled?.body) === JSON.stringify(body);
    return this.#send({ method, path, key: isRepeated ? this.#unsettled.key : newKey(), body });
  }

  // Sends the request whose answer was lost again, once the server can be reached.  Resolves to the hold.
  settle() { return this.#send(this.#unsettled); }

  async #send(request) {
    const { method, path, key, body } = request;
    this.#unsettled = null;
    let answer;
    try {
      answer = await insist(this.server, method, path, { key, body });
    } catch (error) {
      if (isUnsettled(error)) this.#unsettled = request;
      if (error instanceof Problem && error.status === 410) this.refresh().catch(() => {}); // the hold has ended
      throw error;
    }
    // A repeated answer tells an old time left.
    if (answer.headers.get('Idempotency-Replayed') === 'true') return this.#fetch(answer.json.id);
    this.#keep(answer);
    return this.current;
  }

  // Takes up a hold that was made earlier, such as before a reload.  Resolves to it, or to null if it has ended.
  async resume(id) {
    const hold = await this.#fetch(id);
    if (hold.status === 'active' || hold.status === 'confirmed') return hold;
    this.#drop();
    return null;
  }

  // Reads the present hold again, after something may have changed it.  A hold that has ended is told as such.
  async refresh() {
    if (!this.current || this.#asking) return this.current;
    const before = this.current;
    this.#asking = true;
    try {
      const answer = await this.#get(before.id);
      // Meanwhile the hold may have been given back, or changed by a request whose answer is newer than this one.
      if (this.current?.id !== before.id || answer.json.fence < this.current.fence) return this.current;
      this.#keep(answer);
      this.#judge(before, answer.json);
      return this.current;
    } finally {
      this.#asking = false;
    }
  }

  #judge(before, hold) {
    if (before.status !== 'active' || hold.status === 'active' || hold.status === 'confirmed') return;
    this.#drop();
    if (hold.status === 'expired') this.on.expire(hold);
    else this.on.release(hold);
  }

  async release() {
    const hold = this.current;
    if (!hold) return;
    try {
      await insist(this.server, 'DELETE', `/v1/holds/${hold.id}`);
    } catch (error) {
      if (!(error instanceof Problem) || ![404, 410].includes(error.status)) throw error;
    }
    if (this.current?.id !== hold.id) return;
    this.#drop();
    this.on.release(hold);
  }

  #get(id) { return insist(this.server, 'GET', `/v1/holds/${encodeURIComponent(id)}`); }

  async #fetch(id) {
    this.#keep(await this.#get(id));
    return this.current;
  }

  #keep({ json }) {
    this.current = json;
    this.deadline = Date.now() + (json.expires_in_ms ?? 0);
    if (json.status === 'active') this.timeOffset = Date.parse(json.expires_at) - json.expires_in_ms - Date.now();
    this.#watch();
    this.on.changed(json);
  }

  #drop() {
    clearTimeout(this.#timer);
    this.current = null;
    this.on.changed(null);
  }

  #watch() {
    clearTimeout(this.#timer);
    if (!this.isActive) return;
    this.#timer = setTimeout(() => this.#askWhetherExpired(), Math.min(TIMER_MAX_MS, this.timeLeftMs + AFTER_EXPIRY_MS));
  }

  async #askWhetherExpired() {
    if (!this.isActive) return;
    if (this.timeLeftMs > 0) return this.#watch();
    try {
      await this.refresh();
      if (this.isActive && this.timeLeftMs > 0) return;
    } catch (error) {
      if (error instanceof Problem && error.status === 404) {
        const hold = this.current;
        this.#drop();
        this.on.expire(hold);
        return;
      }
    }
    clearTimeout(this.#timer);
    if (this.isActive) this.#timer = setTimeout(() => this.#askWhetherExpired(), ASK_AGAIN_MS);
  }
}

// Turns what a request threw into a Refusal with a sentence.  `name(id)` describes a seat.
export function refusalOf(error, t, { name, list, seconds }) {
  if (error instanceof Refusal) return error;
  if (error instanceof Unreachable) return new Refusal(t('unreachable'), { code: 'unreachable' });
  if (!(error instanceof Problem)) return new Refusal(error.message, { code: 'error' });
  const { code, status, body, retryAfterMs } = error;
  const seats = body.seats ?? [];
  const detail = { code, status, seats, available: body.available ?? null, retryAfterMs };
  const sentence = () => {
    if (code === 'seat_taken' && seats.length > 0) return t('takenSeats', { n: seats.length, seats: list(seats.map(name)) });
    if (code === 'lone_seat' && seats.length > 0) return t('loneSeat', { n: seats.length, seats: list(seats.map(name)) });
    if (code === 'sold_out') return t('soldOut');
    if (code === 'event_closed') return t(Date.parse(body.sales_open_at) > Date.now() ? 'notOpenYet' : 'closed');
    if (code === 'owner_limit') return t('ownerLimit');
    if (code === 'too_many_holds') return t('tooManyHolds');
    if (code === 'booking_exists') return t('bookingExists');
    if (code === 'renewal_cap') return t('renewalCap');
    if (code === 'hold_expired') return t('holdExpired');
    if (code === 'hold_released') return t('holdReleased');
    if (status === 429) return t('tooFast', { wait: seconds(retryAfterMs || 1000) });
    if (status === 404) return t('noSuch');
    if (status >= 500) return t('busy');
    return t('refused', { why: error.message });
  };
  return new Refusal(sentence(), detail);
}
