/* Leases without a living process, for scripts: taken by one process, renewed and released by
 * others that know the owner's text.  On the caller's thread, one exchange each; nothing watches
 * over them, so there is no deadline but what the caller keeps. */
#include <stdio.h>
#include <string.h>

#include "lock/internal.h"

static void owner_text(const uint8_t owner[LEASE_OWNER_SIZE], char ret[33])
{
    for (int i = 0; i < LEASE_OWNER_SIZE; i++)
        snprintf(ret + 2 * (ptrdiff_t)i, 3, "%02x", owner[i]);
}

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
    struct hf_lock_options want = options ? *options : (struct hf_lock_options){.ttl_ms = 0};
    want.manual = true;
    want.max_hold_ms = 0;
    want.on_loss = NULL;
    struct hf_lock *lock;
    enum hf_result r = hf_lock(locks, name, &want, &lock, fault);
    if (r != HF_DONE)
        return r;
    owner_text(lock->request.owner, ret->owner);
    ret->fence = hf_lock_fence(lock);
    ret->remaining_ms = hf_lock_deadline_ms(lock) - locks_now_us(locks) / 1000;
    /* Out of this process's sight, and still held. */
    watch_remove(lock);
    watch_unref(lock);
    return HF_DONE;
}

/* The checks, and one exchange; a *ttl_ms of 0 becomes the default. */
static enum hf_result exchange(struct hf_locks *locks, const char *name, const char *owner,
                               int64_t *ttl_ms, bool renew, struct lease_verdict *verdict,
                               struct hf_fault *fault)
{
    struct hf_lock_options want = {.ttl_ms = *ttl_ms};
    enum hf_result r = check_name(locks, name, fault);
    if (r == HF_DONE)
        r = check_options(locks, &want, &want, fault);
    if (r != HF_DONE)
        return r;
    *ttl_ms = want.ttl_ms;
    struct lease_request request = {
        .key = name, .key_len = strlen(name), .ttl_ms = want.ttl_ms, .slots = 1};
    if (!parse_owner(owner, request.owner))
        return fault_set(fault, HF_BAD_REQUEST, "an owner is 32 digits and letters a to f");
    struct lease *handle;
    r = pool_take(locks, &handle, fault);
    if (r != HF_DONE)
        return r;
    const struct lease_driver *driver = locks->driver;
    r = (renew ? driver->renew : driver->release)(handle, &request, 1, verdict, fault);
    pool_give(locks, handle, false);
    if (r == HF_DONE && verdict->result == HF_LOST)
        return fault_set(fault, HF_LOST, "it is not held by this owner");
    return r != HF_DONE ? r : verdict->result;
}

enum hf_result hf_lease_renew(struct hf_locks *locks, const char *name, const char *owner,
                              int64_t ttl_ms, struct hf_grant *ret, struct hf_fault *fault)
{
    struct lease_verdict verdict = {.result = HF_UNKNOWN};
    int64_t sent_us = locks_now_us(locks);
    enum hf_result r = exchange(locks, name, owner, &ttl_ms, true, &verdict, fault);
    if (r != HF_DONE)
        return r;
    memcpy(ret->owner, owner, sizeof ret->owner);
    ret->fence = verdict.fence;
    ret->remaining_ms = (sent_us + verdict.remaining_ms * 1000 - lock_margin_us(ttl_ms)) / 1000 -
                        locks_now_us(locks) / 1000;
    return HF_DONE;
}

enum hf_result hf_lease_release(struct hf_locks *locks, const char *name, const char *owner,
                                struct hf_fault *fault)
{
    struct lease_verdict verdict = {.result = HF_UNKNOWN};
    int64_t ttl_ms = 0;
    return exchange(locks, name, owner, &ttl_ms, false, &verdict, fault);
}
