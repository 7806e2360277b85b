// Keeps a map, or what else has a stream, up to date, whatever happens to servers, proxies and networks.
//
// A browser's EventSource gives up for good after an answer such as a proxy's 502, and it does not notice a connection that has
// gone silent.  So the stream is read with fetch: this file finds the messages in the bytes, remembers the seq of the last one,
// and asks again from there (`?after=`).  Pauses between attempts grow and are drawn at random, so that the pages of a whole
// audience do not come back together; a network that returns, or a page that is looked at again, ends a pause at once.
//
//   reading --snapshot--> following --message--> following
//      ^                      |  `--reset--> reading
//      `---------pause <------'  (the stream ended or fell silent: follows again from the last seq)

import { call, Problem, sleep } from '../lib/api.js';

const OPEN_MS = 250; // a stream that stays open for this long is a stream; proxies answer with one that ends at once
const SILENCE_MS = 40_000; // the server writes a comment every 15 s
const PAUSE_FIRST_MS = 500;
const PAUSE_MAX_MS = 10_000;
const OFFLINE_AFTER_MS = 20_000; // of attempts in vain
const PLAN_TIMEOUT_MS = 60_000;
const HIDDEN_MS = 60_000; // a page that nobody looks at gives its connection back after this

const asked = new Map(); // address -> the answer to a request that was made ahead

// Asks for what a map shows first before there is a map: on a slow network its modules take longer than the answers do.
export function askAhead(server, event) {
  for (const what of ['plan', 'seats']) {
    const path = `/v1/events/${encodeURIComponent(event)}/${what}`;
    const answer = call(server, 'GET', path, { timeoutMs: PLAN_TIMEOUT_MS });
    answer.catch(() => {}); // the map tells of it, and asks again
    asked.set(server + path, answer);
  }
}

function ask(server, path, options) {
  const answer = asked.get(server + path);
  asked.delete(server + path);
  return answer ?? call(server, 'GET', path, options);
}

// Finds the messages of a stream (text/event-stream) in pieces of text.  A message is { event, id, data }.
export class Messages {
  #rest = '';
  #lines = [];
  retryMs = 0; // after which pause the server wants to be asked again

  // Returns the messages that this piece completes.
  push(piece) {
    const found = [];
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop();
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line !== '') this.#lines.push(line);
      else if (this.#lines.length > 0) {
        const message = this.#message();
        if (message) found.push(message);
      }
    }
    return found;
  }

  #message() {
    const message = { event: 'message', id: null, data: '' };
    let hasData = false;
    for (const line of this.#lines) {
      const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (name === 'data') {
        message.data += (hasData ? '\n' : '') + value;
        hasData = true;
      } else if (name === 'event' || name === 'id') message[name] = value;
      else if (name === 'retry' && /^\d{1,6}$/.test(value)) this.retryMs = Number(value);
    }
    this.#lines = [];
    return hasData || message.event === 'reset' ? message : null;
  }
}

// Follows the stream of one thing for as long as it takes.  A class that extends this one says what to do with it: read(), which
// reads the thing and may set `seq`, and take(message), which notes the seq of messages.  `on`: status(kind, detail), gone(problem).
// A thing that does not exist ends everything, and so does a stream that has no more to say (204).
export class Follower {
  seq = null; // of the last message; null: none yet
  isHiddenToo = false; // also while nobody looks at the page
  #abort = null;
  #isRead = false;
  #isStopped = false;
  #wake = null; // ends the present pause
  #failingSince = null;
  #attempt = 0;
  #kind = null;
  #hiddenTimer = 0;
  #retryMs = 0;
  #listeners = new AbortController();

