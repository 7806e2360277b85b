/* libholdfast: lease locks with fencing tokens, one contract over many back ends.
 *
 *   struct hf_locks *locks;                                struct hf_fault fault;
 *   if (hf_open("redis://127.0.0.1", NULL, &locks, &fault) != HF_DONE) die(fault.msg);
 *   struct hf_lock_options want = {.ttl_ms = 30000, .wait_ms = 5000};
 *   struct hf_lock *lock;
 *   switch (hf_lock(locks, "nightly-report", &want, &lock, &fault)) {
 *   case HF_DONE:  work(hf_lock_fence(lock)); hf_unlock(lock, NULL); break;
 *   case HF_TAKEN: break;                                  somebody else has it
 *   default:       die(fault.msg);
 *   }
 *   hf_close(locks);
 *
 * What a lock is worth.  A lease ends by itself when its holder falls silent, so a holder that was
 * stopped for longer than the TTL may wake and believe it still holds the lock.  Three things are
 * offered against that: a deadline that always lies before the moment the lease can pass to another
 * (hf_lock_deadline_ms), a notice that comes no later (on_loss, hf_lock_fd), and a fence, a number
 * that grows with every grant of the name, for the write target to refuse those who come late
 * (hf_fence_*, docs/locks.md).  Only the last protects what is written.
 *
 * Results.  HF_DONE and the verdicts (HF_TAKEN, HF_LOST) are normal answers.  HF_UNKNOWN is neither
 * yes nor no: the request went out and no answer came; the call may be repeated, it means the same
 * thing.  The rest are failures, with a sentence in the hf_fault.  Every call may be repeated.
 *
 * Threads.  A struct hf_locks and its locks may be used by any number of threads at once.  With the
 * first lock the library starts two threads a struct hf_locks: one renews, the other watches the
 * deadlines; callbacks run on the second, which is never kept waiting by the back end, and must not
 * block.  The name of a host is looked up by one more, which may outlive hf_close if the resolver
 * does not answer.  No globals, no output, no signal handlers.
 * fork(): the child must not use or free what the parent opened; it opens its own.  exec() is safe:
 * every file is close-on-exec. */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* what is not declared here is the library's own */

#define HF_VERSION_TEXT "0.1.0"

enum hf_result {
    HF_DONE = 0,
    /* verdicts */
    HF_TAKEN, /* another holds it; or the wait ended before it was ours */
    HF_LOST,  /* it is not ours: it ran out, was broken, or was never granted */
    /* neither yes nor no */
    HF_UNKNOWN,
    /* failures */
    HF_BAD_REQUEST, /* a name, TTL, URL or option that cannot be; the fault names it */
    HF_UNREACHABLE, /* the back end cannot be reached or refuses us; nothing was done */
    HF_UNSUPPORTED, /* this back end cannot do that; see hf_drivers */
    HF_FAILED,      /* anything else: out of threads, a damaged store */
};
const char *hf_result_text(enum hf_result result);

struct hf_fault {
    enum hf_result result;
    char msg[256];
};

/* ---- opening ---- */

struct hf_locks;

struct hf_options {
    /* For one exchange with the back end, looking its name up and connecting included; 0: 2000.  A
     * renewal takes at most half of what is left of its lock, so that a second fits. */
    int64_t timeout_ms;
};

/* memory:                                    this process only
 * sqlite:PATH                                a file of its own, or a holdfastd's
 * postgres://[user[:password]@]host[:port][,host...]/database
 * redis://[[user]:password@]host[:port][/db]
 * unix://[[user]:password@]/path[?db=N]      a Redis behind a socket; unix:PATH without a password
 * `options` may be NULL.  `fault` may be NULL everywhere.  Connects, so that a wrong password or
 * host is told at once. */
enum hf_result hf_open(const char *url, const struct hf_options *options, struct hf_locks **ret,
                       struct hf_fault *fault);
/* Releases and frees every lock and set still held, without on_loss; ends the threads.  No other
 * call may be under way, so it is not for a callback.  Accepts NULL. */
void hf_close(struct hf_locks *locks);

/* ---- one lock ---- */

struct hf_lock;

enum hf_mode { HF_EXCLUSIVE = 0, HF_SHARED };

