/* One delivery of a notification to the shop, by the Standard Webhooks specification: builds the
 * signed request, judges the answer, and says when to try again.
 *
 * All deliveries of one notification have the same webhook-id, from the key of its job, so that the
 * shop recognises a repetition.  Each has a timestamp and a signature of its own.  Pure functions.
 */
#ifndef HF_CHECKOUT_NOTIFY_H
#define HF_CHECKOUT_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/random.h"
#include "checkout/signature.h"
#include "model/payment.h"
#include "net/http_client.h"

#define NOTIFY_TIMEOUT_MS 15000 /* of one delivery; a job is leased for longer */
#define NOTIFY_ATTEMPTS_MAX 10  /* within three days */
#define NOTIFY_RETRY_AFTER_MAX_MS 86400000

/* "msg_" and the key of the job in hex, with a NUL. */
#define NOTIFY_ID_SIZE (4 + 2 * JOB_KEY_SIZE + 1)
void notify_id(const struct job_row *job, char ret[NOTIFY_ID_SIZE]);

/* Checks the URL that notifications go to: https://, or http:// on this machine. */
HF_MUST_USE bool notify_check_url(const char *url, struct hf_err *err);

/* A request and everything that it points to but url and payload, which the caller keeps.  It may
 * not be copied or moved once it is filled. */
struct notify_request {
    struct http_request http;
    struct http_header headers[4];
    char id[NOTIFY_ID_SIZE], timestamp[24];
    struct buf signature;
};
void notify_request_init(struct notify_request *ret, const char *url, const struct job_row *job,
                         const struct buf *payload, int64_t now_s,
                         const struct signature_secrets *secrets);
void notify_request_close(struct notify_request *request); /* accepts a zeroed struct */

enum notify_result {
    NOTIFY_DELIVERED,
    NOTIFY_RETRY,
    NOTIFY_REFUSED, /* the shop answered 410: it wants no more of these */
};
/* Judges an answer.  `ret_error` gets a sentence unless the notification was delivered; its size is
 * that of job_row.error. */
enum notify_result notify_read(const struct http_exchange *x, char ret_error[ERROR_TEXT_SIZE]);

/* How long to wait after `attempts` (from 1) deliveries have failed, but at least as long as the
 * shop's Retry-After says; -1: give up. */
int64_t notify_delay_ms(uint32_t attempts, const struct http_response *response,
                        struct random *random);

#endif
