/* Detached leases, for scripts: one process takes the lease, and other processes that know the
 * owner's text renew and release it.  Calls run on the caller's thread: hf_lease_get waits in the
 * queue as hf_lock does, the others are one exchange each.  The library does not watch these
 * leases, so the only deadline is the one that the caller keeps. */
#include <string.h>

#include "lock/lock.h"
#include "lock/options.h"
#include "lock/sized.h"

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_owner(const char *text, uint8_t ret[LEASE_OWNER_SIZE])
{
    if (!text || strnlen(text, 2 * LEASE_OWNER_SIZE + 1) != 2 * LEASE_OWNER_SIZE)
        return false;
    for (int i = 0; i < LEASE_OWNER_SIZE; i++) {
        int high = nibble(text[2 * i]), low = nibble(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

enum hf_result hf_lease_get(struct hf_locks *locks, const char *name,
                            const struct hf_lock_options *options, struct hf_grant *ret,
                            struct hf_fault *fault)
{
    struct hf_lock_options want = HF_LOCK_OPTIONS_INIT;
    struct hf_lock *lock;
    enum hf_result r;
    if ((r = sized_check(&sized_grant, ret, fault)) != HF_DONE ||
        (options && (r = sized_read(&sized_lock_options, options, &want, fault)) != HF_DONE))
        return r;
    const struct hf_driver_info *info = &locks->driver->info;
    if (info->processes && !info->outlives)
        return fault_set(fault, HF_UNSUPPORTED, "a lease of %s ends with the process that took it",
                         info->name);
    want.manual = true;
    want.max_hold_ms = 0;
    want.on_loss = NULL;
    if ((r = hf_lock(locks, name, &want, &lock, fault)) != HF_DONE)
        return r;
    struct hf_grant grant = {
        .fence = hf_lock_fence(lock),
        .remaining_ms = hf_lock_deadline_ms(lock) - locks_now_us(locks) / 1000,
        .slot = hf_lock_slot(lock),
    };
    lease_owner_text(lock->request.owner, grant.owner);
    sized_write(&sized_grant, ret, &grant);
    /* The process forgets the lock; the back end keeps the lease. */
    watch_remove(lock);
    watch_unref(lock);
    return HF_DONE;
}

/* Checks the arguments and renews or releases the lease in one exchange.  A *ttl_ms of 0 becomes
 * the default. */
static enum hf_result exchange(struct hf_locks *locks, const char *name, const char *owner,
                               int64_t *ttl_ms, bool renew, struct lease_verdict *verdict,
                               struct hf_fault *fault)
{
    struct hf_lock_options want = HF_LOCK_OPTIONS(.ttl_ms = *ttl_ms);
    enum hf_result r;
    if ((r = options_check_name(locks, name, fault)) != HF_DONE ||
        (r = options_check(locks, &want, &want, fault)) != HF_DONE)
        return r;
    *ttl_ms = want.ttl_ms;
    struct lease_request request = {
        .key = name, .key_len = strlen(name), .ttl_ms = want.ttl_ms, .slots = 1};
    if (!parse_owner(owner, request.owner))
        return fault_set(fault, HF_BAD_REQUEST, "an owner is 32 digits and letters a to f");
    struct lease *handle;
    if ((r = pool_take(&locks->pool, &handle, fault)) != HF_DONE)
        return r;
    r = (renew ? lease_renew : lease_release)(handle, &request, 1, verdict, fault);
    pool_give(&locks->pool, handle, false);
    if (r != HF_DONE)
        return r;
    if (verdict->result == HF_LOST)
        return fault_set(fault, HF_LOST, "it is not held by this owner");
    return verdict->result;
}

enum hf_result hf_lease_renew(struct hf_locks *locks, const char *name, const char *owner,
                              int64_t ttl_ms, struct hf_grant *ret, struct hf_fault *fault)
{
    struct lease_verdict verdict = {.result = HF_UNKNOWN};
    int64_t sent_us = locks_now_us(locks);
    enum hf_result r;
    if ((r = sized_check(&sized_grant, ret, fault)) != HF_DONE ||
        (r = exchange(locks, name, owner, &ttl_ms, true, &verdict, fault)) != HF_DONE)
        return r;
    int64_t deadline_us = sent_us + verdict.remaining_ms * 1000 - lock_margin_us(ttl_ms);
    struct hf_grant grant = {.fence = verdict.fence,
                             .remaining_ms = deadline_us / 1000 - locks_now_us(locks) / 1000,
                             .slot = verdict.slot};
    memcpy(grant.owner, owner, sizeof grant.owner);
    sized_write(&sized_grant, ret, &grant);
    return HF_DONE;
}

enum hf_result hf_lease_release(struct hf_locks *locks, const char *name, const char *owner,
                                struct hf_fault *fault)
{
    struct lease_verdict verdict = {.result = HF_UNKNOWN};
    int64_t ttl_ms = 0;
    return exchange(locks, name, owner, &ttl_ms, false, &verdict, fault);
}
