/* Compares the tables of one event with each other and with the folded log.  Pure: verify.c feeds
 * it row by row, and it writes only to the report.  Checks I1 to I3, I5, I6 and I11. */
#include "ledger/verify_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ledger/number_list.h"

/* ---- the areas ---- */

static void check_blocks(struct event_state *e, size_t area)
{
    for (size_t i = 0; i < e->areas.v[area].blocks.n; i++) {
        const struct block_state *b = &e->areas.v[area].blocks.v[i];
        if (b->places != b->log_places)
            verify_violation(e->report, VERIFY_FOLD_AREAS,
                             "event %lld, area %zu: %lld places blocked for channel %u, by the log "
                             "%lld",
                             (ll)e->event, area, (ll)b->places, b->channel, (ll)b->log_places);
    }
}

/* What was held, booked and blocked when the log was pruned is not known. */
void verify_areas(struct event_state *e)
{
    for (size_t i = 0; i < e->areas.n; i++) {
        const struct area_state *a = &e->areas.v[i];
        verify_count(e, VERIFY_AREA_COUNTERS);
        verify_count(e, VERIFY_FOLD_AREAS);
        if (a->held != a->claimed_held || a->booked != a->claimed_booked)
            verify_violation(e->report, VERIFY_AREA_COUNTERS,
                             "event %lld, area %zu: %lld held and %lld booked, by its holds %lld "
                             "and %lld",
                             (ll)e->event, i, (ll)a->held, (ll)a->booked, (ll)a->claimed_held,
                             (ll)a->claimed_booked);
        if (e->pruned_seq)
            continue;
        check_blocks(e, i);
        if (a->held != a->log_held || a->booked != a->log_booked)
            verify_violation(e->report, VERIFY_FOLD_AREAS,
                             "event %lld, area %zu: %lld held and %lld booked, by the log %lld and "
                             "%lld",
                             (ll)e->event, i, (ll)a->held, (ll)a->booked, (ll)a->log_held,
                             (ll)a->log_booked);
    }
}

/* ---- prices ---- */

/* Reads a list of prices into e->prices.  Returns false if it is damaged. */
static bool read_prices(struct event_state *e, const struct stored_prices *row)
{
    uint32_t n = 0;
    vec_clear(&e->prices);
    while (e->prices.cap <= row->list_len / 4)
        vec_push(&e->prices);
    if (!price_list_parse(row->list, row->list_len, e->prices.v, &n))
        return false;
    e->prices.n = n;
    return true;
}

/* Sums up e->prices.  Returns false if a run has no places or the sum is too large for any amount.
 */
static bool add_prices(const struct event_state *e, int64_t *ret_sum, int64_t *ret_places)
{
    *ret_sum = *ret_places = 0;
    for (size_t i = 0; i < e->prices.n; i++) {
        const struct price_run *run = &e->prices.v[i];
        int64_t cost;
        if (!run->n || __builtin_mul_overflow(run->price, run->n, &cost) ||
            __builtin_add_overflow(*ret_sum, cost, ret_sum))
            return false;
        *ret_places += run->n;
    }
    return true;
}

/* If the list is empty, it is not known what the places cost.  Holds that ended before schema
 * version 5 have no list whatever they cost, so only live ones must be shared out. */
void verify_prices(struct event_state *e, const struct hold_state *h,
                   const struct stored_prices *row)
{
    int64_t sum, places;
    verify_count(e, VERIFY_PRICES);
    if (row->booked != row->amount)
        verify_violation(e->report, VERIFY_PRICES, "hold %lld: it costs %lld, its booking %lld",
                         (ll)h->key, (ll)row->amount, (ll)row->booked);
    if (!row->list && h->status == HOLD_ACTIVE && row->places && row->amount % row->places)
        verify_violation(e->report, VERIFY_PRICES,
                         "hold %lld: its %lld places cannot all cost the same if it costs %lld",
                         (ll)h->key, (ll)row->places, (ll)row->amount);
    if (!row->list)
        return;
    if (!read_prices(e, row) || !add_prices(e, &sum, &places)) {
        verify_violation(e->report, VERIFY_PRICES, "hold %lld: its list of prices is damaged",
                         (ll)h->key);
        return;
    }
    for (size_t i = 0; i < e->prices.n; i++)
        verify_type(e, "hold", h->key, e->prices.v[i].type);
    if (e->prices.n && (sum != row->amount || places != row->places))
        verify_violation(e->report, VERIFY_PRICES,
                         "hold %lld: it costs %lld for %lld places, by their prices %lld for %lld",
                         (ll)h->key, (ll)row->amount, (ll)row->places, (ll)sum, (ll)places);
}

