/* One SQL for two databases.  A struct db is one connection and belongs to one thread; its
 * statements are prepared once and kept.  Each driver (sqlite.c, postgres.c) ends in one const
 * table.
 *
 * Statement texts are shared by both databases.  Where they differ, the text has words in braces:
 *   {FROM rows(seat bigint, hold bigint)}   the rows of exec_many or query_many, named r.
 *       PostgreSQL: FROM (SELECT unnest($1::bigint[]) AS seat, unnest($2::bigint[]) AS hold)
 *       AS r; in a statement that locks, FROM unnest($1::bigint[], ...) AS r(seat, hold).  SQLite:
 *       nothing, and each r.seat becomes a bound parameter, since there the statement runs once
 *       per row.  The word before `rows` may be FROM, USING, JOIN or a comma; it is dropped
 *       together with the rest.
 *   {values(seat bigint, hold bigint)}      the columns and the rows to INSERT, behind the name of
 *       the table.  PostgreSQL: (seat, hold) SELECT unnest($1::bigint[]), unnest($2::bigint[]);
 *       SQLite: (seat, hold) VALUES (?1, ?2).
 *   {args(event bigint, ...)}   at the end of a statement without rows: its parameters, which are
 *       also written r.event
 *   {key}           the type of an integer primary key
 *   {bytes}         the type of a byte string
 *   {clustered}     table option: rows are stored in the primary key
 *   {hot}           table option: rows are updated all the time
 *   {lock}          suffix of a SELECT: it locks its rows, in its ORDER BY
 *   {lock_idle}     the same, but leaves out rows that other transactions have locked
 *   {share}         suffix of a SELECT: its rows cannot change until the transaction ends, but
 *                   others may lock them the same way
 *   {now}           the database's clock when the statement runs, as milliseconds since 1970.  Not
 *                   for a statement that locks: that would read the clock before it waits
 *   {joined}        the name of the aggregate that joins texts; its second argument comes between
 *                   them
 *   {hex(bytes)}    the digits of a byte string, in either case, as a text
 *   {number}        the next of a shared database's numbers, see db_sharing.number; only in
 *                   statements for db_network.run_locked
 *   {slow}          nothing, but the statement may take minutes; others are ended after seconds
 *   {or_surprise}   at the end of an INSERT that only expect_many runs: a row that exists already
 *                   makes it a surprise
 *   {or_conflict}   at the end of a SELECT that only expect_many runs, on a database in a network:
 *                   another number of rows than expected is a conflict, not a surprise
 *   {may_be_lost}   at the end of a RETURNING list: if it returns a row, the commit of this
 *                   transaction does not wait for the disk, and the end of the database's machine
 *                   may undo it.  SQLite waits all the same
 * Column types are bigint, text and bytes.  A statement has at most 32 parameters.
 *
 * Exchanges.  A database in a network is asked as seldom as possible: begin, query_many and
 * expect_many may be sent later than they are called, but before the next answer is read.  So start
 * all queries, then step through each, and a transaction costs two exchanges; or one, if it reads
 * nothing, or if a single statement decides (run, run_locked).
 *
 * Isolation.  Each statement of a writer's or a shared connection's transaction sees what is
 * committed when it begins.  Transactions of other connections see one moment, that of their first
 * statement, and write nothing.
 *
 * A lost connection is made again by the next begin, or by the next statement outside a
 * transaction. Prepared statements survive this.
 *
 * Failures: HF_STORE_UNAVAILABLE (disk, network; nothing was done), HF_CONFLICT (a deadlock
 * or the like with other writers: nothing was done, and the same transaction may succeed now),
 * HF_SURPRISE (see expect_many), HF_OUTCOME_UNKNOWN (a COMMIT whose outcome is not known),
 * HF_INTERNAL (our mistake).  After any failure inside a transaction call rollback. */
#ifndef HF_DB_DB_H
#define HF_DB_DB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/status.h"

#define DB_NAMES_MAX 1024
#define DB_WAKE_TOPIC "holdfast_turn_"

enum db_type { DB_NULL, DB_INT, DB_TEXT, DB_BYTES };

