/* The paper ledger: arrays for tables, the conditions of the ledger's statements as assertions, and
 * a fold of the log beside them.  See fixtures.h. */
#include "support/fixtures.h"

#include <stdlib.h>
#include <string.h>

#include "rules/best.h"
#include "rules/view_holds.h"

/* ---- the paper ledger: reading ---- */

void paper_init(struct paper *p, uint64_t seed)
{
    *p = (struct paper){.view = view_new(), .now = T0_MS, .expire_max = 500};
    p->decision = hf_alloc(sizeof *p->decision);
    p->decision->view = p->view;
    p->decision->random = &p->random;
    random_init_seeded(&p->random, seed);
}

void paper_close(struct paper *p)
{
    decision_close(p->decision);
    free(p->decision);
    view_free(p->view);
    for (size_t i = 0; i < p->events.n; i++)
        free(p->events.v[i].seats), free(p->events.v[i].areas);
    for (size_t i = 0; i < p->holds.n; i++)
        hold_row_close(&p->holds.v[i].row);
    for (size_t i = 0; i < p->keys.n; i++)
        key_row_close(&p->keys.v[i]);
    vec_close(&p->events);
    vec_close(&p->holds);
    vec_close(&p->bookings);
    vec_close(&p->sales);
    vec_close(&p->audit);
    vec_close(&p->keys);
}

struct event *paper_event(struct paper *p, struct event_def *def)
{
    struct paper_event *pe = vec_push(&p->events);
    def->id.key = (int64_t)p->events.n;
    pe->clock = (struct clock_row){.event = def->id.key, .now = p->now};
    pe->seats = hf_alloc((def->n_seats + (size_t)1) * sizeof *pe->seats);
    pe->areas = hf_alloc((def->areas.n + 1) * sizeof *pe->areas);
    pe->status = pe->folded_status = def->status;
    pe->event = view_install(p->view, event_new(def, &pe->clock));
    return pe->event;
}

struct paper_hold *paper_hold(struct paper *p, int64_t key)
{
    for (size_t i = p->holds.n; i-- > 0;)
        if (p->holds.v[i].row.id.key == key)
            return &p->holds.v[i];
    return NULL;
}

static struct key_row *paper_key(struct paper *p, const uint8_t *hash)
{
    for (size_t i = p->keys.n; i-- > 0;)
        if (memcmp(p->keys.v[i].hash, hash, KEY_HASH_SIZE) == 0)
            return &p->keys.v[i];
    return NULL;
}

static void hold_copy(const struct hold_row *from, struct hold_row *to)
{
    uint32_t *seats =
        hf_alloc((from->n_seats + (size_t)1) * sizeof *seats + from->n_areas * sizeof *from->areas);
    struct area_claim *areas = (struct area_claim *)(void *)(seats + from->n_seats);
    for (uint32_t i = 0; i < from->n_seats; i++)
        seats[i] = from->seats[i];
    for (uint32_t i = 0; i < from->n_areas; i++)
        areas[i] = from->areas[i];
    *to = *from;
    to->seats = seats;
    to->areas = areas;
    to->owned = seats;
    to->owner = to->metadata = NULL;
    to->owner_len = to->metadata_len = 0;
}

static void booking_copy(struct paper *p, int64_t key, struct booking_row *to)
{
    for (size_t i = 0; i < p->bookings.n; i++) {
        if (p->bookings.v[i].id.key != key)
            continue;
        struct hold_row hold;
        hold_copy(&paper_hold(p, key)->row, &hold);
        *to = p->bookings.v[i];
        to->seats = hold.seats;
        to->n_seats = hold.n_seats;
        to->areas = hold.areas;
        to->n_areas = hold.n_areas;
        to->owned = hold.owned;
    }
}

