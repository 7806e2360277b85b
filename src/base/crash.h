/* Places where a test build ends the process on purpose, as kill -9 or a power cut would: without
 * cleanup, at the worst moments of a checkout.  tests/fault/checkout_crash.test.mjs goes through
 * all of those, and compares the books of ledger and provider afterwards;
 * tests/server/migrate.test.mjs ends a migration.
 *
 * Builds with -DHF_CRASH_POINTS, which are those of the sanitizers and of coverage, look at
 * HOLDFAST_CRASH_AT: NAME or NAME:N for the Nth time that the place is reached.  Without that
 * variable nothing happens.  In all other builds, the product among them, CRASH_POINT is empty. */
#ifndef HF_BASE_CRASH_H
#define HF_BASE_CRASH_H

/* name, where */
#define CRASH_POINT_MAP(X)                                                                         \
    X(booking_before_commit, "a batch with a new booking has been written, but not committed")     \
    X(booking_after_commit, "it has been committed, but nobody has been told")                     \
    X(fact_before_commit, "a batch with a fact about a payment, likewise")                         \
    X(fact_after_commit, "")                                                                       \
    X(webhook_before_commit, "a batch with a webhook, likewise")                                   \
    X(webhook_after_commit, "")                                                                    \
    X(expiry_before_commit, "a batch that ends a hold whose booking is pending, likewise")         \
    X(expiry_after_commit, "")                                                                     \
    X(refund_before_commit, "a batch that owes a refund, likewise")                                \
    X(refund_after_commit, "")                                                                     \
    X(jobs_taken, "jobs have been taken, and leased, but none has begun")                          \
    X(call_begins, "a job is about to call the provider")                                          \
    X(create_answered, "the provider has created an intent, and nothing is stored of it")          \
    X(capture_answered, "the provider has captured, and nothing is stored of it")                  \
    X(cancel_answered, "the provider has canceled, and nothing is stored of it")                   \
    X(refund_answered, "the provider has refunded, and nothing is stored of it")                   \
    X(poll_answered, "the provider has answered a poll, and nothing is stored of it")              \
    X(notice_answered, "the shop has received a notification, and nothing is stored of it")        \
    X(migration_before_commit, "the tables of a schema version have been made, not committed")

enum crash_point {
#define CRASH_POINT_ENUM(name, text) CRASH_##name,
    CRASH_POINT_MAP(CRASH_POINT_ENUM)
#undef CRASH_POINT_ENUM
        CRASH_POINTS
};

#ifdef HF_CRASH_POINTS
/* Ends the process if this is the place and the time. */
void crash_reached(enum crash_point point);
#define CRASH_POINT(name) crash_reached(CRASH_##name)
#else
#define CRASH_POINT(name) ((void)0)
#endif

#endif
