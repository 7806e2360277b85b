/* See waitlist.h.  On the worker's thread. */
#include "view/waitlist.h"

#include <stdlib.h>
#include <string.h>

#include "base/client_number.h"
#include "base/hash.h"
#include "view/view.h"

/* ---- counts of owners and addresses ---- */

struct wait_count {
    uint64_t who;
    int64_t n;
};

static uint64_t count_hash(uint64_t key) { return hash_int(key); }
static bool count_is_empty(const void *slot) { return ((const struct wait_count *)slot)->n == 0; }
static const struct slots_kind count_kind = {sizeof(struct wait_count), count_hash, count_is_empty};

static void count(struct slots *s, uint64_t who, int64_t by)
{
    if (who)
        ((struct wait_count *)slots_get(s, &count_kind, who))->n += by;
}

static uint32_t counted(const struct slots *s, uint64_t who)
{
    const struct wait_count *slot = who ? slots_find(s, &count_kind, who) : NULL;
    return slot ? (uint32_t)slot->n : 0;
}

static void count_entry(struct waitlist *w, const struct wait_entry *x, int64_t by)
{
    count(&w->owners, x->owner, by);
    count(&w->clients, x->client, by);
    count(&w->clients, client_number_network(x->client), by);
}

uint32_t waitlist_of_owner(const struct waitlist *w, uint64_t owner)
{
    return w ? counted(&w->owners, owner) : 0;
}

uint32_t waitlist_of_client(const struct waitlist *w, uint64_t client)
{
    return w ? counted(&w->clients, client) : 0;
}

/* ---- life ---- */

struct waitlist *waitlist_get(struct event *e)
{
    if (!e->waitlist) {
        e->waitlist = hf_alloc(sizeof *e->waitlist);
        e->waitlist->event = e;
    }
    return e->waitlist;
}

void waitlist_free(struct waitlist *w)
{
    if (!w)
        return;
    hf_check(!w->next.place);
    for (struct table_node *x = table_first(&w->queues); x; x = table_after(&w->queues, x))
        heap_close(&((struct wait_queue *)x)->turns);
    table_free_items(&w->queues);
    table_free_items(&w->types);
    table_free_items(&w->entries);
    heap_close(&w->open);
    heap_close(&w->due);
    vec_close(&w->freed);
    slots_close(&w->owners);
    slots_close(&w->clients);
    free(w);
}

size_t waitlist_memory(const struct waitlist *w)
{
    /* An entry with the allocator's share, its bucket, and its places in two heaps. */
    size_t of_entry = sizeof(struct wait_entry) + 16 + 8 + 2 * 16;
    return w ? sizeof *w + w->entries.n * of_entry + w->queues.n * sizeof(struct wait_queue) +
                   w->types.n * sizeof(struct wait_types)
             : 0;
}

/* ---- queues ---- */

static struct wait_queue *queue_of(struct waitlist *w, const struct wait_wish *wish)
{
    struct wait_wish untyped = wait_wish_untyped(wish);
    uint64_t hash = hash_keyed(&untyped, sizeof untyped);
    for (struct table_node *x = table_chain(&w->queues, hash); x; x = x->next)
        if (wait_wish_equal(&((struct wait_queue *)x)->wish, &untyped))
            return (struct wait_queue *)x;
    struct wait_queue *q = hf_alloc(sizeof *q);
    q->wish = untyped;
    table_add(&w->queues, &q->node, hash);
    return q;
}

static struct wait_types *types_of(struct waitlist *w, const struct wait_wish *wish)
{
    static const uint16_t none[TYPES_MAX];
    if (memcmp(wish->types, none, sizeof none) == 0)
        return NULL;
    uint64_t hash = hash_keyed(wish->types, sizeof wish->types);
    struct wait_types *t = (struct wait_types *)table_chain(&w->types, hash);
    while (t && memcmp(t->places, wish->types, sizeof t->places) != 0)
        t = (struct wait_types *)t->node.next;
    if (!t) {
        t = hf_alloc(sizeof *t);
        memcpy(t->places, wish->types, sizeof t->places);
        table_add(&w->types, &t->node, hash);
    }
    t->n++;
    return t;
}

