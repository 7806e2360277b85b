/* What the engine's threads share, and each may ask of it; see engine_internal.h and worker.h. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/wait.h"
#include "engine/engine_internal.h"
#include "view/view_waits.h"

#define CONTACT_MS 3000 /* a shared ledger that has not answered for this long is not ready */

/* ---- events ---- */

static const struct registry *registry_of(const struct engine *e, int64_t event)
{
    return view_registry(e->workers[event > 0 ? event % e->n_workers : 0].view);
}

struct event *engine_event(const struct engine *e, int64_t event)
{
    return registry_find(registry_of(e, event), event);
}

struct event *engine_event_take(const struct engine *e, int64_t event)
{
    return registry_take(registry_of(e, event), event, true);
}

struct event *engine_event_peek(const struct engine *e, int64_t event)
{
    return registry_take(registry_of(e, event), event, false);
}

static void add_loaded(void *ctx, struct event *event)
{
    *vec_push(&((struct loaded *)ctx)->events) = event;
}

void engine_list_loaded(const struct engine *e, struct loaded *ret)
{
    for (int i = 0; i < e->n_workers; i++)
        registry_take_all(view_registry(e->workers[i].view), add_loaded, ret);
}

void loaded_close(struct loaded *loaded)
{
    for (size_t i = 0; i < loaded->events.n; i++)
        event_give(loaded->events.v[i]);
    vec_close(&loaded->events);
}

/* ---- the ledger ---- */

int64_t engine_now_ms(const struct engine *e)
{
    return clock_boot_us(e->config.clock) / 1000 +
           atomic_load_explicit(&e->now_offset_ms, memory_order_relaxed);
}

struct db_options engine_db_options(struct engine *e)
{
    return (struct db_options){
        .clock = e->config.clock, .reached_us = &e->reached_us, .give_up_us = &e->give_up_us};
}

bool engine_gave_up(const struct engine *e)
{
    int64_t at_us = atomic_load(&e->give_up_us);
    return at_us && wait_now_us() >= at_us;
}

bool engine_ready(struct engine *e, char *why, size_t why_size)
{
    bool ready = atomic_load_explicit(&e->n_failing, memory_order_acquire) == 0;
    int64_t silent_ms = clock_boot_us(e->config.clock) / 1000 -
                        atomic_load_explicit(&e->contact_ms, memory_order_relaxed);
    if (e->has_others &&
        silent_ms > CONTACT_MS) /* nothing was asked of it lately, and it would not answer */
        ready = false;
    if (!ready && why_size) {
        pthread_mutex_lock(&e->lock);
        size_t len = strnlen(e->why, why_size - 1);
        memcpy(why, e->why, len);
        why[len] = '\0';
        pthread_mutex_unlock(&e->lock);
    }
    return ready;
}

/* Where other servers write, one of them may have stored the key a moment ago: only the ledger
 * knows. */
bool engine_key_maybe(const struct engine *e, const struct idempotency *key)
{
    return key->present && (e->has_others || key_filter_maybe(&e->filter, key->hash));
}

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

/* ---- commands and holds ---- */

void engine_note_heat(const struct command *c)
{
    if (c->verdict != VERDICT_SEAT_TAKEN ||
        (c->kind != CMD_HOLD_CREATE && c->kind != CMD_HOLD_CHANGE))
        return;
    const struct shortage *s =
        c->kind == CMD_HOLD_CREATE ? &c->create.shortage : &c->change.shortage;
    heat_note(&c->event->heat, c->event->def->n_seats, s->taken, s->n_taken);
}

void engine_finish(struct command *c)
{
    if (!c->internal) {
        pending_done(&c->pending);
        return;
    }
    event_give(c->pinned);
    free(c);
}

void worker_answer(struct worker *w, struct command *const *commands, size_t n)
{
    pending_batch_begin();
    for (size_t i = 0; i < n; i++) {
        engine_metrics_answered(&w->engine->metrics, commands[i],
                                clock_monotonic_us(w->engine->config.clock) -
                                    commands[i]->submitted_us);
        engine_note_heat(commands[i]);
        engine_finish(commands[i]);
    }
    pending_batch_end();
}

int64_t worker_due_ms(const struct worker *w)
{
    const struct hold *first = view_first_due(w->view);
    int64_t hold_ms = first ? first->expires_at : INT64_MAX, wait_ms = view_waits_next(w->view);
    return hold_ms < wait_ms ? hold_ms : wait_ms;
}

void worker_note_holds(struct worker *w)
{
    const struct hold *first = view_first_due(w->view);
    int64_t n = (int64_t)view_holds_len(w->view);
    atomic_store_explicit(&w->first_due_ms, first ? first->expires_at : INT64_MAX,
                          memory_order_relaxed);
    gauge_add(w->engine->metrics.holds_active, n - w->holds_shown);
    w->holds_shown = n;
    struct wait_totals waits = view_waits_count(w->view);
    gauge_add(w->engine->metrics.waits_waiting, waits.waiting - w->waits_shown.waiting);
    gauge_add(w->engine->metrics.waits_offered, waits.offered - w->waits_shown.offered);
    w->waits_shown = waits;
}
