// What runs in browsers, too: everything but locks, fences and webhooks.

export { Client } from './client.js';
export { Conflict, Gone, HoldfastError, LockLost, NotFound, OutcomeUnknown, StaleFence, Unavailable } from './errors.js';
export { OPERATIONS } from './operations.js';
export { SeatMap } from './seat_map.js';
