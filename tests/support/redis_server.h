/* A real redis-server for a test: on a free port of 127.0.0.1 and a socket, in a temporary
 * directory, ended by its process id.  It persists nothing unless `aof` is set. */
#ifndef HF_TESTS_SUPPORT_REDIS_SERVER_H
#define HF_TESTS_SUPPORT_REDIS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct redis_server {
    pid_t pid; /* 0 if it is not running */
    int port;
    int bus_port; /* of a cluster; 0: it is none */
    char dir[64], socket[96];
    char url[64], unix_url[128];
    /* The caller sets these before the start. */
    const char *password;       /* may be NULL */
    bool aof;                   /* every write is on disk before it is answered */
    bool cluster;               /* a cluster of one node, which has no slots yet */
    const char *const *options; /* more arguments, ended by NULL; may be NULL */
    /* It is a sentinel of this server, which it calls "main", and decides alone; NULL: it is none.
     * It replaces the server only after it is told to: redis_server_hurry. */
    const struct redis_server *watched;
};

/* Returns false if redis-server is not installed. */
bool redis_server_start(struct redis_server *s);
/* Stops it and removes its directory. */
void redis_server_stop(struct redis_server *s);
/* kill -9: what is not on disk is lost. */
void redis_server_kill(struct redis_server *s);
/* Starts it again on the same port, in the same directory. */
void redis_server_again(struct redis_server *s);
/* Returns when it stands still: it answers nothing until it is resumed. */
void redis_server_pause(struct redis_server *s);
void redis_server_resume(struct redis_server *s);

/* From now on a sentinel takes its primary for dead after half a second of silence. */
void redis_server_hurry(const struct redis_server *sentinel);

/* Sends one inline command; `ret` gets the raw answer, at most size - 1 bytes of it, and nothing if
 * the server closes the connection or does not answer for half a minute. */
void redis_server_ask(const struct redis_server *s, const char *command, char *ret, size_t size);
/* Returns how often clients and scripts have called a command, from INFO commandstats. */
int64_t redis_server_calls(const struct redis_server *s, const char *command);

#endif
