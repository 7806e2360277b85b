// Seating plans for tests: small ones by hand, large and random ones, and what their seats should look like in the
// document that GET /v1/events/{e}/plan answers with.

// A plan whose seats stand in a grid: zones of rows of seats, 24 units apart, all of one category.
export function gridPlan({ zones = 1, rows = 2, seats = 10, category = 'Stalls', id = (z, r, s) => `z${z}r${r}s${s}` } = {}) {
  return {
    name: 'Grid', size: { width: seats * 24 + 48, height: zones * rows * 24 + 48 }, categories: [{ name: category, color: '#2f7de1' }],
    zones: Array.from({ length: zones }, (_, z) => ({
      name: `Zone ${z}`, position: { x: 24, y: 24 + z * rows * 24 },
      rows: Array.from({ length: rows }, (__, r) => ({
        row_number: `${r + 1}`, position: { x: 0, y: r * 24 },
        seats: Array.from({ length: seats }, (___, s) => ({
          seat_guid: id(z + 1, r + 1, s + 1), seat_number: `${s + 1}`, position: { x: s * 24, y: 0 }, category,
        })),
      })),
    })),
  };
}

// The body of a POST /v1/events that sells `plan`; every category costs 100 unless `fields` have prices.
export const planEvent = (plan, fields = {}) => ({
  name: 'Gala', currency: 'usd', plan, prices: Object.fromEntries((plan?.categories ?? []).map?.(({ name }) => [name, 100]) ?? []), ...fields,
});

// An arena: `zones` blocks around a pitch, about `seats` seats in all, six price categories, the rows of each block
// turned towards the middle.
export function arena(seats = 80_000, zones = 30) {
  const perRow = 40;
  const rows = Math.ceil(seats / zones / perRow);
  const middle = { x: 6000, y: 6000 };
  const categories = Array.from({ length: 6 }, (_, i) => ({ name: `Category ${i + 1}`, color: `hsl(${i * 60} 70% 45%)` }));
  let left = seats;
  const made = Array.from({ length: zones }, (_, z) => {
    const angle = 2 * Math.PI * z / zones;
    const [out, along] = [{ x: Math.cos(angle), y: Math.sin(angle) }, { x: -Math.sin(angle), y: Math.cos(angle) }];
    return {
      name: `Block ${z + 1}`, zone_id: `b${z + 1}`, position: middle,
      rows: Array.from({ length: rows }, (__, r) => {
        const n = Math.min(perRow, left);
        left -= n;
        return {
          row_number: `${r + 1}`,
          position: { x: out.x * (2400 + r * 40), y: out.y * (2400 + r * 40) },
          seats: Array.from({ length: n }, (___, s) => ({
            seat_guid: `Block ${z + 1}-${r + 1}-${s + 1}`, seat_number: `${s + 1}`,
            position: { x: Math.round(along.x * (s - perRow / 2) * 120) / 10, y: Math.round(along.y * (s - perRow / 2) * 120) / 10 },
            category: `Category ${1 + Math.floor(r * 6 / rows)}`,
          })),
        };
      }).filter(({ seats: list }) => list.length > 0),
    };
  });
  return {
    name: 'Arena', size: { width: 12_000, height: 12_000 }, categories,
    zones: made.concat({
      name: 'Pitch', position: middle, rows: [],
      areas: [{ shape: 'ellipse', position: { x: 0, y: 0 }, color: '#15803d', ellipse: { radius: { x: 1800, y: 1200 } } }],
    }).filter(({ rows: list, areas }) => list.length > 0 || areas),
  };
}

