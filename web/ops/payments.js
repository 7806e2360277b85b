// Money on its way: refunds, notifications to the shop and the jobs behind them, each with its age.

import { button, field, h, liveTable, select } from './dom.js';
import { eraseOwner } from './actions.js';
import { poll } from './poll.js';
import { latest } from './samples.js';

const LIST_MS = 10_000;

// A list with a choice of status and a button for more: { element, stop() }.
export function statusList(context, { title, url, statuses, chosen = '', label, columns, key, empty }) {
  const { t, call } = context;
  let status = chosen;
  let rows = [];
  let pages = 1;
  let cursor = null;
  const table = liveTable({ caption: title, captionShown: false, empty, wide: t('wideTable'), key, columns, more: { label: t('more'), onClick: more } });

  const query = (extra) => {
    const [base, search] = url.split('?');
    const parameters = new URLSearchParams(search);
    if (status) parameters.set('status', status);
    parameters.set('limit', '20');
    if (extra) parameters.set('cursor', extra);
    return `${base}?${parameters}`;
  };
  // Only the first page is kept up to date: rows move from page to page as new ones come.
  async function first() {
    if (pages > 1) return;
    const asked = status;
    const page = await call('GET', query(null));
    if (pages > 1 || asked !== status) return;
    rows = page.data;
    cursor = page.next_cursor;
    table.show(rows, page.has_more);
  }
  async function more() {
    const before = rows;
    pages += 1;
    try {
      const page = await call('GET', query(cursor));
      if (rows !== before) return; // another status was chosen meanwhile
      rows = [...rows, ...page.data];
      cursor = page.next_cursor;
      table.show(rows, page.has_more);
    } catch (error) {
      pages = Math.max(1, pages - 1);
      context.fail(error);
    }
  }
  const polling = poll(first, LIST_MS, context.watch());
  const reload = () => { pages = 1; polling.again(); };
  const choice = select([['', t('all')], ...statuses.map((name) => [name, t(`state.${name}`)])], status,
    (value) => { status = value; reload(); });
  return { element: h('div', {}, field(label, choice), table.element), reload, stop: polling.stop };
}

// Columns that refunds and notifications share.
const workColumns = ({ t, format }) => [
  { title: t('status'), text: ({ status }) => t(`state.${status}`) },
  { title: t('age'), kind: 'number', text: ({ age_ms: age }) => format.duration(age) },
  { title: t('attempts'), kind: 'number', text: ({ attempts }) => format.number(attempts) },
  { title: t('nextAttempt'), kind: 'time', text: ({ next_attempt_at: at }) => (at ? format.exact(at) : '–') },
  { title: t('lastError'), text: ({ last_error: error }) => error ?? '–' },
];

function jobs(context) {
  const { t, format, call, samples, access } = context;
  if (access !== 'admin') return { element: h('p', { class: 'quiet' }, t('jobsNeedAdmin')), stop() {} };
  const table = liveTable({
    caption: t('jobs'), captionShown: false, empty: t('noJobs'), wide: t('wideTable'), key: ({ kind }) => kind,
    columns: [
      { title: t('kind'), head: true, text: ({ kind }) => kind },
      { title: t('waiting'), kind: 'number', text: ({ n }) => (n === null ? '–' : format.number(n)) },
      { title: t('oldest'), kind: 'number', text: ({ age }) => (age === null ? '–' : format.duration(age * 1000)) },
    ],
  });
  const unchecked = h('p', { role: 'status', class: 'problem' });
  const polling = poll(async () => {
    await samples.read(call);
    const n = latest(samples.values('jobs_pending', 'poll'));
    unchecked.textContent = n ? t('restoreUnchecked', { n }) : '';
    table.show(samples.kinds('jobs_pending').map((kind) => ({
      kind, n: latest(samples.values('jobs_pending', kind)), age: latest(samples.values('job_oldest_s', kind)),
    })));
  }, LIST_MS, context.watch());
  return { element: h('div', {}, unchecked, table.element), stop: polling.stop };
}

export function payments(context) {
  const { t, format, access } = context;
  const refunds = statusList(context, {
    title: t('refunds'), url: '/v1/refunds', label: t('refundsWith'), empty: t('noRefunds'),
    statuses: ['owed', 'pending', 'succeeded', 'failed'],
    key: ({ payment, created_at: at, provider_refund: id, amount }) => `${payment} ${at} ${id} ${amount}`,
    columns: [
      { title: t('number'), head: true, text: ({ number }) => number },
      { title: t('amount'), kind: 'number', text: ({ amount, currency }) => format.money(amount, currency) },
      ...workColumns(context),
      { title: t('origin'), text: ({ origin }) => t(`origin.${origin}`) },
      { title: t('created'), kind: 'time', text: ({ created_at: at }) => format.exact(at) },
    ],
  });
  const notifications = statusList(context, {
    title: t('notifications'), url: '/v1/notifications', label: t('notificationsWith'), empty: t('noNotifications'),
    statuses: ['pending', 'delivered', 'failed'],
    key: ({ id }) => id,
    columns: [
      { title: t('kind'), head: true, text: ({ type }) => type },
      ...workColumns(context),
      { title: t('created'), kind: 'time', text: ({ created_at: at }) => format.exact(at) },
    ],
  });
  const work = jobs(context);
  const element = h('div', {}, h('h1', { tabindex: '-1' }, t('payments')),
    h('section', {}, h('h2', {}, t('jobs')), h('p', {}, t('jobsWhat')), work.element),
    h('section', {}, h('h2', {}, t('refunds')), refunds.element),
    h('section', {}, h('h2', {}, t('notifications')), notifications.element),
    h('section', {}, h('h2', {}, t('privacy')), h('p', {}, t('privacyWhat')),
      access === 'admin' ? button(t('eraseOwner'), () => eraseOwner(context), { class: 'danger' }) : h('p', { class: 'quiet' }, t('eraseNeedsAdmin'))));
  return { title: t('payments'), element, stop() { for (const one of [refunds, notifications, work]) one.stop(); } };
}
