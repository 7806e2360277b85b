/* The money side of a booking: payments, refunds, facts and jobs.
 *
 *   hold      1 : n      booking        one after another: the next only when the last has failed
 *   booking   1 : 0..1   payment        of an amount above 0; one intent of the provider
 *   payment   1 : n      refund         owed by us, or made in the provider's dashboard
 *   payment   1 : 0..1   intent job     what is to become of the intent: create, capture, cancel
 *   payment   1 : 0..1   poll job       a restored payment that the provider must be asked about
 *   refund    1 : 0..1   refund job
 *   booking   1 : n      notification   a job that tells the shop
 *
 * Their rows are all found by the key of the booking, which is that of its hold.  Payments, refunds
 * and notifications have numbers of their own: event << 40 | a fence of the event, and so have poll
 * jobs.  The intent job has its payment's number, a refund job its refund's.
 *
 * A fact is something that the provider told us about a payment.  It makes no difference whether it
 * was the answer to a call, a webhook or a poll: src/checkout brings all of them into a struct
 * fact, and payment_apply (rules/payment.h) decides what it changes.
 *
 * A job is stored in the commit that made it necessary, and ends in the commit that stores its
 * result.  Whoever runs a job leases it for JOB_LEASE_MS of the ledger's time; jobs of a server
 * that died are thus run by another one, or by the same one after its restart.  Nothing here has
 * side effects. */
#ifndef HF_MODEL_PAYMENT_H
#define HF_MODEL_PAYMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "base/vec.h"

#define PROVIDER_ID_SIZE 64    /* of pi_..., re_..., evt_..., with the NUL */
#define CLIENT_SECRET_SIZE 128 /* with the NUL */
#define ERROR_CODE_SIZE 64     /* with the NUL */
#define ERROR_TEXT_SIZE 256    /* with the NUL */
#define REFUNDS_MAX 100        /* of one payment */
#define REFUND_TRIES 3         /* of ours for the same money, when they fail later */
#define JOB_KEY_SIZE 16        /* of the idempotency key of a job: 128 random bits */
#define JOB_LEASE_MS                                                                               \
    25000 /* of ledger time: longer than a call, and a job that is taken over                      \
             then is run within 30 s of its hold's end */
#define JOB_KEY_KEPT_MS (23 * 3600 * 1000LL) /* how long the provider surely knows a key */
#define EMAIL_LEN_MAX 254

enum payment_status {
    PAYMENT_NONE,
    PAYMENT_CREATING,
    PAYMENT_REQUIRES_PAYMENT,
    PAYMENT_REQUIRES_ACTION,
    PAYMENT_PROCESSING,
    PAYMENT_AUTHORIZED,
    PAYMENT_CAPTURING,
    PAYMENT_SUCCEEDED,
    PAYMENT_CANCELED,
    PAYMENT_REFUNDING,
    PAYMENT_REFUNDED,
    PAYMENT_REFUND_FAILED
};

/* Why the last attempt to pay, or our last call, failed.  Empty strings: not known. */
struct payment_error {
    char code[ERROR_CODE_SIZE];
    char decline_code[ERROR_CODE_SIZE];
    char message[ERROR_TEXT_SIZE];
};

/* A row of `payments`. */
struct payment_row {
    struct id id;    /* as the provider's metadata have it: the booking's key and a secret */
    int64_t payment; /* its number; 0: there is no payment */
    int64_t amount, created_at, updated_at;
    int64_t received; /* captured money */
    int64_t disputed; /* the amount that was disputed; 0: none */
    int64_t poll_at;  /* when to ask the provider about it; 0: no need */
    enum payment_status status;
    bool captures_by_hand; /* the card is authorized first, and charged once the seats are booked */
    bool is_wrong;         /* the captured amount or currency was not what we asked for */
    char currency[4];
    char intent[PROVIDER_ID_SIZE];          /* empty: not known */
    char client_secret[CLIENT_SECRET_SIZE]; /* empty: not known, or of no use any more */
    struct payment_error error;
};

/* ---- refunds ---- */

/* Ordered: a refund moves only forward through these.  It can fail after it succeeded. */
enum refund_status { REFUND_OWED = 1, REFUND_PENDING, REFUND_SUCCEEDED, REFUND_FAILED };

/* A row of `refunds`. */
struct refund_row {
    int64_t refund; /* its number */
    int64_t booking, payment, amount, created_at, updated_at;
    enum refund_status status;
    bool is_ours;                    /* false: made in the provider's dashboard */
    char provider[PROVIDER_ID_SIZE]; /* the provider's id of it; empty: not known */
    char error[ERROR_TEXT_SIZE];     /* why it failed; empty: not known */
};

/* ---- jobs ---- */

/* In the order in which jobs may use the budget of requests. */
enum job_kind { JOB_REFUND = 1, JOB_CANCEL, JOB_CAPTURE, JOB_CREATE, JOB_POLL, JOB_NOTIFY };
enum job_status { JOB_OWED = 1, JOB_DONE, JOB_FAILED };

