/* See check.h. */
#include "sim/check.h"

#include <stdlib.h>

#include "rules/best.h"
#include "sim/tables.h"
#include "view/view_holds.h"

/* ---- folding ---- */

void fold_init(struct fold *f, const struct sim_ledger *ledger, int64_t event)
{
    const struct sim_event *e = sim_event(ledger, event);
    const struct event_def *def = e->def;
    *f = (struct fold){.event = event, .def = def};
    if (!e->log.n) { /* else its first row says so */
        f->status = def->status;
        f->at = e->clock.now;
    }
    f->seats = hf_alloc(def->n_seats * sizeof *f->seats);
    f->areas = hf_alloc(def->areas.n * sizeof *f->areas);
}

void fold_close(struct fold *f)
{
    free(f->seats);
    free(f->areas);
    vec_close(&f->holds);
    vec_close(&f->payments);
    vec_close(&f->waits);
}

static int hold_order(const void *key, const void *hold)
{
    int64_t a = *(const int64_t *)key, b = ((const struct folded_hold *)hold)->key;
    return (a > b) - (a < b);
}

struct folded_hold *folded_hold(const struct fold *f, int64_t key)
{
    if (!f->holds.n)
        return NULL;
    return bsearch(&key, f->holds.v, f->holds.n, sizeof *f->holds.v, hold_order);
}

/* ---- the places of holds ---- */

static uint32_t find_seat(const struct folded_hold *hold, uint32_t seat)
{
    uint32_t at = 0;
    while (at < hold->n_seats && hold->seats[at] != seat)
        at++;
    return at;
}

/* A seat that a change takes out and puts in again, as another ticket type, keeps its place. */
static void give_seat(struct folded_hold *hold, uint32_t seat)
{
    uint32_t at = find_seat(hold, seat);
    assert_in_range(at, 0, FOLDED_SEATS_MAX - 1);
    assert_true(at == hold->n_seats || hold->is_out[at]);
    hold->seats[at] = seat;
    hold->is_out[at] = false;
    hold->n_seats += at == hold->n_seats;
}

static void take_seat(struct folded_hold *hold, uint32_t seat)
{
    uint32_t at = find_seat(hold, seat);
    assert_true(at < hold->n_seats && !hold->is_out[at]); /* it had the seat */
    hold->is_out[at] = true;
}

/* Takes off the lists what the last change has taken out. */
static void drop_out(struct folded_hold *hold)
{
    uint32_t n_seats = 0, n_areas = 0;
    for (uint32_t i = 0; i < hold->n_seats; i++) {
        if (!hold->is_out[i])
            hold->seats[n_seats++] = hold->seats[i];
        hold->is_out[i] = false;
    }
    for (uint32_t i = 0; i < hold->n_areas; i++)
        if (hold->areas[i].quantity)
            hold->areas[n_areas++] = hold->areas[i];
    hold->n_seats = n_seats;
    hold->n_areas = n_areas;
}

static void change_area(struct folded_hold *hold, uint32_t area, int64_t more)
{
    uint32_t at = 0;
    while (at < hold->n_areas && hold->areas[at].area != area)
        at++;
    if (at == hold->n_areas) {
        assert_in_range(at, 0, ASK_AREAS_MAX - 1);
        hold->areas[hold->n_areas++] = (struct area_claim){area, 0};
    }
    int64_t quantity = hold->areas[at].quantity + more;
    assert_true(quantity >= 0);
    hold->areas[at].quantity = (uint32_t)quantity;
}

/* Does the row belong to the making of a hold? */
static bool is_grant(const struct audit_row *row)
{
    return row->cause == CAUSE_HOLD || row->cause == CAUSE_WAITLIST;
}

/* A hold gets its places when it is made, and other ones when it is changed; whatever becomes of it
 * afterwards, its row goes on listing them. */
static void fold_place(struct fold *f, const struct audit_row *row)
{
    struct folded_hold *hold = row->hold ? folded_hold(f, row->hold) : NULL;
    if (!hold || (!is_grant(row) && row->cause != CAUSE_CHANGE))
        return;
    bool gives = row->to == SEAT_HELD;
    if (row->object == AUDIT_AREA)
        change_area(hold, (uint32_t)row->item, gives ? row->quantity : -row->quantity);
    else if (gives)
        give_seat(hold, (uint32_t)row->item);
    else
        take_seat(hold, (uint32_t)row->item);
}

