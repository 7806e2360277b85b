// The one dialog that asks before something is done.  It names what will happen; while the request runs it stays open, and
// what the server refused is said in it, so that the fields need not be filled in again.

import { newKey } from '../lib/api.js';
import { button, h, newId } from './dom.js';

// Asks, and does it.  `fields` are nodes that stand between the sentences and the buttons; `act(key)` makes the
// request and resolves to the sentence that tells what happened.  `key` is the Idempotency-Key.  It stays the same until a
// field is changed, so that a repeat after a lost answer is not a second deed.  Resolves to that sentence, or to null if
// the reader thought better of it.
export function ask({ title, sentences, fields = [], verb, danger = false, act, explain, t }) {
  return new Promise((resolve) => {
    const id = newId('dialog');
    const problem = h('p', { role: 'alert', class: 'problem' });
    const go = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, verb);
    const back = button(t('keepAsIs'), () => dialog.close());
    const form = h('form', { method: 'dialog', novalidate: true }, sentences.map((sentence) => h('p', {}, sentence)), fields, problem,
      h('div', { class: 'buttons' }, back, go));
    const dialog = h('dialog', { 'aria-labelledby': id, class: 'ask' }, h('h2', { id }, title), form);
    let told = null;
    let attempt = null; // the key of the last attempt, and what the fields had then

    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      if (go.disabled) return;
      go.disabled = true;
      problem.textContent = '';
      try {
        const values = JSON.stringify([...new FormData(form)]);
        if (attempt?.values !== values) attempt = { values, key: newKey() };
        told = await act(attempt.key);
        dialog.close();
      } catch (error) {
        problem.textContent = explain(error);
      }
      go.disabled = false;
    });
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(told);
    });
    document.body.append(dialog);
    dialog.showModal();
    (fields.length ? dialog.querySelector('input, textarea, select') ?? back : back).focus();
  });
}