/* ---- the seats ---- */

void verify_heads(struct event_state *e, int64_t key, int64_t seq, const uint8_t *heads, size_t len)
{
    uint32_t first = SEAT_INDEX(key), n = (uint32_t)(len / HEAD_SIZE);
    if (first % HEADS_CHUNK || first >= e->n_seats || n > e->n_seats - first || n > HEADS_CHUNK ||
        len % HEAD_SIZE || seq < 0 || seq > e->clock.seq) {
        verify_violation(e->report, VERIFY_HEADS,
                         "event %lld, seat %u: %zu bytes of heads at seq %lld, of %lld",
                         (ll)e->event, first, len, (ll)seq, (ll)e->clock.seq);
        return;
    }
    while (e->heads_seqs.n <= first / HEADS_CHUNK)
        vec_push(&e->heads_seqs);
    e->heads_seqs.v[first / HEADS_CHUNK] = seq;
    for (uint32_t i = 0; i < n; i++)
        e->seats[first + i].head = head_unpack(heads + (size_t)i * HEAD_SIZE);
}

/* A head may name a row that has been pruned. */
static void check_head(struct event_state *e, uint32_t index)
{
    const struct seat_state *s = &e->seats[index];
    verify_count(e, VERIFY_HEADS);
    if (s->head != s->head_seq && !verify_is_pruned(e, s->head_seq, s->head))
        verify_violation(e->report, VERIFY_HEADS,
                         "event %lld, seat %u: its stored head is %lld, by the log %lld",
                         (ll)e->event, index, (ll)s->head, (ll)s->head_seq);
}

/* Reports a hold to HOLD_STATUS, unless that has been done. */
__attribute__((format(printf, 3, 4))) static void
report_hold(struct event_state *e, struct hold_state *h, const char *fmt, ...)
{
    char what[VERIFY_EXAMPLE_SIZE - 48];
    va_list args;
    if (!h || h->reported)
        return;
    h->reported = true;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    verify_violation(e->report, VERIFY_HOLD_STATUS, "hold %lld: %s", (ll)h->key, what);
}

static void check_owner(struct event_state *e, uint32_t index, int status, int64_t hold)
{
    const struct seat_state *s = &e->seats[index];
    struct hold_state *h = verify_hold(e, hold);
    int wanted = status == SEAT_HELD ? HOLD_ACTIVE : HOLD_CONFIRMED;
    if (!h) {
        verify_violation(e->report, VERIFY_SEAT_OWNER,
                         "event %lld, seat %u: hold %lld does not exist", (ll)e->event, index,
                         (ll)hold);
    } else if (h->status != wanted) {
        verify_violation(e->report, VERIFY_SEAT_OWNER,
                         "event %lld, seat %u: %s by hold %lld, which is %s", (ll)e->event, index,
                         word(AUDIT_SEAT, status), (ll)hold, word(AUDIT_HOLD, h->status));
        report_hold(e, h, "it is %s and has seat %u, which is %s", word(AUDIT_HOLD, h->status),
                    index, word(AUDIT_SEAT, status));
    } else if (s->claim != hold) {
        verify_violation(e->report, VERIFY_SEAT_OWNER,
                         "event %lld, seat %u: hold %lld does not list it", (ll)e->event, index,
                         (ll)hold);
    }
}

static void check_sale(struct event_state *e, uint32_t index, int status, int64_t hold)
{
    const struct seat_state *s = &e->seats[index];
    bool booked = status == SEAT_BOOKED;
    if (!booked && !s->sold)
        return;
    const struct hold_state *h = verify_hold(e, s->sold);
    verify_count(e, VERIFY_SALES);
    if (!s->sold || !booked || s->sold != hold)
        verify_violation(e->report, VERIFY_SALES,
                         "event %lld, seat %u: %s by hold %lld, sold by booking %lld", (ll)e->event,
                         index, word(AUDIT_SEAT, status), (ll)hold, (ll)s->sold);
    else if (!h || !h->booking || !hold_live(h))
        verify_violation(e->report, VERIFY_SALES,
                         "event %lld, seat %u: sold by booking %lld, which is %s", (ll)e->event,
                         index, (ll)s->sold, h ? word(AUDIT_BOOKING, h->booking) : "not there");
}