void paper_begin(struct paper *p)
{
    struct hold *due[500];
    struct decision *d = p->decision;
    decision_begin(d);
    for (size_t i = p->events.n; i-- > 0;) /* from the end, so that the result is sorted */
        decision_add_event(d, p->events.v[i].event);
    d->now = p->now;
    for (size_t i = 0; i < p->events.n; i++) {
        struct paper_event *pe = &p->events.v[i];
        assert_int_equal(d->events.v[i]->def->id.key, pe->clock.event);
        if (pe->clock.now > d->now)
            d->now = pe->clock.now;
        pe->event->clock = pe->event->draft = pe->clock;
    }
    size_t max = p->expire_max < 500 ? p->expire_max : 500;
    decide_expire(d, due, view_due(p->view, d->now, due, max));
}

void paper_render(const struct command *c, struct buf *out)
{
    buf_str(out, verdict_name(c->verdict));
    switch (c->kind) {
    case CMD_HOLD_CONFIRM: {
        const struct booking_row *b = &c->confirm.booking;
        buf_printf(out, " %lld %lld %lld", (long long)b->id.key, (long long)b->fence,
                   (long long)b->amount);
        break;
    }
    case CMD_HOLD_CREATE:
    case CMD_HOLD_RENEW:
    case CMD_HOLD_EVICT: {
        const struct hold_row *h = command_hold(c);
        buf_printf(out, " %lld %lld %lld", (long long)h->id.key, (long long)h->fence,
                   (long long)h->expires_at);
        break;
    }
    default:
        break;
    }
}

/* Reads what the command names, as the worker does under the lock. */
static void read_named(struct paper *p, struct command *c)
{
    struct named_hold *named = command_named_hold(c);
    if (!named)
        return;
    hold_row_close(&named->row);
    struct paper_hold *hold = paper_hold(p, named->id.key);
    if (hold)
        hold_copy(&hold->row, &named->row);
    if (c->kind != CMD_HOLD_CONFIRM)
        return;
    booking_row_close(&c->confirm.booking);
    if (named->row.status == HOLD_CONFIRMED)
        booking_copy(p, named->id.key, &c->confirm.booking);
}

enum decided paper_decide(struct paper *p, struct ask *a)
{
    struct command *c = &a->c;
    struct key_row none = {0}, *stored = c->key.present ? paper_key(p, c->key.hash) : NULL;
    if (stored && stored->created_at <= p->decision->now - KEY_KEPT_MS)
        stored = NULL;
    read_named(p, c);
    if (!command_decide(c, p->decision, stored ? stored : &none))
        return DEFERRED;
    if (c->key.present && !c->key.replayed && verdict_is_success(c->verdict)) {
        c->key.answer.len = 0;
        paper_render(c, &c->key.answer);
        c->key.answer_code = (int)c->verdict;
        c->key.rendered = true;
        decide_keep_answer(p->decision, &c->key);
    }
    return DECIDED;
}

/* ---- the paper ledger: writing, with the conditions of the ledger's statements ---- */

static void write_clocks(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->clocks.n; i++) {
        const struct clock_write *w = &b->clocks.v[i];
        struct paper_event *pe = &p->events.v[w->after.event - 1];
        assert_int_equal(pe->clock.seq, w->before.seq);
        assert_int_equal(pe->clock.fence, w->before.fence);
        assert_true(pe->clock.now <= w->after.now);
        pe->clock = w->after;
    }
}

static void write_seats(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        if (i) /* ascending, so no seat occurs twice */
            assert_true(b->seats.v[i - 1].seat < w->seat);
        struct paper_seat *seat = &p->events.v[(w->seat >> 32) - 1].seats[SEAT_INDEX(w->seat)];
        assert_int_equal(seat->status, w->from);
        assert_int_equal(seat->hold, w->hold_before);
        assert_true(seat->fence <= w->fence);
        seat->status = w->to;
        seat->hold = w->hold;
        seat->fence = w->fence;
        seat->expires_at = w->expires_at;
    }
}

