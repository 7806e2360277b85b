// Clients that ask for something and do not read the answer, so that it stays with the server.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';

// Opens `count` connections that send `text` and read nothing; resolves when all of it has been sent.  `from` is
// the client's address.
export async function slowClients({ host, port }, count, text, { from = '127.0.0.1' } = {}) {
  const sockets = [];
  for (let i = 0; i < count; i += 100) {
    sockets.push(...await Promise.all(Array.from({ length: Math.min(100, count - i) }, () => new Promise((resolve, reject) => {
      const socket = net.connect({ host, port, localAddress: from });
      socket.pause(); // before it is connected, so that nothing is read
      socket.once('error', reject);
      socket.once('connect', () => socket.write(text, () => {
        socket.off('error', reject).on('error', () => {}); // the server may cut it off
        resolve(socket);
      }));
    }))));
  }
  return sockets;
}

export const get = (path, headers = '') => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n`;

export function closeAll(...lists) { for (const socket of lists.flat()) socket.destroy(); }

// What /proc says of a process, in bytes: VmRSS, VmHWM (the most it ever had), VmSize.
export function memory(pid, what) {
  const match = new RegExp(`^${what}:\\s+(\\d+) kB`, 'm').exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  assert.ok(match, `no ${what}`);
  return Number(match[1]) * 1024;
}
