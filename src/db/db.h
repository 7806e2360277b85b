/* One SQL, two databases.  A struct db is one connection and belongs to one thread; its statements
 * are prepared once and kept.  Drivers (sqlite.c, postgres.c) end in one const table.
 *
 * Statement texts are shared by every database.  Differences are written in braces:
 *   {FROM rows(seat bigint, hold bigint)}   the rows of exec_many/query_many, named r.  PostgreSQL:
 *       FROM unnest($1::bigint[], $2::bigint[]) AS r(seat, hold); SQLite: nothing, and each r.seat
 *       becomes a bound parameter, since there the statement runs once a row.  The word before
 *       `rows` may be FROM, USING, JOIN or a comma; it is dropped together with the rest.
 *   {values(seat bigint, hold bigint)}      the rows to INSERT, all columns in order.  PostgreSQL:
 *       SELECT r.seat, r.hold FROM unnest(...) AS r(seat, hold); SQLite: VALUES (?1, ?2).
 *   {key}           the type of an integer primary key; {bytes} that of a byte string
 *   {clustered}     table option: rows live in the primary key
 *   {hot}           table option: rows that are updated all the time
 *   {lock}          suffix that makes a SELECT lock its rows, in its ORDER BY
 *   {lock_idle}     the same, without the rows that others have locked
 *   {now}           the database's clock as an integer, milliseconds since 1970, at the moment the
 *                   statement runs: not for one that also locks, which would read it before waiting
 *   {number}        the next of a shared database's numbers, see db_driver.number; only in what
 *                   db_driver.once runs
 *   {slow}          nothing, but the statement may take minutes, where others end after seconds
 *   {or_surprise}   at the end of an INSERT that is only run by expect_many: a row that is there
 *                   already makes it a surprise
 * Column types are bigint, text and bytes.  A statement without rows(...) names its parameters by
 * {args(event bigint, ...)} at its end, and they too are written r.event.  At most 24 parameters.
 *
 * A server in a network is spoken to as seldom as may be: begin, query_many and expect_many need
 * not be sent when they are called, only before an answer is asked for.  So start all queries, then
 * step through each, and a transaction costs two exchanges; one, if one statement decides (once).
 *
 * Isolation.  The writer's and shared transactions see what is committed when each statement
 * begins; any other connection's see one moment, that of their first statement, and write nothing.
 *
 * A connection that was lost is made anew by the next begin, or by the next statement outside a
 * transaction; who prepared statements keeps them.
 *
 * Failures: HF_LEDGER_UNAVAILABLE (disk, network; nothing was done), HF_LEDGER_CONFLICT (a deadlock
 * or the like with other writers: nothing was done, and the same transaction may succeed now),
 * HF_LEDGER_SURPRISE (see expect_many), HF_OUTCOME_UNKNOWN (a COMMIT whose outcome could not be
 * learnt), HF_INTERNAL (our mistake).  After any failure inside a transaction call db_rollback. */
#ifndef HF_DB_DB_H
#define HF_DB_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/status.h"

#define DB_NAMES_MAX 1024

enum db_type { DB_NULL, DB_INT, DB_TEXT, DB_BYTES };

/* A value to bind; text and bytes are borrowed until the call that uses them returns. */
struct db_value {
    enum db_type type;
    int64_t i;
    const void *data;
    size_t len;
};

static inline struct db_value db_int(int64_t i)
{
    return (struct db_value){.type = DB_INT, .i = i};
}
static inline struct db_value db_text(const char *s, size_t len)
{
    return (struct db_value){.type = s ? DB_TEXT : DB_NULL, .data = s, .len = len};
}
static inline struct db_value db_bytes(const void *p, size_t len)
{
    return (struct db_value){.type = p ? DB_BYTES : DB_NULL, .data = p, .len = len};
}

struct db_options {
    const struct clock *clock;
    bool writer; /* the one connection that writes; takes the exclusive lock on the data */
    /* One of many, in any number of processes, that read and write: no exclusive lock, one clock
     * and one sequence for all, and transactions that are alone on a name (begin_alone).  What
     * commits is safe from the end of any process; with that of the machine it may be lost where
     * every user ends with it too (an SQLite file).  A damaged file is then HF_INTERNAL, in words.
     */
    bool shared;
    int64_t timeout_ms; /* of a shared one, for the others; 0: 2000 */
    bool paced;         /* for maintain: spare the disk, others are waiting for it */
    int cache_kib;      /* page cache of this connection; 0: the driver's default */
    /* Monotonic µs, shared by connections to one database: when one of them was last made.  Who was
     * about to pause before another attempt then need not.  NULL: shares it with nobody. */
    _Atomic int64_t *reached_us;
    /* Likewise, set once by whoever wants to end: from then on nothing waits for a database on
     * another machine.  What is not known by then fails as if it did not answer.  0, NULL: never.
     */
    const _Atomic int64_t *give_up_us;
};

