// `holdfast doctor`: what a lock on a coordinator is worth.
// backends: own

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { holdfast, json, PATIENCE, run, sqliteLocks } from '../support/cli.mjs';
import { coordinators, PASSWORD } from '../support/coordinators.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { until } from '../support/process.mjs';
import { startProxy } from '../support/proxy.mjs';
import { startRedis } from '../support/redis.mjs';
import { freePort, reap } from '../support/server.mjs';

const locks = sqliteLocks();
const doctor = (url, ...args) => holdfast(undefined, ['doctor', ...args, url]);

// The lock that it tries has a TTL of 3 s.  If the machine stood still for longer, the examination is repeated.
async function patiently(url, ...args) {
  for (let tries = 4; ; tries--) {
    const made = await doctor(url, ...PATIENCE, ...args);
    if (tries === 1 || !/rights.*cannot be (renewed|released)/.test(made.stdout)) return made;
  }
}

async function examination(url, ...args) {
  const { code, stdout, stderr } = await patiently(url, '--json', ...args);
  assert.equal(stderr, '');
  const report = JSON.parse(stdout);
  assert.equal(report.object, 'examination');
  assert.equal(code, ['warning', 'danger'].includes(report.grade) ? 1 : 0);
  const order = ['good', 'note', 'warning', 'danger'];
  for (const { grade, topic, text } of report.findings) {
    assert.ok(order.indexOf(grade) <= order.indexOf(report.grade) && order.includes(grade), grade);
    assert.ok(topic && /^\S.*\S$/s.test(text), `${topic}: ${text}`);
  }
  return { ...report, of: (topic) => report.findings.filter((finding) => finding.topic === topic) };
}

describe('holdfast doctor', () => {
  let redis, postgres;
  before(async () => { [redis, postgres] = [await startRedis(), await startPostgres()]; });
  after(async () => { await Promise.all([redis.stop(), postgres.stop()]); });
  after(reap);
  const urls = { memory: () => 'memory:', sqlite: () => locks.url, redis: () => redis.url, postgres: () => postgres.url() };

  for (const name of ['redlock', 'etcd', 'zookeeper']) {
    it(`tries a lock and measures exchanges: ${name}`, async () => {
      const row = coordinators[name], server = await row.start();
      const url = row.url(server.ports, `${row.user}:${PASSWORD}`);
      // Of a Redlock whose servers have just started, a run waits until a majority may be used, and the last one follows.
      await run(url, [...(row.options ?? []), 'ready', '--', 'true']);
      const report = await until('every server has a vote', async () => {
        const seen = await examination(url);
        return seen.of('restarts').every(({ grade }) => grade === 'good') && seen;
      });
      assert.equal(report.driver, name);
      assert.ok(report.of('rights').some(({ grade, text }) => grade === 'good' && /taken, refused to a second holder/.test(text)), JSON.stringify(report.findings));
      assert.equal(report.of('latency').filter(({ text }) => text.startsWith('An exchange takes')).length, 1);
      if (name === 'redlock') {
        const votes = report.of('restarts').filter(({ text }) => / has a vote in this run$/.test(text));
        assert.deepEqual(votes.map(({ grade, text }) => [grade, text.split(': ')[0]]), server.ports.map((port) => ['good', `127.0.0.1:${port}`]), JSON.stringify(report.findings));
      }
      assert.deepEqual(await json(url, ['lock', 'ls']), []);
      await server.stop();
    });
  }

  it('warns of a Redis that forgets its leases, and of one that may evict them', async () => {
    const forgetful = await examination(redis.url);
    assert.equal(forgetful.of('persistence')[0].grade, 'warning');
    assert.match(forgetful.verdict, /^A lock here is worth less than its driver promises, because of .*persistence/);
    const evicting = await startRedis('--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru');
    const worse = (await examination(evicting.url)).of('eviction')[0].grade;
    assert.ok(['warning', 'danger'].includes(worse), worse);
    await evicting.stop();
    const durable = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
    assert.ok(!['warning', 'danger'].includes((await examination(durable.url)).of('persistence')[0].grade));
    await durable.stop();
  });

  for (const [name, url] of Object.entries(urls)) {
    it(`tries a lock, measures exchanges and leaves no lock behind: ${name}`, async () => {
      const report = await examination(url());
      assert.equal(report.driver, name);
      assert.deepEqual(report.of('rights').filter(({ text }) => /taken, refused to a second holder, renewed and released/.test(text)).map(({ grade }) => grade), ['good']);
      assert.equal(report.of('latency').filter(({ text }) => text.startsWith('An exchange takes')).length, 1);
      assert.ok(report.latency_us.median <= report.latency_us.worst);
      assert.ok(report.survives && report.verdict.endsWith('.'));
      if (name !== 'memory') assert.deepEqual(await json(url(), ['lock', 'ls']), []);
      const { stdout } = await patiently(url());
      assert.match(stdout, /^good {5}rights {7}A lock was taken.*\n/m);
      assert.match(stdout, /^(A lock here is worth|Do not rely on a lock here).*\nSurvives: /m);
    });
  }

  it('takes the coordinator from --lock or the environment, too', async () => {
    assert.match((await holdfast(locks.url, ['doctor', ...PATIENCE])).stdout, /rights/);
    assert.match((await holdfast(undefined, ['doctor', ...PATIENCE, '--lock', locks.url])).stdout, /rights/);
    for (const args of [[], ['--lock', 'memory:', 'memory:'], ['memory:', 'memory:'], ['--frobnicate']]) {
      assert.equal((await holdfast(undefined, ['doctor', ...args])).code, 64, args.join(' '));
    }
  });

  it('notes a coordinator that is far away', async () => {
    const proxy = await startProxy(redis.port);
    proxy.delay(30);
    const report = await examination(`redis://127.0.0.1:${proxy.port}`);
    const { median, worst } = report.latency_us;
    assert.ok(median >= 60_000, `${median}`);
    assert.equal(report.of('latency').at(-1).grade, worst < 1_000_000 ? 'note' : 'warning'); // a busy machine may answer that late
    await proxy.close();
  });

  it('finds that a role may not take locks: danger, 1', async () => {
    redis.cli('ACL', 'SETUSER', 'reader', 'on', '>pw', '~*', '&*', '+@read', '+@connection', '+info', '+config|get', '+time');
    const report = await examination(`redis://reader:pw@127.0.0.1:${redis.port}`);
    assert.equal(report.grade, 'danger');
    assert.ok(report.of('rights').some(({ grade, text }) => grade === 'danger' && /cannot be taken/.test(text)), JSON.stringify(report.findings));
    assert.match(report.verdict, /^Do not rely on a lock here, because of .*rights/);
  });

  it('exits with 69 if the coordinator cannot be opened, with 64 if the URL is none, and shows no password', async () => {
    const port = await freePort();
    for (const [url, code] of [[`redis://:secret@127.0.0.1:${port}`, 69], [`postgres://me:secret@127.0.0.1:${port}/x`, 69],
      ['gopher://me:secret@host', 64], ['redis://me:secret@host:x', 64]]) {
      const result = await doctor(url);
      assert.deepEqual([result.code, result.stdout], [code, ''], result.stderr);
      assert.match(result.stderr, /^holdfast doctor: [^\n]+\n$/);
      assert.doesNotMatch(result.stderr, /secret/);
    }
  });
});
