/* Claims about waiting lists; see check.h. */
#include "sim/check.h"

#include <stdlib.h>
#include <string.h>

#include "rules/decide_internal.h"
#include "sim/tables.h"
#include "view/view_waits.h"

static int wait_order(const void *key, const void *wait)
{
    int64_t a = *(const int64_t *)key, b = ((const struct folded_wait *)wait)->key;
    return (a > b) - (a < b);
}

static struct folded_wait *folded_wait(const struct fold *f, int64_t key)
{
    if (!f->waits.n)
        return NULL;
    return bsearch(&key, f->waits.v, f->waits.n, sizeof *f->waits.v, wait_order);
}

/* What an entry may pass to. */
static bool may_pass(enum wait_status from, enum wait_status to)
{
    if (from == WAIT_NONE)
        return to == WAIT_WAITING;
    if (from == WAIT_WAITING)
        return to == WAIT_WAITING || to == WAIT_OFFERED || to == WAIT_LEFT || to == WAIT_ENDED;
    return from == WAIT_OFFERED && to > WAIT_OFFERED;
}

/* The hold of an offer is live, and ended when the entry is offered it no longer. */
static void fold_offer(struct fold *f, const struct audit_row *row, const struct folded_wait *x)
{
    const struct folded_hold *hold = row->hold ? folded_hold(f, row->hold) : NULL;
    if (row->to != WAIT_OFFERED && row->from != WAIT_OFFERED) {
        assert_int_equal(row->hold, 0);
        return;
    }
    if (!hold) {
        fail_msg("row %lld tells no hold of the offer", (long long)row->seq);
        return;
    }
    if (row->to == WAIT_OFFERED) {
        assert_int_equal(hold->status, HOLD_ACTIVE);
        assert_int_equal(hold->until, row->until);
        assert_int_equal(hold->places, row->quantity);
    } else {
        assert_int_equal(x->hold, row->hold);
        assert_int_not_equal(hold->status, HOLD_ACTIVE);
        if (row->to == WAIT_LAPSED && row->cause == CAUSE_EXPIRE)
            assert_int_equal(hold->status, HOLD_EXPIRED);
        if (row->to == WAIT_ACCEPTED)
            assert_true(hold->status == HOLD_CONFIRMED || row->cause == CAUSE_BOOK);
    }
}

void fold_wait(struct fold *f, const struct audit_row *row)
{
    int64_t key = HOLD_KEY(row->event, row->fence);
    struct folded_wait *x = folded_wait(f, key);
    assert_int_equal(x == NULL, row->from == WAIT_NONE);
    if (!x) {
        assert_true(row->fence > f->fence); /* I5: it draws a fence of its own */
        x = vec_push(&f->waits);
        *x = (struct folded_wait){
            .key = key, .rank = INT64_MAX, .read_at = row->at, .last_seq = row->prev};
        assert_int_equal(row->cause, CAUSE_CREATE);
        assert_int_equal(row->until, f->waits.n); /* numbers have no gaps */
    }
    assert_int_equal(x->status, row->from);
    assert_true(may_pass((enum wait_status)row->from, (enum wait_status)row->to));
    assert_int_equal(row->prev, x->last_seq);
    assert_true(row->quantity > 0);
    fold_offer(f, row, x);
    if (row->from == WAIT_WAITING && row->to == WAIT_WAITING) {
        assert_true(row->cause == CAUSE_CHANGE || row->cause == CAUSE_RENEW);
        x->rank = row->cause == CAUSE_CHANGE ? -row->seq : x->rank;
        x->read_at = row->cause == CAUSE_RENEW ? row->at : x->read_at;
    }
    x->status = (enum wait_status)row->to;
    x->hold = row->to == WAIT_OFFERED ? row->hold : 0;
    x->last_seq = row->seq;
}

/* An offered hold is its entry's. */
static void check_offer(const struct sim_ledger *ledger, const struct wait_row *row)
{
    const struct sim_hold *hold = sim_hold(ledger, row->hold);
    assert_non_null(hold);
    assert_int_equal(hold->row.status, HOLD_ACTIVE);
    assert_int_equal(hold->row.owner_len, row->owner_len);
    if (row->owner)
        assert_memory_equal(hold->row.owner, row->owner, row->owner_len);
    assert_int_equal(hold->row.metadata_len, row->metadata_len);
    assert_int_equal(hold->row.client, row->client);
    assert_int_equal(hold->row.max_expires_at, hold->row.expires_at); /* it cannot be extended */
}

