// Starting servers with restricted rights or without their gate, and checking the ledger with `holdfast verify`
// while they work.
// backends: own

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, afterEach, before, describe, it } from 'node:test';
import { holdfast } from '../support/cli.mjs';
import { isDegraded, startBackends, readiness, RECONCILE, recovered, timed } from '../support/scale.mjs';
import { assertTook, environment, HOLDFAST, Server, sleep, tempDir, until } from '../support/server.mjs';

describe('a site', () => {
  let backends;
  before(async () => { backends = await startBackends(); });
  afterEach(() => backends?.sweep());
  after(() => backends?.close());

  it('starts as a role that may use the tables and make none, once they are there', async () => {
    const site = await backends.shared({ args: RECONCILE });
    const { database, event } = site;
    backends.postgres.sql('-c', 'CREATE ROLE clerk LOGIN');
    backends.postgres.sql('-d', database, '-c', 'REVOKE CREATE ON SCHEMA public FROM PUBLIC');
    backends.postgres.sql('-d', database, '-c', 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO clerk');
    const clerk = new Server({ ledger: site.ledger.replace('holdfast@', 'clerk@'), gate: site.gate });
    await clerk.launch();
    await clerk.grant(event, 'S-A-1');
    assert.equal((await readiness(clerk)).status, 200);
    await clerk.stop();
    const empty = backends.postgres.createDatabase();
    backends.postgres.sql('-d', empty, '-c', 'REVOKE CREATE ON SCHEMA public FROM PUBLIC');
    const early = new Server({ ledger: clerk.ledger.replace(database, empty) });
    await assert.rejects(early.launch(), /ended at start \(1\)[^]*permission denied/, 'and not before');
    await site.done();
  });

  it('starts though its process stood still amid a migration, or amid the look at the schema', async () => {
    const database = backends.postgres.createDatabase();
    const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = '${database}' AND wait_event = 'advisory'`;
    const lock = async () => { // has the lock of migrations until its input ends
      const psql = spawn('psql', [backends.postgres.url(database), '-qAtX'], { stdio: ['pipe', 'pipe', 'inherit'] });
      psql.stdin.write('SELECT pg_advisory_lock(1212568404, 1);\n');
      await once(psql.stdout, 'data');
      return psql;
    };
    for (const when of ['migration', 'look']) {
      const psql = await lock();
      const server = new Server({ ledger: backends.postgres.url(database) });
      const started = server.launch();
      started.catch(() => {}); // judged below
      await until('it waits for the lock', () => backends.postgres.query('postgres', waits).length);
      process.kill(server.pid, 'SIGSTOP');
      psql.stdin.end();
      await once(psql, 'close');
      await sleep(3500); // the server has the lock, and its transaction says nothing
      process.kill(server.pid, 'SIGCONT');
      await assert.doesNotReject(started, when);
      await server.stop();
    }
  });

  it('whose gate never answers starts, says so, sells, and uses it once it is there', async () => {
    const site = await backends.shared({ args: RECONCILE });
    const { one, event, gateLink } = site;
    await one.stop({ keep: true });
    gateLink.blackhole();
    const { ms } = await timed(one.launch());
    assertTook(ms, 10_000, 'the start');
    await until('it says so', () => /level=warn msg="the gate does not answer[^\n]*why=/.test(one.stderr)); // a thread of its own writes the log
    assert.ok(await isDegraded(one));
    assert.equal((await readiness(one)).status, 200);
    await one.grant(event, 'S-A-1');
    gateLink.restore();
    await recovered(one);
    await one.grant(event, 'S-A-2');
    await until('the gate is told', () => Object.keys(site.seatKeys()).length > 0);
    await site.done();
  });

  it('that works is verified again and again without a false alarm', async (t) => {
    const site = await backends.shared({ args: RECONCILE });
    const { event, servers } = site;
    let finished = false, n = 0;
    const buyers = Array.from({ length: 6 }, async (_, b) => {
      for (let i = 0; !finished; i++, n++) {
        await sleep(10); // the others need the processor
        const server = servers[(b + i) % 2];
        const { status, json } = await server.hold(event, `S-${'AB'[i % 2]}-${1 + (7 * b + i) % 50}`, { ttl_ms: 1000 });
        if (status === 201 && i % 3 === 0) await server.del(`/v1/holds/${json.id}`);
        if (status === 201 && i % 50 === 1) await server.post(`/v1/holds/${json.id}/confirm`, { fence: json.fence });
      }
    });
    await sleep(300);
    let runs = 0;
    const reports = [];
    const verify = () => new Promise((resolve) => {
      execFile(HOLDFAST, ['verify', '--ledger', site.ledger, '--gate', site.gate], { env: environment({}, false) },
        (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
    });
    for (const end = Date.now() + 2500; Date.now() < end || n <= 50; runs += 2) {
      reports.push(...await Promise.all([verify(), verify()]));
      await sleep(200);
    }
    finished = true;
    await Promise.all(buyers);
    t.diagnostic(`${runs} runs beside ${n} requests`);
    assert.ok(n > 50 && runs >= 2);
    for (const { code, stdout, stderr } of reports) assert.equal(code, 0, `${stdout}${stderr}`);
    await site.done();
  });

  it('that never existed is told apart from one that is violated', async () => {
    const empty = backends.postgres.url(backends.postgres.createDatabase());
    const file = `${tempDir()}/other.db`;
    execFileSync('sqlite3', [file, 'CREATE TABLE other (a)']);
    for (const ledger of [empty, `sqlite:${file}`]) {
      const { code, stdout, stderr } = await holdfast(undefined, ['verify', '--ledger', ledger]);
      assert.equal(code, 69, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, /^holdfast verify: there is no ledger in this database; [^\n]+\n$/);
    }
  });
});
