/* A simulator of Stripe's protocol: payment intents, charges, refunds, disputes, events and signed
 * webhooks, with test cards and faults on purpose.  It shares the HTTP transport, the HTTP client
 * and the SQL layer with the server: its state, threads and SQLite file are its own.
 *
 *   sandbox_start ... (any number of clients) ... sandbox_stop
 *
 * HTTP threads read requests (http.c) and hand them to one thread that owns the state
 * (bank_worker.h, bank.h); another one delivers webhooks (webhook_sender.h).  Both functions are
 * for a main thread. */
#ifndef HF_SANDBOX_SANDBOX_H
#define HF_SANDBOX_SANDBOX_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/status.h"

struct sandbox;

/* Texts are copied. */
struct sandbox_config {
    int listen_fd;        /* taken over, also on failure; see http/listen.h */
    const char *base_url; /* how buyers reach it, without a slash at the end; NULL: http:// and the
                             address that listen_fd listens on */
    const char *data;     /* the SQLite file; NULL: nothing outlives the process */
    /* The keys of the only account; NULL: any sk_test_X is an account, and pk_test_X its
     * publishable key.  Either both are given or none. */
    const char *secret_key, *publishable_key;
    const char *webhook;        /* the URL that events are sent to; NULL: they are only recorded */
    const char *webhook_secret; /* signs them; required with `webhook` */
    const char *faults;         /* as POST /sandbox/faults takes them; NULL: none */
    const struct clock *clock;  /* borrowed */
    unsigned threads;           /* of HTTP; 0: one */
    bool request_log;           /* log a line for each answer, at level info */
};

HF_MUST_USE enum hf_status sandbox_start(const struct sandbox_config *config, struct sandbox **ret,
                                         struct hf_err *err);
/* Answers what has been accepted; requests that a fault delays or holds are ended at once.  Accepts
 * NULL. */
void sandbox_stop(struct sandbox *s);
/* Where it is reached: "http://127.0.0.1:12111". */
const char *sandbox_url(const struct sandbox *s);

#endif
