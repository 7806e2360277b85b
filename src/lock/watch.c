/* See watch.h.  Keeps L1, L2 and L3.
 *
 * The watcher sleeps on a timer of the boot-time clock, which counts while the machine sleeps and
 * goes off when it wakes.  Locks lie in a heap by what is due next: adding, renewing and removing
 * cost O(log n), and the watcher is woken only if something is due before its timer goes off, so
 * that a lock that is taken and soon given back costs it nothing.  The renewer gets what is due
 * through a queue, sends at most LOCK_BATCH_MAX renewals in one exchange, and has a handle of its
 * own, so that no other call can keep it from renewing. */
#include "lock/watch.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/wait.h"
#include "lock/lock.h"
#include "lock/locks.h"

/* The pause after a failed renewal, doubled each time. */
#define RETRY_MIN_US 20000
#define RETRY_MAX_US 500000
#define RENEWAL_LIMIT_MIN_MS 20

static int64_t due_us(const struct hf_lock *lock)
{
    return lock->renew_us < lock->loss_us ? lock->renew_us : lock->loss_us;
}

/* Makes an eventfd readable. */
static void signal_fd(int fd)
{
    (void)eventfd_write(fd, 1); /* fails only if it is readable already */
}

/* The lock is new, or its times have changed. */
static void schedule(struct watch *w, struct hf_lock *lock)
{
    heap_set(&w->heap, &lock->due, due_us(lock));
    if (due_us(lock) < w->armed_us && w->started) {
        w->armed_us = due_us(lock); /* so that the watcher is woken once */
        signal_fd(w->wake_fd);
    }
}

/* ---- deadlines ---- */

int64_t watch_deadline_us(const struct hf_lock *lock, int64_t sent_us,
                          const struct lease_verdict *verdict)
{
    int64_t left_ms =
        verdict->remaining_ms < lock->request.ttl_ms ? verdict->remaining_ms : lock->request.ttl_ms;
    return sent_us + left_ms * 1000 - lock->margin_us;
}

int64_t watch_renewal_limit_ms(const struct hf_lock *lock, int64_t now_us)
{
    int64_t left_us = atomic_load_explicit(&lock->deadline_us, memory_order_acquire) - now_us;
    return left_us > 2000 * RENEWAL_LIMIT_MIN_MS ? left_us / 2000 : RENEWAL_LIMIT_MIN_MS;
}

/* Sets the lock's times; a deadline never goes back (L1).  The renewal is due a third of the TTL
 * after the lease began, but for a short lease no later than half of what the margin leaves of it.
 * It is not due before a third of the remaining time has passed, since a back end may grant less
 * than was asked for (a session's TTL) each time. */
static void set_deadline(struct hf_lock *lock, int64_t deadline_us, int64_t now_us)
{
    int64_t before_us = atomic_load_explicit(&lock->deadline_us, memory_order_relaxed);
    if (deadline_us < before_us)
        deadline_us = before_us; /* and the next renewal is not due at once */
    atomic_store_explicit(&lock->deadline_us, deadline_us, memory_order_release);
    int64_t ttl_us = lock->request.ttl_ms * 1000, usable_us = ttl_us - lock->margin_us;
    int64_t pause_us = ttl_us / 3 < usable_us / 2 ? ttl_us / 3 : usable_us / 2;
    lock->loss_us = deadline_us - lock->lead_us;
    lock->renew_us = deadline_us - usable_us + pause_us;
    if (lock->renew_us < now_us + (deadline_us - now_us) / 3)
        lock->renew_us = now_us + (deadline_us - now_us) / 3;
    if (lock->manual || lock->renew_us >= lock->renew_until_us)
        lock->renew_us = INT64_MAX;
}

/* The loss is known: hf_lock_held is false from now on, and the watcher calls on_loss. */
static void lose(struct hf_lock *lock)
{
    if (atomic_exchange(&lock->lost, true))
        return;
    stats_add(&lock->locks->stats, STAT_LOST, 1);
    if (lock->fd >= 0)
        signal_fd(lock->fd);
    lock->loss_us = INT64_MIN;
    schedule(&lock->locks->watch, lock);
}

