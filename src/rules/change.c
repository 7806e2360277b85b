/* Changes of the view, the batch and the log in step; see change.h.  On the worker's thread. */
#include "rules/change.h"

#include "view/free_seats.h"

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
                              .to = to,
                              .actor = d->actor};
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
        write->channel_before = seat->channel;
        write->hold_before = seat_hold(e, index);
        write->head = seat_head(seat);
    }
    return &d->batch.seats.v[seat->pending - 1];
}

/* What the seat passes to: one that was blocked for a channel is blocked again when it is free. */
static enum seat_status seat_target(const struct seat *seat, const struct transition *t)
{
    bool returns = t->to == SEAT_AVAILABLE && seat->channel && t->cause != CAUSE_UNBLOCK;
    return returns ? SEAT_BLOCKED : t->to;
}

/* Does the row of the seat change, as seat_row_status has it?  Blocking again gives it a new fence
 * or channel. */
static bool row_changes(const struct seat *seat, enum seat_status to, enum audit_cause cause)
{
    return cause == CAUSE_BLOCK || cause == CAUSE_UNBLOCK || to == SEAT_BOOKED ||
           seat->status == SEAT_BOOKED;
}

void change_seat(struct decision *d, struct event *e, uint32_t index, const struct transition *t,
                 struct audit_row *row)
{
    struct seat_write *write = seat_write(d, e, index);
    struct seat *seat = &e->seats[index];
    enum seat_status to = seat_target(seat, t);
    if (row_changes(seat, to, t->cause)) {
        write->row_changes = true;
        write->row_fence = t->fence;
    }
    if (t->cause == CAUSE_BLOCK || t->cause == CAUSE_UNBLOCK)
        seat->channel = (uint8_t)t->channel;
    seat->status = (uint8_t)to;
    seat_set_hold(e, index, to == SEAT_HELD || to == SEAT_BOOKED ? t->hold : 0);
    if (row) {
        row->prev = write->head;
        write->head = row->seq;
    }
    write->to = to;
    write->channel = seat->channel;
    write->hold = seat_hold(e, index);
    write->expires_at = t->until;
    free_seats_changed(e, index);
    if (to == SEAT_AVAILABLE)
        waitlist_freed_seat(e, index);
}

/* The part of a log row that seats and areas share. */
static struct audit_row *log_places(struct decision *d, struct event *e, enum audit_object object,
                                    enum seat_status from, enum seat_status to,
                                    const struct transition *t)
{
    struct audit_row *row = change_log(d, e, object, t->cause, (int)from, (int)to);
    row->hold = t->hold;
    row->booking = to == SEAT_BOOKED ? t->hold : 0;
    row->fence = t->fence;
    row->until = t->until;
    return row;
}

/* Reads on in the types of the transition's places: up to `n` places of one type. */
static uint32_t next_type(const struct transition *t, uint32_t n, uint32_t *ret_type)
{
    int64_t price;
    uint32_t got = t->types ? price_reader_next(t->types, n, &price, ret_type) : 0;
    return got ? got : n;
}

void change_seats(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n,
                  const struct transition *t)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t type = 0;
        (void)next_type(t, 1, &type);
        int64_t owner = seat_hold(e, seats[i]);
        if (owner != 0 && owner != t->hold)
            continue;
        const struct seat *seat = &e->seats[seats[i]];
        enum seat_status from = (enum seat_status)seat->status, to = seat_target(seat, t);
        struct audit_row *row = log_places(d, e, AUDIT_SEAT, from, to, t);
        row->item = seats[i];
        row->quantity = 1;
        row->type = type;
        if (from == SEAT_BLOCKED || to == SEAT_BLOCKED)
            row->channel = t->cause == CAUSE_BLOCK ? t->channel : seat->channel;
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
        struct area_write *write = &d->batch.areas.v[area->pending - 1];
        write->blocks = &area->blocks;
        for (size_t i = 0; i < area->blocks.list.n; i++)
            *vec_push(&write->blocks_before.list) = area->blocks.list.v[i];
    }
    return &d->batch.areas.v[area->pending - 1];
}