/* The live hold that lists the seat must own it. */
static void check_claim(struct event_state *e, uint32_t index, int status, int64_t hold)
{
    int64_t claim = e->seats[index].claim;
    struct hold_state *h = claim ? verify_hold(e, claim) : NULL;
    if (!h)
        return;
    int wanted = h->status == HOLD_ACTIVE ? SEAT_HELD : SEAT_BOOKED;
    if (status != wanted || hold != claim)
        report_hold(e, h, "it is %s, but its seat %u is %s by hold %lld",
                    word(AUDIT_HOLD, h->status), index, word(AUDIT_SEAT, status), (ll)hold);
}

/* A seat that is blocked for a channel is held if a live hold of that channel lists it. */
static bool is_held_in_channel(struct event_state *e, const struct stored_seat *row, int64_t claim)
{
    const struct hold_state *h = claim ? verify_hold(e, claim) : NULL;
    return row->status == SEAT_BLOCKED && row->channel && h && h->status == HOLD_ACTIVE &&
           h->channel == row->channel;
}

/* What the log does not tell, since it has been pruned, is as the rows have it. */
static void adopt_rows(struct seat_state *s, int status, int64_t hold,
                       const struct stored_seat *row)
{
    if (s->status == NOT_KNOWN) {
        s->status = (uint8_t)status;
        s->hold = hold;
    }
    if (s->channel == NOT_KNOWN)
        s->channel = row->channel;
    if (s->row_fence == FENCE_NOT_KNOWN)
        s->row_fence = row->fence;
}

/* Is the row the one that a seat has which is as the log says? */
static bool row_is_right(const struct seat_state *s, const struct stored_seat *row)
{
    return row->status == seat_row_status((enum seat_status)s->status, s->channel) &&
           row->status != SEAT_AVAILABLE && row->channel == s->channel &&
           row->hold == (row->status == SEAT_BOOKED ? s->hold : 0) && row->fence == s->row_fence;
}

void verify_seat(struct event_state *e, const struct stored_seat *row)
{
    uint32_t index = SEAT_INDEX(row->key);
    int status = row->status;
    int64_t hold = row->hold;
    verify_count(e, VERIFY_SEAT_OWNER);
    verify_count(e, VERIFY_FOLD_SEATS);
    verify_count(e, VERIFY_FENCE_CLOCK);
    if (row->fence > e->clock.fence)
        verify_violation(e->report, VERIFY_FENCE_CLOCK,
                         "event %lld, seat %u: fence %lld, the clock's is %lld", (ll)e->event,
                         index, (ll)row->fence, (ll)e->clock.fence);
    if (index >= e->n_seats) {
        verify_violation(e->report, VERIFY_STRAYS, "event %lld has %u seats, and a row for seat %u",
                         (ll)e->event, e->n_seats, index);
        return;
    }
    struct seat_state *s = &e->seats[index];
    s->seen = true;
    if (is_held_in_channel(e, row, s->claim)) {
        status = SEAT_HELD;
        hold = s->claim;
    }
    adopt_rows(s, status, hold, row);
    verify_channel(e, "seat", index, row->channel);
    if (status != s->status || hold != s->hold || !row_is_right(s, row))
        verify_violation(e->report, VERIFY_FOLD_SEATS,
                         "event %lld, seat %u: its row says %s by hold %lld, fence %lld, channel "
                         "%u; the log says %s by hold %lld, fence %lld, channel %u",
                         (ll)e->event, index, word(AUDIT_SEAT, row->status), (ll)row->hold,
                         (ll)row->fence, row->channel, word(AUDIT_SEAT, s->status), (ll)s->hold,
                         (ll)s->row_fence, s->channel);
    if (is_owned(status))
        check_owner(e, index, status, hold);
    check_sale(e, index, status, hold);
    check_claim(e, index, status, hold);
}

