/* Bookings that are paid: making them, what facts about their payments do, refunds, cancelling.
 * payment.h says what a fact means; this file carries it out.  See decide.h.  On the worker's
 * thread.
 *
 * After every change `settle` derives from the state what is owed: money back, a call about the
 * intent, the next poll.  Jobs thus never depend on the way that led to a state (I10), and a
 * captured payment is either that of a confirmed booking or owed back (I9). */
#include <string.h>

#include "rules/decide_shared.h"
#include "rules/payment.h"

#define TIME_TO_PAY_MS 60000    /* a buyer needs this long, or a quarter of the event's TTL */
#define REFUND_RETRY_MS 3600000 /* after the first failure; later ones wait 24 times as long */
#define JOB_AGAIN_MS 2000       /* until a call that left the intent undecided is repeated */

/* Everything about one payment while it is judged. */
struct payment_view {
    struct event *event;
    struct hold_row *hold;
    struct hold *h; /* its entry in the view; NULL: it has none */
    struct booking_row *booking;
    struct payment_row *payment;
    struct money *money;
    enum payment_status status_before;
    int64_t fence_before; /* of the event: numbers that are drawn since then must be logged */
    int64_t reported;     /* the job whose call has ended, and its lease with it; 0: none */
    enum audit_cause cause;
    bool is_past;        /* another booking has taken the place of the payment's */
    enum job_kind ended; /* the call of this kind, about the intent, is over; 0: none is */
};

static enum booking_status booking_status(const struct payment_view *v)
{
    return v->is_past ? BOOKING_FAILED : v->booking->status;
}

/* ---- jobs ---- */

static int64_t next_number(struct event *e)
{
    int64_t fence = ++e->draft.fence;
    hf_check(fence < (int64_t)1 << HOLD_FENCE_BITS);
    return HOLD_KEY(e->def->id.key, fence);
}

static struct job_row *put_job(struct decision *d, enum job_kind kind, int64_t booking, int64_t job)
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
    struct job_row *row = put_job(d, JOB_NOTIFY, booking, next_number(e));
    row->notice = notice;
    row->payment_no = payment;
    row->refund = refund;
}

void decide_owe_cancel(struct decision *d, const struct hold *h)
{
    put_job(d, JOB_CANCEL, h->key, h->payment)->payment_no = h->payment;
    *vec_push(&d->unreadable) = h->key;
}

static struct job_row *find_job(const struct money *money, int64_t job)
{
    for (size_t i = 0; i < money->jobs.n; i++)
        if (money->jobs.v[i].job == job)
            return &money->jobs.v[i];
    return NULL;
}

/* A job that is replaced needs no other change. */
static void forget_job_write(struct decision *d, int64_t job)
{
    for (size_t i = d->batch.jobs.n; i-- > 0;)
        if (d->batch.jobs.v[i].row.job == job && !d->batch.jobs.v[i].is_deleted)
            d->batch.jobs.v[i] = d->batch.jobs.v[--d->batch.jobs.n];
}

/* Ends a stored job; `job` is its row as read. */
static void end_job(struct decision *d, const struct job_row *job)
{
    *vec_push(&d->batch.jobs) = (struct job_write){.row = *job, .is_deleted = true};
}

/* Makes the stored job of the intent the one that the state calls for. */
static void settle_job(struct decision *d, struct payment_view *v)
{
    struct payment_row *p = v->payment;
    enum job_kind wanted = payment_job(p->status, booking_status(v), v->hold->status);
    const struct job_row *stored = find_job(v->money, p->payment);
    if (stored && !wanted)
        end_job(d, stored);
    if (!wanted || (stored && stored->kind == wanted && !v->ended))
        return;
    forget_job_write(d, p->payment);
    struct job_row *row = put_job(d, wanted, p->id.key, p->payment);
    row->payment_no = p->payment;
    row->amount = p->amount;
    if (v->reported == p->payment)
        row->leased_until = -1;
    if (stored && v->ended == wanted) {
        row->due_at = d->now + JOB_AGAIN_MS;
        row->checks_first = true;
    }
}

/* ---- refunds ---- */

