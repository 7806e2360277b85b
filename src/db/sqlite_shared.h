/* What an SQLite database needs when many processes use it at once (db_options.shared): one clock
 * and one sequence for all of them, kept in a row of the file, and patience with one another.
 *
 * All who use the file run on one kernel: its log is shared through memory.  So they share the
 * boot-time clock too, and the row holds what to add to it; a process that asked the wall clock
 * itself would see leases end early or late after the wall was set.  And they all end with the
 * machine.  Commits therefore do not wait for the disk (synchronous=NORMAL: kill -9 loses nothing,
 * a power cut the last commits, whose makers it ended as well), but for numbers: those are reserved
 * in blocks, a block is on the disk before its first number is given, and after a boot the rest of
 * the block is skipped.  So no number is ever given twice.  Measured, on one disk: 755 pairs of
 * commits a second with a sync each, 37,000 without. */
#ifndef HF_DB_SQLITE_SHARED_H
#define HF_DB_SQLITE_SHARED_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct sqlite_shared {
    sqlite3 *handle;
    const struct clock *clock;
    sqlite3_stmt *begin, *read, *write;
    char boot[CLOCK_BOOT_SIZE];
    int64_t offset_ms;       /* the database's time minus boot time */
    int64_t stored_ms;       /* the row's own idea of now: old by at most STORE_EVERY_MS */
    int64_t next, reserved;  /* numbers from next on, below reserved, may be given */
    bool dirty;              /* the row is to be written by this transaction */
    const uint32_t *commits; /* changes with every commit to the file; NULL: not to be had */
    uint32_t seen;           /* its value when what was committed was last known */
    uint32_t begun;          /* and at the beginning of this transaction ... */
    int64_t changes;         /* with the handle's count of rows changed */
    int64_t timeout_us;      /* for others to end their transactions */
    int64_t busy_until_us;
    int64_t look_at_us; /* when to see next whether the file is still at its path */
};

/* sqlite_shared_file.c: makes the file, if it is not there, for its owner alone, whole or not at
 * all; SQLite gives its other files the same mode.  Not its directory: a mistyped path would be a
 * lock that nobody shares.  Before sqlite3_open.  0, or an errno. */
int sqlite_shared_create(const char *path, const struct clock *clock, int64_t timeout_ms);
/* Everything below returns an SQLite code.  Sets `handle` up as one of many; close accepts a zeroed
 * struct. */
int sqlite_shared_open(struct sqlite_shared *s, sqlite3 *handle, const struct clock *clock,
                       int64_t timeout_ms);
void sqlite_shared_close(struct sqlite_shared *s);

/* The file is not at its path any more, others may have made a new one: to be opened anew. */
bool sqlite_shared_has_moved(struct sqlite_shared *s);
/* BEGIN IMMEDIATE, and the row.  SQLITE_BUSY: others took longer than the timeout. */
int sqlite_shared_begin(struct sqlite_shared *s);
/* Before COMMIT, and after. */
int sqlite_shared_write(struct sqlite_shared *s);
void sqlite_shared_committed(struct sqlite_shared *s);
int64_t sqlite_shared_now_ms(const struct sqlite_shared *s);
/* Inside a transaction: the next number, DB_NAMES_MAX of them at most in one. */
int64_t sqlite_shared_number(struct sqlite_shared *s);
/* Outside one: see db_driver.await and wake. */
void sqlite_shared_await(struct sqlite_shared *s, int64_t number, int64_t timeout_ms);
void sqlite_shared_wake(const struct sqlite_shared *s, const int64_t *numbers, size_t n);

#endif
