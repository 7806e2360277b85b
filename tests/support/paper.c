/* The paper ledger: arrays for tables, the conditions of the ledger's statements as assertions, and
 * a fold of the log beside them.  See fixtures.h; paper_check.c has the claims, and
 * paper_money.c what is about money. */
#include "support/fixtures.h"

#include <stdlib.h>
#include <string.h>

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
    for (size_t i = 0; i < p->events.n; i++) {
        struct paper_event *pe = &p->events.v[i];
        for (size_t k = 0; k < pe->n_areas; k++)
            vec_close(&pe->areas[k].blocks.list);
        event_terms_close(&pe->terms);
        free(pe->seats);
        free(pe->areas);
    }
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
    paper_money_close(p);
}

struct event *paper_event(struct paper *p, struct event_def *def)
{
    struct paper_event *pe = vec_push(&p->events);
    def->id.key = (int64_t)p->events.n;
    pe->clock = (struct clock_row){.event = def->id.key, .now = p->now};
    pe->seats = hf_alloc((def->n_seats + (size_t)1) * sizeof *pe->seats);
    pe->areas = hf_alloc((def->areas.n + 1) * sizeof *pe->areas);
    pe->n_areas = def->areas.n;
    pe->status = pe->folded_status = def->status;
    event_terms_copy(&def->terms, &pe->terms);
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

/* Copies `n` items of `size` bytes to *next, which then points behind them. */
static void *put(char **next, const void *items, size_t n, size_t size)
{
    char *copy = *next;
    if (n)
        memcpy(copy, items, n * size);
    *next += n * size;
    return copy;
}

/* Copies the row, its places and its owner into one block of memory, behind room for `n_ids` ids.
 */
static void hold_copy(const struct hold_row *from, size_t n_ids, struct hold_row *to)
{
    size_t ids_len = n_ids * sizeof(struct id);
    *to = *from;
    to->owned = hf_alloc(ids_len + from->n_prices * sizeof *from->prices +
                         from->n_seats * sizeof *from->seats + from->n_areas * sizeof *from->areas +
                         from->owner_len + 1);
    char *next = (char *)to->owned + ids_len;
    to->prices = put(&next, from->prices, from->n_prices, sizeof *from->prices);
    to->seats = put(&next, from->seats, from->n_seats, sizeof *from->seats);
    to->areas = put(&next, from->areas, from->n_areas, sizeof *from->areas);
    to->owner = from->owner ? put(&next, from->owner, from->owner_len, 1) : NULL;
    to->metadata = NULL;
    to->metadata_len = 0;
}

struct booking_row *paper_booking(struct paper *p, int64_t key)
{
    for (size_t i = 0; i < p->bookings.n; i++)
        if (p->bookings.v[i].id.key == key)
            return &p->bookings.v[i];
    return NULL;
}

static void booking_copy(struct paper *p, int64_t key, struct booking_row *to)
{
    const struct booking_row *from = paper_booking(p, key);
    if (!from)
        return;
    struct hold_row hold;
    struct id *ids;
    hold_copy(&paper_hold(p, key)->row, p->holds.n, &hold);
    *to = *from;
    to->merged = ids = hold.owned;
    for (size_t i = 0; i < p->holds.n; i++) /* in the order of their keys */
        if (p->holds.v[i].row.carrier.id.key == key)
            ids[to->n_merged++] = p->holds.v[i].row.id;
    to->seats = hold.seats;
    to->n_seats = hold.n_seats;
    to->areas = hold.areas;
    to->n_areas = hold.n_areas;
    to->owner = hold.owner;
    to->owner_len = hold.owner_len;
    to->owned = hold.owned;
}

static void load_owners(struct paper *p, const struct paper_event *pe)
{
    for (size_t i = 0; i < p->bookings.n && pe->terms.max_per_owner; i++) {
        const struct booking_row *booking = &p->bookings.v[i];
        const struct hold_row *row = &paper_hold(p, booking->id.key)->row;
        bool is_booked = booking->status == BOOKING_CONFIRMED ||
                         (booking->status == BOOKING_PENDING &&
                          paper_payment(p, booking->payment)->row.status == PAYMENT_CAPTURING);
        if (booking->event == pe->clock.event && row->status == HOLD_CONFIRMED && is_booked &&
            row->owner)
            event_load_owner(pe->event, owner_hash(pe->event, row->owner, row->owner_len),
                             places_count(row->n_seats, row->areas, row->n_areas));
    }
}

static void load_payments(struct paper *p, const struct paper_event *pe)
{
    VEC(struct hold_payment) list = {0}; /* holds are listed in the order of their keys */
    for (size_t i = 0; i < p->holds.n; i++) {
        const struct booking_row *booking = paper_booking(p, p->holds.v[i].row.id.key);
        if (booking && booking->event == pe->clock.event && booking->status == BOOKING_PENDING)
            *vec_push(&list) = (struct hold_payment){booking->id.key, booking->payment};
    }
    event_load_payments(pe->event, list.v, list.n);
    vec_close(&list);
}

void paper_reload(struct paper *p, struct event *e)
{
    const struct paper_event *pe = &p->events.v[e->def->id.key - 1];
    struct event_terms terms;
    view_forget(p->view, e);
    event_terms_copy(&pe->terms, &terms);
    event_set_terms(e, event_terms_new(&terms));
    e->status_draft = pe->status;
    for (uint32_t i = 0; i < pe->n_areas; i++)
        event_load_area(e, i, pe->areas[i].held, pe->areas[i].booked, &pe->areas[i].blocks);
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        const struct paper_seat *seat = &pe->seats[i];
        event_load_head(e, i, seat->last_seq);
        if (seat->row == SEAT_AVAILABLE)
            continue;
        event_load_seat(e, i, seat->row, seat->row_hold);
        event_load_channel(e, i, seat->row_channel);
    }
    load_owners(p, pe);
    for (size_t i = 0; i < p->holds.n; i++)
        if (p->holds.v[i].row.event == pe->clock.event && p->holds.v[i].row.status == HOLD_ACTIVE)
            event_load_hold(e, &p->holds.v[i].row);
    load_payments(p, pe);
    view_reloaded(p->view, e, &pe->clock);
    e->stale = false;
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
        if (pe->event->stale)
            paper_reload(p, pe->event);
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
    case CMD_HOLD_CHANGE:
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

/* The hold, with what the ledger tells of its carrier. */
static void read_hold(struct paper *p, int64_t key, struct hold_row *to)
{
    const struct paper_hold *hold = paper_hold(p, key);
    if (!hold)
        return;
    hold_copy(&hold->row, 0, to);
    const struct paper_hold *carrier = paper_hold(p, to->carrier.id.key);
    if (carrier) {
        to->carrier.status = carrier->row.status;
        to->carrier.expires_at = carrier->row.expires_at;
    }
}

/* Reads what the command names, as the worker does under the lock. */
static void read_named(struct paper *p, struct command *c)
{
    struct hold_wanted wanted[HOLDS_PER_BOOKING_MAX];
    size_t n = command_wants(c, wanted);
    for (size_t i = 0; i < n; i++) {
        read_hold(p, wanted[i].hold, wanted[i].ret);
        if (wanted[i].ret_booking)
            booking_copy(p, wanted[i].hold, wanted[i].ret_booking);
        if (wanted[i].ret_money)
            paper_money_read(p, wanted[i].hold, wanted[i].ret_money);
    }
    if (c->kind != CMD_PAYMENT_UPDATE)
        return;
    c->update->event_known = false;
    for (size_t i = 0; i < p->webhooks.n; i++)
        if (strcmp(p->webhooks.v[i].event.id, c->update->event.id) == 0)
            c->update->event_known = true;
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
        decide_keep_answer(p->decision, &c->key, 0);
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

static void write_seat_row(struct paper_seat *seat, const struct seat_write *w)
{
    if (!w->row_changes)
        return;
    assert_int_equal(seat->row, seat_row_status(w->from, w->channel_before));
    assert_int_equal(seat->row_hold, w->from == SEAT_BOOKED ? w->hold_before : 0);
    assert_true(seat->row_fence <= w->row_fence);
    seat->row = seat_row_status(w->to, w->channel);
    seat->row_hold = w->to == SEAT_BOOKED ? w->hold : 0;
    seat->row_channel = seat->row == SEAT_AVAILABLE ? 0 : w->channel;
    seat->row_fence = seat->row == SEAT_AVAILABLE ? 0 : w->row_fence;
}

static void write_seats(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        if (i) /* ascending, so no seat occurs twice */
            assert_true(b->seats.v[i - 1].seat < w->seat);
        struct paper_seat *seat = &p->events.v[(w->seat >> 32) - 1].seats[SEAT_INDEX(w->seat)];
        assert_int_equal(seat->status, w->from);
        assert_int_equal(seat->channel, w->channel_before);
        assert_int_equal(seat->hold, w->hold_before);
        write_seat_row(seat, w);
        seat->status = w->to;
        seat->channel = w->channel;
        seat->hold = w->hold;
        seat->expires_at = w->expires_at;
    }
}

static int64_t sum_of(const struct area_blocks *blocks)
{
    int64_t sum = 0;
    for (size_t i = 0; i < blocks->list.n; i++) {
        assert_true(blocks->list.v[i].places > 0);
        if (i)
            assert_true(blocks->list.v[i - 1].channel < blocks->list.v[i].channel);
        sum += blocks->list.v[i].places;
    }
    return sum;
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
        assert_true(paper_blocks_equal(&area->blocks, &w->blocks_before));
        assert_true(w->held >= 0 && w->booked >= 0); /* I2 */
        assert_true(w->held + w->booked + sum_of(w->blocks) <=
                    pe->event->def->areas.v[w->area].capacity);
        area->held = w->held;
        area->booked = w->booked;
        vec_clear(&area->blocks.list);
        for (size_t k = 0; k < w->blocks->list.n; k++)
            *vec_push(&area->blocks.list) = w->blocks->list.v[k];
    }
}

