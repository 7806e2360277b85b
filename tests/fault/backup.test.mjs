// Backups taken under load, as docs/operations.md describes, are complete and consistent.
// backends: sqlite

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, it } from 'node:test';
import { HOLDFAST, launch, reap, removeTempDir, start, tempDir, until } from '../support/server.mjs';

const buyers = 4;
const seatsOfEach = 40;
const heldBefore = 10;

async function run(command, args) {
  const process_ = launch(command, args, { env: { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' } });
  const timer = setTimeout(() => process_.child.kill('SIGKILL'), 60_000);
  const { code } = await process_.done;
  clearTimeout(timer);
  assert.equal(code, 0, `${command} ${args.join(' ')}: ${code}\n${process_.stdout}${process_.stderr}`);
}

// Each buyer holds seats of its own, buys some, releases the others, and starts again with those.
async function buy(server, event, row, busy) {
  for (let n = 1; busy.going && n <= seatsOfEach * 50; n++) {
    const seat = `S-${row}-${1 + (n % seatsOfEach)}`;
    const { status, json } = await server.hold(event, seat);
    if (status !== 201) continue;
    if (n % 3 === 0) await server.post(`/v1/holds/${json.id}/confirm`, { fence: json.fence });
    else await server.del(`/v1/holds/${json.id}`);
    busy.changes += 2;
  }
}

describe('a backup taken under load', () => {
  after(reap);

  const ways = {
    'VACUUM INTO': (from, to) => run('sqlite3', [from, `VACUUM INTO '${to}'`]),
    '.backup': (from, to) => run('sqlite3', [from, '.timeout 10000', `.backup '${to}'`]),
  };

  for (const [name, backup] of Object.entries(ways)) {
    it(`by ${name} verifies, and a server starts on it with every hold that was there before`, async () => {
      const server = await start();
      const event = await server.createEvent({
        sections: [
          { name: 'S', price: 1000, rows: buyers + 1, seats_per_row: seatsOfEach },
          { name: 'Arena', price: 1000, rows: 2000, seats_per_row: 100 }, // makes the file some megabytes large
        ],
      });
      const row = 'ABCDEFGH'[buyers];
      const held = [];
      for (let n = 1; n <= heldBefore; n++) held.push(await server.grant(event, `S-${row}-${n}`));

      const busy = { going: true, changes: 0 };
      const buying = Array.from({ length: buyers }, (_, n) => buy(server, event, 'ABCDEFGH'[n], busy));
      const dir = tempDir();
      const file = path.join(dir, 'holdfast.db');
      await until('they are busy', () => busy.changes > 20);
      const changesBefore = busy.changes;
      await backup(server.database, file);
      const meanwhile = busy.changes - changesBefore;
      busy.going = false;
      await Promise.all(buying);
      assert.ok(meanwhile > 0, 'nobody was busy');
      await run(HOLDFAST, ['verify', '--ledger', `sqlite:${file}`]);
      await server.stop();

      const restored = await start({ dir });
      for (const hold of held) {
        const { json } = await restored.get(`/v1/holds/${hold.id}`);
        assert.deepEqual([json.status, json.fence], ['active', hold.fence]);
      }
      const { json } = await restored.post(`/v1/holds/${held[0].id}/confirm`, { fence: held[0].fence });
      assert.equal(json.status, 'confirmed');
      await restored.stop({ keep: true });
      await run(HOLDFAST, ['verify', '--ledger', `sqlite:${file}`]);
      assert.ok(fs.existsSync(file));
      removeTempDir(dir);
    });
  }
});
