/* A real PostgreSQL of a test's own: a cluster in a temporary directory, on a free port of
 * 127.0.0.1 and a socket, ended by its process ids.  It does not force the disk (fsync=off): what a
 * crash of the machine would do is not tested with it. */
#ifndef HF_TESTS_SUPPORT_POSTGRES_SERVER_H
#define HF_TESTS_SUPPORT_POSTGRES_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define POSTGRES_URL_SIZE 128

struct postgres_server {
    pid_t pid; /* of its first process; 0: not running */
    int port;
    char dir[64], data[96];
};

/* The one of this program: started by the first call, stopped when the program ends.  Making a
 * cluster takes a second or two. */
struct postgres_server *postgres_server_own(void);
/* A new, empty database there.  Nothing is left of the ones before. */
void postgres_server_fresh(char ret_url[POSTGRES_URL_SIZE]);

void postgres_server_url(const struct postgres_server *s, const char *database,
                         char ret_url[POSTGRES_URL_SIZE]);
/* As an administrator, by another connection; returns the first value, "" for none.  Until the next
 * call. */
const char *postgres_server_ask(const struct postgres_server *s, const char *database,
                                const char *sql);

/* On the same port, in the same directory. */
void postgres_server_stop(struct postgres_server *s); /* as an administrator would */
void postgres_server_kill(struct postgres_server *s); /* -9, all its processes */
void postgres_server_again(struct postgres_server *s);
/* Frozen: its machine still takes what is sent, nobody answers. */
void postgres_server_freeze(const struct postgres_server *s, bool frozen);
/* A copy that follows `primary`, running; end it with remove. */
void postgres_server_follow(struct postgres_server *s, const struct postgres_server *primary);
void postgres_server_remove(struct postgres_server *s);

#endif