struct db {
    const struct db_driver *driver;
};
struct db_stmt {
    const struct db_driver *driver;
};

enum db_step { DB_ROW, DB_DONE, DB_FAILED };

struct db_driver {
    const char *name;       /* also the URL's scheme: sqlite:PATH */
    const char *other_name; /* another scheme; NULL: none */
    /* Other processes may write too: what a process remembers may be old. */
    bool many_writers;
    /* Run first in each transaction of a migration, where that alone does not keep two who migrate
     * at once apart; NULL: it does. */
    const char *migration_lock;
    HF_MUST_USE enum hf_status (*open)(const char *url, const struct db_options *options,
                                       struct db **ret_db, struct hf_err *err);
    void (*close)(struct db *db); /* finalizes its statements too; accepts NULL */

    HF_MUST_USE enum hf_status (*prepare)(struct db *db, const char *sql, struct db_stmt **ret_stmt,
                                          struct hf_err *err);
    /* Several statements with no parameters, for schema changes. */
    HF_MUST_USE enum hf_status (*script)(struct db *db, const char *sql, struct hf_err *err);

    HF_MUST_USE enum hf_status (*begin)(struct db *db, struct hf_err *err);
    /* Of a shared database: begin a transaction that is alone on these names, which must stay until
     * the call returns: it goes on when all others that began on one of them have ended.  Those on
     * other names it need not wait for (SQLite, with its one writer, does).  Any order of names, at
     * most DB_NAMES_MAX. */
    HF_MUST_USE enum hf_status (*begin_alone)(struct db *db, const struct db_value *names, size_t n,
                                              struct hf_err *err);
    /* Of a shared database, outside a transaction, where an exchange with the server is to be saved
     * (else NULL): begin_alone on the name, the statement and the commit in one.  Fails as commit
     * does; then step through the answer. */
    HF_MUST_USE enum hf_status (*once)(struct db_stmt *stmt, const struct db_value *name,
                                       const struct db_value *args, struct hf_err *err);
    HF_MUST_USE enum hf_status (*commit)(struct db *db, struct hf_err *err);
    void (*rollback)(struct db *db); /* harmless outside a transaction */

    /* `args` is n_rows times the statement's parameters, row after row.  *ret_changes (may be
     * NULL) gets the number of rows changed in all. */
    HF_MUST_USE enum hf_status (*exec_many)(struct db_stmt *stmt, const struct db_value *args,
                                            size_t n_rows, int64_t *ret_changes,
                                            struct hf_err *err);
    /* The same inside a transaction that may only commit if exactly n_rows rows change.  When
     * another number did, this or a later call of the transaction, at the latest the commit, fails
     * with HF_LEDGER_SURPRISE and err->msg is `what`, which must stay until then. */
    HF_MUST_USE enum hf_status (*expect_many)(struct db_stmt *stmt, const char *what,
                                              const struct db_value *args, size_t n_rows,
                                              struct hf_err *err);
    /* Start reading; `args` must stay until the last step.  Answers for all n_rows follow one
     * another, in no promised order: select a key column to tell them apart.  Several statements
     * may be under way at once: step through them in the order they were started, each to its end
     * or to finish. */
    HF_MUST_USE enum hf_status (*query_many)(struct db_stmt *stmt, const struct db_value *args,
                                             size_t n_rows, struct hf_err *err);
    enum db_step (*step)(struct db_stmt *stmt, struct hf_err *err);
    /* Columns of the current row, valid until the next step. */
    int64_t (*column_int)(struct db_stmt *stmt, int column);
    /* NULL for SQL NULL; text is NUL-terminated. */
    const void *(*column_data)(struct db_stmt *stmt, int column, size_t *ret_len);
    void (*finish)(struct db_stmt *stmt); /* end a query before DB_DONE; harmless otherwise */

