// The documents are true: the commands of the tour print what the page shows, the manual pages list the flags that
// the programs have, and limits and defaults are those of the source.  CONTRIBUTING.md names the tests that show what can go wrong.
// backends: sqlite

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, describe, it } from 'node:test';
import { COMMAND_TIMEOUT_MS, PATIENCE } from '../support/cli.mjs';
import { blocks, differences, outputs, program } from '../support/documents.mjs';
import { environment, HOLDFAST, HOLDFASTD, launch, reap, removeTempDir, start, tempDir } from '../support/server.mjs';

const docs = fileURLToPath(new URL('../../docs', import.meta.url));
const page = (name) => fs.readFileSync(path.join(docs, name), 'utf8');

const source = (name) => fs.readFileSync(new URL(`../../src/${name}`, import.meta.url), 'utf8');

// Returns the value of a number that a file of the source defines: `((size_t)64 * 1024)`.
function defined(file, name) {
  const [, text] = new RegExp(`#define ${name} (.*?)(?: */\\*.*)?$`, 'm').exec(source(file)) ?? assert.fail(`${file} does not define ${name}`);
  const sum = text.replaceAll(/\((?:size_t|int64_t)\)|INT64_C/g, '').replaceAll(/(\d)L+/g, '$1');
  assert.match(sum, /^[\d\s()*+<-]+$/, `${name}: ${text}`);
  return Function(`return ${sum}`)();
}

// Fails unless the tests are there: `folder/suite: *test*, *test*; folder/suite: *test*`.
function assertNamesTests(list) {
  for (const part of list.split('; ')) {
    const [, suite, names] = /^([\w/]+): (\*.*\*)$/.exec(part) ?? assert.fail(list);
    const file = ['test.mjs', 'c'].map((end) => new URL(`../${suite}.${end}`, import.meta.url)).find((url) => fs.existsSync(url));
    assert.ok(file, part);
    const source = fs.readFileSync(file, 'utf8').replaceAll("\\'", "'");
    for (const [, name] of names.matchAll(/\*([^*]+?)…?\*/g)) assert.ok(source.includes(name), `${suite}: ${name}`);
  }
}

describe('docs/api.md', () => {
  after(reap);

  it('prints what it shows, in one go from the top', async () => {
    const tour = blocks(page('api.md'));
    assert.ok(tour.length >= 20, `${tour.length} blocks`);
    assert.ok(tour.filter(({ expected }) => expected).length >= 18);
    const keys = { HOLDFAST_ADMIN_KEY: 'an-admin-key-of-the-tour', HOLDFAST_SELLER_KEY: 'a-seller-key-of-the-tour' };
    const server = await start();
    const keyed = await start({ env: { ...keys, HOLDFAST_PUBLIC_SEATS_MAX: '2' } });
    const url = ({ host, port }) => `http://${host}:${port}`;
    // A second is enough to watch a stream for a reader, but not on a machine that stands still.
    const patient = program(tour).replace('--max-time 1 ', '--max-time 8 ');
    assert.notEqual(patient, program(tour));
    const run = launch('dash', ['-u', '-c', patient], { // sh, and no more than that
      env: { ...process.env, ...keys, API: url(server), KEYED: url(keyed), LC_ALL: 'C.UTF-8' },
    });
    await run.done;
    assert.equal(differences(tour, run.stdout), '');
    assert.equal(run.stderr, '');
    const checks = help(HOLDFAST, 'verify', '--ledger', `sqlite:${server.database}`).match(/^I\d+ +ok /gm).length;
    assert.deepEqual(page('backup.md').match(/\d+ checks, no violation/g), Array(2).fill(`${checks} checks, no violation`));
    await keyed.stop();
    await server.stop();
  });
});