static void write_areas(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->areas.n; i++) {
        const struct area_write *w = &b->areas.v[i];
        struct paper_event *pe = &p->events.v[w->event - 1];
        struct paper_area *area = &pe->areas[w->area];
        for (size_t k = 0; k < i;
             k++) /* each area once, so that every condition is about the state before the batch */
            assert_false(b->areas.v[k].event == w->event && b->areas.v[k].area == w->area);
        assert_int_equal(area->held, w->held_before);
        assert_int_equal(area->booked, w->booked_before);
        assert_true(w->held >= 0 && w->booked >= 0); /* I2 */
        assert_true(w->held + w->booked <= pe->event->def->areas.v[w->area].capacity);
        area->held = w->held;
        area->booked = w->booked;
    }
}

static void write_events(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->events.n; i++) {
        const struct event_write *w = &b->events.v[i];
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(b->events.v[k].event, w->event);
        assert_int_equal(p->events.v[w->event - 1].status, w->from);
        p->events.v[w->event - 1].status = w->to;
    }
}

static void write_holds(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->holds_new.n; i++) {
        assert_null(paper_hold(p, b->holds_new.v[i].id.key));
        hold_copy(&b->holds_new.v[i], &vec_push(&p->holds)->row);
    }
    for (size_t i = 0; i < b->holds.n; i++) {
        const struct hold_write *w = &b->holds.v[i];
        struct paper_hold *hold = paper_hold(p, w->hold);
        assert_non_null(hold);
        assert_int_equal(hold->row.status, w->from);
        assert_int_equal(hold->row.fence, w->fence_before);
        assert_int_equal(hold->row.last_seq, w->seq_before);
        hold->row.last_seq = w->last_seq;
        hold->row.status = w->to;
        hold->row.fence = w->fence;
        hold->row.expires_at = w->expires_at;
    }
}

static void write_sales(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings.n; i++) {
        for (size_t k = 0; k < p->bookings.n; k++)
            assert_int_not_equal(p->bookings.v[k].id.key, b->bookings.v[i].id.key);
        struct booking_row *row = vec_push(&p->bookings);
        *row = b->bookings.v[i];
        row->reference = NULL; /* borrowed */
        row->seats = NULL;
        row->areas = NULL;
    }
    for (size_t i = 0; i < b->sales.n; i++) {
        for (size_t k = 0; k < p->sales.n; k++)
            assert_int_not_equal(p->sales.v[k].seat, b->sales.v[i].seat);
        *vec_push(&p->sales) = b->sales.v[i];
    }
}

static void write_keys(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->keys.n; i++) {
        const struct key_row *from = &b->keys.v[i];
        struct key_row *row = paper_key(p, from->hash);
        if (row)
            assert_true(row->created_at <= from->created_at - KEY_KEPT_MS);
        else
            row = vec_push(&p->keys);
        key_row_close(row);
        *row = *from;
        row->found = true;
        row->owned = hf_strndup(from->answer, from->answer_len);
        row->answer = row->owned;
    }
}

/* Folds the log: each row must begin in the state in which the previous row of its object ended. */
static void fold_seat(struct paper_event *pe, const struct audit_row *a)
{
    struct paper_seat *seat = &pe->seats[a->item];
    bool blocks = a->cause == CAUSE_BLOCK || a->cause == CAUSE_UNBLOCK;
    assert_int_equal(seat->folded, a->from);
    if (a->from != SEAT_AVAILABLE)
        assert_int_equal(seat->folded_hold, a->hold);
    assert_int_equal(a->hold == 0, blocks);
    assert_int_equal(a->quantity, 1);
    assert_int_equal(a->booking, a->to == SEAT_BOOKED ? a->hold : 0);
    assert_int_equal(a->prev, seat->last_seq);
    seat->last_seq = a->seq;
    if (blocks) { /* one new fence for all seats of a command: I5 */
        assert_true(a->fence >= pe->folded_fence);
        pe->folded_fence = a->fence;
    }
    seat->folded = (enum seat_status)a->to;
    seat->folded_hold = a->to == SEAT_AVAILABLE ? 0 : a->hold;
}

