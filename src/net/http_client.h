/* The HTTP/1.1 client that everything in this project uses to call other servers, over libcurl.
 *
 * This is the blocking interface; net/http_pool.h is for a thread that does other things meanwhile.
 * A struct http_client belongs to one thread at a time.  It keeps connections open between calls
 * and uses them again.  Several requests can run at once (http_client_run); the calling thread
 * blocks until all of them have ended.  Every request has a limit on its time and on the size of
 * its response.  Redirects are not followed, cookies are not kept, no signal is used, and sockets
 * are close-on-exec.
 *
 * A failed call says whether the server can have seen the request:
 *   HF_INVALID_REQUEST     The request is malformed (method, URL or header).  Nothing was sent.
 *   HF_UNAVAILABLE         The server could not be reached.  Nothing was sent, so the caller may
 *                          try again without doing anything twice.
 *   HF_OUTCOME_UNKNOWN     The request was, or may have been, sent and no complete response came
 *                          back: the connection broke, time ran out, or the response was larger
 *                          than allowed.  The server may have acted on it (I14).
 * A response with any HTTP status, 500 included, is HF_OK. */
#ifndef HF_NET_HTTP_CLIENT_H
#define HF_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "net/http_origin.h"

struct http_client;

struct http_client_options {
    int64_t connect_timeout_ms;  /* name lookup, TCP and TLS; 0 means 5000 */
    int64_t timeout_ms;          /* the whole exchange; 0 means 30000 */
    size_t body_len_max;         /* of a response; 0 means 1 MiB */
    unsigned connections_max;    /* kept open between calls; 0 means 8 */
    bool proxy_even_to_loopback; /* use http_proxy and its kin for 127.0.0.0/8, ::1 and localhost,
                                    too; by default they are used for other hosts only */
    /* Files in PEM for https://.  NULL: the system's authorities; no certificate of our own.  The
     * texts outlive the client. */
    const char *ca_file, *cert_file, *key_file;
};

struct http_header {
    const char *name, *value;
};

struct http_request {
    const char *method; /* "GET", "POST", ... */
    const char *url;    /* http:// or https:// */
    const struct http_header *headers;
    size_t n_headers;
    const void *body; /* must stay valid until the call returns */
    size_t body_len;
    int64_t timeout_ms; /* of this request; 0 means that of the client */
    /* Sending the request twice is harmless, because it is idempotent or carries an idempotency
     * key.  If a kept connection then turns out to be closed, the request is sent again on a new
     * one.  GET and HEAD always are repeatable; anything else that is not marked so fails with
     * HF_OUTCOME_UNKNOWN. */
    bool is_repeatable;
    /* For answers without an end, such as server-sent events.  If it is not NULL, the body of a 2xx
     * response goes to it piece by piece, with `ctx`, and response.body stays empty.  The call then
     * lasts until the server ends the response, and fails with HF_OUTCOME_UNKNOWN if nothing
     * arrives for timeout_ms, rounded up to seconds, or if the function returns false. */
    bool (*on_body)(void *ctx, const char *data, size_t len);
    void *ctx;
};

/* Zeroed before its first use; a later call replaces the contents and uses the memory again. */
struct http_response {
    int status;
    struct buf body;    /* body.data[body.len] is NUL */
    struct buf headers; /* "Name: value" and a NUL each; read with http_response_header */
    bool is_too_large;  /* of a call that failed: because more came than the client takes */
};

/* `options` may be NULL. */
struct http_client *http_client_new(const struct http_client_options *options);
/* Closes all connections.  Accepts NULL. */
void http_client_free(struct http_client *client);

/* Sends one request and waits for its response.  On failure `ret` is empty, with status 0. */
HF_MUST_USE enum hf_status http_client_call(struct http_client *client,
                                            const struct http_request *request,
                                            struct http_response *ret, struct hf_err *err);

/* One request of several that run at once, and how it ended. */
struct http_exchange {
    struct http_request request;
    struct http_response response;
    enum hf_status result; /* as http_client_call returns it */
    struct hf_err err;     /* set if result is not HF_OK */
    bool was_repeated;     /* an earlier sending was lost with its connection; it may have been
                              carried out */
};
/* Runs all exchanges concurrently, each on a connection of its own, and returns when the last one
 * has ended.  The caller bounds `n`. */
void http_client_run(struct http_client *client, struct http_exchange *exchanges, size_t n);

/* The value of the first header of this name, in any case; NULL if there is none. */
const char *http_response_header(const struct http_response *response, const char *name);
/* The Retry-After of a response in milliseconds, at most `max_ms`; 0 if it has none in seconds. */
int64_t http_response_retry_after_ms(const struct http_response *response, int64_t max_ms);
/* Frees the memory.  Accepts a zeroed struct. */
void http_response_close(struct http_response *response);

#endif