/* A value to bind.  Text and bytes are borrowed until the call that uses them returns. */
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
    /* This connection writes.  On SQLite it is the only one, and takes an exclusive lock on the
     * data. */
    bool writer;
    /* One of many connections, in any number of processes, that read and write: there is no
     * exclusive lock, all have one clock and one sequence, and transactions lock names
     * (begin_locked).  A commit survives the end of any process.  The end of the machine may undo
     * it where that ends every user of the database too (an SQLite file).  A damaged file is
     * HF_INTERNAL.  On PostgreSQL all its tables are in the schema `holdfast_locks`. */
    bool shared;
    /* How long to wait for others, and for a server's answer; 0: 2000 on a shared connection, and
     * some seconds on others.  An SQLite file that is not shared ignores it. */
    int64_t timeout_ms;
    /* SQL that a server runs first on each new connection.  A pooler that does not keep sessions
     * is refused, then.  SQLite ignores it.  Borrowed for the call. */
    const char *settings;
    int cache_kib; /* page cache of this connection; 0: the driver's default */
    /* maintain spares the disk, since commits wait for it, until this becomes true.  NULL: it does
     * not spare it. */
    const atomic_bool *hurry;
    /* When a connection to this database was last made, on wait_now_us(); shared by connections of
     * one process, so that the others need not pause before they try again.  NULL: not shared. */
    _Atomic int64_t *reached_us;
    /* When to give up, on wait_now_us(): from then on no call waits for a database in a network,
     * and what is not known by then fails as if the database did not answer.  Set once, when the
     * process wants to end.  0 or NULL: never. */
    const _Atomic int64_t *give_up_us;
};

/* Whom to wake.  A file wakes by number; a server sends the text to the topic. */
struct db_wake {
    int64_t number;
    int64_t topic;
    char text[33];
};

struct db {
    const struct db_driver *driver;
};
struct db_stmt {
    const struct db_driver *driver;
};

enum db_step { DB_ROW, DB_DONE, DB_FAILED };

/* The log that maintain copies from, after that. */
struct db_log {
    int64_t bytes;      /* in the log */
    int64_t rest_bytes; /* those of them that are not in the main file yet */
};

/* What a database takes on the disks that this process can see; -1: not known. */
struct db_sizes {
    int64_t database_bytes;
    int64_t log_bytes;                   /* of the log's file */
    int64_t disk_bytes, disk_free_bytes; /* of the file system that has both */
};

/* What connections that are shared (db_options.shared) have beside the rest: names that
 * transactions lock, a sequence, and wake-ups. */
struct db_sharing {
    /* Begins a transaction that has the locks of these names: it waits until all transactions that
     * locked one of them have ended.  It need not wait for those on other names; on SQLite, which
     * has one writer, it does.  The names come in any order, at most DB_NAMES_MAX of them, and are
     * borrowed for the call. */
    HF_MUST_USE enum hf_status (*begin_locked)(struct db *db, const struct db_value *names,
                                               size_t n, struct hf_err *err);
    /* Inside a transaction with the locks of some names.  Draws a number that was never drawn
     * before, and that is larger than all that were drawn under the lock of one of these names,
     * whatever happened in between.  At most one for each name. */
    int64_t (*number)(struct db *db);
    /* Outside a transaction.  Returns true if this connection leads nowhere any more (the file was
     * removed or replaced, the server has gone).  Close it and open another.  Cheap enough to be
     * asked before every operation. */
    bool (*is_gone)(struct db *db);
    /* After a commit: wakes the connections, of any process, that await these numbers, or that
     * listen on DB_WAKE_TOPIC with the number of the topic.  A wake-up is a hint: it may be lost,
     * and may wake others too. */
    void (*wake)(struct db *db, const struct db_wake *wakes, size_t n);
};

/* What is watched and maintained of a database while it is in use. */
struct db_upkeep {
    /* Appends what an operator should know about the database's settings, one line each: commits
     * that are not safe, a standby that may lag.  Appends nothing if all is well. */
    HF_MUST_USE enum hf_status (*warnings)(struct db *db, struct buf *ret_lines,
                                           struct hf_err *err);
    /* Returns how often this connection has waited for an answer of its server; on SQLite, which
     * has no server, how many statements it has run, counting each row of exec_many. */
    int64_t (*exchanges)(const struct db *db);
    /* Copies the log into the main file, up to the oldest page that a reader still needs there. The
     * next transaction that writes begins the log anew if all of it has been copied by then.  A
     * database that has no such log, or whose log another connection is copying, reports 0 bytes.
     */
    HF_MUST_USE enum hf_status (*maintain)(struct db *db, struct db_log *ret, struct hf_err *err);
    /* Returns how long the log was after this connection's last commit; 0 if maintain has nothing
     * to do on this database.  No system call. */
    int64_t (*log_bytes)(const struct db *db);
    /* Outside a transaction.  A few system calls, or one exchange. */
    HF_MUST_USE enum hf_status (*sizes)(struct db *db, struct db_sizes *ret, struct hf_err *err);
};

