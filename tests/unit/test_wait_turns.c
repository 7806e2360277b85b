/* Waiting lists in random turns (sim/random_turns.h), over one, two and three servers.  Each seed
 * is a world that is sold out, in which people come and go, pay, fail to pay, and wait, sellers
 * block places and change terms, commits are lost, and servers stop.  The judge of rules/fair.h
 * replays the log (I17) and finds that nobody was passed over; when all servers agree, nothing is
 * free that somebody waits for.
 *
 *   HF_WORLDS=N   runs N seeds
 *   HF_SEED=N     begins with this one; without HF_WORLDS, runs it alone */
#include "support/fixtures.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "sim/random_run.h"
#include "sim/random_turns.h"

#define WORLDS 40

static char seed_line[64]; /* empty: no world is running */

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

static int teardown(void **state)
{
    (void)state;
    say_seed();
    return 0;
}

static void no_seed_passes_over_anybody(void **state)
{
    struct answers a = {0};
    uint64_t first = test_seed(1);
    const char *worlds = getenv("HF_WORLDS");
    uint64_t n = worlds ? strtoull(worlds, NULL, 10) : getenv("HF_SEED") ? 1 : WORLDS;
    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        (void)snprintf(seed_line, sizeof seed_line, "HF_SEED=%" PRIu64 " fails\n", seed);
        random_waits_run(seed, &a);
    }
    seed_line[0] = '\0';
    print_message("%" PRIu64 " seeds, %zu steps: %zu holds, %zu entries, %zu offers, %zu of them "
                  "accepted, %zu lapsed, %zu judgements\n",
                  n, (size_t)n * WORLD_STEPS, a.created, a.joined, a.offered, a.accepted, a.lapsed,
                  a.judged);
    assert_true(n < WORLDS || (a.joined > n && a.accepted && a.lapsed && a.judged > a.offered));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(no_seed_passes_over_anybody, teardown),
    };
    log_set_level(LOG_OFF);
    signal(SIGABRT, on_abort);
    return cmocka_run_group_tests_name("wait_turns", tests, NULL, NULL);
}
