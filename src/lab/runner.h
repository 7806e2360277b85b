/* A runner: one worker of a strategy, with its connections.  It does what all strategies do alike,
 * so that a strategy's own file has only what distinguishes it.  A statement or a command is one
 * call and is counted.  The first failure is recorded and ends the attempt.  Statements are
 * prepared on first use and found by the address of their text, which therefore must be a literal.
 *
 * One thread at a time uses a runner. */
#ifndef HF_LAB_RUNNER_H
#define HF_LAB_RUNNER_H

#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include "base/buf.h"
#include "base/random.h"
#include "lab/load_client.h"
#include "lab/strategy.h"

#define RUNNER_STATEMENTS_MAX 8
#define RUNNER_TIMEOUT_S 10

struct runner {
    const struct strategy *strategy;
    struct strategy_settings settings;
    PGconn *pg;
    redisContext *redis;
    sqlite3 *sqlite;
    struct load_client server; /* Holdfast */
    struct random random;
    const char *statements[RUNNER_STATEMENTS_MAX]; /* PostgreSQL knows statement i as "s<i>" */
    sqlite3_stmt *prepared[RUNNER_STATEMENTS_MAX]; /* the same on SQLite */
    char hold_s[16];                               /* settings.hold_s as a parameter */
    /* The rest belongs to the attempt under way. */
    struct strategy_outcome *outcome;
    const char *seats[STRATEGY_SEATS_MAX]; /* sorted, which is the order to lock them in */
    struct buf ids; /* `seats` as PostgreSQL's text[], or as JSON for SQLite */
    char state[6];  /* SQLSTATE or SQLite's extended code of the statement that failed, or "" */
    bool failed;
};

/* What every strategy has as its `open` and `close`. */
HF_MUST_USE bool runner_open(const struct strategy *strategy,
                             const struct strategy_settings *settings, struct runner **ret,
                             struct hf_err *err);
void runner_close(struct runner *r);

/* Begins an attempt.  Reconnects where a connection has broken; returns false if it cannot. */
HF_MUST_USE bool runner_begin(struct runner *r, const struct strategy_want *want,
                              struct strategy_outcome *ret);
/* Rolls back a transaction that is still open. */
void runner_end(struct runner *r);
static inline bool runner_failed(const struct runner *r) { return r->failed; }

/* Records the failure that ends the attempt.  Only the first one of an attempt is kept. */
void runner_fail(struct runner *r, const char *what, const char *why);

/* ---- PostgreSQL or SQLite, whichever the strategy needs ----
 * `sql` is a literal; its parameters follow as text, ended by NULL. */

/* Runs a statement, on PostgreSQL only.  The result is for PQclear; NULL if the statement failed.
 */
__attribute__((sentinel)) PGresult *runner_sql(struct runner *r, const char *sql, ...);
/* Reads the one value that a statement returns, on SQLite only.  Returns false if it is NULL or the
 * statement failed. */
__attribute__((sentinel)) bool runner_text(struct runner *r, struct buf *ret, const char *sql, ...);
/* Runs BEGIN, COMMIT or ROLLBACK. */
bool runner_do(struct runner *r, const char *sql);
/* Returns how many rows a statement changed, or -1 if it failed. */
__attribute__((sentinel)) long runner_change(struct runner *r, const char *sql, ...);
/* Runs a SELECT whose first column is a status.  Returns whether it finds n_seats rows, all of them
 * AVAILABLE. */
__attribute__((sentinel)) bool runner_all_available(struct runner *r, size_t n_seats,
                                                    const char *sql, ...);
/* Returns whether the last statement failed with this `state`, and if so takes the failure back: it
 * is a verdict then. */
bool runner_refused(struct runner *r, const char *state);

/* ---- Redis ---- */

/* Returns whether the URL is redis://HOST:PORT or unix:PATH. */
bool runner_is_redis_url(const char *url);

/* The reply is for freeReplyObject; NULL if the command failed. */
__attribute__((format(printf, 2, 3))) redisReply *runner_redis(struct runner *r, const char *format,
                                                               ...);
/* Runs SET ... NX; returns whether it set the key. */
__attribute__((format(printf, 2, 3))) bool runner_redis_set(struct runner *r, const char *format,
                                                            ...);
/* Runs a command that replies with a number; returns 0 if it failed. */
__attribute__((format(printf, 2, 3))) long long runner_redis_number(struct runner *r,
                                                                    const char *format, ...);

/* ---- time ---- */

/* Calls settings.window. */
void runner_window(struct runner *r);
/* Counts a retry and sleeps for `ms` before it, up to a quarter more or less, so that buyers who
 * collided do not do so again. */
void runner_retry(struct runner *r, int ms);

#endif
