/* libholdfast: lease locks with fencing tokens, one contract over many back ends.
 *
 *   struct hf_locks *locks;
 *   struct hf_lock *lock;
 *   struct hf_fault fault;
 *   struct hf_lock_options want = HF_LOCK_OPTIONS(.ttl_ms = 30000, .wait_ms = 5000);
 *
 *   if (hf_open("redis://127.0.0.1", NULL, &locks, &fault) != HF_DONE)
 *       die(fault.msg);
 *   switch (hf_lock(locks, "nightly-report", &want, &lock, &fault)) {
 *   case HF_DONE:
 *       work(hf_lock_fence(lock));
 *       if (hf_unlock(lock, &fault) != HF_DONE)
 *           complain(fault.msg);
 *       break;
 *   case HF_TAKEN: // another holder has it
 *       break;
 *   default:
 *       die(fault.msg);
 *   }
 *   hf_close(locks);
 *
 * What a lock guarantees.  A lease ends by itself when its holder falls silent.  A holder that was
 * stopped for longer than the TTL may therefore wake up and believe that it still holds the lock.
 * The library offers three things against that: a deadline that always lies before the moment at
 * which the lease can pass to another holder (hf_lock_deadline_ms), a notice that comes no later
 * than the deadline (on_loss, hf_lock_fd), and a fence: a number that grows with every grant of the
 * name, so that the target of a write can refuse a holder that has been replaced (hf_fence_*,
 * docs/fences.md).  Only the fence protects what is written.
 *
 * Results.  HF_DONE and the verdicts (HF_TAKEN, HF_LOST) are normal answers.  HF_UNKNOWN is neither
 * yes nor no: the request was sent and no answer came.  The other results are failures; the
 * hf_fault then contains a sentence for a person.  Every call may be repeated.
 *
 * Threads.  A struct hf_locks and its locks may be used by any number of threads at once.  The
 * first lock of a struct hf_locks starts two threads: one renews leases, the other watches
 * deadlines and runs the callbacks.  A callback must not block.  Host names are looked up on a
 * further thread, which may outlive hf_close if the resolver does not answer.  The library has no
 * global state, prints nothing and installs no signal handlers.
 *
 * Processes.  After fork() the child must not use what the parent opened; it opens its own.  Calls
 * on the parent's objects are refused with HF_BAD_REQUEST in the child, hf_lock_held returns false
 * there, and calls that free do nothing.  exec() is safe: every file descriptor is close-on-exec.
 *
 * Versions.  Structs that may grow begin with `size`, which their initialiser macro sets to the
 * size that the program was compiled with.  Later versions add members at the end.  The library
 * accepts the struct of every version since 0.1.0: members that an older program does not have
 * count as zero.  It refuses any other size with HF_BAD_REQUEST, and so it does with options of a
 * newer program that set a member which it does not know.  When it fills a newer program's struct
 * it leaves such members alone, which the macro has set to zero.  struct hf_fault and struct
 * hf_fence_guard have no `size` and never change. */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A result that must be looked at.  Without GNU attributes it means nothing. */
#if defined(__GNUC__)
#define HF_MUST_USE __attribute__((warn_unused_result))
#else
#define HF_MUST_USE
#endif

/* Initialisers of structs that begin with `size`: HF_..._INIT, and with members
 * HF_LOCK_OPTIONS(.ttl_ms = 30000, .wait_ms = 5000).  C++ wants the members in the order in which
 * the struct has them; before C++20 they are an extension of gcc and clang. */
#ifdef __cplusplus
#if defined(__GNUC__)
#pragma GCC system_header /* or g++ would warn of the members that are not named */
#endif
extern "C++" {
template <class T> inline T hf_sized()
{
    T value = T();
    value.size = sizeof value;
    return value;
}
}
#define HF_SIZED_INIT(type) hf_sized<type>()
#else
#define HF_SIZED_INIT(type) HF_SIZED(type, )
#endif
/* clang-format off */
#define HF_SIZED(type, ...) {.size = sizeof(type), __VA_ARGS__}
/* clang-format on */

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default) /* everything that is not declared here stays internal */
#endif

