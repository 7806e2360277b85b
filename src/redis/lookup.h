/* Looking up a host's name within a time, for redis_link.c.  getaddrinfo has no bound but the
 * resolver's own (half a minute and more) and cannot be called off, so names are looked up by a
 * thread that may be left behind; one a link at the most, for the next try waits for the same one.
 * Addresses in figures need no thread. */
#ifndef HF_REDIS_LOOKUP_H
#define HF_REDIS_LOOKUP_H

#include <netdb.h>
#include <stdint.h>

struct lookup;

/* 0: *ret is the caller's, for freeaddrinfo; else as getaddrinfo has it.  EAI_AGAIN with *lookup
 * set: not within `ms`; it goes on, and the next call with it, for the same host, takes what came
 * of it. */
int lookup_address(struct lookup **lookup, const char *host, int port, int64_t ms,
                   struct addrinfo **ret);
/* Nobody waits for it any more: it frees itself.  Accepts NULL. */
void lookup_leave(struct lookup *lookup);

#endif