/* ---- rows ---- */

/* A seat returns to the channel that it has come from. */
static void fold_channel(struct folded_seat *seat, const struct audit_row *row)
{
    bool blocked = row->from == SEAT_BLOCKED || row->to == SEAT_BLOCKED;
    if (row->cause != CAUSE_BLOCK)
        assert_int_equal(row->channel, blocked ? seat->channel : 0);
    if (row->to == SEAT_BLOCKED)
        seat->channel = row->channel;
    else if (row->cause == CAUSE_UNBLOCK)
        seat->channel = 0;
    if (row->to == SEAT_AVAILABLE)
        assert_int_equal(seat->channel, 0);
}

/* A row about places: they are somebody's, or blocked and released with new fences (I5). */
static void check_place(const struct fold *f, const struct audit_row *row)
{
    bool blocks = row->cause == CAUSE_BLOCK || row->cause == CAUSE_UNBLOCK;
    assert_int_equal(row->hold == 0, blocks);
    assert_int_equal(row->booking, row->to == SEAT_BOOKED ? row->hold : 0);
    if (blocks)
        assert_true(row->fence >= f->fence);
}

static void fold_seat(struct fold *f, const struct audit_row *row)
{
    struct folded_seat *seat = &f->seats[row->item];
    check_place(f, row);
    assert_int_equal(row->quantity, 1);
    assert_int_equal(seat->status, row->from);
    assert_true(seat->hold == 0 || seat->hold == row->hold); /* only its owner gives it away: I1 */
    assert_int_equal(seat->last_seq, row->prev);
    fold_channel(seat, row);
    fold_place(f, row);
    seat->last_seq = row->seq;
    seat->status = (enum seat_status)row->to;
    seat->hold = row->to == SEAT_HELD || row->to == SEAT_BOOKED ? row->hold : 0;
}

/* Places of an area return to where the hold has them from. */
static void fold_area_channel(struct fold *f, const struct audit_row *row)
{
    struct folded_hold *hold = row->hold ? folded_hold(f, row->hold) : NULL;
    if (!hold)
        return;
    if (row->to == SEAT_HELD)
        hold->area_channel = row->channel;
    if (row->to == SEAT_AVAILABLE || row->to == SEAT_BLOCKED) {
        assert_int_equal(row->to, hold->area_channel ? SEAT_BLOCKED : SEAT_AVAILABLE);
        assert_int_equal(row->channel, hold->area_channel);
    }
}

static void fold_area(struct fold *f, const struct audit_row *row)
{
    struct folded_area *area = &f->areas[row->item];
    check_place(f, row);
    assert_int_not_equal(row->from, row->to);
    assert_true(row->quantity > 0 && row->fence);
    assert_in_range(row->channel, 0, CHANNELS_MAX);
    if (row->from != SEAT_BLOCKED && row->to != SEAT_BLOCKED)
        assert_int_equal(row->channel, 0);
    area->held += row->quantity * ((row->to == SEAT_HELD) - (row->from == SEAT_HELD));
    area->booked += row->quantity * ((row->to == SEAT_BOOKED) - (row->from == SEAT_BOOKED));
    area->blocked[row->channel] +=
        row->quantity * ((row->to == SEAT_BLOCKED) - (row->from == SEAT_BLOCKED));
    int64_t taken = area->held + area->booked;
    for (int i = 0; i <= CHANNELS_MAX; i++)
        taken += area->blocked[i];
    assert_true(area->held >= 0 && area->booked >= 0 && area->blocked[row->channel] >= 0);
    assert_true(taken <= f->def->areas.v[row->item].capacity); /* at every row: I2 */
    fold_area_channel(f, row);
    fold_place(f, row);
}

/* Rows about a booking or its payment are rows of their hold's chain, but for that of a sale
 * without payment, which stands with the row of its hold. */
