// The events by name, for a choice among them: the newest thousand, which is what the API lists page by page.

import { h } from './dom.js';

const PAGES_MAX = 10;

// All events that are listed, newest first.
async function listed(call) {
  const events = [];
  let cursor = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { data, has_more: hasMore, next_cursor: next } = await call('GET', `/v1/events?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
    events.push(...data);
    if (!hasMore) break;
    cursor = next;
  }
  return events;
}

// A control that offers the events by name, and `ready`, which resolves when it does.  `chosen` is an id, null for the newest, or ''
// for none; an event that is listed no more, such as an archived one, is offered if it is chosen.
export function eventChoice({ t, call, format }, chosen, props = {}) {
  const control = h('select', { name: 'event', ...props }, h('option', { value: '' }, t('chooseEvent')));
  const nameOf = (event) => [
    event.name, event.starts_at && format.start(event), event.status !== 'open' && t(`eventStatus.${event.status}`),
  ].filter(Boolean).join(' · ');
  const offer = (event) => control.append(h('option', { value: event.id }, nameOf(event)));

  async function read() {
    const events = await listed(call);
    const isListed = events.some(({ id }) => id === chosen);
    if (chosen && !isListed) {
      const unlisted = await call('GET', `/v1/events/${encodeURIComponent(chosen)}`).catch(() => ({ id: chosen, name: chosen, status: 'open' }));
      offer(unlisted);
    }
    for (const event of events) offer(event);
    control.value = chosen ?? events[0]?.id ?? '';
  }
  return { control, ready: read() };
}
