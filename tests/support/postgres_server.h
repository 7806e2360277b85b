/* A real PostgreSQL for a test: a cluster in a temporary directory, on a free port of 127.0.0.1 and
 * a socket, ended by its process ids.  It runs with fsync=off: no test with it is about a crash of
 * the machine. */
#ifndef HF_TESTS_SUPPORT_POSTGRES_SERVER_H
#define HF_TESTS_SUPPORT_POSTGRES_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define POSTGRES_URL_SIZE 128
/* The end of a URL, and db_options.settings, for a test that may stand still for some seconds: it
 * loses neither the connection that it is about to make nor a transaction that it has begun. */
#define POSTGRES_PATIENT_URL "?connect_timeout=60"
#define POSTGRES_PATIENT_SETTINGS "SET idle_in_transaction_session_timeout = 0;"

struct postgres_server {
    pid_t pid; /* of the postmaster; 0 if it is not running */
    int port;
    char dir[64];
    /* Settings of the next start; a change takes effect when it is stopped and started again. */
    int max_connections; /* 0: 300 */
    bool has_own_clock;  /* postgres_server_set_clock works */
};

/* Returns the server of this program: the first call starts it, and it stops when the program ends.
 * The first start of a build takes a second or two longer. */
struct postgres_server *postgres_server_own(void);
/* Creates an empty database there and drops those of earlier calls. */
void postgres_server_fresh(char ret_url[POSTGRES_URL_SIZE]);
/* The same; the URL ends with POSTGRES_PATIENT_URL. */
void postgres_server_fresh_patient(char ret_url[POSTGRES_URL_SIZE]);

void postgres_server_url(const struct postgres_server *s, const char *database,
                         char ret_url[POSTGRES_URL_SIZE]);
/* Runs `sql` as an administrator, on a connection of its own.  Returns the first value, or "" if
 * there is none; it is valid until the next call. */
const char *postgres_server_ask(const struct postgres_server *s, const char *database,
                                const char *sql);

void postgres_server_stop(struct postgres_server *s); /* as an administrator does */
void postgres_server_kill(struct postgres_server *s); /* kill -9 of all its processes */
/* Starts it again on the same port, in the same directory. */
void postgres_server_again(struct postgres_server *s);
/* Stops or resumes its processes.  A frozen server accepts data but does not answer. */
void postgres_server_freeze(const struct postgres_server *s, bool frozen);
/* Sets the clock of a server that has its own: this many seconds ahead of the machine's.  It is a
 * real server whose system calls for the time are answered by libfaketime. */
void postgres_server_set_clock(const struct postgres_server *s, int ahead_s);
/* Starts a standby of `primary`; end it with postgres_server_remove. */
void postgres_server_follow(struct postgres_server *s, const struct postgres_server *primary);
void postgres_server_remove(struct postgres_server *s);

#endif