static void renewed(struct hf_lock *lock, int64_t sent_us, const struct lease_verdict *verdict)
{
    if (lock->closed || atomic_load(&lock->lost))
        return;
    if (verdict->result == HF_DONE) {
        stats_add(&lock->locks->stats, STAT_RENEWALS, 1);
        lock->failures = 0;
        set_deadline(lock, watch_deadline_us(lock, sent_us, verdict), locks_now_us(lock->locks));
        schedule(&lock->locks->watch, lock);
    } else if (verdict->result == HF_LOST) {
        lose(lock);
    }
}

void watch_renewed(struct hf_lock *lock, int64_t sent_us, const struct lease_verdict *verdict)
{
    pthread_mutex_lock(&lock->locks->mutex);
    renewed(lock, sent_us, verdict);
    pthread_mutex_unlock(&lock->locks->mutex);
}

/* A lock whose grant is still being entered is not in the list; it is lost with its first renewal.
 */
void watch_heard_of_loss(void *ctx, const char *name, size_t name_len,
                         const uint8_t owner[LEASE_OWNER_SIZE])
{
    struct hf_locks *locks = ctx;
    pthread_mutex_lock(&locks->mutex);
    for (struct hf_lock *lock = locks->all; lock; lock = lock->next)
        if (memcmp(lock->request.owner, owner, LEASE_OWNER_SIZE) == 0 &&
            lock->request.key_len == name_len && memcmp(lock->name, name, name_len) == 0)
            lose(lock);
    pthread_mutex_unlock(&locks->mutex);
}

/* ---- the renewer ---- */

static void renew_failed(struct hf_lock *lock, int64_t now_us)
{
    stats_add(&lock->locks->stats, STAT_RENEWAL_FAILURES, 1);
    if (lock->closed || atomic_load(&lock->lost))
        return;
    lock->renew_us = now_us + backoff_pause(RETRY_MIN_US, RETRY_MAX_US, lock->failures++);
    if (lock->renew_us >= lock->renew_until_us)
        lock->renew_us = INT64_MAX;
    schedule(&lock->locks->watch, lock);
}

static size_t take_due(struct watch *w, struct hf_lock **batch, struct lease_request *requests)
{
    size_t n = 0;
    while (n < LOCK_BATCH_MAX && w->renew_first) {
        struct hf_lock *lock = w->renew_first;
        w->renew_first = lock->renew_next;
        if (!w->renew_first)
            w->renew_last = &w->renew_first;
        requests[n] = lock->request;
        batch[n++] = lock; /* takes over the queue's reference */
    }
    return n;
}

void watch_unref(struct hf_lock *lock)
{
    if (atomic_fetch_sub(&lock->refs, 1) > 1)
        return;
    if (lock->fd >= 0)
        close(lock->fd);
    free(lock);
}

/* Renews all of the batch in one exchange, within the limit of the most urgent lock. */
static enum hf_result renew_batch(struct hf_locks *locks, struct lease **handle,
                                  struct hf_lock *const *batch,
                                  const struct lease_request *requests, size_t n,
                                  struct lease_verdict *verdicts, int64_t now_us)
{
    if (!*handle && lease_clone(locks->pool.first, handle, NULL) != HF_DONE)
        return HF_UNREACHABLE;
    int64_t limit_ms = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        int64_t ms = watch_renewal_limit_ms(batch[i], now_us);
        limit_ms = ms < limit_ms ? ms : limit_ms;
    }
    (*handle)->limit_ms = limit_ms;
    return lease_renew(*handle, requests, n, verdicts, NULL);
}

/* Takes what is due from the queue, renews it, and enters the results.  Called with locks->mutex
 * held, and releases it during the exchange.  Failed renewals come back through the heap until the
 * lock is lost. */
