/* Reads every entry of a gate in Redis, for the reconciler and for `holdfast verify`, and deletes
 * what cannot be read; see gate.h. */
#include <stdlib.h>
#include <string.h>

#include "gate/redis_internal.h"

#define SCAN_COUNT "1000"
#define SCAN_PATTERN "[as][er][ae][at]:{*" /* matches both heads, and little else */

/* Reads a decimal number as buf_int writes it and moves *at behind it.  Returns false if there is
 * none, or if it is above `max`. */
static bool read_number(const char **at, const char *end, int64_t max, int64_t *ret)
{
    const char *p = *at;
    int64_t n = 0;
    while (p < end && *p >= '0' && *p <= '9') {
        int digit = *p++ - '0';
        if (n > (max - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    if (p == *at || (**at == '0' && p - *at > 1))
        return false;
    *at = p;
    *ret = n;
    return true;
}

/* What a key names. */
struct gate_place {
    bool area; /* an area, not a seat */
    int64_t event, number;
};

static bool read_literal(const char **at, const char *end, const char *literal, size_t len)
{
    if ((size_t)(end - *at) < len || memcmp(*at, literal, len) != 0)
        return false;
    *at += len;
    return true;
}

/* Returns false if the key has not the form of ours. */
static bool read_key(const redisReply *key, struct gate_place *ret)
{
    if (key->type != REDIS_REPLY_STRING)
        return false;
    const char *at = key->str, *end = at + key->len;
    ret->area = !read_literal(&at, end, HEAD_SEAT, HEAD_LEN);
    return (!ret->area || read_literal(&at, end, HEAD_AREA, HEAD_LEN)) &&
           read_number(&at, end, INT64_MAX, &ret->event) && read_literal(&at, end, "}:", 2) &&
           read_number(&at, end, UINT32_MAX, &ret->number) && at == end;
}

static bool is_claim(const redisReply *value)
{
    if (value->len != CLAIM_LEN || memcmp(value->str, "c:", 2) != 0)
        return false;
    for (size_t i = 2; i < CLAIM_LEN; i++)
        if (!strchr("0123456789abcdef", value->str[i]) || !value->str[i])
            return false;
    return true;
}

/* Visits the seat, unless the value is a claim.  Returns false if the value cannot be read. */
static bool visit_seat(const struct gate_visitor *visitor, const struct gate_place *p,
                       const redisReply *value, int64_t ttl_ms)
{
    const char *at = value->str, *end = at + value->len;
    int64_t hold;
    if (is_claim(value))
        return true;
    if (!read_number(&at, end, INT64_MAX, &hold) || at != end || hold == 0)
        return false;
    visitor->seat(visitor->ctx, p->event, (uint32_t)p->number, hold, ttl_ms);
    return true;
}

/* Visits the count.  Returns false if the value cannot be read. */
static bool visit_count(const struct gate_visitor *visitor, const struct gate_place *p,
                        const redisReply *value)
{
    const char *at = value->str, *end = at + value->len;
    int64_t seq, available;
    if (!read_number(&at, end, INT64_MAX, &seq) || !read_literal(&at, end, " ", 1))
        return false;
    bool negative = read_literal(&at, end, "-", 1);
    if (!read_number(&at, end, INT64_MAX, &available) || at != end)
        return false;
    visitor->count(visitor->ctx, p->event, (uint32_t)p->number, seq,
                   negative ? -available : available);
    return true;
}

static void visit(const struct gate_visitor *visitor, const redisReply *key,
                  const redisReply *value, const redisReply *ttl)
{
    struct gate_place p;
    if (!read_key(key, &p) || ttl->type != REDIS_REPLY_INTEGER || ttl->integer == -2)
        return;
    if (value->type != REDIS_REPLY_STRING || ttl->integer < 0 ||
        !(p.area ? visit_count(visitor, &p, value) : visit_seat(visitor, &p, value, ttl->integer)))
        visitor->strange(visitor->ctx, key->str, key->len);
}

/* The keys of one page of a SCAN, which are read GROUP_MAX per script. */
struct gate_page {
    struct gate *gate;
    VEC(redisReply *) keys; /* those of our form, borrowed from the answer */
};

static size_t group_end(const struct gate_page *page, size_t i)
{
    size_t to = (i + 1) * GROUP_MAX;
    return to < page->keys.n ? to : page->keys.n;
}

static void scan_put(struct redis_caller *c, const void *ctx, size_t i)
{
    const struct gate_page *page = ctx;
    size_t from = i * GROUP_MAX, to = group_end(page, i);
    gate_command(page->gate, SCRIPT_READ, to - from, 0);
    gate_add_number(page->gate, (int64_t)(to - from));
    for (size_t k = from; k < to; k++)
        gate_add(page->gate, (struct redis_arg){page->keys.v[k]->str, page->keys.v[k]->len});
    redis_put(&c->link, page->gate->args.v, page->gate->args.n);
}

static bool is_array(const void *ctx, const redisReply *reply)
{
    (void)ctx;
    return reply->type == REDIS_REPLY_ARRAY;
}

static enum hf_result read_page(struct gate *g, const redisReply *keys,
                                const struct gate_visitor *visitor, struct hf_fault *fault)
{
    struct gate_page page = {.gate = g};
    struct gate_place p;
    for (size_t i = 0; i < keys->elements; i++)
        if (read_key(keys->element[i], &p))
            *vec_push(&page.keys) = keys->element[i];
    size_t n = (page.keys.n + GROUP_MAX - 1) / GROUP_MAX;
    enum hf_result result = HF_DONE;
    if (n > 0)
        result = redis_run(&g->caller, &(struct redis_batch){n, &page, scan_put, is_array}, fault);
    for (size_t i = 0; i < n && result == HF_DONE; i++) {
        const redisReply *reply = g->caller.replies.v[i];
        size_t from = i * GROUP_MAX, to = group_end(&page, i);
        for (size_t k = 0; k < to - from && 2 * k + 1 < reply->elements; k++)
            visit(visitor, page.keys.v[from + k], reply->element[2 * k], reply->element[2 * k + 1]);
    }
    if (result == HF_DONE)
        redis_call_done(&g->caller, n);
    vec_close(&page.keys);
    return result;
}

/* Does one step of the SCAN and moves the cursor, which is "0" after the last step. */
static enum hf_result scan_step(struct gate *g, struct buf *cursor,
                                const struct gate_visitor *visitor, struct hf_fault *fault)
{
    redisReply *reply;
    redis_put(&g->caller.link,
              (struct redis_arg[]){REDIS_ARG("SCAN"),
                                   {cursor->data, cursor->len},
                                   REDIS_ARG("MATCH"),
                                   REDIS_ARG(SCAN_PATTERN),
                                   REDIS_ARG("COUNT"),
                                   REDIS_ARG(SCAN_COUNT)},
              6);
    enum hf_result result = gate_exchange(g, REDIS_REPLY_ARRAY, &reply, 1, fault);
    if (result != HF_DONE)
        return result;
    if (reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING) {
        cursor->len = 0;
        buf_put(cursor, reply->element[0]->str, reply->element[0]->len);
        result = read_page(g, reply->element[1], visitor, fault);
    } else {
        result = redis_refusal(&g->caller.link, reply, fault);
    }
    freeReplyObject(reply);
    return result;
}

enum hf_result gate_scan(struct gate *g, const struct gate_visitor *visitor, struct hf_fault *fault)
{
    struct buf cursor = {0};
    enum hf_result result = gate_begun(g, fault);
    if (result != HF_DONE)
        return gate_ended(g, result, fault);
    g->caller.link.deadline_us = 0; /* each step has a time limit of its own */
    buf_char(&cursor, '0');
    do
        result = visitor->stop && visitor->stop(visitor->ctx)
                     ? fault_set(fault, HF_UNREACHABLE, "the scan was stopped")
                     : scan_step(g, &cursor, visitor, fault);
    while (result == HF_DONE && !(cursor.len == 1 && cursor.data[0] == '0'));
    buf_close(&cursor);
    return gate_ended(g, result, fault);
}

enum hf_result gate_drop(struct gate *g, const char *const *keys, const size_t *lens, size_t n,
                         struct hf_fault *fault)
{
    size_t n_groups = (n + GROUP_MAX - 1) / GROUP_MAX;
    if (n == 0)
        return HF_DONE;
    enum hf_result result = gate_begun(g, fault);
    if (result != HF_DONE)
        return gate_ended(g, result, fault);
    for (size_t i = 0; i < n; i += GROUP_MAX) {
        vec_clear(&g->args);
        gate_add(g, REDIS_ARG("UNLINK")); /* not DEL: the value of a strange key may be large */
        for (size_t k = i; k < n && k < i + GROUP_MAX; k++)
            gate_add(g, (struct redis_arg){keys[k], lens[k]});
        redis_put(&g->caller.link, g->args.v, g->args.n);
    }
    redisReply **replies = hf_alloc(n_groups * sizeof(redisReply *));
    result = gate_exchange(g, REDIS_REPLY_INTEGER, replies, n_groups, fault);
    for (size_t i = 0; i < n_groups && result == HF_DONE; i++)
        freeReplyObject(replies[i]);
    free(replies);
    return gate_ended(g, result, fault);
}
