/* Looks up a host name within a time limit, for connect.c.  getaddrinfo cannot be interrupted, and
 * the resolver's own limit is half a minute or more.  A thread of its own therefore does the
 * lookup, and is left behind if it takes too long.  A link has at most one such thread: its next
 * attempt waits for the same lookup.  Numeric addresses need no thread. */
#ifndef HF_REDIS_LOOKUP_H
#define HF_REDIS_LOOKUP_H

#include <netdb.h>
#include <stdint.h>

struct lookup;

/* Returns 0 and a list for freeaddrinfo, or an error of getaddrinfo.  EAI_AGAIN with *lookup set
 * means that the limit of `ms` has passed; the lookup goes on, and the next call for the same host
 * gets its result. */
int lookup_address(struct lookup **lookup, const char *host, int port, int64_t ms,
                   struct addrinfo **ret);
/* The caller does not wait for it any longer: it frees itself when it is done.  Accepts NULL. */
void lookup_abandon(struct lookup *lookup);

#endif
