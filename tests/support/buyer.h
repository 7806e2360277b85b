/* A buyer who pays, for tests of the payment rules on the paper ledger.  Whatever a shop runs is
 * run twice: first in a batch that fails, which must leave no trace in the view, then in one that
 * is stored.  After it every claim of paper_check holds, and the view of another server, which only
 * reads what the batches logged, shows the same. */
#ifndef HF_TESTS_SUPPORT_BUYER_H
#define HF_TESTS_SUPPORT_BUYER_H

#include "support/paper.h"

struct shop {
    struct paper paper;
    struct event *event;
    /* the other server */
    struct view *view;
    struct event *twin;
    size_t n_seen; /* rows of the log that it has read */
};
/* `def` is used up. */
void shop_init(struct shop *s, struct event_def *def);
void shop_close(struct shop *s);
void shop_pass_ms(struct shop *s, int64_t ms);
/* Runs the command, again in the next batch while it is deferred. */
enum verdict shop_run(struct shop *s, struct ask *a);
/* The same, and closes it. */
enum verdict shop_do(struct shop *s, struct ask *a);

struct buyer {
    struct shop *shop;
    struct id hold, booking, payment;
    int64_t fence, amount;
    bool alarmed; /* by the last fact */
};
/* Holds seats from `first` on. */
void buyer_hold(struct buyer *b, struct shop *s, uint32_t first, uint32_t n);
/* Makes a booking of the hold; what it needs of the answer is kept. */
enum verdict buyer_book(struct buyer *b);
/* The same with the card charged only once the seats are booked. */
enum verdict buyer_book_by_hand(struct buyer *b);

/* What the provider says, and what came of a job. */
struct news {
    struct fact fact; /* its currency, if empty, is the event's */
    struct job_report report;
    const char *webhook; /* the provider's id of it; NULL: it is an answer */
};
enum verdict buyer_told(struct buyer *b, const struct news *news);
/* An answer of the provider that shows the intent as it is now. */
enum verdict buyer_told_state(struct buyer *b, enum intent_state state);
enum verdict buyer_told_captured(struct buyer *b, int64_t received);
/* A refund at the provider; `refund` is the number of our row, or 0. */
enum verdict buyer_told_refund(struct buyer *b, const char *id, int64_t refund, int64_t amount,
                               enum refund_status status);
enum verdict buyer_reported(struct buyer *b, const struct job_row *job, enum job_result result);
enum verdict buyer_cancelled(struct buyer *b); /* the seller cancels the booking */
enum verdict buyer_refunded(struct buyer *b, int64_t amount);

/* How things stand; NULL or 0 if there is none. */
const struct hold_row *buyer_hold_row(const struct buyer *b);
enum hold_status buyer_hold_status(const struct buyer *b);
enum booking_status buyer_booking(const struct buyer *b);
const struct payment_row *buyer_payment(const struct buyer *b);
const struct job_row *buyer_job(const struct buyer *b); /* of the intent */
/* The newest refund of ours. */
const struct refund_row *buyer_refund(const struct buyer *b);
size_t buyer_refunds(const struct buyer *b);

#endif