struct wait_entry *wait_queue_first(const struct wait_queue *q)
{
    const struct heap_node *first = heap_first(&q->turns);
    return first ? heap_item(first, struct wait_entry, turn) : NULL;
}

static void open_queue(struct waitlist *w, struct wait_queue *q)
{
    const struct wait_entry *first = wait_queue_first(q);
    if (first)
        heap_set(&w->open, &q->open, first->rank);
    else
        heap_remove(&w->open, &q->open);
}

void waitlist_shut(struct waitlist *w, struct wait_queue *q) { heap_remove(&w->open, &q->open); }

struct wait_queue *waitlist_first_open(const struct waitlist *w)
{
    struct heap_node *first = heap_first(&w->open);
    return first ? heap_item(first, struct wait_queue, open) : NULL;
}

/* An open queue stands in the order of its first entry, whichever that is now. */
static void first_changed(struct waitlist *w, struct wait_queue *q)
{
    if (q->open.place)
        open_queue(w, q);
}

/* ---- entries ---- */

struct wait_entry *waitlist_find(const struct waitlist *w, int64_t key)
{
    struct table_node *x = w ? table_chain(&w->entries, hash_int((uint64_t)key)) : NULL;
    while (x && ((struct wait_entry *)x)->key != key)
        x = x->next;
    return (struct wait_entry *)x;
}

int64_t waitlist_entry_due(const struct event *e, const struct wait_entry *x)
{
    return wait_due(x->until, x->read_at, e->terms->wait_alive_ms);
}

static void put_in(struct event *e, struct wait_entry *x)
{
    struct waitlist *w = e->waitlist;
    w->n_waiting++;
    heap_set(&x->queue->turns, &x->turn, x->rank);
    heap_set(&w->due, &x->due, waitlist_entry_due(e, x));
    first_changed(w, x->queue);
}

static void take_out(struct event *e, struct wait_entry *x)
{
    struct waitlist *w = e->waitlist;
    w->n_waiting--;
    heap_remove(&x->queue->turns, &x->turn);
    heap_remove(&w->due, &x->due);
    first_changed(w, x->queue);
}

/* Counts the entry by its status, and puts it where that status belongs. */
static void enter(struct event *e, struct wait_entry *x)
{
    if (x->status == WAIT_WAITING)
        put_in(e, x);
    e->waitlist->n_offered += x->status == WAIT_OFFERED;
    if (wait_is_live((enum wait_status)x->status))
        count_entry(e->waitlist, x, 1);
}

static void leave(struct event *e, struct wait_entry *x)
{
    if (x->status == WAIT_WAITING)
        take_out(e, x);
    e->waitlist->n_offered -= x->status == WAIT_OFFERED;
    if (wait_is_live((enum wait_status)x->status))
        count_entry(e->waitlist, x, -1);
}

struct wait_entry *waitlist_add(struct event *e, const struct wait_row *row, uint64_t owner)
{
    struct waitlist *w = waitlist_get(e);
    struct wait_entry *x = hf_alloc(sizeof *x);
    x->key = row->id.key;
    x->number = row->number;
    x->rank = row->rank;
    x->until = row->until;
    x->read_at = row->read_at;
    x->last_seq = row->last_seq;
    x->hold = row->status == WAIT_OFFERED ? row->hold : 0;
    x->client = row->client;
    x->owner = owner;
    x->status = (uint8_t)row->status;
    x->queue = queue_of(w, &row->wish);
    x->queue->n++;
    x->types = types_of(w, &row->wish);
    table_add(&w->entries, &x->node, hash_int((uint64_t)x->key));
    w->last_number = row->number > w->last_number ? row->number : w->last_number;
    enter(e, x);
    return x;
}

void waitlist_set(struct event *e, struct wait_entry *x, const struct wait_state *to)
{
    bool was_open = x->queue->open.place; /* while its only entry is out of it, it is not */
    leave(e, x);
    x->status = (uint8_t)to->status;
    x->rank = to->rank;
    x->read_at = to->read_at;
    x->hold = to->hold;
    x->last_seq = to->last_seq;
    enter(e, x);
    if (was_open)
        open_queue(e->waitlist, x->queue);
}

