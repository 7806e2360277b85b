/* See sqlite_shared.h.  Clock and sequence are one row, which every transaction knows when it
 * begins and writes if it took a number.  Belongs to the thread of its connection. */
#include "db/sqlite_shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/wait.h"
#include "db/db.h"

#define NUMBERS_BLOCK 16384
#define STORE_EVERY_MS 10000
#define BEGIN_TRIES 4
/* How often to check, without being woken, whether the file is still at its path and whether there
 * was a commit. */
#define CHECK_EVERY_US 50000
/* The same for a waiter that has no number to be woken by, or where waking does not work. */
#define CHECK_OFTEN_US 2000
/* After this many pages in the log the process that commits copies it into the main file. */
#define CHECKPOINT_PAGES 1000
/* A transaction takes about 20 us.  A process that has waited longer asks more often, so that
 * newcomers do not overtake it for ever; but the waiters must leave the processor to the one they
 * wait for. */
#define BUSY_SLEEP_US 800
#define BUSY_SLEEP_MIN_US 300
#define USE_LOG_SLEEP_US 1000

/* A lease is a small row: small pages mean fewer bytes in the log. */
#define PAGE_BYTES 1024

/* Creates the row; its parameter is the first number. */
#define SETUP                                                                                      \
    "CREATE TABLE IF NOT EXISTS shared_state ("                                                    \
    " id INTEGER PRIMARY KEY CHECK (id = 1), boot TEXT NOT NULL, offset_ms INTEGER NOT NULL,"      \
    " now_ms INTEGER NOT NULL, next INTEGER NOT NULL, reserved INTEGER NOT NULL);"                 \
    "INSERT INTO shared_state SELECT 1, '', 0, 0, n, n FROM (SELECT %" PRId64 " AS n)"             \
    " WHERE NOT EXISTS (SELECT 1 FROM shared_state) ON CONFLICT DO NOTHING;"

/* ---- waiting for other processes ---- */

/* SQLite's busy handler: returns 0 to give up. */
static int on_busy(void *ctx, int count)
{
    struct sqlite_shared *s = ctx;
    int64_t now = wait_now_us(), pause = BUSY_SLEEP_US / (count + 1);
    if (count == 0)
        s->busy_until_us = now + s->timeout_us;
    if (now >= s->busy_until_us)
        return 0;
    wait_sleep_us(pause > BUSY_SLEEP_MIN_US ? pause : BUSY_SLEEP_MIN_US);
    return 1;
}

/* Turns the write-ahead log on, in case another program made the file.  SQLite wants the file for
 * itself for that, while it already reads it: two processes that wait inside of SQLite would wait
 * for each other.  So there is no waiting inside; the call fails, lets go and is made again. */
static int use_log(struct sqlite_shared *s)
{
    int64_t until = wait_now_us() + s->timeout_us;
    char sql[80];
    int rc, tries = 0;
    (void)snprintf(sql, sizeof sql, "PRAGMA page_size=%d; PRAGMA journal_mode=WAL;", PAGE_BYTES);
    sqlite3_busy_handler(s->handle, NULL, NULL);
    while ((rc = sqlite3_exec(s->handle, sql, NULL, NULL, NULL), rc & 0xff) == SQLITE_BUSY &&
           wait_now_us() < until)
        wait_sleep_us(USE_LOG_SLEEP_US * (1 + (getpid() + 7 * tries++) % 16));
    sqlite3_busy_handler(s->handle, on_busy, s);
    return rc;
}

/* ---- the row ---- */

static int run(sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    int reset = sqlite3_reset(stmt);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : reset;
}

static int row_read(struct sqlite_shared *s)
{
    int rc = sqlite3_step(s->read);
    if (rc == SQLITE_ROW) {
        const char *boot = (const char *)sqlite3_column_text(s->read, 0);
        bool same = boot && strcmp(boot, s->boot) == 0;
        s->offset_ms = sqlite3_column_int64(s->read, 1);
        s->stored_ms = sqlite3_column_int64(s->read, 2);
        s->next = sqlite3_column_int64(s->read, 3);
        s->reserved = sqlite3_column_int64(s->read, 4);
        s->dirty = !same;
        rc = SQLITE_OK;
        if (!same) {
            int64_t boot_ms = clock_boot_us(s->clock) / 1000;
            int64_t wall_ms = clock_wall_us(s->clock) / 1000;
            s->offset_ms = (wall_ms > s->stored_ms ? wall_ms : s->stored_ms) - boot_ms;
            s->next = s->reserved;
        }
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_CORRUPT;
    }
    int reset = sqlite3_reset(s->read);
    return rc == SQLITE_OK ? reset : rc;
}

int64_t sqlite_shared_now_ms(const struct sqlite_shared *s)
{
    return clock_boot_us(s->clock) / 1000 + s->offset_ms;
}

