/* The watch over held locks: renewals in time, and the notice when one is being lost.  Keeps L1, L2
 * and L3.
 *
 * Two threads, so that a back end that does not answer delays no notice.  The watch sleeps in poll
 * on a CLOCK_BOOTTIME timer: it counts while the machine sleeps, and goes off when it wakes.  Locks
 * lie in a heap by what comes next; adding, renewing and removing cost O(log n), and the watch is
 * woken only when something is due sooner than its timer: a lock that is taken and given back at
 * once costs it nothing.  The renewer gets what is due through a queue, at most BATCH_MAX in one
 * exchange, and has a handle of its own, so that no other call can keep it from renewing. */
#include "lock/internal.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define RETRY_MIN_US 20000
#define RETRY_MAX_US 500000
#define HURRY_MIN_MS 20

/* ---- the heap ---- */

static int64_t due_us(const struct hf_lock *lock)
{
    return lock->renew_us < lock->loss_us ? lock->renew_us : lock->loss_us;
}

static void heap_put(struct watch *w, size_t at, struct hf_lock *lock)
{
    w->heap.v[at] = lock;
    lock->heap_at = at + 1;
}

/* Move what lies at `at` up or down to where it belongs. */
static void heap_settle(struct watch *w, size_t at)
{
    struct hf_lock *lock = w->heap.v[at];
    int64_t due = due_us(lock);
    for (size_t up; at > 0 && due < due_us(w->heap.v[up = (at - 1) / 2]); at = up)
        heap_put(w, at, w->heap.v[up]);
    for (size_t down; (down = 2 * at + 1) < w->heap.n; at = down) {
        if (down + 1 < w->heap.n && due_us(w->heap.v[down + 1]) < due_us(w->heap.v[down]))
            down++;
        if (due <= due_us(w->heap.v[down]))
            break;
        heap_put(w, at, w->heap.v[down]);
    }
    heap_put(w, at, lock);
}

static void heap_remove(struct watch *w, struct hf_lock *lock)
{
    if (lock->heap_at == 0)
        return;
    size_t at = lock->heap_at - 1;
    struct hf_lock *last = w->heap.v[--w->heap.n];
    lock->heap_at = 0;
    if (last != lock) {
        heap_put(w, at, last);
        heap_settle(w, at);
    }
}

static void poke(int fd)
{
    uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);
    (void)n; /* full: it is readable, which is what is wanted */
}

