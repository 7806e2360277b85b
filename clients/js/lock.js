// Locks: what a program holds.  A lock is of one name or of several, which are taken in sorted order and released together.

import { clock } from './clock.js';
import { LockLost } from './errors.js';
import { requestOf } from './operations.js';
import { newKey } from './random.js';
import { lost } from './session.js';
import { linked } from './waits.js';

const TTL_S = 30;
const POLL_MS = 20_000; // how long one request waits in the line
const CLAIM_MS = 1000; // how long a turn is kept for a process that stands still
const ATTEMPTS_MAX = 3; // with a new session each, once the time to wait is over

export class Lock {
  #session;
  #want; // fields of every request
  #user;
  #grants = []; // { name, owner, fence, slot }
  #loss = new AbortController();
  #releasing = null;

  constructor(session, want) {
    this.#session = session;
    this.#want = { session: session.id, ...want };
    this.#user = {
      lose: (error) => this.#lose(error),
      hear: (message) => this.#hear(message),
      look: () => { for (const grant of this.#grants) this.#look(grant); },
    };
    session.add(this.#user);
  }

  get names() { return this.#grants.map(({ name }) => name); }
  get name() { return this.#one?.name ?? null; }
  // Goes with every write that the lock protects.  Fences of different names cannot be compared: a set has one for each.
  get fence() { return this.#one?.fence ?? null; }
  get fences() { return Object.fromEntries(this.#grants.map(({ name, fence }) => [name, fence])); }
  get slot() { return this.#one?.slot ?? null; }
  // For checkFence: each slot is a resource of its own.
  get resource() { return this.#want.slots > 1 && this.#one ? `${this.name}#${this.slot}` : this.name; }
  get #one() { return this.#grants.length === 1 ? this.#grants[0] : undefined; }

  // Compares clocks itself: true only until the deadline, also in a process that stood still.
  get held() { return !this.#releasing && this.#session.isAlive && !this.#loss.signal.aborted; }
  get lost() { return this.signal.aborted; }
  // Aborted with a LockLost when the lock is lost, before somebody else can hold it.
  get signal() {
    if (!this.#releasing) void this.#session.isAlive; // tells it if the time is over
    return this.#loss.signal;
  }

  // Throws a LockLost unless the lock is held.
  check() {
    if (!this.held) throw this.#loss.signal.reason ?? lost('The lock was released.');
  }

  // Sets what everybody can read of the lock while it is held.
  async setValue(value) {
    if (!this.#one) throw new TypeError('A set of locks has no value.');
    this.check();
    const { name, owner, fence } = this.#one;
    await this.#ask('setLockValue', name, { session: this.#session.id, owner, fence, value });
    this.#want.value = value;
  }

  // Resolves once others can have the lock.  Rejects with a LockLost if it was lost before.
  release() {
    this.#releasing ??= this.#release(this.held);
    return this.#releasing;
  }

  [Symbol.asyncDispose ?? Symbol.for('asyncDispose')]() { return this.release(); }

  async #release(wasHeld) {
    const results = await this.#letGo();
    if (!wasHeld || results.includes('lost')) throw this.#loss.signal.reason ?? lost('The lock was lost before it was released.');
  }

  async #letGo() {
    try {
      return await Promise.all([...this.#grants].reverse().map(({ name, owner, fence }) => this.#session.giveBack(name, owner, fence)));
    } finally {
      this.#session.remove(this.#user);
    }
  }

  #lose(error) {
    if (!this.#releasing) this.#loss.abort(error);
  }

  #hear({ type, name, fence }) {
    if (type === 'reset') this.#user.look();
    if (type === 'lost' && this.#grants.some((grant) => grant.name === name && grant.fence === fence)) this.#lose(lost('The lock was taken away.'));
  }

  // Asks whether a grant is still there, where news of it may have been missed.
  async #look({ name, owner, fence }) {
    const answer = await this.#ask('acquireLock', name, { ...this.#want, owner }).catch(() => undefined);
    if (answer && answer.fence !== fence) this.#lose(lost('The lock was taken away.'));
  }

  async #ask(operation, name, fields, options) {
    try {
      return await this.#session.ask(requestOf(operation, [name, fields]), options);
    } catch (error) {
      if (error instanceof LockLost) this.#lose(error);
      throw error;
    }
  }

  // For `acquire`: takes all names, or gives back what it has and throws.
  async take(names, options) {
    const scope = linked(options.signal, this.#loss.signal);
    try {
      for (const name of names) this.#grants.push(await this.#takeOne(name, { ...options, signal: scope.signal }));
      this.check();
    } catch (error) {
      const reason = this.#loss.signal.reason ?? error;
      this.#releasing = Promise.resolve();
      const gone = this.#letGo().catch(() => {});
      if (!options.signal?.aborted) await gone;
      throw reason;
    } finally {
      scope.done();
    }
  }

  // Waits in the line until `end`, by requests that have the same owner, and so the same place.
  async #takeOne(name, { end, mayWait, timeout, signal }) {
    for (;;) {
      const owner = newKey();
      let mayHavePlace = false;
      try {
        for (;;) {
          const wait_ms = mayWait ? Math.ceil(Math.min(Math.max(end - clock(), 0), POLL_MS)) : 0;
          const fields = { ...this.#want, owner, ...(wait_ms > 0 ? { wait_ms, claim: true, claim_ms: CLAIM_MS } : {}) };
          const request = { ...requestOf('acquireLock', [name, fields]), slowMs: wait_ms };
          mayHavePlace ||= wait_ms > 0;
          try {
            const { fence, slot, claimed } = await this.#session.ask(request, { signal, timeout: timeout + wait_ms / 1000 });
            if (claimed === false) continue; // its turn: it has the lock once it has asked again
            return { name, owner, fence, slot };
          } catch (error) {
            if (error.code !== 'lock_taken' || clock() >= end) throw error;
          }
        }
      } catch (error) {
        const isPlaceLost = error instanceof LockLost && error.code === 'lock_lost' && this.#session.isAlive && !signal.aborted;
        if (isPlaceLost) continue; // it stood still for too long
        if (mayHavePlace || error.code !== 'lock_taken') {
          const gone = this.#session.giveBack(name, owner);
          if (error.code === 'lock_taken') await gone;
        }
        throw error;
      }
    }
  }
}

const isSeconds = (value, min) => Number.isFinite(value) && value >= min;

// Resolves to a lock of all names.  `defaults`: the client's timeout.
export async function acquire(sessions, names, options, defaults) {
  const { ttl = TTL_S, wait = null, shared = false, slots, priority, value, delay, agent = newKey(), label, signal, timeout = defaults.timeout, ...unknown } = options;
  const sorted = [...new Set([].concat(names))].sort((a, b) => Buffer.compare(Buffer.from(`${a}`), Buffer.from(`${b}`))); // as every client sorts
  if (sorted.length === 0) throw new TypeError('Name a lock.');
  for (const name of Object.keys(unknown)) throw new TypeError(`A lock has no option ${name}.`);
  for (const name of sorted) requestOf('acquireLock', [name]); // throws for what cannot be a name
  if (!isSeconds(ttl, 1)) throw new TypeError('ttl is a number of seconds, at least 1.');
  if (wait !== null && !isSeconds(wait, 0)) throw new TypeError('wait is a number of seconds, or null.');
  signal?.throwIfAborted();
  const want = { agent, mode: shared ? 'shared' : 'exclusive', ...given({ slots, priority, value, label, delay_ms: delay && Math.round(delay * 1000) }) };
  const end = wait === null ? Infinity : clock() + wait * 1000;
  for (let attempts = 1; ; attempts++) {
    const lock = new Lock(await sessions.get(Math.round(ttl * 1000), signal), want);
    try {
      await lock.take(sorted, { end, mayWait: wait !== 0, timeout, signal });
      return lock;
    } catch (error) {
      const mayBeginAgain = error instanceof LockLost && !signal?.aborted && (attempts < ATTEMPTS_MAX || clock() < end);
      if (!mayBeginAgain) throw error; // otherwise the session ended meanwhile
    }
  }
}

const given = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
