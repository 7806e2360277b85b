/* What every strategy does with its connections, so that its own file has only what is its own: a
 * statement or a command is one call, counted; what fails is noted once and ends the attempt.
 * Statements are prepared on first use, by the address of their text, as a client library would. */
#ifndef HF_LAB_DESK_H
#define HF_LAB_DESK_H

#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include "base/buf.h"
#include "base/random.h"
#include "lab/load_client.h"
#include "lab/strategy.h"

#define DESK_STATEMENTS_MAX 8
#define DESK_TIMEOUT_S 10

struct desk {
    const struct strategy *strategy;
    struct strategy_settings settings;
    PGconn *pg;
    redisContext *redis;
    sqlite3 *sqlite;
    struct load_client server; /* Holdfast */
    struct random random;
    const char *statements[DESK_STATEMENTS_MAX]; /* prepared under their index */
    sqlite3_stmt *prepared[DESK_STATEMENTS_MAX]; /* SQLite's */
    char hold_s[16];
    /* of the attempt */
    struct strategy_outcome *outcome;
    const char *seats[STRATEGY_SEATS_MAX]; /* sorted: whoever locks several does it in this order */
    struct buf ids;                        /* those as PostgreSQL's text[], or as JSON for SQLite */
    char state[6]; /* SQLSTATE of the statement that failed, or SQLite's extended code; or "" */
    bool failed;
};

/* strategy.open and strategy.close of all of them. */
HF_MUST_USE bool desk_open(const struct strategy *strategy,
                           const struct strategy_settings *settings, struct desk **ret,
                           struct hf_err *err);
void desk_close(struct desk *d);

/* Around an attempt: connections that broke are made anew, false: cannot; what it left open is
 * rolled back. */
HF_MUST_USE bool desk_begin(struct desk *d, const struct strategy_want *want,
                            struct strategy_outcome *ret);
void desk_end(struct desk *d);
static inline bool desk_failed(const struct desk *d) { return d->failed; }

/* Notes what ended the attempt; the first is kept. */
void desk_fail(struct desk *d, const char *what, const char *why);

/* ---- PostgreSQL or SQLite, whichever the strategy needs ---- */

/* A literal and its parameters as text, ended by NULL.  PostgreSQL alone; for PQclear; NULL: it
 * failed. */
__attribute__((sentinel)) PGresult *desk_sql(struct desk *d, const char *sql, ...);
/* The one value of a statement.  SQLite alone; false: it is NULL, or it failed. */
__attribute__((sentinel)) bool desk_text(struct desk *d, struct buf *ret, const char *sql, ...);
/* BEGIN, COMMIT, ROLLBACK. */
bool desk_do(struct desk *d, const char *sql);
/* How many rows a statement changed; -1: it failed. */
__attribute__((sentinel)) long desk_change(struct desk *d, const char *sql, ...);
/* A SELECT whose first column is a status: are there n_seats rows, and all AVAILABLE? */
__attribute__((sentinel)) bool desk_all_available(struct desk *d, size_t n_seats, const char *sql,
                                                  ...);
/* The last statement failed with this `state`, which is then a verdict and no failure. */
bool desk_refused(struct desk *d, const char *state);

/* ---- Redis ---- */

/* Is it redis://HOST:PORT or unix:PATH? */
bool desk_redis_url(const char *url);

/* For freeReplyObject; NULL: it failed. */
__attribute__((format(printf, 2, 3))) redisReply *desk_redis(struct desk *d, const char *format,
                                                             ...);
/* SET ... NX, which says OK or nothing. */
__attribute__((format(printf, 2, 3))) bool desk_redis_set(struct desk *d, const char *format, ...);
/* A command that answers a number; 0 if it failed. */
__attribute__((format(printf, 2, 3))) long long desk_redis_number(struct desk *d,
                                                                  const char *format, ...);

/* ---- time ---- */

void desk_window(struct desk *d);
/* `ms`, a quarter more or less, so that those who collided do not meet again. */
void desk_pause(struct desk *d, int ms);

#endif
