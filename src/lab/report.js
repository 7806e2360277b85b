// The script of the page that `holdfast lab report` writes: tables and plots from race.json, sequence diagrams from
// anomalies.json, tables from locks.json, all of which are in the page.  Every number shown is one of theirs, rounded; only the sums in the tiles
// are computed here.
'use strict';

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const race = read('race-json');
const lab = read('anomalies-json');
const measured = read('locks-json'); // null if it was not given
const at = (id) => document.getElementById(id);

// ---- helpers ----

const SVG = 'http://www.w3.org/2000/svg';
function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
function draw(parent, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

// Three significant digits; whole numbers stay whole, with separated thousands.
function number(value) {
  if (value === null || value === undefined || value < 0) return '–';
  if (Number.isInteger(value) || value >= 100) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}
const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
const unique = (values) => [...new Set(values)];
const usersOf = unique(race.runs.map(({ users }) => users)).sort((a, b) => a - b);
const strategies = unique(race.runs.map(({ strategy }) => strategy));

function notes(id, texts) {
  for (const text of texts.filter(Boolean)) at(id).append(make('p', { class: 'lead' }, text));
}

// ---- the top ----

function facts() {
  const { machine = {}, versions = {}, back_end: back = {} } = race;
  const memory = machine.memory_bytes ? `${(machine.memory_bytes / 2 ** 30).toFixed(1)} GiB` : null;
  const known = machine.model && machine.model !== 'unknown' ? machine.model : null;
  const ledger = back.ledger === 'postgresql' ? `PostgreSQL ${versions.postgresql ?? ''}`
    : `SQLite ${versions.sqlite ?? ''}`;
  const rows = [
    ['Date', new Date(race.at).toISOString().replace('T', ' ').slice(0, 16) + ' UTC'],
    ['Machine', [machine.cpus && count(machine.cpus, 'CPU'), known, memory, machine.kernel].filter(Boolean).join(', ')],
    ['Ledger', ledger],
    ['Gate', back.gate === 'redis' ? `Redis ${versions.redis ?? ''}` : 'none'],
    ['Holdfast', versions.holdfast ?? ''],
  ];
  for (const [name, text] of rows) at('facts').append(make('div', {}, make('dt', {}, name), make('dd', {}, text)));
}

function tile(kind, value, text, field) {
  at('tiles').append(make('div', { class: `tile ${kind}` }, make('b', { 'data-tile': field }, value), text));
}

function tiles() {
  const promised = race.runs.filter((run) => run.promises_correct);
  const kept = promised.filter(({ verdict }) => verdict === 'correct').length;
  const naive = race.runs.filter((run) => !run.promises_correct);
  const twice = naive.reduce((sum, { double_sold: n }) => sum + n, 0);
  const sides = lab.anomalies.flatMap(({ sides: both }) => both);
  const count_of = (verdict) => sides.filter((side) => side.verdict === verdict).length;
  if (naive.length) {
    tile(twice ? 'bad' : '', number(twice), `times a seat was sold again, by ${unique(naive.map(({ strategy }) => strategy)).join(', ')} `
      + `in ${count(naive.length, 'race')}`, 'twice');
  }
  tile(kept === promised.length ? 'good' : 'bad', `${number(kept)} of ${number(promised.length)}`,
    'races in which a strategy that promises to sell a seat once did so', 'kept');
  tile(count_of('violated') ? 'bad' : '', number(count_of('violated')), 'interleavings without protection end with the rule violated', 'violated');
  tile(count_of('protected') ? 'good' : 'bad', number(count_of('protected')), 'of the same with protection end with it protected', 'protected');
}

// ---- tables ----

const VERDICTS = {
  correct: ['good', '✓ correct'], broken: ['bad', '✗ broken'], caught: ['bad', '✗ sold twice'], 'not caught': ['odd', '? lucky this time'],
};
const LATENCY = ['avg', 'p50', 'p99'];

function head() {
  const top = make('tr', {});
  const low = make('tr', {});
  for (const name of ['strategy', 'double-sold', 'winners', 'errors', 'verdict', 'several servers', 'answers/s']) {
    top.append(make('th', { rowspan: 2, scope: 'col', ...(name === 'verdict' ? { class: 'verdict' } : {}) }, name));
  }
  for (const name of ['winners wait, ms', 'losers wait, ms', 'per request']) {
    top.append(make('th', { colspan: 3, scope: 'colgroup' }, name));
  }
  const trips = race.back_end?.ledger === 'sqlite' ? 'SQL statements' : 'SQL trips';
  for (const name of [...LATENCY, ...LATENCY, trips, 'Redis trips', 'commits']) low.append(make('th', { scope: 'col' }, name));
  return make('thead', {}, top, low);
}

function row(run) {
  const index = race.runs.indexOf(run);
  const [kind, words] = VERDICTS[run.verdict] ?? ['odd', run.verdict];
  const cell = (field, value, attributes = {}) => make('td', { 'data-field': field, ...attributes }, number(value));
  const verdict = make('td', { class: 'verdict', 'data-field': 'verdict', 'data-verdict': run.verdict },
    make('span', { class: `pill ${kind}`, title: run.why ?? '' }, words));
  return make('tr', { 'data-run': index, class: run.verdict.replace(' ', '-') },
    make('th', { scope: 'row', title: run.summary ?? '' }, run.strategy),
    cell('double_sold', run.double_sold, { class: `double ${run.double_sold ? 'some' : ''}` }),
    cell('winners', run.winners), cell('errors', run.errors), verdict,
    make('td', { 'data-field': 'several_servers' }, run.several_servers ? 'yes' : 'no'), cell('throughput', run.throughput),
    ...['winners_ms', 'losers_ms'].flatMap((who) => LATENCY.map((key) => cell(`${who}.${key}`, run[who]?.[key] ?? null))),
    cell('round_trips_per_request', run.round_trips_per_request),
    cell('gate_trips_per_request', run.gate_trips_per_request), cell('commits_per_request', run.commits_per_request));
}

function tables() {
  for (const users of usersOf) {
    const runs = race.runs.filter((run) => run.users === users);
    const title = `${count(users, 'user')}, ${unique(runs.map(({ seats }) => count(seats, 'seat'))).join(', ')}`;
    at('tables').append(make('div', { class: 'table' }, make('h3', {}, title),
      make('div', { class: 'scroll' }, make('table', {}, head(), make('tbody', {}, ...runs.map(row))))));
  }
  notes('race-notes', [race.note, ...(race.skipped ?? []).map(({ strategy, why }) => `${strategy} did not run: ${why}.`)]);
  const { connections_max: shared } = race;
  if (usersOf.at(-1) > shared) at('sharing').append(`; more than ${number(shared)} users share ${number(shared)} connections and wait for one`);
}

// ---- plots ----

const LIGHT = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#8c6d1f', '#6a51a3', '#4d4d4d', '#2f855a', '#a0522d'];
const DARK = ['#5db7f0', '#f5b942', '#3fd3a6', '#eaa6cc', '#9bd8fb', '#cfae58', '#b3a0e8', '#bdbdbd', '#7ddba3', '#e0a07a'];
const OURS = ['holdfast'];
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [14, 4]];
const POINTS = ['circle', 'triangle', 'rect', 'rectRot', 'crossRot', 'star', 'cross', 'rectRounded'];
const darkly = window.matchMedia('(prefers-color-scheme: dark)');
const hidden = new Set();
const charts = [];
let printing = false;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => darkly.matches && !printing;
function look(strategy) {
  const runs = race.runs.filter((run) => run.strategy === strategy);
  if (!runs[0].promises_correct) return { color: isDark() ? '#ff8f85' : '#b3261e', dash: [], width: 3, point: 'circle' };
  if (OURS.includes(strategy)) return { color: isDark() ? '#ffffff' : '#111111', dash: [], width: 3.5, point: 'circle' };
  const rank = strategies.filter((name) => race.runs.find((run) => run.strategy === name).promises_correct
    && !OURS.includes(name)).indexOf(strategy);
  // Dashes and points distinguish the lines for readers who cannot tell two colours apart.
  return { color: (isDark() ? DARK : LIGHT)[rank % LIGHT.length], dash: DASHES[rank < 4 ? rank : (rank - 3) % DASHES.length],
    width: 2, point: POINTS[rank % POINTS.length] };
}

