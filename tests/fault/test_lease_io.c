/* Every call to the disk fails once, and then for a while: a fixed sequence of lease requests runs
 * through the SQL driver on a file system that fails call N, for N = 1, 2, 3 ... until the sequence
 * meets no fault any more.  Each time: a failure is reported in words; a success is true, as a
 * second handle on a sound file system sees it; no lease is granted twice, and no fence repeats.
 * When the disk works again so does the handle, and asking again resolves every unknown outcome. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lease/lease.h"
#include "support/fault_vfs.h"
#include "support/lease_call.h"
#include "support/process.h"

#define SWEEP_POINTS_MAX 40000 /* the sequence is shorter */
/* The calls of the sequence come first, then those that copy the log, page by page. */
#define STORY_CALLS 60
#define COPY_STEP 61
#define TTL_MS 60000

static char dir[64], path[96], sound_url[128], faulty_url[128];

static const struct lease_options options = {.timeout_ms = 200, .clock = &clock_system};

/* ---- the parties ---- */

/* The holder's handle is the one that meets faults; the rival's file system is sound. */
struct story {
    struct lease *l, *rival;
    struct lease_request a, b, r; /* two of the holder, and the rival's for the name of the first */
    int64_t fence;                /* the largest that was granted */
    int failures;
};

static struct lease_request ask(const char *key, uint8_t owner)
{
    struct lease_request r = {
        .key = key, .key_len = strlen(key), .ttl_ms = TTL_MS, .slots = 1, .queue = true};
    memset(r.owner, owner, sizeof r.owner);
    return r;
}