/* ---- version ---- */

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 1
#define HF_VERSION_PATCH 0
/* Comparable: a later version has a larger number. */
#define HF_VERSION (HF_VERSION_MAJOR * 1000000 + HF_VERSION_MINOR * 1000 + HF_VERSION_PATCH)
#define HF_VERSION_TEXT "0.1.0"

/* HF_VERSION and HF_VERSION_TEXT of the library that is in use, which may be a later one than the
 * header that the program was compiled with. */
int hf_version(void);
const char *hf_version_text(void);

/* ---- results ---- */

enum hf_result {
    HF_DONE = 0,
    /* verdicts */
    HF_TAKEN, /* another holder has the lock, or the wait ended first, or it was cancelled */
    HF_LOST,  /* the caller does not hold it: it ran out, was broken, or was never granted */
    /* neither yes nor no */
    HF_UNKNOWN,
    /* failures */
    HF_BAD_REQUEST, /* an invalid name, TTL, URL or option; the fault says which */
    HF_UNREACHABLE, /* the back end cannot be reached or refuses the request; nothing was done */
    HF_UNSUPPORTED, /* this back end cannot do that; see hf_drivers */
    HF_FAILED,      /* anything else: out of threads, a damaged store */
    /* a verdict that was added later: to wait would close a cycle of callers that wait for each
     * other, or for the caller itself; the fault names it */
    HF_DEADLOCK,
};
const char *hf_result_text(enum hf_result result);

/* Every call that takes a `fault` accepts NULL for it. */
struct hf_fault {
    enum hf_result result;
    char msg[256];
};

/* ---- opening ---- */

struct hf_locks;

struct hf_options {
    size_t size;
    /* The limit of one exchange with the back end, including name lookup and connecting; 0: 2000.
     * A renewal takes at most half of what is left of its lock, so that a second one fits. */
    int64_t timeout_ms;
};
#define HF_OPTIONS_INIT HF_SIZED_INIT(struct hf_options)
#define HF_OPTIONS(...) HF_SIZED(struct hf_options, __VA_ARGS__)

/* Opens a back end by its URL:
 *   memory:                                       this process only
 *   sqlite:PATH                                   a file of its own, or that of a holdfastd
 *   postgres://[user[:password]@]host[:port][,host...]/database
 *   redis://[[user]:password@]host[:port][/db]
 *   redis+unix://[[user]:password@]/path[?db=N]   Redis behind a socket; without a password also
 *                                                 redis+unix:PATH; unix: means the same
 *   rediss://, redis+sentinel://                  Redis over TLS, and behind sentinels
 *   redlock://h1:p1,h2:p2,h3:p3                   a majority of independent Redis servers
 *   etcd://h1:2379[,h2:2379]                      also etcds:// over TLS
 *   zookeeper://h1:2181[,h2:2181][/chroot]
 *   holdfast://[KEY@]h1:8080[,h2:8080]            the lock service of holdfastd; also holdfasts://
 *
 * docs/locks.md has the parameters of each.  hf_open connects, so that a wrong password or host is
 * reported at once.  `options` may be NULL. */
HF_MUST_USE enum hf_result hf_open(const char *url, const struct hf_options *options,
                                   struct hf_locks **ret, struct hf_fault *fault);
/* Releases and frees all locks and sets that are still held, without calling on_loss, and ends the
 * library's threads.  No other call may be under way, so a callback must not call it.  Accepts
 * NULL. */
void hf_close(struct hf_locks *locks);

/* ---- cancelling ---- */

/* A cancel handle ends the waits of all calls that were given it. */
struct hf_cancel;
/* Returns NULL if the process has too many files open. */
HF_MUST_USE struct hf_cancel *hf_cancel_new(void);
/* Calls that were given the handle stop waiting and return HF_TAKEN (hf_elect: HF_DONE).  A call
 * that sleeps wakes at once, or within 50 ms on SQLite.  A call that exchanges messages with the
 * back end finishes that exchange first.  A call that waited in the queue then gives its place
 * back, which takes one more exchange and so up to timeout_ms.  A call that gets the lock all the
 * same returns HF_DONE, even if the handle was triggered before.  A triggered handle stays
 * triggered.  May be called from any thread and from a signal handler.  Accepts NULL. */
