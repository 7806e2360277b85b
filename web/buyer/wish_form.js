// The form in which a buyer says what to wait for: how many places, where, and of which ticket types.

import { byId, element } from './dom.js';

const ANY = '[]';

export class WishForm {
  #map;
  #places;
  #t;
  #sale = null;

  constructor(map, places, t) {
    this.#map = map;
    this.#places = places;
    this.#t = t;
    for (const field of ['wish-where', 'wish-quantity', 'wish-types']) byId(field).addEventListener('input', () => this.#adapt());
  }

  // What can be wished of the event; what is filled in stays.
  show(sale, hasAccessible) {
    this.#sale = sale;
    byId('wish-quantity').max = sale.max_per_hold;
    byId('wish-accessible-field').dataset.possible = hasAccessible;
    this.#showWhere();
    this.#showTypes();
    this.#adapt();
  }

  #showWhere() {
    const field = byId('wish-where'), { plan, areas } = this.#map, { categories } = this.#places;
    const options = (kind, names) => names.map((name) => element('option', { value: JSON.stringify([kind, name]) }, name));
    const group = (label, list) => (list.length > 0 ? [element('optgroup', { label: this.#t(label) }, ...list)] : []);
    const names = categories.map(({ name }) => name);
    const sections = (plan?.sections ?? []).map(({ name }) => name).filter((name) => !names.includes(name));
    const chosen = field.value;
    field.replaceChildren(
      ...(plan?.sections.length > 0 ? [element('option', { value: ANY }, this.#t('anySeat'))] : []),
      ...group('category', names.length > 1 ? options('category', names) : []),
      ...group('section', sections.length > 1 ? options('section', sections) : []),
      ...group('areas', options('area', areas.map(({ name }) => name))));
    if ([...field.options].some(({ value }) => value === chosen)) field.value = chosen;
    byId('wish-where-field').hidden = field.options.length < 2;
  }

  // A number box for each ticket type.
  #showTypes() {
    const { types } = this.#map, boxes = this.#boxes;
    byId('wish-quantity-field').hidden = types.length > 0;
    byId('wish-types-field').hidden = types.length === 0;
    if (types.length === boxes.length && types.every(({ id }, i) => boxes[i].dataset.type === id)) return;
    const before = new Map(boxes.map(({ dataset, value }) => [dataset.type, value]));
    byId('wish-types').replaceChildren(...types.map(({ id, name }, i) => element('div', { className: 'row area' },
      element('label', { className: 'grow', for: `wish-type-${i}` }, name),
      element('input', {
        id: `wish-type-${i}`, type: 'number', inputMode: 'numeric', min: 0, step: 1, className: 'short', 'data-type': id,
        value: before.get(id) ?? (i > 0 ? 0 : byId('wish-quantity').value),
      }))));
  }

  get #boxes() { return [...byId('wish-types').querySelectorAll('input')]; }
  get #where() { return JSON.parse(byId('wish-where').value || ANY); }
  get #quantity() { return this.#boxes.length > 0 ? this.#boxes.reduce((sum, { value }) => sum + Number(value), 0) : Number(byId('wish-quantity').value); }

  // Shows the fields that go with what is chosen.
  #adapt() {
    const isArea = this.#where[0] === 'area';
    byId('wish-together-field').hidden = isArea || this.#quantity < 2;
    byId('wish-accessible-field').hidden = isArea || byId('wish-accessible-field').dataset.possible !== 'true';
  }

  // Fills in what could not be had: { quantity or types (numbers by their ids), where: [kind, name], accessible }.
  fill({ quantity, types, where = [], accessible = false }) {
    byId('wish-where').value = JSON.stringify(where);
    if (byId('wish-where').selectedIndex < 0) byId('wish-where').selectedIndex = 0;
    byId('wish-quantity').value = quantity;
    this.#boxes.forEach((box, i) => { box.value = types ? types[box.dataset.type] ?? 0 : i > 0 ? 0 : quantity; });
    byId('wish-accessible').checked = accessible;
    this.#adapt();
  }

  // Resolves to what is filled in as the API has it, or to null after it has complained: `complain(field, text)`.
  read(now, complain) {
    const boxes = this.#boxes, fields = boxes.length > 0 ? boxes : [byId('wish-quantity')];
    const quantity = this.#quantity, most = this.#sale.max_per_hold, until = byId('wish-until');
    const isGood = fields.every(({ value }) => Number.isInteger(Number(value)) && Number(value) >= 0) && quantity >= 1 && quantity <= most;
    for (const field of fields) field.setAttribute('aria-invalid', String(!isGood));
    const isLate = !until.validity.valid || (until.value !== '' && new Date(until.value).getTime() <= now);
    until.setAttribute('aria-invalid', String(isLate));
    if (!isGood) return complain(fields[0], this.#t('badWish', { most }));
    if (isLate) return complain(until, this.#t('badUntil'));
    return { ...this.#wish(quantity), ...(until.value ? { until: new Date(until.value).toISOString() } : {}) };
  }

  #wish(quantity) {
    const [kind, name] = this.#where, boxes = this.#boxes;
    const types = boxes.length > 0 && Object.fromEntries(boxes.filter(({ value }) => Number(value) > 0).map(({ dataset, value }) => [dataset.type, Number(value)]));
    if (kind === 'area') return { areas: { [name]: types || quantity } };
    return {
      best_available: {
        quantity, ...(kind ? { [kind]: name } : {}), ...(types ? { types } : {}),
        ...(byId('wish-accessible').checked && !byId('wish-accessible-field').hidden ? { accessible: true } : {}),
        ...(byId('wish-together').checked ? {} : { adjacent: false }),
      },
    };
  }
}