    /* The database's clock, milliseconds since 1970, never backwards on one connection's server. */
    HF_MUST_USE enum hf_status (*now_ms)(struct db *db, int64_t *ret_ms, struct hf_err *err);
    /* Never answer a time before `ms` from now on: what the ledger has stored already. */
    void (*now_floor)(struct db *db, int64_t ms);
    /* Of a shared database, inside a transaction that is alone on some names: a number that nobody
     * has been given before, larger than all that were given to others on one of these names,
     * whatever happened in between.  At most one for each name. */
    int64_t (*number)(struct db *db);
    /* Of a shared database, outside a transaction: this connection leads nowhere any more (the file
     * was removed or replaced, the server has gone).  Close it and open another, which knows what
     * there is to know.  Cheap: may be asked before everything. */
    bool (*is_gone)(struct db *db);
    /* Of a shared database, outside a transaction: sleep until `number` is woken, or something may
     * have been committed since the last transaction or await, at most timeout_ms; may return
     * early. `number`: one from the sequence, or 0. */
    HF_MUST_USE enum hf_status (*await)(struct db *db, int64_t number, int64_t timeout_ms,
                                        struct hf_err *err);
    /* After a commit: wake who awaits these numbers, in whatever process.  A hint: it may be lost,
     * and may wake others too. */
    void (*wake)(struct db *db, const int64_t *numbers, size_t n);
    /* Where many write (else NULL), outside a transaction.  Tell all who listen on `topic` (letters
     * and _), of any process.  At most 7000 bytes. */
    HF_MUST_USE enum hf_status (*notify)(struct db *db, const char *topic, const char *text,
                                         struct hf_err *err);
    /* Likewise.  Sleep until something was told, at most timeout_ms, or until wake_fd (-1: none) is
     * readable; append what was told, a line each.  What was told before the first call, or while
     * the connection was lost, is never heard. */
    HF_MUST_USE enum hf_status (*listen)(struct db *db, const char *topic, int wake_fd,
                                         int64_t timeout_ms, struct buf *ret_lines,
                                         struct hf_err *err);
    /* Where many write (else NULL), outside a transaction.  Takes the advisory lock of this number,
     * until unlock_all or the end of the connection; *ret_locked is false if another connection has
     * it.  A connection that has the lock may take it again. */
    HF_MUST_USE enum hf_status (*try_lock)(struct db *db, int64_t number, bool *ret_locked,
                                           struct hf_err *err);
    /* Gives back every advisory lock of this connection, however often it was taken. */
    HF_MUST_USE enum hf_status (*unlock_all)(struct db *db, struct hf_err *err);
    /* What an operator should know about this database's settings, a line each: a commit that is
     * not safe, a copy that may lag.  Nothing is appended when all is well. */
    HF_MUST_USE enum hf_status (*warnings)(struct db *db, struct buf *ret_lines,
                                           struct hf_err *err);
    /* How often this connection has asked its server for an answer; where there is none (SQLite),
     * how many statements it has run, a row of exec_many being one. */
    int64_t (*exchanges)(const struct db *db);
    /* Off the hot path, from a connection of its own: copy the log into the main file. */
    HF_MUST_USE enum hf_status (*maintain)(struct db *db, struct hf_err *err);
};

extern const struct db_driver db_sqlite, db_postgres;

/* Opens by the URL's scheme: the array of drivers is in db.c. */
HF_MUST_USE enum hf_status db_open(const char *url, const struct db_options *options,
                                   struct db **ret_db, struct hf_err *err);
static inline void db_close(struct db *db)
{
    if (db)
        db->driver->close(db);
}
HF_MUST_USE static inline enum hf_status db_exec(struct db_stmt *s, const struct db_value *args,
                                                 int64_t *ret_changes, struct hf_err *err)
{
    return s->driver->exec_many(s, args, 1, ret_changes, err);
}
HF_MUST_USE static inline enum hf_status db_query(struct db_stmt *s, const struct db_value *args,
                                                  struct hf_err *err)
{
    return s->driver->query_many(s, args, 1, err);
}
static inline enum db_step db_step(struct db_stmt *s, struct hf_err *err)
{
    return s->driver->step(s, err);
}
static inline int64_t db_column_int(struct db_stmt *s, int c)
{
    return s->driver->column_int(s, c);
}
static inline const void *db_column_data(struct db_stmt *s, int c, size_t *ret_len)
{
    return s->driver->column_data(s, c, ret_len);
}

/* A schema is a list of scripts; migration n brings version n-1 to n, in a transaction. */
HF_MUST_USE enum hf_status db_migrate(struct db *db, const char *const *migrations, int n,
                                      struct hf_err *err);
/* The version that the data is of; 0: there is no schema. */
HF_MUST_USE enum hf_status db_schema_version(struct db *db, int64_t *ret_version,
                                             struct hf_err *err);
/* The same for a part that lives beside the main schema, or alone, and counts its own versions. */
HF_MUST_USE enum hf_status db_migrate_part(struct db *db, const char *part,
                                           const char *const *migrations, int n,
                                           struct hf_err *err);

#endif
