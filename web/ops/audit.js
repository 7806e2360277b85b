// Search in the log of every change, newest first.  The address keeps event and seat, so that a search can be shared; a hold's id is
// a secret and stays in its field.

import { NewestFirst } from './audit_pages.js';
import { button, field, h, liveTable } from './dom.js';
import { eventChoice } from './events_known.js';

// Enough of an id to tell two apart, and not enough to act with.
export const short = (id) => (id ? `${id.slice(id.indexOf('_') + 1, id.indexOf('_') + 12)}…` : '–');

// The columns that the log and the history of a seat have in common.
export function logColumns({ t, format }) {
  const status = (value) => (value === null ? '–' : t(`state.${value}`));
  return [
    { title: t('seq'), kind: 'number', text: ({ seq }) => format.number(seq) },
    { title: t('time'), kind: 'time', text: ({ at }) => format.exact(at) },
    { title: t('cause'), text: ({ cause }) => t(`cause.${cause}`) },
    { title: t('change'), text: ({ from, to }) => `${status(from)} → ${status(to)}` },
    { title: t('until'), kind: 'time', text: ({ until }) => (until ? format.clock(until) : '–') },
    { title: t('actor'), text: ({ actor }) => actor ?? '–' },
    { title: t('fence'), kind: 'number', text: ({ fence }) => (fence === null ? '–' : format.number(fence)) },
  ];
}

const about = ({ object, seat, area, quantity }, { t }) => seat ?? (area === null ? t(`object.${object}`) : t('placesOf', { n: quantity, area }));

export function audit(context, query) {
  const { t, call, access } = context;
  const heading = h('h1', { tabindex: '-1' }, t('audit'));
  if (access !== 'admin') {
    return { title: t('audit'), element: h('div', {}, heading, h('p', {}, t('auditNeedsAdmin'))), stop() {} };
  }
  const { control: event, ready } = eventChoice(context, query.get('event'), { on: { change: () => read(true) } });
  const seat = h('input', { name: 'seat', autocomplete: 'off', spellcheck: 'false' });
  const hold = h('input', { name: 'hold', autocomplete: 'off', spellcheck: 'false' });
  const before = h('input', { name: 'before', type: 'number', min: '1', inputmode: 'numeric' });
  seat.value = query.get('seat') ?? '';
  let rows = [];
  let pages = null;
  let asked = 0;

  const table = liveTable({
    caption: t('auditRows'),
    empty: t('auditEmpty'),
    wide: t('wideTable'),
    key: ({ event: of, seq }) => `${of} ${seq}`,
    more: { label: t('more'), onClick: () => read(false) },
    columns: [
      ...logColumns(context).slice(0, 2),
      { title: t('what'), text: (row) => about(row, context) },
      ...logColumns(context).slice(2),
      {
        title: t('hold'), mark: (row) => row.hold,
        node: (row) => (row.hold ? button(short(row.hold), () => { hold.value = row.hold; read(true); }, { class: 'link', title: t('onlyThisHold') })
          : document.createTextNode('–')),
      },
      { title: t('booking'), text: (row) => short(row.booking) },
    ],
  });
  table.element.hidden = true;
  const problem = h('p', { role: 'alert', class: 'problem' });

  async function read(anew) {
    const mine = ++asked;
    problem.textContent = '';
    if (anew) {
      if (!event.value && !hold.value.trim()) {
        problem.textContent = t('auditNeedsEvent');
        return;
      }
      pages = new NewestFirst(call, { event: event.value, seat: seat.value.trim(), hold: hold.value.trim(), before: before.value });
      const shared = new URLSearchParams([event, seat].map(({ name, value }) => [name, value.trim()]).filter(([, value]) => value)).toString();
      history.replaceState(null, '', `#/audit${shared && `?${shared}`}`);
    }
    try {
      const found = await table.during(() => pages.next());
      if (mine !== asked) return;
      rows = anew ? found : [...rows, ...found];
      table.element.hidden = false;
      table.show(rows, pages.hasMore);
      context.tell(t('auditFound', { n: rows.length }));
    } catch (error) { if (mine === asked) problem.textContent = context.explain(error); }
  }

  let isStopped = false;
  ready.then(() => { if (event.value && !isStopped) read(true); }, (error) => { problem.textContent = context.explain(error); });
  const element = h('div', {}, heading, h('p', {}, t('auditWhat')),
    h('form', { class: 'search', role: 'search', on: { submit: (submitted) => { submitted.preventDefault(); read(true); } } },
      field(t('event'), event), field(t('seat'), seat), field(t('hold'), hold, t('holdHint')), field(t('beforeSeq'), before),
      h('button', { type: 'submit', class: 'primary' }, t('search'))),
    problem, table.element);
  return { title: t('audit'), element, stop() { isStopped = true; asked += 1; } };
}
