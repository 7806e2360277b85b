// `holdfast cell`: what it shows of a lock service, on one server over SQLite and on three over etcd, and how it hands over.
// backends: own
// time limit: 300 s

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { startCell } from '../support/cell.mjs';
import { begin, freePort, holdfast } from '../support/cli.mjs';
import { IDLE_MS, reap, Server, until } from '../support/server.mjs';

const ADMIN = 'an-admin-key-for-the-cell';
const SELLER = 'a-seller-key-for-the-cell';
const seller = { Authorization: `Bearer ${SELLER}` };
const urlOf = ({ host, port }) => `http://${host}:${port}`;

const cellCommand = (server, args, env = {}) => holdfast(undefined, ['cell', ...args], { env: { HOLDFAST_SERVER: urlOf(server), ...env } });
async function status(server, args = [], env = {}) {
  const { code, stdout, stderr } = await cellCommand(server, ['status', ...args], env);
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '');
  return stdout;
}

// A client of the lock service at one server.
class Locker {
  static #owners = 0;

  static async open(server, label, headers = {}) {
    const locker = new Locker();
    Object.assign(locker, { server, headers, agent: new http.Agent({ keepAlive: true, timeout: IDLE_MS, maxSockets: 512 }), waits: [] });
    locker.session = (await locker.ok('/v1/sessions', { ttl_ms: 600_000, label })).id;
    return locker;
  }

  async ok(target, body) {
    const answer = await this.server.request('POST', target, body, this.headers, { agent: this.agent });
    assert.ok(answer.status < 300, answer.text);
    return answer.json;
  }