describe('the codes', () => {
  it('are all in docs/api.md, with their statuses', () => {
    const table = page('api.md').split('\n## Codes\n')[1];
    const rows = [...table.matchAll(/^\| ([\d, ]+) \| ([^|]*) \| [^|]+ \|$/gm)];
    assert.ok(rows.length >= 30, `${rows.length} rows`);
    const shown = new Set(rows.flatMap(([, statuses, codes]) => [...codes.matchAll(/`(\w+)`/g)].flatMap(([, code]) => statuses.split(', ').map((status) => `${status} ${code}`))));
    const codes = ['http/problem.c', 'api/problems.c'].flatMap((file) => [...source(file).matchAll(/PROBLEM\w*\(\s*(\d+),\s*"(\w+)"/g)].map(([, status, code]) => `${status} ${code}`));
    assert.ok(codes.length >= 60, `${codes.length} codes`);
    assert.deepEqual([...new Set(codes)].filter((code) => !shown.has(code)), []);
  });
});

// Each document that states a limit states that of the source.
describe('the limits', () => {
  const n = (file, name) => defined(file, name).toLocaleString('en-US');
  const ki = (file, name) => `${defined(file, name) / 1024} KiB`;
  const mi = (file, name) => `${defined(file, name) / 1024 / 1024} MiB`;
  const says = (name, ...sentences) => {
    const text = page(name).replaceAll(/\s+/g, ' ');
    for (const sentence of sentences) assert.ok(text.includes(sentence), `${name} does not say: ${sentence}`);
  };

  it('of bodies', () => {
    const [body, event, plan, webhook] = [ki('http/request.h', 'BODY_MAX'), mi('api/routes.h', 'BODY_EVENT_MAX'), mi('api/routes.h', 'BODY_PLAN_MAX'), ki('checkout/webhook.h', 'WEBHOOK_LEN_MAX')];
    says('openapi.yaml', `Bodies are at most ${body}, that of an event ${event}, and ${plan} with a \`plan\`.`, `The body may have ${plan} then, and otherwise ${event}.`, `Bodies are at most ${webhook}.`);
    says('api.md', `send at most ${body}; for an event, ${event}, and ${plan} with a plan`);
    says('reference.md', `| a body | ${body}; for an event ${event}, and ${plan} with a plan |`, `Up to ${mi('http/request.h', 'BODY_DRAIN_MAX')} more of a body that is too large is read`, `| a webhook; its age, in both directions | ${webhook}; 300 s |`);
    says('plans.md', `${plan}; without one, ${event}`);
    assert.ok(source('api/events.c').includes(`body must have at most ${defined('api/routes.h', 'BODY_EVENT_MAX')} bytes without a plan`));
  });

  it('of heads', () => {
    const [head, fields] = [ki('http/parse.h', 'HEAD_LEN_MAX'), n('http/parse.h', 'FIELDS_MAX')];
    says('openapi.yaml', `Request line and headers are at most ${head} and ${fields} fields`);
    says('api.md', `send at most ${head} of request line and headers, in at most ${fields} fields`);
    says('reference.md', `| request line and headers | ${head} together, ${fields} fields;`);
  });

  it('of names and texts', () => {
    const [name, plan, event] = [n('model/limits.h', 'NAME_CHARS_MAX'), n('model/limits.h', 'PLAN_TEXT_CHARS_MAX'), n('venue/event_parse.c', 'EVENT_NAME_CHARS_MAX')];
    says('reference.md', `| names of sections, rows, areas, tiers, categories, channels; labels of seats | ${name} characters |`, `| names of sections, rows, categories and seats of a plan | ${plan} characters |`, `| names of an event and a venue | ${event} characters |`,
      `| \`venue_address\`; \`description\`; \`image\` | ${['VENUE_ADDRESS', 'DESCRIPTION', 'IMAGE'].map((term) => n('venue/event_parse.c', `${term}_CHARS_MAX`)).join('; ')} characters |`, `| \`timezone\` | ${n('base/time_zone.h', 'TIME_ZONE_LEN_MAX')} characters:`,
      `| id; name of a ticket type | ${n('model/limits.h', 'TYPE_ID_LEN_MAX')} of \`A-Z\`, \`a-z\`, \`0-9\`, \`-\` and \`_\`; ${n('model/limits.h', 'TYPE_NAME_CHARS_MAX')} characters |`,
      `| \`owner\`; \`reference\` | ${n('api/hold_parse.h', 'HOLD_OWNER_CHARS_MAX')}; ${n('api/holds.c', 'REFERENCE_CHARS_MAX')} characters |`,
      `| \`email\`; \`reason\` of a cancelled booking | ${n('model/payment.h', 'EMAIL_LEN_MAX')}; ${n('api/bookings.c', 'REASON_CHARS_MAX')} characters |`,
      `| \`metadata\` | ${n('json/fields.c', 'METADATA_KEYS_MAX')} entries, names of ${n('json/fields.c', 'METADATA_KEY_CHARS_MAX')}, strings of ${n('json/fields.c', 'METADATA_VALUE_CHARS_MAX')} characters |`, `| \`metadata\` of a hold without an access key, where the server has some | ${n('api/hold_create.c', 'STRANGER_METADATA_MAX')} bytes of JSON |`,
      `| \`Idempotency-Key\` | 1 to ${n('api/idempotency.c', 'KEY_LEN_MAX')} characters; kept ${defined('model/limits.h', 'KEY_KEPT_MS') / 3600_000} h |`, `| \`Idempotency-Key\` without an access key | at least ${n('api/idempotency.c', 'KEY_LEN_MIN_PUBLIC')} characters |`,
      `| the same, where the server has keys | ${n('api/idempotency.c', 'KEY_DIFFERENT_MIN')} characters that differ, or ${n('api/idempotency.c', 'KEY_DIGITS_MIN')} digits |`);
    says('plans.md', `| names, labels, ids | ${plan} characters; names of sold areas ${name} |`,
      `| colours; texts; corners of a polygon | ${n('venue/reader.h', 'COLOR_CHARS_MAX')} characters; ${n('venue/plan_areas.c', 'AREA_TEXT_CHARS_MAX')} characters; ${n('venue/plan_areas.c', 'POINTS_MAX')} |`);
    says('openapi.yaml', `names of at most ${n('json/fields.c', 'METADATA_KEY_CHARS_MAX')} characters, strings of at most ${n('json/fields.c', 'METADATA_VALUE_CHARS_MAX')}; of a hold without an access key, where the server has some, ${n('api/hold_create.c', 'STRANGER_METADATA_MAX')} bytes in all`,
      `1 to ${n('api/idempotency.c', 'KEY_LEN_MAX')} characters, bare or in quotes. Without an access key at least ${n('api/idempotency.c', 'KEY_LEN_MIN_PUBLIC')};`, `${n('api/idempotency.c', 'KEY_DIFFERENT_MIN')} of them must differ, and digits alone must be ${n('api/idempotency.c', 'KEY_DIGITS_MIN')}`);
  });

  it('of numbers', () => {
    const [seats, rows, categories] = [n('model/limits.h', 'EVENT_SEATS_MAX'), n('venue/reader.h', 'ROWS_MAX'), n('model/limits.h', 'CATEGORIES_MAX')];
    says('openapi.yaml', `at most ${seats} seats, ${rows} rows and ${categories} categories`, `One request names at most ${n('api/seats.c', 'BLOCK_SEATS_MAX')} seats`, `an event has at most ${n('model/limits.h', 'CHANNELS_MAX')}.`,
      `2 to ${n('model/limits.h', 'HOLDS_PER_BOOKING_MAX')} of one event`, `at most ${n('model/limits.h', 'HOLD_PLACES_MAX')} places together`);
    says('api.md', `2 to ${n('model/limits.h', 'HOLDS_PER_BOOKING_MAX')} of one event`, `which may have ${n('model/limits.h', 'HOLD_PLACES_MAX')} places`);
    says('reference.md', `| holds that one request books together; their places | ${n('model/limits.h', 'HOLDS_PER_BOOKING_MAX')}; ${n('model/limits.h', 'HOLD_PLACES_MAX')} |`);
    says('plans.md', `| seats; rows; areas of the plan; categories | ${seats}; ${rows}; ${n('venue/plan_areas.c', 'AREAS_MAX')}; ${categories} |`);
    says('reference.md', `| seats, rows, categories, channels, ticket types of an event | ${seats}; ${rows}; ${categories}; ${n('model/limits.h', 'CHANNELS_MAX')}; ${n('model/limits.h', 'TYPES_MAX')} |`, `| places of an area | ${n('venue/reader.h', 'AREA_CAPACITY_MAX')} |`,
      `| seats, and areas, that one request blocks or unblocks | ${n('api/seats.c', 'BLOCK_SEATS_MAX')}; ${n('model/limits.h', 'HOLD_PLACES_MAX')} |`,
      `| a price | 10^${Math.log10(defined('model/limits.h', 'PRICE_MAX'))} |`, `| \`max_per_hold\` | 1 to ${n('model/limits.h', 'HOLD_PLACES_MAX')}, default ${n('venue/event_parse.c', 'MAX_PER_HOLD_DEFAULT')} |`,
      `| \`max_per_owner\` | 1 to ${n('model/limits.h', 'MAX_PER_OWNER_MAX')}, or none |`,
      `| \`hold_ttl_ms\` | ${defined('model/limits.h', 'HOLD_TTL_MS_MIN') / 1000} s to ${defined('model/limits.h', 'HOLD_TTL_MS_MAX') / 3600_000} h, default ${defined('venue/event_parse.c', 'HOLD_TTL_MS_DEFAULT') / 60_000} min |`,
      `| \`hold_max_ms\` | \`hold_ttl_ms\` to ${defined('venue/event_parse.c', 'HOLD_MAX_MS_MAX') / 86400_000} days, default ${defined('venue/event_parse.c', 'HOLD_MAX_MS_DEFAULT') / 60_000} min, or \`hold_ttl_ms\` if that is longer |`,
      `| a page of a list | 1 to ${n('model/limits.h', 'BOOKINGS_LIST_MAX')}, default ${n('api/page.h', 'PAGE_LIMIT_DEFAULT')} |`, `| a page of the audit log | 1 to ${n('model/limits.h', 'AUDIT_LIST_MAX')}, default ${n('api/audit.c', 'AUDIT_LIMIT_DEFAULT')} |`, `| a page of refusals by seat | 1 to ${n('model/limits.h', 'HEAT_LIST_MAX')}, default ${n('api/heat.c', 'HEAT_LIMIT_DEFAULT')} |`,
      `| a seat's history | ${n('model/limits.h', 'SEAT_HISTORY_MAX')} rows;`,
      `| bookings of one hold, one after another, until one is paid | ${n('model/limits.h', 'BOOKINGS_PER_HOLD_MAX')};`, `| refunds of one payment | ${n('model/payment.h', 'REFUNDS_MAX')} |`);
  });

  it('of leases, as the library knows them', () => {
    const drivers = help(HOLDFAST, 'drivers').split('\n\n');
    const rows = page('locks.md').split('\n').filter((line) => /^\| `[a-z[\]]+:/.test(line)).map((line) => line.slice(2, -2).split(' | '));
    assert.equal(rows.length, drivers.length);
    const ms = (text) => { const [, count, unit] = /^(\d+) (ms|s|min|minutes|h|days?)$/.exec(text) ?? assert.fail(text); return count * { ms: 1, s: 1000, min: 60_000, minutes: 60_000, h: 3600_000, day: 86400_000, days: 86400_000 }[unit]; };
    for (const cells of rows) {
      const name = /^`([a-z]+)/.exec(cells[0])[1];
      const driver = drivers.find((text) => text.startsWith(`${name}\n`)) ?? assert.fail(name);
      const known = /^ {2}ttl +(.*?) to (.*?);/m.exec(driver).slice(1).map(ms);
      const [, from, to] = /^(.*?) to ([^,(]*[^,( ])/.exec(cells[5]);
      assert.deepEqual([ms(from), name === 'redlock' ? known[1] : ms(to)], known, name);
      assert.ok(cells[6].startsWith(/^ {2}names +up to (.*)$/m.exec(driver)[1]), `${name}: ${cells[6]}`);
    }
  });
});

describe('docs/locks.md', () => {
  it('says what to do about every result', () => {
    const [, list] = /enum hf_result \{(.*?)\};/s.exec(fs.readFileSync(new URL('../../include/holdfast.h', import.meta.url), 'utf8'));
    const results = [...list.replaceAll(/\/\*.*?\*\//gs, '').matchAll(/HF_\w+/g)].map(([name]) => name);
    const table = page('locks.md').split('\n## Results\n')[1].split('\n## ')[0];
    assert.deepEqual([...table.matchAll(/^\| `(HF_\w+)` \|/gm)].map(([, name]) => name).sort(), results.sort());
  });
});

for (const [document, goal, least] of [['plans.md', 'from a file to a held seat', 4], ['waiting-list.md', 'from one buyer to the next', 3]])
describe(`docs/${document}`, () => {
  after(reap);

  it(`leads ${goal}, with the output it shows`, async () => {
    const tour = blocks(page(document));
    assert.ok(tour.length >= least && tour.every(({ expected }) => expected), `${tour.length} blocks`);
    const server = await start();
    const dir = tempDir();
    const run = launch('dash', ['-u', '-c', `cd "$DIR"; holdfast() { "$PROGRAM" "$@"; }\n${program(tour)}`], {
      env: { ...environment({}, false), HOLDFAST_SERVER: `http://${server.host}:${server.port}`, PROGRAM: HOLDFAST, DIR: dir, LC_ALL: 'C.UTF-8' },
    });
    const timer = setTimeout(() => run.child.kill('SIGKILL'), COMMAND_TIMEOUT_MS);
    await run.done;
    clearTimeout(timer);
    assert.equal(differences(tour, run.stdout), '');
    assert.equal(run.stderr, '');
    await server.stop();
    removeTempDir(dir);
  });
});

describe('README.md', () => {
  after(reap);

  it('sells an event of its own in ten lines, with the output it shows', async () => {
    const tour = blocks(page('../README.md')).filter(({ expected }) => expected);
    assert.deepEqual(tour.map(({ code }) => code.trimEnd().split('\n').length), [10]);
    const server = await start();
    const run = launch('dash', ['-eu', '-c', program(tour).replace('$PWD/build', path.dirname(HOLDFAST))], {
      env: { ...environment({}, false), HOLDFAST_SERVER: `http://${server.host}:${server.port}`, LC_ALL: 'C.UTF-8' },
    });
    const timer = setTimeout(() => run.child.kill('SIGKILL'), COMMAND_TIMEOUT_MS);
    const { code } = await run.done;
    clearTimeout(timer);
    assert.equal(code, 0, run.stderr);
    assert.equal(differences(tour, run.stdout), '');
    assert.equal(run.stderr, '');
    await server.stop();
  });
});

describe('docs/payments.md', () => {
  after(reap);
  const text = page('payments.md');

  it('leads to a paid seat with the commands it shows', async () => {
    const tour = blocks(text);
    assert.equal(tour.length, 1);
    const server = await start();
    const run = launch('dash', ['-eu', '-c', program(tour)], { env: { ...process.env, API: `http://${server.host}:${server.port}`, LC_ALL: 'C.UTF-8' } });
    const timer = setTimeout(() => run.child.kill('SIGKILL'), COMMAND_TIMEOUT_MS);
    const { code } = await run.done;
    clearTimeout(timer);
    assert.equal(code, 0, run.stderr);
    assert.equal(differences(tour, run.stdout), '');
    assert.equal(run.stderr, '');
    await server.stop();
  });

  it('names every event that the server uses', () => {
    const source = fs.readFileSync(new URL('../../src/checkout/webhook.c', import.meta.url), 'utf8');
    const used = [...source.matchAll(/\{"([a-z_.]+)", read_\w+\}/g)].map(([, type]) => type);
    assert.ok(used.length >= 10);
    const list = text.slice(text.indexOf('with these events'), text.indexOf('2. Put the settings')).match(/\b(?:payment_intent|charge|refund)\.[a-z_.]+/g);
    assert.deepEqual([...list].sort(), used.sort());
  });
});

describe('docs/cell.md', () => {
  after(reap);
  const text = page('cell.md');

  it('prints what it shows, and its locks are taken, in one go from the top', async () => {
    const tour = blocks(text);
    assert.ok(tour.filter(({ expected }) => expected).length >= 7, `${tour.length} blocks`);
    const server = await start();
    const dir = tempDir();
    fs.writeFileSync(path.join(dir, 'holdfast'), `#!/bin/sh\ncommand=$1\nshift\nexec '${HOLDFAST}' "$command" ${PATIENCE.join(' ')} "$@"\n`, { mode: 0o755 });
    for (const name of ['report', 'import.sh', 'transfer']) fs.writeFileSync(path.join(dir, name), `#!/bin/sh\necho ${name} "$HOLDFAST_LOCK_NAME"\n`, { mode: 0o755 });
    const script = program(tour).replaceAll('127.0.0.1:8080', `${server.host}:${server.port}`);
    const run = launch('dash', ['-u', '-c', script], { env: { ...environment({}, false), PATH: `${dir}:${process.env.PATH}`, LC_ALL: 'C.UTF-8' } });
    const timer = setTimeout(() => run.child.kill('SIGKILL'), COMMAND_TIMEOUT_MS);
    await run.done;
    clearTimeout(timer);
    assert.equal(differences(tour, run.stdout), '');
    assert.equal(outputs(run.stdout)[0], 'report nightly\nreport hourly\nreport prices\nimport.sh api-quota\ntransfer payments/eu');
    assert.equal(run.stderr, '');
    await server.stop();
    removeTempDir(dir);
  });

  it('has the limits of the source', () => {
    const header = (name) => fs.readFileSync(new URL(`../../src/cell/${name}.h`, import.meta.url), 'utf8');
    const value = (name, limit) => Number(new RegExp(`#define ${limit} (\\d+)`).exec(header(name))[1]).toLocaleString('en-US');
    const limits = text.slice(text.indexOf('## Limits'));
    for (const limit of ['NAME_MAX', 'LEVELS_MAX', 'LABEL_MAX', 'AGENT_MAX', 'SLOTS_MAX', 'SESSIONS_MAX', 'ACQUISITIONS_MAX', 'WAITERS_MAX', 'ENDED_MAX', 'FREE_NAMES_MAX']) {
      assert.ok(limits.includes(value('command', `CELL_${limit}`)), limit);
    }
    for (const [limit, shown] of [['NODE_PLACE_MS', '5 s'], ['NODE_CLAIM_MS', '1 s'], ['NODE_WAIT_MAX_MS', '60 s']]) {
      assert.equal(value('node', limit).replace(',000', ' s'), shown);
      assert.ok(limits.includes(shown), limit);
    }
  });
});

describe('docs/secure.md', () => {
  it('is where SECURITY.md and the guides say', () => {
    for (const file of ['../SECURITY.md', '../README.md', 'run.md']) assert.match(page(file), /\]\((docs\/)?secure\.md/);
  });
});

// CONTRIBUTING.md names the tests that show what the guides say: one entry for each case of a guide.
describe('the tests behind the documents', () => {
  const contributing = page('../CONTRIBUTING.md');
  const entries = (title) => {
    const part = contributing.slice(contributing.indexOf(`\n### ${title}\n`)).split(/\n#+ /)[1];
    return part.split('\n- ').slice(1).map((text) => text.replaceAll(/\s+/g, ' ').trim())
      .map((text) => /^(.*?): (\w+\/\w+: \*.*)$/.exec(text)?.slice(1) ?? assert.fail(text));
  };
  const section = (name, from, to) => { const text = page(name); return text.slice(text.indexOf(from), to ? text.indexOf(to) : undefined); };
  const lower = (text) => `${text[0].toLowerCase()}${text.slice(1)}`.replaceAll(/\s+/g, ' ');
  // The cases of a list begin with `- **case.**`; those of a table are its first cells.
  const listed = (text) => [...text.matchAll(/^- \*\*([^*]+)\.\*\*/gm)].map(([, item]) => lower(item));
  const rows = (text) => [...text.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell]) => cell).slice(1);

  for (const [title, cases, least] of [
    ['docs/secure.md, "Threats"', listed(section('secure.md', '## Threats', '## What is not protected')), 25],
    ['docs/watch.md, "When parts fail"', listed(section('watch.md', '## When parts fail', 'Two things need care')), 15],
    ['docs/cell.md, "When something fails"', listed(section('cell.md', '## When something fails', '## Limits')), 20],
    ['docs/payments.md, "When something fails"', rows(section('payments.md', '## When something fails')), 20],
  ]) {
    it(`are there for every case of ${title}`, () => {
      assert.ok(cases.length >= least, `${cases.length} cases`);
      assert.deepEqual(entries(title).map(([item]) => lower(item)), cases.map(lower));
      for (const [, tests] of entries(title)) assertNamesTests(tests);
    });
  }

  it('have an entry for every suite of tests/attack', () => {
    for (const file of fs.readdirSync(new URL('../attack', import.meta.url))) {
      const suite = `attack/${file.replace('.test.mjs', '')}: `;
      assert.ok(contributing.replaceAll(/\s+/g, ' ').includes(suite), `no entry names a test of ${file}`);
    }
  });
});

const project = fileURLToPath(new URL('../..', import.meta.url));
const words = (text) => text.split(/\s+/).filter(Boolean).length;

// The map and the pages of the rooms: short enough to be read, and about files that there are.
describe('ARCHITECTURE.md and the pages of the rooms', () => {
  const folders = fs.readdirSync(path.join(project, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => `src/${name}`);
  const read = (name) => fs.readFileSync(path.join(project, name), 'utf8');

  it('are a map of at most 4,000 words, and one page of at most 700 for each folder of src', () => {
    assert.ok(words(read('ARCHITECTURE.md')) <= 4000, `${words(read('ARCHITECTURE.md'))} words`);
    assert.ok(folders.length >= 20, `${folders.length} folders`);
    for (const folder of folders) {
      const count = words(read(`${folder}/README.md`));
      assert.ok(count >= 100 && count <= 700, `${folder}/README.md: ${count} words`);
      assert.ok(read('ARCHITECTURE.md').includes(`](${folder}/README.md)`), `ARCHITECTURE.md does not lead to ${folder}`);
    }
  });

  // A walk that leads through more files than these is not one that somebody takes.
  it('lead through at most 30 files for a hold, and 35 for a lock', () => {
    const files = (title) => {
      const [walk] = read('ARCHITECTURE.md').split(/^(?=## )/m).filter((section) => section.startsWith(`## ${title}\n`));
      return new Set([...walk.matchAll(/(?:\w+\/)*\w+(?:\*)?\.c\b/g)].map(([file]) => file));
    };
    for (const [title, most] of [['How one hold is made', 30], ['How one lock is granted', 35]]) {
      const walk = files(title);
      assert.ok(walk.size >= 20 && walk.size <= most, `${title}: ${walk.size} files: ${[...walk].join(' ')}`);
    }
  });

  it('name files that there are', () => {
    for (const file of ['ARCHITECTURE.md', 'web/README.md', ...folders.map((folder) => `${folder}/README.md`)]) {
      const below = file === 'ARCHITECTURE.md' ? fs.readdirSync(path.join(project, 'src/lease/holdfast')) : fs.readdirSync(path.join(project, path.dirname(file)), { recursive: true }).map((name) => path.basename(name));
      const names = [...read(file).matchAll(/(?<![\w.*/-])((?:[\w-]+\/)*[\w-]+\.(?:c|h|js|css|html))\b/g)].map(([, name]) => name);
      assert.ok(names.length >= 3, file);
      for (const name of names) {
        const places = [name, `src/${name}`, path.join(path.dirname(file), name)].map((place) => path.join(project, place));
        assert.ok(places.some((place) => fs.existsSync(place)) || below.includes(name), `${file}: there is no ${name}`);
      }
    }
  });
});

// Every document of the project, by its path.
function documents(folder = '') {
  const outside = /^(node_modules|build|var|\..*)$/;
  return fs.readdirSync(path.join(project, folder), { withFileTypes: true }).filter(({ name }) => !outside.test(name)).flatMap((entry) => {
    const name = path.join(folder, entry.name);
    return entry.isDirectory() ? documents(name) : name.endsWith('.md') ? [name] : [];
  });
}

describe('the documents', () => {
  const withoutCode = (text) => text.replaceAll(/^ *```[^]*?^ *```$/gm, '');
  const texts = new Map(documents().map((name) => [name, withoutCode(fs.readFileSync(path.join(project, name), 'utf8'))]));

  // The anchors of a document: its headings as GitHub names them, and those that it sets itself.
  const anchors = (text) => new Set([
    ...[...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) => title.toLowerCase().replaceAll(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-')),
    ...[...text.matchAll(/<a (?:id|name)="([^"]+)"/g)].map(([, id]) => id),
  ]);

  it('lead to files and headings that there are', () => {
    assert.ok(texts.size >= 40, `${texts.size} documents`);
    let count = 0;
    const broken = [];
    for (const [name, text] of texts) {
      for (const [, target] of text.replaceAll(/`[^`]*`/g, '').matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)) {
        if (/^(https?|mailto):/.test(target)) continue;
        const [file, anchor] = target.split('#');
        const place = file ? path.join(path.dirname(name), file) : name;
        const there = fs.existsSync(path.join(project, place));
        if (!there || (anchor && texts.has(place) && !anchors(texts.get(place)).has(anchor))) broken.push(`${name}: ${target}`);
        count++;
      }
    }
    assert.ok(count >= 300, `${count} links`);
    assert.deepEqual(broken, []);
  });

  // Tables and links cannot be broken, and code stays as it is typed.
  it('have no line longer than 119 characters', () => {
    const long = [];
    for (const [name, text] of texts) {
      for (const line of text.split('\n')) {
        if ([...line].length > 119 && !/^ *\|/.test(line) && !/^ *(?:[-*] |\d+\. )?\S+$/.test(line)) long.push(`${name}: ${line}`);
      }
    }
    assert.deepEqual(long, []);
  });
});

// Returns the long flags in a text, without those of other programs that it mentions.
const flags = (text) => [...new Set(text.match(/--[a-z][a-z-]+/g))].sort();
// mdoc writes --listen as `Fl -listen`.
const pageFlags = (text) => [...new Set([...text.matchAll(/Fl -([a-z][a-z-]+)/g)].map(([, name]) => `--${name}`))].sort();
const help = (program, ...args) => execFileSync(program, args, {
  encoding: 'utf8', env: { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' },
});

describe('the manual pages', () => {
  it('have every flag of holdfastd and no other', () => {
    assert.deepEqual(pageFlags(page('man/holdfastd.8')), flags(help(HOLDFASTD, '--help')));
  });

  it('have every command and flag of holdfast and no other', () => {
    const overview = help(HOLDFAST, '--help');
    const commands = [...overview.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name);
    assert.ok(commands.length > 0, overview);
    const text = page('man/holdfast.1');
    const known = commands.flatMap((name) => flags(help(HOLDFAST, name, '--help')));
    assert.deepEqual(pageFlags(text), [...new Set([...known, ...flags(overview)])].sort());
    for (const name of commands) assert.match(text, new RegExp(`^\\.(Ic|Nm|Ss|It Ic).*\\b${name}\\b`, 'm'));
  });

  it('are clean mdoc', () => {
    for (const name of fs.readdirSync(path.join(docs, 'man'))) {
      const out = execFileSync('mandoc', ['-Tlint', '-Wwarning', path.join(docs, 'man', name)], { encoding: 'utf8' });
      assert.equal(out, '');
    }
  });

  it('have the defaults of docs/reference.md, and so have --help and the source', () => {
    const known = new Map([...source('setup/options.c').matchAll(/\.(\w+) = "([^"]+)"/g)].map(([, name, value]) => [name.replaceAll('_', '-'), value]));
    const options = help(HOLDFASTD, '--help');
    const rows = [...page('reference.md').replaceAll('\\|', '/').matchAll(/^\| `--([a-z-]+)[^|]*\| (`[^`]+`|\d+)/gm)];
    assert.ok(rows.length >= 20 && known.size >= 7, `${rows.length} rows, ${known.size} defaults in the source`);
    for (const [, flag, quoted] of rows) {
      const value = quoted.replaceAll('`', '');
      if (known.has(flag)) assert.equal(value, known.get(flag), flag);
      known.delete(flag);
      const line = new RegExp(`^ {2}--${flag} .*$`, 'm').exec(options)[0];
      assert.ok(line.includes(`(${value}`), `${flag} in --help: ${value}`);
      const text = page('man/holdfastd.8').split(/^\.It /m).find((one) => one.startsWith(`Fl -${flag} `)).replaceAll(/\n(?:\.(?:Cm|Ql|Pa) )?/g, ' ');
      assert.ok(new RegExp(`[Dd]efault(?: is)? ${value}(?!\\w)|${value} \\(the default\\)`).test(text), `${flag} in holdfastd(8): ${value}`);
    }
    assert.deepEqual([...known], []);
  });

  it('name every flag in docs/reference.md too', () => {
    const reference = page('reference.md');
    for (const flag of flags(help(HOLDFASTD, '--help'))) {
      if (!['--help', '--version'].includes(flag)) assert.ok(reference.includes(`\`${flag}`), flag);
    }
  });
});
