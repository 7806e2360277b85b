/* See redis_call.h. */
#include "lease/redis_call.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "lease/redis_scripts.h"

#define KEY_FENCE "holdfast:fence"
#define OWNER_LEN (2 * LEASE_OWNER_SIZE)

_Static_assert(WAITER_SILENT_MS == 5000, "the scripts say it too");

static const struct redis_arg scripts[N_SCRIPTS] = {
    [SCRIPT_ACQUIRE] = {REDIS_ACQUIRE, sizeof REDIS_ACQUIRE - 1},
    [SCRIPT_RENEW] = {REDIS_RENEW, sizeof REDIS_RENEW - 1},
    [SCRIPT_RELEASE] = {REDIS_RELEASE, sizeof REDIS_RELEASE - 1},
    [SCRIPT_TOUCH] = {REDIS_TOUCH, sizeof REDIS_TOUCH - 1},
    [SCRIPT_BREAK] = {REDIS_BREAK, sizeof REDIS_BREAK - 1},
    [SCRIPT_INSPECT] = {REDIS_INSPECT, sizeof REDIS_INSPECT - 1},
};

void redis_caller_init(struct redis_caller *c)
{
    for (int i = 0; i < N_SCRIPTS; i++) {
        unsigned char sha[EVP_MAX_MD_SIZE];
        unsigned len;
        hf_check(EVP_Digest(scripts[i].data, scripts[i].len, sha, &len, EVP_sha1(), NULL) == 1);
        for (size_t b = 0; b < REDIS_SHA_LEN / 2; b++)
            snprintf(c->shas[i] + 2 * b, 3, "%02x", sha[b]);
    }
}

/* One call of a script: its keys and arguments. */
#define CALL_ARGS_MAX 4
struct call {
    char key[REDIS_KEY_SIZE], owner[OWNER_LEN + 1], ttl[24];
    char who[LEASE_LABEL_MAX + 64]; /* "MODE PRIORITY SLOTS LABEL" */
};

size_t redis_key(char ret[REDIS_KEY_SIZE], const char *name, size_t len)
{
    char *p = mempcpy(ret, REDIS_KEY_HEAD, sizeof REDIS_KEY_HEAD - 1);
    p = mempcpy(p, name, len);
    memcpy(p, REDIS_KEY_TAIL, sizeof REDIS_KEY_TAIL);
    return (size_t)(p - ret) + sizeof REDIS_KEY_TAIL - 1;
}

/* printf would cost a twentieth of the client's part. */
static size_t decimal(char *out, int64_t n)
{
    char text[20];
    char *end = text + sizeof text, *start = end;
    uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;
    do
        *--start = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0)
        *--start = '-';
    memcpy(out, start, (size_t)(end - start));
    return (size_t)(end - start);
}

static size_t who_put(char *out, const struct lease_request *q)
{
    size_t len = 0;
    out[len++] = q->mode == HF_SHARED ? 's' : 'e';
    out[len++] = ' ';
    len += decimal(out + len, q->priority);
    out[len++] = ' ';
    len += decimal(out + len, q->slots);
    out[len++] = ' ';
    if (!q->label)
        return len;
    memcpy(out + len, q->label, q->label_len);
    return len + q->label_len;
}

static void call_put(struct redis_caller *c, enum redis_script script, bool whole,
                     const struct lease_request *q)
{
    struct call a;
    struct redis_arg args[3 + 2 + CALL_ARGS_MAX] = {
        whole ? REDIS_ARG("EVAL") : REDIS_ARG("EVALSHA"),
        whole ? scripts[script] : (struct redis_arg){c->shas[script], REDIS_SHA_LEN},
        script == SCRIPT_ACQUIRE ? REDIS_ARG("2") : REDIS_ARG("1"),
        {a.key, redis_key(a.key, q->key, q->key_len)},
    };
    size_t n = 4;
    if (script == SCRIPT_ACQUIRE)
        args[n++] = REDIS_ARG(KEY_FENCE);
    if (script != SCRIPT_BREAK && script != SCRIPT_INSPECT) {
        lease_owner_text(q->owner, a.owner);
        args[n++] = (struct redis_arg){a.owner, OWNER_LEN};
    }
    if (script == SCRIPT_ACQUIRE || script == SCRIPT_RENEW)
        args[n++] = (struct redis_arg){a.ttl, decimal(a.ttl, q->ttl_ms)};
    if (script == SCRIPT_ACQUIRE) {
        args[n++] = (struct redis_arg){a.who, who_put(a.who, q)};
        args[n++] = q->queue ? REDIS_ARG("1") : REDIS_ARG("0");
    }
    redis_put(&c->link, args, n);
}

