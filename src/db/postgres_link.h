/* One connection to PostgreSQL that is made anew when it was lost: libpq without blocking, in
 * pipeline mode, every wait with a deadline.  Internal to src/db/postgres*.c; belongs to the thread
 * of its struct db. */
#ifndef HF_DB_POSTGRES_LINK_H
#define HF_DB_POSTGRES_LINK_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "db/db.h"

/* The server ends what takes longer, and frees what it had locked; the client, should it hear
 * nothing, a little later. */
#define PG_STATEMENT_MS 5000
#define PG_MARGIN_MS 2000
/* Of {slow} statements and scripts: the seats of a large event, a migration, a whole audit. */
#define PG_SLOW_MS 600000
#define PG_LOCK_MS 2000
#define PG_IDLE_MS 3000
#define PG_IDLE_READER_MS 60000

/* A table was altered under a prepared statement, which fails on this connection for good. */
#define PG_STALE_PLAN "0A000"
/* Keys of advisory locks, (int, int): another space than the (bigint) of db_driver.try_lock.  The
 * second of PG_NAMES is a name's hash: two names that share one wait for each other, no more. */
#define PG_LOCK_MIGRATION "1212568404, 1"
#define PG_NAMES "1212568405"

struct pg_link {
    PGconn *conn;        /* NULL: none */
    unsigned generation; /* of connections, from 1 */
    char *url;
    int64_t connect_ms;   /* for all hosts together */
    struct buf settings;  /* SQL for each new connection */
    int64_t statement_ms; /* after which the server ends a statement that is not {slow} */
    int64_t answer_ms;    /* after which the client gives up waiting for it */
    int64_t began_us;     /* the last attempt, unless it succeeded */
    int64_t failed_at_us; /* its end */
    int64_t pause_ms;     /* until the next, unless another connection was made since it began */
    _Atomic int64_t *reached_us;       /* see db_options */
    const _Atomic int64_t *give_up_us; /* likewise */
    struct hf_err why;                 /* it failed */
    bool unasked;                      /* something was queued since the last wait */
    int64_t exchanges;                 /* waits for an answer to something new */
};

/* HF_INVALID_REQUEST when libpq cannot read the URL.  Does not connect. */
HF_MUST_USE enum hf_status pg_link_init(struct pg_link *l, const char *url,
                                        const struct db_options *options, struct hf_err *err);
void pg_link_close(struct pg_link *l);

/* Unless there is a connection: makes one, or fails at once while the last failure is too fresh. */
HF_MUST_USE enum hf_status pg_link_connect(struct pg_link *l, struct hf_err *err);
/* False when the server has closed it already, as far as one can see from here. */
bool pg_link_alive(struct pg_link *l, struct hf_err *err);
void pg_link_drop(struct pg_link *l);

/* Sends what is queued until PQgetResult would not block.  A failure has dropped nothing. */
HF_MUST_USE enum hf_status pg_link_wait(struct pg_link *l, int64_t timeout_ms, struct hf_err *err);
/* Sends what is queued, without waiting for an answer. */
HF_MUST_USE enum hf_status pg_link_flush(struct pg_link *l, struct hf_err *err);
/* Several statements by the simple protocol; nothing may be under way. */
HF_MUST_USE enum hf_status pg_link_script(struct pg_link *l, const char *sql, int64_t timeout_ms,
                                          struct hf_err *err);

/* What a failed result means. */
enum hf_status pg_error(const PGresult *result, struct hf_err *err);
/* The server ends the connection with it. */
bool pg_is_fatal(const PGresult *result);
bool pg_has_state(const PGresult *result, const char *sqlstate);
/* HF_LEDGER_UNAVAILABLE, in libpq's words. */
enum hf_status pg_link_error(const struct pg_link *l, struct hf_err *err);

#endif
