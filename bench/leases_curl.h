/* JSON over HTTP by hand: plain libcurl on one connection that is kept open.  What etcd, the lock
 * service and the API are asked by hand goes this way. */
#ifndef HF_BENCH_LEASES_CURL_H
#define HF_BENCH_LEASES_CURL_H

#include <curl/curl.h>
#include <string.h>

#include "base/buf.h"
#include "leases_side.h"

struct hand_curl {
    CURL *curl;
    struct curl_slist *headers;
    char base[96]; /* http://HOST:PORT */
    struct buf answer;
};

static size_t hand_curl_keep(char *data, size_t size, size_t n, void *ctx)
{
    buf_put(ctx, data, size * n);
    return size * n;
}

/* `url` is SCHEME://HOST:PORT, with whatever scheme the driver has. */
static void hand_curl_init(struct hand_curl *c, const char *url)
{
    char host[64];
    int port;
    if (sscanf(url, "%*[a-z]://%63[^:/]:%d", host, &port) != 2)
        die("by hand, the URL is SCHEME://HOST:PORT");
    snprintf(c->base, sizeof c->base, "http://%s:%d", host, port);
    c->curl = curl_easy_init();
    c->headers = curl_slist_append(NULL, "Content-Type: application/json");
    c->headers = curl_slist_append(c->headers, "Expect:");
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, hand_curl_keep);
    curl_easy_setopt(c->curl, CURLOPT_WRITEDATA, &c->answer);
    curl_easy_setopt(c->curl, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(c->curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(c->curl, CURLOPT_TIMEOUT, 10L);
    curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
}

static void hand_curl_cleanup(struct hand_curl *c)
{
    curl_easy_cleanup(c->curl);
    curl_slist_free_all(c->headers);
    buf_close(&c->answer);
}

/* Sends what is set.  Returns the status; the answer is in `c->answer` then. */
static long hand_curl_send(struct hand_curl *c, const char *path)
{
    char url[256];
    long status = 0;
    snprintf(url, sizeof url, "%s%s", c->base, path);
    c->answer.len = 0;
    curl_easy_setopt(c->curl, CURLOPT_URL, url);
    if (curl_easy_perform(c->curl) != CURLE_OK ||
        curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK)
        die("a request by hand has no answer");
    return status;
}

/* Posts the body. */
static long hand_curl_post(struct hand_curl *c, const char *path, const struct buf *body)
{
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body->data);
    curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, (long)body->len);
    return hand_curl_send(c, path);
}

static inline long hand_curl_get(struct hand_curl *c, const char *path)
{
    curl_easy_setopt(c->curl, CURLOPT_HTTPGET, 1L);
    return hand_curl_send(c, path);
}

/* Returns where `word` begins in the answer, or NULL. */
static inline const char *hand_curl_find(const struct hand_curl *c, const char *word)
{
    return c->answer.len > 0 ? memmem(c->answer.data, c->answer.len, word, strlen(word)) : NULL;
}

#endif