/* A seat without a row is held if a live hold lists it, else available.  It is of no channel. */
static void check_no_row(struct event_state *e, uint32_t index)
{
    static const struct stored_seat no_row = {0};
    struct seat_state *s = &e->seats[index];
    const struct hold_state *h = s->claim ? verify_hold(e, s->claim) : NULL;
    bool held = h && h->status == HOLD_ACTIVE;
    int status = held ? SEAT_HELD : SEAT_AVAILABLE;
    int64_t hold = held ? s->claim : 0;
    adopt_rows(s, status, hold, &no_row);
    verify_count(e, VERIFY_SEAT_OWNER);
    verify_count(e, VERIFY_FOLD_SEATS);
    if (s->status != status || s->hold != hold || s->channel)
        verify_violation(e->report, VERIFY_FOLD_SEATS,
                         "event %lld, seat %u: it has no row, and is %s by hold %lld; "
                         "the log says %s by hold %lld, channel %u",
                         (ll)e->event, index, word(AUDIT_SEAT, status), (ll)hold,
                         word(AUDIT_SEAT, s->status), (ll)s->hold, s->channel);
    if (s->status == SEAT_HELD)
        check_owner(e, index, SEAT_HELD, s->hold);
    check_sale(e, index, status, hold);
    check_claim(e, index, status, hold);
}

void verify_seats_end(struct event_state *e)
{
    for (uint32_t i = 0; i < e->n_seats; i++) {
        check_head(e, i);
        if (!e->seats[i].seen)
            check_no_row(e, i);
    }
}

/* ---- holds and bookings ---- */

/* What the log does not tell, since it has been pruned, is as the rows have it. */
static void adopt_booking(struct event_state *e, struct hold_state *h)
{
    if (!e->pruned_seq || h->begun)
        return;
    if (!h->log_booking) {
        h->log_booking = h->booking;
        h->log_booking_fence = h->log_payment = FENCE_NOT_KNOWN;
        if ((h->booking == BOOKING_CANCELLED) == (h->cancelled > 0))
            h->log_cancelled = h->cancelled;
    }
    if (h->log_booking_fence == FENCE_NOT_KNOWN)
        h->log_booking_fence = h->booking_fence;
    if (h->log_payment == FENCE_NOT_KNOWN)
        h->log_payment = h->payment;
}

/* Can the hold and its booking be like this together?  A pending booking keeps its hold's end to
 * itself until its intent is decided.  Money of a wrong amount that a capture brought frees the
 * places again, so the hold stays confirmed while the money goes back. */
static bool booking_fits(const struct hold_state *h)
{
    bool sold = h->status == HOLD_CONFIRMED;
    switch (h->booking) {
    case BOOKING_NONE:
        return !sold;
    case BOOKING_PENDING:
        return sold ? h->payment_status == PAYMENT_CAPTURING ||
                          h->payment_status >= PAYMENT_REFUNDING
                    : h->payment_status != PAYMENT_CAPTURING;
    case BOOKING_CONFIRMED:
        return sold;
    case BOOKING_FAILED:
        return true;
    case BOOKING_CANCELLED:
        return sold || (h->payment && h->status != HOLD_ACTIVE);
    default:
        return false;
    }
}

static void check_booking(struct event_state *e, struct hold_state *h)
{
    adopt_booking(e, h);
    if (h->booking || h->log_booking)
        verify_count(e, VERIFY_FOLD_BOOKINGS);
    if (h->booking != h->log_booking || h->booking_fence != h->log_booking_fence)
        verify_violation(e->report, VERIFY_FOLD_BOOKINGS,
                         "booking %lld: it is %s, fence %lld; the log says %s, fence %lld",
                         (ll)h->key, word(AUDIT_BOOKING, h->booking), (ll)h->booking_fence,
                         word(AUDIT_BOOKING, h->log_booking), (ll)h->log_booking_fence);
    if (h->payment != h->log_payment)
        verify_violation(e->report, VERIFY_FOLD_BOOKINGS,
                         "booking %lld: it has another payment than the log says", (ll)h->key);
    if (h->cancelled != h->log_cancelled)
        verify_violation(e->report, VERIFY_FOLD_BOOKINGS,
                         "booking %lld: it was cancelled at another time than the log says",
                         (ll)h->key);
    if (!booking_fits(h))
        report_hold(e, h, "it is %s, but its booking is %s, with a payment that is %s",
                    word(AUDIT_HOLD, h->status), word(AUDIT_BOOKING, h->booking),
                    word(AUDIT_PAYMENT, h->payment_status));
}

static void check_places(struct event_state *e, struct hold_state *h)
{
    if (h->log_granted != h->n_seats)
        verify_violation(e->report, VERIFY_HOLD_SEATS,
                         "hold %lld: lists %u seats, was granted %u by the log", (ll)h->key,
                         h->n_seats, h->log_granted);
    else if (h->ungranted)
        verify_violation(e->report, VERIFY_HOLD_SEATS,
                         "hold %lld: lists other places than it was granted by the log",
                         (ll)h->key);
    else if (h->mistyped)
        verify_violation(e->report, VERIFY_FOLD_HOLDS,
                         "hold %lld: its places are of other ticket types than by the log",
                         (ll)h->key);
    if (h->astray)
        verify_violation(e->report, VERIFY_FOLD_HOLDS,
                         "hold %lld: it is %s, but not so by the log of its areas", (ll)h->key,
                         word(AUDIT_HOLD, h->status));
}

