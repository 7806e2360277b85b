/* The life of a batch around the rules: begin, seal, and the two ways it can end, shown or taken
 * back.  See decision.h.  On the worker's thread. */
#include "rules/decision.h"

#include <stdlib.h>

#include "view/free_seats.h"
#include "view/publish.h"
#include "view/view_waits.h"

static void clear_areas(struct decision *d)
{
    for (size_t i = 0; i < d->batch.areas.n; i++)
        vec_close(&d->batch.areas.v[i].blocks_before.list);
    vec_clear(&d->batch.areas);
}

static void free_offers(struct decision *d)
{
    for (size_t i = 0; i < d->offers.n; i++)
        free(d->offers.v[i]);
    vec_clear(&d->offers);
}

/* Empties a list, and gives its memory back if it has been very large. */
#define CLEAR(list)                                                                                \
    do {                                                                                           \
        if ((list)->cap > LIST_KEPT_MAX)                                                           \
            vec_close(list);                                                                       \
        vec_clear(list);                                                                           \
    } while (0)
#define LIST_KEPT_MAX 65536

void decision_begin(struct decision *d)
{
    vec_clear(&d->batch.clocks);
    vec_clear(&d->batch.events);
    CLEAR(&d->batch.seats);
    clear_areas(d);
    vec_clear(&d->batch.holds_new);
    vec_clear(&d->batch.holds);
    vec_clear(&d->batch.places);
    vec_clear(&d->batch.merges);
    vec_clear(&d->batch.waits_new);
    vec_clear(&d->batch.waits);
    free_offers(d);
    vec_clear(&d->batch.bookings_new);
    vec_clear(&d->batch.bookings);
    vec_clear(&d->batch.sales);
    vec_clear(&d->batch.sales_undone);
    vec_clear(&d->batch.bookings_past);
    CLEAR(&d->batch.payments_new);
    CLEAR(&d->batch.payments);
    CLEAR(&d->batch.refunds_new);
    CLEAR(&d->batch.refunds);
    CLEAR(&d->batch.jobs_put);
    CLEAR(&d->batch.jobs);
    vec_clear(&d->batch.webhooks);
    CLEAR(&d->batch.audit);
    vec_clear(&d->batch.heads);
    vec_clear(&d->batch.keys);
    vec_clear(&d->unreadable);
    vec_clear(&d->owners);
    hf_check(!d->replaced.n && !d->terms.n);
    for (size_t i = 0; i < d->events.n; i++)
        d->events.v[i]->in_batch = false;
    vec_clear(&d->events);
    d->actor = ACTOR_SERVER;
    d->batch_no++;
    d->expired = 0;
    d->wait_changes = d->wait_turns = 0;
}

void decision_close(struct decision *d)
{
    vec_close(&d->batch.clocks);
    vec_close(&d->batch.events);
    vec_close(&d->batch.seats);
    clear_areas(d);
    vec_close(&d->batch.areas);
    vec_close(&d->batch.holds_new);
    vec_close(&d->batch.holds);
    vec_close(&d->batch.places);
    vec_close(&d->batch.merges);
    vec_close(&d->batch.waits_new);
    vec_close(&d->batch.waits);
    free_offers(d);
    vec_close(&d->offers);
    vec_close(&d->batch.bookings_new);
    vec_close(&d->batch.bookings);
    vec_close(&d->batch.sales);
    vec_close(&d->batch.sales_undone);
    vec_close(&d->batch.bookings_past);
    vec_close(&d->batch.payments_new);
    vec_close(&d->batch.payments);
    vec_close(&d->batch.refunds_new);
    vec_close(&d->batch.refunds);
    vec_close(&d->batch.jobs_put);
    vec_close(&d->batch.jobs);
    vec_close(&d->batch.webhooks);
    vec_close(&d->batch.audit);
    vec_close(&d->batch.heads);
    buf_close(&d->heads);
    vec_close(&d->batch.keys);
    vec_close(&d->unreadable);
    vec_close(&d->owners);
    vec_close(&d->replaced);
    vec_close(&d->terms);
    vec_close(&d->events);
    vec_close(&d->due);
}

void decision_add_event(struct decision *d, struct event *e)
{
    if (e->in_batch)
        return;
    e->in_batch = true;
    vec_push(&d->events);
    size_t i = d->events.n - 1;
    for (; i > 0 && d->events.v[i - 1]->def->id.key > e->def->id.key; i--)
        d->events.v[i] = d->events.v[i - 1];
    d->events.v[i] = e;
}

bool decision_has_effects(const struct decision *d)
{
    const struct ledger_batch *b = &d->batch;
    return b->audit.n || b->keys.n || b->jobs.n || b->jobs_put.n || b->payments.n || b->webhooks.n;
}

