// Keys and owners that nobody can guess.

let source = globalThis.crypto;
export const drawFrom = (crypto) => { source = crypto; };

// crypto.randomUUID is missing in pages without TLS.
export const newKey = () => Array.from(source.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
