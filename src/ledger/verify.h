/* Checks every invariant that the rows of the ledger can show, on one snapshot.  Uses a connection
 * of its own that only reads, so it works beside running servers; any thread.
 *
 * Memory holds one event at a time: 72 bytes per seat, 152 per hold, 104 per entry of its waiting
 * list, 80 per payment, 40 per refund and 32 per failed booking that another one followed.  The
 * cost is one ordered pass over each table.
 *
 * The log of an archived event may begin after its events.pruned_seq, and its finished holds may be
 * gone.  What seats, holds and areas were at that point cannot be known, so it is taken from the
 * rows: chains that begin after it are judged in full, others from their first remaining row on,
 * and rows that the rest of the log does not mention are compared with each other only.
 *
 * Up to events.holds_pruned_seq the log of any event may have gaps: finished holds that sold
 * nothing are gone, each with all of its rows, after which its places were what they had been
 * before.  So the rest of the log is folded as if they had never been, and judged in full. */
#ifndef HF_LEDGER_VERIFY_H
#define HF_LEDGER_VERIFY_H

#include <stdint.h>

#include "base/clock.h"
#include "base/status.h"

/* Name, invariant, what must be true, and the kind of rows on which it is checked. */
#define VERIFY_CHECKS(X)                                                                           \
    X(SEAT_OWNER, "I1", "a held or booked seat belongs to one live hold that lists it", "seats")   \
    X(ONE_OWNER, "I1", "no seat is listed by two live holds", "claims")                            \
    X(SALES, "I1", "the seats sold are the seats booked, each with its booking", "sales")          \
    X(AREAS, "I2", "no area has more places held, booked and blocked than it has", "areas")        \
    X(AREA_COUNTERS, "I2", "an area's counters are the sums of its live holds", "areas")           \
    X(HOLD_STATUS, "I3", "a hold's status agrees with its seats and its booking", "holds")         \
    X(MERGED, "I3", "a hold that was booked with another is released, the other is booked",        \
      "merged holds")                                                                              \
    X(CONFIRM_TIME, "I4", "no hold was confirmed at or after its expiry", "confirms")              \
    X(FENCE_CLOCK, "I5", "no fence is above its event's clock", "fences")                          \
    X(FENCE_SHARED, "I5", "no two holds share a fence", "holds")                                   \
    X(FENCE_ORDER, "I5", "fences only grow, grant by grant and seat by seat", "changes")           \
    X(HOLD_SEATS, "I6", "a hold's places are distinct, of its event, and what it was granted",     \
      "holds")                                                                                     \
    X(PRICES, "I6", "a hold's amount is the sum of the prices of its places", "holds")             \
    X(PAYMENTS, "I9", "each payment is that of one booking, of its amount, with its own intent",   \
      "payments")                                                                                  \
    X(CAPTURED, "I9", "captured money has a confirmed booking, or goes back in full", "payments")  \
    X(REFUNDS, "I9", "no more goes back than was received, and the payment's status says so",      \
      "payments")                                                                                  \
    X(JOBS, "I9", "what is owed to the provider has its job, and each job is owed", "jobs")        \
    X(LOG_SEQ, "I11", "the log has no gaps and ends at its event's clock", "changes")              \
    X(LOG_TIME, "I11", "the log's time never goes back, nor past its event's clock", "changes")    \
    X(LOG_CHAIN, "I11", "each change begins where the one before ended, and names it", "changes")  \
    X(ACTORS, "I11", "the actor of each change is of a known kind", "changes")                     \
    X(CHANNELS, "I11", "blocked places go to holds of their channel, and return to it", "places")  \
    X(HEADS, "I11", "stored heads name the last change of each seat", "seats")                     \
    X(FOLD_SEATS, "I11", "the log, folded, gives every seat", "seats")                             \
    X(FOLD_HOLDS, "I11", "the log, folded, gives every hold", "holds")                             \
    X(FOLD_BOOKINGS, "I11", "the log, folded, gives every booking", "bookings")                    \
    X(FOLD_PAYMENTS, "I11", "the log, folded, gives every payment", "payments")                    \
    X(FOLD_AREAS, "I11", "the log, folded, gives every area's counters and blocks", "areas")       \
    X(FOLD_EVENTS, "I11", "the log, folded, gives every event's status", "events")                 \
    X(FOLD_WAITS, "I11", "the log, folded, gives every entry of the waiting lists", "entries")     \
    X(STRAYS, "I11", "every row belongs to an event", "rows")                                      \
    X(SCHEMA, "I11", "the tables, and all that belongs to them, are as Holdfast makes them",       \
      "objects")                                                                                   \
    X(FILE, "I7", "the database's file is sound (SQLite)", "files")                                \
    X(WAITS, "I17", "entries have numbers as they came, and each offered one its own live hold",   \
      "entries")                                                                                   \
    X(GATE, "I12", "the gate has no seat that the ledger does not give its hold", "entries")       \
    X(TURNS, "I17", "what becomes free goes to the next on the waiting list whom it fits", "turns")

enum verify_id {
#define VERIFY_ENUM(name, invariant, what, unit) VERIFY_##name,
    VERIFY_CHECKS(VERIFY_ENUM)
#undef VERIFY_ENUM
        VERIFY_COUNT
};

#define VERIFY_EXAMPLES 5
#define VERIFY_EXAMPLE_SIZE 400

struct verify_check {
    const char *invariant, *what, *unit;
    int64_t rows; /* checked */
    int64_t violations;
    /* The first violations, in words, with the ledger's own numbers; see cli/verify_names.h. */
    char examples[VERIFY_EXAMPLES][VERIFY_EXAMPLE_SIZE];
};

struct verify_report {
    int64_t events;
    int64_t violations; /* of all checks */
    /* Payments whose money must go back, and for which the last refund that we try has failed.
     * That is no violation: the money counts as owed until somebody gives it back. */
    int64_t owed;
    char owed_examples[VERIFY_EXAMPLES][VERIFY_EXAMPLE_SIZE];
    /* Payments that have not been compared with the provider since the ledger was restored.  That
     * is no violation either: the provider is asked until it has answered. */
    int64_t unchecked;
    struct verify_check checks[VERIFY_COUNT];
};

/* Returns HF_OK if everything could be read; the report then says what is wrong.  Makes the checks
 * before VERIFY_GATE; for the others see cli/verify_gate.h and cli/verify_waits.h. */
HF_MUST_USE enum hf_status ledger_verify(const char *url, const struct clock *clock,
                                         struct verify_report *ret, struct hf_err *err);

/* Adds a violation of a check, in words. */
__attribute__((format(printf, 3, 4))) void
verify_violation(struct verify_report *report, enum verify_id check, const char *fmt, ...);

#endif