/* Moves places of one area and type. */
static void pass_places(struct decision *d, struct event *e, const struct area_claim *places,
                        uint32_t type, enum seat_status from, const struct transition *t)
{
    bool in_channel = t->channel && t->cause != CAUSE_BLOCK && t->cause != CAUSE_UNBLOCK;
    enum seat_status passes_from = in_channel && from == SEAT_AVAILABLE ? SEAT_BLOCKED : from;
    enum seat_status passes_to = in_channel && t->to == SEAT_AVAILABLE ? SEAT_BLOCKED : t->to;
    struct area_write *write = area_write(d, e, places->area);
    area_pass(&e->areas[places->area],
              &(struct area_passage){places->quantity, passes_from, passes_to, t->channel});
    if (passes_to == SEAT_AVAILABLE)
        waitlist_freed_area(e, places->area);
    write->held = e->areas[places->area].held;
    write->booked = e->areas[places->area].booked;
    struct audit_row *row = log_places(d, e, AUDIT_AREA, passes_from, passes_to, t);
    row->item = places->area;
    row->quantity = places->quantity;
    row->type = type;
    if (passes_from == SEAT_BLOCKED || passes_to == SEAT_BLOCKED)
        row->channel = t->channel;
}

void change_areas(struct decision *d, struct event *e, const struct area_claim *areas, uint32_t n,
                  enum seat_status from, const struct transition *t)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t of_type[TYPES_MAX] = {0};
        for (uint32_t left = areas[i].quantity, got; left; left -= got) {
            uint32_t type = 0;
            got = next_type(t, left, &type);
            of_type[type] += got;
        }
        for (uint32_t type = 0; type < TYPES_MAX; type++) {
            const struct area_claim places = {areas[i].area, of_type[type]};
            if (places.quantity)
                pass_places(d, e, &places, type, from, t);
        }
    }
}

