/* Selling a hold, and freeing the places of a sale.  See decide.h.  On the worker's thread. */
#include <string.h>

#include "rules/decide_internal.h"

/* Only events that limit their owners count what they have booked. */
void decide_owner_booked(struct decision *d, struct event *e, const struct hold_row *hold,
                         int64_t sign)
{
    uint64_t owner = owner_hash(e, hold->owner, hold->owner_len);
    if (!owner || !e->terms->max_per_owner)
        return;
    const struct owner_change change = {
        .event = e->def->id.key,
        .owner = owner,
        .places = sign * places_count(hold->n_seats, hold->areas, hold->n_areas)};
    view_owner_booked(d->view, change.event, change.owner, change.places);
    *vec_push(&d->owners) = change;
}

void decide_book_places(struct decision *d, struct event *e, struct hold_row *hold,
                        enum seat_status from, enum audit_cause cause)
{
    struct price_reader types = price_reader(hold->prices, hold->n_prices);
    const struct transition booked = {.to = SEAT_BOOKED,
                                      .cause = cause,
                                      .hold = hold->id.key,
                                      .fence = hold->fence,
                                      .channel = hold->channel,
                                      .types = e->terms->types.n ? &types : NULL};
    change_seats(d, e, hold->seats, hold->n_seats, &booked);
    change_areas(d, e, hold->areas, hold->n_areas, from, &booked);
    for (uint32_t i = 0; i < hold->n_seats; i++)
        *vec_push(&d->batch.sales) = (struct sale_write){
            .seat = SEAT_KEY(hold->event, hold->seats[i]), .booking = hold->id.key};
    hold->status = HOLD_CONFIRMED;
    decide_owner_booked(d, e, hold, 1);
}

void decide_free_places(struct decision *d, struct event *e, const struct hold_row *hold,
                        enum audit_cause cause)
{
    const struct transition freed = {.to = SEAT_AVAILABLE,
                                     .cause = cause,
                                     .hold = hold->id.key,
                                     .fence = hold->fence,
                                     .channel = hold->channel};
    change_seats(d, e, hold->seats, hold->n_seats, &freed);
    change_areas(d, e, hold->areas, hold->n_areas, SEAT_BOOKED, &freed);
    for (uint32_t i = 0; i < hold->n_seats; i++)
        *vec_push(&d->batch.sales_undone) = (struct sale_write){
            .seat = SEAT_KEY(hold->event, hold->seats[i]), .booking = hold->id.key};
    decide_owner_booked(d, e, hold, -1);
}

struct booking_row decide_new_booking(struct decision *d, const struct hold_row *hold,
                                      enum booking_status status)
{
    struct booking_row booking = {
        .id.key = hold->id.key,
        .event = hold->event,
        .fence = hold->fence,
        .amount = hold->amount,
        .created_at = d->now,
        .status = status,
        .expires_at = hold->expires_at,
        .seats = hold->seats,
        .n_seats = hold->n_seats,
        .areas = hold->areas,
        .n_areas = hold->n_areas,
        .prices = hold->prices,
        .n_prices = hold->n_prices,
        .owner = hold->owner,
        .owner_len = hold->owner_len,
    };
    random_bytes(d->random, booking.id.secret, ID_SECRET_SIZE);
    memcpy(booking.hold_secret, hold->id.secret, ID_SECRET_SIZE);
    booking.number = 1 + (int64_t)random_below(d->random, ORDER_NUMBER_MAX);
    return booking;
}

/* Makes the booking, which takes the place of one that failed.  `from` is what the places are now.
 * The log has the row of the booking between those of the hold and of its places. */
static enum verdict sell(struct decision *d, struct event *e, struct hold_confirm *op,
                         enum seat_status from, enum audit_cause cause)
{
    struct hold_row *hold = &op->hold.row;
    if (op->booking.id.key)
        *vec_push(&d->batch.bookings_past) = op->booking.id.key;
    booking_row_close(&op->booking);
    op->booking = decide_new_booking(d, hold, BOOKING_CONFIRMED);
    op->booking.reference = op->reference;
    op->booking.reference_len = op->reference_len;
    *vec_push(&d->batch.bookings_new) = op->booking;
    struct audit_row *row = change_log(d, e, AUDIT_BOOKING, cause, BOOKING_NONE, BOOKING_CONFIRMED);
    row->hold = row->booking = hold->id.key;
    row->fence = hold->fence;
    row->quantity = places_count(hold->n_seats, hold->areas, hold->n_areas);
    decide_book_places(d, e, hold, from, cause);
    decide_notify(d, e, NOTICE_BOOKING_CONFIRMED, hold->id.key, 0, 0);
    return VERDICT_CREATED;
}

static bool places_are_free(struct decision *d, struct event *e, const struct hold_row *hold)
{
    decide_expire_owners(d, e, hold->seats, hold->n_seats);
    for (uint32_t i = 0; i < hold->n_seats; i++)
        if (!seat_is_free(&e->seats[hold->seats[i]], hold->channel))
            return false;
    for (uint32_t i = 0; i < hold->n_areas; i++)
        if (!decide_area_has(d, e, &hold->areas[i], hold->channel))
            return false;
    return true;
}

