// The places of a new event, as a form: sections and areas that are counted, or a layout that is given by a file or another event,
// of which the prices can be changed.
//
// Each control knows the path of its field in the body (`data-path`), by which the server's complaints find it.

import { button, field, h, newId } from './dom.js';
import { minorUnits } from './formats.js';

// An amount in the currency's smallest unit; a text that is none stays as it is, for the server to complain of.  `digits()` is how
// many digits the currency has that is chosen by then.
function amountOf(control, digits) {
  const amount = minorUnits(control.value, digits());
  return Number.isNaN(amount) ? control.value : amount;
}
const countOf = ({ value }) => (/^\d+$/.test(value.trim()) ? Number(value) : value);
const amountText = (amount, digits) => (Number.isFinite(amount) ? (amount / 10 ** digits()).toFixed(digits()) : '');

// Rows of fields that can be added and, but for the first `least`, removed: { element, read() }.  `columns`: [{ name, label, props, read }].
function fieldRows(t, { legend, list, columns, rows, add, least = 0, onChange }) {
  const lines = [];
  const body = h('div', { class: 'lines' });
  const heading = newId('lines');

  // The place in the list is a part of the paths and of the names.
  function number() {
    lines.forEach((line, i) => {
      line.remove.hidden = i < least;
      line.element.setAttribute('aria-label', t(`${list}Line`, { n: i + 1 }));
      line.controls.forEach((control, k) => { control.dataset.path = `${list}[${i}].${columns[k].name}`; });
    });
  }
  function append(values) {
    const controls = columns.map(({ name, props, options }) => (options
      ? h('select', { name }, options.map(([value, text]) => h('option', { value, selected: value === values[name] }, text)))
      : h('input', { name, autocomplete: 'off', ...props, value: values[name] ?? null })));
    const line = { controls, values };
    line.remove = button(t('remove'), () => {
      const at = lines.indexOf(line);
      lines.splice(at, 1);
      line.element.remove();
      number();
      (lines[Math.min(at, lines.length - 1)]?.controls[0] ?? adder).focus();
      onChange();
    });
    line.element = h('div', { class: 'line', role: 'group' }, columns.map(({ label }, k) => field(label, controls[k])), line.remove);
    lines.push(line);
    body.append(line.element);
    number();
    return line;
  }
  const adder = button(add, () => append({}).controls[0].focus());
  for (const values of rows) append(values);
  return {
    element: h('div', { role: 'group', 'aria-labelledby': heading }, h('p', { id: heading, class: 'subtitle' }, legend), body, adder),
    read: () => lines.map(({ controls, values }) => ({
      ...values.rest, ...Object.fromEntries(columns.map(({ name, read }, k) => [name, read(controls[k])]).filter(([, value]) => value !== '')),
    })),
  };
}

const AREA_NAME = { maxlength: '32' };

function areaRows(t, digits, areas, shapes, onChange) {
  return fieldRows(t, {
    legend: t('areas'), list: 'areas', add: t('addArea'), onChange,
    rows: areas.map((area) => ({ ...area, price: amountText(area.price, digits) })),
    columns: [
      { name: 'name', label: t('areaName'), props: AREA_NAME, read: ({ value }) => value.trim() },
      { name: 'price', label: t('price'), props: { inputmode: 'decimal' }, read: (control) => amountOf(control, digits) },
      { name: 'capacity', label: t('capacity'), props: { inputmode: 'numeric' }, read: countOf },
      ...(shapes.length > 0 ? [{
        name: 'plan_area', label: t('areaShape'), options: [['', t('noShape')], ...shapes], read: ({ value }) => value,
      }] : []),
    ],
  });
}

// Amounts by name, as people write them: "Stalls = 40.00; Floor = 20".
function pricesText(prices, digits) {
  return Object.entries(prices ?? {}).map(([name, amount]) => `${name} = ${amountText(amount, digits)}`).join('; ');
}
function pricesOf({ value }, digits) {
  const parts = value.split(';').map((part) => part.trim()).filter(Boolean);
  return Object.fromEntries(parts.map((part) => {
    const at = part.lastIndexOf('=');
    return [part.slice(0, at < 0 ? undefined : at).trim(), amountOf({ value: at < 0 ? '' : part.slice(at + 1) }, digits)];
  }));
}

// Ticket types: { element, read() }.  Those that an event has already, the first `least`, cannot be removed.
export function typeRows(t, { digits, types, least = 0, onChange = () => {} }) {
  return fieldRows(t, {
    legend: t('ticketTypes'), list: 'types', add: t('addType'), least, onChange,
    rows: types.map((type) => ({ ...type, prices: pricesText(type.prices, digits) })),
    columns: [
      { name: 'id', label: t('typeId'), props: { maxlength: '32', spellcheck: 'false' }, read: ({ value }) => value.trim() },
      { name: 'name', label: t('typeTitle'), props: { maxlength: '100' }, read: ({ value }) => value.trim() },
      { name: 'prices', label: t('typePrices'), props: { placeholder: t('typePricesExample') }, read: (control) => pricesOf(control, digits) },
    ],
  });
}