void hf_cancel_trigger(struct hf_cancel *cancel);
/* Returns false for NULL. */
bool hf_cancel_is_triggered(const struct hf_cancel *cancel);
/* No call that was given the handle may be under way.  Accepts NULL. */
void hf_cancel_free(struct hf_cancel *cancel);

/* ---- one lock ---- */

struct hf_lock;

enum hf_mode { HF_EXCLUSIVE = 0, HF_SHARED };

#define HF_FOREVER INT64_C(-1)

struct hf_lock_options {
    size_t size;
    /* The lease's time to live; 0: 30000.  The driver's limits apply. */
    int64_t ttl_ms;
    /* How long to wait in the queue; 0: do not wait; HF_FOREVER. */
    int64_t wait_ms;
    /* If not 0, the call does not queue but asks again up to this many times.  A wait_ms that is
     * not 0 limits the time as well.  A try that cannot reach the back end counts. */
    int retries;
    /* The pause between retries; 0: 100.  Each is longer by up to a half, at random. */
    int64_t retry_ms;
    /* Any number of shared holders, or one exclusive holder. */
    enum hf_mode mode;
    /* Waiters with a larger priority are served first; those of equal priority in the order in
     * which they came. */
    int priority;
    /* How many exclusive holders there may be at once (a semaphore); 0: 1.  All callers must give
     * the same number. */
    unsigned slots;
    /* Shown to people who inspect the lock; at most 128 bytes of UTF-8; NULL: none. */
    const char *label;
    /* The library stops renewing this long after the grant, of a set after that of its first lock;
     * 0: it renews until hf_unlock. */
    int64_t max_hold_ms;
    /* The library does not renew the lock; the program calls hf_renew. */
    bool manual;
    /* How long the back end may be out of reach while the call waits in the queue; 0: as long as
     * the wait.  After that, or if the wait ends during an outage, the call returns HF_UNREACHABLE,
     * or HF_UNKNOWN if an answer was lost. */
    int64_t outage_ms;
    /* Called while waiting, on the caller's thread with `ctx`: when the back end is out of reach,
     * with the reason, and with NULL when it answers again.  May be NULL. */
    void (*on_outage)(const struct hf_fault *why, void *ctx);
    /* Ends the wait when it is triggered.  May be NULL. */
    const struct hf_cancel *cancel;
    /* Called once, no later than the deadline, on the library's thread with `ctx`, when the lock is
     * being lost.  May be NULL. */
    void (*on_loss)(struct hf_lock *lock, void *ctx);
    void *ctx;
    /* Stored with the lock until it ends, and shown to those who inspect it: where a leader
     * listens, for example.  1 to 4096 bytes of UTF-8; NULL: none.  HF_UNSUPPORTED where the back
     * end stores none (HF_TRAIT_VALUES). */
    const char *value;
};
#define HF_LOCK_OPTIONS_INIT HF_SIZED_INIT(struct hf_lock_options)
#define HF_LOCK_OPTIONS(...) HF_SIZED(struct hf_lock_options, __VA_ARGS__)

/* `name` has 1 to 255 bytes of UTF-8 without control characters.  `options` may be NULL. */
HF_MUST_USE enum hf_result hf_lock(struct hf_locks *locks, const char *name,
                                   const struct hf_lock_options *options, struct hf_lock **ret,
                                   struct hf_fault *fault);
/* Gives the lock back and frees it, whatever the result; HF_LOST if the caller did not hold it any
 * more: its deadline had passed or its loss was known, though no other may have it yet.  Waits for
 * an on_loss that is running, unless called from it; none begins afterwards.  A member of a set is
 * given back with its set: for a member hf_unlock returns HF_BAD_REQUEST and does nothing.  Accepts
 * NULL: HF_DONE. */
HF_MUST_USE enum hf_result hf_unlock(struct hf_lock *lock, struct hf_fault *fault);
/* Moves the deadline; the fence stays.  HF_LOST if the lock is gone, HF_BAD_REQUEST if max_hold_ms
 * has passed. */
HF_MUST_USE enum hf_result hf_renew(struct hf_lock *lock, struct hf_fault *fault);

const char *hf_lock_name(const struct hf_lock *lock);
/* Larger than the fence of every earlier grant of this name. */
int64_t hf_lock_fence(const struct hf_lock *lock);
/* Which of the `slots` this lock is, from 0 on; 0 if there is one slot only.  Two holders at once
 * have different slots.  Holders of different slots have different fences, so a guard has to know
 * each slot as a resource of its own: "NAME#SLOT". */
