// How seats are called in sentences.

import { list, money } from '../lib/format.js';
import { languages, words } from '../texts.js';
import { AVAILABLE, BOOKED, HELD } from './board.js';
import { ACCESSIBLE, COMPANION, RESTRICTED_VIEW } from './plan.js';

const FOUND_MAX = 50;

const wordsOf = (text) => String(text).toLowerCase().split(/[\s,;-]+/).filter(Boolean);

export class Names {
  constructor(plan, board, lang) {
    this.plan = plan;
    this.board = board;
    this.lang = lang;
    this.t = words('seats', lang);
  }

  // "row A", in the words of the plan if it has any.
  row(row) {
    if (row.label) return row.label.replace('%s', () => row.name);
    return row.name === '' ? '' : this.t('row', { row: row.name });
  }

  // "Stalls, row A"
  rowPlace(row) { return [this.plan.sections[row.section].name, this.row(row)].filter(Boolean).join(', '); }

  seat(i) {
    const { seatLabel } = this.plan.rowOf(i), label = this.plan.labels[i];
    return seatLabel ? seatLabel.replace('%s', () => label) : this.t('seat', { seat: label });
  }

  // "Stalls, row A, seat 12"
  place(i) { return `${this.rowPlace(this.plan.rowOf(i))}, ${this.seat(i)}`; }

  // The same for an id, which is all that is known of a seat that is not in the plan.
  placeOfId(id) {
    const i = this.plan.indexOf(id);
    return i < 0 ? id : this.place(i);
  }

  placesOfIds(ids) { return list(ids.map((id) => this.placeOfId(id)), this.lang); }

  // The words that stand around names in places: "row" and "seat" in all languages, and those of the plan.
  #around() {
    if (!this.#fillers) {
      const templates = new Set(languages.flatMap((lang) => [words('seats', lang)('row', { row: '' }), words('seats', lang)('seat', { seat: '' })]));
      for (const { name, label, seatLabel } of this.plan.rows) {
        templates.add((seatLabel ?? '').replace('%s', ' '));
        const own = wordsOf(name); // a label may have the name of its row in it instead of %s
        templates.add(wordsOf((label ?? '').replace('%s', ' ')).filter((word) => !own.includes(word)).join(' '));
      }
      this.#fillers = new Set([...templates].flatMap(wordsOf).filter((word) => !/\d/.test(word)));
    }
    return this.#fillers;
  }
  #fillers = null;

  // The numbers of the seats that a person may mean by `text`, best first: the id, then the same without regard to case, spaces and
  // hyphens, then a place as this map writes it, with or without the section and the words around ("row g seat 7", "g 7", "G7").
  find(text) {
    const { plan } = this;
    const exact = plan.indexOf(text.trim());
    if (exact >= 0) return [exact];
    const around = this.#around();
    const plain = (value, glue = ' ') => wordsOf(value).filter((word) => !around.has(word)).join(glue);
    const found = new Set();
    const typed = wordsOf(text).join(' ');
    if (typed === '') return [];
    for (let i = 0; i < plan.n && found.size < FOUND_MAX; i++) if (wordsOf(plan.ids[i]).join(' ') === typed) found.add(i);
    for (const glue of [' ', '']) {
      if (found.size > 0) break; // words that are written as one are second best
      const wanted = plain(text, glue);
      const sections = plan.sections.map(({ name }) => plain(name, glue));
      for (const row of plan.rows) {
        const name = plain(row.name, glue);
        for (const start of new Set([[sections[row.section], name].filter(Boolean).join(glue), name])) {
          if (start !== '' && !wanted.startsWith(start + glue)) continue;
          const label = start === '' ? wanted : wanted.slice(start.length + glue.length);
          for (let i = row.first; label !== '' && i < row.end && found.size < FOUND_MAX; i++) if (plain(plan.labels[i], glue) === label) found.add(i);
        }
      }
    }
    return [...found];
  }

  price(amount) {
    return amount === null || amount === undefined || !this.board.currency ? '' : money(amount, this.board.currency, this.lang);
  }

  flags(i) {
    const flags = this.plan.flags[i];
    return [flags & ACCESSIBLE && this.t('accessible'), flags & COMPANION && this.t('companion'), flags & RESTRICTED_VIEW && this.t('restrictedView')]
      .filter(Boolean);
  }

  state(i, { isMine, isSelected }) {
    if (isMine) return this.t('mine');
    if (isSelected) return this.t('selected');
    const state = this.board.states[i];
    return this.t(state === AVAILABLE ? 'available' : state === HELD ? 'held' : state === BOOKED ? 'booked' : 'blocked');
  }

  // "Stalls, row A, seat 12, $65.00, available"
  whole(i, marks) {
    return [this.place(i), this.price(this.board.priceOf(i)), ...this.flags(i), this.state(i, marks)].filter(Boolean).join(', ');
  }
}