int64_t sqlite_shared_number(struct sqlite_shared *s)
{
    hf_check(s->next < s->reserved);
    s->dirty = true;
    return s->next++;
}

int sqlite_shared_write(struct sqlite_shared *s)
{
    if (!s->dirty && sqlite_shared_now_ms(s) - s->stored_ms < STORE_EVERY_MS)
        return SQLITE_OK;
    s->stored_ms = sqlite_shared_now_ms(s);
    sqlite3_bind_text(s->write, 1, s->boot, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s->write, 2, s->offset_ms);
    sqlite3_bind_int64(s->write, 3, s->stored_ms);
    sqlite3_bind_int64(s->write, 4, s->next);
    sqlite3_bind_int64(s->write, 5, s->reserved);
    return run(s->write);
}

/* ---- transactions ---- */

static void rollback(struct sqlite_shared *s)
{
    if (!sqlite3_get_autocommit(s->handle))
        (void)sqlite3_exec(s->handle, "ROLLBACK", NULL, NULL, NULL);
}

/* Checked every CHECK_EVERY_US: a check each time would cost a tenth of an uncontended lease.  What
 * is granted until then in the file that is gone has a lower fence than all that its successor
 * grants. */
bool sqlite_shared_has_moved(struct sqlite_shared *s)
{
    int moved = 0;
    int64_t now = wait_now_us();
    if (now < s->check_at_us)
        return false;
    (void)sqlite3_file_control(s->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    s->check_at_us = moved ? now : now + CHECK_EVERY_US;
    return moved;
}

/* A number that changes with every commit that this connection makes or, as of its latest BEGIN,
 * finds.  Returns false if SQLite does not tell it. */
static bool data_version(const struct sqlite_shared *s, unsigned *ret)
{
    return sqlite3_file_control(s->handle, "main", SQLITE_FCNTL_DATA_VERSION, ret) == SQLITE_OK;
}

/* Reads the row, unless our last transaction committed it as we know it and no other connection has
 * committed since: reading takes a tenth of an uncontended lease. */
static int row_refresh(struct sqlite_shared *s)
{
    unsigned version;
    bool is_known = s->is_stored && data_version(s, &version) && version == s->data_version;
    s->is_stored = s->dirty = false;
    return is_known ? SQLITE_OK : row_read(s);
}

static int begin(struct sqlite_shared *s)
{
    int rc = sqlite3_step(s->begin);
    int reset = sqlite3_reset(s->begin);
    rc = rc == SQLITE_DONE ? row_refresh(s) : reset;
    if (rc != SQLITE_OK)
        rollback(s);
    s->begun = s->commits ? __atomic_load_n(s->commits, __ATOMIC_ACQUIRE) : 0;
    s->changes = sqlite3_total_changes64(s->handle);
    return rc;
}

/* Reserves the next block of numbers with a synced commit.  Other processes cannot read that commit
 * before it is on the disk, together with all commits before it, so they may use the new block as
 * soon as they read of it. */
static int reserve_block(struct sqlite_shared *s)
{
    int rc = sqlite3_exec(s->handle, "PRAGMA synchronous=FULL", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = begin(s);
    if (rc == SQLITE_OK && s->reserved - s->next < DB_NAMES_MAX) {
        s->reserved = s->next + NUMBERS_BLOCK;
        s->dirty = true;
    }
    if (rc == SQLITE_OK)
        rc = sqlite_shared_write(s);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->handle, "COMMIT", NULL, NULL, NULL);
    rollback(s);
    int normal = sqlite3_exec(s->handle, "PRAGMA synchronous=NORMAL", NULL, NULL, NULL);
    return rc == SQLITE_OK ? normal : rc;
}

int sqlite_shared_begin(struct sqlite_shared *s)
{
    int rc = begin(s);
    for (int i = 0; rc == SQLITE_OK && s->reserved - s->next < DB_NAMES_MAX; i++) {
        rollback(s);
        rc = i < BEGIN_TRIES ? reserve_block(s) : SQLITE_BUSY;
        if (rc == SQLITE_OK)
            rc = begin(s);
    }
    return rc;
}

/* There is one writer at a time: the transaction knows all that was committed until it began, and
 * what it committed itself. */
void sqlite_shared_committed(struct sqlite_shared *s)
{
    s->is_stored = data_version(s, &s->data_version);
    s->seen = s->begun + (sqlite3_total_changes64(s->handle) != s->changes);
}

/* ---- waiting for commits ---- */

/* Returns a word of the log's shared index that every commit of any process changes: the
 * transaction counter of its header, which is the third word by SQLite's description of the format.
 * Waiters sleep on it: a futex is identified by its place in a file, so it works between processes,
 * needs no file of its own and leaves nothing behind.  We only read the word.  Returns NULL if this
 * SQLite shares no memory. */
static const uint32_t *commits_word(sqlite3 *handle)
{
    const int index_bytes = 32768, word = 2;
    sqlite3_file *file = NULL;
    void volatile *index = NULL;
    if (sqlite3_file_control(handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
        !file || !file->pMethods || file->pMethods->iVersion < 2 ||
        file->pMethods->xShmMap(file, 0, index_bytes, 0, &index) != SQLITE_OK || !index)
        return NULL;
    return (const uint32_t *)index + word;
}

/* Neighbours in a queue have different bits, since fences and tickets are drawn in turn. */
static uint32_t bit_of(int64_t number) { return UINT32_C(1) << (number / 2 % 32); }

/* A connection that has seen every commit sleeps until it is woken.  A wake-up is lost with the
 * process that should have sent it, and other programs that change the file send none: so the sleep
 * is short. */
void sqlite_shared_await(struct sqlite_shared *s, int64_t number, int64_t timeout_ms)
{
    int64_t us = timeout_ms * 1000, us_max = number ? CHECK_EVERY_US : CHECK_OFTEN_US;
    us = us < us_max ? us : us_max;
    bool can_wait = s->commits != NULL;
    if (can_wait && s->seen == __atomic_load_n(s->commits, __ATOMIC_ACQUIRE))
        can_wait = wait_word(s->commits, s->seen, bit_of(number), wait_now_us() + us);
    if (!can_wait)
        wait_sleep_us(us < CHECK_OFTEN_US ? us : CHECK_OFTEN_US);
    if (s->commits)
        s->seen = __atomic_load_n(s->commits, __ATOMIC_ACQUIRE);
}

void sqlite_shared_wake(const struct sqlite_shared *s, const struct db_wake *wakes, size_t n)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= bit_of(wakes[i].number);
    if (bits && s->commits)
        wait_word_wake(s->commits, bits);
}

/* ---- opening ---- */

static int prepare(struct sqlite_shared *s, const char *sql, sqlite3_stmt **ret)
{
    return sqlite3_prepare_v3(s->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
}

/* A new file counts from the wall clock's microseconds on.  Fewer than a million numbers are drawn
 * per second, so it begins above all that were drawn from a file that was lost. */
static int create_row(struct sqlite_shared *s)
{
    char sql[1024];
    int64_t wall_us = clock_wall_us(s->clock);
    (void)snprintf(sql, sizeof sql, SETUP, wall_us > 1 ? wall_us : 1);
    return sqlite3_exec(s->handle, sql, NULL, NULL, NULL);
}

static int prepare_all(struct sqlite_shared *s)
{
    const char *read = "SELECT boot, offset_ms, now_ms, next, reserved FROM shared_state";
    int rc = prepare(s, read, &s->read);
    if ((rc & 0xff) == SQLITE_ERROR) { /* there is no such table yet */
        rc = create_row(s);
        if (rc == SQLITE_OK)
            rc = prepare(s, read, &s->read);
    }
    if (rc == SQLITE_OK)
        rc = prepare(s, "BEGIN IMMEDIATE", &s->begin);
    if (rc == SQLITE_OK)
        rc = prepare(s,
                     "UPDATE shared_state SET boot=?1, offset_ms=?2, now_ms=?3, next=?4,"
                     " reserved=?5 WHERE id = 1",
                     &s->write);
    return rc;
}

/* Makes sure that the row's offset is that of this boot, which no process outlives.  A process that
 * finds it so writes nothing: many may open the file at once. */
static int adopt_boot(struct sqlite_shared *s)
{
    int rc = row_read(s);
    if (rc != SQLITE_OK || !s->dirty)
        return rc;
    rc = sqlite_shared_begin(s);
    if (rc == SQLITE_OK)
        rc = sqlite_shared_write(s);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->handle, "COMMIT", NULL, NULL, NULL);
    rollback(s);
    return rc;
}

/* The log stays when the last connection closes: short-lived processes would pay three syncs each
 * for removing it. */
int sqlite_shared_open(struct sqlite_shared *s, sqlite3 *handle, const struct clock *clock,
                       int64_t timeout_ms)
{
    char sql[80];
    *s = (struct sqlite_shared){
        .handle = handle, .clock = clock, .timeout_us = timeout_ms * 1000, .dirty = false};
    if (!clock_boot_id(s->boot))
        return SQLITE_CANTOPEN;
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int rc = use_log(s);
    (void)snprintf(sql, sizeof sql, "PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=%d;",
                   CHECKPOINT_PAGES);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(handle, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = prepare_all(s);
    if (rc == SQLITE_OK)
        rc = adopt_boot(s);
    if (rc == SQLITE_OK)
        s->commits = commits_word(handle);
    return rc;
}

void sqlite_shared_close(struct sqlite_shared *s)
{
    sqlite3_finalize(s->begin);
    sqlite3_finalize(s->read);
    sqlite3_finalize(s->write);
    s->begin = s->read = s->write = NULL;
}
