// Sessions with the lock service: one for each TTL in use, kept alive in the background.  The rules are those of libholdfast
// (src/lease/holdfast/client.h):
//
//   C1  A session lives at least until `sent + TTL`, where `sent` was read before the last answered open or keep-alive went
//       out.  One that was not proved to live by then is given up, even if it may live on.
//   C2  Its locks are held until a margin before that.
//   C5  What nobody wants any more is released until the service has said so.

import { HoldfastError, LockLost, NotFound, OutcomeUnknown, Unavailable } from './errors.js';
import { clock } from './clock.js';
import { requestOf } from './operations.js';
import { backoff, sleep, unlessAborted } from './waits.js';

const SHORT_MS = 1000; // a lock that is held for longer is followed by the session's stream

// By how much a deadline lies before the end of its session.
const marginOf = (ttlMs) => Math.max(50, ttlMs / 100);
const isPassing = (error) => error instanceof Unavailable || error instanceof OutcomeUnknown;

export class Sessions {
  #client;
  #transport;
  #label;
  #isClosed = false;
  #byTtl = new Map(); // TTL in ms -> promise of a session

  constructor(client, transport, label) {
    this.#client = client;
    this.#transport = transport;
    this.#label = label;
  }

  // Resolves to a session that lives.
  async get(ttlMs, signal) {
    for (;;) {
      if (this.#isClosed) throw new HoldfastError('The client was closed.', { code: 'client_closed' });
      if (!this.#byTtl.has(ttlMs)) this.#open(ttlMs);
      const session = await unlessAborted(this.#byTtl.get(ttlMs), signal);
      if (session.isAlive) return session;
    }
  }

  #open(ttlMs) {
    const forget = () => { if (this.#byTtl.get(ttlMs) === opening) this.#byTtl.delete(ttlMs); };
    const opening = this.#transport.request(requestOf('openSession', [{ ttl_ms: ttlMs, label: this.#label }]))
      .then(({ value, sentAt }) => new Session(this.#client, this.#transport, value, sentAt, forget));
    this.#byTtl.set(ttlMs, opening);
    opening.catch(forget);
  }

  async close() {
    this.#isClosed = true;
    const all = [...this.#byTtl.values()];
    await Promise.all(all.map((opening) => opening.then((session) => session.end(), () => {})));
  }
}

class Session {
  #client;
  #transport;
  #id;
  #ttlMs;
  #sentAt; // C1
  #forget;
  #users = new Set(); // locks that are held or awaited
  #isLost = false;
  #wasIdle = false;
  #timers = {};
  #stream = null;

  constructor(client, transport, { id, ttl_ms: ttlMs }, sentAt, forget) {
    this.#client = client;
    this.#transport = transport;
    this.#id = id;
    this.#ttlMs = ttlMs;
    this.#forget = forget;
    this.#prove(sentAt);
    this.#later();
  }

  get id() { return this.#id; }
  // Until when its locks are held (C2).
  get deadline() { return this.#sentAt + this.#ttlMs - marginOf(this.#ttlMs); }
  // Looks at the clock itself, since a timer is late where the process stood still.
  get isAlive() {
    if (!this.#isLost && clock() >= this.deadline) this.#lose('The session could not be kept alive in time.');
    return !this.#isLost;
  }

  // A user is told by `lose(error)` that the session is gone, by `hear(message)` what its stream tells, and by `look()` that
  // the stream may have missed something.
  add(user) {
    this.#users.add(user);
    this.#wasIdle = false;
    if (!this.#stream) this.#timers.listen ??= setTimeout(() => this.#listen(), SHORT_MS);
    this.#refer();
  }

  remove(user) {
    this.#users.delete(user);
    this.#refer();
  }

  // A session without locks does not keep the process from ending.
  #refer() {
    if (this.#users.size === 0) this.#hangUp();
    for (const timer of Object.values(this.#timers)) timer[this.#users.size > 0 ? 'ref' : 'unref']();
  }

  #prove(sentAt) {
    this.#sentAt = Math.max(this.#sentAt ?? 0, sentAt);
    clearTimeout(this.#timers.deadline);
    this.#timers.deadline = setTimeout(() => { if (this.isAlive) this.#prove(this.#sentAt); }, this.deadline - clock());
    this.#refer();
  }

  #later() {
    this.#timers.tick = setTimeout(() => this.#tick(), this.#ttlMs / 3);
    this.#refer();
  }

  async #tick() {
    const isIdle = this.#users.size === 0;
    if (!this.isAlive) return;
    if (isIdle && this.#wasIdle) return void this.end().catch(() => {});
    this.#wasIdle = isIdle;
    if (!isIdle) this.#listen();
    try {
      const timeout = (this.deadline - clock()) / 1000;
      const { sentAt } = await this.#transport.request({ ...requestOf('keepSessionAlive', [this.#id]), isUrgent: true }, { timeout });
      if (this.isAlive) this.#prove(sentAt);
    } catch (error) {
      if (!isPassing(error)) this.#noteGone(error);
    }
    if (!this.#isLost) this.#later();
  }

  // The service has said that it does not know the session.
  #noteGone(error) {
    if (error.code === 'session_expired' || error instanceof NotFound) this.#lose('The session has ended.', error);
    return this.#isLost;
  }

  // Resolves to the answer to a request in the name of the session.
  async ask(request, options) {
    try {
      return (await this.#transport.request(request, options)).value;
    } catch (error) {
      throw this.#noteGone(error) ? lost(error.message, error) : error;
    }
  }

  // Gives back a lock or a place until the service has said that it is gone (C5).  Resolves to 'lost' if it was gone before.
  async giveBack(name, owner, fence) {
    const request = requestOf('releaseLock', [name, { session: this.#id, owner, ...(fence ? { fence } : {}) }]);
    for (let repeats = 0; !this.#isLost; repeats++) {
      try {
        await this.ask(request, { timeout: Math.max(this.deadline - clock(), 100) / 1000 });
        return 'released';
      } catch (error) {
        if (!isPassing(error)) return repeats > 0 || error.isRepeat ? 'released' : 'lost';
        await sleep(backoff(repeats));
      }
    }
    return 'ended';
  }

  #lose(reason, cause) {
    if (this.#isLost) return;
    this.#close();
    for (const user of [...this.#users]) user.lose(lost(reason, cause));
    this.#users.clear();
    if (cause === undefined) this.#end().catch(() => {}); // others need not wait for the end of the TTL
  }

  // Ends the session, and releases what it has.
  async end() {
    if (this.#isLost) return;
    this.#close();
    for (const user of [...this.#users]) user.lose(lost('The client was closed.'));
    this.#users.clear();
    await this.#end();
  }

  #end() { return this.#transport.request(requestOf('closeSession', [this.#id]), { timeout: Math.min(this.#transport.timeout, this.#ttlMs / 1000) }); }

  #close() {
    this.#isLost = true;
    this.#forget();
    this.#hangUp();
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
  }

  // The stream tells of locks that an operator breaks.  Short locks do without.
  async #listen() {
    if (this.#stream || this.#isLost) return;
    const stream = this.#client.sessions.stream(this.#id);
    this.#stream = stream;
    try {
      await stream.open();
      for (const user of this.#users) user.look(); // what happened before
      for await (const message of stream) for (const user of [...this.#users]) user.hear(message);
    } catch (error) {
      this.#noteGone(error);
    } finally {
      if (this.#stream === stream) this.#stream = null;
    }
  }

  #hangUp() {
    clearTimeout(this.#timers.listen);
    delete this.#timers.listen;
    this.#stream?.close();
    this.#stream = null;
  }
}

export const lost = (detail, cause) => new LockLost(detail, { code: 'lock_lost', status: cause?.status ?? null, cause });