unsigned hf_lock_slot(const struct hf_lock *lock);
/* CLOCK_BOOTTIME in milliseconds.  Until then the lock cannot have been granted to another holder.
 * It is counted from before the request was sent, minus a margin of max(50 ms, 1 % of the TTL), and
 * moves with every renewal. */
int64_t hf_lock_deadline_ms(const struct hf_lock *lock);
/* The TTL that the back end granted.  It can be shorter than ttl_ms where the back end has a say in
 * it: ZooKeeper negotiates it, Redlock subtracts the drift of clocks. */
int64_t hf_lock_ttl_ms(const struct hf_lock *lock);
/* Returns false from the deadline on, or as soon as the loss is known. */
bool hf_lock_held(const struct hf_lock *lock);
/* A file descriptor that becomes readable when the lock is being lost, for poll loops.  It belongs
 * to the lock: do not read or close it.  -1 if the process has too many files open. */
int hf_lock_fd(struct hf_lock *lock);

/* ---- several locks at once ---- */

struct hf_lock_set;
/* Takes all of the 1 to 64 names or none.  The locks are taken in the order of their names,
 * whatever order they are given in, so that two sets never deadlock.  A name that is given twice is
 * HF_BAD_REQUEST. */
HF_MUST_USE enum hf_result hf_lock_many(struct hf_locks *locks, const char *const *names, size_t n,
                                        const struct hf_lock_options *options,
                                        struct hf_lock_set **ret, struct hf_fault *fault);
/* Gives the locks back in the reverse order and frees the set, whatever the result.  Accepts NULL:
 * HF_DONE. */
HF_MUST_USE enum hf_result hf_unlock_many(struct hf_lock_set *set, struct hf_fault *fault);
/* The lock with the i-th name in the order of names; NULL if there are not that many.  The set owns
 * it: it may be inspected and renewed, not unlocked. */
struct hf_lock *hf_lock_set_at(const struct hf_lock_set *set, size_t i);

/* ---- leases without a living process ----
 * For scripts: one process takes the lease; others renew and release it.  All they need is the text
 * of its owner.  The library neither renews such a lease nor reports its loss. */

struct hf_grant {
    size_t size;
    char owner[33]; /* 128 bits in hex */
    int64_t fence;
    int64_t remaining_ms; /* until the deadline (see hf_lock_deadline_ms); may be negative */
    int64_t slot;         /* as hf_lock_slot */
};
#define HF_GRANT_INIT HF_SIZED_INIT(struct hf_grant)

/* As hf_lock.  The options max_hold_ms, manual and on_loss have no effect.  HF_UNSUPPORTED where
 * leases end with the process (hf_driver_info.outlives). */
HF_MUST_USE enum hf_result hf_lease_get(struct hf_locks *locks, const char *name,
                                        const struct hf_lock_options *options, struct hf_grant *ret,
                                        struct hf_fault *fault);
/* The lease then lives for `ttl_ms` from now; 0: 30000.  HF_LOST if the owner does not hold it. */
HF_MUST_USE enum hf_result hf_lease_renew(struct hf_locks *locks, const char *name,
                                          const char *owner, int64_t ttl_ms, struct hf_grant *ret,
                                          struct hf_fault *fault);
HF_MUST_USE enum hf_result hf_lease_release(struct hf_locks *locks, const char *name,
                                            const char *owner, struct hf_fault *fault);

/* ---- inspecting ---- */

struct hf_holder {
    size_t size;    /* set by the library */
    char owner[33]; /* 128 bits in hex, different for each grant */
    char label[129];
    enum hf_mode mode;
    int priority;
    int64_t fence;        /* of a waiter: 0 */
    int64_t remaining_ms; /* of the lease; of a waiter: how long its place is kept */
    int64_t held_ms;      /* the time since the grant; -1: not known; of a waiter: -1 */
    int64_t slot;         /* as hf_lock_slot; of a waiter: 0 */
};
struct hf_lock_state {
    size_t size;
    size_t n_holders, n_waiters;
    const struct hf_holder *const *holders;
    const struct hf_holder *const *waiters; /* in the order in which they will be served */
    /* Of the latest grant, also if the lock is free.  Databases and Redis remember it for a day,
     * the memory driver while few names are unused; 0: no grant is remembered. */
    int64_t last_fence;
    /* What the latest holder that gave one has stored; NULL: none. */
    const char *value;
};
#define HF_LOCK_STATE_INIT HF_SIZED_INIT(struct hf_lock_state)

