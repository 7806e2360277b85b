// The coordinators that the history is made on: how each is started, which faults its locks must survive, and
// which ones its driver declares that they do not (hf_driver_info.overlaps).

import path from 'node:path';
import { startEtcd } from '../support/etcd.mjs';
import { SteppedClock } from '../support/faketime.mjs';
import { startPostgres } from '../support/postgres.mjs';
import { tempDir } from '../support/process.mjs';
import { startProxy } from '../support/proxy.mjs';
import { startRedis } from '../support/redis.mjs';
import { startZookeeper } from '../support/zookeeper.mjs';

const REDIS_KEEPS = ['--appendonly', 'yes', '--appendfsync', 'always'];

async function redisWithClock(...args) {
  const redis = await startRedis(...args);
  redis.clock = new SteppedClock(redis.dir);
  redis.env = redis.clock.env;
  await redis.restart();
  return redis;
}

// What every coordinator behind a socket has: a server, and a proxy between it and the workers.
async function behindProxy(server, url, options) {
  const proxy = await startProxy(server.port, options);
  return {
    url: url(proxy.port),
    survives: {
      'kill the server': async () => {
        if (server.crash) await server.crash();
        await server.restart();
      },
      'pause the server': async (rest) => { server.pause(); await rest(); server.resume(); },
      'cut connections': async (rest) => { proxy.cut(); await rest(); proxy.restore(); },
      'swallow messages': async (rest) => { proxy.blackhole(); await rest(); proxy.restore(); },
    },
    declared: {},
    close: async () => { await proxy.close(); await server.stop(); },
  };
}

export const coordinators = {
  memory: { ttlMs: 400, threads: 4, processes: 1, start: async () => ({ url: 'memory:', survives: {}, declared: {}, close: async () => {} }) },

  sqlite: {
    ttlMs: 400,
    start: async () => ({ url: `sqlite:${path.join(tempDir(), 'locks.db')}`, survives: {}, declared: {}, close: async () => {} }),
  },

  redis: {
    ttlMs: 400,
    start: async () => {
      const server = await redisWithClock(...REDIS_KEEPS);
      const made = await behindProxy(server, (port) => `redis://127.0.0.1:${port}`);
      made.declared['restart the server empty'] = async () => { server.cli('FLUSHALL'); await server.restart(); };
      made.declared['step the clock'] = async (rest, random) => server.clock.step(random(17) - 8);
      return made;
    },
  },

  postgres: {
    ttlMs: 400,
    start: async () => {
      const clock = new SteppedClock(tempDir());
      const server = await startPostgres({ env: clock.env });
      const made = await behindProxy(server, (port) => `postgres://holdfast@127.0.0.1:${port}/postgres`, { postgres: true });
      delete made.survives['pause the server']; // it is many processes
      // A clock that is set back must do no harm; one that is set forward ends leases early.
      made.survives['set the clock back'] = async () => clock.step(-2);
      made.declared['step the clock'] = async (rest, random) => clock.step(random(17) - 8);
      return made;
    },
  },

  redlock: {
    ttlMs: 600,
    start: async () => {
      const servers = await Promise.all([1, 2, 3].map(() => redisWithClock()));
      const proxies = await Promise.all(servers.map(({ port }) => startProxy(port)));
      const one = (random) => random(servers.length);
      return {
        url: `redlock://${proxies.map(({ port }) => `127.0.0.1:${port}`).join(',')}?max_ttl=2s`,
        survives: {
          'restart one server empty': async (rest, random) => servers[one(random)].restart(),
          'pause one server': async (rest, random) => {
            const server = servers[one(random)];
            server.pause();
            await rest();
            server.resume();
          },
          'cut one server off': async (rest, random) => {
            const proxy = proxies[one(random)];
            proxy.cut();
            await rest();
            proxy.restore();
          },
          'swallow all messages': async (rest) => {
            for (const proxy of proxies) proxy.blackhole();
            await rest();
            for (const proxy of proxies) proxy.restore();
          },
        },
        declared: { 'step the clock of one server': async (rest, random) => servers[one(random)].clock.step(random(17) - 8) },
        close: async () => {
          await Promise.all(proxies.map((proxy) => proxy.close()));
          await Promise.all(servers.map((server) => server.stop()));
        },
      };
    },
  },

  etcd: {
    ttlMs: 2000,
    start: async () => behindProxy(await startEtcd(), (port) => `etcd://127.0.0.1:${port}`),
  },

  zookeeper: {
    ttlMs: 1500,
    start: async () => behindProxy(await startZookeeper(), (port) => `zookeeper://127.0.0.1:${port}`),
  },
};
