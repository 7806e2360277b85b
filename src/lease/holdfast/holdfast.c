/* The driver of Holdfast's own lock service: the cell of holdfastd, over HTTP.
 *
 *   lock         src/lock: acquire.c, pool.c, set.c ...      what a program holds
 *     |          lease/check.c
 *   driver       this file, ask.c, wait.c, inspect.c         a call, on its caller's thread
 *     |   `----- address.c                                   URLs
 *     |
 *   connection   service.c        what the handles of one open share; one mutex
 *     |   |      service_thread.c the one thread that does all their exchanges
 *     |   |      stream.c         the streams of sessions
 *     |   |      job.c, servers.c, wire.c
 *     |   |
 *     |  session client.c, client_session.c    pure: leases, deadlines, the cache, what is sent
 *     |
 *   curl         net/http_pool.c, net/transfer.c
 *
 * This file has the handles, acquiring, renewing and releasing.  Runs on the callers' threads. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/wait.h"
#include "lease/holdfast/handle.h"

#define TTL_MIN_MS 1000
#define TTL_MAX_MS 86400000
/* Renewals so soon after another one share its exchange. */
#define SHARED_US 2000
/* Each further request of a batch may take this long. */
#define BATCH_STEP_MS 20

extern const struct lease_driver lease_holdfast;

/* ---- handles ---- */

static void holdfast_close(struct lease *l)
{
    struct handle *h = handle_of(l);
    service_unref(h->service);
    pthread_cond_destroy(&h->cond);
    close(h->waiter.fd);
    free(h);
}

/* Takes over a reference of the service. */
static enum hf_result handle_new(struct service *s, struct lease **ret, struct hf_fault *fault)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        service_unref(s);
        return fault_set(fault, HF_FAILED, "too many open files");
    }
    struct handle *h = hf_alloc(sizeof *h);
    h->lease.driver = &lease_holdfast;
    h->lease.wake_fd = -1;
    h->lease.ttl_min_ms = s->address.ttl_ms; /* the one session would keep shorter ones too long */
    h->service = s;
    h->waiter.fd = fd;
    wait_cond_init(&h->cond);
    *ret = &h->lease;
    return HF_DONE;
}

static enum hf_result holdfast_open(const char *url, const struct lease_options *options,
                                    struct lease **ret, struct hf_fault *fault)
{
    struct holdfast_address address;
    struct service *s;
    json_t *cell;
    enum hf_result result;
    if ((result = holdfast_address_parse(url, &address, fault)) != HF_DONE ||
        (result = service_new(address, options, &s, fault)) != HF_DONE)
        return result;
    result = service_learn(s, &cell, fault);
    if (result != HF_DONE) {
        service_unref(s);
        return result;
    }
    json_decref(cell);
    return handle_new(s, ret, fault);
}

static enum hf_result holdfast_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    struct service *s = handle_of(l)->service;
    service_ref(s);
    return handle_new(s, ret, fault);
}

/* ---- acquiring ---- */

static enum hf_result holdfast_acquire(struct lease *l, const struct lease_request *q,
                                       struct lease_verdict *v, struct hf_fault *fault)
{
    struct handle *h = handle_of(l);
    pthread_mutex_lock(&h->service->mutex);
    enum hf_result result = handle_ask(h, q, h->service->timeout_ms, v, fault);
    pthread_mutex_unlock(&h->service->mutex);
    return result;
}

/* ---- releasing ---- */

static int64_t limited_ms(const struct handle *h, size_t n)
{
    int64_t ms = h->service->timeout_ms + (int64_t)(n - 1) * BATCH_STEP_MS;
    return h->lease.limit_ms > 0 && h->lease.limit_ms < ms ? h->lease.limit_ms : ms;
}

/* Begins to give back what the owner has.  *ret_result is what to tell in the end; NULL: nothing
 * has to be sent. */
