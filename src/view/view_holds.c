/* Live holds by key and by deadline.  The worker's thread only.  A hold is counted against its
 * address and its owner exactly while it is in the heap of deadlines. */
#include "view/view_holds.h"

#include <stdlib.h>

#include "base/hash.h"

/* ---- places by address and owner ---- */

static uint32_t hold_places(const struct hold *h)
{
    return places_count(h->n_seats, h->areas, h->n_areas);
}

static void count_in(struct hold_table *t, struct hold *h)
{
    if (h->client)
        clients_add(t->clients, h->client, hold_places(h));
    owners_add(t->owners, h, hold_places(h));
}

static void count_out(struct hold_table *t, struct hold *h)
{
    if (h->client)
        clients_add(t->clients, h->client, -(int64_t)hold_places(h));
    owners_remove(t->owners, h, hold_places(h));
}

uint32_t view_client_places(const struct view *v, uint64_t client)
{
    return clients_places(view_hold_table(v)->clients, client);
}

/* ---- deadlines ---- */

static void deadline_put(struct hold_table *t, struct hold *h)
{
    if (!h->due.place)
        count_in(t, h);
    heap_set(&t->deadlines, &h->due, h->expires_at);
}

static void deadline_drop(struct hold_table *t, struct hold *h)
{
    if (h->due.place)
        count_out(t, h);
    heap_remove(&t->deadlines, &h->due);
}

struct hold *view_first_due(const struct view *v)
{
    struct heap_node *first = heap_first(&view_hold_table(v)->deadlines);
    return first ? heap_item(first, struct hold, due) : NULL;
}

size_t view_due(const struct view *v, int64_t now, struct hold **ret_holds, size_t max)
{
    struct hold_table *t = view_hold_table(v);
    while (t->due.n < max)
        vec_push(&t->due);
    size_t n = heap_up_to(&t->deadlines, now, t->due.v, max);
    for (size_t i = 0; i < n; i++)
        ret_holds[i] = heap_item(t->due.v[i], struct hold, due);
    return n;
}

void view_deadline_moved(struct view *v, struct hold *h)
{
    hf_check(h->due.place);
    deadline_put(view_hold_table(v), h);
}

void view_deadline_drop(struct view *v, struct hold *h) { deadline_drop(view_hold_table(v), h); }

void view_deadline_put(struct view *v, struct hold *h) { deadline_put(view_hold_table(v), h); }

/* ---- the table ---- */

static struct hold *alloc_hold(const uint32_t *seats, uint32_t n_seats,
                               const struct area_claim *areas, uint32_t n_areas)
{
    struct hold *h = hf_alloc(offsetof(struct hold, seats) + n_seats * sizeof *h->seats +
                              n_areas * sizeof *h->areas);
    hf_check(n_areas <= UINT16_MAX);
    h->n_seats = n_seats;
    h->n_areas = (uint16_t)n_areas;
    h->areas = (struct area_claim *)(void *)(h->seats + n_seats);
    for (uint32_t i = 0; i < n_seats; i++)
        h->seats[i] = seats[i];
    for (uint32_t i = 0; i < n_areas; i++)
        h->areas[i] = areas[i];
    return h;
}

struct hold *hold_new(struct event *e, const struct hold_row *row)
{
    struct hold *h = alloc_hold(row->seats, row->n_seats, row->areas, row->n_areas);
    h->key = row->id.key;
    h->event = e;
    h->fence = row->fence;
    h->expires_at = row->expires_at;
    h->max_expires_at = row->max_expires_at;
    h->last_seq = row->last_seq;
    h->status = HOLD_ACTIVE;
    h->client = row->client;
    h->owner = row->wait ? row->owner_number : owner_hash(e, row->owner, row->owner_len);
    h->wait = row->wait;
    h->channel = (uint8_t)row->channel;
    return h;
}

struct hold *hold_with_places(const struct hold *before, const uint32_t *seats, uint32_t n_seats,
                              const struct area_claim *areas, uint32_t n_areas)
{
    struct hold *h = alloc_hold(seats, n_seats, areas, n_areas);
    h->key = before->key;
    h->event = before->event;
    h->fence = before->fence;
    h->expires_at = before->expires_at;
    h->max_expires_at = before->max_expires_at;
    h->last_seq = before->last_seq;
    h->status = before->status;
    h->pending = before->pending;
    h->client = before->client;
    h->owner = before->owner;
    h->channel = before->channel;
    h->payment = before->payment;
    h->wait = before->wait;
    return h;
}

void view_hold_replace(struct view *v, struct hold *before, struct hold *after)
{
    struct hold_table *t = view_hold_table(v);
    bool is_live = before->due.place != 0;
    deadline_drop(t, before);
    table_remove(&t->by_key, &before->node);
    table_add(&t->by_key, &after->node, before->node.hash);
    if (is_live)
        deadline_put(t, after);
}

void hold_table_reserve(struct hold_table *t, size_t n) { table_reserve(&t->by_key, n); }

void hold_table_add(struct hold_table *t, struct hold *h)
{
    table_add(&t->by_key, &h->node, hash_int((uint64_t)h->key));
    h->event->n_holds++;
    deadline_put(t, h);
}

static void remove_hold(struct hold_table *t, struct hold *h)
{
    table_remove(&t->by_key, &h->node);
    deadline_drop(t, h);
    h->event->n_holds--;
    free(h);
}

void hold_table_remove(struct hold_table *t, const struct event *e)
{
    for (struct table_node *x = table_first(&t->by_key), *next; x; x = next) {
        next = table_after(&t->by_key, x);
        if (!e || ((struct hold *)x)->event == e)
            remove_hold(t, (struct hold *)x);
    }
}

void hold_table_close(struct hold_table *t)
{
    hold_table_remove(t, NULL);
    table_close(&t->by_key);
    heap_close(&t->deadlines);
    vec_close(&t->due);
    *t = (struct hold_table){0};
}

struct hold *view_hold(const struct view *v, int64_t key)
{
    const struct hold_table *t = view_hold_table(v);
    struct table_node *x = table_chain(&t->by_key, hash_int((uint64_t)key));
    while (x && ((struct hold *)x)->key != key)
        x = x->next;
    return (struct hold *)x;
}

struct hold *view_hold_add(struct view *v, struct event *e, const struct hold_row *row)
{
    struct hold *h = hold_new(e, row);
    hold_table_add(view_hold_table(v), h);
    return h;
}

void view_hold_remove(struct view *v, struct hold *h) { remove_hold(view_hold_table(v), h); }

size_t view_holds_len(const struct view *v) { return view_hold_table(v)->by_key.n; }
