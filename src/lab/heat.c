/* See heat.h.  Each runner has a thread.  Before the start signal it connects and buys a few seats
 * of another event, so that statements are prepared and caches are warm.  After the signal the
 * runners serve users in the order of their numbers: a counter says who is next. */
#include "lab/heat.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/wait.h"
#include "lab/holdfastd.h"
#include "lab/stage.h"

/* PostgreSQL settles on a plan for a prepared statement after five executions. */
#define WARM_UPS 6
/* How long Holdfast is given to finish what it does after it has replied. */
#define QUIET_US 20000

struct heat_answer {
    int64_t us; /* since the start signal */
    enum strategy_verdict verdict;
    unsigned sql_trips, redis_trips, commits, retries;
};

struct heat_run {
    const struct heat_settings *settings;
    char event[STAGE_EVENT_SIZE], warm_event[STAGE_EVENT_SIZE];
    int *wants;                  /* by user: the number of the seat, from 1 */
    struct heat_answer *answers; /* by user */
    pthread_barrier_t ready;     /* all runners are connected and warm */
    pthread_barrier_t go;        /* the start signal */
    int64_t start_us;            /* set between the two barriers */
    atomic_int next;             /* the next user to be served */
    atomic_int done;             /* how many users have been answered */
    pthread_mutex_t lock;        /* for `why`, and for warming up on SQLite */
    char why[256];               /* the first error; "" if there was none */
};

struct heat_worker {
    struct heat_run *heat;
    int number;
    pthread_t thread;
};

/* ---- the runners ---- */

static void record_error(struct heat_run *h, const char *why)
{
    pthread_mutex_lock(&h->lock);
    if (!h->why[0])
        snprintf(h->why, sizeof h->why, "%s", why);
    pthread_mutex_unlock(&h->lock);
}

static void attempt(const struct heat_run *h, struct runner *runner, const char *event, int user,
                    int seat, struct strategy_outcome *ret)
{
    char name[16], seat_name[STAGE_SEAT_SIZE];
    const char *const seats = seat_name;
    snprintf(name, sizeof name, "u%d", user);
    snprintf(seat_name, sizeof seat_name, "S-A-%d", seat);
    strategy_attempt(
        h->settings->strategy, runner,
        &(struct strategy_want){.user = name, .event = event, .seats = &seats, .n_seats = 1}, ret);
}

static void serve(struct heat_run *h, struct runner *runner, int user)
{
    struct strategy_outcome outcome = {.verdict = STRATEGY_ERROR};
    if (runner)
        attempt(h, runner, h->event, user, h->wants[user], &outcome);
    h->answers[user] = (struct heat_answer){.us = clock_monotonic_us(&clock_system) - h->start_us,
                                            .verdict = outcome.verdict,
                                            .sql_trips = outcome.sql_trips,
                                            .redis_trips = outcome.redis_trips,
                                            .commits = outcome.commits,
                                            .retries = outcome.retries};
    if (runner && outcome.verdict == STRATEGY_ERROR)
        record_error(h, outcome.why);
    atomic_fetch_add(&h->done, 1);
}

/* On SQLite one runner at a time warms up, since a connection that finds the file locked sleeps,
 * and it buys one seat only, because SQLite does not change a prepared statement's plan. */
static void warm_up(struct heat_run *h, struct runner *runner, int number)
{
    struct strategy_outcome outcome;
    bool on_sqlite = h->settings->strategy->needs & STRATEGY_NEEDS_SQLITE;
    if (on_sqlite)
        pthread_mutex_lock(&h->lock);
    for (int i = 1; i <= (on_sqlite ? 1 : WARM_UPS); i++)
        attempt(h, runner, h->warm_event, number, number * WARM_UPS + i, &outcome);
    if (on_sqlite)
        pthread_mutex_unlock(&h->lock);
}

static bool stopped(const struct heat_run *h) { return h->settings->stop && *h->settings->stop; }

static void *worker_main(void *arg)
{
    const struct heat_worker *w = arg;
    struct heat_run *h = w->heat;
    const struct strategy *strategy = h->settings->strategy;
    struct strategy_settings with = *h->settings->back_ends;
    struct runner *runner = NULL;
    struct hf_err err = {0};
    with.retries_max = h->settings->retries;
    with.seed = h->settings->seed ? h->settings->seed + (uint64_t)w->number : 0;
    if (strategy->open(strategy, &with, &runner, &err))
        warm_up(h, runner, w->number);
    else
        record_error(h, err.msg);
    pthread_barrier_wait(&h->ready);
    pthread_barrier_wait(&h->go);
    for (int user; (user = atomic_fetch_add(&h->next, 1)) < h->settings->users && !stopped(h);)
        serve(h, runner, user);
    strategy->close(runner);
    return NULL;
}

