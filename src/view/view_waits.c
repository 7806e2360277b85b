/* See view_waits.h. */
#include "view/view_waits.h"

#include <stdlib.h>

#include "view/view.h"

/* Entries end by themselves, all of them at the end of sales, and offers begin when sales do. */
static int64_t look_at(const struct event *e)
{
    const struct waitlist *w = e->waitlist;
    const struct heap_node *first = heap_first(&w->due);
    int64_t at = first ? first->key : INT64_MAX;
    int64_t opens = e->terms->sales_open_at, ends = event_terms_sales_end(e->terms);
    if (!w->n_waiting)
        return INT64_MAX;
    if (w->unsettled)
        return 0;
    if (opens > w->looked_at && opens < at)
        at = opens;
    return ends > w->looked_at && ends < at ? ends : at;
}

void view_waits_schedule(struct view *v, struct event *e)
{
    struct wait_lists *lists = view_wait_lists(v);
    if (!e->waitlist)
        return;
    int64_t at = look_at(e);
    if (at == INT64_MAX)
        heap_remove(&lists->by_time, &e->waitlist->next);
    else
        heap_set(&lists->by_time, &e->waitlist->next, at);
}

int64_t view_waits_next(struct view *v)
{
    const struct heap_node *first = heap_first(&view_wait_lists(v)->by_time);
    return first ? first->key : INT64_MAX;
}

size_t view_waits_due(struct view *v, int64_t now, struct event **ret, size_t max)
{
    struct heap_node **nodes = hf_alloc((max + 1) * sizeof(struct heap_node *));
    size_t n = heap_up_to(&view_wait_lists(v)->by_time, now, nodes, max);
    for (size_t i = 0; i < n; i++)
        ret[i] = heap_item(nodes[i], struct waitlist, next)->event;
    free(nodes);
    return n;
}

struct wait_totals view_waits_count(struct view *v)
{
    struct wait_totals sum = {0};
    const struct registry *r = view_registry(v);
    for (size_t i = 0; i < r->loaded.n; i++) {
        const struct waitlist *w = r->loaded.v[i]->waitlist;
        sum.waiting += w ? w->n_waiting : 0;
        sum.offered += w ? w->n_offered : 0;
    }
    return sum;
}

void event_load_wait(struct event *e, const struct wait_row *row)
{
    if (event_def_has_wish(e->def, &row->wish)) /* else it is damaged; `holdfast verify` names it */
        waitlist_add(e, row, owner_hash(e, row->owner, row->owner_len));
}

void event_load_wait_number(struct event *e, int64_t number)
{
    struct waitlist *w = waitlist_get(e);
    w->last_number = number > w->last_number ? number : w->last_number;
}

void view_waits_enter(struct view *v, struct event *e)
{
    struct waitlist *w = e->waitlist;
    if (!w)
        return;
    for (struct table_node *n = table_first(&w->entries); n; n = table_after(&w->entries, n)) {
        const struct wait_entry *x = (const struct wait_entry *)n;
        struct hold *h = x->hold ? view_hold(v, x->hold) : NULL;
        if (h)
            h->wait = x->key;
    }
    waitlist_freed_all(e);
    w->unsettled = true;
    view_waits_schedule(v, e);
}

void view_waits_drop(struct view *v, struct event *e)
{
    if (!e->waitlist)
        return;
    heap_remove(&view_wait_lists(v)->by_time, &e->waitlist->next);
    waitlist_free(e->waitlist);
    e->waitlist = NULL;
}
