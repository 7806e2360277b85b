/* The lock service by hand: a session, then a request for each grant and each release, sent with
 * plain libcurl over one connection that is kept open.  The answers are judged by their status; the
 * session is not kept alive, nothing is renewed, and no loss would be noticed. */
#ifndef HF_BENCH_LEASES_HOLDFAST_H
#define HF_BENCH_LEASES_HOLDFAST_H

#include "leases_curl.h"

#define HAND_SESSION_TTL_MS 600000
#define HAND_WAIT_MS 1000

struct hand_holdfast {
    struct hand_curl http;
    char session[64];
    struct buf body;
};

static void *hand_holdfast_open(const char *url, void *first)
{
    struct hand_holdfast *h = hf_alloc(sizeof *h);
    static const char before[] = "\"id\":\"";
    const char *id;
    (void)first;
    hand_curl_init(&h->http, url);
    buf_printf(&h->body, "{\"ttl_ms\":%d}", HAND_SESSION_TTL_MS);
    if (hand_curl_post(&h->http, "/v1/sessions", &h->body) != 201 ||
        !(id = hand_curl_find(&h->http, before)) ||
        sscanf(id + sizeof before - 1, "%63[A-Za-z0-9_]", h->session) != 1)
        die("no session by hand");
    return h;
}

static void hand_holdfast_close(void *handle)
{
    struct hand_holdfast *h = handle;
    hand_curl_cleanup(&h->http);
    buf_close(&h->body);
    free(h);
}

/* Returns the status. */
static long hand_holdfast_ask(struct hand_holdfast *h, const char *path, const uint8_t *owner,
                              int wait_ms)
{
    h->body.len = 0;
    buf_printf(&h->body, "{\"session\":\"%s\",\"owner\":\"", h->session);
    for (int i = 0; i < OWNER_SIZE; i++)
        buf_printf(&h->body, "%02x", owner[i]);
    buf_lit(&h->body, "\"");
    if (wait_ms > 0)
        buf_printf(&h->body, ",\"wait_ms\":%d", wait_ms);
    buf_lit(&h->body, "}");
    return hand_curl_post(&h->http, path, &h->body);
}

static void hand_holdfast_pair(void *handle, const uint8_t *owner)
{
    if (hand_holdfast_ask(handle, "/v1/locks/hand", owner, 0) != 200 ||
        hand_holdfast_ask(handle, "/v1/locks/hand/release", owner, 0) != 200)
        die("the lock service refused a request by hand");
}

static bool hand_holdfast_take(void *handle, const uint8_t *owner, atomic_bool *stop)
{
    long status;
    while ((status = hand_holdfast_ask(handle, "/v1/locks/hand-hot", owner, HAND_WAIT_MS)) != 200) {
        if (status != 409)
            die("the lock service refused a waiter by hand");
        if (*stop)
            return false;
    }
    return true;
}

static void hand_holdfast_give(void *handle, const uint8_t *owner)
{
    (void)hand_holdfast_ask(handle, "/v1/locks/hand-hot/release", owner, 0);
}

static const struct side hand_holdfast = {
    .name = "libcurl",
    .open = hand_holdfast_open,
    .close = hand_holdfast_close,
    .pair = hand_holdfast_pair,
    .take = hand_holdfast_take,
    .give = hand_holdfast_give,
};

#endif
