/* See topics.h.
 *
 * Two kinds of locks: that of the table guards which topics there are and their reference counts;
 * that of a topic guards its events.  The table's is taken first, where both are.  What was
 * collected belongs to the cell's thread alone. */
#include "cell/topics.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/lock.h"

/* A power of two.  The table does not grow as one of base/table.h does: the cell's thread and the
 * loops would wait for its lock while every topic moves. */
#define BUCKETS 16384

/* An event as it is stored: the texts follow one another in `text`. */
struct item {
    struct item *next; /* the one that came after it */
    int64_t index, fence;
    enum cell_effect_kind kind;
    enum cell_mode mode;
    struct cell_owner owner;
    bool has_value;
    size_t name_len, label_len, value_len;
    char text[];
};

struct cell_topic {
    struct topics *topics;
    int64_t session; /* 0: the topic is of a name */
    uint64_t hash;
    size_t refs;               /* under the table's lock */
    bool is_listed;            /* in the table; under its lock */
    struct cell_topic *bucket; /* the next one of the same bucket */

    struct item *collected, **collected_end; /* the cell's thread's */
    bool is_collecting, closes;              /* the cell's thread's */

    struct lock lock; /* of the next five */
    struct item *oldest, **newest_end;
    size_t n, bytes;
    int64_t from;        /* all events after this index are remembered */
    _Atomic int64_t seq; /* of the last event */
    atomic_bool is_closed;

    size_t len;
    char name[];
};

struct topics {
    struct lock lock; /* of the table */
    bool leads;
    struct cell_topic *buckets[BUCKETS];
    atomic_size_t n;     /* in the table */
    size_t n_alive;      /* also those that are closed and still read */
    atomic_size_t bytes; /* of all events that are remembered */
    /* The newest entry of which something may have been collected.  A topic that is made now has
     * the events after it. */
    _Atomic int64_t begun;
    VEC(struct cell_topic *) changed; /* the cell's thread's; each has a reference */
};

struct topics *topics_new(void)
{
    struct topics *t = hf_alloc(sizeof *t);
    lock_init(&t->lock);
    return t;
}

void topics_free(struct topics *t)
{
    hf_check(t->n_alive == 0);
    vec_close(&t->changed);
    lock_close(&t->lock);
    free(t);
}

/* ---- events ---- */

static size_t item_size(const struct item *item)
{
    return sizeof *item + item->name_len + item->label_len + item->value_len;
}

static void drop_oldest(struct cell_topic *topic)
{
    struct item *item = topic->oldest;
    size_t size = item_size(item);
    topic->oldest = item->next;
    if (!topic->oldest)
        topic->newest_end = &topic->oldest;
    topic->n--;
    topic->bytes -= size;
    topic->from = item->index; /* also what is left of that entry is of no use any more */
    atomic_fetch_sub(&topic->topics->bytes, size);
    free(item);
}

static void remember(struct cell_topic *topic, struct item *item)
{
    size_t size = item_size(item);
    item->next = NULL;
    while (topic->n > 0 && (topic->n == TOPIC_EVENTS_MAX || topic->bytes + size > TOPIC_BYTES_MAX ||
                            atomic_load(&topic->topics->bytes) + size > TOPICS_BYTES_MAX))
        drop_oldest(topic);
    *topic->newest_end = item;
    topic->newest_end = &item->next;
    topic->n++;
    topic->bytes += size;
    atomic_fetch_add(&topic->topics->bytes, size);
    if (topic->n == 1 && atomic_load(&topic->topics->bytes) > TOPICS_BYTES_MAX)
        drop_oldest(topic);
}

static void show(const struct cell_topic *topic, const struct item *item, struct cell_event *ret)
{
    const char *text = item->text;
    *ret = (struct cell_event){
        .index = item->index, .kind = item->kind, .mode = item->mode, .fence = item->fence};
    if (topic->session) {
        memcpy(ret->name, text, item->name_len);
        ret->name[item->name_len] = '\0';
    } else {
        memcpy(ret->name, topic->name, topic->len);
        ret->name[topic->len] = '\0';
    }
    text += item->name_len;
    memcpy(ret->label, text, item->label_len);
    ret->label[item->label_len] = '\0';
    if (item->owner.digits)
        cell_owner_format(&item->owner, ret->owner);
    if (item->has_value) {
        ret->value = (char *)(uintptr_t)(text + item->label_len);
        ret->value_len = item->value_len;
    }
}

