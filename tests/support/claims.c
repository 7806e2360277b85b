/* Keeps a claim that fails from taking its neighbours with it.  Every test is linked with this
 * file, but for the simulations and the corpora of tests/fuzz, and no test calls it: its two
 * functions take the place of libcmocka's, and call those.
 *
 * A claim that fails leaves its function by longjmp.  Threads that it started go on, and use what
 * lies on its stack.  The frames of a claim therefore begin well below those of cmocka, and after a
 * failure the next claim begins below the one that failed: nothing overwrites what its threads
 * still use.  What they hold is not freed; the process ends soon.
 *
 * An assertion that fails on such a thread would end the process.  Here it ends the thread, and the
 * claim fails when its function returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GAP_SIZE ((size_t)64 << 10)    /* more than cmocka and the fixtures need */
#define CLAIM_SIZE ((size_t)512 << 10) /* more than a claim needs */
#define DEPTH_MAX ((size_t)5 << 20)    /* of a stack of 8 MB */

typedef int (*run_function)(const char *, const struct CMUnitTest *, size_t, CMFixtureFunction,
                            CMFixtureFunction);
typedef void (*fail_function)(const char *, int);

static const struct CMUnitTest *claims; /* of the group that runs */
static size_t n_begun;                  /* of these */
static size_t depth = GAP_SIZE;
static pthread_t runner; /* the thread that runs the claims */
static bool has_failed;  /* the current claim */
static atomic_bool has_failed_elsewhere;

static void *original(const char *name)
{
    void *ret = dlsym(RTLD_NEXT, name);
    if (!ret)
        abort();
    return ret;
}

void _fail(const char *const file, const int line)
{
    fail_function original_fail;
    *(void **)&original_fail = original("_fail");
    if (pthread_equal(pthread_self(), runner)) {
        has_failed = true;
        original_fail(file, line);
    }
    print_error("%s:%d: an assertion failed on a thread of this claim\n", file, line);
    atomic_store(&has_failed_elsewhere, true);
    pthread_exit(NULL);
}

/* The setup of each claim: cmocka calls it once for each, in their order. */
static int begin(void **state)
{
    const struct CMUnitTest *claim = &claims[n_begun++];
    if (has_failed && depth + CLAIM_SIZE <= DEPTH_MAX)
        depth += CLAIM_SIZE;
    has_failed = false;
    atomic_store(&has_failed_elsewhere, false);
    return claim->setup_func ? claim->setup_func(state) : 0;
}

static void run(void **state)
{
    volatile char *space = alloca(depth);
    space[0] = '\0';
    claims[n_begun - 1].test_func(state);
    if (atomic_load(&has_failed_elsewhere))
        fail();
    space[0] = '\0'; /* so that it lasts */
}

int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests, const size_t n,
                            CMFixtureFunction setup, CMFixtureFunction teardown)
{
    run_function run_group;
    struct CMUnitTest *apart = calloc(n ? n : 1, sizeof *apart);
    if (!apart)
        abort();
    for (size_t i = 0; i < n; i++) {
        apart[i] = tests[i];
        apart[i].setup_func = begin;
        apart[i].test_func = run;
    }
    claims = tests;
    n_begun = 0;
    has_failed = false;
    runner = pthread_self();
    *(void **)&run_group = original("_cmocka_run_group_tests");
    int failed = run_group(name, apart, n, setup, teardown);
    free(apart);
    return failed;
}
