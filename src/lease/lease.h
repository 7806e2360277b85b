/* The lease contract: what src/lock asks of a coordinator, and what each driver declares that it
 * can do.  A driver exports one const struct lease_driver, from a folder beside this header;
 * drivers.c has the table of all of them.
 *
 * Callers use the lease_* functions at the end.  Those check a request once, for all drivers
 * (check.c), and pass it on, so a driver gets only requests that it can serve.  Calls are
 * synchronous.  A handle belongs to one thread at a time.  A driver repeats only what cannot be
 * done twice (README.md, "Who repeats what"); after HF_UNKNOWN the caller decides whether to ask
 * again.
 *
 *   owner     128 random bits, made by the caller for each acquisition.  acquire is idempotent for
 *             (key, owner): a caller that asks again after a lost answer gets its grant (with the
 *             same fence and the rest of the TTL) or its place in the queue.  renew and release
 *             compare the owner before they write.
 *   queue     A request with `queue` that is not granted keeps a place, ordered by priority and
 *             then by arrival.  A place that is neither asked for nor waited on for
 *             WAITER_SILENT_MS is dropped.  A driver that is not fair ignores `queue` and declares
 *             that.
 *   turn      A waiter whose request can be granted has its turn; it claims the turn by asking
 *             again.  If the turn is not claimed within WAITER_CLAIM_MS and others wait, the waiter
 *             is passed over: they are served as if it were not there, until it asks again.  It
 *             keeps its place where the driver can do that, and queues anew otherwise.  In its
 *             wait() the second in the queue looks every WAITER_CHECK_MS whether the first has been
 *             silent for that long, and those shortly behind it look several times a second, so a
 *             dead waiter leaves a free lock unused for WAITER_TURN_MAX_MS at most.
 *             A turn is not a lease: a request without `queue` that finds no holder is granted,
 *             whoever waits.
 *   modes     A shared request is granted beside shared holders unless an exclusive request waits
 *             before it, so that writers do not starve.  An exclusive request is granted when there
 *             is no shared holder and fewer than `slots` exclusive ones.  Exclusive holders of
 *             one name have different slots, numbered from 0; a free slot is given again.
 *   fence     Strictly larger than every fence granted for the key before, as far as the driver's
 *             fence source promises it across failures.  Every shared holder gets its own, too.
 *   ttl       Measured by the coordinator's clock alone.  A grant may be shorter than requested (a
 *             session may have one TTL for all its leases): remaining_ms tells, and src/lock
 *             renews accordingly.
 *   session   A lease can be acquired, renewed and released through any handle that came from one
 *             open by way of clone, and lives while at least one of them is open.  Where leases end
 *             with the process (info.outlives is false), those handles share the session. */
#ifndef HF_LEASE_LEASE_H
#define HF_LEASE_LEASE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/hex.h"
#include "base/vec.h"
#include "holdfast.h"

#define LEASE_OWNER_SIZE 16
#define LEASE_NAME_MAX 255
#define LEASE_LABEL_MAX 128
#define LEASE_VALUE_MAX 4096
#define LEASE_SLOTS_MAX 1000000
#define LEASE_TTL_MIN_MS 100
#define LEASE_TTL_MAX_MS (INT64_C(7) * 86400000)
#define LEASE_TIMEOUT_MS 2000
#define LEASE_TIMEOUT_MAX_MS 3600000
#define LEASE_WAIT_MAX_MS 3600000
#define WAITER_SILENT_MS 5000
#define WAITER_CLAIM_MS 150
#define WAITER_CHECK_MS 100
#define WAITER_NEAR 8 /* places that look several times a second */
#define WAITER_TURN_MAX_MS 300
/* How long after a grant the SQL driver remembers the last fence of a free name. */
#define LEASE_FENCE_KEPT_MS INT64_C(86400000)

struct lease_request {
    const char *key;
    size_t key_len;
    uint8_t owner[LEASE_OWNER_SIZE];
    int64_t ttl_ms;
    enum hf_mode mode;
    int priority;
    unsigned slots; /* 1 to LEASE_SLOTS_MAX */
    bool queue;
    const char *label; /* NULL: none */
    size_t label_len;
    /* The thread, or whatever else waits and holds as one, for coordinators that look for
     * deadlocks; 0: none.  Other drivers ignore it. */
    uint64_t agent;
    const char
        *value; /* stored with the grant; only where the driver has HF_TRAIT_VALUES; NULL: none */
    size_t value_len;
};

/* The answer of acquire, renew or release to one request.  A request that would have to wait for
 * itself is no verdict: the call returns HF_DEADLOCK, and the fault names the cycle. */
