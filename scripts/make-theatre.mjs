#!/usr/bin/env node
// Writes the theatre that `holdfastd --demo` sells, share/holdfast/theatre.json: the body of a POST /v1/events with
// a seating plan in pretix's format.  The curves are computed here, and the result is kept in the tree, so no build
// needs this script.  The same script always writes the same bytes; tests/tools/theatre.test.mjs compares them.
//
//   scripts/make-theatre.mjs > share/holdfast/theatre.json
//
// The hall, seen from above, in units of which 24 are one seat's width.  y grows away from the stage.
//
//                    stage
//               standing places           Box 1-4 at the left, Box 5-8 at the right
//        stalls, rows A-P, one aisle      numbered from left to right
//        row W: wheelchair places
//        balcony, rows A-F, two aisles    odd numbers left of the middle, even numbers right of it

import { createHash } from 'node:crypto';

const PITCH = 24; // from seat to seat
const DEPTH = 30; // from row to row
const MIDDLE = 600; // where the aisle of the stalls is
const CENTRE = -250; // y of the point around which the rows are bent

// Luminances between 0.13 and 0.3, so that each has a contrast of three on white and on near-black paper.
const categories = [
  { name: 'Premium', color: '#d9480f', price: 9500 },
  { name: 'Stalls', color: '#2f7de1', price: 6500 },
  { name: 'Balcony', color: '#0f9177', price: 4500 },
  { name: 'Box', color: '#a855f7', price: 8500 },
];

const round = (number) => Math.round(number * 10) / 10 + 0; // + 0: no -0
const at = (x, y) => ({ x: round(x), y: round(y) });

