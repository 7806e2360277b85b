/* Claims about sqlite: leases that the conformance suite cannot make, since they are about the
 * file: its permissions, what a kill or a reboot leaves of it, and many processes on one file. */
#include "support/fixtures.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/ledger.h"
#include "support/lease_calls.h"
#include "support/process.h"

#define TTL_MS 10000
/* What happens at once, or a second later, on a machine that has nothing else to do. */
#define SOON_US 10000000

static struct lab {
    struct temp_dir dir;
    struct clock_fake clock;
    struct lease_options options;
} lab;

static int set_up(void **state)
{
    (void)state;
    temp_dir_make(&lab.dir);
    clock_fake_init(&lab.clock, T0_MS * 1000);
    lab.options = (struct lease_options){.timeout_ms = 20000, .clock = &lab.clock.clock};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    temp_dir_remove(&lab.dir);
    return 0;
}

static struct lease *open_lease(void)
{
    struct hf_fault fault = {0};
    struct lease *l = NULL;
    const struct lease_driver *d = lease_driver_for(lab.dir.url);
    if (!d || lease_open(d, lab.dir.url, &lab.options, &l, &fault) != HF_DONE)
        fail_msg("%s", fault.msg);
    return l;
}

static struct lease_request ask(const char *key) { return waits_for(key, TTL_MS); }

static int64_t granted(struct lease *l, const struct lease_request *r)
{
    struct lease_verdict v = must_acquire(l, r);
    assert_int_equal(v.result, HF_DONE);
    return v.fence;
}

static void taken(struct lease *l, const struct lease_request *r, size_t position)
{
    struct lease_verdict v = must_acquire(l, r);
    assert_int_equal(v.result, HF_TAKEN);
    assert_int_equal(v.position, position);
}

static void advance_ms(int64_t ms) { clock_fake_advance(&lab.clock, ms * 1000); }

