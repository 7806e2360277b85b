/* See stream_hub.h.  Runs on the streams' thread; of the engine it uses event_changes and the
 * layout only. */
#include "http/stream_hub.h"

#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"

#define SCRATCH_KEEP 65536 /* changes; larger scratch is given back */
/* Whoever comes in such a crowd may get what was encoded for another a moment ago, and the rest
 * with the next round. */
#define CROWD 32

struct channel {
    struct event *event;
    struct channel *in_bucket, *prev, *next;
    struct follower *followers;
    size_t n_followers;
    int64_t seq; /* everything up to here is in the messages made so far */
    uint64_t next_no;
    struct message **recent; /* RECENT_MAX slots, number modulo; NULL before the first message */
    size_t n_recent, recent_bytes;
    /* What newcomers missed: kept for one round, since those who were cut off together come back
     * together and missed the same. */
    struct {
        int64_t after;
        struct message *message;
    } missed[MISSED_MAX];
    size_t n_missed, joined; /* since the last round */
};

/* ---- messages ---- */

void message_unref(struct message *m)
{
    if (!m || --m->refs > 0)
        return;
    m->hub->bytes -= m->text.cap + m->packed.cap;
    buf_close(&m->text);
    buf_close(&m->packed);
    free(m);
}

const struct buf *message_bytes(struct message *m, bool packed)
{
    if (packed && m->packed.len == 0) {
        gzip_block(&m->text, &m->packed);
        m->hub->bytes += m->packed.cap;
    }
    return packed ? &m->packed : &m->text;
}

static struct message *message_ref(struct message *m)
{
    m->refs++;
    return m;
}

static struct message *message_new(struct hub *h, int64_t seq, struct buf *text)
{
    struct message *m = hf_alloc(sizeof *m);
    text->data = hf_realloc(text->data, text->len);
    text->cap = text->len;
    *m = (struct message){.hub = h, .refs = 1, .seq = seq, .text = *text};
    h->bytes += text->cap;
    return m;
}

static void put_head(struct buf *out, int64_t seq, const char *event)
{
    buf_lit(out, "id: ");
    buf_int(out, seq);
    buf_lit(out, "\nevent: ");
    buf_str(out, event);
    buf_lit(out, "\ndata: {\"seq\":");
    buf_int(out, seq);
}

static struct message *message_reset(struct hub *h, int64_t seq)
{
    struct buf text = {0};
    put_head(&text, seq, "reset");
    buf_lit(&text, "}\n\n");
    return message_new(h, seq, &text);
}

static void put_seats(struct hub *h, const struct event *e, size_t n, struct buf *out)
{
    static const char letters[4] = {'.', 'h', 'b', 'x'};
    for (size_t i = 0; i < n && out->len <= MESSAGE_BYTES_MAX; i++) {
        const struct change *c = &h->changes.list.v[i];
        h->name.len = 0;
        event_seat_name(e, c->item, &h->name);
        buf_str(out, i ? ",[" : "[");
        buf_json(out, h->name.data, h->name.len);
        buf_lit(out, ",\"");
        buf_char(out, letters[c->state & 3]);
        buf_lit(out, "\"]");
    }
}

/* h->changes as a message; NULL: too large.  O(changes). */
static struct message *message_seats(struct hub *h, const struct event *e)
{
    const struct changes *c = &h->changes;
    struct buf text = {0};
    size_t n_seats = 0;
    while (n_seats < c->list.n && !c->list.v[n_seats].is_area)
        n_seats++;
    put_head(&text, c->seq, "seats");
    buf_lit(&text, ",\"changes\":[");
    put_seats(h, e, n_seats, &text);
    buf_lit(&text, "],\"areas\":{");
    for (size_t i = n_seats; i < c->list.n; i++) {
        const char *name = e->def->areas.v[c->list.v[i].item].name;
        if (i > n_seats)
            buf_char(&text, ',');
        buf_json(&text, name, strlen(name));
        buf_char(&text, ':');
        buf_int(&text, c->list.v[i].state);
    }
    buf_lit(&text, "}}\n\n");
    if (text.len > MESSAGE_BYTES_MAX || h->bytes + text.len > MESSAGES_BYTES_MAX) {
        buf_close(&text);
        return NULL;
    }
    return message_new(h, c->seq, &text);
}

/* What happened after `after`, and *ret_seq up to where; NULL: nothing that shows. */
static struct message *message_since(struct hub *h, struct event *e, int64_t after,
                                     int64_t *ret_seq)
{
    struct message *m;
    if (!event_changes(e, after, &h->changes)) {
        *ret_seq = atomic_load_explicit(&e->seq, memory_order_acquire);
        return message_reset(h, *ret_seq);
    }
    *ret_seq = h->changes.seq;
    if (h->changes.list.n == 0)
        return NULL;
    m = message_seats(h, e);
    if (h->changes.list.cap > SCRATCH_KEEP)
        changes_close(&h->changes);
    return m ? m : message_reset(h, *ret_seq);
}

/* ---- channels ---- */

static struct channel **bucket(struct hub *h, const struct event *e)
{
    struct channel **at = &h->buckets[(uint64_t)e->def->id.key % HUB_BUCKETS];
    while (*at && (*at)->event != e)
        at = &(*at)->in_bucket;
    return at;
}

