/* The lab's strategies on real servers: fifty buyers of one seat, two buyers step by step, several
 * seats at once, and layers that disagree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/stage.h"
#include "lab/strategy.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"

#define BUYERS 50

static char postgres_url[POSTGRES_URL_SIZE];
static struct redis_server redis;
static struct strategy_settings settings = {STRATEGY_SETTINGS_USUAL};
static char event[32]; /* each test has a new one */

/* ---- the stage ---- */

static int start_servers(void **state)
{
    (void)state;
    if (!redis_server_start(&redis))
        return -1;
    postgres_server_fresh(postgres_url);
    settings.postgres = postgres_url;
    settings.redis = redis.url;
    struct hf_err err;
    return stage_build(&settings, &err) ? 0 : -1;
}

static int stop_servers(void **state)
{
    (void)state;
    redis_server_stop(&redis);
    return 0;
}

/* Creates the seats S-A-1 to S-A-n of a new event. */
static void stage(int n_seats)
{
    static int n;
    struct hf_err err;
    const char *const row = "A";
    snprintf(event, sizeof event, "evt%d", ++n);
    struct stage_section section = {
        .event = event, .section = "S", .rows = &row, .n_rows = 1, .seats_per_row = n_seats};
    assert_true(stage_seats(&settings, &section, &err));
}

/* Returns the first value of a statement whose $1 is the event. */
static const char *ask(const char *sql)
{
    static char value[64];
    const char *const parameters[] = {event};
    PGconn *pg = PQconnectdb(postgres_url);
    PGresult *result = PQexecParams(pg, sql, 1, NULL, parameters, NULL, NULL, 0);
    if (PQresultStatus(result) == PGRES_FATAL_ERROR)
        fail_msg("%s", PQerrorMessage(pg));
    snprintf(value, sizeof value, "%s", PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(pg);
    return value;
}

#define HELD_SEATS                                                                                 \
    "SELECT (SELECT count(*) FROM seats WHERE event = $1 AND status = 'HELD')"                     \
    " + (SELECT count(*) FROM holds WHERE event = $1)"
#define OWNER                                                                                      \
    "SELECT holder FROM seats WHERE event = $1 AND holder IS NOT NULL"                             \
    " UNION SELECT holder FROM holds WHERE event = $1"

static int redis_number(const char *command)
{
    char answer[64];
    redis_server_ask(&redis, command, answer, sizeof answer);
    return atoi(answer[0] == '$' ? strchr(answer, '\n') + 1 : answer + 1);
}

static struct desk *desk(const struct strategy *s, const struct strategy_settings *with)
{
    struct desk *ret = NULL;
    struct hf_err err;
    if (!s->open(s, with, &ret, &err))
        fail_msg("%s: %s", s->name, err.msg);
    return ret;
}

static struct strategy_outcome buy_n(const struct strategy *s, struct desk *d, const char *user,
                                     const char *const *seats, size_t n)
{
    struct strategy_outcome outcome;
    strategy_attempt(
        s, d, &(struct strategy_want){.user = user, .event = event, .seats = seats, .n_seats = n},
        &outcome);
    return outcome;
}

static struct strategy_outcome buy(const struct strategy *s, struct desk *d, const char *user)
{
    const char *const seat = "S-A-1";
    return buy_n(s, d, user, &seat, 1);
}

/* ---- fifty buyers, one seat ---- */

struct buyer {
    const struct strategy *strategy;
    struct desk *desk;
    pthread_barrier_t *start;
    char user[32];
    struct strategy_outcome outcome;
};

static void *buyer_main(void *arg)
{
    struct buyer *b = arg;
    pthread_barrier_wait(b->start);
    b->outcome = buy(b->strategy, b->desk, b->user);
    return NULL;
}

static void fifty_buyers(const struct strategy *s)
{
    static struct buyer buyers[BUYERS];
    pthread_t threads[BUYERS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, BUYERS);
    stage(1);
    for (int i = 0; i < BUYERS; i++) {
        buyers[i] = (struct buyer){.strategy = s, .desk = desk(s, &settings), .start = &start};
        snprintf(buyers[i].user, sizeof buyers[i].user, "buyer%d", i);
    }
    for (int i = 0; i < BUYERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, buyer_main, &buyers[i]), 0);
    int counts[3] = {0};
    const char *winner = "";
    for (int i = 0; i < BUYERS; i++) {
        pthread_join(threads[i], NULL);
        const struct buyer *b = &buyers[i];
        counts[b->outcome.verdict]++;
        if (b->outcome.verdict == STRATEGY_WON)
            winner = b->user;
        if (b->outcome.verdict == STRATEGY_ERROR)
            print_error("%s: %s\n", s->name, b->outcome.why);
        s->close(b->desk);
    }
    pthread_barrier_destroy(&start);
    if (counts[STRATEGY_WON] != 1 || counts[STRATEGY_ERROR])
        fail_msg("%s: %d won, %d failed", s->name, counts[STRATEGY_WON], counts[STRATEGY_ERROR]);
    assert_string_equal(ask(OWNER), winner);
    assert_string_equal(ask(HELD_SEATS), "1");
}

