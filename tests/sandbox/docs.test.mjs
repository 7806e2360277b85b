// docs/sandbox.md is true: its commands print what the page shows, and it has every fault and every limit as it is.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, describe, it } from 'node:test';
import { blocks, differences, program } from '../support/documents.mjs';
import { launch, reap } from '../support/server.mjs';
import { startSandbox } from '../support/sandbox.mjs';

const root = new URL('../../', import.meta.url);
const read = (name) => fs.readFileSync(new URL(name, root), 'utf8');
const page = read('docs/sandbox.md');

const tour = blocks(page).filter(({ expected }) => expected);

describe('docs/sandbox.md', () => {
  after(reap);

  it('prints what it shows, in one go from the top', async () => {
    assert.ok(tour.length >= 4);
    const sandbox = await startSandbox();
    const run = launch('dash', ['-eu', '-c', program(tour)], { env: { ...process.env, SANDBOX: sandbox.url } });
    const { code } = await run.done;
    assert.equal(code, 0, run.stderr);
    assert.equal(differences(tour, run.stdout), '');
    await sandbox.stop();
  });

  it('names every fault', async () => {
    const sandbox = await startSandbox();
    const { json } = await sandbox.request('/sandbox/faults');
    for (const name of Object.keys(json)) assert.ok(page.includes(`\`${name}\``), name);
    await sandbox.stop();
  });

  it('has the limits of the code', () => {
    const limit = (file, name) => Number(new RegExp(`#define ${name} (\\d+)`).exec(read(`src/sandbox/${file}`))[1]);
    const shown = (number) => number.toLocaleString('en-US').replace(/^(\d),/, number < 10_000 ? '$1' : '$1,');
    for (const [file, name] of [
      ['bank.h', 'OBJECTS_MAX'], ['bank.h', 'EVENTS_MAX'], ['answers.h', 'ANSWERS_MAX'], ['webhook_sender.h', 'SENDER_QUEUE_MAX'],
      ['bank_worker.h', 'BANK_QUEUE_MAX'], ['form.h', 'FORM_ENTRIES_MAX'], ['webhook_sender.h', 'SENDER_ATTEMPTS_MAX'],
      ['bank.h', 'METADATA_MAX'], ['bank.h', 'METADATA_KEY_MAX'], ['bank.h', 'METADATA_VALUE_MAX'],
    ]) {
      assert.ok(page.includes(` ${shown(limit(file, name))}`), name);
    }
  });
});
