/* The contract between a lock (src/lock) and a coordinator: what every back end must do, and may
 * honestly say that it cannot.  A driver is one .c file that ends in one const table.
 *
 * Batch-shaped and synchronous; a handle belongs to one thread at a time.  Below this line nobody
 * retries, waits in a loop or keeps a clock: src/lock does that, once for all drivers.
 *
 *   owner     128 random bits, made by the caller for each acquisition.  acquire is idempotent for
 *             (key, owner): asked again after a lost answer it finds its grant (with the same fence
 *             and what is left of the TTL) or its place in the queue.  renew and release compare
 *             the owner before they write.
 *   queue     a request with `queue` that is not granted keeps a place: first by priority, then by
 *             who came first.  The place lives as long as it is asked for: WAITER_SILENT_MS without
 *             a repeat (or a wait) and it is skipped and dropped, so that a dead waiter at the head
 *             does not stop the others.  A driver that is not fair ignores `queue` and says so.
 *   modes     a shared request is granted beside shared holders unless an exclusive one waits
 *             before it (no starving); an exclusive one when nobody holds.  Up to `slots` exclusive
 *             holders.
 *   fence     strictly larger than every fence granted before for the key, whatever happened to the
 *             server in between, as far as the driver's fence source promises.  Shared holders get
 *             one each too.
 *   ttl       judged by the coordinator's clock alone.  A grant may be for less than was asked
 *             (a session has one TTL for all): remaining_ms says, and src/lock renews by that.
 *   session   a lease is acquired, renewed and released through any handle of one `open` and its
 *             `another`s, and lives while one of them is open at least.  Where it ends with them
 *             (info.outlives false), the session is what they share.
 *
 * Fits: memory (a table), SQL (a row a lease, tickets), Redis (scripts), Redlock (n of those,
 * quorum, no queue), etcd (revision keys under a lease, watch on the predecessor), ZooKeeper
 * (ephemeral sequential nodes: the session's TTL is the lease's, so ttl_ms is fixed at open), a
 * holdfastd. */
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
#define LEASE_SLOTS_MAX 1000000
#define WAITER_SILENT_MS 5000

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
};

/* What acquire, renew and release say to one request.  HF_DONE (granted, renewed, released),
 * HF_TAKEN (acquire), HF_LOST (renew; release: it was not ours, neither lease nor place). */
struct lease_verdict {
    enum hf_result result;
    int64_t fence;        /* granted, renewed */
    int64_t remaining_ms; /* granted, renewed: of the TTL; taken: until the first holder runs out,
                             -1: not known */
    size_t position;      /* taken: 1 is next; 0: no place */
};

struct lease_options {
    int64_t timeout_ms;
    const struct clock *clock;
};

struct lease; /* a handle: drivers embed struct lease first */

struct lease_driver {
    struct hf_driver_info info;
    const char *const
        *schemes; /* "sqlite:", ends with NULL: a URL that begins so is this driver's */

    enum hf_result (*open)(const char *url, const struct lease_options *options, struct lease **ret,
                           struct hf_fault *fault);
    void (*close)(struct lease *l);
    /* One more handle to the same coordinator, for another thread; `l` may be in use meanwhile.
     * Need not connect: the first call does. */
    enum hf_result (*another)(struct lease *l, struct lease **ret, struct hf_fault *fault);
    /* HF_DONE: every verdict is filled.  HF_UNREACHABLE: nothing was done.  HF_UNKNOWN: some or all
     * may have been.  All of `n` in one exchange where the back end can. */
    enum hf_result (*acquire)(struct lease *l, const struct lease_request *requests, size_t n,
                              struct lease_verdict *verdicts, struct hf_fault *fault);
    /* Of a request only key, owner and ttl_ms count; of release key and owner: it gives up the
     * lease or the place in the queue, whichever there is. */
    enum hf_result (*renew)(struct lease *l, const struct lease_request *requests, size_t n,
                            struct lease_verdict *verdicts, struct hf_fault *fault);
    enum hf_result (*release)(struct lease *l, const struct lease_request *requests, size_t n,
                              struct lease_verdict *verdicts, struct hf_fault *fault);
    /* Sleep until asking again is worth it (a release, an expiry, our turn), at most timeout_ms;
     * may return early for no reason.  Keeps the waiter's place.  Only the waiter whose turn it is
     * wakes: no herd. */
    enum hf_result (*wait)(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                           struct hf_fault *fault);
    enum hf_result (*inspect)(struct lease *l, const char *key, size_t key_len,
                              struct hf_lock_state *ret, struct hf_fault *fault);
    enum hf_result (*list)(struct lease *l, const char *prefix, size_t prefix_len,
                           bool (*each)(void *ctx, const char *name), void *ctx,
                           struct hf_fault *fault);
    /* End whoever holds it. */
    enum hf_result (*break_)(struct lease *l, const char *key, size_t key_len,
                             struct hf_fault *fault);
};

struct lease {
    const struct lease_driver *driver;
    /* The caller's: renew and release end within this time, if that is sooner than timeout_ms; 0:
     * timeout_ms.  For drivers whose answers can be lost; the others need not look. */
    int64_t hurry_ms;
};

/* lease.c: the table of drivers */
extern const struct lease_driver *const lease_drivers[]; /* ends with NULL */
const struct lease_driver *lease_driver_for(const char *url);
/* What every driver asks of a request before it does anything: a name of 1 to name_len_max bytes of
 * UTF-8 without control characters (HF_BAD_REQUEST, the fault says which), a TTL within the
 * driver's bounds, slots, a label; and a capability it has (HF_UNSUPPORTED).  For renew and
 * release, which need less, lease_check_key and lease_check_ttl. */
enum hf_result lease_check(const struct hf_driver_info *info, const struct lease_request *requests,
                           size_t n, struct hf_fault *fault);
enum hf_result lease_check_key(const struct hf_driver_info *info, const char *key, size_t key_len,
                               struct hf_fault *fault);
enum hf_result lease_check_ttl(const struct hf_driver_info *info, int64_t ttl_ms,
                               struct hf_fault *fault);
/* As struct hf_holder shows it. */
static inline void lease_owner_text(const uint8_t owner[LEASE_OWNER_SIZE],
                                    char ret[2 * LEASE_OWNER_SIZE + 1])
{
    hex_format(owner, LEASE_OWNER_SIZE, ret);
}

#endif
