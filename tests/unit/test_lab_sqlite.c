/* The lab's strategies on SQLite, with two buyers step by step.  tests/lab/race.test.mjs has crowds
 * of buyers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lab/line.h"
#include "lab/stage.h"
#include "lab/strategy.h"
#include "support/process.h"

static char dir[64], path[80];
static struct strategy_settings settings = {STRATEGY_SETTINGS_USUAL};
static char event[STAGE_EVENT_SIZE];

static int build(void **state)
{
    (void)state;
    struct hf_err err;
    process_make_dir("lab-sqlite", dir, sizeof dir);
    snprintf(path, sizeof path, "%s/seats.db", dir);
    settings.sqlite = path;
    settings.retry_pause_ms = 1;
    return stage_build(&settings, &err) ? 0 : -1;
}

static int remove_all(void **state)
{
    (void)state;
    static const char *const endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char file[96];
        snprintf(file, sizeof file, "%s%s", path, endings[i]);
        unlink(file);
    }
    return rmdir(dir);
}

static const struct strategy *find(const char *name)
{
    for (const struct strategy *const *s = strategies_sqlite; *s; s++)
        if (strcmp((*s)->name, name) == 0)
            return *s;
    fail_msg("%s is not there", name);
    return NULL;
}

static void stage(const struct strategy *s, int seats)
{
    struct hf_err err;
    assert_true(stage_event(s, &settings, seats, event, &err));
}

static struct runner *runner(const struct strategy *s, const struct strategy_settings *with)
{
    struct runner *ret = NULL;
    struct hf_err err;
    if (!s->open(s, with, &ret, &err))
        fail_msg("%s: %s", s->name, err.msg);
    return ret;
}

static struct strategy_outcome buy(const struct strategy *s, struct runner *d, const char *user,
                                   const char *const *seats, size_t n)
{
    struct strategy_outcome outcome;
    strategy_attempt(
        s, d, &(struct strategy_want){.user = user, .event = event, .seats = seats, .n_seats = n},
        &outcome);
    return outcome;
}

static const char *const one[] = {"S-A-1"};

static void assert_sales(const struct strategy *s, size_t n, const char *last_holder)
{
    struct stage_sales sales = {0};
    struct hf_err err;
    assert_true(stage_sales(s, &settings, event, &sales, &err));
    assert_int_equal(sales.n, n);
    assert_string_equal(sales.rows[n - 1].holder, last_holder);
    stage_sales_close(&sales);
}

/* ---- bob buys while ann is between reading and writing ---- */

struct rival {
    const struct strategy *strategy;
    struct runner *runner;
    struct strategy_outcome outcome;
    int visits;
};

static void rival_buys(void *ctx)
{
    struct rival *r = ctx;
    if (r->visits++ == 0)
        r->outcome = buy(r->strategy, r->runner, "bob", one, 1);
}

static struct strategy_outcome ann_with_bob_inside(const struct strategy *s, struct rival *bob)
{
    struct strategy_settings with = settings;
    stage(s, 1);
    *bob = (struct rival){.strategy = s, .runner = runner(s, &settings)};
    with.window = rival_buys;
    with.window_ctx = bob;
    struct runner *d = runner(s, &with);
    struct strategy_outcome ann = buy(s, d, "ann", one, 1);
    s->close(d);
    s->close(bob->runner);
    assert_true(bob->visits > 0);
    return ann;
}

static void naive_sells_the_seat_to_both(void **state)
{
    (void)state;
    struct rival bob;
    const struct strategy *s = find("naive");
    assert_int_equal(ann_with_bob_inside(s, &bob).verdict, STRATEGY_WON);
    assert_int_equal(bob.outcome.verdict, STRATEGY_WON);
    assert_sales(s, 1, "ann");
    assert_false(s->correct);
}

static void optimistic_and_unique_refuse_the_second_buyer(void **state)
{
    (void)state;
    static const char *const names[] = {"optimistic", "unique"};
    static const unsigned trips[] = {5, 1}; /* SELECT, BEGIN, UPDATE, ROLLBACK, SELECT; INSERT */
    for (size_t i = 0; i < 2; i++) {
        struct rival bob;
        const struct strategy *s = find(names[i]);
        struct strategy_outcome ann = ann_with_bob_inside(s, &bob);
        assert_int_equal(ann.verdict, STRATEGY_LOST);
        assert_int_equal(ann.sql_trips, trips[i]);
        assert_int_equal(ann.commits, 0);
        assert_int_equal(bob.outcome.verdict, STRATEGY_WON);
        assert_sales(s, 1, "bob");
    }
}

