// Projects that have a client, and what runs in them: the code of a page, and examples.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { blocks, differences, program } from '../support/documents.mjs';
import { launch, tempDir } from '../support/server.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
export const fromRoot = (name) => path.join(root, name);

// Empty projects, whose programs find packages in `node_modules`, and modules in `site`.
export function nodeProject() {
  const dir = tempDir();
  fs.mkdirSync(path.join(dir, 'node_modules'));
  fs.writeFileSync(path.join(dir, 'package.json'), '{"type":"module"}');
  return { language: 'js', command: process.execPath, dir, ending: '.mjs', env: {} };
}
export function pythonProject(command = 'python3') {
  const dir = tempDir();
  return { language: 'python', command, dir, ending: '.py', env: { PYTHONPATH: path.join(dir, 'site'), PYTHONDONTWRITEBYTECODE: '1' } };
}

// A project with the client as it is in the repository.
export function projectOf(language) {
  const project = language === 'js' ? nodeProject() : pythonProject();
  const [from, to] = language === 'js' ? ['clients/js', 'node_modules/holdfast'] : ['clients/python/src', 'site'];
  fs.symlinkSync(fromRoot(from), path.join(project.dir, to));
  return project;
}

// Starts a program of the repository in a project.
export function begin(project, file, args = [], env = {}) {
  const copy = path.join(project.dir, path.basename(file)); // Node looks for packages beside it
  fs.copyFileSync(file, copy);
  return launch(project.command, [copy, ...args], { cwd: project.dir, env: { ...process.env, ...project.env, ...env } });
}

// Runs all blocks of a page from the top, with this server for theirs.  They print what the page shows, and the program ends
// by itself.
export async function runPage(project, page, url) {
  const tour = blocks(fs.readFileSync(fromRoot(page), 'utf8'), project.language);
  assert.ok(tour.length >= 4, `${tour.length} blocks`);
  const file = path.join(project.dir, `page${project.ending}`);
  fs.writeFileSync(file, program(tour).replaceAll('http://127.0.0.1:8080', url));
  const run = launch(project.command, [file], { cwd: project.dir, env: { ...process.env, ...project.env } });
  assert.deepEqual(await run.done, { code: 0, signal: null }, run.stderr);
  assert.equal(differences(tour, run.stdout), '');
}