/* ---- the result ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const struct heat_run *h, enum strategy_verdict verdict,
                    struct race_latency *ret)
{
    double *ms = hf_alloc((size_t)h->settings->users * sizeof *ms), sum = 0;
    size_t n = 0;
    for (int i = 0; i < h->settings->users; i++)
        if (h->answers[i].verdict == verdict) {
            ms[n] = (double)h->answers[i].us / 1000;
            sum += ms[n++];
        }
    *ret = (struct race_latency){.n = n};
    if (n) {
        qsort(ms, n, sizeof *ms, by_value);
        for (size_t i = 0; i < RACE_QUANTILES; i++)
            ret->quantiles_ms[i] = ms[(i * (n - 1) + 50) / 100];
        ret->avg_ms = sum / (double)n;
        ret->p50_ms = ret->quantiles_ms[50];
        ret->p99_ms = ret->quantiles_ms[99];
    }
    free(ms);
}

/* The sales that the database has. */
struct heat_table {
    int *users;     /* by seat: who has it; -1 if it was not sold */
    int *sales_of;  /* by user: how many seats it has */
    int sold;       /* seats that were sold */
    int sold_again; /* sales of a seat beyond its first */
    int unknown;    /* rows that name no seat or user of this heat */
};

static void read_table(const struct heat_run *h, const struct stage_sales *sales,
                       struct heat_table *t)
{
    const struct heat_settings *s = h->settings;
    t->users = hf_alloc((size_t)(s->seats + 1) * sizeof *t->users);
    t->sales_of = hf_alloc((size_t)s->users * sizeof *t->sales_of);
    for (int i = 0; i <= s->seats; i++)
        t->users[i] = -1;
    for (size_t i = 0; i < sales->n; i++) {
        int seat, user;
        bool known = sscanf(sales->rows[i].seat, "S-A-%d", &seat) == 1 && seat >= 1 &&
                     seat <= s->seats && sscanf(sales->rows[i].holder, "u%d", &user) == 1 &&
                     user >= 0 && user < s->users;
        if (!known) {
            t->unknown++;
            continue;
        }
        t->sold += t->users[seat] < 0;
        t->sold_again += t->users[seat] >= 0;
        t->users[seat] = user;
        t->sales_of[user]++;
    }
}

static void judge(const struct heat_run *h, const struct heat_table *t, struct race_run *ret)
{
    const struct heat_settings *s = h->settings;
    int given = 0, to_losers = 0;
    for (int i = 0; i < s->users; i++) {
        bool has = s->strategy->chooses ? t->sales_of[i] > 0 : t->users[h->wants[i]] == i;
        given += has && h->answers[i].verdict == STRATEGY_WON;
        to_losers += has && h->answers[i].verdict == STRATEGY_LOST;
    }
    int wanted = s->users < s->seats ? s->users : s->seats, unsold = wanted - t->sold;
    ret->double_sold = ret->winners - given + t->sold_again;
    if (to_losers + t->unknown > 0)
        snprintf(ret->why, sizeof ret->why, "%d seats belong to buyers who were refused",
                 to_losers + t->unknown);
    else if (unsold > 0 && !ret->why[0])
        snprintf(ret->why, sizeof ret->why, "%d seats that buyers wanted were not sold", unsold);
    bool good = !ret->double_sold && !to_losers && !t->unknown && unsold <= 0;
    if (s->strategy->correct)
        ret->verdict = good ? RACE_CORRECT : RACE_BROKEN;
    else
        ret->verdict = ret->double_sold ? RACE_CAUGHT : RACE_NOT_CAUGHT;
}

static void sum_up(const struct heat_run *h, const struct holdfastd_costs *costs,
                   struct race_run *ret)
{
    const struct heat_settings *s = h->settings;
    double trips = 0, gate_trips = 0, commits = 0, users = s->users;
    int64_t last_us = 1;
    *ret = (struct race_run){
        .strategy = s->strategy, .users = s->users, .seats = s->seats, .tries = 1};
    for (int i = 0; i < s->users; i++) {
        const struct heat_answer *a = &h->answers[i];
        ret->winners += a->verdict == STRATEGY_WON;
        ret->errors += a->verdict == STRATEGY_ERROR;
        ret->refused_at_once += a->verdict == STRATEGY_LOST && a->retries == 0;
        trips += a->sql_trips;
        gate_trips += a->redis_trips;
        commits += a->commits;
        if (a->us > last_us)
            last_us = a->us;
    }
    bool is_holdfast = s->strategy->needs & STRATEGY_NEEDS_SERVER;
    ret->several = s->strategy->several && s->back_ends->postgres;
    ret->seconds = (double)last_us / 1e6;
    ret->throughput = (users - ret->errors) / ret->seconds;
    ret->round_trips_per_request = (is_holdfast ? costs->sql_trips : trips) / users;
    ret->gate_trips_per_request = (is_holdfast ? costs->gate_trips : gate_trips) / users;
    ret->commits_per_request = (is_holdfast ? costs->commits : commits) / users;
    snprintf(ret->why, sizeof ret->why, "%s", h->why);
    measure(h, STRATEGY_WON, &ret->winners_ms);
    measure(h, STRATEGY_LOST, &ret->losers_ms);
}