static void write_events(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->events.n; i++) {
        const struct event_write *w = &b->events.v[i];
        struct paper_event *pe = &p->events.v[w->event - 1];
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(b->events.v[k].event, w->event);
        assert_int_equal(pe->status, w->from);
        pe->status = w->to;
        if (!w->terms)
            continue;
        event_terms_close(&pe->terms);
        event_terms_copy(w->terms, &pe->terms);
    }
}

static void write_places(struct paper *p, const struct hold_places_write *w)
{
    struct hold_row *row = &paper_hold(p, w->hold)->row, before = *row;
    struct hold_row after = before;
    assert_int_equal(before.fence, w->fence);
    assert_true(before.status == HOLD_ACTIVE || before.status == HOLD_CONFIRMED);
    after.amount = w->amount;
    after.seats = w->seats;
    after.areas = w->areas;
    after.prices = w->prices;
    after.n_seats = w->n_seats;
    after.n_areas = w->n_areas;
    after.n_prices = w->n_prices;
    hold_copy(&after, 0, row);
    free(before.owned);
}

static void write_holds(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->holds_new.n; i++) {
        assert_null(paper_hold(p, b->holds_new.v[i].id.key));
        hold_copy(&b->holds_new.v[i], 0, &vec_push(&p->holds)->row);
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
    for (size_t i = 0; i < b->places.n; i++)
        write_places(p, &b->places.v[i]);
    for (size_t i = 0; i < b->merges.n; i++) {
        struct hold_row *row = &paper_hold(p, b->merges.v[i].hold)->row;
        assert_int_equal(row->status, HOLD_RELEASED);
        assert_int_equal(row->carrier.id.key, b->merges.v[i].carrier_before);
        row->carrier.id = paper_hold(p, b->merges.v[i].carrier)->row.id;
    }
}