/* What only a database in a network has, to which other processes write, too. */
struct db_network {
    /* Outside a transaction.  Does begin, the statement and the commit in one exchange, so that
     * nothing is locked between two calls.  Fails as commit does.  *ret_changes as in exec_many. */
    HF_MUST_USE enum hf_status (*run)(struct db_stmt *stmt, const struct db_value *args,
                                      int64_t *ret_changes, struct hf_err *err);
    /* Shared databases, outside a transaction.  Does begin_locked on one name, the statement and
     * the commit in one exchange.  Fails as commit does; step through the answer afterwards. */
    HF_MUST_USE enum hf_status (*run_locked)(struct db_stmt *stmt, const struct db_value *name,
                                             const struct db_value *args, struct hf_err *err);
    /* From now on an answer is awaited for at most `ms`; 0: as long as the options say. */
    void (*limit_answers)(struct db *db, int64_t ms);
    /* Outside a transaction.  Sends at most 7000 bytes of text to all connections, of any process,
     * that listen on `topic` (letters and _). */
    HF_MUST_USE enum hf_status (*notify)(struct db *db, const char *topic, const char *text,
                                         struct hf_err *err);
    /* Outside a transaction.  Sleeps until a text arrives, until wake_fd (-1: none) is readable, or
     * for timeout_ms; appends the texts that arrived, one line each.  Texts that were sent before
     * the first call, or while the connection was lost, are not received. */
    HF_MUST_USE enum hf_status (*listen)(struct db *db, const char *topic, int wake_fd,
                                         int64_t timeout_ms, struct buf *ret_lines,
                                         struct hf_err *err);
    /* Outside a transaction.  Takes the advisory lock of this number, until unlock_all or the end
     * of the connection; *ret_locked is false if another connection has it.  A connection that has
     * the lock may take it again. */
    HF_MUST_USE enum hf_status (*try_lock)(struct db *db, int64_t number, bool *ret_locked,
                                           struct hf_err *err);
    /* Gives back every advisory lock of this connection, however often it was taken. */
    HF_MUST_USE enum hf_status (*unlock_all)(struct db *db, struct hf_err *err);
    /* Is there a connection pooler in between? */
    bool (*is_pooled)(const struct db *db);
};

/* What only a database that is a file has. */
struct db_file {
    /* Shared databases, outside a transaction.  Sleeps until `number` is woken, or until something
     * may have been committed since the last transaction or await, at most timeout_ms, or until
     * soon after wake_fd (-1: none) is readable; may return early.  `number` is one from the
     * sequence, or 0. */
    HF_MUST_USE enum hf_status (*await)(struct db *db, int64_t number, int wake_fd,
                                        int64_t timeout_ms, struct hf_err *err);
    /* Inside a transaction of the writer.  Fails unless the disk takes `bytes` more; they are given
     * back at once. */
    HF_MUST_USE enum hf_status (*check_room)(struct db *db, int64_t bytes, struct hf_err *err);
    /* Reads all of the file and appends what is damaged in it, one line each, some lines at most;
     * nothing if it is sound.  Gives up after limit_ms (0: never), and then *ret_whole is false. */
    HF_MUST_USE enum hf_status (*check)(struct db *db, int64_t limit_ms, struct buf *ret_lines,
                                        bool *ret_whole, struct hf_err *err);
    /* Outside a transaction.  Copies the database as it is at one moment into the empty file
     * `path`, while other connections go on reading and writing.  The caller syncs the file. */
    HF_MUST_USE enum hf_status (*copy)(struct db *db, const char *path, struct hf_err *err);
    /* Gives the database file `new_path` the name that the URL has, which no process may be using.
     * A database of that name is kept under the name `aside`; all three are on one disk.  If the
     * process ends meanwhile, the name is that of the old file or of the new one; but if the old
     * one is too damaged to be closed properly, it may also be free. */
    HF_MUST_USE enum hf_status (*put)(const char *url, const char *new_path, const char *aside,
                                      struct hf_err *err);
};

