/* Counter with an asynchronous write: as counter.c, but a buyer is told yes as soon as Redis has
 * counted, and a writer takes the rows later from a list in the memory of this process.  Winners
 * do not wait for the database.
 *
 * If the process dies, the list dies with it: buyers who were told yes have no rows, and the
 * counter differs from the rows until counter_reconcile repairs it.  Nobody repairs the promise.
 *
 * The list and its writer belong to the process; the counter bounds the list.  The writer lives
 * while at least one runner is open, and the last runner to close waits until everything is
 * written; no runner may be opened meanwhile.  settings.window is called by the writer, between the
 * promise and the row. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/counter.h"
#include "lab/runner.h"

struct sale {
    char user[32], event[64], n[16];
    struct sale *next;
};

static struct writer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    unsigned runners; /* how many are open */
    struct runner *runner;
    struct sale *first, **end;
    bool ends; /* no runner is left */
} writer = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- the writer ---- */

static void write_sale(struct runner *r, const struct sale *sale)
{
    struct strategy_outcome outcome;
    static const char *const any = "any";
    const struct strategy_want want = {
        .user = sale->user, .event = sale->event, .seats = &any, .n_seats = 1};
    if (!runner_begin(r, &want, &outcome))
        return;
    runner_window(r);
    (void)runner_change(r,
                        "WITH free AS (SELECT id FROM seats"
                        "  WHERE event = $1 AND status = 'AVAILABLE'"
                        "  LIMIT $2::int FOR UPDATE SKIP LOCKED)"
                        " UPDATE seats SET status = 'HELD', holder = $3,"
                        " held_until = now() + $4::int * interval '1 second'"
                        " FROM free WHERE seats.event = $1 AND seats.id = free.id",
                        sale->event, sale->n, sale->user, r->hold_s, NULL);
}

/* Takes the next sale from the list; NULL if the writer is to end. */
static struct sale *next_sale(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->first && !w->ends)
        pthread_cond_wait(&w->changed, &w->lock);
    struct sale *sale = w->first;
    if (sale)
        w->first = sale->next;
    if (!w->first)
        w->end = &w->first;
    pthread_mutex_unlock(&w->lock);
    return sale;
}

static void *writer_main(void *arg)
{
    struct writer *w = arg;
    for (struct sale *sale; (sale = next_sale(w));) {
        write_sale(w->runner, sale);
        free(sale);
    }
    return NULL;
}

/* ---- runners ---- */

/* The caller has the lock. */
static bool start_writer(struct writer *w, const struct strategy_settings *settings,
                         struct hf_err *err)
{
    if (!runner_open(&strategy_counter, settings, &w->runner, err))
        return false;
    w->ends = false;
    w->first = NULL;
    w->end = &w->first;
    hf_check(pthread_create(&w->thread, NULL, writer_main, w) == 0);
    return true;
}

static bool open_async(const struct strategy *strategy, const struct strategy_settings *settings,
                       struct runner **ret, struct hf_err *err)
{
    struct runner *r;
    if (!runner_open(strategy, settings, &r, err))
        return false;
    pthread_mutex_lock(&writer.lock);
    bool good = writer.runners > 0 || start_writer(&writer, settings, err);
    writer.runners += good;
    pthread_mutex_unlock(&writer.lock);
    if (good)
        *ret = r;
    else
        runner_close(r);
    return good;
}

static void close_async(struct runner *r)
{
    if (!r)
        return;
    runner_close(r);
    pthread_mutex_lock(&writer.lock);
    bool is_last = --writer.runners == 0;
    writer.ends = is_last;
    pthread_cond_signal(&writer.changed);
    pthread_mutex_unlock(&writer.lock);
    if (!is_last)
        return;
    pthread_join(writer.thread, NULL);
    runner_close(writer.runner);
}

static void promise(const struct strategy_want *want)
{
    struct sale *sale = hf_alloc(sizeof *sale);
    snprintf(sale->user, sizeof sale->user, "%s", want->user);
    snprintf(sale->event, sizeof sale->event, "%s", want->event);
    snprintf(sale->n, sizeof sale->n, "%zu", want->n_seats);
    pthread_mutex_lock(&writer.lock);
    *writer.end = sale;
    writer.end = &sale->next;
    pthread_cond_signal(&writer.changed);
    pthread_mutex_unlock(&writer.lock);
}

static bool attempt(struct runner *r, const struct strategy_want *want)
{
    long long left = runner_redis_number(r, "DECRBY stock:%s %d", want->event, (int)want->n_seats);
    if (runner_failed(r))
        return false;
    if (left >= 0) {
        promise(want);
        return true;
    }
    (void)runner_redis_number(r, "INCRBY stock:%s %d", want->event, (int)want->n_seats);
    return false;
}

const struct strategy strategy_counter_async = {
    .name = "counter-async",
    .summary = "Counts places down in Redis, tells the buyer, and takes rows later from a list.",
    .correct = true,
    .unless = "the process dies before it has written what it promised",
    .several = true,
    .tells_first = true,
    .needs = STRATEGY_NEEDS_POSTGRES | STRATEGY_NEEDS_REDIS,
    .chooses = true,
    .open = open_async,
    .attempt = attempt,
    .close = close_async,
};
