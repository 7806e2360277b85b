/* The table of drivers, and what all of them say alike: which URL is whose, which names, TTLs and
 * labels can be, and how a fault is filled.  No state; any thread. */
#include "lease/lease.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

extern const struct lease_driver lease_memory;
extern const struct lease_driver lease_sqlite;
extern const struct lease_driver lease_postgres;
extern const struct lease_driver lease_redis;

const struct lease_driver *const lease_drivers[] = {
    &lease_memory, &lease_sqlite, &lease_postgres, &lease_redis, NULL,
};

const struct lease_driver *lease_driver_for(const char *url)
{
    for (const struct lease_driver *const *d = lease_drivers; *d; d++)
        for (const char *const *scheme = (*d)->schemes; *scheme; scheme++)
            if (strncmp(url, *scheme, strlen(*scheme)) == 0)
                return *d;
    return NULL;
}

/* Bytes below U+0020, DEL, and the C1 controls U+0080 to U+009F. */
static bool is_control(const unsigned char *p)
{
    return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

static enum hf_result check_text(const char *what, const char *text, size_t len,
                                 struct hf_fault *fault)
{
    const unsigned char *p = (const void *)text;
    for (size_t i = 0, step; i < len; i += step) {
        step = 1;
        if (p[i] >= 0x20 && p[i] < 0x7f)
            continue;
        step = utf8_char_len(text + i, len - i);
        if (step == 0)
            return fault_set(fault, HF_BAD_REQUEST, "%s is not UTF-8 at byte %zu", what, i + 1);
        if (is_control(p + i))
            return fault_set(fault, HF_BAD_REQUEST, "%s has a control character at byte %zu", what,
                             i + 1);
    }
    return HF_DONE;
}

enum hf_result lease_check_key(const struct hf_driver_info *info, const char *key, size_t key_len,
                               struct hf_fault *fault)
{
    if (key_len == 0)
        return fault_set(fault, HF_BAD_REQUEST, "the name of the lock is empty");
    if (key_len > info->name_len_max)
        return fault_set(fault, HF_BAD_REQUEST,
                         "the name of the lock has %zu bytes; %s takes at most %zu", key_len,
                         info->name, info->name_len_max);
    return check_text("the name of the lock", key, key_len, fault);
}

enum hf_result lease_check_ttl(const struct hf_driver_info *info, int64_t ttl_ms,
                               struct hf_fault *fault)
{
    if (ttl_ms >= info->ttl_min_ms && ttl_ms <= info->ttl_max_ms)
        return HF_DONE;
    return fault_set(fault, HF_BAD_REQUEST,
                     "a TTL of %" PRId64 " ms; %s takes %" PRId64 " to %" PRId64 " ms", ttl_ms,
                     info->name, info->ttl_min_ms, info->ttl_max_ms);
}

static enum hf_result check_one(const struct hf_driver_info *info, const struct lease_request *r,
                                struct hf_fault *fault)
{
    enum hf_result result = lease_check_key(info, r->key, r->key_len, fault);
    if (result == HF_DONE)
        result = lease_check_ttl(info, r->ttl_ms, fault);
    if (result != HF_DONE)
        return result;
    if (r->mode != HF_EXCLUSIVE && r->mode != HF_SHARED)
        return fault_set(fault, HF_BAD_REQUEST, "there is no mode %d", (int)r->mode);
    if (r->slots < 1 || r->slots > LEASE_SLOTS_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "%u slots; 1 to %d can be", r->slots,
                         LEASE_SLOTS_MAX);
    if (r->label && r->label_len > LEASE_LABEL_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "the label has %zu bytes, more than %d",
                         r->label_len, LEASE_LABEL_MAX);
    if (r->mode == HF_SHARED && !info->shared)
        return fault_set(fault, HF_UNSUPPORTED, "%s has no shared locks", info->name);
    if (r->slots > 1 && !info->slots)
        return fault_set(fault, HF_UNSUPPORTED, "%s has no slots", info->name);
    if (r->priority != 0 && !info->priority)
        return fault_set(fault, HF_UNSUPPORTED, "%s has no priorities", info->name);
    return r->label ? check_text("the label", r->label, r->label_len, fault) : HF_DONE;
}

enum hf_result lease_check(const struct hf_driver_info *info, const struct lease_request *requests,
                           size_t n, struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    for (size_t i = 0; i < n && result == HF_DONE; i++)
        result = check_one(info, &requests[i], fault);
    return result;
}
