/* The seat map of an event as JSON, drawn by one thread and shared by reference.  The states are
 * copied under the event's lock, so the map is exactly its seq.  Whoever asks for a map that is not
 * there yet waits for it: nobody reads a map older than what they were answered before.  An event
 * is drawn at most ten times in any second: five at once, and one more every 200 ms. */
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "engine/internal.h"

#define DRAW_EVERY_US 200000
#define DRAW_AT_ONCE 5
#define DRAW_BATCH 256

void snapshot_unref(struct snapshot *s)
{
    if (s && atomic_fetch_sub(&s->refs, 1) == 1) {
        buf_close(&s->json);
        buf_close(&s->packed);
        free(s);
    }
}

static void copy_states(struct event *e, char *states, int64_t *places, int64_t *ret_seq)
{
    static const char letters[4] = {'.', 'h', 'b', 'x'};
    pthread_mutex_lock(&e->lock);
    *ret_seq = e->seq;
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        states[i] = letters[atomic_load_explicit(&e->seats[i].shown, memory_order_relaxed) & 3];
    for (size_t i = 0; i < e->def->areas.n; i++)
        places[i] = e->areas[i].available;
    pthread_mutex_unlock(&e->lock);
}

static void render_section(const struct section_def *section, const char *states, struct buf *out)
{
    buf_lit(out, "{\"name\":");
    buf_json(out, section->name, strlen(section->name));
    buf_lit(out, ",\"tier\":");
    if (section->tier)
        buf_json(out, section->tier, strlen(section->tier));
    else
        buf_lit(out, "null");
    buf_lit(out, ",\"price\":");
    buf_int(out, section->price);
    buf_lit(out, ",\"rows\":[");
    for (size_t r = 0; r < section->rows.n; r++) {
        const struct row_def *row = &section->rows.v[r];
        buf_str(out, r ? ",{\"name\":" : "{\"name\":");
        buf_json(out, row->name, strlen(row->name));
        buf_lit(out, ",\"seats\":\"");
        buf_put(out, states + row->first, row->seats);
        buf_lit(out, "\"}");
    }
    buf_lit(out, "]}");
}

static void render_area(const struct area_def *area, int64_t available, struct buf *out)
{
    buf_lit(out, "{\"name\":");
    buf_json(out, area->name, strlen(area->name));
    buf_lit(out, ",\"price\":");
    buf_int(out, area->price);
    buf_lit(out, ",\"capacity\":");
    buf_int(out, area->capacity);
    buf_lit(out, ",\"available\":");
    buf_int(out, available);
    buf_char(out, '}');
}

static struct snapshot *render(struct event *e)
{
    struct snapshot *s = hf_alloc(sizeof *s);
    char *states = hf_alloc(e->def->n_seats + (size_t)1);
    int64_t *places = hf_alloc((e->def->areas.n + 1) * sizeof *places);
    copy_states(e, states, places, &s->seq);
    s->refs = 1;
    buf_lit(&s->json, "{\"event\":\"");
    buf_str(&s->json, e->id_text);
    buf_lit(&s->json, "\",\"seq\":");
    buf_int(&s->json, s->seq);
    buf_lit(&s->json, ",\"sections\":[");
    for (size_t i = 0; i < e->def->sections.n; i++) {
        if (i)
            buf_char(&s->json, ',');
        render_section(&e->def->sections.v[i], states, &s->json);
    }
    buf_lit(&s->json, "],\"areas\":[");
    for (size_t i = 0; i < e->def->areas.n; i++) {
        if (i)
            buf_char(&s->json, ',');
        render_area(&e->def->areas.v[i], places[i], &s->json);
    }
    buf_lit(&s->json, "]}");
    free(states);
    free(places);
    return s;
}

struct snapshot *event_snapshot(struct event *e, bool packed)
{
    pthread_mutex_lock(&e->snapshot_lock);
    struct snapshot *s = e->snapshot;
    if (s && (s->seq != atomic_load_explicit(&e->seq, memory_order_acquire) ||
              (packed && !atomic_load_explicit(&s->is_packed, memory_order_acquire))))
        s = NULL;
    if (s)
        atomic_fetch_add(&s->refs, 1);
    pthread_mutex_unlock(&e->snapshot_lock);
    return s;
}

/* ---- the thread that draws ---- */

/* A leaky bucket; false: not yet, and *ret_wait_us is how long. */
static bool may_draw(struct event *e, int64_t now_us, int64_t *ret_wait_us)
{
    int64_t whole_us = e->draw_at_us > now_us ? e->draw_at_us : now_us;
    int64_t wait_us = whole_us - now_us - (int64_t)(DRAW_AT_ONCE - 1) * DRAW_EVERY_US;
    if (wait_us > 0) {
        *ret_wait_us = wait_us;
        return false;
    }
    e->draw_at_us = whole_us + DRAW_EVERY_US;
    return true;
}

void event_draw(struct event *e)
{
    struct snapshot *fresh = render(e);
    pthread_mutex_lock(&e->snapshot_lock);
    struct snapshot *old = e->snapshot;
    e->snapshot = fresh;
    pthread_mutex_unlock(&e->snapshot_lock);
    snapshot_unref(old);
}

/* No other thread writes e->snapshot, so this one reads it without the lock. */
void event_pack(struct event *e)
{
    struct snapshot *s = e->snapshot;
    if (atomic_load_explicit(&s->is_packed, memory_order_relaxed))
        return;
    gzip_pack(&s->json, &s->packed);
    atomic_store_explicit(&s->is_packed, true, memory_order_release);
}

/* True: c->snapshot is of a moment after c was submitted. */
static bool serve(struct engine *e, struct command *c, bool closing, int64_t *ret_wait_us)
{
    struct event *event = c->event;
    int64_t now_us = clock_monotonic_us(e->config.clock);
    if (!event->snapshot || event->snapshot->seq < c->seq) {
        if (!may_draw(event, now_us, ret_wait_us) && !closing)
            return false;
        event_draw(event);
    }
    if (c->packed)
        event_pack(event);
    c->snapshot = event->snapshot;
    atomic_fetch_add(&c->snapshot->refs, 1);
    c->status = HF_OK;
    return true;
}

void *drawer_main(void *arg)
{
    struct engine *e = arg;
    struct command *fresh[DRAW_BATCH], *waiting = NULL;
    int64_t wait_us = INT32_MAX;
    for (;;) {
        size_t n = lane_take(&e->draw, fresh, DRAW_BATCH, wait_us);
        if (n == LANE_CLOSED && !waiting)
            return NULL;
        for (size_t i = 0; n != LANE_CLOSED && i < n; i++) {
            fresh[i]->next = waiting;
            waiting = fresh[i];
        }
        wait_us = waiting ? DRAW_EVERY_US : INT32_MAX;
        for (struct command **link = &waiting; *link;) {
            struct command *c = *link, *next = c->next;
            int64_t wait_this_us = INT32_MAX;
            if (serve(e, c, n == LANE_CLOSED, &wait_this_us)) {
                *link = next;
                engine_finish(e, c);
            } else {
                wait_us = wait_this_us < wait_us ? wait_this_us : wait_us;
                link = &c->next;
            }
        }
    }
}