static void of_fifty_buyers_of_one_seat_exactly_one_wins(void **state)
{
    (void)state;
    int n = 0;
    for (const struct strategy *const *s = strategies; *s; s++)
        if ((*s)->correct) {
            fifty_buyers(*s);
            n++;
        }
    assert_int_equal(n, 8);
}

/* ---- two buyers, step by step: bob buys while ann is between reading and writing ---- */

struct rival {
    const struct strategy *strategy;
    struct desk *desk;
    struct strategy_outcome outcome;
    int visits;
};

static void rival_buys(void *ctx)
{
    struct rival *r = ctx;
    if (r->visits++ == 0)
        r->outcome = buy(r->strategy, r->desk, "bob");
}

static struct strategy_outcome ann_with_bob_inside(const char *name, struct strategy_settings with,
                                                   struct rival *bob)
{
    const struct strategy *s = strategy_find(name);
    stage(1);
    *bob = (struct rival){.strategy = s, .desk = desk(s, &with)};
    with.window = rival_buys;
    with.window_ctx = bob;
    struct desk *d = desk(s, &with);
    struct strategy_outcome ann = buy(s, d, "ann");
    s->close(d);
    s->close(bob->desk);
    assert_true(bob->visits > 0);
    return ann;
}

static void naive_sells_the_seat_to_both(void **state)
{
    (void)state;
    struct rival bob;
    struct strategy_outcome ann = ann_with_bob_inside("naive", settings, &bob);
    assert_int_equal(ann.verdict, STRATEGY_WON);
    assert_int_equal(bob.outcome.verdict, STRATEGY_WON);
    assert_string_equal(ask(OWNER), "ann");
}

static void a_changed_version_makes_optimistic_read_again_and_lose(void **state)
{
    (void)state;
    struct rival bob;
    struct strategy_settings with = settings;
    with.retry_pause_ms = 1;
    struct strategy_outcome ann = ann_with_bob_inside("optimistic", with, &bob);
    assert_int_equal(ann.verdict, STRATEGY_LOST);
    assert_int_equal(bob.outcome.verdict, STRATEGY_WON);
    assert_string_equal(ask(OWNER), "bob");
    assert_int_equal(ann.sql_trips, 5); /* SELECT, BEGIN, UPDATE, ROLLBACK, SELECT */
}

static void a_protected_window_refuses_the_rival(void **state)
{
    (void)state;
    static const char *const names[] = {"redis-lease", "two-layer", "skip-locked", "counter"};
    struct strategy_settings with = settings;
    with.retry_pause_ms = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct rival bob;
        struct strategy_outcome ann = ann_with_bob_inside(names[i], with, &bob);
        assert_int_equal(ann.verdict, STRATEGY_WON);
        assert_int_equal(bob.outcome.verdict, STRATEGY_LOST);
        assert_string_equal(ask(OWNER), "ann");
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

/* Returns when Bob's backend waits for Ann's row. */
static void rival_comes_and_waits(void *ctx)
{
    struct waiting_rival *w = ctx;
    assert_int_equal(pthread_create(&w->thread, NULL, rival_thread, &w->rival), 0);
    for (int i = 0; i < 1000; i++) {
        if (strcmp(ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                       " AND $1::text IS NOT NULL"),
                   "1") == 0)
            return;
        usleep(5000);
    }
    fail_msg("nobody waits");
}

