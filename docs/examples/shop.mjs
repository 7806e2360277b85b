// The part of a shop's server that sells seats; Node, without a framework.
//
//   POST /orders        {"order": "...", "event": "evt_...", "seats": ["Stalls-A-1"]}: holds and books the seats, and
//                       answers what the card form needs; 409 if they are taken; 503: send the same again
//   GET /orders/ORDER   {"status": "confirmed"} once it is paid; believe nothing else
//
// The page draws the order's number, a UUID, which is a secret of this buyer.  An order that is sent twice is one order.
//
//   HOLDFAST_URL=http://127.0.0.1:8080 node shop.mjs 8000

import http from 'node:http';
import { Client, HoldfastError } from 'holdfast';

const { HOLDFAST_URL = 'http://127.0.0.1:8080', HOLDFAST_KEY } = process.env;
const client = new Client(HOLDFAST_URL, { key: HOLDFAST_KEY, timeout: 10 });
const BODY_MAX = 10_000;

async function place({ order, event, seats }) {
  const hold = await client.holds.create({ event, seats }, { idempotencyKey: `${order}-hold` });
  const booked = await client.bookings.create({ hold: hold.id, reference: order }, { idempotencyKey: `${order}-booking` });
  const { number, amount, payment } = await client.bookings.get(booked.id); // the answer to a repeat has no client_secret
  return [201, { number, amount, payment }];
}

async function look(order) {
  const { data: [booking] } = await client.bookings.list({ reference: order });
  return booking ? [200, { status: booking.status }] : [404, {}];
}

async function answer(request) {
  const [, orders, order, ...rest] = request.url.split('/');
  if (orders !== 'orders' || rest.length > 0) return [404, {}];
  if (request.method === 'GET' && order) return look(decodeURIComponent(order));
  if (request.method !== 'POST' || order) return [404, {}];
  let body = '';
  for await (const part of request.setEncoding('utf8')) if ((body += part).length > BODY_MAX) return [400, {}];
  return place(JSON.parse(body));
}

function refusal(error) {
  if (error instanceof SyntaxError || error instanceof TypeError || error instanceof URIError) return [400, {}];
  if (!(error instanceof HoldfastError)) {
    console.error(error);
    return [500, {}];
  }
  return [[400, 404, 409, 410, 422].includes(error.status) ? error.status : 503, { code: error.code, seats: error.extra.seats }];
}

const server = http.createServer(async (request, response) => {
  const [status, found] = await answer(request).catch(refusal);
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(found));
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log(`shop on http://127.0.0.1:${server.address().port}`));
