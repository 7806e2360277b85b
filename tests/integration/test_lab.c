/* The lab's strategies on real servers: fifty buyers of one seat, two buyers step by step, several
 * seats at once, and layers that disagree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/counter.h"
#include "lab/stage.h"
#include "lab/strategy.h"
#include "support/postgres_server.h"
#include "support/process.h"
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
    " + (SELECT count(*) FROM holds WHERE event = $1)"                                             \
    " + (SELECT count(*) FROM tickets WHERE event = $1)"
#define OWNER                                                                                      \
    "SELECT holder FROM seats WHERE event = $1 AND holder IS NOT NULL"                             \
    " UNION SELECT holder FROM holds WHERE event = $1"                                             \
    " UNION SELECT holder FROM tickets WHERE event = $1"

static int redis_number(const char *command)
{
    char answer[64];
    redis_server_ask(&redis, command, answer, sizeof answer);
    return atoi(answer[0] == '$' ? strchr(answer, '\n') + 1 : answer + 1);
}

static struct runner *runner(const struct strategy *s, const struct strategy_settings *with)
{
    struct runner *ret = NULL;
    struct hf_err err;
    if (!s->open(s, with, &ret, &err))
        fail_msg("%s: %s", s->name, err.msg);
    return ret;
}

static struct strategy_outcome buy_n(const struct strategy *s, struct runner *d, const char *user,
                                     const char *const *seats, size_t n)
{
    struct strategy_outcome outcome;
    strategy_attempt(
        s, d, &(struct strategy_want){.user = user, .event = event, .seats = seats, .n_seats = n},
        &outcome);
    return outcome;
}

static struct strategy_outcome buy(const struct strategy *s, struct runner *d, const char *user)
{
    const char *const seat = "S-A-1";
    return buy_n(s, d, user, &seat, 1);
}

/* ---- fifty buyers, one seat ---- */

struct buyer {
    const struct strategy *strategy;
    struct runner *runner;
    pthread_barrier_t *start;
    char user[32];
    struct strategy_outcome outcome;
};

static void *buyer_main(void *arg)
{
    struct buyer *b = arg;
    pthread_barrier_wait(b->start);
    b->outcome = buy(b->strategy, b->runner, b->user);
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
        buyers[i] = (struct buyer){.strategy = s, .runner = runner(s, &settings), .start = &start};
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
        s->close(b->runner);
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
    assert_int_equal(n, 10);
}

/* ---- two buyers, step by step: bob buys while ann is between reading and writing ---- */

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
        r->outcome = buy(r->strategy, r->runner, "bob");
}

static struct strategy_outcome ann_with_bob_inside(const char *name, struct strategy_settings with,
                                                   struct rival *bob)
{
    const struct strategy *s = strategy_find(name);
    stage(1);
    *bob = (struct rival){.strategy = s, .runner = runner(s, &with)};
    with.window = rival_buys;
    with.window_ctx = bob;
    struct runner *d = runner(s, &with);
    struct strategy_outcome ann = buy(s, d, "ann");
    s->close(d);
    s->close(bob->runner);
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

/* Returns when a backend waits for another's row. */
static void await_a_waiting_backend(void)
{
    for (int i = 0; i < 6000; i++) {
        if (strcmp(ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                       " AND $1::text IS NOT NULL"),
                   "1") == 0)
            return;
        usleep(5000);
    }
    fail_msg("nobody waits");
}

static void rival_comes_and_waits(void *ctx)
{
    struct waiting_rival *w = ctx;
    assert_int_equal(pthread_create(&w->thread, NULL, rival_thread, &w->rival), 0);
    await_a_waiting_backend();
}

static void pessimistic_makes_the_rival_wait_and_then_lose(void **state)
{
    (void)state;
    const struct strategy *s = strategy_find("pessimistic");
    stage(1);
    struct waiting_rival bob = {.rival = {.strategy = s, .runner = runner(s, &settings)}};
    struct strategy_settings with = settings;
    with.window = rival_comes_and_waits;
    with.window_ctx = &bob;
    struct runner *d = runner(s, &with);
    struct strategy_outcome ann = buy(s, d, "ann");
    pthread_join(bob.thread, NULL);
    s->close(d);
    s->close(bob.rival.runner);
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
    struct rival bob = {.strategy = s, .runner = runner(s, &settings)};
    struct strategy_settings with = settings;
    with.lease_ms = 50;
    with.window = rival_buys_after_the_lease;
    with.window_ctx = &bob;
    struct runner *d = runner(s, &with);
    struct strategy_outcome ann = buy(s, d, "ann");
    s->close(d);
    s->close(bob.runner);
    assert_int_equal(ann.verdict, STRATEGY_WON);
    assert_int_equal(bob.outcome.verdict, STRATEGY_WON);
}