static struct lease *open_lease(const char *url)
{
    struct lease *l = NULL;
    struct hf_fault fault = {0};
    if (lease_open(lease_driver_for(url), url, &options, &l, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return l;
}

/* Returns false if the call failed, which must be with a permitted result and in words. */
static bool done(struct story *s, enum hf_result result, const struct hf_fault *fault)
{
    if (result == HF_DONE)
        return true;
    s->failures++;
    assert_true(result == HF_UNREACHABLE || result == HF_UNKNOWN || result == HF_FAILED);
    assert_int_equal(fault->result, result);
    assert_true(strlen(fault->msg) > 10);
    return false;
}

static enum hf_result call(struct story *s, lease_call *what, const struct lease_request *r,
                           struct lease_verdict *v)
{
    struct hf_fault fault = {0};
    enum hf_result result = what(s->l, r, 1, v, &fault);
    (void)done(s, result, &fault);
    return result;
}

/* Asks the handle that meets no faults whether the owner holds the lease. */
static bool holds(struct story *s, const struct lease_request *r)
{
    struct lease_state st;
    struct hf_fault fault = {0};
    char owner[33];
    bool found = false;
    lease_owner_text(r->owner, owner);
    if (lease_inspect(s->rival, r->key, r->key_len, &st, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    assert_true(st.n_holders <= 1);
    for (size_t i = 0; i < st.n_holders; i++)
        found |= strcmp(st.holders[i].owner, owner) == 0;
    free(st.holders);
    free(st.waiters);
    return found;
}

static void new_fence(struct story *s, int64_t fence)
{
    assert_true(fence > s->fence);
    s->fence = fence;
}

/* ---- the sequence ---- */

/* Takes the lease or reports a failure; after HF_UNKNOWN it may have it. */
static void take(struct story *s, const struct lease_request *r)
{
    struct lease_verdict v = {0};
    bool held = holds(s, r);
    enum hf_result result = call(s, call_acquire, r, &v);
    if (result == HF_DONE && v.result == HF_DONE && !held)
        new_fence(s, v.fence);
    if (result == HF_DONE)
        assert_int_equal(holds(s, r), v.result == HF_DONE);
    else if (result != HF_UNKNOWN)
        assert_int_equal(holds(s, r), held);
}

static void renew(struct story *s, const struct lease_request *r)
{
    struct lease_verdict v = {0};
    bool held = holds(s, r);
    if (call(s, lease_renew, r, &v) == HF_DONE)
        assert_int_equal(v.result, held ? HF_DONE : HF_LOST);
    assert_int_equal(holds(s, r), held);
}

static void give(struct story *s, const struct lease_request *r)
{
    struct lease_verdict v = {0};
    bool held = holds(s, r);
    enum hf_result result = call(s, lease_release, r, &v);
    if (result == HF_DONE)
        assert_false(holds(s, r));
    else if (result != HF_UNKNOWN)
        assert_int_equal(holds(s, r), held);
}

/* The rival wants the first name, too: it is granted only if there is no holder. */
static void contest(struct story *s)
{
    struct lease_verdict v = {0};
    struct hf_fault fault = {0};
    bool held = holds(s, &s->a);
    if (lease_acquire(s->rival, &s->r, &v, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    if (v.result == HF_DONE) {
        assert_false(held);
        new_fence(s, v.fence);
    }
    assert_int_equal(lease_release(s->rival, &s->r, 1, &v, &fault), HF_DONE);
}

static void look(struct story *s)
{
    struct lease_state st = {0};
    struct hf_fault fault = {0};
    if (done(s, lease_inspect(s->l, "a", 1, &st, &fault), &fault)) {
        assert_int_equal(st.n_holders > 0, holds(s, &s->a));
        free(st.holders);
        free(st.waiters);
    }
    (void)done(s, lease_wait(s->l, &s->a, 1, &fault), &fault);
}

static void play(struct story *s)
{
    take(s, &s->a);
    contest(s);
    take(s, &s->b);
    renew(s, &s->a);
    look(s);
    contest(s);
    give(s, &s->a);
    contest(s);
    give(s, &s->b);
}

/* The disk works again: every call is answered, and truly. */
static void play_after(struct story *s)
{
    struct lease_verdict v = {0};
    fault_disarm();
    const struct lease_request *both[] = {&s->a, &s->b};
    for (int i = 0; i < 2; i++) {
        bool held = holds(s, both[i]);
        assert_int_equal(call(s, call_acquire, both[i], &v), HF_DONE);
        assert_int_equal(v.result, HF_DONE);
        if (!held)
            new_fence(s, v.fence);
        assert_true(holds(s, both[i]));
        assert_int_equal(call(s, lease_release, both[i], &v), HF_DONE);
        assert_int_equal(v.result, HF_DONE);
        assert_false(holds(s, both[i]));
    }
}

/* ---- the sweep ---- */

static void remove_files(void)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char file[128];
    for (size_t i = 0; i < 3; i++) {
        snprintf(file, sizeof file, "%s%s", path, ends[i]);
        unlink(file);
    }
}

static void check_file(void)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "ok");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

/* Few numbers are left, so that the sequence reserves a block, and many pages lie in the log, so
 * that it copies them. */
static void make_it_eventful(void)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA wal_autocheckpoint=0;"
                                  "UPDATE shared_state SET reserved = next + 1025;"
                                  "CREATE TABLE IF NOT EXISTS filler (v); DELETE FROM filler; WITH "
                                  "RECURSIVE n(i) AS (SELECT 1 UNION"
                                  " ALL SELECT i + 1 FROM n WHERE i < 1100) INSERT INTO filler"
                                  " SELECT zeroblob(900) FROM n;",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(db);
}

/* Returns false if the sequence met no fault. */
static bool run_point(enum fault_call kind, int at, int code, bool forever)
{
    struct story s = {.a = ask("a", 1), .b = ask("b", 2), .r = ask("a", 3)};
    s.rival = open_lease(sound_url);
    s.l = open_lease(faulty_url);
    make_it_eventful();
    fault_arm(kind, at, code, forever);
    play(&s);
    int hits = fault_hits();
    play_after(&s);
    lease_close(s.l);
    lease_close(s.rival);
    check_file();
    return hits > 0;
}

static void sweep(enum fault_call kind, int code, bool forever)
{
    int at = 1, step = getenv("HF_FAULT_ALL") ? 1 : 3;
    for (; at < SWEEP_POINTS_MAX && run_point(kind, at, code, forever); at += step)
        step = at > STORY_CALLS ? COPY_STEP : step;
    assert_true(at > 1); /* the sequence makes such calls */
    remove_files();
}

static void a_failing_write_grants_nothing_wrongly(void **state)
{
    (void)state;
    sweep(FAULT_WRITE, SQLITE_IOERR_WRITE, false);
}

static void a_full_disk_grants_nothing_wrongly(void **state)
{
    (void)state;
    sweep(FAULT_WRITE, SQLITE_FULL, true);
}

static void a_failing_sync_grants_nothing_wrongly(void **state)
{
    (void)state;
    sweep(FAULT_SYNC, SQLITE_IOERR_FSYNC, false);
    sweep(FAULT_SYNC, SQLITE_IOERR_FSYNC, true);
}

static void a_failing_read_grants_nothing_wrongly(void **state)
{
    (void)state;
    sweep(FAULT_READ, SQLITE_IOERR_READ, false);
    sweep(FAULT_READ, SQLITE_IOERR_READ, true);
}

static void a_failing_lock_grants_nothing_wrongly(void **state)
{
    (void)state;
    sweep(FAULT_SHM_LOCK, SQLITE_IOERR_SHMLOCK, false);
    sweep(FAULT_SHM_LOCK, SQLITE_IOERR_SHMLOCK, true);
}

/* Opening on a failing disk fails in words, leaves nothing open, and works the next time. */
static void a_failing_open_says_so_and_works_the_next_time(void **state)
{
    (void)state;
    static const struct {
        enum fault_call kind;
        int code;
    } kinds[] = {{FAULT_OPEN, SQLITE_CANTOPEN},
                 {FAULT_READ, SQLITE_IOERR_READ},
                 {FAULT_WRITE, SQLITE_FULL},
                 {FAULT_SHM_MAP, SQLITE_IOERR_SHMMAP},
                 {FAULT_SHM_LOCK, SQLITE_IOERR_SHMLOCK}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        bool hit = true;
        for (int at = 1; hit && at < SWEEP_POINTS_MAX; at++) {
            struct lease *l = NULL;
            struct hf_fault fault = {0};
            fault_arm(kinds[k].kind, at, kinds[k].code, true);
            enum hf_result result =
                lease_open(lease_driver_for(faulty_url), faulty_url, &options, &l, &fault);
            hit = fault_hits() > 0;
            fault_disarm();
            if (result != HF_DONE)
                assert_true(strlen(fault.msg) > 10);
            else
                lease_close(l);
            struct story s = {.a = ask("a", 1), .b = ask("b", 2), .r = ask("a", 3)};
            s.l = open_lease(faulty_url);
            s.rival = open_lease(sound_url);
            play_after(&s);
            lease_close(s.l);
            lease_close(s.rival);
            remove_files();
        }
        assert_false(hit);
    }
}

static int set_up(void **state)
{
    (void)state;
    fault_vfs_register();
    process_make_dir("lease-io", dir, sizeof dir);
    snprintf(path, sizeof path, "%s/locks.db", dir);
    snprintf(sound_url, sizeof sound_url, "sqlite:%s", path);
    snprintf(faulty_url, sizeof faulty_url, "sqlite:%s?vfs=%s", path, FAULT_VFS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_files();
    assert_int_equal(rmdir(dir), 0); /* nothing else was left behind */
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_write_grants_nothing_wrongly),
        cmocka_unit_test(a_full_disk_grants_nothing_wrongly),
        cmocka_unit_test(a_failing_sync_grants_nothing_wrongly),
        cmocka_unit_test(a_failing_read_grants_nothing_wrongly),
        cmocka_unit_test(a_failing_lock_grants_nothing_wrongly),
        cmocka_unit_test(a_failing_open_says_so_and_works_the_next_time),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
