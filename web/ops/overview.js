// The first view: the events with their counts and rates, and the charts of the last hour.

import { h, liveTable } from './dom.js';
import { chartGrid } from './charts.js';
import { poll } from './poll.js';

const EVENTS_MS = 5000;
const RATE_MS = 60_000;
const REVENUE_MS = 300_000;

// How fast an event sells: what this page saw of its counts during the last minute.
export class Rates {
  #seen = new Map(); // event -> [{ at, booked }], oldest first

  add(event, at = Date.now()) {
    const seen = this.#seen.get(event.id) ?? [];
    seen.push({ at, booked: event.booked });
    while (seen.length > 1 && at - seen[1].at >= RATE_MS) seen.shift();
    this.#seen.set(event.id, seen);
  }

  // Bookings per minute, or null while too little was seen to say.
  perMinute(event) {
    const seen = this.#seen.get(event.id) ?? [];
    const first = seen[0];
    const last = seen.at(-1);
    return last && last.at - first.at >= EVENTS_MS / 2 ? ((last.booked - first.booked) / (last.at - first.at)) * 60_000 : null;
  }
}

// What the bookings of each event come to.  The server adds it up for every request, so an event is asked about when its bookings
// have changed, and otherwise now and then, since refunds change it, too.
export class Revenues {
  #known = new Map(); // event -> { booked, at, net, types }

  net({ id }) { return this.#known.get(id)?.net ?? null; }

  // What was paid for places of a ticket type, before refunds; null while it is not known.
  ofType({ id }, type) { return this.#known.get(id)?.types?.find((each) => each.type === type)?.amount ?? null; }

  // Asks about those of the events that need it.
  async read(call, events) {
    for (const { id, booked } of events) {
      const known = this.#known.get(id);
      if (known && known.booked === booked && Date.now() - known.at < REVENUE_MS) continue;
      const { amount, refunded, types } = await call('GET', `/v1/events/${encodeURIComponent(id)}/revenue`);
      this.#known.set(id, { booked, at: Date.now(), net: amount - refunded, types });
    }
  }
}

function eventsTable({ t, format, revenues }, rates, onMore) {
  const number = (name) => ({ title: t(name), kind: 'number', text: (event) => format.number(event[name]) });
  return liveTable({
    caption: t('events'),
    empty: t('noEvents'),
    wide: t('wideTable'),
    key: ({ id }) => id,
    more: { label: t('more'), onClick: onMore },
    columns: [
      {
        title: t('event'), head: true, mark: ({ id, name }) => `${id} ${name}`,
        node: ({ id, name }) => h('a', { href: `#/events/${encodeURIComponent(id)}` }, name),
      },
      { title: t('status'), text: ({ status }) => t(`eventStatus.${status}`) },
      { title: t('startsAt'), kind: 'time', text: (event) => (event.starts_at ? format.start(event) : '–') },
      number('available'), number('held'), number('booked'), number('blocked'),
      { title: t('soldShare'), kind: 'number', text: ({ booked, capacity }) => format.unit(capacity ? booked / capacity : 0, 'percent') },
      { title: t('soldPerMinute'), kind: 'number', text: (event) => (rates.perMinute(event) === null ? '–' : format.tenths(rates.perMinute(event))) },
      { title: t('revenue'), kind: 'number', text: (event) => (revenues.net(event) === null ? '–' : format.money(revenues.net(event), event.currency)) },
    ],
  });
}

export function overview(context) {
  const { t, call, access, samples, rates, revenues } = context;
  let extra = []; // pages after the first, as they were when they were asked for
  let first = { data: [], has_more: false };
  let last = first;
  const table = eventsTable(context, rates, async () => {
    try {
      last = await call('GET', `/v1/events?limit=100&cursor=${encodeURIComponent(last.next_cursor)}`);
      extra = [...extra, ...last.data];
      show();
      await revenues.read(call, last.data);
      show();
    } catch (error) { context.fail(error); }
  });
  const charts = access === 'admin' ? chartGrid(context) : null;

  function show() {
    const newest = new Set(first.data.map(({ id }) => id));
    table.show([...first.data, ...extra.filter(({ id }) => !newest.has(id))], last.has_more);
  }

  async function readEvents() {
    first = await call('GET', '/v1/events?limit=100');
    if (extra.length === 0) last = first;
    for (const event of first.data) rates.add(event);
    show();
    await revenues.read(call, first.data);
    show();
  }

  const element = h('div', {},
    h('h1', { tabindex: '-1' }, t('overview')),
    access === 'admin' ? h('p', {}, h('a', { class: 'button primary', href: '#/create' }, t('createEvent'))) : null,
    h('section', {}, h('h2', { class: 'visually-hidden' }, t('events')), table.element),
    h('section', {}, h('h2', {}, t('lastHour')),
      charts ? charts.element : h('p', { class: 'quiet' }, t('chartsNeedAdmin'))));
  const polls = [poll(readEvents, EVENTS_MS, context.watch())];
  if (charts) {
    polls.push(poll(async () => {
      const { every_ms: everyMs } = await samples.read(call);
      charts.show(samples, everyMs);
    }, EVENTS_MS, context.watch()));
  }
  return {
    title: t('overview'),
    element,
    stop() {
      for (const one of polls) one.stop();
      charts?.destroy();
    },
  };
}
