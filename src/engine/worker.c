/* A worker and its turns; see worker.h.  On the worker's thread, but for worker_init and
 * worker_close. */
#include "engine/worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/batch.h"
#include "engine/engine_internal.h"
#include "engine/load.h"
#include "engine/reconcile.h"

#define SWEEP_EVERY_US 60000000 /* asks the ledger for due holds that the heap has missed */
#define SWEEP_AGAIN_US 100000   /* while there are more */
#define SWEEP_SLICE 100
#define PRUNE_SLICE 1000 /* stored answers to forget at once */
#define WEBHOOKS_KEPT_MS ((int64_t)30 * 24 * 3600 * 1000)
#define IDLE_WAIT_US 250000   /* longest sleep */
#define PROBE_EVERY_US 500000 /* while the ledger fails */
#define PROBE_ROOM_BYTES (1 << 20)

static int64_t monotonic_us(const struct worker *w)
{
    return clock_monotonic_us(w->engine->config.clock);
}

/* ---- life ---- */

void worker_init(struct worker *w, struct engine *e, int index)
{
    size_t n = e->config.batch_len_max;
    w->engine = e;
    w->index = index;
    w->view = view_new();
    if (index)
        view_share_clients(w->view, e->workers[0].view);
    w->first_due_ms = INT64_MAX;
    w->assume_after = ASSUME_AFTER_MIN;
    lane_init(&w->work, e->config.queue_len_max);
    if (e->config.random_seed)
        random_init_seeded(&w->random, e->config.random_seed + (uint64_t)index);
    else
        random_init_system(&w->random);
    w->decision.view = w->view;
    w->decision.random = &w->random;
    w->decision.client_places_max = e->config.public_places_max;
    w->decision.notices = e->config.notices;
    w->decision.job_lease_ms = e->config.hands_jobs_over && e->has_others ? JOB_LEASE_MS : 0;
    w->commands = hf_alloc(n * sizeof(struct command *));
    w->deferred = hf_alloc(n * sizeof(struct command *));
    w->late = hf_alloc(n * sizeof(struct command *));
    w->stored = hf_alloc(n * sizeof *w->stored);
}

void worker_close(struct worker *w)
{
    if (!w->engine)
        return;
    ledger_close(w->ledger);
    gate_close(w->gate);
    decision_close(&w->decision);
    batch_read_close(&w->read);
    for (size_t i = 0; i < w->engine->config.batch_len_max; i++)
        key_row_close(&w->stored[i]);
    vec_close(&w->claims);
    vec_close(&w->claim_areas);
    vec_close(&w->claimed);
    vec_close(&w->gate_seats);
    vec_close(&w->gate_counts);
    free(w->commands);
    free(w->deferred);
    free(w->late);
    free(w->stored);
    view_free(w->view);
    lane_destroy(&w->work);
}

/* ---- installing events ---- */

/* Returns NULL if the event was in memory and left while the loader read it. */
static struct event *enter(struct worker *w, struct event *event)
{
    bool is_there = view_event(w->view, event->def->id.key) != NULL;
    event->heat.since = event->registered.departures ? engine_now_ms(w->engine) : 0;
    event = view_install(w->view, event);
    if (event && !is_there)
        idle_installed(w, event);
    return event;
}

/* A loaded event enters the view here, pinned for whoever asked for it, then its command is done.
 */
static void install(struct worker *w, struct command *c)
{
    if (c->event && !c->pinned) {
        c->event = enter(w, c->event);
        if (!c->event && lane_pass(&w->engine->load, c))
            return; /* the loader reads it again */
        if (c->event)
            c->pinned = event_share(c->event);
        else
            c->verdict = verdict_of(HF_DRAINING);
    }
    worker_note_holds(w);
    engine_finish(c);
}

/* ---- following other servers ---- */

/* Brings events that other servers have changed up to date, outside any batch.  An event whose rows
 * do not follow on what the view has becomes stale and is loaded again, by the next batch that
 * names it or by the caller. */
static void follow(struct worker *w, struct event *const *events, size_t n)
{
    struct hf_err err = {0};
    int64_t before_ms = engine_now_ms(w->engine);
    batch_read_clear(&w->read);
    for (size_t i = 0; i < n; i++) {
        atomic_store(&events[i]->sync.following, false);
        *vec_push(&w->read.clocks) = events[i]->clock;
    }
    if (!n || ledger_follow(w->ledger, &w->read, &err) != HF_OK)
        return; /* the follower's next comparison asks again */
    for (size_t i = 0; i < n; i++) {
        if (load_since(w, events[i], &w->read.since, &err) != HF_OK)
            return;
        if (!events[i]->stale)
            atomic_store_explicit(&events[i]->sync.confirmed_ms, before_ms, memory_order_relaxed);
    }
    worker_note_holds(w);
}

