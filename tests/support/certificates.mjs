// Certificates for tests, made by the openssl command in a directory that the caller removes.
//
//   const authority = new Authority(dir);
//   const { cert, key } = authority.issue('server');                  // for localhost and 127.0.0.1
//   const old = authority.issue('old', { days: -1 });                 // expired yesterday
//   const other = authority.issue('other', { names: 'DNS:elsewhere.example' });

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
const openssl = (...args) => execFileSync('openssl', args, { stdio: ['ignore', 'pipe', 'pipe'] });

export class Authority {
  // `signer`: another authority that signs this one; default: it signs itself.
  constructor(dir, { name = 'authority', signer } = {}) {
    this.dir = dir;
    this.cert = path.join(dir, `${name}.crt`);
    this.key = path.join(dir, `${name}.key`);
    if (signer) Object.assign(this, signer.issue(name, { extensions: 'basicConstraints=critical,CA:TRUE' }));
    else openssl('req', '-x509', ...EC, '-days', '2', '-subj', `/CN=${name}`, '-keyout', this.key, '-out', this.cert);
  }

  get pem() { return fs.readFileSync(this.cert); }

  // Returns the files of a certificate and its key, which only their owner may read.
  issue(name, { days = 30, names = 'DNS:localhost,IP:127.0.0.1', extensions = `subjectAltName=${names}` } = {}) {
    const [cert, key, request, file] = ['crt', 'key', 'csr', 'ext'].map((end) => path.join(this.dir, `${name}.${end}`));
    openssl('req', ...EC, '-subj', `/CN=${name}`, '-keyout', key, '-out', request);
    fs.writeFileSync(file, `${extensions}\n`);
    openssl('x509', '-req', '-days', `${days}`, '-in', request, '-CA', this.cert, '-CAkey', this.key,
      '-set_serial', `${Date.now()}${Math.floor(Math.random() * 1e6)}`, '-extfile', file, '-out', cert);
    fs.chmodSync(key, 0o600);
    return { cert, key };
  }
}
