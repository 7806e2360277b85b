// <holdfast-seats server="https://tickets.example" event="evt_...">: the live seat map of an event, for any page.
//
// This file is what a page sees: attributes, properties, methods and events.  It joins the parts: plan.js (geometry), board.js
// (states), stream.js (news), view.js and painter.js (picture), gestures.js and keys.js (input), grid.js (the same seats for
// screen readers), hold.js (the buyer's hold).
//
// Events, which bubble and leave the shadow tree:
//   select   { selection, areas, added?, removed?, lost? }   lost: seats that others took while they were selected
//   hold, release, expire   { hold }
//   status   { kind: 'live' | 'reconnecting' | 'offline' | 'gone' }
//   change   { seq }      event   { status, prices }
//   pick     { seat }     a click in a map that is not interactive
//   area     { name }     a click on an area with counted places
//   refuse   { message, code }   why a click had no effect

import { call } from '../lib/api.js';
import { list, duration } from '../lib/format.js';
import { language, words } from '../texts.js';
import { Board } from './board.js';
import { areaContains } from './decor.js';
import { Gestures } from './gestures.js';
import { SeatGrid } from './grid.js';
import { Holder, Refusal, refusalOf } from './hold.js';
import { MapKeys } from './keys.js';
import { drawLegend } from './legend.js';
import { loneSeats } from './lone.js';
import { Notes } from './notes.js';
import { Painter } from './painter.js';
import { Plan } from './plan.js';
import { noPlaces, placesOf, Selection } from './selection.js';
import { labelShell, makeShell } from './shell.js';
import { loadPlan, SeatsFollower } from './stream.js';
import { readTheme } from './theme.js';
import { Tip } from './tip.js';
import { View } from './view.js';
import { Names } from './words.js';
// What other parts need is named here, too, so that the browser asks for all files at once.
import './edge_names.js';
import './overview.js';
import './spatial.js';
import './sprites.js';
import './tiles.js';

const PENDING_MAX = 20_000; // changes that wait for a frame; beyond, everything is drawn anew
const SETTLE_AGAIN_MS = 3000;
const GRID_RESTS_MS = 250; // the grid follows a view that has stopped moving
const TAP_LEAST_PX = { touch: 22, mouse: 7 }; // seats smaller than this are zoomed to before they are chosen
const TAP_ZOOM_PX = { touch: 36, mouse: 26 };
const TAP_REACH_PX = { touch: 24, mouse: 5 };
const LOOK_CLOSER_PX = 28; // how wide a seat is that the map goes to

export class HoldfastSeats extends HTMLElement {
  static observedAttributes = ['server', 'event', 'lang'];

  #shell;
  #painter;
  #plan = null;
  #board = null;
  #view = null;
  #names = null;
  #grid = null;
  #keys = null;
  #holder = null;
  #follower = null;
  #life = null; // an AbortController: ends with the element's stay in the page, or when its attributes change
  #selection = null;
  #notes;
  #tip;
  #pending = []; // seats that changed since the last frame; null: all
  #frameAsked = false;
  #hover = -1;
  #tapped = -1; // the seat that the last tap chose or took back
  #isInteractive = true;
  #isHolding = false;
  #heat = null;
  #gridTimer = 0;
  #fate = {}; // resolve and reject of `ready`

  constructor() {
    super();
    this.#shell = makeShell(this.attachShadow({ mode: 'open' }));
    this.#painter = new Painter(this.#shell.canvas);
    this.#notes = new Notes(this.#shell);
    this.#tip = new Tip(this.#shell.tip);
    this.#renewReady();
  }