enum verdict decide_check_revival(struct decision *d, struct event *e, const struct hold_row *hold,
                                  struct shortage *s)
{
    enum verdict verdict;
    do {
        verdict = VERDICT_HOLD_EXPIRED;
        if (places_are_free(d, e, hold))
            verdict =
                decide_check_limits(d, e, 0, owner_hash(e, hold->owner, hold->owner_len),
                                    places_count(hold->n_seats, hold->areas, hold->n_areas), s);
    } while (decide_again(d, e, &verdict));
    return verdict;
}

void decide_revive(struct decision *d, struct event *e, struct hold_row *hold, struct hold *h)
{
    int64_t fence_before = hold->fence, seq_before = hold->last_seq;
    hold->fence = ++e->draft.fence;
    if (h) {
        change_hold(d, h, HOLD_CONFIRMED, CAUSE_RESCUE, hold->fence, h->expires_at);
    } else {
        change_log_hold(d, e, hold, CAUSE_RESCUE, HOLD_EXPIRED, HOLD_CONFIRMED);
        *vec_push(&d->batch.holds) = (struct hold_write){.hold = hold->id.key,
                                                         .fence_before = fence_before,
                                                         .fence = hold->fence,
                                                         .expires_at = hold->expires_at,
                                                         .seq_before = seq_before,
                                                         .last_seq = hold->last_seq,
                                                         .from = HOLD_EXPIRED,
                                                         .to = HOLD_CONFIRMED};
    }
    *vec_push(&d->unreadable) = hold->id.key;
}

/* Sells an expired hold after all if that is still possible: it gets a new fence and is sold at
 * once.  `h` is its entry if it expired in this batch, else NULL. */
static enum verdict rescue(struct decision *d, struct event *e, struct hold_confirm *op,
                           struct hold *h)
{
    enum verdict verdict = decide_check_revival(d, e, &op->hold.row, &op->shortage);
    if (verdict != VERDICT_OK)
        return verdict;
    decide_revive(d, e, &op->hold.row, h);
    return sell(d, e, op, SEAT_AVAILABLE, CAUSE_RESCUE);
}

bool decide_owns_seats(const struct hold *h)
{
    for (uint32_t i = 0; i < h->n_seats; i++)
        if (seat_hold(h->event, h->seats[i]) != h->key)
            return false;
    return true;
}

enum verdict decide_sell(struct decision *d, struct event *e, struct hold_confirm *op,
                         struct hold *h)
{
    if (!decide_owns_seats(h))
        return VERDICT_SEAT_SOLD;
    change_hold(d, h, HOLD_CONFIRMED, CAUSE_CONFIRM, h->fence, h->expires_at);
    enum verdict verdict = sell(d, e, op, SEAT_HELD, CAUSE_CONFIRM);
    if (h->wait)
        decide_wait_of_hold(d, h, CAUSE_CONFIRM);
    return verdict;
}

/* May the booking have been asked for with this fence?  A rescue gives the hold a new one, so the
 * fences that the hold had before stay good for asking about a rescue again. */
static bool fence_fits(const struct hold_confirm *op)
{
    const struct hold_row *hold = &op->hold.row;
    bool is_rescued = op->booking.created_at >= hold->expires_at;
    return op->fence == hold->fence ||
           (is_rescued && op->fence >= HOLD_FIRST_FENCE(hold->id.key) && op->fence < hold->fence);
}

/* Is the repeated confirmation about the booking that exists?  A confirmation without a reference
 * contradicts none. */
static enum verdict check_repeat(const struct hold_confirm *op)
{
    const struct booking_row *booking = &op->booking;
    if (!fence_fits(op))
        return VERDICT_STALE_FENCE;
    if (op->reference && (!booking->reference || op->reference_len != booking->reference_len ||
                          memcmp(op->reference, booking->reference, op->reference_len) != 0))
        return VERDICT_REFERENCE_MISMATCH;
    return VERDICT_OK;
}

enum verdict decide_confirm(struct decision *d, struct event *e, struct hold_confirm *op)
{
    struct hold *h;
    enum verdict verdict = decide_find_hold(d, &op->hold, &h);
    if (verdict != VERDICT_OK)
        return verdict;
    const struct hold_row *hold = &op->hold.row;
    enum hold_status status = hold->status;
    if (status == HOLD_RELEASED || (status == HOLD_EXPIRED && !op->rescue))
        return decide_refusal_of(status);
    if (op->booking.status == BOOKING_PENDING)
        return VERDICT_BOOKING_EXISTS; /* its money decides, also about a hold that has expired */
    if (status == HOLD_CONFIRMED)
        return check_repeat(op);
    if (e->status_draft == EVENT_CANCELLED)
        return VERDICT_EVENT_CANCELLED;
    if (op->fence != hold->fence)
        return VERDICT_STALE_FENCE;
    if (status == HOLD_EXPIRED && op->booking.status == BOOKING_CANCELLED)
        return VERDICT_HOLD_EXPIRED; /* the seller has taken this sale back */
    if (status == HOLD_EXPIRED)
        return rescue(d, e, op, h);
    if (!h) /* live in the ledger and unknown to the view: a damaged row, which it did not load */
        return VERDICT_INTERNAL;
    return decide_sell(d, e, op, h);
}
