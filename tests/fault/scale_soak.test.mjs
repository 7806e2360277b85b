// Runs tests/soak/cluster.mjs for HF_SOAK_S seconds (7; `make soak`: 300).
// backends: own

import { after, it } from 'node:test';
import { seed } from '../support/random.mjs';
import { reap } from '../support/server.mjs';
import { soak } from '../soak/cluster.mjs';

const seconds = Number(process.env.HF_SOAK_S || 7);
const clients = seconds > 60 ? 12 : 6;
after(reap);

it(`every acknowledged answer is true after ${seconds} s of killed servers, gates and sessions`, async (t) => {
  await soak({ seconds, seed, clients, say: (line) => t.diagnostic(line) });
});
