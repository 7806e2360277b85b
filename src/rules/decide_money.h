/* What is owed after a change of a booking's money; shared by decide_payment.c (facts about
 * payments) and decide_booking.c (what buyers and sellers ask for).  Internal to the rules.
 *
 * After every change money_settle derives from the state what is owed: money back, a call about the
 * intent, the next poll.  Jobs thus never depend on the way that led to a state (I10), and a
 * captured payment is either that of a confirmed booking or owed back (I9). */
#ifndef HF_RULES_DECIDE_MONEY_H
#define HF_RULES_DECIDE_MONEY_H

#include "rules/decide_internal.h"
#include "rules/payment.h"

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
    bool is_polled;      /* the provider has answered the poll job of the payment */
    enum job_kind ended; /* the call of this kind, about the intent, is over; 0: none is */
};

/* The status of the payment's own booking. */
enum booking_status money_booking(const struct payment_view *v);
/* Draws a number for a payment, a refund or a job: a fence of the event. */
int64_t money_number(struct event *e);

/* Owes a job, in the place of a stored one of the same number. */
struct job_row *money_put_job(struct decision *d, enum job_kind kind, int64_t booking, int64_t job);
/* The owed job of this number; NULL: there is none. */
struct job_row *money_find_job(const struct money *money, int64_t job);
/* The poll that the payment is owed since the ledger was restored; NULL: there is none. */
const struct job_row *money_poll_job(const struct money *money, int64_t payment);
/* Ends a stored job; `job` is its row as read. */
void money_end_job(struct decision *d, const struct job_row *job);
/* Owes `amount` of the payment back. */
struct refund_row *money_owe_refund(struct decision *d, struct payment_view *v, int64_t amount,
                                    int64_t due_at);

/* Gives the booking another status, and tells the shop. */
void money_set_booking(struct decision *d, struct payment_view *v, enum booking_status to);
/* Derives what is owed from the state, and writes the payment. */
void money_settle(struct decision *d, struct payment_view *v);

#endif
