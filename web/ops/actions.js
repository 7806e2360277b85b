// What sellers and admins may do from this page.  Each function asks once in a dialog that names what will happen, does
// it with an Idempotency-Key, tells what happened, and resolves to true if it was done.

import { fromWall, venueZone, wallText } from '../lib/venue_time.js';
import { typeRows } from './layout_form.js';
import { field, h, localMoment, localText } from './dom.js';
import { minorUnits } from './formats.js';

const path = (...segments) => `/v1/${segments.map(encodeURIComponent).join('/')}`;

// Asks with the texts `do.<name>.title`, `.what`, `.verb` and `.done`, and does it.
async function perform(context, name, values, { fields = [], danger = false, send }) {
  const { t, ask, tell } = context;
  const told = await ask({
    title: t(`do.${name}.title`, values),
    sentences: [t(`do.${name}.what`, values)],
    verb: t(`do.${name}.verb`, values),
    danger,
    fields,
    async act(key) { return t(`do.${name}.done`, { ...values, ...await send(key) }); },
  });
  if (told !== null) tell(told);
  return told !== null;
}

// ---- events ----

const eventAction = (name, verb, danger) => (context, event) => perform(context, name, { name: event.name, n: event.booked ?? 0 }, {
  danger,
  async send(key) { await context.call('POST', path('events', event.id, verb), { key, body: {} }); },
});
export const closeEvent = eventAction('close', 'close', false);
export const openEvent = eventAction('open', 'open', false);
export const archiveEvent = eventAction('archive', 'archive', false);

