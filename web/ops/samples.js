// The last hour of the server's own samples (GET /v1/ops/samples), kept up by asking only for what is new.

const HOUR_MS = 3_600_000;

// Appends what an answer has to what is kept.  A series that appears later, such as the jobs of a kind that had none,
// is null before; one that is not in the answer is null from then on.
function append(kept, kept_n, fresh, fresh_n) {
  for (const name of new Set([...Object.keys(kept), ...Object.keys(fresh)])) {
    const before = kept[name];
    const after = fresh[name];
    const nested = (value) => value && !Array.isArray(value);
    if (nested(before) || nested(after)) {
      kept[name] = before ?? {};
      append(kept[name], kept_n, after ?? {}, fresh_n);
    } else {
      kept[name] = [...(before ?? Array(kept_n).fill(null)), ...(after ?? Array(fresh_n).fill(null))];
    }
  }
}

function drop(series, n) {
  for (const [name, values] of Object.entries(series)) {
    if (Array.isArray(values)) series[name] = values.slice(n);
    else drop(values, n);
  }
}

export class Samples {
  at = []; // when each sample was taken, in milliseconds of the server's clock
  series = {}; // arrays as long as `at`, or objects of them by kind

  #reading = null;

  // Reads what is new.  `call` makes the request.  Callers that come while an answer is awaited get that answer.
  read(call) {
    this.#reading ??= this.#read(call).finally(() => { this.#reading = null; });
    return this.#reading;
  }

  async #read(call) {
    const last = this.at.at(-1);
    const answer = await call('GET', `/v1/ops/samples${last ? `?after=${last}` : ''}`);
    append(this.series, this.at.length, answer.series, answer.at.length);
    this.at.push(...answer.at);
    const old = this.at.findIndex((at) => at > answer.now_ms - HOUR_MS);
    const n = old < 0 ? this.at.length : old;
    if (n > 0) {
      this.at = this.at.slice(n);
      drop(this.series, n);
    }
    return answer;
  }

  // The values of a series; `kind` for those that are told apart by kind.
  values(name, kind = null) {
    const series = kind === null ? this.series[name] : this.series[name]?.[kind];
    return Array.isArray(series) ? series : [];
  }

  kinds(name) {
    const series = this.series[name];
    return series && !Array.isArray(series) ? Object.keys(series).sort() : [];
  }
}

// The value of the last sample; null if nothing is known of that moment.
export const latest = (values) => values.at(-1) ?? null;

export function largest(values) {
  let most = null;
  for (const value of values) if (value !== null && value !== undefined && (most === null || value > most)) most = value;
  return most;
}
