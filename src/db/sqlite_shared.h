/* An SQLite database that many processes use at once (db_options.shared): one clock and one
 * sequence for all of them, kept in a row of the file, and waiting for one another.
 *
 * All processes that use the file run on one kernel, since its log is shared through memory.  So
 * they share the boot-time clock too, and the row holds what to add to it; by the wall clock leases
 * would end early or late after it was set.  And all of them end with the machine.  Commits
 * therefore do not wait for the disk: synchronous=NORMAL loses nothing by kill -9, and by a power
 * cut only the last commits, whose makers ended with it.  Numbers are the exception: they are
 * reserved in blocks, a block is on the disk before its first number is given, and after a boot the
 * rest of the block is skipped.  So no number is ever given twice.  Measured on one disk: 755 pairs
 * of commits per second with a sync each, 37,000 without. */
#ifndef HF_DB_SQLITE_SHARED_H
#define HF_DB_SQLITE_SHARED_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct db_wake;

struct sqlite_shared {
    sqlite3 *handle;
    const struct clock *clock;
    sqlite3_stmt *begin, *read, *write;
    char boot[CLOCK_BOOT_SIZE];
    int64_t offset_ms;       /* the database's time minus boot time */
    int64_t stored_ms;       /* the row's own idea of now: old by at most STORE_EVERY_MS */
    int64_t next, reserved;  /* numbers from next on, below reserved, may be given */
    bool dirty;              /* the row is to be written by this transaction */
    bool is_stored;          /* the row was as above when our last transaction committed, */
    unsigned data_version;   /* which left the file with this number of SQLite's */
    const uint32_t *commits; /* changes with every commit to the file; NULL: not available */
    uint32_t seen;           /* *commits when all commits were last known */
    uint32_t begun;          /* *commits at the beginning of this transaction */
    int64_t changes;         /* the handle's count of changed rows at that moment */
    int64_t timeout_us;      /* how long to wait for transactions of others */
    int64_t busy_until_us;   /* when the present wait gives up, on wait_now_us() */
    int64_t check_at_us;     /* when to check next whether the file is still at its path */
};

/* sqlite_shared_file.c: creates the file before sqlite3_open, if it is not there, as a whole or not
 * at all, readable by its owner alone; SQLite gives its other files the same mode.  Does not create
 * the directory: a mistyped path would be a lock that no other process shares.  Returns 0 or an
 * errno. */
int sqlite_shared_create(const char *path, const struct clock *clock, int64_t timeout_ms);
/* The functions below that return int return an SQLite code. */

/* Sets `handle` up as one of many connections. */
int sqlite_shared_open(struct sqlite_shared *s, sqlite3 *handle, const struct clock *clock,
                       int64_t timeout_ms);
void sqlite_shared_close(struct sqlite_shared *s); /* accepts a zeroed struct */

/* Returns true if the file is no longer at its path, so that it has to be opened again: another
 * process may have created a new one. */
bool sqlite_shared_has_moved(struct sqlite_shared *s);
/* Begins a transaction (BEGIN IMMEDIATE) and reads the row if it may have changed.  SQLITE_BUSY:
 * other transactions took longer than the timeout. */
int sqlite_shared_begin(struct sqlite_shared *s);
/* Before COMMIT: writes the row, if that is due. */
int sqlite_shared_write(struct sqlite_shared *s);
/* After COMMIT. */
void sqlite_shared_committed(struct sqlite_shared *s);
int64_t sqlite_shared_now_ms(const struct sqlite_shared *s);
/* Inside a transaction: draws the next number, at most DB_NAMES_MAX of them per transaction. */
int64_t sqlite_shared_number(struct sqlite_shared *s);
/* Outside a transaction; see db_file.await and db_sharing.wake. */
void sqlite_shared_await(struct sqlite_shared *s, int64_t number, int64_t timeout_ms);
void sqlite_shared_wake(const struct sqlite_shared *s, const struct db_wake *wakes, size_t n);

#endif
