/* One connection to PostgreSQL with all that it was asked and has not answered yet, in order.  A
 * call is queued in libpq and sent no earlier than an answer is wanted; answers are read strictly
 * in order and kept by the statement to which they belong (postgres_stmt.h).
 *
 * A segment is what lies between two Syncs: after an error the server skips the rest of it.  Inside
 * a transaction a segment ends where an answer is wanted, so that a COMMIT never runs after a
 * failed statement; outside of one each call is a segment, and so a transaction, of its own.
 * Internal to src/db/postgres*.c. */
#ifndef HF_DB_POSTGRES_PIPELINE_H
#define HF_DB_POSTGRES_PIPELINE_H

#include "base/vec.h"
#include "db/postgres_link.h"
#include "db/template.h"

/* What expect_many fails with on the server if the count of rows is wrong: a division by zero, of
 * which our statements have no other. */
#define PG_COUNT_STATE "22012"
/* The same if the statement says {or_surprise}: a row exists already. */
#define PG_UNIQUE_STATE "23505"

enum pg_kind { PG_SYNC, PG_PREPARE, PG_RUN, PG_EXPECT };

/* Something that was asked. */
struct pg_entry {
    enum pg_kind kind;
    bool started;         /* its answer is being read */
    bool discard;         /* its answer is not wanted any more */
    unsigned transaction; /* the number of its transaction; 0: none */
    struct pg_stmt *stmt; /* NULL: PG_SYNC */
    unsigned *prepared;   /* PG_PREPARE: the statement's field to reset should it fail */
    const char *what;     /* PG_EXPECT: see db_driver.expect_many */
};

struct pg_stmt {
    struct db_stmt stmt;
    struct postgres *db;
    struct pg_stmt *next;
    unsigned id;
    char *text;
    const char *name; /* on the server; NULL: the text, if that is one word, or the id */
    struct template_params params;
    bool or_surprise;         /* an INSERT that fails on a row that exists already */
    bool or_conflict;         /* a SELECT whose count, if it is wrong, is a conflict */
    unsigned prepared;        /* generation of the connection on which it is prepared */
    unsigned expect_prepared; /* the same for its form that counts */
    size_t waiting;           /* number of entries whose answer it wants */
    VEC(PGresult *) results;  /* received, and not yet stepped over */
    size_t result;            /* index of the current one */
    int row;                  /* in the current result */
    int64_t changes;          /* rows changed so far */
    bool committed;           /* the server answered COMMIT */
    struct hf_err err;        /* its first failure */
};

struct postgres {
    struct db db;
    struct pg_link link;
    struct db_options options;
    struct pg_stmt *stmts;
    unsigned n_stmts;
    struct db_stmt *begin, *commit, *rollback, *more_time, *now, *plans, *notify, *try_lock,
        *unlock_all, *warnings, *size;
    /* of a shared connection */
    struct db_stmt *numbers, *lock, *lock_one_segment, *moment, *wake;

    VEC(struct pg_entry) entries;
    size_t entry;        /* index of the first that is not answered */
    bool unsynced;       /* the last segment is open */
    struct hf_err abort; /* why the server skips the rest of the segment being answered */

    unsigned transaction;  /* number of the one under way; 0: none */
    unsigned transactions; /* the last number given */
    bool begin_queued;
    bool is_one_segment; /* the transaction is one segment, whose Sync commits it */
    bool is_known;       /* `err` came from the server, and the connection goes on */
    struct hf_err err;   /* the transaction's first failure */

    int64_t plans_at_us; /* when to discard the plans, on wait_now_us() */
    struct buf scratch;  /* parameters of one call */
    int64_t floor_ms;    /* the clock never answers less */

    /* of a shared connection's transaction */
    VEC(struct db_value) names; /* hashes of the names that it locks, ascending */
    bool moment_asked;          /* its time and numbers were asked for */
    int64_t moment_ms;          /* its time; 0: not read yet */
    bool number_unused;         /* the current row's number was not given yet */

    struct buf topic;          /* listened to */
    unsigned topic_generation; /* of the connection that listens */
};

/* Outside a transaction: makes sure that there is a connection that, as far as one can see, lives.
 */
HF_MUST_USE enum hf_status pg_connect(struct postgres *db, struct hf_err *err);
/* Drops the connection and fails all that is under way. */
void pg_disconnect(struct postgres *db, const struct hf_err *why);

/* Appends an entry for something that libpq has queued. */
struct pg_entry *pg_push(struct postgres *db, enum pg_kind kind, struct pg_stmt *stmt);
/* Ends the segment, if one is open. */
void pg_sync(struct postgres *db);
/* Waits for the next result of the first entry and gives it to its statement.  Harmless if there is
 * no entry. */
void pg_receive(struct postgres *db);
/* Receives until every entry is answered. */
void pg_drain(struct postgres *db);

#endif
