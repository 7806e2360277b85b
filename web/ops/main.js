// The operator's page: who is here, which view is shown, and what the views share.  Views are named by the part of
// the address after `#`, so that a reload and a shared address lead back to them.

import { language, words } from '../texts.js';
import { Problem, Unreachable } from '../lib/api.js';
import { audit } from './audit.js';
import { counter } from './counter.js';
import { createEvent } from './create.js';
import { ask } from './dialog.js';
import { button, field, h } from './dom.js';
import { eventView } from './event.js';
import { formatsFor } from './formats.js';
import { hasLocks, locks } from './locks.js';
import { overview, Rates, Revenues } from './overview.js';
import { payments } from './payments.js';
import { Samples } from './samples.js';
import { mayBeKey, Session } from './session.js';

const TOLD_MS = 20_000;
const lang = language(new URLSearchParams(location.search).get('lang'));
const t = words('ops', lang);
const session = new Session();
const at = (id) => document.getElementById(id);
let shown = null; // the view
let failures = new Map(); // what the view's pollers complain of
let withLocks = false;
let forgetting = null; // a timer

// ---- what views share ----

// A sentence for an error.  The server's own sentences are in English.
function explain(error) {
  if (error instanceof Unreachable) return t('unreachable');
  if (!(error instanceof Problem)) return error.message;
  if (error.status === 401) return t('wrongKey');
  if (error.status === 403 && error.code === 'forbidden') return t('needsAdmin');
  const names = error.body.seats ?? error.body.areas;
  return names?.length ? `${error.message} ${names.slice(0, 20).join(', ')}${names.length > 20 ? ' …' : ''}` : error.message;
}

// Says what just happened, to eyes and to screen readers.
function tell(text) {
  clearTimeout(forgetting);
  at('told').textContent = text;
  forgetting = setTimeout(() => { at('told').textContent = ''; }, TOLD_MS);
}

const context = {
  t, explain, tell,
  format: formatsFor(lang, t),
  call: session.call,
  now: session.now,
  samples: new Samples(),
  rates: new Rates(),
  revenues: new Revenues(),
  sales: new Map(), // event -> what is being sold at the counter; see counter.js
  get access() { return session.access; },
  fail: (error) => tell(explain(error)),
  ask: (question) => ask({ ...question, explain, t }),
  // A listener for one poller: its failure is shown until its next success.
  watch() {
    const mine = Symbol('poller');
    const all = failures;
    return (error) => {
      if (error) all.set(mine, error);
      else all.delete(mine);
      if (all === failures) showFailures();
    };
  },
};

function showFailures() {
  const [error] = failures.values();
  at('trouble').textContent = error ? t('stale', { reason: explain(error) }) : '';
  at('trouble').hidden = !error;
}

// ---- views ----

const VIEWS = [['#/', 'overview'], ['#/payments', 'payments'], ['#/audit', 'audit'], ['#/locks', 'locks']];

function viewFor(hash) {
  const [path, search] = hash.replace(/^#/, '').split('?');
  const [, name, id, part] = path.split('/');
  if (name === 'events' && id && part === 'sell') return counter(context, decodeURIComponent(id));
  if (name === 'events' && id) return eventView(context, decodeURIComponent(id));
  if (name === 'create') return createEvent(context, new URLSearchParams(search));
  if (name === 'payments') return payments(context);
  if (name === 'audit') return audit(context, new URLSearchParams(search));
  if (name === 'locks' && withLocks) return locks(context);
  return overview(context);
}

// A question about what is no longer shown is withdrawn.
function closeDialogs() { for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close(); }

function show({ focus = false } = {}) {
  closeDialogs();
  shown?.stop();
  failures = new Map();
  showFailures();
  tell('');
  shown = viewFor(location.hash);
  document.title = `${shown.title} · Holdfast`;
  at('content').replaceChildren(shown.element);
  const here = `#/${location.hash.replace(/^#\//, '').split(/[/?]/)[0]}`;
  for (const link of at('views').querySelectorAll('a')) {
    if (link.getAttribute('href') === (['#/events', '#/create'].includes(here) ? '#/' : here)) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (focus) shown.element.querySelector('h1')?.focus();
}

// ---- the key ----

function askForKey(message = '') {
  closeDialogs();
  shown?.stop();
  failures = new Map();
  showFailures();
  at('views').hidden = true;
  at('who').replaceChildren();
  document.title = t('title');
  const key = h('input', { type: 'password', name: 'key', autocomplete: 'off', spellcheck: 'false', required: true });
  const problem = h('p', { role: 'alert', class: 'problem' }, message);
  const go = h('button', { type: 'submit', class: 'primary' }, t('signIn'));
  const form = h('form', { class: 'panel key' }, h('h1', { tabindex: '-1' }, t('keyTitle')), h('p', {}, t('keyWhat')), field(t('key'), key), problem, go);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    problem.textContent = '';
    const text = key.value.trim();
    go.disabled = true;
    try {
      if (mayBeKey(text) && await session.signIn(text)) enter();
      else problem.textContent = t('wrongKey');
    } catch (error) { problem.textContent = explain(error); }
    go.disabled = false;
  });
  shown = { stop() {} };
  at('content').replaceChildren(form);
  key.focus();
}

async function enter() {
  at('who').replaceChildren(...(session.hasKeys
    ? [h('span', {}, t(`as.${session.access}`)), button(t('signOut'), () => { session.signOut(); askForKey(); })]
    : [h('span', {}, t('as.everybody'))]));
  withLocks = await hasLocks(session.call);
  at('views').querySelector('ul').replaceChildren(...VIEWS.filter(([, name]) => name !== 'locks' || withLocks)
    .map(([href, name]) => h('li', {}, h('a', { href }, t(name)))));
  at('views').hidden = false;
  show();
}

// ---- the beginning ----

async function begin() {
  try {
    if (await session.open()) await enter();
    else askForKey(session.key ? t('wrongKey') : '');
  } catch (error) {
    at('content').replaceChildren(h('h1', {}, t('title')), h('p', { role: 'alert' }, explain(error)), button(t('tryAgain'), begin));
  }
}

document.documentElement.lang = lang;
document.title = t('title');
for (const node of document.querySelectorAll('[data-text]')) node.textContent = t(node.dataset.text);
for (const node of document.querySelectorAll('[data-label]')) node.setAttribute('aria-label', t(node.dataset.label));
// The part of the address after `#` names the view, so this link must not change it.
document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); at('content').focus(); });
session.onLost = () => { session.signOut(); askForKey(t('wrongKey')); };
window.addEventListener('hashchange', () => session.access && show({ focus: true }));
begin();
