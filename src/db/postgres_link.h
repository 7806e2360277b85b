/* One connection to PostgreSQL, made again after it was lost: libpq in non-blocking pipeline mode,
 * every wait with a deadline.  Internal to src/db/postgres*.c; belongs to the thread of its
 * struct db. */
#ifndef HF_DB_POSTGRES_LINK_H
#define HF_DB_POSTGRES_LINK_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "db/db.h"

/* The server ends a statement that takes longer, and releases its locks. */
#define PG_STATEMENT_MS 5000
/* The client gives up this much later, should the server not answer. */
#define PG_MARGIN_MS 2000
/* For {slow} statements and scripts: the seats of a large event, a migration, a whole audit. */
#define PG_SLOW_MS 600000
/* The server ends a statement that waits longer for a lock. */
#define PG_LOCK_MS 2000
/* The server ends a connection that is idle inside a transaction for longer than this. */
#define PG_IDLE_MS 3000
#define PG_IDLE_READER_MS 60000

/* Some seconds after one machine went silent the other one ends the connection. */
#define PG_KEEP_IDLE_S "3"
#define PG_KEEP_EVERY_S "1"
#define PG_KEEP_COUNT "3"
#define PG_UNACKNOWLEDGED_MS "6000"

/* SQLSTATE if a table was altered under a prepared statement: it fails on this connection for good.
 */
#define PG_STALE_PLAN "0A000"
/* SQLSTATEs if a prepared statement is not known, or known already: another session has taken the
 * place of ours. */
#define PG_NO_STATEMENT "26000"
#define PG_OTHER_STATEMENT "42P05"
/* Keys of advisory locks are (int, int) here; db_network.try_lock has (bigint) keys, which are a
 * different space. */
#define PG_LOCK_MIGRATION "1212568404, 1"
/* The first half; the second is the hash of a name.  Two names with the same hash only wait for
 * each other. */
#define PG_NAMES "1212568405"

/* Shared connections have all their tables in this schema, whatever the role's search_path is:
 * roles that have schemas of their own share one lock, and tables of applications do not get in the
 * way.  It is not called `holdfast`, since a role of that name would find it in place of `public`.
 */
#define PG_SCHEMA "holdfast_locks"
#define PG_SEARCH_PATH PG_SCHEMA ", pg_temp"
#define PG_NUMBERS PG_SCHEMA ".holdfast_numbers"

/* Times are on wait_now_us(). */
struct pg_link {
    PGconn *conn;        /* NULL: none */
    unsigned generation; /* counts connections, from 1 */
    char *url;
    struct buf settings;  /* SQL for each new connection */
    int64_t connect_ms;   /* for all hosts together */
    int64_t statement_ms; /* after which the server ends a statement that is not {slow} */
    int64_t answer_ms;    /* after which the client gives up waiting for an answer */
    int64_t limit_ms;     /* the same, if it is shorter; 0: none */

    int64_t began_us;    /* when the last attempt to connect began, unless it succeeded */
    int64_t retry_us;    /* of the next attempt, unless another connection was made meanwhile */
    unsigned n_failures; /* in a row */
    struct hf_err why;   /* it failed */
    _Atomic int64_t *reached_us;       /* see db_options */
    const _Atomic int64_t *give_up_us; /* see db_options */

    bool needs_session; /* poolers that do not keep sessions are refused */
    bool is_pooled;     /* of a connection that needs a session: there is a pooler in between */
    bool unasked;       /* something was queued since the last wait */
    int64_t exchanges;  /* waits for an answer to something new */
};

/* Checks the URL (HF_INVALID_REQUEST) and does not connect. */
HF_MUST_USE enum hf_status pg_link_init(struct pg_link *l, const char *url,
                                        const struct db_options *options, struct hf_err *err);
void pg_link_close(struct pg_link *l);

/* Makes a connection, unless there is one.  Fails at once while the last failure is too recent. */
HF_MUST_USE enum hf_status pg_link_connect(struct pg_link *l, struct hf_err *err);
/* Returns false if the server has closed the connection already, as far as one can see from here.
 */
bool pg_link_alive(struct pg_link *l, struct hf_err *err);

/* ---- postgres_wire.c ---- */

/* Connects to one of the URL's hosts: l->conn, or NULL. */
HF_MUST_USE enum hf_status pg_link_dial(struct pg_link *l, struct hf_err *err);
void pg_link_drop(struct pg_link *l);
/* Has the time of db_options.give_up_us come? */
bool pg_link_gave_up(const struct pg_link *l);

/* Sends what is queued and reads until PQgetResult does not block.  A failure does not drop the
 * connection. */
HF_MUST_USE enum hf_status pg_link_wait(struct pg_link *l, int64_t timeout_ms, struct hf_err *err);
/* Sends what is queued, without waiting for an answer. */
HF_MUST_USE enum hf_status pg_link_flush(struct pg_link *l, struct hf_err *err);
/* Runs several statements on a connection that is not in pipeline mode. */
HF_MUST_USE enum hf_status pg_link_run(struct pg_link *l, const char *sql, int64_t timeout_ms,
                                       struct hf_err *err);
/* The same in pipeline mode; nothing may be under way. */
HF_MUST_USE enum hf_status pg_link_script(struct pg_link *l, const char *sql, int64_t timeout_ms,
                                          struct hf_err *err);

/* Sets `err` from a failed result and returns its code. */
enum hf_status pg_error(const PGresult *result, struct hf_err *err);
/* Returns true if the server ends the connection with this error. */
bool pg_is_fatal(const PGresult *result);
/* Returns true if the SQLSTATE begins with `sqlstate`. */
bool pg_has_state(const PGresult *result, const char *sqlstate);
/* Sets `err` to HF_STORE_UNAVAILABLE with libpq's message. */
enum hf_status pg_link_error(const struct pg_link *l, struct hf_err *err);

#endif
