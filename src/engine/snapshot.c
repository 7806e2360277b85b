/* The seat map of an event as JSON, rendered once per seq by the first thread that asks and shared
 * by reference.  The states are copied under the event's lock, so the map is exactly its seq. */
#include <stdlib.h>
#include <string.h>

#include "engine/view.h"

void snapshot_unref(struct snapshot *s)
{
    if (s && atomic_fetch_sub(&s->refs, 1) == 1) {
        buf_close(&s->json);
        free(s);
    }
}

static void copy_states(struct event *e, char *states, int64_t *ret_seq)
{
    static const char letters[4] = {'.', 'h', 'b', 'x'};
    pthread_mutex_lock(&e->lock);
    *ret_seq = e->seq;
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        states[i] = letters[atomic_load_explicit(&e->seats[i].shown, memory_order_relaxed) & 3];
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

static void render_area(const struct area_def *area, struct buf *out)
{
    buf_lit(out, "{\"name\":");
    buf_json(out, area->name, strlen(area->name));
    buf_lit(out, ",\"price\":");
    buf_int(out, area->price);
    buf_lit(out, ",\"capacity\":");
    buf_int(out, area->capacity);
    buf_lit(out, ",\"available\":");
    buf_int(out, area->capacity - area->held - area->booked);
    buf_char(out, '}');
}

static struct snapshot *render(struct event *e)
{
    struct snapshot *s = hf_alloc(sizeof *s);
    char *states = hf_alloc(e->def->n_seats + (size_t)1);
    copy_states(e, states, &s->seq);
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
        render_area(&e->def->areas.v[i], &s->json);
    }
    buf_lit(&s->json, "]}");
    free(states);
    return s;
}

struct snapshot *event_snapshot(struct event *e)
{
    pthread_mutex_lock(&e->snapshot_lock);
    if (!e->snapshot || e->snapshot->seq != e->seq) {
        snapshot_unref(e->snapshot);
        e->snapshot = render(e);
    }
    struct snapshot *s = e->snapshot;
    atomic_fetch_add(&s->refs, 1);
    pthread_mutex_unlock(&e->snapshot_lock);
    return s;
}
