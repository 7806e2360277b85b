// A new event: its terms and its places as a form, the hall drawn beside it, and every complaint of the server before anything is
// created.  The places are counted in the form, or come from a file or from another event.

import '../seats/element.js';
import { newKey, Problem } from '../lib/api.js';
import { termFields } from './actions.js';
import { button, field, h, newId } from './dom.js';
import { drawingOf, freeSnapshot, planOf, seatsOfComplaint } from './drawing.js';
import { countedLayout, givenLayout, isCounted, typeRows } from './layout_form.js';

const CHECK_MS = 300; // a change rests this long before the server is asked
const CHECKED_BY_ITSELF_MAX = 2_000_000; // characters of a layout; a larger one is checked when somebody asks for it
const TIMEOUT_MS = 120_000; // a hall of a million seats takes its time
const LAYOUT = ['plan', 'prices', 'accessible', 'focus', 'categories', 'sections', 'areas'];
const UNSEEN = ['hold_ttl_ms', 'hold_max_ms', 'max_per_owner', 'metadata', 'lone_seats']; // terms without a field, which a copy keeps

const pick = (object, names) => Object.fromEntries(names.filter((name) => object[name] !== undefined && object[name] !== null).map((name) => [name, object[name]]));
const withoutEmpty = (layout) => Object.fromEntries(Object.entries(layout).filter(([name, value]) => !(Array.isArray(value) && value.length === 0) || name === 'categories'));
const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

// The terms and the layout of an event that is to be copied.  What happens when is asked anew.
async function copyOf({ t, call }, id) {
  const url = `/v1/events/${encodeURIComponent(id)}`;
  const event = await call('GET', url);
  const isPlan = event.focus !== undefined;
  const layout = isPlan
    ? { plan: planOf(await call('GET', `${url}/plan`, { timeoutMs: TIMEOUT_MS }), event.areas), ...pick(event, ['prices', 'accessible', 'focus', 'areas']) }
    : pick(event, ['categories', 'sections', 'areas']);
  const terms = { ...event, name: t('copyName', { name: event.name }), starts_at: null, doors_at: null, sales_open_at: null, sales_close_at: null };
  return { terms, layout: withoutEmpty(layout) };
}

// A file: a plan in pretix's format, or the body of an event with one.  Returns { terms, layout }; throws an Error with a sentence.
function readFile(t, text) {
  let json;
  try { json = JSON.parse(text); } catch { throw new Error(t('fileNoJson')); }
  if (Array.isArray(json?.zones)) return { terms: {}, layout: { plan: json, prices: {} } };
  if (json?.plan || json?.sections || json?.areas) return { terms: json, layout: pick(json, LAYOUT) };
  throw new Error(t('fileNoPlan'));
}

// The prices of a body by category, for the legend of the map.
function pricesOf({ prices, categories = [], sections = [] }) {
  const named = [...categories, ...sections].filter(({ price }) => Number.isInteger(price)).map(({ name, price }) => [name, price]);
  return { ...Object.fromEntries(named), ...Object.fromEntries(Object.entries(prices ?? {}).filter(([, price]) => Number.isInteger(price))) };
}

