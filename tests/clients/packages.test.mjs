// The clients as packages (scripts/build-clients): they are made and installed into empty projects without a network, as
// docs/clients.md says, and sell a seat and hold a lock there.  `make clients` keeps them.
// backends: own
// time limit: 300 s

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { blocks } from '../support/documents.mjs';
import { launch, reap, Server, tempDir } from '../support/server.mjs';
import { fromRoot, nodeProject, pythonProject, runPage } from './pages.mjs';

const DEBIAN = '/usr/bin/python3'; // the one that has Debian's modules
const VERSION = /HF_VERSION_TEXT "(.*)"/.exec(fs.readFileSync(fromRoot('include/holdfast.h'), 'utf8'))[1];
const NPM = ['--offline', '--no-audit', '--no-fund', '--no-update-notifier'];
const PIP = ['--no-index', '--no-deps', '--no-build-isolation', '--no-warn-script-location'];

async function run(command, args, options) {
  const program = launch(command, args, options);
  assert.deepEqual(await program.done, { code: 0, signal: null }, `${program.stdout}${program.stderr}`);
}

// The packages of a client.
async function build(client) {
  const dir = process.env.HF_CLIENTS ?? tempDir();
  await run(fromRoot('scripts/build-clients'), [client, dir]);
  return dir;
}

// The command of docs/clients.md that installs with this program.
function documented(program) {
  const [{ code }] = blocks(fs.readFileSync(fromRoot('docs/clients.md'), 'utf8'));
  return code.split('\n').find((line) => line.startsWith(`${program} install `)).split(' ').slice(2);
}

async function npmInstall(what) {
  const project = nodeProject();
  fs.cpSync(fromRoot('clients/js'), path.join(project.dir, 'clients/js'), { recursive: true });
  await run('npm', ['install', what, ...NPM, '--cache', path.join(project.dir, 'cache')], { cwd: project.dir });
  const packages = fs.readdirSync(path.join(project.dir, 'node_modules')).filter((name) => !name.startsWith('.'));
  assert.deepEqual(packages, ['holdfast']);
  return project;
}

async function pipInstall(what) {
  const project = pythonProject(DEBIAN);
  fs.cpSync(fromRoot('clients/python'), path.join(project.dir, 'clients/python'), { recursive: true }); // pip builds in it
  await run(DEBIAN, ['-m', 'pip', 'install', '--quiet', ...PIP, '--target', path.join(project.dir, 'site'), what], { cwd: project.dir });
  return project;
}

describe('a package', { concurrency: 2 }, () => {
  const server = new Server({ tls: false });
  before(() => server.launch());
  after(async () => {
    try { await server.stop(); } finally { await reap(); }
  });
  const sells = (project, readme) => runPage(project, readme, `http://${server.host}:${server.port}`);

  it('of the JavaScript client is installed from its folder', async () => {
    assert.deepEqual(documented('npm'), ['./clients/js']);
    await sells(await npmInstall('./clients/js'), 'clients/js/README.md');
  });

  it('of the JavaScript client is packed, has what it needs and no more, and is installed', async () => {
    const archive = path.join(await build('js'), `holdfast-${VERSION}.tgz`);
    const files = execFileSync('tar', ['-tzf', archive], { encoding: 'utf8' }).trim().split('\n').map((name) => name.replace('package/', ''));
    const scripts = fs.readdirSync(fromRoot('clients/js')).filter((name) => name.endsWith('.js'));
    assert.deepEqual(files.sort(), [...scripts, 'LICENSE', 'README.md', 'index.d.ts', 'package.json'].sort());
    await sells(await npmInstall(archive), 'clients/js/README.md');
  });

  it('of the Python client is built, has what it needs and no more, and is installed', async () => {
    assert.deepEqual(documented('pip'), ['./clients/python']);
    const dir = await build('python');
    const wheel = path.join(dir, `holdfast-${VERSION}-py3-none-any.whl`);
    const list = 'import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep="\\n")';
    const files = execFileSync(DEBIAN, ['-c', list, wheel], { encoding: 'utf8' }).trim().split('\n');
    const modules = fs.readdirSync(fromRoot('clients/python/src/holdfast')).filter((name) => /\.py$|^py\.typed$/.test(name));
    assert.deepEqual(files.filter((name) => name.startsWith('holdfast/')).sort(), modules.map((name) => `holdfast/${name}`).sort());
    assert.ok(files.some((name) => /\.dist-info\/.*LICENSE$/.test(name)), files.join());
    assert.ok(fs.existsSync(path.join(dir, `holdfast-${VERSION}.tar.gz`))); // from which the wheel was built
    for (const what of [wheel, './clients/python']) await sells(await pipInstall(what), 'clients/python/README.md');
  });
});
