/* What a transaction writes.  sim_write checks the condition of every row against the committed
 * tables, which the transaction's locks keep as they are, and stages the rows; sim_apply stores
 * them at the commit.  Both go through the tables in the order of the real ledger_write. */
#include <stdlib.h>
#include <string.h>

#include "sim/tables.h"

/* ---- conditions ---- */

/* The event of a row that the transaction writes: it must hold the lock. */
static struct sim_event *locked_event(const struct ledger *l, int64_t event)
{
    struct sim_event *e = sim_event(l->sim, event);
    hf_check(e && e->locked_by == l);
    return e;
}

static bool clocks_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->clocks.n; i++) {
        const struct clock_write *w = &b->clocks.v[i];
        const struct clock_row *row = &locked_event(l, w->after.event)->clock;
        hf_check(i == 0 || b->clocks.v[i - 1].after.event < w->after.event);
        if (row->seq != w->before.seq || row->fence != w->before.fence || row->now > w->after.now)
            return false;
    }
    return true;
}

static bool keys_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->keys.n; i++) {
        const struct key_row *w = &b->keys.v[i], *row = sim_key(l->sim, w->hash);
        if (row && row->created_at > w->created_at - KEY_KEPT_MS)
            return false;
        for (size_t k = 0; k < i; k++)
            if (memcmp(b->keys.v[k].hash, w->hash, KEY_HASH_SIZE) == 0)
                return false;
    }
    return true;
}

static bool events_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->events.n; i++) {
        if (locked_event(l, b->events.v[i].event)->def->status != b->events.v[i].from)
            return false;
        for (size_t k = 0; k < i; k++)
            hf_check(b->events.v[k].event != b->events.v[i].event);
    }
    return true;
}

static struct sim_seat *find_seat(const struct ledger *l, int64_t seat)
{
    struct sim_event *e = locked_event(l, SEAT_EVENT(seat));
    return SEAT_INDEX(seat) < e->def->n_seats ? &e->seats[SEAT_INDEX(seat)] : NULL;
}

static bool seats_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        const struct sim_seat *row = find_seat(l, w->seat);
        hf_check(i == 0 || b->seats.v[i - 1].seat < w->seat);
        if (!row)
            return false;
        hf_check(row->told.status == w->from && row->told.channel == w->channel_before &&
                 row->told.hold == w->hold_before);
        if (!w->row_changes)
            continue;
        if (row->status != seat_row_status(w->from, w->channel_before) ||
            row->hold != (w->from == SEAT_BOOKED ? w->hold_before : 0))
            return false;
        hf_check(row->fence <= w->row_fence);
    }
    return true;
}

static bool areas_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->areas.n; i++) {
        const struct area_write *w = &b->areas.v[i];
        const struct sim_event *e = locked_event(l, w->event);
        if (w->area >= (int64_t)e->def->areas.n)
            return false;
        const struct sim_area *row = &e->areas[w->area];
        int64_t taken = w->held + w->booked;
        if (row->held != w->held_before || row->booked != w->booked_before ||
            !sim_blocks_equal(&row->blocks, &w->blocks_before))
            return false;
        for (size_t k = 0; k < w->blocks->list.n; k++) {
            const struct area_block *block = &w->blocks->list.v[k];
            hf_check(block->places > 0 && (k == 0 || block[-1].channel < block->channel));
            taken += block->places;
        }
        hf_check(w->held >= 0 && w->booked >= 0 && taken <= e->def->areas.v[w->area].capacity);
        for (size_t k = 0; k < i; k++)
            hf_check(b->areas.v[k].event != w->event || b->areas.v[k].area != w->area);
    }
    return true;
}

/* New holds have the newest fences of their events, so their keys ascend. */
static bool new_holds_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->holds_new.n; i++) {
        int64_t key = b->holds_new.v[i].id.key;
        const struct sim_event *e = locked_event(l, HOLD_EVENT(key));
        if (e->holds.n && e->holds.v[e->holds.n - 1].row.id.key >= key)
            return false;
        for (size_t k = 0; k < i; k++)
            if (HOLD_EVENT(b->holds_new.v[k].id.key) == HOLD_EVENT(key) &&
                b->holds_new.v[k].id.key >= key)
                return false;
    }
    return true;
}

