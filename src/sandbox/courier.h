/* Delivers events to the webhook, on a thread of its own: several at once, so in no promised order,
 * each at least once, again and again while the endpoint does not answer with 2xx.
 *
 * The bank's thread hands events over with courier_send after their commit.  The outcome of each
 * attempt goes back through `report`, so that it is stored and survives a restart. */
#ifndef HF_SANDBOX_COURIER_H
#define HF_SANDBOX_COURIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/status.h"
#include "sandbox/faults.h"

#define COURIER_QUEUE_MAX 20000  /* deliveries that wait; more of them are dropped and logged */
#define COURIER_PARALLEL 32      /* deliveries at a time */
#define COURIER_ATTEMPTS_MAX 100 /* then an event is given up: after about an hour and a half */

struct courier;

struct courier_config {
    const char *url;    /* borrowed for the courier's life */
    const char *secret; /* signs the events; borrowed */
    const struct clock *clock;
    /* On the courier's thread, after an attempt.  `retry_ms` is how long the next one is away; 0:
     * there is none, since the event was delivered or given up. */
    void (*report)(void *context, int64_t event, int64_t attempts, int64_t retry_ms);
    void *context;
};

HF_MUST_USE enum hf_status courier_start(const struct courier_config *config, struct courier **ret,
                                         struct hf_err *err);
/* Waits for the attempts under way, at most a few seconds.  Accepts NULL. */
void courier_stop(struct courier *c);

/* `body` is copied.  `in_ms` from now; the faults may make it later, twice or never. */
void courier_send(struct courier *c, int64_t event, const char *body, size_t len, int64_t attempts,
                  int64_t in_ms);
void courier_set_faults(struct courier *c, const struct faults *f);

/* Writes "t=...,v1=...", as Stripe signs, for the header Stripe-Signature. */
#define SIGNATURE_SIZE 100
void courier_sign(const char *secret, int64_t now_s, const char *body, size_t len,
                  char out[SIGNATURE_SIZE]);

#endif
