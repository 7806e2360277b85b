/* Waits until replicas have what the primary has granted, for URLs with min_replicas=N.  WAIT makes
 * a failover safer, not safe: the replica that takes over need not be one of the N. */
#include <inttypes.h>
#include <stdio.h>

#include "lease/redis/handle.h"

static bool has_grant(const struct lease_verdict *verdicts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (verdicts[i].result == HF_DONE)
            return true;
    return false;
}

/* WAIT counts the replicas that have all that this connection has written, and everything before
 * it.  The link is open, since it has just been used.  Returns -1 if the answer was lost. */
static int64_t count_replicas(struct redis *r, int64_t wait_ms, int64_t deadline_us,
                              struct hf_fault *fault)
{
    struct redis_link *k = &r->caller.link;
    char wanted[16], ms[24];
    redisReply *reply;
    int wanted_len = snprintf(wanted, sizeof wanted, "%d", r->address.min_replicas);
    int ms_len = snprintf(ms, sizeof ms, "%" PRId64, wait_ms);
    redis_put(
        k,
        (struct redis_arg[]){REDIS_ARG("WAIT"), {wanted, (size_t)wanted_len}, {ms, (size_t)ms_len}},
        3);
    k->deadline_us = deadline_us;
    enum hf_result result = redis_exchange(k, 0, &reply, fault);
    k->deadline_us = 0;
    if (result != HF_DONE)
        return -1;
    int64_t count = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
    if (count < 0) {
        (void)redis_refusal(k, reply, fault);
        redis_link_close(k); /* it may be a replica by now */
    }
    freeReplyObject(reply);
    return count;
}

enum hf_result redis_await_replicas(struct redis *r, const struct lease_verdict *verdicts, size_t n,
                                    int64_t begun_us, struct hf_fault *fault)
{
    const struct redis_address *a = &r->address;
    if (a->min_replicas == 0 || !has_grant(verdicts, n))
        return HF_DONE;
    int64_t limit_ms = r->lease.limit_ms, allowed_ms = r->caller.link.timeout_ms;
    allowed_ms = limit_ms > 0 && limit_ms < allowed_ms ? limit_ms : allowed_ms;
    int64_t deadline_us = begun_us + 1000 * allowed_ms;
    int64_t left_ms = (deadline_us - clock_boot_us(r->caller.link.clock)) / 1000;
    int64_t wait_ms =
        a->replicas_timeout_ms < left_ms * 3 / 4 ? a->replicas_timeout_ms : left_ms * 3 / 4;
    if (wait_ms < 1)
        return fault_set(fault, HF_UNKNOWN, "Redis: there was no time to wait for replicas");
    int64_t count = count_replicas(r, wait_ms, deadline_us, fault);
    if (count < 0 && fault)
        fault->result = HF_UNKNOWN;
    if (count < 0)
        return HF_UNKNOWN;
    return count >= a->min_replicas
               ? HF_DONE
               : fault_set(fault, HF_UNKNOWN,
                           "Redis: %" PRId64 " of %d replicas had it within %" PRId64 " ms", count,
                           a->min_replicas, wait_ms);
}