/* ---- the table ---- */

static uint64_t hash_of(int64_t session, const char *name, size_t len)
{
    return session ? hash_int((uint64_t)session) : hash_keyed(name, len);
}

/* Where the topic is in its bucket, or would be. */
static struct cell_topic **find(struct topics *t, int64_t session, const char *name, size_t len)
{
    uint64_t hash = hash_of(session, name, len);
    struct cell_topic **at = &t->buckets[hash % BUCKETS];
    for (; *at; at = &(*at)->bucket)
        if ((*at)->hash == hash && (*at)->session == session &&
            (session || ((*at)->len == len && memcmp((*at)->name, name, len) == 0)))
            break;
    return at;
}

/* Nobody finds it any more. */
static void unlist(struct cell_topic *topic)
{
    if (!topic->is_listed)
        return;
    *find(topic->topics, topic->session, topic->name, topic->len) = topic->bucket;
    topic->is_listed = false;
    atomic_fetch_sub(&topic->topics->n, 1);
}

static void topic_free(struct cell_topic *topic)
{
    while (topic->n > 0)
        drop_oldest(topic);
    hf_check(!topic->collected);
    lock_close(&topic->lock);
    free(topic);
}

struct cell_topic *topics_get(struct topics *t, int64_t session, const char *name, size_t len)
{
    if (session) {
        name = "";
        len = 0;
    }
    hf_check(len <= CELL_NAME_MAX);
    lock_take(&t->lock);
    struct cell_topic **at = find(t, session, name, len), *topic = *at;
    if (topic) {
        topic->refs++;
    } else if (t->leads && atomic_load(&t->n) < TOPICS_MAX) {
        topic = hf_alloc(sizeof *topic + len);
        topic->topics = t;
        topic->session = session;
        topic->hash = hash_of(session, name, len);
        topic->refs = 1;
        topic->is_listed = true;
        topic->len = len;
        if (len)
            memcpy(topic->name, name, len);
        topic->newest_end = &topic->oldest;
        lock_init(&topic->lock);
        *at = topic;
        t->n_alive++;
        /* First counted, then the index read: topics_collect does it the other way round, so either
         * it sees that there is a topic, or the topic begins after the entry. */
        atomic_fetch_add(&t->n, 1);
        topic->from = atomic_load(&t->begun);
        atomic_store(&topic->seq, topic->from);
    }
    lock_give(&t->lock);
    return topic;
}

void cell_topic_unref(struct cell_topic *topic)
{
    if (!topic)
        return;
    struct topics *t = topic->topics;
    lock_take(&t->lock);
    bool is_last = --topic->refs == 0;
    if (is_last) {
        unlist(topic);
        topic_free(topic);
        t->n_alive--;
    }
    lock_give(&t->lock);
}

int64_t cell_topic_seq(const struct cell_topic *topic) { return atomic_load(&topic->seq); }

bool cell_topic_is_closed(const struct cell_topic *topic) { return atomic_load(&topic->is_closed); }

bool cell_topic_events(struct cell_topic *topic, int64_t seq,
                       void (*each)(void *context, const struct cell_event *e), void *context)
{
    lock_take(&topic->lock);
    bool is_known = seq >= topic->from && seq <= atomic_load(&topic->topics->begun);
    for (const struct item *item = is_known ? topic->oldest : NULL; item; item = item->next) {
        struct cell_event event;
        if (item->index <= seq)
            continue;
        show(topic, item, &event);
        each(context, &event);
    }
    lock_give(&topic->lock);
    return is_known;
}

/* ---- news ---- */

static struct item *item_new(int64_t index, const struct cell_effect *e, bool for_session)
{
    size_t name_len = 0, value_len = 0;
    const char *name = for_session ? cell_name_text(e->name, &name_len) : NULL;
    const char *value = e->kind == CELL_EFFECT_VALUE ? cell_name_value(e->name, &value_len) : NULL;
    const char *label = e->session && e->session->label ? e->session->label : "";
    if (e->acquisition && e->acquisition->label && *e->acquisition->label)
        label = e->acquisition->label;
    size_t label_len = strnlen(label, CELL_LABEL_MAX);
    if (!value)
        value_len = 0;
    struct item *item = hf_alloc(sizeof *item + name_len + label_len + value_len);
    item->index = index;
    item->fence = e->fence;
    item->kind = e->kind;
    if (e->acquisition) {
        item->mode = e->acquisition->mode;
        item->owner = e->acquisition->owner;
    }
    item->has_value = value != NULL;
    item->name_len = name_len;
    item->label_len = label_len;
    item->value_len = value_len;
    char *text = item->text;
    if (name_len)
        memcpy(text, name, name_len);
    if (label_len)
        memcpy(text + name_len, label, label_len);
    if (value_len)
        memcpy(text + name_len + label_len, value, value_len);
    return item;
}

