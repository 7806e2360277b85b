/* The ring of an event's latest changes, and its reader.  The worker writes at publish, any thread
 * reads, both under the event's lock; keeps I13.
 *
 * Seqs never fall along the ring, so a reader finds its place by binary search and copies the rest:
 * the lock is held for one memcpy of at most cap_max * 24 bytes (6 MiB, about a millisecond, for an
 * event of 65,536 seats and more; a reader that keeps up copies some hundred bytes).  An event in
 * which nothing changes has no ring. */
#include "view/feed.h"

#include "view/view.h"

#define CAP_MIN 64

static uint32_t power_of_two(uint32_t at_least)
{
    uint32_t cap = 1;
    while (cap < at_least && cap < UINT32_C(1) << 31)
        cap *= 2;
    return cap;
}

void feed_init(struct feed *f, int64_t seq, uint32_t len_max)
{
    *f = (struct feed){.cap_max = power_of_two(len_max ? len_max : 1), .floor = seq};
}

void feed_close(struct feed *f)
{
    free(f->ring);
    *f = (struct feed){0};
}

static const struct change *at(const struct feed *f, uint32_t i)
{
    return &f->ring[(f->first + i) & (f->cap - 1)];
}

static void copy_out(const struct feed *f, uint32_t from, struct change *out)
{
    uint32_t start = (f->first + from) & (f->cap - 1), n = f->n - from;
    uint32_t head = n < f->cap - start ? n : f->cap - start;
    if (n == 0)
        return;
    memcpy(out, f->ring + start, head * sizeof *out);
    memcpy(out + head, f->ring, (n - head) * sizeof *out);
}

static void grow(struct feed *f)
{
    uint32_t cap = f->cap ? f->cap * 2 : CAP_MIN;
    if (cap > f->cap_max)
        cap = f->cap_max;
    struct change *ring = hf_alloc(cap * sizeof *ring);
    copy_out(f, 0, ring);
    free(f->ring);
    f->ring = ring;
    f->cap = cap;
    f->first = 0;
}

void feed_put(struct feed *f, const struct change *change)
{
    hf_check(change->seq >= (f->n ? at(f, f->n - 1)->seq : f->floor));
    if (f->n == f->cap && f->cap < f->cap_max)
        grow(f);
    if (f->n == f->cap) { /* drop the oldest; a reader that needs it has come too late */
        f->floor = at(f, 0)->seq;
        f->first = (f->first + 1) & (f->cap - 1);
        f->n--;
    }
    f->ring[(f->first + f->n) & (f->cap - 1)] = *change;
    f->n++;
}

void feed_reset(struct feed *f, int64_t seq)
{
    f->first = f->n = 0;
    f->floor = seq;
}

/* How many of the ring's changes are of `after` or before. */
static uint32_t first_after(const struct feed *f, int64_t after)
{
    uint32_t low = 0, high = f->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (at(f, mid)->seq <= after)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int change_order(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Keeps the newest change of each item. */
static void keep_newest(struct changes *c)
{
    struct change *v = c->list.v;
    size_t n = 0;
    if (c->list.n > 1)
        qsort(v, c->list.n, sizeof *v, change_order);
    for (size_t i = 0; i < c->list.n; i++) {
        if (n > 0 && v[n - 1].item == v[i].item && v[n - 1].kind == v[i].kind)
            n--;
        v[n++] = v[i];
    }
    c->list.n = n;
}

bool event_changes(struct event *e, int64_t after, struct changes *ret)
{
    const struct feed *f = &e->feed;
    for (;;) {
        lock_take(&e->lock);
        int64_t seq = atomic_load_explicit(&e->shown.seq, memory_order_relaxed);
        if (after < f->floor || after > seq) {
            lock_give(&e->lock);
            return false;
        }
        uint32_t from = first_after(f, after), n = f->n - from;
        if (n <= ret->list.cap) {
            copy_out(f, from, ret->list.v);
            lock_give(&e->lock);
            ret->list.n = n;
            ret->seq = seq;
            keep_newest(ret);
            return true;
        }
        lock_give(&e->lock);
        /* Memory is allocated outside the lock, with room for changes that come meanwhile. */
        size_t cap = n + (size_t)n / 2 + CAP_MIN;
        ret->list.v = hf_realloc(ret->list.v, cap * sizeof *ret->list.v);
        ret->list.cap = cap;
    }
}

void changes_close(struct changes *c) { vec_close(&c->list); }
