// What the buyer's page shows.  The markup is in event.html; this file fills it, and decides nothing.

import { venueText, venueZone } from '../lib/venue_time.js';
import { byId, element, withBrand } from './dom.js';

// Are there seats that are offered only to those who ask for them?
export function hasAccessible({ accessible, sections }) {
  const listed = (list) => (Array.isArray(list) ? list : []);
  return accessible?.length > 0 || listed(sections).some(({ rows }) => listed(rows).some(({ seats }) => listed(seats).some((seat) => seat.accessible)));
}

let nFields = 0; // that have been made

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
    // The map ends where the bar begins, which has another line while more time can be had.
    const bar = byId('order').parentElement;
    new ResizeObserver(() => document.documentElement.style.setProperty('--bar-now', `${bar.offsetHeight}px`)).observe(bar);
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
    this.showTitle('');
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

  // `news` is what the reader of another tab is to know.
  showTitle(news) {
    const title = withBrand([news, byId('name').textContent].filter(Boolean).join(' · '));
    if (document.title !== title) document.title = title;
  }

  // What an event is about is open to read where there is nothing to choose.
  showAbout() { byId('more-about').open = true; }

  showMissing(title) {
    byId('stage').hidden = true;
    byId('content').dataset.view = 'cart';
    byId('name').textContent = title;
    document.title = withBrand(title);
  }

  // Shows the parts of the page that belong to a phase.  With `isMapOpen` the buyer looks at the map again while seats are held; where
  // all is sold out, only the waiting list is left.
  showPhase(phase, { canBuy, isMapOpen, isSoldOut }) {
    const isHeld = phase === 'held' || phase === 'paying';
    const isPaying = phase === 'paying';
    const hasOrder = isHeld || (phase === 'choosing' && canBuy);
    const page = byId('content');
    page.dataset.phase = phase;
    page.dataset.view = phase === 'choosing' || (phase === 'held' && isMapOpen) ? 'map' : 'cart';
    page.toggleAttribute('data-order', hasOrder);
    byId('order').hidden = !hasOrder;
    byId('choose').hidden = !(phase === 'choosing' && canBuy && !isSoldOut);
    byId('seats').hidden = !(isHeld || (phase === 'choosing' && canBuy && !isSoldOut));
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

  // A number box for each area that is sold and each ticket type; `choose(field, isTyping)` is called when one changes.
  showAreas(mostPerHold, choose) {
    const { areas, areaTypes, types } = this.#map;
    byId('areas').hidden = areas.length === 0;
    const wanted = types.length > 0 ? types : [{ id: '', name: '' }];
    for (const field of byId('areas').querySelectorAll('input')) if (!wanted.some(({ id }) => id === field.dataset.type)) field.closest('.area').remove();
    for (const { name, available } of areas) {
      for (const type of wanted) {
        const field = this.areaField(name, type.id) ?? this.#addAreaField(name, type, choose);
        field.max = Math.min(available, mostPerHold);
        if (document.activeElement !== field) field.value = areaTypes[name]?.[type.id] ?? 0;
        byId(`${field.id}-hint`).textContent = this.#t('areaHint', { price: this.#places.money(this.#places.areaPrice(name, type.id || undefined)), n: available });
      }
    }
  }

  // The box of an area, of one of its ticket types or the first.
  areaField(name, type) {
    return [...byId('areas').querySelectorAll('input')].find((field) => field.name === name && (type === undefined || field.dataset.type === type));
  }

  #addAreaField(name, type, choose) {
    const id = `area-${nFields++}`;
    const field = element('input', { id, name, type: 'number', inputMode: 'numeric', min: 0, step: 1, value: 0, className: 'short', 'data-type': type.id, 'aria-describedby': `${id}-hint` });
    field.addEventListener('input', () => choose(field, true));
    field.addEventListener('change', () => choose(field, false));
    const label = type.name ? this.#t('typed', { name, type: type.name }) : name;
    byId('areas').append(element('div', { className: 'row area' },
      element('div', { className: 'grow' }, element('label', { for: id }, label), element('span', { id: `${id}-hint`, className: 'soft' })), field));
    return field;
  }

  // ---- the list of places ----

  // `held` and `chosen` are lines as in places.js, `amount` what the held ones cost.  `change(line, type)` gives a place another ticket
  // type and `remove(line)` gives it back or takes back the choice; they are null if the hold cannot be changed.
  showPlaces({ held, amount, chosen, isSoldOut, changeHeld, removeHeld, changeChosen, removeChosen }) {
    const items = [...held.map((line) => this.#line(line, changeHeld, removeHeld)), ...chosen.map((line) => this.#line(line, changeChosen, removeChosen))];
    const lines = [...held, ...chosen];
    const nAreas = lines.reduce((sum, { n }) => sum + (n ?? 0), 0), nSeats = lines.filter(({ seat }) => seat).length;
    const isPriced = lines.length > 0 && chosen.every((line) => line.amount !== null);
    const list = byId('seats-list'), focused = list.contains(document.activeElement) && document.activeElement.getAttribute('aria-label');
    list.replaceChildren(...items);
    if (focused) [...list.querySelectorAll('[aria-label]')].find((each) => each.getAttribute('aria-label') === focused)?.focus();
    byId('seats-list').hidden = items.length === 0;
    byId('seats-none').hidden = items.length > 0;
    byId('count').textContent = items.length === 0 ? (isSoldOut ? '' : this.#t('noneChosen')) : this.#t(nAreas > 0 ? 'placeCount' : 'seatCount', { n: nAreas + nSeats });
    byId('total-amount').textContent = isPriced ? this.#places.money(chosen.reduce((sum, line) => sum + line.amount, amount)) : '';
  }

  showLone(text) {
    byId('lone').hidden = !text;
    byId('lone').textContent = text;
  }
  get lone() { return byId('lone').textContent; }

  #nameOf({ seat, area, n }) { return seat ? this.#places.name(seat) : this.#t('places', { area, n }); }

  // One line: what it is, of which ticket type, its price, and a button that removes it.
  #line(line, change, remove) {
    const { seat, area, n, type } = line;
    const amount = line.amount ?? (seat ? this.#places.price(seat) : (this.#places.areaPrice(area) ?? NaN) * n);
    const parts = [element('span', { className: 'seat-name' }, this.#nameOf(line), ...(seat && change ? [this.#typeField(line, change)] : this.#typeText(type)))];
    if (Number.isFinite(amount)) parts.push(element('span', { className: 'price' }, this.#places.money(amount)));
    const what = seat ? this.#places.name(seat) : type ? this.#t('typed', { name: area, type: this.#places.typeName(type) }) : area;
    if (remove) parts.push(element('button', { type: 'button', 'aria-label': this.#t('remove', { seat: what }), title: this.#t('removeShort'), onclick: () => remove(line) }, '✕'));
    return element('li', {}, ...parts);
  }

  #typeText(type) { return type ? [element('span', { className: 'soft type' }, this.#places.typeName(type))] : []; }

  #typeField({ seat, type }, change) {
    const { types } = this.#map;
    if (types.length === 0) return '';
    const field = element('select', { className: 'type', 'aria-label': this.#t('typeOf', { seat: this.#places.name(seat) }) },
      ...types.map(({ id, name }) => element('option', { value: id, selected: id === type }, `${name} · ${this.#places.money(this.#places.price(seat, id))}`)));
    field.addEventListener('change', () => change({ seat, type }, field.value));
    return field;
  }

  // Lines without anything to do.
  #lines(held) { return this.#places.linesOf(held).map((line) => element('li', {}, element('span', { className: 'seat-name' }, this.#nameOf(line), ...this.#typeText(line.type)))); }

  // A removed line takes the focus with it: the first line gets it, or the heading of the list.
  focusAfterRemoval() { (byId('seats-list').querySelector('button') ?? byId('seats-title')).focus(); }

  // The button that holds what is chosen; with `isBack`, where nothing more is, it only leads back to the payment.
  showHoldButton({ isShown, isEnabled, isBack }) {
    byId('hold').hidden = !isShown;
    byId('hold').disabled = !isEnabled;
    byId('hold').lastElementChild.textContent = this.#t(isBack ? 'continueHeld' : 'continueMeans');
  }

  // Where nothing is chosen yet, a narrow screen leads to the forms below the map.
  showWayDown(isShown, isSoldOut) {
    byId('to-best').hidden = !isShown || (byId('best').hidden && !isSoldOut);
    byId('to-best').textContent = this.#t(isSoldOut ? 'waitTitle' : 'bestShort');
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

  // What was held until its time was over, and whether it was an offer of the waiting list.  `gone` are the places of it that somebody
  // else has by now.
  showExpired(lapsed, gone, isOffer) {
    byId('expired-text').textContent = this.#t(isOffer ? 'offerLapsed' : 'expiredText');
    byId('expired-wait').hidden = !isOffer || gone.length === 0;
    byId('expired-seats').replaceChildren(...this.#lines(lapsed));
    const n = lapsed.seats.length + Object.values(lapsed.areas ?? {}).reduce((sum, each) => sum + each, 0);
    byId('expired-state').textContent = gone.length === 0 ? this.#t('sameFree', { n }) : this.#t('sameGone', { n: gone.length, seats: this.#places.list(gone) });
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
    const places = this.#places.linesOf(booking).map((line) => [this.#nameOf(line), line.type && this.#places.typeName(line.type)].filter(Boolean).join(', '));
    link.href = URL.createObjectURL(new Blob([calendarOf({ event: sale, booking, places, host: location.hostname })], { type: 'text/calendar' }));
    link.hidden = false;
  }
}
