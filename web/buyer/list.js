// The list of events on sale, in the order of dates: what, where, when, from which price, and how many places are left.

import { call, insist, Unreachable } from '../lib/api.js';
import { money } from '../lib/format.js';
import { venueText, venueZone } from '../lib/venue_time.js';
import { language, words } from '../texts.js';
import { byId, element, translate } from './dom.js';
import { isBefore, isOver } from './sale.js';

const PAGE = 24;
const AT_A_TIME = 4; // requests for prices

const wanted = new URLSearchParams(location.search).get('lang');
const lang = language(wanted ?? undefined);
const t = words('buyer', lang);
let cursor = null;
let shown = 0;

const timeOf = (event, at) => venueText(t, at, venueZone(event), lang);

function stateOf(event) {
  const { available, sales_open_at: opensAt } = event;
  if (isBefore(event, Date.now())) return t('opensAt', { time: timeOf(event, opensAt) });
  return available > 0 ? t('seatsLeft', { n: available }) : t('soldOut');
}

function card(event) {
  const price = element('span', { className: 'event-price' });
  const where = [event.venue, event.starts_at && timeOf(event, event.starts_at)].filter(Boolean).join(' · ');
  const link = element('a', { href: `/e/${encodeURIComponent(event.id)}${wanted ? `?lang=${encodeURIComponent(wanted)}` : ''}` },
    element('span', { className: 'event-name' }, event.name),
    ...(where ? [element('span', { className: 'soft' }, where)] : []),
    element('span', { className: 'event-facts' }, element('span', {}, stateOf(event)), price));
  return { item: element('li', {}, link), event, price };
}

// The list has no layouts, and so no prices: they are asked for, a few at a time.  A price that cannot be had is left out.
async function showPrices(cards) {
  const queue = [...cards];
  const lane = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { json } = await call('', 'GET', `/v1/events/${encodeURIComponent(next.event.id)}`).catch(() => ({}));
      const prices = [json?.sections, json?.areas, json?.categories].flatMap((list) => list ?? []).map(({ price }) => price)
        .concat(Object.values(json?.prices ?? {})).filter(Number.isInteger);
      if (prices.length === 0) continue;
      const least = Math.min(...prices);
      next.price.textContent = least > 0 ? t('from', { price: money(least, json.currency, lang) }) : t('free');
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, lane));
}

async function load() {
  byId('more').hidden = true;
  byId('state').textContent = t('loading');
  try {
    const { json } = await insist('', 'GET', `/v1/events?upcoming=true&limit=${PAGE}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { attempts: 3 });
    const cards = json.data.filter((event) => !isOver(event, Date.now())).map(card);
    shown += cards.length;
    cursor = json.next_cursor;
    byId('events').append(...cards.map(({ item }) => item));
    byId('more').textContent = t('showMore');
    byId('more').hidden = !json.has_more;
    showPrices(cards);
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
document.title = t('events');
translate(t);
byId('more').addEventListener('click', load);
load();