void waitlist_remove(struct event *e, struct wait_entry *x)
{
    struct waitlist *w = e->waitlist;
    struct wait_queue *q = x->queue;
    struct wait_types *types = x->types;
    leave(e, x);
    table_remove(&w->entries, &x->node);
    free(x);
    if (types && --types->n == 0) {
        table_remove(&w->types, &types->node);
        free(types);
    }
    if (--q->n)
        return;
    heap_remove(&w->open, &q->open);
    heap_close(&q->turns);
    table_remove(&w->queues, &q->node);
    free(q);
}

/* ---- what may fit ---- */

static void note_freed(struct waitlist *w, struct freed_places place)
{
    for (size_t i = w->freed.n; i-- > 0;)
        if (memcmp(&w->freed.v[i], &place, sizeof place) == 0)
            return;
    if (w->freed.n == FREED_KINDS_MAX)
        w->frees_all = true;
    else
        *vec_push(&w->freed) = place;
}

void waitlist_freed_seat(struct event *e, uint32_t seat)
{
    struct waitlist *w = e->waitlist;
    if (!w || w->frees_all || !w->n_waiting)
        return;
    note_freed(w, (struct freed_places){.area = -1,
                                        .section = event_row_of(e, seat)->section,
                                        .category = event_seat_category(e, seat)});
}

void waitlist_freed_area(struct event *e, uint32_t area)
{
    struct waitlist *w = e->waitlist;
    if (w && w->n_waiting && !w->frees_all)
        note_freed(w, (struct freed_places){.area = (int32_t)area});
}

void waitlist_freed_all(struct event *e)
{
    if (e->waitlist)
        e->waitlist->frees_all = true;
}

bool waitlist_is_open(const struct waitlist *w)
{
    return w->frees_all || w->freed.n || heap_first(&w->open);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Zones of a plan may have the same name; a wish that names one means all of them, as for a hold. */
bool waitlist_serves(const struct event *e, const struct wait_wish *wish,
                     const struct freed_places *place)
{
    const struct event_def *def = e->def;
    if (wish->area >= 0 || place->area >= 0)
        return wish->area == place->area;
    if (wish->category && wish->category != place->category + 1)
        return false;
    const struct section_def *in = &def->sections.v[place->section];
    if (wish->section >= 0 && (uint32_t)wish->section != place->section &&
        !(def->venue && same_text(in->name, def->sections.v[wish->section].name)))
        return false;
    return wish->tier < 0 || same_text(in->tier, def->sections.v[wish->tier].tier);
}

static bool is_served(const struct event *e, const struct wait_queue *q)
{
    const struct waitlist *w = e->waitlist;
    for (size_t i = 0; i < w->freed.n; i++)
        if (waitlist_serves(e, &q->wish, &w->freed.v[i]))
            return true;
    return w->frees_all;
}

void waitlist_open_freed(struct event *e)
{
    struct waitlist *w = e->waitlist;
    if (!w->frees_all && !w->freed.n)
        return;
    for (struct table_node *x = table_first(&w->queues); x; x = table_after(&w->queues, x)) {
        struct wait_queue *q = (struct wait_queue *)x;
        if (!q->open.place && is_served(e, q))
            open_queue(w, q);
    }
    w->frees_all = false;
    vec_clear(&w->freed);
}

void waitlist_terms_changed(struct event *e)
{
    struct waitlist *w = e->waitlist;
    if (!w)
        return;
    w->frees_all = true;
    for (struct table_node *n = table_first(&w->entries); n; n = table_after(&w->entries, n)) {
        struct wait_entry *x = (struct wait_entry *)n;
        if (x->status == WAIT_WAITING)
            heap_set(&w->due, &x->due, waitlist_entry_due(e, x));
    }
}

/* ---- lists ---- */

size_t waitlist_list_due(const struct waitlist *w, int64_t now, struct wait_entry **ret, size_t max)
{
    struct heap_node **nodes = hf_alloc((max + 1) * sizeof(struct heap_node *));
    size_t n = heap_up_to(&w->due, now, nodes, max);
    for (size_t i = 0; i < n; i++)
        ret[i] = heap_item(nodes[i], struct wait_entry, due);
    free(nodes);
    return n;
}

size_t waitlist_list_waiting(const struct waitlist *w, struct wait_entry **ret, size_t max)
{
    return waitlist_list_due(w, INT64_MAX, ret, max);
}
