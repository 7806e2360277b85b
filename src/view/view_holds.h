/* The worker's live holds: a hash table by key, and a heap by expiry.  Part of the view.  Only
 * the worker's thread calls these. */
#ifndef HF_VIEW_VIEW_HOLDS_H
#define HF_VIEW_VIEW_HOLDS_H

#include "view/clients.h"
#include "view/owners.h"
#include "view/view.h"

struct hold_table {
    struct table by_key;
    struct heap deadlines;       /* a hold is live, and counted, while it is in here */
    VEC(struct heap_node *) due; /* scratch of view_due */
    struct clients *clients;     /* places by address; the view's own table unless it is shared */
    struct owners *owners;       /* what owners have; the view's */
};

struct hold_table *view_hold_table(const struct view *v);

struct hold *hold_new(struct event *e, const struct hold_row *row);
void hold_table_reserve(struct hold_table *t, size_t n);   /* makes room for `n` more */
void hold_table_add(struct hold_table *t, struct hold *h); /* O(log n), amortised */
/* Removes the holds of one event, or all if `e` is NULL.  O(n). */
void hold_table_remove(struct hold_table *t, const struct event *e);
void hold_table_close(struct hold_table *t);

#endif
