// A small drawing of a hall for the list: its areas, and its seats as dots in the colours of their categories.

import { drawAreas, prepareAreas } from '../seats/decor.js';
import { Plan } from '../seats/plan.js';
import { readTheme } from '../seats/theme.js';
import { View } from '../seats/view.js';

const RATIO_MAX = 2; // of device pixels to CSS pixels
const GAP = 0.85; // of a seat's radius that is drawn, so that seats stay apart
const DOT_PX = 1.5; // smaller seats are squares of at least a pixel

function drawSeats(context, plan, view, ratio, { categories }) {
  const scale = view.scale * ratio;
  for (let i = 0; i < plan.n; i++) {
    const x = view.toScreenX(plan.x[i]) * ratio, y = view.toScreenY(plan.y[i]) * ratio, r = Math.max(0.5, plan.radius[i] * scale * GAP);
    context.fillStyle = categories[plan.category[i]].css;
    if (r < DOT_PX) context.fillRect(x - r, y - r, 2 * r, 2 * r);
    else {
      context.beginPath();
      context.arc(x, y, r, 0, 2 * Math.PI);
      context.fill();
    }
  }
}

// Fills `frame`, whose style has the colours that the theme of a seat map asks for, with a drawing of the plan's document.
export function drawHall(frame, document) {
  const plan = new Plan(document), view = new View(plan.box, plan.radiusTypical);
  const canvas = frame.ownerDocument.createElement('canvas');
  const draw = () => {
    const ratio = Math.min(RATIO_MAX, devicePixelRatio || 1);
    const { clientWidth, clientHeight } = frame;
    canvas.width = clientWidth * ratio;
    canvas.height = clientHeight * ratio;
    view.resize(clientWidth, clientHeight);
    const theme = readTheme(frame, plan.categories), context = canvas.getContext('2d');
    drawAreas(context, view, ratio, prepareAreas(plan, theme), theme, () => '');
    drawSeats(context, plan, view, ratio, theme);
  };
  draw();
  frame.append(canvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
}
