// Money, times and numbers in the reader's language, by Intl alone.

const formats = new Map(); // what Intl makes is costly to make and cheap to use

function format(kind, lang, options) {
  const key = `${kind} ${lang} ${JSON.stringify(options)}`;
  if (!formats.has(key)) formats.set(key, new Intl[kind](lang, options));
  return formats.get(key);
}

// `amount` is in the currency's smallest unit, as in the API: 6500 usd is $65.00, 6500 jpy is ¥6,500.
export function money(amount, currency, lang) {
  const style = format('NumberFormat', lang, { style: 'currency', currency: currency.toUpperCase() });
  return style.format(amount / 10 ** style.resolvedOptions().maximumFractionDigits);
}

export const number = (n, lang) => format('NumberFormat', lang, {}).format(n);

// A moment, from the API's text or from milliseconds: date and time of day, in the reader's time zone.
export const moment = (at, lang, options = { dateStyle: 'full', timeStyle: 'short' }) => format('DateTimeFormat', lang, options).format(new Date(at));

// Names in a row: "A, B and C".
export const list = (names, lang) => format('ListFormat', lang, { type: 'conjunction' }).format(names);

// Time that is left, as minutes and seconds: 7:59.
export function countdown(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

// A span of time in words with the unit that fits: "5 minutes", "2 hours".
export function duration(ms, lang) {
  const [value, unit] = ms < 90_000 ? [ms / 1000, 'second'] : ms < 5_400_000 ? [ms / 60_000, 'minute'] : ms < 129_600_000 ? [ms / 3_600_000, 'hour'] : [ms / 86_400_000, 'day'];
  return format('NumberFormat', lang, { style: 'unit', unit, unitDisplay: 'long', maximumFractionDigits: 0 }).format(value);
}