static void delete_sale(struct paper *p, const struct sale_write *sale)
{
    for (size_t i = 0; i < p->sales.n; i++)
        if (p->sales.v[i].seat == sale->seat) {
            assert_int_equal(p->sales.v[i].booking, sale->booking);
            p->sales.v[i] = p->sales.v[--p->sales.n];
            return;
        }
    fail_msg("a seat that was not sold is taken back");
}

/* A booking that failed gives way to another of the same hold. */
static void write_past(struct paper *p, int64_t booking)
{
    struct booking_row *row = paper_booking(p, booking);
    assert_non_null(row);
    assert_int_equal(row->status, BOOKING_FAILED);
    *vec_push(&p->bookings_past) = *row;
    *row = p->bookings.v[--p->bookings.n];
}

static void write_sales(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings_past.n; i++)
        write_past(p, b->bookings_past.v[i]);
    for (size_t i = 0; i < b->bookings_new.n; i++) {
        assert_null(paper_booking(p, b->bookings_new.v[i].id.key));
        struct booking_row *row = vec_push(&p->bookings);
        *row = b->bookings_new.v[i];
        row->reference = row->owner = row->email = NULL; /* borrowed */
        row->reference_len = row->owner_len = row->email_len = 0;
        row->seats = NULL;
        row->areas = NULL;
        row->merged = NULL;
        row->n_merged = 0;
    }
    for (size_t i = 0; i < b->bookings.n; i++) {
        const struct booking_write *w = &b->bookings.v[i];
        struct booking_row *row = paper_booking(p, w->booking);
        assert_non_null(row);
        assert_int_equal(row->status, w->from);
        row->status = w->to;
        row->cancelled_at = w->cancelled_at;
        row->fence = w->fence ? w->fence : row->fence;
    }
    for (size_t i = 0; i < b->sales_undone.n; i++)
        delete_sale(p, &b->sales_undone.v[i]);
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

/* Folds the log: each row must begin in the state in which the previous row of its object ended.
 * A seat keeps its channel while a hold or a booking has it, and returns to it (rows.h). */
static void fold_channel(struct paper_seat *seat, const struct audit_row *a)
{
    bool blocked = a->from == SEAT_BLOCKED || a->to == SEAT_BLOCKED;
    if (a->cause != CAUSE_BLOCK)
        assert_int_equal(a->channel, blocked ? seat->folded_channel : 0);
    if (a->to == SEAT_BLOCKED)
        seat->folded_channel = a->channel;
    else if (a->cause == CAUSE_UNBLOCK)
        seat->folded_channel = 0;
    if (a->to == SEAT_AVAILABLE)
        assert_int_equal(seat->folded_channel, 0);
}

