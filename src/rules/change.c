/* Changes of the view, the batch and the log in step; see change.h.  On the worker's thread.
 * Publishing is the moment others see a batch: an event's seats, areas, status and seq change under
 * its lock, as one step, so that no map is of two moments (I13). */
#include "rules/change.h"

#include <stdlib.h>

struct audit_row *change_log(struct decision *d, struct event *e, enum audit_object object,
                             enum audit_cause cause, int from, int to)
{
    struct audit_row *row = vec_push(&d->batch.audit);
    *row = (struct audit_row){.event = e->def->id.key,
                              .seq = ++e->draft.seq,
                              .at = d->now,
                              .object = object,
                              .cause = cause,
                              .item = -1,
                              .from = from,
                              .to = to};
    return row;
}

void change_seat(struct decision *d, struct event *e, uint32_t index, enum seat_status to,
                 int64_t hold, int64_t fence, int64_t until)
{
    struct seat *seat = &e->seats[index];
    struct seat_write *write;
    if (seat->pending) {
        write = &d->batch.seats.v[seat->pending - 1];
    } else {
        write = vec_push(&d->batch.seats);
        seat->pending = (uint32_t)d->batch.seats.n;
        write->seat = SEAT_KEY(e->def->id.key, index);
        write->from = seat->status;
        write->hold_before = seat->hold;
    }
    write->to = to;
    write->hold = hold;
    write->fence = fence;
    write->expires_at = until;
    seat->status = (uint8_t)to;
    seat->hold = hold;
    best_changed(e, index);
}

void change_seats(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n,
                  enum seat_status to, enum audit_cause cause, int64_t hold, int64_t fence,
                  int64_t until)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t owner = e->seats[seats[i]].hold;
        if (owner != 0 && owner != hold)
            continue;
        struct audit_row *row =
            change_log(d, e, AUDIT_SEAT, cause, e->seats[seats[i]].status, (int)to);
        row->item = seats[i];
        row->quantity = 1;
        row->hold = hold;
        row->booking = to == SEAT_BOOKED ? hold : 0;
        row->fence = fence;
        row->until = until;
        change_seat(d, e, seats[i], to, to == SEAT_AVAILABLE ? 0 : hold, fence, until);
    }
}

/* Places of an area pass from one status to another. */
static void change_area(struct decision *d, struct event *e, const struct area_claim *claim,
                        enum seat_status from, enum seat_status to, enum audit_cause cause,
                        int64_t hold, int64_t fence, int64_t until)
{
    struct area *area = &e->areas[claim->area];
    if (!area->pending) {
        *vec_push(&d->batch.areas) = (struct area_write){.event = e->def->id.key,
                                                         .area = claim->area,
                                                         .held_before = area->held,
                                                         .booked_before = area->booked};
        area->pending = (uint32_t)d->batch.areas.n;
    }
    int64_t n = claim->quantity;
    area->held += n * (to == SEAT_HELD) - n * (from == SEAT_HELD);
    area->booked += n * (to == SEAT_BOOKED) - n * (from == SEAT_BOOKED);
    struct area_write *write = &d->batch.areas.v[area->pending - 1];
    write->held = area->held;
    write->booked = area->booked;
    struct audit_row *row = change_log(d, e, AUDIT_AREA, cause, (int)from, (int)to);
    row->item = claim->area;
    row->quantity = claim->quantity;
    row->hold = hold;
    row->booking = to == SEAT_BOOKED ? hold : 0;
    row->fence = fence;
    row->until = until;
}

void change_areas(struct decision *d, struct event *e, const struct area_claim *areas, uint32_t n,
                  enum seat_status from, enum seat_status to, enum audit_cause cause, int64_t hold,
                  int64_t fence, int64_t until)
{
    for (uint32_t i = 0; i < n; i++)
        change_area(d, e, &areas[i], from, to, cause, hold, fence, until);
}

/* The write that carries a live hold's changes of this batch. */
static struct hold_write *hold_write(struct decision *d, struct hold *h)
{
    if (!h->pending) {
        struct hold_write *write = vec_push(&d->batch.holds);
        h->pending = (uint32_t)d->batch.holds.n;
        write->hold = h->key;
        write->from = h->status;
        write->fence_before = h->fence;
        write->expires_before = h->expires_at;
    }
    return &d->batch.holds.v[h->pending - 1];
}

void change_hold(struct decision *d, struct hold *h, enum hold_status to, enum audit_cause cause,
                 int64_t fence, int64_t expires_at)
{
    struct hold_write *write = hold_write(d, h);
    struct audit_row *row = change_log(d, h->event, AUDIT_HOLD, cause, h->status, (int)to);
    row->hold = h->key;
    row->fence = fence;
    row->until = expires_at;
    row->quantity = places_count(h->n_seats, h->areas, h->n_areas);
    write->to = to;
    write->fence = fence;
    write->expires_at = expires_at;
    h->status = (uint8_t)to;
    h->fence = fence;
    h->expires_at = expires_at;
    if (to == HOLD_ACTIVE)
        view_deadline_moved(d->view, h);
    else
        view_deadline_drop(d->view, h);
}