static void fold_booking(struct fold *f, const struct audit_row *row)
{
    static const unsigned after[] = {
        [BOOKING_NONE] = 1u << BOOKING_PENDING | 1u << BOOKING_CONFIRMED,
        [BOOKING_PENDING] =
            1u << BOOKING_CONFIRMED | 1u << BOOKING_FAILED | 1u << BOOKING_CANCELLED,
        [BOOKING_CONFIRMED] = 1u << BOOKING_CANCELLED,
        [BOOKING_FAILED] = 0,
        [BOOKING_CANCELLED] = 0};
    struct folded_hold *hold = folded_hold(f, row->hold);
    bool is_new = row->from == BOOKING_NONE, is_sale = is_new && row->to == BOOKING_CONFIRMED;
    assert_non_null(hold);
    assert_int_equal(row->booking, row->hold);
    assert_true(hold->booking == (enum booking_status)row->from ||
                (is_new && hold->booking == BOOKING_FAILED));
    assert_true(after[row->from] & 1u << row->to);
    assert_int_equal(row->quantity, hold->places);
    assert_int_equal(row->prev, is_sale ? 0 : hold->last_seq);
    if (!is_sale)
        hold->last_seq = row->seq;
    if (row->to == BOOKING_PENDING) {
        assert_true(row->fence > f->fence); /* the number of its payment */
        *vec_push(&f->payments) = (struct folded_payment){
            .payment = HOLD_KEY(row->event, row->fence), .status = PAYMENT_CREATING};
    } else {
        assert_int_equal(row->fence, hold->fence);
    }
    hold->booking = (enum booking_status)row->to;
    hold->is_capturing = false;
    hold->payment = row->to == BOOKING_PENDING ? HOLD_KEY(row->event, row->fence) : 0;
}

static struct folded_payment *folded_payment(const struct fold *f, int64_t payment)
{
    for (size_t i = 0; i < f->payments.n; i++)
        if (f->payments.v[i].payment == payment)
            return &f->payments.v[i];
    return NULL;
}

static void fold_payment(struct fold *f, const struct audit_row *row)
{
    struct folded_hold *hold = folded_hold(f, row->hold);
    struct folded_payment *payment = folded_payment(f, HOLD_KEY(row->event, row->fence));
    assert_non_null(hold);
    assert_non_null(payment);
    assert_int_equal(row->booking, row->hold);
    assert_int_equal(payment->status, row->from);
    assert_true(!payment->amount || payment->amount == row->quantity);
    payment->status = (enum payment_status)row->to;
    payment->amount = row->quantity;
    assert_int_equal(hold->last_seq, row->prev);
    hold->last_seq = row->seq;
    if (HOLD_KEY(row->event, row->fence) == hold->payment)
        hold->is_capturing = row->to == PAYMENT_CAPTURING;
}

/* Are the places of the hold booked?  They are while its money is captured, too. */
static bool is_booked(const struct folded_hold *hold)
{
    return hold->status == HOLD_CONFIRMED &&
           (hold->booking == BOOKING_CONFIRMED ||
            (hold->booking == BOOKING_PENDING && hold->is_capturing));
}

static void fold_hold(struct fold *f, const struct audit_row *row)
{
    struct folded_hold *hold = folded_hold(f, row->hold);
    if (!hold) {
        assert_true(!f->holds.n || f->holds.v[f->holds.n - 1].key < row->hold);
        hold = vec_push(&f->holds);
        hold->key = row->hold;
    }
    drop_out(hold);
    assert_int_equal(hold->status, row->from);
    bool draws = is_grant(row) || row->cause == CAUSE_CHANGE || row->cause == CAUSE_RESCUE;
    assert_true(draws ? row->fence > f->fence : row->fence == hold->fence); /* I5 */
    assert_int_equal(hold->last_seq, row->prev);
    hold->last_seq = row->seq;
    if (hold->status == HOLD_ACTIVE) /* I4: from its expiry on it can only expire */
        assert_int_equal(row->cause == CAUSE_EXPIRE, row->at >= hold->until);
    if (!is_grant(row) && row->cause != CAUSE_CHANGE)
        assert_int_equal(row->quantity, hold->places);
    hold->places = row->quantity;
    hold->status = (enum hold_status)row->to;
    hold->fence = row->fence;
    hold->until = row->until;
}

static void fold_event(struct fold *f, const struct audit_row *row)
{
    static const enum audit_cause causes[] = {[EVENT_OPEN] = CAUSE_OPEN,
                                              [EVENT_CLOSED] = CAUSE_CLOSE,
                                              [EVENT_ARCHIVED] = CAUSE_ARCHIVE,
                                              [EVENT_CANCELLED] = CAUSE_CANCEL};
    assert_int_equal(f->status, row->from);
    if (!row->from)
        assert_int_equal(row->cause, CAUSE_CREATE);
    else if (row->to != row->from)
        assert_int_equal(row->cause, causes[row->to]);
    else
        assert_true(row->cause == CAUSE_CHANGE || row->cause == CAUSE_PAUSE ||
                    row->cause == CAUSE_RESUME);
    f->status = (enum event_status)row->to;
}

