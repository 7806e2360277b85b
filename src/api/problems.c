/* See problems.h. */
#include "api/problems.h"

/* clang-format off */
const struct problem problem_key_required =
    PROBLEM(400, "idempotency_key_required", "An Idempotency-Key is required",
            "An Idempotency-Key is required");

const struct problem problem_key_in_flight =
    PROBLEM_RETRY(409, "idempotency_in_flight", "The first request with this key is still running",
                  "It waits for the payment provider; repeat the request after Retry-After.");
const struct problem problem_bad_signature =
    PROBLEM(400, "bad_signature", "The webhook is not signed by the payment provider",
            "Check the signing secret, the clock, and that nothing changed the body on its way.");

static const struct problem event_cancelled =
    PROBLEM(409, "event_cancelled", "The event has been cancelled",
            "Its bookings are cancelled and refunded; it is not on sale any more.");
static const struct problem booking_exists =
    PROBLEM(409, "booking_exists", "The hold has a booking already",
            "The payment of that booking decides; GET the hold to find it.");
static const struct problem amount_too_small =
    PROBLEM(400, "amount_too_small", "The amount is below the payment provider's minimum",
            "The payment provider does not charge so little; the hold stays as it is.");
static const struct problem payments_off =
    PROBLEM(409, "payments_off", "This server takes no payments",
            "A seller can confirm the hold instead.");
static const struct problem too_many_bookings =
    PROBLEM(409, "too_many_bookings", "Too many attempts to pay for this hold have failed",
            "Release the hold and hold the seats again.");
static const struct problem not_refundable =
    PROBLEM(409, "not_refundable", "There is not that much money to give back",
            "Nothing was paid, or it is refunded already; see available.");
static const struct problem duplicate_seat =
    PROBLEM(400, "duplicate_seat", "A seat is named twice",
            "Name each seat once.");
static const struct problem too_many_seats =
    PROBLEM(400, "too_many_seats", "More places than one hold may take",
            "More places than one hold may take");
static const struct problem no_such_event =
    PROBLEM(404, "no_such_event", "There is no such event",
            "No event has this id.");
static const struct problem no_such_seat =
    PROBLEM(404, "no_such_seat", "There is no such seat or area",
            "The event has no seats of these names.");
static const struct problem no_such_type =
    PROBLEM(404, "no_such_type", "There is no such ticket type",
            "The event has no ticket type of this id.");
static const struct problem no_such_hold =
    PROBLEM(404, "no_such_hold", "There is no such hold",
            "No hold has this id.");
static const struct problem no_such_booking =
    PROBLEM(404, "no_such_booking", "There is no such booking",
            "No booking has this id.");
static const struct problem seat_taken =
    PROBLEM(409, "seat_taken", "A seat is already taken",
            "These seats are held, booked or blocked; choose others.");
static const struct problem lone_seat =
    PROBLEM(409, "lone_seat", "A single seat would be left over",
            "Nobody could sit beside the seats listed; choose seats that leave none alone.");
static const struct problem sold_out =
    PROBLEM(409, "sold_out", "Not enough places are left",
            "Fewer are left than were asked for; see available.");
static const struct problem event_closed =
    PROBLEM(409, "event_closed", "The event takes no new holds",
            "The seller has closed the sale for now.");
static const struct problem event_archived =
    PROBLEM(409, "event_archived", "The event has been archived",
            "An archived event is neither opened nor closed again.");
static const struct problem owner_limit =
    PROBLEM(409, "owner_limit", "The owner has as many places as the event allows",
            "Its live holds and bookings count; see limit.");
static const struct problem not_held =
    PROBLEM(404, "no_such_seat", "The hold does not have these places",
            "Only places of the hold can be taken out or get another type.");
static const struct problem too_many_channels =
    PROBLEM(409, "too_many_channels", "The event has as many channels as it may have",
            "Block for one of the channels that the event has.");
static const struct problem hold_confirmed =
    PROBLEM(409, "hold_confirmed", "The hold has been confirmed",
            "The hold has become a booking.");
static const struct problem renewal_cap =
    PROBLEM(409, "renewal_cap", "The hold cannot be extended any further",
            "Its max_expires_at is reached, or too near to leave time to pay.");
static const struct problem stale_fence =
    PROBLEM(409, "stale_fence", "The fence is not the hold's fence",
            "Send the fence of the hold's latest answer.");
static const struct problem reference_mismatch =
    PROBLEM(409, "reference_mismatch", "The booking has another reference",
            "The hold was confirmed with another reference, or with none.");
static const struct problem seat_sold =
    PROBLEM(409, "seat_sold", "A seat has already been sold",
            "A seat has already been sold");