/* The hold as earlier statements of the transaction left it. */
static const struct hold_row *find_hold(const struct ledger *l, const struct ledger_batch *b,
                                        int64_t key)
{
    (void)locked_event(l, HOLD_EVENT(key));
    const struct sim_hold *hold = sim_hold(l->sim, key);
    if (hold)
        return &hold->row;
    for (size_t i = 0; i < b->holds_new.n; i++)
        if (b->holds_new.v[i].id.key == key)
            return &b->holds_new.v[i];
    return NULL;
}

static bool holds_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->holds.n; i++) {
        const struct hold_write *w = &b->holds.v[i];
        const struct hold_row *row = find_hold(l, b, w->hold);
        if (!row || row->status != w->from || row->fence != w->fence_before)
            return false;
        hf_check(row->last_seq == w->seq_before);
        for (size_t k = 0; k < i; k++)
            if (b->holds.v[k].hold == w->hold)
                return false;
    }
    return true;
}

/* A hold whose places change has, by then, the fence of that change. */
static bool places_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->places.n; i++) {
        const struct hold_write *hold = NULL;
        (void)locked_event(l, HOLD_EVENT(b->places.v[i].hold));
        for (size_t k = 0; k < b->holds.n; k++)
            if (b->holds.v[k].hold == b->places.v[i].hold)
                hold = &b->holds.v[k];
        if (!hold || hold->fence != b->places.v[i].fence ||
            (hold->to != HOLD_ACTIVE && hold->to != HOLD_CONFIRMED))
            return false;
    }
    return true;
}

/* A hold that another takes over is released by then. */
static bool merges_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->merges.n; i++) {
        const struct hold_merge *w = &b->merges.v[i];
        (void)locked_event(l, HOLD_EVENT(w->hold));
        const struct sim_hold *hold = sim_hold(l->sim, w->hold);
        if (!hold || hold->row.carrier.id.key != w->carrier_before)
            return false;
        enum hold_status status = hold->row.status;
        for (size_t k = 0; k < b->holds.n; k++)
            if (b->holds.v[k].hold == w->hold)
                status = b->holds.v[k].to;
        hf_check(i == 0 || b->merges.v[i - 1].hold < w->hold);
        if (status != HOLD_RELEASED)
            return false;
    }
    return true;
}

/* Does the batch move the booking, which failed, to bookings_past? */
static bool is_past(const struct ledger_batch *b, int64_t booking)
{
    for (size_t i = 0; i < b->bookings_past.n; i++)
        if (b->bookings_past.v[i] == booking)
            return true;
    return false;
}

static bool past_bookings_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings_past.n; i++) {
        (void)locked_event(l, HOLD_EVENT(b->bookings_past.v[i]));
        const struct sim_hold *hold = sim_hold(l->sim, b->bookings_past.v[i]);
        if (!hold || hold->booking.status != BOOKING_FAILED)
            return false;
        for (size_t k = 0; k < l->sim->bookings_past.n; k++)
            if (l->sim->bookings_past.v[k].id.key == hold->booking.id.key &&
                l->sim->bookings_past.v[k].payment == hold->booking.payment)
                return false;
        for (size_t k = 0; k < i; k++)
            if (b->bookings_past.v[k] == b->bookings_past.v[i])
                return false;
    }
    return true;
}

static bool new_bookings_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings_new.n; i++) {
        int64_t key = b->bookings_new.v[i].id.key;
        const struct sim_hold *hold = sim_hold(l->sim, key);
        if (!find_hold(l, b, key) || (hold && hold->booking.id.key && !is_past(b, key)))
            return false;
        for (size_t k = 0; k < i; k++)
            if (b->bookings_new.v[k].id.key == key)
                return false;
    }
    return true;
}

static bool bookings_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->bookings.n; i++) {
        const struct booking_write *w = &b->bookings.v[i];
        (void)locked_event(l, HOLD_EVENT(w->booking));
        const struct sim_hold *hold = sim_hold(l->sim, w->booking);
        if (!hold || hold->booking.status != w->from)
            return false;
        for (size_t k = 0; k < i; k++)
            if (b->bookings.v[k].booking == w->booking)
                return false;
    }
    return true;
}

