/* The ZooKeeper driver: leases as ephemeral nodes of an ensemble (3.5.3 or later, which has
 * containers), through the official C client.
 *
 *   queue.c      the nodes of a lock, why leases never conflict, and whose turn it is
 *   family.c     what the handles of one open share: sessions, leases, places
 *   keeper.c     the thread of each session
 *   listing.c    reading the nodes of a lock, and deleting those of one owner
 *   acquire.c    acquiring
 *   wait.c       waiting for a turn
 *   inspect.c    inspecting, listing, breaking
 *   examine.c    what the ensemble's settings mean for locks
 *   words.c      four-letter words: why a server gives no session
 *   call.c       one request to ZooKeeper, with a deadline
 *   address.c    URLs
 *
 * This file has the handles, renewing and releasing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/wait.h"
#include "lease/zookeeper/handle.h"

/* Each further request of a batch may take this long. */
#define BATCH_STEP_US INT64_C(20000)
#define TTL_MIN_MS 1000
#define TTL_MAX_MS 600000

extern const struct lease_driver lease_zookeeper;

void zk_lock_path(const struct zk_family *f, const char *key, size_t key_len,
                  char ret[ZK_LOCK_SIZE])
{
    char name[ZK_NAME_SIZE];
    zk_name_encode(key, key_len, name);
    snprintf(ret, ZK_LOCK_SIZE, "%s/%s", f->address.root, name);
}

int64_t zk_until_us(const struct zk_handle *h, size_t n)
{
    return wait_now_us() + h->family->timeout_ms * 1000 + (int64_t)(n - 1) * BATCH_STEP_US;
}

enum hf_result zk_failure(const struct zk_family *f, int rc, bool written, struct hf_fault *fault)
{
    if (rc == ZNOAUTH)
        return fault_set(fault, HF_UNREACHABLE,
                         "ZooKeeper: these credentials may not use %s (wrong user or password, or "
                         "an ACL)",
                         f->address.root);
    if (rc == ZUNIMPLEMENTED)
        return fault_set(fault, HF_UNREACHABLE,
                         "ZooKeeper at %s has no container nodes; 3.5.3 or later is needed",
                         f->address.hosts);
    const char *what = rc == ZOPERATIONTIMEOUT ? "no answer in time" : zerror(rc);
    return fault_set(fault, written ? HF_UNKNOWN : HF_UNREACHABLE, "ZooKeeper at %s: %s",
                     f->address.hosts, what);
}

bool zk_may_ask_again(int rc, int64_t until_us)
{
    return (rc == ZOPERATIONTIMEOUT || rc == ZCONNECTIONLOSS || rc == ZSESSIONEXPIRED) &&
           wait_now_us() < until_us;
}

/* ---- handles ---- */

static void zk_close(struct lease *l)
{
    struct zk_handle *h = zk_handle_of(l);
    zk_waiter_remove(h);
    zk_family_close(h->family);
    zk_list_close(&h->list);
    close(h->waiter.fd);
    free(h);
}

/* Takes over a reference of the family. */
static enum hf_result handle_new(struct zk_family *f, struct lease **ret, struct hf_fault *fault)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        zk_family_close(f);
        return fault_set(fault, HF_FAILED, "too many open files");
    }
    struct zk_handle *h = hf_alloc(sizeof *h);
    h->lease.driver = &lease_zookeeper;
    h->lease.wake_fd = -1;
    h->family = f;
    h->waiter.fd = fd;
    pthread_mutex_lock(&f->mutex);
    h->lease.ttl_min_ms = f->ttl_min_ms;
    pthread_mutex_unlock(&f->mutex);
    zk_waiter_add(h);
    *ret = &h->lease;
    return HF_DONE;
}

static enum hf_result zk_open(const char *url, const struct lease_options *options,
                              struct lease **ret, struct hf_fault *fault)
{
    struct zk_address address;
    enum hf_result result = zk_address_parse(url, &address, fault);
    if (result != HF_DONE)
        return result;
    struct zk_family *f = zk_family_new(address, options);
    struct zk_session *s;
    int64_t until_us = wait_now_us() + options->timeout_ms * 1000;
    result = zk_session_get(f, 0, until_us, &s, fault);
    if (result == HF_DONE) {
        int rc = zk_root_make(s, until_us);
        zk_session_put(s);
        if (rc != ZOK)
            result = zk_failure(f, rc, false, fault);
    }
    if (result == HF_DONE)
        return handle_new(f, ret, fault);
    zk_family_close(f);
    return result;
}

static enum hf_result zk_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    struct zk_family *f = zk_handle_of(l)->family;
    zk_family_ref(f);
    return handle_new(f, ret, fault);
}

/* ---- renewing ---- */

struct renewal {
    struct zk_entry *e; /* NULL: there is no lease */
    struct zk_call *call;
    int64_t sent_us, ttl_ms;
};

