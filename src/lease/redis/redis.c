/* The Redis driver: leases on one Redis server (5 or later, or a compatible one).  The scripts in
 * scripts.h take all decisions.  This file takes, renews and releases leases: request.c makes
 * commands of requests, and answers become verdicts here.  handle.h lists the other files.
 *
 * Keys: holdfast:{NAME}:lock and keys that begin so; of all locks together holdfast:fence, the
 * counter, and holdfast:last, the latest fences.  The braces keep a lock's keys in one hash slot,
 * but the counter is one key for all locks, so a Redis Cluster is not supported (it refuses the
 * scripts with CROSSSLOT): the back end is one server, or one primary with replicas. */
#include <stdlib.h>

#include "lease/redis/handle.h"
#include "lease/redis/scripts.h"

extern const struct lease_driver lease_redis;

/* ---- handles ---- */

static void redis_close(struct lease *l)
{
    struct redis *r = redis_of(l);
    redis_caller_close(&r->caller);
    redis_link_close(&r->messages);
    redis_address_close(&r->address);
    free(r);
}

/* Takes ownership of `address`. */
static struct redis *handle_new(struct redis_address address, const struct clock *clock,
                                int64_t timeout_ms)
{
    struct redis *r = hf_alloc(sizeof *r);
    r->lease.driver = &lease_redis;
    r->address = address;
    redis_link_init(&r->caller.link, &r->address, clock, timeout_ms);
    redis_link_init(&r->messages, &r->address, clock, timeout_ms);
    redis_caller_init(&r->caller, redis_scripts, N_SCRIPTS);
    return r;
}

static enum hf_result redis_open(const char *url, const struct lease_options *options,
                                 struct lease **ret, struct hf_fault *fault)
{
    struct redis_address address;
    enum hf_result result = redis_address_parse(url, &address, fault);
    if (result != HF_DONE)
        return result;
    struct redis *r = handle_new(address, options->clock, options->timeout_ms);
    result = redis_send(&r->caller.link, fault); /* connects */
    if (result == HF_DONE)
        *ret = &r->lease;
    else
        redis_close(&r->lease);
    return result;
}

/* Reads only what never changes, since `l` may be in use. */
static enum hf_result redis_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    (void)fault;
    const struct redis *r = redis_of(l);
    struct redis_address address;
    redis_address_copy(&r->address, &address);
    *ret = &handle_new(address, r->caller.link.clock, r->caller.link.timeout_ms)->lease;
    return HF_DONE;
}

/* ---- acquire, renew, release ---- */

struct lease_verdict redis_verdict(const redisReply *reply, const struct lease_request *q)
{
    if (reply->type != REDIS_REPLY_ARRAY)
        return (struct lease_verdict){
            .result = HF_DONE,
            .fence = reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10) : 0,
            .remaining_ms = q->ttl_ms};
    return (struct lease_verdict){
        .result = redis_integer(reply, 0) == REDIS_DONE    ? HF_DONE
                  : redis_integer(reply, 0) == REDIS_TAKEN ? HF_TAKEN
                                                           : HF_LOST,
        .fence = redis_integer(reply, 1),
        .remaining_ms = redis_integer(reply, 2),
        .position = (size_t)redis_integer(reply, 3),
        .slot = redis_integer(reply, 0) == REDIS_DONE ? (unsigned)redis_integer(reply, 4) : 0,
    };
}

/* A grant that too few replicas have heard of could be lost in a failover, so it is given back. */
static enum hf_result confirm_grant(struct redis *r, const struct lease_request *q,
                                    const struct lease_verdict *verdict, int64_t begun_us,
                                    struct hf_fault *fault)
{
    struct hf_fault why = {0};
    if (redis_await_replicas(r, verdict, 1, begun_us, &why) == HF_DONE)
        return HF_DONE;
    if (redis_call(&r->caller, SCRIPT_RELEASE, q, 1, REDIS_ANSWER_LEN, fault) != HF_DONE) {
        if (fault)
            fault->result = HF_UNKNOWN;
        return HF_UNKNOWN;
    }
    redis_call_done(&r->caller, 1);
    return fault_set(fault, HF_UNREACHABLE, "%.200s; the lock was given back", why.msg);
}

