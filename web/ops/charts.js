// The charts of the last hour.  Chart.js draws the lines; beside each chart a table says what they are worth now, which is
// its legend and its alternative for those who do not see it.  Lines differ by dashes as well as by colour.

import { h, newId } from './dom.js';
import { largest, latest } from './samples.js';

const SLOTS = 5; // colours --series-1 to --series-5 in ops.css
const DASHES = [[], [8, 3], [2, 3], [10, 3, 2, 3], [5, 5]];
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const SPAN_LEAST_MS = 5 * MINUTE_MS; // shown of a server that has just started

// What the charts show.  `lines` are names of series; a chart `by` a series has one line for each of its kinds.
export const CHARTS = [
  { name: 'holds', unit: 'perSecond', lines: ['holds_granted_per_s', 'holds_taken_per_s', 'holds_sold_out_per_s', 'holds_error_per_s'] },
  { name: 'contention', unit: 'percent', lines: ['share_refused'] },
  { name: 'refusals', unit: 'perSecond', lines: ['refused_by_view_per_s', 'refused_by_gate_per_s', 'refused_by_ledger_per_s'] },
  { name: 'holdTime', unit: 'ms', lines: ['hold_p50_ms', 'hold_p99_ms'] },
  { name: 'commitTime', unit: 'ms', lines: ['commit_p50_ms', 'commit_p99_ms'] },
  { name: 'batch', unit: 'count', lines: ['batch_commands_mean'] },
  { name: 'queue', unit: 'count', lines: ['queue_depth'] },
  { name: 'streams', unit: 'count', lines: ['streams_open'] },
  { name: 'active', unit: 'count', lines: ['holds_active'] },
  { name: 'ends', unit: 'perSecond', lines: ['expired_per_s', 'renewals_per_s'] },
  { name: 'payments', unit: 'perSecond', lines: ['bookings_pending_per_s', 'bookings_confirmed_per_s', 'bookings_failed_per_s', 'bookings_cancelled_per_s'] },
  { name: 'jobs', unit: 'count', by: 'jobs_pending' },
  { name: 'jobAge', unit: 'seconds', by: 'job_oldest_s' },
  { name: 'requests', unit: 'perSecond', lines: ['requests_per_s'] },
];

// The share of requests for holds that were refused because others were faster; null while nobody asked.
function shareRefused(samples) {
  const [granted, taken, soldOut, failed] = ['granted', 'taken', 'sold_out', 'error'].map((result) => samples.values(`holds_${result}_per_s`));
  return granted.map((n, i) => {
    const all = [n, taken[i], soldOut[i], failed[i]].reduce((sum, value) => sum + (value ?? 0), 0);
    return all > 0 ? ((taken[i] ?? 0) + (soldOut[i] ?? 0)) / all : null;
  });
}

// The lines of a chart: [{ label, values }].
function linesOf(chart, samples, t) {
  if (chart.by) return samples.kinds(chart.by).map((kind) => ({ label: kind, values: samples.values(chart.by, kind) }));
  return chart.lines.map((name) => ({
    label: t(`series.${name}`),
    values: name === 'share_refused' ? shareRefused(samples) : samples.values(name),
  }));
}

// Points for Chart.js.  Where nothing was measured, as the time of a commit while nobody bought, the line goes on to the next
// value; where samples are missing, as after a restart, it is interrupted.
function pointsOf(at, values, everyMs) {
  const points = [];
  for (let i = 0; i < at.length; i += 1) {
    const value = values[i] ?? null;
    if (i > 0 && at[i] - at[i - 1] > 3 * everyMs) points.push({ x: at[i - 1] + everyMs, y: null });
    if (value !== null) points.push({ x: at[i], y: value });
  }
  return points;
}

// How many values the longest uninterrupted line has: one alone would be a dot.
function longest(points) {
  let most = 0;
  let n = 0;
  for (const { y } of points) {
    n = y === null ? 0 : n + 1;
    most = Math.max(most, n);
  }
  return most;
}

// A point is seen as part of a line; one between two gaps is drawn by itself.  Most lines have none, and one number for all points
// costs Chart.js far less than a list.
function radiiOf(points) {
  const has = (i) => (points[i]?.y ?? null) !== null;
  const radii = points.map((_, i) => (has(i) && !has(i - 1) && !has(i + 1) ? 2 : 0));
  return radii.some(Boolean) ? radii : 0;
}

