/* See options.h. */
#include "lock/options.h"

#include <string.h>

#include "lock/sized.h"

#define TTL_MS 30000
#define RETRY_MS 100
#define RETRIES_MAX 1000000
#define MS_MAX INT64_C(315360000000) /* ten years: a longer wait or hold has no limit */

enum hf_result options_check_process(const struct hf_locks *locks, struct hf_fault *fault)
{
    if (!locks_is_forked(locks))
        return HF_DONE;
    return fault_set(fault, HF_BAD_REQUEST,
                     "opened by process %d before fork(): a child opens its own", (int)locks->pid);
}

enum hf_result options_check_name(const struct hf_locks *locks, const char *name,
                                  struct hf_fault *fault)
{
    enum hf_result r = options_check_process(locks, fault);
    if (r != HF_DONE)
        return r;
    return lease_check_key(&locks->driver->info, name, name ? strlen(name) : 0, fault);
}

static enum hf_result check_times(const struct hf_lock_options *o, struct hf_fault *fault)
{
    if (o->wait_ms < 0 && o->wait_ms != HF_FOREVER)
        return fault_set(fault, HF_BAD_REQUEST,
                         "wait_ms is %lld; it must be HF_FOREVER or at least 0",
                         (long long)o->wait_ms);
    if (o->retries < 0 || o->retries > RETRIES_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "retries is %d; it must be between 0 and %d",
                         o->retries, RETRIES_MAX);
    if (o->retry_ms < 0 || o->retry_ms > MS_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "retry_ms is %lld; it must be between 0 and %lld",
                         (long long)o->retry_ms, (long long)MS_MAX);
    if (o->outage_ms < 0)
        return fault_set(fault, HF_BAD_REQUEST, "outage_ms is %lld; it must not be negative",
                         (long long)o->outage_ms);
    if (o->max_hold_ms < 0)
        return fault_set(fault, HF_BAD_REQUEST, "max_hold_ms is %lld; it must not be negative",
                         (long long)o->max_hold_ms);
    if (o->ttl_ms < LEASE_TTL_MIN_MS)
        return fault_set(fault, HF_BAD_REQUEST,
                         "a TTL of %lld ms is too short; the minimum is %d ms",
                         (long long)o->ttl_ms, LEASE_TTL_MIN_MS);
    if (o->slots > 1 && o->mode == HF_SHARED)
        return fault_set(fault, HF_BAD_REQUEST,
                         "a shared lock has no slots: any number of holders may share it");
    return HF_DONE;
}

static void fill_defaults(const struct lease *l, struct hf_lock_options *o)
{
    int64_t min_ms = lease_ttl_min_ms(l), max_ms = lease_ttl_max_ms(l);
    if (o->ttl_ms == 0)
        o->ttl_ms = TTL_MS < min_ms ? min_ms : TTL_MS > max_ms ? max_ms : TTL_MS;
    if (o->retry_ms == 0)
        o->retry_ms = RETRY_MS;
    if (o->slots == 0)
        o->slots = 1;
    if (o->wait_ms > MS_MAX)
        o->wait_ms = HF_FOREVER;
    if (o->max_hold_ms > MS_MAX)
        o->max_hold_ms = 0;
    if (o->outage_ms > MS_MAX)
        o->outage_ms = 0;
}

enum hf_result options_check(const struct hf_locks *locks, const struct hf_lock_options *options,
                             struct hf_lock_options *ret, struct hf_fault *fault)
{
    const struct lease *l = locks->pool.first; /* its limits never change */
    struct hf_lock_options o = HF_LOCK_OPTIONS_INIT;
    enum hf_result r;
    if (options && (r = sized_read(&sized_lock_options, options, &o, fault)) != HF_DONE)
        return r;
    fill_defaults(l, &o);
    if ((r = check_times(&o, fault)) != HF_DONE)
        return r;
    const struct lease_request request = {
        .key = "-",
        .key_len = 1,
        .ttl_ms = o.ttl_ms,
        .mode = o.mode,
        .priority = o.priority,
        .slots = o.slots,
        .label = o.label,
        .label_len = o.label ? strnlen(o.label, LEASE_LABEL_MAX + 1) : 0,
        .value = o.value,
        .value_len = o.value ? strnlen(o.value, LEASE_VALUE_MAX + 1) : 0,
    };
    if ((r = lease_check(l, &request, fault)) != HF_DONE)
        return r;
    *ret = o;
    return HF_DONE;
}
