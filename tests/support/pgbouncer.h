/* A real PgBouncer for a test, in front of a new database of postgres_server_own(), on a free port
 * of 127.0.0.1. */
#ifndef HF_TESTS_SUPPORT_PGBOUNCER_H
#define HF_TESTS_SUPPORT_PGBOUNCER_H

#include <sys/types.h>

#include "support/postgres_server.h"

struct pgbouncer {
    pid_t pid;
    int port;
    char dir[64];
    char url[POSTGRES_URL_SIZE]; /* of the database, through it */
};

/* `mode` is that of its pool: session, transaction or statement.  Aborts if it does not start. */
void pgbouncer_start(struct pgbouncer *p, const char *mode);
void pgbouncer_stop(struct pgbouncer *p);

#endif