/* The topic, among those that will be told; NULL: nobody follows.  A topic that was made after the
 * entry began gets what is left of it, too, and never shows it. */
static struct cell_topic *interested(struct topics *t, int64_t session, const char *name,
                                     size_t len)
{
    lock_take(&t->lock);
    struct cell_topic *topic = *find(t, session, name, len);
    bool is_new = topic && !topic->is_collecting;
    if (is_new) {
        topic->refs++;
        topic->is_collecting = true;
        topic->collected_end = &topic->collected;
    }
    lock_give(&t->lock);
    if (is_new)
        *vec_push(&t->changed) = topic;
    return topic;
}

static void collect(struct topics *t, int64_t index, const struct cell_effect *e, int64_t session,
                    const char *name, size_t len)
{
    struct cell_topic *topic = interested(t, session, name, len);
    if (!topic)
        return;
    if (e->kind == CELL_EFFECT_CLOSED) {
        topic->closes = true;
        return;
    }
    struct item *item = item_new(index, e, session != 0);
    *topic->collected_end = item;
    topic->collected_end = &item->next;
}

void topics_collect(struct topics *t, int64_t index, const struct cell_effect *e)
{
    enum { OF_NAME = 1, OF_SESSION = 2 };
    static const int whose[] = {
        [CELL_EFFECT_GRANTED] = OF_NAME | OF_SESSION,
        [CELL_EFFECT_RELEASED] = OF_NAME | OF_SESSION,
        [CELL_EFFECT_LOST] = OF_NAME | OF_SESSION,
        [CELL_EFFECT_VALUE] = OF_NAME,
        [CELL_EFFECT_WANTED] = OF_SESSION,
        [CELL_EFFECT_CLOSED] = OF_SESSION,
    };
    if (atomic_load_explicit(&t->begun, memory_order_relaxed) != index)
        atomic_store(&t->begun, index);
    if (atomic_load(&t->n) == 0 || (size_t)e->kind >= sizeof whose / sizeof *whose)
        return;
    if (whose[e->kind] & OF_NAME && e->name) {
        size_t len = 0;
        const char *name = cell_name_text(e->name, &len);
        collect(t, index, e, 0, name, len);
    }
    if (whose[e->kind] & OF_SESSION && e->session)
        collect(t, index, e, e->session->id.key, "", 0);
}

static void publish(struct topics *t, struct cell_topic *topic)
{
    struct item *item = topic->collected;
    lock_take(&topic->lock);
    while (item) {
        struct item *next = item->next;
        int64_t index = item->index;
        remember(topic, item);
        if (!next || next->index != index)
            atomic_store(&topic->seq, index);
        item = next;
    }
    lock_give(&topic->lock);
    topic->collected = NULL;
    topic->is_collecting = false;
    if (topic->closes) {
        lock_take(&t->lock);
        unlist(topic);
        lock_give(&t->lock);
        atomic_store(&topic->is_closed, true);
    }
    cell_topic_unref(topic);
}

void topics_publish(struct topics *t, int64_t index)
{
    for (size_t i = 0; i < t->changed.n; i++)
        publish(t, t->changed.v[i]);
    vec_clear(&t->changed);
    if (index > atomic_load_explicit(&t->begun, memory_order_relaxed))
        atomic_store(&t->begun, index);
}

void topics_lead(struct topics *t, bool leads)
{
    topics_publish(t, 0);
    lock_take(&t->lock);
    t->leads = leads;
    for (size_t i = 0; !leads && atomic_load(&t->n) > 0 && i < BUCKETS; i++)
        for (struct cell_topic *topic = t->buckets[i], *next; topic; topic = next) {
            next = topic->bucket;
            unlist(topic);
            atomic_store(&topic->is_closed, true);
        }
    lock_give(&t->lock);
}