static void pessimistic_makes_the_rival_wait_and_then_lose(void **state)
{
    (void)state;
    const struct strategy *s = strategy_find("pessimistic");
    stage(1);
    struct waiting_rival bob = {.rival = {.strategy = s, .desk = desk(s, &settings)}};
    struct strategy_settings with = settings;
    with.window = rival_comes_and_waits;
    with.window_ctx = &bob;
    struct desk *d = desk(s, &with);
    struct strategy_outcome ann = buy(s, d, "ann");
    pthread_join(bob.thread, NULL);
    s->close(d);
    s->close(bob.rival.desk);
    assert_int_equal(ann.verdict, STRATEGY_WON);
    assert_int_equal(bob.rival.outcome.verdict, STRATEGY_LOST);
    assert_string_equal(ask(OWNER), "ann");
}

/* Ann is paused until her lock has expired. */
static void rival_buys_after_the_lease(void *ctx)
{
    char command[64];
    snprintf(command, sizeof command, "EXISTS lock:%s:S-A-1", event);
    for (int i = 0; redis_number(command) != 0; i++)
        assert_true(i < 1000);
    rival_buys(ctx);
}

static void a_redis_lease_that_expires_sells_twice(void **state)
{
    (void)state;
    const struct strategy *s = strategy_find("redis-lease");
    assert_non_null(s->unless);
    stage(1);
    struct rival bob = {.strategy = s, .desk = desk(s, &settings)};
    struct strategy_settings with = settings;
    with.lease_ms = 50;
    with.window = rival_buys_after_the_lease;
    with.window_ctx = &bob;
    struct desk *d = desk(s, &with);
    struct strategy_outcome ann = buy(s, d, "ann");
    s->close(d);
    s->close(bob.desk);
    assert_int_equal(ann.verdict, STRATEGY_WON);
    assert_int_equal(bob.outcome.verdict, STRATEGY_WON);
}

/* ---- several seats ---- */

static void many_seats_are_won_together_or_not_at_all(void **state)
{
    (void)state;
    static const char *const three[] = {"S-A-3", "S-A-1", "S-A-2"};
    static const char *const overlapping[] = {"S-A-3", "S-A-4"};
    struct strategy_settings with = settings;
    with.retry_pause_ms = 1;
    for (const struct strategy *const *s = strategies; *s; s++) {
        stage(4);
        struct desk *d = desk(*s, &with);
        assert_int_equal(buy_n(*s, d, "ann", three, 3).verdict, STRATEGY_WON);
        assert_string_equal(ask(HELD_SEATS), "3");
        assert_int_equal(buy_n(*s, d, "bob", overlapping, 2).verdict, STRATEGY_LOST);
        assert_string_equal(ask(HELD_SEATS), "3");
        /* The seats that Bob touched are free again. */
        assert_int_equal(buy_n(*s, d, "cid", overlapping + 1, 1).verdict, STRATEGY_WON);
        assert_string_equal(ask(HELD_SEATS), "4");
        (*s)->close(d);
    }
}

/* ---- layers that disagree ---- */

static void two_layer_deletes_its_keys_when_the_row_refuses(void **state)
{
    (void)state;
    const struct strategy *s = strategy_find("two-layer");
    struct desk *d = desk(s, &settings);
    char command[64];
    stage(1);
    ask("UPDATE seats SET status = 'BOOKED' WHERE event = $1");
    assert_int_equal(buy(s, d, "ann").verdict, STRATEGY_LOST);
    snprintf(command, sizeof command, "EXISTS seat:%s:S-A-1", event);
    assert_int_equal(redis_number(command), 0);
    s->close(d);
}

static void counter_adds_back_what_it_could_not_sell(void **state)
{
    (void)state;
    static const char *const five[] = {"1", "2", "3", "4", "5"};
    const struct strategy *s = strategy_find("counter");
    struct desk *d = desk(s, &settings);
    char command[64];
    stage(3);
    snprintf(command, sizeof command, "GET stock:%s", event);
    assert_int_equal(buy_n(s, d, "ann", five, 5).verdict, STRATEGY_LOST);
    assert_int_equal(redis_number(command), 3);
    ask("UPDATE seats SET status = 'BOOKED' WHERE event = $1 AND id <> 'S-A-1'");
    assert_int_equal(buy_n(s, d, "bob", five, 2).verdict, STRATEGY_LOST);
    assert_int_equal(redis_number(command), 3);
    assert_int_equal(buy_n(s, d, "cid", five, 1).verdict, STRATEGY_WON);
    assert_int_equal(redis_number(command), 2);
    s->close(d);
}

