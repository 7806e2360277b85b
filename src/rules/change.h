/* Single changes of a batch, each made in three places at once: the worker's side of the view, the
 * batch to be stored, and the log.  Only the files of decide_internal.h call these; the rules are
 * there. */
#ifndef HF_RULES_CHANGE_H
#define HF_RULES_CHANGE_H

#include "rules/decision.h"
#include "view/waitlist.h"

/* What places pass to, and what the log says about it. */
struct transition {
    enum seat_status to;
    enum audit_cause cause;
    int64_t hold;  /* the hold that takes or gives them; 0: none */
    int64_t fence; /* of that hold, or of the seller's change */
    int64_t until; /* when the hold expires; 0: the places are not held */
    /* The channel that seats are blocked for (CAUSE_BLOCK), or that the places of the hold's areas
     * are of.  Seats return to the channel that they have come from by themselves. */
    uint32_t channel;
    /* Types of the places, seats before areas, which change_seats and change_areas read on in.
     * NULL: they are not told. */
    struct price_reader *types;
};

/* Adds a row to the event's log, with the next seq and d->actor; the caller fills in what applies.
 * The rows of one transition follow each other: hold, booking, seats, areas (ledger/log.h). */
struct audit_row *change_log(struct decision *d, struct event *e, enum audit_object object,
                             enum audit_cause cause, int from, int to);
/* Changes a seat; `row` is its row in the log and gets its place in the chain.  NULL: a renewal,
 * which has no row for each seat.  Several changes of one seat in a batch become one write. */
void change_seat(struct decision *d, struct event *e, uint32_t index, const struct transition *t,
                 struct audit_row *row);
/* Changes seats of a hold, with a row of the log for each.  A seat that becomes free is blocked
 * again if it was blocked for a channel.  A seat that is neither free nor the
 * hold's own is left alone: only a ledger that was changed behind our back can have one. */
void change_seats(struct decision *d, struct event *e, const uint32_t *seats, uint32_t n,
                  const struct transition *t);
/* Moves places of areas from one status to another, with a row of the log for each area and type.
 * With a channel, SEAT_AVAILABLE stands for blocked for that channel. */
void change_areas(struct decision *d, struct event *e, const struct area_claim *areas, uint32_t n,
                  enum seat_status from, const struct transition *t);
/* Logs that a hold which has no entry in the view, or none yet, passes to another status. */
void change_log_hold(struct decision *d, struct event *e, struct hold_row *row,
                     enum audit_cause cause, enum hold_status from, enum hold_status to);
/* Gives a live hold another status, fence or expiry. */
void change_hold(struct decision *d, struct hold *h, enum hold_status to, enum audit_cause cause,
                 int64_t fence, int64_t expires_at);
/* Gives a live hold other places and a new fence; returns its new entry in the view.  `seats` and
 * `areas` are the places that it has then. */
struct hold *change_places(struct decision *d, struct hold *h, const struct hold_places_write *to);
/* Gives the event another status, or other terms (NULL: the same), of which it takes over a
 * reference. */
void change_event(struct decision *d, struct event *e, enum event_status to, enum audit_cause cause,
                  const struct event_terms *terms);
/* Adds a row about a booking or a payment to the log and to the chain of its hold.  `h` is the
 * hold's entry in the view; NULL: it has none. */
struct audit_row *change_log_money(struct decision *d, struct event *e, struct hold_row *hold,
                                   struct hold *h, enum audit_object object, enum audit_cause cause,
                                   int from, int to);
/* Gives a booking another status. */
void change_booking(struct decision *d, struct event *e, const struct booking_write *to,
                    enum audit_cause cause, struct hold_row *hold, struct hold *h);
/* Adds an entry to the waiting list. */
void change_wait_new(struct decision *d, struct event *e, struct wait_row *row, uint64_t owner);
/* What becomes of an entry, and what the log says about it. */
struct wait_transition {
    enum wait_status to;
    enum audit_cause cause;
    enum wait_reason reason; /* WAIT_ENDED */
    int64_t hold;            /* that it is offered, or was; 0: none */
    int64_t until;           /* when that hold expires, if it is offered */
    bool comes_first, is_read;
};
void change_wait(struct decision *d, struct event *e, struct wait_entry *x,
                 const struct wait_transition *t);
/* Says which payment a live hold waits for; 0: none. */
void change_hold_payment(struct decision *d, struct hold *h, int64_t payment);

#endif