/* `ret` must be fresh from HF_LOCK_STATE_INIT or closed, since what it held is overwritten, not
 * freed.  Afterwards it is freed with hf_lock_state_close. */
HF_MUST_USE enum hf_result hf_inspect(struct hf_locks *locks, const char *name,
                                      struct hf_lock_state *ret, struct hf_fault *fault);
/* Accepts NULL, and a state that was initialised and never filled. */
void hf_lock_state_close(struct hf_lock_state *state);
/* Calls `each` for the names that are held or waited for and begin with `prefix`, in order, until
 * it returns false. */
HF_MUST_USE enum hf_result hf_list(struct hf_locks *locks, const char *prefix,
                                   bool (*each)(void *ctx, const char *name), void *ctx,
                                   struct hf_fault *fault);
/* Ends the leases of all holders of a name, for operators (the machine that held it is dead).
 * Later grants still have larger fences. */
HF_MUST_USE enum hf_result hf_break(struct hf_locks *locks, const char *name,
                                    struct hf_fault *fault);

/* ---- examining a back end ---- */

/* How a finding bears on the locks of the back end. */
enum hf_grade {
    HF_GOOD,    /* as it should be */
    HF_NOTE,    /* worth knowing */
    HF_WARNING, /* locks can be lost, or granted twice, in a failure that the finding names */
    HF_DANGER,  /* locks will be lost or granted twice, or cannot be taken at all */
};
struct hf_finding {
    size_t size; /* set by the library */
    enum hf_grade grade;
    const char *topic; /* "persistence", "eviction", "clock", ... */
    const char *text;  /* one or two sentences */
};
/* Asks the back end about its settings and calls `each` for everything that bears on locks:
 * version, persistence, eviction, replication, clock, rights.  Changes nothing. */
HF_MUST_USE enum hf_result hf_examine(struct hf_locks *locks,
                                      void (*each)(void *ctx, const struct hf_finding *finding),
                                      void *ctx, struct hf_fault *fault);

/* ---- leader election ---- */

struct hf_election {
    size_t size;
    const char *name;
    /* NULL: the defaults.  wait_ms, retries and cancel have no effect: a candidate waits. */
    const struct hf_lock_options *lock;
    /* Called on election with `ctx`: leads until hf_lock_held is false, then returns.  To return
     * is to resign. */
    void (*lead)(struct hf_lock *lock, void *ctx);
    void *ctx;
    /* Ends the candidacy when it is triggered.  May be NULL. */
    const struct hf_cancel *cancel;
};
#define HF_ELECTION_INIT HF_SIZED_INIT(struct hf_election)
#define HF_ELECTION(...) HF_SIZED(struct hf_election, __VA_ARGS__)

/* Stands for election again and again until it is cancelled (HF_DONE) or fails.  While the back end
 * is out of reach it waits, at most for lock->outage_ms. */
HF_MUST_USE enum hf_result hf_elect(struct hf_locks *locks, const struct hf_election *election,
                                    struct hf_fault *fault);

/* ---- statistics ---- */

#define HF_LATENCY_BUCKETS 24
struct hf_stats {
    size_t size;
    /* How calls that acquire ended.  taken: refused at once; timed_out: refused after waiting. */
    uint64_t granted, taken, timed_out, unknown, failed;
    /* Locks that were lost while they were held. */
    uint64_t lost;
    uint64_t waits, renewals, renewal_failures, releases;
    /* Time spent waiting, in all. */
    uint64_t wait_us;
    /* How long grants took, including the wait.  Bucket i counts those that took less than
     * 2^i * 16 us and are in no bucket before; the last one counts the rest. */
    uint64_t latency[HF_LATENCY_BUCKETS];
    /* Shared locks that were granted from the cache, without asking the back end, and those that
     * were not in it.  Both stay 0 unless the URL says that locks are cached. */
    uint64_t cache_hits, cache_misses;
    /* How long the grants that `latency` counts took, in all. */
    uint64_t latency_us;
};
#define HF_STATS_INIT HF_SIZED_INIT(struct hf_stats)

