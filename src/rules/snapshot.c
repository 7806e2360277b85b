/* See snapshot.h. */
#include "rules/snapshot.h"

#include <stdlib.h>

#include "rules/view.h"

struct snapshot *snapshot_new(int64_t seq)
{
    struct snapshot *s = hf_alloc(sizeof *s);
    s->refs = 1;
    s->seq = seq;
    return s;
}

struct snapshot *snapshot_ref(struct snapshot *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void snapshot_unref(struct snapshot *s)
{
    if (!s)
        return;
    struct event *lender = s->lender;
    if (lender)
        lock_take(&lender->snapshot_lock);
    bool is_last = atomic_fetch_sub(&s->refs, 1) == 1;
    if (lender && is_last)
        lender->lent_plan = NULL;
    if (lender)
        lock_give(&lender->snapshot_lock);
    if (is_last) {
        buf_close(&s->text);
        buf_close(&s->packed);
        free(s);
    }
}

struct snapshot *event_plan(struct event *e, bool packed)
{
    lock_take(&e->snapshot_lock);
    struct snapshot *s = packed ? e->plan : e->lent_plan;
    if (s)
        snapshot_ref(s);
    lock_give(&e->snapshot_lock);
    return s;
}

void event_lend_plan(struct event *e, struct snapshot *s)
{
    lock_take(&e->snapshot_lock);
    s->lender = e;
    e->lent_plan = s;
    lock_give(&e->snapshot_lock);
}

void event_keep_plan(struct event *e, struct snapshot *s)
{
    lock_take(&e->snapshot_lock);
    struct snapshot *old = e->plan;
    e->plan = s;
    lock_give(&e->snapshot_lock);
    snapshot_unref(old);
}

struct snapshot *event_snapshot(struct event *e, bool packed)
{
    lock_take(&e->snapshot_lock);
    struct snapshot *s = e->snapshot;
    if (s && (s->seq != atomic_load_explicit(&e->seq, memory_order_acquire) ||
              (packed && !atomic_load_explicit(&s->is_packed, memory_order_acquire))))
        s = NULL;
    if (s)
        snapshot_ref(s);
    lock_give(&e->snapshot_lock);
    return s;
}

void event_keep_snapshot(struct event *e, struct snapshot *s)
{
    lock_take(&e->snapshot_lock);
    struct snapshot *old = e->snapshot;
    e->snapshot = s;
    lock_give(&e->snapshot_lock);
    snapshot_unref(old);
}
