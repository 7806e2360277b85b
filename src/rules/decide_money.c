/* See decide_money.h.  On the worker's thread. */
#include "rules/decide_money.h"

#include <string.h>

#define REFUND_RETRY_MS 3600000 /* after the first failure; later ones wait 24 times as long */
#define JOB_AGAIN_MS 2000       /* until a call that left the intent undecided is repeated */

enum booking_status money_booking(const struct payment_view *v)
{
    return v->is_past ? BOOKING_FAILED : v->booking->status;
}

/* ---- jobs ---- */

int64_t money_number(struct event *e)
{
    int64_t fence = ++e->draft.fence;
    hf_check(fence < (int64_t)1 << HOLD_FENCE_BITS);
    return HOLD_KEY(e->def->id.key, fence);
}

struct job_row *money_put_job(struct decision *d, enum job_kind kind, int64_t booking, int64_t job)
{
    struct job_row *row = vec_push(&d->batch.jobs_put);
    *row = (struct job_row){.booking = booking,
                            .job = job,
                            .kind = kind,
                            .status = JOB_OWED,
                            .created_at = d->now,
                            .due_at = d->now};
    random_bytes(d->random, row->key, JOB_KEY_SIZE);
    return row;
}

void decide_notify(struct decision *d, struct event *e, enum notice notice, int64_t booking,
                   int64_t payment, int64_t refund)
{
    if (!(d->notices & 1u << notice))
        return;
    struct job_row *row = money_put_job(d, JOB_NOTIFY, booking, money_number(e));
    row->notice = notice;
    row->payment_no = payment;
    row->refund = refund;
}

void decide_owe_cancel(struct decision *d, const struct hold *h)
{
    money_put_job(d, JOB_CANCEL, h->key, h->payment)->payment_no = h->payment;
    *vec_push(&d->unreadable) = h->key;
}

struct job_row *money_find_job(const struct money *money, int64_t job)
{
    for (size_t i = 0; i < money->jobs.n; i++)
        if (money->jobs.v[i].job == job)
            return &money->jobs.v[i];
    return NULL;
}

const struct job_row *money_poll_job(const struct money *money, int64_t payment)
{
    for (size_t i = 0; i < money->jobs.n; i++)
        if (money->jobs.v[i].kind == JOB_POLL && money->jobs.v[i].payment_no == payment)
            return &money->jobs.v[i];
    return NULL;
}

/* A job that is replaced needs no other change. */
static void forget_job(struct decision *d, int64_t job)
{
    for (size_t i = d->batch.jobs.n; i-- > 0;)
        if (d->batch.jobs.v[i].row.job == job && !d->batch.jobs.v[i].is_deleted)
            d->batch.jobs.v[i] = d->batch.jobs.v[--d->batch.jobs.n];
}

/* Ends a stored job; `job` is its row as read. */
void money_end_job(struct decision *d, const struct job_row *job)
{
    *vec_push(&d->batch.jobs) = (struct job_write){.row = *job, .is_deleted = true};
}

/* Makes the stored job of the intent the one that the state calls for. */
static void settle_job(struct decision *d, struct payment_view *v)
{
    struct payment_row *p = v->payment;
    enum job_kind wanted = payment_job(p->status, money_booking(v), v->hold->status);
    const struct job_row *stored = money_find_job(v->money, p->payment);
    if (stored && !wanted)
        money_end_job(d, stored);
    if (!wanted || (stored && stored->kind == wanted && !v->ended))
        return;
    forget_job(d, p->payment);
    struct job_row *row = money_put_job(d, wanted, p->id.key, p->payment);
    row->payment_no = p->payment;
    row->amount = p->amount;
    if (v->reported == p->payment)
        row->leased_until = -1;
    if (stored && v->ended == wanted) {
        row->due_at = d->now + JOB_AGAIN_MS;
        row->checks_first = true;
    }
}

/* A poll that is owed ends with an answer, and when no money can have come (I19). */
static void settle_poll(struct decision *d, const struct payment_view *v)
{
    const struct job_row *poll = money_poll_job(v->money, v->payment->payment);
    if (poll && (v->is_polled || v->payment->status == PAYMENT_CANCELED))
        money_end_job(d, poll);
}

/* ---- refunds ---- */

/* Owes `amount` of the payment back. */
struct refund_row *money_owe_refund(struct decision *d, struct payment_view *v, int64_t amount,
                                    int64_t due_at)
{
    struct refund_row *refund = vec_push(&d->batch.refunds_new);
    *refund = (struct refund_row){.refund = money_number(v->event),
                                  .booking = v->payment->id.key,
                                  .payment = v->payment->payment,
                                  .amount = amount,
                                  .status = REFUND_OWED,
                                  .is_ours = true,
                                  .created_at = d->now,
                                  .updated_at = d->now};
    struct job_row *job = money_put_job(d, JOB_REFUND, refund->booking, refund->refund);
    job->payment_no = refund->payment;
    job->refund = refund->refund;
    job->amount = amount;
    job->due_at = due_at;
    *vec_push(&v->money->refunds) = *refund;
    return refund;
}

