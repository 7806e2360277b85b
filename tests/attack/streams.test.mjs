// Crowds of streams: readers that ask for the past again and again, and one address with as many as it can get.
// Readers that take nothing are in tests/unit/test_http_crowds.c, where a clock of its own makes them pin enough.
// backends: own

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { reap, Server, sleep, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const ADMIN = 'admin-key-0123456789abcdef';
const asAdmin = { Authorization: `Bearer ${ADMIN}` };

async function launch(options = {}) {
  const server = new Server(options);
  await server.launch();
  return server;
}

describe('crowds of streams', () => {
  after(reap);

  it('of one address have a share; clients with a key have none', async () => {
    const server = await launch({ args: ['--address-streams-max', '3', '--trusted-proxy', '127.0.0.1'], env: { HOLDFAST_ADMIN_KEY: ADMIN } });
    const event = await server.createEvent({}, asAdmin);
    const as = (client, headers = {}) => Stream.open(server, event, { headers: { 'X-Forwarded-For': client, ...headers } });
    const own = await Promise.all([1, 2, 3].map(() => as('198.51.100.1')));
    const refused = await as('198.51.100.1');
    await refused.closed;
    assertProblem({ status: refused.status, headers: refused.headers, text: refused.text, json: refused.json }, 429, 'too_many_streams');
    assert.ok(Number(refused.headers['retry-after']) > 0);
    const others = await Promise.all([as('198.51.100.2'), as('198.51.100.1', asAdmin), Stream.open(server, event)]);
    for (const { status } of [...own, ...others]) assert.equal(status, 200);
    own.pop().close();
    const again = await until('its place is free', async () => {
      const stream = await as('198.51.100.1');
      return stream.status === 200 ? stream : null;
    });
    for (const stream of [...own, ...others, again]) stream.close();
    await server.stop();
  });

  it('that ask for the past again and again are reset, and readers who lost their connection are not', async () => {
    const server = await launch({ env: { HOLDFAST_ADMIN_KEY: ADMIN }, args: ['--trusted-proxy', '127.0.0.1'] });
    const event = await server.createEvent({ sections: [{ name: 'S', price: 1, rows: 1, seats_per_row: 200 }] }, asAdmin);
    for (let i = 1; i <= 100; i++) assertOk(await server.post(`/v1/events/${event.id}/block`, { seats: [`S-A-${i}`] }, asAdmin));
    const { seq } = assertOk(await server.get(`/v1/events/${event.id}/seats`));
    const firstOf = async (client, after) => {
      const stream = await Stream.open(server, event, { after, headers: { 'X-Forwarded-For': client } });
      const message = await stream.find();
      stream.close();
      return message.event;
    };
    const kinds = { seats: 0, reset: 0 };
    for (let i = 0; i < 90 || (kinds.reset === 0 && i < 900); i++) { // on a slow machine the pace allows more
      kinds[await firstOf('198.51.100.1', seq - 1 - i % 90)]++;
      await sleep(5);
    }
    assert.ok(kinds.seats >= 60 && kinds.reset > 0, JSON.stringify(kinds));
    assert.equal(await firstOf('198.51.100.2', seq - 50), 'seats');
    await server.stop();
  });
});
