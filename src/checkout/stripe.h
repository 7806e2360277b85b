/* Stripe's protocol, as far as it needs no socket: builds the requests of a job, and reads the
 * answers into facts (model/payment.h).  The sandbox speaks the same protocol.
 *
 *   job + call  --stripe_request_init-->  struct http_request  --net/http_pool.h-->
 *               --stripe_read-->          struct fact and struct stripe_outcome
 *
 * Pure functions without state, for any thread.  Nothing here is logged; the messages in outcomes
 * and errors have had keys, client secrets, card numbers and e-mail addresses removed. */
#ifndef HF_CHECKOUT_STRIPE_H
#define HF_CHECKOUT_STRIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/random.h"
#include "base/status.h"
#include "model/payment.h"
#include "net/http_client.h"

/* The version that the official packages of autumn 2026 send. */
#define STRIPE_VERSION "2026-10-28.endive"
#define STRIPE_API "https://api.stripe.com"
#define STRIPE_KEY_LEN_MAX 255
#define STRIPE_TIMEOUT_MS 20000 /* of one call; a job is leased for longer */
/* For the pool's options: a page of 100 intents with full metadata fits. */
#define STRIPE_BODY_LEN_MAX ((size_t)4 << 20)
#define STRIPE_LIST_MAX 100                     /* objects on one page of a list */
#define STRIPE_AMOUNT_MAX INT64_C(999999999999) /* twelve digits, the most that Stripe charges */
#define STRIPE_RETRY_AFTER_MAX_MS 3600000       /* a longer Retry-After is taken for this */

/* Names of metadata that we set. */
#define STRIPE_METADATA_PAYMENT "holdfast_payment" /* of intents and refunds: "pay_..." */
#define STRIPE_METADATA_REFUND "holdfast_refund"   /* of refunds: the key of our row, in decimal */

struct stripe_config {
    const char *api; /* base URL without a final slash; NULL means STRIPE_API */
    const char *secret_key, *publishable_key;
};

/* Checks the form of all three.  A live key goes only to STRIPE_API, http:// only to loopback, and
 * both keys must be of one mode.  The sentence in `err` does not quote a key. */
HF_MUST_USE bool stripe_check_config(const struct stripe_config *config, struct hf_err *err);
/* Whether the secret key is a live one. */
bool stripe_is_live(const struct stripe_config *config);

/* ---- requests ---- */

enum stripe_call {
    CALL_NONE,
    CALL_CREATE,
    CALL_RETRIEVE, /* with the refunds of its charge */
    CALL_CAPTURE,
    CALL_CANCEL,
    CALL_REFUND,
    CALL_LIST_INTENTS,  /* finds the intent of a payment by its metadata */
    CALL_LIST_REFUNDS,  /* of the intent, at most REFUNDS_MAX */
    CALL_LIST_DISPUTES, /* of the intent */
};

/* A request and everything that it points to.  It may not be copied or moved once it is filled. */
struct stripe_request {
    struct http_request http;
    struct http_header headers[4];
    struct buf url, body, authorization;
    char key[2 * JOB_KEY_SIZE + 1];
};

/* Fills `ret`.  The same job and call always make the same request, byte by byte.  All calls but
 * CALL_CREATE and CALL_LIST_INTENTS need job->intent.  `cursor` is that of the outcome before, for
 * the next page of a list; NULL or "" means the first page. */
void stripe_request_init(struct stripe_request *ret, const struct stripe_config *config,
                         const struct job_row *job, enum stripe_call call, const char *cursor);
/* Wipes and frees.  Accepts a zeroed struct. */
void stripe_request_close(struct stripe_request *request);

/* ---- answers ---- */

enum stripe_result {
    /* The answer was read; the fact says what it showed. */
    STRIPE_DONE,
    /* Nothing is known to have happened: repeat the call later, with the same key. */
    STRIPE_RETRY,
    /* The provider keeps answering this key with an old failure, or refuses the key itself.  Check
     * what it has done, then act under a new key. */
    STRIPE_NEEDS_NEW_KEY,
    /* The provider has decided, and will decide the same again.  `error` says why.  A repeat under
     * the same key gets the same answer even after the reason has gone. */
    STRIPE_REFUSED,
    /* The provider does not know the intent; the fact is INTENT_ABSENT. */
    STRIPE_GONE,
    /* The answer is about something that is not ours: another mode, another payment or another
     * intent than the one asked for.  The fact is empty. */
    STRIPE_FOREIGN,
};

struct stripe_outcome {
    enum stripe_result result;
    /* A call that is needed to know everything; CALL_NONE: none.  STRIPE_DONE: the next page of the
     * list (with `cursor`), the intent that a list has (its id is the fact's), refunds that did not
     * fit into the answer, or the amount of a dispute.
     * STRIPE_REFUSED: what to look at before the refusal is believed.  A refused refund may mean
     * that the charge is refunded already; a refused capture or cancel, that the intent has moved
     * on. */
    enum stripe_call next;
    char cursor[PROVIDER_ID_SIZE]; /* for stripe_request_init */
    int64_t retry_after_ms;        /* 0: the provider did not say */
    struct payment_error error;    /* everything but STRIPE_DONE */
};

/* Reads how a call ended.  Fills `ret_fact` in any case; close it with fact_close.
 *
 * STRIPE_DONE and, where the refusal names the state of the intent, STRIPE_REFUSED come with a
 * fact. The fact of a repeated call may be old, since the provider repeats its first answer; it
 * then is not current, and asks unless it is about money. CALL_LIST_INTENTS without a match on the
 * last page is STRIPE_DONE with INTENT_ABSENT. CALL_CREATE that is refused has INTENT_ABSENT. */
void stripe_read(const struct stripe_config *config, enum stripe_call call,
                 const struct job_row *job, const struct http_exchange *x, struct fact *ret_fact,
                 struct stripe_outcome *ret);

/* How long to wait before the next attempt, after `attempts` of them: random between 0.5 s and a
 * limit that doubles from 1 s to 12 s, but never less than `retry_after_ms`. */
int64_t stripe_backoff_ms(uint32_t attempts, int64_t retry_after_ms, struct random *random);

/* The smallest amount, in the currency's smallest unit, that Stripe charges in a currency ("eur",
 * in either case); 0: not known. */
int64_t stripe_minimum(const char *currency);

#endif