/* ---- the heat ---- */

static int runners_of(const struct heat_settings *s)
{
    return s->users < RACE_RUNNERS ? s->users : RACE_RUNNERS;
}

/* Spreads the users evenly over the seats, at random. */
static void draw_wants(struct heat_run *h)
{
    const struct heat_settings *s = h->settings;
    struct random random;
    if (s->seed)
        random_init_seeded(&random, s->seed);
    else
        random_init_system(&random);
    for (int i = 0; i < s->users; i++)
        h->wants[i] = i % s->seats + 1;
    for (int i = s->users - 1; i > 0; i--) {
        int j = (int)random_below(&random, (uint64_t)i + 1), was = h->wants[i];
        h->wants[i] = h->wants[j];
        h->wants[j] = was;
    }
}

/* Only Holdfast is asked for its costs: the runners count for the other strategies. */
static bool read_costs(const struct heat_run *h, struct holdfastd_costs *ret, struct hf_err *err)
{
    *ret = (struct holdfastd_costs){0};
    if (!(h->settings->strategy->needs & STRATEGY_NEEDS_SERVER))
        return true;
    /* Holdfast settles at its gate after it has replied; that work belongs to this heat as well. */
    wait_sleep_us(QUIET_US);
    return holdfastd_costs(h->settings->back_ends->server, ret, err);
}

static void watch(const struct heat_run *h)
{
    const struct heat_settings *s = h->settings;
    for (int ms = 0; atomic_load(&h->done) < s->users && !stopped(h); ms += 10) {
        wait_sleep_us(10000);
        if (s->progress && ms % 100 == 0)
            s->progress(s->ctx, atomic_load(&h->done));
    }
}

/* A thread that cannot be created ends the program, as lack of memory does: the other threads would
 * wait for it at the barrier. */
static void start(struct heat_run *h, struct heat_worker *workers, int n)
{
    for (int i = 0; i < n; i++) {
        workers[i] = (struct heat_worker){.heat = h, .number = i};
        hf_check(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0);
    }
}

static bool run(struct heat_run *h, struct holdfastd_costs *ret, struct hf_err *err)
{
    struct heat_worker workers[RACE_RUNNERS];
    struct holdfastd_costs before, after;
    int n = runners_of(h->settings);
    start(h, workers, n);
    pthread_barrier_wait(&h->ready);
    bool good = read_costs(h, &before, err);
    h->start_us = clock_monotonic_us(&clock_system);
    pthread_barrier_wait(&h->go);
    watch(h);
    for (int i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    good = good && read_costs(h, &after, err);
    if (good)
        *ret = (struct holdfastd_costs){.commits = after.commits - before.commits,
                                        .sql_trips = after.sql_trips - before.sql_trips,
                                        .gate_trips = after.gate_trips - before.gate_trips};
    return good;
}

static bool compare(const struct heat_run *h, struct race_run *ret, struct hf_err *err)
{
    const struct heat_settings *s = h->settings;
    struct stage_sales sales = {0};
    struct heat_table table = {0};
    bool good = stage_sales(s->strategy, s->back_ends, h->event, &sales, err);
    if (good) {
        read_table(h, &sales, &table);
        judge(h, &table, ret);
    }
    free(table.users);
    free(table.sales_of);
    stage_sales_close(&sales);
    return good;
}

enum hf_status heat_run(const struct heat_settings *settings, struct race_run *ret,
                        struct hf_err *err)
{
    struct heat_run h = {.settings = settings, .lock = PTHREAD_MUTEX_INITIALIZER};
    unsigned runners = (unsigned)runners_of(settings);
    struct holdfastd_costs costs;
    struct race_run result;
    enum hf_status status = HF_OK;
    if (!stage_event(settings->strategy, settings->back_ends, settings->seats, h.event, err) ||
        !stage_event(settings->strategy, settings->back_ends, (int)runners * WARM_UPS, h.warm_event,
                     err))
        return err->code;
    h.wants = hf_alloc((size_t)settings->users * sizeof *h.wants);
    h.answers = hf_alloc((size_t)settings->users * sizeof *h.answers);
    pthread_barrier_init(&h.ready, NULL, runners + 1);
    pthread_barrier_init(&h.go, NULL, runners + 1);
    draw_wants(&h);
    bool good = run(&h, &costs, err);
    if (stopped(&h)) {
        status = hf_err_set(err, HF_DRAINING, "stopped");
        goto out;
    }
    if (good) {
        sum_up(&h, &costs, &result);
        good = compare(&h, &result, err);
    }
    if (good)
        *ret = result;
    else
        status = err->code;
out:
    pthread_barrier_destroy(&h.ready);
    pthread_barrier_destroy(&h.go);
    free(h.wants);
    free(h.answers);
    return status;
}
