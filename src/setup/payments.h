/* Payments as the program's options have them: which provider, whose keys, what the shop is told.
 * On the main thread, when the server starts and stops. */
#ifndef HF_SETUP_PAYMENTS_H
#define HF_SETUP_PAYMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/settings.h"
#include "base/status.h"

struct checkout;
struct sandbox;

/* Texts of the options; NULL: not given. */
struct payment_options {
    const char *provider; /* sandbox, stripe or off */
    const char *stripe_api, *capture, *rate, *notify, *notify_events, *public_url;
    const char *sandbox_listen;
    bool sandbox_public;
    bool has_tls; /* the server; its sandbox then sends no webhooks, and payments are polled */
};

struct payments {
    struct checkout *checkout;
    struct sandbox *sandbox; /* NULL: none runs in this process */
    int sandbox_fd;          /* until it is started; -1: none */
    unsigned notices;        /* for engine_config */
    char sandbox_url[96];
    char secret_key[64], publishable_key[64], webhook_secret[64]; /* of the sandbox */
    char webhook_url[128];
    char data[4096];
    const struct clock *clock;
};

/* Checks the options and prepares the checkout; nothing runs yet.  `address` is where the server
 * listens.  HF_INVALID_REQUEST: the message says which option, or which variable, is wrong. */
HF_MUST_USE enum hf_status payments_prepare(struct payments *p, const struct payment_options *o,
                                            const struct settings *settings, const char *data,
                                            const char *address, bool is_loopback,
                                            const struct clock *clock, struct metrics *metrics,
                                            struct hf_err *err);
/* Starts the sandbox, if this process has one. */
HF_MUST_USE enum hf_status payments_start(struct payments *p, struct hf_err *err);
void payments_stop(struct payments *p);
/* For the log: "sandbox", "stripe" or "off". */
const char *payments_text(const struct payments *p);

#endif