function paint(chart) {
  const [ink, soft, line] = [printing ? '#000' : css('--ink'), printing ? '#444' : css('--soft'), printing ? '#ccc' : css('--line')];
  for (const set of chart.data.datasets) {
    const { color, dash, width, point } = look(set.label);
    Object.assign(set, { pointStyle: point, borderColor: color, backgroundColor: color, pointBackgroundColor: color, pointBorderColor: color, borderDash: dash, borderWidth: width, hidden: hidden.has(set.label) });
  }
  for (const scale of Object.values(chart.options.scales)) {
    Object.assign(scale.grid, { color: line, borderColor: soft });
    scale.ticks.color = soft;
    scale.title.color = ink;
  }
}

const axis = (text, type, more = {}) => ({
  type, grid: {}, title: { display: true, text, font: { size: 14 } },
  ...more,
  ticks: { font: { size: 13 }, maxRotation: 0, ...(type === 'logarithmic' ? { callback: decades } : {}), ...more.ticks },
});
// One label per power of ten, and 2 and 5 where there is room for them.
function decades(value, _, ticks) {
  const digit = Number(String(value.toExponential()).split('e')[0]);
  const span = Math.log10(ticks.at(-1).value / ticks[0].value);
  return digit === 1 || (span < 2.5 && (digit === 2 || digit === 5)) ? Number(value.toPrecision(3)).toLocaleString('en-US') : '';
}