struct db_driver {
    const char *name;       /* also the URL's scheme: sqlite:PATH */
    const char *other_name; /* a second scheme; NULL: none */
    /* Other processes may write too, so what a process remembers may be out of date. */
    bool many_writers;
    /* Run first in each transaction of a migration, so that two processes do not migrate at once;
     * NULL: transactions keep them apart anyway. */
    const char *migration_lock;
    HF_MUST_USE enum hf_status (*open)(const char *url, const struct db_options *options,
                                       struct db **ret_db, struct hf_err *err);
    void (*close)(struct db *db); /* frees its statements too; accepts NULL */

    HF_MUST_USE enum hf_status (*prepare)(struct db *db, const char *sql, struct db_stmt **ret_stmt,
                                          struct hf_err *err);
    /* Runs several statements without parameters, for schema changes. */
    HF_MUST_USE enum hf_status (*script)(struct db *db, const char *sql, struct hf_err *err);

    HF_MUST_USE enum hf_status (*begin)(struct db *db, struct hf_err *err);
    HF_MUST_USE enum hf_status (*commit)(struct db *db, struct hf_err *err);
    void (*rollback)(struct db *db); /* harmless outside a transaction */

    /* Runs a statement over `args`, which is n_rows times its parameters, row after row.
     * *ret_changes (may be NULL) gets the number of rows changed in all. */
    HF_MUST_USE enum hf_status (*exec_many)(struct db_stmt *stmt, const struct db_value *args,
                                            size_t n_rows, int64_t *ret_changes,
                                            struct hf_err *err);
    /* The same inside a transaction that may only commit if exactly n_rows rows change.  If another
     * number did, this or a later call of the transaction, at the latest the commit, fails with
     * HF_SURPRISE, and err->msg is `what`, which is borrowed until then. */
    HF_MUST_USE enum hf_status (*expect_many)(struct db_stmt *stmt, const char *what,
                                              const struct db_value *args, size_t n_rows,
                                              struct hf_err *err);
    /* Starts a query over `args`, which are borrowed until the last step.  The answers for all
     * n_rows come in any order: select a key column to tell them apart.  Several statements may be
     * under way at once: step through them in the order in which they were started, each to its end
     * or to finish. */
    HF_MUST_USE enum hf_status (*query_many)(struct db_stmt *stmt, const struct db_value *args,
                                             size_t n_rows, struct hf_err *err);
    enum db_step (*step)(struct db_stmt *stmt, struct hf_err *err);
    /* The columns of the current row are valid until the next step. */
    int64_t (*column_int)(struct db_stmt *stmt, int column);
    /* Returns NULL for SQL NULL.  Text is NUL-terminated. */
    const void *(*column_data)(struct db_stmt *stmt, int column, size_t *ret_len);
    void (*finish)(struct db_stmt *stmt); /* ends a query before DB_DONE; harmless otherwise */

    /* Reads the database's clock, in milliseconds since 1970.  It never goes back on one
     * connection, unless that is a shared one: a clock that went back for some connections and not
     * for others would be worse. */
    HF_MUST_USE enum hf_status (*now_ms)(struct db *db, int64_t *ret_ms, struct hf_err *err);
    /* From now on the clock is never before `ms`, which the ledger has stored already. */
    void (*now_floor)(struct db *db, int64_t ms);

    struct db_sharing sharing;
    struct db_upkeep upkeep;
    const struct db_network *network; /* NULL: a file */
    const struct db_file *file;       /* NULL: in a network */
};

extern const struct db_driver db_sqlite, db_postgres;

/* Opens a connection with the driver of the URL's scheme; db.c has the array of drivers. */
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

/* Brings a schema up to date.  It is a list of scripts: migration n makes version n of version n-1,
 * in a transaction of its own. */
HF_MUST_USE enum hf_status db_migrate(struct db *db, const char *const *migrations, int n,
                                      struct hf_err *err);
/* The same, but `whole`, if it is not NULL, makes version n at once of a SQLite database that has
 * none: each column that a migration adds has SQLite read the whole schema again. */
HF_MUST_USE enum hf_status db_create(struct db *db, const char *whole,
                                     const char *const *migrations, int n, struct hf_err *err);
/* Reads the version of the data's schema; 0 if there is none. */
HF_MUST_USE enum hf_status db_schema_version(struct db *db, int64_t *ret_version,
                                             struct hf_err *err);
/* Does the same as db_migrate for a part that counts its own versions, beside the main schema or
 * without it. */
HF_MUST_USE enum hf_status db_migrate_part(struct db *db, const char *part,
                                           const char *const *migrations, int n,
                                           struct hf_err *err);

#endif
