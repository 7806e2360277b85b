/* GET /v1/events/{id}/stream on the streams' port: seat changes, as a source of src/http's streams.
 * A topic is an event.  On the streams' thread; the loader looks up events that are not loaded. */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/problems.h"
#include "api/render.h"

#define SCRATCH_KEEP 65536 /* changes; larger scratch is freed after use */

struct event_source {
    struct stream_source source; /* first */
    struct engine *engine;
    struct changes changes; /* scratch */
};

struct event_lookup {
    struct stream_lookup lookup; /* first */
    struct command command;
};

/* ---- finding the event ---- */

/* The event's id in /v1/events/{id}/stream, which is *ret_len long; NULL if the path is another. */
static const char *path_id(const char *path, size_t *ret_len)
{
    static const char before[] = "/v1/events/", after[] = "/stream";
    if (strncmp(path, before, sizeof before - 1) != 0)
        return NULL;
    path += sizeof before - 1;
    *ret_len = strcspn(path, "/");
    return *ret_len && strcmp(path + *ret_len, after) == 0 ? path : NULL;
}

static const struct problem *check(const char *path)
{
    struct id id;
    size_t len;
    const char *text = path_id(path, &len);
    if (!text)
        return &problem_not_found;
    return id_parse(text, len, "evt_", &id) ? NULL : problem_of(VERDICT_NO_SUCH_EVENT);
}

static void *find(void *context, const char *path, struct stream_lookup **lookup,
                  const struct problem **ret_problem)
{
    struct event_source *s = context;
    struct event_lookup *l = (struct event_lookup *)*lookup;
    struct id id = {0};
    size_t len;
    const char *text = path_id(path, &len);
    hf_check(text && id_parse(text, len, "evt_", &id)); /* as `check` has found */
    *ret_problem = problem_of(VERDICT_NO_SUCH_EVENT);
    struct event *e = engine_event(s->engine, id.key);
    if (e)
        return id_secret_equal(e->def->id.secret, id.secret) ? e : NULL;
    if (id.key > EVENT_KEY_MAX)
        return NULL;
    if (!l) {
        l = hf_alloc(sizeof *l);
        l->command.kind = CMD_EVENT_LOAD;
        l->command.event_key = id.key;
        *lookup = &l->lookup;
        *ret_problem = NULL;
    } else if (l->command.verdict != VERDICT_OK) {
        *ret_problem = problem_of(l->command.verdict);
    }
    return NULL;
}

/* On the loader's thread, or on the streams' if the command was not taken. */
static void loaded(struct pending *pending)
{
    struct event_lookup *l = pending->waiter;
    pending_done(&l->lookup.pending);
}

static void look_up(void *context, struct stream_lookup *lookup)
{
    struct event_source *s = context;
    struct event_lookup *l = (struct event_lookup *)lookup;
    l->command.pending = (struct pending){.done = loaded, .waiter = l};
    enum hf_status status = engine_submit(s->engine, &l->command);
    if (status != HF_OK) {
        l->command.verdict = verdict_of(status);
        pending_done(&l->command.pending);
    }
}

static void lookup_free(struct stream_lookup *lookup) { free(lookup); }

/* ---- its changes ---- */

static int64_t seq(const void *topic)
{
    const struct event *e = topic;
    return atomic_load_explicit(&e->seq, memory_order_acquire);
}

/* Stops at len_max, beyond which the message is not sent. */
static void put_seats(const struct event *e, const struct change *changes, size_t n, size_t len_max,
                      struct buf *out)
{
    for (size_t i = 0; i < n && out->len <= len_max; i++) {
        buf_str(out, i ? ",[" : "[");
        render_seat(e, changes[i].item, out);
        buf_lit(out, ",\"");
        buf_char(out, seat_letter(changes[i].state & 3));
        buf_lit(out, "\"]");
    }
}

static void put_areas(const struct event *e, const struct change *changes, size_t n,
                      struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = e->def->areas.v[changes[i].item].name;
        if (i)
            buf_char(out, ',');
        buf_json(out, name, strlen(name));
        buf_char(out, ':');
        buf_int(out, changes[i].state);
    }
}

/* Changes of seats come before those of areas. */
static void put_changes(const struct event *e, const struct changes *c, size_t len_max,
                        struct buf *out)
{
    size_t n_seats = 0;
    while (n_seats < c->list.n && !c->list.v[n_seats].is_area)
        n_seats++;
    stream_put_head(out, c->seq, "seats");
    buf_lit(out, ",\"changes\":[");
    put_seats(e, c->list.v, n_seats, len_max, out);
    buf_lit(out, "],\"areas\":{");
    put_areas(e, c->list.v + n_seats, c->list.n - n_seats, out);
    buf_lit(out, "}}\n\n");
}

/* O(changes). */
static enum stream_news encode(void *context, void *topic, int64_t after, size_t len_max,
                               struct buf *out, int64_t *ret_seq)
{
    struct event_source *s = context;
    struct event *e = topic;
    if (!event_changes(e, after, &s->changes)) {
        *ret_seq = seq(e);
        return STREAM_RESET;
    }
    *ret_seq = s->changes.seq;
    if (s->changes.list.n == 0)
        return STREAM_NOTHING;
    put_changes(e, &s->changes, len_max, out);
    if (s->changes.list.cap > SCRATCH_KEEP)
        changes_close(&s->changes);
    return out->len <= len_max ? STREAM_MESSAGE : STREAM_RESET;
}

/* ---- life ---- */

struct stream_source *api_stream_source_new(struct engine *engine)
{
    struct event_source *s = hf_alloc(sizeof *s);
    s->engine = engine;
    s->source = (struct stream_source){.context = s,
                                       .check = check,
                                       .find = find,
                                       .look_up = look_up,
                                       .lookup_free = lookup_free,
                                       .seq = seq,
                                       .encode = encode};
    return &s->source;
}

void api_stream_source_free(struct stream_source *source)
{
    struct event_source *s = (struct event_source *)source;
    if (!s)
        return;
    changes_close(&s->changes);
    free(s);
}