void change_event(struct decision *d, struct event *e, enum event_status to, enum audit_cause cause)
{
    struct event_write *write = NULL;
    for (size_t i = 0; i < d->batch.events.n && !write; i++)
        if (d->batch.events.v[i].event == e->def->id.key)
            write = &d->batch.events.v[i];
    if (!write) {
        write = vec_push(&d->batch.events);
        write->event = e->def->id.key;
        write->from = e->status_draft;
    }
    write->to = to;
    change_log(d, e, AUDIT_EVENT, cause, (int)e->status_draft, (int)to);
    e->status_draft = to;
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

/* Ascending keys: the ledger's pages are met in order, and an event's seats stand together. */
void decide_seal(struct decision *d)
{
    if (d->batch.seats.n > 1)
        qsort(d->batch.seats.v, d->batch.seats.n, sizeof *d->batch.seats.v, seat_write_order);
    if (d->batch.areas.n > 1)
        qsort(d->batch.areas.v, d->batch.areas.n, sizeof *d->batch.areas.v, area_write_order);
    for (size_t i = 0; i < d->events.n; i++) {
        struct event *e = d->events.v[i];
        if (e->draft.seq == e->clock.seq)
            continue;
        e->draft.now = d->now;
        *vec_push(&d->batch.clocks) = (struct clock_write){.before = e->clock, .after = e->draft};
    }
}

static struct event *event_of_seat(const struct decision *d, int64_t seat)
{
    return view_event(d->view, seat >> 32);
}

/* The event's part of the batch; seats and areas come in the order of events. */
static void publish_event(struct decision *d, struct event *e, size_t *next_seat, size_t *next_area)
{
    int64_t key = e->def->id.key;
    const struct ledger_batch *b = &d->batch;
    pthread_mutex_lock(&e->lock);
    for (; *next_seat < b->seats.n && b->seats.v[*next_seat].seat >> 32 == key; ++*next_seat) {
        const struct seat_write *w = &b->seats.v[*next_seat];
        event_show_seat(e, SEAT_INDEX(w->seat), w->to == SEAT_HELD ? w->expires_at : 0);
        if (w->to != w->from) /* not a renewal, nor a seat that changed hands within the batch */
            feed_put(&e->feed, &(struct change){.seq = e->draft.seq,
                                                .item = SEAT_INDEX(w->seat),
                                                .state = (uint32_t)w->to});
        e->seats[SEAT_INDEX(w->seat)].pending = 0;
    }
    for (; *next_area < b->areas.n && b->areas.v[*next_area].event == key; ++*next_area) {
        uint32_t area = (uint32_t)b->areas.v[*next_area].area;
        event_show_area(e, area);
        feed_put(&e->feed, &(struct change){.seq = e->draft.seq,
                                            .item = area,
                                            .state = (uint32_t)e->areas[area].available,
                                            .is_area = true});
        e->areas[area].pending = 0;
    }
    atomic_store_explicit(&e->status, (int)e->status_draft, memory_order_relaxed);
    e->clock = e->draft;
    atomic_store_explicit(&e->seq, e->clock.seq, memory_order_release);
    pthread_mutex_unlock(&e->lock);
}

void decide_publish(struct decision *d)
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
}

void decide_undo(struct decision *d)
{
    for (size_t i = 0; i < d->batch.holds_new.n; i++) {
        struct hold *h = view_hold(d->view, d->batch.holds_new.v[i].id.key);
        if (h)
            view_hold_remove(d->view, h);
    }
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
        view_deadline_put(d->view, h);
    }
    for (size_t i = 0; i < d->batch.seats.n; i++) {
        const struct seat_write *w = &d->batch.seats.v[i];
        struct event *e = event_of_seat(d, w->seat);
        struct seat *seat = &e->seats[SEAT_INDEX(w->seat)];
        seat->pending = 0;
        seat->status = (uint8_t)w->from;
        seat->hold = w->hold_before;
        best_changed(e, SEAT_INDEX(w->seat));
    }
    for (size_t i = 0; i < d->batch.areas.n; i++) {
        const struct area_write *w = &d->batch.areas.v[i];
        struct area *area = &view_event(d->view, w->event)->areas[w->area];
        area->pending = 0;
        area->held = w->held_before;
        area->booked = w->booked_before;
    }
    for (size_t i = 0; i < d->batch.events.n; i++)
        view_event(d->view, d->batch.events.v[i].event)->status_draft = d->batch.events.v[i].from;
    for (size_t i = 0; i < d->events.n; i++)
        d->events.v[i]->draft = d->events.v[i]->clock;
}
