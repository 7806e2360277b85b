/* See pool.h. */
#include "lock/pool.h"

#include <stdlib.h>

#include "base/wait.h"

static size_t waiting_max(const struct pool *pool)
{
    return pool->first->driver->light_waits ? POOL_WAITING_LIGHT_MAX : POOL_WAITING_MAX;
}

void pool_init(struct pool *pool, struct lease *first, int64_t timeout_ms)
{
    *pool = (struct pool){.first = first, .timeout_ms = timeout_ms, .n_idle = 1};
    pool->idle = hf_alloc((POOL_SHORT_MAX + waiting_max(pool)) * sizeof *pool->idle);
    pool->idle[0] = first;
    pthread_mutex_init(&pool->mutex, NULL);
    wait_cond_init(&pool->freed);
}

void pool_close(struct pool *pool)
{
    for (size_t i = 0; i < pool->n_idle; i++)
        if (pool->idle[i] != pool->first)
            lease_close(pool->idle[i]);
    lease_close(pool->first);
    free(pool->idle);
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
    bool has_room = pool->n_waiting < waiting_max(pool);
    if (has_room) {
        pool->n_waiting++;
        pool->n_short--;
        pthread_cond_signal(&pool->freed);
    }
    pthread_mutex_unlock(&pool->mutex);
    return has_room;
}

size_t pool_add_polling(struct pool *pool, int change)
{
    pthread_mutex_lock(&pool->mutex);
    pool->n_polling = pool->n_polling + (size_t)change;
    size_t n = pool->n_polling;
    pthread_mutex_unlock(&pool->mutex);
    return n;
}
