/* A real PostgreSQL of a test's own: a fresh cluster in a temporary directory, reached by a socket
 * there and by nothing else, ended by its process id.  Run by root it runs as the packaged user. */
#ifndef HF_TESTS_SUPPORT_POSTGRES_SERVER_H
#define HF_TESTS_SUPPORT_POSTGRES_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

struct postgres_server {
    pid_t pid; /* 0: not running */
    char dir[64];
    char url[192];
};

/* False: there is no PostgreSQL, or it does not start. */
bool postgres_server_start(struct postgres_server *s);
void postgres_server_stop(struct postgres_server *s); /* and removes the directory */

#endif