// A name always gets the same id, in the form of a random UUID.
function uuid(name) {
  const hex = createHash('sha256').update(`holdfast theatre ${name}`).digest('hex');
  const variant = '89ab'[parseInt(hex[16], 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

// Returns how far along the row's curve each seat is from the middle; `blocks` are numbers of seats, with aisles between.
function spread(blocks, aisle, pitch = PITCH) {
  const length = blocks.reduce((sum, n) => sum + (n - 1) * pitch, 0) + (blocks.length - 1) * aisle;
  const offsets = [];
  let offset = -length / 2;
  for (const n of blocks) {
    for (let i = 0; i < n; i++) offsets.push(offset + i * pitch);
    offset += (n - 1) * pitch + aisle;
  }
  return offsets;
}

// Returns a row whose seats lie on the circle of `radius` around the stage.  The row's position is its middle.
function curvedRow(zone, name, radius, offsets, { number, category, label, ...more }) {
  return {
    row_number: name, row_label: label ?? `Row ${name}`, seat_label: 'Seat %s', row_number_position: 'both',
    position: at(0, CENTRE + radius - zone.position.y),
    seats: offsets.map((offset, index) => ({
      seat_guid: `${zone.name}-${name}-${number(index, offsets.length)}`,
      seat_number: String(number(index, offsets.length)),
      position: at(radius * Math.sin(offset / radius), radius * (Math.cos(offset / radius) - 1)),
      category: category(offset),
      ...more,
    })),
  };
}

const fromLeft = (index) => index + 1;
// 1, 3, 5... to the left of the middle and 2, 4, 6... to the right.
const oddAndEven = (index, n) => (index < n / 2 ? n - 1 - 2 * index : 2 * (index - n / 2) + 2);

function stalls() {
  const zone = { name: 'Stalls', zone_id: 'stalls', uuid: uuid('Stalls'), position: at(MIDDLE, 350), rows: [], areas: [] };
  [...'ABCDEFGHJKLMNP'].forEach((name, index) => {
    const half = 11 + Math.floor(index / 3);
    const premium = index >= 3 && index <= 7;
    zone.rows.push(curvedRow(zone, name, 600 + index * DEPTH, spread([half, half], 64), {
      number: fromLeft, category: (offset) => (premium && Math.abs(offset) < 210 ? 'Premium' : 'Stalls'),
    }));
  });
  zone.rows.push(curvedRow(zone, 'W', 1034, spread([4, 4], 160, 40), {
    number: fromLeft, category: () => 'Stalls', label: 'Wheelchair places', radius: 14,
  }));
  zone.areas.push({
    shape: 'rectangle', uuid: uuid('Stage'), position: at(-290, -320), rectangle: { width: 580, height: 110 },
    color: '#475569', border_color: '#94a3b8',
    text: { text: 'Stage', color: '#f8fafc', size: 28, position: at(290, 55) },
  });
  const edge = (radius, from, to) => Array.from({ length: 9 }, (_, i) => {
    const offset = from + (to - from) * i / 8;
    return at(radius * Math.sin(offset / radius), CENTRE + radius * Math.cos(offset / radius) - 350 - -160);
  });
  zone.areas.push({
    shape: 'polygon', uuid: uuid('Floor'), position: at(0, -160), color: '#b7791f', border_color: '#d69e2e',
    polygon: { points: [at(-260, -30), at(260, -30), ...edge(550, 290, -290)] },
    text: { text: 'Floor', color: '#ffffff', size: 22, position: at(0, 40) },
  });
  return zone;
}

function balcony() {
  const zone = { name: 'Balcony', zone_id: 'balcony', uuid: uuid('Balcony'), position: at(MIDDLE, 900), rows: [], areas: [] };
  [...'ABCDEF'].forEach((name, index) => {
    const side = 9 + Math.floor(index / 2);
    zone.rows.push(curvedRow(zone, name, 1130 + index * DEPTH, spread([side, 14, side], 56), {
      number: oddAndEven, category: () => 'Balcony',
    }));
  });
  const rail = (radius) => Array.from({ length: 13 }, (_, i) => {
    const offset = 440 - 880 * i / 12;
    return at(radius * Math.sin(offset / radius), CENTRE + radius * Math.cos(offset / radius) - 900);
  });
  zone.areas.push({
    shape: 'polygon', uuid: uuid('Rail'), position: at(0, 0), color: '#7c8496',
    polygon: { points: [...rail(1102), ...rail(1098).reverse()] },
  });
  zone.areas.push({
    shape: 'text', uuid: uuid('Balcony text'), position: at(0, 178),
    text: { text: 'Balcony', color: '#7c8496', size: 20, position: at(0, 0) },
  });
  zone.areas.push({
    shape: 'rectangle', uuid: uuid('Bar'), position: at(-520, 110), rectangle: { width: 110, height: 44 }, rotation: 24,
    color: '#7c5a3a', text: { text: 'Bar', color: '#ffffff', size: 18, position: at(55, 22) },
  });
  return zone;
}

// Four boxes of four seats, one behind the other along a wall; `side` is -1 for the left wall and 1 for the right.
function boxes(name, side, first) {
  const zone = { name, zone_id: name.toLowerCase().replace(' ', '_'), uuid: uuid(name), position: at(MIDDLE + side * 485, 300), rows: [], areas: [] };
  for (let index = 0; index < 4; index++) {
    const box = String(first + index);
    zone.rows.push({
      row_number: box, row_label: `Box ${box}`, seat_label: 'Seat %s', row_number_position: null,
      position: at(side * (8 * index), index * 124),
      seats: [0, 1, 2, 3].map((seat) => ({
        seat_guid: `Box-${box}-${seat + 1}`, seat_number: String(seat + 1),
        position: at(side * 3 * seat, seat * PITCH), category: 'Box',
        ...(seat === 0 ? { start_direction: '>' } : {}),
      })),
    });
    zone.areas.push({
      shape: 'ellipse', uuid: uuid(`Box ${box}`), position: at(side * (8 * index + 5), index * 124 + 36), rotation: -7 * side,
      color: 'transparent', border_color: '#a855f7', ellipse: { radius: at(27, 58) },
    });
    zone.areas.push({
      shape: 'text', uuid: uuid(`Box ${box} text`), position: at(side * (8 * index + 58), index * 124 + 36),
      text: { text: `Box ${box}`, color: '#a855f7', size: 16, position: at(0, 0) },
    });
  }
  return zone;
}

const zones = [stalls(), boxes('Boxes left', -1, 1), boxes('Boxes right', 1, 5), balcony()];
const event = {
  name: 'Gala', currency: 'usd',
  prices: Object.fromEntries(categories.map(({ name, price }) => [name, price])),
  focus: at(MIDDLE, 140),
  accessible: zones[0].rows.at(-1).seats.map(({ seat_guid: id }) => id),
  areas: [{ name: 'Floor', price: 3000, capacity: 120, plan_area: uuid('Floor') }],
  plan: {
    name: 'Small theatre', size: { width: 1200, height: 1110 },
    categories: categories.map(({ name, color }) => ({ name, color })),
    zones,
  },
};

// JSON in which every seat, area and other object without lists has a line of its own.
function print(value, indent = '') {
  const flat = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || indent.length > 8 || !flat.includes('[')) return flat;
  const list = Array.isArray(value);
  const inner = `${indent} `;
  const parts = list ? value.map((item) => inner + print(item, inner))
    : Object.entries(value).map(([key, item]) => `${inner}${JSON.stringify(key)}:${print(item, inner)}`);
  const [open, close] = list ? '[]' : '{}';
  return parts.length ? `${open}\n${parts.join(',\n')}\n${indent}${close}` : open + close;
}

process.stdout.write(`${print(event)}\n`);
