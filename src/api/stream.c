/* GET /v1/events/{id}/stream: seat changes, as what src/http's streams tell of.  A topic is an
 * event.  On HTTP threads. */

#include "http/stream.h"
#include "api/render.h"
#include "api/routes.h"

static int64_t seq(const void *topic)
{
    const struct event *e = topic;
    return atomic_load_explicit(&e->shown.seq, memory_order_acquire);
}

static void begin_stream(struct request *r)
{
    struct call *c = call_of(r);
    call_note_stale(c);
    answer_stream(r, &api_streams, event_share(c->event));
}

/* A client may have a seq from another server that this one is going to hear of: it is read from
 * the ledger first.  A seq that the ledger does not have either begins with a reset. */
void events_stream(struct request *r)
{
    struct call *c = call_of(r);
    if (!stream_read_place(r))
        return;
    struct event *e = call_event_named(c, r->segment.data, r->segment.len);
    if (!e)
        return;
    if (r->answer.stream.after > seq(e) && engine_is_shared(call_engine(c))) {
        c->command.kind = CMD_FOLLOW;
        c->command.event = e;
        call_submit(c, begin_stream);
        return;
    }
    begin_stream(r);
}

/* ---- its changes ---- */

/* Stops at len_max, beyond which the message is not sent. */
static void put_seats(const struct event *e, const struct change *changes, size_t n, size_t len_max,
                      struct buf *out)
{
    for (size_t i = 0; i < n && out->len <= len_max; i++) {
        json_open(out, NULL, '[');
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
        json_put_text(out, NULL, e->def->areas.v[changes[i].item].name);
        buf_char(out, ':');
        buf_int(out, changes[i].state);
    }
}

static size_t count_kind(const struct changes *c, enum change_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < c->list.n; i++)
        n += c->list.v[i].kind == kind;
    return n;
}

/* The event's status and prices as they are now, which may be those of a later seq. */
static void put_event(struct event *e, int64_t at_seq, bool is_last, struct buf *out)
{
    const struct event_terms *terms = event_terms_take(e);
    int status = atomic_load_explicit(&e->shown.status, memory_order_relaxed);
    if (is_last) {
        stream_put_head(out, at_seq, "event");
    } else { /* without an id: who reads only this resumes before it */
        buf_lit(out, "event: event\ndata: {\"seq\":");
        buf_int(out, at_seq);
    }
    json_put_text(out, "status", status_text(AUDIT_EVENT, status));
    json_put_name(out, "prices");
    render_prices(e->def, terms, out);
    render_types(e->def, terms, out);
    buf_lit(out, "}\n\n");
    event_terms_give(terms);
}

/* Changes of seats come before those of areas, and that of the event is the last. */
static void put_changes(const struct event *e, const struct changes *c, size_t len_max,
                        struct buf *out)
{
    size_t n_seats = count_kind(c, CHANGE_SEAT), n_areas = count_kind(c, CHANGE_AREA);
    stream_put_head(out, c->seq, "seats");
    json_open(out, "changes", '[');
    put_seats(e, c->list.v, n_seats, len_max, out);
    buf_lit(out, "],\"areas\":{");
    put_areas(e, c->list.v + n_seats, n_areas, out);
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
            size_t n_events = count_kind(&changes, CHANGE_EVENT);
            if (n_events)
                put_event(e, changes.seq, changes.list.n == n_events, out);
            if (changes.list.n > n_events)
                put_changes(e, &changes, len_max, out);
            news = out->len <= len_max ? STREAM_MESSAGE : STREAM_RESET;
        }
    }
    changes_close(&changes);
    return news;
}

static void unref(void *topic) { event_give(topic); }

const struct stream_source api_streams = {.seq = seq, .encode = encode, .unref = unref};