static struct job *release_start(struct handle *h, const struct lease_request *q,
                                 int64_t timeout_ms, enum hf_result *ret_result)
{
    struct service *s = h->service;
    struct service_session *session;
    struct client_message m;
    enum client_result result;
    struct client_lease *lease = service_find(s, q, &session);
    *ret_result = HF_LOST;
    if (!lease)
        return NULL;
    enum client_step step = client_release(session->client, lease, service_now_us(s), &m, &result);
    *ret_result = result == CLIENT_DONE ? HF_DONE : HF_LOST;
    if (step == CLIENT_SEND)
        return handle_start(h, session, &m, timeout_ms);
    service_arm(s, session);
    return NULL;
}

/* HF_DONE: the verdict is filled. */
static enum hf_result release_end(struct job *job, struct lease_verdict *v, struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    job_wait(job);
    if (job->result == CLIENT_LOST || job->result == CLIENT_AGAIN)
        v->result = HF_LOST;
    else if (job->result != CLIENT_DONE)
        result = job_failure(job, job->result, fault);
    job_free(job);
    return result;
}

static enum hf_result holdfast_release(struct lease *l, const struct lease_request *requests,
                                       size_t n, struct lease_verdict *verdicts,
                                       struct hf_fault *fault)
{
    struct handle *h = handle_of(l);
    struct job *one = NULL, **jobs = n > 1 ? hf_alloc(n * sizeof(struct job *)) : &one;
    int64_t timeout_ms = limited_ms(h, n);
    enum hf_result result = HF_DONE;
    pthread_mutex_lock(&h->service->mutex);
    for (size_t i = 0; i < n; i++) {
        verdicts[i] = (struct lease_verdict){0};
        jobs[i] = release_start(h, &requests[i], timeout_ms, &verdicts[i].result);
    }
    for (size_t i = 0; i < n; i++) {
        enum hf_result r = jobs[i] ? release_end(jobs[i], &verdicts[i], fault) : HF_DONE;
        if (r != HF_DONE)
            result = r == HF_UNREACHABLE && n > 1 ? HF_UNKNOWN : r;
    }
    pthread_mutex_unlock(&h->service->mutex);
    if (result != HF_DONE && fault)
        fault->result = result;
    if (n > 1)
        free(jobs);
    return result;
}

/* ---- renewing ---- */

/* Keeps the session alive, or joins a keep-alive that is under way. */
static enum hf_result keep_alive(struct handle *h, struct service_session *session,
                                 int64_t timeout_ms, struct hf_fault *fault)
{
    struct service *s = h->service;
    struct client_message m;
    int64_t now_us = service_now_us(s), until_us = wait_now_us() + timeout_ms * 1000;
    enum hf_result result = HF_DONE;
    if (client_keep_alive(session->client, now_us, SHARED_US, &m)) {
        struct job *job = handle_start(h, session, &m, timeout_ms);
        job_wait(job);
        if (job->result != CLIENT_DONE && job->result != CLIENT_AGAIN)
            result = job_failure(job, job->result, fault);
        job_free(job);
        return result;
    }
    while (client_is_keeping(session->client, now_us - SHARED_US))
        if (!wait_cond_until(&s->changed, &s->mutex, until_us))
            return fault_set(fault, HF_UNKNOWN, "the lock service does not answer");
    return HF_DONE;
}

/* One keep-alive for each session that the leases belong to. */
static enum hf_result keep_all(struct handle *h, const struct lease_request *requests, size_t n,
                               struct hf_fault *fault)
{
    bool is_kept[SERVICE_SESSIONS_MAX] = {false};
    for (size_t i = 0; i < n; i++) {
        struct service_session *session;
        struct client_lease *lease = service_find(h->service, &requests[i], &session);
        if (!lease || !client_lease_is_granted(lease) || is_kept[session - h->service->sessions])
            continue;
        is_kept[session - h->service->sessions] = true;
        enum hf_result result = keep_alive(h, session, limited_ms(h, n), fault);
        if (result != HF_DONE)
            return result;
    }
    return HF_DONE;
}

