// When an event is sold, by its terms.

// When sales close, in milliseconds: at the start, unless the event says otherwise; NaN: never.
const endOf = ({ sales_close_at: closes, starts_at: starts }) => Date.parse(closes ?? starts);

export const isBefore = ({ sales_open_at: opens }, now) => Date.parse(opens) > now;
export const isOver = (event, now) => endOf(event) <= now;
export const isOnSale = (event, now) => event.status === 'open' && !isBefore(event, now) && !isOver(event, now);
