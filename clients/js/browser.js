// What runs in browsers, too: everything but locks, fences and webhooks.

export { Client } from './client.js';
export * from './errors.js';
export { OPERATIONS } from './operations.js';
export { SeatMap } from './seat_map.js';