// A random plan; `below` and `oneOf` are of seededRandom.  Its names and ids have whatever text may have.
export function randomPlan({ below, oneOf }) {
  const odd = ['é', '漢', '😀', '"', '\\', '/', '<b>', '&amp;', '%2F', '-', ' ', '\'', '.', '..', '?', '#', 'constructor', '__proto__', 'a\u0301', '~'];
  const word = () => Array.from({ length: 1 + below(4) }, () => (below(3) ? String.fromCharCode(97 + below(26)) : oneOf(odd))).join('').trim() || 'x';
  const number = () => oneOf([below(2000), below(2000) / 10, below(1e6) / 997, -below(500), 0]);
  const position = () => ({ x: number(), y: number() });
  const maybe = (key, value) => (below(2) ? { [key]: value() } : {});
  const uuid = () => `u-${below(1e9)}-${below(1e9)}`;
  const unique = new Set();
  const fresh = (make) => { for (;;) { const text = make(); if (!unique.has(text)) { unique.add(text); return text; } } };
  const categories = Array.from({ length: 1 + below(6) }, () => ({ name: fresh(word), ...maybe('color', () => oneOf(['red', '#0a7', 'rgb(1, 2, 3)'])) }));
  unique.clear();
  const zoneNames = new Set();
  const seat = () => ({
    seat_guid: fresh(() => `${word()}${below(1e6)}`), seat_number: word(), position: position(), category: oneOf(categories).name,
    ...maybe('radius', () => 1 + below(40)), ...maybe('start_direction', () => oneOf(['<', '>', '<>'])), ...maybe('uuid', uuid),
  });
  const row = (index) => ({
    row_number: `${index}${word()}`, seats: Array.from({ length: 1 + below(30) }, seat), ...maybe('position', position), ...maybe('uuid', uuid),
    ...maybe('row_label', word), ...maybe('seat_label', () => 'Seat %s'), ...maybe('row_number_position', () => oneOf(['start', 'end', 'both'])),
  });
  const zone = () => ({
    ...maybe('name', () => { for (;;) { const name = `${word()}${below(1e6)}`; if (!zoneNames.has(name)) { zoneNames.add(name); return name; } } }),
    position: position(), rows: Array.from({ length: 1 + below(8) }, (_, r) => row(r)), ...maybe('zone_id', word), ...maybe('uuid', uuid),
  });
  return { name: word(), size: { width: 1000 + below(5000), height: 1000 + below(5000) }, categories, zones: Array.from({ length: 1 + below(5) }, zone) };
}

const sum = (...parts) => parts.reduce((total, part) => total + (part ?? 0), 0);

// The sections of a plan as GET /v1/events/{e}/plan should have them, for a comparison by comparePlans.
export function expectedSections(plan, { accessible = [] } = {}) {
  const pick = (object, keys) => Object.fromEntries(keys.filter((key) => object[key] !== undefined).map((key) => [key, object[key]]));
  return plan.zones.map((zone, index) => ({
    name: zone.name || `Zone ${index + 1}`, ...pick(zone, ['uuid', 'zone_id']),
    rows: zone.rows.map((row) => ({
      name: row.row_number, ...pick(row, ['uuid', 'row_label', 'seat_label', 'row_number_position']),
      seats: row.seats.map((seat) => ({
        id: seat.seat_guid, label: seat.seat_number, category: seat.category,
        x: sum(zone.position.x, row.position?.x, seat.position.x), y: sum(zone.position.y, row.position?.y, seat.position.y),
        ...(accessible.includes(seat.seat_guid) ? { accessible: true } : {}), ...pick(seat, ['radius', 'start_direction', 'uuid']),
      })),
    })),
  }));
}

// Returns a copy in which numbers have six decimals, so that the order of additions does not matter.
export const rounded = (value) => JSON.parse(JSON.stringify(value), (key, each) => (typeof each === 'number' ? Math.round(each * 1e6) / 1e6 + 0 : each));

// All seats of a plan's document, each with its section and row.
export const seatsOf = (document) => document.sections.flatMap((section) => section.rows.flatMap((row) => row.seats.map((seat) => (
  { ...seat, section: section.name, row: row.name }))));

// The states in a snapshot by seat id, in the order of the plan's document; throws where the two differ in shape.
export function statesOf(document, snapshot) {
  const states = new Map();
  if (document.sections.length !== snapshot.sections.length) throw new Error('the numbers of sections differ');
  document.sections.forEach((section, s) => {
    const shown = snapshot.sections[s];
    if (shown.name !== section.name || shown.rows.length !== section.rows.length) throw new Error(`section ${s} differs`);
    section.rows.forEach((row, r) => {
      if (shown.rows[r].name !== row.name || shown.rows[r].seats.length !== row.seats.length) throw new Error(`row ${r} of section ${s} differs`);
      row.seats.forEach((seat, i) => states.set(seat.id, shown.rows[r].seats[i]));
    });
  });
  return states;
}
