/* A held lock: giving it back, renewing it by hand, and what a program can ask about it.  Any
 * thread; renewing by itself is the renewer's work (watch.c). */
#include "lock/lock.h"
#include "lock/options.h"

#include <sys/eventfd.h>

#include "base/backoff.h"
#include "base/wait.h"

int64_t lock_margin_us(int64_t ttl_ms) { return ttl_ms * 10 > 50000 ? ttl_ms * 10 : 50000; }

/* ---- giving back ---- */

/* A release of several locks, perhaps in several attempts. */
struct lock_release {
    struct hf_locks *locks;
    struct hf_lock *const *locked;
    size_t n;
    struct lease_request requests[LOCK_BATCH_MAX];
    struct lease_verdict verdicts[LOCK_BATCH_MAX];
    bool was_held[LOCK_BATCH_MAX]; /* when the caller gave it back */
    bool answer_lost;              /* an attempt may have been carried out */
    int64_t first_failed_us;       /* 0: no attempt has failed */
};

static enum hf_result release_once(struct lock_release *x, struct hf_fault *fault)
{
    struct lease *handle;
    enum hf_result r = pool_take(&x->locks->pool, &handle, fault);
    if (r != HF_DONE)
        return r;
    r = lease_release(handle, x->requests, x->n, x->verdicts, fault);
    pool_give(&x->locks->pool, handle, false);
    return r;
}

static int64_t last_deadline_us(const struct lock_release *x)
{
    int64_t last_us = 0;
    for (size_t i = 0; i < x->n; i++)
        if (x->locked[i]->deadline_us > last_us)
            last_us = x->locked[i]->deadline_us;
    return last_us;
}

/* The caller cannot ask a second time, since its locks are freed.  So this function asks again: for
 * timeout_ms after the first failure, but not past the last deadline, when the leases end anyway.
 */
static enum hf_result release_until_answered(struct lock_release *x, struct hf_fault *fault)
{
    int64_t until_us = 0;
    for (unsigned n = 0;; n++) {
        enum hf_result r = release_once(x, fault);
        if (r != HF_UNKNOWN && r != HF_UNREACHABLE)
            return r;
        x->answer_lost |= r == HF_UNKNOWN;
        int64_t now_us = locks_now_us(x->locks);
        if (x->first_failed_us == 0) {
            x->first_failed_us = now_us;
            until_us = min_us(now_us + x->locks->timeout_ms * 1000, last_deadline_us(x));
        }
        if (now_us >= until_us)
            return x->answer_lost ? HF_UNKNOWN : r;
        int64_t pause_us = backoff_pause(SILENT_PAUSE_US, SILENT_PAUSE_MAX_US, n);
        wait_sleep_us(min_us(pause_us, until_us - now_us));
    }
}

/* After a lost answer "not held" means that the lost attempt released it, unless its time was up.
 */
static void count_own_release(struct lock_release *x)
{
    if (!x->answer_lost)
        return;
    for (size_t i = 0; i < x->n; i++)
        if (x->verdicts[i].result == HF_LOST && x->first_failed_us < x->locked[i]->deadline_us)
            x->verdicts[i].result = HF_DONE;
}

/* A loss is final (L2): a lock that is given back after its deadline, or after its loss was told,
 * was lost, though its lease may not have passed to another yet. */
static void count_losses(struct lock_release *x)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->verdicts[i].result == HF_DONE && !x->was_held[i])
            x->verdicts[i].result = HF_LOST;
}

/* The first verdict that is not HF_DONE. */
static enum hf_result first_failure(const struct lock_release *x, struct hf_fault *fault)
{
    for (size_t i = 0; i < x->n; i++) {
        enum hf_result r = x->verdicts[i].result;
        if (r == HF_LOST)
            return fault_set(fault, HF_LOST, "it was not ours any more");
        if (r != HF_DONE)
            return fault_set(fault, r, "%s", hf_result_text(r));
    }
    return HF_DONE;
}

