// The scenarios of clients/conformance: every client says the same about the same server, also when things break.  Each
// client runs them in a process of its own (driver.mjs), against real servers behind a proxy that makes faults.
// HOLDFAST_CLIENT=js runs one client alone, HOLDFAST_DRIVER='command' any driver that speaks the protocol.
// backends: own
// time limit: 600 s

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startCell } from '../support/cell.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { freePort, reap, Server } from '../support/server.mjs';
import { careless } from './careless.mjs';
import { PYTHON, startDriver } from './driver.mjs';
import { check, needsOf, runScenario } from './scenario.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const inClients = (name) => path.join(root, 'clients', name);
const KEYS = { admin_key: 'an-admin-key-0123456789', seller_key: 'a-seller-key-0123456789' };
const AT_ONCE = 8; // scenarios

// `least`: how many scenarios a driver does not skip for what it lacks.
const LANGUAGES = [
  { name: 'js', least: 151, command: [process.execPath, inClients('js/conformance.mjs')] },
  { name: 'python', least: 152, command: [PYTHON, inClients('python/conformance.py')] },
  { name: 'native', least: 105, command: [process.execPath, path.join(root, 'tests/clients/native_driver.mjs')] },
  ...(process.env.HOLDFAST_DRIVER ? [{ name: 'driver', command: process.env.HOLDFAST_DRIVER.split(' ') }] : []),
].filter(({ name }) => !process.env.HOLDFAST_CLIENT || process.env.HOLDFAST_CLIENT === name);

// Asked before the first suite is defined: those that are would be run, and the servers stopped, meanwhile.
await Promise.all(LANGUAGES.map(async (language) => {
  language.driver = startDriver(language.command);
  language.lacks = (await language.driver.ask({ op: 'lacks' })).value ?? {}; // by name, with the reason
}));

const subjects = fs.readdirSync(inClients('conformance')).filter((name) => name.endsWith('.json')).sort()
  .map((name) => JSON.parse(fs.readFileSync(inClients(`conformance/${name}`), 'utf8')));

const n_scenarios = subjects.reduce((n, { scenarios }) => n + scenarios.length, 0);
const needed = new Set(subjects.flatMap(({ subject, scenarios }) => scenarios.flatMap((scenario) => [...needsOf(scenario, subject)])));

const servers = {};

before(async () => {
  servers.open = new Server({ args: ['--pages', 'off'] });
  servers.keyed = new Server({ args: ['--pages', 'off'], env: { HOLDFAST_ADMIN_KEY: KEYS.admin_key, HOLDFAST_SELLER_KEY: KEYS.seller_key } });
  Object.assign(servers.keyed, { keys: KEYS, admin: { Authorization: `Bearer ${KEYS.admin_key}` } });
  servers.nowhere = `http://127.0.0.1:${await freePort()}`;
  const guarded = async () => {
    servers.postgres = await startPostgres();
    servers.postgres.sql('-f', path.join(root, 'share/holdfast/fence.sql'));
  };
  await Promise.all([servers.open.launch(), servers.keyed.launch(), guarded()]);
});
after(async () => {
  await Promise.all(LANGUAGES.map(({ driver }) => driver.stop()));
  await Promise.all([servers.open?.stop(), servers.keyed?.stop(), servers.postgres?.stop()]);
  await reap();
});

describe('the scenarios', () => {
  it('are well-formed, have names of their own, and are at least sixty', () => {
    const scenarios = subjects.flatMap(({ subject, scenarios: list }) => list.map((scenario) => ({ ...scenario, name: `${subject}: ${scenario.name}` })));
    for (const scenario of scenarios) check(scenario);
    assert.equal(new Set(scenarios.map(({ name }) => name)).size, scenarios.length);
    assert.ok(scenarios.length >= 60, `there are ${scenarios.length}`);
  });

  it('find a client that asks once, at one server, without keys', async () => {
    const find = (subject, text) => subjects.find((each) => each.subject === subject).scenarios.find(({ name }) => name.includes(text));
    await runScenario(find('retries', 'an answer that is late'), careless, servers);
    for (const [subject, text, step] of [
      ['retries', 'cut before the server had the request', 'holds.create'], ['retries', 'nothing is done twice', 'holds.create'],
      ['retries', 'Retry-After', 'holds.create'], ['retries', 'find out', 'holds.create'], ['retries', 'reads, too', 'events.get'],
      ['idempotency', 'a key of its own', 'requests'], ['idempotency', 'sells once', 'holds.confirm'],
      ['servers', 'cannot be reached', 'holds.create'], ['servers', 'same key', 'holds.create'],
    ]) {
      const message = new RegExp(`^step \\d, \\{"(call":")?${step}"`);
      await assert.rejects(runScenario(find(subject, text), careless, servers), { message }, text);
    }
  });
});

// The scenarios of some subjects that a language does not lack.
function suites(language, some, concurrency) {
  for (const { subject, scenarios } of some) {
    describe(`${language.name}: ${subject}`, { concurrency }, () => {
      for (const scenario of scenarios) {
        const lack = [...needsOf(scenario, subject)].find((need) => need in language.lacks);
        if (lack) language.lacking.add(lack);
        else it(scenario.name, () => { language.n_ran++; return runScenario(scenario, language, servers); });
      }
    });
  }
}

const isOfCell = ({ scenarios }) => scenarios.some(({ server }) => server === 'cell');
for (const language of LANGUAGES) {
  Object.assign(language, { lacking: new Set(), n_ran: 0 });
  suites(language, subjects.filter((subject) => !isOfCell(subject)), AT_ONCE);
}

describe('a cell of three servers on etcd', () => {
  before(async () => { servers.cell = await startCell('etcd', { nodes: process.env.HF_SOAK === '1' ? 3 : 1 }); });
  after(() => servers.cell?.close());
  for (const language of LANGUAGES) suites(language, subjects.filter(isOfCell), 1);
});

describe('a client', () => {
  for (const language of LANGUAGES) {
    const { name, least = 0, lacks, lacking } = language;
    if (lacking.size > 0) it(`${name}: runs the other scenarios, too`, { skip: `its driver says why it lacks ${[...lacking].join(', ')}` });
    it(`${name}: has run as many scenarios as ever, and lacks nothing that none needs`, (t) => {
      const { n_ran } = language;
      t.diagnostic(`${n_ran} of ${n_scenarios} scenarios`);
      assert.ok(n_ran >= least, `only ${n_ran} of ${n_scenarios} scenarios ran`);
      assert.deepEqual(Object.keys(lacks).filter((need) => !needed.has(need)), []);
    });
  }
});
