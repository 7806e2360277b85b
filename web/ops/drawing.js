// Seating plans as the map draws them: a plan in pretix's format that may be wrong in any way, and the way back, from an event that
// exists to a plan from which another one can be made.  Pure.

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value) => (Array.isArray(value) ? value : []);
const objectsOf = (value) => listOf(value).map((each) => (isObject(each) ? each : {}));
const textOf = (value) => (typeof value === 'string' ? value : '');
const numberOf = (value) => (Number.isFinite(value) ? value : 0);
const pointOf = (value) => ({ x: numberOf(value?.x), y: numberOf(value?.y) });
const LINE_HEIGHT = 120; // of the boxes that the server draws below a plan (src/venue/plan_document.c)
const SHAPES = ['polygon', 'rectangle', 'ellipse', 'circle', 'text'];

// What of an area can be drawn.
function areaOf(area, at, name) {
  const { x, y } = pointOf(area.position);
  const shape = SHAPES.includes(area.shape) ? area.shape : SHAPES.find((each) => isObject(area[each])) ?? null;
  return {
    name, shape, x: at.x + x, y: at.y + y, rotation: numberOf(area.rotation), color: textOf(area.color), border_color: textOf(area.border_color),
    ...(isObject(area.rectangle) ? { rectangle: { width: numberOf(area.rectangle.width), height: numberOf(area.rectangle.height) } } : {}),
    ...(isObject(area.circle) ? { circle: { radius: numberOf(area.circle.radius) } } : {}),
    ...(isObject(area.ellipse) ? { ellipse: { radius: pointOf(area.ellipse.radius) } } : {}),
    ...(isObject(area.polygon) ? { polygon: { points: listOf(area.polygon.points).map(pointOf) } } : {}),
    ...(isObject(area.text) ? {
      text: { text: textOf(area.text.text), color: textOf(area.text.color), position: pointOf(area.text.position), ...(area.text.size > 0 ? { size: area.text.size } : {}) },
    } : {}),
  };
}

// The document that the map draws, of a plan as somebody wrote it.  The id of a seat is its path in the plan, so that what the server
// says of `plan.zones[2].rows[0].seats[7]` is found again, whatever is wrong with the seat's own id.
export function drawingOf(plan, soldAreas = []) {
  const sold = new Map(soldAreas.map(({ plan_area: uuid, name }) => [uuid, name]));
  const areas = [];
  const sections = objectsOf(plan.zones).map((zone, z) => {
    const at = pointOf(zone.position);
    for (const area of objectsOf(zone.areas)) areas.push(areaOf(area, at, sold.get(area.uuid) ?? null));
    return {
      name: textOf(zone.name) || `${z + 1}`,
      rows: objectsOf(zone.rows).map((row, r) => {
        const from = pointOf(row.position);
        return {
          name: textOf(row.row_number), row_label: textOf(row.row_label) || null, seat_label: textOf(row.seat_label) || null,
          seats: objectsOf(row.seats).map((seat, s) => {
            const { x, y } = pointOf(seat.position);
            return {
              id: `zones[${z}].rows[${r}].seats[${s}]`, label: textOf(seat.seat_number), category: textOf(seat.category),
              x: at.x + from.x + x, y: at.y + from.y + y, ...(seat.radius > 0 ? { radius: seat.radius } : {}),
            };
          }),
        };
      }).filter(({ seats }) => seats.length > 0),
    };
  }).filter(({ rows }) => rows.length > 0);
  return {
    event: null, name: textOf(plan.name), size: { width: numberOf(plan.size?.width), height: numberOf(plan.size?.height) }, focus: null,
    categories: objectsOf(plan.categories).map(({ name, color }) => ({ name: textOf(name), color: textOf(color) || null })), sections, areas,
  };
}

// The seats that a complaint is about, by their ids in drawingOf(): one, those of a row, or those of a zone.
export function seatsOfComplaint(complaint, document) {
  const [, zone, row, seat] = /^plan\.zones\[(\d+)\](?:\.rows\[(\d+)\](?:\.seats\[(\d+)\])?)?/.exec(complaint) ?? [];
  if (zone === undefined) return [];
  const start = `zones[${zone}].${row === undefined ? '' : `rows[${row}].${seat === undefined ? '' : `seats[${seat}]`}`}`;
  const isMeant = seat === undefined ? ({ id }) => id.startsWith(start) : ({ id }) => id === start;
  return document.sections.flatMap(({ rows }) => rows.flatMap(({ seats }) => seats.filter(isMeant).map(({ id }) => id)));
}

// A snapshot in which every place of the document is free, for a map of no event.
export function freeSnapshot(document, { currency, prices, areas = [] }) {
  return {
    seq: 0, status: 'open', currency, prices,
    sections: document.sections.map(({ name, rows }) => ({ name, rows: rows.map(({ name: row, seats }) => ({ name: row, seats: '.'.repeat(seats.length) })) })),
    areas: areas.map(({ name, price, capacity }) => ({ name, price: numberOf(price), capacity: numberOf(capacity), available: numberOf(capacity) })),
  };
}

const without = (object, ...names) => Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

// The plan from which an event was made, but for how its positions were divided among zones, rows and seats.  `document` is the
// event's plan as the server has it, and `sold` the areas of the event.
export function planOf(document, sold) {
  const made = new Set(sold.filter(({ plan_area: uuid }) => !uuid).map(({ name }) => name)); // boxes that the server drew below the plan
  const origin = { x: 0, y: 0 };
  const lines = new Set(document.areas.filter(({ name }) => made.has(name)).map(({ y }) => y)).size;
  const areas = document.areas.filter(({ name }) => !made.has(name)).map((area) => ({
    ...without(area, 'name', 'capacity', 'x', 'y', ...(area.shape === null ? ['shape'] : [])), position: { x: area.x, y: area.y },
  }));
  const zones = document.sections.map((section) => ({
    ...section, position: origin,
    rows: section.rows.map((row) => ({
      ...without(row, 'name'), row_number: row.name,
      seats: row.seats.map(({ id, label, x, y, category, ...rest }) => ({
        ...without(rest, 'accessible', 'companion', 'restricted_view'), seat_guid: id, seat_number: label, position: { x, y }, category,
      })),
    })),
  }));
  return {
    name: document.name ?? '', size: { width: document.size.width, height: document.size.height - lines * LINE_HEIGHT },
    categories: document.categories.map(({ name, color }) => ({ name, ...(color ? { color } : {}) })),
    zones: areas.length > 0 ? [...zones, { name: '', position: origin, rows: [], areas }] : zones,
  };
}