enum hf_result lock_release(struct hf_locks *locks, struct hf_lock **locked, size_t n,
                            struct hf_fault *fault)
{
    struct lock_release x; /* most of its requests and verdicts are not used */
    x.locks = locks;
    x.locked = locked;
    x.n = n;
    x.answer_lost = false;
    x.first_failed_us = 0;
    for (size_t i = 0; i < n; i++) {
        x.was_held[i] = hf_lock_held(locked[i]);
        watch_remove(locked[i]);
        x.requests[i] = locked[i]->request;
        x.verdicts[i] = (struct lease_verdict){.result = HF_UNKNOWN};
    }
    enum hf_result r = release_until_answered(&x, fault);
    if (r == HF_DONE) {
        count_own_release(&x);
        count_losses(&x);
        r = first_failure(&x, fault);
    } else if (fault) {
        fault->result = r;
    }
    for (size_t i = 0; i < n; i++) {
        if (x.verdicts[i].result == HF_DONE)
            stats_add(&locks->stats, STAT_RELEASES, 1);
        watch_unref(locked[i]);
    }
    return r;
}

enum hf_result hf_unlock(struct hf_lock *lock, struct hf_fault *fault)
{
    if (!lock)
        return HF_DONE;
    enum hf_result r = options_check_process(lock->locks, fault);
    if (r != HF_DONE)
        return r;
    if (lock->in_set)
        return fault_set(fault, HF_BAD_REQUEST, "it is a member of a set: hf_unlock_many");
    return lock_release(lock->locks, &lock, 1, fault);
}

/* ---- while it is held ---- */

enum hf_result hf_renew(struct hf_lock *lock, struct hf_fault *fault)
{
    struct hf_locks *locks = lock->locks;
    struct lease *handle = NULL;
    struct lease_verdict verdict = {.result = HF_UNKNOWN};
    enum hf_result r = options_check_process(locks, fault);
    if (r != HF_DONE)
        return r;
    if (atomic_load(&lock->lost))
        return fault_set(fault, HF_LOST, "it is lost already");
    if (locks_now_us(locks) >= lock->renew_until_us)
        return fault_set(fault, HF_BAD_REQUEST, "max_hold_ms is over: not renewed any more");
    if ((r = pool_take(&locks->pool, &handle, fault)) != HF_DONE)
        return r;
    int64_t sent_us = locks_now_us(locks);
    handle->limit_ms = watch_renewal_limit_ms(lock, sent_us);
    r = lease_renew(handle, &lock->request, 1, &verdict, fault);
    handle->limit_ms = 0;
    pool_give(&locks->pool, handle, false);
    if (r != HF_DONE) {
        stats_add(&locks->stats, STAT_RENEWAL_FAILURES, 1);
        return r;
    }
    watch_renewed(lock, sent_us, &verdict);
    if (verdict.result == HF_LOST || !hf_lock_held(lock))
        return fault_set(fault, HF_LOST, "it is not ours any more");
    if (verdict.result != HF_DONE)
        return fault_set(fault, verdict.result, "%s", hf_result_text(verdict.result));
    return HF_DONE;
}

const char *hf_lock_name(const struct hf_lock *lock) { return lock->name; }

int64_t hf_lock_fence(const struct hf_lock *lock) { return lock->fence; }

unsigned hf_lock_slot(const struct hf_lock *lock) { return lock->slot; }

int64_t hf_lock_deadline_ms(const struct hf_lock *lock)
{
    return atomic_load_explicit(&lock->deadline_us, memory_order_acquire) / 1000;
}

int64_t hf_lock_ttl_ms(const struct hf_lock *lock) { return lock->granted_ms; }

/* Looks at the clock itself, so that a process that was stopped and wakes up late gets the right
 * answer before any thread of the library has run. */
bool hf_lock_held(const struct hf_lock *lock)
{
    return !locks_is_forked(lock->locks) &&
           !atomic_load_explicit(&lock->lost, memory_order_acquire) &&
           locks_now_us(lock->locks) <
               atomic_load_explicit(&lock->deadline_us, memory_order_acquire);
}

/* Made on the first call: most locks are never polled, and an eventfd costs a system call. */
int hf_lock_fd(struct hf_lock *lock)
{
    if (locks_is_forked(lock->locks))
        return -1;
    pthread_mutex_lock(&lock->locks->mutex);
    if (lock->fd < 0)
        lock->fd = eventfd(atomic_load(&lock->lost), EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = lock->fd;
    pthread_mutex_unlock(&lock->locks->mutex);
    return fd;
}