static enum hf_result redis_acquire(struct lease *l, const struct lease_request *q,
                                    struct lease_verdict *verdict, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    int64_t begun_us = r->address.min_replicas ? clock_boot_us(r->caller.link.clock) : 0;
    enum hf_result result = redis_call(&r->caller, SCRIPT_ACQUIRE, q, 1, REDIS_ANSWER_LEN, fault);
    if (result != HF_DONE)
        return result;
    const redisReply *reply = r->caller.replies.v[0];
    bool differs = reply->type == REDIS_REPLY_ARRAY && redis_integer(reply, 0) == REDIS_SLOTS;
    int64_t others = differs ? redis_integer(reply, 1) : 0;
    *verdict = redis_verdict(reply, q);
    if (!differs && verdict->result == HF_TAKEN && q->queue)
        redis_note_turn(r, q, reply);
    redis_call_done(&r->caller, 1);
    return differs ? lease_slots_differ(q->slots, others, fault)
                   : confirm_grant(r, q, verdict, begun_us, fault);
}

static enum hf_result renew_or_release(struct lease *l, enum redis_script script,
                                       const struct lease_request *requests, size_t n,
                                       struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    int64_t begun_us = r->address.min_replicas ? clock_boot_us(r->caller.link.clock) : 0;
    r->caller.limit_ms = l->limit_ms;
    enum hf_result result = redis_call(&r->caller, script, requests, n, REDIS_ANSWER_LEN, fault);
    r->caller.limit_ms = 0;
    if (result != HF_DONE)
        return result;
    for (size_t i = 0; i < n; i++)
        verdicts[i] = redis_verdict(r->caller.replies.v[i], &requests[i]);
    redis_call_done(&r->caller, n);
    /* A renewal that too few replicas have heard of is as good as none: the caller goes on trying,
     * and believes in the lock no longer than the renewal before allowed. */
    return script == SCRIPT_RENEW ? redis_await_replicas(r, verdicts, n, begun_us, fault) : HF_DONE;
}

static enum hf_result redis_renew(struct lease *l, const struct lease_request *requests, size_t n,
                                  struct lease_verdict *verdicts, struct hf_fault *fault)
{
    return renew_or_release(l, SCRIPT_RENEW, requests, n, verdicts, fault);
}

static enum hf_result redis_release(struct lease *l, const struct lease_request *requests, size_t n,
                                    struct lease_verdict *verdicts, struct hf_fault *fault)
{
    return renew_or_release(l, SCRIPT_RELEASE, requests, n, verdicts, fault);
}

const struct lease_driver lease_redis = {
    .info = {.size = sizeof(struct hf_driver_info),
             .name = "redis",
             .url = "redis://[[user]:password@]host[:port][/db], rediss://... over TLS, "
                    "redis+unix://[[user]:password@]/path[?db=N], "
                    "redis+sentinel://[[user]:password@]host[:port][,host...]/NAME",
             .fence = HF_FENCE_CLOCK,
             .processes = true,
             .outlives = true,
             .fair = true,
             .shared = true,
             .priority = true,
             .slots = true,
             .ttl_min_ms = LEASE_TTL_MIN_MS,
             .ttl_max_ms = LEASE_TTL_MAX_MS,
             .name_len_max = LEASE_NAME_MAX,
             .ttl = "the Redis server's wall clock, to the millisecond; leases end early if it is "
                    "set forward, late if it is set back",
             .survives =
                 "clients' ends and lost connections; a restart as far as the server persists "
                 "(without, or with the last second of an AOF missing, leases are gone at once, "
                 "while their holders may still believe in them). Fences go on by the server's "
                 "clock, also after FLUSHALL; they can repeat or fall only if what was stored is "
                 "lost and the clock is set back meanwhile, or in a failover to a replica that had "
                 "not got the latest and whose clock is behind",
             .overlaps = HF_OVERLAP_CLOCK | HF_OVERLAP_RESTART | HF_OVERLAP_FAILOVER,
             .beware = "replication is asynchronous, so a failover can lose the latest leases; so "
                       "can a restart without appendfsync always, eviction of keys (use "
                       "maxmemory-policy noeviction) and a server's clock that is set forward. A "
                       "Redis Cluster is refused"},
    .schemes = (const char *const[]){"redis://", "rediss://", "redis+unix:", "unix:",
                                     "redis+sentinel://", "rediss+sentinel://", NULL},
    .open = redis_open,
    .close = redis_close,
    .clone = redis_clone,
    .acquire = redis_acquire,
    .renew = redis_renew,
    .release = redis_release,
    .wait = redis_wait,
    .inspect = redis_inspect,
    .list = redis_list,
    .break_ = redis_break,
    .examine = redis_examine,
};
