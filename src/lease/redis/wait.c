/* Waiting for a turn: a waiter sleeps on a second connection until a message tells it that its turn
 * may have come, and now and then sends a heartbeat on the first, which keeps its place. */
#include <stdio.h>
#include <string.h>

#include "lease/redis/handle.h"
#include "lease/redis/scripts.h"

/* A waiter sends a heartbeat once per TTL but within these bounds. */
#define HEARTBEAT_MAX_US INT64_C(1000000)
#define HEARTBEAT_MIN_US INT64_C(100000)
/* The first few waiters look more often: the second whether the first claims its turn, the others
 * in case the second is dead too, and the first so that it soon notices a change of the server. */
#define NEAR_HEARTBEAT_US INT64_C(300000)

static int64_t heartbeat_us(const struct lease_request *q, size_t position)
{
    int64_t us = waiter_look_us(position, NEAR_HEARTBEAT_US,
                                position < 2 ? NEAR_HEARTBEAT_US : HEARTBEAT_MAX_US);
    us = us < 1000 * q->ttl_ms ? us : 1000 * q->ttl_ms;
    return us > HEARTBEAT_MIN_US ? us : HEARTBEAT_MIN_US;
}

void redis_note_turn(struct redis *r, const struct lease_request *q, const redisReply *reply)
{
    struct subscription *w = &r->waiter;
    if (!w->channel[0] || memcmp(w->owner, q->owner, LEASE_OWNER_SIZE) != 0)
        return;
    struct lease_verdict v = redis_verdict(reply, q);
    int64_t now_us = clock_boot_us(r->caller.link.clock), look_ms = redis_integer(reply, 4);
    w->look_us = now_us + (look_ms > 0 ? 1000 * look_ms : heartbeat_us(q, v.position));
    /* Only the head of the queue watches the lease: when the lease ends the head asks, and the
     * script wakes the others whose turn it is. */
    w->turn_us =
        v.position == 1 && v.remaining_ms >= 0 ? now_us + 1000 * (v.remaining_ms + 1) : INT64_MAX;
}

static bool is_text(const redisReply *reply, size_t i, const char *text)
{
    return reply->type == REDIS_REPLY_ARRAY && i < reply->elements &&
           reply->element[i]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[i]->str, text) == 0;
}

/* The name of the channel on which a waiter is told of its turn; returns its length. */
static size_t channel_of(const struct lease_request *q, char ret[CHANNEL_SIZE])
{
    char owner[OWNER_LEN + 1];
    size_t len = redis_key(ret, q->key, q->key_len);
    lease_owner_text(q->owner, owner);
    return len + (size_t)snprintf(ret + len, CHANNEL_SIZE - len, ":wake:%s", owner);
}

/* Sends SUBSCRIBE, after UNSUBSCRIBE of the channel before. */
static enum hf_result send_subscribe(struct redis *r, const char *channel, size_t len,
                                     struct hf_fault *fault)
{
    const char *before = r->waiter.channel;
    if (r->messages.fd >= 0 && before[0])
        redis_put(&r->messages,
                  (struct redis_arg[]){REDIS_ARG("UNSUBSCRIBE"), {before, strlen(before)}}, 2);
    redis_put(&r->messages, (struct redis_arg[]){REDIS_ARG("SUBSCRIBE"), {channel, len}}, 2);
    return redis_send(&r->messages, fault);
}

/* Reads answers until the server confirms the subscription. */
static enum hf_result await_confirmation(struct redis *r, const char *channel,
                                         struct hf_fault *fault)
{
    for (bool confirmed = false; !confirmed;) {
        redisReply *reply;
        enum hf_result result =
            redis_receive(&r->messages, r->messages.timeout_ms, -1, &reply, fault);
        if (result != HF_DONE)
            return result;
        if (!reply) {
            redis_link_close(&r->messages);
            return fault_set(fault, HF_UNREACHABLE, "Redis: no answer to SUBSCRIBE");
        }
        confirmed = is_text(reply, 0, "subscribe") && is_text(reply, 1, channel);
        if (reply->type == REDIS_REPLY_ERROR)
            result = redis_refusal(&r->messages, reply, fault);
        freeReplyObject(reply);
        if (result != HF_DONE) {
            redis_link_close(&r->messages);
            return result;
        }
    }
    return HF_DONE;
}

