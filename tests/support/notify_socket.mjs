// Plays the service manager: a datagram socket such as NOTIFY_SOCKET names, and what arrived there.  Node has no
// sockets of this kind, so a few lines of Perl (Debian always has it) receive and print one line per message.

import { launch, until } from './process.mjs';

const RECEIVER = `use Socket; $| = 1; my $address = shift; (my $name = $address) =~ s/^@/\\0/;
socket(my $s, PF_UNIX, SOCK_DGRAM, 0) or die $!; bind($s, pack_sockaddr_un($name)) or die $!; print "bound\\n";
while (defined recv($s, my $text, 65536, 0)) { $text =~ s/\\n/\\t/g; print "$text\\n" }`;

// `address` is a path, or @ and a name in the abstract namespace.
export async function notifySocket(address) {
  const run = launch('perl', ['-e', RECEIVER, address]);
  const socket = {
    address,
    // The messages so far, each as a list of its NAME=VALUE lines.
    get messages() { return run.stdout.split('\n').slice(1, -1).map((line) => line.split('\t')); },
    count: (text) => socket.messages.filter((lines) => lines.includes(text)).length,
    // Waits for a message that has a line like this, not among the first `after`; resolves to its index.
    async heard(pattern, after = 0) {
      const find = () => socket.messages.findIndex((lines, index) => index >= after && lines.some((line) => pattern.test(line)));
      return until(`${pattern} after message ${after} of ${JSON.stringify(socket.messages)}`, () => find() + 1).then((n) => n - 1);
    },
    async close() { run.child.kill('SIGKILL'); await run.done; },
  };
  await until('the socket is bound', () => run.stdout.startsWith('bound\n') || run.ended);
  return socket;
}