struct hf_lock_options {
    int64_t ttl_ms;    /* of the lease; 0: 30000.  The driver's least and most apply */
    int64_t wait_ms;   /* how long to wait for it; 0: not at all; HF_FOREVER */
    int retries;       /* asked so many times more instead of waiting in the queue; 0: queue.  A
                          wait_ms that is not 0 ends it too; a back end out of reach is one try */
    int64_t retry_ms;  /* the pause between; 0: 100 */
    enum hf_mode mode; /* any number of shared holders, or one exclusive */
    int priority;      /* among those who wait the larger goes first; then the one who came first */
    unsigned slots;    /* so many may hold it at once: a semaphore; 0: 1.  All must say the same */
    const char *label; /* for people who look: at most 128 bytes; NULL: none */
    int64_t max_hold_ms; /* renewed no longer than this from the grant; 0: as long as it is held */
    bool manual;         /* not renewed by the library: call hf_renew */
    /* While it waits in the queue the back end may be out of reach for so long; then, or when the
     * wait ends so, HF_UNREACHABLE (HF_UNKNOWN if an answer was lost).  0: as long as the wait. */
    int64_t outage_ms;
    /* While it waits: the back end is out of reach, `why` says how; then, with NULL, it answers
     * again.  On the caller's thread, with `ctx`.  May be NULL. */
    void (*on_outage)(const struct hf_fault *why, void *ctx);
    /* Looked at while waiting, a few times a second: true gives up, as HF_TAKEN.  May be NULL. */
    const volatile bool *stop;
    /* The lock is being lost: no later than its deadline, once.  On the library's thread. */
    void (*on_loss)(struct hf_lock *lock, void *ctx);
    void *ctx;
};
#define HF_FOREVER INT64_C(-1)

/* `name`: 1 to 255 bytes of UTF-8, no control characters.  `options` may be NULL. */
enum hf_result hf_lock(struct hf_locks *locks, const char *name,
                       const struct hf_lock_options *options, struct hf_lock **ret,
                       struct hf_fault *fault);
/* Give it back and free `lock`, whatever the result.  HF_LOST: it was not ours any more.  Waits for
 * an on_loss that is running, unless called from it; none begins after.  Not for a member of a set,
 * which goes with its set: HF_BAD_REQUEST, and nothing is done or freed. */
enum hf_result hf_unlock(struct hf_lock *lock, struct hf_fault *fault);
/* The same fence, a new deadline.  HF_LOST: gone.  HF_BAD_REQUEST: max_hold_ms is over. */
enum hf_result hf_renew(struct hf_lock *lock, struct hf_fault *fault);

const char *hf_lock_name(const struct hf_lock *lock);
/* Larger than that of every earlier grant of this name. */
int64_t hf_lock_fence(const struct hf_lock *lock);
/* CLOCK_BOOTTIME in milliseconds: until then nobody else can have been granted it.  Counted from
 * before the request was sent, minus a margin of max(50 ms, 1 % of the TTL).  Moves with renewals.
 */
int64_t hf_lock_deadline_ms(const struct hf_lock *lock);
/* False from the deadline on, or as soon as the loss is known. */
bool hf_lock_held(const struct hf_lock *lock);
/* Becomes readable when the lock is being lost, for poll loops; the lock's, not to be closed.  -1:
 * the process has too many files. */
int hf_lock_fd(struct hf_lock *lock);

/* ---- several at once ---- */

struct hf_lock_set;
/* All or none, taken in the order of their names whatever order they are given in, so that two sets
 * never wait for each other in a circle; a name given twice is HF_BAD_REQUEST.  At most 64. */
enum hf_result hf_lock_many(struct hf_locks *locks, const char *const *names, size_t n,
                            const struct hf_lock_options *options, struct hf_lock_set **ret,
                            struct hf_fault *fault);
/* In the reverse order. */
enum hf_result hf_unlock_many(struct hf_lock_set *set, struct hf_fault *fault);
/* By order of names; the set's: it may be looked at and renewed, not unlocked. */
struct hf_lock *hf_lock_set_at(const struct hf_lock_set *set, size_t i);

/* ---- leases without a living process ----
 * For scripts: one process takes the lease, others renew and release it by its owner's text, which
 * is all they need to know.  Nobody renews it for them and nobody tells of its loss. */

struct hf_grant {
    char owner[33]; /* 128 bits in hex */
    int64_t fence;
    int64_t remaining_ms; /* until the deadline, as hf_lock_deadline_ms has it; can be below 0 */
};
/* As hf_lock; of the options manual is implied, max_hold_ms and on_loss do not count. */
enum hf_result hf_lease_get(struct hf_locks *locks, const char *name,
                            const struct hf_lock_options *options, struct hf_grant *ret,
                            struct hf_fault *fault);
/* `ttl_ms` from now; 0: 30000.  HF_LOST: the owner does not hold it. */
enum hf_result hf_lease_renew(struct hf_locks *locks, const char *name, const char *owner,
                              int64_t ttl_ms, struct hf_grant *ret, struct hf_fault *fault);
