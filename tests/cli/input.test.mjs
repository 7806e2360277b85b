// Bad input, wrong passwords and hosts that do not answer lead to a clear message and the right exit code, in time.
// backends: own

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { beginRun, freePort, holdfast, run, sqliteLocks } from '../support/cli.mjs';
import { startRedis } from '../support/redis.mjs';
import { assertTook, environment, HOLDFAST, launch, reap } from '../support/server.mjs';

const locks = sqliteLocks();
const { url } = locks;
const marker = locks.file('ran');
const touch = ['--', 'touch', marker];

after(reap);

// Also checks that the command did not run.
async function refuses(code, pattern, args, where = url) {
  const answer = await run(where ?? undefined, args);
  assert.equal(answer.code, code, `${JSON.stringify(args)}: ${answer.stderr}`);
  assert.match(answer.stderr, pattern);
  assert.equal(answer.stderr.trim().split('\n').length, 1, answer.stderr);
  assert.equal(fs.existsSync(marker), false);
  return answer;
}

describe('usage: 64', { concurrency: 4 }, () => {
  const mistakes = {
    'no name': [/1 to 64 NAMEs/, [...touch]],
    'no command': [/1 to 64 NAMEs/, ['name', '--']],
    'no dashes': [/1 to 64 NAMEs/, ['name', 'touch', marker]],
    'a name twice': [/given twice/, ['one', 'two', 'one', ...touch]],
    'an unknown option': [/^holdfast run: unrecognized option '--frobnicate'; see holdfast run --help$/m, ['--frobnicate', 'name', ...touch]],
    'an unknown option with a value that may be a secret': [/unrecognized option '--lok';/, ['--lok=redis://:pw@h', 'name', ...touch]],
    'an unknown letter': [/^holdfast run: unrecognized option '-x'; see holdfast run --help$/m, ['--shared', '-xn', 'name', ...touch]],
    'an option without its value': [/^holdfast run: option '--ttl' requires an argument; see holdfast run --help$/m, ['name', '--ttl']],
    'a letter without its value': [/option '-E' requires an argument/, ['name', '-E']],
    'an empty name': [/name .*empty/i, ['', ...touch]],
    'a name of 4 KiB': [/name .*4096 bytes/, ['n'.repeat(4096), ...touch]],
    'a name of 256 bytes': [/name/, ['n'.repeat(256), ...touch]],
    'a name with a control character': [/name/, ['a\nb', ...touch]],
    'a TTL of zero': [/--ttl/, ['--ttl', '0', 'name', ...touch]],
    'a TTL too short': [/TTL/i, ['--ttl', '1ms', 'name', ...touch]],
    'a huge TTL': [/TTL/i, ['--ttl', '3000d', 'name', ...touch]],
    'a TTL beyond all numbers': [/--ttl: 9{20}s is too long, the most is 3660d/, ['--ttl', '99999999999999999999s', 'name', ...touch]],
    'a wait of a quarter of a million years': [/--wait: 99999999d is too long/, ['--wait', '99999999d', 'name', ...touch]],
    'units in the wrong order': [/30s2m is not a duration/, ['--wait', '30s2m', 'name', ...touch]],
    'a unit twice': [/1s1s is not a duration/, ['--wait', '1s1s', 'name', ...touch]],
    'a compound that ends without a unit': [/2m30 is not a duration/, ['--wait', '2m30', 'name', ...touch]],
    'an empty duration': [/--wait/, ['--wait', '', 'name', ...touch]],
    'a negative duration': [/--wait/, ['--wait', '-1s', 'name', ...touch]],
    'a duration in weeks': [/--wait/, ['--wait', '1w', 'name', ...touch]],
    'a duration with a space': [/--wait/, ['--wait', '1 s', 'name', ...touch]],
    'a duration without end': [/--wait/, ['--wait', 'inf', 'name', ...touch]],
    'half a number': [/--wait/, ['--wait', '1.', 'name', ...touch]],
    '-n and --wait': [/-n and --wait exclude each other/, ['-n', '--wait', '1s', 'name', ...touch]],
    '--shared and --slots': [/--shared and --slots exclude each other/, ['--shared', '--slots', '2', 'name', ...touch]],
    'no slots': [/--slots/, ['--slots', '0', 'name', ...touch]],
    'slots that are no number': [/--slots/, ['--slots', 'two', 'name', ...touch]],
    'a negative retry': [/--retry/, ['--retry', '-1', 'name', ...touch]],
    'a priority that is no number': [/--priority/, ['--priority', 'high', 'name', ...touch]],
    'an exit code of 256': [/-E/, ['-E', '256', 'name', ...touch]],
    'an unknown --on-loss': [/--on-loss/, ['--on-loss', 'panic', 'name', ...touch]],
    'a grace beyond the TTL': [/--grace/, ['--grace', '20s', 'name', ...touch]],
    '--at-least beyond --max-hold': [/--at-least/, ['--at-least', '2s', '--max-hold', '1s', 'name', ...touch]],
    'a label of 129 bytes': [/--label/, ['--label', 'l'.repeat(129), 'name', ...touch]],
    'an unknown URL': [/begin|URL/, ['--lock', 'gopher://x', 'name', ...touch]],
    'an unknown parameter of a URL': [/parameter/, ['--lock', 'redis://h:p?x=1', 'name', ...touch]],
  };
  for (const [what, [pattern, args]] of Object.entries(mistakes)) {
    it(what, () => refuses(64, pattern, args));
  }

  it('no coordinator at all', () => refuses(64, /HOLDFAST_LOCK_URL/, ['name', ...touch], null));

  it('a name that is not UTF-8', async () => {
    const script = '"$HF" run "$(printf "a\\377b")" -- touch "$MARKER"';
    const shell = launch('sh', ['-c', script], { env: environment({ HF: HOLDFAST, MARKER: marker, HOLDFAST_LOCK_URL: url }, false) });
    assert.equal((await shell.done).code, 64, shell.stderr);
    assert.match(shell.stderr, /UTF-8/);
    assert.equal(fs.existsSync(marker), false);
  });

  it('but every valid duration is accepted', async () => {
    for (const text of ['500ms', '30s', '5m', '2h', '1d', '1.5s', '0.5', '7', '2m30s', '1d12h', '1h0.5m', '1s500ms', '3660d']) {
      assert.equal((await run(url, ['--wait', text, 'durations', '--', 'true'])).code, 0, text);
    }
  });

  it('but options may follow the name', async () => {
    assert.equal((await run(url, ['behind', '--ttl', '60s', '-n', '--', 'true'])).code, 0);
  });

  it('but --help prints everything, with 0', async () => {
    for (const command of ['run', 'elect', 'lock', 'drivers', 'fence']) {
      const { code, stdout, stderr } = await holdfast(undefined, [command, '--help']);
      assert.equal(code, 0);
      assert.equal(stderr, '');
      assert.match(stdout, new RegExp(`^usage: holdfast ${command}`));
      const help = await holdfast(undefined, ['help', command]);
      assert.deepEqual([help.code, help.stdout, help.stderr], [0, stdout, '']);
    }
    assert.match((await holdfast(undefined, ['run', '--help'])).stdout, /--wait.*\n +a coordinator that cannot be reached at the start fails at once/);
    const all = await holdfast(undefined, ['help']);
    assert.deepEqual([all.code, all.stderr], [0, '']);
    assert.match(all.stdout, /^usage: holdfast COMMAND/);
    const unknown = await holdfast(undefined, ['help', 'me']);
    assert.equal(unknown.code, 64);
    assert.match(unknown.stderr, /unknown command me/);
  });

  it('of every command names the program and its --help', async () => {
    for (const command of ['run', 'elect', 'lock', 'drivers', 'fence']) {
      const { code, stderr } = await holdfast(undefined, [command, '--frobnicate']);
      assert.equal(code, 64);
      assert.equal(stderr, `holdfast ${command}: unrecognized option '--frobnicate'; see holdfast ${command} --help\n`);
    }
  });

  it('of an option without its value names the option, whatever the command', async () => {
    for (const [command, option] of [['verify', '--ledger'], ['backup', '--ledger'], ['sandbox', '--listen'], ['lab race', '--users'], ['lab locks', '--ttl'], ['event list', '--limit']]) {
      const { code, stderr } = await holdfast(undefined, [...command.split(' '), option]);
      assert.equal(code, 64);
      assert.equal(stderr, `holdfast ${command}: option '${option}' requires an argument; see holdfast ${command} --help\n`);
    }
  });
});

