/* The suite over an SQLite file in a directory of its own, which is not synced since no test cuts
 * the power (support/fault_vfs.h); and claims about files: one server, full
 * disks, failed syncs, and a log that stays short. */
#include "suite.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fault_vfs.h"

static struct temp_dir dir;

static void fresh(struct engine *e)
{
    temp_dir_remove(&dir);
    temp_dir_make(&dir);
    (void)snprintf(e->url, sizeof e->url, "%s?vfs=" FAULT_VFS, dir.url);
}

static void start(struct engine *e)
{
    fault_vfs_register();
    temp_dir_make(&dir);
    fresh(e);
}

static void stop(struct engine *e)
{
    (void)e;
    temp_dir_remove(&dir);
}

/* Asks the file with a connection of its own. */
static int64_t ask(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open_v2(dir.db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

static int64_t count_chunks(struct engine *e)
{
    (void)e;
    return ask("SELECT COUNT(*) FROM chunks");
}

static enum hf_status try_open(const char *url, struct hf_err *err)
{
    const struct journal_options options = {.clock = &clock_system};
    struct journal *j = NULL;
    *err = (struct hf_err){0};
    enum hf_status status = journal_sqlite.open(url, &options, &j, err);
    if (status == HF_OK)
        handle_close(j);
    else
        assert_true(strlen(err->msg) > 8);
    return status;
}

/* ---- opening ---- */

static void a_file_is_for_one_server(void **state)
{
    struct world *w = *state;
    struct hf_err err;
    FILE *out;
    assert_int_equal(try_open(w->engine->url, &err), HF_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "already running"));
    assert_int_equal(world_close(state), 0);
    int pid = appender_start(w->engine->url, 1, 10, &out);
    char line[64];
    assert_non_null(fgets(line, sizeof line, out));
    assert_int_equal(try_open(w->engine->url, &err), HF_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "already running"));
    kill(pid, SIGSTOP); /* a server that stands still is one, too */
    assert_int_equal(try_open(w->engine->url, &err), HF_UNAVAILABLE);
    kill(pid, SIGKILL);
    assert_int_equal(process_wait(pid), -SIGKILL);
    (void)fclose(out);
    assert_int_equal(try_open(w->engine->url, &err), HF_OK);
}

static void urls_that_lead_nowhere_are_refused(void **state)
{
    (void)state;
    struct hf_err err;
    char url[256], path[200];
    assert_int_equal(try_open("sqlite:", &err), HF_INVALID_REQUEST);
    (void)snprintf(url, sizeof url, "sqlite:%s/none/locks.db", dir.path);
    assert_int_equal(try_open(url, &err), HF_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "No such file or directory"));
    (void)snprintf(url, sizeof url, "sqlite:%s", dir.path);
    assert_int_equal(try_open(url, &err), HF_UNAVAILABLE);
    (void)snprintf(path, sizeof path, "%s/text", dir.path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        assert_true(fputs("this is not a database\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
    (void)snprintf(url, sizeof url, "sqlite:%s", path);
    assert_int_equal(try_open(url, &err), HF_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "not a database"));
}

/* ---- disks ---- */

static void a_full_disk_stores_nothing_and_then_goes_on(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    struct journal *j = w->a;
    char large[20000];
    memset(large, 'x', sizeof large);
    expect(claim(j, &m), JOURNAL_DONE);
    expect(append(j, &m, 1, "one"), JOURNAL_DONE);
    fault_arm(FAULT_WRITE, 1, SQLITE_FULL, true);
    for (int i = 0; i < 5; i++) {
        expect(append_bytes(j, &m, 2, large, sizeof large), JOURNAL_UNREACHABLE);
        assert_non_null(strstr(last_err.msg, "full"));
        expect(put_chunk(j, &m, 1, 0, "x"), JOURNAL_UNREACHABLE);
    }
    assert_true(fault_hits() > 0);
    assert_entries(j, 0, (const char *const[]){"one", NULL});
    fault_disarm();
    expect(append(j, &m, 2, "two"), JOURNAL_DONE);
    world_reopen(w);
    assert_entries(w->a, 0, (const char *const[]){"one", "two", NULL});
}

/* After a failed sync nobody knows what the disk has; repeating the append makes it known. */
static void a_failed_sync_is_unknown_until_it_is_repeated(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    struct journal *j = w->a;
    expect(claim(j, &m), JOURNAL_DONE);
    for (int64_t i = 1; i <= 5; i++) {
        fault_arm(FAULT_SYNC, 1, SQLITE_IOERR_FSYNC, true);
        expect(append(j, &m, i, "entry"), JOURNAL_UNKNOWN);
        expect(append(j, &m, i, "entry"), JOURNAL_UNKNOWN);
        assert_true(fault_hits() > 0);
        fault_disarm();
        enum journal_result result = append(j, &m, i, "entry");
        assert_true(result == JOURNAL_DONE || result == JOURNAL_FOUND);
        assert_int_equal(head_of(j).last, i);
    }
    world_reopen(w);
    assert_int_equal(head_of(w->a).last, 5);
}

/* Any single call to the disk fails: nothing that was acknowledged is lost, and nothing is stored
 * twice. */
static void a_failure_anywhere_loses_nothing(void **state)
{
    static const struct {
        enum fault_call call;
        int code;
    } faults[] = {{FAULT_WRITE, SQLITE_IOERR_WRITE},
                  {FAULT_SYNC, SQLITE_IOERR_FSYNC},
                  {FAULT_READ, SQLITE_IOERR_READ},
                  {FAULT_SHM_MAP, SQLITE_IOERR_SHMMAP}};
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    struct journal *j = w->a;
    char data[5000];
    int64_t index = 0;
    memset(data, 'd', sizeof data);
    expect(claim(j, &m), JOURNAL_DONE);
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++)
        for (int at = 1; at <= 6; at++) {
            enum journal_result result;
            fault_arm(faults[f].call, at, faults[f].code, false);
            index++;
            again(result, append_bytes(j, &m, index, data, sizeof data));
            assert_true(result == JOURNAL_DONE || result == JOURNAL_FOUND);
            fault_disarm();
            assert_int_equal(head_of(j).last, index);
        }
    world_reopen(w);
    assert_int_equal(head_of(w->a).last, index);
    assert_int_equal(ask("SELECT COUNT(*) FROM entries"), index);
}

