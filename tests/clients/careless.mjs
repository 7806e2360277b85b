// A client as many write it: it asks once, at the first server, and has no idempotency keys.  conformance.test.mjs shows
// that the scenarios find it out.  It needs no process of its own.

const clients = new Map();

async function ask([url], method, path, body) {
  const answer = await fetch(url + path, { method, headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) });
  const { code, detail, ...rest } = await answer.json();
  if (answer.ok) return rest;
  throw Object.assign(new Error(detail), { code, status: answer.status });
}

const CALLS = {
  'holds.create': (urls, fields) => ask(urls, 'POST', '/v1/holds', fields),
  'holds.confirm': (urls, { id, ...fields }) => ask(urls, 'POST', `/v1/holds/${id}/confirm`, fields),
  'events.get': (urls, { id }) => ask(urls, 'GET', `/v1/events/${id}`),
};

const operations = {
  client({ name, urls }) { clients.set(name, urls); },
  close_client() {},
  call: ({ client, call, args }) => CALLS[call](clients.get(client), args),
};

export const careless = {
  driver: {
    async ask({ op, ...request }) {
      try {
        return { value: await operations[op](request) ?? null };
      } catch ({ code = null, status = null, message }) {
        return { error: { class: 'HoldfastError', code, status, detail: message, retry_after: null, extra: {} } };
      }
    },
  },
};
