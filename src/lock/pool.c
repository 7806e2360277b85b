/* See pool.h. */
#include "lock/pool.h"

#include "base/wait.h"

void pool_init(struct pool *pool, struct lease *first, int64_t timeout_ms)
{
    *pool = (struct pool){.first = first, .timeout_ms = timeout_ms, .n_idle = 1, .idle = {first}};
    pthread_mutex_init(&pool->mutex, NULL);
    wait_cond_init(&pool->freed);
}

void pool_close(struct pool *pool)
{
    for (size_t i = 0; i < pool->n_idle; i++)
        if (pool->idle[i] != pool->first)
            lease_close(pool->idle[i]);
    lease_close(pool->first);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->mutex);
}

/* Reserves the right to a handle, and takes an idle one if there is any.  Returns false if none
 * came free in time. */
static bool reserve(struct pool *pool, struct lease **ret_idle)
{
    int64_t until_us = 0;
    pthread_mutex_lock(&pool->mutex);
    while (pool->n_short == POOL_SHORT_MAX) {
        if (until_us == 0)
            until_us = wait_now_us() + pool->timeout_ms * 1000;
        if (!wait_cond_until(&pool->freed, &pool->mutex, until_us))
            break;
    }
    bool reserved = pool->n_short < POOL_SHORT_MAX;
    if (reserved) {
        pool->n_short++;
        *ret_idle = pool->n_idle > 0 ? pool->idle[--pool->n_idle] : NULL;
    }
    pthread_mutex_unlock(&pool->mutex);
    return reserved;
}

static void cancel_reservation(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->n_short--;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->mutex);
}

enum hf_result pool_take(struct pool *pool, struct lease **ret, struct hf_fault *fault)
{
    struct lease *handle;
    if (!reserve(pool, &handle))
        return fault_set(fault, HF_UNREACHABLE, "%d calls are waiting for %s to answer already",
                         POOL_SHORT_MAX, pool->first->driver->info.name);
    if (!handle) {
        enum hf_result r = lease_clone(pool->first, &handle, fault);
        if (r != HF_DONE) {
            cancel_reservation(pool);
            return r;
        }
    }
    *ret = handle;
    return HF_DONE;
}

void pool_give(struct pool *pool, struct lease *handle, bool waiting)
{
    pthread_mutex_lock(&pool->mutex);
    pool->idle[pool->n_idle++] = handle;
    if (waiting) {
        pool->n_waiting--;
    } else {
        pool->n_short--;
        pthread_cond_signal(&pool->freed); /* each time: several calls may be waiting */
    }
    pthread_mutex_unlock(&pool->mutex);
}

bool pool_begin_waiting(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    bool has_room = pool->n_waiting < POOL_WAITING_MAX;
    if (has_room) {
        pool->n_waiting++;
        pool->n_short--;
        pthread_cond_signal(&pool->freed);
    }
    pthread_mutex_unlock(&pool->mutex);
    return has_room;
}