  // `path` is that of the thing; its stream is below it.
  constructor(server, path, on) {
    this.server = server;
    this.path = path;
    this.on = on;
    const { signal } = this.#listeners;
    addEventListener('online', () => this.#hurry(), { signal });
    addEventListener('offline', () => this.#tell('offline'), { signal });
    document.addEventListener('visibilitychange', () => this.#look(), { signal });
    queueMicrotask(() => this.#run()); // the class that extends this one is made first
  }

  get isStopped() { return this.#isStopped; }

  stop() {
    this.#isStopped = true;
    clearTimeout(this.#hiddenTimer);
    this.#listeners.abort();
    this.#abort?.abort();
    this.#wake?.();
  }

  #hurry() {
    this.#attempt = 0;
    this.#wake?.();
  }

  get #isUnseen() { return !this.isHiddenToo && document.visibilityState === 'hidden'; }

  // A hidden page ends its stream after a while: a browser allows a server few connections.
  #look() {
    clearTimeout(this.#hiddenTimer);
    if (this.#isUnseen) this.#hiddenTimer = setTimeout(() => this.#abort?.abort(), HIDDEN_MS);
    else this.#hurry();
  }

  #tell(kind, detail = {}) {
    if (kind === this.#kind && kind !== 'live') return;
    this.#kind = kind;
    this.on.status(kind, detail);
  }

  async #run() {
    while (!this.#isStopped) {
      try {
        if (!this.#isRead) await this.read();
        this.#isRead = true;
        if (!this.#isStopped) await this.#follow();
      } catch (error) {
        if (this.#isStopped) return;
        if (error instanceof Problem && error.status === 404) {
          this.on.gone(error);
          return;
        }
        if (error instanceof Reset) this.#isRead = false;
        else await this.#pause(Math.max(error.retryAfterMs ?? 0, this.#retryMs));
        this.#retryMs = 0;
      }
    }
  }

  // Reads the stream until it ends, which it does by an error unless it has no more to say.
  async #follow() {
    const abort = new AbortController();
    this.#abort = abort;
    const messages = new Messages();
    let timer = setTimeout(() => abort.abort(), SILENCE_MS);
    let openTimer = 0;
    try {
      const response = await fetch(`${this.server}${this.path}/stream${this.seq === null ? '' : `?after=${this.seq}`}`,
        { signal: abort.signal, cache: 'no-store', credentials: 'omit', headers: { Accept: 'text/event-stream' } });
      if (response.status === 204) return this.stop();
      if (!response.ok) throw new Problem(response.status, null, 1000 * (Number(response.headers.get('Retry-After')) || 0));
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      openTimer = setTimeout(() => this.#isLive(), OPEN_MS);
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.#isStopped) throw new Error('the stream has ended');
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(), SILENCE_MS);
        for (const message of messages.push(value)) {
          if (message.event === 'reset') {
            this.seq = JSON.parse(message.data).seq; // what is read next is of that, or newer
            throw new Reset();
          }
          this.take(message);
          this.#isLive();
        }
      }
    } finally {
      this.#retryMs = messages.retryMs;
      clearTimeout(openTimer);
      clearTimeout(timer);
      abort.abort();
    }
  }

  #isLive() {
    this.#attempt = 0;
    this.#failingSince = null;
    if (this.#kind !== 'live') this.#tell('live');
  }

  // Waits, unless the browser has news of the network.  Nothing is asked for a page that nobody looks at.
  async #pause(leastMs) {
    const now = Date.now();
    this.#failingSince ??= now;
    const isUnseen = this.#isUnseen;
    if (!isUnseen) this.#tell(navigator.onLine === false || now - this.#failingSince > OFFLINE_AFTER_MS ? 'offline' : 'reconnecting');
    const most = Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** this.#attempt++);
    const ms = Math.max(leastMs, most * Math.random());
    await new Promise((resolve) => {
      this.#wake = resolve;
      if (!isUnseen) setTimeout(resolve, ms);
    });
    this.#wake = null;
  }
}

class Reset extends Error {}

// Follows the seats of an event.  `on` besides: snapshot(json, isStale), seats(message), event(message).
export class SeatsFollower extends Follower {
  constructor(server, event, on) { super(server, `/v1/events/${encodeURIComponent(event)}`, on); }

  // Reads the snapshot.
  async read() {
    const { json, headers } = await ask(this.server, `${this.path}/seats`);
    if (this.isStopped) return;
    await this.on.snapshot(json, headers.has('Holdfast-Stale'));
    this.seq = json.seq;
  }

  take({ event, id, data }) {
    if (event !== 'seats' && event !== 'event') return;
    const message = JSON.parse(data);
    if (message.seq < this.seq) throw new Reset(); // another history, such as that of a backup
    this.on[event](message);
    if (id !== null) this.seq = message.seq; // a message without an id does not complete its seq
  }
}

// Reads the plan of an event, as often as it takes.  Rejects if there is no such event.
export async function loadPlan(server, event, signal, tell) {
  for (let attempt = 0; ; attempt++) {
    try {
      return (await ask(server, `/v1/events/${encodeURIComponent(event)}/plan`, { timeoutMs: PLAN_TIMEOUT_MS })).json;
    } catch (error) {
      if (signal.aborted || (error instanceof Problem && error.status === 404)) throw error;
      tell('reconnecting');
      await sleep(Math.max(error.retryAfterMs ?? 0, Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** attempt) * Math.random()));
    }
  }
}
