// One seat: what it is now (or was at the moment that the map shows), how it came to that, and what can be done about it.

import { button, field, h, liveTable } from './dom.js';
import { blockPlaces, cancelBooking, evictHold, unblockPlaces } from './actions.js';
import { logColumns, short } from './audit.js';

const BOOKING_PAGES_MAX = 20;

// Ids in a history are masked; what is before the stars names the row.
const sameRow = (masked, id) => id.startsWith(masked.slice(0, masked.indexOf('*')));

// Resolves to the hold that has the seat, by the log, which shows admins whole ids; null if it ended meanwhile.
async function holdOf({ call }, event, seat) {
  const granted = seat.history.find((row) => row.hold && row.to === 'held' && row.cause !== 'renew'); // renewals are rows of the hold
  if (!granted) return null;
  const search = new URLSearchParams({ event: event.id, seat: seat.id, after: granted.seq - 1, limit: 1 });
  const { data: [row] } = await call('GET', `/v1/audit?${search}`);
  return row?.hold ? call('GET', `/v1/holds/${encodeURIComponent(row.hold)}`) : null;
}

// Resolves to the booking that has the seat, by the lists, which show sellers whole ids; null if it is not among the
// newest.
async function bookingOf({ call }, event, seat) {
  const sold = seat.history.find((row) => row.booking);
  if (!sold) return null;
  let cursor = null;
  for (let page = 0; page < BOOKING_PAGES_MAX; page += 1) {
    const search = new URLSearchParams({ event: event.id, status: 'confirmed', limit: 100, ...(cursor ? { cursor } : {}) });
    const { data, has_more: hasMore, next_cursor: next } = await call('GET', `/v1/bookings?${search}`);
    const found = data.find(({ id }) => sameRow(sold.booking, id));
    if (found || !hasMore) return found ?? null;
    cursor = next;
  }
  return null;
}

export function eventSeat(context, event, onChanged) {
  const { t, format, call, access } = context;
  const name = h('input', { name: 'seat', autocomplete: 'off', spellcheck: 'false' });
  const problem = h('p', { role: 'alert', class: 'problem' });
  const title = h('h3', { tabindex: '-1' });
  const sentence = h('p');
  const deeds = h('div', { class: 'buttons' });
  const table = liveTable({
    caption: t('history'), empty: t('noHistory'), wide: t('wideTable'), key: ({ seq }) => seq,
    columns: [...logColumns(context), { title: t('hold'), text: ({ hold }) => short(hold) }, { title: t('booking'), text: ({ booking }) => short(booking) }],
  });
  const pruned = h('p', { class: 'quiet', hidden: true }, t('historyPruned'));
  const found = h('div', { hidden: true }, title, sentence, deeds, table.element, pruned);
  let asked = 0;
  let current = null; // the seat that is shown
  let wanted = null; // the id that was asked for last
  let moment = null; // that the map shows; null: now

  async function look(find, missing, act) {
    try {
      const subject = await find(context, event, current);
      if (!subject) { problem.textContent = missing; return; }
      if (await act(context, subject)) done();
    } catch (error) { problem.textContent = context.explain(error); }
  }
  function done() {
    onChanged();
    show(current.id, false);
  }
  // What may be done with the seat as it is now.
  function deedsFor({ id, status }) {
    if (status === 'available') return [button(t('blockSeat'), async () => await blockPlaces(context, event, [id]) && done())];
    if (status === 'blocked') return [button(t('unblockSeat'), async () => await unblockPlaces(context, event, [id]) && done())];
    if (status === 'held') {
      return access === 'admin' ? [button(t('evictHold'), () => look(holdOf, t('holdGone'), evictHold), { class: 'danger' })]
        : [h('p', { class: 'quiet' }, t('evictNeedsAdmin'))];
    }
    return [button(t('cancelSeatBooking'), () => look(bookingOf, t('bookingNotFound'), cancelBooking), { class: 'danger' })];
  }

  async function show(id, focus = true) {
    const mine = ++asked;
    const then = moment;
    wanted = id;
    problem.textContent = '';
    name.value = id;
    try {
      const at = then === null ? '' : `?at=${encodeURIComponent(new Date(then).toISOString())}`;
      const seat = await call('GET', `/v1/events/${encodeURIComponent(event.id)}/seats/${encodeURIComponent(id)}${at}`);
      if (mine !== asked) return;
      current = seat;
      title.textContent = t('seatTitle', { seat: seat.id });
      sentence.textContent = t(then === null ? 'seatNow' : 'seatThen', {
        status: t(`state.${seat.status}`), price: format.money(seat.price, event.currency), time: format.exact(seat.at),
      });
      deeds.replaceChildren(...(then === null ? deedsFor(seat) : [h('p', { class: 'quiet' }, t('pastIsPast'))]));
      table.show(seat.history);
      pruned.hidden = !seat.history_pruned;
      found.hidden = false;
      if (focus) title.focus();
    } catch (error) {
      if (mine !== asked) return;
      found.hidden = true;
      problem.textContent = context.explain(error);
    }
  }
  const element = h('section', { class: 'seat' }, h('h2', {}, t('seatHistory')),
    h('form', { class: 'search', on: { submit: (submitted) => { submitted.preventDefault(); if (name.value.trim()) show(name.value.trim()); } } },
      field(t('seat'), name, t('seatHint')), h('button', { type: 'submit' }, t('showHistory'))),
    problem, found);
  return {
    element,
    show,
    // Shows the same seat at another moment.
    moveTo(ms) {
      moment = ms;
      if (wanted !== null) show(wanted, false);
    },
  };
}
