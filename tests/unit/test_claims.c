/* Claims about tests/support/claims.c: a claim that fails, on whatever thread, does not take its
 * neighbours with it.  The claims that fail are those of a process of their own, whose output is
 * judged here. */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4
#define WORDS 500

/* ---- the claims that fail ---- */

/* Fills its words again and again, and finds them as it left them. */
struct worker {
    pthread_t thread;
    unsigned number, words[WORDS];
};

static atomic_int n_rounds, n_spoilt;

static void *work(void *arg)
{
    struct worker *w = arg;
    for (unsigned round = 0;; round++) {
        for (unsigned i = 0; i < WORDS; i++)
            w->words[i] = w->number + round + i;
        usleep(2000);
        for (unsigned i = 0; i < WORDS; i++)
            if (w->words[i] != w->number + round + i)
                atomic_fetch_add(&n_spoilt, 1);
        atomic_fetch_add(&n_rounds, 1);
    }
    return NULL;
}

static void fails_while_its_threads_use_its_stack(void **state)
{
    (void)state;
    struct worker workers[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].number = i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    assert_int_equal(0, 1);
}

static void neighbour(void **state)
{
    (void)state;
    unsigned char stack[60000];
    for (int until = atomic_load(&n_rounds) + 5 * WORKERS; atomic_load(&n_rounds) < until;) {
        memset(stack, 0xab, sizeof stack);
        usleep(2000);
        assert_int_equal(stack[sizeof stack - 1], 0xab);
    }
    assert_int_equal(atomic_load(&n_spoilt), 0);
}

static void *assert_in_vain(void *arg)
{
    assert_non_null(arg);
    return arg;
}

static void fails_on_another_thread(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, assert_in_vain, NULL), 0);
    pthread_join(thread, NULL);
}

static void last(void **state) { (void)state; }

static int n_set_up;

static int set_up(void **state)
{
    (void)state;
    n_set_up++;
    return 0;
}

static void has_its_own_setup(void **state)
{
    (void)state;
    assert_int_equal(n_set_up, 1);
}

static int run_planted(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fails_while_its_threads_use_its_stack),
        cmocka_unit_test(neighbour),
        cmocka_unit_test(fails_while_its_threads_use_its_stack),
        cmocka_unit_test(neighbour),
        cmocka_unit_test(fails_on_another_thread),
        cmocka_unit_test_setup(has_its_own_setup, set_up),
        cmocka_unit_test(last),
    };
    int failed = cmocka_run_group_tests_name("planted", tests, NULL, NULL);
    fflush(NULL);
    _exit(failed); /* the threads still run */
}

/* ---- what is claimed ---- */

static void a_claim_that_fails_does_not_take_its_neighbours_with_it(void **state)
{
    (void)state;
    char output[8192];
    FILE *f = popen("exec /proc/$PPID/exe planted 2>&1", "re");
    assert_non_null(f);
    output[fread(output, 1, sizeof output - 1, f)] = '\0';
    int status = pclose(f);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
        print_error("%s\n", output);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3); /* claims failed */
    static const char *const passed[] = {"neighbour", "has_its_own_setup", "last"};
    for (size_t i = 0; i < 3; i++) {
        char line[64];
        snprintf(line, sizeof line, "[       OK ] %s\n", passed[i]);
        assert_non_null(strstr(output, line));
    }
    assert_non_null(strstr(output, "[  FAILED  ] fails_while_its_threads_use_its_stack"));
    assert_non_null(strstr(output, "[  FAILED  ] fails_on_another_thread"));
    assert_non_null(strstr(output, "test_claims.c")); /* where the assertion is */
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return run_planted();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_that_fails_does_not_take_its_neighbours_with_it),
    };
    return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
