/* The cell from seeds: real nodes, a real state machine and real clients over a simulated journal,
 * network and clock (tests/sim/cell_world.h).  Each seed is a run of a few seconds of simulated
 * time with its own misfortunes; tests/sim/cell_check.h says what is checked.
 *
 *   HF_SEEDS=N          runs N seeds (500)
 *   HF_SEED=N           begins with this one; without HF_SEEDS, runs it alone
 *   HF_TRACE=1          prints the whole trace while it runs; a failing seed prints its last lines
 *   HF_CHECKS=outside   checks only what users can see */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "sim/cell_check.h"
#include "support/leaks.h"

#define SEEDS 500

static uint64_t seed;
static char seed_line[64];

/* The program ends within a run: what is needed to repeat it is still printed. */
static void say_seed(void)
{
    ssize_t written = write(STDERR_FILENO, seed_line, strlen(seed_line));
    (void)written;
}

static void on_abort(int number)
{
    say_seed();
    signal(number, SIG_DFL);
    raise(number);
}

/* Each sanitizer ends the program in its own way. */
static void on_sanitizers_end(void)
{
    static const char *const libraries[] = {"libasan.so.8", "libubsan.so.1", "libtsan.so.2"};
    size_t before = leaks_now();
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
        void *symbol = library ? dlsym(library, "__sanitizer_set_death_callback") : NULL;
        void (*set)(void (*)(void));
        memcpy(&set, &symbol, sizeof set);
        if (symbol)
            set(say_seed);
    }
    (void)dlerror();
    leaks_expect_since(before);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* Runs a seed, and repeats it with a trace if it fails. */
static bool runs_well(bool outside_only)
{
    static struct cell_world world;
    (void)snprintf(seed_line, sizeof seed_line, "HF_SEED=%" PRIu64 "\n", seed);
    bool good = cell_world_run(&world, seed, getenv("HF_TRACE") != NULL, outside_only);
    cell_world_close(&world);
    if (good)
        return true;
    if (!getenv("HF_TRACE"))
        good = cell_world_run(&world, seed, true, outside_only);
    cell_world_print_trace();
    if (!getenv("HF_TRACE"))
        check_print(&world);
    fprintf(stderr, "HF_SEED=%" PRIu64 " fails: %s\n", seed,
            good ? "but not when it is repeated" : world.failure);
    if (!getenv("HF_TRACE"))
        cell_world_close(&world);
    return false;
}

static void print_counts(uint64_t n)
{
    const struct cell_counts *c = &cell_counts;
    printf("%" PRIu64 " seeds: %" PRIu64 " events, %" PRIu64 " entries, %" PRIu64
           " masterships (%" PRIu64 " ended by resigning, %" PRIu64
           " began while another server believed to lead), %" PRIu64 " grants (%" PRIu64
           " cached), %" PRIu64 " waits, %" PRIu64 " deadlocks, %" PRIu64
           " sessions expired, %" PRIu64 " grants withdrawn, %" PRIu64 " appends repeated, %" PRIu64
           " found, %" PRIu64 " snapshots loaded, %" PRIu64 " digests compared, %" PRIu64
           " operations in histories (%" PRIu64 " histories not decided)\n",
           n, c->events, c->entries, c->epochs, c->resigned, c->two_leaders, c->grants, c->cached,
           c->waits, c->deadlocks, c->expired, c->withdrawn, c->repeated, c->found, c->restored,
           c->digests, c->linear_ops, c->linear_given_up);
}

static void no_seed_breaks_a_promise(void **state)
{
    const char *checks = getenv("HF_CHECKS");
    const bool outside_only = checks && strcmp(checks, "outside") == 0;
    const uint64_t first = setting("HF_SEED", 1);
    const uint64_t n = setting("HF_SEEDS", getenv("HF_SEED") ? 1 : SEEDS);
    (void)state;
    for (seed = first; seed < first + n; seed++)
        if (!runs_well(outside_only))
            fail_msg("seed %" PRIu64, seed);
    print_counts(n);
    if (n < SEEDS || outside_only)
        return;
    /* The seeds try everything that they are for. */
    const struct cell_counts *c = &cell_counts;
    assert_true(c->epochs > n && c->resigned && c->two_leaders && c->cached && c->waits &&
                c->deadlocks);
    assert_true(c->expired && c->withdrawn && c->repeated && c->found && c->restored && c->digests);
    assert_true(c->linear_given_up * 100 <= n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_seed_breaks_a_promise)};
    log_set_level(LOG_OFF);
    hash_set_key(1, 2); /* a client looks at its claims in the order of its table */
    signal(SIGABRT, on_abort);
    on_sanitizers_end();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
