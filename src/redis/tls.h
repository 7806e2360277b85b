/* TLS on a connected socket, for the link: OpenSSL's protocol, our own waits.  The server's
 * certificate must be signed by an authority that is trusted (the system's, or `cacert`) and must
 * name the host that was dialled.  Belongs to the link's thread.  The socket does not block. */
#ifndef HF_REDIS_TLS_H
#define HF_REDIS_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "redis/address.h"

struct redis_tls;

/* Shakes hands on `fd` within `ms`.  Returns NULL on failure, and the reason in `ret_why`. */
#define REDIS_TLS_WHY_SIZE 160
struct redis_tls *redis_tls_open(const struct redis_address *a, const char *host, int fd,
                                 int64_t ms, char ret_why[REDIS_TLS_WHY_SIZE]);
void redis_tls_close(struct redis_tls *t); /* accepts NULL; leaves the socket open */

/* As send and recv on a socket that does not block: -1 with errno EAGAIN if the socket has to be
 * waited for. */
ssize_t redis_tls_send(struct redis_tls *t, const void *data, size_t len);
ssize_t redis_tls_recv(struct redis_tls *t, void *data, size_t size);
/* Why one of them failed with EPROTO, in OpenSSL's words; NULL: not known. */
const char *redis_tls_reason(const struct redis_tls *t);
/* Has data arrived that poll does not see any more, since it was taken from the socket? */
bool redis_tls_has_data(const struct redis_tls *t);
/* Has the server closed the connection, or sent data?  What belongs to TLS alone does not count. */
bool redis_tls_is_stale(struct redis_tls *t);

#endif