void change_log_hold(struct decision *d, struct event *e, struct hold_row *row,
                     enum audit_cause cause, enum hold_status from, enum hold_status to)
{
    struct audit_row *logged = change_log(d, e, AUDIT_HOLD, cause, (int)from, (int)to);
    logged->hold = row->id.key;
    logged->fence = row->fence;
    logged->until = row->expires_at;
    logged->quantity = places_count(row->n_seats, row->areas, row->n_areas);
    logged->prev = row->last_seq;
    row->last_seq = logged->seq;
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
        write->payment_before = h->payment;
        write->to = h->status;
        write->fence = h->fence;
        write->expires_at = h->expires_at;
        write->last_seq = h->last_seq;
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

struct hold *change_places(struct decision *d, struct hold *h, const struct hold_places_write *to)
{
    struct hold *after = hold_with_places(h, to->seats, to->n_seats, to->areas, to->n_areas);
    view_hold_replace(d->view, h, after);
    *vec_push(&d->replaced) = h;
    *vec_push(&d->unreadable) = h->key;
    *vec_push(&d->batch.places) = *to;
    change_hold(d, after, HOLD_ACTIVE, CAUSE_CHANGE, to->fence, after->expires_at);
    return after;
}

/* The write that carries the changes of a hold without an entry in the view.  There are few of
 * them in a batch, and the last is the most likely one. */
static struct hold_write *row_write(struct decision *d, const struct hold_row *hold)
{
    for (size_t i = d->batch.holds.n; i-- > 0;)
        if (d->batch.holds.v[i].hold == hold->id.key)
            return &d->batch.holds.v[i];
    struct hold_write *write = vec_push(&d->batch.holds);
    *write = (struct hold_write){.hold = hold->id.key,
                                 .fence_before = hold->fence,
                                 .fence = hold->fence,
                                 .expires_at = hold->expires_at,
                                 .seq_before = hold->last_seq,
                                 .from = hold->status,
                                 .to = hold->status};
    return write;
}

struct audit_row *change_log_money(struct decision *d, struct event *e, struct hold_row *hold,
                                   struct hold *h, enum audit_object object, enum audit_cause cause,
                                   int from, int to)
{
    struct hold_write *write = h ? hold_write(d, h) : row_write(d, hold);
    struct audit_row *row = change_log(d, e, object, cause, from, to);
    row->hold = row->booking = hold->id.key;
    row->prev = h ? h->last_seq : hold->last_seq;
    write->last_seq = hold->last_seq = row->seq;
    if (h)
        h->last_seq = row->seq;
    return row;
}

void change_booking(struct decision *d, struct event *e, const struct booking_write *to,
                    enum audit_cause cause, struct hold_row *hold, struct hold *h)
{
    *vec_push(&d->batch.bookings) = *to;
    *vec_push(&d->unreadable) = to->booking;
    struct audit_row *row =
        change_log_money(d, e, hold, h, AUDIT_BOOKING, cause, (int)to->from, (int)to->to);
    row->fence = hold->fence;
    row->quantity = places_count(hold->n_seats, hold->areas, hold->n_areas);
}

void change_hold_payment(struct decision *d, struct hold *h, int64_t payment)
{
    (void)hold_write(d, h);
    h->payment = payment;
}

/* Remembers the terms before the batch, once per event. */
static void note_terms(struct decision *d, struct event *e)
{
    for (size_t i = 0; i < d->terms.n; i++)
        if (d->terms.v[i].event == e)
            return;
    *vec_push(&d->terms) = (struct terms_before){.event = e, .terms = event_terms_share(e->terms)};
}

void change_event(struct decision *d, struct event *e, enum event_status to, enum audit_cause cause,
                  const struct event_terms *terms)
{
    struct event_write *write = NULL;
    for (size_t i = 0; i < d->batch.events.n && !write; i++)
        if (d->batch.events.v[i].event == e->def->id.key)
            write = &d->batch.events.v[i];
    if (!write) {
        write = vec_push(&d->batch.events);
        write->event = e->def->id.key;
        write->from = e->status_draft;
        write->n_categories = event_def_categories(e->def);
        write->by_section = !e->def->categories.n;
    }
    write->to = to;
    if (terms) {
        note_terms(d, e);
        event_set_terms(e, terms);
        write->terms = terms;
    }
    change_log(d, e, AUDIT_EVENT, cause, (int)e->status_draft, (int)to);
    e->status_draft = to;
    waitlist_freed_all(e);
}

/* ---- the waiting list ---- */

static struct audit_row *log_wait(struct decision *d, struct event *e, int64_t key,
                                  enum audit_cause cause, enum wait_status from,
                                  enum wait_status to)
{
    struct audit_row *row = change_log(d, e, AUDIT_WAIT, cause, (int)from, (int)to);
    row->fence = HOLD_FIRST_FENCE(key);
    return row;
}

void change_wait_new(struct decision *d, struct event *e, struct wait_row *row, uint64_t owner)
{
    struct audit_row *logged = log_wait(d, e, row->id.key, CAUSE_CREATE, WAIT_NONE, WAIT_WAITING);
    logged->quantity = row->wish.quantity;
    logged->until = row->number;
    row->last_seq = logged->seq;
    *vec_push(&d->batch.waits_new) = *row;
    waitlist_add(e, row, owner);
}

/* The write that carries the entry's changes of this batch. */
static struct wait_write *wait_write(struct decision *d, struct wait_entry *x)
{
    if (!x->pending) {
        *vec_push(&d->batch.waits) = (struct wait_write){.entry = x->key,
                                                         .rank_before = x->rank,
                                                         .rank = x->rank,
                                                         .read_before = x->read_at,
                                                         .read_at = x->read_at,
                                                         .hold_before = x->hold,
                                                         .hold = x->hold,
                                                         .seq_before = x->last_seq,
                                                         .from = (enum wait_status)x->status,
                                                         .to = (enum wait_status)x->status};
        x->pending = (uint32_t)d->batch.waits.n;
    }
    return &d->batch.waits.v[x->pending - 1];
}

void change_wait(struct decision *d, struct event *e, struct wait_entry *x,
                 const struct wait_transition *t)
{
    struct wait_write *write = wait_write(d, x);
    struct audit_row *row = log_wait(d, e, x->key, t->cause, (enum wait_status)x->status, t->to);
    row->quantity = x->queue->wish.quantity;
    row->hold = t->hold;
    row->until = t->until;
    row->prev = x->last_seq;
    const struct wait_state to = {.status = t->to,
                                  .rank = t->comes_first ? -row->seq : x->rank,
                                  .read_at = t->is_read ? d->now : x->read_at,
                                  .hold = t->to == WAIT_OFFERED ? t->hold : 0,
                                  .last_seq = row->seq};
    waitlist_set(e, x, &to);
    write->to = t->to;
    write->rank = to.rank;
    write->read_at = to.read_at;
    write->hold = t->hold ? t->hold : write->hold;
    write->last_seq = row->seq;
    write->reason = t->reason;
    write->ended_at = wait_is_live(t->to) ? 0 : d->now;
    d->wait_changes++;
}
