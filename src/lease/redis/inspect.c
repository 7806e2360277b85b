/* Shows locks of the Redis driver, lists their names and breaks them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/redis/handle.h"
#include "lease/redis/scripts.h"

#define SCAN_COUNT "1000"
#define LIST_MAX 1000000

/* Reads "FENCE[@SINCE] MODE PRIORITY SLOTS[/SLOT] LABEL"; what is damaged reads as 0. */
static void show_who(const char *who, int64_t now_us, struct hf_holder *ret)
{
    char *at;
    ret->fence = strtoll(who, &at, 10);
    int64_t since_us = *at == '@' ? strtoll(at + 1, &at, 10) : ret->fence;
    ret->held_ms = since_us > 0 && since_us <= now_us ? (now_us - since_us) / 1000 : -1;
    ret->mode = strncmp(at, " s ", 3) == 0 ? HF_SHARED : HF_EXCLUSIVE;
    at += strlen(at) > 3 ? 3 : strlen(at);
    ret->priority = (int)strtol(at, &at, 10);
    (void)strtoul(at, &at, 10);
    if (*at == '/')
        ret->slot = strtoll(at + 1, &at, 10);
    if (*at == ' ')
        snprintf(ret->label, sizeof ret->label, "%s", at + 1);
}

/* Reads an owner, what is left of its time, and who it is. */
static void show(const redisReply *const *element, int64_t now_us, bool waits,
                 struct hf_holder *ret)
{
    const redisReply *owner = element[0], *left = element[1], *who = element[2];
    snprintf(ret->owner, sizeof ret->owner, "%.*s", OWNER_LEN, owner->str ? owner->str : "");
    show_who(who->str ? who->str : "", now_us, ret);
    ret->remaining_ms = left->integer;
    if (waits) {
        ret->fence = ret->slot = 0;
        ret->held_ms = -1;
    }
}

enum hf_result redis_inspect(struct lease *l, const char *key, size_t key_len,
                             struct lease_state *ret, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    struct lease_request q = {.key = key, .key_len = key_len};
    enum hf_result result =
        redis_call(&r->caller, SCRIPT_INSPECT, &q, 1, REDIS_INSPECT_HEAD_LEN, fault);
    if (result != HF_DONE)
        return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
    const redisReply *reply = r->caller.replies.v[0];
    size_t n = (reply->elements - REDIS_INSPECT_HEAD_LEN) / 3;
    size_t n_holders = (size_t)redis_integer(reply, 1);
    n_holders = n_holders < n ? n_holders : n;
    *ret = (struct lease_state){
        .n_holders = n_holders, .n_waiters = n - n_holders, .last_fence = redis_integer(reply, 0)};
    if (n_holders > 0)
        ret->holders = hf_alloc(n_holders * sizeof *ret->holders);
    if (n > n_holders)
        ret->waiters = hf_alloc((n - n_holders) * sizeof *ret->waiters);
    for (size_t i = 0; i < n; i++)
        show((const redisReply *const *)&reply->element[REDIS_INSPECT_HEAD_LEN + 3 * i],
             redis_integer(reply, 2), i >= n_holders,
             i < n_holders ? &ret->holders[i] : &ret->waiters[i - n_holders]);
    redis_call_done(&r->caller, 1);
    return HF_DONE;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct redis_names {
    VEC(char *) all;
};

/* One step of a SCAN: adds names and moves the cursor on, to "0" at the end. */
static enum hf_result scan(struct redis *r, const struct buf *pattern, struct buf *cursor,
                           struct redis_names *names, struct hf_fault *fault)
{
    redisReply *reply;
    redis_put(&r->caller.link,
              (struct redis_arg[]){REDIS_ARG("SCAN"),
                                   {cursor->data, cursor->len},
                                   REDIS_ARG("MATCH"),
                                   {pattern->data, pattern->len},
                                   REDIS_ARG("COUNT"),
                                   REDIS_ARG(SCAN_COUNT)},
              6);
    enum hf_result result = redis_exchange(&r->caller.link, 0, &reply, fault);
    if (result != HF_DONE)
        return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !reply->element[0]->str) {
        result = redis_refusal(&r->caller.link, reply, fault);
        freeReplyObject(reply);
        return result;
    }
    const redisReply *keys = reply->element[1];
    const size_t around = sizeof REDIS_KEY_HEAD - 1 + sizeof REDIS_KEY_TAIL - 1;
    for (size_t i = 0; i < keys->elements; i++)
        if (keys->element[i]->len > around)
            *vec_push(&names->all) = hf_strndup(keys->element[i]->str + sizeof REDIS_KEY_HEAD - 1,
                                                keys->element[i]->len - around);
    cursor->len = 0;
    buf_put(cursor, reply->element[0]->str, reply->element[0]->len);
    freeReplyObject(reply);
    return HF_DONE;
}

/* SCAN visits every key of the database, not only those of locks, in steps of 1000 that do not
 * block the server.  It may return a name twice, and may miss one that came or went meanwhile. */
enum hf_result redis_list(struct lease *l, const char *prefix, size_t prefix_len,
                          lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    struct redis_names found = {0};
    struct buf pattern = {0}, cursor = {0};
    buf_lit(&pattern, REDIS_KEY_HEAD);
    for (size_t i = 0; i < prefix_len; i++) {
        if (strchr("*?[]\\^-", prefix[i]))
            buf_char(&pattern, '\\');
        buf_char(&pattern, prefix[i]);
    }
    buf_lit(&pattern, "*" REDIS_KEY_TAIL);
    buf_char(&cursor, '0');
    enum hf_result result;
    do
        result = scan(r, &pattern, &cursor, &found, fault);
    while (result == HF_DONE && !(cursor.len == 1 && cursor.data[0] == '0') &&
           found.all.n < LIST_MAX);
    if (result == HF_DONE && found.all.n >= LIST_MAX)
        result = fault_set(fault, HF_FAILED, "more than %d names; give a prefix", LIST_MAX);
    if (found.all.n > 0)
        qsort(found.all.v, found.all.n, sizeof *found.all.v, by_name);
    bool more = result == HF_DONE;
    for (size_t i = 0; i < found.all.n; i++)
        more = more && ((i > 0 && strcmp(found.all.v[i - 1], found.all.v[i]) == 0) ||
                        each(ctx, found.all.v[i]));
    for (size_t i = 0; i < found.all.n; i++)
        free(found.all.v[i]);
    vec_close(&found.all);
    buf_close(&pattern);
    buf_close(&cursor);
    return result;
}

enum hf_result redis_break(struct lease *l, const char *key, size_t key_len, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    struct lease_request q = {.key = key, .key_len = key_len};
    enum hf_result result = redis_call(&r->caller, SCRIPT_BREAK, &q, 1, REDIS_ANSWER_LEN, fault);
    if (result == HF_DONE)
        redis_call_done(&r->caller, 1);
    return result;
}