/* Does the batch take the sale of this seat back? */
static bool is_undone(const struct ledger_batch *b, int64_t seat)
{
    for (size_t i = 0; i < b->sales_undone.n; i++)
        if (b->sales_undone.v[i].seat == seat)
            return true;
    return false;
}

static bool undone_sales_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->sales_undone.n; i++) {
        const struct sim_seat *seat = find_seat(l, b->sales_undone.v[i].seat);
        if (!seat || seat->sold_to != b->sales_undone.v[i].booking)
            return false;
    }
    return true;
}

static bool sales_fit(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->sales.n; i++) {
        const struct sim_seat *seat = find_seat(l, b->sales.v[i].seat);
        if (!seat || (seat->sold_to && !is_undone(b, b->sales.v[i].seat)))
            return false;
        for (size_t k = 0; k < i; k++)
            if (b->sales.v[k].seat == b->sales.v[i].seat)
                return false;
    }
    return true;
}

/* Rows of one event come in the order of their seqs, each larger than every stored one. */
static bool audit_fits(const struct ledger *l, const struct ledger_batch *b)
{
    size_t n = l->sim->events.n;
    int64_t *last = hf_alloc(n * sizeof *last); /* seq, by event */
    bool fits = true;
    for (size_t i = 0; i < n; i++) {
        const struct sim_event *e = &l->sim->events.v[i];
        last[i] = e->log.n ? e->log.v[e->log.n - 1].seq : 0;
    }
    for (size_t i = 0; fits && i < b->audit.n; i++) {
        const struct audit_row *row = &b->audit.v[i];
        (void)locked_event(l, row->event);
        hf_check(actor_is_valid(row->actor, strlen(row->actor)));
        fits = row->seq > last[row->event];
        last[row->event] = row->seq;
    }
    free(last);
    return fits;
}

/* ---- staging ---- */

#define stage(list, from)                                                                          \
    for (size_t row_ = 0; row_ < (from)->n; row_++)                                                \
    *vec_push(list) = (from)->v[row_]

/* Rows that point to memory of the server: it is copied, as SQL would copy it. */
static void stage_texts(struct ledger_batch *staged, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->events.n; i++) {
        struct event_write *w = vec_push(&staged->events);
        *w = b->events.v[i];
        if (!w->terms)
            continue;
        struct event_terms *copy = hf_alloc(sizeof *copy);
        event_terms_copy(w->terms, copy);
        w->terms = copy;
    }
    for (size_t i = 0; i < b->areas.n; i++) {
        struct area_write *w = vec_push(&staged->areas);
        *w = b->areas.v[i];
        memset(&w->blocks_before, 0, sizeof w->blocks_before); /* what is written, from now on */
        sim_blocks_copy(b->areas.v[i].blocks, &w->blocks_before);
        w->blocks = NULL;
    }
    for (size_t i = 0; i < b->places.n; i++) {
        struct hold_row copy = {0};
        struct hold_places_write *w = vec_push(&staged->places);
        sim_hold_set_places(&copy, &b->places.v[i]);
        *w = b->places.v[i];
        w->seats = copy.seats;
        w->areas = copy.areas;
        w->prices = copy.owned; /* the block */
    }
    for (size_t i = 0; i < b->bookings.n; i++) {
        struct booking_write *w = vec_push(&staged->bookings);
        *w = b->bookings.v[i];
        w->reason = w->reason ? hf_strndup(w->reason, w->reason_len) : NULL;
    }
}

static void discard_texts(struct ledger_batch *b)
{
    for (size_t i = 0; i < b->events.n; i++) {
        struct event_terms *terms = (struct event_terms *)(uintptr_t)b->events.v[i].terms;
        if (terms)
            event_terms_close(terms);
        free(terms);
    }
    for (size_t i = 0; i < b->areas.n; i++)
        vec_close(&b->areas.v[i].blocks_before.list);
    for (size_t i = 0; i < b->places.n; i++)
        free((void *)(uintptr_t)b->places.v[i].prices);
    for (size_t i = 0; i < b->bookings.n; i++)
        free((void *)(uintptr_t)b->bookings.v[i].reason);
    vec_clear(&b->events);
    vec_clear(&b->areas);
    vec_clear(&b->places);
    vec_clear(&b->bookings);
}

