/* A worker's thread: takes what is queued as one batch, lets events in that were loaded, follows
 * what other servers did, and sweeps now and then.  Owns its writing connection and its side of the
 * view. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/internal.h"

static int64_t monotonic_us(const struct engine *e) { return clock_monotonic_us(e->config.clock); }

void worker_note_holds(struct worker *w)
{
    const struct hold *first = view_first_due(w->view);
    int64_t n = (int64_t)view_holds_len(w->view);
    atomic_store_explicit(&w->first_due_ms, first ? first->expires_at : INT64_MAX,
                          memory_order_relaxed);
    gauge_add(w->engine->metrics.holds_active, n - w->holds_shown);
    w->holds_shown = n;
}

/* ---- does the ledger answer? ---- */

void worker_failed(struct worker *w, const char *why)
{
    struct engine *e = w->engine;
    size_t len = strnlen(why, sizeof e->why - 1);
    if (w->failing)
        return;
    pthread_mutex_lock(&e->lock);
    memcpy(e->why, why, len);
    e->why[len] = '\0';
    pthread_mutex_unlock(&e->lock);
    w->failing = true;
    atomic_fetch_add(&e->n_failing, 1);
}

void worker_succeeded(struct worker *w)
{
    if (!w->failing)
        return;
    w->failing = false;
    if (atomic_fetch_sub(&w->engine->n_failing, 1) == 1)
        log_write(LOG_INFO, "the ledger answers again", NULL);
}

/* ---- events come in ---- */

/* Loaded events enter the view here, then their commands are done.  A list goes through the workers
 * in turn, each of which takes its own. */
static void install(struct worker *w, struct command *c)
{
    struct engine *e = w->engine;
    if (c->kind == CMD_EVENT_LOAD && c->event)
        c->event = view_install(w->view, c->event);
    for (size_t i = 0; c->kind == CMD_EVENT_LIST && i < c->list->n; i++)
        if (engine_worker(e, c->list->events[i]->def->id.key) == w)
            c->list->events[i] = view_install(w->view, c->list->events[i]);
    worker_note_holds(w);
    if (c->kind == CMD_EVENT_LIST && w->index + 1 < e->n_workers)
        hf_check(lane_pass(&e->workers[w->index + 1].work, c));
    else
        engine_finish(e, c);
}

/* ---- following other servers ---- */

/* Events that somebody else has changed, outside any batch.  Those that do not follow on are loaded
 * again by the next batch that names them, or here, under the lock. */
static void follow(struct worker *w, struct event *const *events, size_t n)
{
    struct hf_err err = {0};
    int64_t before_ms = engine_now_ms(w->engine);
    batch_read_clear(&w->read);
    for (size_t i = 0; i < n; i++) {
        atomic_store(&events[i]->following, false);
        *vec_push(&w->read.clocks) = events[i]->clock;
    }
    if (!n || ledger_follow(w->ledger, &w->read, &err) != HF_OK)
        return; /* the next poll asks again */
    for (size_t i = 0; i < n; i++) {
        events[i]->stale |= !catch_up(w->view, events[i], &w->read.since);
        if (!events[i]->stale)
            atomic_store_explicit(&events[i]->confirmed_ms, before_ms, memory_order_relaxed);
    }
    worker_note_holds(w);
}

static void reload(struct worker *w, struct event *event)
{
    struct hf_err err = {0};
    event->stale = true;
    if (ledger_begin(w->ledger, &err) != HF_OK)
        return;
    if (load_again(w->ledger, w->view, event, &err) != HF_OK)
        log_write(LOG_WARN, "an event could not be read again", "why", err.msg, NULL);
    ledger_rollback(w->ledger);
    worker_note_holds(w);
}

/* ---- a turn ---- */

static bool in_batch(struct command *const *commands, size_t n, const struct event *e)
{
    for (size_t i = 0; i < n; i++)
        if (commands[i]->event == e)
            return true;
    return false;
}

static void turn(struct worker *w, struct command **commands, size_t n)
{
    VEC(struct event *) followed = {0};
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct command *c = commands[i];
        switch (c->kind) {
        case CMD_EVENT_LOAD:
        case CMD_EVENT_LIST:
            install(w, c);
            break;
        case CMD_FOLLOW:
            *vec_push(&followed) = c->event;
            engine_finish(w->engine, c);
            break;
        case CMD_COMPARE:
            reconcile_compare(w, c);
            engine_finish(w->engine, c);
            break;
        default:
            commands[kept++] = c;
        }
    }
    size_t left = 0; /* the batch brings those that it locks up to date */
    for (size_t i = 0; i < followed.n; i++)
        if (in_batch(commands, kept, followed.v[i]))
            atomic_store(&followed.v[i]->following, false);
        else
            followed.v[left++] = followed.v[i];
    if (kept || view_first_due(w->view))
        batch_run(w, commands, kept);
    follow(w, followed.v, left);
    for (size_t i = 0; i < left; i++)
        if (followed.v[i]->stale)
            reload(w, followed.v[i]);
    vec_close(&followed);
}