static struct channel *channel_get(struct hub *h, struct event *e)
{
    struct channel **at = bucket(h, e);
    if (*at)
        return *at;
    struct channel *c = hf_alloc(sizeof *c);
    c->event = e;
    c->seq = atomic_load_explicit(&e->seq, memory_order_acquire);
    c->next = h->channels;
    if (c->next)
        c->next->prev = c;
    h->channels = c;
    *at = c;
    return c;
}

static void forget_missed(struct channel *c)
{
    for (size_t i = 0; i < c->n_missed; i++)
        message_unref(c->missed[i].message);
    c->n_missed = c->joined = 0;
}

static void drop_oldest(struct channel *c)
{
    struct message *m = c->recent[(c->next_no - c->n_recent--) % RECENT_MAX];
    c->recent_bytes -= m->text.len;
    message_unref(m);
}

static void channel_free(struct hub *h, struct channel *c)
{
    forget_missed(c);
    while (c->n_recent > 0)
        drop_oldest(c);
    *bucket(h, c->event) = c->in_bucket;
    if (c->prev)
        c->prev->next = c->next;
    else
        h->channels = c->next;
    if (c->next)
        c->next->prev = c->prev;
    free((void *)c->recent);
    free(c);
}

static void channel_push(struct channel *c, struct message *m)
{
    if (!c->recent)
        c->recent = hf_alloc(RECENT_MAX * sizeof *c->recent);
    while (c->n_recent == RECENT_MAX ||
           (c->n_recent > 0 && c->recent_bytes + m->text.len > RECENT_BYTES_MAX))
        drop_oldest(c);
    c->recent[c->next_no++ % RECENT_MAX] = m;
    c->n_recent++;
    c->recent_bytes += m->text.len;
}

/* ---- followers ---- */

/* Found among those of this round, or made and kept for the others. */
static struct message *missed_since(struct hub *h, struct channel *c, int64_t after,
                                    int64_t *ret_seq)
{
    int64_t now = atomic_load_explicit(&c->event->seq, memory_order_acquire);
    bool crowd = ++c->joined > CROWD;
    size_t slot = c->n_missed < MISSED_MAX ? c->n_missed : c->joined % MISSED_MAX;
    for (size_t i = 0; i < c->n_missed; i++) {
        struct message *m = c->missed[i].message;
        if (c->missed[i].after != after)
            continue;
        if (crowd || m->seq == now) {
            *ret_seq = m->seq;
            return message_ref(m);
        }
        slot = i;
    }
    struct message *m = message_since(h, c->event, after, ret_seq);
    if (!m)
        return NULL;
    if (slot == c->n_missed)
        c->n_missed++;
    else
        message_unref(c->missed[slot].message);
    c->missed[slot].after = after;
    c->missed[slot].message = message_ref(m);
    return m;
}

void hub_join(struct hub *h, struct follower *f, struct event *e, int64_t after)
{
    struct channel *c = channel_get(h, e);
    *f = (struct follower){.channel = c, .next_no = c->next_no, .next = c->followers};
    /* Not before c->seq, where the channel's next message begins: nothing can be left out. */
    f->seq = atomic_load_explicit(&e->seq, memory_order_acquire);
    if (after == AFTER_UNKNOWN)
        f->missed = message_reset(h, f->seq);
    else if (after != AFTER_NOW)
        f->missed = missed_since(h, c, after, &f->seq);
    if (f->next)
        f->next->prev = f;
    c->followers = f;
    c->n_followers++;
}

void hub_leave(struct hub *h, struct follower *f)
{
    struct channel *c = f->channel;
    if (!c)
        return;
    message_unref(f->missed);
    if (f->prev)
        f->prev->next = f->next;
    else
        c->followers = f->next;
    if (f->next)
        f->next->prev = f->prev;
    *f = (struct follower){0};
    if (--c->n_followers == 0)
        channel_free(h, c);
}

struct message *hub_next(struct follower *f, bool *ret_behind)
{
    const struct channel *c = f->channel;
    struct message *m = f->missed;
    if (m) {
        f->missed = NULL;
        return m;
    }
    while (f->next_no < c->next_no) {
        if (c->next_no - f->next_no > c->n_recent) {
            *ret_behind = true;
            return NULL;
        }
        m = c->recent[f->next_no++ % RECENT_MAX];
        if (m->seq > f->seq) { /* else it was in what was missed */
            f->seq = m->seq;
            return message_ref(m);
        }
    }
    return NULL;
}

size_t hub_round(struct hub *h, void (*wake)(struct follower *f))
{
    size_t woken = 0;
    for (struct channel *c = h->channels; c; c = c->next) {
        forget_missed(c);
        if (atomic_load_explicit(&c->event->seq, memory_order_acquire) == c->seq)
            continue;
        struct message *m = message_since(h, c->event, c->seq, &c->seq);
        if (!m)
            continue;
        channel_push(c, m);
        for (struct follower *f = c->followers; f; f = f->next)
            wake(f);
        woken += c->n_followers;
    }
    return woken;
}

void hub_close(struct hub *h)
{
    hf_check(!h->channels && h->bytes == 0);
    changes_close(&h->changes);
    buf_close(&h->name);
}
