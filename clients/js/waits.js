// Time and waiting.  Times are milliseconds of a clock that only this process knows.

export const now = () => performance.now();

export const random = (from, to) => from + Math.random() * (to - from);
// The pause before the attempt after `n` others: 50 ms, doubled each time, up to 2 s, give or take a half.
export const backoff = (n) => Math.min(2000, 50 * 2 ** Math.min(n, 10)) * random(0.5, 1.5);

const TIMER_MAX_MS = 2 ** 31 - 1;

// Resolves after `ms`; rejects with the signal's reason as soon as that is aborted.
export function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return void reject(signal.reason);
    const end = () => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener('abort', end); resolve(); }, Math.min(Math.max(ms, 0), TIMER_MAX_MS));
    signal?.addEventListener('abort', end, { once: true });
  });
}

// A signal that is aborted with any of `signals`, or by `abort`.  `done` has to be called in the end.  (AbortSignal.any is
// missing in Node 18.)
export function linked(...signals) {
  const controller = new AbortController();
  const links = signals.filter(Boolean).map((signal) => {
    const pass = () => controller.abort(signal.reason);
    if (signal.aborted) pass();
    else signal.addEventListener('abort', pass, { once: true });
    return () => signal.removeEventListener('abort', pass);
  });
  return { signal: controller.signal, abort: (reason) => controller.abort(reason), done: () => links.forEach((unlink) => unlink()) };
}

// Resolves as the promise does, unless the signal is aborted first.
export async function unlessAborted(promise, signal) {
  if (!signal) return promise;
  signal.throwIfAborted();
  let end;
  const aborted = new Promise((_, reject) => { end = () => reject(signal.reason); });
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}
