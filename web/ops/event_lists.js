// The holds and the bookings of an event, with what can be done to each.

import { button, h } from './dom.js';
import { cancelBooking, evictHold, placesOf, refundBooking, sellHold } from './actions.js';
import { statusList } from './payments.js';

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