struct lease_verdict {
    /* HF_DONE: granted, renewed or released.  HF_TAKEN: not granted.  HF_LOST: the owner has no
     * lease to renew, or neither a lease nor a place to release. */
    enum hf_result result;
    /* If granted or renewed. */
    int64_t fence;
    /* If granted or renewed: the rest of the TTL.  If taken: the time until the first holder's
     * lease ends; -1 if that is not known. */
    int64_t remaining_ms;
    /* If taken: the place in the queue, 1 for the next to be served; 0: no place. */
    size_t position;
    /* If granted or renewed: which slot, from 0 to slots - 1. */
    unsigned slot;
};

struct lease_options {
    int64_t timeout_ms; /* of one exchange; 0: LEASE_TIMEOUT_MS */
    const struct clock *clock;
    /* Called when a driver hears that a lease is lost before it is asked about it, as after an
     * operator's break; on any thread, perhaps within a call.  May not call the driver.  Most
     * drivers hear nothing, and tell at the next renewal.  NULL: nobody wants to know. */
    void (*on_lost)(void *ctx, const char *key, size_t key_len,
                    const uint8_t owner[LEASE_OWNER_SIZE]);
    void *ctx;
};

/* After how long a waiter looks again by itself, by its position in the queue. */
static inline int64_t waiter_look_us(size_t position, int64_t near_us, int64_t far_us)
{
    if (position == 2)
        return INT64_C(1000) * WAITER_CHECK_MS;
    return position > 2 && position <= WAITER_NEAR ? near_us : far_us;
}

/* What inspect finds. */
struct lease_state {
    size_t n_holders, n_waiters;
    struct hf_holder *holders; /* `size` is not set */
    struct hf_holder *waiters; /* in the order of service */
    int64_t last_fence;        /* see struct hf_lock_state */
    char *value;               /* NULL: none */
};
void lease_state_close(struct lease_state *state); /* accepts a zeroed state */

typedef bool lease_each_name(void *ctx, const char *name);
typedef void lease_each_finding(void *ctx, const struct hf_finding *finding);

struct lease; /* a handle; drivers embed it as their first member */

/* What a driver implements.  Requests, names and times have been checked. */
struct lease_driver {
    struct hf_driver_info info;
    /* The beginnings of its URLs, "sqlite:", ended by NULL. */
    const char *const *schemes;
    /* A handle in wait() takes neither a file nor a connection of its own, so thousands may wait.
     */
    bool light_waits;

    enum hf_result (*open)(const char *url, const struct lease_options *options, struct lease **ret,
                           struct hf_fault *fault);
    void (*close)(struct lease *l);
    /* Opens one more handle to the same coordinator for another thread; `l` may be in use
     * meanwhile.  The new handle need not connect before its first call. */
    enum hf_result (*clone)(struct lease *l, struct lease **ret, struct hf_fault *fault);
    /* HF_DONE: the verdict is filled.  HF_UNREACHABLE: nothing was done.  HF_UNKNOWN: the request
     * may have been carried out. */
    enum hf_result (*acquire)(struct lease *l, const struct lease_request *request,
                              struct lease_verdict *verdict, struct hf_fault *fault);
    /* As acquire, for each of a batch, some of which may have been carried out after HF_UNKNOWN.
     * One exchange serves the whole batch where the coordinator can do that.  Uses only key, owner
     * and ttl_ms of a request. */
    enum hf_result (*renew)(struct lease *l, const struct lease_request *requests, size_t n,
                            struct lease_verdict *verdicts, struct hf_fault *fault);
    /* Gives up the lease or the place in the queue, whichever the owner has.  Uses only key and
     * owner of a request. */
    enum hf_result (*release)(struct lease *l, const struct lease_request *requests, size_t n,
                              struct lease_verdict *verdicts, struct hf_fault *fault);
    /* Sleeps until it is worth asking again (a release, an expiry, the waiter's turn), for at most
     * timeout_ms, or until l->wake_fd is readable.  May return early.  Keeps the waiter's place.
     * A release wakes only the waiters whose turn it is. */
    enum hf_result (*wait)(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                           struct hf_fault *fault);
    enum hf_result (*inspect)(struct lease *l, const char *key, size_t key_len,
                              struct lease_state *ret, struct hf_fault *fault);
    enum hf_result (*list)(struct lease *l, const char *prefix, size_t prefix_len,
                           lease_each_name *each, void *ctx, struct hf_fault *fault);
    /* Ends the leases of all holders; waiters keep their places. */
    enum hf_result (*break_)(struct lease *l, const char *key, size_t key_len,
                             struct hf_fault *fault);
    /* Reports, with lease_finding, what the coordinator's settings mean for locks.  Writes nothing
     * to the coordinator.  NULL: there is nothing to examine. */
    enum hf_result (*examine)(struct lease *l, lease_each_finding *each, void *ctx,
                              struct hf_fault *fault);
    /* How many shared leases of this open were granted without asking the coordinator, and how many
     * were not although they might have been.  `l` may be in use meanwhile.  NULL: the driver
     * caches nothing. */
    void (*count_cache)(struct lease *l, uint64_t *ret_hits, uint64_t *ret_misses);
};