/* The carrier of a merged hold has had a booking ever since, and is not merged itself. */
static void check_merged(struct event_state *e, const struct hold_state *h)
{
    if (!h->booked_with)
        return;
    const struct hold_state *carrier = verify_hold(e, h->booked_with);
    verify_count(e, VERIFY_MERGED);
    if (h->status != HOLD_RELEASED || !carrier || !carrier->booking || carrier->booked_with)
        verify_violation(e->report, VERIFY_MERGED,
                         "hold %lld: it is %s, and was booked with hold %lld, which is %s and has "
                         "%s booking",
                         (ll)h->key, word(AUDIT_HOLD, h->status), (ll)h->booked_with,
                         !carrier               ? "not one of its event"
                         : carrier->booked_with ? "merged itself"
                                                : word(AUDIT_HOLD, carrier->status),
                         carrier && carrier->booking ? "a" : "no");
}

/* Takes from a hold's row what the rest of the log does not tell. */
static void adopt_pruned(struct event_state *e, struct hold_state *h)
{
    if (h->log_status == NOT_KNOWN) {
        h->log_status = h->status;
        h->log_fence = h->fence;
    }
    if (h->log_seq || h->last_seq > e->pruned_seq)
        return;
    h->log_status = h->status;
    h->log_fence = h->fence;
    h->log_until = h->expires_at;
    h->log_seq = h->last_seq;
}

static void check_hold(struct event_state *e, struct hold_state *h)
{
    if (e->pruned_seq)
        adopt_pruned(e, h);
    verify_count(e, VERIFY_HOLD_STATUS);
    verify_count(e, VERIFY_FOLD_HOLDS);
    verify_count(e, VERIFY_FENCE_SHARED);
    verify_count(e, VERIFY_FENCE_CLOCK);
    if (h->fence > e->clock.fence)
        verify_violation(e->report, VERIFY_FENCE_CLOCK,
                         "hold %lld: fence %lld, the clock's is %lld", (ll)h->key, (ll)h->fence,
                         (ll)e->clock.fence);
    if (h->status != h->log_status || h->fence != h->log_fence || h->expires_at != h->log_until ||
        h->last_seq != h->log_seq)
        verify_violation(e->report, VERIFY_FOLD_HOLDS,
                         "hold %lld: it is %s, fence %lld, until %lld, seq %lld; the log says %s, "
                         "fence %lld, until %lld, seq %lld",
                         (ll)h->key, word(AUDIT_HOLD, h->status), (ll)h->fence, (ll)h->expires_at,
                         (ll)h->last_seq, word(AUDIT_HOLD, h->log_status), (ll)h->log_fence,
                         (ll)h->log_until, (ll)h->log_seq);
    if (h->begun || !e->pruned_seq)
        check_places(e, h);
    if (h->status < HOLD_ACTIVE || h->status > HOLD_CONFIRMED)
        report_hold(e, h, "its status %d is none", h->status);
    check_booking(e, h);
    check_merged(e, h);
    if (h->fence != HOLD_FIRST_FENCE(h->key))
        *vec_push(&e->later_fences) = h->fence;
}

static int fence_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* First fences differ because keys do.  So only fences that were given later have to be
 * checked. */
static void check_shared(struct event_state *e)
{
    if (e->later_fences.n > 1)
        qsort(e->later_fences.v, e->later_fences.n, sizeof *e->later_fences.v, fence_order);
    for (size_t i = 0; i < e->later_fences.n; i++) {
        int64_t fence = e->later_fences.v[i];
        bool twice = i && e->later_fences.v[i - 1] == fence;
        int64_t key = HOLD_KEY(e->event, fence);
        if (twice || fence <= 0 || verify_hold(e, key) || verify_wait(e, key))
            verify_violation(e->report, VERIFY_FENCE_SHARED, "event %lld: fence %lld has two holds",
                             (ll)e->event, (ll)fence);
    }
}

void verify_holds(struct event_state *e)
{
    for (size_t i = 0; i < e->holds.n; i++)
        check_hold(e, &e->holds.v[i]);
    check_shared(e);
}
