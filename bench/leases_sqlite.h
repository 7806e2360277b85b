/* SQLite by hand: the driver's statements in the plain C API, in a separate file beside the
 * driver's, with the same log, durability and page size.  It does less where one would need less:
 * the clock is this process's, a release reads nothing first, and a silent waiter keeps its place.
 * (UPDATE ... RETURNING for the fence was measured: a pair took 38 us instead of 22.)  Every waiter
 * checks each millisecond whether it is its turn; the driver's waiters are woken. */
#ifndef HF_BENCH_LEASES_SQLITE_H
#define HF_BENCH_LEASES_SQLITE_H

#include <sqlite3.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "leases_side.h"

#define LOOK_EVERY_NS 1000000

enum {
    HL_BEGIN,
    HL_COMMIT,
    HL_HOLDER,
    HL_HEAD,
    HL_FENCE,
    HL_NEXT,
    HL_GRANT,
    HL_QUEUE,
    HL_LEAVE,
    HL_RELEASE,
    HL_COUNT
};
static const char *const hand_sql[HL_COUNT] = {
    [HL_BEGIN] = "BEGIN IMMEDIATE",
    [HL_COMMIT] = "COMMIT",
    [HL_HOLDER] = "SELECT owner FROM leases WHERE name = ?1 AND expires_at > ?3",
    [HL_HEAD] = "SELECT owner FROM waiters WHERE name = ?1 ORDER BY ticket LIMIT 1",
    [HL_FENCE] = "SELECT next FROM fence WHERE id = 1",
    [HL_NEXT] = "UPDATE fence SET next = ?4 + 1 WHERE id = 1",
    [HL_GRANT] = "INSERT INTO leases (name, owner, expires_at, fence) VALUES (?1, ?2, ?3, ?4)",
    [HL_QUEUE] = "INSERT INTO waiters (name, owner, ticket) VALUES (?1, ?2, ?4)",
    [HL_LEAVE] = "DELETE FROM waiters WHERE name = ?1 AND owner = ?2",
    [HL_RELEASE] = "DELETE FROM leases WHERE name = ?1 AND owner = ?2 AND expires_at > ?3",
};
static const char hand_schema[] =
    "PRAGMA page_size=1024; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    "PRAGMA wal_autocheckpoint=1000;"
    "CREATE TABLE IF NOT EXISTS fence (id INTEGER PRIMARY KEY, next INTEGER NOT NULL);"
    "INSERT OR IGNORE INTO fence VALUES (1, 1);"
    "CREATE TABLE IF NOT EXISTS leases (name BLOB NOT NULL, owner BLOB NOT NULL,"
    " expires_at INTEGER NOT NULL, fence INTEGER NOT NULL, PRIMARY KEY (name, owner))"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS waiters (name BLOB NOT NULL, ticket INTEGER NOT NULL,"
    " owner BLOB NOT NULL, PRIMARY KEY (name, ticket)) WITHOUT ROWID;"
    "CREATE UNIQUE INDEX IF NOT EXISTS waiters_owner ON waiters (name, owner);";

struct hand_sqlite {
    sqlite3 *db;
    sqlite3_stmt *stmts[HL_COUNT];
};

static void *hand_sqlite_open(const char *url, void *first)
{
    (void)first;
    struct hand_sqlite *s = hf_alloc(sizeof *s);
    char path[4096];
    snprintf(path, sizeof path, "%s.hand", url + strlen("sqlite:"));
    if (sqlite3_open_v2(path, &s->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        die(sqlite3_errmsg(s->db));
    sqlite3_busy_timeout(s->db, 10000);
    if (sqlite3_exec(s->db, hand_schema, NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(s->db));
    for (int i = 0; i < HL_COUNT; i++)
        if (sqlite3_prepare_v3(s->db, hand_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->stmts[i],
                               NULL) != SQLITE_OK)
            die(sqlite3_errmsg(s->db));
    return s;
}

static void hand_sqlite_close(void *handle)
{
    struct hand_sqlite *s = handle;
    for (int i = 0; i < HL_COUNT; i++)
        sqlite3_finalize(s->stmts[i]);
    sqlite3_close(s->db);
    free(s);
}

static int64_t hand_now_ms(void) { return clock_boot_us(&clock_system) / 1000; }

/* Returns whether there was a row, and its first column as a number or whether it is the owner. */
static bool hand_run(struct hand_sqlite *s, int which, const char *name, const uint8_t *owner,
                     int64_t ms, int64_t *number, bool *ret_is_owner)
{
    sqlite3_stmt *stmt = s->stmts[which];
    switch (sqlite3_bind_parameter_count(stmt)) {
    case 4:
        sqlite3_bind_int64(stmt, 4, number ? *number : 0);
        __attribute__((fallthrough));
    case 3:
        sqlite3_bind_int64(stmt, 3, ms);
        __attribute__((fallthrough));
    case 2:
        sqlite3_bind_blob(stmt, 2, owner, OWNER_SIZE, SQLITE_STATIC);
        __attribute__((fallthrough));
    case 1:
        sqlite3_bind_blob(stmt, 1, name, (int)strlen(name), SQLITE_STATIC);
        break;
    default:
        break;
    }
    int rc = sqlite3_step(stmt);
    bool row = rc == SQLITE_ROW;
    if (row && number)
        *number = sqlite3_column_int64(stmt, 0);
    if (row && ret_is_owner)
        *ret_is_owner = sqlite3_column_bytes(stmt, 0) == OWNER_SIZE &&
                        memcmp(sqlite3_column_blob(stmt, 0), owner, OWNER_SIZE) == 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        die(sqlite3_errmsg(s->db));
    sqlite3_reset(stmt);
    return row;
}

static void hand_do(struct hand_sqlite *s, int which)
{
    hand_run(s, which, "", NULL, 0, NULL, NULL);
}

/* Returns whether nobody holds the lock and no other waiter is ahead. */
static bool hand_is_free(struct hand_sqlite *s, const char *name, const uint8_t *owner,
                         bool *ret_queued)
{
    bool first = true;
    *ret_queued = hand_run(s, HL_HEAD, name, owner, 0, NULL, &first) && first;
    return first && !hand_run(s, HL_HOLDER, name, owner, hand_now_ms(), NULL, NULL);
}

static bool hand_acquire(struct hand_sqlite *s, const char *name, const uint8_t *owner, bool join)
{
    bool queued;
    int64_t number = 0;
    hand_do(s, HL_BEGIN);
    bool mine = hand_is_free(s, name, owner, &queued);
    if (mine || join) {
        hand_run(s, HL_FENCE, name, owner, 0, &number, NULL);
        hand_run(s, HL_NEXT, name, owner, 0, &number, NULL);
    }
    if (mine) {
        hand_run(s, HL_GRANT, name, owner, hand_now_ms() + TTL_MS, &number, NULL);
        if (queued)
            hand_run(s, HL_LEAVE, name, owner, 0, NULL, NULL);
    } else if (join) {
        hand_run(s, HL_QUEUE, name, owner, 0, &number, NULL);
    }
    hand_do(s, HL_COMMIT);
    return mine;
}

static bool hand_release(struct hand_sqlite *s, const char *name, const uint8_t *owner)
{
    hand_do(s, HL_BEGIN);
    hand_run(s, HL_RELEASE, name, owner, hand_now_ms(), NULL, NULL);
    bool released = sqlite3_changes(s->db) == 1;
    if (!released)
        hand_run(s, HL_LEAVE, name, owner, 0, NULL, NULL);
    hand_do(s, HL_COMMIT);
    return released;
}

static void hand_sqlite_pair(void *handle, const uint8_t *owner)
{
    if (!hand_acquire(handle, "bench", owner, false) || !hand_release(handle, "bench", owner))
        die("SQLite's lease was not granted");
}

static bool hand_sqlite_take(void *handle, const uint8_t *owner, atomic_bool *stop)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};
    bool queued, mine = hand_acquire(handle, "hot", owner, true);
    while (!mine && !*stop) {
        nanosleep(&pause, NULL);
        mine = hand_is_free(handle, "hot", owner, &queued) &&
               hand_acquire(handle, "hot", owner, false);
    }
    return mine;
}

static void hand_sqlite_give(void *handle, const uint8_t *owner)
{
    hand_release(handle, "hot", owner);
}

static const struct side hand_sqlite = {
    .name = "sqlite3",
    .open = hand_sqlite_open,
    .close = hand_sqlite_close,
    .pair = hand_sqlite_pair,
    .take = hand_sqlite_take,
    .give = hand_sqlite_give,
};

#endif
