/* Delivers events to the webhook, on a thread of its own: several at once, so in no promised order,
 * each at least once, again and again while the endpoint does not answer with 2xx.
 *
 * The bank's thread hands events over with sender_send after their commit.  The outcome of each
 * attempt goes back through `report`, so that it is stored and survives a restart. */
#ifndef HF_SANDBOX_WEBHOOK_SENDER_H
#define HF_SANDBOX_WEBHOOK_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/status.h"
#include "sandbox/faults.h"

#define SENDER_QUEUE_MAX 20000  /* deliveries that wait; more of them are dropped and logged */
#define SENDER_PARALLEL 32      /* deliveries at a time */
#define SENDER_ATTEMPTS_MAX 100 /* then an event is given up: after about an hour and a half */

struct webhook_sender;

struct webhook_sender_config {
    const char *url;    /* borrowed for the sender's life */
    const char *secret; /* signs the events; borrowed */
    const struct clock *clock;
    /* On the sender's thread, after an attempt.  `retry_ms` is how long the next one is away; 0:
     * there is none, since the event was delivered or given up. */
    void (*report)(void *context, int64_t event, int64_t attempts, int64_t retry_ms);
    void *context;
};

HF_MUST_USE enum hf_status sender_start(const struct webhook_sender_config *config,
                                        struct webhook_sender **ret, struct hf_err *err);
/* Waits for the attempts under way, at most a few seconds.  Accepts NULL. */
void sender_stop(struct webhook_sender *s);

/* `body` is copied.  `in_ms` from now; the faults may make it later, twice or never. */
void sender_send(struct webhook_sender *s, int64_t event, const char *body, size_t len,
                 int64_t attempts, int64_t in_ms);
void sender_set_faults(struct webhook_sender *s, const struct faults *f);

/* Writes "t=...,v1=...", as Stripe signs, for the header Stripe-Signature. */
#define SIGNATURE_SIZE 100
void sender_sign(const char *secret, int64_t now_s, const char *body, size_t len,
                 char out[SIGNATURE_SIZE]);

#endif
