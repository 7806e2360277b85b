// The waiting list on the buyer's page: the panel in which a buyer leaves a wish, sees how it stands, and hears how it ended.
// An offer is a hold like any other: event.js takes it up and sells it.

import { Problem } from '../lib/api.js';
import { duration, number } from '../lib/format.js';
import { venueText } from '../lib/venue_time.js';
import { wishText } from '../lib/wish.js';
import { byId, element } from './dom.js';
import { Entry } from './entry.js';
import { WishForm } from './wish_form.js';

const pick = ({ best_available: best, areas }) => (best ? { best_available: best } : { areas });

export class Waiting {
  #form;
  #entry;
  #sale = null;
  #page = { phase: 'loading', canBuy: false, isSoldOut: false };
  #isProposed = false; // what the buyer asked for was not there
  #with;

  // `page` has: map, places, t, lang, say, reasonOf, eventId, now() (the server's time), isTaken() (does the buyer see what was
  // offered?), and what the page does: changed(entry), when the entry has another status, take(), with what was offered, and
  // leaveExpired(), before the buyer waits again.
  constructor(keep, page) {
    this.#with = page;
    this.#form = new WishForm(page.map, page.places, page.t);
    this.#entry = new Entry('', keep, (now, before) => {
      if (now?.status !== before?.status && this.#page.phase !== 'loading') page.changed(now);
      this.#draw();
    });
    byId('wish').addEventListener('input', () => { this.#isProposed = true; }); // it does not vanish under the buyer's hands
    byId('wish').addEventListener('submit', (submit) => { submit.preventDefault(); this.#join(); });
    byId('wait-look').addEventListener('click', () => this.#look());
    byId('wait-leave').addEventListener('click', () => this.#leave());
    byId('wait-done').addEventListener('click', () => { this.#entry.forget(); this.#focus(); });
    byId('wait-take').addEventListener('click', () => page.take());
    for (const id of ['wait-again', 'expired-wait']) byId(id).addEventListener('click', () => this.again());
    document.addEventListener('visibilitychange', () => { if (!document.hidden) this.read(); });
    addEventListener('online', () => this.read());
  }

  get entry() { return this.#entry.now; }
  get isOffered() { return this.entry?.status === 'offered'; }
  // Was this hold offered?
  isOf(hold) { return Boolean(hold) && this.entry?.hold === hold.id; }

  get isShown() { return !byId('wait').hidden; }

  showSale(sale, hasAccessible) {
    this.#sale = sale;
    this.#entry.aliveMs = sale.waitlist?.alive_ms ?? Infinity;
    this.#form.show(sale, hasAccessible);
    this.#draw();
  }

  show(page) {
    this.#page = page;
    this.#draw();
  }

  // Takes up what this browser keeps, or what another tab has begun.
  async resume() {
    try { await this.#entry.resume(); } catch { /* the entry is followed, and read as soon as possible */ }
  }

  // Reads the entry, which is over perhaps.
  async read() {
    try { await this.#entry.read(); } catch { /* it is read again in a while */ }
  }

  forget() { this.#entry.forget(); }

  // What was asked for is not there: the buyer may wait for it.  Returns false where nobody can.
  propose(wish) {
    if (!this.#sale?.waitlist || this.entry) return false;
    this.#isProposed = true;
    this.#form.fill(wish);
    this.#draw();
    byId('wait').scrollIntoView({ block: 'nearest' });
    return true;
  }

  // The button that was pressed is gone.
  #focus() { byId(this.isShown ? 'wait-title' : 'choose-title').focus(); }

  goTo() {
    byId('wait').scrollIntoView();
    byId('wait-title').focus({ preventScroll: true });
  }

  // ---- what the buyer does ----

  #join() {
    const { say, now } = this.#with;
    const wish = this.#form.read(now(), (field, text) => {
      field.focus();
      say(text, 'bad');
      return null;
    });
    if (wish) this.#ask(wish, byId('wish').querySelector('[type="submit"]'));
  }

  // Waits for the same once more.
  again() {
    const { until } = this.entry;
    const wish = { ...pick(this.entry), ...(Date.parse(until) > this.#with.now() ? { until } : {}) };
    this.#with.leaveExpired();
    return this.#ask(wish, byId('wait-again'));
  }

  async #ask(wish, button) {
    const { t, say } = this.#with;
    button.disabled = true;
    try {
      await this.#entry.join({ event: this.#with.eventId, ...wish });
      this.#isProposed = false;
      this.#draw();
      if (this.entry?.status === 'waiting') say(t('joined', { number: number(this.entry.number, this.#with.lang) }), 'good');
      byId('wait-title').focus();
    } catch (error) {
      say(this.#reasonOf(error), 'bad');
    } finally {
      button.disabled = false;
    }
  }

  #reasonOf(error) {
    const { t, reasonOf } = this.#with;
    if (!(error instanceof Problem)) return reasonOf(error);
    const { limit } = error.body;
    const sentence = { available: 'waitAvailable', waitlist_off: 'waitOff', too_many_waits: 'tooManyWaits', already_waiting: 'tooManyWaits', invalid_request: 'waitImpossible' }[error.code];
    return sentence ? t(sentence, { n: limit }) : reasonOf(error);
  }

  async #look() {
    const { t, say, reasonOf } = this.#with;
    try {
      await this.#entry.read();
      if (this.entry?.status === 'waiting') say(this.#aheadText());
    } catch (error) { say(error instanceof Problem ? t('busy') : reasonOf(error), 'bad'); }
  }

  async #leave() {
    const { t, say, reasonOf } = this.#with;
    byId('wait-leave').disabled = true;
    try {
      await this.#entry.leave();
      say(t('waitLeft'), 'good');
      this.#focus();
    } catch (error) {
      say(reasonOf(error), 'bad');
    } finally {
      byId('wait-leave').disabled = false;
    }
  }

  // ---- what is shown ----

  get #mode() {
    const { phase, canBuy, isSoldOut } = this.#page, status = this.entry?.status;
    if (status === 'offered') return phase === 'loading' || this.#with.isTaken() ? null : 'offered';
    if (phase !== 'choosing') return null;
    if (status === 'waiting') return 'waiting';
    if (status === 'lapsed' || status === 'ended') return 'over';
    return !status && canBuy && this.#sale?.waitlist && (isSoldOut || this.#isProposed) ? 'form' : null;
  }

  // The buyer holds something else.
  get #isBusy() { return ['held', 'paying'].includes(this.#page.phase); }

  #aheadText() {
    const { ahead } = this.entry;
    return ahead === 0 ? this.#with.t('aheadNone') : this.#with.t('aheadCount', { n: ahead });
  }

  #draw() {
    const mode = this.#mode, { t } = this.#with, { isSoldOut } = this.#page;
    byId('wait').hidden = mode === null;
    byId('wait').classList.toggle('good', mode === 'offered');
    byId('wish').hidden = mode !== 'form';
    byId('wait-look').hidden = byId('wait-leave').hidden = mode !== 'waiting';
    byId('wait-again').hidden = mode !== 'over' || !this.#page.canBuy || !this.#sale.waitlist;
    byId('wait-done').hidden = mode !== 'over';
    byId('wait-take').hidden = mode !== 'offered' || this.#isBusy;
    byId('wait-facts').hidden = byId('wait-actions').hidden = mode === 'form';
    byId('wait-facts').replaceChildren(...(mode === null || mode === 'form' ? [] : this.#facts(mode)));
    if (mode === null) return;
    byId('wait-title').textContent = t({ form: isSoldOut ? 'waitSoldOut' : 'waitTitle', waiting: 'waitingTitle', offered: 'offeredTitle', over: this.entry?.status === 'lapsed' ? 'lapsedTitle' : 'waitOver' }[mode]);
    byId('wait-text').textContent = this.#text(mode);
  }

  #text(mode) {
    const { t, lang } = this.#with, { isSoldOut } = this.#page;
    if (mode === 'form') return t(isSoldOut ? 'waitSoldOutText' : 'waitText');
    if (mode === 'offered') return t(this.#isBusy ? 'offeredBesides' : 'offeredText');
    if (mode === 'over') return t(this.entry.status === 'lapsed' ? 'offerLapsed' : `waitEnded.${this.entry.reason}`);
    const terms = this.#sale?.waitlist;
    return terms ? t('waitingText', { time: duration(terms.offer_ttl_ms, lang), alive: duration(terms.alive_ms, lang) }) : '';
  }

  #facts(mode) {
    const { t, lang, places } = this.#with, { entry } = this;
    const fact = (name, value) => (value ? [element('dt', {}, t(name)), element('dd', {}, value)] : []);
    const isWaiting = mode === 'waiting';
    return [
      ...(isWaiting ? fact('waitNumber', number(entry.number, lang)) : []),
      ...(isWaiting && entry.ahead !== undefined ? fact('ahead', entry.ahead === 0 ? t('nobody') : number(entry.ahead, lang)) : []),
      ...fact('wish', wishText(entry, t, (id) => places.typeName(id))),
      ...(isWaiting ? fact('waitUntil', entry.until && venueText(t, entry.until, undefined, lang)) : []),
    ];
  }
}