it('memory: works, and warns that it excludes no other process', async () => {
  const { code, stdout, stderr } = await run('memory:', ['alone', '--', 'echo', 'ran']);
  assert.equal(code, 0);
  assert.equal(stdout, 'ran\n');
  assert.match(stderr, /excludes no other process/);
  const elect = await holdfast('memory:', ['elect', 'alone', '--', '/no/such/command']);
  assert.equal(elect.code, 127);
  assert.match(elect.stderr, /excludes no other process/);
});

it('memory: refuses a lease for a script, which would end with `lock get`', async () => {
  for (const verb of [['get', 'x'], ['ls'], ['show', 'x']]) {
    const { code, stdout, stderr } = await holdfast('memory:', ['lock', ...verb]);
    assert.deepEqual([code, stdout], [64, ''], verb.join(' '));
    assert.match(stderr, /^holdfast lock: memory: exists in this process only, and ends with it/);
  }
});

describe('an unreachable coordinator: 69', { concurrency: 4 }, () => {
  let redis, hole;
  before(async () => {
    redis = await startRedis('--requirepass', 'secret word');
    // Accepts connections and never answers.
    hole = net.createServer(() => {});
    await new Promise((resolve) => hole.listen(0, '127.0.0.1', resolve));
    hole.unref();
  });
  after(async () => { hole.close(); await redis.stop(); });

  it('a closed port', async () => {
    await refuses(69, /refused/i, ['name', ...touch], `redis://127.0.0.1:${await freePort()}`);
  });

  it('a host that never answers, within its timeout', async () => {
    const { ms } = await refuses(69, /./, ['--timeout', '500ms', 'name', ...touch], `redis://127.0.0.1:${hole.address().port}`);
    assertTook(ms, 20_000, 'the failure');
    // No network routes this address.
    const lost = await refuses(69, /./, ['--timeout', '500ms', 'name', ...touch], 'redis://192.0.2.1');
    assertTook(lost.ms, 20_000, 'the failure');
  });

  it('a host name that does not exist', async () => {
    await refuses(69, /./, ['--timeout', '1s', 'name', ...touch], 'redis://no-such-host.invalid');
  });

  it('a wrong password and a missing one', async () => {
    const { port } = redis;
    const { stderr } = await refuses(69, /./, ['name', ...touch], `redis://:wrong-word@127.0.0.1:${port}`);
    assert.doesNotMatch(stderr, /wrong-word/);
    await refuses(69, /./, ['name', ...touch], redis.url);
    const good = await run(`redis://:secret%20word@127.0.0.1:${port}`, ['name', '--', 'true']);
    assert.equal(good.code, 0, good.stderr);
    const socket = await refuses(69, /password/, ['name', ...touch], `unix://:wrong-word@${redis.socket}`);
    assert.doesNotMatch(socket.stderr, /wrong-word/);
    await refuses(69, /NOAUTH/, ['name', ...touch], `unix:${redis.socket}`);
    const behind = await run(`unix://:secret%20word@${redis.socket}?db=2`, ['name', '--', 'true']);
    assert.equal(behind.code, 0, behind.stderr);
  });

  it('a file that cannot be created', async () => {
    await refuses(69, /./, ['name', ...touch], 'sqlite:/no/such/directory/locks.db');
  });

  it('for every command', async () => {
    const where = `redis://127.0.0.1:${await freePort()}`;
    for (const args of [['lock', 'ls'], ['lock', 'get', 'x'], ['elect', 'x', '--', 'true']]) {
      assert.equal((await holdfast(where, args)).code, 69, args.join(' '));
    }
  });

  it('does not show passwords in ps', async () => {
    const secret = `redis://:secret%20word@127.0.0.1:${redis.port}`;
    const inEnvironment = await beginRun(secret, ['ps-1'], 'read line', { input: null });
    const onCommandLine = await beginRun(undefined, ['--lock', secret, 'ps-2'], 'read line', { input: null });
    const socket = `unix://:secret%20word@${redis.socket}`;
    const ofSocket = await beginRun(undefined, [`--lock=${socket}`, 'ps-3'], 'read line', { input: null });
    for (const { pid } of [inEnvironment, onCommandLine, ofSocket]) {
      const family = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
      for (const member of [pid, ...family]) {
        const line = fs.readFileSync(`/proc/${member}/cmdline`, 'utf8');
        assert.ok(line.length > 0);
        assert.doesNotMatch(line, /secret/);
      }
    }
    for (const wrapper of [inEnvironment, onCommandLine, ofSocket]) {
      wrapper.child.stdin.end('\n');
      assert.equal((await wrapper.result).code, 0);
    }
  });
});
