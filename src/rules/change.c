/* Changes of the view, the batch and the log in step; see change.h.  On the worker's thread. */
#include "rules/change.h"

#include "rules/best.h"

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

/* The write that carries the seat's changes of this batch. */
static struct seat_write *seat_write(struct decision *d, struct event *e, uint32_t index)
{
    struct seat *seat = &e->seats[index];
    if (!seat->pending) {
        struct seat_write *write = vec_push(&d->batch.seats);
        hf_check(d->batch.seats.n <= SEAT_PENDING_MAX);
        seat->pending = d->batch.seats.n & SEAT_PENDING_MAX;
        write->seat = SEAT_KEY(e->def->id.key, index);
        write->from = seat->status;
        write->hold_before = seat_hold(e, index);
        write->head = seat_head(seat);
    }
    return &d->batch.seats.v[seat->pending - 1];
}

void change_seat(struct decision *d, struct event *e, uint32_t index, const struct transition *t,
                 struct audit_row *row)
{
    struct seat_write *write = seat_write(d, e, index);
    e->seats[index].status = (uint8_t)t->to;
    seat_set_hold(e, index, t->to == SEAT_AVAILABLE ? 0 : t->hold);
    if (row) {
        row->prev = write->head;
        write->head = row->seq;
    }
    write->to = t->to;
    write->hold = seat_hold(e, index);
    write->fence = t->fence;
    write->expires_at = t->until;
    best_changed(e, index);
}

/* The part of a log row that seats and areas share. */
static struct audit_row *log_places(struct decision *d, struct event *e, enum audit_object object,
                                    enum seat_status from, const struct transition *t)
{
    struct audit_row *row = change_log(d, e, object, t->cause, (int)from, (int)t->to);
    row->hold = t->hold;
    row->booking = t->to == SEAT_BOOKED ? t->hold : 0;
    row->fence = t->fence;
    row->until = t->until;
    return row;
}

void change_seats(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n,
                  const struct transition *t)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t owner = seat_hold(e, seats[i]);
        if (owner != 0 && owner != t->hold)
            continue;
        struct audit_row *row = log_places(d, e, AUDIT_SEAT, e->seats[seats[i]].status, t);
        row->item = seats[i];
        row->quantity = 1;
        change_seat(d, e, seats[i], t, row);
    }
}

/* The write that carries the area's changes of this batch. */
static struct area_write *area_write(struct decision *d, struct event *e, uint32_t index)
{
    struct area *area = &e->areas[index];
    if (!area->pending) {
        *vec_push(&d->batch.areas) = (struct area_write){.event = e->def->id.key,
                                                         .area = index,
                                                         .held_before = area->held,
                                                         .booked_before = area->booked};
        area->pending = (uint32_t)d->batch.areas.n;
    }
    return &d->batch.areas.v[area->pending - 1];
}

void change_areas(struct decision *d, struct event *e, const struct area_claim *areas, uint32_t n,
                  enum seat_status from, const struct transition *t)
{
    for (uint32_t i = 0; i < n; i++) {
        struct area_write *write = area_write(d, e, areas[i].area);
        area_pass(&e->areas[areas[i].area], areas[i].quantity, from, t->to);
        write->held = e->areas[areas[i].area].held;
        write->booked = e->areas[areas[i].area].booked;
        struct audit_row *row = log_places(d, e, AUDIT_AREA, from, t);
        row->item = areas[i].area;
        row->quantity = areas[i].quantity;
    }
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
        write->seq_before = h->last_seq;
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
    row->prev = h->last_seq;
    write->to = to;
    write->fence = fence;
    write->expires_at = expires_at;
    write->last_seq = h->last_seq = row->seq;
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
