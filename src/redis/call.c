/* See call.h. */
#include "redis/call.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/hex.h"
#include "base/status.h"

void redis_caller_init(struct redis_caller *c, const struct redis_arg *scripts, size_t n)
{
    hf_check(n <= REDIS_SCRIPTS_MAX);
    c->scripts = scripts;
    c->send_text = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char sha[EVP_MAX_MD_SIZE];
        unsigned len;
        hf_check(EVP_Digest(scripts[i].data, scripts[i].len, sha, &len, EVP_sha1(), NULL) == 1);
        hex_format(sha, REDIS_SHA_LEN / 2, c->shas[i]);
    }
}

void redis_caller_close(struct redis_caller *c)
{
    redis_link_close(&c->link);
    vec_close(&c->replies);
}

void redis_head(struct redis_caller *c, unsigned script, struct redis_arg ret[REDIS_HEAD_ARGS])
{
    unsigned bit = 1U << script;
    bool text = c->send_text & bit;
    c->send_text &= ~bit;
    ret[0] = text ? REDIS_ARG("EVAL") : REDIS_ARG("EVALSHA");
    ret[1] = text ? c->scripts[script] : (struct redis_arg){c->shas[script], REDIS_SHA_LEN};
}

bool redis_is_unknown_script(const redisReply *reply)
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

/* Sends the commands again that the server did not run because it lacks the script, in the rest of
 * the time.  The other commands have been run, so a failure now is HF_UNKNOWN. */
static enum hf_result run_again(struct redis_caller *c, const struct redis_batch *batch,
                                struct hf_fault *fault)
{
    VEC(redisReply *) again = {0};
    c->send_text = ~0U; /* the first command of each script brings the text */
    for (size_t i = 0; i < batch->n; i++) {
        if (redis_is_unknown_script(c->replies.v[i])) {
            *vec_push(&again) = NULL;
            batch->put(c, batch->ctx, i);
        }
    }
    c->send_text = 0;
    int64_t deadline_us = c->link.deadline_us; /* that the caller set */
    if (!deadline_us)
        c->link.deadline_us = c->link.used_us + 1000 * c->link.timeout_ms;
    enum hf_result result = redis_exchange(&c->link, c->limit_ms, again.v, fault);
    c->link.deadline_us = deadline_us;
    if (result != HF_DONE) {
        if (result == HF_UNREACHABLE && again.n < batch->n) {
            result = HF_UNKNOWN;
            if (fault)
                fault->result = result;
        }
        redis_call_done(c, batch->n);
    }
    hf_check(again.v);
    for (size_t i = 0, a = 0; i < batch->n && result == HF_DONE; i++) {
        if (redis_is_unknown_script(c->replies.v[i])) {
            freeReplyObject(c->replies.v[i]);
            c->replies.v[i] = again.v[a++];
        }
    }
    vec_close(&again);
    return result;
}

/* Accepts the answers if all of them fit; otherwise frees them all. */
static enum hf_result judge(struct redis_caller *c, const struct redis_batch *batch,
                            struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    size_t refused = 0;
    for (size_t i = 0; i < batch->n; i++) {
        const redisReply *reply = c->replies.v[i];
        if (reply->type != REDIS_REPLY_ERROR && batch->fits(batch->ctx, reply))
            continue;
        result = redis_refusal(&c->link, reply, fault);
        refused++;
    }
    if (refused == 0)
        return HF_DONE;
    redis_call_done(c, batch->n);
    if (refused < batch->n && result == HF_UNREACHABLE)
        result = HF_UNKNOWN;
    if (fault)
        fault->result = result;
    return result;
}

enum hf_result redis_run(struct redis_caller *c, const struct redis_batch *batch,
                         struct hf_fault *fault)
{
    bool unknown = false;
    while (c->replies.n < batch->n)
        *vec_push(&c->replies) = NULL;
    for (size_t i = 0; i < batch->n; i++)
        batch->put(c, batch->ctx, i);
    enum hf_result result = redis_exchange(&c->link, c->limit_ms, c->replies.v, fault);
    if (result != HF_DONE)
        return result;
    for (size_t i = 0; i < batch->n; i++)
        unknown = unknown || redis_is_unknown_script(c->replies.v[i]);
    if (unknown)
        result = run_again(c, batch, fault);
    return result == HF_DONE ? judge(c, batch, fault) : result;
}

enum hf_result redis_start(struct redis_caller *c, const struct redis_batch *batch,
                           struct hf_fault *fault)
{
    for (size_t i = 0; i < batch->n; i++)
        batch->put(c, batch->ctx, i);
    return redis_send(&c->link, fault);
}

int64_t redis_integer(const redisReply *array, size_t i)
{
    const redisReply *e = array->element[i];
    return e->type == REDIS_REPLY_INTEGER ? e->integer : 0;
}