// Ticks at round times: every 15 minutes of an hour, more of less.
function roundTicks(axis) {
  const span = axis.max - axis.min;
  const step = [MINUTE_MS, 2 * MINUTE_MS, 5 * MINUTE_MS].find((each) => span / each <= 6) ?? 15 * MINUTE_MS;
  axis.ticks = [];
  for (let value = Math.ceil(axis.min / step) * step; value <= axis.max; value += step) axis.ticks.push({ value });
}

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// One chart with its heading and table: { element, show(samples, everyMs), repaint(), destroy() }.
function figure(chart, { t, format }) {
  const id = newId('chart');
  const write = (value) => (value === null ? '–' : format.unit(value, chart.unit));
  const canvas = h('canvas', { role: 'img', 'aria-labelledby': id });
  const body = h('tbody');
  const little = h('p', { class: 'little quiet', hidden: true }, t('chartLittle'));
  const element = h('figure', { class: 'chart', data: { chart: chart.name } },
    h('figcaption', {}, h('h3', { id }, t(`chart.${chart.name}`)), h('p', { class: 'quiet' }, t(`chartNote.${chart.name}`))),
    h('div', { class: 'plot' }, canvas, little),
    h('table', { class: 'legend' }, h('caption', { class: 'visually-hidden' }, t('chartTable', { chart: t(`chart.${chart.name}`) })),
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('line')), h('th', { scope: 'col', class: 'number' }, t('now')),
        h('th', { scope: 'col', class: 'number' }, t('hourMost')))),
      body));
  let newest = null; // samples that are not drawn yet
  let isSeen = false, isDestroyed = false;
  const drawn = new globalThis.Chart(canvas, {
    type: 'line',
    data: { datasets: [] },
    options: {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      parsing: false,
      normalized: true,
      interaction: { mode: 'index', intersect: false },
      elements: { point: { hitRadius: 8 }, line: { borderWidth: 2 } },
      plugins: {
        legend: { display: false },
        tooltip: {
          callbacks: {
            title: ([item]) => format.clock(item.parsed.x),
            label: (item) => `${item.dataset.label}: ${write(item.parsed.y)}`,
          },
        },
      },
      scales: {
        x: { type: 'linear', afterBuildTicks: roundTicks, ticks: { maxRotation: 0, callback: (value) => format.minute(value) }, grid: {} },
        y: { beginAtZero: true, ticks: { maxTicksLimit: 5, callback: write }, grid: {} },
      },
    },
  });

  function paint() {
    const { x, y } = drawn.options.scales;
    for (const axis of [x, y]) {
      axis.ticks.color = color('--text-soft');
      axis.grid.color = color('--line');
      axis.grid.borderColor = color('--line');
    }
    drawn.data.datasets.forEach((line, i) => { line.borderColor = line.backgroundColor = color(`--series-${(i % SLOTS) + 1}`); });
    drawn.update('none');
  }

  // One row for each line, with the line's colour and dashes before its name.
  function tell(lines) {
    while (body.rows.length > lines.length) body.lastChild.remove();
    lines.forEach(({ label, values }, i) => {
      if (!body.rows[i]) {
        body.append(h('tr', {}, h('th', { scope: 'row' }, h('span', { class: `swatch swatch-${(i % SLOTS) + 1}`, 'aria-hidden': 'true' }), h('span')),
          h('td', { class: 'number' }), h('td', { class: 'number' })));
      }
      const [name, now, most] = body.rows[i].cells;
      name.lastChild.textContent = label;
      now.textContent = write(latest(values));
      most.textContent = write(largest(values));
    });
  }

  // Chart.js draws the samples that came last; a chart that nobody sees is drawn when it comes into view.
  function draw() {
    if (!newest || !isSeen) return;
    const { lines, at, everyMs } = newest;
    newest = null;
    const points = lines.map(({ values }) => pointsOf(at, values, everyMs));
    little.hidden = points.some((data) => longest(data) > 1);
    drawn.data.datasets = lines.map(({ label }, i) => {
      const data = little.hidden ? points[i] : [];
      return { label, data, pointRadius: radiiOf(data), borderDash: DASHES[i % DASHES.length], spanGaps: false };
    });
    const end = at.at(-1) ?? Date.now();
    drawn.options.scales.x.min = Math.max(end - HOUR_MS, Math.min(at[0] ?? end, end - SPAN_LEAST_MS));
    drawn.options.scales.x.max = end;
    paint();
    element.dataset.points = String(at.length);
  }
  const seen = new IntersectionObserver((entries) => {
    isSeen = entries.at(-1).isIntersecting;
    draw();
  }, { rootMargin: '200px' });
  seen.observe(element);

  return {
    element,
    show(samples, everyMs) {
      if (isDestroyed) return; // samples that were still being read come too late to be drawn
      newest = { lines: linesOf(chart, samples, t), at: samples.at, everyMs };
      tell(newest.lines);
      setTimeout(draw); // each chart in a task of its own, so that the page stays quick
    },
    repaint: paint,
    destroy() {
      seen.disconnect();
      isDestroyed = true;
      newest = null;
      drawn.destroy();
    },
  };
}

// All charts in a grid.  Their colours follow the reader's choice of light or dark.
export function chartGrid(context) {
  const figures = CHARTS.map((chart) => figure(chart, context));
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const repaint = () => figures.forEach((one) => one.repaint());
  dark.addEventListener('change', repaint);
  return {
    element: h('div', { class: 'charts' }, figures.map(({ element }) => element)),
    show(samples, everyMs) { for (const one of figures) one.show(samples, everyMs); },
    destroy() {
      dark.removeEventListener('change', repaint);
      for (const one of figures) one.destroy();
    },
  };
}
