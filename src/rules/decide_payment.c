/* What facts about payments do, and what becomes of the jobs that brought them.  payment.h says
 * what a fact means; this file carries it out.  See decide.h.  On the worker's thread. */
#include <string.h>

#include "rules/decide_money.h"

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
        *made = (struct refund_row){.refund = money_number(v->event),
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
    const struct job_row *job =
        row->status == REFUND_OWED ? money_find_job(v->money, row->refund) : NULL;
    struct refund_write write = {.from = row->status};
    row->status = f->status;
    if (f->amount)
        row->amount = f->amount;
    row->updated_at = d->now;
    memcpy(row->provider, f->id, sizeof row->provider);
    write.row = *row;
    *vec_push(&d->batch.refunds) = write;
    if (job)
        money_end_job(d, job);
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

/* Has all of the money gone back already?  That can only be news after a restore, when the poll
 * that the payment is owed tells of money and refunds together. */
static bool is_returned(const struct payment_view *v, const struct fact *f)
{
    struct payment_balance b =
        payment_balance(v->payment, v->money->refunds.v, v->money->refunds.n);
    int64_t returned = 0;
    if (!money_poll_job(v->money, v->payment->payment))
        return false;
    for (size_t i = 0; i < f->refunds.n; i++)
        returned += f->refunds.v[i].status == REFUND_FAILED ? 0 : f->refunds.v[i].amount;
    return returned >= f->received || b.returned >= f->received;
}

/* Does the fact bring late money, for which the expired hold can still be sold?  Events that are
 * archived or cancelled sell nothing any more.  VERDICT_DEFERRED: the next batch can say. */
static enum verdict check_rescue(struct decision *d, const struct payment_view *v,
                                 const struct fact *f)
{
    struct shortage shortage = {0}; /* the reason does not matter: the money goes back */
    bool is_late = f->state == INTENT_CAPTURED && !v->is_past && !v->payment->received &&
                   v->booking->status == BOOKING_PENDING && v->hold->status == HOLD_EXPIRED;
    if (!is_late || v->event->status_draft == EVENT_ARCHIVED ||
        v->event->status_draft == EVENT_CANCELLED || is_returned(v, f))
        return VERDICT_HOLD_EXPIRED;
    return decide_check_revival(d, v->event, v->hold, &shortage);
}

/* Carries out a step: the places first, then the booking. */
static void take_step(struct decision *d, struct payment_view *v, const struct payment_step *s)
{
    if (s->books) {
        hf_check(v->h); /* without it the money goes back */
        change_hold(d, v->h, HOLD_CONFIRMED, v->cause, v->h->fence, v->h->expires_at);
        v->hold->last_seq = v->h->last_seq;
        decide_book_places(d, v->event, v->hold, SEAT_HELD, v->cause);
        if (v->h->wait)
            decide_wait_of_hold(d, v->h, v->cause);
    }
    if (s->rescues) {
        decide_revive(d, v->event, v->hold, v->h);
        decide_book_places(d, v->event, v->hold, SEAT_AVAILABLE, CAUSE_RESCUE);
    }
    v->payment->status = s->payment;
    if (!v->is_past && s->booking != v->booking->status)
        money_set_booking(d, v, s->booking);
    if (s->frees)
        decide_free_places(d, v->event, v->hold, v->cause);
}

static void apply_fact(struct decision *d, struct payment_view *v, struct payment_update *op,
                       bool may_rescue)
{
    const struct fact *f = &op->fact;
    struct payment_row *p = v->payment;
    bool was_disputed = p->disputed > 0;
    struct payment_case c = {.hold = v->hold->status,
                             .booking = money_booking(v),
                             .payment = p->status,
                             .has_received = p->received > 0,
                             .has_intent = *p->intent != '\0',
                             .may_rescue = may_rescue,
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
    const struct job_row *stored = r->job ? money_find_job(money, r->job) : NULL;
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
    return is_over && r->kind != JOB_REFUND && r->kind != JOB_POLL ? r->kind : 0;
}

/* A refund job ends here if the provider answered without telling of the refund. */
static void end_refund_job(struct decision *d, struct payment_view *v, const struct job_report *r)
{
    const struct job_row *stored = money_find_job(v->money, r->job);
    struct payment_balance b =
        payment_balance(v->payment, v->money->refunds.v, v->money->refunds.n);
    bool by_others = b.returned + b.owed > v->payment->received; /* money_settle owes less then */
    if (r->result == JOB_RESULT_FAILED && !by_others)
        fail_refund(d, v, r);
    for (size_t i = 0; i < v->money->refunds.n; i++)
        if (v->money->refunds.v[i].refund == r->job && v->money->refunds.v[i].status == REFUND_OWED)
            return; /* it goes on */
    for (size_t i = 0; i < d->batch.jobs.n; i++)
        if (d->batch.jobs.v[i].row.job == r->job && d->batch.jobs.v[i].is_deleted)
            return; /* apply_refund has ended it */
    if (stored)
        money_end_job(d, stored);
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
    const struct job_row *stored =
        op->report.job ? money_find_job(&op->money, op->report.job) : NULL;
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
    if (!op->fact.is_current && money_poll_job(&op->money, p->payment))
        op->fact.state = INTENT_UNSAID; /* old news of a restored payment: the poll tells it all */
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
    enum verdict rescue = check_rescue(d, &v, &op->fact);
    if (rescue == VERDICT_DEFERRED)
        return VERDICT_DEFERRED;
    bool knew_intent = *p->intent != '\0';
    op->booking_before = op->booking.status;
    store_webhook(d, op, p->payment);
    apply_fact(d, &v, op, rescue == VERDICT_OK);
    if (note_report(d, &op->money, &op->report))
        v.ended = 0;
    else if (op->report.kind == JOB_REFUND && op->report.job)
        end_refund_job(d, &v, &op->report);
    else
        v.is_polled = op->report.kind == JOB_POLL && op->report.job;
    money_settle(d, &v);
    if (op->fact.asks && (payment_is_open(p->status) || p->received) &&
        !(knew_intent && is_made(op)))
        d->batch.payments.v[d->batch.payments.n - 1].row.poll_at = d->now;
    return VERDICT_OK;
}
