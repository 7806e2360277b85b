/* See idle.h. */
#include "engine/idle.h"

#include <stdlib.h>

#include "engine/engine_internal.h"
#include "engine/worker.h"
#include "view/waitlist.h"

#define LOOK_MIN_US 50000
#define LOOK_MAX_US 5000000
#define LOOKS_PER_IDLE 8 /* so an event leaves at most an eighth of the time late */
#define FREEING_US 3000  /* in one turn; the rest leaves in the next */
#define FULL_AGAIN_US                                                                              \
    1000000 /* before the worker looks again for what it could not make room of                    \
             */

static int64_t monotonic_us(const struct worker *w)
{
    return clock_monotonic_us(w->engine->config.clock);
}

static int64_t look_every_us(const struct worker *w)
{
    int64_t every_us = w->engine->config.event_idle_ms * 1000 / LOOKS_PER_IDLE;
    if (!every_us || every_us > LOOK_MAX_US)
        return LOOK_MAX_US;
    return every_us < LOOK_MIN_US ? LOOK_MIN_US : every_us;
}

/* Tells the engine what this worker has. */
static void show(struct worker *w, int64_t n, int64_t bytes)
{
    struct engine *e = w->engine;
    atomic_fetch_add_explicit(&e->events_loaded, n - w->idle.n, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->events_bytes, bytes - w->idle.bytes, memory_order_relaxed);
    w->idle.n = n;
    w->idle.bytes = bytes;
}

static bool is_full(const struct worker *w)
{
    const struct engine *e = w->engine;
    return e->config.event_memory_max &&
           atomic_load_explicit(&e->events_bytes, memory_order_relaxed) >
               e->config.event_memory_max;
}

/* Is there so little room that more events should leave, once some have? */
static bool wants_room(const struct worker *w)
{
    const struct engine *e = w->engine;
    return atomic_load_explicit(&e->events_bytes, memory_order_relaxed) >
           e->config.event_memory_max / 8 * 7;
}

void idle_installed(struct worker *w, struct event *e)
{
    e->usage.last_us = monotonic_us(w);
    show(w, w->idle.n + 1, w->idle.bytes + (int64_t)event_memory(e));
}

static void note_uses(struct event *e, int64_t now_us)
{
    uint64_t pins = atomic_load_explicit(&e->registered.slot->pins, memory_order_relaxed);
    e->usage.lately = slot_uses(pins) - e->usage.seen;
    e->usage.seen = slot_uses(pins);
    if (e->usage.lately || slot_pins(pins))
        e->usage.last_us = now_us;
}

static bool let_leave(struct worker *w, struct event *e)
{
    int64_t bytes = (int64_t)event_memory(e);
    if (!view_leave(w->view, e))
        return false;
    show(w, w->idle.n - 1, w->idle.bytes - bytes);
    counter_add(w->engine->metrics.events_left, 1);
    return true;
}

/* Looks at all events.  Lists those that may leave and have been idle for `idle_us`. */
static void look(struct worker *w, int64_t now_us, int64_t idle_us, struct loaded *ret)
{
    const struct registry *r = view_registry(w->view);
    int64_t bytes = 0;
    for (size_t i = 0; i < r->loaded.n; i++) {
        struct event *e = r->loaded.v[i];
        note_uses(e, now_us);
        bytes += (int64_t)(event_memory(e) + waitlist_memory(e->waitlist));
        bool is_waited_for = e->waitlist && e->waitlist->n_waiting;
        if (!e->n_holds && !is_waited_for && now_us - e->usage.last_us >= idle_us)
            *vec_push(&ret->events) = e;
    }
    show(w, (int64_t)r->loaded.n, bytes);
}

static int by_use(const void *a, const void *b)
{
    const struct event *x = *(struct event *const *)a, *y = *(struct event *const *)b;
    if (x->usage.last_us != y->usage.last_us)
        return x->usage.last_us < y->usage.last_us ? -1 : 1;
    return (x->usage.lately > y->usage.lately) - (x->usage.lately < y->usage.lately);
}

/* Lets the listed events leave, in their order.  With `for_room` it stops when there is enough.
 * Returns false if time ran out. */
static bool leave_all(struct worker *w, struct loaded *list, int64_t now_us, bool for_room)
{
    if (list->events.n)
        decision_begin(&w->decision); /* the last batch still names its events */
    for (size_t i = 0; i < list->events.n && (!for_room || wants_room(w)); i++) {
        if (monotonic_us(w) - now_us > FREEING_US)
            return false;
        (void)let_leave(w, list->events.v[i]); /* pinned meanwhile: it is not idle any more */
    }
    return true;
}

/* INT64_MAX: however long an event is idle, it stays. */
static int64_t idle_us(const struct worker *w)
{
    int64_t idle_ms = w->engine->config.event_idle_ms;
    return idle_ms ? idle_ms * 1000 : INT64_MAX;
}

void idle_turn(struct worker *w)
{
    int64_t now_us = monotonic_us(w);
    bool full = is_full(w);
    struct loaded list = {0}; /* not pinned: only this thread lets its events leave */
    if (now_us < w->idle.next_us && !(full && now_us >= w->idle.full_us))
        return;
    w->idle.next_us = now_us + look_every_us(w);
    if (!engine_ready(w->engine, NULL, 0))
        return;
    look(w, now_us, full ? 0 : idle_us(w), &list);
    if (full && list.events.n)
        qsort(list.events.v, list.events.n, sizeof *list.events.v, by_use);
    w->idle.has_more = !leave_all(w, &list, now_us, full);
    vec_close(&list.events);
    if (w->idle.has_more)
        w->idle.next_us = now_us;
    w->idle.full_us = now_us + (w->idle.has_more ? 0 : FULL_AGAIN_US);
}

int64_t idle_sleep_us(const struct worker *w) { return w->idle.has_more ? 0 : INT64_MAX; }