static void reload(struct worker *w, struct event *event)
{
    struct hf_err err = {0};
    event->stale = true;
    if (ledger_begin(w->ledger, &err) != HF_OK)
        return;
    if (load_again(w, event, &err) != HF_OK)
        log_write(LOG_WARN, "an event could not be read again", "why", err.msg, NULL);
    ledger_rollback(w->ledger);
    worker_note_holds(w);
}

/* ---- carrying out commands ---- */

static bool is_named(struct command *const *commands, size_t n, const struct event *e)
{
    for (size_t i = 0; i < n; i++)
        if (commands[i]->event == e)
            return true;
    return false;
}

static void follow_all(struct worker *w, struct event *const *events, size_t n)
{
    follow(w, events, n);
    for (size_t i = 0; i < n; i++)
        if (events[i]->stale)
            reload(w, events[i]);
}

static int by_event(const void *a, const void *b)
{
    const struct command *const *x = a, *const *y = b;
    int64_t left = (*x)->event->def->id.key, right = (*y)->event->def->id.key;
    return (left > right) - (left < right);
}

static void carry_out(struct worker *w, struct command **commands, size_t n)
{
    VEC(struct command *) follows = {0};
    VEC(struct event *) followed = {0};
    size_t n_batch = 0;
    for (size_t i = 0; i < n; i++) {
        struct command *c = commands[i];
        switch (c->kind) {
        case CMD_EVENT_LOAD:
            install(w, c);
            break;
        case CMD_FOLLOW:
            *vec_push(&follows) = c;
            break;
        case CMD_COMPARE:
            reconcile_compare(w, c);
            engine_finish(c);
            break;
        case CMD_OWNER_ERASE:
            if (c->owner_erase.judged && !c->owner_erase.done)
                chores_add(w, c);
            else
                commands[n_batch++] = c;
            break;
        default:
            commands[n_batch++] = c;
        }
    }
    if (follows.n > 1)
        qsort(follows.v, follows.n, sizeof *follows.v, by_event);
    for (size_t i = 0; i < follows.n; i++) {
        struct event *event = follows.v[i]->event;
        if (is_named(commands, n_batch, event)) /* the batch brings it up to date */
            atomic_store(&event->sync.following, false);
        else if (!followed.n || followed.v[followed.n - 1] != event)
            *vec_push(&followed) = event;
    }
    if (n_batch || worker_due_ms(w) < INT64_MAX)
        batch_run(w, commands, n_batch);
    follow_all(w, followed.v, followed.n);
    for (size_t i = 0; i < follows.n; i++)
        engine_finish(follows.v[i]);
    vec_close(&followed);
    vec_close(&follows);
}

/* ---- chores ---- */

/* The time is written to the ledger even when nothing else is: should the wall clock be set back
 * before the next start, the ledger's time must not follow it, or holds would last longer. */
void worker_note_time(struct worker *w)
{
    struct hf_err err = {0};
    int64_t now = engine_now_ms(w->engine);
    if (w->index || now <= w->noted_ms || w->failing)
        return;
    if (ledger_probe(w->ledger, 0, &err) == HF_OK)
        w->noted_ms = now;
    else
        worker_failed(w, err.msg);
}

/* Deals with a due hold that the ledger's index names.  Returns true if the hold's event is loaded
 * in the background because of it. */
static bool sweep_hold(struct worker *w, int64_t key)
{
    struct engine *e = w->engine;
    struct event *event = view_event(w->view, HOLD_EVENT(key));
    if (engine_worker(e, HOLD_EVENT(key)) != w || (event && view_hold(w->view, key)))
        return false;
    if (event && e->has_others) { /* another server's hold, not heard of yet */
        follow(w, &event, 1);
        return false;
    }
    if (event) { /* the view has missed it; from now on it is in the heap */
        counter_add(e->metrics.surprises, 1);
        reload(w, event);
        return false;
    }
    load_in_background(e, HOLD_EVENT(key));
    return true;
}

/* Loads events that are not in memory and for whose places people wait: their entries end, and what
 * becomes free is theirs, whether anybody asks for the event or not.  Once loaded they stay. */
static bool sweep_waits(struct worker *w, struct hf_err *err)
{
    int64_t events[SWEEP_SLICE];
    size_t n = 0;
    if (ledger_waited_for(w->ledger, w->swept_wait, SWEEP_SLICE, events, &n, err) != HF_OK)
        return false;
    for (size_t i = 0; i < n; i++)
        if (engine_worker(w->engine, events[i]) == w && !view_event(w->view, events[i]))
            load_in_background(w->engine, events[i]);
    w->swept_wait = n == SWEEP_SLICE ? events[n - 1] : 0;
    if (w->swept_wait)
        w->next_sweep_us = monotonic_us(w) + SWEEP_AGAIN_US;
    return true;
}

