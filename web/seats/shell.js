// The elements inside <holdfast-seats> and their style.  Everything is made by script and text is only ever set as text, so a
// strict Content-Security-Policy and hostile names do no harm.

const STYLE = `
:host {
  display: flex; flex-direction: column; position: relative; container-type: inline-size; color: var(--hf-ink);
  --hf-surface: var(--holdfast-surface, light-dark(#ffffff, #1d1d25));
  --hf-ink: var(--holdfast-ink, light-dark(#1b1b22, #ededf2));
  --hf-soft: var(--holdfast-soft, light-dark(#555563, #b4b4c2));
  --hf-taken: var(--holdfast-taken, light-dark(#7b7b88, #9a9aa8));
  --hf-faint: var(--holdfast-faint, light-dark(#8e8e99, #75757f));
  --hf-accent: var(--holdfast-accent, light-dark(#1b1b22, #ffffff));
  --hf-on-accent: var(--holdfast-on-accent, light-dark(#ffffff, #1b1b22));
  --hf-area: var(--holdfast-area, light-dark(#e8e8ee, #2c2c37));
  --hf-area-line: var(--holdfast-area-line, light-dark(#c4c4cf, #45454f));
  --hf-focus: var(--holdfast-focus, light-dark(#1d4ed8, #93c5fd));
}
:host([hidden]) { display: none; }
@supports not (color: light-dark(#000, #fff)) {
  :host {
    --hf-surface: var(--holdfast-surface, #ffffff); --hf-ink: var(--holdfast-ink, #1b1b22); --hf-soft: var(--holdfast-soft, #555563);
    --hf-taken: var(--holdfast-taken, #7b7b88); --hf-faint: var(--holdfast-faint, #8e8e99); --hf-accent: var(--holdfast-accent, #1b1b22);
    --hf-on-accent: var(--holdfast-on-accent, #ffffff); --hf-area: var(--holdfast-area, #e8e8ee);
    --hf-area-line: var(--holdfast-area-line, #c4c4cf); --hf-focus: var(--holdfast-focus, #1d4ed8);
  }
}
@media (forced-colors: active) {
  :host {
    --hf-surface: Canvas; --hf-ink: CanvasText; --hf-soft: CanvasText; --hf-taken: GrayText; --hf-faint: GrayText; --hf-accent: LinkText;
    --hf-on-accent: Canvas; --hf-area: Canvas; --hf-area-line: CanvasText; --hf-focus: Highlight;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
.stage {
  flex: 1 1 auto; display: grid; grid-template-areas: "frame frame" "legend legend"; grid-template-columns: minmax(0, 1fr) auto;
  grid-template-rows: minmax(var(--holdfast-height, clamp(320px, 62vh, 1400px)), 1fr) auto;
}
.frame {
  grid-area: frame; position: relative; overflow: hidden; background: var(--hf-surface); border: 1px solid var(--hf-area-line); border-radius: 8px;
}
.map { position: absolute; inset: 0; cursor: grab; outline: none; user-select: none; -webkit-user-select: none; touch-action: pan-y; }
.map.dragging { cursor: grabbing; }
.map.pointing { cursor: pointer; }
.map:focus-visible { outline: 3px solid var(--hf-focus); outline-offset: -3px; border-radius: 8px; }
.map canvas { display: block; width: 100%; height: 100%; }
.overview {
  position: absolute; z-index: 2; cursor: pointer; touch-action: none;
  background: var(--hf-surface); border: 1px solid var(--hf-taken); border-radius: 6px; box-shadow: 0 1px 6px rgb(0 0 0 / 25%);
}
.overview[data-corner^="left"] { left: 8px; }
.overview[data-corner^="right"] { right: 8px; }
.overview[data-corner$="top"] { top: 8px; }
.overview[data-corner$="bottom"] { bottom: 8px; }
.tip {
  position: absolute; left: 0; top: 0; z-index: 3; max-width: min(280px, 90%); padding: 6px 10px; pointer-events: none; overflow-wrap: anywhere;
  background: var(--hf-ink); color: var(--hf-surface); border-radius: 6px; font-size: 0.875rem; line-height: 1.35;
}
.note {
  position: absolute; left: 50%; top: 8px; z-index: 3; transform: translateX(-50%); margin: 0; padding: 6px 12px; width: max-content;
  max-width: calc(100% - 16px); background: var(--hf-ink); color: var(--hf-surface); border-radius: 6px; font-size: 0.875rem; pointer-events: none;
}
.buttons { grid-area: frame; place-self: end; z-index: 2; display: flex; flex-direction: column; gap: 6px; margin: 8px; }
button {
  display: grid; place-items: center; width: 44px; height: 44px; padding: 0; font: inherit; font-size: 1.25rem; line-height: 1; cursor: pointer;
  color: var(--hf-ink); background: var(--hf-surface); border: 1px solid var(--hf-taken); border-radius: 8px;
}
button:focus-visible, [role="gridcell"]:focus-visible { outline: 3px solid var(--hf-focus); outline-offset: 1px; }
.list { max-height: min(320px, 45vh); overflow: auto; margin-top: 8px; padding: 8px; border: 1px solid var(--hf-area-line); border-radius: 8px; background: var(--hf-surface); }
.list:not(.open):not(:focus-within) { position: absolute; left: 0; top: 0; width: 1px; height: 1px; margin: 0; padding: 0; border: 0; overflow: hidden; clip-path: inset(50%); }
.list [role="row"] { display: flex; flex-wrap: wrap; gap: 4px; padding: 2px 0; }
.list [role="rowheader"] { flex: 0 0 100%; font-size: 0.875rem; color: var(--hf-soft); overflow-wrap: anywhere; }
.list [role="gridcell"] {
  display: grid; place-items: center; min-width: 44px; height: 44px; padding: 0 6px; font-size: 0.875rem; cursor: pointer;
  border: 2px solid var(--hf-ink); border-radius: 22px; scroll-margin: 40px;
}
.list [data-state="h"], .list [data-state="b"], .list [data-state="x"] { border: 1px dashed var(--hf-taken); color: var(--hf-soft); cursor: default; }
.list [data-state="b"], .list [data-state="x"] { text-decoration: line-through; }
.list [data-state="mine"], .list [aria-selected="true"] { background: var(--hf-accent); color: var(--hf-on-accent); border: 2px solid var(--hf-accent); text-decoration: none; }
.legend { grid-area: legend; display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0 0; padding: 0; list-style: none; font-size: 0.875rem; color: var(--hf-soft); }
.legend li, .legend button { display: flex; align-items: center; gap: 6px; overflow-wrap: anywhere; }
.legend button { width: auto; height: auto; min-height: 32px; padding: 0 8px; font-size: inherit; border-color: var(--hf-area-line); border-radius: 16px; }
.legend button[aria-pressed="true"] { border: 2px solid var(--hf-ink); padding: 0 7px; font-weight: 600; }
.legend canvas { width: 18px; height: 18px; flex: none; }
@container (max-width: 560px) {
  .stage { grid-template-areas: "frame frame" "legend buttons"; }
  .legend.scrolls { flex-wrap: nowrap; align-items: center; overflow-x: auto; white-space: nowrap; scrollbar-width: none; padding: 0 24px 0 2px; mask-image: linear-gradient(to right, #000 calc(100% - 24px), transparent); }
  .legend li { flex: none; }
  .legend button { min-height: 44px; border-radius: 22px; }
  .buttons { grid-area: buttons; flex-direction: row; margin: 8px 0 0; }
}
.quiet { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.probe { position: absolute; visibility: hidden; }
`;

