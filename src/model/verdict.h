/* Every outcome a command can have.  It is one list of numbers: the failures of base/status.h come
 * first, with the same values, and the answers of the rules follow.  A verdict is a normal answer
 * and never an error; VERDICT_OUTCOME_UNKNOWN says that the outcome could not be learnt (I14).
 * What a client reads about a verdict (HTTP status, code, sentence) is src/api's, in one table. */
#ifndef HF_MODEL_VERDICT_H
#define HF_MODEL_VERDICT_H

#include <stdbool.h>

#include "base/status.h"

/* name, what happened */
#define VERDICT_MAP(X)                                                                             \
    X(CREATED, "created")                                                                          \
    X(DUPLICATE_SEAT, "a seat is named twice")                                                     \
    X(TOO_MANY_SEATS, "more places than one hold may take")                                        \
    X(NO_SUCH_EVENT, "there is no such event")                                                     \
    X(NO_SUCH_SEAT, "there is no such seat or area")                                               \
    X(NO_SUCH_TYPE, "there is no such ticket type")                                                \
    X(NO_SUCH_HOLD, "there is no such hold")                                                       \
    X(NO_SUCH_BOOKING, "there is no such booking")                                                 \
    X(SEAT_TAKEN, "a seat is held, booked or blocked")                                             \
    X(SOLD_OUT, "not enough places are left")                                                      \
    X(LONE_SEAT, "a single seat would be left between others")                                     \
    X(EVENT_CLOSED, "the event takes no new holds")                                                \
    X(HOLD_CONFIRMED, "the hold has been confirmed")                                               \
    X(HOLD_EXPIRED, "the hold has expired")                                                        \
    X(HOLD_RELEASED, "the hold has been released")                                                 \
    X(RENEWAL_CAP, "the hold cannot be extended any further")                                      \
    X(STALE_FENCE, "the fence is not the hold's fence")                                            \
    X(REFERENCE_MISMATCH, "the booking has another reference")                                     \
    X(SEAT_SOLD, "a seat has already been sold")                                                   \
    X(OWNER_LIMIT, "the owner has as many places as the event allows")                             \
    X(EVENT_ARCHIVED, "the event has been archived")                                               \
    X(EVENT_CANCELLED, "the event has been cancelled")                                             \
    X(BOOKING_EXISTS, "the hold has a booking that is not decided yet")                            \
    X(AMOUNT_TOO_SMALL, "the payment provider does not take so small an amount")                   \
    X(PAYMENTS_OFF, "the server takes no payments")                                                \
    X(TOO_MANY_BOOKINGS, "too many attempts to pay for the hold have failed")                      \
    X(NOT_REFUNDABLE, "there is not that much money to give back")                                 \
    X(SELLER_ONLY, "the hold is of a channel, to which only sellers may add")                      \
    X(NOT_HELD, "the hold does not have these places")                                             \
    X(TOO_MANY_CHANNELS, "the event has as many channels as it may have")                          \
    X(TOO_MANY_HOLDS, "the address holds as many places as it may")                                \
    X(WAITLIST_OFF, "the event has no waiting list")                                               \
    X(AVAILABLE, "what is wanted can be had at once")                                              \
    X(ALREADY_WAITING, "the owner waits already")                                                  \
    X(TOO_MANY_WAITS, "the address has as many entries of the waiting list as it may")             \
    X(NO_SUCH_WAIT, "there is no such entry of a waiting list")                                    \
    X(NOT_WAITING, "the entry does not wait any more")                                             \
    X(KEY_MISMATCH, "the idempotency key was used with another request")                           \
    X(KEY_UNUSED, "nothing is stored under the idempotency key")                                   \
    X(UNDECIDED, "what was asked so far does not decide it")                                       \
    X(DEFERRED, "the answer depends on what this batch stores, so the next batch gives it")

enum verdict {
#define VERDICT_ENUM(name, text) VERDICT_##name,
    HF_STATUS_MAP(VERDICT_ENUM) VERDICT_MAP(VERDICT_ENUM)
#undef VERDICT_ENUM
        VERDICT_COUNT
};

/* The verdict of a command that failed, or succeeded, with this status. */
static inline enum verdict verdict_of(enum hf_status status) { return (enum verdict)status; }

/* Was the command carried out? */
static inline bool verdict_is_success(enum verdict verdict)
{
    return verdict == VERDICT_OK || verdict == VERDICT_CREATED;
}

/* For logs and tests: "SEAT_TAKEN", and what happened. */
const char *verdict_name(enum verdict verdict);
const char *verdict_text(enum verdict verdict);

#endif
