// Calls to the API of Holdfast.  An answer that is a refusal becomes a Problem, with the code and the sentence of the
// server; an answer that never came becomes an Unreachable, and nobody knows then whether the call took effect.  So
// whatever is repeated carries the Idempotency-Key of the first attempt.

export class Problem extends Error {
  // `body` is the problem document (RFC 9457), or null if a proxy answered with something else.
  constructor(status, body, retryAfterMs) {
    super(body?.detail ?? body?.title ?? `HTTP ${status}`);
    this.name = 'Problem';
    this.status = status;
    this.code = body?.code ?? 'http_error';
    this.body = body ?? {};
    this.retryAfterMs = retryAfterMs;
  }

  // Nothing was done, or nobody knows; the same call may be sent again under its key.
  get isPassing() { return [429, 502, 503, 504].includes(this.status) || this.code === 'idempotency_in_flight'; }
}

export class Unreachable extends Error {
  constructor(cause) {
    super('The server cannot be reached.');
    this.name = 'Unreachable';
    this.cause = cause;
  }
}

const TIMEOUT_MS = 20_000;

// A key that nobody can guess.  (crypto.randomUUID is missing on plain HTTP.)
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

export const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

function retryAfterMs(response, body) {
  const seconds = Number(response.headers.get('Retry-After'));
  return body?.retry_after_ms ?? (seconds > 0 ? seconds * 1000 : 0);
}

// Makes one call and resolves to { status, json, headers, sentAt, receivedAt } (times of performance.now).  `server` is
// the origin of the API, '' for that of the page.  Options: body (sent as JSON), key (Idempotency-Key), accessKey,
// headers, timeoutMs.
export async function call(server, method, path, { body, key, accessKey, headers = {}, timeoutMs = TIMEOUT_MS } = {}) {
  const sentAt = performance.now();
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), timeoutMs);
  let response;
  let text;
  try {
    response = await fetch(server + path, {
      method,
      signal: giveUp.signal,
      credentials: 'omit',
      headers: {
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...(key ? { 'Idempotency-Key': key } : {}),
        ...(accessKey ? { Authorization: `Bearer ${accessKey}` } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    text = await response.text();
  } catch (error) {
    throw new Unreachable(error);
  } finally {
    clearTimeout(timer);
  }
  const isJson = /json\b/.test(response.headers.get('Content-Type') ?? '');
  let json = null;
  try { if (isJson && text) json = JSON.parse(text); } catch { /* a proxy's page that calls itself JSON */ }
  if (!response.ok && response.status !== 304) throw new Problem(response.status, json, retryAfterMs(response, json));
  return { status: response.status, json, headers: response.headers, sentAt, receivedAt: performance.now() };
}

const mayPass = (error) => error instanceof Unreachable || (error instanceof Problem && error.isPassing);

// Makes a call again and again until it is answered for good, with pauses that grow and are drawn at random, so that
// the pages of a whole audience do not come back together.  Gives up after `attempts` with the last error.  A POST or a
// PATCH has to come with a key.
export async function insist(server, method, path, { attempts = 5, firstPauseMs = 300, ...options } = {}) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call(server, method, path, options);
    } catch (error) {
      if (!mayPass(error) || attempt >= attempts) throw error;
      const pauseMs = Math.min(5000, firstPauseMs * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
      await sleep(Math.max(pauseMs, error.retryAfterMs ?? 0));
    }
  }
}
