/* etcd by hand: the driver's own requests, sent with plain libcurl: a lease is granted, a
 * transaction creates the key if no other exists, and the lease is revoked.  The answers are
 * searched for a word instead of being read. */
#ifndef HF_BENCH_LEASES_ETCD_H
#define HF_BENCH_LEASES_ETCD_H

#include "lease/etcd/wire.h"
#include "leases_curl.h"

static void *hand_etcd_open(const char *url, void *first)
{
    struct hand_curl *c = hf_alloc(sizeof *c);
    (void)first;
    hand_curl_init(c, url);
    return c;
}

static void hand_etcd_close(void *handle)
{
    hand_curl_cleanup(handle);
    free(handle);
}

static void hand_etcd_call(struct hand_curl *c, const char *path, const struct buf *body,
                           const char *expected)
{
    if (hand_curl_post(c, path, body) != 200 || !hand_curl_find(c, expected))
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
    struct lease_request q = {.key = "hand", .key_len = 4};
    struct subject s;
    struct buf body = {0};
    memcpy(q.owner, owner, OWNER_SIZE);
    etcd_subject_init(&s, "hand/", &q);
    buf_printf(&body, "{\"ID\":\"%lld\",\"TTL\":\"%d\"}", (long long)s.lease, TTL_MS / 1000);
    hand_etcd_call(handle, "/v3/lease/grant", &body, "\"TTL\"");
    body.len = 0;
    hand_etcd_put_txn(&body, &s);
    hand_etcd_call(handle, "/v3/kv/txn", &body, "\"succeeded\":true");
    body.len = 0;
    buf_printf(&body, "{\"ID\":\"%lld\"}", (long long)s.lease);
    hand_etcd_call(handle, "/v3/lease/revoke", &body, "\"revision\"");
    buf_close(&body);
}

static const struct side hand_etcd = {
    .name = "libcurl",
    .open = hand_etcd_open,
    .close = hand_etcd_close,
    .pair = hand_etcd_pair,
};

#endif
