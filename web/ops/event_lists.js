// The holds, the bookings and the waiting list of an event, with what can be done to each.

import { wishText } from '../lib/wish.js';
import { button, fact, h } from './dom.js';
import { cancelBooking, evictEntry, evictHold, moveEntryFirst, pauseWaitlist, placesOf, refundBooking, resumeWaitlist, sellHold } from './actions.js';
import { statusList } from './payments.js';
import { poll } from './poll.js';

const COUNTS_MS = 10_000;
const COUNTED_MAX = 100; // what one page of a list has

// Buttons in one cell.  Their names say which row they are for, since every row has the same.
function deeds(list, label) {
  if (list.length === 0) return document.createTextNode('–');
  return h('div', { class: 'buttons' }, list.map(([text, act, danger]) => button(text, act, { class: danger ? 'danger' : null, 'aria-label': `${text}: ${label}` })));
}

export function holdList(context, event, onChanged) {
  const { t, format, access } = context;
  const changed = async (work) => { if (await work) { list.reload(); onChanged(); } };
  const list = statusList(context, {
    title: t('holds'), label: t('holdsWith'), empty: t('noHolds'),
    url: `/v1/holds?event=${encodeURIComponent(event.id)}`,
    statuses: ['active', 'expired', 'released', 'confirmed'], chosen: 'active',
    key: ({ id }) => id,
    columns: [
      { title: t('places'), head: true, text: (hold) => placesOf(hold, context) },
      { title: t('owner'), text: ({ owner }) => owner ?? '–' },
      { title: t('status'), text: ({ status }) => t(`state.${status}`) },
      { title: t('amount'), kind: 'number', text: ({ amount, currency }) => format.money(amount, currency) },
      { title: t('timeLeft'), kind: 'number', text: ({ status, expires_in_ms: left }) => (status === 'active' ? format.duration(left) : '–') },
      { title: t('created'), kind: 'time', text: ({ created_at: at }) => format.exact(at) },
      {
        title: t('deeds'), mark: ({ id, status, fence }) => `${id} ${status} ${fence}`,
        node: (hold) => deeds(access === 'admin' && hold.status === 'active' ? [
          [t('sell'), () => changed(sellHold(context, hold))],
          [t('evict'), () => changed(evictHold(context, hold)), true],
        ] : [], placesOf(hold, context)),
      },
    ],
  });
  return list;
}

export function bookingList(context, event, onChanged) {
  const { t, format } = context;
  const changed = async (work) => {
    try {
      if (!await work) return;
      list.reload();
      onChanged();
    } catch (error) { context.fail(error); }
  };
  const refundable = ({ payment }) => payment !== null && payment.amount_received > payment.amount_refunded;
  const paymentText = ({ payment }) => {
    if (payment === null) return '–';
    return payment.disputed ? t('disputed', { status: t(`state.${payment.status}`) }) : t(`state.${payment.status}`);
  };
  const list = statusList(context, {
    title: t('bookings'), label: t('bookingsWith'), empty: t('noBookings'),
    url: `/v1/bookings?event=${encodeURIComponent(event.id)}`,
    statuses: ['pending', 'confirmed', 'failed', 'cancelled'],
    key: ({ id }) => id,
    columns: [
      { title: t('number'), head: true, text: ({ number }) => number },
      { title: t('places'), text: (booking) => placesOf(booking, context) },
      { title: t('owner'), text: ({ owner }) => owner ?? '–' },
      { title: t('reference'), text: ({ reference }) => reference ?? '–' },
      { title: t('status'), text: ({ status }) => t(`state.${status}`) },
      { title: t('payment'), text: paymentText },
      { title: t('amount'), kind: 'number', text: ({ amount, currency }) => format.money(amount, currency) },
      { title: t('created'), kind: 'time', text: ({ created_at: at }) => format.exact(at) },
      {
        title: t('deeds'), mark: (booking) => `${booking.id} ${booking.status} ${booking.payment?.amount_received} ${booking.payment?.amount_refunded}`,
        node: (booking) => deeds([
          ...(refundable(booking) ? [[t('refund'), () => changed(refundBooking(context, booking))]] : []),
          ...(['pending', 'confirmed'].includes(booking.status) ? [[t('cancel'), () => changed(cancelBooking(context, booking)), true]] : []),
        ], booking.number),
      },
    ],
  });
  return list;
}

