// The map of the buyer's page.  It loads while the rest of the page is still on its way, and what it shows while its own modules
// are, which matters on a slow telephone.

import { askAhead } from '../seats/stream.js';
import { language } from '../texts.js';

function eventOf(path) {
  try { return decodeURIComponent(path.split('/')[2] ?? ''); } catch { return ''; }
}

export const lang = language(new URLSearchParams(location.search).get('lang') ?? undefined);
export const eventId = eventOf(location.pathname);

askAhead('', eventId);
await import('../seats/element.js');

export const map = document.createElement('holdfast-seats');
map.setAttribute('event', eventId);
map.setAttribute('lang', lang);
map.setAttribute('fit', 'cover');
document.getElementById('stage').prepend(map);
