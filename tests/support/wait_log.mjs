// Judges the log of an event with a waiting list as clients read it, without the product's own rules: a place that
// comes back goes, in the same commit, to the first entry that it fits.  A wish for n seats fits where n seats of a row
// are free side by side, a wish for n places of an area where the area has them.  Rows of one time are one commit.
// Entries come in the order of their numbers, so none may have been moved to the front.
//
//   const judged = judgeWaits(event, map, rows, wishes);
//   assert.deepEqual(judged.wrong, []);

const TURNS_MAX = 256; // WAIT_TURNS_MAX: the rest of the turns is for the next batch
const CLAIMS = ['hold', 'rescue', 'block'];

// The length of the longest run of `true`.
function longestRun(seats) {
  let best = 0;
  for (let i = 0, run = 0; i < seats.length; i++) {
    run = seats[i] ? run + 1 : 0;
    best = Math.max(best, run);
  }
  return best;
}

class Judge {
  constructor(event, map) {
    this.rows = new Map(); // section and row -> { section, free: [boolean] }
    for (const { name, rows } of map.sections) {
      for (const row of rows) this.rows.set(`${name}-${row.name}`, { section: name, free: Array(row.seats.length).fill(true) });
    }
    this.areas = new Map(event.areas.map(({ name, capacity }) => [name, capacity])); // free places
    this.queues = new Map(); // wish as text -> { wish, waiting: numbers, ascending }
    this.entries = new Map(); // keyOf its id -> { number, queue, status, offers, told }
    this.wrong = [];
    this.counts = { offered: 0, accepted: 0, lapsed: 0, left: 0, ended: 0, claims: 0, commits: 0 };
    this.turns = 0;
  }

  // Returns the longest run of free seats, in any section if `section` is undefined.
  run(section) {
    let best = 0;
    for (const row of this.rows.values()) if (section === undefined || row.section === section) best = Math.max(best, longestRun(row.free));
    return best;
  }

  // Returns the smallest number that waits for what is free.
  first() {
    let first = Infinity;
    const runs = new Map();
    for (const { wish, waiting } of this.queues.values()) {
      if (waiting.length === 0 || waiting[0] >= first) continue;
      if (!wish.area && !runs.has(wish.section)) runs.set(wish.section, this.run(wish.section));
      if ((wish.area ? this.areas.get(wish.area) : runs.get(wish.section)) >= wish.quantity) first = waiting[0];
    }
    return first;
  }

  // How many places are free, by the name of the section or area.
  get free() {
    const free = Object.fromEntries(this.areas);
    for (const { section, free: seats } of this.rows.values()) free[section] = (free[section] ?? 0) + seats.filter(Boolean).length;
    return free;
  }

  move(row, sign) {
    if (row.object === 'area') this.areas.set(row.area, this.areas.get(row.area) + sign * row.quantity);
    else this.rows.get(row.seat.slice(0, row.seat.lastIndexOf('-'))).free[row.seat.slice(row.seat.lastIndexOf('-') + 1) - 1] = sign > 0;
  }

  say(row, text) { this.wrong.push(`seq ${row.seq}: ${text}`); }

  entry(row, wishes) {
    if (row.from === null) {
      const wish = wishes.get(row.number);
      if (!wish) return this.say(row, `entry ${row.number} was answered to nobody`);
      const name = JSON.stringify(wish);
      const queue = this.queues.get(name) ?? { wish, waiting: [] };
      this.queues.set(name, queue);
      queue.waiting.push(row.number);
      return this.entries.set(keyOf(row.waitlist_entry), { number: row.number, queue, status: row.to, offers: 0, told: [] });
    }
    const entry = this.entries.get(keyOf(row.waitlist_entry));
    if (row.from === 'waiting') entry.queue.waiting.splice(entry.queue.waiting.indexOf(entry.number), 1);
    entry.status = row.to;
    this.counts[row.to]++;
    if (['offered', 'lapsed', 'ended'].includes(row.to)) entry.told.push(`waitlist.${row.to}`);
    if (row.to === 'offered' || row.to === 'ended') this.turns++;
    if (row.to !== 'offered') return undefined;
    if (++entry.offers > 1) this.say(row, `entry ${entry.number} has another offer`);
    if (entry.number !== this.due) this.say(row, `entry ${entry.number} has an offer that fitted entry ${this.due} before`);
    return undefined;
  }

  row(row, wishes) {
    if (row.object === 'hold' && row.to === 'active' && row.from === null) this.due = this.first();
    else if (row.object === 'hold' && row.cause === 'rescue') this.due = this.first();
    if (row.object === 'hold' && CLAIMS.includes(row.cause)) {
      this.counts.claims++;
      if (this.due !== Infinity) this.say(row, `a hold has what fitted entry ${this.due}`);
    }
    if (row.object === 'seat' || row.object === 'area') {
      if (row.from === 'available') this.move(row, -1);
      if (row.to === 'available') this.move(row, 1);
    }
    if (row.object === 'waitlist_entry') this.entry(row, wishes);
  }

  endCommit(row) {
    this.counts.commits++;
    const first = this.turns < TURNS_MAX ? this.first() : Infinity;
    if (first !== Infinity) this.say(row, `what is free fits entry ${first}`);
    this.turns = 0;
  }
}

// What an id of an entry shows of itself where it is masked.
export const keyOf = (id) => id.slice(0, 16);

// `event` is the answer that made it, `map` a snapshot of its seats, `rows` are of readAudit, `wishes` is a map from an
// entry's number to { quantity, section } or { quantity, area }.  Returns { wrong: sentences, entries: keyOf an id ->
// { number, status, told }, counts,
// free: name of a section or area -> free places at the end }.
export function judgeWaits(event, map, rows, wishes) {
  const judge = new Judge(event, map);
  rows.forEach((row, i) => {
    judge.row(row, wishes);
    if (rows[i + 1]?.at !== row.at) judge.endCommit(row);
  });
  return judge;
}
