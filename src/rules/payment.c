/* See payment.h.  Pure; called on the worker's thread. */
#include "rules/payment.h"

#define POLL_LEAD_MS 10000                         /* before the hold's expiry */
#define POLL_AGAIN_MS 5000                         /* at least, between two polls of one payment */
#define POLL_SETTLED_MS (6 * 3600 * 1000LL)        /* of refunds that can still fail at the bank */
#define REFUND_WATCHED_MS (3 * 24 * 3600 * 1000LL) /* after they succeeded */
#define POLL_REFUND_MS 5000 /* of refunds that the provider has accepted but not paid yet */

static void apply_captured(const struct payment_case *c, struct payment_step *s)
{
    bool sold = c->hold == HOLD_CONFIRMED; /* the places were booked when the card was authorized */
    if (c->has_received)
        return;
    s->payment = PAYMENT_REFUNDING;
    s->alarms = c->is_wrong || c->booking == BOOKING_FAILED;
    if (c->booking != BOOKING_PENDING)
        return;
    if (c->is_wrong) {
        s->frees = sold;
        return;
    }
    s->books = c->hold == HOLD_ACTIVE;
    s->rescues = c->hold == HOLD_EXPIRED && c->may_rescue;
    if (!s->books && !s->rescues && !sold)
        return;
    s->payment = PAYMENT_SUCCEEDED;
    s->booking = BOOKING_CONFIRMED;
}

static void apply_authorized(const struct payment_case *c, struct payment_step *s)
{
    if (c->has_received || c->payment >= PAYMENT_AUTHORIZED)
        return;
    s->payment = PAYMENT_AUTHORIZED;
    s->alarms = c->is_wrong;
    if (c->booking != BOOKING_PENDING || c->hold != HOLD_ACTIVE || c->is_wrong)
        return;
    s->payment = PAYMENT_CAPTURING;
    s->books = true;
}

/* The intent is canceled, or there is none: no money can come any more. */
static void apply_canceled(const struct payment_case *c, const struct fact *fact,
                           struct payment_step *s)
{
    if (c->has_received || c->payment == PAYMENT_CANCELED) {
        s->alarms = c->has_received;
        return;
    }
    s->payment = PAYMENT_CANCELED;
    s->alarms = fact->state == INTENT_ABSENT && c->has_intent;
    if (c->booking != BOOKING_PENDING)
        return;
    s->booking = BOOKING_FAILED;
    s->frees = c->hold == HOLD_CONFIRMED;
}

static void apply_capture_refused(const struct payment_case *c, struct payment_step *s)
{
    if (c->payment != PAYMENT_CAPTURING || c->has_received)
        return;
    s->payment = PAYMENT_AUTHORIZED; /* which is then canceled */
    if (c->booking != BOOKING_PENDING)
        return;
    s->booking = BOOKING_FAILED;
    s->frees = c->hold == HOLD_CONFIRMED;
}

/* A look at the intent shows how it stands; older news only says that it exists. */
static void apply_display(const struct payment_case *c, const struct fact *fact,
                          struct payment_step *s)
{
    static const enum payment_status shown[] = {
        [INTENT_REQUIRES_PAYMENT] = PAYMENT_REQUIRES_PAYMENT,
        [INTENT_REQUIRES_ACTION] = PAYMENT_REQUIRES_ACTION,
        [INTENT_PROCESSING] = PAYMENT_PROCESSING,
    };
    if (c->payment > PAYMENT_PROCESSING)
        return;
    if (fact->is_current)
        s->payment = shown[fact->state];
    else if (c->payment == PAYMENT_CREATING)
        s->payment = PAYMENT_REQUIRES_PAYMENT;
}

void payment_apply(const struct payment_case *c, const struct fact *fact, struct payment_step *ret)
{
    *ret = (struct payment_step){.payment = c->payment, .booking = c->booking};
    if (fact->capture_refused) {
        apply_capture_refused(c, ret);
        return;
    }
    switch (fact->state) {
    case INTENT_CAPTURED:
        apply_captured(c, ret);
        break;
    case INTENT_AUTHORIZED:
        apply_authorized(c, ret);
        break;
    case INTENT_CANCELED:
    case INTENT_ABSENT:
        apply_canceled(c, fact, ret);
        break;
    case INTENT_REQUIRES_PAYMENT:
    case INTENT_REQUIRES_ACTION:
    case INTENT_PROCESSING:
        apply_display(c, fact, ret);
        break;
    case INTENT_UNSAID:
        break;
    }
}

enum job_kind payment_job(enum payment_status payment, enum booking_status booking,
                          enum hold_status hold)
{
    if (!payment_is_open(payment))
        return 0;
    if (booking != BOOKING_PENDING)
        return JOB_CANCEL;
    if (payment == PAYMENT_CAPTURING)
        return JOB_CAPTURE;
    if (payment == PAYMENT_AUTHORIZED || hold != HOLD_ACTIVE)
        return JOB_CANCEL;
    return payment == PAYMENT_CREATING ? JOB_CREATE : 0;
}

struct payment_balance payment_balance(const struct payment_row *payment,
                                       const struct refund_row *refunds, size_t n)
{
    struct payment_balance b = {.received = payment->received};
    int64_t last_ours = 0;
    for (size_t i = 0; i < n; i++) {
        const struct refund_row *f = &refunds[i];
        if (f->payment != payment->payment)
            continue;
        bool accepted = f->status == REFUND_PENDING || f->status == REFUND_SUCCEEDED;
        b.returned += accepted ? f->amount : 0;
        b.settled += f->status == REFUND_SUCCEEDED ? f->amount : 0;
        if (f->status == REFUND_SUCCEEDED && f->updated_at > b.settled_at)
            b.settled_at = f->updated_at;
        b.owed += f->status == REFUND_OWED ? f->amount : 0;
        b.failed += f->status == REFUND_FAILED && f->is_ours;
        if (f->is_ours && f->status != REFUND_OWED && f->refund > last_ours) {
            last_ours = f->refund;
            b.last_failed = f->status == REFUND_FAILED;
        }
    }
    return b;
}

enum payment_status payment_status_of(const struct payment_balance *b, bool returns)
{
    if (b->last_failed && (!returns || b->returned < b->received))
        return PAYMENT_REFUND_FAILED;
    if (b->owed > 0 || b->returned > b->settled)
        return PAYMENT_REFUNDING;
    if (b->settled >= b->received)
        return PAYMENT_REFUNDED;
    return returns ? PAYMENT_REFUNDING : PAYMENT_SUCCEEDED;
}

int64_t payment_poll_at(const struct payment_row *p, const struct payment_balance *b,
                        int64_t hold_expires_at, bool hold_is_live, int64_t now)
{
    if (p->status <= PAYMENT_PROCESSING && hold_is_live) {
        int64_t left_ms = hold_expires_at - now;
        int64_t lead_ms = left_ms / 2 < POLL_LEAD_MS ? left_ms / 2 : POLL_LEAD_MS;
        int64_t at = hold_expires_at - lead_ms;
        return at > now + POLL_AGAIN_MS || left_ms > POLL_LEAD_MS ? at : now + POLL_AGAIN_MS;
    }
    if (b->returned > b->settled)
        return now + POLL_REFUND_MS;
    bool may_fail = b->settled_at && now < b->settled_at + REFUND_WATCHED_MS;
    return may_fail ? now + POLL_SETTLED_MS : 0;
}
