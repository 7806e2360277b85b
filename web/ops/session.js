// The reader's key and what it may do.  The key stays in the sessionStorage of this tab and goes nowhere but into the
// Authorization header of requests to this server.

import { call, Problem } from '../lib/api.js';

const STORED = 'holdfast-ops-key';

export class Session {
  #key = sessionStorage.getItem(STORED);
  #offsetMs = 0; // the server's clock minus this one
  access = null; // 'admin' or 'seller', once known
  hasKeys = false; // does the server have keys at all?
  onLost = () => {}; // the key is not accepted any more

  get key() { return this.#key; }

  // The server's time in milliseconds, to about half a second.
  now = () => Date.now() + this.#offsetMs;

  // Makes a request and resolves to the JSON of its answer.
  call = async (method, path, options = {}) => {
    try {
      const { json, headers } = await call('', method, path, { ...options, accessKey: this.#key });
      const date = Date.parse(headers.get('Date') ?? '');
      if (date) this.#offsetMs = date + 500 - Date.now(); // the header has whole seconds
      return json;
    } catch (error) {
      if (error instanceof Problem && error.status === 401 && this.access !== null) this.onLost();
      throw error;
    }
  };

  // Finds out what this reader may do, with the key that is stored or without one.  Resolves to 'admin', 'seller', or null if a
  // key is needed (none is stored, or it is wrong).
  async open() {
    this.access = null;
    try {
      await this.call('GET', `/v1/ops/samples?after=${Date.now()}`);
      this.access = 'admin';
    } catch (error) {
      if (!(error instanceof Problem) || ![401, 403].includes(error.status)) throw error;
      this.hasKeys = true;
      if (error.status === 403) this.access = 'seller';
    }
    this.hasKeys ||= this.#key !== null;
    return this.access;
  }

  // Tries a key; it is kept only if the server knows it.
  async signIn(key) {
    const before = this.#key;
    this.#key = key;
    try {
      if (await this.open()) sessionStorage.setItem(STORED, key);
      else this.#key = before;
    } catch (error) {
      this.#key = before;
      throw error;
    }
    return this.access;
  }

  signOut() {
    this.#key = null;
    this.access = null;
    sessionStorage.removeItem(STORED);
  }
}

// A key is sent in a header, which takes printable ASCII only; nothing else can be a key.
export const mayBeKey = (text) => /^[\x21-\x7e]+$/.test(text);