/* ---- counters and failures ---- */

static void trips_and_commits_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned won_sql, won_commits, won_redis, lost_sql, lost_commits, lost_redis;
    } expected[] = {
        {"naive", 2, 2, 0, 1, 1, 0},       {"pessimistic", 4, 1, 0, 3, 0, 0},
        {"optimistic", 4, 2, 0, 1, 1, 0},  {"unique", 1, 1, 0, 1, 0, 0},
        {"redis-lease", 4, 1, 2, 3, 0, 2}, {"two-layer", 1, 1, 1, 0, 0, 1},
        {"skip-locked", 4, 1, 0, 3, 0, 0}, {"counter", 3, 1, 1, 0, 0, 2},
        {"queue", 4, 1, 0, 3, 0, 0},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct strategy *s = strategy_find(expected[i].name);
        struct desk *d = desk(s, &settings);
        stage(1);
        struct strategy_outcome won = buy(s, d, "ann"), lost = buy(s, d, "bob");
        assert_int_equal(won.verdict, STRATEGY_WON);
        assert_int_equal(won.sql_trips, expected[i].won_sql);
        assert_int_equal(won.commits, expected[i].won_commits);
        assert_int_equal(won.redis_trips, expected[i].won_redis);
        assert_int_equal(lost.verdict, STRATEGY_LOST);
        assert_int_equal(lost.sql_trips, expected[i].lost_sql);
        assert_int_equal(lost.commits, expected[i].lost_commits);
        assert_int_equal(lost.redis_trips, expected[i].lost_redis);
        s->close(d);
    }
}

static void a_broken_connection_is_an_error_and_the_next_attempt_reconnects(void **state)
{
    (void)state;
    for (const struct strategy *const *s = strategies; *s; s++) {
        struct desk *d = desk(*s, &settings);
        stage(1);
        ask("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            " AND $1::text IS NOT NULL");
        struct strategy_outcome outcome = buy(*s, d, "ann");
        assert_int_equal(outcome.verdict, STRATEGY_ERROR);
        assert_true(outcome.why[0] != '\0');
        assert_int_equal(buy(*s, d, "ann").verdict, STRATEGY_WON);
        (*s)->close(d);
    }
}

static void an_unreachable_server_fails_at_open(void **state)
{
    (void)state;
    struct strategy_settings with = settings;
    struct desk *d = NULL;
    struct hf_err err;
    const struct strategy *s = strategy_find("two-layer");
    with.postgres = "host=/nonexistent";
    assert_false(s->open(s, &with, &d, &err));
    assert_memory_equal(err.msg, "PostgreSQL", 10);
    with = settings;
    with.redis = "unix:/nonexistent";
    assert_false(s->open(s, &with, &d, &err));
    assert_memory_equal(err.msg, "Redis", 5);
    assert_null(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_fifty_buyers_of_one_seat_exactly_one_wins),
        cmocka_unit_test(naive_sells_the_seat_to_both),
        cmocka_unit_test(a_changed_version_makes_optimistic_read_again_and_lose),
        cmocka_unit_test(a_protected_window_refuses_the_rival),
        cmocka_unit_test(pessimistic_makes_the_rival_wait_and_then_lose),
        cmocka_unit_test(a_redis_lease_that_expires_sells_twice),
        cmocka_unit_test(many_seats_are_won_together_or_not_at_all),
        cmocka_unit_test(two_layer_deletes_its_keys_when_the_row_refuses),
        cmocka_unit_test(counter_adds_back_what_it_could_not_sell),
        cmocka_unit_test(trips_and_commits_are_counted),
        cmocka_unit_test(a_broken_connection_is_an_error_and_the_next_attempt_reconnects),
        cmocka_unit_test(an_unreachable_server_fails_at_open),
    };
    return cmocka_run_group_tests_name("lab", tests, start_servers, stop_servers);
}