function plot(title, small, datasets, x, y, tooltip) {
  if (!datasets.some(({ data }) => data.length)) return;
  const canvas = make('canvas', { role: 'img', 'aria-label': title });
  at('charts').append(make('figure', {}, make('figcaption', {}, title, make('small', {}, small)), make('div', { class: 'plot' }, canvas)));
  const chart = new Chart(canvas, {
    type: 'line',
    data: { datasets },
    options: {
      animation: false, maintainAspectRatio: false, parsing: false, normalized: true, devicePixelRatio: Math.max(2, window.devicePixelRatio),
      interaction: { mode: 'nearest', intersect: false },
      scales: { x, y },
      plugins: { legend: { display: false }, tooltip: { callbacks: { title: () => '', label: tooltip } } },
    },
  });
  charts.push(chart);
}

// One line per strategy over the numbers of users.
function byUsers(title, small, unit, value) {
  const datasets = strategies.map((strategy) => ({
    label: strategy, pointRadius: 4, tension: 0, clip: false,
    data: race.runs.filter((run) => run.strategy === strategy).sort((a, b) => a.users - b.users)
      .map((run) => ({ x: run.users, y: value(run) })).filter(({ y }) => y > 0),
  }));
  const x = axis('users', 'logarithmic', {
    min: usersOf[0], max: usersOf.at(-1), ticks: { callback: (tick) => (usersOf.includes(tick) ? tick.toLocaleString('en-US') : '') } });
  x.afterBuildTicks = (scale) => { scale.ticks = usersOf.map((users) => ({ value: users })); };
  plot(title, small, datasets, x, axis(unit, 'logarithmic'),
    ({ dataset, parsed }) => `${dataset.label}: ${number(parsed.y)} ${unit} (${count(parsed.x, 'user')})`);
}

// Plots which share of the losers had an answer after how many ms.
function distribution(users) {
  const datasets = strategies.map((strategy) => {
    const run = race.runs.find((one) => one.strategy === strategy && one.users === users);
    const quantiles = run?.losers_ms?.quantiles ?? [];
    const pointRadius = ({ dataIndex }) => (dataIndex % 25 ? 0 : 4); // a mark at each quarter
    return { label: strategy, pointRadius, tension: 0, clip: false, data: quantiles.map((ms, percent) => ({ x: Math.max(ms, 0.01), y: percent })) };
  });
  plot(`${count(users, 'user')}: how long losers wait`, 'Share of losers who have been refused, with a mark at each quarter; further left is better', datasets,
    axis('ms since the click', 'logarithmic'), axis('% of losers', 'linear', { min: 0, max: 100 }),
    ({ dataset, parsed }) => `${dataset.label}: ${parsed.y} % within ${number(parsed.x)} ms`);
}

function repaint() {
  for (const chart of charts) {
    paint(chart);
    chart.update();
  }
  legend();
}

