/* See request.h. */
#include "lease/redis/request.h"

#include <string.h>

#include "base/buf.h"
#include "lease/redis/scripts.h"

#define KEY_FENCE "holdfast:fence"
#define OWNER_LEN (2 * LEASE_OWNER_SIZE)

_Static_assert(WAITER_SILENT_MS == 5000, "the scripts contain it as SILENT");
_Static_assert(WAITER_CLAIM_MS == 150, "the scripts contain it as CLAIM");

const struct redis_arg redis_scripts[N_SCRIPTS] = {
    [SCRIPT_ACQUIRE] = {REDIS_ACQUIRE, sizeof REDIS_ACQUIRE - 1},
    [SCRIPT_RENEW] = {REDIS_RENEW, sizeof REDIS_RENEW - 1},
    [SCRIPT_RELEASE] = {REDIS_RELEASE, sizeof REDIS_RELEASE - 1},
    [SCRIPT_HEARTBEAT] = {REDIS_HEARTBEAT, sizeof REDIS_HEARTBEAT - 1},
    [SCRIPT_BREAK] = {REDIS_BREAK, sizeof REDIS_BREAK - 1},
    [SCRIPT_INSPECT] = {REDIS_INSPECT, sizeof REDIS_INSPECT - 1},
};

/* The keys and arguments of one call of a script. */
#define CALL_ARGS_MAX 4
struct redis_call {
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

static size_t who_put(char *out, const struct lease_request *q)
{
    size_t len = 0;
    out[len++] = q->mode == HF_SHARED ? 's' : 'e';
    out[len++] = ' ';
    len += decimal_write(out + len, q->priority);
    out[len++] = ' ';
    len += decimal_write(out + len, q->slots);
    out[len++] = ' ';
    if (!q->label)
        return len;
    memcpy(out + len, q->label, q->label_len);
    return len + q->label_len;
}

struct calls {
    enum redis_script script;
    const struct lease_request *requests;
    size_t least;
};

static void call_put(struct redis_caller *c, const void *ctx, size_t i)
{
    const struct calls *calls = ctx;
    const struct lease_request *q = &calls->requests[i];
    enum redis_script script = calls->script;
    struct redis_call a;
    struct redis_arg args[REDIS_HEAD_ARGS + 3 + CALL_ARGS_MAX];
    size_t n = REDIS_HEAD_ARGS;
    redis_head(c, script, args);
    args[n++] = script == SCRIPT_ACQUIRE ? REDIS_ARG("2") : REDIS_ARG("1");
    args[n++] = (struct redis_arg){a.key, redis_key(a.key, q->key, q->key_len)};
    if (script == SCRIPT_ACQUIRE)
        args[n++] = REDIS_ARG(KEY_FENCE);
    if (script != SCRIPT_BREAK && script != SCRIPT_INSPECT) {
        lease_owner_text(q->owner, a.owner);
        args[n++] = (struct redis_arg){a.owner, OWNER_LEN};
    }
    if (script == SCRIPT_ACQUIRE || script == SCRIPT_RENEW)
        args[n++] = (struct redis_arg){a.ttl, decimal_write(a.ttl, q->ttl_ms)};
    if (script == SCRIPT_ACQUIRE) {
        args[n++] = (struct redis_arg){a.who, who_put(a.who, q)};
        args[n++] = q->queue ? REDIS_ARG("1") : REDIS_ARG("0");
    }
    redis_put(&c->link, args, n);
}

static bool call_fits(const void *ctx, const redisReply *reply)
{
    const struct calls *calls = ctx;
    if (reply->type == REDIS_REPLY_ARRAY)
        return reply->elements >= calls->least;
    return (calls->script == SCRIPT_ACQUIRE || calls->script == SCRIPT_RELEASE) &&
           (reply->type == REDIS_REPLY_INTEGER || reply->type == REDIS_REPLY_STRING);
}

enum hf_result redis_call(struct redis_caller *c, enum redis_script script,
                          const struct lease_request *requests, size_t n, size_t least,
                          struct hf_fault *fault)
{
    struct calls calls = {script, requests, least};
    return redis_run(c, &(struct redis_batch){n, &calls, call_put, call_fits}, fault);
}
