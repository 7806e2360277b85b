// A real Prometheus for one test, on a free port, which scrapes some servers, and programs that take locks, twice a second.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort, launch, tempDir, until } from './process.mjs';

// `servers` and `programs` are the addresses to scrape, as HOST:PORT; `rules` is the path of a file of rules.
export async function startPrometheus(servers, programs, rules) {
  const dir = tempDir();
  const url = `http://127.0.0.1:${await freePort()}`;
  const config = {
    global: { scrape_interval: '500ms', evaluation_interval: '500ms' },
    rule_files: [rules],
    scrape_configs: [{ job_name: 'holdfast', static_configs: [{ targets: servers }] }, { job_name: 'programs', static_configs: [{ targets: programs }] }],
  };
  const file = path.join(dir, 'prometheus.yml');
  writeFileSync(file, JSON.stringify(config)); // which is YAML, too
  const run = launch('prometheus', [`--config.file=${file}`, `--storage.tsdb.path=${path.join(dir, 'data')}`,
    `--web.listen-address=${new URL(url).host}`, '--log.level=warn']);
  await until('Prometheus is ready', async () => {
    if (run.ended) throw new Error(run.stderr);
    return fetch(`${url}/-/ready`).then(({ ok }) => ok, () => false);
  });
  return {
    url,
    // Resolves to the values that the expression has now, as numbers.
    async query(expression) {
      const answer = await fetch(`${url}/api/v1/query`, { method: 'POST', body: new URLSearchParams({ query: expression }) });
      const { status, error, data } = await answer.json();
      if (status !== 'success') throw new Error(`${expression}: ${error}`);
      return data.result.map(({ value }) => Number(value[1]));
    },
    async stop() {
      run.child.kill('SIGKILL');
      await run.done;
    },
  };
}