/* Finds the lease and takes a use of its session; HF_LOST if there is none. */
static enum hf_result lease_use(struct zk_family *f, const struct lease_request *q,
                                int64_t until_us, struct zk_entry **ret, struct hf_fault *fault)
{
    char path[ZK_LOCK_SIZE];
    zk_lock_path(f, q->key, q->key_len, path);
    pthread_mutex_lock(&f->mutex);
    struct zk_entry *e = zk_entry_find(f, path, q->owner);
    enum hf_result result = HF_LOST;
    if (e && e->is_held && !e->is_ended && e->expires_us > zk_now_us(f))
        result = zk_session_use(e->session, until_us, fault);
    if (e && result != HF_DONE)
        zk_entry_put(e);
    pthread_mutex_unlock(&f->mutex);
    if (result == HF_DONE)
        *ret = e;
    return result;
}

/* Writes the lease's node, which the leader and a majority confirm.  Nothing in it changes, but its
 * time of modification shows others when it was renewed. */
static enum hf_result renewal_send(struct zk_handle *h, const struct lease_request *q,
                                   int64_t until_us, struct renewal *ret, struct hf_fault *fault)
{
    struct zk_entry *e;
    enum hf_result result = lease_use(h->family, q, until_us, &e, fault);
    if (result != HF_DONE)
        return result == HF_LOST ? HF_DONE : result;
    char path[ZK_PATH_SIZE];
    struct zk_node node = {.mode = e->mode, .holds = true};
    zk_node_name(e->owner, e->mode, true, node.name);
    zk_node_path(e->path, &node, path);
    *ret = (struct renewal){.e = e,
                            .call = zk_call_new(),
                            .sent_us = zk_now_us(h->family),
                            .ttl_ms = q->ttl_ms < e->ttl_ms ? q->ttl_ms : e->ttl_ms};
    zk_call_set(ret->call, path, e->data.data, e->data.len, -1);
    zk_call_send(ret->call, e->session->zh);
    return HF_DONE;
}

/* Enters an answer.  A lease that ended meanwhile stays ended. */
static int renewal_end(struct zk_family *f, struct renewal *r, int64_t until_us,
                       struct lease_verdict *v)
{
    *v = (struct lease_verdict){.result = HF_LOST};
    if (!r->e)
        return ZOK;
    int rc = zk_call_wait(r->call, until_us);
    if (zk_is_answer(rc))
        zk_session_answered(r->e->session, r->sent_us);
    pthread_mutex_lock(&f->mutex);
    if (rc == ZOK && r->e->is_linked && !r->e->is_ended) {
        r->e->expires_us = r->sent_us + r->ttl_ms * 1000;
        *v = (struct lease_verdict){.result = HF_DONE, .fence = r->e->fence};
        f->server_ahead_ms = r->call->stat.mtime - clock_wall_us(f->clock) / 1000;
    } else if (rc == ZNONODE) {
        zk_entry_remove(r->e);
    }
    pthread_mutex_unlock(&f->mutex);
    if (v->result == HF_DONE)
        v->remaining_ms = zk_session_left_ms(r->e->session, r->sent_us, r->ttl_ms);
    return rc == ZNONODE ? ZOK : rc;
}

static void renewal_close(struct zk_family *f, struct renewal *r)
{
    if (!r->e)
        return;
    zk_session_put(r->e->session);
    zk_call_free(r->call);
    pthread_mutex_lock(&f->mutex);
    zk_entry_put(r->e);
    pthread_mutex_unlock(&f->mutex);
}

static int64_t limited_until_us(const struct zk_handle *h, size_t n)
{
    int64_t until_us = zk_until_us(h, n), limit_us = wait_now_us() + h->lease.limit_ms * 1000;
    return h->lease.limit_ms > 0 && limit_us < until_us ? limit_us : until_us;
}

/* All renewals are sent before the first answer is awaited. */
static enum hf_result zk_renew(struct lease *l, const struct lease_request *requests, size_t n,
                               struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct zk_handle *h = zk_handle_of(l);
    int64_t until_us = limited_until_us(h, n);
    struct renewal *renewals = hf_alloc(n * sizeof *renewals);
    enum hf_result result = HF_DONE;
    size_t n_sent = 0;
    while (n_sent < n && result == HF_DONE) {
        result = renewal_send(h, &requests[n_sent], until_us, &renewals[n_sent], fault);
        n_sent++;
    }
    if (result != HF_DONE && n_sent > 1)
        result = HF_UNKNOWN;
    for (size_t i = 0; i < n_sent; i++) {
        int rc = renewal_end(h->family, &renewals[i], until_us, &verdicts[i]);
        if (rc != ZOK && result == HF_DONE)
            result = zk_failure(h->family, rc, true, fault);
        renewal_close(h->family, &renewals[i]);
    }
    free(renewals);
    if (result != HF_DONE && fault)
        fault->result = result;
    return result;
}

