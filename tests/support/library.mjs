// libholdfast as `make install-library` leaves it, for the suites of tests/library.

import { execFile } from 'node:child_process';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
export const PREFIX = '/opt/holdfast';
// No claim depends on how fast or how large the library is.  It has a folder of its own, so that nobody who builds the
// library gets this one.
const FOLDER = 'build/tests-library';
const BUILD = ['FLAVOUR=product', `B_product=${FOLDER}`, 'CFLAGS=-O0 -g0 -U_FORTIFY_SOURCE'];

// The environment for programs that are not part of the `make` that may have started the tests.
export const { MAKEFLAGS, MAKELEVEL, ...environment } = process.env;

// Builds the library without these drivers and installs it below `dir`; resolves to its folder of libraries.  The suites
// share the objects, so one of them at a time is building.
export async function installLibrary(dir, without = []) {
  const variables = [...(without.length > 0 ? [`WITHOUT=${without.join(' ')}`] : []), `DESTDIR=${dir}`, `PREFIX=${PREFIX}`];
  await run('flock', [`${FOLDER}.lock`, 'make', '-j2', ...BUILD, 'install-library', ...variables],
    { cwd: root, env: environment, maxBuffer: 1 << 24 });
  return path.join(dir, PREFIX, 'lib');
}
