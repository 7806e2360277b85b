/* A back end, opened: its handles, who has one, what is passed through to it, and the numbers.  Any
 * thread; a handle belongs to the call that took it.  Handles are opened when they are needed, kept
 * until hf_close, and bounded (POOL_*). */
#include "lock/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- handles ---- */

static void pool_init(struct pool *pool)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->freed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void pool_close(struct hf_locks *locks)
{
    struct pool *pool = &locks->pool;
    for (size_t i = 0; i < pool->n_idle; i++)
        if (pool->idle[i] != locks->first)
            locks->driver->close(pool->idle[i]);
    if (locks->first)
        locks->driver->close(locks->first);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->mutex);
}

static void after_us(const struct clock *clock, int64_t us, struct timespec *ret)
{
    us += clock_monotonic_us(clock);
    *ret = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

enum hf_result pool_take(struct hf_locks *locks, struct lease **ret, struct hf_fault *fault)
{
    struct pool *pool = &locks->pool;
    struct lease *handle = NULL;
    struct timespec until;
    int waited = 0;
    pthread_mutex_lock(&pool->mutex);
    if (pool->n_short == POOL_SHORT_MAX)
        after_us(locks->clock, locks->timeout_ms * 1000, &until);
    while (pool->n_short == POOL_SHORT_MAX && waited == 0)
        waited = pthread_cond_timedwait(&pool->freed, &pool->mutex, &until);
    bool free_one = pool->n_short < POOL_SHORT_MAX;
    if (free_one) {
        pool->n_short++;
        if (pool->n_idle > 0)
            handle = pool->idle[--pool->n_idle];
    }
    pthread_mutex_unlock(&pool->mutex);
    if (!free_one)
        return fault_set(fault, HF_UNREACHABLE, "%d calls are waiting for %s to answer already",
                         POOL_SHORT_MAX, locks->driver->info.name);
    if (!handle) {
        enum hf_result r = locks->driver->another(locks->first, &handle, fault);
        if (r != HF_DONE) {
            pthread_mutex_lock(&pool->mutex);
            pool->n_short--;
            pthread_cond_signal(&pool->freed);
            pthread_mutex_unlock(&pool->mutex);
            return r;
        }
    }
    *ret = handle;
    return HF_DONE;
}

void pool_give(struct hf_locks *locks, struct lease *handle, bool waiting)
{
    struct pool *pool = &locks->pool;
    pthread_mutex_lock(&pool->mutex);
    pool->idle[pool->n_idle++] = handle;
    if (waiting) {
        pool->n_waiting--;
    } else {
        pool->n_short--;
        pthread_cond_signal(&pool->freed); /* each time: several may be waiting */
    }
    pthread_mutex_unlock(&pool->mutex);
}

bool pool_begin_waiting(struct hf_locks *locks)
{
    struct pool *pool = &locks->pool;
    pthread_mutex_lock(&pool->mutex);
    bool may = pool->n_waiting < POOL_WAITING_MAX;
    if (may) {
        pool->n_waiting++;
        pool->n_short--;
        pthread_cond_signal(&pool->freed);
    }
    pthread_mutex_unlock(&pool->mutex);
    return may;
}

/* ---- opening and closing ---- */

enum hf_result locks_open(const struct lease_driver *driver, const char *url,
                          const struct hf_options *options, struct hf_locks **ret,
                          struct hf_fault *fault)
{
    int64_t timeout_ms = options && options->timeout_ms ? options->timeout_ms : LOCK_TIMEOUT_MS;
    if (timeout_ms < 1 || timeout_ms > LOCK_TIMEOUT_MAX_MS)
        return fault_set(fault, HF_BAD_REQUEST, "timeout_ms is %lld: from 1 to %d",
                         (long long)timeout_ms, LOCK_TIMEOUT_MAX_MS);
    struct lease_options how = {.timeout_ms = timeout_ms, .clock = &clock_system};
    struct lease *first = NULL;
    enum hf_result r = driver->open(url, &how, &first, fault);
    if (r != HF_DONE)
        return r;
    struct hf_locks *locks = hf_alloc(sizeof *locks);
    locks->driver = driver;
    locks->clock = &clock_system;
    locks->timeout_ms = timeout_ms;
    locks->first = first;
    pool_init(&locks->pool);
    locks->pool.idle[locks->pool.n_idle++] = first;
    random_init_system(&locks->random);
    pthread_mutex_init(&locks->mutex, NULL);
    *ret = locks;
    return HF_DONE;
}

enum hf_result hf_open(const char *url, const struct hf_options *options, struct hf_locks **ret,
                       struct hf_fault *fault)
{
    const struct lease_driver *driver = url ? lease_driver_for(url) : NULL;
    if (!driver) /* not quoted: there may be a password in it */
        return fault_set(fault, HF_BAD_REQUEST,
                         "no back end has URLs that begin like this one: memory:, sqlite:, "
                         "postgres://, redis:// and unix: are known");
    return locks_open(driver, url, options, ret, fault);
}

static void release_all(struct hf_locks *locks)
{
    while (locks->all) {
        struct hf_lock *batch[BATCH_MAX];
        size_t n = 0;
        for (struct hf_lock *l = locks->all; l && n < BATCH_MAX; l = l->next)
            batch[n++] = l;
        (void)lock_release(locks, batch, n, NULL);
    }
}

void hf_close(struct hf_locks *locks)
{
    if (!locks)
        return;
    watch_stop(locks);
    release_all(locks);
    for (struct hf_lock_set *set = locks->sets, *next; set; set = next) {
        next = set->next;
        free(set);
    }
    pool_close(locks);
    vec_close(&locks->watch.heap);
    pthread_mutex_destroy(&locks->mutex);
    explicit_bzero(&locks->random, sizeof locks->random);
    free(locks);
}

/* ---- looking ---- */

enum hf_result hf_inspect(struct hf_locks *locks, const char *name, struct hf_lock_state *ret,
                          struct hf_fault *fault)
{
    struct lease *handle = NULL;
    enum hf_result r;
    if ((r = check_name(locks, name, fault)) != HF_DONE ||
        (r = pool_take(locks, &handle, fault)) != HF_DONE)
        return r;
    struct hf_lock_state state = {.n_holders = 0};
    r = locks->driver->inspect(handle, name, strlen(name), &state, fault);
    pool_give(locks, handle, false);
    if (r == HF_DONE)
        *ret = state;
    return r;
}

void hf_lock_state_close(struct hf_lock_state *state)
{
    if (!state)
        return;
    free(state->holders);
    free(state->waiters);
    *state = (struct hf_lock_state){.n_holders = 0};
}

enum hf_result hf_list(struct hf_locks *locks, const char *prefix,
                       bool (*each)(void *ctx, const char *name), void *ctx, struct hf_fault *fault)
{
    struct lease *handle = NULL;
    enum hf_result r;
    if (!each)
        return fault_set(fault, HF_BAD_REQUEST, "nobody to tell the names to");
    if (!prefix)
        prefix = "";
    if ((prefix[0] && (r = check_name(locks, prefix, fault)) != HF_DONE) ||
        (r = pool_take(locks, &handle, fault)) != HF_DONE)
        return r;
    r = locks->driver->list(handle, prefix, strlen(prefix), each, ctx, fault);
    pool_give(locks, handle, false);
    return r;
}

enum hf_result hf_break(struct hf_locks *locks, const char *name, struct hf_fault *fault)
{
    struct lease *handle = NULL;
    enum hf_result r;
    if ((r = check_name(locks, name, fault)) != HF_DONE ||
        (r = pool_take(locks, &handle, fault)) != HF_DONE)
        return r;
    r = locks->driver->break_(handle, name, strlen(name), fault);
    pool_give(locks, handle, false);
    return r;
}

/* ---- numbers ---- */

void locks_count(struct hf_locks *locks, enum stat stat, uint64_t n)
{
    atomic_fetch_add_explicit(&locks->stats[stat], n, memory_order_relaxed);
}

void locks_count_latency(struct hf_locks *locks, int64_t us)
{
    size_t i = 0;
    while (i < HF_LATENCY_BUCKETS - 1 && us >= INT64_C(16) << i)
        i++;
    atomic_fetch_add_explicit(&locks->latency[i], 1, memory_order_relaxed);
}

void hf_stats(const struct hf_locks *locks, struct hf_stats *ret)
{
    uint64_t n[STAT_COUNT];
    for (size_t i = 0; i < STAT_COUNT; i++)
        n[i] = atomic_load_explicit(&locks->stats[i], memory_order_relaxed);
    *ret = (struct hf_stats){
        .granted = n[STAT_GRANTED],
        .taken = n[STAT_TAKEN],
        .timed_out = n[STAT_TIMED_OUT],
        .lost = n[STAT_LOST],
        .unknown = n[STAT_UNKNOWN],
        .failed = n[STAT_FAILED],
        .waits = n[STAT_WAITS],
        .renewals = n[STAT_RENEWALS],
        .renewal_failures = n[STAT_RENEWAL_FAILURES],
        .releases = n[STAT_RELEASES],
        .wait_us = n[STAT_WAIT_US],
    };
    for (size_t i = 0; i < HF_LATENCY_BUCKETS; i++)
        ret->latency[i] = atomic_load_explicit(&locks->latency[i], memory_order_relaxed);
}

const char *hf_result_text(enum hf_result result)
{
    switch (result) {
    case HF_DONE:
        return "done";
    case HF_TAKEN:
        return "taken";
    case HF_LOST:
        return "lost";
    case HF_UNKNOWN:
        return "unknown";
    case HF_BAD_REQUEST:
        return "bad request";
    case HF_UNREACHABLE:
        return "unreachable";
    case HF_UNSUPPORTED:
        return "unsupported";
    case HF_FAILED:
        return "failed";
    }
    return "no such result";
}

/* ---- drivers ---- */

_Static_assert(offsetof(struct lease_driver, info) == 0, "a driver begins with its info");

/* The same table seen through the first member: one list of drivers, and no second to forget. */
const struct hf_driver_info *const *hf_drivers(size_t *ret_n)
{
    size_t n = 0;
    while (lease_drivers[n])
        n++;
    *ret_n = n;
    return (const struct hf_driver_info *const *)(const void *)lease_drivers;
}
