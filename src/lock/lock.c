/* One lock, from the asking to the giving back, on the caller's thread.  Keeps L1 and L4.
 *
 *            +--------------------- ask <---------------------+
 *            | granted in time      |taken       |no answer    |
 *         settle                 taken()      doubt()          |
 *                                   |            |             |
 *                    no wait, or its end   too much of it       +-- waited, paused
 *                                   |            |
 *                                give_up: release what may be there
 *
 * acquire is idempotent for one owner, so a doubtful answer is settled by asking again: for
 * timeout_ms by who does not wait, for as long as it waits by who does, since an outage that is
 * over before the wait is no reason to give up. */
#include "lock/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define ASK_PAUSE_US INT64_C(2000000) /* the longest sleep in the queue between two questions */
#define STOP_PAUSE_US INT64_C(250000) /* and when there is a flag to look at */
/* When too many sleep in the queue already, ask instead: the sooner the nearer our turn, so that a
 * line of any length moves every 2 ms and a thousand in it ask a thousand times a second. */
#define CROWDED_PAUSE_US INT64_C(2000) /* for each place, up to ... */
#define CROWDED_PAUSE_MAX_US INT64_C(1000000)
#define DOUBT_PAUSE_US INT64_C(10000) /* doubled up to ... */
#define DOUBT_PAUSE_MAX_US INT64_C(250000)
#define OUTAGE_PAUSE_MAX_US INT64_C(1000000) /* of a waiter; well below WAITER_SILENT_MS */
#define QUICK_US 1000                        /* a back end that wakes us for nothing ... */
#define QUICK_MAX 8                          /* so many times is asked less often */
#define LATE_MAX 3

struct attempt {
    struct hf_locks *locks;
    struct hf_lock *lock;
    const struct hf_lock_options *options;
    struct budget *budget;
    struct lease *handle;
    bool waiting;     /* the handle counts as one of a waiting call */
    bool placed;      /* there may be a lease or a place of ours */
    bool unknown;     /* the last answers did not come */
    bool told;        /* on_outage was called and has not heard of the end */
    int64_t begun_us; /* the first question */
    int64_t sent_us;  /* the last question */
    int64_t granted_us;
    int64_t waited_us; /* since when we wait; 0: not yet */
    int64_t doubt_us;  /* since when no answer comes; 0: it does */
    unsigned doubts, quick, late;
};

