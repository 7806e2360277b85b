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
import { freePort, reap, Server } from '../support/server.mjs';
import { startDriver } from './driver.mjs';
import { check, runScenario } from './scenario.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const inClients = (name) => path.join(root, 'clients', name);
const KEYS = { admin_key: 'an-admin-key-0123456789', seller_key: 'a-seller-key-0123456789' };
const AT_ONCE = 8; // scenarios

const LANGUAGES = [
  { name: 'js', command: [process.execPath, inClients('js/conformance.mjs')] },
  { name: 'python', command: ['python3', inClients('python/conformance.py')] },
  ...(process.env.HOLDFAST_DRIVER ? [{ name: 'driver', command: process.env.HOLDFAST_DRIVER.split(' ') }] : []),
].filter(({ name }) => !process.env.HOLDFAST_CLIENT || process.env.HOLDFAST_CLIENT === name);

const subjects = fs.readdirSync(inClients('conformance')).filter((name) => name.endsWith('.json')).sort()
  .map((name) => JSON.parse(fs.readFileSync(inClients(`conformance/${name}`), 'utf8')));

const servers = {};

before(async () => {
  servers.open = new Server({ args: ['--pages', 'off'] });
  servers.keyed = new Server({ args: ['--pages', 'off'], env: { HOLDFAST_ADMIN_KEY: KEYS.admin_key, HOLDFAST_SELLER_KEY: KEYS.seller_key } });
  Object.assign(servers.keyed, { keys: KEYS, admin: { Authorization: `Bearer ${KEYS.admin_key}` } });
  servers.nowhere = `http://127.0.0.1:${await freePort()}`;
  await Promise.all([servers.open.launch(), servers.keyed.launch()]);
});
after(async () => {
  await Promise.all([servers.open?.stop(), servers.keyed?.stop(), servers.cell?.close()]);
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
    const careless = { command: [process.execPath, path.join(root, 'tests/clients/careless_driver.mjs')] };
    careless.driver = startDriver(careless.command);
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
    await careless.driver.stop();
  });
});

for (const language of LANGUAGES) {
  const file = language.command.at(-1);
  describe(language.name, { skip: fs.existsSync(file) ? false : `there is no ${path.relative(root, file)}` }, () => {
    before(() => { language.driver = startDriver(language.command); });
    after(() => language.driver.stop());
    for (const { subject, scenarios } of subjects) {
      const isCell = scenarios.some(({ server }) => server === 'cell');
      describe(subject, { concurrency: isCell ? 1 : AT_ONCE }, () => {
        if (isCell) before(async () => { servers.cell ??= await startCell('postgres'); });
        for (const scenario of scenarios) it(scenario.name, () => runScenario(scenario, language, servers));
      });
    }
  });
}
