/* Reads the provider's events.  The caller has checked the signature of the bytes
 * (checkout/signature.h); what they say is still foreign, and so may be what they are about.
 *
 * An event shows its object as it was.  Only what cannot be undone is taken from it: money that was
 * authorized or captured, an intent that was canceled, refunds, and disputes.  All other events
 * that we use only ask for a retrieve.  Pure functions. */
#ifndef HF_CHECKOUT_WEBHOOK_H
#define HF_CHECKOUT_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "model/payment.h"

#define WEBHOOK_LEN_MAX ((size_t)256 << 10) /* a longer body is malformed */

enum webhook_verdict {
    WEBHOOK_GOOD,      /* `fact` says something, or asks */
    WEBHOOK_UNUSED,    /* a type that we have no use for, or an object of no payment of ours */
    WEBHOOK_FOREIGN,   /* of the other mode, or of another account */
    WEBHOOK_MALFORMED, /* not an event as Stripe sends it */
};

struct webhook {
    struct payment_event event; /* WEBHOOK_MALFORMED: empty */
    /* The payment that the metadata name.  Intents always name it.  Charges, refunds and disputes
     * need not (key 0): fact.intent then finds the payment, or it is not ours. */
    struct id payment;
    struct fact fact; /* WEBHOOK_GOOD; fact.intent is set */
};

/* `livemode` is that of our secret key.  Fills `ret` in any case; close it with webhook_close. */
enum webhook_verdict webhook_read(const char *body, size_t len, bool livemode, struct webhook *ret);
void webhook_close(struct webhook *webhook);

#endif