static void stage_all(struct ledger_batch *staged, const struct ledger_batch *b)
{
    stage(&staged->clocks, &b->clocks);
    stage(&staged->seats, &b->seats);
    stage(&staged->holds, &b->holds);
    stage(&staged->merges, &b->merges);
    stage(&staged->sales, &b->sales);
    stage(&staged->sales_undone, &b->sales_undone);
    stage(&staged->audit, &b->audit);
    for (size_t i = 0; i < staged->audit.n; i++)
        staged->audit.v[i].actor = NULL; /* the sender's memory */
    stage(&staged->bookings_past, &b->bookings_past);
    sim_money_stage(staged, b);
    sim_waits_stage(staged, b);
    stage_texts(staged, b);
    for (size_t i = 0; i < b->heads.n; i++) {
        struct heads_write *w = vec_push(&staged->heads);
        uint8_t *copy = hf_alloc((size_t)b->heads.v[i].n * HEAD_SIZE + 1);
        memcpy(copy, b->heads.v[i].heads, (size_t)b->heads.v[i].n * HEAD_SIZE);
        *w = b->heads.v[i];
        w->heads = copy;
    }
    for (size_t i = 0; i < b->holds_new.n; i++)
        *vec_push(&staged->holds_new) = sim_hold_copy(&b->holds_new.v[i]);
    for (size_t i = 0; i < b->bookings_new.n; i++)
        *vec_push(&staged->bookings_new) = sim_booking_copy(&b->bookings_new.v[i], NULL);
    for (size_t i = 0; i < b->keys.n; i++)
        *vec_push(&staged->keys) = sim_key_copy(&b->keys.v[i]);
}

const char *sim_write(struct ledger *l, const struct ledger_batch *b)
{
    static const struct {
        const char *table;
        bool (*fits)(const struct ledger *l, const struct ledger_batch *b);
    } tables[] = {
        {"event_clock", clocks_fit},
        {"idempotency", keys_fit},
        {"events", events_fit},
        {"seats", seats_fit},
        {"areas", areas_fit},
        {"waitlist", sim_new_waits_fit},
        {"holds", new_holds_fit},
        {"holds", holds_fit},
        {"holds", places_fit},
        {"holds", merges_fit},
        {"waitlist", sim_waits_fit},
        {"bookings_past", past_bookings_fit},
        {"bookings", new_bookings_fit},
        {"bookings", bookings_fit},
        {"sold_seats", undone_sales_fit},
        {"sold_seats", sales_fit},
        {"payments", sim_payments_fit},
        {"refunds", sim_refunds_fit},
        {"jobs", sim_jobs_fit},
        {"payment_events", sim_webhooks_fit},
        {"log", audit_fits},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!tables[i].fits(l, b))
            return tables[i].table;
    stage_all(&l->staged, b);
    return NULL;
}

void sim_discard(struct ledger *l)
{
    struct ledger_batch *b = &l->staged;
    for (size_t i = 0; i < b->holds_new.n; i++)
        hold_row_close(&b->holds_new.v[i]);
    for (size_t i = 0; i < b->bookings_new.n; i++)
        booking_row_close(&b->bookings_new.v[i]);
    for (size_t i = 0; i < b->keys.n; i++)
        key_row_close(&b->keys.v[i]);
    for (size_t i = 0; i < l->staged_events.n; i++)
        event_def_free(l->staged_events.v[i]);
    discard_texts(b);
    vec_clear(&b->clocks);
    vec_clear(&b->seats);
    vec_clear(&b->holds_new);
    vec_clear(&b->holds);
    vec_clear(&b->merges);
    vec_clear(&b->bookings_new);
    vec_clear(&b->sales);
    vec_clear(&b->sales_undone);
    vec_clear(&b->audit);
    for (size_t i = 0; i < b->heads.n; i++)
        free((void *)(uintptr_t)b->heads.v[i].heads);
    vec_clear(&b->heads);
    vec_clear(&b->keys);
    vec_clear(&l->staged_events);
    vec_clear(&b->bookings_past);
    sim_money_discard(l);
    sim_waits_discard(l);
}