static void fold_object(struct fold *f, const struct audit_row *row)
{
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
        fold_event(f, row);
        return;
    case AUDIT_BOOKING:
        fold_booking(f, row);
        return;
    case AUDIT_PAYMENT:
        fold_payment(f, row);
        return;
    case AUDIT_WAIT:
        fold_wait(f, row);
        return;
    }
    fail();
}

static void fold_row(struct fold *f, const struct audit_row *row)
{
    assert_int_equal(row->seq, f->seq + 1); /* I11 */
    assert_true(row->at >= f->at);
    f->seq = row->seq;
    f->at = row->at;
    fold_object(f, row);
    f->fence = row->fence > f->fence ? row->fence : f->fence;
}

static void fold_to(struct fold *f, const struct sim_event *e, int64_t seq)
{
    assert_true(f->seq <= seq); /* views never go back */
    assert_true(seq <= (int64_t)e->log.n);
    while (f->seq < seq)
        fold_row(f, &e->log.v[f->seq]);
    for (size_t i = 0; i < f->holds.n; i++)
        drop_out(&f->holds.v[i]);
}

void fold_log(struct fold *f, const struct sim_ledger *ledger)
{
    const struct sim_event *e = sim_event(ledger, f->event);
    fold_to(f, e, (int64_t)e->log.n);
    assert_int_equal(e->holds.n, f->holds.n);
}

/* ---- the ledger ---- */

static void check_places(const struct folded_hold *f, const uint32_t *seats, uint32_t n_seats,
                         const struct area_claim *areas, uint32_t n_areas)
{
    assert_int_equal(n_seats, f->n_seats);
    assert_int_equal(n_areas, f->n_areas);
    if (n_seats)
        assert_memory_equal(seats, f->seats, n_seats * sizeof *seats);
    if (n_areas)
        assert_memory_equal(areas, f->areas, n_areas * sizeof *areas);
}

static void check_active_hold(const struct fold *f, const struct sim_event *e,
                              const struct hold_row *row)
{
    for (uint32_t i = 0; i < row->n_seats; i++) {
        assert_int_equal(f->seats[row->seats[i]].status, SEAT_HELD);
        assert_int_equal(f->seats[row->seats[i]].hold, row->id.key);
        uint32_t channel = f->seats[row->seats[i]].channel;
        assert_true(channel == 0 || channel == row->channel);
        assert_int_equal(e->seats[row->seats[i]].told.expires_at, row->expires_at);
    }
}

static void check_booked_hold(const struct sim_event *e, const struct sim_hold *hold)
{
    assert_int_equal(hold->booking.id.key, hold->row.id.key);
    for (uint32_t i = 0; i < hold->row.n_seats; i++) {
        const struct sim_seat *seat = &e->seats[hold->row.seats[i]];
        assert_int_equal(seat->status, SEAT_BOOKED);
        assert_int_equal(seat->hold, hold->row.id.key);
        assert_int_equal(seat->sold_to, hold->row.id.key);
    }
}

static void check_prices(const struct hold_row *row)
{
    int64_t sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < row->n_prices; i++) {
        assert_true(row->prices[i].n > 0);
        n += row->prices[i].n;
        sum += row->prices[i].price * row->prices[i].n;
        assert_in_range(row->prices[i].type, 0, TYPES_MAX - 1);
    }
    assert_int_equal(n, places_count(row->n_seats, row->areas, row->n_areas));
    assert_int_equal(sum, row->amount);
}

/* A hold that was booked with another is released, and the other one has the booking. */
static void check_merged(const struct sim_ledger *ledger, const struct hold_row *row)
{
    if (!row->carrier.id.key)
        return;
    const struct sim_hold *carrier = sim_hold(ledger, row->carrier.id.key);
    assert_int_equal(row->status, HOLD_RELEASED);
    assert_int_equal(carrier->row.event, row->event);
    assert_int_equal(carrier->row.carrier.id.key, 0);
    assert_int_not_equal(carrier->booking.status, BOOKING_NONE);
}