/* `lock`'s times have changed, or it is new. */
static void heap_update(struct watch *w, struct hf_lock *lock)
{
    if (lock->heap_at == 0) {
        *vec_push(&w->heap) = lock;
        lock->heap_at = w->heap.n;
    }
    heap_settle(w, lock->heap_at - 1);
    if (due_us(lock) < w->armed_us && w->started) {
        w->armed_us = due_us(lock); /* one poke is enough */
        poke(w->poke_fd);
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

int64_t watch_hurry_ms(const struct hf_lock *lock, int64_t now_us)
{
    int64_t left_us = atomic_load_explicit(&lock->deadline_us, memory_order_acquire) - now_us;
    return left_us > 2000 * HURRY_MIN_MS ? left_us / 2000 : HURRY_MIN_MS;
}

/* Set the lock's times; L1: never back.  A third of the TTL after the lease began, but leave a
 * short lease at least half of what the margin leaves of it; and not before a third of what is left
 * has passed, since a back end may grant less than was asked for (a session's TTL) each time. */
static void set_deadline(struct hf_lock *lock, int64_t deadline_us)
{
    if (deadline_us < atomic_load_explicit(&lock->deadline_us, memory_order_relaxed))
        return;
    atomic_store_explicit(&lock->deadline_us, deadline_us, memory_order_release);
    int64_t ttl_us = lock->request.ttl_ms * 1000, usable_us = ttl_us - lock->margin_us;
    int64_t pause_us = ttl_us / 3 < usable_us / 2 ? ttl_us / 3 : usable_us / 2;
    lock->loss_us = deadline_us - lock->lead_us;
    lock->renew_us = deadline_us - usable_us + pause_us;
    int64_t now_us = locks_now_us(lock->locks);
    if (lock->renew_us < now_us + (deadline_us - now_us) / 3)
        lock->renew_us = now_us + (deadline_us - now_us) / 3;
    if (lock->manual || lock->renew_us >= lock->renew_until_us)
        lock->renew_us = INT64_MAX;
}

/* The loss is known: whoever asks is told so from now on; the callback follows on the watch. */
static void lose(struct hf_lock *lock)
{
    if (atomic_exchange(&lock->lost, true))
        return;
    locks_count(lock->locks, STAT_LOST, 1);
    if (lock->fd >= 0)
        poke(lock->fd);
    lock->loss_us = INT64_MIN;
    heap_update(&lock->locks->watch, lock);
}

static void renewed(struct hf_lock *lock, int64_t sent_us, const struct lease_verdict *verdict)
{
    if (lock->closed || atomic_load(&lock->lost))
        return;
    if (verdict->result == HF_DONE) {
        locks_count(lock->locks, STAT_RENEWALS, 1);
        lock->failures = 0;
        set_deadline(lock, watch_deadline_us(lock, sent_us, verdict));
        heap_update(&lock->locks->watch, lock);
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

/* ---- the renewer ---- */

static void renew_failed(struct hf_lock *lock, int64_t now_us)
{
    locks_count(lock->locks, STAT_RENEWAL_FAILURES, 1);
    if (lock->closed || atomic_load(&lock->lost))
        return;
    int64_t pause_us = (int64_t)RETRY_MIN_US << (lock->failures < 5 ? lock->failures : 5);
    lock->failures++;
    lock->renew_us = now_us + (pause_us < RETRY_MAX_US ? pause_us : RETRY_MAX_US);
    if (lock->renew_us >= lock->renew_until_us)
        lock->renew_us = INT64_MAX;
    heap_update(&lock->locks->watch, lock);
}

static size_t take_due(struct watch *w, struct hf_lock **batch, struct lease_request *requests)
{
    size_t n = 0;
    while (n < BATCH_MAX && w->renew_first) {
        struct hf_lock *lock = w->renew_first;
        w->renew_first = lock->renew_next;
        if (!w->renew_first)
            w->renew_last = &w->renew_first;
        requests[n] = lock->request;
        batch[n++] = lock; /* with the queue's reference */
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

/* One exchange for all, as quick as the most urgent of them needs it. */
static enum hf_result renew_batch(struct hf_locks *locks, struct lease **handle,
                                  struct hf_lock *const *batch,
                                  const struct lease_request *requests, size_t n,
                                  struct lease_verdict *verdicts, int64_t now_us)
{
    if (!*handle && locks->driver->another(locks->first, handle, NULL) != HF_DONE)
        return HF_UNREACHABLE;
    int64_t hurry_ms = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        int64_t ms = watch_hurry_ms(batch[i], now_us);
        hurry_ms = ms < hurry_ms ? ms : hurry_ms;
    }
    (*handle)->hurry_ms = hurry_ms;
    return locks->driver->renew(*handle, requests, n, verdicts, NULL);
}

/* Renewals that were asked for in vain come back through the heap, until the lock is lost. */
static void *run_renewer(void *arg)
{
    struct hf_locks *locks = arg;
    struct watch *w = &locks->watch;
    struct lease *handle = NULL;
    /* Now, not when the first renewal is urgent; if it fails, then. */
    (void)locks->driver->another(locks->first, &handle, NULL);
    pthread_mutex_lock(&locks->mutex);
    for (;;) {
        while (!w->stop && !w->renew_first)
            pthread_cond_wait(&w->due, &locks->mutex);
        struct hf_lock *batch[BATCH_MAX];
        struct lease_request requests[BATCH_MAX];
        struct lease_verdict verdicts[BATCH_MAX] = {{.result = HF_UNKNOWN}};
        size_t n = take_due(w, batch, requests);
        bool stop = w->stop;
        pthread_mutex_unlock(&locks->mutex);
        int64_t sent_us = locks_now_us(locks);
        enum hf_result r = HF_UNREACHABLE;
        if (!stop)
            r = renew_batch(locks, &handle, batch, requests, n, verdicts, sent_us);
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
        if (stop && !w->renew_first)
            break;
    }
    pthread_mutex_unlock(&locks->mutex);
    if (handle)
        locks->driver->close(handle);
    return NULL;
}

/* ---- the watch ---- */

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
    watch_unref(lock); /* the last if the callback itself has unlocked */
}

static void hand_to_renewer(struct watch *w, struct hf_lock *lock)
{
    lock->renew_us = INT64_MAX;
    heap_settle(w, lock->heap_at - 1);
    if (lock->renewing)
        return;
    lock->renewing = true;
    atomic_fetch_add(&lock->refs, 1);
    lock->renew_next = NULL;
    *w->renew_last = lock;
    w->renew_last = &lock->renew_next;
    pthread_cond_signal(&w->due);
}

/* Everything that is due; the soonest after that. */
static int64_t do_due(struct hf_locks *locks)
{
    struct watch *w = &locks->watch;
    while (!w->stop && w->heap.n > 0) {
        struct hf_lock *lock = w->heap.v[0];
        int64_t now_us = locks_now_us(locks);
        /* The heap has no freed lock: hf_unlock takes it out, under the mutex, before it frees. */
        if (due_us(lock) > now_us) // NOLINT(clang-analyzer-unix.Malloc)
            return due_us(lock);
        if (lock->loss_us <= now_us) {
            lose(lock);
            heap_remove(w, lock);
            call_back(lock);
        } else {
            hand_to_renewer(w, lock);
        }
    }
    return INT64_MAX;
}

static void arm(struct watch *w, int64_t at_us)
{
    struct itimerspec when = {.it_value = {0}}; /* all zero: not at all */
    if (at_us != INT64_MAX)
        when.it_value =
            (struct timespec){.tv_sec = at_us / 1000000, .tv_nsec = at_us % 1000000 * 1000 + 1};
    w->armed_us = at_us;
    hf_check(timerfd_settime(w->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0);
}

static void *run_watch(void *arg)
{
    struct hf_locks *locks = arg;
    struct watch *w = &locks->watch;
    pthread_mutex_lock(&locks->mutex);
    for (;;) {
        w->armed_us = INT64_MIN; /* awake: nobody need poke */
        int64_t next_us = do_due(locks);
        if (w->stop)
            break;
        arm(w, next_us);
        pthread_mutex_unlock(&locks->mutex);
        struct pollfd fds[2] = {{.fd = w->timer_fd, .events = POLLIN},
                                {.fd = w->poke_fd, .events = POLLIN}};
        poll(fds, 2, -1);
        uint64_t count;
        for (int i = 0; i < 2; i++)
            if (fds[i].revents) {
                ssize_t n = read(fds[i].fd, &count, sizeof count);
                (void)n;
            }
        pthread_mutex_lock(&locks->mutex);
    }
    pthread_mutex_unlock(&locks->mutex);
    return NULL;
}

/* ---- beginning and end ---- */

static void close_files(struct watch *w)
{
    if (w->timer_fd >= 0)
        close(w->timer_fd);
    if (w->poke_fd >= 0)
        close(w->poke_fd);
    pthread_cond_destroy(&w->due);
    pthread_cond_destroy(&w->called);
}

/* With every signal blocked: they are the program's, not ours. */
static bool start_threads(struct hf_locks *locks)
{
    struct watch *w = &locks->watch;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&w->watcher, NULL, run_watch, locks) == 0;
    if (ok && pthread_create(&w->renewer, NULL, run_renewer, locks) != 0) {
        ok = false;
        w->stop = true;
        poke(w->poke_fd);
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
        w->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        w->poke_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        w->renew_last = &w->renew_first;
        pthread_cond_init(&w->due, NULL);
        pthread_cond_init(&w->called, NULL);
        ok = w->timer_fd >= 0 && w->poke_fd >= 0 && start_threads(locks);
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
        poke(w->poke_fd);
        pthread_cond_signal(&w->due);
    }
    pthread_mutex_unlock(&locks->mutex);
    if (!started)
        return;
    pthread_join(w->watcher, NULL);
    pthread_join(w->renewer, NULL);
    close_files(w);
}

void watch_add(struct hf_lock *lock)
{
    struct hf_locks *locks = lock->locks;
    pthread_mutex_lock(&locks->mutex);
    int64_t deadline_us = atomic_load_explicit(&lock->deadline_us, memory_order_relaxed);
    set_deadline(lock, deadline_us);
    lock->next = locks->all;
    if (lock->next)
        lock->next->prev = lock;
    locks->all = lock;
    heap_update(&locks->watch, lock);
    pthread_mutex_unlock(&locks->mutex);
}

void watch_remove(struct hf_lock *lock)
{
    struct hf_locks *locks = lock->locks;
    struct watch *w = &locks->watch;
    pthread_mutex_lock(&locks->mutex);
    lock->closed = true;
    heap_remove(w, lock);
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
