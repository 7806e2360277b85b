// The package on Node: client.js, with locks, fences and webhooks.

import { webcrypto } from 'node:crypto';
import os from 'node:os';
import { Client as AnyClient } from './client.js';
import { clock } from './clock.js';
import { LockLost } from './errors.js';
import { acquire } from './lock.js';
import { drawFrom } from './random.js';
import { Sessions } from './session.js';

export { Conflict, Gone, HoldfastError, LockLost, NotFound, OutcomeUnknown, StaleFence, Unavailable } from './errors.js';
export { checkFence } from './fence.js';
export { OPERATIONS } from './operations.js';
export { SeatMap } from './seat_map.js';
export * as webhooks from './webhooks.js';

drawFrom(webcrypto); // Node 18 has no global one

// What others see of the holder, unless a label is given.
function defaultLabel() {
  let user = 'nobody';
  try { user = os.userInfo().username; } catch { /* in containers, users need not have a name */ }
  return `${user}@${os.hostname()} ${process.pid}`.slice(0, 128);
}

export class Client extends AnyClient {
  #sessions;
  #timeout;

  // Options: key, timeout (seconds), fetch, label (of its locks).
  constructor(urls, { label = defaultLabel(), ...options } = {}) {
    super(urls, { ...options, clock });
    const transport = AnyClient.transportOf(this);
    this.#timeout = transport.timeout;
    this.#sessions = new Sessions(this, transport, label);
  }

  // Takes a lock, or all of several.  With `work`, calls it while the lock is held, and resolves to what it returns; rejects
  // with a LockLost if the lock was lost before it was done.  Without, resolves to the lock.
  async lock(names, options = {}, work = undefined) {
    if (typeof options === 'function') return this.lock(names, {}, options);
    const lock = await acquire(this.#sessions, names, options, { timeout: this.#timeout });
    if (!work) return lock;
    let result;
    try {
      result = await work(lock);
    } catch (error) {
      await lock.release().catch(() => {});
      throw error;
    }
    await lock.release().catch((error) => { if (error instanceof LockLost) throw error; });
    return result;
  }

  // Closes its streams and maps, and ends the sessions: what they hold is released.
  async close() {
    await super.close();
    await this.#sessions.close();
  }
}
