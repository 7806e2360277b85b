/* The terms of an event in the view: shared, never changed, replaced as a whole.  The worker has a
 * reference of its own to what it decided last, `shown.terms` is another to what is committed, and
 * readers on other threads take one under the event's lock.  See view.h. */
#include <stdlib.h>

#include "view/view.h"

struct shared_terms {
    struct event_terms terms; /* first: what is handed out points here */
    _Atomic uint32_t refs;
};

static struct shared_terms *shared(const struct event_terms *terms)
{
    return (struct shared_terms *)(uintptr_t)terms;
}

const struct event_terms *event_terms_new(struct event_terms *terms)
{
    struct shared_terms *s = hf_alloc(sizeof *s);
    s->terms = *terms;
    s->refs = 1;
    *terms = (struct event_terms){0};
    return &s->terms;
}

const struct event_terms *event_terms_share(const struct event_terms *terms)
{
    atomic_fetch_add_explicit(&shared(terms)->refs, 1, memory_order_relaxed);
    return terms;
}

void event_terms_give(const struct event_terms *terms)
{
    if (!terms || atomic_fetch_sub_explicit(&shared(terms)->refs, 1, memory_order_acq_rel) != 1)
        return;
    event_terms_close(&shared(terms)->terms);
    free(shared(terms));
}

const struct event_terms *event_terms_take(struct event *e)
{
    lock_take(&e->lock);
    const struct event_terms *terms = event_terms_share(e->shown.terms);
    lock_give(&e->lock);
    return terms;
}

void event_show_terms(struct event *e)
{
    const struct event_terms *t = e->terms;
    atomic_store_explicit(&e->shown.status, (int)e->status_draft, memory_order_relaxed);
    if (e->shown.terms == t)
        return;
    event_terms_give(e->shown.terms);
    e->shown.terms = event_terms_share(t);
    atomic_store_explicit(&e->shown.max_per_hold, (int32_t)t->max_per_hold, memory_order_relaxed);
    atomic_store_explicit(&e->shown.hold_ttl_ms, t->hold_ttl_ms, memory_order_relaxed);
    atomic_store_explicit(&e->shown.has_types, t->types.n > 0, memory_order_relaxed);
    atomic_store_explicit(&e->shown.sales_open_at, t->sales_open_at, memory_order_relaxed);
    atomic_store_explicit(&e->shown.sales_end, event_terms_sales_end(t), memory_order_relaxed);
}