// The waiting list: its entries, how many there are, and the button that pauses it.  `current()` is the event as it is now.
export function waitingList(context, current, onChanged) {
  const { t, call, format, access } = context;
  const url = `/v1/waitlist?event=${encodeURIComponent(current().id)}`;
  const changed = async (work) => { if (await work) { reload(); onChanged(); } };
  const wishOf = (entry) => wishText(entry, t, (id) => current().types?.find((type) => type.id === id)?.name ?? id);
  const counts = h('dl', { class: 'facts' });
  const buttons = h('div', { class: 'buttons waits-now' });
  let isPaused = null; // as the button has it

  // The server does not count the entries of one event: a page of each kind says how many there are, or that there are more.
  async function count() {
    const [waiting, offered, newest] = await Promise.all(['status=waiting&limit=100', 'status=offered&limit=100', 'limit=1'].map((query) => call('GET', `${url}&${query}`)));
    const counted = ({ data, has_more: hasMore }) => (hasMore ? t('moreThan', { n: COUNTED_MAX }) : format.number(data.length));
    counts.replaceChildren(fact(t('state.waiting'), counted(waiting)), fact(t('state.offered'), counted(offered)), fact(t('joinedEver'), format.number(newest.data[0]?.number ?? 0)));
  }
  const counting = poll(count, COUNTS_MS, context.watch());

  const list = statusList(context, {
    title: t('waitingList'), label: t('entriesWith'), empty: t('noEntries'), url,
    statuses: ['waiting', 'offered', 'accepted', 'lapsed', 'left', 'ended'], chosen: 'waiting',
    key: ({ id }) => id,
    columns: [
      { title: t('waitNumber'), head: true, kind: 'number', text: ({ number }) => format.number(number) },
      { title: t('wish'), kind: 'wish', text: wishOf },
      { title: t('owner'), text: ({ owner }) => owner ?? '–' },
      { title: t('status'), text: ({ status, reason }) => (reason ? `${t(`state.${status}`)}: ${t(`waitEnded.${reason}`)}` : t(`state.${status}`)) },
      { title: t('timeLeft'), kind: 'number', text: ({ status, expires_in_ms: left }) => (status === 'offered' ? format.duration(left) : '–') },
      { title: t('until'), kind: 'time', text: ({ until }) => (until ? format.exact(until) : '–') },
      { title: t('waitsSince'), kind: 'time', text: ({ created_at: at }) => format.exact(at) },
      {
        title: t('deeds'), mark: ({ id, status }) => `${id} ${status}`,
        node: (entry) => deeds(access !== 'admin' || !['waiting', 'offered'].includes(entry.status) ? [] : [
          ...(entry.status === 'waiting' ? [[t('moveFirst'), () => changed(moveEntryFirst(context, entry, wishOf(entry)))]] : []),
          [t('evict'), () => changed(evictEntry(context, entry, wishOf(entry))), true],
        ], t('entryOf', { number: entry.number })),
      },
    ],
  });
  function reload() {
    list.reload();
    counting.again();
  }

  const element = h('section', {}, h('h2', {}, t('waitingList')), counts, buttons, list.element);
  return {
    element, reload,
    // The terms of the event were read again.
    show() {
      const { waitlist } = current();
      element.hidden = !waitlist;
      if (!waitlist || waitlist.paused === isPaused) return;
      isPaused = waitlist.paused;
      const hadFocus = buttons.contains(document.activeElement);
      const act = isPaused ? resumeWaitlist : pauseWaitlist;
      buttons.replaceChildren(
        h('p', {}, t(isPaused ? 'waitlistPaused' : 'waitlistRuns')),
        button(t(isPaused ? 'resumeWaitlist' : 'pauseWaitlist'), () => changed(act(context, current()))));
      if (hadFocus) buttons.querySelector('button').focus();
    },
    stop() {
      list.stop();
      counting.stop();
    },
  };
}