static void sleep_us(int64_t us)
{
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    while (us > 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static bool stopped(const struct budget *budget)
{
    return budget->stop && __atomic_load_n(budget->stop, __ATOMIC_RELAXED);
}

void budget_begin(struct budget *budget, const struct hf_locks *locks,
                  const struct hf_lock_options *options)
{
    *budget =
        (struct budget){.until_us = INT64_MAX, .retries = options->retries, .stop = options->stop};
    if (options->wait_ms == 0 && options->retries == 0)
        budget->until_us = 0;
    else if (options->wait_ms > 0)
        budget->until_us = locks_now_us(locks) + options->wait_ms * 1000;
}

int64_t lock_margin_us(int64_t ttl_ms) { return ttl_ms * 10 > 50000 ? ttl_ms * 10 : 50000; }

/* ---- the steps of an attempt ---- */

static enum hf_result ask(struct attempt *a, struct lease_verdict *verdict, struct hf_fault *fault)
{
    enum hf_result r;
    if (!a->handle && (r = pool_take(a->locks, &a->handle, fault)) != HF_DONE)
        return r;
    int64_t before_us = a->sent_us;
    a->sent_us = locks_now_us(a->locks);
    if (a->begun_us == 0)
        a->begun_us = a->sent_us;
    a->quick = a->sent_us - before_us < QUICK_US ? a->quick + 1 : 0;
    *verdict = (struct lease_verdict){.result = HF_UNKNOWN};
    return a->locks->driver->acquire(a->handle, &a->lock->request, 1, verdict, fault);
}

static void release_place(struct attempt *a)
{
    struct lease_verdict verdict;
    if (a->handle || pool_take(a->locks, &a->handle, NULL) == HF_DONE)
        (void)a->locks->driver->release(a->handle, &a->lock->request, 1, &verdict, NULL);
    a->placed = false;
}

/* HF_DONE: it is ours and there is time to use it.  An answer that took longer than the lease is no
 * lock; asked again in the hope that the next is quicker. */
static enum hf_result settle(struct attempt *a, const struct lease_verdict *verdict,
                             struct hf_fault *fault)
{
    struct hf_lock *lock = a->lock;
    int64_t deadline_us = watch_deadline_us(lock, a->sent_us, verdict);
    int64_t now_us = locks_now_us(a->locks);
    if (now_us < deadline_us - lock->lead_us) {
        a->granted_us = now_us;
        lock->fence = verdict->fence;
        lock->request.label = NULL;
        if (a->options->max_hold_ms > 0)
            lock->renew_until_us = a->sent_us + a->options->max_hold_ms * 1000;
        lock->manual = a->options->manual;
        atomic_store_explicit(&lock->deadline_us, deadline_us, memory_order_relaxed);
        return HF_DONE;
    }
    release_place(a);
    if (++a->late < LATE_MAX)
        return HF_TAKEN;
    return fault_set(fault, HF_UNKNOWN,
                     "the grant took %lld ms to arrive, too long for a TTL of %lld ms: given back",
                     (long long)(now_us - a->sent_us) / 1000, (long long)lock->request.ttl_ms);
}

static enum hf_result over(const struct attempt *a, struct hf_fault *fault)
{
    if (a->waited_us == 0)
        return fault_set(fault, HF_TAKEN, "another holds it");
    return fault_set(fault, HF_TAKEN, "another holds it, and %lld ms of waiting did not change it",
                     (long long)(locks_now_us(a->locks) - a->waited_us) / 1000);
}

/* Sleep, and look at the flag. */
static void pause_for(const struct attempt *a, int64_t us)
{
    int64_t until_us = locks_now_us(a->locks) + us, left_us;
    while ((left_us = until_us - locks_now_us(a->locks)) > 0 && !stopped(a->budget))
        sleep_us(least(left_us, STOP_PAUSE_US));
}

/* One of the retries was in vain.  HF_DONE: ask again. */
static enum hf_result try_later(struct attempt *a, int64_t left_us)
{
    a->budget->retries--;
    if (a->handle)
        pool_give(a->locks, a->handle, a->waiting);
    a->handle = NULL;
    pause_for(a, least(left_us, a->options->retry_ms * 1000));
    return HF_DONE;
}

/* When to stop asking one who does not answer. */
static int64_t doubt_until_us(const struct attempt *a)
{
    if (!a->lock->request.queue)
        return a->doubt_us + a->locks->timeout_ms * 1000;
    if (a->options->outage_ms == 0)
        return a->budget->until_us;
    return least(a->budget->until_us, a->doubt_us + a->options->outage_ms * 1000);
}

/* The second time: a connection that was merely closed is not worth a word. */
static void tell_outage(struct attempt *a, const struct hf_fault *why)
{
    if (a->doubts == 0 || a->told || !a->options->on_outage)
        return;
    a->told = true;
    a->options->on_outage(why, a->options->ctx);
}

static void tell_end_of_outage(struct attempt *a)
{
    if (a->told)
        a->options->on_outage(NULL, a->options->ctx);
    a->told = false;
}

/* No answer, or no way to ask.  HF_DONE: ask again.  Who does not wait fails if nothing was sent;
 * otherwise there may be something of ours, and what it is can still be found out. */
static enum hf_result doubt(struct attempt *a, enum hf_result r, struct hf_fault *fault)
{
    bool queue = a->lock->request.queue, retry = a->options->retries > 0;
    if (r != HF_UNKNOWN && (r != HF_UNREACHABLE || (!a->placed && !queue && !retry)))
        return r;
    int64_t now_us = locks_now_us(a->locks);
    if (r == HF_UNKNOWN)
        a->placed = a->unknown = true;
    if (a->doubt_us == 0) {
        a->doubt_us = now_us;
        a->doubts = 0;
    }
    if (stopped(a->budget))
        return fault_set(fault, HF_TAKEN, "told to stop");
    int64_t left_us = a->budget->until_us - now_us;
    bool end = retry ? a->budget->retries == 0 || left_us <= 0
                     : a->doubts > 0 && now_us >= doubt_until_us(a);
    if (end) {
        if (fault && a->unknown)
            fault->result = HF_UNKNOWN;
        return a->unknown ? HF_UNKNOWN : r;
    }
    if (retry)
        return try_later(a, left_us);
    if (queue)
        tell_outage(a, fault);
    if (a->handle && !a->waiting) { /* others need it for calls that are short */
        pool_give(a->locks, a->handle, false);
        a->handle = NULL;
    }
    int64_t pause_us = DOUBT_PAUSE_US << (a->doubts < 7 ? a->doubts : 7);
    a->doubts++;
    pause_for(a, least(pause_us, queue ? OUTAGE_PAUSE_MAX_US : DOUBT_PAUSE_MAX_US));
    return HF_DONE;
}

static enum hf_result wait_turn(struct attempt *a, const struct lease_verdict *verdict,
                                int64_t left_us, struct hf_fault *fault)
{
    int64_t pause_us = least(left_us, a->budget->stop ? STOP_PAUSE_US : ASK_PAUSE_US);
    /* Only for who is next: the others would only ask in vain. */
    if (verdict->position <= 1 && verdict->remaining_ms >= 0)
        pause_us = least(pause_us, (verdict->remaining_ms + 1) * 1000);
    if (!a->waiting)
        a->waiting = pool_begin_waiting(a->locks);
    if (!a->waiting) {
        pool_give(a->locks, a->handle, false);
        a->handle = NULL;
        int64_t ask_us = CROWDED_PAUSE_US * (int64_t)(verdict->position ? verdict->position : 10);
        sleep_us(least(pause_us, least(ask_us, CROWDED_PAUSE_MAX_US)));
        return HF_DONE;
    }
    if (a->quick > QUICK_MAX)
        sleep_us(least(pause_us, QUICK_US));
    return a->locks->driver->wait(a->handle, &a->lock->request, (pause_us + 999) / 1000, fault);
}

/* Somebody else has it.  HF_DONE: ask again. */
static enum hf_result taken(struct attempt *a, const struct lease_verdict *verdict,
                            struct hf_fault *fault)
{
    a->doubt_us = 0;
    a->unknown = false;
    a->placed = a->lock->request.queue;
    int64_t now_us = locks_now_us(a->locks), left_us = a->budget->until_us - now_us;
    if (left_us <= 0 || stopped(a->budget))
        return over(a, fault);
    if (a->options->retries > 0 && a->budget->retries == 0)
        return over(a, fault);
    if (a->waited_us == 0) {
        a->waited_us = now_us;
        locks_count(a->locks, STAT_WAITS, 1);
    }
    if (a->lock->request.queue) {
        enum hf_result r = wait_turn(a, verdict, left_us, fault);
        return r == HF_DONE ? HF_DONE : doubt(a, r, fault);
    }
    return try_later(a, left_us);
}

static enum hf_result run(struct attempt *a, struct hf_fault *fault)
{
    for (;;) {
        struct lease_verdict verdict;
        enum hf_result r = ask(a, &verdict, fault);
        if (r == HF_DONE)
            tell_end_of_outage(a);
        if (r != HF_DONE) {
            r = doubt(a, r, fault);
        } else if (verdict.result == HF_DONE) {
            r = settle(a, &verdict, fault);
            if (r == HF_DONE)
                return HF_DONE;
            if (r == HF_TAKEN)
                continue;
        } else if (verdict.result == HF_TAKEN) {
            r = taken(a, &verdict, fault);
        } else {
            return fault_set(fault, verdict.result, "%s", hf_result_text(verdict.result));
        }
        if (r != HF_DONE)
            return r;
    }
}

static void count(const struct attempt *a, enum hf_result r)
{
    struct hf_locks *locks = a->locks;
    int64_t now_us = r == HF_DONE ? a->granted_us : locks_now_us(locks);
    enum stat what = r == HF_DONE                    ? STAT_GRANTED
                     : r == HF_TAKEN && a->waited_us ? STAT_TIMED_OUT
                     : r == HF_TAKEN                 ? STAT_TAKEN
                     : r == HF_UNKNOWN               ? STAT_UNKNOWN
                                                     : STAT_FAILED;
    locks_count(locks, what, 1);
    if (r == HF_DONE)
        locks_count_latency(locks, now_us - a->begun_us);
    if (a->waited_us)
        locks_count(locks, STAT_WAIT_US, (uint64_t)(now_us - a->waited_us));
}

static struct hf_lock *lock_new(struct hf_locks *locks, const char *name,
                                const struct hf_lock_options *options)
{
    size_t len = strlen(name);
    struct hf_lock *lock = hf_alloc(sizeof *lock + len + 1);
    memcpy(lock->name, name, len);
    lock->locks = locks;
    lock->margin_us = lock_margin_us(options->ttl_ms);
    lock->lead_us = least(LOSS_LEAD_US, (options->ttl_ms * 1000 - lock->margin_us) / 5);
    lock->renew_until_us = INT64_MAX;
    lock->refs = 1;
    lock->fd = -1;
    lock->request = (struct lease_request){
        .key = lock->name,
        .key_len = len,
        .ttl_ms = options->ttl_ms,
        .mode = options->mode,
        .priority = options->priority,
        .slots = options->slots,
        .queue = options->wait_ms != 0 && options->retries == 0,
        .label = options->label,
        .label_len = options->label ? strlen(options->label) : 0,
    };
    pthread_mutex_lock(&locks->mutex);
    random_bytes(&locks->random, lock->request.owner, sizeof lock->request.owner);
    pthread_mutex_unlock(&locks->mutex);
    return lock;
}

enum hf_result lock_acquire(struct hf_locks *locks, const char *name,
                            const struct hf_lock_options *options, struct budget *budget,
                            struct hf_lock **ret, struct hf_fault *fault)
{
    struct hf_fault unheard;
    fault = fault ? fault : &unheard; /* on_outage is told why */
    enum hf_result r = watch_start(locks, fault);
    if (r != HF_DONE)
        return r;
    struct attempt a = {.locks = locks,
                        .lock = lock_new(locks, name, options),
                        .options = options,
                        .budget = budget};
    r = run(&a, fault);
    if (r != HF_DONE && a.placed)
        release_place(&a);
    if (a.handle)
        pool_give(locks, a.handle, a.waiting);
    count(&a, r);
    if (r != HF_DONE) {
        free(a.lock);
        return r;
    }
    a.lock->on_loss = options->on_loss;
    a.lock->ctx = options->ctx;
    watch_add(a.lock);
    *ret = a.lock;
    return HF_DONE;
}

enum hf_result hf_lock(struct hf_locks *locks, const char *name,
                       const struct hf_lock_options *options, struct hf_lock **ret,
                       struct hf_fault *fault)
{
    struct hf_lock_options checked;
    struct budget budget;
    enum hf_result r;
    if ((r = check_name(locks, name, fault)) != HF_DONE ||
        (r = check_options(locks, options, &checked, fault)) != HF_DONE)
        return r;
    budget_begin(&budget, locks, &checked);
    return lock_acquire(locks, name, &checked, &budget, ret, fault);
}

/* ---- giving back ---- */

/* Nobody can ask a second time, since the locks are freed, so doubtful answers are settled here:
 * again for timeout_ms, but not past the last deadline, when the leases end anyway.  "Not ours"
 * after an answer was lost is our own release, unless the time was over. */
static enum hf_result release_exchange(struct hf_locks *locks, struct hf_lock **locked,
                                       const struct lease_request *requests, size_t n,
                                       struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct lease *handle = NULL;
    int64_t end_us = 0, failed_us = 0, until_us = 0;
    bool unknown = false;
    enum hf_result r;
    for (size_t i = 0; i < n; i++)
        if (locked[i]->deadline_us > end_us)
            end_us = locked[i]->deadline_us;
    for (int64_t pause_us = DOUBT_PAUSE_US;; pause_us = least(2 * pause_us, DOUBT_PAUSE_MAX_US)) {
        r = handle ? HF_DONE : pool_take(locks, &handle, fault);
        if (r == HF_DONE)
            r = locks->driver->release(handle, requests, n, verdicts, fault);
        if (r != HF_UNKNOWN && r != HF_UNREACHABLE)
            break;
        unknown |= r == HF_UNKNOWN;
        int64_t now_us = locks_now_us(locks);
        if (until_us == 0) {
            failed_us = now_us;
            until_us = least(now_us + locks->timeout_ms * 1000, end_us);
        }
        if (now_us >= until_us)
            break;
        sleep_us(least(pause_us, until_us - now_us));
    }
    if (handle)
        pool_give(locks, handle, false);
    for (size_t i = 0; i < n && r == HF_DONE && unknown; i++)
        if (verdicts[i].result == HF_LOST && failed_us < locked[i]->deadline_us)
            verdicts[i].result = HF_DONE;
    return r != HF_DONE && unknown ? HF_UNKNOWN : r;
}

enum hf_result lock_release(struct hf_locks *locks, struct hf_lock **locked, size_t n,
                            struct hf_fault *fault)
{
    struct lease_request requests[BATCH_MAX];
    struct lease_verdict verdicts[BATCH_MAX];
    for (size_t i = 0; i < n; i++) {
        watch_remove(locked[i]);
        requests[i] = locked[i]->request;
        verdicts[i] = (struct lease_verdict){.result = HF_UNKNOWN};
    }
    enum hf_result r = release_exchange(locks, locked, requests, n, verdicts, fault);
    if (r != HF_DONE && fault)
        fault->result = r;
    for (size_t i = 0; i < n; i++) {
        if (r == HF_DONE && verdicts[i].result != HF_DONE)
            r = verdicts[i].result == HF_LOST
                    ? fault_set(fault, HF_LOST, "it was not ours any more")
                    : fault_set(fault, verdicts[i].result, "%s",
                                hf_result_text(verdicts[i].result));
        if (verdicts[i].result == HF_DONE)
            locks_count(locks, STAT_RELEASES, 1);
        watch_unref(locked[i]);
    }
    return r;
}

enum hf_result hf_unlock(struct hf_lock *lock, struct hf_fault *fault)
{
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
    if (atomic_load(&lock->lost))
        return fault_set(fault, HF_LOST, "it is lost already");
    if (locks_now_us(locks) >= lock->renew_until_us)
        return fault_set(fault, HF_BAD_REQUEST, "max_hold_ms is over: not renewed any more");
    enum hf_result r = pool_take(locks, &handle, fault);
    if (r != HF_DONE)
        return r;
    int64_t sent_us = locks_now_us(locks);
    handle->hurry_ms = watch_hurry_ms(lock, sent_us);
    r = locks->driver->renew(handle, &lock->request, 1, &verdict, fault);
    handle->hurry_ms = 0;
    pool_give(locks, handle, false);
    if (r != HF_DONE) {
        locks_count(locks, STAT_RENEWAL_FAILURES, 1);
        return r;
    }
    watch_renewed(lock, sent_us, &verdict);
    if (verdict.result == HF_LOST || !hf_lock_held(lock))
        return fault_set(fault, HF_LOST, "it is not ours any more");
    return verdict.result == HF_DONE
               ? HF_DONE
               : fault_set(fault, verdict.result, "%s", hf_result_text(verdict.result));
}

const char *hf_lock_name(const struct hf_lock *lock) { return lock->name; }

int64_t hf_lock_fence(const struct hf_lock *lock) { return lock->fence; }

int64_t hf_lock_deadline_ms(const struct hf_lock *lock)
{
    return atomic_load_explicit(&lock->deadline_us, memory_order_acquire) / 1000;
}

/* Looks at the clock itself: a process that was stopped and wakes late is told so before any thread
 * of ours has run. */
bool hf_lock_held(const struct hf_lock *lock)
{
    return !atomic_load_explicit(&lock->lost, memory_order_acquire) &&
           locks_now_us(lock->locks) <
               atomic_load_explicit(&lock->deadline_us, memory_order_acquire);
}

/* Made when first asked for: most locks are never polled, and it costs a system call.  -1: there
 * are too many files. */
int hf_lock_fd(struct hf_lock *lock)
{
    pthread_mutex_lock(&lock->locks->mutex);
    if (lock->fd < 0)
        lock->fd = eventfd(atomic_load(&lock->lost), EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = lock->fd;
    pthread_mutex_unlock(&lock->locks->mutex);
    return fd;
}