  #renewReady() {
    this.ready = new Promise((resolve, reject) => { this.#fate = { resolve, reject }; });
    this.ready.catch(() => {}); // a page need not wait for it
  }

  // ---- life ----

  connectedCallback() { this.#startSoon(); }
  disconnectedCallback() { this.#stop(); }
  attributeChangedCallback(name, before, after) {
    if (before !== after && this.isConnected) this.#startSoon();
  }

  // A page that sets several attributes starts the map once.
  #startSoon() {
    if (this.#life) this.#renewReady();
    this.#stop();
    if (this.getAttribute('event')) queueMicrotask(() => { if (this.isConnected && !this.#life) this.#start(); });
  }

  #stop() {
    this.#life?.abort();
    this.#life = null;
    this.#follower?.stop();
    this.#holder?.close();
    clearTimeout(this.#gridTimer);
    this.#notes.close();
    this.#grid?.clear();
    this.#plan = this.#board = this.#view = this.#holder = this.#follower = this.#grid = this.#selection = null;
    this.#gridView = '';
    this.#hover = -1;
    this.#pending = [];
    this.#hasSnapshot = this.#hasDrawn = false;
  }

  get server() { return (this.getAttribute('server') ?? '').replace(/\/+$/, ''); }
  set server(url) { this.setAttribute('server', url); }
  get event() { return this.getAttribute('event') ?? ''; }
  set event(id) { this.setAttribute('event', id); }
  get #lang() { return language(this.getAttribute('lang') || document.documentElement.lang); }

  async #start() {
    const life = new AbortController();
    this.#life = life;
    const { server, event } = this;
    const t = words('seats', this.#lang);
    labelShell(this.#shell, t);
    this.#notes.last('');
    this.#holder = new Holder(server, event, {
      changed: (hold) => this.#showMine(hold),
      expire: (hold) => { this.#announce(t('holdExpired')); this.#emit('expire', { hold }); },
      release: (hold) => this.#emit('release', { hold }),
    });
    const plan = loadPlan(server, event, life.signal, (kind) => this.#tellStatus(kind));
    plan.catch(() => {});
    this.#follower = this.#follow(plan, life);
    // What only matters once somebody chooses seats comes after the picture.
    this.ready.then(() => call(server, 'GET', `/v1/events/${encodeURIComponent(event)}`))
      .then(({ json }) => { if (!life.signal.aborted) this.#selection.maxPerHold = json.max_per_hold ?? this.#selection.maxPerHold; })
      .catch(() => {});
  }

  #follow(plan, life) {
    return new SeatsFollower(this.server, this.event, {
      snapshot: async (snapshot, isStale) => {
        const document = await plan;
        if (life.signal.aborted) return;
        if (!this.#plan) this.#open(new Plan(document), document, life);
        this.#isStale = isStale;
        this.#takeSnapshot(snapshot);
        this.#fate.resolve(this);
      },
      seats: (message) => this.#news(this.#board.apply(message), message.seq),
      event: ({ status, prices, types }) => this.#takeEvent(status, prices, types),
      status: (kind) => this.#tellStatus(kind),
      gone: () => {
        this.#tellStatus('gone');
        this.#fate.reject(new Refusal(words('seats', this.#lang)('noSuchEvent'), { code: 'no_such_event', status: 404 }));
      },
    });
  }
  #isStale = false;
  #outline = null;

  #open(plan, document, life) {
    const { signal } = life;
    this.#plan = plan;
    this.#outline = {
      event: document.event, name: plan.name, size: document.size, focus: plan.focus, categories: plan.categories, areas: plan.areas,
      sections: plan.sections.map(({ name }) => ({ name })),
    };
    this.#board = new Board(plan);
    this.#names = new Names(plan, this.#board, this.#lang);
    this.#selection = new Selection({ plan, board: this.#board, names: this.#names }, {
      isMine: (i) => this.#painter.mine.has(i),
      heldCount: () => (this.#holder.isActive ? placesOf(this.#holder.current) : 0),
    }, (seats, detail) => {
      this.#note(seats);
      this.#emit('select', { selection: this.selection, areas: this.areaSelection, ...detail });
    });
    this.#view = new View(plan.box, plan.radiusTypical);
    this.#view.isToCover = this.getAttribute('fit') === 'cover';
    this.#painter.setPlan(plan, this.#board, readTheme(this.#shell.probe, plan.categories), this.#shell.overview, (x, y) => {
      this.#view.moveTo({ x, y }, performance.now(), false);
      this.#ask();
    }, signal);
    this.#grid = this.#makeGrid(signal);
    this.#listen(signal);
  }

  #makeGrid(signal) {
    return new SeatGrid(this.#shell.grid, {
      name: (i) => this.#names.whole(i, this.#marksOf(i)),
      label: (i) => String(this.#plan.labels[i]),
      rowName: (row) => this.#names.rowPlace(this.#plan.rows[row]),
      state: (i) => (this.#painter.mine.has(i) ? 'mine' : this.#selection.seats.has(i) ? 'selected' : this.#board.letter(i)),
    }, {
      toggle: (i) => this.#toggle(i),
      focus: (i) => { this.#keys.active = i; this.#goTo(i); },
      beyond: (i, dx, dy) => {
        const next = this.#plan.spatial.neighbour(i, dx, dy);
        if (next < 0) return -1;
        this.#goTo(next, false);
        this.#grid.show(this.#plan, this.#view);
        return next;
      },
    }, signal);
  }

  #listen(signal) {
    const { map, frame, zoomIn, zoomOut, fit, listButton, list: panel } = this.#shell;
    const zoom = (factor) => { this.#view.moveToZoom(this.#view.width / 2, this.#view.height / 2, factor, performance.now(), this.#isAnimated); this.#ask(); };
    const showAll = () => { this.#view.moveToFit(performance.now(), this.#isAnimated); this.#ask(); };
    new Gestures(map, {
      pan: (dx, dy) => { this.#view.panBy(dx, dy); this.#point(null); this.#ask(); },
      zoom: (x, y, factor) => { this.#view.zoomAt(x, y, factor); this.#point(null); this.#ask(); },
      tap: (x, y, type) => this.#tap(x, y, type),
      doubleTap: (x, y) => {
        if (this.#tapped >= 0) this.#toggle(this.#tapped); // the first tap was not meant for the seat
        this.#tapped = -1;
        this.#view.moveToZoom(x, y, 2, performance.now(), this.#isAnimated);
        this.#ask();
      },
      hover: (x, y) => this.#point(x, y),
      wheelIgnored: () => this.#notes.pass(this.#names.t('wheelHint')),
      dragging: (isDragging) => map.classList.toggle('dragging', isDragging),
    }, () => map.matches(':focus'), signal);
    this.#keys = new MapKeys(map, this.#plan, this.#view, {
      zoom, fit: showAll, redraw: () => this.#ask(),
      toggle: (i) => this.#toggle(i),
      move: (i) => { this.#goTo(i); this.#announce(this.#names.whole(i, this.#marksOf(i))); },
    }, signal);
    const openList = (isOpen) => listButton.setAttribute('aria-expanded', String(panel.classList.toggle('open', isOpen)));
    // Once the list has shown itself it stays: what lies below must not move away under a click.
    panel.addEventListener('focusin', () => openList(true), { signal });
    for (const [button, act] of [[zoomIn, () => zoom(1.6)], [zoomOut, () => zoom(1 / 1.6)], [fit, showAll],
      [listButton, () => openList()]]) {
      button.addEventListener('click', act, { signal });
    }
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)']) {
      matchMedia(query).addEventListener('change', () => this.refreshTheme(), { signal });
    }
    const sizes = new ResizeObserver(() => this.#resize());
    sizes.observe(frame);
    signal.addEventListener('abort', () => sizes.disconnect());
    this.#resize();
  }

  get #isAnimated() { return !matchMedia('(prefers-reduced-motion: reduce)').matches; }

  // Reads the colours anew, after a page has changed its --holdfast-* properties.
  refreshTheme() {
    if (!this.#plan) return;
    this.#painter.setTheme(readTheme(this.#shell.probe, this.#plan.categories));
    this.#drawLegend();
    this.#ask();
  }

  // ---- news ----

  #takeSnapshot(snapshot) {
    const changed = this.#board.load(snapshot);
    this.#hasSnapshot = true;
    this.#news(changed, snapshot.seq);
    this.#takeEvent(this.#board.sale, this.#board.prices);
  }

  #takeEvent(status, prices, types) {
    this.#board.sale = status ?? this.#board.sale;
    this.#board.prices = prices ?? this.#board.prices;
    this.#board.types = types ?? this.#board.types;
    this.#drawLegend();
    this.#grid.update(null);
    this.#notes.last(this.#saleNote());
    this.#emit('event', { status: this.#board.sale, prices: this.#board.prices });
    this.#ask();
  }

  #saleNote() {
    if (this.#board.sale === 'closed' || this.#board.sale === 'archived') return this.#names.t('closed');
    return this.#isStale ? this.#names.t('stale') : '';
  }

  #news(changed, seq) {
    this.#note(changed);
    this.#dropTaken();
    // A seat of the buyer's own that is free or sold tells that the hold has ended elsewhere, also if the news of its beginning and of
    // its end came at once.
    if (this.#holder.isActive && [...this.#painter.mine].some((i) => this.#board.letter(i) !== 'h')) {
      this.#holder.refresh().catch(() => {});
    }
    this.#emit('change', { seq });
  }

  // Remembers seats to draw again in the next frame.
  #note(seats) {
    if (this.#pending && seats && this.#pending.length + seats.length <= PENDING_MAX) for (const i of seats) this.#pending.push(i);
    else this.#pending = null;
    this.#ask();
  }

  // Takes out of the selection what is no longer available.  While the buyer's own hold is on its way, or its answer was lost,
  // nobody knows whose the seats are.
  #dropTaken(named = []) {
    if (this.#isHolding || this.#holder?.isUnsettled) return;
    const lost = this.#selection.dropTaken(named);
    if (lost.length > 0) this.#announce(this.#names.t('takenSeats', { n: lost.length, seats: this.#names.placesOfIds(lost) }), true);
  }

  #tellStatus(kind) {
    const t = words('seats', this.#lang);
    const texts = { live: '', reconnecting: t('reconnecting'), offline: t('offline'), gone: t('noSuchEvent') };
    this.#notes.last(texts[kind] || (this.#board ? this.#saleNote() : ''));
    this.dataset.live = kind;
    this.#emit('status', { kind });
  }

  // ---- the picture ----

  #ask() {
    if (this.#frameAsked || !this.#hasSnapshot) return;
    this.#frameAsked = true;
    requestAnimationFrame((now) => this.#frame(now));
  }

  #resize() {
    const { clientWidth, clientHeight } = this.#shell.frame;
    if (!this.#view || clientWidth === 0 || clientHeight === 0) return;
    this.#painter.resize(clientWidth, clientHeight, Math.min(3, devicePixelRatio || 1));
    this.#view.resize(clientWidth, clientHeight);
    if (this.#hasSnapshot) this.#frame(performance.now()); // at once, since the canvas is empty now
  }

  #frame(now) {
    this.#frameAsked = false;
    const view = this.#view;
    if (!view || view.width === 0 || !this.#hasSnapshot) return;
    const hasMoved = view.step(now);
    if (!this.#pending || this.#pending.length > 0) {
      this.#painter.refresh(this.#pending);
      this.#grid.update(this.#pending);
      this.#pending = [];
    }
    const isFocused = this.#keys.isShown || this.#grid.hasFocus;
    const hasMore = this.#painter.draw(view, now, {
      selected: this.#selection.seats, hover: this.#hover, active: this.#keys.active, isFocused,
    }, (name, isNamed) => this.#areaCaption(name, isNamed));
    this.#showTip(this.#hover >= 0 || !isFocused ? this.#hover : this.#keys.active);
    this.#shell.map.style.touchAction = view.isFitted ? 'pan-y' : 'none';
    this.#showGridSoon();
    if (hasMoved || hasMore) this.#ask();
    if (this.#hasDrawn) return;
    this.#hasDrawn = true;
    performance.mark('holdfast-first-draw');
    const plan = this.#plan;
    setTimeout(() => plan.indexOf('')); // makes the index of ids, which the first message would have to wait for
  }
  #hasDrawn = false;
  #hasSnapshot = false;
  #gridView = '';

  // The grid is built when the view rests, and not while it is the same.
  #showGridSoon() {
    const { x, y, scale, width, height } = this.#view;
    const key = [x, y, scale, width, height].join();
    if (key === this.#gridView) return;
    this.#gridView = key;
    clearTimeout(this.#gridTimer);
    this.#gridTimer = setTimeout(() => this.#grid?.show(this.#plan, this.#view), GRID_RESTS_MS);
  }

  // What is said of an area below its words, which have its name already if `isNamed`.
  #areaCaption(name, isNamed) {
    const area = this.#board.areas.get(name);
    if (!area) return isNamed ? null : name;
    const chosen = this.#selection.areas[name], key = chosen ? 'areaChosen' : 'areaLeft';
    return this.#names.t(isNamed ? `${key}Here` : key, { area: name, n: area.available, chosen });
  }

  #drawLegend() {
    drawLegend(this.#shell.legend, {
      plan: this.#plan, board: this.#board, names: this.#names, theme: this.#painter.theme, isHeat: this.paint === 'heat',
      spotlight: this.#painter.spotlight, choose: (category) => this.#choose(category),
    });
  }

  // Lets a category stand out, or all of them again; returns the one that does.
  #choose(category) {
    const chosen = this.#painter.spotlight === category ? -1 : category;
    this.#painter.setSpotlight(chosen);
    this.#ask();
    return chosen;
  }

  // ---- words ----

  // Says something to screen readers, and shows it for a moment if `isShown`.
  #announce(text, isShown = false) {
    this.#notes.announce(text);
    if (isShown) this.#notes.pass(text);
  }

  #emit(name, detail) { this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true })); }
  #marksOf(i) { return { isMine: this.#painter.mine.has(i), isSelected: this.#selection.seats.has(i) }; }

  // ---- pointing ----

  #tap(px, py, type) {
    const view = this.#view, plan = this.#plan;
    const x = view.toPlanX(px), y = view.toPlanY(py);
    const i = plan.seatAt(x, y, Math.max(0, TAP_REACH_PX[type] / view.scale - plan.radiusTypical));
    this.#keys.isShown = false;
    this.#tapped = -1;
    if (i >= 0 && view.seatPx < TAP_LEAST_PX[type] && view.scale < view.scaleMax * 0.99) {
      view.moveTo({ x, y, scale: view.scale * (TAP_ZOOM_PX[type] / view.seatPx) }, performance.now(), this.#isAnimated);
      this.#ask();
      return true;
    }
    if (i >= 0) {
      this.#keys.active = i;
      if (this.#toggle(i)) this.#tapped = i;
      return true;
    }
    const area = plan.areas.findLast((each) => each.name && areaContains(this.#painter.context, each, x, y));
    if (area) this.#emit('area', { name: area.name });
    return Boolean(area);
  }

  #point(px, py) {
    const view = this.#view;
    let i = -1;
    if (px !== null && px !== undefined && view.seatPx >= 5) {
      i = this.#plan.seatAt(view.toPlanX(px), view.toPlanY(py), Math.max(this.#plan.radiusTypical * 0.2, 4 / view.scale - this.#plan.radiusTypical));
    }
    if (i === this.#hover) return;
    this.#hover = i;
    this.#shell.map.classList.toggle('pointing', i >= 0);
    this.#showTip(i);
    this.#ask();
  }

  #showTip(i) {
    if (i >= 0) this.#tip.show(this.#view, this.#plan, i, this.#names.whole(i, this.#marksOf(i)));
    else this.#tip.hide();
  }

  // Chooses a seat, or takes it back; returns true if that was possible.
  #toggle(i) {
    const id = this.#plan.ids[i];
    if (!this.#isInteractive) {
      this.#emit('pick', { seat: id });
      return false;
    }
    try {
      if (this.#selection.seats.has(i)) this.deselect(id);
      else this.select(id);
      this.#announce(this.#names.whole(i, this.#marksOf(i)));
      return true;
    } catch (error) {
      this.#announce(error.message, true);
      this.#emit('refuse', { message: error.message, code: error.code });
      return false;
    }
  }

  // Brings a seat into view, large enough to be seen.
  #goTo(i, isAnimated = this.#isAnimated) {
    const view = this.#view, plan = this.#plan;
    const margin = Math.min(48, view.width / 6) / view.scale;
    const isSeen = plan.x[i] > view.left + margin && plan.x[i] < view.right - margin && plan.y[i] > view.top + margin && plan.y[i] < view.bottom - margin;
    const isLarge = view.seatPx >= LOOK_CLOSER_PX / 2 || view.scale >= view.scaleMax * 0.99;
    if (!isSeen || !isLarge) {
      view.moveTo({ x: plan.x[i], y: plan.y[i], scale: isLarge ? view.scale : view.scale * (LOOK_CLOSER_PX / view.seatPx) }, performance.now(), isAnimated);
    }
    this.#ask();
  }

  // ---- what a page can ask for ----

  get interactive() { return this.#isInteractive; }
  set interactive(isInteractive) { this.#isInteractive = Boolean(isInteractive); }

  // The plan without its seats: name, size, focus, categories, areas and the names of the sections.
  get plan() { return this.#outline; }
  get seq() { return this.#board?.seq ?? 0; }
  get saleStatus() { return this.#board?.sale ?? null; }
  get currency() { return this.#board?.currency ?? null; }
  get prices() { return { ...this.#board?.prices }; }
  get maxPerHold() { return this.#selection?.maxPerHold ?? null; }
  // The areas with counted places: [{ name, price, capacity, available }].
  get areas() { return [...this.#board?.areas ?? []].map(([name, area]) => ({ name, ...area })); }
  // How many seats and places are left.
  get available() { return this.#board?.available ?? 0; }
  get selection() { return this.#selection?.ids ?? []; }
  get areaSelection() { return Object.assign(noPlaces(), this.#selection?.areas); }
  get currentHold() { return this.#holder?.current ?? null; }
  get timeOffset() { return this.#holder?.timeOffset ?? 0; }
  get timeLeftMs() { return this.#holder?.timeLeftMs ?? 0; }

  // '.', 'h', 'b' or 'x'; undefined for a seat that does not exist.
  status(id) {
    const i = this.#plan?.indexOf(id) ?? -1;
    return i < 0 ? undefined : this.#board.letter(i);
  }

  // What there is to know about a seat, or null: { id, label, section, row, category, price, status, accessible, name }.
  seat(id) {
    const i = this.#plan?.indexOf(id) ?? -1;
    if (i < 0) return null;
    return {
      id, label: this.#plan.labels[i], section: this.#plan.sectionOf(i).name, row: this.#plan.rowOf(i).name, category: this.#plan.categoryOf(i),
      price: this.#board.priceOf(i), status: this.#board.letter(i), accessible: this.#names.flags(i).length > 0 && Boolean(this.#plan.flags[i] & 1),
      name: this.#names.place(i),
    };
  }

  // Where a seat is now, in CSS pixels of the window: { x, y, size }.
  seatPosition(id) {
    const i = this.#plan?.indexOf(id) ?? -1;
    if (i < 0) return null;
    const box = this.#shell.map.getBoundingClientRect();
    return { x: box.left + this.#view.toScreenX(this.#plan.x[i]), y: box.top + this.#view.toScreenY(this.#plan.y[i]), size: this.#view.seatPx };
  }

  // The map can be asked for seats once it is ready.
  get #chosen() {
    if (!this.#selection) throw new Refusal(words('seats', this.#lang)('notReady'), { code: 'not_ready' });
    return this.#selection;
  }

  // Selects a seat; throws a Refusal, whose message says why, if that is impossible.
  select(id) { return this.#chosen.select(id); }
  deselect(id) { return this.#chosen.deselect(id); }
  clear() { this.#selection?.clear(); }
  // Chooses `n` places of an area, at most those that are left and that a hold may have; returns how many it became.
  setArea(name, n, type) { return this.#chosen.setArea(name, n, type); }

  // The ticket types of the event, the usual one first: [{ id, name }]; none where all pay the same.
  get types() { return (this.#board?.types ?? []).map(({ id, name }) => ({ id, name })); }
  // The ticket type of a seat that is chosen, and how many places of each type are chosen in each area.
  typeOf(id) { return this.#chosen.typeOf(id); }
  setType(id, type) { this.#chosen.setType(id, type); }
  get areaTypes() { return Object.assign(noPlaces(), this.#selection?.counts); }
  // What a category, a section or an area costs, for a ticket type or the usual one; null if that is not known.
  priceOf(name, type) { return this.#board?.price(name, type ?? undefined) ?? null; }

  // The ids of seats that a person may mean by `text`, best first.
  find(text) { return this.#plan ? this.#names.find(String(text)).map((i) => this.#plan.ids[i]) : []; }

  // The ids of seats that what is chosen would leave single.
  get loneSeats() { return this.#plan ? loneSeats(this.#plan, this.#board, this.#selection.seats, this.#painter.mine).map((i) => this.#plan.ids[i]) : []; }

  // Brings a seat into view and marks it.
  focusSeat(id) {
    const i = this.#chosen.known(id);
    this.#keys.active = i;
    this.#keys.isShown = true;
    this.#goTo(i);
  }

  // ---- the hold ----

  async #request(work) {
    if (this.#isHolding) throw new Refusal(this.#names.t('oneAtATime'), { code: 'busy' });
    this.#isHolding = true;
    let refusal = null;
    try {
      return await work();
    } catch (error) {
      refusal = refusalOf(error, this.#names.t, {
        name: (id) => this.#names.placeOfId(id), list: (names) => list(names, this.#lang), seconds: (ms) => duration(ms, this.#lang),
      });
      throw refusal;
    } finally {
      this.#isHolding = false;
      if (this.#plan) this.#dropTaken(refusal?.code === 'seat_taken' ? refusal.seats : []);
      if (this.#holder?.isUnsettled) setTimeout(() => this.#settle(), SETTLE_AGAIN_MS);
    }
  }

  // Asks again for a hold whose answer was lost, until it is known what became of it.
  #settle() {
    if (!this.isConnected || !this.#holder?.isUnsettled || this.#isHolding) return;
    this.#request(async () => this.#took(await this.#holder.settle())).catch(() => {}); // it was told the first time
  }

  #took(hold) {
    if (!this.#selection) return hold; // the element has left the page meanwhile
    this.#selection.dropHeld(hold);
    this.#keys.isShown = false;
    this.#emit('hold', { hold });
    return hold;
  }

  // Holds what is selected.  Resolves to the hold; rejects with a Refusal, whose message is a sentence for the buyer.
  async hold({ owner } = {}) {
    const { wish: { places, types }, isEmpty } = this.#chosen;
    if (isEmpty) throw new Refusal(this.#names.t('nothingSelected'), { code: 'nothing_selected' });
    return this.#request(async () => this.#took(await this.#holder.take(places, { owner, types })));
  }

  // Holds the best seats there are.  A hold cannot be extended by them.
  async best({ quantity = 1, category, accessible, section, adjacent, owner } = {}) {
    if (this.#holder?.isActive) throw new Refusal(this.#names.t('bestWhileHolding'), { code: 'hold_active' });
    const wish = { quantity, category, accessible, section, adjacent };
    const wanted = Object.fromEntries(Object.entries(wish).filter(([, value]) => value !== undefined && value !== null && value !== ''));
    const hold = await this.#request(async () => this.#took(await this.#holder.take({ best_available: wanted }, { owner })));
    if (hold.seats.length > 0) this.#showSeats(hold.seats);
    return hold;
  }

  #showSeats(ids) {
    const i = this.#plan.indexOf(ids[0]);
    if (i >= 0) this.#goTo(i);
  }

  // Gives the hold back.
  async release() { return this.#request(() => this.#holder.release()); }

  // Takes up a hold of this buyer that was made earlier.  Resolves to it, or to null if it has ended.
  async resume(id) {
    await this.ready;
    return this.#request(() => this.#holder.resume(id));
  }

  // Reads the hold again, after a page has renewed or booked it.
  async refreshHold() { return this.#holder.refresh(); }

  // Forgets the hold without giving it back, such as when its seats are booked.
  forget() { this.#holder?.forget(); }

  #showMine(hold) {
    if (!this.#plan) return;
    const seats = (hold?.seats ?? []).map((id) => this.#plan.indexOf(id)).filter((i) => i >= 0);
    const touched = [...this.#painter.mine, ...seats];
    for (const i of seats) this.#selection.seats.delete(i);
    this.#painter.setMine(seats);
    this.#note(touched);
  }

  // ---- for operators ----

  get paint() { return this.#paint; }
  set paint(what) {
    this.#paint = what === 'heat' ? 'heat' : 'status';
    this.#applyHeat();
  }
  #paint = 'status';

  // How often each seat was refused: a Map of id to count.
  setHeat(counts) {
    this.#heat = counts;
    this.#applyHeat();
  }

  #applyHeat() {
    if (!this.#plan) return;
    const byNumber = new Map();
    for (const [id, n] of this.#heat ?? []) {
      const i = this.#plan.indexOf(id);
      if (i >= 0) byNumber.set(i, n);
    }
    this.#painter.setHeat(this.#paint === 'heat' ? byNumber : null);
    this.#drawLegend();
    this.#ask();
  }

  // Draws a plan that no event has yet: a document as GET /v1/events/{e}/plan answers it, with a snapshot.
  showPlan(document, snapshot) {
    const plan = new Plan(document);
    this.#stop();
    this.#life = new AbortController();
    this.#holder = new Holder(this.server, '', { changed() {} });
    labelShell(this.#shell, words('seats', this.#lang));
    this.#open(plan, document, this.#life);
    this.#takeSnapshot(snapshot);
    this.#fate.resolve(this);
  }

  // Stops following and draws this snapshot, such as one of the past; null returns to the present.
  showMap(snapshot) {
    if (!this.#plan) return;
    this.#follower?.stop();
    this.#follower = null;
    if (snapshot) {
      this.#takeSnapshot(snapshot);
      return;
    }
    this.#follower = this.#follow(Promise.resolve(null), this.#life);
  }
}

if (!customElements.get('holdfast-seats')) customElements.define('holdfast-seats', HoldfastSeats);
