/* What a connection to PostgreSQL has been asked and has not answered yet, in order, and the
 * statements that ask.  A call is queued in libpq and sent no earlier than an answer is wanted;
 * answers are read strictly in order and kept by the statement they belong to.
 *
 * A segment is what lies between two Syncs: after an error the server skips the rest of it.  In a
 * transaction a segment ends where an answer is wanted, so that a COMMIT never runs after a
 * statement before it failed; outside of one each call is a segment, and so a transaction, of its
 * own.  Internal to src/db/postgres*.c. */
#ifndef HF_DB_POSTGRES_PIPELINE_H
#define HF_DB_POSTGRES_PIPELINE_H

#include "base/vec.h"
#include "db/postgres_link.h"
#include "db/template.h"

enum pg_kind { PG_SYNC, PG_PREPARE, PG_RUN, PG_EXPECT };

struct pg_entry {
    enum pg_kind kind;
    bool started;         /* its answer is being read */
    bool discard;         /* nobody wants its answer */
    unsigned transaction; /* 0: none */
    struct pg_stmt *stmt; /* of all but PG_SYNC */
    unsigned *prepared;   /* PG_PREPARE: the stmt's field to take back should it fail */
    const char *what;     /* PG_EXPECT */
};

struct pg_stmt {
    struct db_stmt stmt;
    struct postgres *db;
    struct pg_stmt *next;
    unsigned id;
    char *text;
    const char *name; /* its name on the server; NULL: the text, if that is a word, or the id */
    struct template_params params;
    bool or_surprise;                   /* an INSERT that fails on a row that is there already */
    unsigned prepared, expect_prepared; /* on the connection of this generation */
    size_t waiting;                     /* entries whose answer it wants */
    VEC(PGresult *) results;            /* read, and not yet stepped over */
    size_t result;                      /* the current one */
    int row;                            /* in it */
    int64_t changes;
    bool committed; /* the answer was COMMIT */
    struct hf_err err;
};

struct postgres {
    struct db db;
    struct pg_link link;
    struct db_options options;
    struct pg_stmt *stmts;
    unsigned n_stmts;
    struct db_stmt *begin, *commit, *rollback, *patience, *now, *plans, *notify, *try_lock,
        *unlock_all, *warnings;
    struct db_stmt *numbers, *lock, *lock_once, *moment, *wake; /* of a shared one */
    VEC(struct pg_entry) entries;
    size_t entry; /* the first that is not answered */
    bool unsynced;
    unsigned transaction; /* 0: none under way */
    unsigned transactions;
    bool begin_queued;
    bool is_once;        /* the transaction is one segment, whose Sync commits it */
    bool is_known;       /* `err` is the server's own verdict, and not that of the COMMIT's end */
    struct hf_err err;   /* of the transaction: the first failure */
    struct hf_err abort; /* of the segment being answered */
    int64_t plans_at_us; /* when to have statements planned again */
    struct buf scratch;  /* parameters of one call */
    int64_t floor_ms;
    VEC(struct db_value) names; /* hashes of those that the transaction is alone on, ascending */
    bool moment_asked;          /* for its time and its numbers */
    int64_t moment_ms;          /* its time; 0: not read yet */
    bool number_unused;         /* that of the moment's row */
    struct buf topic;           /* listened to, on the connection of this generation */
    unsigned topic_generation;
};

HF_MUST_USE enum hf_status pg_prepare(struct db *base, const char *sql, struct db_stmt **ret_stmt,
                                      struct hf_err *err);
void pg_stmt_free(struct pg_stmt *stmt);

/* Queues the statement over n_rows; `what` makes it a PG_EXPECT.  Connects first outside a
 * transaction, and queues BEGIN first in one. */
HF_MUST_USE enum hf_status pg_queue(struct pg_stmt *stmt, const char *what,
                                    const struct db_value *args, size_t n_rows, struct hf_err *err);
/* Outside a transaction: a connection that, as far as one can see, lives. */
HF_MUST_USE enum hf_status pg_connect(struct postgres *db, struct hf_err *err);
/* Ends the segment, if one is open. */
void pg_sync(struct postgres *db);
/* Reads answers until all are there. */
void pg_settle(struct postgres *db);
/* The connection is of no use any more: drops it, and fails what was under way. */
void pg_lost(struct postgres *db, const struct hf_err *why);
/* Nobody wants what it was asked before. */
void pg_forget(struct pg_stmt *stmt);

HF_MUST_USE enum hf_status pg_exec_many(struct db_stmt *base, const struct db_value *args,
                                        size_t n_rows, int64_t *ret_changes, struct hf_err *err);
HF_MUST_USE enum hf_status pg_expect_many(struct db_stmt *base, const char *what,
                                          const struct db_value *args, size_t n_rows,
                                          struct hf_err *err);
HF_MUST_USE enum hf_status pg_query_many(struct db_stmt *base, const struct db_value *args,
                                         size_t n_rows, struct hf_err *err);
enum db_step pg_step(struct db_stmt *base, struct hf_err *err);
int64_t pg_column_int(struct db_stmt *base, int column);
const void *pg_column_data(struct db_stmt *base, int column, size_t *ret_len);
void pg_finish(struct db_stmt *base);

#define WAKE_TOPIC "holdfast_turn_" /* and a number */

extern const struct dialect pg_dialect;

#endif
