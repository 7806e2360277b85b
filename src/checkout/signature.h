/* Signatures of webhooks, both HMAC-SHA256.  Stripe signs the events that it sends to us; we sign
 * notifications to the shop by the Standard Webhooks specification.  Several secrets may be valid
 * at a time, so that one can be replaced by another without a gap.
 *
 * Pure functions, for any thread.  Secrets and signatures are compared in constant time, and no
 * message quotes one. */
#ifndef HF_CHECKOUT_SIGNATURE_H
#define HF_CHECKOUT_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

#define SIGNATURE_SECRETS_MAX 4
#define SIGNATURE_SECRET_SIZE 128 /* bytes of a secret */
#define SIGNATURE_HEADER_MAX 2048 /* length of a header that is checked */
#define SIGNATURE_TOLERANCE_S 300 /* how far a timestamp may be from now, in both directions */

/* Zeroed, it has no secret, and no signature is good. */
struct signature_secrets {
    size_t n;
    struct signature_secret {
        size_t len;
        uint8_t bytes[SIGNATURE_SECRET_SIZE];
    } list[SIGNATURE_SECRETS_MAX];
};

/* Read secrets that are separated by blanks or commas.  On failure *ret is untouched. */
/* Stripe's: "whsec_..." as the dashboard shows it, 16 to 127 characters. */
HF_MUST_USE bool signature_read_stripe_secrets(const char *text, struct signature_secrets *ret,
                                               struct hf_err *err);
/* Those of Standard Webhooks: "whsec_" and 24 to 64 bytes in base64. */
HF_MUST_USE bool signature_read_standard_secrets(const char *text, struct signature_secrets *ret,
                                                 struct hf_err *err);
/* Wipes them. */
void signature_secrets_close(struct signature_secrets *secrets);

enum signature_verdict {
    SIGNATURE_GOOD,
    SIGNATURE_MALFORMED, /* there is no header, or it is not one of Stripe's */
    SIGNATURE_WRONG,     /* no secret made any of its signatures */
    SIGNATURE_STALE      /* the signature is good, and its time is too far from now */
};

/* Checks a Stripe-Signature header ("t=...,v1=...", NULL: there is none) against the raw body.
 * `now_s` is the wall clock. */
enum signature_verdict signature_check_stripe(const char *header,
                                              const struct signature_secrets *secrets,
                                              const void *body, size_t len, int64_t now_s);

/* Appends the value of a webhook-signature header: one "v1,..." per secret, separated by blanks. */
void signature_write_standard(struct buf *out, const char *id, int64_t timestamp_s,
                              const void *body, size_t len,
                              const struct signature_secrets *secrets);

#endif
