/* A real redis-server of a test's own: a free port of 127.0.0.1 and a socket, in a temporary
 * directory, ended by its process id.  Nothing is persisted unless asked for. */
#ifndef HF_TESTS_SUPPORT_REDIS_SERVER_H
#define HF_TESTS_SUPPORT_REDIS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct redis_server {
    pid_t pid; /* 0: not running */
    int port;
    char dir[64], socket[96];
    char url[64], unix_url[128];
    const char *password; /* set before the start; may be NULL */
    bool aof;             /* likewise: every write is on disk before its answer */
    bool cluster;         /* likewise: a cluster of one, which has no slots yet */
};

/* False: there is no redis-server. */
bool redis_server_start(struct redis_server *s);
void redis_server_stop(struct redis_server *s); /* and removes the directory */
/* On the same port, in the same directory.  kill -9: what is not on disk is gone. */
void redis_server_kill(struct redis_server *s);
void redis_server_again(struct redis_server *s);

/* One inline command; the raw answer, at most size - 1 bytes. */
void redis_server_ask(const struct redis_server *s, const char *command, char *ret, size_t size);
/* The calls of commands that clients sent and scripts made, from INFO commandstats. */
int64_t redis_server_calls(const struct redis_server *s, const char *command);

#endif
