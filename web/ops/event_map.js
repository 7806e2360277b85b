// The map of an event: live or as it was at any moment since the event was created, coloured by the status of the seats or by how
// often each was the reason of a refusal.

import '../seats/element.js';
import { button, field, h, liveTable, localText } from './dom.js';
import { poll } from './poll.js';

const HEAT_MS = 5000;
const PAUSE_MS = 200; // the slider rests this long before a past map is asked for
const TICK_MS = 1000;
const HOTTEST = 10; // rows of the table

// The slider through time: { element, stop() }.  `onMoment` gets the moment in milliseconds, or null for now.
function timeline({ t, format, now }, event, onMoment) {
  const created = Date.parse(event.created_at);
  const slider = h('input', { type: 'range', min: created, step: '1' });
  const exact = h('input', { type: 'datetime-local', step: '0.001' });
  const shown = h('output', {});
  const live = button(t('live'), () => choose(null, 0), { 'aria-pressed': 'true' });
  let moment = null;
  let timer = null;

  function tell() {
    const end = now();
    slider.max = String(end);
    slider.value = String(moment ?? end);
    slider.setAttribute('aria-valuetext', moment === null ? t('liveNow') : format.exact(moment));
    live.setAttribute('aria-pressed', String(moment === null));
    shown.textContent = moment === null ? t('liveNow') : t('asItWas', { time: format.exact(moment) });
    if (document.activeElement !== exact) exact.value = localText(moment ?? end);
  }
  function choose(ms, pause) {
    const end = now();
    moment = ms === null || ms >= end ? null : Math.max(ms, created);
    tell();
    clearTimeout(timer);
    timer = setTimeout(() => onMoment(moment), pause);
  }
  const step = (ms) => button(format.step(ms), () => choose((moment ?? now()) + ms, PAUSE_MS), { class: 'step' });

  // The arrow keys move a slider by its step, a millisecond here; a thousandth of the whole is of more use.
  slider.addEventListener('keydown', (pressed) => {
    const direction = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[pressed.key];
    if (!direction) return;
    pressed.preventDefault();
    choose((moment ?? now()) + direction * Math.max(100, Math.round((now() - created) / 1000)), PAUSE_MS);
  });
  slider.addEventListener('input', () => choose(Number(slider.value), PAUSE_MS));
  exact.addEventListener('change', () => exact.value && choose(new Date(exact.value).getTime(), 0));
  exact.addEventListener('blur', tell);
  const ticking = setInterval(() => moment === null && tell(), TICK_MS);
  tell();
  return {
    element: h('div', { class: 'timeline', role: 'group', 'aria-label': t('timeline') },
      field(t('moment'), slider), shown,
      h('div', { class: 'buttons' }, step(-60_000), step(-1000), live, step(1000), step(60_000)),
      field(t('exactMoment'), exact)),
    stop() { clearInterval(ticking); clearTimeout(timer); },
  };
}

// Which seats are fought over: the paint of the map and a table of the hottest.
function heat(context, event, map, onSeat) {
  const { t, format, call } = context;
  const since = h('p', { class: 'quiet' });
  const table = liveTable({
    caption: t('hottest'), empty: t('noHeat'), wide: t('wideTable'), key: ([seat]) => seat,
    columns: [
      { title: t('seat'), head: true, mark: ([seat]) => seat, node: ([seat]) => button(seat, () => onSeat(seat), { class: 'link' }) },
      { title: t('refusals'), kind: 'number', text: ([, n]) => format.number(n) },
    ],
  });
  const element = h('div', { hidden: true }, since, table.element);
  let polling = null;
  return {
    element,
    show(wanted) {
      polling?.stop();
      polling = null;
      element.hidden = !wanted;
      map.paint = wanted ? 'heat' : 'status';
      if (!wanted) return;
      polling = poll(async () => {
        const answer = await call('GET', `/v1/events/${encodeURIComponent(event.id)}/heat?limit=10000`);
        await map.ready;
        map.setHeat(new Map(answer.seats));
        since.textContent = t('heatSince', { n: answer.total, count: format.number(answer.total), time: format.exact(answer.since) });
        table.show(answer.seats.slice(0, HOTTEST));
      }, HEAT_MS, context.watch());
    },
    stop() { polling?.stop(); },
  };
}

// `onSeat(id)`: a seat was chosen, on the map or in the table.  `onMoment(ms)`: the map goes to another moment; null: now.
export function eventMap(context, event, { onSeat, onMoment }) {
  const { t, call } = context;
  const map = h('holdfast-seats', { server: '', event: event.id, lang: document.documentElement.lang });
  map.interactive = false;
  const problem = h('p', { role: 'alert', class: 'problem' });
  const line = timeline(context, event, show);
  let wanted = null; // the moment that the map is to show
  let isReading = false;

  // A past map is work for the server, so there is one request at a time, and then one for where the slider is by then.
  async function show(moment) {
    wanted = moment;
    problem.textContent = '';
    element.classList.toggle('past', moment !== null);
    onMoment(moment);
    if (moment === null) map.showMap(null);
    if (isReading) return;
    isReading = true;
    while (wanted !== null && await showPast(wanted) !== wanted);
    isReading = false;
  }
  async function showPast(moment) {
    try {
      const at = new Date(moment).toISOString();
      const snapshot = await call('GET', `/v1/events/${encodeURIComponent(event.id)}/seats?at=${encodeURIComponent(at)}`);
      await map.ready; // until then there is nothing to draw it on
      if (wanted === null) return moment;
      map.showMap(snapshot);
      if (wanted === moment) context.tell(t('pastShown', { time: context.format.exact(moment) }));
    } catch (error) { if (wanted === moment) problem.textContent = context.explain(error); }
    return moment;
  }

  map.addEventListener('pick', ({ detail }) => onSeat(detail.seat));
  const fought = heat(context, event, map, onSeat);
  const paints = ['status', 'heat'].map((paint) => {
    const radio = h('input', { type: 'radio', name: 'paint', value: paint, checked: paint === 'status', on: { change: () => fought.show(paint === 'heat') } });
    return h('label', { class: 'choice' }, radio, ' ', t(`paint.${paint}`));
  });
  const element = h('section', { class: 'map' }, h('h2', {}, t('map')),
    h('fieldset', { class: 'choices' }, h('legend', {}, t('colourBy')), paints),
    map, line.element, problem, fought.element);
  return { element, map, stop() { wanted = null; line.stop(); fought.stop(); } };
}
