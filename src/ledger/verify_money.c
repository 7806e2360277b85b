/* Compares the payments of one event with their bookings, refunds and jobs.  Pure: verify.c feeds
 * it row by row, and it writes only to the report.  Checks I9 and the payments' part of I11.  Costs
 * O(log payments) per row.
 *
 * What a state calls for is decided in rules/payment.c.  It is stated here once more, since a check
 * that called the rules would agree with them whatever they do. */
#include "ledger/verify_internal.h"

#include <stdio.h>

static int key_order(int64_t booking, int64_t number, int64_t wanted_booking, int64_t wanted_number)
{
    if (booking != wanted_booking)
        return booking < wanted_booking ? -1 : 1;
    return (number > wanted_number) - (number < wanted_number);
}

/* Finds the element of a vector that has this booking and this `number`; NULL if there is none. */
#define FIND(vec, field, wanted_booking, wanted)                                                   \
    do {                                                                                           \
        size_t low = 0, high = (vec)->n;                                                           \
        while (low < high) {                                                                       \
            size_t mid = low + (high - low) / 2;                                                   \
            int order =                                                                            \
                key_order((vec)->v[mid].booking, (vec)->v[mid].field, wanted_booking, wanted);     \
            if (order == 0)                                                                        \
                return &(vec)->v[mid];                                                             \
            if (order < 0)                                                                         \
                low = mid + 1;                                                                     \
            else                                                                                   \
                high = mid;                                                                        \
        }                                                                                          \
        return NULL;                                                                               \
    } while (0)

struct payment_state *verify_payment(struct event_state *e, int64_t booking, int64_t payment)
{
    FIND(&e->payments, payment, booking, payment);
}

struct past_state *verify_past(struct event_state *e, int64_t booking, int64_t payment)
{
    FIND(&e->past, payment, booking, payment);
}

static struct refund_seen *find_refund(struct event_state *e, int64_t booking, int64_t refund)
{
    FIND(&e->refunds, refund, booking, refund);
}

/* ---- refunds ---- */

static void add(int64_t *sum, int64_t amount)
{
    *sum = money_bounded(*sum + money_bounded(amount));
}

void verify_refund(struct event_state *e, const struct refund_seen *row, bool is_ours)
{
    struct payment_state *p = verify_payment(e, row->booking, row->payment);
    *vec_push(&e->refunds) = *row;
    if (row->amount <= 0 || row->status < REFUND_OWED || row->status > REFUND_FAILED ||
        (row->status == REFUND_OWED && !is_ours))
        verify_violation(e->report, VERIFY_REFUNDS,
                         "booking %lld: a refund of %lld, in state %d, made by %s",
                         (ll)row->booking, (ll)row->amount, row->status, is_ours ? "us" : "others");
    if (!p) {
        verify_violation(e->report, VERIFY_REFUNDS, "booking %lld: a refund of no payment",
                         (ll)row->booking);
        return;
    }
    if (row->status == REFUND_PENDING || row->status == REFUND_SUCCEEDED)
        add(&p->returned, row->amount);
    if (row->status == REFUND_SUCCEEDED)
        add(&p->settled, row->amount);
    if (row->status == REFUND_OWED)
        add(&p->owed, row->amount);
    p->n_failed += is_ours && row->status == REFUND_FAILED;
    if (is_ours && row->status != REFUND_OWED && row->refund > p->last_ours) {
        p->last_ours = row->refund;
        p->last_failed = row->status == REFUND_FAILED;
    }
}

/* The status of a payment that has received money; `returns`: all of it must go back. */
static int refunded_status(const struct payment_state *p, bool returns)
{
    if (p->last_failed && (!returns || p->returned < p->received))
        return PAYMENT_REFUND_FAILED;
    if (p->owed > 0 || p->returned > p->settled)
        return PAYMENT_REFUNDING;
    if (p->settled >= p->received)
        return PAYMENT_REFUNDED;
    return returns ? PAYMENT_REFUNDING : PAYMENT_SUCCEEDED;
}

/* A webhook about a refund may overtake the one about the money, so only what was received is
 * compared with what goes back. */
