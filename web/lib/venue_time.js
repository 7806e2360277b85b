// Times as people at the venue read them.  `zone` is a time zone for Intl; undefined is the reader's own.

import { moment } from './format.js';

// That of the event, or else the offset that its start is written with.  Without either, or if this browser knows neither, times
// are shown as the reader's.
export function venueZone({ timezone, starts_at: startsAt }) {
  return [timezone, /[+-]\d\d:\d\d$/.exec(startsAt ?? '')?.[0]].find((zone) => {
    try { return Boolean(zone && new Intl.DateTimeFormat('en', { timeZone: zone })); } catch { return false; }
  });
}

const zoneName = (at, lang, zone) => new Intl.DateTimeFormat(lang, { timeZone: zone, timeZoneName: 'short' })
  .formatToParts(new Date(at)).find(({ type }) => type === 'timeZoneName').value;

// "Sunday, May 6, 2040 at 9:30 PM GMT+2" and, where the reader's clock shows something else then, what it shows: "3:30 PM EDT".
export function venueTime(at, zone, lang, { dateStyle = 'full', timeStyle = 'short' } = {}) {
  const there = moment(at, lang, { dateStyle, timeStyle, timeZone: zone });
  const here = moment(at, lang, { dateStyle, timeStyle });
  const isSameDay = moment(at, lang, { dateStyle, timeZone: zone }) === moment(at, lang, { dateStyle });
  return {
    there: `${there} ${zoneName(at, lang, zone)}`,
    here: there === here ? null : `${isSameDay ? moment(at, lang, { timeStyle }) : here} ${zoneName(at, lang)}`,
  };
}

// Both in one text; `t` has the sentence `alsoHere`.
export function venueText(t, at, zone, lang, options) {
  const { there, here } = venueTime(at, zone, lang, options);
  return here ? t('alsoHere', { there, here }) : there;
}

// ---- what is typed ----

// How far the zone's clock is ahead of UTC at a moment, in milliseconds.
function offsetAt(ms, zone) {
  const parts = new Intl.DateTimeFormat('en', {
    timeZone: zone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric',
  }).formatToParts(new Date(ms));
  const part = (name) => Number(parts.find(({ type }) => type === name).value);
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second')) - Math.floor(ms / 1000) * 1000;
}

// The value of a datetime-local field that shows the zone's clock.
export const wallText = (ms, zone) => new Date(ms + offsetAt(ms, zone)).toISOString().slice(0, 19);

// The other way round: the value as a time of the API, with the zone's offset.  A time that a change of clocks leaves out is taken
// as before or after that change.
export function fromWall(text, zone) {
  const wall = Date.parse(`${text}Z`);
  const minutes = Math.round(offsetAt(wall - offsetAt(wall, zone), zone) / 60_000);
  const digits = (n) => String(Math.floor(n)).padStart(2, '0');
  return `${new Date(wall).toISOString().slice(0, 19)}${minutes < 0 ? '-' : '+'}${digits(Math.abs(minutes) / 60)}:${digits(Math.abs(minutes) % 60)}`;
}
