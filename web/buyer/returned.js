// Back from the page of a bank.  The address then carries the payment's client secret: it is taken out at once, before
// anything else runs, so that it stays neither in the history nor in a bookmark.

const query = new URLSearchParams(location.search);
const isReturn = query.has('payment_intent') || query.has('payment_intent_client_secret') || query.has('redirect_status');

// The query of this page that stays: the language.
export const keptQuery = query.has('lang') ? `?lang=${encodeURIComponent(query.get('lang'))}` : '';

// What the bank's page says: 'succeeded', 'failed', another word, or null if the buyer does not come from there.
export const redirectStatus = isReturn ? query.get('redirect_status') ?? 'unknown' : null;

// The booking that the address leads to, if it is the link to one.
export const linkedBooking = /^#booking=(bkg_\w+)$/.exec(location.hash)?.[1] ?? null;

if (isReturn) history.replaceState(history.state, '', location.pathname + keptQuery);
