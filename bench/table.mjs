// Turns rounds into a table: medians, their ratio, the range of the rounds, the verdict.

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// Computes the numbers of a line.  The target is for ours / peer, or for ours if there is no peer,
export function judge(line) {
  const ours = median(line.ours);
  const peer = line.peer && median(line.peer);
  const before = line.before && median(line.before);
  const ratio = line.peer && ours / peer;
  const change = line.before && ours / before;
  const each = line.ours.map((value, round) => (line.peer ? value / line.peer[round] : value));
  const verdict = line.target ? (line.target.good(ratio ?? ours) ? 'ok' : 'short') : '';
  return {
    name: line.name, unit: line.unit, peerName: line.peerName, target: line.target?.text,
    ours, peer, ratio, verdict, low: Math.min(...each), high: Math.max(...each), before, change,
    rounds: { ours: line.ours, peer: line.peer, before: line.before },
  };
}

function number(value, digits = 2) {
  if (value === undefined || Number.isNaN(value)) return ''; // an older build did not measure it
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(value >= 10 ? 1 : digits);
}

export function render(lines) {
  const head = ['row', 'measure', 'ours', 'peer', '', 'ratio', 'target', 'verdict', 'rounds'];
  const cells = lines.map((l) => [l.name, l.unit, number(l.ours), number(l.peer), l.peerName ?? '',
    number(l.ratio, 3), l.target ?? '', l.verdict, `${number(l.low)} .. ${number(l.high)}`]);
  const right = new Set([2, 3, 5, 9, 10]);
  if (lines.some((l) => l.before !== undefined)) {
    head.push('before', 'ours / before');
    cells.forEach((c, i) => c.push(number(lines[i].before), number(lines[i].change, 3)));
  }
  const width = head.map((h, i) => Math.max(h.length, ...cells.map((c) => c[i].length)));
  const pad = (cell, i) => (right.has(i) ? cell.padStart(width[i]) : cell.padEnd(width[i]));
  const text = (row) => row.map(pad).join('  ').trimEnd();
  return [text(head), width.map((w) => '-'.repeat(w)).join('  '), ...cells.map(text)].join('\n');
}