HF_MUST_USE enum hf_result hf_stats(const struct hf_locks *locks, struct hf_stats *ret,
                                    struct hf_fault *fault);

/* ---- what each back end can do ---- */

enum hf_fence_source {
    HF_FENCE_NONE,
    HF_FENCE_COUNTER,   /* a counter of this process; a new process starts again */
    HF_FENCE_DURABLE,   /* a counter that is stored before it is given out; if the store is lost the
                           next one starts at the wall clock in microseconds */
    HF_FENCE_CLOCK,     /* the server's clock in microseconds, at least the last fence plus one */
    HF_FENCE_CONSENSUS, /* a revision that a majority has agreed on */
};
/* Failures after which a lock can be granted while its holder still believes, before its deadline,
 * that it holds it.  Fences grow all the same, as far as the driver's source of fences promises. */
enum hf_overlap {
    HF_OVERLAP_CLOCK = 1,    /* the clock of a server is set, or runs at another rate */
    HF_OVERLAP_RESTART = 2,  /* a server restarts without its data */
    HF_OVERLAP_FAILOVER = 4, /* a replica takes over that had not heard of the lease */
    HF_OVERLAP_LEADER = 8,   /* a leader that was stopped resumes */
};
/* Where a driver differs from what most of them do. */
enum hf_trait {
    HF_TRAIT_FIXED_TTL = 1,     /* a renewal keeps the TTL of the grant, whatever it asks for */
    HF_TRAIT_FORGETS_FENCE = 2, /* hf_inspect does not know the last fence of a free lock */
    HF_TRAIT_QUEUES_ANEW = 4,   /* a waiter that does not claim its turn loses its place */
    HF_TRAIT_HANDS_OVER = 8,    /* a free lock is given to the next waiter at once, so a call that
                                   does not wait does not get it, whether or not that waiter lives */
    HF_TRAIT_HIERARCHY = 16, /* a / in a name makes a hierarchy: a lock conflicts with those above
                                and below it */
    HF_TRAIT_AGES = 32,      /* a waiter that was overtaken often goes first */
    HF_TRAIT_VALUES = 64,    /* a lock can have a value */
};
struct hf_driver_info {
    size_t size; /* set by the library */
    const char *name;
    const char *url; /* the form of its URLs */
    enum hf_fence_source fence;
    bool processes; /* holders may be in different processes; and on different machines, unless
                       the back end is a file */
    bool outlives;  /* a lease lives until its TTL ends, even if the process that took it has
                       ended */
    bool fair, shared, priority, slots;
    int64_t ttl_min_ms, ttl_max_ms;
    size_t name_len_max;
    const char *ttl;      /* which clock measures the TTL, and how precisely */
    const char *survives; /* which failures its leases and fences survive */
    uint64_t overlaps;    /* enum hf_overlap, combined */
    const char *beware;   /* what it does not promise, in a sentence or two */
    uint64_t traits;      /* enum hf_trait, combined */
};
/* All drivers that the library was built with; *ret_n is their number. */
const struct hf_driver_info *const *hf_drivers(size_t *ret_n);

/* ---- checking fences at the target of a write ---- */

/* The guard for an SQLite database `db` (a sqlite3 *): call it inside the transaction that writes.
 * HF_DONE: no larger fence has been seen for `resource`, and this one is stored.  An equal fence
 * passes, since one holder may write many times.  HF_LOST: a larger fence has been seen: roll back.
 * The table holdfast_fences is created on first use.  HF_UNSUPPORTED if the library was built
 * without SQLite.  The guards for PostgreSQL and Redis are in share/holdfast. */
HF_MUST_USE enum hf_result hf_fence_sqlite(void *db, const char *resource, int64_t fence,
                                           struct hf_fault *fault);
/* A guard in memory, for a resource that lives in one process.  A zeroed guard is new.  Any number
 * of threads may check at once. */
struct hf_fence_guard {
    int64_t largest; /* internal */
};
HF_MUST_USE bool hf_fence_check(struct hf_fence_guard *guard, int64_t fence);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