void check_waits(const struct fold *f, const struct sim_ledger *ledger)
{
    const struct sim_event *e = sim_event(ledger, f->event);
    int64_t number = 0;
    assert_int_equal(e->waits.n, f->waits.n);
    for (size_t i = 0; i < e->waits.n; i++) {
        const struct wait_row *row = &e->waits.v[i];
        const struct folded_wait *x = &f->waits.v[i];
        assert_int_equal(row->id.key, x->key);
        assert_int_equal(row->status, x->status);
        assert_int_equal(row->last_seq, x->last_seq);
        assert_int_equal(row->read_at, x->read_at);
        assert_int_equal(row->number, number + 1); /* in the order of arrival, without gaps */
        assert_int_equal(row->rank, x->rank == INT64_MAX ? row->number : x->rank);
        assert_int_equal(row->ended_at == 0, wait_is_live(row->status));
        assert_int_equal(row->reason != WAIT_REASON_NONE, row->status == WAIT_ENDED);
        if (row->status == WAIT_OFFERED) {
            assert_int_equal(row->hold, x->hold);
            check_offer(ledger, row);
        }
        number = row->number;
    }
}

static void check_entry(const struct sim_ledger *ledger, const struct view *v,
                        const struct event *e, const struct folded_wait *want)
{
    const struct wait_entry *x = waitlist_find(e->waitlist, want->key);
    const struct wait_row *row = sim_wait(ledger, want->key);
    assert_int_equal(x != NULL, wait_is_live(want->status));
    if (!x)
        return;
    bool waits = want->status == WAIT_WAITING;
    assert_int_equal(x->status, want->status);
    assert_int_equal(x->number, row->number);
    assert_int_equal(x->rank, want->rank == INT64_MAX ? row->number : want->rank);
    assert_int_equal(x->read_at, want->read_at);
    assert_int_equal(x->last_seq, want->last_seq);
    assert_int_equal(x->hold, want->hold);
    assert_int_equal(x->until, row->until);
    assert_int_equal(x->client, row->client);
    assert_int_equal(x->owner, owner_hash(e, row->owner, row->owner_len));
    assert_int_equal(x->pending, 0);
    assert_int_equal(x->turn.place != 0, waits);
    assert_int_equal(x->due.place != 0, waits);
    struct wait_wish wish = x->queue->wish;
    if (x->types)
        memcpy(wish.types, x->types->places, sizeof wish.types);
    assert_true(wait_wish_equal(&wish, &row->wish));
    if (waits) {
        assert_int_equal(x->turn.key, x->rank);
        assert_int_equal(x->due.key, waitlist_entry_due(e, x));
    } else {
        assert_int_equal(view_hold(v, x->hold)->wait, x->key);
    }
}

/* An open queue stands in the order of its first entry. */
static void check_queues(const struct waitlist *w)
{
    size_t n = 0, n_typed = 0;
    for (struct table_node *x = table_first(&w->types); x; x = table_after(&w->types, x)) {
        assert_true(((const struct wait_types *)x)->n > 0);
        n_typed += ((const struct wait_types *)x)->n;
    }
    assert_true(n_typed <= w->entries.n);
    for (struct table_node *x = table_first(&w->queues); x; x = table_after(&w->queues, x)) {
        const struct wait_queue *q = (const struct wait_queue *)x;
        n += q->n;
        assert_true(q->n > 0);
        if (q->open.place)
            assert_int_equal(q->open.key, wait_queue_first(q)->rank);
    }
    assert_int_equal(n, w->entries.n);
}

void check_view_waits(const struct fold *f, const struct sim_ledger *ledger, const struct view *v,
                      const struct event *e)
{
    size_t waiting = 0, offered = 0;
    for (size_t i = 0; i < f->waits.n; i++) {
        check_entry(ledger, v, e, &f->waits.v[i]);
        waiting += f->waits.v[i].status == WAIT_WAITING;
        offered += f->waits.v[i].status == WAIT_OFFERED;
    }
    assert_true(e->waitlist || !(waiting + offered));
    if (!e->waitlist)
        return;
    assert_int_equal(e->waitlist->n_waiting, waiting);
    assert_int_equal(e->waitlist->n_offered, offered);
    assert_int_equal(e->waitlist->entries.n, waiting + offered);
    assert_int_equal(e->waitlist->last_number, f->waits.n);
    check_queues(e->waitlist);
}

void check_served(const struct event *e, int64_t now)
{
    const struct event_terms *t = e->terms;
    int64_t end = event_terms_sales_end(t);
    uint32_t seats[HOLD_PLACES_MAX];
    if (!e->waitlist || e->status_draft != EVENT_OPEN || !t->offer_ttl_ms || t->wait_paused ||
        now < t->sales_open_at || (end && now >= end))
        return;
    const struct table *queues = &e->waitlist->queues;
    for (struct table_node *x = table_first(queues); x; x = table_after(queues, x)) {
        const struct wait_queue *q = (const struct wait_queue *)x;
        if (wait_queue_first(q))
            assert_false(decide_wish_fits(e, &q->wish, seats));
    }
}
