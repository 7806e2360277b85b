// The process in which one client runs scenarios, and the protocol that it speaks: one JSON object per line each way.
//
//   const driver = startDriver(['node', 'clients/js/conformance.mjs']);
//   const { value, error } = await driver.ask({ op: 'call', client: 'a', call: 'events.get', args: { id } });
//   await driver.stop();          // ends its stdin; exit 0 and no request without an answer, or it throws

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { launch } from '../support/server.mjs';

// Debian's own Python has the modules that apt installs, whichever comes first in PATH.
export const PYTHON = fs.existsSync('/usr/bin/python3') ? '/usr/bin/python3' : 'python3';

const ANSWER_MS = 180_000; // longer than any timeout that a scenario gives to a client
const STOP_MS = 60_000;

export const startDriver = (command) => new Driver(command);

class Driver {
  #next = 0;
  #waiting = new Map(); // id -> { resolve, reject, timer }
  #rest = '';

  constructor([program, ...args]) {
    this.run = launch(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.run.child.stdin.on('error', () => {}); // it has ended, as `done` says
    this.run.child.stdout.on('data', (data) => this.#read(data));
    this.run.done.then(({ code, signal }) => this.#fail(`it ended (${code ?? signal})`), (error) => this.#fail(error.message));
  }

  get pid() { return this.run.pid; }

  // Resolves to { value } or { error }.
  ask(request) {
    const id = ++this.#next;
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error(`the driver did not answer ${JSON.stringify(request)} in ${ANSWER_MS} ms\n${this.run.stderr.slice(-4000)}`));
      const timer = setTimeout(fail, ANSWER_MS);
      this.#waiting.set(id, { resolve, reject, timer, request });
      this.run.child.stdin.write(`${JSON.stringify({ id, ...request })}\n`);
    });
  }

  #read(data) {
    const lines = (this.#rest + data).split('\n');
    this.#rest = lines.pop();
    for (const line of lines) {
      const { id, ...answer } = JSON.parse(line);
      const waiter = this.#waiting.get(id);
      assert.ok(waiter, `the driver answers what was not asked: ${line}`);
      clearTimeout(waiter.timer);
      this.#waiting.delete(id);
      waiter.resolve(answer);
    }
  }

  #fail(reason) {
    for (const { reject, timer, request } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(new Error(`the driver did not answer ${JSON.stringify(request)}: ${reason}\n${this.run.stderr.slice(-4000)}`));
    }
    this.#waiting.clear();
  }

  async stop() {
    this.run.child.stdin.end();
    const timer = setTimeout(() => process.kill(this.pid, 'SIGKILL'), STOP_MS);
    const ended = await this.run.done;
    clearTimeout(timer);
    assert.deepEqual(ended, { code: 0, signal: null }, `the driver ends badly:\n${this.run.stderr.slice(-4000)}`);
  }
}
