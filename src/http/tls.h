/* TLS of the server's own connections: OpenSSL's protocol on sockets that do not block.
 *
 * A struct tls has the certificate and the key that new connections get; tls_load replaces them
 * while the server runs.  A struct tls_session is one connection's TLS.  It is made when the first
 * byte has come, so that a connection that says nothing costs no more than without TLS, and it
 * belongs to the thread of the connection's loop.
 *
 * Versions are 1.2 and 1.3, with forward secrecy and authenticated encryption alone.  There is no
 * renegotiation, no compression, no early data and no cache of sessions; a client may resume with a
 * ticket, which is encrypted with a key that ends with the certificate's use.  ALPN is http/1.1.
 *
 * Directions do not cross: a read that would first have to write, or the other way round, ends the
 * connection.  After the handshake only a client that asks for keys to be changed and takes no
 * answer, or that sends a part of such a message, can bring that about. */
#ifndef HF_HTTP_TLS_H
#define HF_HTTP_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"

#define TLS_CHAIN_MAX 10 /* certificates in the file, the server's own included */
#define TLS_EXPIRES_SOON_S (INT64_C(14) * 24 * 3600)

struct tls;
struct tls_session;

/* Has no certificate yet. */
struct tls *tls_new(struct metrics *metrics, const struct clock *clock);
void tls_free(struct tls *t); /* when all sessions are over; accepts NULL */
/* Reads the certificate with its chain, and the key, both in PEM, and uses them for connections
 * that come from now on.  Logs a warning if the certificate has expired or will soon.  On failure
 * everything stays as it is, and the message says which file is wrong and what would be right. */
HF_MUST_USE bool tls_load(struct tls *t, const char *cert_file, const char *key_file,
                          struct hf_err *err);

enum tls_first { TLS_FIRST_NONE, TLS_FIRST_HELLO, TLS_FIRST_PLAIN, TLS_FIRST_WRONG };
/* What the first byte on the socket, which stays there, begins: nothing has come yet, a handshake,
 * an HTTP request without TLS, or neither of them; the end of the connection is neither. */
enum tls_first tls_look(int fd);

/* NULL: there is no memory. */
struct tls_session *tls_session_new(struct tls *t, int fd);
/* Says goodbye, if the socket has room for it and the client has been told no half of a record, and
 * frees it; leaves the socket open.  Accepts NULL. */
void tls_session_end(struct tls_session *s);
/* Frees it without a word: the client is to see that the connection broke. */
void tls_session_abort(struct tls_session *s);

enum tls_step { TLS_DONE, TLS_WANTS_READ, TLS_WANTS_WRITE, TLS_FAILED };
/* Goes on with the handshake. */
enum tls_step tls_handshake(struct tls_session *s);

/* As recv(2).  A client that ends the connection without saying goodbye first has ended it all the
 * same: requests say by themselves where they end. */
ssize_t tls_read(struct tls_session *s, void *data, size_t len);
/* As writev(2).  After EAGAIN the next call has to begin with the same bytes, since a record of
 * them is on its way; otherwise it fails with EPROTO. */
ssize_t tls_write(struct tls_session *s, const struct iovec *parts, int n);
/* Has something been received that tls_read can return at once, and that epoll does not know of? */
bool tls_has_data(const struct tls_session *s);

#endif