// The picture and the complaints: { element, draw(document, body), complain(complaints, body), isBroken }.
function preview(context, onGoTo) {
  const { t, format } = context;
  const map = h('holdfast-seats', { lang: document.documentElement.lang });
  map.interactive = false;
  map.hidden = true; // until there is something to draw
  const facts = h('p', { role: 'status' }, t('previewEmpty'));
  const heading = h('h3', { tabindex: '-1' });
  const list = h('ul', { class: 'complaints' });
  const wrong = h('div', { class: 'message bad', hidden: true }, heading, list);
  const marked = h('p', { class: 'quiet', hidden: true }, t('complaintsMarked'));
  let drawn = null; // the text of the document that is shown
  let seats = new Map(); // id of a seat -> the complaints about it

  function draw(plan, body) {
    const text = JSON.stringify([plan, pricesOf(body), body.areas ?? [], body.currency]);
    if (text === drawn) return;
    map.hidden = false;
    try {
      map.showPlan(plan, freeSnapshot(plan, { currency: body.currency ?? null, prices: pricesOf(body), areas: body.areas }));
      drawn = text;
    } catch { facts.textContent = t('previewImpossible'); }
  }
  // Marks the seats that complaints are about.
  function mark(complaints, plan) {
    seats = new Map();
    for (const complaint of complaints) {
      for (const id of plan ? seatsOfComplaint(complaint, plan) : []) seats.set(id, [...seats.get(id) ?? [], complaint]);
    }
    map.setHeat(new Map([...seats.keys()].map((id) => [id, 1])));
    map.paint = seats.size > 0 ? 'heat' : 'status';
    map.classList.toggle('marked', seats.size > 0);
    marked.hidden = seats.size === 0;
  }
  map.addEventListener('pick', ({ detail }) => { if (seats.has(detail.seat)) context.tell(seats.get(detail.seat).join(' ')); });

  return {
    element: h('section', { class: 'preview' }, h('h2', {}, t('preview')), wrong, facts, map, marked),
    showRight({ plan, capacity, seats: n }, body) {
      wrong.hidden = true;
      facts.textContent = t('previewFacts', { n: capacity, seats: format.number(n) });
      draw(plan ?? drawingOf(body.plan ?? {}, body.areas), body);
      mark([], null);
    },
    // `complaints` with the control that each is about, if it is known.
    showWrong(complaints, body) {
      wrong.hidden = complaints.length === 0;
      heading.textContent = t('complaintsFound', { n: complaints.length });
      const plan = body.plan && typeof body.plan === 'object' ? drawingOf(body.plan, Array.isArray(body.areas) ? body.areas : []) : null;
      facts.textContent = '';
      if (plan) draw(plan, body);
      mark(complaints.map(({ text }) => text), plan);
      list.replaceChildren(...complaints.map(({ text, id, control }) => {
        const [first] = plan ? seatsOfComplaint(text, plan) : [];
        const goTo = control ? () => onGoTo(control) : first && (() => { map.focusSeat(first); map.scrollIntoView({ block: 'nearest' }); });
        return h('li', { id }, goTo ? button(text, goTo, { class: 'link' }) : text);
      }));
    },
    focus() { heading.focus(); },
  };
}

