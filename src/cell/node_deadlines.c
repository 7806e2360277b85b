/* What ends by itself in a cell: sessions, places in a line, grants that nobody received, lock
 * delays, and the waits of requests.  Deadlines live in the master's memory only, on its boot-time
 * clock; the state has no clock.  A deadline that passes, but for that of a request, becomes a
 * command of the next entry, and nothing has ended before that entry is stored.  Keeps N4. */
#include "cell/node_internal.h"

static struct deadline *of_node(struct heap_node *node)
{
    return heap_item(node, struct deadline, node);
}

/* The slot in the state that refers to the deadline. */
static void **slot_of(struct deadline *d)
{
    return d->kind == DEADLINE_SESSION ? &d->session->local.deadline
                                       : &d->acquisition->local.deadline;
}

void deadline_drop(struct node *n, void **slot)
{
    struct deadline *d = *slot;
    if (!d)
        return;
    heap_remove(&n->deadlines, &d->node);
    free(d);
    *slot = NULL;
}

void deadline_session(struct node *n, struct cell_session *s, int64_t at_us)
{
    struct deadline *d = s->local.deadline;
    if (!d) {
        s->local.deadline = d = hf_alloc(sizeof *d);
        d->kind = DEADLINE_SESSION;
        d->session = s;
    }
    s->local.deadline_us = at_us;
    heap_set(&n->deadlines, &d->node, at_us);
}

static struct deadline *of_acquisition(struct cell_acquisition *a)
{
    struct deadline *d = a->local.deadline;
    if (!d) {
        a->local.deadline = d = hf_alloc(sizeof *d);
        d->acquisition = a;
        d->kind = DEADLINE_PLACE;
        d->claim_us = NODE_CLAIM_MS * INT64_C(1000);
    }
    return d;
}

void deadline_acquisition(struct node *n, struct cell_acquisition *a, enum deadline_kind kind,
                          int64_t at_us)
{
    struct deadline *d = of_acquisition(a);
    d->kind = kind;
    heap_set(&n->deadlines, &d->node, at_us);
}

void deadline_request(struct node *n, struct cell_acquisition *a, const struct cell_request *r)
{
    int64_t claim_ms = r->claim_ms ? r->claim_ms : NODE_CLAIM_MS;
    of_acquisition(a)->claim_us = claim_ms * 1000;
    deadline_acquisition(n, a, DEADLINE_REQUEST, r->until_us);
}

void deadline_unreceived(struct node *n, struct cell_acquisition *a, int64_t now_us)
{
    deadline_acquisition(n, a, DEADLINE_GRANT, now_us + of_acquisition(a)->claim_us);
}

static void begin_acquisitions(struct node *n, const struct cell_session *s, int64_t now_us)
{
    for (struct cell_acquisition *a = s->first; a; a = a->session_next)
        if (a->stage == CELL_WAITING)
            deadline_acquisition(n, a, DEADLINE_PLACE, now_us + NODE_PLACE_MS * INT64_C(1000));
}

/* Lock delays begin anew: nobody knows how much of them has passed. */
static void begin_delays(struct node *n, int64_t now_us)
{
    size_t len = 0;
    const char *at = "";
    for (struct cell_name *name; (name = cell_name_next(n->replica.state, at, len, "", 0));) {
        at = cell_name_text(name, &len);
        for (struct cell_acquisition *a = cell_name_holders(name); a; a = a->next)
            if (a->stage == CELL_DELAYED)
                deadline_acquisition(n, a, DEADLINE_DELAY, now_us + a->delay_ms * INT64_C(1000));
    }
}

void deadlines_begin(struct node *n, int64_t now_us)
{
    /* What an earlier master left counts for the one that follows it, and for no other. */
    const bool resigned = cell_state_is_resigned(n->replica.state);
    int64_t key = 0;
    for (struct cell_session *s; (s = cell_session_next(n->replica.state, key)); key = s->id.key) {
        int64_t left_ms = resigned ? cell_state_remaining_ms(n->replica.state, s->id.key) : -1;
        if (left_ms < 0 || left_ms > s->ttl_ms)
            left_ms = s->ttl_ms;
        deadline_session(n, s, now_us + left_ms * 1000);
        begin_acquisitions(n, s, now_us);
    }
    begin_delays(n, now_us);
}

void deadlines_renew(struct node *n, int64_t now_us)
{
    int64_t key = 0;
    int64_t place_us = now_us + NODE_PLACE_MS * INT64_C(1000);
    for (struct cell_session *s; (s = cell_session_next(n->replica.state, key)); key = s->id.key) {
        deadline_session(n, s, now_us + s->ttl_ms * INT64_C(1000));
        for (struct cell_acquisition *a = s->first; a; a = a->session_next) {
            const struct deadline *d = a->local.deadline;
            if (d && d->kind == DEADLINE_PLACE && d->node.key < place_us)
                deadline_acquisition(n, a, DEADLINE_PLACE, place_us);
        }
    }
}

void deadlines_clear(struct node *n)
{
    for (struct heap_node *node; (node = heap_first(&n->deadlines));) {
        struct deadline *d = of_node(node);
        if (d->kind != DEADLINE_SESSION)
            d->acquisition->local.waiter = NULL;
        deadline_drop(n, slot_of(d));
    }
}

int64_t deadlines_first_us(const struct node *n)
{
    const struct heap_node *first = heap_first(&n->deadlines);
    return first ? first->key : NEVER_US;
}