static void check_refunds(struct event_state *e, const struct payment_state *p, bool returns)
{
    bool is_open = p->status >= PAYMENT_CREATING && p->status <= PAYMENT_CAPTURING;
    bool is_right = p->received ? p->status == refunded_status(p, returns)
                                : is_open || p->status == PAYMENT_CANCELED;
    if (p->received < 0 || p->owed > p->received ||
        (p->received && p->returned + p->owed > p->received))
        verify_violation(e->report, VERIFY_REFUNDS,
                         "booking %lld: %lld received, %lld given back and %lld owed",
                         (ll)p->booking, (ll)p->received, (ll)p->returned, (ll)p->owed);
    if (!is_right)
        verify_violation(
            e->report, VERIFY_REFUNDS,
            "booking %lld: its payment is %s, with %lld received, %lld given back and %lld owed",
            (ll)p->booking, word(AUDIT_PAYMENT, p->status), (ll)p->received, (ll)p->returned,
            (ll)p->owed);
}

/* ---- jobs ---- */

/* The call about the intent that is owed to the provider; 0: none. */
static int wanted_job(int payment, int booking, int hold)
{
    if (payment < PAYMENT_CREATING || payment > PAYMENT_CAPTURING)
        return 0;
    if (booking != BOOKING_PENDING)
        return JOB_CANCEL;
    if (payment == PAYMENT_CAPTURING)
        return JOB_CAPTURE;
    if (payment == PAYMENT_AUTHORIZED || hold != HOLD_ACTIVE)
        return JOB_CANCEL;
    return payment == PAYMENT_CREATING ? JOB_CREATE : 0;
}

static const char *job_word(int kind)
{
    const char *text = job_kind_text((enum job_kind)kind);
    return text ? text : kind ? "of no known kind" : "none";
}

/* A refund job pays the refund of its number. */
static void check_refund_job(struct event_state *e, const struct stored_job *row)
{
    struct refund_seen *f = find_refund(e, row->booking, row->refund);
    if (!f || row->job != row->refund || f->status != REFUND_OWED || f->payment != row->payment ||
        f->amount != row->amount)
        verify_violation(e->report, VERIFY_JOBS,
                         "booking %lld: a refund of %lld is to be made, which is not owed",
                         (ll)row->booking, (ll)row->amount);
    else
        f->has_job = true;
}

/* A poll is owed once, and not of a payment that is canceled. */
static void check_poll_job(struct event_state *e, struct payment_state *p)
{
    if (p->has_poll || p->status == PAYMENT_CANCELED)
        verify_violation(e->report, VERIFY_JOBS, "booking %lld: a poll is owed %s", (ll)p->booking,
                         p->has_poll ? "twice" : "of a payment that is canceled");
    p->has_poll = true;
    e->report->unchecked++;
}

static void check_notice(struct event_state *e, const struct stored_job *row)
{
    bool has_refund = !row->refund || find_refund(e, row->booking, row->refund);
    bool has_payment = !row->payment || verify_payment(e, row->booking, row->payment);
    bool is_of_wait = notice_is_of_wait((enum notice)row->notice);
    bool has_subject = is_of_wait ? verify_wait(e, row->booking) && !row->refund && !row->payment
                                  : verify_hold(e, row->booking) != NULL;
    if (!has_refund || !has_payment || !has_subject || row->status < JOB_OWED ||
        row->status > JOB_FAILED)
        verify_violation(e->report, VERIFY_JOBS,
                         "booking %lld: a notification is about nothing that there is",
                         (ll)row->booking);
}

/* Jobs that call the provider are deleted when they are done. */
void verify_job(struct event_state *e, const struct stored_job *row)
{
    struct payment_state *p = verify_payment(e, row->booking, row->payment);
    verify_count(e, VERIFY_JOBS);
    if (row->kind == JOB_NOTIFY) {
        check_notice(e, row);
        return;
    }
    bool has_own_number = row->kind == JOB_REFUND || row->kind == JOB_POLL;
    if (row->status != JOB_OWED || !p || row->kind < JOB_REFUND || row->kind > JOB_POLL ||
        has_own_number == (row->job == row->payment))
        verify_violation(e->report, VERIFY_JOBS,
                         "booking %lld: a job, %s, in state %d, of %s payment", (ll)row->booking,
                         job_word(row->kind), row->status, p ? "a" : "no");
    else if (row->kind == JOB_REFUND)
        check_refund_job(e, row);
    else if (row->kind == JOB_POLL)
        check_poll_job(e, p);
    else
        p->job = row->kind;
}

