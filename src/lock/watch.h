/* The watch over held locks.  Each struct hf_locks has two threads, started with its first lock:
 *
 *   the watcher  sleeps on the boot-time clock until the next deadline or renewal is due, and
 *                reports losses (callbacks run here).  It never talks to the back end, so that a
 *                back end that does not answer cannot delay a loss notice.
 *   the renewer  talks to the back end: all renewals that are due in one exchange. */
#ifndef HF_LOCK_WATCH_H
#define HF_LOCK_WATCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/heap.h"
#include "lease/lease.h"

struct hf_lock;
struct hf_locks;

struct watch {
    pthread_t watcher, renewer;
    atomic_bool started; /* set once both threads run */
    /* under locks->mutex */
    bool stop;
    int timer_fd;          /* goes off at armed_us */
    int wake_fd;           /* wakes the watcher: something is due before armed_us */
    int64_t armed_us;      /* INT64_MAX: the timer is off; INT64_MIN: the watcher is awake */
    pthread_cond_t due;    /* tells the renewer that its queue is not empty, or to stop */
    pthread_cond_t called; /* a callback has returned */
    struct hf_lock *renew_first, **renew_last; /* the renewer's queue */
    struct heap heap;                          /* locks by what is due next */
};

/* Starts both threads unless they run. */
HF_MUST_USE enum hf_result watch_start(struct hf_locks *locks, struct hf_fault *fault);
/* Ends both threads and waits for them; does nothing if they were never started. */
void watch_stop(struct hf_locks *locks);
/* Begins to watch a lock that was granted at `now_us`. */
void watch_add(struct hf_lock *lock, int64_t now_us);
/* Stops watching it: no further renewal is sent and no callback begins.  Waits for a callback that
 * is running, unless called from it.  The caller keeps its reference. */
void watch_remove(struct hf_lock *lock);
/* Drops a reference and frees the lock with the last one. */
void watch_unref(struct hf_lock *lock);
/* A renewal that was sent at `sent_us` has been answered. */
void watch_renewed(struct hf_lock *lock, int64_t sent_us, const struct lease_verdict *verdict);
/* A driver has heard that a lease is lost (lease_options.on_lost); `ctx` is the struct hf_locks.
 * O(locks that are held). */
void watch_heard_of_loss(void *ctx, const char *name, size_t name_len,
                         const uint8_t owner[LEASE_OWNER_SIZE]);
/* The deadline that follows from a grant or renewal that was sent at `sent_us`. */
int64_t watch_deadline_us(const struct hf_lock *lock, int64_t sent_us,
                          const struct lease_verdict *verdict);
/* The limit of one renewal: half of what is left, so that a second one fits if an answer is lost.
 */
int64_t watch_renewal_limit_ms(const struct hf_lock *lock, int64_t now_us);

#endif
