// The client for Python: its own tests, in clients/python/tests, against real servers, and its package.
// backends: own
// time limit: 600 s

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, reap, Server, tempDir, tlsIdentity } from '../support/server.mjs';

const client = fileURLToPath(new URL('../../clients/python', import.meta.url));
const DEBIAN = '/usr/bin/python3'; // the one that has Debian's modules
const suites = fs.readdirSync(path.join(client, 'tests')).filter((name) => /^test_.*\.py$/.test(name));

const urlOf = ({ host, port }) => `http://${host}:${port}`;

// Runs a program to its end; resolves to its stdout and stderr.
async function run(command, args, options) {
  const program = launch(command, args, options);
  assert.deepEqual(await program.done, { code: 0, signal: null }, program.stderr);
  return program;
}

function canBuild() {
  try {
    // Not just `build`, which the project's folder of that name would be, too.
    execFileSync(DEBIAN, ['-c', 'import build.__main__, setuptools, wheel, pip'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe('the client for Python', { concurrency: true }, () => {
  const servers = [];
  const ca = path.join(tempDir(), 'ca.pem');
  before(async () => {
    fs.writeFileSync(ca, tlsIdentity().tls.ca);
    servers.push(new Server({ tls: false }), new Server({ tls: true }));
    for (const server of servers) await server.launch();
  });
  after(async () => {
    for (const server of servers) await server.finish();
    await reap();
  });

  for (const suite of suites) {
    it(`${suite}: every test passes`, async () => {
      const [plain, tls] = servers;
      const env = { ...process.env, HOLDFAST_URL: urlOf(plain), HOLDFAST_TLS_URL: `https://localhost:${tls.port}`, HOLDFAST_TLS_CA: ca, PYTHONDONTWRITEBYTECODE: '1' };
      const { stderr } = await run('python3', [path.join(client, 'tests', suite), '-v'], { env });
      assert.match(stderr, /^Ran [1-9]\d* tests?/m);
    });
  }

  it('is built, installed and used without a network', { skip: canBuild() ? false : 'Debian\'s python3-build is not installed' }, async () => {
    const dir = tempDir();
    const source = path.join(dir, 'source');
    fs.cpSync(client, source, { recursive: true });
    await run(DEBIAN, ['-m', 'build', '--wheel', '--no-isolation', '--outdir', dir, source]);
    const wheel = fs.readdirSync(dir).find((name) => name.endsWith('.whl'));
    const empty = path.join(dir, 'empty');
    await run(DEBIAN, ['-m', 'pip', 'install', '--quiet', '--no-index', '--no-deps', '--target', empty, path.join(dir, wheel)]);
    assert.ok(fs.existsSync(path.join(empty, 'holdfast/py.typed')));
    const use = 'import holdfast, sys; print(holdfast.Client(sys.argv[1]).server.health().status, holdfast.__file__)';
    const { stdout } = await run(DEBIAN, ['-c', use, urlOf(servers[0])], { cwd: empty, env: { ...process.env, PYTHONPATH: empty } });
    assert.equal(stdout, `ok ${path.join(empty, 'holdfast/__init__.py')}\n`);
  });
});
