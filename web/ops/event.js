// One event: its counts, what can be done to it, its map through time, a seat's history, its holds, its bookings and its waiting list.

import { button, fact, h } from './dom.js';
import { archiveEvent, blockPlaces, cancelEvent, changeTerms, closeEvent, openEvent, unblockPlaces } from './actions.js';
import { bookingList, holdList, waitingList } from './event_lists.js';
import { eventMap } from './event_map.js';
import { eventSeat } from './event_seat.js';
import { poll } from './poll.js';

const EVENT_MS = 5000;

// The facts about the event, written anew with every answer.
function facts({ t, format, rates, revenues }, event) {
  const { cancellation } = event;
  const perMinute = rates.perMinute(event);
  const money = (amount) => (amount === null ? '–' : format.money(amount, event.currency)); // what is not known yet keeps its place
  return [
    fact(t('status'), t(`eventStatus.${event.status}`)),
    event.venue && fact(t('venue'), event.venue),
    event.starts_at && fact(t('startsAt'), format.startHere(event)),
    ...['available', 'held', 'booked', 'blocked'].map((name) => fact(t(name), format.number(event[name]))),
    fact(t('soldShare'), format.unit(event.capacity ? event.booked / event.capacity : 0, 'percent')),
    fact(t('soldPerMinute'), perMinute === null ? '–' : format.tenths(perMinute)),
    fact(t('revenue'), money(revenues.net(event))),
    ...(event.types ?? []).map(({ id, name }) => fact(t('revenueOfType', { type: name }), money(revenues.ofType(event, id)))),
    cancellation && fact(t('cancellation'), t('cancellationText', cancellation)),
  ].filter(Boolean);
}

// The buttons for an event of this status; what a seller may not do is said.  `current()` is the event and `prices()` what its
// places cost, as they are when a button is pressed.  To cancel it is apart; see cancelling().
function deeds(context, status, current, prices, onDone) {
  const { t, access } = context;
  const act = (label, work, danger) => button(label, async () => await work(context, current()) && onDone(), { class: danger ? 'danger' : null });
  const ended = ['archived', 'cancelled'].includes(status);
  const link = (label, part) => h('a', { class: 'button', href: `#/${part}` }, label);
  const id = encodeURIComponent(current().id);
  return [
    status === 'open' && link(t('sellAtCounter'), `events/${id}/sell`),
    status === 'open' && act(t('closeSales'), closeEvent),
    status === 'closed' && act(t('openSales'), openEvent),
    !ended && act(t('blockPlaces'), blockPlaces),
    !ended && act(t('unblockPlaces'), unblockPlaces),
    access === 'admin' && !ended && act(t('changeTerms'), (_, event) => changeTerms(context, event, prices())),
    access === 'admin' && link(t('copyEvent'), `create?copy=${id}`),
    access === 'admin' && status !== 'archived' && act(t('archive'), archiveEvent),
    access !== 'admin' && h('p', { class: 'quiet' }, t('eventNeedsAdmin')),
  ].filter(Boolean);
}

// What ends an event for its buyers stands below everything else.
function cancelling(context, current, onDone) {
  const { t } = context;
  return h('section', { class: 'panel ending' }, h('h2', {}, t('endOfEvent')), h('p', {}, t('endOfEventWhat')),
    button(t('cancelEvent'), async () => await cancelEvent(context, current()) && onDone(), { class: 'danger' }));
}

export function eventView(context, id) {
  const { t, call, rates, revenues, access } = context;
  const url = `/v1/events/${encodeURIComponent(id)}`;
  const title = h('h1', { tabindex: '-1' }, t('loading'));
  const known = h('dl', { class: 'facts' });
  const buttons = h('div', { class: 'buttons' });
  const problem = h('p', { role: 'alert', class: 'problem' });
  const parts = h('div');
  const ending = h('div');
  const element = h('div', {}, h('p', {}, h('a', { href: '#/' }, t('backToEvents'))), title, problem, known, buttons, parts, ending);
  let running = null; // the parts below, made when the event is known
  let current = null; // the event as it was last read
  let offered = null; // for which status the buttons are
  let stopped = false;

  function build(event) {
    let lists = [], waits = null;
    const changed = () => { for (const list of lists) list.reload(); polling.again(); };
    const seat = eventSeat(context, event, changed);
    const map = eventMap(context, event, { onSeat: (id) => seat.show(id), onMoment: seat.moveTo });
    lists = [holdList(context, event, changed), bookingList(context, event, changed)];
    parts.append(
      h('p', {}, h('a', { href: `/e/${encodeURIComponent(event.id)}` }, t('buyersPage')), ' · ',
        h('a', { href: `#/audit?event=${encodeURIComponent(event.id)}` }, t('auditOfEvent'))),
      h('div', { class: 'bench' }, map.element, seat.element),
      h('section', {}, h('h2', {}, t('holds')), lists[0].element),
      h('section', {}, h('h2', {}, t('bookings')), lists[1].element));
    return {
      map: map.map,
      // The waiting list is there as soon as the event has one.
      showWaiting() {
        if (current.waitlist && !waits) {
          waits = waitingList(context, () => current, changed);
          lists.push(waits);
          parts.append(waits.element);
        }
        waits?.show();
      },
      stop() { map.stop(); for (const list of lists) list.stop(); },
    };
  }

  async function read() {
    try {
      const event = await call('GET', url);
      if (stopped) return;
      current = event;
      rates.add(event);
      problem.textContent = '';
      if (title.textContent !== event.name) title.textContent = event.name;
      known.replaceChildren(...facts(context, event));
      if (offered !== event.status) {
        offered = event.status;
        const hadFocus = buttons.contains(document.activeElement);
        buttons.replaceChildren(...deeds(context, event.status, () => current, () => running?.map.prices ?? {}, () => polling.again()));
        const mayCancel = access === 'admin' && !['archived', 'cancelled'].includes(event.status);
        ending.replaceChildren(...(mayCancel ? [cancelling(context, () => current, () => polling.again())] : []));
        if (hadFocus) buttons.querySelector('button')?.focus();
      }
      running ??= build(event);
      running.showWaiting();
      await revenues.read(call, [event]);
      if (!stopped) known.replaceChildren(...facts(context, event));
    } catch (error) {
      if (error.status === 404) {
        title.textContent = t('noSuchEvent');
        problem.textContent = context.explain(error);
      } else throw error;
    }
  }
  const polling = poll(read, EVENT_MS, context.watch());
  return { title: t('event'), element, stop() { stopped = true; polling.stop(); running?.stop(); } };
}
