/* See stream_hub.h.  Runs on the thread of its loop. */
#include "http/stream_hub.h"

#include <stdlib.h>

#include "base/gzip.h"
#include "base/hash.h"
#include "base/status.h"

/* If more than this many subscribers join a channel between two rounds, they may get a message that
 * was encoded for another of them a moment ago, and the rest with the next round.  Those of them
 * that no such message serves, and that are FAR behind, begin with a reset, so that a crowd with
 * many different places cannot keep the loop busy. */
#define CROWD 32
#define FAR 1000 /* changes */

struct channel {
    const struct stream_source *source;
    void *topic;
    bool ended;                /* no message will follow */
    struct channel *in_bucket; /* the next of the same bucket */
    struct channel *prev, *next;
    struct subscriber *subscribers;
    size_t n_subscribers;
    int64_t seq;             /* everything up to here is in the messages made so far */
    uint64_t next_no;        /* the number of the next message */
    struct message **recent; /* RECENT_MAX slots: message n is in slot n % RECENT_MAX.  NULL before
                                the first message */
    size_t n_recent, recent_bytes;
    /* What newcomers missed.  It is kept for one round, since clients that were cut off together
     * come back together and missed the same. */
    struct {
        int64_t after;
        struct message *message;
    } missed[MISSED_MAX];
    size_t n_missed;
    size_t n_joined; /* since the last round */
};

/* ---- messages ---- */

static size_t size_of(const struct message *m) { return m->text.cap + m->packed.cap; }

void message_unref(struct message *m)
{
    if (!m || --m->refs > 0)
        return;
    m->hub->bytes -= size_of(m);
    m->hub->pinned_bytes -= m->is_pinned ? size_of(m) : 0;
    buf_close(&m->text);
    buf_close(&m->packed);
    free(m);
}

const struct buf *message_bytes(struct message *m, bool packed)
{
    if (packed && m->packed.len == 0) {
        gzip_block(&m->text, &m->packed);
        m->hub->bytes += m->packed.cap;
        m->hub->pinned_bytes += m->is_pinned ? m->packed.cap : 0;
    }
    return packed ? &m->packed : &m->text;
}

/* The channel gives its reference back: whoever else has the message pins it. */
static void message_let_go(struct message *m)
{
    if (m->refs > 1 && !m->is_pinned) {
        m->is_pinned = true;
        m->hub->pinned_bytes += size_of(m);
    }
    message_unref(m);
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

void stream_put_head(struct buf *out, int64_t seq, const char *event)
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
    stream_put_head(&text, seq, "reset");
    buf_lit(&text, "}\n\n");
    return message_new(h, seq, &text);
}

/* What is kept for new messages: a quarter, but room for a long one if that is not most of it. */
static size_t kept_for_news(const struct hub *h)
{
    size_t quarter = h->bytes_max / 4, half = h->bytes_max / 2;
    if (quarter >= MESSAGE_BYTES_MAX)
        return quarter;
    return half < MESSAGE_BYTES_MAX ? half : MESSAGE_BYTES_MAX;
}

bool hub_is_short(const struct hub *h)
{
    return h->pinned_bytes > 0 && h->bytes + kept_for_news(h) > h->bytes_max;
}

/* How long a message may be that leaves `kept` bytes. */
static size_t message_len_max(const struct hub *h, size_t kept)
{
    size_t left = h->bytes + kept < h->bytes_max ? h->bytes_max - h->bytes - kept : 0;
    return left < MESSAGE_BYTES_MAX ? left : MESSAGE_BYTES_MAX;
}

/* A message about everything after `after`, and *ret_seq up to where; NULL if nothing that a client
 * can see has changed. */
static struct message *message_since(struct hub *h, const struct channel *c, int64_t after,
                                     size_t len_max, int64_t *ret_seq)
{
    struct buf text = {0};
    enum stream_news news = c->source->encode(c->topic, after, len_max, &text, ret_seq);
    if (news == STREAM_MESSAGE)
        return message_new(h, *ret_seq, &text);
    buf_close(&text);
    return news == STREAM_RESET ? message_reset(h, *ret_seq) : NULL;
}

