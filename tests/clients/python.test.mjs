// The client for Python: its own tests, in clients/python/tests, against real servers.
// backends: own
// time limit: 600 s

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startPostgres } from '../support/postgres.mjs';
import { launch, reap, Server, tempDir, tlsIdentity } from '../support/server.mjs';
import { PYTHON } from './driver.mjs';

const client = fileURLToPath(new URL('../../clients/python', import.meta.url));
const suites = fs.readdirSync(path.join(client, 'tests')).filter((name) => /^test_.*\.py$/.test(name));

const urlOf = ({ host, port }) => `http://${host}:${port}`;

// Runs a program to its end; resolves to its stdout and stderr.
async function run(command, args, options) {
  const program = launch(command, args, options);
  assert.deepEqual(await program.done, { code: 0, signal: null }, program.stderr);
  return program;
}

describe('the client for Python', { concurrency: true }, () => {
  const servers = [];
  let postgres;
  const ca = path.join(tempDir(), 'ca.pem');
  before(async () => {
    fs.writeFileSync(ca, tlsIdentity().tls.ca);
    servers.push(new Server({ tls: false }), new Server({ tls: true }));
    for (const server of servers) await server.launch();
    postgres = await startPostgres();
    postgres.sql('-f', fileURLToPath(new URL('../../share/holdfast/fence.sql', import.meta.url)));
  });
  after(async () => {
    for (const server of servers) await server.finish();
    await postgres?.stop();
    await reap();
  });

  for (const suite of suites) {
    it(`${suite}: every test passes`, async () => {
      const [plain, tls] = servers;
      const env = { ...process.env, HOLDFAST_URL: urlOf(plain), HOLDFAST_TLS_URL: `https://localhost:${tls.port}`, HOLDFAST_TLS_CA: ca, HOLDFAST_POSTGRES: postgres.url(), PYTHONDONTWRITEBYTECODE: '1' };
      const { stderr } = await run(PYTHON, [path.join(client, 'tests', suite), '-v'], { env });
      assert.match(stderr, /^Ran [1-9]\d* tests?/m);
    });
  }
});
