/* See wait_topics.h. */
#include "api/wait_topics.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/table.h"
#include "http/stream_source.h"

#define TOPIC_MS_MAX (INT64_C(3600) * 1000) /* a stream lasts no longer */
#define STATUS_BITS 4

_Static_assert(WAIT_STATUSES <= 1 << STATUS_BITS, "a status fits beside the seq");
_Static_assert(AUDIT_SEQ_BITS + STATUS_BITS < 63, "and the seq beside a status");

struct wait_topic {
    struct table_node node; /* first; in wait_topics.table, if `is_listed` */
    struct wait_topics *topics;
    struct event *event; /* pinned */
    int64_t entry;
    unsigned refs;                  /* under wait_topics.lock, as is_listed */
    bool is_listed;                 /* newcomers get this one */
    _Atomic int64_t ends_us, state; /* state: seq << STATUS_BITS | status; it only grows */
};

struct wait_topics {
    struct lock lock;
    struct table table;
    const struct clock *clock;
};

struct wait_topics *api_wait_topics_new(const struct clock *clock)
{
    struct wait_topics *topics = hf_alloc(sizeof *topics);
    lock_init(&topics->lock);
    topics->clock = clock;
    return topics;
}

void api_wait_topics_free(struct wait_topics *topics)
{
    if (!topics)
        return;
    table_close(&topics->table);
    lock_close(&topics->lock);
    free(topics);
}

static uint64_t hash_of(int64_t entry) { return hash_int((uint64_t)entry); }

/* Under the lock. */
static struct wait_topic *find(const struct wait_topics *topics, int64_t entry)
{
    struct table_node *node = table_chain(&topics->table, hash_of(entry));
    while (node && ((struct wait_topic *)node)->entry != entry)
        node = node->next;
    return (struct wait_topic *)node;
}

static bool has_ended(const void *topic)
{
    const struct wait_topic *t = topic;
    int64_t state = atomic_load_explicit(&t->state, memory_order_acquire);
    enum wait_status status = (enum wait_status)(state & ((1 << STATUS_BITS) - 1));
    return (state && !wait_is_live(status)) ||
           clock_boot_us(t->topics->clock) >=
               atomic_load_explicit(&t->ends_us, memory_order_relaxed);
}

static void unlist(struct wait_topic *t)
{
    if (t->is_listed)
        table_remove(&t->topics->table, &t->node);
    t->is_listed = false;
}

struct wait_topic *wait_topic_take(struct wait_topics *topics, struct event *e, int64_t entry,
                                   int64_t alive_ms)
{
    int64_t ms = alive_ms && alive_ms / 4 < TOPIC_MS_MAX ? alive_ms / 4 : TOPIC_MS_MAX;
    lock_take(&topics->lock);
    struct wait_topic *t = find(topics, entry);
    if (t && has_ended(t)) {
        unlist(t);
        t = NULL;
    }
    if (!t) {
        t = hf_alloc(sizeof *t);
        t->topics = topics;
        t->event = event_share(e);
        t->entry = entry;
        t->ends_us = clock_boot_us(topics->clock) + ms * 1000;
        t->is_listed = true;
        table_add(&topics->table, &t->node, hash_of(entry));
    }
    t->refs++;
    lock_give(&topics->lock);
    return t;
}

void wait_topic_give(struct wait_topic *t)
{
    if (!t)
        return;
    struct wait_topics *topics = t->topics;
    lock_take(&topics->lock);
    bool is_last = --t->refs == 0;
    if (is_last)
        unlist(t);
    lock_give(&topics->lock);
    if (!is_last)
        return;
    event_give(t->event);
    free(t);
}

void wait_topic_note(struct wait_topic *t, int64_t seq, enum wait_status status)
{
    int64_t state = seq << STATUS_BITS | (int64_t)status;
    int64_t before = atomic_load_explicit(&t->state, memory_order_relaxed);
    while (before < state &&
           !atomic_compare_exchange_weak_explicit(&t->state, &before, state, memory_order_acq_rel,
                                                  memory_order_relaxed))
        ;
}

/* Clients that come back find the entry read. */
static void end_topics(struct wait_topics *topics, int64_t event)
{
    struct table_node *next;
    for (struct table_node *node = table_first(&topics->table); node; node = next) {
        struct wait_topic *t = (struct wait_topic *)node;
        next = table_after(&topics->table, node);
        if (HOLD_EVENT(t->entry) != event)
            continue;
        atomic_store_explicit(&t->ends_us, 0, memory_order_relaxed);
        unlist(t);
    }
}

void api_waits_changed(void *context, const struct wait_news *news, size_t n)
{
    struct wait_topics *topics = context;
    lock_take(&topics->lock);
    for (size_t i = 0; i < n && topics->table.n; i++) {
        struct wait_topic *t = find(topics, news[i].entry);
        if (news[i].status == WAIT_NONE)
            end_topics(topics, HOLD_EVENT(news[i].entry));
        else if (t)
            wait_topic_note(t, news[i].seq, news[i].status);
    }
    lock_give(&topics->lock);
}

/* ---- the source ---- */

static int64_t seq(const void *topic)
{
    const struct wait_topic *t = topic;
    return atomic_load_explicit(&t->state, memory_order_acquire) >> STATUS_BITS;
}

/* What a status is called in streams; NULL: clients are not told of it. */
static const char *news_name(enum wait_status status)
{
    switch (status) {
    case WAIT_OFFERED:
        return "offered";
    case WAIT_LAPSED:
        return "lapsed";
    case WAIT_ACCEPTED:
    case WAIT_LEFT:
    case WAIT_ENDED:
        return "ended";
    default:
        return NULL;
    }
}

static enum stream_news encode(void *topic, int64_t after, size_t len_max, struct buf *out,
                               int64_t *ret_seq)
{
    const struct wait_topic *t = topic;
    int64_t state = atomic_load_explicit(&t->state, memory_order_acquire);
    enum wait_status status = (enum wait_status)(state & ((1 << STATUS_BITS) - 1));
    const char *name = news_name(status);
    (void)len_max; /* it is short */
    *ret_seq = state >> STATUS_BITS;
    if (!name || *ret_seq <= after)
        return STREAM_NOTHING;
    stream_put_head(out, *ret_seq, name);
    json_put_text(out, "status", wait_status_text(status));
    buf_lit(out, "}\n\n");
    return STREAM_MESSAGE;
}

static void unref(void *topic) { wait_topic_give(topic); }

const struct stream_source wait_streams = {
    .seq = seq, .encode = encode, .has_ended = has_ended, .unref = unref};