static void fold_area(struct paper_event *pe, const struct audit_row *a)
{
    struct paper_area *area = &pe->areas[a->item];
    assert_in_range(a->from, SEAT_AVAILABLE, SEAT_BOOKED);
    assert_in_range(a->to, SEAT_AVAILABLE, SEAT_BOOKED);
    assert_int_not_equal(a->from, a->to);
    assert_true(a->quantity > 0 && a->hold && a->fence);
    assert_int_equal(a->booking, a->to == SEAT_BOOKED ? a->hold : 0);
    int64_t n = a->quantity;
    area->folded_held += (a->to == SEAT_HELD ? n : 0) - (a->from == SEAT_HELD ? n : 0);
    area->folded_booked += (a->to == SEAT_BOOKED ? n : 0) - (a->from == SEAT_BOOKED ? n : 0);
    assert_true(area->folded_held >= 0 && area->folded_booked >= 0); /* at every row: I2 */
    assert_true(area->folded_held + area->folded_booked <=
                pe->event->def->areas.v[a->item].capacity);
}

static void fold_hold(struct paper *p, struct paper_event *pe, const struct audit_row *a)
{
    struct paper_hold *hold = paper_hold(p, a->hold);
    assert_non_null(hold);
    assert_int_equal(hold->folded, a->from);
    if (a->cause == CAUSE_HOLD || a->cause == CAUSE_RESCUE) { /* a new grant: I5 */
        assert_true(a->fence > pe->folded_fence);
        pe->folded_fence = a->fence;
    } else {
        assert_int_equal(hold->folded_fence, a->fence);
    }
    assert_int_equal(a->quantity,
                     places_count(hold->row.n_seats, hold->row.areas, hold->row.n_areas));
    assert_int_equal(a->prev, hold->folded_seq);
    hold->folded_seq = a->seq;
    hold->folded = (enum hold_status)a->to;
    hold->folded_fence = a->fence;
    hold->folded_until = a->until;
}

static void fold(struct paper *p, const struct audit_row *a)
{
    struct paper_event *pe = &p->events.v[a->event - 1];
    assert_int_equal(a->seq, ++pe->folded_seq); /* I11 */
    assert_true(a->at >= pe->folded_at);
    pe->folded_at = a->at;
    switch (a->object) {
    case AUDIT_SEAT:
        fold_seat(pe, a);
        break;
    case AUDIT_AREA:
        fold_area(pe, a);
        break;
    case AUDIT_HOLD:
        fold_hold(p, pe, a);
        break;
    case AUDIT_EVENT:
        assert_int_equal(a->from, pe->folded_status);
        assert_int_equal(a->cause, a->to == EVENT_OPEN ? CAUSE_OPEN : CAUSE_CLOSE);
        pe->folded_status = (enum event_status)a->to;
        break;
    default:
        assert_int_equal(a->object, AUDIT_BOOKING);
        assert_int_equal(a->from, BOOKING_NONE);
        assert_int_equal(a->to, BOOKING_CONFIRMED);
        assert_int_equal(a->booking, a->hold);
    }
}

void paper_commit(struct paper *p)
{
    struct decision *d = p->decision;
    if (decision_has_effects(d)) {
        decision_seal(d);
        write_clocks(p, &d->batch);
        write_keys(p, &d->batch);
        write_events(p, &d->batch);
        write_seats(p, &d->batch);
        write_areas(p, &d->batch);
        write_holds(p, &d->batch);
        write_sales(p, &d->batch);
        for (size_t i = 0; i < d->batch.audit.n; i++) {
            *vec_push(&p->audit) = d->batch.audit.v[i];
            fold(p, &d->batch.audit.v[i]);
        }
    }
    decision_publish(d);
}

void paper_fail(struct paper *p)
{
    decision_seal(p->decision);
    decision_undo(p->decision);
}