/* Subscribes to the waiter's channel instead of the one before.  After HF_DONE the handle hears
 * everything that is published there. */
static enum hf_result subscribe(struct redis *r, const struct lease_request *q,
                                struct hf_fault *fault)
{
    struct subscription *w = &r->waiter;
    char channel[CHANNEL_SIZE];
    size_t len = channel_of(q, channel);
    if (r->messages.fd >= 0 && w->dials != r->caller.link.dials) {
        /* the first connection was made anew, perhaps to another server: the second follows it */
        redis_link_close(&r->messages);
        w->channel[0] = '\0';
    }
    if (r->messages.fd >= 0 && strcmp(w->channel, channel) == 0)
        return HF_DONE;
    enum hf_result result = send_subscribe(r, channel, len, fault);
    w->channel[0] = '\0';
    if (result == HF_DONE)
        result = await_confirmation(r, channel, fault);
    if (result != HF_DONE)
        return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
    memcpy(w->channel, channel, sizeof channel);
    memcpy(w->owner, q->owner, LEASE_OWNER_SIZE);
    w->dials = r->caller.link.dials;
    w->look_us = INT64_MIN; /* messages before this moment were not heard: ask at once */
    w->turn_us = INT64_MAX;
    return HF_DONE;
}

/* The heartbeat: keeps the place.  *ret_turn: acquire is worth a try. */
static enum hf_result send_heartbeat(struct redis *r, const struct lease_request *q, bool *ret_turn,
                                     struct hf_fault *fault)
{
    enum hf_result result = redis_call(&r->caller, SCRIPT_HEARTBEAT, q, 1, REDIS_ANSWER_LEN, fault);
    if (result != HF_DONE)
        return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
    const redisReply *reply = r->caller.replies.v[0];
    *ret_turn = redis_integer(reply, 0) == REDIS_TURN;
    redis_note_turn(r, q, reply);
    redis_call_done(&r->caller, 1);
    return HF_DONE;
}

/* Sleeps for `us`, until a message or until wake_fd is readable.  Returns true if there is reason
 * to ask: a message came, or the connection failed and asking tells why. */
static bool sleep_until_message(struct redis *r, int64_t us)
{
    redisReply *reply = NULL;
    if (redis_receive(&r->messages, (us + 999) / 1000, r->lease.wake_fd, &reply, NULL) != HF_DONE) {
        r->waiter.channel[0] = '\0';
        return true;
    }
    bool woken = reply && is_text(reply, 0, "message") && is_text(reply, 1, r->waiter.channel);
    if (reply)
        freeReplyObject(reply);
    return woken;
}

/* Returns when a message came, when the lease before the waiter ends (no message tells that, and
 * only the head of the queue looks), or when the time is up.  If a message is lost the next
 * heartbeat finds out whose turn it is. */
enum hf_result redis_wait(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                          struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    const struct subscription *w = &r->waiter;
    const struct clock *clock = r->caller.link.clock;
    int64_t end_us = clock_boot_us(clock) + 1000 * timeout_ms;
    int64_t slept_us = 0; /* a test's clock may stand still */
    enum hf_result result = subscribe(r, request, fault);
    while (result == HF_DONE) {
        int64_t now_us = clock_boot_us(clock);
        if (now_us >= end_us || now_us >= w->turn_us || lease_is_woken(l))
            break;
        if (now_us >= w->look_us) {
            bool turn = false;
            result = send_heartbeat(r, request, &turn, fault);
            if (turn)
                break;
            if (result == HF_DONE)
                result = subscribe(r, request, fault);
            continue;
        }
        int64_t until_us = w->look_us < end_us ? w->look_us : end_us;
        until_us = until_us < w->turn_us ? until_us : w->turn_us;
        slept_us += until_us - now_us;
        if (sleep_until_message(r, until_us - now_us) || slept_us >= 1000 * timeout_ms)
            break;
    }
    return result;
}
