/* The requests of stripe.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "checkout/stripe.h"

#define LOOK_BACK_S 60   /* how far the provider's clock may be behind the ledger's */
#define LOOK_AHEAD_S 600 /* a call may have been under way when the hold ended */

/* ---- forms ---- */

static void put(struct buf *form, const char *name, const char *value)
{
    if (form->len)
        buf_char(form, '&');
    buf_percent(form, name);
    buf_char(form, '=');
    buf_percent(form, value);
}

static void put_int(struct buf *form, const char *name, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    put(form, name, text);
}

static void put_payment(struct buf *form, const struct job_row *job)
{
    char text[ID_TEXT_SIZE];
    id_format(text, "pay_", &job->payment);
    put(form, "metadata[" STRIPE_METADATA_PAYMENT "]", text);
}

static void put_create(struct buf *form, const struct job_row *job)
{
    put_int(form, "amount", job->amount);
    put(form, "currency", job->currency);
    put(form, "payment_method_types[]", "card");
    put(form, "capture_method", job->captures_by_hand ? "manual" : "automatic");
    put_payment(form, job);
    if (job->email[0])
        put(form, "receipt_email", job->email);
}

static void put_refund(struct buf *form, const struct job_row *job)
{
    put(form, "payment_intent", job->intent);
    put_int(form, "amount", job->amount);
    put_int(form, "metadata[" STRIPE_METADATA_REFUND "]", job->refund);
    put_payment(form, job);
}

/* Lists come newest first, so an upper bound spares pages of later intents. */
static void put_search(struct buf *form, const struct job_row *job)
{
    put_int(form, "created[gte]", job->booked_at / 1000 - LOOK_BACK_S);
    if (job->hold_expires_at > job->booked_at)
        put_int(form, "created[lte]", job->hold_expires_at / 1000 + LOOK_AHEAD_S);
}

/* ---- calls ---- */

/* Writes the path behind the base URL, and the parameters; returns whether it is a POST. */
static bool put_call(struct buf *url, struct buf *form, const struct job_row *job,
                     enum stripe_call call)
{
    bool names_intent = call == CALL_RETRIEVE || call == CALL_CAPTURE || call == CALL_CANCEL;
    hf_check(job->intent[0] || call == CALL_CREATE || call == CALL_LIST_INTENTS);
    buf_str(url, call == CALL_REFUND || call == CALL_LIST_REFUNDS ? "/v1/refunds"
                 : call == CALL_LIST_DISPUTES                     ? "/v1/disputes"
                                                                  : "/v1/payment_intents");
    if (names_intent) {
        buf_char(url, '/');
        buf_percent(url, job->intent);
    }
    switch (call) {
    case CALL_CREATE:
        put_create(form, job);
        return true;
    case CALL_CAPTURE:
        buf_str(url, "/capture");
        put_int(form, "amount_to_capture", job->amount);
        return true;
    case CALL_CANCEL:
        buf_str(url, "/cancel");
        put(form, "cancellation_reason", "abandoned");
        return true;
    case CALL_REFUND:
        put_refund(form, job);
        return true;
    case CALL_RETRIEVE:
        put(form, "expand[]", "latest_charge.refunds");
        return false;
    case CALL_LIST_INTENTS:
        put_search(form, job);
        put_int(form, "limit", STRIPE_LIST_MAX);
        return false;
    case CALL_LIST_REFUNDS:
    case CALL_LIST_DISPUTES:
        put(form, "payment_intent", job->intent);
        put_int(form, "limit", STRIPE_LIST_MAX);
        return false;
    case CALL_NONE:
        break;
    }
    hf_check_failed("a call", __FILE__, __LINE__);
}

static void add_header(struct stripe_request *request, const char *name, const char *value)
{
    hf_check(request->http.n_headers < sizeof request->headers / sizeof *request->headers);
    request->headers[request->http.n_headers++] = (struct http_header){name, value};
}

void stripe_request_init(struct stripe_request *ret, const struct stripe_config *config,
                         const struct job_row *job, enum stripe_call call, const char *cursor)
{
    *ret = (struct stripe_request){0};
    buf_str(&ret->url, config->api ? config->api : STRIPE_API);
    bool is_post = put_call(&ret->url, &ret->body, job, call);
    if (cursor && *cursor)
        put(&ret->body, "starting_after", cursor);
    if (!is_post) {
        buf_char(&ret->url, '?');
        buf_put(&ret->url, ret->body.data, ret->body.len);
        ret->body.len = 0;
    }
    buf_char(&ret->url, '\0');
    buf_printf(&ret->authorization, "Bearer %s", config->secret_key);
    buf_char(&ret->authorization, '\0');
    add_header(ret, "Authorization", ret->authorization.data);
    add_header(ret, "Stripe-Version", STRIPE_VERSION);
    if (is_post) {
        hex_format(job->key, sizeof job->key, ret->key);
        add_header(ret, "Content-Type", "application/x-www-form-urlencoded");
        add_header(ret, "Idempotency-Key", ret->key);
    }
    ret->http.method = is_post ? "POST" : "GET";
    ret->http.url = ret->url.data;
    ret->http.headers = ret->headers;
    ret->http.body = ret->body.data;
    ret->http.body_len = ret->body.len;
    ret->http.timeout_ms = STRIPE_TIMEOUT_MS;
    ret->http.is_repeatable = true; /* by its idempotency key */
}

void stripe_request_close(struct stripe_request *request)
{
    if (request->authorization.data)
        explicit_bzero(request->authorization.data, request->authorization.len);
    if (request->body.data)
        explicit_bzero(request->body.data, request->body.len);
    buf_close(&request->url);
    buf_close(&request->body);
    buf_close(&request->authorization);
    *request = (struct stripe_request){0};
}