// The shapes of Chart.js's points, for the legend.
const MARKS = {
  circle: 'M-5 0 a5 5 0 1 0 10 0 a5 5 0 1 0 -10 0', triangle: 'M0 -5.5 L5.5 4.5 H-5.5 z', rect: 'M-4.5 -4.5 h9 v9 h-9 z',
  rectRot: 'M0 -6 L6 0 L0 6 L-6 0 z', crossRot: 'M-4 -4 L4 4 M-4 4 L4 -4', star: 'M-4 -4 L4 4 M-4 4 L4 -4 M0 -6 V6 M-6 0 H6',
  cross: 'M0 -6 V6 M-6 0 H6', rectRounded: 'M-3 -4.5 h6 q1.5 0 1.5 1.5 v6 q0 1.5 -1.5 1.5 h-6 q-1.5 0 -1.5 -1.5 v-6 q0 -1.5 1.5 -1.5 z',
};

function legend() {
  at('legend').replaceChildren(...strategies.map((strategy) => {
    const { color, dash, width, point } = look(strategy);
    const button = make('button', { type: 'button', 'aria-pressed': !hidden.has(strategy) });
    const sample = draw(button, 'svg', { viewBox: '0 0 52 16', 'aria-hidden': 'true' });
    draw(sample, 'line', { x1: 1, x2: 51, y1: 8, y2: 8, stroke: color, 'stroke-width': width + 0.5, 'stroke-dasharray': dash.join(' ') });
    draw(sample, 'path', { d: MARKS[point], transform: 'translate(26 8)', fill: color, stroke: color, 'stroke-width': 2 });
    button.append(strategy);
    button.addEventListener('click', () => {
      if (!hidden.delete(strategy)) hidden.add(strategy);
      repaint();
    });
    return button;
  }));
}

function plots() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  byUsers('Throughput', 'Answers per second, yes and no together; higher is better', 'answers/s', (run) => run.throughput);
  byUsers('How long winners wait', `Half of the winners wait no longer than this${race.runs.every(({ seats }) => seats === 1) ? ' (with one seat there is one winner, so each value is one user)' : ''}; lower is better`, 'ms', (run) => run.winners_ms?.p50);
  byUsers('How long the slowest losers wait', '99 % of the losers wait no longer than this; lower is better', 'ms', (run) => run.losers_ms?.p99);
  usersOf.forEach(distribution);
  repaint();
  darkly.addEventListener('change', repaint);
  const print = (now) => () => {
    printing = now;
    repaint();
  };
  window.addEventListener('beforeprint', print(true));
  window.addEventListener('afterprint', print(false));
}

// ---- sequence diagrams ----

const WIDTH = 680, LEFT = 88, RIGHT = 62, LINE = 15;
const ruler = document.createElement('canvas').getContext('2d');
const MONO = '11.5px "DejaVu Sans Mono", "Liberation Mono", monospace';
const SANS = 'italic 12px "Noto Sans", "DejaVu Sans", sans-serif';