static void renew_due(struct hf_locks *locks, struct lease **handle)
{
    struct hf_lock *batch[LOCK_BATCH_MAX];
    struct lease_request requests[LOCK_BATCH_MAX];
    struct lease_verdict verdicts[LOCK_BATCH_MAX] = {{.result = HF_UNKNOWN}};
    size_t n = take_due(&locks->watch, batch, requests);
    bool stop = locks->watch.stop;
    pthread_mutex_unlock(&locks->mutex);
    int64_t sent_us = locks_now_us(locks);
    enum hf_result r = HF_UNREACHABLE;
    if (!stop)
        r = renew_batch(locks, handle, batch, requests, n, verdicts, sent_us);
    int64_t now_us = locks_now_us(locks);
    pthread_mutex_lock(&locks->mutex);
    for (size_t i = 0; i < n; i++) {
        batch[i]->renewing = false;
        if (r == HF_DONE && (verdicts[i].result == HF_DONE || verdicts[i].result == HF_LOST))
            renewed(batch[i], sent_us, &verdicts[i]);
        else if (!stop)
            renew_failed(batch[i], now_us);
        watch_unref(batch[i]);
    }
}

static void *run_renewer(void *arg)
{
    struct hf_locks *locks = arg;
    struct watch *w = &locks->watch;
    struct lease *handle = NULL;
    /* Connect now, not when the first renewal is urgent.  If it fails, renew_batch tries again. */
    (void)!lease_clone(locks->pool.first, &handle, NULL);
    pthread_mutex_lock(&locks->mutex);
    while (!w->stop || w->renew_first) {
        if (w->renew_first)
            renew_due(locks, &handle);
        else
            pthread_cond_wait(&w->due, &locks->mutex);
    }
    pthread_mutex_unlock(&locks->mutex);
    lease_close(handle);
    return NULL;
}

/* ---- the watcher ---- */

static void call_back(struct hf_lock *lock)
{
    struct hf_locks *locks = lock->locks;
    if (!lock->on_loss)
        return;
    lock->in_callback = true;
    atomic_fetch_add(&lock->refs, 1);
    pthread_mutex_unlock(&locks->mutex);
    lock->on_loss(lock, lock->ctx);
    pthread_mutex_lock(&locks->mutex);
    lock->in_callback = false;
    pthread_cond_broadcast(&locks->watch.called);
    watch_unref(lock); /* the last reference if the callback has called hf_unlock */
}

static void hand_to_renewer(struct watch *w, struct hf_lock *lock)
{
    lock->renew_us = INT64_MAX;
    heap_set(&w->heap, &lock->due, due_us(lock));
    if (lock->renewing)
        return;
    lock->renewing = true;
    atomic_fetch_add(&lock->refs, 1);
    lock->renew_next = NULL;
    *w->renew_last = lock;
    w->renew_last = &lock->renew_next;
    pthread_cond_signal(&w->due);
}

/* Does everything that is due and returns when the next lock is; INT64_MAX: none is. */
static int64_t do_due(struct hf_locks *locks)
{
    struct watch *w = &locks->watch;
    for (struct heap_node *first; !w->stop && (first = heap_first(&w->heap));) {
        struct hf_lock *lock = heap_item(first, struct hf_lock, due);
        int64_t now_us = locks_now_us(locks);
        /* hf_unlock takes a lock out of the heap, under the mutex, before it frees it. */
        if (due_us(lock) > now_us) // NOLINT(clang-analyzer-unix.Malloc)
            return due_us(lock);
        if (lock->loss_us <= now_us) {
            lose(lock);
            heap_remove(&w->heap, &lock->due);
            call_back(lock);
        } else {
            hand_to_renewer(w, lock);
        }
    }
    return INT64_MAX;
}

static void arm(struct watch *w, int64_t at_us)
{
    w->armed_us = at_us;
    wait_timer_set(w->timer_fd, at_us == INT64_MAX ? 0 : at_us);
}

/* Sleeps until the timer goes off or wake_fd is signalled. */
static void sleep_until_due(const struct watch *w)
{
    struct pollfd files[] = {{.fd = w->timer_fd, .events = POLLIN},
                             {.fd = w->wake_fd, .events = POLLIN}};
    eventfd_t count;
    (void)wait_files(files, 2, -1);
    if (files[0].revents)
        wait_timer_clear(w->timer_fd);
    if (files[1].revents)
        (void)eventfd_read(w->wake_fd, &count);
}

