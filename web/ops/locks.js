// The lock service, where the server has one: its servers, and who holds and awaits which lock.

import { fact, field, h, liveTable } from './dom.js';
import { poll } from './poll.js';

const LOCKS_MS = 5000;

// Resolves to true if this server has locks.
export async function hasLocks(call) {
  try {
    await call('GET', '/v1/cell');
    return true;
  } catch { return false; }
}

// Holders or waiters of a lock, one line each: who, in which mode and for how long.
function people({ t, format }, list, n, msOf) {
  if (n === 0) return document.createTextNode('–');
  const lines = list.map((one) => {
    const values = { who: one.label ?? t('nobody'), mode: t(`lockMode.${one.mode}`), time: msOf(one) === null ? '' : format.duration(msOf(one)) };
    return t(msOf(one) === null ? 'lockPerson' : 'lockPersonFor', values);
  });
  if (n > list.length) lines.push(t('andMore', { n: n - list.length }));
  return h('ul', { class: 'people' }, lines.map((line) => h('li', {}, line)));
}

export function locks(context) {
  const { t, format, call } = context;
  const known = h('dl', { class: 'facts' });
  const prefix = h('input', { name: 'prefix', autocomplete: 'off', spellcheck: 'false' });
  const waiting = h('input', { type: 'checkbox', name: 'waiting' });
  let pages = 1;
  const heldMs = ({ held_ms: ms }) => ms;
  const waitedMs = ({ waited_ms: ms }) => ms;
  const column = (title, list, n, msOf) => ({
    title, mark: (lock) => JSON.stringify([lock[n], lock[list].map((one) => [one.label, one.mode, msOf(one)])]),
    node: (lock) => people(context, lock[list], lock[n], msOf),
  });
  const table = liveTable({
    caption: t('locks'), captionShown: false, empty: t('noLocks'), wide: t('wideTable'), key: ({ name }) => name,
    more: { label: t('more'), onClick: () => { pages += 1; polling.again(); } },
    columns: [
      { title: t('lockName'), head: true, text: ({ name }) => name },
      column(t('holders'), 'holders', 'n_holders', heldMs),
      column(t('waiters'), 'waiters', 'n_waiters', waitedMs),
      { title: t('fence'), kind: 'number', text: ({ last_fence: fence }) => (fence === null ? '–' : format.number(fence)) },
    ],
  });

  async function list() {
    const rows = [];
    let page = { has_more: true, next_cursor: null };
    for (let i = 0; i < pages && page.has_more; i += 1) {
      const search = new URLSearchParams({
        prefix: prefix.value, limit: 100, ...(waiting.checked ? { waiting: true } : {}), ...(page.next_cursor ? { cursor: page.next_cursor } : {}),
      });
      page = await call('GET', `/v1/locks?${search}`);
      rows.push(...page.data);
    }
    return { rows, hasMore: page.has_more };
  }
  const polling = poll(async () => {
    const [cell, { rows, hasMore }] = await Promise.all([call('GET', '/v1/cell'), list()]);
    known.replaceChildren(
      fact(t('master'), cell.master?.url ?? '–'), fact(t('epoch'), format.number(cell.epoch)), fact(t('index'), format.number(cell.index)),
      ...cell.servers.map(({ url, index }) => fact(url, format.number(index))));
    table.show(rows, hasMore);
  }, LOCKS_MS, context.watch());
  const search = () => { pages = 1; polling.again(); };
  waiting.addEventListener('change', search);
  return {
    title: t('locks'),
    element: h('div', {}, h('h1', { tabindex: '-1' }, t('locks')), known,
      h('form', { class: 'search', role: 'search', on: { submit: (submitted) => { submitted.preventDefault(); search(); } } },
        field(t('lockPrefix'), prefix), h('label', { class: 'choice' }, waiting, ' ', t('onlyWaiting')), h('button', { type: 'submit' }, t('search'))),
      table.element),
    stop: polling.stop,
  };
}
