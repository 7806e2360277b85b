// The load generators, and the few HTTP requests that prepare and check a run.  Every run is limited in time
// and ends with numbers, or with an error that says what was wrong.

import { spawn } from 'node:child_process';
import { get } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));

const running = new Set();

export function stopLoads() {
  for (const child of running) child.kill('SIGKILL');
}

// Starts a process that stopLoads ends.
export function start(command, args, options) {
  const child = spawn(command, args, options);
  running.add(child);
  child.once('close', () => running.delete(child));
  return child;
}

export function run(command, args, timeoutMs) {
  return new Promise((done, fail) => {
    const child = start(command, args,
      { stdio: ['ignore', 'pipe', 'pipe'], timeout: timeoutMs, killSignal: 'SIGKILL' });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text) => { out += text; });
    child.stderr.setEncoding('utf8').on('data', (text) => { err += text; });
    child.once('error', (error) => fail(new Error(`${command}: ${error.message}`)));
    child.once('close', (code, signal) => {
      if (code === 0) done(out);
      else fail(new Error(`${command} ended with ${signal ?? code}\n${err || out}`));
    });
  });
}

export const WRK_THREADS = 2;

// Resolves to { requests, per_second, refused (status 400 and above), p50_us, p99_us, max_us, counted_ms }
export async function wrk(url, script, args, { connections = 64, threads = WRK_THREADS, seconds }) {
  const out = await run('wrk', ['-t', threads, '-c', connections, '-d', `${seconds}s`,
    '--timeout', '10s', '-s', here(script), url, '--', ...args].map(String),
  seconds * 1000 + 30_000);
  const line = out.match(/^JSON (.*)$/m);
  if (!line) throw new Error(`wrk said nothing of use:\n${out}`);
  const result = JSON.parse(line[1]);
  if (result.failed) throw new Error(`wrk: ${result.failed} requests failed or timed out\n${out}`);
  result.per_second = result.requests / (result.duration_us / 1e6);
  return result;
}

// Buyers who complete checkouts (bench/buyers.c); `options` are those of the program.  Resolves to { requests (all
// that were completed), in_time, per_second, missed, and p50, p99 and maximum of all, hold, booking and webhook }.
export async function buyers(bench, server, events, shape, options) {
  const named = Object.entries(options).map(([name, value]) => `${name}=${value}`);
  const out = await run(join(bench.tools, 'buyers'), [new URL(server.url).port, events.join(','),
    shape.sections, shape.rows, shape.seats, ...named].map(String), options.seconds * 1000 + 30_000);
  return JSON.parse(out);
}

// One client thread: Redis answers more requests with one than with two (measured).
export async function redisBenchmark(port, requests) {
  const out = await run('redis-benchmark', ['-h', '127.0.0.1', '-p', port, '-c', 64, '-P', 1,
    '-n', requests, '--csv', 'SET', 'seat', 'buyer', 'NX', 'PX', 480_000].map(String), 120_000);
  const perSecond = Number(out.trim().split('\n').pop().split('","')[1]);
  if (!(perSecond > 0)) throw new Error(`redis-benchmark said nothing of use:\n${out}`);
  return { requests, per_second: perSecond };
}

export async function pgbench(server, seconds, first) {
  const out = await run('pgbench', [...server.client, '-n', '-c', '32', '-j', '2', '-M', 'prepared',
    '-T', String(seconds), '-D', 'clients=32', '-D', 'turn=-1', '-D', `first=${first}`,
    '-f', here('hold.pgbench'), 'postgres'], seconds * 1000 + 30_000);
  const requests = Number(out.match(/actually processed: (\d+)/)?.[1]);
  const perSecond = Number(out.match(/^tps = ([\d.]+)/m)?.[1]);
  if (!(perSecond > 0)) throw new Error(`pgbench said nothing of use:\n${out}`);
  return { requests, per_second: perSecond };
}

// ---- our API ----

export async function post(url, path, body, headers = {}) {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(120_000),
  });
  const text = await answer.text();
  return { status: answer.status, text, type: answer.headers.get('content-type') };
}

export async function expectPost(status, url, path, body, headers) {
  const answer = await post(url, path, body, headers);
  if (answer.status !== status) {
    throw new Error(`POST ${path}: ${answer.status}, not ${status}: ${answer.text}`);
  }
  return answer;
}

// Resolves to the whole answer, head and body, as it came over the wire.
export async function rawPost(url, path, body) {
  const text = JSON.stringify(body);
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.setTimeout(10_000, () => socket.destroy(new Error(`POST ${path}: no answer`)));
  socket.write(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n`
    + `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  let answer = Buffer.alloc(0);
  for await (const data of socket) {
    answer = Buffer.concat([answer, data]);
    const headLen = answer.indexOf('\r\n\r\n') + 4;
    const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(answer.toString('latin1', 0, headLen))?.[1];
    if (length && answer.length >= headLen + Number(length)) break;
  }
  return answer;
}

// Resolves to the bytes of a body as they came over the wire; fetch would decompress them.
export function fetchBytes(url, headers) {
  return new Promise((done, fail) => {
    get(url, { headers }, (answer) => {
      let bytes = 0;
      answer.on('data', (data) => { bytes += data.length; });
      answer.on('end', () => done(bytes));
    }).on('error', fail);
  });
}

// A shape is { sections, rows, seats }: the number of sections, of rows per section, of seats per row.
export const seatsOf = (shape) => shape.sections * shape.rows * shape.seats;

export async function createEvent(url, shape, more = {}) {
  const sections = Array.from({ length: shape.sections },
    (_, i) => ({ name: `S${i + 1}`, price: 5000, rows: shape.rows, seats_per_row: shape.seats }));
  const event = { name: 'Bench', currency: 'usd', sections, ...more };
  const answer = await expectPost(201, url, '/v1/events', event);
  return JSON.parse(answer.text).id;
}

export async function createEvents(url, shape, n) {
  const ids = [];
  while (ids.length < n) ids.push(await createEvent(url, shape));
  return ids;
}

// Reads /metrics; resolves to a function: read(name, { label: value ... }) is the sum of the matching samples.
export async function metrics(url) {
  const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(30_000) });
  const samples = [...(await answer.text()).matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)]
    .map(([, name, labels = '', value]) => ({ name, labels: `,${labels},`, value: Number(value) }));
  return (name, want = {}) => {
    const labels = Object.entries(want).map(([label, value]) => `,${label}="${value}",`);
    return samples.filter((s) => s.name === name && labels.every((l) => s.labels.includes(l)))
      .reduce((sum, s) => sum + s.value, 0);
  };
}

// Runs `load`; resolves to its result, the CPU it cost the server, and the growth of a metric.
export async function measured(server, load) {
  const ours = server.name === 'holdfastd';
  const before = ours && await metrics(server.url);
  const cpu = server.cpuUs();
  const result = await load();
  await server.backendsEnded?.();
  result.cpu_us = (server.cpuUs() - cpu) / result.requests;
  if (ours) {
    const after = await metrics(server.url);
    result.grew = (...metric) => after(...metric) - before(...metric);
  }
  return result;
}
