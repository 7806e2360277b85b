/* What a caller may ask for, judged before anything is sent, so that a mistake is told the same way
 * whatever the back end, and never halfway through.  What concerns the driver alone is
 * lease_check's.  No state, any thread. */
#include "lock/internal.h"

#include <string.h>

enum hf_result check_name(const struct hf_locks *locks, const char *name, struct hf_fault *fault)
{
    return lease_check_key(&locks->driver->info, name, name ? strlen(name) : 0, fault);
}

static enum hf_result check_times(const struct hf_lock_options *o, struct hf_fault *fault)
{
    if (o->wait_ms < 0 && o->wait_ms != HF_FOREVER)
        return fault_set(fault, HF_BAD_REQUEST, "wait_ms is %lld: neither a time nor HF_FOREVER",
                         (long long)o->wait_ms);
    if (o->retries < 0 || o->retries > LOCK_RETRIES_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "retries is %d: 0 to %d can be", o->retries,
                         LOCK_RETRIES_MAX);
    if (o->retry_ms < 0 || o->retry_ms > LOCK_MS_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "retry_ms is %lld: 0 to %lld can be",
                         (long long)o->retry_ms, (long long)LOCK_MS_MAX);
    if (o->outage_ms < 0)
        return fault_set(fault, HF_BAD_REQUEST, "outage_ms is %lld: less than nothing",
                         (long long)o->outage_ms);
    if (o->max_hold_ms < 0)
        return fault_set(fault, HF_BAD_REQUEST, "max_hold_ms is %lld: less than nothing",
                         (long long)o->max_hold_ms);
    if (o->ttl_ms < LOCK_TTL_MIN_MS)
        return fault_set(fault, HF_BAD_REQUEST,
                         "a TTL of %lld ms: less than %d ms leave no time to hold it",
                         (long long)o->ttl_ms, LOCK_TTL_MIN_MS);
    if (o->slots > 1 && o->mode == HF_SHARED)
        return fault_set(fault, HF_BAD_REQUEST,
                         "slots with a shared lock: any number may share it anyway");
    return HF_DONE;
}

static void fill_defaults(const struct hf_driver_info *info, struct hf_lock_options *o)
{
    if (o->ttl_ms == 0)
        o->ttl_ms = LOCK_TTL_MS < info->ttl_min_ms   ? info->ttl_min_ms
                    : LOCK_TTL_MS > info->ttl_max_ms ? info->ttl_max_ms
                                                     : LOCK_TTL_MS;
    if (o->retry_ms == 0)
        o->retry_ms = LOCK_RETRY_MS;
    if (o->slots == 0)
        o->slots = 1;
    if (o->wait_ms > LOCK_MS_MAX)
        o->wait_ms = HF_FOREVER;
    if (o->max_hold_ms > LOCK_MS_MAX)
        o->max_hold_ms = 0;
    if (o->outage_ms > LOCK_MS_MAX)
        o->outage_ms = 0;
}

enum hf_result check_options(const struct hf_locks *locks, const struct hf_lock_options *options,
                             struct hf_lock_options *ret, struct hf_fault *fault)
{
    const struct hf_driver_info *info = &locks->driver->info;
    struct hf_lock_options o = options ? *options : (struct hf_lock_options){.ttl_ms = 0};
    fill_defaults(info, &o);
    enum hf_result r = check_times(&o, fault);
    if (r != HF_DONE)
        return r;
    struct lease_request request = {
        .key = "-",
        .key_len = 1,
        .ttl_ms = o.ttl_ms,
        .mode = o.mode,
        .priority = o.priority,
        .slots = o.slots,
        .label = o.label,
        .label_len = o.label ? strnlen(o.label, LEASE_LABEL_MAX + 1) : 0,
    };
    if ((r = lease_check(info, &request, 1, fault)) == HF_DONE)
        *ret = o;
    return r;
}
