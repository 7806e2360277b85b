/* The simulations find the bugs that tests/sim/mutate plants: each build/.../mutants/TEST/NAME is
 * tests/unit/TEST with one of them, and must fail.  The four worst of the cell are also found by
 * what users could see, without a look into the servers and the journal (HF_CHECKS=outside), which
 * takes more seeds and is tried with HF_OUTSIDE=1, in `make soak`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEEDS 5000

/* Where the search for a mutant begins that the first ten seeds do not find, so that it takes no
 * minute; with HF_OUTSIDE=1 all begin with seed 1.  After a change of the simulation these numbers are no longer
 * the nearest ones, which costs time and nothing else. */
static unsigned long first_seed(const char *mutant)
{
    static const struct {
        const char *name;
        unsigned long seed;
    } rare[] = {{"asked_for_and_withdrawn", 36},
                {"client_counts_from_the_answer", 4744},
                {"client_margin_has_the_wrong_sign", 487},
                {"standing_still_goes_unnoticed", 12},
                {"waiters_are_told_that_nothing_was_done", 594},
                {"forgets_a_lost_commit", 53},
                {"forgets_cancelled_sale", 24},
                {"forgets_change_of_hold", 14},
                {"forgets_eviction", 21},
                {"forgets_failed_payment", 177},
                {"forgets_other_terms", 198},
                {"forgets_release", 15},
                {"forgets_resumption", 50},
                {"forgets_unblock", 21}};
    for (size_t i = 0; i < sizeof rare / sizeof rare[0] && !getenv("HF_OUTSIDE"); i++)
        if (strcmp(mutant, rare[i].name) == 0)
            return rare[i].seed;
    return 1;
}

/* The folder of the mutants of a test, beside that of this one. */
static void folder(const char *test, char ret[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    char *tests = strstr(self, "/tests/integration/");
    assert_non_null(tests);
    *tests = '\0';
    assert_true(snprintf(ret, PATH_MAX, "%s/mutants/%s", self, test) < PATH_MAX);
}

static int is_mutant(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* Runs a mutant until a seed from `first` on fails, and returns that seed; 0: none did.  A test
 * without seeds counts as the first one. */
static unsigned long find(const char *path, unsigned long first, const char *checks, bool has_seeds)
{
    char command[PATH_MAX + 128], line[512];
    unsigned long seed = 0;
    /* A mutant that was found ends in the middle of a run: its leaks mean nothing. */
    assert_true(
        snprintf(command, sizeof command,
                 "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 HF_SEED=%lu HF_SEEDS=%d HF_WORLDS=%d "
                 "HF_CHECKS=%s '%s' 2>&1",
                 first, SEEDS, SEEDS, checks, path) < (int)sizeof command);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    char reason[512] = "";
    while (fgets(line, sizeof line, out)) {
        const char *at = strstr(line, " fails: ");
        if (strncmp(line, "HF_SEED=", 8) == 0)
            seed = strtoul(line + 8, NULL, 10);
        else if (strncmp(line, "ERROR: ", 7) != 0 && strncmp(line, "[   LINE   ]", 12) != 0)
            continue;
        if (at || (!reason[0] && line[0] != 'H'))
            (void)snprintf(reason, sizeof reason, "%s", at ? at + strlen(" fails: ") : line);
    }
    int status = pclose(out);
    assert_true(WIFEXITED(status));
    if (!has_seeds)
        seed = WEXITSTATUS(status) != 0;
    assert_true((WEXITSTATUS(status) != 0) == (seed != 0));
    const char *otherwise = seed ? "it aborts\n" : "not found\n";
    printf("  %-8s seed %lu: %s", checks, seed, reason[0] ? reason : otherwise);
    return seed;
}

static bool is_seen_from_outside(const char *mutant)
{
    static const char *const names[] = {
        "keepalive_without_append", "keepalive_after_append_in_flight",
        "unknown_append_is_a_failure", "ttl_not_renewed_by_new_master"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(mutant, names[i]) == 0)
            return true;
    return false;
}

static void find_all(const char *test, bool has_seeds)
{
    char mutants[PATH_MAX], path[2 * PATH_MAX];
    struct dirent **entries;
    int n_missed = 0;
    folder(test, mutants);
    int n = scandir(mutants, &entries, is_mutant, alphasort);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", mutants, entries[i]->d_name);
        printf("%s\n", entries[i]->d_name);
        n_missed += find(path, first_seed(entries[i]->d_name), "all", has_seeds) == 0;
        if (getenv("HF_OUTSIDE") && is_seen_from_outside(entries[i]->d_name))
            n_missed += find(path, 1, "outside", has_seeds) == 0;
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(n_missed, 0);
}

static void every_planted_bug_of_the_cell_is_found(void **state)
{
    (void)state;
    find_all("test_cell_sim", true);
}

static void every_planted_bug_of_waiting_lists_is_found(void **state)
{
    (void)state;
    find_all("test_wait_turns", true);
    find_all("test_decide_wait", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_planted_bug_of_the_cell_is_found),
        cmocka_unit_test(every_planted_bug_of_waiting_lists_is_found),
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
