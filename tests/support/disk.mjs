// A disk small enough to fill.  As root it is a tmpfs.  Otherwise it is a tmpfs in a user and mount namespace
// that a sleeping process keeps alive and the server joins.  Where neither is allowed, a limit on the size of
// the server's files makes its writes fail instead.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { launch, offExit, onExit, removeTempDir, sleep, tempDir } from './server.mjs';

const SIZE = '8m';

// Returns { kind, dir, wrap, fill(server), leave(server, bytes), free(server), close() }: `dir` and `wrap` are for start().
// A disk that was filled has a little room after `leave`.
export async function smallDisk() {
  const base = tempDir();
  const dir = path.join(base, 'disk');
  fs.mkdirSync(dir, { mode: 0o700 });
  return mounted(base, dir) ?? await inNamespace(base, dir) ?? sizeLimit(base, dir);
}

// Writes until no further byte fits.
function fillFile(file) {
  const fd = fs.openSync(file, 'w');
  for (let size = 65536; size >= 1; size = size === 1 ? 0 : Math.max(1, size >> 4)) {
    try { for (;;) fs.writeSync(fd, Buffer.alloc(size, 0x78)); } catch (error) {
      if (error.code !== 'ENOSPC') throw error;
    }
  }
  fs.closeSync(fd);
}

const shorten = (file, bytes) => fs.truncateSync(file, fs.statSync(file).size - bytes);

function mounted(base, dir) {
  if (process.getuid() !== 0) return null;
  try { execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE},mode=700`, 'tmpfs', dir], { stdio: 'pipe' }); } catch { return null; }
  const unmount = () => execFileSync('umount', [dir], { stdio: 'pipe' });
  onExit(unmount);
  const filler = path.join(dir, 'filler');
  return {
    kind: 'tmpfs', dir, wrap: (argv) => argv,
    fill: () => fillFile(filler),
    leave: (server, bytes) => shorten(filler, bytes),
    free: () => fs.rmSync(filler),
    close() { offExit(unmount); unmount(); removeTempDir(base); },
  };
}

async function inNamespace(base, dir) {
  const keeper = launch('unshare', ['-rm', 'sh', '-c',
    `mount -t tmpfs -o size=${SIZE},mode=700 tmpfs "$0" && echo ready && exec sleep 600`, dir]);
  keeper.done.catch(() => {});
  for (let i = 0; i < 100 && !keeper.stdout.includes('ready') && !keeper.ended; i++) await sleep(20);
  if (!keeper.stdout.includes('ready')) return null;
  const filler = path.join(`/proc/${keeper.pid}/root`, dir, 'filler');
  return {
    kind: 'tmpfs in a namespace', dir,
    wrap: (argv) => ['nsenter', '-U', '-m', '--preserve-credentials', '-t', `${keeper.pid}`, ...argv],
    fill: () => fillFile(filler),
    leave: (server, bytes) => shorten(filler, bytes),
    free: () => fs.rmSync(filler),
    async close() { process.kill(keeper.pid, 'SIGKILL'); await keeper.done; removeTempDir(base); },
  };
}

// From fill() to free(), writes beyond the first 4 KiB of any file fail.
export function sizeLimit(base = tempDir(), dir = path.join(base, 'limited')) {
  const limit = (pid, soft) => execFileSync('prlimit', ['--pid', `${pid}`, `--fsize=${soft}:unlimited`]);
  return {
    kind: 'a limit on file sizes', dir,
    wrap: (argv) => ['sh', '-c', 'trap "" XFSZ; exec "$@"', 'sh', ...argv],
    fill: (server) => limit(server.pid, 4096),
    leave: (server, bytes) => limit(server.pid, fs.statSync(`${server.database}-wal`).size + bytes),
    free: (server) => limit(server.pid, 'unlimited'),
    close() { removeTempDir(base); },
  };
}
