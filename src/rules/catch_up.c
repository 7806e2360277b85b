/* Folds what other servers wrote into the view row by row, then shows it in one step, as a batch of
 * our own is shown (I11, I13).  On the worker's thread. */
#include "rules/catch_up.h"

#include <stdlib.h>

#include "rules/best.h"
#include "rules/publish.h"

/* What to show when all rows are folded.  Seats and areas that changed are marked by `pending`, so
 * that each is listed once. */
struct touched_seat {
    uint32_t index;
    int64_t head; /* the seq of the last row about it */
};
struct touched {
    VEC(struct touched_seat) seats; /* `pending` is 1 + the index in this list */
    VEC(uint32_t) areas;
    VEC(uint32_t) renewed; /* seats whose hold lasts longer; a seat may be listed twice */
};

static int hold_order(const void *key, const void *row)
{
    int64_t a = *(const int64_t *)key, b = ((const struct hold_row *)row)->id.key;
    return (a > b) - (a < b);
}

/* A hold that ended meanwhile has no live row; later rows of the log free its places. */
static void fold_hold(struct view *v, struct event *e, const struct audit_row *row,
                      const struct log_since *since, struct touched *touched)
{
    struct hold *h = view_hold(v, row->hold);
    if (row->to != HOLD_ACTIVE) {
        if (h)
            view_hold_remove(v, h);
    } else if (h) {
        h->expires_at = row->until;
        h->fence = row->fence;
        h->last_seq = row->seq;
        view_deadline_moved(v, h);
        for (uint32_t i = 0; i < h->n_seats; i++)
            *vec_push(&touched->renewed) = h->seats[i];
    } else if (since->holds.n) {
        const struct hold_row *made =
            bsearch(&row->hold, since->holds.v, since->holds.n, sizeof *since->holds.v, hold_order);
        if (made && event_fits_hold(e, made))
            view_hold_add(v, e, made)->last_seq = row->seq;
    }
}

static bool fold_seat(struct event *e, const struct audit_row *row, struct touched *touched)
{
    if (row->item < 0 || row->item >= e->def->n_seats)
        return false;
    uint32_t index = (uint32_t)row->item;
    struct seat *seat = &e->seats[index];
    seat->status = (uint8_t)row->to;
    seat_set_hold(e, index, row->to == SEAT_AVAILABLE ? 0 : row->hold);
    best_changed(e, index);
    if (!seat->pending) {
        vec_push(&touched->seats)->index = index;
        hf_check(touched->seats.n <= SEAT_PENDING_MAX);
        seat->pending = touched->seats.n & SEAT_PENDING_MAX;
    }
    touched->seats.v[seat->pending - 1].head = row->seq;
    return true;
}

static bool fold_row(struct view *v, struct event *e, const struct audit_row *row,
                     const struct log_since *since, struct touched *touched)
{
    switch (row->object) {
    case AUDIT_SEAT:
        return fold_seat(e, row, touched);
    case AUDIT_AREA:
        if (row->item < 0 || row->item >= (int64_t)e->def->areas.n)
            return false;
        struct area *area = &e->areas[row->item];
        area_pass(area, row->quantity, (enum seat_status)row->from, (enum seat_status)row->to);
        if (!area->pending) {
            area->pending = 1;
            *vec_push(&touched->areas) = (uint32_t)row->item;
        }
        return true;
    case AUDIT_HOLD:
        fold_hold(v, e, row, since, touched);
        return true;
    case AUDIT_EVENT:
        e->status_draft = (enum event_status)row->to;
        return true;
    default:
        return true;
    }
}

static int64_t seat_until(const struct view *v, const struct event *e, uint32_t index)
{
    bool is_held = e->seats[index].status == SEAT_HELD;
    const struct hold *h = is_held ? view_hold(v, seat_hold(e, index)) : NULL;
    return h ? h->expires_at : 0;
}

/* A seat that changed and changed back is told to streams, too: a reader may have seen at another
 * server what was in between (I13). */
static void show(struct view *v, struct event *e, const struct touched *touched,
                 const struct clock_row *clock)
{
    publish_begin(e);
    for (size_t i = 0; i < touched->seats.n; i++) {
        uint32_t index = touched->seats.v[i].index;
        publish_seat(e, index, seat_until(v, e, index), clock->seq);
        seat_set_head(&e->seats[index], touched->seats.v[i].head);
    }
    for (size_t i = 0; i < touched->renewed.n; i++)
        publish_seat(e, touched->renewed.v[i], seat_until(v, e, touched->renewed.v[i]), 0);
    for (size_t i = 0; i < touched->areas.n; i++)
        publish_area(e, touched->areas.v[i], clock->seq);
    publish_end(e, clock);
}

/* The index of the first row of this event; rows are ordered by event and seq. */
static size_t first_row(const struct log_since *since, int64_t event)
{
    size_t low = 0, high = since->audit.n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (since->audit.v[mid].event < event)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool catch_up(struct view *v, struct event *e, const struct log_since *since)
{
    struct touched touched = {0};
    struct clock_row clock = e->clock;
    int64_t key = e->def->id.key;
    bool whole = true;
    for (size_t i = first_row(since, key); whole && i < since->audit.n; i++) {
        const struct audit_row *row = &since->audit.v[i];
        if (row->event != key)
            break;
        if (row->seq <= clock.seq)
            continue;
        whole = row->seq == clock.seq + 1 && fold_row(v, e, row, since, &touched);
        clock.seq = row->seq;
        clock.fence = row->fence > clock.fence ? row->fence : clock.fence;
        clock.now = row->at > clock.now ? row->at : clock.now;
    }
    if (whole && clock.seq != e->clock.seq)
        show(v, e, &touched, &clock);
    for (size_t i = 0; i < touched.seats.n; i++)
        e->seats[touched.seats.v[i].index].pending = 0;
    for (size_t i = 0; i < touched.areas.n; i++)
        e->areas[touched.areas.v[i]].pending = 0;
    vec_close(&touched.seats);
    vec_close(&touched.areas);
    vec_close(&touched.renewed);
    return whole;
}
