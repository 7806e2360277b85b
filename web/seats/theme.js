// The colours of the map, read from CSS: a shop sets --holdfast-* on the element or above it, and light, dark and forced
// colours follow the page.  A canvas needs plain colours, so a probe element computes them.

const NAMES = ['surface', 'ink', 'soft', 'taken', 'faint', 'accent', 'on-accent', 'area', 'area-line', 'focus'];

// For categories without a colour of their own: told apart by people with any kind of colour vision (after Okabe and Ito).
const CATEGORY_COLORS = ['#0072b2', '#d55e00', '#009e73', '#b84f8e', '#c78500', '#3d8fc4', '#6b5fb5', '#7a7a00'];

// From "hardly ever refused" to "fought over", growing in both lightness and hue (after the cividis scale).
const HEAT_COLORS = ['#27436f', '#45587a', '#636d79', '#827f77', '#a5936f', '#c9aa61', '#e6c34a', '#ffea46'];
export const HEAT_STEPS = HEAT_COLORS.length;

const pixel = document.createElement('canvas');
pixel.width = pixel.height = 1;
const pixelContext = pixel.getContext('2d', { willReadFrequently: true });

// Returns [r, g, b, a] of any CSS colour, or null if it is none.  Colours come from sellers: only a colour passes.
export function rgbaOf(color) {
  if (typeof color !== 'string' || color.length > 64 || !CSS.supports('color', color)) return null;
  pixelContext.clearRect(0, 0, 1, 1);
  pixelContext.fillStyle = '#000';
  pixelContext.fillStyle = color;
  pixelContext.fillRect(0, 0, 1, 1);
  return [...pixelContext.getImageData(0, 0, 1, 1).data];
}

const css = ([r, g, b, a]) => `rgba(${r}, ${g}, ${b}, ${(a / 255).toFixed(3)})`;

// Relative luminance and contrast ratio, as the WCAG define them.
function luminance([r, g, b]) {
  const part = (value) => (value <= 10 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
}
export function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}
const BLACK = [0, 0, 0, 255], WHITE = [255, 255, 255, 255];
export const inkOn = (background) => (contrast(background, WHITE) >= contrast(background, BLACK) ? '#fff' : '#000');

// A colour with what is drawn on it: { css, rgba, ink, edge }.  The edge is for colours that the surface would swallow.
function paint(rgba, surface, ink) {
  return { css: css(rgba), rgba, ink: inkOn(rgba), edge: contrast(rgba, surface) < 1.6 ? ink : null };
}

// `probe` is an element inside the component.
export function readTheme(probe, categories) {
  const computed = getComputedStyle(probe);
  const colors = {};
  for (const name of NAMES) {
    probe.style.color = `var(--hf-${name})`;
    colors[name] = rgbaOf(computed.color) ?? BLACK;
  }
  const font = computed.fontFamily;
  probe.style.color = '';
  const isForced = matchMedia('(forced-colors: active)').matches;
  const own = (color, i) => (isForced ? colors.accent : rgbaOf(color) ?? rgbaOf(CATEGORY_COLORS[i % CATEGORY_COLORS.length]));
  const surface = colors.surface[3] === 0 ? WHITE : colors.surface;
  return {
    surface: css(surface),
    surfaceRgba: surface,
    ink: css(colors.ink),
    soft: css(colors.soft),
    taken: paint(colors.taken, surface, css(colors.taken)),
    faint: paint(colors.faint, surface, css(colors.faint)),
    accent: paint(colors.accent, surface, css(colors.ink)),
    onAccent: css(colors['on-accent']),
    area: css(colors.area),
    areaRgba: colors.area,
    areaLine: css(colors['area-line']),
    focus: css(colors.focus),
    font,
    categories: (categories.length ? categories : [{}]).map(({ color }, i) => paint(own(color, i), surface, css(colors.ink))),
    heat: HEAT_COLORS.map((color) => paint(rgbaOf(color), surface, css(colors.ink))),
  };
}
