/* GET /v1/events/{id}/stream: seat changes, as what src/http's streams tell of.  A topic is an
 * event.  On HTTP threads. */
#include <string.h>

#include "api/render.h"
#include "api/routes.h"
#include "http/stream.h"

void events_stream(struct request *r)
{
    if (!stream_read_place(r))
        return;
    struct event *e = call_event_named(call_of(r), r->segment.data, r->segment.len, events_stream);
    if (e)
        answer_stream(r, e);
}

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
static enum stream_news encode(void *topic, int64_t after, size_t len_max, struct buf *out,
                               int64_t *ret_seq)
{
    struct event *e = topic;
    struct changes changes = {0};
    enum stream_news news = STREAM_NOTHING;
    if (!event_changes(e, after, &changes)) {
        *ret_seq = seq(e);
        news = STREAM_RESET;
    } else {
        *ret_seq = changes.seq;
        if (changes.list.n > 0) {
            put_changes(e, &changes, len_max, out);
            news = out->len <= len_max ? STREAM_MESSAGE : STREAM_RESET;
        }
    }
    changes_close(&changes);
    return news;
}

const struct stream_source api_streams = {.seq = seq, .encode = encode};
