// Server-sent events that survive lost connections: each message once and in order.
//
//   A message without an `id:` belongs to the next one that has one: both are delivered, or neither, since a connection that
//   is lost between them is continued before both.  A server that no longer knows where a reader was says `reset`: the state
//   is read anew, and the stream goes on from there.

import { HoldfastError, Unavailable } from './errors.js';
import { backoff, sleep } from './waits.js';

const SILENCE_MS = 45_000; // a server sends a comment every 15 s; a stream that is silent for longer has lost its connection

// Yields the fields of each block of a stream's text; those of a comment are none that matter.
async function* blocksOf(response, abort) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const timer = setTimeout(() => abort(new Error('The stream is silent.')), SILENCE_MS);
    let part;
    try {
      part = await reader.read();
    } finally {
      clearTimeout(timer);
    }
    if (part.done) return;
    rest += decoder.decode(part.value, { stream: true });
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = {};
      for (const line of block.split(/\r?\n/)) {
        const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
        fields[name] = name === 'data' && fields.data !== undefined ? `${fields.data}\n${value}` : value;
      }
      yield fields;
    }
  }
}

export class ChangeStream {
  #connect; // (headers and query of the position, timeout, signal) => { value: Response, end }
  #readAnew; // (seq) => { message, at }: the message for a reset, and where the stream goes on after it (undefined: here)
  #options;
  #at; // the id up to which everything was delivered
  #link = null; // the connection: { response, abort, done }
  #closing = new AbortController();
  #wasOpen = false;
  #onClose;

  constructor(connect, readAnew, { after, signal, timeout, onClose } = {}) {
    this.#connect = connect;
    this.#readAnew = readAnew;
    this.#options = { timeout };
    this.#onClose = onClose;
    this.#at = after;
    if (signal?.aborted) this.#closing.abort(signal.reason);
    signal?.addEventListener('abort', () => this.#closing.abort(signal.reason), { signal: this.#closing.signal });
  }

  // Connects, if that was not done; what happens after that is delivered.  The iteration does it, too.
  async open() {
    if (this.#link) return;
    const { value, end } = await this.#connect(this.#at, { ...this.#options, ...(this.#wasOpen ? { timeout: Infinity } : {}), signal: this.#closing.signal });
    this.#wasOpen = true;
    this.#link = { response: value, end };
  }

  close() {
    this.#closing.abort(CLOSED);
    this.#drop();
    this.#onClose?.();
  }

  #drop() {
    this.#link?.end.abort();
    this.#link?.end.done();
    this.#link = null;
  }

  async* [Symbol.asyncIterator]() {
    try {
      yield* this.#changes();
    } catch (error) {
      if (error !== CLOSED) throw error;
    } finally {
      this.close();
    }
  }

  async* #changes() {
    for (let failures = 0; ; failures++) {
      const mayHaveMissed = this.#wasOpen && !this.#link && this.#at === undefined;
      await this.open();
      if (this.#link?.response.status === 204) return; // there will be nothing more to tell
      let retryMs; // set by the last words of a server that ends its streams; what comes first has an id, too
      let pending = [];
      try {
        if (mayHaveMissed) yield* this.#reset(0);
        for await (const { id, retry, event, data } of this.#link ? blocksOf(this.#link.response, this.#link.end.abort) : []) {
          retryMs = retry !== undefined && id === undefined ? Number(retry) : undefined;
          if (data !== undefined) {
            const content = JSON.parse(data);
            if (event === 'reset') {
              pending = [];
              const isContinued = yield* this.#reset(content.seq);
              if (isContinued) continue;
              retryMs = backoff(failures);
              break;
            }
            failures = 0;
            pending.push({ type: event, ...content });
          }
          if (id === undefined) continue;
          const isNew = this.#at === undefined || Number(id) > this.#at;
          if (isNew) this.#at = Number(id);
          const ready = pending;
          pending = [];
          if (isNew) yield* ready;
        }
        this.#drop();
        await sleep(retryMs ?? backoff(failures), this.#closing.signal);
      } catch (error) {
        this.#drop();
        if (this.#closing.signal.aborted) throw this.#closing.signal.reason;
        if (error instanceof HoldfastError && !(error instanceof Unavailable)) throw error; // the state cannot be read anew
        await sleep(backoff(failures), this.#closing.signal);
      }
    }
  }

  // Returns whether the connection goes on.
  async* #reset(seq) {
    const { message, at } = await this.#readAnew(seq, this.#closing.signal);
    if (at === undefined) {
      if (seq) this.#at = seq;
      yield { type: 'reset', index: seq, ...message };
      return true;
    }
    this.#at = at;
    this.#drop();
    yield { type: 'reset', seq: at, ...message };
    return false;
  }
}

const CLOSED = new Error('The stream was closed.');
