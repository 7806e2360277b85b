// The demo's theatre, share/holdfast/theatre.json: written by scripts/make-theatre.mjs, and a hall that one could build.
// backends: own

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { describe, it } from 'node:test';

const root = new URL('../../', import.meta.url).pathname;
const text = fs.readFileSync(`${root}share/holdfast/theatre.json`, 'utf8');
const { plan, ...event } = JSON.parse(text);
const seats = plan.zones.flatMap((zone) => zone.rows.flatMap((row) => row.seats.map((seat) => ({
  ...seat,
  x: zone.position.x + row.position.x + seat.position.x,
  y: zone.position.y + row.position.y + seat.position.y,
  r: seat.radius ?? 10,
}))));

// The relative luminance of #rrggbb, as WCAG defines it.
function luminance(color) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);

describe('the theatre of the demo', () => {
  it('is what its script writes', () => {
    assert.equal(execFileSync(process.execPath, [`${root}scripts/make-theatre.mjs`], { encoding: 'utf8' }), text);
  });

  it('has seats with ids of their own that do not overlap and lie inside the plan', () => {
    assert.equal(new Set(seats.map(({ seat_guid: id }) => id)).size, seats.length);
    for (const [index, one] of seats.entries()) {
      assert.ok(one.x > one.r && one.x < plan.size.width - one.r && one.y > one.r && one.y < plan.size.height - one.r, one.seat_guid);
      for (const other of seats.slice(0, index)) {
        assert.ok(Math.hypot(one.x - other.x, one.y - other.y) > one.r + other.r, `${one.seat_guid} and ${other.seat_guid}`);
      }
    }
  });

  it('has a price for each category, wheelchair places, and a standing area that the plan draws', () => {
    assert.deepEqual(Object.keys(event.prices).sort(), plan.categories.map(({ name }) => name).sort());
    assert.deepEqual(Object.keys(event.prices).sort(), [...new Set(seats.map(({ category }) => category))].sort());
    const ids = new Set(seats.map(({ seat_guid: id }) => id));
    assert.ok(event.accessible.length > 0 && event.accessible.every((id) => ids.has(id)));
    const drawn = plan.zones.flatMap(({ areas }) => areas.map(({ uuid }) => uuid));
    assert.deepEqual(event.areas.map(({ plan_area: uuid }) => drawn.filter((each) => each === uuid).length), [1]);
  });

  it('has colours that can be told from white and from near-black paper', () => {
    for (const { name, color } of plan.categories) {
      for (const paper of ['#ffffff', '#16181d']) {
        assert.ok(contrast(luminance(color), luminance(paper)) >= 3, `${name} on ${paper}: ${contrast(luminance(color), luminance(paper))}`);
      }
    }
  });
});