/* What a notification tells the shop. */
enum notice {
    NOTICE_BOOKING_CONFIRMED = 1,
    NOTICE_BOOKING_FAILED,
    NOTICE_BOOKING_CANCELLED,
    NOTICE_REFUND_SUCCEEDED,
    NOTICE_REFUND_FAILED,
    NOTICE_PAYMENT_DISPUTED,
    NOTICE_HOLD_EXPIRED,
    /* The booking of the job is the key of an entry of a waiting list. */
    NOTICE_WAITLIST_OFFERED,
    NOTICE_WAITLIST_LAPSED,
    NOTICE_WAITLIST_ENDED
};
/* Is the notice about an entry of a waiting list? */
static inline bool notice_is_of_wait(enum notice notice)
{
    return notice >= NOTICE_WAITLIST_OFFERED && notice <= NOTICE_WAITLIST_ENDED;
}
/* "booking.confirmed"; NULL if the number is none. */
const char *notice_text(enum notice notice);
/* "refund", "cancel" ...; NULL if the number is none. */
const char *job_kind_text(enum job_kind kind);
const char *refund_status_text(enum refund_status status);
const char *job_status_text(enum job_status status);

/* A row of `jobs`, or a payment whose poll is due (JOB_POLL, job 0).  A poll that is stored as a
 * job is owed: it ends only with an answer of the provider. */
struct job_row {
    int64_t job;        /* its number */
    int64_t booking;    /* the key of the booking, and of its hold */
    int64_t payment_no; /* the number of the payment; 0: none */
    int64_t amount;     /* JOB_CREATE, JOB_CAPTURE, JOB_REFUND */
    int64_t refund; /* JOB_REFUND: the row that it pays; of notices about refunds, too; 0: none */
    int64_t created_at, due_at, leased_until, ended_at;
    int64_t key_used_at; /* when `key` was first used; 0: not yet */
    enum job_kind kind;
    enum job_status status;
    enum notice notice; /* JOB_NOTIFY */
    uint32_t attempts;  /* begun so far */
    bool checks_first;  /* ask what the provider has before acting, and then under a new key */
    uint8_t key[JOB_KEY_SIZE];   /* the idempotency key of the call */
    char error[ERROR_TEXT_SIZE]; /* of the last attempt; empty: none */
    /* What the call needs to know of the payment; set by ledger_jobs_take, and for JOB_CREATE by
     * the rules. */
    struct id payment; /* key 0: there is none */
    char intent[PROVIDER_ID_SIZE];
    char currency[4];
    char email[EMAIL_LEN_MAX + 1];
    int64_t booked_at;       /* when the booking was made */
    int64_t hold_expires_at; /* no intent is created at or after this */
    enum payment_status payment_status;
    bool captures_by_hand;
};

/* ---- facts ---- */

/* What a fact says about the intent.  Only the last three are about money, and only those are
 * monotone: an intent goes from REQUIRES_ACTION and PROCESSING back to REQUIRES_PAYMENT. */
enum intent_state {
    INTENT_UNSAID, /* the fact is about something else, such as a refund */
    INTENT_ABSENT, /* the provider has no such intent, or refused to make one */
    INTENT_REQUIRES_PAYMENT,
    INTENT_REQUIRES_ACTION,
    INTENT_PROCESSING,
    INTENT_AUTHORIZED,
    INTENT_CAPTURED,
    INTENT_CANCELED
};

struct refund_fact {
    char id[PROVIDER_ID_SIZE];
    int64_t amount;
    int64_t refund;            /* number of our row, from the refund's metadata; 0: not ours */
    enum refund_status status; /* PENDING, SUCCEEDED or FAILED */
};

struct fact {
    /* A retrieve, or the answer to our own call, shows the intent as it is now.  A webhook shows it
     * as it was, so what it says beside money only makes us ask. */
    bool is_current;
    enum intent_state state;
    bool
        capture_refused; /* the provider refused to capture, and a retrieve shows that it did not */
    int64_t amount;      /* of the intent; 0: unsaid */
    int64_t received;    /* INTENT_CAPTURED */
    int64_t disputed;    /* amount of a dispute; 0: unsaid */
    char currency[4];    /* of the intent; empty: unsaid */
    char intent[PROVIDER_ID_SIZE];
    char client_secret[CLIENT_SECRET_SIZE]; /* empty: unsaid */
    struct payment_error error;             /* of the last attempt to pay; empty code: none */
    bool asks;                              /* says nothing by itself, but that a retrieve would */
    VEC(struct refund_fact) refunds;
};
void fact_close(struct fact *fact); /* accepts a zeroed struct */

/* A row of `payment_events`: a webhook, by the provider's id of it.  Its body is not stored. */
struct payment_event {
    char id[PROVIDER_ID_SIZE];
    char type[ERROR_CODE_SIZE];
    int64_t created_at; /* by the provider's clock */
};

/* All rows about the money of one hold's bookings. */
struct money {
    VEC(struct payment_row) payments; /* of the current booking and of those that failed before */
    VEC(struct refund_row) refunds;
    VEC(struct job_row) jobs; /* that are owed */
};
void money_clear(struct money *money);
void money_close(struct money *money); /* accepts a zeroed struct */

/* What became of a job that was run. */
enum job_result {
    JOB_RESULT_NONE, /* the fact is not that of a job */
    JOB_RESULT_DONE,
    JOB_RESULT_RETRY,   /* again after delay_ms, under the same key */
    JOB_RESULT_CHECK,   /* again after delay_ms, beginning with a look at what the provider has */
    JOB_RESULT_NEW_KEY, /* the look showed that it was not done: again, under a new key */
    JOB_RESULT_FAILED   /* it never will be */
};
struct job_report {
    int64_t job; /* 0: none */
    enum job_kind kind;
    enum job_result result;
    int64_t leased_until; /* of the lease under which it was run; another one is none of ours */
    int64_t delay_ms;
    char error[ERROR_TEXT_SIZE]; /* empty: none */
};

#endif
