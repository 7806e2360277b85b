/* Connecting by way of sentinels: each is a link of its own, which is asked for the primary.  See
 * link_parts.h. */
#include <stdlib.h>
#include <string.h>

#include "redis/link_parts.h"

static void note_primary(struct redis_link *k, const char *host, int port)
{
    if (k->found.host && strcmp(k->found.host, host) != 0) {
        lookup_abandon(k->lookup); /* of a host that does not matter any more */
        k->lookup = NULL;
    }
    free(k->found.host);
    k->found = (struct redis_node){hf_strndup(host, strlen(host)), port};
}

/* Reads the answer { host, port } to get-master-addr-by-name. */
static enum hf_result judge_sentinel(struct redis_link *k, struct redis_link *sentinel,
                                     const redisReply *reply, struct hf_fault *fault)
{
    const redisReply *const *e = (const redisReply *const *)reply->element;
    if (reply->type == REDIS_REPLY_ERROR) {
        enum hf_result result = redis_refusal(sentinel, reply, fault);
        return result == HF_FAILED ? link_fail(sentinel, HF_UNREACHABLE,
                                               "it is no sentinel, or has no answer", fault)
                                   : result;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !e[0]->str || !e[1]->str)
        return link_fail(sentinel, HF_UNREACHABLE,
                         "this sentinel does not know the name of the primary", fault);
    int port = atoi(e[1]->str);
    if (!*e[0]->str || port < 1 || port > 65535)
        return link_fail(sentinel, HF_UNREACHABLE, "the sentinel names no address", fault);
    note_primary(k, e[0]->str, port);
    return HF_DONE;
}

static enum hf_result ask_sentinel(struct redis_link *k, const struct redis_node *node,
                                   int64_t until_us, struct hf_fault *fault)
{
    const struct redis_address *a = k->address;
    const struct redis_address at = {.host = node->host,
                                     .port = node->port,
                                     .user = a->sentinel_user,
                                     .password = a->sentinel_password,
                                     .tls = a->tls,
                                     .cacert = a->cacert,
                                     .cert = a->cert,
                                     .key = a->key};
    struct redis_link sentinel;
    redisReply *reply;
    redis_link_init(&sentinel, &at, k->clock, link_ms_left(k, until_us));
    redis_put(&sentinel,
              (struct redis_arg[]){REDIS_ARG("SENTINEL"),
                                   REDIS_ARG("get-master-addr-by-name"),
                                   {a->primary, strlen(a->primary)}},
              3);
    enum hf_result result = redis_exchange(&sentinel, 0, &reply, fault);
    if (result == HF_DONE) {
        result = judge_sentinel(k, &sentinel, reply, fault);
        freeReplyObject(reply);
    }
    redis_link_close(&sentinel);
    if (fault && result == HF_UNKNOWN)
        fault->result = HF_UNREACHABLE;
    return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
}

/* Asks the sentinels in turn, the one that was right last time first, until one of them names a
 * server that is the primary.  Each gets its share of the time that is left. */
static enum hf_result connect_by_sentinels(struct redis_link *k, int64_t deadline_us,
                                           struct hf_fault *fault)
{
    size_t n = k->address->n_sentinels, first = k->sentinel;
    enum hf_result result = HF_UNREACHABLE;
    for (size_t i = 0; i < n && result != HF_DONE; i++) {
        size_t which = (first + i) % n;
        int64_t now_us = clock_boot_us(k->clock);
        int64_t share_us = (deadline_us - now_us) / (int64_t)(n - i);
        int64_t until_us = now_us + (share_us > 0 ? share_us : 0);
        result = ask_sentinel(k, &k->address->sentinels[which], until_us, fault);
        if (result == HF_DONE)
            result = link_connect_host(k, until_us, fault);
        if (result == HF_DONE)
            k->sentinel = which;
    }
    return result;
}

enum hf_result link_connect(struct redis_link *k, int64_t deadline_us, struct hf_fault *fault)
{
    return k->address->n_sentinels ? connect_by_sentinels(k, deadline_us, fault)
                                   : link_connect_host(k, deadline_us, fault);
}
