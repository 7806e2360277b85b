// Search in the log of every change (GET /v1/audit).  The address keeps event and seat, so that a search can be shared; a
// hold's id is a secret and stays in its field.

import { button, field, h, liveTable } from './dom.js';

// Enough of an id to tell two apart, and not enough to act with.
export const short = (id) => (id ? `${id.slice(0, id.indexOf('_') + 12)}…` : '–');

// The columns that the log and the history of a seat have in common.
export function logColumns({ t, format }) {
  const status = (value) => (value === null ? '–' : t(`state.${value}`));
  return [
    { title: t('seq'), kind: 'number', text: ({ seq }) => format.number(seq) },
    { title: t('time'), kind: 'time', text: ({ at }) => format.exact(at) },
    { title: t('cause'), text: ({ cause }) => t(`cause.${cause}`) },
    { title: t('change'), text: ({ from, to }) => `${status(from)} → ${status(to)}` },
    { title: t('until'), kind: 'time', text: ({ until }) => (until ? format.exact(until) : '–') },
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
  const event = h('input', { name: 'event', autocomplete: 'off', spellcheck: 'false', list: 'audit-events' });
  const seat = h('input', { name: 'seat', autocomplete: 'off', spellcheck: 'false' });
  const hold = h('input', { name: 'hold', autocomplete: 'off', spellcheck: 'false' });
  const after = h('input', { name: 'after', type: 'number', min: '0', inputmode: 'numeric' });
  const known = h('datalist', { id: 'audit-events' });
  event.value = query.get('event') ?? '';
  seat.value = query.get('seat') ?? '';
  let rows = [];
  let search = '';
  let cursor = null;

  const table = liveTable({
    caption: t('auditRows'),
    empty: t('auditEmpty'),
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
    problem.textContent = '';
    if (anew) {
      const fields = [event, seat, hold, after].map(({ name, value }) => [name, value.trim()]).filter(([, value]) => value);
      if (!event.value.trim() && !hold.value.trim()) {
        problem.textContent = t('auditNeedsEvent');
        return;
      }
      search = new URLSearchParams([...fields, ['limit', '100']]).toString();
      cursor = null;
      const shared = new URLSearchParams(fields.filter(([name]) => name === 'event' || name === 'seat')).toString();
      history.replaceState(null, '', `#/audit${shared && `?${shared}`}`);
    }
    try {
      const page = await call('GET', `/v1/audit?${search}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
      rows = anew ? page.data : [...rows, ...page.data];
      cursor = page.next_cursor;
      table.element.hidden = false;
      table.show(rows, page.has_more);
      context.tell(t('auditFound', { n: rows.length }));
    } catch (error) { problem.textContent = context.explain(error); }
  }

  call('GET', '/v1/events?limit=100').then(({ data }) => known.append(...data.map(({ id, name }) => h('option', { value: id }, name))), () => {});
  if (event.value) read(true);
  const element = h('div', {}, heading, h('p', {}, t('auditWhat')),
    h('form', { class: 'search', role: 'search', on: { submit: (submitted) => { submitted.preventDefault(); read(true); } } },
      field(t('eventId'), event), known, field(t('seat'), seat), field(t('hold'), hold, t('holdHint')), field(t('afterSeq'), after),
      h('button', { type: 'submit', class: 'primary' }, t('search'))),
    problem, table.element);
  return { title: t('audit'), element, stop() {} };
}
