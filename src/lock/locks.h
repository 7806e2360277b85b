/* An opened back end and its locks: the structs behind include/holdfast.h, and which thread may
 * touch what.
 *
 *   locks.c      opening and closing; inspecting, listing and breaking; drivers
 *   pool.c       the handles to the back end, and which call has which
 *   options.c    names and options, checked before anything is sent
 *   acquire.c    acquiring: asking, waiting in the queue, lost answers
 *   lock.c       a held lock: its accessors, renewing by hand, releasing
 *   watch.c      the two threads: the watcher (deadlines, loss notices) and the renewer
 *   set.c        several locks at once
 *   elect.c      leader election
 *   detached.c   leases that outlive their process
 *   examine.c    what the back end's settings mean for its locks
 *   stats.c      counters
 *   cancel.c     cancel handles
 *   sized.c      public structs of older and newer programs
 *   fence.c      guards that check fences
 *
 * Invariants
 *   L1  lock->deadline_us is at most `sent + remaining - margin`, where `sent` was read before the
 *       request went out; so it lies before the moment at which the lease can pass to another
 *       holder.  It never goes back.
 *   L2  A loss is reported once, at the latest lead_us before the deadline, and is final: a renewal
 *       that is answered later does not revive a lost lock.
 *   L3  No callback begins after hf_unlock was entered, and none runs after it returned.
 *   L4  A call that does not get the lock leaves neither a lease nor a place behind, as far as the
 *       back end can be reached; what it cannot take back runs out by itself.
 *
 * locks->mutex guards everything that is marked so, the heap and the lists; pool.mutex guards the
 * pool.  Neither is held during an exchange or a callback, and neither is taken inside the other.
 */
#ifndef HF_LOCK_LOCKS_H
#define HF_LOCK_LOCKS_H

#include <unistd.h>

#include "base/random.h"
#include "lease/lease.h"
#include "lock/pool.h"
#include "lock/stats.h"
#include "lock/watch.h"

struct hf_lock_set;

struct hf_lock {
    struct hf_locks *locks;
    struct lease_request request; /* its key is `name`; its label is NULL once granted */
    int64_t fence;
    int64_t granted_ms; /* the TTL, as the grant said */
    unsigned slot;
    int64_t margin_us;      /* between the deadline and the end of the lease */
    int64_t lead_us;        /* between the loss notice and the deadline */
    int64_t renew_until_us; /* INT64_MAX: no limit */
    bool manual;
    bool in_set; /* hf_unlock_many frees it */
    _Atomic int64_t deadline_us;
    atomic_bool lost;
    atomic_uint refs; /* held by the caller, the renewer's queue and a running callback */

    /* under locks->mutex */
    struct hf_lock *prev, *next; /* in locks->all */
    int64_t loss_us, renew_us;   /* when each is due; INT64_MAX: never */
    struct heap_node due;        /* in watch.heap, by the earlier of the two */
    unsigned failures;           /* renewals that failed in a row */
    bool renewing;               /* in the renewer's queue or hands */
    bool closed;                 /* hf_unlock has begun */
    bool in_callback;
    int fd; /* -1 until hf_lock_fd is called */
    struct hf_lock *renew_next;
    void (*on_loss)(struct hf_lock *lock, void *ctx);
    void *ctx;

    char name[]; /* ends with a NUL */
};

struct hf_locks {
    const struct lease_driver *driver;
    pid_t pid; /* of the process that opened it */
    /* A word that a fork() sets to 0 in the child, so that most calls need not ask the system which
     * process they are in; NULL: the system has no such memory. */
    const int *is_origin;
    const struct clock *clock;
    int64_t timeout_ms;
    struct pool pool;
    struct stats stats;

    pthread_mutex_t mutex;
    struct random random; /* under mutex */
    struct watch watch;
    struct hf_lock *all;      /* every lock whose hf_unlock has not begun; under mutex */
    struct hf_lock_set *sets; /* under mutex */
};

/* hf_open with a given driver.  `options` may be NULL. */
HF_MUST_USE enum hf_result locks_open(const struct lease_driver *driver, const char *url,
                                      const struct hf_options *options, struct hf_locks **ret,
                                      struct hf_fault *fault);

/* Is this a child of the process that opened it? */
static inline bool locks_is_forked(const struct hf_locks *locks)
{
    return locks->is_origin ? !*(const volatile int *)locks->is_origin : locks->pid != getpid();
}

/* The clock that deadlines are on. */
static inline int64_t locks_now_us(const struct hf_locks *locks)
{
    return clock_boot_us(locks->clock);
}

#endif