struct lease {
    const struct lease_driver *driver;
    /* Set by the caller: renew and release return within this time if it is shorter than
     * timeout_ms; 0: no such limit.  Only drivers whose answers can be lost need to look at it. */
    int64_t limit_ms;
    /* Set by the caller: `wait` returns soon after this becomes readable; -1: none. */
    int wake_fd;
    /* Set by the driver's open and clone if this coordinator allows less than the driver's info
     * says: the limits of a TTL; 0: those of the info. */
    int64_t ttl_min_ms, ttl_max_ms;
};

/* ---- drivers.c: the drivers that this library was built with ---- */

extern const struct lease_driver *const lease_drivers[]; /* ends with NULL */
/* The driver whose scheme the URL begins with; NULL: none. */
const struct lease_driver *lease_driver_for(const char *url);

/* ---- check.c: the way to a driver ----
 * HF_BAD_REQUEST or HF_UNSUPPORTED if a request is not one that the driver can serve; the fault
 * says why.  Otherwise as the driver's function of the same name. */

/* `options->clock` is required. */
HF_MUST_USE enum hf_result lease_open(const struct lease_driver *driver, const char *url,
                                      const struct lease_options *options, struct lease **ret,
                                      struct hf_fault *fault);
void lease_close(struct lease *l); /* accepts NULL */
HF_MUST_USE enum hf_result lease_clone(struct lease *l, struct lease **ret, struct hf_fault *fault);
HF_MUST_USE enum hf_result lease_acquire(struct lease *l, const struct lease_request *request,
                                         struct lease_verdict *verdict, struct hf_fault *fault);
HF_MUST_USE enum hf_result lease_renew(struct lease *l, const struct lease_request *requests,
                                       size_t n, struct lease_verdict *verdicts,
                                       struct hf_fault *fault);
HF_MUST_USE enum hf_result lease_release(struct lease *l, const struct lease_request *requests,
                                         size_t n, struct lease_verdict *verdicts,
                                         struct hf_fault *fault);
HF_MUST_USE enum hf_result lease_wait(struct lease *l, const struct lease_request *request,
                                      int64_t timeout_ms, struct hf_fault *fault);
HF_MUST_USE enum hf_result lease_inspect(struct lease *l, const char *key, size_t key_len,
                                         struct lease_state *ret, struct hf_fault *fault);
HF_MUST_USE enum hf_result lease_list(struct lease *l, const char *prefix, size_t prefix_len,
                                      lease_each_name *each, void *ctx, struct hf_fault *fault);
HF_MUST_USE enum hf_result lease_break(struct lease *l, const char *key, size_t key_len,
                                       struct hf_fault *fault);
HF_MUST_USE enum hf_result lease_examine(struct lease *l, lease_each_finding *each, void *ctx,
                                         struct hf_fault *fault);

/* The checks themselves, for callers that want to know before they ask. */
HF_MUST_USE enum hf_result lease_check(const struct lease *l, const struct lease_request *r,
                                       struct hf_fault *fault);
HF_MUST_USE enum hf_result lease_check_key(const struct hf_driver_info *info, const char *key,
                                           size_t key_len, struct hf_fault *fault);

/* The limits of a TTL on this coordinator. */
static inline int64_t lease_ttl_min_ms(const struct lease *l)
{
    return l->ttl_min_ms ? l->ttl_min_ms : l->driver->info.ttl_min_ms;
}
static inline int64_t lease_ttl_max_ms(const struct lease *l)
{
    return l->ttl_max_ms ? l->ttl_max_ms : l->driver->info.ttl_max_ms;
}

/* ---- check.c: shared by the drivers ---- */

/* HF_BAD_REQUEST: the request asks for `asked` slots, but the holders or waiters of the name for
 * `others`. */
enum hf_result lease_slots_differ(unsigned asked, int64_t others, struct hf_fault *fault);
/* Calls `each` with a finding; the text is cut after 500 bytes. */
__attribute__((format(printf, 5, 6))) void lease_finding(lease_each_finding *each, void *ctx,
                                                         enum hf_grade grade, const char *topic,
                                                         const char *fmt, ...);
/* Is the caller's wake_fd readable? */
bool lease_is_woken(const struct lease *l);
/* The owner as struct hf_holder shows it. */
static inline void lease_owner_text(const uint8_t owner[LEASE_OWNER_SIZE],
                                    char ret[2 * LEASE_OWNER_SIZE + 1])
{
    hex_format(owner, LEASE_OWNER_SIZE, ret);
}

#endif
