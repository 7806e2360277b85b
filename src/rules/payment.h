/* What a fact about a payment changes.  Pure: a function of the state that the fact meets, which
 * rules/payment.md shows as a table and tests/unit/test_payment.c walks cell by cell.
 *
 * Money facts (authorized, captured, canceled) are monotone: the first of them decides, and
 * repetitions and late arrivals of the others change nothing more.  Everything before them is
 * display, and follows the newest look at the intent.  Jobs are not part of this: which call is
 * owed to the provider, and how much money is owed back, follows from the state afterwards
 * (payment_job, money_settle), so a lost, repeated or reordered fact cannot leave a wrong job
 * behind.  Keeps I9 and I10. */
#ifndef HF_RULES_PAYMENT_H
#define HF_RULES_PAYMENT_H

#include "model/rows.h"

struct payment_case {
    enum hold_status hold;
    enum booking_status booking; /* FAILED for the payment of a booking that another replaced */
    enum payment_status payment;
    bool has_received; /* its money was captured before */
    bool has_intent;   /* the provider's id of the intent is known */
    bool may_rescue;   /* the hold has expired, and can still be sold to its owner */
    bool is_wrong;     /* the fact names another amount or currency than the payment's */
};

struct payment_step {
    enum payment_status payment; /* afterwards */
    enum booking_status booking; /* afterwards */
    bool books;                  /* the places of the live hold become booked */
    bool rescues;                /* so do those of the expired hold, with a new fence */
    bool frees;                  /* the booked places are free again */
    bool alarms;                 /* the provider did something that it should not have done */
};
void payment_apply(const struct payment_case *c, const struct fact *fact, struct payment_step *ret);

/* Which call about the intent is owed to the provider; 0: none. */
enum job_kind payment_job(enum payment_status payment, enum booking_status booking,
                          enum hold_status hold);

/* What was received and given back.  Refunds of the payment alone are counted. */
struct payment_balance {
    int64_t received;
    int64_t returned;   /* the provider has it, or has given it back */
    int64_t settled;    /* of that, given back */
    int64_t owed;       /* not yet sent to the provider */
    int failed;         /* refunds of ours that failed */
    bool last_failed;   /* the latest of ours that the provider has heard of */
    int64_t settled_at; /* when the last refund succeeded; 0: none has */
};
struct payment_balance payment_balance(const struct payment_row *payment,
                                       const struct refund_row *refunds, size_t n);
/* Must all of its money go back?  It stays only for a confirmed booking. */
static inline bool payment_returns(const struct payment_row *p, enum booking_status booking)
{
    return p->received > 0 && booking != BOOKING_CONFIRMED;
}
/* The status of a payment that has received money. */
enum payment_status payment_status_of(const struct payment_balance *b, bool returns);

/* When to ask the provider about the payment next; 0: never. */
int64_t payment_poll_at(const struct payment_row *p, const struct payment_balance *b,
                        int64_t hold_expires_at, bool hold_is_live, int64_t now);

static inline bool payment_is_open(enum payment_status status)
{
    return status >= PAYMENT_CREATING && status <= PAYMENT_CAPTURING;
}

#endif
