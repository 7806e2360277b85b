/* The bank's thread.  It takes all orders that have gathered, carries them out one after another,
 * stores what they changed in one commit, and only then answers them and has the courier send their
 * events.  Faults, delays and idempotency keys are its business too. */
#ifndef HF_SANDBOX_TELLER_H
#define HF_SANDBOX_TELLER_H

#include "base/clock.h"
#include "base/status.h"
#include "sandbox/order.h"

#define TELLER_QUEUE_MAX 8192 /* orders that wait or are held; more of them are refused */

struct teller;

struct teller_config {
    const char *data;                     /* the SQLite file; NULL: nothing outlives the process */
    const char *base_url;                 /* of action pages */
    const char *webhook, *webhook_secret; /* NULL: events are not sent */
    const char *faults;                   /* JSON; NULL: none */
    const struct clock *clock;
};

/* The texts of `config` are borrowed for the teller's life. */
HF_MUST_USE enum hf_status teller_start(const struct teller_config *config, struct teller **ret,
                                        struct hf_err *err);
/* Lends an order to the teller, until its pending is done.  Returns false if the teller takes no
 * more.
 */
HF_MUST_USE bool teller_submit(struct teller *t, struct order *o);
/* Ends the thread: every order that was taken is answered when this returns, held ones by a reset,
 * and from now on none is taken. */
void teller_close(struct teller *t);
/* After teller_close, when no thread can submit any more.  Accepts NULL. */
void teller_free(struct teller *t);

#endif