/* A lease whose time is over is given back before the caller hears of it. */
static void renew_end(struct handle *h, const struct lease_request *q, struct lease_verdict *v)
{
    struct service_session *session;
    struct client_lease *lease = service_find(h->service, q, &session);
    *v = (struct lease_verdict){.result = HF_LOST};
    if (!lease || client_lease_is_waiting(lease))
        return;
    int64_t now_us = service_now_us(h->service);
    if (client_renew(session->client, lease, now_us)) {
        handle_fill(lease, HF_DONE, now_us, v);
        if (!session->stream) /* which tells of losses from now on, and asks for earlier ones */
            service_want_streams(h->service);
        return;
    }
    enum hf_result unused;
    struct lease_verdict ignored;
    struct job *job = release_start(h, q, limited_ms(h, 1), &unused);
    if (job)
        (void)!release_end(job, &ignored, NULL);
}

static enum hf_result holdfast_renew(struct lease *l, const struct lease_request *requests,
                                     size_t n, struct lease_verdict *verdicts,
                                     struct hf_fault *fault)
{
    struct handle *h = handle_of(l);
    pthread_mutex_lock(&h->service->mutex);
    enum hf_result result = keep_all(h, requests, n, fault);
    for (size_t i = 0; i < n && result == HF_DONE; i++)
        renew_end(h, &requests[i], &verdicts[i]);
    pthread_mutex_unlock(&h->service->mutex);
    return result;
}

static void holdfast_count_cache(struct lease *l, uint64_t *ret_hits, uint64_t *ret_misses)
{
    struct service *s = handle_of(l)->service;
    *ret_hits = *ret_misses = 0;
    pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++) {
        struct client_counts counts = {0};
        if (s->sessions[i].client)
            counts = client_counts(s->sessions[i].client);
        *ret_hits += counts.cache_hits;
        *ret_misses += counts.cache_misses;
    }
    pthread_mutex_unlock(&s->mutex);
}

const struct lease_driver lease_holdfast = {
    .info =
        {.size = sizeof(struct hf_driver_info),
         .name = "holdfast",
         .url = "holdfast://[KEY@]host[:port][,host...][?ttl=DURATION&cache=shared]",
         .fence = HF_FENCE_DURABLE,
         .processes = true,
         .outlives = false,
         .fair = true,
         .shared = true,
         .priority = true,
         .slots = true,
         .ttl_min_ms = TTL_MIN_MS,
         .ttl_max_ms = TTL_MAX_MS,
         .name_len_max = LEASE_NAME_MAX,
         .ttl = "the session's, by the monotonic clock of the cell's master, which counts from the "
                "last keep-alive; a new master begins anew; while the process lives, its own "
                "boot-time clock",
         .survives =
             "clients' ends and lost connections; the loss of any servers of the cell, or "
             "of all at once, as far as the journal (SQLite, PostgreSQL or etcd) keeps what "
             "it acknowledged; fences only grow, also over a journal that was lost, unless "
             "the clock was set back",
         .beware = "Leases end with the process that holds them: a lease cannot be passed on to "
                   "another process. A / in a name makes a hierarchy: a lock conflicts with those "
                   "above and below it. A free lock is handed to the next waiter at once, so a "
                   "request that does not wait may find it taken for a moment",
         .overlaps = HF_OVERLAP_RESTART,
         .traits = HF_TRAIT_FIXED_TTL | HF_TRAIT_HANDS_OVER | HF_TRAIT_HIERARCHY | HF_TRAIT_AGES |
                   HF_TRAIT_VALUES},
    .light_waits = true,
    .schemes = (const char *const[]){"holdfast://", "holdfasts://", NULL},
    .open = holdfast_open,
    .close = holdfast_close,
    .clone = holdfast_clone,
    .acquire = holdfast_acquire,
    .renew = holdfast_renew,
    .release = holdfast_release,
    .wait = holdfast_wait,
    .inspect = holdfast_inspect,
    .list = holdfast_list,
    .break_ = holdfast_break,
    .examine = holdfast_examine,
    .count_cache = holdfast_count_cache,
};
