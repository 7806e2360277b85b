/* The bank's thread.  It takes all orders that have gathered, carries them out one after another,
 * stores what they changed in one commit, and only then answers them and has the sender send their
 * events.  Faults, delays and idempotency keys are its business too. */
#ifndef HF_SANDBOX_BANK_WORKER_H
#define HF_SANDBOX_BANK_WORKER_H

#include "base/clock.h"
#include "base/status.h"
#include "sandbox/order.h"

#define BANK_QUEUE_MAX 8192 /* orders that wait or are held; more of them are refused */

struct bank_worker;

struct bank_worker_config {
    const char *data;                     /* the SQLite file; NULL: nothing outlives the process */
    const char *base_url;                 /* of action pages */
    const char *webhook, *webhook_secret; /* NULL: events are not sent */
    const char *faults;                   /* JSON; NULL: none */
    const struct clock *clock;
};

/* The texts of `config` are borrowed for the worker's life. */
HF_MUST_USE enum hf_status bank_worker_start(const struct bank_worker_config *config,
                                             struct bank_worker **ret, struct hf_err *err);
/* Lends an order to the worker, until its pending is done.  Returns false if the worker takes no
 * more.
 */
HF_MUST_USE bool bank_worker_submit(struct bank_worker *w, struct order *o);
/* Ends the thread: every order that was taken is answered when this returns, held ones by a reset,
 * and from now on none is taken. */
void bank_worker_close(struct bank_worker *w);
/* After bank_worker_close, when no thread can submit any more.  Accepts NULL. */
void bank_worker_free(struct bank_worker *w);

#endif
