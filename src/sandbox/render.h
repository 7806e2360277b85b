/* The bank's objects as the JSON that Stripe's clients expect.  Every member that Stripe's types
 * declare is there, most of them null.  Pure functions. */
#ifndef HF_SANDBOX_RENDER_H
#define HF_SANDBOX_RENDER_H

#include "base/buf.h"
#include "sandbox/bank.h"

#define API_VERSION "2026-08-26.dahlia" /* whose shapes these are */

/* Which references are replaced by their objects. */
struct expand {
    bool latest_charge;  /* of an intent */
    bool payment_method; /* of an intent */
    bool refunds;        /* of a charge */
    bool payment_intent; /* of a charge or refund */
    bool charge;         /* of a refund */
};

void render_intent(struct buf *out, const struct bank *b, const struct intent *i,
                   const struct expand *expand);
void render_charge(struct buf *out, const struct bank *b, const struct charge *c,
                   const struct expand *expand);
void render_refund(struct buf *out, const struct bank *b, const struct refund *r,
                   const struct expand *expand);
void render_dispute(struct buf *out, const struct bank *b, const struct dispute *d);
/* The whole document of a new event about object `number`. */
void render_stripe_event(struct buf *out, const struct bank *b, const struct stripe_event *e,
                         int64_t number);
/* {"error":{...}} */
void render_error(struct buf *out, const struct bank *b, const struct api_error *refusal);

#endif
