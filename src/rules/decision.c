/* The life of a batch around the rules: begin, seal, and the two ways it can end, shown or taken
 * back.  See decision.h.  On the worker's thread. */
#include "rules/decision.h"

#include <stdlib.h>

#include "rules/best.h"
#include "rules/publish.h"

void decision_begin(struct decision *d)
{
    vec_clear(&d->batch.clocks);
    vec_clear(&d->batch.events);
    vec_clear(&d->batch.seats);
    vec_clear(&d->batch.areas);
    vec_clear(&d->batch.holds_new);
    vec_clear(&d->batch.holds);
    vec_clear(&d->batch.bookings);
    vec_clear(&d->batch.sales);
    vec_clear(&d->batch.audit);
    vec_clear(&d->batch.keys);
    vec_clear(&d->rescued);
    for (size_t i = 0; i < d->events.n; i++)
        d->events.v[i]->in_batch = false;
    vec_clear(&d->events);
    d->batch_no++;
    d->expired = 0;
}

void decision_close(struct decision *d)
{
    vec_close(&d->batch.clocks);
    vec_close(&d->batch.events);
    vec_close(&d->batch.seats);
    vec_close(&d->batch.areas);
    vec_close(&d->batch.holds_new);
    vec_close(&d->batch.holds);
    vec_close(&d->batch.bookings);
    vec_close(&d->batch.sales);
    vec_close(&d->batch.audit);
    vec_close(&d->batch.keys);
    vec_close(&d->rescued);
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

bool decision_has_effects(const struct decision *d) { return d->batch.audit.n || d->batch.keys.n; }

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
void decision_seal(struct decision *d)
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

/* Shows the event's part of the batch; seats and areas come in the order of events. */
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
        e->seats[SEAT_INDEX(w->seat)].pending = 0;
    }
    for (; *next_area < b->areas.n && b->areas.v[*next_area].event == event; ++*next_area) {
        uint32_t area = (uint32_t)b->areas.v[*next_area].area;
        publish_area(e, area, clock.seq);
        e->areas[area].pending = 0;
    }
    publish_end(e, &clock);
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
        view_deadline_put(d->view, h);
    }
}

static void undo_seats(struct decision *d)
{
    for (size_t i = 0; i < d->batch.seats.n; i++) {
        const struct seat_write *w = &d->batch.seats.v[i];
        struct event *e = view_event(d->view, SEAT_EVENT(w->seat));
        struct seat *seat = &e->seats[SEAT_INDEX(w->seat)];
        seat->pending = 0;
        seat->status = (uint8_t)w->from;
        seat->hold = w->hold_before;
        best_changed(e, SEAT_INDEX(w->seat));
    }
}

static void undo_areas(struct decision *d)
{
    for (size_t i = 0; i < d->batch.areas.n; i++) {
        const struct area_write *w = &d->batch.areas.v[i];
        struct area *area = &view_event(d->view, w->event)->areas[w->area];
        area->pending = 0;
        area->held = w->held_before;
        area->booked = w->booked_before;
    }
}

void decision_undo(struct decision *d)
{
    undo_new_holds(d);
    undo_holds(d);
    undo_seats(d);
    undo_areas(d);
    for (size_t i = 0; i < d->batch.events.n; i++)
        view_event(d->view, d->batch.events.v[i].event)->status_draft = d->batch.events.v[i].from;
    for (size_t i = 0; i < d->events.n; i++)
        d->events.v[i]->draft = d->events.v[i]->clock;
}