// Everybody's bookings end with an event, so its name has to be typed.
export function cancelEvent(context, event) {
  const { t, call } = context;
  const typed = h('input', { name: 'typed', autocomplete: 'off', spellcheck: 'false' });
  return perform(context, 'cancelEvent', { name: event.name, n: event.booked ?? 0 }, {
    danger: true,
    fields: [field(t('typeName'), typed, event.name)],
    async send(key) {
      if (typed.value.trim() !== event.name.trim()) throw new Error(t('otherName'));
      await call('POST', path('events', event.id, 'cancel'), { key, body: {} });
    },
  });
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

// The terms of the waiting list, which are one: its control is a group of fields, whose `value` is all of them.
function waitlistTerm(t, { waitlist }) {
  const isOn = h('input', { type: 'checkbox', checked: Boolean(waitlist) });
  const count = (name, value, most) => h('input', { type: 'number', min: '0', max: most, step: 'any', value, data: { path: `waitlist.${name}` } });
  const offer = count('offer_ttl_ms', (waitlist?.offer_ttl_ms ?? 10 * MINUTE_MS) / MINUTE_MS, '1440');
  const alive = count('alive_ms', (waitlist?.alive_ms ?? 72 * HOUR_MS) / HOUR_MS, '8784');
  const perOwner = count('per_owner', waitlist?.per_owner ?? 1, '100');
  const fields = h('div', { class: 'fields', hidden: !waitlist },
    field(t('term.offer_ttl_ms'), offer), field(t('term.alive_ms'), alive), field(t('term.per_owner'), perOwner));
  isOn.addEventListener('change', () => { fields.hidden = !isOn.checked; });
  const control = h('fieldset', { class: 'waits' }, h('legend', {}, t('waitingList')), h('label', { class: 'choice' }, isOn, ' ', t('term.waitlist')), fields);
  const read = () => (isOn.checked ? {
    offer_ttl_ms: Math.round(Number(offer.value) * MINUTE_MS), alive_ms: Math.round(Number(alive.value) * HOUR_MS), per_owner: Number(perOwner.value),
  } : null);
  Object.defineProperty(control, 'value', { get: () => JSON.stringify(read()) });
  return { name: 'waitlist', control, read, element: control };
}

// The terms that people fill in: { name, control, read(control), before, element }, where `read` gives the value of the API.
export function termFields(t, event) {
  const zone = venueZone(event);
  const hintOf = (at) => (at ? t('timeThere', { zone: at }) : t('timeHere'));
  const text = (name, most = '255') => ({ name, control: h('input', { name, maxlength: most, autocomplete: 'off', value: event[name] }), read: ({ value: now }) => now.trim() || null });
  const timezone = text('timezone', '64');
  // At the venue: in the zone that the dialog says when it is sent.
  const timeThere = (name) => ({
    name, control: h('input', { name, type: 'datetime-local', step: '1', value: event[name] && wallText(Date.parse(event[name]), zone) }),
    hint: hintOf(zone), isThere: true, read: ({ value: now }) => (now ? fromWall(now, zoneNow()) : null),
  });
  const zoneNow = () => venueZone({ ...event, timezone: timezone.read(timezone.control) });
  const time = (name, value) => ({
    name, control: h('input', { name, type: 'datetime-local', step: '1', value: value && localText(Date.parse(value)).slice(0, 19) }),
    hint: t('timeHere'), read: (control) => (localMoment(control) === null ? null : new Date(localMoment(control)).toISOString()),
  });
  const terms = [
    text('name'), text('venue'), text('venue_address'), timezone, timeThere('starts_at'), timeThere('doors_at'),
    time('sales_open_at', event.sales_open_at), time('sales_close_at', event.sales_close_at), text('image', '2000'),
    { ...text('description'), control: h('textarea', { name: 'description', rows: '4', maxlength: '2000' }, event.description ?? '') },
    {
      name: 'max_per_hold', control: h('input', { name: 'max_per_hold', type: 'number', min: '1', max: '500', value: event.max_per_hold }),
      read: (control) => Number(control.value),
    },
    waitlistTerm(t, event),
  ].map((term) => ({ ...term, before: term.control.value, element: term.element ?? field(t(`term.${term.name}`), term.control, term.hint) }));
  // What somebody has typed is the clock's time there; what nobody has touched is the same moment by the other clock.
  timezone.control.addEventListener('input', () => {
    for (const term of terms.filter(({ isThere }) => isThere)) {
      term.element.querySelector('small').textContent = hintOf(zoneNow());
      if (!event[term.name] || term.control.value !== term.before) continue;
      term.control.value = wallText(Date.parse(event[term.name]), zoneNow());
      term.before = term.control.value;
    }
  });
  return terms;
}

// Changes the terms of an event: only what the reader changed is sent.  `prices` are those of now, by name.
export function changeTerms(context, event, prices) {
  const { t, format } = context;
  const digits = format.digits(event.currency);
  const terms = termFields(t, event);
  const costs = Object.entries(prices).map(([name, amount]) => {
    const control = h('input', { name: 'price', inputmode: 'decimal', autocomplete: 'off', value: (amount / 10 ** digits).toFixed(digits) });
    return { name, control, before: control.value, element: field(t('priceOf', { name, currency: event.currency.toUpperCase() }), control) };
  });
  const changed = ({ control, before }) => control.value !== before;
  const types = typeRows(t, { digits: () => digits, types: event.types ?? [], least: event.types?.length ?? 0 });
  const typesBefore = new Map(types.read().map((type) => [type.id, type]));
  // Types that are new or differ.  A price that is not there any more is that of the category again.
  const changedTypes = () => types.read().filter((type) => JSON.stringify(type) !== JSON.stringify(typesBefore.get(type.id)))
    .map((type) => ({ ...type, prices: { ...Object.fromEntries(Object.keys(typesBefore.get(type.id)?.prices ?? {}).map((name) => [name, null])), ...type.prices } }));
  return perform(context, 'terms', { name: event.name }, {
    fields: [...terms, ...costs, types].map(({ element }) => element),
    async send(key) {
      const body = Object.fromEntries(terms.filter(changed).map(({ name, control, read }) => [name, read(control)]));
      const priced = costs.filter(changed).map(({ name, control }) => [name, minorUnits(control.value, digits)]);
      if (priced.some(([, amount]) => Number.isNaN(amount))) throw new Error(t('badAmount'));
      if (priced.length) body.prices = Object.fromEntries(priced);
      if (changedTypes().length) body.types = changedTypes();
      if (Object.keys(body).length === 0) throw new Error(t('nothingChanged'));
      await context.call('PATCH', path('events', event.id), { key, body });
    },
  });
}

// Lines of a text area, without empty ones.  Ids of seats are opaque: only what surrounds a line is trimmed.
const linesOf = (control) => [...new Set(control.value.split('\n').map((line) => line.trim()).filter(Boolean))];

// Takes places off sale (`block`) or puts them back (`unblock`): the seats given, or what the reader chooses.
async function block(context, event, verb, seats) {
  const { t } = context;
  const names = h('textarea', { name: 'seats', rows: '4', spellcheck: 'false', autocomplete: 'off' });
  names.value = seats.join('\n');
  const sections = (event.sections ?? []).map(({ name }) => {
    const box = h('input', { type: 'checkbox', name: 'section', value: name });
    return { name, box, element: h('label', { class: 'choice' }, box, ' ', name) };
  });
  const areas = (event.areas ?? []).map(({ name, capacity }) => {
    const box = h('input', { type: 'number', name: 'area', min: '0', max: capacity, value: '0', inputmode: 'numeric' });
    return { name, box, element: field(t('placesIn', { area: name }), box) };
  });
  const channel = h('input', { name: 'channel', maxlength: '32', autocomplete: 'off' });
  return perform(context, verb, { name: event.name }, {
    fields: [
      field(t('seatsByLine'), names),
      sections.length > 0 && h('fieldset', { class: 'choices' }, h('legend', {}, t('wholeSections')), sections.map(({ element }) => element)),
      areas.map(({ element }) => element),
      field(t('channel'), channel, t(verb === 'block' ? 'channelHint' : 'channelBackHint')),
    ].flat().filter(Boolean),
    async send(key) {
      const body = {};
      const chosen = sections.filter(({ box }) => box.checked).map(({ name }) => name);
      const places = areas.filter(({ box }) => Number(box.value) > 0).map(({ name, box }) => [name, Number(box.value)]);
      if (linesOf(names).length) body.seats = linesOf(names);
      if (chosen.length) body.sections = chosen;
      if (places.length) body.areas = Object.fromEntries(places);
      if (channel.value.trim()) body.channel = channel.value.trim();
      await context.call('POST', path('events', event.id, verb), { key, body });
      const what = [...(body.seats ?? []), ...chosen, ...places.map(([name, n]) => t('placesOf', { n, area: name }))];
      return { places: context.format.list(what.length > 6 ? [...what.slice(0, 5), t('andMore', { n: what.length - 5 })] : what) };
    },
  });
}
export const blockPlaces = (context, event, seats = []) => block(context, event, 'block', seats);
export const unblockPlaces = (context, event, seats = []) => block(context, event, 'unblock', seats);

// ---- holds ----

// The places of a hold or a booking, where they are told one by one: those of an area that are alike are one line, with their number `n`.
export function groupPlaces(places) {
  const lines = new Map();
  for (const { seat, area, type, amount } of places) {
    const key = JSON.stringify([seat, area, type, amount]);
    const line = lines.get(key) ?? { seat, area, type, amount, n: 0 };
    lines.set(key, { ...line, n: line.n + 1 });
  }
  return [...lines.values()];
}

// What a hold or a booking is about, in words, with the ids of ticket types where the event has some.
export function placesOf(of, { t, format }) {
  const named = ({ seat, area, n, type }) => `${seat ?? t('placesOf', { n, area })}${type ? ` (${type})` : ''}`;
  const places = of.places ? groupPlaces(of.places).map(named)
    : [...of.seats, ...Object.entries(of.areas ?? {}).map(([area, n]) => t('placesOf', { n, area }))];
  return format.list(places.length > 6 ? [...places.slice(0, 5), t('andMore', { n: places.length - 5 })] : places);
}

export function evictHold(context, hold) {
  return perform(context, 'evict', { places: placesOf(hold, context), owner: hold.owner ?? context.t('nobody') }, {
    danger: true,
    async send(key) { await context.call('POST', path('holds', hold.id, 'evict'), { key, body: {} }); },
  });
}

export function sellHold(context, hold) {
  const reference = h('input', { name: 'reference', maxlength: '255', autocomplete: 'off' });
  return perform(context, 'sell', {
    places: placesOf(hold, context), owner: hold.owner ?? context.t('nobody'), amount: context.format.money(hold.amount, hold.currency),
  }, {
    fields: [field(context.t('reference'), reference, context.t('optional'))],
    async send(key) {
      const booking = await context.call('POST', path('holds', hold.id, 'confirm'), {
        key, body: { fence: hold.fence, ...(reference.value.trim() ? { reference: reference.value.trim() } : {}) },
      });
      return { number: booking.number };
    },
  });
}

// ---- the waiting list ----

const waitlistAction = (name, verb) => (context, event) => perform(context, name, { name: event.name }, {
  async send(key) { await context.call('POST', path('events', event.id, 'waitlist', verb), { key, body: {} }); },
});
export const pauseWaitlist = waitlistAction('pauseWaitlist', 'pause');
export const resumeWaitlist = waitlistAction('resumeWaitlist', 'resume');

// `wish` is what the entry asks for, in words.
const entryAction = (name, verb, danger) => (context, entry, wish) => perform(context, name, { number: entry.number, wish, owner: entry.owner ?? context.t('nobody') }, {
  danger,
  async send(key) { await context.call('POST', path('waitlist', entry.id, verb), { key, body: {} }); },
});
export const moveEntryFirst = entryAction('moveFirst', 'first', false);
export const evictEntry = entryAction('evictEntry', 'evict', true);

// ---- bookings ----

const paidOf = (booking) => (booking.payment ? booking.payment.amount_received - booking.payment.amount_refunded : 0);

// The booking as it is now, so that the question names the right amounts, however old the list is.
const fresh = ({ call }, { id }) => call('GET', path('bookings', id));

export async function cancelBooking(context, listed) {
  const booking = await fresh(context, listed);
  const reason = h('input', { name: 'reason', maxlength: '255', autocomplete: 'off' });
  const paid = paidOf(booking);
  return perform(context, paid > 0 ? 'cancelPaid' : 'cancelBooking', {
    number: booking.number, places: placesOf(booking, context), amount: context.format.money(paid, booking.currency),
  }, {
    danger: true,
    fields: [field(context.t('reason'), reason, context.t('optional'))],
    async send(key) {
      await context.call('POST', path('bookings', booking.id, 'cancel'), {
        key, body: reason.value.trim() ? { reason: reason.value.trim() } : {},
      });
    },
  });
}

export async function refundBooking(context, listed) {
  const { t, format } = context;
  const booking = await fresh(context, listed);
  const left = paidOf(booking);
  const digits = format.digits(booking.currency);
  const amount = h('input', { name: 'amount', inputmode: 'decimal', autocomplete: 'off' });
  return perform(context, 'refund', { number: booking.number, left: format.money(left, booking.currency) }, {
    danger: true,
    fields: [field(t('amountIn', { currency: booking.currency.toUpperCase() }), amount, t('amountHint', { left: format.money(left, booking.currency) }))],
    async send(key) {
      const body = {};
      if (amount.value.trim()) {
        body.amount = minorUnits(amount.value, digits);
        if (!(body.amount > 0)) throw new Error(t('badAmount'));
      }
      await context.call('POST', path('bookings', booking.id, 'refund'), { key, body });
      return { amount: format.money(body.amount ?? left, booking.currency) };
    },
  });
}

// ---- people ----

export function eraseOwner(context) {
  const owner = h('input', { name: 'owner', maxlength: '128', autocomplete: 'off', required: true });
  return perform(context, 'erase', {}, {
    danger: true,
    fields: [field(context.t('owner'), owner)],
    async send(key) {
      const { holds, bookings } = await context.call('POST', path('owners', 'erase'), { key, body: { owner: owner.value } });
      return { holds, bookings };
    },
  });
}
