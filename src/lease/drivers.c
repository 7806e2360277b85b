/* The one table of lease drivers.  `make WITHOUT="..."` leaves drivers out of the library.  No
 * state; any thread. */
#include <string.h>

#include "lease/lease.h"

extern const struct lease_driver lease_memory;
extern const struct lease_driver lease_sqlite;
extern const struct lease_driver lease_postgres;
extern const struct lease_driver lease_redis;
extern const struct lease_driver lease_redlock;
extern const struct lease_driver lease_etcd;
extern const struct lease_driver lease_zookeeper;
extern const struct lease_driver lease_holdfast;

const struct lease_driver *const lease_drivers[] = {
    &lease_memory,
#ifndef HF_WITHOUT_SQLITE
    &lease_sqlite,
#endif
#ifndef HF_WITHOUT_POSTGRES
    &lease_postgres,
#endif
#ifndef HF_WITHOUT_REDIS
    &lease_redis,
    &lease_redlock,
#endif
#ifndef HF_WITHOUT_ETCD
    &lease_etcd,
#endif
#ifndef HF_WITHOUT_ZOOKEEPER
    &lease_zookeeper,
#endif
#ifndef HF_WITHOUT_HOLDFAST
    &lease_holdfast,
#endif
    NULL,
};

const struct lease_driver *lease_driver_for(const char *url)
{
    for (const struct lease_driver *const *d = lease_drivers; *d; d++)
        for (const char *const *scheme = (*d)->schemes; *scheme; scheme++)
            if (strncmp(url, *scheme, strlen(*scheme)) == 0)
                return *d;
    return NULL;
}