let sheet = null;

function make(tag, className, attributes = {}, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Fills the shadow root of the component; returns its elements by name.
export function makeShell(root) {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
  }
  root.adoptedStyleSheets = [sheet];
  const shell = {
    canvas: make('canvas', '', { 'aria-hidden': 'true' }),
    overview: make('canvas', 'overview', { 'aria-hidden': 'true', hidden: '' }),
    tip: make('div', 'tip', { 'aria-hidden': 'true', hidden: '' }),
    note: make('p', 'note', { 'aria-hidden': 'true', hidden: '' }),
    zoomIn: make('button', '', { type: 'button' }, '+'),
    zoomOut: make('button', '', { type: 'button' }, '−'),
    fit: make('button', '', { type: 'button' }, '⤢'),
    listButton: make('button', '', { type: 'button', 'aria-expanded': 'false', 'aria-controls': 'list' }, '☰'),
    grid: make('div', '', { role: 'grid', hidden: '' }),
    legend: make('ul', 'legend', { part: 'legend' }),
    help: make('p', 'quiet', { id: 'help' }),
    live: make('div', 'quiet', { 'aria-live': 'polite' }),
    probe: make('span', 'probe', { 'aria-hidden': 'true' }),
  };
  shell.map = make('div', 'map', { role: 'application', tabindex: '0', 'aria-describedby': 'help', part: 'map' }, shell.canvas);
  shell.list = make('div', 'list', { id: 'list', part: 'list' }, shell.grid);
  shell.buttons = make('div', 'buttons', { part: 'buttons' }, shell.listButton, shell.zoomIn, shell.zoomOut, shell.fit);
  shell.frame = make('div', 'frame', { part: 'frame' }, shell.map, shell.overview, shell.tip, shell.note);
  const stage = make('div', 'stage', {}, shell.frame, shell.legend, shell.buttons);
  root.append(stage, shell.list, shell.help, shell.live, shell.probe);
  return shell;
}

// Gives the elements their words.
export function labelShell(shell, t) {
  shell.map.setAttribute('aria-label', t('map'));
  shell.grid.setAttribute('aria-label', t('grid'));
  shell.help.textContent = t('help');
  shell.legend.setAttribute('aria-label', t('legend'));
  for (const [name, key] of [['zoomIn', 'zoomIn'], ['zoomOut', 'zoomOut'], ['fit', 'fit'], ['listButton', 'list']]) {
    shell[name].setAttribute('aria-label', t(key));
    shell[name].title = t(key);
  }
}

export { make };