/* ---- channels ---- */

static struct channel **bucket(struct hub *h, const void *topic)
{
    struct channel **at = &h->buckets[hash_int((uintptr_t)topic) % HUB_BUCKETS];
    while (*at && (*at)->topic != topic)
        at = &(*at)->in_bucket;
    return at;
}

static void unref_topic(const struct stream_source *source, void *topic)
{
    if (source->unref)
        source->unref(topic);
}

static struct channel *channel_get(struct hub *h, const struct stream_source *source, void *topic)
{
    struct channel **at = bucket(h, topic);
    if (*at) {
        hf_check((*at)->source == source);
        unref_topic(source, topic); /* the channel has a reference, and needs one only */
        return *at;
    }
    struct channel *c = hf_alloc(sizeof *c);
    c->source = source;
    c->topic = topic;
    c->seq = source->seq(topic);
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
        message_let_go(c->missed[i].message);
    c->n_missed = c->n_joined = 0;
}

static void drop_oldest(struct channel *c)
{
    struct message *m = c->recent[(c->next_no - c->n_recent--) % RECENT_MAX];
    c->recent_bytes -= m->text.len;
    message_let_go(m);
}

static void channel_free(struct hub *h, struct channel *c)
{
    forget_missed(c);
    while (c->n_recent > 0)
        drop_oldest(c);
    *bucket(h, c->topic) = c->in_bucket;
    if (c->prev)
        c->prev->next = c->next;
    else
        h->channels = c->next;
    if (c->next)
        c->next->prev = c->prev;
    unref_topic(c->source, c->topic);
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

/* ---- subscribers ---- */

/* Encodes for one newcomer, and sets the time that it took against the ration: the processor's
 * time, so that on a busy machine readers are not refused for what others take. */
static struct message *replay_since(struct hub *h, const struct channel *c, int64_t after,
                                    int64_t *ret_seq)
{
    size_t len_max = message_len_max(h, kept_for_news(h));
    int64_t begun_us = h->clock ? clock_thread_us(h->clock) : 0;
    struct message *m = message_since(h, c, after, len_max, ret_seq);
    if (h->clock) {
        int64_t took_us = clock_thread_us(h->clock) - begun_us;
        int64_t now_us = clock_monotonic_us(h->clock);
        int64_t from_us = h->replays_us > now_us ? h->replays_us : now_us;
        h->replays_us = from_us + took_us * REPLAYS_PART;
    }
    return m;
}

static bool may_replay(const struct hub *h, struct subscriber *s)
{
    if (h->clock && h->replays_us - clock_monotonic_us(h->clock) > REPLAYS_BURST_US)
        return false;
    return !h->may_replay || h->may_replay(s);
}

/* A message that was made for another newcomer since the last round: for one that missed the same,
 * or, if `covers`, at least what this one missed, up to a moment ago.  NULL: there is none. */
static struct message *find_missed(const struct channel *c, int64_t after, bool covers)
{
    int64_t now = c->source->seq(c->topic);
    for (size_t i = 0; i < c->n_missed; i++) {
        struct message *m = c->missed[i].message;
        int64_t from = c->missed[i].after;
        if (covers ? from <= after && after <= m->seq : from == after && m->seq == now)
            return m;
    }
    return NULL;
}

/* Keeps it for other newcomers, in the place of one that began where this does, or of any. */
static void keep_missed(struct channel *c, int64_t after, struct message *m)
{
    size_t slot = 0;
    while (slot < c->n_missed && c->missed[slot].after != after)
        slot++;
    if (slot == MISSED_MAX)
        slot = c->n_joined % MISSED_MAX;
    if (slot == c->n_missed)
        c->n_missed++;
    else
        message_let_go(c->missed[slot].message);
    c->missed[slot].after = after;
    c->missed[slot].message = message_ref(m);
}

/* The message about everything after `after`: found among those made since the last round, or made
 * now and kept for other newcomers. */
static struct message *missed_since(struct hub *h, struct subscriber *s, int64_t after,
                                    int64_t *ret_seq)
{
    struct channel *c = s->channel;
    int64_t now = c->source->seq(c->topic);
    bool crowd = ++c->n_joined > CROWD;
    struct message *m = find_missed(c, after, crowd);
    if (!m && after != now && ((crowd && now - after > FAR) || !may_replay(h, s))) {
        m = find_missed(c, after, true);
        if (!m) {
            *ret_seq = now;
            return message_reset(h, now);
        }
    }
    if (m) {
        *ret_seq = m->seq;
        return message_ref(m);
    }
    m = replay_since(h, c, after, ret_seq);
    if (m)
        keep_missed(c, after, m);
    return m;
}

void hub_join(struct hub *h, struct subscriber *s, const struct stream_source *source, void *topic,
              int64_t after)
{
    struct channel *c = channel_get(h, source, topic);
    *s = (struct subscriber){.channel = c, .next_no = c->next_no, .next = c->subscribers};
    /* Not before c->seq, where the channel's next message begins: nothing can be left out. */
    s->seq = source->seq(topic);
    if (after == AFTER_UNKNOWN)
        s->missed = message_reset(h, s->seq);
    else if (after != AFTER_NOW)
        s->missed = missed_since(h, s, after, &s->seq);
    if (s->next)
        s->next->prev = s;
    c->subscribers = s;
    c->n_subscribers++;
}

void hub_leave(struct hub *h, struct subscriber *s)
{
    struct channel *c = s->channel;
    if (!c)
        return;
    message_unref(s->missed);
    if (s->prev)
        s->prev->next = s->next;
    else
        c->subscribers = s->next;
    if (s->next)
        s->next->prev = s->prev;
    *s = (struct subscriber){0};
    if (--c->n_subscribers == 0)
        channel_free(h, c);
}

struct message *hub_next(struct subscriber *s, enum hub_place *ret_place)
{
    const struct channel *c = s->channel;
    struct message *m = s->missed;
    if (m) {
        s->missed = NULL;
        return m;
    }
    while (s->next_no < c->next_no) {
        if (c->next_no - s->next_no > c->n_recent) {
            *ret_place = HUB_BEHIND;
            return NULL;
        }
        m = c->recent[s->next_no++ % RECENT_MAX];
        if (m->seq > s->seq) { /* else `missed` has told of it */
            s->seq = m->seq;
            return message_ref(m);
        }
    }
    *ret_place = c->ended ? HUB_ENDED : HUB_WAITS;
    return NULL;
}

/* Makes the message about what is new.  Returns false if there is nothing to tell. */
static bool channel_round(struct hub *h, struct channel *c)
{
    bool ends = !c->ended && c->source->has_ended && c->source->has_ended(c->topic);
    struct message *m = NULL;
    if (c->source->seq(c->topic) != c->seq)
        m = message_since(h, c, c->seq, message_len_max(h, 0), &c->seq);
    c->ended |= ends;
    if (m) {
        m->since_us = h->looked_us;
        channel_push(c, m);
    }
    return m || ends;
}

size_t hub_round(struct hub *h, int64_t now_us, void (*wake)(struct subscriber *s))
{
    size_t woken = 0;
    for (struct channel *c = h->channels; c; c = c->next) {
        forget_missed(c);
        if (!channel_round(h, c))
            continue;
        for (struct subscriber *s = c->subscribers; s; s = s->next)
            wake(s);
        woken += c->n_subscribers;
    }
    h->looked_us = now_us;
    return woken;
}

void hub_close(struct hub *h) { hf_check(!h->channels && h->bytes == 0 && h->pinned_bytes == 0); }
