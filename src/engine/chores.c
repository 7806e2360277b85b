/* See chores.h. */
#include "engine/chores.h"

#include "base/log.h"
#include "engine/state.h"
#include "engine/worker.h"

#define SLICE_EVERY_US 10000
#define RETRY_AFTER_US 500000 /* of a slice that failed */
#define TRIES_MAX 10
#define LOOK_EVERY_MS 60000 /* for archived events to prune; sooner if they are kept for less */

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
                                         .rewrite = w->engine->config.erase_answer};
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
        c->verdict = VERDICT_LEDGER_UNAVAILABLE;
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

static void prune(struct worker *w)
{
    struct hf_err err = {0};
    int64_t cutoff = engine_now_ms(w->engine) - w->engine->config.keep_ms;
    int64_t event = w->chores.prune.event;
    if (ledger_prune_slice(w->ledger, cutoff, &w->chores.prune, &err) != HF_OK) {
        log_write(LOG_WARN, "an archived event could not be pruned", "event", LOG_INT(event), "why",
                  err.msg, NULL);
        w->chores.prune.event = 0; /* it will be found again */
    } else if (!w->chores.prune.event) {
        log_write(LOG_INFO, "an archived event has been pruned", "event", LOG_INT(event), NULL);
        w->chores.next_look_us = 0; /* there may be more */
    }
}

/* Looks for an archived event to prune. */
static void look(struct worker *w)
{
    struct hf_err err = {0};
    int64_t keep_ms = w->engine->config.keep_ms;
    if (w->index || !keep_ms || w->chores.prune.event || monotonic_us(w) < w->chores.next_look_us)
        return;
    w->chores.next_look_us =
        monotonic_us(w) + (keep_ms < LOOK_EVERY_MS ? keep_ms : LOOK_EVERY_MS) * 1000;
    if (ledger_prune_next(w->ledger, engine_now_ms(w->engine) - keep_ms, &w->chores.prune, &err) !=
        HF_OK)
        log_write(LOG_WARN, "archived events could not be looked for", "why", err.msg, NULL);
}

void chores_turn(struct worker *w)
{
    look(w);
    if (monotonic_us(w) < w->chores.next_slice_us)
        return;
    if (!w->chores.erasures && !w->chores.prune.event)
        return;
    w->chores.next_slice_us = monotonic_us(w) + SLICE_EVERY_US;
    if (w->chores.erasures)
        erase(w);
    else
        prune(w);
}

int64_t chores_sleep_us(const struct worker *w)
{
    if (!w->chores.erasures && !w->chores.prune.event)
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