static void check_hold_row(const struct sim_ledger *ledger, const struct folded_hold *f,
                           const struct sim_hold *hold)
{
    const struct hold_row *row = &hold->row;
    assert_int_equal(row->id.key, f->key);
    assert_int_equal(row->status, f->status);
    assert_int_equal(row->fence, f->fence);
    assert_int_equal(row->expires_at, f->until);
    assert_int_equal(row->last_seq, f->last_seq);
    assert_true(row->expires_at <= row->max_expires_at);
    assert_int_equal(hold->booking.status, f->booking);
    if (row->status == HOLD_CONFIRMED)
        assert_int_not_equal(f->booking, BOOKING_NONE);
    if (f->booking == BOOKING_CONFIRMED)
        assert_int_equal(row->status, HOLD_CONFIRMED);
    assert_int_equal(is_booked(f), sim_is_booked(ledger, hold));
    if (f->booking == BOOKING_PENDING) {
        assert_int_equal(hold->booking.payment, f->payment);
        assert_non_null(sim_payment(ledger, f->key, f->payment));
    }
    assert_int_equal(f->places, places_count(row->n_seats, row->areas, row->n_areas));
    check_places(f, row->seats, row->n_seats, row->areas, row->n_areas);
    check_prices(row);
}

/* Places that holds have. */
struct places {
    int64_t held, booked;
};

static int64_t check_blocks(const struct folded_area *f, const struct area_blocks *blocks)
{
    int64_t sum = 0, folded = 0;
    for (size_t i = 0; i < blocks->list.n; i++) {
        const struct area_block *block = &blocks->list.v[i];
        assert_true(block->places > 0 && (i == 0 || block[-1].channel < block->channel));
        assert_int_equal(block->places, f->blocked[block->channel]);
        sum += block->places;
    }
    for (int i = 0; i <= CHANNELS_MAX; i++)
        folded += f->blocked[i];
    assert_int_equal(sum, folded);
    return sum;
}

/* What holds have of an area. */
static struct places sum_area(const struct fold *f, const struct sim_event *e, uint32_t area)
{
    struct places sum = {0};
    for (size_t i = 0; i < e->holds.n; i++) {
        const struct hold_row *row = &e->holds.v[i].row;
        for (uint32_t k = 0; k < row->n_areas; k++) {
            int64_t n = row->areas[k].area == area ? row->areas[k].quantity : 0;
            sum.held += row->status == HOLD_ACTIVE ? n : 0;
            sum.booked += is_booked(&f->holds.v[i]) ? n : 0;
        }
    }
    return sum;
}

static void check_areas(const struct fold *f, const struct sim_event *e)
{
    for (uint32_t i = 0; i < e->def->areas.n; i++) {
        const struct sim_area *area = &e->areas[i];
        const struct places sum = sum_area(f, e, i);
        assert_int_equal(area->held, f->areas[i].held);
        assert_int_equal(area->booked, f->areas[i].booked);
        assert_int_equal(area->held, sum.held);
        assert_int_equal(area->booked, sum.booked);
        assert_in_range(area->held + area->booked + check_blocks(&f->areas[i], &area->blocks), 0,
                        e->def->areas.v[i].capacity); /* I2 */
    }
}

/* Returns the seats that holds have. */
static struct places check_holds(const struct sim_ledger *ledger, const struct fold *f,
                                 const struct sim_event *e)
{
    struct places seats = {0};
    for (size_t i = 0; i < e->holds.n; i++) {
        const struct sim_hold *hold = &e->holds.v[i];
        check_hold_row(ledger, &f->holds.v[i], hold);
        check_merged(ledger, &hold->row);
        if (hold->row.status == HOLD_ACTIVE) {
            check_active_hold(f, e, &hold->row);
            seats.held += hold->row.n_seats;
        } else if (is_booked(&f->holds.v[i])) {
            check_booked_hold(e, hold);
            seats.booked += hold->row.n_seats;
        }
    }
    return seats;
}

static void check_payments(const struct fold *f, const struct sim_ledger *ledger)
{
    size_t n = 0;
    for (size_t i = 0; i < ledger->payments.n; i++) {
        const struct payment_row *row = &ledger->payments.v[i];
        if (HOLD_EVENT(row->id.key) != f->event)
            continue;
        const struct folded_payment *folded = folded_payment(f, row->payment);
        assert_non_null(folded);
        assert_int_equal(row->status, folded->status);
        assert_true(!folded->amount || folded->amount == row->amount);
        n++;
    }
    assert_int_equal(n, f->payments.n);
}

