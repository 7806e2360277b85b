/* See chores.h. */
#include "engine/chores.h"

#include "base/log.h"
#include "engine/engine_internal.h"
#include "engine/worker.h"

#define SLICE_EVERY_US 10000
#define PAUSE_FACTOR 4        /* the pause after a slice, in times of what it took */
#define RETRY_AFTER_US 500000 /* of a slice that failed */
#define TRIES_MAX 10
#define LOOK_EVERY_MS 60000 /* for something to prune; sooner if it is kept for less */

static int64_t monotonic_us(const struct worker *w)
{
    return clock_monotonic_us(w->engine->config.clock);
}

static void begin_erasure(struct worker *w)
{
    const struct command *c = w->chores.erasures;
    w->chores.tries = 0;
    w->chores.erasure = (struct erasure){.owner = c->owner_erase.owner,
                                         .owner_len = c->owner_erase.owner_len,
                                         .rewrite = w->engine->config.texts.erase};
}

void chores_add(struct worker *w, struct command *c)
{
    struct command **last = &w->chores.erasures;
    while (*last)
        last = &(*last)->next;
    *last = c;
    c->next = NULL;
    if (w->chores.erasures == c)
        begin_erasure(w);
}

/* Takes the first erasure off the list and begins with the next. */
static struct command *end_erasure(struct worker *w)
{
    struct command *c = w->chores.erasures;
    struct erasure *x = &w->chores.erasure;
    c->owner_erase.holds = (int64_t)x->holds.n;
    c->owner_erase.bookings = x->bookings;
    c->owner_erase.answers = x->answers;
    vec_close(&x->holds);
    w->chores.erasures = c->next;
    c->next = NULL;
    if (w->chores.erasures)
        begin_erasure(w);
    return c;
}

/* A command whose erasure is done goes through the next batch, which stores its answer. */
static void erase(struct worker *w)
{
    struct hf_err err = {0};
    struct erasure *x = &w->chores.erasure;
    if (!x->done && ledger_erase_slice(w->ledger, x, &err) != HF_OK) {
        w->chores.next_slice_us = monotonic_us(w) + RETRY_AFTER_US;
        if (++w->chores.tries < TRIES_MAX)
            return;
        struct command *c = end_erasure(w);
        c->err = err;
        c->verdict = VERDICT_STORE_UNAVAILABLE;
        engine_finish(c);
        return;
    }
    w->chores.tries = 0;
    if (x->done && w->n_deferred + w->n_late < w->engine->config.batch_len_max) {
        struct command *c = end_erasure(w);
        c->owner_erase.done = true;
        w->late[w->n_late++] = c;
    }
}

/* ---- pruning ---- */

static int64_t keep_before(const struct worker *w, int64_t keep_ms)
{
    return keep_ms ? engine_now_ms(w->engine) - keep_ms : PRUNE_NEVER;
}

static struct prune_limits limits(const struct worker *w)
{
    const struct engine_config *config = &w->engine->config;
    return (struct prune_limits){.log_before = keep_before(w, config->keep_ms),
                                 .holds_before = keep_before(w, config->keep_holds_ms)};
}

/* How long after a round over all events the next one begins; 0: never. */
static int64_t look_every_ms(const struct worker *w)
{
    int64_t keep_ms = w->engine->config.keep_ms, holds_ms = w->engine->config.keep_holds_ms;
    int64_t shorter_ms = keep_ms && (!holds_ms || keep_ms < holds_ms) ? keep_ms : holds_ms;
    return shorter_ms < LOOK_EVERY_MS ? shorter_ms : LOOK_EVERY_MS;
}

static void prune(struct worker *w)
{
    struct hf_err err = {0};
    struct prune *p = &w->chores.prune;
    const struct prune_limits old = limits(w);
    int64_t event = p->event, n_holds = p->n_holds;
    if (ledger_prune_slice(w->ledger, &old, p, &err) != HF_OK) {
        log_write(LOG_WARN, "an event could not be pruned", "event", LOG_INT(event), "why", err.msg,
                  NULL);
        p->event = 0; /* it will be found again */
        return;
    }
    counter_add(w->engine->metrics.holds_pruned, (uint64_t)(p->n_holds - n_holds));
    if (!p->event && p->whole)
        log_write(LOG_INFO, "an archived event has been pruned", "event", LOG_INT(event), NULL);
}

/* Is a round over all events under way? */
static bool is_pruning(const struct worker *w)
{
    return w->chores.prune.event || w->chores.prune.after;
}

/* Looks for the next event to prune. */
static void look(struct worker *w)
{
    struct hf_err err = {0};
    struct prune *p = &w->chores.prune;
    const struct prune_limits old = limits(w);
    if (ledger_prune_next(w->ledger, &old, p, &err) != HF_OK) {
        log_write(LOG_WARN, "events could not be looked at, to prune them", "why", err.msg, NULL);
        p->after = 0;
    }
    if (!is_pruning(w))
        w->chores.next_look_us = monotonic_us(w) + look_every_ms(w) * 1000;
}

static bool has_to_look(const struct worker *w)
{
    return w->index == 0 && look_every_ms(w) && monotonic_us(w) >= w->chores.next_look_us;
}

/* A slice that took long is followed by a longer pause, which leaves the worker most of its time.
 */
void chores_turn(struct worker *w)
{
    int64_t begin_us = monotonic_us(w);
    if (begin_us < w->chores.next_slice_us)
        return;
    if (!w->chores.erasures && !is_pruning(w) && !has_to_look(w))
        return;
    if (w->chores.erasures)
        erase(w);
    else if (w->chores.prune.event)
        prune(w);
    else
        look(w);
    int64_t end_us = monotonic_us(w), pause_us = PAUSE_FACTOR * (end_us - begin_us);
    if (w->chores.next_slice_us < end_us) /* unless a slice that failed is to be tried later */
        w->chores.next_slice_us = end_us + (pause_us > SLICE_EVERY_US ? pause_us : SLICE_EVERY_US);
}

int64_t chores_sleep_us(const struct worker *w)
{
    if (!w->chores.erasures && !is_pruning(w))
        return INT64_MAX;
    int64_t wait_us = w->chores.next_slice_us - monotonic_us(w);
    return wait_us > 0 ? wait_us : 0;
}

void chores_stop(struct worker *w)
{
    while (w->chores.erasures) {
        struct command *c = end_erasure(w);
        c->verdict = VERDICT_DRAINING;
        engine_finish(c);
    }
}
