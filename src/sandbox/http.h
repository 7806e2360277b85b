/* The sandbox's routes: requests become orders, orders become answers.  On HTTP threads. */
#ifndef HF_SANDBOX_HTTP_H
#define HF_SANDBOX_HTTP_H

#include "base/digest.h"
#include "http/app.h"
#include "sandbox/bank_worker.h"

/* What handlers need to know; server_context() is this. */
struct sandbox_site {
    struct bank_worker *worker;
    bool one_account; /* the digests below are those of its keys; otherwise any test key will do */
    uint8_t secret_key[DIGEST_SIZE], publishable_key[DIGEST_SIZE];
};

/* Fills in the application that a server serves. */
void sandbox_app_init(struct http_app *app, struct sandbox_site *site);

#endif
