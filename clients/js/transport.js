// Calls over HTTP: which server is asked, what is repeated, and for how long.
//
//   T1  What is repeated has the headers and the body of the first attempt, so also its Idempotency-Key.
//   T2  A verdict is never repeated.  Repeated are attempts without an answer, 429, 502, 503, 504, and
//       409 idempotency_in_flight, which says that an earlier attempt is still being carried out.
//   T3  If an attempt may have been carried out and no later one was answered for good, the call ends with
//       OutcomeUnknown, whatever the last attempt met.  A key that is refused, a mistake of the server and the word of
//       somebody else say nothing about an earlier attempt.

import { errorOf, HoldfastError, OutcomeUnknown, Unavailable } from './errors.js';
import { backoff, linked, now, sleep } from './waits.js';

const REDIRECTS_MAX = 3;
const ATTEMPT_MAX_MS = 60_000; // without an answer, beyond what the server was asked to wait
const ATTEMPT_MIN_MS = 100;
const PASSING = [429, 502, 503, 504];
// Failures of connections that were never made: nothing was sent.
const UNSENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT', 'ERR_INVALID_URL'];

const codesOf = ({ cause }) => (cause?.errors ?? [cause]).map((each) => each?.code);
const isUnsent = (error) => codesOf(error).every((code) => UNSENT.includes(code));
const reasonOf = (error) => codesOf(error).find(Boolean) ?? error.message;
const foreign = (status) => new HoldfastError('The answer is not one of Holdfast.', { code: 'invalid_answer', status });
const parsed = (url) => { try { return new URL(url); } catch { return null; } };

export class Transport {
  #bases;
  #key; // private, so that nothing prints it
  #fetch;
  #clock;
  #cell = new Set(); // origins of servers that the cell has named
  #first = {}; // the server that answered last: of the lock service, and of the rest

