// The list of events on sale, in the order of dates: a card for each, with its picture, what, when, where, from which price, and
// whether places are left.  A card has its size from the start; what has to be asked for, the price and the plan of the hall,
// comes when the card is about to be seen, and moves nothing.

import { call, insist, Unreachable } from '../lib/api.js';
import { money } from '../lib/format.js';
import { venueText, venueZone } from '../lib/venue_time.js';
import { language, words } from '../texts.js';
import { byId, element, translate, withBrand } from './dom.js';
import { isBefore, isOver } from './sale.js';

const PAGE = 24;
const AT_A_TIME = 4; // requests for prices and plans
const SOON_PX = 300; // a card so far below the window is about to be seen
const FEW = 10; // places, or this part of those that are sold
const FEW_PART = 0.05;
const DRAWN_MAX = 20_000; // places of a hall whose plan is worth a small drawing

const wanted = new URLSearchParams(location.search).get('lang');
const lang = language(wanted ?? undefined);
const t = words('buyer', lang);
let cursor = null;
let shown = 0;

const timeOf = (event, at) => venueText(t, at, venueZone(event), lang);
const addressOf = (event) => `/v1/events/${encodeURIComponent(event.id)}`;

// ---- what has to be asked for ----

const queue = [];
let lanes = 0;

// Does a piece of work, a few at a time.  What fails is left out of the card.
function soon(work) {
  queue.push(work);
  if (lanes < AT_A_TIME) lane();
}

async function lane() {
  lanes++;
  for (let work = queue.shift(); work; work = queue.shift()) await work().catch(() => {});
  lanes--;
}

// The list has no layouts, and so no prices.
async function showPrice(event, place) {
  const { json } = await call('', 'GET', addressOf(event));
  const prices = [json.sections, json.areas, json.categories].flatMap((list) => list ?? []).map(({ name, price }) => [name, price])
    .concat(Object.entries(json.prices ?? {})).filter(([, price]) => Number.isInteger(price))
    .flatMap(([name, price]) => (json.types?.length > 0 ? json.types.map((type) => type.prices?.[name] ?? price) : [price]));
  if (prices.length === 0) return;
  const least = Math.min(...prices);
  place.textContent = least > 0 ? t('from', { price: money(least, json.currency, lang) }) : t('free');
}

async function showHall(event, picture) {
  if (event.capacity > DRAWN_MAX) return;
  const [{ json }, { drawHall }] = await Promise.all([call('', 'GET', `${addressOf(event)}/plan`), import('./hall.js')]);
  drawHall(picture, json);
}

const works = new Map(); // what is to be done once an element is about to be seen
const watcher = new IntersectionObserver((entries) => {
  for (const { target } of entries.filter(({ isIntersecting }) => isIntersecting)) {
    watcher.unobserve(target);
    works.get(target).forEach(soon);
    works.delete(target);
  }
}, { rootMargin: `${SOON_PX}px` });

// ---- the cards ----

// Few places are few by themselves, and also beside how many there were.
function isScarce({ available, capacity, blocked }) {
  const sold = capacity - blocked;
  return available <= Math.max(FEW, FEW_PART * sold) && available < sold / 2;
}

function stateOf(event) {
  const { available, sales_open_at: opensAt } = event;
  if (isBefore(event, Date.now())) return element('span', {}, t('opensAt', { time: timeOf(event, opensAt) }));
  if (available === 0) return element('strong', {}, t('soldOut'));
  if (isScarce(event)) return element('strong', { className: 'event-few' }, t('fewLeft', { n: available }));
  return element('span', {}, t('seatsLeft', { n: available }));
}

// The picture says nothing that the text does not.
function pictureOf(event, work) {
  const picture = element('div', { className: 'event-picture', 'aria-hidden': 'true' });
  const drawn = () => showHall(event, picture);
  if (!event.image) {
    work.push(drawn);
    return picture;
  }
  const image = element('img', { alt: '', loading: 'lazy', decoding: 'async', src: event.image });
  image.addEventListener('error', () => {
    image.remove();
    soon(drawn);
  });
  picture.append(image);
  return picture;
}

function card(event) {
  const work = [];
  const address = `/e/${encodeURIComponent(event.id)}${wanted ? `?lang=${encodeURIComponent(wanted)}` : ''}`;
  const facts = element('p', { className: 'event-facts' }, stateOf(event));
  if (event.available > 0) {
    const price = element('span', { className: 'event-price' });
    facts.append(price);
    work.push(() => showPrice(event, price));
  }
  const item = element('li', { className: event.available > 0 ? 'event-card' : 'event-card event-gone' },
    pictureOf(event, work),
    element('div', { className: 'event-text' },
      element('h2', {}, element('a', { href: address }, event.name)),
      ...(event.starts_at ? [element('p', { className: 'event-when' }, element('time', { dateTime: event.starts_at }, timeOf(event, event.starts_at)))] : []),
      ...(event.venue ? [element('p', { className: 'soft' }, event.venue)] : []),
      facts));
  works.set(item, work);
  return item;
}

// ---- the list ----

async function load() {
  byId('more').hidden = true;
  byId('state').textContent = t('loading');
  try {
    const { json } = await insist('', 'GET', `/v1/events?upcoming=true&limit=${PAGE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { attempts: 3 });
    const cards = json.data.filter((event) => !isOver(event, Date.now())).map(card);
    shown += cards.length;
    cursor = json.next_cursor;
    byId('events').append(...cards);
    byId('more').textContent = t('showMore');
    byId('more').hidden = !json.has_more;
    cards.forEach((each) => watcher.observe(each));
    if (cards.length === 0 && json.has_more) return load();
    byId('state').textContent = shown > 0 ? t(json.has_more ? 'eventsFirst' : 'eventsShown', { n: shown }) : t('noEvents');
  } catch (error) {
    byId('state').textContent = t('listFailed', { reason: error instanceof Unreachable ? t('unreachable') : t('busy') });
    byId('more').textContent = t('tryAgain');
    byId('more').hidden = false;
  }
  return undefined;
}

document.documentElement.lang = lang;
document.title = withBrand(t('events'));
translate(t);
byId('more').addEventListener('click', load);
load();