void check_ledger(struct fold *f, const struct sim_ledger *ledger)
{
    const struct sim_event *e = sim_event(ledger, f->event);
    fold_log(f, ledger);
    assert_int_equal(e->clock.seq, f->seq);
    assert_true(e->clock.fence >= f->fence);
    if (!ledger->payments.n && !ledger->jobs.n) /* the log does not name all numbers of theirs */
        assert_true(e->clock.fence <= f->fence + e->fences_skipped);
    assert_int_equal(e->clock.now, f->at);
    assert_int_equal(e->def->status, f->status);
    struct places owned = check_holds(ledger, f, e);
    check_areas(f, e);
    check_payments(f, ledger);
    check_waits(f, ledger);
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        const struct sim_seat *seat = &e->seats[i];
        const struct folded_seat *want = &f->seats[i];
        assert_int_equal(seat->status, seat_row_status(want->status, want->channel));
        assert_int_equal(seat->hold, want->status == SEAT_BOOKED ? want->hold : 0);
        assert_int_equal(seat->channel, seat->status == SEAT_AVAILABLE ? 0 : want->channel);
        assert_int_equal(seat->sold_to != 0, seat->status == SEAT_BOOKED);
        assert_int_equal(seat->told.status, want->status);
        assert_int_equal(seat->told.channel, want->channel);
        assert_int_equal(seat->told.hold, want->hold);
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
    assert_int_equal(e->seats[index].channel, want->channel);
    assert_int_equal(seat_hold(e, index), want->hold);
    assert_int_equal(seat_head(&e->seats[index]), want->last_seq);
    assert_int_equal(e->seats[index].pending, 0);
    assert_int_equal(seat_shown_status(shown), want->status);
    assert_int_equal(seat_shown_until(shown), hold ? hold->expires_at : 0);
}

static void check_view_holds(const struct fold *f, const struct sim_ledger *ledger,
                             const struct view *v, const struct event *e)
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
        assert_int_equal(hold->payment, want->payment);
        assert_int_equal(hold->due.key, want->until);
        assert_int_equal(hold->pending, 0);
        assert_int_not_equal(hold->due.place, 0);
        const struct hold_row *row = &sim_hold(ledger, want->key)->row; /* what never changes */
        assert_int_equal(hold->max_expires_at, row->max_expires_at);
        assert_int_equal(hold->client, row->client);
        assert_int_equal(hold->channel, row->channel);
        assert_int_equal(hold->owner, owner_hash(e, row->owner, row->owner_len));
        check_places(want, hold->seats, hold->n_seats, hold->areas, hold->n_areas);
    }
}

/* What each owner has is the sum of its live holds and, where it is limited, of its bookings. */
static void check_owners(const struct fold *f, const struct sim_ledger *ledger,
                         const struct view *v, const struct event *e)
{
    for (size_t i = 0; i < f->holds.n; i++) {
        const struct hold_row *of = &sim_hold(ledger, f->holds.v[i].key)->row;
        uint64_t owner = owner_hash(e, of->owner, of->owner_len);
        int64_t held = 0, booked = 0, listed = 0;
        for (size_t k = 0; k < f->holds.n && owner; k++) {
            const struct folded_hold *hold = &f->holds.v[k];
            const struct hold_row *row = &sim_hold(ledger, hold->key)->row;
            int64_t n = places_count(hold->n_seats, hold->areas, hold->n_areas);
            bool same = owner_hash(e, row->owner, row->owner_len) == owner;
            held += same && hold->status == HOLD_ACTIVE ? n : 0;
            booked += same && is_booked(hold) ? n : 0;
        }
        for (const struct hold *h = view_owner_holds(v, owner); h; h = h->owner_next)
            listed += places_count(h->n_seats, h->areas, h->n_areas);
        assert_int_equal(listed, held);
        if (owner && e->terms->max_per_owner && !e->stale)
            assert_int_equal(view_owner_places(v, owner), held + booked);
    }
}

/* The terms are those of the view's seq.  A server that follows without a lock may have read later
 * ones: the row of the log that says so is then still to come. */
