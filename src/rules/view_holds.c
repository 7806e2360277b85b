/* Live holds by key and by deadline.  The worker's thread only.  Keeps the heap property:
 * heap[i].expires_at <= heap[2i+1], heap[2i+2]; h->heap_pos is 1 + the hold's place in it. */
#include "rules/view_holds.h"

#include <stdlib.h>

static struct hold **bucket(const struct hold_table *t, int64_t key)
{
    uint64_t hash = (uint64_t)key * 0x9e3779b97f4a7c15u;
    return &t->buckets[(hash >> 20) & (t->n_buckets - 1)];
}

/* ---- places by address ---- */

static uint32_t hold_places(const struct hold *h)
{
    return places_count(h->n_seats, h->areas, h->n_areas);
}

static void count_places(struct hold_table *t, const struct hold *h, int64_t sign)
{
    if (h->client)
        clients_add(t->clients, h->client, sign * hold_places(h));
}

uint32_t view_client_places(const struct view *v, uint64_t client)
{
    return clients_places(view_hold_table(v)->clients, client);
}

/* ---- the heap ---- */

static void heap_set(struct hold_table *t, size_t i, struct hold *h)
{
    t->heap.v[i] = h;
    h->heap_pos = (uint32_t)i + 1;
}

static void heap_up(struct hold_table *t, size_t i)
{
    struct hold *h = t->heap.v[i];
    for (size_t parent; i > 0; i = parent) {
        parent = (i - 1) / 2;
        if (t->heap.v[parent]->expires_at <= h->expires_at)
            break;
        heap_set(t, i, t->heap.v[parent]);
    }
    heap_set(t, i, h);
}

static void heap_down(struct hold_table *t, size_t i)
{
    struct hold *h = t->heap.v[i];
    for (size_t child; (child = 2 * i + 1) < t->heap.n; i = child) {
        if (child + 1 < t->heap.n &&
            t->heap.v[child + 1]->expires_at < t->heap.v[child]->expires_at)
            child++;
        if (h->expires_at <= t->heap.v[child]->expires_at)
            break;
        heap_set(t, i, t->heap.v[child]);
    }
    heap_set(t, i, h);
}

static void heap_put(struct hold_table *t, struct hold *h)
{
    if (h->heap_pos)
        return;
    count_places(t, h, 1);
    *vec_push(&t->heap) = h;
    heap_up(t, t->heap.n - 1);
}

static void heap_drop(struct hold_table *t, struct hold *h)
{
    if (!h->heap_pos)
        return;
    count_places(t, h, -1);
    size_t i = h->heap_pos - 1;
    h->heap_pos = 0;
    struct hold *last = t->heap.v[--t->heap.n];
    if (last == h)
        return;
    heap_set(t, i, last);
    heap_up(t, i);
    heap_down(t, last->heap_pos - 1);
}

struct hold *view_first_due(const struct view *v)
{
    const struct hold_table *t = view_hold_table(v);
    return t->heap.n ? t->heap.v[0] : NULL;
}

/* A due hold's ancestors in the heap are due too, so the due ones are a tree at its top. */
size_t view_due(const struct view *v, int64_t now, struct hold **ret_holds, size_t max)
{
    const struct hold_table *t = view_hold_table(v);
    size_t n = 0;
    if (max && t->heap.n && t->heap.v[0]->expires_at <= now)
        ret_holds[n++] = t->heap.v[0];
    for (size_t i = 0; i < n; i++) {
        size_t child = 2 * (size_t)(ret_holds[i]->heap_pos - 1) + 1;
        for (size_t end = child + 2; child < end && child < t->heap.n && n < max; child++)
            if (t->heap.v[child]->expires_at <= now)
                ret_holds[n++] = t->heap.v[child];
    }
    return n;
}

void view_deadline_moved(struct view *v, struct hold *h)
{
    struct hold_table *t = view_hold_table(v);
    hf_check(h->heap_pos);
    heap_up(t, h->heap_pos - 1);
    heap_down(t, h->heap_pos - 1);
}

void view_deadline_drop(struct view *v, struct hold *h) { heap_drop(view_hold_table(v), h); }

void view_deadline_put(struct view *v, struct hold *h) { heap_put(view_hold_table(v), h); }

/* ---- the table ---- */

static void grow(struct hold_table *t)
{
    struct hold_table bigger = {.n_buckets = t->n_buckets ? t->n_buckets * 2 : 1024};
    bigger.buckets = hf_alloc(bigger.n_buckets * sizeof(struct hold *));
    for (size_t i = 0; i < t->n_buckets; i++)
        for (struct hold *h = t->buckets[i], *next; h; h = next) {
            next = h->next;
            h->next = *bucket(&bigger, h->key);
            *bucket(&bigger, h->key) = h;
        }
    free(t->buckets);
    t->buckets = bigger.buckets;
    t->n_buckets = bigger.n_buckets;
}

struct hold *hold_new(struct event *e, const struct hold_row *row)
{
    struct hold *h =
        hf_alloc(sizeof *h + row->n_seats * sizeof *h->seats + row->n_areas * sizeof *h->areas);
    h->key = row->id.key;
    h->event = e;
    h->fence = row->fence;
    h->expires_at = row->expires_at;
    h->max_expires_at = row->max_expires_at;
    h->status = HOLD_ACTIVE;
    h->n_seats = row->n_seats;
    h->n_areas = row->n_areas;
    h->client = row->client;
    h->areas = (struct area_claim *)(void *)(h->seats + row->n_seats);
    for (uint32_t i = 0; i < row->n_seats; i++)
        h->seats[i] = row->seats[i];
    for (uint32_t i = 0; i < row->n_areas; i++)
        h->areas[i] = row->areas[i];
    return h;
}

void hold_table_add(struct hold_table *t, struct hold *h)
{
    if (t->n >= t->n_buckets)
        grow(t);
    h->next = *bucket(t, h->key);
    *bucket(t, h->key) = h;
    t->n++;
    heap_put(t, h);
}

static void unlink_hold(struct hold_table *t, struct hold **link)
{
    struct hold *h = *link;
    *link = h->next;
    heap_drop(t, h);
    t->n--;
    free(h);
}

void hold_table_remove_event(struct hold_table *t, const struct event *e)
{
    for (size_t i = 0; i < t->n_buckets; i++)
        for (struct hold **link = &t->buckets[i]; *link;) {
            if ((*link)->event == e)
                unlink_hold(t, link);
            else
                link = &(*link)->next;
        }
}

void hold_table_close(struct hold_table *t)
{
    for (size_t i = 0; i < t->n_buckets; i++)
        while (t->buckets[i])
            unlink_hold(t, &t->buckets[i]);
    free(t->buckets);
    vec_close(&t->heap);
    *t = (struct hold_table){0};
}

struct hold *view_hold(const struct view *v, int64_t key)
{
    const struct hold_table *t = view_hold_table(v);
    struct hold *h = t->n_buckets ? *bucket(t, key) : NULL;
    while (h && h->key != key)
        h = h->next;
    return h;
}

struct hold *view_hold_add(struct view *v, struct event *e, const struct hold_row *row)
{
    struct hold *h = hold_new(e, row);
    hold_table_add(view_hold_table(v), h);
    return h;
}

void view_hold_remove(struct view *v, struct hold *h)
{
    struct hold_table *t = view_hold_table(v);
    struct hold **link = bucket(t, h->key);
    while (*link != h)
        link = &(*link)->next;
    unlink_hold(t, link);
}

size_t view_holds_len(const struct view *v) { return view_hold_table(v)->n; }
