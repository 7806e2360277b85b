/* Claims about tests/support/claims.c, that a claim that fails, on whatever thread, does not take
 * its neighbours with it, and about tests/support/leaks.c, that a leak is still found.  What fails
 * here is in processes of their own, whose output is judged. */
#include "support/fixtures.h"

#include <errno.h>
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

#ifdef __SANITIZE_ADDRESS__
static void *volatile leaked;

static int run_leak(void)
{
    leaked = malloc(17);
    leaked = NULL;
    return 0;
}
#endif

/* ---- what is claimed ---- */

/* Runs this executable, by the name that it was started by, with an argument; returns its status.
 */
static int run_again(const char *argument, char *ret_output, size_t size)
{
    char command[512];
    assert_in_range(
        snprintf(command, sizeof command, "exec '%s' %s 2>&1", program_invocation_name, argument),
        1, sizeof command - 1);
    FILE *f = popen(command, "re");
    assert_non_null(f);
    ret_output[fread(ret_output, 1, size - 1, f)] = '\0';
    int status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_claim_that_fails_does_not_take_its_neighbours_with_it(void **state)
{
    (void)state;
    char output[8192];
    int status = run_again("planted", output, sizeof output);
    if (status != 3)
        print_error("%s\n", output);
    assert_int_equal(status, 3); /* claims failed */
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

#ifdef __SANITIZE_ADDRESS__
static void a_leak_is_found(void **state)
{
    (void)state;
    char output[8192];
    assert_int_equal(setenv("ASAN_OPTIONS", "detect_leaks=1:exitcode=99", 1), 0);
    int status = run_again("leak", output, sizeof output);
    assert_int_equal(status, 99);
    assert_non_null(strstr(output, "17 byte(s) leaked"));
}
#endif

int main(int argc, char **argv)
{
#ifdef __SANITIZE_ADDRESS__
    if (argc > 1 && strcmp(argv[1], "leak") == 0)
        return run_leak();
#endif
    (void)argv;
    if (argc > 1)
        return run_planted();
    const struct CMUnitTest tests[] = {
#ifdef __SANITIZE_ADDRESS__
        cmocka_unit_test(a_leak_is_found),
#endif
        cmocka_unit_test(a_claim_that_fails_does_not_take_its_neighbours_with_it),
    };
    return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