static const struct problem hold_expired =
    PROBLEM(410, "hold_expired", "The hold has expired",
            "Its time ran out before this request; hold the seats again.");
static const struct problem hold_released =
    PROBLEM(410, "hold_released", "The hold has been released",
            "It was given back; hold the seats again.");
static const struct problem key_mismatch =
    PROBLEM(422, "idempotency_mismatch", "The Idempotency-Key was used with another request",
            "The key belongs to another method, path or body; use a new key.");
static const struct problem too_many_holds =
    PROBLEM_RETRY(429, "too_many_holds", "This address holds as many places as it may",
                  "Release a hold, buy, or wait until one expires.");
static const struct problem waitlist_off =
    PROBLEM(409, "waitlist_off", "The event has no waiting list",
            "Nobody can wait for places of this event.");
static const struct problem available =
    PROBLEM(409, "available", "What is wanted can be had at once",
            "Make a hold instead.");
static const struct problem already_waiting =
    PROBLEM(409, "already_waiting", "The owner waits already",
            "Its live entries count; see limit.");
static const struct problem too_many_waits =
    PROBLEM_RETRY(429, "too_many_waits", "This address has as many entries as it may",
                  "Leave the list with one of them, or wait until one ends.");
static const struct problem no_such_wait =
    PROBLEM(404, "no_such_entry", "There is no such entry of a waiting list",
            "No entry has this id.");
static const struct problem not_waiting =
    PROBLEM(409, "not_waiting", "The entry does not wait",
            "It has been offered places, or has ended; GET it to see which.");
static const struct problem ledger_unavailable =
    PROBLEM_RETRY(503, "ledger_unavailable", "The ledger cannot be written",
                  "Nothing was done; repeat the request after Retry-After.");
static const struct problem outcome_unknown =
    PROBLEM(503, "outcome_unknown", "The outcome is not known",
            "It may or may not have been done; look it up before repeating it.");

/* ---- the lock service ---- */

const struct problem problem_no_such_session =
    PROBLEM(404, "no_such_session", "There is no such session",
            "No session has this id.");
static const struct problem no_standby =
    PROBLEM(409, "no_standby", "There is no server to hand over to",
            "No other server of the cell has reported lately.");
static const struct problem lock_taken =
    PROBLEM(409, "lock_taken", "The lock is taken",
            "Others hold it or were first; ask again with the same owner to keep the place.");
static const struct problem session_expired =
    PROBLEM(410, "session_expired", "The session has ended",
            "All of its locks have ended with it; open another session.");
static const struct problem lock_lost =
    PROBLEM(410, "lock_lost", "The owner does not have this lock",
            "It was released, lost or broken, or its place was given up; use another owner.");
static const struct problem deadlock =
    PROBLEM(409, "deadlock", "To wait for this lock would close a cycle",
            "See cycle; release what you hold and begin again.");
static const struct problem mode_conflict =
    PROBLEM(409, "mode_conflict", "The owner has asked for this lock in another mode",
            "See mode; modes do not change, so release it or use another owner.");
static const struct problem slots_conflict =
    PROBLEM(409, "slots_conflict", "Others have asked for another number of slots",
            "See slots; all who use a name must ask for the same number.");
static const struct problem lock_stale_fence =
    PROBLEM(409, "stale_fence", "The fence is not the fence of this lock",
            "The owner holds the lock with another fence.");
static const struct problem too_many_sessions =
    PROBLEM_RETRY(429, "too_many_sessions", "There are as many sessions as there may be",
                  "End sessions that are not needed, or wait until some expire.");
static const struct problem too_many_locks =
    PROBLEM_RETRY(429, "too_many_locks", "There are as many locks as there may be",
                  "Release locks that are not needed.");
static const struct problem too_many_waiters =
    PROBLEM_RETRY(429, "too_many_waiters", "As many wait for this lock as may wait",
                  "Nothing was done; repeat the request later.");
static const struct problem no_master =
    PROBLEM_RETRY(503, "no_master", "The lock service has no master just now",
                  "Nothing was done; repeat the request after Retry-After.");
static const struct problem journal_unavailable =
    PROBLEM_RETRY(503, "journal_unavailable", "The journal of the lock service cannot be written",
                  "Nothing was done; repeat the request after Retry-After.");
static const struct problem lock_unknown =
    PROBLEM_RETRY(503, "outcome_unknown", "The outcome is not known",
                  "It may have been done; repeat the request with the same owner to find out.");
/* clang-format on */

