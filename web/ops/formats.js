// Numbers, money and times as the operator's page writes them, in the reader's language.

import * as format from '../lib/format.js';
import { venueText, venueTime, venueZone } from '../lib/venue_time.js';

const BRIEF = { dateStyle: 'medium', timeStyle: 'short' };

// An amount as people write it, in the currency's smallest unit; NaN if it is none.
export function minorUnits(text, digits) {
  const match = /^\s*(\d+)(?:[.,](\d+))?\s*$/.exec(text);
  if (!match || (match[2] ?? '').length > digits) return NaN;
  return Number(match[1] + (match[2] ?? '').padEnd(digits, '0'));
}

// The functions below, bound to a language.  What Intl makes is costly to make and cheap to use, so each is made once.
export function formatsFor(lang, t) {
  const whole = new Intl.NumberFormat(lang, { maximumFractionDigits: 0 });
  const tenths = new Intl.NumberFormat(lang, { maximumFractionDigits: 1 });
  const short = new Intl.NumberFormat(lang, { maximumSignificantDigits: 3 });
  const percent = new Intl.NumberFormat(lang, { style: 'percent', maximumFractionDigits: 0 });
  const smallPercent = new Intl.NumberFormat(lang, { style: 'percent', maximumFractionDigits: 1 });
  const [seconds, minutes] = ['second', 'minute'].map((unit) => new Intl.NumberFormat(lang, { style: 'unit', unit, signDisplay: 'always' }));
  const exact = new Intl.DateTimeFormat(lang, {
    year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3,
  });
  return {
    number: (n) => whole.format(n),
    tenths: (n) => tenths.format(n),
    money: (amount, currency) => format.money(amount, currency, lang),
    digits: (currency) => new Intl.NumberFormat(lang, { style: 'currency', currency: currency.toUpperCase() }).resolvedOptions().maximumFractionDigits,
    list: (names) => format.list(names, lang),
    duration: (ms) => format.duration(ms, lang),
    date: (at) => format.moment(at, lang, BRIEF),
    // When an event starts: there, and for the reader, too, if there is room.
    start: (event) => venueTime(event.starts_at, venueZone(event), lang, BRIEF).there,
    startHere: (event) => venueText(t, event.starts_at, venueZone(event), lang, BRIEF),
    exact: (at) => exact.format(new Date(at)), // to the millisecond
    clock: (ms) => format.moment(ms, lang, { dateStyle: 'short', timeStyle: 'medium' }),
    minute: (ms) => format.moment(ms, lang, { hour: '2-digit', minute: '2-digit' }),
    // "-1 min", "+1 sec", for the buttons beside the slider.
    step: (ms) => (Math.abs(ms) < 60_000 ? seconds.format(ms / 1000) : minutes.format(ms / 60_000)),
    // A value of a chart: three digits of what is small, whole numbers of what is large.
    unit(value, unit) {
      if (unit === 'percent') return (value < 0.1 ? smallPercent : percent).format(value);
      return t(`unit.${unit}`, { value: (Math.abs(value) >= 100 ? whole : short).format(value) });
    },
  };
}
