// Elements and tables of the operator's page.  Every text becomes a text node: nothing that a seller or a buyer wrote
// is ever parsed as HTML.

// Makes an element.  `props` are attributes, except `class` (a list of names or null), `on` (listeners by the name of
// their event) and `data` (data-* attributes).  An attribute that is null or false is left out; true is an empty one.
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name === 'on') for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener);
    else if (name === 'data') Object.assign(node.dataset, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

let lastId = 0;
export const newId = (prefix) => `${prefix}-${++lastId}`;

// A label around its control, as one block.
export function field(label, control, hint = null) {
  control.id ||= newId('field');
  const note = hint && h('small', { id: `${control.id}-hint` }, hint);
  if (note) control.setAttribute('aria-describedby', note.id);
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control, note);
}

export function button(label, onClick, props = {}) {
  return h('button', { type: 'button', ...props, on: { click: onClick } }, label);
}

export function select(options, chosen, onChange) {
  const control = h('select', { on: { change: () => onChange(control.value) } },
    options.map(([value, label]) => h('option', { value, selected: value === chosen }, label)));
  return control;
}

// A moment as a datetime-local control has it, in the reader's time zone, and back: null if the control is empty.
export const localText = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 23);
export const localMoment = (control) => (control.value ? new Date(control.value).getTime() : null);

// A term with what it means, for <dl>.
export const fact = (term, ...values) => h('div', {}, h('dt', {}, term), h('dd', {}, ...values));

// Shows `note` while the element is wider than its place and has to be scrolled sideways.
const wide = new WeakMap();
const sizes = globalThis.ResizeObserver && new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scroll = target.tagName === 'TABLE' ? target.parentElement : target;
    const note = scroll && wide.get(scroll);
    if (note) note.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
  }
});
function tellWide(scroll, note) {
  wide.set(scroll, note);
  for (const each of [scroll, ...scroll.children]) sizes?.observe(each);
}

function setCell(cell, content) {
  if (content instanceof Node) cell.replaceChildren(content);
  else if (cell.textContent !== String(content)) cell.textContent = content;
}

// A table that can be shown new rows without disturbing what has the focus: a row is kept while its key is there, and
// a cell is written only when its content changed.
//
//   columns: [{ title, text(row) } or { title, node(row), mark(row) }], with `kind` ('number', 'time' or another class) or `head: true`,
//     where it applies.
//     A cell made by `node` is made again only when `mark(row)` is another text than before.
//   key(row): what names the row.
//   empty: the sentence that stands for a table without rows.
//   captionShown: false where a heading above the table says the same.
//   more: { label, onClick } of the button below, which is there when `show` is told that there are more rows.  It does nothing until
//     what it began has ended, nor during(work), which resolves to what `work` does: rows of two searches would mix.
//   wide: the sentence that stands above a table that is wider than its place.
export function liveTable({ caption, captionShown = true, columns, key, empty, wide: wideText, more = null }) {
  const body = h('tbody');
  const id = newId('table');
  const nothing = h('p', { class: 'quiet', hidden: true }, empty);
  const table = h('table', {},
    h('caption', { id, class: captionShown ? null : 'visually-hidden' }, caption),
    h('thead', {}, h('tr', {}, columns.map(({ title, kind }) => h('th', { scope: 'col', class: kind }, title)))),
    body);
  const scroll = h('div', { class: 'scroll', role: 'region', 'aria-labelledby': id, tabindex: '0' }, table);
  const scrolls = h('p', { class: 'quiet scrolls', hidden: true }, wideText);
  tellWide(scroll, scrolls);
  const next = more && button(more.label, () => nDuring === 0 && during(more.onClick), { hidden: true });
  let nDuring = 0;
  const known = new Map(); // key -> { tr, cells, marks }

  async function during(work) {
    const note = (by) => next.setAttribute('aria-disabled', String((nDuring += by) > 0)); // it keeps the focus
    note(1);
    try { return await work(); } finally { note(-1); }
  }

  function rowOf(name) {
    if (!known.has(name)) {
      const cells = columns.map(({ head, kind }) => h(head ? 'th' : 'td', { scope: head ? 'row' : null, class: kind }));
      known.set(name, { tr: h('tr', {}, cells), cells, marks: [] });
    }
    return known.get(name);
  }

  function show(rows, hasMore = false) {
    const times = new Map(); // rows that cannot be told apart are numbered
    const names = rows.map((row) => {
      const name = String(key(row));
      times.set(name, (times.get(name) ?? 0) + 1);
      return `${name} ${times.get(name)}`;
    });
    const wanted = new Set(names);
    for (const [name, { tr }] of known) {
      if (wanted.has(name)) continue;
      tr.remove();
      known.delete(name);
    }
    rows.forEach((row, i) => {
      const { tr, cells, marks } = rowOf(names[i]);
      columns.forEach((column, k) => {
        if (column.text) { setCell(cells[k], column.text(row)); return; }
        const mark = String(column.mark(row));
        if (marks[k] === mark) return;
        marks[k] = mark;
        setCell(cells[k], column.node(row));
      });
      if (body.children[i] !== tr) body.insertBefore(tr, body.children[i] ?? null);
    });
    scroll.hidden = rows.length === 0;
    nothing.hidden = rows.length > 0;
    if (next) next.hidden = !hasMore;
  }
  return { element: h('div', { class: 'table' }, scrolls, scroll, nothing, next), show, during };
}