static int seat_write_order(const void *a, const void *b)
{
    const struct seat_write *x = a, *y = b;
    return (x->seat > y->seat) - (x->seat < y->seat);
}

static int area_write_order(const void *a, const void *b)
{
    const struct area_write *x = a, *y = b;
    return (x->event > y->event) - (x->event < y->event);
}

static int hold_new_order(const void *a, const void *b)
{
    const struct hold_row *x = a, *y = b;
    return (x->id.key > y->id.key) - (x->id.key < y->id.key);
}

static int hold_write_order(const void *a, const void *b)
{
    const struct hold_write *x = a, *y = b;
    return (x->hold > y->hold) - (x->hold < y->hold);
}

static int places_order(const void *a, const void *b)
{
    const struct hold_places_write *x = a, *y = b;
    return (x->hold > y->hold) - (x->hold < y->hold);
}

static int merge_order(const void *a, const void *b)
{
    const struct hold_merge *x = a, *y = b;
    return (x->hold > y->hold) - (x->hold < y->hold);
}

static int wait_new_order(const void *a, const void *b)
{
    const struct wait_row *x = a, *y = b;
    return (x->id.key > y->id.key) - (x->id.key < y->id.key);
}

static int wait_write_order(const void *a, const void *b)
{
    const struct wait_write *x = a, *y = b;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

static int audit_order(const void *a, const void *b)
{
    const struct audit_row *x = a, *y = b;
    return x->event != y->event ? (x->event > y->event) - (x->event < y->event)
                                : (x->seq > y->seq) - (x->seq < y->seq);
}

/* Whoever leases jobs locks them in this order, too. */
static int job_order(int64_t booking_a, int64_t job_a, int64_t booking_b, int64_t job_b)
{
    return booking_a != booking_b ? (booking_a > booking_b) - (booking_a < booking_b)
                                  : (job_a > job_b) - (job_a < job_b);
}

static int job_put_order(const void *a, const void *b)
{
    const struct job_row *x = a, *y = b;
    return job_order(x->booking, x->job, y->booking, y->job);
}

static int job_write_order(const void *a, const void *b)
{
    const struct job_write *x = a, *y = b;
    return job_order(x->row.booking, x->row.job, y->row.booking, y->row.job);
}

static int payment_write_order(const void *a, const void *b)
{
    const struct payment_write *x = a, *y = b;
    return job_order(x->row.id.key, x->row.payment, y->row.id.key, y->row.payment);
}

/* Sorts unless the rows are in order already, as those of a batch on one event mostly are. */
static void sort(void *rows, size_t n, size_t size, int (*order)(const void *, const void *))
{
    for (size_t i = 1; i < n; i++)
        if (order((char *)rows + (i - 1) * size, (char *)rows + i * size) > 0) {
            qsort(rows, n, size, order);
            return;
        }
}
#define SORT(list, order) sort((list).v, (list).n, sizeof *(list).v, order)

/* ---- stored heads ---- */

static uint32_t chunks_of(const struct event *e)
{
    return (e->def->n_seats + HEADS_CHUNK - 1) / HEADS_CHUNK;
}

/* Adds the heads of one chunk as they were before the batch: heads change at publish. */
static void put_heads(struct decision *d, struct event *e, uint32_t chunk)
{
    uint32_t first = chunk * HEADS_CHUNK, left = e->def->n_seats - first;
    uint32_t len = left < HEADS_CHUNK ? left : HEADS_CHUNK, n = 0;
    size_t start = d->heads.len;
    buf_reserve(&d->heads, (size_t)len * HEAD_SIZE);
    for (uint32_t i = 0; i < len; i++) {
        int64_t head = seat_head(&e->seats[first + i]);
        head_pack((uint8_t *)d->heads.data + start + (size_t)i * HEAD_SIZE, head);
        n = head ? i + 1 : n;
    }
    d->heads.len += (size_t)n * HEAD_SIZE;
    *vec_push(&d->batch.heads) =
        (struct heads_write){.event = e->def->id.key, .seq = e->clock.seq, .first = first, .n = n};
}

/* For every HEADS_EVERY seqs that the batch passes, the chunk whose turn it is; its number follows
 * from the seq, so servers that share the ledger take turns too. */
static void seal_heads(struct decision *d, struct event *e)
{
    uint32_t n_chunks = chunks_of(e);
    int64_t turn = e->clock.seq / HEADS_EVERY, last = e->draft.seq / HEADS_EVERY;
    if (!n_chunks || (turn == last && !e->heads_due))
        return;
    if (e->heads_due || last - turn > n_chunks)
        turn = last - n_chunks;
    while (++turn <= last)
        put_heads(d, e, (uint32_t)((uint64_t)turn % n_chunks));
}

/* Sets the pointers once the buffer has stopped moving. */
static void point_to_heads(struct decision *d)
{
    const uint8_t *next = (const uint8_t *)d->heads.data;
    for (size_t i = 0; i < d->batch.heads.n; i++) {
        d->batch.heads.v[i].heads = next;
        next += (size_t)d->batch.heads.v[i].n * HEAD_SIZE;
    }
}

/* Ascending keys: the ledger's pages are met in order, and an event's rows stand together. */
void decision_seal(struct decision *d)
{
    SORT(d->batch.seats, seat_write_order);
    SORT(d->batch.areas, area_write_order);
    SORT(d->batch.holds_new, hold_new_order);
    SORT(d->batch.holds, hold_write_order);
    SORT(d->batch.places, places_order);
    SORT(d->batch.merges, merge_order);
    SORT(d->batch.waits_new, wait_new_order);
    SORT(d->batch.waits, wait_write_order);
    SORT(d->batch.payments, payment_write_order);
    SORT(d->batch.jobs_put, job_put_order);
    SORT(d->batch.jobs, job_write_order);
    SORT(d->batch.audit, audit_order);
    d->heads.len = 0;
    for (size_t i = 0; i < d->events.n; i++) {
        struct event *e = d->events.v[i];
        if (e->draft.seq == e->clock.seq)
            continue;
        e->draft.now = d->now;
        *vec_push(&d->batch.clocks) = (struct clock_write){.before = e->clock, .after = e->draft};
        seal_heads(d, e);
    }
    point_to_heads(d);
}

/* Shows the event's part of the batch; seats and areas come in the order of events. */
static bool changes_event(const struct decision *d, const struct event *e)
{
    for (size_t i = 0; i < d->batch.events.n; i++)
        if (d->batch.events.v[i].event == e->def->id.key)
            return true;
    return false;
}

static void publish_event(struct decision *d, struct event *e, size_t *next_seat, size_t *next_area)
{
    const struct ledger_batch *b = &d->batch;
    const struct clock_row clock = e->draft;
    int64_t event = e->def->id.key;
    publish_begin(e);
    for (; *next_seat < b->seats.n && SEAT_EVENT(b->seats.v[*next_seat].seat) == event;
         ++*next_seat) {
        const struct seat_write *w = &b->seats.v[*next_seat];
        /* Streams hear nothing of a renewal, or of a seat that changed hands within the batch. */
        bool is_news = w->to != w->from;
        publish_seat(e, SEAT_INDEX(w->seat), w->to == SEAT_HELD ? w->expires_at : 0,
                     is_news ? clock.seq : 0);
        seat_set_head(&e->seats[SEAT_INDEX(w->seat)], w->head);
        e->seats[SEAT_INDEX(w->seat)].pending = 0;
    }
    for (; *next_area < b->areas.n && b->areas.v[*next_area].event == event; ++*next_area) {
        uint32_t area = (uint32_t)b->areas.v[*next_area].area;
        publish_area(e, area, clock.seq);
        e->areas[area].pending = 0;
    }
    if (changes_event(d, e))
        publish_terms(e, clock.seq);
    e->heads_due = false;
    publish_end(e, &clock);
}

/* Entries that the batch has ended leave the view. */
static void publish_waits(struct decision *d)
{
    for (size_t i = 0; i < d->batch.waits.n; i++) {
        int64_t key = d->batch.waits.v[i].entry;
        struct event *e = view_event(d->view, HOLD_EVENT(key));
        struct wait_entry *x = waitlist_find(e->waitlist, key);
        x->pending = 0;
        if (!wait_is_live((enum wait_status)x->status))
            waitlist_remove(e, x);
    }
    for (size_t i = 0; i < d->events.n; i++)
        view_waits_schedule(d->view, d->events.v[i]);
}

void decision_publish(struct decision *d)
{
    size_t next_seat = 0, next_area = 0;
    for (size_t i = 0; i < d->events.n; i++)
        if (d->events.v[i]->draft.seq != d->events.v[i]->clock.seq)
            publish_event(d, d->events.v[i], &next_seat, &next_area);
    hf_check(next_seat == d->batch.seats.n && next_area == d->batch.areas.n);
    for (size_t i = 0; i < d->batch.holds.n; i++) {
        struct hold *h = view_hold(d->view, d->batch.holds.v[i].hold);
        if (!h)
            continue;
        h->pending = 0;
        if (h->status != HOLD_ACTIVE)
            view_hold_remove(d->view, h);
    }
    publish_waits(d);
    for (size_t i = 0; i < d->replaced.n; i++)
        free(d->replaced.v[i]);
    vec_clear(&d->replaced);
    for (size_t i = 0; i < d->terms.n; i++)
        event_terms_give(d->terms.v[i].terms);
    vec_clear(&d->terms);
}

static void undo_new_holds(struct decision *d)
{
    for (size_t i = 0; i < d->batch.holds_new.n; i++) {
        struct hold *h = view_hold(d->view, d->batch.holds_new.v[i].id.key);
        if (h)
            view_hold_remove(d->view, h);
    }
}

static void undo_holds(struct decision *d)
{
    for (size_t i = 0; i < d->batch.holds.n; i++) {
        const struct hold_write *w = &d->batch.holds.v[i];
        struct hold *h = view_hold(d->view, w->hold);
        if (!h)
            continue;
        view_deadline_drop(d->view, h);
        h->pending = 0;
        h->status = (uint8_t)w->from;
        h->fence = w->fence_before;
        h->expires_at = w->expires_before;
        h->last_seq = w->seq_before;
        h->payment = w->payment_before;
        view_deadline_put(d->view, h);
    }
}

/* A hold is replaced at most once in a batch.  It goes back before undo_holds looks for it. */
static void undo_places(struct decision *d)
{
    for (size_t i = 0; i < d->replaced.n; i++) {
        struct hold *before = d->replaced.v[i], *after = view_hold(d->view, before->key);
        before->pending = after->pending;
        before->status = after->status;
        view_hold_replace(d->view, after, before);
        free(after);
    }
    vec_clear(&d->replaced);
}

static void undo_terms(struct decision *d)
{
    for (size_t i = 0; i < d->terms.n; i++)
        event_set_terms(d->terms.v[i].event, d->terms.v[i].terms);
    vec_clear(&d->terms);
}

static void undo_seats(struct decision *d)
{
    for (size_t i = 0; i < d->batch.seats.n; i++) {
        const struct seat_write *w = &d->batch.seats.v[i];
        struct event *e = view_event(d->view, SEAT_EVENT(w->seat));
        struct seat *seat = &e->seats[SEAT_INDEX(w->seat)];
        seat->pending = 0;
        seat->status = (uint8_t)w->from;
        seat->channel = w->channel_before;
        seat_set_hold(e, SEAT_INDEX(w->seat), w->hold_before);
        free_seats_changed(e, SEAT_INDEX(w->seat));
    }
}

static void undo_areas(struct decision *d)
{
    for (size_t i = 0; i < d->batch.areas.n; i++) {
        const struct area_write *w = &d->batch.areas.v[i];
        struct event *e = view_event(d->view, w->event);
        e->areas[w->area].pending = 0;
        event_load_area(e, (uint32_t)w->area, w->held_before, w->booked_before, &w->blocks_before);
    }
}

/* The next look at the lists begins anew. */
static void undo_waits(struct decision *d)
{
    for (size_t i = 0; i < d->batch.waits.n; i++) {
        const struct wait_write *w = &d->batch.waits.v[i];
        struct event *e = view_event(d->view, HOLD_EVENT(w->entry));
        struct wait_entry *x = waitlist_find(e->waitlist, w->entry);
        x->pending = 0;
        waitlist_set(e, x,
                     &(struct wait_state){.status = w->from,
                                          .rank = w->rank_before,
                                          .read_at = w->read_before,
                                          .hold = w->from == WAIT_OFFERED ? w->hold_before : 0,
                                          .last_seq = w->seq_before});
    }
    for (size_t i = d->batch.waits_new.n; i-- > 0;) {
        const struct wait_row *row = &d->batch.waits_new.v[i];
        struct event *e = view_event(d->view, row->event);
        waitlist_remove(e, waitlist_find(e->waitlist, row->id.key));
        if (row->number <= e->waitlist->last_number)
            e->waitlist->last_number = row->number - 1;
    }
    for (size_t i = 0; i < d->events.n; i++) {
        struct event *e = d->events.v[i];
        if (!e->waitlist)
            continue;
        waitlist_freed_all(e);
        e->waitlist->unsettled = true;
        e->waitlist->looked_at = 0;
        view_waits_schedule(d->view, e);
    }
}

void decision_undo(struct decision *d)
{
    undo_waits(d);
    undo_new_holds(d);
    undo_places(d);
    undo_holds(d);
    undo_seats(d);
    undo_areas(d);
    undo_terms(d);
    for (size_t i = 0; i < d->owners.n; i++)
        view_owner_booked(d->view, d->owners.v[i].event, d->owners.v[i].owner,
                          -d->owners.v[i].places);
    for (size_t i = 0; i < d->batch.events.n; i++)
        view_event(d->view, d->batch.events.v[i].event)->status_draft = d->batch.events.v[i].from;
    for (size_t i = 0; i < d->events.n; i++)
        d->events.v[i]->draft = d->events.v[i]->clock;
}
