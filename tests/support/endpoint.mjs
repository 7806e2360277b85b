// A shop's endpoint for notifications.  It runs on a thread of its own: a delivery that is not answered within 15 s twice is
// tried again after five minutes, and a test that sells a house out keeps its own thread busy.
//
//   const endpoint = await startEndpoint(secret, (notice) => { ... });     // called once for each notification
//   await endpoint.caughtUp();     // what was delivered before is known now
//   endpoint.notices               // Map: webhook-id -> { type, booking (or another thing that it is about), times }
//   endpoint.wrong                 // bodies whose signatures are wrong
//   await endpoint.stop();

import { createHmac } from 'node:crypto';
import http from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

export async function startEndpoint(secret, onNotice) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { secret } });
  const notices = new Map();
  const wrong = [];
  const waiting = []; // for the answers to `ask`, which come in the order of the questions
  let failure; // of the thread
  const take = {
    answer: (port) => waiting.shift().resolve(port),
    wrong: (body) => wrong.push(body),
    told: ({ id, type, booking }) => {
      const notice = notices.get(id) ?? { type, booking, times: 0 };
      notice.times++;
      notices.set(id, notice);
      if (notice.times === 1) onNotice(notice);
    },
  };
  worker.on('message', ([what, value]) => take[what](value));
  worker.on('error', (error) => {
    failure = error;
    for (const { reject } of waiting.splice(0)) reject(error);
  });
  const ask = () => new Promise((resolve, reject) => {
    if (failure) return reject(failure);
    waiting.push({ resolve, reject });
    return worker.postMessage('port');
  });
  const url = `http://127.0.0.1:${await ask()}/notices`;
  return { notices, wrong, url, caughtUp: ask, stop: () => worker.terminate() };
}

// ---- on the thread ----

if (!isMainThread && workerData?.secret) {
  const tell = (what, value) => parentPort.postMessage([what, value]);
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = request.headers;
      const code = createHmac('sha256', workerData.secret).update(`${id}.${at}.${body}`).digest('base64');
      if (!signature.split(' ').includes(`v1,${code}`)) tell('wrong', body);
      const { type, data } = JSON.parse(body);
      tell('told', { id, type, booking: data?.id });
      response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1', () => parentPort.on('message', () => tell('answer', server.address().port)));
}