void sim_staged_close(struct ledger *l)
{
    vec_close(&l->staged.clocks);
    vec_close(&l->staged.events);
    vec_close(&l->staged.seats);
    vec_close(&l->staged.areas);
    vec_close(&l->staged.holds_new);
    vec_close(&l->staged.holds);
    vec_close(&l->staged.places);
    vec_close(&l->staged.merges);
    vec_close(&l->staged.bookings_new);
    vec_close(&l->staged.bookings);
    vec_close(&l->staged.sales);
    vec_close(&l->staged.sales_undone);
    vec_close(&l->staged.audit);
    vec_close(&l->staged.heads);
    vec_close(&l->staged.keys);
    vec_close(&l->staged_events);
    sim_money_free(l);
    sim_waits_free(l);
}

/* ---- storing ---- */

static void note_terms(struct sim_event *e)
{
    struct sim_terms *past = vec_push(&e->past);
    past->seq = e->clock.seq;
    event_terms_copy(&e->def->terms, &past->terms);
}

struct sim_event *sim_event_add(struct sim_ledger *sim, struct event_def *def, int64_t now)
{
    struct sim_event *e = vec_push(&sim->events);
    hf_check(def->id.key == (int64_t)sim->events.n - 1);
    e->def = def;
    e->clock = (struct clock_row){.event = def->id.key, .now = now};
    e->seats = hf_alloc(def->n_seats * sizeof *e->seats);
    e->areas = hf_alloc((def->areas.n + 1) * sizeof *e->areas);
    e->heads_seqs = hf_alloc((def->n_seats / HEADS_CHUNK + 1) * sizeof *e->heads_seqs);
    note_terms(e);
    return e;
}

static void apply_new_event(struct sim_ledger *sim, struct event_def *def)
{
    struct sim_event *e = sim_event_add(sim, def, def->created_at);
    *vec_push(&e->log) = (struct audit_row){.event = def->id.key,
                                            .seq = ++e->clock.seq,
                                            .at = def->created_at,
                                            .object = AUDIT_EVENT,
                                            .cause = CAUSE_CREATE,
                                            .item = -1,
                                            .to = EVENT_OPEN};
}

static void apply_key(struct sim_ledger *sim, struct key_row *staged)
{
    struct key_row *row = sim_key(sim, staged->hash);
    if (row)
        key_row_close(row);
    else
        row = vec_push(&sim->keys);
    *row = *staged;
    staged->owned = NULL; /* it is the table's now */
}

static void apply_seats(const struct ledger *l, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *w = &b->seats.v[i];
        struct sim_seat *seat = find_seat(l, w->seat);
        seat->told.status = w->to;
        seat->told.channel = w->channel;
        seat->told.hold = w->hold;
        seat->told.expires_at = w->expires_at;
        if (!w->row_changes)
            continue;
        seat->status = seat_row_status(w->to, w->channel);
        bool has_row = seat->status != SEAT_AVAILABLE;
        seat->hold = w->to == SEAT_BOOKED ? w->hold : 0;
        seat->fence = has_row ? w->row_fence : 0;
        seat->channel = has_row ? w->channel : 0;
    }
    for (size_t i = 0; i < b->sales_undone.n; i++)
        find_seat(l, b->sales_undone.v[i].seat)->sold_to = 0;
    for (size_t i = 0; i < b->sales.n; i++)
        find_seat(l, b->sales.v[i].seat)->sold_to = b->sales.v[i].booking;
    for (size_t i = 0; i < b->areas.n; i++) {
        const struct area_write *w = &b->areas.v[i];
        struct sim_area *area = &sim_event(l->sim, w->event)->areas[w->area];
        area->held = w->held;
        area->booked = w->booked;
        sim_blocks_copy(&w->blocks_before, &area->blocks); /* see stage_texts */
    }
}

