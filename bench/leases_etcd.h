/* etcd by hand: the driver's own requests, sent with plain libcurl over one connection that is kept
 * open: a lease is granted, a transaction creates the key if no other exists, and the lease is
 * revoked.  The answers are searched for a word instead of being read. */
#ifndef HF_BENCH_LEASES_ETCD_H
#define HF_BENCH_LEASES_ETCD_H

#include <curl/curl.h>
#include <string.h>

#include "base/buf.h"
#include "lease/etcd/wire.h"
#include "leases_side.h"

struct hand_etcd {
    CURL *curl;
    struct curl_slist *headers;
    char host[64];
    int port;
    struct buf answer;
};

static size_t hand_etcd_keep(char *data, size_t size, size_t n, void *ctx)
{
    buf_put(ctx, data, size * n);
    return size * n;
}

static void *hand_etcd_open(const char *url, void *first)
{
    struct hand_etcd *e = hf_alloc(sizeof *e);
    (void)first;
    if (sscanf(url, "etcd://%63[^:/]:%d", e->host, &e->port) != 2)
        die("by hand, etcd is etcd://HOST:PORT");
    e->curl = curl_easy_init();
    e->headers = curl_slist_append(NULL, "Content-Type: application/json");
    e->headers = curl_slist_append(e->headers, "Expect:");
    curl_easy_setopt(e->curl, CURLOPT_HTTPHEADER, e->headers);
    curl_easy_setopt(e->curl, CURLOPT_WRITEFUNCTION, hand_etcd_keep);
    curl_easy_setopt(e->curl, CURLOPT_WRITEDATA, &e->answer);
    curl_easy_setopt(e->curl, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(e->curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(e->curl, CURLOPT_TIMEOUT, 10L);
    return e;
}

static void hand_etcd_close(void *handle)
{
    struct hand_etcd *e = handle;
    curl_easy_cleanup(e->curl);
    curl_slist_free_all(e->headers);
    buf_close(&e->answer);
    free(e);
}

static void hand_etcd_call(struct hand_etcd *e, const char *path, const struct buf *body,
                           const char *expected)
{
    char url[128];
    snprintf(url, sizeof url, "http://%s:%d%s", e->host, e->port, path);
    e->answer.len = 0;
    curl_easy_setopt(e->curl, CURLOPT_URL, url);
    curl_easy_setopt(e->curl, CURLOPT_POSTFIELDS, body->data);
    curl_easy_setopt(e->curl, CURLOPT_POSTFIELDSIZE, (long)body->len);
    if (curl_easy_perform(e->curl) != CURLE_OK ||
        !memmem(e->answer.data, e->answer.len, expected, strlen(expected)))
        die("etcd refused a request by hand");
}

static void hand_etcd_put_txn(struct buf *b, const struct subject *s)
{
    static const char is_new[] =
        ",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\"}";
    buf_lit(b, "{\"compare\":[{");
    wire_key(b, s, WIRE_EXCLUSIVE);
    buf_str(b, is_new);
    buf_lit(b, ",{");
    wire_range(b, s, WIRE_BOTH);
    buf_str(b, is_new);
    buf_lit(b, "],\"success\":[{\"request_put\":{");
    wire_key(b, s, WIRE_EXCLUSIVE);
    buf_lit(b, ",\"value\":\"aGFuZA==\"");
    buf_printf(b, ",\"lease\":\"%lld\"}}],\"failure\":[{\"request_range\":{", (long long)s->lease);
    wire_range(b, s, WIRE_BOTH);
    buf_lit(b, "}}]}");
}

static void hand_etcd_pair(void *handle, const uint8_t *owner)
{
    struct hand_etcd *e = handle;
    struct lease_request q = {.key = "hand", .key_len = 4};
    struct subject s;
    struct buf body = {0};
    memcpy(q.owner, owner, OWNER_SIZE);
    etcd_subject_init(&s, "hand/", &q);
    buf_printf(&body, "{\"ID\":\"%lld\",\"TTL\":\"%d\"}", (long long)s.lease, TTL_MS / 1000);
    hand_etcd_call(e, "/v3/lease/grant", &body, "\"TTL\"");
    body.len = 0;
    hand_etcd_put_txn(&body, &s);
    hand_etcd_call(e, "/v3/kv/txn", &body, "\"succeeded\":true");
    body.len = 0;
    buf_printf(&body, "{\"ID\":\"%lld\"}", (long long)s.lease);
    hand_etcd_call(e, "/v3/lease/revoke", &body, "\"revision\"");
    buf_close(&body);
}

static const struct side hand_etcd = {
    .name = "libcurl",
    .open = hand_etcd_open,
    .close = hand_etcd_close,
    .pair = hand_etcd_pair,
};

#endif
