/* GET /v1/locks/{name}/stream and GET /v1/sessions/{s}/stream: what happens to a lock, or to the
 * locks of a session.  A topic is a cell_topic, and the seq of its changes is the index of the
 * journal.  A stream begins with what comes next; a client that resumes where the topic has
 * forgotten what happened is told to read the state again.  On HTTP threads. */

#include "api/routes.h"
#include "cell/cell.h"
#include "http/stream.h"

/* ---- events ---- */

static const char *event_name(enum cell_effect_kind kind)
{
    switch (kind) {
    case CELL_EFFECT_GRANTED:
        return "granted";
    case CELL_EFFECT_RELEASED:
        return "released";
    case CELL_EFFECT_LOST:
        return "lost";
    case CELL_EFFECT_VALUE:
        return "value";
    case CELL_EFFECT_WANTED:
        return "wanted";
    default:
        return NULL; /* clients are not told */
    }
}

struct encoding {
    struct buf *out;
    size_t len_max;
    size_t last;   /* where the last event begins */
    int64_t index; /* of the last event, shown to clients or not */
    bool any;
};

/* Adds an event without its id, which only the last one of a message has. */
static void put_event(void *context, const struct cell_event *e)
{
    struct encoding *x = context;
    struct buf *out = x->out;
    const char *name = event_name(e->kind);
    x->index = e->index;
    if (!name || out->len > x->len_max)
        return;
    x->any = true;
    x->last = out->len;
    buf_printf(out, "event: %s\ndata: {\"index\":%lld", name, (long long)e->index);
    json_put_text_or_null(out, "name", e->name);
    if (e->kind == CELL_EFFECT_VALUE) {
        json_put_bytes(out, "value", e->value, e->value_len);
    } else {
        json_put_text_or_null(out, "label", e->label);
        json_put_text_or_null(out, "owner", e->owner);
        json_put_text_or_null(out, "mode", cell_mode_names[e->mode]);
    }
    buf_printf(out, ",\"fence\":%lld}\n\n", (long long)e->fence);
}

static void put_id(struct encoding *x)
{
    struct buf last = {0};
    buf_printf(&last, "id: %lld\n", (long long)x->index);
    buf_put(&last, x->out->data + x->last, x->out->len - x->last);
    x->out->len = x->last;
    buf_put(x->out, last.data, last.len);
    buf_close(&last);
}

/* ---- the source ---- */

static int64_t seq(const void *topic) { return cell_topic_seq(topic); }

static enum stream_news encode(void *topic, int64_t after, size_t len_max, struct buf *out,
                               int64_t *ret_seq)
{
    struct encoding x = {.out = out, .len_max = len_max, .index = after};
    if (!cell_topic_events(topic, after, put_event, &x)) {
        *ret_seq = cell_topic_seq(topic);
        return STREAM_RESET;
    }
    *ret_seq = x.index;
    if (!x.any)
        return STREAM_NOTHING;
    put_id(&x);
    return out->len <= len_max ? STREAM_MESSAGE : STREAM_RESET;
}

static bool has_ended(const void *topic) { return cell_topic_is_closed(topic); }

static void unref(void *topic) { cell_topic_unref(topic); }

static const struct stream_source lock_streams = {
    .seq = seq, .encode = encode, .has_ended = has_ended, .unref = unref};

/* ---- handlers ---- */

/* There is no topic: the server leads no more, or has too many. */
static void refuse_topic(struct call *c)
{
    char url[CELL_URL_MAX + 1];
    const char *master = cell_redirect(call_api(c)->cell, url);
    if (master)
        lock_elsewhere(c, master);
    else
        answer_problem(&c->http, &problem_overloaded, "Too many locks are being watched.");
}

void locks_stream(struct request *r)
{
    struct call *c = call_of(r);
    const struct cell_text *name = &c->lock.request.command.name;
    if (!stream_read_place(r) || !lock_begin(c, false) || !lock_read_name(c))
        return;
    struct cell_topic *topic = cell_topic_of_name(call_api(c)->cell, name->data, name->len);
    if (topic)
        answer_stream(r, &lock_streams, topic);
    else
        refuse_topic(c);
}

/* The id's key names the session, but only the whole id proves that the caller was given it. */
static void look_for_session(struct cell_request *r, const struct node *n,
                             const struct cell_state *s)
{
    struct call *c = r->context;
    const struct id *id = &r->command.session;
    const struct cell_session *session = cell_session_find(s, id->key);
    (void)n;
    c->lock.session_found = session && id_secret_equal(session->id.secret, id->secret);
}

static void session_looked_for(struct request *r)
{
    struct call *c = call_of(r);
    struct cell_topic *topic = c->lock.topic;
    if (!lock_done(c))
        return;
    if (!c->lock.session_found) {
        answer_problem(r, problem_of_cell(CELL_NO_SESSION), NULL);
        return;
    }
    c->lock.topic = NULL;
    answer_stream(r, &lock_streams, topic);
}

/* The topic is taken before the look: if the session ends after the look, the topic ends too. */
void sessions_stream(struct request *r)
{
    struct call *c = call_of(r);
    if (!stream_read_place(r) || !lock_begin(c, false) || !lock_read_session(c, r->segment))
        return;
    c->lock.topic = cell_topic_of_session(call_api(c)->cell, c->lock.request.command.session.key);
    if (c->lock.topic)
        lock_look(c, false, session_looked_for, look_for_session);
    else
        refuse_topic(c);
}