/* The time goes into the ledger though nothing else does: should the wall clock be set back before
 * the next start, the ledger's must not follow it, or holds would get longer. */
void worker_note_time(struct worker *w)
{
    struct engine *e = w->engine;
    struct hf_err err = {0};
    int64_t now = engine_now_ms(e);
    if (w->index || now <= w->noted_ms || w->failing)
        return;
    if (ledger_probe(w->ledger, &err) == HF_OK)
        w->noted_ms = now;
    else
        worker_failed(w, err.msg);
}

/* A due hold that is not in the heap. */
static size_t sweep_hold(struct worker *w, int64_t key, int64_t *last)
{
    struct engine *e = w->engine;
    struct event *event = view_event(w->view, HOLD_EVENT(key));
    if (engine_worker(e, HOLD_EVENT(key)) != w || (event && view_hold(w->view, key)))
        return 0;
    if (event && e->has_others) {
        follow(w, &event, 1); /* another server's, not heard of yet */
    } else if (event) {
        counter_add(e->metrics.surprises, 1);
        reload(w, event); /* the heap will find it now */
    } else if (HOLD_EVENT(key) != *last) {
        *last = HOLD_EVENT(key);
        load_in_background(e, *last);
        return 1;
    }
    return 0;
}

/* Expiry by the ledger's own index, for holds of events nobody has loaded, and for whatever the
 * heap may have missed.  A slice a call; again soon while there is more. */
static void sweep(struct worker *w)
{
    struct engine *e = w->engine;
    int64_t keys[SWEEP_SLICE];
    size_t n = 0, loads = 0;
    int64_t now = engine_now_ms(e), last = 0, pruned = 0;
    struct hf_err err = {0};
    w->next_sweep_us = monotonic_us(e) + SWEEP_EVERY_US;
    worker_note_time(w);
    if (ledger_holds_due(w->ledger, now, SWEEP_SLICE, keys, &n, &err) != HF_OK ||
        (w->index == 0 && ledger_keys_prune(w->ledger, now, PRUNE_SLICE, &pruned, &err) != HF_OK)) {
        log_write(LOG_WARN, "sweep failed", "why", err.msg, NULL);
        return;
    }
    for (size_t i = 0; i < n; i++)
        loads += sweep_hold(w, keys[i], &last);
    if (loads || pruned == PRUNE_SLICE)
        w->next_sweep_us = monotonic_us(e) + SWEEP_AGAIN_US;
}

static void probe(struct worker *w)
{
    struct hf_err err = {0};
    w->next_probe_us = monotonic_us(w->engine) + PROBE_EVERY_US;
    if (ledger_probe(w->ledger, &err) == HF_OK)
        worker_succeeded(w);
}

/* Sleep until the next hold falls due or the next chore, but never long: clocks get stepped. */
static int64_t sleep_us(struct worker *w)
{
    struct engine *e = w->engine;
    if (w->n_deferred || w->n_late)
        return 0;
    int64_t wait_us = IDLE_WAIT_US;
    const struct hold *first = view_first_due(w->view);
    if (first) {
        int64_t due_us = (first->expires_at - engine_now_ms(e)) * 1000;
        wait_us = due_us < wait_us ? due_us : wait_us;
    }
    if (w->failing && wait_us <= 0)
        wait_us = PROBE_EVERY_US / 10; /* due holds cannot be expired now: do not spin */
    return wait_us > 0 ? wait_us : 0;
}

void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct engine *e = w->engine;
    for (;;) {
        int64_t wait_us = sleep_us(w);
        size_t held = w->n_deferred + w->n_late; /* these come first */
        memcpy(w->commands, w->deferred, w->n_deferred * sizeof *w->commands);
        memcpy(w->commands + w->n_deferred, w->late, w->n_late * sizeof *w->commands);
        size_t n = lane_take(&w->work, w->commands + held, e->config.batch_len_max - held, wait_us);
        if (n == LANE_CLOSED && !held)
            break;
        n = held + (n == LANE_CLOSED ? 0 : n);
        w->n_deferred = w->n_late = 0;
        gauge_set(e->metrics.queue_depth, (int64_t)lane_len(&w->work));
        turn(w, w->commands, n);
        int64_t now_us = monotonic_us(e);
        if (now_us >= w->next_sweep_us)
            sweep(w);
        if (w->failing && now_us >= w->next_probe_us)
            probe(w);
    }
    return NULL;
}