static bool is_unknown_script(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOSCRIPT", 8) == 0;
}

void redis_call_done(struct redis_caller *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        freeReplyObject(c->replies.v[i]);
        c->replies.v[i] = NULL;
    }
}

/* Those of the calls that were not run because the server lacks the script, once more.  The others
 * have been run: failing now leaves them done, which only HF_UNKNOWN says. */
static enum hf_result call_again(struct redis_caller *c, enum redis_script script,
                                 const struct lease_request *requests, size_t n,
                                 struct hf_fault *fault)
{
    VEC(redisReply *) again = {0};
    for (size_t i = 0; i < n; i++) {
        if (is_unknown_script(c->replies.v[i])) {
            *vec_push(&again) = NULL;
            /* the first teaches it the server, in the same exchange */
            call_put(c, script, again.n == 1, &requests[i]);
        }
    }
    enum hf_result result = redis_exchange(&c->link, c->hurry_ms, again.v, fault);
    if (result != HF_DONE) {
        if (result == HF_UNREACHABLE && again.n < n) {
            result = HF_UNKNOWN;
            if (fault)
                fault->result = result;
        }
        redis_call_done(c, n);
    }
    hf_check(again.v);
    for (size_t i = 0, a = 0; i < n && result == HF_DONE; i++) {
        if (is_unknown_script(c->replies.v[i])) {
            freeReplyObject(c->replies.v[i]);
            c->replies.v[i] = again.v[a++];
        }
    }
    vec_close(&again);
    return result;
}

enum hf_result redis_call(struct redis_caller *c, enum redis_script script,
                          const struct lease_request *requests, size_t n, size_t least,
                          struct hf_fault *fault)
{
    bool unknown = false;
    while (c->replies.n < n)
        *vec_push(&c->replies) = NULL;
    for (size_t i = 0; i < n; i++)
        call_put(c, script, false, &requests[i]);
    enum hf_result result = redis_exchange(&c->link, c->hurry_ms, c->replies.v, fault);
    if (result != HF_DONE)
        return result;
    for (size_t i = 0; i < n; i++)
        unknown = unknown || is_unknown_script(c->replies.v[i]);
    if (unknown)
        result = call_again(c, script, requests, n, fault);
    if (result != HF_DONE)
        return result;
    size_t refused = 0;
    for (size_t i = 0; i < n; i++) {
        const redisReply *reply = c->replies.v[i];
        if (((script == SCRIPT_ACQUIRE || script == SCRIPT_RELEASE) &&
             (reply->type == REDIS_REPLY_INTEGER || reply->type == REDIS_REPLY_STRING)) ||
            (reply->type == REDIS_REPLY_ARRAY && reply->elements >= least))
            continue;
        result = redis_refusal(&c->link, reply, fault);
        refused++;
    }
    if (refused == 0)
        return HF_DONE;
    redis_call_done(c, n);
    if (refused < n && result == HF_UNREACHABLE)
        result = HF_UNKNOWN;
    if (fault)
        fault->result = result;
    return result;
}

int64_t redis_integer(const redisReply *array, size_t i)
{
    const redisReply *e = array->element[i];
    return e->type == REDIS_REPLY_INTEGER ? e->integer : 0;
}

void redis_caller_close(struct redis_caller *c)
{
    redis_link_close(&c->link);
    vec_close(&c->replies);
}
