// `holdfast verify` of what a shop does in a day: every kind of change, many at once, paid and unpaid, and then retention.
// The second audit, of tests/support/ledger.mjs, is made by other code and must agree.
// backends: sqlite cluster

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CARD, openShop } from '../support/checkout.mjs';
import { assertOk } from '../support/expect.mjs';
import { assertVerified, assertVerifiedSoon, checkLedger } from '../support/ledger.mjs';
import { seed, seededRandom } from '../support/random.mjs';
import { backend, newKey, reap, sleep, until } from '../support/server.mjs';

const SHOPS = 6, STEPS = 150;
const CHANNELS = ['house', 'press', 'agency'];
const SEATS = ['A', 'B', 'C'].flatMap((row) => Array.from({ length: 20 }, (_, n) => `S-${row}-${n + 1}`)).concat(['T-A-1', 'T-A-2', 'T-A-3']);

describe('the ledger of a shop', () => {
  let till, server, event; // the till is where buyers pay
  const random = seededRandom();
  const { below, oneOf } = random;
  const done = new Map(); // kind -> how often it succeeded
  const holds = [], bookings = [], unpaid = [], entries = [];

  before(async () => {
    till = await openShop({ args: ['--keep', '1s', '--keep-holds', '500ms'] });
    ({ server } = till);
  });
  after(async () => { try { await till?.close(); } finally { await reap(); } });

  const ledger = () => server.place?.ledger ?? server.ledger.replace(/^sqlite:.*/, server.dir);
  const check = () => { checkLedger(ledger()); return assertVerifiedSoon(ledger(), server.gate); };
  const sample = () => [...new Set(random.sample(SEATS, 1 + below(3)))];
  const areas = () => ({ [oneOf(['Floor', 'Roof'])]: 1 + below(2) });
  // Seats, areas or both.
  const places = () => oneOf([{ seats: sample() }, { seats: sample() }, { areas: areas() }, { seats: sample(), areas: areas() }]);
  const channel = () => (below(3) === 0 ? { channel: oneOf(CHANNELS) } : {});
  const take = (list) => list.splice(below(list.length), 1)[0];

  const act = (action, body) => server.post(`/v1/events/${event.id}/${action}`, body);
  const join = (wish) => server.post('/v1/waitlist', { event: event.id, ...wish, ...(below(2) ? { until: new Date(Date.now() + 2000).toISOString() } : {}) });
  const bookAll = (named) => server.post('/v1/bookings', { holds: named.map(({ id }) => id) }, { 'Idempotency-Key': newKey() });
  const steps = {
    block: () => act('block', { ...oneOf([places(), places(), places(), { sections: ['T'] }]), ...channel() }),
    unblock: () => act('unblock', { ...oneOf([{ seats: [oneOf(SEATS)] }, { areas: areas() }]), ...channel() }),
    hold: async () => {
      const answer = await server.ask(event, { ...places(), ...channel(), ttl_ms: oneOf([1000, 60_000]), owner: oneOf(['Ann', 'Bob']) });
      if (answer.status === 201) holds.push(answer.json);
      return answer;
    },
    best: () => server.ask(event, { best_available: { quantity: 2 }, ttl_ms: 1000 }),
    change: async () => {
      const hold = take(holds);
      if (!hold) return {};
      const answer = await server.patch(`/v1/holds/${hold.id}`, {
        fence: hold.fence, ...(below(3) ? { add: oneOf([{ seats: [oneOf(SEATS)] }, { seats: sample(), areas: areas() }, { areas: areas() }]) } : {}),
        ...(below(2) ? { remove: oneOf([{ seats: hold.seats.slice(0, 1 + below(2)) }, { areas: hold.areas }]) } : {}),
      });
      holds.push(answer.status === 200 ? answer.json : hold);
      return answer;
    },
    renew: () => (holds.length ? server.post(`/v1/holds/${oneOf(holds).id}/renew`, {}) : {}),
    release: () => (holds.length ? server.del(`/v1/holds/${take(holds).id}`) : {}),
    confirm: async () => {
      const hold = take(holds);
      if (!hold) return {};
      const answer = await server.post(`/v1/holds/${hold.id}/confirm`, { fence: hold.fence, rescue: true });
      if (answer.status === 201) bookings.push(answer.json);
      return answer;
    },
    book: async () => {
      const hold = take(holds);
      if (!hold) return {};
      const answer = await till.book(hold, { email: 'ann@shop.example' });
      if (answer.status === 201 && answer.json.payment) unpaid.push(answer.json);
      if (answer.status !== 201 || below(2)) holds.push(hold); // to be released, or renewed
      return answer;
    },
    bookAll: async () => { // of one owner; those of one channel go together
      const { owner } = holds.length ? oneOf(holds) : {};
      const named = [...new Set(random.sample(holds.filter((hold) => hold.owner === owner), 2 + below(2)))];
      if (named.length < 2) return {};
      for (const hold of named) holds.splice(holds.indexOf(hold), 1);
      const answer = await bookAll(named);
      if (answer.status === 201 && answer.json.payment) unpaid.push(answer.json);
      if (answer.status !== 201 || below(2)) holds.push(...named);
      return answer;
    },
    pay: async () => {
      const booking = take(unpaid);
      if (!booking?.payment.client_secret) return {};
      const answer = await till.pay(booking, oneOf([CARD.good, CARD.good, CARD.declined]));
      if (answer.status === 200) bookings.push(booking);
      return answer.status < 300 ? answer : {}; // declined, or canceled meanwhile
    },
    refund: () => (bookings.length ? server.post(`/v1/bookings/${oneOf(bookings).id}/refund`, { amount: 1 + below(100) }) : {}),
    cancel: () => (bookings.length > 3 ? server.post(`/v1/bookings/${take(bookings).id}/cancel`, {}) : {}),
    wait: async () => {
      const answer = await join(oneOf([{ areas: areas() }, { areas: { Roof: 4 } }, { best_available: { quantity: 1 + below(3), section: 'T' } }]));
      if (answer.status === 201) entries.push(answer.json);
      return answer;
    },
    offer: async () => { // of an entry, to be sold
      const [entry] = (await server.read(`/v1/waitlist?event=${event.id}&status=offered&limit=1`)).data;
      if (!entry) return {};
      const answer = await server.get(`/v1/holds/${entry.hold}`);
      if (answer.status === 200) holds.push(answer.json);
      return answer;
    },
    leave: () => (entries.length ? server.del(`/v1/waitlist/${take(entries).id}`) : {}),
    first: () => (entries.length ? server.post(`/v1/waitlist/${oneOf(entries).id}/first`) : {}),
    pause: async () => (below(5) ? {} : (await act('waitlist/pause'), act('waitlist/resume'))),
    terms: () => server.patch(`/v1/events/${event.id}`, { name: `Day ${below(100)}`, prices: { S: below(5000), Floor: below(500) } }),
    close: async () => (below(5) ? {} : (await act('close', {}), act('open', {}))),
  };
  const often = ['hold', 'hold', 'hold', 'hold', 'book', 'book', 'bookAll', 'bookAll', 'bookAll', 'pay', 'pay', 'change', 'change', 'confirm', 'release', 'unblock', 'unblock', ...Object.keys(steps)];

  // Each kind of change once, whatever the random ones come to.
  async function begin() {
    assertOk(await act('block', { seats: ['S-A-1', 'S-A-2', 'S-A-3', 'S-A-9'], areas: { Floor: 3 }, channel: 'house' }));
    assertOk(await act('block', { seats: ['S-A-3'], channel: 'press' }));
    assertOk(await act('unblock', { seats: ['S-A-3'], areas: {} }));
    const [sold, changed, released] = await Promise.all([['S-A-1', 'S-A-4'], ['S-A-2', 'S-A-5', 'S-A-9'], ['S-A-6']].map((seats) =>
      server.take(event, { seats, areas: { Floor: 1 }, channel: 'house' })));
    const { id } = assertOk(await server.post(`/v1/holds/${sold.id}/confirm`, { fence: sold.fence }), 201);
    assertOk(await server.post(`/v1/bookings/${id}/cancel`, {}));
    assertOk(await server.patch(`/v1/events/${event.id}`, { prices: { S: 1100 } }));
    holds.push(assertOk(await server.patch(`/v1/holds/${changed.id}`, { fence: changed.fence, add: { seats: ['S-A-7'] }, remove: { seats: ['S-A-5', 'S-A-9'] } })));
    const kept = await server.take(event, { seats: ['S-A-8'] });
    assertOk(await server.post(`/v1/holds/${kept.id}/confirm`, { fence: kept.fence }), 201);
    assert.equal((await server.del(`/v1/holds/${released.id}`)).status, 204);
    const paid = await till.sell(event, 'S-C-1');
    assertOk(await server.post(`/v1/bookings/${paid.id}/refund`, { amount: 100 }));
    assertOk(await server.post(`/v1/bookings/${(await till.sell(event, 'S-C-2')).id}/cancel`, {}));
    unpaid.push((await till.checkout(event, 'S-C-3')).booking);
    await till.pay(assertOk(await bookAll(await Promise.all(['S-C-4', 'S-C-5', 'S-C-6'].map((seat) => server.grant(event, seat)))), 201));
    const roof = await server.take(event, { areas: { Roof: 8 } });
    const entry = assertOk(await join({ areas: { Roof: 2 } }), 201);
    assert.equal((await server.del(`/v1/holds/${roof.id}`)).status, 204);
    holds.push(await server.read(`/v1/holds/${(await server.read(`/v1/waitlist/${entry.id}`)).hold}`));
    assertOk(await act('close', {}));
    assertOk(await act('open', {}));
  }

  async function shop() {
    for (let n = 0; n < STEPS; n++) {
      const kind = oneOf(often);
      const { status, text } = await steps[kind]();
      assert.ok(!(status >= 500 || (status === 400 && !['change', 'book', 'bookAll'].includes(kind))), `${kind}: ${text}`);
      if (status < 300) done.set(kind, (done.get(kind) ?? 0) + 1);
      if (kind === 'terms') await sleep(20); // so that some holds expire meanwhile
    }
  }

  it('verifies after every kind of change', async (t) => {
    t.diagnostic(`HF_SEED=${seed}`);
    event = await server.createEvent({
      sections: [{ name: 'S', price: 1000, rows: 3, seats_per_row: 20 }, { name: 'T', price: 700, rows: 1, seats_per_row: 3 }],
      areas: [{ name: 'Floor', price: 300, capacity: 40 }, { name: 'Roof', price: 50, capacity: 8 }],
      waitlist: { offer_ttl_ms: 1000 },
    });
    await begin();
    await check();
    await Promise.all(Array.from({ length: SHOPS }, shop));
    t.diagnostic(JSON.stringify(Object.fromEntries(done)));
    const { checks } = await check();
    // What ends is pruned meanwhile, entries of the waiting list among it.
    assert.ok(checks.every(({ rows, what }) => rows > 0 || /stored heads|has its job|entr(y|ies)|waiting list/.test(what) || (!server.gate && /gate/.test(what)) || (backend !== 'sqlite' && /SQLite/.test(what))), JSON.stringify(checks.filter(({ rows }) => !rows)));
  });

  it('verifies after the event was archived, while its log is pruned, and when a sale of it is cancelled afterwards', async () => {
    await until('a hold can be sold', async () => bookings.length > 3 || (await steps.hold(), await steps.confirm(), false));
    assertOk(await act('archive', {}));
    await check();
    for (const { id } of holds) await server.del(`/v1/holds/${id}`);
    const pending = (await server.read(`/v1/bookings?event=${event.id}&status=pending&limit=100`)).data;
    for (const { id } of pending) assertOk(await server.post(`/v1/bookings/${id}/cancel`, {}));
    await until('the log is gone', async () => {
      assertVerified(ledger());
      return (await server.read(`/v1/audit?event=${event.id}`)).data.length === 0;
    }, 25_000); // less than a job is leased for
    assertVerified(ledger());
    assertOk(await server.post(`/v1/bookings/${bookings[0].id}/cancel`, {}));
    assertVerified(ledger());
  });
});
