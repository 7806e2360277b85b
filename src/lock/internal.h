/* What the files of src/lock share: the two structs behind include/holdfast.h, and who may touch
 * what.
 *
 *   locks.c   opening, closing, handles, what is passed through, numbers
 *   check.c   names, labels and options: refused before anything is sent
 *   lock.c    acquiring: asking, waiting in the queue, doubtful answers; releasing, renewing
 *   watch.c   two threads a struct hf_locks, made with the first lock:
 *             the watch   sleeps on CLOCK_BOOTTIME until the next deadline or renewal is due; says
 *                         that a lock is lost (callbacks run here); never talks to the back end,
 *                         so that no silence of the back end can delay a loss notice
 *             the renewer talks to the back end, all that is due in one exchange
 *   set.c     several locks at once     elect.c   a lock, again and again
 *
 * Invariants
 *   L1  lock->deadline is at most `sent + remaining - margin`, `sent` read before the request went
 *       out, so it lies before the moment the lease can pass to another.  It never goes back.
 *   L2  A loss is told once, lead_us before the deadline, and is final: no renewal that comes
 *       back later makes a lost lock held again.
 *   L3  No callback begins after hf_unlock was entered, and none runs after it returned.
 *   L4  A call that did not get the lock leaves neither lease nor place behind, as far as the back
 *       end can be reached; what it cannot take back runs out by itself.
 *
 * locks->mutex guards everything marked so, the heap and the list; pool.mutex guards the pool.
 * Neither is held during an exchange or a callback; neither is taken inside the other. */
#ifndef HF_LOCK_INTERNAL_H
#define HF_LOCK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/random.h"
#include "lease/lease.h"

#define LOCK_TTL_MS 30000
#define LOCK_TTL_MIN_MS 100 /* below, the margin leaves no time to hold anything */
#define LOCK_TIMEOUT_MS 2000
#define LOCK_TIMEOUT_MAX_MS 3600000
#define LOCK_RETRY_MS 100
#define LOCK_MS_MAX INT64_C(315360000000) /* ten years: any longer wait or hold is for ever */
#define LOCK_RETRIES_MAX 1000000
#define SET_MAX 64
#define LOSS_LEAD_US 20000 /* at most a fifth of what the margin leaves of the TTL */
/* Calls that are about to get an answer, and calls that wait for their turn: the second may not use
 * up the handles of the first, for among those is the release that the waiting ones wait for. */
#define POOL_SHORT_MAX 32
#define POOL_WAITING_MAX 128
#define BATCH_MAX 64

struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    size_t n_short, n_waiting, n_idle;
    struct lease *idle[POOL_SHORT_MAX + POOL_WAITING_MAX]; /* the last one used comes first */
};

enum stat {
    STAT_GRANTED,
    STAT_TAKEN,
    STAT_TIMED_OUT,
    STAT_LOST,
    STAT_UNKNOWN,
    STAT_FAILED,
    STAT_WAITS,
    STAT_RENEWALS,
    STAT_RENEWAL_FAILURES,
    STAT_RELEASES,
    STAT_WAIT_US,
    STAT_COUNT
};

struct hf_lock {
    struct hf_locks *locks;
    struct lease_request request; /* key: `name`; label: NULL once granted */
    int64_t fence, margin_us, lead_us;
    int64_t renew_until_us; /* INT64_MAX: for ever */
    bool manual;
    bool in_set; /* hf_unlock_many frees it */
    _Atomic int64_t deadline_us;
    atomic_bool lost;
    atomic_uint refs; /* the caller's; the renewer's queue; a callback */

    /* under locks->mutex */
    struct hf_lock *prev, *next; /* of all that are not closed */
    int64_t loss_us, renew_us;   /* INT64_MAX: never */
    size_t heap_at;              /* place in the heap, from 1; 0: not in it */
    unsigned failures;           /* renewals in a row */
    bool renewing;               /* in the queue, or with the renewer */
    bool closed;                 /* hf_unlock has begun */
    bool in_callback;
    int fd; /* -1 until asked for */
    struct hf_lock *renew_next;
    void (*on_loss)(struct hf_lock *lock, void *ctx);
    void *ctx;

    char name[]; /* and a NUL */
};

