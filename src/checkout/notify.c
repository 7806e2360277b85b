/* See notify.h. */
#include "checkout/notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"

void notify_id(const struct job_row *job, char ret[NOTIFY_ID_SIZE])
{
    memcpy(ret, "msg_", 4);
    hex_format(job->key, sizeof job->key, ret + 4);
}

bool notify_check_url(const char *url, struct hf_err *err)
{
    struct http_origin origin;
    if (!http_origin_parse(url, &origin)) {
        (void)hf_err_set(err, HF_INVALID_REQUEST,
                         "the URL for notifications must begin with http:// or https://");
        return false;
    }
    if (!origin.is_tls && !origin.is_loopback) {
        (void)hf_err_set(err, HF_INVALID_REQUEST,
                         "notifications are sent without TLS only to this machine; use an https:// "
                         "URL");
        return false;
    }
    return true;
}

void notify_request_init(struct notify_request *ret, const char *url, const struct job_row *job,
                         const struct buf *payload, int64_t now_s,
                         const struct signature_secrets *secrets)
{
    *ret = (struct notify_request){0};
    notify_id(job, ret->id);
    (void)snprintf(ret->timestamp, sizeof ret->timestamp, "%" PRId64, now_s);
    signature_write_standard(&ret->signature, ret->id, now_s, payload->data, payload->len, secrets);
    buf_char(&ret->signature, '\0');
    ret->headers[0] = (struct http_header){"Content-Type", "application/json"};
    ret->headers[1] = (struct http_header){"webhook-id", ret->id};
    ret->headers[2] = (struct http_header){"webhook-timestamp", ret->timestamp};
    ret->headers[3] = (struct http_header){"webhook-signature", ret->signature.data};
    ret->http = (struct http_request){
        .method = "POST",
        .url = url,
        .headers = ret->headers,
        .n_headers = sizeof ret->headers / sizeof *ret->headers,
        .body = payload->data,
        .body_len = payload->len,
        .timeout_ms = NOTIFY_TIMEOUT_MS,
        .is_repeatable = true, /* by its webhook-id */
    };
}

void notify_request_close(struct notify_request *request)
{
    buf_close(&request->signature);
    *request = (struct notify_request){0};
}

enum notify_result notify_read(const struct http_exchange *x, char ret_error[ERROR_TEXT_SIZE])
{
    ret_error[0] = '\0';
    if (x->result != HF_OK) {
        (void)snprintf(ret_error, ERROR_TEXT_SIZE, "%s", x->err.msg);
        return NOTIFY_RETRY;
    }
    if (x->response.status / 100 == 2)
        return NOTIFY_DELIVERED;
    (void)snprintf(ret_error, ERROR_TEXT_SIZE, "the shop answered with HTTP status %d",
                   x->response.status);
    return x->response.status == 410 ? NOTIFY_REFUSED : NOTIFY_RETRY;
}

/* The delays after the first attempt and the ones that follow, at most; together they last just
 * under three days. */
static const int64_t delays_ms[NOTIFY_ATTEMPTS_MAX - 1] = {
    5000,           5 * 60000,      30 * 60000,     2 * 3600000LL,  5 * 3600000LL,
    10 * 3600000LL, 14 * 3600000LL, 20 * 3600000LL, 20 * 3600000LL,
};

int64_t notify_delay_ms(uint32_t attempts, const struct http_response *response,
                        struct random *random)
{
    if (attempts >= NOTIFY_ATTEMPTS_MAX)
        return -1;
    int64_t limit_ms = delays_ms[attempts ? attempts - 1 : 0];
    /* A tenth of the delay is random, so that a shop that was away is not met by all at once. */
    int64_t delay_ms = limit_ms - (int64_t)random_below(random, (uint64_t)limit_ms / 10 + 1);
    int64_t wanted_ms = http_response_retry_after_ms(response, NOTIFY_RETRY_AFTER_MAX_MS);
    return delay_ms > wanted_ms ? delay_ms : wanted_ms;
}
