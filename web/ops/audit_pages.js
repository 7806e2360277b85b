// The log of every change (GET /v1/audit) from its end: the server lists rows oldest first, from a number on.
//
// Without a seat or a hold, every row of an event has a number of its own, so the newest hundred are those after the last number
// less a hundred; where old rows were pruned there are fewer.  The rows of one seat or one hold are few, and are read as a whole.

const PAGE = 100;
const READ_MAX = 1000; // rows that the server lists at a time
const WINDOWS_MAX = 20; // of rows that were pruned, for each page
const ALL_PAGES_MAX = 20; // of a seat or a hold

export class NewestFirst {
  #call;
  #query;
  #isWhole;
  #before; // the number of the oldest row that was read; null: nothing was read

  // `query`: { event, seat, hold, before }, of which all may be empty but event or hold.
  constructor(call, { event, seat, hold, before }) {
    this.#call = call;
    this.#query = Object.fromEntries(Object.entries({ event, seat, hold }).filter(([, value]) => value));
    this.#isWhole = Boolean(seat || hold);
    this.#before = before ? Number(before) : null;
    this.hasMore = true;
  }

  #read(after, limit) {
    return this.#call('GET', `/v1/audit?${new URLSearchParams({ ...this.#query, after, limit })}`);
  }

  // Resolves to the next rows, newest first.
  async next() { return this.#isWhole ? this.#all() : this.#window(); }

  async #all() {
    const rows = [];
    let after = 0;
    for (let page = 0; page < ALL_PAGES_MAX; page += 1) {
      const { data, has_more: hasMore } = await this.#read(after, READ_MAX);
      rows.push(...data);
      if (!hasMore) break;
      after = data.at(-1).seq;
    }
    this.hasMore = false;
    return rows.filter(({ seq }) => this.#before === null || seq < this.#before).reverse();
  }

  async #window() {
    const rows = [];
    let end = this.#before === null ? await this.#last() : this.#before - 1; // rows up to this one are wanted
    let width = PAGE;
    for (let i = 0; i < WINDOWS_MAX && end > 0 && rows.length === 0; i += 1) {
      const from = Math.max(0, end - width);
      const { data, pruned_seq: pruned } = await this.#read(from, width);
      rows.push(...data.filter(({ seq }) => seq <= end));
      this.#before = from + 1;
      end = from;
      if (from < pruned) width = READ_MAX;
    }
    this.hasMore = end > 0;
    return rows.reverse();
  }

  // The number of the event's last row.  The map may know it a moment late.
  async #last() {
    let { seq } = await this.#call('GET', `/v1/events/${encodeURIComponent(this.#query.event)}/seats`);
    for (let hasNewer = true; hasNewer;) {
      const { data, has_more: hasMore } = await this.#read(seq, READ_MAX);
      seq = data.at(-1)?.seq ?? seq;
      hasNewer = hasMore;
    }
    return seq;
  }
}