static int64_t log_bytes(void)
{
    struct stat st;
    char path[200];
    (void)snprintf(path, sizeof path, "%s-wal", dir.db);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* More than a log's worth is written several times over, and the log does not grow with it. */
static void the_log_stays_short(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    char *data = hf_alloc(JOURNAL_CHUNK_MAX);
    int64_t longest = 0;
    expect(claim(w->a, &m), JOURNAL_DONE);
    for (int64_t i = 1; i <= 520; i++) { /* 130 MiB */
        expect(append_bytes(w->a, &m, i, data, JOURNAL_CHUNK_MAX), JOURNAL_DONE);
        if (i % 50 == 0) {
            take_snapshot(w->a, &m, i, "x");
            expect(trim(w->a, &m), JOURNAL_DONE);
        }
        longest = log_bytes() > longest ? log_bytes() : longest;
    }
    free(data);
    assert_in_range(longest, 1 << 20, 110 << 20);
    struct stat st;
    assert_int_equal(stat(dir.db, &st), 0);
    assert_true(st.st_size < 100 << 20); /* what was trimmed is used again */
}

static void every_append_is_one_sync(void **state)
{
    struct world *w = *state;
    const struct journal_mandate m = mandate(1, 'A');
    struct journal *j = w->a;
    expect(claim(j, &m), JOURNAL_DONE);
    expect(append(j, &m, 1, "first"), JOURNAL_DONE); /* it may begin a log */
    int64_t counted = journal_sqlite.syncs(j);
    fault_arm(FAULT_SYNC, 1 << 30, SQLITE_IOERR_FSYNC, false);
    for (int64_t i = 2; i <= 101; i++)
        expect(append(j, &m, i, "entry"), JOURNAL_DONE);
    assert_int_equal(fault_calls(FAULT_SYNC), 100);
    assert_int_equal(journal_sqlite.syncs(j) - counted, 100);
    struct journal_server self = {.url = "http://self"}, servers[2];
    size_t n;
    expect(j->driver->report(j, &self, NULL, servers, 2, &n, &last_err), JOURNAL_DONE);
    (void)head_of(j);
    assert_int_equal(fault_calls(FAULT_SYNC),
                     100); /* neither reports nor reads wait for the disk */
    fault_disarm();
    world_reopen(w);
}

static const struct CMUnitTest own_claims[] = {
    CLAIM(a_file_is_for_one_server),
    CLAIM(urls_that_lead_nowhere_are_refused),
    CLAIM(a_full_disk_stores_nothing_and_then_goes_on),
    CLAIM(a_failed_sync_is_unknown_until_it_is_repeated),
    CLAIM(a_failure_anywhere_loses_nothing),
    CLAIM(the_log_stays_short),
    CLAIM(every_append_is_one_sync),
    CLAIMS_END,
};

int main(void)
{
    struct engine e = {.driver = &journal_sqlite,
                       .start = start,
                       .stop = stop,
                       .fresh = fresh,
                       .count_chunks = count_chunks,
                       .n_entries = 2500,
                       .own_claims = own_claims};
    return suite_run(&e);
}
