/* See check.h. */
#include "sim/check.h"

#include <stdlib.h>

#include "sim/tables.h"

/* ---- folding ---- */

void fold_init(struct fold *f, const struct sim_ledger *ledger, int64_t event)
{
    const struct event_def *def = sim_event(ledger, event)->def;
    *f = (struct fold){.event = event};
    f->seats = hf_alloc(def->n_seats * sizeof *f->seats);
    f->areas = hf_alloc(def->areas.n * sizeof *f->areas);
}

void fold_close(struct fold *f)
{
    free(f->seats);
    free(f->areas);
    vec_close(&f->holds);
}

static int hold_order(const void *key, const void *hold)
{
    int64_t a = *(const int64_t *)key, b = ((const struct folded_hold *)hold)->key;
    return (a > b) - (a < b);
}

static struct folded_hold *folded_hold(const struct fold *f, int64_t key)
{
    if (!f->holds.n)
        return NULL;
    return bsearch(&key, f->holds.v, f->holds.n, sizeof *f->holds.v, hold_order);
}

static void fold_seat(struct fold *f, const struct audit_row *row)
{
    struct folded_seat *seat = &f->seats[row->item];
    assert_int_equal(seat->status, row->from);
    assert_true(seat->hold == 0 || seat->hold == row->hold); /* only its owner gives it away: I1 */
    assert_int_equal(seat->last_seq, row->prev);
    seat->last_seq = row->seq;
    seat->status = (enum seat_status)row->to;
    seat->hold = row->to == SEAT_AVAILABLE ? 0 : row->hold;
}

static void fold_area(struct fold *f, const struct audit_row *row)
{
    struct folded_area *area = &f->areas[row->item];
    area->held += row->quantity * ((row->to == SEAT_HELD) - (row->from == SEAT_HELD));
    area->booked += row->quantity * ((row->to == SEAT_BOOKED) - (row->from == SEAT_BOOKED));
}

static void fold_hold(struct fold *f, const struct audit_row *row)
{
    struct folded_hold *hold = folded_hold(f, row->hold);
    if (!hold) {
        assert_true(!f->holds.n || f->holds.v[f->holds.n - 1].key < row->hold);
        hold = vec_push(&f->holds);
        hold->key = row->hold;
    }
    assert_int_equal(hold->status, row->from);
    assert_true(hold->fence <= row->fence);
    assert_int_equal(hold->last_seq, row->prev);
    hold->last_seq = row->seq;
    if (hold->status == HOLD_ACTIVE) /* I4: from its expiry on it can only expire */
        assert_int_equal(row->cause == CAUSE_EXPIRE, row->at >= hold->until);
    hold->status = (enum hold_status)row->to;
    hold->fence = row->fence;
    hold->until = row->until;
}

static void fold_row(struct fold *f, const struct audit_row *row)
{
    assert_int_equal(row->seq, f->seq + 1); /* I11 */
    assert_true(row->at >= f->at);
    f->seq = row->seq;
    f->at = row->at;
    f->fence = row->fence > f->fence ? row->fence : f->fence;
    switch (row->object) {
    case AUDIT_SEAT:
        fold_seat(f, row);
        return;
    case AUDIT_AREA:
        fold_area(f, row);
        return;
    case AUDIT_HOLD:
        fold_hold(f, row);
        return;
    case AUDIT_EVENT:
        assert_int_equal(f->status, row->from);
        f->status = (enum event_status)row->to;
        return;
    case AUDIT_BOOKING:
    case AUDIT_PAYMENT:
        return;
    }
    fail();
}

static void fold_to(struct fold *f, const struct sim_event *e, int64_t seq)
{
    assert_true(f->seq <= seq); /* views never go back */
    assert_true(seq <= (int64_t)e->log.n);
    while (f->seq < seq)
        fold_row(f, &e->log.v[f->seq]);
}

/* ---- the ledger ---- */

static void check_active_hold(const struct fold *f, const struct hold_row *row)
{
    for (uint32_t i = 0; i < row->n_seats; i++) {
        assert_int_equal(f->seats[row->seats[i]].status, SEAT_HELD);
        assert_int_equal(f->seats[row->seats[i]].hold, row->id.key);
    }
}

static void check_confirmed_hold(const struct sim_event *e, const struct sim_hold *hold)
{
    assert_int_equal(hold->booking.id.key, hold->row.id.key);
    assert_int_equal(hold->booking.status, BOOKING_CONFIRMED);
    for (uint32_t i = 0; i < hold->row.n_seats; i++) {
        const struct sim_seat *seat = &e->seats[hold->row.seats[i]];
        assert_int_equal(seat->status, SEAT_BOOKED);
        assert_int_equal(seat->hold, hold->row.id.key);
        assert_int_equal(seat->sold_to, hold->row.id.key);
    }
}

/* Places that holds have. */
struct places {
    int64_t held, booked;
};