  constructor(urls, { key, timeout = 30, fetch = globalThis.fetch, clock = now } = {}) {
    this.#bases = [].concat(urls).map((url) => {
      const { protocol, origin, href } = parsed(url) ?? {};
      if (!/^https?:$/.test(protocol) || href !== `${origin}/`) throw new TypeError('A server is named by http://HOST[:PORT] or https://HOST[:PORT], without a user or a path.');
      return origin;
    });
    if (this.#bases.length === 0) throw new TypeError('Name at least one server.');
    this.#key = key ?? null;
    if (key && !/^[\x21-\x7e]+$/.test(key)) throw new TypeError('The key has characters that no key has.');
    this.#fetch = fetch;
    this.#clock = clock;
    this.timeout = timeout;
  }

  // Carries out { method, path, query, body, headers, isLock, isStream, slowMs, isUrgent }.  `body` is sent as JSON unless it
  // is a string; `slowMs` is how long the server was asked to wait.  What is urgent is tried again in time, also if an
  // attempt hangs or a server asks for a longer pause.  Options: timeout (seconds), signal.  Resolves to { value, sentAt },
  // where sentAt is the time before the attempt that was answered; the value of a stream is its Response.  A verdict has
  // `isRepeat` if an earlier attempt may have been carried out.
  async request(request, { timeout = this.timeout, signal } = {}) {
    const end = now() + (timeout ?? Infinity) * 1000;
    const init = this.#initOf(request); // for all attempts (T1); what cannot be sent is said at once
    const isWrite = request.method !== 'GET';
    let isOpen = false; // whether an earlier attempt may have been carried out
    let fault;
    const giveUp = () => (isOpen && !(fault instanceof OutcomeUnknown)
      ? new OutcomeUnknown('Nobody knows whether it was done: no attempt was answered for good in time.', { code: 'outcome_unknown', cause: fault }) : fault);
    for (let round = 0; ; round++) {
      let retryMs; // the shortest pause that a server of this round has asked for
      const candidates = this.#candidates(request);
      for (const base of candidates) {
        if (fault && now() >= end) throw giveUp();
        const result = await this.#attempt(base, { ...request, init }, { end, isOnly: candidates.length === 1 && !request.isUrgent }, signal);
        if (!result.fault) return result;
        ({ fault } = result);
        if (result.isFinal && isOpen && !result.isVerdict) throw giveUp();
        if (result.isFinal) throw isOpen ? Object.defineProperty(fault, 'isRepeat', { value: true }) : fault;
        isOpen ||= isWrite && result.mayBeDone;
        if (result.retryMs !== undefined) retryMs = Math.min(retryMs ?? Infinity, result.retryMs);
        if (!result.isElsewhere) break;
      }
      const restMs = end - now();
      const pauseMs = Math.min(retryMs || backoff(round), request.isUrgent ? Math.max(restMs / 4, ATTEMPT_MIN_MS) : Infinity);
      if (pauseMs >= restMs) throw giveUp();
      await sleep(pauseMs, signal);
    }
  }

  // The servers in the order in which they are asked.
  #candidates({ isLock }) {
    const first = this.#first[isLock ? 'locks' : 'rest'];
    const at = this.#bases.indexOf(first);
    if (at < 0) return first ? [first, ...this.#bases] : this.#bases; // a master that a redirection named
    return [...this.#bases.slice(at), ...this.#bases.slice(0, at)];
  }

  // If it is not the only way, half of the time is left for another attempt.
  async #attempt(base, request, { end, isOnly }, signal) {
    signal?.throwIfAborted();
    const { slowMs = 0, isStream, isLock, isText } = request;
    const leftMs = Math.max(end - now() - slowMs, ATTEMPT_MIN_MS);
    const limitMs = slowMs + Math.min(isOnly ? leftMs : Math.max(leftMs / 2, ATTEMPT_MIN_MS), ATTEMPT_MAX_MS);
    const scope = linked(signal);
    let isLate = false;
    const timer = setTimeout(() => { isLate = true; scope.abort(); }, limitMs);
    let isStreaming = false;
    try {
      const { response, sentAt, at } = await this.#send(base, request, scope.signal);
      if (response.ok && isStream) {
        this.#first[isLock ? 'locks' : 'rest'] = at;
        isStreaming = true; // its reader ends it
        return { value: response, sentAt, end: scope };
      }
      const text = await response.text();
      const isJson = /json\b/.test(response.headers.get('Content-Type') ?? '');
      let value = isText && response.ok ? text : null;
      if (isJson && text) {
        try { value = JSON.parse(text); } catch { /* it is not one of Holdfast */ }
      }
      if (response.ok && text && value === null && text !== 'null') return { fault: foreign(response.status), isFinal: true };
      if (response.ok) {
        this.#first[isLock ? 'locks' : 'rest'] = at;
        return { value, sentAt };
      }
      return this.#judge(response, isJson ? value : null, at, isLock);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      const fault = isLate ? new Unavailable('No answer came in time.', { code: 'timeout', cause: error })
        : new Unavailable(`No server can be reached: ${reasonOf(error)}.`, { code: 'unreachable', cause: error });
      return { fault, isElsewhere: true, mayBeDone: isLate || !isUnsent(error) };
    } finally {
      clearTimeout(timer);
      if (!isStreaming) scope.done();
    }
  }

  #initOf({ method, body, headers, isStream }) {
    const isJson = body !== undefined && typeof body !== 'string';
    return {
      method, redirect: 'manual', credentials: 'omit', ...(isStream ? { cache: 'no-store' } : {}),
      headers: {
        ...(this.#key === null ? {} : { Authorization: `Bearer ${this.#key}` }),
        ...(isJson ? { 'Content-Type': 'application/json' } : {}), ...headers,
      },
      ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : body }),
    };
  }

  // Is this a server that the caller named, or one that a server of the cell names?  The access key goes to no other.
  async #isOfCell(origin, base, { headers: { Authorization }, signal }) {
    if (this.#bases.some((each) => new URL(each).origin === origin)) return true;
    if (!this.#cell.has(origin)) {
      const send = this.#fetch;
      const headers = Authorization ? { Authorization } : {};
      const response = await send(`${base}/v1/cell`, { headers, signal, redirect: 'manual', credentials: 'omit' });
      const { servers = [], master } = response.ok ? await response.json() : (await response.text(), {});
      for (const server of [...servers, master]) if (server?.url) this.#cell.add(new URL(server.url).origin);
    }
    return this.#cell.has(origin);
  }

  // Follows redirections, of the lock service to its master, and to servers of the same scheme alone.
  async #send(base, { path, query, isLock, init }, signal) {
    const target = path + queryOf(query);
    const send = this.#fetch; // called without a receiver, which browsers insist on
    for (let at = base, hops = 0; ; hops++) {
      const sentAt = this.#clock();
      const response = await send(at + target, { ...init, signal });
      const to = response.status === 307 && isLock && hops < REDIRECTS_MAX && new URL(response.headers.get('Location') ?? '', at);
      if (!to || to.protocol !== new URL(base).protocol || !(await this.#isOfCell(to.origin, at, init))) return { response, sentAt, at };
      await response.text();
      at = to.origin;
    }
  }

  #judge(response, problem, at, isLock) {
    const { status } = response;
    const fault = errorOf(status, problem, response.headers.get('Retry-After'));
    const isInFlight = fault.code === 'idempotency_in_flight';
    const isPassing = PASSING.includes(status) || isInFlight || (isLock && status === 307);
    if (!isPassing) {
      this.#first[isLock ? 'locks' : 'rest'] = at;
      return { fault, isFinal: true, isVerdict: problem?.code !== undefined && status < 500 && status !== 401 && status !== 403 };
    }
    const { extra: { retry_after_ms }, retry_after } = fault;
    const retryMs = retry_after_ms >= 0 ? retry_after_ms : retry_after === null ? undefined : retry_after * 1000;
    const mayBeDone = fault instanceof OutcomeUnknown || isInFlight || status === 502 || status === 504;
    return { fault, retryMs, mayBeDone, isElsewhere: status !== 429 && !isInFlight };
  }
}

function queryOf(query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given)}` : '';
}
