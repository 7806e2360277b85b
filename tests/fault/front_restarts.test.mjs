// A rolling restart under load, behind proxies as they are shipped: no request fails.  Each server is restarted
// HF_RESTARTS times (1; `make soak`: 3).
// backends: own

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, afterEach, before, describe, it } from 'node:test';
import { startFront } from '../support/front.mjs';
import { startBackends } from '../support/scale.mjs';
import { newKey, sleep, until } from '../support/server.mjs';

const RESTARTS = Number(process.env.HF_RESTARTS ?? 1);
const REQUESTS_MIN = RESTARTS > 1 ? 20_000 : 2000;
const CONNECTIONS = 16;
const PAUSE_MS = RESTARTS > 1 ? 0 : 700; // of a buyer: ninety requests a second leave other tests their share of the machine
// The health checks of the test notice within 400 ms, and on a busy machine seconds later.  nginx, which has none, leaves
// a server that was restarted out for up to 4 s, so it takes part in long runs only.
const [KINDS, DRAIN_DELAY] = RESTARTS > 1 ? [['haproxy', 'nginx'], '4s'] : [['haproxy'], '6s'];

// Buyers on kept connections: each holds a place, looks at it and at the event, and gives the place back, again and
// again.  Few look at the map, since a map that has changed is drawn five times a second.  `tally` counts the answers
// by method and status.
async function load(front, event, tally, isOver) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const ask = async (method, target, body, headers) => {
    const answer = await front.request(method, target, body, headers, { agent })
      .catch((error) => ({ status: error.code ?? error.message, text: `${error.message}` }));
    const what = [method, answer.status, answer.json?.code, answer.json?.detail].filter(Boolean).join(' ');
    tally[what] = (tally[what] ?? 0) + 1;
    return answer;
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, async (_, i) => {
    while (!isOver()) {
      const { json: hold } = await ask('POST', '/v1/holds', { event: event.id, areas: { Floor: 1 } }, { 'Idempotency-Key': newKey() });
      if (hold?.object !== 'hold') continue;
      await ask('GET', `/v1/holds/${hold.id}`);
      if (i === 0) await ask('GET', `/v1/events/${event.id}/seats`);
      await ask('GET', `/v1/events/${event.id}`);
      await ask('DELETE', `/v1/holds/${hold.id}`);
      if (PAUSE_MS) await sleep(PAUSE_MS);
    }
  }));
  agent.destroy();
}

describe('a rolling restart under load', () => {
  let backends, fronts = [];
  before(async () => { backends = await startBackends(); });
  afterEach(async () => {
    for (const front of fronts) await front.stop();
    await backends?.sweep();
  });
  after(() => backends?.close());

  it(`costs nobody an error, behind ${KINDS.join(' and ')}`, async (t) => {
    const site = await backends.pair({ n: 3, args: ['--drain-delay', DRAIN_DELAY], through: 0, fixedPorts: true });
    const { servers } = site;
    const event = await servers[0].createEvent({ areas: [{ name: 'Floor', price: 1, capacity: 1_000_000 }] });
    fronts = await Promise.all(KINDS.map((kind) => startFront(kind, servers)));
    const tallies = fronts.map(() => ({}));
    const total = (tally) => Object.values(tally).reduce((sum, n) => sum + n, 0);
    let restarted = false;
    const buying = Promise.all(fronts.map((front, i) => load(front, event, tallies[i], () => restarted && total(tallies[i]) >= REQUESTS_MIN)));
    for (let round = 0; round < RESTARTS; round++) {
      for (const server of servers) {
        await server.restart();
        await until('it is ready', async () => (await server.get('/readyz')).status === 200);
      }
    }
    restarted = true;
    await buying;
    for (const [i, tally] of tallies.entries()) {
      t.diagnostic(`${fronts[i].kind.file}: ${total(tally)} requests: ${JSON.stringify(tally)}`);
      assert.deepEqual(Object.keys(tally).sort(), ['DELETE 204', 'GET 200', 'POST 201']);
    }
    await site.done();
  });
});