static struct places check_holds(const struct fold *f, const struct sim_event *e)
{
    struct places seats = {0}, areas = {0};
    assert_int_equal(e->holds.n, f->holds.n);
    for (size_t i = 0; i < e->holds.n; i++) {
        const struct sim_hold *hold = &e->holds.v[i];
        const struct hold_row *row = &hold->row;
        uint32_t in_areas = places_count(0, row->areas, row->n_areas);
        assert_int_equal(row->id.key, f->holds.v[i].key);
        assert_int_equal(row->status, f->holds.v[i].status);
        assert_int_equal(row->fence, f->holds.v[i].fence);
        assert_int_equal(row->expires_at, f->holds.v[i].until);
        assert_int_equal(row->last_seq, f->holds.v[i].last_seq);
        assert_true(row->expires_at <= row->max_expires_at);
        if (row->status == HOLD_ACTIVE) {
            check_active_hold(f, row);
            seats.held += row->n_seats;
            areas.held += in_areas;
        } else if (row->status == HOLD_CONFIRMED) {
            check_confirmed_hold(e, hold);
            seats.booked += row->n_seats;
            areas.booked += in_areas;
        } else {
            assert_int_equal(hold->booking.id.key, 0);
        }
    }
    for (size_t i = 0; i < e->def->areas.n; i++) {
        const struct area_def *area = &e->def->areas.v[i];
        assert_int_equal(area->held, f->areas[i].held);
        assert_int_equal(area->booked, f->areas[i].booked);
        assert_in_range(area->held + area->booked, 0, area->capacity); /* I2 */
        areas.held -= area->held;
        areas.booked -= area->booked;
    }
    assert_int_equal(areas.held, 0);
    assert_int_equal(areas.booked, 0);
    return seats;
}

void check_ledger(struct fold *f, const struct sim_ledger *ledger)
{
    const struct sim_event *e = sim_event(ledger, f->event);
    fold_to(f, e, (int64_t)e->log.n);
    assert_int_equal(e->clock.seq, f->seq);
    assert_int_equal(e->clock.fence, f->fence);
    assert_int_equal(e->clock.now, f->at);
    assert_int_equal(e->def->status, f->status);
    struct places owned = check_holds(f, e);
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        const struct sim_seat *seat = &e->seats[i];
        bool has_row = seat_has_row(f->seats[i].status);
        assert_int_equal(seat->status, has_row ? f->seats[i].status : SEAT_AVAILABLE);
        assert_int_equal(seat->hold, has_row ? f->seats[i].hold : 0);
        assert_int_equal(seat->sold_to != 0, seat->status == SEAT_BOOKED);
        owned.held -= f->seats[i].status == SEAT_HELD;
        owned.booked -= f->seats[i].status == SEAT_BOOKED;
    }
    /* Each hold has all its seats, so as many taken as owned means one owner each: I1. */
    assert_int_equal(owned.held, 0);
    assert_int_equal(owned.booked, 0);
}

/* ---- views ---- */

static void check_seat(const struct fold *f, const struct view *v, const struct event *e,
                       uint32_t index)
{
    const struct folded_seat *want = &f->seats[index];
    const struct hold *hold = want->status == SEAT_HELD ? view_hold(v, want->hold) : NULL;
    uint64_t shown = seat_shown(e, index);
    assert_int_equal(e->seats[index].status, want->status);
    assert_int_equal(seat_hold(e, index), want->hold);
    assert_int_equal(seat_head(&e->seats[index]), want->last_seq);
    assert_int_equal(e->seats[index].pending, 0);
    assert_int_equal(seat_shown_status(shown), want->status);
    assert_int_equal(seat_shown_until(shown), hold ? hold->expires_at : 0);
}

static void check_view_holds(const struct fold *f, const struct view *v, const struct event *e)
{
    for (size_t i = 0; i < f->holds.n; i++) {
        const struct folded_hold *want = &f->holds.v[i];
        const struct hold *hold = view_hold(v, want->key);
        assert_int_equal(hold != NULL, want->status == HOLD_ACTIVE);
        if (!hold)
            continue;
        assert_ptr_equal(hold->event, e);
        assert_int_equal(hold->status, HOLD_ACTIVE);
        assert_int_equal(hold->fence, want->fence);
        assert_int_equal(hold->expires_at, want->until);
        assert_int_equal(hold->last_seq, want->last_seq);
        assert_int_equal(hold->due.key, want->until);
        assert_int_equal(hold->pending, 0);
        assert_int_not_equal(hold->due.place, 0);
    }
}

void check_view(struct fold *f, const struct sim_ledger *ledger, const struct server *s)
{
    const struct event *e = engine_event(s->engine, f->event);
    const struct view *v = engine_worker(s->engine, f->event)->view;
    if (!e || e->stale)
        return;
    fold_to(f, sim_event(ledger, f->event), e->seq);
    assert_int_equal(e->clock.seq, f->seq);
    assert_int_equal(e->clock.fence, f->fence);
    assert_memory_equal(&e->clock, &e->draft, sizeof e->clock);
    assert_int_equal(e->status, f->status);
    assert_int_equal(e->status_draft, f->status);
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        check_seat(f, v, e, i);
    for (size_t i = 0; i < e->def->areas.n; i++) {
        assert_int_equal(e->areas[i].held, f->areas[i].held);
        assert_int_equal(e->areas[i].booked, f->areas[i].booked);
        assert_int_equal(e->areas[i].available,
                         e->def->areas.v[i].capacity - f->areas[i].held - f->areas[i].booked);
        assert_int_equal(e->areas[i].pending, 0);
    }
    check_view_holds(f, v, e);
}

void check_caught_up(struct fold *f, const struct sim_ledger *ledger, const struct server *s)
{
    const struct event *e = engine_event(s->engine, f->event);
    assert_non_null(e);
    assert_false(e->stale);
    assert_int_equal(e->seq, sim_event(ledger, f->event)->clock.seq);
    check_view(f, ledger, s);
}
