// What a call can end with.  One class per family of problem codes; `code` says which one it was.

// Ids are secrets: a message names their beginning, which opens nothing.
const masked = (text) => text.replace(/\b(hold|bkg|ses|pay)_([0-9A-Za-z]{11})[0-9A-Za-z]{17}\b/g, '$1_$2*****************');

export class HoldfastError extends Error {
  // `retry_after` is in seconds, or null.  `extra` has the other members of the problem, such as `seats`.
  constructor(detail, { code, status = null, retry_after = null, extra = {}, cause } = {}) {
    super(masked(detail), cause === undefined ? undefined : { cause });
    Object.assign(this, { code, status, retry_after });
    // Not enumerable, so that a logged error does not show the ids in them.
    for (const [name, value] of Object.entries({ detail, extra })) Object.defineProperty(this, name, { value, writable: true, configurable: true });
  }

  get name() { return this.constructor.name; }
}

export class Conflict extends HoldfastError {} // 409 and 422: a verdict
export class StaleFence extends Conflict {} // a larger fence has written: the lock has passed to another holder
export class Gone extends HoldfastError {} // 410
export class LockLost extends Gone {} // the lock is held no more
export class NotFound extends HoldfastError {} // 404
export class Unavailable extends HoldfastError {} // nothing was done; it may be tried again later
export class OutcomeUnknown extends HoldfastError {} // it may have been done, or may not

const CLASSES = { 307: Unavailable, 404: NotFound, 409: Conflict, 410: Gone, 422: Conflict, 429: Unavailable, 502: Unavailable, 503: Unavailable, 504: Unavailable };

// Returns the error for an answer with this status; `problem` is its body, or null if that is no problem document.
export function errorOf(status, problem, retryAfter) {
  const { type, title, status: _, code = status >= 502 ? 'unavailable' : `http_${status}`, detail, ...extra } = problem ?? {};
  const seconds = Number(retryAfter ?? NaN);
  const retry_after = seconds >= 0 ? seconds : extra.retry_after_ms >= 0 ? extra.retry_after_ms / 1000 : null;
  const Class = code === 'outcome_unknown' ? OutcomeUnknown : code === 'lock_lost' ? LockLost : CLASSES[status] ?? HoldfastError;
  return new Class(detail ?? title ?? 'The answer is not one of Holdfast.', { code, status, retry_after, extra });
}
