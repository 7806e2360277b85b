// What the colours and shapes of the map mean, with the price of each category.

import { AVAILABLE, BOOKED, HELD } from './board.js';
import { ACCESSIBLE } from './plan.js';
import { make } from './shell.js';
import { drawSeat, HEAT, MINE } from './sprites.js';
import { HEAT_STEPS } from './theme.js';

const CATEGORIES_MAX = 24;
const ICON_PX = 18;

function icon(theme, seat) {
  const ratio = Math.min(3, devicePixelRatio || 1);
  const canvas = make('canvas', '', { 'aria-hidden': 'true' });
  canvas.width = canvas.height = ICON_PX * ratio;
  const context = canvas.getContext('2d');
  context.translate(canvas.width / 2, canvas.height / 2);
  drawSeat(context, theme, { r: (ICON_PX / 2 - 1) * ratio, line: ratio, ...seat });
  return canvas;
}

// `spotlight` is the category that stands out, or -1; a click on a category calls `choose(category)`, which returns the one that
// stands out from then on.
export function drawLegend(element, { plan, board, names, theme, isHeat, spotlight, choose }) {
  const { t } = names;
  const entry = (seat, text) => make('li', '', {}, icon(theme, seat), text);
  const entries = [];
  const buttons = [];
  const press = (chosen) => buttons.forEach(([category, button]) => button.setAttribute('aria-pressed', String(category === chosen)));
  if (isHeat) {
    entries.push(entry({ look: HEAT }, t('heatNever')), entry({ look: HEAT + 2 }, t('heatSome')), entry({ look: HEAT + HEAT_STEPS }, t('heatMost')));
  } else {
    const used = new Set(plan.category);
    plan.categories.slice(0, CATEGORIES_MAX).forEach(({ name }, category) => {
      if (!used.has(category)) return;
      const price = names.price(board.price(name));
      const parts = [icon(theme, { look: AVAILABLE, category }), price ? t('categoryPrice', { category: name, price }) : name];
      if (used.size > 1) {
        const button = make('button', '', { type: 'button' }, ...parts.splice(0));
        button.addEventListener('click', () => press(choose(category)));
        buttons.push([category, button]);
        parts.push(button);
      }
      entries.push(make('li', '', {}, ...parts));
    });
    press(spotlight);
    const accessible = plan.flags.findIndex((flags) => flags & ACCESSIBLE);
    if (accessible >= 0) entries.push(entry({ look: AVAILABLE, isSquare: true, category: plan.category[accessible] }, t('legendAccessible')));
    if (plan.n > 0) entries.push(entry({ look: MINE }, t('legendMine')), entry({ look: HELD }, t('legendHeld')), entry({ look: BOOKED }, t('legendBooked')));
  }
  element.replaceChildren(...entries);
  element.classList.toggle('scrolls', buttons.length > 0); // on a phone; what scrolls must have something that takes the focus
  element.hidden = entries.length === 0;
}
