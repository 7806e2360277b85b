/* Payments, refunds, jobs and webhooks of the paper ledger: the conditions of the ledger's
 * statements, a fold of the log, and the claims about money.  See fixtures.h. */
#include "support/fixtures.h"

#include <string.h>

#include "rules/payment.h"

void paper_money_close(struct paper *p)
{
    vec_close(&p->bookings_past);
    vec_close(&p->payments);
    vec_close(&p->refunds);
    vec_close(&p->jobs);
    vec_close(&p->webhooks);
}

struct paper_payment *paper_payment(struct paper *p, int64_t payment)
{
    for (size_t i = 0; i < p->payments.n; i++)
        if (p->payments.v[i].row.payment == payment)
            return &p->payments.v[i];
    return NULL;
}

struct refund_row *paper_refund(struct paper *p, int64_t refund)
{
    for (size_t i = 0; i < p->refunds.n; i++)
        if (p->refunds.v[i].refund == refund)
            return &p->refunds.v[i];
    return NULL;
}

struct job_row *paper_job(const struct paper *p, int64_t job)
{
    for (size_t i = 0; i < p->jobs.n; i++)
        if (p->jobs.v[i].job == job)
            return &p->jobs.v[i];
    return NULL;
}

void paper_money_read(struct paper *p, int64_t booking, struct money *ret)
{
    for (size_t i = 0; i < p->payments.n; i++)
        if (p->payments.v[i].row.id.key == booking)
            *vec_push(&ret->payments) = p->payments.v[i].row;
    for (size_t i = 0; i < p->refunds.n; i++)
        if (p->refunds.v[i].booking == booking)
            *vec_push(&ret->refunds) = p->refunds.v[i];
    for (size_t i = 0; i < p->jobs.n; i++)
        if (p->jobs.v[i].booking == booking && p->jobs.v[i].status == JOB_OWED)
            *vec_push(&ret->jobs) = p->jobs.v[i];
}

/* ---- writing ---- */

static void write_payments(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->payments_new.n; i++) {
        assert_null(paper_payment(p, b->payments_new.v[i].payment));
        *vec_push(&p->payments) =
            (struct paper_payment){b->payments_new.v[i], b->payments_new.v[i].status};
    }
    for (size_t i = 0; i < b->payments.n; i++) {
        const struct payment_write *w = &b->payments.v[i];
        struct paper_payment *payment = paper_payment(p, w->row.payment);
        assert_non_null(payment);
        assert_int_equal(payment->row.status, w->from);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(b->payments.v[k].row.payment, w->row.payment);
        payment->row = w->row;
    }
}

static void write_refunds(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->refunds_new.n; i++) {
        assert_null(paper_refund(p, b->refunds_new.v[i].refund));
        *vec_push(&p->refunds) = b->refunds_new.v[i];
    }
    for (size_t i = 0; i < b->refunds.n; i++) {
        const struct refund_write *w = &b->refunds.v[i];
        struct refund_row *row = paper_refund(p, w->row.refund);
        assert_non_null(row);
        assert_int_equal(row->status, w->is_dropped ? REFUND_OWED : w->from);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(b->refunds.v[k].row.refund, w->row.refund);
        *row = w->row;
        if (w->is_dropped)
            *row = p->refunds.v[--p->refunds.n];
    }
}

/* A job in whose place another comes keeps its lease, unless the new row says otherwise. */
static void put_job(struct paper *p, const struct job_row *put)
{
    struct job_row *row = paper_job(p, put->job);
    int64_t leased_until = row ? row->leased_until : 0;
    if (!row)
        row = vec_push(&p->jobs);
    else
        assert_int_equal(row->payment_no, put->payment_no); /* JOB_PUT leaves these as they are */
    *row = *put;
    row->leased_until = put->leased_until < 0 ? 0 : leased_until;
}

