// Numbers, money and times as the operator's page writes them, in the reader's language.

import * as format from '../lib/format.js';

const EXACT = { dateStyle: 'short', timeStyle: 'medium' };

// The functions below, bound to a language.
export function formatsFor(lang, t) {
  const number = (n, digits = 0) => new Intl.NumberFormat(lang, { maximumFractionDigits: digits }).format(n);
  const exact = new Intl.DateTimeFormat(lang, {
    year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3,
  });
  // Three significant digits of what is small, whole numbers of what is large.
  const rounded = (value) => (Math.abs(value) >= 100 ? number(value) : new Intl.NumberFormat(lang, { maximumSignificantDigits: 3 }).format(value));
  return {
    number,
    money: (amount, currency) => format.money(amount, currency, lang),
    digits: (currency) => new Intl.NumberFormat(lang, { style: 'currency', currency: currency.toUpperCase() }).resolvedOptions().maximumFractionDigits,
    list: (names) => format.list(names, lang),
    duration: (ms) => format.duration(ms, lang),
    date: (at) => format.moment(at, lang, { dateStyle: 'medium', timeStyle: 'short' }),
    exact: (at) => exact.format(new Date(at)),
    clock: (ms) => format.moment(ms, lang, EXACT),
    minute: (ms) => format.moment(ms, lang, { hour: '2-digit', minute: '2-digit' }),
    // "−1 minute", "+1 second", for the buttons beside the slider.
    step: (ms) => `${ms < 0 ? '−' : '+'}${new Intl.NumberFormat(lang, { style: 'unit', unit: Math.abs(ms) < 60_000 ? 'second' : 'minute' })
      .format(Math.abs(ms) / (Math.abs(ms) < 60_000 ? 1000 : 60_000))}`,
    unit(value, unit) {
      if (unit === 'percent') return new Intl.NumberFormat(lang, { style: 'percent', maximumFractionDigits: value < 0.1 ? 1 : 0 }).format(value);
      return t(`unit.${unit}`, { value: rounded(value) });
    },
  };
}
