/* Claims about the guards that check fences: the one in memory and the one in SQLite. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "holdfast.h"

/* ---- in memory ---- */

static void equal_passes_and_lower_is_refused(void **state)
{
    (void)state;
    struct hf_fence_guard guard = {0};
    assert_true(hf_fence_check(&guard, 7));
    assert_true(hf_fence_check(&guard, 7));
    assert_false(hf_fence_check(&guard, 6));
    assert_true(hf_fence_check(&guard, 8));
    assert_false(hf_fence_check(&guard, 7));
    assert_true(hf_fence_check(&guard, INT64_MAX));
    assert_false(hf_fence_check(&guard, INT64_MAX - 1));
}

static void what_is_no_fence_never_passes(void **state)
{
    (void)state;
    struct hf_fence_guard guard = {0};
    assert_false(hf_fence_check(&guard, 0));
    assert_false(hf_fence_check(&guard, -1));
}

#define N_THREADS 4
#define N_FENCES 20000
struct climber {
    struct hf_fence_guard *guard;
    int64_t first;
    int64_t backwards;
};

/* A thread offers growing fences.  A fence that passes is never larger than what the guard holds
 * afterwards, and the guard never falls. */
static void *climb(void *arg)
{
    struct climber *c = arg;
    int64_t seen = 0;
    for (int64_t i = c->first; i < N_FENCES; i += N_THREADS) {
        bool passed = hf_fence_check(c->guard, i + 1);
        int64_t largest = __atomic_load_n(&c->guard->largest, __ATOMIC_ACQUIRE);
        c->backwards += largest < seen || (passed && largest < i + 1);
        seen = largest;
    }
    return NULL;
}

static void many_threads_never_take_the_guard_back(void **state)
{
    (void)state;
    struct hf_fence_guard guard = {0};
    struct climber climbers[N_THREADS];
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        climbers[i] = (struct climber){.guard = &guard, .first = i};
        assert_int_equal(pthread_create(&threads[i], NULL, climb, &climbers[i]), 0);
    }
    int64_t backwards = 0;
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        backwards += climbers[i].backwards;
    }
    assert_int_equal(backwards, 0);
    assert_int_equal(guard.largest, N_FENCES);
}

/* The resource lives in this process.  The holder is another process, which is stopped between its
 * decision to write and the write. */
struct resource {
    struct hf_fence_guard guard;
    bool guarded;
    char value;
};
struct message {
    int64_t fence;
    char value;
};

static void resource_write(struct resource *r, const struct message *m)
{
    if (!r->guarded || hf_fence_check(&r->guard, m->fence))
        r->value = m->value;
}

static char write_of_a_holder_that_slept(bool guarded)
{
    struct resource resource = {.guarded = guarded};
    int ends[2], status;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t a = fork();
    if (a == 0) {
        struct message late = {.fence = 1, .value = 'A'};
        raise(SIGSTOP); /* until its lease has expired */
        _exit(write(ends[1], &late, sizeof late) == (ssize_t)sizeof late ? 0 : 1);
    }
    assert_true(a > 0);
    assert_int_equal(waitpid(a, &status, WUNTRACED), a);
    assert_true(WIFSTOPPED(status));
    resource_write(&resource, &(struct message){.fence = 2, .value = 'B'});
    assert_int_equal(kill(a, SIGCONT), 0);
    struct message late;
    assert_int_equal(read(ends[0], &late, sizeof late), sizeof late);
    resource_write(&resource, &late);
    assert_int_equal(waitpid(a, &status, 0), a);
    close(ends[0]);
    close(ends[1]);
    return resource.value;
}

static void a_holder_that_slept_is_refused_in_memory(void **state)
{
    (void)state;
    assert_int_equal(write_of_a_holder_that_slept(true), 'B');
}

static void without_the_guard_its_write_lands(void **state)
{
    (void)state;
    assert_int_equal(write_of_a_holder_that_slept(false), 'A');
}

/* ---- SQLite ---- */

struct fixture {
    char path[64];
    sqlite3 *a, *b;
};

static void must(sqlite3 *db, const char *sql)
{
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
}

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof *t);
    snprintf(t->path, sizeof t->path, "/tmp/holdfast-fence-%ld.db", (long)getpid());
    unlink(t->path);
    if (sqlite3_open(t->path, &t->a) != SQLITE_OK || sqlite3_open(t->path, &t->b) != SQLITE_OK)
        return -1;
    must(t->a, "CREATE TABLE report (text)");
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;
    sqlite3_close(t->a);
    sqlite3_close(t->b);
    unlink(t->path);
    free(t);
    return 0;
}