static void write_jobs(struct paper *p, const struct ledger_batch *b)
{
    for (size_t i = 0; i < b->jobs_put.n; i++) {
        for (size_t k = 0; k < i; k++) /* PostgreSQL refuses to put a row twice */
            assert_int_not_equal(b->jobs_put.v[k].job, b->jobs_put.v[i].job);
        put_job(p, &b->jobs_put.v[i]);
    }
    for (size_t i = 0; i < b->jobs.n; i++) {
        struct job_row *row = paper_job(p, b->jobs.v[i].row.job);
        assert_non_null(row);
        for (size_t k = 0; k < i; k++)
            assert_false(b->jobs.v[k].row.job == b->jobs.v[i].row.job &&
                         b->jobs.v[k].is_deleted == b->jobs.v[i].is_deleted);
        for (size_t k = 0; k < b->jobs_put.n; k++) /* which one would count? */
            assert_int_not_equal(b->jobs_put.v[k].job, b->jobs.v[i].row.job);
        if (b->jobs.v[i].is_deleted)
            continue;
        *row = b->jobs.v[i].row;
        row->leased_until = 0;
    }
    for (size_t i = 0; i < b->jobs.n; i++) {
        struct job_row *row = b->jobs.v[i].is_deleted ? paper_job(p, b->jobs.v[i].row.job) : NULL;
        if (row)
            *row = p->jobs.v[--p->jobs.n];
    }
}

void paper_money_write(struct paper *p, const struct ledger_batch *b)
{
    write_payments(p, b);
    write_refunds(p, b);
    write_jobs(p, b);
    for (size_t i = 0; i < b->webhooks.n; i++) {
        for (size_t k = 0; k < p->webhooks.n; k++)
            assert_string_not_equal(p->webhooks.v[k].event.id, b->webhooks.v[i].event.id);
        *vec_push(&p->webhooks) = b->webhooks.v[i];
    }
}

/* ---- the log ---- */

static void fold_booking(struct paper_event *pe, struct paper_hold *hold, const struct audit_row *a)
{
    static const unsigned after[] = {
        [BOOKING_NONE] = 1u << BOOKING_PENDING | 1u << BOOKING_CONFIRMED,
        [BOOKING_PENDING] =
            1u << BOOKING_CONFIRMED | 1u << BOOKING_FAILED | 1u << BOOKING_CANCELLED,
        [BOOKING_CONFIRMED] = 1u << BOOKING_CANCELLED,
        [BOOKING_FAILED] = 0,
        [BOOKING_CANCELLED] = 0};
    bool is_new = a->from == BOOKING_NONE;
    if (is_new)
        assert_true(hold->folded_booking == BOOKING_NONE || hold->folded_booking == BOOKING_FAILED);
    else
        assert_int_equal(a->from, hold->folded_booking);
    assert_true(after[a->from] & 1u << a->to);
    assert_int_equal(a->quantity, hold->folded_places);
    if (a->to == BOOKING_PENDING) { /* the number of its payment */
        assert_true(a->fence > pe->folded_fence);
        pe->folded_fence = a->fence;
    } else {
        assert_int_equal(a->fence, hold->folded_fence);
    }
    hold->folded_booking = (enum booking_status)a->to;
    bool is_sale = is_new && a->to == BOOKING_CONFIRMED; /* stands with the row of its hold */
    assert_int_equal(a->prev, is_sale ? 0 : hold->folded_seq);
    if (!is_sale)
        hold->folded_seq = a->seq;
}

void paper_money_fold(struct paper *p, struct paper_event *pe, const struct audit_row *a)
{
    struct paper_hold *hold = paper_hold(p, a->hold);
    assert_int_equal(a->booking, a->hold);
    if (a->object == AUDIT_BOOKING) {
        fold_booking(pe, hold, a);
        return;
    }
    struct paper_payment *payment = paper_payment(p, HOLD_KEY(a->event, a->fence));
    assert_non_null(payment);
    assert_int_equal(payment->folded, a->from);
    assert_int_equal(a->prev, hold->folded_seq);
    assert_int_equal(a->quantity, payment->row.amount);
    payment->folded = (enum payment_status)a->to;
    hold->folded_seq = a->seq;
}

/* ---- claims ---- */

/* The status of the booking that the payment was made for. */
static enum booking_status booking_of(struct paper *p, const struct payment_row *payment)
{
    const struct booking_row *booking = paper_booking(p, payment->id.key);
    assert_non_null(booking);
    return booking->payment == payment->payment ? booking->status : BOOKING_FAILED;
}

/* The job of the intent is the one that the state calls for.  A hold that ends cannot tell whether
 * its payment has received money, so that such a payment may have one cancel too many. */
