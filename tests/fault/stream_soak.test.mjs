// Runs tests/soak/streams.mjs with 2,000 streams, and with HF_STREAMS if that is set (`make soak`: 50,000).
// backends: own

import { after, describe, it } from 'node:test';
import { reap } from '../support/server.mjs';
import { obstacle, soak } from '../soak/streams.mjs';

after(reap);

describe('many streams of one event', () => {
  for (const streams of new Set([2000, Number(process.env.HF_STREAMS || 2000)])) {
    it(`${streams} streams stay open and see every change`, { skip: obstacle(streams) }, async (t) => {
      await soak({ streams, say: (line) => t.diagnostic(line) });
    });
  }
});
