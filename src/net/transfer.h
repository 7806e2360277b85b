/* One HTTP request on a libcurl handle: configures the handle for a request, collects the response,
 * and says how the exchange ended.  net/http_pool.c, which runs the transfers, is the only user.
 *
 * A handle is configured once and kept for later requests, so that a request costs only the
 * options that differ.
 *
 * Whether anything was sent is decided by a function that libcurl calls when a connection is ready
 * and before the first byte of the request.  libcurl calls it a second time when it wants to repeat
 * a request because a kept connection died; requests that must not be repeated end there. */
#ifndef HF_NET_TRANSFER_H
#define HF_NET_TRANSFER_H

#include <curl/curl.h>

#include "net/http_client.h"

struct transfer {
    CURL *curl;
    const struct http_client_options *options;
    struct http_exchange *exchange;        /* NULL: the transfer is idle */
    void (*done)(struct http_exchange *x); /* may be NULL */
    size_t at;                             /* its place in the pool's list of running transfers */
    /* What the handle is configured for.  A request that differs in nothing costs no setopt. */
    struct buf url, method;
    bool has_body;
    bool streams; /* timeout_ms is the longest silence */
    int64_t timeout_ms;
    struct curl_slist *no_headers; /* takes back the headers that libcurl adds by itself */
    struct curl_slist *headers;    /* the request's own; NULL: no_headers serves */
    int times_sent;
    bool too_large;
    bool has_all_headers;          /* the empty line after them was received */
    char origin[HTTP_ORIGIN_SIZE]; /* "http://host:port", for messages: a path may be secret */
    char error[CURL_ERROR_SIZE];
};

/* `options` has no zeros and outlives the transfer. */
struct transfer *transfer_new(const struct http_client_options *options);
void transfer_free(struct transfer *t);

/* Configures the handle for the request of t->exchange and empties the response.  Fails with
 * HF_INVALID_REQUEST if the request is malformed. */
HF_MUST_USE enum hf_status transfer_begin(struct transfer *t, struct hf_err *err);
/* Fills in result, response and error of t->exchange. */
void transfer_end(struct transfer *t, CURLcode code);

#endif
