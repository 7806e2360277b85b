/* The payment thread.  It runs the jobs that batches have stored: calls to the payment provider,
 * polls, notifications to the shop, the cancelling of whole events.  Whatever comes of a call is a
 * fact, which it submits to the engine like any other command; so no transaction waits for the
 * provider, and nothing is lost with this thread but time.
 *
 *   batch commits a job --> take (CMD_JOBS_TAKE) --> call --> fact (CMD_PAYMENT_UPDATE)
 *                            ^                                 |
 *                            +------ not done yet: again ------+
 *
 * A worker tells of new jobs by checkout_jobs_made.  Where calls are not limited it hands over
 * those that create intents, which then need not be taken.
 *
 * One thread, many requests in flight (net/http_pool.h).  Where servers share a ledger each has
 * such a thread, and jobs are leased, so that each job runs on one of them at a time.
 *
 *   checkout.c   the thread: taking jobs
 *   waits.c      requests of the API that wait for an intent
 *   errand.c     commands that the engine has; counts.c: metrics and alarms
 *   work.c       one job from its first call to the commit of its outcome
 *   cancel.c     cancelled events: their bookings, one after another
 *   stripe*.c, signature.c, webhook.c, notify.c   the protocols, as pure functions */
#ifndef HF_CHECKOUT_CHECKOUT_H
#define HF_CHECKOUT_CHECKOUT_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/pending.h"
#include "checkout/signature.h"
#include "checkout/stripe.h"
#include "engine/engine.h"

/* Texts are borrowed for the checkout's life. */
struct checkout_config {
    const struct clock *clock;
    struct metrics *metrics;
    struct stripe_config stripe; /* secret_key NULL: the server takes no payments */
    const char *provider;        /* its name in answers: "stripe" or "sandbox" */
    const char *public_api;      /* where buyers reach the sandbox; NULL: they use Stripe.js */
    struct signature_secrets webhook_secrets;
    bool captures_by_hand;
    int64_t rate;           /* calls per second of all servers together; 0: not limited */
    const char *notify_url; /* NULL: the shop is told nothing */
    struct signature_secrets notify_secrets;
    /* Appends the body of a notification.  `command` has been carried out and says how the booking
     * stands (CMD_BOOKING_GET), or a hold without a booking (CMD_HOLD_LIST). */
    void (*render_notice)(const struct job_row *job, const struct command *command,
                          struct buf *out);
};

struct checkout;

/* Checks the configuration; nothing runs yet. */
HF_MUST_USE enum hf_status checkout_new(const struct checkout_config *config, struct checkout **ret,
                                        struct hf_err *err);
/* Starts the thread. */
HF_MUST_USE enum hf_status checkout_start(struct checkout *c, struct engine *engine,
                                          struct hf_err *err);
/* Ends the thread and every wait.  Calls in flight are dropped; their jobs run again later.  Before
 * the engine is drained.  Accepts NULL. */
void checkout_stop(struct checkout *c);
void checkout_free(struct checkout *c); /* accepts NULL */

/* engine_config.jobs_made, with the checkout as context.  Any thread. */
void checkout_jobs_made(void *checkout, const struct job_row *jobs, size_t n);
/* engine_config.hands_jobs_over: true if calls are not limited, so that no budget has to be asked.
 */
bool checkout_takes_at_once(const struct checkout *c);

const struct checkout_config *checkout_settings(const struct checkout *c);
/* The provider as the actor of what it has told us: "provider:stripe". */
const char *checkout_actor(const struct checkout *c);

/* ---- for HTTP threads ---- */

/* Waits until the booking's intent has been created, or refused, or CHECKOUT_WAIT_MS have passed.
 * `key` is the hash of the request's idempotency key. */
#define CHECKOUT_WAIT_MS 500
struct checkout_wait {
    struct pending pending; /* pending_done is called once */
    int64_t booking;
    const uint8_t *key;
    bool has_payment; /* out: the intent came, and `payment` is what was stored with it */
    struct payment_row payment;
    int64_t until_us;
    struct checkout_wait *next;
};
void checkout_await(struct checkout *c, struct checkout_wait *wait);
/* Is a request with this idempotency key waiting for the provider, on this server? */
bool checkout_is_awaited(struct checkout *c, const uint8_t *key);

/* Counts a webhook by what became of it. */
enum webhook_count {
    WEBHOOKS_STORED,
    WEBHOOKS_REPEATED,
    WEBHOOKS_PARKED,
    WEBHOOKS_UNUSED,
    WEBHOOKS_FOREIGN,
    WEBHOOKS_FORGED,
    WEBHOOKS_MALFORMED,
    WEBHOOKS_COUNTED
};
void checkout_count_webhook(struct checkout *c, enum webhook_count what);
/* The provider did something that it should not have done: tells the operator. */
void checkout_alarm(struct checkout *c, const char *what);

#endif