/* Owes `amount` of the payment back. */
static struct refund_row *owe_refund(struct decision *d, struct payment_view *v, int64_t amount,
                                     int64_t due_at)
{
    struct refund_row *refund = vec_push(&d->batch.refunds_new);
    *refund = (struct refund_row){.refund = next_number(v->event),
                                  .booking = v->payment->id.key,
                                  .payment = v->payment->payment,
                                  .amount = amount,
                                  .status = REFUND_OWED,
                                  .is_ours = true,
                                  .created_at = d->now,
                                  .updated_at = d->now};
    struct job_row *job = put_job(d, JOB_REFUND, refund->booking, refund->refund);
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
        const struct job_row *job = find_job(v->money, f->refund);
        if (f->payment != v->payment->payment || f->status != REFUND_OWED)
            continue;
        int64_t less = f->amount < excess ? f->amount : excess;
        excess -= less;
        f->amount -= less;
        f->updated_at = d->now;
        *vec_push(&d->batch.refunds) =
            (struct refund_write){.row = *f, .from = REFUND_OWED, .is_dropped = !f->amount};
        if (job && !f->amount) {
            end_job(d, job);
        } else if (f->amount) { /* another amount needs another idempotency key */
            forget_job_write(d, f->refund);
            struct job_row *again = put_job(d, JOB_REFUND, f->booking, f->refund);
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
    if (payment_returns(p, booking_status(v)) && rest > 0 && b.failed < REFUND_TRIES) {
        int64_t wait_ms = b.failed == 0   ? 0
                          : b.failed == 1 ? REFUND_RETRY_MS
                                          : 24 * REFUND_RETRY_MS;
        owe_refund(d, v, rest, d->now + wait_ms);
    }
    b = payment_balance(p, v->money->refunds.v, v->money->refunds.n);
    p->status = payment_status_of(&b, payment_returns(p, booking_status(v)));
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

static void set_booking(struct decision *d, struct payment_view *v, enum booking_status to)
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
static void settle(struct decision *d, struct payment_view *v)
{
    struct payment_row *p = v->payment;
    settle_refunds(d, v);
    if (has_failed(v))
        set_booking(d, v, BOOKING_FAILED);
    settle_job(d, v);
    struct payment_balance b = payment_balance(p, v->money->refunds.v, v->money->refunds.n);
    bool is_live = booking_status(v) == BOOKING_PENDING && v->hold->status == HOLD_ACTIVE;
    p->poll_at = payment_poll_at(p, &b, v->hold->expires_at, is_live, d->now);
    if (!payment_is_open(p->status) || booking_status(v) != BOOKING_PENDING)
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
                              .payment = next_number(e),
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
    struct job_row *job = put_job(d, JOB_CREATE, p->id.key, p->payment);
    job->payment_no = p->payment;
    job->amount = p->amount;
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

/* ---- facts ---- */

/* The refund that the provider speaks of: by its id, or by the number in its metadata. */
static struct refund_row *find_refund(struct payment_view *v, const struct refund_fact *f)
{
    struct refund_row *ours = NULL;
    for (size_t i = 0; i < v->money->refunds.n; i++) {
        struct refund_row *row = &v->money->refunds.v[i];
        if (row->payment != v->payment->payment)
            continue;
        if (*row->provider && strcmp(row->provider, f->id) == 0)
            return row;
        if (f->refund && row->refund == f->refund && !*row->provider)
            ours = row;
    }
    return ours;
}

static void notify_refund(struct decision *d, struct payment_view *v, const struct refund_row *f)
{
    if (f->status == REFUND_SUCCEEDED || f->status == REFUND_FAILED)
        decide_notify(d, v->event,
                      f->status == REFUND_FAILED ? NOTICE_REFUND_FAILED : NOTICE_REFUND_SUCCEEDED,
                      f->booking, f->payment, f->refund);
}

static void apply_refund(struct decision *d, struct payment_view *v, const struct refund_fact *f)
{
    struct refund_row *row = find_refund(v, f);
    if (!row) {
        if (v->money->refunds.n >= REFUNDS_MAX)
            return;
        struct refund_row *made = vec_push(&d->batch.refunds_new);
        *made = (struct refund_row){.refund = next_number(v->event),
                                    .booking = v->payment->id.key,
                                    .payment = v->payment->payment,
                                    .amount = f->amount,
                                    .status = f->status,
                                    .created_at = d->now,
                                    .updated_at = d->now};
        memcpy(made->provider, f->id, sizeof made->provider);
        *vec_push(&v->money->refunds) = *made;
        notify_refund(d, v, made);
        return;
    }
    if (f->status <= row->status)
        return; /* old news */
    const struct job_row *job = row->status == REFUND_OWED ? find_job(v->money, row->refund) : NULL;
    struct refund_write write = {.from = row->status};
    row->status = f->status;
    if (f->amount)
        row->amount = f->amount;
    row->updated_at = d->now;
    memcpy(row->provider, f->id, sizeof row->provider);
    write.row = *row;
    *vec_push(&d->batch.refunds) = write;
    if (job)
        end_job(d, job);
    notify_refund(d, v, row);
}

/* Does the fact name another amount or currency than the one that we asked for? */
static bool is_wrong(const struct payment_row *p, const struct fact *f)
{
    bool wrong_currency = *f->currency && strcmp(f->currency, p->currency) != 0;
    bool wrong_amount = f->amount && f->amount != p->amount;
    bool wrong_received = f->state == INTENT_CAPTURED && f->received != p->amount;
    return wrong_currency || wrong_amount || wrong_received;
}

/* Copies what the fact says about the intent besides its state. */
static void note_details(struct payment_row *p, const struct fact *f)
{
    if (*f->intent && !*p->intent)
        memcpy(p->intent, f->intent, sizeof p->intent);
    if (*f->client_secret && !*p->client_secret)
        memcpy(p->client_secret, f->client_secret, sizeof p->client_secret);
    if (f->is_current && *f->error.code)
        p->error = f->error;
    if (f->disputed > p->disputed)
        p->disputed = f->disputed;
}

/* Events that are archived or cancelled sell nothing any more. */
static bool may_rescue(struct decision *d, const struct payment_view *v, const struct fact *f)
{
    return f->state == INTENT_CAPTURED && !v->is_past && !v->payment->received &&
           v->booking->status == BOOKING_PENDING && v->hold->status == HOLD_EXPIRED &&
           v->event->status_draft != EVENT_ARCHIVED && v->event->status_draft != EVENT_CANCELLED &&
           decide_places_are_free(d, v->event, v->hold);
}

/* Carries out a step: the places first, then the booking. */
static void take_step(struct decision *d, struct payment_view *v, const struct payment_step *s)
{
    if (s->books) {
        change_hold(d, v->h, HOLD_CONFIRMED, v->cause, v->h->fence, v->h->expires_at);
        v->hold->last_seq = v->h->last_seq;
        decide_book_places(d, v->event, v->hold, SEAT_HELD, v->cause);
    }
    if (s->rescues) {
        decide_revive(d, v->event, v->hold, v->h);
        decide_book_places(d, v->event, v->hold, SEAT_AVAILABLE, CAUSE_RESCUE);
    }
    v->payment->status = s->payment;
    if (!v->is_past && s->booking != v->booking->status)
        set_booking(d, v, s->booking);
    if (s->frees)
        decide_free_places(d, v->event, v->hold, v->cause);
}

static void apply_fact(struct decision *d, struct payment_view *v, struct payment_update *op)
{
    const struct fact *f = &op->fact;
    struct payment_row *p = v->payment;
    bool was_disputed = p->disputed > 0;
    struct payment_case c = {.hold = v->hold->status,
                             .booking = booking_status(v),
                             .payment = p->status,
                             .has_received = p->received > 0,
                             .has_intent = *p->intent != '\0',
                             .may_rescue = may_rescue(d, v, f),
                             .is_wrong = is_wrong(p, f)};
    struct payment_step step;
    payment_apply(&c, f, &step);
    if (step.books && (!v->h || !decide_owns_seats(v->h))) { /* a damaged ledger: give it back */
        c.hold = HOLD_RELEASED;
        payment_apply(&c, f, &step);
        step.alarms = true;
    }
    note_details(p, f);
    if (f->state == INTENT_CAPTURED && !p->received) {
        p->received = f->received;
        p->is_wrong = c.is_wrong;
        p->error = (struct payment_error){0}; /* of cards that were declined before */
    }
    take_step(d, v, &step);
    for (size_t i = 0; i < f->refunds.n; i++)
        apply_refund(d, v, &f->refunds.v[i]);
    if (!was_disputed && p->disputed)
        decide_notify(d, v->event, NOTICE_PAYMENT_DISPUTED, p->id.key, p->payment, 0);
    op->alarms = step.alarms;
}

/* ---- what became of a job ---- */

/* A refund that the provider refuses for good has failed. */
static void fail_refund(struct decision *d, struct payment_view *v, const struct job_report *r)
{
    for (size_t i = 0; i < v->money->refunds.n; i++) {
        struct refund_row *f = &v->money->refunds.v[i];
        if (f->refund != r->job || f->status != REFUND_OWED)
            continue;
        f->status = REFUND_FAILED;
        f->updated_at = d->now;
        memcpy(f->error, r->error, sizeof f->error);
        *vec_push(&d->batch.refunds) = (struct refund_write){.row = *f, .from = REFUND_OWED};
        notify_refund(d, v, f);
    }
}

/* Stores that the job is to be run again, or is over.  Returns true if that is all that becomes of
 * it; otherwise the state decides.  A job that was replaced while it was run only gives its lease
 * to the one in its place, which every write of a job ends. */
static bool note_report(struct decision *d, const struct money *money, const struct job_report *r)
{
    const struct job_row *stored = r->job ? find_job(money, r->job) : NULL;
    if (!stored)
        return false; /* it has ended while it was run */
    if (stored->leased_until != r->leased_until)
        return true; /* it took so long that another server runs it now */
    struct job_write write = {.row = *stored};
    struct job_row *row = &write.row;
    if (stored->kind != r->kind) {
        *vec_push(&d->batch.jobs) = write;
        return true;
    }
    row->attempts++;
    memcpy(row->error, r->error, sizeof row->error);
    if (!row->key_used_at)
        row->key_used_at = d->now;
    switch (r->result) {
    case JOB_RESULT_NEW_KEY:
        random_bytes(d->random, row->key, JOB_KEY_SIZE);
        row->key_used_at = 0;
        row->checks_first = false;
        break;
    case JOB_RESULT_CHECK:
        row->checks_first = true;
        break;
    case JOB_RESULT_RETRY:
        break;
    case JOB_RESULT_DONE:
    case JOB_RESULT_FAILED:
        if (row->kind != JOB_NOTIFY)
            return false;
        row->status = r->result == JOB_RESULT_DONE ? JOB_DONE : JOB_FAILED;
        row->ended_at = d->now;
        break;
    case JOB_RESULT_NONE:
        return false;
    }
    row->due_at = d->now + r->delay_ms;
    *vec_push(&d->batch.jobs) = write;
    return true;
}

/* The kind of the job about the intent whose call is over; 0: none. */
static enum job_kind intent_call_ended(const struct job_report *r)
{
    bool is_over = r->job && (r->result == JOB_RESULT_DONE || r->result == JOB_RESULT_FAILED);
    return is_over && r->kind != JOB_REFUND ? r->kind : 0;
}

/* A refund job ends here if the provider answered without telling of the refund. */
static void end_refund_job(struct decision *d, struct payment_view *v, const struct job_report *r)
{
    const struct job_row *stored = find_job(v->money, r->job);
    struct payment_balance b =
        payment_balance(v->payment, v->money->refunds.v, v->money->refunds.n);
    bool by_others = b.returned + b.owed > v->payment->received; /* `settle` owes less then */
    if (r->result == JOB_RESULT_FAILED && !by_others)
        fail_refund(d, v, r);
    for (size_t i = 0; i < v->money->refunds.n; i++)
        if (v->money->refunds.v[i].refund == r->job && v->money->refunds.v[i].status == REFUND_OWED)
            return; /* it goes on */
    for (size_t i = 0; i < d->batch.jobs.n; i++)
        if (d->batch.jobs.v[i].row.job == r->job && d->batch.jobs.v[i].is_deleted)
            return; /* apply_refund has ended it */
    if (stored)
        end_job(d, stored);
}

static void store_webhook(struct decision *d, const struct payment_update *op, int64_t payment)
{
    if (!*op->event.id)
        return;
    struct webhook_write *w = vec_push(&d->batch.webhooks);
    *w = (struct webhook_write){.event = op->event,
                                .booking = op->payment.key,
                                .payment = payment,
                                .is_parked = !payment,
                                .at = d->now};
    memcpy(w->intent, op->fact.intent, sizeof w->intent);
}

static struct payment_row *find_payment(struct payment_update *op)
{
    for (size_t i = 0; i < op->money.payments.n; i++)
        if (id_secret_equal(op->money.payments.v[i].id.secret, op->payment.secret))
            return &op->money.payments.v[i];
    return NULL;
}

/* A webhook that this batch stores already is judged again when it can be read. */
static bool is_stored_now(const struct decision *d, const char *event)
{
    for (size_t i = 0; *event && i < d->batch.webhooks.n; i++)
        if (strcmp(d->batch.webhooks.v[i].event.id, event) == 0)
            return true;
    return false;
}

/* Does the webhook only say that the intent was made? */
static bool is_made(const struct payment_update *op)
{
    return strcmp(op->event.type, "payment_intent.created") == 0;
}

/* The job whose call has ended; 0: none, or one that another server has leased since. */
static int64_t reported_job(const struct payment_update *op)
{
    const struct job_row *stored = op->report.job ? find_job(&op->money, op->report.job) : NULL;
    return stored && stored->leased_until == op->report.leased_until ? stored->job : 0;
}

/* Somebody has put our metadata on an intent that we have not made. */
static bool is_of_another_intent(const struct payment_row *p, const struct fact *f)
{
    return *p->intent && *f->intent && strcmp(p->intent, f->intent) != 0;
}

enum verdict decide_payment(struct decision *d, struct event *e, struct payment_update *op)
{
    struct hold *h = view_hold(d->view, op->hold.id.key);
    struct payment_row *p = op->has_payment ? find_payment(op) : NULL;
    op->is_repeat = op->event_known;
    op->is_unknown = op->has_payment && !p;
    if (op->event_known)
        return VERDICT_OK;
    if (is_stored_now(d, op->event.id))
        return VERDICT_DEFERRED;
    if (op->is_unknown) {
        store_webhook(d, op, 0);
        return VERDICT_OK;
    }
    if (decide_is_unreadable(d, op->hold.id.key))
        return VERDICT_DEFERRED;
    if (h && h->status == HOLD_ACTIVE && h->expires_at <= d->now) {
        decide_end_hold(d, h, HOLD_EXPIRED, CAUSE_EXPIRE);
        return VERDICT_DEFERRED;
    }
    if (!op->has_payment) {
        (void)note_report(d, &op->money, &op->report);
        *vec_push(&d->unreadable) = op->hold.id.key;
        return VERDICT_OK;
    }
    if (is_of_another_intent(p, &op->fact)) {
        op->alarms = true;
        store_webhook(d, op, p->payment);
        return VERDICT_OK;
    }
    if (op->fact.state == INTENT_CAPTURED && op->fact.received <= 0) {
        op->alarms = true; /* nothing was captured, whatever the provider calls it */
        op->fact.state = INTENT_UNSAID;
    }
    if (h) {
        op->hold.row.status = (enum hold_status)h->status;
        op->hold.row.expires_at = h->expires_at;
        op->hold.row.last_seq = h->last_seq;
    }
    struct payment_view v = {.event = e,
                             .hold = &op->hold.row,
                             .h = h,
                             .booking = &op->booking,
                             .payment = p,
                             .money = &op->money,
                             .status_before = p->status,
                             .fence_before = e->draft.fence,
                             .reported = reported_job(op),
                             .cause = CAUSE_PAYMENT,
                             .is_past = op->booking.payment != p->payment,
                             .ended = intent_call_ended(&op->report)};
    bool knew_intent = *p->intent != '\0';
    op->booking_before = op->booking.status;
    store_webhook(d, op, p->payment);
    apply_fact(d, &v, op);
    if (note_report(d, &op->money, &op->report))
        v.ended = 0;
    else if (op->report.kind == JOB_REFUND && op->report.job)
        end_refund_job(d, &v, &op->report);
    settle(d, &v);
    if (op->fact.asks && (payment_is_open(p->status) || p->received) &&
        !(knew_intent && is_made(op)))
        d->batch.payments.v[d->batch.payments.n - 1].row.poll_at = d->now;
    return VERDICT_OK;
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
    owe_refund(d, &v, amount, d->now);
    settle(d, &v);
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
        change_hold_payment(d, v->h, 0); /* settle owes the cancel, once */
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
    set_booking(d, &v, BOOKING_CANCELLED);
    free_booking(d, &v, frees);
    if (!v.payment)
        return VERDICT_OK;
    v.status_before = v.payment->status;
    settle(d, &v);
    return VERDICT_OK;
}
