/* What buyers and sellers do with bookings that are paid: making them, refunds, cancelling.  See
 * decide.h.  On the worker's thread. */
#include <string.h>

#include "rules/decide_money.h"

#define TIME_TO_PAY_MS 60000 /* a buyer needs this long, or a quarter of the event's TTL */

/* ---- making a booking ---- */

static enum verdict check_book(struct decision *d, struct event *e, struct booking_create *op,
                               const struct hold *h, int64_t *ret_expires_at)
{
    const struct hold_row *hold = &op->hold.row;
    if (op->amount_min < 0)
        return VERDICT_PAYMENTS_OFF;
    if (hold->amount < op->amount_min)
        return VERDICT_AMOUNT_TOO_SMALL;
    if (op->money.payments.n >= BOOKINGS_PER_HOLD_MAX)
        return VERDICT_TOO_MANY_BOOKINGS;
    int64_t needed_ms = min64(TIME_TO_PAY_MS, e->terms->hold_ttl_ms / 4);
    int64_t expires_at = min64(d->now + e->terms->hold_ttl_ms, h->max_expires_at);
    *ret_expires_at = expires_at > h->expires_at ? expires_at : h->expires_at;
    return *ret_expires_at - d->now < needed_ms ? VERDICT_RENEWAL_CAP : VERDICT_OK;
}

/* What costs nothing is sold at once. */
static enum verdict sell_free(struct decision *d, struct event *e, struct booking_create *op)
{
    struct hold_confirm confirm = {.hold = op->hold,
                                   .fence = op->hold.row.fence,
                                   .reference = op->reference,
                                   .reference_len = op->reference_len,
                                   .booking = op->booking};
    enum verdict verdict = decide_confirm(d, e, &confirm);
    op->hold = confirm.hold;
    op->booking = confirm.booking;
    return verdict;
}

static void new_payment(struct decision *d, struct event *e, struct booking_create *op)
{
    struct payment_row *p = &op->payment;
    *p = (struct payment_row){.id.key = op->hold.row.id.key,
                              .payment = money_number(e),
                              .amount = op->hold.row.amount,
                              .created_at = d->now,
                              .updated_at = d->now,
                              .status = PAYMENT_CREATING,
                              .captures_by_hand = op->captures_by_hand};
    random_bytes(d->random, p->id.secret, ID_SECRET_SIZE);
    memcpy(p->currency, e->def->currency, sizeof p->currency);
    p->poll_at =
        payment_poll_at(p, &(struct payment_balance){0}, op->hold.row.expires_at, true, d->now);
    *vec_push(&d->batch.payments_new) = *p;
    struct job_row *job = money_put_job(d, JOB_CREATE, p->id.key, p->payment);
    job->payment_no = p->payment;
    job->amount = p->amount;
    job->leased_until = d->job_lease_ms ? d->now + d->job_lease_ms : 0;
    job->payment = p->id;
    memcpy(job->currency, p->currency, sizeof job->currency);
    if (op->email && op->email_len < sizeof job->email)
        memcpy(job->email, op->email, op->email_len);
    job->booked_at = d->now;
    job->hold_expires_at = op->hold.row.expires_at;
    job->payment_status = p->status;
    job->captures_by_hand = p->captures_by_hand;
}

enum verdict decide_book(struct decision *d, struct event *e, struct booking_create *op)
{
    struct hold *h;
    struct hold_row *hold = &op->hold.row;
    int64_t expires_at = 0;
    enum verdict verdict = decide_find_hold(d, &op->hold, &h);
    if (verdict != VERDICT_OK)
        return verdict;
    if (hold->status == HOLD_CONFIRMED || op->booking.status == BOOKING_PENDING)
        return VERDICT_BOOKING_EXISTS;
    if (hold->status != HOLD_ACTIVE)
        return decide_refusal_of(hold->status);
    if (e->status_draft == EVENT_CANCELLED)
        return VERDICT_EVENT_CANCELLED;
    if (!h)
        return VERDICT_INTERNAL;
    if (hold->amount == 0)
        return sell_free(d, e, op);
    if ((verdict = check_book(d, e, op, h, &expires_at)) != VERDICT_OK)
        return verdict;
    if (expires_at > h->expires_at)
        decide_extend(d, h, expires_at);
    hold->expires_at = h->expires_at;
    hold->last_seq = h->last_seq;
    new_payment(d, e, op);
    if (op->booking.id.key)
        *vec_push(&d->batch.bookings_past) = op->booking.id.key;
    booking_row_close(&op->booking);
    op->booking = decide_new_booking(d, hold, BOOKING_PENDING);
    op->booking.reference = op->reference;
    op->booking.reference_len = op->reference_len;
    op->booking.email = op->email;
    op->booking.email_len = op->email_len;
    op->booking.payment = op->payment.payment;
    *vec_push(&d->batch.bookings_new) = op->booking;
    struct audit_row *row =
        change_log_money(d, e, hold, h, AUDIT_BOOKING, CAUSE_BOOK, BOOKING_NONE, BOOKING_PENDING);
    row->fence = HOLD_FIRST_FENCE(op->payment.payment);
    row->quantity = places_count(hold->n_seats, hold->areas, hold->n_areas);
    change_hold_payment(d, h, op->payment.payment);
    *vec_push(&d->unreadable) = hold->id.key;
    return VERDICT_CREATED;
}