/* Runs SQL on a connection of its own, as another program would. */
static int64_t sql(const char *text)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    int64_t answer = -1;
    assert_int_equal(sqlite3_open(lab.dir.db, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, text, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    int rc = sqlite3_step(stmt);
    assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
    if (rc == SQLITE_ROW)
        answer = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return answer;
}

static enum hf_result open_result(const char *url, struct hf_fault *fault)
{
    struct lease *l = NULL;
    enum hf_result result = lease_open(lease_driver_for(url), url, &lab.options, &l, fault);
    if (result == HF_DONE)
        lease_close(l);
    else
        assert_true(strlen(fault->msg) > 10);
    return result;
}

/* ---- the file ---- */

static void only_the_owner_may_read_the_file(void **state)
{
    (void)state;
    mode_t umask_before = umask(0);
    struct lease *l = open_lease();
    umask(umask_before);
    const char *const endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char path[200];
        struct stat st;
        snprintf(path, sizeof path, "%s%s", lab.dir.db, endings[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    lease_close(l);
}

static void what_is_no_database_is_said_to_be_none(void **state)
{
    (void)state;
    struct hf_fault fault = {0};
    FILE *f = fopen(lab.dir.db, "w");
    for (int i = 0; i < 1000; i++)
        fputs("this is a shopping list\n", f);
    fclose(f);
    assert_int_equal(open_result(lab.dir.url, &fault), HF_FAILED);
    assert_non_null(strstr(fault.msg, "not a database"));
}

/* Fails at open, instead of waiting.  Runs as another user, since root may open everything. */
static void a_file_that_may_not_be_written_is_refused(void **state)
{
    (void)state;
    lease_close(open_lease());
    static const char *const endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s%s", lab.dir.db, endings[i]);
        assert_true(chmod(path, 0444) == 0 || errno == ENOENT);
    }
    assert_int_equal(chmod(lab.dir.path, 0555), 0);
    uid_t before = geteuid();
    struct hf_fault fault = {0};
    assert_int_equal(before == 0 ? seteuid(65534) : 0, 0);
    enum hf_result r = open_result(lab.dir.url, &fault);
    assert_int_equal(seteuid(before), 0);
    assert_int_equal(chmod(lab.dir.path, 0700), 0);
    assert_int_equal(r, HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "may not write"));
}

static const char *beside(const char *ending)
{
    static char path[200];
    snprintf(path, sizeof path, "%s%s", lab.dir.db, ending);
    return path;
}

static void remove_file_and_log(void)
{
    assert_int_equal(unlink(lab.dir.db), 0);
    assert_int_equal(unlink(beside("-wal")), 0);
    assert_int_equal(unlink(beside("-shm")), 0);
}

/* The driver checks now and then whether the file is still there. */
static void loses_soon(struct lease *l, const struct lease_request *r)
{
    struct lease_verdict v = {.result = HF_DONE};
    struct hf_fault fault = {0};
    int64_t until = clock_monotonic_us(&clock_system) + SOON_US;
    while (v.result == HF_DONE) {
        if (lease_renew(l, r, 1, &v, &fault) != HF_DONE)
            fail_msg("%s", fault.msg);
        assert_true(clock_monotonic_us(&clock_system) < until);
    }
    assert_int_equal(v.result, HF_LOST);
}

static void a_removed_files_leases_are_lost_and_its_handles_share_the_next(void **state)
{
    (void)state;
    struct lease *l = open_lease(), *m = open_lease();
    struct lease_request r = ask("a"), other = ask("a"), third = ask("a");
    int64_t fence = granted(l, &r);
    taken(m, &other, 1);
    advance_ms(1);
    remove_file_and_log();
    loses_soon(l, &r);
    int64_t next = granted(l, &third);
    assert_true(next > fence);
    taken(m, &other, 1);
    assert_int_equal(must_release(l, &r), HF_LOST);
    assert_int_equal(must_release(l, &third), HF_DONE);
    assert_true(granted(m, &other) > next);
    lease_close(l);
    lease_close(m);
}

static void a_log_left_behind_does_not_get_into_the_next_file(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = ask("a"), other = ask("a");
    int64_t fence = granted(l, &r);
    assert_true(access(beside("-wal"), F_OK) == 0);
    assert_int_equal(unlink(lab.dir.db), 0);
    advance_ms(1);
    struct lease *m = open_lease();
    assert_true(granted(m, &other) > fence);
    loses_soon(l, &r);
    assert_int_equal(sql("SELECT count(*) FROM leases"), 1);
    assert_int_equal(sql("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check ="
                         " 'ok'"),
                     1);
    lease_close(l);
    lease_close(m);
}

static void a_file_replaced_by_another_is_followed(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = ask("a"), other = ask("a");
    granted(l, &r);
    char url[220], path[200];
    snprintf(path, sizeof path, "%s/other.db", lab.dir.path);
    snprintf(url, sizeof url, "sqlite:%s", path);
    struct lease *m = NULL;
    assert_int_equal(lease_open(lease_driver_for(url), url, &lab.options, &m, NULL), HF_DONE);
    granted(m, &other);
    lease_close(m);
    sqlite3 *db; /* the last connection to close copies the log into the file */
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM leases", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    remove_file_and_log();
    assert_int_equal(rename(path, lab.dir.db), 0);
    loses_soon(l, &r);
    taken(l, &r, 1);
    assert_int_equal(must_release(l, &other), HF_DONE);
    granted(l, &r);
    lease_close(l);
}

static void a_directory_that_went_with_the_file_is_said_and_its_return_heals(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = ask("a");
    struct lease_verdict v;
    struct hf_fault fault = {0};
    granted(l, &r);
    char away[200];
    snprintf(away, sizeof away, "%s.away", lab.dir.path);
    assert_int_equal(rename(lab.dir.path, away), 0);
    int64_t until = clock_monotonic_us(&clock_system) + SOON_US;
    while (lease_acquire(l, &r, &v, &fault) == HF_DONE)
        assert_true(clock_monotonic_us(&clock_system) < until);
    assert_int_equal(lease_renew(l, &r, 1, &v, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "No such file"));
    assert_int_equal(lease_wait(l, &r, 10, &fault), HF_UNREACHABLE);
    struct lease_state st;
    assert_int_equal(lease_inspect(l, "a", 1, &st, &fault), HF_UNREACHABLE);
    assert_int_equal(lease_list(l, "", 0, NULL, NULL, &fault), HF_UNREACHABLE);
    assert_int_equal(rename(away, lab.dir.path), 0);
    granted(l, &r);
    lease_close(l);
}

static void what_a_killed_maker_left_is_taken_away(void **state)
{
    (void)state;
    static const char *const left[] = {"-making", "-new", "-new-wal", "-new-journal"};
    for (int round = 0; round < 2; round++) { /* killed before and after the file had its name */
        for (size_t i = 0; i < 4; i++) {
            FILE *f = fopen(beside(left[i]), "w");
            fputs("half a file", f);
            fclose(f);
        }
        lease_close(open_lease());
        for (size_t i = 0; i < 4; i++)
            assert_int_not_equal(access(beside(left[i]), F_OK), 0);
    }
}

static void fences_of_a_new_file_begin_with_the_clock(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = ask("a");
    int64_t fence = granted(l, &r);
    assert_true(fence >= T0_MS * 1000 && fence < T0_MS * 1000 + 10);
    lease_close(l);
}

static void leases_live_in_a_servers_file_beside_its_ledger(void **state)
{
    (void)state;
    struct db_options writer = {.clock = &lab.clock.clock, .writer = true};
    struct ledger *ledger = NULL;
    struct hf_err err = {0};
    if (ledger_open(lab.dir.url, &writer, &ledger, &err) != HF_OK)
        fail_msg("%s", err.msg);
    struct lease *l = open_lease();
    struct lease_request r = ask("a");
    granted(l, &r);
    ledger_close(ledger);
    if (ledger_open(lab.dir.url, &writer, &ledger, &err) != HF_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(must_release(l, &r), HF_DONE);
    lease_close(l);
    ledger_close(ledger);
}

/* The server collects its writes to the log.  After a rollback they must not reach the log later,
 * when others have written there. */
static void a_servers_rollback_leaves_the_leases_whole(void **state)
{
    (void)state;
    struct db_options writer = {.clock = &lab.clock.clock, .writer = true, .cache_kib = 16};
    struct db *db = NULL;
    struct db_stmt *change = NULL;
    struct hf_err err = {0};
    struct db_value arg;
    assert_int_equal(db_open(lab.dir.url, &writer, &db, &err), HF_OK);
    assert_int_equal(db->driver->script(db, "CREATE TABLE t (v bigint, w text)", &err), HF_OK);
    assert_int_equal(
        db->driver->script(db,
                           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE"
                           " i < 4000) INSERT INTO t SELECT i, 'some text to fill a page' FROM n",
                           &err),
        HF_OK);
    assert_int_equal(
        db->driver->prepare(db, "UPDATE t SET v = v + 1 WHERE rowid <= r.n{args(n bigint)}",
                            &change, &err),
        HF_OK);
    struct lease *l = open_lease();
    struct db_log log;
    assert_int_equal(db->driver->upkeep.maintain(db, &log, &err),
                     HF_OK); /* pages are read from the main file */
    for (int i = 0; i < 200; i++) {
        char name[20];
        snprintf(name, sizeof name, "n%d", i);
        struct lease_request r = ask(name);
        arg = db_int(20 * i);
        if (i % 10 == 0) {
            assert_int_equal(db->driver->begin(db, &err), HF_OK);
            assert_int_equal(db_exec(change, &arg, NULL, &err), HF_OK);
            db->driver->rollback(db);
        }
        granted(l, &r);
    }
    arg = db_int(1);
    assert_int_equal(db->driver->begin(db, &err), HF_OK);
    assert_int_equal(db_exec(change, &arg, NULL, &err), HF_OK);
    assert_int_equal(db->driver->commit(db, &err), HF_OK);
    assert_int_equal(sql("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check ="
                         " 'ok'"),
                     1);
    assert_int_equal(sql("SELECT count(*) FROM leases"), 200);
    lease_close(l);
    db_close(db);
}

/* ---- fences ---- */

static void last_fences_are_forgotten_after_a_day(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request old = ask("old"), new = ask("new");
    granted(l, &old);
    assert_int_equal(must_release(l, &old), HF_DONE);
    advance_ms(LEASE_FENCE_KEPT_MS - 1000);
    for (int i = 0; i < 300; i++) { /* some of the grants look for old entries */
        granted(l, &new);
        assert_int_equal(must_release(l, &new), HF_DONE);
    }
    assert_int_equal(sql("SELECT count(*) FROM lease_fences"), 2);
    advance_ms(2000);
    for (int i = 0; i < 300; i++) {
        granted(l, &new);
        assert_int_equal(must_release(l, &new), HF_DONE);
    }
    assert_int_equal(sql("SELECT count(*) FROM lease_fences"), 1);
    lease_close(l);
}

/* Whoever locks every name once must not pay for the names before: old entries go slice by slice.
 */
static void remembering_many_names_stays_cheap_and_old_ones_are_swept(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    char name[32];
    const int many = 2000;
    for (int day = 0; day < 3; day++) {
        for (int i = 0; i < many; i++) {
            (void)snprintf(name, sizeof name, "%d-%d", day, i);
            struct lease_request r = ask(name);
            granted(l, &r);
            assert_int_equal(must_release(l, &r), HF_DONE);
        }
        advance_ms(LEASE_FENCE_KEPT_MS + 1000);
    }
    /* A pass over n entries takes n / 4 grants, so what is a day old is gone after 2,000 more. */
    struct lease_request r = ask("one");
    for (int i = 0; i < many; i++) {
        granted(l, &r);
        assert_int_equal(must_release(l, &r), HF_DONE);
    }
    assert_int_equal(sql("SELECT count(*) FROM lease_fences"), 1);
    lease_close(l);
}

/* What a power cut leaves: the durable block, and none of the grants made from it. */
static void a_boot_that_lost_the_last_grants_repeats_no_fence(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = ask("a");
    int64_t last = granted(l, &r);
    lease_close(l);
    sql("UPDATE shared_state SET boot = 'another', next = 1");
    sql("DELETE FROM leases");
    l = open_lease();
    assert_true(granted(l, &r) > last);
    lease_close(l);
}

static void a_block_of_fences_is_reserved_before_one_is_given(void **state)
{
    (void)state;
    struct lease *l = open_lease(), *m = open_lease();
    int64_t last = 0;
    sql("UPDATE shared_state SET reserved = next + 1030");
    for (int i = 0; i < 40; i++) {
        struct lease_request r = ask(i % 3 ? "a" : "b");
        int64_t fence = granted(i % 2 ? l : m, &r);
        assert_true(fence > last);
        assert_true(sql("SELECT reserved FROM shared_state") > fence);
        last = fence;
        must_release(i % 2 ? m : l, &r);
    }
    assert_true(sql("SELECT reserved - next FROM shared_state") > 10000);
    assert_int_equal(sql("SELECT count(*) FROM shared_state"), 1);
    assert_int_equal(sql("SELECT count(*) FROM leases"), 0);
    lease_close(l);
    lease_close(m);
}

/* ---- time ---- */

static void the_wall_clock_being_set_moves_no_lease(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = ask("a"), other = ask("a");
    granted(l, &r);
    clock_fake_step(&lab.clock, INT64_C(3600) * 1000000);
    struct lease *m = open_lease(); /* which reads the wall as it is now */
    taken(m, &other, 1);
    clock_fake_step(&lab.clock, -INT64_C(7200) * 1000000);
    struct lease *n = open_lease();
    advance_ms(4000);
    taken(n, &other, 1);
    advance_ms(4000);
    taken(n, &other, 1);
    advance_ms(2000);
    granted(n, &other);
    lease_close(l);
    lease_close(m);
    lease_close(n);
}

static void a_boot_with_the_wall_set_back_keeps_no_lease_longer_than_its_ttl(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request r = ask("a"), other = ask("a");
    granted(l, &r);
    lease_close(l);
    sql("UPDATE shared_state SET boot = 'another'");
    clock_fake_step(&lab.clock, -INT64_C(86400) * 1000000);
    l = open_lease();
    taken(l, &other, 1);
    advance_ms(3000);
    taken(l, &other, 1);
    advance_ms(TTL_MS - 3000);
    granted(l, &other);
    lease_close(l);
}

static void rows_of_abandoned_names_are_swept(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    for (int i = 0; i < 20; i++) {
        char name[20];
        snprintf(name, sizeof name, "job-%d", i);
        struct lease_request r = ask(name), w = ask(name);
        granted(l, &r);
        taken(l, &w, 1);
    }
    advance_ms(61000);
    struct lease_request r = ask("last");
    granted(l, &r);
    assert_int_equal(sql("SELECT count(*) FROM leases"), 1);
    assert_int_equal(sql("SELECT count(*) FROM lease_waiters"), 0);
    lease_close(l);
}

/* ---- the queue ---- */

static void each_of_several_dead_waiters_delays_the_next_by_one_turn(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request h = ask("a"), dead[3], w = ask("a");
    h.ttl_ms = 1000;
    granted(l, &h);
    for (size_t i = 0; i < 3; i++) {
        dead[i] = ask("a");
        taken(l, &dead[i], i + 1);
    }
    taken(l, &w, 4);
    advance_ms(1000); /* the lease ends by itself: each that asks calls the next */
    for (size_t i = 0; i < 3; i++) {
        taken(l, &w, 4 - i);
        advance_ms(WAITER_CLAIM_MS);
    }
    granted(l, &w);
    lease_close(l);
}

static void a_silent_place_is_dropped(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct lease_request h = ask("a"), dead = ask("a"), w = ask("a");
    granted(l, &h);
    taken(l, &dead, 1);
    advance_ms(WAITER_SILENT_MS - 1);
    taken(l, &w, 2);
    advance_ms(1);
    taken(l, &w, 1);
    assert_int_equal(must_release(l, &h), HF_DONE);
    granted(l, &w);
    assert_int_equal(sql("SELECT count(*) FROM lease_waiters"), 0);
    lease_close(l);
}

static void examining_tells_who_may_write_and_what_a_reboot_empties(void **state)
{
    (void)state;
    struct lease *l = open_lease();
    struct statfs fs;
    assert_finding(l, "version", HF_GOOD, "");
    assert_finding(l, "persistence", HF_GOOD, "");
    assert_finding(l, "rights", HF_GOOD, "");
    assert_int_equal(chmod(lab.dir.db, 0660), 0);
    assert_finding(l, "rights", HF_NOTE, "");
    assert_int_equal(chmod(lab.dir.db, 0666), 0);
    assert_finding(l, "rights", HF_WARNING, "");
    lease_close(l);
    if (statfs("/dev/shm", &fs) != 0 || fs.f_type != TMPFS_MAGIC)
        return;
    char url[] = "sqlite:/dev/shm/holdfast-test-XXXXXX", *path = strchr(url, ':') + 1;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(lease_open(lease_driver_for(url), url, &lab.options, &l, NULL), HF_DONE);
    assert_finding(l, "file system", HF_NOTE, "");
    lease_close(l);
    static const char *const endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char file[64];
        (void)snprintf(file, sizeof file, "%s%s", path, endings[i]);
        (void)unlink(file);
    }
}

/* A waiter that is not near the head neither writes nor waits for writers: otherwise a queue of a
 * thousand would block itself. */
static void those_far_back_in_a_long_line_wait_for_no_writer(void **state)
{
    (void)state;
    enum { LINE = 40 };
    struct lease *l = open_lease();
    struct lease_request held = ask("job"), line[LINE];
    sqlite3 *db;
    granted(l, &held);
    for (size_t i = 0; i < LINE; i++) {
        line[i] = ask("job");
        taken(l, &line[i], i + 1);
    }
    assert_int_equal(sqlite3_open(lab.dir.db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    taken(l, &line[LINE - 1], LINE);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);

    advance_ms(3000);
    taken(l, &line[LINE - 1], LINE); /* it has asked; the others have fallen silent */
    advance_ms(3000);
    taken(l, &line[LINE - 1], 1);
    assert_int_equal(must_release(l, &held), HF_DONE);
    granted(l, &line[LINE - 1]);
    lease_close(l);
}

/* ---- several processes ---- */

static void a_busy_file_is_waited_for_no_longer_than_the_timeout(void **state)
{
    (void)state;
    lab.options.timeout_ms = 1000;
    struct lease *l = open_lease();
    sqlite3 *db;
    assert_int_equal(sqlite3_open(lab.dir.db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct lease_request r = ask("a");
    struct lease_verdict v;
    struct hf_fault fault = {0};
    int64_t began = clock_monotonic_us(&clock_system);
    assert_int_equal(lease_acquire(l, &r, &v, &fault), HF_UNREACHABLE);
    int64_t us = clock_monotonic_us(&clock_system) - began;
    assert_true(us >= 1000000 && us < SOON_US);
    assert_non_null(strstr(fault.msg, "busy"));
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    sqlite3_close(db);
    granted(l, &r);
    lease_close(l);
}

/* Children open their own handles; the parent has none open when it forks. */
static pid_t child(void (*run)(int), int number)
{
    pid_t pid = process_fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        lab.options.clock = &clock_system;
        run(number);
        _exit(0);
    }
    return pid;
}

static void must(bool ok)
{
    if (!ok)
        _exit(1);
}

/* Reports each fence that it is granted, as long as it lives. */
static int tells[2];
static void grant_for_ever(int number)
{
    struct lease *l = NULL;
    struct lease_verdict v;
    must(lease_open(lease_driver_for(lab.dir.url), lab.dir.url, &lab.options, &l, NULL) == HF_DONE);
    for (;;) {
        struct lease_request r = ask(number ? "a" : "b");
        r.ttl_ms = 100;
        r.queue = false;
        must(lease_acquire(l, &r, &v, NULL) == HF_DONE);
        if (v.result != HF_DONE)
            continue;
        must(write(tells[1], &v.fence, sizeof v.fence) == sizeof v.fence);
        must(lease_release(l, &r, 1, &v, NULL) == HF_DONE);
    }
}

static void a_kill_in_the_middle_repeats_no_fence(void **state)
{
    (void)state;
    VEC(int64_t) fences = {0};
    for (int round = 0; round < 8; round++) {
        assert_int_equal(pipe2(tells, O_CLOEXEC), 0);
        pid_t pid = child(grant_for_ever, round % 2);
        close(tells[1]);
        int64_t fence;
        for (int i = 0; i < 20 + 7 * round; i++) {
            assert_int_equal(read(tells[0], &fence, sizeof fence), sizeof fence);
            *(int64_t *)vec_push(&fences) = fence;
        }
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        while (read(tells[0], &fence, sizeof fence) == sizeof fence)
            *(int64_t *)vec_push(&fences) = fence;
        close(tells[0]);
    }
    for (size_t i = 1; i < fences.n; i++)
        assert_true(fences.v[i] > fences.v[i - 1]);
    vec_close(&fences);
}

#define NEWCOMERS 64

static void open_and_close(int number)
{
    (void)number;
    struct lease *l = NULL;
    struct hf_fault fault;
    char none;
    close(tells[1]);
    /* Until the parent closes its end, so that all start at once. */
    must(read(tells[0], &none, 1) == 0);
    /* A busy machine needs more time, but nobody gives up before. */
    for (int i = 0; !l; i++) {
        int64_t until = clock_monotonic_us(&clock_system) + lab.options.timeout_ms * 1000;
        if (lease_open(lease_driver_for(lab.dir.url), lab.dir.url, &lab.options, &l, &fault) !=
                HF_DONE &&
            (clock_monotonic_us(&clock_system) < until || i == 9)) {
            fprintf(stderr, "%s\n", fault.msg);
            _exit(1);
        }
    }
    lease_close(l);
}

static void many_may_open_a_new_file_at_once(void **state)
{
    (void)state;
    lab.options.timeout_ms = 10000; /* a new log is synced, and the disk may be busy */
    for (int round = 0; round < 3; round++) {
        pid_t pids[NEWCOMERS];
        assert_int_equal(pipe2(tells, O_CLOEXEC), 0);
        for (int i = 0; i < NEWCOMERS; i++)
            pids[i] = child(open_and_close, i);
        close(tells[0]);
        close(tells[1]);
        for (int i = 0; i < NEWCOMERS; i++) {
            int status;
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_int_equal(status, 0);
        }
        assert_int_equal(sql("SELECT count(*) FROM part_version"), 4); /* each migration once */
        assert_int_equal(unlink(lab.dir.db), 0);
    }
}

/* ---- waiting ---- */

static void a_wait_is_noted_in_the_file_once_a_second(void **state)
{
    (void)state;
    lab.options.clock = &clock_system;
    struct lease *l = open_lease(), *m = NULL;
    assert_int_equal(lease_clone(l, &m, NULL), HF_DONE);
    struct lease_request h = ask("a"), w = ask("a");
    granted(l, &h);
    taken(m, &w, 1);
    int64_t placed = sql("SELECT seen_at FROM lease_waiters");
    int64_t from = clock_monotonic_us(&clock_system);
    assert_int_equal(lease_wait(m, &w, 100, NULL), HF_DONE);
    bool is_written = sql("SELECT seen_at FROM lease_waiters") != placed;
    assert_true(!is_written || clock_monotonic_us(&clock_system) - from > 1000000); /* so soon */
    assert_int_equal(lease_wait(m, &w, 1500, NULL), HF_DONE);
    assert_true(sql("SELECT seen_at FROM lease_waiters") >= placed + 1000);
    lease_close(l);
    lease_close(m);
}

static void wait_for_it(int number)
{
    struct lease *l = NULL;
    struct lease_verdict v;
    struct lease_request r = ask("a");
    must(lease_open(lease_driver_for(lab.dir.url), lab.dir.url, &lab.options, &l, NULL) == HF_DONE);
    for (;;) {
        must(lease_acquire(l, &r, &v, NULL) == HF_DONE);
        if (v.result == HF_DONE)
            break;
        v.fence = -number; /* it is in line */
        must(write(tells[1], &v.fence, sizeof v.fence) == sizeof v.fence);
        must(lease_wait(l, &r, 20000, NULL) == HF_DONE);
    }
    must(write(tells[1], &v.fence, sizeof v.fence) == sizeof v.fence);
    lease_close(l);
}

static int64_t told(void)
{
    int64_t number;
    assert_int_equal(read(tells[0], &number, sizeof number), sizeof number);
    return number;
}

static void a_waiter_in_a_removed_file_is_granted_by_the_next_file(void **state)
{
    (void)state;
    lab.options.clock = &clock_system;
    assert_int_equal(pipe2(tells, O_CLOEXEC), 0);
    pid_t pid = child(wait_for_it, 1);
    int64_t fence = told();
    assert_true(fence > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    pid = child(wait_for_it, 1);
    assert_int_equal(told(), -1);
    usleep(100000); /* until it sleeps */
    remove_file_and_log();
    int64_t began = clock_monotonic_us(&clock_system);
    assert_true(told() > fence);
    assert_true(clock_monotonic_us(&clock_system) - began < SOON_US);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(tells[0]);
    close(tells[1]);
}

#define IN_LINE 6
#define PASSES 40

/* Takes the lock many times, in the queue with the others, and passes it on. */
static void pass_on(int number)
{
    struct lease *l = NULL;
    struct lease_verdict v;
    (void)number;
    must(lease_open(lease_driver_for(lab.dir.url), lab.dir.url, &lab.options, &l, NULL) == HF_DONE);
    for (int i = 0; i < PASSES; i++) {
        struct lease_request r = ask("a");
        while (lease_acquire(l, &r, &v, NULL) == HF_DONE && v.result == HF_TAKEN)
            must(lease_wait(l, &r, 20000, NULL) == HF_DONE);
        must(v.result == HF_DONE);
        must(lease_release(l, &r, 1, &v, NULL) == HF_DONE && v.result == HF_DONE);
    }
    lease_close(l);
}

static int64_t pass_on_together(void)
{
    pid_t pids[IN_LINE];
    int64_t began = clock_monotonic_us(&clock_system);
    for (int i = 0; i < IN_LINE; i++)
        pids[i] = child(pass_on, i);
    for (int i = 0; i < IN_LINE; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    return clock_monotonic_us(&clock_system) - began;
}

/* A waiter looks by itself at most every 50 ms: without wake-ups 240 grants would take 12 s. */
TIMELY_CLAIM(a_release_wakes_the_next_in_whatever_process_it_waits)
{
    return pass_on_together() < 3000000;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        /* Those that fork often are first: a process that has used more memory takes longer to copy. */
        TEST(a_kill_in_the_middle_repeats_no_fence),
        TEST(many_may_open_a_new_file_at_once),
        TEST(only_the_owner_may_read_the_file),
        TEST(what_is_no_database_is_said_to_be_none),
        TEST(a_file_that_may_not_be_written_is_refused),
        TEST(a_removed_files_leases_are_lost_and_its_handles_share_the_next),
        TEST(a_log_left_behind_does_not_get_into_the_next_file),
        TEST(a_file_replaced_by_another_is_followed),
        TEST(a_directory_that_went_with_the_file_is_said_and_its_return_heals),
        TEST(what_a_killed_maker_left_is_taken_away),
        TEST(fences_of_a_new_file_begin_with_the_clock),
        TEST(leases_live_in_a_servers_file_beside_its_ledger),
        TEST(a_servers_rollback_leaves_the_leases_whole),
        TEST(last_fences_are_forgotten_after_a_day),
        TEST(remembering_many_names_stays_cheap_and_old_ones_are_swept),
        TEST(a_boot_that_lost_the_last_grants_repeats_no_fence),
        TEST(a_block_of_fences_is_reserved_before_one_is_given),
        TEST(the_wall_clock_being_set_moves_no_lease),
        TEST(a_boot_with_the_wall_set_back_keeps_no_lease_longer_than_its_ttl),
        TEST(rows_of_abandoned_names_are_swept),
        TEST(each_of_several_dead_waiters_delays_the_next_by_one_turn),
        TEST(a_silent_place_is_dropped),
        TEST(examining_tells_who_may_write_and_what_a_reboot_empties),
        TEST(a_busy_file_is_waited_for_no_longer_than_the_timeout),
        TEST(those_far_back_in_a_long_line_wait_for_no_writer),
        TEST(a_wait_is_noted_in_the_file_once_a_second),
        TEST(a_waiter_in_a_removed_file_is_granted_by_the_next_file),
        TEST(a_release_wakes_the_next_in_whatever_process_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
