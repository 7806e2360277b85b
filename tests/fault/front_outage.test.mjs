// PostgreSQL is down, behind HAProxy and nginx as they are shipped: streams and maps go on, and writers get our
// problem documents instead of the proxy's own pages.
// backends: own

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { assertOk, assertProblem } from '../support/expect.mjs';
import { startFront } from '../support/front.mjs';
import { becomes, startBackends } from '../support/scale.mjs';
import { mapOf, sleep, until } from '../support/server.mjs';
import { Stream } from '../support/stream.mjs';

const SILENCE_MS = 15_000;
const BUSY_MS = 15_000; // by which a busy machine may be late; the proxies wait longer

describe('PostgreSQL down, behind a proxy', () => {
  let backends, fronts = [];
  before(async () => { backends = await startBackends(); });
  afterEach(async () => {
    for (const front of fronts.splice(0)) await front.stop();
    await backends?.sweep();
  });
  after(() => backends?.close());

  it('streams stay open and are kept alive, maps are served and stale, writers are told when to try again', async () => {
    const site = await backends.pair({ n: 3 });
    const { event, servers } = site;
    fronts = await Promise.all(['haproxy', 'nginx'].map((kind) => startFront(kind, servers)));
    const map = await servers[0].map(event);
    const streams = (await Promise.all(fronts.map((front) => Promise.all(servers.map(() => Stream.open(front, event)))))).flat();
    await backends.postgres.stop();
    const stopped = Date.now();
    await becomes(servers, 503);

    // For as long as the proxies need to notice, and after.
    for (const end = Date.now() + 2000; Date.now() < end; await sleep(50)) {
      for (const front of fronts) {
        const answer = await front.get(`/v1/events/${event.id}/seats`);
        assert.deepEqual(mapOf(assertOk(answer)), map);
        assert.equal(answer.headers['holdfast-stale'], 'true');
        const refused = await front.hold(event, 'S-A-2');
        assertProblem(refused, 503, 'ledger_unavailable');
        assert.equal(refused.headers['retry-after'], '1');
      }
    }
    const late = await Promise.all(fronts.map((front) => Stream.open(front, event)));
    for (const { status, headers } of late) assert.deepEqual([status, headers['holdfast-stale']], [200, 'true']);
    for (const stream of streams) {
      assert.ok(await stream.commented(1, SILENCE_MS + BUSY_MS - (Date.now() - stopped)), 'a comment keeps the stream alive');
      assert.ok(!stream.isClosed);
    }

    await backends.postgres.start();
    await becomes(servers, 200);
    for (const front of fronts) await until('a hold is granted', async () => (await front.hold(event, 'S-A-2')).status !== 503);
    for (const stream of [...streams, ...late]) {
      assert.ok(await stream.find(({ data }) => data.changes?.some(([seat]) => seat === 'S-A-2')), 'the stream goes on');
      stream.close();
    }
    await site.done();
  });
});
