// A client of the server, for Node and browsers.  index.js adds what needs Node: locks.

import { groupsOf, OPERATIONS, requestOf } from './operations.js';
import { SeatMap } from './seat_map.js';
import { ChangeStream } from './stream.js';
import { Transport } from './transport.js';
import { sleep } from './waits.js';

const RESET = { streamChanges: 'map', streamLock: 'lock', streamWaitlistEntry: 'entry' }; // what a reader of the stream reads anew

export class Client {
  #transport;
  #streams = new Set();

  // `urls`: one server, or several of which any may be asked.  Options: key, timeout (seconds), fetch.
  constructor(urls, options = {}) {
    this.#transport = new Transport(urls, options);
    Object.assign(this, groupsOf((...call) => this.#perform(...call)));
    this.events.seatMap = (id, given) => SeatMap.open(this.events, id, given);
  }

  // Closes its streams and maps.
  async close() { for (const stream of [...this.#streams]) stream.close(); }
  [Symbol.asyncDispose ?? Symbol.for('asyncDispose')]() { return this.close(); }

  // What happens to a lock, from now on.
  watch(name, options = {}) { return this.locks.stream(name, {}, options); }

  // For index.js.
  static transportOf(client) { return client.#transport; }

  #perform(id, args, options) {
    const flags = OPERATIONS[id][3] ?? '';
    if (flags.includes('stream')) return this.#stream(id, args, options);
    const request = requestOf(id, args, options);
    const answer = this.#transport.request(request, options).then(({ value }) => value);
    if (flags.includes('page')) answer[Symbol.asyncIterator] = () => this.#entries(answer, request, options);
    return answer;
  }

  // Yields the entries of this page and of those after it.
  async* #entries(answer, request, options) {
    for (let page = await answer; ;) {
      yield* page.data;
      if (!page.has_more) return;
      const query = { ...request.query, cursor: page.next_cursor };
      page = (await this.#transport.request({ ...request, query }, options)).value;
    }
  }

  #stream(id, [name, params], options) {
    const { after = options.after, ...query } = params ?? {};
    const request = { ...requestOf(id, [name, query]), isStream: true };
    const connect = (at, given) => this.#transport.request({ ...request, headers: at === undefined ? {} : { 'Last-Event-ID': `${at}` } }, given);
    const readAnew = async (seq, signal) => {
      if (RESET[id] === 'lock') return { message: { lock: await this.locks.get(name, {}, { signal }) } };
      if (RESET[id] === 'entry') return { message: { entry: await this.waitlist.get(name, {}, { signal }) } };
      if (RESET[id] === undefined) return { message: {} };
      for (;;) { // another server may not have seen it yet
        const map = await this.events.seats(name, {}, { signal });
        if (map.seq >= seq) return { message: { map }, at: map.seq };
        await sleep(50, signal);
      }
    };
    const stream = new ChangeStream(connect, readAnew, { ...options, after, onClose: () => this.#streams.delete(stream) });
    this.#streams.add(stream);
    return stream;
  }
}
