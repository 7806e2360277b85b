/* What a caller may ask for, judged before anything is sent, so that a mistake is told the same way
 * whatever the back end, and never halfway through.  No state, any thread. */
#include "lock/internal.h"

#include <string.h>

/* The length of the UTF-8 character at `s`, 0 if there is none: overlong forms, surrogates and what
 * lies beyond U+10FFFF are none, and neither are control characters (C0, DEL, C1). */
static size_t character(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return s[0] >= 0x20 && s[0] != 0x7f;
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || len > left)
        return 0;
    uint32_t c = s[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if ((len == 2 && c < 0xa0) || (len == 3 && c < 0x800) || (len == 4 && c < 0x10000) ||
        c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    return len;
}

static bool is_text(const char *s, size_t len)
{
    for (size_t at = 0, n; at < len; at += n) {
        n = character((const unsigned char *)s + at, len - at);
        if (n == 0)
            return false;
    }
    return true;
}

enum hf_result check_name(const struct hf_locks *locks, const char *name, struct hf_fault *fault)
{
    if (!name || !name[0])
        return lease_fault(fault, HF_BAD_REQUEST, "the name of the lock is empty");
    size_t max = locks->driver->info.name_len_max;
    if (max == 0 || max > LEASE_NAME_MAX)
        max = LEASE_NAME_MAX;
    size_t len = strnlen(name, max + 1);
    if (len > max)
        return lease_fault(fault, HF_BAD_REQUEST,
                           "the name of the lock is longer than %zu bytes, the most for %s", max,
                           locks->driver->info.name);
    if (!is_text(name, len))
        return lease_fault(fault, HF_BAD_REQUEST,
                           "the name of the lock is not UTF-8 without control characters");
    return HF_DONE;
}

static enum hf_result check_label(const char *label, struct hf_fault *fault)
{
    if (!label)
        return HF_DONE;
    size_t len = strnlen(label, LEASE_LABEL_MAX + 1);
    if (len > LEASE_LABEL_MAX)
        return lease_fault(fault, HF_BAD_REQUEST, "the label is longer than %d bytes",
                           LEASE_LABEL_MAX);
    if (!is_text(label, len))
        return lease_fault(fault, HF_BAD_REQUEST,
                           "the label is not UTF-8 without control characters");
    return HF_DONE;
}

static enum hf_result check_ttl(const struct hf_driver_info *info, struct hf_lock_options *o,
                                struct hf_fault *fault)
{
    int64_t min = info->ttl_min_ms > LOCK_TTL_MIN_MS ? info->ttl_min_ms : LOCK_TTL_MIN_MS;
    int64_t max =
        info->ttl_max_ms > 0 && info->ttl_max_ms < LOCK_MS_MAX ? info->ttl_max_ms : LOCK_MS_MAX;
    if (o->ttl_ms == 0)
        o->ttl_ms = LOCK_TTL_MS < min ? min : LOCK_TTL_MS > max ? max : LOCK_TTL_MS;
    if (o->ttl_ms < min || o->ttl_ms > max)
        return lease_fault(fault, HF_BAD_REQUEST, "a TTL of %lld ms: %s takes from %lld to %lld ms",
                           (long long)o->ttl_ms, info->name, (long long)min, (long long)max);
    return HF_DONE;
}

static enum hf_result check_times(const struct hf_lock_options *o, struct hf_fault *fault)
{
    if (o->wait_ms < 0 && o->wait_ms != HF_FOREVER)
        return lease_fault(fault, HF_BAD_REQUEST, "wait_ms is %lld: not a time, nor HF_FOREVER",
                           (long long)o->wait_ms);
    if (o->retries < 0 || o->retries > LOCK_RETRIES_MAX)
        return lease_fault(fault, HF_BAD_REQUEST, "retries is %d: from 0 to %d", o->retries,
                           LOCK_RETRIES_MAX);
    if (o->retry_ms < 0 || o->retry_ms > LOCK_MS_MAX)
        return lease_fault(fault, HF_BAD_REQUEST, "retry_ms is %lld: from 0 to %lld",
                           (long long)o->retry_ms, (long long)LOCK_MS_MAX);
    if (o->max_hold_ms < 0)
        return lease_fault(fault, HF_BAD_REQUEST, "max_hold_ms is %lld: less than nothing",
                           (long long)o->max_hold_ms);
    return HF_DONE;
}

/* What the back end cannot do is refused, never silently done without. */
static enum hf_result check_kind(const struct hf_driver_info *info, const struct hf_lock_options *o,
                                 struct hf_fault *fault)
{
    if (o->mode != HF_EXCLUSIVE && o->mode != HF_SHARED)
        return lease_fault(fault, HF_BAD_REQUEST, "mode is %d: neither exclusive nor shared",
                           (int)o->mode);
    if (o->slots > LOCK_SLOTS_MAX)
        return lease_fault(fault, HF_BAD_REQUEST, "slots is %u: at most %d", o->slots,
                           LOCK_SLOTS_MAX);
    if (o->slots > 1 && o->mode == HF_SHARED)
        return lease_fault(fault, HF_BAD_REQUEST,
                           "slots with a shared lock: any number may share it anyway");
    if (o->mode == HF_SHARED && !info->shared)
        return lease_fault(fault, HF_UNSUPPORTED, "%s has no shared locks", info->name);
    if (o->priority != 0 && !info->priority)
        return lease_fault(fault, HF_UNSUPPORTED, "%s has no priorities", info->name);
    if (o->slots > 1 && !info->slots)
        return lease_fault(fault, HF_UNSUPPORTED, "%s has no slots: one holder a lock", info->name);
    return HF_DONE;
}

enum hf_result check_options(const struct hf_locks *locks, const struct hf_lock_options *options,
                             struct hf_lock_options *ret, struct hf_fault *fault)
{
    const struct hf_driver_info *info = &locks->driver->info;
    struct hf_lock_options o = options ? *options : (struct hf_lock_options){.ttl_ms = 0};
    enum hf_result r;
    if ((r = check_ttl(info, &o, fault)) != HF_DONE || (r = check_times(&o, fault)) != HF_DONE ||
        (r = check_kind(info, &o, fault)) != HF_DONE ||
        (r = check_label(o.label, fault)) != HF_DONE)
        return r;
    if (o.retry_ms == 0)
        o.retry_ms = LOCK_RETRY_MS;
    if (o.slots == 0)
        o.slots = 1;
    if (o.wait_ms > LOCK_MS_MAX)
        o.wait_ms = HF_FOREVER;
    if (o.max_hold_ms > LOCK_MS_MAX)
        o.max_hold_ms = 0;
    *ret = o;
    return HF_DONE;
}