enum verdict paper_run(struct paper *p, struct ask *a)
{
    paper_begin(p);
    assert_int_equal(paper_decide(p, a), DECIDED);
    paper_commit(p);
    return a->c.verdict;
}

/* ---- the paper ledger: claims ---- */

static void check_heap(const struct view *v)
{
    const struct hold_table *t = view_hold_table(v);
    struct heap_node *const *nodes = t->deadlines.nodes.v;
    for (size_t i = 0; i < t->deadlines.nodes.n; i++) {
        assert_int_equal(nodes[i]->place, i + 1);
        assert_int_equal(nodes[i]->key, heap_item(nodes[i], struct hold, due)->expires_at);
        if (i)
            assert_true(nodes[(i - 1) / 2]->key <= nodes[i]->key);
    }
}

static void check_hold(struct paper *p, const struct paper_hold *ph)
{
    const struct hold_row *row = &ph->row;
    const struct paper_event *pe = &p->events.v[row->event - 1];
    const struct hold *h = view_hold(p->view, row->id.key);
    assert_int_equal(ph->folded, row->status);
    assert_int_equal(ph->folded_fence, row->fence);
    assert_int_equal(ph->folded_seq, row->last_seq);
    if (row->status != HOLD_ACTIVE) {
        assert_null(h);
        return;
    }
    assert_int_equal(ph->folded_until, row->expires_at);
    assert_non_null(h);
    assert_ptr_equal(h->event, pe->event);
    assert_int_equal(h->status, HOLD_ACTIVE);
    assert_int_equal(h->fence, row->fence);
    assert_int_equal(h->last_seq, row->last_seq);
    assert_int_equal(h->expires_at, row->expires_at);
    assert_int_equal(h->max_expires_at, row->max_expires_at);
    assert_true(row->expires_at <= row->max_expires_at);
    assert_int_equal(h->pending, 0);
    assert_int_not_equal(h->due.place, 0);
    assert_int_equal(h->client, row->client);
    assert_int_equal(h->n_seats, row->n_seats);
    assert_int_equal(h->n_areas, row->n_areas);
    for (uint32_t i = 0; i < row->n_areas; i++)
        assert_memory_equal(&h->areas[i], &row->areas[i], sizeof *h->areas);
    for (uint32_t i = 0; i < row->n_seats; i++) { /* all or nothing: I6 */
        const struct paper_seat *seat = &pe->seats[row->seats[i]];
        assert_int_equal(h->seats[i], row->seats[i]);
        assert_int_equal(seat->status, SEAT_HELD);
        assert_int_equal(seat->hold, row->id.key);
        assert_int_equal(seat->expires_at, row->expires_at);
    }
}

/* Asserts that an area's counters are the sums of its live holds (I2). */
static void check_areas(struct paper *p, const struct paper_event *pe, int64_t *ret_held,
                        int64_t *ret_booked)
{
    struct event *e = pe->event;
    for (uint32_t i = 0; i < e->def->areas.n; i++) {
        const struct paper_area *area = &pe->areas[i];
        int64_t held = 0, booked = 0, capacity = e->def->areas.v[i].capacity;
        for (size_t h = 0; h < p->holds.n; h++) {
            const struct hold_row *row = &p->holds.v[h].row;
            for (uint32_t k = 0; row->event == pe->clock.event && k < row->n_areas; k++) {
                int64_t n = row->areas[k].area == i ? row->areas[k].quantity : 0;
                held += row->status == HOLD_ACTIVE ? n : 0;
                booked += row->status == HOLD_CONFIRMED ? n : 0;
            }
        }
        assert_int_equal(area->held, held);
        assert_int_equal(area->booked, booked);
        assert_int_equal(area->folded_held, held);
        assert_int_equal(area->folded_booked, booked);
        assert_int_equal(e->areas[i].held, held);
        assert_int_equal(e->areas[i].booked, booked);
        assert_int_equal(e->areas[i].pending, 0);
        assert_int_equal(e->areas[i].available, capacity - held - booked);
        assert_int_equal(e->areas[i].booked_shown, booked);
        *ret_held += held;
        *ret_booked += booked;
    }
    assert_int_equal(pe->folded_status, pe->status);
    assert_int_equal(e->status, pe->status);
    assert_int_equal(e->status_draft, pe->status);
}