static void *run_watcher(void *arg)
{
    struct hf_locks *locks = arg;
    struct watch *w = &locks->watch;
    pthread_mutex_lock(&locks->mutex);
    for (;;) {
        w->armed_us = INT64_MIN; /* awake: it need not be woken */
        int64_t next_us = do_due(locks);
        if (w->stop)
            break;
        arm(w, next_us);
        pthread_mutex_unlock(&locks->mutex);
        sleep_until_due(w);
        pthread_mutex_lock(&locks->mutex);
    }
    pthread_mutex_unlock(&locks->mutex);
    return NULL;
}

/* ---- starting and stopping ---- */

static void close_files(struct watch *w)
{
    if (w->timer_fd >= 0)
        close(w->timer_fd);
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    pthread_cond_destroy(&w->due);
    pthread_cond_destroy(&w->called);
}

/* Every signal is blocked in the library's threads: signals are for the program. */
static bool start_threads(struct hf_locks *locks)
{
    struct watch *w = &locks->watch;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&w->watcher, NULL, run_watcher, locks) == 0;
    if (ok && pthread_create(&w->renewer, NULL, run_renewer, locks) != 0) {
        ok = false;
        w->stop = true;
        signal_fd(w->wake_fd);
        pthread_mutex_unlock(&locks->mutex);
        pthread_join(w->watcher, NULL);
        pthread_mutex_lock(&locks->mutex);
        w->stop = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

enum hf_result watch_start(struct hf_locks *locks, struct hf_fault *fault)
{
    struct watch *w = &locks->watch;
    if (atomic_load_explicit(&w->started, memory_order_acquire))
        return HF_DONE;
    pthread_mutex_lock(&locks->mutex);
    bool ok = w->started;
    if (!ok) {
        w->timer_fd = wait_timer_new();
        w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        w->renew_last = &w->renew_first;
        wait_cond_init(&w->due);
        wait_cond_init(&w->called);
        ok = w->timer_fd >= 0 && w->wake_fd >= 0 && start_threads(locks);
        if (!ok)
            close_files(w);
        w->started = ok;
    }
    pthread_mutex_unlock(&locks->mutex);
    if (!ok)
        return fault_set(fault, HF_FAILED, "no thread or no file for renewals: too many already");
    return HF_DONE;
}

void watch_stop(struct hf_locks *locks)
{
    struct watch *w = &locks->watch;
    pthread_mutex_lock(&locks->mutex);
    bool started = w->started;
    w->started = false;
    w->stop = true;
    if (started) {
        signal_fd(w->wake_fd);
        pthread_cond_signal(&w->due);
    }
    pthread_mutex_unlock(&locks->mutex);
    if (!started)
        return;
    pthread_join(w->watcher, NULL);
    pthread_join(w->renewer, NULL);
    close_files(w);
}

void watch_add(struct hf_lock *lock, int64_t now_us)
{
    struct hf_locks *locks = lock->locks;
    pthread_mutex_lock(&locks->mutex);
    int64_t deadline_us = atomic_load_explicit(&lock->deadline_us, memory_order_relaxed);
    set_deadline(lock, deadline_us, now_us);
    lock->next = locks->all;
    if (lock->next)
        lock->next->prev = lock;
    locks->all = lock;
    schedule(&locks->watch, lock);
    pthread_mutex_unlock(&locks->mutex);
}

void watch_remove(struct hf_lock *lock)
{
    struct hf_locks *locks = lock->locks;
    struct watch *w = &locks->watch;
    pthread_mutex_lock(&locks->mutex);
    lock->closed = true;
    heap_remove(&w->heap, &lock->due);
    if (lock->prev)
        lock->prev->next = lock->next;
    else
        locks->all = lock->next;
    if (lock->next)
        lock->next->prev = lock->prev;
    while (lock->in_callback && !pthread_equal(pthread_self(), w->watcher))
        pthread_cond_wait(&w->called, &locks->mutex);
    pthread_mutex_unlock(&locks->mutex);
}