struct watch {
    pthread_t watcher, renewer;
    atomic_bool started;   /* set once both run */
    bool stop;             /* under locks->mutex, as the rest */
    int timer_fd, poke_fd; /* poke: something is due sooner than the timer was set to */
    int64_t armed_us;      /* INT64_MAX: not at all */
    pthread_cond_t due;    /* the renewer's: there is something in the queue, or stop */
    pthread_cond_t called; /* a callback has returned */
    struct hf_lock *renew_first, **renew_last;
    VEC(struct hf_lock *) heap; /* by min(loss_us, renew_us); v[0] is the soonest */
};

struct hf_locks {
    const struct lease_driver *driver;
    const struct clock *clock;
    int64_t timeout_ms;
    struct lease *first; /* what `another` is asked of; also in the pool */
    struct pool pool;

    pthread_mutex_t mutex;
    struct random random;
    struct watch watch;
    struct hf_lock *all;
    struct hf_lock_set *sets;

    _Atomic uint64_t stats[STAT_COUNT];
    _Atomic uint64_t latency[HF_LATENCY_BUCKETS];
};

struct hf_lock_set {
    struct hf_locks *locks;
    struct hf_lock_set *prev, *next; /* under locks->mutex */
    size_t n;
    struct hf_lock *locked[SET_MAX]; /* by name */
};

/* ---- locks.c ---- */

/* hf_open with a driver of the caller's choice. */
enum hf_result locks_open(const struct lease_driver *driver, const char *url,
                          const struct hf_options *options, struct hf_locks **ret,
                          struct hf_fault *fault);
static inline int64_t locks_now_us(const struct hf_locks *locks)
{
    return clock_boot_us(locks->clock);
}
void locks_count(struct hf_locks *locks, enum stat stat, uint64_t n);
void locks_count_latency(struct hf_locks *locks, int64_t us);

/* A handle for one exchange, after at most timeout_ms; HF_UNREACHABLE: none was free. */
enum hf_result pool_take(struct hf_locks *locks, struct lease **ret, struct hf_fault *fault);
void pool_give(struct hf_locks *locks, struct lease *handle, bool waiting);
/* From now on the taken handle is one of a waiting call; false: there are too many of those. */
bool pool_begin_waiting(struct hf_locks *locks);

/* ---- check.c ---- */

enum hf_result check_name(const struct hf_locks *locks, const char *name, struct hf_fault *fault);
/* *ret is `options` (NULL: all zero) with the defaults filled in. */
enum hf_result check_options(const struct hf_locks *locks, const struct hf_lock_options *options,
                             struct hf_lock_options *ret, struct hf_fault *fault);

/* ---- lock.c ---- */

/* By how much a deadline lies before the end of the lease. */
int64_t lock_margin_us(int64_t ttl_ms);
/* How long to go on: one for all the locks of a set. */
struct budget {
    int64_t until_us; /* INT64_MAX: for ever */
    int retries;
    const volatile bool *stop; /* may be NULL */
};
void budget_begin(struct budget *budget, const struct hf_locks *locks,
                  const struct hf_lock_options *options);
/* `options` and `name` have been checked. */
enum hf_result lock_acquire(struct hf_locks *locks, const char *name,
                            const struct hf_lock_options *options, struct budget *budget,
                            struct hf_lock **ret, struct hf_fault *fault);
/* Give back and free, in one exchange, n <= BATCH_MAX.  The first result that is not HF_DONE. */
enum hf_result lock_release(struct hf_locks *locks, struct hf_lock **locked, size_t n,
                            struct hf_fault *fault);

/* ---- watch.c ---- */

/* Both threads, unless they run. */
enum hf_result watch_start(struct hf_locks *locks, struct hf_fault *fault);
void watch_stop(struct hf_locks *locks); /* and wait for them; accepts one never started */
/* Watch over a lock just granted. */
void watch_add(struct hf_lock *lock);
/* Out of sight: no renewal is sent any more, no callback begins; one that runs is waited for,
 * unless this is it.  The caller keeps its reference. */
void watch_remove(struct hf_lock *lock);
void watch_unref(struct hf_lock *lock);
/* A grant or a renewal was answered: `sent_us` is when it was asked for. */
void watch_renewed(struct hf_lock *lock, int64_t sent_us, const struct lease_verdict *verdict);
int64_t watch_deadline_us(const struct hf_lock *lock, int64_t sent_us,
                          const struct lease_verdict *verdict);
/* What one renewal may take: half of what is left, so that after a lost answer another fits. */
int64_t watch_hurry_ms(const struct hf_lock *lock, int64_t now_us);

#endif
