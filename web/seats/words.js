// How seats are called in sentences.

import { list, money } from '../lib/format.js';
import { words } from '../texts.js';
import { AVAILABLE, BOOKED, HELD } from './board.js';
import { ACCESSIBLE, COMPANION, RESTRICTED_VIEW } from './plan.js';

export class Names {
  constructor(plan, board, lang) {
    this.plan = plan;
    this.board = board;
    this.lang = lang;
    this.t = words('seats', lang);
  }

  // "row A", in the words of the plan if it has any.
  row(row) {
    if (row.label) return row.label.replace('%s', row.name);
    return row.name === '' ? '' : this.t('row', { row: row.name });
  }

  // "Stalls, row A"
  rowPlace(row) { return [this.plan.sections[row.section].name, this.row(row)].filter(Boolean).join(', '); }

  seat(i) {
    const { seatLabel } = this.plan.rowOf(i), label = this.plan.labels[i];
    return seatLabel ? seatLabel.replace('%s', label) : this.t('seat', { seat: label });
  }

  // "Stalls, row A, seat 12"
  place(i) { return `${this.rowPlace(this.plan.rowOf(i))}, ${this.seat(i)}`; }

  // The same for an id, which is all that is known of a seat that is not in the plan.
  placeOfId(id) {
    const i = this.plan.indexOf(id);
    return i < 0 ? id : this.place(i);
  }

  placesOfIds(ids) { return list(ids.map((id) => this.placeOfId(id)), this.lang); }

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
