// The buyer's entry of the waiting list, as the API tells it: nothing here knows what the page looks like.
//
//   join (POST /v1/waitlist) -> waiting -> offered -> accepted
//                                  |          |-----> lapsed, left
//                                  `----------------> ended, left
//
// The stream only says that something has happened: what the entry is by then is read.  It is read now and then besides, since
// an entry that nobody reads ends, and since `ahead` is on no stream.

import { call, insist, newKey, Problem } from '../lib/api.js';
import { Follower } from '../seats/stream.js';

const READ_LEAST_MS = 15_000;
const READ_MOST_MS = 300_000;
const READS_IN_ALIVE = 4; // of the time after which an entry ends that nobody reads

const pathOf = (id) => `/v1/waitlist/${encodeURIComponent(id)}`;
const LIVE = ['waiting', 'offered'];

// The buyer looks elsewhere while waiting: the stream goes on.
class EntryFollower extends Follower {
  isHiddenToo = true;

  read() { return this.on.read(); }

  take({ id }) {
    if (id !== null) this.seq = Number(id);
    this.on.read().catch(() => {}); // the next reading tells it
  }
}

export class Entry {
  now = null; // the entry as it was last read
  aliveMs = Infinity; // the event's
  #keep;
  #server;
  #changed;
  #follower = null;
  #timer = 0;
  #attempt = null; // to join: its body and its key
  #asked = 0; // readings so far
  #believed = 0; // which of them `now` is

  // `changed(now, before)` is called after each reading; both are null where there is no entry.
  constructor(server, keep, changed) {
    this.#server = server;
    this.#keep = keep;
    this.#changed = changed;
  }

  get isLive() { return this.now !== null && LIVE.includes(this.now.status); }

  // Leaves a wish.  After a lost answer the same wish is sent under the same key.
  async join(body) {
    const text = JSON.stringify(body);
    if (this.#attempt?.text !== text) this.#attempt = { text, key: newKey() };
    const { json } = await insist(this.#server, 'POST', '/v1/waitlist', { body, key: this.#attempt.key });
    this.#attempt = null;
    this.#keep.set({ entry: json.id });
    this.now = json;
    this.#follow(json.id);
    return this.read().catch(() => json); // it is read again in a while
  }

  // Takes up the entry that this browser keeps.  Resolves to it, or to null if there is none.
  async resume() {
    const id = this.#keep.get()?.entry;
    if (this.now && this.now.id !== id) {
      const before = this.now;
      this.#drop();
      this.#changed(null, before);
    }
    if (!id) return null;
    this.#follow(id);
    return this.read(id);
  }

  // Reads the entry.  An answer that a later one has overtaken is not believed.  (An entry that was offered something may wait
  // again, after a restore.)
  async read(id = this.now?.id ?? this.#keep.get()?.entry) {
    if (!id) return null;
    const asked = ++this.#asked;
    try {
      const { json } = await call(this.#server, 'GET', pathOf(id));
      if (this.#keep.get()?.entry === id && asked > this.#believed) {
        this.#believed = asked;
        this.#take(json);
      }
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) throw error;
      this.#forget(id);
    }
    return this.now;
  }

  #take(json) {
    const before = this.now;
    this.now = json;
    if (!this.isLive) this.#rest();
    this.#changed(json, before);
  }

  // Waits no longer; what was offered is given back.
  async leave() {
    const { id } = this.now;
    try {
      await insist(this.#server, 'DELETE', pathOf(id));
    } catch (error) {
      if (!(error instanceof Problem && [404, 409].includes(error.status))) throw error;
    }
    this.#forget(id);
  }

  // It is over, and the buyer knows.
  forget() { if (this.now) this.#forget(this.now.id); }

  #forget(id) {
    this.#keep.clear(id);
    const before = this.now;
    this.#drop();
    this.#changed(null, before);
  }

  #drop() {
    this.#rest();
    this.now = null;
  }

  #rest() {
    this.#follower?.stop();
    this.#follower = null;
    clearInterval(this.#timer);
  }

  #follow(id) {
    if (this.#follower) return;
    this.#follower = new EntryFollower(this.#server, pathOf(id), { read: () => this.read(), status() {}, gone: () => this.#forget(id) });
    this.#timer = setInterval(() => this.read().catch(() => {}), Math.max(READ_LEAST_MS, Math.min(READ_MOST_MS, this.aliveMs / READS_IN_ALIVE)));
  }
}
