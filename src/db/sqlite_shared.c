/* One row, read at the beginning of every transaction and written by those that took numbers from
 * it.  Belongs to the thread of its connection. */
#include "db/sqlite_shared.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "db/db.h"

#define NUMBERS_BLOCK 16384
#define STORE_EVERY_MS 10000
#define BEGIN_TRIES 4
/* Without being told: at whether the file is still there, and at what was committed; by those who
 * are in no queue, and where nobody can be told. */
#define LOOK_EVERY_US 50000
#define LOOK_US 2000
/* Pages in the log before whoever commits copies it back, and forces it to the disk. */
#define CHECKPOINT_PAGES 1000
/* A transaction takes some 20 us.  Who has waited longer asks more often: a newcomer does not
 * overtake for ever; but many who wait must leave the processor to the one they wait for. */
#define BUSY_SLEEP_US 800
#define BUSY_SLEEP_MIN_US 300
#define LOG_SLEEP_US 1000

/* A lease is a small row: small pages mean fewer bytes in the log. */
#define PAGE_BYTES 1024

/* With the first number. */
#define SETUP                                                                                      \
    "CREATE TABLE IF NOT EXISTS shared_state ("                                                    \
    " id INTEGER PRIMARY KEY CHECK (id = 1), boot TEXT NOT NULL, offset_ms INTEGER NOT NULL,"      \
    " now_ms INTEGER NOT NULL, next INTEGER NOT NULL, reserved INTEGER NOT NULL);"                 \
    "INSERT INTO shared_state SELECT 1, '', 0, 0, n, n FROM (SELECT %" PRId64 " AS n)"             \
    " WHERE NOT EXISTS (SELECT 1 FROM shared_state) ON CONFLICT DO NOTHING;"

/* ---- patience ---- */