/* Checks a fence in its own transaction. */
static enum hf_result check(sqlite3 *db, const char *resource, int64_t fence)
{
    struct hf_fault fault = {0};
    must(db, "BEGIN IMMEDIATE");
    enum hf_result result = hf_fence_sqlite(db, resource, fence, &fault);
    must(db, result == HF_DONE ? "COMMIT" : "ROLLBACK");
    if (result != HF_DONE)
        assert_int_equal(fault.result, result);
    return result;
}

static void sqlite_equal_passes_and_lower_is_refused(void **state)
{
    struct fixture *t = *state;
    assert_int_equal(check(t->a, "report", 417), HF_DONE);
    assert_int_equal(check(t->b, "report", 417), HF_DONE);
    assert_int_equal(check(t->b, "report", 418), HF_DONE);
    assert_int_equal(check(t->a, "report", 417), HF_LOST);
    assert_int_equal(check(t->a, "another", 1), HF_DONE);
    assert_int_equal(check(t->a, "report", INT64_MAX), HF_DONE);
}

static void a_note_is_undone_with_its_transaction(void **state)
{
    struct fixture *t = *state;
    must(t->a, "BEGIN IMMEDIATE");
    assert_int_equal(hf_fence_sqlite(t->a, "report", 9, NULL), HF_DONE);
    must(t->a, "ROLLBACK");
    assert_int_equal(check(t->b, "report", 3), HF_DONE);
}

static void a_refused_write_leaves_nothing(void **state)
{
    struct fixture *t = *state;
    assert_int_equal(check(t->b, "report", 2), HF_DONE);
    must(t->a, "BEGIN IMMEDIATE");
    must(t->a, "INSERT INTO report VALUES ('late')");
    struct hf_fault fault = {0};
    assert_int_equal(hf_fence_sqlite(t->a, "report", 1, &fault), HF_LOST);
    assert_non_null(strstr(fault.msg, "stale"));
    must(t->a, "ROLLBACK");
    sqlite3_stmt *rows;
    assert_int_equal(sqlite3_prepare_v2(t->b, "SELECT 1 FROM report", -1, &rows, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(rows), SQLITE_DONE);
    sqlite3_finalize(rows);
}

static void a_check_outside_a_transaction_is_refused(void **state)
{
    struct fixture *t = *state;
    struct hf_fault fault = {0};
    assert_int_equal(hf_fence_sqlite(t->a, "report", 1, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "transaction"));
}

static void resources_and_fences_that_cannot_be_are_refused(void **state)
{
    struct fixture *t = *state;
    char longest[257];
    memset(longest, 'r', 256);
    longest[256] = '\0';
    assert_int_equal(check(t->a, "", 1), HF_BAD_REQUEST);
    assert_int_equal(check(t->a, longest, 1), HF_BAD_REQUEST);
    longest[255] = '\0';
    assert_int_equal(check(t->a, longest, 1), HF_DONE);
    assert_int_equal(check(t->a, "report", 0), HF_BAD_REQUEST);
    assert_int_equal(check(t->a, "report", -1), HF_BAD_REQUEST);
}

static void a_busy_database_is_a_failure_and_no_verdict(void **state)
{
    struct fixture *t = *state;
    assert_int_equal(check(t->a, "report", 1), HF_DONE);
    must(t->b, "BEGIN IMMEDIATE");
    must(t->a, "BEGIN");
    struct hf_fault fault = {0};
    assert_int_equal(hf_fence_sqlite(t->a, "report", 2, &fault), HF_FAILED);
    assert_non_null(strstr(fault.msg, "locked"));
    must(t->a, "ROLLBACK");
    must(t->b, "ROLLBACK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_passes_and_lower_is_refused),
        cmocka_unit_test(what_is_no_fence_never_passes),
        cmocka_unit_test(many_threads_never_take_the_guard_back),
        cmocka_unit_test(a_holder_that_slept_is_refused_in_memory),
        cmocka_unit_test(without_the_guard_its_write_lands),
        cmocka_unit_test_setup_teardown(sqlite_equal_passes_and_lower_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_note_is_undone_with_its_transaction, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refused_write_leaves_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_check_outside_a_transaction_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(resources_and_fences_that_cannot_be_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_busy_database_is_a_failure_and_no_verdict, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
