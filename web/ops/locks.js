// The lock service, where the server has one: its servers, and who holds and awaits which lock.

import { fact, h, liveTable } from './dom.js';
import { poll } from './poll.js';

const LOCKS_MS = 5000;

// Resolves to true if this server has locks.
export async function hasLocks(call) {
  try {
    await call('GET', '/v1/cell');
    return true;
  } catch { return false; }
}

export function locks(context) {
  const { t, format, call } = context;
  const known = h('dl', { class: 'facts' });
  const people = (list) => (list.length === 0 ? '–' : format.list(list.map(({ label, mode }) => `${label ?? t('nobody')} (${mode})`)));
  const table = liveTable({
    caption: t('locks'), captionShown: false, empty: t('noLocks'), key: ({ name }) => name,
    columns: [
      { title: t('lockName'), head: true, text: ({ name }) => name },
      { title: t('holders'), text: ({ holders }) => people(holders) },
      { title: t('waiters'), text: ({ waiters }) => people(waiters) },
      { title: t('fence'), kind: 'number', text: ({ last_fence: fence }) => (fence === null ? '–' : format.number(fence)) },
    ],
  });
  const polling = poll(async () => {
    const [cell, list] = await Promise.all([call('GET', '/v1/cell'), call('GET', '/v1/locks?prefix=')]);
    known.replaceChildren(
      fact(t('master'), cell.master?.url ?? '–'), fact(t('epoch'), format.number(cell.epoch)), fact(t('index'), format.number(cell.index)),
      ...cell.servers.map(({ url, index }) => fact(url, format.number(index))));
    table.show(list.data, list.has_more);
  }, LOCKS_MS, context.watch());
  return {
    title: t('locks'),
    element: h('div', {}, h('h1', { tabindex: '-1' }, t('locks')), known, table.element),
    stop: polling.stop,
  };
}