/* ---- several seats ---- */

/* At a runner of its own: some strategies have written all of a sale only when the runner is
 * closed. */
static enum strategy_verdict buy_and_close(const struct strategy *s,
                                           const struct strategy_settings *with, const char *user,
                                           const char *const *seats, size_t n)
{
    struct runner *d = runner(s, with);
    enum strategy_verdict verdict = buy_n(s, d, user, seats, n).verdict;
    s->close(d);
    return verdict;
}

static void many_seats_are_won_together_or_not_at_all(void **state)
{
    (void)state;
    static const char *const three[] = {"S-A-3", "S-A-1", "S-A-2"};
    static const char *const overlapping[] = {"S-A-3", "S-A-4"};
    struct strategy_settings with = settings;
    with.retry_pause_ms = 1;
    for (const struct strategy *const *s = strategies; *s; s++) {
        stage(4);
        assert_int_equal(buy_and_close(*s, &with, "ann", three, 3), STRATEGY_WON);
        assert_string_equal(ask(HELD_SEATS), "3");
        assert_int_equal(buy_and_close(*s, &with, "bob", overlapping, 2), STRATEGY_LOST);
        assert_string_equal(ask(HELD_SEATS), "3");
        /* The seats that Bob touched are free again. */
        assert_int_equal(buy_and_close(*s, &with, "cid", overlapping + 1, 1), STRATEGY_WON);
        assert_string_equal(ask(HELD_SEATS), "4");
    }
}

static void skip_locked_sells_the_front_row_from_its_middle(void **state)
{
    (void)state;
    static const char *const rows[] = {"A", "B"};
    static const char *const any[] = {"1", "2", "3", "4"};
    const struct strategy *s = strategy_find("skip-locked");
    struct hf_err err;
    stage(5);
    /* The same event gets a second row, behind the first, and a front row that sorts after it. */
    struct stage_section more = {
        .event = event, .section = "Z", .rows = rows, .n_rows = 2, .seats_per_row = 5};
    ask("DELETE FROM seats WHERE event = $1");
    assert_true(stage_seats(&settings, &more, &err));
    assert_int_equal(buy_and_close(s, &settings, "ann", any, 1), STRATEGY_WON);
    assert_string_equal(ask("SELECT id FROM seats WHERE event = $1 AND holder = 'ann'"), "Z-A-3");
    assert_int_equal(buy_and_close(s, &settings, "bob", any, 2), STRATEGY_WON);
    assert_string_equal(ask("SELECT string_agg(id, ' ' ORDER BY id) FROM seats WHERE event = $1 "
                            "AND holder = 'bob'"),
                        "Z-A-2 Z-A-4");
    assert_int_equal(buy_and_close(s, &settings, "cid", any, 3), STRATEGY_WON);
    assert_string_equal(ask("SELECT string_agg(id, ' ' ORDER BY id) FROM seats WHERE event = $1 "
                            "AND holder = 'cid'"),
                        "Z-A-1 Z-A-5 Z-B-3");
}

/* ---- layers that disagree ---- */

