// What the buyer's page shows.  The markup is in event.html; this file fills it, and decides nothing.

import { venueText, venueZone } from '../lib/venue_time.js';
import { byId, element } from './dom.js';

const sum = (places) => Object.values(places ?? {}).reduce((total, n) => total + n, 0);

// Are there seats that are offered only to those who ask for them?
function hasAccessible({ accessible, sections }) {
  const listed = (list) => (Array.isArray(list) ? list : []);
  return accessible?.length > 0 || listed(sections).some(({ rows }) => listed(rows).some(({ seats }) => listed(seats).some((seat) => seat.accessible)));
}

export class Screen {
  #map;
  #places;
  #t;
  #lang;

  constructor(map, places, t, lang) {
    this.#map = map;
    this.#places = places;
    this.#t = t;
    this.#lang = lang;
  }

  // Says what just happened, to eyes and to screen readers.  `kind` is good, bad or nothing.
  say(text, kind = '') {
    const status = byId('status');
    status.className = `message ${kind}`;
    status.textContent = text;
    for (const animation of status.getAnimations?.() ?? []) animation.currentTime = 0; // where it fades, it begins anew
  }

  showSale(sale) {
    const { name, venue, venue_address: address, starts_at: startsAt, doors_at: doorsAt, description, max_per_hold: most } = sale;
    const time = (at, options) => venueText(this.#t, at, venueZone(sale), this.#lang, options);
    byId('name').textContent = name;
    document.title = name;
    byId('when').textContent = [venue, address, startsAt && time(startsAt)].filter(Boolean).join(' · ');
    byId('more-about').hidden = !doorsAt && !description;
    byId('doors').hidden = !doorsAt;
    byId('doors').textContent = doorsAt ? this.#t('doorsAt', { time: time(doorsAt) }) : '';
    byId('about').hidden = !description;
    byId('about').textContent = description ?? '';
    byId('best-quantity').max = most;
    byId('best-quantity').value = Math.min(2, most);
    byId('best-accessible-field').hidden = !hasAccessible(sale);
  }

  // What an event is about is open to read where there is nothing to choose.
  showAbout() { byId('more-about').open = true; }

  showMissing(title) {
    byId('stage').hidden = true;
    byId('content').dataset.view = 'cart';
    byId('name').textContent = title;
    document.title = title;
  }

  // Shows the parts of the page that belong to a phase.  With `isMapOpen` the buyer looks at the map again while seats are held.
  showPhase(phase, canBuy, isMapOpen) {
    const isHeld = phase === 'held' || phase === 'paying';
    const isPaying = phase === 'paying';
    const hasOrder = isHeld || (phase === 'choosing' && canBuy);
    const page = byId('content');
    page.dataset.phase = phase;
    page.dataset.view = phase === 'choosing' || (phase === 'held' && isMapOpen) ? 'map' : 'cart';
    page.toggleAttribute('data-order', hasOrder);
    byId('order').hidden = !hasOrder;
    byId('choose').hidden = !(phase === 'choosing' && canBuy);
    byId('seats').hidden = !(isHeld || (phase === 'choosing' && canBuy));
    byId('held').hidden = !isHeld;
    byId('change').disabled = isPaying;
    byId('clock').hidden = !isHeld;
    byId('payment').hidden = !isHeld;
    byId('expired').hidden = phase !== 'expired';
    byId('booked').hidden = phase !== 'booked';
    byId('give-back').disabled = isPaying;
    byId('pay-button').disabled = isPaying;
    byId('pay-button').setAttribute('aria-busy', String(isPaying));
  }

  // `urgency` is '', 'soon' or 'last'.
  showTime(left, urgency, canHaveMore) {
    if (byId('timer').textContent !== left) byId('timer').textContent = left;
    byId('clock').className = `clock ${urgency}`;
    byId('more-time').hidden = !canHaveMore;
  }

  // ---- choosing ----

  // Forms for seats are of use only where there are seats.
  showCategories() {
    const { categories } = this.#places;
    const hasSeats = (this.#map.plan?.sections.length ?? 0) > 0;
    byId('find').hidden = !hasSeats;
    byId('best').hidden = !hasSeats;
    byId('best-category-field').hidden = categories.length < 2;
    const chosen = byId('best-category').value;
    byId('best-category').replaceChildren(element('option', { value: '' }, this.#t('anyCategory')),
      ...categories.map(({ name, price }) => element('option', { value: name }, price === null ? name : `${name} · ${this.#places.money(price)}`)));
    byId('best-category').value = chosen;
  }

  // A number box for each area that is sold; `choose(name, field, isTyping)` is called when one changes.
  showAreas(mostPerHold, choose) {
    const box = byId('areas');
    const { areas, areaSelection } = this.#map;
    box.hidden = areas.length === 0;
    for (const { name, price, available } of areas) {
      const field = this.areaField(name) ?? this.#addAreaField(name, choose);
      field.max = Math.min(available, mostPerHold);
      if (document.activeElement !== field) field.value = areaSelection[name] ?? 0;
      byId(`${field.id}-hint`).textContent = this.#t('areaHint', { price: this.#places.money(price), n: available });
    }
  }

  areaField(name) { return [...byId('areas').querySelectorAll('input')].find((field) => field.name === name); }

  #addAreaField(name, choose) {
    const id = `area-${byId('areas').querySelectorAll('input').length}`;
    const field = element('input', { id, name, type: 'number', inputMode: 'numeric', min: 0, step: 1, value: 0, className: 'short', 'aria-describedby': `${id}-hint` });
    field.addEventListener('input', () => choose(name, field, true));
    field.addEventListener('change', () => choose(name, field, false));
    byId('areas').append(element('div', { className: 'row area' },
      element('div', { className: 'grow' }, element('label', { for: id }, name), element('span', { id: `${id}-hint`, className: 'soft' })), field));
    return field;
  }

  // ---- the list of places ----

  // `hold` may be null.  `chosen` and `areas` are places that are not held yet.  `removeHeld({ seats?, areas? })` is null if the
  // hold cannot be changed; `removeChosen(seat)` and `removeArea(name)` take back a choice.
  showPlaces({ hold, chosen, areas, removeHeld, removeChosen, removeArea }) {
    const items = [
      ...(hold?.seats ?? []).map((id) => this.#seat(id, removeHeld && (() => removeHeld({ seats: [id] })))),
      ...Object.entries(hold?.areas ?? {}).map(([name, n]) => this.#area(name, n, removeHeld && (() => removeHeld({ areas: { [name]: n } })))),
      ...chosen.map((id) => this.#seat(id, () => removeChosen(id))),
      ...Object.entries(areas).map(([name, n]) => this.#area(name, n, () => removeArea(name))),
    ];
    const more = this.#places.total(chosen, areas);
    const nAreas = sum(hold?.areas) + sum(areas), n = (hold?.seats.length ?? 0) + chosen.length + nAreas;
    byId('seats-list').replaceChildren(...items);
    byId('seats-list').hidden = items.length === 0;
    byId('seats-none').hidden = items.length > 0;
    byId('count').textContent = n === 0 ? this.#t('noneChosen') : this.#t(nAreas > 0 ? 'placeCount' : 'seatCount', { n });
    byId('total-amount').textContent = n > 0 && more !== null ? this.#places.money(more + (hold?.amount ?? 0)) : '';
  }

  showLone(text) {
    byId('lone').hidden = !text;
    byId('lone').textContent = text;
  }
  showsLone(text) { return byId('lone').textContent === text; }

  #seat(id, remove) { return this.#item(this.#places.name(id), this.#places.name(id), this.#places.price(id), remove); }
  #area(name, n, remove) { return this.#item(this.#t('places', { area: name, n }), name, this.#places.total([], { [name]: n }), remove); }

  // One line: what it is, its price, and a button that removes it.
  #item(text, name, price, remove) {
    const parts = [element('span', { className: 'seat-name' }, text)];
    if (price !== null) parts.push(element('span', { className: 'price' }, this.#places.money(price)));
    if (remove) parts.push(element('button', { type: 'button', 'aria-label': this.#t('remove', { seat: name }), onclick: remove }, this.#t('removeShort')));
    return element('li', {}, ...parts);
  }

  // The same lines without anything to do.
  #lines({ seats, areas }) {
    return [...seats.map((id) => this.#item(this.#places.name(id), '', null)), ...Object.entries(areas ?? {}).map(([name, n]) => this.#item(this.#t('places', { area: name, n }), '', null))];
  }

  // A removed line takes the focus with it: the first line gets it, or the heading of the list.
  focusAfterRemoval() { (byId('seats-list').querySelector('button') ?? byId('seats-title')).focus(); }

  // The button that holds what is chosen; with `isBack`, where nothing more is, it only leads back to the payment.
  showHoldButton({ isShown, isEnabled, isBack }) {
    byId('hold').hidden = !isShown;
    byId('hold').disabled = !isEnabled;
    byId('hold').lastElementChild.textContent = this.#t(isBack ? 'continueHeld' : 'continueMeans');
  }

  // Where nothing is chosen yet, a narrow screen leads to the forms below the map.
  showWayToBest(isShown) {
    byId('to-best').hidden = !isShown || byId('best').hidden;
    byId('order').classList.toggle('empty', !byId('to-best').hidden);
  }

  // ---- paying ----

  // `amount` is null where nothing can be paid now.
  showPayButton(amount) {
    byId('pay-button').hidden = amount === null;
    byId('total').hidden = amount !== null;
    if (amount !== null) byId('pay-button').textContent = amount > 0 ? this.#t('pay', { amount: this.#places.money(amount) }) : this.#t('book');
  }

  showCardNote(text) {
    byId('card-note').textContent = text;
    byId('card-note').hidden = !text;
  }

  showCardError(text) {
    byId('card-error').textContent = text ?? '';
    byId('card-error').hidden = !text;
  }

  // ---- the end ----

  // What was held until its time was over.  `gone` are the places of it that somebody else has by now.
  showExpired(lapsed, gone) {
    byId('expired-seats').replaceChildren(...this.#lines(lapsed));
    byId('expired-state').textContent = gone.length === 0 ? this.#t('sameFree') : this.#t('sameGone', { n: gone.length, seats: this.#places.list(gone) });
    byId('same').hidden = gone.length > 0;
    byId('again').className = gone.length > 0 ? 'wide primary' : 'wide';
  }

  // `link` leads back to the booking.
  showBooking(booking, sale, link) {
    const { number, amount, payment } = booking;
    const fact = (name, value) => (value ? [element('dt', {}, this.#t(name)), element('dd', {}, value)] : []);
    const time = (at) => at && venueText(this.#t, at, venueZone(sale), this.#lang);
    byId('booked-facts').replaceChildren(
      ...fact('what', sale.name),
      ...fact('when', time(sale.starts_at)),
      ...fact('where', [sale.venue, sale.venue_address].filter(Boolean).join(', ')),
      ...fact('orderNumber', number),
      ...(payment ? fact('paid', this.#places.money(amount)) : fact('total', amount > 0 ? this.#places.money(amount) : this.#t('free'))),
    );
    byId('booked-seats').replaceChildren(...this.#lines(booking));
    byId('keep-link').href = link;
    byId('copy-link').hidden = !navigator.clipboard;
    this.#offerCalendar(booking, sale).catch(() => {}); // without it there is no button
  }

  async #offerCalendar(booking, sale) {
    const link = byId('calendar');
    URL.revokeObjectURL(link.href);
    link.hidden = true;
    if (!sale.starts_at) return;
    const { calendarOf } = await import('./calendar.js');
    const places = [...booking.seats.map((id) => this.#places.name(id)), ...Object.entries(booking.areas ?? {}).map(([area, n]) => this.#t('places', { area, n }))];
    link.href = URL.createObjectURL(new Blob([calendarOf({ event: sale, booking, places, host: location.hostname })], { type: 'text/calendar' }));
    link.hidden = false;
  }
}
