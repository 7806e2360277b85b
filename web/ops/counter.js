// The counter: somebody stands there and wants places.  They are chosen on the map or as the best there are, held, and sold without a
// payment of the server's own; then the tickets can be printed, and a sale that was a mistake is undone by cancelling its booking.
//
//   choosing --hold--> held --confirm--> sold --next customer--> choosing
//      ^                |  `--give back, expired--> choosing  |
//      `----------------'<-----------------undo---------------'
//
// What is held or was just sold stays in `context.sales`, so that a look at another view does not lose it.

import '../seats/element.js';
import { newKey } from '../lib/api.js';
import { countdown } from '../lib/format.js';
import { cancelBooking, groupPlaces } from './actions.js';
import { button, fact, field, h, select } from './dom.js';
import { minorUnits } from './formats.js';

const TICK_MS = 250;
const AFTER_EXPIRY_MS = 1000; // the server ends a hold a moment after its time
const ASK_AGAIN_MS = 5000;
const GONE = [404, 409, 410, 422]; // statuses of refusals after which the hold may not be what the counter thinks

const path = (...segments) => `/v1/${segments.map(encodeURIComponent).join('/')}`;
const sum = (amounts) => amounts.reduce((total, amount) => total + amount, 0);

export function counter(context, id) {
  const { t, call, format, sales } = context;
  const title = h('h1', { tabindex: '-1' }, t('sellAtCounter'));
  const problem = h('p', { role: 'alert', class: 'problem' });
  const map = h('holdfast-seats', { server: '', event: id, lang: document.documentElement.lang });
  const desk = h('section', { class: 'desk panel' });
  let event = null;
  let step = 'choosing';
  let shown = null; // the step that the desk shows
  let refresh = () => {}; // brings what the desk shows up to date
  let isBusy = false;
  let isStopped = false;
  let attempt = null; // to hold: the key and the body of the last request that was not granted
  let askedAt = -Infinity; // when the server was last asked what became of a hold whose time is over
  const typeOfSeat = new Map(); // seat -> type, as it was chosen
  const inArea = new Map(); // area -> Map of type to number; without types, the type is null

  const types = () => map.types;
  const money = (amount) => format.money(amount, event.currency);
  const sentence = (error) => (error.name === 'Refusal' ? error.message : context.explain(error));

  // One request at a time.  What was refused is said; the places stay chosen.
  async function perform(work) {
    if (isBusy) return;
    isBusy = true;
    problem.textContent = '';
    for (const each of desk.querySelectorAll('button')) each.disabled = true;
    try { await work(); } catch (error) { problem.textContent = sentence(error); }
    isBusy = false;
    for (const each of desk.querySelectorAll('button')) each.disabled = false;
    if (!isStopped) show();
  }

  // ---- choosing ----

  const areaOf = (name) => map.areas.find((area) => area.name === name);
  const typeOf = (seat) => types().find((type) => type.id === typeOfSeat.get(seat)) ?? types()[0];
  const costOf = (seat) => map.priceOf(map.seat(seat).category, typeOf(seat)?.id) ?? 0;
  const countOf = (name) => sum([...inArea.get(name)?.values() ?? []]);

  function total() {
    const areas = [...inArea].flatMap(([name, counts]) => [...counts].map(([typeId, n]) => n * (map.priceOf(name, typeId) ?? 0)));
    return sum([...map.selection.map(costOf), ...areas]);
  }

  // The line of a chosen seat: { element, update() }.
  function seatLine(seat) {
    const { name } = map.seat(seat);
    const price = h('span', { class: 'number' });
    const choice = types().length > 0 && select(types().map((type) => [type.id, type.name]), typeOf(seat).id, (chosen) => { typeOfSeat.set(seat, chosen); refresh(); });
    if (choice) choice.setAttribute('aria-label', t('typeOf', { place: name }));
    const remove = button('✕', () => {
      const next = element.nextSibling ?? element.previousSibling;
      map.deselect(seat);
      (next?.querySelector('.remove') ?? desk.querySelector('h2')).focus();
    }, { class: 'remove', 'aria-label': t('removePlace', { place: name }) });
    const element = h('li', {}, h('span', { class: 'place' }, name), choice, price, remove);
    return { element, update() { price.textContent = money(costOf(seat)); } };
  }

  // Fields for the numbers of places in an area, one for each type: { elements, update() }.
  function areaFields({ name }) {
    const fields = (types().length > 0 ? types() : [null]).map((type) => {
      const control = h('input', {
        type: 'number', name: 'places', min: '0', inputmode: 'numeric', value: inArea.get(name)?.get(type?.id ?? null) ?? 0,
        on: {
          input: () => {
            const counts = inArea.get(name) ?? new Map();
            counts.set(type?.id ?? null, Math.max(0, Math.floor(Number(control.value)) || 0));
            inArea.set(name, counts);
            refresh();
          },
        },
      });
      return { type, control, element: field(' ', control, ' ') };
    });
    return {
      elements: fields.map(({ element }) => element),
      update() {
        const { available } = areaOf(name);
        for (const { type, control, element } of fields) {
          const cost = money(map.priceOf(name, type?.id) ?? 0);
          control.max = available;
          element.querySelector('label').textContent = type ? t('placesOfType', { area: name, type: type.name, price: cost }) : t('placesAt', { area: name, price: cost });
          element.querySelector('small').textContent = t('placesLeft', { n: available });
        }
      },
    };
  }

  function bestForm() {
    const quantity = h('input', { type: 'number', name: 'quantity', min: '1', max: event.max_per_hold, value: '2', inputmode: 'numeric' });
    const category = select([['', t('anyCategory')], ...map.plan.categories.map(({ name }) => [name, name])], '', () => {});
    const find = () => perform(() => hold({ best_available: { quantity: Number(quantity.value), ...(category.value ? { category: category.value } : {}) } }));
    return h('details', {}, h('summary', {}, t('bestSeats')), h('div', { class: 'fields' }, field(t('howMany'), quantity), field(t('category'), category)),
      button(t('holdBest'), find));
  }

  // The request for what is chosen; `types` only where the event has any.
  function wish() {
    const seats = map.selection;
    const areas = Object.fromEntries([...inArea].filter(([name]) => countOf(name) > 0).map(([name, counts]) => [name,
      types().length > 0 ? Object.fromEntries([...counts].filter(([, n]) => n > 0)) : countOf(name)]));
    return {
      ...(seats.length > 0 ? { seats } : {}), ...(Object.keys(areas).length > 0 ? { areas } : {}),
      ...(types().length > 0 && seats.length > 0 ? { types: Object.fromEntries(seats.map((seat) => [seat, typeOf(seat).id])) } : {}),
    };
  }

  async function hold(places) {
    const owner = desk.querySelector('[name="owner"]')?.value.trim();
    const chosen = map.selection;
    const body = { event: id, ...places, ...(owner ? { owner } : {}) };
    const text = JSON.stringify(body);
    if (attempt?.text !== text) attempt = { text, key: newKey() }; // after a lost answer the same request gets the same hold
    map.clear(); // the map would take seats for lost that turn to held meanwhile
    try {
      const made = await call('POST', '/v1/holds', { key: attempt.key, body });
      attempt = null;
      await keep(made);
    } catch (error) {
      for (const seat of chosen) try { map.select(seat); } catch { /* somebody else has it */ }
      throw error;
    }
  }

  const typesNow = () => JSON.stringify(types());
  let offered = ''; // the ticket types that the desk has fields for

  function choosing() {
    offered = typesNow();
    const cart = h('ul', { class: 'cart', 'aria-label': t('chosenPlaces') });
    const lines = new Map(); // seat -> its line
    const areas = map.areas.map(areaFields);
    const owner = h('input', { name: 'owner', maxlength: '128', autocomplete: 'off', value: desk.querySelector('[name="owner"]')?.value });
    const sumOf = h('p', { class: 'total', role: 'status' });
    const go = button(t('holdPlaces'), () => perform(() => hold(wish())), { class: 'primary' });
    refresh = () => {
      const seats = map.selection;
      for (const [seat, { element }] of lines) {
        if (seats.includes(seat)) continue;
        element.remove();
        lines.delete(seat);
      }
      for (const seat of seats.filter((each) => !lines.has(each))) {
        lines.set(seat, seatLine(seat));
        cart.append(lines.get(seat).element);
      }
      for (const each of [...lines.values(), ...areas]) each.update();
      cart.hidden = seats.length === 0;
      const n = seats.length + sum([...inArea.keys()].map(countOf));
      sumOf.textContent = t('totalOf', { n, amount: money(total()) });
      go.disabled = isBusy || n === 0;
    };
    return [
      h('h2', { tabindex: '-1' }, t('counterChoose')), h('p', { class: 'quiet' }, t('counterChooseWhat')), cart,
      areas.flatMap(({ elements }) => elements), map.plan.sections.length > 0 && bestForm(), field(t('customer'), owner, t('customerHint')),
      h('div', { class: 'checkout' }, sumOf, go),
    ];
  }

  // ---- held ----

  async function keep(made) {
    sales.set(id, { hold: made });
    await map.resume(made.id).catch(() => {}); // the map's own picture of the hold; the sale does not depend on it
    inArea.clear();
    typeOfSeat.clear();
    step = 'held';
  }

  function forget() {
    sales.delete(id);
    map.forget();
    step = 'choosing';
  }

  // The places of a hold or a booking with what each costs, where the server says so.
  function placeLines({ places, seats, areas }) {
    const name = (seat) => map.seat(seat)?.name ?? seat;
    if (places) {
      return groupPlaces(places).map(({ seat, area, type, amount, n }) => [seat ? name(seat) : t('placesOf', { n, area }),
        types().find((each) => each.id === type)?.name ?? type, amount === null ? null : n * amount]);
    }
    return [...seats.map((seat) => [name(seat), null, map.seat(seat)?.price ?? null]), ...Object.entries(areas).map(([area, n]) => [t('placesOf', { n, area }), null, null])];
  }
  const placeList = (sale) => h('ul', { class: 'cart', 'aria-label': t('places') }, placeLines(sale).map(([place, type, amount]) => h('li', {},
    h('span', { class: 'place' }, [place, type].filter(Boolean).join(', ')), amount !== null && h('span', { class: 'number' }, money(amount)))));

  // Asks what became of the hold: it goes on, it was sold after all, or it is gone.  Resolves to its status.
  async function judge() {
    const sale = sales.get(id);
    try {
      const hold = await call('GET', path('holds', sale.hold.id));
      if (hold.status === 'active') sales.set(id, { ...sale, hold });
      else if (hold.status === 'confirmed') finish(await call('GET', path('bookings', hold.booking)));
      else forget();
      return hold.status;
    } catch (error) {
      if (error.status === 404) forget();
      throw error;
    }
  }

  // A request about the hold failed: that stands, unless the sale was made by an earlier one.
  async function refused(error) {
    if (!GONE.includes(error.status) || await judge() !== 'confirmed') throw error;
  }

  const release = () => perform(async () => {
    const { hold: held } = sales.get(id);
    try { await call('DELETE', path('holds', held.id)); } catch (error) { return refused(error); }
    forget();
    return context.tell(t('gaveBack'));
  });

  function finish(booking) {
    sales.set(id, { booking });
    map.forget();
    step = 'sold';
  }

  function confirm(reference) {
    return perform(async () => {
      const { hold: held, tried } = sales.get(id);
      const key = tried?.reference === reference ? tried.key : newKey(); // a repeat after a lost answer is the same sale
      sales.set(id, { hold: held, tried: { key, reference } });
      try {
        finish(await call('POST', path('holds', held.id, 'confirm'), { key, body: { fence: held.fence, ...(reference ? { reference } : {}) } }));
      } catch (error) { await refused(error); }
    });
  }

  function held() {
    const { hold: now } = sales.get(id);
    const reference = h('input', { name: 'reference', maxlength: '255', autocomplete: 'off' });
    const left = h('strong', { class: 'left' });
    const received = h('input', { name: 'received', inputmode: 'decimal', autocomplete: 'off' });
    const change = h('output', {});
    const digits = format.digits(event.currency);
    received.addEventListener('input', () => {
      const amount = minorUnits(received.value, digits);
      change.textContent = amount >= now.amount ? t('changeBack', { amount: money(amount - now.amount) }) : '';
    });
    return [
      h('h2', { tabindex: '-1' }, t('counterPay', { amount: money(now.amount) })),
      h('p', {}, t('heldFor'), ' ', left),
      placeList(now),
      field(t('received', { currency: event.currency.toUpperCase() }), received, t('receivedHint')), change,
      field(t('reference'), reference, t('referenceHint')),
      h('div', { class: 'buttons' },
        button(t('sellNow'), () => confirm(reference.value.trim()), { class: 'primary' }), button(t('giveBack'), release)),
    ];
  }

  // ---- sold ----

  function sold() {
    const { booking } = sales.get(id);
    const venue = [event.venue, event.venue_address].filter(Boolean).join(', ');
    return [
      h('h2', { tabindex: '-1' }, t('counterSold')),
      h('div', { class: 'receipt' },
        h('h3', {}, event.name),
        event.starts_at && h('p', {}, format.start(event)), venue && h('p', {}, venue),
        placeList(booking),
        h('dl', { class: 'facts' }, fact(t('number'), booking.number), fact(t('amount'), money(booking.amount)),
          booking.reference && fact(t('reference'), booking.reference), fact(t('soldAt'), format.date(booking.created_at)))),
      h('div', { class: 'buttons' },
        button(t('nextCustomer'), () => { forget(); show(); }, { class: 'primary' }), button(t('print'), () => window.print()),
        button(t('undo'), async () => {
          try { if (await cancelBooking(context, booking)) { forget(); show(); } } catch (error) { problem.textContent = sentence(error); }
        }, { class: 'danger' })),
    ];
  }

  // ---- the view ----

  function show() {
    if (isStopped || !event || !map.plan) return;
    if (shown !== step) {
      refresh = () => {};
      map.interactive = step === 'choosing';
      desk.replaceChildren(...{ choosing, held, sold }[step]().flat().filter(Boolean));
      if (shown !== null) desk.querySelector('h2').focus();
      shown = step;
    }
    refresh();
    tick();
  }

  // The time that is left, by the server's clock.  At its end the server is asked what became of the hold.
  function tick() {
    const now = sales.get(id)?.hold;
    if (step !== 'held' || !now || isBusy) return;
    const ms = Date.parse(now.expires_at) - context.now();
    const left = desk.querySelector('.left');
    if (left && left.textContent !== countdown(ms)) left.textContent = countdown(ms);
    if (ms > -AFTER_EXPIRY_MS || performance.now() - askedAt < ASK_AGAIN_MS) return;
    askedAt = performance.now();
    perform(async () => {
      if (['active', 'confirmed'].includes(await judge())) return;
      throw Object.assign(new Error(t('timeOver')), { name: 'Refusal' });
    });
  }

  async function begin() {
    try {
      event = await call('GET', path('events', id));
      if (isStopped) return;
      title.textContent = t('counterOf', { name: event.name });
      await map.ready;
      const sale = sales.get(id);
      if (sale?.hold) {
        step = 'held';
        await map.resume(sale.hold.id).catch(() => {});
      } else if (sale?.booking) step = 'sold';
      show();
    } catch (error) {
      if (error.status === 404) title.textContent = t('noSuchEvent');
      problem.textContent = sentence(error);
    }
  }

  for (const news of ['select', 'event', 'change']) map.addEventListener(news, () => { if (shown === 'choosing') refresh(); });
  map.addEventListener('event', () => { // other ticket types are other fields
    if (shown !== 'choosing' || offered === typesNow()) return;
    for (const counts of inArea.values()) {
      if (counts.has(null)) counts.set(types()[0].id, counts.get(null)); // until now there were none
      counts.delete(null);
    }
    shown = null;
    show();
  });
  map.addEventListener('refuse', ({ detail }) => { problem.textContent = detail.message; });
  map.addEventListener('select', ({ detail }) => { if (detail.added) problem.textContent = ''; });
  const ticking = setInterval(tick, TICK_MS);
  begin();
  const element = h('div', { class: 'counter' }, h('p', {}, h('a', { href: `#/events/${encodeURIComponent(id)}` }, t('backToEvent'))), title, problem,
    h('div', { class: 'bench' }, h('section', { class: 'map' }, h('h2', { class: 'visually-hidden' }, t('map')), map), desk));
  return { title: t('sellAtCounter'), element, stop() { isStopped = true; clearInterval(ticking); } };
}
