/* Seat maps, rendered by one thread and shared by reference; see drawer.h. */
#include "engine/drawer.h"

#include <stdlib.h>

#include "base/gzip.h"
#include "engine/engine_internal.h"

#define DRAW_EVERY_US 200000
#define DRAW_AT_ONCE 5
#define COMMANDS_AT_ONCE 256

void drawer_draw(struct event *e, render_map_fn render, int64_t now_us)
{
    struct seat_map map;
    event_map_read(e, &map);
    struct snapshot *fresh = snapshot_new(map.seq);
    render(e, &map, &fresh->text);
    buf_trim(&fresh->text);
    seat_map_close(&map);
    event_keep_snapshot(e, fresh, now_us);
}

/* No other thread replaces e->documents.map, so this one reads it without the lock. */
void drawer_pack(struct event *e)
{
    struct snapshot *s = e->documents.map;
    if (atomic_load_explicit(&s->is_packed, memory_order_relaxed))
        return;
    gzip_pack(&s->text, &s->packed);
    atomic_store_explicit(&s->is_packed, true, memory_order_release);
}

/* A leaky bucket.  Returns false if the event has been drawn too often lately; *ret_wait_us is then
 * how long to wait. */
static bool may_draw(struct event *e, int64_t now_us, int64_t *ret_wait_us)
{
    int64_t whole_us = e->documents.draw_at_us > now_us ? e->documents.draw_at_us : now_us;
    int64_t wait_us = whole_us - now_us - (int64_t)(DRAW_AT_ONCE - 1) * DRAW_EVERY_US;
    if (wait_us > 0) {
        *ret_wait_us = wait_us;
        return false;
    }
    e->documents.draw_at_us = whole_us + DRAW_EVERY_US;
    return true;
}

/* Gives the command a snapshot of a moment after it was submitted.  Returns false if it has to
 * wait; *ret_wait_us says how long.  While the engine is closing nothing waits. */
static bool serve(struct engine *e, struct command *c, bool closing, int64_t *ret_wait_us)
{
    struct event *event = c->event;
    int64_t now_us = clock_monotonic_us(e->config.clock);
    if (!event->documents.map || event->documents.map->seq < c->snapshot.seq) {
        bool may = versions_have_room(event->documents.maps, now_us, ret_wait_us) &&
                   may_draw(event, now_us, ret_wait_us);
        if (!may && !closing)
            return false;
        drawer_draw(event, e->config.texts.map, now_us);
    }
    if (c->snapshot.packed)
        drawer_pack(event);
    c->snapshot.snapshot = snapshot_ref(event->documents.map);
    c->verdict = VERDICT_OK;
    return true;
}

/* Serves those of the waiting commands that can be served; returns how long to wait for the next.
 */
static int64_t serve_waiting(struct engine *e, struct command **waiting, bool closing)
{
    int64_t wait_us = DRAW_EVERY_US;
    for (struct command **link = waiting; *link;) {
        struct command *c = *link, *next = c->next;
        int64_t wait_this_us = INT32_MAX;
        if (serve(e, c, closing, &wait_this_us)) {
            *link = next;
            engine_finish(c);
        } else {
            wait_us = wait_this_us < wait_us ? wait_this_us : wait_us;
            link = &c->next;
        }
    }
    return *waiting ? wait_us : INT32_MAX;
}

void *drawer_main(void *arg)
{
    struct engine *e = arg;
    struct command *fresh[COMMANDS_AT_ONCE], *waiting = NULL;
    int64_t wait_us = INT32_MAX;
    for (;;) {
        size_t n = lane_take(&e->draw, fresh, COMMANDS_AT_ONCE, wait_us);
        bool closing = n == LANE_CLOSED;
        if (closing && !waiting)
            return NULL;
        for (size_t i = 0; !closing && i < n; i++) {
            fresh[i]->next = waiting;
            waiting = fresh[i];
        }
        wait_us = serve_waiting(e, &waiting, closing);
    }
}