/* Asserts that the count of each client address is the sum of its live holds. */
static void check_client(struct paper *p, uint64_t client)
{
    uint32_t places = 0;
    for (size_t i = 0; i < p->holds.n; i++) {
        const struct hold_row *row = &p->holds.v[i].row;
        if (row->client == client && row->status == HOLD_ACTIVE)
            places += places_count(row->n_seats, row->areas, row->n_areas);
    }
    assert_int_equal(view_client_places(p->view, client), places);
}

static void check_seats(struct paper *p, struct paper_event *pe, uint32_t *ret_held)
{
    struct event *e = pe->event;
    uint32_t counts[4] = {0};
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        const struct paper_seat *seat = &pe->seats[i];
        uint64_t shown = seat_shown(e, i);
        assert_int_equal(seat->folded, seat->status);
        assert_int_equal(seat->folded_hold, seat->hold);
        assert_int_equal(e->seats[i].status, seat->status);
        assert_int_equal(seat_hold(e, i), seat->hold);
        assert_int_equal(seat_head(&e->seats[i]), seat->last_seq);
        assert_int_equal(e->seats[i].pending, 0);
        assert_int_equal(seat_shown_status(shown), seat->status);
        assert_int_equal(seat_shown_until(shown), seat->status == SEAT_HELD ? seat->expires_at : 0);
        assert_int_equal(seat->hold != 0, seat->status == SEAT_HELD || seat->status == SEAT_BOOKED);
        if (seat->status == SEAT_BOOKED)
            assert_int_equal(paper_hold(p, seat->hold)->row.status, HOLD_CONFIRMED);
        counts[seat->status]++;
    }
    struct event_counts shown;
    int64_t area_held = 0, area_booked = 0, capacity = event_def_capacity(e->def);
    check_areas(p, pe, &area_held, &area_booked);
    event_read_counts(e, &shown);
    assert_int_equal(shown.seq, pe->clock.seq);
    assert_int_equal(shown.held, counts[SEAT_HELD] + area_held);
    assert_int_equal(shown.booked, counts[SEAT_BOOKED] + area_booked);
    assert_int_equal(shown.available, capacity - shown.held - shown.booked - shown.blocked);
    assert_int_equal(shown.blocked, counts[SEAT_BLOCKED]);
    uint32_t seat, indexed;
    best_find(e, &(struct best_want){.quantity = 1, .section = -1}, &seat, &indexed);
    assert_int_equal(indexed, counts[SEAT_AVAILABLE]);
    assert_int_equal(pe->clock.seq, pe->folded_seq);
    assert_int_equal(pe->clock.fence, pe->folded_fence);
    assert_memory_equal(&e->clock, &pe->clock, sizeof pe->clock);
    assert_memory_equal(&e->draft, &pe->clock, sizeof pe->clock);
    *ret_held += counts[SEAT_HELD];
}

void paper_check(struct paper *p)
{
    uint32_t held = 0, owned = 0;
    size_t live = 0;
    for (size_t i = 0; i < p->events.n; i++)
        check_seats(p, &p->events.v[i], &held);
    for (size_t i = 0; i < p->holds.n; i++) {
        check_hold(p, &p->holds.v[i]);
        if (p->holds.v[i].row.client)
            check_client(p, p->holds.v[i].row.client);
        if (p->holds.v[i].row.status == HOLD_ACTIVE) {
            owned += p->holds.v[i].row.n_seats;
            live++;
        }
    }
    /* Each live hold has all its seats, so if as many seats are held as owned, each has one owner
     * (I1). */
    assert_int_equal(held, owned);
    assert_int_equal(view_holds_len(p->view), live);
    assert_int_equal(view_hold_table(p->view)->deadlines.nodes.n, live);
    check_heap(p->view);
}