/* ---- what sellers do ---- */

/* The current payment of the booking, or NULL. */
static struct payment_row *current_payment(const struct booking_row *booking, struct money *money)
{
    for (size_t i = 0; i < money->payments.n; i++)
        if (money->payments.v[i].payment == booking->payment)
            return &money->payments.v[i];
    return NULL;
}

enum verdict decide_refund(struct decision *d, struct event *e, struct booking_refund *op)
{
    struct booking_row *booking = &op->booking;
    if (!booking->id.key || !id_secret_equal(booking->id.secret, op->id.secret))
        return VERDICT_NO_SUCH_BOOKING;
    if (decide_is_unreadable(d, booking->id.key))
        return VERDICT_DEFERRED;
    struct payment_row *p = current_payment(booking, &op->money);
    struct payment_balance b = {0};
    if (p)
        b = payment_balance(p, op->money.refunds.v, op->money.refunds.n);
    op->available = b.received - b.returned - b.owed;
    int64_t amount = op->amount ? op->amount : op->available;
    if (amount <= 0 || amount > op->available || op->money.refunds.n >= REFUNDS_MAX)
        return VERDICT_NOT_REFUNDABLE;
    struct payment_view v = {.event = e,
                             .hold = &op->hold.row,
                             .h = view_hold(d->view, op->hold.id.key),
                             .booking = booking,
                             .payment = p,
                             .money = &op->money,
                             .status_before = p->status,
                             .fence_before = e->draft.fence,
                             .cause = CAUSE_REFUND};
    money_owe_refund(d, &v, amount, d->now);
    money_settle(d, &v);
    return VERDICT_OK;
}

/* Are the places those of the booking?  A pending one has them from the authorization of its card
 * to the capture: one whose capture brought a wrong amount has given them back. */
static bool has_places(const struct payment_view *v)
{
    return v->booking->status == BOOKING_CONFIRMED ||
           (v->payment && v->payment->status == PAYMENT_CAPTURING);
}

/* Ends the hold of a pending booking, or frees the places of one that has them. */
static void free_booking(struct decision *d, struct payment_view *v, bool frees)
{
    if (v->hold->status == HOLD_CONFIRMED) {
        if (frees)
            decide_free_places(d, v->event, v->hold, CAUSE_CANCEL);
    } else if (v->h && v->h->status == HOLD_ACTIVE) {
        change_hold_payment(d, v->h, 0); /* money_settle owes the cancel, once */
        decide_end_hold(d, v->h, HOLD_RELEASED, CAUSE_CANCEL);
        v->hold->status = HOLD_RELEASED;
        v->hold->last_seq = v->h->last_seq;
    }
}

enum verdict decide_cancel(struct decision *d, struct event *e, struct booking_cancel *op)
{
    struct booking_row *booking = &op->booking;
    struct hold *h = view_hold(d->view, op->hold.id.key);
    if (!booking->id.key || !id_secret_equal(booking->id.secret, op->id.secret))
        return VERDICT_NO_SUCH_BOOKING;
    if (decide_is_unreadable(d, booking->id.key))
        return VERDICT_DEFERRED;
    if (booking->status == BOOKING_CANCELLED || booking->status == BOOKING_FAILED)
        return VERDICT_OK;
    if (h && h->status == HOLD_ACTIVE && h->expires_at <= d->now) {
        decide_end_hold(d, h, HOLD_EXPIRED, CAUSE_EXPIRE);
        return VERDICT_DEFERRED;
    }
    struct payment_view v = {.event = e,
                             .hold = &op->hold.row,
                             .h = h,
                             .booking = booking,
                             .payment = current_payment(booking, &op->money),
                             .money = &op->money,
                             .fence_before = e->draft.fence,
                             .cause = CAUSE_CANCEL};
    if (h) {
        v.hold->status = (enum hold_status)h->status;
        v.hold->last_seq = h->last_seq;
    }
    booking->reason = op->reason;
    booking->reason_len = op->reason_len;
    bool frees = has_places(&v);
    money_set_booking(d, &v, BOOKING_CANCELLED);
    free_booking(d, &v, frees);
    if (!v.payment)
        return VERDICT_OK;
    v.status_before = v.payment->status;
    money_settle(d, &v);
    return VERDICT_OK;
}
