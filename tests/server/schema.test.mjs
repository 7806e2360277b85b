// A ledger is refused, by the server and by `holdfast verify`, if its schema is not Holdfast's own: a trigger or a rule of
// somebody else would change rows behind the server's back.  So is a file that is damaged, or that is no ledger at all.
// backends: sqlite postgres

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { placeOf } from '../support/backend.mjs';
import { holdfast } from '../support/cli.mjs';
import { backend, only, reap, removeTempDir, runServer, sqliteQuery, start, tempDir } from '../support/server.mjs';

const onSqlite = backend === 'sqlite';

// SQL that makes the schema another one, SQL that makes it Holdfast's again, and what is said of it.
const CHANGES = onSqlite ? [
  ['CREATE TRIGGER evil AFTER INSERT ON holds BEGIN DELETE FROM bookings; END', 'DROP TRIGGER evil', /its trigger evil on holds is not Holdfast's/],
  ['CREATE VIEW seen AS SELECT * FROM holds', 'DROP VIEW seen', /its view seen is not Holdfast's/],
  ['CREATE TABLE other (a)', 'DROP TABLE other', /its table other is not Holdfast's/],
  ['CREATE INDEX "\u001b[2Jx" ON holds (owner)', 'DROP INDEX "\u001b[2Jx"', /its index \?\[2Jx on holds is not Holdfast's/],
  ['DROP INDEX holds_due', 'CREATE INDEX holds_due ON holds (event, expires_at) WHERE status = 1', /its index holds_due is missing/],
  ['ALTER TABLE holds ADD COLUMN extra', 'ALTER TABLE holds DROP COLUMN extra', /its table holds is not as Holdfast made it/],
  ['ALTER TABLE sold_seats RENAME TO sold', 'ALTER TABLE sold RENAME TO sold_seats', /its table sold is not Holdfast's \(and 1 more\)/],
] : [
  ['CREATE FUNCTION evil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM bookings; RETURN NULL; END $$; CREATE TRIGGER evil AFTER INSERT ON holds EXECUTE FUNCTION evil()',
    'DROP FUNCTION evil CASCADE', /its trigger evil on holds is not Holdfast's/],
  ['CREATE RULE evil AS ON INSERT TO holds DO ALSO DELETE FROM bookings', 'DROP RULE evil ON holds', /its rule evil on holds is not Holdfast's/],
  ['CREATE POLICY evil ON holds USING (false)', 'DROP POLICY evil ON holds', /its policy evil on holds is not Holdfast's/],
  ['ALTER TABLE holds ENABLE ROW LEVEL SECURITY', 'ALTER TABLE holds DISABLE ROW LEVEL SECURITY', /its table holds is not as Holdfast made it/],
  ['ALTER TABLE holds SET UNLOGGED', 'ALTER TABLE holds SET LOGGED', /its table holds is not as Holdfast made it/],
  ['ALTER TABLE holds ADD CONSTRAINT evil CHECK (amount >= 0)', 'ALTER TABLE holds DROP CONSTRAINT evil', /its constraint evil on holds is not Holdfast's/],
  ['CREATE TABLE heirs () INHERITS (bookings)', 'DROP TABLE heirs', /its heir heirs of bookings is not Holdfast's/],
  ['CREATE INDEX more ON holds (owner)', 'DROP INDEX more', /its index more on holds is not Holdfast's/],
  ['DROP INDEX payments_intent; CREATE INDEX payments_intent ON payments (intent) WHERE intent IS NOT NULL',
    'DROP INDEX payments_intent; CREATE UNIQUE INDEX payments_intent ON payments (intent) WHERE intent IS NOT NULL', /its index payments_intent on payments is not as Holdfast made it/],
  ['ALTER TABLE holds ADD COLUMN extra bigint', 'ALTER TABLE holds DROP COLUMN extra', /its column holds.extra is not Holdfast's/],
  ['ALTER TABLE holds ALTER COLUMN owner SET DEFAULT \'x\'', 'ALTER TABLE holds ALTER COLUMN owner DROP DEFAULT', /its column holds.owner is not as Holdfast made it/],
  ['ALTER TABLE sold_seats RENAME TO sold', 'ALTER TABLE sold RENAME TO sold_seats', /its table sold_seats is missing/],
];

// What an operator and Holdfast itself may have beside the ledger.
const ALLOWED = onSqlite ? 'ANALYZE'
  : 'CREATE SCHEMA shop; CREATE TABLE shop.holds (a int); CREATE TABLE orders (a int); CREATE VIEW sales AS SELECT * FROM bookings; ANALYZE holds; CREATE STATISTICS s ON event, status FROM holds';

describe('a ledger', () => {
  let place;
  let event;
  const url = () => place.ledger ?? `sqlite:${place.file}`;
  const change = (sql) => (onSqlite ? sqliteQuery(place.file, sql, { readOnly: false })
    : execFileSync('psql', [place.ledger, '-qAtX', '-v', 'ON_ERROR_STOP=1', '-c', sql], { stdio: 'pipe' }));
  const refused = async () => {
    const run = await runServer(['--listen', '127.0.0.1:0', '--data', place.dir], { env: place.ledger ? { HOLDFAST_LEDGER: place.ledger } : {} });
    assert.equal(run.code, 1, run.stderr);
    return run.stderr;
  };
  const verify = () => holdfast(undefined, ['verify', '--ledger', url()]);
  before(async () => {
    const dir = tempDir();
    place = { dir, file: path.join(dir, 'holdfast.db'), ...await placeOf(dir) };
    const server = await start({ dir, ledger: place.ledger });
    event = await server.createEvent();
    await server.grant(event, 'S-A-2');
    await server.stop({ keep: true });
  });
  after(async () => {
    await reap();
    removeTempDir(place.dir);
  });

  for (const [spoil, mend, why] of CHANGES) {
    it(`is refused by the server after: ${JSON.stringify(spoil)}`, async () => {
      change(spoil);
      const said = await refused();
      assert.match(said, why);
      assert.match(said, /`holdfast verify` lists what differs/);
      change(mend);
    });
  }

  it('is refused by verify, which lists what differs', async () => {
    assert.equal((await verify()).code, 0);
    const some = CHANGES.slice(0, 3);
    for (const [spoil] of some) change(spoil);
    const { code, stdout } = await verify();
    assert.equal(code, 1, stdout);
    assert.match(stdout, /^I11 +VIOLATED .* as Holdfast makes them: 3 not so: /m);
    for (const [, , why] of some) assert.match(stdout, new RegExp(why.source.replace('its ', '')));
    for (const [, mend] of some) change(mend);
    const [rename, back] = CHANGES.at(-1); // rows that cannot be read are said to be so
    change(rename);
    const { code: unread, stderr } = await verify();
    assert.equal(unread, 69);
    assert.match(stderr, /cannot be read, since its schema is not Holdfast's: /);
    change(back);
    assert.equal((await verify()).code, 0);
  });

  it('may have beside it what the database, its operator and the lock commands make', async () => {
    change(ALLOWED);
    if (onSqlite) {
      const { code, stderr } = await holdfast(undefined, ['run', '--lock', url(), 'x', '--', 'true']);
      assert.equal(code, 0, stderr);
    }
    assert.equal((await verify()).code, 0);
    const server = await start({ dir: place.dir, ledger: place.ledger });
    assert.equal((await server.counts(event)).held, 1);
    await server.stop({ keep: true });
  });

  it('whose file is damaged is refused', { skip: only('sqlite', 'a file') }, async () => {
    const whole = fs.readFileSync(place.file);
    const [{ rootpage }] = sqliteQuery(place.file, 'SELECT rootpage FROM sqlite_master WHERE name = \'holds_due\'');
    const pages = Buffer.from(whole);
    pages.fill(0x5a, (rootpage - 1) * 2048, rootpage * 2048); // an index that no statement of a start needs
    fs.writeFileSync(place.file, pages);
    assert.match(await refused(), /the file is damaged \(.+\); restore a backup/);
    const { code, stdout, stderr } = await verify();
    assert.ok(code === 1 ? /^I7 +VIOLATED /m.test(stdout) : /file is damaged/.test(stderr), stdout + stderr);
    fs.writeFileSync(place.file, whole);
    assert.equal((await verify()).code, 0);
  });

  it('is not made in a file of somebody else', { skip: only('sqlite', 'a file') }, async () => {
    const dir = tempDir();
    const file = path.join(dir, 'holdfast.db');
    execFileSync('sh', ['-c', 'umask 077; exec sqlite3 "$0" "$1"', file, 'CREATE TABLE holds (mine); INSERT INTO holds VALUES (1)']);
    const run = await runServer(['--listen', '127.0.0.1:0', '--data', dir]);
    assert.equal(run.code, 1);
    assert.match(run.stderr, /this database is no ledger, and not empty: its table holds is not Holdfast's; name another one/);
    assert.deepEqual(sqliteQuery(file, 'SELECT name FROM sqlite_master'), [{ name: 'holds' }]);
    removeTempDir(dir);
  });
});
