/* Throwaway servers for the lab, from the programs that are installed: PostgreSQL, Redis, and the
 * holdfastd beside this program.  All of them use one temporary directory that only this process
 * and the servers' user can enter; PostgreSQL and Redis listen on sockets in it.  If this process
 * is root, they run as `postgres` or `nobody`, because PostgreSQL refuses to run as root.
 * PostgreSQL is as durable as it is by default (fsync on).
 *
 * Nothing stays behind, even after kill -9: the servers end when the thread that started them ends,
 * which is why only the main thread may start them, and a small process removes the directory. */
#ifndef HF_LAB_SERVERS_H
#define HF_LAB_SERVERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

#define SERVER_URL_SIZE 256

struct lab_server {
    pid_t pid; /* 0 if it is not running */
    char url[SERVER_URL_SIZE];
};

struct servers {
    char dir[64]; /* "" if there is none */
    pid_t keeper; /* the process that removes it once keeper_fd is closed */
    int keeper_fd;
    struct lab_server postgres, redis, holdfastd;
};

/* Creates the directory.  The caller calls servers_close also after a failure, of this function or
 * of one that starts a server. */
HF_MUST_USE bool servers_open(struct servers *s, struct hf_err *err);
/* Stops the servers and removes the directory.  Accepts a zeroed struct. */
void servers_close(struct servers *s);

/* Return whether the server is installed: in PATH, or in lib/postgresql/VERSION/bin beside one of
 * its directories, where Debian puts PostgreSQL. */
bool servers_have_postgres(void);
bool servers_have_redis(void);

/* Returns when the server answers, after 1 to 2 s.  postgres.url is for PQconnectdb and --ledger.
 */
HF_MUST_USE bool servers_start_postgres(struct servers *s, struct hf_err *err);
/* Returns when the server answers.  redis.url ("unix:PATH") is for a strategy and --gate. */
HF_MUST_USE bool servers_start_redis(struct servers *s, struct hf_err *err);
/* Starts holdfastd as the user of this process; holdfastd.url is "http://127.0.0.1:PORT".  Without
 * a ledger it uses SQLite in the directory; `gate` may be NULL, too. */
HF_MUST_USE bool servers_start_holdfastd(struct servers *s, const char *ledger, const char *gate,
                                         struct hf_err *err);
/* Stops a server with SIGINT, and with SIGKILL if that takes too long. */
void servers_stop(struct lab_server *s);

#endif