  take(name, fields = {}) { return this.ok(`/v1/locks/${encodeURIComponent(name)}`, { session: this.session, owner: (++Locker.#owners).toString(16), ...fields }); }

  // Begins to wait, and resolves when the line has the waiter.  The agent is another each time, so nobody waits for itself.
  async wait(name, fields = {}) {
    const agent = `${Locker.#owners}`;
    this.waits.push(this.take(name, { wait_ms: 60_000, agent, ...fields }).catch(() => {}));
    const target = `/v1/locks/${encodeURIComponent(name)}`;
    const expected = (this.expected ??= new Map());
    expected.set(name, (expected.get(name) ?? 0) + 1);
    await until(`somebody waits for ${name}`, async () => (await this.server.get(target, this.headers)).json.n_waiters >= expected.get(name));
  }

  async close() {
    const answer = await this.server.request('DELETE', `/v1/sessions/${this.session}`, undefined, this.headers, { agent: this.agent });
    assert.equal(answer.status, 204, answer.text);
    await Promise.all(this.waits);
    this.agent.destroy();
  }
}

after(reap);

describe('cell status of one server', () => {
  let server;
  before(async () => {
    server = new Server({ args: ['--pages', 'off', '--payments', 'off'] });
    await server.launch();
  });
  after(() => server.stop());

  it('names the only server as the master, and says that nobody waits', async () => {
    const ann = await Locker.open(server, 'ann');
    await ann.take('nightly');
    assert.match(await status(server), new RegExp(`^The master is ${urlOf(server)} \\(epoch 1\\)\\. The journal is in sqlite\\.
1 session, 1 lock held, 0 waiters\\.

url +role +index +lag
${urlOf(server)} +master +\\d+ +0

Nobody waits for a lock\\.\n$`));
    await ann.close();
  });

  it('shows the names that most wait for, and the longest waits with what each waits for', async () => {
    const [ann, ben] = [await Locker.open(server, 'ann'), await Locker.open(server, 'ben')];
    await ann.take('quiet');
    await ann.take('busy');
    await ann.take('payments/eu');
    await ben.wait('payments');
    await ben.wait('quiet');
    for (let i = 0; i < 3; i++) await ben.wait('busy');
    const text = await status(server);
    assert.match(text, /^2 sessions, 3 locks held, 5 waiters\.$/m);
    const [, busiest] = /^most awaited +waiters +holders +held by\n([^]*?)\n\n/m.exec(text);
    assert.deepEqual(busiest.split('\n').map((line) => line.split(/ {2,}/)),
      [['busy', '3', '1', 'ann'], ['payments', '1', '0', '-'], ['quiet', '1', '1', 'ann']]);
    const [, waits] = /^longest waits +waiter +waited +waits for\n([^]*)$/m.exec(text);
    const rows = waits.trimEnd().split('\n').map((line) => line.split(/ {2,}/));
    assert.deepEqual(rows.map(([name, waiter, , what]) => [name, waiter, what]), [['payments', 'ben', 'payments/eu (ann)'],
      ['quiet', 'ben', 'ann'], ['busy', 'ben', 'ann'], ['busy', 'ben', 'ann, ben'], ['busy', 'ben', 'ann, ben, and 1 more']]);
    for (const [, , waited] of rows) assert.match(waited, /^\d+ (ms|s|min)$/);

    const { cell, busiest: list, waits: longest, is_cut: isCut } = JSON.parse(await status(server, ['--json']));
    assert.deepEqual([cell.master.url, cell.sessions, cell.held, cell.waiting, isCut], [urlOf(server), 2, 3, 5, false]);
    assert.deepEqual(list.map(({ name, n_waiters: n }) => [name, n]), [['busy', 3], ['payments', 1], ['quiet', 1]]);
    assert.ok(longest.length === 5 && longest.every(({ waited_ms: ms }, i) => ms <= (longest[i - 1]?.waited_ms ?? Infinity)));
    await ben.close();
    await ann.close();
  });

  it('finds the busiest name behind the first page', async () => {
    const [ann, ben] = [await Locker.open(server, 'ann'), await Locker.open(server, 'ben')];
    const names = Array.from({ length: 130 }, (_, n) => `n-${String(n).padStart(3, '0')}`);
    await Promise.all(names.map((name) => ann.take(name)));
    await Promise.all(names.map((name) => ben.wait(name)));
    await ben.wait('n-129');
    const text = await status(server);
    assert.match(text, /held by\nn-129 +2 +1 +ann\n/);
    assert.equal(text.match(/^n-\d+ /gm).length, 20, 'ten of each list');
    await ben.close();
    await ann.close();
  });

  it('is refused without a server, without the lock service, and without a key', async () => {
    const lost = await cellCommand({ host: '127.0.0.1', port: await freePort() }, ['status']);
    assert.equal(lost.code, 69);
    assert.match(lost.stderr, /^holdfast cell status: .*connect/i);
    const off = new Server({ args: ['--journal', 'off', '--pages', 'off'] });
    await off.launch();
    const none = await cellCommand(off, ['status']);
    assert.equal(none.code, 2, none.stderr);
    await off.stop();
    for (const args of [[], ['statu'], ['status', 'x'], ['transfer', '--watch']]) assert.equal((await cellCommand(server, args)).code, 64, `${args}`);
  });

  it('needs a seller\'s key where there are keys, and transfer an admin\'s', async () => {
    const keyed = new Server({ args: ['--pages', 'off', '--payments', 'off'], env: { HOLDFAST_ADMIN_KEY: ADMIN, HOLDFAST_SELLER_KEY: SELLER } });
    await keyed.launch();
    assert.equal((await cellCommand(keyed, ['status'])).code, 77);
    const ann = await Locker.open(keyed, 'ann', seller);
    await ann.take('nightly');
    await ann.wait('nightly');
    assert.match(await status(keyed, [], { HOLDFAST_KEY: SELLER }), /^nightly +1 +1 +ann$/m);
    assert.equal((await cellCommand(keyed, ['transfer'], { HOLDFAST_KEY: SELLER })).code, 77);
    await ann.close();
    const alone = await cellCommand(keyed, ['transfer'], { HOLDFAST_KEY: ADMIN });
    assert.equal(alone.code, 1, alone.stderr);
    assert.match(alone.stderr, /409 no_standby/);
    await keyed.stop();
  });

  it('says that there is no master, and exits with 69, while the journal has never answered', async () => {
    const port = await freePort();
    const waiting = new Server({ args: ['--journal', `etcd://127.0.0.1:${port}`, '--pages', 'off', '--payments', 'off'] });
    await waiting.launch();
    const { code, stdout, stderr } = await cellCommand(waiting, ['status', '--timeout', '20s']);
    assert.equal(code, 69, stderr);
    assert.match(stdout, /^There is no master, so nothing is granted \(epoch 0\)\./);
    assert.match(stdout, /^The journal does not answer http/m);
    assert.equal(stderr, 'holdfast cell status: the cell has no master\n');
    await waiting.stop();
  });
});

describe('a cell of three servers', () => {
  let cell;
  // On a busy machine a master may stand still for seconds, and must not be replaced for that.
  before(async () => { cell = await startCell('etcd', { timeout: '10s' }); });
  after(() => cell.close());
  const urlFor = ({ proxy }) => `http://127.0.0.1:${proxy.port}`;
  // The servers that follow the master, once all of them have heard of it.
  const standbys = async () => {
    const master = await cell.master();
    const others = cell.servers.filter((server) => server !== master);
    await until('they follow it', async () => (await Promise.all(others.map((server) => server.get('/v1/cell')))).every(({ json }) => json.master?.url === urlFor(master)));
    return others;
  };

  it('shows all of its servers, and the waits that the master knows, through any of them', async () => {
    const master = await cell.master();
    const ann = await Locker.open(master, 'ann');
    await ann.take('nightly');
    await ann.wait('nightly');
    const [standby] = await standbys();
    const { cell: shown, waits } = await until('every server has reported', async () => {
      const picture = JSON.parse(await status(standby, ['--json']));
      return picture.cell.servers.length === 3 ? picture : undefined;
    });
    assert.deepEqual(shown.servers.map(({ url }) => url).sort(), cell.servers.map(urlFor).sort());
    assert.deepEqual(shown.servers.filter(({ role }) => role === 'master').map(({ url }) => url), [urlFor(master)]);
    assert.ok(waits.length === 1 && waits[0].waited_ms >= 0, JSON.stringify(waits));
    assert.match(await status(standby), new RegExp(`^The master is ${urlFor(master)} \\(epoch \\d+\\)\\. The journal is in etcd\\.$`, 'm'));
    await ann.close();
  });

  it('shows what a standby knows if the master cannot be reached from here', async () => {
    const master = await cell.master();
    const [standby] = await standbys();
    const ann = await Locker.open(master, 'ann');
    await ann.take('nightly');
    await ann.wait('nightly');
    await until('the standby has it', async () => (await standby.get('/v1/locks/nightly?stale=true')).json.n_waiters === 1);
    master.proxy.cut();
    const text = await status(standby, ['--timeout', '20s']);
    master.proxy.restore();
    assert.match(text, /^nightly +1 +1 +ann$/m);
    assert.match(text, /^nightly +ann +- +ann$/m);
    assert.match(text, /^A standby was asked; only the master knows how long waits have lasted\.$/m);
    master.proxy.cut();
    const own = await status(master, ['--timeout', '20s']);
    master.proxy.restore();
    assert.match(own, /^nightly +ann +\d+ (ms|s) +ann$/m, 'the master itself was asked, at an address that it does not announce');
    assert.doesNotMatch(own, /standby was asked/);
    await ann.close();
  });

  it('transfer hands over to another server, at a larger epoch, and no lock is lost', async () => {
    const master = await cell.master();
    const { epoch } = (await master.get('/v1/cell')).json;
    const ann = await Locker.open(master, 'ann');
    const { fence } = await ann.take('kept');
    const [standby] = await standbys();
    // A standby that stood still for a while is not handed over to.
    const { code, stdout, stderr } = await until('a standby has reported lately', async () => {
      const result = await cellCommand(standby, ['transfer']);
      return /no_standby/.test(result.stderr) ? undefined : result;
    });
    assert.equal(code, 0, stderr);
    const [, url, after_, before_] = /^(\S+) is the master now \(epoch (\d+)\); before, it was (\S+)\.\n$/.exec(stdout);
    assert.equal(before_, urlFor(master));
    assert.notEqual(url, before_);
    assert.ok(Number(after_) > epoch);
    const next = await cell.master();
    assert.deepEqual((await next.get('/v1/locks/kept')).json.holders.map((holder) => holder.fence), [fence]);
    ann.server = next;
    await ann.close();
  });

  it('status --watch goes on when the server that it asks is killed', async () => {
    const master = await cell.master();
    const watch = begin(undefined, ['cell', 'status', '--watch'], { env: { HOLDFAST_SERVER: urlOf(master) } });
    await until('a picture of all', () => new RegExp(`^The master is ${urlFor(master)} [^]*(http\\S+ +(master|standby) .*\n){3}`, 'm').test(watch.stdout) || watch.ended);
    assert.equal(watch.ended, null, watch.stderr);
    const { length } = watch.stdout;
    await master.kill9();
    await until('a picture with another master', () => {
      const [, url] = /^The master is (\S+) /m.exec(watch.stdout.slice(length).split('\n\nThe master').at(-1).replace(/^ is/, 'The master is')) ?? [];
      return (url && url !== urlFor(master)) || watch.ended;
    });
    assert.equal(watch.ended, null, watch.stderr);
    watch.child.kill('SIGINT');
    assert.equal((await watch.result).signal, 'SIGINT');
    await master.launch();
  });
});