static void sleep_us(int64_t us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* On the system's clock, not the connection's: a test's stands still. */
static int busy(void *ctx, int count)
{
    struct sqlite_shared *s = ctx;
    int64_t now = clock_monotonic_us(&clock_system), pause = BUSY_SLEEP_US / (count + 1);
    if (count == 0)
        s->busy_until_us = now + s->timeout_us;
    if (now >= s->busy_until_us)
        return 0;
    sleep_us(pause > BUSY_SLEEP_MIN_US ? pause : BUSY_SLEEP_MIN_US);
    return 1;
}

/* The change to a log of a file that somebody else made, which wants the file for itself while it
 * may be read already: of two who wait for that, each waits for the other.  So nobody waits in
 * there, but lets go and comes back.
 */
static int use_log(struct sqlite_shared *s)
{
    int64_t until = clock_monotonic_us(&clock_system) + s->timeout_us;
    char sql[80];
    int rc, tries = 0;
    (void)snprintf(sql, sizeof sql, "PRAGMA page_size=%d; PRAGMA journal_mode=WAL;", PAGE_BYTES);
    sqlite3_busy_handler(s->handle, NULL, NULL);
    while ((rc = sqlite3_exec(s->handle, sql, NULL, NULL, NULL), rc & 0xff) == SQLITE_BUSY &&
           clock_monotonic_us(&clock_system) < until)
        sleep_us(LOG_SLEEP_US * (1 + (getpid() + 7 * tries++) % 16));
    sqlite3_busy_handler(s->handle, busy, s);
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
    sqlite3_bind_text(s->write, 1, s->boot, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s->write, 2, s->offset_ms);
    sqlite3_bind_int64(s->write, 3, sqlite_shared_now_ms(s));
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

/* Looked at now and then: a tenth of an uncontended lease when looked at each time.  What is
 * granted until then in the file that is gone has a lower fence than all that its successor gives.
 */
bool sqlite_shared_has_moved(struct sqlite_shared *s)
{
    int moved = 0;
    int64_t now = clock_monotonic_us(&clock_system);
    if (now < s->look_at_us)
        return false;
    (void)sqlite3_file_control(s->handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    s->look_at_us = moved ? now : now + LOOK_EVERY_US;
    return moved;
}

static int begin(struct sqlite_shared *s)
{
    int rc = sqlite3_step(s->begin);
    int reset = sqlite3_reset(s->begin);
    rc = rc == SQLITE_DONE ? row_read(s) : reset;
    if (rc != SQLITE_OK)
        rollback(s);
    s->begun = s->commits ? __atomic_load_n(s->commits, __ATOMIC_ACQUIRE) : 0;
    s->changes = sqlite3_total_changes64(s->handle);
    return rc;
}

/* In the log's order nobody sees a synced commit before it is on the disk, and with it all that
 * came before: the new block may be used by all as soon as they can read of it. */
static int reserve(struct sqlite_shared *s)
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
        rc = i < BEGIN_TRIES ? reserve(s) : SQLITE_BUSY;
        if (rc == SQLITE_OK)
            rc = begin(s);
    }
    return rc;
}

/* A transaction is alone: whatever was committed until it began, and by it, is known. */
void sqlite_shared_committed(struct sqlite_shared *s)
{
    s->seen = s->begun + (sqlite3_total_changes64(s->handle) != s->changes);
}

/* ---- news ---- */

/* A word of the log's shared index that every commit changes, whoever made it: the transaction
 * counter of its header, the third word by SQLite's description of the format.  It is what waiters
 * sleep on: a futex is known by its place in a file, so it works between processes, needs no file
 * of its own and leaves nothing behind.  We only read it.  NULL: this SQLite shares no memory. */
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

/* Neighbours in a queue have different bits: fences and tickets are drawn in turn. */
static uint32_t bit_of(int64_t number) { return UINT32_C(1) << (number / 2 % 32); }

/* The end of `us`, a wake-up or anything else that makes another look worth while. */
static void doze(const struct sqlite_shared *s, int64_t number, int64_t us)
{
    int64_t until = clock_monotonic_us(&clock_system) + us;
    const struct timespec at = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
    if (syscall(SYS_futex, s->commits, FUTEX_WAIT_BITSET, s->seen, &at, NULL, bit_of(number)) !=
            0 &&
        errno != ETIMEDOUT && errno != EAGAIN && errno != EINTR)
        sleep_us(us < LOOK_US ? us : LOOK_US);
}

/* Who has seen every commit sleeps until it is woken.  A wake-up can get lost with the process that
 * should have sent it, and others who change the file send none: so look now and then. */
void sqlite_shared_await(struct sqlite_shared *s, int64_t number, int64_t timeout_ms)
{
    int64_t us = timeout_ms * 1000, most = number ? LOOK_EVERY_US : LOOK_US;
    uint32_t seen = s->seen;
    us = us < most ? us : most;
    if (!s->commits)
        sleep_us(us < LOOK_US ? us : LOOK_US);
    else if (seen == __atomic_load_n(s->commits, __ATOMIC_ACQUIRE))
        doze(s, number, us);
    if (s->commits)
        s->seen = __atomic_load_n(s->commits, __ATOMIC_ACQUIRE);
}

void sqlite_shared_wake(const struct sqlite_shared *s, const int64_t *numbers, size_t n)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= bit_of(numbers[i]);
    if (bits && s->commits)
        (void)syscall(SYS_futex, s->commits, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, bits);
}

/* ---- opening ---- */

static int prepare(struct sqlite_shared *s, const char *sql, sqlite3_stmt **ret)
{
    return sqlite3_prepare_v3(s->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
}

/* A new file counts from the wall clock's microseconds on: nobody draws a million numbers a second,
 * so it begins beyond all that were drawn from a file that was lost. */
static int set_up(struct sqlite_shared *s)
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
    if ((rc & 0xff) == SQLITE_ERROR) { /* no such table: new, or somebody else's */
        rc = set_up(s);
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

/* From then on the offset is that of this boot, which no process outlives.  Who finds it so writes
 * nothing: many may open the file at once. */
static int be_of_this_boot(struct sqlite_shared *s)
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

/* The log stays when the last one leaves: short-lived processes would pay three syncs each. */
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
        rc = be_of_this_boot(s);
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