static const struct problem *const cell_problems[CELL_RESULTS] = {
    [CELL_TAKEN] = &lock_taken,
    [CELL_NO_SESSION] = &session_expired,
    [CELL_LOST] = &lock_lost,
    [CELL_DEADLOCK] = &deadlock,
    [CELL_MODE_CONFLICT] = &mode_conflict,
    [CELL_SLOTS_CONFLICT] = &slots_conflict,
    [CELL_STALE_FENCE] = &lock_stale_fence,
    [CELL_TOO_MANY_SESSIONS] = &too_many_sessions,
    [CELL_TOO_MANY_LOCKS] = &too_many_locks,
    [CELL_TOO_MANY_WAITERS] = &too_many_waiters,
    [CELL_NO_MASTER] = &no_master,
    [CELL_UNAVAILABLE] = &journal_unavailable,
    [CELL_UNKNOWN] = &lock_unknown,
    [CELL_OVERLOADED] = &problem_overloaded,
    [CELL_STOPPING] = &problem_draining,
    [CELL_NO_STANDBY] = &no_standby,
};

const struct problem *problem_of_cell(enum cell_result result)
{
    return cell_problems[result] ? cell_problems[result] : &problem_internal;
}

/* A verdict that is missing here is a success, or is answered as an internal error, or never
 * reaches a client: VERDICT_KEY_UNUSED, VERDICT_UNDECIDED and VERDICT_DEFERRED only say how to go
 * on, and VERDICT_UNAVAILABLE is a status that the engine never sets. */
static const struct problem *const problems[VERDICT_COUNT] = {
    [VERDICT_INVALID_REQUEST] = &problem_invalid_request,
    [VERDICT_OVERLOADED] = &problem_overloaded,
    [VERDICT_DRAINING] = &problem_draining,
    [VERDICT_STORE_UNAVAILABLE] = &ledger_unavailable,
    [VERDICT_CONFLICT] = &ledger_unavailable,
    [VERDICT_OUTCOME_UNKNOWN] = &outcome_unknown,
    [VERDICT_DUPLICATE_SEAT] = &duplicate_seat,
    [VERDICT_TOO_MANY_SEATS] = &too_many_seats,
    [VERDICT_NO_SUCH_EVENT] = &no_such_event,
    [VERDICT_NO_SUCH_SEAT] = &no_such_seat,
    [VERDICT_NO_SUCH_TYPE] = &no_such_type,
    [VERDICT_NO_SUCH_HOLD] = &no_such_hold,
    [VERDICT_NO_SUCH_BOOKING] = &no_such_booking,
    [VERDICT_SEAT_TAKEN] = &seat_taken,
    [VERDICT_LONE_SEAT] = &lone_seat,
    [VERDICT_SOLD_OUT] = &sold_out,
    [VERDICT_EVENT_CLOSED] = &event_closed,
    [VERDICT_EVENT_ARCHIVED] = &event_archived,
    [VERDICT_EVENT_CANCELLED] = &event_cancelled,
    [VERDICT_BOOKING_EXISTS] = &booking_exists,
    [VERDICT_AMOUNT_TOO_SMALL] = &amount_too_small,
    [VERDICT_PAYMENTS_OFF] = &payments_off,
    [VERDICT_TOO_MANY_BOOKINGS] = &too_many_bookings,
    [VERDICT_NOT_REFUNDABLE] = &not_refundable,
    [VERDICT_OWNER_LIMIT] = &owner_limit,
    [VERDICT_NOT_HELD] = &not_held,
    [VERDICT_SELLER_ONLY] = &problem_unauthorized,
    [VERDICT_TOO_MANY_CHANNELS] = &too_many_channels,
    [VERDICT_HOLD_CONFIRMED] = &hold_confirmed,
    [VERDICT_HOLD_EXPIRED] = &hold_expired,
    [VERDICT_HOLD_RELEASED] = &hold_released,
    [VERDICT_RENEWAL_CAP] = &renewal_cap,
    [VERDICT_STALE_FENCE] = &stale_fence,
    [VERDICT_REFERENCE_MISMATCH] = &reference_mismatch,
    [VERDICT_SEAT_SOLD] = &seat_sold,
    [VERDICT_TOO_MANY_HOLDS] = &too_many_holds,
    [VERDICT_KEY_MISMATCH] = &key_mismatch,
    [VERDICT_WAITLIST_OFF] = &waitlist_off,
    [VERDICT_AVAILABLE] = &available,
    [VERDICT_ALREADY_WAITING] = &already_waiting,
    [VERDICT_TOO_MANY_WAITS] = &too_many_waits,
    [VERDICT_NO_SUCH_WAIT] = &no_such_wait,
    [VERDICT_NOT_WAITING] = &not_waiting,
};

const struct problem *problem_of(enum verdict verdict)
{
    return problems[verdict] ? problems[verdict] : &problem_internal;
}