static void fold_seat(struct paper_event *pe, const struct audit_row *a)
{
    struct paper_seat *seat = &pe->seats[a->item];
    bool blocks = a->cause == CAUSE_BLOCK || a->cause == CAUSE_UNBLOCK;
    bool is_owned = a->from == SEAT_HELD || a->from == SEAT_BOOKED;
    assert_int_equal(seat->folded, a->from);
    assert_int_equal(seat->folded_hold, is_owned ? a->hold : 0);
    assert_int_equal(a->hold == 0, blocks);
    assert_int_equal(a->quantity, 1);
    assert_int_equal(a->booking, a->to == SEAT_BOOKED ? a->hold : 0);
    assert_int_equal(a->prev, seat->last_seq);
    seat->last_seq = a->seq;
    if (blocks) { /* one new fence for all seats of a command: I5 */
        assert_true(a->fence >= pe->folded_fence);
        pe->folded_fence = a->fence;
    }
    fold_channel(seat, a);
    seat->folded = (enum seat_status)a->to;
    seat->folded_hold = a->to == SEAT_HELD || a->to == SEAT_BOOKED ? a->hold : 0;
}

static void fold_area(struct paper_event *pe, const struct audit_row *a)
{
    struct paper_area *area = &pe->areas[a->item];
    bool blocks = a->cause == CAUSE_BLOCK || a->cause == CAUSE_UNBLOCK;
    assert_int_not_equal(a->from, a->to);
    assert_true(a->quantity > 0 && a->fence);
    assert_int_equal(a->hold == 0, blocks);
    assert_int_equal(a->booking, a->to == SEAT_BOOKED ? a->hold : 0);
    assert_in_range(a->channel, 0, CHANNELS_MAX);
    if (blocks) {
        assert_true(a->fence >= pe->folded_fence);
        pe->folded_fence = a->fence;
    }
    if (a->from != SEAT_BLOCKED && a->to != SEAT_BLOCKED)
        assert_int_equal(a->channel, 0);
    int64_t n = a->quantity, *blocked = &area->folded_blocked[a->channel];
    area->folded_held += (a->to == SEAT_HELD ? n : 0) - (a->from == SEAT_HELD ? n : 0);
    area->folded_booked += (a->to == SEAT_BOOKED ? n : 0) - (a->from == SEAT_BOOKED ? n : 0);
    *blocked += (a->to == SEAT_BLOCKED ? n : 0) - (a->from == SEAT_BLOCKED ? n : 0);
    assert_true(area->folded_held >= 0 && area->folded_booked >= 0); /* at every row: I2 */
    assert_true(*blocked >= 0);
    int64_t taken = area->folded_held + area->folded_booked;
    for (int i = 0; i <= CHANNELS_MAX; i++)
        taken += area->folded_blocked[i];
    assert_true(taken <= pe->event->def->areas.v[a->item].capacity);
}

static void fold_hold(struct paper *p, struct paper_event *pe, const struct audit_row *a)
{
    struct paper_hold *hold = paper_hold(p, a->hold);
    assert_non_null(hold);
    assert_int_equal(hold->folded, a->from);
    if (a->cause == CAUSE_HOLD || a->cause == CAUSE_RESCUE || a->cause == CAUSE_CHANGE) {
        assert_true(a->fence > pe->folded_fence); /* a new grant: I5 */
        pe->folded_fence = a->fence;
    } else {
        assert_int_equal(hold->folded_fence, a->fence);
    }
    if (a->cause != CAUSE_HOLD && a->cause != CAUSE_CHANGE)
        assert_int_equal(a->quantity, hold->folded_places);
    hold->folded_places = a->quantity;
    assert_int_equal(a->prev, hold->folded_seq);
    hold->folded_seq = a->seq;
    hold->folded = (enum hold_status)a->to;
    hold->folded_fence = a->fence;
    hold->folded_until = a->until;
}

static void fold_event(struct paper_event *pe, const struct audit_row *a)
{
    static const enum audit_cause causes[] = {[EVENT_OPEN] = CAUSE_OPEN,
                                              [EVENT_CLOSED] = CAUSE_CLOSE,
                                              [EVENT_ARCHIVED] = CAUSE_ARCHIVE,
                                              [EVENT_CANCELLED] = CAUSE_CANCEL};
    assert_int_equal(a->from, pe->folded_status);
    assert_int_equal(a->cause, a->to == a->from ? CAUSE_CHANGE : causes[a->to]);
    pe->folded_status = (enum event_status)a->to;
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
        fold_event(pe, a);
        break;
    case AUDIT_BOOKING:
    case AUDIT_PAYMENT:
        paper_money_fold(p, pe, a);
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
        paper_money_write(p, &d->batch);
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
