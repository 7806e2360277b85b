// backends: own
// time limit: 400 s
//
// Claims about histories of the lock service: on one server over SQLite, and on three over PostgreSQL and over a
// three-node etcd.  Servers, clients and nodes of the journal are killed and stopped, and connections between all of
// them are cut, delayed and swallowed, while workers take and hold locks (worker.c).  The checker (check.mjs) finds no two holders
// at a time, no fence that did not grow and no grant that was lost before its deadline; and after the last fault the
// locks are granted again within the cell's timeout, the journal's election and the TTL.
//
// HF_HISTORY_S is the length of one history at most (18), HF_HISTORY_SEED repeats the order of faults.

import assert from 'node:assert/strict';
import { after, describe as group, test } from 'node:test';
import { startCell } from '../support/cell.mjs';
import { assertTook, reap } from '../support/server.mjs';
import { smallDisk } from '../support/disk.mjs';
import { describe } from './check.mjs';
import { counted, part, SEED } from './run.mjs';

const SECONDS = Number(process.env.HF_HISTORY_S || 18);
const TTL_MS = 1500;
const QUIET_S = 10; // without faults at the end, at most, so that progress can be seen
const SETTLE_S = 3; // and at least, two TTLs, so that what a fault has left would still be seen
const PROGRESS_MS = 1000 + 3000 + TTL_MS + 3000; // cell timeout, election of the journal, TTL, other histories on this machine

after(reap);

const anyOf = (list, random) => list[random(list.length)];

// What can happen to the servers of a cell and to the connections of their clients.
function serverFaults(cell) {
  const { servers } = cell;
  const live = () => servers.filter(({ run }) => !run.ended);
  const leader = async () => await cell.leader() ?? anyOf(live(), () => 0);
  const other = async (random) => { const first = await leader(); return anyOf(live().filter((server) => server !== first), random); };
  return {
    'kill the master': async (rest) => { const server = await leader(); await server.kill9(); await rest(); await server.launch(); },
    'pause the master': async (rest) => { const server = await leader(); server.pause(); await rest(); server.resume(); },
    'stop a server cleanly': async (rest, random) => {
      const server = anyOf(live(), random);
      await server.stop({ keep: true });
      await rest();
      await server.launch();
    },
    'cut connections of clients': async (rest, random) => { const { proxy } = anyOf(servers, random); proxy.cut(); await rest(); proxy.restore(); },
    'swallow messages of clients': async (rest, random) => { const { proxy } = anyOf(servers, random); proxy.blackhole(); await rest(); proxy.restore(); },
    'delay messages of clients': async (rest, random) => { const { proxy } = anyOf(servers, random); proxy.delay(100); await rest(); proxy.delay(0); },
    'kill all servers': async () => {
      await Promise.all(live().map((server) => server.kill9()));
      await Promise.all(servers.map((server) => server.launch()));
    },
    ...(servers.length > 1 ? {
      'pause a standby': async (rest, random) => { const server = await other(random); server.pause(); await rest(); server.resume(); },
      'hand over': async () => { await (await leader()).post('/v1/cell/transfer', {}).catch(() => {}); },
      'restart one after the other': async () => {
        for (const server of servers) { await server.stop({ keep: true }); await server.launch(); }
      },
    } : {}),
  };
}

// What can happen between the servers and their journal, and to its nodes.
function journalFaults(cell) {
  const { servers, journal } = cell;
  const each = (list, work) => { for (const item of list) work(item); };
  const leader = async () => await cell.leader() ?? servers[0];
  return {
    'cut the master off its journal': async (rest) => { const { links } = await leader(); each(links, (l) => l.cut()); await rest(); each(links, (l) => l.restore()); },
    'swallow messages to the journal': async (rest) => { const { links } = await leader(); each(links, (l) => l.blackhole()); await rest(); each(links, (l) => l.restore()); },
    'delay messages to the journal': async (rest) => { const { links } = await leader(); each(links, (l) => l.delay(150)); await rest(); each(links, (l) => l.delay(0)); },
    'kill a node of the journal': async (rest, random) => {
      const node = anyOf(journal.nodes, random);
      if (node.crash) await node.crash(); else await node.stop();
      await rest();
      await node.start();
    },
    ...(journal.nodes[0].pause && cell.kind === 'etcd' ? {
      'pause a node of the journal': async (rest, random) => { const node = anyOf(journal.nodes, random); node.pause(); await rest(); node.resume(); },
    } : {}),
  };
}

// Histories, one after the other, until one shows that locks are granted again: on a busy machine nobody may get as far in one.
async function assertHistory(t, kind, settings, cell, faults, seconds) {
  for (let rounds = 1; ; rounds++) {
    const kept = await part({ ttlMs: TTL_MS, ...settings }, cell.url, faults, seconds, { quietS: QUIET_S, settleS: SETTLE_S });
    t.diagnostic(counted(kept));
    assert.deepEqual(kept.overlaps.map(describe), [], `${kind}: two holders at once; ${counted(kept)}`);
    assert.deepEqual(kept.fenceErrors.map(describe), [], `${kind}: fences; ${counted(kept)}`);
    assert.deepEqual(kept.losses, [], `${kind}: grants that were lost before their deadlines; ${counted(kept)}`);
    const names = [...new Set(kept.grants.map(({ name }) => name))];
    const nexts = names.map((of) => kept.grants.filter(({ name, start }) => name === of && start > kept.lastFaultUs).map(({ start }) => start));
    if (kept.grants.length > 20 && nexts.every((starts) => starts.length > 0)) {
      for (const starts of nexts) assertTook((Math.min(...starts) - kept.lastFaultUs) / 1000, PROGRESS_MS, `${kind}: the first grant after the last fault`);
      return;
    }
    assert.ok(rounds < 5, `${kind}: no progress in ${counted(kept)}; granted after the last fault: ${nexts.map(({ length }) => length)}`);
  }
}

group('a history of a cell', { concurrency: 3 }, () => {
  const faults = {
    sqlite: (cell) => serverFaults(cell),
    postgres: (cell) => ({ ...serverFaults(cell), ...journalFaults(cell) }),
    etcd: (cell) => ({ ...serverFaults(cell), ...journalFaults(cell) }),
  };
  for (const kind of Object.keys(faults)) {
    test(`on ${kind}: no two holders at a time, fences that grow, no grant lost, and progress`, async (t) => {
      const cell = await startCell(kind);
      t.after(() => cell.close());
      await cell.master();
      t.diagnostic(`HF_HISTORY_SEED=${SEED}`);
      await assertHistory(t, kind, {}, cell, faults[kind](cell), SECONDS);
    });
  }
});

test('a full disk under the journal stops grants and loses none, and they go on when there is room', async (t) => {
  const disk = await smallDisk();
  const cell = await startCell('sqlite', { dir: disk.dir, wrap: disk.wrap });
  t.after(async () => { await cell.close(); await disk.close(); });
  await cell.master();
  const [server] = cell.servers;
  const faults = { 'fill the disk': async (rest) => { await disk.fill(server); await rest(); await disk.free(server); } };
  await assertHistory(t, 'full disk', { processes: 2 }, cell, faults, 18);
});