/* ---- releasing ---- */

struct release {
    struct zk_ending ending;
    struct zk_entry *e; /* NULL: the owner has nothing */
    bool is_over;       /* what it had has ended before */
};

/* Finds what the owner has and sends the transaction that deletes it. */
static enum hf_result release_send(struct zk_family *f, const struct lease_request *q,
                                   int64_t until_us, struct release *ret, struct hf_fault *fault)
{
    char path[ZK_LOCK_SIZE];
    zk_lock_path(f, q->key, q->key_len, path);
    pthread_mutex_lock(&f->mutex);
    struct zk_entry *e = zk_entry_find(f, path, q->owner);
    enum hf_result result = e ? zk_session_use(e->session, until_us, fault) : HF_LOST;
    if (result == HF_DONE) {
        ret->e = e;
        ret->is_over =
            !e->is_linked || e->is_ended || (e->is_held && e->expires_us <= zk_now_us(f));
        zk_ending_send(&ret->ending, e);
    } else if (e) {
        zk_entry_put(e);
    }
    pthread_mutex_unlock(&f->mutex);
    return result == HF_LOST ? HF_DONE : result;
}

static int release_end(struct zk_family *f, struct release *r, int64_t until_us,
                       struct lease_verdict *v)
{
    *v = (struct lease_verdict){.result = HF_LOST};
    if (!r->e)
        return ZOK;
    struct zk_session *s = r->e->session;
    int rc = zk_ending_wait(&r->ending, until_us);
    if (rc == ZOK && !r->is_over)
        v->result = HF_DONE;
    pthread_mutex_lock(&f->mutex);
    zk_entry_put(r->e);
    pthread_mutex_unlock(&f->mutex);
    zk_session_put(s);
    return rc == ZNONODE ? ZOK : rc;
}

/* All transactions are sent before the first answer is awaited. */
static enum hf_result zk_release(struct lease *l, const struct lease_request *requests, size_t n,
                                 struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct zk_handle *h = zk_handle_of(l);
    int64_t until_us = limited_until_us(h, n);
    struct release *releases = hf_alloc(n * sizeof *releases);
    enum hf_result result = HF_DONE;
    size_t n_sent = 0;
    while (n_sent < n && result == HF_DONE) {
        result = release_send(h->family, &requests[n_sent], until_us, &releases[n_sent], fault);
        n_sent++;
    }
    if (result != HF_DONE && n_sent > 1)
        result = HF_UNKNOWN;
    for (size_t i = 0; i < n_sent; i++) {
        int rc = release_end(h->family, &releases[i], until_us, &verdicts[i]);
        if (rc != ZOK && result == HF_DONE)
            result = zk_failure(h->family, rc, true, fault);
    }
    free(releases);
    if (result != HF_DONE && fault)
        fault->result = result;
    return result;
}

const struct lease_driver lease_zookeeper = {
    .info =
        {.size = sizeof(struct hf_driver_info),
         .name = "zookeeper",
         .url = "zookeeper://[user:password@]host[:port][,host...][/chroot]",
         .fence = HF_FENCE_CONSENSUS,
         .processes = true,
         .outlives = false,
         .fair = true,
         .shared = true,
         .ttl_min_ms = TTL_MIN_MS,
         .ttl_max_ms = TTL_MAX_MS,
         .name_len_max = LEASE_NAME_MAX,
         .ttl = "the session's timeout by the leader's monotonic clock, negotiated with the server "
                "(by default 4 to 40 seconds) and rounded up to its tick; while the process lives, "
                "its own boot-time clock",
         .survives = "clients' ends and lost connections; the loss of a minority of the servers, "
                     "and restarts of all of them. While there is no majority nobody gets a lock, "
                     "and holders lose theirs at their deadlines. Fences are transaction numbers "
                     "of the ensemble, which only grow while a majority keeps its data",
         .beware = "Leases end with the process that holds them: a lease cannot be passed on to "
                   "another process. A shorter or longer TTL than the server's limits is refused "
                   "or cut. If the servers lose their data, locks are granted anew at once and "
                   "fences begin again at small numbers",
         .overlaps = HF_OVERLAP_RESTART,
         .traits = HF_TRAIT_FIXED_TTL | HF_TRAIT_QUEUES_ANEW},
    .light_waits = true,
    .schemes = (const char *const[]){"zookeeper://", NULL},
    .open = zk_open,
    .close = zk_close,
    .clone = zk_clone,
    .acquire = zk_acquire,
    .renew = zk_renew,
    .release = zk_release,
    .wait = zk_wait,
    .inspect = zk_inspect,
    .list = zk_list_names,
    .break_ = zk_break,
    .examine = zk_examine,
};
