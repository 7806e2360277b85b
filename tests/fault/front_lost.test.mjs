// The ledger vanishes while buyers wait, or the server does, behind HAProxy and nginx as they are shipped: everybody
// gets an answer that a program can read.
// backends: own

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, afterEach, before, describe, it } from 'node:test';
import { assertProblem } from '../support/expect.mjs';
import { startFront } from '../support/front.mjs';
import { becomes, startBackends } from '../support/scale.mjs';
import { sleep, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const BUYERS = 48;

describe('everything lost, behind a proxy', () => {
  let backends, fronts = [];
  before(async () => { backends = await startBackends(); });
  afterEach(async () => {
    for (const front of fronts.splice(0)) await front.stop();
    await backends?.sweep();
  });
  after(() => backends?.close());

  it('buyers in flight when the ledger vanishes get a truthful answer, not a reset', async (t) => {
    const site = await backends.pair({ n: 3, through: 3 });
    const { servers } = site;
    const event = await servers[0].createEvent({ sections: [], areas: [{ name: 'Floor', price: 1, capacity: 1_000_000 }] });
    const front = await startFront('haproxy', servers);
    fronts.push(front);
    const agent = new http.Agent({ keepAlive: true, maxSockets: BUYERS });
    const counts = { granted: 0, ledger_unavailable: 0, outcome_unknown: 0 };
    let isLost = false;
    // Each buys until it is refused because the ledger is lost; before, a machine that stood still is why, and the buyer tries again.
    const buyers = Promise.all(Array.from({ length: BUYERS }, async () => {
      for (;;) {
        const answer = await front.request('POST', '/v1/holds', { event: event.id, areas: { Floor: 1 } }, {}, { agent });
        if (answer.status === 201) {
          counts.granted++;
          continue;
        }
        assert.ok(answer.json.code in counts, answer.text);
        assertProblem(answer, 503, answer.json.code);
        counts[answer.json.code]++;
        if (isLost) return;
        await sleep(answer.json.retry_after_ms ?? 100);
      }
    }));
    buyers.catch(() => {}); // told when they are awaited
    await until('they buy', () => counts.granted > 2 * BUYERS);
    isLost = true;
    site.ledgerLink.blackhole();
    await becomes(servers, 503);
    await buyers;
    agent.destroy();
    t.diagnostic(JSON.stringify(counts));
    site.ledgerLink.restore();
    await becomes(servers, 200);
    const [{ held }] = site.sql(`SELECT count(*) AS held FROM holds WHERE event = (SELECT max(event) FROM events)`);
    assert.ok(held >= counts.granted && held <= counts.granted + counts.outcome_unknown, `${held} holds`);
    await site.done();
  });

  it('no server at all: writers get a problem document, too, and browsers a time to come back', async () => {
    const { event, one } = await backends.pair({ n: 1 });
    fronts = await Promise.all(['haproxy', 'nginx'].map((kind) => startFront(kind, [one])));
    await one.kill9();
    const wanted = { haproxy: 'unavailable', nginx: 'outcome_unknown' };
    // HAProxy may still have a kept connection to the dead server.  It does not answer a request that meets it, but closes the
    // client's connection, and the client asks again.
    const ask = (request) => request().catch((error) => {
      if (error.code !== 'ECONNRESET') throw error;
      return request();
    });
    const deadline = Date.now() + 1500;
    do { // before and after the proxies have noticed
      for (const [i, code] of Object.values(wanted).entries()) {
        const refused = await ask(() => fronts[i].hold(event, 'S-A-1'));
        assertProblem(refused, 503, code);
        assert.match(refused.headers['x-request-id'], /^req_[0-9A-Za-z]{18}$/);
        assert.equal(refused.headers['retry-after'], '1');
        assertProblem(await ask(() => fronts[i].get(`/v1/events/${event.id}/seats`)), 503, code);
        const stream = await Stream.open(fronts[i], event);
        assert.deepEqual([stream.status, stream.headers['content-type'], stream.headers['access-control-allow-origin']], [200, 'text/event-stream', '*']);
        assert.equal(await stream.closed, true);
        assert.match(stream.text, /^retry: [1-4]\d\d\d\n\n$/);
      }
    } while (Date.now() < deadline);
  });
});
