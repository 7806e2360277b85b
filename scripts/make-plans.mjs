#!/usr/bin/env node
// Writes tests/fixtures/plans/*.json: halls of the shapes that there are in the world, small, each the body of a POST /v1/events
// with a seating plan in pretix's format, and with what such plans have that is hard to draw.  tests/web/seats_parts.test.mjs draws
// them in a browser and by `holdfast plan draw`.
//
//   scripts/make-plans.mjs tests/fixtures/plans

import fs from 'node:fs';
import path from 'node:path';

const PITCH = 24; // from seat to seat
const DEPTH = 30; // from row to row

const round = (number) => Math.round(number * 10) / 10 + 0; // + 0: no -0
const at = (x, y) => ({ x: round(x), y: round(y) });
const times = (n, make) => Array.from({ length: n }, (_, i) => make(i));
const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ';

// The parts of a plan.  A row is made of the places of its seats, relative to its position.
const row = (zone, name, category, places, { position = at(0, 0), seat = () => ({}), ...more } = {}) => ({
  row_number: name, row_number_position: 'both', position, ...more,
  seats: places.map(({ x, y }, i) => ({ seat_guid: `${zone}-${name}-${i + 1}`, seat_number: `${i + 1}`, position: at(x, y), category, ...seat(i) })),
});
const line = (n, pitch = PITCH) => times(n, (i) => ({ x: (i - (n - 1) / 2) * pitch, y: 0 }));
const arc = (n, radius, from, to) => times(n, (i) => {
  const angle = ((from + (to - from) * (n > 1 ? i / (n - 1) : 0.5)) * Math.PI) / 180;
  return { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
});
const ring = (n, radius, from = -90) => arc(n, radius, from, from + 360 * (n - 1) / n);
const zone = (name, x, y, rows, areas = []) => ({ name, position: at(x, y), rows, areas });
const text = (words, x, y, size, color) => ({ text: words, position: at(x, y), ...(size ? { size } : {}), ...(color ? { color } : {}) });
const rectangle = (x, y, width, height, more = {}) => ({ shape: 'rectangle', position: at(x, y), rectangle: { width, height }, ...more });
const circle = (x, y, radius, more = {}) => ({ shape: 'circle', position: at(x, y), circle: { radius }, ...more });
const ellipse = (x, y, rx, ry, more = {}) => ({ shape: 'ellipse', position: at(x, y), ellipse: { radius: at(rx, ry) }, ...more });
const polygon = (x, y, points, more = {}) => ({ shape: 'polygon', position: at(x, y), polygon: { points: points.map(([px, py]) => at(px, py)) }, ...more });
const words = (x, y, ...rest) => ({ shape: 'text', position: at(x, y), text: text(...rest) });

const hall = (name, width, height, categories, zones, more = {}) => ({
  name, currency: 'eur', prices: Object.fromEntries(Object.keys(categories).map((category, i) => [category, 6000 - 1000 * i])),
  plan: { name, size: { width, height }, categories: Object.entries(categories).map(([category, color]) => ({ name: category, ...(color ? { color } : {}) })), zones },
  ...more,
});

const plans = {
  // Four blocks around the ring; the light rig's text has the colour of what it stands on.
  'arena-in-the-round': () => hall('Arena in the round', 760, 760, { Ringside: '#b3261e', Upper: '#1f6feb' }, [
    ...['North', 'East', 'South', 'West'].map((name, block) => zone(name, 380, 380,
      times(6, (i) => row(name, `${i + 1}`, i < 2 ? 'Ringside' : 'Upper', arc(7 + i, 130 + i * DEPTH, block * 90 - 90 - 32, block * 90 - 90 + 32))))),
    zone('Ring', 380, 380, [], [
      rectangle(-70, -70, 140, 140, { color: '#222222', border_color: '#f5c518', text: text('Ring', 70, 108, 26, '#222222') }),
      circle(0, 0, 8, { color: '#f5c518' }),
    ]),
  ]),

  // Round tables, some with a number of their own on the table, around which the name of the row has no room at its ends.
  'cabaret-tables': () => hall('Cabaret', 620, 520, { Table: '#7b3fa0', 'Front table': '#c2410c' }, [
    zone('Tables', 0, 0, times(12, (i) => row('Table', `T${i + 1}`, i < 4 ? 'Front table' : 'Table', ring(i % 3 === 0 ? 8 : 6, i % 3 === 0 ? 44 : 38),
      { position: at(100 + (i % 4) * 140, 160 + Math.floor(i / 4) * 130), row_label: `Table ${i + 1}` })),
    times(12, (i) => circle(100 + (i % 4) * 140, 160 + Math.floor(i / 4) * 130, 26,
      { color: '#e7d8c9', border_color: '#a58a6f', ...(i % 2 ? { text: text(`T${i + 1}`, 0, 0, 16, '#4a3b2a') } : {}) }))),
    zone('Stage', 310, 60, [], [ellipse(0, 0, 180, 36, { color: '#40304d', text: text('Show', 0, 0, 20, '#ffffff') })]),
  ]),

  // Areas that are sold: with a text that is their name, in other letters, or something else, without a text, without a colour.
  'festival-areas': () => hall('Festival', 900, 640, { Grandstand: null }, [
    zone('Grandstand', 450, 560, times(2, (i) => row('Stand', `${i + 1}`, 'Grandstand', line(20), { position: at(0, i * DEPTH) }))),
    zone('Field', 0, 0, [], [
      rectangle(300, 20, 300, 70, { color: '#111827', text: text('Main stage', 150, 35, 26, '#ffffff') }),
      polygon(450, 110, [[-160, 0], [160, 0], [210, 120], [-210, 120]], { uuid: 'pit', color: '#fde047', text: text('FRONT PIT', 0, 60, 22, '#fde047') }),
      polygon(450, 240, [[-260, 0], [260, 0], [330, 190], [-330, 190]], { uuid: 'meadow', color: '#86efac', border_color: '#15803d' }),
      ellipse(110, 300, 80, 50, { uuid: 'vip', color: '#fbcfe8', text: text('Deck', 0, 0, 18, '#831843') }),
      circle(800, 300, 62, { uuid: 'hill' }),
      rectangle(740, 440, 110, 40, { color: '#dbeafe', text: text('Bar', 55, 20, 18, '#dbeafe') }),
      rectangle(60, 440, 120, 60, { text: text('Toilets', 60, 30, 18, '#000000') }),
      words(110, 130, 'Gate A', 0, 0, 20, '#6b7280'),
    ]),
  ], { areas: [['Front pit', 'pit', 400], ['Meadow', 'meadow', 5000], ['VIP', 'vip', 80], ['Hill', 'hill', 700]].map(([name, uuid, capacity]) => (
    { name, price: 4000, capacity, plan_area: uuid })) }),

  // The balcony hangs over the last rows of the stalls: its floor, which one can see through, lies under the seats of both.
  'balcony-overhang': () => hall('Balcony', 640, 620, { Stalls: '#2563eb', Balcony: '#0f766e' }, [
    zone('Stalls', 320, 130, times(9, (i) => row('Stalls', LETTERS[i], 'Stalls', line(14 + (i % 2)), { position: at(0, i * DEPTH) }))),
    zone('Balcony', 320, 410, times(4, (i) => row('Balcony', LETTERS[i], 'Balcony', line(18), { position: at(0, i * DEPTH) })), [
      polygon(0, 0, [[-270, -60], [270, -60], [270, 130], [-270, 130]], { color: '#64748b40', border_color: '#64748b' }),
      words(0, 150, 'Balcony', 0, 0, 18, '#64748b'),
    ]),
    zone('Stage', 170, 30, [], [rectangle(0, 0, 300, 60, { color: '#334155', text: text('Stage', 150, 30, 24, '#f8fafc') })]),
  ]),

  // Boxes along the walls, turned towards the stage, with words along the wall.
  'opera-boxes': () => hall('Opera', 700, 640, { Parquet: '#9f1239', Box: '#a16207' }, [
    zone('Parquet', 350, 190, times(8, (i) => row('Parquet', `${i + 1}`, 'Parquet', line(12), { position: at(0, i * DEPTH), row_number_position: 'start' }))),
    zone('Boxes', 350, 300, times(10, (i) => {
      const angle = 180 - i * 20, x = 290 * Math.cos((angle * Math.PI) / 180), y = 250 * Math.sin((angle * Math.PI) / 180);
      return row('Box', `${i + 1}`, 'Box', [[-12, -12], [12, -12], [-12, 12], [12, 12]].map(([px, py]) => ({ x: px, y: py })), { position: at(x, y), row_label: `Box ${i + 1}` });
    }), [
      ...times(10, (i) => {
        const angle = ((180 - i * 20) * Math.PI) / 180;
        return circle(290 * Math.cos(angle), 250 * Math.sin(angle), 30, { color: 'transparent', border_color: '#a16207' });
      }),
      rectangle(-335, -190, 20, 150, { color: '#fef3c7', border_color: '#a16207', text: text('L', 10, 75, 14, '#78350f') }),
      { ...words(325, -110, 'Boxes right', 0, 0, 18, '#a16207'), rotation: 90 },
    ]),
    zone('Stage', 350, 90, [], [ellipse(0, 0, 200, 44, { color: '#3f1d2b', text: text('Stage', 0, 0, 22, '#3f1d2b') })]),
  ]),

  // Bent rows with an aisle, and wheelchair places.
  'curved-rows': () => hall('Curved rows', 860, 560, { A: '#1d4ed8', B: '#15803d' }, [
    zone('Left', 430, -140, times(8, (i) => row('L', LETTERS[i], i < 4 ? 'A' : 'B', arc(8 + Math.floor(i / 2), 360 + i * DEPTH, 94, 94 + (8 + Math.floor(i / 2)) * 3.4), { row_number_position: 'end' }))),
    zone('Right', 430, -140, times(8, (i) => row('R', LETTERS[i], i < 4 ? 'A' : 'B', arc(8 + Math.floor(i / 2), 360 + i * DEPTH, 86, 86 - (8 + Math.floor(i / 2)) * 3.4), { row_number_position: 'end' }))),
    zone('Wheelchairs', 430, 500, [row('W', 'W', 'B', line(6, 44), { seat: () => ({ radius: 14 }) })]),
    zone('Stage', 430, 120, [], [polygon(0, 0, [[-170, -50], [170, -50], [120, 40], [-120, 40]], { color: '#1e293b', text: text('Stage', 0, -8, 24, '#e2e8f0') })]),
  ], { accessible: times(6, (i) => `W-W-${i + 1}`), focus: at(430, 160) }),

  // Seats on three sides of the stage; the rows at the sides run away from the reader.
  'thrust-stage': () => hall('Thrust stage', 640, 560, { House: '#be123c' }, [
    zone('Front', 320, 360, times(5, (i) => row('F', LETTERS[i], 'House', line(12 + i), { position: at(0, i * DEPTH) }))),
    zone('Left', 150, 210, times(3, (i) => row('L', LETTERS[i], 'House', times(7, (k) => ({ x: 0, y: (k - 3) * PITCH })), { position: at(-i * DEPTH, 0) }))),
    zone('Right', 490, 210, times(3, (i) => row('R', LETTERS[i], 'House', times(7, (k) => ({ x: 0, y: (k - 3) * PITCH })), { position: at(i * DEPTH, 0) }))),
    zone('Stage', 320, 60, [], [
      polygon(0, 0, [[-260, -40], [260, -40], [260, 20], [110, 20], [110, 240], [-110, 240], [-110, 20], [-260, 20]], { color: '#d6a77a', border_color: '#8b5e34', text: text('Stage', 0, 110, 30, '#5b3a1a') }),
      rectangle(0, -20, 120, 28, { rotation: -12, color: '#8b5e34', text: text('Trap', 60, 14, 16, '#8b5e34') }),
    ]),
  ]),

  // Long tables: the row goes around the table, so its ends are opposite each other.
  'long-table-banquet': () => hall('Banquet', 760, 520, { Dinner: '#854d0e' }, [
    zone('Hall', 0, 0, times(4, (i) => row('Table', `${i + 1}`, 'Dinner',
      [...line(9, 30).map(({ x }) => ({ x, y: -34 })), { x: 150, y: 0 }, ...line(9, 30).reverse().map(({ x }) => ({ x, y: 34 })), { x: -150, y: 0 }],
      { position: at(200 + (i % 2) * 360, 180 + Math.floor(i / 2) * 160), row_label: `Table ${i + 1}` })),
    times(4, (i) => rectangle(200 + (i % 2) * 360 - 132, 180 + Math.floor(i / 2) * 160 - 18, 264, 36,
      { color: '#fafaf9', border_color: '#a8a29e', ...(i === 3 ? { text: text('Bride and groom', 132, 18, 16, '#fafaf9') } : {}) }))),
    zone('Buffet', 40, 400, [], [rectangle(0, 0, 200, 50, { color: '#f5f5f4', text: text('Buffet', 100, 25, 20) })]),
  ]),

  // A stand with the mouths of two tunnels in it, and fences.
  'stadium-stand': () => hall('Stand', 860, 520, { Lower: '#0369a1', Upper: '#b45309' }, [
    zone('Block 12', 430, 80, times(12, (i) => {
      const inTunnel = (x) => i >= 3 && i <= 6 && Math.abs(Math.abs(x) - 180) < 50;
      return row('12', `${i + 1}`, i < 6 ? 'Lower' : 'Upper', line(30).filter(({ x }) => !inTunnel(x)), { position: at(0, i * DEPTH) });
    }), [
      ...[-180, 180].map((x) => rectangle(x - 36, 84, 72, 102, { color: '#374151', border_color: '#9ca3af', text: text('Exit', 36, 51, 20, '#374151') })),
      rectangle(-380, 166, 760, 3, { color: '#9ca3af' }),
    ]),
    zone('Pitch', 430, 20, [], [rectangle(-400, -10, 800, 36, { color: '#166534', text: text('Pitch', 400, 18, 22, '#bbf7d0') })]),
  ]),

  // Straight rows with names on the left alone, seats with letters, a desk and doors.
  'lecture-hall': () => hall('Lecture hall', 700, 460, { Seat: null, Reserved: 'rgb(120, 40, 140)' }, [
    zone('Hall', 350, 140, times(8, (i) => row('Hall', `Row ${i + 1}`, i === 0 ? 'Reserved' : 'Seat', line(16 + i), {
      position: at(0, i * 32), row_number_position: 'start', seat_label: 'Seat %s', seat: (k) => ({ seat_number: `${LETTERS[k % LETTERS.length]}` }),
    })), [rectangle(-90, -100, 180, 40, { border_color: '#57534e', text: text('Desk', 90, 20, 18, '#57534e') })]),
    zone('', 0, 0, [], [
      rectangle(20, 30, 60, 20, { color: 'hsl(40 60% 40%)', text: text('Door', 30, 10, 14, 'white') }),
      rectangle(620, 30, 60, 20, { color: 'hsl(40 60% 40%)', rotation: 0, text: text('Door', 30, 10, 14, 'white') }),
    ]),
  ]),

  // Places to stand, sold as areas, and a few stools.
  'club-standing': () => hall('Club', 520, 460, { Stool: '#db2777' }, [
    zone('Bar', 430, 130, [row('Bar', 'Bar', 'Stool', times(8, (i) => ({ x: 0, y: i * 20 })), { row_number_position: null, seat: () => ({ radius: 8 }) })], [
      rectangle(20, -20, 40, 190, { color: '#4a044e', text: text('Bar', 20, 85, 16, '#f0abfc') }),
    ]),
    zone('Floor', 0, 0, [], [
      rectangle(60, 110, 320, 220, { uuid: 'floor', color: '#312e81', border_color: '#a5b4fc', text: text('Dance floor', 160, 110, 28, '#e0e7ff') }),
      rectangle(60, 350, 320, 34, { uuid: 'gallery', color: '#ede9fe', text: text('Gallery', 160, 17, 18, '#5b21b6') }),
      rectangle(140, 30, 160, 60, { color: '#0f172a', text: text('DJ', 80, 30, 24, '#0f172a') }),
    ]),
  ], { areas: [{ name: 'Dance floor', price: 2500, capacity: 600, plan_area: 'floor' }, { name: 'Gallery', price: 3500, capacity: 90, plan_area: 'gallery' }] }),

  // Seats for two in the last row; no row says where its name stands.
  'cinema-couples': () => hall('Cinema', 620, 440, { Standard: '#2563eb', Couple: '#e11d48' }, [
    zone('Screen 1', 310, 130, [
      ...times(7, (i) => row('Std', LETTERS[i], 'Standard', line(i < 5 ? 18 : 14), { position: at(0, i * DEPTH), row_number_position: undefined })),
      row('Couple', 'L', 'Couple', line(9, 48), { position: at(0, 7 * DEPTH + 12), row_number_position: undefined, seat: () => ({ radius: 16 }) }),
    ], [polygon(0, -60, [[-230, -14], [230, -14], [210, 6], [-210, 6]], { color: '#cbd5e1', text: text('Screen', 0, -4, 16, '#334155') })]),
  ]),

  // Pews without names of rows, pillars, and chairs in the aisles, which are turned.
  'church-pews': () => hall('Church', 460, 620, { Nave: '#3f6212', Aisle: '#a16207' }, [
    ...[-1, 1].map((side) => zone(side < 0 ? 'North' : 'South', 230 + side * 90, 150, times(12, (i) => row(side < 0 ? 'N' : 'S', `${i + 1}`, 'Nave', line(6), { position: at(0, i * 34), row_number_position: null })),
      times(3, (i) => circle(side * 100, i * 140 + 20, 12, { color: '#78716c' })))),
    zone('Aisles', 0, 0, [-1, 1].map((side) => row('Aisle', side < 0 ? 'AN' : 'AS', 'Aisle', times(10, (k) => ({ x: 0, y: k * 36 })), { position: at(230 + side * 205, 170) }))),
    zone('Altar', 230, 70, [], [rectangle(-60, -30, 120, 50, { color: '#fef9c3', border_color: '#a16207', text: text('Altar', 60, 25, 18, '#fef9c3') })]),
  ]),

  // Whole circles around the ring: their names find no room at their ends, and the middle of them all is not theirs.
  'circus-ring': () => hall('Circus', 620, 620, { Loge: '#b91c1c', Rang: '#1d4ed8' }, [
    zone('Rows', 310, 310, times(4, (i) => row('Ring', LETTERS[i], i < 2 ? 'Loge' : 'Rang', ring(30 + i * 7, 130 + i * 38)))),
    zone('Ring', 310, 310, [], [circle(0, 0, 90, { color: '#d97706', border_color: '#92400e', text: text('Manege', 0, 0, 24, '#451a03') })]),
  ]),
};

const [dir] = process.argv.slice(2);
if (!dir) throw new Error('usage: scripts/make-plans.mjs DIRECTORY');
for (const [name, make] of Object.entries(plans)) {
  // Each row and each area has a line of its own.
  const whole = JSON.stringify(make()).replaceAll('{"row_number"', '\n{"row_number"').replaceAll('{"shape"', '\n{"shape"');
  fs.writeFileSync(path.join(dir, `${name}.json`), `${whole}\n`);
}