/* Expires holds by the ledger's own index: those of events that are not loaded, and any that the
 * heap may have missed.  Also deletes stored answers that are older than KEY_KEPT_MS.  Each call
 * does one slice; while there is more, the next call comes soon. */
static void sweep(struct worker *w)
{
    struct hf_err err = {0};
    int64_t keys[SWEEP_SLICE];
    size_t n = 0, loads = 0;
    int64_t now = engine_now_ms(w->engine), pruned = 0, webhooks = 0;
    w->next_sweep_us = monotonic_us(w) + SWEEP_EVERY_US;
    worker_note_time(w);
    enum hf_status status = ledger_holds_due(w->ledger, now, SWEEP_SLICE, keys, &n, &err);
    if (status == HF_OK && w->index == 0)
        status = ledger_keys_prune(w->ledger, now, PRUNE_SLICE, &pruned, &err);
    if (status == HF_OK && w->index == 0)
        status =
            ledger_webhooks_prune(w->ledger, now - WEBHOOKS_KEPT_MS, PRUNE_SLICE, &webhooks, &err);
    if (status != HF_OK) {
        log_write(LOG_WARN, "sweep failed", "why", err.msg, NULL);
        return;
    }
    for (size_t i = 0; i < n; i++)
        loads += sweep_hold(w, keys[i]);
    if (!sweep_waits(w, &err))
        log_write(LOG_WARN, "sweep failed", "why", err.msg, NULL);
    if (loads || pruned == PRUNE_SLICE || webhooks >= PRUNE_SLICE)
        w->next_sweep_us = monotonic_us(w) + SWEEP_AGAIN_US;
}

/* A ledger that has failed counts as well again once a batch could be stored.  The probe itself is
 * so small that it may fit where no batch does, so it also asks for room. */
static void probe(struct worker *w)
{
    struct hf_err err = {0};
    w->next_probe_us = monotonic_us(w) + PROBE_EVERY_US;
    if (ledger_probe(w->ledger, PROBE_ROOM_BYTES, &err) == HF_OK)
        worker_succeeded(w);
}

/* ---- turns ---- */

int64_t worker_sleep_us(const struct worker *w)
{
    if (w->n_deferred || w->n_late)
        return 0;
    int64_t wait_us = IDLE_WAIT_US;
    int64_t due_ms = worker_due_ms(w) - engine_now_ms(w->engine);
    wait_us = due_ms < wait_us / 1000 ? due_ms * 1000 : wait_us;
    int64_t chores_us = chores_sleep_us(w), freeing_us = idle_sleep_us(w);
    wait_us = chores_us < wait_us ? chores_us : wait_us;
    wait_us = freeing_us < wait_us ? freeing_us : wait_us;
    if (w->failing && wait_us <= 0)
        wait_us = PROBE_EVERY_US / 10; /* due holds cannot be expired now: do not spin */
    return wait_us > 0 ? wait_us : 0;
}

/* Fills w->commands: first what the last batch left over, then what is queued.  Returns false once
 * the queue is closed and nothing is left over. */
static bool gather(struct worker *w, int64_t wait_us, size_t *ret_n)
{
    size_t kept = w->n_deferred + w->n_late, max = w->engine->config.batch_len_max;
    memcpy(w->commands, w->deferred, w->n_deferred * sizeof *w->commands);
    memcpy(w->commands + w->n_deferred, w->late, w->n_late * sizeof *w->commands);
    size_t taken = lane_take(&w->work, w->commands + kept, max - kept, wait_us);
    if (taken == LANE_CLOSED && !kept)
        return false;
    w->n_deferred = w->n_late = 0;
    *ret_n = kept + (taken == LANE_CLOSED ? 0 : taken);
    return true;
}

bool worker_turn(struct worker *w, int64_t wait_us)
{
    size_t n;
    if (!gather(w, wait_us, &n))
        return false;
    carry_out(w, w->commands, n);
    keeper_after_batch(w);
    int64_t now_us = monotonic_us(w);
    if (now_us >= w->next_sweep_us)
        sweep(w);
    if (w->failing && now_us >= w->next_probe_us)
        probe(w);
    chores_turn(w);
    idle_turn(w);
    atomic_fetch_add_explicit(&w->turns, 1, memory_order_relaxed);
    return true;
}

void *worker_main(void *worker)
{
    struct worker *w = worker;
    while (worker_turn(w, worker_sleep_us(w)))
        ;
    chores_stop(w);
    return NULL;
}
