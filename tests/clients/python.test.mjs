// The client for Python: its own tests, in clients/python/tests, against a real server.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, reap, Server } from '../support/server.mjs';

const client = fileURLToPath(new URL('../../clients/python', import.meta.url));
const suites = fs.readdirSync(path.join(client, 'tests')).filter((name) => /^test_.*\.py$/.test(name));

describe('the client for Python', { concurrency: true }, () => {
  let server;
  before(async () => {
    server = new Server();
    await server.launch();
  });
  after(async () => {
    await server?.finish();
    await reap();
  });

  for (const suite of suites) {
    it(`${suite}: every test passes`, async () => {
      const run = launch('python3', [path.join(client, 'tests', suite), '-v'], {
        env: { ...process.env, HOLDFAST_URL: `http://${server.host}:${server.port}`, PYTHONDONTWRITEBYTECODE: '1' },
      });
      assert.deepEqual(await run.done, { code: 0, signal: null }, run.stderr);
      assert.match(run.stderr, /^Ran [1-9]\d* tests?/m);
    });
  }
});