enum hf_result hf_lease_release(struct hf_locks *locks, const char *name, const char *owner,
                                struct hf_fault *fault);

/* ---- looking ---- */

struct hf_holder {
    char owner[33]; /* 128 bits in hex, of one grant */
    char label[129];
    enum hf_mode mode;
    int64_t fence, remaining_ms; /* of a waiter: 0, and how long its place is kept */
    int priority;
};
struct hf_lock_state {
    size_t n_holders, n_waiters;
    struct hf_holder *holders, *waiters; /* waiters in the order they will be served */
    int64_t last_fence;                  /* of the latest grant as far as it is known; 0: none */
};
enum hf_result hf_inspect(struct hf_locks *locks, const char *name, struct hf_lock_state *ret,
                          struct hf_fault *fault);
void hf_lock_state_close(struct hf_lock_state *state);
/* Names that are held or waited for, in order, beginning with `prefix`; `each` returns false to
 * stop. */
enum hf_result hf_list(struct hf_locks *locks, const char *prefix,
                       bool (*each)(void *ctx, const char *name), void *ctx,
                       struct hf_fault *fault);
/* Take a lock from whoever holds it (a dead machine's, by an operator): its fence stays used. */
enum hf_result hf_break(struct hf_locks *locks, const char *name, struct hf_fault *fault);

/* ---- one of many does it ---- */

struct hf_election {
    const char *name;
    struct hf_lock_options lock; /* wait_ms is ignored: a candidate waits */
    /* Elected: do the leader's work until hf_lock_held is false, then return.  Its return gives the
     * lead up. */
    void (*lead)(struct hf_lock *lock, void *ctx);
    void *ctx;
    const volatile bool *stop; /* looked at between terms and while waiting; may be NULL */
};
/* Candidate again and again until *stop or a failure.  A back end out of reach is waited for, or
 * for lock.outage_ms. */
enum hf_result hf_elect(struct hf_locks *locks, const struct hf_election *election,
                        struct hf_fault *fault);

/* ---- numbers ---- */

#define HF_LATENCY_BUCKETS 24
struct hf_stats {
    /* How calls that acquire ended, but lost: locks that were lost while held.  taken: at once;
     * timed_out: after waiting. */
    uint64_t granted, taken, timed_out, lost, unknown, failed;
    uint64_t waits, renewals, renewal_failures, releases;
    /* Of acquiring, waiting included: each grant is in the first bucket i with less than
     * 2^i * 16 us, or in the last. */
    uint64_t latency[HF_LATENCY_BUCKETS];
    uint64_t wait_us; /* spent waiting, in all */
};
void hf_stats(const struct hf_locks *locks, struct hf_stats *ret);

/* ---- what each back end can do ---- */

enum hf_fence_source {
    HF_FENCE_NONE,
    HF_FENCE_COUNTER,   /* of this process: begins anew with it */
    HF_FENCE_DURABLE,   /* a counter that is stored before it is given; when the store is lost the
                           next begins at the wall clock in microseconds */
    HF_FENCE_CLOCK,     /* the server's clock in microseconds, never less than the last plus one */
    HF_FENCE_CONSENSUS, /* a revision agreed on by a majority */
};
struct hf_driver_info {
    const char *name, *url; /* and how its URLs look */
    enum hf_fence_source fence;
    bool processes; /* holders may be in different processes, and on different machines unless it is
                       a file */
    bool outlives;  /* a lease lives on, until its TTL, when the process that took it has ended */
    bool fair, shared, priority, slots;
    int64_t ttl_min_ms, ttl_max_ms;
    size_t name_len_max;
    const char *ttl;      /* whose clock judges it, and how exactly */
    const char *survives; /* what it survives, and what not */
};
/* All of them; *ret_n how many. */
const struct hf_driver_info *const *hf_drivers(size_t *ret_n);

/* ---- fences checked where it counts ----
 * An SQLite database: call inside the transaction that writes.  HF_DONE: `fence` is the largest
 * seen for `resource` (equal passes: one holder writes many times), and it is noted.  HF_LOST: a
 * larger one has been here: roll back.  Needs no setup: the table holdfast_fences is made on first
 * use. `db` is a sqlite3 *.  PostgreSQL and Redis have theirs in share/holdfast. */
enum hf_result hf_fence_sqlite(void *db, const char *resource, int64_t fence,
                               struct hf_fault *fault);
/* A guard in memory, for a resource that lives in one process.  Zeroed is new; any thread. */
struct hf_fence_guard {
    int64_t largest; /* the library's */
};
bool hf_fence_check(struct hf_fence_guard *guard, int64_t fence);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
