/* Every outcome the program can name, in one list: the enum, the HTTP status, the code a client
 * reads in `code` and the sentence in `title`.  Verdicts (seat_taken, hold_expired ...) are normal
 * answers; failures (ledger_unavailable, internal ...) travel in a struct hf_err.
 * HF_OUTCOME_UNKNOWN is neither: the outcome could not be learnt (I14).  No thread owns this file;
 * it has no state. */
#ifndef HF_BASE_STATUS_H
#define HF_BASE_STATUS_H

#include <stddef.h>

#define HF_STATUS_MAP(X)                                                                           \
    X(HF_OK, 200, "ok", "Done")                                                                    \
    X(HF_CREATED, 201, "created", "Created")                                                       \
    X(HF_NO_CONTENT, 204, "no_content", "Done")                                                    \
    X(HF_INVALID_REQUEST, 400, "invalid_request", "The request is malformed")                      \
    X(HF_DUPLICATE_SEAT, 400, "duplicate_seat", "A seat is named twice")                           \
    X(HF_TOO_MANY_SEATS, 400, "too_many_seats", "More places than one hold may take")              \
    X(HF_KEY_REQUIRED, 400, "idempotency_key_required", "An Idempotency-Key is required")          \
    X(HF_UNAUTHORIZED, 401, "unauthorized", "An access key is required")                           \
    X(HF_FORBIDDEN, 403, "forbidden", "The access key does not allow this")                        \
    X(HF_NOT_FOUND, 404, "not_found", "There is nothing at this path")                             \
    X(HF_NO_SUCH_EVENT, 404, "no_such_event", "There is no such event")                            \
    X(HF_NO_SUCH_SEAT, 404, "no_such_seat", "There is no such seat or area")                       \
    X(HF_NO_SUCH_HOLD, 404, "no_such_hold", "There is no such hold")                               \
    X(HF_NO_SUCH_BOOKING, 404, "no_such_booking", "There is no such booking")                      \
    X(HF_METHOD_NOT_ALLOWED, 405, "method_not_allowed", "This path does not take that method")     \
    X(HF_SEAT_TAKEN, 409, "seat_taken", "A seat is already taken")                                 \
    X(HF_SOLD_OUT, 409, "sold_out", "Not enough places are left")                                  \
    X(HF_EVENT_CLOSED, 409, "event_closed", "The event takes no new holds")                        \
    X(HF_HOLD_CONFIRMED, 409, "hold_confirmed", "The hold has been confirmed")                     \
    X(HF_RENEWAL_CAP, 409, "renewal_cap", "The hold cannot be extended any further")               \
    X(HF_STALE_FENCE, 409, "stale_fence", "The fence is not the hold's fence")                     \
    X(HF_SEAT_SOLD, 409, "seat_sold", "A seat has already been sold")                              \
    X(HF_HOLD_EXPIRED, 410, "hold_expired", "The hold has expired")                                \
    X(HF_HOLD_RELEASED, 410, "hold_released", "The hold has been released")                        \
    X(HF_BODY_TOO_LARGE, 413, "body_too_large", "The body is too large")                           \
    X(HF_KEY_MISMATCH, 422, "idempotency_mismatch",                                                \
      "The Idempotency-Key was used with another request")                                         \
    X(HF_TOO_MANY_HOLDS, 429, "too_many_holds", "This address holds as many places as it may")     \
    X(HF_INTERNAL, 500, "internal", "Something is wrong on our side")                              \
    X(HF_OVERLOADED, 503, "overloaded", "The server is busy; try again shortly")                   \
    X(HF_DRAINING, 503, "draining", "The server is shutting down")                                 \
    X(HF_LEDGER_UNAVAILABLE, 503, "ledger_unavailable", "The ledger cannot be written")            \
    X(HF_OUTCOME_UNKNOWN, 503, "outcome_unknown", "The outcome is not known")                      \
    /* between the ledger and the worker; should one get out, it reads as what it is a kind of */  \
    X(HF_LEDGER_SURPRISE, 500, "internal", "Something is wrong on our side")                       \
    X(HF_LEDGER_CONFLICT, 503, "ledger_unavailable", "The ledger cannot be written")

enum hf_status {
#define HF_STATUS_ENUM(name, http, code, title) name,
    HF_STATUS_MAP(HF_STATUS_ENUM)
#undef HF_STATUS_ENUM
        HF_STATUS_COUNT
};

int hf_status_http(enum hf_status status);
const char *hf_status_code(enum hf_status status);
const char *hf_status_title(enum hf_status status);

/* A failure, with a sentence for a person.  Zeroed means none. */
struct hf_err {
    enum hf_status code;
    char msg[256];
};

/* Fill `err` (may be NULL) and return `code`, so that callers can `return hf_err_set(...)`. */
__attribute__((format(printf, 3, 4))) enum hf_status
hf_err_set(struct hf_err *err, enum hf_status code, const char *fmt, ...);

#define HF_MUST_USE __attribute__((warn_unused_result))

/* hf_check aborts, in every build, when the program itself is wrong.  Never for input. */
#define hf_check(cond)                                                                             \
    ((__builtin_expect(!!(cond), 1)) ? (void)0 : hf_check_failed(#cond, __FILE__, __LINE__))
_Noreturn void hf_check_failed(const char *cond, const char *file, int line);

/* Allocation that cannot fail: out of memory ends the program, which the ledger survives (I7). */
void *hf_alloc(size_t size) __attribute__((malloc)); /* zeroed */
void *hf_realloc(void *old, size_t size);
char *hf_strndup(const char *text, size_t len);

#endif