static void *rival_thread(void *ctx)
{
    rival_buys(ctx);
    return NULL;
}

struct waiting_rival {
    struct rival rival;
    pthread_t thread;
};

/* Bob waits behind Ann in the line, so he cannot have finished while she is here. */
static void rival_stands_in_line(void *ctx)
{
    struct waiting_rival *w = ctx;
    assert_int_equal(pthread_create(&w->thread, NULL, rival_thread, &w->rival), 0);
}

static void queue_serves_the_rival_afterwards_and_he_loses(void **state)
{
    (void)state;
    const struct strategy *s = find("queue");
    stage(s, 1);
    struct waiting_rival bob = {.rival = {.strategy = s, .runner = runner(s, &settings)}};
    struct strategy_settings with = settings;
    with.window = rival_stands_in_line;
    with.window_ctx = &bob;
    struct runner *d = runner(s, &with);
    struct strategy_outcome ann = buy(s, d, "ann", one, 1);
    pthread_join(bob.thread, NULL);
    s->close(d);
    s->close(bob.rival.runner);
    assert_int_equal(ann.verdict, STRATEGY_WON);
    assert_int_equal(bob.rival.outcome.verdict, STRATEGY_LOST);
    assert_sales(s, 1, "ann");
}

#define CROWD 40

static long sleeps(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static void *stand_in_line(void *ctx)
{
    static const struct strategy_want want = {.event = "evt", .seats = one, .n_seats = 1};
    long *ret = ctx, before = sleeps();
    uint64_t mine = lines_enter(&want);
    usleep(1000); /* long enough for a thread that was woken for nothing to go back to sleep */
    lines_leave(mine);
    *ret = sleeps() - before;
    return NULL;
}

/* If each thread woke all the others, they would go to sleep about CROWD * CROWD / 2 times. */
static void leaving_a_line_wakes_only_the_next_thread(void **state)
{
    (void)state;
    pthread_t threads[CROWD];
    long slept[CROWD], sum = 0;
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, stand_in_line, &slept[i]), 0);
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
        sum += slept[i];
    }
    assert_true(sum < 6 * CROWD);
}

/* ---- several seats, and failures ---- */

static void many_seats_are_won_together_or_not_at_all(void **state)
{
    (void)state;
    static const char *const three[] = {"S-A-3", "S-A-1", "S-A-2"};
    static const char *const overlapping[] = {"S-A-3", "S-A-4"};
    for (const struct strategy *const *s = strategies_sqlite; *s; s++) {
        stage(*s, 4);
        struct runner *d = runner(*s, &settings);
        assert_int_equal(buy(*s, d, "ann", three, 3).verdict, STRATEGY_WON);
        assert_int_equal(buy(*s, d, "bob", overlapping, 2).verdict, STRATEGY_LOST);
        assert_sales(*s, 3, "ann");
        struct strategy_outcome cid = buy(*s, d, "cid", overlapping + 1, 1);
        assert_int_equal(cid.verdict, STRATEGY_WON);
        assert_int_equal(cid.commits, 1);
        assert_sales(*s, 4, "cid");
        (*s)->close(d);
    }
}

static void a_file_that_cannot_be_opened_fails_at_open(void **state)
{
    (void)state;
    struct strategy_settings with = settings;
    struct runner *d = NULL;
    struct hf_err err;
    with.sqlite = "/nonexistent/seats.db";
    const struct strategy *s = find("naive");
    assert_false(s->open(s, &with, &d, &err));
    assert_memory_equal(err.msg, "SQLite", 6);
    assert_null(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naive_sells_the_seat_to_both),
        cmocka_unit_test(optimistic_and_unique_refuse_the_second_buyer),
        cmocka_unit_test(queue_serves_the_rival_afterwards_and_he_loses),
        cmocka_unit_test(leaving_a_line_wakes_only_the_next_thread),
        cmocka_unit_test(many_seats_are_won_together_or_not_at_all),
        cmocka_unit_test(a_file_that_cannot_be_opened_fails_at_open),
    };
    return cmocka_run_group_tests_name("lab on SQLite", tests, build, remove_all);
}