static void two_layer_deletes_its_keys_when_the_row_refuses(void **state)
{
    (void)state;
    const struct strategy *s = strategy_find("two-layer");
    struct runner *d = runner(s, &settings);
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
    struct runner *d = runner(s, &settings);
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

/* The row is changed, and available again, between Ann's reading and her writing. */
static void two_layer_refuses_a_version_that_has_changed(void **state)
{
    (void)state;
    const struct strategy *s = strategy_find("two-layer");
    struct rival ann = {.strategy = s, .runner = runner(s, &settings)};
    const char *const parameters[] = {event};
    pthread_t thread;
    stage(1);
    PGconn *pg = PQconnectdb(postgres_url);
    PQclear(PQexec(pg, "BEGIN"));
    PQclear(PQexecParams(pg, "UPDATE seats SET version = version + 1 WHERE event = $1", 1, NULL,
                         parameters, NULL, NULL, 0));
    assert_int_equal(pthread_create(&thread, NULL, rival_thread, &ann), 0);
    await_a_waiting_backend();
    PQclear(PQexec(pg, "COMMIT"));
    PQfinish(pg);
    pthread_join(thread, NULL);
    assert_int_equal(ann.outcome.verdict, STRATEGY_LOST);
    assert_string_equal(ask(HELD_SEATS), "0");
    assert_int_equal(buy(s, ann.runner, "cid").verdict, STRATEGY_WON);
    assert_string_equal(ask("SELECT version FROM seats WHERE event = $1"), "2");
    s->close(ann.runner);
}

static void die_here(void *ctx)
{
    (void)ctx;
    (void)raise(SIGKILL);
}

/* A process of its own promises a place to Ann and is killed before the row is written. */
static void promise_and_die(const struct strategy *s)
{
    pid_t pid = process_fork();
    if (pid == 0) {
        struct strategy_settings with = settings;
        with.window = die_here;
        struct runner *d = runner(s, &with);
        if (buy(s, d, "ann").verdict != STRATEGY_WON)
            _exit(1);
        s->close(d);
        _exit(2); /* the writer's window did not kill it */
    }
    int status;
    assert_true(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

static void a_crash_makes_the_asynchronous_counter_drift_and_counting_repairs_it(void **state)
{
    (void)state;
    const struct strategy *s = strategy_find("counter-async");
    const char *const any = "any";
    struct hf_err err;
    char command[64];
    assert_non_null(s->unless);
    stage(2);
    snprintf(command, sizeof command, "GET stock:%s", event);
    promise_and_die(s);
    assert_int_equal(redis_number(command), 1);
    assert_string_equal(ask(HELD_SEATS), "0"); /* Ann was told yes and has nothing */
    assert_int_equal(buy_and_close(s, &settings, "bob", &any, 1), STRATEGY_WON);
    assert_int_equal(buy_and_close(s, &settings, "cid", &any, 1), STRATEGY_LOST);
    assert_string_equal(ask(HELD_SEATS), "1");
    assert_true(counter_reconcile(&settings, event, &err));
    assert_int_equal(redis_number(command), 1);
    assert_int_equal(buy_and_close(s, &settings, "cid", &any, 1), STRATEGY_WON);
    assert_string_equal(ask(HELD_SEATS), "2");
}

/* ---- several servers: processes that share nothing but the databases ---- */

#define PROCESSES 2
#define BUYERS_EACH 8

struct together {
    pthread_barrier_t start;
    int won[PROCESSES];
};

static void sell_as_process(const struct strategy *s, struct together *t, int number)
{
    static struct buyer buyers[BUYERS_EACH];
    pthread_t threads[BUYERS_EACH];
    for (int i = 0; i < BUYERS_EACH; i++) {
        buyers[i] =
            (struct buyer){.strategy = s, .runner = runner(s, &settings), .start = &t->start};
        snprintf(buyers[i].user, sizeof buyers[i].user, "buyer%d-%d", number, i);
        if (pthread_create(&threads[i], NULL, buyer_main, &buyers[i]) != 0)
            _exit(1);
    }
    for (int i = 0; i < BUYERS_EACH; i++) {
        pthread_join(threads[i], NULL);
        t->won[number] += buyers[i].outcome.verdict == STRATEGY_WON;
        s->close(buyers[i].runner);
    }
}

static int winners_of_processes(const struct strategy *s)
{
    struct together *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    pid_t pids[PROCESSES];
    assert_true(t != MAP_FAILED);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&t->start, &shared, PROCESSES * BUYERS_EACH);
    stage(1);
    for (int i = 0; i < PROCESSES; i++)
        if ((pids[i] = process_fork()) == 0) {
            sell_as_process(s, t, i);
            _exit(0);
        }
    int winners = 0;
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_true(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
        winners += t->won[i];
    }
    pthread_barrier_destroy(&t->start);
    munmap(t, sizeof *t);
    return winners;
}

static void several_servers_sell_a_seat_once_where_a_strategy_says_so(void **state)
{
    (void)state;
    int n = 0;
    for (const struct strategy *const *s = strategies; *s; s++)
        if ((*s)->several) {
            int winners = winners_of_processes(*s);
            if (winners != 1)
                fail_msg("%s: %d won", (*s)->name, winners);
            assert_string_equal(ask(HELD_SEATS), "1");
            n++;
        }
    assert_int_equal(n, 9);
}

/* Another process, which buys for Bob by the same strategy when it is told to. */
struct rival_process {
    pid_t pid;
    int go[2];
    bool has_won;
};

static void rival_process_start(struct rival_process *r, const struct strategy *s)
{
    assert_int_equal(pipe(r->go), 0);
    r->pid = process_fork();
    if (r->pid == 0) {
        char byte;
        struct runner *d = runner(s, &settings);
        bool won = read(r->go[0], &byte, 1) == 1 && buy(s, d, "bob").verdict == STRATEGY_WON;
        _exit(won ? 0 : 1);
    }
}

static void rival_process_buys(void *ctx)
{
    struct rival_process *r = ctx;
    int status;
    assert_int_equal(write(r->go[1], "", 1), 1);
    assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    r->has_won = status == 0;
    (void)close(r->go[0]);
    (void)close(r->go[1]);
}

static void a_queue_in_a_second_process_sells_the_seat_again(void **state)
{
    (void)state;
    const struct strategy *s = strategy_find("queue");
    struct rival_process bob = {0};
    struct strategy_settings with = settings;
    assert_false(s->several);
    stage(1);
    rival_process_start(&bob, s);
    with.window = rival_process_buys; /* while Ann is at the head of the line of this process */
    with.window_ctx = &bob;
    struct runner *d = runner(s, &with);
    assert_int_equal(buy(s, d, "ann").verdict, STRATEGY_WON);
    s->close(d);
    assert_true(bob.has_won);
}

/* ---- counters and failures ---- */

static void fail_fast_refuses_without_a_retry(void **state)
{
    (void)state;
    static const char *const names[] = {"redis-lease", "optimistic"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct strategy_settings with = settings;
        struct rival bob;
        assert_true(strategy_find(names[i])->retries);
        with.retries_max = 0;
        struct strategy_outcome ann = ann_with_bob_inside(names[i], with, &bob);
        const struct strategy_outcome *loser = ann.verdict == STRATEGY_LOST ? &ann : &bob.outcome;
        assert_int_equal(loser->verdict, STRATEGY_LOST);
        assert_int_equal(loser->retries, 0);
        with.retries_max = 2;
        with.retry_pause_ms = 1;
        ann = ann_with_bob_inside(names[i], with, &bob);
        loser = ann.verdict == STRATEGY_LOST ? &ann : &bob.outcome;
        assert_true(loser->retries > 0);
    }
}

static void trips_and_commits_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned won_sql, won_commits, won_redis, lost_sql, lost_commits, lost_redis;
    } expected[] = {
        {"naive", 2, 2, 0, 1, 1, 0},         {"pessimistic", 4, 1, 0, 3, 0, 0},
        {"optimistic", 4, 2, 0, 1, 1, 0},    {"unique", 1, 1, 0, 1, 0, 0},
        {"redis-lease", 4, 1, 2, 3, 0, 2},   {"two-layer", 1, 1, 1, 0, 0, 1},
        {"skip-locked", 4, 1, 0, 3, 0, 0},   {"counter", 3, 1, 1, 0, 0, 2},
        {"queue", 4, 1, 0, 3, 0, 0},         {"inventory", 1, 1, 0, 1, 1, 0},
        {"counter-async", 0, 0, 1, 0, 0, 2},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct strategy *s = strategy_find(expected[i].name);
        struct runner *d = runner(s, &settings);
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
        if ((*s)->tells_first)
            continue; /* an attempt does not use the connection */
        struct runner *d = runner(*s, &settings);
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
    struct runner *d = NULL;
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
        cmocka_unit_test(skip_locked_sells_the_front_row_from_its_middle),
        cmocka_unit_test(two_layer_deletes_its_keys_when_the_row_refuses),
        cmocka_unit_test(two_layer_refuses_a_version_that_has_changed),
        cmocka_unit_test(counter_adds_back_what_it_could_not_sell),
        cmocka_unit_test(a_crash_makes_the_asynchronous_counter_drift_and_counting_repairs_it),
        cmocka_unit_test(several_servers_sell_a_seat_once_where_a_strategy_says_so),
        cmocka_unit_test(a_queue_in_a_second_process_sells_the_seat_again),
        cmocka_unit_test(fail_fast_refuses_without_a_retry),
        cmocka_unit_test(trips_and_commits_are_counted),
        cmocka_unit_test(a_broken_connection_is_an_error_and_the_next_attempt_reconnects),
        cmocka_unit_test(an_unreachable_server_fails_at_open),
    };
    return cmocka_run_group_tests_name("lab", tests, start_servers, stop_servers);
}
