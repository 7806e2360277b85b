/* Throwaway servers for the lab, from the binaries that are installed: PostgreSQL, Redis, and the
 * holdfastd beside this program.  All live in one temporary directory that only we and the user
 * they run as may enter, PostgreSQL and Redis on sockets in it; that user is `postgres` or `nobody`
 * when we are root, as PostgreSQL refuses to be.  PostgreSQL is durable as installed (fsync on).
 *
 * Nothing stays behind: the servers end when the thread that started them does (which therefore is
 * the main one), and the directory is removed by a small process of ours even after kill -9. */
#ifndef HF_LAB_SERVERS_H
#define HF_LAB_SERVERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

#define SERVER_URL_SIZE 256

struct server {
    pid_t pid; /* 0: not running */
    char url[SERVER_URL_SIZE];
};

struct servers {
    char dir[64]; /* "": none */
    pid_t keeper; /* removes it once keeper_fd is closed */
    int keeper_fd;
    struct server postgres, redis, holdfastd;
};

/* Makes the directory.  To be closed on failure too, as after every start below. */
HF_MUST_USE bool servers_open(struct servers *s, struct hf_err *err);
/* Ends what runs and removes the directory.  Accepts a zeroed struct. */
void servers_close(struct servers *s);

/* Is it installed?  Looked for in PATH, and in lib/postgresql/VERSION/bin beside each of its
 * directories, where Debian has it. */
bool servers_have_postgres(void);
bool servers_have_redis(void);

/* Return when the server answers.  postgres.url is for PQconnectdb and --ledger, redis.url
 * ("unix:PATH") for a strategy and --gate. */
HF_MUST_USE bool servers_start_postgres(struct servers *s, struct hf_err *err); /* 1 to 2 s */
HF_MUST_USE bool servers_start_redis(struct servers *s, struct hf_err *err);
/* As ourselves, on this ledger and gate; NULL: on SQLite in the directory, and no gate.
 * holdfastd.url is "http://127.0.0.1:PORT". */
HF_MUST_USE bool servers_start_holdfastd(struct servers *s, const char *ledger, const char *gate,
                                         struct hf_err *err);
/* Ends one of them as an administrator would. */
void servers_stop(struct server *s);

#endif