static void check_terms(const struct event *e, const struct sim_event *stored)
{
    bool found = false;
    for (size_t i = stored->past.n; i-- > 0 && !found;) {
        found = event_terms_equal(e->terms, &stored->past.v[i].terms);
        if (stored->past.v[i].seq <= e->shown.seq)
            break;
    }
    assert_true(found);
    assert_ptr_equal(e->shown.terms, e->terms);
    assert_int_equal(e->shown.max_per_hold, e->terms->max_per_hold);
    assert_int_equal(e->shown.hold_ttl_ms, e->terms->hold_ttl_ms);
    assert_int_equal(e->shown.sales_open_at, e->terms->sales_open_at);
    assert_int_equal(e->shown.sales_end, event_terms_sales_end(e->terms));
}

/* What is shown of the event as a whole, and what best available could choose. */
static void check_counts(const struct fold *f, struct event *e)
{
    struct event_counts shown;
    uint32_t seats[SEAT_BLOCKED + 1] = {0}, found, available;
    int64_t held = 0, booked = 0, blocked = 0;
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        seats[f->seats[i].status]++;
    for (size_t i = 0; i < e->def->areas.n; i++) {
        held += f->areas[i].held;
        booked += f->areas[i].booked;
        blocked += e->areas[i].blocked;
    }
    event_read_counts(e, &shown);
    assert_int_equal(shown.seq, f->seq);
    assert_int_equal(shown.held, seats[SEAT_HELD] + held);
    assert_int_equal(shown.booked, seats[SEAT_BOOKED] + booked);
    assert_int_equal(shown.blocked, seats[SEAT_BLOCKED] + blocked);
    assert_int_equal(shown.available,
                     event_def_capacity(e->def) - shown.held - shown.booked - shown.blocked);
    best_find(e, &(struct best_want){.quantity = 1, .section = -1}, &found, &available);
    assert_int_equal(available, seats[SEAT_AVAILABLE]);
}

void check_deadlines(const struct view *v)
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

void check_event(struct fold *f, const struct sim_ledger *ledger, const struct view *v,
                 struct event *e)
{
    fold_to(f, sim_event(ledger, f->event), e->shown.seq);
    assert_int_equal(e->clock.seq, f->seq);
    assert_true(e->clock.fence >= f->fence);
    assert_true(e->clock.fence <= sim_event(ledger, f->event)->clock.fence);
    assert_memory_equal(&e->clock, &e->draft, sizeof e->clock);
    assert_int_equal(e->shown.status, f->status);
    assert_int_equal(e->status_draft, f->status);
    for (uint32_t i = 0; i < e->def->n_seats; i++)
        check_seat(f, v, e, i);
    for (size_t i = 0; i < e->def->areas.n; i++) {
        assert_int_equal(e->areas[i].held, f->areas[i].held);
        assert_int_equal(e->areas[i].booked, f->areas[i].booked);
        int64_t blocked = check_blocks(&f->areas[i], &e->areas[i].blocks);
        assert_int_equal(e->areas[i].blocked, blocked);
        assert_int_equal(e->areas[i].blocked_shown, blocked);
        assert_int_equal(e->areas[i].booked_shown, f->areas[i].booked);
        assert_int_equal(e->areas[i].available, e->def->areas.v[i].capacity - f->areas[i].held -
                                                    f->areas[i].booked - blocked);
        assert_int_equal(e->areas[i].pending, 0);
    }
    check_counts(f, e);
    check_view_holds(f, ledger, v, e);
    check_owners(f, ledger, v, e);
    check_terms(e, sim_event(ledger, f->event));
    check_view_waits(f, ledger, v, e);
}

void check_view(struct fold *f, const struct sim_ledger *ledger, const struct server *s)
{
    const struct view *v = engine_worker(s->engine, f->event)->view;
    struct event *e = engine_event(s->engine, f->event);
    check_deadlines(v);
    if (e && !e->stale)
        check_event(f, ledger, v, e);
}

bool is_caught_up(const struct fold *f, const struct sim_ledger *ledger, const struct server *s)
{
    const struct event *e = engine_event(s->engine, f->event);
    return e && !e->stale && e->shown.seq == sim_event(ledger, f->event)->clock.seq;
}

void check_caught_up(struct fold *f, const struct sim_ledger *ledger, const struct server *s)
{
    const struct event *e = engine_event(s->engine, f->event);
    assert_non_null(e);
    assert_false(e->stale);
    assert_int_equal(e->shown.seq, sim_event(ledger, f->event)->clock.seq);
    check_view(f, ledger, s);
    assert_true(event_terms_equal(e->terms, &sim_event(ledger, f->event)->def->terms));
}
