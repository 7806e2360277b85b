// Servers whose clock a test can step: libfaketime, loaded before the C library's own functions.  It works
// for servers that ask the C library for the time (Redis, PostgreSQL), not for Go programs, which ask the kernel.

import fs from 'node:fs';
import path from 'node:path';

function library() {
  for (const entry of fs.readdirSync('/usr/lib')) {
    const file = `/usr/lib/${entry}/faketime/libfaketimeMT.so.1`;
    if (fs.existsSync(file)) return file;
  }
  throw new Error('libfaketime is not installed');
}

// A wall clock of its own for one server: `env` is for the server's process, and `step` moves the clock.
export class SteppedClock {
  #offsetS = 0;

  constructor(dir) {
    this.file = path.join(dir, 'clock');
    this.#write();
    fs.chmodSync(dir, 0o755);
  }

  get env() {
    // The C library comes second so that an allocator that asks for the time before libfaketime is ready finds it.
    return { LD_PRELOAD: `${library()}:libc.so.6`, FAKETIME_TIMESTAMP_FILE: this.file, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  }

  step(seconds) {
    this.#offsetS += seconds;
    this.#write();
  }

  #write() {
    fs.writeFileSync(`${this.file}.new`, `${this.#offsetS < 0 ? '' : '+'}${this.#offsetS}\n`);
    fs.renameSync(`${this.file}.new`, this.file);
  }
}
