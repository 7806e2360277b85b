/* The worker's live holds: a hash table by key, and a heap by expiry.  Part of the view, split off
 * because it is a concept of its own.  Only the worker's thread calls these. */
#ifndef HF_RULES_VIEW_HOLDS_H
#define HF_RULES_VIEW_HOLDS_H

#include "rules/clients.h"
#include "rules/owners.h"
#include "rules/view.h"

struct hold_table {
    struct hold **buckets; /* n_buckets is a power of two, or 0 */
    size_t n_buckets, n;
    struct heap deadlines;       /* a hold is live, and counted, while it is in here */
    VEC(struct heap_node *) due; /* scratch of view_due */
    struct clients *clients;     /* places by address; the view's own table unless it is shared */
    struct owners *owners;       /* what owners have; the view's */
};

struct hold_table *view_hold_table(const struct view *v);

struct hold *hold_new(struct event *e, const struct hold_row *row);
void hold_table_add(struct hold_table *t, struct hold *h);                 /* O(log n), amortised */
void hold_table_remove_event(struct hold_table *t, const struct event *e); /* O(n) */
void hold_table_close(struct hold_table *t);

#endif