// Sections of counted rows, and areas: { element, read() }, where `read` gives members of the body.
export function countedLayout(t, { digits, sections, areas, onChange }) {
  const rows = fieldRows(t, {
    legend: t('sections'), list: 'sections', add: t('addSection'), onChange,
    rows: sections.map((section) => ({ ...section, price: amountText(section.price, digits), rest: section.tier ? { tier: section.tier } : {} })),
    columns: [
      { name: 'name', label: t('sectionName'), props: AREA_NAME, read: ({ value }) => value.trim() },
      { name: 'price', label: t('price'), props: { inputmode: 'decimal' }, read: (control) => amountOf(control, digits) },
      { name: 'rows', label: t('rows'), props: { inputmode: 'numeric' }, read: countOf },
      { name: 'seats_per_row', label: t('seatsPerRow'), props: { inputmode: 'numeric' }, read: countOf },
    ],
  });
  const places = areaRows(t, digits, areas, [], onChange);
  return {
    element: h('div', {}, rows.element, places.element),
    read() {
      const body = { sections: rows.read(), areas: places.read() };
      return Object.fromEntries(Object.entries(body).filter(([, list]) => list.length > 0));
    },
  };
}

// Can the form above show this layout?
export const isCounted = ({ plan, categories, sections = [] }) => !plan && !categories?.length
  && sections.every(({ rows, price }) => Number.isInteger(rows) && Number.isInteger(price));

// The areas of a plan that can be sold, as choices: [uuid, what it is].
function shapesOf(plan, t) {
  const areas = (Array.isArray(plan?.zones) ? plan.zones : []).flatMap((zone) => (Array.isArray(zone?.areas) ? zone.areas : []));
  return areas.filter((area) => typeof area?.uuid === 'string' && area.uuid)
    .map(({ uuid, shape, text }) => [uuid, [text?.text, shape ?? t('shape'), uuid].filter((part) => typeof part === 'string' && part).join(' · ')]);
}

// A layout that is given: its prices, and with a plan its areas and wheelchair places.  `given` has the members of a body.
export function givenLayout(t, { digits, given, onChange }) {
  const hasPlan = Boolean(given.plan);
  const costs = []; // { control, put(body, amount) }
  const cost = (label, path, amount, put) => {
    const control = h('input', { name: 'price', inputmode: 'decimal', autocomplete: 'off', value: amountText(amount, digits), data: { path } });
    costs.push({ control, put });
    return field(label, control);
  };
  const names = (Array.isArray(given.plan?.categories) ? given.plan.categories : []).map((category) => category?.name).filter((name) => typeof name === 'string');
  const fields = hasPlan
    ? names.map((name) => cost(t('priceFor', { name }), `prices.${name}`, given.prices?.[name], (body, amount) => { body.prices[name] = amount; }))
    : [
      ...(given.categories ?? []).map(({ name, price }, i) => cost(t('priceFor', { name }), `categories[${i}].price`, price, (body, amount) => { body.categories[i].price = amount; })),
      ...(given.sections ?? []).flatMap(({ name, price }, i) => (price === undefined ? []
        : [cost(t('priceFor', { name }), `sections[${i}].price`, price, (body, amount) => { body.sections[i].price = amount; })])),
    ];
  const places = areaRows(t, digits, given.areas ?? [], shapesOf(given.plan, t), onChange);
  const accessible = h('textarea', { name: 'accessible', rows: '3', spellcheck: 'false', autocomplete: 'off', data: { path: 'accessible' } });
  accessible.value = (given.accessible ?? []).join('\n');
  return {
    element: h('div', {}, h('div', { class: 'fields' }, fields), places.element, hasPlan && field(t('wheelchairPlaces'), accessible, t('seatsByLine'))),
    read() {
      const body = {
        ...given, ...(hasPlan ? { prices: {} } : {}),
        ...(given.categories ? { categories: given.categories.map((each) => ({ ...each })) } : {}),
        ...(given.sections ? { sections: given.sections.map((each) => ({ ...each })) } : {}),
      };
      for (const { control, put } of costs) if (control.value.trim() !== '') put(body, amountOf(control, digits));
      const areas = places.read();
      if (areas.length > 0) body.areas = areas;
      else delete body.areas;
      if (hasPlan) {
        body.accessible = accessible.value.split('\n').map((line) => line.trim()).filter(Boolean);
        if (body.accessible.length === 0) delete body.accessible;
      }
      return body;
    },
  };
}
