/* The address of a Redis server, and the URLs that name one:
 *
 *   redis://[[user]:password@]host[:port][/db] or [?db=N]
 *   redis+unix://[[user]:password@]/path[?db=N]
 *   redis+unix:PATH[?db=N]
 * unix: means redis+unix:.  In user and password %XX stands for a byte.  No state; any thread. */
#ifndef HF_REDIS_ADDRESS_H
#define HF_REDIS_ADDRESS_H

#include "base/fault.h"

struct redis_address {
    char *host, *path;     /* exactly one of them is not NULL */
    char *user, *password; /* may be NULL */
    int port, db;
};

/* HF_BAD_REQUEST: the fault names the part of the URL that is wrong, but does not repeat it, since
 * it may contain a password. */
HF_MUST_USE enum hf_result redis_address_parse(const char *url, struct redis_address *ret,
                                               struct hf_fault *fault);
void redis_address_copy(const struct redis_address *from, struct redis_address *ret);
/* Overwrites the password before it frees it.  Accepts a zeroed address. */
void redis_address_close(struct redis_address *a);

#endif