static void check_intent_job(struct paper *p, const struct payment_row *payment)
{
    const struct job_row *job = paper_job(p, payment->payment);
    enum hold_status hold = paper_hold(p, payment->id.key)->row.status;
    enum job_kind wanted = payment_job(payment->status, booking_of(p, payment), hold);
    if (!wanted && payment->received && job) {
        assert_int_equal(job->kind, JOB_CANCEL);
        return;
    }
    assert_int_equal(job ? job->kind : 0, wanted);
    if (job) {
        assert_int_equal(job->status, JOB_OWED);
        assert_int_equal(job->booking, payment->id.key);
        assert_int_equal(job->payment_no, payment->payment);
        if (job->kind == JOB_CREATE || job->kind == JOB_CAPTURE)
            assert_int_equal(job->amount, payment->amount);
    }
}

/* I9: money that was captured is that of a confirmed booking, or on its way back, or the seller has
 * been told that it cannot be given back. */
static void check_payment(struct paper *p, const struct paper_payment *payment)
{
    const struct payment_row *row = &payment->row;
    int64_t returned = 0, owed = 0, failed = 0;
    assert_int_equal(payment->folded, row->status);
    for (size_t i = 0; i < p->refunds.n; i++) {
        const struct refund_row *f = &p->refunds.v[i];
        if (f->payment != row->payment)
            continue;
        returned += f->status == REFUND_PENDING || f->status == REFUND_SUCCEEDED ? f->amount : 0;
        owed += f->status == REFUND_OWED ? f->amount : 0;
        failed += f->status == REFUND_FAILED && f->is_ours;
    }
    assert_true(owed == 0 || returned + owed <= row->received);
    if (row->received > 0 && booking_of(p, row) != BOOKING_CONFIRMED)
        assert_true(returned + owed >= row->received || failed >= REFUND_TRIES);
    if (row->is_wrong)
        assert_int_not_equal(booking_of(p, row), BOOKING_CONFIRMED);
    if (booking_of(p, row) == BOOKING_CONFIRMED)
        assert_true(row->received > 0);
    bool secret_is_of_use = payment_is_open(row->status) && booking_of(p, row) == BOOKING_PENDING;
    assert_true(secret_is_of_use || !*row->client_secret);
    check_intent_job(p, row);
}

/* Every refund that is owed has its job, with its amount, and no other job pays back. */
static void check_refunds(struct paper *p)
{
    size_t owed = 0, jobs = 0;
    for (size_t i = 0; i < p->refunds.n; i++) {
        const struct refund_row *f = &p->refunds.v[i];
        if (f->status != REFUND_OWED)
            continue;
        const struct job_row *job = paper_job(p, f->refund);
        owed++;
        assert_true(f->is_ours && f->amount > 0);
        assert_non_null(job);
        assert_int_equal(job->kind, JOB_REFUND);
        assert_int_equal(job->refund, f->refund);
        assert_int_equal(job->payment_no, f->payment);
        assert_int_equal(job->amount, f->amount);
    }
    for (size_t i = 0; i < p->jobs.n; i++)
        jobs += p->jobs.v[i].kind == JOB_REFUND && p->jobs.v[i].status == JOB_OWED;
    assert_int_equal(jobs, owed);
}

/* A live hold knows the payment of its pending booking, and no other does. */
static void check_bookings(struct paper *p)
{
    for (size_t i = 0; i < p->holds.n; i++) {
        const struct hold *h = view_hold(p->view, p->holds.v[i].row.id.key);
        const struct booking_row *booking = paper_booking(p, p->holds.v[i].row.id.key);
        assert_int_equal(booking ? booking->status : BOOKING_NONE, p->holds.v[i].folded_booking);
        bool is_pending = booking && booking->status == BOOKING_PENDING;
        if (h)
            assert_int_equal(h->payment, is_pending ? booking->payment : 0);
        if (is_pending)
            assert_non_null(paper_payment(p, booking->payment));
        if (p->holds.v[i].row.status == HOLD_CONFIRMED)
            assert_non_null(booking);
    }
}

void paper_money_check(struct paper *p)
{
    for (size_t i = 0; i < p->payments.n; i++)
        check_payment(p, &p->payments.v[i]);
    check_refunds(p);
    check_bookings(p);
}