static void apply_booking(struct sim_ledger *sim, const struct booking_write *w)
{
    struct booking_row *row = &sim_hold(sim, w->booking)->booking, before = *row;
    row->status = w->to;
    row->fence = w->fence ? w->fence : row->fence;
    row->cancelled_at = w->cancelled_at;
    row->reason = w->reason;
    row->reason_len = w->reason_len;
    *row = sim_booking_copy(row, NULL);
    booking_row_close(&before);
}

/* The event's clock row has been written already. */
static void apply_event(struct sim_ledger *sim, const struct event_write *w)
{
    struct event_def *def = sim_event(sim, w->event)->def;
    def->status = w->to;
    if (!w->terms)
        return;
    event_terms_close(&def->terms);
    event_terms_copy(w->terms, &def->terms);
    note_terms(sim_event(sim, w->event));
}

static void apply_holds(struct sim_ledger *sim, struct ledger_batch *b)
{
    for (size_t i = 0; i < b->holds_new.n; i++) {
        struct hold_row *row = &b->holds_new.v[i];
        vec_push(&sim_event(sim, HOLD_EVENT(row->id.key))->holds)->row = *row;
        row->owned = NULL; /* it is the table's now */
    }
    for (size_t i = 0; i < b->holds.n; i++) {
        struct hold_row *row = &sim_hold(sim, b->holds.v[i].hold)->row;
        row->status = b->holds.v[i].to;
        row->fence = b->holds.v[i].fence;
        row->expires_at = b->holds.v[i].expires_at;
        row->last_seq = b->holds.v[i].last_seq;
    }
    for (size_t i = 0; i < b->places.n; i++)
        sim_hold_set_places(&sim_hold(sim, b->places.v[i].hold)->row, &b->places.v[i]);
    for (size_t i = 0; i < b->merges.n; i++)
        sim_hold(sim, b->merges.v[i].hold)->row.carrier.id =
            sim_hold(sim, b->merges.v[i].carrier)->row.id;
    for (size_t i = 0; i < b->bookings_past.n; i++) {
        struct booking_row *row = &sim_hold(sim, b->bookings_past.v[i])->booking;
        *vec_push(&sim->bookings_past) = *row;
        *row = (struct booking_row){0};
    }
    for (size_t i = 0; i < b->bookings_new.n; i++) {
        sim_hold(sim, b->bookings_new.v[i].id.key)->booking = b->bookings_new.v[i];
        b->bookings_new.v[i].owned = NULL;
    }
    for (size_t i = 0; i < b->bookings.n; i++)
        apply_booking(sim, &b->bookings.v[i]);
}

static void apply_heads(struct sim_ledger *sim, const struct heads_write *w)
{
    struct sim_event *e = sim_event(sim, w->event);
    int64_t *seq = &e->heads_seqs[w->first / HEADS_CHUNK];
    hf_check(w->first % HEADS_CHUNK == 0 && w->seq >= *seq);
    *seq = w->seq;
    for (uint32_t i = 0; i < HEADS_CHUNK && w->first + i < e->def->n_seats; i++)
        e->seats[w->first + i].head = i < w->n ? head_unpack(w->heads + (size_t)i * HEAD_SIZE) : 0;
}

void sim_apply(struct ledger *l)
{
    struct ledger_batch *b = &l->staged;
    for (size_t i = 0; i < b->clocks.n; i++)
        sim_event(l->sim, b->clocks.v[i].after.event)->clock = b->clocks.v[i].after;
    for (size_t i = 0; i < b->keys.n; i++)
        apply_key(l->sim, &b->keys.v[i]);
    for (size_t i = 0; i < b->events.n; i++)
        apply_event(l->sim, &b->events.v[i]);
    apply_seats(l, b);
    apply_holds(l->sim, b);
    sim_waits_apply(l);
    for (size_t i = 0; i < b->audit.n; i++)
        *vec_push(&sim_event(l->sim, b->audit.v[i].event)->log) = b->audit.v[i];
    for (size_t i = 0; i < b->heads.n; i++)
        apply_heads(l->sim, &b->heads.v[i]);
    sim_money_apply(l);
    for (size_t i = 0; i < l->staged_events.n; i++)
        apply_new_event(l->sim, l->staged_events.v[i]);
    vec_clear(&l->staged_events); /* they are the tables' now */
}