static int by_key(const void *a, const void *b)
{
    const struct hold *const *x = a, *const *y = b;
    return ((*x)->key > (*y)->key) - ((*x)->key < (*y)->key);
}

static void dump_clock(const char *name, const struct clock_row *row, struct buf *out)
{
    buf_printf(out, "%s %lld %lld %lld %lld\n", name, (long long)row->event, (long long)row->seq,
               (long long)row->fence, (long long)row->now);
}

/* Prints the areas, the status, and the seats that best available would choose next. */
static void dump_places(struct event *e, struct buf *out)
{
    buf_printf(out, "status %d %d\n", e->status, (int)e->status_draft);
    for (size_t i = 0; i < e->def->areas.n; i++)
        buf_printf(out, "area %zu %lld %lld %lld %lld %u\n", i, (long long)e->areas[i].held,
                   (long long)e->areas[i].booked, (long long)e->areas[i].available,
                   (long long)e->areas[i].booked_shown, e->areas[i].pending);
    for (uint32_t quantity = 1; quantity <= 3; quantity++) {
        uint32_t seats[3] = {0}, available = 0;
        const struct best_want want = {.quantity = quantity, .section = -1, .adjacent = true};
        bool found = best_find(e, &want, seats, &available);
        buf_printf(out, "best %d %u of %u: %u %u %u\n", found, quantity, available, seats[0],
                   seats[1], seats[2]);
    }
}

void paper_dump(const struct paper *p, struct buf *out)
{
    VEC(const struct hold *) holds = {0};
    const struct hold_table *t = view_hold_table(p->view);
    for (size_t i = 0; i < p->events.n; i++) {
        struct event *e = p->events.v[i].event;
        struct event_counts counts;
        event_read_counts(e, &counts);
        dump_clock("clock", &e->clock, out);
        dump_clock("draft", &e->draft, out);
        buf_printf(out, "seq %lld counts %ld %ld %ld %ld\n", (long long)counts.seq,
                   counts.available, counts.held, counts.booked, counts.blocked);
        dump_places(e, out);
        for (uint32_t s = 0; s < e->def->n_seats; s++)
            buf_printf(out, "seat %u %d %lld %u %llu %lld\n", s, e->seats[s].status,
                       (long long)seat_hold(e, s), (unsigned)e->seats[s].pending,
                       (unsigned long long)seat_shown(e, s), (long long)seat_head(&e->seats[s]));
    }
    for (size_t i = 0; i < t->n_buckets; i++)
        for (const struct hold *h = t->buckets[i]; h; h = h->next)
            *vec_push(&holds) = h;
    if (holds.n)
        qsort(holds.v, holds.n, sizeof *holds.v, by_key);
    for (size_t i = 0; i < holds.n; i++) {
        const struct hold *h = holds.v[i];
        buf_printf(out, "hold %lld %lld %lld %lld status %d pending %u %s", (long long)h->key,
                   (long long)h->fence, (long long)h->expires_at, (long long)h->max_expires_at,
                   h->status, h->pending, h->due.place ? "timed" : "untimed");
        for (uint32_t s = 0; s < h->n_seats; s++)
            buf_printf(out, " %u", h->seats[s]);
        for (uint32_t k = 0; k < h->n_areas; k++)
            buf_printf(out, " %u of area %u", h->areas[k].quantity, h->areas[k].area);
        if (h->client)
            buf_printf(out, " client %llu of %u", (unsigned long long)h->client,
                       view_client_places(p->view, h->client));
        buf_char(out, '\n');
    }
    buf_printf(out, "holds %zu heap %zu\n", t->n, t->deadlines.nodes.n);
    buf_char(out, '\0');
    check_heap(p->view);
    vec_close(&holds);
}