function wrap(text, font, width) {
  ruler.font = font;
  const lines = [''];
  for (const word of text.split(' ')) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (lines.at(-1) && ruler.measureText(longer).width > width) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
const widest = (lines, font) => {
  ruler.font = font;
  return Math.max(...lines.map((line) => ruler.measureText(line).width));
};
const clamp = (value, low, high) => Math.min(Math.max(value, low), Math.max(low, high));
const SERVERS = ['PostgreSQL', 'Redis', 'SQLite', 'Network', 'R1', 'R2', 'R3', 'Primary', 'Replica', 'etcd', 'ZooKeeper'];
const isBad = (text) => /^ERROR|^connection lost/.test(text);

class Diagram {
  constructor(side) {
    const gap = side.actors.length > 1 ? (WIDTH - LEFT - RIGHT) / (side.actors.length - 1) : 0;
    this.x = new Map(side.actors.map((actor, index) => [actor, LEFT + index * gap]));
    this.svg = document.createElementNS(SVG, 'svg');
    this.lanes = draw(this.svg, 'g', {});
    this.y = 50;
    for (const step of side.steps) this.step(step);
    this.finish();
    this.svg.setAttribute('viewBox', `0 0 ${WIDTH} ${this.y}`);
    this.svg.setAttribute('role', 'img');
    this.svg.setAttribute('aria-label', side.steps.map(({ from, to, text, answer, thinks }) => `${from}${to === from ? '' : ` to ${to}`}: `
      + `${text}${answer ? `; answer: ${answer}` : ''}${thinks ? `; ${from} thinks: ${thinks}` : ''}`).join('. '));
  }

  step({ at_ms: ms, from, to, text, answer, thinks }) {
    const top = this.y + 12;
    if (from === to) this.box(from, text, 'notice', SANS.replace('italic ', ''));
    else this.arrow(from, to, text, SERVERS.includes(from) ? 'answer' : ''); // an answer that was waited for
    draw(this.svg, 'text', { class: 'time', x: 0, y: top }, `${ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms`);
    if (answer !== null && answer !== undefined) this.arrow(to, from, answer, 'answer');
    if (thinks) this.box(from, `“${thinks}”`, 'cloud', SANS);
    this.y += 6;
  }

  // The text of a message, above its arrow.
  arrow(from, to, text, kind) {
    const [a, b] = [this.x.get(from), this.x.get(to)];
    const lines = wrap(text, MONO, Math.max(Math.abs(a - b) - 20, 330));
    const half = widest(lines, MONO) / 2;
    const middle = clamp((a + b) / 2, LEFT - 30 + half, WIDTH - 4 - half);
    for (const line of lines) {
      this.y += LINE;
      draw(this.svg, 'text', { class: `said ${isBad(text) ? 'error' : ''}`, x: middle, y: this.y, 'text-anchor': 'middle' }, line);
    }
    this.y += 7;
    const way = Math.sign(b - a);
    draw(this.svg, 'line', { class: `arrow ${kind}`, x1: a, x2: b - way * 7, y1: this.y, y2: this.y });
    draw(this.svg, 'path', { class: 'tip', d: `M${b} ${this.y} l${-way * 9} -4.5 v9 z` });
    this.y += 3;
  }

  box(actor, text, kind, font) {
    const lines = wrap(text, font, 300);
    const half = widest(lines, font) / 2 + 10;
    const middle = clamp(this.x.get(actor), LEFT - 36 + half, WIDTH - 3 - half);
    this.y += 5;
    draw(this.svg, 'rect', { class: kind, x: middle - half, y: this.y, width: 2 * half, height: lines.length * LINE + 8, rx: kind === 'cloud' ? 11 : 2 });
    for (const line of lines) {
      this.y += LINE;
      draw(this.svg, 'text', { class: kind === 'cloud' ? 'thought' : '', x: middle, y: this.y, 'text-anchor': 'middle' }, line);
    }
    this.y += 10;
  }

  finish() {
    this.y += 6;
    for (const [actor, x] of this.x) {
      const half = actor.length * 4.3 + 10;
      draw(this.lanes, 'line', { class: 'lane', x1: x, x2: x, y1: 30, y2: this.y });
      draw(this.lanes, 'rect', { class: 'head', x: x - half, y: 4, width: 2 * half, height: 26, rx: 4 });
      draw(this.lanes, 'text', { class: 'name', x, y: 22, 'text-anchor': 'middle' }, actor);
    }
  }
}

const WORDS = ['No', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine', 'Ten', 'Eleven', 'Twelve'];

function stories() {
  const n = lab.anomalies.length;
  at('how-many').textContent = `${WORDS[n] ?? n} race${n === 1 ? '' : 's'}`;
  notes('anomaly-notes', [lab.note && `${lab.note}.`, ...(lab.left_out ?? []).map(({ name, why }) => `Left out: ${name}: ${why}.`)]);
  for (const anomaly of lab.anomalies) {
    const sides = anomaly.sides.map((side) => make('div', { class: `side ${side.verdict}`, 'data-verdict': side.verdict },
      make('h4', {}, side.name, ' ', make('small', {}, side.strategy)), new Diagram(side).svg,
      make('p', { class: 'ending' }, make('b', {}, side.verdict === 'violated' ? '✗ VIOLATED' : '✓ PROTECTED'),
        make('span', { class: 'evidence' }, side.evidence))));
    at('stories').append(make('article', { id: anomaly.name }, make('h3', {}, anomaly.title),
      make('p', { class: 'moral' }, anomaly.moral, ...(anomaly.more ? [' ', make('small', {}, `See ${anomaly.more}.`)] : [])), make('div', { class: 'sides' }, ...sides)));
  }
}

// ---- locks ----

const ms = (us) => number(us / 1000);
// What a cell is made of: whether it is good, bad or neither, its text, and more for those who point at it.
const plain = (text) => (value) => ['', text(value), `n = ${number(value.n)}`];
function faultCell(fault) {
  const all = `${fault.locks} of ${fault.locks}`;
  const gap = `${number(fault.gap_max_ms / 1000)} s`;
  const title = `${count(fault.locks, 'lock')}, ${count(fault.grants, 'grant')}; ${count(fault.overlaps, 'overlap')}; `
    + `${count(fault.fences_fell, 'fence')} fell; at most ${gap} without a holder`
    + `${fault.outage_ms ? `; the server was down for ${number(fault.outage_ms / 1000)} s` : ''}`;
  if (fault.overlapped) return ['bad', `✗ two holders, ${fault.overlapped} of ${fault.locks}${fault.fences_fell ? '; fences fell' : ''}`, title];
  if (fault.stuck) return ['bad', `✗ stuck, ${fault.stuck} of ${fault.locks}`, title];
  if (fault.fences_fell) return ['bad', `✗ fences fell; passed on after ${gap}`, title];
  if (fault.kept === fault.locks) return ['good', `✓ kept, ${all}`, title];
  return ['good', `✓ passed on, ${fault.locks - fault.kept} of ${fault.locks}, ${gap}`, title];
}

const reasons = []; // why cells are empty
function note(why) {
  if (!reasons.includes(why)) reasons.push(why);
  return make('sup', { title: why }, String(reasons.indexOf(why) + 1));
}

function lockTable(title, rows) {
  const body = rows.map(([name, field, cell]) => make('tr', { 'data-lock-row': field }, make('th', { scope: 'row' }, name),
    ...measured.drivers.map((driver) => {
      const value = driver.why ? driver : field.split('.').reduce((part, key) => part[key], driver);
      if (value.why) return make('td', { 'data-driver': driver.driver, class: 'none' }, '–', note(value.why));
      const [kind, text, hint] = cell(value);
      return make('td', { 'data-driver': driver.driver, title: hint }, kind ? make('span', { class: `pill ${kind}` }, text) : text);
    })));
  const head = make('thead', {}, make('tr', {}, make('th', {}, ''), ...measured.drivers.map(({ driver, version }) => make('th',
    { scope: 'col' }, driver, ...(version ? [make('small', {}, ` ${version}`)] : [])))));
  at('lock-tables').append(make('div', { class: 'table' }, make('h3', {}, title),
    make('div', { class: 'scroll' }, make('table', {}, head, make('tbody', {}, ...body)))));
}

function locks() {
  if (!measured) return;
  at('locks').hidden = false;
  const first = measured.drivers.find(({ why }) => !why);
  if (!first) return;
  const crowds = first.hand_over.map(({ waiters }, i) => [`hand-over with ${waiters} clients, ms: p50, p99`, `hand_over.${i}`,
    plain(({ p50_us: p50, p99_us: p99 }) => `${ms(p50)}, ${ms(p99)}`)]);
  lockTable('Speed', [
    ['acquire and release, per second', 'speed', plain(({ per_second: rate }) => number(Math.round(rate)))],
    ['the same, ms: p50, p99', 'speed', plain(({ p50_us: p50, p99_us: p99 }) => `${ms(p50)}, ${ms(p99)}`)],
    ...crowds,
    [`messages per hand-over, ${first.hand_over[1].waiters} clients`, 'traffic', plain(({ messages }) => number(messages))],
    [`order of arrival, ${first.hand_over[1].waiters} clients`, 'hand_over.1',
      plain(({ pairs, in_order: kept }) => `${kept === pairs ? 'kept' : 'not kept'}, ${kept} of ${pairs}`)],
  ]);
  lockTable(`When something fails; TTL ${number(measured.ttl_ms / 1000)} s`, Object.entries(measured.faults)
    .map(([name, text]) => [text, `faults.${name}`, faultCell]));
  notes('lock-notes', ['“Kept”: the holder had its lock through the fault. “Passed on”: another client got it, after at most this long without a holder. '
    + '“Two holders”: two clients relied on it at once.', ...reasons.map((why, i) => `${i + 1}: ${why}.`)]);
}

facts();
tiles();
tables();
plots();
stories();
locks();
document.documentElement.dataset.ready = 'yes';