/* Others have given money back that we owe: what is left to us is less. */
static void reduce_owed(struct decision *d, struct payment_view *v, int64_t excess)
{
    for (size_t i = v->money->refunds.n; excess > 0 && i-- > 0;) {
        struct refund_row *f = &v->money->refunds.v[i];
        const struct job_row *job = money_find_job(v->money, f->refund);
        if (f->payment != v->payment->payment || f->status != REFUND_OWED)
            continue;
        int64_t less = f->amount < excess ? f->amount : excess;
        excess -= less;
        f->amount -= less;
        f->updated_at = d->now;
        *vec_push(&d->batch.refunds) =
            (struct refund_write){.row = *f, .from = REFUND_OWED, .is_dropped = !f->amount};
        if (job && !f->amount) {
            money_end_job(d, job);
        } else if (f->amount) { /* another amount needs another idempotency key */
            forget_job(d, f->refund);
            struct job_row *again = money_put_job(d, JOB_REFUND, f->booking, f->refund);
            again->payment_no = f->payment;
            again->refund = f->refund;
            again->amount = f->amount;
            again->leased_until = v->reported == f->refund ? -1 : 0;
        }
    }
}

static void settle_refunds(struct decision *d, struct payment_view *v)
{
    struct payment_row *p = v->payment;
    struct payment_balance b = payment_balance(p, v->money->refunds.v, v->money->refunds.n);
    if (!p->received)
        return;
    if (b.owed && b.returned + b.owed > p->received)
        reduce_owed(d, v, b.returned + b.owed - p->received);
    int64_t rest = p->received - b.returned - b.owed;
    if (payment_returns(p, money_booking(v)) && rest > 0 && b.failed < REFUND_TRIES) {
        int64_t wait_ms = b.failed == 0   ? 0
                          : b.failed == 1 ? REFUND_RETRY_MS
                                          : 24 * REFUND_RETRY_MS;
        money_owe_refund(d, v, rest, d->now + wait_ms);
    }
    b = payment_balance(p, v->money->refunds.v, v->money->refunds.n);
    p->status = payment_status_of(&b, payment_returns(p, money_booking(v)));
}

/* A booking whose money goes back has failed once the money is back, or cannot be given back. */
static bool has_failed(const struct payment_view *v)
{
    const struct payment_row *p = v->payment;
    struct payment_balance b = payment_balance(p, v->money->refunds.v, v->money->refunds.n);
    return !v->is_past && v->booking->status == BOOKING_PENDING && p->received > 0 &&
           (b.settled >= p->received || b.failed);
}

/* ---- bookings ---- */

void money_set_booking(struct decision *d, struct payment_view *v, enum booking_status to)
{
    static const enum notice notices[] = {[BOOKING_CONFIRMED] = NOTICE_BOOKING_CONFIRMED,
                                          [BOOKING_FAILED] = NOTICE_BOOKING_FAILED,
                                          [BOOKING_CANCELLED] = NOTICE_BOOKING_CANCELLED};
    const struct booking_write write = {
        .booking = v->booking->id.key,
        .cancelled_at = to == BOOKING_CANCELLED ? d->now : 0,
        .fence = to == BOOKING_CONFIRMED ? v->hold->fence : 0,
        .from = v->booking->status,
        .to = to,
        .reason = v->booking->reason,
        .reason_len = v->booking->reason_len,
    };
    change_booking(d, v->event, &write, v->cause, v->hold, v->h);
    v->booking->status = to;
    v->booking->cancelled_at = write.cancelled_at;
    if (write.fence)
        v->booking->fence = write.fence;
    if (v->h && v->h->payment)
        change_hold_payment(d, v->h, 0);
    decide_notify(d, v->event, notices[to], v->booking->id.key, v->booking->payment, 0);
}

/* ---- after every change ---- */

/* Derives what is owed from the state, and writes the payment. */
void money_settle(struct decision *d, struct payment_view *v)
{
    struct payment_row *p = v->payment;
    settle_refunds(d, v);
    if (has_failed(v))
        money_set_booking(d, v, BOOKING_FAILED);
    settle_job(d, v);
    settle_poll(d, v);
    struct payment_balance b = payment_balance(p, v->money->refunds.v, v->money->refunds.n);
    bool is_live = money_booking(v) == BOOKING_PENDING && v->hold->status == HOLD_ACTIVE;
    p->poll_at = payment_poll_at(p, &b, v->hold->expires_at, is_live, d->now);
    if (!payment_is_open(p->status) || money_booking(v) != BOOKING_PENDING)
        p->client_secret[0] = '\0';
    p->updated_at = d->now;
    if (p->status != v->status_before || v->event->draft.fence != v->fence_before) {
        struct audit_row *row = change_log_money(d, v->event, v->hold, v->h, AUDIT_PAYMENT,
                                                 v->cause, (int)v->status_before, (int)p->status);
        row->fence = HOLD_FIRST_FENCE(p->payment);
        row->quantity = p->amount;
    }
    *vec_push(&d->batch.payments) = (struct payment_write){.row = *p, .from = v->status_before};
    *vec_push(&d->unreadable) = p->id.key;
}