static void check_job(struct event_state *e, const struct payment_state *p, int booking, int hold)
{
    int wanted = wanted_job(p->status, booking, hold);
    if (p->job != wanted)
        verify_violation(e->report, VERIFY_JOBS,
                         "booking %lld: it is %s, its payment %s and its hold %s; its job is %s "
                         "instead of %s",
                         (ll)p->booking, word(AUDIT_BOOKING, booking),
                         word(AUDIT_PAYMENT, p->status), word(AUDIT_HOLD, hold), job_word(p->job),
                         job_word(wanted));
}

/* ---- payments ---- */

/* Money is the buyer's again unless a booking was confirmed for exactly this amount. */
static void check_captured(struct event_state *e, const struct payment_state *p, int booking)
{
    struct verify_report *report = e->report;
    bool is_sold = booking == BOOKING_CONFIRMED;
    int64_t back = p->returned + p->owed, left = p->received - back;
    if (is_sold && (p->received != p->amount || p->is_wrong))
        verify_violation(report, VERIFY_CAPTURED,
                         "booking %lld: it is confirmed, and %lld of %lld was received",
                         (ll)p->booking, (ll)p->received, (ll)p->amount);
    if (is_sold || left <= 0)
        return;
    if (p->n_failed < REFUND_TRIES) {
        verify_violation(report, VERIFY_CAPTURED,
                         "booking %lld: it is %s, and of %lld received %lld goes back",
                         (ll)p->booking, word(AUDIT_BOOKING, booking), (ll)p->received, (ll)back);
        return;
    }
    if (report->owed < VERIFY_EXAMPLES)
        snprintf(report->owed_examples[report->owed], VERIFY_EXAMPLE_SIZE,
                 "booking %lld: of %lld received %lld must still go back, %u refunds have failed",
                 (ll)p->booking, (ll)p->received, (ll)left, p->n_failed);
    report->owed++;
}

static void check_payment(struct event_state *e, struct payment_state *p)
{
    const struct hold_state *h = verify_hold(e, p->booking);
    bool is_current = h && h->payment == p->payment;
    int booking = is_current ? h->booking : BOOKING_FAILED;
    verify_count(e, VERIFY_PAYMENTS);
    verify_count(e, VERIFY_CAPTURED);
    verify_count(e, VERIFY_REFUNDS);
    verify_count(e, VERIFY_FOLD_PAYMENTS);
    if (e->pruned_seq && !p->log_status)
        p->log_status = p->status;
    if (p->status != p->log_status)
        verify_violation(e->report, VERIFY_FOLD_PAYMENTS,
                         "booking %lld: its payment is %s, by the log %s", (ll)p->booking,
                         word(AUDIT_PAYMENT, p->status), word(AUDIT_PAYMENT, p->log_status));
    if (!h || (!is_current && !verify_past(e, p->booking, p->payment))) {
        verify_violation(e->report, VERIFY_PAYMENTS, "a payment of booking %lld has no booking",
                         (ll)p->booking);
        return;
    }
    check_captured(e, p, booking);
    check_refunds(e, p, p->received > 0 && booking != BOOKING_CONFIRMED);
    check_job(e, p, booking, h->status);
}

/* A booking that was replaced had failed. */
static void check_past(struct event_state *e, const struct past_state *past)
{
    const struct hold_state *h = verify_hold(e, past->booking);
    bool is_logged = past->folded || (e->pruned_seq && (!h || !h->begun));
    verify_count(e, VERIFY_FOLD_BOOKINGS);
    if (!h || !h->booking)
        verify_violation(e->report, VERIFY_HOLD_STATUS,
                         "booking %lld failed before, but there is no other", (ll)past->booking);
    if (past->status != BOOKING_FAILED || past->cancelled || !is_logged)
        verify_violation(e->report, VERIFY_FOLD_BOOKINGS,
                         "the booking %lld that failed before: it is %s%s%s", (ll)past->booking,
                         word(AUDIT_BOOKING, past->status), past->cancelled ? ", cancelled" : "",
                         is_logged ? "" : ", and not in the log");
}

void verify_money(struct event_state *e)
{
    for (size_t i = 0; i < e->past.n; i++)
        check_past(e, &e->past.v[i]);
    for (size_t i = 0; i < e->payments.n; i++)
        check_payment(e, &e->payments.v[i]);
    for (size_t i = 0; i < e->refunds.n; i++)
        if (e->refunds.v[i].status == REFUND_OWED && !e->refunds.v[i].has_job)
            verify_violation(e->report, VERIFY_JOBS,
                             "booking %lld: a refund of %lld is owed, and has no job",
                             (ll)e->refunds.v[i].booking, (ll)e->refunds.v[i].amount);
}