export function createEvent(context, query) {
  const { t, call, access } = context;
  const heading = h('h1', { tabindex: '-1' }, t('createEvent'));
  const back = h('p', {}, h('a', { href: '#/' }, t('backToEvents')));
  if (access !== 'admin') return { title: t('createEvent'), element: h('div', {}, back, heading, h('p', {}, t('createNeedsAdmin'))), stop() {} };

  const problem = h('p', { role: 'alert', class: 'problem' });
  const form = h('form', { class: 'create', novalidate: true });
  const shown = preview(context, (control) => { control.focus(); control.scrollIntoView({ block: 'nearest' }); });
  const file = h('input', { type: 'file', name: 'plan', accept: '.json,application/json', on: { change: () => file.files[0] && take(file.files[0]) } });
  let terms = [];
  let unseen = {};
  let begun = {}; // the terms with which the form was built
  let currency = null; // a control
  let layout = null;
  let types = null;
  let fileName = '';
  let touched = new Set(); // controls that somebody has changed
  let isTried = false; // somebody wanted to create the event: all complaints are shown from then on
  let asked = 0;
  let timer = null;
  let attempt = null; // the key of the last attempt to create, and its body

  const currencyNow = () => currency.value.trim().toLowerCase();
  function digitsNow() {
    try { return context.format.digits(currencyNow()); } catch { return 2; } // no currency yet
  }

  // ---- the form ----

  function build(seed, places) {
    clearTimeout(timer);
    touched = new Set();
    begun = seed;
    unseen = pick(seed, UNSEEN);
    terms = termFields(t, { max_per_hold: 10, timezone: ownZone(), ...pick(seed, Object.keys(seed)) });
    for (const { name, control } of terms) control.dataset.path = name;
    terms.find(({ name }) => name === 'timezone').control.setAttribute('list', 'zones');
    currency = h('input', { name: 'currency', maxlength: '3', autocomplete: 'off', spellcheck: 'false', value: seed.currency ?? '', data: { path: 'currency' } });
    const panel = h('div');
    const kinds = ['counted', 'given'].map((kind) => {
      const radio = h('input', { type: 'radio', name: 'layout', value: kind, checked: (kind === 'counted') === isCounted(places), on: { change: () => choose(kind) } });
      return h('label', { class: 'choice' }, radio, ' ', t(`layout.${kind}`));
    });
    function choose(kind) {
      const onChange = () => checkSoon();
      if (kind === 'counted') {
        const { sections = [], areas = [] } = isCounted(places) ? places : {};
        const isNew = sections.length === 0 && areas.length === 0;
        layout = countedLayout(t, { digits: digitsNow, sections: isNew ? [{}] : sections, areas, onChange });
        panel.replaceChildren(layout.element);
      } else {
        layout = isCounted(places) ? { read: () => ({}) } : givenLayout(t, { digits: digitsNow, given: places, onChange });
        panel.replaceChildren(field(t('planFile'), file, fileName ? t('planFileIs', { name: fileName }) : t('planFileWhat')), ...(layout.element ? [layout.element] : []));
      }
    }
    choose(isCounted(places) ? 'counted' : 'given');
    types = typeRows(t, { digits: digitsNow, types: seed.types ?? [], onChange: () => checkSoon() });
    form.replaceChildren(
      h('fieldset', { class: 'panel' }, h('legend', {}, t('eventTerms')), h('div', { class: 'fields' },
        terms.slice(0, 1).map(({ element }) => element), field(t('currency'), currency, t('currencyHint')), terms.slice(1).map(({ element }) => element))),
      h('fieldset', { class: 'panel' }, h('legend', {}, t('places')), h('div', { class: 'choices', role: 'radiogroup', 'aria-label': t('layoutKind') }, kinds), panel, types.element),
      problem,
      h('div', { class: 'buttons' }, h('button', { type: 'submit', class: 'primary' }, t('createEvent')), button(t('checkEvent'), () => { isTried = true; checkNow(); })));
  }

  // A term may be a group of controls.
  const isTouched = (control) => [...touched].some((each) => control.contains(each));

  // What somebody has written into the form.
  function written() {
    const all = [...terms, { name: 'currency', control: currency, read: currencyNow }];
    return Object.fromEntries(all.filter(({ control }) => isTouched(control)).map(({ name, control, read }) => [name, read(control)]));
  }

  async function take(file) {
    problem.textContent = '';
    try {
      const read = readFile(t, await file.text());
      fileName = file.name;
      const typed = written(), seed = { ...begun, ...typed };
      try {
        build({ ...seed, ...read.terms, ...typed }, read.layout);
      } catch { // a member is of a kind that no field can show
        build(seed, { plan: {} });
        await complainOf({ name: '?', currency: 'usd', ...read.terms, ...read.layout });
        return;
      }
      check();
    } catch (error) { problem.textContent = error.message; }
  }

  // Shows what the server says of a body that the form cannot have.
  async function complainOf(wanted) {
    const mine = ++asked;
    try {
      await call('POST', '/v1/plans/check', { body: wanted, timeoutMs: TIMEOUT_MS });
      throw new Error(t('fileNoPlan'));
    } catch (error) {
      if (!error.body?.complaints) throw error;
      if (mine === asked) shown.showWrong(error.body.complaints.map((text) => ({ text, id: newId('complaint') })), {});
    }
  }

  function body() {
    const values = Object.fromEntries(terms.map(({ name, control, read }) => [name, read(control)]).filter(([, value]) => value !== null));
    return { ...unseen, ...values, ...(currencyNow() ? { currency: currencyNow() } : {}), ...layout.read(), ...(types.read().length > 0 ? { types: types.read() } : {}) };
  }

  // ---- what the server says ----

  // The control that a complaint is about: the one with the longest path that the complaint begins with.
  function controlOf(text) {
    let found = null;
    for (const control of form.querySelectorAll('[data-path]')) {
      const { path } = control.dataset;
      if (text.startsWith(path) && ' .['.includes(text[path.length] ?? ' ') && path.length > (found?.dataset.path.length ?? 0)) found = control;
    }
    return found;
  }

  // What is wrong with a control is read out after its hint.
  function describe(control, id) {
    control.dataset.hint ??= control.getAttribute('aria-describedby') ?? '';
    const ids = [control.dataset.hint, id].filter(Boolean).join(' ');
    if (ids) control.setAttribute('aria-describedby', ids);
    else control.removeAttribute('aria-describedby');
  }

  function complain(texts, wanted) {
    for (const control of form.querySelectorAll('[aria-invalid]')) {
      control.removeAttribute('aria-invalid');
      describe(control, null);
    }
    const complaints = texts.map((text) => ({ text, id: newId('complaint'), control: controlOf(text) }))
      .filter(({ control }) => isTried || !control || isTouched(control));
    for (const { control, id } of complaints.filter((each) => each.control)) {
      control.setAttribute('aria-invalid', 'true');
      describe(control, id);
    }
    shown.showWrong(complaints, wanted);
  }

  // Asks the server what it thinks of the form.  Resolves to the body if it is right, and to null otherwise.
  async function check() {
    clearTimeout(timer);
    const mine = ++asked;
    const real = body();
    // A picture needs neither a name nor a currency.
    const wanted = isTried ? real : { name: '?', currency: 'usd', ...real };
    if (!LAYOUT.some((name) => real[name])) {
      if (isTried) complain([t('noPlaces')], real);
      return null;
    }
    try {
      const found = await call('POST', '/v1/plans/check', { body: wanted, timeoutMs: TIMEOUT_MS });
      if (mine !== asked) return null;
      complain([], real);
      shown.showRight(found, { ...real, currency: real.currency ?? null });
      return real;
    } catch (error) {
      if (mine !== asked) return null;
      if (!(error instanceof Problem) || !error.body.complaints) throw error;
      complain(error.body.complaints, real);
      return null;
    }
  }
  const checkNow = () => check().catch((error) => { problem.textContent = context.explain(error); });
  function checkSoon() {
    clearTimeout(timer);
    timer = setTimeout(() => { if (isSmall()) checkNow(); }, CHECK_MS);
  }
  const isSmall = () => JSON.stringify(layout.read()).length <= CHECKED_BY_ITSELF_MAX;

  form.addEventListener('input', ({ target }) => touched.add(target));
  form.addEventListener('change', ({ target }) => { if (target.type !== 'file') checkSoon(); });
  form.addEventListener('submit', async (submitted) => {
    submitted.preventDefault();
    const go = form.querySelector('[type="submit"]');
    if (go.disabled) return;
    go.disabled = true;
    problem.textContent = '';
    isTried = true;
    try {
      const wanted = await check();
      if (wanted) await create(wanted);
      else shown.focus();
    } catch (error) { problem.textContent = context.explain(error); }
    go.disabled = false;
  });

  async function create(wanted) {
    const text = JSON.stringify(wanted);
    if (attempt?.text !== text) attempt = { text, key: newKey() };
    const event = await call('POST', '/v1/events', { key: attempt.key, body: wanted, timeoutMs: TIMEOUT_MS });
    location.hash = `#/events/${encodeURIComponent(event.id)}`;
    // The view that is left clears what is told; this is about the next one.
    window.addEventListener('hashchange', () => context.tell(t('eventCreated', { name: event.name })), { once: true });
  }

  // ---- the beginning ----

  const zones = h('datalist', { id: 'zones' }, (Intl.supportedValuesOf?.('timeZone') ?? []).map((name) => h('option', { value: name })));
  build({}, {});
  const copied = query.get('copy');
  if (copied) {
    copyOf(context, copied).then(({ terms: seed, layout: places }) => {
      build(seed, places);
      return check();
    }).catch((error) => { problem.textContent = context.explain(error); });
  }
  const element = h('div', {}, back, heading, h('p', {}, t('createWhat')), zones, h('div', { class: 'bench' }, form, shown.element));
  return { title: t('createEvent'), element, stop() { clearTimeout(timer); asked += 1; } };
}
